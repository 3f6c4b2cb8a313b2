"""Plots as pictures: inline SVG whose colours are the page's, for light and dark, and files."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import unescape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import numpy as np
from markupsafe import Markup, escape

from llm_games.benchmarks.judge.intervals import (
    FEW,
    HALF_OPEN,
    Interval,
    T,
    few,
    no_spread,
    within_bounds,
)
from llm_games.benchmarks.judge.means import Ends, MeanCell
from llm_games.benchmarks.judge.paper import HALF
from llm_games.benchmarks.judge.result_table import OWN, PUBLISHED
from llm_games.benchmarks.show.page.plot_style import (
    BLUE,
    INK,
    ORANGE,
    STYLE,
    VARIABLES,
    Look,
    make_looks,
)
from llm_games.errors import LLMGamesError, install
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

BANDED = 3  # fewest runs whose mean has a band: that of two tells nothing
MOST, POINTS = 200, 1500
"""Lines, or dots side by side, of single runs in a plot, and the points of all of them."""


class ReportExtraMissing(LLMGamesError, ImportError):
    """Reports need matplotlib, which an extra brings."""


class Picture(NamedTuple):
    """SVG in the page's colours, what explains it, and SVG and PNG on white, if wanted."""

    inline: Markup
    sentence: str
    svg: str
    png: bytes
    empty: bool


def picture(
    name: str,
    title: str,
    draw: Callable[[Axes], str],
    size: tuple[float, float],
    files: bool = True,
    linked: Callable[[Axes], None] = lambda axes: None,
) -> Picture:
    """Draw one plot, in inches; its ids begin with `name`. Raises ReportExtraMissing."""
    matplotlib = require()
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        sentence = draw(axes)
        if not drawn(axes):
            return Picture(Markup(), sentence, "", b"", empty=True)
        _fit(axes)
        _legend(axes, size[0])
        linked(axes)
        text, pixels = printed(figure, files)
    shown = Markup(_inline(text, name, title, sentence))
    return Picture(shown, sentence, text if files else "", pixels, empty=False)


def _legend(axes: Axes, width: float) -> None:
    """Above a plot so wide, in as many columns as there is room for."""
    parts: list[Any] = [*axes.get_children(), *axes.containers]
    named = [(artist, str(artist.get_label())) for artist in parts]
    hidden = [pair for pair in named if pair[1][:1] == "_" and not _UNNAMED.match(pair[1])]
    for artist, name in hidden:  # matplotlib leaves out what begins so
        artist.set_label(f" {name}")
    _, labels = axes.get_legend_handles_labels()
    if labels:
        columns = 3 if len(labels) > 4 and max(map(len, labels)) <= 16 else 2
        columns = len(labels) if sum(map(len, labels)) <= 34 else columns
        wide = 0.6 + 0.085 * max(map(len, labels))  # inches; too wide leaves no plot
        columns = max(1, min(columns, int(width / wide)))
        legend = axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns)
        for text in legend.get_texts():
            text.set_text(text.get_text().removeprefix(" "))
    for artist, name in hidden:
        artist.set_label(name)


_POSSIBLE: WeakKeyDictionary[Any, dict[str, Ends]] = WeakKeyDictionary()
"""Between which ends what is drawn along an axis of a plot can lie."""


def possible(axes: Axes, along: str, ends: Ends) -> None:
    """Note that what is drawn along ``x`` or ``y`` lies between some ends, as far as is known."""
    ends_by_axis = _POSSIBLE.setdefault(axes, {})
    low, high = ends_by_axis.get(along, ends)
    ends_by_axis[along] = min(low, ends[0]), max(high, ends[1])


def _fit(axes: Axes) -> None:
    for along, (low, high) in _POSSIBLE.get(axes, {}).items():
        first, last = getattr(axes, f"get_{along}lim")()
        if first < last:
            data = getattr(axes.dataLim, f"interval{along}")  # references, and what broke a rule
            low, high = min(low, *data), max(high, *data)
            margin = MARGIN * (min(last, high) - max(first, low))
            ends = max(first, low - margin), min(last, high + margin)
            getattr(axes, f"set_{along}lim")(*ends)


MARGIN = 0.05  # of an axis, beside what is drawn
_UNNAMED = re.compile(r"_(child|container)\d+$|_nolegend_$")
"""What matplotlib calls things without a name."""


def drawn(axes: Axes) -> bool:
    """Return whether anything is drawn but lines across and labels."""
    data = (line for line in axes.get_lines() if line.get_transform() is axes.transData)
    curves = (np.asarray(curve.get_xydata(), float) for curve in data)
    if any(np.isfinite(curve).all(axis=1).any() for curve in curves):
        return True
    boxes = (collection.get_datalim(axes.transData).get_points() for collection in axes.collections)
    return any(map(len, axes.containers)) or any(np.isfinite(box).all() for box in boxes)


def printed(figure: Figure, files: bool = True) -> tuple[str, bytes]:
    layout: Any = figure.get_layout_engine()
    layout.execute(figure)  # finds places, which hold for both
    figure.set_layout_engine(None)
    pixels, file = io.BytesIO(), io.StringIO()
    if files:
        figure.savefig(pixels, format="png", dpi=160, metadata={"Software": None})
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue(), pixels.getvalue()


def require() -> Any:
    """Matplotlib; raises ReportExtraMissing."""
    try:
        import matplotlib
    except ImportError:
        raise ReportExtraMissing(
            f"a report needs matplotlib; install it with: {install('report')}"
        ) from None
    return matplotlib


def _inline(text: str, name: str, title: str, sentence: str) -> str:
    """The SVG as a page has it: named, in the page's colours, small; its policy refuses styles."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<(metadata|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="patch_1">.*?</g>', "", text, count=1, flags=re.DOTALL)  # the ground
    text = re.sub(r'<g id="[^"]*">', "<g>", text)  # nothing refers to these
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    text = re.sub(r'^(<svg [^>]*?)height="[^"]*" ', r"\1", text, count=1)
    text = re.sub(r' style="([^"]*)"', _attributes, text)
    text = re.sub(r"<[^>]*>", _short, text)
    text = re.sub(r"\s*\n\s*", " ", text).replace("> <", "><")
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    role = "group" if "<a " in text else "img"  # what is within a picture cannot be a link
    head = f'<svg role="{role}" aria-labelledby="{name}-title {name}-desc" '
    head += 'stroke-linejoin="round" stroke-linecap="butt" '
    text = re.sub(r'^<svg ([^>]*?)width="[^"]*" *', rf"{head}\1", text, count=1)
    words = f'<title id="{name}-title">{escape(title)}</title>'
    words += f'<desc id="{name}-desc">{escape(sentence)}</desc>'
    return text.strip().replace(">", f">{words}", 1)


def _short(tag: re.Match[str]) -> str:
    """Write a tag with one decimal; keys pass by links of points, for tables have the same."""
    text = re.sub(r'(?<=[ "(])-?\d+\.\d{2,}', lambda number: f"{float(number[0]):.1f}", tag[0])
    text = re.sub(r' transform="rotate\(-?0(\.0)? [^"]*\)"', "", text)
    if not text.startswith("<a "):
        return text
    address = re.search(r'href="([^"]*)"', text)
    words = unquote(unescape(address[1] if address else "").partition("?")[2]).replace("&", ", ")
    to = f'href="{address and address[1]}" tabindex="-1" pointer-events="all"'  # also unseen marks
    return f"<a {to}><title>{escape(words)}</title>"


def _attributes(style: re.Match[str]) -> str:
    pairs = (part.partition(":") for part in style[1].split(";") if part.strip())
    return "".join(f' {name.strip()}="{value.strip()}"' for name, _, value in pairs)


# -- shapes that several games share -------------------------------------------------------------


def shown_runs(count: int, points: int = 1) -> Array:
    """Indices of runs to draw, evenly spread: at most `MOST`, and `POINTS` points in all."""
    return np.linspace(0, count - 1, min(count, MOST, max(1, POINTS // points))).astype(int)


def single(count: int, points: int, kind: str = "run") -> str:
    """Say which single runs, or what else, are drawn of so many, of so many points each."""
    shown = len(shown_runs(count, points))
    return f"single {kind}s" if count <= shown else f"some of the {count:,} {kind}s"


def paths(
    axes: Axes,
    runs: Sequence[Sequence[float]],
    label: str,
    ends: Ends,
    look: Look | str = BLUE,
    first: int = 1,
) -> None:
    """Draw runs from the `first` round on: `shown_runs` thin, the mean and its band thick."""
    table, look = padded(runs), _look(look)
    rounds = first + np.arange(table.shape[1])
    look = look if len(rounds) > 1 else look._replace(mark=look.mark or "o")
    if len(runs) > 1:
        mark = look.mark if len(rounds) == 1 else None
        faint: dict[str, Any] = {"color": look.colour, "alpha": 0.35, "linewidth": 0.7}
        axes.plot(rounds, table[shown_runs(*table.shape)].T, **faint, marker=mark)
    mean_line(axes, rounds, table, ends, look, label=label)
    over_rounds(axes)


def mean_line(
    axes: Axes,
    positions: Sequence[float] | Array,
    table: Array,
    ends: Ends,
    look: Look | str,
    **options: Any,
) -> None:
    """Draw the means of the columns of ``(runs, points)``, NaN left out, and the `band` of them."""
    look = _look(look)
    possible(axes, "y", ends)
    seldom = max(1, len(positions) // 12)  # else marks hide long lines
    drawn = {"color": look.colour, "linestyle": look.dash, "marker": look.mark, "ms": 5}
    axes.plot(positions, means(table), **{**drawn, "markevery": seldom, **options})
    low, high = band(table, ends)
    if np.isfinite(low).any():
        axes.fill_between(positions, low, high, color=look.colour, alpha=0.15, linewidth=0)
        if len(positions) == 1:  # where a band has no width
            axes.vlines(positions, low, high, color=look.colour, alpha=0.35, linewidth=3)


def _look(look: Look | str) -> Look:
    return look if isinstance(look, Look) else Look(look)


def means(table: Array) -> Array:
    """Of the columns, NaN left out; NaN of none."""
    return np.asarray(np.ma.masked_invalid(table).mean(axis=0).filled(np.nan))


def band(table: Array, ends: Ends, fewest: int = BANDED) -> tuple[Array, Array]:
    """Ends of each column's own 95 % interval within `ends`, NaN below the `fewest` runs."""
    masked = np.ma.masked_invalid(table)
    n = masked.count(axis=0)
    few = np.where(n > 1, n, 2)
    error = masked.std(axis=0, ddof=1).filled(np.nan) / np.sqrt(few)
    low, high = within_bounds(means(table), error, few - 1, *_around(table, ends), 0.95)
    return np.where(n >= fewest, low, np.nan), np.where(n >= fewest, high, np.nan)


def _around(table: Array, ends: Ends) -> Ends:
    """Ends that hold all values; an end that does not, as of broken rules, is infinite."""
    low, high = ends
    return -np.inf if (table < low).any() else low, np.inf if (table > high).any() else high


def points(table: Array, ends: Ends) -> list[MeanCell | None]:
    """The numbers that `mean_line` draws, by column; None where no run is."""
    cells: list[MeanCell | None] = []
    bounds, counts = np.isfinite(ends).sum(), np.isfinite(table).sum(axis=0).tolist()
    columns = means(table), *band(table, ends, HALF_OPEN if bounds == 1 else 2), counts
    for mean, low, high, count in zip(*columns, strict=True):
        interval = None
        if low == high:
            interval = no_spread(low, count)
        elif np.isfinite(low):
            interval = Interval(float(low), float(high), T[bounds], count, few(count))
        cells.append(MeanCell(float(mean), None, count, interval, ends) if count else None)
    return cells


def banded(count: int, ends: Ends, kind: str = "run") -> str:
    """Explain the band of so many runs, or what else is drawn; nothing for too few to have one."""
    if count < BANDED:
        return ""
    rests = f", which rests on near-normal {kind}s" if count <= FEW else ""
    method = T[np.isfinite(ends).sum()]
    return f"band: 95 % interval of the mean at each point ({method}, n = {count} {kind}s{rests})"


def over_rounds(axes: Axes, word: str = "round") -> None:
    axes.set_xlabel(word)
    whole(axes.xaxis)


def whole(axis: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def down(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows, the first at the top, in at most 34 characters."""
    short = [name if len(name) <= 34 else f"{name[:33]}…" for name in names]
    axes.set_yticks(range(len(names)), short)
    axes.set_ylim(len(names) - 0.5, -0.5)


def tall(rows: int, series: int = 1) -> tuple[float, float]:
    """Size of a plot of so many named rows, with so many marks below each other."""
    return HALF[0], max(HALF[1], 1.3 + 0.06 * series + (0.15 + 0.15 * series) * rows)


def dots(
    axes: Axes,
    rows: Sequence[str],
    series: Mapping[str, Sequence[MeanCell | None]],
    less: float = 0,
) -> dict[str, float]:
    """Draw means less a number, and intervals, by series and row; shift of each series in a row."""
    below = np.linspace(-0.4, 0.4, len(series) + 2)[1:-1]
    shifts = dict(zip(series, below.tolist(), strict=True))
    for (name, values), look in zip(series.items(), make_looks(len(series)), strict=True):
        placed = [(row + shifts[name], cell) for row, cell in enumerate(values) if cell is not None]
        if placed:
            heights, cells = zip(*placed, strict=True)
            drawn: dict[str, Any] = {"color": look.colour, "ms": 6, "label": name[:24]}
            axes.plot([cell.mean - less for cell in cells], heights, look.mark, **drawn)
            across(axes, heights, cells, look.colour, less)
    down(axes, rows)
    return shifts


def across(
    axes: Axes,
    heights: Sequence[float] | Array,
    cells: Sequence[MeanCell | None],
    colour: str,
    less: float = 0,
) -> None:
    """Draw level intervals at these heights, less a number."""
    for height, cell in zip(heights, cells, strict=True):
        if cell:
            possible(axes, "x", (cell.ends[0] - less, cell.ends[1] - less))
        if cell and cell.interval:
            low, high = cell.interval.low - less, cell.interval.high - less
            axes.hlines(height, low, high, color=colour, linewidth=1)


def upright(
    axes: Axes, positions: Sequence[float] | Array, cells: Sequence[MeanCell | None]
) -> None:
    for position, cell in zip(positions, cells, strict=True):
        if cell:
            possible(axes, "y", cell.ends)
        if cell and cell.interval:
            axes.vlines(position, cell.interval.low, cell.interval.high, color=INK, linewidth=1.2)


def resting(cells: Iterable[MeanCell | None], lead: str = "") -> str:
    """Methods and sizes of the intervals in brackets, after `lead`; "" without any."""
    intervals = [cell.interval for cell in cells if cell and cell.interval]
    methods = ", ".join(dict.fromkeys(i.method for i in intervals if i.method != "none"))
    sizes = sorted({i.n for i in intervals})
    n = " to ".join(map(str, dict.fromkeys((sizes[0], sizes[-1])))) if sizes else ""
    notes = dict.fromkeys(i.note.split(" in ")[0] for i in intervals if i.note)
    return f"{lead} ({'; '.join(filter(None, (methods, f'n = {n}', *notes)))})" if intervals else ""


def beside_published(
    axes: Axes,
    rows: Sequence[Sequence[Any]],
    series: Mapping[str, tuple[int, str, str, float]],
    filled: Callable[[int], bool],
) -> None:
    """Draw columns of a result table by row: one's own above a line, the published below.

    Rows begin with a name and its source. `series`, by name: column, colour, marker and how far
    below the middle of its row; `filled` says whether the marks of a column are.
    """
    for name, (column, colour, mark, below) in series.items():
        values = [row[column] for row in rows]
        cells = [value if isinstance(value, MeanCell) else None for value in values]
        [means] = padded([[c.mean if c else v for c, v in zip(cells, values, strict=True)]])
        face, heights = colour if filled(column) else "none", np.arange(len(rows)) + below
        axes.plot(means, heights, mark, color=colour, mfc=face, ms=6, label=name)
        across(axes, heights, cells, colour)
    down(axes, [f"{row[0]}{', published' * (row[1] == PUBLISHED)}" for row in rows])
    axes.axhline(sum(row[1] == OWN for row in rows) - 0.5, color=INK, linewidth=0.8)


def padded(rows: Sequence[Sequence[float | None]]) -> Array:
    """Float64 ``(rows, rounds)``, NaN where a row has no value."""
    return np.array([*zip_longest(*rows)], np.float64).reshape(-1, len(rows)).T  # None: NaN


def zero(axes: Axes) -> None:
    axes.axvline(0, color=INK, linewidth=0.8, linestyle=":")


def line(axes: Axes, height: float, label: str, colour: str = ORANGE, style: str = "--") -> None:
    axes.axhline(height, color=colour, linestyle=style, linewidth=1.3, label=label, zorder=1.5)


def room(axes: Axes) -> None:
    """Give a vertical axis a unit of room on both sides where all values are the same."""
    low, high = axes.dataLim.intervaly
    if low == high:
        axes.set_ylim(low - 1, high + 1)


def key_of_shades(axes: Axes, shades: Any, label: str, **how: Any) -> None:
    """Draw what shades stand for, as shapes: a page shows no picture inside a figure."""
    bar = axes.figure.colorbar(shades, ax=axes, label=label, **how)
    if bar.solids is not None:
        bar.solids.set_rasterized(False)
