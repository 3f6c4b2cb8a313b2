"""A run as everything that comes after it reads it: its games, their episodes, its players.

Parts of an episode are read when they are asked for, while the file is open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from operator import iadd
from typing import Any

import numpy as np

from llm_games.baselines.deviation import deviation
from llm_games.baselines.players import PLAYERS
from llm_games.benchmarks.runs.records import Records
from llm_games.benchmarks.runs.rows import (
    AttemptRow,
    DecisionRow,
    EpisodeRow,
    GameRow,
    NoteRow,
    StepRow,
)
from llm_games.benchmarks.runs.spending import Spending
from llm_games.benchmarks.runs.stats import filled_in
from llm_games.registry import rulebook
from llm_games.rulebook import Array

TINY = "tiny"  # the embedded model: as a player, and as its own server calls it


@dataclass
class Tally:
    """What was decided and asked for, added up.

    `filled` counts decisions that the rules filled in, `read` how completions were read, by kind
    (``move``, ``plan`` …) and outcome; `latencies` are seconds of each call; `model` is as the
    first server called it. Calls that brought none are only in `Run.spent`.
    """

    decisions: int = 0
    filled: int = 0
    read: dict[str, Counter[str]] = field(default_factory=dict)
    tokens_in: int = 0
    tokens_out: int = 0
    latencies: list[float] = field(default_factory=list)
    model: str = ""

    @property
    def calls(self) -> int:
        """Completions asked for."""
        return len(self.latencies)

    @property
    def moves(self) -> Counter[str]:
        """How the completions that were to be moves were read."""
        return self.read.get("move", Counter())

    @property
    def others(self) -> dict[str, Counter[str]]:
        """The same of other completions, by kind."""
        return {kind: outcomes for kind, outcomes in self.read.items() if kind != "move"}

    def asked(self, attempt: AttemptRow) -> None:
        """Count a completion."""
        self.read.setdefault(attempt.kind, Counter())[attempt.outcome or "unread"] += 1
        self.tokens_in += attempt.tokens_in
        self.tokens_out += attempt.tokens_out
        self.latencies.append(attempt.latency)
        self.model = self.model or attempt.model

    def add(self, other: Tally) -> None:
        """Add another one to it."""
        for kind, outcomes in other.read.items():
            self.read.setdefault(kind, Counter()).update(outcomes)
        for name in ("decisions", "filled", "tokens_in", "tokens_out", "latencies"):
            setattr(self, name, iadd(getattr(self, name), getattr(other, name)))
        self.model = self.model or other.model


def added(tallies: Iterable[Tally]) -> Tally:
    """Add several up."""
    total = Tally()
    for tally in tallies:
        total.add(tally)
    return total


@dataclass(frozen=True)
class Player:
    """One player of a run: its name there, what it is, and what it did over all its seats."""

    name: str
    spec: str
    did: Tally = field(default_factory=Tally)

    @property
    def kind(self) -> str:
        """What the player is, without the value after the colon."""
        return self.spec.partition(":")[0]

    @property
    def language_model(self) -> bool:
        """Whether it is a language model of its own, and no reference such as the embedded one."""
        entry = PLAYERS.get(self.kind)
        asks = bool(self.did.read) if entry is None else entry.model is not None
        return asks and TINY not in (self.kind, self.did.model)


@dataclass
class RecordedEpisode:
    """One episode of a recorded game; `row` says which, the rest is read from the file."""

    file: Records
    row: EpisodeRow

    def __post_init__(self) -> None:
        self.seats = self.row.seats  # the players' names, as they sat
        self.seconds = seconds([self.row])  # from its start to its end; None if it has none

    @cached_property
    def rules(self) -> Any:
        """The rules, as its players sat."""
        return self.row.rules()

    @cached_property
    def steps(self) -> list[StepRow]:
        """Its steps in order."""
        return self.file.steps(self.row.id)

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """What happened, step by step."""
        return [step.record for step in self.steps]

    @cached_property
    def rewards(self) -> Array:
        """Payoffs, float64 ``(steps, players)``."""
        paid = [step.rewards for step in self.steps]
        return np.array(paid, np.float64).reshape(-1, len(self.seats))

    @property
    def payoffs(self) -> Array:
        """Payoffs of the episode by the seats of the configuration, float64 ``(players,)``."""
        return np.asarray(self.rewards.sum(axis=0)[np.argsort(self.row.seating)])

    def decisions(self) -> list[DecisionRow]:
        """Read its decisions, by step and seat."""
        return self.file.decisions(self.row.id)

    def attempts(self) -> list[AttemptRow]:
        """Read its completions, by step and seat."""
        return self.file.attempts(self.row.id)

    def notes(self) -> list[NoteRow]:
        """Read what its players wrote down, by step and seat."""
        return self.file.notes(self.row.id)

    @cached_property
    def tallies(self) -> tuple[Tally, dict[str, Tally]]:
        """What was decided and asked for: in all, and by player."""
        total, of = Tally(), {name: Tally() for name in self.seats}
        for made in self.decisions():
            for tally in (total, of[self.seats[made.seat]]):
                tally.decisions += 1
                tally.filled += made.broke
        for attempt in self.attempts():
            for tally in (total, of[self.seats[attempt.seat]]):
                tally.asked(attempt)
        return total, of

    @property
    def did(self) -> Tally:
        """What was decided and asked for in all."""
        return self.tallies[0]

    def of(self, name: str) -> list[int]:
        """Return the seats of a player."""
        return [seat for seat, sitting in enumerate(self.seats) if sitting == name]

    def regret(self) -> Array:
        """Return what seats could have gained in hindsight, float64 ``(players, steps)``."""
        names = self.records[0]
        steps = {name: np.stack([r[name] for r in self.records], axis=-1) for name in names}
        return deviation(self.rules, steps).regret


@dataclass
class Game:
    """One of a run's games, as configured: where players change seats, an episode has its own.

    `rows` are its episodes, `planned` is its entry in the run's configuration.
    """

    file: Records
    row: GameRow
    rows: Sequence[EpisodeRow]
    planned: Mapping[str, Any]

    def __post_init__(self) -> None:
        self.label, self.name = self.row.label, self.row.game  # in the run, in the registry
        self.params, self.seats = self.row.params, self.row.seats
        self.players = list(dict.fromkeys(self.seats))  # their names, each once
        self.change = dict(self.planned.get("change") or {})  # its entry of the run's ``vary``
        self.setting = self.label.removeprefix(self.name).strip(", ") or "default"
        self.states = Counter[str](row.status for row in self.rows)

    @cached_property
    def rules(self) -> Any:
        """Its rules."""
        return rulebook(self.name, **self.params)

    def read(self) -> Iterator[RecordedEpisode]:
        """Yield its episodes one by one, so that nothing is kept of those that went by."""
        return (RecordedEpisode(self.file, row) for row in self.rows)

    @cached_property
    def episodes(self) -> list[RecordedEpisode]:
        """Its episodes."""
        return list(self.read())

    @property
    def played(self) -> list[RecordedEpisode]:
        """The episodes to draw: all that have begun and are not void."""
        return [e for e in self.episodes if e.records and e.row.status != "void"]

    @property
    def done(self) -> list[RecordedEpisode]:
        """The episodes that count."""
        return [e for e in self.episodes if e.row.status == "done"]

    @property
    def filled(self) -> Fraction:
        """The largest share of filled-in decisions in an episode."""
        shares = (filled_in(e.did.filled, e.did.decisions) for e in self.played)
        return max(shares, default=Fraction(0))

    def stack(self, key: str) -> Array:
        """Return one entry of all records of `played`, ``(all steps, …)``."""
        return np.array([record[key] for e in self.played for record in e.records])


def games(file: Records) -> list[Game]:
    """Return the games of a run in the order of its configuration."""
    planned = {game.get("label"): game for game in file.config.get("games", [])}
    rows: dict[int, list[EpisodeRow]] = {}
    for row in file.episodes():
        rows.setdefault(row.game.id, []).append(row)
    return [Game(file, g, rows.get(g.id, []), planned.get(g.label, {})) for g in file.games()]


@dataclass
class Run:
    """One run: its games, its players by name, and the edition its scores are to have."""

    file: Records
    games: list[Game]
    players: dict[str, Player]
    edition: str

    def __post_init__(self) -> None:
        self.stem = self.file.path.stem
        self.heading = f"{self.file.title} ({self.stem})"  # what tells it from others on a page
        self.spent = Spending(self.file)
        self.priced = bool(self.file.config.get("prices"))  # else costs mean nothing
        self.episodes = [episode for game in self.games for episode in game.episodes]
        self.seconds = seconds([row for game in self.games for row in game.rows])

    def by_game(self) -> dict[str, list[Game]]:
        """Return the games by their names in the registry."""
        found: dict[str, list[Game]] = {}
        for game in self.games:
            found.setdefault(game.name, []).append(game)
        return found


def read(file: Records, edition: str) -> Run:
    """Read a run, also an unfinished one; its file stays open while the run is used."""
    found = games(file)
    planned = (seat for game in file.config.get("games", []) for seat in game["seats"])
    specs = {seat["name"]: seat["player"] for seat in planned}
    players: dict[str, Player] = {}
    for game in found:
        for name in game.seats:
            players.setdefault(name, Player(name, specs.get(name, name)))
        for episode in game.episodes:
            for name, did in episode.tallies[1].items():
                players[name].did.add(did)
    return Run(file, found, players, edition)


def seconds(rows: Sequence[EpisodeRow]) -> float | None:
    """Return the time from the first start of some episodes to the last end, if there is one."""
    started = [datetime.fromisoformat(row.started) for row in rows if row.started]
    ended = [datetime.fromisoformat(row.ended) for row in rows if row.ended]
    return (max(ended) - min(started)).total_seconds() if ended and started else None
