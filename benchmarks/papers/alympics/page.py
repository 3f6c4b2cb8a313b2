"""Alympics: who survives, supply to requirement, and the days of a setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from llm_games.benchmarks.papers.alympics import metrics as alympics
from llm_games.benchmarks.papers.alympics.metrics import Curves, Days, Indicators
from llm_games.benchmarks.report import canvas
from llm_games.benchmarks.report.canvas import BLUE, ORANGE, line
from llm_games.benchmarks.report.data import Episode, Run, Table
from llm_games.benchmarks.report.figures import Sketch
from llm_games.benchmarks.report.paper import OWN, PUBLISHED, Grid, Paper, Value, as_it_is, heads
from llm_games.games.water_allocation.rules import WaterAllocation
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# -- one table's games, with the residents in their own order -------------------------------------


def _game(table: Table) -> Any:
    return table.rules


def _order(table: Table, episode: Episode) -> list[int]:
    """Return where the table's residents sat in an episode."""
    sat = [resident.name for resident in episode.rules.cast]  # type: ignore[attr-defined]
    return [sat.index(resident.name) for resident in _game(table).cast]


def _days(table: Table, episode: Episode) -> Days:
    """Return an episode's days with the residents in the table's order."""
    order = _order(table, episode)
    if order == sorted(order):
        return episode.records
    return [
        {k: [v[seat] for seat in order] if isinstance(v, list) else v for k, v in day.items()}
        for day in episode.records
    ]


def _players(table: Table) -> list[str]:
    """Return who played each resident; several, if they took turns."""
    casts = [[e.seats[seat] for seat in _order(table, e)] for e in table.played]
    return [" / ".join(dict.fromkeys(names)) for names in zip(*casts, strict=True)]


def _found(table: Table) -> Indicators:
    return alympics.indicators(_game(table), [_days(table, e) for e in table.done])


def _residents(table: Table, length: int = 24) -> list[str]:
    """Return the residents' names, and their players' where these differ and stay the same."""
    players, cast = _players(table), _game(table).cast
    if len(set(players)) == 1 or any(" / " in names for names in players):
        return [resident.name for resident in cast]
    return [f"{who.name} ({name[:length]})" for who, name in zip(cast, players, strict=True)]


def _paper(table: Table) -> alympics.Published | None:
    """Return what the paper prints for the same rules."""
    setting = alympics.setting_of(_game(table))
    return None if setting is None else alympics.published("exact")[setting - 1]


# -- result tables ---------------------------------------------------------------------------------


class Day(NamedTuple):
    """One resident on one day of a setting: means over the games in which it was alive."""

    game: str
    day: int
    resident: str
    player: str
    games: int
    bid: float | None
    health: float | None
    balance: float | None


class Life(NamedTuple):
    """What one resident of a setting came to: shares and means over its games."""

    game: str
    resident: str
    player: str
    games: int
    survived: float
    days_survived: float
    water_days: float
    spent: float
    final_balance: float
    over_budget: float


class Price(NamedTuple):
    """The lowest successful bid of one day, in dollars: its distribution over the games."""

    game: str
    day: int
    games: int
    low: float
    q1: float
    median: float
    q3: float
    high: float


LIVES = (
    "Means over the finished games: days completed alive, days with water, dollars spent on it, "
    "money at the end, and bids above the balance (void or clipped, as the rules of the game say)."
)
ENDS = ["N survivor", "RSR start", "RSR end", "mean daily median price", "no survivor"]


def grids(run: Run) -> list[Grid]:
    """Return Table 2 with one's own rows, and files of prices and of the residents' days."""
    tables = [table for table in run.tables if table.done]
    if not tables:
        return []
    names = list(dict.fromkeys(r.name for table in tables for r in _game(table).cast))
    head = ["game", "source", "games", *(f"SR {name}" for name in names), *ENDS]
    groups = groupby(_by_setting(tables), _paper)
    rows = [row for paper, group in groups for row in _rows([*group], paper, names)]
    note = (
        "SR: share of the games that a resident survives. N survivor: mean number of survivors. "
        "RSR: mean supply to the daily need of the living, at the start and at the end, there "
        "without games that nobody survives (counted last). Price: lowest bid that was served, "
        "median over the games of each day, mean over the days, in dollars. Published: ten games "
        "of GPT-4 players with the same rules, with misprints put right where the table's own "
        "entries prove them (arXiv 2311.03220, Table 2 and Figure 4)."
    )
    digits = {"RSR start": 3, "RSR end": 3, "mean daily median price": 1, "N survivor": 1}
    return [
        Grid("Survival and scarcity", "alympics_table2", head, rows, note, digits),
        Grid("Residents", "alympics_residents", heads(Life), [*_each_life(tables)], LIVES),
        Grid("", "alympics_days", heads(Day), [*_each_day(tables)]),
        Grid("", "alympics_prices", heads(Price), [*_each_price(tables)]),
    ]


def _by_setting(tables: Sequence[Table]) -> list[Table]:
    """Put tables of the same setting next to each other, others last."""
    return sorted(tables, key=lambda table: alympics.setting_of(_game(table)) or np.inf)


def _rows(
    tables: Sequence[Table], paper: alympics.Published | None, names: Sequence[str]
) -> Iterator[list[Value]]:
    """Yield the rows of one setting, the published one last."""
    for table in tables:
        found = _found(table)
        own = dict(zip((r.name for r in _game(table).cast), found.survival, strict=True))
        ratios = found.ratio_start, found.ratio_end
        ends = (found.survivors, *ratios, found.mean_median, found.left_out)
        yield [table.label, OWN, found.games, *map(own.get, names), *ends]
    if paper:
        ratios = paper.mean_ratio_start, paper.mean_ratio_end
        ends = (paper.survivors, *ratios, paper.mean_median, 0)
        rates = map(paper.survival.get, names)
        yield [f"setting {paper.setting}", PUBLISHED, len(paper.ratio_end), *rates, *ends]


def _each_life(tables: Sequence[Table]) -> Iterator[Life]:
    for table in tables:
        game, found = _game(table), _found(table)
        for seat, (resident, player) in enumerate(zip(game.cast, _players(table), strict=True)):
            ends = [alympics.ending(game, _days(table, e), seat) for e in table.done]
            means = np.mean(ends, axis=0).tolist()
            yield Life(table.label, resident.name, player, len(ends), found.survival[seat], *means)


def _each_day(tables: Sequence[Table]) -> Iterator[Day]:
    for table in tables:
        curves = _curves(table)
        who = zip(_game(table).cast, _players(table), strict=True)
        for seat, (resident, player) in enumerate(who):
            columns = [_means(curves, key, seat) for key in ("bids", "hp", "balance")]
            alive = _stack(curves, "hp", seat)
            for day, values in enumerate(zip(*columns, strict=True)):
                games = int(np.isfinite(alive[:, day]).sum())
                known = (None if np.isnan(value) else float(value) for value in values)
                yield Day(table.label, day + 1, resident.name, player, games, *known)


def _each_price(tables: Sequence[Table]) -> Iterator[Price]:
    for table in tables:
        for day, box in enumerate(_found(table).prices, start=1):
            if box is not None:
                yield Price(
                    table.label, day, box.size, box.low, box.q1, box.median, box.q3, box.high
                )


# -- figures over all settings ---------------------------------------------------------------------


def figures(run: Run) -> list[Sketch]:
    """Return survivors and supply to requirement of all settings, beside the published."""
    tables = _by_setting([table for table in run.tables if table.done])
    if not tables:
        return []
    size = canvas.tall(len(tables))
    return [
        Sketch("Survivors", partial(_survivors_of_all, tables=tables), size),
        Sketch("Supply to requirement", partial(_ratios, tables=tables), size),
    ]


def _survivors_of_all(axes: Axes, tables: Sequence[Table]) -> str:
    pairs = [(i, _paper(table)) for i, table in enumerate(tables)]
    own = [_found(table).survivors for table in tables]
    axes.plot(own, range(len(own)), "o", color=BLUE, ms=7, label="this run")
    printed = [(paper.survivors, i) for i, paper in pairs if paper]
    if printed:
        axes.plot(*zip(*printed, strict=True), "D", color=ORANGE, mfc="none", ms=8, label="GPT-4")
    axes.set_xlabel("survivors of a game, mean")
    axes.set_xlim(-0.15, max(_game(table).players for table in tables) + 0.15)
    canvas.down(axes, [table.label for table in tables])
    return "Mean number of residents who are alive after the last day; GPT-4: as published."


def _ratios(axes: Axes, tables: Sequence[Table]) -> str:
    looks = ((OWN, BLUE, "o", -0.12), ("GPT-4", ORANGE, "D", 0.12))
    for row, table in enumerate(tables):
        found, paper = _found(table), _paper(table)
        pairs = [(found.ratio_start, found.ratio_end)]
        pairs += [(paper.mean_ratio_start, paper.mean_ratio_end)] if paper else []
        for (start, end), (_, colour, mark, shift) in zip(pairs, looks, strict=False):
            at = row + shift
            if end is not None:
                axes.plot([start, end], [at, at], color=colour, linewidth=1.6)
                axes.plot(end, at, mark, color=colour, ms=6)
            axes.plot(start, at, "|", color=colour, ms=9, mew=2)
    for name, colour, mark, _ in looks[: 2 if any(map(_paper, tables)) else 1]:
        axes.plot([], [], mark, color=colour, ms=6, label=name)
    axes.set_xlabel("supply to requirement (RSR)")
    axes.axvline(1, color=canvas.INK, linestyle=":", linewidth=1)
    canvas.down(axes, [table.label for table in tables])
    return (
        "From the start (bar) to the end (mark): the mean supply to the daily need of the living. "
        "From 1 on (dotted) there is water for all who are left. GPT-4: as published."
    )


# -- figures of one setting ------------------------------------------------------------------------


def moves(run: Run, table: Table) -> list[Sketch]:
    """Return survival, prices and the residents' bids, health and money of one setting."""
    days: list[tuple[str, str, str]] = [
        ("Bids", "bids", "mean bid, $"),
        ("Health", "hp", "health points, mean"),
        ("Money", "balance", "balance, $, mean"),
    ]
    sketches = [
        Sketch("Survival", partial(_survival, table=table)),
        Sketch("Number of survivors", partial(_numbers, table=table)),
        Sketch("Lowest successful bid", partial(_prices, table=table)),
    ]
    lines = [Sketch(t, partial(_lines, table=table, key=key, what=what)) for t, key, what in days]
    lines.append(Sketch("Supply to requirement by day", partial(_scarcity, table=table)))
    return [*(sketches if table.done else []), *lines]


def _survival(axes: Axes, table: Table) -> str:
    found, paper, names = _found(table), _paper(table), _residents(table, 13)
    at = np.arange(len(names))
    axes.bar(at, found.survival, color=BLUE, width=0.55, label="this run")
    sentence = f"Share of the {found.games} games that each resident survived"
    if paper:
        rates = list(paper.survival.values())
        axes.plot(at, rates, "D", color=ORANGE, mew=1.8, ms=8, label="GPT-4, published")
        sentence += f"; published: setting {paper.setting}, {len(paper.ratio_end)} games"
    axes.set_xticks(at, [name.replace(" (", "\n(") for name in names])
    axes.set_ylim(0, 1.04)
    axes.set_ylabel("share of games")
    return f"{sentence}."


def _numbers(axes: Axes, table: Table) -> str:
    players, paper = _game(table).players, _paper(table)
    own = [sum(alympics.living(e.records)) for e in table.done]
    _shares(axes, own, players, -0.2, BLUE, "this run", "")
    sentence = f"How many residents lived to the end; {np.mean(own):.2g} on average"
    if paper:
        games = [sum(alive) for alive in zip(*paper.survived.values(), strict=True)]
        _shares(axes, games, players, 0.2, ORANGE, "GPT-4, published", "//")
        sentence += f", {paper.survivors:.2g} published"
    canvas.over_rounds(axes, "survivors of a game")
    axes.set_ylabel("share of games")
    return f"{sentence}."


def _shares(
    axes: Axes,
    counts: Sequence[int],
    players: int,
    shift: float,
    colour: str,
    label: str,
    hatch: str,
) -> None:
    number = Counter(counts)
    shares = [number[k] / len(counts) for k in range(players + 1)]
    face = "none" if hatch else colour
    at = np.arange(players + 1) + shift
    axes.bar(at, shares, 0.38, fc=face, ec=colour, hatch=hatch, label=label)


def _prices(axes: Axes, table: Table) -> str:
    found, paper = _found(table), _paper(table)
    boxes = [(day, box) for day, box in enumerate(found.prices, start=1) if box is not None]
    stats = [
        {"med": b.median, "q1": b.q1, "q3": b.q3, "whislo": b.low, "whishi": b.high}
        | {"fliers": b.outliers}
        for _, b in boxes
    ]
    dots = {"marker": ".", "markeredgecolor": BLUE, "markersize": 4}
    look = {"color": BLUE, "linewidth": 1}
    axes.bxp(
        stats,
        positions=[day for day, _ in boxes],
        widths=0.6,
        boxprops=look,
        whiskerprops=look,
        capprops=look,
        flierprops=dots,
        medianprops={"color": BLUE, "linewidth": 2.4},
        manage_ticks=False,
    )
    if found.mean_median is not None:
        line(axes, found.mean_median, f"mean of medians {found.mean_median:.1f}", BLUE, ":")
    if paper:
        line(axes, paper.mean_median, f"GPT-4, published {paper.mean_median:.1f}")
    canvas.over_rounds(axes, "day")
    axes.set_xlim(0.3, len(found.prices) + 0.7)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("$")
    return (
        "The lowest bid that was served on each day: box plots over the games with somebody "
        "served, and the mean of the daily medians."
    )


def _lines(axes: Axes, table: Table, key: str, what: str) -> str:
    curves, names = _curves(table), _residents(table)
    looks = canvas.looks(len(names))
    for seat, (name, (colour, mark)) in enumerate(zip(names, looks, strict=True)):
        means = _means(curves, key, seat)
        days = np.arange(1, len(means) + 1)
        axes.plot(days, means, color=colour, marker=mark, ms=4.5, label=name)
        axes.plot(days, _stack(curves, key, seat).T, color=colour, linewidth=0.5, alpha=0.25)
    canvas.over_rounds(axes, "day")
    axes.set_ylabel(what)
    axes.set_ylim(bottom=0)
    many = f"mean over the {len(curves)} games" if len(curves) > 1 else "of the game"
    left = ", bids above the balance included" if key == "bids" else ""
    return f"Each resident, {many} in which it is alive on that day{left}; thin: single games."


def _scarcity(axes: Axes, table: Table) -> str:
    ratios = _filled([found.ratio for found in _curves(table)])
    days = np.arange(1, ratios.shape[1] + 1)
    axes.plot(days, ratios.T, color=BLUE, linewidth=0.6, alpha=0.35)
    axes.plot(days, canvas.moments(ratios)[0], "o-", color=BLUE, ms=4.5, label="mean")
    line(axes, 1, "water for all who live", canvas.INK, ":")
    canvas.over_rounds(axes, "day")
    axes.set_ylabel("RSR after the day")
    axes.set_ylim(bottom=0)
    return "Mean supply to the daily need of the living; thin: single games, until nobody lives."


def _curves(table: Table) -> list[Curves]:
    return [alympics.curves(_game(table), _days(table, e)) for e in table.played]


def _stack(curves: Sequence[Curves], key: str, seat: int) -> Array:
    """Return a resident's values, float64 ``(games, days)``, NaN where there is none."""
    return _filled([getattr(found, key)[seat] for found in curves])


def _filled(rows: Sequence[Sequence[float | None]]) -> Array:
    days = zip_longest(*rows)
    return np.array([[np.nan if x is None else x for x in day] for day in days], np.float64).T


def _means(curves: Sequence[Curves], key: str, seat: int) -> Array:
    return canvas.moments(_stack(curves, key, seat))[0]


def owns(table: Table) -> bool:
    """Return whether a table is of the water allocation challenge."""
    return isinstance(table.rules, WaterAllocation)


PAPER = Paper(
    "Alympics",
    "The water allocation challenge of arXiv 2311.03220, beside its ten games of GPT-4 players at "
    "each of six settings.",
    owns,
    as_it_is,
    grids,
    figures,
    moves,
)
