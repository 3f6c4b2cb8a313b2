"""What characters do in the minimum effort game, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, clip, draw


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """High at first, then what was lowest; the cooperative one stays high, the selfish one low."""
    low, high = int(view.question.low), int(view.question.high)
    last = view.observation["last"]
    if persona == "cooperative":
        return draw(rng, (high, 9), (high - 1, 1)), "If all of us work hard, all gain most."
    if persona == "selfish":
        return draw(rng, (low, 7), (low + 1, 3)), "I do not pay for the efforts of others."
    if last is None:
        begin = high if persona == "mathematician" else high - int(rng.integers(0, 4))
        return begin, "The best for all is that everybody chooses the highest."
    if persona == "mathematician":
        return int(last["lowest"]), "More than the lowest effort is wasted."
    return clip(last["lowest"] + rng.integers(0, 2), view), "I stay near the lowest effort."
