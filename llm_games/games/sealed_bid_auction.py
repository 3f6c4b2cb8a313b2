"""The sealed-bid auction: one item a round, private valuations, first or second price."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.errors import BadParameter
from llm_games.questions import Integer, Question
from llm_games.rulebook import (
    LARGEST_DISCRETE,
    Array,
    Column,
    Outcome,
    Rulebook,
    State,
    check_choice,
    check_integer,
)

LARGEST = 2**53
"""Where bids have no other limit: the largest integer that a double holds exactly."""


@dataclass(frozen=True)
class SealedBidAuctionState(State):
    """What a table looks like between rounds.

    Attributes:
        valuations: of all rounds, int64 ``(rounds, players, *batch)``.
        lots: one number in [0, 1) a round that decides a tie, ``(rounds, *batch)``.
        bids: last round's, int64 ``(players, *batch)``; zeros before the first.
        winner: last round's seat, int64 ``(*batch)``; -1 before the first.
        price: what the winner paid, int64 ``(*batch)``; 0 before the first.
    """

    valuations: Array
    lots: Array
    bids: Array
    winner: Array
    price: Array


@dataclass(frozen=True)
class SealedBidAuction(Rulebook):
    """Sealed-bid auction. Source: γ-Bench (arXiv 2403.11807), game 6; Vickrey 1961.

    Each round every player knows its own valuation ``v`` of the item and bids ``b``, all at the
    same time. The highest bid wins (a tie is decided by lot) and pays the highest bid (`price`
    ``first``) or the second-highest (``second``). Payoff: ``v - price`` for the winner, else 0.
    A missing or illegal bid counts as 0.
    """

    name: ClassVar[str] = "sealed_bid_auction"
    title: ClassVar[str] = "Sealed-bid auction"
    source: ClassVar[str] = "γ-Bench"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"gamma_bench": {}}

    rounds: int = 20
    """rounds of a run (one item each), known to the players, at least 1"""
    price: str = "first"
    """the winner pays the highest bid (``first``) or the second-highest (``second``)"""
    valuation_min: int = 0
    """smallest possible valuation, at least 0"""
    valuation_max: int = 200
    """largest possible valuation, more than `valuation_min`"""
    interval: int = 10
    """step between valuations; divides their range, which needs a step for each player"""
    seed: int = 42
    """of the seeded valuations: round ``t`` uses ``random.Random(seed + t - 1)``"""
    valuation_draw: str = "seeded"
    """``seeded``: the same valuations at every table; ``random``: drawn anew for each table"""
    valuations: tuple[tuple[int, ...], ...] | None = None
    """given valuations, a row of `players` integers for each round, or None to draw them"""
    bid_range: str = "own_value"
    """``own_value``: 0 to the own valuation; ``unbounded``: any integer"""
    tie_rng: str = "own"
    """``own``: ties are decided by the table's generator; ``shared``: by the one that drew the
    round's seeded valuations, directly after them"""
    number_parse: str = "strict"
    """``strict``: whole numbers only; ``truncate``: fractions are cut towards zero"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("rounds", self.rounds, 1)
        check_choice("price", self.price, ("first", "second"))
        check_integer("valuation_min", self.valuation_min, 0)
        check_integer("valuation_max", self.valuation_max, self.valuation_min + 1, 10**9)
        check_integer("seed", self.seed, -(2**63))
        check_choice("valuation_draw", self.valuation_draw, ("seeded", "random"))
        check_choice("bid_range", self.bid_range, ("own_value", "unbounded"))
        check_choice("tie_rng", self.tie_rng, ("own", "shared"))
        check_choice("number_parse", self.number_parse, ("strict", "truncate"))
        if self.valuations is None:
            self._check_grid()
        else:
            object.__setattr__(self, "valuations", self._given(self.valuations))
        if self.tie_rng == "shared" and (self.valuations or self.valuation_draw == "random"):
            raise BadParameter('tie_rng "shared" needs seeded valuations; use tie_rng "own"')

    def _check_grid(self) -> None:
        check_integer("interval", self.interval, 1)
        steps, rest = divmod(self.valuation_max - self.valuation_min, self.interval)
        if rest or steps + 1 < self.players:
            raise BadParameter(
                f"interval must divide valuation_max - valuation_min "
                f"({self.valuation_max - self.valuation_min}) into at least {self.players - 1} "
                f"steps (distinct valuations for {self.players} players), got {self.interval!r}"
            )

    def _given(self, rows: Any) -> tuple[tuple[int, ...], ...]:
        shape = f"{self.rounds} rows (rounds) of {self.players} integers"
        try:
            table = tuple(tuple(row) for row in rows)
        except TypeError:
            raise BadParameter(f"valuations must be {shape}, got {rows!r}") from None
        if len(table) != self.rounds or any(len(row) != self.players for row in table):
            lengths = [len(row) for row in table]
            raise BadParameter(f"valuations must be {shape}, got rows of the lengths {lengths}")
        for value in (value for row in table for value in row):
            check_integer("each of the valuations", value, self.valuation_min, self.valuation_max)
        return tuple(tuple(int(value) for value in row) for row in table)

    @cached_property
    def _generators(self) -> list[tuple[list[int], tuple[Any, ...]]]:
        """Each round's seeded valuations, and the generator's state after drawing them."""
        grid = range(self.valuation_min, self.valuation_max + self.interval, self.interval)
        drawn = []
        for t in range(self.rounds):
            generator = random.Random(self.seed + t)
            drawn.append((generator.sample(grid, self.players), generator.getstate()))
        return drawn

    @cached_property
    def _shared_lots(self) -> Array:
        """Index into the candidates of each round, ``(rounds, candidates)``."""
        lots = np.zeros((self.rounds, self.players + 1), np.int64)
        generator = random.Random()
        for t, (_, after) in enumerate(self._generators):
            for count in range(2, self.players + 1):
                generator.setstate(after)
                lots[t, count] = generator.randint(0, count - 1)
        return lots

    @property
    def masked(self) -> bool:  # type: ignore[override]
        """Whether a seat's legal bids, up to its valuation, are shown as a mask."""
        return self.bid_range == "own_value" and self.valuation_max < LARGEST_DISCRETE

    def bounds(self) -> tuple[int, int]:
        unbounded = self.bid_range == "unbounded"
        return (-LARGEST, LARGEST) if unbounded else (0, self.valuation_max)

    def reset(self, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> SealedBidAuctionState:
        return SealedBidAuctionState(
            round=np.zeros(batch, np.int64),
            over=np.zeros(batch, np.bool_),
            void=np.zeros(batch, np.bool_),
            valuations=self._draw(rng, batch),
            lots=rng.random((self.rounds, *batch)),
            bids=np.zeros((self.players, *batch), np.int64),
            winner=np.full(batch, -1, np.int64),
            price=np.zeros(batch, np.int64),
        )

    def _draw(self, rng: np.random.Generator, batch: tuple[int, ...]) -> Array:
        if self.valuations is None and self.valuation_draw == "random":
            steps = (self.valuation_max - self.valuation_min) // self.interval
            picks = _distinct(rng, self.players, steps + 1, (self.rounds, *batch))
            return np.moveaxis(self.valuation_min + self.interval * picks, 0, 1)
        rows = self.valuations or [sample for sample, _ in self._generators]
        table = np.array(rows, np.int64).reshape(self.rounds, self.players, *(1 for _ in batch))
        return np.broadcast_to(table, (self.rounds, self.players, *batch))

    def valuation(self, state: SealedBidAuctionState, ago: int = 0) -> Array:
        """Return the valuations this round, or `ago` rounds before, ``(players, *batch)``."""
        t = np.clip(state.round - ago, 0, self.rounds - 1)
        return np.take_along_axis(state.valuations, t[None, None], axis=0)[0]

    def asked(self, state: SealedBidAuctionState) -> Array:
        return self.alive(state)

    def legal(self, state: SealedBidAuctionState) -> tuple[Array, Array]:
        if self.bid_range == "unbounded":
            return super().legal(state)
        high = self.valuation(state)
        return np.zeros_like(high), high

    def play(
        self,
        state: SealedBidAuctionState,
        actions: Array,
        rng: np.random.Generator,
        broke: Array,
    ) -> tuple[SealedBidAuctionState, Outcome]:
        first = actions.max(axis=0)
        winner = self._winner(state, actions == first)
        price = first if self.price == "first" else np.partition(actions, -2, axis=0)[-2]
        after = SealedBidAuctionState(
            round=state.round + 1,
            over=state.round + 1 >= self.rounds,
            void=state.void,
            valuations=state.valuations,
            lots=state.lots,
            bids=actions,
            winner=winner,
            price=price,
        )
        utility = self.utility(after)
        record = {
            "actions": actions,
            "valuations": self.valuation(state),
            "winner": winner,
            "price": price,
            "utility": utility,
        }
        finished = np.broadcast_to(after.over, actions.shape)
        return after, Outcome(utility.astype(np.float64), finished, record)

    def _winner(self, state: SealedBidAuctionState, candidates: Array) -> Array:
        t = np.minimum(state.round, self.rounds - 1)
        count = candidates.sum(axis=0)
        if self.tie_rng == "shared":
            index = self._shared_lots[t, count]
        else:  # a lot below 1 times a count stays below the count, in doubles too
            lot = np.take_along_axis(state.lots, t[None], axis=0)[0]
            index = (lot * count).astype(np.int64)
        return (candidates & (candidates.cumsum(axis=0) == index + 1)).argmax(axis=0)

    def utility(self, state: SealedBidAuctionState) -> Array:
        """Return what the last round brought each player, int64 ``(players, *batch)``."""
        seats = np.arange(self.players).reshape(-1, *(1 for _ in np.shape(state.round)))
        return np.where(seats == state.winner, self.valuation(state, ago=1) - state.price, 0)

    def columns(self) -> tuple[Column, ...]:
        low, high = self.valuation_min, self.valuation_max
        free = self.bid_range == "unbounded"
        least, most = (-np.inf, np.inf) if free else (0, high)
        return (
            Column("round", 1, self.rounds + 1, "round to play; rounds + 1 at the end"),
            Column("valuation", low, high, "own valuation of this round's item"),
            Column("last_valuation", 0, high, "own valuation last round"),
            Column("bid", least, most, "own bid last round"),
            Column("winning_bid", least, most, "highest bid last round"),
            Column("price", least, most, "what the winner paid last round"),
            Column("won", 0, 1, "1: won last round"),
            Column("utility", least, most, "own utility last round"),
        )

    def observe(self, state: SealedBidAuctionState) -> Array:
        shape = state.bids.shape
        seats = np.arange(self.players).reshape(-1, *(1 for _ in shape[1:]))
        columns = (
            state.round + 1,
            self.valuation(state),
            np.where(state.round > 0, self.valuation(state, ago=1), 0),
            state.bids,
            state.bids.max(axis=0),
            state.price,
            seats == state.winner,
            self.utility(state),
        )
        rows = np.empty((*shape, len(columns)), np.float32)
        for i, column in enumerate(columns):
            rows[..., i] = column
        return rows

    def told(self, state: SealedBidAuctionState, player: int) -> dict[str, Any]:
        done = int(state.round)
        last = None
        if done:
            last = {
                "round": done,
                "valuation": int(self.valuation(state, ago=1)[player]),
                "bid": int(state.bids[player]),
                "winning_bid": int(state.bids.max()),
                "price": int(state.price),
                "won": int(state.winner) == player,
                "utility": int(self.utility(state)[player]),
            }
        own = int(self.valuation(state)[player])
        return {"round": min(done + 1, self.rounds), "own": own, "last": last}

    def question(self, state: SealedBidAuctionState, player: int) -> Question | None:
        if state.over:
            return None
        truncate = self.number_parse == "truncate"
        if self.bid_range == "unbounded":
            return Integer("bid", None, None, truncate)
        return Integer("bid", 0, int(self.valuation(state)[player]), truncate)

    def picture(self, state: SealedBidAuctionState) -> tuple[str, list[str], list[list[str]]]:
        done = int(state.round)
        caption = f"{self.title} ({self.price} price): round {done} of {self.rounds}"
        if done:
            caption += f", {self.names()[int(state.winner)]} pays {int(state.price)}"
        bids, utility = state.bids, self.utility(state)
        rows = [
            [name, str(v), str(b) if done else "", str(u) if done else ""]
            for name, v, b, u in zip(
                self.names(), self.valuation(state, ago=min(done, 1)), bids, utility, strict=True
            )
        ]
        return caption, ["seat", "valuation", "bid", "utility"], rows


def _distinct(rng: np.random.Generator, count: int, size: int, shape: tuple[int, ...]) -> Array:
    """Draw `count` distinct integers below `size` in random order, ``(count, *shape)``."""
    picks = np.empty((count, *shape), np.int64)
    for i in range(count):
        pick = rng.integers(0, size - i, shape)
        for earlier in np.sort(picks[:i], axis=0):  # skip what is taken, from below
            pick = pick + (pick >= earlier)
        picks[i] = pick
    return picks
