"""What characters do in english auction, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView
from llm_games.games.english_auction.rules import WITHDRAW


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Raise by as little as is allowed, up to about the estimate; withdraw now and then.

    The smallest bid stands in the question. Where it does not, only an opening bid is safe.
    """
    question, observation = view.question, view.observation
    floor, estimate = question.floor, observation["estimate"]
    if floor > question.budget:
        return WITHDRAW, "I cannot afford it."
    budget, price = str(question.budget), str(floor)
    clearly = (len(budget), budget[0]) > (len(price), price[0])  # at a glance, by digits
    if not question.limits and not (question.opening and clearly):
        return WITHDRAW, "I do not know how much it takes, so I leave it."
    limit = estimate * 3 // 2 if view.game.objectives[view.seat] == "items" else estimate
    limit = limit * 9 // 10 if persona == "mathematician" else limit
    if floor > limit:
        return WITHDRAW, f"It would cost {floor} now, and that is too much."
    if view.game.values == "private" and question.opening and rng.random() < 0.25:
        return estimate, f"I open with what it is worth to me, {estimate}."
    if rng.random() < {"cooperative": 0.6, None: 0.85}.get(persona, 0.95):
        return floor, f"The lowest bid is {floor}, and that is not too much."
    return WITHDRAW, "I leave it to the others."
