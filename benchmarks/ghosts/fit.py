"""What a player of a recorded run saw and did, found by playing its episodes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from llm_games.benchmarks.ghosts.answer_classes import VOTES, AnswerLimits, Answers, Plan
from llm_games.benchmarks.ghosts.history import GhostMemory
from llm_games.benchmarks.ghosts.mixture import FitData
from llm_games.benchmarks.record.editions import UNNAMED, OtherEdition, maker
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.rows import DecisionRow, EpisodeRow, Plain, StepRow, move_of
from llm_games.benchmarks.run.conduct import planned
from llm_games.benchmarks.run.plan import PlannedGame, PlannedSeat
from llm_games.errors import BadParameter, UnknownName, unknown
from llm_games.noise import Noise
from llm_games.registry import game_class
from llm_games.rulebook import Array, Rulebook, actions_of
from llm_games.table import Table
from llm_games.wrappers.seats import plain

DECIDED = "action", "key", "here"
"""What `Played` has for each decision beside `Rows`."""
BESIDE = "failed_reply"  # a parameter that no legal answer hangs on


@dataclass
class ImitationData:
    """Decisions of a player: what a row of them has beside `Rows`, and what they are of.

    `action` are int64, of plans `VOTES` + their place in `plans`; `key` and `here` as of `Memory`,
    before the decision. `left_out` counts decisions without a legal answer.
    """

    game: Rulebook
    rows: FitData
    action: Array
    key: Array
    here: Array
    plans: list[Plan]
    seats: list[int]
    left_out: int = 0

    def plus(self, other: ImitationData, weight: float) -> ImitationData:
        """Return these and other decisions, each of which counts so much."""
        plans = [*dict.fromkeys([*self.plans, *other.plans])]
        moved = np.array([*range(VOTES), *(VOTES + plans.index(plan) for plan in other.plans)])

        def now(classes: Array) -> Array:
            return classes if self.game.division is None else moved[classes]

        rows = other.rows._replace(
            last=np.where(other.rows.last < 0, -1, now(other.rows.last)),
            answer=now(other.rows.answer),
            episode=other.rows.episode + self.rows.episode.max() + 1,
            weight=np.full(len(other.action), weight),
        )
        return ImitationData(
            self.game,
            FitData(*(np.concatenate(pair) for pair in zip(self.rows, rows, strict=True))),
            np.concatenate([self.action, now(other.action)]),
            np.concatenate([self.key, other.key]),
            np.concatenate([self.here, other.here]),
            plans,
            sorted({*self.seats, *other.seats}),
            self.left_out + other.left_out,
        )

    @property
    def answers(self) -> Answers:
        """The classes of its answers."""
        return Answers(self.game, self.plans)

    @property
    def episodes(self) -> int:
        """How many episodes they are of."""
        return len(np.unique(self.rows.episode))


@dataclass(frozen=True)
class GhostSource:
    """A player in a recorded run: the `label` of its game there, and its `seat` as configured."""

    path: Path
    label: str
    game: Rulebook
    params: Plain
    seat: PlannedSeat
    places: list[int]  # all where this player sits, as configured


def alike(one: Rulebook, other: Rulebook) -> bool:
    """Return whether answers to one game are answers to another."""
    return type(one) is type(other) and not differing(one, other)


def differing(one: Rulebook, other: Rulebook) -> list[str]:
    """Return the parameters in which two rulebooks of a game differ, wherever players sit."""

    def value(game: Rulebook, name: str) -> Any:
        found = getattr(game, name)
        moves = name in game.personal and isinstance(found, tuple)
        return sorted(found) if moves else found

    names = [field.name for field in fields(one) if field.name != BESIDE]
    return [name for name in names if value(one, name) != value(other, name)]


def values_of(names: Sequence[str], there: Rulebook, here: Rulebook) -> str:
    """Say what parameters are in a record and here."""
    pairs = ((name, getattr(there, name), getattr(here, name)) for name in names)
    return "; ".join(f"{name} is {old!r} there, {new!r} here" for name, old, new in pairs)


def find(path: Path, game: Rulebook | None, seat: int | None, label: str = "") -> GhostSource:
    """Find a player in a run's record: who sat at `seat`, as configured, in a game.

    Raises:
        UnknownName: there is no game of this label, or no such seat.
        BadParameter: the run has no such game or parameters, or it must be said which is meant.
    """
    with Records.open_readonly(path) as records:
        games = planned(records).games
    if label and label not in {one.label for one in games}:
        raise unknown(f"game in {path} called", label, (one.label for one in games))
    chosen = [one for one in games if label in ("", one.label)]
    fit = [one for one in chosen if game is None or alike(one.rules().core, game.core)]
    if not fit:
        assert game is not None
        raise BadParameter(f"no ghost for {game.name} in {path}: {_other(chosen, game.core)}")
    if len(fit) > 1:
        labels = ", ".join(one.label for one in fit)
        raise BadParameter(f"{path} has several such games: {labels}; write {path}#LABEL#SEAT")
    [one] = fit
    names = ", ".join(f"{i} {seat.name}" for i, seat in enumerate(one.seats))
    if seat is None and len({each.key for each in one.seats}) > 1:
        raise BadParameter(f"say whose ghost of {path}: {path}#SEAT, one of {names}")
    if not 0 <= (seat or 0) < len(one.seats):
        raise UnknownName(f"{path} has no seat {seat} in {one.label}; its seats are {names}")
    own = one.seats[seat or 0]
    places = [i for i, each in enumerate(one.seats) if each.key == own.key]
    return GhostSource(path, one.label, one.rules().core, one.params, own, places)


def _other(games: Sequence[PlannedGame], game: Rulebook) -> str:
    """Say in what the games of a run are others."""
    same = [one.rules().core for one in games if game_class(one.game) is type(game)]
    if not same:
        return f"it is a record of {', '.join(one.game for one in games)}; record a run of this one"
    said = values_of(differing(same[0], game), same[0], game)
    return f"{said}; seat it with its own parameters, or record a run with these"


def played(found: GhostSource) -> ImitationData:
    """Play the episodes of a record again and return what its player saw and did.

    Raises:
        OtherEdition: the rules have changed since.
        BadParameter: playing again gives something else than was recorded.
    """
    with Records.open_readonly(found.path) as records:
        rows = [row for row in records.episodes() if row.game.label == found.label]
        rows = [row for row in rows if row.status in ("done", "running")]
        check_rules(records, rows)
        reading = _GhostReading(found)
        for row in rows:
            reading.episode(row, records.steps(row.id), _by_step(records.decisions(row.id)))
    return reading.whole()


def check_rules(records: Records, rows: Sequence[EpisodeRow]) -> None:
    """Check that episodes can be played again by the rules of today, or raise OtherEdition."""
    for row in rows:
        old, new = (row.edition or UNNAMED)["rules"], game_class(row.game.game).edition
        if old != new:
            raise OtherEdition(
                f"{records.path} was made by {maker(records.package)}: the rules of "
                f"{row.game.game} have changed since (edition {old}, here {new}), so that what its "
                f"players saw cannot be found again; record another run, or use "
                "that llm-games"
            )


Made = Mapping[int, DecisionRow]  # the decisions of a step, by seat


def _by_step(decisions: Sequence[DecisionRow]) -> dict[int, dict[int, DecisionRow]]:
    found: dict[int, dict[int, DecisionRow]] = {}
    for made in decisions:
        found.setdefault(made.step, {})[made.seat] = made
    return found


class _GhostReading:
    """Decisions as they are collected, episode by episode."""

    def __init__(self, found: GhostSource) -> None:
        self.found, self.plans = found, dict[Plan, int]()
        self.parts: list[tuple[Any, ...]] = []
        self.seats: set[int] = set()
        self.left_out = self.number = 0

    def episode(self, row: EpisodeRow, steps: Sequence[StepRow], made: Mapping[int, Made]) -> None:
        """Play one again."""
        table = Table(row.rules().core)  # what was said changes nothing of the game
        table.reset(row.seed, row.given)
        noise, answers = Noise(row.seed), Answers(table.game)
        mine = [i for i, place in enumerate(row.seating) if place in self.found.places]
        seeds = [noise.of("seat", seat).seed() for seat in range(table.game.players)]
        memory = GhostMemory.new(np.array(seeds, np.int64))
        self.seats |= {*mine}
        for step in (step for step in steps if not step.talk):
            now = made.get(step.step, {})
            own = [now[seat] for seat in mine if seat in now]
            legal = [d for d in own if d.action is not None and not d.broke]
            self.left_out += len(own) - len(legal)
            if legal:
                memory = self._decided(table, answers, memory, legal)
            moves = {seat: move_of(decision.action) for seat, decision in now.items()}
            if plain(table.step(moves)) != step.record:
                raise BadParameter(
                    f"{self.found.path}: {row.game.label}, episode {row.number}, step {step.step} "
                    "plays otherwise than it was recorded; see llm-games replay"
                )
        self.number += 1

    def _decided(
        self, table: Table, answers: Answers, memory: GhostMemory, legal: Sequence[DecisionRow]
    ) -> GhostMemory:
        sight, cells = table.ready(), (np.array([decision.seat for decision in legal]),)
        numbers, limits = sight.numbers[cells], AnswerLimits.of(sight, cells)
        before = memory.at(cells).met(numbers)
        actions = actions_of([self._number(decision.action) for decision in legal])
        classes = answers.classes(actions, limits)
        seen, episode = before.features(numbers, answers), np.full(len(legal), self.number)
        self.parts.append((seen, before.last, classes, episode, actions, before.key, before.here))
        return memory.put(cells, before.answered(classes, actions, answers))

    def _number(self, action: Any) -> int:
        """Return an action as an integer, a plan by its number."""
        if isinstance(action, list):
            return VOTES + self.plans.setdefault(tuple(action), len(self.plans))
        if not isinstance(action, int):
            raise BadParameter(f"{self.found.path}: a ghost plays moves only, not {action!r}")
        return action

    def whole(self) -> ImitationData:
        """Return all that was collected."""
        if not self.parts:
            raise BadParameter(
                f"{self.found.path}: {self.found.seat.name} has decided nothing legal"
            )
        columns = (np.concatenate(parts) for parts in zip(*self.parts, strict=True))
        seen, last, classes, episode, moves, key, here = columns
        rows = FitData(seen, last, classes, episode, np.ones(len(seen)))
        return ImitationData(
            self.found.game, rows, moves, key, here, [*self.plans], sorted(self.seats),
            self.left_out,
        )  # fmt: skip
