"""What characters do in the money request game, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Some steps below the highest request; the cooperative one asks for the highest."""
    high = int(view.question.high)
    if persona == "cooperative":
        return high, f"{high} is safe."
    if persona == "selfish":
        return draw(rng, (high - 1, 5), (high - 2, 5)), "I go just below what the other asks for."
    if persona == "mathematician":
        weights = (1, 2, 3, 4, 5, 5)  # of 20: the equilibrium's
        steps = draw(rng, *enumerate(weights))
        return high - steps, "No request may be foreseen, so I mix them."
    return draw(rng, *((high - k, w) for k, w in enumerate((1, 2, 4, 4)))), "A few steps below."
