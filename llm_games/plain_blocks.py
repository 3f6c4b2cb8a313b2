"""Blocks of a template as plain functions of a dict of names, many times as fast as jinja's.

A block becomes one expression: text with slots, in which conditions and loops stand as slots. One
with a node that has no form here is left out; what the expression raises (a name is missing, an
attribute of what is no dict), jinja's own function of the block has to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from io import StringIO
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame

NAMES: dict[str, Callable[..., Any]] = {
    "items": lambda values: values.items(),
    "join": lambda values, between="": between.join(map(str, values)),
    "str_join": lambda values: "".join(map(str, values)),
}
KEPT = "number", "exact", "counted", "percent", "listed"  # filters whose texts are kept
MOST_KEPT = 4096  # of a filter at one place


class KeptTexts(dict[Any, str]):
    """The texts of values at one place; of a row, which most seats are told alike, the last."""

    def __init__(self, write: Callable[[Any], str]) -> None:
        self.write, self.last = write, (None, "")

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


def plain_blocks(template: Any, filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the functions of a parsed template's blocks, but of those without a plain form."""
    writer = Expressions(template.environment, None, None, optimized=False)
    blocks, writer.names = dict[str, Any](), {**NAMES, **filters}
    for choice in template.find_all(nodes.CondExpr):
        choice.expr2 = choice.expr2 or nodes.Const("")
    writer.blocks = {block.name: block for block in template.find_all(nodes.Block)}
    for name, block in writer.blocks.items():
        with suppress(KeyError):
            blocks[name] = eval(f"lambda n: {writer.block(block)}", writer.names)
    return blocks


class Expressions(CodeGenerator):
    """Writes expressions as jinja does, and statements as expressions, too.

    `names` are those that it uses; the `scope` of a frame has Python's names of the parts of loops.
    """

    names: dict[str, Any]

    def block(self, block: nodes.Block) -> str:
        """Return the text of a block, which sees no parts of loops around it."""
        frame: Any = Frame(nodes.EvalContext(self.environment))
        frame.scope = {}
        return self.body(block.body, frame)

    def newline(self, *_: Any) -> None:
        raise KeyError("a statement without a form")

    def body(self, statements: Iterable[nodes.Node], frame: Any) -> str:
        """Return the text of statements as an expression."""
        text, slots = "", ""
        for part in statements:
            for piece in part.nodes if isinstance(part, nodes.Output) else [part]:
                if isinstance(piece, nodes.TemplateData):
                    # Edges of lines are stripped anyway.
                    text += re.sub(" *\n *", "\n", piece.data).replace("%", "%%")
                else:
                    text += "%s"
                    slots += f"{self.written(piece, frame)}, "
        return f"{text!r} % ({slots})"

    def written(self, node: Any, frame: Any) -> str:
        """Return a node as an expression; KeyError: it has no form."""
        outer, self.stream = self.stream, StringIO()
        self.visit(node, frame)
        text, self.stream = self.stream.getvalue(), outer
        return text

    # -- values ------------------------------------------------------------------------------------
    def visit_Name(self, node: nodes.Name, frame: Any) -> None:
        self.write(frame.scope.get(node.name, f"n[{node.name!r}]"))

    def visit_Getattr(self, node: nodes.Getattr, frame: Any) -> None:
        owner = self.written(node.node, frame)
        self.write(frame.scope.get(f"{owner}.{node.attr}", f"{owner}[{node.attr!r}]"))

    def visit_Getitem(self, node: nodes.Getitem, frame: Any) -> None:
        self.write(f"{self.written(node.node, frame)}[{self.written(node.arg, frame)}]")

    def visit_Test(self, node: nodes.Test, frame: Any) -> None:
        self.write(f"({self.written(node.node, frame)} is { {'none': None}[node.name] })")

    def visit_Filter(self, node: nodes.Filter, frame: Any) -> None:
        write = self.names[node.name]
        consts = [arg.value for arg in node.args if isinstance(arg, nodes.Const)]
        parts = [self.written(part, frame) for part in node.iter_child_nodes()]
        if node.name not in KEPT or len(consts) + 1 < len(parts):
            return self.write(f"{node.name}({', '.join(parts)})")
        place = self.temporary_identifier()
        self.names[place] = KeptTexts(lambda value: write(value, *consts))
        self.write(f"{place}.row({parts[0]})" if node.name == "listed" else f"{place}[{parts[0]}]")

    def visit_Call(self, node: nodes.Call, frame: Any, forward_caller: bool = False) -> None:
        """Write the block that ``self.name()`` calls."""
        match node.node:
            case nodes.Getattr(node=nodes.Name(name="self"), attr=name):
                self.write(f"({self.block(self.blocks[name])})")
            case _:
                raise KeyError("a call without a form")

    # -- statements --------------------------------------------------------------------------------
    def visit_Block(self, node: nodes.Block, frame: Any) -> None:
        self.write(f"({self.block(node)})")

    def visit_If(self, node: nodes.If, frame: Any) -> None:
        for branch in (node, *node.elif_):
            condition = self.written(branch.test, frame)
            self.write(f"({self.body(branch.body, frame)} if {condition} else ")
        self.write(self.body(node.else_, frame) + ")" * (1 + len(node.elif_)))

    def visit_For(self, node: nodes.For, frame: Any) -> None:
        if node.else_ or node.test or node.recursive:
            raise KeyError("a loop with conditions")
        index, items, new = (self.temporary_identifier() for _ in range(3))
        values, inner = self.written(node.iter, frame), frame.copy()
        targets = nodes.Tuple([node.target], "store").find_all(nodes.Name)
        inner.scope = frame.scope | {target.name: f"{target.name}_{new}" for target in targets}
        inner.scope |= {"loop": items, f"{items}.index0": index}
        inner.scope[f"{items}.last"] = f"({index} == len({items}) - 1)"
        body, target = self.body(node.body, inner), self.written(node.target, inner)
        text = f"''.join([{body} for {index}, {target} in enumerate({items})])"
        self.write(f"({text} if ({items} := [*{values}]) else '')")
