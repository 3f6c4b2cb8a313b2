"""Several things waited for at the same time, where the first error stops all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from llm_games.errors import BadParameter
from llm_games.wrappers.clients.base import ClientError
from llm_games.wrappers.flights import Flights, ended, flights

FEW = 16
"""Of many, so many begin before others: their calls are on the way while those prepare theirs."""


async def together(work: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Wait for all at the same time and return what they give.

    The first error stops all others, and comes out as itself once they have stopped; where calls
    are `drained`, it ends all that work. A ClientError says that one was cancelled which nobody
    stopped; the others were waited for.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = []
            for one in work:
                tasks.append(group.create_task(ending(one)))
                if len(tasks) % FEW == 0:
                    await asyncio.sleep(0)
    except BaseExceptionGroup as errors:
        raise first(errors) from None
    try:
        return [task.result() for task in tasks]
    except asyncio.CancelledError as error:  # a task group takes it for one that is not needed
        if ended():
            raise
        where = " ".join(getattr(error, "__notes__", ()))
        raise ClientError(f"a player was cancelled by its own code {where}".rstrip()) from error


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
    """Return what a coroutine gives that waits for nothing, without an event loop.

    One that does wait raises BadParameter.
    """
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    name = getattr(work, "__qualname__", "a policy")
    raise BadParameter(f"{name} waits for something: its policy needs a decide of its own")
