"""Means over episodes with their spread, and how they are written in tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.intervals import Interval

Ends = tuple[float, float]
"""The least and the highest value that a quantity can have; infinite where nothing limits it."""
FREE: Ends = (-math.inf, math.inf)
POSITIVE: Ends = (0.0, math.inf)
SHARE: Ends = (0.0, 1.0)


class MeanCell(NamedTuple):
    """A mean over runs between `ends`, its deviation and interval (None for one), and the runs."""

    mean: float
    std: float | None
    runs: int
    interval: Interval | None = None
    ends: Ends = FREE

    def plain(self) -> dict[str, Any]:
        """Return it as plain values, the interval with its method and n."""
        interval = self.interval and self.interval.plain()
        return {"mean": self.mean, "std": self.std, "interval": interval}

    @property
    def error(self) -> float | None:
        """The standard error of the mean; None for one run."""
        return None if self.std is None else self.std / math.sqrt(self.runs)


def cell(values: Sequence[float]) -> MeanCell:
    """Average one or more values; ± is the sample standard deviation (ddof 1)."""
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return MeanCell(sum(values) / len(values), std, len(values))


def estimated(values: Sequence[float], ends: Ends, least: int = 2) -> MeanCell | None:
    """Average one value of each of some independent runs, with its interval; None for no values.

    Where a value lies beyond one of the `ends`, as scores of old editions can, that end is none.
    Fewer than `least` values have no interval.
    """
    return averaged(intervals.score, values, ends, least)


def brief(mean: MeanCell | None) -> MeanCell | None:
    return mean and mean._replace(std=None)


def mean_of(values: Sequence[float], ends: Ends, least: int = 2) -> MeanCell | None:
    """Return the same without the standard deviation."""
    return brief(estimated(values, ends, least))


def paid(values: Sequence[float], ends: Ends, spread: bool = False) -> MeanCell | None:
    """Average payoffs, money, with `spread` their deviation; equal values have no interval."""
    mean = averaged(intervals.money, values, ends, 2)
    return mean if spread else brief(mean)


def averaged(
    method: Callable[..., Interval | None], values: Sequence[float], ends: Ends, least: int
) -> MeanCell | None:
    """Average values; `method` takes them and the ends of one, and gives an interval."""
    if not values:
        return None
    low, high = ends if ends[0] < ends[1] else FREE
    low = low if intervals.within(values, low, math.inf) else -math.inf
    high = high if intervals.within(values, -math.inf, high) else math.inf
    interval = None
    if len(values) >= least:
        method = method if math.isfinite(high - low) else intervals.money
        interval = method(values, low, high)
    return cell(values)._replace(interval=interval, ends=(low, high))


def apart(ends: Ends, parts: int = 1) -> Ends:
    """Return the ends of differences of such values, or of so many parts of them."""
    return (ends[0] - ends[1]) / parts, (ends[1] - ends[0]) / parts
