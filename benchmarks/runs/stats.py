"""Means over episodes with their spread, and how they are written in tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.stats import intervals
from llm_games.benchmarks.stats.intervals import Interval

MARK = Fraction(1, 20)  # a game with more filled-in decisions in one episode than this is marked


class Cell(NamedTuple):
    """A mean over runs, the sample standard deviation (None for one run), and how many runs.

    Where the runs are independent it has the mean's `interval`; None for one run.
    """

    mean: float
    std: float | None
    runs: int
    interval: Interval | None = None

    def plain(self) -> dict[str, Any]:
        """Return it as plain values, the interval with its method and n."""
        return {
            **{"mean": self.mean, "std": self.std},
            "interval": self.interval and self.interval.plain(),
        }

    @property
    def error(self) -> float | None:
        """The standard error of the mean; None for one run."""
        return None if self.std is None else self.std / math.sqrt(self.runs)


def cell(values: Sequence[float]) -> Cell:
    """Average one or more values; ± is the sample standard deviation (ddof 1)."""
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Cell(sum(values) / len(values), std, len(values))


def estimated(
    values: Sequence[float], ends: tuple[float, float] | None = None, least: int = 2
) -> Cell | None:
    """Average one value of each of some independent runs, with the interval of the mean.

    `ends` are the least and the highest value that is possible; without them, as of money, or where
    a value lies beyond, as scores of old editions can, the interval is one without bounds. Fewer
    than `least` values have none. None for no values.
    """
    if not values:
        return None
    found = None
    if len(values) >= least:
        bounded = ends and intervals.within(values, *ends)
        found = intervals.score(values, *ends) if ends and bounded else intervals.money(values)
    return cell(values)._replace(interval=found)


def mean_of(
    values: Sequence[float], ends: tuple[float, float] | None = None, least: int = 2
) -> Cell | None:
    """Return the same without the standard deviation."""
    found = estimated(values, ends, least)
    return found and found._replace(std=None)


def filled_in(broken: int, decisions: int) -> Fraction:
    """Return the share of decisions that the rules filled in; beyond `MARK` a game is marked."""
    return Fraction(broken, decisions) if decisions else Fraction(0)
