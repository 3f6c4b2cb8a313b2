"""Levels of reasoning: a level is the best reply to the one below.

Stahl and Wilson 1994, Nagel 1995.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llm_games.rulebook import Array

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


def level_shares(choices: Array, ladder: Sequence[int], first: int = 0) -> dict[str, float]:
    """Return the share of each level's choices among all, and of others."""
    levels = levels_of(choices, ladder, first)
    named = {f"level {first + k}": first + k for k in range(len(ladder))} | {"other": OTHER}
    return {name: float((levels == level).mean()) for name, level in named.items()}
