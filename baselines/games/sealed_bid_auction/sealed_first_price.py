"""First-price equilibrium of values drawn without replacement from a grid.

Values are then not independent: the holder of a high value knows that the others' are lower, and
shades more than with independent values. There is no pure equilibrium in whole bids; fictitious
play finds an approximate symmetric mixed one. Run as a module, this computes the shipped tables
anew (minutes).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss

from llm_games.baselines.disk_arrays import remember
from llm_games.rulebook import Array

QUANTILES = 64
MOST_BIDS = 256
SHIPPED = ((10, 0, 100, 10), (10, 0, 200, 10), (10, 0, 400, 10), (10, 0, 800, 10))
MOST_WORK = 20_000_000  # cells of the polynomials of a grid of values
TABLE = Path(__file__).with_name("first_price.json")


@dataclass(frozen=True)
class SymmetricBids:
    """A symmetric mixed bidding strategy for values drawn without replacement."""

    players: int
    values: Array  # the grid, ascending, (types,)
    bids: Array  # equally likely bids for each value, (types, bids), ascending
    price: str = "first"  # that the winner pays, or "second"

    def draw(self, values: Array, chance: Array) -> Array:
        """Return bids for values of the grid, from uniform numbers in [0, 1) of the same shape."""
        column = np.asarray(chance) * self.bids.shape[1]
        return self.bids[self._row(values), column.astype(np.int64)]

    def nearest_bid(self, values: Array, bids: Array) -> Array:
        """Return the closest bids to these from the lowest to the highest of the strategy."""
        row = self._row(values)
        return np.clip(bids, self.bids[row, 0], self.bids[row, -1])

    def mean_bid(self, values: Array) -> Array:
        return self.bids.mean(axis=1)[self._row(values)]

    def interim_regret(self, values: Array, bids: Array) -> Array:
        """Return the mean loss of a bid against others who bid like this, at least 0."""
        # Bids below 0 never win; those above the highest value win for certain.
        row, highest = self._row(values), int(self.values[-1])
        payoff = self._payoff[row, np.clip(bids, 0, highest)]
        above = payoff if self.price == "second" else values - bids
        payoff = np.where(bids > highest, above, np.where(bids < 0, 0, payoff))
        return self._payoff.max(axis=1)[row] - payoff

    def nash_conv(self) -> float:
        """Return the ex-ante NashConv if all bid like this: mean gain of a best reply, summed."""
        return float(self.players * (self._payoff.max(axis=1).mean() - self.profit()))

    @cached_property
    def gain(self) -> float:
        """A bidder's largest mean gain by other bids if all bid like this."""
        return self.nash_conv() / self.players

    def profit(self, bids: Array | None = None) -> float:
        """Return a bidder's mean profit against others who bid like this.

        The bidder bids like this too, or the given bid for each value.
        """
        bidder_bids = self.bids if bids is None else bids[:, None]
        return float(np.take_along_axis(self._payoff, bidder_bids, axis=1).mean())

    def best_bids(self) -> Array:
        """Return for each value the best bid against others who bid like this, ``(types,)``."""
        return np.asarray(self._payoff.argmax(axis=1))

    def _row(self, values: Array) -> Array:
        return np.searchsorted(self.values, values)

    @cached_property
    def _payoff(self) -> Array:
        law = np.zeros((len(self.values), int(self.values[-1]) + 1))
        np.add.at(law, (np.arange(len(law))[:, None], self.bids), 1 / self.bids.shape[1])
        chance, marks = win_probability(law.cumsum(axis=1), self.players), np.arange(law.shape[1])
        if self.price == "first":
            return (self.values[:, None] - marks) * chance
        highest = all_below(law.cumsum(axis=1)[:, None], self.players)[:, 0]  # rival's, its law
        lower = np.concatenate([np.zeros((len(law), 1)), highest[:, :-1]], axis=1)
        gain = (self.values[:, None] - marks) * (highest - lower)
        alone = np.cumsum(gain, axis=1) - gain
        return alone + (self.values[:, None] - marks) * (chance - lower)


def uniform_bid(values: Array, players: int, low: int = 0) -> Array:
    """Return first-price bids for independent uniform values from `low` up, rounded down."""
    return low + (np.asarray(values) - low) * (players - 1) // players


def all_below(marks: Array, players: int) -> Array:
    """Return the chance that no other bid is above a mark, ``(types, marks, bids)``."""
    # `marks` are the chances of each type to bid up to there. The others hold a random subset of
    # the other values, so that this is an elementary symmetric polynomial of their chances.
    sums = np.zeros((players, *marks.shape[1:]))
    sums[0] = 1
    for mark in marks:
        sums[1:] += mark * sums[:-1]
    others = np.ones_like(marks)
    for order in range(1, players):  # take the own value out again
        others = sums[order] - marks * others
    return others / comb(len(marks) - 1, players - 1)


def win_probability(cdf: Array, players: int) -> Array:
    """Return the chance to win with each bid for each value, ties drawn, ``(types, bids)``."""
    # From the types' distribution functions `cdf`, P(bid <= b). A tie among m is won with 1/m: the
    # integral over a mark that sweeps the tied bid, exact by Gauss's rule.
    below = np.concatenate([np.zeros((len(cdf), 1)), cdf[:, :-1]], axis=1)
    nodes, weights = leggauss((players + 1) // 2)
    sweep = below[:, None] + (nodes[:, None] + 1) / 2 * (cdf - below)[:, None]
    return np.einsum("s,ksb->kb", weights / 2, all_below(sweep, players))


def fictitious_play(
    law: Array, payoffs: Callable[[Array], Array], weights: Array, turns: int
) -> Array:
    """Return the mixed strategy of the turn in which best replies gain least.

    `law` is the first one; moves are on its last axis, and on that of the payoffs that `payoffs`
    returns for it; types, weighed by `weights`, are on the axis before. Later turns weigh more. Of
    equally good moves the last counts, so that sure losers compete.
    """
    best, best_law = np.inf, law
    for turn in range(1, turns + 1):
        payoff = payoffs(law)
        gain = (payoff.max(axis=-1) - (law * payoff).sum(axis=-1)) @ weights
        if gain.max() < best:
            best, best_law = gain.max(), law
        step = 2 / (turn + 22)
        reply = payoff.shape[-1] - 1 - payoff[..., ::-1].argmax(axis=-1)[..., None]
        law = law * (1 - step)
        np.put_along_axis(law, reply, np.take_along_axis(law, reply, -1) + step, -1)
    return best_law


def evenly(law: Array, bids: Array) -> Array:
    """Return equally likely bids of a law ``(..., bids)``, as quantiles."""
    marks = (np.arange(QUANTILES) + 0.5) / QUANTILES
    upto = law.cumsum(axis=-1).reshape(-1, len(bids))
    bids_at_marks = np.stack([np.interp(marks, row, bids) for row in upto])
    return np.ceil(bids_at_marks - 1e-6).astype(np.int64).reshape(*law.shape[:-1], QUANTILES)


def solve(players: int, low: int, high: int, interval: int, iterations: int) -> SymmetricBids:
    """Return the approximate equilibrium for values ``low, low + interval, ..., high``."""
    # Fictitious play starts near the bids of independent values. Bids never exceed the value; of
    # more than `MOST_BIDS` only an even selection is tried.
    values, step = np.arange(low, high + 1, interval), -(-(high - low) // MOST_BIDS)
    bids, above = np.arange(low, high + step, step), (values - low)[:, None]
    legal, far = bids <= values[:, None], bids - low - above * (players - 1) / players
    law = legal & (far >= -0.1 * above - step) & (far <= 0.05 * above)
    law = law / law.sum(axis=1, keepdims=True)

    def payoffs(law: Array) -> Array:
        chance = win_probability(law.cumsum(axis=1), players)
        return np.where(legal, (values[:, None] - bids) * chance, -1.0)

    law = fictitious_play(law, payoffs, np.full(len(values), 1 / len(values)), iterations)
    return SymmetricBids(players, values, np.minimum(evenly(law, bids), values[:, None]))


def _work(players: int, low: int, high: int, interval: int) -> int:
    return ((high - low) // interval + 1) * (high + 1) * players * (players + 1)


@lru_cache(maxsize=32)
def symmetric_bids(players: int, low: int, high: int, interval: int) -> SymmetricBids:
    """Return the shipped equilibrium, or one computed now (about 2 s) and cached on disk."""
    values, case = np.arange(low, high + 1, interval), (players, low, high, interval)
    key, work = "-".join(map(str, case)), _work(*case)
    table = json.loads(TABLE.read_text())
    if key in table:
        bids = np.array(table[key], np.int64)
    else:
        turns = min(max(2_400_000_000 // work, 400), 3000)
        bids = remember(f"first-price-2-{key}", lambda: {"bids": solve(*case, turns).bids})["bids"]
    return SymmetricBids(players, values, bids)


def _case(game: Any) -> tuple[int, int, int, int]:
    return game.players, game.valuation_min, game.valuation_max, game.interval


def solvable(game: Any) -> bool:
    """Return whether valuations are drawn from a grid that is small enough for the exact law."""
    return game.valuations is None and (_case(game) in SHIPPED or _work(*_case(game)) <= MOST_WORK)


def equilibrium(game: Any) -> SymmetricBids | None:
    """Return the first-price equilibrium of a game's draw of valuations; None if not `solvable`."""
    return symmetric_bids(*_case(game)) if solvable(game) else None


@lru_cache(maxsize=32)
def _truthful(players: int, low: int, high: int, interval: int) -> SymmetricBids:
    values = np.arange(low, high + 1, interval)
    return SymmetricBids(players, values, values[:, None], "second")


def truthful(game: Any) -> SymmetricBids:
    """Return the second-price equilibrium: everybody bids its valuation."""
    return _truthful(*_case(game))


def shading(game: Any, parts: Array) -> SymmetricBids:
    """Return the strategy of bidding these parts of the valuation, rounded down, on the grid."""
    players, low, high, interval = _case(game)
    values, marks = np.arange(low, high + 1, interval), (np.arange(QUANTILES) + 0.5) / QUANTILES
    share = np.quantile(parts, marks, method="inverted_cdf")
    bids = np.floor(values[:, None] * share + 1e-9).astype(np.int64)  # .07 * 100 is 7
    return SymmetricBids(players, values, np.clip(bids, 0, values[-1]), game.price)


def main() -> None:
    table = {}
    for case in SHIPPED:
        solution = solve(*case, iterations=5_000_000 // case[2])
        table["-".join(map(str, case))] = solution.bids.tolist()
        print(case, "NashConv", solution.nash_conv(), "profit", solution.profit())
    rows = (f'"{key}": {json.dumps(bids, separators=(",", ":"))}' for key, bids in table.items())
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
