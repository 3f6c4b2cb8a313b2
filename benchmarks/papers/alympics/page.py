"""Alympics: who survives, supply to requirement, and the days of a setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from llm_games.benchmarks.papers.alympics import metrics as alympics
from llm_games.benchmarks.papers.alympics.metrics import Curves, Days, Indicators
from llm_games.benchmarks.papers.alympics.ratings import rate
from llm_games.benchmarks.report import canvas
from llm_games.benchmarks.report.canvas import BLUE, ORANGE, line
from llm_games.benchmarks.runs.grid import OWN, PUBLISHED, Grid, Value, columns
from llm_games.benchmarks.runs.paper import Paper, Section, Sketch
from llm_games.benchmarks.runs.reader import Episode, Game, Run
from llm_games.games.water_allocation.rules import WaterAllocation
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# -- one game's episodes, with the residents in their own order -----------------------------------


def _order(game: Game, episode: Episode) -> list[int]:
    """Return where the game's residents sat in an episode."""
    sat = [resident.name for resident in episode.rules.cast]
    return [sat.index(resident.name) for resident in game.rules.cast]


def _days(game: Game, episode: Episode) -> Days:
    """Return an episode's days with the residents in the game's order."""
    order = _order(game, episode)
    if order == sorted(order):
        return episode.records
    return [
        {k: [v[seat] for seat in order] if isinstance(v, list) else v for k, v in day.items()}
        for day in episode.records
    ]


def _players(game: Game) -> list[str]:
    """Return who played each resident; several, if they took turns."""
    casts = [[e.seats[seat] for seat in _order(game, e)] for e in game.played]
    return [" / ".join(dict.fromkeys(names)) for names in zip(*casts, strict=True)]


def _cast(game: Game) -> list[tuple[str, str]]:
    """Return the residents' names and who played them."""
    return list(zip((r.name for r in game.rules.cast), _players(game), strict=True))


def _found(game: Game) -> Indicators:
    return alympics.indicators(game.rules, [_days(game, e) for e in game.done])


def _residents(game: Game, length: int = 24) -> list[str]:
    """Return the residents' names, and their players' where these differ and stay the same."""
    players = set(_players(game))
    if len(players) == 1 or any(" / " in names for names in players):
        return [resident for resident, _ in _cast(game)]
    return [f"{resident} ({name[:length]})" for resident, name in _cast(game)]


def _paper(game: Game) -> alympics.Published | None:
    """Return what the paper prints for the same rules."""
    setting = alympics.setting_of(game.rules)
    return None if setting is None else alympics.published("exact")[setting - 1]


# -- result tables ---------------------------------------------------------------------------------

TABLE2 = (
    "SR: share of the games that a resident survives. N survivor: mean number of survivors. "
    "RSR: mean supply to the daily need of the living, at the start and at the end, there "
    "without games that nobody survives (counted last). Price: lowest bid that was served, "
    "median over the games of each day, mean over the days, in dollars. Published: ten games "
    "of GPT-4 players with the same rules, with misprints put right where the table's own "
    "entries prove them (arXiv 2311.03220, Table 2 and Figure 4)."
)
LIVES = (
    "Means over the finished games: days completed alive, days with water, dollars spent on it, "
    "money at the end, and bids above the balance (void or clipped, as the rules of the game say)."
)
ENDS = {"N survivor": ".1f", "RSR start": ".3f", "RSR end": ".3f", "mean daily median price": ".1f"}
LIFE = columns(
    "game, resident, player",
    "games, survived, days survived, water days, spent, final balance, over budget",
)
DAY = columns("game, day, resident, player, games, bid, health, balance")
PRICE = columns("game, day, games, low, q1, median, q3, high")


def sections(run: Run) -> list[Section]:
    """Return Table 2 with one's own rows, figures beside it, and files of prices and days."""
    played = [game for game in run.games if game.done]
    if not played:
        return [Section(PAPER.title, ABOUT)]
    games = sorted(played, key=_setting)
    names = list(dict.fromkeys(resident.name for game in played for resident in game.rules.cast))
    table2 = columns("game, source", ", ".join(["games", *(f"SR {name}" for name in names)]))
    groups = groupby(games, _paper)
    rows = [row for paper, group in groups for row in _rows([*group], paper, names)]
    size = canvas.tall(len(games))
    return [
        Section(
            PAPER.title,
            ABOUT,
            [
                Grid(
                    table2 | ENDS | {"no survivor": "d"},
                    rows,
                    "Survival and scarcity",
                    "alympics_table2",
                    TABLE2,
                ),
                Grid(LIFE, [*_lives(played)], "Residents", "alympics_residents", LIVES),
                Grid(DAY, [*_each_day(played)], name="alympics_days"),
                Grid(PRICE, [*_each_price(played)], name="alympics_prices"),
            ],
            [
                Sketch("Survivors", partial(_survivors_of_all, games=games), size),
                Sketch("Supply to requirement", partial(_ratios, games=games), size),
            ],
        )
    ]


def _setting(game: Game) -> float:
    """Return the paper's setting, so that games of one stand side by side, others last."""
    return alympics.setting_of(game.rules) or np.inf


def _rows(
    games: Sequence[Game], paper: alympics.Published | None, names: Sequence[str]
) -> Iterator[list[Value]]:
    """Yield the rows of one setting, the published one last."""
    for game in games:
        found = _found(game)
        own = dict(zip((r.name for r in game.rules.cast), found.survival, strict=True))
        ends = (found.survivors, found.ratio_start, found.ratio_end, found.mean_median)
        yield [game.label, OWN, found.games, *map(own.get, names), *ends, found.left_out]
    if paper:
        ends = (paper.survivors, paper.mean_ratio_start, paper.mean_ratio_end, paper.mean_median)
        rates, games_played = map(paper.survival.get, names), len(paper.ratio_end)
        yield [f"setting {paper.setting}", PUBLISHED, games_played, *rates, *ends, 0]


def _lives(games: Sequence[Game]) -> Iterator[list[Value]]:
    """Yield what each resident came to: shares and means over its games."""
    for game in games:
        found = _found(game)
        for seat, (resident, player) in enumerate(_cast(game)):
            ends = [alympics.ending(game.rules, _days(game, e), seat) for e in game.done]
            means = np.mean(ends, axis=0).tolist()
            yield [game.label, resident, player, len(ends), found.survival[seat], *means]


def _each_day(games: Sequence[Game]) -> Iterator[list[Value]]:
    """Yield each resident on each day: means over the games in which it was alive."""
    for game in games:
        curves = _curves(game)
        for seat, (resident, player) in enumerate(_cast(game)):
            columns = [_means(curves, key, seat) for key in ("bids", "hp", "balance")]
            alive = np.isfinite(_stack(curves, "hp", seat)).sum(axis=0).tolist()
            for day, values in enumerate(zip(*columns, strict=True)):
                known = (None if np.isnan(value) else float(value) for value in values)
                yield [game.label, day + 1, resident, player, alive[day], *known]


def _each_price(games: Sequence[Game]) -> Iterator[list[Value]]:
    """Yield the distribution over the games of each day's lowest successful bid, dollars."""
    for game in games:
        for day, box in enumerate(_found(game).prices, start=1):
            if box is not None:
                yield [game.label, day, box.size, *box[:5]]


# -- figures over all settings ---------------------------------------------------------------------


def _survivors_of_all(axes: Axes, games: Sequence[Game]) -> str:
    pairs = [(i, _paper(game)) for i, game in enumerate(games)]
    own = [_found(game).survivors for game in games]
    axes.plot(own, range(len(own)), "o", color=BLUE, ms=7, label="this run")
    printed = [(paper.survivors, i) for i, paper in pairs if paper]
    if printed:
        axes.plot(*zip(*printed, strict=True), "D", color=ORANGE, mfc="none", ms=8, label="GPT-4")
    axes.set_xlabel("survivors of a game, mean")
    axes.set_xlim(-0.15, max(game.rules.players for game in games) + 0.15)
    canvas.down(axes, [game.label for game in games])
    return "Mean number of residents who are alive after the last day; GPT-4: as published."


def _ratios(axes: Axes, games: Sequence[Game]) -> str:
    looks = ((OWN, BLUE, "o", -0.12), ("GPT-4", ORANGE, "D", 0.12))
    for row, game in enumerate(games):
        found, paper = _found(game), _paper(game)
        pairs = [(found.ratio_start, found.ratio_end)]
        pairs += [(paper.mean_ratio_start, paper.mean_ratio_end)] if paper else []
        for (start, end), (_, colour, mark, shift) in zip(pairs, looks, strict=False):
            at = row + shift
            if end is not None:
                axes.plot([start, end], [at, at], color=colour, linewidth=1.6)
                axes.plot(end, at, mark, color=colour, ms=6)
            axes.plot(start, at, "|", color=colour, ms=9, mew=2)
    for name, colour, mark, _ in looks[: 2 if any(map(_paper, games)) else 1]:
        axes.plot([], [], mark, color=colour, ms=6, label=name)
    axes.set_xlabel("supply to requirement (RSR)")
    axes.axvline(1, color=canvas.INK, linestyle=":", linewidth=1)
    canvas.down(axes, [game.label for game in games])
    return (
        "From the start (bar) to the end (mark): the mean supply to the daily need of the living. "
        "From 1 on (dotted) there is water for all who are left. GPT-4: as published."
    )


# -- figures of one setting ------------------------------------------------------------------------


def moves(run: Run, game: Game) -> list[Sketch]:
    """Return survival, prices and the residents' bids, health and money of one setting."""
    days: list[tuple[str, str, str]] = [
        ("Bids", "bids", "mean bid, $"),
        ("Health", "hp", "health points, mean"),
        ("Money", "balance", "balance, $, mean"),
    ]
    sketches = [
        Sketch("Survival", partial(_survival, game=game)),
        Sketch("Number of survivors", partial(_numbers, game=game)),
        Sketch("Lowest successful bid", partial(_prices, game=game)),
    ]
    lines = [Sketch(t, partial(_lines, game=game, key=key, what=what)) for t, key, what in days]
    lines.append(Sketch("Supply to requirement by day", partial(_scarcity, game=game)))
    return [*(sketches if game.done else []), *lines]


def _survival(axes: Axes, game: Game) -> str:
    found, paper, names = _found(game), _paper(game), _residents(game, 13)
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


def _numbers(axes: Axes, game: Game) -> str:
    players, paper = game.rules.players, _paper(game)
    own = [sum(alympics.living(e.records)) for e in game.done]
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


def _prices(axes: Axes, game: Game) -> str:
    found, paper = _found(game), _paper(game)
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


def _lines(axes: Axes, game: Game, key: str, what: str) -> str:
    curves, names = _curves(game), _residents(game)
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


def _scarcity(axes: Axes, game: Game) -> str:
    ratios = canvas.padded([found.ratio for found in _curves(game)])
    days = np.arange(1, ratios.shape[1] + 1)
    axes.plot(days, ratios.T, color=BLUE, linewidth=0.6, alpha=0.35)
    axes.plot(days, canvas.moments(ratios)[0], "o-", color=BLUE, ms=4.5, label="mean")
    line(axes, 1, "water for all who live", canvas.INK, ":")
    canvas.over_rounds(axes, "day")
    axes.set_ylabel("RSR after the day")
    axes.set_ylim(bottom=0)
    return "Mean supply to the daily need of the living; thin: single games, until nobody lives."


def _curves(game: Game) -> list[Curves]:
    return [alympics.curves(game.rules, _days(game, e)) for e in game.played]


def _stack(curves: Sequence[Curves], key: str, seat: int) -> Array:
    """Return a resident's values, float64 ``(games, days)``, NaN where there is none."""
    return canvas.padded([getattr(found, key)[seat] for found in curves])


def _means(curves: Sequence[Curves], key: str, seat: int) -> Array:
    return canvas.moments(_stack(curves, key, seat))[0]


ABOUT = (
    "The water allocation challenge of arXiv 2311.03220, beside its ten games of GPT-4 players at "
    "each of six settings."
)
PAPER = Paper(
    "Alympics",
    lambda game: isinstance(game.rules, WaterAllocation),
    sections,
    moves,
    rate=rate,
)
