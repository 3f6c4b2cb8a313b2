"""Players of the diner's dilemma."""

import numpy as np

from llm_games.baselines.games.diners_dilemma import theory
from llm_games.baselines.games.diners_dilemma.theory import Menu
from llm_games.baselines.rules import Players, shape
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def dominant(view: View, noise: Noise | None = None) -> Array:
    return np.full(shape(view), theory.best_response(Menu.of(view.game)))


def cooperative(view: View, noise: Noise) -> Array:
    return np.full(shape(view), theory.optimum(Menu.of(view.game)))


def reciprocal(view: View, noise: Noise) -> Array:
    """Order the dish that is best for all until another seat's last order was costly."""
    others = view.number("costly") - view.number("dish")
    return np.where(others > 0, dominant(view), cooperative(view, noise))


PLAYERS = Players(
    {
        "rational": dominant,
        "best_response": dominant,
        "cooperative": cooperative,
        "reciprocal": reciprocal,
    },
    assumed="whatever the others do (it is rational itself)",
    reply_to=lambda view, others: dominant(view),
    broadcasts=True,
)
