"""A layer that books what calls cost, and makes none that a budget cannot bear."""

from __future__ import annotations

import logging
from dataclasses import replace
from decimal import Decimal
from importlib.util import find_spec
from math import ceil

from llm_games.errors import BadParameter
from llm_games.wrappers.clients.base import (
    Client,
    ClientError,
    Completion,
    ContextOverflow,
    Layer,
    Request,
)
from llm_games.wrappers.clients.budget import Ledger, Usage
from llm_games.wrappers.clients.prices import MILLION, Price, listed
from llm_games.wrappers.clients.tokens import Estimator, Lengths, tokens_of

log = logging.getLogger(__name__)

PLACES = 64
"""Calls among which what is left is shared, where nobody says how many are in flight at most."""
FIRST_CALLS, FIRST_SHARE, FIRST_ROOM = 4, 8, 256
"""Until a model's first reply: so many calls in flight, each with such a part of what is left, but
at least so many tokens for its reply."""
SLACK = 16
"""Tokens by which a server may count a reply that it cuts otherwise than its limit; a tenth less,
too, as some count no marks of thoughts or calls."""


class Metered(Layer):
    """Books every call in a ledger, and holds the most that it may cost while it is made.

    With a budget of tokens or money that is the prompt and `max_tokens`; where nobody set one, a
    limit that the budget has room for is held and sent (`Request.guarded`). A reply that it cuts
    is booked, but not read: the call is made again with four times the room. Of a model that takes
    no limit one call is in flight at a time; one that does not keep to it may pass the budget by
    the replies in flight.

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
        self.places, self.price = places or PLACES, price_of(client, ledger)
        self._highest = self.price.highest() if self.price else Price()
        paid = self._highest.input or self._highest.output
        self._limited = ledger.limited("tokens") or bool(paid and ledger.limited("money"))
        if "max_tokens" in getattr(client, "leave_out", ()):
            ledger.lengths[self.name].sent = False

    async def complete(self, request: Request) -> Completion:
        """Return one completion.

        Raises:
            ClientError: as the client raises it; or whatever room there is, the reply is cut.
            BudgetExceeded: the call might cost too much and was not made.
        """
        ledger, seat, room, cut = self.ledger, self.ledger.seat_of(request.who), 0, 0
        while True:
            most = await ledger.hold(self.name, seat, lambda: self._most(request, seat, room))  # noqa: B023
            guard = most.tokens_out if self._guards(request) else 0
            try:
                completion = await self._call(_guarded(request, guard), seat, most)
            except ClientError as error:
                room = self._less(guard, cut, error)
                continue
            counted = completion.tokens_out or guard
            at_guard = 0.9 * guard - SLACK <= counted <= guard + SLACK
            if not (guard and completion.finish == "length" and at_guard):
                return completion
            cut, room = guard, 4 * guard

    async def _call(self, request: Request, seat: str, most: Usage) -> Completion:
        """Make a call and book it; what was held for it is let go, however it ends."""
        spent = Usage(1, failures=1)
        try:
            completion = await self.client.complete(request)
            spent = self._spent(request, completion)
            self._learn(request, completion)
            return completion
        finally:
            self.ledger.book(self.name, seat, spent)
            self.ledger.release(self.name, seat, most)

    def _spent(self, request: Request, answer: Completion) -> Usage:
        """Return what a completion cost; what the server does not count, it may have cost."""
        said = answer.text + answer.thoughts + (str(answer.tool_calls) if answer.tool_calls else "")
        into = answer.tokens_in or self.estimator.tokens_in(request)
        out = answer.tokens_out or tokens_of(said)
        cached = min(answer.tokens_cached, into)
        written = min(answer.tokens_written, into - cached)
        parts = cached, min(answer.tokens_reasoning, out), written
        money = self.price.of(into, out, *parts) if self.price else Decimal(0)
        return Usage(1, 0, into, out, answer.latency, money, *parts)

    def _learn(self, request: Request, answer: Completion) -> None:
        """Find out how long replies get, and what the server does with limits."""
        self.estimator.learn(request, answer)
        known, limit = self.ledger.lengths[self.name], request.sampling.max_tokens
        known.sent = known.sent and "max_tokens" not in (answer.left_out or ())
        if limit and answer.tokens_out > limit and known.sent and known.kept:
            known.kept = False
            if self._limited:
                log.warning(
                    "%s does not keep to max_tokens = %d: a reply has %d. From now on the budget "
                    "may be passed by the replies in flight, of which there are few at first",
                    *(self.name, limit, answer.tokens_out),
                )
        if self._open(request) or request.guarded or not known.kept:
            known.seen, known.longest = known.seen + 1, max(known.longest, answer.tokens_out)

    def _open(self, request: Request) -> bool:
        """Return whether nobody, not even a local model, limits the reply."""
        return not (request.sampling.max_tokens or getattr(self.client, "max_tokens", None))

    def _guards(self, request: Request) -> bool:
        """Return whether a limit that comes from the budget is sent."""
        known = self.ledger.lengths[self.name]
        return self._limited and known.sent and known.kept and self._open(request)

    def _most(self, request: Request, seat: str, room: int) -> Usage | None:
        """Return what a call may cost at most, None: others in flight come first.

        `room` is for a reply that was cut off with less.
        """
        if not self._limited:
            return Usage(1)
        known, flying = self.ledger.lengths[self.name], self.ledger.in_flight(self.name)
        own = request.sampling.max_tokens or getattr(self.client, "max_tokens", None) or 0
        prompt = self.estimator.tokens_in(request)
        if own and known.kept and known.sent:
            return self._usage(prompt, own)
        if not known.sent:
            most, parts = 1, 1
        elif not known.kept:
            most, parts = known.seen + 1, 0
        elif not known.seen:
            most, parts = FIRST_CALLS, FIRST_SHARE
        else:
            free = self.places - flying
            most, parts = flying + 1, free if free > 0 else FIRST_SHARE
        if flying >= most:
            return None
        if not known.kept:
            return self._usage(prompt, max(own, 2 * known.longest))
        spare = self._spare(seat, prompt, parts)
        if spare < FIRST_ROOM and not known.seen:
            spare = self._spare(seat, prompt, 1)
        if not known.sent:
            return self._usage(prompt, max(spare, known.longest, 1))
        least = ceil(1.25 * known.longest) or FIRST_ROOM
        return self._usage(prompt, max(room, min(max(least, spare), known.most)))

    def _spare(self, seat: str, prompt: int, parts: int) -> int:
        """Return the tokens for a reply if what is left is for so many calls."""
        tokens = [left // parts - prompt for left in self.ledger.left(seat, "tokens")]
        price = self._highest.at(prompt)
        if price.output:
            paid, money = price.of(prompt, 0), self.ledger.left(seat, "money")
            tokens += [int((left / parts - paid) * MILLION / price.output) for left in money]
        return min(tokens, default=Lengths.most)

    def _usage(self, tokens_in: int, tokens_out: int) -> Usage:
        """Return a call with so many tokens, at the highest price."""
        return Usage(1, 0, tokens_in, tokens_out, money=self._highest.of(tokens_in, tokens_out))

    def _less(self, guard: int, cut: int, error: ClientError) -> int:
        """Return the room to ask for after a failure: half of a limit that the server refuses.

        Raises the failure if there was another reason, or if no less will do.
        """
        known = self.ledger.lengths[self.name]
        refused = isinstance(error, ContextOverflow) or (
            error.status in (400, 422) and "token" in str(error).lower()
        )
        if not (guard and refused):
            raise error
        known.most, half = max(FIRST_ROOM, guard // 2), guard // 2
        if cut and half <= cut:
            raise ClientError(
                f"{self.name} was cut off at {cut} tokens, the most that the budget's limit of a "
                "reply could be: set max_tokens to go on"
            ) from error
        if guard <= max(FIRST_ROOM, 1.25 * known.longest):
            known.most = Lengths.most
            raise error
        return half if cut else 0


def price_of(client: Client, ledger: Ledger) -> Price | None:
    """Return what a client's model costs, in a ledger's prices or listed; None: nobody says.

    A listed price is of one server: elsewhere a model of that name has a price of its own, which is
    kept by ``NAME at ADDRESS``.

    Raises:
        BadParameter: there is a budget of money and no price for the model.
    """
    name, url = client.name, str(getattr(client, "base_url", "") or "")
    key, price = name, ledger.prices.get(name)
    if price and not price.holds(url):
        key = f"{name} at {url}"
        price = ledger.prices.get(key)
    if price is not None:
        return price
    found = listed(name, url, str(getattr(client, "provider", "") or ""))
    if found is not None:
        ledger.prices[key] = found
    elif ledger.limited("money"):
        known = "" if find_spec("genai_prices") else "; pip install genai-prices has a list"
        raise BadParameter(
            f'a budget of money needs the price of {key!r}: [prices."{key}"] input = …, '
            f"output = … for each million tokens (0 if it costs nothing){known}"
        )
    return found


def _guarded(request: Request, guard: int) -> Request:
    """Return a request with a limit that comes from the budget, if there is one."""
    if not guard:
        return request
    return replace(request, sampling=replace(request.sampling, max_tokens=guard), guarded=True)
