"""What a planning bidder is asked beside its bids: priorities of items, and what it believes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

from llm_games.asides import LONGEST_TEXT
from llm_games.noise import Noise
from llm_games.questions import MISSING, BadReply, Question, read_integer
from llm_games.schemas import object_of


@dataclass(frozen=True)
class Priorities(Question):
    """How much each of some items matters, from 1 (least) to 3.

    The items alone, ``{"Widget A": 3, ...}``, are read as well. A reply that cannot be used has
    the readable priorities as its action.
    """

    items: tuple[str, ...]
    low: int = 1
    high: int = 3

    def value_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": self.low, "maximum": self.high}
        return object_of(dict.fromkeys(self.items, number))

    def holds(self, whole: Mapping[str, Any]) -> bool:
        return self.key in whole or any(item in whole for item in self.items)

    def answer(self, whole: Mapping[str, Any]) -> Any:
        beside = {k: v for k, v in whole.items() if k not in ("explanation", "reasoning")}
        return self.read(whole.get(self.key, beside))

    def read(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise BadReply("format", f'"{self.key}" is no object of items and numbers')
        found: dict[str, int] = {}
        for item in self.items:
            number = read_integer(value.get(item))
            if number is not None and self.low <= number <= self.high:
                found[item] = number
        unknown = [name for name in value if name not in self.items]
        wrong = [name for name in self.items if name in value and name not in found]
        missing = [name for name in self.items if name not in value]
        for names, what in (
            (unknown, "is no item that is left"),
            (wrong, f"has no priority from {self.low} to {self.high}"),
            (missing, "has no priority"),
        ):
            if names:
                kind = "format" if what == "has no priority" else "range"
                raise BadReply(
                    kind, f"{', '.join(map(json.dumps, names))} {what}", found or MISSING
                )
        return found

    def sample(self, noise: Noise) -> Any:
        drawn = noise.integers(self.low, self.high + 1, len(self.items))
        return dict(zip(self.items, drawn.tolist(), strict=True))

    def _value_form(self) -> str:
        number = f"<{self.low} to {self.high}>"
        return f"{{{', '.join(f'{json.dumps(item)}: {number}' for item in self.items)}}}"

    def wanted(self) -> str:
        return f"a number from {self.low} to {self.high} for every item"


Belief = dict[str, Any]
"""``remaining_budget``, ``total_profits`` by bidder, ``winning_bids`` by bidder and item."""


class Compared(NamedTuple):
    """A field of a belief beside the truth: whose (``self`` or ``others``), and what it is."""

    group: str
    field: str
    right: bool
    truth: str


@dataclass(frozen=True)
class Beliefs(Question):
    """What a bidder takes for its money left, everybody's profit, and who won what at which price.

    Source: AucArena (arXiv 2310.05746), A.2. A reply in which a field is wrong is out of range,
    has the belief as its action, and `why` tells the truth; if `correct` is false it is legal.

    Attributes:
        me: the bidder who is asked.
        truth: what a belief is compared with; a profit that nobody can know is None.
        items: those that were sold so far.
        correct: wrong fields are sent back.
        substring: a bidder's name also matches longer names that hold it.
    """

    me: str
    truth: Mapping[str, Any]
    items: tuple[str, ...]
    correct: bool = True
    substring: bool = False

    KEYS: ClassVar = ("remaining_budget", "total_profits", "winning_bids")

    def value_schema(self) -> dict[str, Any]:
        return {"type": "integer"}

    def schema(self, reasoning: bool = False) -> dict[str, Any]:
        number = {"type": "integer"}
        bidders = list(self.truth["total_profits"])
        won = object_of(dict.fromkeys(self.items, number), ())
        parts = {
            "summary": {"type": "string"},
            "remaining_budget": number,
            "total_profits": object_of(dict.fromkeys(bidders, number), ()),
            "winning_bids": object_of(dict.fromkeys(bidders, won), ()),
        }
        return object_of({"explanation": {"type": "string"}} | parts if reasoning else parts)

    def holds(self, whole: Mapping[str, Any]) -> bool:
        return any(key in whole for key in self.KEYS)

    def answer(self, whole: Mapping[str, Any]) -> Belief:
        belief = self.read(whole)
        wrong = [check for check in self.checks(belief) if not check.right]
        if wrong and self.correct:
            told = "; ".join(f"{check.field} is {check.truth}" for check in wrong)
            raise BadReply("range", f"it does not agree with the facts: {told}", belief)
        return belief

    def read(self, value: Any) -> Any:
        for key in self.KEYS:
            if key not in value:
                raise BadReply("format", f'it lacks the key "{key}"')
        profits, bids = value["total_profits"], value["winning_bids"]
        if not isinstance(profits, Mapping) or not isinstance(bids, Mapping):
            raise BadReply("format", '"total_profits" and "winning_bids" must be objects')
        if not all(isinstance(won, Mapping) for won in bids.values()):
            raise BadReply("format", '"winning_bids" must have an object for each bidder')
        summary = value.get("summary", "")
        return {
            "summary": summary[:LONGEST_TEXT] if isinstance(summary, str) else "",
            "remaining_budget": _number(value["remaining_budget"]),
            "total_profits": {name: _number(profit) for name, profit in profits.items()},
            "winning_bids": {
                name: {item: _number(price) for item, price in won.items()}
                for name, won in bids.items()
            },
        }

    def checks(self, belief: Belief) -> list[Compared]:
        """Return all fields that are compared: those that the belief mentions."""
        truth = self.truth
        budget = truth["remaining_budget"]
        right = belief["remaining_budget"] == budget
        return [
            Compared("self", '"remaining_budget"', right, str(budget)),
            *self._compared(belief, "total_profits", lambda told: told),
            *self._compared(belief, "winning_bids", set),
        ]

    def _compared(self, belief: Belief, key: str, part: Any) -> Iterator[Compared]:
        for bidder, fact in self.truth[key].items():
            said = next((name for name in belief[key] if self._means(name, bidder)), None)
            if said is not None and fact is not None:
                group = "self" if bidder == self.me else "others"
                right = part(belief[key][said]) == part(fact)
                yield Compared(group, f'"{key}" of {bidder}', right, json.dumps(fact))

    def _means(self, name: str, bidder: str) -> bool:
        return name == bidder or (self.substring and bidder in name)

    def sample(self, noise: Noise) -> Belief:
        profits = {name: n for name, n in self.truth["total_profits"].items() if n is not None}
        return {"summary": "", **self.truth, "total_profits": profits}

    def reply(self, action: Any) -> str:
        keys = ("summary", *self.KEYS)
        return json.dumps({key: action[key] for key in keys})

    def form(self, reasoning: bool = False) -> str:
        explanation = '"explanation": <your reasoning>, ' if reasoning else ""
        return (
            f'{{{explanation}"summary": <a sentence>, "remaining_budget": <your money left>, '
            '"total_profits": {<bidder>: <profit>, ...}, '
            '"winning_bids": {<bidder>: {<item>: <price>, ...}, ...}}'
        )

    def wanted(self) -> str:
        return "an object with remaining_budget, total_profits and winning_bids"


def _number(value: Any) -> int | float:
    """Return a JSON number; texts and true or false are none."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise BadReply("format", f"{json.dumps(value, default=str)[:60]} is not a number")
    if isinstance(value, Decimal) and not value.is_finite():
        raise BadReply("format", f"{value} is not a number")
    return int(value) if value == int(value) else float(value)
