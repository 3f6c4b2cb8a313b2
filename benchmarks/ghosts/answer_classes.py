"""A game's answers as classes from 0, as a ghost's small model tells them apart.

Where actions are few and always the same, each is a class. Of amounts whose limits change, or that
are many, hundredths of what is legal now are; class 0 declines where that is possible. Where plans
are made, each that was recorded is a class, after the two votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from llm_games.codecs import indexed
from llm_games.rulebook import Array, Rulebook
from llm_games.view import Sight

PARTS = 100  # of what is legal, where classes are shares
VOTES = 2
Plan = tuple[int, ...]


class AnswerLimits(NamedTuple):
    """Legal amounts from `low` to `high`, ``(seats,)``, and masks of legal actions."""

    low: Array
    high: Array
    mask: Array | None

    @classmethod
    def of(cls, sight: Sight, cells: tuple[Array, ...]) -> AnswerLimits:
        """Of seats, or of seats and tables, at the indexes `cells`."""
        low, high = sight.amounts
        return cls(low[cells], high[cells], sight.mask[cells] if sight.game.picks else None)

    @property
    def tall(self) -> AnswerLimits:
        """``(seats, 1)``, to stand beside several answers of each seat; without masks."""
        return AnswerLimits(self.low[:, None], self.high[:, None], None)

    def repeated(self, count: int) -> AnswerLimits:
        mask = None if self.mask is None else self.mask.repeat(count, 0)
        return AnswerLimits(self.low.repeat(count), self.high.repeat(count), mask)


class Answers:
    """Classes of the answers of a game; `plans` are those that were recorded."""

    def __init__(self, game: Rulebook, plans: Sequence[Plan] = ()) -> None:
        low, high = game.bounds()
        self.game, self.plans, self.first = game, list(plans), low
        self.declines, self.decline = int(game.decline is not None), game.decline or 0
        self.fixed = game.division is None and indexed(game)
        self.count = high - low + 1 if self.fixed else PARTS + 1 + self.declines
        if game.division is not None:
            self.count = VOTES + len(plans)

    def classes(self, actions: Array, limits: AnswerLimits) -> Array:
        """Classes of legal int64 actions ``(seats,)``; of a plan, already `VOTES` + its number."""
        if self.game.division is not None:
            return actions
        if self.fixed:
            return actions - self.first
        low, wide = limits.low, np.maximum(limits.high - limits.low, 1)
        share: Array = ((actions - low) * PARTS + wide // 2) // wide + self.declines
        return np.where(actions == self.decline, 0, share) if self.declines else share

    def actions(self, classes: Array, limits: AnswerLimits) -> Array:
        """The inverse of `classes`."""
        if self.game.division is not None:
            return classes
        if self.fixed:
            return classes + self.first
        low, wide = limits.low, limits.high - limits.low
        amount: Array = low + (wide * (classes - self.declines) + PARTS // 2) // PARTS
        return np.where(classes == 0, self.decline, amount) if self.declines else amount

    def shares(self, classes: Array) -> Array:
        """Shares of all classes, 0 to 1; all plans are 1."""
        last = VOTES if self.game.division is not None else max(self.count - 1, 1)
        return np.minimum(classes / last, 1)

    def legal(self, limits: AnswerLimits) -> Array:
        """Bool ``(seats, classes)``; of plans see `plans_for`."""
        places = np.arange(self.count)
        if self.game.division is not None:
            return np.broadcast_to(places < VOTES, (len(limits.low), self.count))
        if limits.mask is not None:
            return limits.mask
        if self.fixed:
            actions = places + self.first
            return (actions >= limits.low[:, None]) & (actions <= limits.high[:, None])
        wide = limits.high - limits.low
        last = np.where(wide > 0, PARTS, np.where(wide < 0, -1, 0)) + self.declines
        return places <= last[:, None]

    def plans_for(self, ranks: Sequence[int]) -> Array:
        """Bool ``(classes,)``: plans for seats of these ranks only."""
        others = set(range(self.game.players)) - {rank - 1 for rank in ranks}
        fit = [all(plan[seat] == 0 for seat in others) for plan in self.plans]
        return np.array([False] * VOTES + fit)

    def plan(self, number: int) -> Plan:
        return self.plans[number - VOTES]
