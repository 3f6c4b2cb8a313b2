"""The pages of the shelf, of a run and of one of its games: what each shows, by its template."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from llm_games.benchmarks.judge.paper import only_owner
from llm_games.benchmarks.judge.result_table import ResultTable, columns
from llm_games.benchmarks.judge.results import run_results, total
from llm_games.benchmarks.record.database import StoreError
from llm_games.benchmarks.record.editions import check_editions
from llm_games.benchmarks.record.progress import GameProgress, RunProgress, run_progress
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games as read_games
from llm_games.benchmarks.record.recorded_games import seconds as lasting
from llm_games.benchmarks.record.rows import EpisodeRow
from llm_games.benchmarks.record.spending import unsure
from llm_games.benchmarks.show.page.report_page import body as report_body
from llm_games.benchmarks.show.tables import run_tables
from llm_games.benchmarks.show.view.curve import Curve, curve
from llm_games.benchmarks.show.view.decision_index import ListedDecision
from llm_games.benchmarks.show.view.render import counted, seconds
from llm_games.benchmarks.show.view.run_shelf import RunFile, RunShelf
from llm_games.errors import LLMGamesError, unknown
from llm_games.registry import game_class

EPISODES = 500
"""Episodes that are listed on a game's page."""


class CachedRun:
    """What takes long to work out of a run, by the run and its name.

    It is worked out again when its key is another one, but while a run is live not at once: what
    took a second is kept for twenty.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[Any, Any, float]] = {}
        self._locks: dict[tuple[str, str], Lock] = {}

    def get(self, run: str, name: str, key: Any, make: Callable[[], Any]) -> Any:
        """Return it, kept or made now; whoever else asks meanwhile waits for it."""
        with self._locks.setdefault((run, name), Lock()):
            had, value, until = self._found.get((run, name), (None, None, 0.0))
            if had == key or time.monotonic() < until:
                return value
            began = time.monotonic()
            value = make()
            until = time.monotonic() + PATIENCE * (time.monotonic() - began)
            self._found[run, name] = key, value, until
            return value


KEPT = CachedRun()
PATIENCE = 20
"""How long what was worked out is kept, in the time that it took."""


class ListedRun(NamedTuple):
    """A run in the list of all; `why` says why a file has no `progress`.

    `read` decisions of it had been read before.
    """

    id: str
    path: Path
    progress: RunProgress | None
    why: str
    read: int = 0


def runs(shelf: RunShelf) -> dict[str, Any]:
    """Return what the list of runs shows, with files that are none and why."""
    now = f"/live?after={shelf.number()}"
    listed = [_listed(run) for run in shelf.runs()]
    return {
        "title": "Runs",
        "crumbs": None,
        "live": now,
        "runs": [run for run in listed if run.progress],
        "problems": [run for run in listed if run.why],
        "where": ", ".join(map(str, shelf.paths)),
    }


def _listed(run: RunFile) -> ListedRun:
    try:
        with run.records() as records:
            return ListedRun(run.id, run.path, run_progress(records), "")
    except StoreError as error:
        return ListedRun(run.id, run.path, None, str(error), len(run.decisions))


def live(run: RunFile) -> str:
    """Return where a page hears that there is more of a run than there was when it was made."""
    return f"/live?run={run.id}&after={run.number}"


# -- one run ---------------------------------------------------------------------------------------


class GameLine(NamedTuple):
    """A game in a run's table; `worst` is its decision of the largest regret, if any has one."""

    progress: GameProgress
    decisions: int
    broke: int
    worst: ListedDecision | None


def run(run: RunFile) -> dict[str, Any]:
    """Return what the page of a run shows, but for its scores, which take longer.

    Raises:
        StoreError: the file cannot be read.
    """
    now = live(run)
    with run.records() as records:
        found = run_progress(records)
        warned = [*warnings(found, run.path), *_changed(records)]
    return {
        "title": found.title,
        "crumbs": [],
        "live": now,
        "base": f"/run/{run.id}",
        "progress": found,
        "facts": facts(found, run.path),
        "warnings": warned,
        "lines": list(_lines(run, found.games)),
        "outcomes": outcomes(run),
        "spent": spent_grid(found),
        "complete": run.decisions.complete,
        "read": len(run.decisions),
        "query": link,
    }


def _lines(run: RunFile, games: Sequence[GameProgress]) -> Iterator[GameLine]:
    columns, names = run.decisions.columns(), run.decisions.reading.names.lists["game"]
    for game in games:
        label = game.game.label
        mine = np.flatnonzero(columns["game"] == (names.index(label) if label in names else -1))
        regret = np.nan_to_num(columns["regret"][mine], nan=0.0)
        broke = int(columns["broke"][mine].sum())
        worst = None
        if len(mine) and regret.max() > 0:
            worst = run.decisions.find(columns["key"][mine[regret.argmax()]])
        yield GameLine(game, len(mine), broke, worst)


def outcomes(run: RunFile) -> list[tuple[str, int]]:
    """Return how decisions were read, and how many each way, the most frequent first."""
    counts = Counter[int](run.decisions.columns()["outcome"].tolist())
    names = run.decisions.reading.names.lists["outcome"]
    return [(names[code], many) for code, many in counts.most_common()]


def link(**where: Any) -> str:
    """Return a query of decisions."""
    return urlencode(where, doseq=True)


def facts(found: RunProgress, path: Path) -> list[tuple[str, str]]:
    """Return what a run is, in pairs of a name and its value."""
    made = found.created[:19].replace("T", " ")
    told = [
        ("file", path.name),
        ("begun", f"{made} UTC"),
        ("llm-games", found.package),
        ("seed", str(found.config.get("seed", "–"))),
        ("players", ", ".join(found.players)),
    ]
    took = lasting([row for game in found.games for row in game.episodes])
    return [*told, *([("played for", seconds(took))] if took is not None else [])]


def warnings(found: RunProgress, path: Path) -> Iterator[str]:
    """Say what is not as it should be."""
    if found.state == "stopped":
        left = counted(found.episodes - found.ended, "episode is", "episodes are")
        yield f"{left} left, and nobody plays them; go on with: llm-games resume {path.name}"
    void = [row for game in found.games for row in game.episodes if row.status == "void"]
    if void:
        reasons = sorted({row.reason or "no reason given" for row in void})
        yield f"{counted(len(void), 'void episode')} without a score: {'; '.join(reasons)}"


def _changed(records: Records) -> Iterator[str]:
    """Say what has changed since a run was made, so that it is shown but not played again."""
    try:
        check_editions(records)
    except LLMGamesError as error:
        yield str(error)


def spent_grid(found: RunProgress) -> ResultTable:
    """Return what was spent on each model, and in all if there are several."""
    heads = columns("model", "calls, failed, tokens in, cached, written, tokens out, thoughts", ",")
    heads |= {"waited": ">"} | ({"money": ".4f"} if found.priced else {})
    models = dict(found.spent.models)
    parts = [*models.items(), *([("all", found.spent.total)] if len(models) > 1 else [])]
    rows = []
    for name, usage in parts:
        tokens_in = usage.tokens_in, usage.tokens_cached, usage.tokens_written
        tokens = *tokens_in, usage.tokens_out, usage.tokens_reasoning
        row = [name, usage.calls, usage.failures, *tokens, seconds(usage.seconds)]
        rows.append([*row, *([float(usage.money)] if found.priced else [])])
    return ResultTable(heads, rows, note=unsure(found.spent.total))


def scores(run: RunFile) -> dict[str, Any]:
    """Return the part of a run's page with its scores and payoffs, as a terminal shows them.

    Raises:
        StoreError: the file cannot be read.
    """
    with run.records() as records:
        found, why = run_progress(records), ""
        try:
            grids = KEPT.get(run.id, "scores", found.key, partial(_tables, records))
        except Exception as error:  # such as of a paper's score; the record stands, and is shown
            grids, why = [], f"The scores cannot be worked out: {type(error).__name__}: {error}"
    labels = [game.game.label for game in found.games]
    return {
        **_below(run, found, "Scores"),
        "grids": grids,
        "links": {label: f"/run/{run.id}/game?{link(label=label)}" for label in labels},
        "why": why,
    }


def _tables(records: Records) -> list[ResultTable]:
    played = read_games(records)
    paper = only_owner(played)
    games = [] if paper and paper.whole else run_results(records)
    return list(run_tables(games, total(games), paper.tables(played) if paper else ()))


def report(run: RunFile, whole: bool) -> dict[str, Any]:
    """Return the page of a run's report; `whole`: with the report itself, which takes seconds.

    Raises:
        StoreError: the file cannot be read.
    """
    text = None
    with run.records() as records:
        found = run_progress(records)
        if whole:
            make = partial(report_body, records, links=f"/run/{run.id}/")
            text = KEPT.get(run.id, "report", found.key, make)
    return {**_below(run, found, "Report"), "text": text, "again": f"/run/{run.id}/report?whole=1"}


def _below(run: RunFile, found: RunProgress, title: str) -> dict[str, Any]:
    """Return what the top of a page of a run needs."""
    return {"title": title, "crumbs": [(found.title, f"/run/{run.id}")], "live": ""}


# -- one game --------------------------------------------------------------------------------------


def game(run: RunFile, label: str) -> dict[str, Any]:
    """Return what the page of one game of a run shows.

    Raises:
        StoreError: the file cannot be read.
        UnknownName: the run has no game of this label.
    """
    now = live(run)
    with run.records() as records:
        found = run_progress(records)
    mine = found.named(label)
    if mine is None:
        raise unknown("game of this run", label, [game.game.label for game in found.games])
    row = mine.game
    others = [g.game.label for g in found.games if g.game.game == row.game and g is not mine]
    base = f"/run/{run.id}"
    return {
        "title": label,
        "crumbs": [(found.title, base)],
        "live": now,
        "base": base,
        "label": label,
        "progress": mine,
        "about": _about(row.game),
        "facts": _facts(mine),
        "others": others,
        "curves": list(curves(run, label)),
        "episodes": episode_lines(run, mine.episodes[:EPISODES]),
        "cut": max(0, len(mine.episodes) - EPISODES),
        "query": link,
    }


class EpisodeLine(NamedTuple):
    """An episode in a game's table; `regret` is the mean of its decisions, NaN for none."""

    row: EpisodeRow
    seats: str
    decisions: int
    regret: float


def episode_lines(run: RunFile, episodes: Sequence[EpisodeRow]) -> list[EpisodeLine]:
    """Count the decisions of each episode that have been read, and average their regret."""
    counts, means = run.decisions.by_episode(max((row.id for row in episodes), default=0) + 1)
    return [
        EpisodeLine(row, _short(row.seats), int(counts[row.id]), float(means[row.id]))
        for row in episodes
    ]


def _short(seats: Sequence[str], most: int = 8) -> str:
    more = len(seats) - most
    return ", ".join(seats[:most]) + (f" and {more} more" if more > 0 else "")


def _about(name: str) -> str:
    """Return a game's title and where it comes from; its name where it is not known here."""
    try:
        rules: Any = game_class(name)
    except LLMGamesError:
        return name
    return f"{rules.title} ({rules.source})"


def _facts(mine: GameProgress) -> list[tuple[str, str]]:
    seats = mine.game.seats
    sat = ", ".join(f"{seats.count(name)} × {name}" for name in dict.fromkeys(seats))
    given = ", ".join(f"{name} = {value}" for name, value in mine.game.params.items())
    return [("game", mine.game.game), ("seats", sat), ("parameters", given or "as they are")]


def curves(run: RunFile, label: str) -> Iterator[Curve]:
    """Yield what players did over the rounds, as far as it has been read."""
    held, names = run.decisions.columns(), run.decisions.reading.names.lists
    for what in ("regret", "payoff"):
        found = curve(held, names, label, what)
        if found is not None:
            yield found
