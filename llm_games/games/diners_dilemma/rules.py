"""The diner's dilemma: order the dish that is too dear for you, if all split the bill?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.errors import BadParameter
from llm_games.facts import Column, check_choice, check_integer, exact_of
from llm_games.questions import Choice, Question
from llm_games.replies import bare
from llm_games.rulebook import Array, Outcome, Rulebook, State, fresh, side_by_side

CHEAP, COSTLY = 0, 1


@dataclass(frozen=True)
class DinersDilemmaState(State):
    """What a table looks like between rounds.

    Attributes:
        dishes: last round's orders, int64 ``(players, *batch)``, 1 = costly; zeros before it.
    """

    dishes: Array


@dataclass(frozen=True)
class DinersDilemma(Rulebook):
    """Diner's dilemma. Source: γ-Bench (arXiv 2403.11807), game 5; Glance & Huberman 1994.

    Each round everybody orders the costly dish (1) or the cheap one (0) and pays an equal part
    of the bill. Payoff: the utility of the own dish minus that part. A missing or illegal
    order counts as cheap. Warns if the numbers make no dilemma, which needs that the costly dish
    is worse alone and better with a shared bill.
    """

    name: ClassVar[str] = "diners_dilemma"
    title: ClassVar[str] = "Diner's dilemma"
    source: ClassVar[str] = "γ-Bench"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"gamma_bench": {}}

    rounds: int = 20
    """rounds of a run, known to the players, at least 1"""
    cheap_price: int | Fraction = 10
    """price of the cheap dish"""
    cheap_utility: int | Fraction = 15
    """utility of the cheap dish, in units of money"""
    costly_price: int | Fraction = 20
    """price of the costly dish, more than `cheap_price`"""
    costly_utility: int | Fraction = 20
    """utility of the costly dish, more than `cheap_utility`"""
    unknown_dish: str = "rule_break"
    """any other word is a ``rule_break``, or counts as ``costly``"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("rounds", self.rounds, 1)
        for name in ("cheap_price", "cheap_utility", "costly_price", "costly_utility"):
            object.__setattr__(self, name, exact_of(name, getattr(self, name)))
        for kind in ("price", "utility"):
            cheap, costly = getattr(self, f"cheap_{kind}"), getattr(self, f"costly_{kind}")
            if costly <= cheap:
                raise BadParameter(
                    f"costly_{kind} must be more than cheap_{kind}, got {costly} and {cheap}"
                )
        check_choice("unknown_dish", self.unknown_dish, ("rule_break", "costly"))
        _, prices, utilities = self._scaled
        if 2 * self.players * max(map(abs, (*prices, *utilities))) >= 2**62:
            raise BadParameter(
                f"prices and utilities up to {max(self.costly_price, self.costly_utility)} with "
                f"{self.players} players are too large or too fine for exact integers; round them"
            )
        if not (self.dearer_alone and self.gain > 0):
            warnings.warn(
                f"no dilemma: alone the costly dish is {'worse' if self.dearer_alone else 'best'}, "
                f"and with {self.players} players ordering it instead of the cheap one "
                f"changes the own utility by {self.gain}",
                stacklevel=3,
            )

    @cached_property
    def _scaled(self) -> tuple[int, tuple[int, int], tuple[int, int]]:
        """Return a common denominator, and the prices and utilities multiplied by it."""
        prices = Fraction(self.cheap_price), Fraction(self.costly_price)
        utilities = Fraction(self.cheap_utility), Fraction(self.costly_utility)
        unit = math.lcm(*(value.denominator for value in (*prices, *utilities)))
        cheap, costly, taste, better = (int(value * unit) for value in (*prices, *utilities))
        return unit, (cheap, costly), (taste, better)

    @property
    def dearer_alone(self) -> bool:
        """Whether the costly dish is the worse one for somebody who pays for it alone."""
        return self.costly_utility - self.costly_price < self.cheap_utility - self.cheap_price

    @property
    def gain(self) -> Fraction:
        """What a player gains by ordering costly instead of cheap, whatever the others do."""
        price = Fraction(self.costly_price - self.cheap_price, self.players)
        return self.costly_utility - self.cheap_utility - price

    def bounds(self) -> tuple[int, int]:
        return CHEAP, COSTLY

    def reset(self, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> DinersDilemmaState:
        return DinersDilemmaState(
            **fresh(batch),
            dishes=np.zeros((self.players, *batch), np.int64),
        )

    def asked(self, state: DinersDilemmaState) -> Array:
        return self.alive(state)

    def bill(self, dishes: Array) -> Array:
        """Return the bill, float64 ``(*batch)``."""
        return self._bill(dishes) / self._scaled[0]

    def _bill(self, dishes: Array) -> Array:
        _, (cheap, costly), _ = self._scaled
        return self.players * cheap + (costly - cheap) * dishes.sum(axis=0)

    def utility(self, dishes: Array) -> Array:
        """Return everybody's utility of a round, float64 ``(players, *batch)``."""
        unit, _, (cheap, costly) = self._scaled
        taste = np.where(dishes == COSTLY, costly, cheap)
        return (self.players * taste - self._bill(dishes)) / (self.players * unit)

    def play(
        self, state: DinersDilemmaState, actions: Array, rng: np.random.Generator, broke: Array
    ) -> tuple[DinersDilemmaState, Outcome]:
        after = DinersDilemmaState(
            round=state.round + 1,
            over=state.round + 1 >= self.rounds,
            void=state.void,
            dishes=actions,
        )
        record = {"actions": actions, "costly": actions.sum(axis=0), "bill": self.bill(actions)}
        finished = self.everybody(after.over)
        return after, Outcome(self.utility(actions), finished, record)

    def columns(self) -> tuple[Column, ...]:
        best, worst = float(self.costly_utility), float(self.cheap_utility)
        prices = float(self.cheap_price), float(self.costly_price)
        low, high = min(prices[0], 0.0), max(prices[1], 0.0)
        return (
            Column("round", 1, self.rounds + 1, "round to play; rounds + 1 at the end"),
            Column("dish", 0, 1, "own order last round, 1 = costly"),
            Column(
                "utility",
                min(worst - high, 0.0),
                max(best - low, 0.0),
                "own utility of the last round",
            ),
            Column("costly", 0, self.players, "costly orders last round"),
            Column(
                "bill", low * self.players, high * self.players, "bill of the last round, money"
            ),
            Column("share", low, high, "own part of that bill, money"),
        )

    def observe(self, state: DinersDilemmaState) -> Array:
        shape = state.dishes.shape
        begun = state.round > 0
        bill = begun * self.bill(state.dishes)
        columns = [
            state.round + 1,
            state.dishes,
            begun * self.utility(state.dishes),
            state.dishes.sum(axis=0),
            bill,
            bill / self.players,
        ]
        return side_by_side(shape, columns)

    def told(self, state: DinersDilemmaState, player: int) -> dict[str, Any]:
        done = int(state.round)
        last = None
        if done:
            costly = int(state.dishes.sum())
            bill = float(self.bill(state.dishes))
            last = {
                "round": done,
                "dish": "costly" if state.dishes[player] == COSTLY else "cheap",
                "utility": float(self.utility(state.dishes)[player]),
                "costly": costly,
                "cheap": self.players - costly,
                "bill": bill,
                "share": bill / self.players,
            }
        return {"round": min(done + 1, self.rounds), "last": last}

    def terms(self) -> dict[str, Any]:
        return super().terms() | {"dearer_alone": self.dearer_alone}

    def question(self, state: DinersDilemmaState, player: int) -> Question | None:
        if state.over:
            return None
        other = COSTLY if self.unknown_dish == "costly" else None
        return Choice("chosen_dish", {"costly": COSTLY, "cheap": CHEAP}, other, published=bare)

    def picture(self, state: DinersDilemmaState) -> tuple[str, list[str], list[list[str]]]:
        headers = ["seat", "dish", "utility"]
        caption = f"{self.title}: round {int(state.round)} of {self.rounds}"
        if not state.round:
            return caption, headers, [[name, "", ""] for name in self.names()]
        bill = float(self.bill(state.dishes))
        caption += f", {int(state.dishes.sum())} costly orders, bill {bill:.2f}"
        rows = [
            [name, "costly" if dish == COSTLY else "cheap", f"{utility:.2f}"]
            for name, dish, utility in zip(
                self.names(), state.dishes, self.utility(state.dishes), strict=True
            )
        ]
        return caption, headers, rows
