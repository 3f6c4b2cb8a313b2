"""Files beside a run's own in which workers record episodes, and how their rows come into it.

A run's file is the one that counts. What a worker has recorded is taken over when its episodes end,
the rest when it is gone: its half-played episodes, and what its calls came to. Then its file goes.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from llm_games.benchmarks.record import connection
from llm_games.benchmarks.record.connection import NotARun, RunLocked, StoreError
from llm_games.benchmarks.record.queries import PARTS, Records
from llm_games.benchmarks.record.schema import (
    OVERFLOW,
    TABLES,
    AttemptRow,
    EpisodeRow,
    NoteRow,
    PartRow,
)
from llm_games.benchmarks.record.store import PART_BITS, Store
from llm_games.wrappers.clients.budget import Usage
from llm_games.wrappers.clients.chat import Chat
from llm_games.wrappers.clients.tokens import Lengths

ENDED = ("done", "void")
PATIENCE = 5.0  # seconds for which a worker that lives is waited for


PROMPT = list(TABLES[AttemptRow].types).index("prompt")
CONTENT = list(TABLES[NoteRow].types).index("content")
KIND = list(TABLES[NoteRow].types).index("kind")


class Excerpt(NamedTuple):
    """All that is recorded of an episode: rows as written by table, and the prompts in them."""

    row: EpisodeRow
    cells: Mapping[str, list[tuple[Any, ...]]]
    chats: Mapping[int, Chat]


def excerpt(records: Records, row: EpisodeRow, *tables: str) -> Excerpt:
    """Read an episode, or some of its tables alone."""
    cells = {name: records.cells(PARTS[name], row.id) for name in tables or PARTS}
    answered = {int(attempt[PROMPT]) for attempt in cells.get("attempts", ())}
    every = records.chats(row.id) if answered else {}
    chats = {prompt: every[prompt] for prompt in sorted(answered)}
    for note in cells.get("notes", ()):
        if note[KIND] == OVERFLOW:  # no attempt has its prompt
            prompt = json.loads(note[CONTENT])["prompt"]
            chats[prompt] = Chat.of(records.messages(prompt))
    return Excerpt(row, cells, chats)


def adopt(store: Store, part: Excerpt) -> None:
    """Put an episode's rows in the place of those that the store has of it."""
    store.add(part.row, again=True)
    ids = {prompt: store.prompt(chat) for prompt, chat in part.chats.items()}

    def renamed(name: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
        if name == "attempts":
            return *row[:PROMPT], str(ids[int(row[PROMPT])]), *row[PROMPT + 1 :]
        if name == "notes" and row[KIND] == OVERFLOW:
            about = json.loads(row[CONTENT])
            text = json.dumps(about | {"prompt": ids[about["prompt"]]})
            return *row[:CONTENT], text, *row[CONTENT + 1 :]
        return row

    for name, rows in part.cells.items():
        store.drop(PARTS[name], part.row.id)
        written = ((part.row.id, *renamed(name, row)) for row in rows)
        store.add_written(PARTS[name], written)


def folder(path: Path) -> Path:
    """Where a run's workers record."""
    return path.with_name(f"{path.name}.parts")


def part_files(path: Path) -> list[Path]:
    return sorted(folder(path).glob("*.db"))


def spent_so_far(records: Records) -> dict[tuple[str, str], Usage]:
    """What a run's calls came to by model and seat, with those of workers that are still there."""
    total, taken = records.spent(), records.parts()
    for file in part_files(records.path):
        with (
            suppress(StoreError),
            Records.open_readonly(file, part=True) as part,
        ):  # it may just be deleted
            if file.name not in taken and part.config.get("run") == records.created:
                for pair, usage in part.spent().items():
                    total.setdefault(pair, Usage()).add(usage)
    return total


class Part:
    """A worker's file, of which a run's takes rows: SQLite copies them, as they are written.

    Of an episode of which the run has steps, what comes from the last of them on is taken.

    Prompts keep their numbers, beside those of others, and are put together by `put_in_order`:
    those that begin one have the part's number, below 0, for a parent.
    """

    def __init__(self, store: Store, file: Path) -> None:
        self.store, self.file, self.number = store, file, next(store.part_numbers)
        self._copied = {"messages": 0, "prompts": 0}  # the last of each

    async def take(self, ids: Sequence[int]) -> tuple[int, int]:
        """Take what is new of some episodes; return their decisions, and how many broke rules."""
        return await asyncio.wrap_future(self.store.apart(lambda base: self._take(base, ids)))

    def take_at_once(self, ids: Sequence[int]) -> None:
        self.store.apart(lambda base: self._take(base, ids)).result()

    def close(self) -> None:
        """Let go of the file, so that it can be deleted."""
        self.store.apart(lambda base: _detach(base, f"part{self.number}")).result()

    def _take(self, database: sqlite3.Connection, ids: Sequence[int]) -> tuple[int, int]:
        name = f"part{self.number}"
        _attach(database, name, self.file)
        about = {"ids": json.dumps(ids), "number": self.number, "base": self.number << PART_BITS}
        with connection.transaction(database):
            for table, last in self._copied.items():
                [[newest]] = database.execute(f"SELECT coalesce(max(id), 0) FROM {name}.{table}")
                if newest > last:
                    copied = COPY[table].format(part=name)
                    database.execute(copied, about | {"last": last, "newest": newest})
                    self._copied[table] = newest
            for copied in (COPY["episodes"], *COPIES):
                database.execute(copied.format(part=name), about)
            [counts] = database.execute(COUNTED, about)
        return counts


MOST_ATTACHED = 8  # SQLite has 10
COUNTED = """
SELECT count(*), coalesce(sum(broke), 0) FROM decisions
WHERE episode IN (SELECT value FROM json_each(:ids))
"""
COPY = {
    "messages": "INSERT OR IGNORE INTO messages (hash, role, content) "
    "SELECT hash, role, content FROM {part}.messages WHERE id > :last AND id <= :newest",
    "prompts": "INSERT OR IGNORE INTO prompts (id, parent, message) "
    "SELECT p.id + :base, iif(p.parent = 0, -:number, p.parent + :base), m.id "
    "FROM {part}.prompts p JOIN {part}.messages theirs ON theirs.id = p.message "
    "JOIN messages m ON m.hash = theirs.hash WHERE p.id > :last AND p.id <= :newest",
    "episodes": "UPDATE main.episodes SET (status, reason, started, ended) = "
    "(p.status, p.reason, p.started, p.ended) FROM {part}.episodes p "
    "WHERE p.id = episodes.id AND p.id IN (SELECT value FROM json_each(:ids))",
}
CHANGED = {
    ("attempts", "prompt"): "CAST(CAST(prompt AS INTEGER) + :base AS TEXT)",
    ("notes", "content"): f"iif(kind = '{OVERFLOW}', json_set(content, '$.prompt', "
    "content ->> '$.prompt' + :base), content)",
}


def _copies() -> Iterator[str]:
    yield "CREATE TEMP TABLE IF NOT EXISTS since (episode INTEGER PRIMARY KEY, step INTEGER)"
    yield "DELETE FROM since"
    last = "(SELECT max(step) FROM main.steps WHERE episode = value)"
    yield f"INSERT INTO since SELECT value, coalesce({last}, 0) FROM json_each(:ids)"
    for row in PARTS.values():
        table = TABLES[row]
        names = ["episode", *table.types]
        shown = ", ".join(CHANGED.get((table.name, name), f"p.{name}") for name in names)
        yield (  # before, since OR REPLACE takes longer
            f"DELETE FROM main.{table.name} WHERE episode IN (SELECT episode FROM since) AND "
            f"step >= (SELECT step FROM since s WHERE s.episode = {table.name}.episode)"
        )
        yield (
            f"INSERT INTO main.{table.name} ({', '.join(names)}) SELECT {shown} "
            f"FROM since CROSS JOIN {{part}}.{table.name} p "
            "ON p.episode = since.episode AND p.step >= since.step"
        )


COPIES = [*_copies()]


def _attach(database: sqlite3.Connection, name: str, file: Path) -> None:
    attached = [row[1] for row in database.execute("PRAGMA database_list")]
    if name not in attached:
        if len(parts := [other for other in attached if other.startswith("part")]) >= MOST_ATTACHED:
            _detach(database, parts[0])
        database.execute("ATTACH ? AS " + name, (f"{file.absolute().as_uri()}?mode=ro",))


def _detach(database: sqlite3.Connection, name: str) -> None:
    if name in [row[1] for row in database.execute("PRAGMA database_list")]:
        database.execute(f"DETACH {name}")


def take_over(store: Store, file: Path, part: Part | None = None) -> dict[tuple[str, str], Usage]:
    """Take all of a worker that is gone, once, and drop its file; return what it had spent.

    `part`: as which some was taken before. Raises RunLocked: it lives.
    """
    spent: dict[tuple[str, str], Usage] = {}
    if file.name not in store.parts() and _begun(file):
        with Records.open_readonly(file, part=True) as records:
            if records.config.get("run") != store.created:
                raise NotARun(f"{file} is of another run than {store.path}: move it away")
            if holder := _holder(records):
                raise RunLocked(
                    f"{holder} still waits for calls of {store.path}; wait until it ends or stop "
                    "it, then resume"
                )
            spent = records.spent(ended=True)
            states = {row.id: row.status for row in store.episodes()}
            unended = [row.id for row in records.episodes() if states[row.id] not in ENDED]
            part = part or Part(store, file)
            part.take_at_once(unended)
            _add_books(store, records, spent)
        store.add(PartRow(file.name))
        store.flush()
    if part is not None:
        part.close()
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(f"{file}{ending}").unlink(missing_ok=True)
    return spent


def _holder(records: Records) -> str | None:
    """Who has a worker's file, once those whose coordinator has just died had time to end."""
    until = time.monotonic() + PATIENCE
    while (holder := records.holder()) is not None and time.monotonic() < until:
        time.sleep(PATIENCE / 50)
    return holder


def _begun(file: Path) -> bool:
    """Whether a worker came to write its file; what was half-written is undone."""
    with connection.opened(file, "rw") as database:
        begun = connection.pragma(database, "application_id") == connection.APPLICATION
    database.close()
    return begun


def _add_books(store: Store, part: Records, spent: Mapping[tuple[str, str], Usage]) -> None:
    total = store.spent(ended=True)
    for pair, usage in spent.items():
        total.setdefault(pair, Usage()).add(usage)
    store.strike_all()
    for pair, usage in total.items():
        store.spend(*pair, usage)
    lengths = store.learnt()
    for model, learnt in part.learnt().items():
        store.learn(model, both(lengths.get(model), learnt))
    number = 1 + max((row.number for row in store.limits()), default=-1)
    for count, limit in enumerate(part.limits(), number):
        store.add(replace(limit, number=count))


def both(first: Lengths | None, second: Lengths) -> Lengths:
    """What two have learnt of a model's replies."""
    if first is None:
        return second
    return Lengths(
        first.seen + second.seen,
        max(first.longest, second.longest),
        first.kept and second.kept,
        first.sent and second.sent,
        min(first.most, second.most),
        first.counted and second.counted,
    )


def take_over_all(store: Store) -> None:
    """Take what workers of a run left that ended in their midst."""
    if not folder(store.path).exists():
        return
    for file in part_files(store.path):
        take_over(store, file)
    store.put_in_order()
    with suppress(FileNotFoundError):
        shutil.rmtree(folder(store.path))
    store.forget_parts()
