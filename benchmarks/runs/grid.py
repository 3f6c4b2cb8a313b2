"""A table of results, and how it is written: in the terminal, on a page, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from llm_games.benchmarks.runs.stats import Cell

if TYPE_CHECKING:
    from rich.table import Table

OWN, PUBLISHED = "this run", "published"  # where a row comes from, in a column ``source``


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

    def written(self, row: Sequence[Value], missing: str = "–", thousands: str = ",") -> list[str]:
        """Return a row as it is shown."""
        cells = zip(row, self.columns.values(), strict=True)
        texts = [(written(value, form, missing), form) for value, form in cells]
        return [text.replace(",", thousands) if form == "," else text for text, form in texts]

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

    def __rich__(self) -> Table:
        """Return the table for a terminal; `rich` asks for it."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold", caption=self.note or None)
        for place, (name, form) in enumerate(self.columns.items()):
            align: Literal["left", "right"] = "right" if form else "left"
            table.add_column(name, justify=align, no_wrap=place == 0, overflow="fold")
        for row in (*self.rows, *self.foot):
            table.add_row(*(text.replace("[", r"\[") for text in self.written(row, "-", " ")))
        return table


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


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Collection[str] = ()) -> str:
    """Write rows as CSV, "" for none; the columns are those of the first if they are not given."""
    out, lines = io.StringIO(), iter(rows)
    for first in lines:
        writer = csv.DictWriter(out, list(columns or first), lineterminator="\n")
        writer.writeheader()
        writer.writerow(first)
        writer.writerows(lines)
    return out.getvalue()
