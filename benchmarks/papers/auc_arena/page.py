"""AucArena: how often replies fail, what plans are followed, money, ratings, ranks, and prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from llm_games.benchmarks.papers.auc_arena import metrics as auc_arena
from llm_games.benchmarks.papers.auc_arena.metrics import PLANS, STATISTICS, Auction, Rate, Standing
from llm_games.benchmarks.papers.auc_arena.spearman import Correlation
from llm_games.benchmarks.papers.gamma_bench.scores import Cell
from llm_games.benchmarks.report import canvas
from llm_games.benchmarks.report.canvas import BLUE, GREEN, ORANGE
from llm_games.benchmarks.report.data import Run, Table
from llm_games.benchmarks.report.figures import Sketch
from llm_games.benchmarks.report.paper import OWN, PUBLISHED, Grid, Paper, Starred, Value, heads
from llm_games.benchmarks.runs.records import Records
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SURE = 0.001
"""Correlations with a smaller p are marked, as in the paper."""


@dataclass(frozen=True)
class Sold:
    """Finished auctions of a run.

    Attributes:
        auctions: by label.
        series: the labels of those that were played in a row.
        players: all players, in the order of the configuration.
        definition: of the failure rates of beliefs: ``authors`` with the published scoring.
    """

    auctions: Mapping[str, Sequence[Auction]]
    series: frozenset[str]
    players: list[str]
    definition: str

    @cached_property
    def looks(self) -> dict[str, tuple[str, str]]:
        """A colour and a marker for each player."""
        return dict(zip(self.players, canvas.looks(len(self.players)), strict=True))

    @cached_property
    def found(self) -> dict[str, list[Standing]]:
        """The results by label, in the order of the players."""
        return {label: self._standings(auctions) for label, auctions in self.auctions.items()}

    @cached_property
    def overall(self) -> list[Standing]:
        """The results over all labels."""
        return self._standings([one for found in self.auctions.values() for one in found])

    def _standings(self, auctions: Sequence[Auction]) -> list[Standing]:
        found = auc_arena.standings(auctions, self.definition)
        return sorted(found, key=lambda standing: self.players.index(standing.player))

    def names(self, label: str) -> list[str]:
        """Return the players of a label."""
        return [standing.player for standing in self.found[label]]


def owns(table: Table) -> bool:
    """Return whether a table is of the English auction, and not at the other arena's presets."""
    other = str(table.params.get("preset", "")).startswith("econ_arena")
    return table.rules.name == "english_auction" and not other


def read(run: Run) -> Sold:
    """Return the finished auctions of a run, with the plans and beliefs of their bidders."""
    with Records.open_readonly(run.path) as records:
        found = auc_arena.recorded(records)
    series = (game.get("label") for game in run.config.get("games", []) if game.get("series"))
    names = dict.fromkeys(name for table in run.tables for name in table.seats)
    definition = "authors" if run.edition == "published" else "paper"
    return Sold(found, frozenset(series), list(names), definition)


# -- result tables ---------------------------------------------------------------------------------


class Bidders(NamedTuple):
    """A player in the auctions of one label, or in all: failures, and means of an auction."""

    game: str
    player: str
    strategy: str
    auctions: int
    failed_bids: float | None
    failed_beliefs_on_itself: float | None
    failed_beliefs_on_others: float | None
    bad_format: int
    unreadable_beliefs: int
    lost_plans: int
    changed_replans: float | None
    profit: float
    items_won: float
    money_left: float
    bids: float
    price_to_start: float | None


class Skill(NamedTuple):
    """A rating after the auctions of one label: the belief N(mu, variance) on a player's skill."""

    game: str
    player: str
    auctions: int
    mu: float
    variance: float


class Follows(NamedTuple):
    """A rank correlation of a player's priorities with what it did, over so many items."""

    player: str
    plan: str
    statistic: str
    rho: float
    p: float | None
    items: int


class Left(NamedTuple):
    """A player's mean money after so many items of the order of sale."""

    game: str
    player: str
    items: int
    money: float


class Standings(NamedTuple):
    """A player's rank by profit in one auction of a series."""

    game: str
    player: str
    auction: int
    rank: int | None


NAMES = {"engagement": "bids", "win": "items won"}
FOLLOWS = [f"{plan} plan, {NAMES[statistic]}" for plan, statistic in product(PLANS, STATISTICS)]


def grids(sold: Sold) -> list[Grid]:
    """Return failures and money, Table 1 with one's own rows, ratings, and files of the rest."""
    if not sold.auctions:
        return []
    found = sold.overall
    head = ["player", "source", "strategy", *FOLLOWS]
    table = [*_correlations(found), *_published()]
    digits = dict.fromkeys(heads(Bidders)[4:7], 3)
    digits |= {"changed replans": 2, "profit": 0, "money left": 0, "bids": 1, "items won": 1}
    fours, skills = dict.fromkeys(FOLLOWS, 4), [*_skills(sold)]
    return [
        Grid("Bidders", "auc_arena_bidders", heads(Bidders), [*_bidders(sold)], BIDDERS, digits),
        Grid("Plans that are followed", "auc_arena_table1", head, table, SPEARMAN, fours),
        *([Grid("TrueSkill", "auc_arena_skills", heads(Skill), skills, SKILLS)] if skills else []),
        Grid("", "auc_arena_correlations", heads(Follows), [*_follows(found)]),
        Grid("", "auc_arena_money", heads(Left), [*_left(sold)]),
        Grid("", "auc_arena_ranks", heads(Standings), [*_ranks(sold)]),
    ]


BIDDERS = (
    "Corrected failure rates (CFR) of bids and of beliefs on oneself and on others: failed / "
    "(correct + failed); replies that broke the form are counted apart. A plan is lost if no reply "
    "could be used; replans: share that changes a priority. Profit, items, money left and "
    "accepted bids: mean of an auction."
)
SPEARMAN = (
    "Spearman's rank correlation of priorities with accepted bids on an item and with items won, "
    "over all items of all auctions, of the plan before the auction and of the one in force when "
    f"an item is called; *: p < {SURE}. Published: arXiv 2310.05746, Table 1."
)
SKILLS = (
    "TrueSkill by profit over the auctions of a label in their order, from 25 and 25/3: the mean "
    "and the variance of the belief on a player's skill."
)


def _bidders(sold: Sold) -> Iterator[Bidders]:
    groups = sold.found | ({"all": sold.overall} if len(sold.found) > 1 else {})
    for label, standings in groups.items():
        for found in standings:
            yield Bidders(
                label,
                found.player,
                found.strategy or "–",
                found.seats,
                found.bids.value,
                found.own.value,
                found.others.value,
                found.bad_format,
                found.bad_beliefs,
                found.bad_plans,
                found.changed / found.replanned if found.replanned else None,
                found.profit.mean,
                found.won.mean,
                found.left.mean,
                found.accepted.mean,
                found.price_ratio and found.price_ratio.mean,
            )


def _planners(found: Sequence[Standing]) -> list[Standing]:
    return [standing for standing in found if standing.strategy not in (None, "none")]


def _correlations(found: Sequence[Standing]) -> Iterator[list[Value]]:
    for standing in _planners(found):
        cells = [standing.correlations[key] for key in product(PLANS, STATISTICS)]
        yield [standing.player, OWN, standing.strategy or "–", *map(_starred, cells)]


def _starred(found: Correlation | None) -> float | None:
    if found is None:
        return None
    return Starred(found.rho) if found.p is not None and found.p < SURE else found.rho


def _published() -> Iterator[list[Value]]:
    cells = {(row.model, row.plan, row.statistic): row.spearman for row in auc_arena.published()}
    for model in dict.fromkeys(model for model, _, _ in cells):
        values = [cells[model, *key] for key in product(PLANS, STATISTICS)]
        yield [model, PUBLISHED, "–", *values]


def _follows(found: Sequence[Standing]) -> Iterator[Follows]:
    for standing in found:
        for (plan, statistic), cell in standing.correlations.items():
            if cell:
                yield Follows(standing.player, plan, NAMES[statistic], cell.rho, cell.p, cell.size)


def _alone(auctions: Sequence[Auction]) -> bool:
    """Return whether everybody has a name of its own, so that players can be ranked."""
    names = [[bidder.name for bidder in auction.bidders] for auction in auctions]
    return all(len(set(seats)) == len(seats) for seats in names)


def _skills(sold: Sold) -> Iterator[Skill]:
    for label, auctions in sold.auctions.items():
        if _alone(auctions):
            for player, (mu, sigma) in auc_arena.skills(auctions).items():
                yield Skill(label, player, len(auctions), mu, sigma**2)


def _left(sold: Sold) -> Iterator[Left]:
    for label, auctions in sold.auctions.items():
        for player in sold.names(label):
            for items, money in enumerate(auc_arena.budget_curve(auctions, player)):
                yield Left(label, player, items, money)


def _ranks(sold: Sold) -> Iterator[Standings]:
    for label in sold.series:
        auctions = sold.auctions.get(label, [])
        if _alone(auctions):
            for player, ranks in auc_arena.ranks(auctions).items():
                for number, rank in enumerate(ranks, start=1):
                    yield Standings(label, player, number, rank)


# -- figures over all auctions ---------------------------------------------------------------------


def figures(sold: Sold) -> list[Sketch]:
    """Return failure rates, correlations beside the published, and profits."""
    if not sold.auctions:
        return []
    found = sold.overall
    follow = [*_correlations(found), *_published()]
    rows, series = len(sold.auctions), len(found)
    return [
        Sketch("Failure rates", partial(_failures, found=found), canvas.tall(len(found), 3)),
        Sketch("Profit", partial(_profits, sold=sold), canvas.tall(rows, series)),
        Sketch("Plans and acts", partial(_plans, rows=follow), canvas.tall(len(follow), 2)),
    ]


def _failures(axes: Axes, found: Sequence[Standing]) -> str:
    kinds = (
        ("bids", BLUE, ""),
        ("beliefs on itself", ORANGE, "//"),
        ("beliefs on others", GREEN, ".."),
    )
    rates: list[list[Rate]] = [[s.bids, s.own, s.others] for s in found]
    for column, (name, colour, hatch) in enumerate(kinds):
        values = [row[column].value or 0.0 for row in rates]
        at = np.arange(len(found)) + 0.26 * (column - 1)
        face = "none" if hatch else colour
        axes.barh(at, values, 0.24, fc=face, ec=colour, hatch=hatch, label=name)
        for row, place in zip(rates, at, strict=True):
            if row[column].value is None:
                axes.text(0, place, " –", va="center", fontsize=9)
    canvas.down(axes, [standing.player for standing in found])
    axes.set_xlabel("corrected failure rate")
    axes.set_xlim(left=0)
    return (
        "How often bids are refused, and beliefs on itself and on others wrong, over all auctions; "
        "a dash: it has none of these."
    )


def _profits(axes: Axes, sold: Sold) -> str:
    found = [{s.player: s.profit for s in own} for own in sold.found.values()]
    series = {
        name: [(cell.mean, _error(cell)) if (cell := row.get(name)) else None for row in found]
        for name in sold.players
    }
    canvas.dots(axes, list(sold.auctions), series)
    axes.axvline(0, color=canvas.INK, linewidth=0.8, linestyle=":")
    axes.set_xlabel("profit of an auction")
    return "Mean profit of an auction, ± 1 standard error over auctions."


def _error(cell: Cell) -> float:
    return 0.0 if cell.std is None else float(cell.std / np.sqrt(cell.runs))


def _plans(axes: Axes, rows: Sequence[Sequence[Any]]) -> str:
    kinds = zip(FOLLOWS, (BLUE, ORANGE, BLUE, ORANGE), "osos", strict=True)
    for column, (name, colour, mark) in enumerate(kinds):
        values = [np.nan if row[3 + column] is None else row[3 + column] for row in rows]
        face, at = colour if column > 1 else "none", np.arange(len(rows)) + 0.4 * (column % 2 - 0.5)
        axes.plot(values, at, mark, color=colour, mfc=face, ms=6, label=name)
    canvas.down(axes, [f"{row[0]}{', published' * (row[1] == PUBLISHED)}" for row in rows])
    axes.axhline(sum(row[1] == OWN for row in rows) - 0.5, color=canvas.INK, linewidth=0.8)
    axes.axvline(0, color=canvas.INK, linewidth=0.8, linestyle=":")
    axes.set_xlabel("Spearman's ρ with the priority of an item")
    return "How far bids and wins follow the first plan and the one in force; below: published."


# -- figures of one label --------------------------------------------------------------------------


def moves(sold: Sold, table: Table) -> list[Sketch]:
    """Return money left, priorities of each planner, prices by aim, and ranks in a series."""
    auctions = sold.auctions.get(table.label, [])
    if not auctions:
        return []
    sketches = [Sketch("Money left", partial(_money, sold=sold, label=table.label))]
    if table.label in sold.series and _alone(auctions):
        sketches.append(Sketch("Ranks", partial(_rank_lines, sold=sold, label=table.label)))
    if len(auc_arena.sales(auctions)) > 1:
        sketches.append(Sketch("Winning prices", partial(_prices, auctions=auctions)))
    for player in sold.names(table.label):
        matrix = auc_arena.priority_matrix(auctions, player)
        if any(cell is not None for row in matrix.values() for cell in row):
            size = canvas.tall(len(matrix))
            draw = partial(_priorities, matrix=matrix, player=player)
            sketches.append(Sketch(f"Priorities: {player}", draw, size))
    return sketches


def _money(axes: Axes, sold: Sold, label: str) -> str:
    auctions = sold.auctions[label]
    for name in sold.names(label):
        curve, (colour, mark) = auc_arena.budget_curve(auctions, name), sold.looks[name]
        axes.plot(range(len(curve)), curve, color=colour, marker=mark, ms=5, label=name[:24])
    canvas.over_rounds(axes, "items sold")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("money left, mean")
    return f"Money left after each item in the order of sale, mean over {len(auctions)} auctions."


def _rank_lines(axes: Axes, sold: Sold, label: str) -> str:
    ranks, names = auc_arena.ranks(sold.auctions[label]), sold.names(label)
    for name, shift in zip(names, np.linspace(-0.12, 0.12, len(names)), strict=True):
        row, (colour, mark) = ranks[name], sold.looks[name]
        at = np.arange(1, len(row) + 1)
        heights = np.array([np.nan if rank is None else rank for rank in row]) + shift
        axes.plot(at, heights, color=colour, marker=mark, ms=6, label=name[:24])
    canvas.over_rounds(axes, "auction")
    axes.set_ylim(len(ranks) + 0.4, 0.6)
    canvas.whole(axes.yaxis)
    axes.set_ylabel("rank by profit")
    return "Each player's rank by profit in each auction of the series; equal profits share one."


def _prices(axes: Axes, auctions: Sequence[Auction]) -> str:
    sold = {aim: [sale.price for sale in found] for aim, found in auc_arena.sales(auctions).items()}
    every = [price for prices in sold.values() for price in prices]
    at, width = np.linspace(0, 1.15 * max(every), 240), bandwidth(every)
    heights = {aim: density(prices, at, width) for aim, prices in sold.items()}
    top = max(float(height.max()) for height in heights.values())
    looks = zip((BLUE, ORANGE), ("-", "--"), (-0.04, -0.1), strict=True)
    for aim, (colour, style, below) in zip(sorted(sold, reverse=True), looks, strict=False):
        prices = sold[aim]
        axes.plot(at, heights[aim], style, color=colour, label=f"{aim} ({len(prices)})")
        axes.plot(prices, [top * below] * len(prices), "|", color=colour, alpha=0.5)
    axes.set_xlim(0, at[-1])
    axes.set_yticks([])
    axes.set_xlabel("winning price")
    axes.set_ylabel("density")
    gap = auc_arena.price_gap(auctions)
    return (
        "Prices of the items won by those who want profit and those who want many items (number "
        f"of items in brackets, a tick for each); the means are {gap:.0f} apart."
    )


def bandwidth(values: Sequence[float]) -> float:
    """Return the width of a kernel by Silverman's rule; 1 for values that are all the same."""
    low, high = np.quantile(values, [0.25, 0.75])
    spread = min(filter(None, (np.std(values), (high - low) / 1.34)), default=0.0)
    return float(0.9 * spread * len(values) ** -0.2) or 1.0


def density(values: Sequence[float], at: Array, width: float) -> Array:
    """Return a Gaussian kernel density, float64 like `at`."""
    bells: Array = np.exp(-0.5 * ((at[:, None] - np.asarray(values, np.float64)) / width) ** 2)
    result: Array = bells.mean(axis=1) / (width * np.sqrt(2 * np.pi))
    return result


def _priorities(axes: Axes, matrix: Mapping[str, Sequence[float | None]], player: str) -> str:
    cells = np.array([[np.nan if x is None else x for x in row] for row in matrix.values()])
    edges = [np.arange(count + 1) - 0.5 for count in reversed(cells.shape)]
    edges[0] += 1
    shades = axes.pcolormesh(*edges, cells, cmap="cividis", vmin=1, vmax=3, ec=canvas.FAINT, lw=0.5)
    if cells.size <= 100:
        for row, column in zip(*np.nonzero(np.isfinite(cells)), strict=True):
            value = cells[row, column]
            ink = "black" if value > 2 else "white"
            text = f"{value:.2g}"
            axes.text(column + 1, row, text, color=ink, ha="center", va="center", fontsize=9)
    axes.grid(visible=False)
    axes.figure.colorbar(shades, ax=axes, label="mean priority", ticks=[1, 2, 3])
    canvas.down(axes, list(matrix))
    canvas.over_rounds(axes, "round")
    return (
        f"{player}: mean priority of each item in the plan in force when the items of each round "
        "are called; 3 is the highest. Empty: sold before."
    )


PAPER = Paper(
    "AucArena",
    "English auctions of many items with limited money (arXiv 2310.05746), beside the paper's "
    "Table 1. Its figures are printed without numbers.",
    owns,
    read,
    grids,
    figures,
    moves,
)
