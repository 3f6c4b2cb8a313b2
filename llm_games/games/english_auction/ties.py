"""Who leads in an auction when several bidders make the highest bid."""

from __future__ import annotations

import numpy as np

from llm_games.rulebook import Array

TIE_RULES = ("uniform", "lowest_index", "authors")


def leader_of(tied: Array, rule: str, asked: Array, key: Array, count: Array) -> Array:
    """Return the seat that leads at each table, int64 ``(*batch)``; 0 where nobody bids.

    Args:
        tied: who makes the highest bid, bool ``(players, *batch)``.
        rule: ``uniform``, ``lowest_index`` or ``authors``, see `authors_chances`.
        asked: who has replied, bool ``(players, *batch)``.
        key: decides the draws of a table, uint64 ``(*batch)``.
        count: a number that differs from draw to draw of a table, ``(*batch)``.
    """
    first, many = tied.argmax(axis=0), tied.sum(axis=0)
    if rule == "lowest_index" or not (many > 1).any():
        return first
    lot = lot_of(key, count)
    if rule == "uniform":  # a lot below 1 times a count stays below the count, in doubles too
        below = tied.cumsum(axis=0) <= (lot * many).astype(np.int64)
    else:
        chances = authors_chances(tied, asked).cumsum(axis=0)
        below = chances <= lot * chances[-1]
    return np.where(many > 1, below.sum(axis=0), first)


def authors_chances(tied: Array, asked: Array) -> Array:
    """Return each tied seat's chance to lead by AucArena's published code, float64, like `tied`.

    Replies are processed in seat order; after each one all earlier and equal highest bids are
    gone through again, and each takes the lead with probability 1/2.
    """
    chances, begun = np.zeros(tied.shape), np.zeros(tied.shape[1:], np.bool_)
    for seat in range(len(tied)):
        opens = tied[seat] & ~begun
        chances[seat] = np.where(opens, 1.0, chances[seat])
        for earlier in range(seat + 1):
            again = begun & asked[seat] & tied[earlier]
            chances = np.where(again, chances / 2, chances)
            chances[earlier] += again / 2
        begun = begun | opens
    return chances


def lot_of(key: Array, count: Array) -> Array:
    """Return a number in [0, 1) from a key and a count (the generator SplitMix64)."""
    with np.errstate(over="ignore"):  # it computes modulo 2**64
        mixed: Array = key + (np.asarray(count).astype(np.uint64) + 1) * 0x9E3779B97F4A7C15
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB
        return ((mixed ^ (mixed >> 31)) >> 11) * 2.0**-53
