"""A picture of a round: what everybody had, gave and got back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from llm_games.charts import Columns
from llm_games.pictures import BLUE, GREEN, Drawing

if TYPE_CHECKING:
    from llm_games.games.public_goods.rules import PublicGoods, PublicGoodsState


def draw(game: PublicGoods, state: PublicGoodsState, title: str) -> Drawing:
    """Draw contributions as bars in frames of what was held after the round."""
    given, held = state.contributions, state.tokens if state.round else state.endowment
    pot, ratio = int(given.sum()), float(game.ratio)
    share = pot * ratio / game.players
    words = f"pot {pot} × {ratio:g}: {share:g} for everybody" if state.round else "before round 1"
    columns = Columns(title, game.names(), float(max(held.max(), state.endowment.max())), 0, words)
    columns.frames(held)
    columns.bars(given, BLUE)
    if state.round:
        columns.level(share, f"back {share:g}", GREEN)
        columns.above([f"{int(amount)}" for amount in given], np.maximum(given, 0))
    return columns.drawing
