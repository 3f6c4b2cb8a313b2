"""Players of divide the dollar."""

import numpy as np

from llm_games.baselines.games.divide_dollar import theory
from llm_games.baselines.rules import Players, shape, whole
from llm_games.baselines.tiny.scripts import Answer, Seen, draw
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def rational(view: View, noise: Noise) -> Array:
    """Bid an equal share; the first seats bid the remainder."""
    fair = theory.fair_bids(view.game.players, view.game.golds)
    return np.broadcast_to(fair[view.seat], shape(view))


def best_response(view: View, noise: Noise) -> Array:
    """Bid what is left if the others bid the same sum again.

    If that is nothing, so that every bid brings as much, take an equal share of what the sum is too
    large by off the own bid: all who do so come to what others leave them.
    """
    total, own = whole(view, "sum"), whole(view, "bid")
    left, over = view.game.golds - (total - own), total - view.game.golds
    lower = np.maximum(own + -over // view.game.players, 0)
    known = view.number("round") > 1
    return np.where(known, np.where(left > 0, left, lower), rational(view, noise))


def reply_to(view: View, others: Array) -> Array:
    """Return the best reply to bids."""
    return theory.best_response(np.append(others, 0), view.game.golds)[-1]


def script(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """About an equal share; the greedy one asks for more."""
    share = seen.game.golds // seen.game.players
    more = max(1, share // 5)
    if persona in ("cooperative", "mathematician"):
        bid = draw(rng, (share, 8), (max(share - more, 0), persona == "cooperative"))
        return bid, f"An equal share is {share}, and so the bids add up."
    if persona == "selfish":
        bid = draw(rng, (share * 2, 5), (share + more, 3), (share * 3, 1))
        return bid, f"An equal share would be {share}, but I want more."
    last = seen.told["last"]
    if last is not None and last["exceeded"]:
        bid = draw(rng, (share, 3), (max(share - more, 0), 5))
        return bid, "The bids were too high last time, so I ask for less."
    bid = draw(rng, (share, 6), (share + more, 2))
    return bid, f"I ask for about an equal share, which is {share}."


PLAYERS = Players(
    {"rational": rational, "best_response": best_response, "cooperative": rational},
    assumed="if the others bid the same sum again (while that is not known, if all are rational); "
    "where that leaves nothing, with an equal share of what is too much off its bid",
    reply_to=reply_to,
    broadcasts=True,
    script=script,
)
