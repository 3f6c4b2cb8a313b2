"""Blocks of a template as plain functions of a dict of names, many times as fast as jinja's.

A block becomes one expression: text with slots, in which conditions and loops stand as slots. A
node without a plain form raises `Unwritable`; what the expression raises (a name is missing, an
attribute of what is no dict), jinja's own function of the block has to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from jinja2 import nodes

Scope = dict[str, str]  # Python's names of what a block sets, and of its loop's parts
FILTERS: dict[str, Callable[..., Any]] = {
    "length": len,
    "list": list,
    "items": lambda values: values.items(),
    "join": lambda values, between="": between.join(map(str, values)),
    "format": lambda text, *values: text % values,
}
COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">="}
COMPARED |= {"in": "in", "notin": "not in"}


MOST_KEPT = 4096
_EDGES = re.compile(" *\n *")  # of lines, which are stripped anyway


class Kept(dict[Any, str]):
    """What a filter wrote at one place, by value; several times as fast as a call."""

    def __init__(self, write: Callable[[Any], str]) -> None:
        self._write = write

    def __missing__(self, value: Any) -> str:
        if len(self) >= MOST_KEPT:
            self.clear()
        text = self[value] = self._write(value)
        return text


class Unwritable(Exception):
    """A node has no plain form."""


def plain_blocks(
    template: nodes.Template, filters: Mapping[str, Any], keep: Sequence[str]
) -> dict[str, Callable[[Mapping[str, Any]], str]]:
    """Return the functions of a template's blocks, but of those that have no plain form.

    `keep`: filters whose texts are kept, of numbers and of rows of them.
    """
    functions = dict[str, Callable[[Mapping[str, Any]], str]]()
    writer = Expressions({**FILTERS, **filters}, keep)
    for block in template.find_all(nodes.Block):
        try:
            code = f"lambda n: {writer.body(block.body, {})}"
        except Unwritable:
            continue
        functions[block.name] = eval(code, writer.names)
    return functions


class Expressions:
    """Writes nodes as Python."""

    forms: ClassVar[dict[str, str]] = {
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
    }

    def __init__(self, filters: Mapping[str, Any], keep: Sequence[str]) -> None:
        self.names, self.keep, self.count = dict(filters), keep, 0

    def new(self, name: str) -> str:
        self.count += 1
        return f"{name}_{self.count}_"

    def body(self, parts: Iterable[nodes.Node], scope: Scope) -> str:
        """Return the text of statements as an expression."""
        text, slots = "", list[str]()
        for part in _pieces(parts):
            if isinstance(part, nodes.TemplateData):
                text += _EDGES.sub("\n", part.data).replace("%", "%%")
            else:
                text += "%s"
                unsaid = isinstance(part, nodes.CondExpr) and part.expr2 is None
                slots.append(self.written(part, scope, "''" if unsaid else None))
        return f"{text!r} % ({', '.join(slots)},)" if slots else repr(text.replace("%%", "%"))

    def written(self, node: nodes.Node, scope: Scope, *more: Any) -> str:
        kind = type(node).__name__
        if kind in self.forms:
            parts = (self.written(part, scope) for part in node.iter_child_nodes())
            return self.forms[kind].format(*parts)
        write = getattr(self, f"write_{kind.lower()}", None)
        if write is None:
            raise Unwritable(kind)
        text: str = write(node, scope, *more) if kind == "CondExpr" else write(node, scope)
        return text

    def row(self, parts: Iterable[nodes.Node], scope: Scope) -> str:
        return "".join(f"{self.written(part, scope)}, " for part in parts)

    # -- values ------------------------------------------------------------------------------------
    def write_const(self, node: nodes.Const, scope: Scope) -> str:
        return repr(node.value)

    def write_templatedata(self, node: nodes.TemplateData, scope: Scope) -> str:
        return repr(node.data)

    def write_name(self, node: nodes.Name, scope: Scope) -> str:
        return scope.get(node.name) or f"n[{node.name!r}]"

    def write_getattr(self, node: nodes.Getattr, scope: Scope) -> str:
        if isinstance(node.node, nodes.Name) and node.node.name == "loop":
            if f"loop.{node.attr}" not in scope:
                raise Unwritable(node.attr)
            return scope[f"loop.{node.attr}"]
        return f"{self.written(node.node, scope)}[{node.attr!r}]"

    def write_tuple(self, node: nodes.Tuple, scope: Scope) -> str:
        return f"({self.row(node.items, scope)})"

    def write_list(self, node: nodes.List, scope: Scope) -> str:
        return f"[{self.row(node.items, scope)}]"

    def write_dict(self, node: nodes.Dict, scope: Scope) -> str:
        return f"{{{self.row(node.items, scope)}}}"

    def write_slice(self, node: nodes.Slice, scope: Scope) -> str:
        ends = (node.start, node.stop, node.step)
        return ":".join(self.written(end, scope) if end else "" for end in ends)

    def write_concat(self, node: nodes.Concat, scope: Scope) -> str:
        return f"({'%s' * len(node.nodes)!r} % ({self.row(node.nodes, scope)}))"

    def write_condexpr(
        self, node: nodes.CondExpr, scope: Scope, otherwise: str | None = None
    ) -> str:
        if node.expr2 is not None:
            otherwise = self.written(node.expr2, scope)
        if otherwise is None:
            raise Unwritable("a value that may be nothing")
        yes, condition = self.written(node.expr1, scope), self.written(node.test, scope)
        return f"({yes} if {condition} else {otherwise})"

    def write_compare(self, node: nodes.Compare, scope: Scope) -> str:
        others = (f" {COMPARED[o.op]} {self.written(o.expr, scope)}" for o in node.ops)
        return f"({self.written(node.expr, scope)}{''.join(others)})"

    def write_test(self, node: nodes.Test, scope: Scope) -> str:
        if node.name != "none":
            raise Unwritable(node.name)
        return f"({self.written(node.node, scope)} is None)"

    def write_filter(self, node: nodes.Filter, scope: Scope) -> str:
        assert node.node is not None
        value, args = self.written(node.node, scope), node.args
        if node.dyn_args or node.dyn_kwargs:
            raise Unwritable(node.name)
        if node.name == "reject" and args[0].as_const() == "equalto":
            return f"[v for v in {value} if not v == {self.written(args[1], scope)}]"
        if node.name == "map" and len(args) == 1 and args[0].as_const() in self.names:
            return f"[{args[0].as_const()}(v) for v in {value}]"
        if node.name not in self.names:
            raise Unwritable(node.name)
        if node.name in self.keep and not node.kwargs:
            if all(isinstance(arg, nodes.Const) for arg in args):
                return self.kept(node.name, value, [arg.as_const() for arg in args])
        named = (f"{k.key}={self.written(k.value, scope)}, " for k in node.kwargs)
        return f"{node.name}({value}, {self.row(args, scope)}{''.join(named)})"

    def kept(self, name: str, value: str, args: list[Any]) -> str:
        """Return the look-up of what a filter writes of a value, or a row of values."""
        write = self.names[name]
        place = self.new(name)
        self.names[place] = Kept(lambda value: write(value, *args))
        return f"{place}[(*{value},)]" if name == "listed" else f"{place}[{value}]"

    def write_call(self, node: nodes.Call, scope: Scope) -> str:
        called = node.node
        if isinstance(called, nodes.Getattr) and called.attr == "items" and not node.args:
            return f"{self.written(called.node, scope)}.items()"
        if isinstance(called, nodes.Name) and called.name in scope and not node.kwargs:
            return f"{scope[called.name]}({self.row(node.args, scope)})"
        raise Unwritable("a call")

    # -- statements --------------------------------------------------------------------------------
    def write_if(self, node: nodes.If, scope: Scope) -> str:
        text = ""
        for branch in (node, *node.elif_):
            condition = self.written(branch.test, scope)
            text += f"{self.body(branch.body, scope)} if {condition} else "
        return f"({text}{self.body(node.else_, scope)})"

    def write_assign(self, node: nodes.Assign, scope: Scope) -> str:
        if not isinstance(node.target, nodes.Name) or "loop" in scope:
            raise Unwritable("a name that is set in a loop")
        value, name = self.written(node.node, scope), self.new(node.target.name)
        scope[node.target.name] = name
        return f"(({name} := {value}), '')[1]"

    def write_macro(self, node: nodes.Macro, scope: Scope) -> str:
        if node.defaults:
            raise Unwritable("a default")
        args = {arg.name: self.new(arg.name) for arg in node.args}
        body, name = self.body(node.body, scope | args), self.new(node.name)
        scope[node.name] = name
        return f"(({name} := lambda {', '.join(args.values())}: {body}), '')[1]"

    def write_for(self, node: nodes.For, scope: Scope) -> str:
        if node.else_ or node.test or node.recursive:
            raise Unwritable("a loop with conditions")
        one = isinstance(node.target, nodes.Name)
        names = {name.name: self.new(name.name) for name in node.target.find_all(nodes.Name)}
        names = {node.target.name: self.new(node.target.name)} if one else names
        values, index, items = self.written(node.iter, scope), self.new("k"), self.new("items")
        loop = {"loop": items, "loop.first": f"(not {index})", "loop.index0": index}
        loop |= {"loop.index": f"({index} + 1)", "loop.last": f"({index} == len({items}) - 1)"}
        body, target = self.body(node.body, scope | names | loop), ", ".join(names.values())
        if index not in body:
            return f"''.join([{body} for {target} in {values}])"
        text = f"''.join([{body} for {index}, ({target}) in enumerate({items})])"
        return f"({text} if ({items} := [*{values}]) else '')"


def _pieces(parts: Iterable[nodes.Node]) -> Iterator[nodes.Node]:
    for part in parts:
        yield from part.nodes if isinstance(part, nodes.Output) else (part,)
