"""Labels and a note that a person put on decisions and episodes, in a file beside the run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from llm_games.benchmarks.record.connection import (
    NotARun,
    Unwritable,
    opened,
    transaction,
    translated,
)
from llm_games.benchmarks.record.queries import Records
from llm_games.errors import BadParameter

EPISODE = -1
"""Step and seat of what is said of a whole episode."""
MOST_LABELS, LONGEST_LABEL, LONGEST_NOTE = 20, 60, 1000
Place = tuple[int, int, int]
"""An episode's id with step and seat, or with `EPISODE` twice."""
_TABLES = """
CREATE TABLE IF NOT EXISTS run (created TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS labels (
    episode INTEGER NOT NULL, step INTEGER NOT NULL, seat INTEGER NOT NULL,
    labels TEXT NOT NULL, note TEXT NOT NULL, PRIMARY KEY (episode, step, seat)
);
"""


class Labelled(NamedTuple):
    """What a person said of a decision or an episode."""

    labels: tuple[str, ...]
    note: str

    @classmethod
    def of(cls, labels: str, note: str) -> Labelled:
        """Read labels with commas between them, and a line; BadParameter if they are too long."""
        parts = tuple(dict.fromkeys(" ".join(part.split()) for part in labels.split(",")))
        words, line = tuple(filter(None, parts)), " ".join(note.split())
        if len(words) > MOST_LABELS:
            raise BadParameter(f"labels: at most {MOST_LABELS} are allowed, got {len(words)}")
        if too_long := next((word for word in words if len(word) > LONGEST_LABEL), ""):
            start = f"{too_long[:20]!r} with {len(too_long)}"
            raise BadParameter(f"a label has at most {LONGEST_LABEL} characters, got {start}")
        if len(line) > LONGEST_NOTE:
            raise BadParameter(f"a note has at most {LONGEST_NOTE} characters, got {len(line)}")
        return cls(words, line)


def labels_file(run: Path) -> Path:
    return run.with_name(f"{run.stem}.labels.db")


def read_labels(records: Records) -> dict[Place, Labelled]:
    """Return what was said of a run's decisions and episodes; raises StoreError for a bad file."""
    path = labels_file(records.path)
    if not path.is_file():
        return {}
    with opened(path, "ro") as database, closing(database), translated(path):
        _check_run(path, database, records.created)
        rows = database.execute("SELECT episode, step, seat, labels, note FROM labels").fetchall()
    try:
        return dict(sorted(map(_read, rows)))
    except (ValueError, TypeError, RecursionError, BadParameter) as error:
        raise NotARun(f"{path} holds no labels of the viewer ({error}): move it away") from error


def _read(row: tuple[Any, ...]) -> tuple[Place, Labelled]:
    """Read a row of a file that anybody may have made; ValueError and the like: it is none."""
    *place, written, note = row
    if not all(isinstance(number, int) and -1 <= number < 2**62 for number in place):
        raise ValueError("a place is no decision")
    if not isinstance(note, str):
        raise TypeError("a note is no text")
    words = json.loads(written)
    labelled = Labelled.of(",".join(words), note)
    if [*labelled.labels] != words or labelled.note != note:
        raise ValueError("a label is none")
    return (place[0], place[1], place[2]), labelled


def write_label(records: Records, place: Place, labelled: Labelled) -> None:
    """Put labels and a note in place of those there, as `write_labels` does."""
    write_labels(records.path, records.created, {place: labelled})


def write_labels(run: Path, created: str, labels: Mapping[Place, Labelled]) -> None:
    """Put labels and notes in place of those there; without any, nothing is there afterwards.

    Raises Unwritable where the run's folder cannot be written, and NotARun if the file of labels
    is that of another run.
    """
    path = labels_file(run)
    try:
        with (
            opened(path, "rwc") as database,
            closing(database),
            translated(path),
            transaction(database),
        ):
            for statement in _TABLES.strip().split(";\n"):
                database.execute(statement)
            _check_run(path, database, created)
            for place, (words, note) in labels.items():
                place_is = "(episode, step, seat) = (?, ?, ?)"
                database.execute(f"DELETE FROM labels WHERE {place_is}", place)
                if words or note:
                    values = (*place, json.dumps(words, ensure_ascii=False), note)
                    database.execute("INSERT INTO labels VALUES (?, ?, ?, ?, ?)", values)
    except Unwritable as error:
        why = f"labels are kept beside the run, in {path}, which cannot be written"
        raise Unwritable(
            f"{why} ({error.__cause__}): copy the run to a folder of yours, or make room"
        ) from error


def _check_run(path: Path, database: sqlite3.Connection, created: str) -> None:
    """Let a new file be that of this run."""
    rows = database.execute("SELECT created FROM run").fetchall()
    if not rows and database.in_transaction:
        database.execute("INSERT INTO run VALUES (?)", (created,))
    elif rows != [(created,)]:
        raise NotARun(f"{path} has the labels of another run: move it away")
