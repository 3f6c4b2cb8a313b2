"""Tables of matrix games by the name under which they are known."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from llm_games.games.matrix_game.payoff_reading import PRISONERS_DILEMMA


def _both(*rows: tuple[tuple[int, int], ...]) -> dict[str, Any]:
    return {"payoffs": rows}


DAL_BO = {
    f"dal_bo_frechette_{chance}_{good}": {
        "payoffs": ((good, 12), (50, 25)),
        "continuation": chance,
    }
    for chance in (Fraction(1, 2), Fraction(3, 4))
    for good in (32, 40, 48)
}
FUDENBERG = {
    f"fudenberg_rand_dreber_{ratio}": {
        "payoffs": ((ratio * 2 - 2, -2), (ratio * 2, 0)),
        "continuation": Fraction(7, 8),
        "noise": Fraction(1, 8),
    }
    for ratio in (Fraction(3, 2), Fraction(2), Fraction(5, 2), Fraction(4))
}
TREASURES = {
    f"goeree_holt_{paid}": _both(((paid, 40), (40, 80)), ((40, 80), (80, 40)))
    for paid in (320, 44, 80)
}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "prisoners_dilemma": {"payoffs": PRISONERS_DILEMMA},
    "stag_hunt": {"payoffs": ((4, 0), (3, 3))},
    "chicken": {"payoffs": ((3, 1), (4, 0))},
    "battle_of_the_sexes": _both(((2, 1), (0, 0)), ((0, 0), (1, 2))),
    "matching_pennies": _both(((1, -1), (-1, 1)), ((-1, 1), (1, -1))),
    "rock_paper_scissors": {"payoffs": ((0, -1, 1), (1, 0, -1), (-1, 1, 0))},
    **DAL_BO,
    **FUDENBERG,
    "akata_pd": {"payoffs": ((8, 0), (10, 5)), "rounds": 10},
    "akata_bos": _both(((10, 7), (0, 0)), ((0, 0), (7, 10))) | {"rounds": 10},
    **TREASURES,
    "volunteer": {"players": 3, "by_count": ((2, 2, 2), (0, 4, 4))},
}
