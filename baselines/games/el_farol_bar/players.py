"""Players of the El Farol bar."""

import numpy as np

from llm_games.baselines.games.el_farol_bar import theory
from llm_games.baselines.games.el_farol_bar.theory import Bar
from llm_games.baselines.rules import Players
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def rational(view: View, noise: Noise) -> Array:
    return noise.random() < theory.mixed_equilibrium(Bar.of(view.game))


def best_response(view: View, noise: Noise) -> Array:
    """Reply to the last number of other guests; while that is unknown, play the equilibrium."""
    bar = Bar.of(view.game)
    good = bar.if_i_go(view.number("goers") - view.number("went")) > bar.home
    count_known, by_fun = view.number("count_known") > 0, view.number("fun_known") > 0
    reply = np.where(count_known, good, view.number("fun") > 0)
    return np.where(count_known | by_fun, reply, rational(view, noise))


def level_k(level: int, view: View, noise: Noise) -> Array:
    return noise.random() < theory.level_k(level, Bar.of(view.game))


def cooperative(view: View, noise: Noise) -> Array:
    """Take turns with the other seats, so that the bar is just full."""
    bar = Bar.of(view.game)
    turn = (view.seat - view.number("round").astype(np.int64) * bar.capacity) % bar.players
    return (turn < bar.capacity) & (bar.good > bar.home)


def reply_to(view: View, others: Array) -> Array:
    return theory.best_response(np.append(others, 0), Bar.of(view.game))[-1]


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": best_response,
        "level_k": level_k,
        "cooperative": cooperative,
    },
    assumed="if as many others go again (while that is not known, if all are rational)",
    mixed=True,
    reply_to=reply_to,
    broadcasts=True,
)
