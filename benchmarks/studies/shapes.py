"""Shapes of one episode's value, by their quantile functions, to try methods on."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from llm_games.benchmarks import papers
from llm_games.rulebook import Array

EVEN = (np.arange(200_000) + 0.5) / 200_000


class Shape(NamedTuple):
    """A distribution of values: its description, quantile function and true mean."""

    name: str
    quantile: Callable[[Array], Array]
    mean: float

    def draw(self, rng: np.random.Generator, *size: int) -> Array:
        return self.quantile(rng.random(size))


def _shape(name: str, quantile: Callable[[Array], Array]) -> Shape:
    return Shape(name, quantile, float(quantile(EVEN).mean()))


def _beta(a: float, b: float) -> Callable[[Array], Array]:
    from scipy.special import betaincinv

    return lambda u: 100 * betaincinv(a, b, u)


def _mixture(
    weight: float, first: Callable[[Array], Array], second: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    def quantile(u: Array) -> Array:
        inner = np.where(u < weight, u / weight, (u - weight) / (1 - weight))
        return np.where(u < weight, first(inner), second(inner))

    return quantile


def _normal(mean: float, sd: float) -> Callable[[Array], Array]:
    from scipy.special import ndtri

    return lambda u: np.clip(mean + sd * ndtri(u), 0, 100)


def _always(value: float) -> Callable[[Array], Array]:
    return lambda u: np.full_like(u, value)


@cache
def smooth() -> tuple[Shape, ...]:
    from scipy.special import stdtrit

    return (
        _shape("normal 50 ± 10", _normal(50, 10)),
        _shape("uniform", lambda u: 100 * u),
        _shape("beta(9, 1), near 100", _beta(9, 1)),
        _shape("beta(20, 1)", _beta(20, 1)),
        _shape("beta(2, 8)", _beta(2, 8)),
        _shape("t with 3 df, ± 10", lambda u: np.clip(50 + 10 * stdtrit(3, u), 0, 100)),
    )


@cache
def tied() -> tuple[Shape, ...]:
    grid = _beta(9, 1)
    return (
        _shape("beta(9, 1) on a grid of 5", lambda u: 5 * np.round(grid(u) / 5)),
        _shape("0 in 50 %, else uniform", _mixture(0.5, _always(0), lambda u: 100 * u)),
        _shape("0 in 70 %, else uniform", _mixture(0.7, _always(0), lambda u: 100 * u)),
        _shape("100 in 90 %, else uniform", _mixture(0.9, _always(100), lambda u: 100 * u)),
        _shape("win 100 in 10 %, else 0", _mixture(0.9, _always(0), _always(100))),
        _shape("win 100 in 50 %, else 0", _mixture(0.5, _always(0), _always(100))),
    )


@cache
def rare() -> tuple[Shape, ...]:
    """Return shapes whose rare values a small sample misses."""
    return (
        _shape("two modes, 85 in 70 %, 40", _mixture(0.3, _normal(40, 5), _normal(85, 5))),
        _shape("beta(.5, 9.5)", _beta(0.5, 9.5)),
        _shape("collapse: 90 in 85 %, 20", _mixture(0.15, _normal(20, 5), _normal(90, 3))),
    )


@cache
def payoffs() -> tuple[Shape, ...]:
    from scipy.special import ndtri, stdtrit

    return (
        _shape("normal", ndtri),
        _shape("t with 3 df", lambda u: stdtrit(3, u)),
        _shape("exponential", lambda u: -np.log1p(-u)),
        _shape("lognormal", lambda u: np.exp(ndtri(u))),
    )


@cache
def published() -> tuple[tuple[Shape, ...], ...]:
    """Return beta laws with the mean and deviation of each cell of the papers' leaderboards.

    One tuple for each row of a table ``leaderboard.csv`` in a paper's room.
    """
    rows_of_shapes = []
    for table in sorted(Path(papers.__path__[0]).glob("*/leaderboard.csv")):
        with table.open(encoding="utf-8", newline="") as lines:
            rows_of_shapes += [_row(row) for row in csv.DictReader(lines)]
    return tuple(rows_of_shapes)


def _row(row: dict[str, str]) -> tuple[Shape, ...]:
    names = [key.removesuffix("_mean") for key in row if key.endswith("_mean")]
    again = {name for name in names for other in names if name.endswith(f"_{other}")}
    games = [name for name in names if name != "overall" and name not in again]
    return tuple(moments(float(row[f"{name}_mean"]), float(row[f"{name}_std"])) for name in games)


def moments(mean: float, sd: float) -> Shape:
    """Return the beta law on 0 to 100 with this mean and standard deviation."""
    name = f"{mean:g} ± {sd:g}"
    if not sd:
        return Shape(name, _always(mean), mean)
    m, v = mean / 100, (sd / 100) ** 2
    size = m * (1 - m) / v - 1
    return Shape(name, _beta(m * size, (1 - m) * size), mean)
