"""Font, colours, marks and dashes of all plots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

# Okabe and Ito's colours, told apart with any kind of colour vision. The page's style sheet has
# the variables, with a lighter blue on a dark ground.
BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9"
INK, FAINT = "#1c2024", "#e3e6e9"
VARIABLES = {BLUE: "--blue", ORANGE: "--orange", GREEN: "--green", PURPLE: "--purple"}
VARIABLES |= {SKY: "--sky", INK: "--ink", FAINT: "--faint"}
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, INK)
MARKS = "osD^vXP<>*ph"
DASHES = "-", (0, (5, 2)), (0, (1, 1.4)), (0, (6, 1.5, 1, 1.5))


class Look(NamedTuple):
    """Colour, mark and dashes: no two of 24 have colour and dashes in common."""

    colour: str
    mark: str = ""
    dash: Any = "-"


STYLE = {
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


def make_looks(count: int) -> list[Look]:
    """Colours change first, then dashes; marks all along."""
    dashes = (DASHES[i // len(CYCLE) % len(DASHES)] for i in range(count))
    return [Look(CYCLE[i % len(CYCLE)], MARKS[i % len(MARKS)], d) for i, d in enumerate(dashes)]


def assign_looks(things: Iterable[Any]) -> list[tuple[Any, Look]]:
    """Return each thing with a look; one alone needs no mark."""
    listed = list(things)
    looks = make_looks(len(listed)) if len(listed) > 1 else [Look(BLUE)]
    return list(zip(listed, looks, strict=False))
