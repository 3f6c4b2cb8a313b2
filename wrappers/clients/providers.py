"""Models by ``provider/name``: one table of servers, and one adapter for those of other protocols.

Servers that speak OpenAI's chat completions are called by `OpenAIClient`. The others are called
through the models of pydantic-ai (``pip install 'llm-games[providers]'``).
"""

from __future__ import annotations

import asyncio
import os
import re
import time
import warnings
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

from llm_games.errors import BadParameter, install, unknown
from llm_games.wrappers.clients import response_parsing
from llm_games.wrappers.clients.base import CACHING, ClientError, Completion, Request, Unsent
from llm_games.wrappers.clients.flights import ended
from llm_games.wrappers.clients.openai import (
    CONNECT,
    OFFICIAL,
    OpenAIClient,
    connections,
    is_loopback,
    knows_keys,
    rendered,
)
from llm_games.wrappers.clients.response_parsing import LONGEST_TEXT, REPLY
from llm_games.wrappers.clients.waves import BatchService


class Provider(NamedTuple):
    """A provider's address, and the environment variables that may hold the key."""

    base_url: str
    keys: tuple[str, ...] = ()  # none: it takes a key only if one is given


COMPATIBLE = {
    "openai": Provider(OFFICIAL, ("OPENAI_API_KEY",)),
    "azure": Provider("", ("AZURE_OPENAI_API_KEY",)),  # https://RESOURCE.openai.azure.com/openai/v1
    "openrouter": Provider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "together": Provider("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "groq": Provider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "deepseek": Provider("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    "mistral": Provider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "xai": Provider("https://api.x.ai/v1", ("XAI_API_KEY",)),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    "cerebras": Provider("https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    "sambanova": Provider("https://api.sambanova.ai/v1", ("SAMBANOVA_API_KEY",)),
    "deepinfra": Provider("https://api.deepinfra.com/v1/openai", ("DEEPINFRA_API_KEY",)),
    "nebius": Provider("https://api.studio.nebius.com/v1", ("NEBIUS_API_KEY",)),
    "moonshot": Provider("https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",)),
    "alibaba": Provider(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY",)
    ),
    "zai": Provider("https://api.z.ai/api/paas/v4", ("ZAI_API_KEY",)),
    "nvidia": Provider("https://integrate.api.nvidia.com/v1", ("NVIDIA_API_KEY",)),
    "huggingface": Provider("https://router.huggingface.co/v1", ("HF_TOKEN",)),
    "vllm": Provider("http://127.0.0.1:8000/v1"),
    "ollama": Provider("http://127.0.0.1:11434/v1"),
    "lmstudio": Provider("http://127.0.0.1:1234/v1"),
    "llamacpp": Provider("http://127.0.0.1:8080/v1"),
    "sglang": Provider("http://127.0.0.1:30000/v1"),
    "litellm": Provider("http://127.0.0.1:4000/v1"),
}
"""Providers that speak OpenAI's chat completions."""
ADAPTED = {
    "anthropic": Provider("https://api.anthropic.com", ("ANTHROPIC_API_KEY",)),
    "google": Provider(
        "https://generativelanguage.googleapis.com", ("GOOGLE_API_KEY", "GEMINI_API_KEY")
    ),
    "bedrock": Provider("https://bedrock-runtime.amazonaws.com"),  # keys, region: as AWS has them
    "openai-responses": Provider(OFFICIAL, ("OPENAI_API_KEY",)),
}
"""Providers that are called through pydantic-ai."""
_WRITTEN = {
    "temperature": "temperature",
    "top_p": "top_?p",
    "max_tokens": "max_?(output_?|completion_?)?tokens",
    "seed": "seed",
    "stop": "stop",
    "reasoning_effort": "effort|thinking|reasoning",
    "service_tier": "service_?tier",
    "response_format": "(text_?)?format|response_?(json_?)?schema",
}
"""How options are called in what is sent, by any provider."""
_UNKNOWN = {"google": {"minLength", "multipleOf"}}  # words of schemas that are not taken
_UNREADABLE = AttributeError, TypeError, LookupError, ValueError, AssertionError, RecursionError
"""What libraries raise that trust what a server sends."""
_sent: ContextVar[list[bytes]] = ContextVar("sent")
_NAMES = {
    "stop": "stop_sequences",
    "reasoning_effort": "thinking",
    "prompt_cache_key": "openai_prompt_cache_key",
}
"""What pydantic-ai calls them."""
_CACHES = ("anthropic", "bedrock")  # cache what is marked with `cache_control`, at its own price


def client_for(name: str, **settings: Any) -> OpenAIClient:
    """Return the client of a model by ``provider/name``, such as ``anthropic/claude-haiku-4-5``.

    `settings` are those of `OpenAIClient`. The name may hold further slashes and colons. A key that
    is not given is looked for in the provider's environment variables, see `COMPATIBLE`, `ADAPTED`.

    Raises:
        UnknownName, BadParameter, ClientError: there is no such provider; what `OpenAIClient` says.
    """
    provider, slash, model = name.partition("/")
    if not slash or not model:
        raise BadParameter(f"a model is named provider/name, as in vllm/qwen3, got {name!r}")
    defaults = (COMPATIBLE | ADAPTED).get(provider)
    if defaults is None:
        raise unknown("provider", provider, {*COMPATIBLE, *ADAPTED})
    settings["base_url"] = address = settings.get("base_url") or defaults.base_url
    if not address:
        way = "base_url, such as https://RESOURCE.openai.azure.com/openai/v1"
        raise BadParameter(f"{provider} needs {way}")
    if all(settings.get(key) is None for key in ("api_key", "api_key_file", "api_key_env")):
        keys = () if is_loopback(address) else defaults.keys
        settings["api_key_env"] = next(filter(os.environ.get, keys), [*keys, ""][0])
    if provider in ADAPTED:
        return ProviderClient(provider, model, **settings)
    return OpenAIClient(model, **settings)


@dataclass
class _Model:
    """A model of pydantic-ai with its connections, for one event loop."""

    model: Any
    http: Any
    account: Any = None  # of the provider's library, for batches

    async def close(self) -> None:
        await self.http.aclose()
        if self.account is not None:
            await self.account.close()


class ProviderClient(OpenAIClient):
    """Completes chats of providers with other protocols; settings and errors of `OpenAIClient`."""

    def __init__(self, provider: str, model: str, **settings: Any) -> None:
        package = {"anthropic": "anthropic", "google": "google.genai", "bedrock": "boto3"}
        for needed in ("pydantic_ai", package.get(provider, "openai")):
            if not _installed(needed):
                raise ClientError(f"{provider}/ needs a package: {install('providers')}")
        super().__init__(model, **settings)
        self.provider = provider

    def __repr__(self) -> str:
        return f"ProviderClient({self.provider!r}, {self.model!r}, base_url={self.base_url!r})"

    def batches(self) -> BatchService:
        """Return the provider's interface for batches; BadParameter: it is none of ours."""
        from llm_games.wrappers.clients.batch_services import AnthropicBatches

        if self.provider != "anthropic":
            raise BadParameter(
                f"{self.provider}/ is asked call by call: leave out batch, which is for anthropic/ "
                "and for servers that speak OpenAI's chat completions"
            )
        self._check_whole()
        return AnthropicBatches(self)

    async def _call(self, request: Request) -> Completion | ClientError:
        """Try once; options that are refused by name are left out at once."""
        from pydantic_ai import direct  # noqa: F401  # imported before a call's own time begins
        from pydantic_ai import exceptions as faults

        self._account()
        began, blamed, sent = time.perf_counter(), set[str](), list[bytes]()
        odd: Any = (faults.UnexpectedModelBehavior, *_UNREADABLE, *self._odd)

        def ends() -> tuple[list[str] | None, float]:
            return self._left_out(request, b"".join(sent[-1:])), time.perf_counter() - began

        while True:
            options, fault = self._options(request), None
            sent.clear()
            _sent.set(sent)
            try:
                async with asyncio.timeout(self.seconds):
                    response = await self._ask(request, options)
                return self._completion(response, request, *ends())
            except TimeoutError:
                return self._late()
            except faults.ContentFilterError as error:
                return self._filtered(str(error), *ends())
            except (faults.ModelAPIError, faults.UserError) as error:
                fault, name = error, self._refused_by(error, options)
            except odd as error:
                words = f"{type(error).__name__}: {error}"
                if sent:
                    return self._broken(f"sent no completion ({self._shown(words)})")
                name = "response_format" if "response_format" in self._optional(options) else None
                if name is None:  # a fault on this side, which no waiting mends
                    self._refused -= blamed
                    return ClientError(f"{self.provider}: nothing was sent ({self._shown(words)})")
            if name is None:
                failure = self._fault(fault, *ends())
                if isinstance(failure, ClientError) and not failure.transient:
                    self._refused -= blamed  # it was not for what was left out
                return failure
            blamed |= {name} - self._refused
            self._leave_out(name)
            if ended():
                return Unsent()

    def _wanted(self, request: Request) -> dict[str, Any]:
        """Return the options of a request, by OpenAI's names."""
        sampling, native = request.sampling, bool(request.tools) and self._calls_natively()
        form = None if self.structured == "never" else request.schema(calls=not native)
        options = sampling.given() | {"seed": request.seed, "service_tier": self.service_tier}
        tools = request.tools if request.tools and self.tool_calls != "json" else None
        options |= {"response_format": form, "tools": tools}
        if self.provider in _CACHES:
            options["cache_control"] = True
        elif self.provider == "openai-responses" and knows_keys(self.base_url):
            options["prompt_cache_key"] = request.dialogue or None
        return {k: v for k, v in options.items() if v is not None and k not in self.leave_out}

    def _options(self, request: Request) -> dict[str, Any]:
        wanted = self._wanted(request)
        extra = wanted.get("extra_body") or {}
        wanted["extra_body"] = {k: v for k, v in extra.items() if k not in self._refused}
        return {k: v for k, v in wanted.items() if k not in self._refused and v != {}}

    def _left_out(self, request: Request, sent: bytes) -> list[str] | None:
        """Name what was asked for and not sent: refused before, or not of this protocol."""
        wanted = self._wanted(request)
        extra = wanted.pop("extra_body", {})
        wanted = {name: value for name, value in wanted.items() if name not in CACHING}
        left_out = {*wanted, *extra} & self._refused
        for name, words in (_WRITTEN | {key: re.escape(key) for key in extra}).items():
            is_sent = re.search(rf'(?<!\\)"({words})\w*"\s*:'.encode(), sent, re.I)
            left_out |= {name} if name in {*wanted, *extra} and sent and not is_sent else set()
        return sorted(left_out) or None

    async def _ask(self, request: Request, options: Mapping[str, Any]) -> Any:
        from pydantic_ai.direct import model_request, model_request_stream
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition
        from pydantic_ai.tools import ToolDefinition

        apart = {"response_format", "tools", "cache_control"}
        how = {_NAMES.get(k, k): v for k, v in options.items() if k not in apart}
        marks = bool(options.get("cache_control"))
        if marks:
            how |= {f"{self.provider}_cache_instructions": True}
            how |= {f"{self.provider}_cache_messages": request.stays}
        how |= {"timeout": self.timeout, "max_retries": 0, "extra_headers": self._headers}
        form, tools = options.get("response_format"), options.get("tools", ())
        form = _without(_UNKNOWN.get(self.provider, {"minLength"}), form)
        tool_forms = [
            ToolDefinition(
                name=tool["name"],
                parameters_json_schema=tool["parameters"],
                description=tool["description"],
            )
            for tool in tools
        ]
        parameters = ModelRequestParameters(
            function_tools=tool_forms,
            output_mode="native" if form else "text",
            output_object=form and OutputObjectDefinition(form, REPLY, strict=True),
            allow_text_output=True,
        )
        asked = (self._account().model, _messages(request, bool(tools), marks))
        extra: Any = {"model_settings": how, "model_request_parameters": parameters}
        if not self.stream or "stream" in self.leave_out:
            return await model_request(*asked, **extra)
        async with model_request_stream(*asked, **extra) as pieces:
            async for _ in pieces:
                pass
        return pieces.get()

    def _opened(self) -> _Model:
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import infer_provider_class

        async def keep(asked: Any) -> None:
            _sent.get([]).append(await asked.aread())

        # Completions say what was left out.
        warnings.filterwarnings("ignore", ".* not supported (by|when)", UserWarning)
        http, account = connections(self.base_url, self.timeout, self._masked), None
        key = self._key.reveal() if self._key else "none"
        if self.waves is not None:
            import anthropic
            import httpx2

            how = {"base_url": self.base_url, "http_client": http, "default_headers": self._headers}
            account = anthropic.AsyncAnthropic(api_key=key, max_retries=0, **how)
            http = httpx2.AsyncClient(transport=httpx2.MockTransport(self._library_in_wave))
        http.event_hooks["request"].append(keep)

        def provider(name: str) -> Any:
            provider_class: Any = infer_provider_class(name)
            if self.provider == "bedrock":
                return provider_class(bedrock_client=self._amazons())
            return provider_class(api_key=key, base_url=self.base_url, http_client=http)

        return _Model(infer_model(f"{self.provider}:{self.model}", provider), http, account)

    def account(self) -> Any:
        return self._account().account.with_options(timeout=self.timeout)

    async def _library_in_wave(self, asked: Any) -> Any:
        """Answer a request of the provider's library, in place of its server."""
        import httpx2

        betas = asked.headers.get("anthropic-beta", "")
        status, content, _ = await self._in_wave(await asked.aread(), betas)
        kind = {"content-type": "application/json"}
        return httpx2.Response(status, content=content, headers=kind, request=asked)

    @property
    def _odd(self) -> tuple[type[Exception], ...]:
        """Errors of a provider's library that are no error of a call to it."""
        if self.provider != "bedrock":
            return ()
        from botocore.exceptions import BotoCoreError
        from botocore.parsers import ResponseParserError

        return BotoCoreError, ResponseParserError

    def _amazons(self) -> Any:
        """Return Amazon's client, which makes each call once: to make it again is a layer's job."""
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session
        from botocore.tokens import FrozenAuthToken

        def keep(request: Any, **_: Any) -> None:
            _sent.get([]).append(bytes(request.body or b""))

        session: Any = Session()
        region = session.get_config_variable("region")
        custom = self.base_url != ADAPTED["bedrock"].base_url  # else it is that of the region
        if custom and not region:
            match = re.search(r"bedrock-runtime[\w-]*\.([\w-]+)\.", self.base_url)
            region = match[1] if match else "us-east-1"
        if not region:
            raise ClientError(
                "bedrock/ needs a region: set the environment variable AWS_DEFAULT_REGION, or give "
                "base_url, such as https://bedrock-runtime.us-east-1.amazonaws.com"
            )
        how: dict[str, Any] = {}
        if self._key:
            how, token = {"signature_version": "bearer"}, FrozenAuthToken(self._key.reveal())
            session.get_auth_token = lambda **_: token
        config = Config(
            retries={"total_max_attempts": 1},
            read_timeout=self.timeout,
            connect_timeout=min(self.timeout, CONNECT),
            max_pool_connections=64,
            **how,
        )
        address = self.base_url if custom else None
        try:
            client = session.create_client(
                "bedrock-runtime", region_name=region, config=config, endpoint_url=address
            )
        except (BotoCoreError, ValueError) as error:
            raise ClientError(f"bedrock/ cannot be called: {self._shown(str(error))}") from error
        client.meta.events.register("before-send.bedrock-runtime", keep)
        return client

    def _completion(
        self, got: Any, request: Request, left_out: list[str] | None, latency: float
    ) -> Completion:
        parts: dict[str, list[Any]] = {}
        for part in got.parts:
            parts.setdefault(part.part_kind, []).append(part)
        offered = {tool["name"] for tool in request.tools}
        texts = [part.content for part in parts.get("text", ())]
        calls = []
        for part in parts.get("tool-call", ()):
            if part.tool_name in offered:
                calls.append({"name": part.tool_name, "arguments": part.args_as_dict()})
            else:
                texts.append(part.args_as_json_str())
        thoughts = "".join(part.content or "" for part in parts.get("thinking", ()))
        ends = {"length": "length", "content_filter": "refusal"}
        # Elsewhere an "error" is the model's own, such as a call that is malformed.
        failed = got.finish_reason == "error" and self.provider == "openai-responses"
        if got.finish_reason is None or failed:
            raise ValueError(f"it ended with {got.finish_reason!r}")
        usage, text = got.usage, "".join(texts)
        details = usage.details
        thought = details.get("reasoning_tokens") or details.get("thoughts_tokens") or 0
        finish: Any = ends.get(got.finish_reason, "stop") if len(text) <= LONGEST_TEXT else "length"
        return Completion(
            text=text[:LONGEST_TEXT],
            finish=finish,
            tokens_in=usage.input_tokens,
            tokens_out=usage.output_tokens,
            latency=latency,
            model=got.model_name or self.model,
            thoughts=thoughts[:LONGEST_TEXT],
            tool_calls=calls or None,
            tokens_cached=usage.cache_read_tokens,
            tokens_written=usage.cache_write_tokens,
            tokens_reasoning=min(thought, usage.output_tokens),
            left_out=left_out,
        )

    def _refused_by(self, fault: Any, options: Mapping[str, Any]) -> str | None:
        """Name the option that was refused, by the provider or by pydantic-ai for it."""
        optional = self._optional({**options, **options.get("extra_body", {})})
        status, refusal = getattr(fault, "status_code", 400), _refusal(fault)
        return response_parsing.refused(status, refusal, optional)

    def _fault(
        self, fault: Any, left_out: list[str] | None, latency: float
    ) -> Completion | ClientError:
        from pydantic_ai import exceptions as faults

        refusal, status = _refusal(fault), getattr(fault, "status_code", None)
        if response_parsing.filtered(status, refusal):
            return self._filtered(refusal["message"], left_out, latency)
        if status is not None:
            headers = dict(getattr(fault, "headers", None) or {})
            failure = self._failure(status, refusal, headers)
            if failure.transient and failure.retry_after is None:
                failure.retry_after = fault.retry_after
            return failure
        if isinstance(fault, faults.ModelConnectionError):
            return self._unreached(fault)
        if isinstance(fault, faults.ModelAPIError):  # told in a stream
            return self._failure(None, refusal, {})
        return ClientError(f"{self.provider}: {self._shown(str(fault))}")


def _without(words: Collection[str], form: Any) -> Any:
    """Return a schema without some words; replies are read as strictly as before."""
    if isinstance(form, list):
        return [_without(words, part) for part in form]
    if not isinstance(form, dict):
        return form
    fields = {name: _without(words, part) for name, part in form.items() if name not in words}
    if "properties" in fields:  # whose names are no words of schemas
        parts = form["properties"].items()
        fields["properties"] = {name: _without(words, part) for name, part in parts}
    return fields


def _refusal(fault: Any) -> dict[str, Any]:
    return response_parsing.refusal_of(getattr(fault, "body", None) or str(fault))


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _messages(request: Request, native: bool, marks: bool) -> list[Any]:
    """Write a chat as pydantic-ai reads it; with `marks`, one is where what stays ends."""
    # That is at the last thing told and answered before the last message.
    from pydantic_ai import messages as of

    written: list[Any] = []
    names: dict[str, str] = {}
    chat, last = rendered(request.messages, native), None
    if not request.stays:
        answered = [i for i, message in enumerate(chat) if message["role"] == "assistant"]
        earlier = reversed(chat[: max(answered, default=0)])
        last = next((message for message in earlier if message["role"] == "user"), None)
    for message in chat:
        body = message["content"]
        if message["role"] == "assistant":
            parts: list[Any] = [of.TextPart(body)] if body else []
            for call in message.get("tool_calls", ()):
                name, arguments = call["function"].values()
                names[call["id"]] = name
                parts.append(of.ToolCallPart(name, arguments, call["id"]))
            written.append(of.ModelResponse(parts))
            continue
        if message["role"] == "tool":
            number = message["tool_call_id"]
            part: Any = of.ToolReturnPart(names[number], body, number)
        else:
            if marks and message is last:
                body = [body, of.CachePoint()]
            part = (of.SystemPromptPart if message["role"] == "system" else of.UserPromptPart)(body)
        if written and isinstance(written[-1], of.ModelRequest):
            written[-1].parts = [*written[-1].parts, part]
        else:
            written.append(of.ModelRequest([part]))
    return written
