"""A picture of a round: bids beside valuations, who won and for how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from llm_games.charts import Columns
from llm_games.pictures import BLUE, GREEN, ORANGE, Drawing

if TYPE_CHECKING:
    from llm_games.games.budget_auction.rules import BudgetAuction, BudgetAuctionState


def draw(game: BudgetAuction, state: BudgetAuctionState, title: str) -> Drawing:
    """Draw bids as bars in frames of valuations; the winner's is green."""
    begun, winner = bool(state.round), int(state.winner)
    values = np.asarray(state.valuations, np.float64) / game.unit
    bids = np.where(begun, np.maximum(state.bids, 0), np.nan) / game.unit
    price, sold = float(state.price) / game.unit, begun and winner >= 0
    words = f"{game.names()[winner]} pays {price:g}" if sold else "no sale" if begun else ""
    columns = Columns(title, game.names(), float(np.nanmax([*values, *bids])), 0, words)
    columns.bars(bids, [GREEN if seat == winner else BLUE for seat in range(game.players)])
    columns.frames(values)
    if sold:
        columns.level(price, f"price {price:g}", ORANGE)
    return columns.drawing
