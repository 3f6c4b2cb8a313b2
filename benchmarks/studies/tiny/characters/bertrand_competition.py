"""What characters do in bertrand competition, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, clip, draw
from llm_games.games.bertrand_competition.rules import BertrandCompetition


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Start at half of the highest price, then stay near the lowest rival; the greedy go below."""
    game: BertrandCompetition = view.game
    observation, unit = view.observation, game.unit
    costs = int(game.ticks(game.costs, up=True)[view.seat])
    rival = (
        round(min(observation["past"][-1]["rivals"]) * unit)
        if observation["past"]
        else view.question.high // 2
    )
    step = max(unit // 2, 1)
    legal = lambda price: clip(max(price, costs), view)  # noqa: E731
    if observation["persona"] in ("ruthless", "uncooperative") or persona == "selfish":
        return legal(rival - step), "I set a lower price than the others to win their demand."
    if observation["persona"] == "explorer":
        price = draw(rng, *((step * k, 1) for k in range(4, 20)))
        return legal(price), "I try a price that I have not tried."
    if observation["persona"] == "aggressive":
        return legal(rival + draw(rng, (3 * step, 1), (-2 * step, 1))), "I change it in a big step."
    if persona == "cooperative":
        return legal(rival + draw(rng, (step, 3), (0, 1))), "If prices rise, all firms earn more."
    return legal(rival + draw(rng, (0, 3), (step, 2))), "I stay close to what the others ask."


LOW = ("Set lower prices than the others to win their demand.", "Undercut the lowest price.")
HIGH = ("Raise the price step by step, and hope that the others follow.", "Keep prices high.")
CLOSE = ("Stay close to the prices of the others.", "Follow the others, a bit above them.")


def strategy(view: ScriptView, persona: str | None, rng: np.random.Generator) -> tuple[str, str]:
    """State a strategy as one is told to be."""
    if view.observation["persona"] in ("ruthless", "uncooperative") or persona == "selfish":
        lines = LOW
    else:
        lines = HIGH if persona == "cooperative" else CLOSE
    return rng.choice(lines).item(), "I look at what I earned."


ASIDES = {"strategy": strategy}
