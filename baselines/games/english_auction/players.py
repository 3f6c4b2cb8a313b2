"""Bidders in the English auction. Each bids the smallest legal amount while its condition holds.

``rule:K``: fewer than K own bids on this item (AucArena's rule bidder, K = 4 or 5).
``naive``: the price is at most the own estimate.
``debiased``: it is below the estimate without its known markup.
``knap``: buying at it also leaves no better use of the money, if later items go at their start.
``mc``: the same, if later items go at prices that the money in the room suggests.

Pursuing items, ``knap`` and ``mc`` count each as a gain of 1. Private values are known, so that
there is no markup, and a price equal to the value is borne (AucArena §3, EconArena A.1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from llm_games.baselines.games.english_auction.theory import bears, expected_prices, money_step
from llm_games.baselines.policies.base import Rule
from llm_games.games.english_auction.views import WITHDRAW
from llm_games.rulebook import Array
from llm_games.view import View

GAME = "english_auction"
Prices = Callable[[View, Array], Array]
"""Turns a view and later items' start prices ``(*batch, items)`` into expected prices."""


def money(view: View, column: str) -> Array:
    """Return an amount that a view shows, int64 ``(*batch)``."""
    game: Any = view.game
    return np.rint(view.number(column).astype(np.float64) * game.scale).astype(np.int64)


def bid_while(view: View, condition: Array) -> Array:
    """Return the smallest legal bid where a condition holds and it is affordable."""
    floor = money(view, "floor")
    return np.where(condition & (floor <= money(view, "budget")), floor, WITHDRAW)


def worth(view: View, estimate: Array) -> Array:
    """Return what estimates say about true values, the markup taken out."""
    game: Any = view.game
    if game.values == "private":
        return estimate
    return estimate * 100 // max(100 + int(game.markups[view.seat]), 1)


def rule(most: int) -> Rule:
    """Return the bidder that raises up to `most` times an item, whatever it is worth."""
    return lambda view, rng: bid_while(view, view.number("bids") < most)


def naive(view: View, rng: np.random.Generator) -> Array:
    """Bid up to the own estimate."""
    return bid_while(view, money(view, "floor") <= money(view, "estimate"))


def debiased(view: View, rng: np.random.Generator) -> Array:
    """Bid below the true value, or up to a private one."""
    return bid_while(view, _profits(view))


def _profits(view: View) -> Array:
    """Return whether the item at its price is worth more than it costs."""
    game: Any = view.game
    floor, value = money(view, "floor"), worth(view, money(view, "estimate"))
    return floor <= value if game.values == "private" else floor < value


def _gains(view: View) -> Array:
    """Return whether the item at its price serves the bidder's objective by itself."""
    game: Any = view.game
    return _profits(view) | (game.objectives[view.seat] == "items")


def prudent(prices: Prices, view: View, rng: np.random.Generator) -> Array:
    """Bid while the item at its price beats what the money could buy later at these prices."""
    game: Any = view.game
    items = range(len(game.catalogue))
    starts, estimates = (
        np.stack([np.atleast_1d(money(view, f"{kind}_{i}")) for i in items], axis=-1)
        for kind in ("start", "estimate")
    )
    closed = len(items) - np.rint(np.atleast_1d(view.number("items_left")) * len(items))
    later = np.arange(len(items)) > closed[..., None]
    starts, values = starts * later, worth(view, estimates * later)
    costs = prices(view, starts)
    floor, budget = np.atleast_1d(money(view, "floor")), np.atleast_1d(money(view, "budget"))
    if game.objectives[view.seat] == "items":
        gain, gains = np.ones_like(floor), later.astype(np.int64)
    else:
        gain = worth(view, np.atleast_1d(money(view, "estimate"))) - floor
        gains = np.maximum(values - costs, 0)
    borne = bears(budget, floor, gain, costs, gains, _step(game))
    return bid_while(view, _gains(view) & borne.reshape(np.shape(view.number("floor"))))


def _step(game: Any) -> int:
    starts = np.array([item.start for item in game.catalogue])
    raises = np.maximum(game.increment_min, starts * game.increment_pct // 100)
    return money_step(np.append(starts, raises), game.scale)


def _at_start(view: View, starts: Array) -> Array:
    return starts


def _by_money(view: View, starts: Array) -> Array:
    """Take others to have begun with as much money as oneself."""
    game: Any = view.game
    own = int(game.purses[view.seat])
    others = (np.maximum(own - money(view, f"spent_{i}"), 0)
              for i in range(game.players) if i != view.seat)  # fmt: skip
    room = np.atleast_1d(money(view, "budget") + sum(others))
    return expected_prices(starts, np.atleast_1d(money(view, "start")), room)


def take_turns(view: View, rng: np.random.Generator) -> Array:
    """Leave each item to one bidder in turn, who opens at the start price and is alone."""
    game: Any = view.game
    count = len(game.catalogue)
    item = count - np.rint(view.number("items_left") * count).astype(np.int64)
    mine = item % game.players == view.seat
    return bid_while(view, mine & (view.number("leader") < 0) & _gains(view))


knap, mc = partial(prudent, _at_start), partial(prudent, _by_money)


def fixed(view: View, bid: int) -> Array:
    """Bid always the same where that is legal."""
    legal = (money(view, "floor") <= bid) & (bid <= money(view, "budget"))
    return np.where(legal, bid, WITHDRAW)


def any_legal(view: View, rng: np.random.Generator) -> Array:
    """Withdraw or make any legal bid, all equally likely."""
    floor = money(view, "floor")
    most = np.maximum(money(view, "budget"), floor - 1)
    bid = rng.integers(floor - 1, most, endpoint=True)
    return np.where(bid < floor, WITHDRAW, bid)


BIDDERS: dict[str, Rule] = {"naive": naive, "debiased": debiased, "knap": knap, "mc": mc}
SUMMARIES = {
    "naive": "raises by the minimum up to its estimate",
    "debiased": "raises by the minimum below its estimate without the markup",
    "knap": "the same while later items at their start prices are no better use of the money",
    "mc": "the same with later prices as the money in the room suggests",
}
"""What `BIDDERS` do, in a line each."""
