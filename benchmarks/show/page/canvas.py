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
from llm_games.errors import LLMGamesError, install
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any kind of colour vision. The page's style sheet has
# the variables, with a lighter blue on a dark ground.
BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9"
INK, FAINT = "#1c2024", "#e3e6e9"
_VARIABLES = {BLUE: "--blue", ORANGE: "--orange", GREEN: "--green", PURPLE: "--purple"}
_VARIABLES |= {SKY: "--sky", INK: "--ink", FAINT: "--faint"}
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, INK)
MARKS = "osD^vXP<>*ph"
DASHES = "-", (0, (5, 2)), (0, (1, 1.4)), (0, (6, 1.5, 1, 1.5))
BANDED = 3  # fewest runs whose mean has a band: that of two tells nothing
MOST, POINTS = 200, 1500
"""Lines, or dots side by side, of single runs in a plot, and the points of all of them."""


class Look(NamedTuple):
    """How a thing in a plot is told from others: no two of 24 have colour and dashes in common."""

    colour: str
    mark: str = ""
    dash: Any = "-"


_STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # names of players and models are not formulas
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "legend.borderaxespad": 0.2,
    "legend.columnspacing": 1.2,
    "legend.handlelength": 1.8,
    "lines.linewidth": 1.6,
}


class ReportExtraMissing(LLMGamesError, ImportError):
    """Reports need matplotlib, which an extra brings."""


class Picture(NamedTuple):
    """A figure: SVG in the page's colours, what explains it, and SVG and PNG on white.

    The last two are empty where no files were asked for. `empty`: nothing was there to be drawn.
    """

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
    """Draw one plot of a size in inches; its ids on the page start with `name`.

    `linked` makes what was drawn links.

    Raises:
        ReportExtraMissing: matplotlib is not installed.
    """
    matplotlib = require()
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
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
    """Name what has a name above a plot so wide, in as many columns as there is room for."""
    parts: list[Any] = [*axes.get_children(), *axes.containers]
    known = [(one, str(one.get_label())) for one in parts]
    hidden = [(one, name) for one, name in known if name[:1] == "_" and not _UNNAMED.match(name)]
    for one, name in hidden:  # matplotlib leaves out what begins so
        one.set_label(f" {name}")
    _, labels = axes.get_legend_handles_labels()
    if labels:
        columns = 3 if len(labels) > 4 and max(map(len, labels)) <= 16 else 2
        columns = len(labels) if sum(map(len, labels)) <= 34 else columns
        wide = 0.6 + 0.085 * max(map(len, labels))  # inches; too wide leaves no plot
        columns = max(1, min(columns, int(width / wide)))
        legend = axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns)
        for text in legend.get_texts():
            text.set_text(text.get_text().removeprefix(" "))
    for one, name in hidden:
        one.set_label(name)


_POSSIBLE: WeakKeyDictionary[Any, dict[str, Ends]] = WeakKeyDictionary()
"""Between which ends what is drawn along an axis of a plot can lie."""


def possible(axes: Axes, along: str, ends: Ends) -> None:
    """Note that what is drawn along ``x`` or ``y`` lies between some ends, as far as is known."""
    known = _POSSIBLE.setdefault(axes, {})
    low, high = known.get(along, ends)
    known[along] = min(low, ends[0]), max(high, ends[1])


def _fit(axes: Axes) -> None:
    """Let no axis go on beyond what is possible, but for a margin."""
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
    known = any(np.isfinite(np.asarray(one.get_xydata(), float)).all(axis=1).any() for one in data)
    boxes = (found.get_datalim(axes.transData).get_points() for found in axes.collections)
    return known or any(map(len, axes.containers)) or any(np.isfinite(box).all() for box in boxes)


def printed(figure: Figure, files: bool = True) -> tuple[str, bytes]:
    """Return a figure as SVG on white, and for files also as PNG."""
    figure.draw_without_rendering()  # finds the layout, which holds for both
    figure.set_layout_engine(None)
    pixels, file = io.BytesIO(), io.StringIO()
    if files:
        figure.savefig(pixels, format="png", dpi=160, metadata={"Software": None})
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue(), pixels.getvalue()


def require() -> Any:
    """Return matplotlib, or raise ReportExtraMissing."""
    try:
        import matplotlib
    except ImportError:
        raise ReportExtraMissing(
            f"a report needs matplotlib; install it with: {install('report')}"
        ) from None
    return matplotlib


def _inline(text: str, name: str, title: str, sentence: str) -> str:
    """Return an SVG file as a page has it: named, in its colours, without styles, and small.

    A strict policy of a page's content refuses styles.
    """
    text = text[text.index("<svg") :]
    text = re.sub(r"<(metadata|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="patch_1">.*?</g>', "", text, count=1, flags=re.DOTALL)  # the ground
    text = re.sub(r'<g id="[^"]*">', "<g>", text)  # nothing refers to these
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    text = re.sub(r'^(<svg [^>]*?)height="[^"]*" ', r"\1", text, count=1)
    text = re.sub(r' style="([^"]*)"', _attributes, text)
    text = re.sub(r"<[^>]*>", _short, text)
    text = re.sub(r"\s*\n\s*", " ", text).replace("> <", "><")
    for colour, variable in _VARIABLES.items():
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
    """Write a style as attributes that SVG has for the same."""
    pairs = (part.partition(":") for part in style[1].split(";") if part.strip())
    return "".join(f' {name.strip()}="{value.strip()}"' for name, _, value in pairs)


# -- shapes that several games share -------------------------------------------------------------


def some(many: int, points: int = 1) -> Array:
    """Return the places of single runs that are drawn, evenly spread, of so many points each.

    All are drawn if they are no more than `MOST`, and their points no more than `POINTS`; the rest
    is for the viewer, not for a page that is read at once.
    """
    return np.linspace(0, many - 1, min(many, MOST, max(1, POINTS // points))).astype(int)


def single(many: int, points: int, kind: str = "run") -> str:
    """Say which single runs, or what else, are drawn of so many, of so many points each."""
    shown = len(some(many, points))
    return f"single {kind}s" if many <= shown else f"some of the {many:,} {kind}s"


def paths(
    axes: Axes,
    runs: Sequence[Sequence[float]],
    label: str,
    ends: Ends,
    look: Look | str = BLUE,
    first: int = 1,
) -> None:
    """Draw values from the `first` round on: runs thin (`some`), their mean and its band thick.

    The values lie between `ends`.
    """
    table, look = padded(runs), _look(look)
    rounds = first + np.arange(table.shape[1])
    look = look if len(rounds) > 1 else look._replace(mark=look.mark or "o")
    if len(runs) > 1:
        mark = look.mark if len(rounds) == 1 else None
        faint: dict[str, Any] = {"color": look.colour, "alpha": 0.35, "linewidth": 0.7}
        axes.plot(rounds, table[some(*table.shape)].T, **faint, marker=mark)
    mean_line(axes, rounds, table, ends, look, label=label)
    over_rounds(axes)


def mean_line(
    axes: Axes,
    at: Sequence[float] | Array,
    table: Array,
    ends: Ends,
    look: Look | str,
    **more: Any,
) -> None:
    """Draw the means of the columns of ``(runs, points)``, NaN left out, and the `band` of them."""
    look = _look(look)
    possible(axes, "y", ends)
    seldom = max(1, len(at) // 12)  # else marks hide long lines
    drawn = {"color": look.colour, "linestyle": look.dash, "marker": look.mark, "ms": 5}
    axes.plot(at, means(table), **{**drawn, "markevery": seldom, **more})
    low, high = band(table, ends)
    if np.isfinite(low).any():
        axes.fill_between(at, low, high, color=look.colour, alpha=0.15, linewidth=0)
        if len(at) == 1:  # where a band has no width
            axes.vlines(at, low, high, color=look.colour, alpha=0.35, linewidth=3)


def _look(look: Look | str) -> Look:
    return look if isinstance(look, Look) else Look(look)


def means(table: Array) -> Array:
    """Return the means of the columns, NaN left out, NaN of none."""
    return np.asarray(np.ma.masked_invalid(table).mean(axis=0).filled(np.nan))


def band(table: Array, ends: Ends, fewest: int = BANDED) -> tuple[Array, Array]:
    """Return the ends of each column's 95 % interval, NaN left out; none lies beyond `ends`.

    Each point has an interval of its own (`intervals.within_bounds`): all of them together cover
    less often. NaN where fewer than the `fewest` runs are.
    """
    masked = np.ma.masked_invalid(table)
    n = masked.count(axis=0)
    few = np.where(n > 1, n, 2)
    error = masked.std(axis=0, ddof=1).filled(np.nan) / np.sqrt(few)
    low, high = within_bounds(
        masked.mean(axis=0).filled(np.nan), error, few - 1, *_around(table, ends), 0.95
    )
    return np.where(n >= fewest, low, np.nan), np.where(n >= fewest, high, np.nan)


def _around(table: Array, ends: Ends) -> Ends:
    """Return the ends that hold all values; one that does not, as of broken rules, is none."""
    low, high = ends
    with np.errstate(invalid="ignore"):
        return (
            -np.inf if (table < low).any() else low,
            np.inf if (table > high).any() else high,
        )


def points(table: Array, ends: Ends) -> list[MeanCell | None]:
    """Return what `mean_line` draws in numbers, point by point; None where no run is."""
    found: list[MeanCell | None] = []
    bounds = np.isfinite(ends).sum()
    fewest = HALF_OPEN if bounds == 1 else 2
    counts = np.isfinite(table).sum(axis=0)
    for mean, low, high, n in zip(means(table), *band(table, ends, fewest), counts, strict=True):
        interval, many = None, int(n)
        if low == high:
            interval = no_spread(low, many)
        elif np.isfinite(low):
            interval = Interval(float(low), float(high), T[bounds], many, few(many))
        found.append(MeanCell(float(mean), None, many, interval, ends) if n else None)
    return found


def banded(many: int, ends: Ends, kind: str = "run") -> str:
    """Explain the band of so many runs, or what else is drawn; nothing for too few to have one."""
    if many < BANDED:
        return ""
    rests = f", which rests on near-normal {kind}s" if many <= FEW else ""
    method = T[np.isfinite(ends).sum()]
    return f"band: 95 % interval of the mean at each point ({method}, n = {many} {kind}s{rests})"


def over_rounds(axes: Axes, word: str = "round") -> None:
    """Label the horizontal axis and give it whole numbers."""
    axes.set_xlabel(word)
    whole(axes.xaxis)


def whole(axis: Axis) -> None:
    """Put ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def down(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a plot, the first at the top, in at most 34 characters."""
    short = [name if len(name) <= 34 else f"{name[:33]}…" for name in names]
    axes.set_yticks(range(len(names)), short)
    axes.set_ylim(len(names) - 0.5, -0.5)


def tall(rows: int, series: int = 1) -> tuple[float, float]:
    """Return the size of a plot of so many named rows, with so many marks below each other."""
    return HALF[0], max(HALF[1], 1.3 + 0.06 * series + (0.15 + 0.15 * series) * rows)


def dots(
    axes: Axes,
    rows: Sequence[str],
    series: Mapping[str, Sequence[MeanCell | None]],
    less: float = 0,
) -> dict[str, float]:
    """Draw a mean `less` a number and its interval, or nothing, for each series in each row.

    Returned is how far below the middle of its row a series is.
    """
    below = np.linspace(-0.4, 0.4, len(series) + 2)[1:-1]
    shifts = dict(zip(series, below.tolist(), strict=True))
    for (name, values), (colour, mark, _) in zip(series.items(), looks(len(series)), strict=True):
        known = [(row + shifts[name], cell) for row, cell in enumerate(values) if cell is not None]
        if known:
            at, label = [place for place, _ in known], name[:24]
            axes.plot([c.mean - less for _, c in known], at, mark, color=colour, ms=6, label=label)
            across(axes, at, [cell for _, cell in known], colour, less)
    down(axes, rows)
    return shifts


def across(
    axes: Axes,
    at: Sequence[float] | Array,
    cells: Sequence[MeanCell | None],
    colour: str,
    less: float = 0,
) -> None:
    """Draw level intervals of means, less a number, where there are any; `at` are their heights."""
    for height, cell in zip(at, cells, strict=True):
        if cell:
            possible(axes, "x", (cell.ends[0] - less, cell.ends[1] - less))
        if cell and cell.interval:
            low, high = cell.interval.low - less, cell.interval.high - less
            axes.hlines(height, low, high, color=colour, linewidth=1)


def upright(axes: Axes, at: Sequence[float] | Array, cells: Sequence[MeanCell | None]) -> None:
    """Draw upright intervals of means, where there are any."""
    for place, cell in zip(at, cells, strict=True):
        if cell:
            possible(axes, "y", cell.ends)
        if cell and cell.interval:
            axes.vlines(place, cell.interval.low, cell.interval.high, color=INK, linewidth=1.2)


def resting(cells: Iterable[MeanCell | None], lead: str = "") -> str:
    """Say after `lead` what drawn intervals rest on, in brackets; nothing without any."""
    found = [cell.interval for cell in cells if cell and cell.interval]
    methods = ", ".join(dict.fromkeys(i.method for i in found if i.method != "none"))
    sizes = sorted({i.n for i in found})
    n = " to ".join(map(str, dict.fromkeys((sizes[0], sizes[-1])))) if sizes else ""
    notes = dict.fromkeys(i.note.split(" in ")[0] for i in found if i.note)
    return f"{lead} ({'; '.join(filter(None, (methods, f'n = {n}', *notes)))})" if found else ""


def beside_published(
    axes: Axes,
    rows: Sequence[Sequence[Any]],
    series: Mapping[str, tuple[int, str, str, float]],
    filled: Callable[[int], bool],
) -> None:
    """Draw columns of a result table by row: one's own above a line, the published below.

    Rows begin with a name and its source. `series`: column, colour, marker and how far below the
    middle of its row, by name. `filled` says whether the marks of a column are.
    """
    for name, (column, colour, mark, below) in series.items():
        cells = [row[column] for row in rows]
        [values] = padded([[cell.mean if isinstance(cell, MeanCell) else cell for cell in cells]])
        face = colour if filled(column) else "none"
        at = np.arange(len(rows)) + below
        axes.plot(values, at, mark, color=colour, mfc=face, ms=6, label=name)
        across(axes, at, [cell if isinstance(cell, MeanCell) else None for cell in cells], colour)
    down(axes, [f"{row[0]}{', published' * (row[1] == PUBLISHED)}" for row in rows])
    axes.axhline(sum(row[1] == OWN for row in rows) - 0.5, color=INK, linewidth=0.8)


def padded(rows: Sequence[Sequence[float | None]]) -> Array:
    """Return rows of values over rounds, float64 ``(rows, rounds)``, NaN where there is none."""
    columns = zip_longest(*rows)
    table = [[np.nan if x is None else x for x in column] for column in columns]
    return np.array(table, np.float64).reshape(-1, len(rows)).T


def zero(axes: Axes) -> None:
    """Draw a line at 0 across the rows."""
    axes.axvline(0, color=INK, linewidth=0.8, linestyle=":")


def line(axes: Axes, height: float, label: str, colour: str = ORANGE, style: str = "--") -> None:
    """Draw a reference value across the plot."""
    axes.axhline(height, color=colour, linestyle=style, linewidth=1.3, label=label, zorder=1.5)


def room(axes: Axes) -> None:
    """Give a vertical axis a unit of room on both sides where all values are the same.

    What of it is beyond what is `possible` is taken away again.
    """
    low, high = axes.dataLim.intervaly
    if low == high:
        axes.set_ylim(low - 1, high + 1)


def looks(count: int) -> list[Look]:
    """Return a look for each of so many things: colours first, then dashes; marks all along."""
    dashes = (DASHES[i // len(CYCLE) % len(DASHES)] for i in range(count))
    return [Look(CYCLE[i % len(CYCLE)], MARKS[i % len(MARKS)], d) for i, d in enumerate(dashes)]


def styled(things: Iterable[Any]) -> list[tuple[Any, Look]]:
    """Return each thing with a look; one alone needs no mark."""
    found = list(things)
    return list(zip(found, looks(len(found)) if len(found) > 1 else [Look(BLUE)], strict=False))
