"""What rules work out, a node for each number, drawn by stand-ins for arrays.

Rules run once on a `TracedArray` in place of each array; NumPy hands it whatever is done with it.
Short ways that hang on data are taken for the general ones: of stand-ins `any_true` is true, and
`all_true` is false. Floats of 32 bits are only moved: they are rounded where they are packed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import accumulate, count
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from llm_games.arrays import StandIn

WIDE = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64}  # by NumPy's kinds
OF_TRUTHS = {"multiply": "bitwise_and", "add": "bitwise_or"}
INSIDE = {"shape", "ndim", "size"}
MOVING = {"moveaxis", "swapaxes", "transpose", "reshape", "ravel", "copy", "repeat", "broadcast_to"}
MOVING |= {"concatenate", "stack"}
SUMMED = 8  # so many floats in a row are summed by NumPy in another order than one after another
MOST_NODES = 20_000


class Untraceable(TypeError):
    """What was done with a stand-in cannot be written out as plain code."""


class Node:
    """One number: how it is made, its kind, and of what; a later one has a higher `number`."""

    op: str
    kind: str
    args: tuple[Any, ...]
    number: int
    numbers = count()
    known: ClassVar[WeakValueDictionary[Any, Node]] = WeakValueDictionary()  # each once

    def __new__(cls, op: str, kind: str, *args: Any) -> Node:
        key = op, kind, *(id(a) if isinstance(a, (Node, np.ndarray)) else repr(a) for a in args)
        if (node := cls.known.get(key)) is None:
            if len(cls.known) >= MOST_NODES:
                raise Untraceable(f"it takes more than {MOST_NODES} operations")
            cls.known[key] = node = object.__new__(cls)
            node.op, node.kind, node.args, node.number = op, kind, args, next(cls.numbers)
        return node


def const(number: Any, dtype: Any = np.int64) -> Node:
    return Node("const", np.dtype(dtype).kind, WIDE[np.dtype(dtype).kind](number))


def made(op: str, kind: str, *args: Node) -> Node:
    """Return the node of an operation on nodes of the kinds that it takes, or a simpler one."""
    first, last = args[0], args[-1]
    op = OF_TRUTHS.get(op, op) if kind == "b" else op
    if op == "cast" and first.kind == kind:
        return first
    if op == "where" and (first.op == "const" or args[1] is last):
        return args[1] if first.op != "const" or first.args[0] else last
    if op == "not_equal" and first is last and first.kind != "f":
        return const(False, bool)
    if all(arg.op == "const" for arg in args):
        of = WIDE[kind] if op == "cast" else getattr(np, op)
        with np.errstate(all="ignore"):
            return const(of(*(arg.args[0] for arg in args)), WIDE[kind])
    if op == "multiply" and kind == "i":
        for one, other in (args, args[::-1]):
            if one.op == "cast" and one.args[0].kind == "b":
                return made("where", kind, one.args[0], other, const(0))
    if op == "cast" and first.op == "where" and last.args[2].op == "const":
        arms = [made("cast", kind, arm) for arm in first.args[1:]]
        return made("where", kind, first.args[0], *arms)
    if kind == "b" and op in ("bitwise_and", "bitwise_or"):
        for one, other in (args, args[::-1]):
            if one.op == "const":
                return other if one.args[0] == (op == "bitwise_and") else one
    return Node(op, kind, *args)


def line(index: Node, step: int, begin: int) -> Node:
    index = index if step == 1 else made("multiply", "i", index, const(step))
    return made("add", "i", index, const(begin)) if begin else index


def pick(index: Node, entries: Any) -> Node:
    """Return the entry at an index, negative ones from the end."""
    first = entries[0]
    if all(entry is first for entry in entries):
        return first
    if all(entry.op == "load" and entry.args[0].op == "const" for entry in entries):
        begin, (place, size) = first.args[0].args[0], first.args[1:]
        step = size // len(entries)
        way = [(at, place, size) for at in range(begin, size, step)]
        if way == [(e.args[0].args[0], *e.args[1:]) for e in entries]:
            return Node("load", first.kind, line(index, step, int(begin)), place, size)
    return Node("pick", first.kind, index, *entries)


class TracedArray(StandIn, NDArrayOperatorsMixin):
    """A stand-in for an array; `cells` are its nodes, an array of objects."""

    T: Any = property(lambda self: self.transpose())

    def __init__(self, cells: Any, dtype: Any, shape: Any = None) -> None:
        cells, self.dtype = np.asarray(cells, object), np.dtype(dtype)
        self.cells = cells if shape is None else cells.reshape(shape)

    def __len__(self) -> int:
        return len(self.cells)

    def __bool__(self) -> bool:
        raise Untraceable("which way is taken hangs on data")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise Untraceable("a stand-in was put into an array of NumPy")

    def __getattr__(self, name: str) -> Any:
        if name in INSIDE:
            return getattr(self.cells, name)
        if name in FUNCTIONS:
            return partial(FUNCTIONS[name], self)
        if name not in MOVING:
            raise AttributeError(f"a stand-in has no {name}")
        return lambda *args, **how: TracedArray(getattr(self.cells, name)(*args, **how), self.dtype)

    def astype(self, dtype: Any, **_: Any) -> TracedArray:
        return TracedArray(cells_as(self, dtype), dtype)

    def into(self, values: Any, axis: int = 0) -> TracedArray:
        return _take(values, self, axis)

    def put(self, index: TracedArray, values: TracedArray) -> None:
        """Set the entries at integers, counted from the first; each is there once."""
        flat, places = self.reshape(-1), np.arange(self.size)
        for place, value in zip(index.reshape(-1), values.reshape(-1), strict=True):
            flat = np.where(place == places, value, flat)
        self.cells = flat.cells.reshape(self.shape)

    def __getitem__(self, index: Any) -> TracedArray:
        return TracedArray(self.cells[index], self.dtype)

    def __setitem__(self, index: Any, values: Any) -> None:
        self.cells[index] = cells_as(values, self.dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None) -> Any:
        name = ufunc.__name__
        if name in FUNCTIONS:
            return FUNCTIONS[name](*inputs)
        types = ufunc.resolve_dtypes((*map(_type, inputs), None))
        small = types[-1].kind != "b" and types[-1].itemsize < 8
        if method != "__call__" or (small and name != "multiply"):
            raise Untraceable(f"np.{name} of {types[-1]} is not traced")
        parts = [cells_as(a, dtype) for a, dtype in zip(inputs, types[:-1], strict=True)]
        of = np.frompyfunc(partial(made, name, types[-1].kind), len(parts), 1)
        return TracedArray(of(*parts), types[-1])

    def __array_function__(self, function: Any, _: Any, arguments: Any, keywords: Any) -> Any:
        name, (first, *rest) = function.__name__, arguments
        if name in INSIDE:
            return getattr(first, name)
        if name in FUNCTIONS:
            return FUNCTIONS[name](*arguments, **keywords)
        if name not in MOVING:
            raise Untraceable(f"np.{name} is not traced")
        if isinstance(first, TracedArray):
            return TracedArray(function(first.cells, *rest, **keywords), first.dtype)
        dtype = np.result_type(*map(_type, first))
        cells = [cells_as(part, dtype) for part in first]
        return TracedArray(function(cells, *rest, **keywords), dtype)


def lifted(array: Any) -> TracedArray:
    """Return a stand-in for an array of numbers, or the one it is."""
    if isinstance(array, TracedArray):
        return array
    array = np.asarray(array)
    if array.size >= MOST_NODES:
        raise Untraceable(f"a constant of {array.shape} is used as a whole")
    return TracedArray(np.frompyfunc(partial(const, dtype=array.dtype), 1, 1)(array), array.dtype)


def cells_as(array: Any, dtype: Any) -> Any:
    return np.frompyfunc(partial(made, "cast", np.dtype(dtype).kind), 1, 1)(lifted(array).cells)


def _type(array: Any) -> Any:
    """Return the type of an operand; Python's numbers take that of what is beside them."""
    known = type(array) if type(array) in (int, float) else getattr(array, "dtype", None)
    return known or np.asarray(array).dtype


def _where(condition: Any, yes: Any, no: Any) -> TracedArray:
    dtype = np.result_type(*(a if type(a) in (int, float) else _type(a) for a in (yes, no)))
    choose = np.frompyfunc(partial(made, "where", dtype.kind), 3, 1)
    cells = choose(cells_as(condition, bool), cells_as(yes, dtype), cells_as(no, dtype))
    return TracedArray(cells, dtype)


def _parts(array: Any, axis: int | None, counted: bool = False) -> list[TracedArray]:
    """Return the parts along an axis; of truths that are `counted` integers."""
    array = array.astype(np.int64) if counted and array.dtype == np.bool_ else array
    return [*(array.reshape(-1) if axis is None else np.moveaxis(array, axis, 0))]


def _along(step: Any, array: Any, axis: int | None = None, **_: Any) -> TracedArray:
    parts = _parts(array, axis, counted=step is np.add)
    floats = step is np.add and parts[0].dtype.kind == "f"
    if floats and len(parts) >= SUMMED and parts[0].size < 2:
        raise Untraceable(f"{SUMMED} floats or more are summed")
    return reduce(step, parts)


def _zeros(like: Any, dtype: Any = None, shape: Any = None) -> TracedArray:
    dtype = np.dtype(dtype or like.dtype)
    return TracedArray(np.full(shape or like.shape, const(0, dtype), object), dtype)


def _place(test: Callable[[Any, Any], Any], array: Any, axis: int | None = None) -> TracedArray:
    best, *others = _parts(array, axis, counted=True)
    place: Any = _zeros(best, np.int64)
    for k, part in enumerate(others, 1):
        found = test(part, best)
        best, place = _where(found, part, best), _where(found, k, place)
    return place


def _sorted(array: Any, *_: Any, axis: int = -1, places: bool = False, **__: Any) -> Any:
    values = _parts(array, axis)
    rows = [values, [lifted(np.full(values[0].shape, k)) for k in range(len(values))]]
    for stop in range(len(values) - 1, 0, -1):
        for k in range(stop):
            later = values[k] > values[k + 1]
            for row in rows:
                low, high = row[k : k + 2]
                row[k : k + 2] = _where(later, high, low), _where(later, low, high)
    return np.stack(rows[places], axis)


def _take(values: Any, index: Any, axis: int | None = None) -> TracedArray:
    index, constant = lifted(index), not isinstance(values, TracedArray)
    if index.dtype.kind == "b":
        raise Untraceable("entries are chosen by truths")
    cells: Any = np.asarray(values) if constant else values
    cells = cells.reshape(-1) if axis is None else np.moveaxis(cells, axis, 0)
    table = np.ascontiguousarray(cells) if constant else cells.cells.reshape(len(cells), -1)
    rest, axis = cells.shape[1:], axis or 0
    width = int(np.prod(rest, dtype=int))

    def found(k: int, here: Node) -> Node:
        if constant:
            return Node("look", table.dtype.kind, line(here, width, k), table, table.size)
        return pick(here, table[:, k])

    answer = [np.frompyfunc(partial(found, k), 1, 1)(index.cells) for k in range(width)]
    shaped = np.stack(answer, -1).reshape((*index.shape, *rest))
    moved = np.moveaxis(shaped, range(index.ndim), range(axis, axis + index.ndim))
    return TracedArray(moved, values.dtype)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "minimum": lambda one, other: _where(np.less_equal(one, other) | (one != one), one, other),
    "maximum": lambda one, other: _where(np.greater_equal(one, other) | (one != one), one, other),
    "clip": lambda array, low, high: np.minimum(np.maximum(array, low), high),
    "absolute": lambda array: _where(array < 0, -array, array) + array.dtype.type(0),
    "sign": lambda array: (array > 0) * 1 - (array < 0) * 1,
    "isnan": lambda array: array != array,
    "logical_not": np.invert,
    "sum": partial(_along, np.add),
    "any": lambda array, axis=None: _along(np.bitwise_or, array.astype(bool), axis),
    "all": lambda array, axis=None: _along(np.bitwise_and, array.astype(bool), axis),
    "mean": lambda array, axis: array.astype(np.float64).sum(axis) / array.shape[axis],
    "cumsum": lambda a, axis: np.stack([*accumulate(_parts(a, axis, True), np.add)], axis),
    "argmax": partial(_place, np.greater),
    "argmin": partial(_place, np.less),
    "sort": _sorted,
    "partition": _sorted,
    "argsort": partial(_sorted, places=True),
    "take": _take,
    "view": TracedArray.astype,  # of 64 bits
    "select": lambda of, entries, none=0: reduce(
        lambda no, pair: _where(pair[0], pair[1], no), [*zip(of, entries, strict=True)][::-1], none
    ),
    "count_nonzero": lambda array, **_: 0.5,  # neither none nor all
    "zeros_like": _zeros,
    "empty_like": _zeros,
}
FUNCTIONS |= dict.fromkeys(("min", "amin"), partial(_along, np.minimum))
FUNCTIONS |= dict.fromkeys(("max", "amax"), partial(_along, np.maximum))
