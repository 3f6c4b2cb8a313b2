"""What characters do in budget auction, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw


def script(seen: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Mostly bid the own value, which the second price makes best; never above the assets."""
    own, unit = seen.told["own"], seen.game.unit
    bid = round(own * unit)
    if persona == "mathematician":
        return bid, f"With the second price, the value {own} itself is the best bid."
    if persona == "selfish" and rng.random() < 0.3:
        assets = seen.told["assets"]
        return round(assets * unit), f"I want to win and bid all of my {assets}."
    if persona == "cooperative" and rng.random() < 0.6:
        return draw(rng, (0, 1), (unit, 1)), "If all of us bid low, the winner pays little."
    return bid, f"It is worth {own} to me, so I bid that."
