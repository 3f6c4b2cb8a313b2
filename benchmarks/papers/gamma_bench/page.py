"""γ-Bench's page: the leaderboard, games at several settings, and play against fixed players."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup

from llm_games.benchmarks.judge.means import FREE, MeanCell, brief, cell, estimated, mean_of
from llm_games.benchmarks.judge.paper import SCORED, THIRD, Paper, Scoring, Section, Sketch
from llm_games.benchmarks.judge.result_table import Label, ResultTable, Value, columns, written
from llm_games.benchmarks.judge.results import scores
from llm_games.benchmarks.papers.gamma_bench import modes, published
from llm_games.benchmarks.papers.gamma_bench.gamma_figures import ACTIONS, drawn
from llm_games.benchmarks.papers.gamma_bench.scores import (
    EDITIONS,
    GAMES,
    OTHERWISE,
    overall,
    score_episode,
)
from llm_games.benchmarks.record.recorded_games import MARK, RecordedGame, Run
from llm_games.benchmarks.run.config import load, parse
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.figures import moved, seats_mean
from llm_games.benchmarks.show.page.plot_style import BLUE, ORANGE
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRINTED = "v4"  # edition of the published single runs, by which one's own are set beside them
ROUNDS = (1, 5, 10, 15, 20)
TITLES = {game: game.replace("_", " ") for game in GAMES}

SCORES = (
    "γ-Bench scores, 0 to 100, higher is better: mean ± sample standard deviation over runs, as "
    "the paper prints it, and below it the interval of the mean; the interval of Overall takes the "
    "games as independent. “Corrected” scores use the formulas that the paper means, "
    "“published” ones those of its table (v7). A game without a γ-Bench score has a dash, as the "
    "auction that an edition does not score: the second-price one, and in v2 the first-price one."
)
MEANT = {
    "beauty_contest": "how near numbers come to the end that the ratio pulls to",
    "el_farol_bar": "how near the share of goers comes to the ratio",
    "divide_dollar": "how near the sum of bids comes to what there is",
    "public_goods": "how much is kept (who gives all scores 0)",
    "diners_dilemma": "how many order the costly dish (those who order the cheap one score 0)",
    "sealed_bid_auction": "how far bids are below valuations",
    "battle_royale": "how many shots are aimed at the strongest",
    "pirate_game": "how near plans and votes come to optimal ones",
}
"""What a score says of play."""
MEANT_IN_V2 = {
    "public_goods": "how much is given (who keeps all scores 0)",
    "diners_dilemma": "how many order the cheap dish (those who order the costly one score 0)",
    "sealed_bid_auction": "how near bids come to valuations",
}
BOARDS = {
    "published": (
        "Thirteen models as printed in arXiv 2403.11807v7 (five runs each); this page's rows are "
        "highlighted, scored by the same formulas (published), and placed by Overall."
    ),
    "v4": (
        "Twelve models as printed in arXiv 2403.11807v4 (five runs each; where a cell was rounded "
        "otherwise than in v7, by at most 0.1, it is v7's), with this page's rows of runs scored "
        "by v4, highlighted and placed by Overall."
    ),
    "v2": (
        "This page's rows of runs scored by v2, whose benchmark has the second-price auction. The "
        "five models of Table 1 of arXiv 2403.11807v2 cannot stand beside them: this package has "
        "no numbers of that version, and those of later ones are of other formulas."
    ),
}
PLACES = (
    " A rank in brackets is where the row would stand; only a run of all eight games at the "
    "benchmark's settings with one language model on all seats has one. Below the line, outside "
    "the order, stand runs without a rank: players by rule, the toy model tiny, mixed seats and "
    "runs of some of the games. Neighbours a point or so "
    "apart are not told from chance by five runs each. In the published runs failed answers were "
    "asked again without limit and never counted; what else is known of them is in docs/papers.md. "
    "± is the sample standard deviation over runs."
)
MATRIX = (
    "This run's scores by the formulas of v4; below them, smaller, their 95 % intervals{} and what "
    "v4 prints for GPT-3.5-0125. Its default column is one and the same run in all experiments."
)
VARIED = (
    "Mean scores of this run by its own edition and by the formulas of v4, which are those of the "
    "printed runs of GPT-3.5-0125 (one run at each setting, so differences of a few points say "
    "little)."
)
AGAINST = Markup(
    "Mean over the other seats and the runs, and the slope of a line through all rounds. Published "
    "for GPT-3.5-0125: bids against a player who bids 91 fall over the rounds, contributions "
    "beside one who gives nothing rise. All rounds are in "
    '<a href="tables/rounds.csv">tables/rounds.csv</a>.'
)


class VariedSetting(NamedTuple):
    """One setting of a game: its change, scores by the run's edition, by v4, and published."""

    name: str
    kind: str
    runs: int
    scored: MeanCell | None
    comparable: MeanCell | None
    printed: float | None


def _setting(game: RecordedGame, edition: str) -> VariedSetting:
    edition_scores, comparable = scores(game, edition), scores(game, PRINTED)
    printed = None if game.talks else published.gpt35(game.rules, game.change)
    kind = ", ".join(game.change)
    sides = mean_of(edition_scores, SCORED), mean_of(comparable, SCORED)
    return VariedSetting(game.setting, kind, len(edition_scores), *sides, printed)


def _varied(run: Run) -> list[Section]:
    """Return a section on games that were played at several settings and have a score."""
    rows_by_title = {}
    for name, games in run.by_game().items():
        several = len(games) > 1 and not modes.has_other_mode(games)
        rows = [_setting(game, run.edition) for game in games if several]
        if any(row.scored for row in rows):
            rows_by_title[TITLES[name]] = rows
    if not rows_by_title:
        return []
    matrix = _matrix(run)
    pairs = []
    for title, rows in rows_by_title.items():
        sketch = Sketch(title, partial(_beside, settings=rows), THIRD)
        pairs.append((sketch, None if matrix else _settings(rows, run.edition)))
    return [Section("Settings", grids=[matrix] if matrix else [], pairs=pairs, end=VARIED)]


def _settings(rows: Sequence[VariedSetting], edition: str) -> ResultTable:
    sides = zip(*((s.scored, s.comparable, s.printed) for s in rows), strict=True)
    return ResultTable(
        {"setting": "", "runs": "d", edition: ".1f", "by v4": ".1f", "GPT-3.5, v4": ".1f"},
        [(s.name, s.runs, s.scored, s.comparable, s.printed) for s in rows],
        foot=[("mean ± std over settings", "", *map(_spread, sides))],
    )


def _spread(values: Sequence[MeanCell | float | None]) -> MeanCell | None:
    """Return mean ± sample standard deviation; None if one is missing."""
    means = [v.mean if isinstance(v, MeanCell) else v for v in values if v is not None]
    return cell(means) if means and len(means) == len(values) else None


def _matrix(run: Run) -> ResultTable | None:
    """Return a table of games by setting of the run's ``vary``; None for a single setting."""
    games = [game for game in GAMES if game in run.by_game()]
    by_setting: dict[str, dict[str, VariedSetting]] = {}
    for game in run.games:
        name = ", ".join(f"{key} {value}" for key, value in game.change.items()) or "default"
        by_setting.setdefault(name, {})[game.name] = _setting(game, run.edition)
    if len(by_setting) < 2 or any(list(row) != games for row in by_setting.values()):
        return None
    values, cells = {}, []
    for name, row in by_setting.items():
        cells += [setting.comparable for setting in row.values()]
        pairs = [(setting.comparable, setting.printed) for setting in row.values()]
        spreads = map(_spread, zip(*pairs, strict=True))
        means = [*map(brief, spreads)]
        values[name] = [*pairs, means if len(pairs) == len(GAMES) else (None, None)]
    sides = [zip(*column, strict=True) for column in zip(*values.values(), strict=True)]
    foot = [tuple(map(_spread, side)) for side in sides]
    return ResultTable(
        {"setting": ""} | {TITLES[game]: ">" for game in games} | {"Overall": ">"},
        [(name, *map(_two, row)) for name, row in values.items()],
        note=MATRIX.format(canvas.resting(cells)),
        foot=[("over settings", *map(_two, foot))],
    )


def _two(pair: Sequence[Value]) -> Label:
    score_text, printed = (written(value, ".1f") for value in pair)
    interval = pair[0].interval if isinstance(pair[0], MeanCell) else None
    return Label(score_text, f"{interval.ends(1)}; {printed}" if interval else printed)


def _beside(axes: Axes, settings: Sequence[VariedSetting]) -> str:
    """Draw a score at several settings, alike ones joined, beside the published one there."""
    names = [_short(s.name) for s in settings]
    looks = (
        ("this run", [s.comparable and s.comparable.mean for s in settings], BLUE, "o-"),
        ("GPT-3.5-0125, published", [s.printed for s in settings], ORANGE, "D--"),
    )
    cells = [setting.comparable for setting in settings]
    canvas.upright(axes, range(len(names)), cells)
    for label, values, colour, look in looks:
        heights = np.array(values, np.float64)
        kinds = groupby(range(len(names)), key=lambda i: settings[i].kind)
        for number, (_, group) in enumerate(kinds):
            positions = list(group)
            if not np.isnan(heights).all():
                name = None if number else label
                axes.plot(positions, heights[positions], look, color=colour, label=name, ms=5)
    long = max(map(len, names)) * len(names) > 50
    turned: dict[str, Any] = {"rotation": 40, "ha": "right"} if long else {}
    axes.set_xticks(range(len(names)), names, **turned)
    axes.set(ylim=(-4, 104), ylabel="score")
    text = "The score at each setting, by the formulas of the published runs (v4)"
    return f"{text}{canvas.resting(cells, ', with its 95 % interval')}."


def _short(name: str) -> str:
    """Return a setting's name, shortened for a plot."""
    for word in ("ratio", "temperature", "prompts", "persona", "valuations to", "rates", "menu"):
        name = name.removeprefix(word).strip()
    return name.replace(" coins", "").replace(" golds", "").replace("reasoning True", "reasoning")


def _against(run: Run) -> list[Section]:
    """Return a table of the games in which some seats are fixed players and others are not."""
    rows = []
    for game in run.games:
        fixed = {name for name in game.seats if run.players[name].kind == "fixed"}
        if fixed and fixed != set(game.seats) and game.name in ACTIONS and game.played:
            rows.append(_others(game, fixed))
    head = columns("game, one plays, the others") | {f"round {n}": ".1f" for n in ROUNDS}
    grid = ResultTable(head | {"change per round": "+.2f"}, rows, note=AGAINST)
    return [Section("Against fixed strategies", grids=[grid])] if rows else []


def _others(game: RecordedGame, fixed: Set[str]) -> list[Value]:
    episodes = game.done or game.played[:1]
    others = ([seat for seat, n in enumerate(e.seats) if n not in fixed] for e in episodes)
    table = np.array([seats_mean(e, seats) for e, seats in zip(episodes, others, strict=True)])
    rounds = table.shape[1]
    places = [number - 1 for number in ROUNDS if number <= rounds]
    missing = [None] * (len(ROUNDS) - len(places))
    shown = [*canvas.points(table[:, places], moved(game.rules)), *missing]
    slopes = np.polyfit(np.arange(rounds), table.T, 1)[0].tolist() if rounds > 1 else []
    slope = mean_of(slopes, FREE)  # a line through the means has the mean slope
    return [game.label, " and ".join(sorted(fixed)), ACTIONS[game.name], *shown, slope]


def counted(run: Run, edition: str) -> dict[str, list[float]]:
    """Scores by game at an edition's settings, without fixed strategies beside others."""
    alone = {}
    for name, games in run.by_game().items():
        kinds = {run.players[player].kind for player in games[0].seats}
        if len(games) == 1 and ("fixed" not in kinds or len(kinds) == 1):
            alone[name] = games[0]
    lenient = settings(edition, lenient=True)
    as_published = all(_plays(game, lenient[name]) for name, game in alone.items())
    rules = lenient if as_published else settings(edition)
    fits = [name for name in GAMES if name in alone and _plays(alone[name], rules[name])]
    return {name: scores(alone[name], edition) for name in fits}


def spread(rules: Rulebook, edition: str) -> float | None:
    """Return the published standard deviation of a run's score by such rules, or None."""
    benchmark_rules = (settings(edition, lenient).get(rules.name) for lenient in (False, True))
    same = any(benchmark and _alike(rules, benchmark) for benchmark in benchmark_rules)
    return published.spreads()[rules.name] if same else None


def _plays(game: RecordedGame, rules: Rulebook) -> bool:
    return _alike(game.rules, rules) and not game.talks


def _alike(first: Rulebook, second: Rulebook) -> bool:
    """Return whether rules are equal except for the treatment of failed replies."""
    same = first.name == second.name and first.core is first
    return bool(same and replace(first, failed_reply=second.failed_reply) == second)


@cache
def settings(edition: str, lenient: bool = False) -> dict[str, Rulebook]:
    """Rules of each game: preset ``gamma_bench`` changed as `OTHERWISE`, or with all leniencies."""
    params: dict[str, dict[str, Any]] = {name: {"preset": "gamma_bench"} for name in GAMES}
    if lenient:
        file = parse(load("gamma-bench/published"), "gamma-bench/published")
        params = {game.game: game.params for game in file.games}
    other = OTHERWISE.get(edition, {})
    return {name: rulebook(name, **{**params[name], **other.get(name, {})}) for name in GAMES}


Placed = tuple[float, Sequence[Value]]  # A run's Overall, -1 for none, and its row


def board(runs: Sequence[Run]) -> Section | None:
    """Return the published rows merged with those of these runs by Overall; None without any.

    Runs are scored by the edition of the published table, those of ``v4`` and ``v2`` by theirs.
    Only runs of all eight games at the benchmark's settings with one model on all seats have ranks.
    """
    rows_by_edition: dict[str, list[Placed]] = {edition: [] for edition in BOARDS}
    for run in runs:
        edition = run.edition if run.edition in BOARDS else "published"
        if placed_row := _placed_row(run, edition):
            rows_by_edition[edition].append(placed_row)
    grids = [_board(edition, places) for edition, places in rows_by_edition.items() if places]
    return Section("Beside the published leaderboard", grids=grids) if grids else None


def _board(edition: str, run_rows: Sequence[Placed]) -> ResultTable:
    version = published.VERSIONS.get(edition)
    # In no order with the published.
    outside = [row for _, row in run_rows if version and not row[0]]
    places = [placed_row for placed_row in run_rows if not version or placed_row[1][0]]
    for listed in published.leaderboard(edition) if version else ():
        row = (str(listed.rank), listed.model, listed.overall, *map(listed.cells.get, GAMES))
        places.append((listed.overall.mean, row))
    places.sort(key=lambda placed_row: -placed_row[0])
    head = {"rank": ">", "model": ""} | dict.fromkeys(["Overall", *TITLES.values()], ".1f")
    mine = [number for number, placed_row in enumerate(places) if placed_row in run_rows]
    note = BOARDS[edition] + PLACES * bool(version)
    rows, title = [row for _, row in places], f"arXiv {version or edition}"
    return ResultTable(
        head, rows, title, note=note, foot=outside, marked_rows=mine, strong=["Overall"]
    )


def _placed_row(run: Run, edition: str) -> Placed | None:
    """Return a run's row; None without any score."""
    scores_by_game = counted(run, edition)
    if not any(scores_by_game.values()):
        return None
    mean, seats = overall(scores_by_game), (name for game in run.games for name in game.seats)
    names = sorted({*seats})
    player = run.players[names[0]]
    why = "" if player.language_model else "not an LLM, for reference"
    why = "a toy, to see how things work" if player.toy else why
    why = "mixed seats" if len(names) > 1 else why
    missing = "" if mean else f"{sum(map(bool, scores_by_game.values()))} of 8 games"
    marked = any(game.filled > MARK for game in run.games)
    filled = f"more than {float(MARK):.0%} of a run filled in" if marked else ""
    note = "; ".join(filter(None, (run.file.title, why, missing, filled)))
    ranked = mean is not None and not why and edition in published.VERSIONS
    rank = f"({published.rank_of(mean.mean, edition)})" if ranked and mean else ""
    cells = [estimated(scores_by_game.get(game, ()), SCORED) for game in GAMES]
    row = (rank, Label(" + ".join(names), note), mean, *cells)
    return mean.mean if mean else -1.0, row


PAPER = Paper(
    "γ-Bench",
    lambda game: game.name in GAMES,
    lambda run: [*_varied(run), *modes.sections(run), *_against(run)],
    scoring=Scoring(
        games=GAMES,
        editions=EDITIONS,
        score=score_episode,
        overall=overall,
        counted=counted,
        board=board,
        note=SCORES,
        spread=spread,
        meant=lambda edition: MEANT | (MEANT_IN_V2 if edition == "v2" else {}),
    ),
    drawn=drawn,
    actions=ACTIONS,
)
