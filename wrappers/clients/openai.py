"""A client for OpenAI and for any server that speaks its chat completions."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import re
import socket
import ssl
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from llm_games.errors import BadParameter, LLMGamesError, install, unknown
from llm_games.facts import check_choice, check_number
from llm_games.version import __version__
from llm_games.wrappers.clients import response_parsing
from llm_games.wrappers.clients.base import (
    CACHING,
    ClientError,
    Completion,
    ContextOverflow,
    Request,
    Unsent,
)
from llm_games.wrappers.clients.chat import Message, byte_count
from llm_games.wrappers.clients.flights import ended
from llm_games.wrappers.clients.response_parsing import LIMITS
from llm_games.wrappers.clients.secrets import SECRETIVE, Secret
from llm_games.wrappers.clients.waves import BatchService, Waves, asking, line_name, line_of

log = logging.getLogger(__name__)

OFFICIAL = "https://api.openai.com/v1"
TIMEOUT = 600.0  # seconds; thoughts of many minutes are paid for, whether waited for or not
MOST_AT_ONCE = 10_000  # connections to one server; below, `Limit` decides
CONNECT = 15.0  # seconds to connect
IDLE = 4.0  # seconds for which a connection is kept; servers hang up after 5 and more
PASSING = 408, 409, 424, 425, 429  # statuses below 500 of what another try may mend
OPTIONS = (
    "temperature", "top_p", "max_tokens", "reasoning_effort", "stop", "seed", "response_format",
    "service_tier", "tools", "stream", "stream_options", *CACHING,
)  # fmt: skip
"""What can be left out of a request, beside what `extra_body` adds."""


REDIRECTS = 301, 302, 303, 307, 308


class _Line:
    """Connections of one event loop: aiohttp's `session`, and OpenAI's library if it is needed.

    The library, slow to load and to call, is for streams, and calls that are sent on or by proxies.
    """

    def __init__(self, session: Any) -> None:
        self.session = session
        self.library: Any = None

    async def close(self) -> None:
        for opened in filter(None, (self.session, self.library)):
            await opened.close()


LOOSE = {"minLength", "maxLength", "oneOf", "allOf", "patternProperties", "uniqueItems"}
"""Words of schemas that OpenAI's strict mode does not take."""
JSON_OBJECT = {"type": "json_object"}  # the form of an answer that is any JSON object


class OpenAIClient:
    """Completes chats on a server that speaks OpenAI's chat completions.

    An option that the server refuses by name is left out from then on; completions say so.

    Args:
        model: its name, as the server knows it.
        base_url: such as ``http://127.0.0.1:8000/v1``; by default ``OPENAI_BASE_URL`` of the
            environment, else OpenAI itself.
        api_key, api_key_file, api_key_env: the key, a file that holds nothing else, or its
            environment variable (default ``OPENAI_API_KEY``; "" for a server that takes none; one
            on this machine gets none unless one of the three is given).
        timeout: seconds for one call, the whole answer included.
        structured: ``auto`` asks for the answer's JSON schema until the server refuses it,
            ``always`` insists, ``never`` does not ask.
        tool_calls: ``native`` insists on the server's own way, ``json`` is as text in every reply,
            ``auto`` takes both, and text alone once the server refuses.
        stream: let answers come in pieces, for gateways that cut silent connections.
        service_tier: the server's name of a tariff, such as ``flex``.
        leave_out: names of options that are never sent, see `OPTIONS`.
        headers: further headers; ``env:NAME`` in a value stands for an environment variable.

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
        timeout: float = TIMEOUT,
        structured: str = "auto",
        tool_calls: str = "auto",
        stream: bool = False,
        service_tier: str | None = None,
        leave_out: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if find_spec("openai") is None or find_spec("aiohttp") is None:
            raise ClientError(f"OpenAIClient needs a package: {install('openai')}")
        if not isinstance(model, str) or not model:
            raise BadParameter(f"model must be the name of a model, got {model!r}")
        check_number("timeout", timeout, 0.001)
        check_choice("structured", structured, ("auto", "always", "never"))
        check_choice("tool_calls", tool_calls, ("auto", "native", "json"))
        for name in leave_out:
            if name not in OPTIONS:
                raise unknown("option to leave out", name, OPTIONS)
        self.name = self.model = model
        self.base_url = _checked(base_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL)
        self._key = key_for(self.base_url, api_key, api_key_file, api_key_env)
        self._header_settings = dict(headers or {})
        self._headers, hidden = read_headers(self._header_settings)
        self._secrets = [*([self._key] if self._key else []), *hidden]
        self.timeout, self.structured, self.tool_calls = timeout, structured, tool_calls
        self.stream, self.service_tier, self.leave_out = stream, service_tier, set(leave_out)
        self.waves: Waves | None = None  # by which calls go out, if not one by one
        self._refused: set[str] = set()
        self._accounts: dict[asyncio.AbstractEventLoop, Any] = {}
        weakref.finalize(self, _hang_up, self._accounts)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle neither connections, which are of this process, nor what a key was put into."""
        excluded = ("_accounts", "_headers")
        return {name: value for name, value in vars(self).items() if name not in excluded}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._headers, _ = read_headers(self._header_settings)
        self._accounts = {}
        weakref.finalize(self, _hang_up, self._accounts)

    def __repr__(self) -> str:
        return f"OpenAIClient({self.model!r}, base_url={self.base_url!r})"

    async def complete(self, request: Request) -> Completion:
        """Return one completion, or raise a ClientError. To try again is a layer's job."""
        if self.waves is not None:
            asking.set(line_name(request))
        answer = await self._call(request)
        if isinstance(answer, ClientError):  # raised here, it does not carry what must not show
            raise answer
        parts = ("text", "thoughts", "refusal", "tool_calls")
        shown = {name: self._masked(getattr(answer, name), reply=True) for name in parts}
        return replace(answer, **shown, model=self._shown(answer.model))

    async def close(self) -> None:
        """Close the connections, those of other event loops too. The client can be used again."""
        if self.waves is not None:
            await self.waves.close()
        here = asyncio.get_running_loop()
        if (line := self._accounts.pop(here, None)) is not None:
            await line.close()
        if self._accounts:
            await asyncio.to_thread(_hang_up, self._accounts)

    # -- batches ----------------------------------------------------------------------------------

    def batches(self) -> BatchService:
        """Return the server's interface for batches; BadParameter: this client has none."""
        from llm_games.wrappers.clients.batch_services import OpenAIBatches

        self._check_whole()
        return OpenAIBatches(self)

    def _check_whole(self) -> None:
        if self.stream:
            raise BadParameter("answers of batches come whole: leave out stream, or batch")

    def leave_out_also(self, names: Iterable[str]) -> None:
        """Leave out what the server has refused before."""
        self._refused |= {*names}

    @property
    def seconds(self) -> float | None:
        """Seconds for one call; None: it is a line of a batch, which has a day."""
        return self.timeout if self.waves is None else None

    def account(self) -> Any:
        """Return the library's client for this event loop, whose calls go out one by one."""
        return self._library().with_options(timeout=self.timeout)

    def fault(self, error: Exception) -> ClientError | None:
        """Return what failed in a call by the library's client; None: it is no such error."""
        import aiohttp
        import httpx2

        if isinstance(error, ClientError):
            return error
        response = getattr(error, "response", None)
        if response is not None:
            refusal = response_parsing.refusal_of(response_parsing.opened(response.content))
            return self._failure(response.status_code, refusal, response.headers)
        if isinstance(error, TimeoutError):
            return self._late()
        if isinstance(error, AttributeError | TypeError | LookupError | ValueError):
            return self._broken(f"answers with what is no batch ({self._shown(str(error))})")
        library = type(error).__module__.partition(".")[0] in ("openai", "anthropic")
        if library or isinstance(error, httpx2.HTTPError | aiohttp.ClientError | OSError):
            return self._unreached(error)
        return None

    async def _in_wave(self, content: bytes, betas: str = "") -> tuple[int, Any, Any]:
        """Return status, content and headers of the answer to a line of a batch."""
        assert self.waves is not None
        answer = await self.waves.answer(line_of(content, betas, self._refused))
        return answer.status, answer.content, {}

    # -- one call ---------------------------------------------------------------------------------

    async def _call(self, request: Request) -> Completion | ClientError:
        """Try once; options that the server refuses by name are left out at once."""
        began, blamed = time.perf_counter(), set[str]()
        while True:
            body, left_out = self._body(request)
            response = await self._send(body)
            if isinstance(response, ClientError):
                return response
            status: int | None
            status, content, headers = response
            answer = response_parsing.opened(content)
            status = status if status >= 400 else response_parsing.status_in(answer)
            if status is None and not response_parsing.tells_error(answer):
                return self._read(answer, body, left_out, time.perf_counter() - began)
            refusal = response_parsing.refusal_of(answer)
            if response_parsing.filtered(status, refusal):
                return self._filtered(refusal["message"], left_out, time.perf_counter() - began)
            name = response_parsing.refused(status or 502, refusal, self._optional(body))
            if name is None:
                failure = self._failure(status, refusal, headers)
                if not failure.transient:  # it was not for what was left out
                    self._refused -= blamed
                return failure
            if name == "response_format":
                is_json = body[name]["type"] == "json_object"
                whole = is_json or not response_parsing.of_kind(refusal)
                name = _form(request) if whole else _schema(request)
            blamed |= {name} - self._refused
            self._leave_out(name)
            if ended():
                return Unsent()

    def _optional(self, body: Mapping[str, Any]) -> set[str]:
        """Return the names in a body that can be left out."""
        insists = {
            "response_format": self.structured == "always",
            "tools": self.tool_calls == "native",
        }
        return {k for k in body if k not in ("model", "messages") and not insists.get(k)}

    def _leave_out(self, name: str) -> None:
        if name not in self._refused:  # else another call has learned of it meanwhile
            log.warning("%s refuses %s and is asked without it", self.base_url, name)
            self._refused.add(name)

    def _body(self, request: Request) -> tuple[dict[str, Any], list[str] | None]:
        """Return the body of a call, and the options left out since the server refuses them."""
        sampling, native = request.sampling, self._calls_natively()
        form = None if self.structured == "never" else request.schema(calls=not native)
        # OpenAI has a new name for the limit of tokens, most others know the old one.
        names = LIMITS if self.base_url == OFFICIAL else LIMITS[::-1]
        limit = next((name for name in names if name not in self._refused), "max_tokens")
        bare = _schema(request) in self._refused  # only JSON of any schema is taken
        options: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": request.seed,
            limit: sampling.max_tokens,
            "reasoning_effort": sampling.reasoning_effort,
            "stop": sampling.stop,
            "service_tier": self.service_tier,
            "prompt_cache_key": request.dialogue if knows_keys(self.base_url) else None,
            "response_format": form and (JSON_OBJECT if bare else _named(form)),
            "tools": [{"type": "function", "function": dict(tool)} for tool in request.tools],
            "stream": self.stream or None,
            "stream_options": {"include_usage": True} if self.stream else None,
            **(sampling.extra_body or {}),
        }
        never = {*self.leave_out, *(LIMITS if "max_tokens" in self.leave_out else ())}
        never |= {"tools"} if self.tool_calls == "json" else set()
        refused = {
            *self._refused,
            *(["response_format"] if _form(request) in self._refused else []),
        }
        wanted = {k: v for k, v in options.items() if v not in (None, "", []) and k not in never}
        body = {"model": self.model, "messages": rendered(request.messages, native)}
        body |= {name: value for name, value in wanted.items() if name not in refused}
        left_out = wanted.keys() & refused - {*CACHING}
        if body.get("response_format") == JSON_OBJECT:
            left_out |= {"response_format"}  # its schema
        return body, sorted(left_out) or None

    def _calls_natively(self) -> bool:
        return self.tool_calls != "json" and "tools" not in self._refused | self.leave_out

    async def _send(self, body: dict[str, Any]) -> tuple[int, Any, Any] | ClientError:
        """Return status, content and headers, or what failed on the way and what to do about it."""
        import aiohttp

        try:
            text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            post = self._streamed if "stream" in body else self._posted
            if self.waves is not None:
                post = self._in_wave
            async with asyncio.timeout(self.seconds):
                return await post(text.encode(errors="replace"))
        except ClientError as error:  # of a wave, told to all its lines
            return copy.copy(error)
        except (
            aiohttp.ClientError,
            OSError,
        ) as error:  # those of connecting are kinds of TimeoutError
            return self._late() if type(error) is TimeoutError else self._unreached(error)
        except ValueError as error:
            fault = f"{type(error).__name__}: {self._shown(str(error))}"
            return ClientError(f"{self.base_url}: {fault}")

    async def _posted(self, content: bytes) -> tuple[int, Any, Any] | ClientError:
        """Return status, content and headers of the answer."""
        url = f"{self.base_url}/chat/completions"
        if session := self._account().session:
            async with session.post(url, data=content, allow_redirects=False) as got:
                if got.status not in REDIRECTS:
                    return got.status, await got.read(), got.headers
        return await self._streamed(content)

    async def _streamed(self, content: bytes) -> tuple[int, Any, Any] | ClientError:
        """Return the same by OpenAI's library; what comes in pieces is put together."""
        import httpx2
        import openai

        kinds: Any = {"cast_to": object, "stream_cls": openai.AsyncStream[object]}
        post, whole = self._library().post, response_parsing.Stream()
        try:
            async with await post(
                "/chat/completions", content=content, stream=True, **kinds
            ) as pieces:
                got = pieces.response
                if "event-stream" not in got.headers.get("content-type", ""):
                    return got.status_code, await got.aread(), got.headers
                try:
                    async for piece in pieces:
                        whole.add(piece)
                except (openai.APIConnectionError, openai.APIStatusError):
                    raise
                except openai.APIError as error:  # told in the stream
                    if not whole.finish:
                        return got.status_code, {"error": error.body}, got.headers
                except (ValueError, RecursionError):  # no JSON
                    return got.status_code, b"", got.headers
            return got.status_code, whole.whole() if whole.finish else b"", got.headers
        except openai.APIStatusError as error:
            return error.response.status_code, error.response.content, error.response.headers
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            return self._unreached(error)

    def _account(self) -> Any:
        loop = asyncio.get_running_loop()
        if loop not in self._accounts:
            _hang_up(self._accounts, ended=True)
            self._accounts[loop] = self._opened()
        return self._accounts[loop]

    def _opened(self) -> Any:
        import aiohttp

        if getproxies() and not is_loopback(self.base_url):
            return _Line(None)
        headers = {"authorization": f"Bearer {self._key.reveal() if self._key else 'none'}"}
        headers |= dict.fromkeys(("accept", "content-type"), "application/json")
        headers["user-agent"] = f"llm-games/{__version__}"
        for name, variable in ("organization", "ORG_ID"), ("project", "PROJECT_ID"):
            if value := os.environ.get(f"OPENAI_{variable}"):  # as OpenAI's library does
                headers[f"openai-{name}"] = value
        headers |= {name.lower(): value for name, value in self._headers.items()}
        trusted = _trusted() if self.base_url.startswith("https:") else True
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trusted, limit=MOST_AT_ONCE, keepalive_timeout=IDLE),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),  # no call knows of another
            timeout=aiohttp.ClientTimeout(sock_connect=min(self.timeout, CONNECT)),
        )
        return _Line(session)

    def _library(self) -> Any:
        """Return the client of OpenAI's library for this event loop."""
        import openai

        line = self._account()
        if line.library is None:
            http = connections(self.base_url, self.timeout, self._masked)
            library = openai.AsyncOpenAI(
                api_key=self._key.reveal() if self._key else "none",
                base_url=self.base_url,
                max_retries=0,
                http_client=http,
                timeout=http.timeout,
            )
            statistics: Any = dict.fromkeys(library.platform_headers(), openai.omit)
            line.library = library.with_options(default_headers=statistics | self._headers)
        return line.library

    # -- replies ----------------------------------------------------------------------------------

    def _read(
        self, answer: Any, body: Mapping[str, Any], left_out: list[str] | None, latency: float
    ) -> Completion | ClientError:
        if isinstance(answer, str):
            page = (
                "answers with a page, not with a completion: is base_url right? It usually ends "
                f"in /v1. The page begins {self._shown(answer)[:300]!r}"
            )
            cut = "sent an answer that is cut off or no JSON"
            return self._broken(page if answer.lstrip()[:1] == "<" else cut)
        offered = [tool["function"]["name"] for tool in body.get("tools", ())]
        texts = (str(message.get("content") or "") for message in body["messages"])
        size = sum(map(byte_count, texts))
        try:
            got = response_parsing.read(answer, offered, size)
        except ValueError as error:
            return self._broken(f"sent no completion ({self._shown(str(error))})")
        return replace(got, model=got.model or self.model, latency=latency, left_out=left_out)

    def _late(self) -> ClientError:
        late = f"gave no answer within {self.timeout:g} s: it may be busy, or timeout may be too "
        return self._broken(f"{late}short for this model")

    def _unreached(self, error: Exception) -> ClientError:
        cause: BaseException = error
        unconnected = _unconnected(cause)
        while cause.__cause__ is not None:  # down to the one that led to it
            cause = cause.__cause__
            unconnected = unconnected or _unconnected(cause)
        if isinstance(cause, ClientError):
            return copy.copy(cause)
        if isinstance(cause, LLMGamesError):  # of a run's own file
            raise cause
        return ClientError(
            f"cannot reach {self.base_url} ({self._shown(str(cause) or type(cause).__name__)}): "
            "check that the server is running, that base_url is right, and the network",
            transient=True,
            unsure=not unconnected,
        )

    def _filtered(self, words: str, left_out: list[str] | None, latency: float) -> Completion:
        """Return the outcome of a call that a filter of prompts declined."""
        return Completion(
            "", "refusal", latency=latency, model=self.model, refusal=words, left_out=left_out
        )

    def _broken(self, what: str) -> ClientError:
        return ClientError(f"{self.base_url} {what}", transient=True, unsure=True)

    def _failure(self, status: int | None, refusal: Mapping[str, Any], headers: Any) -> ClientError:
        how = "sent an error" if status is None else f"refused with status {status}"
        fault = f"{self.base_url} {how}: {self._shown(refusal['message'])}"
        if response_parsing.too_long(status, refusal):
            return ContextOverflow(f"{fault} – the chat is too long for the model", status=status)
        hint, lasting = "", True
        key = "no key was sent: give api_key_env or api_key_file"
        if self._key:
            key = f"the key from {self._key.source}"
        elif is_loopback(self.base_url):
            key = f"a server on this machine gets no key unless one is given, so {key}"
        if response_parsing.broke(status, refusal):
            hint = "no money is left on this account, or its quota is used up"
        elif response_parsing.wrong_key(status, refusal):
            hint = f"check the key ({key})"
        elif status == 403:
            hint = f"this key may not use {self.model!r} ({key})"
        elif response_parsing.no_model(status, refusal):
            hint = f"check the model's name ({self.model!r}) and base_url (it usually ends in /v1)"
        else:
            lasting = status is not None and status < 500 and status not in PASSING
        return ClientError(
            f"{fault}{hint and f' – {hint}'}",
            transient=not lasting,
            retry_after=None if lasting else response_parsing.retry_after(headers, refusal),
            status=status,
        )

    def _masked(self, value: Any, reply: bool = False) -> Any:
        """Mask secrets in texts of a JSON value; in a `reply` not what it can hold by chance."""
        if isinstance(value, str):
            for secret in self._secrets:
                value = value if reply and secret.plain else secret.redact(value)
        elif isinstance(value, list):
            value = [self._masked(item, reply) for item in value]
        elif isinstance(value, dict):
            value = {self._masked(k, reply): self._masked(v, reply) for k, v in value.items()}
        return value

    def _shown(self, text: str) -> str:
        text = " ".join(self._masked(text).split())
        return text if len(text) <= 300 else f"{text[:300]}…"


# -- requests -------------------------------------------------------------------------------------


def rendered(chat: Iterable[Message], native: bool) -> list[dict[str, Any]]:
    """Write a chat as servers read it; calls of tools in their own form only if `native`."""
    written: list[dict[str, Any]] = []
    for message in chat:
        if message["role"] != "tool":
            written.append({**message})
        elif not native:
            written.append({**message, "role": "user"})
        else:
            name = f"call_{len(written)}"
            call = json.loads(written[-1]["content"])
            function = {"name": call["tool"], "arguments": json.dumps(call["arguments"])}
            native_call = {"id": name, "type": "function", "function": function}
            written[-1] |= {"content": "", "tool_calls": [native_call]}
            written.append({**message, "tool_call_id": name})
    return written


def _named(form: Mapping[str, Any]) -> dict[str, Any]:
    strict = "type" in form and _is_strict(form)
    schema = {"name": response_parsing.REPLY, "strict": strict, "schema": form}
    return {"type": "json_schema", "json_schema": schema}


def _is_strict(form: Any) -> bool:
    """Return whether OpenAI can hold replies to a schema: objects of just what they must have."""
    if isinstance(form, list):
        return all(map(_is_strict, form))
    if not isinstance(form, dict):
        return True
    parts = form.get("properties", {})
    closed = form.get("type") != "object" or (
        form.get("additionalProperties") is False and {*form.get("required", ())} == {*parts}
    )
    below = [value for name, value in form.items() if name != "properties"]
    return closed and not LOOSE & {*form} and _is_strict(below) and _is_strict([*parts.values()])


def _schema(request: Request) -> str:
    return f"json_schema of {_form(request)}"


def _form(request: Request) -> str:
    """Name the form of answer that is wanted: a server may take one schema and refuse another."""
    calls = " or a call" if hasattr(request.question, "alone") else ""
    return f"response_format {request.question.key}{calls}" if request.question else ""


# -- connections ----------------------------------------------------------------------------------


def connections(base_url: str, timeout: float, masked: Callable[[str], str]) -> Any:
    """Open connections for one event loop, to this server alone; the limit is on connecting.

    `masked` hides secrets in errors.
    """
    import httpx2
    import openai

    home = httpx2.URL(base_url)

    async def stay(asked: Any) -> None:
        to = asked.url
        if (to.scheme, to.host, to.port) != (home.scheme, home.host, home.port):
            raise ClientError(
                f"{base_url} sends calls on to {masked(f'{to.scheme}://{to.netloc.decode()}')}: "
                "give the address there as base_url if keys and prompts may go there"
            )

    for name in ("httpx2", "openai"):  # a line for each call is too much
        library = logging.getLogger(name)
        library.setLevel(library.level or logging.WARNING)
    return openai.DefaultAioHttpClient(
        verify=_trusted(),
        trust_env=not is_loopback(base_url),  # no proxy reaches a server on this machine
        event_hooks={"request": [stay]},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # no call knows of another
        limits=httpx2.Limits(max_connections=MOST_AT_ONCE),
        timeout=httpx2.Timeout(None, connect=min(timeout, CONNECT)),
    )


def _hang_up(accounts: dict[asyncio.AbstractEventLoop, Any], ended: bool = False) -> None:
    """Close the connections of event loops that do not run here; only of `ended` ones if so."""
    for loop in list(accounts):
        if ended and not loop.is_closed():
            continue
        closing = accounts.pop(loop).close()
        with suppress(StopIteration, RuntimeError, OSError, TimeoutError):
            if loop.is_running():
                done = asyncio.run_coroutine_threadsafe(closing, loop)
                if loop is not asyncio._get_running_loop():
                    done.result(1)
            else:
                closing.send(None)  # nothing is left to wait for


@cache
def _trusted() -> Any:
    """Return the certificates to trust; to read them takes 50 ms."""
    import httpx2

    return httpx2.create_ssl_context()


# -- settings -------------------------------------------------------------------------------------


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


def knows_keys(base_url: str) -> bool:
    """Return whether `prompt_cache_key` is of use: with OpenAI and Azure; others may refuse it."""
    return base_url == OFFICIAL or (urlsplit(base_url).hostname or "").endswith(".azure.com")


def is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def key_for(
    base_url: str, key: str | Secret | None, file: str | Path | None, name: str | None
) -> Secret | None:
    """Find the key; None for "", or for a server on this machine for which none is given."""
    if [key, file, name].count(None) < 2:
        raise BadParameter("give only one of api_key, api_key_file and api_key_env")
    if key is not None:
        return key if isinstance(key, Secret) else Secret(key)
    if file is not None:
        return Secret.from_file(file)
    if name == "" or (name is None and is_loopback(base_url)):
        return None
    return Secret.from_environment(name or "OPENAI_API_KEY")


def read_headers(headers: Mapping[str, str]) -> tuple[dict[str, str], list[Secret]]:
    """Resolve ``env:NAME`` in headers; also return the secrets among them."""
    resolved: dict[str, str] = {}
    hidden: list[Secret] = []
    for header, value in headers.items():
        if not isinstance(value, str) or not re.fullmatch(r"[\w-]+", header, re.ASCII):
            raise BadParameter(f"headers must be names and texts, got {header!r}")
        prefix, mark, name = value.partition("env:")
        if mark:
            hidden.append(Secret.from_environment(name))
        elif value.strip() and SECRETIVE.search(header):
            hidden.append(Secret(value.split()[-1], f"the header {header}"))
        resolved[header] = prefix + hidden[-1].reveal() if mark else value
    return resolved, hidden


def _unconnected(cause: BaseException) -> bool:
    """Test whether a call was never sent, since there was no connection."""
    import aiohttp

    kinds = (
        *(ConnectionRefusedError, socket.gaierror, ssl.SSLError, aiohttp.ClientConnectorError),
        aiohttp.ServerTimeoutError,  # the only limit in its hands is that of connecting
    )
    return isinstance(cause, kinds) or type(cause).__name__ in ("ConnectError", "ConnectTimeout")
