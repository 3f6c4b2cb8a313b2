"""Does a player do it every time, and where does what it gets vary from? Of recorded runs.

A game of a run, at one setting, is a task; its finished episodes are the task's runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.judge import intervals, variance
from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.judge.paper import editions
from llm_games.benchmarks.judge.result_table import ResultTable, Value, columns
from llm_games.benchmarks.judge.results import score_by, series
from llm_games.benchmarks.judge.success import Success
from llm_games.benchmarks.record.recorded_games import RecordedGame
from llm_games.errors import BadParameter, unknown
from llm_games.rulebook import Array

MOST = 5  # values of k that are shown unless one is asked for
PASSED = (
    "pass^k: how probably all of k runs of a task succeed, mean over the tasks, by its unbiased "
    "estimator, from 2k runs of each task on; the interval is of these tasks."
)
SPLIT = (
    "Variance of one run by its sources, by the method of moments; the standard deviation of each "
    "with its 95 % interval by chi-square, as if it were seen without other noise. A description, "
    "no test: with few levels it is rough."
)


class Task(NamedTuple):
    """One game of a run as a task of one player or of ``all``; `chance` is alike where shared."""

    label: str
    player: str
    success: Success
    passed: int
    runs: int
    chance: int


def tasks(games: Sequence[RecordedGame], success: str | None, edition: str) -> list[Task]:
    """Tasks of games that say what success is, or of all if `success` does; raises as `Success`."""
    task_list = []
    for game in games:
        if (text := success or game.planned.get("success")) and len(game.done):
            wanted = Success.of(text)
            for player, passed in wanted.passed(game, edition).items():
                came = sum(passed), len(passed), game.rows[0].seed
                task_list.append(Task(game.label, player, wanted, *came))
    return task_list


def task_grid(task_list: Sequence[Task]) -> ResultTable:
    """Return a row for each task: how many of its runs succeeded, and the share."""
    rows: list[list[Value]] = []
    for task in task_list:
        interval = intervals.share(task.passed, task.runs)
        share = MeanCell(task.passed / task.runs, None, task.runs, interval)
        rows.append([task.label, task.player, str(task.success), task.passed, task.runs, share])
    heads = columns("task, player, success", "passed, runs", "d") | {"share": ".2f"}
    return ResultTable(heads, rows, "Tasks", "tasks")


def pass_grid(task_list: Sequence[Task], k: int | None = None) -> ResultTable:
    """Return pass^k by player, for `k` or up to `MOST`; BadParameter: too few tasks or runs."""
    rows: list[list[Value]] = []
    lacking: dict[str, BadParameter] = {}
    for player in dict.fromkeys(task.player for task in task_list):
        player_tasks = [task for task in task_list if task.player == player]
        passed, runs = [task.passed for task in player_tasks], [task.runs for task in player_tasks]
        apart = len({task.chance for task in player_tasks}) == len(player_tasks)
        limit = max(1, min(MOST, min(runs) // 2))
        try:
            for each in range(1, limit + 1) if k is None else [k]:
                all_ = variance.pass_k(passed, runs, each, independent=apart)
                cell = MeanCell(all_.value, None, min(runs), all_.interval)
                rows.append([player, each, all_.tasks, cell])
        except BadParameter as error:
            lacking[player] = error
    if lacking and (k is not None or not rows):
        raise next(iter(lacking.values()))
    heads = columns("player", "k, tasks", "d") | {"pass^k": ".3f"}
    note = " ".join([PASSED, *(f"{player}: {error}." for player, error in lacking.items())])
    return ResultTable(heads, rows, "All of k runs", "pass_k", note)


class Split(NamedTuple):
    """How a number of one game splits into its sources."""

    label: str
    of: str
    parts: list[variance.VarianceShare]


def splits(games: Sequence[RecordedGame], edition: str) -> list[Split]:
    """Return the splits that the design of some games allows.

    The payoff of a seat and the score of a game are split by chance (the episodes), by seat, where
    one player has all of them, and by what ``vary`` changes, where all its settings met the same
    chance; each with at least `LEVELS` levels, or it is held fixed. Games that are the same in all
    of this repeat the same chance, and tell sampling apart.
    """
    designs: dict[Any, dict[str, list[RecordedGame]]] = {}
    for game in games:
        seeds = tuple(row.seed for row in game.done.rows)
        alike = (game.name, str(game.params), tuple(game.seats), seeds, _set_up(game))
        if len(seeds) >= variance.LEVELS:
            designs.setdefault(alike, {}).setdefault(str(game.change), []).append(game)
    return [split for design in designs.values() for split in _splits(design, edition)]


def _set_up(game: RecordedGame) -> str:
    seats = [
        {k: v for part in ("client", "settings") for k, v in seat[part].items()}
        | {"player": seat["player"]}
        for seat in game.planned.get("seats", ())
    ]
    same = [{k: seat[k] for k in sorted(seat.keys() - game.change.keys())} for seat in seats]
    return str([same, *(game.planned.get(name) for name in ("order", "series", "given"))])


def _splits(design: Mapping[str, list[RecordedGame]], edition: str) -> Iterator[Split]:
    settings = list(design.values())
    keys = {key for repeats in settings for key in repeats[0].change}
    even = len({len(repeats) for repeats in settings}) == 1
    if len(settings) >= variance.LEVELS and len(keys) == 1 and even:
        name = "wording" if keys == {"prompts"} else keys.pop()
        yield from _split(settings[0][0].name, [name], settings, edition)
    else:
        for repeats in settings:
            yield from _split(repeats[0].label, [], [repeats], edition)


def _split(
    label: str, varied: list[str], settings: Sequence[Sequence[RecordedGame]], edition: str
) -> Iterator[Split]:
    """Yield the splits of games ``(settings, repeats)``; each has values ``(chance, seats)``."""
    repeats, same = len(settings[0]), len(set(settings[0][0].seats)) == 1
    axes = [*varied, "seat", "chance", variance.SAMPLING]
    for of, values in (("payoff of a seat", _payoffs), ("score", _scores)):
        table = np.array([[values(game, edition) for game in repeated] for repeated in settings])
        table = np.moveaxis(table, (3, 2, 1), (1, 2, 3))  # settings, seats, chance, repeats
        names = axes
        if not same or table.shape[1] < variance.LEVELS:
            table, names = table.mean(axis=1), [name for name in axes if name != "seat"]
        if not varied:
            table = table[0]
        if repeats == 1:
            table, names = table[..., 0], names[:-1]
        if len(names) - (repeats > 1) >= 2 and np.isfinite(table).all():
            yield Split(label, of, variance.variance_parts(table, names))


def _payoffs(game: RecordedGame, edition: str) -> Array:
    _scores(game, edition)  # with which all else that is told of an episode is read at once
    return np.array([episode.earned for episode in game.done])


def _scores(game: RecordedGame, edition: str) -> Array:
    return np.array(series(game, score_by(edition)).numbers)[:, None]


def split_grid(split_list: Sequence[Split]) -> ResultTable:
    """Return a row for each source of each split."""
    rows: list[list[Value]] = []
    for label, of, parts in split_list:
        for part in parts:
            ends = f"{part.low:.2f} to {part.high:.2f}" if part.sd else None
            levels = None if part.name.startswith("rest") else part.levels
            rows.append([label, of, part.name, levels, part.share, part.sd, ends])
    heads = columns("task, of, source", "levels", "d") | {"share": ".0%", "sd": ".2f"}
    heads |= {"sd, 95 %": ">"}
    return ResultTable(heads, rows, "Where the variance comes from", "variance", SPLIT)


def reliability(
    games: Sequence[RecordedGame], edition: str, success: str | None = None, k: int | None = None
) -> list[ResultTable]:
    """Return the tables of what is known of the reliability of some games; none without any.

    Without `k`, a table says why there is no pass^k. Raises BadParameter: `k` is too large, nothing
    says what success is, or as `tasks`; UnknownName: no such edition, or as `tasks`.
    """
    if edition not in editions():
        raise unknown("edition", edition, editions())
    task_list, parts = tasks(games, success, edition), splits(games, edition)
    if k is not None and not task_list:
        raise BadParameter(
            "nothing says what success is: give it as 'score >= 80', or write success = "
            "'score >= 80' in the run's file"
        )
    grids = [task_grid(task_list)] if task_list else []
    try:
        grids += [pass_grid(task_list, k)] if task_list else []
    except BadParameter as error:
        if k is not None:
            raise
        grids.append(ResultTable({}, [], "All of k runs", note=f"There is no pass^k: {error}."))
    return [*grids, *([split_grid(parts)] if parts else [])]
