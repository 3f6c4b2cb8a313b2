"""Chance by name: the same (seed, key) always draws the same numbers, alone or in a batch.

`Noise` has no hidden counter. A consumer names what it draws (``noise.of("valuations")``,
``noise.of("seat", 3, step)``) and gets that name's numbers however often it asks and whoever else
draws. Copy b of a batch draws exactly what ``Noise(seed of b)`` draws alone.

A number is splitmix64's: ``mix(base + GOLD * place)``, with the base hashed from seed and key.
Only integer operations and exactly rounded ones on floats are used, so that every processor draws
the same bits.
"""

from __future__ import annotations

import math
from functools import lru_cache, reduce
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_games.errors import BadParameter

Array = NDArray[Any]
Word = Any
"""A part of a key: a text, an integer from 0, or an array of them (one for each table)."""
Shape = int | tuple[int, ...]
FULL = 2**64 - 1
LOW = 2**32 - 1
GOLD = 0x9E3779B97F4A7C15
SALT = 0xD1342543DE82EF95
DISTINCT_BY_ORDER = 64
"""`Noise.sample` sorts up to this many; of more it picks one by one."""


def mix(z: Any) -> Any:
    """Scramble 64 bits (Stafford's 13th mix, as in splitmix64): an int, or a uint64 array."""
    if type(z) is int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & FULL
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & FULL
        return z ^ (z >> 31)
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


class Noise:
    """Random numbers that hang on nothing but a seed, a key and their place in the draw.

    Every draw has shape ``(*shape, *batch)``, batch axes last. A draw's places count through
    `shape`, first axis outermost: a longer first axis (more players) only adds numbers.

    Two draws under one key begin with the same bits, whatever the method: give each its own name.
    Where a draw may have to be repeated, number the attempts (``noise.of("value", attempt)``), draw
    the full shape and choose by `numpy.where`, or a table's numbers would hang on its neighbours.
    """

    __slots__ = ("_base", "batch")

    def __init__(self, seed: Any, *key: Word) -> None:
        """Make the noise of one seed, or of an array of seeds, one for each table.

        Raises:
            BadParameter: a seed or word is not an integer from 0 to 2**64 - 1 (or a text).
        """
        self._base: Any = 0
        self._absorb((seed, *key))

    def _absorb(self, words: tuple[Word, ...]) -> None:
        base = self._base
        for word in words:
            hashed = _hash(word) if type(word) in (str, int) else mix(_integers(word) + SALT & FULL)
            base = mix(base ^ hashed)
        self._base = base
        self.batch: tuple[int, ...] = np.shape(base) if type(base) is not int else ()

    def of(self, *key: Word) -> Noise:
        """Return the noise under a longer key: ``of("a", 1)`` is ``of("a").of(1)``.

        An array of integers gives each table its own word, such as its own count of steps.
        """
        other = object.__new__(Noise)
        other._base = self._base
        other._absorb(key)
        return other

    def table(self, index: Any) -> Noise:
        """Take one table's noise (or several, by slices or indices) out of a batch."""
        other = object.__new__(Noise)
        part = self._base[index]
        other._base, other.batch = (part, part.shape) if part.ndim else (int(part), ())
        return other

    # -- draws -------------------------------------------------------------------------------

    def bits(self, shape: Shape = ()) -> Array:
        """Draw 64 random bits, uint64."""
        lead = (shape,) if isinstance(shape, int) else tuple(shape)
        if not lead and type(self._base) is int:
            single: Any = np.uint64(mix(self._base + GOLD & FULL))
            return single
        places = np.arange(1, math.prod(lead) + 1, dtype=np.uint64) * GOLD
        drawn: Array = mix(places.reshape(*lead, *(1 for _ in self.batch)) + self._base)
        return drawn

    def random(self, shape: Shape = ()) -> Array:
        """Draw uniformly from [0, 1): multiples of 2**-53."""
        return (self.bits(shape) >> 11) * 2.0**-53

    def integers(
        self, low: Any, high: Any = None, shape: Shape | None = None, *, endpoint: bool = False
    ) -> Array:
        """Draw integers from `low` to below `high` (with `endpoint`: to `high`), int64.

        Each value's probability is within 2**-64 of equal. Limits may be arrays that broadcast to
        ``(*shape, *batch)``; without `shape`, theirs is taken. One limit alone is `high`.

        Raises:
            BadParameter: nothing lies between the limits, or 2**63 integers or more.
        """
        low, high = (0, low) if high is None else (low, high)
        if type(low) is int and type(high) is int:
            count: Any = high - low + endpoint
            if not 0 < count < 2**63 or low < -(2**63):
                raise BadParameter(_between(low, high))
            large, shape = count > LOW, () if shape is None else shape
        else:
            low, high = np.asarray(low), np.asarray(high)
            if low.dtype.kind not in "iu" or high.dtype.kind not in "iu":
                raise BadParameter(f"limits must be integers, got {low.dtype} and {high.dtype}")
            low, high = low.astype(np.int64), high.astype(np.int64)
            with np.errstate(over="ignore"):
                count = high - low + np.int64(endpoint)
            if (low > high).any() or (count < 1).any():
                raise BadParameter(_between(low, high))
            count, large = count.astype(np.uint64), bool((count > LOW).any())
            if shape is None:
                shape = _lead(np.broadcast_shapes(low.shape, high.shape, self.batch), self.batch)
        return (_share(self.bits(shape), count, large)).view(np.int64) + low

    def normal(self, mean: Any = 0.0, sigma: Any = 1.0, shape: Shape = ()) -> Array:
        """Draw from a normal distribution by its inverse (Acklam's, relative error 1.2e-9)."""
        return mean + sigma * _normal((self.bits(shape) >> 12) * 2.0**-52 + 2.0**-53)

    def order(self, count: int, shape: Shape = ()) -> Array:
        """Draw orders of ``0 .. count - 1``, all equally likely, int64 ``(count, *shape, *batch)``.

        More of `shape`'s first axis only adds orders.
        """
        lead = (shape,) if isinstance(shape, int) else tuple(shape)
        own = 2 ** _count("count", count).bit_length() - 1  # the last bits say who, so no two tie
        who = np.arange(count, dtype=np.uint64).reshape(-1, *(1 for _ in self.batch))
        drawn = np.sort(self.bits((*lead, count)) & (FULL - own) | who, axis=len(lead)) & own
        return np.moveaxis(drawn, len(lead), 0).view(np.int64)

    def sample(self, size: int, count: int, shape: Shape = ()) -> Array:
        """Draw `count` distinct integers below `size` in random order, ``(count, *shape, *batch)``.

        Raises:
            BadParameter: there are fewer than `count`.
        """
        if _count("count", count) > _count("size", size):
            raise BadParameter(f"count must be at most size {size}, got {count}")
        if size <= DISTINCT_BY_ORDER:
            return self.order(size, shape)[:count]
        lead = (shape,) if isinstance(shape, int) else tuple(shape)
        picks = np.empty((count, *lead, *self.batch), np.int64)
        for i in range(count):
            pick = self.of(i).integers(0, size - i, lead)
            for earlier in np.sort(picks[:i], axis=0):  # skip what is taken, from below
                pick = pick + (pick >= earlier)
            picks[i] = pick
        return picks

    def choice(self, weights: Any, shape: Shape | None = None) -> Array:
        """Draw places on the last axis of `weights` in proportion to them, int64.

        The other axes of `weights` broadcast to ``(*shape, *batch)``; without `shape`, theirs is
        taken. A weight of 0 is never drawn.

        Raises:
            BadParameter: a weight is negative or not finite, or all of a row are 0.
        """
        weights = np.asarray(weights, np.float64)
        upto = np.cumsum(weights, axis=-1) if weights.size else np.zeros(1)
        total = upto[..., -1]
        if not ((weights >= 0).all() and (total > 0).all() and (total < np.inf).all()):
            raise BadParameter(f"weights must be finite, not negative, not all 0, got {weights}")
        if shape is None:
            shape = _lead(np.broadcast_shapes(weights.shape[:-1], self.batch), self.batch)
        reached = self.random(shape) * total
        return (upto <= reached[..., None]).sum(axis=-1)

    def seed(self, bits: int = 63) -> Any:
        """Draw a seed for another generator, of at most 63 bits: an int, or int64 ``(*batch)``."""
        drawn = (self.bits() >> (64 - bits)).astype(np.int64)
        return drawn if self.batch else int(drawn)

    def __repr__(self) -> str:
        return f"Noise of {self.batch} tables" if self.batch else f"Noise {self._base:016x}"


@lru_cache(maxsize=4096)
def _hash(word: str | int) -> int:
    """Hash a word to 64 bits, the same in every process."""
    if isinstance(word, str):
        return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
    if not 0 <= word <= FULL:
        raise BadParameter(f"a seed or word of a key must be from 0 to 2**64 - 1, got {word}")
    scrambled: int = mix(word + SALT & FULL)
    return scrambled


def _integers(word: Any) -> Any:
    """Return an array's integers as uint64; one alone as an int."""
    given = np.asarray(word)
    if given.dtype.kind not in "iu" or (given.dtype.kind == "i" and (given < 0).any()):
        raise BadParameter(f"seeds and words of a key must be integers from 0, got {word!r}")
    return given.astype(np.uint64) if given.ndim else int(given)


def _count(name: str, value: int) -> int:
    if value < 0:
        raise BadParameter(f"{name} must be at least 0, got {value}")
    return value


def _lead(shape: tuple[int, ...], batch: tuple[int, ...]) -> tuple[int, ...]:
    """Return what stands before the batch axes in a full shape."""
    lead = shape[: len(shape) - len(batch)]
    if (*lead, *batch) != shape:
        raise BadParameter(f"the shape {shape} does not end with the batch {batch}")
    return lead


def _between(low: Any, high: Any) -> str:
    return f"integers must be drawn from 1 to 2**63 - 1 of them, got low {low} and high {high}"


def _share(drawn: Array, count: Any, large: bool) -> Any:
    """Return ``drawn * count / 2**64`` cut to a whole number, exactly."""
    upper, lower = drawn >> 32, drawn & LOW
    if not large:
        return upper * count + (lower * count >> 32) >> 32
    first, second = count >> 32, count & LOW
    middle = upper * second + (lower * second >> 32)
    return upper * first + (middle >> 32) + (lower * first + (middle & LOW) >> 32)


# Acklam's approximation of the normal distribution's inverse: centre (in r = (p - 1/2)**2) and
# tail (in sqrt(-2 log p)), highest power first.
CENTRE = (
    (-3.969683028665376e01, 2.209460984245205e02, -2.759285104469687e02,
     1.383577518672690e02, -3.066479806614716e01, 2.506628277459239e00),
    (-5.447609879822406e01, 1.615858368580409e02, -1.556989798598866e02,
     6.680131188771972e01, -1.328068155288572e01, 1.0),
)  # fmt: skip
TAIL = (
    (-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e00,
     -2.549732539343734e00, 4.374664141464968e00, 2.938163982698783e00),
    (7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00,
     3.754408661907416e00, 1.0),
)  # fmt: skip
TAIL_BELOW = 0.02425


def _normal(p: Any) -> Any:
    """Return the value below which a standard normal lies with probability `p`."""
    p = np.asarray(p)
    q = p - 0.5
    value = np.asarray(q * _ratio(CENTRE, q * q))
    tail = abs(q) > 0.5 - TAIL_BELOW
    if tail.any():
        side = q[tail]
        value[tail] = -np.copysign(1.0, side) * _ratio(TAIL, np.sqrt(-2.0 * _log(0.5 - abs(side))))
    return value[()]


def _log(x: Array) -> Array:
    """Return the natural logarithm to 1e-13 by exactly rounded operations (libm's differ)."""
    half, power = np.frexp(x)  # half * 2**power, half from 1/2 to 1
    s = (half - math.sqrt(0.5)) / (half + math.sqrt(0.5))
    series = _powers(tuple(1 / k for k in range(19, 0, -2)), s * s)
    return (power - 0.5) * 0.6931471805599453 + 2.0 * s * series


def _powers(coefficients: tuple[float, ...], x: Any) -> Any:
    """Return the polynomial's value, highest power first (Horner)."""
    return reduce(lambda value, c: value * x + c, coefficients)


def _ratio(fraction: tuple[tuple[float, ...], ...], x: Any) -> Any:
    return _powers(fraction[0], x) / _powers(fraction[1], x)
