"""Bidders in the sealed-bid auction."""

from fractions import Fraction

import numpy as np

from llm_games.baselines.games.sealed_bid_auction import theory
from llm_games.baselines.games.sealed_bid_auction.sealed_first_price import equilibrium
from llm_games.baselines.rules import Players, shape, whole
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def value_of(view: View) -> Array:
    return whole(view, "valuation", view.game.unit)


def rational(view: View, noise: Noise) -> Array:
    """Bid the valuation at the second price; at the first, play the approximate equilibrium."""
    game = view.game
    bids = equilibrium(game) if game.price == "first" else None
    if bids is None:
        return theory.equilibrium_bids(game, value_of(view))
    return bids.draw(value_of(view), noise.random())


def best_response(view: View, noise: Noise) -> Array:
    """Outbid the highest rival bid at the first price, if it is known; else be rational."""
    enough = view.number("winning_bid") + 1
    lost_last = (view.number("round") > 1) & (view.number("won") == 0)
    useful = lost_last & (enough < view.number("valuation")) & (view.game.price == "first")
    return np.where(useful, enough, rational(view, noise))


def cooperative(view: View, noise: Noise) -> Array:
    """Bid the valuation's index on the grid: keeps the order of valuations at low prices."""
    return (value_of(view) - view.game.valuation_min) // view.game.interval


def reciprocal(view: View, noise: Noise) -> Array:
    """Bid as `cooperative` until the price exceeds its bids, then be rational."""
    game = view.game
    cooperative_limit = (game.valuation_max - game.valuation_min) // game.interval
    broken = (view.number("round") > 1) & (view.number("winning_bid") > cooperative_limit)
    return np.where(broken, rational(view, noise), cooperative(view, noise))


def truthful(view: View, noise: Noise) -> Array:
    return value_of(view)


def shade(part: Fraction, view: View, noise: Noise) -> Array:
    """Bid an exact part of the valuation, rounded down."""
    return value_of(view) * part.numerator // part.denominator


def zero(view: View, noise: Noise) -> Array:
    return np.zeros(shape(view), np.int64)


def reply_to(view: View, others: Array) -> Array:
    values = np.full(view.game.players, value_of(view))
    return theory.best_response(values, np.insert(others, view.seat, 0), view.game.price)[view.seat]


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": best_response,
        "cooperative": cooperative,
        "reciprocal": reciprocal,
        "truthful": truthful,
        "shade": shade,
        "all_in": truthful,  # money has no limit, so that no more makes sense
        "zero": zero,
    },
    assumed="if the highest rival bid comes again (while that is not known, if all are rational)",
    mixed=True,
    reply_to=reply_to,
    broadcasts=True,
)
