"""A client that replies by chance: prompts, readers and records at work without any model."""

from __future__ import annotations

import json

from llm_games.noise import Noise
from llm_games.wrappers.clients.base import Completion, Request


class MockClient:
    """Gives legal replies, drawn by `Question.sample` from the request's seed alone.

    A call that says no question is replied to as to the move that its seat is asked for.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name or "mock"

    async def complete(self, request: Request) -> Completion:
        """Return a legal reply; without any question, a word."""
        question = request.question or (request.view.question if request.view else None)
        if question is None:
            return Completion("Something.", model=self.name)
        text = question.reply(question.sample(Noise(request.seed % 2**64)))
        if request.reasoning:
            text = json.dumps({"explanation": "By chance."})[:-1] + f", {text[1:]}"
        return Completion(text, model=self.name)

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""
