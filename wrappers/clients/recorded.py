"""A client that serves recorded completions, so that a run replays without a model."""

from __future__ import annotations

from collections.abc import Iterable

from llm_games.wrappers.clients.base import (
    Chat,
    ClientError,
    Completion,
    ContextOverflow,
    Message,
    Request,
)


class RecordedClient:
    """Serves recorded completions, or overflows, by prompt and seed; the last one of each."""

    def __init__(
        self,
        rows: Iterable[tuple[Iterable[Message], int, Completion | ContextOverflow]],
        name: str = "recorded",
    ) -> None:
        self.name = name
        self._completions = {(Chat.of(chat).digest, seed): reply for chat, seed, reply in rows}

    async def complete(self, request: Request) -> Completion:
        completion = self._completions.get((request.messages.digest, request.seed))
        if completion is None:
            last = request.messages[-1]["content"] if request.messages else ""
            raise ClientError(
                f"{self.name}: none of the {len(self._completions)} recorded completions is for "
                f"this prompt with seed {request.seed}: …{last[-120:]!r}. A replay needs the game, "
                "seeds, prompts and settings of the recorded run"
            )
        if isinstance(completion, ContextOverflow):
            raise ContextOverflow(str(completion))
        return completion

    async def close(self) -> None:
        """Nothing to let go of."""
