"""Scaling of observed numbers for learners: every column from -1 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.facts import LARGEST, Column


class Scale:
    """Scales the numbers of these columns to -1 to 1, and `back`.

    ``x = low + (y + 1) / 2 * (high - low)`` with two ends, 0 if these are equal; without one ``|x|
    = (2**53 + 1) ** |y| - 1``, with the sign of y. What lies beyond is cut.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        ends = np.array([(column.low, column.high) for column in columns], np.float64)
        low, high = ends.reshape(-1, 2).T
        self._open = np.flatnonzero(~np.isfinite(high - low))
        self._low, self._wide = (np.where(np.isfinite(high - low), x, 0) for x in (low, high - low))
        times = np.divide(2, self._wide, where=self._wide > 0, out=np.zeros(len(low)))
        self._line = [x.astype(np.float32) for x in (self._low, times, np.sign(times))]

    def __call__(self, numbers: Array) -> Array:
        """Return new numbers from -1 to 1, float32 ``(..., columns)`` as given."""
        low, times, shift = self._line
        scaled = numbers - low
        scaled *= times
        scaled -= shift
        if len(self._open):
            far = numbers[..., self._open].astype(np.float64)
            scaled[..., self._open] = np.sign(far) * np.log1p(np.abs(far)) / np.log1p(LARGEST)
        np.maximum(scaled, -1, out=scaled)
        return np.minimum(scaled, 1, out=scaled)

    def back(self, scaled: Any) -> Array:
        """Return the numbers before scaling, float64, with the precision of float32."""
        scaled = np.asarray(scaled, np.float64)
        numbers = self._low + (scaled + 1) / 2 * self._wide
        far = scaled[..., self._open]
        numbers[..., self._open] = np.sign(far) * np.expm1(np.abs(far) * np.log1p(LARGEST))
        return numbers
