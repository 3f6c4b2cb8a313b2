"""PPO, or MaskablePPO where a game says which actions are legal (Stable-Baselines3).

Schulman and others, Proximal policy optimization algorithms, 2017, arXiv:1707.06347; Huang and
Ontañón, A closer look at invalid action masking, 2022, arXiv:2006.14171.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from gymnasium.spaces import Dict
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from llm_games.baselines.training.harness import Evaluation, command, option
from llm_games.baselines.training.stable import Make, StableOptions, learn
from llm_games.errors import BadParameter


@dataclass(frozen=True, kw_only=True)
class PPOOptions(StableOptions):
    """Options of PPO."""

    rollout: Annotated[int, option("N", "decisions of each copy between updates", min=1)] = 20
    batches: Annotated[int, option("N", "parts of a rollout in an epoch", min=1)] = 4
    epochs: Annotated[int, option("N", "how often an update goes through it", min=1)] = 4
    entropy: Annotated[float, option("X", "weight of entropy at first; it falls to 0", min=0)] = 0.0
    trace: Annotated[float, option("X", "lambda of the advantages", min=0, max=1)] = 0.95


def minibatch_size(options: PPOOptions) -> int:
    """Return the size of a rollout's parts; no part is a single decision.

    Raises:
        BadParameter: a rollout is one decision, which has none to be compared with.
    """
    decisions = options.rollout * options.copies
    if decisions < 2:
        raise BadParameter("an update needs two decisions: give --copies or --rollout of 2 or more")
    least = max(2, decisions // options.batches)
    return next(size for size in range(least, decisions + 1) if decisions % size != 1)


def rollout_settings(options: PPOOptions) -> dict[str, Any]:
    """Return the model's settings of rollouts; raises as `minibatch_size`."""
    return {
        "n_steps": options.rollout,
        "batch_size": minibatch_size(options),
        "n_epochs": options.epochs,
        "ent_coef": options.entropy,
        "gae_lambda": options.trace,
    }


def maker(options: PPOOptions) -> Make:
    """Return the function that makes the model."""
    rollouts = rollout_settings(options)

    def make(env: VecEnv, common: dict[str, Any]) -> BaseAlgorithm:
        kind = MaskablePPO if isinstance(env.observation_space, Dict) else PPO
        return kind(**common, **rollouts)

    return make


def train(options: PPOOptions) -> Evaluation:
    """Train, and return the learner's evaluation."""
    return learn("ppo", options, maker(options))


if __name__ == "__main__":
    command(train, PPOOptions)
