"""One run in one SQLite file: everything that happened, written as it happens.

The tables are described in ``schema.sql``. `Records` reads a run, also while it is going on;
`Store` writes one, in one transaction for each turn of the event loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from llm_games import __version__
from llm_games.benchmarks.lock import RunLock
from llm_games.errors import LLMGamesError
from llm_games.questions import MISSING, Action
from llm_games.wrappers.policy import Attempt

SCHEMA = 1
"""Number of the schema, in PRAGMA user_version."""
APPLICATION = 0x6C6C6D67
"""What marks a SQLite file as one of ours, in PRAGMA application_id ("llmg")."""
Status = Literal["pending", "running", "done", "void"]
Plain = dict[str, Any]


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


@dataclass(frozen=True)
class GameRow:
    """One of the run's games: `seats` are the players' names, one for each seat."""

    id: int
    label: str
    game: str
    params: Plain
    seats: list[str]


@dataclass(frozen=True)
class EpisodeRow:
    """One episode; `number` counts within its game, `reason` says why it is void."""

    id: int
    game: GameRow
    number: int
    seed: int
    status: Status
    reason: str | None
    started: str | None
    ended: str | None


@dataclass(frozen=True)
class StepRow:
    """One step: who was asked, what happened (plain lists), payoffs of all seats, who is out."""

    step: int
    asked: list[int]
    record: Plain
    rewards: list[float]
    finished: list[int]


@dataclass(frozen=True)
class DecisionRow:
    """One decision; `broke`: it was against the rules and the declared treatment was played."""

    step: int
    seat: int
    action: int | list[int] | None
    outcome: str
    broke: bool
    reward: float


@dataclass(frozen=True)
class AttemptRow:
    """One completion; `prompt` has ids for `Records.messages`, `outcome` is None until read."""

    step: int
    seat: int
    number: int
    prompt: list[int]
    text: str
    finish: str
    error: str
    outcome: str | None
    why: str
    tokens_in: int
    tokens_out: int
    latency: float
    seed: int
    model: str


class Records:
    """A run as it was recorded. Use as a context manager, or `close` it.

    Attributes:
        path: the file.
        title, package, created: see ``schema.sql``.
        config: the configuration, as plain values.
    """

    def __init__(self, path: str | Path, database: sqlite3.Connection) -> None:
        self.path, self._database = Path(path), database
        row = self._rows("SELECT title, package, config, created FROM run")[0]
        self.title, self.package, config, self.created = row
        self.config: Plain = json.loads(config)

    @classmethod
    def open_readonly(cls, path: str | Path) -> Records:
        """Open a run to read, also one that is going on or lies in a read-only folder.

        Raises:
            NotARun, NewerSchema: see there.
        """
        _check_file(Path(path))
        try:
            with _opened(path, "ro") as database:
                _check_schema(path, database)
        except Unwritable:  # no place for the files that readers and the writer share
            if Path(f"{path}-wal").exists():
                raise
            with _opened(path, "ro", "&immutable=1") as database:
                _check_schema(path, database)
        return Records(path, database)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def games(self) -> list[GameRow]:
        """Return the run's games in the order of the configuration."""
        rows = self._rows("SELECT id, label, game, params, seats FROM games ORDER BY id")
        return [GameRow(*row[:3], *map(json.loads, row[3:])) for row in rows]

    def episodes(self) -> list[EpisodeRow]:
        """Return all episodes, game by game."""
        games = {game.id: game for game in self.games()}
        rows = self._rows(
            "SELECT id, game, number, seed, status, reason, started, ended FROM episodes "
            "ORDER BY game, number"
        )
        return [EpisodeRow(row[0], games[row[1]], *row[2:]) for row in rows]

    def steps(self, episode: int) -> list[StepRow]:
        """Return the steps of an episode in order."""
        rows = self._rows(
            "SELECT step, asked, record, rewards, finished FROM steps WHERE episode = ? "
            "ORDER BY step",
            episode,
        )
        return [StepRow(row[0], *map(json.loads, row[1:])) for row in rows]

    def decisions(self, episode: int) -> list[DecisionRow]:
        """Return the decisions of an episode by step and seat."""
        rows = self._rows(
            "SELECT step, seat, action, outcome, broke, reward FROM decisions WHERE episode = ? "
            "ORDER BY step, seat",
            episode,
        )
        return [
            DecisionRow(step, seat, json.loads(action), outcome, bool(broke), reward)
            for step, seat, action, outcome, broke, reward in rows
        ]

    def attempts(self, episode: int, step: int | None = None) -> list[AttemptRow]:
        """Return the completions of an episode, or of one of its steps, by step and seat."""
        rows = self._rows(
            "SELECT step, seat, number, prompt, text, finish, error, outcome, why, tokens_in, "
            "tokens_out, latency, seed, model FROM attempts WHERE episode = ?1 "
            "AND (?2 IS NULL OR step = ?2) ORDER BY step, seat, number",
            episode,
            step,
        )
        return [AttemptRow(*(*row[:3], json.loads(row[3]), *row[4:])) for row in rows]

    def messages(self, prompt: Sequence[int]) -> list[dict[str, str]]:
        """Return the messages of a prompt, each ``{"role": …, "content": …}``."""
        query = "SELECT role, content FROM messages WHERE id = ?"
        rows = (self._rows(query, number)[0] for number in prompt)
        return [{"role": role, "content": content} for role, content in rows]

    def usage(self) -> Plain:
        """Return how many completions were read with each outcome, and the tokens in all."""
        outcomes = dict(
            self._rows(
                "SELECT outcome, count(*) FROM attempts WHERE outcome NOT NULL GROUP BY outcome"
            )
        )
        total = self._rows("SELECT count(*), sum(tokens_in), sum(tokens_out) FROM attempts")[0]
        return {
            "calls": total[0],
            "tokens_in": total[1] or 0,
            "tokens_out": total[2] or 0,
            "outcomes": outcomes,
        }

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with _translated(self.path):
            return self._database.execute(query, values).fetchall()


class Store(Records):
    """A run that this process writes. Made by `create` or `open`; holds the run's lock.

    Rows are collected and committed together: `durable` waits until all that was added before
    is on the disk. Not for use by several threads.
    """

    def __init__(self, path: str | Path, database: sqlite3.Connection, lock: RunLock) -> None:
        super().__init__(path, database)
        self._lock = lock
        self._pending: list[tuple[str, Sequence[Any]]] = []
        self._flushed: asyncio.Future[None] | None = None
        self._ids: dict[bytes, int] = dict(self._rows("SELECT hash, id FROM messages"))

    @classmethod
    def create(
        cls,
        path: str | Path,
        title: str,
        config: Plain,
        games: Sequence[tuple[str, str, Plain, Sequence[str]]],
        seeds: Sequence[Sequence[int]],
    ) -> Store:
        """Start a new file with all its episodes pending.

        Args:
            path: the file; it must not exist.
            title: of the run.
            config: the configuration as plain values; holds no keys.
            games: label, name, parameters and players' names of each game.
            seeds: the seeds of each game's episodes.

        Raises:
            RunExists: there is a file already.
            Unwritable: the folder does not exist or cannot be written.
        """
        path = Path(path)
        check_free(path)
        lock = RunLock()
        with _opened(path, "rwc") as database:
            with _transaction(database):
                if database.execute("PRAGMA application_id").fetchone()[0] == APPLICATION:
                    raise RunExists(f"another process has just started a run in {path}")
                _fill(database, title, config, games, seeds)
                lock.take(database)
            _tune(database)
            return cls(path, database, lock)

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """Open a run to go on with it.

        Raises:
            NotARun, NewerSchema, RunLocked, Unwritable: see there.
        """
        path = Path(path)
        _check_file(path)
        lock = RunLock()
        with _opened(path, "rw") as database:
            _check_schema(path, database)
            with _transaction(database):
                holder = lock.take(database)
                if holder is not None:
                    raise RunLocked(
                        f"{path} is being written by {holder}; wait until it ends or stop it, "
                        "then resume"
                    )
            _tune(database)
            return cls(path, database, lock)

    def close(self) -> None:
        """Write what is left, give the lock back and close the file."""
        try:
            self.flush()
            with _translated(self.path):
                with _transaction(self._database):
                    self._lock.release(self._database)
                _settle(self._database)
        finally:
            self._database.close()

    # -- what happens is added here; `durable` brings it to the disk ---------------------------

    def begin(self, episode: int) -> None:
        """Note that an episode is being played."""
        self._add(
            "UPDATE episodes SET status = 'running', started = coalesce(started, ?) WHERE id = ?",
            (_now(), episode),
        )

    def end(self, episode: int, reason: str | None = None) -> None:
        """Note that an episode is done, or with a reason that it is void."""
        self._add(
            "UPDATE episodes SET status = ?, reason = ?, ended = ? WHERE id = ?",
            ("done" if reason is None else "void", reason, _now(), episode),
        )

    def attempt(self, episode: int, row: AttemptRow) -> None:
        """Add a completion as it arrives, in place of a call that failed if it is made anew."""
        values = (
            *(episode, row.step, row.seat, row.number, json.dumps(row.prompt), row.text),
            *(row.finish, row.error, row.outcome, row.why, row.tokens_in, row.tokens_out),
            *(row.latency, row.seed, row.model),
        )
        self._add(f"INSERT OR REPLACE INTO attempts VALUES ({', '.join('?' * 15)})", values)

    def judge(self, episode: int, where: tuple[int, int], number: int, attempt: Attempt) -> None:
        """Note how a completion, asked for at `where` (step and seat), was read."""
        self._add(
            "UPDATE attempts SET outcome = ?, why = ? "
            "WHERE episode = ? AND step = ? AND seat = ? AND number = ?",
            (attempt.outcome, attempt.why, episode, *where, number),
        )

    def step(self, episode: int, row: StepRow, decisions: Sequence[DecisionRow]) -> None:
        """Add a step with the decisions that made it."""
        plain = (row.asked, row.record, row.rewards, row.finished)
        self._add(
            "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)",
            (episode, row.step, *map(json.dumps, plain)),
        )
        for made in decisions:
            action = json.dumps(made.action)
            values = (episode, made.step, made.seat, action, made.outcome, made.broke, made.reward)
            self._add("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Return the ids of a prompt's messages, adding those that are new."""
        return [self._message(message["role"], message["content"]) for message in messages]

    def _message(self, role: str, content: str) -> int:
        digest = hashlib.sha256(f"{role}\0{content}".encode()).digest()[:16]
        if digest not in self._ids:
            self._ids[digest] = number = len(self._ids) + 1
            self._add("INSERT INTO messages VALUES (?, ?, ?, ?)", (number, digest, role, content))
        return self._ids[digest]

    def _add(self, statement: str, values: Sequence[Any]) -> None:
        self._pending.append((statement, values))

    async def durable(self) -> None:
        """Wait until all that was added before is on the disk, together with its neighbours."""
        if self._flushed is None:
            loop = asyncio.get_running_loop()
            self._flushed = loop.create_future()
            loop.call_soon(self._flush_soon, self._flushed)
        await asyncio.shield(self._flushed)

    def _flush_soon(self, flushed: asyncio.Future[None]) -> None:
        self._flushed = None
        try:
            self.flush()
        except StoreError as error:
            flushed.set_exception(error)
        else:
            flushed.set_result(None)

    def flush(self) -> None:
        """Write all that was added, in one transaction.

        Raises:
            Unwritable: the disk is full or gone; what was committed before is safe.
            RunLocked: another process has taken the run over.
        """
        with _translated(self.path), _transaction(self._database):
            if not self._lock.keep(self._database):
                raise RunLocked(f"another process has taken {self.path} over; this one stops")
            for statement, values in self._pending:
                self._database.execute(statement, values)
        self._pending.clear()


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
) -> None:
    """Write the schema and the rows that a run starts with, inside a transaction."""
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    database.execute(f"PRAGMA user_version = {SCHEMA}")
    for statement in (Path(__file__).parent / "schema.sql").read_text("utf-8").split(";\n"):
        database.execute(statement)
    row = (title, __version__, json.dumps(config), _now())
    database.execute("INSERT INTO run VALUES (1, ?, ?, ?, ?)", row)
    for i, (label, name, params, seats) in enumerate(games, start=1):
        values = (i, label, name, json.dumps(params), json.dumps(list(seats)))
        database.execute("INSERT INTO games VALUES (?, ?, ?, ?, ?)", values)
        database.executemany(
            "INSERT INTO episodes (game, number, seed) VALUES (?, ?, ?)",
            [(i, number, seed) for number, seed in enumerate(seeds[i - 1])],
        )


@contextmanager
def _opened(path: str | Path, mode: str, extra: str = "") -> Iterator[sqlite3.Connection]:
    """Connect; the connection stays open unless the block raises."""
    uri = f"{Path(path).absolute().as_uri()}?mode={mode}{extra}"
    with _translated(path):
        database = sqlite3.connect(uri, uri=True, timeout=10, isolation_level=None)
        try:
            yield database
        except BaseException:
            database.close()
            raise


def _tune(database: sqlite3.Connection) -> None:
    # Readers do not wait for the writer; a commit is on the disk when it returns.
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA foreign_keys = ON")


def _settle(database: sqlite3.Connection) -> None:
    """Leave one plain file without companions, unless somebody is just reading it."""
    database.execute("PRAGMA busy_timeout = 0")
    with suppress(sqlite3.OperationalError):
        database.execute("PRAGMA journal_mode = DELETE")


def _check_file(path: Path) -> None:
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


def _check_schema(path: str | Path, database: sqlite3.Connection) -> None:
    application = database.execute("PRAGMA application_id").fetchone()[0]
    schema = database.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        raise NotARun(f"{path} is a SQLite database, but not a run of llm-games")
    if schema > SCHEMA:
        raise NewerSchema(
            f"{path} was made by a newer llm-games (schema {schema}, this one knows up to "
            f"{SCHEMA}); upgrade with: pip install --upgrade llm-games"
        )


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


@contextmanager
def _translated(path: str | Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, which say what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        kind, advice = _ADVICE.get(code, (StoreError, ""))
        raise kind(f"{path}: {error}{advice.format(path=path)}") from error


_SAFE = "; all that was recorded before is safe, go on later with: llm-games resume {path}"
_ADVICE: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (RunLocked, ": another process is using the file" + _SAFE),
    sqlite3.SQLITE_FULL: (Unwritable, "; make room" + _SAFE),
    sqlite3.SQLITE_IOERR: (Unwritable, _SAFE),
    sqlite3.SQLITE_READONLY: (Unwritable, "; make the file and its folder writable"),
    sqlite3.SQLITE_CANTOPEN: (Unwritable, "; make the folder writable, or choose another --db"),
    sqlite3.SQLITE_NOTADB: (NotARun, "; it is not a run of llm-games"),
    sqlite3.SQLITE_CORRUPT: (NotARun, "; the file is damaged, restore it from a copy"),
}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
