"""The batch interfaces of OpenAI, which many servers speak, and of Anthropic."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from llm_games.wrappers.clients.base import ClientError
from llm_games.wrappers.clients.waves import BatchResults, LineAnswer, Wave

DAY = "24h"  # the one window that OpenAI has
SLACK = 3600.0  # seconds by which a server's clock may differ from ours
LOOK = 30.0  # seconds between two looks at a batch that may be ours
CHAT = "/v1/chat/completions"
EXPIRED = 504, "the batch expired before its turn"
CANCELLED = 499, "the batch was cancelled"
GONE = 502, "its answer is not kept any more"
SILENT = 502, "the batch ended without an answer to it"
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "timeout_error": 504,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
"""Anthropic's errors of single lines, by the status that a call of its own would have."""
_REFUSALS = {"model_not_found": 404, "token_limit_exceeded": 429, "rate_limit_exceeded": 429}
"""Codes of OpenAI for a whole batch; others are the lines' own fault."""


class OpenAIBatches:
    """Files of lines, and batches of these: OpenAI's interface."""

    def __init__(self, client: Any) -> None:
        self.client, self.failure = client, client.fault

    async def greet(self) -> None:
        """List models and batches; raises what the library raises, or ClientError: no batches."""
        account, model = self.client.account(), self.client.model
        if model not in [known.id for known in (await account.models.list()).data]:
            await account.models.retrieve(model)
        try:
            await account.batches.list(limit=1)
        except Exception as error:
            if getattr(error, "status_code", None) not in (404, 405, 501):
                raise
            raise ClientError(
                f"{self.client.base_url} has no batches: leave out batch = true, or take another "
                "server"
            ) from None

    async def create(self, wave: Wave) -> str:
        account = self.client.account()
        lines = b"".join(_jsonl(wave))
        file = await account.files.create(file=(f"{wave.name}.jsonl", lines), purpose="batch")
        about = {"made_by": "llm-games", "run": wave.run[:500], "wave": wave.name}
        batch = await account.batches.create(
            input_file_id=file.id, endpoint=CHAT, completion_window=DAY, metadata=about
        )
        return str(batch.id)

    async def find(self, wave: Wave) -> str:
        async for batch in self.client.account().batches.list(limit=100):
            if (batch.metadata or {}).get("wave") == wave.name:
                return str(batch.id)
            if batch.created_at < wave.began - SLACK:
                break
        return ""

    async def over(self, wave: Wave) -> bool:
        batch = await self.client.account().batches.retrieve(wave.batch)
        return batch.status in ("completed", "failed", "expired", "cancelled")

    async def results(self, wave: Wave) -> BatchResults:
        account = self.client.account()
        batch = await account.batches.retrieve(wave.batch)
        answers: dict[str, LineAnswer] = {}
        for file in filter(None, (batch.output_file_id, batch.error_file_id)):
            try:
                content = await account.files.content(file)
            except Exception as error:
                if getattr(error, "status_code", None) != 404:
                    raise
                return BatchResults(answers, _said(GONE))
            answers |= _answers(wave, _entries(content.content), _of_openai)
        if batch.status == "failed":
            faults = batch.errors.data if batch.errors and batch.errors.data else []
            told = [{"message": f.message, "code": f.code, "param": f.param} for f in faults]
            refusal = told[0] if told else {"message": "the batch was refused"}
            code = str(refusal.get("code"))
            status = 402 if "billing" in code or "quota" in code else _REFUSALS.get(code, 400)
            return BatchResults(answers, _refusal(status, refusal))
        rest = {"expired": EXPIRED, "cancelled": CANCELLED}.get(batch.status, SILENT)
        return BatchResults(answers, _said(rest))


class AnthropicBatches:
    """Message batches, which have no metadata: one is known by its lines."""

    def __init__(self, client: Any) -> None:
        self.client, self.failure = client, client.fault

    async def greet(self) -> None:
        """Look up the model, and list batches; raises what the library raises."""
        account = self.client.account()
        await account.models.retrieve(self.client.model)
        await account.messages.batches.list(limit=1)

    async def create(self, wave: Wave) -> str:
        requests: Any = [
            {"custom_id": wave.custom_id(line.name), "params": json.loads(line.body)}
            for line in wave.lines.values()
        ]
        for line in requests:
            if line["params"].pop("stream", False):
                raise ClientError(
                    "in batches Anthropic's models need a limit: set max_tokens", status=400
                )
        betas = {beta for line in wave.lines.values() for beta in line.betas.split(",") if beta}
        headers = {"anthropic-beta": ",".join(sorted(betas))} if betas else {}
        batches = self.client.account().messages.batches
        batch = await batches.create(requests=requests, extra_headers=headers)
        return str(batch.id)

    async def find(self, wave: Wave) -> str:
        """Return the id of a batch with a line of this wave; waits for those it may be."""
        batches = self.client.account().messages.batches
        async for batch in batches.list(limit=100):
            if batch.created_at.timestamp() < wave.began - SLACK:
                break
            counts = batch.request_counts
            if sum(vars(counts).values()) != len(wave.lines):
                continue
            while batch.processing_status != "ended":
                await asyncio.sleep(LOOK)
                batch = await batches.retrieve(batch.id)
            async for entry in await batches.results(batch.id):
                if entry.custom_id.startswith(f"{wave.name}-"):
                    return str(batch.id)
                break
        return ""

    async def over(self, wave: Wave) -> bool:
        batch = await self.client.account().messages.batches.retrieve(wave.batch)
        return bool(batch.processing_status == "ended")

    async def results(self, wave: Wave) -> BatchResults:
        batches = self.client.account().messages.batches
        if (await batches.retrieve(wave.batch)).results_url is None:
            return BatchResults({}, _said(GONE))
        entries = await batches.results(wave.batch)
        read = [entry.to_dict() async for entry in entries]
        return BatchResults(_answers(wave, read, _of_anthropic), _said(SILENT))


def _jsonl(wave: Wave) -> Iterator[bytes]:
    for line in wave.lines.values():
        head = {"custom_id": wave.custom_id(line.name), "method": "POST", "url": CHAT}
        yield json.dumps(head).encode()[:-1] + b', "body": ' + line.body + b"}\n"


def _entries(content: bytes) -> Iterator[Any]:
    """Yield the lines of a file, but for broken ones."""
    for line in content.splitlines():
        with suppress(ValueError, RecursionError):
            yield json.loads(line)


def _answers(wave: Wave, entries: Iterable[Any], read: Any) -> dict[str, LineAnswer]:
    answers: dict[str, LineAnswer] = {}
    for entry in entries:
        with suppress(AttributeError, LookupError, TypeError, ValueError):  # none that we know
            answers[entry["custom_id"].removeprefix(wave.custom_id(""))] = read(entry)
    return answers


def _of_openai(entry: Mapping[str, Any]) -> LineAnswer:
    if response := entry.get("response"):
        return LineAnswer(int(response["status_code"]), json.dumps(response["body"]).encode())
    error = entry["error"]
    if error.get("code") == "batch_expired":
        return _said(EXPIRED)
    return _said(CANCELLED) if error.get("code") == "batch_cancelled" else _refusal(502, error)


def _of_anthropic(entry: Mapping[str, Any]) -> LineAnswer:
    result = entry["result"]
    if result["type"] == "succeeded":
        return LineAnswer(200, json.dumps(result["message"]).encode())
    if result["type"] == "errored":
        error = result["error"]["error"]
        return _refusal(_STATUSES.get(error["type"], 500), error)
    return _said(EXPIRED if result["type"] == "expired" else CANCELLED)


def _said(status_and_words: tuple[int, str]) -> LineAnswer:
    status, words = status_and_words
    return _refusal(status, {"message": words})


def _refusal(status: int, error: Mapping[str, Any]) -> LineAnswer:
    """Return an error in both providers' words."""
    return LineAnswer(status, json.dumps({"type": "error", "error": dict(error)}).encode())
