"""A client that gives again what was recorded, so that a run replays without a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from llm_games.wrappers.clients.base import ClientError, Completion, Message, Request


class RecordedClient:
    """Serves recorded completions, or the errors that calls brought, by prompt and seed.

    A later row replaces an earlier one of the same prompt and seed.
    """

    def __init__(
        self,
        rows: Iterable[tuple[Sequence[Message], int, Completion | ClientError]],
        name: str = "recorded",
    ) -> None:
        self.name = name
        self._completions = {_key(messages, seed): found for messages, seed, found in rows}

    async def complete(self, request: Request) -> Completion:
        """Return what was recorded for this prompt and seed."""
        found = self._completions.get(_key(request.messages, request.seed))
        if found is None:
            last = request.messages[-1]["content"] if request.messages else ""
            raise ClientError(
                f"{self.name}: none of the {len(self._completions)} recorded completions is for "
                f"this prompt with seed {request.seed}: …{last[-120:]!r}. A replay needs the game, "
                "seeds, prompts and settings of the recorded run"
            )
        if isinstance(found, ClientError):
            raise ClientError(str(found), transient=found.transient)
        return found

    async def close(self) -> None:
        """Nothing to let go of."""


def _key(messages: Sequence[Message], seed: int) -> bytes:
    chat = [[message["role"], message["content"]] for message in messages]
    return hashlib.sha256(json.dumps([chat, seed]).encode()).digest()
