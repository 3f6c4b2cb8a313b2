"""A layer that books the cost of calls, and makes none that a budget cannot bear."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from decimal import Decimal
from importlib.util import find_spec
from math import ceil
from typing import Any

from llm_games.errors import BadParameter
from llm_games.wrappers.clients.base import (
    Client,
    ClientError,
    Completion,
    ContextOverflow,
    Layer,
    Pending,
    Request,
    Unsent,
)
from llm_games.wrappers.clients.budget import Ledger, Usage
from llm_games.wrappers.clients.flights import ended, flown, longest
from llm_games.wrappers.clients.limit import Limit
from llm_games.wrappers.clients.prices import IN_BATCHES, MILLION, Price, listed
from llm_games.wrappers.clients.tokens import LONGEST_REPLY, Estimator, tokens_of
from llm_games.wrappers.clients.waves import line_name, waves_of

log = logging.getLogger(__name__)

PLACES = 64  # calls that share what is left, where nobody limits those in flight
FIRST_SHARE, FIRST_ROOM = 8, 256
"""Until a model's first reply: a reply has such a part of what is left, but at least so many
tokens."""
THIN = 8  # bytes of a text that a token has at most, on average
SLACK = 16
"""Tokens by which a server may count a reply that it cuts otherwise than its limit; a tenth less,
too, as some count no marks of thoughts or calls."""


class Metered(Layer):
    """Books every call in a ledger, and holds the most that it may cost while it is made.

    With a budget of tokens or money that is the prompt and `max_tokens`; where nobody set one, a
    limit that the budget has room for is held and sent (`Request.guarded`). A reply that it cuts
    is booked, but not read: the call is made again with four times the room.

    No server is trusted to keep to a limit: there are never more calls in flight than there is room
    for replies twice as long as the longest before; nor, unless there is room for as many of
    `LONGEST_REPLY`, more than there were replies, and one: so the budget is passed by one reply at
    most, or by those in flight where a server changes its ways. Where one does not count a reply's
    tokens, what was held is booked, since thoughts may be hidden.

    Raises:
        BadParameter: there is a budget of money and no price for the model.
    """

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        estimator: Estimator | None = None,
        places: int | None = None,
    ) -> None:
        super().__init__(client)
        self.ledger, self.estimator = ledger, estimator or Estimator()
        inside: Any = client.client if isinstance(client, Limit) else client
        self.inside, self.places, self.price = inside, places or PLACES, price_of(inside, ledger)
        self._highest = self.price.bound(max) if self.price else Price()
        costs_money = self._highest.input or self._highest.output
        self._limited = ledger.limited("tokens") or bool(costs_money and ledger.limited("money"))
        if "max_tokens" in getattr(inside, "leave_out", ()):
            ledger.lengths[self.name].sent = False
        self.batched = waves_of(client) is not None
        # An end does not wait for batches; for calls it does at their places.
        waits = self.batched or isinstance(client, Limit)
        self.seconds = 0.0 if waits else longest(client)

    async def complete(self, request: Request) -> Completion:
        """Return one completion; raises ClientError, BudgetExceeded if it might cost too much."""
        seat, room, cut, guard = self.ledger.seat_of(request.who), 0, 0, 0

        def most() -> Usage | None:
            nonlocal guard
            guard, usage = self._limit_and_hold(request, seat, room)
            return usage

        while True:
            held = await self.ledger.hold(self.name, seat, most)
            try:
                completion = await self._call(_guarded(request, guard), seat, held)
            except ClientError as error:
                room = self._less(guard, cut, error)
                continue
            tokens = completion.tokens_out or guard
            at_guard = 0.9 * guard - SLACK <= tokens <= guard + SLACK
            if not (guard and completion.finish == "length" and at_guard):
                if cut and not _counted(completion):  # thoughts are hidden, of unknown length
                    lengths = self.ledger.lengths[self.name]
                    lengths.longest = max(lengths.longest, ceil(guard / 1.25))
                return completion
            cut, room = guard, 4 * guard

    async def _call(self, request: Request, seat: str, held: Usage) -> Completion:
        """Make a call and book it; its hold is released, however it ends."""
        ledger, largest_usage = self.ledger, self._dearest(request)
        spent, sent, number = Usage(1, failures=1), False, None
        line = line_name(request) if self.batched else ""
        try:
            if ledger.journal is not None:
                number = await ledger.journal.begin(self.name, seat, largest_usage, line)
            if ended():
                raise asyncio.CancelledError
            sent = True
            completion: Completion = await flown(self.client.complete(request), self.seconds)
            spent = self._spent(request, completion)
            self._learn(request, completion)
            return completion
        except Unsent:
            sent = False
            raise asyncio.CancelledError from None
        except Pending:
            sent, number = False, None
            raise
        except ClientError as error:
            spent = largest_usage.lost() if error.unsure else spent
            raise
        except asyncio.CancelledError:
            spent = largest_usage.lost()
            if self.batched:  # it stays in the journal
                sent, number = False, None
            raise
        finally:
            if sent:
                ledger.book(self.name, seat, spent)
            ledger.release(self.name, seat, held)
            if ledger.journal is not None and number is not None:
                ledger.journal.over(number, self.name, seat)

    def _dearest(self, request: Request) -> Usage:
        """Return the largest usage of a call, by its limit if the server keeps to it."""
        lengths, limit = self.ledger.lengths[self.name], self._limit(request)
        out = limit if limit and lengths.limited else max(limit, LONGEST_REPLY)
        return self._usage(self.estimator.tokens_in(request), out)

    def _limit(self, request: Request) -> int:
        """Return the limit of a reply, that of a local model too; 0 if there is none."""
        return request.sampling.max_tokens or getattr(self.inside, "max_tokens", None) or 0

    def _spent(self, request: Request, answer: Completion) -> Usage:
        """Return a completion's usage, the largest possible where the server does not count."""
        into = answer.tokens_in or self.estimator.tokens_in(request)
        out = answer.tokens_out
        if not _counted(answer):
            out = tokens_of(_whole(answer))
            if self._limited or answer.finish == "length":  # there may have been hidden thoughts
                out = max(out, self._limit(request))
        cached = min(answer.tokens_cached, into)
        written = min(answer.tokens_written, into - cached)
        reasoning = min(answer.tokens_reasoning, out)
        price = self.price
        return Usage(
            calls=1,
            tokens_in=into,
            tokens_out=out,
            seconds=answer.latency,
            money=price.of(into, out, cached, reasoning, written) if price else Decimal(0),
            tokens_cached=cached,
            tokens_reasoning=reasoning,
            tokens_written=written,
        )

    def _learn(self, request: Request, answer: Completion) -> None:
        """Learn how long replies get, and how the server treats limits."""
        self.estimator.learn(request, answer)
        lengths, limit = self.ledger.lengths[self.name], request.sampling.max_tokens
        lengths.sent = lengths.sent and "max_tokens" not in (answer.left_out or ())
        length = least = answer.tokens_out
        counted = _counted(answer)
        if not counted:
            text = _whole(answer)
            length, least = tokens_of(text), len(text.encode(errors="replace")) // THIN
            if lengths.counted and self._limited:
                log.warning(
                    "%s does not count the tokens of its replies: of each the budget books as many "
                    "as its limit allows",
                    self.name,
                )
        lengths.counted = counted
        if limit and least > limit and lengths.limited:
            lengths.kept = False
            if self._limited:
                log.warning(
                    "%s does not keep to max_tokens = %d: a reply has %d. From now on the budget "
                    "may be passed by a reply",
                    *(self.name, limit, least),
                )
        if request.kind != "greeting":
            lengths.seen, lengths.longest = lengths.seen + 1, max(lengths.longest, length)

    def _limit_and_hold(self, request: Request, seat: str, room: int) -> tuple[int, Usage | None]:
        """Return the limit to send (0: none) and what to hold; None: others first."""
        if not self._limited:
            return 0, Usage(1)
        lengths, flying = self.ledger.lengths[self.name], self.ledger.in_flight(self.name)
        prompt, guard = self.estimator.tokens_in(request), 0
        ample = self._usage(prompt, LONGEST_REPLY)
        if flying > lengths.seen and not self.ledger.bears(seat, ample):
            return 0, None
        least = self._limit(request) or lengths.longest or FIRST_ROOM
        if lengths.limited and not self._limit(request):  # the limit of the budget is sent
            guard = least = self._room(seat, prompt, room, flying)
        spare = max(least, self._spare(seat, prompt, 1))
        feared = self._usage(prompt, max(least, lengths.feared))
        if not self.ledger.bears(seat, feared):
            return guard, None
        return guard, self._usage(prompt, min(feared.tokens_out, spare))

    def _room(self, seat: str, prompt: int, room: int, flying: int) -> int:
        """Return the tokens that a reply may have if nobody sets a limit."""
        lengths = self.ledger.lengths[self.name]
        least = ceil(1.25 * lengths.longest) or FIRST_ROOM
        if not lengths.counted:
            spare = least
        elif not lengths.seen:
            spare = self._spare(seat, prompt, FIRST_SHARE)
            spare = spare if spare >= FIRST_ROOM else self._spare(seat, prompt, 1)
        else:
            free = self.places - flying
            spare = self._spare(seat, prompt, free if free > 0 else FIRST_SHARE)
        return max(room, min(max(least, spare), lengths.most))

    def _spare(self, seat: str, prompt: int, parts: int) -> int:
        """Return the tokens for a reply if the remainder is for so many calls."""
        tokens = [rest // parts - prompt for rest in self.ledger.remaining(seat, "tokens")]
        price = self._highest.for_prompt(prompt)
        if price.output:
            cost, money = price.of(prompt, 0), self.ledger.remaining(seat, "money")
            tokens += [int((rest / parts - cost) * MILLION / price.output) for rest in money]
        return min(tokens, default=LONGEST_REPLY)

    def _usage(self, tokens_in: int, tokens_out: int) -> Usage:
        """Return a call with so many tokens, at the highest price."""
        return Usage(1, 0, tokens_in, tokens_out, money=self._highest.of(tokens_in, tokens_out))

    def _less(self, guard: int, cut: int, error: ClientError) -> int:
        """Return half of a limit that the server refuses; raise the failure if it is of no use."""
        lengths = self.ledger.lengths[self.name]
        refused = error.status in (400, 422) and "token" in str(error).lower()
        if not guard or not (refused or isinstance(error, ContextOverflow)):
            raise error
        lengths.most, half = max(FIRST_ROOM, guard // 2), guard // 2
        if cut and half <= cut:
            raise ClientError(
                f"{self.name} was cut off at {cut} tokens, the most that the budget's limit of a "
                "reply could be: set max_tokens to go on"
            ) from error
        if guard <= max(FIRST_ROOM, 1.25 * lengths.longest):
            lengths.most = LONGEST_REPLY
            raise error
        return half if cut else 0


def price_of(client: Client, ledger: Ledger) -> Price | None:
    """Return the price of a client's model, a ledger's or a listed one; None if unknown.

    A listed price is of one server; elsewhere a model has its own, kept by ``NAME at ADDRESS``.
    In batches it is half of that, or what is given as ``NAME in batches``. BadParameter if there is
    a budget of money and no price.
    """
    key, price = _single_price(client, ledger)
    if price is None or waves_of(client) is None:
        return price
    return ledger.prices.setdefault(key + IN_BATCHES, price.half())


def _single_price(client: Client, ledger: Ledger) -> tuple[str, Price | None]:
    """Return the price of a client's calls one by one, and its name."""
    name, url = client.name, str(getattr(client, "base_url", "") or "")
    key, price = name, ledger.prices.get(name)
    if price and not price.holds(url):
        key = f"{name} at {url}"
        price = ledger.prices.get(key)
    if price is not None:
        return key, price
    price_listed = listed(name, url, str(getattr(client, "provider", "") or ""))
    if price_listed is not None:
        ledger.prices[key] = price_listed
    elif ledger.limited("money"):
        hint = "" if find_spec("genai_prices") else "; pip install genai-prices has a list"
        raise BadParameter(
            f'a budget of money needs the price of {key!r}: [prices."{key}"] input = …, '
            f"output = … for each million tokens (0 if it costs nothing){hint}"
        )
    return key, price_listed


def _counted(answer: Completion) -> bool:
    """Test whether the server counts a reply's tokens; a filter's refusal has none."""
    none = answer.finish != "length" and answer.tokens_in and not _whole(answer)
    return bool(answer.tokens_out or none) or answer.finish == "refusal"


def _whole(answer: Completion) -> str:
    """Return all text that the server made: reply, thoughts and calls."""
    return answer.text + answer.thoughts + (str(answer.tool_calls) if answer.tool_calls else "")


def _guarded(request: Request, guard: int) -> Request:
    """Return a request with a limit that comes from the budget, if there is one."""
    if not guard:
        return request
    return replace(request, sampling=replace(request.sampling, max_tokens=guard), guarded=True)
