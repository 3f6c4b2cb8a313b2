"""Linear public goods: one token costs its owner 1 and returns ``ratio / players`` to everybody.

With ``ratio < players`` giving nothing is dominant, with ``ratio > players`` giving everything; at
equality every profile is an equilibrium. Amounts are tokens. Samuelson 1954; Ledyard 1995.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from llm_games.baselines.deviation import Measured
from llm_games.rulebook import Array, PerPlayer, PerTable


def best_response(endowments: PerPlayer, ratio: Fraction) -> PerPlayer:
    """Return the reply that is best whatever the others give; 0 where every reply is."""
    return endowments if ratio > len(endowments) else np.zeros_like(endowments)


def regret(contributions: PerPlayer, endowments: PerPlayer, ratio: Fraction) -> PerPlayer:
    """Return what each seat lost by its contribution."""
    players, given = len(contributions), np.asarray(contributions)
    wrong = endowments - given if ratio > players else given
    per_token = abs(players * ratio.denominator - ratio.numerator)
    return wrong * per_token / (players * ratio.denominator)


def distance(contributions: PerPlayer, endowments: PerPlayer, ratio: Fraction) -> PerTable:
    """Return the L1 distance to the nearest equilibrium in tokens."""
    players = len(contributions)
    if ratio == players:
        return np.zeros(np.shape(contributions)[1:], np.int64)
    return np.abs(contributions - best_response(endowments, ratio)).sum(axis=0)


def optimum(endowments: Array, ratio: Fraction) -> Array:
    """Return contributions that maximise the sum of payoffs (none where all are equal)."""
    return endowments if ratio > 1 else np.zeros_like(endowments)


def deviation(game: Any, record: Mapping[str, Array]) -> Measured:
    """Return regret and distance of a round, in what each had."""
    given, have = record["actions"], np.floor(record["endowment"])
    far = distance(given, have, game.ratio) / np.maximum(have.sum(axis=0), 1)
    return regret(given, have, game.ratio), far
