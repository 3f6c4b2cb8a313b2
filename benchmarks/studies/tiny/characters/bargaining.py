"""What characters do in bargaining, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw
from llm_games.questions import Choice


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Half or somewhat less; small offers are rejected but by those who count alone."""
    if isinstance(view.question, Choice):
        return _answer(view, persona)
    tenth = view.game.pie // 10
    if persona == "cooperative":
        return 5 * tenth, "Half for each of us is fair."
    if persona == "mathematician":
        return draw(rng, (0, 5), (1, 5)), "Whoever counts takes little rather than nothing."
    if persona == "selfish":
        return draw(rng, (tenth, 3), (2 * tenth, 4), (3 * tenth, 3)), "I keep most for myself."
    return draw(rng, (5 * tenth, 6), (4 * tenth, 4)), "About a half will do."


def _answer(view: ScriptView, persona: str | None) -> Answer:
    accept, reject = view.question.words["accept"], view.question.words["reject"]
    offer = view.observation["offer"]
    least = {None: 3, "selfish": 4}.get(persona, 0) * (view.game.pie // 10)
    if offer < least:
        return reject, f"I was offered {offer}, and that is too little."
    return accept, f"I was offered {offer}, and I take it."
