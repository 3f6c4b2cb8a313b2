"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from llm_games.benchmarks.cli.human_play import Move
from llm_games.benchmarks.runs.compare import Comparison
from llm_games.benchmarks.runs.estimate import Estimate, added, fits
from llm_games.benchmarks.runs.grid import Grid, columns
from llm_games.benchmarks.runs.paper import papers
from llm_games.benchmarks.runs.stats import Cell
from llm_games.benchmarks.runs.summary import GameSummary
from llm_games.wrappers.clients.budget import Budget, Usage
from llm_games.wrappers.clients.cache import Cached

SHOWN = 20
"""Seats whose spending is shown, those that spent most."""


def estimate_table(rows: Sequence[Estimate]) -> Grid:
    """Return the table of what a run would ask and cost, with the totals."""
    heads = columns("game", "episodes, decisions, calls", ",")
    heads |= columns("", "tokens in, tokens out", ">")
    priced = any(row.priced for row in rows)
    low, high = (added(getattr(row, end) for row in rows) for end in ("low", "high"))
    lines = [(r.label, r.episodes, r.decisions, r.low, r.high, r.priced) for r in rows]
    sums = [sum(line[i] for line in lines) for i in (1, 2)]
    lines += [("all, about", *sums, low, high, priced)]
    table = [
        [label, *counts, least.calls, _range(least, most, "tokens_in")]
        + [_range(least, most, "tokens_out")]
        + ([_range(least, most, "money") if costs else None] if priced else [])
        for label, *counts, least, most, costs in lines
    ]
    return Grid(heads | ({"money": ">"} if priced else {}), table[:-1], foot=table[-1:])


def _range(low: Usage, high: Usage, what: str) -> str:
    ends = [about(getattr(usage, what)) for usage in (low, high)]
    return " to ".join(dict.fromkeys(ends))


def about(value: Any) -> str:
    """Write an estimate with three figures: ``1.23M``, ``45.6k``, ``0.00789``."""
    for size, unit in ((10**6, "M"), (10**3, "k")):
        if value >= size and not isinstance(value, Decimal):
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}" if not isinstance(value, Decimal) or value < 1 else f"{value:,.2f}"


def budget_lines(budget: Budget, rows: Sequence[Estimate]) -> Iterator[str]:
    """Say of each limit of a budget whether the run will stay below it."""
    for name, limit, least, most in fits(budget, rows):
        answer = "enough" if most <= limit else "too little" if least > limit else "perhaps enough"
        yield f"budget, {name} = {limit:,}: {answer} for {about(least)} to {about(most)}"


def run_tables(
    games: Sequence[GameSummary], overall: Cell | None, spent: Mapping[str, Mapping[str, Usage]]
) -> Iterator[Grid]:
    """Yield a run's tables: scores and rule breaks, payoffs of players, what was spent."""
    yield _summary(games, overall)
    payoffs = [
        (game.label, name, f"{payoff:.2f}")
        for game in games
        if len(game.payoff_of) > 1
        for name, payoff in game.payoff_of.items()
    ]
    if payoffs:
        yield Grid(columns("game, player", "payoff", ">"), payoffs)
    yield from (_spending(kind, named) for kind, named in spent.items() if named)


def _summary(games: Sequence[GameSummary], overall: Cell | None) -> Grid:
    heads = {"game": "", "score": ".1f"}
    heads |= dict.fromkeys(("episodes", "payoff of a seat", "bad moves", "filled in"), ">")
    lines: list[list[Any]] = [
        [
            game.label,
            game.cell,
            ", ".join(f"{count} {status}" for status, count in game.episodes.items()),
            f"{np.mean(game.payoffs):.1f}" if game.payoffs else "",
            str(sum(game.bad_replies.values())),
            f"{game.filled_in} of {game.decisions}{' !' * game.marked}",
        ]
        for game in games
    ]
    foot = [] if overall is None else [["overall", overall, *[""] * 4]]
    if any(game.bad_thoughts for game in games):
        heads["bad thoughts"] = "d"
        for line, game in zip(lines, games, strict=True):
            line.append(sum(game.bad_thoughts.values()))
        foot = [[*line, ""] for line in foot]
    captions = []
    if any(game.marked for game in games):
        captions.append("! more than 5 % of the decisions were filled in")
    if not any(game.scores for game in games):
        whose = " and ".join(f"{paper.title}'s" for paper in papers() if paper.scoring)
        captions.append(f"scores are {whose}; the report has this paper's own measures")
    return Grid(heads, lines, foot=foot, note="\n".join(captions))


def _spending(kind: str, spent: Mapping[str, Usage]) -> Grid:
    """Return the table of what ``models`` or ``seats`` have spent, the greatest first."""
    heads = columns(kind, "calls, failed, tokens in, tokens out", ",")
    if money := any(usage.money for usage in spent.values()):
        heads["money"] = ".4f"
    ranked = sorted(spent.items(), key=lambda item: (item[1].money, item[1].tokens), reverse=True)
    lines = [
        [name or "greeting before the run", u.calls, u.failures, u.tokens_in, u.tokens_out]
        + [f"{u.money:.4f}"] * money
        for name, u in ranked[:SHOWN]
    ]
    more = len(ranked) - SHOWN
    return Grid(heads, lines, note=f"and {more} more; all of them with --json" if more > 0 else "")


def replies_table(rows: Sequence[Cached]) -> Grid:
    """Return the table of a cache's models."""
    lines = [
        (
            *(row.model, row.source, row.replies, row.characters),
            *(f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}" for time in (row.oldest, row.newest)),
        )
        for row in rows
    ]
    heads = columns("model, server or folder", "replies, characters", ",")
    return Grid(heads | {"oldest": ">", "newest": ">"}, lines)


def comparison_table(found: Sequence[Comparison]) -> Grid:
    """Return the table of what differs between two runs: scores, and payoffs of changed seats."""
    lines = [
        (game.label, name, *difference.written(1))
        for game in found
        for name, difference in (("score", game.score), ("payoff", game.payoff))
        if difference is not None
    ]
    return Grid(columns("game, of", "pairs, A, B, B - A, 95 % interval, p", ">"), lines)


def moves_table(moves: Sequence[Move]) -> Grid:
    """Return the table of a person's moves next to those of a rational player."""
    regrets = [move.regret for move in moves if move.regret is not None]
    return Grid(
        columns("step", "you, rational", ">") | {"could have gained": ".2f"},
        [(str(m.step + 1), m.made, m.rational or None, m.regret) for m in moves],
        foot=[("all", "", "", sum(regrets))] if regrets else [],
        note="in hindsight, by another action against what the others did in that step",
    )
