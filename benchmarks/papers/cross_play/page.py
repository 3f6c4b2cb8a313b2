"""The page of a cross-play: standings, each with each, and the meta-game."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.alpha_rank import ALPHA, alpha_rank
from llm_games.baselines.crossplay import CHANCE, Cross, which_of
from llm_games.baselines.seat_rotation import uneven
from llm_games.benchmarks.judge.paper import HALF, Draw, Paper, Section, Sketch
from llm_games.benchmarks.judge.result_table import ResultTable
from llm_games.benchmarks.papers.cross_play.solved import Crossed
from llm_games.benchmarks.record.recorded_games import RecordedGame, Run
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.plot_style import FAINT, assign_looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SWEEP = np.geomspace(ALPHA / 1000, ALPHA, 25)  # values of α from where all strategies are alike
SHADES, DARK = "Blues", 0.55  # of the heat map, and the share from which words on it are white


MISSING = (
    "The game between players is not solved, as not all of its line-ups have ended: those in which "
    "nobody asks a model are in no record of a version before 0.9."
)


def cross_of(games: Sequence[RecordedGame]) -> Cross:
    """Payoffs of line-ups in the episodes that ended in all; `which` None: some are missing."""
    names = tuple(dict.fromkeys(name for game in games for name in game.seats))
    counts = np.array([[game.seats.count(name) for name in names] for game in games])
    ended = [{row.number: row for row in game.rows if row.ended} for game in games]
    numbers = sorted(set.intersection(*map(set, ended)))
    payoffs = games[0].shelf.file.payoffs()
    earned = np.full((len(games), len(games[0].seats), len(numbers)), np.nan)
    for lineup, rows in enumerate(ended):
        for column, number in enumerate(numbers):
            if (row := rows[number]).status == "done":
                earned[lineup, row.seating, column] = payoffs[row.id]
    which = which_of(counts) if numbers else None
    return Cross(names, which, counts, earned, games[0].rules.payable)


def tables(games: Sequence[RecordedGame]) -> list[ResultTable]:
    """Return standings, the solved game and, untitled, the payoffs behind them."""
    crossed = Crossed(cross_of(games))
    if crossed.cross.which is None:
        return [replace(crossed.lineup_grid(), note=MISSING)]
    files = (replace(grid, title="") for grid in (crossed.matrix(), crossed.lineup_grid()))
    return [crossed.standings(), *crossed.solved(), *files]


def _about(games: Sequence[RecordedGame], cross: Cross) -> str:
    seatings = ((game, [row.seating for row in game.rows]) for game in games)
    why = next(filter(None, (uneven(g.rules, g.seats, rows) for g, rows in seatings)), "")
    return (
        f"{len(games)} line-ups of {cross.seats} seats, {cross.episodes} episodes of each."
        + f" Seats are not worth the same: {why}." * bool(why)
    )


def sections(run: Run) -> list[Section]:
    """Return standings, each with each, the meta-game and all line-ups."""
    cross = cross_of(run.games)
    if cross.which is None:
        return [Section("Cross-play", MISSING, grids=[Crossed(cross).lineup_grid()])]
    crossed = Crossed(cross)
    names, tall = crossed.cross.names, canvas.tall(len(crossed.cross.names))
    wide = (HALF[0], max(HALF[1], 1.6 + 0.36 * len(names)))

    def sketch(title: str, draw: Draw, size: tuple[float, float] = HALF) -> Sketch:
        return Sketch(title, partial(draw, crossed=crossed), size)

    return [
        Section(
            "Who came to what",
            _about(run.games, cross),
            grids=[crossed.standings()],
            sketches=[sketch("Payoffs", _payoffs, tall), sketch("α-rank", _masses, tall)],
        ),
        Section(
            "Each with each",
            sketches=[sketch("Payoff among others of one kind", _heat, wide)],
            grids=[crossed.matrix()],
        ),
        Section(
            "The meta-game",
            "Each player is a strategy of a game that is played before seats are drawn.",
            grids=crossed.solved(),
            sketches=[sketch("α-rank by α", _sweep)],
        ),
        Section("All line-ups", grids=[crossed.lineup_grid()]),
    ]


def _payoffs(axes: Axes, crossed: Crossed) -> str:
    order = np.argsort([-cell.mean if cell else 0.0 for cell in crossed.payoffs], kind="stable")
    cells = [crossed.payoffs[who] for who in order]
    canvas.dots(axes, [crossed.cross.names[who] for who in order], {"payoff": cells})
    axes.set_xlabel("payoff of a seat")
    return f"Mean among others drawn evenly from all players{canvas.resting(cells)}."


def _masses(axes: Axes, crossed: Crossed) -> str:
    order = np.argsort([-cell.mean for cell in crossed.alpha_rank], kind="stable")
    cells = [crossed.alpha_rank[who] for who in order]
    canvas.dots(axes, [crossed.cross.names[who] for who in order], {"share": cells})
    axes.set_xlabel("share of the long run")
    axes.set_xlim(-0.03, 1.03)
    return f"α-rank of one population by global selection, α = {ALPHA:g}{canvas.resting(cells)}."


def _heat(axes: Axes, crossed: Crossed) -> str:
    names, paid = crossed.cross.names, crossed.meta.matrix()
    many, low, high = len(names), float(paid.min()), float(paid.max())
    edges = np.arange(many + 1) - 0.5
    drawn = axes.pcolormesh(edges, edges, paid, cmap=SHADES, ec=FAINT, lw=0.5)
    canvas.key_of_shades(axes, drawn, "payoff of the row's player", fraction=0.05)
    for row, column in np.ndindex(many, many):
        share = (paid[row, column] - low) / ((high - low) or 1.0)
        colour = "#ffffff" if share > DARK else "#000000"
        text = _short(float(paid[row, column]))
        axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=8)
    canvas.down(axes, names)
    axes.set_xticks(range(many), [name[:16] for name in names], rotation=35, ha="right")
    axes.set_xlabel("all others")
    axes.grid(False)
    return "Mean payoff of the row's player where all other seats are the column's."


def _short(value: float) -> str:
    """Write a payoff in five letters."""
    if abs(value) >= 9999.5:
        return f"{value / 1000:.4g}k" if abs(value) < 999_950 else f"{value:.1e}"
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def _sweep(axes: Axes, crossed: Crossed) -> str:
    masses = np.array([alpha_rank(crossed.meta, alpha) for alpha in SWEEP])
    _lines(axes, SWEEP, masses, crossed.cross.names)
    axes.set_xscale("log")
    ticks = SWEEP[:: len(SWEEP) // 4]
    axes.set_xticks(ticks, [f"{tick:.2g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("α, over the range of payoffs")
    return "How α-rank's shares settle as the better are preferred more strongly."


def _lines(axes: Axes, at: Array, shares: Array, names: Sequence[str]) -> None:
    for (who, name), look in assign_looks(list(enumerate(names))):
        style = {"color": look.colour, "linestyle": look.dash, "marker": look.mark, "ms": 4}
        axes.plot(at, shares[:, who], **style, markevery=max(1, len(at) // 10), label=name[:24])
    axes.set_ylabel("share")
    axes.set_ylim(-0.03, 1.03)


PAPER = Paper(
    "Cross-play",
    lambda game: game.planned.get("chance") == CHANCE,
    sections,
    first=True,
    tables=tables,
    whole=True,
)
