"""All extreme equilibria of a game of two players, exact.

The best replies of one player to mixtures of the other are the facets of a polytope; two of its
vertices, one a player, are an equilibrium where each action is a best reply or not played (von
Stengel in the Handbook of Game Theory 3, 2002; Avis, Rosenberg, Savani and von Stengel, Economic
Theory 42, 2010). All equilibria are mixtures of these; a game without ties has no others.
Vertices come from the double description of the polytope in integers (Fukuda and Prodon 1996).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import gcd
from typing import NamedTuple

import numpy as np

from llm_games.baselines.payoff_tables import check_table
from llm_games.errors import BadParameter
from llm_games.rulebook import Array

Mixture = tuple[Fraction, ...]
Profile = tuple[Mixture, ...]
MOST_ACTIONS = 12


class Ray(NamedTuple):
    """A ray of a cone, whole numbers, and the inequalities that are tight on it, as bits."""

    numbers: tuple[int, ...]
    tight: int


class Vertex(NamedTuple):
    """A mixture, the value that the replies to it are held to, and tight inequalities.

    Bits ``0..m-1`` are of actions that are not played, those from m on of best replies.
    """

    mixture: Mixture
    value: Fraction
    tight: int


def mixed_equilibria(payoffs: Array) -> list[Profile]:
    """Return all extreme equilibria, pure and mixed, of a table ``(2, rows, columns)``.

    Those of fewest actions are first, then by actions. Raises BadParameter beyond 12 actions.
    """
    (row, column), (m, n) = payoffs, payoffs.shape[1:]
    own, other = vertices(column.T), vertices(row)
    full = (1 << (m + n)) - 1
    turned = [(v.tight >> n) | ((v.tight & ((1 << n) - 1)) << m) for v in other]
    covered = np.array([v.tight for v in own])[:, None] | np.array(turned)[None, :]
    found = [(own[i].mixture, other[j].mixture) for i, j in np.argwhere(covered == full)]
    return sorted(found, key=_by_support)


def _by_support(profile: Profile) -> tuple[int, list[list[int]], list[Mixture]]:
    supports = [[i for i, share in enumerate(mixture) if share] for mixture in profile]
    return sum(map(len, supports)), supports, list(profile)


def minimax(payoffs: Array) -> Fraction:
    """Return what a player with this table, own actions as rows, can be held to by mixtures."""
    return min(vertex.value for vertex in vertices(payoffs))


def vertices(payoffs: Array) -> list[Vertex]:
    """Return the vertices of the mixtures over columns by which replies, the rows, are best.

    `payoffs` are those of the player who replies, whole numbers.
    """
    replies, actions = payoffs.shape
    if max(replies, actions) > MOST_ACTIONS:
        raise BadParameter(
            f"mixed equilibria are found for at most {MOST_ACTIONS} actions a player, got "
            f"{max(replies, actions)}"
        )
    check_table(payoffs.size)
    rows = [[int(number) for number in row] for row in payoffs.tolist()]
    least = min(map(min, rows)) - 1
    found = []
    for numbers, tight in _rays([[number - least for number in row] for row in rows], actions):
        total = sum(numbers[:-1])
        if total:
            mixture = tuple(Fraction(number, total) for number in numbers[:-1])
            labels = (tight & ((1 << actions) - 1)) | (tight >> (actions + 1) << actions)
            found.append(Vertex(mixture, Fraction(numbers[-1], total) + least, labels))
    return found


def _rays(rows: Sequence[Sequence[int]], count: int) -> list[Ray]:
    """Return the rays of the cone of (x, t) of ``x >= 0, t >= 0, row x <= t`` for each row."""
    every = (1 << (count + 1)) - 1
    rays = [
        Ray(tuple(int(i == k) for i in range(count + 1)), every ^ (1 << k))
        for k in range(count + 1)
    ]
    for number, row in enumerate(rows):
        coefficients, bit = [*(-entry for entry in row), 1], 1 << (count + 1 + number)
        slack = [sum(a * b for a, b in zip(coefficients, r.numbers, strict=True)) for r in rays]
        inside = [(r, s) for r, s in zip(rays, slack, strict=True) if s > 0]
        outside = [(r, s) for r, s in zip(rays, slack, strict=True) if s < 0]
        border = [Ray(r.numbers, r.tight | bit) for r, s in zip(rays, slack, strict=True) if s == 0]
        masks = np.array([r.tight for r in rays])
        for (one, above), (other, below) in product(inside, outside):
            common = one.tight & other.tight
            if common.bit_count() >= count - 1 and ((masks & common) == common).sum() == 2:
                numbers = _primitive(
                    [above * b - below * a for a, b in zip(one.numbers, other.numbers, strict=True)]
                )
                border.append(Ray(numbers, common | bit))
        rays = [r for r, _ in inside] + border
    return rays


def _primitive(numbers: Sequence[int]) -> tuple[int, ...]:
    divisor = gcd(*numbers)
    return tuple(number // divisor for number in numbers)
