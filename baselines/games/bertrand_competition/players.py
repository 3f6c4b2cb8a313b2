"""Players of Bertrand competition."""

from fractions import Fraction
from typing import Any

import numpy as np

from llm_games.arrays import tall
from llm_games.baselines.games.bertrand_competition import q_learners, theory
from llm_games.baselines.games.bertrand_competition.q_learners import SHIPPED, last
from llm_games.baselines.rules import Kind, Players, count_from, ratio_from, whole
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def begins(view: View) -> Array:
    """Return at which tables no firm has chosen a price yet, bool ``(*batch)``."""
    return whole(view, "round") <= 1 + view.game.begun


def lowest(view: View) -> Array:
    return np.delete(last(view), view.seat, axis=0).min(axis=0)


def own_cost(view: View) -> int:
    return int(view.game.ticks(view.game.costs, up=True)[view.seat])


def alike(price: int, view: View) -> Array:
    return np.full(view.batch, price)


def nash(view: View, noise: Noise) -> Array:
    return alike(int(theory.nash_ticks(view.game)[0][view.seat]), view)


def cartel(view: View, noise: Noise) -> Array:
    return alike(int(theory.ticks_of(view.game, theory.cartel(view.game))[view.seat]), view)


def cost(view: View, noise: Noise) -> Array:
    return alike(own_cost(view), view)


def best_reply(view: View, noise: Noise) -> Array:
    """Reply best to the last prices of the rivals; a free first round counts as a forced one."""
    reply = theory.best_reply(view.game, last(view), view.seat)
    return np.where(whole(view, "round") > 1, reply, last(view)[view.seat])


def match(view: View, noise: Noise) -> Array:
    return lowest(view)


def undercut(by: int, view: View, noise: Noise) -> Array:
    """Set a price of `by` ticks below the lowest rival, but no less than the cost."""
    return np.maximum(lowest(view) - by, own_cost(view))


def _agreed(view: View) -> Array:
    """Return cartel prices in ticks that broadcast with the last round's."""
    return tall(theory.ticks_of(view.game, theory.cartel(view.game)), view.batch)


def grim(view: View, noise: Noise) -> Array:
    """Set cartel prices until some price differs (as it then always does), then one-shot ones."""
    cartel_holds = (last(view) == _agreed(view)).all(axis=0)
    return np.where(cartel_holds | begins(view), cartel(view, noise), nash(view, noise))


def reciprocal(view: View, noise: Noise) -> Array:
    """Set the cartel price if no rival asked for less in the last round, else the equilibrium's."""
    cartel_holds = np.delete(last(view) >= _agreed(view), view.seat, axis=0).all(axis=0)
    return np.where(cartel_holds | begins(view), cartel(view, noise), nash(view, noise))


def anything(view: View, noise: Noise) -> Array:
    return noise.integers(own_cost(view), view.game.bounds()[1], endpoint=True)


def _ticks(game: Any, by: Fraction) -> int:
    if (by * game.unit).denominator != 1:
        raise BadParameter(f"undercut:{by} is no whole number of ticks of {game.tick}")
    return int(by * game.unit)


_MARKETS = f"q_learning needs a market from 0 to {SHIPPED - 1}, as in q_learning:0"
PLAYERS = Players(
    {
        "rational": nash,
        "best_response": best_reply,
        "cooperative": cartel,
        "reciprocal": reciprocal,
        "random": anything,
        "cost": Kind("sells at its cost", cost),
        "match": Kind("sets the lowest price of its rivals in the last round", match),
        "undercut": Kind(
            "sets so much less than the lowest rival, but no less than its cost",
            undercut,
            "<amount>",
            read=ratio_from("undercut", 0, None, "undercut needs an amount, as in undercut:0.1"),
            meaning=_ticks,
        ),
        "q_learning": Kind(
            "does what it learned by Q-learning in a market, where its rivals learned, too",
            q_learners.acts,
            "<market>",
            read=count_from(0, SHIPPED - 1, _MARKETS),
            meaning=q_learners.known_market,
        ),
        "grim": Kind("sets cartel prices until one differs, then the equilibrium's for ever", grim),
    },
    assumed="if the rivals ask the prices of the last round again",
    reply_to=lambda view, others: theory.best_reply(
        view.game, np.insert(np.asarray(others), view.seat, 0, axis=0), view.seat
    ),
)
