"""Levels of reasoning: a level is the best reply to the one below.

Stahl and Wilson 1994, Nagel 1995.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.mixed_equilibria import Mixture
from llm_games.baselines.play_measures import PlayMeasure, own_moves
from llm_games.baselines.rules import Rule, shape
from llm_games.exact_payoffs import ExactPayoffs
from llm_games.noise import Noise
from llm_games.view import View

DEEPEST = 9
OTHER = -1
"""The level of a choice that no level makes."""


def levels_of(choices: Array, ladder: Sequence[int], first: int = 0) -> Array:
    """Return the smallest level that makes each choice, else `OTHER`.

    `ladder` has the choices of level `first` and those above.
    """
    levels = np.full(np.shape(choices), OTHER)
    for number in reversed(range(len(ladder))):
        levels[np.equal(choices, ladder[number])] = first + number
    return levels


def level_measures(ladder: Sequence[int], first: int = 0) -> dict[str, PlayMeasure]:
    """Return the share of each level's choices among all, and of others, by name."""

    def share(level: int) -> PlayMeasure:
        return PlayMeasure(lambda s, seats: levels_of(own_moves(s, seats), ladder, first) == level)

    named = {f"level {first + k}": first + k for k in range(len(ladder))} | {"other": OTHER}
    return {name: share(level) for name, level in named.items()}


@lru_cache(256)
def level_mixtures(table: ExactPayoffs, level: int) -> tuple[Mixture, ...]:
    """Return what each seat draws from: all actions alike, or the first best reply to that."""
    mixtures = tuple((Fraction(1, count),) * count for count in table.actions)
    for _ in range(level):
        replies = []
        for seat in range(1 if table.alike else len(mixtures)):
            values = table.earned(seat, mixtures)
            best = values.index(max(values))
            replies.append(tuple(Fraction(k == best) for k in range(len(values))))
        mixtures = tuple(replies * len(mixtures) if table.alike else replies)
    return mixtures


def from_uniform(choice: Callable[[Any, int], int]) -> Rule:
    """Return the rule ``level_k`` whose level 0 draws from `low` to `high`, all equally likely.

    ``choice(game, level)`` is what a level above it chooses.
    """

    def rule(level: int, view: View, noise: Noise) -> Array:
        game = view.game
        if level == 0:
            return noise.integers(game.low, game.high, endpoint=True)
        return np.full(shape(view), choice(game, level))

    return rule
