"""The figures on a game's page: what one seat gains that leaves rational play alone.

All play the player ``rational`` but one seat, which plays each reply that the game's theory names,
or learns. Games of a pair have the same chance, so that differences are paired.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.disk_arrays import remember
from llm_games.baselines.regret import replies
from llm_games.benchmarks.judge.means import FREE
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.plot_style import BLUE
from llm_games.benchmarks.studies.gains_by_game import (
    LONGEST,
    OTHERS,
    GainPoint,
    episodes,
    gains,
    points,
)
from llm_games.rulebook import Rulebook
from llm_games.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAMES = 20  # of each reply, at most: a build should not take long
FAMILY = re.compile(r"(\w+):(-?[\d.]+)")
MOST = 10  # members of a family, such as fixed:0, fixed:1, …, that are drawn as a line


class Figure(NamedTuple):
    """A figure as SVG, and what it shows."""

    svg: str
    sentence: str


def setup(app: Any) -> dict[str, bool]:
    """Sphinx asks for it; pages call `figure`."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def figure(rules: Rulebook) -> Figure:
    """Draw what each reply gains, over what ``rational`` has in its place."""
    names = [name for name in replies(rules) if name != OTHERS]
    many = min(GAMES, episodes(rules))
    key = f"{__name__}-{rules.name}-{rules.edition}-{__version__}-{many}-{LONGEST}"
    found = remember(key, lambda: {"gains": gains(rules, names, many)})["gains"]
    families = [FAMILY.fullmatch(name) for name in names]
    line = [i for i, family in enumerate(families) if family and family[1] == kind(families)]
    draw: Any
    if len(line) >= MOST:
        at = [float(families[i][2]) for i in line]  # type: ignore[index]
        draw = partial(curve, at=at, table=found[line].T, label=kind(families))
        size = (6.4, 2.8)
    else:
        draw = partial(dots, names=names, table=found.T)
        size = (6.4, 1.0 + 0.24 * len(names))
    picture = canvas.picture(rules.name, f"Leaving rational play: {rules.title}", draw, size)
    return Figure(picture.svg, sentence(names, found.T, rules))


def learning(rules: Rulebook) -> Figure | None:
    """Draw what a learner came to; None if there is no result with these rules."""
    found = [p for p in points() if (p.game, p.edition) == (rules.name, rules.edition)]
    if not found:
        return None
    draw: Any = partial(learned, found=found)
    picture = canvas.picture(rules.name, f"A learner: {rules.title}", draw, (6.4, 2.8))
    last, many = found[-1], episodes(rules)
    spread = f"[{last.low:+.4g} to {last.high:+.4g}]"
    ends = spread if last.low < last.high else f"(no spread in {many} games)"
    shows = (
        f"A learner among players that all play `{OTHERS}`: its gain in payoff over playing it "
        f"too, mean of {played(rules, many)}. Bands are 95 % intervals over these games (Student "
        f"t); another training can end elsewhere. Trainings: {last.seed + 1}, {last.day}. "
        f"It begins with random weights and ends at {last.gain:+.4g} {ends}."
    )
    return Figure(picture.svg, shows)


def played(rules: Rulebook, many: int) -> str:
    """Say which games are played."""
    length = rules.length()
    cut = f" of {LONGEST} rounds" if not rules.turns and length and length > LONGEST else ""
    return f"{many} games{cut}, default parameters, seat after seat"


def learned(axes: Axes, found: list[GainPoint]) -> str:
    """Draw the gains of each training over the learner's steps."""
    for seed in sorted({p.seed for p in found}):
        steps, gain, low, high = zip(*(p[4:] for p in found if p.seed == seed), strict=True)
        axes.plot(steps, gain, "o-", color=BLUE, ms=3)
        axes.fill_between(steps, low, high, color=BLUE, alpha=0.15, linewidth=0)
    canvas.line(axes, 0, OTHERS)
    axes.set_xlabel("learner's steps")
    axes.set_ylabel("gain in payoff")
    return ""


def kind(families: list[re.Match[str] | None]) -> str:
    """Return the name of the largest family; "" if there is none."""
    known = [family[1] for family in families if family]
    return max(known, key=known.count, default="")


def curve(axes: Axes, at: list[float], table: Array, label: str) -> str:
    """Draw the gains of a family of replies over its numbers."""
    canvas.mean_line(axes, at, table, FREE, BLUE, marker="o", ms=3)
    canvas.line(axes, 0, OTHERS)
    axes.set_xlabel(f"{label}:…")
    axes.set_ylabel("gain in payoff")
    return ""


def dots(axes: Axes, names: list[str], table: Array) -> str:
    """Draw the gain of each reply in a row of its own."""
    low, high = canvas.band(table, FREE)
    axes.hlines(range(len(names)), low, high, color=BLUE, linewidth=1.2)
    axes.plot(canvas.means(table), range(len(names)), "o", color=BLUE, ms=5)
    canvas.down(axes, names)
    canvas.zero(axes)
    axes.set_xlabel(f"gain in payoff over {OTHERS}")
    return ""


def sentence(names: list[str], table: Array, rules: Rulebook) -> str:
    """Say what the figure shows, and what pays."""
    low, _ = canvas.band(table, FREE)
    gained = canvas.means(table)
    paying = [i for i in np.argsort(-gained) if low[i] > 1e-9]
    shows = (
        f"Gain in payoff of a seat that plays otherwise while all others play `{OTHERS}`, over "
        f"playing it too: mean of {played(rules, len(table))}, "
        "with 95 % intervals (Student t, each by itself)."
    )
    if not paying:
        return f"{shows} None of the {len(names)} replies gains more than chance explains."
    told = ", ".join(f"`{names[i]}` ({gained[i]:+.4g})" for i in paying[:3])
    return f"{shows} What pays here: {told}{' and others' if len(paying) > 3 else ''}."
