"""What a client is: messages in, one completion out."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

from llm_games.errors import BadParameter, LLMGamesError
from llm_games.questions import Question
from llm_games.replies import Finish
from llm_games.view import NOBODY, Who

Message = dict[str, str]


def _setting(default: Any, allowed: str, **limits: float) -> Any:
    """Declare a setting: what it may be, in words and as limits with pydantic's names."""
    return field(default=default, metadata={"allowed": allowed, "limits": limits})


@dataclass(frozen=True)
class Sampling:
    """How a reply is drawn; None leaves a setting to the server.

    A further setting is a field here and whatever sends it in a client: policies, the cache's key,
    attempts and experiment files take all fields as they are. BadParameter: one is out of limits.
    """

    temperature: float | None = _setting(1.0, "a number from 0 to 2", ge=0, le=2)
    top_p: float | None = _setting(None, "a number above 0 and at most 1", gt=0, le=1)
    max_tokens: int | None = _setting(None, "an integer of at least 1", ge=1)

    def __post_init__(self) -> None:
        """Check the values."""
        for one in fields(self):
            value, kind = getattr(self, one.name), Integral if "int" in str(one.type) else Real
            plain, limits = isinstance(value, kind), one.metadata["limits"].items()
            held = plain and all(getattr(operator, how)(value, limit) for how, limit in limits)
            if value is not None and (isinstance(value, bool) or not held):
                raise BadParameter(f"{one.name} must be {one.metadata['allowed']}, got {value!r}")

    def given(self) -> dict[str, Any]:
        """Return the settings that are not left to the server."""
        return {name: value for name, value in vars(self).items() if value is not None}


USUAL = Sampling()
"""How replies are drawn unless somebody says otherwise."""


@dataclass(frozen=True)
class Request:
    """One call: a chat, what a legal answer is, how to sample, and what for (see `Attempt`)."""

    messages: tuple[Message, ...]
    """each ``{"role": "system" | "user" | "assistant", "content": …}``"""
    question: Question | None = None
    """for clients that can constrain their answers; None for free text"""
    reasoning: bool = False
    """the reply may hold an explanation first"""
    sampling: Sampling = USUAL
    seed: int = 0
    who: Who = NOBODY
    kind: str = "move"

    def schema(self) -> dict[str, Any] | None:
        """Return the JSON schema of a legal reply, if a question is known."""
        return None if self.question is None else self.question.schema(self.reasoning)


@dataclass(frozen=True)
class Completion:
    """One answer. `finish` is ``"length"`` when it was cut off, ``"refusal"`` when declined."""

    text: str
    finish: Finish = "stop"
    tokens_in: int = 0
    tokens_out: int = 0
    latency: float = 0.0
    model: str = ""


class ClientError(LLMGamesError):
    """A call that brought no completion.

    A `transient` one may succeed later, after the `retry_after` seconds that the server asked for;
    `status` is the server's HTTP status. One that `may_cost` the server may have worked on.
    """

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        may_cost: bool = False,
    ) -> None:
        super().__init__(message)
        self.transient, self.retry_after = transient, retry_after
        self.status, self.may_cost = status, may_cost

    @property
    def limited(self) -> bool:
        """Return whether the server asks for fewer calls."""
        return self.transient and self.status == 429


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
