"""An end left to chance: after each round another follows with a probability that is told."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from llm_games.errors import BadParameter
from llm_games.facts import Draw, ratio_of
from llm_games.noise import Noise
from llm_games.rulebook import Array

RARE = 9  # a cap is reached with a chance of at most 10**-RARE
MOST_ROUNDS = 1_000_000
CONTINUATION = "probability that another round follows; 1: their number is fixed"


def continuation_of(name: str, value: Any) -> Fraction:
    """Read a probability above 0 and at most 1, near enough to 0 that a game ends."""
    chance = ratio_of(name, value, 0, 1)
    if chance == 0:
        raise BadParameter(f"{name} must be above 0 and at most 1, got {value!r}")
    if chance < 1 and least_cap(chance) > MOST_ROUNDS:
        raise BadParameter(
            f"{name} must be 1, or so small that a game nearly always ends within {MOST_ROUNDS:,} "
            f"rounds, got {value!r}"
        )
    return chance


def least_cap(continuation: Fraction) -> int:
    """Return the smallest R with ``continuation ** R <= 10**-9``."""
    missing = (continuation.numerator - continuation.denominator) / continuation.denominator
    return math.ceil(RARE * math.log(10) / -math.log1p(missing) - 1e-9)


def cap_of(name: str, value: int | None, usual: int, continuation: Fraction) -> int:
    """Return the number of rounds, or their cap; BadParameter if it would often be reached."""
    if continuation == 1:
        return usual if value is None else value
    least = least_cap(continuation)
    if value is not None and value < least:
        raise BadParameter(
            f"{name} must be at least {least} where continuation is {continuation}, got {value}: "
            "it is only a cap, which players are not told; leave it out"
        )
    return least if value is None else value


def last_of(name: str, cap: int, continuation: Fraction) -> Draw:
    """Return the draw of the last round: the first after which none follows, at most `cap`."""
    going, sides = continuation.as_integer_ratio()

    def drawn(noise: Noise) -> Array:
        ends = noise.integers(0, sides, max(cap - 1, 1)) >= going
        return np.where(ends.any(axis=0), ends.argmax(axis=0) + 1, cap)

    return Draw(name, drawn, 1, cap)
