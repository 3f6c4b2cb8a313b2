"""Files beside a run's own in which workers record episodes, and how their rows come into it.

A run's file is the one that counts. What a worker has recorded is taken over when its episodes end,
the rest when it is gone: its half-played episodes, and what its calls came to. Then its file goes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
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
from llm_games.benchmarks.record.store import Store
from llm_games.wrappers.clients.budget import Usage
from llm_games.wrappers.clients.chat import Chat
from llm_games.wrappers.clients.tokens import Lengths

ENDED = ("done", "void")


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
        with suppress(StoreError), Records.open_readonly(file) as part:  # it may just be deleted
            if file.name not in taken and part.config.get("run") == records.created:
                for pair, usage in part.spent().items():
                    total.setdefault(pair, Usage()).add(usage)
    return total


def take_over(store: Store, file: Path) -> dict[tuple[str, str], Usage]:
    """Take all of a worker that is gone, once, and drop its file; return what it had spent.

    Raises RunLocked: it lives.
    """
    spent: dict[tuple[str, str], Usage] = {}
    if file.name not in store.parts() and _begun(file):
        with Records.open_readonly(file) as records:
            if records.config.get("run") != store.created:
                raise NotARun(f"{file} is of another run than {store.path}: move it away")
            if holder := records.holder():
                raise RunLocked(
                    f"{holder} still waits for calls of {store.path}; wait until it ends or stop "
                    "it, then resume"
                )
            spent = records.spent(ended=True)
            _take(store, records, spent)
        store.add(PartRow(file.name))
        store.flush()
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(f"{file}{ending}").unlink(missing_ok=True)
    return spent


def _begun(file: Path) -> bool:
    """Whether a worker came to write its file; what was half-written is undone."""
    with connection.opened(file, "rw") as database:
        begun = connection.pragma(database, "application_id") == connection.APPLICATION
    database.close()
    return begun


def _take(store: Store, part: Records, spent: Mapping[tuple[str, str], Usage]) -> None:
    states = {row.id: row.status for row in store.episodes()}
    for row in part.episodes():
        if states[row.id] not in ENDED:
            adopt(store, excerpt(part, row))
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
    for file in part_files(store.path):
        take_over(store, file)
    with suppress(FileNotFoundError):
        shutil.rmtree(folder(store.path))
    store.forget_parts()
