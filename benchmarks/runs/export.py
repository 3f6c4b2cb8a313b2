"""A run's records as tables for other programs: CSV, or Parquet through pyarrow.

Every table names the game, the episode and its seed; `step` and `seat` count from 0. Columns of
plain values (actions, records, rewards, prompts) are JSON.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from llm_games.benchmarks.runs.records import EpisodeRow, Records
from llm_games.benchmarks.runs.store import Unwritable
from llm_games.errors import LLMGamesError, unknown

Row = tuple[Any, ...]
CHUNK = 5000
"""Rows that are written together."""

EPISODE = {"game": str, "label": str, "episode": int, "seed": int}
"""Columns that every table begins with."""
SEAT = {"step": int, "seat": int, "player": str}
TABLES: dict[str, dict[str, type]] = {
    "episodes": EPISODE
    | {"params": str, "players": str, "status": str, "reason": str, "started": str, "ended": str},
    "steps": EPISODE | {"step": int, "asked": str, "record": str, "rewards": str, "finished": str},
    "decisions": EPISODE
    | SEAT
    | {"action": str, "outcome": str, "broke": int, "reward": float},
    "attempts": EPISODE
    | SEAT
    | {
        "number": int, "prompt": str, "text": str, "finish": str, "error": str, "outcome": str,
        "why": str, "tokens_in": int, "tokens_out": int, "latency": float, "sampling_seed": int,
        "model": str, "detail": str, "kind": str,
    },
    "notes": EPISODE | SEAT | {"number": int, "kind": str, "content": str},
}  # fmt: skip
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
    for episode in records.episodes():
        head = (episode.game.game, episode.game.label, episode.number, episode.seed)
        for row in _ROWS[table](records, episode):
            yield *head, *row


def _episodes(records: Records, episode: EpisodeRow) -> Iterator[Row]:
    about = (episode.status, episode.reason, episode.started, episode.ended)
    yield _json(episode.params), _json(episode.seats), *about


def _steps(records: Records, episode: EpisodeRow) -> Iterator[Row]:
    for row in records.steps(episode.id):
        yield row.step, *map(_json, (row.asked, row.record, row.rewards, row.finished))


def _decisions(records: Records, episode: EpisodeRow) -> Iterator[Row]:
    for row in records.decisions(episode.id):
        player = episode.seats[row.seat]
        action = None if row.action is None else _json(row.action)
        yield row.step, row.seat, player, action, row.outcome, int(row.broke), row.reward


def _attempts(records: Records, episode: EpisodeRow) -> Iterator[Row]:
    for row in records.attempts(episode.id):
        player, prompt = episode.seats[row.seat], _json(records.messages(row.prompt))
        read = (row.text, row.finish, row.error, row.outcome, row.why)
        counted = (row.tokens_in, row.tokens_out, row.latency, row.seed, row.model)
        about = (row.detail, row.kind)
        yield row.step, row.seat, player, row.number, prompt, *read, *counted, *about


def _notes(records: Records, episode: EpisodeRow) -> Iterator[Row]:
    for row in records.notes(episode.id):
        player = episode.seats[row.seat]
        yield row.step, row.seat, player, row.number, row.kind, _json(row.content)


_ROWS: dict[str, Callable[[Records, EpisodeRow], Iterator[Row]]] = {
    "episodes": _episodes,
    "steps": _steps,
    "decisions": _decisions,
    "attempts": _attempts,
    "notes": _notes,
}


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
