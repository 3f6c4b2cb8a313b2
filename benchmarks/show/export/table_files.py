"""A run's records as tables for other programs: CSV, or Parquet through pyarrow.

Every table names the game, the episode and its seed; `step` and `seat` count from 0. Columns of
plain values (actions, records, rewards, prompts) are JSON.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from llm_games.benchmarks.record.connection import Unwritable
from llm_games.benchmarks.record.labels import EPISODE, Labelled, Place, read_labels
from llm_games.benchmarks.record.queries import PARTS, Records
from llm_games.benchmarks.record.schema import TABLES as RELATIONS
from llm_games.benchmarks.record.schema import EpisodeRow
from llm_games.errors import LLMGamesError, install, unknown

Row = tuple[Any, ...]
CHUNK = 5000  # rows that are written together
NAMES = {"seed": "sampling_seed"}  # fields whose columns have other names
HEAD = {"game": str, "label": str, "episode": int, "seed": int}  # what every table begins with
Kinds = dict[str, type | None]


def _kinds(row: type[Any]) -> Kinds:
    """None stands for JSON; a seat has its player beside it."""
    kinds = RELATIONS[row].kinds
    return ({"step": int, "seat": int, "player": str} if "seat" in kinds else {}) | kinds


_ABOUT: Kinds = {"params": None, "players": None, **_kinds(EpisodeRow)}
_OTHERS = {"id", "number", "seating", *HEAD}
KINDS = {"episodes": {name: kind for name, kind in _ABOUT.items() if name not in _OTHERS}}
KINDS |= {name: _kinds(row) for name, row in PARTS.items()}
KINDS["decisions"]["played"] = None  # what counted of an action, empty for nothing
TABLES = {
    table: HEAD | {NAMES.get(name, name): kind or str for name, kind in kinds.items()}
    for table, kinds in KINDS.items()
}
"""Columns of each table and what they hold; a missing value is empty."""
LABELS = HEAD | {"step": int, "seat": int, "player": str, "labels": str, "note": str}
"""The same of what a person said of decisions, and of episodes, which have no step."""


class MissingPackage(LLMGamesError, ImportError):
    """An optional package is needed."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write that takes the place of `path` at the end; raises Unwritable."""
    partial = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise Unwritable(f"{path.parent} cannot be written: {error}") from None


def export(records: Records, folder: Path, form: str = "csv") -> dict[Path, int]:
    """Write all tables as ``"csv"`` or ``"parquet"``; rows by path.

    Raises UnknownName for another form, MissingPackage without pyarrow, and Unwritable.
    """
    if form not in FORMS:
        raise unknown("format", form, FORMS)
    write = FORMS[form]()
    counts = {}
    for name, columns in TABLES.items():
        path = folder / f"{name}.{form}"
        with replacing(path) as partial:
            counts[path] = write(partial, columns, rows(records, name))
    if labelled := read_labels(records):
        path = folder / f"labels.{form}"
        with replacing(path) as partial:
            counts[path] = write(partial, LABELS, _labels(records, labelled))
    return counts


def _labels(records: Records, labelled: Mapping[Place, Labelled]) -> Iterator[Row]:
    """A line for each decision or episode that a person said something of."""
    episodes = {row.id: row for row in records.episodes()}
    for (number, step, seat), (labels, note) in labelled.items():
        if row := episodes.get(number):
            head = (row.game.game, row.game.label, row.number, row.seed)
            place = (None, None, None) if step == EPISODE else (step, seat, row.seats[seat])
            yield *head, *place, json.dumps(labels, ensure_ascii=False), note


def rows(records: Records, table: str) -> Iterator[Row]:
    for episode, cells in records.table(table):
        head = (episode.game.game, episode.game.label, episode.number, episode.seed)
        if table == "episodes":
            cells["params"] = episode.params
        yield *head, *(_plain(kind, cells[name]) for name, kind in KINDS[table].items())


def _plain(kind: type | None, value: Any) -> Any:
    if value is not None and kind is None:
        return json.dumps(value, ensure_ascii=False)
    return int(value) if isinstance(value, bool) else value


Write = Callable[[Path, Mapping[str, type], Iterator[Row]], int]


def _csv(path: Path, columns: Mapping[str, type], lines: Iterator[Row]) -> int:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        return sum(1 for _ in map(writer.writerow, lines))


def _parquet() -> Write:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise MissingPackage(
            f"Parquet needs pyarrow: {install('parquet')}, or use --format csv"
        ) from None
    kinds = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}

    def write(path: Path, columns: Mapping[str, type], lines: Iterator[Row]) -> int:
        schema = arrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
        count = 0
        with parquet.ParquetWriter(path, schema) as writer:
            while chunk := list(islice(lines, CHUNK)):
                values = [list(column) for column in zip(*chunk, strict=True)]
                writer.write_table(arrow.table(values, schema=schema))
                count += len(chunk)
        return count

    return write


FORMS: dict[str, Callable[[], Write]] = {"csv": lambda: _csv, "parquet": _parquet}
