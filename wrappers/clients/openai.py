"""A client for OpenAI and for any server that speaks its chat completions."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import os
import re
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from llm_games.errors import BadParameter
from llm_games.facts import check_choice, check_number
from llm_games.wrappers.clients.base import ClientError, Completion, Request
from llm_games.wrappers.clients.connections import Connections
from llm_games.wrappers.clients.secrets import Secret

log = logging.getLogger(__name__)

OFFICIAL = "https://api.openai.com/v1"
LONGEST_TEXT = 200_000
"""Characters; a longer reply is cut, and counts as cut off."""
MOST_TOKENS = 10**9
"""A server that counts more tokens for one call is not believed."""

# What a server may refuse by name, so that it is left out from then on, and the words for it.
_OPTIONAL = {
    "response_format": re.compile(r"response_format|json.?schema|structured.?output|guided", re.I),
    "seed": re.compile(r"\bseed\b", re.I),
    "max_tokens": re.compile(r"\bmax_tokens\b"),
    "max_completion_tokens": re.compile(r"\bmax_completion_tokens\b"),
}
_LIMITS = ("max_completion_tokens", "max_tokens")
_FINISH = {"length": "length", "content_filter": "refusal", "refusal": "refusal"}


class OpenAIClient:
    """Completes chats through the ``openai`` package.

    Args:
        model: the model's name, as the server knows it.
        base_url: the server, such as ``http://127.0.0.1:8000/v1``; by default the environment
            variable ``OPENAI_BASE_URL``, else OpenAI itself.
        api_key, api_key_file, api_key_env: the key, a file that holds nothing else, or the
            environment variable it is in (default ``OPENAI_API_KEY``; a server on this machine
            gets none unless one of the three is given).
        timeout: seconds for one call, the whole answer included.
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
        structured: str = "auto",
    ) -> None:
        if find_spec("openai") is None:
            raise ClientError("OpenAIClient needs a package: pip install 'llm-games[openai]'")
        if not isinstance(model, str) or not model:
            raise BadParameter(f"model must be the name of a model, got {model!r}")
        check_number("timeout", timeout, 0.001)
        check_choice("structured", structured, ("auto", "always", "never"))
        self.name = self.model = model
        self.base_url = _checked(base_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL)
        self._key = _key(self.base_url, api_key, api_key_file, api_key_env)
        self.timeout, self.structured = timeout, structured
        self._refused: set[str] = set()
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, Connections] = (
            WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"OpenAIClient({self.model!r}, base_url={self.base_url!r})"

    async def complete(self, request: Request) -> Completion:
        """Return one completion. One call: to try again is a layer's job, see `dress`.

        Raises:
            ClientError: none could be had; names the server and the way out.
        """
        answer = await self._call(self._session(), request)
        if isinstance(answer, ClientError):
            raise answer
        return answer

    async def close(self) -> None:
        """Close the connections, those of other event loops too. The client can be used again."""
        for loop, session in list(self._sessions.items()):
            self._sessions.pop(loop, None)
            if loop is asyncio.get_running_loop():
                await session.close()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(session.close(), loop)
                await asyncio.wrap_future(closing)

    def _session(self) -> Connections:
        """Return the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            key = self._key.reveal() if self._key else "none"
            self._sessions[loop] = Connections(self.base_url, key, self.timeout)
        return self._sessions[loop]

    async def _call(self, session: Connections, request: Request) -> Completion | ClientError:
        """Try once; options that the server refuses by name are left out at once."""
        began = time.perf_counter()
        while True:
            arguments = self._arguments(request)
            answer = await self._send(session, arguments)
            if not isinstance(answer, Exception):
                return self._read(answer, time.perf_counter() - began)
            refused = self._refusal(answer, arguments)
            if refused is None:
                return self._failure(answer)
            log.warning("%s refuses %s and is asked without it", self.base_url, refused)
            self._refused.add(_form(request) or "" if refused == "response_format" else refused)

    async def _send(self, session: Connections, arguments: dict[str, Any]) -> Any:
        """Return the response or the error: one that is raised would carry what must not show."""
        import openai

        try:
            return await session.post(arguments)
        except (openai.OpenAIError, TimeoutError, ValueError) as error:
            return error

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self.model,
            "messages": list(request.messages),
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            "seed": request.seed,
            self._limit(): request.sampling.max_tokens,
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

    def _read(self, response: Any, latency: float) -> Completion | ClientError:
        """Read a response that claims to be a completion; nothing in it is taken for granted."""
        data: bytes = response.content
        if "html" in response.headers.get("content-type", "") or data.lstrip()[:1] == b"<":
            return ClientError(
                f"{self.base_url} answers with a page, not with a completion: is base_url right? "
                f"It usually ends in /v1. The page begins {self._shown(response.text[:300])!r}"
            )
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            return self._broken("sent an answer that is cut off or no JSON")
        choices = answer.get("choices") if isinstance(answer, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            fault = (isinstance(answer, dict) and answer.get("error")) or "no choices"
            return self._broken(f"sent no completion ({self._shown(str(fault))})")
        refusal, text = message.get("refusal"), message.get("content")
        if not isinstance(text or "", str):
            return ClientError(
                f"{self.base_url} sent content of type {type(text).__name__}", may_cost=True
            )
        finish = "refusal" if refusal else _FINISH.get(str(choice.get("finish_reason")), "stop")
        return self._completion(answer, text or str(refusal or ""), finish, latency)

    def _completion(self, answer: Any, text: str, finish: Any, latency: float) -> Completion:
        usage = answer.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        if len(text) > LONGEST_TEXT:
            text, finish = text[:LONGEST_TEXT], "length"
        return Completion(
            text=self._masked(text),
            finish=finish,
            tokens_in=_count(counts.get("prompt_tokens")),
            tokens_out=_count(counts.get("completion_tokens")),
            latency=latency,
            model=self._shown(str(answer.get("model") or self.model)),
        )

    def _broken(self, what: str) -> ClientError:
        return ClientError(f"{self.base_url} {what}", transient=True, may_cost=True)

    def _failure(self, error: Exception) -> ClientError:
        """Say what failed and what to do about it."""
        import openai

        if isinstance(error, TimeoutError):
            return ClientError(
                f"{self.base_url} gave no answer within {self.timeout:g} s: it may be busy, or "
                "timeout may be too short for this model",
                transient=True,
                may_cost=True,
            )
        if isinstance(error, openai.APIStatusError):
            return self._status_failure(error)
        if isinstance(error, openai.APIConnectionError):
            return ClientError(
                f"cannot reach {self.base_url} ({_cause(error)}): check that the server is "
                "running, that base_url is right, and the network",
                transient=True,
                may_cost=_was_sent(error),
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
            status=status,
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


def _was_sent(error: BaseException) -> bool:
    """Return whether a call that failed on its way had got as far as a connection."""
    import httpcore2
    import httpx2

    return not isinstance(error.__cause__, httpx2.ConnectError | httpcore2.ConnectError)


def _count(value: Any) -> int:
    """Return a server's count of tokens; 0 if it is none."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= MOST_TOKENS else 0


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
