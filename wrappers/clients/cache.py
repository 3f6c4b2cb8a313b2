"""Layers that keep replies in a SQLite file and ask nothing twice."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.errors import LLMGamesError
from llm_games.rulebook import Array
from llm_games.view import Who
from llm_games.wrappers.clients.base import Client, Completion, Layer, Request

log = logging.getLogger(__name__)

APPLICATION = 0x6C6C6D63  # marks a SQLite file as one of ours, in PRAGMA application_id ("llmc")
EDITION = 2  # of the file: what was kept by an earlier one is of other keys and never found again
MEMORY = Path(":memory:")  # in place of a file: kept until nobody uses it any more, see sqlite3
MOST_EPISODES = 10_000  # at the same time, of which is known who has asked in their latest step
_TABLE = """CREATE TABLE IF NOT EXISTS replies (
  key BLOB PRIMARY KEY,     -- sha256 of the request and where it went
  source TEXT NOT NULL,     -- the server's address or the model's folder
  model TEXT NOT NULL,      -- as it was asked for
  answered TEXT NOT NULL,   -- as the server named itself
  text TEXT NOT NULL,
  thoughts TEXT NOT NULL,
  left_out TEXT NOT NULL,   -- JSON, see `Completion`
  created REAL NOT NULL     -- Unix time
) STRICT, WITHOUT ROWID"""
_SITUATIONS = """CREATE TABLE IF NOT EXISTS situations (
  chat BLOB PRIMARY KEY,    -- sha256 of the request, without the draw
  family BLOB NOT NULL,     -- sha256 of what is the same in all situations of a game
  numbers BLOB NOT NULL     -- float64, what the seat saw
) STRICT, WITHOUT ROWID"""


class CacheError(LLMGamesError):
    """The file cannot be used as a cache of replies."""


class Cached(NamedTuple):
    """The replies of one model in a cache: how many, their characters, Unix times."""

    model: str
    source: str
    replies: int
    characters: int
    oldest: float
    newest: float


def default_path() -> Path:
    """Return the file of replies if none is named: in the user's folder for caches."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "llm-games" / "replies.db"


class ReplyCache:
    """A file of replies for several processes; at the path `MEMORY` it is in memory alone.

    Raises:
        CacheError: it is another file, or cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.flights: dict[Any, asyncio.Future[None]] = {}  # what is asked now, by loop and key
        # By episode: the step that is played, and who has asked what in it.
        self._asking: dict[tuple[str, int], tuple[int, dict[bytes, list[Any]]]] = {}
        self._near: dict[bytes, _Near] = {}  # by family
        self._open()

    def __reduce__(self) -> tuple[Any, ...]:  # a connection cannot be pickled
        return ReplyCache, (self.path,)

    def _open(self) -> None:
        with self._translated():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = base = sqlite3.connect(
                self.path, timeout=5, isolation_level=None, check_same_thread=False
            )
            self._process = os.getpid()
            try:
                base.execute("PRAGMA synchronous = NORMAL")  # what the power takes is asked again
                with base:  # one after another, of several processes that begin
                    self._prepare(base)
            except BaseException:
                base.close()
                raise
            with suppress(sqlite3.OperationalError):  # it is locked by one who does the same
                base.execute("PRAGMA journal_mode = WAL")

    def _prepare(self, base: sqlite3.Connection) -> None:
        base.execute("BEGIN IMMEDIATE")
        names = "application_id", "user_version"
        application, edition = (base.execute(f"PRAGMA {n}").fetchone()[0] for n in names)
        if application != APPLICATION and base.execute("SELECT 1 FROM sqlite_schema").fetchone():
            raise CacheError(f"{self.path} is not a cache of replies: name another file")
        if edition > EDITION:
            raise CacheError(f"{self.path} is of a later version of llm-games: name another file")
        if application and edition < EDITION:
            base.execute("DROP TABLE IF EXISTS replies")
        base.execute(f"PRAGMA user_version = {EDITION}")
        base.execute(f"PRAGMA application_id = {APPLICATION}")
        base.execute(_TABLE)
        base.execute(_SITUATIONS)

    @property
    def _database(self) -> sqlite3.Connection:
        if self._process != os.getpid():  # a forked process must not use, or close, its parent's
            _parents.append(self._connection)
            self._open()
        return self._connection

    def get(self, key: bytes) -> Completion | None:
        """Return a reply; it takes no time and no tokens."""
        query = "SELECT text, answered, thoughts, left_out FROM replies WHERE key = ?"
        with self._translated():
            row = self._database.execute(query, (key,)).fetchone()
        if row is None:
            return None
        text, model, thoughts, left_out = row
        return Completion(text, model=model, thoughts=thoughts, left_out=json.loads(left_out))

    def put(self, key: bytes, source: str, model: str, completion: Completion) -> None:
        texts = (completion.text, completion.thoughts)
        whole = [text.encode(errors="replace").decode() for text in texts]  # no half characters
        left_out = json.dumps(completion.left_out)
        row = (key, source, model, completion.model, *whole, left_out, time.time())
        with self._translated():
            self._database.execute(f"INSERT OR REPLACE INTO replies VALUES (?{', ?' * 7})", row)

    def put_coordinates(self, chat: bytes, family: bytes, numbers: Array) -> None:
        """Store the coordinates of a situation in its family, float64 ``(columns,)``."""
        row = (chat, family, np.asarray(numbers, np.float64).tobytes())
        with self._translated():
            self._database.execute("INSERT OR IGNORE INTO situations VALUES (?, ?, ?)", row)
        self._near.pop(family, None)

    def nearest(self, family: bytes, numbers: Array, limit: int) -> list[bytes]:
        """Return the kept situations of a family that lie nearest, at most so many."""
        if family not in self._near:
            query = "SELECT chat, numbers FROM situations WHERE family = ? ORDER BY chat"
            with self._translated():
                rows = self._database.execute(query, (family,)).fetchall()
            if not rows:
                return []
            self._near[family] = _Near(rows)
        return self._near[family].to(numbers, limit)

    def rank(self, asked: bytes, who: Who) -> int:
        """Return how many others had asked the same in this step before the caller first did."""
        step, callers = self._asking.pop(who[:2], (who.step, {}))
        if step != who.step:
            callers = {}
        self._asking[who[:2]] = who.step, callers  # the latest stands last
        if len(self._asking) > MOST_EPISODES:
            del self._asking[next(iter(self._asking))]
        same, seat_and_call = callers.setdefault(asked, []), (who.seat, who.call)
        if seat_and_call not in same:
            same.append(seat_and_call)
        return same.index(seat_and_call)

    def contents(self) -> list[Cached]:
        """Return the number of replies by model."""
        query = (
            "SELECT model, source, count(*), sum(length(text)), min(created), max(created) "
            "FROM replies GROUP BY model, source ORDER BY model, source"
        )
        with self._translated():
            return [Cached(*row) for row in self._database.execute(query)]

    def prune(self, model: str | None = None, older_than: float = 0.0) -> int:
        """Drop a model's (all) replies that are older than so many seconds; return how many."""
        query = "DELETE FROM replies WHERE (?1 IS NULL OR model = ?1) AND created <= ?2"
        with self._translated():
            gone = self._database.execute(query, (model, time.time() - older_than)).rowcount
            if not self._database.execute("SELECT 1 FROM replies").fetchone():
                self._database.execute("DELETE FROM situations")
            self._database.execute("VACUUM")
        return gone

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise CacheError(f"{self.path} cannot be used as a cache of replies: {error}") from None


_parents: list[sqlite3.Connection] = []


class _Near:
    """Situations of a family: all columns count the same, by how far apart what is known lies."""

    def __init__(self, rows: list[tuple[bytes, bytes]]) -> None:
        from scipy.spatial import KDTree  # 0.2 s that few need

        self._chats = [chat for chat, _ in rows]
        coordinates = np.array([np.frombuffer(numbers) for _, numbers in rows])
        spread = np.ptp(coordinates, axis=0)
        self._scale = np.where(spread, spread, 1.0)
        self._tree = KDTree(coordinates / self._scale)

    def to(self, numbers: Array, limit: int) -> list[bytes]:
        """Return the situations next to these numbers, the nearest first."""
        indexes = self._tree.query(numbers / self._scale, min(limit, len(self._chats)), p=1)[1]
        return [self._chats[index] for index in np.atleast_1d(indexes)]


class Cache(Layer):
    """Serves a request that was answered before; the same request at the same time is asked once.

    Only whole replies are kept: no failure, refusal or cut one, and none at a temperature above 0,
    unless `always`. Requests are the same if model, source (the server's address or the model's
    folder), messages, schema, tools, sampling, ways of asking (`how`) and draw are, whoever asks. A
    draw is an episode's seed, a step, and how many asked the same in it before, so that each draw
    of a mixed strategy stays its own; of a request outside of games it is the seed.
    """

    def __init__(
        self,
        client: Client,
        file: ReplyCache,
        source: str = "",
        how: str = "",
        *,
        always: bool = False,
    ) -> None:
        super().__init__(client)
        self.file, self.source, self.always, self.how = file, source, always, how
        self.hits = self.misses = 0

    async def complete(self, request: Request) -> Completion:
        if request.sampling.temperature != 0 and not self.always:
            return await self.client.complete(request)
        return await self._served(request, self._key(request))

    async def _served(self, request: Request, key: bytes, anew: bool = False) -> Completion:
        """Return the stored reply of a key, or ask; with `anew`, ask in any case."""
        flight_key = asyncio.get_running_loop(), key
        while anew or (stored := tried(self.file.get, key)) is None:
            if (flight := self.file.flights.get(flight_key)) is None:
                break
            await asyncio.wait([flight])
            anew = False  # it was, a moment ago
        else:
            self.hits += 1
            return stored
        self.misses += 1
        flight = self.file.flights[flight_key] = flight_key[0].create_future()
        try:
            completion = await self.client.complete(request)
            if completion.finish == "stop" and completion.text and not completion.tool_calls:
                tried(self.file.put, key, self.source, self.name, completion)
            return completion
        finally:
            del self.file.flights[flight_key]
            flight.set_result(None)

    def _asked(self, request: Request) -> dict[str, Any]:
        """Return the fields that make two requests the same, the draw left out."""
        return {
            "model": self.name,
            "source": self.source,
            "messages": request.messages.digest.hex(),
            "schema": request.schema(),
            "tools": request.tools,
            "sampling": request.sampling.given(),
            "how": self.how,
        }

    def _key(self, request: Request) -> bytes:
        chat, seat = digest_of(self._asked(request)), request.who
        draw = [seat.seed, seat.step, self.file.rank(chat, seat)] if seat.run else [request.seed]
        return key_of(chat, draw)


def digest_of(asked: dict[str, Any]) -> bytes:
    """Name a request by all that makes it what it is."""
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).digest()


def key_of(chat: bytes, draw: Sequence[int]) -> bytes:
    """Name a draw of a request's replies."""
    return hashlib.sha256(chat + json.dumps([*draw]).encode()).digest()


def tried(use: Callable[..., Any], *arguments: Any) -> Any:
    """Read or write the file; log a CacheError, since a run goes on without the file."""
    try:
        return use(*arguments)
    except CacheError as error:
        log.warning("%s", error)
        return None
