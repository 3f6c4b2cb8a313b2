"""Q-learning with a table: the value of each action at each observation.

Watkins and Dayan, Q-learning, Machine Learning 1992. With ``--every`` one table learns in all seats
of the copies at once; where ``--column seat`` is part of a state, each seat has its own, as the
firms of Calvano and others, AER 110(10), 2020.
"""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from llm_games.arrays import Array
from llm_games.baselines.learner import learners
from llm_games.baselines.training.harness import (
    Evaluation,
    Options,
    Training,
    command,
    flag,
    option,
)
from llm_games.errors import unknown
from llm_games.wrappers.clients.stack import booked, spent
from llm_games.wrappers.learned import LearnedPolicy, Trained
from llm_games.wrappers.tabular_player import QTable
from llm_games.wrappers.team_env import TeamVectorEnv

FIRST = 10**6  # first seed of a training of seed 0; those of two seeds are as far apart


@dataclass(frozen=True, kw_only=True)
class QOptions(Options):
    """Options of Q-learning."""

    column: list[str] = option(
        [], "NAME", "a number of the observation that makes the state; all if none"
    )
    every: bool = flag("learn in all seats; opponents only judge")
    rate: float = option(
        0.01, "X", "least weight of what is new; until then 1 / visits", min=0, max=1
    )
    gamma: float = option(0.99, "X", "discount of later rewards", min=0, max=1)
    begin: float = option(0.0, "X", "value of an action that was never tried")
    explore: float = option(0.5, "X", "share of the steps that explore", min=0, max=1)
    least: float = option(0.02, "X", "share of random moves after that", min=0, max=1)


class QLearning:
    """The algorithm: values, visits, and the games that it learns in."""

    def __init__(self, run: Training, options: QOptions) -> None:
        rules = run.table.rules
        column_names = [*rules.column_index]
        for name in options.column:
            if name not in column_names:
                raise unknown(f"column of {rules.name}", name, column_names)
        columns = np.array([column_names.index(name) for name in options.column or column_names])
        self.games, self.options = games_of(run, options), options
        actions = int(self.games.single_action_space.n)  # type: ignore[attr-defined]
        states = np.zeros((0, len(columns)), np.float32)
        self.table = QTable(columns, states, np.zeros((0, actions)))
        self.visits = np.zeros((0, actions), np.int64)
        self.rng = np.random.default_rng(options.seed)
        self.anew(0)

    def anew(self, step: int) -> None:
        """Start new games, seeded by the options' seed and the step."""
        observations, _ = self.games.reset(seed=FIRST * (self.options.seed + 1) + step)
        self.seen = observations
        self.here = self._places(observations)

    def _places(self, observations: Any) -> Array:
        """Return the indices of the observed states; new ones are added."""
        numbers = observations["observation"] if isinstance(observations, dict) else observations
        places = self.table.add(numbers, self.options.begin)
        new = len(self.table.states) - len(self.visits)
        self.visits = np.pad(self.visits, ((0, new), (0, 0)))
        return places

    def step(self, done: float) -> float:
        """Play a move at all copies, `done` of the training, and learn; return the mean reward."""
        legal = self.games.action_masks()  # type: ignore[attr-defined]
        values = np.where(legal, self.table.values[self.here], -np.inf)
        falls = 1 - done / self.options.explore if self.options.explore else 0.0
        tries = self.rng.random(len(values)) < max(self.options.least, falls)
        tried = np.where(legal, self.rng.random(values.shape), -1).argmax(axis=1)
        actions = np.where(tries, tried, values.argmax(axis=1))
        self.seen, rewards, ended, cut, _ = self.games.step(actions)
        there = self._places(self.seen)
        legal = self.games.action_masks()  # type: ignore[attr-defined]
        best = np.where(legal, self.table.values[there], -np.inf).max(axis=1)
        self._learn(actions, rewards + self.options.gamma * np.where(ended | cut, 0, best))
        self.here = there
        return float(rewards.mean())

    def _learn(self, actions: Array, targets: Array) -> None:
        """Move values towards targets; copies with equal state and action count together."""
        wide = self.table.values.shape[1]
        cells, inverse, counts = np.unique(
            self.here * wide + actions, return_inverse=True, return_counts=True
        )
        means = np.bincount(inverse, targets) / counts
        values, visits = self.table.values.reshape(-1), self.visits.reshape(-1)
        visits[cells] += counts
        weight = np.maximum(counts / visits[cells], 1 - (1 - self.options.rate) ** counts)
        values[cells] += weight * (means - values[cells])

    def player(self) -> LearnedPolicy:
        game = self.games.game  # type: ignore[attr-defined]
        return LearnedPolicy(self.table, trained=Trained.of(game.core), name="tabular_q")

    def save(self, path: Path) -> Path:
        return self.table.save(path, self.games.game)  # type: ignore[attr-defined]


def games_of(run: Training, options: QOptions) -> VectorEnv[Any, Any, Any]:
    """Return the copies: rows of the learner's seat, or of each seat."""
    if options.every:
        return TeamVectorEnv(run.table.rules, options.copies).rows()
    return learners(
        run.table.rules, options.copies, opponents=run.table.opponents, seat=run.table.seat,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )  # fmt: skip


def train(options: QOptions) -> Evaluation:
    with Training("tabular_q", options) as run:
        learner = restored(run, options) if run.state else QLearning(run, options)
        run.saving = lambda: packed(run, learner)
        while run.step < options.steps and not run.stopping:
            reward = learner.step(run.step / options.steps)
            run.advance(run.step + learner.games.num_envs)
            if run.due():
                states = float(len(learner.table.states))
                run.judge(learner.player(), **{"train/reward": reward, "train/states": states})
                run.keep()
        run.check(values=learner.table.values)
        path = learner.save(run.folder / "player.npz")
        run.keep()
        return run.end(learner.player(), f"tabular:{path}")


def packed(run: Training, learner: QLearning) -> bytes:
    """Return the pickled learner, without its games if their players ask models."""
    saved: Any = copy(learner)
    if run.clients:
        saved.games = None
    return pickle.dumps((run.step, saved, spent(run.clients)))


def restored(run: Training, options: QOptions) -> QLearning:
    """Return the learner of a saved state; without its games it begins new ones."""
    learner: QLearning
    step, learner, costs = run.read()
    run.go_on(step)
    learner.options = options
    if learner.games is None:
        learner.games = games_of(run, options)
        learner.anew(step)
    booked(run.clients, costs)
    return learner


if __name__ == "__main__":
    command(train, QOptions)
