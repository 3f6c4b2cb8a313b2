"""A picture of a round: who is at the bar and who at home."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from llm_games.charts import WIDE, crowd
from llm_games.games.el_farol_bar.rules import GO
from llm_games.pictures import BLUE, GREEN, ORANGE, Drawing

if TYPE_CHECKING:
    from llm_games.games.el_farol_bar.rules import ElFarolBar, ElFarolBarState

GREY = "#767676"


def draw(game: ElFarolBar, state: ElFarolBarState, title: str) -> Drawing:
    """Draw two boxes with the players of the last round; the bar's rim says whether it was good."""
    pen, went = Drawing(WIDE, 300, title), state.decisions == GO
    begun, most = bool(state.round), game.terms()["capacity"]
    there, home = (np.flatnonzero(where & begun).tolist() for where in (went, ~went))
    good = len(there) <= most
    said = f"the bar: {len(there)} of {game.players}, good up to {most}"
    crowd(pen, 16, 296, said, there, BLUE, GREEN if good else ORANGE)
    crowd(pen, 330, 296, f"at home: {len(home)}", home, GREY, GREY)
    return pen
