"""What characters do in divide dollar, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """About an equal share; the greedy one asks for more."""
    share = view.game.golds // view.game.players
    extra = max(1, share // 5)
    if persona in ("cooperative", "mathematician"):
        bid = draw(rng, (share, 8), (max(share - extra, 0), persona == "cooperative"))
        return bid, f"An equal share is {share}, and so the bids add up."
    if persona == "selfish":
        bid = draw(rng, (share * 2, 5), (share + extra, 3), (share * 3, 1))
        return bid, f"An equal share would be {share}, but I want more."
    last = view.observation["last"]
    if last is not None and last["exceeded"]:
        bid = draw(rng, (share, 3), (max(share - extra, 0), 5))
        return bid, "The bids were too high last time, so I ask for less."
    bid = draw(rng, (share, 6), (share + extra, 2))
    return bid, f"I ask for about an equal share, which is {share}."
