"""A picture of a shot: who is alive, who shot at whom, and whether it hit."""

from __future__ import annotations

from math import cos, pi, sin
from typing import TYPE_CHECKING

from llm_games.charts import SOFT
from llm_games.pictures import BLUE, FAINT, INK, RED, Drawing

if TYPE_CHECKING:
    from llm_games.games.battle_royale.rules import BattleRoyale, BattleRoyaleState

SIZE, MIDDLE, AROUND = 420, 210, 150


def draw(game: BattleRoyale, state: BattleRoyaleState, title: str) -> Drawing:
    """Draw all in a circle; the last shot is a line to its target, red if it hit."""
    pen, count = Drawing(SIZE, SIZE, title), game.players
    angles = [2 * pi * seat / count - pi / 2 for seat in range(count)]
    positions = [(MIDDLE + AROUND * cos(a), MIDDLE + AROUND * sin(a)) for a in angles]
    radius = min(24.0, 0.4 * 2 * pi * AROUND / count)
    last = int(state.shot.argmax())
    if state.round:
        target = int(state.target[last])
        if 0 <= target < count and target != last:
            pen.stroke(*positions[last], *positions[target], RED if state.hit[last] else SOFT, 4)
        outcome = "missed on purpose" if target < 0 else "hit" if state.hit[last] else "missed"
        pen.text(MIDDLE, MIDDLE - 8, f"{game.names()[last]}: {outcome}", 14, INK, "middle")
    pen.text(6, 6, "%: how often it hits", 11, SOFT)
    pen.text(6, 22, "grey: out", 11, SOFT)
    pen.text(6, 38, "red line: hit", 11, SOFT)
    for seat, (x, y) in enumerate(positions):
        alive = bool(state.living[seat])
        pen.dot(x, y, radius, BLUE if alive else FAINT, BLUE if alive else SOFT)
        if radius >= 10:
            pen.text(x, y - 7, str(seat), 13, "#ffffff" if alive else SOFT, "middle")
            distance = 1 + (radius + 16) / AROUND
            label_position = MIDDLE + (x - MIDDLE) * distance, MIDDLE + (y - MIDDLE) * distance - 7
            rate = f"{game.rates[seat]}%" if alive else "out"
            pen.text(*label_position, rate, 12, INK if alive else SOFT, "middle")
    return pen
