"""What characters do in the trust game, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Half goes over, and what was sent comes back; those who count alone keep all."""
    high, sent = int(view.question.high), view.observation["sent"]
    if persona in ("selfish", "mathematician"):
        return 0, "What I keep is mine."
    if sent is None and persona == "cooperative":
        return high, "What I send grows, and we share it."
    if sent is None:
        return draw(rng, (high // 2, 7), (high, 3)), "I send a part and see what comes back."
    if persona == "cooperative":
        return sent, "The other shall not lose by it."
    return draw(rng, (sent, 8), (0, 2)), f"The other sent {sent}, and I give back as much."
