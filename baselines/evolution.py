"""What a meta-game's population comes to in the long run: α-rank and the replicator.

Sources: Omidshafiei et al. (Scientific Reports 9, 2019), α-rank; Taylor and Jonker (Mathematical
Biosciences 40, 1978), the replicator.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import comb
from typing import Any, Literal

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

    Somebody of another strategy comes rarely, and takes over or dies out by imitation of whoever
    earns more (`alpha`: how strongly, in units of one over the range of payoffs). By ``global``
    selection tables are drawn from the population without replacement, own one excepted, as the
    paper and, for more than two players, Moran's process have it: OpenSpiel's
    ``use_local_selection_model=False``. By ``local``, OpenSpiel's default, only the payoffs of the
    two who differ count, at a table of these two; how those who are alike fare does not.

    Raises:
        BadParameter: `alpha` is not above 0 or infinite, `population` smaller than a table, or
            `selection` is no such model, or ``local`` for more than two players.
    """
    _check_rank(game, alpha, population)
    if selection not in ("global", "local") or (selection == "local" and game.players != 2):
        raise BadParameter(
            "selection is 'global', or at tables of two 'local', got "
            f"{selection!r} for {game.players} players"
        )
    many = len(game.names)
    if many == 1:
        return np.ones(1)
    rates = np.zeros((many, many))
    for resident, other in np.ndindex(many, many):
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
    """Return how often each line-up is met in the long run, ``(lineups,)``.

    α-rank of several populations, one for each seat: all of a population are of one strategy, until
    somebody of another one comes, and takes over or dies out as in `alpha_rank` while the other
    populations stay as they are. Line-ups are all profiles of seats that have these counts.

    Raises:
        BadParameter: as `alpha_rank`, or there are more than `RANKED` line-ups.
    """
    _check_rank(game, alpha, population)
    many = len(game.counts)
    if many > RANKED:
        raise BadParameter(
            f"α-rank of {many:,} line-ups takes too long; more than {RANKED:,} are not ranked"
        )
    one, rates = np.eye(len(game.names), dtype=np.int64), np.full((many, many), -np.inf)
    paid, mutants = game.payoffs * alpha / game.scale, np.arange(population)
    for row, counts in enumerate(game.counts):
        for own, other in product(np.flatnonzero(counts), range(len(game.names))):
            if own != other:
                to = game.row[tuple((counts - one[own] + one[other]).tolist())]
                ahead = paid[to, other] - paid[row, own]
                taken = -np.logaddexp.reduce(-ahead * mutants)
                rates[row, to] = np.log(counts[own]) + taken
    return stationary(rates)


def _check_rank(game: MetaGame, alpha: float, population: int) -> None:
    if not 0 < alpha < np.inf or population < max(2, game.players):
        raise BadParameter(
            f"alpha must be a number above 0 and a population at least {max(2, game.players)}, got "
            f"{alpha} and {population}"
        )


def _ahead(game: MetaGame, one: int, other: int, population: int) -> Array:
    """Return how much more `one` earns than `other` while 1, 2, ... of the population are it."""
    rest = range(game.players)  # of the others at a table, how many are `one`
    mixed = [[one] * k + [other] * (game.players - 1 - k) for k in rest]
    own = np.array([game.earned(one, *others) for others in mixed])
    theirs = np.array([game.earned(other, *others) for others in mixed])
    drawn = _drawn(population - 1, game.players - 1)
    found: Array = drawn[: population - 1] @ own - drawn[1:population] @ theirs
    return found


@cache
def _drawn(all_of_them: int, taken: int) -> Array:
    """Return how likely each number of ones is among those taken, by how many there are in all."""
    total = comb(all_of_them, taken)
    ways = [
        [comb(ones, k) * comb(all_of_them - ones, taken - k) / total for k in range(taken + 1)]
        for ones in range(all_of_them + 1)
    ]
    return np.array(ways)


def stationary(rates: Array) -> Array:
    """Return how often each state is visited, from the logarithms of the rates between them.

    ``(states, states)``; the diagonal does not count. By elimination without subtractions
    (Grassmann, Taksar and Heyman, Operations Research 33, 1985), in logarithms: it stays exact
    where rates differ by more than a float can hold.
    """
    left = np.maximum(np.array(rates, np.float64), LEAST)
    many = len(left)
    for last in range(many - 1, 0, -1):
        left[:last, last] -= np.logaddexp.reduce(left[last, :last])
        through = left[:last, last, None] + left[last, :last]
        left[:last, :last] = np.logaddexp(left[:last, :last], through)
    found = np.zeros(many)
    for state in range(1, many):
        found[state] = np.logaddexp.reduce(found[:state] + left[:state, state])
    share: Array = np.exp(found - found.max())
    return share / share.sum()


def replicator(
    game: MetaGame, start: Any = None, time: float = 200.0, steps: int = 1000
) -> tuple[Array, Array]:
    """Return times and the shares of a population that imitates success.

    Shares, ``(steps + 1, strategies)``, grow by what they earn above the mean. `time` is in units
    of one over the range of payoffs; all begin equally often, or from `start`. Runge-Kutta of
    order 4.

    Raises:
        BadParameter: `start` is no mixture.
    """
    many = len(game.names)
    share = np.full(many, 1 / many) if start is None else np.asarray(start, np.float64)
    if share.shape != (many,) or share.min() < 0 or abs(share.sum() - 1) > 1e-9:
        raise BadParameter(f"a start has {many} shares that sum to 1, got {start!r}")

    def growth(at: Array) -> Array:
        earned = game.against(at) / game.scale
        found: Array = at * (earned - at @ earned)
        return found

    width, path = time / steps, [share]
    for _ in range(steps):
        a = growth(share)
        b = growth(share + width / 2 * a)
        c = growth(share + width / 2 * b)
        share = np.clip(share + width / 6 * (a + 2 * b + 2 * c + growth(share + width * c)), 0, 1)
        share = share / share.sum()
        path.append(share)
    return np.linspace(0, time, steps + 1), np.array(path)
