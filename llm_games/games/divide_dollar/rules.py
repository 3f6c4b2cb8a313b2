"""Divide the dollar: all bid for a part, and get nothing if the bids exceed the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from llm_games.disguise import Surface
from llm_games.facts import Fact, param
from llm_games.games.divide_dollar.surface import SURFACE
from llm_games.questions import MONEY, Integer, alike
from llm_games.replies import bare
from llm_games.rounds import LastActions, Paid, Rounds, Seen
from llm_games.rulebook import LARGEST, Goal, PerPlayer


@dataclass(frozen=True)
class DivideDollar(Rounds):
    """Divide the dollar. Source: γ-Bench (arXiv 2403.11807), game 3; Shapley & Shubik 1969.

    Each round all bid for a part of `golds`. If the bids add up to at most `golds`, everybody
    receives its bid and the rest is lost; else all receive 0. A missing or illegal bid counts
    as 0.
    """

    name: ClassVar[str] = "divide_dollar"
    title: ClassVar[str] = "Divide the dollar"
    source: ClassVar[str] = "γ-Bench"
    shared_goal: ClassVar[Goal] = Goal(unit="coins")
    surface: ClassVar[Surface] = SURFACE
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "gamma_bench": {},
        "gamma_bench_authors": {"bid_range": "unbounded", "number_parse": "truncate"},
    }

    golds: int = param(100, "amount to divide each round", low=1, high=10**9)
    bid_range: str = param("strict", strict="0 to `golds`", unbounded="any integer")
    number_parse: str = param(
        "strict", strict="whole numbers only", truncate="fractions are cut", stakes="changed"
    )

    @property
    def largest(self) -> int:
        return self.players * self.bounds()[1]

    def bounds(self) -> tuple[int, int]:
        free = LARGEST // self.players
        return (0, self.golds) if self.bid_range == "strict" else (-free, free)

    def receipts(self, bids: PerPlayer) -> PerPlayer:
        return np.where(bids.sum(axis=0) <= self.golds, bids, 0)

    def pay(self, state: LastActions, bids: PerPlayer, broke: PerPlayer) -> Paid:
        receipts = self.receipts(bids)
        record = {"sum": bids.sum(axis=0), "receipts": receipts}
        return receipts.astype(np.float64), {"actions": bids}, record

    def known(self) -> Sequence[Fact]:
        (low, high), n = self.bounds(), self.players
        total, got = (lambda s: s.actions.sum(axis=0)), (lambda s: self.receipts(s.actions))
        over = lambda s: s.actions.sum(axis=0) > self.golds
        return (
            self.now,
            Fact("bid", lambda s: s.actions, low, high, "own bid last round, golds"),
            Fact("sum", total, n * low, n * high, "sum of all bids last round"),
            Fact("exceeded", over, 0, 1, "1 if that sum was more than there is to divide"),
            Fact("receipt", got, low, high, "own receipt of the last round, golds"),
        )

    @property
    def pot(self) -> float:
        return self.rounds * float(self.golds) if self.bid_range == "strict" else np.inf

    @property
    def stake(self) -> tuple[float, float]:
        return (0.0, float(self.golds)) if self.bid_range == "strict" else (-np.inf, np.inf)

    def asks(self, state: LastActions, seat: int) -> Integer:
        low, high = (None, None) if self.bid_range == "unbounded" else self.bounds()
        cut, units = self.number_parse == "truncate", ("coin", "coins", *MONEY)
        return alike(Integer, "bid_amount", low, high, cut, published=bare, units=units)

    def spectacle(self, state: LastActions) -> Seen:
        bids = state.actions
        caption = f"bids add up to {int(bids.sum())} of {self.golds}"
        return caption, {"bid": (bids, "d"), "received": (self.receipts(bids), "d")}
