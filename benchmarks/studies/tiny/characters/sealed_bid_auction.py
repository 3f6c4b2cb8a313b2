"""What characters do in sealed bid auction, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """A little below the own valuation; with the second price, the valuation itself."""
    valuation, first = int(view.observation["own"]), view.game.price == "first"
    if persona == "mathematician":
        bid = valuation * 9 // 10 if first else valuation
        return bid, "Nine tenths are best against nine others." if first else "The truth is best."
    if persona == "selfish":
        return valuation // 2, "I want a large gain, so I bid half of what it is worth to me."
    careful = persona == "cooperative" or not first
    below = draw(rng, *(((0, 2), (10, 8)) if careful else ((10, 5), (20, 4), (30, 1))))
    return max(0, valuation - below), f"It is worth {valuation} to me, so I bid {below} less."
