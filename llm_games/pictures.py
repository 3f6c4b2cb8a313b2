"""Pens that draw pictures of a table: as pixels, which need Pillow (an extra), or as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from llm_games.arrays import Array
from llm_games.errors import LLMGamesError, install

RENDER_MODES = "ansi", "human", "rgb_array"
POSSIBLE_MODES = RENDER_MODES if find_spec("PIL") else RENDER_MODES[:2]
"""How environments can show a table: as text, printed, or as pixels if Pillow is installed."""
WHITE, INK, FAINT = "#ffffff", "#222222", "#d9d9d9"
BLUE, ORANGE, GREEN, PURPLE, RED = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#d7191c"
MOST_DRAWN = 400  # seats up to which a game draws its own picture
FONT = "mpl-data/fonts/ttf/DejaVuSans.ttf"
WIDE = 480
SMOOTH = 2  # pictures are drawn so many times as large as they are shown, so that edges are smooth
SIDES = {"left": ("start", 0), "middle": ("middle", 0.5), "right": ("end", 1)}
"""What SVG calls where a line is held, and how much of it is left of there."""
DARK = {WHITE: "#15181c", INK: "#e8e8e8", FAINT: "#454a50", BLUE: "#5ab4e5", ORANGE: "#f08a4b"}
DARK |= {GREEN: "#3cc79b", RED: "#ff6b60", "#fbfbfb": "#22262b", "#ececec": "#2f353b"}
DARK |= {"#767676": "#9aa2aa"}
"""Colours that are others on a dark ground."""
LETTER = 0.55  # how wide a letter is, about, as a share of a line's size, where no font is at hand
Words = Sequence[tuple[str, str]]  # messages, oldest first: who spoke, and what


class PicturesExtraMissing(LLMGamesError, ImportError):
    """Pictures need Pillow, which an extra brings."""


def need_pillow() -> None:
    if not find_spec("PIL"):
        why = f"pictures need Pillow, which is not installed: {install('report')}"
        raise PicturesExtraMissing(why)


class Pen(Protocol):
    """Interface of both pens; all lengths are in pixels as shown."""

    width: int
    height: int

    def box(self, x: float, y: float, wide: float, high: float, color: str) -> None:
        """Fill a rectangle from its upper left corner."""

    def dot(self, x: float, y: float, radius: float, color: str, rim: str | None = None) -> None:
        """Fill a circle around a point, perhaps with a rim."""

    def shape(self, points: Iterable[tuple[float, float]], color: str, rim: str) -> None:
        """Fill a polygon with a rim."""

    def stroke(self, x: float, y: float, to_x: float, to_y: float, color: str, wide: float) -> None:
        """Draw a line."""

    def text(
        self, x: float, y: float, text: str, size: float = 13, color: str = INK, side: str = "left"
    ) -> None:
        """Write a line from, to or around a point of its upper edge: `side` left, right, middle."""

    def length(self, text: str, size: float = 13) -> float:
        """Return how wide a line is."""

    def wrapped(self, text: str, wide: float, size: float = 13) -> Iterator[str]:
        """Break a text into lines of at most this width; what cannot be printed is left out."""
        row = ""
        for word in "".join(c if c.isprintable() else " " for c in text).split():
            longer = f"{row} {word}".strip()
            if row and self.length(longer, size) > wide:
                yield row
                longer = word
            while self.length(longer, size) > wide:  # a word that is longer than a line
                fits = next(k for k in range(len(longer), 0, -1)
                            if k == 1 or self.length(longer[:k], size) <= wide)  # fmt: skip
                yield longer[:fits]
                longer = longer[fits:]
            row = longer
        if row:
            yield row


class Canvas(Pen):
    """White paper of ``width`` by ``height`` pixels; raises PicturesExtraMissing without Pillow."""

    def __init__(self, width: int, height: int) -> None:
        need_pillow()
        from PIL import Image, ImageDraw

        self.width, self.height = width, height
        self._image = Image.new("RGB", (width * SMOOTH, height * SMOOTH), WHITE)
        self._draw = ImageDraw.Draw(self._image)
        self._fonts: dict[float, Any] = {}

    def box(self, x: float, y: float, wide: float, high: float, color: str) -> None:
        edges = (x * SMOOTH, y * SMOOTH, (x + wide) * SMOOTH - 1, (y + high) * SMOOTH - 1)
        self._draw.rectangle(edges, fill=color)

    def dot(self, x: float, y: float, radius: float, color: str, rim: str | None = None) -> None:
        edges = [(center + sign * radius) * SMOOTH for sign in (-1, 1) for center in (x, y)]
        self._draw.ellipse(edges, fill=color, outline=rim, width=SMOOTH)

    def shape(self, points: Iterable[tuple[float, float]], color: str, rim: str) -> None:
        scaled = [(x * SMOOTH, y * SMOOTH) for x, y in points]
        self._draw.polygon(scaled, fill=color, outline=rim, width=SMOOTH // 2)

    def stroke(self, x: float, y: float, to_x: float, to_y: float, color: str, wide: float) -> None:
        ends = [coordinate * SMOOTH for coordinate in (x, y, to_x, to_y)]
        self._draw.line(ends, fill=color, width=max(round(wide * SMOOTH), 1))

    def text(
        self, x: float, y: float, text: str, size: float = 13, color: str = INK, side: str = "left"
    ) -> None:
        x -= self.length(text, size) * SIDES[side][1]
        self._draw.text((x * SMOOTH, y * SMOOTH), text, fill=color, font=self._font(size))

    def length(self, text: str, size: float = 13) -> float:
        return float(self._font(size).getlength(text)) / SMOOTH

    def _font(self, size: float) -> Any:
        from PIL import ImageFont

        if size not in self._fonts:
            plotting = find_spec("matplotlib")  # its font has more letters than Pillow's own
            file, large = Path((plotting and plotting.origin) or "").parent / FONT, size * SMOOTH
            if file.exists():
                self._fonts[size] = ImageFont.truetype(str(file), large * 0.9)
            else:
                self._fonts[size] = ImageFont.load_default(large)
        return self._fonts[size]

    def pixels(self) -> Array:
        return np.asarray(self._image.reduce(SMOOTH))


class Drawing(Pen):
    """An SVG picture with colours as attributes; `title` describes it in a sentence."""

    def __init__(self, width: int, height: int, title: str = "") -> None:
        self.width, self.height, self.title = width, height, title
        self._parts: list[tuple[str, tuple[str, ...]]] = []  # tags with %s for their colours

    def _add(self, tag: str, *colors: str) -> None:
        self._parts.append((tag, colors))

    def box(self, x: float, y: float, wide: float, high: float, color: str) -> None:
        size = f'x="{x:.5g}" y="{y:.5g}" width="{max(wide, 0):.5g}" height="{max(high, 0):.5g}"'
        self._add(f'<rect {size} fill="%s"/>', color)

    def dot(self, x: float, y: float, radius: float, color: str, rim: str | None = None) -> None:
        geometry = f'cx="{x:.5g}" cy="{y:.5g}" r="{radius:.4g}"'
        self._add(f'<circle {geometry} fill="%s" stroke="%s"/>', color, rim or color)

    def shape(self, points: Iterable[tuple[float, float]], color: str, rim: str) -> None:
        corners = " ".join(f"{x:.5g},{y:.5g}" for x, y in points)
        self._add(f'<polygon points="{corners}" fill="%s" stroke="%s"/>', color, rim)

    def stroke(self, x: float, y: float, to_x: float, to_y: float, color: str, wide: float) -> None:
        ends = f'x1="{x:.5g}" y1="{y:.5g}" x2="{to_x:.5g}" y2="{to_y:.5g}"'
        self._add(f'<line {ends} stroke="%s" stroke-width="{wide:.3g}"/>', color)

    def text(
        self, x: float, y: float, text: str, size: float = 13, color: str = INK, side: str = "left"
    ) -> None:
        shown = escape("".join(c if c.isprintable() else " " for c in text)).replace("%", "%%")
        geometry = f'x="{x:.5g}" y="{y + 0.88 * size:.5g}" font-size="{0.92 * size:.3g}"'
        anchor = f'text-anchor="{SIDES[side][0]}"'
        self._add(f'<text {geometry} {anchor} fill="%s">{shown}</text>', color)

    def length(self, text: str, size: float = 13) -> float:
        """Estimate the width of a line."""
        return LETTER * size * len(text)

    def tags(self, dark: bool = False) -> list[str]:
        """Return what is drawn, in order, without the frame."""
        palette = DARK if dark else {}
        return [tag % tuple(palette.get(c, c) for c in colors) for tag, colors in self._parts]

    def svg(self, dark: bool = False) -> str:
        """Return the SVG text, with other colours for a dark ground."""
        palette, inside = DARK if dark else {}, self.tags(dark)
        frame = f'width="{self.width}" height="{self.height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {frame} '
            f'viewBox="0 0 {self.width} {self.height}" font-family="sans-serif">'
            f"<title>{escape(self.title)}</title>"
            f'<rect {frame} fill="{palette.get(WHITE, WHITE)}"/>{"".join(inside)}</svg>'
        )


def table_image(
    caption: str, headers: Sequence[str], rows: Sequence[Sequence[str]], words: Words = ()
) -> Array:
    """Draw a table, its caption above and messages below, uint8 ``(height, width, 3)``."""
    pen, high, gap = Canvas(1, 1), 20, 16
    columns = [*zip(headers, *rows, strict=True)]
    widths = [max(pen.length(text) for text in column) for column in columns]
    ends = [sum(widths[: k + 1]) + gap * k for k in range(len(widths))]
    wide = max(ends[-1] + 2 * gap, pen.length(caption) + 2 * gap, WIDE if words else 0)
    lines = [line for message in words for line in pen.wrapped(": ".join(message), wide - 2 * gap)]
    below = high * (len(rows) + 3)
    canvas = Canvas(int(wide) + 1, below + high * len(lines))
    canvas.text(gap, high / 2, caption)
    for index, column in enumerate(columns):
        for row, text in enumerate(column):
            indent = 0 if index == 0 else ends[index] - canvas.length(text)
            canvas.text(gap + indent, high * (row + 1.75), text)
    canvas.stroke(gap, high * 2.7, gap + ends[-1], high * 2.7, FAINT, 1)
    for index, line in enumerate(lines):
        canvas.text(gap, below + high * index, line)
    return canvas.pixels()
