"""What a client is: messages in, one completion out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from llm_games.errors import LLMGamesError
from llm_games.questions import Question
from llm_games.replies import Finish

Message = dict[str, str]


@dataclass(frozen=True)
class Request:
    """One call: a chat, what a legal answer is, and how to sample.

    Attributes:
        messages: each ``{"role": "system" | "user" | "assistant", "content": …}``.
        question: what is asked, for clients that can constrain their answers; None for free text.
        reasoning: the reply may hold an explanation first.
        temperature, top_p, max_tokens: sampling; None leaves it to the server.
        seed: sampling seed, for servers that take one.
        seat: who asks, such as ``"public_goods/3/player_0"``; for logs and scripted clients.
        kind: what for, see `Attempt`.
    """

    messages: tuple[Message, ...]
    question: Question | None = None
    reasoning: bool = False
    temperature: float | None = 1.0
    max_tokens: int | None = None
    seed: int = 0
    seat: str = ""
    kind: str = "move"
    top_p: float | None = None

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

    Attributes:
        transient: True if the same call may succeed later.
        retry_after: seconds the server asked to wait, if it did.
        status: the server's HTTP status; None if there was none.
        may_cost: the server may have worked on the call, and so may charge for it.
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
        """Return one completion.

        Raises:
            ClientError: none could be had.
        """
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
