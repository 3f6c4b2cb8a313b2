"""Blocks of a template as plain functions of a dict of names, many times as fast as jinja's.

A block becomes one expression: text with slots, in which conditions and loops stand as slots. A
node without a plain form raises `NoPlainForm`; what the expression raises (a name is missing, an
attribute of what is no dict), jinja's own function of the block has to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jinja2 import nodes

Scope = dict[str, str]  # Python's names of what a block sets, and of its loop's parts
Blocks = dict[str, Callable[[Mapping[str, Any]], str]]
FORMS = {
    "And": "({} and {})",
    "Or": "({} or {})",
    "Not": "(not {})",
    "Neg": "(-{})",
    "Add": "({} + {})",
    "Sub": "({} - {})",
    "Mul": "({} * {})",
    "Mod": "({} % {})",
    "Getitem": "{}[{}]",
    "Pair": "{}: {}",
    "Tuple": "({row})",
    "List": "[{row}]",
    "Dict": "{{{row}}}",
    "Concat": "''.join(map(str, [{row}]))",
}
COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">=", "in": "in"}
FILTERS: dict[str, Callable[..., Any]] = {
    "length": len,
    "list": list,
    "items": lambda values: values.items(),
    "join": lambda values, between="": between.join(map(str, values)),
    "format": lambda text, *values: text % values,
}
MOST_KEPT = 4096
_EDGES = re.compile(" *\n *")  # of lines, which are stripped anyway


class NoPlainForm(Exception):
    """A node has no plain form."""


class FilterTexts(dict[Any, str]):
    """What a filter wrote at one place, by value; several times as fast as a call."""

    def __init__(self, write: Callable[..., str], args: Sequence[Any]) -> None:
        self._write, self._args = write, args

    def __missing__(self, value: Any) -> str:
        if len(self) >= MOST_KEPT:
            self.clear()
        text = self[value] = self._write(value, *self._args)
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
        except NoPlainForm:
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

    def written(self, node: nodes.Node | None, scope: Scope) -> str:
        kind = type(node).__name__
        if node is not None and kind in FORMS:
            parts = [self.written(part, scope) for part in node.iter_child_nodes()]
            return FORMS[kind].format(*parts, row="".join(f"{part}, " for part in parts))
        write = getattr(self, f"write_{kind.lower()}", None)
        if write is None:
            raise NoPlainForm(kind)
        return str(write(node, scope))

    def row(self, parts: Iterable[nodes.Node], scope: Scope) -> str:
        return "".join(f"{self.written(part, scope)}, " for part in parts)

    # -- values ------------------------------------------------------------------------------------
    def write_const(self, node: nodes.Const, scope: Scope) -> str:
        return repr(node.value)

    def write_name(self, node: nodes.Name, scope: Scope) -> str:
        return scope.get(node.name, f"n[{node.name!r}]")

    def write_getattr(self, node: nodes.Getattr, scope: Scope) -> str:
        owner = self.written(node.node, scope)
        return scope.get(f"{owner}.{node.attr}", f"{owner}[{node.attr!r}]")

    def write_condexpr(self, node: nodes.CondExpr, scope: Scope) -> str:
        otherwise = self.written(node.expr2, scope) if node.expr2 else "''"
        yes, condition = self.written(node.expr1, scope), self.written(node.test, scope)
        return f"({yes} if {condition} else {otherwise})"

    def write_compare(self, node: nodes.Compare, scope: Scope) -> str:
        if not all(other.op in COMPARED for other in node.ops):
            raise NoPlainForm("a comparison")
        others = (f" {COMPARED[o.op]} {self.written(o.expr, scope)}" for o in node.ops)
        return f"({self.written(node.expr, scope)}{''.join(others)})"

    def write_test(self, node: nodes.Test, scope: Scope) -> str:
        if node.name != "none":
            raise NoPlainForm(node.name)
        return f"({self.written(node.node, scope)} is None)"

    def write_filter(self, node: nodes.Filter, scope: Scope) -> str:
        name, value = node.name, self.written(node.node, scope)
        consts = [arg.value for arg in node.args if isinstance(arg, nodes.Const)]
        if name == "reject" and consts[:1] == ["equalto"]:
            return f"[v for v in {value} if not v == {self.written(node.args[1], scope)}]"
        if name == "map" and len(node.args) == 1 and consts[0] in self.names:
            return f"[{consts[0]}(v) for v in {value}]"
        if name not in self.names:
            raise NoPlainForm(name)
        if name in self.keep and len(consts) == len(node.args) and not node.kwargs:
            place = self.new(name)
            self.names[place] = FilterTexts(self.names[name], consts)
            return f"{place}[(*{value},)]" if name == "listed" else f"{place}[{value}]"
        named = "".join(f"{k.key}={self.written(k.value, scope)}, " for k in node.kwargs)
        return f"{name}({value}, {self.row(node.args, scope)}{named})"

    def write_call(self, node: nodes.Call, scope: Scope) -> str:
        called = node.node
        if isinstance(called, nodes.Getattr) and called.attr == "items":
            return f"{self.written(called.node, scope)}.items()"
        return f"{self.written(called, scope)}({self.row(node.args, scope)})"

    # -- statements --------------------------------------------------------------------------------
    def write_if(self, node: nodes.If, scope: Scope) -> str:
        text = ""
        for branch in (node, *node.elif_):
            condition = self.written(branch.test, scope)
            text += f"{self.body(branch.body, scope)} if {condition} else "
        return f"({text}{self.body(node.else_, scope)})"

    def write_assign(self, node: nodes.Assign, scope: Scope) -> str:
        if not isinstance(node.target, nodes.Name) or "loop" in scope:
            raise NoPlainForm("a name that is set in a loop")
        value, name = self.written(node.node, scope), self.new(node.target.name)
        scope[node.target.name] = name
        return f"(({name} := {value}), '')[1]"

    def write_macro(self, node: nodes.Macro, scope: Scope) -> str:
        args, name = {arg.name: self.new(arg.name) for arg in node.args}, self.new(node.name)
        code = f"lambda {', '.join(args.values())}: {self.body(node.body, scope | args)}"
        scope[node.name] = name
        return f"(({name} := {code}), '')[1]"

    def write_for(self, node: nodes.For, scope: Scope) -> str:
        if node.else_ or node.test or node.recursive:
            raise NoPlainForm("a loop with conditions")
        targets = [node.target, *node.target.find_all(nodes.Name)]
        names = {t.name: self.new(t.name) for t in targets if isinstance(t, nodes.Name)}
        values, index, items = self.written(node.iter, scope), self.new("k"), self.new("items")
        inner = scope | names | {"loop": items, f"{items}.index0": index}
        inner |= {f"{items}.first": f"(not {index})", f"{items}.index": f"({index} + 1)"}
        inner |= {f"{items}.last": f"({index} == len({items}) - 1)"}
        body, target = self.body(node.body, inner), ", ".join(names.values())
        if index not in body:
            return f"''.join([{body} for {target} in {values}])"
        text = f"''.join([{body} for {index}, ({target}) in enumerate({items})])"
        return f"({text} if ({items} := [*{values}]) else '')"
