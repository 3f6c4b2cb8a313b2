"""A layer that makes a call again when its failure may pass."""

from __future__ import annotations

import asyncio
import random

from llm_games.facts import check_integer
from llm_games.wrappers.clients.base import Client, ClientError, Completion, Layer, Request

LONGEST_PAUSE = 120.0
"""Seconds; a server that asks to wait longer ends the call."""
PATIENCE = 600.0
"""Seconds; a call that waited so long in all ends."""


class Retry(Layer):
    """Makes calls again, with pauses that double and vary; ``Retry-After`` is obeyed.

    A server that asks for fewer calls (status 429) is waited for up to `PATIENCE` and does not
    use up the `retries`: a decision should not be lost because a lab's quota is small. Without any
    (0) nothing is tried again.
    """

    def __init__(self, client: Client, retries: int = 3) -> None:
        super().__init__(client)
        check_integer("retries", retries, 0)
        self.retries = retries

    async def complete(self, request: Request) -> Completion:
        """Return one completion; raises the last failure, once trying again is of no use."""
        tries, failures, waited = 0, 0, 0.0
        while True:
            try:
                return await self.client.complete(request)
            except ClientError as error:
                tries += 1
                failures += not error.limited
                asked = error.retry_after or 0.0
                pause = max(_backoff(tries, error.limited), asked * random.uniform(1.0, 1.1))
                waited += pause
                over = failures > self.retries or waited > PATIENCE or asked > LONGEST_PAUSE
                if over or not error.transient or self.retries == 0:
                    raise
            await asyncio.sleep(pause)


def _backoff(tries: int, limited: bool) -> float:
    """Return the pause before a further try: 0.5 s, doubling up to 8 s (60 s), less up to 50 %."""
    longest = 60.0 if limited else 8.0
    return min(longest, 0.5 * 2.0 ** min(tries - 1, 10)) * random.uniform(0.5, 1.0)
