"""What describes the play of a run's games, by player, and people's figures as rows of their own.

A game's `play_measures` are those of all observations of its finished episodes together, as
people's are; people have rows where the rules are theirs, and count in no mean, rank or interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.people_data import people
from llm_games.baselines.play_measures import PlayMeasure, observe, play_measures
from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.means import MeanCell, averaged, brief
from llm_games.benchmarks.judge.result_table import OWN, PUBLISHED, ResultTable
from llm_games.benchmarks.record.recorded_games import RecordedGame
from llm_games.errors import BadParameter, unknown

PEOPLE = "people"
NOTE = """\
Each value is of n observations together, those of all finished episodes; intervals take episodes \
as independent. Rows of people are figures of the study named, under the same rules: they are part \
of no mean, rank or interval."""


class MeasureRow(NamedTuple):
    """A measure of one player's play, or people's figure beside it, of `n` observations."""

    measure: str
    who: str
    value: MeanCell
    n: int | None
    ends: tuple[float, float]
    is_share: bool
    study: str = ""  # of people, and its condition
    condition: str = ""

    def plain(self) -> dict[str, Any]:
        named = {
            name: getattr(self, name) for name in ("measure", "who", "n", "study", "condition")
        }
        return named | self.value.plain()


def measure_rows(game: RecordedGame) -> list[MeasureRow]:
    """Return the rows of a game, worked out once; none of a branch, or where nothing is declared.

    A measure has a row for each player in whose seats something was seen, then people's.
    """
    if __name__ not in game.cache:
        game.cache[__name__] = [] if game.planned.get("branch") else list(_rows(game))
    rows: list[MeasureRow] = game.cache[__name__]
    return rows


def measure_table(label: str, rows: Sequence[MeasureRow]) -> ResultTable:
    """Return the table of a game's rows; `label` is the game's."""
    heads = {"game": "", "measure": "", "who": "", "share": ".1%", "mean": ".2f", "n": ","}
    heads |= {"source": "", "study": "", "condition": ""}
    cells = []
    for row in rows:
        source = PUBLISHED if row.study else OWN
        values = [*_split(row), row.n, source, row.study, row.condition]
        cells.append([label, row.measure, row.who, *values])
    aside = [number for number, row in enumerate(rows) if row.study]
    return ResultTable(heads, cells, label, "measures", NOTE, beside=aside)


def brief_table(label: str, rows: Sequence[MeasureRow], note: str = "") -> ResultTable:
    """Return the same for a terminal, without conditions; the game heads the first column."""
    plain = all(row.is_share for row in rows)
    heads = {label: "", "who": "", "share": ".1%"}
    heads |= ({} if plain else {"mean": ".2f"}) | {"n": ","}
    cells = []
    for row in rows:
        who = f"{row.who}: {row.study}" if row.study else row.who
        cells.append([row.measure, who, *_split(row)[: 1 if plain else 2], row.n])
    aside = [number for number, row in enumerate(rows) if row.study]
    return ResultTable(heads, cells, note=note, beside=aside)


def shown_beside(rows: Sequence[MeasureRow]) -> list[MeasureRow]:
    """Return the rows of measures that people have; none where they have none."""
    names = {row.measure for row in rows if row.study}
    return [row for row in rows if row.measure in names]


def _split(row: MeasureRow) -> tuple[MeanCell | None, MeanCell | None]:
    return (row.value, None) if row.is_share else (None, row.value)


def _rows(game: RecordedGame) -> Iterator[MeasureRow]:
    try:
        declared = play_measures(game.rules)
        observations = _observations(game, declared) if declared else {}
    except BadParameter:  # too large to be solved
        return
    figures = people(game.full)
    for figure in figures:
        if figure.measure not in declared:
            raise unknown(f"measure of {game.name} in people.csv", figure.measure, declared)
    for name, measure in declared.items():
        for player in game.players:
            parts = observations[name, player]
            if any(map(len, parts)):
                cell, n = _cell(measure, parts), sum(map(len, parts))
                yield MeasureRow(name, player, cell, n, measure.ends, measure.is_share)
        for figure in figures:
            if figure.measure == name:
                cell = MeanCell(figure.value, None, figure.n or 0)
                about = MeasureRow(name, PEOPLE, cell, figure.n, measure.ends, measure.is_share)
                yield about._replace(study=figure.study, condition=figure.condition)


def _observations(game: RecordedGame, declared: Any) -> dict[tuple[str, str], list[Array]]:
    """Return what each measure observed at each finished episode, by measure and player."""
    observations: dict[tuple[str, str], list[Array]] = {
        (name, player): [] for name in declared for player in game.players
    }
    for episode in game.done:
        steps = episode.stacked()
        for player in game.players:
            seats = episode.of(player)
            for name, measure in declared.items():
                observations[name, player].append(observe(measure, steps, seats))
    return observations


def _cell(measure: PlayMeasure, parts: Sequence[Array]) -> MeanCell:
    """Return a measure with its interval, of a mean: what episodes add to the ratio of sums."""
    value = measure.value(parts)
    if measure.of:
        return MeanCell(value, None, len(parts))
    counts = np.array([len(part) for part in parts])
    sums = np.array([part.sum() for part in parts])
    apart = value + (sums - value * counts) / counts.mean()
    cell = brief(averaged(intervals.score, apart.tolist(), measure.ends, 2))
    interval, (lowest, highest) = cell and cell.interval, measure.ends
    if interval:
        low, high = max(interval.low, lowest), min(interval.high, highest)
        interval = interval._replace(low=low, high=high)
    return MeanCell(value, None, len(parts), interval, measure.ends)
