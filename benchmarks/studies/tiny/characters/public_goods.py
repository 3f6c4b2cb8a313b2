"""What characters do in public goods, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Half at first, then as much again or one less; the greedy one gives nothing."""
    tokens, last = int(view.question.high), view.observation["last"]
    if persona == "cooperative":
        contribution = draw(rng, (tokens, 8), (tokens * 3 // 4, 2))
        return contribution, "The group gains most if all of us give."
    if persona == "mathematician":
        worth = view.game.ratio >= view.game.players
        return tokens if worth else 0, "A token in the pot brings me less than a token I keep."
    if persona == "selfish":
        return draw(rng, (0, 8), (min(tokens, 1), 1), (min(tokens, 2), 1)), "I keep what I have."
    if last is None:
        contribution = draw(rng, (tokens // 2, 6), (tokens // 4, 2), (tokens, 2))
        return contribution, "I begin with about a half."
    contribution = int(np.clip(last["contribution"] + rng.integers(-1, 1), 0, tokens))
    return contribution, "I give about as much as I gave before."
