"""A picture of a round: the firms' prices of the last rounds, beside their costs."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from llm_games.charts import BY_SEAT, HIGH, LEFT, SOFT, WIDE
from llm_games.pictures import FAINT, INK, Drawing

if TYPE_CHECKING:
    from llm_games.games.bertrand_competition.rules import BertrandCompetition, BertrandState

TOP, BOTTOM = 44, 40
END = WIDE - 100
"""Where the last round stands; the firms are named right of it."""


def draw(game: BertrandCompetition, state: BertrandState, title: str) -> Drawing:
    """Draw a line of prices for each firm over as many rounds as are told."""
    pen, done = Drawing(WIDE, HIGH, title), int(state.round)
    many = min(done, len(state.past_prices))
    prices = state.past_prices[len(state.past_prices) - many :] / game.unit
    costs = [float(cost) for cost in game.of_each("cost")]
    low, high = (end([*prices.flat, *costs, *more]) for end, more in ((min, [0]), (max, [1])))
    y = lambda price: HIGH - BOTTOM - (price - low) / (high - low) * (HIGH - TOP - BOTTOM)
    step = (END - LEFT) / max(many - 1, 1)
    said = "profits " + ", ".join(f"{profit:.4g}" for profit in state.profits[:8])
    pen.text(LEFT, 12, said if done else "before round 1", 14)
    for value in np.linspace(low, high, 3):
        pen.stroke(LEFT, y(value), END, y(value), FAINT, 1)
        pen.text(LEFT - 6, y(value) - 7, f"{value:.4g}", 12, SOFT, "right")
    for cost in sorted({*costs}):
        pen.stroke(LEFT, y(cost), END, y(cost), SOFT, 1.5)
        pen.text(END - 4, y(cost) + 3, "cost", 12, SOFT, "right")
    order: list[int] = np.argsort(prices[-1], kind="stable")[::-1].tolist() if many else []
    names, at = dict[int, float](), 0.0
    for seat in order:  # so far below each other that all can be read
        names[seat] = at = max(y(prices[-1][seat]), at + 15)
    for seat in range(game.players if many else 0):
        color, line = BY_SEAT[seat % len(BY_SEAT)], prices[:, seat]
        places = [(LEFT + place * step, y(price)) for place, price in enumerate(line)]
        for one, other in pairwise(places):
            pen.stroke(*one, *other, color, 2)
        pen.dot(*places[-1], 4, color)
        if game.players <= 12:
            pen.text(END + 8, names[seat] - 7, game.names()[seat], 12, color)
    if many:
        pen.text(LEFT, HIGH - BOTTOM + 8, f"round {done - many + 1}", 12, SOFT)
        pen.text(END, HIGH - BOTTOM + 8, str(done), 12, INK, "right")
    return pen
