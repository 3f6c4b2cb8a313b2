"""Payoffs of matrix games: nested tables, rows by count, the 144 ordinal games, and presets."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from llm_games.errors import BadParameter
from llm_games.exact_payoffs import ExactPayoffs, lengths_of
from llm_games.facts import check_integer

MOST_ACTIONS = 20
ORDINAL = (3241, 2341, 1342, 1243, 2143, 3142, 4132, 4123, 4213, 4312, 4321, 4231)
"""The row player's tables of ordinal games, row by row."""


def payoffs_from(players: int, payoffs: Any, by_count: Any, ordinal: Any) -> ExactPayoffs:
    """Read the one table that is not None, else that of the prisoner's dilemma; or BadParameter."""
    if by_count is not None:
        shape = lengths_of("by_count", by_count)
        if shape != (2, players):
            raise BadParameter(
                f"by_count must be 2 rows of {players} payoffs, by how many of {players - 1} "
                f"others play the first action, got lists of the lengths {shape}"
            )
        return ExactPayoffs.read("by_count", np.array(by_count, object), by_count=True)
    if ordinal is None:
        return _table_of(players, PRISONERS_DILEMMA if payoffs is None else payoffs)
    if players != 2:
        raise BadParameter(f"ordinal games are for 2 players, got players={players}")
    check_integer("ordinal", ordinal, 1, 144)
    row, column = divmod(ordinal - 1, 12)
    ranks = [np.array([*map(int, str(ORDINAL[k]))]).reshape(2, 2) for k in (row, 11 - column)]
    return ExactPayoffs.read("ordinal", np.stack([ranks[0], ranks[1].T]))


def _table_of(players: int, payoffs: Any) -> ExactPayoffs:
    """Read a table nested by each seat's action; of two alike the first one's payoffs will do."""
    shape = lengths_of("payoffs", payoffs)
    alike = len(shape) == players == 2
    if alike and shape[0] != shape[1]:
        raise BadParameter(
            "payoffs of the first player alone must have as many columns as rows, got a table of "
            f"{shape[0]} and {shape[1]}; give both payoffs in each cell"
        )
    if not alike and shape[players:] != (players,):
        raise BadParameter(
            f"payoffs must be nested by the actions of {players} players, with {players} payoffs "
            f"in each cell, got {f'lists of the lengths {shape}' if shape else repr(payoffs)}; "
            "players says for how many it is"
        )
    for seat, count in enumerate(shape[:players]):
        if not 2 <= count <= MOST_ACTIONS:
            raise BadParameter(
                f"payoffs must have 2 to {MOST_ACTIONS} actions a player, got {count} of seat "
                f"{seat}"
            )
    cells = np.array(payoffs, object)
    return ExactPayoffs.read(
        "payoffs", np.stack([cells, cells.T]) if alike else np.moveaxis(cells, -1, 0)
    )


# -- under the names by which they are known -------------------------------------------------------

PRISONERS_DILEMMA = ((3, 0), (5, 1))
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "prisoners_dilemma": {"payoffs": PRISONERS_DILEMMA},
    "stag_hunt": {"payoffs": ((4, 0), (3, 3))},
    "chicken": {"payoffs": ((3, 1), (4, 0))},
    "battle_of_the_sexes": {"payoffs": (((2, 1), (0, 0)), ((0, 0), (1, 2)))},
    "matching_pennies": {"payoffs": (((1, -1), (-1, 1)), ((-1, 1), (1, -1)))},
    "rock_paper_scissors": {"payoffs": ((0, -1, 1), (1, 0, -1), (-1, 1, 0))},
    **{
        f"dal_bo_frechette_{c}_{good}": {"payoffs": ((good, 12), (50, 25)), "continuation": c}
        for c in (Fraction(1, 2), Fraction(3, 4))
        for good in (32, 40, 48)
    },
    **{
        f"fudenberg_rand_dreber_{ratio}": {
            "payoffs": ((ratio * 2 - 2, -2), (ratio * 2, 0)),
            "continuation": Fraction(7, 8),
            "noise": Fraction(1, 8),
        }
        for ratio in map(Fraction, ("3/2", "2", "5/2", "4"))
    },
    "akata_pd": {"payoffs": ((8, 0), (10, 5)), "rounds": 10},
    "akata_bos": {"payoffs": (((10, 7), (0, 0)), ((0, 0), (7, 10))), "rounds": 10},
    **{
        f"goeree_holt_{best}": {"payoffs": (((best, 40), (40, 80)), ((40, 80), (80, 40)))}
        for best in (320, 44, 80)
    },
    "volunteer": {"players": 3, "by_count": ((2, 2, 2), (0, 4, 4))},
}
