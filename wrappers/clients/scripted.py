"""A client whose answers are written down: a function, or a list of replies."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from llm_games.wrappers.clients.base import ClientError, Completion, Request

Answer = str | Completion
Script = Callable[[Request], Answer | Awaitable[Answer]] | Iterable[Answer]


class ScriptedClient:
    """Answers from a function of the request, sync or async, or from replies in a row.

    The function may raise `ClientError`; any other error in it comes out as itself.
    """

    def __init__(self, script: Script, name: str = "scripted") -> None:
        self.name = name
        self._script: Any = script if callable(script) else iter(script)

    async def complete(self, request: Request) -> Completion:
        try:
            answer = self._script(request) if callable(self._script) else next(self._script)
            if inspect.isawaitable(answer):
                answer = await answer
        except StopIteration:
            fault = "the scripted replies are used up: give more of them, or a function"
            raise ClientError(fault) from None
        if isinstance(answer, Completion):
            return answer
        if isinstance(answer, str):
            return Completion(answer, model=self.name)
        raise ClientError(
            f"{self.name}: the script must give a str or a Completion, not {type(answer).__name__}"
        )

    async def close(self) -> None:
        """Nothing to let go of."""
