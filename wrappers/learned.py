"""A learner that has learned: a trained model in a seat of any table."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.wrappers.policy import Decision, Policy


class Predictor(Protocol):
    """What Stable-Baselines3's models have."""

    def predict(self, observation: Any, *, deterministic: bool = False) -> tuple[Any, Any]:
        """Return an action for an observation, and a state that is not used."""
        ...


class LearnedPolicy(Policy):
    """Plays what a model trained in `SingleAgentEnv` (numeric mode) predicts.

    Args:
        model: a Stable-Baselines3 model, or anything with its `predict`.
        deterministic: take the likeliest action; else `predict` draws, from its own generator.
        name: the player's name in logs.
    """

    def __init__(self, model: Predictor, *, deterministic: bool = True, name: str = "ppo") -> None:
        self.model, self.deterministic, self.name = model, deterministic, name

    def start(self, game: Rulebook, seat: int, seed: int) -> None:
        """Return no memory: the model sees one observation at a time."""

    def act(self, view: View, memory: None) -> tuple[Decision, None]:
        """Predict from the numbers of the view."""
        observation: Any = view.numbers
        if view.mask is not None:
            observation = {"observation": view.numbers, "action_mask": view.mask.astype(np.int8)}
        action, _ = self.model.predict(observation, deterministic=self.deterministic)
        space = view.game.space(view.seat)
        if isinstance(space, spaces.Discrete):
            action = np.asarray(action) + space.start
        return Decision(view.decode(action)), None
