"""The findings of Shall We Talk as testable statements about runs, each with an interval.

A statement has one part or more: an effect, this package's reading of the paper's words, and the
region in which it must lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

import numpy as np

from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.means import FREE, SHARE, Ends, MeanCell, apart, mean_of
from llm_games.benchmarks.papers.shall_we_talk import metrics
from llm_games.benchmarks.papers.shall_we_talk.metrics import difference, share_difference
from llm_games.benchmarks.papers.shall_we_talk.plans import KINDS
from llm_games.rulebook import Array

WIN, AVOID = KINDS
T = TypeVar("T")


class ContestRun(NamedTuple):
    """A run of the contest: legal numbers, %RSD within `ends`, and its plan's label, or None."""

    numbers: Sequence[int]
    plan: str | None = None
    ends: Ends = FREE


class Market(NamedTuple):
    """A run of the price competition.

    `prices` are means over the firms, round by round, and `firms` those of each firm, ``(firms,
    rounds)``; `early` says whether they agreed in the talk of early rounds, None if unknown;
    `settled` is the round of convergence. `price_index` and `profit_gain` are of late rounds,
    `price_gap` of all. Prices lie within `ends`.
    """

    prices: Sequence[float]
    early: bool | None = None
    settled: int | None = None
    price_index: float = math.nan
    profit_gain: float = math.nan
    price_gap: float = math.nan
    firms: Sequence[Sequence[float]] = ()
    ends: Ends = FREE


class Escape(NamedTuple):
    """A run of the evacuation.

    `curves` are the escaped so far, ``(groups, rounds)``, and `sides` by exit, ``(sides, rounds)``;
    `time` is the round of the last escape, None if somebody is left; `shares` are the sides'
    (bottom, left, right) of the escapes, `balance` theirs. Shares of people who `escaped` and were
    `lost`, how many rounds people had `fallen`; of decisions the shares that changed the side
    (`changes`), and before which `panic` was reported. Rounds lie within `ends`.
    """

    curves: Array
    time: int | None
    mean_round: float | None
    shares: Sequence[float] | None
    balance: float | None
    escaped: float = math.nan
    lost: float = math.nan
    fallen: int = 0
    changes: float | None = None
    panic: float | None = None
    sides: Array | None = None
    ends: Ends = FREE


class Clause(NamedTuple):
    """A part of a statement: value and region, from `low` to `high`, excluded unless `closed`."""

    of: str
    what: str
    value: MeanCell | None
    low: float = -math.inf
    high: float = math.inf
    closed: bool = False

    @property
    def region(self) -> str:
        """Return the region in words."""
        if self.high == math.inf:
            return f"{'at least' if self.closed else 'above'} {self.low:g}"
        if self.low == -math.inf:
            return f"{'at most' if self.closed else 'below'} {self.high:g}"
        return f"{self.low:g} to {self.high:g}"

    @property
    def verdict(self) -> str:
        """Whether the value lies in the region, or "", and a note if the interval is not clear."""
        if self.value is None:
            return ""
        word = "yes" if self.inside(self.value.mean) else "no"
        interval = self.value.interval
        if interval is None or interval.method == "none":
            return f"{word}, no interval"
        within = self.inside(interval.low) and self.inside(interval.high)
        outside = interval.high < self.low or interval.low > self.high
        return word if within or outside else f"{word}, not clear"

    def inside(self, value: float) -> bool:
        if self.closed and value in (self.low, self.high):
            return True
        return self.low < value < self.high


Runs = Mapping[str, Sequence[Any]]  # finished runs by cell: `Contest`, `Market` or `Escape`


def statements(runs: Runs) -> list[Clause]:
    """Return the parts of all statements; those without the needed cells have the value None."""
    return [*_contests(runs), *_markets(runs), *_escapes(runs), *_weaker(runs)]


def _of(runs: Runs, cell: str, of: Callable[[Any], Any]) -> list[Any]:
    """Return a value of each run of a cell; runs without one are left out."""
    return [value for run in runs.get(cell, ()) if (value := of(run)) is not None]


def _named(runs: Runs, cell: str, of: Callable[[Sequence[int]], T]) -> list[T]:
    """Return a value of the numbers of each run of a cell that has any."""
    return [of(run.numbers) for run in runs.get(cell, ()) if run.numbers]


def _ends(runs: Runs, *cells: str) -> Ends:
    """Return the ends between which the runs' numbers lie in some cells."""
    limits = [run.ends for cell in cells for run in runs.get(cell, ())]
    low, high = zip(*limits, strict=True) if limits else ([FREE[0]], [FREE[1]])
    return min(low), max(high)


def _share(answers: Sequence[bool]) -> MeanCell | None:
    """Return the share of runs with a true answer."""
    if not answers:
        return None
    count = len(answers)
    interval = intervals.share(sum(answers), count)
    return MeanCell(sum(answers) / count, None, count, interval, SHARE)


def _contests(runs: Runs) -> Iterator[Clause]:
    silent, talk = "KBC-silent", "KBC-talk"
    near = _named(runs, silent, lambda numbers: metrics.within(numbers, 40, 50))
    yield Clause("K1", "share of numbers from 40 to 50, silent", mean_of(near, SHARE), 0.5)
    means = [np.array(_named(runs, cell, fmean)).reshape(-1, 1) for cell in (talk, silent)]
    spread = [metrics.pseudo_variances(cell_means) or [] for cell_means in means]
    effect = difference(spread[0], spread[1])
    yield Clause("K2", "variance of the run's mean, talk less silent", effect, 0)
    equal = [_named(runs, cell, lambda numbers: len(set(numbers)) == 1) for cell in (talk, silent)]
    yield Clause("K3", "share of runs with all numbers equal, talk", _share(equal[0]), 0)
    yield Clause("K3", "the same, talk less silent", share_difference(*equal), 0)
    win = {cell: _planned(runs, cell, WIN) for cell in RULES}
    for higher, lower in ((talk, "KBC-independent"), ("KBC-independent", "KBC-exclusive")):
        what = f"share of runs with a plan to win together, {_word(higher)} less {_word(lower)}"
        yield Clause("K4", what, share_difference(win[higher], win[lower]), 0)
    spread = [_named(runs, cell, metrics.rsd) for cell in RULES]
    ends = _ends(runs, *RULES)
    effect = difference(spread[0], spread[1], ends)
    yield Clause("K5", "%RSD, amplified less independent", effect, high=0, closed=True)
    effect = difference(spread[2], spread[1], ends)
    yield Clause("K5", "%RSD, exclusive less independent", effect, 0)
    avoid = {cell: _planned(runs, cell, AVOID) for cell in RULES}
    what = "share of runs with a plan to avoid equal numbers, exclusive"
    yield Clause("K6", what, _share(avoid["KBC-exclusive"]), 0)
    for cell in RULES[:2]:
        effect = share_difference(avoid["KBC-exclusive"], avoid[cell])
        yield Clause("K6", f"the same, exclusive less {_word(cell)}", effect, 0)
    yield from _personas(runs)


RULES = ("KBC-talk", "KBC-independent", "KBC-exclusive")


def _word(cell: str) -> str:
    return cell.removeprefix("KBC-").replace("talk", "amplified")


def _planned(runs: Runs, cell: str, kind: str = "") -> list[bool]:
    """Return for each labelled run of a cell whether it has a plan, or one of a kind."""
    plans = _of(runs, cell, lambda run: run.plan)
    return [plan == kind if kind else plan in KINDS for plan in plans]


def _personas(runs: Runs) -> Iterator[Clause]:
    rates = {word: _planned(runs, f"KBC-{word}") for word in ("agreeable", "disagreeable", "mixed")}
    what = "share of runs with a joint plan, {}"
    yield Clause("K7", what.format("agreeable"), _share(rates["agreeable"]), 0.9)
    yield Clause("K7", what.format("disagreeable"), _share(rates["disagreeable"]), high=0.5)
    yield Clause("K7", what.format("mixed"), _share(rates["mixed"]), 0.9)
    sides = "KBC-mixed", "KBC-agreeable"
    spread = [_named(runs, cell, metrics.rsd) for cell in sides]
    effect = difference(spread[0], spread[1], _ends(runs, *sides))
    yield Clause("K7", "%RSD, mixed less agreeable", effect, 0)


def _markets(runs: Runs) -> Iterator[Clause]:
    silent, talk, selfish = "BC-silent", "BC-talk", "BC-uncooperative"

    def mean(cell: str, first: int, last: int) -> list[float]:
        return _of(runs, cell, lambda run: metrics.mean_in(run.prices, first, last))

    late = mean_of(mean(silent, 401, 600), _ends(runs, silent))
    yield Clause("B1", "mean price of rounds 401-600, silent", late, 6.5, 7.5, closed=True)
    change = partial(_change, early=(101, 200), late=(401, 600))
    risen = mean_of(_of(runs, silent, change), apart(_ends(runs, silent)))
    yield Clause("B1", "the same less that of rounds 101-200", risen, 0)
    yield Clause("B2", "mean price of rounds 401-600, silent", late, 6, 8)
    early = _share(_of(runs, talk, lambda run: run.early))
    yield Clause("B3", "share of runs with an agreement before round 100, talk", early, 0.5)
    last = mean(talk, 601, 700)
    effect = mean_of(last, _ends(runs, talk))
    yield Clause("B4", "mean price of rounds 601-700, talk", effect, 7.75, 8.25, True)
    lead = difference(last, mean(silent, 601, 700), _ends(runs, talk, silent))
    yield Clause("B5", "mean price of rounds 601-700, talk less silent", lead, 0)
    change = partial(_change, early=(301, 400), late=(501, 600))
    fallen = mean_of(_of(runs, selfish, change), apart(_ends(runs, selfish)))
    what = "mean price of rounds 501-600 less that of 301-400, uncooperative"
    yield Clause("B6", what, fallen, high=0)
    slopes = _of(runs, selfish, lambda run: metrics.slope_in(run.prices, 401, 600))
    what = "rise of the price in 100 rounds, 401-600, uncooperative"
    yield Clause("B6", what, mean_of(slopes, FREE), high=0)


def _change(run: Market, early: tuple[int, int], late: tuple[int, int]) -> float | None:
    first, last = (metrics.mean_in(run.prices, *rounds) for rounds in (early, late))
    return None if first is None or last is None else last - first


GROUPS = ("strong, positive", "strong, negative", "weak, positive", "weak, negative")
LATE = slice(30, 50)  # rounds 31 to 50


def _escapes(runs: Runs) -> Iterator[Clause]:
    silent, talk, selfish = "EE-silent", "EE-talk", "EE-uncooperative"

    def less(
        first: str, second: str, of: Callable[[Escape], Any], ends: Ends = SHARE
    ) -> MeanCell | None:
        return difference(_of(runs, first, of), _of(runs, second, of), ends)

    rounds = _ends(runs, silent, talk, selfish)

    time = less(talk, silent, lambda run: run.time, rounds)
    yield Clause("E1", "rounds until all are out, talk less silent", time, high=0)
    effect = less(talk, silent, lambda run: run.mean_round, rounds)
    yield Clause("E1", "mean round of escape, talk less silent", effect, high=0)
    for group, name in enumerate(GROUPS):
        sides = [_variances(runs.get(cell, ()), group) for cell in (talk, silent)]
        what = f"variance of the escaped over runs, rounds 31-50, talk less silent: {name}"
        yield Clause("E2", what, difference(sides[0], sides[1]), high=0)
    effect = less(talk, silent, lambda run: run.balance)
    yield Clause("E3", "balance of the exits, talk less silent", effect, 0)
    effect = less(selfish, talk, lambda run: run.mean_round, rounds)
    yield Clause("E4", "mean round of escape, uncooperative less talk", effect, 0)
    right, bottom = (less(selfish, talk, partial(_side, index=index)) for index in (2, 0))
    what = "share of the {} exit, uncooperative less talk"
    yield Clause("E5", what.format("right"), right, 0)
    yield Clause("E5", what.format("bottom"), bottom, high=0)


def _side(run: Escape, index: int) -> float | None:
    return run.shares[index] if run.shares else None


def _variances(escapes: Sequence[Escape], group: int) -> list[float]:
    rows = (run.curves[group] for run in escapes if group < len(run.curves))
    curves = [row[LATE] for row in rows if len(row) > LATE.start]
    return (metrics.pseudo_variances(np.array(curves)) if len(curves) > 2 else None) or []


def _weaker(runs: Runs) -> Iterator[Clause]:
    for cell in ("KBC-silent", "KBC-talk"):
        near = _named(runs, cell, lambda numbers: metrics.within(numbers, 40, 80))
        effect = mean_of(near, SHARE)
        what = f"share of numbers from 40 to 80, {cell.removeprefix('KBC-')}"
        yield Clause("G1", what, effect, 0.5)
    settled = [run.settled is not None for run in runs.get("BC-talk", ())]
    yield Clause("G1", "share of runs whose prices settle, talk", _share(settled), high=0.5)
