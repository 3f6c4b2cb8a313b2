"""Players of the traveler's dilemma."""

import numpy as np

from llm_games.baselines.games.travelers_dilemma import theory
from llm_games.baselines.pair_theory import reply_to_last
from llm_games.baselines.reasoning_levels import from_uniform
from llm_games.baselines.rules import Players, shape, whole
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def rational(view: View, noise: Noise) -> Array:
    return np.full(shape(view), theory.equilibrium(view.game))


def cooperative(view: View, noise: Noise) -> Array:
    return np.full(shape(view), view.game.high)


def reciprocal(view: View, noise: Noise) -> Array:
    """Claim what the other claimed last, at first the most."""
    return np.where(view.number("round") > 1, whole(view, "other"), view.game.high)


def reply_to(view: View, others: Array) -> Array:
    return theory.best_response(view.game, others[0])


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": reply_to_last(theory.best_response, rational),
        "level_k": from_uniform(theory.level_k),
        "cooperative": cooperative,
        "reciprocal": reciprocal,
    },
    assumed="if the other claims the same again (while that is not known, if it is rational)",
    reply_to=reply_to,
    broadcasts=True,
)
