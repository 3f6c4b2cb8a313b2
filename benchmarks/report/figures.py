"""The plots of each game: what was done, against what theory says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from llm_games.baselines.deviation import has_deviation
from llm_games.baselines.games.beauty_contest import theory as guess
from llm_games.baselines.games.el_farol_bar import theory as bar
from llm_games.baselines.games.sealed_bid_auction.first_price import equilibrium
from llm_games.benchmarks.papers.gamma_bench.scores import aims_high, optimal_plan, shot_of
from llm_games.benchmarks.report import canvas
from llm_games.benchmarks.report.canvas import BLUE, GREEN, ORANGE, PURPLE, Picture, line, paths
from llm_games.benchmarks.report.data import Episode, Run, Table, regret
from llm_games.games.pirate_game.rules import VOTE
from llm_games.questions import MISSING, Choice
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[..., str]
"""Takes axes and ``table``, draws, and returns the sentence that explains the plot."""


class Sketch(NamedTuple):
    """A figure to be drawn; `draw` gets the axes and returns the sentence that explains it."""

    title: str
    draw: Callable[[Axes], str]
    size: tuple[float, float] = canvas.HALF


class Plot(NamedTuple):
    """One plot on the page: its heading, what its files are called after, and the picture."""

    title: str
    name: str
    picture: Picture
    size: tuple[float, float] = canvas.THIRD


def drawn(sketches: Sequence[Sketch], name: str, prefix: str) -> list[Plot]:
    """Draw figures whose files are called after `name`; `prefix` keeps ids unique."""
    return [
        Plot(
            sketch.title,
            f"{name} {sketch.title.lower()}" if i else name,
            canvas.picture(f"{prefix}-{i}", sketch.draw, sketch.size),
            sketch.size,
        )
        for i, sketch in enumerate(sketches)
    ]


def moves(table: Table, all_of_them: bool = True) -> list[Sketch]:
    """Return the figures of a game that has been played, or only those of its moves."""
    draws = [*_of_its_own(table)]
    if len(set(table.seats)) > 1 and table.rules.name in ACTIONS:
        draws.insert(1, ("By player", _by_player))
    if all_of_them:
        draws.append(("Payoffs", _payoffs))
        draws += [("Regret", _regret)] if has_deviation(table.rules.name) else []
    size = canvas.HALF if len(draws) > 3 else canvas.THIRD
    return [Sketch(title, partial(draw, table=table), size) for title, draw in draws]


def _of_its_own(table: Table) -> tuple[tuple[str, Draw], ...]:
    """Return the plots of this game's moves; sessions of an auction record other things."""
    session = getattr(table.rules, "assets", None) is not None
    own = None if session else FIGURES.get(table.rules.name)
    return own or (("Moves", _moves),)


def replies(run: Run, prefix: str) -> list[Plot]:
    """Draw how long completions took; nothing if none was asked for."""
    asked = [player for player in run.players.values() if player.latencies]
    if not asked:
        return []

    def latency(axes: Axes) -> str:
        for player, colour in zip(asked, canvas.colours(len(asked)), strict=True):
            waited = np.sort(player.latencies)
            share = np.arange(1, len(waited) + 1) / len(waited)
            thinned = np.unique(np.linspace(0, len(waited) - 1, 200).astype(int))
            axes.step(waited[thinned], share[thinned], color=colour, label=player.name[:40])
        axes.set_xlabel("seconds")
        axes.set_ylabel("share of calls")
        axes.set_ylim(0, 1.03)
        return "Share of the calls that were answered within so many seconds."

    return [Plot("Latency", "latency", canvas.picture(f"{prefix}-latency", latency, canvas.THIRD))]


def against_settings(
    names: Sequence[str],
    own: Sequence[float | None],
    printed: Sequence[float | None],
    kinds: Sequence[str],
    prefix: str,
    title: str,
) -> Plot:
    """Draw a score at several settings beside the published one at the same settings.

    Lines join settings of the same kind that stand side by side.
    """

    def draw(axes: Axes) -> str:
        places = np.arange(len(names))
        pairs = (("this run", own, BLUE, "o-"), ("GPT-3.5-0125, published", printed, ORANGE, "D--"))
        for label, values, colour, look in pairs:
            heights = np.array([np.nan if v is None else v for v in values], np.float64)
            for number, (_, group) in enumerate(groupby(range(len(names)), key=lambda i: kinds[i])):
                at = list(group)
                if not np.isnan(heights).all():
                    name = None if number else label
                    axes.plot(at, heights[at], look, color=colour, label=name, ms=5)
        long = max(map(len, names)) * len(names) > 50
        axes.set_xticks(places, names, rotation=40 if long else 0, ha="right" if long else "center")
        axes.set_ylim(-4, 104)
        axes.set_ylabel("score")
        return "The score at each setting, by the formulas of the published runs (v4)."

    return Plot(title, f"settings {title}", canvas.picture(prefix, draw, canvas.THIRD))


def _thin(table: Table) -> str:
    """Explain the thin lines, if there are any."""
    many = len(table.played) > 1
    return "; thin lines: single runs, band: ± 1 standard deviation over them" if many else ""


def _per_round(table: Table, value: Callable[[dict[str, Any]], float | None]) -> list[list[float]]:
    rows = [[value(record) for record in e.records] for e in table.played]
    return [[np.nan if x is None else float(x) for x in row] for row in rows]


def _beauty_contest(axes: Axes, table: Table) -> str:
    game: Any = table.rules
    paths(axes, _per_round(table, lambda r: r["target"]), "target", GREEN)
    paths(axes, _per_round(table, lambda r: r["mean"]), "mean number")
    axes.set_ylabel("number")
    if game.ratio == 1:
        return f"Mean number of each round; any common number is an equilibrium{_thin(table)}."
    end = guess.rational(guess.Contest.of(game)) / game.unit
    line(axes, end, f"equilibrium: all at {end:g}")
    canvas.room(axes)
    return (
        f"Mean number and target ({game.ratio} of it) of each round; higher-order reasoning leads "
        f"to {end:g}{_thin(table)}."
    )


def _el_farol_bar(axes: Axes, table: Table) -> str:
    game: Any = table.rules
    place = bar.Bar.of(game)
    mixed = bar.mixed_equilibrium(place)
    paths(axes, _per_round(table, lambda r: r["goers"]), "goers")
    line(axes, place.capacity, f"capacity {place.capacity}", GREEN, "-")
    line(axes, mixed * game.players, f"mixed equilibrium {mixed * game.players:.2f}")
    axes.set_ylabel("players at the bar")
    axes.set_ylim(-0.3, game.players + 0.3)
    return (
        "How many went in each round; any profile with exactly as many as the capacity is an "
        f"equilibrium, and everybody going with probability {mixed:.3f} is another{_thin(table)}."
    )


def _divide_dollar(axes: Axes, table: Table) -> str:
    game: Any = table.rules
    golds = game.golds
    paths(axes, _per_round(table, lambda r: r["sum"]), "sum of bids")
    line(axes, golds, f"equilibrium: sum {golds}")
    axes.set_ylabel("golds")
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    return f"Sum of the bids in each round; above {golds} nobody is paid{_thin(table)}."


def _public_goods(axes: Axes, table: Table) -> str:
    game: Any = table.rules
    paths(axes, _per_round(table, lambda r: np.mean(r["actions"])), "mean contribution")
    if game.ratio != game.players:
        best = 0 if game.ratio < game.players else game.tokens
        line(axes, best, f"equilibrium: {best}")
    if game.ratio != 1:
        optimum = 0 if game.ratio < 1 else game.tokens
        line(axes, optimum, f"best for all: {optimum}", GREEN, ":")
    axes.set_ylabel("tokens")
    return f"Mean contribution per player in each round{_thin(table)}."


def _diners_dilemma(axes: Axes, table: Table) -> str:
    game: Any = table.rules
    gain = (game.costly_utility - game.cheap_utility) * game.players
    gain -= game.costly_price - game.cheap_price
    paths(axes, _per_round(table, lambda r: r["costly"] / game.players), "share of costly dishes")
    if gain:
        line(axes, float(gain > 0), f"equilibrium: all {'costly' if gain > 0 else 'cheap'}")
    line(axes, 0, "best for all: all cheap", GREEN, ":")
    axes.set_ylabel("share")
    axes.set_ylim(-0.05, 1.05)
    return f"Share of players who ordered the costly dish in each round{_thin(table)}."


def _sealed_bid_auction(axes: Axes, table: Table) -> str:
    game: Any = table.rules
    pairs = Counter(
        zip(table.stack("valuations").ravel(), table.stack("actions").ravel(), strict=True)
    )
    values, bids = np.array(list(pairs)).T
    sizes = 10 * np.sqrt(list(pairs.values()))
    axes.scatter(values, bids, s=sizes, color=BLUE, alpha=0.45, linewidths=0, label="bid")
    ends = np.array([game.valuation_min, game.valuation_max])
    axes.plot(ends, ends, color=GREEN, linestyle=":", label="own valuation")
    axes.set_xlabel("valuation")
    axes.set_ylabel("bid")
    sentence = "Every bid against its valuation, larger dots for more of them; "
    if game.price == "second":
        return sentence + "bidding one's valuation is weakly dominant."
    share = 1 - 1 / game.players
    axes.plot(ends, ends * share, color=ORANGE, linestyle="--", label=f"{share:.3g}·v")
    solution = equilibrium(game)
    if solution is None:
        return sentence + f"{share:.3g}·v is the equilibrium for independent uniform valuations."
    grid = solution.values
    axes.plot(grid, solution.mean_bid(grid), color=ORANGE, label="equilibrium")
    return sentence + (
        "the solid line is the mean bid in the equilibrium of this draw of distinct valuations, "
        f"{share:.3g}·v that of independent uniform ones."
    )


def _shading(axes: Axes, table: Table) -> str:
    game: Any = table.rules
    paths(axes, _per_round(table, lambda r: _share(r["actions"], r)), "mean bid / valuation")
    solution = equilibrium(game) if game.price == "first" else None
    if game.price == "second":
        line(axes, 1, "dominant: own valuation")
    elif solution is not None:
        best = _per_round(table, lambda r: _share(solution.mean_bid(r["valuations"]), r))
        paths(axes, best, "equilibrium", ORANGE)
    axes.set_ylabel("share of valuation")
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    sold = [r["valuations"][r["winner"]] == max(r["valuations"]) for r in _records(table)]
    return (
        "Bid as a share of the valuation in each round; the item went to the highest valuation "
        f"in {np.mean(sold):.0%} of them{_thin(table)}."
    )


def _share(bids: Array | Sequence[int], record: dict[str, Any]) -> float:
    pairs = zip(bids, record["valuations"], strict=True)
    return float(np.mean([bid / value for bid, value in pairs if value]))


def _records(table: Table) -> list[dict[str, Any]]:
    return [record for episode in table.played for record in episode.records]


def _battle_royale(axes: Axes, table: Table) -> str:
    kinds: dict[str, list[tuple[int, int]]] = {"hit": [], "missed": [], "missed on purpose": []}
    high = []
    for row, episode in enumerate(table.played, start=1):
        for shot, record in enumerate(episode.records, start=1):
            missed = "missed on purpose" if record["target"] < 0 else "missed"
            kinds["hit" if record["hit"] else missed].append((shot, row))
            if aims_high(shot_of(record), record["rates"]):
                high.append((shot, row + 0.3))
    looks = {"hit": (ORANGE, "s"), "missed": (BLUE, "o"), "missed on purpose": (PURPLE, "x")}
    for kind, (colour, marker) in looks.items():
        if kinds[kind]:
            axes.plot(*zip(*kinds[kind], strict=True), marker, color=colour, label=kind, ms=6)
    if high:
        axes.plot(
            *zip(*high, strict=True), "_", color=GREEN, ms=9, mew=2.2, label="at the strongest"
        )
    canvas.over_rounds(axes, "shot")
    axes.set_ylabel("run")
    canvas.whole(axes.yaxis)
    axes.set_ylim(len(table.played) + 0.7, 0.4)
    share = len(high) / len(_records(table))
    return f"Every shot of every run, underlined if aimed at the strongest other ({share:.0%})."


def _pirate_plans(axes: Axes, table: Table) -> str:
    game: Any = table.rules
    plans = np.array([e.records[0]["plan"] for e in table.played])
    seats = np.arange(1, game.players + 1)
    shift = np.linspace(-0.2, 0.2, len(plans))[:, None] if len(plans) > 1 else 0
    axes.plot((seats + shift).ravel(), plans.ravel(), "o", color=BLUE, alpha=0.5, ms=5, mew=0)
    axes.plot([], [], "o", color=BLUE, ms=5, label="proposed, each run")
    if game.quota == "half" and game.gold >= (game.players - 1) // 2:
        best = optimal_plan(game.players, game.gold)
        axes.plot(seats, best, "D", color=ORANGE, mfc="none", ms=8, label="optimal plan")
    axes.set_yscale("symlog", linthresh=2)
    ticks = [t for t in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500) if t < game.gold]
    axes.set_yticks([*ticks, game.gold], [str(t) for t in (*ticks, game.gold)])
    axes.minorticks_off()
    axes.set_ylim(-0.4, game.gold * 1.4)
    axes.set_ylabel("coins")
    canvas.over_rounds(axes, "rank")
    return "What the first proposer of each run offers to each rank, against the optimal plan."


OFFERS = ((0, 0), (1, 1), (2, 4), (5, 9), (10, 19), (20, None))


def _pirate_votes(axes: Axes, table: Table) -> str:
    offers, votes = _offers(table)
    names, shares = [], []
    for low, high in OFFERS:
        chosen = (offers >= low) & (offers <= (np.inf if high is None else high))
        name = str(low) if low == high else f"{low}+" if high is None else f"{low}–{high}"
        names.append(f"{name}\n({chosen.sum()})")
        shares.append(votes[chosen].mean() if chosen.any() else np.nan)
    axes.bar(range(len(OFFERS)), np.nan_to_num(shares), color=BLUE, width=0.6)
    axes.set_xticks(range(len(OFFERS)), names)
    axes.set_xlabel("coins offered (number of votes)")
    axes.set_ylabel("share of votes for it")
    axes.set_ylim(0, 1.05)
    return "How often pirates accepted, by the share they were offered, over all votes of all runs."


def _offers(table: Table) -> tuple[Array, Array]:
    """Return what each voter was offered and whether it accepted, one axis."""
    pairs = [
        (record["plan"][seat], record["votes"][seat])
        for record in _records(table)
        if record["phase"] == VOTE
        for seat in np.flatnonzero(record["alive"])[1:]
    ]
    offers, votes = np.array(pairs).reshape(-1, 2).T
    return offers, votes


def _moves(axes: Axes, table: Table) -> str:
    """Draw the moves of a game that has no plot of its own."""
    state = table.rules.reset(np.random.default_rng(0))
    questions = (table.rules.question(state, seat) for seat in range(table.rules.players))
    question = next((q for q in questions if q is not None), None)
    if isinstance(question, Choice):
        return _choices(axes, table, question.words)
    unit = 10 ** getattr(question, "decimals", 0)
    names = list(dict.fromkeys(table.seats))
    for name, colour in zip(names, canvas.colours(len(names)), strict=True):
        seats = range(table.seats.count(name))
        paths(axes, [_path(table, name, k, unit) for k in seats], name[:40], colour)
    axes.set_ylabel(question.key.replace("_", " ") if question else "move")
    canvas.room(axes)
    return (
        "Moves of each seat over the rounds, mean over the runs (thin lines), and the mean of the "
        "seats of one player (thick; band: ± 1 standard deviation over seats)."
    )


def _path(table: Table, name: str, k: int, unit: int) -> list[float]:
    """Return the mean move of a player's k-th seat at each step, NaN where it made none."""
    runs = [[_number(record, e.of(name)[k]) / unit for record in e.records] for e in table.played]
    steps = zip_longest(*runs, fillvalue=np.nan)
    made = ([move for move in step if not np.isnan(move)] for step in steps)
    return [float(np.mean(moves)) if moves else np.nan for moves in made]


def _number(record: dict[str, Any], seat: int) -> float:
    move = record["actions"][seat]
    return float(move) if np.ndim(move) == 0 and move >= 0 else np.nan


def _choices(axes: Axes, table: Table, words: Mapping[str, int]) -> str:
    meant = {action: word for word, action in reversed(list(words.items()))}
    for (action, word), colour in zip(meant.items(), canvas.colours(len(meant)), strict=True):
        shares = [
            [np.mean(np.equal(r["actions"], action)) for r in e.records] for e in table.played
        ]
        paths(axes, shares, word, colour)
    axes.set_ylabel("share of the players")
    axes.set_ylim(-0.03, 1.03)
    return f"Share of the players who chose each word in each round{_thin(table)}."


def _payoffs(axes: Axes, table: Table) -> str:
    episodes = table.done or table.played
    totals = np.array([e.rewards.sum(axis=0) for e in episodes])
    sitting = np.array([e.seats for e in episodes])
    names = list(dict.fromkeys(table.seats))
    shift = np.linspace(-0.15, 0.15, len(totals)) if len(totals) > 1 else np.zeros(1)
    for name, colour in zip(names, canvas.colours(len(names)), strict=True):
        rows, seats = np.nonzero(sitting == name)
        axes.plot(
            seats + shift[rows], totals[rows, seats], "o", color=colour, alpha=0.4, ms=4, mew=0
        )
        taken = np.unique(seats)
        means = [totals[sitting[:, seat] == name, seat].mean() for seat in taken]
        label = name[:40] if len(names) > 1 else None
        axes.plot(taken, means, "_", color=colour, ms=16, mew=2.4, label=label)
    axes.set_xlabel("seat")
    axes.set_ylabel("payoff of a run")
    canvas.whole(axes.xaxis)
    canvas.room(axes)
    sentence = "Total payoff of each seat: a dot for each run, a bar at their mean"
    if len(names) == 1:
        return f"{sentence}; {totals.mean():.4g} on average."
    by_name = ((name, totals[sitting == name].mean()) for name in names)
    return f"{sentence}; on average {', '.join(f'{name} {mean:.4g}' for name, mean in by_name)}."


def _regret(axes: Axes, table: Table) -> str:
    sums = [regret(e).sum(axis=0) for e in table.played]
    paths(axes, sums, "sum over players")
    line(axes, 0, "no regret")
    axes.set_ylabel("regret")
    highest = max(map(max, sums)) or 1
    axes.set_ylim(-0.04 * highest, 1.08 * highest)
    if table.rules.turns:
        axes.set_xlabel("move")
    return (
        "What the players could have gained, all together, each by changing its own action alone "
        f"(NashConv, in hindsight){_thin(table)}."
    )


ACTIONS = {
    "beauty_contest": "mean number",
    "el_farol_bar": "share who went",
    "divide_dollar": "mean bid",
    "public_goods": "mean contribution",
    "diners_dilemma": "share of costly dishes",
    "sealed_bid_auction": "mean bid",
}
"""What the mean of some seats' actions is, where it means something."""


def _by_player(axes: Axes, table: Table) -> str:
    what = ACTIONS[table.rules.name]
    names = list(dict.fromkeys(table.seats))
    for name, colour in zip(names, canvas.colours(len(names)), strict=True):
        runs = [seats_mean(e, e.of(name)) for e in table.played]
        paths(axes, runs, name[:40], colour)
    axes.set_ylabel(what)
    return f"The same by player: {what} in each round{_thin(table)}."


def seats_mean(episode: Episode, seats: Sequence[int]) -> list[float]:
    """Return the mean action of these seats in each round, NaN where none of them acted.

    For the games of `ACTIONS`.
    """
    unit = getattr(episode.rules, "unit", 1)
    moves = ([r["actions"][seat] for seat in seats] for r in episode.records)
    given = ([move for move in moved if move != MISSING] for moved in moves)
    return [float(np.mean(moved)) / unit if moved else np.nan for moved in given]


FIGURES: dict[str, tuple[tuple[str, Draw], ...]] = {
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
