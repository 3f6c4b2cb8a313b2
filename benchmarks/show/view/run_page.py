"""The pages of the shelf, of a run and of one of its games: what each shows, by its template."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.judge import type_tables
from llm_games.benchmarks.judge.branch_outcomes import branch_outcomes
from llm_games.benchmarks.judge.paper import only_owner
from llm_games.benchmarks.judge.result_table import ResultTable, columns
from llm_games.benchmarks.judge.results import run_results, total
from llm_games.benchmarks.record.connection import StoreError
from llm_games.benchmarks.record.editions import check_editions
from llm_games.benchmarks.record.progress import GameProgress, RunProgress, run_progress
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games as read_games
from llm_games.benchmarks.record.recorded_games import seconds as lasting
from llm_games.benchmarks.record.run_settings import (
    described_games,
    plain_changes,
    raw_settings,
    told_apart,
)
from llm_games.benchmarks.record.schema import EpisodeRow, GuestRow
from llm_games.benchmarks.record.spending import unsure
from llm_games.benchmarks.show.page.page_tables import SPENT, counts_of
from llm_games.benchmarks.show.page.report_page import body as report_body
from llm_games.benchmarks.show.tables import branch_table, run_tables, settings_table
from llm_games.benchmarks.show.view.curve import curve
from llm_games.benchmarks.show.view.decision_index import Decisions, ListedDecision
from llm_games.benchmarks.show.view.render import Context, counted, number, query, seconds
from llm_games.benchmarks.show.view.run_shelf import RunFile, RunShelf
from llm_games.errors import LLMGamesError, unknown
from llm_games.registry import game_class
from llm_games.rounds import Rounds

DEFAULT = "as they are"
QUIET, TELLING = 10.0, 5.0
"""Seconds without news after which a run waits, and after which a rest can be told."""
MOST_LISTED = 5
EPISODES = 500
"""Episodes that are listed on a game's page."""


class CachedRun:
    """Slow values by run and name, made again for another key, at most each 20 times their time."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], tuple[Any, Any, float]] = {}
        self._locks: dict[tuple[str, str], Lock] = {}

    def peek(self, run: str, name: str, key: Any) -> Any:
        """The cached value; None where there is none that holds."""
        had, value, until = self._entries.get((run, name), (None, None, 0.0))
        return value if had == key or time.monotonic() < until else None

    def get(self, run: str, name: str, key: Any, make: Callable[[], Any]) -> Any:
        """The cached value, or a new one; other callers meanwhile wait for it."""
        with self._locks.setdefault((run, name), Lock()):
            had, value, until = self._entries.get((run, name), (None, None, 0.0))
            if had == key or time.monotonic() < until:
                return value
            began = time.monotonic()
            value = make()
            until = time.monotonic() + PATIENCE * (time.monotonic() - began)
            self._entries[run, name] = key, value, until
            return value


CACHE = CachedRun()
PATIENCE = 20
"""How long a value is cached, in the time that it took."""


class ListedRun(NamedTuple):
    """A run in the list of all; `why` a file has no `progress`, and decisions `read` before."""

    id: str
    path: Path
    progress: RunProgress | None
    why: str = ""
    read: int = 0
    settings: Mapping[tuple[str, ...], Any] = {}
    score: str | None = ""  # None: it has not been worked out
    differing: Sequence[str] = ()  # settings in which it differs from others of its games

    @property
    def origins(self) -> list[str]:
        """What it is a branch of, if it is one."""
        games = described_games(self.progress.config) if self.progress else []
        points = [point for game in games if isinstance(point := game.get("branch"), Mapping)]
        names = "origin", "label", "number", "step"
        return ["{}, {}/{}/{}".format(*(p.get(name) for name in names)) for p in points]

    @property
    def models(self) -> list[str]:
        """Models whose names are not those of players."""
        if self.progress is None:
            return []
        return [name for name in self.progress.spent.models if name not in self.progress.players]

    def holds(self, words: Sequence[str]) -> bool:
        """Test whether what is listed of it holds all words; what is no run holds none."""
        if self.progress is None:
            return not words
        labels = [game.game.label for game in self.progress.games]
        parts = [self.progress.title, self.path.name, self.progress.state]
        parts += [*self.origins, *self.models, *self.differing]
        about = " ".join([*parts, *labels, *self.progress.players]).casefold()
        return all(word in about for word in words)


def runs(shelf: RunShelf, text: str = "") -> Context:
    """The list of runs, with files that are none and why; `text`: words that all hold of a run."""
    live_address = f"/live?after={shelf.number()}"
    every = _told_apart([_listed(run) for run in shelf.runs()])
    listed = [run for run in every if run.holds(text.casefold().split())]
    return {
        "text": text,
        "count": sum(run.progress is not None for run in every),
        "priced": any(run.progress and run.progress.priced for run in listed),
        "title": "Runs",
        "crumbs": None,
        "live": live_address,
        "runs": [run for run in listed if run.progress],
        "problems": [run for run in listed if run.why],
        "others": [] if text else shelf.others(),
        "where": ", ".join(map(str, shelf.paths)),
    }


def _listed(run: RunFile) -> ListedRun:
    try:
        with run.records() as records:
            progress = run_progress(records)
            described = progress.created, progress.episodes, str(progress.config.get("budget"))
            settings = CACHE.get(run.id, "settings", described, partial(raw_settings, records))
            score = CACHE.peek(run.id, "score", progress.key)
            return ListedRun(run.id, run.path, progress, settings=settings, score=score)
    except StoreError as error:
        return ListedRun(run.id, run.path, None, why=str(error), read=len(run.decisions))


def _told_apart(runs: Sequence[ListedRun]) -> list[ListedRun]:
    """Say of runs of the same games in which settings they differ."""
    alike: dict[tuple[str, ...], list[ListedRun]] = {}
    for run in runs:
        labels = tuple(game.game.label for game in run.progress.games) if run.progress else ()
        alike.setdefault(labels, []).append(run)
    differing = {
        run.id: settings
        for group in alike.values()
        for run, settings in zip(group, told_apart([r.settings for r in group]), strict=True)
    }
    return [run._replace(differing=differing[run.id]) for run in runs]


def score(run: RunFile) -> Context:
    """The score of a run in the list of all."""
    with run.records() as records:
        progress = run_progress(records)
        text = CACHE.get(run.id, "score", progress.key, partial(_score, records))
    return _below(run, progress, "Score") | {"id": run.id, "score": text}


def _score(records: Records) -> str:
    """The mean score over a run's games, or of its only one; a dash where none is defined."""
    try:
        games = run_results(records)
    except Exception:  # which the page of the run says
        return "–"
    overall = total(games)
    if overall is None and len(games) == 1:
        overall = games[0].cell or games[0].judged
    return "–" if overall is None else number(overall.mean, 1)


def live(run: RunFile) -> str:
    """Address of the socket that tells a page of news since now."""
    return f"/live?run={run.id}&after={run.number}"


# -- one run ---------------------------------------------------------------------------------------


class GameLine(NamedTuple):
    """A game in a run's table; `worst` is its decision of the largest regret, if any has one."""

    progress: GameProgress
    decisions: int
    broke: int
    worst: ListedDecision | None


def run(run: RunFile) -> Context:
    """The page of a run without its scores, which take longer."""
    live_address = live(run)
    with run.records() as records:
        progress = run_progress(records)
        warned = [*warnings(progress, run.path), *_changed(records)]
        guests, flights = records.guests(), records.in_flight()
        branches = [game for game in read_games(records) if game.planned.get("branch")]
        points = [_without_secrets(game.planned["branch"]) for game in branches]
        outcomes_of = [outcome for game in branches for outcome in branch_outcomes(game)]
    return {
        "title": progress.title,
        "crumbs": [],
        "live": live_address,
        "base": f"/run/{run.id}",
        "progress": progress,
        "facts": facts(progress, run.path, guests),
        "warnings": warned,
        "standing": standing(progress, run.decisions, time.time()),
        "waiting": [*waiting(progress, flights, time.time() - run.changed(), guests)],
        "points": points,
        "branched": branch_table(outcomes_of) if points else None,
        "lines": list(_lines(run.decisions, progress.games)),
        "outcomes": outcomes(run.decisions),
        "spent": spent_grid(progress),
        "decisions": run.decisions,
    }


def standing(progress: RunProgress, decisions: Decisions, seconds_now: float) -> list[str]:
    """How far a run is: decisions done of about how many, and what the rest will take.

    An episode that has not ended is taken to be as long as those of its game that have. Time is
    reckoned from episodes begun since the first that is still being played.
    """
    rows = [row for game in progress.games for row in game.episodes]
    counts, _ = decisions.by_episode(max((row.id for row in rows), default=0) + 1)
    expected = 0.0
    for game in progress.games:
        lengths = [int(counts[row.id]) for row in game.episodes if row.status in ("done", "void")]
        mean = sum(lengths) / len(lengths) if lengths else _longest(game)
        for row in game.episodes:
            has = int(counts[row.id])
            expected += has if row.status in ("done", "void") else max(mean, has)
    done, words = len(decisions), list[str]()
    if not math.isfinite(expected):
        return [f"{counted(done, 'decision')} of how many shows when each game has ended once"]
    words.append(f"{done:,} of about {counted(round(expected), 'decision')}")
    started = [row.started for row in rows if row.status == "running" and row.started]
    if progress.state == "live" and started and done < expected:
        since = min(started)
        recent = sum(int(counts[row.id]) for row in rows if (row.started or "") >= since)
        passed = seconds_now - datetime.fromisoformat(since).timestamp()
        if recent and passed > TELLING:
            words.append(f"about {seconds(passed * (expected - done) / recent)} left")
    money = float(progress.spent.total.money)
    if progress.priced and done:
        words.append(f"about {money * (expected - done) / done:,.4g} of money still to spend")
        if limit := (progress.config.get("budget") or {}).get("money"):
            words.append(f"{float(limit) - money:,.4g} of the budget left")
    return words


def _longest(game: GameProgress) -> float:
    """Decisions of an episode in which all seats act in each step; NaN where that is no rule."""
    try:
        rules = game.episodes[0].rules()
    except (LLMGamesError, IndexError):
        return math.nan
    length = rules.length() if isinstance(rules.core, Rounds) else None
    return rules.players * length if length else math.nan


def waiting(
    progress: RunProgress,
    flights: Mapping[tuple[str, str], int],
    still: float,
    guests: Sequence[GuestRow] = (),
) -> Iterator[str]:
    """What a live run waits for where nothing has come for `still` seconds, and why."""
    if progress.state != "live" or still < QUIET:
        return
    calls = [f"{model} for {seat or 'a greeting'}" for model, seat in flights]
    running = [row for game in progress.games for row in game.episodes if row.status == "running"]
    where = [f"{row.game.label}, episode {row.number}" for row in running]
    for listed in (calls, where):
        if len(listed) > MOST_LISTED:
            listed[MOST_LISTED:] = [f"{len(listed) - MOST_LISTED} more"]
    count = sum(flights.values())
    why = f"{counted(count, 'call')} not answered yet ({'; '.join(calls)})" if calls else ""
    failures = progress.spent.total.failures
    tries = f"{counted(failures, 'try', 'tries')} failed so far" if failures else ""
    links = f"; at links sit {', '.join(map(str, guests))}" if guests else ""
    reasons = ", ".join(filter(None, (why, tries))) or f"nobody asked a model{links}"
    yield f"nothing new for {seconds(still)} in {'; '.join(where) or 'any episode'}: {reasons}"


def _without_secrets(point: Mapping[str, Any]) -> dict[str, Any]:
    changes = {seat: plain_changes(of) for seat, of in point["changes"].items()}
    return {**point, "changes": changes}


def _lines(decisions: Decisions, games: Sequence[GameProgress]) -> Iterator[GameLine]:
    columns, codes = decisions.columns(), decisions.reading.codes["game"]
    for game in games:
        mine = np.flatnonzero(columns["game"] == codes.get(game.game.label, -1))
        regret, worst = np.nan_to_num(columns["regret"][mine], nan=0.0), None
        if regret.max(initial=0) > 0:
            worst = decisions.find(columns["key"][mine[regret.argmax()]])
        yield GameLine(game, len(mine), int(columns["broke"][mine].sum()), worst)


def outcomes(decisions: Decisions) -> list[tuple[str, int]]:
    """Counts of decisions, the most frequent outcome first."""
    counts = Counter[int](decisions.columns()["outcome"].tolist())
    names = decisions.reading.listed("outcome")
    return [(names[code], count) for code, count in counts.most_common()]


def facts(progress: RunProgress, path: Path, guests: Sequence[GuestRow]) -> list[tuple[str, str]]:
    duration = lasting([row for game in progress.games for row in game.episodes])
    return [
        ("file", path.name),
        ("begun", f"{progress.created[:19].replace('T', ' ')} UTC"),
        ("llm-games", progress.package),
        ("seed", str(progress.config.get("seed", "–"))),
        ("players", ", ".join(progress.players)),
        *([("guests", ", ".join(map(str, guests)))] if guests else []),
        *([("played for", seconds(duration))] if duration is not None else []),
    ]


def warnings(progress: RunProgress, path: Path) -> Iterator[str]:
    if progress.state == "stopped":
        unfinished = counted(progress.episodes - progress.ended, "episode is", "episodes are")
        yield f"{unfinished} left, and nobody plays them; go on with: llm-games resume {path.name}"
    if void := [row for game in progress.games for row in game.episodes if row.status == "void"]:
        reasons = sorted({row.reason or "no reason given" for row in void})
        yield f"{counted(len(void), 'void episode')} without a score: {'; '.join(reasons)}"


def _changed(records: Records) -> Iterator[str]:
    """Why a run can be shown but not played again."""
    try:
        check_editions(records)
    except LLMGamesError as error:
        yield str(error)


def spent_grid(progress: RunProgress) -> ResultTable:
    """By model, and in all if there are several."""
    heads = columns("model", SPENT, ",") | {"waited": ">"}
    heads |= {"money": ".4f"} if progress.priced else {}
    spent = list(progress.spent.models.items())
    spent += [("all", progress.spent.total)] if len(spent) > 1 else []
    rows = [
        [name, *counts_of(usage), seconds(usage.seconds), *[float(usage.money)] * progress.priced]
        for name, usage in spent
    ]
    return ResultTable(heads, rows, note=unsure(progress.spent.total))


def scores(run: RunFile) -> Context:
    """Scores and payoffs, as a terminal shows them."""
    with run.records() as records:
        progress, why = run_progress(records), ""
        try:
            grids = CACHE.get(run.id, "scores", progress.key, partial(_tables, records))
        except Exception as error:  # such as of a paper's score; the record stands, and is shown
            grids, why = [], f"The scores cannot be worked out: {type(error).__name__}: {error}"
    labels = [game.game.label for game in progress.games]
    links = {label: f"/run/{run.id}/game?{query(label=label)}" for label in labels}
    return _below(run, progress, "Scores") | {"grids": grids, "links": links, "why": why}


def _tables(records: Records) -> list[ResultTable]:
    played = read_games(records)
    paper = only_owner(played)
    games = [] if paper and paper.whole else run_results(records)
    return list(run_tables(games, total(games), paper.tables(played) if paper else ()))


def types(run: RunFile) -> Context:
    """Types behind the moves of players, as a terminal shows them, and each seat's."""
    with run.records() as records:
        progress, why = run_progress(records), ""
        try:
            grids = CACHE.get(run.id, "types", progress.key, partial(_type_grids, records))
        except Exception as error:  # the record stands, and is shown
            grids, why = [], f"Types cannot be worked out: {type(error).__name__}: {error}"
    return _below(run, progress, "Types") | {"grids": grids, "why": why}


def _type_grids(records: Records) -> list[ResultTable]:
    sections = type_tables.section(read_games(records))
    return [grid for section in sections for grid in section.grids]


def settings(run: RunFile) -> Context:
    """All settings of a run, of its games and of their seats."""
    with run.records() as records:
        progress = run_progress(records)
        grid = settings_table([records], ["value"], differ=False)
    return _below(run, progress, "Settings") | {"grid": grid}


def report(run: RunFile, whole: bool) -> Context:
    """With `whole` the report itself, which takes seconds."""
    text, base = None, f"/run/{run.id}/"
    with run.records() as records:
        progress = run_progress(records)
        if whole:
            make = partial(report_body, records, links=base)
            text = CACHE.get(run.id, "report", progress.key, make)
    return _below(run, progress, "Report") | {"text": text, "again": f"{base}report?whole=1"}


def _below(run: RunFile, progress: RunProgress, title: str) -> Context:
    return {"title": title, "crumbs": [(progress.title, f"/run/{run.id}")], "live": ""}


# -- one game --------------------------------------------------------------------------------------


def game(run: RunFile, label: str) -> Context:
    """The page of one game; UnknownName: the run has none of this label."""
    live_address = live(run)
    with run.records() as records:
        progress = run_progress(records)
    game = progress.named(label)
    if game is None:
        raise unknown("game of this run", label, [game.game.label for game in progress.games])
    row, seats = game.game, game.game.seats
    parameters = ", ".join(f"{name} = {value}" for name, value in row.params.items())
    seating = ", ".join(f"{seats.count(name)} × {name}" for name in dict.fromkeys(seats))
    columns, reading = run.decisions.columns(), run.decisions.reading
    names = {kind: reading.listed(kind) for kind in ("game", "player")}
    listed = game.episodes[:EPISODES]
    counts, means = run.decisions.by_episode(max((row.id for row in listed), default=0) + 1)
    figures = (curve(columns, names, label, column) for column in ("regret", "payoff"))
    return _below(run, progress, label) | {
        "live": live_address,
        "base": f"/run/{run.id}",
        "about": _about(row.game),
        "facts": [("game", row.game), ("seats", seating), ("parameters", parameters or DEFAULT)],
        "others": [
            g.game.label for g in progress.games if g.game.game == row.game and g is not game
        ],
        "curves": [figure for figure in figures if figure],
        "episodes": [EpisodeLine(e, int(counts[e.id]), float(means[e.id])) for e in listed],
        "cut": max(0, len(game.episodes) - EPISODES),
    }


class EpisodeLine(NamedTuple):
    """An episode in a game's table; `regret` is the mean of its decisions, NaN for none."""

    row: EpisodeRow
    decisions: int
    regret: float


def _about(name: str) -> str:
    """A game's title and source; its name where it is not known here."""
    try:
        rules: Any = game_class(name)
    except LLMGamesError:
        return name
    return f"{rules.title} ({rules.source})"
