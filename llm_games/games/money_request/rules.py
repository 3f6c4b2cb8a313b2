"""The money request game: ask for an amount, and get a bonus for one less than the other asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from llm_games.errors import BadParameter
from llm_games.facts import LARGEST, Fact, param
from llm_games.questions import Integer
from llm_games.rounds import LastOpenActions, OpenRounds, Paid, Seen
from llm_games.rulebook import Array, Goal, PerPlayer


@dataclass(frozen=True)
class MoneyRequest(OpenRounds):
    """11-20 money request game. Source: Arad & Rubinstein 2012.

    Each round both ask for an amount and get it; who asks for exactly one less than the other gets
    `bonus` more. A missing or illegal request counts as `high`.
    """

    name: ClassVar[str] = "money_request"
    title: ClassVar[str] = "Money request game"
    source: ClassVar[str] = "Arad & Rubinstein 2012"
    shared_goal: ClassVar[Goal] = Goal(unit="points")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "arad_rubinstein": {},
        "five_rounds": {"rounds": 5},
    }

    players: int = param(2, "number of players, always 2", low=2, high=2)
    low: int = param(11, "lowest request", low=0, high=LARGEST)
    high: int = param(20, "highest request, above the lowest", low=1, high=LARGEST)
    bonus: int = param(20, "what one less than the other's request gains", low=0, high=10**9)

    def check(self) -> None:
        super().check()
        if self.low >= self.high:
            raise BadParameter(f"high must be above low, {self.low}, got {self.high}")

    @property
    def largest(self) -> int:
        return self.rounds * (self.high + self.bonus)

    def bounds(self) -> tuple[int, int]:
        return self.low, self.high

    def fallback(self, state: LastOpenActions) -> PerPlayer:
        return np.full((self.players, *state.round.shape), self.high, np.int64)

    def paid(self, requests: Array, others: Array) -> Array:
        """Return the payoffs of requests against the other's, of any shapes."""
        return (requests + self.bonus * (requests == others - 1)).astype(np.float64)

    def pay(self, state: LastOpenActions, requests: PerPlayer, broke: PerPlayer) -> Paid:
        return self.paid(requests, requests[::-1]), {"actions": requests}, {}

    def known(self) -> Sequence[Fact]:
        payoff = lambda s: self.paid(s.actions, s.actions[::-1])
        return (
            self.now,
            Fact("request", lambda s: s.actions, 0, self.high, "own request of the last round"),
            Fact("other", lambda s: s.actions[::-1], 0, self.high, "the other's request of it"),
            Fact("payoff", payoff, 0, self.stake[1], "own payoff of it"),
        )

    @property
    def stake(self) -> tuple[float, float]:
        return float(self.low), float(max(self.high, self.high - 1 + self.bonus))

    def asks(self, state: LastOpenActions, seat: int) -> Integer:
        return Integer("request", self.low, self.high)

    def spectacle(self, state: LastOpenActions) -> Seen:
        requests = state.actions
        return "", {
            "request": (requests, "d"),
            "payoff": (self.paid(requests, requests[::-1]), "g"),
        }
