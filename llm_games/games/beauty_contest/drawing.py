"""A picture of a round: the numbers on a line, their mean and the target."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from llm_games.charts import SOFT, WIDE
from llm_games.pictures import BLUE, FAINT, GREEN, INK, ORANGE, WHITE, Drawing

if TYPE_CHECKING:
    from llm_games.games.beauty_contest.rules import BeautyContest, BeautyContestState

LEFT, LONG, GROUND = 30, 580, 240
LEGEND = (GREEN, GREEN, "won"), (BLUE, BLUE, "did not"), (FAINT, ORANGE, "did not count")


def draw(game: BeautyContest, state: BeautyContestState, title: str) -> Drawing:
    """Draw a dot for each number, in piles where they are alike; winners are green."""
    pen = Drawing(WIDE, 300, title)
    low, high = game.bounds()[0], max(int(state.limit), game.bounds()[0] + 1)
    x_of = lambda units: LEFT + LONG * (min(max(float(units), low), high) - low) / (high - low)
    pen.stroke(LEFT, GROUND, LEFT + LONG, GROUND, SOFT, 1.5)
    for part in range(5):
        value = low + (high - low) * part / 4
        pen.stroke(x_of(value), GROUND, x_of(value), GROUND + 6, SOFT, 1)
        pen.text(x_of(value), GROUND + 9, f"{value / game.unit:g}", 12, SOFT, "middle")
    pen.text(LEFT + LONG, GROUND + 26, "number chosen", 12, SOFT, "right")
    x = float(LEFT)
    for color, rim, meaning in LEGEND:
        pen.dot(x + 6, GROUND + 34, 5, color, rim)
        pen.text(x + 16, GROUND + 26, meaning, 12, SOFT)
        x += 34 + pen.length(meaning, 12)
    if not state.round:
        pen.text(LEFT, 14, "before round 1", 14)
        return pen
    if np.isfinite(state.target):
        for amount, name, color, row in (
            (state.mean, "mean", SOFT, 14),
            (state.target, "target", GREEN, 34),
        ):
            x = x_of(float(amount) * game.unit)
            pen.stroke(x, row + 18, x, GROUND, color, 1.5)
            side = "left" if x < WIDE / 2 else "right"
            pen.text(x, row, f"{name} {float(amount):.4g}", 13, INK, side)
    piles: Counter[int] = Counter()
    for seat, units in enumerate(state.numbers.tolist()):
        x = x_of(units)
        row = piles[round(x / 12)]
        piles[round(x / 12)] += 1
        legal, color = state.legal[seat], GREEN if state.won[seat] else BLUE
        position = x, max(GROUND - 10 - 13 * row, 60)
        pen.dot(*position, 6, color if legal else FAINT, color if legal else ORANGE)
        if game.players <= 20 and legal:
            pen.text(position[0], position[1] - 6, str(seat), 9, WHITE, "middle")
    return pen
