"""Bidders in the sealed-bid auction with limited money (EconArena, section 3.1)."""

import numpy as np

from llm_games.baselines.games.budget_auction.budget_first_price import equilibrium
from llm_games.baselines.games.sealed_bid_auction import players as bidders
from llm_games.baselines.rules import Players, whole
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def rational(view: View, noise: Noise) -> Array:
    game, value = view.game, bidders.value_of(view)
    if game.price == "second" or game.sigma == 0:
        return value
    return equilibrium(game).draw(view.seat, value, noise.random())


def best_response(view: View, noise: Noise) -> Array:
    """Outbid the others' last bids at the first price, where all are shown; else be rational."""
    game, usual = view.game, rational(view, noise)
    if game.price == "second" or "bid_0" not in game.column_index:
        return usual
    bids = [whole(view, f"bid_{i}", game.unit) for i in range(game.players)]
    rivals = [np.where(i == view.seat, -1, bid) for i, bid in enumerate(bids)]
    enough = np.max(rivals, axis=0) + 1
    return np.where((view.number("round") > 1) & (enough < bidders.value_of(view)), enough, usual)


def cooperative(view: View, noise: Noise) -> Array:
    """Bid one smallest unit for each whole unit of the valuation, which keeps their order."""
    return view.number("valuation").astype(np.int64)


def all_in(view: View, noise: Noise) -> Array:
    return whole(view, "assets", view.game.unit)


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": best_response,
        "cooperative": cooperative,
        "truthful": bidders.truthful,
        "shade": bidders.shade,
        "all_in": all_in,
        "zero": bidders.zero,
    },
    assumed="if the highest rival bid comes again (while that is not known, if all are rational)",
    reply_to=bidders.reply_to,
    mixed=True,
    broadcasts=True,
)
