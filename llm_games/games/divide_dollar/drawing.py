"""A picture of a round: the bids in a row beside what there is to divide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_games.charts import BY_SEAT, WIDE
from llm_games.pictures import GREEN, INK, ORANGE, Drawing

if TYPE_CHECKING:
    from llm_games.games.divide_dollar.rules import DivideDollar, DivideDollarState

LEFT, LONG, TOP, HIGH = 20, 600, 70, 60


def draw(game: DivideDollar, state: DivideDollarState, title: str) -> Drawing:
    """Draw the bids one after another, and a line where the amount ends."""
    pen = Drawing(WIDE, 180, title)
    bids = [max(int(bid), 0) for bid in state.bids]
    total = sum(bids)
    scale, at = LONG / max(total, game.golds, 1), float(LEFT)
    paid = total <= game.golds
    words = f"bids {total} of {game.golds}: {'all are paid' if paid else 'nobody is paid'}"
    pen.text(LEFT, 14, words if state.round else "before round 1", 14)
    pen.box(LEFT, TOP - 8, game.golds * scale, HIGH + 16, "#8a8a8a")
    for seat, bid in enumerate(bids):
        pen.box(at, TOP, max(bid * scale - 1, 0), HIGH, BY_SEAT[seat % len(BY_SEAT)])
        if bid * scale >= 26:
            pen.text(at + bid * scale / 2, TOP + 12, str(bid), 14, "#ffffff", "middle")
            pen.text(at + bid * scale / 2, TOP + HIGH + 12, str(seat), 12, INK, "middle")
        at += bid * scale
    end = LEFT + game.golds * scale
    pen.stroke(end, TOP - 20, end, TOP + HIGH + 20, GREEN if paid else ORANGE, 3)
    pen.text(end, TOP - 36, str(game.golds), 13, INK, "right")
    return pen
