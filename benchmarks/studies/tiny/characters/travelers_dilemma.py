"""What characters do in the traveler's dilemma, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Near the highest claim, or just below it; the mathematician claims the lowest."""
    low, high = int(view.question.low), int(view.question.high)
    if persona == "cooperative":
        return high, f"If both of us claim {high}, both get it."
    if persona == "mathematician":
        return low, "Whoever claims one less gains, step by step, down to the lowest."
    if persona == "selfish":
        return high - 1, "I stay just below the other."
    return draw(rng, (high, 5), (high - 10, 5)), "A high claim, and perhaps a little caution."
