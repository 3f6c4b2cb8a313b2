"""Exact payoffs of one round: a table of all actions, or rows by how many others do the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from math import comb
from typing import Any

import numpy as np

from llm_games.arrays import entry, looked_up
from llm_games.errors import BadParameter
from llm_games.facts import exact_of, in_units
from llm_games.rulebook import Array, PerPlayer

MOST_NUMBERS = 1_000_000


@dataclass(frozen=True, eq=False)
class ExactPayoffs:
    """Payoffs in whole units, `unit` of which are 1, as Python's integers ``(players, *actions)``.

    `by_count` they are two rows ``(2, players)``: by the own action, and how many others play 0.
    """

    numbers: Array
    unit: int
    by_count: bool = False

    @classmethod
    def read(cls, name: str, cells: Array, by_count: bool = False) -> ExactPayoffs:
        """Read numbers of any kind; BadParameter: there are too many, or one is none."""
        if cells.size > MOST_NUMBERS:
            limit = f"{name} must be at most {MOST_NUMBERS:,} numbers"
            raise BadParameter(f"{limit}, got {cells.size:,}")
        numbers, unit = in_units(exact_of(f"each of the {name}", value) for value in cells.flat)
        return cls(np.array(numbers, object).reshape(cells.shape), unit, by_count)

    @cached_property
    def actions(self) -> tuple[int, ...]:
        """How many actions each seat has."""
        return (2,) * self.numbers.shape[1] if self.by_count else self.numbers.shape[1:]

    @cached_property
    def profiles(self) -> Array:
        """What all can do, ``(players, cells)``; by count the first seats play 0, ever more."""
        seats = range(len(self.actions))
        if self.by_count:
            return np.greater_equal.outer(seats, range(len(seats) + 1)) * 1
        return np.indices(self.actions).reshape(len(seats), -1)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The least and the most that anybody is paid."""
        return self.numbers.min() / self.unit, self.numbers.max() / self.unit

    @cached_property
    def units(self) -> Array:
        small = abs(self.numbers).max() < 2**63
        return self.numbers.astype(np.int64 if small else object)

    @cached_property
    def exact(self) -> Array:
        return np.vectorize(self.value, otypes=[object])(self.numbers)

    def value(self, units: Any) -> Fraction:
        return Fraction(int(units), self.unit)

    def of(self, actions: PerPlayer) -> PerPlayer:
        """Return what these actions are paid, in units."""
        if self.by_count:
            first = actions == 0
            return entry(self.units, (actions, first.sum(axis=0) - first))
        cell = actions[0]
        for count, action in zip(self.actions[1:], actions[1:], strict=True):
            cell = cell * count + action
        return looked_up(self.units.reshape(len(self.units), -1), cell, axis=1)

    def paid(self, actions: PerPlayer) -> PerPlayer:
        return self.of(actions) / self.unit

    def best(self, actions: PerPlayer) -> PerPlayer:
        """Return what each seat's best reply to the others' actions is paid, in units."""
        if self.by_count:
            first = actions == 0
            return self.units.max(axis=0)[first.sum(axis=0) - first]
        others = (tuple(np.delete(actions, seat, axis=0)) for seat in range(len(actions)))
        pairs = enumerate(zip(self.units, others, strict=True))
        return np.array([payoffs.max(axis=seat)[cell] for seat, (payoffs, cell) in pairs])

    def rows(self, seat: int) -> Array:
        """Return a seat's payoffs by own actions, and cells of the others' actions in order."""
        if self.by_count:
            return self.numbers
        return np.moveaxis(self.numbers[seat], seat, 0).reshape(self.actions[seat], -1)

    def earned(self, seat: int, mixtures: Sequence[Sequence[Any]]) -> list[Any]:
        """Return what each action of a seat earns, in units, if the others draw from mixtures."""
        if self.by_count:
            share, n = mixtures[0][0], len(mixtures) - 1
            chances: Any = [comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
        else:
            others = (np.array(mixture, object) for k, mixture in enumerate(mixtures) if k != seat)
            chances = reduce(np.multiply.outer, others).ravel()
        return (self.rows(seat) @ chances).tolist()

    @cached_property
    def safe(self) -> Array:
        """Each seat's action whose worst payoff is best, the first of equals."""
        seats = range(len(self.actions))
        return np.array([self.rows(seat).min(axis=1).argmax() for seat in seats])

    @cached_property
    def alike(self) -> bool:
        """Whether it makes no difference who sits where."""
        seats, numbers = list(range(len(self.actions))), self.numbers
        exchanges = ((k, [*seats[:k], k + 1, k, *seats[k + 2 :]]) for k in seats[:-1])
        return self.by_count or all(
            np.array_equal(numbers, numbers[order].swapaxes(k + 1, k + 2)) for k, order in exchanges
        )


def lengths_of(name: str, value: Any) -> tuple[int, ...]:
    """Return the lengths of nested lists, which are the same everywhere."""
    if not isinstance(value, (list, tuple)):
        return ()
    lengths = {lengths_of(name, item) for item in value}
    if not lengths:
        raise BadParameter(f"{name} must be lists of numbers, none of them empty, got {value!r}")
    if len(lengths) > 1:
        raise BadParameter(
            f"{name} must have no hole: in one list, entries have the lengths "
            f"{' and '.join(map(str, sorted(lengths)))}, got {value!r}"
        )
    return (len(value), *lengths.pop())
