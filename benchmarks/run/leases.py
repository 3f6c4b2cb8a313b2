"""A run's budget held by several workers: each calls on a part of it, and asks for more."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal
from typing import Any, NamedTuple

from llm_games.wrappers.clients.budget import Budget, Ledger, Usage
from llm_games.wrappers.clients.prices import Price

SMALLEST = Decimal("0.000001")  # money that is leased, so that sums are exact
SHARES = 4  # a lease is one part of so many for each worker of what is left


class Limited(NamedTuple):
    """One limit: what of, such as ``calls``, and of which seat (None: of all)."""

    what: str
    seat: str | None

    @property
    def name(self) -> str:
        return self.what if self.seat is None else f"{self.what}_per_seat"


@dataclass
class Share:
    """What one worker has of a limit.

    `granted` less what came back; `gross` with it; `held` is for calls under way, and what was
    granted that the worker has not told of.
    """

    granted: Any = 0
    gross: Any = 0
    held: Any = 0


class Asked(NamedTuple):
    """A worker's question for at least so much of a limit; `number` tells it from others."""

    worker: str
    number: int
    needed: Any


@dataclass
class Queue:
    """Who waits for a limit of which little is left; all give back what they do not use."""

    shares: dict[str, Share] = field(default_factory=lambda: defaultdict(Share))
    asked: list[Asked] = field(default_factory=list)
    recalled: set[str] = field(default_factory=set)  # who gives back


class Leases:
    """The coordinator's side: what of each limit is left, and who has the rest.

    `tell` sends a message to a worker: ``("grant", number, limit, amount)``, ``("refuse", number,
    limit, why)`` or ``("recall", limit)``, after which it gives back whatever it does not use.
    """

    def __init__(self, ledger: Ledger, workers: int, tell: Callable[..., None]) -> None:
        self.ledger, self.workers, self.tell = ledger, workers, tell
        self.queues: dict[Limited, Queue] = defaultdict(Queue)
        self._limits = ledger.budget.limits(False), ledger.budget.limits(True)

    def remainder(self, limit: Limited) -> Any:
        return self._all(limit) - sum(s.granted for s in self.queues[limit].shares.values())

    def _all(self, limit: Limited) -> Any:
        """What of a limit was not spent by workers that are gone."""
        allowed = self._limits[limit.seat is not None][limit.what]
        account = self.ledger.total if limit.seat is None else self.ledger.seats[limit.seat]
        return allowed - getattr(account, limit.what)

    def ask(self, worker: str, number: int, limit: Limited, needed: Any) -> None:
        queue, rest = self.queues[limit], self.remainder(limit)
        share = rest // (SHARES * self.workers)
        if limit.what == "money":
            share = (rest / (SHARES * self.workers)).quantize(SMALLEST, ROUND_DOWN)
        if not queue.recalled and rest >= needed and share > 0:
            self._grant(Asked(worker, number, needed), limit, max(needed, share))
            return
        queue.asked.append(Asked(worker, number, needed))
        for other in {worker, *queue.shares} - queue.recalled:
            share_of = queue.shares[other]
            share_of.held = share_of.granted  # until it says otherwise
            queue.recalled.add(other)
            self.tell(other, "recall", limit)
        self._serve(limit)

    def give(self, worker: str, limit: Limited, amount: Any, gross: Any, held: Any) -> None:
        """Take back what a worker does not use, that was granted so much and holds so much."""
        share = self.queues[limit].shares[worker]
        share.granted -= amount
        share.held = held + share.gross - gross
        self._serve(limit)

    def gone(self, worker: str) -> None:
        """Take all back from a worker whose usage is booked."""
        for limit, queue in self.queues.items():
            queue.shares.pop(worker, None)
            queue.recalled.discard(worker)
            queue.asked = [asked for asked in queue.asked if asked.worker != worker]
            self._serve(limit)

    def _grant(self, asked: Asked, limit: Limited, amount: Any) -> None:
        share = self.queues[limit].shares[asked.worker]
        share.granted, share.gross = share.granted + amount, share.gross + amount
        share.held += amount
        self.tell(asked.worker, "grant", asked.number, limit, amount)

    def _serve(self, limit: Limited) -> None:
        """Grant in turn what each needs; refuse all once no more can come back."""
        queue = self.queues[limit]
        while queue.asked and self.remainder(limit) >= queue.asked[0].needed:
            self._grant(queue.asked[0], limit, queue.asked.pop(0).needed)
        if any(share.held for share in queue.shares.values()):
            return
        allowed = self._limits[limit.seat is not None][limit.what]
        spent = allowed - self.remainder(limit)
        whose = f" of {limit.seat}" * bool(limit.seat)
        for worker, number, needed in queue.asked:
            self.tell(
                *(worker, "refuse", number, limit),
                f"the budget{whose}, {limit.name} = {allowed}, has {spent} spent and the next "
                f"call may take {needed}: raise {limit.name} to go on",
            )
        queue.asked = []


class LeasedLedger(Ledger):
    """A worker's books; `ask` brings more of a limit, or says why there is none."""

    elsewhere = True

    def __init__(
        self,
        budget: Budget,
        prices: Mapping[str, Price],
        ask: Callable[[Limited, Any], Awaitable[Any]],
        give: Callable[..., None],
    ) -> None:
        super().__init__(budget, prices)
        self.ask, self.give = ask, give
        self.granted: dict[Limited, Any] = defaultdict(int)
        self.gross: dict[Limited, Any] = defaultdict(int)
        self.reserved: dict[Limited, Any] = defaultdict(int)  # for who has just been granted it
        self.scarce: set[Limited] = set()
        self._asking: dict[Limited, asyncio.Lock] = defaultdict(asyncio.Lock)

    def _accounts(self, seat: str) -> Iterator[tuple[Usage, Usage, dict[str, Any], str, str]]:
        for account, held, limits, suffix, whose in super()._accounts(seat):
            of = seat if suffix else None
            mine = {what: self.granted[Limited(what, of)] for what in limits}
            yield account, held, mine, suffix, whose

    async def extended(self, seat: str, needed: Usage | None) -> bool:
        """Ask for what a call lacks; whether something came, by which estimates change."""
        came: list[tuple[Limited, Any]] = []
        for limit in self._limited(seat):
            if self._lacks(limit, needed) <= 0 or (needed is None and limit in self.scarce):
                continue
            async with self._asking[limit]:
                if (lack := self._lacks(limit, needed)) > 0 and self._stop is None:
                    amount = await self.ask(limit, lack)
                    if isinstance(amount, str):
                        self._stop = limit.name, amount
                    else:
                        self._granted(limit, amount)
                        came.append((limit, lack))
                        self.reserved[limit] += lack
        for limit, amount in came:
            self.reserved[limit] -= amount
        return bool(came) and self._stop is None

    def _granted(self, limit: Limited, amount: Any) -> None:
        self.granted[limit] += amount
        self.gross[limit] += amount

    def _limited(self, seat: str) -> Iterator[Limited]:
        for of, limits in zip((None, seat), self._limits, strict=True):
            for what in limits:
                yield Limited(what, of)

    def _lacks(self, limit: Limited, needed: Usage | None) -> Any:
        return (1 if needed is None else getattr(needed, limit.what)) - self.free(limit)

    def held(self, limit: Limited) -> Any:
        held = self._held if limit.seat is None else self._held_of["seat", limit.seat]
        return getattr(held, limit.what) + self.reserved[limit]

    def free(self, limit: Limited) -> Any:
        """What of a limit is here, neither spent nor held."""
        account = self.total if limit.seat is None else self.seats[limit.seat]
        return self.granted[limit] - getattr(account, limit.what) - self.held(limit)

    def release(self, model: str, seat: str, held_usage: Usage) -> None:
        super().release(model, seat, held_usage)
        for limit in self.scarce.intersection(self._limited(seat)):
            self.return_rest(limit)

    def recall(self, limit: Limited) -> None:
        """From now on give back at once what is not used."""
        self.scarce.add(limit)
        self.return_rest(limit)

    def return_rest(self, limit: Limited) -> None:
        amount = max(0, self.free(limit))
        self.granted[limit] -= amount
        self.give(limit, amount, self.gross[limit], self.held(limit))
