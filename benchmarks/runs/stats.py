"""Means over episodes with their spread, and how they are written in tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from llm_games.rulebook import Array

DRAWS = 10_000  # samples of a bootstrap or a permutation test
TOGETHER = 1_000_000  # values that are drawn at once
MARK = Fraction(1, 20)  # a game with more filled-in decisions in one episode than this is marked


class Cell(NamedTuple):
    """A mean over runs, the sample standard deviation (None for one run), and how many runs."""

    mean: float
    std: float | None
    runs: int

    @property
    def error(self) -> float | None:
        """The standard error of the mean; None for one run."""
        return None if self.std is None else self.std / math.sqrt(self.runs)


def cell(values: Sequence[float]) -> Cell:
    """Average one or more values; ± is the sample standard deviation (ddof 1)."""
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Cell(sum(values) / len(values), std, len(values))


def interval(
    columns: Sequence[Sequence[float] | Array], rng: np.random.Generator
) -> tuple[float, float] | None:
    """Return the bootstrap 95 % interval of the mean over columns of the mean over runs.

    A column has the values of the runs of one game, which are drawn again within it, `DRAWS` times.
    None if one has fewer than 2 runs.
    """
    if min(map(len, columns), default=0) < 2:
        return None
    means = np.zeros(DRAWS)
    for column in columns:
        runs = np.asarray(column, np.float64)
        for some in blocks(len(runs)):
            means[some] += runs[rng.integers(len(runs), size=(len(some), len(runs)))].mean(axis=1)
    low, high = np.quantile(means / len(columns), [0.025, 0.975])
    return float(low), float(high)


def blocks(size: int) -> Iterator[range]:
    """Yield the numbers of all draws of so many values, as many together as memory is to hold."""
    step = max(1, TOGETHER // size)
    return (range(first, min(first + step, DRAWS)) for first in range(0, DRAWS, step))


def filled_in(broken: int, decisions: int) -> Fraction:
    """Return the share of decisions that the rules filled in; beyond `MARK` a game is marked."""
    return Fraction(broken, decisions) if decisions else Fraction(0)


def shown(value: float | None, digits: int = 1) -> str:
    """Write a number for a table, rounded half to even after scaling; a missing one as a dash."""
    return "–" if value is None else f"{np.round(value, digits):.{digits}f}"
