"""Concurrent waiting in which the first error stops all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from llm_games.errors import BadParameter
from llm_games.wrappers.clients.base import ClientError
from llm_games.wrappers.clients.flights import Flights, drained, ended, flights

LAST = 1.0  # seconds for which work is waited for that was interrupted three times
FEW = 16  # of many, so many begin before others, which prepare theirs meanwhile
_background: list[tuple[threading.Thread, asyncio.AbstractEventLoop]] = []
_starting = threading.Lock()


async def together(work: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Wait for all at the same time and return what they give.

    The first error stops all others, and comes out once they have stopped; where calls are
    `drained`, it ends all that work. A ClientError: one was cancelled which nobody stopped.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = []
            for coroutine in work:
                tasks.append(group.create_task(ending(coroutine)))
                if len(tasks) % FEW == 0:
                    await asyncio.sleep(0)
    except BaseExceptionGroup as errors:
        raise first(errors) from None
    try:
        return [task.result() for task in tasks]
    except asyncio.CancelledError as error:  # a task group takes it for one that is not needed
        if ended():
            raise
        notes = " ".join(getattr(error, "__notes__", ()))
        raise ClientError(f"a player was cancelled by its own code {notes}".rstrip()) from error


def ending(work: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
    """Return work whose error ends all that it is a part of, where calls are `drained`."""
    return work if (whole := flights()) is None else _ending(work, whole)


async def _ending(work: Coroutine[Any, Any, Any], whole: Flights) -> Any:
    try:
        return await work
    except Exception as error:
        whole.end(error)
        raise


def first(error: BaseException) -> BaseException:
    """Return the first error of a group, or the error itself."""
    return first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def at_once(work: Coroutine[Any, Any, Any]) -> Any:
    """Return the outcome of a coroutine without an event loop; BadParameter if it waits at all."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    name = getattr(work, "__qualname__", "a policy")
    raise BadParameter(f"{name} waits for something: its policy needs a decide of its own")


def run_sync(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine from synchronous code and return its result.

    One event loop in a thread of its own does it, so that it works inside a running loop and
    clients keep their connections. Ctrl-C waits for calls, see `Flights`.
    """
    with _starting:
        # In a forked process the thread is gone, and another one is started.
        if not _background or not _background[0][0].is_alive():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="llm-games", daemon=True)
            thread.start()
            _background[:] = [(thread, loop)]
        thread, loop = _background[0]
    if thread is threading.current_thread():  # asked from within: waiting here would block it
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, work).result()
    calls = Flights()
    future = asyncio.run_coroutine_threadsafe(drained(work, calls), loop)
    return waited(future, lambda: loop.call_soon_threadsafe(calls.stop))


def waited(future: Future[Any], stop: Callable[[], Any]) -> Any:
    """Return the result of work in another thread, which interrupts stop; the third leaves it."""
    interrupted: list[BaseException] = []
    while True:
        is_last_wait = len(interrupted) >= 3
        try:
            outcome = future.result(LAST if is_last_wait else None)
        except BaseException as error:
            if interrupted and (is_last_wait or future.done()):
                raise interrupted[0] from None
            if future.done():
                raise
            interrupted.append(error)
            stop()
        else:
            return outcome
