"""The tiny model as a client: simultaneous calls are answered in one batch."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from llm_games.baselines.tiny.chat_template import render
from llm_games.baselines.tiny.runtime import WEIGHTS, Ask, SampledText, TinyLM
from llm_games.questions import Question
from llm_games.schemas import beginnings
from llm_games.wrappers.clients.base import Completion, Request

ROWS = 64  # most replies that are sampled together
THOUGHT = 240  # most characters of an explanation before a constrained answer
MAX_TOKENS = 400  # of a reply where the request names no limit


class Batcher:
    """Runs simultaneous requests of an event loop in a worker thread, batch by batch."""

    def __init__(self, model: TinyLM) -> None:
        self.model = model
        self._waiting: list[tuple[Ask, asyncio.Future[SampledText]]] = []
        self._runner: asyncio.Task[None] | None = None

    def __reduce__(self) -> tuple[Any, ...]:  # who waits belongs to an event loop of this process
        return Batcher, (self.model,)

    async def reply(self, ask: Ask) -> SampledText:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[SampledText] = loop.create_future()
        if self._runner is None or self._runner.done():
            self._waiting = []  # what a closed event loop may have left
            self._runner = loop.create_task(self._run())
        self._waiting.append((ask, future))
        return await future

    async def _run(self) -> None:
        await asyncio.sleep(0)  # let everybody speak who is about to
        while self._waiting:
            batch = [(ask, future) for ask, future in self._waiting[:ROWS] if not future.done()]
            self._waiting, replies = self._waiting[ROWS:], list[Any]()
            try:
                replies = await asyncio.to_thread(self.model.generate, [ask for ask, _ in batch])
            except Exception as error:  # handed to those who asked
                replies = [error] * len(batch)
            for (_, future), reply in zip(batch, replies, strict=True):
                if not future.done():
                    failed = isinstance(reply, Exception)
                    (future.set_exception if failed else future.set_result)(reply)


class TinyClient:
    """The embedded model as a `Client`; if `constrained`, it replies legally to known questions.

    `weights` is a folder in Hugging Face layout, None for the shipped one; else `TinyModelError`.
    """

    def __init__(self, constrained: bool = False, weights: str | Path | None = None) -> None:
        self.constrained = constrained
        self.name = "tiny-constrained" if constrained else "tiny"
        self.max_tokens = MAX_TOKENS
        self._batcher = Batcher(TinyLM(weights or WEIGHTS))

    async def complete(self, request: Request) -> Completion:
        begin, how = time.monotonic(), request.sampling
        allows = complete = None
        if self.constrained and request.question is not None:
            allows, complete = legal(request.question, request.reasoning), whole
        ask = Ask(
            *render(request.messages),
            seed=(request.seed % 2**64, 0),
            temperature=1.0 if how.temperature is None else how.temperature,
            top_p=how.top_p or 1.0,
            max_tokens=how.max_tokens or self.max_tokens,
            allows=allows,
            complete=complete,
        )
        reply = await self._batcher.reply(ask)
        finish, took = reply.finish or "stop", time.monotonic() - begin
        return Completion(reply.text, finish, reply.tokens_in, len(reply.tokens), took, self.name)

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""


def legal(question: Question, reasoning: bool) -> Callable[[str], bool]:
    """Return a test whether a text can begin a legal reply, after a short explanation if wanted."""
    head = '{"explanation": "'
    plain = re.compile(rf'[^"\\\x00-\x1f]{{0,{THOUGHT}}}')

    def explained(text: str) -> bool:
        if not text.startswith(head):
            return head.startswith(text)
        thought, quote, rest = text[len(head) :].partition('"')
        if not plain.fullmatch(thought):
            return False
        answer = rest[:2] == ", " and question.allows("{" + rest[2:])
        return not quote or answer or ", ".startswith(rest)

    return explained if reasoning else question.allows


def schema_allows(schema: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return a test whether a text can begin a reply of this schema; ValueError if it is none."""
    short = {"explanation": {"type": "string", "maxLength": THOUGHT}}
    with suppress(LookupError, TypeError, AttributeError, ValueError):
        if schema["type"] == "object" and schema["properties"]:
            parts = schema["properties"]
            return beginnings({**schema, "properties": {k: short.get(k, parts[k]) for k in parts}})
    raise ValueError(
        "json_schema must be an object with properties that are integers, numbers, strings, "
        f"enums, null, arrays, objects of these, or anyOf them; got {schema!r}"
    )


def whole(text: str) -> bool:
    """Return whether a text is a complete JSON object."""
    try:
        return text.endswith("}") and isinstance(json.loads(text), dict)
    except ValueError:
        return False
