"""Who leads in an auction when several bidders make the highest bid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from llm_games.rulebook import PerPlayer, PerTable


def leader_of(
    tied: PerPlayer, rule: str, asked: PerPlayer, draw: Callable[[], PerTable]
) -> PerTable:
    """Return the seat that leads at each table, int64; 0 where nobody bids.

    By the rule ``uniform``, ``lowest_index`` or ``authors`` (see `authors_chances`), of those tied
    at the highest bid; what `draw` returns, from 0 to below 1, decides among several.
    """
    first, many = tied.argmax(axis=0), tied.sum(axis=0)
    if rule == "lowest_index" or not (many > 1).any():
        return first
    lot = draw()
    if rule == "uniform":  # a lot below 1 times a count stays below the count, in doubles too
        below = tied.cumsum(axis=0) <= (lot * many).astype(np.int64)
    else:
        chances = authors_chances(tied, asked).cumsum(axis=0)
        below = chances <= lot * chances[-1]
    return np.where(many > 1, below.sum(axis=0), first)


def authors_chances(tied: PerPlayer, asked: PerPlayer) -> PerPlayer:
    """Return each tied seat's chance to lead by AucArena's published code, float64.

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
