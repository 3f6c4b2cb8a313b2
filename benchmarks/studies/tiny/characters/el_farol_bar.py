"""What characters do in el farol bar, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Go again if it was fun; the greedy one mostly goes, the mathematician mixes."""
    ratio, last = float(view.game.ratio), view.observation["last"]
    if persona == "selfish":
        return rng.random() < 0.9, "I want the fun for myself, whatever the others do."
    if persona == "mathematician":
        return rng.random() < ratio, "In equilibrium everybody goes with the same probability."
    if persona == "cooperative":
        again = last is not None and last["went"] and last["utility"] > view.game.home
        go = rng.random() < (0.8 if again else ratio / 2)
        return go, "The bar is good for all of us only if some stay at home."
    if last is None:
        return rng.random() < ratio, "I know nothing yet, so I try my luck."
    if not last["went"]:
        return rng.random() < 0.7, "I stayed at home last time, so others may stay this time."
    if last["utility"] > view.game.home:
        return rng.random() < 0.9, "It was good last time, so I do the same again."
    return rng.random() < 0.3, "It was too crowded last time."
