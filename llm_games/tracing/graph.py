"""What rules work out, a node for each number, drawn by stand-ins for arrays.

Rules run once on a `TracedArray` in place of each array: NumPy moves its nodes about as it does any
objects, and hands it what is worked out of them. Short ways that hang on data are taken for the
general ones: of stand-ins `any_true` is true, and `all_true` is false. Floats of 32 bits are only
moved: they are rounded where they are packed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial, partialmethod, reduce
from itertools import accumulate, count
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from llm_games.arrays import StandIn

WIDE = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64}  # by NumPy's kinds
SUMMED = 8  # so many floats in a row are summed by NumPy in another order than one after another
MOST_NODES = 20_000
LONG = 200  # letters of an expression that is not parted
FORMS = r"""
=           {name} = {text}                   const {T} {name} = {text};
input       {0}
const       {0}                               ({T}){0}
load        s_{1}[{0}]                        ({T})s_{1}[within({0}, {2}) * M + t]
look        {1}[{0}]                          ({T}){1}[within({0}, {2})]
pick        ({row},)[{0}]                     ((const {T}[]){{{row}}})[within({0}, {n})]
called      ask({0}, t, {n}, (int64_t[]){{{row}}}, &asks)
where       {1} if {0} else {2}               {0} ? {1} : {2}
castb       {0} != 0
castbi      1 if {0} else 0                   ({T}){0}
castbf      1.0 if {0} else 0.0               ({T}){0}
castfi      int({0})                          ({T}){0}
castf       {0} + 0.0                         ({T}){0}
castui      {0} - ({0} >> 63 << 64)           ({T}){0}
castiu      {0} & 0xFFFFFFFFFFFFFFFF          ({T}){0}
addu        {0} + {1} & 0xFFFFFFFFFFFFFFFF    {0} + {1}
multiplyu   {0} * {1} & 0xFFFFFFFFFFFFFFFF    {0} * {1}
floor_dividei  {0} // {1}                     over({0}, {1})
remainderi  {0} % {1}                         rest({0}, {1})
bitwise_andb|logical_andb|multiplyb  {0} and {1}  {0} & {1}
bitwise_orb|logical_orb|addb  {0} or {1}      {0} | {1}
invertb|logical_notb  not {0}                 !{0}
negative    -{0}
floori      {0}
floorf|ceilf  copysign({op}({0}), {0})        {op}({0})
rintf       copysign(round({0}), {0})         rint({0})
sqrtf       sqrt({0})
"""
"""Operations in Python and in C: of kinds that are taken and made, of a kind made, or of any."""
SIGNS = "add + subtract - multiply * divide / left_shift << right_shift >> bitwise_xor ^ "
SIGNS += "less < less_equal <= greater > greater_equal >= equal == not_equal != "
SIGNS += "bitwise_and & bitwise_or |"
LINES = [re.split(r"  +", line) for line in FORMS.strip().split("\n")]
LINES += [[name, f"{{0}} {sign} {{1}}"] for name, sign in re.findall(r"(\S+) (\S+)", SIGNS)]
PYTHON, C = (
    {name: forms[way] for names, *forms in LINES for name in names.split("|")} for way in (0, -1)
)


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

    def __bool__(self, *_: Any) -> bool:
        raise Untraceable("which way is taken hangs on data")

    __eq__, __hash__ = __bool__, object.__hash__


def const(number: Any, dtype: Any = np.int64) -> Node:
    return Node("const", np.dtype(dtype).kind, WIDE[np.dtype(dtype).kind](number))


def made(op: str, kind: str, *args: Node) -> Node:
    """Return the node of an operation on nodes of the kinds that it takes, or a simpler one."""
    first, last = args[0], args[-1]
    if op == "cast" and first.kind == kind:
        return first
    if op == "where" and (first.op == "const" or args[1] is last):
        return args[1] if first.op != "const" or first.args[0] else last
    if all(arg.op == "const" for arg in args):
        of = WIDE[kind] if op == "cast" else getattr(np, op)
        with np.errstate(all="ignore"):
            return const(of(*(arg.args[0] for arg in args)), WIDE[kind])
    if op == "cast" and first.op == "where" and last.args[2].op == "const":
        arms = [made("cast", kind, arm) for arm in first.args[1:]]
        return made("where", kind, first.args[0], *arms)
    for one, other in (args, args[::-1]) if (op, kind) == ("multiply", "i") else ():
        if one.op == "cast" and one.args[0].kind == "b":
            return made("where", kind, one.args[0], other, const(0))
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
        begin, (field, size) = first.args[0].args[0], first.args[1:]
        step = size // len(entries)
        way = [(at, field, size) for at in range(begin, size, step)]
        if way == [(e.args[0].args[0], *e.args[1:]) for e in entries]:
            return Node("load", first.kind, line(index, step, int(begin)), field, size)
    return Node("pick", first.kind, index, *entries)


def written(arrays: Sequence[Any], forms: Any, tables: dict[str, Any]) -> tuple[Any, Any]:
    """Return lines that work out arrays of nodes, and what the entries are then, in lists.

    What is used once stands where it is used. Constants go into `tables`, by the names they get.
    """
    lines, texts = list[str](), dict[Any, Any]()
    uses = Counter(node for array in arrays for node in np.asarray(array).ravel())
    todo = [*uses]
    while todo:
        parts = [arg for arg in todo.pop().args if isinstance(arg, Node)]
        todo += {*parts} - uses.keys()
        uses.update(parts)
    for part in sorted(uses, key=lambda part: part.number):
        op, kind, args = part.op, part.kind, list[Any]()
        for arg in part.args:
            if is_table := isinstance(arg, np.ndarray | tuple):
                name = next((n for n, t in tables.items() if t is arg), f"c{len(tables)}")
                tables[name] = arg
            args.append(name if is_table else texts.get(arg, arg))
        kinds = "".join(arg.kind for arg in part.args if isinstance(arg, Node))
        form = forms.get(op + kinds + kind) or forms.get(op + kind) or forms.get(op)
        if form is None:
            raise Untraceable(f"np.{op} is not traced")
        names = {"op": op, "T": f"{WIDE[kind].__name__}_t", "n": len(args) - 1}
        text = f"({form.format(*args, row=', '.join(map(str, args[1:])), **names)})"
        if (uses[part] > 1 or len(text) > LONG) and op != "const":
            name = f"t{len(lines)}"
            lines.append(forms["="].format(name=name, text=text, **names))
            text = name
        texts[part] = text
    text_of = np.frompyfunc(texts.get, 1, 1)
    return lines, [np.asarray(text_of(np.asarray(a)), object).tolist() for a in arrays]


def stand_in(cells: Any, dtype: Any) -> TracedArray:
    array = np.asarray(cells, object).view(TracedArray)
    array.dtype = np.dtype(dtype)
    return array


def each(make: Callable[..., Node], dtype: Any, *arrays: Any) -> TracedArray:
    """Return what is made of the entries of arrays that broadcast."""
    return stand_in(np.frompyfunc(make, len(arrays), 1)(*map(np.asarray, arrays)), dtype)


def lifted(array: Any) -> Any:
    """Return a stand-in for an array of numbers, or the one it is."""
    if isinstance(array, TracedArray):
        return array
    array = np.asarray(array)
    if array.size >= MOST_NODES:
        raise Untraceable(f"a constant of {array.shape} is used as a whole")
    return each(partial(const, dtype=array.dtype), array.dtype, array)


def cast(array: Any, dtype: Any, **_: Any) -> TracedArray:
    return each(partial(made, "cast", np.dtype(dtype).kind), dtype, lifted(array))


def standing_in(state: Any) -> Any:
    """Return a state of stand-ins; a number is known by its field, and its place in that."""
    fields = dict[str, Any]()
    for name, array in vars(state).items():
        load = partial(Node, "load", array.dtype.kind)
        nodes = [load(const(k), name, array.size) for k in range(array.size)]
        fields[name] = stand_in(nodes, array.dtype).reshape(array.shape)
    return state.replace(**fields)


def inputs(texts: Sequence[str], dtype: Any) -> TracedArray:
    return stand_in([Node("input", np.dtype(dtype).kind, text) for text in texts], dtype)


def changes(before: Any, after: Any) -> dict[str, TracedArray]:
    """Return the nodes of each field that is another in the state after, in a row."""
    changed = dict[str, TracedArray]()
    for name, old in vars(before).items():
        if (new := lifted(vars(after)[name])) is not old:
            changed[name] = new.reshape(-1)
            if new.dtype != old.dtype or new.shape != old.shape:
                raise Untraceable(f"{name} of a state changes its kind or shape")
    return changed


def _type(array: Any) -> Any:
    """Return the type of an operand; Python's numbers take that of what is beside them."""
    weak = type(array) in (int, float)
    return type(array) if weak else getattr(array, "dtype", None) or np.asarray(array).dtype


def alike(arrays: Sequence[Any]) -> list[TracedArray]:
    """Return stand-ins of the type that arrays have together."""
    dtype = np.result_type(*(a if type(a) in (int, float) else _type(a) for a in arrays))
    return [cast(array, dtype) for array in arrays]


def _where(condition: Any, *arms: Any) -> TracedArray:
    yes, no = alike(arms)
    return each(partial(made, "where", yes.dtype.kind), yes.dtype, cast(condition, bool), yes, no)


def _parts(array: Any, axis: int | None) -> list[TracedArray]:
    return [*(array.reshape(-1) if axis is None else np.moveaxis(array, axis, 0))]


def _in_a_row(
    array: Any, step: Any, method: str, axis: Any = 0, dtype: Any = None, **how: Any
) -> Any:
    """Return what ``step.reduce`` or ``step.accumulate`` does along an axis."""
    if dtype is None and array.dtype == np.bool_ and step in (np.add, np.multiply):
        dtype = np.int64
    parts = _parts(array if dtype is None else array.astype(dtype), axis)
    if method == "accumulate":
        return np.stack([*accumulate(parts, step)], axis)
    if parts[0].dtype.kind == "f" and parts[0].size < 2 and step is np.add and len(parts) >= SUMMED:
        raise Untraceable(f"{SUMMED} floats or more are summed")
    if method != "reduce" or how.get("keepdims"):
        raise Untraceable(f"np.{step.__name__}.{method} is not traced, nor are kept dimensions")
    return reduce(step, parts)


def _place(array: Any, test: Any, axis: int | None = None, **_: Any) -> TracedArray:
    best, *others = _parts(array.astype(np.int64) if array.dtype == np.bool_ else array, axis)
    place: Any = np.zeros_like(best, np.int64)
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


def _take(values: Any, index: Any, axis: int | None = None, **_: Any) -> TracedArray:
    index, constant = lifted(index), not isinstance(values, TracedArray)
    entries = np.asarray(values)
    entries = entries.reshape(-1) if axis is None else np.moveaxis(entries, axis, 0)
    places = np.arange(entries[:1].size).reshape(entries.shape[1:])
    table, width, axis = np.ascontiguousarray(entries), places.size, axis or 0

    def found(here: Node, k: int) -> Node:
        if constant:
            return Node("look", table.dtype.kind, line(here, width, k), table, table.size)
        return pick(here, table.ravel()[k::width])

    rows = np.frompyfunc(found, 2, 1)(np.asarray(index)[(..., *[None] * places.ndim)], places)
    moved = np.moveaxis(rows, range(index.ndim), range(axis, axis + index.ndim))
    return stand_in(moved, values.dtype)


def _joined(join: Any, arrays: Any, axis: int = 0) -> TracedArray:
    parts = alike(arrays)
    return stand_in(join([*map(np.asarray, parts)], axis), parts[0].dtype)


def _empty(like: Any, dtype: Any = None, shape: Any = None) -> TracedArray:
    return lifted(np.zeros(like.shape if shape is None else shape, dtype or like.dtype))


class TracedArray(StandIn, np.ndarray[Any, Any]):
    """A stand-in for an array: its nodes, and the type of the numbers that they stand for."""

    dtype: Any = None
    astype: Any = cast
    view: Any = cast  # of 64 bits
    take: Any = _take
    argmax: Any = partialmethod(_place, np.greater)
    argmin: Any = partialmethod(_place, np.less)
    argsort: Any = partialmethod(_sorted, places=True)
    cumsum: Any = partialmethod(_in_a_row, np.add, "accumulate")

    def __array_finalize__(self, of: Any) -> None:
        self.dtype = getattr(of, "dtype", None)

    def __getitem__(self, index: Any) -> TracedArray:
        return stand_in(super().__getitem__(index), self.dtype)

    def __setitem__(self, index: Any, values: Any) -> None:
        super().__setitem__(index, np.asarray(cast(values, self.dtype))[()])

    def into(self, values: Any, axis: int = 0) -> TracedArray:
        return _take(values, self, axis)

    def called(self, function: Any, where: Any) -> TracedArray:
        """Return a function's answers to these rows of integers, see `llm_games.arrays`."""
        rows = np.concatenate([where[..., None], self], axis=-1).tolist()
        calls = [Node("called", "i", (function, len(row)), *row) for row in rows]
        return stand_in(calls, np.int64)

    def put(self, index: Any, values: Any) -> None:  # type: ignore[override]
        """Set the entries at integers, counted from the first; each is there once."""
        places = np.arange(self.size).reshape(self.shape)
        for place, value in zip(index.reshape(-1), values.reshape(-1), strict=True):
            self[...] = np.where(place == places, value, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **how: Any) -> Any:
        name = ufunc.__name__
        if method != "__call__":
            return _in_a_row(inputs[0], ufunc, method, **how)
        if name in FUNCTIONS:
            return FUNCTIONS[name](*inputs)
        types = ufunc.resolve_dtypes((*map(_type, inputs), None))
        if name.startswith("logical"):
            types = (np.dtype(bool),) * len(types)
        if types[-1].kind != "b" and types[-1].itemsize < 8 and name != "multiply":
            raise Untraceable(f"np.{name} of {types[-1]} is not traced")
        parts = map(cast, inputs, types)
        return each(partial(made, name, types[-1].kind), types[-1], *parts)

    def __array_function__(self, function: Any, types: Any, given: Any, named: Any) -> Any:
        if of := FUNCTIONS.get(function.__name__):
            return of(*given, **named)
        return super().__array_function__(function, types, given, named)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "minimum": lambda one, other: _where(np.less_equal(one, other) | (one != one), one, other),
    "maximum": lambda one, other: _where(np.greater_equal(one, other) | (one != one), one, other),
    "clip": lambda array, low, high: np.minimum(np.maximum(array, low), high),
    "absolute": lambda array: _where(array < 0, -array, array) + array.dtype.type(0),
    "sign": lambda array: (array > 0) * 1 - (array < 0) * 1,
    "isnan": lambda array: array != array,
    "concatenate": partial(_joined, np.concatenate),
    "stack": partial(_joined, np.stack),
    "partition": _sorted,
    "broadcast_to": lambda a, shape: stand_in(np.broadcast_to(np.asarray(a), shape), a.dtype),
    "count_nonzero": lambda array, **_: 0.5,  # neither none nor all
    "zeros_like": _empty,
    "empty_like": _empty,
}
