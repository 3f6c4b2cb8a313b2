"""States of stand-ins, and lines of Python or of C of what rules make of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from llm_games.tracing.graph import WIDE, Node, TracedArray, Untraceable, const, lifted

LONG = 200  # letters of an expression that is not parted
PYTHON, C = 0, 1
FORMS = r"""
=           {name} = {text}                   const {T} {name} = {text};
input       {0}
const       {0}                               ({T}){0}
load        s{1}[{0}]                         ({T})p{1}[within({0}, {2}) * M + t]
look        {1}[{0}]                          ({T}){1}[within({0}, {2})]
pick        ({row},)[{0}]                     ((const {T}[]){{{row}}})[within({0}, {n})]
where       {1} if {0} else {2}               {0} ? {1} : {2}
castb       {0} != 0
castbi      1 if {0} else 0                   ({T}){0}
castbf      1.0 if {0} else 0.0               ({T}){0}
castfi      int({0})                          ({T}){0}
castui      {0} - ({0} >> 63 << 64)           ({T}){0}
castiu      {0} & 0xFFFFFFFFFFFFFFFF          ({T}){0}
castf       {0} + 0.0                         ({T}){0}
addu        {0} + {1} & 0xFFFFFFFFFFFFFFFF    {0} + {1}
multiplyu   {0} * {1} & 0xFFFFFFFFFFFFFFFF    {0} * {1}
floor_dividei  {0} // {1}                     over({0}, {1})
remainderi  {0} % {1}                         rest({0}, {1})
bitwise_andb  {0} and {1}                     {0} & {1}
bitwise_orb   {0} or {1}                      {0} | {1}
invertb     not {0}                           !{0}
negative    -{0}
floori      {0}
"""
"""Operations in Python and in C: of kinds that are taken and made, of a kind made, or of any."""
SIGNS = "add + subtract - multiply * divide / left_shift << right_shift >> bitwise_xor ^ "
SIGNS += "less < less_equal <= greater > greater_equal >= equal == not_equal != "
SIGNS += "bitwise_and & bitwise_or |"
LINES = [re.split(r"  +", line) for line in FORMS.strip().split("\n")]
LINES += [[f"{name}f", f"{name}({{0}})"] for name in ("floor", "ceil", "rint", "sqrt")]
LINES += [[name, f"{{0}} {sign} {{1}}"] for name, sign in re.findall(r"(\S+) (\S+)", SIGNS)]
IN = [{name: forms[way % len(forms)] for name, *forms in LINES} for way in (PYTHON, C)]


class Code:
    """Lines that work out nodes; what is used once stands where it is used.

    `outputs` are nodes in lists, `texts` those of all nodes, `tables` constants: c0, c1, ..., which
    several parts of one program share.
    """

    def __init__(self, outputs: Any, language: int, tables: list[Any] | None = None) -> None:
        self.lines, self.texts = list[str](), dict[Node, str]()
        self.tables = list[Any]() if tables is None else tables
        self.uses, forms = Counter(leaves(outputs)), IN[language]
        todo = [*self.uses]
        while todo:
            parts = [arg for arg in todo.pop().args if isinstance(arg, Node)]
            todo += {*parts} - self.uses.keys()
            self.uses.update(parts)
        for part in sorted(self.uses, key=lambda part: part.number):
            op, kind, args = part.op, part.kind, [*map(self._named, part.args)]
            kinds = "".join(arg.kind for arg in part.args if isinstance(arg, Node))
            form = forms.get(op + kinds + kind) or forms.get(op + kind) or forms.get(op)
            if form is None:
                raise Untraceable(f"np.{op} is not traced")
            names: Any = {
                "T": f"{WIDE[kind].__name__}_t",
                "n": len(args) - 1,
                "name": f"t{len(self.lines)}",
            }
            names["text"] = f"({form.format(*args, row=', '.join(map(str, args[1:])), **names)})"
            named = self.uses[part] > 1 or len(names["text"]) > LONG
            if named := named and op not in ("const", "input"):
                self.lines.append(forms["="].format(**names))
            self.texts[part] = names["name" if named else "text"]

    def _named(self, arg: Any) -> Any:
        if isinstance(arg, Node):
            return self.texts[arg]
        if not isinstance(arg, np.ndarray):
            return arg
        if all(arg is not table for table in self.tables):
            self.tables.append(arg)
        return f"c{[*map(id, self.tables)].index(id(arg))}"

    def text(self, outputs: Any) -> str:
        """Return nodes, in lists, in which there may be texts; of truths in a tuple their bytes."""
        if isinstance(outputs, list):
            return f"[{', '.join(map(self.text, outputs))}]"
        if isinstance(outputs, tuple):
            some = " or ".join(dict.fromkeys(map(self.text, outputs)))
            return f"bytes({self.text([*outputs])}) if {some} else b''"
        return outputs if isinstance(outputs, str) else self.texts[outputs]


def leaves(outputs: Any) -> list[Node]:
    if isinstance(outputs, list | tuple):
        return [leaf for part in outputs for leaf in leaves(part)]
    return [] if isinstance(outputs, str) else [outputs]


def listed(part: Any) -> Any:
    """Return the nodes of an array in lists, as NumPy lists numbers."""
    return lifted(part).cells.tolist()


def inputs(texts: Sequence[str], dtype: Any) -> TracedArray:
    nodes = [Node("input", np.dtype(dtype).kind, text) for text in texts]
    return TracedArray(nodes, dtype)


def standing_in(state: Any) -> Any:
    """Return a state of stand-ins; a number is known by its field's place, and its own in that."""
    fields = dict[str, Any]()
    for place, (name, array) in enumerate(vars(state).items()):
        size, kind = array.size, array.dtype.kind
        nodes = [Node("load", kind, const(k), place, size) for k in range(size)]
        fields[name] = TracedArray(nodes, array.dtype, array.shape)
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
