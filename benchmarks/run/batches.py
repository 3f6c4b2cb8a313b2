"""Tables that ask nobody, played together: their rows are those of one table after another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from llm_games.baselines.rules import RulePolicy
from llm_games.benchmarks.record.schema import DecisionRow, EpisodeRow, StepRow
from llm_games.benchmarks.record.store import plain_action
from llm_games.benchmarks.run.plan import PlannedGame
from llm_games.rulebook import Array, Outcome, Rulebook
from llm_games.table_batch import Tables
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.policy import Policy

DECISIONS = 50_000
"""Decisions of a batch, at most: their rows are in memory, and nothing is saved before its end."""
UNLIMITED = 1000  # steps that a game is reckoned to have that has no limit


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
        steps = self.max_steps or self.rules.length() or UNLIMITED
        return DECISIONS // (steps * self.rules.players)

    def play(self) -> Iterator[tuple[EpisodeRow, StepRow, list[DecisionRow]]]:
        """Each step of each episode, to their ends."""
        policies = list({id(p): p for seated in self.policies for p in seated}.values())
        numbers = {id(policy): number for number, policy in enumerate(policies)}
        sits = np.array([[numbers[id(policy)] for policy in seated] for seated in self.policies]).T
        tables = Tables(self.rules, len(self.episodes))
        tables.reset([row.seed for row in self.episodes], given=self.episodes[0].given)
        seats = BatchSeats(tables, policies, sits)
        seats.start(np.ones(len(self.episodes), np.bool_))
        step = 0
        while not tables.state.over.all() and (self.max_steps is None or step < self.max_steps):
            over, asked = tables.state.over, tables.ready().turn
            actions = seats.ask_now(asked)
            outcome = tables.step(actions)
            seats.hear(~over)
            rows = _step_rows(step, asked, actions, outcome, ~over)
            for table, happened, decisions in rows:
                yield self.episodes[table], happened, decisions
            step += 1
        self.over = tables.state.over


def _step_rows(
    number: int, asked: Array, actions: Array, outcome: Outcome, playing: Array
) -> Iterator[tuple[int, StepRow, list[DecisionRow]]]:
    """Rows of one step at the tables `playing`, bool (tables,)."""
    turns, moves = _by_table(asked), _by_table(actions)
    rewards, broke = _by_table(outcome.rewards), _by_table(outcome.broke)
    finished = _by_table(outcome.finished)
    record = {name: _by_table(np.asarray(array)) for name, array in outcome.record.items()}
    for table in np.flatnonzero(playing).tolist():
        seats = [seat for seat, turn in enumerate(turns[table]) if turn]
        decisions = [
            DecisionRow(
                step=number,
                seat=seat,
                action=plain_action(moves[table][seat]),
                outcome="valid",
                broke=broke[table][seat],
                reward=rewards[table][seat],
            )
            for seat in seats
        ]
        step = StepRow(
            step=number,
            asked=seats,
            record={name: lists[table] for name, lists in record.items()},
            rewards=rewards[table],
            finished=[seat for seat, gone in enumerate(finished[table]) if gone],
        )
        yield table, step.thin(), decisions


def _by_table(array: Array) -> list[Any]:
    return np.moveaxis(array, -1, 0).tolist()


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
