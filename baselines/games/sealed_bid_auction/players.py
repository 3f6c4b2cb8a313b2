"""Bidders in the sealed-bid auction by rules of thumb (EconArena, section 3.1).

``truthful``: the own valuation. ``shade:S``: a share S of it, rounded down.
``all_in``: all its money, or where that is not limited its valuation. ``zero``: 0.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from llm_games.baselines.policies.base import Rule, shape
from llm_games.rulebook import Array
from llm_games.view import View

GAME = "sealed_bid_auction"


def money(view: View, column: str) -> Array:
    """Return an amount that a view shows in units of actions, int64 ``(*batch)``."""
    game: Any = view.game
    return np.rint(view.number(column).astype(np.float64) * game.unit).astype(np.int64)


def share(part: Fraction) -> Rule:
    """Return the bidder that bids an exact part of its valuation, at most its money."""
    return lambda view, rng: money(view, "valuation") * part.numerator // part.denominator


def all_in(view: View, rng: np.random.Generator) -> Array:
    """Bid all the money."""
    game: Any = view.game
    return money(view, "valuation" if game.assets is None else "assets")


def zero(view: View, rng: np.random.Generator) -> Array:
    """Bid nothing."""
    return np.zeros(shape(view), np.int64)


THUMB: dict[str, Rule] = {"all_in": all_in, "zero": zero}
"""Rules of thumb that other games have as well."""
