"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from rich.table import Table

from llm_games.benchmarks.cli.human_play import Move
from llm_games.benchmarks.cli.show import Parameter
from llm_games.benchmarks.papers.gamma_bench.scores import Cell
from llm_games.benchmarks.runs.compare import Comparison, Difference
from llm_games.benchmarks.runs.estimate import Estimate
from llm_games.benchmarks.runs.summary import GameSummary
from llm_games.wrappers.clients.budget import Usage
from llm_games.wrappers.clients.cache import Cached

SHOWN = 20
"""Seats whose spending is shown, those that spent most."""


def games_table(rows: Sequence[Mapping[str, str]]) -> Table:
    """Return the table of all games."""
    columns = ("name", "title", "players", "moves", "source")
    return columns_table(columns, [tuple(row[column] for column in columns) for row in rows])


def parameters_table(rows: Sequence[Parameter]) -> Table:
    """Return the table of a game's parameters."""
    plain = [(row.name, str(row.default), row.meaning.replace("`", "")) for row in rows]
    return columns_table(("parameter", "default", "meaning and range"), plain)


def presets_table(presets: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the table of a game's presets."""
    plain = [
        (name, ", ".join(f"{key} {value}" for key, value in values.items()) or "as by default")
        for name, values in presets.items()
    ]
    return columns_table(("preset", "parameters"), plain)


def players_for_table(players: Mapping[str, str]) -> Table:
    """Return the table of the players that a game has."""
    return columns_table(("player", "what it does"), [*players.items()])


def estimate_table(rows: Sequence[Estimate]) -> Table:
    """Return the table of what a run would ask, with the totals."""
    columns = ("game", "episodes", "decisions", "calls", "tokens in", "tokens out")
    numbers = [
        (row.episodes, row.decisions, row.calls, row.tokens_in, row.tokens_out) for row in rows
    ]
    lines = [(row.label, *map(_count, line)) for row, line in zip(rows, numbers, strict=True)]
    totals = [sum(column) for column in zip(*numbers, strict=True)]
    return columns_table(columns, [*lines, ("all, about", *map(_count, totals))], right=5)


def summary_table(games: Sequence[GameSummary], overall: Cell | None) -> Table:
    """Return the table of a run's scores, payoffs and rule breaks."""
    columns = ["game", "score", "episodes", "payoff of a seat", "bad moves", "filled in"]
    lines = [_summary(game) for game in games]
    if overall is not None:
        lines.append(("overall", _score(overall), *[""] * 4))
    if any(game.bad_thoughts for game in games):
        columns.append("bad thoughts")
        thoughts = [str(sum(game.bad_thoughts.values())) for game in games] + [""]
        lines = [(*line, more) for line, more in zip(lines, thoughts, strict=False)]
    table = columns_table(columns, lines, right=len(columns) - 1)
    captions = []
    if any(game.marked for game in games):
        captions.append("! more than 5 % of the decisions were filled in")
    if not any(game.scores for game in games):
        captions.append("scores are γ-Bench's; the report has this paper's own measures")
    table.caption = "\n".join(captions) or None
    return table


def players_table(games: Sequence[GameSummary]) -> Table | None:
    """Return the table of each player's payoff where several sit at a table; None if nowhere."""
    lines = [
        (game.label, name, f"{payoff:.2f}")
        for game in games
        if len(game.payoff_of) > 1
        for name, payoff in game.payoff_of.items()
    ]
    return columns_table(("game", "player", "payoff"), lines, right=1) if lines else None


def spending_table(kind: str, spent: Mapping[str, Usage]) -> Table:
    """Return the table of what ``models`` or ``seats`` have spent, the greatest first."""
    columns = [kind, "calls", "failed", "tokens in", "tokens out", "money"]
    ranked = sorted(spent.items(), key=lambda item: (item[1].money, item[1].tokens), reverse=True)
    lines = [
        (
            name or "greeting before the run",
            *map(_count, (usage.calls, usage.failures, usage.tokens_in, usage.tokens_out)),
            f"{usage.money:.4f}",
        )
        for name, usage in ranked[:SHOWN]
    ]
    if not any(usage.money for usage in spent.values()):
        columns.pop()
    table = columns_table(columns, [line[: len(columns)] for line in lines], right=len(columns) - 1)
    if len(ranked) > SHOWN:
        table.caption = f"and {len(ranked) - SHOWN} more; all of them with --json"
    return table


def replies_table(rows: Sequence[Cached]) -> Table:
    """Return the table of a cache's models."""
    lines = [
        (
            row.model,
            row.source,
            *map(_count, (row.replies, row.characters)),
            *(f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}" for time in (row.oldest, row.newest)),
        )
        for row in rows
    ]
    columns = ("model", "server or folder", "replies", "characters", "oldest", "newest")
    return columns_table(columns, lines, right=4)


def comparison_table(found: Sequence[Comparison]) -> Table:
    """Return the table of what differs between two runs: scores, and payoffs of changed seats."""
    columns = ("game", "of", "pairs", "A", "B", "B - A", "95 % interval", "p")
    lines = [
        (game.label, name, *_difference(difference))
        for game in found
        for name, difference in (("score", game.score), ("payoff", game.payoff))
        if difference is not None
    ]
    return columns_table(columns, lines, right=6)


def _difference(found: Difference) -> tuple[str, ...]:
    ends = "-" if found.low is None else f"{found.low:.1f} to {found.high:.1f}"
    a, b, mean = np.round((found.a, found.b, found.mean), 1)  # halves to even, as scores are
    sides = f"{a:.1f}", f"{b:.1f}", f"{mean:+.1f}"
    return str(found.pairs), *sides, ends, f"{found.p:.3g}"


def payoffs_table(rows: Sequence[tuple[str, str, float]]) -> Table:
    """Return the table of everybody's payoffs: seat, player, payoff."""
    plain = [(seat, player, f"{payoff:.2f}") for seat, player, payoff in rows]
    return columns_table(("seat", "player", "payoff"), plain, right=1)


def moves_table(moves: Sequence[Move]) -> Table:
    """Return the table of a person's moves next to those of a rational player."""
    lines = [
        (
            str(move.step + 1),
            move.made,
            move.rational or "-",
            "-" if move.regret is None else f"{move.regret:.2f}",
        )
        for move in moves
    ]
    regrets = [move.regret for move in moves if move.regret is not None]
    if regrets:
        lines.append(("all", "", "", f"{sum(regrets):.2f}"))
    table = columns_table(("step", "you", "rational", "could have gained"), lines, right=3)
    table.caption = "in hindsight, by another action against what the others did in that step"
    return table


def _summary(game: GameSummary) -> tuple[str, ...]:
    states = ", ".join(f"{count} {status}" for status, count in game.episodes.items())
    payoff = f"{np.mean(game.payoffs):.1f}" if game.payoffs else ""
    filled = f"{game.filled_in} of {game.decisions}{' !' if game.marked else ''}"
    bad = str(sum(game.bad_replies.values()))
    return game.label, _score(game.cell), states, payoff, bad, filled


def _score(found: Cell | None) -> str:
    """Write mean ± standard deviation; halves are rounded to even, as in the paper's tables."""
    if found is None:
        return "-"
    mean = f"{np.round(found.mean, 1):.1f}"
    return mean if found.std is None else f"{mean} ± {np.round(found.std, 1):.1f}"


def _count(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def columns_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: int = 0) -> Table:
    """Return a plain table, the last `right` columns aligned to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        align: Literal["left", "right"] = "right" if place >= len(columns) - right else "left"
        table.add_column(column, justify=align, no_wrap=place == 0, overflow="fold")
    for row in rows:
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    return table
