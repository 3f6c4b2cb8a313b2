"""Economics Arena: payoffs, rule breaks, distance from equilibrium, and paths over runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_games.benchmarks.papers.econ_arena import metrics as econ_arena
from llm_games.benchmarks.papers.econ_arena.metrics import Standing
from llm_games.benchmarks.report import canvas
from llm_games.benchmarks.report.canvas import BLUE, ORANGE
from llm_games.benchmarks.runs.grid import OWN, PUBLISHED, Grid, Value, columns
from llm_games.benchmarks.runs.paper import Paper, Section, Sketch
from llm_games.benchmarks.runs.reader import Game, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {"beauty_contest": "beauty contest", "second_price_auction": "auction"}
"""The games as the published tables call them, in words."""
FIRST = (20, 60)
"""The published Table 1 has means over so many first sessions, and over all 100."""
PRINTED = 9
"""Models in the published Table 2."""


def room(run: Run, game: Game) -> str:
    """Return who sits together: ``self``, ``rational``, ``senior`` or ``melee``."""
    names = set(game.seats)
    others = {name for name in names if run.players[name].kind != "rational"}
    if len(names) == 1:
        return "self"
    if len(others) == 1:
        return "rational"
    return "senior" if len(game.seats) == len(names) == 5 else "melee"


def history(game: Game) -> str:
    """Return how many past runs players are shown: ``0`` to ``all``."""
    return str(game.rules.reveal_last) if econ_arena.shows_history(game.rules) else "0"


def _title(game: Game) -> str:
    name = econ_arena.title(game.rules)
    return TITLES.get(name, name.replace("_", " "))


def _standings(game: Game) -> list[Standing]:
    return econ_arena.standings(game.done)


# -- result tables ---------------------------------------------------------------------------------

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


def sections(run: Run) -> list[Section]:
    """Return Tables 1 and 2 with one's own rows, distances from equilibrium, paths, and figures."""
    games = [game for game in run.games if game.done]
    if not games:
        return [Section(PAPER.title, ABOUT)]
    who = {game.label: (game.label, room(run, game), history(game)) for game in games}
    payoffs = [*_payoffs(games, who), *_published_payoffs()]
    breaks = [*_breaks(games), *_published_breaks()]
    distances, places = [*_distances(games, who)], [*_places(games, who)]
    grids = [
        Grid(PAYOFF, payoffs, "Payoffs", "econ_arena_table1", PAYOFFS),
        Grid(BREAK, breaks, "Rule breaks, % of runs", "econ_arena_table2", BROKEN),
        Grid(DISTANCE, distances, "Distance from equilibrium", "econ_arena_distance", DISTANCES),
        Grid(columns(f"{WHO}, run of session, action, goal"), places, name="econ_arena_paths"),
    ]
    return [Section(PAPER.title, ABOUT, grids, [*_figures(run, games, breaks)])]


Who = dict[str, tuple[str, str, str]]


def _payoffs(games: Sequence[Game], who: Who) -> Iterator[list[Value]]:
    for game in games:
        sessions = game.done
        first = [
            {s.player: s.payoff.mean for s in econ_arena.standings(sessions[:count])}
            if len(sessions) >= count
            else {}
            for count in FIRST
        ]
        for found in _standings(game):
            yield [
                *who[game.label],
                found.player,
                OWN,
                len(sessions),
                *(means.get(found.player) for means in first),
                found.payoff.mean,
                found.payoff.error,
                found.ratio and found.ratio.mean,
                found.asset_ratio and found.asset_ratio.mean,
                found.winning_rate,
            ]


def _published_payoffs() -> Iterator[list[Value]]:
    rows = {(r.game, r.model, r.sessions): r.payoff for r in econ_arena.published_payoffs()}
    for game, model in dict.fromkeys((game, model) for game, model, _ in rows):
        means = [rows[game, model, count] for count in (*FIRST, 100)]
        who = (TITLES.get(game, game), "senior", "0", model)
        yield [*who, PUBLISHED, 100, *means, *[None] * 4]


def _breaks(games: Sequence[Game]) -> Iterator[list[Value]]:
    rows = econ_arena.break_table([session for game in games for session in game.done])
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


def _distances(games: Sequence[Game], who: Who) -> Iterator[list[Value]]:
    """Yield how far each player is from equilibrium, and how its path gets there."""
    for game in games:
        goal = econ_arena.goal(game.rules)
        for found in _standings(game):
            path = econ_arena.path(game.done, found.player)
            yield [
                *(*who[game.label], found.player, found.deviation, found.left_out, found.misbid),
                found.advantage and found.advantage.mean,
                econ_arena.convergence_run(path, goal) if len(path) > 1 else None,
                econ_arena.convergence_rate(path, goal),
            ]


def _places(games: Sequence[Game], who: Who) -> Iterator[list[Value]]:
    """Yield each player's mean normalised action in each run of its sessions."""
    for game in games:
        goal = econ_arena.goal(game.rules)
        for name in game.players:
            for k, place in enumerate(econ_arena.path(game.done, name), start=1):
                yield [*who[game.label], name, k, place, goal]


# -- figures over all games ------------------------------------------------------------------------


def _figures(run: Run, games: Sequence[Game], breaks: Sequence[Any]) -> Iterator[Sketch]:
    """Yield payoffs, deviations and rule breaks, and paths by how much history is shown."""
    for title in dict.fromkeys(map(_title, games)):
        own = [game for game in games if _title(game) == title]
        size = canvas.tall(len(own), len(_players(own)))
        yield Sketch(f"Payoffs: {title}", partial(_payoff, games=own), size)
        yield Sketch(f"Deviation: {title}", partial(_deviation, games=own), size)
    size = canvas.tall(len(_players(games)) + PRINTED)
    yield Sketch("Rule breaks", partial(_rule_breaks, rows=breaks), size)
    for name, own in _levels(games).items():
        yield Sketch(f"History: {name}", partial(_by_history, run=run, games=own))


def _players(games: Sequence[Game]) -> dict[str, tuple[str, str]]:
    """Return a colour and a marker for each player."""
    names = list(dict.fromkeys(name for game in games for name in game.seats))
    return dict(zip(names, canvas.looks(len(names)), strict=True))


def _series(
    games: Sequence[Game], value: Callable[[Standing], tuple[float, float] | None]
) -> dict[str, list[tuple[float, float] | None]]:
    """Return a value of each player in each game; None where it has none."""
    found = [{s.player: value(s) for s in _standings(game)} for game in games]
    return {name: [row.get(name) for row in found] for name in _players(games)}


def _payoff(axes: Axes, games: Sequence[Game]) -> str:
    def value(found: Standing) -> tuple[float, float] | None:
        cell, less = (found.asset_ratio, 1) if found.asset_ratio else (found.payoff, 0)
        return cell.mean - less, cell.error or 0.0

    shifts = canvas.dots(axes, [game.label for game in games], _series(games, value))
    canvas.zero(axes)
    if not econ_arena.is_contest(games[0].rules):
        axes.set_xlabel("gain as a share of the assets")
        return "Mean gain of a run as a share of the assets, ± 1 standard error over sessions."
    for row, game in enumerate(games):
        for found in _standings(game):
            if found.advantage:
                stable = found.payoff.mean - found.advantage.mean
                axes.plot(stable, row + shifts[found.player], "|", color=canvas.INK, ms=9)
    axes.set_xlabel("share of the prize")
    return (
        "Mean share of the prize in a run, ± 1 standard error over sessions; black ticks: in "
        "equilibrium."
    )


def _deviation(axes: Axes, games: Sequence[Game]) -> str:
    def value(found: Standing) -> tuple[float, float] | None:
        return None if found.deviation is None else (found.deviation, 0.0)

    canvas.dots(axes, [game.label for game in games], _series(games, value))
    canvas.zero(axes)
    axes.set_xlabel("deviation d")
    return "Mean distance from equilibrium over all legal actions; 0: as in equilibrium."


def _rule_breaks(axes: Axes, rows: Sequence[Sequence[Any]]) -> str:
    looks = zip((BLUE, BLUE, ORANGE, ORANGE), "osos", (-0.24, -0.08, 0.08, 0.24), strict=True)
    shares = {name: (3 + k, *look) for k, (name, look) in enumerate(zip(SHOWN, looks, strict=True))}
    canvas.beside_published(axes, rows, shares, filled=lambda column: column % 2 == 0)
    axes.set_xlim(-3, 103)
    axes.set_xlabel("% of the runs")
    return "Share of the runs in which a player broke a rule; below the line as published."


def _levels(games: Sequence[Game]) -> dict[str, list[Game]]:
    """Return games of one kind, with one kind of what is shown, at several lengths of history."""
    sessions = [game for game in games if game.rules.rounds > 1]
    found: dict[str, list[Game]] = {}
    for game in sessions:
        if history(game) != "0":
            found.setdefault(f"{_title(game)}, {_told(game.rules)}", []).append(game)
    blank = [game for game in sessions if history(game) == "0"]
    both = {
        name: [g for g in blank if _title(g) == _title(own[0])] + own for name, own in found.items()
    }
    return {name: own for name, own in both.items() if len(set(map(history, own))) > 1}


def _told(rules: Any) -> str:
    told = rules.reveal if isinstance(rules.reveal, str) else "numbers"
    return {"bids_and_private": "bids and values"}.get(told, told)


def _by_history(axes: Axes, run: Run, games: Sequence[Game]) -> str:
    for game, (colour, mark) in zip(games, canvas.looks(len(games)), strict=True):
        names = game.players
        tried = [name for name in names if run.players[name].kind != "rational"] or names
        paths = canvas.padded([econ_arena.path(game.done, name) for name in tried])
        shown = f"last {history(game)}".replace("last 0", "none").replace("last all", "all")
        _path(axes, np.nanmean(paths, axis=0), shown, colour, mark)
    _goal(axes, games[0])
    return (
        "Mean normalised action in each run of a session, by how many past runs are shown; "
        "without the rational players."
    )


# -- figures of one game ---------------------------------------------------------------------------


def moves(run: Run, game: Game) -> list[Sketch]:
    """Return the players' paths over the runs of a session, or their single actions."""
    if not game.done:
        return []
    if game.rules.rounds > 1:
        return [Sketch("Paths", partial(_paths, game=game))]
    return [Sketch("Actions", partial(_actions, game=game), canvas.tall(len(game.players)))]


def _path(axes: Axes, places: Any, label: str, colour: str, mark: str) -> None:
    at = np.arange(1, len(places) + 1)
    axes.plot(at, places, color=colour, marker=mark, ms=5.5, label=label)


def _goal(axes: Axes, game: Game) -> None:
    canvas.line(axes, econ_arena.goal(game.rules), "equilibrium", canvas.INK, ":")
    canvas.over_rounds(axes, "run of a session")
    axes.set_ylim(bottom=-0.03)
    axes.set_ylabel(_action(game))


def _action(game: Game) -> str:
    return "number within its range" if econ_arena.is_contest(game.rules) else "bid / value"


def _paths(axes: Axes, game: Game) -> str:
    for name, (colour, mark) in _players([game]).items():
        [places] = canvas.padded([econ_arena.path(game.done, name)])
        _path(axes, places, name[:24], colour, mark)
    _goal(axes, game)
    return f"Mean normalised action in each run, over {len(game.done)} sessions, by player."


def _actions(axes: Axes, game: Game) -> str:
    played = [
        (name, float(turn.place))
        for session in game.done
        for [run] in [econ_arena.player_runs(session)]
        for name, turn in zip(session.seats, run, strict=True)
        if turn.place is not None
    ]
    for row, name in enumerate(game.players):
        own = [place for who, place in played if who == name]
        shift = np.linspace(-0.22, 0.22, len(own)) if len(own) > 1 else np.zeros(len(own))
        axes.plot(own, row + shift, "o", color=BLUE, alpha=0.4, ms=4, mew=0)
        if own:
            axes.plot(np.mean(own), row, "|", color=BLUE, ms=18, mew=2.4)
    goal = econ_arena.goal(game.rules)
    axes.axvline(goal, color=ORANGE, linestyle="--", linewidth=1.3, label="equilibrium")
    canvas.down(axes, game.players)
    axes.set_xlabel(_action(game))
    return "Each legal action of each session, normalised, and the player's mean (bar)."


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
)
