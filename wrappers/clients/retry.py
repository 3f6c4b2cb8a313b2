"""A layer that waits for a server: a failure that may pass is no answer, and no move."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from llm_games.facts import check_number
from llm_games.wrappers.clients.base import Client, ClientError, Completion, Layer, Request
from llm_games.wrappers.clients.flights import ended

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.5  # seconds before the second try; then twice as long, all less up to 50 %
LONGEST_PAUSE = 8.0  # seconds between two tries, but for a server that asks to wait longer
LONGEST_REFUSED = 60.0  # the same where the server asks for fewer calls (status 429)
GREETING = 5.0  # seconds for which the short question before a run waits for a server that is down
WORTH_TELLING = 2.0  # seconds of waiting before it is logged and shown


@dataclass
class Wait:
    """The calls that wait for one server now, each for at most `limit` seconds."""

    limit: float
    why: str = ""
    since: dict[object, float] = field(default_factory=dict)  # by call
    is_logged: bool = False
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """The waiting time of the first of them."""
        clock = time.monotonic()
        return clock - min([*self.since.values()], default=clock)

    def __str__(self) -> str:
        calls = "1 call" if len(self.since) == 1 else f"{len(self.since)} calls"
        why = self.why if len(self.why) <= 120 else f"{self.why[:120]}…"
        return f"waiting: {why} ({self.seconds:.0f} s of at most {self.limit:g} s, {calls})"


class Waits(dict[str, Wait]):
    """The waits for servers, by server, for a display; long ones are logged; `past` seconds."""

    past = 0.0

    @contextmanager
    def on(self, server: str, limit: float) -> Iterator[Wait]:
        """Count a call among those that wait for a server, inside the block."""
        wait, call = self.setdefault(server, Wait(limit)), object()
        wait.since[call] = time.monotonic()
        try:
            yield wait
        finally:
            del wait.since[call]
            if not wait.since:
                self.pop(server, None)
                self.past += time.monotonic() - wait.began


class Retry(Layer):
    """Makes a call again, always the same, for as long as its failure may pass.

    Pauses double and vary; ``Retry-After`` is obeyed, whatever the failure. A call waits for its
    server for `max_wait` seconds in all; with 0 nothing is tried again. `waits` shows who waits.
    """

    def __init__(
        self,
        client: Client,
        max_wait: float = 600.0,
        waits: Waits | None = None,
        server: str = "",
    ) -> None:
        super().__init__(client)
        check_number("max_wait", max_wait, 0)
        self.max_wait, self.server = max_wait, server or client.name
        self.waits = Waits() if waits is None else waits

    async def complete(self, request: Request) -> Completion:
        """Return one completion, or raise a ClientError that lasts longer than `max_wait`."""
        try:
            return await self.client.complete(request)
        except ClientError as error:
            if not error.transient or not self.max_wait:
                raise
            failure = error
        with self.waits.on(self.server, self._patience(request, failure)) as wait:
            return await self._again(request, failure, wait)

    async def _again(self, request: Request, failure: ClientError, wait: Wait) -> Completion:
        """Try until there is a completion, after a first failure."""
        waited, tries = failure.waited, 1
        while True:
            if ended():
                raise asyncio.CancelledError from failure
            pause = self._pause(request, failure, tries, waited)
            wait.why = str(failure)
            if not wait.is_logged and wait.seconds + pause > WORTH_TELLING:
                log.warning("%s", wait)
                wait.is_logged = True
            await asyncio.sleep(pause)
            began = time.monotonic()
            try:
                return await self.client.complete(request)
            except ClientError as error:
                if not error.transient:
                    raise
                failure, tries = error, tries + 1
            # Who is refused may have stood in a long line of our own before: that is no waiting.
            took = 0.0 if failure.limited else time.monotonic() - began
            waited = max(waited + pause + took, failure.waited)

    def _patience(self, request: Request, failure: ClientError) -> float:
        """Return the seconds that a call waits at most: a greeting few, unless it is limited."""
        hasty = request.kind == "greeting" and not failure.limited
        return min(self.max_wait, GREETING) if hasty else self.max_wait

    def _pause(self, request: Request, failure: ClientError, tries: int, waited: float) -> float:
        """Return the seconds until the next try; raise the failure if they are too many."""
        limit = self._patience(request, failure)
        whole = limit == self.max_wait
        why = f"max_wait = {limit:g} allows no more" if whole else "a greeting waits no longer"
        rest, asked = limit - waited, failure.retry_after or 0.0
        if asked <= rest and rest > 0:
            return min(rest, max(backoff(tries, failure.limited), asked * random.uniform(1, 1.1)))
        text = f"it was waited for {round(waited, 1):g} s"
        if asked > max(rest, 0.0):
            text += f", and it asks for {round(asked, 1):g} s more"
        raise ClientError(
            f"{failure} – {text}: {why}",
            transient=True,
            retry_after=failure.retry_after,
            status=failure.status,
        ) from failure


def backoff(tries: int, limited: bool = False) -> float:
    """Return the seconds before a further try."""
    longest = LONGEST_REFUSED if limited else LONGEST_PAUSE
    return min(longest, FIRST_PAUSE * 2.0 ** min(tries - 1, 10)) * random.uniform(0.5, 1.0)
