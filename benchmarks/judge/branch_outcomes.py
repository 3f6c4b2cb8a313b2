"""What came of a branch: moves at its step beside the recorded one, and payoffs from there on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_games.benchmarks.judge.means import MeanCell, paid
from llm_games.benchmarks.judge.talk_measures import in_words, turns
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame
from llm_games.errors import LLMGamesError


@dataclass(frozen=True)
class MoveShare:
    """A move that was made at the step of a branch: how often, and its mean regret there."""

    move: Any
    words: str
    count: int
    regret: float | None


@dataclass(frozen=True)
class SeatOutcome:
    """A seat that was asked at the step of a branch: the origin's move, and the branch's.

    `payoff` is from the step on, as the origin's in `recorded`; None if the branch ends there.
    """

    seat: int
    player: str
    recorded: Mapping[str, Any]
    moves: Sequence[MoveShare]
    payoff: MeanCell | None

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        payoff = self.payoff and self.payoff._asdict()
        moves = [vars(share) for share in self.moves]
        return {**vars(self), "recorded": dict(self.recorded), "moves": moves, "payoff": payoff}


def step_regret(episode: RecordedEpisode, step: int) -> dict[int, float]:
    """Return the regret of each seat's move in a step; none where it is not defined."""
    steps = [row.step for row in episode.steps]
    if step not in steps:
        return {}
    try:
        column = episode.regret()[:, steps.index(step)].tolist()
    except LLMGamesError:
        return {}
    return {seat: regret for seat, regret in enumerate(column) if np.isfinite(regret)}


def branch_outcomes(game: RecordedGame) -> list[SeatOutcome]:
    """Return the outcomes of a branch by seat; [] of a game that is none."""
    point = game.planned.get("branch")
    if not point:
        return []
    step, done = point["step"], list(game.done)
    moves = [{d.seat: d for d in episode.decisions() if d.step == step} for episode in done]
    regrets = [step_regret(episode, step) for episode in done]
    rounds = turns(done[0]) if done else ()
    questions = next((turn.questions for turn in rounds if turn.steps[1] == step), {})
    outcomes = []
    for text, recorded in point["recorded"].items():
        seat, counts = int(text), dict[str, list[float | None]]()
        for decided, regret in zip(moves, regrets, strict=True):
            if seat in decided:
                name = json.dumps(decided[seat].readable)
                counts.setdefault(name, []).append(regret.get(seat))
        question = questions.get(seat)
        shares = [
            MoveShare(json.loads(m), in_words(question, json.loads(m)), len(of), _mean(of))
            for m, of in counts.items()
        ]
        shares.sort(key=lambda share: -share.count)
        payoffs = [] if point["once"] else [float(episode.earned[seat]) for episode in done]
        payoff = paid(payoffs, game.rules.core.payable_mean(1))
        before = {**recorded, "words": in_words(question, recorded["move"])}
        outcomes.append(SeatOutcome(seat, game.seats[seat], before, shares, payoff))
    return outcomes


def _mean(regrets: Sequence[float | None]) -> float | None:
    defined = [regret for regret in regrets if regret is not None]
    return float(np.mean(defined)) if defined else None
