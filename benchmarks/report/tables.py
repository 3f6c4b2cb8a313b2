"""The tables of a report: scores, the published leaderboard with one's own rows, and replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from llm_games.baselines.deviation import DEVIATIONS
from llm_games.benchmarks import published
from llm_games.benchmarks.report.data import Player, Run, Table, regrets
from llm_games.benchmarks.scores import GAMES, MARK, Cell, cell, filled_in, interval, overall, shown
from llm_games.registry import rulebook

SEED = 2024
"""Of the bootstrap draws, so that a report is the same each time it is made."""


class ScoreRow(NamedTuple):
    """One game of a run, written out; `marked`: too many decisions were filled in."""

    label: str
    runs: str
    score: str
    interval: str
    published: str
    filled: str
    marked: bool
    payoff: str
    regret: str


def score_rows(run: Run) -> list[ScoreRow]:
    """Return one row for each game of a run, in the order of its configuration."""
    return [_score_row(table) for table in run.tables]


def _score_row(table: Table) -> ScoreRow:
    scores = table.scores()
    return ScoreRow(
        label=table.label,
        runs=_runs(table),
        score=_pair(scores),
        interval=_interval([scores]),
        published=_pair(table.scores("published")),
        filled=f"{float(table.filled):.1%}" if table.played else "–",
        marked=table.filled > MARK,
        payoff=_pair([e.rewards.sum(axis=0).mean() for e in table.done], 2),
        regret=_pair(_regret(table), 2),
    )


def _regret(table: Table) -> list[float]:
    """Return the mean seat's regret over each run; nothing if none is known for the game."""
    if table.rules.name not in DEVIATIONS:
        return []
    return [float(regret.sum(axis=1).mean()) for regret in regrets(table, table.done)]


def _runs(table: Table) -> str:
    words = [f"{table.count('done')} of {len(table.episodes)}"]
    words += [f"{n} {s}" for s in ("void", "running") if (n := table.count(s))]
    return ", ".join(words)


def _pair(scores: Sequence[float], digits: int = 1) -> str:
    return _written(cell(scores) if scores else None, digits)


def _written(value: Cell | None, digits: int = 1) -> str:
    if value is None:
        return "–"
    return f"{shown(value.mean, digits)} ± {shown(value.std, digits)}"


def _interval(columns: Sequence[Sequence[float]]) -> str:
    ends = interval(columns, np.random.default_rng(SEED))
    return "–" if ends is None else f"{shown(ends[0])} to {shown(ends[1])}"


def total(run: Run) -> tuple[str, str] | None:
    """Return Overall and its interval in words; None unless all eight games have a score."""
    scores = benchmark_scores(run, "corrected")
    mean = overall(scores)
    return None if mean is None else (_written(mean), _interval([scores[game] for game in GAMES]))


def benchmark_scores(run: Run, edition: str) -> dict[str, list[float]]:
    """Return the scores by game of those tables that are played by the benchmark's settings."""
    tables = {table.rules.name: table for table in run.tables if _benchmark(table)}
    return {game: tables[game].scores(edition) for game in GAMES if game in tables}


def _benchmark(table: Table) -> bool:
    name = table.rules.name
    return name in GAMES and replace(table.rules, failed_reply="fallback") == rulebook(name)


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
            overall=_written(entry.overall),
            cells=[_written(entry.cells[game]) for game in GAMES],
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
        overall=_written(mean),
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


def _player_row(player: Player) -> PlayerRow:
    calls = len(player.latencies)
    share = filled_in(player.filled, player.decisions)
    middle, late = np.quantile(player.latencies, [0.5, 0.95]) if calls else (0.0, 0.0)
    return PlayerRow(
        player.name,
        player.kind,
        player.model,
        f"{player.decisions:,}",
        f"{calls:,}" if calls else "–",
        [str(player.outcomes[outcome]) if calls else "–" for outcome in BREAKS],
        f"{float(share):.1%}",
        share > MARK,
        f"{player.tokens_in:,} / {player.tokens_out:,}" if calls else "–",
        f"{seconds(middle)} / {seconds(late)}" if calls else "–",
    )


def seconds(value: float) -> str:
    """Write a duration with two or three figures."""
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.0f} min"
