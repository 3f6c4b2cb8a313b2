"""Alympics: indicators of recorded water allocation games, and the published table.

Source: arXiv 2311.03220, sections 4.3 to 4.5 and appendix A.5. A game is its days' plain records.
RSR, the ratio of supply to requirement, is an exact fraction; money is in dollars.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from llm_games.benchmarks.judge.paper import Record, data
from llm_games.benchmarks.record.recorded_games import RecordedEpisode
from llm_games.errors import BadParameter
from llm_games.games.water_allocation.rules import WaterAllocation
from llm_games.registry import rulebook

Days = Sequence[Record]


def living(days: Days) -> list[bool]:
    """Return whether each seat is alive after the last of these days."""
    last = days[-1]
    return [bool(was and not died) for was, died in zip(last["alive"], last["died"], strict=True)]


def survivors(episode: RecordedEpisode) -> float:
    """Return N_survivor of a finished game."""
    return float(sum(living(episode.records)))


def ends(game: WaterAllocation) -> tuple[float, float]:
    return 0.0, float(game.players)


def ratios(game: WaterAllocation) -> tuple[float, float]:
    """Return the least and the highest RSR while somebody lives."""
    needs = [float(need) for need in game.requirements.tolist() if need]
    if not needs:
        return 0.0, math.inf
    return float(game.mean_supply) / sum(needs), float(game.mean_supply) / min(needs)


def supply_ratio(game: WaterAllocation, alive: Sequence[bool]) -> Fraction | None:
    """RSR: the mean supply to the daily need of the living; None if nobody lives."""
    pairs = zip(alive, game.requirements.tolist(), strict=True)
    need = sum(requirement for lives, requirement in pairs if lives)
    return game.mean_supply / need if need else None


def lowest_prices(game: WaterAllocation, days: Days) -> list[Fraction | None]:
    """p_n: the lowest effective bid that was served on each day, dollars; None if none was."""
    prices = [day["price"] for day in days]
    dollars = [Fraction(price, game.unit) if price >= 0 else None for price in prices]
    return dollars + [None] * (game.days - len(days))


class Curves(NamedTuple):
    """Values of a game day by day, a list of days for each seat; None once a seat is dead.

    Bids are the effective ones, None also for no bid; `hp` and `balance` those after the day.
    `ratio` is RSR after each day (one list), None once nobody lives.
    """

    bids: list[list[float | None]]
    hp: list[list[float | None]]
    balance: list[list[float | None]]
    ratio: list[float | None]


def curves(game: WaterAllocation, days: Days) -> Curves:
    def of(key: str, unit: int) -> list[list[float | None]]:
        rows = [zip(day["alive"], day[key], strict=True) for day in days]
        shown = [
            [x / unit if lives and (key != "actions" or x >= 0) else None for lives, x in row]
            for row in rows
        ]
        return [list(seat) for seat in zip(*shown, strict=True)]

    ratios = [supply_ratio(game, living([day])) for day in days]
    return Curves(
        of("actions", game.unit),
        of("hp", 1),
        of("balance", game.unit),
        [None if ratio is None else float(ratio) for ratio in ratios],
    )


class BoxPlot(NamedTuple):
    """A box plot: whiskers at the outermost values within 1.5 box lengths, the rest outliers."""

    low: float
    q1: float
    median: float
    q3: float
    high: float
    outliers: tuple[float, ...]
    size: int


def box_plot(values: Sequence[float | Fraction]) -> BoxPlot:
    """Return the box plot of one or more values; quartiles by linear interpolation."""
    numbers = np.sort(np.array(values, np.float64))
    q1, middle, q3 = np.quantile(numbers, [0.25, 0.5, 0.75]).tolist()
    reach = 1.5 * (q3 - q1)
    near = (numbers >= q1 - reach) & (numbers <= q3 + reach)
    low, high = numbers[near][[0, -1]].tolist()
    box = {"low": low, "q1": q1, "median": middle, "q3": q3, "high": high}
    return BoxPlot(**box, outliers=tuple(numbers[~near].tolist()), size=len(numbers))


class Indicators(NamedTuple):
    """The indicators of the games of one setting.

    SR, the share of games that each seat survives; the mean of N_survivor; RSR_S before the first
    day, and the mean RSR_E over the games that somebody survives; the games left out of that; a box
    of p_n for each day, None if nobody was served; and the mean of their medians in dollars.
    """

    games: int
    survival: tuple[float, ...]
    survivors: float
    ratio_start: float
    ratio_end: float | None
    left_out: int
    prices: tuple[BoxPlot | None, ...]
    mean_median: float | None


class Ended(NamedTuple):
    """A game's outcome for the indicators: who lives, p_n, and whether it is finished."""

    alive: list[bool]
    prices: list[Fraction | None]
    finished: bool


def ended(game: WaterAllocation, days: Days) -> Ended:
    """Return the outcome of one game."""
    alive = living(days) if days else []
    finished = bool(days) and (len(days) == game.days or not any(alive))
    return Ended(alive, lowest_prices(game, days), finished)


def indicators(game: WaterAllocation, played: Iterable[Days | Ended]) -> Indicators:
    """Return the indicators of finished games of one setting; BadParameter: none, or unfinished."""
    outcomes = [each if isinstance(each, Ended) else ended(game, each) for each in played]
    if not outcomes or not all(outcome.finished for outcome in outcomes):
        unfinished = [i for i, outcome in enumerate(outcomes) if not outcome.finished]
        raise BadParameter(
            f"indicators need finished games, got {len(outcomes)} games, not finished: {unfinished}"
        )
    ends = [outcome.alive for outcome in outcomes]
    ratios = [ratio for alive in ends if (ratio := supply_ratio(game, alive)) is not None]
    start = supply_ratio(game, [True] * game.players)
    assert start is not None
    prices = daily_prices([outcome.prices for outcome in outcomes])
    medians = [box.median for box in prices if box is not None]
    return Indicators(
        games=len(outcomes),
        survival=tuple(np.mean(ends, axis=0).tolist()),
        survivors=float(np.sum(ends) / len(ends)),
        ratio_start=float(start),
        ratio_end=float(sum(ratios) / len(ratios)) if ratios else None,
        left_out=len(outcomes) - len(ratios),
        prices=prices,
        mean_median=statistics.fmean(medians) if medians else None,
    )


class Ending(NamedTuple):
    """A resident's game: days alive, days with water, dollars spent, money left, bids too high."""

    days_survived: int
    water_days: int
    spent: float
    balance: float
    over_budget: int


def ending(game: WaterAllocation, days: Days, seat: int) -> Ending:
    """Return the outcome of a seat's resident in one game."""
    alive_days = [day for day in days if day["alive"][seat]]
    served = [day["effective"][seat] for day in alive_days if day["won"][seat]]
    died = alive_days[-1]["died"][seat]
    balance = 0 if died and game.reset_balance_on_death else alive_days[-1]["balance"][seat]
    return Ending(
        days_survived=len(alive_days) - bool(died),
        water_days=len(served),
        spent=sum(served) / game.unit,
        balance=balance / game.unit,
        over_budget=sum(bool(day["over_budget"][seat]) for day in alive_days),
    )


def daily_prices(games: Sequence[Sequence[Fraction | float | None]]) -> tuple[BoxPlot | None, ...]:
    """Return the box of each day's prices over games; None for days without any price."""
    days = [[price for price in prices if price is not None] for prices in zip(*games, strict=True)]
    return tuple(box_plot(prices) if prices else None for prices in days)


class PublishedWater(NamedTuple):
    """One setting of the paper: ten games of five GPT-4 players, with or without a persona.

    Who is alive at the end of each game, by name, and the printed averages; RSR of each game, and
    the averages; the mean of the daily medians of p_n, dollars.
    """

    setting: int
    persona: bool
    survived: dict[str, tuple[int, ...]]
    survival: dict[str, float]
    ratio_start: tuple[float, ...]
    ratio_end: tuple[float, ...]
    mean_ratio_start: float
    mean_ratio_end: float
    mean_median: float

    @property
    def survivors(self) -> float:
        return sum(map(sum, self.survived.values())) / len(self.ratio_end)


EDITIONS = ("corrected", "printed", "exact")
"""``printed``: as in the paper, with its errors; ``corrected``: without those that its own entries
prove; ``exact``: the same with six decimals."""


@cache
def published(edition: str = "corrected") -> tuple[PublishedWater, ...]:
    """Return Table 2 of the paper, setting by setting; `BadParameter` for an unknown edition."""
    if edition not in EDITIONS:
        raise BadParameter(f"edition must be one of {', '.join(EDITIONS)}, got {edition!r}")
    prices = {row["setting"]: row["mean_median_price"] for row in data(__package__, "prices")}
    settings = []
    table2 = groupby(data(__package__, "table2"), itemgetter("setting", "persona"))
    for (setting, persona), rows in table2:
        cells: dict[str, list[float]] = {}
        for row in rows:
            cells.setdefault(row["row"], []).append(float(row[edition]))
        (*start, mean_start), (*end, mean_end) = cells.pop("RSR_S"), cells.pop("RSR_E")
        table = PublishedWater(
            int(setting),
            persona == "yes",
            survived={name: tuple(map(int, alive[:-1])) for name, alive in cells.items()},
            survival={name: alive[-1] for name, alive in cells.items()},
            ratio_start=tuple(start),
            ratio_end=tuple(end),
            mean_ratio_start=mean_start,
            mean_ratio_end=mean_end,
            mean_median=float(prices[setting]),
        )
        settings.append(table)
    return tuple(settings)


def setting_of(game: WaterAllocation) -> int | None:
    """Return the number of the paper's setting with these rules, 1 to 6, or None."""
    numbers = (int(n) for p in game.presets if (n := p.removeprefix("setting_")).isdigit())
    fits = (n for n in numbers if game == rulebook(game.name, preset=f"setting_{n}"))
    return next(fits, None)
