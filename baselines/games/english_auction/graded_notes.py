"""Questions to a planning bidder beside its bids: priorities of items, and its beliefs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

from llm_games.asides import LONGEST_TEXT
from llm_games.noise import Noise
from llm_games.questions import MISSING, BadReply, Question, read_integer
from llm_games.schemas import object_of


@dataclass(frozen=True)
class Priorities(Question):
    """How much each of some items matters, 1 (least) to 3; the items alone are read as well."""

    items: tuple[str, ...]

    def value_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": 1, "maximum": 3}
        return object_of(dict.fromkeys(self.items, number))

    def holds(self, whole: Mapping[str, Any]) -> bool:
        return self.key in whole or any(item in whole for item in self.items)

    def answer(self, whole: Mapping[str, Any]) -> Any:
        beside = {k: v for k, v in whole.items() if k not in ("explanation", "reasoning")}
        return self.read(whole.get(self.key, beside))

    def read(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise BadReply("format", f'"{self.key}" is no object of items and numbers')
        numbers = {item: read_integer(value.get(item)) for item in self.items}
        priorities = {item: n for item, n in numbers.items() if n in (1, 2, 3)}
        wrong = [name for name in numbers if name in value and name not in priorities]
        for kind, names, what in (
            ("range", [name for name in value if name not in numbers], "is no item that is left"),
            ("range", wrong, "has no priority from 1 to 3"),
            ("format", [name for name in numbers if name not in value], "has no priority"),
        ):
            if names:
                message = f"{', '.join(map(json.dumps, names))} {what}"
                raise BadReply(kind, message, priorities or MISSING)
        return priorities

    def sample(self, noise: Noise) -> Any:
        return dict(zip(self.items, noise.integers(1, 4, len(self.items)).tolist(), strict=True))

    def _value_form(self) -> str:
        return f"{{{', '.join(f'{json.dumps(item)}: <1 to 3>' for item in self.items)}}}"

    def wanted(self) -> str:
        return "a number from 1 to 3 for every item"


Belief = dict[str, Any]
"""``remaining_budget``, ``total_profits`` by bidder, ``winning_bids`` by bidder and item."""


class Compared(NamedTuple):
    """A field of a belief beside the truth: its owner (``self`` or ``others``), name and truth."""

    group: str
    field: str
    right: bool
    truth: str


@dataclass(frozen=True)
class BeliefAside(Question):
    """A bidder's belief on its remaining money, everybody's profit, and the buyers and prices.

    AucArena (arXiv 2310.05746), A.2. A reply with a wrong field is out of range (legal if not
    `correct`), and `why` tells the truth.
    """

    KEYS: ClassVar = ("remaining_budget", "total_profits", "winning_bids")

    me: str  # who is asked
    truth: Mapping[str, Any]  # a profit that nobody can know is None
    items: tuple[str, ...]  # sold so far
    correct: bool = True
    substring: bool = False  # a bidder's name also matches longer names that hold it

    def value_schema(self) -> dict[str, Any]:
        return {"type": "integer"}

    def schema(self, reasoning: bool = False) -> dict[str, Any]:
        number = {"type": "integer"}
        bidders = [*self.truth["total_profits"]]
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
            facts = "; ".join(f"{check.field} is {check.truth}" for check in wrong)
            raise BadReply("range", f"it does not agree with the facts: {facts}", belief)
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
        budget = self.truth["remaining_budget"]
        right = belief["remaining_budget"] == budget
        fields = [Compared("self", '"remaining_budget"', right, str(budget))]
        for key, compared in (("total_profits", lambda profit: profit), ("winning_bids", set)):
            for bidder, fact in self.truth[key].items():
                matches = (
                    n for n in belief[key] if n == bidder or (self.substring and bidder in n)
                )
                match = next(matches, None)
                if match is not None and fact is not None:
                    group = "self" if bidder == self.me else "others"
                    right = compared(belief[key][match]) == compared(fact)
                    fields.append(Compared(group, f'"{key}" of {bidder}', right, json.dumps(fact)))
        return fields

    def sample(self, noise: Noise) -> Belief:
        profits = {name: n for name, n in self.truth["total_profits"].items() if n is not None}
        return {"summary": "", **self.truth, "total_profits": profits}

    def reply(self, action: Any) -> str:
        return json.dumps({key: action[key] for key in ("summary", *self.KEYS)})

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
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise BadReply("format", f"{json.dumps(value, default=str)[:60]} is not a number")
    if isinstance(value, Decimal) and not value.is_finite():
        raise BadReply("format", f"{value} is not a number")
    return int(value) if value == int(value) else float(value)
