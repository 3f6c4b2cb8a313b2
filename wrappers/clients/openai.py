"""A client for OpenAI and for any server that speaks its chat completions."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import os
import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from llm_games.errors import BadParameter
from llm_games.facts import check_choice, check_number
from llm_games.wrappers.clients.base import ClientError, Completion, Request
from llm_games.wrappers.clients.secrets import Secret

log = logging.getLogger(__name__)

OFFICIAL = "https://api.openai.com/v1"
LONGEST_TEXT = 200_000
"""Characters; a longer reply is cut, and counts as cut off."""

# What a server may refuse by name, so that it is left out from then on, and the words for it.
_OPTIONAL = {
    "response_format": re.compile(r"response_format|json.?schema|structured.?output|guided", re.I),
    "seed": re.compile(r"\bseed\b", re.I),
    "max_tokens": re.compile(r"\bmax_tokens\b"),
    "max_completion_tokens": re.compile(r"\bmax_completion_tokens\b"),
}
_LIMITS = ("max_completion_tokens", "max_tokens")
_FINISH = {"length": "length", "content_filter": "refusal", "refusal": "refusal"}


class _Lines:
    """HTTP clients of one event loop, one for each call in flight: a pool of many takes longer.

    They send the headers of ``openai``, without its statistics of usage. Its own calls are not
    used, since their checks of both sides' types take more time than everything else.
    """

    def __init__(self, base_url: str, key: str) -> None:
        import openai

        self._all: list[Any] = []
        self._idle = [self._open()]
        account = openai.AsyncOpenAI(api_key=key, base_url=base_url, http_client=self._idle[0])
        self._headers = {
            name.lower(): value
            for name, value in (account.default_headers | account.auth_headers).items()
            if isinstance(value, str) and not name.startswith("X-Stainless")
        }

    def _open(self) -> Any:
        import httpx2

        cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))  # no call knows of another
        client = httpx2.AsyncClient(
            verify=_trusted(), timeout=None, follow_redirects=True, cookies=cookies
        )
        self._all.append(client)
        return client

    async def post(self, url: str, content: bytes) -> Any:
        """Send a request and return the response, read to its end."""
        client = self._idle.pop() if self._idle else self._open()
        try:
            return await client.post(url, headers=self._headers, content=content)
        finally:
            self._idle.append(client)

    async def close(self) -> None:
        """Close them all, those in use too."""
        for client in self._all:
            await client.aclose()


@cache
def _trusted() -> Any:
    """Return the certificates to trust; to read them takes 50 ms."""
    import httpx2

    return httpx2.create_ssl_context()


class OpenAIClient:
    """Completes chats on a server that speaks OpenAI's chat completions.

    Args:
        model: its name, as the server knows it.
        base_url: such as ``http://127.0.0.1:8000/v1``; by default the environment variable
            ``OPENAI_BASE_URL``, else OpenAI itself.
        api_key, api_key_file, api_key_env: the key, a file that holds nothing else, or the
            environment variable it is in (default ``OPENAI_API_KEY``; a server on this machine
            gets none unless one of the three is given).
        timeout: seconds for one call, the whole answer included.
        structured: ``auto`` asks for the answer's JSON schema until the server refuses it,
            ``always`` insists, ``never`` does not ask.

    Raises:
        BadParameter, ClientError: an argument is not one of these; package or key are missing.
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
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Lines] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"OpenAIClient({self.model!r}, base_url={self.base_url!r})"

    async def complete(self, request: Request) -> Completion:
        """Return one completion, or raise a ClientError. To try again is a layer's job."""
        answer = await self._call(request)
        if isinstance(answer, ClientError):  # raised here, it does not carry what must not show
            raise answer
        return answer

    async def close(self) -> None:
        """Close the connections, those of other event loops too. The client can be used again."""
        for loop, lines in list(self._lines.items()):
            self._lines.pop(loop, None)
            if loop is asyncio.get_running_loop():
                await lines.close()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(lines.close(), loop)
                await asyncio.wrap_future(closing)

    async def _call(self, request: Request) -> Completion | ClientError:
        """Try once; options that the server refuses by name are left out at once."""
        loop = asyncio.get_running_loop()
        if loop not in self._lines:
            key = self._key.reveal() if self._key else "none"
            self._lines[loop] = _Lines(self.base_url, key)
        lines, began = self._lines[loop], time.perf_counter()
        while True:
            arguments = self._arguments(request)
            response = await self._send(lines, arguments)
            if isinstance(response, ClientError):
                return response
            if response.is_success:
                return self._read(response, time.perf_counter() - began)
            said = _said(response)
            refused = self._refusal(response.status_code, said, arguments)
            if refused is None:
                return self._failure(response, said)
            log.warning("%s refuses %s and is asked without it", self.base_url, refused)
            self._refused.add(_form(request) or "" if refused == "response_format" else refused)

    async def _send(self, lines: _Lines, body: dict[str, Any]) -> Any:
        """Return the response, or what failed on the way and what to do about it."""
        import httpx2

        try:
            text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            async with asyncio.timeout(self.timeout):
                return await lines.post(f"{self.base_url}/chat/completions", text.encode())
        except TimeoutError:
            return ClientError(
                f"{self.base_url} gave no answer within {self.timeout:g} s: it may be busy, or "
                "timeout may be too short for this model",
                transient=True,
            )
        except httpx2.HTTPError as error:
            return ClientError(
                f"cannot reach {self.base_url} ({self._shown(_cause(error))}): check that the "
                "server is running, that base_url is right, and the network",
                transient=True,
            )
        except ValueError as error:
            fault = f"{type(error).__name__}: {self._shown(str(error))}"
            return ClientError(f"{self.base_url}: {fault}")

    def _arguments(self, request: Request) -> dict[str, Any]:
        # OpenAI has a new name for the limit of tokens, most others know the old one.
        names = _LIMITS if self.base_url == OFFICIAL else _LIMITS[::-1]
        limit = next((name for name in names if name not in self._refused), names[0])
        arguments: dict[str, Any] = {
            "model": self.model,
            "messages": list(request.messages),
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            "seed": request.seed,
            limit: request.sampling.max_tokens,
        }
        if self.structured != "never" and _form(request) not in self._refused | {None}:
            form = {"name": "reply", "strict": True, "schema": request.schema()}
            arguments["response_format"] = {"type": "json_schema", "json_schema": form}
        return {k: v for k, v in arguments.items() if v is not None and k not in self._refused}

    def _refusal(self, status: int, said: dict[str, Any], arguments: dict[str, Any]) -> str | None:
        """Name the option that the server does not take and that can be left out."""
        if status not in (400, 422):
            return None
        text = f"{said.get('param')} {said['message']}"
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
        try:
            choice = answer["choices"][0]
            refusal, text = (choice["message"].get(name) for name in ("refusal", "content"))
        except (LookupError, TypeError, AttributeError):
            fault = (isinstance(answer, dict) and answer.get("error")) or "no choices"
            return self._broken(f"sent no completion ({self._shown(str(fault))})")
        if not isinstance(text or "", str):
            return ClientError(f"{self.base_url} sent content of type {type(text).__name__}")
        text, usage = text or str(refusal or ""), answer.get("usage")
        ended = "refusal" if refusal else str(choice.get("finish_reason"))
        finish: Any = "length" if len(text) > LONGEST_TEXT else _FINISH.get(ended, "stop")
        return Completion(
            text=self._masked(text[:LONGEST_TEXT]),
            finish=finish,
            tokens_in=_count(usage, "prompt_tokens"),
            tokens_out=_count(usage, "completion_tokens"),
            latency=latency,
            model=self._shown(str(answer.get("model") or self.model)),
        )

    def _broken(self, what: str) -> ClientError:
        return ClientError(f"{self.base_url} {what}", transient=True)

    def _failure(self, response: Any, said: dict[str, Any]) -> ClientError:
        """Say what the server refused and what to do about it."""
        status, broke = response.status_code, said.get("code") == "insufficient_quota"
        busy = (status in (408, 409, 429) or status >= 500) and not broke
        key = f"the key from {self._key.source}" if self._key else "no key was sent: give api_key"
        hint = {
            401: f"check the key ({key})",
            403: f"this key may not use {self.model!r} ({key})",
            404: f"check the model's name ({self.model!r}) and base_url (it usually ends in /v1)",
        }.get(status, "no money is left on this account" if broke else "")
        return ClientError(
            f"{self.base_url} refused with status {status}: {self._shown(said['message'])}"
            f"{hint and f' – {hint}'}",
            transient=busy,
            retry_after=_retry_after(response.headers) if busy else None,
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
    """Return the address without its last slash; a password in it would show in errors."""
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise BadParameter("base_url must look like http://127.0.0.1:8000/v1")
    if parts.username is not None or parts.query or parts.fragment:
        raise BadParameter("base_url must hold no user, password or query: give the key as api_key")
    return base_url.rstrip("/")


def _key(
    base_url: str, key: str | Secret | None, file: str | Path | None, name: str | None
) -> Secret | None:
    """Find the key; None for a server on this machine for which none is given."""
    if [key, file, name].count(None) < 2:
        raise BadParameter("give only one of api_key, api_key_file and api_key_env")
    if key is not None:
        return key if isinstance(key, Secret) else Secret(key)
    if file is not None:
        return Secret.from_file(file)
    host = urlsplit(base_url).hostname or ""
    with suppress(ValueError):
        host = "localhost" if ipaddress.ip_address(host).is_loopback else host
    if name is None and host == "localhost":
        return None
    return Secret.from_environment(name or "OPENAI_API_KEY")


def _said(response: Any) -> dict[str, Any]:
    """Return what a server says about its refusal: ``message``, perhaps ``code`` and ``param``."""
    text = response.text.strip()
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = text
    said = said.get("error", said) if isinstance(said, dict) else said
    said = said if isinstance(said, dict) else {"message": said}
    return said | {"message": str(said.get("message") or said.get("detail") or "refused")}


def _cause(error: BaseException) -> str:
    """Return the words of the lowest error that led to this one."""
    while (below := error.__cause__ or error.__context__) is not None:
        error = below
    return str(error) or type(error).__name__


def _count(usage: Any, name: str) -> int:
    """Return a server's count of tokens; 0 if it is none, or one that cannot be believed."""
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and 0 <= value <= 10**9 else 0


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
