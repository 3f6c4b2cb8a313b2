"""Alympics: indicators of recorded water allocation games, the published table, and ratings.

Source: arXiv 2311.03220, sections 4.3 to 4.5 and appendix A.5. A game is the list of its days'
records, the ``Outcome.record`` of each as plain Python values. RSR, the ratio of supply to
requirement, is an exact fraction; money is in dollars.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.runs.paper import Record, data
from llm_games.errors import BadParameter
from llm_games.games.water_allocation.rules import WaterAllocation
from llm_games.registry import rulebook

Days = Sequence[Record]

# -- one game --------------------------------------------------------------------------------------


def living(days: Days) -> list[bool]:
    """Return who is alive after the last of these days, by seat."""
    last = days[-1]
    return [bool(was and not died) for was, died in zip(last["alive"], last["died"], strict=True)]


def supply_ratio(game: WaterAllocation, alive: Sequence[bool]) -> Fraction | None:
    """RSR: the mean supply to the daily need of the living; None if nobody lives."""
    pairs = zip(alive, game.requirements.tolist(), strict=True)
    need = sum(requirement for lives, requirement in pairs if lives)
    return game.mean_supply / need if need else None


def lowest_prices(game: WaterAllocation, days: Days) -> list[Fraction | None]:
    """p_n: the lowest effective bid that was served on each day, dollars; None if none was."""
    prices = [day["price"] for day in days]
    paid = [Fraction(price, game.unit) if price >= 0 else None for price in prices]
    return paid + [None] * (game.days - len(days))


@dataclass(frozen=True)
class Curves:
    """What happened day by day, a list of days for each seat; None once a seat is dead.

    Attributes:
        bids: as submitted, dollars; also None for no bid.
        hp: health points after the day.
        balance: after the day, dollars.
        ratio: RSR after each day (one list); None once nobody lives.
    """

    bids: list[list[float | None]]
    hp: list[list[int | None]]
    balance: list[list[float | None]]
    ratio: list[float | None]


def curves(game: WaterAllocation, days: Days) -> Curves:
    """Return the curves of one game."""
    seats = range(game.players)

    def of(key: str, unit: int) -> list[list[Any]]:
        return [[_shown(day, key, seat, unit) for day in days] for seat in seats]

    ratios = [supply_ratio(game, living([day])) for day in days]
    return Curves(
        bids=of("actions", game.unit),
        hp=of("hp", 1),
        balance=of("balance", game.unit),
        ratio=[None if ratio is None else float(ratio) for ratio in ratios],
    )


def _shown(day: Record, key: str, seat: int, unit: int) -> Any:
    value = day[key][seat]
    if not day["alive"][seat] or (key == "actions" and value < 0):
        return None
    return value if unit == 1 else value / unit


# -- many games of one setting ---------------------------------------------------------------------


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
    numbers = np.sort([float(value) for value in values])
    q1, middle, q3 = (float(q) for q in np.quantile(numbers, [0.25, 0.5, 0.75]))
    reach = 1.5 * (q3 - q1)
    inside = numbers[(numbers >= q1 - reach) & (numbers <= q3 + reach)]
    outliers = tuple(x for x in numbers.tolist() if not q1 - reach <= x <= q3 + reach)
    return BoxPlot(float(inside[0]), q1, middle, q3, float(inside[-1]), outliers, len(numbers))


@dataclass(frozen=True)
class Indicators:
    """The indicators of the games of one setting.

    Attributes:
        games: how many.
        survival: SR, the share of games that each seat survives.
        survivors: mean N_survivor.
        ratio_start: RSR_S, before the first day.
        ratio_end: mean RSR_E, over the games that somebody survives; None if there are none.
        left_out: games that nobody survives.
        prices: a box of p_n for each day; None for days on which nobody was served in any game.
        mean_median: mean of the daily medians of p_n, dollars; None without any.
        over_budget: bids above the balance, all games together.
        bids: bids asked for, all games together.
    """

    games: int
    survival: tuple[float, ...]
    survivors: float
    ratio_start: float
    ratio_end: float | None
    left_out: int
    prices: tuple[BoxPlot | None, ...]
    mean_median: float | None
    over_budget: int
    bids: int

    @property
    def medians(self) -> list[float | None]:
        """The median of p_n on each day."""
        return [None if found is None else found.median for found in self.prices]


def indicators(game: WaterAllocation, played: Sequence[Days]) -> Indicators:
    """Return the indicators of one or more finished games of one setting.

    Raises:
        BadParameter: there is no game, or one that is not finished.
    """
    unfinished = [i for i, days in enumerate(played) if not _finished(game, days)]
    if unfinished or not played:
        raise BadParameter(
            f"indicators need finished games, got {len(played)} games, not finished: {unfinished}"
        )
    ends = [living(days) for days in played]
    ratios = [ratio for alive in ends if (ratio := supply_ratio(game, alive)) is not None]
    start = supply_ratio(game, [True] * game.players)
    assert start is not None
    prices = daily_prices([lowest_prices(game, days) for days in played])
    medians = [found.median for found in prices if found is not None]
    return Indicators(
        games=len(played),
        survival=tuple(float(share) for share in np.mean(ends, axis=0)),
        survivors=float(np.sum(ends) / len(ends)),
        ratio_start=float(start),
        ratio_end=float(sum(ratios) / len(ratios)) if ratios else None,
        left_out=len(played) - len(ratios),
        prices=prices,
        mean_median=statistics.fmean(medians) if medians else None,
        over_budget=sum(sum(day["over_budget"]) for days in played for day in days),
        bids=sum(sum(day["alive"]) for days in played for day in days),
    )


class Ending(NamedTuple):
    """What one resident came to in one game.

    Attributes:
        days_survived: days that it completed alive.
        water_days: days on which it was served.
        spent: on water, dollars.
        balance: money at the end, dollars.
        over_budget: its bids above its balance, which were void or clipped, as the rules say.
    """

    days_survived: int
    water_days: int
    spent: float
    balance: float
    over_budget: int


def ending(game: WaterAllocation, days: Days, seat: int) -> Ending:
    """Return what a resident came to."""
    own = [day for day in days if day["alive"][seat]]
    served = [day["effective"][seat] for day in own if day["won"][seat]]
    died = own[-1]["died"][seat]
    left = 0 if died and game.reset_balance_on_death else own[-1]["balance"][seat]
    return Ending(
        days_survived=len(own) - bool(died),
        water_days=len(served),
        spent=sum(served) / game.unit,
        balance=left / game.unit,
        over_budget=sum(bool(day["over_budget"][seat]) for day in own),
    )


def _finished(game: WaterAllocation, days: Days) -> bool:
    return bool(days) and (len(days) == game.days or not any(living(days)))


def daily_prices(games: Sequence[Sequence[Fraction | float | None]]) -> tuple[BoxPlot | None, ...]:
    """Return the box of each day's prices over games; None for days without any price."""
    days = [[price for price in prices if price is not None] for prices in zip(*games, strict=True)]
    return tuple(box_plot(prices) if prices else None for prices in days)


# -- what the paper prints -------------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """One setting of the paper: ten games of five GPT-4 players.

    Attributes:
        setting: 1 to 6.
        abundance: ``low``, ``medium`` or ``high``.
        persona: whether the players had one.
        survived: whether each player is alive at the end of each game, by name.
        survival: the printed averages of these.
        ratio_start, ratio_end: RSR of each game.
        mean_ratio_start, mean_ratio_end: the averages of these.
        mean_median: mean of the daily medians of p_n, dollars.
    """

    setting: int
    abundance: str
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
        """Mean N_survivor."""
        return sum(map(sum, self.survived.values())) / len(self.ratio_end)


EDITIONS = ("corrected", "printed", "exact")
"""``printed``: as in the paper, with its errors; ``corrected``: without those that its own entries
prove; ``exact``: the same with six decimals."""


@cache
def published(edition: str = "corrected") -> tuple[Published, ...]:
    """Return Table 2 of the paper, setting by setting.

    Raises:
        BadParameter: there is no such edition.
    """
    if edition not in EDITIONS:
        raise BadParameter(f"edition must be one of {', '.join(EDITIONS)}, got {edition!r}")
    medians = {
        row["setting"]: float(row["mean_median_price"]) for row in data(__package__, "prices")
    }
    settings: dict[str, list[dict[str, str]]] = {}
    for row in data(__package__, "table2"):
        settings.setdefault(row["setting"], []).append(row)
    return tuple(_published(rows, edition, medians[setting]) for setting, rows in settings.items())


def setting_of(game: WaterAllocation) -> int | None:
    """Return the paper's setting that a game's rules are, 1 to 6; None if they are no such."""
    for number in range(1, len(game.presets) + 1):
        if game == rulebook(game.name, preset=f"setting_{number}"):
            return number
    return None


def _published(rows: list[dict[str, str]], edition: str, mean_median: float) -> Published:
    cells: dict[str, list[float]] = {}
    for row in rows:
        cells.setdefault(row["row"], []).append(float(row[edition]))
    names = [name for name in cells if not name.startswith("RSR")]
    return Published(
        setting=int(rows[0]["setting"]),
        abundance=rows[0]["abundance"],
        persona=rows[0]["persona"] == "yes",
        survived={name: tuple(map(int, cells[name][:-1])) for name in names},
        survival={name: cells[name][-1] for name in names},
        ratio_start=tuple(cells["RSR_S"][:-1]),
        ratio_end=tuple(cells["RSR_E"][:-1]),
        mean_ratio_start=cells["RSR_S"][-1],
        mean_ratio_end=cells["RSR_E"][-1],
        mean_median=mean_median,
    )
