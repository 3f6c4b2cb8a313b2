"""The traveler's dilemma: two claims; both are paid the lower one, whoever made it is rewarded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from llm_games.errors import BadParameter
from llm_games.facts import LARGEST, Fact, param, ratio_of
from llm_games.questions import Integer
from llm_games.rounds import LastOpenActions, OpenRounds, Paid, Seen
from llm_games.rulebook import Array, Goal, PerPlayer


@dataclass(frozen=True)
class TravelersDilemma(OpenRounds):
    """Traveler's dilemma. Source: Basu 1994; Goeree & Holt 2001; Capra et al. 1999.

    Each round both claim an amount. Equal claims are paid; else the lower one gets its claim and
    `reward`, the other the lower claim less `reward`. A missing or illegal claim counts as `low`.
    """

    name: ClassVar[str] = "travelers_dilemma"
    title: ClassVar[str] = "Traveler's dilemma"
    source: ClassVar[str] = "Basu 1994"
    shared_goal: ClassVar[Goal] = Goal(unit="points")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "basu": {},
        "goeree_holt_10": {"low": 80, "high": 200, "reward": 10},
        "goeree_holt_25": {"low": 80, "high": 200, "reward": 25},
        "goeree_holt_50": {"low": 80, "high": 200, "reward": 50},
    }

    players: int = param(2, "number of players, always 2", low=2, high=2)
    low: int = param(2, "lowest claim", low=0, high=LARGEST)
    high: int = param(100, "highest claim, above the lowest", low=1, high=LARGEST)
    reward: Fraction = param(
        Fraction(2), "what the lower claim gains, the higher loses", read=ratio_of
    )

    def check(self) -> None:
        super().check()
        if self.low >= self.high:
            raise BadParameter(f"high must be above low, {self.low}, got {self.high}")

    @property
    def largest(self) -> int:
        """Payoffs count in units of ``1 / q``, q the denominator of the reward."""
        p, q = self.reward.as_integer_ratio()
        return self.rounds * (q * self.high + p)

    def bounds(self) -> tuple[int, int]:
        return self.low, self.high

    def fallback(self, state: LastOpenActions) -> PerPlayer:
        return np.full((self.players, *state.round.shape), self.low, np.int64)

    def paid(self, claims: Array, others: Array) -> Array:
        """Return the payoffs of claims against the other's, of any shapes."""
        p, q = self.reward.as_integer_ratio()
        # One division of exact integers, so that a batch and a table agree to the last bit.
        return (q * np.minimum(claims, others) + p * np.sign(others - claims)) / q

    def pay(self, state: LastOpenActions, claims: PerPlayer, broke: PerPlayer) -> Paid:
        return self.paid(claims, claims[::-1]), {"actions": claims}, {}

    def known(self) -> Sequence[Fact]:
        low, high = min(self.stake[0], 0.0), self.stake[1]
        payoff = lambda s: self.paid(s.actions, s.actions[::-1])
        return (
            self.now,
            Fact("claim", lambda s: s.actions, 0, self.high, "own claim of the last round"),
            Fact("other", lambda s: s.actions[::-1], 0, self.high, "the other's claim of it"),
            Fact("payoff", payoff, low, high, "own payoff of it"),
        )

    @property
    def stake(self) -> tuple[float, float]:
        reward = float(self.reward)
        return self.low - reward, max(self.high, self.high - 1 + reward)

    def asks(self, state: LastOpenActions, seat: int) -> Integer:
        return Integer("claim", self.low, self.high)

    def spectacle(self, state: LastOpenActions) -> Seen:
        claims = state.actions
        paid = self.paid(claims, claims[::-1]) * (state.round > 0)
        return "", {"claim": (claims, "d"), "payoff": (paid, "g")}
