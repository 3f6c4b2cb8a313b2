"""The rows of a run's SQLite file: SQL, readers, writers and exports follow from the classes.

A class is a table and a field a column: numbers and text as they are, all other values as JSON.
Fields with a default may lack in an older file. Times are UTC, ISO 8601. Seats and steps count from
0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

import numpy as np

from llm_games.questions import BEYOND, MISSING, Action
from llm_games.registry import disguised, game_class, recorded_rulebook
from llm_games.rulebook import Rulebook, seated
from llm_games.wrappers.clients.base import Completion

SCHEMA, OLDEST = 3, 2  # in PRAGMA user_version: what is written, and the oldest that is read

Status = Literal["pending", "running", "done", "void"]
Plain = dict[str, Any]
R = TypeVar("R")


# -- how classes are tables ------------------------------------------------------------------------
def _plain(value: Any) -> Any:
    """Return what JSON has for NumPy's values; a ratio is the text "2/3"."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else str(value)


_encode = json.JSONEncoder(default=_plain).encode


def _encode_or_none(value: Any) -> str | None:
    return None if value is None else _encode(value)


def _fitting(hint: Any, thin: bool) -> Callable[[Any], bool]:
    """Return what says whether a value is of a type; lists by seat can be `thin`."""
    union = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if Any in union or any(get_origin(kind) is Literal or kind in TABLES for kind in union):
        return lambda value: True
    plain = tuple(kind for kind in union if get_origin(kind) is None)
    plain += (int,) if float in plain else ()
    lists = (kind for kind in union if get_origin(kind) in (list, Sequence))
    listed = next(map(get_args, lists), None)
    if any(get_origin(kind) is dict for kind in union) or (thin and listed):
        plain += (dict,)
    if listed is None:
        return lambda value: isinstance(value, plain)
    kinds: dict[Any, set[type]] = {int: {int, bool}, float: {int, float, bool}, str: {str}}
    items = kinds.get(listed[0])

    def fits(value: Any) -> bool:
        if isinstance(value, list):
            return items is None or items.issuperset(map(type, value))
        return bool(plain) and isinstance(value, plain)

    return fits


_SQL = {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}


class Relation:
    """A table of rows of one class, in the order of its primary key.

    With `episode`, an episode's id is the first column, and no field. `kinds` are what SQLite holds
    in the columns, None for JSON; `loads` and `dumps` are for what it would hold otherwise.
    """

    def __init__(self, name: str, row: type, key: str, episode: bool, unique: str) -> None:
        self.name, self.key, self.unique = name, f"episode, {key}" if episode else key, unique
        self.types: dict[str, Any] = get_type_hints(row)
        self.kinds: dict[str, type | None] = {}
        self.loads: dict[str, Callable[[Any], Any]] = {}
        self.dumps: dict[str, Callable[[Any], Any]] = {}
        lines = ["episode INTEGER NOT NULL REFERENCES episodes"] if episode else []
        lines += [self._column(column, hint) for column, hint in self.types.items()]
        lines += [f"PRIMARY KEY ({self.key})"] + ([f"UNIQUE ({unique})"] if unique else [])
        columns, strict = ",\n  ".join(lines), "STRICT" if key == "id" else "STRICT, WITHOUT ROWID"
        self.sql = f"CREATE TABLE {name} (\n  {columns}\n) {strict}"
        names = [*(["episode"] if episode else []), *self.types]
        self.into = f"INTO {name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"

    @cached_property
    def checks(self) -> list[tuple[str, Callable[[Any], bool]]]:
        """Return of each column, by name, what says whether a value that was read fits in it."""
        return [(name, _fitting(hint, self.name == "steps")) for name, hint in self.types.items()]

    def _column(self, name: str, hint: Any) -> str:
        union = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        kinds = [kind for kind in union if kind is not NoneType]
        null = "" if len(kinds) < len(union) else " NOT NULL"
        legal = get_args(hint) if get_origin(hint) is Literal else ()
        kind = type(legal[0]) if legal else kinds[0]
        constraint = f" CHECK ({name} IN {legal})" if len(legal) > 1 else ""
        if kind in TABLES:
            self.dumps[name], constraint = attrgetter("id"), f" REFERENCES {TABLES[kind].name}"
            kind = int
        elif kind is bool:
            self.loads[name], kind = bool, int
        elif kind not in _SQL:
            self.loads[name], self.dumps[name] = json.loads, _encode if null else _encode_or_none
        self.kinds[name] = kind if kind in _SQL else None
        return f"{name} {_SQL.get(kind, 'TEXT')}{null}{constraint}"

    def written(self, row: Any) -> dict[str, Any]:
        """Return the columns of a row as they are written."""
        return vars(row) | {name: dump(getattr(row, name)) for name, dump in self.dumps.items()}

    def insert(self, row: Any, *episode: int, again: bool = False) -> tuple[str, list[Any]]:
        """Return the statement that writes a row (`again`: over one of its key) and its values."""
        how = "INSERT OR REPLACE" if again else "INSERT"
        return f"{how} {self.into}", [*episode, *self.written(row).values()]


TABLES: dict[Any, Relation] = {}  # by the class of their rows


@dataclass_transform(frozen_default=True)
def table(
    name: str, key: str = "id", *, episode: bool = False, unique: str = ""
) -> Callable[[type[R]], type[R]]:
    """Make a class a dataclass whose objects are rows of a table."""

    def declare(row: type[R]) -> type[R]:
        row = dataclass(frozen=True)(row)
        TABLES[row] = Relation(name, row, key, episode, unique)
        return row

    return declare


def digest(text: str) -> bytes:
    """Return 16 bytes of SHA-256, which name a text."""
    return hashlib.sha256(text.encode()).digest()[:16]


# -- the tables ------------------------------------------------------------------------------------
@table("run")
class RunRow:
    """The run: one row. `config` has all defaults and no keys; `package` made the file."""

    title: str
    package: str
    config: Plain
    created: str
    id: Literal[1] = 1


@table("lock")
class LockRow:
    """The process that runs it now, `born` then; `beat`: Unix time of its last sign of life."""

    token: str
    host: str
    pid: int
    born: str
    beat: float
    id: Literal[1] = 1


@table("games", unique="label")
class GameRow:
    """One of the run's games: its name in the registry, parameters and players as configured."""

    id: int
    label: str
    game: str
    params: Plain
    seats: list[str]


@table("episodes", unique="game, number")
class EpisodeRow:
    """One episode; `number` counts within its game, `reason` says why it is void.

    All its randomness comes from `seed`, but for the draws in `given`. `seating`: by seat the place
    in ``game.seats``. `source`: where it was taken from, if it was not played here. `isomorph`: the
    seed of the other words in which its players read it, see `llm_games.disguise`.
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
    given: Plain | None = None
    edition: Plain | None = None
    source: str | None = None
    isomorph: int | None = None

    @property
    def seats(self) -> list[str]:
        return [self.game.seats[position] for position in self.seating]

    @property
    def params(self) -> Plain:
        """The parameters; those that belong to players are where these sit."""
        return seated(game_class(self.game.game), self.game.params, self.seating)

    def rules(self) -> Rulebook:
        rules = recorded_rulebook(self.game.game, self.params, rules_edition(self.edition))
        return rules if self.isomorph is None else disguised(rules, self.isomorph)


def rules_edition(edition: Plain | None) -> int:
    """Return the edition of a game's rules that a record names; 0 of llm-games 0.1.0's."""
    return int((edition or {}).get("rules", 0))


@table("messages", unique="hash")
class MessageRow:
    """A message of a prompt, once; `hash`: the `digest` of role, zero byte, content."""

    id: int
    hash: bytes
    role: str
    content: str


@table("prompts", unique="parent, message")
class PromptRow:
    """A prompt: the one before it, 0 for none, and the message that comes next."""

    id: int
    parent: int
    message: int


@table("attempts", "step, seat, number", episode=True)
class AttemptRow:
    """A completion, written as it arrives. `number`: 0 for the first call of a decision.

    `prompt`: the id in ``prompts`` of its last message (in schema 2, the ids of all). `text` is as
    received. `error`: in files of edition 1 why no completion came (then `finish` is ``transient``
    or ``fatal``). `outcome`: how it was read, None until the decision is made; `why`: what was
    wrong; `detail`: which rule it broke. A `step` that equals the number of steps: asked for when
    the game was over. `latency` is in seconds. `left_out`: options that the server had refused;
    `leniencies`: what was let pass, see `replies.LENIENCIES`.
    """

    step: int
    seat: int
    number: int
    prompt: Any
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
    thoughts: str = ""
    tool_calls: list[Plain] | None = None
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    refusal: str = ""
    tokens_written: int = 0
    left_out: list[str] | None = None
    leniencies: str = ""

    def completion(self) -> Completion:
        return Completion(**{name: getattr(self, name) for name in RECEIVED})


RECEIVED = tuple(field.name for field in fields(Completion))
"""Columns of attempts that hold what was received."""


OVERFLOW = "overflow"  # kind of the notes on prompts that a server refused as too long


@table("notes", "step, seat, number", episode=True)
class NoteRow:
    """What a player wrote down for itself, such as a plan; steps as in attempts.

    Of an `OVERFLOW`, written once a shorter prompt was answered, `content` has ``call``
    (completions before it), ``prompt`` and ``seed`` as in attempts, and what the server ``said``.
    """

    step: int
    seat: int
    number: int
    kind: str
    content: Plain


@table("spent", "model, seat")
class SpentRow:
    """All calls of a model by a seat, "" for greetings: also tries that are in no other table.

    `seat` is as configured (``public_goods/player_0``). Replies from a cache are not in it. Tokens
    are estimates where the server counts none; `money` is exact, in the prices' currency.
    """

    model: str
    seat: str
    calls: int
    failures: int
    tokens_in: int
    tokens_out: int
    seconds: float
    money: str
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    tokens_written: int = 0


@table("flights", "model, seat, number")
class FlightRow:
    """Calls that were sent and whose outcome is not known: what they may have cost at most.

    Each is written before it is sent, and struck once it is over: those left when nobody plays the
    run died with it. `number` 0: the sum of those that ended without an outcome. Below 0: a line of
    a batch, see `LineRow`.
    """

    model: str
    seat: str
    number: int
    calls: int
    tokens_in: int
    tokens_out: int
    money: str


@table("waves", "name")
class WaveRow:
    """A batch, entered before it is sent; `batch`: its id at the provider, "" until that is known.

    `lines`: how many calls are in it; `refused`: options left out, since the server had refused
    them.
    """

    name: str
    model: str
    server: str
    batch: str
    lines: int
    began: str
    refused: list[str]


@table("lines", "number")
class LineRow:
    """A call in a batch, until its answer is booked; `name`: see `line_name`.

    `digest`: of what was sent. Its `FlightRow` has the same `number`.
    """

    number: int
    name: str
    wave: str
    digest: str


@table("lengths", "model")
class LengthsRow:
    """What is known of a model's replies, see `Lengths`."""

    model: str
    seen: int
    longest: int
    kept: bool
    sent: bool
    most: int
    counted: bool


@table("parts", "name")
class PartRow:
    """A worker's file of which all was taken over into this one; only while such files are left."""

    name: str


@table("limits", "began, number")
class LimitRow:
    """Calls at a time that one server has borne; `history` lists: seconds since `began`, calls."""

    began: str
    number: int
    model: str
    server: str
    history: list[Sequence[float]]


@table("guests", "seat")
class GuestRow:
    """Who took a seat by a link, a person or a program (`kind`): all that is kept of the guest.

    `pseudonym`: "" where none was asked for, `FORGOTTEN` once it was to be. `consent`:
    SHA-256 of the text that was agreed to. `protocol`: ``page``, ``json``, ``mcp`` or ``openenv``.
    """

    seat: str
    kind: str
    pseudonym: str
    joined: str
    consent: str
    protocol: str

    def __str__(self) -> str:
        """Return who plays by a link, and how: ``human 1 (fox, a person in a browser)``."""
        who = "a person" if self.kind == "human" else "a program"
        how = _PROTOCOLS.get(self.protocol, self.protocol)
        return f"{self.seat} ({', '.join(filter(None, (self.pseudonym, f'{who} {how}')))})"


_PROTOCOLS = {"page": "in a browser", "json": "by JSON", "mcp": "by MCP", "openenv": "by OpenEnv"}
FORGOTTEN = "forgotten"  # what stands in place of a pseudonym
TALK = "talk"  # phase of the steps, and of the decisions, in which players talk


@table("steps", "step", episode=True)
class StepRow:
    """One step: who was asked, what happened (plain lists), payoffs of all seats, who is out."""

    step: int
    asked: list[int]
    record: Plain
    rewards: list[float]
    finished: list[int]

    @property
    def talk(self) -> bool:
        """Whether it was a turn of talk, and no move of the game."""
        return self.record.get("phase") == TALK

    def thin(self) -> StepRow:
        """In little where few are asked: ``{"of": length, VALUE: seats, ..., THE REST: None}``."""
        players = len(self.rewards)
        if 2 * len(self.asked) >= players:
            return self
        out = [seat in self.finished for seat in range(players)]
        record = {
            key: _thin(value) if isinstance(value, list) and len(value) == players else value
            for key, value in self.record.items()
        }
        changes: Any = {"rewards": _thin(self.rewards), "finished": _thin(out), "record": record}
        return replace(self, **changes)

    def full(self) -> StepRow:
        """Undo `thin`."""
        if isinstance(self.rewards, list):
            return self
        record = full_record(self.record)
        finished = [seat for seat, gone in enumerate(_full(self.finished)) if gone]
        return replace(self, rewards=full_list(self.rewards), finished=finished, record=record)


MOST_SEATS = 10**6  # of a list that is written in little


def _thin(values: Sequence[Any]) -> Plain:
    seats: dict[str, list[int]] = {}
    for seat, value in enumerate(values):
        seats.setdefault(repr(value), []).append(seat)
    commonest = max(seats, key=lambda value: len(seats[value]))
    named = {_encode(values[of[0]]): of for of in seats.values()}
    return {"of": len(values)} | named | {_encode(values[seats[commonest][0]]): None}


def full_record(record: Plain, thin: bool = True) -> Plain:
    """Undo `StepRow.thin` of a record alone, if it was done."""
    if not thin:
        return record
    return {
        key: _full(value) if isinstance(value, dict) and "of" in value else value
        for key, value in record.items()
    }


def full_list(values: Sequence[Any] | Plain) -> Sequence[Any]:
    """Return a list by seat, also one that is written in little."""
    return _full(values) if isinstance(values, Mapping) else values


def _full(thin: Mapping[str, Any]) -> list[Any]:
    rest = next(key for key, seats in thin.items() if seats is None)
    if not 0 <= thin["of"] <= MOST_SEATS:
        raise ValueError(f"{thin['of']} seats")
    values = [json.loads(rest)] * thin["of"]
    for key, seats in thin.items():
        for seat in seats if isinstance(seats, list) else ():
            values[seat] = json.loads(key)
    return values


@table("decisions", "step, seat", episode=True)
class DecisionRow:
    """One decision; `broke`: it was against the rules and the declared treatment was played.

    `action`: an integer, a list by seat (a plan), a text or None; of phase `TALK` what was said, ""
    for silence, or a symbol. `outcome`: of the last attempt, ``valid`` without a model.
    """

    step: int
    seat: int
    action: Any
    outcome: str
    broke: bool
    reward: float
    phase: str = ""

    @property
    def readable(self) -> Any:
        """The action; None for a number that only its completion can tell (`BEYOND`)."""
        far = isinstance(self.action, int) and abs(self.action) >= BEYOND
        return None if far else self.action


def move_of(action: Any) -> Action:
    """Return a recorded action as the rules take it, see `plain_action`."""
    return MISSING if action is None else tuple(action) if isinstance(action, list) else action
