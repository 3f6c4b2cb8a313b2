"""Sealed-bid auctions of one item with limited money: what a bid cost, and equilibrium bids.

The lowest of tied seats wins; bids may break rules. A second-price bidder bids its valuation as far
as its money goes.
"""

from functools import lru_cache
from math import erf, sqrt
from typing import Any

import numpy as np

from llm_games.arrays import at
from llm_games.baselines.deviation import Claim, Measured, Steps, Welfare
from llm_games.questions import MISSING
from llm_games.rulebook import Array


def iid_bid(grid: Array, cdf: Array, players: int) -> Array:
    """Return the first-price equilibrium bids for independent values with a smooth law.

    ``b(v) = v - (integral of F ** (players - 1) up to v) / F(v) ** (players - 1)`` by the trapezoid
    rule, on an ascending grid from the lower end of the law with its distribution function there.
    """
    power = np.asarray(cdf, float) ** (players - 1)
    area = np.append(0, np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(grid)))
    return grid - np.divide(area, power, out=np.zeros_like(area), where=power > 0)


def private_bid(game: Any, values: Array) -> Array:
    """Return equilibrium bids, valuations being known to be normal, cut at 0 and most assets."""
    if game.sigma == 0:
        return values
    assets = game.assets if isinstance(game.assets, int) else max(game.assets)
    return np.interp(values, *_private_bids(game.players, game.mu, game.sigma, assets))


@lru_cache(maxsize=8)
def _private_bids(players: int, mu: float, sigma: float, most: int) -> tuple[Array, Array]:
    grid = np.linspace(0, most, 4001)
    law = np.array([erf((v - mu) / (sqrt(2) * sigma)) for v in grid.tolist()])
    return grid, iid_bid(grid, (law - law[0]) / (law[-1] - law[0]), players)


def deviation(game: Any, record: Steps) -> Measured:
    """Return regret and distance of a round; no distance where somebody broke a rule.

    Regret is against the best legal bid, from 0 to the assets, which brings at least 0.
    """
    bids, values, assets, legal = (record[k] for k in ("actions", "valuations", "assets", "legal"))
    part = legal if game.rule_breaker == "exclude" else bids != MISSING
    standing, best = np.where(part, bids, MISSING), np.zeros(bids.shape, np.int64)
    for seat in range(len(bids)):
        others = np.delete(standing, seat, 0)
        highest = others.max(axis=0)
        alone, before = highest == MISSING, others.argmax(axis=0) < seat
        enough = np.where(alone, 0, np.maximum(highest + before, 0))
        paid = enough if game.price == "first" else np.where(alone, 0, highest)
        sold = np.delete(legal, seat, 0).sum(axis=0) + 1 >= game.min_valid_bids
        gain = np.maximum(values[seat] - paid, 0)
        best[seat] = np.where(sold & (enough <= assets[seat]), gain, 0)
    wanted = values
    if game.price == "first":
        wanted = private_bid(game, values / game.unit) * game.unit
    far = sum(np.abs(np.where(legal, bids, 0) - np.minimum(wanted, assets)))  # in order of seats
    share = np.where(legal.all(axis=0), far / assets.sum(axis=0), np.nan)
    return (best - record["utility"]) / game.unit, share


def rational(game: Any) -> Claim:
    """Return what the rational player is."""
    if game.price == "second":
        return Claim("equilibrium", "bids its valuation, which is weakly dominant")
    law = "the symmetric Bayes-Nash bid of independent normal valuations of a known law"
    if game.valuations is not None or len(set(game.of_each("assets"))) > 1:
        return Claim("heuristic", f"bids {law}, though valuations are given or assets differ")
    if game.value_rounding == "truncate" and game.sigma:
        return Claim("best known", f"bids {law}, whole valuations being taken for continuous ones")
    return Claim("equilibrium", f"bids {law}")


def replies(game: Any) -> list[str]:
    """Return shares of the valuation, the equilibrium bid, and all the money."""
    return ["rational", "all_in", *(f"shade:{part / 20:.2f}" for part in range(21))]


def welfare(game: Any, steps: Steps) -> Welfare:
    """Return what the items are worth to who won them; without a sale nobody has anything.

    At the second price there are equilibria in which one bids above all values and the others 0.
    """
    values, winner = steps["valuations"] / game.unit, steps["winner"]
    total = (at(values, np.maximum(winner, 0)) * (winner >= 0)).sum(axis=-1)
    least, best = (end(values, axis=0).sum(axis=-1) for end in (np.min, np.max))
    same = rational(game).kind != "heuristic"
    first = best if same else np.nan
    return Welfare(total, 0, best, *((least, best) if game.price == "second" else (first, first)))
