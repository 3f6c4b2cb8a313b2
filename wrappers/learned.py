"""A learner that has learned: a trained model in a seat of any table."""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_games.codecs import codec
from llm_games.errors import BadParameter
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.wrappers.policy import Decision, Policy


class LearnedPolicy(Policy):
    """Plays what a model trained in `SingleAgentEnv` (numeric mode) predicts.

    Args:
        model: a Stable-Baselines3 model, or anything with its `predict`.
        deterministic: take the likeliest action; else `predict` draws, from its own generator.
        actions: what it was trained with, see `llm_games.make`.
        name: the player's name in logs.
    """

    def __init__(
        self, model: Any, *, deterministic: bool = True, actions: str = "index", name: str = "ppo"
    ) -> None:
        self.model, self.deterministic, self.name = model, deterministic, name
        self.actions = actions

    def start(self, game: Rulebook, seat: int, seed: int) -> None:
        """Return no memory. A BadParameter: the model says it was trained for something else."""
        own, columns = codec(game, seat, self.actions).space, (len(game.column_index),)
        seen: Any = getattr(self.model, "observation_space", None)
        acts: Any = getattr(self.model, "action_space", None)
        seen = getattr(seen, "spaces", {}).get("observation", seen)
        if (seen and seen.shape != columns) or (acts and acts != own):
            raise BadParameter(
                f"{self.name} was trained for actions {acts} and observations {seen.shape}, but "
                f"{game.name} has {own} and {columns} with actions={self.actions!r}: seat it in "
                f"its own game with as many players, and give LearnedPolicy its actions"
            )

    def act(self, view: View, memory: None) -> tuple[Decision, None]:
        """Predict from the numbers of the view, until the move is whole."""
        own, move = codec(view.game, view.seat, self.actions), None
        while move is None:
            observation: Any = own.shown(view.numbers.copy())
            if own.masked:
                mask = own.mask(view).astype(np.int8)
                observation = {"observation": observation, "action_mask": mask}
            action, _ = self.model.predict(observation, deterministic=self.deterministic)
            move = own.take(view, action)
        return Decision(move), None
