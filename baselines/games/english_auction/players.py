"""Bidders in the English auction. Each bids the smallest legal amount while its condition holds.

An estimate exceeds the true value by a markup: AucArena's bidders are `informed` of it, rational
ones have `learned` it from values announced. Prudent bidders that pursue items count each as 1.
Private values are known, and a price equal to one is accepted (AucArena §3, EconArena A.1).
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from llm_games.arrays import arrayed
from llm_games.baselines.games.english_auction.theory import bears, expected_prices, money_step
from llm_games.baselines.rules import Kind, Players, count_from, whole
from llm_games.games.english_auction.rules import WITHDRAW
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def money(view: View, column: str) -> Array:
    return whole(view, column, _seat_setting(view, "scales"))


def amounts(view: View, name: str) -> Array:
    """Return the amounts of money of a fact of every item, ``(*batch, items)``."""
    return whole(view, name, _seat_setting(view, "scales")[..., None], View.row)


def bid_while(view: View, condition: Array) -> Array:
    """Return the smallest legal bid where a condition holds and it is affordable."""
    floor = money(view, "floor")
    return np.where(condition & (floor <= money(view, "budget")), floor, WITHDRAW)


Worth = Callable[[View, Array], Array]  # what estimates say about true values


def informed(view: View, estimate: Array) -> Array:
    """Return the value of an estimate without its markup, which is known to the bidder."""
    if view.game.values == "private":
        return estimate
    percent = 100 + _beside(estimate, view, _seat_setting(view, "markups"))
    return estimate * 100 // np.maximum(percent, 1)


def learned(view: View, estimate: Array) -> Array:
    """Return an estimate's value at the markup of the dearest announced item (none: itself)."""
    numbers = (view.number(f"told_{name}") for name in ("value", "estimate"))
    value, dearest = (_beside(estimate, view, number) for number in numbers)
    return np.where(dearest > 0, estimate * value // np.maximum(dearest, 1), estimate)


def _seat_setting(view: View, name: str) -> Array:
    return np.asarray(getattr(view.game, name))[view.seat]


def _beside(amounts: Array, view: View, values: Array) -> Array:
    """Return values by bidder that broadcast with its amounts, of one item or of many."""
    extra_axes = np.ndim(amounts) - len(view.batch)
    return arrayed(values).reshape((*np.shape(values), *(1,) * extra_axes))


def rule(limit: int, view: View, noise: Noise) -> Array:
    """Raise up to `limit` times an item, whatever its worth (AucArena's rule bidder, 4 or 5)."""
    return bid_while(view, view.number("bids") < limit)


def truthful(view: View, noise: Noise) -> Array:
    return bid_while(view, money(view, "floor") <= money(view, "estimate"))


def debiased(worth: Worth, view: View, noise: Noise) -> Array:
    """Bid below the estimate without its markup, or up to a private value."""
    return bid_while(view, _profits(worth, view))


def _profits(worth: Worth, view: View) -> Array:
    floor, value = money(view, "floor"), worth(view, money(view, "estimate"))
    return floor <= value if view.game.values == "private" else floor < value


def _gains(worth: Worth, view: View) -> Array:
    return _profits(worth, view) | (_seat_setting(view, "objectives") == "items")


def prudent(
    worth: Worth, prices: Callable[[View, Array], Array], view: View, noise: Noise
) -> Array:
    """Bid while the item beats later uses of the money, at prices expected from start prices."""
    game, items = view.game, np.arange(len(view.game.catalogue))
    starts, estimates = (amounts(view, kind) for kind in ("start", "estimate"))
    closed = len(items) - np.rint(view.number("items_left") * len(items))
    later = items > closed[..., None]
    starts, values = starts * later, worth(view, estimates * later)
    costs = prices(view, starts)
    floor, budget = money(view, "floor"), money(view, "budget")
    counts = _seat_setting(view, "objectives") == "items"
    gain = np.where(counts, 1, worth(view, money(view, "estimate")) - floor)
    gain = np.where(_gains(worth, view), gain, -1)  # a loss: no other use need be weighed
    gains = np.where(_beside(values, view, counts), later, np.maximum(values - costs, 0))
    calls = np.array([item.start for item in game.catalogue])
    raises = np.maximum(game.increment_min, calls * game.increment_pct // 100)
    step = money_step(np.append(calls, raises), _seat_setting(view, "scales"))
    return bid_while(view, bears(budget, floor, gain, costs, gains, step))


def _by_money(view: View, starts: Array) -> Array:
    """Return expected prices if others began with as much money as oneself."""
    purse, room = _seat_setting(view, "purses"), money(view, "budget")
    for i in range(view.game.players):
        room = room + np.maximum(purse - money(view, f"spent_{i}"), 0) * (i != view.seat)
    return expected_prices(starts, money(view, "start"), room)


rational = partial(prudent, learned, _by_money)
"""Prudent, since budgets leave the equilibrium price open, see `theory`."""


def cooperative(view: View, noise: Noise) -> Array:
    """Leave each item to one bidder in turn, which opens at the start price and is alone."""
    count = len(view.game.catalogue)
    item = count - np.rint(view.number("items_left") * count).astype(np.int64)
    mine = item % view.game.players == view.seat
    return bid_while(view, mine & (view.number("leader") < 0) & _gains(learned, view))


def fixed(bid: int, view: View, noise: Noise) -> Array:
    """Bid the same amount wherever that is legal; -1 withdraws at once."""
    legal = (money(view, "floor") <= bid) & (bid <= money(view, "budget"))
    return np.where(legal, bid, WITHDRAW)


def any_legal(view: View, noise: Noise) -> Array:
    floor, budget = view.amounts
    bid = noise.integers(floor - 1, np.maximum(budget, floor - 1), endpoint=True)
    return np.where(bid < floor, WITHDRAW, bid)


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": partial(debiased, learned),
        "cooperative": cooperative,
        "rule": Kind(
            "raises by the minimum, so many times an item, whatever the item is worth",
            rule,
            "<bids>",
            read=count_from(1, 999, "rule needs 1 to 999 bids an item, as in rule:4"),
        ),
        "naive": Kind("raises by the minimum up to its estimate", truthful),
        "debiased": Kind(
            "informed of its markup: raises by the minimum below its estimate without it",
            partial(debiased, informed),
        ),
        "knap": Kind(
            "informed, while later items at their start prices are no better use of the money",
            partial(prudent, informed, lambda view, starts: starts),
        ),
        "mc": Kind(
            "informed, with later prices as the money in the room suggests",
            partial(prudent, informed, _by_money),
        ),
        "truthful": truthful,
        "random": any_legal,
        "fixed": fixed,
    },
    assumed="if the highest bid was the others' last, to its estimate without the markup that the "
    "values announced so far show",
    broadcasts=True,
)
