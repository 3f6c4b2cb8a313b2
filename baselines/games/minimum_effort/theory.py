"""Minimum effort game: equilibria that all rank alike, and that fear tells apart.

Where an effort costs less than the lowest brings, all profiles of equal efforts are equilibria, the
highest best for all. The game has an exact potential, ``benefit * lowest - cost * sum``, which is
largest at the highest efforts or at the lowest (Monderer and Shapley 1996; Goeree and Holt, Games
and Economic Behavior 51, 2005).
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from llm_games.baselines.payoff_tables import check_table
from llm_games.baselines.regret import Claim, Measured, Parts, Steps, constants, flat
from llm_games.exact_payoffs import ExactPayoffs
from llm_games.games.minimum_effort.rules import MinimumEffort
from llm_games.rulebook import Array, PerPlayer, PerTable


def best_response(game: MinimumEffort, lowest: Array) -> Array:
    """Return the best reply to the lowest effort of the others, of equals the lowest."""
    return lowest if game.cost < game.benefit else np.full_like(lowest, game.low)


def regret(game: MinimumEffort, efforts: PerPlayer) -> PerPlayer:
    order = np.sort(efforts, axis=0)
    others = np.where(efforts == order[0], order[1], order[0])
    reply = best_response(game, others)
    return game.paid(reply, reply) - game.paid(order[0], efforts)


def distance(game: MinimumEffort, efforts: PerPlayer) -> PerTable:
    """Return the L1 distance to the nearest pure equilibrium."""
    order = np.sort(efforts, axis=0)
    if game.cost > game.benefit:
        return (efforts - game.low).sum(axis=0)
    if game.cost == 0:  # two have the lowest, or all are at the highest
        return np.minimum(order[1] - order[0], (game.high - efforts).sum(axis=0))
    return np.abs(efforts - order[len(order) // 2]).sum(axis=0)


def equilibrium(game: MinimumEffort) -> int:
    """Return the effort of the equilibrium that is best for all."""
    return game.high if game.cost < game.benefit else game.low


def potential(game: MinimumEffort, efforts: PerPlayer) -> PerTable:
    benefit, cost, _, unit = game.parts
    return (benefit * efforts.min(axis=0) - cost * efforts.sum(axis=0)) / unit


def potential_effort(game: MinimumEffort) -> int:
    """Return the effort at which the potential is largest, the lowest of equals."""
    return game.high if game.benefit > game.players * game.cost else game.low


def upper_chance(game: MinimumEffort) -> float:
    """Return the chance of the upper of two efforts in their symmetric mixed equilibrium.

    There is exactly one for each pair of efforts, where the cost is above 0 and below the benefit.
    """
    return float(game.cost / game.benefit) ** (1 / (game.players - 1))


@lru_cache(64)
def level_k(game: MinimumEffort, level: int) -> int:
    """Return the effort of any level above 0, which chooses any, all equally likely.

    Those above 1 do as level 1, since the best reply to its effort is the same.
    """
    span, others = game.high - game.low + 1, game.players - 1
    low, high = game.low, game.high
    while low < high:  # the lowest from which one more is not worth its cost
        middle = (low + high) // 2
        reached = Fraction(game.high - middle, span) ** others  # that all others are above it
        low, high = (middle + 1, high) if game.benefit * reached > game.cost else (low, middle)
    return low


def payoff_table(game: MinimumEffort) -> ExactPayoffs:
    """Return all payoffs by efforts above the lowest."""
    span, (benefit, cost, base, unit) = game.high - game.low + 1, game.parts
    check_table(game.players * span**game.players)
    efforts = game.low + np.indices((span,) * game.players).astype(object)
    return ExactPayoffs(benefit * efforts.min(axis=0) - cost * efforts + base, unit)


def deviation(game: Any, record: Steps) -> Measured:
    efforts = record["actions"]
    return regret(game, efforts), distance(game, efforts) / (len(efforts) * (game.high - game.low))


def exploitability(game: Any, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    """Return a reply's gain if each of the others draws from a seat's efforts, and the reply."""
    kinds, counts = np.unique(flat(steps["actions"])[seat], return_counts=True)
    share = counts / counts.sum()
    above = np.append(share[::-1].cumsum()[::-1], 0) ** (game.players - 1)
    lowest = above[:-1] - above[1:]  # the chance of each kind to be the others' lowest

    def earned(effort: int) -> float:
        return float(game.paid(np.minimum(kinds, effort), np.array(effort)) @ lowest)

    tried = [game.low, *kinds.tolist()]
    reply = max(tried, key=earned) if reply is None else reply
    own = sum(part * earned(kind) for part, kind in zip(share, kinds.tolist(), strict=True))
    return earned(reply) - own, reply


def rational(game: Any) -> Claim:
    effort = f"chooses {equilibrium(game)}"
    if game.cost > game.benefit:
        return Claim("equilibrium", f"{effort}, the dominant strategy of a round")
    if game.cost == game.benefit:
        return Claim("equilibrium", f"{effort}, the safest of many equilibria of a round")
    return Claim(
        "equilibrium", f"{effort}, the equilibrium of a round that is best for all of many"
    )


def replies(game: Any) -> list[str]:
    return ["rational", "best_response", "potential", *constants(game.low, game.high)]


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the sum of payoffs, at worst of one lowest effort among the highest, or of these."""
    efforts = steps["actions"]
    rounds, n, ends = efforts.shape[-1], game.players, np.array([game.low, game.high])
    equal = n * game.paid(ends, ends)
    single = game.paid(ends, ends) + (n - 1) * game.paid(ends, np.full(2, game.high))
    highest = equal[0] if game.cost >= game.benefit else equal[1]
    total = game.paid(efforts.min(axis=0), efforts).sum(axis=(0, -1))
    return total, *(rounds * value for value in (single.min(), equal.max(), equal[0], highest))
