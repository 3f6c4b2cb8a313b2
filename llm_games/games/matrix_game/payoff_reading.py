"""Payoffs as they are given: nested tables, rows by count, and the 144 ordinal games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import lcm
from typing import Any

import numpy as np

from llm_games.arrays import entry, looked_up
from llm_games.errors import BadParameter
from llm_games.facts import check_integer, exact_of
from llm_games.rulebook import Array, PerPlayer

MOST_ACTIONS, MOST_NUMBERS = 20, 1_000_000
PRISONERS_DILEMMA = ((3, 0), (5, 1))
ORDINAL = (
    *("32 41", "23 41", "13 42", "12 43", "21 43", "31 42"),
    *("41 32", "41 23", "42 13", "43 12", "43 21", "42 31"),
)
"""The row player's tables of ordinal games, row by row."""


@dataclass(frozen=True)
class Payoffs:
    """Payoffs in whole units, `unit` of which are 1.

    Row by row of ``(players, *actions)``, or `by_count` of two rows ``(2, players)``.
    """

    numbers: Sequence[int]
    shape: tuple[int, ...]
    unit: int
    by_count: bool = False

    @cached_property
    def actions(self) -> tuple[int, ...]:
        """How many actions each seat has."""
        return (2,) * self.shape[1] if self.by_count else self.shape[1:]

    @cached_property
    def units(self) -> Array:
        return np.array(self.numbers, np.int64).reshape(self.shape)

    @cached_property
    def exact(self) -> Array:
        return np.vectorize(self.value, otypes=[object])(self.units)

    def value(self, units: Any) -> Fraction:
        return Fraction(int(units), self.unit)

    def paid(self, actions: PerPlayer) -> PerPlayer:
        """Return what these actions are paid, in units."""
        if not self.by_count:
            cell = actions[0]
            for count, action in zip(self.actions[1:], actions[1:], strict=True):
                cell = cell * count + action
            return looked_up(self.units.reshape(len(self.units), -1), cell, axis=1)
        first = actions == 0
        return entry(self.units, (actions, first.sum(axis=0) - first))

    @cached_property
    def safe(self) -> Array:
        """Each seat's action whose worst payoff is best, the first of equals."""
        if self.by_count:
            return np.full(self.shape[1], self.units.min(axis=1).argmax())
        rows = (
            np.moveaxis(seat, i, 0).reshape(count, -1)
            for i, (seat, count) in enumerate(zip(self.units, self.actions, strict=True))
        )
        return np.array([row.min(axis=1).argmax() for row in rows])

    @cached_property
    def alike(self) -> bool:
        """Whether it makes no difference who sits where."""
        if self.by_count:
            return True
        for seat in range(len(self.shape) - 2):
            order = list(range(self.shape[0]))
            order[seat : seat + 2] = seat + 1, seat
            if not np.array_equal(self.units, self.units[order].swapaxes(seat + 1, seat + 2)):
                return False
        return True


def table_of(name: str, value: Any, players: int) -> Payoffs:
    """Read a table nested by each seat's action; of two alike the first one's payoffs are enough.

    The result has the seats first, ``(players, *actions)``.
    """
    shape = _shape(name, value)
    if len(shape) == players == 2:
        if shape[0] != shape[1]:
            raise BadParameter(
                f"{name} of the first player alone must have as many columns as rows, got a table "
                f"of {shape[0]} and {shape[1]}; give both payoffs in each cell"
            )
        value = [[(own, value[j][i]) for j, own in enumerate(row)] for i, row in enumerate(value)]
        shape = (*shape, 2)
    if len(shape) != players + 1 or shape[-1] != players:
        raise BadParameter(
            f"{name} must be nested by the actions of {players} players, with {players} payoffs in "
            f"each cell, got lists of the lengths {shape}; players says for how many it is"
        )
    check_actions(name, shape[:-1])
    cells = [value]
    for _ in shape[:-1]:
        cells = list(chain.from_iterable(cells))
    by_seat = [[cell[seat] for cell in cells] for seat in range(players)]
    return _whole(name, list(chain.from_iterable(by_seat)), (players, *shape[:-1]))


def check_actions(name: str, actions: Sequence[int]) -> None:
    for seat, count in enumerate(actions):
        if not 2 <= count <= MOST_ACTIONS:
            raise BadParameter(
                f"{name} must have 2 to {MOST_ACTIONS} actions a player, got {count} of seat {seat}"
            )


def rows_by_count(name: str, value: Any, players: int) -> Payoffs:
    """Read the payoffs of two actions by how many others play the first, ``(2, players)``."""
    shape = _shape(name, value)
    if shape != (2, players):
        raise BadParameter(
            f"{name} must be 2 rows of {players} payoffs, by how many of {players - 1} others play "
            f"the first action, got lists of the lengths {shape}"
        )
    return _whole(name, list(chain.from_iterable(value)), shape, True)


def ordinal_game(name: str, number: Any) -> Payoffs:
    """Return one of the 144 games in which both players rank four cells."""
    check_integer(name, number, 1, 144)
    row, column = divmod(number - 1, 12)
    own, other = ([int(c) for c in ORDINAL[k] if c != " "] for k in (row, 11 - column))
    return Payoffs([*own, other[0], other[2], other[1], other[3]], (2, 2, 2), 1)


def _shape(name: str, value: Any) -> tuple[int, ...]:
    """Return the lengths of nested lists, which are the same everywhere."""
    if not isinstance(value, (list, tuple)):
        return ()
    shapes = {_shape(name, entry) for entry in value}
    if len(shapes) != 1:
        raise BadParameter(
            f"{name} must have no hole: in one list, entries have the lengths "
            f"{' and '.join(map(str, sorted(shapes)))}, got {value!r}"
        )
    return (len(value), *shapes.pop())


def _whole(name: str, values: list[Any], shape: tuple[int, ...], by_count: bool = False) -> Payoffs:
    if len(values) > MOST_NUMBERS:
        raise BadParameter(f"{name} must be at most {MOST_NUMBERS:,} numbers, got {len(values):,}")
    exact = [Fraction(exact_of(f"each of the {name}", value)) for value in values]
    unit = lcm(*(value.denominator for value in exact))
    return Payoffs([int(value * unit) for value in exact], shape, unit, by_count)
