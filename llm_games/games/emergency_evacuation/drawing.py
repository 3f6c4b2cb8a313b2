"""A picture of the room: people with their targets, exits, speakers, and the injured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.games.emergency_evacuation.geometry import SIDES, Layout
from llm_games.pictures import FAINT, INK, Canvas, Drawing, Pen, Words

COLORS = dict(zip(SIDES, ("#0072b2", "#e69f00", "#009e73", "#cc79a7"), strict=True))
WALL, SEAT, NOBODY, HURT = "#5a5a5a", "#cdbb9c", "#9a9a9a", "#d7191c"
SIZE, SMALLEST, LARGEST, PANEL = 600, 6, 40, 300  # pixels: a room, a cell, what is beside it
LINE = 17  # from one line of text to the next


class Scene(NamedTuple):
    """The contents of a picture: the room, people, facts beside it, how many left by each exit.

    People inside, an array each: `cell`, `came`, `target` (negative: none), `hurt` and `seat`.
    """

    layout: Layout
    people: dict[str, Array]
    facts: Sequence[tuple[str, str]]
    escaped: Array

    @property
    def cell(self) -> int:
        """The size of a cell in pixels, which depends on the room alone."""
        return min(max(SIZE // max(self.layout.rows, self.layout.columns), SMALLEST), LARGEST)

    @property
    def size(self) -> tuple[int, int]:
        rows, columns = self.layout.rows, self.layout.columns
        return columns * self.cell + PANEL, max(rows * self.cell, 480)


def room_image(scene: Scene, words: Words = (), speakers: Sequence[int] = ()) -> Array:
    """Draw a room as pixels, uint8 ``(height, width, 3)``."""
    canvas = Canvas(*scene.size)
    _paint(canvas, scene, words, speakers)
    return canvas.pixels()


def draw(game: Any, state: Any, title: str) -> Drawing:
    """Draw a room as SVG."""
    scene = game.scene(state)
    wide, high = scene.size
    drawing = Drawing(wide, high, title)
    _paint(drawing, scene)
    return drawing


def _paint(pen: Pen, scene: Scene, words: Words = (), speakers: Sequence[int] = ()) -> None:
    layout, size = scene.layout, scene.cell
    _room(pen, layout, size)
    _people(pen, layout, size, scene.people, {*speakers})
    _panel(pen, layout.columns * size + 16, layout, scene.facts, scene.escaped, words)


def _room(pen: Pen, layout: Layout, size: int) -> None:
    side = dict(zip(layout.exits.tolist(), layout.side.tolist(), strict=True))
    wide, high = layout.columns * size, layout.rows * size
    pen.box(0, 0, wide, high, "#fbfbfb")
    for row in range(1, layout.rows):
        pen.stroke(0, row * size, wide, row * size, "#ececec", 0.5)
    for column in range(1, layout.columns):
        pen.stroke(column * size, 0, column * size, high, "#ececec", 0.5)
    for cell in range(layout.cells):
        y, x = (int(coordinate) * size for coordinate in layout.row_column(cell))
        if cell in side:
            pen.box(x, y, size, size, COLORS[layout.sides[side[cell]]])
        elif layout.seat[cell]:
            pen.box(x + 1, y + 1, size - 2, size - 2, SEAT)
        elif not layout.open[cell]:
            pen.box(x, y, size, size, WALL)


def _people(
    pen: Pen, layout: Layout, size: int, people: dict[str, Array], speakers: set[int]
) -> None:
    middle, radius = size / 2, size * 0.38

    def middles(name: str) -> list[tuple[float, float]]:
        rows, columns = layout.row_column(people[name])
        return [(x * size + middle, y * size + middle) for x, y in zip(columns, rows, strict=True)]

    centers, previous_centers = middles("cell"), middles("came")
    for center, previous in zip(centers, previous_centers, strict=True):
        pen.stroke(*previous, *center, "#b5b5b5", size * 0.18)
    for (x, y), target, hurt in zip(centers, people["target"], people["hurt"], strict=True):
        color = NOBODY if target < 0 else COLORS[layout.sides[layout.side[target]]]
        pen.dot(x, y, radius, "#ffffff" if hurt else color, color)
        if hurt:
            arm = radius * 0.6
            for slope in (-1, 1):
                pen.stroke(x - arm, y - arm * slope, x + arm, y + arm * slope, HURT, size * 0.14)
    for (x, y), seat in zip(centers, people["seat"].tolist(), strict=True):
        if seat in speakers:  # a bubble, up and to the right, with the seat's number if it fits
            x0, y0, w, h = x + size * 0.1, y - size * 0.85, size * 0.85, size * 0.6
            pen.shape(
                [(x0, y0), (x0 + w, y0), (x0 + w, y0 + h), (x0 + w * 0.5, y0 + h),
                 (x0 + w * 0.15, y0 + h * 1.5), (x0 + w * 0.2, y0 + h), (x0, y0 + h)],
                "#ffffff", INK,
            )  # fmt: skip
            if size >= 16:
                pen.text(x0 + 2, y0, str(seat), int(h * 0.75))


def _panel(
    pen: Pen,
    x: float,
    layout: Layout,
    facts: Sequence[tuple[str, str]],
    escaped: Array,
    words: Words,
) -> None:
    wide, y = PANEL - 32, 12.0
    for index, (name, value) in enumerate(facts):
        pen.text(x, y, name, 18 if index == 0 else 13)
        pen.text(x + wide, y, value, side="right")
        y += LINE + (12 if index == 0 else 0)
    y += 10
    escaped_by_side = np.bincount(layout.side, escaped, len(layout.sides)).astype(int)
    for side, count in zip(layout.sides, escaped_by_side.tolist(), strict=True):
        pen.dot(x + 6, y + 8, 6, COLORS[side])
        pen.text(x + 20, y, f"{side}: out {count}")
        y += LINE
    pen.dot(x + 6, y + 8, 6, NOBODY)
    pen.text(x + 20, y, "no exit chosen")
    y += LINE
    pen.text(x + 2, y, "x", 15, HURT)
    pen.text(x + 20, y, "overtaken, cannot move")
    y += LINE + 8
    if not words:
        return
    pen.stroke(x, y, x + wide, y, FAINT, 1)
    room = int((pen.height - y - 12) // LINE)
    lines: list[str] = []
    for index, (name, text) in enumerate(reversed(words)):  # the newest that there is room for
        message_lines = [*pen.wrapped(f"{name}: {text}", wide)]
        if len(message_lines) + len(lines) >= room:
            lines = [f"... and {len(words) - index} before", *lines]
            break
        lines = message_lines + lines
    for line in lines:
        pen.text(x, y + 6, line)
        y += LINE
