"""Money request game: levels of reasoning are steps of one below `high`.

In the one symmetric equilibrium a request of x has the chance ``(high - x + 1) / bonus``, down to
where these add up to 1. There are others, in which the seats differ. Arad and Rubinstein, American
Economic Review 102, 2012.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from llm_games.baselines.mixed_equilibria import MOST_ACTIONS, Profile, mixed_equilibria
from llm_games.baselines.pair_theory import payoff_table, regret
from llm_games.baselines.regret import (
    Claim,
    Measured,
    Parts,
    Steps,
    constants,
    flat,
    gain_on_pairs,
)
from llm_games.games.money_request.rules import MoneyRequest
from llm_games.rulebook import Array


@lru_cache(64)
def symmetric_equilibrium(game: MoneyRequest) -> tuple[Fraction, ...]:
    """Return the chances of the requests from `high` downward, as far as they are made."""
    chances, rest = [], Fraction(1)
    for below in range(game.high - game.low):
        share = min(Fraction(below + 1, game.bonus), rest) if game.bonus else rest
        chances.append(share)
        rest -= share
        if not rest:
            return tuple(chances)
    return (*chances, rest)


@lru_cache(64)
def equilibria(game: MoneyRequest) -> tuple[Profile, ...]:
    """Return all extreme equilibria, chances of the requests from `low` upward."""
    return tuple(mixed_equilibria(payoff_table(game).numbers))


def best_response(game: MoneyRequest, others: Array) -> Array:
    """Return the best reply to the other's request, of equals the highest."""
    undercut = (others > game.low) & (others - 1 + game.bonus > game.high)
    return np.where(undercut, others - 1, game.high)


def level_k(game: MoneyRequest, level: int) -> int:
    return max(game.high - level, game.low)


def expected(game: MoneyRequest, chances: Array) -> Array:
    """Return what each request earns against these chances of the other's, from `low` upward."""
    return np.asarray(payoff_table(game).units[0] @ chances)


def deviation(game: Any, record: Steps) -> Measured:
    """Return regret and distance of a round, which is not defined where equilibria are mixed."""
    requests = record["actions"]
    far = (game.high - requests).sum(axis=0) / (2 * (game.high - game.low))
    return regret(game, requests, best_response), far * np.nan if game.bonus else far


def exploitability(game: Any, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    requests = flat(steps["actions"])[seat]
    tried = np.append(game.high, np.maximum(np.unique(requests) - 1, game.low))
    return gain_on_pairs(game.paid, requests, tried, reply)


def rational(game: Any) -> Claim:
    chances = symmetric_equilibrium(game)
    if len(chances) == 1:
        return Claim("equilibrium", f"requests {game.high}")
    low = game.high - len(chances) + 1
    sentence = (
        f"draws requests from {low} to {game.high}, the only symmetric equilibrium of a round"
    )
    return Claim("equilibrium", f"{sentence}; there are others")


def replies(game: Any) -> list[str]:
    return ["rational", "best_response", *constants(game.low, game.high)]


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the sum of payoffs; in every equilibrium each seat has at least `high`."""
    requests = steps["actions"]
    rounds, low, high = requests.shape[-1], 2 * game.low, 2 * game.high
    best, highest = max(high, high - 1 + game.bonus), np.nan
    if game.high - game.low < MOST_ACTIONS:
        sums, profiles = payoff_table(game).numbers.sum(axis=0), equilibria(game)
        highest = float(max(np.array(row) @ sums @ np.array(column) for row, column in profiles))
    total = game.paid(requests, requests[::-1]).sum(axis=(0, -1))
    return total, *(rounds * value for value in (low, best, high, highest))
