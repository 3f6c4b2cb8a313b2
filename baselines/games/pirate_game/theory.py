"""Subgame-perfect play of the pirate game (Goodin 1998; Stewart 1999).

A stage is a number of living pirates, counted by position: 0 proposes, 1 proposes next. They want
to survive, then gold, then others overboard, so who is indifferent rejects; votes are cast as if
decisive. Each vote has a price: 0 if the voter would be lost after a rejection, else one coin more
than it would then get. The proposer buys the cheapest it needs; if they cost more than the gold, it
is lost. Stages above expect the plan that pays the highest positions; with quota "half" and up to 2
gold + 1 pirates there is only one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from llm_games.baselines.regret import Claim, Measured, Steps
from llm_games.errors import BadParameter, unknown
from llm_games.rulebook import Array

MOST_PLANS = 100_000
QUOTAS: dict[str, Callable[[int], int]] = {  # votes needed, the proposer's own included
    "half": lambda pirates: (pirates + 1) // 2,
    "majority": lambda pirates: pirates // 2 + 1,
}


@dataclass(frozen=True)
class Stage:
    """Perfect play of a number of living pirates. Arrays have shape (pirates,), by position."""

    coins: Array  # what everybody gets; if the proposer is lost, in the stages below
    survives: Array
    prices: Array  # of each vote, position 0 counting 0
    always_paid: Array  # in every optimal plan
    tied: Array  # all of one price, of whom any `ties` are paid too
    ties: int

    @property
    def proposer_survives(self) -> bool:
        return bool(self.survives[0])


def votes_needed(pirates: int, quota: str = "half") -> int:
    """Accepts that pass a plan, the proposer's included: at least half, or more than half."""
    if quota not in QUOTAS:
        raise unknown("quota", quota, QUOTAS)
    return QUOTAS[quota](pirates)


@lru_cache(maxsize=256)
def stage(pirates: int, gold: int, quota: str = "half") -> Stage:
    """Return perfect play of `pirates` and `gold` coins, O(n log n) for each smaller number."""
    if pirates < 1 or gold < 0:
        raise BadParameter(f"pirates={pirates!r}, gold={gold!r}: need pirates >= 1 and gold >= 0")
    none = np.zeros(1, bool)
    current = Stage(np.array([gold]), ~none, np.zeros(1, int), none, none, 0)
    needed = [votes_needed(count, quota) for count in range(1, pirates + 1)]
    for votes in needed[1:]:
        current = _above(current, gold, votes - 1)
    for name in ("coins", "survives", "prices", "always_paid", "tied"):
        getattr(current, name).flags.writeable = False  # shared between callers
    return current


def _above(below: Stage, gold: int, votes: int) -> Stage:
    """The stage with one pirate more than `below`, whose proposer must buy `votes` votes."""
    prices = np.append(0, np.where(below.survives, below.coins + 1, 0))
    voters = np.arange(1, len(prices))
    bought = voters[np.lexsort((-voters, prices[1:]))[:votes]]  # cheapest, then highest position
    dearest, cost = prices[bought].max(initial=0), int(prices[bought].sum())
    always_paid = (prices > 0) & (prices < dearest)
    tied = (prices > 0) & (prices == dearest)
    if cost > gold:
        coins, survives = np.append(0, below.coins), np.append(False, below.survives)
    else:
        coins, survives = np.zeros(len(prices), int), np.ones(len(prices), bool)
        coins[bought] = prices[bought]
        coins[0] = gold - cost
    return Stage(coins, survives, prices, always_paid, tied, int(tied[bought].sum()))


def optimal_plans(pirates: int, gold: int, quota: str = "half") -> Array:
    """All optimal plans, (plans, pirates); no row if the proposer is lost whatever it offers."""
    solution = stage(pirates, gold, quota)
    if not solution.proposer_survives:
        return np.zeros((0, pirates), int)
    tied = np.flatnonzero(solution.tied).tolist()
    if (count := comb(len(tied), solution.ties)) > MOST_PLANS:
        raise BadParameter(
            f"pirates={pirates!r}, gold={gold!r}: {count} optimal plans, more than {MOST_PLANS}; "
            "nearest_plan finds the one closest to a given plan"
        )
    chosen = np.array(list(combinations(tied, solution.ties)), int)
    plans = np.tile(np.where(solution.always_paid, solution.prices, 0), (count, 1))
    np.put_along_axis(plans, chosen, solution.prices[chosen], axis=1)
    plans[:, 0] = gold - plans.sum(axis=1)
    return plans


def nearest_plan(plan: Array, quota: str = "half") -> Array:
    """The optimal plan closest to `plan` (n, *batch) in the sum of absolute differences."""
    # Batches share one amount of gold. If the proposer is lost anyway every plan is optimal.
    plan, solution, prices = _read(plan, quota)
    if not solution.proposer_survives:
        return plan
    saved = np.abs(plan) - np.abs(plan - prices)  # by paying this vote rather than nothing
    saved = np.where(solution.tied.reshape(prices.shape), saved, -np.iinfo(int).max)
    rank = np.argsort(np.argsort(-saved, axis=0, kind="stable"), axis=0)
    chosen = solution.always_paid.reshape(prices.shape) | (rank < solution.ties)
    nearest = np.where(chosen, prices, 0)
    nearest[0] = plan.sum(0) - nearest.sum(0)
    return nearest


def distance(plan: Array, quota: str = "half") -> Array:
    """Sum of absolute differences to the nearest optimal plan over 2 gold, 0..1, (*batch,)."""
    plan = np.asarray(plan)
    return np.abs(plan - nearest_plan(plan, quota)).sum(0) / np.maximum(2 * plan.sum(0), 1)


def votes(plan: Array, quota: str = "half") -> Array:
    """Equilibrium votes on `plan` (n, *batch), True = accept; the proposer's is always True."""
    plan, _, prices = _read(plan, quota)
    accepted = plan >= prices
    accepted[0] = True
    return accepted


def proposer_regret(plan: Array, quota: str = "half", death: int = -1) -> Array:
    """Coins lost by `plan` (n, *batch), a `death` at so many, if the others vote perfectly."""
    plan, solution, _ = _read(plan, quota)
    passed = votes(plan, quota).sum(0) >= votes_needed(len(plan), quota)
    best = solution.coins[0] if solution.proposer_survives else death
    return best - np.where(passed, plan[0], death)


def voter_regret(plan: Array, accepts: Array, quota: str = "half", death: int = -1) -> Array:
    """Coins lost by each vote (n, *batch), a `death` at so many, if it decides; 0 for plan[0]."""
    plan, _, prices = _read(plan, quota)
    gain = plan - np.where(prices > 0, prices - 1, death)  # over what a rejection leads to
    regret = np.maximum(0, np.where(accepts, -gain, gain))
    regret[0] = 0
    return regret


def _read(plan: Array, quota: str) -> tuple[Array, Stage, Array]:
    """The plan as an integer array, its stage, and prices that broadcast with it."""
    plan = np.asarray(plan)
    totals = np.unique(plan.sum(0))
    if len(totals) != 1 or not np.issubdtype(plan.dtype, np.integer):
        raise BadParameter(
            f"plans share out {totals.tolist()} coins: must be integers with one sum for the batch"
        )
    solution = stage(len(plan), int(totals[0]), quota)
    return plan, solution, solution.prices.reshape(-1, *[1] * (plan.ndim - 1))


def deviation(game: Any, record: Steps) -> Measured:
    """Return regret and distance of a plan, or of the votes on it.

    In coins, as if each vote decided and with a death at -1 coin; distance is the plan's to the
    nearest optimal one, or the share of votes against equilibrium. NaN of a plan with shares below
    0, which `proposal_check` may accept.
    """
    plan, alive, quota = record["plan"], record["alive"], game.quota
    regret, far = np.zeros(plan.shape), np.zeros(plan.shape[1:])
    for table in np.ndindex(far.shape):
        first = int(alive[(slice(None), *table)].argmax())
        seats = (slice(first, None), *table)
        offered = plan[seats]
        if len(offered) < 2 or offered.sum() != game.gold:
            continue  # a table that was over before
        if record["phase"][table] == 0 and offered.min() < 0:
            regret[(first, *table)] = far[table] = np.nan
        elif record["phase"][table] == 0:
            regret[(first, *table)] = proposer_regret(offered, quota)
            far[table] = distance(offered, quota)
        else:
            cast = record["votes"][seats]
            regret[seats] = voter_regret(offered, cast, quota)
            far[table] = (cast != votes(offered, quota))[1:].mean()
    return regret, far


def rational(game: Any) -> Claim:
    what = "plays subgame-perfectly, and votes as if its vote decided"
    alone = game.players == 2 and game.quota == "majority" and game.payoff == "gold"
    if game.proposal_check == "strict" or alone:
        return Claim("equilibrium", what)
    beyond = "but shares below 0 are accepted, too, by which a proposer can take any amount"
    return Claim("heuristic", f"{what}, where shares are from 0 on; {beyond}")


def replies(game: Any) -> list[str]:
    return ["rational", "cooperative", "fixed:accept", "fixed:reject"]
