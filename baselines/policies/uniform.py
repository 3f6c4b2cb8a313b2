"""The player without a plan, for whole batches too: any legal action, all equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_games.baselines.games.english_auction import players as english_auction
from llm_games.baselines.policies.base import ballot, decision, living_others, shape, shoot
from llm_games.rulebook import Array
from llm_games.view import View
from llm_games.wrappers.policy import Decision
from llm_games.wrappers.random_player import RandomPolicy

WIDEST = 100
"""Numbers without limits are drawn from 0 to this."""


class UniformPolicy(RandomPolicy):
    """Draws from the question, or for a batch from what is legal. Plays every game."""

    def act(self, view: View, memory: tuple[int, int]) -> tuple[Decision, tuple[int, int]]:
        """Draw one action for each table."""
        if view.question is not None:
            return super().act(view, memory)
        seed, count = memory
        return decision(view, _draw(view, np.random.default_rng(memory))), (seed, count + 1)


def _draw(view: View, rng: np.random.Generator) -> Array:
    if view.game.name == "battle_royale":
        miss = np.ones((*shape(view), 1), bool)
        return shoot(np.concatenate([living_others(view), miss], axis=-1).astype(float), rng)
    if view.game.name == "pirate_game":
        return ballot(view, _plan(view, rng), rng.random(shape(view)) < 0.5)
    if view.game.name == "english_auction":
        return english_auction.any_legal(view, rng)
    free = view.high - view.low > 2**32
    low, high = np.where(free, 0, view.low), np.where(free, WIDEST, view.high)
    return rng.integers(low, high, endpoint=True)


def _plan(view: View, rng: np.random.Generator) -> Array:
    """Draw one plan (for all tables of the batch), all divisions equally likely."""
    game: Any = view.game
    living = game.players - view.seat
    bars = np.sort(rng.choice(game.gold + living - 1, living - 1, replace=False))
    shares = np.diff(np.concatenate([[-1], bars, [game.gold + living - 1]])) - 1
    return np.concatenate([np.zeros(view.seat, np.int64), shares])
