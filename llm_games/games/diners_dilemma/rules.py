"""The diner's dilemma: order the dish that is too dear for you, if all split the bill?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.disguise import Surface
from llm_games.errors import BadParameter
from llm_games.facts import Fact, exact_of, in_units, param
from llm_games.games.diners_dilemma.surface import SURFACE
from llm_games.questions import Choice
from llm_games.replies import bare
from llm_games.rounds import LastActions, Paid, Rounds, Seen
from llm_games.rulebook import Goal, PerPlayer, PerTable

CHEAP, COSTLY = 0, 1


@dataclass(frozen=True)
class DinersDilemma(Rounds):
    """Diner's dilemma. Source: γ-Bench (arXiv 2403.11807), game 5; Glance & Huberman 1994.

    Each round everybody orders the costly dish (1) or the cheap one (0) and pays an equal part
    of the bill. Payoff: the utility of the own dish minus that part. A missing or illegal
    order counts as cheap. Warns if the numbers make no dilemma, which needs that the costly dish
    is worse alone and better with a shared bill.
    """

    name: ClassVar[str] = "diners_dilemma"
    title: ClassVar[str] = "Diner's dilemma"
    source: ClassVar[str] = "γ-Bench"
    shared_goal: ClassVar[Goal] = Goal(unit="points")
    surface: ClassVar[Surface] = SURFACE
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "gamma_bench": {},
        "gamma_bench_authors": {"unknown_dish": "costly"},
    }

    cheap_price: int | Fraction = param(10, "price of the cheap dish", read=exact_of)
    cheap_utility: int | Fraction = param(15, "its utility, in units of money", read=exact_of)
    costly_price: int | Fraction = param(20, "more than `cheap_price`", read=exact_of)
    costly_utility: int | Fraction = param(20, "more than `cheap_utility`", read=exact_of)
    unknown_dish: str = param(
        "rule_break", rule_break="any other word is", costly="it is costly", stakes="changed"
    )

    def check(self) -> None:
        for kind in ("price", "utility"):
            cheap, costly = getattr(self, f"cheap_{kind}"), getattr(self, f"costly_{kind}")
            if costly <= cheap:
                raise BadParameter(
                    f"costly_{kind} must be more than cheap_{kind}, got {costly} and {cheap}"
                )
        if not (self.dearer_alone and self.gain > 0):
            warnings.warn(
                f"no dilemma: alone the costly dish is {'worse' if self.dearer_alone else 'best'}, "
                f"and with {self.players} players ordering it instead of the cheap one "
                f"changes the own utility by {self.gain}",
                stacklevel=3,
            )

    @property
    def largest(self) -> int:
        """The largest difference between the bill and all utilities, in the common denominator."""
        return 2 * self.players * max(map(abs, self._scaled))

    @cached_property
    def _scaled(self) -> tuple[int, ...]:
        """A common denominator, and the prices and utilities multiplied by it."""
        values = (self.cheap_price, self.costly_price, self.cheap_utility, self.costly_utility)
        numbers, unit = in_units(values)
        return unit, *numbers

    @property
    def dearer_alone(self) -> bool:
        """The costly dish is the worse one for somebody who pays for it alone."""
        return self.costly_utility - self.costly_price < self.cheap_utility - self.cheap_price

    @property
    def gain(self) -> Fraction:
        """The gain from ordering costly instead of cheap, whatever the others do."""
        price = Fraction(self.costly_price - self.cheap_price, self.players)
        return self.costly_utility - self.cheap_utility - price

    def bounds(self) -> tuple[int, int]:
        return CHEAP, COSTLY

    def bill(self, dishes: PerPlayer) -> PerTable:
        unit, cheap, costly, *_ = self._scaled
        return (self.players * cheap + (costly - cheap) * dishes.sum(axis=0)) / unit

    def utility(self, dishes: PerPlayer) -> PerPlayer:
        unit, cheap, costly, modest, fine = self._scaled
        bill = self.players * cheap + (costly - cheap) * dishes.sum(axis=0)
        taste = np.where(dishes == COSTLY, fine, modest)
        return (self.players * taste - bill) / (self.players * unit)

    def pay(self, state: LastActions, dishes: PerPlayer, broke: PerPlayer) -> Paid:
        record = {"costly": dishes.sum(axis=0), "bill": self.bill(dishes)}
        return self.utility(dishes), {"actions": dishes}, record

    def known(self) -> Sequence[Fact]:
        n, dishes, begun = self.players, (lambda s: s.actions), (lambda s: s.round > 0)
        bill = lambda s: begun(s) * self.bill(s.actions)
        low, high = min(float(self.cheap_price), 0.0), max(float(self.costly_price), 0.0)
        worst, best = self.stake
        return (
            self.now,
            Fact("dish", dishes, 0, 1, "own order last round, 1 = costly"),
            Fact("utility", lambda s: begun(s) * self.utility(s.actions), min(worst, 0.0),
                 max(best, 0.0), "own utility of the last round"),
            Fact("costly", lambda s: s.actions.sum(axis=0), 0, n, "costly orders last round"),
            Fact("bill", bill, low * n, high * n, "bill of the last round, money"),
            Fact("share", lambda s: bill(s) / n, low, high, "own part of that bill, money"),
        )  # fmt: skip

    def in_words(self, last: dict[str, Any]) -> dict[str, Any]:
        dish = "costly" if last["dish"] == COSTLY else "cheap"
        return last | {"dish": dish, "cheap": self.players - last["costly"]}

    def terms(self) -> dict[str, Any]:
        return super().terms() | {"dearer_alone": self.dearer_alone}

    @property
    def stake(self) -> tuple[float, float]:
        low, high = min(float(self.cheap_price), 0.0), max(float(self.costly_price), 0.0)
        return float(self.cheap_utility) - high, float(self.costly_utility) - low

    def asks(self, state: LastActions, seat: int) -> Choice:
        return self._question

    @cached_property
    def _question(self) -> Choice:
        other = COSTLY if self.unknown_dish == "costly" else None
        return Choice("chosen_dish", {"costly": COSTLY, "cheap": CHEAP}, other, published=bare)

    def spectacle(self, state: LastActions) -> Seen:
        dishes, blank = state.actions, (np.full(self.players, ""), "")
        if not state.round:
            return "", {"dish": blank, "utility": blank}
        ordered = np.where(dishes == COSTLY, "costly", "cheap")
        caption = f"{int(dishes.sum())} costly orders, bill {float(self.bill(dishes)):.2f}"
        return caption, {"dish": (ordered, ""), "utility": (self.utility(dishes), ".2f")}
