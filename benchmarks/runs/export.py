"""A run's records as tables for other programs: CSV, or Parquet through pyarrow.

Every table names the game, the episode and its seed; `step` and `seat` count from 0. Columns of
plain values (actions, records, rewards, prompts) are JSON.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

from llm_games.benchmarks.runs.reader import Episode, games
from llm_games.benchmarks.runs.records import (
    AttemptRow,
    DecisionRow,
    EpisodeRow,
    NoteRow,
    Records,
    StepRow,
)
from llm_games.benchmarks.runs.store import Unwritable
from llm_games.errors import LLMGamesError, unknown

Row = tuple[Any, ...]
CHUNK = 5000
"""Rows that are written together."""

PLAIN = {"int": int, "float": float, "bool": int, "str": str, "str | None": str}
"""Annotations of what is written as it is; all else is JSON."""
NAMES = {"seed": "sampling_seed"}
"""Fields whose columns have other names."""
EPISODE = {"game": str, "label": str, "episode": int, "seed": int}
"""Columns that every table begins with."""


def _columns(row: type[Any]) -> dict[str, type]:
    """Return the columns of a kind of rows; a seat has its player beside it."""
    found = {NAMES.get(f.name, f.name): PLAIN.get(str(f.type), str) for f in fields(row)}
    head = {"step": int, "seat": int, "player": str} if "seat" in found else {}
    return EPISODE | head | found


ROWS: dict[str, tuple[type[Any], Callable[[Episode], list[Any]]]] = {
    "steps": (StepRow, lambda episode: episode.steps),
    "decisions": (DecisionRow, Episode.decisions),
    "attempts": (AttemptRow, Episode.attempts),
    "notes": (NoteRow, Episode.notes),
}
HEAD = ("id", "game", "number", "seed", "seating")
ABOUT = [field.name for field in fields(EpisodeRow) if field.name not in HEAD]
TABLES = {"episodes": EPISODE | dict.fromkeys(["params", "players", *ABOUT], str)}
TABLES |= {name: _columns(row) for name, (row, _) in ROWS.items()}
"""Columns of each table and what they hold; a missing value is empty."""


class MissingPackage(LLMGamesError, ImportError):
    """An optional package is needed."""


def export(records: Records, folder: Path, form: str = "csv") -> dict[Path, int]:
    """Write all tables, each to a file of its own in place of an older one.

    Args:
        records: the run, also one that is going on.
        folder: where to; it is made if it is missing.
        form: ``"csv"`` or ``"parquet"``.

    Returns:
        How many rows each file has.

    Raises:
        UnknownName: there is no such form.
        MissingPackage: pyarrow is needed and missing.
        Unwritable: the folder cannot be made or written.
    """
    if form not in FORMS:
        raise unknown("format", form, FORMS)
    write = FORMS[form]()
    counts = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, columns in TABLES.items():
            path = folder / f"{name}.{form}"
            partial = folder / f".{name}.{form}.part"
            counts[path] = write(partial, columns, rows(records, name))
            os.replace(partial, path)
    except OSError as error:
        raise Unwritable(f"{folder} cannot be written: {error}") from None
    return counts


def rows(records: Records, table: str) -> Iterator[Row]:
    """Give the rows of one of `TABLES`, episode by episode."""
    for game in games(records):
        for episode in game.read():
            row = episode.row
            head = (game.name, game.label, row.number, row.seed)
            if table == "episodes":
                about = [getattr(row, name) for name in ABOUT]
                words = (v if v is None or isinstance(v, str) else _json(v) for v in about)
                yield *head, _json(row.params), _json(row.seats), *words
                continue
            kind, read = ROWS[table]
            for found in read(episode):
                values = vars(found) | (
                    {"prompt": records.messages(found.prompt)} if kind is AttemptRow else {}
                )
                plain = [_plain(field.type, values[field.name]) for field in fields(kind)]
                if "seat" in values:
                    plain.insert(2, row.seats[found.seat])
                yield *head, *plain


def _plain(kind: Any, value: Any) -> Any:
    if value is None or kind in PLAIN:
        return int(value) if isinstance(value, bool) else value
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


Write = Callable[[Path, Mapping[str, type], Iterator[Row]], int]


def _csv() -> Write:
    def write(path: Path, columns: Mapping[str, type], found: Iterator[Row]) -> int:
        count = 0
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            for count, row in enumerate(found, start=1):  # noqa: B007
                writer.writerow(row)
        return count

    return write


def _parquet() -> Write:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise MissingPackage(
            'Parquet needs pyarrow: pip install "llm-games[parquet]", or use --format csv'
        ) from None
    kinds = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}

    def write(path: Path, columns: Mapping[str, type], found: Iterator[Row]) -> int:
        schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
        count = 0
        with parquet.ParquetWriter(path, schema) as writer:
            while chunk := list(islice(found, CHUNK)):
                values = [list(column) for column in zip(*chunk, strict=True)]
                writer.write_table(arrow.table(values, schema=schema))
                count += len(chunk)
        return count

    return write


FORMS: dict[str, Callable[[], Write]] = {"csv": _csv, "parquet": _parquet}
"""How tables can be written."""
