"""Somebody's own code in a seat: a policy, a client, or a plain function in place of one."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from inspect import isawaitable, iscoroutinefunction, signature
from numbers import Integral
from typing import Any

from llm_games.errors import BadParameter
from llm_games.import_names import named
from llm_games.questions import Question
from llm_games.wrappers.clients.base import Client, Completion, Layer, Request, Unsent
from llm_games.wrappers.clients.flights import Flights, flights
from llm_games.wrappers.clients.stack import layers
from llm_games.wrappers.policy import Policy

ANSWERED = "You answered: "
"""Stands before own answers where a chat is one text."""
PLAYER = (
    "a player is a name such as 'rational', a Policy, a client, or a function of (observation) or "
    "(observation, view)"
)
CLIENT = "a client has a name, complete and close, or is a function of (request)"


def player_of(thing: Any, name: str = "") -> Policy | Client:
    """Return the policy that something is, else the client to seat a model with.

    A class is called without arguments. A function is an `Agent`, which is asked like a model.

    Raises:
        BadParameter: it is none of these.
    """
    thing = _made(thing, PLAYER)
    if isinstance(thing, Policy):
        return thing
    return Own(thing if isinstance(thing, Client) else Agent(thing, name or label_of(thing)))


def client_of(thing: Any) -> Client:
    """Return the client that something is: one, what makes one without arguments, or a function.

    ``module:Name`` may stand for it. Errors as of `player_of`.
    """
    name = thing if isinstance(thing, str) else label_of(thing)
    thing = named(thing, "client") if isinstance(thing, str) else thing
    if not isinstance(thing, Client) and not iscoroutinefunction(thing) and _takes(thing):
        thing = thing()
    thing = _made(thing, CLIENT)
    return Own(thing if isinstance(thing, Client) else Function(thing, name))


def asks(thing: Any) -> bool:
    """Return whether something in a seat is asked like a language model."""
    return not isinstance(thing, Policy) and not (
        isinstance(thing, type) and issubclass(thing, Policy)
    )


def label_of(thing: Any) -> str:
    """Return what to call an object."""
    for name in ("name", "__name__"):
        if isinstance(found := getattr(thing, name, None), str):
            return found
    return type(thing).__name__


class Function:
    """A function in place of a client: `function(request)` returns a text or a `Completion`.

    An async one is awaited; calls of any other are made one after another in a thread.
    """

    wanted = CLIENT

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name = function, name
        self._begin()
        self.more = self._more()
        if not _takes(function, None, **dict.fromkeys(self.more)):
            raise BadParameter(f"{name!r} cannot be called so: {self.wanted}")

    def _begin(self) -> None:
        """Take a new thread."""
        self._process, self._thread = os.getpid(), ThreadPoolExecutor(1, self.name)

    def _more(self) -> tuple[str, ...]:
        """Return which arguments it takes beside the first."""
        return ()

    def _given(self, request: Request) -> tuple[Any, dict[str, Any]]:
        return request, {}

    async def complete(self, request: Request) -> Completion:
        """Return what the function says; `BadParameter` if that is no answer of any kind."""
        first, more = self._given(request)
        if iscoroutinefunction(self.function):
            said = await self.function(first, **more)
        else:  # it may wait for something, or run an event loop of its own
            loop = asyncio.get_running_loop()
            if self._process != os.getpid():  # threads stay behind when a process forks
                self._begin()
            said = await loop.run_in_executor(self._thread, self._call, flights(), first, more)
            said = await said if isawaitable(said) else said
        if isinstance(said, Completion):
            return said
        return Completion(_text(said, request.question, self.name), model=self.name)

    def _call(self, work: Flights | None, first: Any, more: dict[str, Any]) -> Any:
        if work is not None and work.ended:  # while this call stood in line for the thread
            raise Unsent
        try:
            return self.function(first, **more)
        except StopIteration as error:  # which no future can hold
            raise RuntimeError(f"{self.name!r} raised StopIteration") from error

    def __reduce__(self) -> tuple[Any, ...]:  # a thread cannot be pickled
        return type(self), (self.function, self.name)

    async def close(self) -> None:
        """Let the thread go, once a call has ended that is being made."""
        self._thread.shutdown(wait=False)
        self._begin()


class Agent(Function):
    """A function as a player: `function(observation)`, or `function(observation, view=view)`.

    `observation` is one text: the rules, what the dialogue holds, and what is asked now. `view` is
    the same as numbers (None for a question beside the game), for functions with an argument of
    that name. Returned is a reply as a model writes it, its JSON as a dict, a move in the game's
    own units (an int, or a tuple of them), or a `Completion`, for tokens to be booked.
    """

    wanted = PLAYER

    def _more(self) -> tuple[str, ...]:
        return ("view",) if _takes(self.function, None, view=None) else ()

    def _given(self, request: Request) -> tuple[Any, dict[str, Any]]:
        said = (
            f"{ANSWERED}{m['content']}" if m["role"] == "assistant" else m["content"]
            for m in request.messages
        )
        return "\n\n".join(said), dict.fromkeys(self.more, request.view)


class Own(Layer):
    """Somebody's own client, which is asked about games only; it is where the one inside is."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        *_, inside = layers(client)
        shown = ("base_url", "path", "provider", "leave_out", "max_tokens")  # to layers around it
        vars(self).update({name: getattr(inside, name) for name in shown if hasattr(inside, name)})

    async def complete(self, request: Request) -> Completion:
        """Complete; `BadParameter` if that is not what comes back."""
        found = await self.client.complete(request)
        if not isinstance(found, Completion) or not isinstance(found.text, str):
            raise BadParameter(f"{self.name!r} must return a Completion of a text, got {found!r}")
        return found


def _made(thing: Any, wanted: str) -> Any:
    """Call a class without arguments; check that something could take a seat."""
    if isinstance(thing, type):
        if lacks := sorted(getattr(thing, "__abstractmethods__", ())):
            raise BadParameter(f"{thing.__name__} lacks {', '.join(lacks)}: {wanted}")
        if not _takes(thing):
            raise BadParameter(
                f"{thing.__name__} is made with arguments: give one that is made, "
                f"such as NAME = {thing.__name__}(...)"
            )
        thing = thing()
    if not isinstance(thing, Policy | Client) and not callable(thing):
        raise BadParameter(f"{thing!r} takes no seat: {wanted}")
    return thing


def _takes(function: Any, *arguments: Any, **more: Any) -> bool:
    """Return whether something can be called so, as far as it tells."""
    try:
        signature(function).bind(*arguments, **more)
    except TypeError:
        return False
    except ValueError:  # written in C
        return True
    return True


def _text(said: Any, question: Question | None, name: str) -> str:
    """Write what a function returned as a reply."""
    if isinstance(said, str):
        return said
    if isinstance(said, Mapping):
        with suppress(AttributeError, TypeError, ValueError):
            return json.dumps(dict(said), allow_nan=False, default=lambda value: value.tolist())
    said = said.tolist() if hasattr(said, "tolist") else said  # of NumPy, or of torch
    numbers = said if isinstance(said, tuple | list) else [said]
    if question is None or not all(
        isinstance(one, Integral) and not isinstance(one, bool) for one in numbers
    ):
        raise BadParameter(
            f"{name!r} returned {said!r}: it must return a text, the JSON of an answer as a dict, "
            "or a move: an int, or a tuple of them"
        )
    move = tuple(map(int, numbers)) if numbers is said else int(said)
    try:
        return question.reply(move)
    except (LookupError, StopIteration, TypeError, ValueError):  # no move here: it is told so
        return json.dumps({question.key: move})
