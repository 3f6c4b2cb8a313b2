"""PPO, or MaskablePPO where a game says which actions are legal (Stable-Baselines3).

Schulman and others, Proximal policy optimization algorithms, 2017, arXiv:1707.06347; Huang and
Ontañón, A closer look at invalid action masking, 2022, arXiv:2006.14171.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gymnasium.spaces import Dict
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from llm_games.baselines.training.harness import Evaluation, command, option
from llm_games.baselines.training.stable import StableOptions, learn
from llm_games.errors import BadParameter


@dataclass(frozen=True, kw_only=True)
class PPOOptions(StableOptions):
    """Options of PPO."""

    rollout: int = option(20, "N", "decisions of each copy between updates", min=1)
    batches: int = option(4, "N", "parts of a rollout in an epoch", min=1)
    epochs: int = option(4, "N", "how often an update goes through it", min=1)
    entropy: float = option(0.0, "X", "weight of entropy at first; it falls to 0", min=0)
    trace: float = option(0.95, "X", "lambda of the advantages", min=0, max=1)

    def algorithm(self, env: VecEnv) -> type[BaseAlgorithm]:
        return MaskablePPO if isinstance(env.observation_space, Dict) else PPO

    def settings(self) -> dict[str, Any]:
        """Return the settings of rollouts, with no part of a single decision; else BadParameter."""
        decisions = self.rollout * self.copies
        if decisions < 2:
            fault = "an update needs two decisions: give --copies or --rollout of 2 or more"
            raise BadParameter(fault)
        least = max(2, decisions // self.batches)
        return {
            "n_steps": self.rollout,
            "batch_size": next(n for n in range(least, decisions + 1) if decisions % n != 1),
            "n_epochs": self.epochs,
            "ent_coef": self.entropy,
            "gae_lambda": self.trace,
        }


def train(options: PPOOptions) -> Evaluation:
    return learn("ppo", options)


if __name__ == "__main__":
    command(train, PPOOptions)
