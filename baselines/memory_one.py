"""Two players who remember one round, repeated with a probability: exact payoffs and replies.

A rule is five chances to play action 0, C: at first, and after CC, CD, DC, DD, own action first.
Payoffs are a table ``(2, 2, 2)`` of exact numbers: of both players, by both actions.
Nowak and Sigmund 1993; Press and Dyson, PNAS 109, 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.rules import ratio_from
from llm_games.errors import BadParameter
from llm_games.rulebook import Array

MIRRORED = (0, 2, 1, 3)  # CC, CD, DC, DD as the other one sees them


def chance_from(name: str) -> Callable[[str], Fraction]:
    """Return the reader of a chance in the name of a player."""
    return ratio_from(name, 0, 1, f"{name} needs chances from 0 to 1, as in 1/3 or 0.9")


class Memory(NamedTuple):
    """The chances to play C at first, and after CC, CD, DC, DD."""

    first: Fraction
    cc: Fraction
    cd: Fraction
    dc: Fraction
    dd: Fraction

    @classmethod
    def of(cls, chances: Sequence[int | str | Fraction]) -> Memory:
        return cls(*(Fraction(chance) for chance in chances))

    @classmethod
    def read(cls, text: str) -> Memory:
        """Read five chances, as in ``1,1,0,1/2,0.9``."""
        chances = [*map(chance_from("memory_one"), text.split(","))]
        if len(chances) != 5:
            raise BadParameter(
                "memory_one needs five chances to play action 0, at first and after CC, CD, DC, "
                f"DD, as in memory_one:1,1,0,1,0, got {text!r}"
            )
        return cls(*chances)


TIT_FOR_TAT = Memory.of((1, 1, 0, 1, 0))
WIN_STAY_LOSE_SHIFT = Memory.of((1, 1, 0, 0, 1))
ALL_C, ALL_D = Memory.of((1,) * 5), Memory.of((0,) * 5)
EXTORTION = {
    2: Memory.of((1, "8/9", "1/2", "1/3", 0)),
    3: Memory.of((1, "11/13", "1/2", "7/26", 0)),
}
"""Press and Dyson's extortioners at 3 0; 5 1, by how many times the other's gain they take."""


def generous(chance: Fraction) -> Memory:
    return TIT_FOR_TAT._replace(cd=chance, dd=chance)


def _by_outcome(paid: Array) -> list[list[Any]]:
    """Return both players' payoffs after CC, CD, DC, DD as the first one sees them."""
    if np.shape(paid) != (2, 2, 2):
        raise BadParameter("memory-one rules are for two players of two actions")
    return np.reshape(paid, (2, 4)).tolist()


def pair_payoffs(
    paid: Array, own: Memory, other: Memory, continuation: Fraction
) -> tuple[Fraction, Fraction]:
    """Return the mean payoffs of a round, exact, of two rules without noise."""
    begun = _outcomes(own.first, other.first)
    steps = [_outcomes(own[1 + k], other[1 + MIRRORED[k]]) for k in range(4)]
    # The share of rounds in each state, v = (1 - d) begun + d v steps.
    rows = [
        [Fraction(i == j) - continuation * steps[j][i] for j in range(4)]
        + [(1 - continuation) * begun[i]]
        for i in range(4)
    ]
    share = solved(rows)
    first, second = _by_outcome(paid)
    return _dot(share, first), _dot(share, second)


def _outcomes(own: Fraction, other: Fraction) -> list[Fraction]:
    return [a * b for a in (own, 1 - own) for b in (other, 1 - other)]


def _dot(shares: Sequence[Fraction], payoffs: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(shares, payoffs, strict=True)), Fraction(0))


def solved(rows: list[list[Fraction]]) -> list[Fraction]:
    """Return the solution of linear equations in fractions, the right side last in each row."""
    size = len(rows)
    for k in range(size):
        pivot = next(i for i in range(k, size) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [entry / rows[k][k] for entry in rows[k]]
        for i in range(size):
            if i != k and rows[i][k]:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[size] for row in rows]


def deterministic() -> list[Memory]:
    """Return the 32 rules that leave nothing to chance, C before D."""
    return [Memory.of(chances) for chances in product((1, 0), repeat=5)]


def best_reply(paid: Array, other: Memory, continuation: Fraction) -> tuple[Memory, Fraction]:
    """Return the first deterministic rule that is best against a rule, and its mean payoff."""
    each = [(rule, pair_payoffs(paid, rule, other, continuation)[0]) for rule in deterministic()]
    return max(each, key=lambda pair: pair[1])


def subgame_perfect(paid: Array, continuation: Fraction) -> list[Memory]:
    """Return the deterministic rules of which no single deviation pays, after any round.

    The game must be the same for both; the first round is that of CC, which decides nothing.
    """
    payoffs, _ = _by_outcome(paid)
    rules = []
    for moves in product((1, 0), repeat=4):
        rule = Memory.of((1, *moves))
        values = _values(payoffs, rule, continuation)
        if all(_holds(payoffs, rule, k, values, continuation) for k in range(4)):
            rules.append(rule)
    return rules


def _next(rule: Memory, state: int) -> tuple[bool, bool]:
    return rule[1 + state] == 1, rule[1 + MIRRORED[state]] == 1


def _state(own: bool, other: bool) -> int:
    return 2 * (not own) + (not other)


def _values(payoffs: Sequence[Fraction], rule: Memory, continuation: Fraction) -> list[Fraction]:
    """Return the mean payoff from each state on if both follow a deterministic rule."""
    after = [_state(*_next(rule, state)) for state in range(4)]
    rows = [
        [Fraction(i == j) - continuation * (j == after[i]) for j in range(4)]
        + [(1 - continuation) * payoffs[after[i]]]
        for i in range(4)
    ]
    return solved(rows)


def _holds(
    payoffs: Sequence[Fraction],
    rule: Memory,
    state: int,
    values: Sequence[Fraction],
    continuation: Fraction,
) -> bool:
    """Tell whether playing otherwise once, in one state, does not pay."""
    mine, other = _next(rule, state)
    state_after = _state(not mine, other)
    deviation = (1 - continuation) * payoffs[state_after] + continuation * values[state_after]
    return values[state] >= deviation
