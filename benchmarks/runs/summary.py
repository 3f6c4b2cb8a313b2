"""What a run came to, in numbers: scores, payoffs and rule breaks of each game."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_games.benchmarks.runs import paper
from llm_games.benchmarks.runs.paper import Measure
from llm_games.benchmarks.runs.reader import Game, Tally, games
from llm_games.benchmarks.runs.records import Records
from llm_games.benchmarks.runs.stats import MARK, Cell, cell


@dataclass(frozen=True)
class GameSummary:
    """One game of a run: its `label` there, and its name in the registry.

    `episodes` counts them by status; `scores` are those of the finished ones, 0 to 100, empty where
    none is defined, `measured` their values of the paper's `measure`. `payoffs` are of each seat as
    configured, wherever it sat, summed over an episode, mean over the finished ones; `payoff_of` is
    their mean over each player's seats. `bad_replies` counts completions that were not legal moves,
    by outcome, `bad_thoughts` the same of what players think of beside their moves (such as a
    belief that does not agree with the facts), `filled_in` decisions for which the declared
    treatment was played.
    """

    label: str
    game: str
    players: list[str]
    episodes: dict[str, int]
    scores: list[float]
    payoffs: list[float]
    payoff_of: dict[str, float]
    decisions: int
    bad_replies: dict[str, int]
    bad_thoughts: dict[str, int]
    filled_in: int
    measure: Measure | None
    measured: list[float]

    @property
    def cell(self) -> Cell | None:
        """Return mean and standard deviation of the scores."""
        return cell(self.scores) if self.scores else None

    @property
    def marked(self) -> bool:
        """Return whether too large a share of the decisions was filled in."""
        return self.filled_in > MARK * self.decisions

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        score = self.cell and {"mean": self.cell.mean, "std": self.cell.std}
        found = cell(self.measured) if self.measured else None
        measure = self.measure and {
            **{"name": self.measure.name, "better": self.measure.better},
            **{"mean": found and found.mean, "std": found and found.std},
        }
        return self.__dict__ | {"score": score, "measure": measure, "marked": self.marked}


def summary(records: Records) -> list[GameSummary]:
    """Summarize a run game by game, scored by its own edition."""
    edition = paper.edition_of(records.config)
    return [_summary(game, edition) for game in games(records)]


def total(found: list[GameSummary]) -> Cell | None:
    """Return the mean over a paper's benchmark, if each of its games is there once."""
    return paper.overall([(game.game, game.scores) for game in found])


def _summary(game: Game, edition: str) -> GameSummary:
    scores, measured, payoffs, did = list[float](), list[float](), [], Tally()
    measure = paper.measure_of(game)
    for episode in game.episodes:
        did.add(episode.tallies()[0])
        if episode.row.status == "done":
            payoffs.append(episode.payoffs)
            score = paper.score(episode.rules, episode.records, edition)
            found = measure.of(episode) if measure else None
            scores += [] if score is None else [score]
            measured += [] if found is None else [found]
    means = np.mean(payoffs, axis=0).tolist() if payoffs else []
    of_each: dict[str, list[float]] = {}
    for name, payoff in zip(game.seats, means, strict=False):
        of_each.setdefault(name, []).append(payoff)
    return GameSummary(
        label=game.label,
        game=game.name,
        players=game.players,
        episodes=dict(game.states),
        scores=scores,
        payoffs=means,
        payoff_of={name: float(np.mean(found)) for name, found in of_each.items()},
        decisions=did.decisions,
        bad_replies=_bad(did.moves),
        bad_thoughts=_bad(sum(did.others.values(), Counter())),
        filled_in=did.filled,
        measure=measure,
        measured=measured,
    )


def _bad(read: Counter[str]) -> dict[str, int]:
    return {name: n for name, n in read.items() if name not in ("unread", "valid", "tool")}
