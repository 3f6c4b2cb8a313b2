"""The people of an evacuation: groups and strengths.

Constants of Wang et al., Physica A 428, 2015, as in the authors' own reproduction. Groups are 1 to
4: strong & positive, strong & negative, weak & positive, weak & negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.errors import BadParameter
from llm_games.facts import listed, ratio_of

NAMES = ("N0", "Y0", "Z0")  # strength, the pressure that one can stand, and the crushed rounds
STRENGTHS = np.array(  # percent of people of each group who have the strength 1 to 6
    [
        (0, 10, 10, 30, 30, 20),
        (10, 10, 20, 30, 20, 10),
        (10, 20, 30, 20, 10, 10),
        (20, 30, 30, 10, 10, 0),
    ]
)
MEANS = {"N0": (3, 2), "Y0": (18, 16), "Z0": (26, 23)}  # of the strong and the weak, if normal
STANDS = {"Y0": np.array([20, 15, 18, 15]), "Z0": np.array([30, 28, 25, 23])}  # by group


def parts_of(count: int, weights: Any) -> Array:
    """Divide exactly by weights: largest remainder, of equal ones the first part first."""
    whole = [Fraction(weight) * count / sum(map(Fraction, weights)) for weight in weights]
    parts = np.array([int(share) for share in whole])
    late = sorted(range(len(whole)), key=lambda i: (parts[i] - whole[i], i))
    parts[late[: count - int(parts.sum())]] += 1
    return parts


def read_shares(name: str, value: Any) -> tuple[Fraction, ...]:
    parts = listed(name, value, 4, "four shares that add up to 1")
    shares = tuple(ratio_of(f"each of the {name}", part, 0, 1) for part in parts)
    if sum(shares) != 1:
        raise BadParameter(f"{name} must add up to 1, got {value!r}")
    return shares


def groups(count: int, shares: Sequence[Fraction]) -> Array:
    """Assign people to groups in turn, as long as these have room, ``(count,)``."""
    remaining, assigned = parts_of(count, shares), list[int]()
    while len(assigned) < count:
        with_places = np.flatnonzero(remaining)
        remaining[with_places] -= 1
        assigned += (with_places + 1).tolist()
    return np.array(assigned)


def strengths(group: Array, lots: Array) -> Array:
    """Assign to each group its strengths, by lots, ``(people, *batch)`` all three."""
    sizes = np.stack([(group == g).sum(axis=0) for g in (1, 2, 3, 4)]).reshape(4, -1)
    kinds, which = np.unique(sizes, axis=1, return_inverse=True)
    lists = np.array([_ascending(kind) for kind in kinds.T.tolist()])
    assigned = np.empty(group.shape, np.int64)
    ascending = lists[which.reshape(-1)].T.reshape(group.shape)
    np.put_along_axis(assigned, np.lexsort((lots, group), axis=0), ascending, axis=0)
    return assigned


def _ascending(sizes: Sequence[int]) -> Array:
    """Return the strengths of groups of these sizes, group by group, each from the lowest."""
    each = zip(sizes, STRENGTHS.tolist(), strict=True)
    return np.concatenate([np.repeat(np.arange(1, 7), parts_of(n, row)) for n, row in each])
