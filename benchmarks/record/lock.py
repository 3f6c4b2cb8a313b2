"""Only one process at a time writes to a run: a row in the run's own file says which.

On the same machine it counts as long as that very process lives, on another for `PATIENCE` seconds
after its last sign of life.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from llm_games.benchmarks.record.schema import TABLES, LockRow

BEAT = 10.0  # seconds between two signs of life
PATIENCE = 60.0  # seconds after the last one for which another machine's process keeps its lock


def this_host() -> str:
    """Name this machine and, where processes are numbered in namespaces, the namespace."""
    namespace = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()} {os.readlink(namespace) if namespace.exists() else ''}".strip()


def born(pid: int) -> str | None:
    """Return when a process started, "" if this system does not tell, None if there is none."""
    if Path("/proc/self/stat").exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        fields = stat.rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ""


@dataclass
class RunLock:
    """This process's claim on one run."""

    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _beat: float = 0.0

    def take(self, database: sqlite3.Connection) -> str | None:
        """Take the lock inside a transaction; return who has it if it is not free."""
        if other := holder(database):
            return other
        self._beat, pid = time.time(), os.getpid()
        me = LockRow(self.token, this_host(), pid, born(pid) or "", self._beat)
        database.execute(*TABLES[LockRow].insert(me, again=True))
        return None

    def keep(self, database: sqlite3.Connection) -> bool:
        """Give a sign of life inside a transaction; return whether the lock is still ours."""
        if time.time() - self._beat < BEAT:
            row = database.execute("SELECT token FROM lock").fetchone()
            return row is not None and row[0] == self.token
        self._beat = time.time()
        mine = (self._beat, self.token)
        return database.execute("UPDATE lock SET beat = ? WHERE token = ?", mine).rowcount == 1

    def release(self, database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM lock WHERE token = ?", (self.token,))


def holder(database: sqlite3.Connection) -> str | None:
    """Return which process has the lock now, in words; None if nobody does."""
    for host, pid, started, beat in database.execute("SELECT host, pid, born, beat FROM lock"):
        alive = born(pid) == started if host == this_host() else time.time() - beat < PATIENCE
        if alive:
            return f"process {pid} on {host.split()[0]}"
    return None
