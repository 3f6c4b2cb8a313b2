"""Which strategies people play: shares of a few by maximum likelihood, with trembles.

Each subject follows one strategy, and does what it says with the same chance as all others, at
least one half: who does the opposite does not follow it (Dal Bo and Frechette, American Economic
Review 101, 2011). Counts of agreements give the likeliest chance in closed form; `type_mixtures`,
whose moves also miss or are drawn, searches its errors on a grid, which ends at a log-likelihood of
-2217.448 on their data, not at their -2217.194.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from llm_games.errors import BadParameter
from llm_games.rulebook import Array

MOST_STEPS, SETTLED = 20_000, 1e-13


class StrategyMixture(NamedTuple):
    """The share of each strategy, the chance to do what one's strategy says, and the likelihood."""

    shares: Array
    precision: float
    log_likelihood: float


def strategy_mixture(agreed: Array, choices: Array, starts: int = 8) -> StrategyMixture:
    """Fit shares by expectation and maximisation, from several starts of a fixed seed.

    Args:
        agreed: choices of each subject that each strategy would have made, ``(subjects,
            strategies)``.
        choices: all choices of each subject, ``(subjects,)``.
        starts: how often the search is begun.
    """
    agreed, choices = np.asarray(agreed, np.float64), np.asarray(choices, np.float64)
    if agreed.ndim != 2 or agreed.shape[:1] != choices.shape or (agreed > choices[:, None]).any():
        raise BadParameter(
            "agreed must be (subjects, strategies), none above the subject's choices, got "
            f"{agreed.shape} for {choices.shape}"
        )
    draws = np.random.default_rng(0)
    begins = [np.full(agreed.shape[1], 1 / agreed.shape[1])]
    begins += [draws.dirichlet(np.ones(agreed.shape[1])) for _ in range(starts - 1)]
    fitted = [_fitted(agreed, choices, shares) for shares in begins]
    return max(fitted, key=lambda mixture: mixture.log_likelihood)


def _fitted(agreed: Array, choices: Array, shares: Array) -> StrategyMixture:
    precision, reached = 0.8, -np.inf
    for _ in range(MOST_STEPS):
        with np.errstate(divide="ignore"):
            logs = np.log(shares) + agreed * np.log(precision)
        logs = logs + (choices[:, None] - agreed) * np.log1p(-precision)
        top = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - top)
        likelihood = float((top[:, 0] + np.log(weights.sum(axis=1))).sum())
        weights /= weights.sum(axis=1, keepdims=True)
        shares = weights.mean(axis=0)
        precision = float(np.clip((weights * agreed).sum() / choices.sum(), 0.5, 1 - 1e-9))
        if abs(likelihood - reached) <= SETTLED * abs(likelihood):
            break
        reached = likelihood
    return StrategyMixture(shares, precision, likelihood)
