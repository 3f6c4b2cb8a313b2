"""Divisions of some items as one number, the law of what is to be divided, and the question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from llm_games import promises
from llm_games.arrays import Array, arrayed, looked_up, tall
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.questions import MISSING, BadReply, Question, read_integer
from llm_games.schemas import object_of

BASE = 5  # one more than the most pieces of a kind
FEWEST, MOST, WORTH = 5, 7, 10  # items in all, and what all are worth to each


def kinds_of(name: str, value: Any) -> tuple[str, ...]:
    """Read 2 to 4 different words."""
    words = value if isinstance(value, tuple) else ()
    plain = all(isinstance(word, str) and word.isidentifier() for word in words)
    if not (2 <= len(set(words)) == len(words) <= 4 and plain):
        raise BadParameter(f"{name} must be 2 to 4 different words, got {value!r}")
    return words


def code_of(taken: Any) -> Array:
    """Return divisions, kinds first ``(kinds, ...)``, as numbers; the first kind counts most."""
    taken = arrayed(taken)
    return (tall(BASE ** np.arange(len(taken))[::-1], taken.shape[1:]) * taken).sum(axis=0)


def taken_of(codes: Any, kinds: int) -> Array:
    """Return what is taken, ``(kinds, ...)``; the inverse of `code_of`."""
    return looked_up(digits(kinds), arrayed(codes), 1)


@lru_cache(maxsize=4)
def digits(kinds: int) -> Array:
    """Return what every number takes, int64 ``(kinds, numbers)``."""
    return np.indices((BASE,) * kinds).reshape(kinds, -1)


@lru_cache(maxsize=4)
def law(kinds: int) -> Array:
    """Return all scenarios, int64 ``(scenarios, 3, kinds)``: counts, and the values of both seats.

    All are equally likely: 5 to 7 items, 1 to 4 of a kind, worth 10 to each seat; no kind is
    worthless to both, and one is worth something to both.
    """
    scenarios = []
    for counts in product(range(1, BASE), repeat=kinds):
        if FEWEST <= sum(counts) <= MOST:
            rows = np.array(list(product(*(range(WORTH // count + 1) for count in counts))))
            rows = rows[rows @ counts == WORTH]
            wanted = rows > 0
            fits = (wanted[:, None] | wanted).all(-1) & (wanted[:, None] & wanted).any(-1)
            scenarios += [(counts, rows[k], rows[m]) for k, m in np.argwhere(fits)]
    table = np.array(scenarios, np.int64)
    table.flags.writeable = False
    return table


class Scenarios:
    """Tables of all scenarios, in which many are looked up at once.

    `by_kind` has scenarios last, ``(3, kinds, scenarios)``; `everything` is all items as a number.
    `ladder` has what is legal in rows: nothing, and by that number without and with an offer.
    """

    def __init__(self, table: Array) -> None:
        kinds = table.shape[-1]
        taken = taken_of(np.arange(BASE**kinds), kinds)
        rows, row = np.unique(table[:, 1:].reshape(-1, kinds), axis=0, return_inverse=True)
        self.by_kind = np.ascontiguousarray(table.transpose(1, 2, 0))
        self.everything = code_of(self.by_kind[0])
        fits = (taken[:, None] <= taken[..., None]).all(axis=0)
        self.ladder = np.pad(fits.repeat(2, axis=0), ((1, 0), (0, 1)))
        self.ladder[2::2, -1] = True
        self.illegal = ~np.pad(self.ladder, ((0, 0), (1, 1))).ravel()  # also actions out of bounds
        # How many actions a row has, one of none as well, and which, one row after the other.
        counts = self.ladder.sum(axis=1).clip(1)
        self.choices = counts, np.argsort(~self.ladder, kind="stable").ravel()
        self._worth, self._seats = (rows @ taken).ravel(), row.reshape(-1, 2).T * BASE**kinds

    def worth(self, scenario: Array, codes: Array) -> Array:
        """Return what divisions are worth to the seat that gets them, ``(players, ...)``."""
        return looked_up(self._worth, looked_up(self._seats, scenario, 1) + codes)


@dataclass(frozen=True)
class Takes(Question):
    """How many pieces of each kind one takes, by name; or the word ``accept``, where it `may`.

    Kinds that are not named count 0. The action is a `code_of`, to accept `BASE` to the number of
    kinds.
    """

    counts: Mapping[str, int]
    may: bool = False

    @property
    def accept(self) -> int:
        return BASE ** len(self.counts)

    def value_schema(self) -> dict[str, Any]:
        kinds = self.counts.items()
        pieces = object_of({n: {"type": "integer", "minimum": 0, "maximum": c} for n, c in kinds})
        return {"anyOf": [pieces, {"enum": ["accept"]}]} if self.may else pieces

    def read(self, value: Any) -> int:
        if isinstance(value, str) and value.strip().casefold() == "accept":
            if self.may:
                return self.accept
            raise BadReply("range", "there is no offer to accept", self.accept)
        if not isinstance(value, Mapping):
            raise BadReply("format", f"{str(value)[:60]!r} is not {self.wanted()}")
        taken = dict.fromkeys(self.counts, 0)
        for name, pieces in value.items():
            number = read_integer(pieces)
            if name not in taken or number is None:
                raise BadReply("format", f"{str(name)[:60]!r}: not {self.wanted()}")
            taken[name] = number
        readable = all(0 <= number < BASE for number in taken.values())
        action = int(code_of([*taken.values()])) if readable else MISSING
        for name, number in taken.items():
            if not 0 <= number <= self.counts[name]:
                raise BadReply("range", f"{number} of {name} is not {self.wanted()}", action)
        return action

    def sample(self, noise: Noise) -> int:
        each = product(*(range(count + 1) for count in self.counts.values()))
        codes = [*(int(code_of(taken)) for taken in each), *[self.accept] * self.may]
        return codes[int(noise.integers(len(codes)))]

    def samples(self, noise: Noise, limits: Any) -> Any:
        return pick_legal(limits, noise)

    def value_of(self, action: Any) -> Any:
        if action == self.accept:
            return "accept"
        return dict(zip(self.counts, taken_of(action, len(self.counts)).tolist(), strict=True))

    def spoken(self, action: Any) -> str:
        value = self.value_of(action)
        return value if isinstance(value, str) else " + ".join(f"{n} {k}" for k, n in value.items())

    def mentioned(self, sentence: str) -> Iterable[Any]:
        """Read what names all kinds; a part of them says nothing of the others."""
        if self.may and promises.holds(sentence, "accept"):
            yield self.accept
        each = [re.findall(rf"\b([0-4]) {re.escape(kind)}s?\b", sentence) for kind in self.counts]
        if all(len(pieces) == 1 for pieces in each):
            with suppress(BadReply):
                yield self.read(dict(zip(self.counts, (p for [p] in each), strict=True)))

    def wanted(self) -> str:
        pieces = ", ".join(f"{name} 0 to {count}" for name, count in self.counts.items())
        return f"a whole number of each kind ({pieces})" + ' or "accept"' * self.may

    def _value_form(self) -> str:
        kinds = ", ".join(f'"{name}": <0 to {count}>' for name, count in self.counts.items())
        return f"{{{kinds}}}" + ' or "accept"' * self.may


def pick_legal(view: Any, noise: Noise) -> Array:
    """Draw an action that is legal for the seats of a view, all equally likely."""
    game, state = view.core.game, view.core.sight.state
    choices, rung = game.scenarios.choices, game.rungs(state)[view.rows]
    rank = noise.integers(looked_up(choices[0], rung))
    return looked_up(choices[1], rung * game.ladder.shape[1] + rank)
