"""Players of the diner's dilemma."""

import numpy as np

from llm_games.baselines.games.diners_dilemma import theory
from llm_games.baselines.games.diners_dilemma.theory import Menu
from llm_games.baselines.rules import Players, shape
from llm_games.baselines.tiny.scripts import Answer, Seen
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def dominant(view: View, noise: Noise | None = None) -> Array:
    """Order what is best whatever the others order."""
    return np.full(shape(view), theory.best_response(Menu.of(view.game)))


def cooperative(view: View, noise: Noise) -> Array:
    """Order what is best for all."""
    return np.full(shape(view), theory.optimum(Menu.of(view.game)))


def reciprocal(view: View, noise: Noise) -> Array:
    """Order what is best for all until another one orders costly, as is seen in the last round."""
    others = view.number("costly") - view.number("dish")
    return np.where(others > 0, dominant(view), cooperative(view, noise))


def script(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Costly, unless one cares for the table; without a persona, as most did last time."""
    last = seen.told["last"]
    if persona == "cooperative":
        return int(rng.random() < 0.05), "If all of us order cheap, we all save."
    if persona == "selfish":
        return int(rng.random() < 0.97), "The others pay most of my dish."
    if persona == "mathematician":
        return 1, "The costly dish is dominant, since the bill is shared."
    if last is None:
        return int(rng.random() < 0.5), "I do not know yet what the others order."
    if last["costly"] > last["cheap"]:
        return int(rng.random() < 0.85), "Most ordered costly, so I will not pay for them alone."
    return int(rng.random() < 0.25), "Most ordered cheap, and I do as they do."


PLAYERS = Players(
    {
        "rational": dominant,
        "best_response": dominant,
        "cooperative": cooperative,
        "reciprocal": reciprocal,
    },
    assumed="whatever the others do (it is rational itself)",
    reply_to=lambda view, others: dominant(view),
    broadcasts=True,
    script=script,
)
