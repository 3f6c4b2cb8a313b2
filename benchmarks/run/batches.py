"""Tables that ask nobody, played together: their rows are those of one table after another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import add
from typing import Any

import numpy as np

from llm_games.baselines.rules import RulePolicy
from llm_games.benchmarks.record.schema import TABLES, EpisodeRow, StepRow
from llm_games.benchmarks.run.plan import PlannedGame
from llm_games.questions import MISSING
from llm_games.rulebook import Array, Outcome, Rulebook
from llm_games.table_batch import Tables
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.policy import Policy

DECISIONS = 50_000
"""Decisions of a batch, at most: their rows are in memory, and nothing is saved before its end."""


@dataclass
class Batch:
    """Pending episodes by the same rules, with rule players by seat; `over`: which have ended."""

    rules: Rulebook
    max_steps: int | None
    episodes: list[EpisodeRow] = field(default_factory=list)
    policies: list[list[Policy]] = field(default_factory=list)
    over: Array = field(default_factory=lambda: np.zeros(0, np.bool_))

    @property
    def size(self) -> int:
        """Episodes that it takes, at most."""
        limits = self.max_steps, self.rules.length()  # one of them is there
        return DECISIONS // (min(filter(None, limits)) * self.rules.players)

    def play(self) -> Iterator[StepColumns]:
        """All steps of all episodes, to their ends."""
        policies = list({id(p): p for seated in self.policies for p in seated}.values())
        numbers = {id(policy): number for number, policy in enumerate(policies)}
        sits = np.array([[numbers[id(policy)] for policy in seated] for seated in self.policies]).T
        tables = Tables(self.rules, len(self.episodes))
        tables.reset([row.seed for row in self.episodes], given=self.episodes[0].given)
        seats = BatchSeats(tables, policies, sits)
        seats.start(np.ones(len(self.episodes), np.bool_))
        step = 0
        while not tables.state.over.all() and (self.max_steps is None or step < self.max_steps):
            playing, asked = ~tables.state.over, tables.ready().turn
            actions = seats.ask_now(asked)
            outcome = tables.step(actions)
            seats.hear(playing)
            yield StepColumns(step, asked & playing, actions, outcome, np.flatnonzero(playing))
            step += 1
        self.over = tables.state.over


@dataclass(frozen=True)
class StepColumns:
    """One step of many tables: `playing` has their indexes; `asked`, `actions`: by seat, table."""

    number: int
    asked: Array
    actions: Array
    outcome: Outcome
    playing: Array

    def decisions(self, ids: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """Rows of decisions as they are written; `ids` are of the episodes, by table."""
        tables, seats = np.nonzero(self.asked.T)
        of = seats, tables
        actions, broke = self.actions[of].tolist(), self.outcome.broke[of].astype(int).tolist()
        texts = ["null" if action == MISSING else str(action) for action in actions]
        episodes, rewards = [ids[table] for table in tables.tolist()], self.outcome.rewards[of]
        cells = zip(episodes, seats.tolist(), texts, broke, rewards.tolist(), strict=True)
        for episode, seat, text, fault, reward in cells:
            yield episode, self.number, seat, text, "valid", fault, reward, ""

    def steps(self, ids: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """The same of steps."""
        tables = self.playing.tolist()
        records = {name: self._here(array) for name, array in self.outcome.record.items()}
        rewards = self._here(self.outcome.rewards)
        asked, finished = self._here(self.asked), self._here(self.outcome.finished)
        seats, out = _chosen(asked), _chosen(finished)
        in_little = 2 * asked.sum(axis=1) < len(self.asked)
        names = [f"{json.dumps(name)}: " for name in records]
        columns = zip(_texts(rewards), *map(_texts, records.values()), strict=True)
        for n, (table, (paid, *values)) in enumerate(zip(tables, columns, strict=True)):
            if not in_little[n]:
                record = ", ".join(map(add, names, values))
                yield ids[table], self.number, seats[n], f"{{{record}}}", paid, out[n]
                continue
            plain = {name: values[n].tolist() for name, values in records.items()}
            both = json.loads(seats[n]), json.loads(out[n])
            step = StepRow(self.number, both[0], plain, rewards[n].tolist(), both[1])
            yield ids[table], *TABLES[StepRow].written(step.thin()).values()

    def _here(self, array: Any) -> Array:
        """Of the tables that play, which come first."""
        return np.moveaxis(np.asarray(array), -1, 0)[self.playing]


def _chosen(cells: Array) -> list[str]:
    """The seats that are true, of each table, as a list is written."""
    written = cache(lambda row: json.dumps([seat for seat, yes in enumerate(row) if yes]))
    return [written(tuple(row)) for row in cells.tolist()]


def _texts(values: Array) -> list[str]:
    """Each value as JSON, where all are numbers by one call."""
    if not values.size or values.dtype.kind not in "biuf":
        return [*map(json.dumps, values.tolist())]
    depth = values.ndim - 1
    opened, closed = "[" * depth, "]" * depth
    whole = json.dumps(values.tolist())[1 + depth : -1 - depth]
    return [f"{opened}{text}{closed}" for text in whole.split(f"{closed}, {opened}")]


def batches(
    episodes: Iterable[EpisodeRow], games: Mapping[str, PlannedGame], players: Mapping[str, Policy]
) -> Iterator[Batch]:
    """Yield batches of those pending episodes that ask nobody; by label and key, as in a run."""
    rules: dict[str, Rulebook] = {}  # by all that makes tables alike
    settings: dict[tuple[int, tuple[int, ...]], str] = {}  # by game and seating
    collecting: dict[str, Batch] = {}
    for row in episodes:
        game = games[row.game.label]
        policies = [players[game.seats[position].key] for position in row.seating]
        follow = all(isinstance(policy, RulePolicy) for policy in policies)
        if row.status != "pending" or game.series or game.branch or not follow:
            continue
        table = row.game.id, tuple(row.seating)
        if table not in settings:
            alike = [row.game.game, row.params, row.given, row.edition, game.max_steps]
            settings[table] = json.dumps(alike, sort_keys=True)
            rules.setdefault(settings[table], row.rules())
        setting = settings[table]
        batch = collecting.setdefault(setting, Batch(rules[setting], game.max_steps))
        if batch.size < 2 or not can_batch(batch.rules):
            continue
        batch.episodes.append(row)
        batch.policies.append(policies)
        if len(batch.episodes) == batch.size:
            yield collecting.pop(setting)
    yield from (batch for batch in collecting.values() if batch.episodes)


def can_batch(rules: Rulebook) -> bool:
    """Moves are numbers by seat; a table's rows, cut out, are as long as those of it alone."""
    numbers = rules.core is rules and rules.division is None
    return numbers and rules.failed_reply == "fallback" and not rules.uneven
