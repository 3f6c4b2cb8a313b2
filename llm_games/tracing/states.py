"""States of stand-ins, and lines of code of what rules make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from llm_games.tracing.graph import (
    FORMS,
    Node,
    StoredArray,
    TracedArray,
    Untraceable,
    kind_of,
    lifted,
    node,
)

T = TypeVar("T")
DEEP = 12  # levels of brackets that one line nests
FULL = 2**64 - 1
OVERFLOWS = {"add", "subtract", "multiply", "left_shift", "invert", "negative"}
OF_KINDS = {"sign": "i", "floor_divide": "i", "remainder": "i", "absolute": "ifh"}
OF_ROWS = {"sort", "argsort", "argmax", "argmin"}
TWICE = {"minimum", "maximum", "sign", "isnan"}  # which write more than once what they take


# -- fields of a state -----------------------------------------------------------------------------


class Slot(NamedTuple):
    """The place of a field among a state's numbers; one that stays is `whole`, at `begin`.

    `plain`: of a field without axes NumPy makes a number, not an array.
    """

    begin: int
    stop: int
    shape: tuple[int, ...]
    dtype: Any
    whole: bool
    plain: bool


Slots = Mapping[str, Slot]


def slots_and(
    trace: Callable[[Slots], tuple[T, set[str]]], before: Any, after: Any
) -> tuple[Slots, T]:
    """Return the fields' slots, and what a trace makes of them.

    The trace also returns which fields it finds changed; of NumPy's two states more may be alike.
    """
    pairs = {name: (vars(before)[name], vars(after)[name]) for name in vars(before)}
    changed = {name for name, (old, new) in pairs.items() if new is not old}
    while True:
        slots, begin = dict[str, Slot](), 0
        for name, (old, new) in pairs.items():
            whole = old.ndim > 0 and name not in changed
            stop, plain = begin + (1 if whole else old.size), isinstance(new, np.generic)
            slots[name] = Slot(begin, stop, old.shape, old.dtype, whole, plain)
            begin = stop
        traced, moved = trace(slots)
        if moved <= changed:
            return slots, traced
        changed |= moved


def standing_in(kind: type[Any], slots: Slots) -> Any:
    """Return a state of stand-ins."""
    state = object.__new__(kind)
    for name, (begin, stop, shape, dtype, whole, _) in slots.items():
        stored: TracedArray | None = StoredArray(begin, shape, dtype) if whole else None
        vars(state)[name] = inputs("s", begin, stop, dtype, shape) if stored is None else stored
    return state


def inputs(letter: str, begin: int, stop: int, dtype: Any, shape: Any = -1) -> TracedArray:
    cells = np.empty(stop - begin, object)
    cells[:] = [node("input", kind_of(dtype), f"{letter}{k}") for k in range(begin, stop)]
    return TracedArray(cells.reshape(shape), dtype)


def numbers_after(slots: Slots, before: Any, after: Any) -> tuple[dict[str, Node], set[str]]:
    """Return the numbers of a state by their names before, and fields found changed."""
    numbers, moved = dict[str, Node](), set[str]()
    for name, slot in slots.items():
        new = vars(after)[name]
        if slot.whole and new is vars(before)[name]:
            continue
        moved.add(name)
        new = lifted(new)
        if new.dtype != slot.dtype or new.shape != slot.shape:
            raise Untraceable(f"{name} of a state changes its kind or shape")
        numbers |= {f"s{slot.begin + k}": cell for k, cell in enumerate(new.cells.ravel())}
    return numbers, {name for name in moved if slots[name].whole}


# -- nodes as lines --------------------------------------------------------------------------------


def nodes_of(outputs: Any) -> Iterator[Node]:
    """Yield nodes in arrays, lists and tuples, in which there may be texts."""
    if isinstance(outputs, Node):
        yield outputs
    elif not isinstance(outputs, str):
        for part in outputs.ravel() if isinstance(outputs, np.ndarray) else outputs:
            yield from nodes_of(part)


class CodeLines:
    """Writes groups of nodes as lines of code; what is used once stands where it is used.

    `ends` are the numbers of lines after each group. Of Python, as C reads it with some macros, but
    for what languages override.
    """

    forms: ClassVar[dict[str, str]] = FORMS
    truths: ClassVar[dict[str, str]] = {"invert": "not {0}"}  # other forms of truths
    literal: Callable[[Any, str], str]
    looked_up: Callable[[Node, str], str]
    chosen: Callable[..., str]  # by a condition
    row: Callable[[str, list[str]], str]  # numbers of a kind
    place: Callable[[str, int], str]  # among so many
    cast: Callable[[str, str, str], str]  # from one kind to another
    assigned: Callable[[str, Node, str], str]  # to a name

    def __init__(self, groups: Iterable[Any]) -> None:
        self.lines, self.ends = list[str](), list[int]()
        self.inputs: set[str] = set()
        self._tables: dict[str, Any] = {}
        self._texts: dict[Node, tuple[str, int]] = {}  # and how deep it nests
        uses, orders = dict[Node, int](), list[list[Node]]()
        for group in groups:
            orders.append([])
            stack = [(out, False) for out in nodes_of(group)]
            while stack:
                part, done = stack.pop()
                if done:
                    orders[-1].append(part)
                    continue
                uses[part] = uses.get(part, 0) + 1
                if uses[part] == 1:
                    parts = [arg for arg in part.args if isinstance(arg, Node)]
                    stack += [(part, True), *((arg, False) for arg in parts)]
        self._uses = uses
        every = (part for order in orders for part in order)
        self._twice = {arg for part in every if part.op in TWICE for arg in part.args}
        for order in orders:
            for part in order:
                self._write(part)
            self.ends.append(len(self.lines))

    def _write(self, written: Node) -> None:
        parts = [self._texts[arg] for arg in written.args if isinstance(arg, Node)]
        name, deep = f"t{len(self._texts)}", 1 + max([0, *(d for _, d in parts)])
        text = self.written(written, [text for text, _ in parts])
        if written.op in ("input", "load"):
            self.inputs.add(f"s{written.args[-1]}" if written.op == "load" else text)
        if written.op in ("const", "input"):
            deep = 0
        elif self._uses[written] > 1 or deep > DEEP or written in self._twice:
            self.lines.append(self.assigned(name, written, text))
            text, deep = name, 0
        self._texts[written] = text, deep

    def written(self, part: Node, texts: list[str]) -> str:
        """Return a node's text, of the texts of its parts."""
        op, kind, first = part.op, part.kind, "".join(texts[:1])
        if op == "const":
            return self.literal(part.args[0], kind)
        if op == "input":
            return str(part.args[0])
        if op == "entry":
            return f"{first}[{part.args[1]}]"
        if op in ("load", "look"):
            return self.looked_up(part, first)
        if op == "where":
            return self.chosen(*texts)
        if op == "pick":
            return f"{self.row(kind, texts[1:])}[{self.place(first, len(texts) - 1)}]"
        if op in OF_ROWS or len(texts) > 2:
            return f"{op}({self.row('i', texts)}, {len(texts)})"
        if op == "cast":
            return f"({self.cast(part.args[0].kind, kind, first)})"
        if op in ("minimum", "maximum"):
            unless = f" or {first} != {first}" * (kind in "fh")
            return self.chosen(f"{first} {'<>'[op == 'maximum']}= {texts[1]}{unless}", *texts)
        if kind not in OF_KINDS.get(op, kind):
            raise Untraceable(f"np.{op} of such numbers is not traced")
        form = (kind == "b" and self.truths.get(op)) or self.forms.get(op, f"{op}({{0}})")
        full = f" & {self.literal(np.uint64(FULL), 'u')}" * (kind == "u" and op in OVERFLOWS)
        return f"(({form.format(*texts)}){full})" if full else f"({form.format(*texts)})"

    def table(self, constant: Any) -> str:
        """Return the name of a constant array, see `tables`."""
        self._tables.setdefault(repr(constant), constant.array)
        return f"c{[*self._tables].index(repr(constant))}"

    @property
    def tables(self) -> dict[str, Any]:
        return {f"c{k}": array for k, array in enumerate(self._tables.values())}

    def text(self, part: Any) -> str:
        """Return nodes, in arrays and lists of arrays, as Python writes them."""
        if isinstance(part, str):
            return part
        if isinstance(part, Node):
            return self._texts[part][0]
        if isinstance(part, np.ndarray) and not part.ndim:
            return self.text(part[()])
        row = ", ".join(map(self.text, part))
        return f"({row},)" if isinstance(part, tuple) else f"[{row}]"
