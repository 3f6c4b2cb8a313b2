"""Theory of the trust game: by induction nothing is returned, and so nothing is sent.

That is the only subgame-perfect outcome of a known number of rounds. Where the end is left to
chance much more can be held by the threat of it.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from llm_games.baselines.regret import Claim, Measured, Parts, Steps


def held_returns(game: Any, continuation: Fraction | None = None) -> range:
    """Return what can be returned for all that an investor has, by the threat of sending nothing.

    The roles being fixed and the end left to chance: the investor loses nothing by it, the trustee
    would lose more than it could keep. Empty where `continuation` (by default the game's) is below
    1 / multiplier.
    """
    chance = game.continuation if continuation is None else continuation
    sent = game.endowment[0]
    return range(sent, int(chance * game.multiplier * sent) + 1)


def deviation(game: Any, record: Steps) -> Measured:
    """Return what a move costs if the trustee returns nothing, and its share of what it could be.

    A return costs itself, and so does what is sent.
    """
    returning, investor = record["returning"], record["investor"]
    available = np.maximum(game.multiplier * record["sent"], 1)
    amount = np.where(returning, record["returned"], record["sent"])
    mover = np.where(returning, 1 - investor, investor)
    far = amount / np.where(returning, available, game.endowment[0])
    return np.stack([np.where(mover == seat, amount, 0.0) for seat in (0, 1)]), far


def rational(game: Any) -> Claim:
    what = "sends nothing and returns nothing"
    if not game.open:
        return Claim("equilibrium", f"{what}, the only subgame-perfect outcome")
    others = " among many, as the end is left to chance" if held_returns(game) else ""
    return Claim("equilibrium", f"{what}, a subgame-perfect outcome{others}")


def replies(game: Any) -> list[str]:
    names = ["rational", "trusting", "reciprocal", "repay", "grim_investor", "tit_for_tat_investor"]
    return [*names, f"fixed:{game.endowment[0]},0"]


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the sum of payoffs; that of the best equilibrium is not known in changing roles."""
    total = steps["payoffs"].sum(axis=(0, -1))
    rounds, (first, second) = steps["returning"].sum(axis=-1), game.endowment
    worst, best = rounds * (first + second), rounds * (game.multiplier * first + second)
    highest: Any = worst
    if game.open:
        highest = best if game.roles == "fixed" and held_returns(game) else np.nan
    return total, worst, best, worst, highest
