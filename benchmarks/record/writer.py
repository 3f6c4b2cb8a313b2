"""Rows on their way to a run's file: committed in a thread, so that play goes on meanwhile."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from llm_games.benchmarks.record.connection import RunLocked, transaction, translated
from llm_games.benchmarks.record.lock import RunLock

T = TypeVar("T")
Rows = list[tuple[str, Sequence[Any]]]
"""Statements with their values, in order."""
SOON = 0.03  # seconds for which rows wait for others, if nobody waits for them


class Writer:
    """Writes rows in the order in which they are added, those of one turn in one transaction.

    The connection belongs to the writer's thread. What is added during a commit goes into the next;
    rows that could not be written come first in it. To be used in one event loop. `copy` sends rows
    to another place; what is `durable` is there, too.
    """

    def __init__(self, path: Path, database: sqlite3.Connection, lock: RunLock) -> None:
        self.path, self._database, self._lock = path, database, lock
        self.copy: Callable[[Rows], Awaitable[Any]] | None = None
        self._copied: Awaitable[Any] | None = None
        self._thread = ThreadPoolExecutor(1, "llm-games-writer")
        self._added: Rows = []
        self._unwritten: Rows = []  # the thread's own
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None
        self._soon: asyncio.TimerHandle | None = None

    def add(self, statement: str, values: Sequence[Any]) -> None:
        self._added.append((statement, values))

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Keep what is added inside, where nothing is waited for, only if it comes to its end."""
        count = len(self._added)
        try:
            yield
        except BaseException:
            del self._added[count:]
            raise

    async def durable(self) -> None:
        """Wait until all that was added before is on the disk; raises what `flush` raises."""
        await asyncio.shield(self._begin())

    def hasten(self) -> None:
        """Bring to the disk soon what was added; whoever waits next is told if that fails."""
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(SOON, self._begin)

    def _begin(self) -> asyncio.Task[None]:
        if self._next is None or self._next.done():
            self._next = asyncio.create_task(self._commit_next())
            # If all who waited are gone, nobody is to be told: the rows are tried again.
            self._next.add_done_callback(lambda done: done.cancelled() or done.exception())
        return self._next

    async def _commit_next(self) -> None:
        async with self._turn:
            self._next = None
            if self._soon is not None:
                self._soon.cancel()
                self._soon = None
            # Shielded: a job that is cancelled before it starts would lose its rows.
            await asyncio.shield(asyncio.wrap_future(self._hand_over()))
            if self._copied is not None:
                await asyncio.shield(self._copied)

    def apart(self, work: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Have something done to the database by itself, after all that was added before."""
        rows, self._added = self._added, []
        return self._thread.submit(self._do_apart, rows, work)

    def flush(self) -> None:
        """Write all that was added, and wait; Unwritable, RunLocked: the rest stays safe."""
        self._hand_over().result()

    def close(self) -> None:
        """Write what is left, give the lock back and close the file."""
        if self._soon is not None:
            self._soon.cancel()
        try:
            self.flush()
            self._thread.submit(self._leave).result()
        finally:
            self._thread.shutdown()
            self._database.close()

    def _hand_over(self) -> Future[None]:
        rows, self._added = self._added, []
        if rows and self.copy is not None:
            self._copied = self.copy(rows)
        return self._thread.submit(self._commit, rows)

    # -- in the thread -------------------------------------------------------------------------
    def _commit(self, rows: Rows) -> None:
        self._unwritten += rows
        with translated(self.path), transaction(self._database):
            if not self._lock.keep(self._database):
                raise RunLocked(f"another process has taken {self.path} over; this one stops")
            for statement, added in groupby(self._unwritten, key=itemgetter(0)):
                self._database.executemany(statement, map(itemgetter(1), added))
        self._unwritten.clear()

    def _do_apart(self, rows: Rows, work: Callable[[sqlite3.Connection], T]) -> T:
        self._commit(rows)
        with translated(self.path):
            return work(self._database)

    def _leave(self) -> None:
        with translated(self.path):
            with transaction(self._database):
                self._lock.release(self._database)
            # One plain file without companions is left, unless somebody is just reading it.
            self._database.execute("PRAGMA busy_timeout = 0")
            with suppress(sqlite3.OperationalError):
                self._database.execute("PRAGMA journal_mode = DELETE")
