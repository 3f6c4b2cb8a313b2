"""The rational player: equilibrium play by somebody who expects everybody to play it.

Where there are several equilibria: beauty contest, the one that iterated dominance leaves; El
Farol, the symmetric mixed one; divide the dollar, equal bids (the first seats bid the remainder);
first price, the approximate symmetric one of the game's draw of valuations (with given valuations,
that of independent uniform ones; in sessions with assets, that of independent normal ones, cut at
the assets); second price, the own valuation as far as the assets go; battle royale and pirates, as
their solutions say. In battle royale a cap on the shots counts only if it is announced. In
water allocation no equilibrium is known: it replies best to those who reply best to players who
spread their money evenly (level 2). In the English auction budgets leave the price open: it raises
while an item is worth more to it than what its money can buy later, at the prices that the money in
the room suggests; with a private value and one item, up to the value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_games.baselines import models
from llm_games.baselines.games.battle_royale.theory import CappedSolution
from llm_games.baselines.games.beauty_contest import theory as beauty_contest
from llm_games.baselines.games.diners_dilemma import theory as diners_dilemma
from llm_games.baselines.games.divide_dollar import theory as divide_dollar
from llm_games.baselines.games.el_farol_bar import theory as el_farol_bar
from llm_games.baselines.games.english_auction import players as english_auction
from llm_games.baselines.games.pirate_game.theory import stage
from llm_games.baselines.games.public_goods import theory as public_goods
from llm_games.baselines.games.sealed_bid_auction import players as sealed_bid_auction
from llm_games.baselines.games.sealed_bid_auction.theory import uniform_bid
from llm_games.baselines.games.water_allocation import players as water_allocation
from llm_games.baselines.policies.base import (
    Rule,
    ballot,
    equal_shares,
    living_others,
    shape,
    shoot,
)
from llm_games.rulebook import Array
from llm_games.view import View


def _guess(view: View, rng: np.random.Generator) -> Array:
    contest = models.contest(view.game)  # type: ignore[arg-type]
    return np.full(shape(view), beauty_contest.rational(contest))


def _go(view: View, rng: np.random.Generator) -> Array:
    bar = models.bar(view.game)  # type: ignore[arg-type]
    return rng.random(shape(view)) < el_farol_bar.mixed_equilibrium(bar)


def _share(view: View, rng: np.random.Generator) -> Array:
    game: Any = view.game
    return np.full(shape(view), divide_dollar.fair_bids(game.players, game.golds)[view.seat])


def _contribute(view: View, rng: np.random.Generator) -> Array:
    game: Any = view.game
    endowments = np.broadcast_to(np.floor(view.number("own")), (game.players, *shape(view)))
    return public_goods.best_response(endowments, game.ratio)[view.seat]


def _order(view: View, rng: np.random.Generator) -> Array:
    menu = models.menu(view.game)  # type: ignore[arg-type]
    return np.full(shape(view), diners_dilemma.best_response(menu))


def _bid(view: View, rng: np.random.Generator) -> Array:
    game: Any = view.game
    value = sealed_bid_auction.money(view, "valuation")
    if game.price == "second":
        return value
    if game.assets is not None:
        return np.rint(game.unit * models.private_bid(game, value / game.unit))
    bids = models.bids(game)
    if bids is None:
        return uniform_bid(value, game.players, game.valuation_min)
    return bids.draw(value, rng.random(shape(view)))


def _target(view: View, rng: np.random.Generator) -> Array:
    solution = models.shooting(view.game)  # type: ignore[arg-type]
    others = living_others(view)
    mask = (others << np.arange(others.shape[-1])).sum(axis=-1) | (1 << view.seat)
    if isinstance(solution, CappedSolution):
        left = len(solution.value) - 1 - view.number("shots").astype(np.int64)
        return shoot(solution.policy[np.maximum(left, 0), mask, view.seat], rng)
    return shoot(solution.policy[mask, view.seat], rng)


def _plan_or_vote(view: View, rng: np.random.Generator) -> Array:
    game: Any = view.game
    now = stage(game.players - view.seat, game.gold, game.quota)
    plan = equal_shares(view)  # when no plan can pass, any will do
    if now.proposer_survives:
        plan[view.seat :] = now.coins
    prices = [
        stage(game.players - first, game.gold, game.quota).prices[view.seat - first]
        for first in range(view.seat)
    ]
    proposer = view.number("proposer").astype(np.int64) - 1
    price = np.array([*prices, 0])[np.clip(proposer, 0, view.seat)]
    return ballot(view, plan, view.number("share") >= price)


RULES: dict[str, Rule] = {
    "beauty_contest": _guess,
    "el_farol_bar": _go,
    "divide_dollar": _share,
    "public_goods": _contribute,
    "diners_dilemma": _order,
    "sealed_bid_auction": _bid,
    "battle_royale": _target,
    "pirate_game": _plan_or_vote,
    **water_allocation.level(2),
    "english_auction": english_auction.mc,
}
