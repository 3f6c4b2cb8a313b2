"""Calls of models that are under way, and an end that throws none of their answers away."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

log = logging.getLogger(__name__)

LONGEST = 600.0  # seconds for which a call is waited for whose client has no limit of its own
GRACE = 1.0  # seconds more than a client's limit: it is to say that time is up


class Flights:
    """The calls of one piece of work, see `drained`.

    Once it ends, by an error or since somebody stops it, no call begins. Those under way are waited
    for, each for its client's time at most, and recorded. Who stops it again cuts them off.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.ended = False
        self.stops = 0
        self.work: asyncio.Task[Any] | None = None
        self._calls: dict[asyncio.Task[Any], float] = {}
        self._since = 0.0

    def __len__(self) -> int:
        return len(self._calls)

    def __str__(self) -> str:
        clock, calls = time.monotonic(), "1 call" if len(self) == 1 else f"{len(self)} calls"
        last_end = max(self._calls.values(), default=clock) - self._since
        return (
            f"stopping: {calls} in flight waited for ({clock - self._since:.0f} s of at most "
            f"{last_end:.0f} s); Ctrl-C{'' if self.stops else ' twice'} cuts them off, though they "
            "are paid for"
        )

    def end(self, error: Exception | None = None) -> None:
        """Let no call begin, and cancel whatever else is waited for."""
        if self.ended:
            return
        self.ended, self.error, self._since = True, error, time.monotonic()
        if self._calls:
            log.warning("%s", self)
        if self.work is not None:
            self.work.cancel()

    def stop(self) -> None:
        """End it; cut off the calls the second time, and what else is waited for the third."""
        self.stops += 1
        if not self.ended:
            self.end()
        elif self.stops == 1:
            if self._calls:
                log.warning("%s", self)
        elif self.stops == 2:
            for call in self._calls:
                call.cancel()
        elif self.work is not None:
            self.work.cancel()

    async def fly(self, call: Coroutine[Any, Any, Any], seconds: float) -> Any:
        """Wait for a call, even if the work has ended meanwhile."""
        task = asyncio.ensure_future(call)
        last = self._calls[task] = time.monotonic() + seconds + GRACE
        try:
            while not task.done():
                remaining = max(0.0, last - time.monotonic()) if self.ended else None
                try:
                    await asyncio.wait([task], timeout=remaining)
                except asyncio.CancelledError:
                    if not self.ended:  # somebody has no more time for this one
                        task.cancel()
                        await asyncio.wait([task])
                        raise
                if self.ended and time.monotonic() >= last:
                    task.cancel()
            return task.result()
        finally:
            del self._calls[task]


_current: ContextVar[Flights | None] = ContextVar("flights", default=None)


def flights() -> Flights | None:
    """Return the calls of the work that is going on, if it is `drained`."""
    return _current.get()


def ended() -> bool:
    """Test whether the present work is ending, so that no call may begin."""
    return (work := _current.get()) is not None and work.ended


async def flown(call: Coroutine[Any, Any, Any], seconds: float) -> Any:
    """Wait for a call; in work that is `drained` also once it ends, unless for 0 seconds."""
    work = _current.get()
    return await (call if work is None or not seconds else work.fly(call, seconds))


def longest(client: Any) -> float:
    """Return the seconds that a call of a client may take, or of the one inside its layers."""
    while (inside := getattr(client, "client", None)) is not None:
        client = inside
    return float(getattr(client, "timeout", None) or LONGEST)


async def drained(work: Coroutine[Any, Any, Any], calls: Flights | None = None) -> Any:
    """Wait for work, then for its calls; cancelling stops it. Raises the first error last."""
    calls = Flights() if calls is None else calls
    if calls.ended:
        work.close()
        raise asyncio.CancelledError
    token = _current.set(calls)
    try:
        task = calls.work = asyncio.ensure_future(work)
    finally:
        _current.reset(token)
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            calls.stop()
    if calls.error is not None:
        _ = task.cancelled() or task.exception()  # it is told once
        raise calls.error
    return task.result()
