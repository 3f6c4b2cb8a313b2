"""A run as it was recorded: the only reader of its file."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from operator import add
from pathlib import Path
from sys import intern
from typing import Any, Self, TypeVar

from llm_games.asides import GRADED
from llm_games.benchmarks.record import connection, lock, schema
from llm_games.benchmarks.record.schema import TABLES, Plain
from llm_games.questions import MISSING
from llm_games.wrappers.clients.budget import EMPTY, Usage, usage_of
from llm_games.wrappers.clients.chat import Chat
from llm_games.wrappers.clients.tokens import Lengths

R = TypeVar("R")
PARTS: dict[str, type[Any]] = {  # what belongs to an episode, by the names of its tables
    "steps": schema.StepRow,
    "decisions": schema.DecisionRow,
    "attempts": schema.AttemptRow,
    "notes": schema.NoteRow,
}


Call = namedtuple(
    "Call", "step seat kind outcome leniencies left_out tokens_in tokens_out latency model"
)
"""What is counted of a completion, see `AttemptRow`; `left_out` as the file has it."""


class Records:
    """A run as it was recorded, see `RunRow`. Use as a context manager, or `close` it."""

    def __init__(self, path: str | Path, reading: sqlite3.Connection) -> None:
        self.path, self._database = Path(path), reading
        self._column_cache: dict[str, list[str]] = {}  # columns by table
        self._fitting = set[tuple[Any, ...]]()  # types of values of calls that were right
        runs = self._read(schema.RunRow)
        if len(runs) != 1 or not isinstance(runs[0].config, dict):
            raise self.damaged("there is not one description of the run")
        [run] = runs
        self.title, self.package = run.title, run.package
        self.created, self.config = run.created, run.config

    @classmethod
    def open_readonly(cls, path: str | Path, *, part: bool = False) -> Records:
        """Open a run to read, also one that is going on, or a `part`: one of its workers' files.

        Raises NotARun, NewerSchema.
        """
        connection.check_file(Path(path))
        try:
            with connection.opened(path, "ro") as reading:
                connection.check_schema(path, reading)
        except connection.Unwritable:  # no place for the files that readers and the writer share
            if Path(f"{path}-wal").exists():
                raise
            with connection.opened(path, "ro", "&immutable=1") as reading:
                connection.check_schema(path, reading)
        records = Records(path, reading)
        if "run" in records.config and not part:
            records.close()
            raise connection.NotARun(
                f"{path} is what a worker, or half a merge, has left of a run: name the run's own "
                "file, RUN.db beside the folder RUN.db.parts"
            )
        return records

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def guests(self) -> list[schema.GuestRow]:
        """Return who took seats by links."""
        return self._read(schema.GuestRow)

    def games(self) -> list[schema.GameRow]:
        return self._read(schema.GameRow)

    def episodes(self, ids: Sequence[int] | None = None) -> list[schema.EpisodeRow]:
        """Return all episodes, or those of some ids, game by game."""
        games = {game.id: game for game in self.games()}

        def game(number: int) -> schema.GameRow:
            if number not in games:
                lost = f"an episode belongs to no game ({number})"
                raise connection.NotARun(f"{self.path}: {lost}; the file is damaged")
            return games[number]

        # Equal values are one object: a run may have many episodes.
        loads: dict[str, Callable[[Any], Any]] = dict.fromkeys(
            ("seating", "given", "edition"), cache(json.loads)
        )
        condition = (
            () if ids is None else ("WHERE id IN (SELECT value FROM json_each(?))", json.dumps(ids))
        )
        loads |= {"game": game, "status": intern}
        episodes = self._read(schema.EpisodeRow, *condition, loads=loads)
        for row in episodes:
            if sorted(row.seating) != [*range(len(row.game.seats))]:
                raise self.damaged(
                    f"the seating of {row.game.label}, episode {row.number}, is not one of its "
                    f"{len(row.game.seats)} players: {str(row.seating)[:60]}"
                )
        return episodes

    def episode_ids(self, game: int) -> list[int]:
        """Return the ids of the episodes of a game, by its own id."""
        query = "SELECT id FROM episodes WHERE game = ? ORDER BY id"
        return [number for (number,) in self._rows(query, game)]

    def lengths(self) -> dict[int, int]:
        """Return how many steps episodes have that are being played, and 0 of those without any."""
        count = "(SELECT count(*) FROM steps WHERE episode = id)"
        none = "NOT EXISTS (SELECT * FROM steps WHERE episode = id)"
        query = f"SELECT id, {count} FROM episodes WHERE status = 'running' OR {none}"
        return dict(self._rows(query))

    def steps(self, episode: int) -> list[schema.StepRow]:
        alike = dict.fromkeys(("asked", "finished"), cache(json.loads))
        thin_steps = self._read(schema.StepRow, "WHERE episode = ?", episode, loads=alike)
        try:
            return [row.full() for row in thin_steps]
        except (ValueError, TypeError, LookupError, StopIteration):
            raise self.damaged(f"the steps of episode {episode} cannot be read") from None

    def payoffs(self) -> dict[int, list[float]]:
        """Return by episode what its seats were paid in all its steps."""
        payoffs: dict[int, list[float]] = {}
        query = "SELECT episode, rewards FROM steps ORDER BY episode, step"
        for episode, text in self._each(query):
            rewards = schema.full_list(json.loads(text))
            total = payoffs.get(episode, [0.0] * len(rewards))
            payoffs[episode] = [*map(add, total, rewards)]
        return payoffs

    def written(self, episode: int) -> dict[int, dict[str, str]]:
        """Return the columns of an episode's steps as they are written, by step and name."""
        names = list(TABLES[schema.StepRow].types)
        step_rows = self._rows(f"SELECT {', '.join(names)} FROM steps WHERE episode = ?", episode)
        return {row[0]: dict(zip(names, row, strict=True)) for row in step_rows}

    def decisions(self, episode: int) -> list[schema.DecisionRow]:
        """Return the decisions of an episode by step and seat."""
        return self._read(schema.DecisionRow, "WHERE episode = ?", episode)

    def decided(self, episode: int) -> list[tuple[int, int, int]]:
        """Seats of an episode, how often each moved, in a branch anew, and the rules filled in."""
        has_phase = "phase" in self._columns(TABLES[schema.DecisionRow])
        moves = f"AND phase != '{schema.TALK}'" * has_phase
        count = f"SELECT seat, count(*), sum(broke) FROM decisions WHERE {self._asked_here()}"
        return self._rows(f"{count} AND episode = ? {moves} GROUP BY seat", episode)

    def filled(self, episode: int) -> list[tuple[int, int]]:
        """Return step and seat of an episode's decisions that the rules filled in."""
        query = "SELECT step, seat FROM decisions WHERE episode = ? AND broke"
        return self._rows(query, episode)

    def attempts(self, episode: int, step: int | None = None) -> list[schema.AttemptRow]:
        """Return the completions of an episode, or of one of its steps, by step and seat."""
        condition = "WHERE episode = ?1 AND (?2 IS NULL OR step = ?2)"
        return self._read(schema.AttemptRow, condition, episode, step)

    def calls(self, episode: int) -> list[Call]:
        """Return what is counted of the completions of an episode, in the same order."""
        if not (there := self._columns(TABLES[schema.AttemptRow])):  # as in older files
            return []
        of_older = {"kind": "'move'", "left_out": "NULL", "leniencies": "''"}
        names = ", ".join(name if name in there else of_older[name] for name in Call._fields)
        query = f"SELECT {names} FROM attempts WHERE episode = ? ORDER BY step, seat, number"
        calls = list(map(Call._make, self._rows(query, episode)))
        kinds = {*zip(*(map(type, column) for column in zip(*calls, strict=True)), strict=True)}
        if not kinds <= self._fitting or any(call.left_out for call in calls):
            self.attempts(episode)  # which checks them
            self._fitting |= kinds
        return calls

    def notes(self, episode: int) -> list[schema.NoteRow]:
        """Return what players of an episode wrote down, by step and seat."""
        return self._read(schema.NoteRow, "WHERE episode = ?", episode)

    def table(self, name: str) -> Iterator[tuple[schema.EpisodeRow, Plain]]:
        """Yield rows of a table of episodes', each with its episode, `prompt`, `player`."""
        for episode in self.episodes():
            if name == "episodes":
                yield episode, vars(episode) | {"game": episode.game.game, "players": episode.seats}
                continue
            chats = self.chats(episode.id) if name == "attempts" else {}
            played = self._played(episode) if name == "decisions" else {}
            for row in getattr(self, name)(episode.id):
                fields = dict(vars(row))
                if "seat" in fields:
                    fields["player"] = episode.seats[row.seat]
                if name == "decisions":
                    fields["action"] = row.readable
                    fields["played"] = played.get(row.step, {}).get(row.seat)
                if "prompt" in fields:
                    listed, prompt = isinstance(row.prompt, list), row.prompt
                    fields["prompt"] = self.messages(prompt) if listed else list(chats[prompt])
                yield episode, fields

    def _played(self, episode: schema.EpisodeRow) -> dict[int, dict[int, Any]]:
        """Return what counted in the steps of a game, by step and seat: no speech."""
        rules, moves = episode.rules().core, {}
        for step in self.steps(episode.id):
            if not step.talk:
                actions = rules.effective(step.record).tolist()
                moves[step.step] = {s: a for s, a in enumerate(actions) if a != MISSING}
        return moves

    def messages(self, prompt: Any) -> list[dict[str, str]]:
        """Return the messages of an `AttemptRow.prompt`, each ``{"role": …, "content": …}``."""
        listed = isinstance(prompt, list)
        pairs = self._rows(_LISTED, json.dumps(prompt)) if listed else self._rows(_CHAINED, prompt)
        return [{"role": role or "", "content": text or ""} for role, text in pairs]

    def cells(self, kind: type, episode: int) -> list[tuple[Any, ...]]:
        """Return the columns of an episode's rows of a kind as they are written, in their order."""
        names, table = ", ".join(TABLES[kind].types), TABLES[kind]
        query = f"SELECT {names} FROM {table.name} WHERE episode = ? ORDER BY {table.key}"
        return self._rows(query, episode)

    def asked(self) -> set[int]:
        """Return the episodes of which there are completions or notes."""
        query = "SELECT DISTINCT episode FROM attempts UNION SELECT DISTINCT episode FROM notes"
        return {episode for (episode,) in self._rows(query)}

    def parts(self) -> set[str]:
        """Return the names of workers' files that were taken over."""
        return {row.name for row in self._read(schema.PartRow)}

    # -- what came since a reader was here last, of many episodes at a time: see `_SINCE` ----------
    def decided_since(self, first: Mapping[int, int], steps: int) -> list[tuple[Any, ...]]:
        """Episode, step, seat, outcome, broke, reward, phase of `steps` steps from `first` on."""
        has_phase = "phase" in self._columns(TABLES[schema.DecisionRow])
        names = f"step, seat, outcome, broke, reward, {'phase' if has_phase else repr('')}"
        return self._rows(_SINCE.format(names, "decisions", ""), json.dumps(first), steps)

    def happened_since(self, first: Mapping[int, int], steps: int) -> list[tuple[int, int, Plain]]:
        """Return episode, step and record of the same steps."""
        query = _SINCE.format("step, record, rewards", "steps", "")
        step_rows = self._rows(query, json.dumps(first), steps)
        return [
            (episode, step, schema.full_record(json.loads(record), thin=rewards.startswith("{")))
            for episode, step, record, rewards in step_rows
        ]

    def asked_since(self, first: Mapping[int, int], steps: int) -> list[tuple[Any, ...]]:
        """Episode, step, seat, calls, tokens in and out, seconds, how the last was read."""
        sums = "sum(tokens_in), sum(tokens_out), sum(latency), outcome"  # that of the last number
        names = f"step, seat, max(number) + 1, {sums}"
        last = "GROUP BY episode, step, seat"
        return self._rows(_SINCE.format(names, "attempts", last), json.dumps(first), steps)

    def replies_since(self, first: Mapping[int, int], steps: int) -> list[tuple[Any, ...]]:
        """Return episode, step, seat, text and thoughts of each completion of the same steps."""
        has_thoughts = "thoughts" in self._columns(TABLES[schema.AttemptRow])
        names = f"step, seat, text, {'thoughts' if has_thoughts else repr('')}"
        return self._rows(_SINCE.format(names, "attempts", ""), json.dumps(first), steps)

    def places_saying(self, terms: Sequence[str], first: Mapping[int, int]) -> list[list[int]]:
        """Episodes, steps, seats where replies or thoughts from `first` on hold all terms."""
        has_thoughts = "thoughts" in self._columns(TABLES[schema.AttemptRow])
        searched = ("text", "thoughts") if has_thoughts else ("text",)
        holds = " OR ".join(f"{name} LIKE ? ESCAPE '!'" for name in searched)
        condition = "".join(f"AND ({holds})" for _ in terms)
        like = ["%{}%".format(re.sub("([%_!])", r"!\1", term)) for term in terms for _ in searched]
        query = _SINCE.format("step, seat", "attempts", condition)
        # One row, since each that SQLite returns waits for a thread that has Python's lock.
        lists = ", ".join(f"json_group_array({name})" for name in ("episode", "step", "seat"))
        [columns] = self._rows(f"SELECT {lists} FROM ({query})", json.dumps(first), 2**62, *like)
        return [json.loads(column) for column in columns]

    def glimpses(
        self, places: Sequence[tuple[int, int, int]], limit: int
    ) -> dict[tuple[int, int, int], Plain]:
        """Action and first `limit` characters of the last reply ("" without), by decision.

        Replies to graded questions, which come after a move, do not count.
        """
        has_kind = "kind" in self._columns(TABLES[schema.AttemptRow])
        last = f"AND substr(kind, -1) != '{GRADED}' " * has_kind + "ORDER BY number DESC LIMIT 1"
        glimpses = {}
        for decision in places:
            actions = self._rows(
                "SELECT action FROM decisions WHERE (episode, step, seat) = (?, ?, ?)", *decision
            )
            texts = self._rows(
                "SELECT substr(CAST(text AS BLOB), 1, 4 * ?4) FROM attempts "  # a NUL ends no bytes
                f"WHERE (episode, step, seat) = (?1, ?2, ?3) {last}",
                *decision,
                limit,
            )
            action = json.loads(actions[0][0]) if actions and actions[0][0] is not None else None
            glimpses[decision] = {
                "action": action,
                "text": _begun(texts[0][0], limit) if texts else "",
            }
        return glimpses

    def chats(self, episode: int) -> dict[Any, Chat]:
        """An episode's prompts, with all these grew from, by `AttemptRow.prompt`; not schema 2."""
        chats: dict[Any, Chat] = {}
        if not self._columns(TABLES[schema.PromptRow]):
            return chats
        for prompt, parent, role, content in self._each(_PROMPTS, episode):
            chats[prompt] = chats.get(parent, Chat()).plus(role or "", content or "")
        return chats

    def pool(self) -> Iterator[schema.MessageRow]:
        names = self._columns(TABLES[schema.MessageRow])
        query = f"SELECT {', '.join(names)} FROM messages ORDER BY id"
        return (schema.MessageRow(*row) for row in self._each(query))

    def holder(self) -> str | None:
        """Return which process plays the run now, in words; None if nobody does."""
        with connection.translated(self.path):
            return lock.holder(self._database)

    def counts(self, game: int) -> tuple[int, int]:
        """Return a game's decisions and rule breaks so far."""
        mine = "WHERE episode IN (SELECT id FROM episodes WHERE game = ?)"
        [counts] = self._rows(f"SELECT count(*), ifnull(sum(broke), 0) FROM decisions {mine}", game)
        return counts

    def last_step(self, game: int) -> tuple[int, int, list[Any]] | None:
        """Return episode number, step and actions by seat of a game's last step of all."""
        latest = self._rows(
            "SELECT e.id, e.number, max(s.step) FROM episodes e JOIN steps s ON s.episode = e.id "
            "WHERE e.game = ? GROUP BY e.id ORDER BY e.status = 'running' DESC, e.number DESC "
            "LIMIT 1",
            game,
        )
        for episode, number, step in latest:
            moves = self._read(schema.DecisionRow, "WHERE (episode, step) = (?, ?)", episode, step)
            return number, step, [row.action for row in moves]
        return None

    def usage(self) -> Plain:
        """Return how many completions were read with each outcome, and the tokens in all."""
        counted = f"FROM attempts WHERE {self._asked_here()}"
        outcomes = self._rows(f"SELECT outcome, count(*) {counted} GROUP BY outcome")
        [total] = self._rows(f"SELECT count(*), total(tokens_in), total(tokens_out) {counted}")
        used = dict(zip(("calls", "tokens_in", "tokens_out"), map(int, total), strict=True))
        return used | {"outcomes": {name: n for name, n in outcomes if name is not None}}

    @property
    def branch_point(self) -> Plain | None:
        """Where a branch begins, see `BranchPoint`; None of a run that is none."""
        points = (game.get("branch") for game in self.config.get("games", ()))
        return next(filter(None, points), None)

    def _asked_here(self) -> str:
        """Return the SQL condition of what a branch did not take from its origin."""
        if (point := self.branch_point) is None:
            return "TRUE"
        step, free = int(point["step"]), ", ".join(str(int(seat)) for seat in point["free"])
        return f"(step > {step} OR (step = {step} AND seat IN ({free})))"

    def counted(self) -> dict[str, int]:
        """Return the tokens that servers counted, by seat as `spent` has them."""
        tokens_by_seat: dict[str, int] = {}
        query = (
            "SELECT label, seating, attempts.seat, total(tokens_in + tokens_out) FROM attempts "
            "JOIN episodes ON episodes.id = episode JOIN games ON games.id = episodes.game "
            f"WHERE {self._asked_here()} GROUP BY label, seating, attempts.seat"
        )
        for label, seating, seat, tokens in self._rows(query):
            name = f"{label}/player_{json.loads(seating)[seat]}"
            tokens_by_seat[name] = tokens_by_seat.get(name, 0) + int(tokens)
        return tokens_by_seat

    def spent(self, ended: bool | None = None) -> dict[tuple[str, str], Usage]:
        """What calls came to, by model and seat; `ended`: those in flight are `Usage.unknown`.

        By default that is so where nobody plays the run. Who takes it over has batches yet to book.
        """
        batches = ended is None
        usages = defaultdict[tuple[str, str], Usage](Usage)
        for row in self._read(schema.SpentRow):
            plain = dict(vars(row))
            pair = plain.pop("model"), plain.pop("seat")
            usages[pair] = usage_of(plain | {"money": self._money(row.money)})
        flights = self._read(schema.FlightRow)
        if ended is None:
            ended = any(row.number for row in flights) and self.holder() is None
        for flight in flights:
            money = self._money(flight.money)
            may = flight.calls, flight.tokens_in, flight.tokens_out, money
            past = not flight.number
            if past or (ended and (batches or flight.number > 0)):
                failed = 0 if past else flight.calls  # of those that are past they are booked
                usages[flight.model, flight.seat].add(Usage(failed, failed, *EMPTY, *may))
        return dict(usages)

    def in_flight(self) -> dict[tuple[str, str], int]:
        """Return how many calls were sent and not answered yet, by model and seat."""
        counts = defaultdict[tuple[str, str], int](int)
        for row in self._read(schema.FlightRow):
            counts[row.model, row.seat] += row.calls if row.number else 0
        return {pair: count for pair, count in counts.items() if count}

    def _money(self, text: str) -> Decimal:
        """Read what was spent, or raise that the file is damaged."""
        try:
            money = Decimal(text)
        except ArithmeticError:
            money = Decimal("NaN")
        if not (money.is_finite() and 0 <= money < 10**18):
            raise self.damaged(f"{text[:60]!r} is no money that was spent")
        return money

    def waves(self) -> list[schema.WaveRow]:
        return self._read(schema.WaveRow)

    def lines(self) -> list[schema.LineRow]:
        return self._read(schema.LineRow)

    def learnt(self) -> dict[str, Lengths]:
        lengths = [dict(vars(row)) for row in self._read(schema.LengthsRow)]
        return {row.pop("model"): Lengths(**row) for row in lengths}

    def limits(self) -> list[schema.LimitRow]:
        """Return how many calls at a time servers have borne, start by start."""
        return self._read(schema.LimitRow)

    def _read(
        self,
        kind: type[R],
        condition: str = "",
        *values: Any,
        loads: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> list[R]:
        """Return rows of a class in the order of their key; `loads` win over the class's own."""
        table = TABLES[kind]
        if not (names := self._columns(table)):  # as in older files
            return []
        query = f"SELECT {', '.join(names)} FROM {table.name} {condition} ORDER BY {table.key}"
        every = {**table.loads, **(loads or {})}
        loading = [(name, load) for name, load in every.items() if name in names]
        checks = [(name, fits) for name, fits in table.checks if name in names]
        records = []
        for values_of_row in self._each(query, *values):
            row = dict(zip(names, values_of_row, strict=True))
            name, value, fault = "", None, "is not JSON"
            try:
                for name, load in loading:
                    value = row[name]
                    row[name] = value if value is None else load(value)
                fault = "is of another kind"
                for name, fits in checks:
                    value = row[name]
                    if not fits(value):
                        raise ValueError
            except (ValueError, TypeError, RecursionError):
                first = ", ".join(f"{key} {str(row[key])[:20]}" for key in names[:3])
                raise self.damaged(
                    f"{name} in a row of {table.name} ({first}) {fault}: {str(value)[:60]!r}"
                ) from None
            records.append(kind(**row))
        return records

    def damaged(self, fault: str) -> connection.NotARun:
        """Return the error that says what is wrong with the file."""
        lost = f"{fault}; the file is damaged, restore it from a copy"
        return connection.NotARun(f"{self.path}: {lost}")

    @property
    def has_every_column(self) -> bool:
        """Whether all is there that today's episodes have, unlike in older files."""
        tables = [TABLES[row] for row in PARTS.values()]
        return all(self._columns(table) == [*table.types] for table in tables)

    def _columns(self, table: schema.Relation) -> list[str]:
        """Return the columns of a table that this file has."""
        if table.name not in self._column_cache:
            info = self._rows("SELECT name FROM pragma_table_info(?)", table.name)
            there = {name for (name,) in info}
            self._column_cache[table.name] = [name for name in table.types if name in there]
        return self._column_cache[table.name]

    def _each(self, query: str, *values: Any) -> Iterator[Any]:
        with connection.translated(self.path):
            yield from self._database.execute(query, values)

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with connection.translated(self.path):
            return self._database.execute(query, values).fetchall()


def _begun(text: bytes, limit: int) -> str:
    return text.decode("utf-8", "ignore")[:limit]


_SINCE = """
SELECT CAST(at.key AS INTEGER) AS episode, {} FROM json_each(?1) AS at CROSS JOIN {} AS found
WHERE episode = CAST(at.key AS INTEGER) AND step >= at.value AND step < at.value + ?2 {}
"""
"""In the order of the episodes that are given, then of their keys."""


_CHAINED = """
WITH RECURSIVE chain (id, parent, message) AS (
  SELECT id, parent, message FROM prompts WHERE id = ?
  UNION ALL
  SELECT p.id, p.parent, p.message FROM chain c JOIN prompts p ON p.id = c.parent AND p.id < c.id
)
SELECT role, content FROM chain LEFT JOIN messages m ON m.id = message ORDER BY chain.id
"""
_PROMPTS = """
WITH RECURSIVE chain (id, parent, message) AS (
  SELECT p.id, p.parent, p.message FROM attempts a JOIN prompts p ON p.id = a.prompt
  WHERE a.episode = ?
  UNION
  SELECT p.id, p.parent, p.message FROM chain c JOIN prompts p ON p.id = c.parent AND p.id < c.id
)
SELECT chain.id, parent, role, content FROM chain LEFT JOIN messages m ON m.id = message
ORDER BY chain.id
"""
_LISTED = """
SELECT role, content FROM json_each(?) LEFT JOIN messages m ON m.id = value ORDER BY key
"""
