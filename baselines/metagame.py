"""The meta-game: players as strategies of one game, whose payoffs were found by playing.

Before seats are drawn, a game is the same for all who sit down: its meta-game is symmetric, however
much its seats differ. Line-ups are counts of players, mixtures those of one population (Wellman,
AAAI 2006). Here is mathematics only; `llm_games.baselines.crossplay` plays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations_with_replacement
from math import comb, prod
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.errors import BadParameter

MOST = 20_000  # line-ups of a meta-game


def lineups(strategies: int, players: int) -> Array:
    """Return line-ups as counts, int64 ``(lineups, strategies)``; BadParameter if over `MOST`."""
    size = comb(strategies + players - 1, players)
    if size > MOST:
        fault = f"make {size:,} line-ups, more than {MOST:,}"
        raise BadParameter(f"{strategies} strategies in {players} seats {fault}")
    rows = combinations_with_replacement(range(strategies), players)
    return np.array([np.bincount(row, minlength=strategies) for row in rows], np.int64)


@dataclass(frozen=True, eq=False)
class MetaGame:
    """A symmetric game of `players` seats and as many strategies as `names`.

    `payoffs` are what a strategy earns in each of `lineups(len(names), players)`, float64
    ``(lineups, strategies)``; NaN where it has no seat.

    Raises:
        BadParameter: fewer than two players, a shape that does not fit, or a payoff is missing.
    """

    names: tuple[str, ...]
    players: int
    payoffs: Array

    def __post_init__(self) -> None:
        if self.players < 2:
            raise BadParameter(f"a meta-game has at least two players, got {self.players}")
        wanted = self.counts.shape
        if np.shape(self.payoffs) != wanted or len(set(self.names)) != len(self.names):
            raise BadParameter(
                f"payoffs of {len(self.names)} strategies, each once, in {self.players} seats have "
                f"the shape {wanted}, got {np.shape(self.payoffs)} of {', '.join(self.names)}"
            )
        if not np.isfinite(self.payoffs[self.counts > 0]).all():
            row = np.argwhere((self.counts > 0) & ~np.isfinite(self.payoffs))[0][0]
            there = zip(self.counts[row], self.names, strict=True)
            lineup = ", ".join(f"{n} × {name}" for n, name in there if n)
            raise BadParameter(f"what {lineup} earn together is not known: play this line-up")

    @classmethod
    def of_matrix(cls, names: Sequence[str], matrix: Any) -> MetaGame:
        """Return the game of two in which row earns `matrix` against column; errors as above."""
        matrix, count = np.asarray(matrix, np.float64), len(names)
        if matrix.shape != (count, count):
            raise BadParameter(f"{count} strategies have a square of payoffs, got {matrix.shape}")
        payoffs = np.full((count * (count + 1) // 2, count), np.nan)
        for row, counts in enumerate(lineups(count, 2)):
            first, second = np.repeat(np.arange(count), counts)
            payoffs[row, first], payoffs[row, second] = matrix[first, second], matrix[second, first]
        return cls(tuple(names), 2, payoffs)

    @cached_property
    def counts(self) -> Array:
        """The line-ups, int64 ``(lineups, strategies)``."""
        return lineups(len(self.names), self.players)

    @cached_property
    def row(self) -> dict[tuple[int, ...], int]:
        return {tuple(counts): row for row, counts in enumerate(self.counts.tolist())}

    @cached_property
    def scale(self) -> float:
        """The range of the payoffs; 1 if they are all the same."""
        return float(np.nanmax(self.payoffs) - np.nanmin(self.payoffs)) or 1.0

    def earned(self, *seats: int) -> float:
        """Return the payoff of the first strategy where these sit together."""
        counts = np.bincount(seats, minlength=len(self.names))
        return float(self.payoffs[self.row[tuple(counts.tolist())], seats[0]])

    def matrix(self) -> Array:
        """Return each strategy's payoff alone among others of one kind, ``(strategy, others)``."""
        every, rest = range(len(self.names)), self.players - 1
        rows = [[self.earned(row, *[other] * rest) for other in every] for row in every]
        return np.array(rows)

    def tensor(self) -> Array:
        """Return the first seat's payoff by all seats' strategies; BadParameter over a million."""
        count = len(self.names)
        if count**self.players > 1_000_000:
            raise BadParameter(f"a tensor of {count} to the {self.players} entries is too large")
        shape = [count] * self.players
        return np.reshape([self.earned(*cell) for cell in np.ndindex(*shape)], shape)

    def part(self, strategies: Sequence[int]) -> MetaGame:
        rows = ~np.delete(self.counts, strategies, axis=1).any(axis=1)
        part_counts = self.counts[rows][:, strategies]
        names = tuple(self.names[strategy] for strategy in strategies)
        order = lineups(len(strategies), self.players)
        rows_by_counts = {tuple(counts): row for row, counts in enumerate(part_counts.tolist())}
        rows_of = [rows_by_counts[tuple(counts)] for counts in order.tolist()]
        return MetaGame(names, self.players, self.payoffs[rows][rows_of][:, strategies])

    @cached_property
    def _beside(self) -> tuple[Array, Array, Array]:
        """Payoff of a strategy beside another one and ``players - 2`` more; see `pairs`."""
        count, rest = len(self.names), lineups(len(self.names), self.players - 2)
        identity = np.eye(count, dtype=np.int64)
        table = np.empty((count, count, len(rest)))
        for strategy, other in np.ndindex(count, count):
            counts = rest + identity[strategy] + identity[other]
            rows = [self.row[tuple(lineup)] for lineup in counts.tolist()]
            table[strategy, other] = self.payoffs[rows, strategy]
        ways = [multinomial(counts) for counts in rest.tolist()]
        return table, rest, np.array(ways, np.float64)

    def pairs(self, mixture: Array) -> Array:
        """Return each strategy's payoff beside one other, rest drawn, ``(*batch, own, other)``."""
        # It is also the slope of `against` in the mixture, divided by ``players - 1``.
        table, rest, ways = self._beside
        chance = ways * np.prod(np.asarray(mixture)[..., None, :] ** rest, axis=-1)
        pair_payoffs: Array = chance @ table.reshape(-1, table.shape[2]).T
        return pair_payoffs.reshape(*chance.shape[:-1], *table.shape[:2])

    def against(self, mixture: Array) -> Array:
        """Return each strategy's payoff when all others are drawn from a mixture."""
        return np.einsum("...ij,...j->...i", self.pairs(mixture), np.asarray(mixture))

    def chances(self, mixture: Array) -> Array:
        """Return line-ups' chances for a seat of each strategy, as `payoffs`; 0 if it has none."""
        chances = np.zeros(self.counts.shape)
        for strategy, seat_count in enumerate(np.eye(len(self.names), dtype=np.int64)):
            rows = np.flatnonzero(self.counts[:, strategy])
            others = self.counts[rows] - seat_count
            ways = np.array([multinomial(counts) for counts in others.tolist()], np.float64)
            chances[rows, strategy] = ways * np.prod(np.asarray(mixture) ** others, axis=1)
        return chances

    def regret(self, mixture: Array) -> Array:
        """Return the gain of the best single strategy over the mixture, ``(*batch,)``."""
        earned = self.against(mixture)
        return earned.max(axis=-1) - (earned * mixture).sum(axis=-1)


def multinomial(counts: Sequence[int]) -> int:
    """Return the number of orders of things of which `counts` are alike."""
    return prod(comb(total, count) for total, count in zip(accumulate(counts), counts, strict=True))
