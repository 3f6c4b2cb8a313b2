"""What players did over the rounds, as a figure whose points lead to the decisions behind them."""

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
    """A mean of so `many` decisions, where it is drawn, and the query of these decisions."""

    x: float
    y: float
    words: str
    query: str


class CurveLine(NamedTuple):
    """One player's points; `look` is its colour's class and its dashes."""

    player: str
    points: list[CurvePoint]
    colour: str
    dashes: str

    @property
    def path(self) -> str:
        """The line through the points."""
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


class Curve(NamedTuple):
    """A figure: `ticks` are places and words on both axes; `left_out` counts players not drawn."""

    what: str
    title: str
    lines: list[CurveLine]
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]
    together: int
    left_out: int


def curve(
    columns: Mapping[str, Array], names: Mapping[str, Sequence[str]], label: str, what: str
) -> Curve | None:
    """Draw the mean of a column of decisions over the rounds of a game, by player.

    None where there are fewer than two rounds, or no value.
    """
    if label not in names["game"]:
        return None
    mine = columns["game"] == [*names["game"]].index(label)
    mine &= (columns["phase"] == PHASES.index("move")) & np.isfinite(columns[what])
    rounds, players, values = (columns[name][mine] for name in ("round", "player", what))
    last = int(rounds.max(initial=0))
    if last < 2:
        return None
    together = -(-last // POINTS)
    place = (rounds - 1) // together
    means = list(_means(place, players, values))
    heights = np.concatenate([mean for _, _, mean, _ in means])
    low, high = min(0.0, float(heights.min())), max(0.0, float(heights.max()))
    up = ticks(low, high)
    low, high = min(low, up[0]), max(high, up[-1])
    scale = (HIGH - TOP - BOTTOM) / (high - low)
    spread = (WIDE - LEFT - RIGHT) / (last - 1)
    lines = []
    for number, (player, places, mean, many) in enumerate(means[:PLAYERS]):
        points = []
        for at, value, count in zip(places, mean, many, strict=True):
            some = range(at * together + 1, min((at + 1) * together, last) + 1)
            name = names["player"][player]
            where = {"game": label, "player": name, "phase": "move", "round": list(some)}
            middle = (some[0] + some[-1]) / 2
            said = f"{name}, {_rounds(some)}: mean {what} {value:.4g} of {count:,}"
            x, y = LEFT + (middle - 1) * spread, HIGH - BOTTOM - (value - low) * scale
            points.append(CurvePoint(x, y, said, urlencode(where, doseq=True)))
        look = f"c{number % COLOURS}", DASHES[number // COLOURS % len(DASHES)]
        lines.append(CurveLine(names["player"][player], points, *look))
    across = [(LEFT + (n - 1) * spread, str(n)) for n in _whole(last)]
    heights_of = [(HIGH - BOTTOM - (value - low) * scale, f"{value:g}") for value in up]
    title = f"Mean {what} of a decision by round"
    return Curve(what, title, lines, across, heights_of, together, max(0, len(means) - PLAYERS))


def _means(
    place: Array, players: Array, values: Array
) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield each player with the places where it moved, the means there, and of how many."""
    for player in dict.fromkeys(players.tolist()):
        own = players == player
        many = np.bincount(place[own])
        total = np.bincount(place[own], weights=values[own])
        there = np.flatnonzero(many)
        yield player, there, total[there] / many[there], many[there]


def _rounds(some: range) -> str:
    return f"round {some[0]}" if len(some) == 1 else f"rounds {some[0]} to {some[-1]}"


def _whole(last: int) -> list[int]:
    """Return rounds to mark on the axis: the first, the last, and few between."""
    step = max(1, round((last - 1) / 6))
    return [n for n in range(1, last, step) if last - n >= step / 2] + [last]


def ticks(low: float, high: float) -> list[float]:
    """Return about four round numbers from at most `low` to at least `high`."""
    if low == high:
        return [low, low + 1]
    raw = (high - low) / 4
    size = 10 ** np.floor(np.log10(raw))
    step = float(next(size * n for n in (1, 2, 5, 10) if size * n >= raw * 0.999))
    return [
        float(n * step) for n in range(int(np.floor(low / step)), int(np.ceil(high / step)) + 1)
    ]
