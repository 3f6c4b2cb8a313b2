"""A game's parameters in the form that the solutions take them."""

from __future__ import annotations

from functools import lru_cache
from math import erf, sqrt

import numpy as np

from llm_games.baselines.games.battle_royale.theory import (
    CappedSolution,
    Solution,
    solve,
    solve_capped,
)
from llm_games.baselines.games.beauty_contest.theory import Contest
from llm_games.baselines.games.diners_dilemma.theory import Menu
from llm_games.baselines.games.el_farol_bar.theory import Bar
from llm_games.baselines.games.sealed_bid_auction.first_price import SymmetricBids, symmetric_bids
from llm_games.baselines.games.sealed_bid_auction.theory import iid_bid
from llm_games.games.battle_royale.rules import BattleRoyale
from llm_games.games.beauty_contest.rules import BeautyContest
from llm_games.games.diners_dilemma.rules import DinersDilemma
from llm_games.games.el_farol_bar.rules import ElFarolBar
from llm_games.games.sealed_bid_auction.rules import SealedBidAuction
from llm_games.rulebook import Array


def contest(game: BeautyContest) -> Contest:
    """Return the contest in units of actions. Distances are exact whatever ``game.distance``.

    Where any number is legal, equilibrium and level 0 still go by the game's `min` and `max`.
    """
    first = game.tie_rule == "first_number"
    bounds = (int(game.min * game.unit), int(game.max * game.unit))
    low, high = bounds if game.bounds_check == "none" else game.bounds()
    return Contest(game.players, game.ratio, low, high, game.prize_rule, first)


def bar(game: ElFarolBar) -> Bar:
    """Return the bar."""
    capacity = sum(bool(game.good(goers)) for goers in range(1, game.players + 1))
    return Bar(game.players, capacity, float(game.min), float(game.home), float(game.max))


def menu(game: DinersDilemma) -> Menu:
    """Return the menu, with exact prices."""
    return Menu(
        game.players, game.cheap_price, game.cheap_utility, game.costly_price, game.costly_utility
    )


def bids(game: SealedBidAuction) -> SymmetricBids | None:
    """Return the first-price equilibrium of the game's draw of valuations; None if given."""
    if game.valuations is not None:
        return None
    return symmetric_bids(game.players, game.valuation_min, game.valuation_max, game.interval)


def private_bid(game: SealedBidAuction, values: Array) -> Array:
    """Return the first-price equilibrium bids of a session with assets, in money.

    Of bidders who know only that valuations are normal, cut at 0 and at the highest assets.
    """
    if game.sigma == 0 or game.assets is None:
        return values
    assets = game.assets if isinstance(game.assets, int) else max(game.assets)
    return np.interp(values, *_private_bids(game.players, game.mu, game.sigma, assets))


@lru_cache(maxsize=8)
def _private_bids(players: int, mu: float, sigma: float, most: int) -> tuple[Array, Array]:
    grid = np.linspace(0, most, 4001)
    law = np.array([erf((v - mu) / (sqrt(2) * sigma)) for v in grid.tolist()])
    return grid, iid_bid(grid, (law - law[0]) / (law[-1] - law[0]), players)


def cap(game: BattleRoyale) -> int | None:
    """Return the most shots that the players know of: `max_shots` where it is announced."""
    return game.max_shots if game.announce_cap else None


def shooting(game: BattleRoyale) -> Solution | CappedSolution:
    """Return equilibrium play of the game as its players know it.

    With an announced cap, backward induction from it; else the stationary equilibrium.
    """
    most = cap(game)
    if most is None:
        return solve(game.rates)
    return _capped(game.rates, most, game.cap_outcome == "share")


_capped = lru_cache(maxsize=4)(solve_capped)
