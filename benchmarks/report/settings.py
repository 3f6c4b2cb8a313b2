"""Experiments: games that a run plays at several settings, and play against fixed strategies."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np

from llm_games.benchmarks.papers.gamma_bench.published import gpt35
from llm_games.benchmarks.papers.gamma_bench.scores import GAMES, cell, shown
from llm_games.benchmarks.report.data import Run, Table
from llm_games.benchmarks.report.figures import ACTIONS, Plot, against_settings, seats_mean
from llm_games.benchmarks.report.tables import written

PRINTED = "v4"
"""Edition of the published single runs, by which one's own are set beside them."""


class Setting(NamedTuple):
    """One setting of a game: scores of the run's edition, by v4, and the published one.

    `kind` is what is varied.
    """

    name: str
    kind: str
    runs: int
    own: float | None
    comparable: float | None
    printed: float | None


class Experiment(NamedTuple):
    """One game at several settings; `summary` are mean ± standard deviation over them."""

    title: str
    rows: list[tuple[str, ...]]
    summary: tuple[str, ...]
    plot: Plot


class Matrix(NamedTuple):
    """Settings (rows) by games (columns, Overall last): one's own scores, and published ones."""

    columns: list[str]
    rows: list[tuple[str, list[tuple[str, str]]]]
    summary: list[tuple[str, str]]


def experiments(run: Run, prefix: str) -> list[Experiment]:
    """Return the games that are there at several settings and have a score."""
    found = []
    for i, (game, tables) in enumerate(run.by_game().items()):
        settings = [_setting(table, run.edition) for table in tables]
        if len(settings) > 1 and any(setting.own is not None for setting in settings):
            title = game.replace("_", " ")
            found.append(_experiment(title, settings, f"{prefix}-settings-{i}"))
    return found


def _setting(table: Table, edition: str) -> Setting:
    scores, comparable = table.scores(edition), table.scores(PRINTED)
    return Setting(
        table.setting,
        ", ".join(table.change),
        len(scores),
        cell(scores).mean if scores else None,
        cell(comparable).mean if comparable else None,
        gpt35(table.rules, table.change),
    )


def _experiment(title: str, settings: Sequence[Setting], prefix: str) -> Experiment:
    own = [s.own for s in settings]
    comparable, printed = [s.comparable for s in settings], [s.printed for s in settings]
    kinds, names = [s.kind for s in settings], [_short(s.name) for s in settings]
    return Experiment(
        title,
        [(s.name, str(s.runs), *map(shown, (s.own, s.comparable, s.printed))) for s in settings],
        ("mean ± std over settings", "", *map(spread, (own, comparable, printed))),
        against_settings(names, comparable, printed, kinds, prefix, title),
    )


def spread(values: Sequence[float | None]) -> str:
    """Write mean ± sample standard deviation; a dash if one is missing."""
    known = [value for value in values if value is not None]
    return written(cell(known)) if known and len(known) == len(values) else "–"


def _short(name: str) -> str:
    """Return what is left of a setting's name under a plot."""
    for word in ("ratio", "temperature", "prompts", "persona", "valuations to", "rates", "menu"):
        name = name.removeprefix(word).strip()
    return {"reasoning True": "reasoning"}.get(
        name, name.replace(" coins", "").replace(" golds", "")
    )


def matrix(run: Run) -> Matrix | None:
    """Return all games at each setting of the run's ``vary``; None if there is but one."""
    games = [game for game in GAMES if game in run.by_game()]
    found: dict[str, dict[str, Setting]] = {}
    for table in run.tables:
        if table.rules.name in games:
            name = ", ".join(f"{key} {value}" for key, value in table.change.items()) or "default"
            found.setdefault(name, {})[table.rules.name] = _setting(table, run.edition)
    if len(found) < 2 or any(list(row) != games for row in found.values()):
        return None
    values = {name: _with_overall(list(row.values())) for name, row in found.items()}
    columns = zip(*values.values(), strict=True)
    return Matrix(
        [game.replace("_", " ") for game in games] + ["Overall"],
        [(name, [(shown(a), shown(b)) for a, b in row]) for name, row in values.items()],
        [(spread([a for a, _ in column]), spread([b for _, b in column])) for column in columns],
    )


def _with_overall(row: Sequence[Setting]) -> list[tuple[float | None, float | None]]:
    pairs = [(setting.comparable, setting.printed) for setting in row]
    means = [
        None if len(row) < len(GAMES) or None in side else float(np.mean(side))
        for side in zip(*pairs, strict=True)
    ]
    return [*pairs, (means[0], means[1])]


class Others(NamedTuple):
    """The mean action of those who play against a fixed strategy, at some rounds."""

    label: str
    against: str
    what: str
    rounds: list[str]
    change: str


ROUNDS = (1, 5, 10, 15, 20)


def against_fixed(run: Run) -> list[Others]:
    """Return a row for each game in which some seats always do the same and others do not."""
    rows = []
    for table in run.tables:
        names = set(table.seats)
        fixed = {name for name in names if run.players[name].kind == "fixed"}
        if fixed and fixed != names and table.rules.name in ACTIONS and table.played:
            rows.append(_others(table, fixed))
    return rows


def _others(table: Table, fixed: Set[str]) -> Others:
    episodes = table.done or table.played[:1]
    others = ([seat for seat, n in enumerate(e.seats) if n not in fixed] for e in episodes)
    means = [seats_mean(e, seats) for e, seats in zip(episodes, others, strict=True)]
    mean = np.mean(means, axis=0)
    slope = np.polyfit(np.arange(len(mean)), mean, 1)[0] if len(mean) > 1 else 0.0
    return Others(
        table.label,
        " and ".join(sorted(fixed)),
        ACTIONS[table.rules.name],
        [shown(mean[r - 1]) if r <= len(mean) else "–" for r in ROUNDS],
        f"{slope:+.2f}",
    )
