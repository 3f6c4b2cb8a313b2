"""Firms that learned prices by Q-learning in many markets (Calvano et al., AER 110(10), 2020)."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from llm_games.baselines.games.bertrand_competition import theory
from llm_games.baselines.rules import whole
from llm_games.errors import BadParameter
from llm_games.games.bertrand_competition.rules import BertrandCompetition
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View

SHIPPED = 20  # markets whose strategies come with the package, of each demand
PRICES = 15
MARGIN = 0.1
"""how far the prices reach beyond equilibrium and cartel, as a share of what is between"""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # indexes of prices in `RESULT`
RESULT = Path(__file__).with_name("q_learning.json")


def state_of(actions: Array, prices: int) -> Array:
    """Number of a state: the last actions of all firms, indexes ``(firms, ...)``, as one."""
    state = np.zeros(actions.shape[1:], np.int64)
    for action in actions:
        state = state * prices + action
    return state


def grid_of(game: BertrandCompetition, count: int = PRICES, margin: float = MARGIN) -> Array:
    """Prices that firms pick from, in ticks: from below equilibrium to above cartel."""
    low, high = min(theory.equilibrium(game)), max(theory.cartel(game))
    low, high = Fraction(low), Fraction(high)
    reach = Fraction(repr(margin)) * (high - low)
    low, step = low - reach, (high - low + 2 * reach) / (count - 1)
    grid = game.ticks([low + step * index for index in range(count)])
    if grid[0] < 0 or grid[-1] > game.bounds()[1] or (np.diff(grid) < 1).any():
        raise BadParameter(
            f"{count} prices from {float(low):g} in steps of {float(step):g} must be "
            f"different ticks ({game.tick}) from 0 to {game.a}: choose a finer tick"
        )
    return grid


@lru_cache(16)
def learned_in(game: BertrandCompetition) -> tuple[Array, Array]:
    """Prices in ticks, and the best by index, ``(markets, firms, states)``; BadParameter: none."""
    market = market_of(game)
    for record in json.loads(RESULT.read_text("utf-8"))["results"]:
        if record["market"] == market:
            best = [[DIGITS.index(digit) for digit in text] for text in record["strategies"]]
            return grid_of(game), np.array(best).reshape(-1, game.players, PRICES**game.players)
    raise BadParameter(
        "q_learning learned in markets of two firms, with the usual parameters or with those of "
        f"preset = 'logit', not in one of {game.players} with these: {', '.join(market[1:])}"
    )


def market_of(game: BertrandCompetition) -> list[str]:
    names = ("a", "beta", "d", "costs", "tick", "demand", "quality", "outside", "mu", "demand_clip")
    return [str(game.players), *(str(getattr(game, name)) for name in names)]


def known_market(game: Any, market: int) -> int:
    learned_in(game)
    return market


def last(view: View) -> Array:
    """All prices of the last round in ticks; before round 2 the initial ones."""
    game: BertrandCompetition = view.game
    prices = np.rint(view.each("price") * game.unit).astype(np.int64)
    return np.where(
        whole(view, "round") > 1, prices, game.each(game.ticks(game.initial), view.batch)
    )


def acts(market: int, view: View, noise: Noise) -> Array:
    """A firm's learned price in a market after these prices, or the grid's closest."""
    grid, best = learned_in(view.game)
    nearest = np.abs(last(view)[..., None] - grid).argmin(axis=-1)
    return grid[best[market, view.seat][state_of(nearest, len(grid))]]
