"""Diner's dilemma: the bill is shared equally, so the costly dish is dominant if many share it.

Orders are 1 (costly) or 0 (cheap), ``(players, *batch)``. Background: Glance & Huberman 1994.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from llm_games.rulebook import Array


@dataclass(frozen=True)
class Menu:
    """Prices and tastes of the two dishes, for a table of `players`."""

    players: int
    cheap_price: float | Fraction = 10
    cheap_utility: float | Fraction = 15
    costly_price: float | Fraction = 20
    costly_utility: float | Fraction = 20

    def scaled_gain(self) -> float | Fraction:
        """Return `players` times the gain of costly over cheap: exact for exact prices."""
        taste = self.costly_utility - self.cheap_utility
        return self.players * taste - (self.costly_price - self.cheap_price)

    def gain(self) -> float:
        """Return what ordering costly instead of cheap brings, whatever the others order."""
        return float(self.scaled_gain() / self.players)


def best_response(menu: Menu) -> int:
    """Return the order that is best against any others; cheap if both are equally good."""
    return int(menu.scaled_gain() > 0)


def regret(orders: Array, menu: Menu) -> Array:
    """Return what each seat lost by its order, float64 ``(players, *batch)``."""
    wrong = np.asarray(orders) != best_response(menu)
    return wrong * abs(menu.gain())


def nash_conv(orders: Array, menu: Menu) -> Array:
    """Return the sum of the seats' regrets, ``(*batch)``."""
    return regret(orders, menu).sum(axis=0)


def distance(orders: Array, menu: Menu) -> Array:
    """Return how many seats must change their order to reach an equilibrium, ``(*batch)``."""
    wrong = np.asarray(orders) != best_response(menu)
    return wrong.sum(axis=0) if menu.scaled_gain() else np.zeros(wrong.shape[1:], np.int64)


def optimum(menu: Menu) -> int:
    """Return the order that is best for all if everybody makes it; cheap if both are."""
    cheap, costly = menu.cheap_utility - menu.cheap_price, menu.costly_utility - menu.costly_price
    return int(costly > cheap)


def efficiency(orders: Array, menu: Menu) -> Array:
    """Return welfare between the worst (0) and the best (1) possible, ``(*batch)``."""
    cheap, costly = menu.cheap_utility - menu.cheap_price, menu.costly_utility - menu.costly_price
    right = (np.asarray(orders) == optimum(menu)).mean(axis=0)
    return right if cheap != costly else np.ones_like(right)
