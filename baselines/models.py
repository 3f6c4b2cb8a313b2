"""A game's parameters in the form that the solutions take them."""

from __future__ import annotations

from functools import lru_cache

from llm_games.baselines.solutions.battle_royale import (
    CappedSolution,
    Solution,
    solve,
    solve_capped,
)
from llm_games.baselines.solutions.beauty_contest import Contest
from llm_games.baselines.solutions.diners_dilemma import Menu
from llm_games.baselines.solutions.el_farol_bar import Bar
from llm_games.baselines.solutions.first_price import SymmetricBids, symmetric_bids
from llm_games.games.battle_royale import BattleRoyale
from llm_games.games.beauty_contest import BeautyContest
from llm_games.games.diners_dilemma import DinersDilemma
from llm_games.games.el_farol_bar import ElFarolBar
from llm_games.games.sealed_bid_auction import SealedBidAuction


def contest(game: BeautyContest) -> Contest:
    """Return the contest in units of actions. Distances are exact whatever ``game.distance``."""
    first = game.tie_rule == "first_number"
    return Contest(game.players, game.ratio, *game.bounds(), game.prize_rule, first)


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
