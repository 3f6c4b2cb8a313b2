"""One run in one SQLite file: everything that happened, written as it happens.

The tables are described in ``schema.sql``. `Records` reads a run, also while it is going on;
`Store` writes one.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from llm_games import __version__
from llm_games.benchmarks.runs.database import (
    APPLICATION,
    SCHEMA,
    NewerSchema,
    NotARun,
    RunExists,
    RunLocked,
    StoreError,
    Unwritable,
    check_file,
    check_schema,
    opened,
    transaction,
    tune,
)
from llm_games.benchmarks.runs.lock import RunLock
from llm_games.benchmarks.runs.records import (
    AttemptRow,
    DecisionRow,
    EpisodeRow,
    GameRow,
    LimitRow,
    NoteRow,
    Plain,
    Records,
    StepRow,
)
from llm_games.benchmarks.runs.writer import Writer
from llm_games.questions import MISSING, Action
from llm_games.wrappers.clients.budget import Usage
from llm_games.wrappers.policy import Attempt

__all__ = [
    "AttemptRow",
    "DecisionRow",
    "EpisodeRow",
    "GameRow",
    "LimitRow",
    "NewerSchema",
    "NotARun",
    "NoteRow",
    "Records",
    "RunExists",
    "RunLocked",
    "StepRow",
    "Store",
    "StoreError",
    "Unwritable",
    "check_free",
    "now",
    "plain_action",
]

MOST_IDS = 20_000
"""Messages whose ids are kept in memory; others are looked up in the file."""


class Store(Records):
    """A run that this process writes. Made by `create` or `open`; holds the run's lock.

    Rows are collected and committed together: `durable` waits until all that was added before
    is on the disk. What is read is what was committed. Not for use by several threads.
    """

    def __init__(self, path: Path, database: sqlite3.Connection, lock: RunLock) -> None:
        with opened(path, "ro") as reading:  # of its own: it never waits for a commit
            super().__init__(path, reading)
        self._writer = Writer(path, database, lock)
        self._ids: dict[bytes, int] = {}
        """of messages, by hash: those not yet written, and many that were used of late"""
        self._messages: int = self._rows("SELECT coalesce(max(id), 0) FROM messages")[0][0]

    @classmethod
    def create(
        cls,
        path: str | Path,
        title: str,
        config: Plain,
        games: Sequence[tuple[str, str, Plain, Sequence[str]]],
        seeds: Sequence[Sequence[int]],
        seatings: Sequence[Sequence[Sequence[int]]] | None = None,
    ) -> Store:
        """Start a new file with all its episodes pending.

        Args:
            path: the file; it must not exist.
            title: of the run.
            config: the configuration as plain values; holds no keys.
            games: label, name, parameters and players' names of each game.
            seeds: the seeds of each game's episodes.
            seatings: who sits where in each of them, see `EpisodeRow`; None: as listed.

        Raises:
            RunExists: there is a file already.
            Unwritable: the folder does not exist or cannot be written.
        """
        path = Path(path)
        check_free(path)
        lock = RunLock()
        with opened(path, "rwc") as database:
            with transaction(database):
                if database.execute("PRAGMA application_id").fetchone()[0] == APPLICATION:
                    raise RunExists(f"another process has just started a run in {path}")
                _fill(database, title, config, games, seeds, seatings)
                lock.take(database)
            tune(database)
            return cls(path, database, lock)

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """Open a run to go on with it.

        Raises:
            NotARun, NewerSchema, RunLocked, Unwritable: see there.
        """
        path = Path(path)
        check_file(path)
        lock = RunLock()
        with opened(path, "rw") as database:
            check_schema(path, database)
            with transaction(database):
                holder = lock.take(database)
                if holder is not None:
                    raise RunLocked(
                        f"{path} is being written by {holder}; wait until it ends or stop it, "
                        "then resume"
                    )
            tune(database)
            return cls(path, database, lock)

    def close(self) -> None:
        """Write what is left, give the lock back and close the file."""
        super().close()
        self._writer.close()

    # -- what happens is added here; `durable` brings it to the disk ---------------------------

    def begin(self, episode: int) -> None:
        """Note that an episode is being played."""
        self._add(
            "UPDATE episodes SET status = 'running', started = coalesce(started, ?) WHERE id = ?",
            (now(), episode),
        )

    def end(self, episode: int, reason: str | None = None) -> None:
        """Note that an episode is done, or with a reason that it is void."""
        self._add(
            "UPDATE episodes SET status = ?, reason = ?, ended = ? WHERE id = ?",
            ("done" if reason is None else "void", reason, now(), episode),
        )

    def attempt(self, episode: int, row: AttemptRow) -> None:
        """Add a completion as it arrives."""
        values = (
            *(episode, row.step, row.seat, row.number, json.dumps(row.prompt), row.text),
            *(row.finish, row.error, row.outcome, row.why, row.tokens_in, row.tokens_out),
            *(row.latency, row.seed, row.model, row.detail, row.kind),
        )
        self._add(f"INSERT INTO attempts VALUES ({', '.join('?' * 17)})", values)

    def judge(self, episode: int, where: tuple[int, int], number: int, attempt: Attempt) -> None:
        """Note how a completion, asked for at `where` (step and seat), was read."""
        self._add(
            "UPDATE attempts SET outcome = ?, why = ?, detail = ? "
            "WHERE episode = ? AND step = ? AND seat = ? AND number = ?",
            (attempt.outcome, attempt.why, attempt.detail, episode, *where, number),
        )

    def note(self, episode: int, row: NoteRow) -> None:
        """Add what a player wrote down."""
        values = (episode, row.step, row.seat, row.number, row.kind, json.dumps(row.content))
        self._add("INSERT INTO notes VALUES (?, ?, ?, ?, ?, ?)", values)

    def undo(self, calls: Sequence[tuple[int, int, int, int]]) -> None:
        """Take back calls (episode, step, seat, number) and all that was built upon them."""
        for call in calls:
            self._add(
                "DELETE FROM attempts WHERE (episode, step) = (?, ?) AND seat = ? AND number >= ?",
                call,
            )
            self._add("DELETE FROM attempts WHERE episode = ? AND step > ?", call[:2])
            for table in ("decisions", "steps", "notes"):
                self._add(f"DELETE FROM {table} WHERE episode = ? AND step >= ?", call[:2])
            self._add(
                "UPDATE episodes SET status = 'running', reason = NULL, ended = NULL WHERE id = ?",
                call[:1],
            )

    def step(self, episode: int, row: StepRow, decisions: Sequence[DecisionRow]) -> None:
        """Add a step with the decisions that made it."""
        plain = (row.asked, row.record, row.rewards, row.finished)
        texts = (json.dumps(value, default=str) for value in plain)  # a ratio as "2/3"
        self._add(
            "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)",
            (episode, row.step, *texts),
        )
        for made in decisions:
            action = json.dumps(made.action)
            values = (episode, made.step, made.seat, action, made.outcome, made.broke, made.reward)
            self._add("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def spend(self, model: str, seat: str, usage: Usage) -> None:
        """Note what a model has been asked for by a seat so far, all calls together."""
        values = (model, seat, *usage.plain().values())
        self._add("INSERT OR REPLACE INTO spent VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def limit(self, row: LimitRow) -> None:
        """Note how many calls at a time a server has borne so far."""
        values = (row.began, row.number, row.model, row.server, json.dumps(row.history))
        self._add("INSERT OR REPLACE INTO limits VALUES (?, ?, ?, ?, ?)", values)

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Return the ids of a prompt's messages, adding those that are new."""
        return [self._message(message["role"], message["content"]) for message in messages]

    def _message(self, role: str, content: str) -> int:
        digest = hashlib.sha256(f"{role}\0{content}".encode()).digest()[:16]
        if digest not in self._ids:
            found = self._rows("SELECT id FROM messages WHERE hash = ?", digest)
            if not found:
                self._messages += 1
                values = (self._messages, digest, role, content)
                self._add("INSERT INTO messages VALUES (?, ?, ?, ?)", values)
            self._ids[digest] = found[0][0] if found else self._messages
        return self._ids[digest]

    def _add(self, statement: str, values: Sequence[Any]) -> None:
        self._writer.add(statement, values)

    async def durable(self) -> None:
        """Wait until all that was added before is on the disk; raises what `flush` raises."""
        last = self._messages
        await self._writer.durable()
        self._forget(last)

    def flush(self) -> None:
        """Write all that was added, and wait for it.

        Raises:
            Unwritable: the disk is full or gone; what was committed before is safe.
            RunLocked: another process has taken the run over.
        """
        self._writer.flush()
        self._forget(self._messages)

    def _forget(self, last: int) -> None:
        """Drop the ids of messages up to `last`, which are in the file, if they are too many."""
        if len(self._ids) > MOST_IDS:
            self._ids = {digest: i for digest, i in self._ids.items() if i > last}


def check_free(path: Path) -> None:
    """Check that a new run can be recorded in a file.

    Raises:
        RunExists: there is a file already; it is never overwritten.
        Unwritable: there is no such folder.
    """
    if path.is_dir() or (path.exists() and path.stat().st_size > 0):
        raise RunExists(
            f"{path} exists already and is left as it is; "
            f"choose another file with --db, or finish that run: llm-games resume {path}"
        )
    if not path.parent.is_dir():
        raise Unwritable(f"there is no folder {path.parent}; make it, or choose another --db")


def plain_action(action: Action) -> int | list[int] | None:
    """Return an action as JSON holds it: a plan as a list, a missing one as None."""
    if isinstance(action, tuple):
        return [int(share) for share in action]
    return None if action == MISSING else int(action)


def _fill(
    database: sqlite3.Connection,
    title: str,
    config: Plain,
    games: Sequence[tuple[str, str, Plain, Sequence[str]]],
    seeds: Sequence[Sequence[int]],
    seatings: Sequence[Sequence[Sequence[int]]] | None,
) -> None:
    """Write the schema and the rows that a run starts with, inside a transaction."""
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    database.execute(f"PRAGMA user_version = {SCHEMA}")
    for statement in (Path(__file__).parent / "schema.sql").read_text("utf-8").split(";\n"):
        database.execute(statement)
    row = (title, __version__, json.dumps(config), now())
    database.execute("INSERT INTO run VALUES (1, ?, ?, ?, ?)", row)
    for i, (label, name, params, seats) in enumerate(games, start=1):
        values = (i, label, name, json.dumps(params), json.dumps(list(seats)))
        database.execute("INSERT INTO games VALUES (?, ?, ?, ?, ?)", values)
        listed = [list(range(len(seats)))] * len(seeds[i - 1])
        order = seatings[i - 1] if seatings else listed
        database.executemany(
            "INSERT INTO episodes (game, number, seed, seating) VALUES (?, ?, ?, ?)",
            [
                (i, number, seed, json.dumps(list(order[number])))
                for number, seed in enumerate(seeds[i - 1])
            ],
        )


def now() -> str:
    """Return the time as the file holds it: UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
