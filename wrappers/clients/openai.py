"""A client for OpenAI and for any server that speaks its chat completions."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import os
import random
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from llm_games.errors import BadParameter
from llm_games.rulebook import check_choice, check_integer, check_number
from llm_games.wrappers.clients.base import ClientError, Completion, Request
from llm_games.wrappers.clients.secrets import Secret

log = logging.getLogger(__name__)

OFFICIAL = "https://api.openai.com/v1"
LONGEST_PAUSE = 120.0
"""Seconds; a server that asks to wait longer ends the call."""

# What a server may refuse by name, so that it is left out from then on, and the words for it.
_OPTIONAL = {
    "response_format": re.compile(r"response_format|json_schema|structured.?output|guided", re.I),
    "seed": re.compile(r"\bseed\b", re.I),
    "max_tokens": re.compile(r"\bmax_tokens\b"),
    "max_completion_tokens": re.compile(r"\bmax_completion_tokens\b"),
}
_LIMITS = ("max_completion_tokens", "max_tokens")
_FINISH = {"length": "length", "content_filter": "refusal", "refusal": "refusal"}


@dataclass(frozen=True)
class _Session:
    """What belongs to one event loop."""

    client: Any
    gate: asyncio.Semaphore


class OpenAIClient:
    """Completes chats through the ``openai`` package.

    Args:
        model: the model's name, as the server knows it.
        base_url: the server, such as ``http://127.0.0.1:8000/v1``; by default the environment
            variable ``OPENAI_BASE_URL``, else OpenAI itself.
        api_key, api_key_file, api_key_env: the key, a file that holds nothing else, or the
            environment variable it is in (default ``OPENAI_API_KEY``; a server on this machine
            gets none unless one of the three is given).
        timeout: seconds for one try, the whole answer included.
        retries: further tries after a passing failure (busy, too many requests, no connection);
            a ``Retry-After`` of up to two minutes is obeyed.
        max_in_flight: calls at the same time, for each event loop.
        structured: ``auto`` asks for the answer's JSON schema until the server refuses it,
            ``always`` insists, ``never`` does not ask.

    Raises:
        ClientError: the package or the key is missing.
        BadParameter: an argument is not one of these.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | Secret | None = None,
        api_key_file: str | Path | None = None,
        api_key_env: str | None = None,
        timeout: float = 60.0,
        retries: int = 3,
        max_in_flight: int = 64,
        structured: str = "auto",
    ) -> None:
        if find_spec("openai") is None:
            raise ClientError("OpenAIClient needs a package: pip install 'llm-games[openai]'")
        if not isinstance(model, str) or not model:
            raise BadParameter(f"model must be the name of a model, got {model!r}")
        check_number("timeout", timeout, 0.001)
        check_integer("retries", retries, 0)
        check_integer("max_in_flight", max_in_flight, 1)
        check_choice("structured", structured, ("auto", "always", "never"))
        self.name = self.model = model
        self.base_url = _checked(base_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL)
        self._key = _key(self.base_url, api_key, api_key_file, api_key_env)
        self.timeout, self.retries, self.max_in_flight = timeout, retries, max_in_flight
        self.structured = structured
        self._refused: set[str] = set()
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, _Session] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"OpenAIClient({self.model!r}, base_url={self.base_url!r})"

    async def complete(self, request: Request) -> Completion:
        """Return one completion. While a failed call waits, others may go.

        Raises:
            ClientError: none could be had; names the server and the way out.
        """
        session, tries = self._session(), 0
        while True:
            async with session.gate:
                answer = await self._call(session, request)
            if isinstance(answer, Completion):
                return answer
            tries += 1
            pause = max(_backoff(tries), answer.retry_after or 0)
            if not answer.transient or tries > self.retries or pause > LONGEST_PAUSE:
                raise answer
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close the connections, those of other event loops too. The client can be used again."""
        for loop, session in list(self._sessions.items()):
            self._sessions.pop(loop, None)
            if loop is asyncio.get_running_loop():
                await session.client.close()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(session.client.close(), loop)
                await asyncio.wrap_future(closing)

    def _session(self) -> _Session:
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            import openai

            client = openai.AsyncOpenAI(
                api_key=self._key.reveal() if self._key else "none",
                base_url=self.base_url,
                timeout=self.timeout,
                max_retries=0,
            )
            self._sessions[loop] = _Session(client, asyncio.Semaphore(self.max_in_flight))
        return self._sessions[loop]

    async def _call(self, session: _Session, request: Request) -> Completion | ClientError:
        """Try once; options that the server refuses by name are left out at once."""
        began = time.perf_counter()
        while True:
            arguments = self._arguments(request)
            answer = await self._send(session, arguments)
            if not isinstance(answer, Exception):
                return self._completion(answer, time.perf_counter() - began)
            refused = self._refusal(answer, arguments)
            if refused is None:
                return self._failure(answer)
            log.warning("%s refuses %s and is asked without it", self.base_url, refused)
            self._refused.add(_form(request) or "" if refused == "response_format" else refused)

    async def _send(self, session: _Session, arguments: dict[str, Any]) -> Any:
        """Return the answer or the error: one that is raised would carry what must not show."""
        import openai

        try:
            async with asyncio.timeout(self.timeout):
                return await session.client.chat.completions.create(**arguments)
        except (openai.OpenAIError, TimeoutError, ValueError) as error:
            return error

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self.model,
            "messages": list(request.messages),
            "temperature": request.temperature,
            "seed": request.seed,
            self._limit(): request.max_tokens,
        }
        if self.structured != "never" and _form(request) not in self._refused | {None}:
            form = {"name": "reply", "strict": True, "schema": request.schema()}
            arguments["response_format"] = {"type": "json_schema", "json_schema": form}
        return {k: v for k, v in arguments.items() if v is not None and k not in self._refused}

    def _limit(self) -> str:
        """Name the limit of tokens: OpenAI has a new name for it, most others know the old one."""
        names = _LIMITS if self.base_url == OFFICIAL else _LIMITS[::-1]
        return next((name for name in names if name not in self._refused), names[0])

    def _refusal(self, error: Exception, arguments: dict[str, Any]) -> str | None:
        """Name the option that the server does not take and that can be left out."""
        if getattr(error, "status_code", None) not in (400, 422):
            return None
        text = f"{getattr(error, 'param', '')} {_said(error)}"
        for name, words in _OPTIONAL.items():
            insisted = name == "response_format" and self.structured == "always"
            last = name in _LIMITS and {*_LIMITS} - {name} <= self._refused
            if name in arguments and not insisted and not last and words.search(text):
                return name
        return None

    def _completion(self, answer: Any, latency: float) -> Completion | ClientError:
        if isinstance(answer, str):
            return ClientError(
                f"{self.base_url} answers with a page, not with a completion: is base_url right? "
                f"It usually ends in /v1. The page begins {self._shown(answer)!r}"
            )
        choices = getattr(answer, "choices", None)
        message = getattr(choices[0], "message", None) if choices else None
        if not choices or message is None:
            fault = getattr(answer, "error", None) or "no choices"
            return ClientError(
                f"{self.base_url} sent no completion ({self._shown(str(fault))})", transient=True
            )
        refusal, text = getattr(message, "refusal", None), message.content
        if not isinstance(text or "", str):
            return ClientError(f"{self.base_url} sent content of type {type(text).__name__}")
        usage = getattr(answer, "usage", None)
        finish = "refusal" if refusal else _FINISH.get(choices[0].finish_reason or "", "stop")
        return Completion(
            text=self._masked(text or refusal or ""),
            finish=finish,  # type: ignore[arg-type]
            tokens_in=getattr(usage, "prompt_tokens", None) or 0,
            tokens_out=getattr(usage, "completion_tokens", None) or 0,
            latency=latency,
            model=getattr(answer, "model", None) or self.model,
        )

    def _failure(self, error: Exception) -> ClientError:
        """Say what failed and what to do about it."""
        import openai

        if isinstance(error, (TimeoutError, openai.APITimeoutError)):
            return ClientError(
                f"{self.base_url} gave no answer within {self.timeout:g} s: it may be busy, or "
                "timeout may be too short for this model",
                transient=True,
            )
        if isinstance(error, openai.APIStatusError):
            return self._status_failure(error)
        if isinstance(error, json.JSONDecodeError):
            return ClientError(f"{self.base_url} sent an answer that is cut off", transient=True)
        if isinstance(error, openai.APIConnectionError):
            return ClientError(
                f"cannot reach {self.base_url} ({_cause(error)}): check that the server is "
                "running, that base_url is right, and the network",
                transient=True,
            )
        return ClientError(f"{self.base_url}: {type(error).__name__}: {self._shown(str(error))}")

    def _status_failure(self, error: Any) -> ClientError:
        status, said = error.status_code, self._shown(_said(error))
        broke = error.code == "insufficient_quota"
        busy = (status in (408, 409, 429) or status >= 500) and not broke
        key = f"the key from {self._key.source}" if self._key else "no key was sent: give api_key"
        hint = {
            401: f"check the key ({key})",
            403: f"this key may not use {self.model!r} ({key})",
            404: f"check the model's name ({self.model!r}) and base_url (it usually ends in /v1)",
        }.get(status, "no money is left on this account" if broke else "")
        return ClientError(
            f"{self.base_url} refused with status {status}: {said}{hint and f' – {hint}'}",
            transient=busy,
            retry_after=_retry_after(error.response.headers) if busy else None,
        )

    def _masked(self, text: str) -> str:
        return self._key.redact(text) if self._key else text

    def _shown(self, text: str) -> str:
        text = " ".join(self._masked(text).split())
        return text if len(text) <= 300 else f"{text[:300]}…"


def _form(request: Request) -> str | None:
    """Name the form of answer that is wanted: a server may take one schema and refuse another."""
    return None if request.question is None else f"response_format {request.question.key}"


def _checked(base_url: str) -> str:
    """Return the address without its last slash.

    Raises:
        BadParameter: it is none, or holds a password or a query, which would show in errors.
    """
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host:
        raise BadParameter("base_url must look like http://127.0.0.1:8000/v1")
    if parts.username is not None or parts.query or parts.fragment:
        raise BadParameter("base_url must hold no user, password or query: give the key as api_key")
    return base_url.rstrip("/")


def _key(
    base_url: str, key: str | Secret | None, file: str | Path | None, name: str | None
) -> Secret | None:
    """Find the key; None for a server on this machine for which none is given."""
    given = [what for what in (key, file, name) if what is not None]
    if len(given) > 1:
        raise BadParameter("give only one of api_key, api_key_file and api_key_env")
    if key is not None:
        return key if isinstance(key, Secret) else Secret(key)
    if file is not None:
        return Secret.from_file(file)
    if name is None and _is_loopback(urlsplit(base_url).hostname or ""):
        return None
    return Secret.from_environment(name or "OPENAI_API_KEY")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _said(error: Any) -> str:
    """Return the server's own words."""
    body = getattr(error, "body", None)
    message = body.get("message") or body.get("detail") if isinstance(body, dict) else body
    return str(message or error)


def _cause(error: BaseException) -> str:
    """Return the words of the lowest error that led to this one."""
    while (below := error.__cause__ or error.__context__) is not None:
        error = below
    return str(error) or type(error).__name__


def _backoff(tries: int) -> float:
    """Return the pause before a further try: 0.5 s, doubling up to 8 s, less up to 25 %."""
    return min(8.0, 0.5 * 2 ** (tries - 1)) * random.uniform(0.75, 1.0)


def _retry_after(headers: Any) -> float | None:
    """Read how long the server asks to wait: milliseconds, seconds or a date."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after", "")
        if re.fullmatch(r"[0-9.]{1,12}", value):
            return float(value)
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None
