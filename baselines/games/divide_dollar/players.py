"""Players of divide the dollar."""

import numpy as np

from llm_games.baselines.games.divide_dollar import theory
from llm_games.baselines.rules import Players, shape, whole
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def rational(view: View, noise: Noise) -> Array:
    fair = theory.fair_bids(view.game.players, view.game.golds)
    return np.broadcast_to(fair[view.seat], shape(view))


def best_response(view: View, noise: Noise) -> Array:
    """Bid what remains if others bid the same again; if nothing, less by a share of the excess."""
    total, bid = whole(view, "sum"), whole(view, "bid")
    remaining, over = view.game.golds - (total - bid), total - view.game.golds
    lower = np.maximum(bid + -over // view.game.players, 0)
    has_last = view.number("round") > 1
    return np.where(has_last, np.where(remaining > 0, remaining, lower), rational(view, noise))


def reply_to(view: View, others: Array) -> Array:
    return theory.best_response(np.append(others, 0), view.game.golds)[-1]


PLAYERS = Players(
    {"rational": rational, "best_response": best_response, "cooperative": rational},
    assumed="if the others bid the same sum again (while that is not known, if all are rational); "
    "where that leaves nothing, with an equal share of what is too much off its bid",
    reply_to=reply_to,
    broadcasts=True,
)
