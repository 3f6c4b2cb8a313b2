"""What characters do in diners dilemma, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Costly, unless one cares for the table; without a persona, as most did last time."""
    last = view.observation["last"]
    if persona == "cooperative":
        return int(rng.random() < 0.05), "If all of us order cheap, we all save."
    if persona == "selfish":
        return int(rng.random() < 0.97), "The others pay most of my dish."
    if persona == "mathematician":
        return 1, "The costly dish is dominant, since the bill is shared."
    if last is None:
        return int(rng.random() < 0.5), "I do not know yet what the others order."
    if last["costly"] > last["cheap"]:
        return int(rng.random() < 0.85), "Most ordered costly, so I will not pay for them alone."
    return int(rng.random() < 0.25), "Most ordered cheap, and I do as they do."
