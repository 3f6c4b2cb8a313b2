"""Games of equal rounds in which all move together: a game says its rules, the rest follows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.facts import NUMBERS_ONLY, Draw, Fact, param
from llm_games.random_end import CONTINUATION, MOST_ROUNDS, cap_of, continuation_of, last_of
from llm_games.rulebook import Array, Outcome, PerPlayer, PerTable, Played, Rulebook, State

Seen = tuple[str, Mapping[str, tuple[Array, str]]]  # a caption, and columns, each with its format
Paid = tuple[PerPlayer, Mapping[str, Any], Mapping[str, Any]]
"""Payoffs of a round, changes of the state, rows of the record."""


@dataclass(frozen=True)
class LastActions(State):
    """A state of nothing but the last round's actions, 0 before there was one."""

    actions: PerPlayer


@dataclass(frozen=True)
class Rounds(Rulebook):
    """A game of rounds; it defines `bounds`, `begin`, `pay`, `known`, `asks` and `spectacle`."""

    state_type: ClassVar[type[State]] = LastActions

    rounds: int = param(20, "rounds of a run, known to the players", low=1, high=MOST_ROUNDS)

    @abstractmethod
    def pay(self, state: Any, actions: PerPlayer, broke: PerPlayer) -> Paid:
        """Return payoffs, changes of the state and what else to record; `actions` are mended."""

    @abstractmethod
    def spectacle(self, state: Any) -> Seen:
        """Return a caption and the columns of a spectator's table."""

    def in_words(self, last: dict[str, Any]) -> dict[str, Any] | None:
        """Rewrite what a seat is told of the last round, plain values by fact, for prompts."""
        return last

    @property
    def heading(self) -> str:
        return self.title

    @property
    def out_of(self) -> str:
        """What a spectator reads after a round's number."""
        return f" of {self.rounds}"

    @property
    def stake(self) -> tuple[float, float]:
        """The least and the most that a seat can be paid in a round; infinite: no limit."""
        return -np.inf, np.inf

    @property
    def payable(self) -> tuple[float, float]:
        low, high = self.stake
        return self.rounds * min(low, 0.0), self.rounds * max(high, 0.0)

    def asked(self, state: Any) -> Array:
        return self.alive(state)

    def play(self, state: Any, actions: Array, broke: Array) -> Played:
        payoffs, changes, record = self.pay(state, actions, broke)
        rounds_played = state.round + 1
        over = self.ended(state, rounds_played)
        next_state = state.replace(round=rounds_played, over=over, **changes)
        return next_state, Outcome(payoffs, self.everybody(over), {"actions": actions, **record})

    def ended(self, state: Any, rounds_played: PerTable) -> PerTable:
        """Return the tables that are over after so many rounds, bool."""
        return rounds_played >= self.rounds

    @property
    def now(self) -> Fact:
        """The fact of the round to play, which all such games tell."""
        last, meaning = self.rounds + 1, "round to play; rounds + 1 at the end"
        return Fact("round", lambda s: s.round + 1, 1, last, meaning, said=NUMBERS_ONLY)

    @property
    def seat(self) -> Fact:
        """The own seat, for games that tell of all by seat."""
        return Fact("seat", self.seats, 0, self.players - 1, "own seat", said=NUMBERS_ONLY)

    @cached_property
    def _told_facts(self) -> list[tuple[int, str, bool, bool, Fact]]:
        facts = [(k, fact) for k, fact in enumerate(self.facts) if fact.said != NUMBERS_ONLY]
        return [(k, f.said or f.name, f.now, bool(f.each), f) for k, f in facts]

    def teller(self, state: Any) -> Callable[[int], dict[str, Any]]:
        """Tell the round and its facts, and under ``last`` those of the last round."""
        values = self.traced and self.traced.facts(state)
        round_fact = self.fact_index["round"][0]
        rounds_played = values[round_fact] - 1 if values else int(state.round)
        current: dict[str, Any] = {"round": min(rounds_played + 1, self.rounds), "last": None}
        last: dict[str, Any] = {"round": rounds_played}
        own: list[tuple[bool, str, Any]] = []  # facts that differ by seat: whether of this round
        for index, name, now, each, fact in self._told_facts:
            if now or rounds_played:
                value = values[index] if values else fact.of(state).tolist()
                if type(value) is list and not each:
                    own.append((now, name, value))
                else:
                    (current if now else last)[name] = value

        def tell(seat: int) -> dict[str, Any]:
            told, told_last = current.copy(), last.copy()
            for is_now, name, values in own:
                (told if is_now else told_last)[name] = values[seat]
            if rounds_played:
                told["last"] = self.in_words(told_last)
            return told

        return tell

    def picture(self, state: Any) -> tuple[str, list[str], list[list[str]]]:
        caption, columns = self.spectacle(state)
        cells = ([format(v, form) for v in values.tolist()] for values, form in columns.values())
        rows = [list(row) for row in zip(self.names(), *cells, strict=True)]
        begun = f"{self.heading}: round {int(state.round)}{self.out_of}"
        return f"{begun}, {caption}" if caption else begun, ["seat", *columns], rows


@dataclass(frozen=True)
class OpenState(State):
    """Base of states of `OpenRounds`; `last_round` is 0 where the number of rounds is fixed."""

    last_round: PerTable


@dataclass(frozen=True)
class LastOpenActions(OpenState):
    """The last round's actions, 0 before there was one, in a game that may end at random."""

    actions: PerPlayer


@dataclass(frozen=True)
class OpenRounds(Rounds):
    """Rounds after each of which another may follow by chance; its state is an `OpenState`.

    Where `continuation` is below 1, `rounds` is only a cap that no player is told: to `terms` it is
    None.
    """

    state_type: ClassVar[type[State]] = LastOpenActions
    usual_rounds: ClassVar[int] = 1

    rounds: int = param(
        None,
        "rounds of a run, known to the players; with `continuation` an untold cap",
        low=1,
        high=MOST_ROUNDS,
        none="the usual number; with `continuation` the least cap that is hardly ever reached",
    )
    continuation: Fraction = param(Fraction(1), CONTINUATION, read=continuation_of)

    def check(self) -> None:
        cap = cap_of("rounds", self.rounds, self.usual_rounds, self.continuation)
        object.__setattr__(self, "rounds", cap)

    def _exact_by(self, name: str, value: Any) -> bool:
        if name == "rounds":
            value = cap_of(name, None, self.usual_rounds, self.continuation)
        return super()._exact_by(name, value)

    @property
    def open(self) -> bool:
        return self.continuation < 1

    def draws(self) -> Sequence[Draw]:
        return (last_of("last_round", self.rounds, self.continuation),) if self.open else ()

    def ended(self, state: Any, rounds_played: PerTable) -> PerTable:
        return rounds_played >= (state.last_round if self.open else self.rounds)

    @property
    def out_of(self) -> str:
        return "" if self.open else super().out_of

    def terms(self) -> dict[str, Any]:
        return super().terms() | {"rounds": None if self.open else self.rounds}
