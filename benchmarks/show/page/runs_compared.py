"""Compared runs in one figure: what differs game by game, and all sides over the rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_games.benchmarks.judge.compare import FAMILIES, Comparison, Comparisons, Difference
from llm_games.benchmarks.judge.paper import THIRD, Sketch
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, Run
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.plot_style import BLUE, ORANGE, Look, assign_looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAMES = 16
"""Games beyond which the rounds of single ones are left to the viewer."""


def sketches(runs: Mapping[str, Run], comparisons: Sequence[Comparisons]) -> list[Sketch]:
    """Differences to A, then payoffs by round; `runs` are by name."""
    if not comparisons:
        return []
    figures = []
    scales: dict[tuple[str, str], dict[str, None]] = {}  # payoffs have one of their own each
    for family in FAMILIES:
        compared = [game for comparison in comparisons for game in comparison.games]
        for game in compared if family != "payoffs" else ():
            if (change := game.of(family)) and change.interval:
                scales.setdefault((family, game.shown(family)[0]), {})[game.label] = None
    what = comparisons[0].change if len(comparisons) == 1 else "differences to A"
    for (family, name), labels in scales.items():
        shown: dict[str, Any] = {"labels": [*labels], "family": family, "name": name}
        draw = partial(_differences, comparisons=comparisons, **shown)
        size = canvas.tall(len(labels), len(comparisons))
        figures.append(Sketch(f"{name.capitalize()}, {what}", draw, size))
    paired: dict[str, dict[str, Comparison]] = {}
    for comparison in comparisons:
        for game in comparison.games:
            if game.payoffs:
                paired.setdefault(game.label, {})[comparison.name] = game
    for label, games in paired.items() if len(paired) <= GAMES else ():
        draw = partial(_rounds, runs=runs, games=games)
        names = " and ".join(", ".join(["A", *games]).rsplit(", ", 1))
        figures.append(Sketch(f"{label}, {names} by round", draw, THIRD))
    return figures


def _differences(
    axes: Axes, comparisons: Sequence[Comparisons], labels: Sequence[str], family: str, name: str
) -> str:
    """Draw the difference to A of each game with its interval, filled if significant."""
    below = np.linspace(-0.4, 0.4, len(comparisons) + 2)[1:-1]
    alone = len(comparisons) == 1
    styled = assign_looks(comparisons) if alone else assign_looks(["A", *comparisons])[1:]
    for shift, (comparison, look) in zip(below, styled, strict=True):
        for game in comparison.games:
            change = game.of(family)
            if change and change.interval and game.shown(family)[0] == name:
                row = labels.index(game.label) + shift
                _difference(axes, row, change, bool(comparison.significant(change)), look)
        if not alone:
            axes.plot([], [], look.mark, color=look.colour, ms=7, label=comparison.change)
    canvas.zero(axes)
    canvas.down(axes, labels)
    axes.set_xlabel(f"{name}, {comparisons[0].change}" if alone else f"{name} more than in A")
    share = f"{100 - 100 * comparisons[0].level:.3g}"
    return (
        f"Mean over pairs of episodes from the same seed, with the {share} % interval of the "
        "paired t test; filled: significant after Holm's correction."
    )


def _difference(axes: Axes, row: float, difference: Difference, sure: bool, look: Look) -> None:
    assert difference.interval is not None
    colour = look.colour if look.mark else ORANGE if sure else BLUE
    mark = look.mark or "o"
    axes.plot(difference.mean, row, mark, color=colour, mfc=colour if sure else "none", ms=7)
    axes.hlines(row, difference.interval.low, difference.interval.high, color=colour, linewidth=1.4)


def _rounds(axes: Axes, runs: Mapping[str, Run], games: Mapping[str, Comparison]) -> str:
    """Draw payoffs so far by round, over the episodes that all runs have."""
    numbers = set.intersection(*(set(game.changes["payoffs"]) for game in games.values()))
    positions = sorted({position for game in games.values() for position in game.seats})
    label = next(iter(games.values())).label
    by_name = {name: {game.label: game for game in runs[name].games} for name in ("A", *games)}
    sides = {name: by_label[label] for name, by_label in by_name.items()}
    for (name, look), game in zip(assign_looks(sides), sides.values(), strict=True):
        done = [episode for episode in game.done if episode.row.number in numbers]
        earned = [_earned(episode, positions) for episode in done]
        longest = max(map(len, earned), default=0)  # whose episode is over keeps what it earned
        lines = [[*earnings, *earnings[-1:] * (longest - len(earnings))] for earnings in earned]
        if lines:
            canvas.paths(axes, lines, name, game.rules.core.payable, look, 1 + game.rules.begun)
    canvas.over_rounds(axes, "move" if sides["A"].rules.turns else "round")
    axes.set_ylabel("payoff so far")
    canvas.room(axes)
    which_places = f"of place {', '.join(map(str, positions))}"
    which = "of a seat" if len(positions) == len(sides["A"].seats) else which_places
    return (
        f"Payoff {which} so far, over the {len(numbers)} pairs of episodes; thin lines are single "
        "episodes, bands 95 % intervals of the mean at each point. After the end of an "
        "episode its payoff stands."
    )


def _earned(episode: RecordedEpisode, positions: Sequence[int]) -> list[float]:
    """Payoff so far by step, mean over the players of these places."""
    seats = [episode.row.seating.index(position) for position in positions]
    earned: list[float] = np.cumsum(episode.rewards[:, seats].mean(axis=1)).tolist()
    return earned
