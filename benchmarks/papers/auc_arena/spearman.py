"""Spearman's rank correlation with ties, and its p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from llm_games.errors import BadParameter
from llm_games.rulebook import Array


class Correlation(NamedTuple):
    """Spearman's rho of so many pairs.

    `p` is two-sided, by Student's t distribution with ``size - 2`` degrees of freedom; None for two
    pairs, which leave none.
    """

    rho: float
    p: float | None
    size: int


def average_ranks(values: Sequence[float]) -> Array:
    """Return ranks from 1, float64; equal values share the mean of their ranks."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Array = (np.cumsum(counts) - (counts - 1) / 2)[where]
    return ranks


def spearman(xs: Sequence[float], ys: Sequence[float]) -> Correlation | None:
    """Return Pearson's correlation of the average ranks; None where either side is constant.

    Raises:
        BadParameter: not as many of one as of the other.
    """
    if len(xs) != len(ys):
        raise BadParameter(f"a correlation needs pairs, got {len(xs)} and {len(ys)} values")
    # Twice a rank is an integer, so that sums are exact, and so is a correlation of 1.
    a, b = (np.rint(2 * average_ranks(values)).astype(np.int64) for values in (xs, ys))
    a, b = a * len(a) - a.sum(), b * len(b) - b.sum()
    both, alone = _dot(a, b), _dot(a, a) * _dot(b, b)
    if not alone:
        return None
    rho = both / math.sqrt(alone)
    left = (alone - both * both) / alone  # 1 - rho²
    size = len(a)
    return Correlation(rho, _beta(size / 2 - 1, 0.5, left) if size > 2 else None, size)


def _dot(a: Array, b: Array) -> int:
    """Return the inner product without overflow."""
    return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))


def _beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) by its continued fraction."""
    if x in (0, 1):
        return x
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast below this
        return 1 - _beta(b, a, 1 - x)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log + a * math.log(x) + b * math.log1p(-x)) / a
    return front * _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction from the front (Lentz); see DLMF 8.17.22."""
    value, c, d = 1.0, 1.0, 0.0
    for n in range(1, 1000):
        m, odd = divmod(n, 2)
        step = (
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
            if odd
            else m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        )
        d, c = 1 / (1 + step * d), 1 + step / c
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return 1 / value
