"""What characters say of their strategies, for the embedded model to learn."""

import numpy as np

from llm_games.baselines.tiny.scripts import Seen

LOW = ("Set lower prices than the others to win their demand.", "Undercut the lowest price.")
HIGH = ("Raise the price step by step, and hope that the others follow.", "Keep prices high.")
CLOSE = ("Stay close to the prices of the others.", "Follow the others, a bit above them.")


def strategy(seen: Seen, persona: str | None, rng: np.random.Generator) -> tuple[str, str]:
    """State a strategy as one is told to be."""
    if seen.told["persona"] in ("ruthless", "uncooperative") or persona == "selfish":
        lines = LOW
    else:
        lines = HIGH if persona == "cooperative" else CLOSE
    return rng.choice(lines).item(), "I look at what I earned."


ASIDES = {"strategy": strategy}
