"""First-price equilibrium of independent normal values.

Under a smooth distribution, a bidder bids the mean of the highest other value, given that it is
below its own. Where whole values are likely, those who share one mix: each draws its rank among
them, and bids as if ranks were values. Vickrey 1961; Krishna, Auction Theory, chapter 2.

Bids are rounded to units of money. If a unit is a large part of what bidders gain, bids come from
fictitious play on all units, by seat, since the lowest of tied seats wins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from llm_games.baselines.disk_arrays import remember
from llm_games.baselines.games.sealed_bid_auction import sealed_first_price as grids
from llm_games.baselines.games.sealed_bid_auction.sealed_first_price import QUANTILES
from llm_games.rulebook import Array

MOST_VALUES = 20_000  # of a law; where there are more, neighbours share a cell
FINE = 0.02  # of a bidder's gain: up to this a unit of money is little
MOST_PLAYED, TURNS = 400_000, 2000  # bids of all values and seats that play learns, and turns
MOST_TRIED = 20_000_000  # the same, of which the best can be told


@dataclass(frozen=True)
class Bids:
    """Bids of an approximate equilibrium by value, all in units of money."""

    players: int
    values: Array  # the lowest of each cell, ascending, (values,)
    below: Array  # the chance of a value below each cell, and 1, (values + 1,)
    step: int  # between values; cells are `width` wide
    width: int
    mixed: Array | None = None  # equally likely bids, (players, values, QUANTILES)

    def draw(self, seats: Any, values: Array, chance: Any) -> Array:
        """Return bids for values, from uniform numbers in [0, 1)."""
        cell, chance = self._cell(values), np.asarray(chance)
        if self.mixed is not None:
            return self.mixed[seats, cell, (chance * QUANTILES).astype(np.int64)]
        among = (values - self.values[cell] + chance * self.step) / self.width
        low, value = self.below[cell], self._middle[cell]
        mark = low + np.clip(among, 0, 1) * (self.below[cell + 1] - low)
        beaten = np.divide(low, mark, out=np.zeros(np.shape(mark)), where=mark > 0)
        bid = value - (value - self.ends[cell]) * beaten ** (self.players - 1)
        return np.minimum(np.rint(bid), values).astype(np.int64)

    def nearest(self, seats: Array, values: Array, bids: Array) -> Array:
        """Return the equilibrium bids of the values that are closest to some bids."""
        low, high = (self.draw(seats, values, chance) for chance in (0, 1 - 2**-53))
        return np.clip(bids, low, high)

    def wins(self, seats: Array, bids: Array) -> Array:
        """Return the chance that a seat's bid wins against others who bid by this equilibrium."""
        if not self.all_tried:
            return np.interp(bids, self.ends, self.below) ** (self.players - 1)
        inside = np.clip(bids - self._least, 0, self._chance.shape[1] - 1)
        return np.where(bids < self._least, 0, self._chance[seats, inside])

    def best(self, seats: Array, values: Array) -> Array:
        """Return the mean gain of the best bids of values."""
        if not self.all_tried:
            bids = self.draw(seats, values, 0.5)
            return (values - bids) * self.wins(seats, bids)
        return self._best[seats, self._cell(values)]

    def _cell(self, values: Array) -> Array:
        cell = (np.asarray(values) - self.values[0]) // self.width
        return np.clip(cell, 0, len(self.values) - 1)

    @cached_property
    def gain(self) -> float:
        """A bidder's largest mean gain by other bids, in units; at most 1 of fine money."""
        return 1.0 if self.fine else self._gains[0]

    @property
    def near(self) -> bool:
        """Whether `gain` is at most a twentieth of what the bidder has."""
        return self.fine or self._gains[0] <= 0.05 * self._gains[1]

    @property
    def fine(self) -> bool:
        """Whether a unit of money is a small part of bidders' gain at continuous bids."""
        rent = np.diff(self.below) * (self._middle - self.ends[:-1])
        gain = float((rent * self.below[:-1] ** (self.players - 1)).sum())
        return FINE * self.players * gain >= 1

    @cached_property
    def all_tried(self) -> bool:
        """Whether all bids were tried, as for a coarse unit."""
        size = len(self.values) * int(self.values[-1] - self.values[0] + 1) * self.players
        return self.mixed is not None or (not self.fine and size <= MOST_TRIED)

    @cached_property
    def ends(self) -> Array:
        """The bids at the ends of cells, if money were continuous, ``(values + 1,)``."""
        power = self.below ** (self.players - 1)
        area = np.append(0, np.cumsum(self._middle * np.diff(power)))
        usual = np.append(self.values, self.values[-1]).astype(np.float64)
        return np.divide(area, power, out=usual, where=power > 1e-250)

    @property
    def _middle(self) -> Array:
        return self.values + (self.width - self.step) / 2

    @cached_property
    def _played(self) -> Array:
        """Equally likely bids, ``(players, values, QUANTILES)``."""
        if self.mixed is not None:
            return self.mixed
        marks = (np.arange(QUANTILES) + 0.5) / QUANTILES
        bids = self.draw(np.int64(0), self.values[:, None], marks)
        return np.broadcast_to(bids, (self.players, *bids.shape))

    @cached_property
    def _least(self) -> int:
        return int(self._played.min())

    @cached_property
    def _chance(self) -> Array:
        """The chance that each bid from the least on wins, ``(players, bids)``."""
        law = np.zeros((self.players, int(self.values[-1]) - self._least + 1))
        chances = np.diff(self.below)[:, None] / QUANTILES
        for seat_law, bids in zip(law, self._played - self._least, strict=True):
            np.add.at(seat_law, bids, np.broadcast_to(chances, bids.shape))
        return win_probability(law)

    @cached_property
    def _best(self) -> Array:
        marks = self._least + np.arange(self._chance.shape[1])
        gains = [((self.values[:, None] - marks) * chances).max(axis=1) for chances in self._chance]
        return np.maximum(gains, 0)

    @cached_property
    def _gains(self) -> tuple[float, float]:
        """The most that a seat can gain by other bids, and the least that one has."""
        if not self.all_tried:
            return np.inf, 0.0
        likely, values, seats = np.diff(self.below), self.values, np.arange(self.players)
        gains = (values[:, None] - self._played) * self.wins(seats[:, None, None], self._played)
        has = gains.mean(axis=2) @ likely
        return float((self._best @ likely - has).max()), float(has.min())


def win_probability(law: Array) -> Array:
    """Return the chance that each bid of each seat wins, by all seats' laws, ``(seats, bids)``."""
    upto = law.cumsum(axis=1)
    below = np.concatenate([np.zeros((len(law), 1)), upto[:, :-1]], axis=1)
    chances = np.ones(law.shape)
    for seat in range(len(law)):
        chances[:seat] *= upto[seat]  # of tied seats the lowest wins
        chances[seat + 1 :] *= below[seat]
    return chances


def equilibrium(game: Any) -> Bids:
    """Return the bids of a game of normal valuations, truncated at the largest assets."""
    max_assets = 10**9 if game.valuations is not None else max(game.of_each("assets"))
    whole = game.value_rounding == "truncate"
    return _equilibrium(game.players, game.mu, game.sigma, max_assets, game.unit, whole)


@lru_cache(maxsize=32)
def _equilibrium(
    players: int, mu: float, sigma: float, max_assets: int, unit: int, whole: bool
) -> Bids:
    from scipy.special import ndtr

    step = unit if whole else 1
    first, last = (round((mu + far * sigma) * unit) // step for far in (-9, 9))
    first, last = (min(end, max_assets * unit // step) for end in (max(first, 1), last))
    cell_size = -(-(last - first + 1) // MOST_VALUES)  # values in a cell
    values = np.arange(first, last + 1, cell_size, dtype=np.int64) * step
    edges = np.append(values, values[-1] + cell_size * step) - (0 if whole else 0.5)
    far = (edges / unit - mu) / max(sigma, 1e-300)
    below = ndtr(far) - ndtr(far[0])
    usual = Bids(players, values, below / below[-1], step, cell_size * step)
    least = max(int(values[0]) - 5, 0)
    size = players * len(values) * (int(values[-1]) - least + 1)
    if usual.fine or size > MOST_PLAYED:
        return usual
    key = "-".join(map(str, (players, float(mu), float(sigma), max_assets, unit, whole)))
    arrays = remember(f"first-price-normal-1-{key}", lambda: {"bids": _learned(usual, least)})
    return replace(usual, mixed=arrays["bids"])


def _learned(usual: Bids, least: int) -> Array:
    """Return bids by fictitious play that starts from those at continuous money."""
    values, likely = usual.values, np.diff(usual.below)
    marks = np.arange(least, int(values[-1]) + 1)
    legal = marks <= values[:, None]
    near = np.abs(marks - usual.draw(np.int64(0), values, 0.5)[:, None]) <= 1
    law = np.tile(legal & near, (usual.players, 1, 1)) * 1.0
    law /= law.sum(axis=2, keepdims=True)

    def payoffs(law: Array) -> Array:
        chance = win_probability(likely @ law)
        return np.where(legal, (values[:, None] - marks) * chance[:, None], -1.0)

    return grids.evenly(grids.fictitious_play(law, payoffs, likely, TURNS), marks)
