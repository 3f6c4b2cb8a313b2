"""A picture of a round of bidding: bids on the item beside what bidders can spend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from llm_games.charts import LEFT, Columns
from llm_games.games.english_auction.rules import WITHDRAW
from llm_games.pictures import BLUE, GREEN, ORANGE, Drawing

if TYPE_CHECKING:
    from llm_games.games.english_auction.rules import EnglishAuction, EnglishAuctionState


def draw(game: EnglishAuction, state: EnglishAuctionState, title: str) -> Drawing:
    """Draw last bids as bars in frames of budgets, and what everybody has bought and gained."""
    place, leader = int(state.item), int(state.leader)
    open_ = place < len(game.catalogue)
    bids = np.where(open_ & (state.last_reply >= 0), state.last_reply, np.nan)
    words = f"on sale: {game.item_at(state, place).name}" if open_ else "all items are closed"
    columns = Columns(title, game.names(), float(max(state.budget.max(), game.purses.max())))
    columns.drawing.text(LEFT, 12, words, 14)
    columns.frames(state.budget)
    columns.bars(bids, [GREEN if seat == leader else BLUE for seat in range(game.players)])
    replies = [
        "leads" if seat == leader else "out" if reply == WITHDRAW else ""
        for seat, reply in enumerate(state.last_reply.tolist())
    ]
    if open_:
        columns.above(replies, np.nan_to_num(bids))
        columns.level(float(state.start), f"start {int(state.start)}", ORANGE)
    bought = [
        f"{won} for {profit:+d}" if won else ""
        for won, profit in zip(state.won.tolist(), state.profit.tolist(), strict=True)
    ]
    columns.below(bought, row=1)
    return columns.drawing
