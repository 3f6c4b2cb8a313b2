"""A picture of a round: who ordered which dish."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from llm_games.charts import WIDE, crowd
from llm_games.games.diners_dilemma.rules import COSTLY
from llm_games.pictures import GREEN, ORANGE, Drawing

if TYPE_CHECKING:
    from llm_games.games.diners_dilemma.rules import DinersDilemma, DinersDilemmaState


def draw(game: DinersDilemma, state: DinersDilemmaState, title: str) -> Drawing:
    """Draw two boxes with those who ordered each dish in the last round."""
    pen, costly = Drawing(WIDE, 300, title), state.dishes == COSTLY
    begun = bool(state.round)
    dear, cheap = (np.flatnonzero(where & begun).tolist() for where in (costly, ~costly))
    crowd(pen, 16, 296, f"costly ({game.costly_price}): {len(dear)}", dear, "#b34d00", ORANGE)
    crowd(pen, 330, 296, f"cheap ({game.cheap_price}): {len(cheap)}", cheap, "#007a59", GREEN)
    return pen
