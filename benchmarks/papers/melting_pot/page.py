"""Scenarios: scores of the players in the focal seats among held-out partners."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.means import FREE, MeanCell, paid
from llm_games.benchmarks.judge.paper import Measure, Paper, Section
from llm_games.benchmarks.judge.result_table import Label, ResultTable, Value, columns
from llm_games.benchmarks.judge.results import measured_by, series
from llm_games.benchmarks.judge.scenario_scores import BACKGROUND, focal, is_scenario, scale, scored
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame, Run

NOTE = (
    "Payoffs are those of a focal seat, means over the focal seats and then over the episodes, "
    "which are the units of the intervals. A score is 0 for what the player random comes to in all "
    "focal seats, and 1 for what the best of the rule players does there; both are means over "
    "games of their own, the same for every run, and taken as exact. A score may lie beyond 0 and "
    "1. Melting Pot (Agapiou et al., arXiv 2211.13746) has the protocol."
)


def of(episode: RecordedEpisode) -> float | None:
    return scored(episode.payoffs, episode.planned)


def mean_over(scores: Sequence[Sequence[float]]) -> MeanCell | None:
    """Return the mean over scenarios of their means over episodes, which are independent."""
    if not scores or not all(scores):
        return None
    mean = float(np.mean([np.mean(column) for column in scores]))
    runs = min(map(len, scores))
    return MeanCell(mean, None, runs, intervals.overall(scores, *FREE))


MEASURE = Measure(
    "focal score",
    "0 is what random comes to in the focal seats of a scenario, 1 what the best rule player does",
    "higher",
    of,
    ".2f",
    overall=mean_over,
)


def table(games: Sequence[RecordedGame]) -> ResultTable:
    """Return a row for each scenario, and the means by game and over all."""
    by_game: dict[str, list[Sequence[float]]] = {}
    notes = [NOTE]
    for game in games:
        if why := scale(game.planned).why:
            notes.append(f"{game.label} has no scale: {why}.")
        elif scores := series(game, measured_by(MEASURE)).known:
            by_game.setdefault(game.name, []).append(scores)
    several = {name: columns for name, columns in by_game.items() if len(columns) > 1}
    means = {name: mean_over(columns) for name, columns in several.items()}
    if len(by_game) > 1:
        means["all"] = mean_over([*chain(*by_game.values())])
    foot = [[f"mean, {name}", *[""] * 5, mean] for name, mean in means.items()]
    heads = columns("scenario, focal seats", "payoff, random, best", ".2f")
    heads |= {"by": "", MEASURE.name: ".2f"}
    rows = [_row(game) for game in games]
    title, strong = "Scores by scenario", [MEASURE.name]
    return ResultTable(heads, rows, title, "scenarios", " ".join(notes), foot, strong=strong)


def sections(run: Run) -> list[Section]:
    return [Section("Scenarios: held-out partners", grids=[table(run.games)])]


def _row(game: RecordedGame) -> Sequence[Value]:
    names = [seat["name"] for seat in game.planned["seats"]]
    focal_seats, ends = focal(names), scale(game.planned)
    others = dict.fromkeys(n.removeprefix(BACKGROUND) for n in names if n.startswith(BACKGROUND))
    players = ", ".join(dict.fromkeys(names[index] for index in focal_seats))
    earned = [float(episode.payoffs[focal_seats].mean()) for episode in game.done]
    return [
        Label(game.label, f"among {', '.join(others)}"),
        f"{len(focal_seats)} × {players}",
        paid(earned, game.rules.core.payable),
        *([None, None, None] if ends.why else [ends.random, ends.best, ends.best_player]),
        None if ends.why else series(game, measured_by(MEASURE)).mean,
    ]


PAPER = Paper(
    "Scenarios",
    lambda game: is_scenario(game.planned),
    sections,
    measure=MEASURE,
    first=True,
    tables=lambda games: [table(games)],
)
