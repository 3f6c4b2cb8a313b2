"""A layer that calls no faster than allowed, and finds out what a server bears."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from llm_games.facts import check_integer
from llm_games.wrappers.clients.base import (
    Client,
    ClientError,
    Completion,
    Layer,
    Request,
    Unsent,
)
from llm_games.wrappers.clients.flights import ended, flown, longest
from llm_games.wrappers.clients.retry import backoff
from llm_games.wrappers.clients.tokens import Estimator

FIRST, FIRST_PART = 32, 4
"""Calls in flight at the start, or such a part of those allowed; fewer if fewer are allowed."""
COOLDOWN = 15.0  # seconds after a cut in which refusals cut nothing: they are of one crowd
LONGEST_CLOSED = 120.0  # seconds a server may ask all to wait; more is each call's own matter
DOWN = 8  # failures in a row, of whatever calls, after which a server is taken to be down
REFUSED = 0.5  # seconds within which servers refuse a call that is too many
SLACK = 1.0  # seconds of a pace that may be caught up with at once
READY = 32  # calls, and at most a quarter of those in flight, that are ready to follow them


class Pace:
    """Spreads amounts evenly over the minutes (a leaky bucket); None: no limit."""

    def __init__(self, per_minute: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = 60.0 / per_minute if per_minute else 0.0
        self.clock, self._free = clock, clock()

    def wait(self) -> float:
        """Return the seconds until something may be taken."""
        return self._free - self.clock()

    def take(self, amount: int) -> None:
        """Take an amount; a negative one gives back."""
        self._free = max(self._free, self.clock() - SLACK) + amount * self.seconds


@dataclass
class Preparation:
    """What happens to a call before it has its place: it is held, and written down."""

    is_over: bool = False


class Gate:
    """A queue that lets calls to one server through, in their order. For one event loop.

    Calls `line_up` to be made ready, as many as have a place and few more, which then `enter` as
    soon as one is free.

    The number in flight (`limit`, at most `maximum`) doubles with each round of calls, and once all
    places are taken and for `REFUSED` seconds nothing fails, until the first refusal for being too
    many (status 429); from then on it grows by 5 % a round. Such a
    refusal, and nothing else, cuts it to 80 %, once in `COOLDOWN`, for which refused calls are not
    replaced by others. Rounds count only if nearly all places were taken and no call failed. While
    a server asks to wait, nobody is let through. While it is down, one call at a time tries it,
    with pauses as of `backoff`; then places double again, so that nobody storms it. `history` holds
    the last 1000 limits, each with the seconds since the start.
    """

    def __init__(
        self,
        maximum: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.maximum, self.in_flight = maximum, 0
        self.limit = min(maximum, max(FIRST, maximum // FIRST_PART))
        self.clock, self._start = clock, clock()
        self.history: deque[tuple[float, int]] = deque([(0.0, self.limit)], maxlen=1000)
        self._requests = Pace(requests_per_minute, clock)
        self._tokens = Pace(tokens_per_minute, clock)
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._line: deque[asyncio.Future[Preparation]] = deque()
        self._preparing = 0  # whose turn is not over
        self._paced = requests_per_minute is not None or tokens_per_minute is not None
        # What calls may cost is learned while they wait: a tenth of a second of them is ready.
        self._ready = min(READY, (requests_per_minute or 0) // 600) if self._paced else READY
        self._timer: asyncio.TimerHandle | None = None
        self._doubling: asyncio.TimerHandle | None = None
        self._slow_start, self._round, self._peak = True, 0, 0
        self._closed_until = self._cut_until = float("-inf")
        self._borne = maximum  # calls in flight that were not refused, until the cooldown ends
        self._trusted = maximum  # calls in flight at a server that was down
        self._failures = self._pauses = 0  # in a row, since an answer
        self.failing_since: float | None = None

    def places(self) -> int:
        """Return the calls that may be in flight now, after a refusal no more than went well."""
        borne = self.maximum if self.clock() >= self._cut_until else self._borne
        return min(self.limit, borne, self._trusted)

    async def line_up(self) -> Preparation:
        """Wait for the turn to be made ready for a place; `step_out` once it is over."""
        if not self._line and self._preparing < self._room():
            self._preparing += 1
            return Preparation()
        ticket: asyncio.Future[Preparation] = asyncio.get_running_loop().create_future()
        self._line.append(ticket)
        try:
            return await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():
                self.step_out(ticket.result())
            raise

    def step_out(self, turn: Preparation) -> None:
        """End a turn, if it is not over."""
        if not turn.is_over:
            turn.is_over = True
            self._preparing -= 1
            self._call_up()

    def _room(self) -> int:
        """Return how many may be made ready: for the places that are free, and some ahead."""
        places = self.places()
        ahead = min(self._ready, places // 4)
        return max(ahead, 1) if self._paced else places - self.in_flight + ahead

    def _call_up(self) -> None:
        while self._line and self._preparing < self._room():
            if not (ticket := self._line.popleft()).done():
                self._preparing += 1
                ticket.set_result(Preparation())

    async def enter(self, tokens: int) -> None:
        """Wait for a place, for a call of about so many tokens; `leave` gives it back."""
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((ticket, tokens))
        self._admit()
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():
                self.leave()
            raise

    def leave(self, error: ClientError | None = None, clean: bool = False, spare: int = 0) -> None:
        """Give a place back: with the failure if there was one; `spare` tokens were not used."""
        if spare:
            self._tokens.take(-spare)
        if error is not None and error.limited:
            self._refused(error.retry_after)
        elif clean:
            self._round += 1
            if self._round >= self.limit:
                self._grow()
        elif error is not None:
            self._round = 0
        if error is not None and error.transient and not error.limited:
            self._failed(error.retry_after)
        elif clean or error is not None:
            self._failures, self._pauses, self.failing_since = 0, 0, None
            self._trusted = min(self.maximum, self._trusted + 1)
        self.in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        """Let through whoever may go now; come back later for the others."""
        while self._waiting and self.in_flight < self.places():
            ticket, tokens = self._waiting[0]
            if not ticket.done():
                closed = self._closed_until - self.clock()
                if (pause := max(closed, self._requests.wait(), self._tokens.wait())) > 0:
                    loop = asyncio.get_running_loop()
                    self._timer = self._timer or loop.call_later(pause, self._again)
                    return
                self._requests.take(1)
                self._tokens.take(tokens)
                self.in_flight += 1
                self._peak = max(self._peak, self.in_flight)
                if self.in_flight == self.limit < self.maximum and self._slow_start:
                    self._expect_more()
                ticket.set_result(None)
            self._waiting.popleft()
        self._call_up()

    def _expect_more(self) -> None:
        """Double the places without waiting for answers that take longer than refusals."""
        if self._doubling is None:
            loop = asyncio.get_running_loop()
            self._doubling = loop.call_later(REFUSED, self._unrefused, self.limit)

    def _unrefused(self, limit: int) -> None:
        self._doubling = None
        if self._slow_start and not self._failures and self.limit == limit:
            self._grow()
            self._admit()

    def _again(self) -> None:
        self._timer = None
        self._admit()

    def _grow(self) -> None:
        if self._peak >= 0.8 * self.limit:
            step = self.limit if self._slow_start else max(1, self.limit // 20)
            self._change(min(self.maximum, self.limit + step))
        self._round, self._peak = 0, self.in_flight

    def _refused(self, retry_after: float | None) -> None:
        clock = self.clock()
        self._slow_start, self._round = False, 0
        self._borne = max(1, self.in_flight - 1)
        wait = retry_after if retry_after and retry_after <= LONGEST_CLOSED else 0.0
        self._closed_until = max(self._closed_until, clock + wait)
        if clock >= self._cut_until:
            self._cut_until = clock + (wait or COOLDOWN)
            self._change(max(1, int(self.limit * 0.8)))

    def _failed(self, retry_after: float | None) -> None:
        clock = self.clock()
        self._failures += 1
        self.failing_since = clock if self.failing_since is None else self.failing_since
        if self._failures >= DOWN:
            self._trusted = 1
            if clock >= self._closed_until:  # else it was let through before, with others
                self._pauses += 1
                wait = min(retry_after or 0.0, LONGEST_CLOSED)
                self._closed_until = clock + max(wait, backoff(self._pauses))

    def _change(self, limit: int) -> None:
        if limit != self.limit:
            self.limit = limit
            self.history.append((self.clock() - self._start, limit))


class Gates:
    """The gates of one server, one for each event loop that calls it."""

    def __init__(
        self,
        max_in_flight: int = 64,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
    ) -> None:
        self._settings = max_in_flight, requests_per_minute, tokens_per_minute
        names = "max_in_flight", "requests_per_minute", "tokens_per_minute"
        for name, value in zip(names, self._settings, strict=True):
            if value is not None or name == "max_in_flight":
                check_integer(name, value, 1)
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, Gate] = WeakKeyDictionary()
        self.counts_tokens = tokens_per_minute is not None

    def __reduce__(self) -> tuple[Any, ...]:  # gates belong to event loops of this process
        return Gates, self._settings

    def here(self) -> Gate:
        loop = asyncio.get_running_loop()
        if loop not in self._gates:
            self._gates[loop] = Gate(*self._settings)
        return self._gates[loop]

    def history(self) -> list[list[tuple[float, int]]]:
        """Return the changes of each gate's limit, for logs."""
        return [list(gate.history) for gate in self._gates.values()]


_turn: ContextVar[Preparation | None] = ContextVar("turn", default=None)


class Ready(Layer):
    """Has calls made ready in their order, by the layers inside, down to `Limit` at its gate."""

    def __init__(self, client: Client, gates: Gates) -> None:
        super().__init__(client)
        self.gates = gates

    async def complete(self, request: Request) -> Completion:
        gate = self.gates.here()
        came = gate.clock()
        turn = await gate.line_up()
        token = _turn.set(turn)
        try:
            return await self.client.complete(request)
        except ClientError as failure:
            if gate.failing_since is not None:
                failure.waited = gate.clock() - max(came, gate.failing_since)
            raise
        finally:
            _turn.reset(token)
            gate.step_out(turn)


class Limit(Layer):
    """Lets calls wait for their place at a gate; clients of one server share its gates.

    A place is free as soon as the answer is there, whatever is then done with it. Raises Unsent if
    all ends before there is one.
    """

    def __init__(self, client: Client, gates: Gates, estimator: Estimator | None = None) -> None:
        super().__init__(client)
        self.gates, self.estimator = gates, estimator or Estimator()
        self.seconds = longest(client)

    async def complete(self, request: Request) -> Completion:
        gate, tokens = self.gates.here(), 0
        if self.gates.counts_tokens:
            tokens = self.estimator.tokens_in(request) + self.estimator.tokens_out(request)
        try:
            await gate.enter(tokens)
        except asyncio.CancelledError:
            raise Unsent from None
        if (turn := _turn.get()) is not None:
            gate.step_out(turn)
        place = Place(gate, tokens)
        try:
            if ended():
                raise Unsent
            return await flown(place.call(self.client, request), self.seconds)
        finally:
            place.leave()


class Place:
    """A call's place at a server, which it leaves once."""

    def __init__(self, gate: Gate, tokens: int) -> None:
        self.gate, self.tokens, self.is_left = gate, tokens, False

    async def call(self, client: Client, request: Request) -> Completion:
        try:
            completion = await client.complete(request)
        except ClientError as failure:
            self.leave(failure)
            raise
        used = completion.tokens_in + completion.tokens_out
        self.leave(clean=True, spare=self.tokens - used if self.tokens and used else 0)
        return completion

    def leave(self, error: ClientError | None = None, clean: bool = False, spare: int = 0) -> None:
        if not self.is_left:
            self.is_left = True
            self.gate.leave(error, clean, spare)
