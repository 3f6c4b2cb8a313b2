"""Recurrent PPO, for tables where remembering the opponents' play helps (sb3-contrib).

Its network carries a state through an episode, so that it can tell apart opponents that look alike
at first, such as those of ``mix:``. Pleines and others, Memory gym, 2022, and the library's pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sb3_contrib import RecurrentPPO
from stable_baselines3.common.vec_env import VecEnv

from llm_games.baselines.training.harness import Evaluation, command, option
from llm_games.baselines.training.ppo import PPOOptions
from llm_games.baselines.training.stable import learn


@dataclass(frozen=True, kw_only=True)
class RecurrentOptions(PPOOptions):
    """Options of recurrent PPO."""

    memory: int = option(32, "N", "numbers that the network remembers", min=1)

    def algorithm(self, env: VecEnv) -> type[RecurrentPPO]:
        return RecurrentPPO

    def network(self, env: VecEnv) -> tuple[str, dict[str, Any]]:
        policy, sizes = super().network(env)
        return policy.replace("Policy", "LstmPolicy"), sizes | {"lstm_hidden_size": self.memory}


def train(options: RecurrentOptions) -> Evaluation:
    return learn("recurrent_ppo", options)


if __name__ == "__main__":
    command(train, RecurrentOptions)
