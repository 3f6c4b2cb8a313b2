"""A sample of what players were asked and answered; all of it is for the viewer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.deviation import has_deviation
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame, Run
from llm_games.benchmarks.record.rows import AttemptRow

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


def sample(run: Run, many: int) -> list[dict[str, Any]]:
    """Return so many decisions of each player that was asked, those with the most regret first.

    They are from the first `LOOKED_AT` episodes of each game, also unfinished ones.
    """
    found: dict[str, list[SampleDecision]] = {}
    for game in run.games if many else ():
        for episode in islice(game.played, LOOKED_AT):
            for one in _decisions(game, episode):
                found.setdefault(episode.seats[one.seat], []).append(one)
    chosen = (
        (player, sorted(ones, key=lambda one: -np.nan_to_num(one.regret, nan=-1.0))[:many])
        for player, ones in found.items()
    )
    return [_shown(player, one) for player, ones in chosen for one in ones]


def _decisions(game: RecordedGame, episode: RecordedEpisode) -> Iterator[SampleDecision]:
    asked: dict[tuple[int, int], list[AttemptRow]] = {}
    for attempt in episode.attempts():
        asked.setdefault((attempt.step, attempt.seat), []).append(attempt)
    regret = episode.regret() if asked and has_deviation(game.name) else None
    column = {step.step: number for number, step in enumerate(episode.steps)}
    for (step, seat), attempts in asked.items():
        known = regret is not None and step in column
        lost = float(regret[seat, column[step]]) if regret is not None and known else np.nan
        yield SampleDecision(game.label, episode, step, seat, lost, attempts)


def _shown(player: str, one: SampleDecision) -> dict[str, Any]:
    """Return what the page shows of a decision: each message once, then how replies were read."""
    row = one.episode.row
    about = f"{one.game}, episode {row.number}, step {one.step}, seat {one.seat}"
    about += "" if np.isnan(one.regret) else f", regret {one.regret:.4g}"
    lines, before = [], list[dict[str, str]]()
    for attempt in one.attempts:
        messages = one.episode.file.messages(attempt.prompt)
        new = messages[len(before) :] if messages[: len(before)] == before else messages
        before = messages
        lines += [(message["role"], cut(message["content"])) for message in new]
        lines += [("thoughts", cut(attempt.thoughts))] if attempt.thoughts else []
        lines.append((f"{attempt.kind}: reply", cut(attempt.text)))
        read = attempt.outcome or "not read yet"
        lines.append(("read as", f"{read}: {cut(attempt.why)}" if attempt.why else read))
    return {"player": player, "about": about, "lines": lines}


def cut(text: str) -> str:
    """Return a text, or its beginning and how much there is more."""
    more = len(text) - LONGEST
    return text if more <= 0 else f"{text[:LONGEST]} … ({more:,} characters more)"
