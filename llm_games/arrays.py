"""Small functions of arrays whose batch axes come last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
PerPlayer = Array  # one entry for each player of each table, ``(players, *batch)``
PerTable = Array  # one entry for each table, ``(*batch)``


class Later(Mapping[str, Array]):
    """Arrays by name; a function in place of an array is called at each look-up."""

    def __init__(self, of: Mapping[str, Any]) -> None:
        self._of = of

    def __getitem__(self, name: str) -> Array:
        entry: Any = self._of[name]
        return entry() if callable(entry) else entry

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class Recorded(Later):
    """A step's record, worked out of what is due when a part but the `actions`, if any, is read."""

    def __init__(self, actions: Any, record: Callable[..., Mapping[str, Any]], *due: Any) -> None:
        self._actions, self._record, self._due = actions, record, due

    @cached_property
    def _of(self) -> Mapping[str, Any]:  # type: ignore[override]
        return self._record(*self._due)

    def __getitem__(self, name: str) -> Array:
        if name == "actions" and self._actions is not None:
            return np.array(self._actions)
        return super().__getitem__(name)


class StandIn:
    """Base of what stands for an array while rules are traced, see `llm_games.tracing`."""

    into: Any  # returns the entries of an array at this index along an axis
    called: Any  # of rows, see below


def any_true(array: Array) -> bool:
    """Same as ``array.any()``, several times as fast on a few entries."""
    return bool(np.count_nonzero(array))


def all_true(array: Array) -> bool:
    return bool(np.count_nonzero(array) == array.size)


def wrong(flags: Array) -> bool:
    """Test whether anything is wrong; while rules are traced nothing is."""
    return not isinstance(flags, StandIn) and any_true(flags)


def arrayed(values: Any) -> Any:
    """Return numbers as an array, a stand-in as it is."""
    return values if isinstance(values, StandIn) else np.asarray(values)


def array_of(argument: Any) -> Array:
    """Convert an argument to an array; one of None for rows of different lengths."""
    try:
        return np.asarray(argument)
    except ValueError:
        return np.asarray(None)


def tall(values: Array, batch: tuple[int, ...]) -> Array:
    """Reshape ``(n,)`` to ``(n, 1, ...)``, so that one number a seat broadcasts over a batch."""
    return values.reshape(-1, *(1,) * len(batch)) if batch else values


def at(values: Array, index: Array) -> Array:
    """Take ``values[index]`` at each table: `values` ``(n, ..., *batch)``, `index` ``(*batch)``."""
    if type(index) is np.int64:  # one table: a fast path
        return values[index]
    if isinstance(index, StandIn):
        return (index[0] if index.ndim else index).into(values)
    if np.ndim(index) == 0:
        return values[index]
    if index.size and not any_true(index != (first := index.flat[0])):  # one index: a view
        return values[first]
    if len(values) == 2 and values.ndim == index.ndim + 1:  # of two rows: fast
        return np.where(index, values[1], values[0])
    lead = values.ndim - index.ndim - 1
    return values[(index[(None,) * lead], *_grid(values.shape[1:]))]


def looked_up(values: Array, index: Any, axis: int = 0) -> Array:
    """Return the entries of constant `values`, the same at all tables, at `index`."""
    return index.into(values, axis) if isinstance(index, StandIn) else values.take(index, axis)


def called(function: Callable[[Array], Any], where: Array, rows: Array) -> Array:
    """Return the answers of a function of rows, int64 ``(n, k)``, at some tables; 0 elsewhere.

    `where` ``(*batch)``, `rows` ``(*batch, k)``. It is called though what calls it was traced.
    """
    if isinstance(rows, StandIn):
        return rows.called(function, where)
    answers = np.zeros(where.shape, np.int64)
    if any_true(where):
        answers[where] = function(rows[where].astype(np.int64))
    return answers


def entry(values: Array, index: tuple[Any, ...]) -> Array:
    """Return ``values[index]`` of a constant table, the same for all tables of a game."""
    if not any(isinstance(part, StandIn) for part in index):
        return values[index]
    place = 0
    for part, length in zip(index, values.shape, strict=False):
        place = place * length + part
    return looked_up(values.reshape(-1, *values.shape[len(index) :]), place)


def discounted(amounts: Array, factors: Sequence[Fraction], times: Array, limit: int) -> Array:
    """Multiply each row of `amounts` by its factor so many `times`, from 0 to at most `limit`.

    The nearest double, as long as numerators and denominators stay exact.
    """
    if set(factors) == {1}:
        return amounts
    ratios = np.array([factor.as_integer_ratio() for factor in factors]).T
    powers = ratios[..., None] ** np.arange(limit + 1)
    above, below = (looked_up(part, np.clip(times, 0, limit), axis=1) for part in powers)
    return amounts * above / below


@lru_cache(maxsize=256)
def _grid(shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Return an open mesh of all indexes of an array."""
    return np.ogrid[tuple(slice(length) for length in shape)]


def put(values: Array, index: Array, entries: Array) -> None:
    """Set ``values[..., index]``, integers ``(k,)``, row by row: several times as fast."""
    rows = values.reshape(-1, values.shape[-1])
    for row, part in zip(rows, entries.reshape(len(rows), len(index)), strict=True):
        row[index] = part


def sliced(seats: Array) -> Any:
    """Return seats ``(k,)`` as a slice if they are consecutive, so that indexing copies nothing."""
    indexes = seats.tolist()
    first, stop = indexes[0], indexes[0] + len(indexes)
    return slice(first, stop) if indexes == list(range(first, stop)) else seats


def of_seats(values: Array, seats: Any, axis: int = 0) -> Array:
    """Take the rows of `seats`, ``(k,)``, a slice or ``(k, *batch)``, along `axis`, batch last."""
    if isinstance(seats, slice) or seats.ndim == 1:
        return values[(slice(None),) * axis + (seats,)]
    return np.take_along_axis(values, seats[(None,) * axis], axis)
