"""A small OpenAI-compatible server around the tiny model, for tests and for other programs.

It answers ``POST /v1/chat/completions``, ``GET /v1/models`` and ``GET /health``, requests in flight
at the same time in one batch. Needs the extra ``serve``.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from llm_games.baselines.tiny.chat_template import render
from llm_games.baselines.tiny.client import MAX_TOKENS, Batcher, schema_allows, whole
from llm_games.baselines.tiny.runtime import WEIGHTS, Ask, SampledText, TinyLM
from llm_games.errors import BadParameter, LLMGamesError, install

NAME = "tiny"


class ServerNotInstalled(LLMGamesError, ImportError):
    """Starlette or uvicorn is missing."""

    def __init__(self, error: ImportError) -> None:
        super().__init__(f"the server needs `{install('serve')}` ({error})")


class ContentPart(BaseModel):
    """A part of a message; only text is understood."""

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """One message of a chat."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[ContentPart] | None = None

    def plain(self) -> dict[str, str]:
        content = self.content or ""
        text = content if isinstance(content, str) else "".join(part.text for part in content)
        return {"role": "system" if self.role == "developer" else self.role, "content": text}


class ChatRequest(BaseModel):
    """The supported fields of a request; others that would change replies are refused."""

    model: str = NAME
    messages: list[ChatMessage] = Field(min_length=1)
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    n: int | None = Field(None, ge=1, le=128)
    seed: int | None = None
    stop: str | list[str] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    top_p: float | None = Field(None, gt=0, le=1)
    frequency_penalty: Literal[0] | None = None
    presence_penalty: Literal[0] | None = None
    logit_bias: dict[str, float] | None = Field(None, max_length=0)
    tools: list[Any] | None = Field(None, max_length=0)

    def asks(self) -> list[Ask]:
        """Return one ask for each choice; a ValueError is about `response_format`."""
        form, allows = self.response_format or {}, None
        kind, schema = form.get("type", "text"), form.get("json_schema")
        if kind == "json_schema" and isinstance(schema, dict) and "schema" in schema:
            allows = schema_allows(schema["schema"])
        elif kind != "text":
            raise ValueError(
                "response_format must be {'type': 'text'} or {'type': 'json_schema', "
                f"'json_schema': {{'name': …, 'schema': …}}}}, got type {kind!r}"
            )
        seed = uuid.uuid4().int if self.seed is None else self.seed
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        ask = Ask(
            *render([message.plain() for message in self.messages]),
            temperature=1.0 if self.temperature is None else self.temperature,
            top_p=self.top_p or 1.0,
            max_tokens=self.max_completion_tokens or self.max_tokens or MAX_TOKENS,
            allows=allows,
            complete=whole if allows else None,
            stop=tuple(stop for stop in stops if stop),
            top=self.top_logprobs or 0,
        )
        return [replace(ask, seed=(seed % 2**64, choice)) for choice in range(self.n or 1)]


def create_app(weights: str | Path | None = None) -> Any:
    """Return the Starlette application; raises `ServerNotInstalled` or `TinyModelError`."""
    try:
        from starlette.applications import Starlette
        from starlette.requests import Request
        from starlette.responses import JSONResponse, Response, StreamingResponse
        from starlette.routing import Route
    except ImportError as error:
        raise ServerNotInstalled(error) from error

    batcher, born = Batcher(TinyLM(weights or WEIGHTS)), int(time.time())
    model = {"id": NAME, "object": "model", "created": born, "owned_by": "llm-games"}

    async def chat(request: Request) -> Response:
        try:
            wanted = ChatRequest.model_validate_json(await request.body())
            asks = wanted.asks()
        except ValueError as error:
            return JSONResponse(_error(error), 400)
        replies = await asyncio.gather(*map(batcher.reply, asks))  # in one batch if they fit
        body = _completion(batcher.model, wanted, replies)
        if wanted.stream:
            events = _stream(batcher.model, wanted, replies, body)
            return StreamingResponse(events, media_type="text/event-stream")
        return JSONResponse(body)

    models = JSONResponse({"object": "list", "data": [model]})
    pages = {"/v1/models": models, "/health": JSONResponse({"status": "ok"})}
    routes = [Route(path, page, methods=["GET"]) for path, page in pages.items()]
    return Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"]), *routes])


def serve(
    host: str = "127.0.0.1",
    port: int = 8000,
    weights: str | Path | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until interrupted; call `ready` once the port is taken, or raise `BadParameter`."""
    try:
        import uvicorn
    except ImportError as error:
        raise ServerNotInstalled(error) from error
    server = uvicorn.Server(uvicorn.Config(create_app(weights), log_level="warning"))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        fault = f"port {port}: {error.strerror}; give another --port or --host"
        raise BadParameter(f"cannot listen at {host}, {fault}") from None
    ready()
    with listening, suppress(KeyboardInterrupt):
        server.run(sockets=[listening])


def _error(error: ValueError) -> dict[str, Any]:
    param, message = "response_format", str(error)  # what pydantic does not check itself
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        param = ".".join(map(str, first["loc"]))
        message = f"{param or 'body'}: {first['msg']}"
    kind = "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": param or None, "code": None}}


def _completion(model: TinyLM, wanted: ChatRequest, replies: list[SampledText]) -> dict[str, Any]:
    choices = [
        {
            "index": i,
            "message": {"role": "assistant", "content": reply.text, "refusal": None},
            "logprobs": _logprobs(model, reply) if wanted.logprobs else None,
            "finish_reason": reply.finish,
        }
        for i, reply in enumerate(replies)
    ]
    prompt, out = replies[0].tokens_in, sum(len(reply.tokens) for reply in replies)
    usage = {"prompt_tokens": prompt, "completion_tokens": out, "total_tokens": prompt + out}
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": wanted.model,
        "system_fingerprint": None,
        "choices": choices,
        "usage": usage,
    }


def _logprobs(model: TinyLM, reply: SampledText) -> dict[str, Any]:
    def entry(token: int, logprob: float) -> dict[str, Any]:
        text = model.llama.pieces[token]
        return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

    tops = reply.top or [[]] * len(reply.tokens)
    content = [
        entry(token, logprob) | {"top_logprobs": [entry(*pair) for pair in top]}
        for token, logprob, top in zip(reply.tokens, reply.logprobs, tops, strict=True)
    ]
    return {"content": content, "refusal": None}


async def _stream(
    model: TinyLM, wanted: ChatRequest, replies: list[SampledText], body: dict[str, Any]
) -> AsyncIterator[str]:
    """Send finished replies as server-sent events, one event a token."""
    frame = body | {"object": "chat.completion.chunk", "choices": []}
    usage = frame.pop("usage")

    def event(index: int, delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        return f"data: {json.dumps(frame | {'choices': [choice]})}\n\n"

    for index, reply in enumerate(replies):
        yield event(index, {"role": "assistant", "content": ""})
        pieces = [model.llama.pieces[token] for token in reply.tokens]
        # A stop text or bytes that are no letter alone: the text as a whole is right.
        for piece in pieces if "".join(pieces) == reply.text else [reply.text]:
            yield event(index, {"content": piece})
        yield event(index, {}, reply.finish)
    if (wanted.stream_options or {}).get("include_usage"):
        yield f"data: {json.dumps(frame | {'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"
