"""Players of the money request game."""

import numpy as np

from llm_games.baselines.games.money_request import theory
from llm_games.baselines.pair_theory import reply_to_last
from llm_games.baselines.rules import Players, pick, shape
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def rational(view: View, noise: Noise) -> Array:
    """Draw from the symmetric equilibrium."""
    chances = np.array(theory.symmetric_equilibrium(view.game), np.float64)
    return view.game.high - pick(chances, noise)


def level_k(level: int, view: View, noise: Noise) -> Array:
    return np.full(shape(view), theory.level_k(view.game, level))


def cooperative(view: View, noise: Noise) -> Array:
    """Take turns with the other seat at one less than the most, where that pays."""
    turn = (view.seat + view.number("round").astype(np.int64)) % 2
    return view.game.high - turn * (view.game.bonus > 1)


def reply_to(view: View, others: Array) -> Array:
    return theory.best_response(view.game, others[0])


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": reply_to_last(theory.best_response, rational),
        "level_k": level_k,
        "cooperative": cooperative,
    },
    assumed="if the other requests the same again (while that is not known, if it is rational)",
    mixed=True,
    reply_to=reply_to,
    broadcasts=True,
)
