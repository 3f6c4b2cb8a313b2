"""AucArena's page: failed replies, plans that are followed, money, ratings, ranks, and prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, groupby, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from llm_games.benchmarks.judge.intervals import RANKED
from llm_games.benchmarks.judge.means import MeanCell, brief
from llm_games.benchmarks.judge.pairwise_ratings import Ranked, Ratings, plackett_luce
from llm_games.benchmarks.judge.paper import Measure, Paper, Section, Sketch
from llm_games.benchmarks.judge.result_table import (
    OWN,
    PUBLISHED,
    ResultTable,
    Starred,
    Value,
    columns,
)
from llm_games.benchmarks.papers.auc_arena import metrics as auc_arena
from llm_games.benchmarks.papers.auc_arena.metrics import PLANS, STATISTICS, Auction, BidderStanding
from llm_games.benchmarks.papers.auc_arena.spearman import Correlation
from llm_games.benchmarks.papers.auc_arena.true_skill import ratings
from llm_games.benchmarks.record.recorded_games import RecordedGame, Run
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.plot_style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    Look,
    make_looks,
)
from llm_games.errors import BadParameter
from llm_games.games.english_auction.rules import EnglishAuction
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SURE = 0.001  # correlations with a smaller p are marked, as in the paper


class Sold(NamedTuple):
    """Finished auctions of a run by label, and each player's results by label and over all.

    `series`: labels of consecutive auctions that have ranks; `looks`: the style of each player's
    lines; `reference`: whom others are rated against: a rational one, another rule, or the first.
    """

    auctions: dict[str, list[Auction]]
    series: list[str]
    looks: dict[str, Look]
    standings: dict[str, dict[str, BidderStanding]]
    overall: dict[str, BidderStanding]
    reference: str


def owns(game: RecordedGame) -> bool:
    """Return whether a game is the English auction, but not one of EconArena's presets."""
    other = str(game.params.get("preset", "")).startswith("econ_arena")
    return game.name == EnglishAuction.name and not other


def read(run: Run) -> Sold:
    """Return the finished auctions of a run, with the plans and beliefs of their bidders."""
    played = {game.label: auc_arena.auctions(game) for game in run.games}
    auctions = {label: finished for label, finished in played.items() if finished}
    in_a_row = (game.label for game in run.games if game.planned.get("series"))
    series = [label for label in in_a_row if _alone(auctions.get(label, []))]
    names = list(dict.fromkeys(name for game in run.games for name in game.seats))
    looks = dict(zip(names, make_looks(len(names)), strict=True))
    definition = "authors" if run.edition == "published" else "paper"

    def standings(subset: Sequence[Auction]) -> dict[str, BidderStanding]:
        by_player = {row.player: row for row in auc_arena.standings(subset, definition)}
        return {name: by_player[name] for name in names if name in by_player}

    overall = standings([*chain(*auctions.values())])
    by_label = {label: standings(label_auctions) for label, label_auctions in auctions.items()}
    players = (run.players[name] for name in names)  # those that suit as reference first
    order = sorted(players, key=lambda player: (player.kind != "rational", player.language_model))
    return Sold(auctions, series, looks, by_label, overall, order[0].name if order else "")


NAMES = {"engagement": "bids", "win": "items won"}
FOLLOWS = [f"{plan} plan, {NAMES[statistic]}" for plan, statistic in product(PLANS, STATISTICS)]
RATES = ("failed bids", "failed beliefs on itself", "failed beliefs on others")
NAMED = ("own fields mentioned", "others' fields mentioned")
BIDDER = columns(
    "game, player, strategy",
    f"auctions, {', '.join(RATES + NAMED)}, bad format, unreadable beliefs, lost plans, "
    "changed replans, profit, items won, money left, bids, price to start",
)
BIDDER |= dict.fromkeys(RATES + NAMED, ".3f") | dict.fromkeys(("profit", "money left"), ".0f")
BIDDER |= {"bids": ".1f", "items won": ".1f"}

BIDDERS = (
    "Corrected failure rates (CFR) of bids and of beliefs on oneself and on others: failed / "
    "(correct + failed); replies that broke the form are counted apart. What a belief leaves out "
    "is never wrong: mentioned is the share of the fields known (one's own money, everybody's "
    "profit and items) that the checked replies have. A plan is lost if no reply could be used; "
    "replans: share that changes a priority. Profit, items, money left and accepted bids: mean of "
    "an auction. Auctions are the units of all intervals; those of shares are of the mean of the "
    "auctions' own shares, those of prices of the auctions' own means."
)
SPEARMAN = (
    "Spearman's rank correlation of priorities with accepted bids on an item and with items won, "
    "over all items of all auctions, of the plan before the auction and of the one in force when "
    f"an item is called; *: p < {SURE}, which takes all items as independent, as the paper does. "
    f"From {RANKED} auctions on the mean of their own correlations has an interval. Published: "
    "arXiv 2310.05746, Table 1."
)
RATING = columns("game, player, against", "auctions", "d") | {"rating": ".2f"}
RATING |= {"adjusted": "", "tied": ".0%"}
RATED = (
    "How far a player stands above {}, by profit: the difference of their skills in the "
    "Plackett-Luce model of all auctions of a label at once (odds of finishing above it are e to "
    "that power), with Wald's interval; equal profits share a place. Adjusted: for what a seat is "
    "worth, which can be told where players change seats."
)
SKILLS = (
    "The paper's own rating: TrueSkill by profit over the auctions of a label in their order, from "
    "25 and 25/3, as the mean and the variance of the belief on a player's skill. It depends on "
    "the order of the auctions, and its σ is no interval."
)


def sections(sold: Sold) -> list[Section]:
    """Return failures and money, Table 1 with the run's rows, ratings, figures, and files."""
    if not sold.auctions:
        return [Section(PAPER.title, ABOUT)]
    standings = list(sold.overall.values())
    table1 = columns("player, source, strategy") | dict.fromkeys(FOLLOWS, ".4f")
    follow = [*_correlations(standings)]
    skills = [*_skills(sold)]
    rated, against = [*_ratings(sold)], RATED.format(sold.reference)
    skill = columns("game, player", "auctions, mu, variance")
    files = {
        "correlations": ("player, plan, statistic, rho, p, items", _follows(standings)),
        "money": ("game, player, items, money", _money_rows(sold)),
        "ranks": ("game, player, auction, rank", _ranks(sold)),
    }
    grids = [
        ResultTable(BIDDER, [*_bidders(sold)], "Bidders", "auc_arena_bidders", BIDDERS),
        ResultTable(table1, follow, "Plans that are followed", "auc_arena_table1", SPEARMAN),
        *([ResultTable(RATING, rated, "Ratings", "auc_arena_ratings", against)] if rated else []),
        *([ResultTable(skill, skills, "TrueSkill", "auc_arena_skills", SKILLS)] if skills else []),
        *(
            ResultTable(columns(heads), [*rows], name=f"auc_arena_{name}")
            for name, (heads, rows) in files.items()
        ),
    ]
    count = len(standings)
    sketches = [
        Sketch("Failure rates", partial(_failures, found=standings), canvas.tall(count, 3)),
        Sketch("Profit", partial(_profits, sold=sold), canvas.tall(len(sold.auctions), count)),
        Sketch("Plans and acts", partial(_plans, rows=follow), canvas.tall(len(follow), 2)),
    ]
    return [Section(PAPER.title, ABOUT, grids, sketches)]


def _bidders(sold: Sold) -> Iterator[list[Value]]:
    """Yield each player's failures and means over the auctions of a label, or over all."""
    groups = sold.standings | ({"all": sold.overall} if len(sold.standings) > 1 else {})
    for label, standings in groups.items():
        for standing in standings.values():
            yield [
                *(label, standing.player, standing.strategy or "–", standing.seats),
                *map(standing.shares.get, ("bids", "own", "others", "own_named", "others_named")),
                *(standing.bad_format, standing.bad_beliefs, standing.bad_plans),
                standing.shares["changed"],
                *map(
                    brief, (standing.profit, standing.won, standing.money_left, standing.accepted)
                ),
                brief(standing.price_ratio),
            ]


def _correlations(standings: Sequence[BidderStanding]) -> Iterator[list[Value]]:
    for standing in standings:
        if standing.strategy not in (None, "none"):
            cells = map(_starred, standing.correlations.values())
            yield [standing.player, OWN, standing.strategy, *cells]
    for model, rows in groupby(auc_arena.published(), lambda row: row.model):
        yield [model, PUBLISHED, "–", *(row.spearman for row in rows)]


def _starred(correlation: Correlation | None) -> MeanCell | None:
    if correlation is None:
        return None
    sure = correlation.p is not None and correlation.p < SURE
    return _cell(correlation)._replace(mean=Starred(correlation.rho) if sure else correlation.rho)


def _cell(correlation: Correlation) -> MeanCell:
    count = correlation.interval.n if correlation.interval else 0
    return MeanCell(correlation.rho, None, count, correlation.interval)


def _follows(standings: Sequence[BidderStanding]) -> Iterator[list[Value]]:
    for standing in standings:
        for (plan, statistic), cell in standing.correlations.items():
            if cell:
                yield [standing.player, plan, NAMES[statistic], _cell(cell), cell.p, cell.size]


def _alone(auctions: Sequence[Auction]) -> bool:
    """Return whether all bidders have different names, so that players can be ranked."""
    names = [[bidder.name for bidder in auction.bidders] for auction in auctions]
    return all(len(set(seats)) == len(seats) for seats in names)


def _skills(sold: Sold) -> Iterator[list[Value]]:
    for label, auctions in sold.auctions.items():
        if _alone(auctions):
            for player, (mu, sigma) in ratings(auc_arena.profits(auctions)).items():
                yield [label, player, len(auctions), mu, sigma**2]


def _ratings(sold: Sold) -> Iterator[list[Value]]:
    """Yield each player's rating above the reference, or else above the first player."""
    for label, auctions in sold.auctions.items():
        games = [([b.name for b in a.bidders], [b.profit for b in a.bidders]) for a in auctions]
        fit, adjusted = _fitted(games)
        if fit is None or len(fit.names) < 2:
            continue
        reference = sold.reference if sold.reference in fit.names else fit.names[0]
        order = sorted(fit.names, key=lambda name: -fit.difference(name, reference)[0])
        for name in order:
            mean, interval = fit.difference(name, reference)
            above = None if name == reference else MeanCell(mean, None, len(games), interval)
            yield [label, name, reference, len(games), above, adjusted, fit.tied]


def _fitted(games: Sequence[Ranked]) -> tuple[Ratings | None, str]:
    """Return ratings, adjusted for seats if possible; None if players cannot be compared."""
    for seats in (True, False):
        with suppress(BadParameter):
            return plackett_luce(games, seats), "yes" if seats else "no"
    return None, "no"


def _money_rows(sold: Sold) -> Iterator[list[Value]]:
    """Yield each player's mean money by the number of items sold."""
    for label, auctions in sold.auctions.items():
        for player in sold.standings[label]:
            curves = np.array(auc_arena.budget_curves(auctions, player), np.float64)
            for items, money in enumerate(canvas.points(curves, auc_arena.money_within(auctions))):
                yield [label, player, items, money]


def _ranks(sold: Sold) -> Iterator[list[Value]]:
    """Yield each player's rank by profit in each auction of a series."""
    for label in sold.series:
        for player, ranks in auc_arena.ranks(sold.auctions.get(label, [])).items():
            for number, rank in enumerate(ranks, start=1):
                yield [label, player, number, rank]


def _failures(axes: Axes, found: Sequence[BidderStanding]) -> str:
    look: dict[str, Any] = {"va": "center", "fontsize": 9}
    names = {"bids": "bids", "own": "beliefs on itself", "others": "beliefs on others"}
    looks = zip((BLUE, ORANGE, GREEN), ("", "//", ".."), (-0.26, 0, 0.26), strict=True)
    for (key, name), (colour, hatch, below) in zip(names.items(), looks, strict=True):
        heights, face = np.arange(len(found)) + below, "none" if hatch else colour
        widths = [getattr(standing, key).value or 0.0 for standing in found]
        axes.barh(heights, widths, 0.24, fc=face, ec=colour, hatch=hatch, label=name)
        cells = [standing.shares[key] for standing in found]
        canvas.across(axes, heights, cells, INK)
        for height, width, cell, standing in zip(heights, widths, cells, found, strict=True):
            named = None if key == "bids" else getattr(standing, f"{key}_named").value
            share = "" if named is None else f" {named:.0%}"
            right = max(width, cell.interval.high) if cell and cell.interval else width
            axes.text(right, height, share if any(getattr(standing, key)) else " –", **look)
    cells = [s.shares[k] for s in found for k in ("bids", "own", "others")]
    resting = canvas.resting(cells, "; lines: 95 % intervals over auctions")
    canvas.down(axes, [standing.player for standing in found])
    axes.set(xlabel="corrected failure rate", xlim=(0, 1.08 * axes.get_xlim()[1]))
    return (
        "How often bids are refused, and beliefs on itself and on others wrong, over all auctions; "
        "a dash: it has none of these. Beside the bar of a belief: the share of the known fields "
        "that it mentions, as the rate is of those alone"
        f"{resting}."
    )


def _profits(axes: Axes, sold: Sold) -> str:
    def profit(standing: BidderStanding | None) -> MeanCell | None:
        return standing.profit if standing else None

    rows = sold.standings.values()
    series = {name: [profit(row.get(name)) for row in rows] for name in sold.looks}
    cells = [cell for cells in series.values() for cell in cells]
    resting = canvas.resting(cells, ", with its 95 % interval over auctions")
    canvas.dots(axes, list(sold.auctions), series)
    canvas.zero(axes)
    axes.set_xlabel("profit of an auction")
    return f"Mean profit of an auction{resting}."


def _plans(axes: Axes, rows: Sequence[Sequence[Any]]) -> str:
    looks = zip((3, 4, 5, 6), (BLUE, ORANGE) * 2, "osos", (-0.2, 0.2) * 2, strict=True)
    series = dict(zip(FOLLOWS, looks, strict=True))
    canvas.beside_published(axes, rows, series, filled=lambda column: column > 4)
    canvas.zero(axes)
    axes.set_xlabel("Spearman's ρ with the priority of an item")
    return "How far bids and wins follow the first plan and the one in force; below: published."


def moves(sold: Sold, game: RecordedGame) -> list[Sketch]:
    """Return money left, priorities of each planner, prices by aim, and ranks in a series."""
    auctions = sold.auctions.get(game.label, [])
    if not auctions:
        return []
    sketches = [Sketch("Money left", partial(_money, sold=sold, label=game.label))]
    if game.label in sold.series:
        sketches.append(Sketch("Ranks", partial(_rank_lines, sold=sold, label=game.label)))
    if len(auc_arena.prices(auctions)) > 1:
        sketches.append(Sketch("Winning prices", partial(_prices, auctions=auctions)))
    for player in sold.standings[game.label]:
        matrix = auc_arena.priority_matrix(auctions, player)
        if any(cell is not None for row in matrix.values() for cell in row):
            draw = partial(_priorities, matrix=matrix, player=player)
            sketches.append(Sketch(f"Priorities: {player}", draw, canvas.tall(len(matrix))))
    return sketches


def _money(axes: Axes, sold: Sold, label: str) -> str:
    auctions = sold.auctions[label]
    ends = auc_arena.money_within(auctions)
    for name in sold.standings[label]:
        curves, look = auc_arena.budget_curves(auctions, name), sold.looks[name]
        table = np.array(curves, np.float64)
        items = range(table.shape[1])
        canvas.mean_line(axes, items, table, ends, look, label=name[:24])
    canvas.over_rounds(axes, "items sold")
    axes.set(ylim=(0, None), ylabel="money left, mean")
    count = len(auctions)
    banding = canvas.banded(count, ends, "auction")
    over = "; ".join(filter(None, (f"mean over {count} auctions", banding)))
    over = over if count > 1 else "in one auction"
    return f"Money left after each item in the order of sale, {over}."


def _rank_lines(axes: Axes, sold: Sold, label: str) -> str:
    ranks, names = auc_arena.ranks(sold.auctions[label]), sold.standings[label]
    for name, shift in zip(names, np.linspace(-0.12, 0.12, len(names)), strict=True):
        row, look = ranks[name], sold.looks[name]
        auction_numbers, heights = np.arange(1, len(row) + 1), np.array(row, np.float64) + shift
        drawn = {"color": look.colour, "linestyle": look.dash, "marker": look.mark}
        axes.plot(auction_numbers, heights, **drawn, ms=6, label=name[:24])
    canvas.over_rounds(axes, "auction")
    axes.set_ylim(len(ranks) + 0.4, 0.6)
    canvas.whole(axes.yaxis)
    axes.set_ylabel("rank by profit")
    return "Each player's rank by profit in each auction of the series; equal profits share one."


def _prices(axes: Axes, auctions: Sequence[Auction]) -> str:
    sold = auc_arena.prices(auctions)
    every = [price for prices in sold.values() for price in prices]
    grid, width = np.linspace(0, 1.15 * max(every), 240), bandwidth(every)
    heights = {aim: density(prices, grid, width) for aim, prices in sold.items()}
    top = max(float(height.max()) for height in heights.values())
    looks = zip(sorted(sold, reverse=True), (BLUE, ORANGE), ("-", "--"), (-0.04, -0.1), strict=True)
    for aim, colour, style, below in looks:
        prices = sold[aim]
        axes.plot(grid, heights[aim], style, color=colour, label=f"{aim} ({len(prices)})")
        axes.plot(prices, [top * below] * len(prices), "|", color=colour, alpha=0.5)
    axes.set(xlim=(0, grid[-1]), yticks=[], xlabel="winning price", ylabel="density")
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


def density(values: Sequence[float], grid: Array, width: float) -> Array:
    """Return a Gaussian kernel density at the points of a grid, float64."""
    bells = np.exp(-0.5 * ((grid[:, None] - np.asarray(values, np.float64)) / width) ** 2)
    return bells.mean(axis=1) / (width * np.sqrt(2 * np.pi))


def _priorities(axes: Axes, matrix: Mapping[str, Sequence[float | None]], player: str) -> str:
    cells = canvas.padded(list(matrix.values()))
    edges = [np.arange(count + 1) - 0.5 for count in reversed(cells.shape)]
    edges[0] += 1
    shades = axes.pcolormesh(*edges, cells, cmap="cividis", vmin=1, vmax=3, ec=FAINT, lw=0.5)
    if cells.size <= 100:
        for row, column in zip(*np.nonzero(np.isfinite(cells)), strict=True):
            text, ink = f"{cells[row, column]:.2g}", "black" if cells[row, column] > 2 else "white"
            axes.text(column + 1, row, text, color=ink, ha="center", va="center", fontsize=9)
    axes.grid(visible=False)
    canvas.key_of_shades(axes, shades, "mean priority", ticks=[1, 2, 3])
    canvas.down(axes, list(matrix))
    canvas.over_rounds(axes, "round")
    return (
        f"{player}: mean priority of each item in the plan in force when the items of each round "
        "are called; 3 is the highest. Empty: sold before."
    )


ABOUT = (
    "English auctions of many items with limited money (arXiv 2310.05746), beside the paper's "
    "Table 1. Its figures are printed without numbers."
)
PAPER = Paper(
    "AucArena",
    owns,
    sections,
    moves,
    read,
    measure=Measure(
        "failed bids",
        "corrected failure rate, failed / (correct + failed)",
        "lower",
        auc_arena.failure_rate,
        ".3f",
        lambda rules: (0.0, 1.0),
    ),
)
