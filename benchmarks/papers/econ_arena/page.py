"""Economics Arena: payoffs, rule breaks, distance from equilibrium, and paths over runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from llm_games.benchmarks.papers.econ_arena import metrics as econ_arena
from llm_games.benchmarks.papers.econ_arena.metrics import Session, Standing
from llm_games.benchmarks.report import canvas
from llm_games.benchmarks.report.canvas import BLUE, ORANGE
from llm_games.benchmarks.report.data import Run, Table
from llm_games.benchmarks.report.figures import Sketch
from llm_games.benchmarks.report.paper import OWN, PUBLISHED, Grid, Paper, Value, as_it_is, heads

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {"beauty_contest": "beauty contest", "second_price_auction": "auction"}
"""The games as the published tables call them, in words."""

FIRST = (20, 60)
"""The published Table 1 has means over so many first sessions, and over all 100."""

PRINTED = 9
"""Models in the published Table 2."""


def owns(table: Table) -> bool:
    """Return whether a table is of the arena: a shared prize, or an auction with assets."""
    game: Any = table.rules
    contest = game.name == "beauty_contest" and game.prize_rule == "split"
    return contest or (game.name == "sealed_bid_auction" and game.assets is not None)


def room(run: Run, table: Table) -> str:
    """Return who sits together: ``self``, ``rational``, ``senior`` or ``melee``."""
    names = set(table.seats)
    others = {name for name in names if run.players[name].kind != "rational"}
    if len(names) == 1:
        return "self"
    if len(others) == 1:
        return "rational"
    return "senior" if len(table.seats) == len(names) == 5 else "melee"


def history(table: Table) -> str:
    """Return how many past runs players are shown: ``0`` to ``all``."""
    game: Any = table.rules
    return str(game.reveal_last) if econ_arena.shows_history(game) else "0"


def _title(table: Table) -> str:
    name = econ_arena.title(table.rules)
    return TITLES.get(name, name.replace("_", " "))


def _sessions(table: Table) -> list[Session]:
    return [Session(e.rules, e.seats, e.records) for e in table.done]


def _standings(table: Table) -> list[Standing]:
    return econ_arena.standings(_sessions(table))


def _finished(run: Run) -> list[Table]:
    return [table for table in run.tables if table.done]


# -- result tables ---------------------------------------------------------------------------------


class Payoffs(NamedTuple):
    """A row of Table 1: mean payoffs over the first sessions and over all of them."""

    game: str
    room: str
    history: str
    player: str
    source: str
    sessions: int
    first_20: float | None
    first_60: float | None
    payoff: float
    standard_error: float | None = None
    ratio: float | None = None
    asset_ratio: float | None = None
    runs_won: float | None = None


class Distance(NamedTuple):
    """How far one player is from equilibrium in one game, and how its path gets there."""

    game: str
    room: str
    history: str
    player: str
    deviation: float | None
    left_out: int
    misbid: float | None
    payoff_less_equilibrium: float | None
    convergence_run: int | None
    convergence_rate: float | None


class Place(NamedTuple):
    """A player's mean normalised action in one run of its sessions."""

    game: str
    room: str
    history: str
    player: str
    run_of_session: int
    action: float | None
    goal: int


def grids(run: Run) -> list[Grid]:
    """Return Tables 1 and 2 with one's own rows, distances from equilibrium, and paths."""
    if not _finished(run):
        return []
    payoffs = [*_payoffs(run), *_published_payoffs()]
    breaks = [*_breaks(run), *_published_breaks()]
    digits = dict.fromkeys(heads(Payoffs), 3)
    near = dict.fromkeys(heads(Distance), 3)
    percent = dict.fromkeys(BREAKS, 1)
    return [
        Grid("Payoffs", "econ_arena_table1", heads(Payoffs), payoffs, PAYOFFS, digits),
        Grid("Rule breaks, % of runs", "econ_arena_table2", BREAKS, breaks, BROKEN, percent),
        Grid(
            "Distance from equilibrium",
            "econ_arena_distance",
            heads(Distance),
            [*_distances(run)],
            DISTANCES,
            near,
        ),
        Grid("", "econ_arena_paths", heads(Place), [*_places(run)]),
    ]


PAYOFFS = (
    "Payoff: share of the prize, or gain in the auction; mean over the runs of a session, then "
    "over sessions. Ratio: payoff to equilibrium payoff, in the auction final assets to those in "
    "equilibrium; 1 is as in equilibrium. Published: Table 1, five models in one room, over the "
    "first 20, 60 and all 100 sessions, so that only a senior room is comparable; in equilibrium "
    "each has a fifth of the prize. The unit of its auctions is not stated and fits no definition: "
    "do not compare them."
)
BROKEN = (
    "Share of the runs in which a player broke a rule, without and with past runs shown; at the "
    "right, for this run, over all games: no number could be read (format), or an illegal one "
    "(range). Published: Table 2, nine models in one room, 150 runs of each game without and 180 "
    "with history."
)
DISTANCES = (
    "Deviation d: in the contest the distance from the equilibrium number as a share of the range "
    "(the published ratio is not defined at 0), in the auction |final assets / those in "
    "equilibrium - 1|; mean over all legal actions, the others are left out. Misbid: |bid - value| "
    "/ value. Convergence run: the first from which on the path stays within 0.05 of the goal; "
    "rate: share of the distance lost in a run, on geometric average."
)


def _who(run: Run, table: Table) -> tuple[str, str, str]:
    return table.label, room(run, table), history(table)


def _payoffs(run: Run) -> Iterator[Payoffs]:
    for table in _finished(run):
        sessions = _sessions(table)
        first = [
            {s.player: s.payoff.mean for s in econ_arena.standings(sessions[:count])}
            if len(sessions) >= count
            else {}
            for count in FIRST
        ]
        for found in econ_arena.standings(sessions):
            yield Payoffs(
                *_who(run, table),
                found.player,
                OWN,
                len(sessions),
                first[0].get(found.player),
                first[1].get(found.player),
                found.payoff.mean,
                econ_arena.standard_error(found.payoff),
                found.ratio and found.ratio.mean,
                found.asset_ratio and found.asset_ratio.mean,
                found.winning_rate,
            )


def _published_payoffs() -> Iterator[Payoffs]:
    rows = {(r.game, r.model, r.sessions): r.payoff for r in econ_arena.published_payoffs()}
    for game, model in dict.fromkeys((game, model) for game, model, _ in rows):
        means = [rows[game, model, count] for count in (*FIRST, 100)]
        yield Payoffs(TITLES.get(game, game), "senior", "0", model, PUBLISHED, 100, *means)


BREAKS = (
    "player",
    "source",
    "runs",
    *(f"{game}, {shown}" for game, shown in product(TITLES.values(), ("no history", "history"))),
    "format",
    "range",
)


def _breaks(run: Run) -> Iterator[list[Value]]:
    rows = econ_arena.break_table([s for table in _finished(run) for s in _sessions(table)])
    for name in dict.fromkeys(row.player for row in rows):
        own = [row for row in rows if row.player == name]
        runs = sum(row.runs for row in own)
        shares = {(row.game, row.history): row.percent for row in own}
        kinds = [sum(row.bad_format for row in own), sum(row.bad_range for row in own)]
        cells = [shares.get(key) for key in product(TITLES, (False, True))]
        yield [name, OWN, runs, *cells, *(100 * count / runs for count in kinds)]


def _published_breaks() -> Iterator[list[Value]]:
    rows = econ_arena.published_rule_breaks()
    for model in dict.fromkeys(row.model for row in rows):
        own = {(row.game, row.history): row for row in rows if row.model == model}
        cells = [own[key].percent for key in product(TITLES, (False, True))]
        yield [model, PUBLISHED, sum(row.runs for row in own.values()), *cells, None, None]


def _distances(run: Run) -> Iterator[Distance]:
    for table in _finished(run):
        goal = econ_arena.goal(table.rules)
        for found in _standings(table):
            path = econ_arena.path(_sessions(table), found.player)
            several = len(path) > 1
            yield Distance(
                *(*_who(run, table), found.player, found.deviation, found.left_out, found.misbid),
                found.advantage and found.advantage.mean,
                econ_arena.convergence_run(path, goal) if several else None,
                econ_arena.convergence_rate(path, goal),
            )


def _places(run: Run) -> Iterator[Place]:
    for table in _finished(run):
        goal = econ_arena.goal(table.rules)
        for name in dict.fromkeys(table.seats):
            for k, place in enumerate(econ_arena.path(_sessions(table), name), start=1):
                yield Place(*_who(run, table), name, k, place, goal)


# -- figures over all games ------------------------------------------------------------------------


def figures(run: Run) -> list[Sketch]:
    """Return payoffs, deviations and rule breaks, and paths by how much history is shown."""
    tables = _finished(run)
    if not tables:
        return []
    found = []
    for title in dict.fromkeys(map(_title, tables)):
        own = [table for table in tables if _title(table) == title]
        size = canvas.tall(len(own), len(_players(own)))
        found += [
            Sketch(f"Payoffs: {title}", partial(_payoff, tables=own), size),
            Sketch(f"Deviation: {title}", partial(_deviation, tables=own), size),
        ]
    size = canvas.tall(len(_players(tables)) + PRINTED)
    found.append(Sketch("Rule breaks", partial(_rule_breaks, run=run), size))
    return found + [
        Sketch(f"History: {name}", partial(_by_history, run=run, tables=own))
        for name, own in _levels(tables).items()
    ]


def _players(tables: Sequence[Table]) -> dict[str, tuple[str, str]]:
    """Return a colour and a marker for each player."""
    names = list(dict.fromkeys(name for table in tables for name in table.seats))
    return dict(zip(names, canvas.looks(len(names)), strict=True))


def _series(
    tables: Sequence[Table], value: Callable[[Standing], tuple[float, float] | None]
) -> dict[str, list[tuple[float, float] | None]]:
    """Return a value of each player in each table; None where it has none."""
    found = [{s.player: value(s) for s in _standings(table)} for table in tables]
    return {name: [row.get(name) for row in found] for name in _players(tables)}


def _payoff(axes: Axes, tables: Sequence[Table]) -> str:
    def value(found: Standing) -> tuple[float, float] | None:
        cell, less = (found.asset_ratio, 1) if found.asset_ratio else (found.payoff, 0)
        return cell.mean - less, econ_arena.standard_error(cell) or 0.0

    names = [table.label for table in tables]
    shifts = canvas.dots(axes, names, _series(tables, value))
    axes.axvline(0, color=canvas.INK, linewidth=0.8, linestyle=":")
    if tables[0].rules.name == "sealed_bid_auction":
        axes.set_xlabel("gain as a share of the assets")
        return "Mean gain of a run as a share of the assets, ± 1 standard error over sessions."
    for row, table in enumerate(tables):
        for found in _standings(table):
            if found.advantage:
                stable = found.payoff.mean - found.advantage.mean
                axes.plot(stable, row + shifts[found.player], "|", color=canvas.INK, ms=9)
    axes.set_xlabel("share of the prize")
    return (
        "Mean share of the prize in a run, ± 1 standard error over sessions; black ticks: in "
        "equilibrium."
    )


def _deviation(axes: Axes, tables: Sequence[Table]) -> str:
    def value(found: Standing) -> tuple[float, float] | None:
        return None if found.deviation is None else (found.deviation, 0.0)

    canvas.dots(axes, [table.label for table in tables], _series(tables, value))
    axes.axvline(0, color=canvas.INK, linewidth=0.8, linestyle=":")
    axes.set_xlabel("deviation d")
    return "Mean distance from equilibrium over all legal actions; 0: as in equilibrium."


def _rule_breaks(axes: Axes, run: Run) -> str:
    rows: list[Any] = [*_breaks(run), *_published_breaks()]
    kinds = list(zip(BREAKS[3:7], (BLUE, BLUE, ORANGE, ORANGE), "osos", strict=True))
    for column, (name, colour, mark) in enumerate(kinds, start=3):
        shares = [np.nan if row[column] is None else row[column] for row in rows]
        face = "none" if column % 2 else colour
        at = np.arange(len(rows)) + 0.16 * (column - 4.5)
        axes.plot(shares, at, mark, color=colour, mfc=face, ms=6, label=name)
    canvas.down(axes, [f"{row[0]}{', published' * (row[1] == PUBLISHED)}" for row in rows])
    axes.axhline(sum(row[1] == OWN for row in rows) - 0.5, color=canvas.INK, linewidth=0.8)
    axes.set_xlim(-3, 103)
    axes.set_xlabel("% of the runs")
    return "Share of the runs in which a player broke a rule; below the line as published."


def _levels(tables: Sequence[Table]) -> dict[str, list[Table]]:
    """Return tables of one game, and one kind of what is shown, at several lengths of history."""
    sessions = [table for table in tables if table.rules.rounds > 1]  # type: ignore[attr-defined]
    found: dict[str, list[Table]] = {}
    for table in sessions:
        if history(table) != "0":
            found.setdefault(f"{_title(table)}, {_told(table)}", []).append(table)
    blank = [table for table in sessions if history(table) == "0"]
    both = {
        name: [t for t in blank if _title(t) == _title(own[0])] + own for name, own in found.items()
    }
    return {name: own for name, own in both.items() if len(set(map(history, own))) > 1}


def _told(table: Table) -> str:
    game: Any = table.rules
    told = game.reveal if isinstance(game.reveal, str) else "numbers"
    return {"bids_and_private": "bids and values"}.get(told, told)


def _by_history(axes: Axes, run: Run, tables: Sequence[Table]) -> str:
    for table, (colour, mark) in zip(tables, canvas.looks(len(tables)), strict=True):
        names = list(dict.fromkeys(table.seats))
        tried = [name for name in names if run.players[name].kind != "rational"] or names
        paths = [econ_arena.path(_sessions(table), name) for name in tried]
        shown = f"last {history(table)}".replace("last 0", "none").replace("last all", "all")
        _path(axes, np.nanmean(_numbers(paths), axis=0), shown, colour, mark)
    _goal(axes, tables[0])
    return (
        "Mean normalised action in each run of a session, by how many past runs are shown; "
        "without the rational players."
    )


# -- figures of one game ---------------------------------------------------------------------------


def moves(run: Run, table: Table) -> list[Sketch]:
    """Return the players' paths over the runs of a session, or their single actions."""
    if not table.done:
        return []
    if table.rules.rounds > 1:  # type: ignore[attr-defined]
        return [Sketch("Paths", partial(_paths, table=table))]
    rows = canvas.tall(len(set(table.seats)))
    return [Sketch("Actions", partial(_actions, table=table), rows)]


def _numbers(paths: Sequence[Sequence[float | None]]) -> Any:
    return np.array([[np.nan if x is None else x for x in path] for path in paths], np.float64)


def _path(axes: Axes, places: Any, label: str, colour: str, mark: str) -> None:
    at = np.arange(1, len(places) + 1)
    axes.plot(at, places, color=colour, marker=mark, ms=5.5, label=label)


def _goal(axes: Axes, table: Table) -> None:
    canvas.line(axes, econ_arena.goal(table.rules), "equilibrium", canvas.INK, ":")
    canvas.over_rounds(axes, "run of a session")
    axes.set_ylim(bottom=-0.03)
    axes.set_ylabel(_action(table))


def _action(table: Table) -> str:
    return "number within its range" if table.rules.name == "beauty_contest" else "bid / value"


def _paths(axes: Axes, table: Table) -> str:
    for name, (colour, mark) in _players([table]).items():
        places = _numbers([econ_arena.path(_sessions(table), name)])[0]
        _path(axes, places, name[:24], colour, mark)
    _goal(axes, table)
    return f"Mean normalised action in each run, over {len(table.done)} sessions, by player."


def _actions(axes: Axes, table: Table) -> str:
    played = [
        (name, float(turn.place))
        for session in _sessions(table)
        for [run] in [econ_arena.turns(session)]
        for name, turn in zip(session.players, run, strict=True)
        if turn.place is not None
    ]
    names = list(dict.fromkeys(table.seats))
    for row, name in enumerate(names):
        own = [place for who, place in played if who == name]
        shift = np.linspace(-0.22, 0.22, len(own)) if len(own) > 1 else np.zeros(len(own))
        axes.plot(own, row + shift, "o", color=BLUE, alpha=0.4, ms=4, mew=0)
        if own:
            axes.plot(np.mean(own), row, "|", color=BLUE, ms=18, mew=2.4)
    goal = econ_arena.goal(table.rules)
    axes.axvline(goal, color=ORANGE, linestyle="--", linewidth=1.3, label="equilibrium")
    canvas.down(axes, names)
    axes.set_xlabel(_action(table))
    return "Each legal action of each session, normalised, and the player's mean (bar)."


PAPER = Paper(
    "Economics Arena",
    "Beauty contests with a shared prize and second-price auctions with assets (EconArena), beside "
    "the paper's Tables 1 and 2. Its figures are printed without numbers.",
    owns,
    as_it_is,
    grids,
    figures,
    moves,
)
