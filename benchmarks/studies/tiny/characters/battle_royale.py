"""What characters do in battle royale, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView
from llm_games.games.battle_royale.rules import MISS


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Shoot back at whoever shot last, who is alive and somebody else; before that, at nobody."""
    events, names = view.observation["events"], view.question.names
    last = names.get(events[-1]["shooter"]) if events else None
    if last is None:
        return MISS, "Nobody has shot yet, and I would rather not provoke anybody."
    if rng.random() < {None: 0.75, "cooperative": 0.15}.get(persona, 1.0):
        return last, "I shoot back at the last one who shot."
    if persona == "cooperative":
        return MISS, "I do not want to harm anybody."
    return MISS, "I would rather not provoke anybody."
