"""What characters do in budget auction, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Mostly bid the own value, which the second price makes best; never above the assets."""
    signal, unit = view.observation["own"], view.game.unit
    bid = round(signal * unit)
    if persona == "mathematician":
        return bid, f"With the second price, the value {signal} itself is the best bid."
    if persona == "selfish" and rng.random() < 0.3:
        assets = view.observation["assets"]
        return round(assets * unit), f"I want to win and bid all of my {assets}."
    if persona == "cooperative" and rng.random() < 0.6:
        return draw(rng, (0, 1), (unit, 1)), "If all of us bid low, the winner pays little."
    return bid, f"It is worth {signal} to me, so I bid that."
