"""Sealed-bid auctions of one item: losses of bids in hindsight, and equilibrium bids.

Values and bids are integers; payoffs are means over the draw of ties. At the second price bidding
the valuation is weakly dominant; at the first see `sealed_first_price`. Vickrey 1961; Krishna,
Auction Theory.
"""

from itertools import permutations
from math import lcm, perm
from typing import Any, Literal

import numpy as np

from llm_games.arrays import at
from llm_games.baselines.games.sealed_bid_auction.sealed_first_price import (
    equilibrium,
    shading,
    solvable,
    truthful,
    uniform_bid,
)
from llm_games.baselines.regret import Claim, Measured, Parts, Steps, flat
from llm_games.noise import Noise
from llm_games.rulebook import Array, PerPlayer, PerTable

Price = Literal["first", "second"]


def _rivals(bids: PerPlayer) -> tuple[PerPlayer, PerPlayer]:
    """Return each seat's highest rival bid and the number of rivals that make it."""
    bids = np.asarray(bids)
    first, second = np.sort(bids, axis=0)[[-1, -2]]
    alone = (bids == first).sum(axis=0) == 1
    highest = np.where((bids == first) & alone, second, first)
    return highest, np.stack([(bids == m).sum(axis=0) for m in highest]) - (bids == highest)


def payoffs(values: PerPlayer, bids: PerPlayer, price: Price) -> PerPlayer:
    highest, tied = _rivals(bids)
    payment = bids if price == "first" else highest
    shared = np.where(bids == highest, (values - payment) / (tied + 1), 0.0)
    return np.where(bids > highest, values - payment, shared)


def best_response(values: PerPlayer, bids: PerPlayer, price: Price) -> PerPlayer:
    """Return a best reply to the others' bids: the own value if `second`, or if no bid gains."""
    highest, tied = _rivals(bids)
    outbid = values - highest - 1
    reply = np.where(outbid >= (values - highest) / (tied + 1), highest + 1, highest)
    return np.where((values > highest) & (price == "first"), reply, values)


def regret(values: PerPlayer, bids: PerPlayer, price: Price) -> PerPlayer:
    """Return each seat's loss in hindsight against its best bid (which brings at least 0)."""
    highest, tied = _rivals(bids)
    best = values - highest
    if price == "first":
        best = np.maximum(best - 1, best / (tied + 1))  # outbid, or draw level
    return np.maximum(best, 0) - payoffs(values, bids, price)


def distance(bids: PerPlayer, reference: PerPlayer) -> PerTable:
    return np.abs(np.asarray(bids) - reference).sum(axis=0)


def nearest_bids(game: Any, values: Array, bids: Array) -> Array:
    """Return the equilibrium bids of the values, often mixed, that are closest to `bids`."""
    if game.price == "first" and (solution := equilibrium(game)):
        return solution.nearest_bid(values, bids)
    return equilibrium_bids(game, values)


def equilibrium_bids(game: Any, values: Array) -> Array:
    """Return mean equilibrium bids; those of independent valuations if unsolved."""
    if game.price == "second":
        return values
    if solution := equilibrium(game):
        return solution.mean_bid(values)
    return uniform_bid(values, game.players, game.valuation_min)


def deals(game: Any, limit: int) -> tuple[dict[str, Array], Array] | None:
    """Return all chance of a whole game, tables last, and its probabilities.

    None beyond `limit` deals. There are as many lots as can decide a tie in different ways.
    """
    grid = np.arange(game.valuation_min, game.valuation_max + 1, game.interval)
    is_drawn = game.valuations is None and game.valuation_draw == "random"
    parts, n = lcm(*range(1, game.players + 1)), game.players
    each = (perm(len(grid), n) if is_drawn else 1) * parts
    if each**game.rounds > limit:
        return None
    which = np.array(np.unravel_index(np.arange(each**game.rounds), (each,) * game.rounds))
    lots = (which % parts + 0.5) / parts
    if is_drawn:
        rows = grid[np.array(list(permutations(range(len(grid)), n)))]
        values = np.moveaxis(rows[which // parts], -1, 1)
    else:
        fixed = game.chance(Noise(0))["valuations"]
        values = np.broadcast_to(fixed[..., None], (*fixed.shape, lots.shape[-1])).copy()
    return {"valuations": values, "lots": lots}, np.full(lots.shape[-1], 1 / lots.shape[-1])


def deviation(game: Any, record: Steps) -> Measured:
    bids, values = record["actions"], record["valuations"]
    far = distance(bids, nearest_bids(game, values, bids)) / (game.players * game.valuation_max)
    return regret(values, bids, game.price), far


def interim(game: Any, record: Steps) -> PerPlayer:
    """Return bids' mean losses against equilibrium bids of the values that a bidder cannot see."""
    values, bids = record["valuations"], record["actions"]
    if not solvable(game):
        return independent_regret(values, bids, game)
    solution = equilibrium(game) if game.price == "first" else truthful(game)
    assert solution is not None
    return solution.interim_regret(values, bids)


def independent_regret(values: PerPlayer, bids: PerPlayer, game: Any) -> PerPlayer:
    """Return the mean loss of bids if values are independent and uniform, and others bid so."""
    n, low, width = game.players, game.valuation_min, game.valuation_max - game.valuation_min

    def second(bid: Array) -> Array:
        u = np.clip((bid - low) / width, 0, 1)  # u ** (n - 1): the highest rival value's law
        return (values - low - width * u) * u ** (n - 1) + width * u**n / n

    def first(bid: Array) -> Array:
        return (values - bid) * np.clip((bid - low) * n / (width * (n - 1)), 0, 1) ** (n - 1)

    if game.price == "second":
        return np.maximum(second(values) - second(bids), 0)
    return np.maximum(first(low + (values - low) * (n - 1) / n) - first(bids), 0)


def exploitability(game: Any, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    """Return a reply's gain on copies of a seat that shade values as it does, and the reply."""
    # Copies bid `QUANTILES` of its parts; NaN where the valuations' law is unknown or too large.
    # The reply has a bid for each valuation.
    values, bids = flat(steps["valuations"])[seat], flat(steps["actions"])[seat]
    positive = values > 0
    if not solvable(game) or not positive.any():
        return np.nan, reply
    shaded = shading(game, bids[positive] / values[positive])
    reply = shaded.best_bids() if reply is None else reply
    return shaded.profit(reply) - shaded.profit(), reply


def rational(game: Any) -> Claim:
    if game.price == "second":
        return Claim("equilibrium", "bids its valuation, which is weakly dominant")
    if solution := equilibrium(game):
        telling = "are told" if game.tell_prior else "are not told"
        law = f"it assumes the law of valuations, which bidders {telling}"
        sentence = f"bids by an approximate Bayes-Nash equilibrium, found by fictitious play; {law}"
        if solution.gain > 0.05 * solution.profit():
            return Claim("heuristic", f"{sentence}; but other bids gain much")
        bound = max(1.05 * solution.gain, 1e-6)
        gain = f"nobody can gain more than {bound:.2g} a round by other bids"
        return Claim("best known", f"{sentence}; in the mean {gain}")
    sentence = "bids (players - 1) / players of its valuation, the Bayes-Nash equilibrium of"
    return Claim("heuristic", f"{sentence} independent uniform valuations, whose law it assumes")


def replies(game: Any) -> list[str]:
    return ["rational", *(f"shade:{part / 20:.2f}" for part in range(21))]


WELFARE = "payoffs and the seller's"


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the items' worth to their winners."""
    # At the second price, if bids above the value are legal, one may bid above all and the others
    # 0.
    values, winner = steps["valuations"], steps["winner"]
    total = at(values, winner).sum(axis=-1)
    worst, best = (end(values, axis=0).sum(axis=-1) for end in (np.min, np.max))
    if game.price == "second":
        return total, worst, best, worst if game.bid_range == "unbounded" else best, best
    return total, worst, best, np.nan, np.nan


def unasked(game: Any) -> tuple[str, ...]:
    """Return the kinds of graded questions that players cannot answer: values are private."""
    return ("equilibrium",)
