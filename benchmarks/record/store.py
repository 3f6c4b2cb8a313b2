"""One run in one SQLite file: `Records` reads it, `Store` writes all as it happens."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import Any

from llm_games.benchmarks.record import connection, editions, schema
from llm_games.benchmarks.record.connection import RunExists, RunLocked, Unwritable
from llm_games.benchmarks.record.lock import RunLock
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import TABLES, Plain
from llm_games.benchmarks.record.writer import Rows, Writer
from llm_games.questions import MISSING, Action
from llm_games.registry import rulebook
from llm_games.wrappers.clients.budget import Usage
from llm_games.wrappers.clients.chat import Chat
from llm_games.wrappers.clients.tokens import Lengths
from llm_games.wrappers.policy import Attempt

PART_BITS = 40
"""A part's prompts are numbered from its own number, moved by so many, until all are in order."""
PlannedEpisode = tuple[int, list[int], int | None]
"""Seed, seating and seed of the words, if these are not the plain ones."""
MOST_IDS = 20_000
"""Messages, and prompts, whose ids are kept in memory; others are looked up in the file."""


class Store(Records):
    """A run that this process writes, by `create` or `open`; it holds the run's lock.

    Rows are committed together: `durable` waits until all that was added before is on the disk,
    `hasten` does not wait, `flush` writes it at once, `whole` adds all or nothing. What is read is
    what was committed. Not for several threads.
    """

    def __init__(self, path: Path, writing: sqlite3.Connection, lock: RunLock) -> None:
        # Readers and the writer do not wait for each other; a commit returns when it is on disk.
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            writing.execute(f"PRAGMA {setting}")
        with connection.opened(path, "ro") as reading:
            super().__init__(path, reading)
        self._writer = Writer(path, writing, lock)
        self.flush, self.hasten = self._writer.flush, self._writer.hasten
        self.whole = self._writer.whole
        self.apart = self._writer.apart
        self._messages, self._prompts = _Ids(self, schema.MessageRow), _Ids(self, schema.PromptRow)
        self.part_numbers = count((self._prompts.last >> PART_BITS) + 1)

    @classmethod
    def create(
        cls,
        path: str | Path,
        title: str,
        config: Plain,
        games: Sequence[tuple[str, str, Plain, Sequence[str]]],
        seeds: Sequence[Sequence[int]],
        seatings: Sequence[Sequence[Sequence[int]]] | None = None,
        fixed_chances: Sequence[Sequence[Plain | None]] | None = None,
        sources: Sequence[Sequence[str | None]] | None = None,
        isomorphs: Sequence[Sequence[int | None]] | None = None,
    ) -> Store:
        """Start a new file with all its episodes pending.

        `config` is plain values without keys. A game is its label, name, parameters and players'
        names; for each, `seeds`, `seatings` (None: as listed), `fixed_chances` (None: none) and
        `sources` and `isomorphs`, see `EpisodeRow`, are by episode. Raises RunExists: none is
        overwritten; Unwritable: a folder lacks or is read-only.
        """
        path, lock, ids = Path(path), RunLock(), count(1)
        check_free(path)
        first: list[Any] = [schema.RunRow(title, editions.package(), config, timestamp())]
        about: Plain = dict.fromkeys(("reason", "started", "ended")) | {"status": "pending"}
        for i, (label, name, params, seats) in enumerate(games):
            game = schema.GameRow(i + 1, label, name, params, list(seats))
            first.append(game)
            edition = editions.recorded(rulebook(name, **params))
            about |= {"edition": edition}
            for number, seed in enumerate(seeds[i]):
                seating = list(seatings[i][number] if seatings else range(len(seats)))
                about["given"] = fixed_chances[i][number] if fixed_chances else None
                about["source"] = sources[i][number] if sources else None
                about["isomorph"] = isomorphs[i][number] if isomorphs else None
                first.append(schema.EpisodeRow(next(ids), game, number, seed, seating, **about))
        with connection.opened(path, "rwc") as writing:
            with connection.transaction(writing):
                if connection.pragma(writing, "application_id") == connection.APPLICATION:
                    raise RunExists(f"another process has just started a run in {path}")
                writing.execute(f"PRAGMA application_id = {connection.APPLICATION}")
                writing.execute(f"PRAGMA user_version = {schema.SCHEMA}")
                for table in TABLES.values():
                    writing.execute(table.sql)
                for row in first:
                    writing.execute(*TABLES[type(row)].insert(row))
                lock.take(writing)
            return cls(path, writing, lock)

    @classmethod
    def open(cls, path: str | Path) -> Store:
        """Open a run to go on with it; raises any `StoreError` but `RunExists`."""
        path, lock = Path(path), RunLock()
        with Records.open_readonly(path) as records:
            editions.check_editions(records)
        with connection.opened(path, "rw") as writing:
            with connection.transaction(writing):
                if holder := lock.take(writing):
                    raise RunLocked(
                        f"{path} is being written by {holder}; wait until it ends or stop it, "
                        "then resume"
                    )
                writing.execute("PRAGMA secure_delete = ON")
                # Which older files lack.
                newer = schema.FlightRow, schema.LengthsRow, schema.GuestRow, schema.PartRow
                for row in (*newer, schema.WaveRow, schema.LineRow):
                    writing.execute(TABLES[row].sql.replace("TABLE", "TABLE IF NOT EXISTS", 1))
                columns = writing.execute("SELECT name FROM pragma_table_info('episodes')")
                if ("isomorph",) not in columns.fetchall():
                    writing.execute("ALTER TABLE episodes ADD COLUMN isomorph INTEGER")
            return cls(path, writing, lock)

    def close(self) -> None:
        """Write what is left, give the lock back and close the file."""
        super().close()
        self._writer.close()

    # -- what happens is added here; `durable` brings it to the disk ---------------------------
    def add(self, row: Any, *episode: int, again: bool = False) -> None:
        """Add a row, where it belongs to an episode with its id; `again`: over one of its key."""
        self._writer.add(*TABLES[type(row)].insert(row, *episode, again=again))

    def add_written(self, row: type, columns: Iterable[Sequence[Any]]) -> None:
        """Add rows of an episode's table by what is written, its id first: of many at once."""
        statement = f"INSERT {TABLES[row].into}"
        for values in columns:
            self._writer.add(statement, values)

    def copy_to(self, send: Callable[[Rows], Awaitable[Any]]) -> None:
        """Have all that is written from now on sent to a copy as well, which `replay` it."""
        self._writer.copy = send

    def replay(self, rows: Rows) -> None:
        """Add what another store has sent."""
        for statement, values in rows:
            self._writer.add(statement, values)

    def begin(self, episode: int, started: str = "") -> None:
        how = "UPDATE episodes SET status = 'running', started = coalesce(started, ?) WHERE id = ?"
        self._writer.add(how, (started or timestamp(), episode))

    def end(self, episode: int, reason: str | None = None) -> None:
        values = ("done" if reason is None else "void", reason, timestamp(), episode)
        how = "UPDATE episodes SET status = ?, reason = ?, ended = ? WHERE id = ?"
        self._writer.add(how, values)

    def judge(
        self, episode: int, step_and_seat: tuple[int, int], number: int, attempt: Attempt
    ) -> None:
        """Note how a completion, asked for at a step and seat, was read."""
        read = (attempt.outcome, attempt.why, attempt.detail, ", ".join(attempt.leniencies))
        self._writer.add(
            "UPDATE attempts SET outcome = ?, why = ?, detail = ?, leniencies = ?, thoughts = ? "
            "WHERE episode = ? AND step = ? AND seat = ? AND number = ?",
            (*read, attempt.thoughts, episode, *step_and_seat, number),
        )

    def spend(self, model: str, seat: str, usage: Usage) -> None:
        """Note what a model has been asked for by a seat so far, all calls together."""
        spent: Plain = {k: v for k, v in usage.plain().items() if not k.startswith("unknown")}
        self.add(schema.SpentRow(model, seat, **spent), again=True)
        if usage.unknown:
            may = usage.unknown, usage.unknown_in, usage.unknown_out, str(usage.unknown_money)
            self.add(schema.FlightRow(model, seat, 0, *may), again=True)

    def strike(self, model: str, seat: str, number: int) -> None:
        """Note that a call is over, see `FlightRow`."""
        condition = "WHERE (model, seat, number) = (?, ?, ?)"
        self._writer.add(f"DELETE FROM flights {condition}", (model, seat, number))
        if number < 0:
            self._writer.add("DELETE FROM lines WHERE number = ?", (number,))

    def strike_all(self) -> None:
        """Note that all calls of those who played the run before are over, but for batches."""
        self._writer.add("DELETE FROM flights WHERE number > 0", ())

    def forget(self, pseudonym: str) -> None:
        """Put `FORGOTTEN` in place of a guest's pseudonym, and leave no trace of it in the file."""
        how = "UPDATE guests SET pseudonym = ? WHERE pseudonym = ?"
        self._writer.add(how, (schema.FORGOTTEN, pseudonym))

    def learn(self, model: str, lengths: Lengths) -> None:
        """Note what is known of a model's replies."""
        self.add(schema.LengthsRow(model, **vars(lengths)), again=True)

    def drop(self, row: type, episode: int) -> None:
        """Take an episode's rows of one table away."""
        self._writer.add(f"DELETE FROM {TABLES[row].name} WHERE episode = ?", (episode,))

    def forget_parts(self) -> None:
        self._writer.add("DELETE FROM parts", ())

    def note_prices(self, prices: Plain) -> None:
        """Note in the run's configuration what its models cost: also what no file said."""
        if prices != self.config.get("prices"):
            self.config = self.config | {"prices": prices}
            row = schema.RunRow(self.title, self.package, self.config, self.created)
            self.add(row, again=True)

    def prolong(self, config: Plain, games: Mapping[str, Sequence[PlannedEpisode]]) -> None:
        """Add the episodes that the file lacks of each label's, in order."""
        had = self.episodes()
        ids, about = count(max(row.id for row in had) + 1), {row.game.label: row for row in had}
        self.config = self.config | config
        row = schema.RunRow(self.title, self.package, self.config, self.created)
        self.add(row, again=True)
        for label, planned in games.items():
            like, first = about[label], sum(row.game.label == label for row in had)
            new: Plain = dict.fromkeys(("reason", "started", "ended")) | {"status": "pending"}
            new |= {"given": like.given, "edition": like.edition}
            for number, (seed, seating, isomorph) in enumerate(planned[first:], first):
                new["isomorph"] = isomorph
                self.add(schema.EpisodeRow(next(ids), like.game, number, seed, seating, **new))
        self.flush()

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> int:
        """Return the id of a prompt, adding what is new of it, which is all it costs."""
        new: list[Chat] = []
        prompt = 0
        for chat in Chat.of(messages).nodes():
            if prompt_id := self._prompts.find(chat.digest):
                prompt = prompt_id
                break
            new.append(chat)
        for chat in reversed(new):
            assert chat.last is not None
            role, content = chat.last["role"], chat.last["content"]
            name = schema.digest(f"{role}\0{content}")
            message = self._messages.of(name, (name,), (role, content))
            prompt = self._prompts.of(chat.digest, (prompt, message))
        return prompt

    def put_in_order(self) -> None:
        """Number prompts and messages by the episode, step and seat where they first come.

        Whoever plays a run, and in whatever order, these are the same. What no row needs is gone.
        """
        self.flush()
        numbers, rows = numbered(self._rows(_USES), self._united())
        messages = {old: new for new, old in enumerate(dict.fromkeys(m for *_, m in rows), 1)}
        prompts = ((prompt, parent, messages[m]) for prompt, parent, m in rows)
        overflows = []
        for *key, content in self._rows(_OVERFLOWS):
            about = json.loads(content)
            overflows.append((json.dumps(about | {"prompt": numbers[about["prompt"]]}), *key))

        def work(database: sqlite3.Connection) -> None:
            with connection.transaction(database):
                for kind, new in (("prompt", numbers), ("message", messages)):
                    database.execute(f"CREATE TEMP TABLE new_{kind} (old INTEGER PRIMARY KEY, new)")
                    database.executemany(f"INSERT INTO new_{kind} VALUES (?, ?)", new.items())
                for statement in _RENUMBER:
                    database.execute(statement)
                database.executemany(f"INSERT {TABLES[schema.PromptRow].into}", prompts)
                database.executemany(_NEW_OVERFLOW, overflows)

        self._writer.apart(work).result()
        self._messages, self._prompts = _Ids(self, schema.MessageRow), _Ids(self, schema.PromptRow)

    def _united(self) -> tuple[list[tuple[int, int, int]], dict[int, int]]:
        """Prompts by descending id, and of those that are there twice the first by the others.

        Each worker has its own of those that all share, which begin alike, see `Part`.
        """
        rows, first, firsts = self._rows(_PARENTS), dict[int, int](), dict[tuple[int, int], int]()
        united = []
        for prompt, parent, message in rows:
            if parent > 0 and parent not in first:
                united.append((prompt, parent, message))
                continue
            above = first.get(parent, 0)
            same = firsts.get((above, message))
            if same is None and above:
                same = next((p for (p,) in self._rows(_SAME, above, message)), None)
            if same is None:
                united.append((prompt, above, message))
                firsts[above, message] = prompt
            else:
                first[prompt] = same
        return united[::-1], first

    async def durable(self) -> None:
        """Wait until all that was added before is on the disk; raises what `Writer.flush` does."""
        last = self._messages.last, self._prompts.last
        await self._writer.durable()
        self._messages.forget(last[0])
        self._prompts.forget(last[1])


_OVERFLOWS = f"""
SELECT episode, step, seat, number, content FROM notes WHERE kind = '{schema.OVERFLOW}'
"""
_USES = f"""
SELECT prompt FROM (
  SELECT episode, step, seat, number, CAST(prompt AS INTEGER) AS prompt FROM attempts UNION ALL
  SELECT episode, step, seat, content ->> 'call' - 0.5, content ->> 'prompt' FROM notes
  WHERE kind = '{schema.OVERFLOW}'
) ORDER BY episode, step, seat, number
"""
_PARENTS = "SELECT id, parent, message FROM prompts ORDER BY id"  # before what grew from them
_SAME = "SELECT id FROM prompts WHERE (parent, message) = (?, ?)"
_RENUMBER = (
    "UPDATE attempts SET prompt = (SELECT new FROM new_prompt WHERE old = CAST(prompt AS INTEGER))",
    "DELETE FROM prompts",
    "CREATE TEMP TABLE kept AS SELECT new, hash, role, content FROM messages "
    "JOIN new_message ON old = id",
    "DELETE FROM messages",
    "INSERT INTO messages (id, hash, role, content) SELECT * FROM kept ORDER BY new",
    *(f"DROP TABLE {name}" for name in ("kept", "new_prompt", "new_message")),
)
_NEW_OVERFLOW = "UPDATE notes SET content = ? WHERE (episode, step, seat, number) = (?, ?, ?, ?)"


def numbered(
    uses: Iterable[tuple[int]], united: tuple[list[tuple[int, int, int]], dict[int, int]]
) -> tuple[dict[int, int], list[tuple[int, int, int]]]:
    """Return new ids of prompts by old, and rows of `PromptRow` with them, but for the messages."""
    prompts, same = united
    first: dict[int, int] = {}
    for rank, (prompt,) in enumerate(uses):
        first.setdefault(same.get(prompt, prompt), rank)
    grown = []
    for prompt, parent, message in prompts:
        if prompt in first:
            grown.append((first[prompt], prompt, parent, message))
            first[parent] = min(first.get(parent, first[prompt]), first[prompt])
    grown.sort()
    numbers = {0: 0} | {prompt: new for new, (_, prompt, *_) in enumerate(grown, 1)}
    rows = [(numbers[p], numbers[parent], m) for _, p, parent, m in grown]
    return numbers | {old: numbers[p] for old, p in same.items() if p in numbers}, rows


class _Ids:
    """Ids of rows that are named by what they hold: of those not yet written, and many others."""

    def __init__(self, store: Store, row: type) -> None:
        self._store, self._row, table = store, row, TABLES[row]
        marks = ", ".join("?" for _ in table.unique.split(","))
        self._query = f"SELECT id FROM {table.name} WHERE ({table.unique}) = ({marks})"
        self.cached: dict[bytes, int] = {}  # what was used last stands last
        self.last: int = store._rows(f"SELECT coalesce(max(id), 0) FROM {table.name}")[0][0]
        self._all = not self.last  # whether all ids are known: nothing is to be looked up

    def find(self, name: bytes) -> int | None:
        row_id = self.cached.pop(name, None)
        if row_id is not None:
            self.cached[name] = row_id
        return row_id

    def of(self, name: bytes, unique: Sequence[Any], extra: Sequence[Any] = ()) -> int:
        row_id = self.find(name)
        if row_id is None:
            matches = [] if self._all else self._store._rows(self._query, *unique)
            if not matches:
                self.last += 1
                self._store.add(self._row(self.last, *unique, *extra))
            row_id = self.cached[name] = matches[0][0] if matches else self.last
        return row_id

    def forget(self, last: int) -> None:
        """Drop ids up to `last`, whose rows are in the file, that were not used for longest."""
        over = max(0, len(self.cached) - MOST_IDS)
        for name in list(islice(self.cached, over)):
            if self.cached[name] <= last:
                del self.cached[name]
                self._all = False


def check_free(path: Path) -> None:
    """Check that a new run can be recorded in a file; raises `RunExists` or `Unwritable`."""
    if path.is_dir() or (path.exists() and path.stat().st_size > 0):
        raise RunExists(
            f"{path} exists already and is left as it is; "
            f"choose another file with --db, or finish that run: llm-games resume {path}"
        )
    if path.name == ":memory:":
        raise Unwritable(f"a run is recorded in a file, which {path} is not; choose another --db")
    if not path.parent.is_dir():
        raise Unwritable(f"there is no folder {path.parent}; make it, or choose another --db")


def plain_action(action: Action) -> int | list[int] | str | None:
    """Return an action as JSON holds it: a plan as a list, a missing one as None."""
    if isinstance(action, tuple):
        return [int(share) for share in action]
    if isinstance(action, str):
        return action
    return None if action == MISSING else int(action)


def timestamp() -> str:
    """Return the time as the file holds it: UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
