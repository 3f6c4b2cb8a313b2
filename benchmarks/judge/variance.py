"""Reliability: pass^k over tasks, and the sources of the variance of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from llm_games.benchmarks.judge.intervals import Interval, check_level, share_ends
from llm_games.errors import BadParameter
from llm_games.rulebook import Array

LEVELS = 5  # fewest levels of a factor whose share of the variance is estimated
SAMPLING = "sampling"


class Reliability(NamedTuple):
    """The probability that all of `k` runs of a task pass, mean over tasks."""

    value: float
    interval: Interval
    k: int
    tasks: int


def pass_k(
    passed: Sequence[int],
    runs: Sequence[int],
    k: int,
    level: float = 0.95,
    independent: bool = True,
) -> Reliability:
    """Return the unbiased estimate of pass^k from each task's number of passed runs.

    ``C(passed, k) / C(runs, k)`` of each task, averaged (Yao et al., tau-bench, arXiv 2406.12045).
    Each task's ends are Clopper-Pearson's of its share to the power k; they are combined by their
    distances (MOVER; Zou and Donner, Statistics in Medicine 27, 2008), or averaged if tasks are not
    `independent`, as where they share chance. Raises BadParameter: fewer than 2 tasks, not as many
    `runs`, a `k` below 1, fewer than ``2 k`` runs in a task, or more passed than run.
    """
    check_level(level)
    if len(passed) != len(runs) or len(runs) < 2 or k < 1:
        raise BadParameter(
            "pass^k needs 2 tasks or more, each with its runs, and k >= 1; passed has "
            f"{len(passed)}, runs {len(runs)}, k = {k!r}"
        )
    if (n := min(runs)) < 2 * k:
        raise BadParameter(
            f"pass^{k} needs {2 * k} runs of every task, got {n}: play more, or ask for k <= "
            f"{n // 2}"
        )
    if bad := [pair for pair in zip(passed, runs, strict=True) if not 0 <= pair[0] <= pair[1]]:
        raise BadParameter(f"passed must be from 0 to runs, got {bad[0][0]} of {bad[0][1]}")
    both = list(zip(passed, runs, strict=True))
    values = np.array([math.comb(c, k) / math.comb(n, k) for c, n in both])
    ends = np.array([share_ends(np.asarray(c), n, 0.0, level) for c, n in both]) ** k
    below, above = np.maximum(values - ends[:, 0], 0), np.maximum(ends[:, 1] - values, 0)
    mean, tasks = float(values.mean()), len(values)
    down, up = (np.linalg.norm(x) if independent else x.sum() for x in (below, above))
    low, high = max(0.0, mean - float(down) / tasks), min(1.0, mean + float(up) / tasks)
    method = "Clopper-Pearson^k, " + ("MOVER" if independent else "mean of ends")
    return Reliability(mean, Interval(low, high, method, n), k, tasks)


class VarianceShare(NamedTuple):
    """The share of one source in the variance of a run.

    `variance` is unbiased and may be negative where there is none; `share` is of the sum, with
    negative ones as 0. `low` and `high` are ends of the standard deviation by chi-square.
    """

    name: str
    levels: int
    variance: float
    share: float
    low: float
    high: float

    @property
    def sd(self) -> float:
        return math.sqrt(max(0.0, self.variance))


def variance_parts(values: Array, names: Sequence[str], level: float = 0.95) -> list[VarianceShare]:
    """Split the variance of a balanced crossed design into its factors, by the method of moments.

    `values` has one axis for each name, such as ``("wording", "seat", "chance")``. If the last is
    ``sampling``, it counts repeats of the same chance, and their variance is separate from the
    ``rest`` (interactions of factors). Raises BadParameter: a missing value, axes that are not the
    names, fewer than 2 factors, or fewer than `LEVELS` levels of one (sampling: 2).
    """
    check_level(level)
    x = np.asarray(values, np.float64)
    repeats = bool(names) and names[-1] == SAMPLING
    factors = list(names[:-1] if repeats else names)
    if x.ndim != len(names) or len(factors) < 2:
        raise BadParameter(
            f"a split needs values with one axis for each of 2 factors or more, got {x.ndim} axes "
            f"for {list(names)!r}"
        )
    for name, size in zip(names, x.shape, strict=True):
        least = 2 if name == SAMPLING else LEVELS
        if size < least:
            raise BadParameter(
                f"{name} has {size} levels, its share of the variance needs {least} or more: play "
                "more of them, or leave it out and keep it fixed"
            )
    if not np.isfinite(x).all():
        raise BadParameter(
            "a split needs a value of every combination: play those that are missing"
        )
    return _parts(x if repeats else x[..., None], factors, level)


def _parts(x: Array, factors: list[str], level: float) -> list[VarianceShare]:
    """Return the parts of ``(*levels, repeats)``."""
    from scipy.special import chdtri

    cells, repeats = x.mean(axis=-1), x.shape[-1]
    interactions, mean_squares = cells - cells.mean(), []
    for axis in range(cells.ndim):  # remove the main effects from the cells
        others = tuple(other for other in range(cells.ndim) if other != axis)
        effect = cells.mean(axis=others, keepdims=True) - cells.mean()
        interactions = interactions - effect
        mean_squares.append((effect**2).sum() / (cells.shape[axis] - 1))
    free = cells.size - 1 - sum(size - 1 for size in cells.shape)
    rest = float((interactions**2).sum() / free)
    rows = [
        (name, size, float(square - rest * size / cells.size), size - 1)
        for name, size, square in zip(factors, cells.shape, mean_squares, strict=True)
    ]
    if repeats > 1:
        within = float(x.var(axis=-1, ddof=1).mean())
        rows.append(("rest", free + 1, rest - within / repeats, free))
        rows.append((SAMPLING, repeats, within, cells.size * (repeats - 1)))
    else:
        rows.append(("rest and sampling", free + 1, rest, free))
    total = sum(max(0.0, variance) for _, _, variance, _ in rows)
    parts = []
    for name, levels, variance, df in rows:
        sd, tail = math.sqrt(max(0.0, variance)), (1 - level) / 2
        low, high = (sd * math.sqrt(df / float(chdtri(df, p))) for p in (tail, 1 - tail))
        share = max(0.0, variance) / total if total else 0.0
        parts.append(VarianceShare(name, levels, variance, share, low, high))
    return parts
