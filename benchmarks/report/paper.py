"""What a paper's part of a page is made of: tables with its published rows, and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from llm_games.benchmarks.papers.gamma_bench.scores import shown
from llm_games.benchmarks.report.data import Run, Table
from llm_games.benchmarks.report.figures import Sketch

OWN, PUBLISHED = "this run", "published"
"""Where a row comes from, in the column ``source`` of a result table."""

Value = str | int | float | None


class Starred(float):
    """A number with a star behind it on the page."""


class Grid(NamedTuple):
    """A result table.

    Attributes:
        title: its heading; without one it is a file only.
        name: of its CSV file.
        head: the columns' names. One that is called ``source`` has `OWN` or `PUBLISHED`.
        rows: as wide as `head`; numbers unrounded, None for what is not defined.
        note: what explains it.
        digits: decimals that the page shows, by column; 2 for the others.
    """

    title: str
    name: str
    head: Sequence[str]
    rows: Sequence[Sequence[Value]]
    note: str = ""
    digits: Mapping[str, int] = {}

    def lines(self) -> list[tuple[bool, list[str]]]:
        """Return the rows as they are shown, each with whether it is one's own."""
        at = self.head.index("source") if "source" in self.head else None
        return [(at is not None and row[at] == OWN, self._line(row)) for row in self.rows]

    def _line(self, row: Sequence[Value]) -> list[str]:
        digits = (self.digits.get(name, 2) for name in self.head)
        return [_written(value, count) for value, count in zip(row, digits, strict=True)]

    def words(self) -> list[bool]:
        """Return which columns are words, not numbers."""
        columns = zip(*self.rows, strict=True)
        return [all(isinstance(value, str) for value in column) for column in columns]


def _written(value: Value, digits: int) -> str:
    if isinstance(value, float):
        number = round(value, digits) or 0.0  # no minus before a zero
        return shown(number, digits) + "*" * isinstance(value, Starred)
    return shown(None) if value is None else str(value)


def heads(row: type[Any]) -> list[str]:
    """Return the fields of a named tuple as names of columns."""
    return [field.replace("_", " ") for field in row._fields]


def as_it_is(run: Run) -> Run:
    """Return the run: enough for a paper that needs no more than a report holds of it."""
    return run


class Paper(NamedTuple):
    """A paper's part of a report.

    Attributes:
        title: its heading.
        note: what it is, and where its published numbers come from.
        owns: whether a table of a run belongs to it.
        read: returns what the others need of a run that has only such tables.
        grids: the result tables; none without finished episodes.
        figures: the figures over all tables.
        moves: the figures of one table that has been played; none where there is nothing to draw.
    """

    title: str
    note: str
    owns: Callable[[Table], bool]
    read: Callable[[Run], Any]
    grids: Callable[[Any], list[Grid]]
    figures: Callable[[Any], list[Sketch]]
    moves: Callable[[Any, Table], list[Sketch]]
