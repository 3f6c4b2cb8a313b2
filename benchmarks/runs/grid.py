"""A table of results, and how it is written: in the terminal, on a page, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from llm_games.benchmarks.runs.plain import plain
from llm_games.benchmarks.runs.stats import Cell

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

OWN, PUBLISHED = "this run", "published"  # where a row comes from, in a column ``source``
GAP, NARROW = 2, 8  # blanks between the columns of a terminal's table; least width of words there


class Label(NamedTuple):
    """Words in a table: smaller ones below them, and whether a mark warns of them."""

    text: str
    small: str = ""
    marked: bool = False


class Starred(float):
    """A number with a star behind it."""


Value = str | int | float | Cell | Label | None


@dataclass(frozen=True)
class Grid:
    """A table of results, with a `note` that explains it.

    `columns` have names and the format specification of their numbers: ``""`` for words, ``">"``
    for words that stand right. `rows` are of `Value`, as wide as `columns`; unrounded, None for
    what is not defined; `foot` are rows below a line, such as totals. Without a `title`, its
    heading on a page, it is a file only; without a `name` it has no CSV file. `own` are numbers of
    rows that are highlighted, besides those whose source is `OWN`; `strong` names of columns.
    """

    columns: Mapping[str, str]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    name: str = ""
    note: str = ""
    foot: Sequence[Sequence[Any]] = ()
    own: Collection[int] = ()
    strong: Collection[str] = ()

    def dicts(self) -> Iterator[dict[str, Value]]:
        """Yield the rows by column."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def written(self, row: Sequence[Value]) -> list[str]:
        """Return a row as it is shown."""
        cells = zip(row, self.columns.values(), strict=True)
        return [written(value, form) for value, form in cells]

    def cells(self, row: Sequence[Value]) -> list[Label]:
        """Return a row as a page shows it."""
        pairs = zip(row, self.written(row), strict=True)
        return [value if isinstance(value, Label) else Label(text) for value, text in pairs]

    @property
    def head(self) -> int:
        """The first column of words, which says what a row is about."""
        return [*self.columns.values(), ""].index("")

    def highlighted(self, number: int) -> bool:
        """Return whether a row is one's own among others."""
        source = dict(zip(self.columns, self.rows[number], strict=True)).get("source")
        return number in self.own or source == OWN

    def classes(self) -> list[str]:
        """Return the columns' classes on a page: ``w`` for words, ``n`` for numbers."""
        kinds = ((name, "n" if form else "w") for name, form in self.columns.items())
        return [f"{kind} strong" if name in self.strong else kind for name, kind in kinds]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        """Yield the table for a terminal, no number of it broken; `rich` asks for it."""
        from rich.table import Table
        from rich.text import Text

        rows = [list(self.columns), *map(self.written, [*self.rows, *self.foot])]
        heads, *lines = rows = [[plain(cell, console.encoding) for cell in row] for row in rows]
        room = options.max_width - GAP * (len(heads) - 1)
        widths = self._widths(rows, room)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for head, width, form in zip(heads, widths, self.columns.values(), strict=True):
            align: Literal["left", "right"] = "right" if form else "left"
            table.add_column(Text(head), justify=align, width=width, overflow="fold")
        for line in lines:
            table.add_row(*map(Text, line))
        if sum(widths) <= room:
            yield table
        else:  # too narrow for a table: a line for each cell
            for line in lines:
                cells = zip(heads, line, strict=True)
                yield Text("\n".join(f"{head}: {cell}" for head, cell in cells) + "\n")
        if self.note:
            yield Text(plain(self.note, console.encoding))

    def _widths(self, rows: Sequence[Sequence[str]], room: int) -> Sequence[int]:
        """Return the columns' widths: heads are cut, then lines of words, then words; no number."""
        from rich.cells import cell_len

        def longest(*texts: str) -> int:
            return max(map(cell_len, texts), default=0)

        columns, steps = list(zip(*rows, strict=True)), []
        for (head, *cells), form in zip(columns, self.columns.values(), strict=True):
            words = longest(*head.split(), *" ".join(cells).split())
            line = longest(*head.split(), *cells)
            kinds = {"": (line, words, min(words, NARROW)), ">": (line, line, words)}
            steps.append(kinds.get(form, (line, line, line)))
        widths = [longest(*column) for column in columns]
        for least in zip(*steps, strict=True):
            while sum(widths) > room and (
                wide := [i for i, width in enumerate(widths) if width > least[i]]
            ):
                widths[max(wide, key=widths.__getitem__)] -= 1
        return widths


def columns(words: str, numbers: str = "", form: str = ".2f") -> dict[str, str]:
    """Return columns of words and then of numbers, whose names are separated by ``, ``."""
    kinds = ((words, ""), (numbers, form))
    return {name: kind for names, kind in kinds for name in names.split(", ") if name}


def written(value: Value, form: str = "", missing: str = "–") -> str:
    """Write a value; means are rounded half to even after scaling, as in the papers' tables."""
    if value is None:
        return missing
    if isinstance(value, Label):
        return value.text
    digits = int(form[:-1].partition(".")[2]) if form.endswith("f") else None
    if isinstance(value, Cell):
        sides = (value.mean,) if value.std is None else (value.mean, value.std)
        return " ± ".join(format(np.round(side, digits or 0), form) for side in sides)
    if isinstance(value, float):
        number = value if digits is None else round(value, digits) or 0.0  # no minus before a zero
        return format(float(number), form) + "*" * isinstance(value, Starred)
    return format(value, "," if form == "," else "")


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Collection[str] = ()) -> bytes:
    """Write rows as CSV, empty for none; the columns are those of the first if none are given."""
    lines = iter(rows)
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", "replace", newline="")
    for first in lines:
        writer = csv.DictWriter(out, list(columns or first), lineterminator="\n")
        writer.writeheader()
        writer.writerow(first)
        writer.writerows(lines)
    out.seek(0)
    return out.buffer.read()
