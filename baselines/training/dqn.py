"""DQN: expected returns of actions, learned from a store of past moves (Stable-Baselines3).

It takes no masks: an illegal action becomes the game's declared move, so that its value is learned
as well. Mnih and others, Human-level control through deep reinforcement learning, Nature 518, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from stable_baselines3 import DQN
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from llm_games.baselines.training.harness import Evaluation, command, option
from llm_games.baselines.training.stable import StableOptions, learn
from llm_games.errors import BadParameter


@dataclass(frozen=True, kw_only=True)
class DQNOptions(StableOptions):
    """Options of DQN."""

    rollout: Annotated[int, option("N", "decisions of each copy between updates", min=1)] = 4
    updates: Annotated[int, option("N", "steps of gradient at each update", min=1)] = 8
    batch: Annotated[int, option("N", "moves in each of them", min=1)] = 128
    store: Annotated[int, option("N", "moves that are kept", min=1)] = 50_000
    explore: Annotated[float, option("X", "share of the steps that explore", min=0, max=1)] = 0.5
    least: Annotated[float, option("X", "share of random moves after that", min=0, max=1)] = 0.02


def train(options: DQNOptions) -> Evaluation:
    """Train, and return the learner's evaluation."""
    if options.actions != "index":
        raise BadParameter(f"DQN takes --actions index, got {options.actions!r}: train PPO instead")

    def make(env: VecEnv, common: dict[str, Any]) -> BaseAlgorithm:
        return DQN(
            **common,
            buffer_size=options.store,
            learning_starts=options.copies * options.rollout,
            batch_size=options.batch,
            train_freq=options.rollout,
            gradient_steps=options.updates,
            target_update_interval=options.copies * options.rollout * 16,
            exploration_fraction=options.explore,
            exploration_final_eps=options.least,
        )

    return learn("dqn", options, make)


if __name__ == "__main__":
    command(train, DQNOptions)
