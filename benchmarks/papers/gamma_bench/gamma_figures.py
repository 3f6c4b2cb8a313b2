"""Plots of the benchmark's games: play beside theory's predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_games.baselines.games.beauty_contest import theory as guess
from llm_games.baselines.games.el_farol_bar import theory as bar
from llm_games.baselines.games.sealed_bid_auction.sealed_first_price import equilibrium
from llm_games.benchmarks.judge.means import FREE, SHARE, Ends
from llm_games.benchmarks.judge.paper import Draw
from llm_games.benchmarks.papers.gamma_bench.scores import aims_high, optimal_plan, shot_of
from llm_games.benchmarks.record.recorded_games import RecordedGame
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.canvas import line, paths
from llm_games.benchmarks.show.page.figures import moved, thin
from llm_games.benchmarks.show.page.plot_style import BLUE, GREEN, ORANGE, PURPLE
from llm_games.games.pirate_game.rules import VOTE
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _per_round(game: RecordedGame, value: Callable[[dict[str, Any]], Any]) -> list[list[Any]]:
    return [[value(record) for record in e.records] for e in game.played]


def _beauty_contest(axes: Axes, game: RecordedGame) -> str:
    rules = game.rules
    ends = numbers(rules)
    paths(axes, _per_round(game, lambda r: r["target"]), "target", ends, GREEN)
    paths(axes, _per_round(game, lambda r: r["mean"]), "mean number", ends)
    axes.set_ylabel("number")
    if rules.ratio == 1:
        return f"Mean number of each round; any common number is an equilibrium{thin(game, ends)}."
    end = guess.undominated(guess.ContestRules.of(rules)) / rules.unit
    line(axes, end, f"equilibrium: all at {end:g}")
    canvas.room(axes)
    return (
        f"Mean number and target ({rules.ratio} of it) of each round; higher-order reasoning leads "
        f"to {end:g}{thin(game, ends)}."
    )


def _el_farol_bar(axes: Axes, game: RecordedGame) -> str:
    venue, players = bar.Bar.of(game.rules), game.rules.players
    mixed = bar.mixed_equilibrium(venue)
    ends = 0.0, float(players)
    paths(axes, _per_round(game, lambda r: r["goers"]), "goers", ends)
    line(axes, venue.capacity, f"capacity {venue.capacity}", GREEN, "-")
    line(axes, mixed * players, f"mixed equilibrium {mixed * players:.2f}")
    axes.set(ylabel="players at the bar", ylim=(-0.3, players + 0.3))
    return (
        "How many went in each round; any profile with exactly as many as the capacity is an "
        f"equilibrium, and everybody going with probability {mixed:.3f} is another"
        f"{thin(game, ends)}."
    )


def _divide_dollar(axes: Axes, game: RecordedGame) -> str:
    golds, ends = game.rules.golds, moved(game.rules)
    ends = ends[0] * game.rules.players, ends[1] * game.rules.players
    paths(axes, _per_round(game, lambda r: r["sum"]), "sum of bids", ends)
    line(axes, golds, f"equilibrium: sum {golds}")
    axes.set(ylabel="golds", ylim=(min(0, axes.get_ylim()[0]), None))
    return f"Sum of the bids in each round; above {golds} nobody is paid{thin(game, ends)}."


def _public_goods(axes: Axes, game: RecordedGame) -> str:
    rules, ends = game.rules, moved(game.rules)
    means = [(e.actions.sum(axis=1) / rules.players).tolist() for e in game.played]
    paths(axes, means, "mean contribution", ends)
    if rules.ratio != rules.players:
        best = 0 if rules.ratio < rules.players else rules.tokens
        line(axes, best, f"equilibrium: {best}")
    if rules.ratio != 1:
        optimum = 0 if rules.ratio < 1 else rules.tokens
        line(axes, optimum, f"best for all: {optimum}", GREEN, ":")
    axes.set_ylabel("tokens")
    return f"Mean contribution per player in each round{thin(game, ends)}."


def _diners_dilemma(axes: Axes, game: RecordedGame) -> str:
    rules = game.rules
    gain = (rules.costly_utility - rules.cheap_utility) * rules.players
    gain -= rules.costly_price - rules.cheap_price
    shares = _per_round(game, lambda r: r["costly"] / rules.players)
    paths(axes, shares, "share of costly dishes", SHARE)
    if gain:
        line(axes, float(gain > 0), f"equilibrium: all {'costly' if gain > 0 else 'cheap'}")
    line(axes, 0, "best for all: all cheap", GREEN, ":")
    axes.set(ylabel="share", ylim=(-0.05, 1.05))
    return f"Share of players who ordered the costly dish in each round{thin(game, SHARE)}."


def _sealed_bid_auction(axes: Axes, game: RecordedGame) -> str:
    rules = game.rules
    pairs = Counter[tuple[int, int]]()
    for record in _records(game):
        pairs.update(zip(record["valuations"], record["actions"], strict=True))
    values, bids = np.array(list(pairs)).T
    sizes = 10 * np.sqrt(list(pairs.values()))
    axes.scatter(values, bids, s=sizes, color=BLUE, alpha=0.45, linewidths=0, label="bid")
    ends = np.array([rules.valuation_min, rules.valuation_max])
    axes.plot(ends, ends, color=GREEN, linestyle=":", label="own valuation")
    axes.set(xlabel="valuation", ylabel="bid")
    sentence = "Every bid against its valuation, larger dots for more of them; "
    if rules.price == "second":
        return sentence + "bidding one's valuation is weakly dominant."
    share = 1 - 1 / rules.players
    axes.plot(ends, ends * share, color=ORANGE, linestyle="--", label=f"{share:.3g}·v")
    telling = "and are told" if rules.tell_prior else "though the prompt does not tell it"
    assumed = f"; it takes bidders to know the law of valuations, {telling}."
    solution = equilibrium(rules)
    if solution is None:
        equilibrium_text = f"{share:.3g}·v is the equilibrium for independent uniform valuations"
        return sentence + equilibrium_text + assumed
    grid = solution.values
    axes.plot(grid, solution.mean_bid(grid), color=ORANGE, label="near equilibrium")
    return sentence + (
        f"the dashed line, {share:.3g}·v, is the equilibrium of independent uniform valuations, "
        f"the solid one the mean bid near that of this draw of distinct ones{assumed}"
    )


def _shading(axes: Axes, game: RecordedGame) -> str:
    rules = game.rules
    ends = bid_shares(rules)
    shares = _per_round(game, lambda r: bid_share(r["actions"], r))
    paths(axes, shares, "mean bid / valuation", ends)
    solution = equilibrium(rules) if rules.price == "first" else None
    if rules.price == "second":
        line(axes, 1, "dominant: own valuation")
    elif solution is not None:
        best = _per_round(game, lambda r: bid_share(solution.mean_bid(r["valuations"]), r))
        paths(axes, best, "near equilibrium", ends, ORANGE)
    axes.set(ylabel="share of valuation", ylim=(min(0, axes.get_ylim()[0]), None))
    sold = [r["valuations"][r["winner"]] == max(r["valuations"]) for r in _records(game)]
    return (
        "Bid as a share of the valuation in each round; the item went to the highest valuation "
        f"in {np.mean(sold):.0%} of them{thin(game, ends)}."
    )


def numbers(rules: Any) -> Ends:
    """Return the ends between which a contest's mean and target lie, 0 included."""
    low, high = moved(rules)
    factor = max(1.0, float(rules.ratio))
    return min(low * factor, 0.0), max(high * factor, 0.0)


def bid_shares(rules: Any) -> Ends:
    """Return the ends between which a bid's share of the valuation lies."""
    return SHARE if rules.bid_range == "own_value" else FREE


def bid_share(bids: Array | Sequence[int], record: Mapping[str, Any]) -> float:
    """Return the mean of bid / valuation of one round, without valuations of 0."""
    pairs = zip(bids, record["valuations"], strict=True)
    return float(np.mean([bid / value for bid, value in pairs if value]))


def _records(game: RecordedGame) -> Iterator[dict[str, Any]]:
    return (record for episode in game.played for record in episode.records)


def _battle_royale(axes: Axes, game: RecordedGame) -> str:
    shots = well = 0
    shown: dict[str, list[tuple[float, float]]] = {}
    for run, episode in enumerate(game.played, start=1):
        for number, r in enumerate(episode.records, start=1):
            high = aims_high(shot_of(r), r["rates"])
            shots, well = shots + 1, well + high
            if run <= canvas.MOST:
                kind = "hit" if r["hit"] else "missed" if r["target"] >= 0 else "missed on purpose"
                shown.setdefault(kind, []).append((number, run))
                if high:
                    shown.setdefault("at the strongest", []).append((number, run + 0.3))
    for kind, colour, marker, size in (
        ("hit", ORANGE, "s", {"ms": 6}),
        ("missed", BLUE, "o", {"ms": 6}),
        ("missed on purpose", PURPLE, "x", {"ms": 6}),
        ("at the strongest", GREEN, "_", {"ms": 9, "mew": 2.2}),
    ):
        if kind in shown:
            axes.plot(*zip(*shown[kind], strict=True), marker, color=colour, label=kind, **size)
    canvas.over_rounds(axes, "shot")
    canvas.whole(axes.yaxis)
    runs = min(len(game.played), canvas.MOST)
    axes.set(ylabel="run", ylim=(runs + 0.7, 0.4))
    which = "every run" if runs == len(game.played) else f"the first {runs} runs"
    marked = f"underlined if aimed at the strongest other ({well / shots:.0%}"
    marked += ")" if runs == len(game.played) else f" in all {len(game.played):,} runs)"
    return f"Every shot of {which}, {marked}."


def _pirate_plans(axes: Axes, game: RecordedGame) -> str:
    rules = game.rules
    plans = np.array([e.records[0]["plan"] for e in game.played])
    seats = np.arange(1, rules.players + 1)
    plans = plans[canvas.shown_runs(len(plans))]
    shift = np.linspace(-0.2, 0.2, len(plans))[:, None] if len(plans) > 1 else 0
    axes.plot((seats + shift).ravel(), plans.ravel(), "o", color=BLUE, alpha=0.5, ms=5, mew=0)
    axes.plot([], [], "o", color=BLUE, ms=5, label="proposed, each run")
    if rules.quota == "half" and rules.gold >= (rules.players - 1) // 2:
        best = optimal_plan(rules.players, rules.gold)
        axes.plot(seats, best, "D", color=ORANGE, mfc="none", ms=8, label="optimal plan")
    axes.set_yscale("symlog", linthresh=2)
    ticks = [t for t in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500) if t < rules.gold]
    axes.set_yticks([*ticks, rules.gold], [str(t) for t in (*ticks, rules.gold)])
    axes.minorticks_off()
    axes.set(ylim=(-0.4, rules.gold * 1.05), ylabel="coins")
    canvas.over_rounds(axes, "rank")
    return "What the first proposer of each run offers to each rank, against the optimal plan."


OFFERS = ((0, 0), (1, 1), (2, 4), (5, 9), (10, 19), (20, None))


def _pirate_votes(axes: Axes, game: RecordedGame) -> str:
    pairs = Counter(
        (record["plan"][seat], record["votes"][seat])
        for record in _records(game)
        if record["phase"] == VOTE
        for seat in np.flatnonzero(record["alive"])[1:]
    )
    offers, votes, times = np.array([(*pair, n) for pair, n in pairs.items()]).reshape(-1, 3).T
    names, shares = [], []
    for low, high in OFFERS:
        chosen = (offers >= low) & (offers <= (np.inf if high is None else high))
        name = str(low) if low == high else f"{low}+" if high is None else f"{low}–{high}"
        count = times[chosen].sum()
        names.append(f"{name}\n({count:.0f})")
        shares.append((votes * times)[chosen].sum() / count if count else np.nan)
    axes.bar(range(len(OFFERS)), np.nan_to_num(shares), color=BLUE, width=0.6)
    axes.set_xticks(range(len(OFFERS)), names)
    axes.set_xlabel("coins offered (number of votes)")
    axes.set(ylabel="share of votes for it", ylim=(0, 1.05))
    return "How often pirates accepted, by the share they were offered, over all votes of all runs."


ACTIONS: Mapping[str, str] = {
    "beauty_contest": "mean number",
    "el_farol_bar": "share who went",
    "divide_dollar": "mean bid",
    "public_goods": "mean contribution",
    "diners_dilemma": "share of costly dishes",
    "sealed_bid_auction": "mean bid",
}
"""What the mean of some seats' actions is, where it means something."""


FIGURES: Mapping[str, Sequence[tuple[str, Draw]]] = {
    "beauty_contest": (("Numbers", _beauty_contest),),
    "el_farol_bar": (("Attendance", _el_farol_bar),),
    "divide_dollar": (("Sum of bids", _divide_dollar),),
    "public_goods": (("Contributions", _public_goods),),
    "diners_dilemma": (("Orders", _diners_dilemma),),
    "sealed_bid_auction": (("Bids", _sealed_bid_auction), ("Shading", _shading)),
    "battle_royale": (("Shots", _battle_royale),),
    "pirate_game": (("First plans", _pirate_plans), ("Votes", _pirate_votes)),
}
"""The plots of each game, in order; all games have payoffs besides."""


def drawn(game: RecordedGame) -> Sequence[tuple[str, Draw]]:
    """Return the plots of a game; none for games outside the benchmark."""
    return FIGURES.get(game.rules.name, ())
