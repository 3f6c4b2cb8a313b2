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
    pen, many = Drawing(SIZE, SIZE, title), game.players
    turn = [2 * pi * seat / many - pi / 2 for seat in range(many)]
    at = [(MIDDLE + AROUND * cos(a), MIDDLE + AROUND * sin(a)) for a in turn]
    radius = min(24.0, 0.4 * 2 * pi * AROUND / many)
    last = int(state.shot.argmax())
    if state.round:
        target = int(state.target[last])
        if 0 <= target < many and target != last:
            pen.stroke(*at[last], *at[target], RED if state.hit[last] else SOFT, 4)
        said = "missed on purpose" if target < 0 else "hit" if state.hit[last] else "missed"
        pen.text(MIDDLE, MIDDLE - 8, f"{game.names()[last]}: {said}", 14, INK, "middle")
    for seat, (x, y) in enumerate(at):
        alive = bool(state.living[seat])
        pen.dot(x, y, radius, BLUE if alive else FAINT, BLUE if alive else SOFT)
        if radius >= 10:
            pen.text(x, y - 7, str(seat), 13, "#ffffff" if alive else SOFT, "middle")
            away = 1 + (radius + 16) / AROUND
            where = MIDDLE + (x - MIDDLE) * away, MIDDLE + (y - MIDDLE) * away - 7
            rate = f"{game.rates[seat]}%" if alive else "out"
            pen.text(*where, rate, 12, INK if alive else SOFT, "middle")
    return pen
