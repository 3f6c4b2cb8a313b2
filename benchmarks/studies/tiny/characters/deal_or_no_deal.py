"""What characters do in deal or no deal, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView
from llm_games.games.deal_or_no_deal.divisions import code_of

ACCEPTS = {None: 0.4, "cooperative": 0.8, "selfish": 0.1, "mathematician": 0.4}
"""How often a standing offer is accepted."""


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """All, one of each kind, or all pieces that are worth something to oneself."""
    question, items = view.question, view.observation["items"]
    if question.may and rng.random() < ACCEPTS[persona]:
        return question.accept, "I take what was offered."
    if persona == "selfish":
        return int(code_of([item["count"] for item in items])), "I ask for everything."
    if persona == "cooperative":
        return int(code_of([1] * len(items))), "I take one of each and leave the rest."
    wanted = [item["count"] if item["value"] else 0 for item in items]
    return int(code_of(wanted)), "I ask for what is worth something to me."
