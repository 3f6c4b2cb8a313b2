"""Self-play: PPO against a league of its own past selves (Stable-Baselines3).

At every evaluation a copy of the learner joins the league, which plays all other seats: by the
newest copy, or one drawn from those before it, uniformly or more often the less it is beaten
(prioritised fictitious self-play). `--opponents` only evaluate the learner; nothing trains with
them. Vinyals and others, Grandmaster level in StarCraft II, 2019, Nature 575.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from llm_games.arrays import Array
from llm_games.baselines.batch_play import play_batch
from llm_games.baselines.training import ppo
from llm_games.baselines.training.harness import (
    LONGEST,
    POINTS,
    Evaluation,
    Training,
    TrainingTable,
    command,
    judge,
    option,
)
from llm_games.baselines.training.stable import learn, player
from llm_games.rulebook import Rulebook
from llm_games.wrappers.learned import LearnedPolicy
from llm_games.wrappers.player_mixture import Drawns, PlayerMixture
from llm_games.wrappers.policy import Policy, RandomPolicy
from llm_games.wrappers.sb3 import save_player
from llm_games.wrappers.single_agent import seating

MATCHES = 10**9  # first seed of the games between a learner and its past selves
SELDOM = 0.01  # what is added to each past self's weight, so that none is forgotten


@dataclass(frozen=True, kw_only=True)
class SelfPlaySettings(ppo.PPOOptions):
    """Options of self-play."""

    latest: float = option(0.5, "X", "share of opponents that are the newest copy", min=0, max=1)
    draw: Literal["pfsp", "uniform"] = option("pfsp", "HOW", "of those before it")
    matches: int = option(64, "N", "games against each past self that weigh it", min=1)

    def model(self, env: VecEnv) -> BaseAlgorithm:
        """Return a new model, whose copy is the first in the league."""
        model, (league,) = super().model(env), env.get_attr("opponents")[0]
        league.join(copied(model, env))
        return model


class Copy:
    """A frozen copy of a model, in the form that `LearnedPolicy` takes."""

    def __init__(self, model: BaseAlgorithm) -> None:
        self.observation_space, self.action_space = model.observation_space, model.action_space
        network: Any = model.policy
        optimizer, network.optimizer = network.optimizer, None
        self.policy = deepcopy(network)
        network.optimizer = optimizer
        self.predict = self.policy.predict


class League(PlayerMixture):
    """Past selves, of which each seat draws one an episode; it grows between episodes."""

    def __init__(self, latest: float, draw: str) -> None:
        super().__init__([RandomPolicy()], name="league")
        self.players = []  # until the learner itself joins, before the first game
        self.latest, self.draw, self.joined = latest, draw, 0

    def join(self, past: Policy) -> None:
        self.players.append(past)
        self.weigh(np.zeros(len(self.players)))

    def weigh(self, beaten: Array) -> None:
        """Set the chances of past selves from the learner's win rates."""
        old = len(self.players) - 1
        hard = (1 - beaten[:old]) ** 2 + SELDOM if self.draw == "pfsp" else np.ones(old)
        self.weights = np.append(hard / hard.sum() * (1 - self.latest), self.latest if old else 1.0)

    def start_batch(
        self, game: Rulebook, mask: Array, seeds: Array, memory: Drawns | None = None
    ) -> Drawns:
        if memory is not None:  # of games that began when there were fewer
            new = [None] * (len(self.players) - len(memory.memories))
            memory = memory._replace(memories=[*memory.memories, *new])
        return super().start_batch(game, mask, seeds, memory)


def beaten(rules: Rulebook, learner: Policy, past: Sequence[Policy], matches: int) -> Array:
    """Return the share of games in which a learner beats each past self, ties half.

    It beats one if it earns more than the mean of the others, who all are that past self.
    """
    players, tables = [*past, learner], np.arange(len(past) * matches)
    match = tables % matches
    seats = match % rules.players
    sits = np.tile(tables // matches, (rules.players, 1))
    sits[seats, tables] = len(past)
    steps = None if rules.turns else LONGEST
    games = play_batch(rules, players, sits, (MATCHES + match).tolist(), max_steps=steps)
    payoffs: Any = sum(outcome.rewards for _, outcome in games)
    learner_payoffs = payoffs[seats, tables]
    others = (payoffs.sum(axis=0) - learner_payoffs) / (rules.players - 1)
    won = (learner_payoffs > others) + 0.5 * (learner_payoffs == others)
    return np.asarray(won.reshape(len(past), matches).mean(axis=1))


def grown(run: Training[SelfPlaySettings], model: BaseAlgorithm, env: VecEnv) -> dict[str, float]:
    """Add a copy of the model to the league, weigh all, and return measures for the log."""
    options, rules, policy = run.options, run.table.rules, player(model, env, run.method)
    (league,) = env.get_attr("opponents")[0]
    wins = beaten(rules, policy, league.players, options.matches)
    every = max(1, options.steps // POINTS)
    if run.step // every > league.joined // every:  # not twice, where a training goes on
        league.joined = run.step
        league.join(copied(model, env))
        league.weigh(np.append(wins, 0.5))
        save_player(model, env, run.folder / "league" / f"{run.step}.zip")
    measures = judge(
        TrainingTable(rules, seating(rules, "rotate", policy)), policy, options.episodes
    ).values()
    return {"league/beaten": float(wins.mean()), **{f"self/{k}": v for k, v in measures.items()}}


def copied(model: BaseAlgorithm, env: VecEnv) -> LearnedPolicy:
    """Return a player of the model's current copy; it samples its actions, as in training."""
    return player(Copy(model), env, "past", sure=False)


def train(options: SelfPlaySettings) -> Evaluation:
    return learn("self_play", options, League(options.latest, options.draw), grown)


if __name__ == "__main__":
    command(train, SelfPlaySettings)
