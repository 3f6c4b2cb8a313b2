"""Small functions of arrays whose batch axes come last."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def any_true(array: Array) -> bool:
    """Return whether any entry is true; on a few entries several times as fast as ``any()``."""
    return bool(np.count_nonzero(array))


def all_true(array: Array) -> bool:
    """Return whether no entry of truths is false; as `any_true`."""
    return bool(np.count_nonzero(array) == array.size)


def array_of(given: Any) -> Array:
    """Return what a caller gave as an array; rows of different lengths are none, as None is."""
    try:
        return np.asarray(given)
    except ValueError:
        return np.asarray(None)


def tall(values: Array, batch: tuple[int, ...]) -> Array:
    """Let one value for each seat (or place) broadcast over a batch: ``(n, 1, ...)``."""
    return values.reshape(-1, *(1,) * len(batch)) if batch else values


def at(values: Array, place: Array) -> Array:
    """Take each table's values at one place ``(*batch)`` of ``(places, ..., *batch)``."""
    if np.ndim(place) == 0:  # of one table: the same, and fast
        return values[place]
    if place.size and not any_true(place != (first := place.flat[0])):  # nothing is copied
        return values[first]
    lead = values.ndim - place.ndim - 1
    return values[(place[(None,) * lead], *_grid(values.shape[1:]))]


@lru_cache(maxsize=256)
def _grid(shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Return an open mesh of all places of an array."""
    return np.ogrid[tuple(slice(length) for length in shape)]


def sliced(seats: Array) -> Any:
    """Return the rows of some seats ``(k,)``: a slice, by which nothing is copied, if it can be."""
    listed = seats.tolist()
    first, after = listed[0], listed[0] + len(listed)
    return slice(first, after) if listed == list(range(first, after)) else seats


def of_seats(values: Array, seats: Any, axis: int = 0) -> Array:
    """Take rows of these seats, ``(k,)`` or a slice, or of others at each table, ``(k, *batch)``.

    The seats of `values` lie along `axis`, its batch axes are last.
    """
    if isinstance(seats, slice) or seats.ndim == 1:
        return values[(slice(None),) * axis + (seats,)]
    return np.take_along_axis(values, seats[(None,) * axis], axis)
