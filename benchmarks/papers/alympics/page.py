"""Alympics: who survives, supply to requirement, and the days of a setting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.means import SHARE, Ends, MeanCell, mean_of
from llm_games.benchmarks.judge.paper import Measure, Paper, Section, Sketch
from llm_games.benchmarks.judge.result_table import OWN, PUBLISHED, ResultTable, Value, columns
from llm_games.benchmarks.papers.alympics import metrics as alympics
from llm_games.benchmarks.papers.alympics.human_ratings import rate
from llm_games.benchmarks.papers.alympics.metrics import Ended, Ending, Indicators
from llm_games.benchmarks.record.recorded_games import RecordedGame, Run
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.canvas import line
from llm_games.benchmarks.show.page.plot_style import BLUE, INK, ORANGE, Look, make_looks
from llm_games.games.water_allocation.rules import WaterAllocation
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PrintedGames(NamedTuple):
    """Means of the table's single games: survival by name, number of survivors, RSR at the end."""

    survival: Mapping[str, MeanCell]
    survivors: MeanCell
    ratio_end: MeanCell | None


@dataclass(frozen=True)
class WaterSetting:
    """One of a run's games, with its residents in their own order, wherever they sat.

    `cast` has their names and players. `curves` are those of all episodes, each float64
    ``(residents, days)`` by name, or NaN; `done` and `endings` are of the finished games.
    """

    label: str
    rules: WaterAllocation
    cast: Sequence[tuple[str, str]]
    curves: Sequence[Mapping[str, Array]]
    done: Sequence[Ended]
    endings: Sequence[Sequence[Ending]]

    @cached_property
    def indicators(self) -> Indicators:
        return alympics.indicators(self.rules, self.done)

    @cached_property
    def paper(self) -> alympics.PublishedWater | None:
        """The paper's results for the same rules, or None."""
        setting = alympics.setting_of(self.rules)
        return None if setting is None else alympics.published("exact")[setting - 1]

    @cached_property
    def survival(self) -> list[MeanCell]:
        """The share of its games that each resident survives; the games are independent."""
        return shares([outcome.alive for outcome in self.done])

    @cached_property
    def survivors(self) -> MeanCell:
        """The mean number of survivors, from one number for each game."""
        return numbers([outcome.alive for outcome in self.done])

    @cached_property
    def ratio_end(self) -> MeanCell | None:
        """The mean RSR after the games that somebody survives."""
        ratios = (alympics.supply_ratio(self.rules, outcome.alive) for outcome in self.done)
        ends = alympics.ratios(self.rules)
        return mean_of([float(ratio) for ratio in ratios if ratio is not None], ends)

    @cached_property
    def printed(self) -> PrintedGames | None:
        """The means of the paper's games at the same rules, with this package's intervals."""
        if self.paper is None:
            return None
        alive, ratio_end = [*zip(*self.paper.survived.values(), strict=True)], self.paper.ratio_end
        rates = dict(zip(self.paper.survived, shares(alive), strict=True))
        return PrintedGames(rates, numbers(alive), mean_of(ratio_end, alympics.ratios(self.rules)))

    def stack(self, key: str, seat: int) -> Array:
        """Return a resident's curves, float64 ``(games, days)``, NaN where there is none."""
        return canvas.padded([curves[key][seat] for curves in self.curves])

    @property
    def richest(self) -> float:
        """The most money that a resident can ever have, dollars."""
        return float(self.rules.bounds()[1] / self.rules.unit)

    def ends(self, key: str) -> Ends:
        """Return the ends between which a curve lies."""
        return {
            "bids": (0.0, self.richest),
            "hp": (-math.inf, float(self.rules.hp_max)),
            "balance": (0.0, self.richest),
            "ratio": alympics.ratios(self.rules),
        }[key]

    def residents(self, length: int = 24) -> list[str]:
        """Return their names, with their players' if these differ and stay the same."""
        players = {player for _, player in self.cast}
        if len(players) == 1 or any(" / " in names for names in players):
            return [name for name, _ in self.cast]
        return [f"{name} ({player[:length]})" for name, player in self.cast]


def shares(alive: Sequence[Sequence[int]]) -> list[MeanCell]:
    """Return the share of games that each resident survives."""
    n, wins = len(alive), np.sum(alive, axis=0).tolist()
    return [MeanCell(won / n, None, n, intervals.share(won, n), SHARE) for won in wins]


def numbers(alive: Sequence[Sequence[int]]) -> MeanCell:
    """Return the mean number of survivors, from who is alive at each game's end."""
    mean = mean_of([float(sum(outcome)) for outcome in alive], (0, len(alive[0])), intervals.SEATED)
    assert mean is not None
    return mean


def read(run: Run) -> dict[str, WaterSetting]:
    """Return the played games by label."""
    return {game.label: _setting(game) for game in run.games if game.played}


def _setting(game: RecordedGame) -> WaterSetting:
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
        episode_curves = alympics.curves(game.rules, days)
        tables = episode_curves._asdict() | {"ratio": [episode_curves.ratio]}
        curves.append({key: canvas.padded(table) for key, table in tables.items()})
        if episode.row.status == "done":
            done.append(alympics.ended(game.rules, days))
            endings.append([alympics.ending(game.rules, days, seat) for seat in range(len(names))])
    players = map(" / ".join, casts)
    residents = [*zip(names, players, strict=True)]
    return WaterSetting(game.label, game.rules, residents, curves, done, endings)


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


def sections(settings: Mapping[str, WaterSetting]) -> list[Section]:
    """Return Table 2 with the run's rows, its figures, and files of prices and days."""
    played = [setting for setting in settings.values() if setting.done]
    if not played:
        return [Section(PAPER.title, ABOUT)]
    # Games of a setting of the paper stand side by side, others last.
    ordered = sorted(played, key=lambda setting: setting.paper.setting if setting.paper else np.inf)
    names = list(dict.fromkeys(name for setting in played for name, _ in setting.cast))
    table2 = columns("game, source", ", ".join(["games", *(f"SR {name}" for name in names)]))
    table2 |= ENDS | {"no survivor": "d"}
    rows = [*_rows(ordered, names)]
    grids = [
        ResultTable(table2, rows, "Survival and scarcity", "alympics_table2", TABLE2),
        ResultTable(LIFE, [*_lives(played)], "Residents", "alympics_residents", LIVES),
        ResultTable(DAY, [*_each_day(played)], name="alympics_days"),
        ResultTable(PRICE, [*_each_price(played)], name="alympics_prices"),
    ]
    size = canvas.tall(len(played))
    sketches = [
        Sketch("Survivors", partial(_survivors_of_all, settings=ordered), size),
        Sketch("Supply to requirement", partial(_ratios, settings=ordered), size),
    ]
    return [Section(PAPER.title, ABOUT, grids, sketches)]


def _rows(settings: Sequence[WaterSetting], names: Sequence[str]) -> Iterator[list[Value]]:
    """Yield the rows of each setting of the paper, the published one last."""
    for paper, group in groupby(settings, lambda setting: setting.paper):
        for setting in group:
            came, cast = setting.indicators, dict(setting.cast)
            survival = dict(zip(cast, setting.survival, strict=True))
            yield [
                *(setting.label, OWN, came.games, *map(survival.get, names)),
                *(setting.survivors, came.ratio_start, setting.ratio_end, came.mean_median),
                came.left_out,
            ]
        if paper and setting.printed:
            rates = map(setting.printed.survival.get, names)
            last = (setting.printed.survivors, paper.mean_ratio_start, setting.printed.ratio_end)
            row = [f"setting {paper.setting}", PUBLISHED, len(paper.ratio_end), *rates, *last]
            yield [*row, paper.mean_median, 0]


def _lives(settings: Sequence[WaterSetting]) -> Iterator[list[Value]]:
    """Yield each resident's shares and means over its games."""
    for setting in settings:
        days = (0.0, float(setting.rules.days))
        money = 0.0, setting.richest
        ends = (days, days, money, money, days)  # of the fields of `Ending`
        for seat, (resident, player) in enumerate(setting.cast):
            lives = zip(*(endings[seat] for endings in setting.endings), strict=True)
            means = [mean_of(values, end) for values, end in zip(lives, ends, strict=True)]
            about = setting.label, resident, player, len(setting.endings)
            yield [*about, setting.survival[seat], *means]


def _each_day(settings: Sequence[WaterSetting]) -> Iterator[list[Value]]:
    """Yield each resident on each day: means over the games in which it was alive."""
    for setting in settings:
        for seat, (resident, player) in enumerate(setting.cast):
            bids, hp, balance = (setting.stack(key, seat) for key in CURVES)
            means = map(canvas.points, (bids, hp, balance), map(setting.ends, CURVES))
            alive = np.isfinite(hp).sum(axis=0).tolist()
            for day, (games, *values) in enumerate(zip(alive, *means, strict=True), start=1):
                yield [setting.label, day, resident, player, games, *values]


def _each_price(settings: Sequence[WaterSetting]) -> Iterator[list[Value]]:
    """Yield the distribution over the games of each day's lowest successful bid, dollars."""
    for setting in settings:
        for day, box in enumerate(setting.indicators.prices, start=1):
            if box is not None:
                yield [setting.label, day, box.size, *box[:5]]


def _survivors_of_all(axes: Axes, settings: Sequence[WaterSetting]) -> str:
    survivors = [setting.survivors for setting in settings]
    means = [cell.mean for cell in survivors]
    axes.plot(means, range(len(means)), "o", color=BLUE, ms=7, label="this run")
    canvas.across(axes, range(len(survivors)), survivors, BLUE)
    rows = enumerate(settings)
    printed = [(row + 0.15, s.printed.survivors) for row, s in rows if s.printed]
    if printed:
        heights, cells = zip(*printed, strict=True)
        look: dict[str, Any] = {"color": ORANGE, "mfc": "none", "ms": 8, "label": "GPT-4"}
        axes.plot([cell.mean for cell in cells], heights, "D", **look)
        canvas.across(axes, heights, cells, ORANGE)
    axes.set_xlabel("survivors of a game, mean")
    axes.set_xlim(-0.15, max(setting.rules.players for setting in settings) + 0.15)
    canvas.down(axes, [setting.label for setting in settings])
    resting = canvas.resting(survivors, ", with its 95 % interval")
    return (
        "Mean number of residents who are alive after the last day"
        f"{resting}; GPT-4: as published, with intervals of our own."
    )


def _ratios(axes: Axes, settings: Sequence[WaterSetting]) -> str:
    looks = ((OWN, BLUE, "o", -0.12), ("GPT-4", ORANGE, "D", 0.12))
    for row, setting in enumerate(settings):
        indicators, paper = setting.indicators, setting.paper
        pairs = [(indicators.ratio_start, indicators.ratio_end)]
        pairs += [(paper.mean_ratio_start, paper.mean_ratio_end)] if paper else []
        for (start, end), (_, colour, mark, shift) in zip(pairs, looks, strict=False):
            height = row + shift
            cell = setting.ratio_end if shift < 0 else setting.printed and setting.printed.ratio_end
            canvas.across(axes, [height + shift / 2], [cell], colour)
            if end is not None:
                axes.plot([start, end], [height, height], color=colour, linewidth=1.6)
                axes.plot(end, height, mark, color=colour, ms=6)
            axes.plot(start, height, "|", color=colour, ms=9, mew=2)
    for name, colour, mark, _ in looks[: 2 if any(setting.paper for setting in settings) else 1]:
        axes.plot([], [], mark, color=colour, ms=6, label=name)
    axes.set_xlabel("supply to requirement (RSR)")
    axes.axvline(1, color=INK, linestyle=":", linewidth=1)
    canvas.down(axes, [setting.label for setting in settings])
    ends = [setting.ratio_end for setting in settings]
    resting = canvas.resting(ends, "; beside it, thin, the 95 % interval of the end")
    return (
        "From the start (bar) to the end (mark): the mean supply to the daily need of the living"
        f"{resting}. From 1 on (dotted) there is water "
        "for all who are left. GPT-4: as published."
    )


def moves(settings: Mapping[str, WaterSetting], game: RecordedGame) -> list[Sketch]:
    """Return survival, prices and the residents' bids, health and money of one setting."""
    setting = settings[game.label]
    ends = [
        Sketch("Survival", partial(_survival, setting=setting)),
        Sketch("Number of survivors", partial(_numbers, setting=setting)),
        Sketch("Lowest successful bid", partial(_prices, setting=setting)),
    ]
    return [
        *(ends if setting.done else []),
        Sketch("Bids", partial(_lines, setting=setting, key="bids", what="mean bid, $")),
        Sketch("Health", partial(_lines, setting=setting, key="hp", what="health points, mean")),
        Sketch("Money", partial(_lines, setting=setting, key="balance", what="balance, $, mean")),
        Sketch("Supply to requirement by day", partial(_scarcity, setting=setting)),
    ]


def _survival(axes: Axes, setting: WaterSetting) -> str:
    paper, names = setting.paper, setting.residents(13)
    positions = np.arange(len(names))
    axes.bar(positions, setting.indicators.survival, color=BLUE, width=0.55, label="this run")
    canvas.upright(axes, positions, setting.survival)
    count = setting.indicators.games
    games = f"Share of the {count} games that" if count > 1 else "Whether"
    sentence = f"{games} each resident survived" + " the game" * (count == 1)
    sentence += canvas.resting(setting.survival, ", with its 95 % interval")
    if paper:
        rates = list(paper.survival.values())
        axes.plot(positions, rates, "D", color=ORANGE, mew=1.8, ms=8, label="GPT-4, published")
        sentence += f"; published: setting {paper.setting}, {len(paper.ratio_end)} games"
    axes.set_xticks(positions, [name.replace(" (", "\n(") for name in names])
    axes.set(ylim=(0, 1.04), ylabel="share of games")
    return f"{sentence}."


def _numbers(axes: Axes, setting: WaterSetting) -> str:
    counts = [sum(ended.alive) for ended in setting.done]
    bars = [(counts, -0.2, BLUE, BLUE, "", "this run")]
    sentence = f"How many residents lived to the end; {np.mean(counts):.2g} on average"
    if setting.paper:
        printed = [sum(alive) for alive in zip(*setting.paper.survived.values(), strict=True)]
        bars.append((printed, 0.2, "none", ORANGE, "//", "GPT-4, published"))
        sentence += f", {setting.paper.survivors:.2g} published"
    for numbers, shift, face, edge, hatch, label in bars:
        shares = np.bincount(numbers, minlength=setting.rules.players + 1) / len(numbers)
        positions = np.arange(len(shares)) + shift
        axes.bar(positions, shares, 0.38, fc=face, ec=edge, hatch=hatch, label=label)
    canvas.over_rounds(axes, "survivors of a game")
    axes.set_ylabel("share of games")
    return f"{sentence}."


def _prices(axes: Axes, setting: WaterSetting) -> str:
    indicators, paper = setting.indicators, setting.paper
    boxes = [(day, box) for day, box in enumerate(indicators.prices, start=1) if box is not None]
    names = ("whislo", "q1", "med", "q3", "whishi", "fliers")
    parts, look = ("boxprops", "whiskerprops", "capprops"), {"color": BLUE, "linewidth": 1}
    lines: Any = dict.fromkeys(parts, look)
    axes.bxp(
        [dict(zip(names, box[:6], strict=True)) for _, box in boxes],
        positions=[day for day, _ in boxes],
        widths=0.6,
        **lines,
        flierprops={"marker": ".", "markeredgecolor": BLUE, "markersize": 4},
        medianprops={"color": BLUE, "linewidth": 2.4},
        manage_ticks=False,
    )
    if (mean := indicators.mean_median) is not None:
        line(axes, mean, f"mean of medians {mean:.1f}", BLUE, ":")
    if paper:
        line(axes, paper.mean_median, f"GPT-4, published {paper.mean_median:.1f}")
    canvas.over_rounds(axes, "day")
    axes.set(xlim=(0.3, len(indicators.prices) + 0.7), ylim=(0, None), ylabel="$")
    return (
        "The lowest bid that was served on each day: box plots over the games with somebody "
        "served, and the mean of the daily medians."
    )


def _lines(axes: Axes, setting: WaterSetting, key: str, what: str) -> str:
    names = setting.residents()
    for seat, look in enumerate(make_looks(len(names))):
        table = setting.stack(key, seat)
        shown = canvas.shown_runs(len(table), table.size // len(table) * len(names))
        days = np.arange(1, table.shape[1] + 1)
        canvas.mean_line(axes, days, table, setting.ends(key), look, label=names[seat])
        axes.plot(days, table[shown].T, color=look.colour, linewidth=0.5, alpha=0.25)
    canvas.over_rounds(axes, "day")
    axes.set(ylabel=what, ylim=(0, None))
    ends, count = setting.ends(key), len(setting.curves)
    scope = f"mean over the {count} games" if count > 1 else "of the game"
    clipping = ", bids above the balance as they counted" if key == "bids" else ""
    single = canvas.single(count, len(names) * setting.rules.days, "game")
    band = _band(setting, ends)
    return (
        f"Each resident, {scope} in which it is alive on that day{clipping}; thin: {single}{band}."
    )


def _band(setting: WaterSetting, ends: Ends) -> str:
    """Explain the bands, which are over the games in which somebody lives on that day."""
    count = len(setting.curves)
    banding = canvas.banded(count, ends, "game")
    return f"; {banding}, fewer where some are over" if banding else ""


def _scarcity(axes: Axes, setting: WaterSetting) -> str:
    ratios = setting.stack("ratio", 0)
    days = np.arange(1, ratios.shape[1] + 1)
    axes.plot(
        days, ratios[canvas.shown_runs(*ratios.shape)].T, color=BLUE, linewidth=0.6, alpha=0.35
    )
    ends = setting.ends("ratio")
    canvas.mean_line(axes, days, ratios, ends, Look(BLUE, "o"), label="mean")
    line(axes, 1, "water for all who live", INK, ":")
    canvas.over_rounds(axes, "day")
    axes.set(ylabel="RSR after the day", ylim=(0, None))
    single = canvas.single(len(ratios), len(days), "game")
    return (
        f"Mean supply to the daily need of the living; thin: {single}, until nobody lives"
        f"{_band(setting, ends)}."
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
