"""Economics Arena's Figures 1 and 2: one-shot games over the sessions of all groups together.

The paper plots means over 150 sessions; that these are three groups of 50 is our reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from llm_games.benchmarks.papers.econ_arena import metrics as econ_arena
from llm_games.benchmarks.papers.econ_arena.metrics import player_runs
from llm_games.benchmarks.report import canvas
from llm_games.benchmarks.runs.grid import Grid, Value, columns
from llm_games.benchmarks.runs.paper import Sketch
from llm_games.benchmarks.runs.reader import Game
from llm_games.benchmarks.runs.stats import Cell, mean_of
from llm_games.benchmarks.stats import intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTE = (
    "One-shot games of the same players, all groups together, as in Figures 1 and 2 (a: payoffs in "
    "the melee, b: deviations in the rational room; printed without numbers). Payoff: share of the "
    "prize, or gain in the auction, where groups count alike (n is of each); there the group of "
    "the largest values outweighs the others, unlike in the gain as a share of the assets. "
    "Deviation d: over sessions with a legal action; in the auction it also moves with what the "
    "others bid, so that a truthful bidder has some. Sessions of one seed, which meet the same "
    "chance, are one to the interval."
)


class Pool(NamedTuple):
    """Games that differ in the sizes of their numbers alone, with the room they are played in."""

    title: str
    room: str
    games: Sequence[Game]


class Pooled(NamedTuple):
    """One player over the sessions of a pool; None where it is not defined."""

    player: str
    sessions: int
    payoff: Cell | None
    gain: Cell | None
    deviation: Cell | None


def pools(games: Sequence[tuple[str, str, Game]]) -> list[Pool]:
    """Return which of these games, each with its title and room, belong together."""
    found: dict[tuple[str, str, tuple[str, ...]], list[Game]] = {}
    for title, room, game in games:
        if game.rules.rounds == 1 and game.done:
            found.setdefault((title, room, tuple(game.seats)), []).append(game)
    return [Pool(*who[:2], some) for who, some in found.items() if len(some) > 1]


def pooled(pool: Pool) -> list[Pooled]:
    """Return the results of every player of a pool, in the order of their seats."""
    names, rules = list(dict.fromkeys(pool.games[0].seats)), [game.rules for game in pool.games]
    kept = {name: (_Kept(), _Kept(), _Kept()) for name in names}  # payoff, gain, deviation
    for group, game in enumerate(pool.games):
        for session in game.done:
            [run] = player_runs(session)
            for name, turn in zip(session.seats, run, strict=True):
                gain = None if turn.asset_ratio is None else turn.asset_ratio - 1
                values = turn.payoff, gain, turn.deviation
                for own, value in zip(kept[name], values, strict=True):
                    own.add(group, session.row.seed, value)
    sessions = sum(len(game.done) for game in pool.games)
    if econ_arena.is_contest(rules[0]):
        ends = -max(float(r.foul_fee) for r in rules), max(float(r.prize) for r in rules)
        paid = {name: own[0].bounded(*ends) for name, own in kept.items()}
    else:
        most = float(max(np.max(r.assets) for r in rules))
        paid = {name: own[0].money(most) for name, own in kept.items()}
    return [
        Pooled(
            name, sessions, paid[name], gain.money(1), deviation.bounded(*econ_arena.ends(rules[0]))
        )
        for name, (_, gain, deviation) in kept.items()
    ]


class _Kept:
    """Values of one player, by group and by the seed of the session."""

    def __init__(self) -> None:
        self.groups: dict[int, dict[int, list[float]]] = {}

    def add(self, group: int, seed: int, value: Fraction | None) -> None:
        """Keep a value of one of its seats, if there is one."""
        if value is not None:
            self.groups.setdefault(group, {}).setdefault(seed, []).append(float(value))

    def columns(self) -> list[list[float]]:
        """Return the sessions' values, group by group; by seed alone where groups share these."""
        by_seed: dict[int, list[float]] = {}
        for sessions in self.groups.values():
            for seed, values in sessions.items():
                by_seed.setdefault(seed, []).append(fmean(values))
        if len(by_seed) < sum(map(len, self.groups.values())):
            return [[*map(fmean, by_seed.values())]]
        return [[*map(fmean, sessions.values())] for sessions in self.groups.values()]

    def bounded(self, low: float, high: float) -> Cell | None:
        """Return the mean of values between such ends over all sessions."""
        return mean_of([value for column in self.columns() for value in column], (low, high))

    def money(self, most: float) -> Cell | None:
        """Return the mean of the groups' means of values that differ in size between groups.

        They lie within `most` of 0, but for valuations that were given and are beyond the assets.
        """
        columns = self.columns()
        if not columns:
            return None
        mean, runs = fmean(map(fmean, columns)), sum(map(len, columns))
        most = max(most, *(abs(value) for column in columns for value in column))
        return Cell(mean, None, runs, intervals.overall(columns, -most, most), (-most, most))


def grid(found: Sequence[Pool]) -> Grid:
    """Return the table of all pools."""
    heads = columns("game, room, player") | {"groups": "d", "sessions": "d"}
    heads |= columns("", "payoff, gain / assets, deviation", ".3f")
    rows: list[list[Value]] = [
        [pool.title, pool.room, one.player, len(pool.games), *one[1:]]
        for pool in found
        for one in pooled(pool)
    ]
    return Grid(heads, rows, "All groups together", "econ_arena_pooled", NOTE)


def sketches(found: Sequence[Pool]) -> Iterator[Sketch]:
    """Yield Figures 1a and 2a, payoffs, and 1b and 2b, deviations, of every pool."""
    for pool in found:
        size = canvas.tall(len(set(pool.games[0].seats)))
        rational = pool.room == "rational"
        what = "deviations" if rational else "payoffs"
        title = f"All groups, {what}: {pool.title}, {pool.room}"
        yield Sketch(title, partial(_drawn, pool=pool, deviation=rational), size)


def _drawn(axes: Axes, pool: Pool, deviation: bool) -> str:
    found = pooled(pool)
    contest = econ_arena.is_contest(pool.games[0].rules)
    kind = "deviation" if deviation else "payoff" if contest else "gain"
    known = [getattr(one, kind) for one in found]
    at = [row for row, cell in enumerate(known) if cell]
    axes.plot([cell.mean for cell in known if cell], at, "o", color=canvas.BLUE, ms=6)
    canvas.across(axes, range(len(known)), known, canvas.BLUE)
    canvas.down(axes, [one.player for one in found])
    canvas.zero(axes)
    label = {"deviation": "deviation d", "payoff": "share of the prize"}
    axes.set_xlabel(label.get(kind, "gain as a share of the assets"))
    if kind == "payoff":
        share = float(np.mean([float(g.rules.prize) / g.rules.players for g in pool.games]))
        axes.axvline(share, color=canvas.ORANGE, linestyle="--", linewidth=1.3, label="equilibrium")
    return (
        f"Mean over the {found[0].sessions} sessions of {len(pool.games)} groups"
        f"{canvas.resting(known, ', and its 95 % interval')}."
    )
