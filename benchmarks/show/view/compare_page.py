"""Two runs, two episodes or two decisions side by side, best from the same seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple
from urllib.parse import urlencode

from llm_games.benchmarks.judge import beside
from llm_games.benchmarks.judge.beside import ComparedMove, Pair
from llm_games.benchmarks.judge.compare import compare as tested
from llm_games.benchmarks.judge.result_table import ResultTable
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.show.view import decision_page
from llm_games.benchmarks.show.view.list_page import move
from llm_games.benchmarks.show.view.run_shelf import RunFile, RunShelf
from llm_games.errors import BadParameter, LLMGamesError

KINDS = "run", "episode", "decision"
PAIRS = 100
"""Episodes of two runs that are listed."""
CELLS = 1000
"""Moves of two episodes on a page, about."""


class BadComparison(BadParameter):
    """Two things cannot be set side by side; the message says what can."""


class Side(NamedTuple):
    """What is to be compared: a run, or an episode or a decision of it by its numbers."""

    run: RunFile
    kind: str
    numbers: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """What stands for it in a query."""
        more = [self.kind, *map(str, self.numbers)] if self.numbers else []
        return "/".join([self.run.id, *more])

    @property
    def address(self) -> str:
        """Its own page."""
        return f"/run/{self.name}"


def side(shelf: RunShelf, text: str) -> Side:
    """Read ``RUN``, ``RUN/episode/E`` or ``RUN/decision/E/STEP/SEAT``.

    Raises:
        NoSuchRun: the shelf has none of this id.
        BadComparison: it is none of these.
    """
    name, *parts = text.split("/")
    run = shelf.run(name)
    if not parts:
        return Side(run, "run")
    kind, *numbers = parts
    if (kind, len(numbers)) in (("episode", 1), ("decision", 3)) and all(
        number.isascii() and number.isdigit() and len(number) < 10 for number in numbers
    ):
        return Side(run, kind, tuple(map(int, numbers)))
    raise BadComparison(
        f"{text[:80]!r} is nothing to compare: give RUN, RUN/episode/EPISODE or "
        "RUN/decision/EPISODE/STEP/SEAT"
    )


def compare(shelf: RunShelf, names: Sequence[str]) -> dict[str, Any]:
    """Return what the page of a comparison shows: of one thing what it can be compared with.

    Raises:
        BadComparison: more than two, none, or two of different kinds.
        StoreError: a file cannot be read, or has no such episode or decision.
    """
    if not 1 <= len(names) <= 2:
        raise BadComparison(
            f"two things can be compared, got {len(names)}: mark two rows, or give a and b"
        )
    sides = [side(shelf, name) for name in names]
    if len({one.kind for one in sides}) > 1:
        kinds = " and ".join(one.kind for one in sides)
        raise BadComparison(f"{kinds} cannot stand side by side; give two of a kind")
    with ExitStack() as opened:
        files = [opened.enter_context(one.run.records()) for one in sides]
        base = {"crumbs": [], "live": "", "sides": sides, "kind": sides[0].kind, "move": move}
        base |= {"titles": [file.title for file in files]}
        if len(sides) == 1:
            found = list(twins(shelf, sides[0], files[0]))
            return {**base, "title": "Compare", "twins": found, "one": True}
        make = {"run": _runs, "episode": _episodes, "decision": _decisions}[sides[0].kind]
        shown = {"title": f"Two {sides[0].kind}s", "one": False}
        return {**base, **shown, **make(sides, files)}


# -- what there is to compare with -----------------------------------------------------------------


def twins(shelf: RunShelf, mine: Side, file: Records) -> Iterator[tuple[str, str, str]]:
    """Yield title, file and query of what other runs of the shelf have from the same seed."""
    for run in shelf.runs():
        if run.id == mine.run.id:
            continue
        try:
            with run.records() as other:
                found = _twin(mine, file, other)
                title = other.title
        except LLMGamesError:  # no run, or gone; the list of runs says which
            continue
        if found is not None:
            b = Side(run, mine.kind, found).name
            yield title, run.path.name, urlencode({"a": mine.name, "b": b})


def _twin(mine: Side, file: Records, other: Records) -> tuple[int, ...] | None:
    """Return the numbers of the same thing in another run; None if that has none."""
    if mine.kind == "run":
        return () if next(beside.pairs(file, other), None) else None
    pair = _pair(file, other, mine.numbers[0])
    if pair is None:
        return None
    if mine.kind == "episode":
        return (pair.b.row.id,)
    _, step, seat = mine.numbers
    for found in beside.moves(pair):
        for both in found.seats:
            if both.seat == seat and both.a and both.a.step == step:
                return (pair.b.row.id, both.b.step, seat) if both.b else None
    return None


def _pair(a: Records, b: Records, episode: int) -> Pair | None:
    return next((pair for pair in beside.pairs(a, b) if pair.a.row.id == episode), None)


# -- side by side ----------------------------------------------------------------------------------


class PairLine(NamedTuple):
    """An episode of both runs: payoffs are means over seats; `parted` is None for all the same."""

    pair: Pair
    payoffs: tuple[float, float]
    parted: ComparedMove | None
    query: str


def _runs(sides: Sequence[Side], files: Sequence[Records]) -> dict[str, Any]:
    lines, many = [], 0
    for pair in beside.pairs(files[0], files[1]):
        many += 1
        if many <= PAIRS:
            paid = [float(one.rewards.sum(axis=0).mean()) for one in pair]
            names = [
                Side(one.run, "episode", (episode.row.id,)).name
                for one, episode in zip(sides, pair, strict=True)
            ]
            query = urlencode(dict(zip("ab", names, strict=True)))
            lines.append(PairLine(pair, (paid[0], paid[1]), beside.parted(pair), query))
    grid: ResultTable | None = None
    try:
        grid, why = tested(files[0], files[1]).grid(), ""
    except LLMGamesError as error:
        why = str(error)
    return {"pairs": lines, "more": many - len(lines), "grid": grid, "why": why}


def _episodes(sides: Sequence[Side], files: Sequence[Records]) -> dict[str, Any]:
    pair = _pair(files[0], files[1], sides[0].numbers[0])
    if pair is None or pair.b.row.id != sides[1].numbers[0]:
        raise BadComparison(
            "these episodes are not from the same seed: they differ in label, number, seed or "
            "seating; compare their runs to see which episodes are"
        )
    found, cells = [], 0
    for one in beside.moves(pair):
        found.append(one)
        cells += len(one.seats)
        if cells >= CELLS:
            break
    parted = beside.parted(pair)
    more = max(len(episode.steps) for episode in pair) - len(found)
    names = pair.a.rules.names()
    paid = [one.rewards.sum(axis=0).tolist() for one in pair]
    about = {"pair": pair, "moves": found, "parted": parted, "more": more}
    return about | {"names": names, "paid": paid, "players": [one.seats for one in pair]}


def _decisions(sides: Sequence[Side], files: Sequence[Records]) -> dict[str, Any]:
    found = []
    for one, file in zip(sides, files, strict=True):
        number, step, seat = one.numbers
        found.append(decision_page.page(file, number, step, seat, f"/run/{one.run.id}"))
    return {"decisions": found, "same": found[0].place == found[1].place}
