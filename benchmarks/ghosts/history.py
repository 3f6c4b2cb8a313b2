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
    """What some seats ``(seats,)`` or ``(players, tables)`` saw and did; alike: the same `key`."""

    seed: Array
    decided: Array
    last: Array
    last_but_one: Array
    total: Array
    squares: Array
    key: Array

    @classmethod
    def new(cls, seeds: Array) -> GhostMemory:
        zeros, none = np.zeros(seeds.shape), np.full(seeds.shape, -1)
        return cls(
            seed=seeds,
            decided=zeros.astype(np.int64),
            last=none,
            last_but_one=none,
            total=zeros,
            squares=zeros,
            key=zeros.astype(np.uint64),
        )

    def take(self, cells: tuple[Array, ...]) -> GhostMemory:
        return GhostMemory(*(part[cells] for part in self))

    def put(self, cells: tuple[Array, ...], other: GhostMemory) -> GhostMemory:
        parts = [part.copy() for part in self]
        for part, new in zip(parts, other, strict=True):
            part[cells] = new
        return GhostMemory(*parts)

    def after_observation(self, numbers: Array) -> GhostMemory:
        """`numbers`: float32 ``(seats, columns)``."""
        bits = np.ascontiguousarray(numbers + np.float32(0)).view(np.uint32).astype(np.uint64)
        columns = np.arange(1, numbers.shape[1] + 1, dtype=np.uint64) * GOLD
        return self._replace(key=mix(self.key + mix(bits ^ columns).sum(axis=1, dtype=np.uint64)))

    def answered(self, classes: Array, actions: Array, answers: Answers) -> GhostMemory:
        share = answers.shares(classes)
        return self._replace(
            decided=self.decided + 1,
            last=classes,
            last_but_one=self.last,
            total=self.total + share,
            squares=self.squares + share**2,
            key=mix(self.key ^ (actions.astype(np.int64).view(np.uint64) * GOLD)),
        )

    def features(self, numbers: Array, answers: Answers) -> Array:
        """Float32 ``(seats, columns + 4)``, for the small model."""
        has_answered, last, last_but_one = self.decided > 0, self.last, self.last_but_one
        count = np.maximum(self.decided, 1)
        mean = self.total / count
        spread = np.sqrt(np.maximum(self.squares / count - mean**2, 0))
        own_features = np.stack(
            [
                np.where(last < 0, -1, answers.shares(last)),
                np.where(last_but_one < 0, -1, answers.shares(last_but_one)),
                np.where(has_answered, mean, -1),
                np.where(has_answered, spread, -1),
            ],
            axis=1,
        )
        return np.concatenate([np.nan_to_num(numbers), own_features], axis=1).astype(np.float32)

    @property
    def here(self) -> Array:
        """Names the very decision of the very episode: the key together with the seed."""
        return mix(self.key ^ (self.seed.astype(np.int64).view(np.uint64) * GOLD))
