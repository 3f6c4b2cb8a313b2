"""Players of the public goods game."""

import numpy as np

from llm_games.baselines.games.public_goods import theory
from llm_games.baselines.rules import Players
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def dominant(view: View, noise: Noise | None = None) -> Array:
    endowment = np.floor(view.number("own")).astype(np.int64)
    return theory.best_response(endowment, view.game.ratio, view.game.players)


def cooperative(view: View, noise: Noise) -> Array:
    return theory.optimum(np.floor(view.number("own")), view.game.ratio)


def reciprocal(view: View, noise: Noise) -> Array:
    """Give as much as the others did on average last, rounded down; at first, everything."""
    others = (view.number("pot") - view.number("contribution")) // max(view.game.players - 1, 1)
    return np.where(view.number("round") > 1, others, np.floor(view.number("own")))


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
