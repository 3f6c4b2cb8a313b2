"""Intervals of means, shares and correlations, each with its method and n: docs/statistics.md.

Values are of independent episodes. Functions that return `Ends` take ``(n, *batch)`` and treat each
column alone; the others take one sample and return an `Interval`, or None where none is possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from llm_games.errors import BadParameter
from llm_games.rulebook import Array

DRAWS = 10_000  # weights of Gaffke's interval, and samples of a bootstrap
TOGETHER = 4_000_000  # numbers that are held at once
SEED = 2024  # of all draws: the same record has the same interval each time
FEW = 3  # up to so many episodes an interval rests on the shape that its method supposes
EQUAL = 1e-9  # of the range: values nearer than this are equal, since floats are rounded
ROUNDED = 1e-12  # of the values: what differs by less is equal, but for rounding
SKEWED = 1.0  # sample skewness beyond which money has a bootstrap, from `ENOUGH` episodes on
ENOUGH = 20
WIDEST = 3.0  # times Student's, as which it tells nothing more
RANKED = 10  # fewest pairs whose correlation has an interval
SEATED = 5  # fewest episodes whose shares of seats have an interval
HALF_OPEN = 3  # fewest values with a bound on one side alone whose mean has an interval
FAR = 1e6  # times the half width of an interval: a bound so far away is none

Values = Sequence[float] | Array
Ends = tuple[Array, Array]  # of a batch


class Interval(NamedTuple):
    """Both ends, method, number of episodes, a note; ``none``: no spread, both are the value."""

    low: float
    high: float
    method: str
    n: int
    note: str = ""

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain values; without an interval the ends are None."""
        gone = {"low": None, "high": None} if self.method == "none" else {}
        return self._asdict() | gone

    def ends(self, digits: int) -> str:
        """Write the ends alone, as in ``61.2 to 88.0``; a dash if there is no interval."""
        if self.method == "none":
            return "–"
        low, high = (f"{np.round(end, digits) + 0.0:.{digits}f}" for end in self[:2])
        return f"{low} to {high}"

    def written(self, digits: int) -> str:
        """Write ends, method and note, as in ``61.2 to 88.0 (logit-t, n = 3; note)``."""
        if self.method == "none":
            return self.note
        note = f"; {self.note}" if self.note else ""
        return f"{self.ends(digits)} ({self.method}, n = {self.n}{note})"


def score(
    values: Values, low: float = 0.0, high: float = 100.0, level: float = 0.95
) -> Interval | None:
    """Return the interval of the mean of bounded values; None for one value.

    Logit-t, or Gaffke's interval if more than half of the values are equal. Raises BadParameter: no
    values, one that is no number or out of bounds, or a `level` out of (0, 1).
    """
    runs = _checked(values, level, low, high)
    n = len(runs)
    if n == 1:
        return None
    *ends, equal = score_ends(runs, low, high, level)
    if equal:
        return Interval(*_floats(ends), "Gaffke", n, _equal(runs, high - low))
    return Interval(*_floats(ends), "logit-t", n, few(n))


def gaffke(
    values: Values, low: float = 0.0, high: float = 100.0, level: float = 0.95
) -> Interval | None:
    """Gaffke's interval of the mean, for any shape, wide; None for one value. Raises as `score`."""
    runs = _checked(values, level, low, high)
    n = len(runs)
    if n == 1:
        return None
    ends = _floats(gaffke_ends(runs, low, high, level))
    return Interval(*ends, "Gaffke", n, _equal(runs, high - low))


def money(
    values: Values, low: float = -np.inf, high: float = np.inf, level: float = 0.95
) -> Interval | None:
    """Return the interval of the mean of values of any shape, within bounds if some are known.

    Student's t; with one bound of the logarithm of the distance to it, from `HALF_OPEN` values,
    with both of the logit. From `ENOUGH` values with a skewness beyond `SKEWED`, the studentised
    bootstrap, unless it passes a bound or is over `WIDEST` times as wide, since few values decide.
    If more than half of the values are equal it is Gaffke's interval, none where a bound lacks;
    equal values have none. None for one value. Raises as `score` does.
    """
    runs = _checked(values, level, low, high)
    n, far = len(runs), FAR * np.ptp(runs)
    low = low if runs.max() - low < far else -np.inf
    high = high if high - runs.min() < far else np.inf
    bounds = np.isfinite([low, high])
    if n == 1:
        return None
    if np.ptp(runs) <= ROUNDED * np.abs(runs).max():
        return no_spread(float(runs.mean()), n)
    if bounds.any() and many_equal(runs, low, high):
        if bounds.all():
            return Interval(*_floats(gaffke_ends(runs, low, high, level)), "Gaffke", n)
        mean = float(runs.mean())
        return Interval(mean, mean, "none", n, f"most of {n} runs equal")
    if bounds.any() and not bounds.all() and n < HALF_OPEN:
        return None
    usual, note = _floats(bounded_t(runs, low, high, level)), few(n)
    if n >= ENOUGH and abs(skewness(runs)) > SKEWED:
        first, last = _floats(studentised(runs, level))
        narrow = last - first <= WIDEST * (usual[1] - usual[0])
        if narrow and low <= first and last <= high:
            return Interval(first, last, "studentised bootstrap", n)
        if not bounds.any():
            note = "rests on few large values"  # samples without them are all but constant
    return Interval(*usual, T[int(bounds.sum())], n, note)


T = "Student t", "log-t", "logit-t"  # what `bounded_t` is called with no bound, one, or two


def share(wins: int, n: int, guaranteed: bool = False, level: float = 0.95) -> Interval | None:
    """Return the interval of a share of `n` independent episodes; None for one episode.

    Jeffreys, which covers as said on average over all shares; `guaranteed`: Clopper-Pearson, at
    least as said for each (Brown, Cai, DasGupta, Statistical Science 16, 2001). Raises
    BadParameter: no episodes, `wins` that are not from 0 to `n`, or a `level` out of (0, 1).
    """
    check_level(level)
    if n < 1 or not 0 <= wins <= n:
        raise BadParameter(f"a share needs wins from 0 to n of n >= 1 episodes, got {wins} of {n}")
    if n == 1:
        return None
    ends = share_ends(np.asarray(wins), n, 0.0 if guaranteed else 0.5, level)
    return Interval(*_floats(ends), "Clopper-Pearson" if guaranteed else "Jeffreys", n)


def seats(shares: Values, level: float = 0.95) -> Interval | None:
    """Interval of a share of seats by episode; None below `SEATED` episodes; raises as `score`."""
    runs = _checked(shares, level, 0.0, 1.0)
    return score(runs, 0.0, 1.0, level) if len(runs) >= SEATED else None


def overall(
    columns: Sequence[Values],
    low: float = 0.0,
    high: float = 100.0,
    level: float = 0.95,
) -> Interval | None:
    """Return the interval of the mean over games of their mean over runs, by Welch-Satterthwaite.

    A column has a game's runs; columns are independent. n is that of the shortest; None if it is 1.
    It is cut at `low` and `high`. Raises BadParameter: no columns, or what `score` raises.
    """
    if not columns:
        raise BadParameter("an Overall needs the values of one game or more, got none")
    runs = [_checked(column, level, low, high) for column in columns]
    n = min(map(len, runs))
    if n == 1:
        return None
    mean, error, df = welch(runs)
    wide = high - low if np.isfinite(high - low) else np.abs(mean)
    if error <= EQUAL * wide:
        return no_spread(float(mean), n)
    ends = np.clip(t_ends(mean, error, df, level), low, high)
    return Interval(*_floats(ends), "Welch-Satterthwaite", n, few(n))


def correlation(r: float, n: int, level: float = 0.95) -> Interval | None:
    """Return the interval of Spearman's correlation of `n` independent pairs; None below `RANKED`.

    Fisher's z with the standard error of Bonett and Wright (Psychometrika 65, 2000). A perfect
    correlation counts as halfway to the next possible one. Raises BadParameter: `r` is not from -1
    to 1, `n` not above 0, or a `level` out of (0, 1).
    """
    check_level(level)
    if not -1 <= r <= 1 or n < 1:
        raise BadParameter(f"a correlation is from -1 to 1 of n >= 1 pairs, got {r!r} of {n!r}")
    if n < RANKED:
        return None
    ends = correlation_ends(np.asarray(r), n, level)
    return Interval(*_floats(ends), "Fisher z", n)


# -- batches ---------------------------------------------------------------------------------------
def score_ends(x: Array, low: float, high: float, level: float) -> tuple[Array, Array, Array]:
    """Return the ends of `score` for each column, and a mask of those by Gaffke."""
    equal = many_equal(x, low, high)
    ends = np.array(bounded_t(x, low, high, level))
    if equal.any():
        ends[:, equal] = gaffke_ends(x[:, equal], low, high, level)
    return ends[0], ends[1], equal


def many_equal(x: Array, low: float, high: float) -> Array:
    """Return for each column of ``(n, *batch)`` whether more than half of its values are equal."""
    x, n = np.sort(x, axis=0), len(x)
    half = n // 2  # a value that stands more than n / 2 times is its own neighbour so far away
    near = EQUAL * (high - low) if np.isfinite(high - low) else ROUNDED * np.abs(x).max(axis=0)
    return np.asarray((x[half:] - x[: n - half] <= near).any(axis=0))


def t_ends(mean: Array, error: Array, df: Array | float, level: float) -> Ends:
    """Return Student's interval around means with a standard error of `df` degrees of freedom."""
    from scipy.special import stdtrit

    half = stdtrit(df, (1 + level) / 2) * error
    return mean - half, mean + half


def student_t(x: Array, level: float) -> Ends:
    return t_ends(x.mean(axis=0), np.sqrt(_var(x) / len(x)), len(x) - 1, level)


def bounded_t(x: Array, low: float, high: float, level: float) -> Ends:
    """Return `within_bounds` of each column's mean; a column needs a mean within its bounds."""
    error = np.sqrt(_var(x) / len(x))
    return within_bounds(x.mean(axis=0), error, len(x) - 1, low, high, level)


def within_bounds(
    mean: Array, error: Array, df: Array | float, low: float, high: float, level: float
) -> Ends:
    """Return Student's interval of means of values that cannot lie beyond `low` or `high`.

    With both bounds it is that of the mean's logit, with one (the other infinite) of the logarithm
    of the distance to it, by the delta method.
    """
    first, last = t_ends(mean, error, df, level)
    half = last - mean
    below, above, size = mean - low, high - mean, high - low
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        open_low, open_high = below > FAR * half, above > FAR * half
        both = half / below + half / above
        logit = np.log(below) - np.log(above)
        ends = []
        for end, sign in ((first, -1), (last, 1)):
            share = 1 / (1 + np.exp(-np.clip(logit + sign * both, -700, 700)))
            inner = np.where(share < 0.5, low + size * share, high - size * (1 - share))
            upward = low + below * np.exp(np.clip(sign * half / below, -700, 700))
            downward = high - above * np.exp(np.clip(-sign * half / above, -700, 700))
            inner = np.where(open_high, upward, np.where(open_low, downward, inner))
            inner = np.where(open_low & open_high, end, inner)
            ends.append(np.where(half > 0, np.clip(inner, low, high), mean))
    return ends[0], ends[1]


@lru_cache(maxsize=8)
def _weights(n: int) -> Array:
    """Draws ``(draws, n + 1)`` of weights that add up to 1, by Latin hypercube, the first exact."""
    draws = max(1000, min(DRAWS, TOGETHER // (n + 1)))
    even = (np.arange(draws) + 0.5) / draws
    rng = np.random.default_rng(SEED)
    spans = -np.log(rng.permuted(np.broadcast_to(even[:, None], (draws, n)), axis=0))
    first = 1 - even[:, None] ** (1 / n)
    return np.hstack([first, (1 - first) * spans / spans.sum(axis=1, keepdims=True)])


def gaffke_ends(x: Array, low: float, high: float, level: float) -> Ends:
    """Return Gaffke's interval of each column's mean.

    Source: Gaffke, *Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable* (2005); Learned-Miller and Thomas (arXiv 1905.06208). That it covers for
    every bounded law is a conjecture. Of values that are ends of the range it is Clopper-Pearson's.
    """
    n, tail, shape = len(x), (1 - level) / 2, x.shape[1:]
    x = np.sort(x, axis=0).reshape(n, -1)
    weights, ends = _weights(n), np.empty((2, x.shape[1]))
    step = max(1, TOGETHER // len(weights))
    for first in range(0, x.shape[1], step):
        batch = slice(first, first + step)
        inner, edge = x[:, batch].T @ weights[:, 1:].T, weights[:, 0]
        ends[0, batch] = np.quantile(inner + edge * low, tail, axis=1)
        ends[1, batch] = np.quantile(inner + edge * high, 1 - tail, axis=1)
    first, last = np.clip(ends, low, high).reshape(2, *shape)
    return first, last


def studentised(x: Array, level: float) -> Ends:
    """Return the studentised (bootstrap-t) interval of the mean of one column ``(n,)``."""
    n, rng = len(x), np.random.default_rng(SEED)
    t = []
    for _ in range(0, DRAWS, step := max(1, min(DRAWS, TOGETHER // n))):
        again = x[rng.integers(n, size=(n, step))]
        error = np.sqrt(_var(again) / n)
        has_spread = error > EQUAL * np.ptp(x)
        t.append((again.mean(axis=0) - x.mean())[has_spread] / error[has_spread])
    tail = (1 - level) / 2
    first, last = np.quantile(np.concatenate(t), [1 - tail, tail]) * np.sqrt(_var(x) / n)
    return x.mean() - first, x.mean() - last


def share_ends(wins: Array, n: int, prior: float, level: float) -> Ends:
    """Return the ends of shares: Jeffreys' with a `prior` of 1/2, Clopper-Pearson's with 0."""
    from scipy.special import betaincinv

    tail, rest = (1 - level) / 2, n - wins
    none, all_ = wins == 0, rest == 0
    other = prior or 1.0  # Clopper-Pearson counts one more on the far side
    low = betaincinv(np.where(none, 1, wins + prior), rest + other, tail)
    high = betaincinv(wins + other, np.where(all_, 1, rest + prior), 1 - tail)
    return np.where(none, 0.0, low), np.where(all_, 1.0, high)


def correlation_ends(r: Array, n: int, level: float) -> Ends:
    """Return the ends of Spearman correlations of `n` pairs."""
    from scipy.special import ndtri

    r = np.clip(r, -1 + 6 / (n * (n * n - 1)), 1 - 6 / (n * (n * n - 1)))
    z, half = np.arctanh(r), ndtri((1 + level) / 2) * np.sqrt((1 + r * r / 2) / (n - 3))
    return np.tanh(z - half), np.tanh(z + half)


def welch(columns: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Mean over independent columns ``(n, *batch)``, standard error, Satterthwaite's freedom."""
    parts = [_var(column) / len(column) for column in columns]
    lost = sum(part**2 / (len(c) - 1) for part, c in zip(parts, columns, strict=True))
    mean, total = sum(c.mean(axis=0) for c in columns) / len(columns), np.asarray(sum(parts))
    df = np.divide(total**2, lost, out=np.full(total.shape, np.inf), where=lost > 0)
    return mean, np.sqrt(total) / len(columns), df


def skewness(x: Array) -> float:
    return float(((x - x.mean()) ** 3).mean() / x.std() ** 3)


# -- checks ----------------------------------------------------------------------------------------
def _checked(values: Values, level: float, low: float = -np.inf, high: float = np.inf) -> Array:
    check_level(level)
    x = np.asarray(values, np.float64)
    if x.ndim != 1 or not len(x):
        raise BadParameter(f"an interval needs a row of one value or more, got shape {x.shape}")
    if not np.isfinite(x).all():
        odd = x[~np.isfinite(x)][0]
        raise BadParameter(f"values must be numbers, got {odd}: leave out what was not measured")
    if np.isfinite([low, high]).any():
        if not low < high:
            raise BadParameter(f"bounds must be low < high, got {low!r} and {high!r}")
        if not within(x, low, high):
            odd = max(x.tolist(), key=lambda value: max(low - value, value - high))
            raise BadParameter(
                f"values must be from {low:g} to {high:g}, got {odd!r}: give their own bounds as "
                "low and high, or use money() for values without bounds"
            )
        x = np.clip(x, low, high)
    return x


def within(values: Values, low: float, high: float) -> bool:
    """Return whether values lie within bounds, up to rounding errors."""
    slack = EQUAL * (high - low if np.isfinite(high - low) else np.max(np.abs(values)))
    return bool(low - slack <= np.min(values) and np.max(values) <= high + slack)


def check_level(level: float, word: str = "level", such: float = 0.95) -> None:
    """Raise BadParameter unless a `level`, named `word` in the error, is between 0 and 1."""
    if not 0 < level < 1:
        raise BadParameter(f"{word} must be between 0 and 1, such as {such}, got {level!r}")


def no_spread(value: float, n: int) -> Interval:
    """Return the substitute for an interval of equal values without bounds."""
    return Interval(value, value, "none", n, f"no spread in {n} runs")


def _equal(runs: Array, size: float) -> str:
    return "" if np.ptp(runs) > EQUAL * size else f"no spread in {len(runs)} runs"


def few(n: int) -> str:
    """Return the note of an interval of few runs, "" if there are enough."""
    return "rests on near-normal runs" if n <= FEW else ""


def _floats(ends: Sequence[Array] | Array) -> tuple[float, float]:
    return float(ends[0]), float(ends[1])


def _var(x: Array) -> Array:
    return x.var(axis=0, ddof=1)
