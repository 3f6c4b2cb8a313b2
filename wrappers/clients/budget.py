"""A ledger of what calls cost, by model and seat, and a budget that no call may exceed."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from llm_games.errors import BadParameter, LLMGamesError, unknown
from llm_games.facts import check_integer, check_number
from llm_games.view import Who
from llm_games.wrappers.clients.prices import Price
from llm_games.wrappers.clients.tokens import Lengths

WOKEN = 16  # calls that look again when another is over; all, if none is in flight


class BudgetExceeded(LLMGamesError):
    """The next call might pass the `limit` (such as ``calls_per_seat``). It was not made."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit

    def __reduce__(self) -> tuple[Any, ...]:
        return BudgetExceeded, (self.limit, str(self))


@dataclass(frozen=True)
class Budget:
    """The most to spend, in the prices' currency, in all and by seat; None: no limit."""

    calls: int | None = None
    tokens: int | None = None
    money: Decimal | None = None
    calls_per_seat: int | None = None
    tokens_per_seat: int | None = None
    money_per_seat: Decimal | None = None

    def limits(self, seat: bool) -> dict[str, Any]:
        return {
            name.removesuffix("_per_seat"): value
            for name, value in vars(self).items()
            if value is not None and name.endswith("_per_seat") == seat
        }


def budget_of(asked: Budget | Mapping[str, Any]) -> Budget:
    """Return a budget from its limits by name; BadParameter or UnknownName say what is none."""
    if isinstance(asked, Budget):
        return asked
    if not isinstance(asked, Mapping):
        raise BadParameter(f"a budget has limits by name, such as {{'calls': 1000}}: got {asked!r}")
    limit_names, limits = vars(Budget()), dict[str, Any]()
    for name, value in asked.items():
        if name not in limit_names:
            raise unknown("limit of a budget", name, limit_names)
        (check_number if name.startswith("money") else check_integer)(f"budget of {name}", value, 0)
        limits[name] = Decimal(str(value)) if name.startswith("money") else int(value)
    return Budget(**limits)


@dataclass
class Usage:
    """What was spent. `calls` includes failed ones; `seconds` adds up the answers' latency.

    Tokens cached or written into the server's cache are among `tokens_in`, thoughts among
    `tokens_out`. `unknown` failed calls may be paid for: their most possible cost counts apart.
    """

    calls: int = 0
    failures: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    money: Decimal = Decimal(0)
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    tokens_written: int = 0
    unknown: int = 0
    unknown_in: int = 0
    unknown_out: int = 0
    unknown_money: Decimal = Decimal(0)

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def add(self, other: Usage, sign: int = 1) -> None:
        for name, value in vars(other).items():
            if value:
                setattr(self, name, getattr(self, name) + sign * value)

    def plain(self) -> dict[str, int | float | str]:
        """Return it as plain values, money as an exact decimal in words."""
        return vars(self) | {n: str(getattr(self, n)) for n in ("money", "unknown_money")}

    def lost(self) -> Usage:
        """Return the usage of calls with unknown outcome that might have cost this."""
        may = self.calls, self.tokens_in, self.tokens_out, self.money
        return Usage(self.calls, self.calls, *EMPTY, *may)


EMPTY = (0, 0, 0.0, Decimal(0), 0, 0, 0)  # tokens, seconds and money of calls that brought nothing


def usage_of(plain: Mapping[str, Any]) -> Usage:
    """Return the usage of plain values, see `Usage.plain`."""
    money = {name: Decimal(value) for name, value in plain.items() if name.endswith("money")}
    return Usage(**{**plain, **money})


class Journal(Protocol):
    """A list of calls, each entered before it is sent, so that none is forgotten."""

    async def begin(self, model: str, seat: str, limit: Usage, line: str = "") -> int:
        """Enter a call that may cost so much, and return its number once that is safe.

        One with the name of a `line` goes out in a batch: who goes on with the run finds it again.
        """
        ...

    def over(self, number: int, model: str, seat: str) -> None:
        """Strike a call that is over, and is booked."""
        ...


def seat_of(who: Who) -> str:
    """Return the caller's game and seat: ``public_goods/player_0``; "" if unnamed."""
    return f"{who.run}/player_{who.seat}" if who.run else ""


class Ledger:
    """The books of a run: what was answered for is spent, and no call goes out that is too dear.

    Before a call the most that it may cost is held until it is over. If it fits only when calls in
    flight turn out cheaper than they might, it waits for them. If it cannot fit, those in flight
    are waited for, and all who ask get `BudgetExceeded`. What was spent is kept by model, by seat
    (see `seat_of`, which a run may replace), and by `pairs` of both; `lengths` is of replies.
    """

    elsewhere = False  # whether others decide when a budget has ended

    def __init__(
        self, budget: Budget | None = None, prices: Mapping[str, Price] | None = None
    ) -> None:
        self.budget, self.prices = budget or Budget(), dict(prices or {})
        self.total, self.models = Usage(), defaultdict[str, Usage](Usage)
        self.seats, self.pairs = defaultdict[str, Usage](Usage), defaultdict[Any, Usage](Usage)
        self.lengths = defaultdict[str, Lengths](Lengths)
        self.journal: Journal | None = None
        self.seat_of: Callable[[Who], str] = seat_of
        self._held, self._held_of = Usage(), defaultdict[tuple[str, str], Usage](Usage)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._stop: tuple[str, str] | None = None
        self.allow(self.budget)

    def limited(self, *what: str) -> bool:
        """Test whether there is a budget of any of these, such as ``money``."""
        return any(name in limits for limits in self._limits for name in what)

    @property
    def ended(self) -> bool:
        """A call was not made since it might have passed the budget; no more are made."""
        return self._stop is not None

    def allow(self, budget: Budget) -> None:
        """Go on with another budget; what was spent counts."""
        self.budget, self._stop = budget, None
        self._limits = budget.limits(False), budget.limits(True)

    def book(self, model: str, seat: str, spent: Usage) -> None:
        for usage in (self.total, self.seats[seat], self.models[model], self.pairs[model, seat]):
            usage.add(spent)

    def in_flight(self, model: str) -> int:
        """Return the number of a model's calls for which something is held."""
        return self._held_of["model", model].calls

    def remaining(self, seat: str, what: str) -> list[Any]:
        """Return the remainder of each limit of a seat's calls, neither spent nor held."""
        return [
            limits[what] - getattr(spent, what) - getattr(held, what)
            for spent, held, limits, *_ in self._accounts(seat)
            if what in limits
        ]

    def bears(self, seat: str, largest_usage: Usage) -> bool:
        """Test whether the budget can bear a call beside those in flight, if any are."""
        return all(
            getattr(spent, what) + getattr(held, what) + getattr(largest_usage, what) <= limit
            for spent, held, limits, *_ in self._accounts(seat)
            for what, limit in limits.items()
            if held.calls
        )

    async def hold(self, model: str, seat: str, estimate: Callable[[], Usage | None]) -> Usage:
        """Wait until a call may be made; hold the most that it may cost, and return that.

        `estimate` tells it at each change, None if others in flight come first. `release` it when
        the call is over. Raises BudgetExceeded if it may be more than is left.
        """
        while True:
            needed = estimate()
            if await self.extended(seat, needed):
                continue
            if needed is not None and not self.elsewhere:
                self._stop = self._stop or next(self._excesses(seat, needed, False), None)
            if self._stop and not self._held.calls:
                raise BudgetExceeded(*self._stop)
            if needed and not self._stop and not any(self._excesses(seat, needed, True)):
                break
            change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(change)
            await change
        for held in (self._held, self._held_of["seat", seat], self._held_of["model", model]):
            held.add(needed)
        return needed

    async def extended(self, seat: str, needed: Usage | None) -> bool:
        """Test whether these books, a part of others, got more for a call that needs so much."""
        return False

    def release(self, model: str, seat: str, held_usage: Usage) -> None:
        for held in (self._held, self._held_of["seat", seat], self._held_of["model", model]):
            held.add(held_usage, -1)
        count = WOKEN if self._held.calls else len(self._waiting)
        for _ in range(min(count, len(self._waiting))):
            if not (change := self._waiting.popleft()).done():
                change.set_result(None)

    def _accounts(self, seat: str) -> Iterator[tuple[Usage, Usage, dict[str, Any], str, str]]:
        """Yield usage spent, held and allowed, in all and by a seat, and how limits are named."""
        yield self.total, self._held, self._limits[0], "", ""
        if self._limits[1]:
            held = self._held_of["seat", seat]
            yield self.seats[seat], held, self._limits[1], "_per_seat", f" of {seat}" * bool(seat)

    def _excesses(self, seat: str, largest_usage: Usage, held: bool) -> Iterator[tuple[str, str]]:
        """Say which limits a call might pass, on top of the usage (and holds) so far."""
        for account, held_usage, limits, suffix, whose in self._accounts(seat):
            for what, limit in limits.items():
                spent, needed = getattr(account, what), getattr(largest_usage, what)
                reserved = getattr(held_usage, what) if held else 0
                if spent + reserved + needed > limit:
                    name = f"{what}{suffix}"
                    fault = f"the budget{whose}, {name} = {limit}, has {spent} spent and the next "
                    yield name, f"{fault}call may take {needed}: raise {name} to go on"
