"""The money request game: ask for an amount, and get a bonus for one less than the other asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from llm_games.facts import LARGEST, param
from llm_games.number_pairs import NumberPair
from llm_games.rounds import LastOpenActions
from llm_games.rulebook import Array, Goal, PerPlayer


@dataclass(frozen=True)
class MoneyRequest(NumberPair):
    """11-20 money request game. Source: Arad & Rubinstein 2012.

    Each round both ask for an amount and get it; who asks for exactly one less than the other gets
    `bonus` more. A missing or illegal request counts as `high`.
    """

    name: ClassVar[str] = "money_request"
    title: ClassVar[str] = "Money request game"
    source: ClassVar[str] = "Arad & Rubinstein 2012"
    noun: ClassVar[str] = "request"
    shared_goal: ClassVar[Goal] = Goal(unit="points")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "arad_rubinstein": {},
        "five_rounds": {"rounds": 5},
    }

    low: int = param(11, "lowest request", low=0, high=LARGEST)
    high: int = param(20, "highest request, above the lowest", low=1, high=LARGEST)
    bonus: int = param(20, "what one less than the other's request gains", low=0, high=10**9)

    @property
    def largest(self) -> int:
        return self.rounds * (self.high + self.bonus)

    def fallback(self, state: LastOpenActions) -> PerPlayer:
        return np.full((self.players, *state.round.shape), self.high, np.int64)

    def paid(self, requests: Array, others: Array) -> Array:
        return (requests + self.bonus * (requests == others - 1)).astype(np.float64)

    @property
    def stake(self) -> tuple[float, float]:
        return float(self.low), float(max(self.high, self.high - 1 + self.bonus))
