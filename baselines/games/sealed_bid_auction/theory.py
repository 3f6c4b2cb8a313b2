"""Sealed-bid auctions of one item: what a bid cost in hindsight, and equilibrium bids.

Values and bids are integers; ties for the highest bid are drawn, and payoffs are means over that
draw. See `first_price` for its equilibrium. Background: Vickrey 1961; Krishna, Auction Theory.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from llm_games.baselines.deviation import Measured
from llm_games.baselines.games.sealed_bid_auction.first_price import equilibrium, uniform_bid
from llm_games.rulebook import Array, PerPlayer, PerTable

Price = Literal["first", "second"]


def _rivals(bids: PerPlayer) -> tuple[PerPlayer, PerPlayer]:
    """Return each seat's highest rival bid and how many rivals make it."""
    bids = np.asarray(bids)
    first, second = np.sort(bids, axis=0)[[-1, -2]]
    alone = (bids == first).sum(axis=0) == 1
    highest = np.where((bids == first) & alone, second, first)
    return highest, np.stack([(bids == m).sum(axis=0) for m in highest]) - (bids == highest)


def payoffs(values: PerPlayer, bids: PerPlayer, price: Price) -> PerPlayer:
    """Return each seat's mean payoff over the draw among the highest bids."""
    highest, many = _rivals(bids)
    paid = bids if price == "first" else highest
    shared = np.where(bids == highest, (values - paid) / (many + 1), 0.0)
    return np.where(bids > highest, values - paid, shared)


def best_response(values: PerPlayer, bids: PerPlayer, price: Price) -> PerPlayer:
    """Return a best reply to the others' bids: the own value if `second`, or if no bid gains."""
    highest, many = _rivals(bids)
    outbid = values - highest - 1
    reply = np.where(outbid >= (values - highest) / (many + 1), highest + 1, highest)
    return np.where((values > highest) & (price == "first"), reply, values)


def regret(values: PerPlayer, bids: PerPlayer, price: Price) -> PerPlayer:
    """Return what each seat lost in hindsight against its best bid (which brings at least 0)."""
    highest, many = _rivals(bids)
    best = values - highest
    if price == "first":
        best = np.maximum(best - 1, best / (many + 1))  # outbid, or draw level
    return np.maximum(best, 0) - payoffs(values, bids, price)


def distance(bids: PerPlayer, reference: PerPlayer) -> PerTable:
    """Return the L1 distance to the equilibrium bids of these values."""
    return np.abs(np.asarray(bids) - reference).sum(axis=0)


def equilibrium_bids(game: Any, values: Array) -> Array:
    """Return the mean equilibrium bids of these valuations; as if independent where given."""
    if game.price == "second":
        return values
    if found := equilibrium(game):
        return found.mean_bid(values)
    return uniform_bid(values, game.players, game.valuation_min)


def deviation(game: Any, record: Mapping[str, Array]) -> Measured:
    """Return regret and distance of a round."""
    bids, values = record["actions"], record["valuations"]
    far = distance(bids, equilibrium_bids(game, values)) / (game.players * game.valuation_max)
    return regret(values, bids, game.price), far
