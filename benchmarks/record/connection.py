"""The SQLite file of a run: opening it, checking that it is one, and errors that say what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from llm_games.benchmarks.record.schema import OLDEST, SCHEMA
from llm_games.errors import LLMGamesError

APPLICATION = 0x6C6C6D67  # "llmg", what marks a SQLite file as one of ours


class StoreError(LLMGamesError):
    """A run's file cannot be used."""


class NotARun(StoreError):
    """There is no file, or it is not a run of ours."""


class NewerSchema(StoreError):
    """The file was made by a newer version of this package."""


class RunExists(StoreError):
    """A new run would overwrite a file."""


class RunLocked(StoreError):
    """Another process writes to the run."""


class Unwritable(StoreError):
    """The file or its folder cannot be written, or the disk is full."""


@contextmanager
def opened(path: str | Path, mode: str, extra: str = "") -> Iterator[sqlite3.Connection]:
    """Connect; the connection stays open unless the block raises. A writer's may change threads."""
    uri = f"{Path(path).absolute().as_uri()}?mode={mode}{extra}"
    with translated(path):
        database = sqlite3.connect(
            uri, uri=True, timeout=10, isolation_level=None, check_same_thread=mode == "ro"
        )
        try:
            yield database
        except BaseException:
            database.close()
            raise


def check_file(path: Path) -> None:
    """Raise NotARun unless there is a SQLite file."""
    if not path.exists():
        raise NotARun(f"there is no file {path}; a run is started with: llm-games run")
    if not path.is_file():
        raise NotARun(f"{path} is not a file, so it is not a run")
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise NotARun(f"{path} cannot be read: {error.strerror}") from None
    if head != b"SQLite format 3\0":
        raise NotARun(f"{path} is not a run of llm-games: it is not a SQLite database")


def pragma(database: sqlite3.Connection, name: str) -> Any:
    return database.execute(f"PRAGMA {name}").fetchone()[0]


def check_schema(path: str | Path, database: sqlite3.Connection) -> None:
    """Raise NotARun or NewerSchema unless a database is a run that this version can read."""
    schema = pragma(database, "user_version")
    if pragma(database, "application_id") != APPLICATION:
        raise NotARun(f"{path} is a SQLite database, but not a run of llm-games")
    if schema > SCHEMA:
        raise NewerSchema(
            f"{path} was made by a newer llm-games (schema {schema}, this one knows up to "
            f"{SCHEMA}); read it with a newer one"
        )
    if schema < OLDEST:
        raise NotARun(
            f"{path} was made by an older llm-games (schema {schema}, this one reads {OLDEST}); "
            "use the version that made it"
        )


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Write all or nothing."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


@contextmanager
def translated(path: str | Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, which say what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        kind, advice = _ADVICE.get(code, (StoreError, ""))
        raise kind(f"{path}: {error}{advice.format(path=path)}") from error
    except UnicodeDecodeError as error:  # even SQLite's message is made of damaged bytes
        raise NotARun(f"{path}: {error}{_ADVICE[sqlite3.SQLITE_CORRUPT][1]}") from error


SAFE = "; all that was recorded before is safe"
_SAFE = SAFE + ", go on later with: llm-games resume {path}"
_ADVICE: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (RunLocked, ": another process is using the file" + _SAFE),
    sqlite3.SQLITE_FULL: (Unwritable, "; make room" + _SAFE),
    sqlite3.SQLITE_IOERR: (Unwritable, _SAFE),
    sqlite3.SQLITE_READONLY: (Unwritable, "; make the file and its folder writable"),
    sqlite3.SQLITE_CANTOPEN: (Unwritable, "; make the folder writable, or choose another --db"),
    sqlite3.SQLITE_NOTADB: (NotARun, "; it is not a run of llm-games"),
    sqlite3.SQLITE_CORRUPT: (NotARun, "; the file is damaged, restore it from a copy"),
}
