"""Users' own code in a seat: a policy, a client, or a plain function in place of one."""

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

ANSWERED = "You answered: "  #: stands before own answers where a chat is one text
PLAYER = (
    "a player is a name such as 'rational', a Policy, a client, or a function of (observation) or "
    "(observation, view)"
)
CLIENT = "a client has a name, complete and close, or is a function of (request)"


def player_of(player: Any, name: str = "") -> Policy | Client:
    """Return the policy that something is, else the client to seat a model with, or BadParameter.

    A class is called without arguments. A function is an `Agent`, which is asked like a model.
    """
    player = _instance(player, PLAYER)
    if isinstance(player, Policy):
        return player
    return Own(player if isinstance(player, Client) else Agent(player, name or label_of(player)))


def client_of(client: Any) -> Client:
    """Return the client that something, or ``module:Name``, is or makes; errors of `player_of`."""
    name = client if isinstance(client, str) else label_of(client)
    client = named(client, "client") if isinstance(client, str) else client
    if not isinstance(client, Client) and not iscoroutinefunction(client) and _takes(client):
        client = client()
    client = _instance(client, CLIENT)
    return Own(client if isinstance(client, Client) else Function(client, name))


def asks(candidate: Any) -> bool:
    """Test whether a player is asked like a language model."""
    kind = candidate if isinstance(candidate, type) else type(candidate)
    return not issubclass(kind, Policy)


def label_of(target: Any) -> str:
    """Return a name for an object: its own, or that of its class."""
    for name in ("name", "__name__"):
        if isinstance(label := getattr(target, name, None), str):
            return label
    return type(target).__name__


class Function:
    """A function in place of a client: `function(request)` returns a text or a `Completion`.

    An async one is awaited; calls of any other are made one after another in a thread.
    """

    wanted = CLIENT

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name = function, name
        self._begin()
        self.keywords = self._keywords()
        if not _takes(function, None, **dict.fromkeys(self.keywords)):
            raise BadParameter(f"{name!r} cannot be called so: {self.wanted}")

    def _begin(self) -> None:
        self._process, self._thread = os.getpid(), ThreadPoolExecutor(1, self.name)

    def _keywords(self) -> tuple[str, ...]:
        """Return the keywords that it takes beside the first argument."""
        return ()

    def _arguments(self, request: Request) -> tuple[Any, dict[str, Any]]:
        return request, {}

    async def complete(self, request: Request) -> Completion:
        """Return the function's answer; `BadParameter` if it is of no known kind."""
        first, extra = self._arguments(request)
        if iscoroutinefunction(self.function):
            answer = await self.function(first, **extra)
        else:  # it may wait for something, or run an event loop of its own
            loop = asyncio.get_running_loop()
            if self._process != os.getpid():  # threads stay behind when a process forks
                self._begin()
            answer = await loop.run_in_executor(self._thread, self._call, flights(), first, extra)
            answer = await answer if isawaitable(answer) else answer
        if isinstance(answer, Completion):
            return answer
        return Completion(_text(answer, request.question, self.name), model=self.name)

    def _call(self, work: Flights | None, first: Any, extra: dict[str, Any]) -> Any:
        if work is not None and work.ended:  # while this call stood in line for the thread
            raise Unsent
        try:
            return self.function(first, **extra)
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

    `observation` is one text: the rules, what the dialogue holds, and what is asked now; `view` the
    same as numbers (None for a question beside the game). Returned is a reply as a model writes it,
    its JSON as a dict, a move in the game's own units (an int, or a tuple of them), or a
    `Completion`, for tokens to be booked.
    """

    wanted = PLAYER

    def _keywords(self) -> tuple[str, ...]:
        return ("view",) if _takes(self.function, None, view=None) else ()

    def _arguments(self, request: Request) -> tuple[Any, dict[str, Any]]:
        marks = {"assistant": ANSWERED}
        lines = (marks.get(m["role"], "") + m["content"] for m in request.messages)
        return "\n\n".join(lines), dict.fromkeys(self.keywords, request.view)


class Own(Layer):
    """Somebody's own client, which is asked about games only; it is where the one inside is."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        *_, inside = layers(client)
        shown = ("base_url", "path", "provider", "leave_out", "max_tokens")  # to layers around it
        vars(self).update({name: getattr(inside, name) for name in shown if hasattr(inside, name)})

    async def complete(self, request: Request) -> Completion:
        """Complete; `BadParameter` if that is not what comes back."""
        reply = await self.client.complete(request)
        if not isinstance(reply, Completion) or not isinstance(reply.text, str):
            raise BadParameter(f"{self.name!r} must return a Completion of a text, got {reply!r}")
        return reply


def _instance(candidate: Any, wanted: str) -> Any:
    """Call a class without arguments; check that something could take a seat."""
    if isinstance(candidate, type):
        if lacks := sorted(getattr(candidate, "__abstractmethods__", ())):
            raise BadParameter(f"{candidate.__name__} lacks {', '.join(lacks)}: {wanted}")
        if not _takes(candidate):
            way = f"give one that is made, such as NAME = {candidate.__name__}(...)"
            raise BadParameter(f"{candidate.__name__} is made with arguments: {way}")
        candidate = candidate()
    if not isinstance(candidate, Policy | Client) and not callable(candidate):
        raise BadParameter(f"{candidate!r} takes no seat: {wanted}")
    return candidate


def _takes(function: Any, *arguments: Any, **keywords: Any) -> bool:
    """Test whether a function takes these arguments, as far as its signature tells."""
    try:
        signature(function).bind(*arguments, **keywords)
    except TypeError:
        return False
    except ValueError:  # written in C
        return True
    return True


def _text(reply: Any, question: Question | None, name: str) -> str:
    """Return a function's output as the text of a reply."""
    if isinstance(reply, str):
        return reply
    if isinstance(reply, Mapping):
        with suppress(AttributeError, TypeError, ValueError):
            return json.dumps(dict(reply), allow_nan=False, default=lambda value: value.tolist())
    reply = reply.tolist() if hasattr(reply, "tolist") else reply  # of NumPy, or of torch
    numbers = reply if isinstance(reply, tuple | list) else [reply]
    whole = all(isinstance(n, Integral) and not isinstance(n, bool) for n in numbers)
    if question is None or not whole:
        raise BadParameter(
            f"{name!r} returned {reply!r}: it must return a text, the JSON of an answer as a dict, "
            "or a move: an int, or a tuple of them"
        )
    move = tuple(map(int, numbers)) if numbers is reply else int(reply)
    try:
        return question.reply(move)
    except (LookupError, StopIteration, TypeError, ValueError):  # no move here: it is told so
        return json.dumps({question.key: move})
