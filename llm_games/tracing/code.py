"""States of stand-ins, and lines of Python or of C of what rules make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llm_games.tracing.graph import (
    WIDE,
    Node,
    TracedArray,
    Untraceable,
    const,
    lifted,
    node,
    objects,
)

LONG = 200  # letters of an expression that is not parted
SIGNS = "add + subtract - multiply * divide / left_shift << right_shift >> bitwise_xor ^ "
SIGNS += "less < less_equal <= greater > greater_equal >= equal == not_equal != "
SIGNS += "bitwise_and & bitwise_or | floor_dividei // remainderi %"
BOTH = {op: f"{{0}} {sign} {{1}}" for op, sign in zip(*[iter(SIGNS.split())] * 2, strict=True)}
BOTH |= {"input": "{0}", "invertb": "not {0}", "negative": "-{0}", "castb": "{0} != 0"}
BOTH |= {"floorf": "floor({0})", "floori": "{0}", "=": "{name} = {text}"}
PYTHON = BOTH | {
    "const": "{0!r}",
    "where": "{1} if {0} else {2}",
    "bitwise_andb": "{0} and {1}",
    "bitwise_orb": "{0} or {1}",
    "addu": "{0} + {1} & 0xFFFFFFFFFFFFFFFF",
    "multiplyu": "{0} * {1} & 0xFFFFFFFFFFFFFFFF",
    "castiu": "{0} & 0xFFFFFFFFFFFFFFFF",
    "castbi": "{0} + 0",
    "castfi": "int({0})",
    "castf": "float({0})",
    "load": "s{1}[{0}]",
    "look": "{1}[{0}]",
    "pick": "({row},)[{0}]",
}
C = (
    BOTH
    | {
        "const": "({T}){0!r}",
        "where": "{0} ? {1} : {2}",
        "floor_dividei": "over({0}, {1})",
        "remainderi": "rest({0}, {1})",
        "cast": "({T}){0}",
        "load": "p{1}[within({0}, {2}) * M + t]",
        "look": "{1}[within({0}, {2})]",
        "pick": "((const {T}[]){{{row}}})[within({0}, {n})]",
        "=": "const {T} {name} = {text};",
    }
    | {name: f"{name}({{0}})" for name in ("ceil", "sqrt", "rint")}
)
"""Operations in both languages: of kinds that are taken and made, of a kind that is made, or any."""


def c_type(dtype: Any) -> str:
    return f"{np.dtype(dtype).name}_t"


class Code:
    """Lines that work out nodes, and the nodes' texts; what is used once stands where it is used.

    `outputs` are nodes in lists; `tables` are constant arrays by their names.
    """

    def __init__(self, outputs: Any, forms: Mapping[str, str]) -> None:
        self.forms, self.lines, self.tables = forms, list[str](), dict[str, Any]()
        self.texts: dict[Node, str] = {}
        self.uses = Counter(leaves(outputs))
        todo = [*self.uses]
        while todo:
            parts = [arg for arg in todo.pop().args if isinstance(arg, Node)]
            todo += {*parts} - self.uses.keys()
            self.uses.update(parts)
        for part in sorted(self.uses, key=lambda part: part.number):
            self._write(part)

    def _write(self, part: Node) -> None:
        op, kind, args = part.op, part.kind, [*map(self._named, part.args)]
        kinds = "".join(arg.kind for arg in part.args if isinstance(arg, Node))
        form = next(
            (f for key in (op + kinds + kind, op + kind, op) if (f := self.forms.get(key))), None
        )
        if form is None:
            raise Untraceable(f"np.{op} is not traced")
        row, names = ", ".join(map(str, args[1:])), {"T": c_type(WIDE[kind]), "n": len(args) - 1}
        text = f"({form.format(*args, row=row, **names)})"
        if op not in ("const", "input") and (self.uses[part] > 1 or len(text) > LONG):
            name = f"t{len(self.lines)}"
            self.lines.append(self.forms["="].format(name=name, text=text, **names))
            text = name
        self.texts[part] = text

    def _named(self, arg: Any) -> Any:
        if isinstance(arg, Node):
            return self.texts[arg]
        if not isinstance(arg, np.ndarray):
            return arg.item() if isinstance(arg, np.generic) else arg
        name = next((name for name, table in self.tables.items() if table is arg), None)
        self.tables[name := name or f"c{len(self.tables)}"] = arg
        return name

    def text(self, outputs: Any) -> str:
        """Return nodes, in lists, in which there may be texts."""
        if isinstance(outputs, list):
            return f"[{', '.join(map(self.text, outputs))}]"
        return outputs if isinstance(outputs, str) else self.texts[outputs]


def leaves(outputs: Any) -> list[Node]:
    if isinstance(outputs, list):
        return [leaf for part in outputs for leaf in leaves(part)]
    return [] if isinstance(outputs, str) else [outputs]


def listed(part: Any) -> Any:
    """Return the nodes of an array in lists, as NumPy lists numbers."""
    return lifted(part).cells.tolist()


# -- states ----------------------------------------------------------------------------------------


def inputs(texts: Sequence[str], dtype: Any, shape: Any = -1) -> TracedArray:
    kind = np.dtype(dtype).kind
    return TracedArray(objects([node("input", kind, text) for text in texts], shape), dtype)


def standing_in(state: Any) -> Any:
    """Return a state of stand-ins; a number is known by its field's place, and its own in that."""
    fields = dict[str, Any]()
    for place, (name, array) in enumerate(vars(state).items()):
        size, kind = array.size, array.dtype.kind
        nodes = [node("load", kind, const(k), place, size) for k in range(size)]
        fields[name] = TracedArray(objects(nodes, array.shape), array.dtype)
    return state.replace(**fields)


def changes(before: Any, after: Any) -> dict[int, list[Node]]:
    """Return the nodes of each field that is another in the state after, by its place."""
    changed = dict[int, list[Node]]()
    for place, (name, old) in enumerate(vars(before).items()):
        new = lifted(vars(after)[name])
        if new.dtype != old.dtype or new.shape != old.shape:
            raise Untraceable(f"{name} of a state changes its kind or shape")
        if new is not old:
            changed[place] = listed(new.reshape(-1))
    return changed
