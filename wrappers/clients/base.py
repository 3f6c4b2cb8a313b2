"""The interface of clients: messages in, one completion out."""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

from llm_games.errors import BadParameter, LLMGamesError
from llm_games.questions import Question
from llm_games.replies import Finish
from llm_games.view import NOBODY, View, Who
from llm_games.wrappers.clients.chat import Chat, Message

__all__ = ["Chat", "Message"]  # from where they are taken by clients

LEFT = "default"  #: in place of a sampling option: it is left to the server, as by None


def _setting(default: Any, allowed: str, kind: Any = Real, **limits: float) -> Any:
    """Declare an option: what it may be, in words, as a type, and limits by operators' names."""
    return field(default=default, metadata={"allowed": allowed, "kind": kind, "limits": limits})


@dataclass(frozen=True)
class Sampling:
    """Options of a reply's draw; None, or ``"default"``, leaves one to the server.

    A further option is a field here and whatever sends it in a client: policies, the cache's key,
    attempts and experiment files take all fields as they are. BadParameter: one is out of limits.
    """

    temperature: float | None = _setting(1.0, "a number from 0 to 2", ge=0, le=2)
    top_p: float | None = _setting(None, "a number above 0 and at most 1", gt=0, le=1)
    max_tokens: int | None = _setting(None, "an integer of at least 1", Integral, ge=1)
    reasoning_effort: str | None = _setting(None, "a word such as low, medium or high", str)
    stop: Sequence[str] | None = _setting(None, "a list of texts", Sequence)
    extra_body: Mapping[str, Any] | None = _setting(
        None, "a table of JSON values that the server takes, such as {top_k = 5}", Mapping
    )

    def __post_init__(self) -> None:
        for option in fields(self):
            value, how = getattr(self, option.name), option.metadata
            if isinstance(value, str) and value == LEFT:
                value = None
            elif option.name == "stop" and value is not None:
                texts = [value] if isinstance(value, str) else value
                texts = texts if isinstance(texts, Sequence) else [None]
                value = tuple(texts) if all(isinstance(t, str) for t in texts) else ()
            object.__setattr__(self, option.name, value)
            held = isinstance(value, how["kind"]) and not isinstance(value, bool)
            held = held and (not isinstance(value, Mapping) or _is_json(value))
            held = held and all(getattr(operator, op)(value, x) for op, x in how["limits"].items())
            if value is not None and (not held or value in ("", [], ())):
                raise BadParameter(f"{option.name} must be {how['allowed']}, got {value!r}")

    def given(self) -> dict[str, Any]:
        """Return the options that are not left to the server."""
        return {name: value for name, value in vars(self).items() if value is not None}


def _is_json(value: Mapping[str, Any]) -> bool:
    try:
        return bool(json.dumps({**value}, allow_nan=False))
    except (TypeError, ValueError):
        return False


CACHING = ("cache_control", "prompt_cache_key")
"""Options that make a prompt cheaper and change no reply: no cache and no `left_out` knows them."""
USUAL = Sampling()  #: how replies are drawn unless somebody says otherwise


@dataclass(frozen=True)
class Request:
    """One call: a chat, its question, how to sample, and its purpose (see `Attempt`)."""

    messages: Chat
    question: Question | None = None  #: for clients that can constrain answers; else None
    reasoning: bool = False  #: the reply may hold an explanation first
    sampling: Sampling = USUAL
    seed: int = 0
    who: Who = NOBODY
    kind: str = "move"
    tools: tuple[Mapping[str, Any], ...] = ()
    """what may be called natively, each ``{"name", "description", "parameters": JSON schema}``"""
    view: View | None = field(default=None, compare=False, repr=False)
    """what the seat sees, for clients that decide by more than the words"""
    stays: bool = field(default=True, compare=False)
    """the next call of its seat begins with all these messages; else with those before the last"""
    guarded: bool = False  #: `max_tokens` is what a budget has left, and not the player's

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", Chat.of(self.messages))

    @property
    def dialogue(self) -> str:
        """The name of its seat's dialogue, a hash; "" if nobody is named."""
        who = self.who
        name = f"{who.run}/{who.episode}/{who.seed}/{who.seat}"
        return hashlib.sha256(name.encode(errors="replace")).hexdigest()[:32] if who.run else ""

    def schema(self, calls: bool = True) -> dict[str, Any] | None:
        """Return the JSON schema of a legal reply to a question, with or without `calls`."""
        question = self.question if calls else getattr(self.question, "alone", self.question)
        return None if question is None else question.schema(self.reasoning)


@dataclass(frozen=True)
class Completion:
    """One answer as it came. Tokens are as the server counted them, 0 if it did not."""

    text: str
    finish: Finish = "stop"  #: ``length`` when it was cut off, ``refusal`` when declined, ``late``
    tokens_in: int = 0  #: of the prompt, with those `tokens_cached` and `tokens_written`
    tokens_out: int = 0  #: of the reply, with those of thoughts, `tokens_reasoning`
    latency: float = 0.0  #: seconds
    model: str = ""  #: its name as the server gave it
    thoughts: str = ""  #: what the server told of its thoughts, apart from the text
    refusal: str = ""  #: the words of one who declined, where the server tells them apart
    tool_calls: list[dict[str, Any]] | None = None  #: native, each ``{"name", "arguments"}``
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    tokens_written: int = 0  #: of the prompt, put into the server's cache at a price of its own
    left_out: list[str] | None = None  #: options that the server had refused


class ClientError(LLMGamesError):
    """A call that brought no completion.

    A `transient` one may succeed later, after the `retry_after` seconds that the server asked for;
    `status` is the server's. An `unsure` one was sent, and may have been answered and paid for. It
    had `waited` so many seconds for its turn at a server that answered nobody.
    """

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        unsure: bool = False,
    ) -> None:
        super().__init__(message)
        self.transient, self.retry_after, self.status = transient, retry_after, status
        self.unsure, self.waited = unsure, 0.0

    @property
    def limited(self) -> bool:
        """Return whether the server asks for fewer calls."""
        return self.transient and self.status == 429


class ContextOverflow(ClientError):
    """The prompt is too long for the model: a matter of the player's memory, not of the server."""


class Unsent(ClientError):
    """A call that was not made, since all the work that it is a part of has ended meanwhile."""

    def __init__(self) -> None:
        super().__init__("the call was not made: the work that it is a part of has ended")

    def __reduce__(self) -> tuple[Any, ...]:
        return Unsent, ()


class Pending(ClientError):
    """A call in a batch that is not over, or that nobody can look at now: to be asked for later."""


@runtime_checkable
class Client(Protocol):
    """Anything that completes chats. Calls may run concurrently in one event loop."""

    name: str

    async def complete(self, request: Request) -> Completion:
        """Return one completion, or raise a ClientError: none could be had."""
        ...

    async def close(self) -> None:
        """Let go of connections. The client can be used again afterwards."""
        ...


class Layer:
    """Base of clients around a client. They add one thing each, whatever the client is."""

    def __init__(self, client: Client) -> None:
        self.client, self.name = client, client.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.client!r})"

    async def close(self) -> None:
        """Close the client inside."""
        await self.client.close()
