"""Linear public goods: one token costs its owner 1 and returns ``ratio / players`` to everybody.

Below ``ratio = players`` giving nothing is dominant, above it everything; at it every profile is an
equilibrium. Samuelson 1954; Ledyard 1995.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from llm_games.baselines.regret import Claim, Measured, Parts, Steps, constants, flat
from llm_games.rulebook import Array, PerPlayer, PerTable


def best_response(endowments: Array, ratio: Fraction, players: int) -> Array:
    """Return the reply that is best whatever the others give; 0 where every reply is."""
    return endowments if ratio > players else np.zeros_like(endowments)


def regret(contributions: PerPlayer, endowments: PerPlayer, ratio: Fraction) -> PerPlayer:
    players, amounts = len(contributions), np.asarray(contributions)
    wrong = endowments - amounts if ratio > players else amounts
    per_token = abs(players * ratio.denominator - ratio.numerator)
    return wrong * per_token / (players * ratio.denominator)


def distance(contributions: PerPlayer, endowments: PerPlayer, ratio: Fraction) -> PerTable:
    players = len(contributions)
    if ratio == players:
        return np.zeros(np.shape(contributions)[1:], np.int64)
    return np.abs(contributions - best_response(endowments, ratio, players)).sum(axis=0)


def optimum(endowments: Array, ratio: Fraction) -> Array:
    """Return contributions that maximise the sum of payoffs (0 where all do)."""
    return endowments if ratio > 1 else np.zeros_like(endowments)


def deviation(game: Any, record: Steps) -> Measured:
    """Return regret and distance of a round, as shares of the endowments.

    NaN if contributions are unbounded: then some reply is always better, and some sum, see
    `welfare`.
    """
    amounts, have = record["actions"], np.floor(record["endowment"])
    if game.contribution_range == "unbounded":
        return amounts * np.nan, amounts[0] * np.nan
    far = distance(amounts, have, game.ratio) / np.maximum(have.sum(axis=0), 1)
    return regret(amounts, have, game.ratio), far


def exploitability(game: Any, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    """Return a best reply's gain on a seat's own play, which does not depend on the others'."""
    return float(flat(deviation(game, steps)[0])[seat].mean()), ()


def rational(game: Any) -> Claim:
    if game.ratio == game.players:
        return Claim("equilibrium", "gives nothing; every contribution of a round earns the same")
    what, better = ("everything", "more") if game.ratio > game.players else ("nothing", "less")
    if game.contribution_range == "unbounded":
        return Claim("heuristic", f"gives {what}, though {better} is always better without ends")
    return Claim("equilibrium", f"gives {what}, the dominant strategy of a round")


def replies(game: Any) -> list[str]:
    """Return constant contributions; `cooperative` is all or nothing of what one holds."""
    return ["rational", "cooperative", *constants(0, game.tokens)]


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the tokens of all rounds, or of the last one where wealth is carried over."""
    had, held, ratio = steps["endowment"], steps["tokens"], np.float64(float(game.ratio))
    if game.endowment == "carry":
        total, keeping, wealth = held[..., -1].sum(axis=0), had[..., 0].sum(axis=0), had[..., 0]
        for _ in range(had.shape[-1]):  # all give all their whole tokens
            whole = np.floor(wealth)
            wealth = wealth - whole + ratio * whole.sum(axis=0) / len(wealth)
        giving = wealth.sum(axis=0)
    else:
        total, keeping = held.sum(axis=(0, -1)), had.sum(axis=(0, -1))
        giving = keeping * ratio
    if game.contribution_range == "unbounded":
        return total, *(np.nan,) * 4
    worst, best = np.minimum(keeping, giving), np.maximum(keeping, giving)
    if game.ratio == game.players:
        return total, worst, best, worst, best
    played = giving if game.ratio > game.players else keeping
    return total, worst, best, played, played
