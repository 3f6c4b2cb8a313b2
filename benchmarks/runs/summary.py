"""What a run came to, in numbers: scores, payoffs and rule breaks of each game."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_games.benchmarks.papers.gamma_bench.scores import (
    GAMES,
    MARK,
    Cell,
    cell,
    overall,
    score_episode,
)
from llm_games.benchmarks.runs.store import EpisodeRow, Records
from llm_games.registry import rulebook
from llm_games.wrappers.clients.budget import Usage


@dataclass(frozen=True)
class GameSummary:
    """One game of a run.

    Attributes:
        label, game: its name in the run and in the registry.
        players: the players' names, each once.
        episodes: how many there are in each status.
        scores: of the finished episodes, 0 to 100; empty where no score is defined.
        payoffs: of each seat as configured, wherever it sat, summed over an episode, mean over the
            finished episodes.
        payoff_of: the mean of that over each player's seats.
        decisions: made in all episodes.
        bad_replies: completions that were not legal moves, by outcome.
        bad_thoughts: the same of what players think of beside their moves; a belief that does not
            agree with the facts is one of them.
        filled_in: decisions for which the declared treatment was played.
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
        found = self.cell
        score = None if found is None else {"mean": found.mean, "std": found.std}
        return self.__dict__ | {"score": score, "marked": self.marked}


def summary(records: Records) -> list[GameSummary]:
    """Summarize a run game by game, scored by its own edition."""
    episodes = records.episodes()
    return [
        _game(records, [episode for episode in episodes if episode.game.id == game.id])
        for game in records.games()
    ]


def total(games: list[GameSummary]) -> Cell | None:
    """Return the mean over the benchmark's eight games, if each is there once."""
    names = [game.game for game in games]
    if sorted(names) != sorted(GAMES):
        return None
    return overall({game.game: game.scores for game in games})


def spending(spent: Mapping[tuple[str, str], Usage]) -> dict[str, dict[str, Usage]]:
    """Add up what was spent, see `Records.spent`, by ``models`` and by ``seats``."""
    found: dict[str, dict[str, Usage]] = {"models": {}, "seats": {}}
    for names, usage in spent.items():
        for kind, name in zip(found, names, strict=True):
            found[kind].setdefault(name, Usage()).add(usage)
    return found


def _game(records: Records, episodes: list[EpisodeRow]) -> GameSummary:
    game = episodes[0].game
    rules = rulebook(game.game, **game.params)
    edition = records.config.get("scoring", "corrected")
    scores, payoffs, decisions, filled_in = [], [], 0, 0
    bad: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}  # by whether it is a move
    for episode in episodes:
        made = records.decisions(episode.id)
        decisions += len(made)
        filled_in += sum(decision.broke for decision in made)
        for attempt in records.attempts(episode.id):
            if attempt.outcome not in (None, "valid", "tool"):
                bad[attempt.kind == "move"][attempt.outcome] += 1
        if episode.status == "done":
            steps = records.steps(episode.id)
            by_chair = np.sum([step.rewards for step in steps], axis=0)
            payoffs.append(by_chair[np.argsort(episode.seating)])
            score = score_episode(rules, [step.record for step in steps], edition)
            scores += [] if score is None else [score]
    means = np.mean(payoffs, axis=0).tolist() if payoffs else []
    of_each: dict[str, list[float]] = {}
    for name, payoff in zip(game.seats, means, strict=False):
        of_each.setdefault(name, []).append(payoff)
    return GameSummary(
        label=game.label,
        game=game.game,
        players=list(dict.fromkeys(game.seats)),
        episodes=dict(Counter(episode.status for episode in episodes)),
        scores=scores,
        payoffs=means,
        payoff_of={name: float(np.mean(found)) for name, found in of_each.items()},
        decisions=decisions,
        bad_replies=dict(bad[True]),
        bad_thoughts=dict(bad[False]),
        filled_in=filled_in,
    )
