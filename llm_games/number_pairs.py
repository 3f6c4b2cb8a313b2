"""Games of one number against another: both seats name one, at the same time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from llm_games.errors import BadParameter
from llm_games.facts import LARGEST, Fact, param
from llm_games.questions import POINTS, Integer
from llm_games.rounds import LastOpenActions, OpenRounds, Paid, Seen
from llm_games.rulebook import Array, PerPlayer


@dataclass(frozen=True)
class NumberPair(OpenRounds):
    """Rounds of two numbers from `low` to `high`; a game defines `paid`, `stake` and `fallback`."""

    noun: ClassVar[str]  # what a number is called, also in replies

    players: int = param(2, "number of players, always 2", low=2, high=2)
    low: int = param(0, "lowest number", low=0, high=LARGEST)
    high: int = param(1, "highest number, above the lowest", low=1, high=LARGEST)

    def check(self) -> None:
        super().check()
        if self.low >= self.high:
            raise BadParameter(f"high must be above low, {self.low}, got {self.high}")

    @property
    def payoff_unit(self) -> int:
        """How many whole units of payoffs are 1."""
        return 1

    def bounds(self) -> tuple[int, int]:
        return self.low, self.high

    @abstractmethod
    def paid(self, numbers: Array, others: Array) -> Array:
        """Return the payoffs of numbers against the other's, of any shapes, float64; 0 of zeros."""

    def pay(self, state: LastOpenActions, numbers: PerPlayer, broke: PerPlayer) -> Paid:
        return self.paid(numbers, numbers[::-1]), {"actions": numbers}, {}

    def known(self) -> Sequence[Fact]:
        low, high, noun = min(self.stake[0], 0.0), self.stake[1], self.noun
        own, other = (lambda s: s.actions), (lambda s: s.actions[::-1])
        return (
            self.now,
            Fact(noun, own, 0, self.high, f"own {noun} of the last round"),
            Fact("other", other, 0, self.high, f"the other's {noun} of it"),
            Fact("payoff", lambda s: self.paid(own(s), other(s)), low, high, "own payoff of it"),
        )

    def asks(self, state: LastOpenActions, seat: int) -> Integer:
        return Integer(self.noun, self.low, self.high, units=POINTS)

    def spectacle(self, state: LastOpenActions) -> Seen:
        numbers = state.actions
        paid = self.paid(numbers, numbers[::-1])
        return "", {self.noun: (numbers, "d"), "payoff": (paid, "g")}
