"""The minimum effort game: all are paid for the lowest effort, and each pays for its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.errors import BadParameter
from llm_games.facts import LARGEST, Fact, exact_of, in_units, param, ratio_of
from llm_games.questions import Integer
from llm_games.rounds import LastOpenActions, OpenRounds, Paid, Seen
from llm_games.rulebook import Array, Goal, PerPlayer


@dataclass(frozen=True)
class MinimumEffort(OpenRounds):
    """Minimum effort game. Source: Van Huyck, Battalio & Beil 1990; Goeree & Holt 2005.

    Each round all choose an effort; a payoff is ``benefit * lowest - cost * own + base``. A missing
    or illegal effort counts as `low`, which all feel: ``void_run`` may be better for scores.
    """

    name: ClassVar[str] = "minimum_effort"
    title: ClassVar[str] = "Minimum effort game"
    source: ClassVar[str] = "Van Huyck et al. 1990"
    usual_rounds: ClassVar[int] = 10
    shared_goal: ClassVar[Goal] = Goal(unit="points")
    kept_by_presets: ClassVar[tuple[str, ...]] = ("cost",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "van_huyck": {"players": 14},
        "van_huyck_free": {"players": 14, "cost": 0},
        **{
            f"goeree_holt_{percent}": {
                "players": 2,
                "low": 110,
                "high": 170,
                "benefit": 1,
                "cost": Fraction(percent, 100),
                "base": 0,
            }
            for percent in (25, 75)
        },
    }

    players: int = param(4, "number of players", low=2, high=1000)
    low: int = param(1, "lowest effort", low=0, high=LARGEST)
    high: int = param(7, "highest effort, above the lowest", low=1, high=LARGEST)
    benefit: Fraction = param(Fraction(20), "payoff for each unit of the lowest", read=ratio_of)
    cost: Fraction = param(Fraction(10), "cost of each unit of the own effort", read=ratio_of)
    base: Fraction = param(60, "payoff of a round beside these", read=exact_of)
    reveal: str = param(
        "minimum", "told of the last round", minimum="the lowest effort", all="all efforts"
    )

    def check(self) -> None:
        super().check()
        if self.low >= self.high:
            raise BadParameter(f"high must be above low, {self.low}, got {self.high}")
        if not self.benefit:
            raise BadParameter(f"benefit must be above 0, got {self.benefit}")

    @cached_property
    def parts(self) -> tuple[int, int, int, int]:
        """Benefit, cost and base in whole units, and how many of these are 1."""
        (benefit, cost, base), unit = in_units((self.benefit, self.cost, self.base))
        return benefit, cost, base, unit

    @property
    def largest(self) -> int:
        benefit, cost, base, unit = self.parts
        return self.rounds * ((benefit + cost) * self.high + abs(base) + unit)

    def bounds(self) -> tuple[int, int]:
        return self.low, self.high

    def fallback(self, state: LastOpenActions) -> PerPlayer:
        return np.full((self.players, *state.round.shape), self.low, np.int64)

    def paid(self, lowest: Array, efforts: Array) -> Array:
        """Return the payoffs of efforts where the lowest of all, these among them, is known."""
        benefit, cost, base, unit = self.parts
        # One division of exact integers, so that a batch and a table agree to the last bit.
        return (benefit * lowest - cost * efforts + base) / unit

    def pay(self, state: LastOpenActions, efforts: PerPlayer, broke: PerPlayer) -> Paid:
        return self.paid(efforts.min(axis=0), efforts), {"actions": efforts}, {}

    def known(self) -> Sequence[Fact]:
        low, high = self.stake
        own, lowest = (lambda s: s.actions), (lambda s: s.actions.min(axis=0))
        payoff = lambda s: self.paid(lowest(s), own(s)) * (s.round > 0)
        facts = (
            self.now,
            Fact("effort", own, 0, self.high, "own effort of the last round"),
            Fact("lowest", lowest, 0, self.high, "lowest effort of it"),
            Fact("payoff", payoff, min(low, 0.0), max(high, 0.0), "own payoff of it"),
        )
        if self.reveal == "minimum":
            return facts
        return (*facts, Fact("effort", own, 0, self.high, "seat {}", True, said="efforts"))

    @property
    def stake(self) -> tuple[float, float]:
        ends = (self.paid(np.array(self.low), np.array(e)) for e in (self.low, self.high))
        highest = self.paid(np.array(self.high), np.array(self.high))
        low, other = (float(end) for end in ends)
        return min(low, other), max(low, float(highest))

    def asks(self, state: LastOpenActions, seat: int) -> Integer:
        return Integer("effort", self.low, self.high)

    def spectacle(self, state: LastOpenActions) -> Seen:
        efforts, lowest = state.actions, state.actions.min(axis=0)
        paid = self.paid(lowest, efforts) * (state.round > 0)
        caption = f"the lowest effort was {int(lowest)}" if state.round else ""
        return caption, {"effort": (efforts, "d"), "payoff": (paid, "g")}
