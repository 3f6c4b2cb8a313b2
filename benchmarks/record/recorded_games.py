"""A run as all others read it: games, episodes, players; parts of episodes only when asked for."""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from operator import iadd
from typing import Any, overload

import numpy as np

from llm_games.baselines.players import kind_of
from llm_games.baselines.regret import Steps, deviation, stacked
from llm_games.benchmarks.record.queries import Call, Records
from llm_games.benchmarks.record.schema import (
    AttemptRow,
    DecisionRow,
    EpisodeRow,
    GameRow,
    NoteRow,
    StepRow,
    rules_edition,
)
from llm_games.benchmarks.record.spending import Spending
from llm_games.errors import BadParameter, unknown
from llm_games.registry import game_class, recorded_rulebook
from llm_games.rulebook import Array

MARK = Fraction(1, 20)  # a game with more filled-in decisions in one episode than this is marked
KEPT = 30_000
"""Decisions whose records are kept once they have been read, at most; others are read again."""
TOYS = {"tiny", "mock"}  # the embedded model and chance: as players, and as clients call them


@dataclass
class Tally:
    """What was decided and asked for, added up.

    `filled` counts decisions that the rules filled in, `read` completions by kind (``move``,
    ``plan`` …) and outcome; `latencies` are seconds of each call; `model` is as the first server
    called it. Calls that brought no completion are only in `Run.spent`.
    """

    decisions: int = 0
    filled: int = 0
    read: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    lenient: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    tokens_in: int = 0
    tokens_out: int = 0
    latencies: array[float] = field(default_factory=lambda: array("d"))
    model: str = ""

    @property
    def calls(self) -> int:
        return len(self.latencies)

    @property
    def moves(self) -> Counter[str]:
        """How the completions that were to be moves were read."""
        return self.read.get("move", Counter())

    @property
    def others(self) -> dict[str, Counter[str]]:
        """The same of other completions, by kind."""
        return {kind: outcomes for kind, outcomes in self.read.items() if kind != "move"}

    def asked(self, call: Call) -> None:
        self.read[call.kind][call.outcome or "unread"] += 1
        if call.leniencies:
            self.lenient.update(call.leniencies.split(", "))
        if call.left_out:
            self.left_out.update(json.loads(call.left_out))
        self.tokens_in += call.tokens_in
        self.tokens_out += call.tokens_out
        self.latencies.append(call.latency)
        self.model = self.model or call.model

    def add(self, other: Tally) -> None:
        for kind, outcomes in other.read.items():
            self.read[kind].update(outcomes)
        self.lenient.update(other.lenient)
        self.left_out.update(other.left_out)
        for name in ("decisions", "filled", "tokens_in", "tokens_out", "latencies"):
            setattr(self, name, iadd(getattr(self, name), getattr(other, name)))
        self.model = self.model or other.model


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
    def toy(self) -> bool:
        """Whether it shows how things work, and is no result."""
        return not TOYS.isdisjoint((self.kind, self.did.model))

    @property
    def language_model(self) -> bool:
        """Whether it is a language model of its own, and no reference such as the embedded one."""
        entry = kind_of(self.kind)
        asks = bool(self.did.read) if entry is None else entry.model is not None
        return asks and not self.toy


class EpisodeCache:
    """Episodes, once read, while there is room; one being played keeps its first length."""

    def __init__(self, file: Records) -> None:
        self.file, self.lengths, self.room = file, file.lengths(), KEPT
        self.episodes: dict[int, RecordedEpisode] = {}
        self.numbers: dict[tuple[str, int], Array] = {}  # few of each episode: kept of all
        self.rules: dict[str, Any] = {}
        self.planned = {game.get("label"): game for game in file.config.get("games", [])}

    def episode(self, row: EpisodeRow) -> RecordedEpisode:
        """Return an episode, kept or new."""
        episode = self.episodes.get(row.id)
        if episode is None:
            episode = RecordedEpisode(self, row)
            if self.room > 0:
                self.room -= len(row.seating)
                self.episodes[row.id] = episode
        return episode


@dataclass
class RecordedEpisode:
    """One episode of a recorded game; `row` says which, the rest is read from the file."""

    shelf: EpisodeCache
    row: EpisodeRow

    @property
    def file(self) -> Records:
        return self.shelf.file

    @property
    def planned(self) -> Mapping[str, Any]:
        """Its game's entry in the run's configuration."""
        return self.shelf.planned.get(self.row.game.label, {})

    @cached_property
    def seats(self) -> list[str]:
        return self.row.seats

    @property
    def seconds(self) -> float | None:
        """The time from its start to its end, if it has one."""
        return seconds([self.row])

    @cached_property
    def rules(self) -> Any:
        """The rules, as its players sat, without talk."""
        alike = f"{self.row.game.id} {self.row.params} {self.row.isomorph}"
        if alike not in self.shelf.rules:
            self.shelf.rules[alike] = self.row.rules().core
        return self.shelf.rules[alike]

    @cached_property
    def given(self) -> Mapping[str, Any] | None:
        """What was given of its rules' chance, without the order of speakers."""
        return self.row.rules().core_chance(self.row.given) if self.row.given else None

    @cached_property
    def every_step(self) -> list[StepRow]:
        """Its steps in order, with those in which players talked."""
        steps = self.file.steps(self.row.id)[: self.shelf.lengths.get(self.row.id)]
        if self.shelf.room > 0:
            self.shelf.room -= len(steps) * len(self.row.seating)
        else:
            self.shelf.episodes.pop(self.row.id, None)
        return steps

    @cached_property
    def steps(self) -> list[StepRow]:
        """Its steps without those of talk, which change nothing of the game."""
        return [step for step in self.every_step if not step.talk]

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """What happened, but for talk: ``actions`` as they counted, ``answers`` as given."""
        told = zip((step.record for step in self.steps), self.actions.tolist(), strict=True)
        return [record | {"actions": it, "answers": record["actions"]} for record, it in told]

    @property
    def actions(self) -> Array:
        """Actions as they counted, ``(steps, players)``."""
        effective = self.rules.effective
        return self._once("actions", lambda: np.array([effective(s.record) for s in self.steps]))

    @property
    def chosen(self) -> Array:
        """Which moves players chose here, bool ``(steps, players)``: the rules filled none in."""
        rows = {step.step: row for row, step in enumerate(self.steps)}
        seats = range(len(self.row.seating))
        chosen = np.ones((len(rows), len(seats)), bool)
        if self.planned.get("branch"):
            chosen[:] = [[self.decided_here(step, seat) for seat in seats] for step in rows]
        for step, seat in self.file.filled(self.row.id):
            if step in rows:
                chosen[rows[step], seat] = False
        return chosen

    def decided_here(self, step: int, seat: int) -> bool:
        """Return whether a seat acted in a step here, not in the origin of a branch."""
        point = self.planned.get("branch")
        if not point or step > point["step"]:
            return True
        return bool(step == point["step"] and seat in point["free"])

    @cached_property
    def rewards(self) -> Array:
        """Payoffs, float64 ``(steps, players)``."""
        rewards = [step.rewards for step in self.steps]
        return np.array(rewards, np.float64).reshape(-1, len(self.seats))

    @cached_property
    def before(self) -> int:
        """How many of its steps stood before it began: those before the point of a branch."""
        point = self.planned.get("branch") or {"step": 0}
        return sum(step.step < point["step"] for step in self.steps)

    @property
    def earned(self) -> Array:
        """Payoffs of the episode by seat, float64 ``(players,)``; of a branch from its point on."""
        return self._once("earned", lambda: self.rewards[self.before :].sum(axis=0))

    @property
    def payoffs(self) -> Array:
        """Payoffs of the episode by the seats of the configuration, float64 ``(players,)``."""
        return np.asarray(self.earned[np.argsort(self.row.seating)])

    def mean_payoff(self, places: Collection[int]) -> float:
        seats = [seat for seat, position in enumerate(self.row.seating) if position in places]
        return float(self.earned[seats].mean())

    def decisions(self) -> list[DecisionRow]:
        return self.file.decisions(self.row.id)

    def attempts(self) -> list[AttemptRow]:
        return self.file.attempts(self.row.id)

    def notes(self) -> list[NoteRow]:
        return self.file.notes(self.row.id)

    def tallies(self) -> tuple[Tally, dict[str, Tally]]:
        """Read what was decided and asked for: in all, and by player."""
        total, of = Tally(), {name: Tally() for name in self.seats}
        for seat, decisions, filled in self.file.decided(self.row.id):
            of[self.seats[seat]].decisions += decisions
            of[self.seats[seat]].filled += filled
        for call in self.file.calls(self.row.id):
            if self.decided_here(call.step, call.seat):
                of[self.seats[call.seat]].asked(call)
        for tally in of.values():
            total.add(tally)
        return total, of

    def of(self, name: str) -> list[int]:
        return [seat for seat, sitting in enumerate(self.seats) if sitting == name]

    def stacked(self) -> Steps:
        """Return what happened by name, steps on a last axis."""
        return stacked(self.records)

    def regret(self) -> Array:
        """What seats could have gained in hindsight, float64 ``(players, steps)``, or NaN."""
        return self._once("regret", self._regret)

    def _once(self, name: str, work_out: Callable[[], Array]) -> Array:
        numbers, key = self.shelf.numbers, (name, self.row.id)
        if key not in numbers:
            numbers[key] = work_out()
        return numbers[key]

    def _regret(self) -> Array:
        try:
            regret = deviation(self.rules, self.stacked()).regret
        except BadParameter:
            return np.full(self.rewards.T.shape, np.nan)
        if self.before:
            regret = np.where(np.arange(regret.shape[1]) < self.before, np.nan, regret)
        return regret

    def seat_regret(self) -> float:
        """Mean over seats of the sum of their `regret`; NaN where no move has one."""
        regret = self.regret()
        defined = regret[~np.isnan(regret).all(axis=1)]
        return float(np.nansum(defined, axis=1).mean()) if len(defined) else np.nan


class Episodes(Sequence[RecordedEpisode]):
    """Episodes that are read when they are come by; few are kept of those that went by."""

    def __init__(self, shelf: EpisodeCache, rows: Sequence[EpisodeRow]) -> None:
        self.shelf, self.rows = shelf, rows

    @overload
    def __getitem__(self, index: int) -> RecordedEpisode: ...
    @overload
    def __getitem__(self, index: slice) -> Episodes: ...
    def __getitem__(self, index: int | slice) -> RecordedEpisode | Episodes:
        if isinstance(index, slice):
            return Episodes(self.shelf, self.rows[index])
        return self.shelf.episode(self.rows[index])

    def __len__(self) -> int:
        return len(self.rows)


@dataclass
class RecordedGame:
    """One of a run's games, as configured: where players change seats, an episode has its own.

    `rows` are its episodes, `planned` its entry in the run's configuration. With `read` come `did`
    of all of them, `tallies` of each by its id, and `filled`, the largest share of filled-in
    decisions of a drawn one.
    """

    shelf: EpisodeCache
    row: GameRow
    rows: Sequence[EpisodeRow]
    planned: Mapping[str, Any]
    did: Tally = field(default_factory=Tally)
    filled: Fraction = Fraction(0)
    tallies: dict[int, Tally] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.label, self.name = self.row.label, self.row.game  # in the run, in the registry
        self.params, self.seats = self.row.params, self.row.seats
        self.players = list(dict.fromkeys(self.seats))  # their names, each once
        self.change = dict(self.planned.get("change") or {})  # its entry of the run's ``vary``
        self.setting = self.label.removeprefix(self.name).strip(", ") or "default"
        self.states = Counter[str](row.status for row in self.rows)

    @cached_property
    def rules(self) -> Any:
        """Its rules, without talk."""
        return self.full.core

    @cached_property
    def given(self) -> Mapping[str, Any] | None:
        """What the run's file gives of its rules' chance, without the order of speakers."""
        return self.full.core_chance(self.planned.get("given") or None)

    @property
    def talks(self) -> bool:
        return self.full is not self.rules

    @cached_property
    def full(self) -> Any:
        rows, current = self.rows, game_class(self.name).edition
        edition = rules_edition(rows[0].edition) if rows else current
        return recorded_rulebook(self.name, self.params, edition)

    @property
    def episodes(self) -> Episodes:
        return Episodes(self.shelf, self.rows)

    @cached_property
    def played(self) -> Episodes:
        """The episodes to draw: all that have begun and are not void."""
        begun, lengths = [row for row in self.rows if row.status != "void"], self.shelf.lengths
        return Episodes(self.shelf, [row for row in begun if lengths.get(row.id) != 0])

    @cached_property
    def done(self) -> Episodes:
        """The episodes that count."""
        return Episodes(self.shelf, [row for row in self.rows if row.status == "done"])

    @cached_property
    def cache(self) -> dict[str, Any]:
        """Numbers derived from all episodes, by the name of the module that derived them."""
        return {}


def games(file: Records) -> list[RecordedGame]:
    """Return the games of a run in the order of its configuration."""
    rows: dict[int, list[EpisodeRow]] = {}
    for row in file.episodes():
        rows.setdefault(row.game.id, []).append(row)
    shelf = EpisodeCache(file)
    return [
        RecordedGame(shelf, g, rows.get(g.id, []), shelf.planned.get(g.label, {}))
        for g in file.games()
    ]


@dataclass
class Run:
    """One run: its games, players by name, the edition its scores are to have, `did` of all."""

    file: Records
    games: list[RecordedGame]
    players: dict[str, Player]
    edition: str
    did: Tally

    def __post_init__(self) -> None:
        self.stem = self.file.path.stem
        self.heading = f"{self.file.title} ({self.stem})"  # what tells it from others on a page
        self.spent = Spending(self.file)
        self.priced = bool(self.file.config.get("prices"))  # else costs mean nothing
        self.rows = [row for game in self.games for row in game.rows]
        self.seconds = seconds(self.rows)

    def by_game(self) -> dict[str, list[RecordedGame]]:
        games_by_name: dict[str, list[RecordedGame]] = {}
        for game in self.games:
            games_by_name.setdefault(game.name, []).append(game)
        return games_by_name


def read(file: Records, edition: str, only: Collection[str] = ()) -> Run:
    """Read a run, also an unfinished one; its file stays open while the run is used.

    `only`: labels of the games that are wanted, all if none; UnknownName: there is no such game.
    """
    recorded_games = games(file)
    labels = [game.label for game in recorded_games]
    for label in only:
        if label not in labels:
            raise unknown("game of this run", label, labels)
    recorded_games = [game for game in recorded_games if not only or game.label in only]
    planned = (seat for game in file.config.get("games", []) for seat in game["seats"])
    specs = {seat["name"]: seat["player"] for seat in planned}
    players: dict[str, Player] = {}
    whole = Tally()
    for game in recorded_games:
        for name in game.seats:
            players.setdefault(name, Player(name, specs.get(name, name)))
        drawn = {row.id for row in game.played.rows}
        for episode in game.episodes:
            total, of = episode.tallies()
            game.tallies[episode.row.id] = total
            game.did.add(total)
            for name, did in of.items():
                players[name].did.add(did)
            if episode.row.id in drawn:
                game.filled = max(game.filled, filled_in(total.filled, total.decisions))
        whole.add(game.did)
    return Run(file, recorded_games, players, edition, whole)


def seconds(rows: Sequence[EpisodeRow]) -> float | None:
    """Return the time from the first start of some episodes to the last end, if there is one."""
    started = min((row.started for row in rows if row.started), default=None)
    ended = max((row.ended for row in rows if row.ended), default=None)
    if started is None or ended is None:
        return None
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds()


def filled_in(broken: int, decisions: int) -> Fraction:
    """Return the share of decisions that the rules filled in; beyond `MARK` a game is marked."""
    return Fraction(broken, decisions) if decisions else Fraction(0)
