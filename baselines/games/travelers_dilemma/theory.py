"""Traveler's dilemma: undercutting by 1 gains ``reward - 1``.

Above a reward of 1 only the lowest claims are an equilibrium, also the only one that survives
elimination; up to it all pairs of equal claims are. Basu, American Economic Review 84, 1994.
Repeated for a known number of rounds nothing changes.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from llm_games.baselines.pair_theory import regret
from llm_games.baselines.regret import (
    Claim,
    Measured,
    Parts,
    Steps,
    constants,
    flat,
    gain_on_pairs,
)
from llm_games.games.travelers_dilemma.rules import TravelersDilemma
from llm_games.rulebook import Array


def best_response(game: TravelersDilemma, others: Array) -> Array:
    """Return the best reply to the other's claim, of equals the largest."""
    return np.maximum(others - (game.reward > 1), game.low)


def equilibrium(game: TravelersDilemma) -> int:
    """Return the claim of the equilibrium that is best for both."""
    return game.low if game.reward > 1 else game.high


@lru_cache(64)
def level_k(game: TravelersDilemma, level: int) -> int:
    """Return the claim of a level of at least 1; level 0 claims anything, all equally likely."""
    p, q = game.reward.as_integer_ratio()
    below = np.arange(game.high - game.low + 1)  # lower claims, each less likely than the next
    claims, above = game.low + below, below[::-1]
    lower = below * game.low + below * (below - 1) // 2  # sum of the lower claims
    paid = q * (lower + claims * (above + 1)) + p * (above - below)
    first = int(claims[len(claims) - 1 - paid[::-1].argmax()])
    return max(first - (level - 1) * (game.reward > 1), game.low)


def deviation(game: Any, record: Steps) -> Measured:
    """Return regret and distance of a round; the nearest equilibrium of many has equal claims."""
    claims, span = record["actions"], 2 * (game.high - game.low)
    far = (claims - game.low).sum(axis=0) if game.reward > 1 else np.abs(claims[0] - claims[1])
    return regret(game, claims, best_response), far / span


def exploitability(game: Any, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    claims = flat(steps["actions"])[seat]
    kinds = np.unique(claims)
    tried = np.unique(np.concatenate([kinds, np.maximum(kinds - 1, game.low), [game.high]]))
    return gain_on_pairs(game.paid, claims, tried, reply)


def rational(game: Any) -> Claim:
    if game.reward > 1:
        return Claim("equilibrium", f"claims {game.low}, the only equilibrium of a round")
    return Claim("equilibrium", f"claims {game.high}, the best of many equilibria of a round")


def replies(game: Any) -> list[str]:
    return ["rational", "best_response", *constants(game.low, game.high)]


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the sum of payoffs, twice the lower claim."""
    claims = steps["actions"]
    rounds, low, high = claims.shape[-1], 2 * game.low, 2 * game.high
    highest = low if game.reward > 1 else high
    total = 2 * claims.min(axis=0).sum(axis=-1)
    return total, *(rounds * value for value in (low, high, low, highest))
