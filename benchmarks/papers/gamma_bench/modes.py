"""The bar and the auction at the settings of arXiv 2403.11807v2's Figures 3 and 7 (drawings)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from llm_games.baselines.games.el_farol_bar import theory as bar
from llm_games.benchmarks.judge.means import FREE, SHARE, Ends, mean_of, paid
from llm_games.benchmarks.judge.paper import SCORED, Record, Section, Sketch
from llm_games.benchmarks.judge.result_table import ResultTable, Value
from llm_games.benchmarks.judge.results import scores
from llm_games.benchmarks.papers.gamma_bench.gamma_figures import bid_share, bid_shares
from llm_games.benchmarks.record.recorded_games import RecordedGame, Run
from llm_games.benchmarks.show.page.canvas import line, paths
from llm_games.benchmarks.show.page.figures import thin
from llm_games.benchmarks.show.page.plot_style import GREEN, assign_looks
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INFORMED = (
    "Explicit: after each round all learn how many went; implicit, as in the scored benchmark: "
    "only those who went. Went: share of the decisions; off the ratio: mean distance of the share "
    "who went from the largest in a good bar; crowded: share of the rounds; changed: share of the "
    "decisions unlike one's own before. Means over runs."
)
PRICED = (
    "Bid to value: mean share of the valuation that is bid; at value: share of the bids that are "
    "the valuation (both without valuations of 0); unbid: mean valuation less bid; efficient: "
    "share of the rounds in which a highest valuation won; payoff: of a seat and run. Means over "
    "runs. At a second price bidding one's valuation is weakly dominant. S6 of v2, 100 less what "
    "is unbid, is of second-price runs; that of later versions is of first-price ones."
)


class ModeColumn(NamedTuple):
    """A column about a run: its format, its ends, and its value."""

    form: str
    ends: Callable[[Any], Ends]
    of: Callable[[Any, Sequence[Record]], float | None]


OTHER = {"el_farol_bar": ("mode", "explicit"), "sealed_bid_auction": ("price", "second")}
"""The parameter of a game, and its value, that the scored benchmark of later versions lacks."""


def has_other_mode(games: Sequence[RecordedGame]) -> bool:
    """Return whether one of these games, all of one name, has the mode of `OTHER`."""
    term, value = OTHER.get(games[0].name, ("name", ""))
    return any(getattr(game.rules, term) == value for game in games)


def sections(run: Run) -> list[Section]:
    """Return sections on the explicit bar and the second-price auction of a run."""
    makers = {"el_farol_bar": _bars, "sealed_bid_auction": _auctions}
    done = [[game for game in games if game.done] for games in run.by_game().values()]
    return [makers[games[0].name](games) for games in done if games and has_other_mode(games)]


def _rows(
    games: Sequence[RecordedGame], term: str, table_columns: Mapping[str, ModeColumn]
) -> Iterator[list[Value]]:
    """Yield a row for each game: the means of the columns over its runs, and a seat's payoff."""
    for game in games:
        row: list[Value] = [game.label, str(getattr(game.rules, term)), len(game.done)]
        for column in table_columns.values():
            values = [column.of(episode.rules, episode.records) for episode in game.done]
            row.append(mean_of([x for x in values if x is not None], column.ends(game.rules)))
        earned = [float(e.earned.mean()) for e in game.done]
        yield [*row, paid(earned, game.rules.core.payable)]


def _heads(term: str, table_columns: Mapping[str, ModeColumn]) -> dict[str, str]:
    forms = {name: column.form for name, column in table_columns.items()}
    return {"game": "", term: "", "runs": "d"} | forms | {"payoff": ".2f"}


def _share(rules: Any) -> Ends:
    return SHARE


def _column(
    form: str, ends: Callable[[Any], Ends], keys: str, of: Callable[..., Any]
) -> ModeColumn:
    """`of` takes the rules and, round by round, arrays of what is recorded by these keys."""

    def value(rules: Any, records: Sequence[Record]) -> float | None:
        number = of(rules, *(np.array([record[k] for record in records]) for k in keys.split()))
        return None if number is None else float(number)

    return ModeColumn(form, ends, value)


def _off_ratio(rules: Any, goers: Array) -> Any:
    return np.abs(goers / rules.players - float(rules.ratio)).mean()


def _changed(rules: Any, actions: Array) -> Any:
    went = actions > 0
    return (went[1:] != went[:-1]).mean() if len(went) > 1 else None


BAR = {
    "went": _column(".3f", _share, "goers", lambda rules, goers: goers.mean() / rules.players),
    "off the ratio": _column(".3f", _share, "goers", _off_ratio),
    "crowded": _column(".3f", _share, "good", lambda rules, good: np.logical_not(good).mean()),
    "changed": _column(".3f", _share, "actions", _changed),
}


def _bars(games: Sequence[RecordedGame]) -> Section:
    rows = [*_rows(games, "mode", BAR)]
    heads = _heads("mode", BAR)
    grid = ResultTable(heads, rows, name="gamma_bench_bar", note=INFORMED, title="Decisions")
    sketch = Sketch("Attendance", partial(_attendance, games=games))
    return Section("Explicit and implicit bar (v2, Figure 3)", grids=[grid], sketches=[sketch])


def _attendance(axes: Axes, games: Sequence[RecordedGame]) -> str:
    for game, look in assign_looks(games):
        goers = [[record["goers"] for record in e.records] for e in game.done]
        paths(axes, goers, game.setting[:40], (0.0, float(game.rules.players)), look)
    venue = bar.Bar.of(games[0].rules)
    mixed = bar.mixed_equilibrium(venue) * venue.players
    line(axes, venue.capacity, f"capacity {venue.capacity}", GREEN)
    axes.set(ylabel="players at the bar", ylim=(-0.3, venue.players + 0.3))
    return (
        "How many went in each round. Whatever is learned after it, exactly as many as the "
        f"capacity is an equilibrium of the round, and {mixed:.2f} on average in mixed play"
        f"{thin(games[0], SHARE)}."
    )


def _unbid_ends(rules: Any) -> Ends:
    return (0.0, float(rules.valuation_max)) if rules.bid_range == "own_value" else FREE


def _efficient(rules: Any, values: Array, winners: Array) -> Any:
    return (values[np.arange(len(values)), winners] == values.max(axis=1)).mean()


BIDS = "valuations actions"
AUCTION = {
    "bid to value": _column(".3f", bid_shares, BIDS, lambda _, v, b: (b[v > 0] / v[v > 0]).mean()),
    "at value": _column(".3f", _share, BIDS, lambda _, v, b: (b == v)[v > 0].mean()),
    "unbid": _column(".2f", _unbid_ends, BIDS, lambda _, v, b: (v - b).mean()),
    "efficient": _column(".3f", _share, "valuations winner", _efficient),
}
SCORES = {"S6, v2": "v2", "S6, corrected": "corrected"}


def _auctions(games: Sequence[RecordedGame]) -> Section:
    rows = [*_rows(games, "price", AUCTION)]
    for row, game in zip(rows, games, strict=True):
        row += [mean_of(scores(game, edition), SCORED) for edition in SCORES.values()]
    heads = _heads("price", AUCTION) | dict.fromkeys(SCORES, ".1f")
    grid = ResultTable(heads, rows, name="gamma_bench_price", note=PRICED, title="Bids")
    sketch = Sketch("Bids to valuations", partial(_shading, games=games))
    return Section("First and second price (v2, Figure 7)", grids=[grid], sketches=[sketch])


def _shading(axes: Axes, games: Sequence[RecordedGame]) -> str:
    for game, look in assign_looks(games):
        shares = [[bid_share(r["actions"], r) for r in e.records] for e in game.done]
        paths(axes, shares, game.setting[:40], bid_shares(game.rules), look)
    line(axes, 1, "own valuation", GREEN)
    axes.set(ylabel="mean bid / valuation", ylim=(min(0, axes.get_ylim()[0]), None))
    return (
        "Bid as a share of the valuation in each round, without valuations of 0: at a second price "
        "1 is weakly dominant, at the own price bids are shaded"
        f"{thin(games[0], bid_shares(games[0].rules))}."
    )
