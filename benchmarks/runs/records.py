"""A run as it was recorded: rows of its tables, and the class that reads them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Self

from llm_games.benchmarks.runs.database import (
    NotARun,
    Unwritable,
    check_file,
    check_schema,
    opened,
    translated,
)
from llm_games.benchmarks.runs.lock import holder
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Rulebook, seated
from llm_games.wrappers.clients.budget import Usage

Status = Literal["pending", "running", "done", "void"]
Plain = dict[str, Any]


@dataclass(frozen=True)
class GameRow:
    """One of the run's games: `seats` are the players' names, as configured."""

    id: int
    label: str
    game: str
    params: Plain
    seats: list[str]


@dataclass(frozen=True)
class EpisodeRow:
    """One episode; `number` counts within its game, `reason` says why it is void.

    `seating` has for each seat the place in ``game.seats`` of who sits there.
    """

    id: int
    game: GameRow
    number: int
    seed: int
    seating: list[int]
    status: Status
    reason: str | None
    started: str | None
    ended: str | None

    @property
    def seats(self) -> list[str]:
        """Return the players' names by seat, in this episode."""
        return [self.game.seats[place] for place in self.seating]

    @property
    def params(self) -> Plain:
        """Return the parameters; those that belong to players are where these sit."""
        return seated(game_class(self.game.game), self.game.params, self.seating)

    def rules(self) -> Rulebook:
        """Build the rules of this episode."""
        return rulebook(self.game.game, **self.params)


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
    detail: str = ""
    kind: str = "move"


@dataclass(frozen=True)
class NoteRow:
    """What a player wrote down for itself, such as a plan."""

    step: int
    seat: int
    number: int
    kind: str
    content: Plain


@dataclass(frozen=True)
class LimitRow:
    """How many calls at a time one server has borne since a start of the run.

    `history` holds lists of two: seconds since `began`, calls that might be in flight.
    """

    began: str
    number: int
    model: str
    server: str
    history: list[Sequence[float]]


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
        self.config: Plain = self._read("run", (1,), ("config",), (config,))[0]

    @classmethod
    def open_readonly(cls, path: str | Path) -> Records:
        """Open a run to read, also one that is going on or lies in a read-only folder.

        Raises:
            NotARun, NewerSchema: see there.
        """
        check_file(Path(path))
        try:
            with opened(path, "ro") as database:
                check_schema(path, database)
        except Unwritable:  # no place for the files that readers and the writer share
            if Path(f"{path}-wal").exists():
                raise
            with opened(path, "ro", "&immutable=1") as database:
                check_schema(path, database)
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
        return [
            GameRow(*row[:3], *self._read("games", row[:1], ("params", "seats"), row[3:]))
            for row in rows
        ]

    def episodes(self) -> list[EpisodeRow]:
        """Return all episodes, game by game."""
        games = {game.id: game for game in self.games()}
        rows = self._rows(
            "SELECT id, game, number, seed, seating, status, reason, started, ended FROM episodes "
            "ORDER BY game, number"
        )
        lost = next((row for row in rows if row[1] not in games), None)
        if lost is not None:
            raise NotARun(f"{self.path}: episode {lost[0]} belongs to no game; the file is damaged")
        return [
            EpisodeRow(
                *(row[0], games[row[1]], *row[2:4]),
                *self._read("episodes", row[:1], ("seating",), row[4:5]),
                *row[5:],
            )
            for row in rows
        ]

    def steps(self, episode: int) -> list[StepRow]:
        """Return the steps of an episode in order."""
        rows = self._rows(
            "SELECT step, asked, record, rewards, finished FROM steps WHERE episode = ? "
            "ORDER BY step",
            episode,
        )
        columns = ("asked", "record", "rewards", "finished")
        return [
            StepRow(row[0], *self._read("steps", (episode, row[0]), columns, row[1:]))
            for row in rows
        ]

    def texts(self, episode: int) -> dict[int, dict[str, str]]:
        """Return the columns of an episode's steps as they are written, by step and name."""
        columns = ("asked", "record", "rewards", "finished")
        rows = self._rows(
            f"SELECT step, {', '.join(columns)} FROM steps WHERE episode = ?", episode
        )
        return {row[0]: dict(zip(columns, row[1:], strict=True)) for row in rows}

    def decisions(self, episode: int) -> list[DecisionRow]:
        """Return the decisions of an episode by step and seat."""
        rows = self._rows(
            "SELECT step, seat, action, outcome, broke, reward FROM decisions WHERE episode = ? "
            "ORDER BY step, seat",
            episode,
        )
        return [
            DecisionRow(row[0], row[1], self._action(episode, row), row[3], bool(row[4]), row[5])
            for row in rows
        ]

    def attempts(self, episode: int, step: int | None = None) -> list[AttemptRow]:
        """Return the completions of an episode, or of one of its steps, by step and seat."""
        rows = self._rows(
            "SELECT step, seat, number, prompt, text, finish, error, outcome, why, tokens_in, "
            "tokens_out, latency, seed, model, detail, kind FROM attempts WHERE episode = ?1 "
            "AND (?2 IS NULL OR step = ?2) ORDER BY step, seat, number",
            episode,
            step,
        )
        return [AttemptRow(*(*row[:3], self._prompt(episode, row), *row[4:])) for row in rows]

    def notes(self, episode: int) -> list[NoteRow]:
        """Return what players of an episode wrote down, by step and seat."""
        rows = self._rows(
            "SELECT step, seat, number, kind, content FROM notes WHERE episode = ? "
            "ORDER BY step, seat, number",
            episode,
        )
        return [
            NoteRow(*row[:4], *self._read("notes", (episode, *row[:3]), ("content",), row[4:]))
            for row in rows
        ]

    def messages(self, prompt: Sequence[int]) -> list[dict[str, str]]:
        """Return the messages of a prompt, each ``{"role": …, "content": …}``."""
        query = "SELECT role, content FROM messages WHERE id = ?"
        rows = (self._rows(query, number)[0] for number in prompt)
        return [{"role": role, "content": content} for role, content in rows]

    def pool(self) -> list[tuple[int, bytes, str, str]]:
        """Return id, hash, role and content of all messages."""
        return self._rows("SELECT id, hash, role, content FROM messages ORDER BY id")

    def holder(self) -> str | None:
        """Return which process plays the run now, in words; None if nobody does."""
        with translated(self.path):
            return holder(self._database)

    def counts(self, game: int) -> tuple[int, int, int, int]:
        """Return a game's decisions, rule breaks, calls and tokens so far."""
        mine = "WHERE episode IN (SELECT id FROM episodes WHERE game = ?)"
        made = self._rows(f"SELECT count(*), ifnull(sum(broke), 0) FROM decisions {mine}", game)
        asked = self._rows(
            f"SELECT count(*), ifnull(sum(tokens_in + tokens_out), 0) FROM attempts {mine}", game
        )
        return (*made[0], *asked[0])

    def last_step(self, game: int) -> tuple[int, int, list[Any]] | None:
        """Return episode number, step and actions by seat of a game's last step of all."""
        rows = self._rows(
            "SELECT e.id, e.number, max(s.step) FROM episodes e JOIN steps s ON s.episode = e.id "
            "WHERE e.game = ? GROUP BY e.id ORDER BY e.status = 'running' DESC, e.number DESC "
            "LIMIT 1",
            game,
        )
        if not rows:
            return None
        episode, number, step = rows[0]
        made = self._rows(
            "SELECT step, seat, action FROM decisions WHERE (episode, step) = (?, ?) ORDER BY seat",
            episode,
            step,
        )
        return number, step, [self._action(episode, row) for row in made]

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

    def spent(self) -> dict[tuple[str, str], Usage]:
        """Return what all calls came to, by model and seat (``public_goods/player_0``)."""
        rows = self._rows(
            "SELECT model, seat, calls, failures, tokens_in, tokens_out, seconds, money "
            "FROM spent ORDER BY model, seat"
        )
        return {(row[0], row[1]): Usage(*(*row[2:7], Decimal(row[7]))) for row in rows}

    def limits(self) -> list[LimitRow]:
        """Return how many calls at a time servers have borne, start by start."""
        rows = self._rows("SELECT began, number, model, server, history FROM limits")
        return [LimitRow(*row[:4], *map(json.loads, row[4:])) for row in rows]

    def _action(self, episode: int, row: Sequence[Any]) -> Any:
        return self._read("decisions", (episode, *row[:2]), ("action",), row[2:3])[0]

    def _prompt(self, episode: int, row: Sequence[Any]) -> Any:
        return self._read("attempts", (episode, *row[:3]), ("prompt",), row[3:4])[0]

    def _read(
        self, table: str, key: Sequence[int], columns: Sequence[str], texts: Sequence[str]
    ) -> list[Any]:
        """Read columns of JSON.

        Raises:
            NotARun: one is not.
        """
        values = []
        for column, text in zip(columns, texts, strict=True):
            try:
                values.append(json.loads(text))
            except ValueError:
                raise NotARun(
                    f"{self.path}: {column} in row {tuple(key)} of {table} is not JSON: "
                    f"{text[:60]!r}; the file is damaged, restore it from a copy"
                ) from None
        return values

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with translated(self.path):
            return self._database.execute(query, values).fetchall()
