"""What characters do in matrix games, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """The first action for the sake of both, the last one for oneself, or now this, now that."""
    actions = sorted(view.question.words.values())
    if persona == "cooperative":
        return actions[0], "If both of us choose this, we both do well."
    if persona == "selfish":
        return draw(rng, (actions[-1], 9), (actions[0], 1)), "I take what may bring me most."
    if persona == "mathematician":
        return actions[-1], "I compare what each choice brings me, whatever the other does."
    return actions[rng.integers(len(actions))], "I do not know what the other does."
