"""A table of results, and how it is written: in the terminal, on a page, as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from llm_games.benchmarks.judge.intervals import Interval
from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.record.plain_text import plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

OWN, PUBLISHED = "this run", "published"  # where a row comes from, in a column ``source``
PARTS = ("low", "high", "method", "n")  # what columns a file has for an interval
GAP, NARROW = 2, 8  # blanks between the columns of a terminal's table; least width of words there


class Label(NamedTuple):
    """Words in a table: smaller ones below them, and whether a mark warns of them."""

    text: str
    small: str = ""
    marked: bool = False


class Starred(float):
    """A number with a star behind it."""


Value = str | int | float | MeanCell | Label | None


@dataclass(frozen=True)
class ResultTable:
    """A table of results, with a `note` that explains it.

    `columns` have names and the format specification of their numbers: ``""`` for words, ``">"``
    for words that stand right. `rows` are of `Value`, unrounded, None for what is not defined;
    `foot` are rows below a line. What most intervals of a column rest on is said below the table
    once, what others rest on beside a letter. Without a `title` it is a file only; without a `name`
    it has no CSV file. `marked_rows` are numbers of highlighted rows, besides those whose source is
    `OWN`, `beside` of rows that others are only compared with; `strong` names of columns.
    """

    columns: Mapping[str, str]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    name: str = ""
    note: str = ""
    foot: Sequence[Sequence[Any]] = ()
    marked_rows: Collection[int] = ()
    beside: Collection[int] = ()
    strong: Collection[str] = ()

    def dicts(self) -> Iterator[dict[str, Value]]:
        """Yield the rows by column; a mean with an interval has columns for its ends as well."""
        return (self._plain(row) for row in (*self.rows, *self.foot))

    def _plain(self, row: Sequence[Value]) -> dict[str, Value]:
        cells: dict[str, Value] = {}
        for name, value in zip(self.columns, row, strict=True):
            cells[name] = value.mean if isinstance(value, MeanCell) else value
            if isinstance(value, Label):
                cells[name] = value.text
            if name in self._usual:
                interval = value.interval if isinstance(value, MeanCell) else None
                ends = interval.plain() if interval else {}
                cells |= {f"{name} {part}": ends.get(part) for part in PARTS}
        return cells

    def written(self, row: Sequence[Value]) -> list[str]:
        """Return a row as a terminal shows it."""
        return [f"{text} [{ends}]{mark}" if ends else text for text, ends, mark in self._shown(row)]

    def cells(self, row: Sequence[Value]) -> list[Label]:
        """Return a row as a page shows it: intervals stand below their means."""
        pairs = zip(row, self._shown(row), strict=True)
        return [
            value if isinstance(value, Label) else Label(text, f"{ends} {mark}".strip())
            for value, (text, ends, mark) in pairs
        ]

    def _shown(self, row: Sequence[Value]) -> Iterator[tuple[str, str, str]]:
        """Yield each value of a row as text, the ends of its interval, and the letter of these."""
        for value, (name, form) in zip(row, self.columns.items(), strict=True):
            interval = value.interval if isinstance(value, MeanCell) else None
            if interval is None:
                yield written(value, form), "", ""
            else:
                kind = _rests_on(interval)
                mark = "" if kind == self._usual[name] else self._letters[kind]
                yield written(value, form), _ends(interval, form), mark

    @cached_property
    def _intervals(self) -> list[tuple[str, Interval, bool]]:
        """The intervals of all cells, with their columns and whether they stand beside others."""
        return [
            (name, value.interval, number in self.beside)
            for number, row in enumerate((*self.rows, *self.foot))
            for name, value in zip(self.columns, row, strict=True)
            if isinstance(value, MeanCell) and value.interval
        ]

    @cached_property
    def _usual(self) -> dict[str, str]:
        """What most intervals of a column rest on, by column; rows beside others count little."""
        counts: dict[str, Counter[str]] = {}
        for name, interval, beside in self._intervals:
            weight = 1 if beside else len(self._intervals)
            weight *= interval.method != "none"  # what is no interval is said beside it
            counts.setdefault(name, Counter())[_rests_on(interval)] += weight
        return {name: kinds.most_common(1)[0][0] for name, kinds in counts.items()}

    @cached_property
    def _letters(self) -> dict[str, str]:
        """What other intervals rest on, with the letter that says so."""
        others = dict.fromkeys(
            kind
            for name, interval, _ in self._intervals
            if (kind := _rests_on(interval)) != self._usual[name]
        )
        letters = (a + b for a in ("", *ascii_lowercase) for b in ascii_lowercase)
        return dict(zip(others, letters, strict=False))

    @property
    def basis(self) -> str:
        """What the intervals of the table rest on, in a sentence; empty without any."""
        columns: dict[str, list[str]] = {}
        for name, kind in self._usual.items():
            columns.setdefault(kind, []).append(name)
        alone = len(columns) == 1
        usual = [k if alone else f"{k} ({', '.join(names)})" for k, names in columns.items()]
        parts = [*usual, *(f"{letter}: {kind}" for kind, letter in self._letters.items())]
        return f"95 % intervals: {'; '.join(parts)}." if parts else ""

    @property
    def head(self) -> int:
        return [*self.columns.values(), ""].index("")

    def highlighted(self, number: int) -> bool:
        """Return whether a row is one's own among others."""
        source = dict(zip(self.columns, self.rows[number], strict=True)).get("source")
        return number in self.marked_rows or source == OWN

    def classes(self) -> list[str]:
        """Return the columns' classes on a page: ``w`` for words, ``n`` for numbers."""
        kinds = ((name, "n" if form else "w") for name, form in self.columns.items())
        return [f"{kind} strong" if name in self.strong else kind for name, kind in kinds]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        """Yield the table for a terminal, no number of it broken; `rich` asks for it."""
        from rich.cells import cell_len
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
            pairs = zip(line, widths, strict=True)
            table.add_row(*(Text(c if cell_len(c) <= width else _two(c)) for c, width in pairs))
        if sum(widths) <= room:
            yield table
        else:  # too narrow for a table: a line for each cell
            for line in lines:
                cells = zip(heads, line, strict=True)
                yield Text("\n".join(f"{head}: {cell}" for head, cell in cells) + "\n")
        for note in filter(None, (self.basis, self.note)):
            yield Text(plain(note, console.encoding))

    def _widths(self, rows: Sequence[Sequence[str]], room: int) -> Sequence[int]:
        """Return the columns' widths: heads are cut, then lines of words, then words; no number."""
        from rich.cells import cell_len

        def longest(*texts: str) -> int:
            return max(map(cell_len, texts), default=0)

        columns, steps = list(zip(*rows, strict=True)), []
        for (head, *cells), form in zip(columns, self.columns.values(), strict=True):
            words = longest(*head.split(), *" ".join(cells).split())
            line = longest(*head.split(), *cells)
            sides = longest(*head.split(), *(p for cell in cells for p in _two(cell).split("\n")))
            kinds = {"": (line, words, min(words, NARROW)), ">": (line, line, words)}
            steps.append(kinds.get(form, (line, line, sides)))
        widths = [longest(*column) for column in columns]
        for least in zip(*steps, strict=True):
            while sum(widths) > room and (
                wide := [i for i, width in enumerate(widths) if width > least[i]]
            ):
                widths[max(wide, key=widths.__getitem__)] -= 1
        return widths


def columns(words: str, numbers: str = "", form: str = ".2f") -> dict[str, str]:
    """Return columns of words and then of numbers, whose names a comma and a space separate."""
    kinds = ((words, ""), (numbers, form))
    return {name: kind for names, kind in kinds for name in names.split(", ") if name}


def written(value: Value, form: str = "", missing: str = "–") -> str:
    """Write a value; means are rounded half to even after scaling, as in the papers' tables."""
    if value is None:
        return missing
    if isinstance(value, Label):
        return value.text
    digits = _digits(form)
    if isinstance(value, MeanCell):
        sides = (value.mean,) if value.std is None else (value.mean, value.std)
        text = " ± ".join(_number(np.round(side, digits or 0), form, missing) for side in sides)
        return text + "*" * isinstance(value.mean, Starred)
    if isinstance(value, float):
        text = _number(value if digits is None else round(value, digits), form, missing)
        return text + "*" * isinstance(value, Starred)
    return format(value, "," if form == "," else "")


def _number(value: float, form: str, missing: str) -> str:
    if math.isnan(value):
        return missing
    return "∞" if value == math.inf else format(float(value) or 0.0, form)


def _two(cell: str) -> str:
    return cell.replace(" [", "\n[")


def _digits(form: str) -> int | None:
    """Return how many decimals a value is rounded to, None without any; per cent have two more."""
    shift = {"f": 0, "%": 2}.get(form[-1:])
    return None if shift is None else int(form[:-1].partition(".")[2]) + shift


def _ends(interval: Interval, form: str) -> str:
    """Write the ends of an interval as its mean is written."""
    if interval.method == "none":
        return "no spread" if interval.note.startswith("no spread") else "no interval"
    if form.endswith("%"):
        low, high = (format(end, form) for end in interval[:2])
        return f"{low} to {high}"
    return interval.ends(_digits(form) or 0)


def _rests_on(interval: Interval) -> str:
    """Return the method of an interval, of how many runs it is, and what is to be known of it."""
    if interval.method == "none":
        return interval.note
    note = f", {interval.note}" if interval.note else ""
    return f"{interval.method}, n = {interval.n}{note}"


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Collection[str] = ()) -> bytes:
    """Write rows as CSV, empty for none; the columns are those of the first if none are given."""
    lines = iter(rows)
    whole = io.BytesIO()
    out = io.TextIOWrapper(whole, "utf-8", "replace", newline="")
    for first in lines:
        writer = csv.DictWriter(out, list(columns or first), "", "ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerow(first)
        writer.writerows(lines)
    out.flush()
    return whole.getvalue()  # read() would copy it: of a million decisions 64 MB
