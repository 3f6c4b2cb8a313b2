"""Tests of differences between two players over paired episodes, and the episodes that they need.

Methods: docs/statistics.md. A `change` is B minus A of paired episodes; `columns` are those of
several games, which must be independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from llm_games.benchmarks.judge import intervals
from llm_games.errors import BadParameter
from llm_games.rulebook import Array

EXACT = 12  # up to so many pairs a sign-flip test goes through all signs
SIZED = 5  # fewest pairs that have an effect size
TRIED = 4000  # simulated comparisons of scores that were seen
NODES = 500  # values of a spread over which one averages
MOST = 100_000  # episodes beyond which none are counted


class Tested(NamedTuple):
    """A mean difference, its interval and p-value; without spread between pairs `p` is None."""

    mean: float
    p: float | None
    interval: intervals.Interval

    @property
    def note(self) -> str:
        """The sentence in place of a missing p-value."""
        return "no spread, no test" if self.p is None else ""


def changes(a: intervals.Values, b: intervals.Values) -> Array:
    """Return B minus A; BadParameter: not equally many, none, or a value that is no number."""
    if len(a) != len(b):
        raise BadParameter(
            f"pairs need a value on both sides, got {len(a)} and {len(b)}: give the episodes that "
            "both runs have, in one order"
        )
    return _change(np.subtract(b, a, dtype=np.float64))


def paired_t(change: intervals.Values, level: float = 0.95, widest: float = math.inf) -> Tested:
    """Test by Student's t if paired differences within `widest` of 0 have mean 0; BadParameter."""
    return welch_satterthwaite([change], level, "Student t", widest)


def welch_satterthwaite(
    columns: Sequence[intervals.Values],
    level: float = 0.95,
    method: str = "Welch-Satterthwaite",
    widest: float = math.inf,
) -> Tested:
    """Test whether the mean over games of their mean differences is 0: whether the Overall differs.

    The interval is cut at `widest` from 0, which changes neither how often it holds nor whether it
    agrees with p. Raises BadParameter: no games, fewer than 2 pairs in one, a value that is no
    number, or a `level` out of (0, 1).
    """
    intervals.check_level(level, such=0.05)
    runs = [_change(column) for column in columns]
    n = min(map(len, runs), default=0)
    if n < 2:
        raise BadParameter(
            f"a t test needs 2 pairs or more in every game, got {n}: play more episodes"
        )
    mean, error, df = intervals.welch(runs)
    if error <= intervals.EQUAL * max(np.abs(column).max() for column in runs):
        return Tested(float(mean), None, intervals.no_spread(float(mean), n))
    widest = math.inf if abs(mean) > widest else widest
    ends = intervals.t_ends(mean, error, df, level)
    low, high = (float(np.clip(end, -widest, widest)) for end in ends)
    interval = intervals.Interval(low, high, method, n, intervals.few(n))
    return Tested(float(mean), float(two_sided(mean, error, df)), interval)


def sign_flip(change: intervals.Values) -> float:
    """Return the two-sided p-value of differences whose signs could as well be the other way.

    At least ``2 / 2**pairs``; by all signs up to `EXACT` pairs, then `DRAWS` seeded draws with the
    observed one among them. Raises BadParameter: no pairs, or a value that is no number.
    """
    return float(flipped(_change(change)))


def stratified(columns: Sequence[intervals.Values]) -> float:
    """Return the sign-flip p-value of "no game differs" against "all in one direction".

    Each game counts by its differences over their root mean square, which flips leave as it is.
    Raises BadParameter: no games, no pairs in one, or a value that is no number.
    """
    runs = [_change(column) for column in columns]
    if not runs:
        raise BadParameter("a stratified test needs the differences of one game or more, got none")
    return float(flipped(strata(runs)))


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted by Holm, None staying; BadParameter: one is not from 0 to 1."""
    ranked = sorted((p, i) for i, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, (p, i) in enumerate(ranked):
        if not 0 <= p <= 1:
            raise BadParameter(f"p-values are from 0 to 1, got {p!r}")
        highest = max(highest, min(1.0, p * (len(ranked) - rank)))
        adjusted[i] = highest
    return adjusted


def effect_size(change: intervals.Values) -> float | None:
    """Cohen's d of pairs, None below `SIZED` and without spread; raises as `sign_flip`."""
    change = _change(change)
    if len(change) < SIZED or _flat(change):
        return None
    return float(change.mean() / change.std(ddof=1))


# -- batches ---------------------------------------------------------------------------------------
def two_sided(mean: Array, error: Array, df: Array | float) -> Array:
    from scipy.special import stdtr

    return 2 * stdtr(df, -np.abs(mean) / error)


def strata(columns: Sequence[Array]) -> Array:
    """Return columns ``(n, *batch)`` as one whose sum is the statistic of `stratified`."""
    sizes = [np.sqrt((c**2).mean(axis=0)) * len(c) for c in columns]
    return np.concatenate([c / np.where(s, s, 1) for c, s in zip(columns, sizes, strict=True)])


def flipped(change: Array) -> Array:
    """Return the p-value of `sign_flip` for each column of ``(n, *batch)``."""
    n, columns = len(change), change.reshape(len(change), -1)
    # Equal up to rounding counts as equal: other signs add up in another order.
    least = np.abs(columns.sum(axis=0)) - intervals.EQUAL * np.abs(columns).sum(axis=0)
    count, draws = np.zeros(columns.shape[1]), 0
    for signs in _signs(n, max(1, intervals.TOGETHER // max(columns.shape))):
        count += (np.abs(signs @ columns) >= least).sum(axis=0)
        draws += len(signs)
    return (count / draws).reshape(change.shape[1:])


def _signs(n: int, step: int) -> Iterator[Array]:
    """Yield rows of signs, `step` at once: all there are, or draws and the ones observed."""
    if n <= EXACT:
        yield np.array(list(product((1.0, -1.0), repeat=n)))
        return
    rng = np.random.default_rng(intervals.SEED)
    yield np.ones((1, n))
    for first in range(1, intervals.DRAWS, step):
        yield rng.choice((1.0, -1.0), size=(min(step, intervals.DRAWS - first), n))


# -- planning --------------------------------------------------------------------------------------
def power(
    n: int,
    difference: float,
    sd: float | Sequence[float],
    rho: float = 0.0,
    games: int = 1,
    level: float = 0.05,
) -> float:
    """Return the probability that `n` pairs in each game show a difference at a two-sided `level`.

    `sd` is the standard deviation of one run, or those of each game; `rho` the sides' correlation
    by common chance, `games` the number of games of an Overall. Raises BadParameter.
    """
    intervals.check_level(level, such=0.05)
    if n < 2 or games < 1:
        raise BadParameter(f"power needs n >= 2 pairs in games >= 1, got {n!r} in {games!r}")
    sds = np.asarray(sd, np.float64)
    if math.isnan(difference):
        raise BadParameter(f"power needs a difference that is a number, got {difference!r}")
    valid = sds.shape in ((), (games,)) and ((sds > 0) & (sds < math.inf)).all()
    if not valid or not -1 <= rho < 1:
        raise BadParameter(
            f"power needs sd > 0, one or for each game, and -1 <= rho < 1, got {sd!r} and {rho!r}"
        )
    df, error = _df_and_error(n, sds, rho, games)
    return _power(abs(difference) / error, df, level)


def _df_and_error(n: int, sds: Array, rho: float, games: int) -> tuple[float, float]:
    """Return Satterthwaite's degrees of freedom and the standard error of an Overall."""
    squares = np.broadcast_to(sds**2, games)
    alike = squares.sum() ** 2 / (squares**2).sum()  # so many games that spread alike
    df = (n - 1) * ((n - 1) * alike + 2) / (n + 1)  # of estimated variances
    return float(df), float(np.sqrt(2 * (1 - rho) * squares.sum() / n)) / games


def _power(away: float, df: float, level: float) -> float:
    """Return the power of a t test whose mean is `away` standard errors from 0."""
    return _beyond(_critical(df, level), df, away)


def _beyond(least: float, df: float, away: float) -> float:
    """The chance that a noncentral t is beyond `least`; SciPy's nctdtr fails for large `away`."""
    spread, weights = _spread(df)
    ends = np.concatenate([away - least * spread, -away - least * spread]) / -math.sqrt(2)
    return float(np.tile(weights, 2) @ [math.erfc(end) for end in ends.tolist()]) / 2


@lru_cache(maxsize=1024)
def _critical(df: float, level: float) -> float:
    """Return the critical value of a t statistic, by Newton's method on logarithms."""
    spread, weights = _spread(df)
    least = NormalDist().inv_cdf(1 - level / 2)
    for _ in range(50):
        tails = _beyond(least, df, 0)
        slope = float(weights @ (spread * np.exp(-((least * spread) ** 2) / 2)))
        step = math.log(tails / level) * tails / (slope * least * math.sqrt(2 / math.pi))
        least *= math.exp(step)
        if abs(step) < intervals.EQUAL:
            break
    return least


@lru_cache(maxsize=1024)
def _spread(df: float) -> tuple[Array, Array]:
    """Return values of an estimated standard deviation, the true one being 1, and their chances."""
    wide = 8 / math.sqrt(2 * df)  # in logarithms, towards 0 as slowly as few degrees fall
    logs = np.linspace(-wide - 20 / df, wide, NODES)
    chance = np.exp(df * (logs - np.exp(2 * logs) / 2 + 0.5))
    return np.exp(logs), chance / chance.sum()


@lru_cache(maxsize=1024)
def _away(df: float, level: float, wanted: float) -> float:
    """Return the distance in standard errors at which a t test has the `wanted` power."""
    low, high = 0.0, 1.0
    while _power(high, df, level) < wanted:
        low, high = high, 2 * high
    while high - low > intervals.EQUAL * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _power(middle, df, level) >= wanted else (middle, high)
    return high


def needed_episodes(
    difference: float,
    sd: float | Sequence[float],
    rho: float = 0.0,
    games: int = 1,
    level: float = 0.05,
    wanted: float = 0.8,
) -> int:
    """The fewest pairs of each game whose `power` is `wanted`; BadParameter: over `MOST`."""
    intervals.check_level(wanted, "wanted", 0.05)
    power(2, difference, sd, rho, games, level)  # or raise
    far, sure = map(NormalDist().inv_cdf, (1 - level / 2, wanted))
    error = _df_and_error(1, np.asarray(sd, np.float64), rho, games)[1]
    guess = min(MOST, ((far + sure) * error / difference) ** 2 + far**2 / 2) if difference else MOST

    def enough(n: int) -> bool:
        return power(n, difference, sd, rho, games, level) >= wanted

    count = fewest(enough, int(guess))
    if count is None:
        raise BadParameter(
            f"a difference of {difference!r} at sd {sd!r} needs more than {MOST} episodes: "
            "ask for a larger one"
        )
    return count


def fewest(enough: Callable[[int], bool], guess: int) -> int | None:
    """The smallest number of pairs from which there are enough, sought around a `guess`."""
    low, high, step = 1, min(max(2, guess), MOST), 1
    while not enough(high):
        if high == MOST:
            return None
        low, high, step = high, min(high + step, MOST), 2 * step
    while high - step > low and enough(high - step):
        high, step = high - step, 2 * step
    low = max(low, high - step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def detectable(
    n: int,
    sd: float | Sequence[float],
    rho: float = 0.0,
    games: int = 1,
    level: float = 0.05,
    wanted: float = 0.8,
) -> float:
    """The smallest difference that `n` pairs in each game show with the `wanted` power."""
    intervals.check_level(wanted, "wanted", 0.05)
    power(n, 0, sd, rho, games, level)  # or raise
    df, error = _df_and_error(n, np.asarray(sd, np.float64), rho, games)
    return _away(df, level, wanted) * error


def shown(n: int, scores: intervals.Values, level: float = 0.05) -> Array:
    """Return the smallest detectable difference in each of `TRIED` simulated comparisons.

    Scores of both sides' `n` pairs are drawn from `scores`, one side shifted by that difference;
    infinite where all pairs differ alike. With rare, distant scores it is smaller than by t tests.
    """
    rng, drawn = np.random.default_rng(intervals.SEED), np.asarray(scores, np.float64)
    first, second = rng.choice(drawn, (2, TRIED, n))
    change = second - first
    error = change.std(axis=1, ddof=1) / math.sqrt(n)
    flat = np.ptp(change, axis=1) <= intervals.EQUAL * np.abs(scores).max()
    least = _critical(n - 1, level) * error - change.mean(axis=1)
    return np.asarray(np.where(flat, math.inf, least))


# -- checks ----------------------------------------------------------------------------------------
def _change(values: intervals.Values) -> Array:
    x = np.asarray(values, np.float64)
    if x.ndim != 1 or not len(x):
        raise BadParameter(f"a test needs a row of one pair or more, got shape {x.shape}")
    if not np.isfinite(x).all():
        raise BadParameter(f"differences must be numbers, got {x[~np.isfinite(x)][0]}")
    return x


def _flat(change: Array) -> bool:
    """Return whether all differences are equal up to rounding."""
    return bool(np.ptp(change) <= intervals.EQUAL * np.abs(change).max())
