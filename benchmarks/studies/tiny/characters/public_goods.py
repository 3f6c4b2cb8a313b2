"""What characters do in public goods, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw


def script(seen: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Half at first, then as much again or one less; the greedy one gives nothing."""
    own, last = int(seen.question.high), seen.told["last"]
    if persona == "cooperative":
        given = draw(rng, (own, 8), (own * 3 // 4, 2))
        return given, "The group gains most if all of us give."
    if persona == "mathematician":
        worth = seen.game.ratio >= seen.game.players
        return own if worth else 0, "A token in the pot brings me less than a token I keep."
    if persona == "selfish":
        return draw(rng, (0, 8), (min(own, 1), 1), (min(own, 2), 1)), "I keep what I have."
    if last is None:
        return draw(rng, (own // 2, 6), (own // 4, 2), (own, 2)), "I begin with about a half."
    given = int(np.clip(last["contribution"] + rng.integers(-1, 1), 0, own))
    return given, "I give about as much as I gave before."
