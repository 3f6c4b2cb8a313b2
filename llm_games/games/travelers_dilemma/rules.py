"""The traveler's dilemma: two claims; both are paid the lower one, whoever made it is rewarded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from llm_games.facts import LARGEST, param, ratio_of
from llm_games.number_pairs import NumberPair
from llm_games.rounds import LastOpenActions
from llm_games.rulebook import Array, Goal, PerPlayer


@dataclass(frozen=True)
class TravelersDilemma(NumberPair):
    """Traveler's dilemma. Source: Basu 1994; Goeree & Holt 2001; Capra et al. 1999.

    Each round both claim an amount. Equal claims are paid; else the lower one gets its claim and
    `reward`, the other the lower claim less `reward`. A missing or illegal claim counts as `low`.
    """

    name: ClassVar[str] = "travelers_dilemma"
    title: ClassVar[str] = "Traveler's dilemma"
    source: ClassVar[str] = "Basu 1994"
    noun: ClassVar[str] = "claim"
    shared_goal: ClassVar[Goal] = Goal(unit="points")
    kept_by_presets: ClassVar[tuple[str, ...]] = ("reward",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "basu": {},
        "goeree_holt_10": {"low": 80, "high": 200, "reward": 10},
        "goeree_holt_25": {"low": 80, "high": 200, "reward": 25},
        "goeree_holt_50": {"low": 80, "high": 200, "reward": 50},
    }

    low: int = param(2, "lowest claim", low=0, high=LARGEST)
    high: int = param(100, "highest claim, above the lowest", low=1, high=LARGEST)
    reward: Fraction = param(
        Fraction(2), "what the lower claim gains, the higher loses", read=ratio_of
    )

    @property
    def payoff_unit(self) -> int:
        return self.reward.denominator

    @property
    def largest(self) -> int:
        return self.rounds * (self.payoff_unit * self.high + self.reward.numerator)

    def fallback(self, state: LastOpenActions) -> PerPlayer:
        return np.full((self.players, *state.round.shape), self.low, np.int64)

    def paid(self, claims: Array, others: Array) -> Array:
        p, q = self.reward.as_integer_ratio()
        # One division of exact integers, so that a batch and a table agree to the last bit.
        return (q * np.minimum(claims, others) + p * np.sign(others - claims)) / q

    @property
    def stake(self) -> tuple[float, float]:
        reward = float(self.reward)
        return self.low - reward, max(self.high, self.high - 1 + reward)
