"""Keyed noise (to be replaced)."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


class Noise:
    """Stub."""

    def __init__(self, seed: Any = 0, key: int = 0) -> None:
        self.seeds = np.asarray(seed, np.uint64)
        self.keyed = key

    @property
    def batch(self) -> tuple[int, ...]:
        return self.seeds.shape

    @classmethod
    def across(cls, noise: Any, batch: tuple[int, ...]) -> Noise:
        if isinstance(noise, Noise):
            return noise
        size = int(np.prod(batch))
        return cls((np.arange(size, dtype=np.uint64) + np.uint64(noise)).reshape(batch))

    def of(self, *names: Any) -> Noise:
        text = repr((self.keyed, names)).encode()
        return Noise(
            self.seeds, int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
        )

    def _each(self, draw: Any) -> Any:
        flat = [draw(np.random.default_rng((int(s), self.keyed))) for s in self.seeds.ravel()]
        stacked = np.stack(flat, axis=-1)
        return stacked.reshape(*stacked.shape[:-1], *self.batch)[()] if self.batch else flat[0]

    def random(self, shape: Any = ()) -> Any:
        return self._each(lambda r: np.asarray(r.random(shape)))

    def integers(self, low: Any, high: Any, shape: Any = (), endpoint: bool = False) -> Any:
        return self._each(lambda r: np.asarray(r.integers(low, high, shape, endpoint=endpoint)))

    def order(self, n: int) -> Any:
        return self._each(lambda r: r.permutation(n))

    def seed(self) -> Any:
        return int(self._each(lambda r: np.asarray(r.integers(2**63))))
