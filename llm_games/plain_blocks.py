"""Blocks of a template as plain functions of a dict of names, many times as fast as jinja's.

A block becomes one expression: text with slots, in which conditions and loops stand as slots. One
with a node that has no form here is left out; what the expression raises (a name is missing, an
attribute of what is no dict), jinja's own function of the block has to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jinja2 import nodes
from jinja2.compiler import operators

Scope = dict[str, str]  # Python's names of the parts of loops
Blocks = dict[str, Callable[[Mapping[str, Any]], str]]
FORMS = {
    "Const": "{node.value!r}",
    "Not": "(not {})",
    "Neg": "(-{})",
    "Getitem": "{}[{}]",
    "Pair": "{}: {}",
    "Tuple": "({row})",
    "Dict": "{{{row}}}",
    "Concat": "''.join(map(str, [{row}]))",
    "CondExpr": "({1} if {0} else {2})",
    "Compare": "({chain})",
    "Operand": "{operator} {}",
    "Filter": "{node.name}({row})",
}
SIGNS = {"And": "and", "Or": "or", "Add": "+", "Sub": "-", "Mul": "*", "Mod": "%"}
FORMS |= {kind: f"({{}} {sign} {{}})" for kind, sign in SIGNS.items()}
FILTERS: dict[str, Callable[..., Any]] = {
    "items": lambda values: values.items(),
    "join": lambda values, between="": between.join(map(str, values)),
}
MOST_KEPT = 4096  # texts of a filter at one place
_EDGES = re.compile(" *\n *")  # of lines, which are stripped anyway


class KeptTexts(dict[Any, str]):
    """The texts of values at one place; of a row, which most seats are told alike, the last."""

    def __init__(self, write: Callable[[Any], str]) -> None:
        self.write = write
        self.last: tuple[Any, str] = None, ""

    def row(self, values: Any) -> str:
        last = self.last
        if values is not last[0]:
            last = self.last = values, self.write(values)
        return last[1]

    def __missing__(self, value: Any) -> str:
        if len(self) >= MOST_KEPT:
            self.clear()
        text = self[value] = self.write(value)
        return text


def plain_blocks(
    template: nodes.Template, filters: Mapping[str, Any], keep: Sequence[str]
) -> Blocks:
    """Return the functions of a template's blocks, but of those that have no plain form.

    `keep`: filters whose texts are kept, of numbers and of rows of them.
    """
    functions, writer = Blocks(), Expressions({**FILTERS, **filters}, keep)
    for block in template.find_all(nodes.Block):
        try:
            code = f"lambda n: {writer.body(block.body, {})}"
        except KeyError:
            continue
        functions[block.name] = eval(code, writer.names)
    return functions


class Expressions:
    """Writes nodes as Python; `names` are those that it uses."""

    def __init__(self, filters: Mapping[str, Any], keep: Sequence[str]) -> None:
        self.names, self.keep, self.count = dict(filters), keep, 0

    def new(self, name: str) -> str:
        self.count += 1
        return f"{name}_{self.count}_"

    def body(self, statements: Iterable[nodes.Node], scope: Scope) -> str:
        """Return the text of statements as an expression."""
        text, slots = "", ""
        for part in statements:
            for piece in part.nodes if isinstance(part, nodes.Output) else [part]:
                if isinstance(piece, nodes.TemplateData):
                    text += _EDGES.sub("\n", piece.data).replace("%", "%%")
                else:
                    text += "%s"
                    slots += f"{self.written(piece, scope)}, "
        return f"{text!r} % ({slots})"

    def written(self, node: Any, scope: Scope) -> str:
        """Return a node as an expression; KeyError: it has no form."""
        return str(getattr(self, f"write_{type(node).__name__.lower()}", self.formed)(node, scope))

    def formed(self, node: Any, scope: Scope) -> str:
        """Write a node by its form, of the parts below it."""
        parts = [self.written(part, scope) for part in node.iter_child_nodes()]
        more = {"row": ", ".join([*parts, ""]), "chain": " ".join(parts)}
        operator = operators.get(getattr(node, "op", ""))
        return FORMS[type(node).__name__].format(*parts, "''", node=node, operator=operator, **more)

    # -- values ------------------------------------------------------------------------------------
    def write_name(self, node: nodes.Name, scope: Scope) -> str:
        return scope.get(node.name, f"n[{node.name!r}]")

    def write_getattr(self, node: nodes.Getattr, scope: Scope) -> str:
        owner = self.written(node.node, scope)
        return scope.get(f"{owner}.{node.attr}", f"{owner}[{node.attr!r}]")

    def write_test(self, node: nodes.Test, scope: Scope) -> str:
        return f"({self.written(node.node, scope)} is { {'none': None}[node.name] })"

    def write_filter(self, node: nodes.Filter, scope: Scope) -> str:
        write = self.names[node.name]
        consts = [arg.value for arg in node.args if isinstance(arg, nodes.Const)]
        if node.name not in self.keep or len(consts) < len(node.args) or node.kwargs:
            return self.formed(node, scope)
        place, value = self.new(node.name), self.written(node.node, scope)
        self.names[place] = KeptTexts(lambda value: write(value, *consts))
        return f"{place}.row({value})" if node.name == "listed" else f"{place}[{value}]"

    # -- statements --------------------------------------------------------------------------------
    def write_if(self, node: nodes.If, scope: Scope) -> str:
        text = ""
        for branch in (node, *node.elif_):
            condition = self.written(branch.test, scope)
            text += f"{self.body(branch.body, scope)} if {condition} else "
        return f"({text}{self.body(node.else_, scope)})"

    def write_for(self, node: nodes.For, scope: Scope) -> str:
        if node.else_ or node.test or node.recursive:
            raise KeyError("a loop with conditions")
        targets = [node.target, *node.target.find_all(nodes.Name)]
        names = {t.name: self.new(t.name) for t in targets if isinstance(t, nodes.Name)}
        values, index, items = self.written(node.iter, scope), self.new("k"), self.new("items")
        inner = scope | names | {"loop": items, f"{items}.index0": index}
        inner[f"{items}.last"] = f"({index} == len({items}) - 1)"
        body, target = self.body(node.body, inner), ", ".join(names.values())
        text = f"''.join([{body} for {index}, ({target}) in enumerate({items})])"
        return f"({text} if ({items} := [*{values}]) else '')"
