"""What describes the play of a run's games, in tables and figures, people's figures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_games.benchmarks.judge.beside_people import MeasureRow, measure_rows, measure_table
from llm_games.benchmarks.judge.paper import Section, Sketch
from llm_games.benchmarks.record.recorded_games import Run
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.plot_style import INK, assign_looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "Measures of play"
MOST = 40  # rows of a figure
WIDE = 9.0  # inches: names of measures and studies are long


def sections(run: Run, long: bool) -> list[Section]:
    """Return a table and a figure for each game that has measures; of many games only tables."""
    found = {game.label: rows for game in run.games if (rows := measure_rows(game))}
    if not found:
        return []
    grids = [measure_table(label, rows) for label, rows in found.items()]
    sketches = [] if long else [_sketch(label, rows) for label, rows in found.items()]
    return [Section(TITLE, grids=grids, sketches=sketches)]


def _sketch(label: str, rows: Sequence[MeasureRow]) -> Sketch:
    limited = [row for row in rows if np.isfinite(row.ends).all() and row.ends[0] < row.ends[1]]
    names = list(dict.fromkeys(row.measure for row in limited))
    studied = {row.measure for row in limited if row.study}
    names = [name for name in names if name in studied or len(names) <= MOST][:MOST]
    shown = [row for row in limited if row.measure in names]
    size = WIDE, canvas.tall(len(names))[1]
    return Sketch(label, partial(_draw, names=names, rows=shown), size)


def _draw(axes: Axes, names: Sequence[str], rows: Sequence[MeasureRow]) -> str:
    """Draw each measure in a row: a mark for each player, a hollow one for each study."""
    sources = dict.fromkeys((row.study, row.condition) if row.study else row.who for row in rows)
    looks = assign_looks(sources)
    studies = any(row.study for row in rows)
    for number, (source, look) in enumerate(looks):
        mine = [r for r in rows if source == ((r.study, r.condition) if r.study else r.who)]
        apart = 0.5 * (number + 0.5) / len(looks) - 0.25  # so that equal values are all seen
        heights = [names.index(row.measure) + apart for row in mine]
        hollow = isinstance(source, tuple)
        colour = INK if hollow else look.colour
        label = f"people, {source[0]}" if hollow else source
        style: dict[str, Any] = {
            "color": colour,
            "mfc": "none" if hollow else colour,
            "linestyle": "",
        }
        x = [_placed(row, row.value.mean) for row in mine]
        axes.plot(x, heights, look.mark or "o", ms=6, label=label[:60], **style)
        for row, height in zip(mine, heights, strict=True):
            if interval := row.value.interval:
                low, high = (_placed(row, end) for end in (interval.low, interval.high))
                axes.hlines(height, low, high, color=colour, linewidth=1.2)
    units = [row for row in rows if not row.is_share]
    ends = {row.measure: f"{row.measure} {row.ends[0]:g} to {row.ends[1]:g}" for row in units}
    canvas.down(axes, names)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("share, or place between the ends")
    hollow_marks = " Hollow marks are people's figures, in no mean of this run." * studies
    scaled = f" Placed between their ends: {'; '.join(ends.values())}." * bool(ends)
    return f"What describes the play of each player, with 95 % intervals.{hollow_marks}{scaled}"


def _placed(row: MeasureRow, value: float) -> float:
    low, high = row.ends
    return (value - low) / (high - low)
