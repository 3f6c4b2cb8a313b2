"""What a report needs from a run's file, in arrays and plain values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from llm_games.baselines.deviation import deviation
from llm_games.baselines.players import PLAYERS
from llm_games.benchmarks.papers.gamma_bench.scores import filled_in, score_episode
from llm_games.benchmarks.runs.records import AttemptRow, DecisionRow, EpisodeRow, Records
from llm_games.registry import rulebook
from llm_games.rulebook import Array, Rulebook

TINY = "tiny"
"""The embedded model: as a player, and as its own server calls it."""


@dataclass
class Player:
    """One player of a run and what it did, over all its seats.

    Attributes:
        name: how the run calls it.
        spec: what it is, see `llm_games.baselines.players`.
        model: the models' names as the servers gave them.
        decisions, filled: decisions made, and those that the rules filled in.
        outcomes: how its completions were read, those that were to be moves.
        others: the same of its other completions, such as plans, by kind.
        tokens_in, tokens_out: as the servers counted them.
        cost: in the currency of the run's prices; 0 for models without one.
        latencies: seconds of each call.
    """

    name: str
    spec: str
    model: str = ""
    decisions: int = 0
    filled: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    others: dict[str, Counter[str]] = field(default_factory=dict)
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    latencies: list[float] = field(default_factory=list)

    def read(self, kind: str) -> Counter[str]:
        """Return how its completions of a kind were read, to be counted on."""
        if kind == "move":
            return self.outcomes
        return self.others.setdefault(kind, Counter())

    @property
    def kind(self) -> str:
        """What the player is, without the value after the colon."""
        return self.spec.partition(":")[0]

    @property
    def language_model(self) -> bool:
        """Whether it is a language model of its own, and no reference such as the embedded one."""
        entry = PLAYERS.get(self.kind)
        return bool(entry and entry.model) and TINY not in (self.kind, self.model)


@dataclass(frozen=True)
class Episode:
    """One run of a game.

    Attributes:
        number: within its game, from 0.
        rules: as its players sat.
        seats: the players' names by seat.
        status: ``pending``, ``running``, ``done`` or ``void``.
        reason: why it is void.
        records: what happened, step by step.
        rewards: float64 ``(steps, players)``.
        decisions, filled: decisions made, and those that the rules filled in.
        calls, tokens_in, tokens_out: completions asked for, and what the servers counted.
        cost: in the currency of the run's prices.
        waited: seconds of all its calls together.
        seconds: from its start to its end; None if it has none.
    """

    number: int
    rules: Rulebook
    seats: list[str]
    status: str
    reason: str | None
    records: list[dict[str, Any]]
    rewards: Array
    decisions: int
    filled: int
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float
    waited: float
    seconds: float | None

    def of(self, name: str) -> list[int]:
        """Return the seats of a player."""
        return [seat for seat, sitting in enumerate(self.seats) if sitting == name]


@dataclass(frozen=True)
class Table:
    """One of a run's games: its rules, its players in their order, and its episodes.

    Where players change seats, `rules` and `seats` are those of the configuration and an episode
    has its own.

    `change` is the entry of the run's ``vary`` that it was played with.
    """

    label: str
    rules: Rulebook
    params: dict[str, Any]
    seats: list[str]
    episodes: list[Episode]
    change: dict[str, Any] = field(default_factory=dict)

    @property
    def setting(self) -> str:
        """What is particular about it, in words."""
        return self.label.removeprefix(self.rules.name).strip(", ") or "default"

    @property
    def played(self) -> list[Episode]:
        """The episodes to draw: all that have begun and are not void."""
        return [e for e in self.episodes if e.records and e.status != "void"]

    @property
    def done(self) -> list[Episode]:
        """The episodes that count."""
        return [e for e in self.episodes if e.status == "done"]

    def count(self, status: str) -> int:
        """Return how many episodes have this status."""
        return sum(e.status == status for e in self.episodes)

    @property
    def filled(self) -> Fraction:
        """The largest share of filled-in decisions in a run."""
        shares = (filled_in(e.filled, e.decisions) for e in self.played)
        return max(shares, default=Fraction(0))

    def scores(self, edition: str = "corrected") -> list[float]:
        """Return the scores of the episodes that have one, in their order."""
        found = (score_episode(e.rules, e.records, edition) for e in self.done)
        return [score for score in found if score is not None]

    def stack(self, key: str) -> Array:
        """Return one entry of all records of `played`, ``(all steps, …)``."""
        return np.array([record[key] for e in self.played for record in e.records])


@dataclass(frozen=True)
class Run:
    """One file: its configuration, games and players (by name).

    `seconds`: from the first start of an episode to the last end; None before that.
    """

    path: Path
    title: str
    package: str
    created: str
    config: dict[str, Any]
    tables: list[Table]
    players: dict[str, Player]
    seconds: float | None

    @property
    def priced(self) -> bool:
        """Whether the run has prices, so that costs mean something."""
        return bool(self.config.get("prices"))

    @property
    def edition(self) -> str:
        """The edition of the scores that the run asks for."""
        return str(self.config.get("scoring", "corrected"))

    def by_game(self) -> dict[str, list[Table]]:
        """Return the tables of each game."""
        found: dict[str, list[Table]] = {}
        for table in self.tables:
            found.setdefault(table.rules.name, []).append(table)
        return found

    @property
    def heading(self) -> str:
        """What tells it from other runs on a page."""
        return f"{self.title} ({self.path.stem})"

    @property
    def episodes(self) -> list[Episode]:
        """All episodes of all games."""
        return [episode for table in self.tables for episode in table.episodes]


def load(path: Path) -> Run:
    """Read a run, also an unfinished one.

    Raises:
        StoreError: the file is not a run that can be read.
    """
    with Records.open_readonly(path) as records:
        players: dict[str, Player] = {}
        planned = [seat for game in records.config.get("games", []) for seat in game["seats"]]
        prices = records.config.get("prices") or {}
        changes = {g.get("label"): g.get("change", {}) for g in records.config.get("games", [])}
        specs = {seat["name"]: seat["player"] for seat in planned}
        tables = []
        rows = records.episodes()
        for game in records.games():
            for name in game.seats:
                players.setdefault(name, Player(name, specs.get(name, name)))
            mine = [row for row in rows if row.game.id == game.id]
            episodes = [_episode(records, row, players, prices) for row in mine]
            rules = rulebook(game.game, **game.params)
            change = changes.get(game.label, {})
            tables.append(Table(game.label, rules, game.params, game.seats, episodes, change))
        return Run(
            path,
            records.title,
            records.package,
            records.created,
            records.config,
            tables,
            players,
            _seconds(rows),
        )


def _cost(attempt: AttemptRow, prices: dict[str, dict[str, float]]) -> float:
    """Return what a completion cost by the run's prices of a million tokens, by model."""
    price = prices.get(attempt.model, {})
    paid = attempt.tokens_in * price.get("input", 0) + attempt.tokens_out * price.get("output", 0)
    return paid / 1e6


def _episode(
    records: Records,
    row: EpisodeRow,
    players: dict[str, Player],
    prices: dict[str, dict[str, float]],
) -> Episode:
    steps, decisions = records.steps(row.id), records.decisions(row.id)
    seats = row.seats
    for made in decisions:
        _count(players[seats[made.seat]], made)
    attempts = records.attempts(row.id)
    for attempt in attempts:
        player = players[seats[attempt.seat]]
        player.read(attempt.kind)[attempt.outcome or "unread"] += 1
        player.tokens_in += attempt.tokens_in
        player.tokens_out += attempt.tokens_out
        player.cost += _cost(attempt, prices)
        player.latencies.append(attempt.latency)
        player.model = player.model or attempt.model
    return Episode(
        row.number,
        row.rules(),
        seats,
        row.status,
        row.reason,
        [step.record for step in steps],
        np.array([step.rewards for step in steps], np.float64).reshape(-1, len(seats)),
        len(decisions),
        sum(made.broke for made in decisions),
        len(attempts),
        sum(attempt.tokens_in for attempt in attempts),
        sum(attempt.tokens_out for attempt in attempts),
        sum(_cost(attempt, prices) for attempt in attempts),
        sum(attempt.latency for attempt in attempts),
        _seconds([row]),
    )


def _count(player: Player, made: DecisionRow) -> None:
    player.decisions += 1
    player.filled += made.broke


def _seconds(rows: list[EpisodeRow]) -> float | None:
    started = [datetime.fromisoformat(row.started) for row in rows if row.started]
    ended = [datetime.fromisoformat(row.ended) for row in rows if row.ended]
    return (max(ended) - min(started)).total_seconds() if ended and started else None


def regret(episode: Episode) -> Array:
    """Return the regrets in an episode, float64 ``(players, steps)``."""
    names = episode.records[0]
    steps = {name: np.stack([r[name] for r in episode.records], axis=-1) for name in names}
    return deviation(episode.rules, steps).regret
