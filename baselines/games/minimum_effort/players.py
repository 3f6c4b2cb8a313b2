"""Players of the minimum effort game."""

import numpy as np

from llm_games.baselines.games.minimum_effort import theory
from llm_games.baselines.reasoning_levels import from_uniform
from llm_games.baselines.rules import Kind, Players, shape, whole
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def rational(view: View, noise: Noise | None = None) -> Array:
    return np.full(shape(view), theory.equilibrium(view.game))


def best_response(view: View, noise: Noise) -> Array:
    """Reply to the others' lowest effort; where it is not known, to the lowest of all."""
    game, lowest = view.game, whole(view, "lowest")
    if game.reveal == "all":
        seats = range(game.players)
        efforts = [whole(view, f"effort_{i}") + game.high * (view.seat == i) for i in seats]
        lowest = np.min(efforts, axis=0)
    reply = theory.best_response(game, np.minimum(lowest, game.high))
    return np.where(view.number("round") > 1, reply, rational(view))


def last_minimum(view: View, noise: Noise) -> Array:
    return np.where(view.number("round") > 1, whole(view, "lowest"), rational(view))


def cooperative(view: View, noise: Noise) -> Array:
    return rational(view)


def reply_to(view: View, others: Array) -> Array:
    return theory.best_response(view.game, others.min(axis=0))


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": best_response,
        "level_k": from_uniform(theory.level_k),
        "cooperative": cooperative,
        "secure": Kind(
            "chooses the lowest effort, whose worst payoff is best",
            lambda view, noise: np.full(shape(view), view.game.low),
        ),
        "last_minimum": Kind("repeats the lowest effort of the last round", last_minimum),
        "potential": Kind(
            "chooses the effort of which the game's potential is largest",
            lambda view, noise: np.full(shape(view), theory.potential_effort(view.game)),
        ),
    },
    assumed="if the others choose the same again (while that is not known, if all are rational)",
    reply_to=reply_to,
    broadcasts=True,
)
