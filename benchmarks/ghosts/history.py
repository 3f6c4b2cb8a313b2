"""What a ghost remembers of a game so far: its own answers, and all that it saw, as one number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from llm_games.benchmarks.ghosts.answer_classes import Answers
from llm_games.noise import GOLD, mix
from llm_games.rulebook import Array

OWN = ("own last answer", "own answer before", "own mean", "own spread")
"""Features beside the columns of the game; shares of the classes, -1 where there is none."""


class GhostMemory(NamedTuple):
    """Of some seats, ``(seats,)`` or ``(players, tables)``; `key` names all that happened so far.

    Two seats have one key if they saw the same numbers whenever they were asked, and did the same.
    """

    seed: Array
    decided: Array
    last: Array
    before: Array
    total: Array
    squares: Array
    key: Array

    @classmethod
    def new(cls, seeds: Array) -> GhostMemory:
        """Return the memory of seats that begin an episode, with a seed each."""
        zeros, none = np.zeros(seeds.shape), np.full(seeds.shape, -1)
        return cls(seeds, zeros.astype(np.int64), none, none, zeros, zeros, zeros.astype(np.uint64))

    def at(self, cells: tuple[Array, ...]) -> GhostMemory:
        """Take some seats out."""
        return GhostMemory(*(part[cells] for part in self))

    def put(self, cells: tuple[Array, ...], other: GhostMemory) -> GhostMemory:
        """Return the memory with that of some seats replaced."""
        parts = [part.copy() for part in self]
        for part, new in zip(parts, other, strict=True):
            part[cells] = new
        return GhostMemory(*parts)

    def met(self, numbers: Array) -> GhostMemory:
        """Return the memory after seeing numbers, float32 ``(seats, columns)``."""
        bits = np.ascontiguousarray(numbers + np.float32(0)).view(np.uint32).astype(np.uint64)
        place = np.arange(1, numbers.shape[1] + 1, dtype=np.uint64) * GOLD
        return self._replace(key=mix(self.key + mix(bits ^ place).sum(axis=1, dtype=np.uint64)))

    def answered(self, classes: Array, actions: Array, answers: Answers) -> GhostMemory:
        """Return the memory after own answers."""
        share = answers.shares(classes)
        return GhostMemory(
            self.seed,
            self.decided + 1,
            classes,
            self.last,
            self.total + share,
            self.squares + share**2,
            mix(self.key ^ (actions.astype(np.int64).view(np.uint64) * GOLD)),
        )

    def features(self, numbers: Array, answers: Answers) -> Array:
        """Return what the small model is told, float32 ``(seats, columns + 4)``."""
        some, last, before = self.decided > 0, self.last, self.before
        many = np.maximum(self.decided, 1)
        mean = self.total / many
        spread = np.sqrt(np.maximum(self.squares / many - mean**2, 0))
        own = np.stack(
            [
                np.where(last < 0, -1, answers.shares(last)),
                np.where(before < 0, -1, answers.shares(before)),
                np.where(some, mean, -1),
                np.where(some, spread, -1),
            ],
            axis=1,
        )
        return np.concatenate([np.nan_to_num(numbers), own], axis=1).astype(np.float32)

    @property
    def here(self) -> Array:
        """The key together with the seed: the very decision of the very episode."""
        return mix(self.key ^ (self.seed.astype(np.int64).view(np.uint64) * GOLD))
