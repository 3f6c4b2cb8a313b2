"""The best-response player: replies to what the others did last round, as far as it knows it.

In the first round, and where its seat cannot know, it plays the rational move. What it assumes:
beauty contest, the others name the same sum again (from all numbers, or from mean or target);
El Farol, as many others go again; divide the dollar, the others bid the same sum again; first
price, the highest rival bid comes again (known to losers only, or where all bids are shown). Public
goods and diners have a dominant move, second-price bidders bid their value. In battle royale, where
one shot says little, it replies to others who always shoot the strongest; pirates vote as if their
vote decided. In water allocation it replies to others who spread their money evenly (level 1). In
the English auction it takes the highest bid for the others' last, and raises while that is a gain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_games.baselines import models
from llm_games.baselines.games.beauty_contest import theory as beauty_contest
from llm_games.baselines.games.english_auction import players as english_auction
from llm_games.baselines.games.water_allocation import players as water_allocation
from llm_games.baselines.policies import level_k, rational
from llm_games.baselines.policies.base import Rule
from llm_games.rulebook import Array
from llm_games.view import View


def _guess(view: View, rng: np.random.Generator) -> Array:
    game: Any = view.game
    total, known = _others_total(view)
    reply = beauty_contest.reply_to_total(np.rint(total * game.unit), models.contest(game))
    return np.where(known, reply, rational.RULES[game.name](view, rng))


def _others_total(view: View) -> tuple[Array, Array]:
    """Return the others' last sum, and where it is known, ``(*batch)``."""
    game: Any = view.game
    columns, begun = game.column_index, view.number("round") > 1
    if "number_0" in columns:
        seats = [seat for seat in range(game.players) if seat != view.seat]
        return np.sum([view.number(f"number_{seat}") for seat in seats], axis=0), begun
    if "mean" in columns or ("target" in columns and game.ratio > 0):
        by_target = "mean" not in columns
        mean = view.number("target") / float(game.ratio) if by_target else view.number("mean")
        own = view.number("number") if "number" in columns else mean
        return game.players * mean - own, begun & (view.number("any_counted") > 0)
    return np.zeros(begun.shape), np.zeros(begun.shape, bool)


def _go(view: View, rng: np.random.Generator) -> Array:
    bar = models.bar(view.game)  # type: ignore[arg-type]
    others = view.number("goers") - view.number("went")
    good = np.where(others < bar.capacity, bar.good, bar.crowded)
    known, by_fun = view.number("count_known") > 0, view.number("fun_known") > 0
    reply = np.where(known, good > bar.home, view.number("fun") > 0)
    return np.where(known | by_fun, reply, rational.RULES[view.game.name](view, rng))


def _share(view: View, rng: np.random.Generator) -> Array:
    game: Any = view.game
    left = game.golds - (view.number("sum") - view.number("bid"))
    known = (view.number("round") > 1) & (left > 0)  # else no bid brings anything
    return np.where(known, left, rational.RULES[game.name](view, rng))


def _bid(view: View, rng: np.random.Generator) -> Array:
    game: Any = view.game
    if game.assets is not None:
        return _private_bid(view, rng)
    enough = view.number("winning_bid") + 1
    known = (view.number("round") > 1) & (view.number("won") == 0)
    useful = known & (enough < view.number("valuation")) & (game.price == "first")
    return np.where(useful, enough, rational.RULES[game.name](view, rng))


def _private_bid(view: View, rng: np.random.Generator) -> Array:
    game: Any = view.game
    usual = rational.RULES[game.name](view, rng)
    if game.price == "second" or "bid_0" not in game.column_index:
        return usual
    rivals = [view.number(f"bid_{i}") for i in range(game.players) if i != view.seat]
    enough = np.rint(np.max(rivals, axis=0).astype(np.float64) * game.unit) + 1
    worth = np.rint(view.number("valuation").astype(np.float64) * game.unit)
    return np.where((view.number("round") > 1) & (enough < worth), enough, usual)


RULES: dict[str, Rule] = rational.RULES | {
    "beauty_contest": _guess,
    "el_farol_bar": _go,
    "divide_dollar": _share,
    "sealed_bid_auction": _bid,
    "battle_royale": level_k.rules(2)["battle_royale"],
    **water_allocation.level(1),
    "english_auction": english_auction.debiased,
}
