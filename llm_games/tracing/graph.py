"""What rules work out, a node for each number, drawn by stand-ins for arrays.

Rules run once on a `TracedArray` in place of each array. NumPy hands it whatever is done with it,
so that each entry becomes a `Node`. Short ways that hang on data are taken for the general ones: of
stand-ins `any_true` is true, and `all_true` is false.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from llm_games.arrays import Array, StandIn

KINDS = dict(zip("?bBilqLQdf", "biiiiiuufh", strict=True))
"""Kinds of nodes by NumPy's letters: truths, integers, 64 bits, doubles, floats of 32 bits."""
WIDE = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64, "h": np.float32}
OTHER_NAMES = {"divide": "true_divide", "logical_and": "bitwise_and", "logical_not": "invert"}
OTHER_NAMES |= {"logical_or": "bitwise_or", "logical_xor": "bitwise_xor"}
SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "true_divide": "/", "floor_divide": "//"}
SIGNS |= {"remainder": "%", "less": "<", "less_equal": "<=", "greater": ">", "equal": "=="}
SIGNS |= {"greater_equal": ">=", "not_equal": "!=", "bitwise_xor": "^", "left_shift": "<<"}
SIGNS |= {"right_shift": ">>", "bitwise_and": "&", "bitwise_or": "|"}
FORMS = {op: f"{{0}} {sign} {{1}}" for op, sign in SIGNS.items()}
FORMS |= {"invert": "~{0}", "negative": "-{0}", "isnan": "{0} != {0}"}
FORMS |= {"sign": "({0} > 0) - ({0} < 0)"}
"""Operations as Python and C both write them; others are calls of functions of their names."""
ELEMENTWISE = {*FORMS, "minimum", "maximum", "absolute", "floor", "ceil", "sqrt", "trunc", "rint"}
OF_TRUTHS = {"multiply": "bitwise_and", "minimum": "bitwise_and"}
OF_TRUTHS |= {"add": "bitwise_or", "maximum": "bitwise_or"}
NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1, "true_divide": 1, "floor_divide": 1}
MOVING = {"broadcast_to", "moveaxis", "swapaxes", "transpose", "reshape", "ravel", "repeat"}
MOVING |= {"concatenate", "copy", "stack", "expand_dims", "squeeze", "tile", "flip", "roll"}
SUMMED = 8  # so many floats in a row are summed by NumPy in another order than one after another
MOST_NODES = 20_000
MOST_ENTRIES = 4_096  # of an array that becomes nodes


class Untraceable(TypeError):
    """What was done with a stand-in cannot be written out as plain code."""


# -- nodes -----------------------------------------------------------------------------------------


class Node:
    """One number: how it is made, its kind, and of what: nodes, or constants."""

    __slots__ = ("__weakref__", "args", "kind", "op")

    def __init__(self, op: str, kind: str, args: tuple[Any, ...]) -> None:
        self.op, self.kind, self.args = op, kind, args


_NODES: WeakValueDictionary[Any, Node] = WeakValueDictionary()  # each node once


class Constant:
    """A constant array among what nodes are made of; of one array all are alike."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __repr__(self) -> str:
        return f"c{id(self.array)}"


def node(op: str, kind: str, *args: Any) -> Node:
    key = op, kind, *(id(a) if isinstance(a, Node) else repr(a) for a in args)
    if (known := _NODES.get(key)) is not None:
        return known
    if len(_NODES) >= MOST_NODES:
        raise Untraceable(f"it takes more than {MOST_NODES} operations")
    _NODES[key] = fresh = Node(op, kind, args)
    return fresh


def const(number: Any, dtype: Any = np.int64) -> Node:
    return node("const", kind_of(dtype), np.dtype(dtype).type(number))


def kind_of(dtype: Any) -> str:
    kind = KINDS.get(np.dtype(dtype).char)
    if kind is None:
        raise Untraceable(f"arrays of {dtype} are not traced")
    return kind


def cast(kind: str, number: Node) -> Node:
    return number if number.kind == kind else made("cast", kind, number)


def made(op: str, kind: str, *args: Node) -> Node:
    """Return the node of an operation on nodes of the kinds that it takes, or a simpler one."""
    if all(arg.op == "const" for arg in args):
        return const(_folded(op, kind, [arg.args[0] for arg in args]), WIDE[kind])
    first, last = args[0], args[-1]
    simple: Node | None = None
    if kind == "b" and op in OF_TRUTHS:
        return made(OF_TRUTHS[op], kind, *args)
    if op == "where":
        simple = _chosen(kind, *args)
    elif op in ("bitwise_and", "bitwise_or") and first is last:
        simple = first
    elif len(args) == 2 and last.op == "const":
        simple = _with_constant(op, kind, first, last, False)
    elif len(args) == 2 and first.op == "const":
        simple = _with_constant(op, kind, last, first, True)
    return node(op, kind, *args) if simple is None else simple


def _folded(op: str, kind: str, numbers: list[Any]) -> Any:
    if op == "cast":
        return WIDE[kind](numbers[0])
    if op == "where":
        return numbers[1] if numbers[0] else numbers[2]
    with np.errstate(all="ignore"):
        return getattr(np, op)(*numbers)


def _chosen(kind: str, condition: Node, yes: Node, no: Node) -> Node | None:
    if condition.op == "const":
        return yes if condition.args[0] else no
    if condition.op == "invert":
        return made("where", kind, condition.args[0], no, yes)
    if kind == "b" and yes.op == no.op == "const" and yes is not no:
        return condition if yes.args[0] else made("invert", "b", condition)
    return yes if yes is no else None


def _with_constant(op: str, kind: str, other: Node, constant: Node, begins: bool) -> Node | None:
    number = constant.args[0]
    if kind == "b" and op in ("bitwise_and", "bitwise_or"):
        return other if number == (op == "bitwise_and") else constant
    if op == "multiply" and kind == "i" and number == 0:
        return constant
    changes = (begins and op not in ("add", "multiply")) or (op == "add" and kind != "i")
    return other if number == NEUTRAL.get(op) and not changes else None


def pick(index: Node, entries: Sequence[Node]) -> Node:
    """Return the entry at an index, negative ones from the end."""
    if all(entry is entries[0] for entry in entries):
        return entries[0]
    if len(entries) == 2 and index.op == "cast" and index.args[0].kind == "b":
        return made("where", entries[0].kind, index.args[0], entries[1], entries[0])
    if all(entry.op == "load" and entry.args[0].op == "const" for entry in entries):
        offsets = [int(entry.args[0].args[0]) for entry in entries]
        step, places = offsets[1] - offsets[0], {entry.args[1] for entry in entries}
        if len(places) == 1 and offsets == [offsets[0] + step * k for k in range(len(offsets))]:
            below = cast("i", made("less", "b", index, const(0)))
            index = made("add", "i", index, made("multiply", "i", below, const(len(offsets))))
            place = made("add", "i", made("multiply", "i", index, const(step)), const(offsets[0]))
            return node("load", entries[0].kind, place, *places)
    return node("pick", entries[0].kind, index, *entries)


# -- stand-ins -------------------------------------------------------------------------------------


class TracedArray(StandIn, NDArrayOperatorsMixin):
    """A stand-in for an array; `cells` are its nodes, an array of objects."""

    shape: Any = property(lambda self: self.cells.shape)
    ndim: Any = property(lambda self: self.cells.ndim)
    size: Any = property(lambda self: self.cells.size)
    T: Any = property(lambda self: TracedArray(self.cells.T, self.dtype))

    def __init__(self, cells: Any, dtype: Any) -> None:
        self.cells, self.dtype = _array(cells), np.dtype(dtype)
        self.kind = kind_of(dtype)

    def __len__(self) -> int:
        return len(self.cells)

    def __bool__(self) -> bool:
        raise Untraceable("which way is taken hangs on data")

    __int__: Any = __bool__
    __float__: Any = __bool__
    __index__: Any = __bool__

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise Untraceable("a stand-in was put into an array of NumPy")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function: Any = FUNCTIONS.get(name) or (name in MOVING and getattr(np, name))
        if not function:
            raise AttributeError(f"a stand-in has no {name}")
        return partial(function, self)

    def astype(self, dtype: Any, **_: Any) -> TracedArray:
        return TracedArray(cells_as(self, dtype), dtype)

    def reshape(self, *shape: Any) -> TracedArray:
        return TracedArray(self.cells.reshape(*shape), self.dtype)

    def transpose(self, *axes: int) -> TracedArray:
        return TracedArray(self.cells.transpose(*axes), self.dtype)

    def blank(self, shape: tuple[int, ...], dtype: Any, number: int = 0) -> TracedArray:
        return TracedArray(np.full(shape, const(number, dtype), object), dtype)

    def at(self, values: Any) -> TracedArray:
        return _take(values, self[0] if self.ndim else self, 0)

    def entry(self, values: Any, index: tuple[Any, ...]) -> TracedArray:
        place: Any = 0
        for part, length in zip(index, values.shape, strict=False):
            place = place * length + np.where(np.less(part, 0), np.add(part, length), part)
        rest, table = values.shape[len(index) :], Constant(np.ascontiguousarray(values))
        width, kind = int(np.prod(rest, dtype=int)), kind_of(values.dtype)
        nodes = [
            node("look", kind, made("add", "i", begin, const(k)), table)
            for begin in (place * width).cells.ravel()
            for k in range(width)
        ]
        return TracedArray(_objects(nodes, (*place.shape, *rest)), values.dtype)

    def into(self, values: Any, axis: int = 0) -> TracedArray:
        return _take(values, self, axis)

    def put(self, index: Any, values: Any) -> None:
        """Set the entries at integers, counted from the first; each is there once."""
        places, entries = lifted(index).cells.ravel(), cells_as(values, self.dtype).ravel()
        flat = [*self.cells.ravel()]
        for k in range(len(flat)):
            for place, entry in zip(places, entries, strict=True):
                here = made("equal", "b", place, const(k))
                flat[k] = made("where", self.kind, here, entry, flat[k])
        self.cells = np.array(flat, object).reshape(self.shape)

    def __getitem__(self, index: Any) -> TracedArray:
        return TracedArray(self.cells[index], self.dtype)

    def __setitem__(self, index: Any, values: Any) -> None:
        cells, entries = self.cells.copy(), cells_as(values, self.dtype)
        cells[index] = entries if entries.ndim else entries[()]
        self.cells = cells

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **keywords: Any
    ) -> Any:
        name = OTHER_NAMES.get(ufunc.__name__, ufunc.__name__)
        if name == "clip":
            return FUNCTIONS[name](*inputs)
        if method != "__call__" or name not in ELEMENTWISE:
            raise Untraceable(f"np.{name} is not traced")
        types = ufunc.resolve_dtypes((*map(_type, inputs), *(None,) * ufunc.nout))
        if types[-1].kind in "iu" and types[-1].itemsize < 8:
            raise Untraceable(f"np.{name} of {types[-1]} is not traced")
        parts = [cells_as(a, dtype) for a, dtype in zip(inputs, types[:-1], strict=True)]
        of = np.frompyfunc(partial(made, name, kind_of(types[-1])), len(parts), 1)
        answer = TracedArray(of(*parts), types[-1])
        if out is None:
            return answer
        out[0].cells = np.broadcast_to(cells_as(answer, out[0].dtype), out[0].shape).copy()
        return out[0]

    def __array_function__(self, function: Any, _: Any, arguments: Any, keywords: Any) -> Any:
        name = function.__name__
        if name in MOVING:
            return _moved(function, *arguments, **keywords)
        if name not in FUNCTIONS:
            raise Untraceable(f"np.{name} is not traced")
        return FUNCTIONS[name](*arguments, **keywords)


class StoredArray(TracedArray):
    """A field that stays as it is in a game, at a place of a state: its entries are looked up."""

    shape: Any = property(lambda self: self._shape)
    ndim: Any = property(lambda self: len(self._shape))

    def __init__(self, place: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.place, self._shape = place, shape
        self.dtype, self.kind = np.dtype(dtype), kind_of(dtype)

    def __len__(self) -> int:
        return int(self._shape[0])

    @property
    def cells(self) -> Array:  # type: ignore[override]
        if np.prod(self._shape) > MOST_ENTRIES:
            raise Untraceable(f"an array of {self._shape} is used as a whole")
        return self._loaded(const(0), self._shape)

    def _loaded(self, begin: Node, shape: tuple[int, ...]) -> Array:
        places = (made("add", "i", begin, const(k)) for k in range(int(np.prod(shape, dtype=int))))
        return _objects([node("load", self.kind, place, self.place) for place in places], shape)

    def row(self, index: Node) -> TracedArray:
        rest = self._shape[1:]
        begin = made("multiply", "i", cast("i", index), const(int(np.prod(rest, dtype=int))))
        return TracedArray(self._loaded(begin, rest), self.dtype)


def _objects(entries: Sequence[Any], shape: Any = -1) -> Array:
    array = np.empty(len(entries), object)
    array[:] = entries
    return array.reshape(shape)


def _array(entries: Any) -> Array:
    return entries if isinstance(entries, np.ndarray) else _objects([entries], ())


def lifted(array: Any) -> TracedArray:
    """Return a stand-in for an array of numbers, or the one it is."""
    if isinstance(array, TracedArray):
        return array
    array = np.asarray(array)
    if array.size > MOST_ENTRIES:
        raise Untraceable(f"a constant of {array.shape} is used as a whole")
    nodes = [const(number, array.dtype) for number in array.ravel()]
    return TracedArray(_objects(nodes, array.shape), array.dtype)


def cells_as(array: Any, dtype: Any) -> Array:
    return _array(np.frompyfunc(partial(cast, kind_of(dtype)), 1, 1)(lifted(array).cells))


def _type(array: Any) -> Any:
    """Return the type of an operand; Python's numbers take that of what is beside them."""
    if type(array) in (int, float):
        return type(array)
    return array.dtype if isinstance(array, TracedArray) else np.asarray(array).dtype


# -- functions of NumPy ----------------------------------------------------------------------------


def _moved(function: Any, first: Any, *rest: Any, **keywords: Any) -> TracedArray:
    """Move cells as NumPy moves entries."""
    if not isinstance(first, (list, tuple)):
        first = lifted(first)
        return TracedArray(function(first.cells, *rest, **keywords), first.dtype)
    parts = [lifted(part) for part in first]
    dtype = np.result_type(*(part.dtype for part in parts))
    return TracedArray(function([cells_as(p, dtype) for p in parts], *rest, **keywords), dtype)


def _where(condition: Any, yes: Any, no: Any) -> TracedArray:
    dtype = np.result_type(*(a if type(a) in (int, float) else _type(a) for a in (yes, no)))
    choose = np.frompyfunc(partial(made, "where", kind_of(dtype)), 3, 1)
    cells = choose(cells_as(condition, bool), cells_as(yes, dtype), cells_as(no, dtype))
    return TracedArray(cells, dtype)


def _reduction(of: Callable[[list[Node], str], Node], taken: str = "", gives: str = "") -> Any:
    """Return a function that makes one node of those along an axis, as of a kind, of a kind."""

    def reduced(array: Any, axis: Any = None, **_: Any) -> TracedArray:
        kind = taken or ("i" if of is _sum and array.kind == "b" else array.kind)
        cells = cells_as(array, WIDE[kind])
        columns = cells.reshape(-1) if axis is None else np.moveaxis(cells, axis, 0)
        rest = columns.shape[1:]
        if of is _sum and kind in "fh" and len(columns) >= SUMMED and np.prod(rest) < 2:
            raise Untraceable(f"{SUMMED} floats or more are summed")
        nodes = [of([*column], kind) for column in columns.reshape(len(columns), -1).T]
        return TracedArray(_objects(nodes, rest), WIDE[gives or kind])

    return reduced


def _sum(nodes: list[Node], kind: str) -> Node:
    return reduce(partial(made, "add", kind), nodes)


def _extreme(name: str) -> Any:
    def of(nodes: list[Node], kind: str) -> Node:
        nodes = [*dict.fromkeys(nodes)]
        if kind == "i" and len(nodes) > 2:
            return node(name, kind, *nodes)
        return reduce(partial(made, name, kind), nodes)

    return of


def _place(name: str) -> Any:
    def of(nodes: list[Node], kind: str) -> Node:
        if kind == "b" and name == "argmax":
            first = const(0)
            for k in range(len(nodes) - 1, -1, -1):
                first = made("where", "i", nodes[k], const(k), first)
            return first
        if kind != "i":
            raise Untraceable(f"np.{name} of such numbers is not traced")
        return node(name, "i", *nodes)

    return of


def _cumsum(array: TracedArray, axis: int, **_: Any) -> TracedArray:
    kind = "i" if array.kind == "b" else array.kind
    add = np.frompyfunc(partial(made, "add", kind), 2, 1)
    return TracedArray(add.accumulate(cells_as(array, WIDE[kind]), axis), WIDE[kind])


def _ordered(name: str) -> Any:
    def ordered(array: TracedArray, *_: Any, axis: int = -1, **__: Any) -> TracedArray:
        if array.kind != "i":
            raise Untraceable(f"np.{name} of such numbers is not traced")
        columns = np.moveaxis(array.cells, axis, 0)
        answer = np.empty_like(columns)
        for place in np.ndindex(columns.shape[1:]):
            whole = node(name, "t", *columns[(slice(None), *place)])
            for k in range(len(columns)):
                answer[(k, *place)] = node("entry", "i", whole, k)
        return TracedArray(np.moveaxis(answer, 0, axis), np.int64)

    return ordered


def _take(values: Any, index: Any, axis: int | None = None, **_: Any) -> TracedArray:
    if isinstance(values, StoredArray) and not (np.ndim(index) or axis):
        return values.row(lifted(index).cells.item())
    values, index = lifted(values), lifted(index)
    if index.kind == "b":
        raise Untraceable("entries are chosen by truths")
    cells = values.cells.reshape(-1) if axis is None else np.moveaxis(values.cells, axis, 0)
    rest, axis = cells.shape[1:], axis or 0
    answer = np.empty((*index.shape, *rest), object)
    for place in np.ndindex(index.shape):
        for other in np.ndindex(rest):
            answer[(*place, *other)] = pick(index.cells[place], cells[(slice(None), *other)])
    moved = np.moveaxis(answer, range(index.ndim), range(axis, axis + index.ndim))
    return TracedArray(moved, values.dtype)


def _filled(number: int) -> Any:
    def filled(like: TracedArray, dtype: Any = None, **_: Any) -> TracedArray:
        return like.blank(like.shape, like.dtype if dtype is None else dtype, number)

    return filled


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "sum": _reduction(_sum),
    "any": _reduction(lambda nodes, kind: reduce(partial(made, "bitwise_or", kind), nodes), "b"),
    "all": _reduction(lambda nodes, kind: reduce(partial(made, "bitwise_and", kind), nodes), "b"),
    "argmax": _reduction(_place("argmax"), gives="i"),
    "argmin": _reduction(_place("argmin"), gives="i"),
    "mean": lambda array, axis: array.astype(np.float64).sum(axis) / array.shape[axis],
    "cumsum": _cumsum,
    "sort": _ordered("sort"),
    "partition": _ordered("sort"),
    "argsort": _ordered("argsort"),
    "take": _take,
    "clip": lambda array, low, high: np.minimum(np.maximum(array, low), high),
    "view": lambda array, dtype: array.astype(dtype),  # of 64 bits
    "select": lambda of, entries, none=0: reduce(
        lambda no, pair: np.where(pair[0], pair[1], no),
        [*zip(of, entries, strict=True)][::-1],
        none,
    ),
    "count_nonzero": lambda array, **_: 0.5,  # neither none nor all
    "ndim": lambda array: array.ndim,
    "shape": lambda array: array.shape,
    "zeros_like": _filled(0),
    "empty_like": _filled(0),
    "ones_like": _filled(1),
}
FUNCTIONS |= dict.fromkeys(("min", "amin"), _reduction(_extreme("minimum")))
FUNCTIONS |= dict.fromkeys(("max", "amax"), _reduction(_extreme("maximum")))
