"""A sample of what players were asked and answered; all of it is for the viewer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.regret import has_deviation
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame, Run
from llm_games.benchmarks.record.schema import AttemptRow

LOOKED_AT = 20
"""Episodes of a game that a sample is taken from."""
LONGEST = 4000
"""Characters of a message that a page shows; one decision is no reason for a page of 10 MB."""


class SampleDecision(NamedTuple):
    """A decision of a player: where it was made, its regret, NaN if unknown, and its attempts."""

    game: str
    episode: RecordedEpisode
    step: int
    seat: int
    regret: float
    attempts: list[AttemptRow]


def sample(run: Run, count: int) -> list[dict[str, Any]]:
    """So many decisions of each player, the largest regrets first, of `LOOKED_AT` episodes."""
    decisions_by_player: dict[str, list[SampleDecision]] = {}
    for game in run.games if count else ():
        for episode in islice(game.played, LOOKED_AT):
            for decision in _decisions(game, episode):
                decisions_by_player.setdefault(episode.seats[decision.seat], []).append(decision)
    return [
        _shown(player, decision)
        for player, decisions in decisions_by_player.items()
        for decision in sorted(decisions, key=lambda d: -np.nan_to_num(d.regret, nan=-1.0))[:count]
    ]


def _decisions(game: RecordedGame, episode: RecordedEpisode) -> Iterator[SampleDecision]:
    asked: dict[tuple[int, int], list[AttemptRow]] = {}
    for attempt in episode.attempts():
        asked.setdefault((attempt.step, attempt.seat), []).append(attempt)
    regret = episode.regret() if asked and has_deviation(game.name) else None
    column = {step.step: number for number, step in enumerate(episode.steps)}
    for (step, seat), attempts in asked.items():
        lost = np.nan if regret is None or step not in column else float(regret[seat, column[step]])
        yield SampleDecision(game.label, episode, step, seat, lost, attempts)


def _shown(player: str, decision: SampleDecision) -> dict[str, Any]:
    """Each message once, then how replies were read."""
    row = decision.episode.row
    about = f"{decision.game}, episode {row.number}, step {decision.step}, seat {decision.seat}"
    about += "" if np.isnan(decision.regret) else f", regret {decision.regret:.4g}"
    lines, sent = [], list[dict[str, str]]()
    for attempt in decision.attempts:
        messages = decision.episode.file.messages(attempt.prompt)
        new = messages[len(sent) :] if messages[: len(sent)] == sent else messages
        sent = messages
        lines += [(message["role"], cut(message["content"])) for message in new]
        lines += [("thoughts", cut(attempt.thoughts))] if attempt.thoughts else []
        lines.append((f"{attempt.kind}: reply", cut(attempt.text)))
        read = attempt.outcome or "not read yet"
        lines.append(("read as", f"{read}: {cut(attempt.why)}" if attempt.why else read))
    return {"player": player, "about": about, "lines": lines}


def cut(text: str) -> str:
    remaining = len(text) - LONGEST
    return text if remaining <= 0 else f"{text[:LONGEST]} … ({remaining:,} characters more)"
