"""The linear public goods game: keep your tokens, or put them into a pot that all share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from llm_games.questions import Integer, Question
from llm_games.rulebook import (
    Array,
    Column,
    Outcome,
    Rulebook,
    State,
    check_choice,
    check_integer,
    fresh,
    ratio_of,
    side_by_side,
)

LARGEST = 2**53
"""Where contributions have no other limit: the largest integer that a double holds exactly."""


@dataclass(frozen=True)
class PublicGoodsState(State):
    """What a table looks like between rounds.

    Attributes:
        endowment: tokens to spend this round, ``(players, *batch)``; int64 (float64 with carry).
        contributions: last round's, int64 ``(players, *batch)``; zeros before the first.
        tokens: held after the last round, float64 ``(players, *batch)``; zeros before the first.
    """

    endowment: Array
    contributions: Array
    tokens: Array


@dataclass(frozen=True)
class PublicGoods(Rulebook):
    """Public goods game. Source: γ-Bench (arXiv 2403.11807), game 4; Samuelson 1954.

    Each round every player puts ``c`` of its ``e`` tokens into the pot ``P``, which is
    multiplied by `ratio` and shared out equally. Payoff of a round: ``e - c + ratio * P / n``.
    A missing or illegal contribution counts as 0.
    """

    name: ClassVar[str] = "public_goods"
    title: ClassVar[str] = "Public goods game"
    source: ClassVar[str] = "γ-Bench"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"gamma_bench": {}}

    rounds: int = 20
    """rounds of a run, known to the players, at least 1"""
    tokens: int = 20
    """endowment of each player in each round, at least 1"""
    ratio: Fraction = Fraction(2)
    """exact factor on the pot, at least 0; a dilemma if 1 < ratio < players"""
    endowment: str = "reset"
    """``reset``: every round starts afresh; ``carry``: with what one holds"""
    initial_tokens: str = "fixed"
    """``fixed``: `tokens` each; ``random``: distinct integers from `rand_min` to `tokens`"""
    rand_min: int = 11
    """lower end for ``random``, 0 to ``tokens - players + 1``"""
    contribution_range: str = "strict"
    """``strict``: 0 to the own endowment; ``unbounded``: any integer"""
    number_parse: str = "strict"
    """``strict``: whole numbers only; ``truncate``: fractions are cut towards zero"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("rounds", self.rounds, 1)
        check_integer("tokens", self.tokens, 1, 10**9)
        object.__setattr__(self, "ratio", ratio_of("ratio", self.ratio))
        check_choice("endowment", self.endowment, ("reset", "carry"))
        check_choice("initial_tokens", self.initial_tokens, ("fixed", "random"))
        if self.initial_tokens == "random":
            check_integer("rand_min", self.rand_min, 0, self.tokens - self.players + 1)
        check_choice("contribution_range", self.contribution_range, ("strict", "unbounded"))
        check_choice("number_parse", self.number_parse, ("strict", "truncate"))

    def bounds(self) -> tuple[int, int]:
        if self.contribution_range == "unbounded":
            return -LARGEST, LARGEST
        return 0, self.tokens if self.endowment == "reset" else LARGEST

    def reset(self, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> PublicGoodsState:
        shape = (self.players, *batch)
        start = np.full(shape, self.tokens, np.int64)
        if self.initial_tokens == "random":
            order = rng.random((self.tokens - self.rand_min + 1, *batch)).argsort(axis=0)
            start = self.rand_min + order[: self.players]
        return PublicGoodsState(
            **fresh(batch),
            endowment=start if self.endowment == "reset" else start.astype(np.float64),
            contributions=np.zeros(shape, np.int64),
            tokens=np.zeros(shape),
        )

    def asked(self, state: PublicGoodsState) -> Array:
        return self.alive(state)

    @cached_property
    def same_limits(self) -> bool:
        fixed = self.endowment == "reset" and self.initial_tokens == "fixed"
        return fixed or self.contribution_range == "unbounded"

    def legal(self, state: PublicGoodsState) -> tuple[Array, Array]:
        if self.same_limits:
            return super().legal(state)
        high = np.floor(state.endowment).astype(np.int64)
        return np.zeros_like(high), high

    def play(
        self, state: PublicGoodsState, actions: Array, rng: np.random.Generator, broke: Array
    ) -> tuple[PublicGoodsState, Outcome]:
        p, share = self._share
        pot = actions.sum(axis=0)
        # One division of exact integers, so that a batch and a table agree to the last bit.
        tokens = (share * (state.endowment - actions) + p * pot) / share
        done = state.round + 1
        over = done >= self.rounds
        after = state.but(
            round=done,
            over=over,
            endowment=tokens if self.endowment == "carry" else state.endowment,
            contributions=actions,
            tokens=tokens,
        )
        record = {"actions": actions, "endowment": state.endowment, "pot": pot, "tokens": tokens}
        return after, Outcome(tokens, self.everybody(over), record)

    @cached_property
    def _share(self) -> tuple[int, int]:
        """Each player's share of the pot as a fraction, ``ratio / players``."""
        return self.ratio.numerator, self.players * self.ratio.denominator

    def gain(self, state: PublicGoodsState) -> Array:
        """Return each player's net gain from the last pot, ``ratio * P / n - c``."""
        p, share = self._share
        return (p * state.contributions.sum(axis=0) - share * state.contributions) / share

    def columns(self) -> tuple[Column, ...]:
        low, high, most = 0.0, float(self.tokens), float(self.tokens * (1 + self.ratio))
        if self.endowment == "carry" or self.contribution_range == "unbounded":
            low, high, most = -np.inf, np.inf, np.inf
        own = (
            Column("round", 1, self.rounds + 1, "round to play; rounds + 1 at the end"),
            Column("own", low, high, "own endowment this round, tokens"),
            Column("contribution", low, high, "own contribution last round, tokens"),
            Column("gain", -high, most, "own net gain from the pot last round, tokens"),
            Column("held", low, most, "own tokens after the last round"),
            Column("pot", low, high * self.players, "sum of last round's contributions, tokens"),
        )
        seats = range(self.players)
        given = (Column(f"contribution_{i}", low, high, f"seat {i}, last round") for i in seats)
        held = (Column(f"held_{i}", low, most, f"tokens of seat {i} after it") for i in seats)
        return (*own, *given, *held)

    def observe(self, state: PublicGoodsState) -> Array:
        given, held = state.contributions, state.tokens
        own = [state.round + 1, state.endowment, given, self.gain(state), held, given.sum(axis=0)]
        return side_by_side(given.shape, [*own, *given, *held])

    def told(self, state: PublicGoodsState, player: int) -> dict[str, Any]:
        done = int(state.round)
        last = None
        if done:
            given, held = state.contributions.tolist(), state.tokens.tolist()
            pot, (p, share) = sum(given), self._share
            last = {
                "round": done,
                "contributions": given,
                "pot": pot,
                "contribution": given[player],
                "gain": (p * pot - share * given[player]) / share,
                "tokens": held[player],
                "all_tokens": held,
            }
        own = state.endowment[player].item()
        return {"round": min(done + 1, self.rounds), "own": own, "last": last}

    def question(self, state: PublicGoodsState, player: int) -> Question | None:
        if state.over:
            return None
        truncate = self.number_parse == "truncate"
        if self.contribution_range == "unbounded":
            return _contribution(None, None, truncate)
        return _contribution(0, int(state.endowment[player]), truncate)

    def picture(self, state: PublicGoodsState) -> tuple[str, list[str], list[list[str]]]:
        pot = int(state.contributions.sum())
        caption = f"{self.title}: round {int(state.round)} of {self.rounds}, pot {pot}"
        rows = [
            [name, f"{have:g}", str(given), f"{held:.2f}"]
            for name, have, given, held in zip(
                self.names(), state.endowment, state.contributions, state.tokens, strict=True
            )
        ]
        return caption, ["seat", "endowment", "contributed", "tokens after"], rows


@lru_cache
def _contribution(low: int | None, high: int | None, truncate: bool) -> Integer:
    return Integer("tokens_contributed", low, high, truncate)
