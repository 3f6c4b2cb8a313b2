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
END = WIDE - 100  # where the last round stands; the firms are named right of it


def draw(game: BertrandCompetition, state: BertrandState, title: str) -> Drawing:
    """Draw a line of prices for each firm over as many rounds as are told."""
    pen, done = Drawing(WIDE, HIGH, title), int(state.round)
    shown = min(done, len(state.past_prices))
    prices = state.past_prices[len(state.past_prices) - shown :] / game.unit
    costs = [float(cost) for cost in game.of_each("cost")]
    low, high = (end([*prices.flat, *costs, *extra]) for end, extra in ((min, [0]), (max, [1])))
    y = lambda price: HIGH - BOTTOM - (price - low) / (high - low) * (HIGH - TOP - BOTTOM)
    step = (END - LEFT) / max(shown - 1, 1)
    caption = "profits " + ", ".join(f"{profit:.4g}" for profit in state.profits[:8])
    pen.text(LEFT, 12, caption if done else "before round 1", 14)
    pen.text(LEFT - 6, TOP - 20, "price", 12, SOFT, "right")
    for value in np.linspace(low, high, 3):
        pen.stroke(LEFT, y(value), END, y(value), FAINT, 1)
        pen.text(LEFT - 6, y(value) - 7, f"{value:.4g}", 12, SOFT, "right")
    for cost in sorted({*costs}):
        pen.stroke(LEFT, y(cost), END, y(cost), SOFT, 1.5)
        pen.text(END - 4, y(cost) + 3, "cost", 12, SOFT, "right")
    order: list[int] = np.argsort(prices[-1], kind="stable")[::-1].tolist() if shown else []
    names, label_y = dict[int, float](), 0.0
    for seat in order:  # so far below each other that all can be read
        names[seat] = label_y = max(y(prices[-1][seat]), label_y + 15)
    for seat in range(game.players if shown else 0):
        color, line = BY_SEAT[seat % len(BY_SEAT)], prices[:, seat]
        places = [(LEFT + round_index * step, y(price)) for round_index, price in enumerate(line)]
        for point, next_point in pairwise(places):
            pen.stroke(*point, *next_point, color, 2)
        pen.dot(*places[-1], 4, color)
        if game.players <= 12:
            pen.text(END + 8, names[seat] - 7, game.names()[seat], 12, color)
    if shown:
        pen.text(LEFT, HIGH - BOTTOM + 8, f"round {done - shown + 1}", 12, SOFT)
        pen.text(END, HIGH - BOTTOM + 8, str(done), 12, INK, "right")
    return pen
