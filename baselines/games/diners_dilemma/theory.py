"""Diner's dilemma: costly (1) dominates cheap (0) if many pay the bill (Glance & Huberman 1994).

It is better for ``players > (costly_price - cheap_price) / (costly_utility - cheap_utility)``,
where these are above 0; all would rather have the cheap dish where the prices differ by more than
the utilities.
"""

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Self

import numpy as np

from llm_games.baselines.regret import Claim, Measured, Parts, Steps, flat
from llm_games.rulebook import PerPlayer, PerTable


@dataclass(frozen=True)
class Menu:
    """Prices and tastes of the two dishes, for a table of `players`."""

    players: int
    cheap_price: float | Fraction = 10
    cheap_utility: float | Fraction = 15
    costly_price: float | Fraction = 20
    costly_utility: float | Fraction = 20

    @classmethod
    def of(cls, game: Any) -> Self:
        return cls(*(getattr(game, field.name) for field in fields(cls)))

    def scaled_gain(self) -> float | Fraction:
        """Return `players` times the gain of costly over cheap, whatever the others order."""
        taste = self.costly_utility - self.cheap_utility
        return self.players * taste - (self.costly_price - self.cheap_price)


def best_response(menu: Menu) -> int:
    return int(menu.scaled_gain() > 0)


def regret(orders: PerPlayer, menu: Menu) -> PerPlayer:
    wrong = np.asarray(orders) != best_response(menu)
    return wrong * abs(float(menu.scaled_gain() / menu.players))


def distance(orders: PerPlayer, menu: Menu) -> PerTable:
    wrong = np.asarray(orders) != best_response(menu)
    return wrong.sum(axis=0) if menu.scaled_gain() else np.zeros(wrong.shape[1:], np.int64)


def optimum(menu: Menu) -> int:
    """Return the order that is best for all if everybody makes it; cheap if both are."""
    cheap, costly = menu.cheap_utility - menu.cheap_price, menu.costly_utility - menu.costly_price
    return int(costly > cheap)


def deviation(game: Any, record: Steps) -> Measured:
    orders, menu = record["actions"], Menu.of(game)
    return regret(orders, menu), distance(orders, menu) / menu.players


def exploitability(game: Any, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    """Return a best reply's gain on a seat's own play, which does not depend on the others'."""
    return float(flat(deviation(game, steps)[0])[seat].mean()), ()


def rational(game: Any) -> Claim:
    menu = Menu.of(game)
    if menu.scaled_gain() == 0:
        return Claim("equilibrium", "orders cheap; both dishes earn the same")
    dish = "costly" if best_response(menu) else "cheap"
    return Claim("equilibrium", f"orders {dish}, the dominant strategy of a round")


def replies(game: Any) -> list[str]:
    return ["rational", "fixed:cheap", "fixed:costly"]


def welfare(game: Any, steps: Steps) -> Parts:
    orders, menu = steps["actions"], Menu.of(game)
    cheap = float(menu.cheap_utility - menu.cheap_price)
    costly = float(menu.costly_utility - menu.costly_price)
    total = np.where(orders, costly, cheap).sum(axis=(0, -1))
    worst, best = (orders.shape[-1] * menu.players * x for x in sorted((cheap, costly)))
    if menu.scaled_gain() == 0:
        return total, worst, best, worst, best
    played = orders.shape[-1] * menu.players * (costly if best_response(menu) else cheap)
    return total, worst, best, played, played
