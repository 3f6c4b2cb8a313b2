"""Divide the dollar: bids are paid if they add up to at most `golds`, otherwise nothing is.

Pure equilibria are exactly the profiles whose sum is `golds`, and those in which the others bid at
least `golds` without anyone, so that nobody alone can repair it. Bids are integers in
``0..golds``, ``(players, *batch)``. Background: Nash 1953; Ashlock & Greenwood 2016.
"""

from __future__ import annotations

import numpy as np

from llm_games.rulebook import Array


def receipts(bids: Array, golds: int) -> Array:
    """Return what each seat gets, ``(players, *batch)``."""
    return np.where(np.sum(bids, axis=0) <= golds, bids, 0)


def best_response(bids: Array, golds: int) -> Array:
    """Return each seat's best reply to the others (0 where every bid brings nothing)."""
    others = np.sum(bids, axis=0) - bids
    return np.maximum(golds - others, 0)


def best_bid(others: Array, golds: int) -> int:
    """Return the bid with the highest mean receipt against a sample of the others' sums.

    Args:
        others: sums of the others' bids that are thought equally likely, one axis.
        golds: the amount to divide.
    """
    left = np.sort(np.maximum(golds - np.asarray(others), 0))
    times = np.arange(len(left), 0, -1)  # how often a bid of left[i] would still be paid
    return int(left[np.argmax(left * times)])


def regret(bids: Array, golds: int) -> Array:
    """Return what each seat could have gained by another bid, int64 ``(players, *batch)``."""
    return best_response(bids, golds) - receipts(bids, golds)


def nash_conv(bids: Array, golds: int) -> Array:
    """Return the sum of the seats' regrets, ``(*batch)``."""
    return regret(bids, golds).sum(axis=0)


def distance(bids: Array, golds: int) -> Array:
    """Return the L1 distance to the nearest pure equilibrium, int64 ``(*batch)``.

    A profile without gain for anybody is reached by raising bids until the highest is at least
    ``golds / (players - 1)`` and the others' sum is `golds`.
    """
    total, highest = np.sum(bids, axis=0), np.max(bids, axis=0)
    top = np.maximum(highest, -(-golds // (len(bids) - 1)))
    deadlock = np.where(total - highest >= golds, 0, golds + top - total)
    return np.minimum(np.abs(total - golds), deadlock)


def fair_bids(players: int, golds: int) -> Array:
    """Return the most equal efficient equilibrium; the first seats bid the remainder."""
    share, rest = divmod(golds, players)
    return share + (np.arange(players) < rest)


def efficiency(bids: Array, golds: int) -> Array:
    """Return the share of the gold that was paid out, ``(*batch)``."""
    return receipts(bids, golds).sum(axis=0) / golds
