"""The results that the γ-Bench paper prints, to stand beside one's own.

Source: arXiv 2403.11807. They are data as published, not ground truth: five runs each, failed
answers never counted, and some cells rest on runs that are not independent.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from llm_games.benchmarks.scores import GAMES, Cell

RUNS = 5
"""Independent runs behind each cell of the leaderboard."""


@dataclass(frozen=True)
class Entry:
    """One row of the leaderboard, rounded to one decimal as printed.

    Attributes:
        rank: 1 for the highest Overall.
        model: its name in the paper.
        overall: mean ± sample standard deviation over five runs, edition ``published``.
        cells: the same for each game.
        v4_auction, v4_overall: the values of edition ``v4``; None where it lacks the model.
    """

    rank: int
    model: str
    overall: Cell
    cells: dict[str, Cell]
    v4_auction: Cell | None
    v4_overall: Cell | None


@dataclass(frozen=True)
class Single:
    """The score of one GPT-3.5-0125 run as printed in v4 (edition ``v4``)."""

    experiment: str
    setting: str
    game: str
    score: float


@cache
def leaderboard() -> tuple[Entry, ...]:
    """Return the 13 published models, highest Overall first."""
    return tuple(
        Entry(
            rank=int(row["rank"]),
            model=row["model"],
            overall=_required(row, "overall"),
            cells={game: _required(row, game) for game in GAMES},
            v4_auction=_pair(row, "v4_sealed_bid_auction"),
            v4_overall=_pair(row, "v4_overall"),
        )
        for row in _rows("gamma_bench_leaderboard.csv")
    )


@cache
def gpt35_runs() -> tuple[Single, ...]:
    """Return the single runs of GPT-3.5-0125: repeats, temperatures, prompts, variants."""
    return tuple(
        Single(row["experiment"], row["setting"], row["game"], float(row["score"]))
        for row in _rows("gamma_bench_gpt35_v4.csv")
    )


def rank_of(overall: float) -> int:
    """Return the rank that an Overall would take on the published leaderboard."""
    return 1 + sum(entry.overall.mean > overall for entry in leaderboard())


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (files("llm_games.benchmarks") / "data" / name).open(encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def _pair(row: dict[str, str], column: str) -> Cell | None:
    mean, std = row[f"{column}_mean"], row[f"{column}_std"]
    return Cell(float(mean), float(std), RUNS) if mean else None


def _required(row: dict[str, str], column: str) -> Cell:
    return Cell(float(row[f"{column}_mean"]), float(row[f"{column}_std"]), RUNS)
