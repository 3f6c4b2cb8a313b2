"""Divide the dollar: all bid for a part, and get nothing if the bids exceed the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from llm_games.questions import Integer, Question
from llm_games.replies import bare
from llm_games.rulebook import (
    Array,
    Column,
    Outcome,
    Rulebook,
    State,
    check_choice,
    check_integer,
    fresh,
    side_by_side,
)

LARGEST = 2**53
"""Where bids have no other limit: the largest integer that a double holds exactly."""


@dataclass(frozen=True)
class DivideDollarState(State):
    """What a table looks like between rounds.

    Attributes:
        bids: last round's, int64 ``(players, *batch)``; zeros before the first.
    """

    bids: Array


@dataclass(frozen=True)
class DivideDollar(Rulebook):
    """Divide the dollar. Source: γ-Bench (arXiv 2403.11807), game 3; Shapley & Shubik 1969.

    Each round all bid for a part of `golds`. If the bids add up to at most `golds`, everybody
    receives its bid and the rest is lost; else all receive 0. A missing or illegal bid counts
    as 0.
    """

    name: ClassVar[str] = "divide_dollar"
    title: ClassVar[str] = "Divide the dollar"
    source: ClassVar[str] = "γ-Bench"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"gamma_bench": {}}

    rounds: int = 20
    """rounds of a run, known to the players, at least 1"""
    golds: int = 100
    """amount to divide each round, at least 1"""
    bid_range: str = "strict"
    """``strict``: 0 to `golds`; ``unbounded``: any integer"""
    number_parse: str = "strict"
    """``strict``: whole numbers only; ``truncate``: fractions are cut towards zero"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("rounds", self.rounds, 1)
        check_integer("golds", self.golds, 1, 10**9)
        check_choice("bid_range", self.bid_range, ("strict", "unbounded"))
        check_choice("number_parse", self.number_parse, ("strict", "truncate"))

    def bounds(self) -> tuple[int, int]:
        return (0, self.golds) if self.bid_range == "strict" else (-LARGEST, LARGEST)

    def reset(self, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> DivideDollarState:
        return DivideDollarState(
            **fresh(batch),
            bids=np.zeros((self.players, *batch), np.int64),
        )

    def asked(self, state: DivideDollarState) -> Array:
        return self.alive(state)

    def receipts(self, bids: Array) -> Array:
        """Return what everybody receives for these bids, int64 ``(players, *batch)``."""
        return np.where(bids.sum(axis=0) <= self.golds, bids, 0)

    def play(
        self, state: DivideDollarState, actions: Array, rng: np.random.Generator, broke: Array
    ) -> tuple[DivideDollarState, Outcome]:
        receipts = self.receipts(actions)
        after = DivideDollarState(
            round=state.round + 1,
            over=state.round + 1 >= self.rounds,
            void=state.void,
            bids=actions,
        )
        record = {"actions": actions, "sum": actions.sum(axis=0), "receipts": receipts}
        finished = self.everybody(after.over)
        return after, Outcome(receipts.astype(np.float64), finished, record)

    def columns(self) -> tuple[Column, ...]:
        low, high = self.bounds()
        return (
            Column("round", 1, self.rounds + 1, "round to play; rounds + 1 at the end"),
            Column("bid", low, high, "own bid last round, golds"),
            Column("sum", self.players * low, self.players * high, "sum of all bids last round"),
            Column("exceeded", 0, 1, "1 if that sum was more than there is to divide"),
            Column("receipt", low, high, "own receipt of the last round, golds"),
        )

    def observe(self, state: DivideDollarState) -> Array:
        shape, total = state.bids.shape, state.bids.sum(axis=0)
        columns = [
            state.round + 1,
            state.bids,
            total,
            total > self.golds,
            self.receipts(state.bids),
        ]
        return side_by_side(shape, columns)

    def told(self, state: DivideDollarState, player: int) -> dict[str, Any]:
        done = int(state.round)
        last = None
        if done:
            total = int(state.bids.sum())
            last = {
                "round": done,
                "bid": int(state.bids[player]),
                "sum": total,
                "exceeded": total > self.golds,
                "receipt": int(self.receipts(state.bids)[player]),
            }
        return {"round": min(done + 1, self.rounds), "last": last}

    def question(self, state: DivideDollarState, player: int) -> Question | None:
        if state.over:
            return None
        low, high = (None, None) if self.bid_range == "unbounded" else self.bounds()
        truncate = self.number_parse == "truncate"
        return Integer("bid_amount", low, high, truncate, published=bare)

    def picture(self, state: DivideDollarState) -> tuple[str, list[str], list[list[str]]]:
        total = int(state.bids.sum())
        caption = (
            f"{self.title}: round {int(state.round)} of {self.rounds}, "
            f"bids add up to {total} of {self.golds}"
        )
        rows = [
            [name, str(bid), str(receipt)]
            for name, bid, receipt in zip(
                self.names(), state.bids, self.receipts(state.bids), strict=True
            )
        ]
        return caption, ["seat", "bid", "received"], rows
