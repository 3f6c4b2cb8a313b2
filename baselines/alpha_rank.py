"""α-rank: how often a population plays each strategy of a meta-game in the long run.

Source: Omidshafiei et al. (Scientific Reports 9, 2019).
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import comb
from typing import Literal

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.metagame import MetaGame
from llm_games.errors import BadParameter

POPULATION = 50
RANKED = 1000  # line-ups that are ranked, at most
ALPHA = 10.0  # how strongly the better is preferred, in units of one over the range of payoffs
LEAST = -1e300  # logarithm of a rate: of none at all


def alpha_rank(
    game: MetaGame,
    alpha: float = ALPHA,
    population: int = POPULATION,
    selection: Literal["global", "local"] = "global",
) -> Array:
    """Return how often each strategy holds a population in the long run, ``(strategies,)``.

    A rare mutant takes over or dies out by imitation of whoever earns more (`alpha`: how strongly,
    in units of one over the range of payoffs). With ``global`` selection tables are drawn from the
    population without replacement, excluding oneself, as in the paper (OpenSpiel's
    ``use_local_selection_model=False``); with ``local`` only the payoffs of the two who differ
    count, at a table of these two.

    Raises:
        BadParameter: `alpha` is not above 0 or infinite, `population` smaller than a table, or
            `selection` is no such model, or ``local`` for more than two players.
    """
    _check_rank(game, alpha, population)
    if selection not in ("global", "local") or (selection == "local" and game.players != 2):
        fault = f"got {selection!r} for {game.players} players"
        raise BadParameter(f"selection is 'global', or at tables of two 'local', {fault}")
    count = len(game.names)
    if count == 1:
        return np.ones(1)
    rates = np.zeros((count, count))
    for resident, other in np.ndindex(count, count):
        if resident != other:
            if selection == "local":
                apart = game.earned(other, resident) - game.earned(resident, other)
                ahead = np.full(population - 1, apart)
            else:
                ahead = _ahead(game, other, resident, population)
            ahead = ahead * alpha / game.scale
            rates[resident, other] = -np.logaddexp.reduce(np.append(0, -np.cumsum(ahead)))
    return stationary(rates)


def alpha_rank_lineups(game: MetaGame, alpha: float = ALPHA, population: int = POPULATION) -> Array:
    """Return how often each line-up occurs in the long run, ``(lineups,)``.

    α-rank of one population for each seat, all of which follow one strategy; a line-up is all
    profiles of seats with these counts. BadParameter as of `alpha_rank`, or beyond `RANKED`.
    """
    _check_rank(game, alpha, population)
    size = len(game.counts)
    if size > RANKED:
        limit = f"more than {RANKED:,} are not ranked"
        raise BadParameter(f"α-rank of {size:,} line-ups takes too long; {limit}")
    identity, rates = np.eye(len(game.names), dtype=np.int64), np.full((size, size), -np.inf)
    payoffs, mutants = game.payoffs * alpha / game.scale, np.arange(population)
    for row, counts in enumerate(game.counts):
        for strategy, other in product(np.flatnonzero(counts), range(len(game.names))):
            if strategy != other:
                to = game.row[tuple((counts - identity[strategy] + identity[other]).tolist())]
                ahead = payoffs[to, other] - payoffs[row, strategy]
                taken = -np.logaddexp.reduce(-ahead * mutants)
                rates[row, to] = np.log(counts[strategy]) + taken
    return stationary(rates)


def _check_rank(game: MetaGame, alpha: float, population: int) -> None:
    if not 0 < alpha < np.inf or population < max(2, game.players):
        rule = f"alpha must be a number above 0 and a population at least {max(2, game.players)}"
        raise BadParameter(f"{rule}, got {alpha} and {population}")


def _ahead(game: MetaGame, strategy: int, other: int, population: int) -> Array:
    """Return the lead of `strategy` over `other` while 1, 2, ... of the population play it."""
    rest = range(game.players)  # of the others at a table, how many are `one`
    mixed = [[strategy] * k + [other] * (game.players - 1 - k) for k in rest]
    payoffs = np.array([game.earned(strategy, *others) for others in mixed])
    other_payoffs = np.array([game.earned(other, *others) for others in mixed])
    drawn = _drawn(population - 1, game.players - 1)
    return drawn[: population - 1] @ payoffs - drawn[1:population] @ other_payoffs


@cache
def _drawn(all_of_them: int, taken: int) -> Array:
    """Return the chance of each number of ones among those taken, by their number in the whole."""
    total = comb(all_of_them, taken)
    ways = [
        [comb(ones, k) * comb(all_of_them - ones, taken - k) / total for k in range(taken + 1)]
        for ones in range(all_of_them + 1)
    ]
    return np.array(ways)


def stationary(rates: Array) -> Array:
    """Return how often states are visited, from logarithms of their rates, ``(states, states)``.

    By elimination without subtractions (Grassmann, Taksar and Heyman, Operations Research 33,
    1985): exact also where rates differ by more than a float can hold.
    """
    logs = np.maximum(np.array(rates, np.float64), LEAST)
    count = len(logs)
    for last in range(count - 1, 0, -1):
        logs[:last, last] -= np.logaddexp.reduce(logs[last, :last])
        through = logs[:last, last, None] + logs[last, :last]
        logs[:last, :last] = np.logaddexp(logs[:last, :last], through)
    log_shares = np.zeros(count)
    for state in range(1, count):
        log_shares[state] = np.logaddexp.reduce(log_shares[:state] + logs[:state, state])
    share: Array = np.exp(log_shares - log_shares.max())
    return share / share.sum()
