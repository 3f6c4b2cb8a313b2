"""Shapes that games' own pictures share: columns by seat, sealed bids, crowds of dots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, sqrt
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.pictures import BLUE, FAINT, GREEN, INK, ORANGE, Drawing

WIDE, HIGH = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 86, 44, 40
SOFT = "#767676"
"""A grey for what stands back; it is read on both grounds."""
BY_SEAT = (BLUE, "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#a08000", "#7a5195", SOFT)


class Columns:
    """A drawing with a column for each seat, in which amounts from `low` to `high` stand.

    `title` says what is seen; `words` stand above the columns.
    """

    def __init__(
        self, title: str, names: Sequence[str], high: float, low: float = 0, words: str = ""
    ) -> None:
        self.drawing = pen = Drawing(WIDE, HIGH, title)
        self.low, self.high = low, high if high > low else low + 1
        self.step = (WIDE - LEFT - RIGHT) / max(len(names), 1)
        pen.text(LEFT, 12, words, 14)
        for part in (0, 0.5, 1):
            value = self.low + part * (self.high - self.low)
            pen.stroke(LEFT, self.y(value), WIDE - RIGHT, self.y(value), FAINT, 1)
            pen.text(LEFT - 6, self.y(value) - 7, f"{float(f'{value:.4g}'):g}", 12, SOFT, "right")
        self.below(names if self._fit(names) else [str(seat) for seat in range(len(names))])

    def _fit(self, texts: Iterable[str]) -> bool:
        return all(self.drawing.length(text, 12) <= self.step for text in texts)

    def x(self, seat: int) -> float:
        """Return where the middle of a seat's column is."""
        return LEFT + (seat + 0.5) * self.step

    def y(self, value: float) -> float:
        """Return where an amount stands; beyond the ends at the end."""
        part = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return HIGH - BOTTOM - part * (HIGH - TOP - BOTTOM)

    def bars(self, values: Iterable[Any], colors: Sequence[str] | str, share: float = 0.6) -> None:
        """Fill columns up to these amounts; what is no number is left out."""
        wide = max(self.step * share, 1)
        for seat, value in enumerate(values):
            if np.isfinite(value):
                color = colors if isinstance(colors, str) else colors[seat]
                top, base = sorted((self.y(float(value)), self.y(max(self.low, 0))))
                self.drawing.box(self.x(seat) - wide / 2, top, wide, max(base - top, 1), color)

    def frames(self, values: Iterable[Any], color: str = SOFT) -> None:
        """Draw a line across each column at these amounts, with sides down to the ground."""
        wide = self.step * 0.72
        for seat, value in enumerate(values):
            if np.isfinite(value):
                left, right = self.x(seat) - wide / 2, self.x(seat) + wide / 2
                top, base = self.y(float(value)), self.y(max(self.low, 0))
                self.drawing.stroke(left, top, right, top, color, 1.5)
                for side in (left, right):
                    self.drawing.stroke(side, top, side, base, color, 1)

    def level(self, value: float, text: str, color: str) -> None:
        """Draw a line across all columns, and say what it is."""
        self.drawing.stroke(LEFT, self.y(value), WIDE - RIGHT, self.y(value), color, 1.5)
        self.drawing.text(WIDE - RIGHT + 6, self.y(value) - 8, text, 12, color)

    def above(self, texts: Sequence[str], values: Iterable[Any], color: str = INK) -> None:
        """Write a word above each amount, where there is room."""
        if self._fit(texts):
            for seat, (text, value) in enumerate(zip(texts, values, strict=True)):
                at = self.y(float(value)) if np.isfinite(value) else self.y(self.low)
                self.drawing.text(self.x(seat), at - 16, text, 12, color, "middle")

    def below(self, texts: Sequence[str], row: int = 0, color: str = INK) -> None:
        """Write a word under each column, where there is room."""
        if self._fit(texts):
            for seat, text in enumerate(texts):
                at = HIGH - BOTTOM + 5 + 16 * row
                self.drawing.text(self.x(seat), at, text, 12, color, "middle")


def sealed_bids(
    title: str, names: Sequence[str], values: Array, bids: Array, sale: tuple[int, float] | None
) -> Drawing:
    """Draw bids (NaN: none) as bars in frames of valuations, and the price of a sale.

    `sale` is the winner, whose bar is green, and the price, a winner of -1 if nobody bought; None
    before there was one.
    """
    winner, price = sale or (-1, 0.0)
    words = f"{names[winner]} pays {price:g}" if winner >= 0 else "no sale" if sale else ""
    columns = Columns(title, names, float(np.nanmax([*values, *bids])), 0, words)
    columns.bars(bids, [GREEN if seat == winner else BLUE for seat in range(len(names))])
    columns.frames(values)
    if winner >= 0:
        columns.level(price, f"price {price:g}", ORANGE)
    return columns.drawing


def crowd(
    pen: Drawing, x: float, wide: float, words: str, seats: Sequence[int], color: str, rim: str
) -> None:
    """Draw a box with a dot for each of these seats, and words above it."""
    high = HIGH - TOP - 16
    pen.text(x, TOP - 22, words, 14)
    for ends in ((0, 0, 1, 0), (1, 0, 1, 1), (1, 1, 0, 1), (0, 1, 0, 0)):
        left, top, right, end = ends
        pen.stroke(x + left * wide, TOP + top * high, x + right * wide, TOP + end * high, rim, 2)
    if not seats:
        return
    across = ceil(sqrt(len(seats) * wide / high))
    size = min(wide / across, high / ceil(len(seats) / across), 64)
    for place, seat in enumerate(seats):
        row, column = divmod(place, across)
        at_x, at_y = x + 8 + (column + 0.45) * size, TOP + 8 + (row + 0.45) * size
        pen.dot(at_x, at_y, 0.4 * size, color)
        if size >= 20:
            pen.text(at_x, at_y - 7, str(seat), 13, "#ffffff", "middle")
