"""The tables of a report: scores, the published leaderboard with one's own rows, and replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from llm_games.baselines.deviation import has_deviation
from llm_games.benchmarks.papers.gamma_bench import published
from llm_games.benchmarks.papers.gamma_bench.scores import (
    GAMES,
    MARK,
    Cell,
    cell,
    filled_in,
    interval,
    overall,
    shown,
)
from llm_games.benchmarks.report.data import Episode, Player, Run, Table, regret
from llm_games.benchmarks.runs.compare import Comparison, Difference
from llm_games.benchmarks.runs.config import load as raw
from llm_games.benchmarks.runs.config import parse
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook

SEED = 2024
"""Of the bootstrap draws, so that a report is the same each time it is made."""


class ScoreRow(NamedTuple):
    """One game of a run, written out.

    `other`: the score by the other edition; `marked`: too many decisions were filled in.
    """

    label: str
    runs: str
    score: str
    interval: str
    other: str
    filled: str
    marked: bool
    payoff: str
    regret: str


def score_rows(run: Run, scored: Run) -> list[ScoreRow]:
    """Return one row for each game of a run, in the order of its configuration.

    `scored` has those of its games that can have a score.
    """
    labels = {table.label for table in scored.tables}
    return [_score_row(table, run.edition, table.label in labels) for table in run.tables]


def other(edition: str) -> str:
    """Return the edition to show beside this one."""
    return "corrected" if edition == "published" else "published"


def _score_row(table: Table, edition: str, scored: bool) -> ScoreRow:
    scores = table.scores(edition) if scored else []
    return ScoreRow(
        label=table.label,
        runs=_runs(table),
        score=_pair(scores),
        interval=_interval([scores]),
        other=_pair(table.scores(other(edition)) if scored else []),
        filled=f"{float(table.filled):.1%}" if table.played else "–",
        marked=table.filled > MARK,
        payoff=_pair([e.rewards.sum(axis=0).mean() for e in table.done], 2),
        regret=_pair(_regret(table), 2),
    )


def _regret(table: Table) -> list[float]:
    """Return the mean seat's regret over each run; nothing if none is known for the game."""
    if not has_deviation(table.rules.name):
        return []
    return [float(regret(e).sum(axis=1).mean()) for e in table.done]


def _runs(table: Table) -> str:
    words = [f"{table.count('done')} of {len(table.episodes)}"]
    words += [f"{n} {s}" for s in ("void", "running") if (n := table.count(s))]
    return ", ".join(words)


def _pair(scores: Sequence[float], digits: int = 1) -> str:
    return written(cell(scores) if scores else None, digits)


def written(value: Cell | None, digits: int = 1) -> str:
    """Write a mean, with its standard deviation if there is one; a missing one as a dash."""
    if value is None or value.std is None:
        return shown(value and value.mean, digits)
    return f"{shown(value.mean, digits)} ± {shown(value.std, digits)}"


# -- time and tokens ------------------------------------------------------------------------------


class UsageRow(NamedTuple):
    """What a game of a run took, written out: over all its episodes, and one episode's time."""

    label: str
    decisions: str
    calls: str
    tokens_in: str
    tokens_out: str
    cost: str
    waited: str
    episode: str


def usage_rows(run: Run) -> list[UsageRow]:
    """Return what each game took, and all together if there are several."""
    rows = [_usage_row(table.label, table.episodes, run.priced) for table in run.tables]
    return rows + ([_usage_row("all", run.episodes, run.priced)] if len(rows) > 1 else [])


def _usage_row(label: str, episodes: Sequence[Episode], priced: bool) -> UsageRow:
    took = [e.seconds for e in episodes if e.seconds is not None]
    counts = zip(
        *((e.decisions, e.calls, e.tokens_in, e.tokens_out) for e in episodes), strict=True
    )
    decisions, *asked = map(sum, counts)
    cells = [
        label,
        f"{decisions:,}",
        *(f"{count:,}" if asked[0] else "–" for count in asked),
        f"{sum(e.cost for e in episodes):.4g}" if priced else "–",
        seconds(sum(e.waited for e in episodes)) if asked[0] else "–",
        seconds(float(np.median(took))) if took else "–",
    ]
    return UsageRow._make(cells)


# -- two runs -------------------------------------------------------------------------------------


class ComparisonRow(NamedTuple):
    """One game of two runs, written out; `notes` say what does not pair or fit."""

    label: str
    what: str
    pairs: str
    a: str
    b: str
    difference: str
    interval: str
    p: str
    notes: str


def comparison_rows(found: Sequence[Comparison]) -> list[ComparisonRow]:
    """Return a row for the score of each game, if it has one, and a row for the payoff."""
    return [row for game in found for row in _comparison(game)]


def _comparison(game: Comparison) -> list[ComparisonRow]:
    notes = "; ".join([*game.notes, *game.alone])
    seats = f"payoff of {len(game.seats)} seat{'s' if len(game.seats) != 1 else ''}"
    kinds = ((name, d) for name, d in (("score", game.score), (seats, game.payoff)) if d)
    rows = [
        [game.label, name, str(d.pairs), *_numbers(d, 1 if name == "score" else 2), ""]
        for name, d in kinds
    ]
    rows = rows or [[game.label, "–", "0", *["–"] * 5, ""]]
    first, *others = map(ComparisonRow._make, rows)
    return [first._replace(notes=notes), *others]


def _numbers(d: Difference, digits: int) -> list[str]:
    ends = "–" if d.low is None else f"{shown(d.low, digits)} to {shown(d.high, digits)}"
    change = f"{np.round(d.mean, digits):+.{digits}f}"
    return [shown(d.a, digits), shown(d.b, digits), change, ends, f"{d.p:.3g}"]


def _interval(columns: Sequence[Sequence[float]]) -> str:
    ends = interval(columns, np.random.default_rng(SEED))
    return "–" if ends is None else f"{shown(ends[0])} to {shown(ends[1])}"


def total(run: Run) -> tuple[str, str] | None:
    """Return Overall and its interval in words; None unless all eight games have a score."""
    scores = benchmark_scores(run, run.edition)
    mean = overall(scores)
    return None if mean is None else (written(mean), _interval([scores[game] for game in GAMES]))


def benchmark_scores(run: Run, edition: str) -> dict[str, list[float]]:
    """Return the scores by game of those tables that are played by the benchmark's settings.

    These are the defaults, or all of them those of the published program. A game that is played
    at several settings has none.
    """
    tables = {
        game: found[0]
        for game, found in run.by_game().items()
        if len(found) == 1 and game in GAMES and not _scripted(run, found[0])
    }
    default = {game: rulebook(game) for game in GAMES}
    as_published = all(_plays(table, lenient()[game]) for game, table in tables.items())
    rules = lenient() if as_published else default
    fits = [game for game in GAMES if game in tables and _plays(tables[game], rules[game])]
    return {game: tables[game].scores(edition) for game in fits}


def _plays(table: Table, rules: Rulebook) -> bool:
    return replace(table.rules, failed_reply=rules.failed_reply) == rules


def _scripted(run: Run, table: Table) -> bool:
    """Return whether a fixed strategy has a seat beside other players."""
    kinds = {run.players[name].kind for name in table.seats}
    return "fixed" in kinds and len(kinds) > 1


@cache
def lenient() -> dict[str, Rulebook]:
    """Return the rules of each game with all leniencies of the published program."""
    games = parse(raw("gamma-bench/published"), "gamma-bench/published").games
    return {game.game: rulebook(game.game, **game.params) for game in games}


# -- the leaderboard -----------------------------------------------------------------------------


class BoardRow(NamedTuple):
    """One row of the leaderboard; `rank` and `note` are empty where they do not apply."""

    rank: str
    model: str
    note: str
    own: bool
    overall: str
    cells: list[str]
    place: float


def leaderboard(runs: Sequence[Run]) -> list[BoardRow]:
    """Return the published rows with those of these runs put in by Overall.

    Runs are scored by the edition of the published table. Only a run of all eight games, with the
    benchmark's settings, on every seat the same language model, takes a rank.
    """
    rows = [
        BoardRow(
            rank=str(entry.rank),
            model=entry.model,
            note="",
            own=False,
            overall=written(entry.overall),
            cells=[written(entry.cells[game]) for game in GAMES],
            place=entry.overall.mean,
        )
        for entry in published.leaderboard()
    ]
    own = [row for run in runs if (row := _own_row(run))]
    return sorted(own + rows, key=lambda row: -row.place)


def _own_row(run: Run) -> BoardRow | None:
    scores = benchmark_scores(run, "published")
    if not any(scores.values()):
        return None
    mean, why = overall(scores), _why_no_rank(run)
    missing = "" if mean else f"{sum(map(bool, scores.values()))} of 8 games"
    marked = any(table.filled > MARK for table in run.tables)
    filled = f"more than {float(MARK):.0%} of a run filled in" if marked else ""
    return BoardRow(
        rank="" if why or mean is None else f"({published.rank_of(mean.mean)})",
        model=" + ".join(sorted(_seated(run))),
        note="; ".join(filter(None, (run.title, why, missing, filled))),
        own=True,
        overall=written(mean),
        cells=[_pair(scores.get(game, [])) for game in GAMES],
        place=mean.mean if mean else -1.0,
    )


def _seated(run: Run) -> set[str]:
    return {name for table in run.tables for name in table.seats}


def _why_no_rank(run: Run) -> str:
    players = [run.players[name] for name in _seated(run)]
    if len(players) > 1:
        return "mixed seats"
    return "" if players[0].language_model else "not an LLM, for reference"


# -- replies -------------------------------------------------------------------------------------


class PlayerRow(NamedTuple):
    """What one player did over all its seats, written out."""

    name: str
    kind: str
    model: str
    decisions: str
    calls: str
    breaks: list[str]
    filled: str
    marked: bool
    tokens: str
    latency: str


BREAKS = {
    "unparsable": "format",
    "out_of_range": "range",
    "refused": "refused",
    "truncated": "truncated",
    "failed": "failed",
}
"""How a completion can be useless, and the column's name."""


def player_rows(run: Run) -> list[PlayerRow]:
    """Return one row for each player of a run."""
    return [_player_row(player) for player in run.players.values()]


class OtherRow(NamedTuple):
    """A player's calls of one kind that were not to be moves, such as plans, written out."""

    name: str
    kind: str
    calls: str
    breaks: list[str]


def other_rows(run: Run) -> list[OtherRow]:
    """Return a row for each player and kind of its calls, moves apart; often there are none."""
    return [
        OtherRow(
            player.name,
            kind,
            f"{outcomes.total():,}",
            [str(outcomes[outcome]) for outcome in BREAKS],
        )
        for player in run.players.values()
        for kind, outcomes in player.others.items()
    ]


def _player_row(player: Player) -> PlayerRow:
    calls = player.outcomes.total()
    share = filled_in(player.filled, player.decisions)
    asked = bool(player.latencies)
    middle, late = np.quantile(player.latencies, [0.5, 0.95]) if asked else (0.0, 0.0)
    return PlayerRow(
        player.name,
        player.kind,
        player.model,
        f"{player.decisions:,}",
        f"{calls:,}" if calls else "–",
        [str(player.outcomes[outcome]) if calls else "–" for outcome in BREAKS],
        f"{float(share):.1%}",
        share > MARK,
        f"{player.tokens_in:,} / {player.tokens_out:,}" if asked else "–",
        f"{seconds(middle)} / {seconds(late)}" if asked else "–",
    )


def seconds(value: float) -> str:
    """Write a duration with two or three figures."""
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.0f} min"
