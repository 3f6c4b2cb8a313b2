"""Recurrent PPO, for tables where remembering the opponents' play helps (sb3-contrib).

Its network carries a state through an episode, so that it can tell apart opponents that look alike
at first, such as those of ``mix:``. Pleines and others, Memory gym, 2022, and the library's pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from sb3_contrib import RecurrentPPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from llm_games.baselines.training.harness import Evaluation, command, option
from llm_games.baselines.training.ppo import PPOOptions, rollout_settings
from llm_games.baselines.training.stable import learn


@dataclass(frozen=True, kw_only=True)
class RecurrentOptions(PPOOptions):
    """Options of recurrent PPO."""

    memory: Annotated[int, option("N", "numbers that the network remembers", min=1)] = 32


def train(options: RecurrentOptions) -> Evaluation:
    """Train, and return the learner's evaluation."""
    rollouts = rollout_settings(options)

    def make(env: VecEnv, common: dict[str, Any]) -> BaseAlgorithm:
        policy = common["policy"].replace("Policy", "LstmPolicy")
        network = common["policy_kwargs"] | {"lstm_hidden_size": options.memory}
        return RecurrentPPO(**common | {"policy": policy, "policy_kwargs": network}, **rollouts)

    return learn("recurrent_ppo", options, make)


if __name__ == "__main__":
    command(train, RecurrentOptions)
