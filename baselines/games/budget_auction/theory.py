"""Sealed-bid auctions of one item with limited money: what a bid cost, and equilibrium bids.

The lowest of tied seats wins; bids may break rules. A second-price bidder bids its valuation as far
as its money goes: what it pays does not hang on its bid, and any other bid changes the outcome only
where it wins above its value or loses below it. A first-price bidder shades: with independent
values of one law it bids what the highest of the others' values is on average, given that it is
below its own (`iid_bid`). Vickrey 1961; Krishna, Auction Theory, chapter 2.
"""

from functools import lru_cache
from math import erf, sqrt
from typing import Any

import numpy as np

from llm_games.arrays import at
from llm_games.baselines.deviation import Claim, Measured, Parts, Steps
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
    grid, _, bids = _private(game)
    return np.interp(values, grid, bids)


def _private(game: Any) -> tuple[Array, Array, Array]:
    """Return valuations, their distribution function, and first-price bids."""
    return _private_bids(game.players, game.mu, game.sigma, max(game.of_each("assets")))


@lru_cache(maxsize=8)
def _private_bids(players: int, mu: float, sigma: float, most: int) -> tuple[Array, Array, Array]:
    grid = np.linspace(0, most, 4001)
    law = np.array([erf((v - mu) / (sqrt(2) * sigma)) for v in grid.tolist()])
    law = (law - law[0]) / (law[-1] - law[0])
    return grid, law, iid_bid(grid, law, players)


def interim(game: Any, record: Steps) -> Array:
    """Return what bids lose on average against equilibrium bids of the values one cannot see.

    The law of valuations is the one that they are drawn by, taken for continuous. A broken rule
    costs its fee, and the best bid's gain where it takes no part. NaN where valuations are given or
    assets, and with them the laws, differ.
    """
    if game.valuations is not None or len(set(game.of_each("assets"))) > 1:
        return np.full(np.shape(record["actions"]), np.nan)
    bids, values, assets = (record[k] / game.unit for k in ("actions", "valuations", "assets"))
    part = record["legal"] | ((game.rule_breaker == "include") & (record["actions"] >= 0))
    if game.sigma == 0:  # all bid the same value, and nobody gains anything
        wins, gain = (bids >= values) * 1.0, (game.price == "first") * np.minimum(values - bids, 0)
        best = np.zeros(gain.shape)
    else:
        wins, gain = _prospects(game, bids, values)
        wanted = private_bid(game, values) if game.price == "first" else values
        best = _prospects(game, np.minimum(wanted, assets), values)[1]
    fee = float(game.entrance_fee) * ~record["legal"] * (1 - part * wins)
    return np.maximum(best - gain * part + fee, 0)


def _prospects(game: Any, bids: Array, values: Array) -> tuple[Array, Array]:
    """Return the chance that a bid wins against equilibrium bids, and its mean gain."""
    grid, law, shaded = _private(game)
    if game.price == "first":
        wins = np.interp(bids, shaded, law) ** (game.players - 1)
        return wins, (values - bids) * wins
    highest = law ** (game.players - 1)  # of the rivals, by parts
    area = np.append(0, np.cumsum((highest[1:] + highest[:-1]) / 2 * np.diff(grid)))
    wins = np.interp(bids, grid, highest)
    inside = np.minimum(bids, grid[-1])
    return wins, (values - inside) * wins + np.interp(inside, grid, area)


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
    told = "are told" if game.tell_prior else "are not told"
    law = f"the Bayes-Nash bid of normal valuations, whose law it assumes and bidders {told}"
    if game.valuations is not None or len(set(game.of_each("assets"))) > 1:
        return Claim("heuristic", f"bids {law}; but valuations are given, or assets differ")
    if game.value_rounding == "truncate" and game.sigma:
        return Claim("best known", f"bids {law}; whole valuations are taken for continuous")
    return Claim("equilibrium", f"bids {law}")


def replies(game: Any) -> list[str]:
    """Return shares of the valuation, the equilibrium bid, and all the money."""
    return ["rational", "all_in", *(f"shade:{part / 20:.2f}" for part in range(21))]


WELFARE = "payoffs and the seller's"


def welfare(game: Any, steps: Steps) -> Parts:
    """Return what the items are worth to who won them; without a sale nobody has anything.

    At the second price there are equilibria in which one bids all its money and the others 0, if
    nobody has more money and values it above that.
    """
    values, winner = steps["valuations"] / game.unit, steps["winner"]
    total = (at(values, np.maximum(winner, 0)) * (winner >= 0)).sum(axis=-1)
    best = values.max(axis=0).sum(axis=-1)
    if game.price == "first":
        played = best if rational(game).kind != "heuristic" else np.nan
        return total, 0, best, played, played
    seats, money = np.arange(game.players), np.array(game.of_each("assets"))
    richer = (money > money[:, None]) | ((money == money[:, None]) & (seats < seats[:, None]))
    above = values > money.reshape(-1, *(1,) * values.ndim)  # [i, j]: j would pay i's money
    safe = ~(richer.reshape(*richer.shape, *(1,) * (values.ndim - 1)) & above).any(axis=1)
    ends = ((np.where(safe, values, out), end) for out, end in ((np.inf, np.min), (0, np.max)))
    return total, 0, best, *(end(kept, axis=0).sum(axis=-1) for kept, end in ends)
