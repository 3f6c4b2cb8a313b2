"""A picture of a round: bids beside valuations, who won and for how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from llm_games.charts import sealed_bids
from llm_games.pictures import Drawing

if TYPE_CHECKING:
    from llm_games.games.budget_auction.rules import BudgetAuction, BudgetAuctionState


def draw(game: BudgetAuction, state: BudgetAuctionState, title: str) -> Drawing:
    """Draw bids as bars in frames of valuations; the winner's is green."""
    begun = bool(state.round)
    values = np.asarray(state.valuations, np.float64) / game.unit
    bids = np.where(begun, np.maximum(state.bids, 0), np.nan) / game.unit
    sale = (int(state.winner), float(state.price) / game.unit) if begun else None
    return sealed_bids(title, game.names(), values, bids, sale)
