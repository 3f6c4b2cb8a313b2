"""Pure equilibria and minimax values of a payoff table.

A table is one array of payoffs, ``(players, *actions)``: integers, or doubles that hold integers
exactly, so that ties are exact.
"""

from __future__ import annotations

import numpy as np

from llm_games.errors import BadParameter
from llm_games.rulebook import Array

LARGEST_TABLE = 1_000_000
"""Cells of a table, payoffs of all seats together, up to which games are solved."""


def check_table(cells: int) -> None:
    """Raise BadParameter where a table would have too many cells to be solved."""
    if cells > LARGEST_TABLE:
        raise BadParameter(
            f"a payoff table of {cells:,} cells is too large to be solved, at most "
            f"{LARGEST_TABLE:,}; choose fewer players or actions"
        )


def best_replies(payoffs: Array) -> Array:
    """Return where a seat's action is best against those of the others, bool, of the same shape."""
    best = [seat.max(axis=i, keepdims=True) == seat for i, seat in enumerate(payoffs)]
    return np.array(best)


def pure_equilibria(payoffs: Array) -> list[tuple[int, ...]]:
    """Return all profiles of actions in which nobody gains by another action, in their order."""
    stable = best_replies(payoffs).all(axis=0)
    return [tuple(profile) for profile in np.argwhere(stable).tolist()]


def pure_minimax(payoffs: Array) -> list[int | float]:
    """Return what each seat can be held to by pure actions of the others."""
    held = (seat.max(axis=i).min() for i, seat in enumerate(payoffs))
    return [value.item() for value in held]


def undominated(payoffs: Array) -> Array:
    """Return the columns, ``(players, n)``, that no other one improves on for some at no cost."""
    rows = payoffs.T
    better = [((rows >= row).all(axis=1) & (rows > row).any(axis=1)).any() for row in rows]
    return ~np.array(better, np.bool_)
