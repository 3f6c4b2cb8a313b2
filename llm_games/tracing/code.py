"""Lines of Python or of C that work out what rules make of stand-ins."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from llm_games.tracing.graph import WIDE, Call, Node, Untraceable

LONG = 200  # letters of an expression that is not parted
PYTHON, C = 0, 1
FORMS = r"""
=           {name} = {text}                   const {T} {name} = {text};
input       {0}
const       {0}                               ({T}){0}
load        s_{1}[{0}]                        ({T})s_{1}[within({0}, {2}) * M + t]
look        {1}[{0}]                          ({T}){1}[within({0}, {2})]
pick        ({row},)[{0}]                     ((const {T}[]){{{row}}})[within({0}, {n})]
called      {0}({row})                        ask({0}, t, {n}, (int64_t[]){{{row}}}, &asks)
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


class Text(str):
    """Code that stands in lists as it is."""

    __repr__ = str.__str__


class Code:
    """Lines that work out arrays of nodes; what is used once stands where it is used.

    `uses` counts how often each node is used, `tables` are constants: c0, c1, ..., which several
    parts of one program share.
    """

    def __init__(
        self, arrays: Sequence[Any], language: int, tables: dict[str, Any] | None = None
    ) -> None:
        self.lines, self._texts = list[str](), dict[Node, Text]()
        self.tables = dict[str, Any]() if tables is None else tables
        self.uses = Counter(node for array in arrays for node in np.asarray(array).ravel())
        todo, forms = [*self.uses], IN[language]
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
            names = {"T": f"{WIDE[kind].__name__}_t", "n": len(args) - 1}
            text = f"({form.format(*args, row=', '.join(map(str, args[1:])), **names)})"
            if (self.uses[part] > 1 or len(text) > LONG) and op not in ("const", "input"):
                name = f"t{len(self.lines)}"
                self.lines.append(forms["="].format(name=name, text=text, **names))
                text = name
            self._texts[part] = Text(text)

    def _named(self, arg: Any) -> Any:
        if isinstance(arg, Node):
            return self._texts[arg]
        if not isinstance(arg, np.ndarray | Call):
            return arg
        name = next((n for n, table in self.tables.items() if table is arg), f"c{len(self.tables)}")
        self.tables[name] = arg
        return name

    def texts(self, array: Any) -> Any:
        """Return the text of each node of an array, in lists."""
        return np.asarray(np.frompyfunc(self._texts.get, 1, 1)(np.asarray(array)), object).tolist()
