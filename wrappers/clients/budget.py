"""Accounting and budget: what calls cost, by model and seat, and an end before it is too much."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from llm_games.errors import BadParameter, LLMGamesError
from llm_games.wrappers.clients.base import Client, ClientError, Completion, Layer, Request
from llm_games.wrappers.clients.tokens import Estimator, tokens_of


class BudgetExceeded(LLMGamesError):
    """The next call might pass the `limit` (such as ``calls_per_seat``). It was not made."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit


@dataclass(frozen=True)
class Price:
    """What a model costs, for each million tokens of prompts and of replies."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)

    def of(self, tokens_in: int, tokens_out: int) -> Decimal:
        """Return what so many tokens cost, exactly."""
        return (tokens_in * self.input + tokens_out * self.output) / 1_000_000


@dataclass(frozen=True)
class Budget:
    """The most to spend, in all and by each seat over all its episodes; None: no limit.

    Money is in the currency of the prices.
    """

    calls: int | None = None
    tokens: int | None = None
    money: Decimal | None = None
    calls_per_seat: int | None = None
    tokens_per_seat: int | None = None
    money_per_seat: Decimal | None = None

    def limits(self, seat: bool) -> dict[str, Any]:
        """Return the limits that are set, of a seat or of all, by what they limit."""
        return {
            name.removesuffix("_per_seat"): value
            for name, value in vars(self).items()
            if value is not None and name.endswith("_per_seat") == seat
        }


@dataclass
class Usage:
    """What was spent. `calls` has those that failed; `seconds` adds up the answers' latency."""

    calls: int = 0
    failures: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    money: Decimal = Decimal(0)

    @property
    def tokens(self) -> int:
        """Return the tokens of prompts and replies together."""
        return self.tokens_in + self.tokens_out

    def add(self, other: Usage, sign: int = 1) -> None:
        """Add what else was spent."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + sign * value)

    def plain(self) -> dict[str, int | float | str]:
        """Return it as plain values, money as an exact decimal in words."""
        return vars(self) | {"money": str(self.money)}


class Ledger:
    """The books of a run: every call is booked, and none is made that the budget cannot bear.

    Before a call its upper estimate is held back. If it fits only when calls in flight turn out
    cheaper than they might, it waits for them. If it cannot fit, no further call is made, those
    in flight are waited for, and all who ask get `BudgetExceeded`. What was spent is kept by model,
    by seat (``public_goods/player_0``), and by `pairs` of both.
    """

    def __init__(
        self, budget: Budget | None = None, prices: Mapping[str, Price] | None = None
    ) -> None:
        self.budget, self.prices = budget or Budget(), dict(prices or {})
        self.total, self.models = Usage(), defaultdict[str, Usage](Usage)
        self.seats, self.pairs = defaultdict[str, Usage](Usage), defaultdict[Any, Usage](Usage)
        self._held, self._held_by = Usage(), defaultdict[str, Usage](Usage)
        self._limits = self.budget.limits(False), self.budget.limits(True)
        self._waiting: list[asyncio.Future[None]] = []
        self._stop: tuple[str, str] | None = None

    def usage(self, model: str, tokens_in: int, tokens_out: int, seconds: float = 0.0) -> Usage:
        """Return a call with so many tokens of a model, with what they cost."""
        price = self.prices.get(model)
        money = price.of(tokens_in, tokens_out) if price else Decimal(0)
        return Usage(1, 0, tokens_in, tokens_out, seconds, money)

    def book(self, model: str, seat: str, spent: Usage) -> None:
        """Book what was spent."""
        for usage in (self.total, self.seats[seat], self.models[model], self.pairs[model, seat]):
            usage.add(spent)

    async def hold(self, seat: str, most: Usage) -> None:
        """Hold the most that a call may cost; `release` it when the call is over.

        Raises:
            BudgetExceeded: it may be more than is left.
        """
        while True:
            self._stop = self._stop or next(self._excesses(seat, most, held=False), None)
            if self._stop and not self._held.calls:
                raise BudgetExceeded(*self._stop)
            if not self._stop and not any(self._excesses(seat, most, held=True)):
                break
            change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(change)
            await change
        for held in (self._held, self._held_by[seat]):
            held.add(most)

    def release(self, seat: str, most: Usage) -> None:
        """Hold no longer what was held for a call."""
        for held in (self._held, self._held_by[seat]):
            held.add(most, -1)
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            if not change.done():
                change.set_result(None)

    def _excesses(self, seat: str, most: Usage, held: bool) -> Iterator[tuple[str, str]]:
        """Say which limits a call might pass, on top of what is spent (and held)."""
        books = (
            (self.total, self._held, "", ""),
            (self.seats[seat], self._held_by[seat], "_per_seat", f" of {seat}"),
        )
        for (paid, kept, suffix, whose), limits in zip(books, self._limits, strict=True):
            for what, limit in limits.items():
                spent, needed = getattr(paid, what), getattr(most, what)
                reserved = getattr(kept, what) if held else 0
                if spent + reserved + needed > limit:
                    name = f"{what}{suffix}"
                    fault = f"the budget{whose}, {name} = {limit}, has {spent} spent and the next "
                    yield name, f"{fault}call may take {needed}: raise {name} to go on"


class Metered(Layer):
    """Books every call in a ledger, and holds its upper estimate while it is made.

    Raises:
        BadParameter: there is a budget of money and no price for the model.
    """

    def __init__(self, client: Client, ledger: Ledger, estimator: Estimator | None = None) -> None:
        super().__init__(client)
        paid = ledger.budget.money is not None or ledger.budget.money_per_seat is not None
        if paid and client.name not in ledger.prices:
            raise BadParameter(
                f'a budget of money needs the price of {client.name!r}: [prices."{client.name}"] '
                "input = …, output = … for each million tokens (0 if it costs nothing)"
            )
        self.ledger, self.estimator = ledger, estimator or Estimator()

    async def complete(self, request: Request) -> Completion:
        """Return one completion.

        Raises:
            ClientError: as the client raises it. What was answered for is booked.
            BudgetExceeded: the call might cost too much and was not made.
        """
        ledger, seat, learned = self.ledger, seat_of(request), self.estimator
        most = ledger.usage(self.name, learned.tokens_in(request), learned.tokens_out(request))
        await ledger.hold(seat, most)
        spent = ledger.usage(self.name, 0, 0)
        try:
            completion = await self.client.complete(request)
            learned.learn(request, completion)
            counts = completion.tokens_in, completion.tokens_out
            if not any(counts):  # the server counts nothing: what it may have cost
                counts = learned.tokens_in(request), tokens_of(completion.text)
            spent = ledger.usage(self.name, *counts, seconds=completion.latency)
            return completion
        except ClientError:
            spent = replace(ledger.usage(self.name, 0, 0), failures=1)
            raise
        finally:
            ledger.book(self.name, seat, spent)
            ledger.release(seat, most)


def seat_of(request: Request) -> str:
    """Return who asks, without the episode: ``public_goods/player_0``; "" if nobody is named."""
    who = request.who
    return f"{who.run}/player_{who.seat}" if who.run else ""
