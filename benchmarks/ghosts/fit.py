"""What a player of a recorded run saw and did, found by playing its episodes again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from llm_games.benchmarks.ghosts.answer_classes import VOTES, AnswerLimits, Answers, Plan
from llm_games.benchmarks.ghosts.history import GhostMemory
from llm_games.benchmarks.ghosts.mixture import FitData
from llm_games.benchmarks.record.editions import UNNAMED, OtherEdition, maker
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import DecisionRow, EpisodeRow, Plain, move_of
from llm_games.benchmarks.run.plan import PlannedGame, PlannedSeat
from llm_games.benchmarks.run.resume import planned
from llm_games.errors import BadParameter, UnknownName, unknown
from llm_games.noise import Noise
from llm_games.registry import game_class
from llm_games.rulebook import Array, Rulebook, actions_of
from llm_games.table import Table
from llm_games.wrappers.seats import plain

DECIDED = "action", "key", "here"  # what `Played` has for each decision beside `Rows`
BESIDE = "failed_reply"  # a parameter that no legal answer hangs on


@dataclass
class ImitationData:
    """Decisions of a player.

    `action` are int64, of plans `VOTES` + their index in `plans`; `key` and `here` are those of
    `GhostMemory` before the decision. `left_out` counts decisions without a legal answer.
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
        """These decisions and others, each of which has this weight."""
        plans = [*dict.fromkeys([*self.plans, *other.plans])]
        moved = np.array([*range(VOTES), *(VOTES + plans.index(plan) for plan in other.plans)])

        def joint(classes: Array) -> Array:
            return classes if self.game.division is None else moved[classes]

        rows = other.rows._replace(
            last=np.where(other.rows.last < 0, -1, joint(other.rows.last)),
            answer=joint(other.rows.answer),
            episode=other.rows.episode + self.rows.episode.max() + 1,
            weight=np.full(len(other.action), weight),
        )
        return ImitationData(
            game=self.game,
            rows=FitData(*(np.concatenate(pair) for pair in zip(self.rows, rows, strict=True))),
            action=np.concatenate([self.action, joint(other.action)]),
            key=np.concatenate([self.key, other.key]),
            here=np.concatenate([self.here, other.here]),
            plans=plans,
            seats=sorted({*self.seats, *other.seats}),
            left_out=self.left_out + other.left_out,
        )

    @property
    def answers(self) -> Answers:
        return Answers(self.game, self.plans)

    @property
    def episodes(self) -> int:
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


def alike(game: Rulebook, other: Rulebook) -> bool:
    """Answers to one game are answers to the other."""
    return type(game) is type(other) and not differing(game, other)


def differing(first: Rulebook, other: Rulebook) -> list[str]:
    """Names of the parameters in which two rulebooks of a game differ, wherever players sit."""

    def value(game: Rulebook, name: str) -> Any:
        parameter = getattr(game, name)
        moves = name in game.personal and isinstance(parameter, tuple)
        return sorted(parameter) if moves else parameter

    names = [field.name for field in fields(first) if field.name != BESIDE]
    return [name for name in names if value(first, name) != value(other, name)]


def values_of(names: Sequence[str], there: Rulebook, here: Rulebook) -> str:
    pairs = ((name, getattr(there, name), getattr(here, name)) for name in names)
    return "; ".join(f"{name} is {old!r} there, {new!r} here" for name, old, new in pairs)


def find(path: Path, game: Rulebook | None, seat: int | None, label: str = "") -> GhostSource:
    """Find a player in a run's record: who sat at `seat`, as configured, in a game.

    Raises UnknownName: there is no game of this label, or no such seat; BadParameter: the run has
    no such game or parameters, or it must be said which is meant.
    """
    with Records.open_readonly(path) as records:
        games = planned(records).games
    if label and label not in {match.label for match in games}:
        raise unknown(f"game in {path} called", label, (match.label for match in games))
    chosen = [match for match in games if label in ("", match.label)]
    fit = [match for match in chosen if game is None or alike(match.rules().core, game.core)]
    if not fit:
        assert game is not None
        raise BadParameter(f"no ghost for {game.name} in {path}: {_other(chosen, game.core)}")
    if len(fit) > 1:
        labels = ", ".join(match.label for match in fit)
        raise BadParameter(f"{path} has several such games: {labels}; write {path}#LABEL#SEAT")
    [match] = fit
    names = ", ".join(f"{i} {seat.name}" for i, seat in enumerate(match.seats))
    if seat is None and len({each.key for each in match.seats}) > 1:
        raise BadParameter(f"say whose ghost of {path}: {path}#SEAT, one of {names}")
    if not 0 <= (seat or 0) < len(match.seats):
        raise UnknownName(f"{path} has no seat {seat} in {match.label}; its seats are {names}")
    player = match.seats[seat or 0]
    places = [i for i, each in enumerate(match.seats) if each.key == player.key]
    return GhostSource(path, match.label, match.rules().core, match.params, player, places)


def _other(games: Sequence[PlannedGame], game: Rulebook) -> str:
    same = [each.rules().core for each in games if game_class(each.game) is type(game)]
    if not same:
        names = ", ".join(each.game for each in games)
        return f"it is a record of {names}; record a run of this one"
    differences = values_of(differing(same[0], game), same[0], game)
    return f"{differences}; seat it with its own parameters, or record a run with these"


def played(source: GhostSource) -> ImitationData:
    """Play a record again and return what its player saw and did; OtherEdition, BadParameter."""
    with Records.open_readonly(source.path) as records:
        rows = [row for row in records.episodes() if row.game.label == source.label]
        rows = [row for row in rows if row.status in ("done", "running")]
        check_rules(records, rows)
        reading = _GhostReading(source)
        for row in rows:
            reading.add(row, records)
    return reading.whole()


def check_rules(records: Records, rows: Sequence[EpisodeRow]) -> None:
    """OtherEdition: the rules of these episodes have changed since."""
    for row in rows:
        old, new = (row.edition or UNNAMED)["rules"], game_class(row.game.game).edition
        if old != new:
            raise OtherEdition(
                f"{records.path} was made by {maker(records.package)}: the rules of "
                f"{row.game.game} have changed since (edition {old}, here {new}), so that what its "
                f"players saw cannot be found again; record another run, or use "
                "that llm-games"
            )


class _GhostReading:
    """Collects decisions episode by episode."""

    def __init__(self, source: GhostSource) -> None:
        self.source, self.plans = source, dict[Plan, int]()
        self.parts: list[tuple[Any, ...]] = []
        self.seats: set[int] = set()
        self.left_out = self.number = 0

    def add(self, row: EpisodeRow, records: Records) -> None:
        decisions: dict[int, dict[int, DecisionRow]] = {}
        for decision in records.decisions(row.id):
            decisions.setdefault(decision.step, {})[decision.seat] = decision
        rules = row.rules()
        table = Table(rules.core)  # what was said changes nothing of the game
        table.reset(row.seed, rules.core_chance(row.given))
        noise, answers = Noise(row.seed), Answers(table.game)
        mine = [i for i, position in enumerate(row.seating) if position in self.source.places]
        seeds = [noise.of("seat", seat).seed() for seat in range(table.game.players)]
        memory = GhostMemory.new(np.array(seeds, np.int64))
        self.seats |= {*mine}
        for step in (step for step in records.steps(row.id) if not step.talk):
            by_seat = decisions.get(step.step, {})
            recorded = [by_seat[seat] for seat in mine if seat in by_seat]
            legal = [d for d in recorded if d.action is not None and not d.broke]
            self.left_out += len(recorded) - len(legal)
            if legal:
                memory = self._decided(table, answers, memory, legal)
            moves = {seat: move_of(decision.action) for seat, decision in by_seat.items()}
            if plain(table.step(moves)) != step.record:
                raise BadParameter(
                    f"{self.source.path}: {row.game.label}, episode {row.number}, step {step.step} "
                    "plays otherwise than it was recorded; see llm-games replay"
                )
        self.number += 1

    def _decided(
        self, table: Table, answers: Answers, memory: GhostMemory, legal: Sequence[DecisionRow]
    ) -> GhostMemory:
        sight, cells = table.ready(), (np.array([decision.seat for decision in legal]),)
        numbers, limits = sight.numbers[cells], AnswerLimits.of(sight, cells)
        mine = memory.take(cells).after_observation(numbers)
        actions = actions_of([self._number(decision.action) for decision in legal])
        classes = answers.classes(actions, limits)
        features, episode = mine.features(numbers, answers), np.full(len(legal), self.number)
        self.parts.append((features, mine.last, classes, episode, actions, mine.key, mine.here))
        return memory.put(cells, mine.answered(classes, actions, answers))

    def _number(self, action: Any) -> int:
        if isinstance(action, list):
            return VOTES + self.plans.setdefault(tuple(action), len(self.plans))
        if not isinstance(action, int):
            raise BadParameter(f"{self.source.path}: a ghost plays moves only, not {action!r}")
        return action

    def whole(self) -> ImitationData:
        source = self.source
        if not self.parts:
            raise BadParameter(f"{source.path}: {source.seat.name} has decided nothing legal")
        columns = [np.concatenate(parts) for parts in zip(*self.parts, strict=True)]
        features, last, answer, episode, action, key, here = columns
        return ImitationData(
            game=source.game,
            rows=FitData(features, last, answer, episode, np.ones(len(action))),
            action=action,
            key=key,
            here=here,
            plans=[*self.plans],
            seats=sorted(self.seats),
            left_out=self.left_out,
        )
