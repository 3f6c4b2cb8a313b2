"""Limits on templates of strangers: what they see, which files they read, how long they take."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from numbers import Number
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import compiler, nodes, runtime, sandbox

MOST_STEPS = 100_000  # rounds of loops and calls in one rendering of a block
LONGEST_TEXT, LONGEST_LIST, LARGEST_FILE = 1_000_000, 50_000, 1_000_000
"""Characters of a text and items of a list that are made on the way; bytes of a template."""
MOST_BITS = 4096  # bits of a number
_FILTERS = (
    "abs capitalize count d default dictsort first float format int items join last length list "
    "lower map max min reject rejectattr reverse select selectattr sort string sum title trim "
    "unique upper number exact counted percent listed named quoted"
)
FILTERS = frozenset(_FILTERS.split())
_METHODS = (
    "capitalize endswith get items keys lower lstrip removeprefix removesuffix rstrip split "
    "startswith strip title upper values"
)
METHODS = frozenset(_METHODS.split())  # what may be called of texts, lists and mappings
_WIDE = re.compile(r"\d{4,}|\*")


class FolderLoader(jinja2.BaseLoader):
    """Templates in a folder; a link that leads out of it is no template of the folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).resolve()

    def get_source(
        self, environment: jinja2.Environment, template: str
    ) -> tuple[str, str, Callable[[], bool] | None]:
        path = self._folder / template
        if not path.is_file():
            raise jinja2.TemplateNotFound(template)
        if not path.resolve().is_relative_to(self._folder):
            out = f"{path} leads out of its folder: put the file itself there"
            raise sandbox.SecurityError(out)
        if path.stat().st_size > LARGEST_FILE:
            raise sandbox.SecurityError(f"{path} has more than {LARGEST_FILE:,} bytes")
        return path.read_text("utf-8"), str(path), None


class GuardedCode(compiler.CodeGenerator):
    """Compiled templates that check the length of joined texts."""

    def visit_Concat(self, node: nodes.Concat, frame: compiler.Frame) -> None:
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class Guarded(sandbox.ImmutableSandboxedEnvironment):
    """Renders in few steps with small values; anything larger raises a `SecurityError`."""

    code_generator_class: type[compiler.CodeGenerator] = GuardedCode
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, filters: Iterable[Callable[..., Any]], **settings: Any) -> None:
        super().__init__(optimized=False, **settings)
        self.filters |= {function.__name__: function for function in filters}
        self.filters = {name: f for name, f in self.filters.items() if name in FILTERS}
        self.filters |= {"join": self._join, "format": self._format, "counted_items": self._items}
        self._count = threading.local()

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """Read a template; the items of its loops are counted."""
        template = super()._parse(source, name, filename)
        for loop in template.find_all(nodes.For):
            items = nodes.Filter(loop.iter, "counted_items", [], [], None, None, lineno=loop.lineno)
            loop.iter = items.set_environment(self)
        return template

    def pieces(self, pieces: Iterator[str]) -> Iterator[str]:
        self._count.steps = length = 0
        for piece in pieces:
            length += len(piece)
            _check(length <= LONGEST_TEXT, f"a text of more than {LONGEST_TEXT:,} characters")
            yield piece

    def _step(self, steps: int = 1) -> None:
        self._count.steps = getattr(self._count, "steps", 0) + steps
        fits = self._count.steps <= MOST_STEPS
        _check(fits, f"more than {MOST_STEPS:,} steps of loops and calls")

    def _items(self, values: Any) -> list[Any]:
        items = list(values)
        self._step(1 + len(items))
        return items

    def call(self, context: runtime.Context, function: Any, /, *args: Any, **named: Any) -> Any:
        """Call a macro, or one of `METHODS`."""
        self._step()
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        if isinstance(owner, str | list | tuple | dict) or name in ("format", "format_map"):
            _check(name in METHODS, f"a call of {name}()")
        return super().call(context, function, *args, **named)

    def call_binop(self, context: runtime.Context, operator: str, first: Any, second: Any) -> Any:
        """Evaluate an intercepted operator on numbers or short texts and lists."""
        plain = isinstance(first, Number) and isinstance(second, Number)
        if operator == "+" and not plain:
            longest = LONGEST_TEXT if isinstance(first, str) else LONGEST_LIST
            sizes = [len(value) for value in (first, second) if hasattr(value, "__len__")]
            _check(sum(sizes) <= longest, f"more than {longest:,} characters or items")
        elif operator == "%" and isinstance(first, str):
            return self._format(first, *(second if isinstance(second, tuple) else (second,)))
        else:
            _check(plain, f"{operator} of what is no number")
            bits = [abs(x).bit_length() if isinstance(x, int) else 64 for x in (first, second)]
            large = bits[0] * abs(second) if operator == "**" else sum(bits)
            _check(large <= MOST_BITS, "a number that is far too large")
        return super().call_binop(context, operator, first, second)

    def joined(self, parts: Iterable[Any]) -> str:
        texts = list(map(str, parts))
        _check(sum(map(len, texts)) <= LONGEST_TEXT, f"more than {LONGEST_TEXT:,} characters")
        return "".join(texts)

    def _join(self, values: Any, between: str = "", attribute: str | None = None) -> str:
        items = list(values)
        if attribute is not None:
            items = [self.getattr(item, attribute) for item in items]
        texts = [part for item in items for part in (between, str(item))][1:]
        return self.joined(texts)

    def _format(self, text: str, *values: Any) -> str:
        _check(not _WIDE.search(text), f"a width of four digits in {text[:40]!r}")
        return text % values


def _check(fits: bool, what: str) -> None:
    if not fits:
        raise sandbox.SecurityError(f"it makes {what}, which no template may")
