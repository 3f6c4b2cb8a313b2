"""What a game declares once: its parameters, the quantities that players know, and its chance."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from llm_games.arrays import Array
from llm_games.errors import BadParameter
from llm_games.noise import Noise

T = TypeVar("T")
Each: TypeAlias = T | tuple[T, ...]  # of a parameter: one for all players, or one for each
LARGEST = 2**53  # the largest integer up to which doubles are exact, and int64 has room to spare
LAW: dict[str, Any] = {"hidden": "tell_prior", "stakes": "always"}  # of parameters, see `has_law`
LONGEST_DECIMAL = 10  # letters of a float that is taken as the decimal it is written as


# -- parameters -----------------------------------------------------------------------------------
def param(
    default: Any,
    meaning: str = "",
    *,
    low: int | None = None,
    high: int | None = None,
    read: Callable[[str, Any], Any] | None = None,
    each: tuple[Any, ...] = (),
    none: str = "",
    hidden: bool | str = False,
    stakes: str | tuple[str, Any] = "",
    fiction: bool = False,
    words: Mapping[str, str] | None = None,
    **choices: str,
) -> Any:
    """Declare a parameter of a game, from which its checks and its documentation follow.

    Args:
        default: its value where none is given; of true or false, no other value is allowed.
        meaning: what it is, in words.
        low, high: it is a whole number of at least, and at most (usually `LARGEST`), this.
        read: turns what was given into its value; raises BadParameter.
        each: one for all players or each, from the first to the second integer, or of these words.
        none: what None means, where that is allowed; or, beside `choices`, the word ``none``.
        hidden: players are not told (or only where the parameter of this name is true), in words
            or numbers.
        stakes: payoffs depend on it though it is hidden: ``always``, ``changed`` if it is not the
            default, or where another parameter has this value; see `Rulebook.silent`.
        fiction: where it is true players are told what need not be so; see `Rulebook.fictions`.
        words, choices: it is one of these words, each with its meaning.
    """
    if none and choices:
        choices |= {"none": none}
        if default == "none":
            choices = {"none": none, **choices}
        none = ""
    meta = {"meaning": meaning, "low": low, "high": high, "read": read, "none": none}
    options: dict[str, Any] = {"each": each, "hidden": hidden or bool(stakes)}
    options |= {"choices": {**(words or {}), **choices}, "stakes": stakes, "fiction": fiction}
    return field(default=default, metadata=meta | options)


def check_parameters(game: Any) -> None:
    """Check the declared parameters of a frozen dataclass, and store what `read` returns."""
    for f in dataclasses.fields(game):
        value, meta = _frozen(getattr(game, f.name)), f.metadata
        object.__setattr__(game, f.name, value)
        if not meta or (meta["none"] and value is None):
            continue
        if meta["each"]:
            object.__setattr__(game, f.name, _each(f.name, value, game.players, meta["each"]))
        elif meta["read"]:
            object.__setattr__(game, f.name, meta["read"](f.name, value))
        elif meta["choices"]:
            check_choice(f.name, value, tuple(meta["choices"]))
        elif isinstance(f.default, bool):
            check_choice(f.name, value, (False, True))
        elif meta["low"] is not None:
            check_integer(f.name, value, meta["low"], meta["high"] or LARGEST)


def _frozen(value: Any) -> Any:
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def _each(name: str, value: Any, players: int, limits: tuple[Any, ...]) -> Any:
    several = isinstance(value, (list, tuple))
    what = f"one for all or {players}, one for each of {players} players"
    values = listed(name, value, players, what) if several else (value,)
    for entry in values:
        if isinstance(limits[0], str):
            check_choice(name, entry, limits)
        else:
            check_integer(f"each of the {name}", entry, *limits)
    values = tuple(map(type(limits[0]), values))
    return values if several else values[0]


def allowed(parameter: dataclasses.Field[Any]) -> str:
    """Describe the values that a declared parameter can take; "" where only `read` knows."""
    meta = parameter.metadata
    words = [f"``{word}``: {meaning}" for word, meaning in meta["choices"].items()]
    if meta["low"] is not None:
        high = meta["high"]
        words.append(f"at least {meta['low']}" + ("" if high is None else f", at most {high}"))
    if meta["none"]:
        words.append(f"None: {meta['none']}")
    if meta["hidden"]:
        exception = "" if meta["hidden"] is True else f", unless `{meta['hidden']}`"
        words.append(f"players are not told{exception}{', though it pays' * bool(meta['stakes'])}")
    return "; ".join(words)


# -- what players know ----------------------------------------------------------------------------
class Column(NamedTuple):
    """One column of the numeric observation: its name, range and meaning (with unit)."""

    name: str
    low: float
    high: float
    meaning: str


class Fact(NamedTuple):
    """One quantity that players know, in numbers and in words: its name, range and meaning.

    `of` turns a state into each seat's own ``(players, *batch)``, or what all hear ``(*batch)``.
    With `each` there is a column for each seat, or so many things: a leading axis of `of`, whose
    number from `first` on follows `name` and fills ``{}`` in `meaning`. `said` is another name in
    words, or `NUMBERS_ONLY`; with `now` it belongs to the round to play, not to the last.
    """

    name: str
    of: Callable[[Any], Any]
    low: float
    high: float
    meaning: str
    each: bool | int = False
    said: str = ""
    now: bool = False
    first: int = 0

    def columns(self, players: int) -> list[Column]:
        """Return the columns that it takes."""
        if self.each is False:
            return [Column(self.name, self.low, self.high, self.meaning)]
        count = players if self.each is True else self.each
        numbers = range(self.first, self.first + count)
        name, low, high, meaning = self.name, self.low, self.high, self.meaning
        return [Column(f"{name}_{i}", low, high, meaning.format(i)) for i in numbers]


def once(of: Callable[[Any], T]) -> Callable[[Any], T]:
    """Cache a function of a state for the last state, for several facts that need it."""
    last: tuple[Any, Any] = (None, None)

    def get(state: Any) -> T:
        nonlocal last
        cached = last  # another thread may change it
        if cached[0] is not state:
            cached = last = state, of(state)
        return cached[1]

    return get


NUMBERS_ONLY = "-"  # as `Fact.said`: words follow from other facts


def plain(value: Any) -> Any:
    """Return a whole float as an integer, as prompts write it."""
    return int(value) if isinstance(value, float) and value == int(value) else value


# -- chance ---------------------------------------------------------------------------------------
class Draw(NamedTuple):
    """One thing that chance decides before play, drawn under its name or fixed by the caller.

    `of` draws it, ``(..., *batch)``; fixed numbers are from `low` to `high`, and if `distinct`,
    none comes twice at a table. `rows` makes rows of the draw where the caller fixes only some.
    Rows are of rounds where `out` is a number: in round t the first ``t + out`` have been seen or
    used, and nobody knows the rest. None: all of it is settled when play begins.
    """

    name: str
    of: Callable[[Noise], Any]
    low: float
    high: float
    distinct: bool = False
    rows: Callable[[Array], Array] | None = None
    out: int | None = None

    def filled(self, values: Any, drawn: Array) -> Array:
        """Replace drawn numbers, ``(..., *batch)``, by fixed ones; BadParameter if they do not fit.

        Of the drawn shape, or one table's for all. Fewer rows replace the first; one number stands
        for all.
        """
        shape = np.shape(values) if isinstance(values, (np.ndarray, np.generic)) else None
        if self.rows and shape in ((), drawn.shape) and values.dtype == drawn.dtype:
            return np.broadcast_to(values, drawn.shape)  # as drawn before
        drawn = self.rows(drawn) if self.rows else drawn
        allowed = f"numbers from {self.low:g} to {self.high:g} of shape {drawn.shape}"
        kinds = {"b": "biu", "f": "iuf"}.get(drawn.dtype.kind, "iu")
        try:
            array, types = np.asarray(values), {type(v) for v in np.asarray(values, "O").flat}
            fits = array.dtype.kind in kinds and ("b" in kinds or bool not in types)
            if not fits or not ((array >= self.low) & (array <= self.high)).all():
                raise ValueError
            few = array.ndim and drawn.ndim and len(array) < len(drawn)
            first = drawn[: len(array)] if few else drawn
            tall = array.reshape(array.shape + (1,) * (drawn.ndim - array.ndim))
            rows = np.broadcast_to(tall, first.shape).astype(drawn.dtype)
        except ValueError:
            raise BadParameter(
                f"chance {self.name!r} must be {allowed} or one for all, got {values!r}"
            ) from None
        rows = np.concatenate([rows, drawn[len(rows) :]]) if few else rows
        if self.distinct and (np.diff(np.sort(rows, axis=0), axis=0) == 0).any():
            raise BadParameter(
                f"chance {self.name!r} must have each number only once, got {values!r}; give all "
                f"{len(rows)}, from {self.low:g} to {self.high:g}"
            )
        return rows


def fixed(values: Any) -> Callable[[Noise], Array]:
    """Return a draw that leaves nothing to chance."""
    return lambda noise: np.multiply.outer(values, np.ones(noise.batch, np.int64))


def within(noise: Noise, draw: Callable[[Noise], Array], low: Any, high: Any) -> Array:
    """Draw again, under numbered attempts, what is outside `low` to `high`."""
    values, attempt = draw(noise.of(0)), 0
    while (outside := (values < low) | (values > high)).any():
        attempt += 1
        values = np.where(outside, draw(noise.of(attempt)), values)
    return values


# -- checks of values -----------------------------------------------------------------------------
def check_integer(name: str, value: Any, low: int, high: int | None = None) -> None:
    """Raise BadParameter unless `value` is an integer in ``low..high``."""
    ok = isinstance(value, (int, numbers.Integral)) and not isinstance(value, bool)
    if not ok or value < low or (high is not None and value > high):
        allowed = f"an integer of at least {low}" + ("" if high is None else f" and at most {high}")
        raise BadParameter(f"{name} must be {allowed}, got {value!r}")


def rounds_shown(name: str, value: Any) -> Any:
    """Read how many past rounds are shown: ``all`` or a number of at least 0."""
    if value != "all":
        check_integer(f'{name} must be "all", or it', value, 0)
    return value


def listed(name: str, value: Any, count: int, what: str) -> tuple[Any, ...]:
    """Read `count` values; BadParameter, saying "must be" `what`, for anything else."""
    if not isinstance(value, (list, tuple)) or len(value) != count:
        raise BadParameter(f"{name} must be {what}, got {value!r}")
    return tuple(value)


def rows_of(
    name: str, value: Any, rows: int, columns: int, low: int, high: int, what: str = "rounds"
) -> tuple[tuple[int, ...], ...]:
    """Read rows of integers in ``low..high``, one row for each of `what`."""
    shape = f"{rows} row{'s' if rows > 1 else ''} ({what}) of {columns} integers"
    try:
        table = tuple(tuple(row) for row in value)
    except TypeError:
        raise BadParameter(f"{name} must be {shape}, got {value!r}") from None
    if len(table) != rows or any(len(row) != columns for row in table):
        lengths = [len(row) for row in table]
        raise BadParameter(f"{name} must be {shape}, got rows of the lengths {lengths}")
    for row in table:
        for number in row:
            check_integer(f"each of the {name}", number, low, high)
    return tuple(tuple(map(int, row)) for row in table)


def check_number(name: str, value: Any, low: float | None = None) -> None:
    """Raise BadParameter unless `value` is a finite real number, at least `low`."""
    ok = isinstance(value, (numbers.Real, Fraction)) and not isinstance(value, bool)
    if not ok or not np.isfinite(float(value)) or (low is not None and value < low):
        limit = "" if low is None else f" of at least {low}"
        raise BadParameter(f"{name} must be a finite number{limit}, got {value!r}")


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise BadParameter unless `value` is one of `choices`."""
    if not any(value is c or (type(value) is type(c) and value == c) for c in choices):
        raise BadParameter(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def ratio_of(
    name: str, value: Any, low: int = 0, high: int | None = None, *, longest: int = LONGEST_DECIMAL
) -> Fraction:
    """Read an exact ratio: a Fraction, an integer, ``"2/3"``, ``"0.6"``, ``0.6`` or ``(2, 3)``.

    A float counts as the decimal that it is written as; of more than `longest` letters, as of ``2 /
    3``, it is refused.
    """
    allowed = f"a ratio of at least {low}" + ("" if high is None else f" and at most {high}")
    if isinstance(value, float) and math.isfinite(value):
        if len(repr(value)) > longest:
            raise BadParameter(
                f'{name} must be exact: write "2/3", "0.6" or (2, 3), not the float {value!r}'
            )
        value = repr(value)
    try:
        if isinstance(value, bool):
            raise TypeError
        ratio = Fraction(*value) if isinstance(value, (tuple, list)) else Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        allowed += ', such as "2/3" or (2, 3)'
        raise BadParameter(f"{name} must be {allowed}, got {value!r}") from None
    if ratio < low or (high is not None and ratio > high):
        raise BadParameter(f"{name} must be {allowed}, got {value!r}")
    return _short(name, ratio)


def _short(name: str, ratio: Fraction) -> Fraction:
    """Check that doubles hold numerator and denominator exactly; else raise BadParameter."""
    if max(map(abs, ratio.as_integer_ratio())) > LARGEST:
        raise BadParameter(
            f"{name} must be a ratio of integers of at most {LARGEST} (2**53), got {ratio}; write "
            'it as a decimal or with smaller integers, such as "0.1" or "2/3"'
        )
    return ratio


def has_law(game: Any, drawn: bool) -> None:
    """Raise BadParameter if `tell_prior` is set though nothing is drawn."""
    if game.tell_prior and not drawn:
        raise BadParameter(
            "tell_prior must be False where no private valuations are drawn, got True; leave it "
            "out, or let them be drawn"
        )


def factor_of(name: str, value: Any) -> Fraction:
    """Read an exact ratio above 0 and at most 1."""
    if not (factor := ratio_of(name, value, 0, 1)):
        raise BadParameter(f"{name} must be above 0 and at most 1, got {value!r}")
    return factor


def share_below_1(name: str, value: Any) -> Fraction:
    """Read an exact ratio of at least 0 and below 1."""
    if (share := ratio_of(name, value, 0, 1)) == 1:
        raise BadParameter(f"{name} must be a ratio of at least 0 and below 1, got {value!r}")
    return share


def count_of(name: str, value: Any) -> int:
    """Read a whole number of at least 0."""
    check_integer(name, value, 0, LARGEST)
    return int(value)


def each_of(count: int, read: Callable[[str, Any], T]) -> Callable[[str, Any], tuple[T, ...]]:
    """Return a reader of one value for all of `count` seats, or of one for each, as `read` does."""

    def values(name: str, value: Any) -> tuple[T, ...]:
        each = value if isinstance(value, (tuple, list)) else (value,) * count
        what = f"one for all or {count}, one for each seat"
        return tuple(read(f"each {name}", entry) for entry in listed(name, each, count, what))

    return values


def exact_of(name: str, value: Any) -> int | Fraction:
    """Read a finite number exactly; a float counts as the decimal it is written as."""
    try:
        exact = value if isinstance(value, Fraction) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise BadParameter(f"{name} must be a finite number, got {value!r}") from None
    exact = _short(name, exact)
    return exact.numerator if exact.denominator == 1 else exact


def in_units(values: Iterable[int | Fraction]) -> tuple[list[int], int]:
    """Return exact numbers as whole numbers of a common unit, and how many units are 1."""
    exact = [*map(Fraction, values)]
    unit = math.lcm(*(value.denominator for value in exact))
    return [int(value * unit) for value in exact], unit


def as_given(value: Any) -> Any:
    """Return a value as whoever gives it writes it: ratios are integers, or texts such as 3/2."""
    if isinstance(value, Mapping):
        return {key: as_given(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(as_given, value))
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else str(value)
    return value
