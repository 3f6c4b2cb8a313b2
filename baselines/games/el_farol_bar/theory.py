"""El Farol bar: going (1) pays if at most `capacity` go. Pure equilibria: exactly `capacity` goers.

In the symmetric mixed one P(at most ``capacity - 1`` of the others go) = (home - crowded) / (good -
crowded), which falls from 1 to 0 in how often they go: there is one, and all earn no more than at
home. Arthur 1994; market entry games, Selten & Güth 1982.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import exp, lgamma, log, log1p
from typing import Any, Self

import numpy as np

from llm_games.baselines.regret import Claim, Measured, Parts, Steps, flat
from llm_games.rulebook import Array, PerPlayer, PerTable


@dataclass(frozen=True)
class Bar:
    """The bar: seats, capacity, and what a crowded bar, home and a good bar are worth."""

    players: int = 10
    capacity: int = 6
    crowded: float = 0
    home: float = 5
    good: float = 10

    @classmethod
    def of(cls, game: Any) -> Self:
        capacity = sum(bool(game.good(goers)) for goers in range(1, game.players + 1))
        return cls(game.players, capacity, float(game.min), float(game.home), float(game.max))

    def if_i_go(self, others: Array) -> Array:
        return np.where(others < self.capacity, self.good, self.crowded)


def best_response(going: PerPlayer, bar: Bar) -> PerPlayer:
    """Return each seat's best reply to the others; it stays where both are equally good."""
    others = np.sum(going, axis=0) - going
    return (bar.if_i_go(others) > bar.home).astype(np.int64)


def regret(going: PerPlayer, bar: Bar) -> PerPlayer:
    go = bar.if_i_go(np.sum(going, axis=0) - going)
    return np.maximum(go, bar.home) - np.where(going, go, bar.home)


def distance(going: PerPlayer, bar: Bar) -> PerTable:
    extra = np.sum(going, axis=0) - bar.capacity
    too_many = np.maximum(extra, 0) * (bar.home > bar.crowded)
    return too_many + np.maximum(-extra, 0) * (bar.home < bar.good)


def good_if_i_go(q: float, bar: Bar) -> float:
    """Return P(at most ``capacity - 1`` of the others go) if each goes with probability `q`."""
    others = bar.players - 1
    if q <= 0 or q >= 1:
        return float((others if q >= 1 else 0) < bar.capacity)
    logs = (
        lgamma(others + 1) - lgamma(k + 1) - lgamma(others - k + 1) + k * log(q)
        + (others - k) * log1p(-q)
        for k in range(min(bar.capacity, bar.players))
    )  # fmt: skip
    return min(sum(map(exp, logs)), 1.0)


@lru_cache(maxsize=256)
def mixed_equilibrium(bar: Bar) -> float:
    """Return the probability of going in the symmetric mixed equilibrium, by bisection."""
    if bar.capacity <= 0 or bar.home >= bar.good:
        return 0.0
    if bar.capacity >= bar.players or bar.home <= bar.crowded:
        return 1.0
    low, high, enough = 0.0, 1.0, (bar.home - bar.crowded) / (bar.good - bar.crowded)
    for _ in range(60):
        middle = (low + high) / 2
        good = good_if_i_go(middle, bar) > enough
        low, high = (middle, high) if good else (low, middle)
    return (low + high) / 2


def level_k(level: int, bar: Bar) -> float:
    """Return the chance of going that replies best to the level below; 1/2 at levels 0 and 1."""
    if level == 0:
        return 0.5
    lower_chance = level_k(1 + level % 2 if level > 2 else level - 1, bar)
    go = bar.crowded + (bar.good - bar.crowded) * good_if_i_go(lower_chance, bar)
    return float(go > bar.home)


def deviation(game: Any, record: Steps) -> Measured:
    going, bar = record["actions"], Bar.of(game)
    return regret(going, bar), distance(going, bar) / bar.players


def gain_on_copies(q: float, bar: Bar, reply: bool | None = None) -> tuple[float, bool]:
    """Return the gain of going or staying (by default the better) if all go with `q`, and which."""
    go = bar.crowded + (bar.good - bar.crowded) * good_if_i_go(q, bar)
    reply = bool(go > bar.home) if reply is None else reply
    return (go if reply else bar.home) - (q * go + (1 - q) * bar.home), reply


def exploitability(game: Any, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    return gain_on_copies(float(flat(steps["actions"])[seat].mean()), Bar.of(game), reply)


def rational(game: Any) -> Claim:
    chance = mixed_equilibrium(Bar.of(game))
    sentence = f"goes with probability {chance:.4f}, the symmetric equilibrium of a round"
    return Claim("equilibrium", sentence + "; there are others" * (0 < chance < 1))


def replies(game: Any) -> list[str]:
    return ["rational", "best_response", "fixed:go", "fixed:stay", "cooperative"]


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the sum of utilities; in every equilibrium each seat has at least that of staying."""
    going, bar = steps["actions"], Bar.of(game)
    goers, rounds, n = going.sum(axis=0), going.shape[-1], bar.players
    best = bar.capacity * bar.good + (n - bar.capacity) * bar.home
    full = bar.capacity == n
    worst, lowest = (n * bar.home, best) if full else (n * bar.crowded, n * bar.home)
    each = np.where(goers <= bar.capacity, bar.good, bar.crowded)
    total = (goers * each + (n - goers) * bar.home).sum(axis=-1)
    return total, *(rounds * value for value in (worst, best, lowest, best))
