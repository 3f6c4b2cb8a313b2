"""Players of the public goods game."""

import numpy as np

from llm_games.baselines.games.public_goods import theory
from llm_games.baselines.rules import Players
from llm_games.baselines.tiny.scripts import Answer, Seen, draw
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def dominant(view: View, noise: Noise | None = None) -> Array:
    """Give what is best whatever the others give."""
    own = np.floor(view.number("own")).astype(np.int64)
    return theory.best_response(own, view.game.ratio, view.game.players)


def cooperative(view: View, noise: Noise) -> Array:
    """Give what is best for all."""
    return theory.optimum(np.floor(view.number("own")), view.game.ratio)


def reciprocal(view: View, noise: Noise) -> Array:
    """Give as much as the others did on average last, rounded down; at first, everything."""
    others = (view.number("pot") - view.number("contribution")) // max(view.game.players - 1, 1)
    return np.where(view.number("round") > 1, others, np.floor(view.number("own")))


def script(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Half at first, then as much again or one less; the greedy one gives nothing."""
    own, last = int(seen.question.high), seen.told["last"]
    if persona == "cooperative":
        given = draw(rng, (own, 8), (own * 3 // 4, 2))
        return given, "The group gains most if all of us give."
    if persona == "mathematician":
        worth = seen.game.ratio >= seen.game.players
        return own if worth else 0, "A token in the pot brings me less than a token I keep."
    if persona == "selfish":
        return draw(rng, (0, 8), (min(own, 1), 1), (min(own, 2), 1)), "I keep what I have."
    if last is None:
        return draw(rng, (own // 2, 6), (own // 4, 2), (own, 2)), "I begin with about a half."
    given = int(np.clip(last["contribution"] + rng.integers(-1, 1), 0, own))
    return given, "I give about as much as I gave before."


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
