"""Shall We Talk (arXiv 2402.12327, sections 3 to 5, Table 1): metrics, and the printed results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.intervals import Interval, Values
from llm_games.benchmarks.judge.means import FREE, SHARE, Ends, MeanCell, apart
from llm_games.benchmarks.judge.paper import data, printed
from llm_games.rulebook import Array


def rsd(numbers: Sequence[int]) -> float:
    """%RSD of the numbers of one run, 100 times population deviation to mean; 0: all equal."""
    count, total = len(numbers), sum(numbers)
    square = count * sum(number * number for number in numbers) - total * total
    return 100 * math.sqrt(square) / abs(total) if square else 0.0


def modal_share(numbers: Sequence[int]) -> float:
    return max(Counter(numbers).values()) / len(numbers)


def within(numbers: Sequence[float], low: float, high: float) -> float:
    """Return the share of numbers from `low` to `high`, both included."""
    return sum(low <= number <= high for number in numbers) / len(numbers)


def window(prices: Sequence[float], first: int, last: int) -> Sequence[float] | None:
    """Return the mean prices of the rounds `first` to `last`, from 1; None if they end before."""
    return prices[first - 1 : last] if len(prices) >= last else None


def mean_in(prices: Sequence[float], first: int, last: int) -> float | None:
    selected = window(prices, first, last)
    return None if selected is None else math.fsum(selected) / len(selected)


def slope_in(prices: Sequence[float], first: int, last: int) -> float | None:
    """Return the rise per hundred rounds of a line fitted to these rounds' prices."""
    selected = window(prices, first, last)
    if selected is None:
        return None
    return 100 * float(np.polyfit(np.arange(len(selected)), selected, 1)[0])


def variance(curves: Array) -> Array:
    """Return the variance over runs of each point of ``(runs, points)``, by runs - 1."""
    return np.asarray(np.var(curves, axis=0, ddof=1))


def pseudo_variances(curves: Array) -> list[float] | None:
    """Jackknife's values, whose mean is `variance`, of ``(runs, points)``; None below 3 runs."""
    runs = len(curves)
    if runs < 3:
        return None
    whole = variance(curves).mean()
    rest = [variance(np.delete(curves, i, axis=0)).mean() for i in range(runs)]
    return [float(runs * whole - (runs - 1) * partial_variance) for partial_variance in rest]


def difference(a: Values, b: Values, ends: Ends = FREE) -> MeanCell | None:
    """Mean of `a` less that of `b`, Welch's interval clipped by `ends`; None if one is empty."""
    if not len(a) or not len(b):
        return None
    sides = [np.asarray(a, np.float64), -np.asarray(b, np.float64)]
    mean, n = float(sides[0].mean() + sides[1].mean()), min(map(len, sides))
    limits = apart(ends)
    if n < 2:
        return MeanCell(mean, None, n, None, limits)
    middle, error, df = intervals.welch(sides)
    if error <= intervals.EQUAL * max(np.abs(side).max() for side in sides):
        return MeanCell(mean, None, n, intervals.no_spread(mean, n), limits)
    low, high = np.clip(intervals.t_ends(2 * middle, 2 * error, df, 0.95), *limits).tolist()
    return MeanCell(mean, None, n, Interval(low, high, "Welch", n, intervals.few(n)), limits)


def share_difference(a: Sequence[bool], b: Sequence[bool]) -> MeanCell | None:
    """Share of true values in `a` less that in `b`, with Agresti-Caffo's interval (2000)."""
    if not a or not b:
        return None
    n, mean = min(len(a), len(b)), sum(a) / len(a) - sum(b) / len(b)
    if n < 2:
        return MeanCell(mean, None, n)
    (p, m), (q, k) = (((sum(side) + 1) / (len(side) + 2), len(side) + 2) for side in (a, b))
    half = 1.959963984540054 * math.sqrt(p * (1 - p) / m + q * (1 - q) / k)
    low, high = max(p - q - half, -1.0), min(p - q + half, 1.0)
    return MeanCell(mean, None, n, Interval(low, high, "Agresti-Caffo", n), apart(SHARE))


def kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa of two labels of each run; None where chance alone would agree."""
    n = len(pairs)
    first, second = (Counter(side) for side in zip(*pairs, strict=True)) if pairs else ({}, {})
    chance = sum(first[label] * second[label] for label in first)
    same = n * sum(a == b for a, b in pairs)
    return (same - chance) / (n * n - chance) if chance < n * n else None


class PrintedPlans(NamedTuple):
    """A row of Table 1: the plans of a cell by kind, their share of the runs, and %RSD."""

    cell: str
    plan: str
    rate: float
    rsd: float


class StatedPrice(NamedTuple):
    """A price that the paper states in words, with its cell and rounds."""

    cell: str
    rounds: str
    price: float


class Statement(NamedTuple):
    """A finding of the paper: a published number (N), in words (Q), or read off a figure (F)."""

    id: str
    kind: str
    statement: str


@cache
def table1() -> Mapping[str, PrintedPlans]:
    return {row.cell: row for row in printed(__package__, "table1", PrintedPlans)}


@cache
def personas() -> Mapping[str, float]:
    """Return the share of runs with a joint plan by persona, %, by cell."""
    return {row["cell"]: float(row["rate"]) for row in data(__package__, "personas")}


@cache
def prices() -> tuple[StatedPrice, ...]:
    return printed(__package__, "prices", StatedPrice)


@cache
def models() -> Mapping[str, int]:
    """Return the numbers that models of the time named alone, without other players."""
    return {row["model"]: int(row["number"]) for row in data(__package__, "models")}


@cache
def findings() -> Mapping[str, Statement]:
    return {row.id: row for row in printed(__package__, "statements", Statement)}
