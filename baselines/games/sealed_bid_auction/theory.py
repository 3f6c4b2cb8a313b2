"""Sealed-bid auctions of one item: what a bid cost in hindsight, and equilibrium bids.

Values and bids are integers ``(players, *batch)``; ties for the highest bid are drawn with equal
chances, and payoffs here are the means over that draw. The first-price equilibrium of values
drawn without replacement is in `first_price`. Background: Vickrey 1961; Krishna, Auction Theory.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from llm_games.questions import MISSING
from llm_games.rulebook import Array

Price = Literal["first", "second"]


def _rivals(bids: Array) -> tuple[Array, Array]:
    """Return each seat's highest rival bid and how many rivals make it, ``(players, *batch)``."""
    bids = np.asarray(bids)
    first, second = np.sort(bids, axis=0)[[-1, -2]]
    alone = (bids == first).sum(axis=0) == 1
    highest = np.where((bids == first) & alone, second, first)
    return highest, np.stack([(bids == m).sum(axis=0) for m in highest]) - (bids == highest)


def payoffs(values: Array, bids: Array, price: Price) -> Array:
    """Return each seat's mean payoff over the draw among the highest bids."""
    highest, many = _rivals(bids)
    paid = bids if price == "first" else highest
    shared = np.where(bids == highest, (values - paid) / (many + 1), 0.0)
    return np.where(bids > highest, values - paid, shared)


def best_payoff(values: Array, bids: Array, price: Price) -> Array:
    """Return the most each seat could have got against the others' bids (at least 0)."""
    highest, many = _rivals(bids)
    if price == "second":
        return np.maximum(values - highest, 0).astype(float)
    outbid, level = values - highest - 1, (values - highest) / (many + 1)
    return np.maximum(np.maximum(outbid, level), 0)


def best_response(values: Array, bids: Array, price: Price) -> Array:
    """Return a best reply to the others' bids: the own value if `second`, or if no bid gains."""
    highest, many = _rivals(bids)
    outbid = values - highest - 1
    reply = np.where(outbid >= (values - highest) / (many + 1), highest + 1, highest)
    return np.where((values > highest) & (price == "first"), reply, values)


def regret(values: Array, bids: Array, price: Price) -> Array:
    """Return what each seat lost in hindsight, float64 ``(players, *batch)``."""
    return best_payoff(values, bids, price) - payoffs(values, bids, price)


def nash_conv(values: Array, bids: Array, price: Price) -> Array:
    """Return the sum of the seats' regrets, ``(*batch)``."""
    return regret(values, bids, price).sum(axis=0)


def uniform_bid(values: Array, players: int, low: int = 0) -> Array:
    """Return the first-price equilibrium bid for independent uniform values from `low` up.

    ``low + (v - low) (players - 1) / players``, rounded down: exact for a continuum only.
    """
    return low + (np.asarray(values) - low) * (players - 1) // players


def iid_bid(grid: Array, cdf: Array, players: int) -> Array:
    """Return the first-price equilibrium bids for independent values with a smooth law.

    Args:
        grid: ascending values, float64; the first is the lower end of the law.
        cdf: the law's distribution function there.
        players: number of bidders.

    Returns:
        ``b(v) = v - (integral of F ** (players - 1) up to v) / F(v) ** (players - 1)`` on `grid`,
        by the trapezoid rule.
    """
    power = np.asarray(cdf, float) ** (players - 1)
    area = np.append(0, np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(grid)))
    return grid - np.divide(area, power, out=np.zeros_like(area), where=power > 0)


def session_best(
    values: Array, bids: Array, most: Array, part: Array, legal: Array, price: Price, least: int
) -> Array:
    """Return the most each seat could have got where the lowest of tied seats wins (at least 0).

    Args:
        values, bids: int64 ``(players, *batch)``.
        most: highest legal bid of each seat; the lowest is 0.
        part: whose bids take part.
        legal: whose are legal; with fewer than `least` there is no sale.
        price: of the auction.
        least: see there.
    """
    standing, best = np.where(part, bids, MISSING), np.zeros(bids.shape, np.int64)
    for seat in range(len(bids)):
        others = np.delete(standing, seat, 0)
        highest = others.max(axis=0)
        alone, before = highest == MISSING, others.argmax(axis=0) < seat
        enough = np.where(alone, 0, np.maximum(highest + before, 0))
        paid = enough if price == "first" else np.where(alone, 0, highest)
        sold = np.delete(legal, seat, 0).sum(axis=0) + 1 >= least
        gain = np.maximum(values[seat] - paid, 0)
        best[seat] = np.where(sold & (enough <= most[seat]), gain, 0)
    return best


def distance(bids: Array, reference: Array) -> Array:
    """Return the L1 distance to the equilibrium bids of these values, ``(*batch)``."""
    return np.abs(np.asarray(bids) - reference).sum(axis=0)


def efficiency(values: Array, bids: Array) -> Array:
    """Return the winner's mean value as a share of the highest (1 if all are 0), ``(*batch)``."""
    top = bids == np.max(bids, axis=0)
    won, best = (values * top).sum(axis=0) / top.sum(axis=0), np.max(values, axis=0)
    return np.where(best > 0, won / np.where(best > 0, best, 1), 1.0)
