"""The classics: how far each player's shares lie from people's, condition by condition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from llm_games.baselines.people_data import people
from llm_games.benchmarks.judge.beside_people import measure_rows, shown_beside
from llm_games.benchmarks.judge.paper import Paper, Section
from llm_games.benchmarks.judge.result_table import ResultTable, Value
from llm_games.benchmarks.record.recorded_games import RecordedGame, Run

NOTE = """\
The distance is the mean, over all shares that a study has and that the player has too, of how far \
the two lie apart; chance alone keeps it above 0 in few episodes. It ranks nobody: to be like \
people is not to play well."""


def sections(run: Run) -> list[Section]:
    rows = [row for game in run.games for row in _distances(game)]
    heads = {"game": "", "player": "", "shares": ",", "distance": ".1%", "study": ""}
    heads["condition"] = ""
    title, name = "Distance to people", "classics_distance"
    return [Section("The classics", grids=[ResultTable(heads, rows, title, name, NOTE)])]


def _distances(game: RecordedGame) -> Iterator[list[Value]]:
    """Yield a row for each player and study."""
    rows = [row for row in shown_beside(measure_rows(game)) if row.is_share]
    values = {(row.who, row.measure): row.value.mean for row in rows if not row.study}
    for study in dict.fromkeys((row.study, row.condition) for row in rows if row.study):
        figures = {r.measure: r.value.mean for r in rows if (r.study, r.condition) == study}
        for player in game.players:
            both = [name for name in figures if (player, name) in values]
            if both:
                apart = [abs(values[player, name] - figures[name]) for name in both]
                yield [game.label, player, len(both), float(np.mean(apart)), *study]


PAPER = Paper("The classics", lambda game: bool(people(game.full)), sections)
