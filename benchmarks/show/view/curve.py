"""A figure of means by player and round; its points lead to the decisions behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np

from llm_games.benchmarks.show.view.filter import PHASES
from llm_games.rulebook import Array

WIDE, HIGH = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 34
POINTS = 60
"""Points of a line; of more rounds, several are averaged together."""
PLAYERS = 12
"""Lines of a figure; players beyond these are told of, and not drawn."""
DASHES = "", "7 3", "2 3"
COLOURS = 5  # classes c0, c1 … of the style sheet


class CurvePoint(NamedTuple):
    """A mean over decisions, its position in the figure, and the query of these decisions."""

    x: float
    y: float
    words: str
    query: str


class CurveLine(NamedTuple):
    """One player's points; `colour` is a class of the style sheet."""

    player: str
    points: list[CurvePoint]
    colour: str
    dashes: str

    @property
    def path(self) -> str:
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


class Curve(NamedTuple):
    """`across` and `up` are positions and words on both axes; a point has rounds `together`."""

    title: str
    lines: list[CurveLine]
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]
    together: int
    left_out: int


def curve(
    columns: Mapping[str, Array], names: Mapping[str, Sequence[str]], label: str, what: str
) -> Curve | None:
    """Mean of a column by round and player; None below two rounds, or without any value."""
    if label not in names["game"]:
        return None
    is_shown = columns["game"] == [*names["game"]].index(label)
    is_shown &= (columns["phase"] == PHASES.index("move")) & np.isfinite(columns[what])
    rounds, players, values = (columns[name][is_shown] for name in ("round", "player", what))
    last = int(rounds.max(initial=0))
    if last < 2:
        return None
    together = -(-last // POINTS)
    means = list(_means((rounds - 1) // together, players, values))
    heights = np.concatenate([mean for _, _, mean, _ in means])
    low, high = min(0.0, float(heights.min())), max(0.0, float(heights.max()))
    marks = ticks(low, high)
    low, high = min(low, marks[0]), max(high, marks[-1])
    scale, spread = (HIGH - TOP - BOTTOM) / (high - low), (WIDE - LEFT - RIGHT) / (last - 1)

    def points(name: str, groups: Array, mean: Array, counts: Array) -> Iterator[CurvePoint]:
        for group, value, count in zip(groups, mean, counts, strict=True):
            first, end = group * together + 1, min((group + 1) * together, last)
            numbers = f"round {first}" if first == end else f"rounds {first} to {end}"
            selection = {"game": label, "player": name, "phase": "move"}
            yield CurvePoint(
                LEFT + ((first + end) / 2 - 1) * spread,
                HIGH - BOTTOM - (value - low) * scale,
                f"{name}, {numbers}: mean {what} {value:.4g} of {count:,}",
                urlencode(selection | {"round": [*range(first, end + 1)]}, doseq=True),
            )

    lines = []
    for number, (player, *series) in enumerate(means[:PLAYERS]):
        name, dashes = names["player"][player], DASHES[number // COLOURS % len(DASHES)]
        lines.append(CurveLine(name, [*points(name, *series)], f"c{number % COLOURS}", dashes))
    return Curve(
        title=f"Mean {what} of a decision by round",
        lines=lines,
        across=[(LEFT + (n - 1) * spread, str(n)) for n in _whole(last)],
        up=[(HIGH - BOTTOM - (mark - low) * scale, f"{mark:g}") for mark in marks],
        together=together,
        left_out=max(0, len(means) - PLAYERS),
    )


def _means(
    groups: Array, players: Array, values: Array
) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield each player, the groups of rounds in which it moved, the means there, and counts."""
    for player in dict.fromkeys(players.tolist()):
        mine = players == player
        counts = np.bincount(groups[mine])
        total = np.bincount(groups[mine], weights=values[mine])
        moved = np.flatnonzero(counts)
        yield player, moved, total[moved] / counts[moved], counts[moved]


def _whole(last: int) -> list[int]:
    """Rounds to mark on the axis: the first, the last, and few between."""
    step = max(1, round((last - 1) / 6))
    return [n for n in range(1, last, step) if last - n >= step / 2] + [last]


def ticks(low: float, high: float) -> list[float]:
    """About four round numbers from at most `low` to at least `high`."""
    if low == high:
        return [low, low + 1]
    raw = (high - low) / 4
    size = 10 ** np.floor(np.log10(raw))
    step = float(next(size * n for n in (1, 2, 5, 10) if size * n >= raw * 0.999))
    return [
        float(n * step) for n in range(int(np.floor(low / step)), int(np.ceil(high / step)) + 1)
    ]
