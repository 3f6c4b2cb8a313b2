"""Economics Arena: payoffs, rule breaks, distance from equilibrium, and paths over runs."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_games.benchmarks.judge.intervals import T
from llm_games.benchmarks.judge.means import MeanCell, brief
from llm_games.benchmarks.judge.paper import Measure, Paper, Section, Sketch
from llm_games.benchmarks.judge.result_table import OWN, PUBLISHED, ResultTable, Value, columns
from llm_games.benchmarks.papers.econ_arena import metrics as econ_arena
from llm_games.benchmarks.papers.econ_arena import pooled
from llm_games.benchmarks.papers.econ_arena.metrics import SessionStanding, results, standings
from llm_games.benchmarks.record.recorded_games import RecordedGame, Run
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.plot_style import BLUE, INK, ORANGE, make_looks
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {"beauty_contest": "beauty contest", "second_price_auction": "auction"}
"""The games as the published tables call them, in words."""
FIRST = (20, 60)  # the published Table 1 has means over so many first sessions, and over all 100


def room(run: Run, game: RecordedGame) -> str:
    """Return the kind of line-up: ``self``, ``rational``, ``senior`` or ``melee``."""
    names = set(game.seats)
    others = {name for name in names if run.players[name].kind != "rational"}
    if len(names) == 1:
        return "self"
    if len(others) == 1:
        return "rational"
    return "senior" if len(game.seats) == len(names) == 5 else "melee"


def history(game: RecordedGame) -> str:
    """Return the number of past runs that players see: ``0`` to ``all``."""
    return str(game.rules.reveal_last) if econ_arena.shows_history(game.rules) else "0"


def _title(game: RecordedGame) -> str:
    name = econ_arena.title(game.rules)
    return TITLES.get(name, name.replace("_", " "))


PAYOFFS = (
    "Payoff: share of the prize, or gain in the auction; mean over the runs of a session, then "
    "over sessions. Ratio: payoff to equilibrium payoff, in the auction final assets to those in "
    "equilibrium; 1 is as in equilibrium. Published: Table 1, five models in one room, over the "
    "first 20, 60 and all 100 sessions, so that only a senior room is comparable; in equilibrium "
    "each has a fifth of the prize. The unit of its auctions is not stated and fits no definition: "
    "do not compare them. Sessions are the units of the intervals."
)
BROKEN = (
    "Share of the runs in which a player broke a rule, without and with past runs shown; at the "
    "right, for this run, over all games: no number could be read (format), or an illegal one "
    "(range). Intervals are of the sessions' own shares; breaks by kind, over all games, have "
    "none. Published: Table 2, nine models in one room, 150 runs of each game without and 180 "
    "with history."
)
DISTANCES = (
    "Deviation d: in the contest the distance from the equilibrium number as a share of the range "
    "(the published ratio is not defined at 0), in the auction |final assets / those in "
    "equilibrium - 1|; mean over all legal actions, the others are left out. Misbid: |bid - value| "
    "/ value. Convergence run: the first from which on the path stays within 0.05 of the goal; "
    "rate: share of the distance lost in a run, on geometric average. Intervals "
    "are of the sessions' own means; what is read off the mean path has none."
)
SEVERAL = "bands: 95 % intervals of the means at each point (Student t over each line's sessions)"
WHO = "game, room, history, player"
PAYOFF = columns(
    f"{WHO}, source",
    "sessions, first 20, first 60, payoff, standard error, ratio, asset ratio, runs won",
    ".3f",
)
DISTANCE = columns(
    WHO,
    "deviation, left out, misbid, payoff less equilibrium, convergence run, convergence rate",
    ".3f",
)
SHOWN = [f"{game}, {shown}" for game, shown in product(TITLES.values(), ("no history", "history"))]
BREAK = columns("player, source", "runs") | dict.fromkeys([*SHOWN, "format", "range"], ".1f")

Played = Mapping[tuple[str, str, str], RecordedGame]  # games by label, room and history


def sections(run: Run) -> list[Section]:
    """Return Tables 1 and 2 with the run's rows, distances, paths, and figures."""
    games = [game for game in run.games if game.done]
    if not games:
        return [Section(PAPER.title, ABOUT)]
    played = {(game.label, room(run, game), history(game)): game for game in games}
    breaks, gaps = [*_breaks(games)], [*_distances(played)]
    path = columns(f"{WHO}, run of session, action, goal")
    pools = pooled.pools([(_title(game), room(run, game), game) for game in games])
    grids = [
        ResultTable(PAYOFF, [*_payoffs(played)], "Payoffs", "econ_arena_table1", PAYOFFS),
        *([pooled.grid(pools)] if pools else []),
        ResultTable(BREAK, breaks, "Rule breaks, % of runs", "econ_arena_table2", BROKEN),
        ResultTable(DISTANCE, gaps, "Distance from equilibrium", "econ_arena_distance", DISTANCES),
        ResultTable(path, [*_places(played)], name="econ_arena_paths"),
    ]
    sketches = [*pooled.sketches(pools), *_figures(run, games, breaks)]
    return [Section(PAPER.title, ABOUT, grids, sketches)]


def _payoffs(played: Played) -> Iterator[list[Value]]:
    for labels, game in played.items():
        sessions = [game.done[:count] if len(game.done) >= count else [] for count in FIRST]
        first = [{s.player: brief(s.payoff) for s in standings(part)} for part in sessions]
        for standing in results(game).standings():
            yield [
                *(*labels, standing.player, OWN, len(game.done)),
                *(means.get(standing.player) for means in first),
                *(brief(standing.payoff), standing.payoff.error, brief(standing.ratio)),
                *(brief(standing.asset_ratio), standing.shown["won"]),
            ]
    rows = {(r.game, r.model, r.sessions): r.payoff for r in econ_arena.published_payoffs()}
    for name, model in dict.fromkeys((name, model) for name, model, _ in rows):
        means = [rows[name, model, count] for count in (*FIRST, 100)]
        yield [TITLES[name], "senior", "0", model, PUBLISHED, 100, *means, *[None] * 4]


def _breaks(games: Sequence[RecordedGame]) -> Iterator[list[Value]]:
    rows = econ_arena.break_table(session for game in games for session in game.done)
    for name in dict.fromkeys(row.player for row in rows):
        player_rows = [row for row in rows if row.player == name]
        runs = sum(row.runs for row in player_rows)
        causes = ("bad_format", "bad_range")
        kinds = [sum(getattr(row, cause) for row in player_rows) for cause in causes]
        yield [name, OWN, runs, *_shares(player_rows), *(100 * count / runs for count in kinds)]
    printed = econ_arena.published_rule_breaks()
    for model in dict.fromkeys(row.model for row in printed):
        cells = [row for row in printed if row.model == model]
        yield [model, PUBLISHED, sum(row.runs for row in cells), *_shares(cells), None, None]


def _shares(rows: Sequence[Any]) -> list[MeanCell | float | None]:
    shares = {(row.game, row.history): getattr(row, "shown", row.percent) for row in rows}
    return [shares.get(key) for key in product(TITLES, (False, True))]


def _distances(played: Played) -> Iterator[list[Value]]:
    """Yield each player's distance from equilibrium, and the convergence of its path."""
    for labels, game in played.items():
        goal = econ_arena.goal(game.rules)
        for standing in results(game).standings():
            path = results(game).path(standing.player)
            yield [
                *(*labels, standing.player, standing.shown["deviation"], standing.left_out),
                *(standing.shown["misbid"], brief(standing.advantage)),
                econ_arena.convergence_run(path, goal) if len(path) > 1 else None,
                econ_arena.convergence_rate(path, goal),
            ]


def _places(played: Played) -> Iterator[list[Value]]:
    """Yield each player's mean normalised action in each run of its sessions."""
    for labels, game in played.items():
        for name in game.players:
            track = canvas.points(results(game).track(name), econ_arena.ends(game.rules))
            for k, position in enumerate(track, start=1):
                yield [*labels, name, k, position, econ_arena.goal(game.rules)]


def _figures(run: Run, games: Sequence[RecordedGame], breaks: Sequence[Any]) -> Iterator[Sketch]:
    """Yield payoffs, deviations and rule breaks, and paths by how much history is shown."""
    for title in dict.fromkeys(map(_title, games)):
        group = [game for game in games if _title(game) == title]
        size = canvas.tall(len(group), len(_players(group)))
        yield Sketch(f"Payoffs: {title}", partial(_payoff, games=group), size)
        yield Sketch(f"Deviation: {title}", partial(_deviation, games=group), size)
    yield Sketch("Rule breaks", partial(_rule_breaks, rows=breaks), canvas.tall(len(breaks)))
    for name, group in _levels(games).items():
        yield Sketch(f"History: {name}", partial(_by_history, run=run, games=group))


def _players(games: Sequence[RecordedGame]) -> list[str]:
    return list(dict.fromkeys(name for game in games for name in game.seats))


def _dots(
    axes: Axes,
    games: Sequence[RecordedGame],
    value: Callable[[SessionStanding], MeanCell | None],
    less: float = 0,
    lead: str = ", with its 95 % interval over sessions",
) -> tuple[dict[str, float], str]:
    """Draw a value of each player in each game; return offsets in its row, and the sample."""
    values_by_game = [{s.player: value(s) for s in results(game).standings()} for game in games]
    series = {name: [row.get(name) for row in values_by_game] for name in _players(games)}
    shifts = canvas.dots(axes, [game.label for game in games], series, less)
    canvas.zero(axes)
    cells = [cell for cells in series.values() for cell in cells]
    return shifts, canvas.resting(cells, lead)


def _payoff(axes: Axes, games: Sequence[RecordedGame]) -> str:
    if not econ_arena.is_contest(games[0].rules):
        _, resting = _dots(axes, games, lambda standing: standing.asset_ratio, 1)
        axes.set_xlabel("gain as a share of the assets")
        return f"Mean gain of a run as a share of the assets{resting}."
    shifts, resting = _dots(axes, games, lambda standing: standing.payoff)
    for row, game in enumerate(games):
        for standing in results(game).standings():
            if standing.advantage:
                stable = standing.payoff.mean - standing.advantage.mean
                axes.plot(stable, row + shifts[standing.player], "|", color=INK, ms=9)
    axes.set_xlabel("share of the prize")
    return f"Mean share of the prize in a run{resting}; black ticks: in equilibrium."


def _deviation(axes: Axes, games: Sequence[RecordedGame]) -> str:
    lead = ", with the 95 % interval of the sessions' means"
    _, resting = _dots(axes, games, lambda standing: standing.shown["deviation"], lead=lead)
    axes.set_xlabel("deviation d")
    return f"Mean distance from equilibrium over all legal actions{resting}; 0: as in equilibrium."


def _rule_breaks(axes: Axes, rows: Sequence[Sequence[Any]]) -> str:
    colours, below = (BLUE, BLUE, ORANGE, ORANGE), (-0.24, -0.08, 0.08, 0.24)
    looks = zip((3, 4, 5, 6), colours, "osos", below, strict=True)
    series = dict(zip(SHOWN, looks, strict=True))
    canvas.beside_published(axes, rows, series, filled=lambda column: column % 2 == 0)
    axes.set(xlim=(-3, 103), xlabel="% of the runs")
    run_cells = (cell for row in rows for cell in row if isinstance(cell, MeanCell))
    resting = canvas.resting(run_cells, ", with its 95 % interval over sessions")
    return (
        f"Share of the runs in which a player broke a rule{resting}; below the line as published."
    )


def _levels(games: Sequence[RecordedGame]) -> dict[str, list[RecordedGame]]:
    """Return games of one kind and one form of reveal, by several lengths of history."""
    sessions = [game for game in games if game.rules.rounds > 1]
    blank = [game for game in sessions if history(game) == "0"]
    levels: dict[str, list[RecordedGame]] = {}
    for game in sessions:
        if history(game) != "0":
            reveal = game.rules.reveal if isinstance(game.rules.reveal, str) else "numbers"
            reveal = reveal.replace("bids_and_private", "bids and values")
            alike = [other for other in blank if _title(other) == _title(game)]
            levels.setdefault(f"{_title(game)}, {reveal}", alike).append(game)
    return {name: group for name, group in levels.items() if len(set(map(history, group))) > 1}


def _by_history(axes: Axes, run: Run, games: Sequence[RecordedGame]) -> str:
    curves = []
    for game in games:
        tried = [name for name in game.players if run.players[name].kind != "rational"]
        tracks = [results(game).track(name) for name in tried or game.players]
        shown = {"0": "none", "all": "all"}.get(history(game), f"last {history(game)}")
        curves.append((shown, np.ma.masked_invalid(tracks).mean(axis=0).filled(np.nan)))
    _curves(axes, games[0], curves)
    sizes = sorted({len(table) for _, table in curves})
    ends = econ_arena.ends(games[0].rules)
    banded = canvas.banded(sizes[-1], ends, "session") if len(sizes) == 1 else SEVERAL
    return (
        "Mean normalised action in each run of a session, by how many past runs are shown; "
        f"{'; '.join(filter(None, ('without the rational players', banded)))}."
    )


def moves(run: Run, game: RecordedGame) -> list[Sketch]:
    """Return the players' paths over the runs of a session, or their single actions."""
    if not game.done:
        return []
    if game.rules.rounds > 1:
        return [Sketch("Paths", partial(_paths, game=game))]
    return [Sketch("Actions", partial(_actions, game=game), canvas.tall(len(game.players)))]


def _curves(axes: Axes, game: RecordedGame, curves: Sequence[tuple[str, Array]]) -> None:
    """Draw means over sessions, ``(sessions, runs)``, and the equilibrium."""
    ends = econ_arena.ends(game.rules)
    for (name, table), look in zip(curves, make_looks(len(curves)), strict=True):
        run_numbers = np.arange(1, table.shape[1] + 1)
        canvas.mean_line(axes, run_numbers, table, ends, look, label=name[:24])
    canvas.line(axes, econ_arena.goal(game.rules), "equilibrium", INK, ":")
    canvas.over_rounds(axes, "run of a session")
    axes.set(ylim=(-0.03, None), ylabel=_action(game))


def _action(game: RecordedGame) -> str:
    return "number within its range" if econ_arena.is_contest(game.rules) else "bid / value"


def _paths(axes: Axes, game: RecordedGame) -> str:
    _curves(axes, game, [(name, results(game).track(name)) for name in game.players])
    count = len(game.done)
    if count == 1:
        return "Normalised action in each run of the session, by player."
    banded = canvas.banded(count, econ_arena.ends(game.rules), "session")
    sentence = f"Mean normalised action in each run, over {count} sessions, by player"
    return f"{'; '.join(filter(None, (sentence, banded)))}."


def _actions(axes: Axes, game: RecordedGame) -> str:
    places: dict[str, array[float]] = {name: array("d") for name in game.players}
    for session in game.done:
        for player, turn in zip(session.seats, econ_arena.player_runs(session)[0], strict=True):
            if turn.position is not None:
                places[player].append(float(turn.position))
    ends = econ_arena.ends(game.rules)
    for row, positions in enumerate(places.values()):
        shown = np.array(positions)[canvas.shown_runs(len(positions))]
        shift = np.linspace(-0.22, 0.22, len(shown)) if len(shown) > 1 else np.zeros(len(shown))
        axes.plot(shown, row + shift, "o", color=BLUE, alpha=0.4, ms=4, mew=0)
        if positions:
            axes.plot(np.mean(positions), row, "|", color=BLUE, ms=18, mew=2.4)
        means = canvas.points(results(game).track(game.players[row]), ends)
        canvas.across(axes, [row], means, BLUE)
    goal = econ_arena.goal(game.rules)
    axes.axvline(goal, color=ORANGE, linestyle="--", linewidth=1.3, label="equilibrium")
    canvas.down(axes, game.players)
    axes.set_xlabel(_action(game))
    largest = max(map(len, places.values()))
    which = "Each legal action" if largest <= canvas.MOST else f"{canvas.MOST} of the legal actions"
    which += " of each session" if largest <= canvas.MOST else ""
    count = len(game.done)
    method = T[sum(map(math.isfinite, ends))]
    line = f" with its 95 % interval ({method}, n = {count} sessions)" * (count > 1)
    return f"{which}, normalised, and the player's mean (bar){line}."


ABOUT = (
    "Beauty contests with a shared prize and second-price auctions with assets (EconArena), beside "
    "the paper's Tables 1 and 2. Its figures are printed without numbers."
)
PAPER = Paper(
    "Economics Arena",
    lambda game: econ_arena.owns(game.rules),
    sections,
    moves,
    actions={"budget_auction": "mean bid"},
    measure=Measure(
        "deviation",
        "distance from equilibrium, mean over all legal actions",
        "lower",
        econ_arena.deviation,
        ".3f",
        econ_arena.ends,
    ),
)
