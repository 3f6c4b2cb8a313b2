"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from llm_games.benchmarks.cli.human_play import Move
from llm_games.benchmarks.runs.compare import Comparison
from llm_games.benchmarks.runs.estimate import Estimate
from llm_games.benchmarks.runs.grid import Grid, columns
from llm_games.benchmarks.runs.paper import papers
from llm_games.benchmarks.runs.stats import Cell
from llm_games.benchmarks.runs.summary import GameSummary
from llm_games.wrappers.clients.budget import Usage
from llm_games.wrappers.clients.cache import Cached

SHOWN = 20
"""Seats whose spending is shown, those that spent most."""


def estimate_table(rows: Sequence[Estimate]) -> Grid:
    """Return the table of what a run would ask, with the totals."""
    lines = [(r.label, r.episodes, r.decisions, r.calls, r.tokens_in, r.tokens_out) for r in rows]
    _, *numbers = zip(*lines, strict=True)
    total = ("all, about", *map(sum, numbers))
    heads = columns("game", "episodes, decisions, calls, tokens in, tokens out", ",")
    return Grid(heads, lines, foot=[total])


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
