"""Two runs, two episodes or two decisions side by side, best from the same seed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple
from urllib.parse import urlencode

from llm_games.benchmarks.judge import beside
from llm_games.benchmarks.judge.beside import ComparedMove, Pair
from llm_games.benchmarks.judge.compare import compare as tested
from llm_games.benchmarks.judge.result_table import ResultTable
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.show.tables import settings_table
from llm_games.benchmarks.show.view import decision_page
from llm_games.benchmarks.show.view.list_page import move
from llm_games.benchmarks.show.view.run_shelf import RunFile, RunShelf
from llm_games.errors import BadParameter, LLMGamesError

NUMBERED = re.compile("(episode|decision/[0-9]{1,9}/[0-9]{1,9})/[0-9]{1,9}")
PAIRS = 100
"""Episodes of two runs that are listed."""
CELLS = 1000
"""Moves of two episodes on a page, about."""


class BadComparison(BadParameter):
    """Two things cannot be set side by side; the message says what can."""


class Side(NamedTuple):
    """A run, or an episode or a decision of it by its numbers."""

    run: RunFile
    kind: str
    numbers: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        parts = [self.kind, *map(str, self.numbers)] if self.numbers else []
        return "/".join([self.run.id, *parts])

    @property
    def address(self) -> str:
        return f"/run/{self.name}"


def parse_side(shelf: RunShelf, text: str) -> Side:
    """Read ``RUN``, ``RUN/episode/E`` or ``RUN/decision/E/STEP/SEAT``."""
    name, *parts = text.split("/")
    run = shelf.run(name)
    if not parts:
        return Side(run, "run")
    if NUMBERED.fullmatch("/".join(parts)):
        return Side(run, parts[0], tuple(map(int, parts[1:])))
    raise BadComparison(
        f"{text[:80]!r} is nothing to compare: give RUN, RUN/episode/EPISODE or "
        "RUN/decision/EPISODE/STEP/SEAT"
    )


def compare(shelf: RunShelf, names: Sequence[str], marked: bool = False) -> dict[str, Any]:
    """The template's context; of one thing what it can be compared with.

    Of two runs that were `marked` in a list the older one is A.
    """
    if not 1 <= (count := len(names)) <= 2:
        way = "mark two rows, or give a and b"
        raise BadComparison(f"two things can be compared, got {count}: {way}")
    sides = [parse_side(shelf, name) for name in names]
    if len({side.kind for side in sides}) > 1:
        kinds = " and ".join(side.kind for side in sides)
        raise BadComparison(f"{kinds} cannot stand side by side; give two of a kind")
    with ExitStack() as opened:
        files = [opened.enter_context(side.run.records()) for side in sides]
        if marked and sides[0].kind == "run":
            older = sorted(range(count), key=lambda i: files[i].created)
            sides, files = [sides[i] for i in older], [files[i] for i in older]
        kind, titles = sides[0].kind, [file.title for file in files]
        frame = {"crumbs": [], "live": "", "sides": sides, "kind": kind, "titles": titles}
        if len(sides) == 1:
            return frame | {"title": "Compare", "twins": list(twins(shelf, sides[0], files[0]))}
        make = {"run": _runs, "episode": _episodes, "decision": _decisions}[kind]
        return frame | {"title": f"Two {kind}s", "move": move} | make(sides, files)


# -- what there is to compare with -----------------------------------------------------------------


def twins(shelf: RunShelf, mine: Side, file: Records) -> Iterator[tuple[str, str, str]]:
    """Title, file and query of the same thing in other runs of the shelf."""
    for run in shelf.runs():
        if run.id == mine.run.id:
            continue
        try:
            with run.records() as other:
                numbers = _twin(mine, file, other)
                title = other.title
        except LLMGamesError:  # no run, or gone; the list of runs says which
            continue
        if numbers is not None:
            b = Side(run, mine.kind, numbers).name
            yield title, run.path.name, urlencode({"a": mine.name, "b": b})


def _twin(mine: Side, file: Records, other: Records) -> tuple[int, ...] | None:
    """Numbers of the same thing in another run; None if that has none."""
    if mine.kind == "run":
        return () if next(beside.pairs(file, other), None) else None
    pair = _pair(file, other, mine.numbers[0])
    if pair is None:
        return None
    if mine.kind == "episode":
        return (pair.b.row.id,)
    _, step, seat = mine.numbers
    for compared_move in beside.moves(pair):
        for both in compared_move.seats:
            if both.seat == seat and both.a and both.a.step == step:
                return (pair.b.row.id, both.b.step, seat) if both.b else None
    return None


def _pair(a: Records, b: Records, episode: int) -> Pair | None:
    return next((pair for pair in beside.pairs(a, b) if pair.a.row.id == episode), None)


# -- side by side ----------------------------------------------------------------------------------


class PairLine(NamedTuple):
    """An episode of both runs: payoffs are means over seats; `parted` is None for all the same."""

    pair: Pair
    payoffs: Sequence[float]
    parted: ComparedMove | None
    query: str


def _runs(sides: Sequence[Side], files: Sequence[Records]) -> dict[str, Any]:
    pairs = list(beside.pairs(files[0], files[1]))
    lines = []
    for pair in pairs[:PAIRS]:
        payoffs = [float(episode.earned.mean()) for episode in pair]
        names = (f"{side.run.id}/episode/{e.row.id}" for side, e in zip(sides, pair, strict=True))
        query = urlencode(dict(zip("ab", names, strict=True)))
        lines.append(PairLine(pair, payoffs, beside.parted(pair), query))
    grid: ResultTable | None = None
    try:
        grid, why = tested(files[0], files[1]).grid(), ""
    except LLMGamesError as error:
        why = str(error)
    settings = settings_table(files, ["A", "B"], differ=True)
    page = {"pairs": lines, "unlisted": len(pairs) - len(lines), "grid": grid, "why": why}
    return page | {"settings": settings}


def _episodes(sides: Sequence[Side], files: Sequence[Records]) -> dict[str, Any]:
    pair = _pair(files[0], files[1], sides[0].numbers[0])
    if pair is None or pair.b.row.id != sides[1].numbers[0]:
        raise BadComparison(
            "these episodes are not from the same seed: they differ in label, number, seed or "
            "seating; compare their runs to see which episodes are"
        )
    moves, cells = [], 0
    for compared in beside.moves(pair):
        moves.append(compared)
        if (cells := cells + len(compared.seats)) >= CELLS:
            break
    return {
        "pair": pair,
        "moves": moves,
        "parted": beside.parted(pair),
        "unlisted": max(len(episode.steps) for episode in pair) - len(moves),
        "payoffs": [episode.earned.tolist() for episode in pair],
    }


def _decisions(sides: Sequence[Side], files: Sequence[Records]) -> dict[str, Any]:
    pages = []
    for side, file in zip(sides, files, strict=True):
        number, step, seat = side.numbers
        pages.append(decision_page.page(file, number, step, seat, f"/run/{side.run.id}"))
    return {"decisions": pages, "same": pages[0].twin_key == pages[1].twin_key}
