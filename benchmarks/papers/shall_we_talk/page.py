"""Shall We Talk's page: three cases in silence, with talk and with personas, and the findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.means import FREE, SHARE, Ends, MeanCell, mean_of
from llm_games.benchmarks.judge.paper import SCORED, Paper, Section, Sketch, known
from llm_games.benchmarks.judge.result_table import OWN, PUBLISHED, ResultTable, Value, columns
from llm_games.benchmarks.papers.shall_we_talk import cells, metrics
from llm_games.benchmarks.papers.shall_we_talk.plans import KINDS
from llm_games.benchmarks.papers.shall_we_talk.statements import GROUPS, statements
from llm_games.benchmarks.record.recorded_games import RecordedGame, Run
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.plot_style import BLUE, INK, ORANGE, make_looks
from llm_games.rulebook import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CONTEST = columns("game, cell, source", "runs", "d") | columns(
    "",
    "mean number, %RSD, win together %, avoid equals %, all equal %, winners %, largest group %",
)
CONTEST_NOTE = (
    "One number of each player. %RSD: 100 times the population deviation of a run's numbers to "
    "their mean, mean over runs. Plans: share of runs whose talk has a joint plan, to win "
    "together or to avoid equal numbers, labelled by a judge (llm-games analyse judge FILE "
    "--rubric shall-we-talk/plan) if all runs of the game have one, else by a fixed rule, which is "
    "less sure (how often both agree stands below where there are both); published: by hand, and "
    "by persona without its kind; a model asked alone gave one number. All equal: runs "
    "in which all name one number; winners and largest group of equal numbers: shares of the "
    "players. The last three are not in the paper."
)
WINDOWS = ((101, 200), (301, 400), (401, 600), (601, 700))
MARKET = columns("game, cell, source", "runs", "d") | columns(
    "",
    ", ".join(f"price {first}-{last}" for first, last in WINDOWS)
    + ", price index, profit gain, price gap, settled %, early agreement %",
)
MARKET_NOTE = (
    "Mean price of the firms in some rounds, from runs that reach them. Price index and profit "
    "gain of the last tenth of the rounds: 0 as in the one-shot equilibrium (6), 1 as in a cartel"
    " (8). Price gap: dearest less cheapest, mean over all rounds. Settled: runs that have a "
    "round of convergence, after which prices stay within 0.25 of their mean for 100 rounds. "
    "Early agreement: runs that agree on prices before round 100, by a judge (--rubric "
    "shall-we-talk/agreement) if all have its label, else by a fixed rule, which is less sure: it "
    "can take a price of the past or of a rival for one that is agreed on. Published, in words: "
    "near 7 in silence, 8 with talk."
)
ESCAPE = columns("game, cell, source", "runs", "d") | columns(
    "",
    "escaped %, lost %, rounds, mean round, exit balance, bottom %, left %, right %, fallen, "
    "changes %, panic %",
)
ESCAPE_NOTE = (
    "Rounds until the last escape, of runs in which all get out; mean round of those who do. Exit"
    " balance: entropy of the shares of the three sides, 1 if equal. Fallen: rounds that people "
    "could not walk, in all. Changes: decisions, after each one's first, for another side. Panic:"
    " feelings that say so. The paper has figures without numbers."
)
STATEMENTS = columns("id, kind, the paper says, measured here") | {"effect": ".2f"}
STATEMENTS |= {"runs": "d", "if true": "", "these runs": ""}
STATEMENTS_NOTE = (
    "What the paper finds, and whether these runs say so. N: a published number, Q: in words, F: "
    "read off a figure. The effect is this package's reading of the words; not clear: its "
    "interval reaches over the end of the region. A part without an effect needs cells that the "
    "run does not have, or more rounds. Any common number is an equilibrium of the contest if a "
    "shared win pays in full, so agreement there is no departure from rational play. G1 is about "
    "a weaker model."
)
REPLIES = columns("game, asked for", "replies", "d") | {"not usable %": ".1f"}
REPLIES_NOTE = (
    "Replies of models by what they were asked for, re-asks among them, and the share of those "
    "that broke a rule or could not be read."
)
LABELS = columns("game, label by", "runs", "d") | dict.fromkeys((*KINDS, "agreement", "none"), "d")
LABELS |= {"same label %": ".1f", "kappa": ".2f"}
LABELS_NOTE = (
    "Labels of the talk by a fixed rule and by a judge, how often both are the same, and Cohen's "
    "kappa: that beyond chance, 1 if always the same, undefined if both only know one label."
)


class Read:
    """A run's games by case, with cells and values; statements are of the first game of a cell."""

    def __init__(self, run: Run) -> None:
        games = [game for game in run.games if game.done]
        self.games = [(game, cells.cell_of(cells.full(game))) for game in games]
        self.found: dict[str, list[Any]] = {game.label: cells.found(game) for game in games}
        self.cells: dict[str, list[Any]] = {}
        for game, cell in self.games:
            if cell:
                self.cells.setdefault(cell, self.found[game.label])

    def of(self, case: str) -> list[tuple[RecordedGame, str, list[Any]]]:
        values, case_of = self.found, cells.CASES
        return [(g, cell, values[g.label]) for g, cell in self.games if case_of[g.name] == case]


def sections(read: Read) -> list[Section]:
    """Return a table of each case that was played, the statements, and figures."""
    grids = []
    for case, rows, heads, title, note in (
        ("KBC", _contests, CONTEST, "Beauty contest", CONTEST_NOTE),
        ("BC", _markets, MARKET, "Price competition", MARKET_NOTE),
        ("EE", _escapes, ESCAPE, "Evacuation", ESCAPE_NOTE),
    ):
        if read.of(case):
            name = f"shall_we_talk_{case.lower()}"
            grids.append(ResultTable(heads, [*rows(read)], title, name, note))
    if not grids:
        return [Section(PAPER.title, ABOUT)]
    for rows, heads, title, note in (
        (_statements, STATEMENTS, "Statements", STATEMENTS_NOTE),
        (_labels, LABELS, "Labels", LABELS_NOTE),
        (_replies, REPLIES, "Replies", REPLIES_NOTE),
    ):
        if listed := [*rows(read)]:
            name = {"Statements": "findings"}.get(title, title.lower())
            grids.append(ResultTable(heads, listed, title, f"shall_we_talk_{name}", note))
    return [Section(PAPER.title, ABOUT, grids, [*_sketches(read)])]


def _share(values: Sequence[float | None]) -> MeanCell | None:
    """Return the mean of shares of each run, in per cent; None left out."""
    return mean_of([100.0 * value for value in values if value is not None], SCORED)


def _rate(answers: Sequence[bool | None]) -> MeanCell | None:
    """Return the percentage of runs with a true answer; None left out."""
    defined = [so for so in answers if so is not None]
    if not defined:
        return None
    interval = intervals.share(sum(defined), len(defined))
    ends = interval and interval._replace(low=100 * interval.low, high=100 * interval.high)
    return MeanCell(100 * sum(defined) / len(defined), None, len(defined), ends, SCORED)


def _contests(read: Read) -> Iterator[list[Value]]:
    for game, cell, runs in read.of("KBC"):
        numbers = [run.numbers for run in runs if run.numbers]
        plans = [run.plan for run in runs if run.plan]
        won = [sum(e.records[-1]["winners"]) / e.rules.players for e in game.done]
        yield [
            *(game.label, cell, OWN, len(runs)),
            mean_of([sum(named) / len(named) for named in numbers], cells.ends(game.rules)),
            mean_of([*map(metrics.rsd, numbers)], cells.spreads(game.rules)),
            *(_rate([plan == kind for plan in plans]) for kind in KINDS),
            _rate([len(set(named)) == 1 for named in numbers]),
            _share(won),
            _share([*map(metrics.modal_share, numbers)]),
        ]
    for row in metrics.table1().values():
        rates = [row.rate if row.plan == kind else None for kind in KINDS]
        yield [row.cell, row.cell, PUBLISHED, 10, None, row.rsd, *rates, None, None, None]
    for cell, rate in metrics.personas().items():
        if cell not in metrics.table1():
            yield [cell, cell, PUBLISHED, 10, None, None, rate, *[None] * 4]
    for model, number in metrics.models().items():
        yield [f"{model}, asked alone", "KBC-silent", PUBLISHED, None, number, *[None] * 6]


def _markets(read: Read) -> Iterator[list[Value]]:
    for game, cell, runs in read.of("BC"):
        prices = cells.prices_of(game.rules)
        means = [
            [m for run in runs if (m := metrics.mean_in(run.prices, *rounds)) is not None]
            for rounds in WINDOWS
        ]
        yield [
            *(game.label, cell, OWN, len(runs)),
            *(mean_of(values, prices) for values in means),
            mean_of(known([run.price_index for run in runs]), cells.indexes(game.rules)),
            mean_of(known([run.profit_gain for run in runs]), FREE),
            mean_of([run.price_gap for run in runs], prices),
            _rate([run.settled is not None for run in runs]),
            _rate([run.early for run in runs]),
        ]
    for line in metrics.prices():
        stated = [line.price if f"{a}-{b}" == line.rounds else None for a, b in WINDOWS]
        yield [line.cell, line.cell, PUBLISHED, 5, *stated, *[None] * 5]


def _escapes(read: Read) -> Iterator[list[Value]]:
    for game, cell, runs in read.of("EE"):
        shares = [run.shares for run in runs if run.shares]
        rounds = cells.rounds(game.rules)
        yield [
            *(game.label, cell, OWN, len(runs)),
            _share([run.escaped for run in runs]),
            _share([run.lost for run in runs]),
            mean_of([run.time for run in runs if run.time is not None], rounds),
            mean_of([run.mean_round for run in runs if run.mean_round is not None], rounds),
            mean_of([run.balance for run in runs if run.balance is not None], SHARE),
            *(_share([each[side] for each in shares]) for side in range(3)),
            mean_of([float(run.fallen) for run in runs], (0.0, rounds[1] * game.rules.players)),
            _share([run.changes for run in runs]),
            _share([run.panic for run in runs]),
        ]


def _statements(read: Read) -> Iterator[list[Value]]:
    cases = {case[0] for case in cells.CASES.values() if read.of(case)}
    for part in statements(read.cells):
        about, value = metrics.findings()[part.of], part.value
        if value is None and not cases & {*part.of}:
            continue
        yield [
            *(part.of, about.kind, about.statement, part.what),
            *(value, value and value.runs, part.region, part.verdict or "not played"),
        ]


def _labels(read: Read) -> Iterator[list[Value]]:
    for game, _ in read.games:
        pairs = cells.labels(game)
        both = [(rule, judge) for rule, judge in pairs if rule and judge]
        for column, source in enumerate(("rule", "judge")):
            label_counts = Counter(pair[column] for pair in pairs if pair[column])
            if label_counts:
                same = _rate([rule == judge for rule, judge in both]) if column else None
                counts = [label_counts[name] for name in (*KINDS, "agreement", "none")]
                kappa = metrics.kappa(both) if column else None
                yield [game.label, source, label_counts.total(), *counts, same, kappa]


def _replies(read: Read) -> Iterator[list[Value]]:
    for game, _ in read.games:
        for kind, outcomes in game.did.read.items():
            count = sum(outcomes[name] for name in outcomes if name not in ("failed", "tool"))
            if count:
                yield [game.label, kind, count, 100 * (count - outcomes["valid"]) / count]


def _sketches(read: Read) -> Iterator[Sketch]:
    contests = [entry for entry in read.of("KBC") if any(run.numbers for run in entry[2])]
    if contests:
        size = canvas.tall(len(contests))
        yield Sketch("Numbers", partial(_numbers, games=contests), size)
    if markets := read.of("BC"):
        yield Sketch("Prices of each firm", partial(_prices, games=markets))
    if escapes := read.of("EE"):
        yield Sketch("Escaped", partial(_escaped, games=escapes))
        yield Sketch("Escaped by exit", partial(_escaped, games=escapes, by_exit=True))
        yield Sketch("Spread from run to run", partial(_spread, games=escapes))


REFERENCES = (("one shot", ":"), ("cartel", "-"))
Games = Sequence[tuple[RecordedGame, str, list[Any]]]


def _numbers(axes: Axes, games: Games) -> str:
    """Draw all numbers of a cell, a line of dots for each run, and the mean of the runs' means."""
    for row, (_, _, runs) in enumerate(games):
        shown = [runs[index] for index in canvas.shown_runs(len(runs))]
        shifts = np.linspace(-0.3, 0.3, len(shown)) if len(shown) > 1 else [0.0]
        for shift, run in zip(shifts, shown, strict=True):
            height = np.full(len(run.numbers), row + shift)
            axes.plot(run.numbers, height, "o", color=BLUE, alpha=0.3, ms=3.5, mew=0)
        means = [sum(run.numbers) / len(run.numbers) for run in runs if run.numbers]
        if means:
            axes.plot(np.mean(means), row, "|", color=ORANGE, ms=18, mew=2.4)
    canvas.down(axes, [game.label for game, _, _ in games])
    low, high = zip(*(cells.ends(game.rules) for game, _, _ in games), strict=True)
    axes.set(xlabel="number", xlim=(min(low) - 2, max(high) + 2))
    return "All legal numbers, a line of dots for each run, and the mean of the runs' means (bar)."


def _prices(axes: Axes, games: Games) -> str:
    shown = [
        (f"{game.label[:24]}: firm {firm + 1}", game, [run.firms[firm] for run in runs])
        for game, _, runs in games
        for firm in range(game.rules.players)
    ]
    for (name, game, runs), look in zip(shown, make_looks(len(shown)), strict=True):
        table, ends = canvas.padded(runs), cells.prices_of(game.rules)
        rounds = np.arange(1, table.shape[1] + 1)
        canvas.mean_line(axes, rounds, table, ends, look, label=name, lw=1.2)
    _references(axes, games[0][0])
    return f"Price of each firm in each round, mean over runs{_bands(games, cells.prices_of)}."


def _references(axes: Axes, game: RecordedGame) -> None:
    """Draw lines at the prices of the one-shot equilibrium and of a cartel, and name the axes."""
    for height, (name, style) in zip(cells.references(game.rules), REFERENCES, strict=True):
        canvas.line(axes, height, name, INK, style)
    canvas.over_rounds(axes)
    axes.set(ylabel="price")


def _bands(games: Games, ends: Callable[[Any], Ends]) -> str:
    sizes = {len(runs) for _, _, runs in games}
    explanation = "bands: 95 % intervals of the means"
    if len(sizes) == 1:
        explanation = canvas.banded(sizes.pop(), ends(games[0][0].rules))
    return explanation and f"; {explanation}"


def _people(rules: Any) -> Ends:
    return 0.0, float(rules.players)


def _escaped(axes: Axes, games: Games, by_exit: bool = False) -> str:
    shown = [
        (f"{game.label[:24]}{name and f': {name}'}", _people(game.rules), curves)
        for game, _, runs in games
        for name, curves in _curves(game, runs, by_exit).items()
    ]
    for (label, ends, curves), look in zip(shown, make_looks(len(shown)), strict=True):
        canvas.mean_line(axes, np.arange(1, curves.shape[1] + 1), curves, ends, look, label=label)
    canvas.over_rounds(axes)
    axes.set(ylabel="escaped so far", ylim=(0, None))
    by = " by the exits of each side" if by_exit else ""
    return f"People who have escaped{by} after each round, mean over runs{_bands(games, _people)}."


def _curves(game: RecordedGame, runs: Sequence[Any], by_exit: bool) -> dict[str, Array]:
    """Return the cumulative escapes, ``(runs, rounds)``, of all or by side of the exit."""
    if not by_exit:
        return {"": np.array([run.curves.sum(axis=0) for run in runs])}
    curves = np.array([run.sides for run in runs])
    return {side: curves[:, index] for index, side in enumerate(game.rules.core.room.sides)}


def _spread(axes: Axes, games: Games) -> str:
    for (game, _, runs), look in zip(games, make_looks(len(games)), strict=True):
        if len(runs) > 1:
            curves = np.array([run.curves for run in runs])
            variances = metrics.variance(curves).mean(axis=0)
            drawn = {"color": look.colour, "linestyle": look.dash, "label": game.label[:24]}
            axes.plot(np.arange(1, len(variances) + 1), variances, **drawn)
    canvas.over_rounds(axes)
    axes.set(ylabel="variance over runs")
    return "Variance over runs of the escaped so far, mean over the four groups."


def moves(read: Read, game: RecordedGame) -> list[Sketch]:
    entries = read.of(cells.CASES[game.name])
    case_games = [entry for entry in entries if entry[0].label == game.label]
    if not case_games:
        return []
    return {
        "KBC": [Sketch("How often each number", partial(_histogram, games=case_games))],
        "BC": [
            Sketch("Prices of each firm", partial(_prices, games=case_games)),
            Sketch("Prices of the runs", partial(_runs, games=case_games)),
        ],
        "EE": [
            Sketch("Escaped by group", partial(_groups, games=case_games)),
            Sketch("Escaped by exit", partial(_escaped, games=case_games, by_exit=True)),
        ],
    }[cells.CASES[game.name]]


def _histogram(axes: Axes, games: Games) -> str:
    [(game, _, runs)] = games
    numbers = [number for run in runs for number in run.numbers]
    low, high = cells.ends(game.rules)
    axes.hist(numbers, bins=np.linspace(low, high + 1, 52).tolist(), color=BLUE)
    axes.set(xlabel="number", ylabel="players of all runs")
    return "How many players of all runs named a number."


def _runs(axes: Axes, games: Games) -> str:
    [(game, _, runs)] = games
    prices, ends = [run.prices for run in runs], cells.prices_of(game.rules)
    canvas.paths(axes, prices, "mean of the runs", ends)
    _references(axes, game)
    return "Mean price of the firms in each round: single runs thin, their mean thick."


def _groups(axes: Axes, games: Games) -> str:
    [(game, _, runs)] = games
    curves = np.array([run.curves for run in runs])
    rounds = np.arange(1, curves.shape[2] + 1)
    for group, look in enumerate(make_looks(len(GROUPS))):
        ends = _people(game.rules)
        canvas.mean_line(axes, rounds, curves[:, group], ends, look, label=GROUPS[group])
    canvas.over_rounds(axes)
    axes.set(ylabel="escaped so far", ylim=(0, None))
    return f"People of each group who have escaped after each round{_bands(games, _people)}."


ABOUT = (
    "Three games of arXiv 2402.12327, in silence, with talk, and with other personas: a beauty "
    "contest (KBC), price competition (BC) and the evacuation of a room (EE), beside what the "
    "paper prints of GPT-4 players."
)
PAPER = Paper(
    "Shall We Talk", cells.owns, sections, moves, Read, measures=cells.MEASURES, first=True
)
