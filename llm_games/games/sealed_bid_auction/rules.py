"""The sealed-bid auction: one item a round, private valuations, first or second price."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.arrays import Array, at, looked_up
from llm_games.errors import BadParameter
from llm_games.facts import LAW, Draw, Fact, check_integer, fixed, has_law, param, rows_of
from llm_games.noise import Noise
from llm_games.questions import Integer, alike
from llm_games.rounds import Paid, Rounds, Seen
from llm_games.rulebook import LARGEST, Chance, Goal, PerPlayer, PerTable, State


@dataclass(frozen=True)
class SealedBidAuctionState(State):
    """Valuations ``(rounds, players, *batch)``, ties' lots ``(rounds, *batch)``; last round's."""

    valuations: Array
    lots: Array
    bids: PerPlayer
    winner: PerTable
    price: PerTable
    utility: PerPlayer


@dataclass(frozen=True)
class SealedBidAuction(Rounds):
    """Sealed-bid auction. Source: γ-Bench (arXiv 2403.11807), game 6; Vickrey 1961.

    Each round every player knows its own valuation ``v`` of the item and bids ``b``, all at the
    same time. The highest bid wins (a tie is decided by lot) and pays the highest bid (`price`
    ``first``) or the second-highest (``second``). Payoff: ``v - price`` for the winner, else 0.
    A missing or illegal bid counts as 0.
    """

    name: ClassVar[str] = "sealed_bid_auction"
    title: ClassVar[str] = "Sealed-bid auction"
    source: ClassVar[str] = "γ-Bench"
    shared_goal: ClassVar[Goal] = Goal(unit="profits")
    narrows: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "gamma_bench": {},
        "gamma_bench_authors": {
            "bid_range": "unbounded",
            "number_parse": "truncate",
            "tie_rng": "shared",
        },
    }

    price: str = param("first", first="the winner pays its bid", second="the second-highest bid")
    valuation_min: int = param(0, "smallest possible valuation", low=0, **LAW)
    valuation_max: int = param(200, "largest, more than `valuation_min`", low=1, high=10**9, **LAW)
    interval: int = param(10, "step between valuations, a divisor of their range", low=1, **LAW)
    seed: int = param(
        42,
        "round ``t`` uses ``random.Random(seed + t - 1)``",
        low=-(2**63),
        high=2**63,
        hidden=True,
    )
    valuation_draw: str = param(
        "seeded", seeded="the same for all tables", random="of each table", hidden=True
    )
    valuations: tuple[tuple[int, ...], ...] | None = param(
        None, "a row a round", none="drawn", hidden=True
    )
    tell_prior: bool = param(False, "bidders are told how valuations are drawn")
    bid_range: str = param("own_value", own_value="0 to the own valuation", unbounded="any integer")
    tie_rng: str = param(
        "own", own="the table's lots", shared="the generator of the valuations", hidden=True
    )
    number_parse: str = param(
        "strict", strict="whole numbers only", truncate="fractions are cut", stakes="changed"
    )

    @classmethod
    def instead(cls, preset: str | None, parameters: Mapping[str, Any]) -> str | None:
        """Redirect former presets with assets to the game that has them now."""
        session = (preset or "").startswith("econ_arena") or parameters.get("assets") is not None
        return "budget_auction" if session else None

    def check(self) -> None:
        low, high = self.valuation_min, self.valuation_max
        check_integer("valuation_max", high, low + 1, 10**9)
        if self.valuations is not None:
            rows = rows_of("valuations", self.valuations, self.rounds, self.players, low, high)
            object.__setattr__(self, "valuations", rows)
        elif (high - low) % self.interval or (high - low) // self.interval + 1 < self.players:
            raise BadParameter(
                f"interval must divide valuation_max - valuation_min ({high - low}) into at least "
                f"{self.players - 1} steps (distinct valuations for {self.players} players), got "
                f"{self.interval!r}"
            )
        has_law(self, self.valuations is None)
        if self.tie_rng == "shared" and (self.valuations or self.valuation_draw == "random"):
            raise BadParameter('tie_rng "shared" needs seeded valuations; use tie_rng "own"')

    @property
    def repeated(self) -> str:
        drawn = self.valuations is None and self.valuation_draw == "random"
        return "" if drawn else "valuations"

    def draws(self) -> Sequence[Draw]:
        return (
            Draw("valuations", self._values, self.valuation_min, self.valuation_max, out=1),
            Draw("lots", lambda noise: noise.random((self.rounds,)), 0, 1 - 2.0**-53, out=0),
        )

    def _values(self, noise: Noise) -> Array:
        if self.valuations is None and self.valuation_draw == "random":
            steps = (self.valuation_max - self.valuation_min) // self.interval
            picks = noise.sample(steps + 1, self.players, (self.rounds,))
            return np.moveaxis(self.valuation_min + self.interval * picks, 0, 1)
        return fixed(self._table)(noise)

    @cached_property
    def _table(self) -> Array:
        """Valuations that are the same at every table, given or seeded, ``(rounds, players)``."""
        return np.array(self.valuations or [row for row, _ in self._generators], np.int64)

    @cached_property
    def _generators(self) -> list[tuple[list[int], tuple[Any, ...]]]:
        """Each round's seeded valuations, and the generator's state after drawing them."""
        grid = range(self.valuation_min, self.valuation_max + self.interval, self.interval)
        each = [random.Random(self.seed + t) for t in range(self.rounds)]
        return [(generator.sample(grid, self.players), generator.getstate()) for generator in each]

    @cached_property
    def _shared_lots(self) -> Array:
        """Index into the candidates of each round, ``(rounds, candidates)``."""
        lots = np.zeros((self.rounds, self.players + 1), np.int64)
        generator = random.Random()
        for t, (_, generator_state) in enumerate(self._generators):
            for count in range(2, self.players + 1):
                generator.setstate(generator_state)
                lots[t, count] = generator.randint(0, count - 1)
        return lots

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> SealedBidAuctionState:
        return self.first(SealedBidAuctionState, batch, winner=-1, **chance)

    def valuation(self, state: SealedBidAuctionState, ago: int = 0) -> PerPlayer:
        return at(state.valuations, np.minimum(np.maximum(state.round - ago, 0), self.rounds - 1))

    def bounds(self) -> tuple[int, int]:
        free = LARGEST - self.valuation_max  # so that what is won or lost is exact
        return (0, self.valuation_max) if self.bid_range == "own_value" else (-free, free)

    @cached_property
    def same_limits(self) -> bool:
        return self.bid_range == "unbounded"

    def highest_legal(self, state: SealedBidAuctionState) -> PerPlayer:
        return super().highest_legal(state) if self.same_limits else self.valuation(state)

    def pay(self, state: SealedBidAuctionState, bids: PerPlayer, broke: PerPlayer) -> Paid:
        values, highest = self.valuation(state), bids.max(axis=0)
        price = highest if self.price == "first" else np.partition(bids, -2, axis=0)[-2]
        won = self._wins(state, bids == highest)
        utility, winner = np.where(won, values - price, 0), won.argmax(axis=0)
        sale = {"winner": winner, "price": price, "utility": utility}
        return utility.astype(np.float64), {**sale, "bids": bids}, {**sale, "valuations": values}

    def _wins(self, state: SealedBidAuctionState, candidates: PerPlayer) -> PerPlayer:
        """Return the winner among the candidates, one at each table, by lot, bool."""
        t = np.minimum(state.round, self.rounds - 1)
        count = candidates.sum(axis=0)
        if self.tie_rng == "shared":
            index = looked_up(self._shared_lots.ravel(), t * (self.players + 1) + count)
        else:  # a lot below 1 times a count stays below the count, in doubles too
            index = (at(state.lots, t) * count).astype(np.int64)
        return candidates & (candidates.cumsum(axis=0) == index + 1)

    def known(self) -> Sequence[Fact]:
        low, high = self.valuation_min, self.valuation_max
        lower, upper = (-np.inf, np.inf) if self.bid_range == "unbounded" else (0, high)
        last = lambda s: self.valuation(s, ago=1) * (s.round > 0)
        best = lambda s: s.bids.max(axis=0)
        return (
            self.now,
            Fact("valuation", self.valuation, low, high, "own valuation of this round's item",
                 said="own", now=True),
            Fact("last_valuation", last, 0, high, "own valuation last round", said="valuation"),
            Fact("bid", lambda s: s.bids, lower, upper, "own bid last round"),
            Fact("winning_bid", best, lower, upper, "highest bid last round"),
            Fact("price", lambda s: s.price, lower, upper, "what the winner paid last round"),
            Fact("won", lambda s: self.seats(s) == s.winner, 0, 1, "1: won last round"),
            Fact("utility", lambda s: s.utility, lower, upper, "own utility last round"),
        )  # fmt: skip

    @property
    def pot(self) -> float:
        return self.rounds * self.stake[1]  # an item a round

    @property
    def stake(self) -> tuple[float, float]:
        free = self.bid_range == "unbounded"
        return (-np.inf, np.inf) if free else (0.0, float(self.valuation_max))

    def asks(self, state: SealedBidAuctionState, seat: int) -> Integer:
        high = None if self.same_limits else int(self.valuation(state)[seat])
        low, cut = None if high is None else 0, self.number_parse == "truncate"
        return alike(Integer, "bid", low, high, cut)

    @property
    def heading(self) -> str:
        return f"{self.title} ({self.price} price)"

    def sold(
        self, previous_state: SealedBidAuctionState, next_state: SealedBidAuctionState
    ) -> list[str]:
        buyer, price = int(next_state.winner), next_state.price
        worth = self.valuation(next_state, ago=1)[buyer]
        return [f"{self.names()[buyer]} wins for {price}, worth {worth} to it"]

    def spectacle(self, state: SealedBidAuctionState) -> Seen:
        begun = bool(state.round)
        caption = f"{self.names()[state.winner]} pays {state.price}" if begun else ""
        return caption, {
            "valuation": (self.valuation(state, ago=int(begun)), ""),
            "bid": (np.where(begun, state.bids.astype(str), ""), ""),
            "utility": (np.where(begun, state.utility.astype(str), ""), ""),
        }
