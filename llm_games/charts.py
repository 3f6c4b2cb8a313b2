"""Shapes that several games' pictures share: columns by seat, sealed bids, crowds of dots."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan

from llm_games.pictures import BLUE, FAINT, INK, Drawing

WIDE, HIGH = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 16, 56, 56
SOFT = "#767676"
"""A grey for what stands back; it is read on both grounds."""
BY_SEAT = (BLUE, "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#a08000", "#7a5195", SOFT)


def seat_chart(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Drawing:
    """Draw what `Rulebook.picture` shows: numbers as bars by seat, other columns below them."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(heads)
    by_head = dict(zip(heads[1:], columns[1:], strict=True))
    amounts = {head: [*map(_number, cells)] for head, cells in by_head.items()}
    amounts = {head: numbers for head, numbers in amounts.items() if any(map(isfinite, numbers))}
    words = [cells for head, cells in by_head.items() if head not in amounts]
    pen = Drawing(WIDE, HIGH, title)
    pen.text(LEFT, 10, title, 14)
    shown = [amount for values in amounts.values() for amount in values if isfinite(amount)]
    low, high = min([0.0, *shown]), max([0.0, *shown])
    high = high if high > low else low + 1
    _draw_axis(pen, low, high)
    _draw_legend(pen, list(amounts))
    pen.text(LEFT - 6, HIGH - BOTTOM + 4, heads[0], 12, SOFT, "right")
    step = (WIDE - LEFT - RIGHT) / max(len(rows), 1)
    for seat, row in enumerate(rows):
        left = LEFT + (seat + 0.1) * step
        bar = 0.8 * step / max(len(amounts), 1)
        for number, values in enumerate(amounts.values()):
            if isfinite(values[seat]):
                top = _height(max(values[seat], 0), low, high)
                base = _height(min(values[seat], 0), low, high)
                color = BY_SEAT[number % len(BY_SEAT)]
                pen.box(left + number * bar, top, max(bar - 1, 1), max(base - top, 1), color)
        lines = [row[0] if pen.length(row[0], 12) <= step else str(seat)]
        lines += [cells[seat] for cells in words if pen.length(cells[seat], 12) <= step]
        for line, text in enumerate(lines[:3]):
            y = HIGH - BOTTOM + 4 + 16 * line
            pen.text(left + 0.4 * step, y, text, 12, INK if line == 0 else SOFT, "middle")
    return pen


def _number(cell: str) -> float:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return nan


def _height(amount: float, low: float, high: float) -> float:
    return HIGH - BOTTOM - (amount - low) / (high - low) * (HIGH - TOP - BOTTOM)


def _draw_axis(pen: Drawing, low: float, high: float) -> None:
    for part in (0, 0.5, 1):
        amount = low + part * (high - low)
        y = _height(amount, low, high)
        pen.stroke(LEFT, y, WIDE - RIGHT, y, FAINT, 1)
        pen.text(LEFT - 6, y - 7, f"{float(f'{amount:.4g}'):g}", 12, SOFT, "right")


def _draw_legend(pen: Drawing, names: Sequence[str]) -> None:
    x = float(LEFT)
    for number, name in enumerate(names):
        pen.box(x, 33, 10, 10, BY_SEAT[number % len(BY_SEAT)])
        pen.text(x + 14, 30, name, 12, INK)
        x += 30 + pen.length(name, 12)
