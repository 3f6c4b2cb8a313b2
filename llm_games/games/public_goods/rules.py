"""The linear public goods game: keep your tokens, or put them into a pot that all share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.disguise import Surface
from llm_games.facts import Draw, Fact, check_integer, param, ratio_of
from llm_games.games.public_goods.surface import SURFACE
from llm_games.questions import Integer, alike
from llm_games.rounds import Paid, Rounds, Seen
from llm_games.rulebook import LARGEST, Chance, Goal, PerPlayer, State


@dataclass(frozen=True)
class PublicGoodsState(State):
    """Tokens to spend this round; last round's contributions, and tokens held after it."""

    endowment: PerPlayer
    contributions: PerPlayer
    tokens: PerPlayer


@dataclass(frozen=True)
class PublicGoods(Rounds):
    """Public goods game. Source: γ-Bench (arXiv 2403.11807), game 4; Samuelson 1954.

    Each round every player puts ``c`` of its ``e`` tokens into the pot ``P``, which is
    multiplied by `ratio` and shared out equally; that leaves it ``w = e - c + ratio * P / n``.
    Payoff of a round: ``w``, or what is more than before where tokens are carried on, ``w - e``
    (in round 1 ``w``), so that payoffs add up to all that one gets, or in the end has.
    A missing or illegal contribution counts as 0.
    """

    name: ClassVar[str] = "public_goods"
    title: ClassVar[str] = "Public goods game"
    source: ClassVar[str] = "γ-Bench"
    edition: ClassVar[int] = 3
    surface: ClassVar[Surface] = SURFACE
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "gamma_bench": {},
        "gamma_bench_authors": {"contribution_range": "unbounded", "number_parse": "truncate"},
    }

    tokens: int = param(20, "endowment of each player in each round", low=1, high=10**9)
    ratio: Fraction = param(Fraction(2), "factor on the pot; a dilemma from 1 to n", read=ratio_of)
    endowment: str = param("reset", reset="rounds start afresh", carry="with what one holds")
    initial_tokens: str = param("fixed", fixed="`tokens`", random="distinct, from `rand_min` on")
    rand_min: int = param(11, "lower end for ``random``, 0 to ``tokens - players + 1``")
    contribution_range: str = param("strict", strict="0 to the own", unbounded="any integer")
    number_parse: str = param(
        "strict", strict="whole numbers only", truncate="fractions are cut", stakes="changed"
    )

    def check(self) -> None:
        if self.initial_tokens == "random":
            check_integer("rand_min", self.rand_min, 0, self.tokens - self.players + 1)

    def draws(self) -> Sequence[Draw]:
        if self.initial_tokens == "fixed":
            return ()
        low, span = self.rand_min, self.tokens - self.rand_min + 1
        drawn = lambda noise: low + noise.order(span)[: self.players]
        return (Draw("endowments", drawn, low, self.tokens),)

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> PublicGoodsState:
        start = chance.get("endowments", np.full((self.players, *batch), self.tokens, np.int64))
        start = start if self.endowment == "reset" else start.astype(np.float64)
        return self.first(PublicGoodsState, batch, endowment=start, contributions=int, tokens=float)

    @property
    def largest(self) -> int:
        """The largest ``share * w`` in `pay`; wealth can grow by the ratio each round."""
        (p, q), all_tokens = self.ratio.as_integer_ratio(), self.players * self.tokens
        if self.contribution_range == "unbounded":
            return self._per_token * self.tokens + q * all_tokens
        if self.endowment == "carry":
            growth = self.rounds * math.log(max(Fraction(1), self.ratio))
            return (self.players * q + p) * all_tokens * math.ceil(math.exp(min(growth, 50)))
        return (p + q) * all_tokens

    @property
    def _per_token(self) -> int:
        """The increase of ``share * w`` if all give one more token in all rounds that add up."""
        rounds = self.rounds + 1 if self.endowment == "carry" else 1
        return self.players * sum(self.ratio.as_integer_ratio()) * rounds

    def bounds(self) -> tuple[int, int]:
        if self.contribution_range == "unbounded":  # but as far as it is exact
            start = self.ratio.denominator * self.players * self.tokens
            free = (LARGEST - start) // self._per_token
            return -free, free
        return 0, self.tokens if self.endowment == "reset" else LARGEST

    @cached_property
    def same_limits(self) -> bool:
        fixed = self.endowment == "reset" and self.initial_tokens == "fixed"
        return fixed or self.contribution_range == "unbounded"

    def highest_legal(self, state: PublicGoodsState) -> PerPlayer:
        if self.same_limits:
            return super().highest_legal(state)
        return np.floor(state.endowment).astype(np.int64)

    def pay(self, state: PublicGoodsState, gifts: PerPlayer, broke: PerPlayer) -> Paid:
        p, share = self.ratio.numerator, self.players * self.ratio.denominator
        pot = gifts.sum(axis=0)
        # One division of exact integers, so that a batch and a table agree to the last bit.
        tokens = (share * (state.endowment - gifts) + p * pot) / share
        record = {"endowment": state.endowment, "pot": pot, "tokens": tokens}
        changes = {"endowment": state.endowment, "contributions": gifts, "tokens": tokens}
        if self.endowment == "reset":
            return tokens, changes, record
        earlier_tokens = np.where(state.round > 0, state.endowment, 0)
        return tokens - earlier_tokens, changes | {"endowment": tokens}, record

    def gain(self, state: PublicGoodsState) -> PerPlayer:
        """Return each player's net gain from the last pot, ``ratio * P / n - c``."""
        p, share = self.ratio.numerator, self.players * self.ratio.denominator
        return (p * state.contributions.sum(axis=0) - share * state.contributions) / share

    def known(self) -> Sequence[Fact]:
        low, high, upper = 0.0, float(self.tokens), float(self.tokens * (1 + self.ratio))
        if self.endowment == "carry" or self.contribution_range == "unbounded":
            low, high, upper = -np.inf, np.inf, np.inf
        gift, tokens = (lambda s: s.contributions), (lambda s: s.tokens)
        each = "seat {}, last round"
        endowment, pot = (lambda s: s.endowment), (lambda s: s.contributions.sum(axis=0))
        return (
            self.now,
            Fact("own", endowment, low, high, "own endowment this round, tokens", now=True),
            Fact("contribution", gift, low, high, "own contribution last round, tokens"),
            Fact("gain", self.gain, -high, upper, "own net gain from the pot last round, tokens"),
            Fact("held", tokens, low, upper, "own tokens after the last round", said="tokens"),
            Fact("pot", pot, low, high * self.players, "sum of last round's contributions, tokens"),
            Fact("contribution", gift, low, high, each, True, said="contributions"),
            Fact("held", tokens, low, upper, "tokens of seat {} after it", True, said="all_tokens"),
        )

    @property
    def stake(self) -> tuple[float, float]:
        if self.endowment == "carry" or self.contribution_range == "unbounded":
            return -np.inf, np.inf
        tokens, ratio = float(self.tokens), float(self.ratio)
        least = min(tokens, ratio * tokens / self.players) * (self.initial_tokens == "fixed")
        others = ratio * tokens * (self.players - 1) / self.players
        return least, others + max(tokens, ratio * tokens / self.players)

    @property
    def payable(self) -> tuple[float, float]:
        low = 0.0 if self.contribution_range != "unbounded" else -np.inf
        return (low, np.inf) if self.endowment == "carry" else super().payable

    def goal(self, seat: int) -> Goal:
        return Goal("total" if self.endowment == "reset" else "final", "tokens")

    def asks(self, state: PublicGoodsState, seat: int) -> Integer:
        return self._alike or self._question(int(state.endowment[seat]))

    @cached_property
    def _alike(self) -> Integer | None:
        """The question to every seat at all times, if there is one."""
        return self._question(self.tokens) if self.same_limits else None

    def _question(self, high: int) -> Integer:
        free = self.contribution_range == "unbounded"
        low, top = (None, None) if free else (0, high)
        cut, units = self.number_parse == "truncate", ("token", "tokens")
        return alike(Integer, "tokens_contributed", low, top, cut, units=units)

    def spectacle(self, state: PublicGoodsState) -> Seen:
        return f"pot {int(state.contributions.sum())}", {
            "endowment": (state.endowment, "g"),
            "contributed": (state.contributions, "d"),
            "tokens after": (state.tokens, ".2f"),
        }
