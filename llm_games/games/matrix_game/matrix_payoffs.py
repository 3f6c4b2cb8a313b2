"""Payoffs of matrix games: nested tables, rows by count, the 144 ordinal games, and presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np

from llm_games.arrays import entry, looked_up
from llm_games.errors import BadParameter
from llm_games.facts import check_integer, exact_of
from llm_games.rulebook import Array, PerPlayer

MOST_ACTIONS, MOST_NUMBERS = 20, 1_000_000
ORDINAL = (3241, 2341, 1342, 1243, 2143, 3142, 4132, 4123, 4213, 4312, 4321, 4231)
"""The row player's tables of ordinal games, row by row."""


@dataclass(frozen=True, eq=False)
class ExactPayoffs:
    """Payoffs in whole units, `unit` of which are 1, as Python's integers ``(players, *actions)``.

    `by_count` they are two rows ``(2, players)``: by the own action, and how many others play 0.
    """

    numbers: Array
    unit: int
    by_count: bool = False

    @cached_property
    def actions(self) -> tuple[int, ...]:
        """How many actions each seat has."""
        return (2,) * self.numbers.shape[1] if self.by_count else self.numbers.shape[1:]

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

    def rows(self, seat: int) -> Array:
        """Return a seat's payoffs by own actions, and cells of the others' actions in order."""
        if self.by_count:
            return self.numbers
        return np.moveaxis(self.numbers[seat], seat, 0).reshape(self.actions[seat], -1)

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


def read(players: int, payoffs: Any, by_count: Any, ordinal: Any) -> ExactPayoffs:
    """Read the one table that is not None, else that of the prisoner's dilemma; or BadParameter."""
    if by_count is not None:
        shape = _shape("by_count", by_count)
        if shape != (2, players):
            raise BadParameter(
                f"by_count must be 2 rows of {players} payoffs, by how many of {players - 1} "
                f"others play the first action, got lists of the lengths {shape}"
            )
        return _whole("by_count", np.array(by_count, object), by_count=True)
    if ordinal is None:
        return _table_of(players, PRISONERS_DILEMMA if payoffs is None else payoffs)
    if players != 2:
        raise BadParameter(f"ordinal games are for 2 players, got players={players}")
    check_integer("ordinal", ordinal, 1, 144)
    row, column = divmod(ordinal - 1, 12)
    ranks = [np.array([*map(int, str(ORDINAL[k]))]).reshape(2, 2) for k in (row, 11 - column)]
    return _whole("ordinal", np.stack([ranks[0], ranks[1].T]))


def _table_of(players: int, payoffs: Any) -> ExactPayoffs:
    """Read a table nested by each seat's action; of two alike the first one's payoffs will do."""
    shape = _shape("payoffs", payoffs)
    alike = len(shape) == players == 2
    if alike and shape[0] != shape[1]:
        raise BadParameter(
            "payoffs of the first player alone must have as many columns as rows, got a table of "
            f"{shape[0]} and {shape[1]}; give both payoffs in each cell"
        )
    if not alike and shape[players:] != (players,):
        raise BadParameter(
            f"payoffs must be nested by the actions of {players} players, with {players} payoffs "
            f"in each cell, got {f'lists of the lengths {shape}' if shape else repr(payoffs)}; "
            "players says for how many it is"
        )
    for seat, count in enumerate(shape[:players]):
        if not 2 <= count <= MOST_ACTIONS:
            raise BadParameter(
                f"payoffs must have 2 to {MOST_ACTIONS} actions a player, got {count} of seat "
                f"{seat}"
            )
    cells = np.array(payoffs, object)
    return _whole("payoffs", np.stack([cells, cells.T]) if alike else np.moveaxis(cells, -1, 0))


def _shape(name: str, value: Any) -> tuple[int, ...]:
    """Return the lengths of nested lists, which are the same everywhere."""
    if not isinstance(value, (list, tuple)):
        return ()
    shapes = {_shape(name, item) for item in value}
    if not shapes:
        raise BadParameter(f"{name} must be lists of numbers, none of them empty, got {value!r}")
    if len(shapes) > 1:
        raise BadParameter(
            f"{name} must have no hole: in one list, entries have the lengths "
            f"{' and '.join(map(str, sorted(shapes)))}, got {value!r}"
        )
    return (len(value), *shapes.pop())


def _whole(name: str, cells: Array, by_count: bool = False) -> ExactPayoffs:
    if cells.size > MOST_NUMBERS:
        raise BadParameter(f"{name} must be at most {MOST_NUMBERS:,} numbers, got {cells.size:,}")
    exact = [Fraction(exact_of(f"each of the {name}", value)) for value in cells.flat]
    unit = lcm(*(value.denominator for value in exact))
    numbers = np.array([int(value * unit) for value in exact], object)
    return ExactPayoffs(numbers.reshape(cells.shape), unit, by_count)


# -- under the names by which they are known -------------------------------------------------------

PRISONERS_DILEMMA = ((3, 0), (5, 1))
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "prisoners_dilemma": {"payoffs": PRISONERS_DILEMMA},
    "stag_hunt": {"payoffs": ((4, 0), (3, 3))},
    "chicken": {"payoffs": ((3, 1), (4, 0))},
    "battle_of_the_sexes": {"payoffs": (((2, 1), (0, 0)), ((0, 0), (1, 2)))},
    "matching_pennies": {"payoffs": (((1, -1), (-1, 1)), ((-1, 1), (1, -1)))},
    "rock_paper_scissors": {"payoffs": ((0, -1, 1), (1, 0, -1), (-1, 1, 0))},
    **{
        f"dal_bo_frechette_{c}_{good}": {"payoffs": ((good, 12), (50, 25)), "continuation": c}
        for c in (Fraction(1, 2), Fraction(3, 4))
        for good in (32, 40, 48)
    },
    **{
        f"fudenberg_rand_dreber_{ratio}": {
            "payoffs": ((ratio * 2 - 2, -2), (ratio * 2, 0)),
            "continuation": Fraction(7, 8),
            "noise": Fraction(1, 8),
        }
        for ratio in map(Fraction, ("3/2", "2", "5/2", "4"))
    },
    "akata_pd": {"payoffs": ((8, 0), (10, 5)), "rounds": 10},
    "akata_bos": {"payoffs": (((10, 7), (0, 0)), ((0, 0), (7, 10))), "rounds": 10},
    **{
        f"goeree_holt_{best}": {"payoffs": (((best, 40), (40, 80)), ((40, 80), (80, 40)))}
        for best in (320, 44, 80)
    },
    "volunteer": {"players": 3, "by_count": ((2, 2, 2), (0, 4, 4))},
}
