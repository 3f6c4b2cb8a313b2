"""DQN: expected returns of actions, learned from a store of past moves (Stable-Baselines3).

It takes no masks: an illegal action becomes the game's declared move, so that its value is learned
as well. Mnih and others, Human-level control through deep reinforcement learning, Nature 518, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stable_baselines3 import DQN
from stable_baselines3.common.vec_env import VecEnv

from llm_games.baselines.training.harness import Evaluation, command, option
from llm_games.baselines.training.stable import StableOptions, learn
from llm_games.errors import BadParameter


@dataclass(frozen=True, kw_only=True)
class DQNOptions(StableOptions):
    """Options of DQN."""

    rollout: int = option(4, "N", "decisions of each copy between updates", min=1)
    updates: int = option(8, "N", "steps of gradient at each update", min=1)
    batch: int = option(128, "N", "moves in each of them", min=1)
    store: int = option(50_000, "N", "moves that are kept", min=1)
    explore: float = option(0.5, "X", "share of the steps that explore", min=0, max=1)
    least: float = option(0.02, "X", "share of random moves after that", min=0, max=1)

    def algorithm(self, env: VecEnv) -> type[DQN]:
        return DQN

    def settings(self) -> dict[str, Any]:
        if self.actions != "index":
            fault = f"DQN takes --actions index, got {self.actions!r}: train PPO instead"
            raise BadParameter(fault)
        return {
            "buffer_size": self.store,
            "learning_starts": self.copies * self.rollout,
            "batch_size": self.batch,
            "train_freq": self.rollout,
            "gradient_steps": self.updates,
            "target_update_interval": self.copies * self.rollout * 16,
            "exploration_fraction": self.explore,
            "exploration_final_eps": self.least,
        }


def train(options: DQNOptions) -> Evaluation:
    return learn("dqn", options)


if __name__ == "__main__":
    command(train, DQNOptions)
