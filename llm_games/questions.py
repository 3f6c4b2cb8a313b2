"""The kinds of questions that a seat is asked: one small class for each kind of answer.

A question knows its JSON key, the schema of a legal reply, how to read the value (strictly, or with
a paper's leniencies), the canonical reply of an action, and which texts can still become one.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import cache, cached_property, lru_cache
from itertools import islice
from math import inf, isfinite
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from llm_games import promises
from llm_games.arrays import looked_up
from llm_games.noise import Noise
from llm_games.schemas import beginnings, object_of

T = TypeVar("T")
MISSING = int(np.iinfo(np.int64).min)  # the action of a seat that gave no answer
MANY = 1000  # legal numbers that are not listed one by one
BEYOND = 2**62  # a number too large for arrays, which no game takes


class Limits(Protocol):
    """Legal actions of a seat, int64 ``(*batch)``, as a `View` has them."""

    @property
    def low(self) -> Any: ...
    @property
    def high(self) -> Any: ...
    @property
    def amounts(self) -> Any: ...
    @property
    def mask(self) -> Any: ...


NO_BID = -1  # the action of a seat that declines to bid, null in a reply

Action = int | tuple[int, ...] | str
"""A move of the rules; words are a str, "" is silence."""
LONGEST_TEXT = 4000  # characters of a text that are kept
LONGEST_SPEECH = 4000  # characters; whatever a talk allows, one that is longer is cut
_LONGEST = 400  # digits before the point; a larger number is as far out of range as any
_NUMBER = re.compile(rf"[+-]?\d{{1,{_LONGEST}}}(\.\d{{1,{_LONGEST}}})?")
_EXACTLY = Context(prec=3 * _LONGEST)
_COUNTED = re.compile(r"(\$?) ?([+-]?\d[\d,_.]{0,400})(?: ?(\$|[^\W\d_]+(?: [^\W\d_]+)?))?")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:(?:,\d{3})+|(?:_\d{3})+)(?:\.\d+)?")
MONEY = ("$", "dollar", "dollars")
POINTS = (*MONEY, "point", "points")
_UNSAID = ("null", "none")  # which mean too much in a sentence
_NOTHING = tuple((word, None) for word in ("null", "none", "no bid"))


@lru_cache(1024)
def alike(kind: Callable[..., T], *limits: Any, **more: Any) -> T:
    """Return the same question for the same limits: seats are asked alike, round after round."""
    return kind(*limits, **more)


class BadReply(Exception):
    """An answer that is not legal; caught where replies are read, it never reaches a user.

    `kind`: ``"format"`` or ``"range"``; `action`: the move if readable; `detail`: the rule it
    broke.
    """

    def __init__(self, kind: str, why: str, action: Any = MISSING, detail: str = "") -> None:
        super().__init__(why)
        self.kind, self.action, self.detail = kind, action, detail


class Remark(NamedTuple):
    """A value that a reply may state beside its answer, under its own key; it may be missing."""

    key: str
    about: str
    """in a few words"""
    number: bool = False
    last: bool = False
    """it stands behind the answer"""

    def value(self, whole: Mapping[str, Any]) -> Any:
        value = whole.get(self.key)
        if self.number:
            plain = isinstance(value, int | Decimal) and not isinstance(value, bool)
            number = float(cast(Decimal, value)) if plain else inf
            return number if isfinite(number) else None
        text = value.strip()[:LONGEST_TEXT] if isinstance(value, str) else ""
        return text or None


@dataclass(frozen=True)
class Question(ABC):
    """Base: the reply is a JSON object in which only `key` counts ("" without one of its own).

    One that reads more of it overrides `holds` and `answer`.
    """

    key: str
    published: Callable[[str, str], str] | None = field(default=None, kw_only=True, repr=False)
    """where the code of a paper looks for the JSON of the answer, given the text and the key: one
    of those in `replies`, None for `outermost`"""
    units: tuple[str, ...] = field(default=(), kw_only=True, repr=False)
    """the game's words for what a number counts, such as ``tokens``; ``$`` may stand before it"""
    also: tuple[tuple[str, Any], ...] = field(default=(), kw_only=True, repr=False)
    """other words (small letters) for a value, such as ``withdraw`` for null"""
    remarks: tuple[Remark, ...] = field(default=(), kw_only=True, repr=False)
    """what the same reply is asked for beside the answer, and what is noted down of it"""
    scale: int = field(default=1, kw_only=True, repr=False)
    """how many in words is one of the rules' units, in which limits and actions are"""
    bare: ClassVar[bool] = True
    """whether the value alone can be the whole reply"""

    @cached_property
    def replies(self) -> dict[Any, Any]:
        """Short texts as they were read, see `read_reply`; a wrapper needs its own."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("replies", "allows")}

    @abstractmethod
    def value_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the value under the key."""

    def holds(self, whole: Mapping[str, Any]) -> bool:
        """Test whether a JSON object in a reply is an answer, good or bad."""
        return self.key in whole

    def answer(self, whole: Mapping[str, Any]) -> Any:
        """Read the JSON object that `holds` an answer; raise BadReply as `read` does."""
        return self.read(whole[self.key])

    @abstractmethod
    def read(self, value: Any) -> Any:
        """Turn the JSON value (floats as Decimal) into an action, or raise BadReply, saying why."""

    def mended(self, value: Any) -> tuple[Any, set[str]]:
        """Rewrite a value as `read` takes it, and name why: ``unit``, ``thousands`` or ``word``."""
        if not isinstance(value, str):
            return value, set()
        text = value.strip()
        if text.casefold() in dict(self.also):
            return dict(self.also)[text.casefold()], {"word"}
        sign, number, unit = match.groups("") if (match := _COUNTED.fullmatch(text)) else ("",) * 3
        if not number or {sign, unit.casefold()} - {"", *self.units}:
            return value, set()
        grouped = bool(self.units and _GROUPED.fullmatch(number))
        present = {"unit": bool(sign or unit), "thousands": grouped}
        plain = re.sub("[,_]", "", number) if grouped else number
        return plain, {name for name, is_so in present.items() if is_so}

    def remark(self, whole: Mapping[str, Any]) -> str:
        """Name what is counted of a legal answer, "" for nothing."""
        return ""

    def beside(self, whole: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the remarks of a legal answer by kind, to be noted like answers to asides."""
        remarks = ((remark, remark.value(whole)) for remark in self.remarks)
        said = {r.key: v / self.scale if r.number else v for r, v in remarks if v is not None}
        return {key: {key: value} for key, value in said.items()}

    def value_of(self, action: Any) -> Any:
        """Return the JSON value of an action; the inverse of `read`."""
        return action

    @abstractmethod
    def sample(self, noise: Noise) -> Any:
        """Draw a legal action, all equally likely (of numbers without limits: from 0 to 100)."""

    def samples(self, noise: Noise, limits: Limits) -> Any:
        """Draw as `sample` does for a seat of each table of a batch; None: ask each table."""
        return None

    @abstractmethod
    def wanted(self) -> str:
        """Describe the legal answers in a few words, such as ``a whole number from 0 to 20``."""

    def form(self, reasoning: bool = False) -> str:
        """Show the form of a legal reply, such as ``{"bid": <a whole number from 0 to 9>}``."""
        parts = ['"explanation": <your reasoning>'] if reasoning else []
        parts += [f'"{key}": <{about}>' for key, about, _, last in self.remarks if not last]
        parts += [f'"{self.key}": {self._value_form()}']
        parts += [f'"{key}": <{about}>' for key, about, _, last in self.remarks if last]
        return f"{{{', '.join(parts)}}}"

    @cached_property
    def plain_form(self) -> str:
        return self.form()

    def _value_form(self) -> str:
        return f"<{self.wanted()}>"

    def schema(self, reasoning: bool = False) -> dict[str, Any]:
        properties: dict[str, Any] = {"explanation": {"type": "string"}} if reasoning else {}
        kinds = {r: {"type": "number" if r.number else "string"} for r in self.remarks}
        properties |= {r.key: kind for r, kind in kinds.items() if not r.last}
        properties[self.key] = self.value_schema()
        return object_of(properties | {r.key: kind for r, kind in kinds.items() if r.last})

    def reply(self, action: Any) -> str:
        return json.dumps({self.key: self.value_of(action)})

    def named(self, text: str, anybody: bool = False) -> Any:
        """Return the legal action that a text announces, or with `anybody` the one it speaks of."""
        if anybody:
            return promises.mentions(text, self.mentioned)
        announcement = self.announced(text)
        return None if announcement is None else announcement.move

    def announced(self, text: str) -> promises.Announcement | None:
        """Return the legal action that a text announces, and whether it is a proposal to all."""
        return promises.announced(text, self.mentioned, self.opposite)

    def opposite(self, action: Any) -> Any:
        """Return what a seat does that won't take an action (None: any); None if that is open."""
        return None

    def mentioned(self, sentence: str) -> Iterable[Any]:
        return ()

    def spoken(self, action: Any) -> str:
        value = self.value_of(action)
        words = (word for word, meant in self.also if meant is None and word not in _UNSAID)
        return str(value) if value is not None else next(words, "nothing")

    def _amounts(self, sentence: str) -> Iterable[Any]:
        """Yield the legal actions that numbers, or words for declining, mean in a sentence."""
        words = (w for w, _ in self.also if w not in _UNSAID and promises.holds(sentence, w))
        for amount in (*promises.numbers(sentence), *words):
            with suppress(BadReply):
                yield self.read(self.mended(amount)[0])

    @cached_property
    def allows(self) -> Callable[[str], bool]:
        """A test whether a text is the beginning of a legal canonical reply."""
        return beginnings(self.legal())

    def legal(self) -> dict[str, Any]:
        """Return the schema of legal replies without remarks, as exact as the rules allow."""
        return replace(self, remarks=()).schema() if self.remarks else self.schema()


@dataclass(frozen=True)
class Integer(Question):
    """A whole number in ``low..high`` (None: no limit). `truncate` cuts fractions towards zero."""

    low: int | None
    high: int | None
    truncate: bool = False
    units: tuple[str, ...] = field(default=MONEY, kw_only=True, repr=False)

    def value_schema(self) -> dict[str, Any]:
        limits = {"minimum": self.low, "maximum": self.high}
        told = {k: v * self.scale for k, v in limits.items() if v is not None}
        return {"type": "integer", **told} | ({"multipleOf": self.scale} if self.scale > 1 else {})

    def read(self, value: Any) -> int:
        spoken = read_integer(value, self.truncate)
        if spoken is None or (spoken % self.scale and not self.truncate):
            raise BadReply("format", f"{_show(value)} is not {self.wanted()}")
        number = spoken // self.scale if spoken >= 0 else -(-spoken // self.scale)
        low, high = self.low, self.high
        if (low is not None and number < low) or (high is not None and number > high):
            raise BadReply("range", f"{spoken} is not {self.wanted()}", within_int64(number))
        return within_int64(number)

    def legal(self) -> dict[str, Any]:
        schema, low, high = super().legal(), self.low, self.high
        if self.scale > 1 and low is not None and high is not None and high - low < MANY:
            values = [self.value_of(action) for action in range(low, high + 1)]
            schema["properties"][self.key] = {"enum": values}
        return schema

    def sample(self, noise: Noise) -> int:
        low = self.low or 0
        high = low + 100 if self.high is None else self.high
        return int(noise.integers(low, high, endpoint=True))

    def samples(self, noise: Noise, limits: Limits) -> Any:
        low = 0 if self.low is None else limits.low
        high = low + 100 if self.high is None else limits.high
        return noise.integers(low, high, (), endpoint=True)

    def value_of(self, action: Any) -> int:
        return int(action) * self.scale

    def mentioned(self, sentence: str) -> Iterable[Any]:
        yield from self._amounts(sentence)
        share = promises.share(sentence)
        if self.low == 0 and self.high is not None and share is not None:
            yield from [int(share * self.high)] * float(share * self.high).is_integer()

    def wanted(self) -> str:
        grid = f" that is a multiple of {self.scale}" if self.scale > 1 else ""
        if self.low is None or self.high is None:
            return f"a whole number{grid}"
        return f"a whole number from {self.low * self.scale} to {self.high * self.scale}{grid}"


@dataclass(frozen=True)
class Bid(Question):
    """A bid from `floor` to `budget`, or null (or a negative number) to withdraw, action -1.

    In an `opening` `floor` is the start price. With `limits` the seat is shown its limits. A reply
    that names another `item` under ``"item"`` is no answer.
    """

    floor: int
    budget: int
    opening: bool = False
    limits: bool = True
    item: str = ""
    units: tuple[str, ...] = field(default=MONEY, kw_only=True, repr=False)
    also: tuple[tuple[str, Any], ...] = field(
        default=(("withdraw", None), ("pass", None), *_NOTHING), kw_only=True, repr=False
    )

    def answer(self, whole: Mapping[str, Any]) -> int:
        named = whole.get("item", self.item)
        if self.item and named != self.item:
            raise BadReply("format", f'"item": {_show(named)} is not on sale now, {self.item} is')
        return self.read(whole[self.key])

    def value_schema(self) -> dict[str, Any]:
        withdraw = {"type": "null"}
        limits = {"minimum": self.floor, "maximum": self.budget} if self.limits else {}
        bid = {"type": "integer"} | limits
        return withdraw if self.limits and not self._can_bid else {"anyOf": [bid, withdraw]}

    def read(self, value: Any) -> int:
        if value is None:
            return NO_BID
        plain = not isinstance(value, str) or re.fullmatch(r"[+-]?\d+", value.strip())
        number = read_integer(value) if plain else None
        if number is None:
            raise BadReply("format", f"{_show(value)} is not a whole number or null")
        if number > self.budget:
            why = f"a bid of {number} is more than your budget of {self.budget}"
            raise BadReply("range", why, within_int64(number), "over_budget")
        if 0 <= number < self.floor:
            least = "the start price" if self.opening else "the lowest bid allowed now"
            detail = "below_start" if self.opening else "below_increment"
            raise BadReply("range", f"{number} is below {least}, {self.floor}", number, detail)
        return max(number, -1)

    @property
    def _can_bid(self) -> bool:
        return self.floor <= self.budget

    def sample(self, noise: Noise) -> int:
        none = self.floor - 1
        choice = int(noise.integers(none, max(self.budget, none), endpoint=True))
        return choice if choice > none else -1

    def samples(self, noise: Noise, limits: Limits) -> Any:
        floor, budget = limits.amounts
        choice = noise.integers(floor - 1, np.maximum(budget, floor - 1), endpoint=True)
        return np.where(choice >= floor, choice, -1)

    def value_of(self, action: Any) -> int | None:
        return int(action) if action >= 0 else None

    mentioned = Question._amounts

    def opposite(self, action: Any) -> Any:
        return NO_BID if action is None else None

    def wanted(self) -> str:
        if not self.limits:
            return "a whole number, or null"
        span = f"a whole number from {self.floor} to {self.budget}, or null"
        return span if self._can_bid else "null"

    def _value_form(self) -> str:
        return super()._value_form() if self._can_bid or not self.limits else "null"

    def legal(self) -> dict[str, Any]:
        return self.schema() if self.limits else replace(self, limits=True).schema()


@dataclass(frozen=True)
class Real(Question):
    """A decimal number; the action is the number in units of ``10**-decimals``, half-even."""

    low: int
    high: int
    decimals: int
    units: tuple[str, ...] = field(default=MONEY, kw_only=True, repr=False)

    def value_schema(self) -> dict[str, Any]:
        unit = 10**self.decimals
        limits = {"minimum": self.low * self.scale / unit, "maximum": self.high * self.scale / unit}
        return {"type": "number", "multipleOf": 10**-self.decimals, **limits}

    def _units(self, value: Any) -> Decimal:
        number = read_number(value)
        if number is None:
            raise BadReply("format", f"{_show(value)} is not {self.wanted()}")
        number = _EXACTLY.divide(number, Decimal(self.scale)) if self.scale > 1 else number
        return number.scaleb(self.decimals, _EXACTLY)

    def read(self, value: Any) -> int:
        exact = self._units(value)
        units = int(exact.to_integral_value(ROUND_HALF_EVEN))
        if self.low <= exact <= self.high:
            return units
        # One that is out of range by less than a unit is not to be rounded into it.
        units = min(units, self.low - 1) if exact < self.low else max(units, self.high + 1)
        raise BadReply("range", f"{_show(value)} is not {self.wanted()}", within_int64(units))

    def sample(self, noise: Noise) -> int:
        return int(noise.integers(self.low, self.high, endpoint=True))

    def samples(self, noise: Noise, limits: Limits) -> Any:
        return noise.integers(limits.low, limits.high, endpoint=True)

    def value_of(self, action: Any) -> Any:
        spoken = int(action) * self.scale
        whole, rest = divmod(spoken, 10**self.decimals)
        return whole if rest == 0 else spoken / 10**self.decimals

    mentioned = Question._amounts

    def spoken(self, action: Any) -> str:
        if self.value_of(action) is None:
            return super().spoken(action)
        exact = Decimal(int(action) * self.scale).scaleb(-self.decimals)
        return f"{exact:f}".rstrip("0").rstrip(".") if self.decimals else str(exact)

    def wanted(self) -> str:
        return f"a number from {self.value_of(self.low)} to {self.value_of(self.high)}"

    def reply(self, action: Any) -> str:
        if not isinstance(self.value_of(action), float):
            return super().reply(action)
        exact = Decimal(int(action) * self.scale).scaleb(-self.decimals).normalize()
        return f'{{"{self.key}": {exact:f}}}'  # as `json.dumps`, but never with an exponent


@dataclass(frozen=True)
class SealedBid(Real):
    """A price in ``low..high``, rounded down, or null (action `NO_BID`), which means `decline`."""

    decline: str = "for no bid"
    also: tuple[tuple[str, Any], ...] = field(default=_NOTHING, kw_only=True, repr=False)

    def value_schema(self) -> dict[str, Any]:
        low, high = (super(SealedBid, self).value_of(end) for end in (self.low, self.high))
        kind = "number" if self.decimals else "integer"
        step = {"multipleOf": 10**-self.decimals} if self.decimals else {}
        price = {"type": kind, **step, "minimum": low, "maximum": high}
        return {"anyOf": [price, {"type": "null"}]}

    def read(self, value: Any) -> int:
        if value is None:
            return NO_BID
        exact = self._units(value)
        units = within_int64(int(exact.to_integral_value(ROUND_FLOOR)))
        if not self.low <= units <= self.high:
            why = f"{_show(value)} is not {self.wanted()}"
            raise BadReply("range", why, MISSING if exact < 0 else units)
        return units

    def opposite(self, action: Any) -> Any:
        return NO_BID if action is None else None

    def sample(self, noise: Noise) -> int:
        units = int(noise.integers(self.low - 1, self.high, endpoint=True))
        return NO_BID if units < self.low else units

    def samples(self, noise: Noise, limits: Limits) -> Any:
        units = noise.integers(self.low - 1, limits.high, endpoint=True)
        return np.where(units < self.low, NO_BID, units)

    def value_of(self, action: Any) -> Any:
        return None if action == NO_BID else super().value_of(action)

    def wanted(self) -> str:
        kind = "a number" if self.decimals else "a whole number"
        low, high = (super(SealedBid, self).value_of(end) for end in (self.low, self.high))
        return f"{kind} from {low} to {high}, or null {self.decline}"


@dataclass(frozen=True)
class Choice(Question):
    """One of some words, as they are offered, each with its action.

    Papers' leniencies: `other` is what any other word counts as; `contains` looks for the words
    anywhere in the text, one after another.
    """

    words: Mapping[str, int]
    other: int | None = None
    contains: bool = False

    @cached_property
    def _lowered(self) -> Mapping[str, int]:
        return {word.lower(): action for word, action in self.words.items()}

    def value_schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}

    def read(self, value: Any) -> int:
        if isinstance(value, str):
            if self.other is not None:  # the lenient reading lowers the case but keeps blanks
                return self.words.get(value.lower(), self.other)
            if self.contains:
                for word, action in self.words.items():
                    if word in value or word.capitalize() in value:
                        return action
            elif value.strip().lower() in self._lowered:
                return self._lowered[value.strip().lower()]
        raise BadReply("format", f"{_show(value)} is not {self.wanted()}")

    def sample(self, noise: Noise) -> int:
        return sorted(self.words.values())[int(noise.integers(len(self.words)))]

    def samples(self, noise: Noise, limits: Limits) -> Any:
        return looked_up(np.array(sorted(self.words.values())), noise.integers(len(self.words)))

    def value_of(self, action: Any) -> str:
        return next(word for word, a in self.words.items() if a == action)

    def mentioned(self, sentence: str) -> Iterable[Any]:
        return (a for word, a in self.words.items() if promises.holds(sentence, word))

    def opposite(self, action: Any) -> Any:
        others = [other for other in self.words.values() if other != action]
        return others[0] if action is not None and len(others) == 1 else None

    def wanted(self) -> str:
        return " or ".join(f'"{word}"' for word in self.words)


@dataclass(frozen=True)
class Target(Question):
    """One of the other players by name, or null for nobody. Actions are seat numbers, null is -1.

    `names` are the legal targets; `own` is the asked seat, unless it is legal; `others` are out;
    `nowhere` is the action of aiming at nobody in the game. A `lenient` question allows these as
    well; a `substring` one searches the answer in the names of the living, in seat order.
    `with_action` asks for a second key, ``"action"``, too; only the target counts.
    """

    names: Mapping[str, int]
    own: Mapping[str, int]
    others: Mapping[str, int]
    nowhere: int
    lenient: bool = False
    substring: bool = False
    with_action: bool = False

    def value_schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "enum": [*self.names]}, {"type": "null"}]}

    def mended(self, value: Any) -> tuple[Any, set[str]]:
        if isinstance(value, str):
            name = value.strip().casefold().replace(" ", "_")
            if name != value.strip() and name in {**self.names, **self.own, **self.others}:
                return name, {"word"}
        return super().mended(value)

    def schema(self, reasoning: bool = False) -> dict[str, Any]:
        schema = super().schema(reasoning)
        if self.with_action:
            target = schema["properties"].pop(self.key)
            action = {"type": "string", "enum": ["shoot", "miss"]}
            schema = object_of(schema["properties"] | {"action": action, self.key: target})
        return schema

    def answer(self, whole: Mapping[str, Any]) -> int:
        target = whole[self.key]
        wanted = "miss" if _is_null(target) else "shoot"
        action = whole.get("action", wanted) if not self.with_action else wanted
        if not isinstance(action, str) or action.strip().lower() != wanted:
            raise BadReply("format", f'"action": {_show(action)} does not agree with the target')
        return self.read(target)

    def read(self, value: Any) -> int:
        if _is_null(value):
            return -1
        number = read_integer(value)
        text = value.strip() if isinstance(value, str) else None if number is None else str(number)
        if text is None:
            raise BadReply("format", f"{_show(value)} is not {self.wanted()}")
        named = f"player_{text if number is None else number}"
        living = {**self.names, **self.own}
        seat = living.get(text, living.get(named))
        if self.substring:
            order = sorted(living, key=living.__getitem__)
            seat = next((living[name] for name in order if text and text in name), None)
        if seat in self.own.values():
            raise BadReply("range", f"{_show(value)} is yourself, not {self.wanted()}", seat)
        if seat is not None:
            return seat
        aimed = self.others.get(text, self.others.get(named, self.nowhere))
        if self.lenient:
            return aimed
        if re.fullmatch(r"(player_)?[+-]?\d{1,30}", text):
            raise BadReply("range", f"{_show(value)} is not {self.wanted()}", aimed)
        raise BadReply("format", f"{_show(value)} is not {self.wanted()}")

    def sample(self, noise: Noise) -> int:
        return [-1, *self.names.values()][int(noise.integers(len(self.names) + 1))]

    def samples(self, noise: Noise, limits: Limits) -> Any:
        if self.lenient:  # legal is more than what it names
            return None
        legal: Any = limits.mask
        rank = noise.integers(legal.sum(axis=-1))  # nobody comes first
        return (legal.cumsum(axis=-1) <= rank[..., None]).sum(axis=-1) - 1

    def value_of(self, action: Any) -> str | None:
        everybody = {**self.names, **self.own, **self.others}
        names = {seat: name for name, seat in everybody.items()} | {-1: None}
        return names.get(int(action), f"player_{action}")

    def mentioned(self, sentence: str) -> Iterable[Any]:
        seats_by_name = {name.replace("_", " "): seat for name, seat in self.names.items()}
        seats_by_name = {**self.names, **seats_by_name, "nobody": -1, "no one": -1}
        return (seat for name, seat in seats_by_name.items() if promises.holds(sentence, name))

    def spoken(self, action: Any) -> str:
        return self.value_of(action) or "nobody"

    def wanted(self) -> str:
        return f"null or one of {', '.join(map(json.dumps, self.names))}"

    def _value_form(self) -> str:
        return '<"name" of a target, or null>'

    def form(self, reasoning: bool = False) -> str:
        form = super().form(reasoning)
        action = '"action": <"shoot" or "miss">, '
        return form.replace(f'"{self.key}"', f'{action}"{self.key}"') if self.with_action else form

    def reply(self, action: Any) -> str:
        target = {self.key: self.value_of(action)}
        words = {"action": "miss" if action == -1 else "shoot"} if self.with_action else {}
        return json.dumps(words | target)

    def legal(self) -> dict[str, Any]:
        if not self.with_action:
            return self.schema()
        aims = ("miss", [None]), ("shoot", [*self.names])
        ways = [object_of({"action": {"enum": [a]}, self.key: {"enum": t}}) for a, t in aims if t]
        return {"anyOf": ways}


@dataclass(frozen=True)
class Shares(Question):
    """A share for each living pirate by rank, adding up to `total`. The action is by seat.

    `loose` checks only number and sum (a paper's leniency).
    """

    ranks: tuple[int, ...]
    total: int
    players: int
    loose: bool = False
    units: tuple[str, ...] = field(default=("coin", "coins"), kw_only=True, repr=False)

    def value_schema(self) -> dict[str, Any]:
        share = {"type": "integer", "minimum": 0, "maximum": self.total}
        return object_of({str(rank): share for rank in self.ranks})

    def read(self, value: Any) -> tuple[int, ...]:
        if not isinstance(value, Mapping):
            raise BadReply("format", f"{_show(value)} is not {self.wanted()}")
        shares = self._by_rank(value)
        plan = [0] * self.players
        for rank, share in zip(self.ranks, shares, strict=True):
            plan[rank - 1] = within_int64(share)
        if sum(shares) != self.total:
            why = f"the shares add up to {sum(shares)}, not to {self.total}"
            raise BadReply("range", why, tuple(plan))
        if min(shares) < 0 and not self.loose:
            raise BadReply("range", f"a share of {min(shares)} is negative", tuple(plan))
        return tuple(plan)

    def mended(self, value: Any) -> tuple[Any, set[str]]:
        """As in general, share by share; those of all ranks in order may come as a ``list``."""
        listed = isinstance(value, list) and len(value) == len(self.ranks)
        shares = dict(zip(map(str, self.ranks), value, strict=True)) if listed else value
        if not isinstance(shares, Mapping):
            return value, set()
        pairs = {rank: super(Shares, self).mended(share) for rank, share in shares.items()}
        names = set().union(*(names for _, names in pairs.values()), {"list"} if listed else ())
        return {rank: share for rank, (share, _) in pairs.items()}, names

    def _by_rank(self, value: Mapping[str, Any]) -> list[int]:
        by_rank: dict[int, int] = {}
        for index, (key, share) in enumerate(value.items()):
            match = re.fullmatch(r"\s*(\d{1,9})(-?th|st|nd|rd)?\s*", str(key), re.IGNORECASE)
            rank = index if self.loose else int(match[1]) if match else 0
            if not self.loose and (rank not in self.ranks or rank in by_rank):
                raise BadReply("format", f"{_show(key)} is not one of the ranks {self._span()}")
            number = read_integer(share)
            if number is None:
                raise BadReply("format", f"the share {_show(share)} is not a whole number")
            by_rank[rank] = number
        if len(by_rank) != len(self.ranks):
            raise BadReply("format", f"the plan must have one share for each rank {self._span()}")
        return list(by_rank.values()) if self.loose else [by_rank[rank] for rank in self.ranks]

    def sample(self, noise: Noise) -> tuple[int, ...]:
        cuts = len(self.ranks) - 1
        bars = np.sort(noise.sample(self.total + cuts, cuts))
        plan = np.zeros(self.players, np.int64)
        plan[np.asarray(self.ranks) - 1] = np.diff(bars, prepend=-1, append=self.total + cuts) - 1
        return tuple(plan.tolist())

    def value_of(self, action: Any) -> dict[str, int]:
        return {str(rank): int(action[rank - 1]) for rank in self.ranks}

    def mentioned(self, sentence: str) -> Iterable[Any]:
        shares = list(promises.numbers(sentence))
        with suppress(BadReply):
            yield self.read(self.mended(shares)[0])

    def spoken(self, action: Any) -> str:
        return ", ".join(map(str, self.value_of(action).values()))

    def _span(self) -> str:
        return f"{self.ranks[0]} to {self.ranks[-1]}"

    def _value_form(self) -> str:
        shares = ", ".join(f'"{rank}": <coins>' for rank in self.ranks)
        return f"{{{shares}}}"

    def wanted(self) -> str:
        return f"whole shares for the ranks {self._span()} that add up to {self.total}"

    @cached_property
    def allows(self) -> Callable[[str], bool]:
        """As in general; no schema says that shares add up, so those already written narrow it."""

        @cache
        def continues(written: tuple[int, ...]) -> Callable[[str], bool]:
            remaining, keys = self.total - sum(written), self.value_schema()["required"]
            free: list[dict[str, Any]] = [{"type": "integer", "minimum": 0, "maximum": remaining}]
            free = free * (len(keys) - len(written) - 1) + [{"enum": [remaining]}]
            shares = [*({"enum": [share]} for share in written), *free]
            schema = self.schema()
            schema["properties"][self.key]["properties"] = dict(zip(keys, shares, strict=False))
            return beginnings(schema)

        def allows(text: str) -> bool:
            written = tuple(map(int, re.findall(r": ([0-9]{1,18})(?=,)", text)))
            return sum(written) <= self.total and continues(written)(text)

        return allows


@dataclass(frozen=True)
class Speech(Question):
    """What a seat says to others; the action is a text, "" is silence.

    Cut after `most_words` words, which white space parts, and after `LONGEST_SPEECH` characters.
    Its remark is ``too_long``, ``silent``, or "".
    """

    key: str = "speech"
    most_words: int | None = None
    bare: ClassVar[bool] = False

    def value_schema(self) -> dict[str, Any]:
        return {"type": "string"}

    def read(self, value: Any) -> str:
        return self._cut(value)[0]

    def remark(self, whole: Mapping[str, Any]) -> str:
        text, is_cut = self._cut(whole.get(self.key))
        return "too_long" if is_cut else "" if text else "silent"

    def _cut(self, value: Any) -> tuple[str, bool]:
        if not isinstance(value, str | None):
            raise BadReply("format", f"{_show(value)} is no text")
        # Lone surrogates, which no file and no server takes, are replaced.
        whole = (value or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()
        text = whole[:LONGEST_SPEECH].rstrip()
        if self.most_words is not None:
            ends = [word.end() for word in islice(re.finditer(r"\S+", text), self.most_words)]
            text = text[: ends[-1]] if ends else ""
        return text, text != whole

    def sample(self, noise: Noise) -> str:
        return ""

    def wanted(self) -> str:
        limit = "" if self.most_words is None else f" of at most {self.most_words} words"
        return f'a text{limit}, or "" to say nothing'

    def _value_form(self) -> str:
        return '"<what you say>"'


def read_integer(value: Any, truncate: bool = False) -> int | None:
    """Read a whole number from JSON or a text of just one, else None.

    `truncate` cuts fractions towards zero and lets true be 1.
    """
    if isinstance(value, bool):
        return int(value) if truncate else None
    if isinstance(value, int):
        return value
    number = read_number(value)
    whole = number is not None and (truncate or number == number.to_integral_value())
    return int(number) if whole else None  # type: ignore[arg-type]


def read_number(value: Any) -> Decimal | None:
    """Read a finite number (at most 10**400) from JSON or a text of just one, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, str, Decimal)):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return None
    number = Decimal(value.strip() if isinstance(value, str) else value)
    if not number.is_finite():
        return None
    beyond = Decimal(10).scaleb(_LONGEST).copy_sign(number)
    return beyond if number.adjusted() > _LONGEST else number


def within_int64(number: int) -> int:
    """Clip a number to `BEYOND`, which fits into arrays, keeping its sign."""
    return max(-BEYOND, min(BEYOND, number))


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() == "null")


def _show(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=True)
    return text if len(text) <= 60 else text[:57] + "..."
