"""The same episode in two runs, from one seed: until moves part, seats decide in one situation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.regret import has_deviation
from llm_games.benchmarks.judge.compare import twin
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame, games
from llm_games.benchmarks.record.schema import DecisionRow


class Pair(NamedTuple):
    """An episode of run A, and the one of B with its label, number, seed and seating."""

    a: RecordedEpisode
    b: RecordedEpisode

    @property
    def label(self) -> str:
        return self.a.row.game.label

    @property
    def number(self) -> int:
        return self.a.row.number

    @property
    def seed(self) -> int:
        return self.a.row.seed


class Did(NamedTuple):
    """What a seat did in a step of one run; `regret` is in hindsight, None where not defined."""

    step: int
    action: Any
    outcome: str
    reward: float
    regret: float | None


class Both(NamedTuple):
    """One seat in both runs; None where it was not asked, or the episode was over."""

    seat: int
    a: Did | None
    b: Did | None

    @property
    def differs(self) -> bool:
        """Whether the two sides are not known to have moved alike."""
        return self.a is None or self.b is None or self.a.action != self.b.action


class ComparedMove(NamedTuple):
    """One move in both runs, counted from 1 without talk; `together`: all before were alike."""

    number: int
    seats: list[Both]
    together: bool

    @property
    def differs(self) -> bool:
        return any(seat.differs for seat in self.seats)


def pairs(a: Records, b: Records) -> Iterator[Pair]:
    """Yield the episodes of two runs that met the same chance, game by game; [] if none did."""
    others: dict[str, RecordedGame] = {game.label: game for game in games(b)}
    for game in games(a):
        other = others.get(game.label)
        rows = {row.number: row for row in other.rows} if other else {}
        for row in game.rows:
            if other and (counterpart := twin(row, rows)):
                yield Pair(game.shelf.episode(row), other.shelf.episode(counterpart))


def moves(pair: Pair) -> Iterator[ComparedMove]:
    sides, together = [_moves(episode) for episode in pair], True
    for index in range(max(map(len, sides))):
        mine, theirs = (side[index] if index < len(side) else {} for side in sides)
        asked = sorted(mine.keys() | theirs.keys())
        decisions = [Both(seat, mine.get(seat), theirs.get(seat)) for seat in asked]
        move = ComparedMove(index + 1, decisions, together)
        yield move
        together = together and not move.differs


def parted(pair: Pair) -> ComparedMove | None:
    """Return the first move in which somebody did otherwise; None: all was the same."""
    return next((move for move in moves(pair) if move.differs), None)


def _moves(episode: RecordedEpisode) -> list[dict[int, Did]]:
    decisions_by_step: dict[int, list[DecisionRow]] = {}
    for decision in episode.decisions():
        decisions_by_step.setdefault(decision.step, []).append(decision)
    regrets: Any = np.full((len(episode.steps), len(episode.seats)), math.nan)
    if has_deviation(episode.row.game.game):  # else no theory of the game defines any
        regrets = episode.regret().T
    moves = []
    for step, lost_by_seat in zip(episode.steps, regrets.tolist(), strict=True):
        did = {}
        for row in decisions_by_step.get(step.step, ()):
            lost = lost_by_seat[row.seat]
            regret = None if math.isnan(lost) else lost
            did[row.seat] = Did(row.step, row.action, row.outcome, row.reward, regret)
        moves.append(did)
    return moves
