"""Calls that go out together, as a provider's batches at half the price, and are answered later.

A wave is on record before it is sent, so that a run that is killed at any moment finds its batch
again and sends no call twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from math import inf
from secrets import token_hex
from typing import Any, NamedTuple, Protocol, TypeVar

from llm_games.wrappers.clients.base import ClientError, Completion, Pending, Request, Unsent
from llm_games.wrappers.clients.flights import ended
from llm_games.wrappers.clients.retry import GREETING, Retry, Waits, backoff

T = TypeVar("T")

QUIET = 1.0  # seconds without a further call, after which a wave is whole
LOOKS = 1.0, 60.0  # seconds between two looks at a batch: the first, and the most
TRIES = 5  # waves in which a call is made that fails again and again
AT_ONCE = 64  # batches under way, unless fewer are allowed
FEW = 10  # lines of a batch that is not divided any more
QUEUED = 60.0  # seconds before a line comes again for which there was no room in the queue; then 4x
MOST_LINES, MOST_BYTES = 50_000, 180_000_000  # of a batch that every provider takes

asking: ContextVar[str] = ContextVar("asking")
"""The name of the present call, see `line_name`."""


class Line(NamedTuple):
    """A call in a batch; one that was sent before this process began has no `body` any more."""

    name: str
    digest: str  # of the body
    body: bytes = b""
    betas: str = ""  # names of what its provider is still trying out
    refused: frozenset[str] = frozenset()  # options that its client had learned to leave out


def line_name(request: Request) -> str:
    """Return the name of a call: episode, step, seat, number, and a digest of what is asked."""
    who, asked = request.who, request.messages.digest + str(request.seed).encode()
    digest = hashlib.sha256(asked).hexdigest()[:12]
    return f"{who.episode}-{who.step}-{who.seat}-{who.call}-{digest}"


def line_of(body: bytes, betas: str, refused: Iterable[str]) -> Line:
    """Return the present call as a line."""
    digest = hashlib.sha256(body).hexdigest()[:16]
    return Line(asking.get(), digest, body, betas, frozenset(refused))


class LineAnswer(NamedTuple):
    """What would have come to a call of its own."""

    status: int
    content: bytes


class BatchResults(NamedTuple):
    """The answers of a batch by the lines' names; lines without one have the answer `rest`."""

    answers: dict[str, LineAnswer]
    rest: LineAnswer


@dataclass
class Wave:
    """The lines of one batch; `batch` is its id at the provider, once that is known."""

    name: str = field(default_factory=lambda: token_hex(6))
    lines: dict[str, Line] = field(default_factory=dict)
    began: float = field(default_factory=time.time)
    batch: str = ""
    run: str = ""  # its title
    size: int = 0  # bytes
    on_record: bool = False
    tries: int = 0  # to send it
    ends: asyncio.Future[BatchResults | None] | None = None

    @property
    def full(self) -> bool:
        return len(self.lines) >= MOST_LINES or self.size >= MOST_BYTES

    def custom_id(self, line: str) -> str:
        """Return what a line is called at the provider: at most 64 letters, digits and dashes."""
        return f"{self.name}-{line}"


class WaveJournal(Protocol):
    """Waves of one model in the file of a run."""

    title: str
    """The run's."""

    def waves(self) -> list[Wave]:
        """Return those with lines whose answers are not booked."""
        ...

    def refused(self) -> set[str]:
        """Return the options that clients had learned to leave out."""
        ...

    async def enter(self, wave: Wave) -> None:
        """Enter a wave and its lines, and wait until that is safe."""
        ...

    async def note_batch(self, wave: Wave) -> None:
        """Enter a wave's id at the provider, and wait until that is safe."""
        ...


class BatchService(Protocol):
    """A provider's interface for batches. What it raises, `failure` makes a ClientError of."""

    async def greet(self) -> None:
        """Ask for what costs nothing: the model, and whether there are batches."""
        ...

    async def create(self, wave: Wave) -> str:
        """Send a wave; return the batch's id."""
        ...

    async def find(self, wave: Wave) -> str:
        """Return the id of a wave that was sent, "" if there is none."""
        ...

    async def over(self, wave: Wave) -> bool:
        """Test whether nothing more is to come."""
        ...

    async def results(self, wave: Wave) -> BatchResults:
        """Return the answers of a batch that is over."""
        ...

    def failure(self, error: Exception) -> ClientError | None:
        """Return an error of the interface as one of a call; None if it is something else."""
        ...


class Waves:
    """The calls of one model, wave by wave.

    All calls until nobody has made one for `QUIET` seconds are a wave, and a batch unless it is too
    large for one. At most `most` batches are under way; who comes meanwhile joins the next. A
    server that does not answer is asked for `max_wait` seconds, as by `Retry`.
    """

    def __init__(self, client: Any, most: int, max_wait: float, waits: Waits) -> None:
        self.service: BatchService = client.batches()
        self.model, self.server = client.name, client.base_url
        self.most, self.max_wait, self.waits = most, max_wait, waits
        self.clients: list[Any] = []
        self.journal: WaveJournal | None = None
        self._recorded: dict[str, Wave] = {}  # by their lines' names
        self._unsent: list[Wave] = []  # those before the last one are full
        self._tasks: dict[str, asyncio.Task[None]] = {}  # of waves under way, by name
        self._timer: asyncio.TimerHandle | None = None

    def go_on(self, journal: WaveJournal) -> None:
        """Keep waves there from now on; those that are there are not sent again."""
        self.journal = journal
        self._recorded = {line: wave for wave in journal.waves() for line in wave.lines}
        for client in self.clients:
            client.leave_out_also(journal.refused())

    async def greet(self) -> None:
        """Raise a ClientError if the model, or batches of it, cannot be had."""
        await self._patiently(self.service.greet, GREETING)

    async def answer(self, line: Line) -> LineAnswer:
        """Return the answer to a line, out of a wave on record or the next one."""
        if self.journal is None:
            raise ClientError("batches are for runs, which keep record of them: leave out batch")
        if (wave := self._recorded.pop(line.name, None)) is not None:
            sent = wave.lines[line.name]
            results = await asyncio.shield(self._started(wave))
            answer = results and results.answers.get(line.name, results.rest)
            # Was it refused for an option that is left out by now, then this one was never sent.
            if answer and (answer.status < 400 or sent.digest == line.digest):
                return answer
        wave = self._joined(line)
        assert wave.ends is not None
        try:
            results = await asyncio.shield(wave.ends)
        except asyncio.CancelledError:
            if wave.on_record:
                raise
            wave.lines.pop(line.name, None)
            raise Unsent() from None
        assert results is not None
        return results.answers.get(line.name, results.rest)

    async def close(self) -> None:
        """Leave batches to themselves."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- waves --------------------------------------------------------------------------------
    def _joined(self, line: Line) -> Wave:
        """Add a line to the wave that is sent next."""
        if not self._unsent or self._unsent[-1].full:
            self._unsent.append(Wave(ends=asyncio.get_running_loop().create_future()))
        wave = self._unsent[-1]
        wave.lines[line.name] = line
        wave.size += len(line.body)
        self._wait()
        return wave

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(QUIET, self._quiet, loop.time() + QUIET)

    def _quiet(self, due: float) -> None:
        """Send what there is, unless the process was busy: others may be about to call."""
        if asyncio.get_running_loop().time() - due > QUIET / 4:
            self._wait()
            return
        self._timer = None
        self._send()

    def _send(self) -> None:
        while self._unsent and len(self._tasks) < self.most:
            wave = self._unsent.pop(0)
            if wave.lines:  # else all who asked are gone
                self._started(wave)

    def _started(self, wave: Wave) -> asyncio.Future[BatchResults | None]:
        """Return the end of a wave, which is under way from now on."""
        if wave.ends is None:
            wave.ends = asyncio.get_running_loop().create_future()
        if wave.name not in self._tasks and not wave.ends.done():
            self._tasks[wave.name] = asyncio.create_task(self._carry(wave, wave.ends))
        return wave.ends

    async def _carry(self, wave: Wave, ends: asyncio.Future[BatchResults | None]) -> None:
        try:
            results = await self._results(wave)
        except Exception as error:
            ends.set_exception(error)
            ends.exception()  # who waits is told; perhaps nobody does any more
        else:
            ends.set_result(results)
        del self._tasks[wave.name]
        if self._timer is None:  # else there may be more to come
            self._send()

    async def _results(self, wave: Wave) -> BatchResults | None:
        """Return a wave's answers; None if it is on record and was never sent."""
        assert self.journal is not None
        if not wave.on_record:
            wave.on_record, wave.run = True, self.journal.title
            await self.journal.enter(wave)
            try:
                wave.batch = await self._patiently(lambda: self._created(wave))
            except ClientError as failure:
                refused = failure.status is not None and failure.status < 500
                raise failure if refused and wave.tries == 1 else _pending(wave, failure) from None
            await self.journal.note_batch(wave)
        try:
            if not wave.batch:
                if not (batch := await self._patiently(lambda: self.service.find(wave))):
                    return None
                wave.batch = batch
                await self.journal.note_batch(wave)
            pause, longest = LOOKS
            while not await self._patiently(lambda: self.service.over(wave)):
                await asyncio.sleep(pause)
                pause = min(longest, 1.5 * pause)
            results = await self._patiently(lambda: self.service.results(wave))
        except ClientError as failure:
            raise _pending(wave, failure) from None
        lines = [line for line in wave.lines.values() if line.body]
        if results.rest.status != 429 or results.answers or len(lines) < FEW:
            return results
        return await self._in_halves(lines)

    async def _in_halves(self, lines: Sequence[Line]) -> BatchResults:
        """Send what was too much for the provider's queue, one half after the other."""
        half, whole = len(lines) // 2, BatchResults({}, LineAnswer(429, b""))
        for part in (lines[:half], lines[half:]):
            results = await self._results(Wave(lines={line.name: line for line in part}))
            assert results is not None
            for line in part:
                whole.answers[line.name] = results.answers.get(line.name, results.rest)
        return whole

    async def _created(self, wave: Wave) -> str:
        """Send a wave, unless it came to the server by an earlier try."""
        wave.tries += 1
        if wave.tries > 1 and (batch := await self.service.find(wave)):
            return batch
        return await self.service.create(wave)

    async def _patiently(self, work: Callable[[], Awaitable[T]], most: float = inf) -> T:
        """Ask the server for something, again and again while it does not answer."""
        limit = min(most, self.max_wait)
        since: float | None = None
        for tries in count(1):
            try:
                return await work()
            except Exception as error:
                failure = self._failure(error)
            since = time.monotonic() if since is None else since
            pause = max(backoff(tries, failure.limited), failure.retry_after or 0.0)
            if not failure.transient or time.monotonic() + pause - since > limit:
                raise failure from None
            with self.waits.on(self.server, limit) as wait:
                wait.why = str(failure)
                await asyncio.sleep(pause)
        raise AssertionError

    def _failure(self, error: Exception) -> ClientError:
        failure = self.service.failure(error)
        if failure is None:
            raise error
        return failure


class WaveRetry(Retry):
    """Makes a call again in a later wave, in `TRIES` waves at most: their hours say nothing."""

    async def complete(self, request: Request) -> Completion:
        """Return one completion, or raise the ClientError of the last try."""
        for tries in count(1):
            try:
                return await self.client.complete(request)
            except ClientError as error:
                if not error.transient:
                    raise
                failure = error
            if tries == TRIES:
                raise ClientError(
                    f"{failure} – so it was in each of {TRIES} batches", status=failure.status
                ) from failure
            if ended():
                raise asyncio.CancelledError from failure
            if failure.limited:
                with self.waits.on(self.server, QUEUED * 4 ** (tries - 1)) as wait:
                    wait.why = str(failure)
                    await asyncio.sleep(wait.limit)
        raise AssertionError


def _pending(wave: Wave, failure: ClientError) -> Pending:
    batch = f"batch {wave.batch}" if wave.batch else "a batch that may have been sent"
    return Pending(f"{failure} – {batch} is on record, and its answers are looked for on resuming")


def waves_of(client: Any) -> Waves | None:
    """Return by which waves a client's calls go out; None: by none."""
    while (inside := getattr(client, "client", None)) is not None:
        client = inside
    return getattr(client, "waves", None)
