"""Economics Arena's Figures 1 and 2: one-shot games over the sessions of all groups together.

The paper plots means over 150 sessions; three groups of 50 is this package's reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.means import MeanCell, mean_of
from llm_games.benchmarks.judge.paper import Sketch
from llm_games.benchmarks.judge.result_table import ResultTable, Value, columns
from llm_games.benchmarks.papers.econ_arena import metrics as econ_arena
from llm_games.benchmarks.papers.econ_arena.metrics import player_runs
from llm_games.benchmarks.record.recorded_games import RecordedGame
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.plot_style import BLUE, ORANGE

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
    """Games that differ only in the sizes of their numbers, with their room."""

    title: str
    room: str
    games: Sequence[RecordedGame]


class Pooled(NamedTuple):
    """One player over the sessions of a pool; None where it is not defined."""

    player: str
    sessions: int
    payoff: MeanCell | None
    gain: MeanCell | None
    deviation: MeanCell | None


def pools(games: Sequence[tuple[str, str, RecordedGame]]) -> list[Pool]:
    """Return the pools of these games, each given with its title and room."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[RecordedGame]] = {}
    for title, room, game in games:
        if game.rules.rounds == 1 and game.done:
            groups.setdefault((title, room, tuple(game.seats)), []).append(game)
    return [Pool(*key[:2], group) for key, group in groups.items() if len(group) > 1]


def pooled(pool: Pool) -> list[Pooled]:
    """Return the results of every player of a pool, in the order of their seats."""
    names, rules = list(dict.fromkeys(pool.games[0].seats)), [game.rules for game in pool.games]
    # Of payoff, gain, deviation.
    samples = {name: [_PoolSample() for _ in range(3)] for name in names}
    for group, game in enumerate(pool.games):
        for session in game.done:
            [run] = player_runs(session)
            for name, turn in zip(session.seats, run, strict=True):
                gain = None if turn.asset_ratio is None else turn.asset_ratio - 1
                values = turn.payoff, gain, turn.deviation
                for sample, value in zip(samples[name], values, strict=True):
                    sample.add(group, session.row.seed, value)
    sessions, limits = sum(len(game.done) for game in pool.games), econ_arena.ends(rules[0])
    if econ_arena.is_contest(rules[0]):
        ends = -max(float(r.foul_fee) for r in rules), max(float(r.prize) for r in rules)
        payoffs = {name: sample[0].bounded(*ends) for name, sample in samples.items()}
    else:
        largest = float(max(np.max(r.assets) for r in rules))
        payoffs = {name: sample[0].money(largest) for name, sample in samples.items()}
    return [
        Pooled(name, sessions, payoffs[name], gain.money(1), deviation.bounded(*limits))
        for name, (_, gain, deviation) in samples.items()
    ]


class _PoolSample:
    """Values of one player, by group and by the session's seed."""

    def __init__(self) -> None:
        self.groups: dict[int, dict[int, list[float]]] = {}

    def add(self, group: int, seed: int, value: Fraction | None) -> None:
        """Add a value of one of the player's seats, if there is one."""
        if value is not None:
            self.groups.setdefault(group, {}).setdefault(seed, []).append(float(value))

    def columns(self) -> list[list[float]]:
        """Return the sessions' values, group by group; by seed alone if groups share the seeds."""
        by_seed: dict[int, list[float]] = {}
        for sessions in self.groups.values():
            for seed, values in sessions.items():
                by_seed.setdefault(seed, []).append(fmean(values))
        if len(by_seed) < sum(map(len, self.groups.values())):
            return [[*map(fmean, by_seed.values())]]
        return [[*map(fmean, sessions.values())] for sessions in self.groups.values()]

    def bounded(self, low: float, high: float) -> MeanCell | None:
        return mean_of([value for column in self.columns() for value in column], (low, high))

    def money(self, limit: float) -> MeanCell | None:
        """The mean of groups' means of different size, within `limit` or the largest value."""
        columns = self.columns()
        if not columns:
            return None
        mean, runs = fmean(map(fmean, columns)), sum(map(len, columns))
        limit = max(limit, *(abs(value) for column in columns for value in column))
        interval = intervals.overall(columns, -limit, limit)
        return MeanCell(mean, None, runs, interval, (-limit, limit))


def grid(pools: Sequence[Pool]) -> ResultTable:
    heads = columns("game, room, player") | {"groups": "d", "sessions": "d"}
    heads |= columns("", "payoff, gain / assets, deviation", ".3f")
    rows: list[list[Value]] = [
        [pool.title, pool.room, player_result.player, len(pool.games), *player_result[1:]]
        for pool in pools
        for player_result in pooled(pool)
    ]
    return ResultTable(heads, rows, "All groups together", "econ_arena_pooled", NOTE)


def sketches(pools: Sequence[Pool]) -> Iterator[Sketch]:
    """Yield Figures 1a and 2a, payoffs, and 1b and 2b, deviations, of every pool."""
    for pool in pools:
        size = canvas.tall(len(set(pool.games[0].seats)))
        rational = pool.room == "rational"
        what = "deviations" if rational else "payoffs"
        title = f"All groups, {what}: {pool.title}, {pool.room}"
        yield Sketch(title, partial(_drawn, pool=pool, deviation=rational), size)


def _drawn(axes: Axes, pool: Pool, deviation: bool) -> str:
    players = pooled(pool)
    contest = econ_arena.is_contest(pool.games[0].rules)
    kind = "deviation" if deviation else "payoff" if contest else "gain"
    cells = [getattr(player, kind) for player in players]
    rows = [row for row, cell in enumerate(cells) if cell]
    axes.plot([cell.mean for cell in cells if cell], rows, "o", color=BLUE, ms=6)
    canvas.across(axes, range(len(cells)), cells, BLUE)
    canvas.down(axes, [player.player for player in players])
    canvas.zero(axes)
    label = {"deviation": "deviation d", "payoff": "share of the prize"}
    axes.set_xlabel(label.get(kind, "gain as a share of the assets"))
    if kind == "payoff":
        share = float(np.mean([float(g.rules.prize) / g.rules.players for g in pool.games]))
        axes.axvline(share, color=ORANGE, linestyle="--", linewidth=1.3, label="equilibrium")
    return (
        f"Mean over the {players[0].sessions} sessions of {len(pool.games)} groups"
        f"{canvas.resting(cells, ', and its 95 % interval')}."
    )
