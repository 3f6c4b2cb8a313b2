"""What characters do in water allocation, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw
from llm_games.questions import NO_BID


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Bid nothing, a dollar a unit, the salary (part of the balance) or all, by urgency."""
    observation, me, unit = view.observation, view.game.cast[view.seat], view.game.unit
    every, salary = view.question.high, me.salary * unit
    need = min(me.requirement * unit, every)
    if observation["supply"] < me.requirement and persona != "selfish":
        return NO_BID, f"I need {me.requirement}, and there is not enough today."
    dry, healthy = observation["dry"] > 0, observation["hp"] >= 8
    if persona == "selfish":
        return draw(rng, (every, 6), (salary, 4)), "I want the water, whatever it costs."
    if persona == "cooperative":
        bid = draw(rng, (salary, 9), (every, 1)) if dry else draw(rng, (need, 6), (NO_BID, 4))
        return bid, "Those who are dry shall drink first, and I bid by my own thirst."
    if persona == "mathematician":
        if healthy and not dry:
            return draw(rng, (NO_BID, 6), (need, 4)), "My health is good, so I save money."
        return (every if observation["hp"] <= 5 else salary), "My health decides how much I bid."
    if dry:
        return draw(rng, (every, 6), (salary, 4)), "I was dry, so I need the water now."
    return draw(rng, (salary, 5), (need, 3), (NO_BID, 2)), "I had water, so I do not bid it all."
