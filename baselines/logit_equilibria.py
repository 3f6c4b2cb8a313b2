"""Logit equilibria: everybody plays an action the more often, the more it earns.

McKelvey and Palfrey, Games and Economic Behavior 10, 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from llm_games.baselines.payoff_tables import check_table
from llm_games.rulebook import Array

SETTLED = 1e-12
MOST_ITERATIONS, LOOKED = 40_000, 500


class LogitEquilibrium(NamedTuple):
    """Each seat's mixture, and how far it was from its own reply; None where it did not settle."""

    mixtures: tuple[Array, ...] | None
    residual: float


def logit_equilibrium(payoffs: Array, rate: float) -> LogitEquilibrium:
    """Return the logit equilibrium that damped iteration from equal shares comes to.

    `payoffs` are ``(players, *actions)``, `rate` what an action's payoff is multiplied by. With
    large rates the iteration may not settle.
    """
    check_table(payoffs.size)
    payoffs = payoffs.astype(np.float64)
    mixtures = [np.full(count, 1 / count) for count in payoffs.shape[1:]]
    damping, residual, nearest = 0.5, np.inf, np.inf
    for iteration in range(MOST_ITERATIONS):
        replies = [_reply(earned(payoffs, mixtures, i), rate) for i in range(len(mixtures))]
        pairs = list(zip(mixtures, replies, strict=True))
        residual = max(float(np.abs(reply - mixture).max()) for mixture, reply in pairs)
        if residual <= SETTLED:
            return LogitEquilibrium(tuple(replies), residual)
        if iteration % LOOKED == LOOKED - 1:
            damping = damping / 2 if residual > nearest / 2 else damping
            nearest = min(nearest, residual)
        mixtures = [mixture + damping * (reply - mixture) for mixture, reply in pairs]
    return LogitEquilibrium(None, residual)


def earned(payoffs: Array, mixtures: Sequence[Array], seat: int) -> Array:
    """Return the mean payoff of each of a seat's actions against the others' mixtures."""
    values = payoffs[seat]
    for other in reversed(range(len(mixtures))):
        if other != seat:
            values = np.tensordot(values, mixtures[other], (other, 0))
    return np.asarray(values)


def _reply(values: Array, rate: float) -> Array:
    weights = np.exp(rate * (values - values.max()))
    return np.asarray(weights / weights.sum())
