"""The cooperative player: its part of what is best for all players together.

Beauty contest, everybody names the midpoint and wins; El Farol, the seats take turns so that the
bar is just full; divide the dollar, equal bids; public goods and diners, the social optimum;
auction, bids that keep the order of the valuations but cost next to nothing (the step of the
own valuation on the grid; in sessions with assets, a smallest unit for each whole one); battle
royale, peace: it shoots only who has shot at it since its last turn; pirates, equal shares, and a
vote for every plan that gives it at least that; water allocation, bids only on days on which a
planner, who keeps as many alive as can be, serves it; English auction, the seats take turns to
buy at the start price.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_games.baselines import models
from llm_games.baselines.games.diners_dilemma import theory as diners_dilemma
from llm_games.baselines.games.english_auction import players as english_auction
from llm_games.baselines.games.public_goods import theory as public_goods
from llm_games.baselines.games.water_allocation import players as water_allocation
from llm_games.baselines.policies import rational
from llm_games.baselines.policies.base import (
    Rule,
    ballot,
    equal_shares,
    living_others,
    shape,
    shoot_first,
    strength,
)
from llm_games.games.battle_royale.rules import MISS
from llm_games.rulebook import Array
from llm_games.view import View


def _guess(view: View, rng: np.random.Generator) -> Array:
    contest = models.contest(view.game)  # type: ignore[arg-type]
    return (np.maximum(view.low, contest.low) + np.minimum(view.high, contest.high)) // 2


def _go(view: View, rng: np.random.Generator) -> Array:
    bar = models.bar(view.game)  # type: ignore[arg-type]
    turn = (view.seat - view.number("round").astype(np.int64) * bar.capacity) % bar.players
    return (turn < bar.capacity) & (bar.good > bar.home)


def _contribute(view: View, rng: np.random.Generator) -> Array:
    game: Any = view.game
    return public_goods.optimum(np.floor(view.number("own")), game.ratio)


def _order(view: View, rng: np.random.Generator) -> Array:
    menu = models.menu(view.game)  # type: ignore[arg-type]
    return np.full(shape(view), diners_dilemma.optimum(menu))


def _bid(view: View, rng: np.random.Generator) -> Array:
    game: Any = view.game
    if game.assets is not None:
        return view.number("valuation").astype(np.int64)
    return (view.number("valuation").astype(np.int64) - game.valuation_min) // game.interval


def _target(view: View, rng: np.random.Generator) -> Array:
    seats = range(view.game.players)
    aimed = [(view.number(f"shot_{i}") > 0) & (view.number(f"target_{i}") == view.seat)
             for i in seats]  # fmt: skip
    enemies = np.stack(aimed, axis=-1) & living_others(view)
    order = np.where(enemies, strength(view), np.iinfo(np.int64).min)
    return np.where(enemies.any(axis=-1), shoot_first(order, view), MISS)


def _plan_or_vote(view: View, rng: np.random.Generator) -> Array:
    game: Any = view.game
    living = game.players + 1 - view.number("proposer")
    return ballot(view, equal_shares(view), view.number("share") >= game.gold // living)


RULES: dict[str, Rule] = {
    "beauty_contest": _guess,
    "el_farol_bar": _go,
    "divide_dollar": rational.RULES["divide_dollar"],
    "public_goods": _contribute,
    "diners_dilemma": _order,
    "sealed_bid_auction": _bid,
    "battle_royale": _target,
    "pirate_game": _plan_or_vote,
    "water_allocation": water_allocation.cooperate,
    "english_auction": english_auction.take_turns,
}
