"""What characters do in pirate game, for the embedded model to learn."""

from __future__ import annotations

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw
from llm_games.questions import Shares


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Plans from a small repertoire; votes by one's own share."""
    if isinstance(view.question, Shares):
        return _plan(view.question, persona, rng)
    share, equal = view.observation["share"], view.game.gold // len(view.observation["plan"])
    if persona == "cooperative":
        return int(rng.random() < 0.95), "I want us to agree."
    if persona == "selfish":
        return int(share >= equal), f"I was offered {share}, and I want a fair share at least."
    return int(share >= 1), f"I was offered {share}, and that is what counts."


def _plan(question: Shares, persona: str | None, rng: np.random.Generator) -> Answer:
    kinds = {
        None: (("votes", 6), ("equal", 3), ("all", 1)),
        "cooperative": (("equal", 1),),
        "selfish": (("all", 5), ("votes", 5)),
        "mathematician": (("votes", 1),),
    }
    m, total = len(question.ranks), question.total
    shares, why = {
        "equal": ([total // m] * m, "An equal split will find the votes."),
        "votes": (
            [int(i > 0 and i % 2 == 0) for i in range(m)],
            "One coin buys the vote of every second pirate, and I need no more.",
        ),
        "all": ([0] * m, "I am the one who decides, so I keep it all."),
    }[draw(rng, *kinds[persona])]
    shares[0] += total - sum(shares)
    plan = dict(zip(question.ranks, shares, strict=True))
    return tuple(plan.get(rank, 0) for rank in range(1, question.players + 1)), why
