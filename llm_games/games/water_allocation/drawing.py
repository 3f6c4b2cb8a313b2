"""A picture of a day: bids, who got water, and everybody's health."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from llm_games.charts import SOFT, Columns
from llm_games.pictures import BLUE, ORANGE, Drawing

if TYPE_CHECKING:
    from llm_games.games.water_allocation.rules import WaterAllocation, WaterAllocationState


def draw(game: WaterAllocation, state: WaterAllocationState, title: str) -> Drawing:
    """Draw bids as bars, blue for those who got water, and health below."""
    begun = bool(state.round)
    bids = np.where(state.took_part & begun, np.maximum(state.bids, 0), np.nan) / game.unit
    money = np.where(state.living, state.balance, np.nan) / game.unit
    high = np.nanmax([1.0, *bids, *money]) if game.players else 1.0
    water = f"{int(game.last_supply(state))} units of water" if begun else "before day 1"
    columns = Columns(title, game.names(), float(high), 0, f"{water}; frames: money left")
    columns.frames(money)
    columns.bars(bids, [BLUE if won else SOFT for won in state.won])
    got = np.where(state.won, "water", np.where(state.took_part, "dry", ""))
    columns.above(got.tolist() if begun else [""] * game.players, np.nan_to_num(bids))
    lives = zip(state.hp.tolist(), state.living.tolist(), strict=True)
    health = [f"health {hp}" if alive else "dead" for hp, alive in lives]
    columns.below(health, row=1, color=ORANGE)
    return columns.drawing
