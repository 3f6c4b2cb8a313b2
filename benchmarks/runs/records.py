"""A run as it was recorded: the only reader of its file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from sys import intern
from typing import Any, Self, TypeVar

from llm_games.benchmarks.runs import database, lock, rows
from llm_games.benchmarks.runs.rows import TABLES, Plain
from llm_games.wrappers.chat import Chat
from llm_games.wrappers.clients.budget import Usage

R = TypeVar("R")
PARTS: dict[str, type[Any]] = {  # what belongs to an episode, by the names of its tables
    "steps": rows.StepRow,
    "decisions": rows.DecisionRow,
    "attempts": rows.AttemptRow,
    "notes": rows.NoteRow,
}


class Records:
    """A run as it was recorded, see `RunRow`. Use as a context manager, or `close` it."""

    def __init__(self, path: str | Path, reading: sqlite3.Connection) -> None:
        self.path, self._database = Path(path), reading
        self._known: dict[str, list[str]] = {}  # columns by table
        found = self._read(rows.RunRow)
        if len(found) != 1 or not isinstance(found[0].config, dict):
            lost = f"{path}: there is not one description of the run"
            raise database.NotARun(f"{lost}; the file is damaged, restore it from a copy")
        [run] = found
        self.title, self.package = run.title, run.package
        self.created, self.config = run.created, run.config

    @classmethod
    def open_readonly(cls, path: str | Path) -> Records:
        """Open a run to read, also one that is going on or lies in a read-only folder.

        Raises:
            NotARun, NewerSchema: see there.
        """
        database.check_file(Path(path))
        try:
            with database.opened(path, "ro") as reading:
                database.check_schema(path, reading)
        except database.Unwritable:  # no place for the files that readers and the writer share
            if Path(f"{path}-wal").exists():
                raise
            with database.opened(path, "ro", "&immutable=1") as reading:
                database.check_schema(path, reading)
        return Records(path, reading)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def games(self) -> list[rows.GameRow]:
        """Return the run's games in the order of the configuration."""
        return self._read(rows.GameRow)

    def episodes(self) -> list[rows.EpisodeRow]:
        """Return all episodes, game by game."""
        games = {game.id: game for game in self.games()}

        def game(number: int) -> rows.GameRow:
            if number not in games:
                lost = f"an episode belongs to no game ({number})"
                raise database.NotARun(f"{self.path}: {lost}; the file is damaged")
            return games[number]

        # Equal values are one object: a run may have many episodes.
        loads = dict.fromkeys(("seating", "given", "edition"), cache(json.loads))
        return self._read(rows.EpisodeRow, loads={"game": game, "status": intern, **loads})

    def lengths(self) -> dict[int, int]:
        """Return how many steps episodes have that are being played, and 0 of those without any."""
        count = "(SELECT count(*) FROM steps WHERE episode = id)"
        none = "NOT EXISTS (SELECT * FROM steps WHERE episode = id)"
        return dict(
            self._rows(f"SELECT id, {count} FROM episodes WHERE status = 'running' OR {none}")
        )

    def steps(self, episode: int) -> list[rows.StepRow]:
        """Return the steps of an episode in order."""
        return [row.full() for row in self._read(rows.StepRow, "WHERE episode = ?", episode)]

    def written(self, episode: int) -> dict[int, dict[str, str]]:
        """Return the columns of an episode's steps as they are written, by step and name."""
        names = list(TABLES[rows.StepRow].types)
        found = self._rows(f"SELECT {', '.join(names)} FROM steps WHERE episode = ?", episode)
        return {row[0]: dict(zip(names, row, strict=True)) for row in found}

    def decisions(self, episode: int) -> list[rows.DecisionRow]:
        """Return the decisions of an episode by step and seat."""
        return self._read(rows.DecisionRow, "WHERE episode = ?", episode)

    def decided(self, episode: int) -> list[tuple[int, int, int]]:
        """Return seats of an episode, how often each decided, and how often the rules filled in."""
        count = "SELECT seat, count(*), sum(broke) FROM decisions WHERE episode = ? GROUP BY seat"
        return self._rows(count, episode)

    def attempts(self, episode: int, step: int | None = None) -> list[rows.AttemptRow]:
        """Return the completions of an episode, or of one of its steps, by step and seat."""
        where = "WHERE episode = ?1 AND (?2 IS NULL OR step = ?2)"
        return self._read(rows.AttemptRow, where, episode, step)

    def notes(self, episode: int) -> list[rows.NoteRow]:
        """Return what players of an episode wrote down, by step and seat."""
        return self._read(rows.NoteRow, "WHERE episode = ?", episode)

    def table(self, name: str) -> Iterator[tuple[rows.EpisodeRow, Plain]]:
        """Yield the rows of ``episodes`` or of what belongs to them, each with its episode.

        Attempts have their messages as `prompt`, and who has a seat has a `player`.
        """
        for episode in self.episodes():
            if name == "episodes":
                yield episode, vars(episode) | {"game": episode.game.game, "players": episode.seats}
                continue
            chats = self.chats(episode.id) if name == "attempts" else {}
            for row in getattr(self, name)(episode.id):
                found = dict(vars(row))
                if "seat" in found:
                    found["player"] = episode.seats[row.seat]
                if "prompt" in found:
                    listed = isinstance(row.prompt, list)
                    found["prompt"] = (
                        self.messages(row.prompt) if listed else list(chats[row.prompt])
                    )
                yield episode, found

    def messages(self, prompt: Any) -> list[dict[str, str]]:
        """Return the messages of an `AttemptRow.prompt`, each ``{"role": …, "content": …}``."""
        listed = isinstance(prompt, list)
        found = self._rows(_LISTED, json.dumps(prompt)) if listed else self._rows(_CHAINED, prompt)
        return [{"role": role or "", "content": text or ""} for role, text in found]

    def chats(self, episode: int) -> dict[Any, Chat]:
        """Return the prompts of an episode, and all that these grew from, by `AttemptRow.prompt`.

        Those of schema 2 are not among them.
        """
        chats: dict[Any, Chat] = {}
        if not self._columns(TABLES[rows.PromptRow]):
            return chats
        for prompt, before, role, content in self._each(_PROMPTS, episode):
            chats[prompt] = chats.get(before, Chat()).plus(role or "", content or "")
        return chats

    def pool(self) -> Iterator[rows.MessageRow]:
        """Yield all messages."""
        names = self._columns(TABLES[rows.MessageRow])
        query = f"SELECT {', '.join(names)} FROM messages ORDER BY id"
        return (rows.MessageRow(*row) for row in self._each(query))

    def holder(self) -> str | None:
        """Return which process plays the run now, in words; None if nobody does."""
        with database.translated(self.path):
            return lock.holder(self._database)

    def counts(self, game: int) -> tuple[int, int]:
        """Return a game's decisions and rule breaks so far."""
        mine = "WHERE episode IN (SELECT id FROM episodes WHERE game = ?)"
        [made] = self._rows(f"SELECT count(*), ifnull(sum(broke), 0) FROM decisions {mine}", game)
        return made

    def last_step(self, game: int) -> tuple[int, int, list[Any]] | None:
        """Return episode number, step and actions by seat of a game's last step of all."""
        found = self._rows(
            "SELECT e.id, e.number, max(s.step) FROM episodes e JOIN steps s ON s.episode = e.id "
            "WHERE e.game = ? GROUP BY e.id ORDER BY e.status = 'running' DESC, e.number DESC "
            "LIMIT 1",
            game,
        )
        for episode, number, step in found:
            made = self._read(rows.DecisionRow, "WHERE (episode, step) = (?, ?)", episode, step)
            return number, step, [row.action for row in made]
        return None

    def usage(self) -> Plain:
        """Return how many completions were read with each outcome, and the tokens in all."""
        outcomes = self._rows("SELECT outcome, count(*) FROM attempts GROUP BY outcome")
        [total] = self._rows("SELECT count(*), total(tokens_in), total(tokens_out) FROM attempts")
        used = dict(zip(("calls", "tokens_in", "tokens_out"), map(int, total), strict=True))
        return used | {"outcomes": {name: n for name, n in outcomes if name is not None}}

    def spent(self) -> dict[tuple[str, str], Usage]:
        """Return what all calls came to, by model and seat (``public_goods/player_0``)."""
        found = {}
        for row in self._read(rows.SpentRow):
            numbers = vars(row) | {"money": Decimal(row.money)}
            pair = numbers.pop("model"), numbers.pop("seat")
            found[pair] = Usage(**numbers)
        return found

    def limits(self) -> list[rows.LimitRow]:
        """Return how many calls at a time servers have borne, start by start."""
        return self._read(rows.LimitRow)

    def _read(
        self,
        kind: type[R],
        where: str = "",
        *values: Any,
        loads: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> list[R]:
        """Return rows of a class in the order of their key; `loads` win over the class's own."""
        table = TABLES[kind]
        names = self._columns(table)
        query = f"SELECT {', '.join(names)} FROM {table.name} {where} ORDER BY {table.key}"
        loading = [
            (name, load) for name, load in {**table.loads, **(loads or {})}.items() if name in names
        ]
        found = []
        for values_of_row in self._each(query, *values):
            row = dict(zip(names, values_of_row, strict=True))
            for name, load in loading:
                value = row[name]
                try:
                    row[name] = value if value is None else load(value)
                except ValueError:
                    first = ", ".join(f"{key} {row[key]}" for key in names[:3])
                    raise database.NotARun(
                        f"{self.path}: {name} in a row of {table.name} ({first}) is not JSON: "
                        f"{value[:60]!r}; the file is damaged, restore it from a copy"
                    ) from None
            found.append(kind(**row))
        return found

    def _columns(self, table: rows.Relation) -> list[str]:
        """Return the columns of a table that this file has."""
        if table.name not in self._known:
            info = self._rows("SELECT name FROM pragma_table_info(?)", table.name)
            there = {name for (name,) in info}
            self._known[table.name] = [name for name in table.types if name in there]
        return self._known[table.name]

    def _each(self, query: str, *values: Any) -> Iterator[Any]:
        with database.translated(self.path):
            yield from self._database.execute(query, values)

    def _rows(self, query: str, *values: Any) -> list[Any]:
        return list(self._each(query, *values))


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
