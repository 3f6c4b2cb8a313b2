"""Bertrand competition: prices of the one-shot equilibrium and of the cartel, and best replies.

Linear demand of n firms, B = beta + (n - 2) d: the first-order conditions of all firms are ``(2B +
d) p_i - d sum(p) = a (beta - d) + B c_i``, with one solution; together they earn most at ``(a +
c_i) / 2``. Profits are concave in the own price. Repeated for a known number of rounds the one-shot
equilibrium is the only subgame-perfect one. Singh & Vives 1984; logit demand: Anderson & de Palma
1992, Calvano et al. 2020.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np

from llm_games.arrays import tall
from llm_games.baselines.regret import Claim, Measured, Parts, Steps, constants
from llm_games.games.bertrand_competition.rules import BertrandCompetition
from llm_games.rulebook import Array, PerPlayer

Prices = tuple[Fraction | float, ...]  # one of each firm, in money; floats of logit demand
MOST_REPLIES = 1000  # rounds of best replies until they must have come to rest
MOST_CORNERS = 10  # firms up to which all corners of the prices are looked at


# -- prices ----------------------------------------------------------------------------------------


@lru_cache(64)
def equilibrium(game: BertrandCompetition) -> Prices:
    """Return the one-shot Nash equilibrium: where all sell, else by best replies in ticks."""
    if game.demand == "logit":
        return _logit_equilibrium(game)
    n, a, beta, d = game.players, game.a, game.beta, game.d
    slope = beta + (n - 2) * d
    free = [a * (beta - d) + slope * cost for cost in game.costs]
    total = sum(free) / (2 * beta + (n - 3) * d)
    prices = tuple((intercept + d * total) / (2 * slope + d) for intercept in free)
    if _all_sell(game, prices, n):
        return prices
    legal = [min(max(price, cost), a) for price, cost in zip(prices, game.costs, strict=True)]
    resting = _rest(game, game.ticks(legal, up=True))
    return tuple(Fraction(int(ticks), game.unit) for ticks in resting)


@lru_cache(64)
def cartel(game: BertrandCompetition) -> Prices:
    """Return the prices that maximise joint profit; `a` for firms that then sell nothing."""
    # Those of the highest costs, if they would not sell at ``(a + c_i) / 2``, unless demands go
    # below 0.
    if game.demand == "logit":
        return _logit_cartel(game)
    if game.demand_clip == "none" and game.d < game.beta:
        return tuple((game.a + cost) / 2 for cost in game.costs)
    order = sorted(range(game.players), key=lambda seat: game.costs[seat])
    for count in range(game.players, 0, -1):
        prices = [game.a] * game.players
        for seat in order[:count]:
            prices[seat] = (game.a + game.costs[seat]) / 2
        if _all_sell(game, [prices[seat] for seat in order[:count]], count):
            break
    return tuple(prices)


def _all_sell(game: BertrandCompetition, prices: Sequence[Fraction], count: int) -> bool:
    if game.d == game.beta:
        return max(prices) == min(prices)
    slope, total = game.beta + (count - 1) * game.d, sum(prices)
    reach = game.a * (game.beta - game.d) + game.d * total
    return all(reach >= slope * price for price in prices)


def _logit_equilibrium(game: BertrandCompetition) -> Prices:
    """Return prices whose margins are ``mu / (1 - share)``."""
    costs, mu = np.array([*map(float, game.costs)]), float(game.mu)
    prices, step = costs + mu, np.inf
    while step > 1e-15:
        next_prices = (prices + costs + mu / (1 - game.logit(prices)[0])) / 2
        prices, step = next_prices, np.abs(next_prices - prices).max()
    return tuple(prices.tolist())


def _logit_cartel(game: BertrandCompetition) -> Prices:
    """Return prices with one margin for all, ``mu`` over the share of those who buy nothing."""
    costs, mu = np.array([*map(float, game.costs)]), float(game.mu)
    low, high = mu, mu * 2.0**60
    while (middle := (low + high) / 2) not in (low, high):
        nothing = 1 - game.logit(costs + middle)[0].sum()
        low, high = (low, middle) if middle * nothing > mu else (middle, high)
    return tuple((costs + low).tolist())


def ticks_of(game: BertrandCompetition, prices: Prices) -> Array:
    """Return prices as actions, to the nearest tick and at most the highest, int64 ``(firms,)``."""
    low, high = game.bounds()
    return np.clip(game.ticks([Fraction(price) for price in prices]), low, high)


def profits_at(game: BertrandCompetition, prices: Prices) -> PerPlayer:
    """Return firms' profits of a round at prices that may lie between ticks, ``(firms,)``."""
    if game.demand == "logit":
        return game.logit(np.array([*map(float, prices)]))[1]
    parts = math.lcm(game.unit, *(Fraction(price).denominator for price in prices))
    fine = dataclasses.replace(
        game, tick=Fraction(1, parts), price_grid=None, profit_rounding="exact"
    )
    return fine.market(fine.ticks([Fraction(price) for price in prices]))[1]


# -- best replies ----------------------------------------------------------------------------------


def best_reply(game: BertrandCompetition, prices: PerPlayer, seat: int) -> Array:
    """Return the price in ticks, the higher of two, at which a firm earns most, ``(*batch)``.

    `prices` are ``(firms, *batch)``. From the cost on the profit has one peak, found by bisection.
    """
    game = _rounded_less(game)
    prices, high = np.array(prices), game.bounds()[1]
    least = 0 if game.demand_clip == "none" else int(game.ticks(game.costs, up=True)[seat])

    def earned(seat_prices: Array) -> Array:
        prices[seat] = seat_prices
        return game.market(prices)[1][seat]

    low, top = (np.full(prices.shape[1:], end) for end in (min(least, high), high))
    while (low < top).any():
        middle = (low + top) // 2
        here, above = earned(middle), earned(np.minimum(middle + 1, high))
        rises = (above > here) | ((above == here) & (here > 0))
        low, top = np.where(rises & (low < top), middle + 1, low), np.where(rises, top, middle)
    return low


@lru_cache(64)
def _rounded_less(game: BertrandCompetition) -> BertrandCompetition:
    return dataclasses.replace(game, profit_rounding="exact")


def _rest(game: BertrandCompetition, prices: Array) -> Array:
    """Return the prices at which best replies, one firm after another, settle."""
    prices = np.array(prices)
    for _ in range(MOST_REPLIES):
        previous = prices.copy()
        for seat in range(game.players):
            reply = prices.copy()
            reply[seat] = best_reply(game, prices, seat)
            market = _rounded_less(game).market
            if market(reply)[1][seat] > market(prices)[1][seat]:  # else it stays
                prices = reply
        if np.array_equal(previous, prices):
            break
    return prices


@lru_cache(64)
def nash_ticks(game: BertrandCompetition) -> tuple[Array, bool]:
    """Return equilibrium prices in ticks, and whether no firm gains by another tick."""
    near = ticks_of(game, equilibrium(game))
    resting = _rest(game, near)
    return (near, False) if regret(game, resting).any() else (resting, True)


def regret(game: BertrandCompetition, prices: PerPlayer) -> PerPlayer:
    """Return each firm's possible gain by another price in a round, in profits rounded as paid."""
    shape, prices = np.shape(prices), np.asarray(prices).reshape(game.players, -1)
    earned, gains = game.market(prices)[1], []
    for seat in range(game.players):
        # Rivals' prices mostly repeat, and their order does not matter.
        first, kind = _kinds(np.sort(np.delete(prices, seat, axis=0), axis=0))
        other = prices.copy()
        other[seat] = best_reply(game, prices.take(first, axis=1), seat)[kind]
        gains.append(game.market(other)[1][seat] - earned[seat])
    return np.maximum(np.stack(gains), 0).reshape(shape)


def _kinds(rows: Array) -> tuple[Array, Array]:
    """Return the first of each kind of column, and all kinds; whole numbers ``(rows, columns)``."""
    first = kind = np.zeros(rows.shape[1], np.int64)
    for row in rows:
        both = kind * (row.max(initial=0) + 1) + row
        _, first, kind = np.unique(both, return_index=True, return_inverse=True)
    return first, kind


# -- what the floor asks for -----------------------------------------------------------------------


def deviation(game: BertrandCompetition, record: Steps) -> Measured:
    """Return regret in one-shot profits, and distance to the one-shot equilibrium's prices."""
    prices, high = record["prices"], game.bounds()[1]
    far = np.abs(prices - tall(nash_ticks(game)[0], prices.shape[1:])).sum(axis=0)
    return regret(game, prices), far / (high * game.players)


def rational(game: BertrandCompetition) -> Claim:
    prices, holds = nash_ticks(game)
    shown = ", ".join(f"{ticks / game.unit:g}" for ticks in dict.fromkeys(prices.tolist()))
    what = f"sets the price of the one-shot equilibrium, {shown}, in every round"
    if holds:
        return Claim("equilibrium", what)
    return Claim("heuristic", f"{what}, to the nearest tick: in ticks none was found")


def replies(game: BertrandCompetition) -> list[str]:
    high, unit = game.bounds()[1], game.unit
    if 10 ** (len(str(unit)) - 1) == unit:
        prices = constants(0, high, unit, 15)
    else:
        prices = [f"fixed:{price}" for price in range(high // unit + 1)][:15]
    return ["rational", "cooperative", "best_response", *prices]


WELFARE = "joint profit"


def welfare(game: BertrandCompetition, steps: Steps) -> Parts:
    """Return the joint profit of all rounds between its least and its most, that of a cartel.

    The equilibrium is in ticks. The most is unknown with ``demand_clip="own"`` where firms gain by
    a price at which another one sells nothing.
    """
    earned = steps["profits"]
    rounds, best = earned.shape[-1], profits_at(game, cartel(game)).sum()
    if game.demand_clip == "own" and game.demand == "linear" and 0 < game.d < game.beta:
        best = np.nan
    prices, holds = nash_ticks(game)
    played = game.market(prices)[1].sum() if holds else np.nan
    total = earned.sum(axis=(0, -1))
    return total, least(game) * rounds, best * rounds, played * rounds, played * rounds


def surplus(game: BertrandCompetition, steps: Steps) -> tuple[Array, Array]:
    """Return consumers' surplus of all rounds, and that and the joint profit together."""
    consumers = consumer_surplus(game, steps["prices"], steps["demands"]).sum(axis=-1)
    return consumers, consumers + steps["profits"].sum(axis=(0, -1))


def consumer_surplus(game: BertrandCompetition, prices: PerPlayer, demands: PerPlayer) -> Array:
    """Return the buyers' value of the goods less what they pay in a round, `prices` in ticks."""
    # Linear: with the utility ``a sum(q) - (beta sum(q_i^2) + d sum(q_i q_j)) / 2`` (Singh & Vives
    # 1984). Logit: mu times the log of the sum over all goods and buying nothing, less its value
    # without a market (Small & Rosen 1981).
    money = prices / game.unit
    if game.demand == "logit":
        mu, none = float(game.mu), float(game.outside)
        gains = (float(game.quality) - money - none) / mu
        best = np.maximum(gains.max(axis=0), 0)
        return mu * (best + np.log(np.exp(gains - best).sum(axis=0) + np.exp(-best)))
    a, beta, d, total = float(game.a), float(game.beta), float(game.d), demands.sum(axis=0)
    squares = (demands**2).sum(axis=0)
    worth = a * total - ((beta - d) * squares + d * total**2) / 2
    return worth - (money * demands).sum(axis=0)


@lru_cache(64)
def least(game: BertrandCompetition) -> float:
    """Return the least joint profit of a round, at prices of 0 (of the highest costs) or `a`."""
    n, (low, high) = game.players, game.bounds()
    if n <= MOST_CORNERS:
        corners = np.array([*product((low, high), repeat=n)]).T
    else:
        dearest = np.argsort(sorted(range(n), key=lambda seat: -game.costs[seat]))
        corners = np.where(dearest[:, None] <= np.arange(n), low, high)
    if game.price_floor == "cost":
        corners = np.maximum(corners, game.ticks(game.costs, up=True)[:, None])
    return float(_rounded_less(game).market(corners)[1].sum(axis=0).min())
