"""Spearman's rank correlation with ties, and its p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from llm_games.benchmarks.judge.intervals import Interval
from llm_games.errors import BadParameter
from llm_games.rulebook import Array


class Correlation(NamedTuple):
    """Spearman's rho; `p` (None for two) supposes independent pairs, an `interval` does not."""

    rho: float
    p: float | None
    size: int
    interval: Interval | None = None


def average_ranks(values: Sequence[float]) -> Array:
    """Return ranks from 1, float64; equal values share the mean of their ranks."""
    _, kind, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[kind]


def spearman(xs: Sequence[float], ys: Sequence[float]) -> Correlation | None:
    """Pearson's correlation of average ranks, or None; BadParameter: unequal lengths."""
    if len(xs) != len(ys):
        raise BadParameter(f"a correlation needs pairs, got {len(xs)} and {len(ys)} values")
    # Twice a rank is an integer: sums of Python's are exact, and so is a correlation of 1.
    a, b = (np.rint(2 * average_ranks(values)).astype(int).astype(object) for values in (xs, ys))
    a, b, size = a * len(a) - a.sum(), b * len(b) - b.sum(), len(a)
    both, alone = a @ b, (a @ a) * (b @ b)
    if not alone:
        return None
    rho, unexplained = both / math.sqrt(alone), (alone - both * both) / alone  # and 1 - rho²
    return Correlation(rho, _p(unexplained, size - 3) if size > 2 else None, size)


_quadrature = cache(np.polynomial.legendre.leggauss)  # it takes milliseconds


def _p(unexplained: float, power: int) -> float:
    """Return the share of the integral of sinᵏ from 0 to π/2 that lies below arcsin √left."""
    nodes, weights = _quadrature(200)
    ends = (math.asin(math.sqrt(unexplained)), math.pi / 2)
    below, all_ = (float(weights @ np.sin((nodes + 1) / 2 * end) ** power) * end for end in ends)
    return below / all_
