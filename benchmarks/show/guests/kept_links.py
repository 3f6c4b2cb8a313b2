"""The file beside a run by which its links outlive a restart; one process at a time has it."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from socket import socket
from typing import Any, NamedTuple

from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.show.view.serve import HOST, listening
from llm_games.errors import BadParameter


class Kept(NamedTuple):
    """What outlives a restart: where links are served, their tokens by seat, who has left."""

    host: str
    port: int | None
    tokens: dict[str, str]
    left: Sequence[str] = ()


class LinksFile:
    """The file of a run's links while this process has it; its port is ours too."""

    def __init__(self, file: sqlite3.Connection, kept: Kept, listener: socket) -> None:
        self._file, self.kept, self.listener = file, kept, listener

    def write(self, left: Sequence[str]) -> None:
        """Keep who has left now."""
        self.kept = self.kept._replace(left=left)
        text = json.dumps(self.kept._asdict())
        self._file.execute("REPLACE INTO kept VALUES (0, ?)", (text,))


def links_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.links")


@contextmanager
def kept_links(
    path: Path, names: Sequence[str], host: str | None, port: int | None
) -> Iterator[LinksFile]:
    """Have the file of a run's links, with host and port of before unless others are named.

    It is removed once the run is complete, or ends before it begins. Raises BadParameter: another
    process has it, or the port cannot be had.
    """
    file = _taken(links_file(path))
    try:
        with closing(file):
            kept = _read(file, names)
            host, port = host or kept.host, kept.port if port is None else port
            with listening(port, host) as listener:
                kept = kept._replace(host=host, port=listener.getsockname()[1])
                links = LinksFile(file, kept, listener)
                links.write(kept.left)
                file.execute("COMMIT")
                yield links
    finally:
        if not path.exists() or _is_complete(path):
            links_file(path).unlink(missing_ok=True)


def _taken(path: Path) -> sqlite3.Connection:
    """Open a file of links; as long as it is open, no other process can."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
        how: Any = {"isolation_level": None, "check_same_thread": False}
        file = sqlite3.connect(path, timeout=0, **how)
        file.execute("PRAGMA locking_mode = EXCLUSIVE")
        file.execute("BEGIN EXCLUSIVE")
        file.execute("CREATE TABLE IF NOT EXISTS kept (id INTEGER PRIMARY KEY, links TEXT)")
    except (OSError, sqlite3.DatabaseError) as error:
        fault = f"{path}, which keeps the links, cannot be used: {error}"
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            fault = f"another process serves the links in {path}: wait until it ends, or stop it"
        raise BadParameter(fault) from None
    return file


def _read(file: sqlite3.Connection, names: Sequence[str]) -> Kept:
    """Return what is kept for seats of these names, else new tokens."""
    for (text,) in file.execute("SELECT links FROM kept"):
        kept = Kept(**json.loads(text))
        if [*kept.tokens] == [*names]:
            return kept
    return Kept(HOST, None, {name: secrets.token_urlsafe(32) for name in names})


def _is_complete(path: Path) -> bool:
    with Records.open_readonly(path) as records:
        return all(row.status in ("done", "void") for row in records.episodes())
