"""Bindings without a noun: how many, of how many, and where.

``python -m llm_games.benchmarks.studies.names [FOLDER ...]`` prints, of each folder, the names that
stand in the list of banned words, by function, and their share of all bindings. It informs
reviewers, and stops nobody.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HOUSE = Path(__file__).resolve().parents[2]
FLOORS = ("llm_games", "wrappers", "baselines", "benchmarks")
WORDS = (
    "found one said told given kept made paid many most own at where place who some more left "
    "seen heard known met before after now"
)
BANNED = frozenset(WORDS.split())


class Binding(NamedTuple):
    """A name that is bound in a function, or a class or function that is defined there."""

    function: str  # qualified; "" at the top of a module
    name: str
    line: int

    @property
    def is_banned(self) -> bool:
        return self.name.strip("_") in BANNED


def bindings(tree: ast.AST, function: str = "") -> Iterator[Binding]:
    """Assigned names and attributes, parameters, caught errors, functions and classes."""
    for node in ast.iter_child_nodes(tree):
        inner, name = function, ""
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                inner = f"{function}.{name}".removeprefix(".")
            case ast.Name(name, ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                pass
            case ast.arg(name) if name not in ("self", "cls"):
                pass
            case ast.ExceptHandler(name=str(name)):
                pass
            case _:
                name = ""
        if name:
            yield Binding(function, name, node.lineno)  # type: ignore[attr-defined]
        yield from bindings(node, inner)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    for folder in parser.parse_args().folders or [HOUSE / floor for floor in FLOORS]:
        count = banned_count = 0
        for file in sorted(folder.rglob("*.py")):
            file_bindings = [*bindings(ast.parse(file.read_text("utf-8")))]
            banned = [binding for binding in file_bindings if binding.is_banned]
            count, banned_count = count + len(file_bindings), banned_count + len(banned)
            for binding in banned:
                print(f"{file}:{binding.line}: {binding.function}: {binding.name}")
        print(f"{folder}: {banned_count} of {count}, {banned_count / max(count, 1):.1%}")


if __name__ == "__main__":
    main()
