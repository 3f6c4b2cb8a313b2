"""Chance by name: the same (seed, key) always draws the same numbers, alone or in a batch.

A consumer names what it draws (``noise.of("seat", 3, step)``) and gets that name's numbers however
often it asks and whoever else draws. A number is splitmix64's: ``mix(base + GOLD * place)``, the
base hashed from seed and key, by operations that are exact on every processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_games.arrays import any_true, arrayed, wrong
from llm_games.errors import BadParameter

Array = NDArray[Any]
Word = Any  # a part of a key: a text, an integer from 0, or an array of them (one for each table)
Shape = int | tuple[int, ...]
FULL = 2**64 - 1
LOW = 2**32 - 1
GOLD = 0x9E3779B97F4A7C15
SALT = 0xD1342543DE82EF95
MIXED = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SORTED = 64  # `Noise.sample` sorts up to this many; of more it picks one after another


def mix(z: Any) -> Any:
    """Scramble 64 bits (Stafford's 13th mix, as in splitmix64): an int, or a uint64 array."""
    if type(z) is int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & FULL
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & FULL
        return z ^ (z >> 31)
    if not isinstance(z, np.ndarray):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB
        return z ^ (z >> 31)
    shifted = z >> 30
    z = z ^ shifted
    z *= MIXED[0]  # in place: new arrays take longer than the arithmetic
    z ^= np.right_shift(z, 27, out=shifted)
    z *= MIXED[1]
    z ^= np.right_shift(z, 31, out=shifted)
    return z


class Noise:
    """Random numbers that hang on nothing but a seed, a key and their place in the draw.

    Every draw has shape ``(*shape, *batch)``; `batch` is that of the seeds, ``()`` for one table.
    Places count through `shape`, first axis outermost: a longer first axis only adds numbers.
    Parameters of a draw may be arrays that broadcast to its shape; without `shape`, it is theirs.

    Two draws under one key begin with the same bits: give each its own name. Where one may have to
    be repeated, number the attempts, draw the full shape and choose by `numpy.where`, or a table's
    numbers would hang on its neighbours.
    """

    __slots__ = ("_base", "_due", "batch")
    _due: Callable[[], Any]

    def __init__(self, seed: Any, *key: Word) -> None:
        """Make the noise of a seed, or of an array of one for each table; from 0 to 2**64 - 1."""
        self._keep(_longer(0, (seed, *key)))

    def _keep(self, base: Any) -> None:
        self._base: Any = base
        self.batch: tuple[int, ...] = np.shape(base) if type(base) is not int else ()

    @classmethod
    def keyed(cls, key: Array) -> Noise:
        return _keyed(key if np.ndim(key) else int(key))

    @classmethod
    def due(cls, batch: tuple[int, ...], key: Callable[[], Any]) -> Noise:
        """Return the noise of a batch whose `key` is computed at the first draw."""
        other = object.__new__(cls)
        other._due, other.batch = key, batch
        return other

    def __getattr__(self, name: str) -> Any:
        if name != "_base":
            raise AttributeError(name)
        self._base = self._due()
        return self._base

    def __reduce__(self) -> tuple[Any, ...]:
        return _keyed, (self._base,)

    @classmethod
    def copies(cls, seed: int, batch: tuple[int, ...]) -> Noise:
        """Return the noise of a batch whose copy i has the i-th seed after this one."""
        offsets = np.arange(math.prod(batch), dtype=np.uint64).reshape(batch)
        return cls(np.uint64(seed) + offsets) if batch else cls(seed)

    def of(self, *key: Word) -> Noise:
        """Return the noise under a longer key: ``of("a", 1)`` is ``of("a").of(1)``.

        An array of integers, which broadcasts with the batch, gives each table its own word.
        """
        if self.batch and all(type(word) in (str, int) for word in key):
            return Noise.due(self.batch, lambda: _longer(self._base, key))
        return _keyed(_longer(self._base, key))

    def table(self, index: Any) -> Noise:
        part = self._base[index]
        return _keyed(part if part.ndim else int(part))

    # -- draws -------------------------------------------------------------------------------

    def bits(self, shape: Shape = ()) -> Any:
        """Draw 64 random bits, uint64."""
        lead = _axes(shape)
        if not lead and type(self._base) is int:
            return np.uint64(mix(self._base + GOLD & FULL))
        places = np.arange(1, math.prod(lead) + 1, dtype=np.uint64) * GOLD
        return mix(places.reshape(*lead, *(1 for _ in self.batch)) + self._base)

    def random(self, shape: Shape = ()) -> Array:
        """Draw uniformly from [0, 1): multiples of 2**-53."""
        return (self.bits(shape) >> 11) * 2.0**-53

    def integers(
        self, low: Any, high: Any = None, shape: Shape | None = None, *, endpoint: bool = False
    ) -> Any:
        """Draw integers from `low` to below `high` (with `endpoint`: to `high`), int64.

        Equally likely within 2**-64. One limit alone is `high`. Limits that are no integers, leave
        none to draw, or are 2**63 or more, raise BadParameter.
        """
        low, high = (0, low) if high is None else (low, high)
        if type(low) is int and type(high) is int:
            count: Any = high - low + endpoint
            if not 0 < count < 2**63 or not -(2**63) <= low <= 2**63 - count:
                raise _no_integers(low, high)
            if shape in (None, ()) and type(self._base) is int:  # one number: the same, and fast
                return np.int64((mix(self._base + GOLD & FULL) * count >> 64) + low)
            large, lead = count > LOW, self._lead(shape)
        else:
            low, high = arrayed(low), arrayed(high)
            if any(limit.dtype.kind not in "iu" for limit in (low, high)):
                raise _no_integers(low, high)
            low, high = low.astype(np.int64), high.astype(np.int64)
            with np.errstate(over="ignore"):
                count = high - low + np.int64(endpoint)
            if wrong(low > high) or wrong(count < 1):
                raise _no_integers(low, high)
            count, large = count.astype(np.uint64), any_true(count > LOW)
            lead = self._lead(shape, low.shape, high.shape)
        return _share(self.bits(lead), count, large).view(np.int64) + low

    def normal(self, mean: Any = 0.0, sigma: Any = 1.0, shape: Shape | None = None) -> Array:
        """Draw from normal distributions (Box and Muller), to 11 digits and 6.7 `sigma`."""
        if np.less(sigma, 0).any():
            raise BadParameter(f"sigma must be at least 0, got {sigma}")
        drawn = self.bits(self._lead(shape, np.shape(mean), np.shape(sigma)))
        half, power = np.frexp(((drawn >> 32) + 0.5) * 2.0**-32)  # half * 2**power, half below 1
        s = (half - math.sqrt(0.5)) / (half + math.sqrt(0.5))
        log = (power - 0.5) * 0.6931471805599453 + 2.0 * s * _powers(LOG, s * s)  # not libm's
        radius = np.sqrt(-2.0 * log)
        angle = ((drawn & LOW) - (2.0**31 - 0.5)) * (math.pi * 2.0**-32)  # within a quarter turn
        return mean + sigma * (radius * angle * _powers(SINE, angle * angle))

    def order(self, count: int, shape: Shape = ()) -> Array:
        """Draw orders of ``range(count)``, each as likely, int64 ``(count, *shape, *batch)``."""
        lead = _axes(shape)
        low = 2 ** int(count).bit_length() - 1  # the last bits, the index, break ties
        drawn = self.bits((*lead, count)) & (FULL - low)
        drawn |= np.arange(count, dtype=np.uint64).reshape(-1, *(1 for _ in self.batch))
        drawn.sort(axis=len(lead))
        return np.moveaxis(drawn & low, len(lead), 0).view(np.int64)

    def sample(self, size: int, count: int, shape: Shape = ()) -> Array:
        """Draw `count` distinct integers below `size` in random order, ``(count, *shape, *batch)``.

        More of `count` or of `shape`'s first axis only adds numbers.
        """
        if not 0 <= count <= size:
            raise BadParameter(f"count must be from 0 to {size}, got {count}")
        if size <= SORTED:
            return self.order(size, shape)[:count]
        picks = np.empty((count, *_axes(shape), *self.batch), np.int64)
        for i in range(count):
            pick = self.of("pick", i).integers(0, size - i, shape)
            for earlier in np.sort(picks[:i], axis=0):  # skip what is taken, from below
                pick = pick + (pick >= earlier)
            picks[i] = pick
        return picks

    def choice(self, weights: Any, shape: Shape | None = None) -> Array:
        """Draw places on the last axis of `weights` in proportion to them, int64.

        BadParameter for a negative or infinite one, or a row of zeros.
        """
        weights = np.asarray(weights, np.float64)
        upto = np.cumsum(weights, axis=-1) if weights.size else np.zeros(1)
        total = upto[..., -1]
        if not ((weights >= 0).all() and (total > 0).all() and (total < np.inf).all()):
            raise BadParameter(f"weights must be finite, not negative, not all 0, got {weights}")
        lead = self._lead(shape, weights.shape[:-1])
        return (upto <= (self.random(lead) * total)[..., None]).sum(axis=-1)

    @property
    def key(self) -> Array:
        """What `number` draws from, uint64 ``(*batch)``."""
        return arrayed(self._base).astype(np.uint64)

    def seed(self, bits: int = 63) -> Any:
        """Draw a seed for another generator, of at most 63 bits: an int, or int64 ``(*batch)``."""
        drawn = (self.bits() >> (64 - bits)).astype(np.int64)
        return drawn if self.batch else int(drawn)

    def _lead(self, shape: Shape | None, *parts: tuple[int, ...]) -> tuple[int, ...]:
        """Return the axes before the batch's to which parameters of these shapes broadcast."""
        if not any(parts):
            return () if shape is None else _axes(shape)
        full = np.broadcast_shapes(*parts, self.batch)
        lead = full[: len(full) - len(self.batch)] if shape is None else _axes(shape)
        if np.broadcast_shapes(full, (*lead, *self.batch)) != (*lead, *self.batch):
            raise BadParameter(f"shape {full} does not fit {lead} before the batch {self.batch}")
        return lead


def number(key: Array, index: Any) -> Array:
    """Draw only entry `index`, from 0, of what `Noise.random` draws with this key."""
    with np.errstate(over="ignore"):
        bits = mix(key + GOLD * np.add(index, 1).astype(np.uint64))
    return (bits >> 11) * 2.0**-53


def counted(key: Any, count: Any) -> Any:
    """Return the keys of ``noise.of(count)`` by the noise's own and counts from 0."""
    return mix(key ^ mix(count.astype(np.uint64) + SALT))


def _keyed(base: Any) -> Noise:
    other = object.__new__(Noise)
    other._keep(base)
    return other


def _longer(base: Any, words: tuple[Word, ...]) -> Any:
    for word in words:
        hashed = _hash(word) if type(word) in (str, int) else mix(_integers(word) + SALT & FULL)
        base = mix(base ^ hashed)
    return base


@lru_cache(maxsize=4096)
def _hash(word: str | int) -> int:
    """Hash a word to 64 bits, the same in every process."""
    if isinstance(word, str):
        return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
    if not 0 <= word <= FULL:
        raise BadParameter(f"a seed or word of a key must be from 0 to 2**64 - 1, got {word}")
    return int(mix(word + SALT & FULL))


def _integers(word: Any) -> Any:
    """Convert words to uint64, a single one to an int; BadParameter for others."""
    integers = arrayed(word)
    if integers.dtype.kind not in "iu" or (integers.dtype.kind == "i" and (integers < 0).any()):
        raise BadParameter(f"seeds and words of a key must be integers from 0, got {word!r}")
    return integers.astype(np.uint64) if integers.ndim else int(integers)


def _axes(shape: Shape) -> tuple[int, ...]:
    axes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if any(length < 0 for length in axes):
        raise BadParameter(f"lengths of axes must be at least 0, got {shape}")
    return axes


def _no_integers(low: Any, high: Any) -> BadParameter:
    return BadParameter(f"cannot draw integers from low {low} to high {high}")


def _share(drawn: Array, count: Any, large: Any) -> Any:
    """Return ``floor(drawn * count / 2**64)`` exactly; `large`: a count of more than 32 bits."""
    upper, lower = drawn >> 32, drawn & LOW
    if not large:
        return upper * count + (lower * count >> 32) >> 32
    first, second = count >> 32, count & LOW
    middle = upper * second + (lower * second >> 32)
    return upper * first + (middle >> 32) + (lower * first + (middle & LOW) >> 32)


# Terms of log((1 + s) / (1 - s)) / 2s in s**2 and of sin(x) / x in x**2, highest first.
LOG = tuple(1 / k for k in range(15, 0, -2))
SINE = tuple((2 - k % 4) / math.factorial(k) for k in range(15, 0, -2))


def _powers(coefficients: tuple[float, ...], x: Any) -> Any:
    """Evaluate a polynomial without constant term factored out, highest power first (Horner)."""
    value = coefficients[0] * x
    for c in coefficients[1:-1]:
        value += c  # in place: no new array for every power
        value *= x
    return value + coefficients[-1]
