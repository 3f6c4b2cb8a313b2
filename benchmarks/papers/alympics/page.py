"""Alympics: who survives, supply to requirement, and the days of a setting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from llm_games.benchmarks.papers.alympics import metrics as alympics
from llm_games.benchmarks.papers.alympics.metrics import Ended, Ending, Indicators
from llm_games.benchmarks.papers.alympics.ratings import rate
from llm_games.benchmarks.report import canvas
from llm_games.benchmarks.report.canvas import BLUE, ORANGE, line
from llm_games.benchmarks.runs.grid import OWN, PUBLISHED, Grid, Value, columns
from llm_games.benchmarks.runs.paper import Measure, Paper, Section, Sketch
from llm_games.benchmarks.runs.reader import Game, Run
from llm_games.benchmarks.runs.stats import SHARE, Cell, Ends, mean_of
from llm_games.benchmarks.stats import intervals
from llm_games.games.water_allocation.rules import WaterAllocation
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Printed(NamedTuple):
    """What the table's single games give: survival by name, number of survivors, RSR at the end."""

    survival: Mapping[str, Cell]
    survivors: Cell
    ratio_end: Cell | None


@dataclass(frozen=True)
class Setting:
    """One of a run's games, with its residents in their own order, wherever they sat.

    `cast` has their names and who played them, several if they took turns. `curves` are those of
    all episodes that are drawn, each float64 ``(residents, days)`` by name, NaN where there is
    none; `done` and `endings` what came of those that count, and of each resident there.
    """

    label: str
    rules: WaterAllocation
    cast: Sequence[tuple[str, str]]
    curves: Sequence[Mapping[str, Array]]
    done: Sequence[Ended]
    endings: Sequence[Sequence[Ending]]

    @cached_property
    def found(self) -> Indicators:
        """The indicators of its finished games."""
        return alympics.indicators(self.rules, self.done)

    @cached_property
    def paper(self) -> alympics.Published | None:
        """What the paper prints for the same rules."""
        setting = alympics.setting_of(self.rules)
        return None if setting is None else alympics.published("exact")[setting - 1]

    @cached_property
    def survival(self) -> list[Cell]:
        """The share of its games that each resident survives; the games are independent."""
        return shares([one.alive for one in self.done])

    @cached_property
    def survivors(self) -> Cell:
        """The mean number of survivors, from one number for each game."""
        return numbers([one.alive for one in self.done])

    @cached_property
    def ratio_end(self) -> Cell | None:
        """The mean RSR after the games that somebody survives."""
        ratios = (alympics.supply_ratio(self.rules, one.alive) for one in self.done)
        ends = alympics.ratios(self.rules)
        return mean_of([float(ratio) for ratio in ratios if ratio is not None], ends)

    @cached_property
    def printed(self) -> Printed | None:
        """The means of the paper's games at the same rules, with intervals of our own."""
        if self.paper is None:
            return None
        alive, ratio_end = [*zip(*self.paper.survived.values(), strict=True)], self.paper.ratio_end
        rates = dict(zip(self.paper.survived, shares(alive), strict=True))
        return Printed(rates, numbers(alive), mean_of(ratio_end, alympics.ratios(self.rules)))

    def stack(self, key: str, seat: int) -> Array:
        """Return a resident's curves, float64 ``(games, days)``, NaN where there is none."""
        return canvas.padded([curves[key][seat] for curves in self.curves])

    @property
    def richest(self) -> float:
        """The most money that anybody can ever have, dollars."""
        return float(self.rules.bounds()[1] / self.rules.unit)

    def ends(self, key: str) -> Ends:
        """Return between which ends a curve lies."""
        return {
            "bids": (0.0, self.richest),
            "hp": (-math.inf, float(self.rules.hp_max)),
            "balance": (0.0, self.richest),
            "ratio": alympics.ratios(self.rules),
        }[key]

    def residents(self, length: int = 24) -> list[str]:
        """Return their names, and their players' where these differ and stay the same."""
        players = {player for _, player in self.cast}
        if len(players) == 1 or any(" / " in names for names in players):
            return [name for name, _ in self.cast]
        return [f"{name} ({player[:length]})" for name, player in self.cast]


def shares(alive: Sequence[Sequence[int]]) -> list[Cell]:
    """Return the share of some games, each who is alive at its end, that each resident survives."""
    n, wins = len(alive), np.sum(alive, axis=0).tolist()
    return [Cell(won / n, None, n, intervals.share(won, n), SHARE) for won in wins]


def numbers(alive: Sequence[Sequence[int]]) -> Cell:
    """Return the mean number of survivors of one or more such games."""
    found = mean_of([float(sum(one)) for one in alive], (0, len(alive[0])), intervals.SEATED)
    assert found is not None
    return found


def read(run: Run) -> dict[str, Setting]:
    """Return the games that have been played, by label."""
    return {game.label: _setting(game) for game in run.games if game.played}


def _setting(game: Game) -> Setting:
    names = [resident.name for resident in game.rules.cast]
    casts = [dict[str, None]() for _ in names]
    curves, done, endings = [], [], []
    for episode in game.played:
        sat = [resident.name for resident in episode.rules.cast]
        seats = [sat.index(name) for name in names]
        for cast, seat in zip(casts, seats, strict=True):
            cast[episode.seats[seat]] = None
        days = [
            {k: [v[seat] for seat in seats] if isinstance(v, list) else v for k, v in day.items()}
            for day in episode.records
        ]
        found = alympics.curves(game.rules, days)
        tables = found._asdict() | {"ratio": [found.ratio]}
        curves.append({key: canvas.padded(table) for key, table in tables.items()})
        if episode.row.status == "done":
            done.append(alympics.ended(game.rules, days))
            endings.append([alympics.ending(game.rules, days, seat) for seat in range(len(names))])
    players = map(" / ".join, casts)
    who = [*zip(names, players, strict=True)]
    return Setting(game.label, game.rules, who, curves, done, endings)


# -- result tables ---------------------------------------------------------------------------------

TABLE2 = (
    "SR: share of the games that a resident survives. N survivor: mean number of survivors. "
    "RSR: mean supply to the daily need of the living, at the start and at the end, there "
    "without games that nobody survives (counted last). Price: lowest bid that was served, "
    "median over the games of each day, mean over the days, in dollars. Published: ten games "
    "of GPT-4 players with the same rules, with misprints put right where the table's own "
    "entries prove them (arXiv 2311.03220, Table 2 and Figure 4). Games are the units: seats of "
    "one game live and die together, so that the number of survivors has an interval from "
    f"{intervals.SEATED} games on; the price, a mean of medians over the games, has none. The "
    "intervals of published rows are ours, of the games that the table lists."
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
CURVES = ("bids", "hp", "balance")
PRICE = columns("game, day, games, low, q1, median, q3, high")


def sections(settings: Mapping[str, Setting]) -> list[Section]:
    """Return Table 2 with one's own rows, figures beside it, and files of prices and days."""
    played = [one for one in settings.values() if one.done]
    if not played:
        return [Section(PAPER.title, ABOUT)]
    # Games of a setting of the paper stand side by side, others last.
    ordered = sorted(played, key=lambda one: one.paper.setting if one.paper else np.inf)
    names = list(dict.fromkeys(name for one in played for name, _ in one.cast))
    table2 = columns("game, source", ", ".join(["games", *(f"SR {name}" for name in names)]))
    table2 |= ENDS | {"no survivor": "d"}
    rows = [*_rows(ordered, names)]
    grids = [
        Grid(table2, rows, "Survival and scarcity", "alympics_table2", TABLE2),
        Grid(LIFE, [*_lives(played)], "Residents", "alympics_residents", LIVES),
        Grid(DAY, [*_each_day(played)], name="alympics_days"),
        Grid(PRICE, [*_each_price(played)], name="alympics_prices"),
    ]
    size = canvas.tall(len(played))
    sketches = [
        Sketch("Survivors", partial(_survivors_of_all, settings=ordered), size),
        Sketch("Supply to requirement", partial(_ratios, settings=ordered), size),
    ]
    return [Section(PAPER.title, ABOUT, grids, sketches)]


def _rows(settings: Sequence[Setting], names: Sequence[str]) -> Iterator[list[Value]]:
    """Yield the rows of each setting of the paper, the published one last."""
    for paper, group in groupby(settings, lambda one: one.paper):
        for one in group:
            found, own = one.found, dict(zip(dict(one.cast), one.survival, strict=True))
            ends = (one.survivors, found.ratio_start, one.ratio_end, found.mean_median)
            yield [one.label, OWN, found.games, *map(own.get, names), *ends, found.left_out]
        if paper and one.printed:
            rates = map(one.printed.survival.get, names)
            last = (one.printed.survivors, paper.mean_ratio_start, one.printed.ratio_end)
            row = [f"setting {paper.setting}", PUBLISHED, len(paper.ratio_end), *rates, *last]
            yield [*row, paper.mean_median, 0]


def _lives(settings: Sequence[Setting]) -> Iterator[list[Value]]:
    """Yield what each resident came to: shares and means over its games."""
    for one in settings:
        days = (0.0, float(one.rules.days))
        money = 0.0, one.richest
        ends = (days, days, money, money, days)  # of the fields of `Ending`
        for seat, (resident, player) in enumerate(one.cast):
            lives = zip(*(endings[seat] for endings in one.endings), strict=True)
            means = [mean_of(values, end) for values, end in zip(lives, ends, strict=True)]
            yield [one.label, resident, player, len(one.endings), one.survival[seat], *means]


def _each_day(settings: Sequence[Setting]) -> Iterator[list[Value]]:
    """Yield each resident on each day: means over the games in which it was alive."""
    for one in settings:
        for seat, (resident, player) in enumerate(one.cast):
            bids, hp, balance = (one.stack(key, seat) for key in CURVES)
            means = map(canvas.points, (bids, hp, balance), map(one.ends, CURVES))
            alive = np.isfinite(hp).sum(axis=0).tolist()
            for day, (games, *values) in enumerate(zip(alive, *means, strict=True), start=1):
                yield [one.label, day, resident, player, games, *values]


def _each_price(settings: Sequence[Setting]) -> Iterator[list[Value]]:
    """Yield the distribution over the games of each day's lowest successful bid, dollars."""
    for one in settings:
        for day, box in enumerate(one.found.prices, start=1):
            if box is not None:
                yield [one.label, day, box.size, *box[:5]]


# -- figures over all settings ---------------------------------------------------------------------


def _survivors_of_all(axes: Axes, settings: Sequence[Setting]) -> str:
    own = [one.survivors for one in settings]
    axes.plot([c.mean for c in own], range(len(own)), "o", color=BLUE, ms=7, label="this run")
    canvas.across(axes, range(len(own)), own, BLUE)
    printed = [
        (row + 0.15, one.printed.survivors) for row, one in enumerate(settings) if one.printed
    ]
    if printed:
        at, cells = zip(*printed, strict=True)
        look: dict[str, Any] = {"color": ORANGE, "mfc": "none", "ms": 8, "label": "GPT-4"}
        axes.plot([cell.mean for cell in cells], at, "D", **look)
        canvas.across(axes, at, cells, ORANGE)
    axes.set_xlabel("survivors of a game, mean")
    axes.set_xlim(-0.15, max(one.rules.players for one in settings) + 0.15)
    canvas.down(axes, [one.label for one in settings])
    resting = canvas.resting(own, ", with its 95 % interval")
    return (
        "Mean number of residents who are alive after the last day"
        f"{resting}; GPT-4: as published, with intervals of our own."
    )


def _ratios(axes: Axes, settings: Sequence[Setting]) -> str:
    looks = ((OWN, BLUE, "o", -0.12), ("GPT-4", ORANGE, "D", 0.12))
    for row, one in enumerate(settings):
        found, paper = one.found, one.paper
        pairs = [(found.ratio_start, found.ratio_end)]
        pairs += [(paper.mean_ratio_start, paper.mean_ratio_end)] if paper else []
        for (start, end), (_, colour, mark, shift) in zip(pairs, looks, strict=False):
            at = row + shift
            cell = one.ratio_end if shift < 0 else one.printed and one.printed.ratio_end
            canvas.across(axes, [at + shift / 2], [cell], colour)
            if end is not None:
                axes.plot([start, end], [at, at], color=colour, linewidth=1.6)
                axes.plot(end, at, mark, color=colour, ms=6)
            axes.plot(start, at, "|", color=colour, ms=9, mew=2)
    for name, colour, mark, _ in looks[: 2 if any(one.paper for one in settings) else 1]:
        axes.plot([], [], mark, color=colour, ms=6, label=name)
    axes.set_xlabel("supply to requirement (RSR)")
    axes.axvline(1, color=canvas.INK, linestyle=":", linewidth=1)
    canvas.down(axes, [one.label for one in settings])
    ends = [one.ratio_end for one in settings]
    resting = canvas.resting(ends, "; beside it, thin, the 95 % interval of the end")
    return (
        "From the start (bar) to the end (mark): the mean supply to the daily need of the living"
        f"{resting}. From 1 on (dotted) there is water "
        "for all who are left. GPT-4: as published."
    )


# -- figures of one setting ------------------------------------------------------------------------


def moves(settings: Mapping[str, Setting], game: Game) -> list[Sketch]:
    """Return survival, prices and the residents' bids, health and money of one setting."""
    one = settings[game.label]
    ends = [
        Sketch("Survival", partial(_survival, one=one)),
        Sketch("Number of survivors", partial(_numbers, one=one)),
        Sketch("Lowest successful bid", partial(_prices, one=one)),
    ]
    return [
        *(ends if one.done else []),
        Sketch("Bids", partial(_lines, one=one, key="bids", what="mean bid, $")),
        Sketch("Health", partial(_lines, one=one, key="hp", what="health points, mean")),
        Sketch("Money", partial(_lines, one=one, key="balance", what="balance, $, mean")),
        Sketch("Supply to requirement by day", partial(_scarcity, one=one)),
    ]


def _survival(axes: Axes, one: Setting) -> str:
    paper, names = one.paper, one.residents(13)
    at = np.arange(len(names))
    axes.bar(at, one.found.survival, color=BLUE, width=0.55, label="this run")
    canvas.upright(axes, at, one.survival)
    many = one.found.games
    games = f"Share of the {many} games that" if many > 1 else "Whether"
    sentence = f"{games} each resident survived" + " the game" * (many == 1)
    sentence += canvas.resting(one.survival, ", with its 95 % interval")
    if paper:
        rates = list(paper.survival.values())
        axes.plot(at, rates, "D", color=ORANGE, mew=1.8, ms=8, label="GPT-4, published")
        sentence += f"; published: setting {paper.setting}, {len(paper.ratio_end)} games"
    axes.set_xticks(at, [name.replace(" (", "\n(") for name in names])
    axes.set(ylim=(0, 1.04), ylabel="share of games")
    return f"{sentence}."


def _numbers(axes: Axes, one: Setting) -> str:
    counts = [sum(ended.alive) for ended in one.done]
    bars = [(counts, -0.2, BLUE, BLUE, "", "this run")]
    sentence = f"How many residents lived to the end; {np.mean(counts):.2g} on average"
    if one.paper:
        printed = [sum(alive) for alive in zip(*one.paper.survived.values(), strict=True)]
        bars.append((printed, 0.2, "none", ORANGE, "//", "GPT-4, published"))
        sentence += f", {one.paper.survivors:.2g} published"
    for numbers, shift, face, edge, hatch, label in bars:
        shares = np.bincount(numbers, minlength=one.rules.players + 1) / len(numbers)
        at = np.arange(len(shares)) + shift
        axes.bar(at, shares, 0.38, fc=face, ec=edge, hatch=hatch, label=label)
    canvas.over_rounds(axes, "survivors of a game")
    axes.set_ylabel("share of games")
    return f"{sentence}."


def _prices(axes: Axes, one: Setting) -> str:
    found, paper = one.found, one.paper
    boxes = [(day, box) for day, box in enumerate(found.prices, start=1) if box is not None]
    names = ("whislo", "q1", "med", "q3", "whishi", "fliers")
    look = {"color": BLUE, "linewidth": 1}
    axes.bxp(
        [dict(zip(names, box[:6], strict=True)) for _, box in boxes],
        positions=[day for day, _ in boxes],
        widths=0.6,
        boxprops=look,
        whiskerprops=look,
        capprops=look,
        flierprops={"marker": ".", "markeredgecolor": BLUE, "markersize": 4},
        medianprops={"color": BLUE, "linewidth": 2.4},
        manage_ticks=False,
    )
    if found.mean_median is not None:
        line(axes, found.mean_median, f"mean of medians {found.mean_median:.1f}", BLUE, ":")
    if paper:
        line(axes, paper.mean_median, f"GPT-4, published {paper.mean_median:.1f}")
    canvas.over_rounds(axes, "day")
    axes.set(xlim=(0.3, len(found.prices) + 0.7), ylim=(0, None), ylabel="$")
    return (
        "The lowest bid that was served on each day: box plots over the games with somebody "
        "served, and the mean of the daily medians."
    )


def _lines(axes: Axes, one: Setting, key: str, what: str) -> str:
    names = one.residents()
    for seat, look in enumerate(canvas.looks(len(names))):
        table = one.stack(key, seat)
        shown = canvas.some(len(table), table.size // len(table) * len(names))
        days = np.arange(1, table.shape[1] + 1)
        canvas.mean_line(axes, days, table, one.ends(key), look, label=names[seat])
        axes.plot(days, table[shown].T, color=look.colour, linewidth=0.5, alpha=0.25)
    canvas.over_rounds(axes, "day")
    axes.set(ylabel=what, ylim=(0, None))
    ends = one.ends(key)
    many = f"mean over the {len(one.curves)} games" if len(one.curves) > 1 else "of the game"
    left = ", bids above the balance as they counted" if key == "bids" else ""
    single = canvas.single(len(one.curves), len(names) * one.rules.days, "game")
    band = _band(one, ends)
    return f"Each resident, {many} in which it is alive on that day{left}; thin: {single}{band}."


def _band(one: Setting, ends: Ends) -> str:
    """Explain the bands, whose games are those in which somebody lives on that day."""
    many = len(one.curves)
    said = canvas.banded(many, ends, "game")
    return f"; {said}, fewer where some are over" if said else ""


def _scarcity(axes: Axes, one: Setting) -> str:
    ratios = one.stack("ratio", 0)
    days = np.arange(1, ratios.shape[1] + 1)
    axes.plot(days, ratios[canvas.some(*ratios.shape)].T, color=BLUE, linewidth=0.6, alpha=0.35)
    ends = one.ends("ratio")
    canvas.mean_line(axes, days, ratios, ends, canvas.Look(BLUE, "o"), label="mean")
    line(axes, 1, "water for all who live", canvas.INK, ":")
    canvas.over_rounds(axes, "day")
    axes.set(ylabel="RSR after the day", ylim=(0, None))
    single = canvas.single(len(ratios), len(days), "game")
    return (
        f"Mean supply to the daily need of the living; thin: {single}, until nobody lives"
        f"{_band(one, ends)}."
    )


ABOUT = (
    "The water allocation challenge of arXiv 2311.03220, beside its ten games of GPT-4 players at "
    "each of six settings."
)
PAPER = Paper(
    "Alympics",
    lambda game: isinstance(game.rules, WaterAllocation),
    sections,
    moves,
    read,
    rate=rate,
    measure=Measure(
        "survivors",
        "residents who are alive after the last day",
        "higher",
        alympics.survivors,
        ends=alympics.ends,
        least=intervals.SEATED,
    ),
)
