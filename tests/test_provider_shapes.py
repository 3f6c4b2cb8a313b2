"""Everything that servers are known to send, as recorded, through the whole client."""

import asyncio
import json
import re
import tomllib
import zlib
from pathlib import Path

import pytest
from playing import each_row
from test_clients_openai import ALL, KEY, Server, completion
from test_clients_providers import CHAT, CONVERSED, SERVED, TOOL

from llm_games.questions import Integer
from llm_games.wrappers.clients.base import (
    ClientError,
    Completion,
    ContextOverflow,
    Request,
    Sampling,
)
from llm_games.wrappers.clients.providers import ADAPTED, COMPATIBLE, client_for
from llm_games.wrappers.clients.response_parsing import LIMITS

FILE = Path(__file__).parent / "data/provider_shapes.toml"
SHAPES = tomllib.loads(FILE.read_text("utf-8"))["shape"]
GOOD = {name.partition("/")[0]: body for name, body in SERVED.items()} | {"bedrock": CONVERSED}
SAYS = {
    "money": "no money is left",
    "key": "check the key|this key may not use",
    "model": "check the model's name",
}
STREAMS = {"bedrock": "application/vnd.amazon.eventstream"}


def framed(lines):
    """Write events as Bedrock does: lengths, headers and check sums around each."""
    whole = b""
    for line in lines.splitlines():
        [(name, said)] = json.loads(line).items()
        kind = "exception" if name.endswith("Exception") else "event"
        heads = {":message-type": kind, f":{kind}-type": name, ":content-type": "application/json"}
        head = b""
        for key, value in heads.items():
            head += bytes([len(key)]) + key.encode() + b"\7"
            head += len(value).to_bytes(2, "big") + value.encode()
        data = json.dumps(said).encode()
        part = (len(head) + len(data) + 16).to_bytes(4, "big") + len(head).to_bytes(4, "big")
        part += zlib.crc32(part).to_bytes(4, "big") + head + data
        whole += part + zlib.crc32(part).to_bytes(4, "big")
    return whole


@pytest.fixture(scope="module")
def play():
    server, clients = Server(), {}

    def meet(shape):
        provider, streams = shape["of"].partition("/")[0], shape.get("stream", False)
        if (shape["of"], streams) not in clients:
            own = provider in ADAPTED and provider != "openai-responses"
            url = server.url.removesuffix("/v1") if own else server.url
            key = {"api_key_env": ""} if provider == "bedrock" else {"api_key": KEY}
            there = client_for(shape["of"], base_url=url, stream=streams, **key)
            clients[shape["of"], streams] = there
        client, body = clients[shape["of"], streams], shape["body"].encode()
        client._refused.clear()
        if streams:
            body = framed(shape["body"]) if provider == "bedrock" else body
            kind = STREAMS.get(provider, "text/event-stream")
        else:
            kind = "text/html" if body[:1] == b"<" else "application/json"
        heads = shape.get("headers", {}) | {"content-type": kind}
        server.seen.clear()
        server.script = [(shape.get("status", 200), body, heads)]
        server.script += [(200, GOOD.get(provider, completion()))] * shape["is"].startswith("with")
        names = {call["name"] for call in shape.get("calls", ())}
        tools = tuple(TOOL | {"name": name} for name in sorted(names))
        sampling = ALL if shape["is"].startswith("with") else Sampling(max_tokens=500)
        ask = Request(CHAT, Integer("bid", 0, 9), sampling=sampling, seed=5, tools=tools)
        if "tools" in shape["is"]:
            ask = Request(CHAT, ask.question, sampling=ALL, seed=5, tools=(TOOL,))

        async def call():
            try:
                return await client.complete(ask)
            except ClientError as failure:
                return failure

        return runner.run(call()), len(server.seen)

    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setenv("AWS_ACCESS_KEY_ID", "a")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        yield meet
        for client in clients.values():
            runner.run(client.close())
    server.stop()


def kind_of(got):
    if isinstance(got, Completion):
        return got.finish
    if isinstance(got, ContextOverflow):
        return "overflow"
    if got.transient:
        return "passing"
    return next((kind for kind, words in SAYS.items() if re.search(words, str(got))), "lasting")


@pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.* not supported (by|when):UserWarning")
@each_row("shape", SHAPES, by=lambda shape: shape["of"].partition("/")[0])
def test_what_servers_send_is_typed(play, shape):
    got, calls = play(shape)
    what, _, option = shape["is"].partition(" ")
    if what == "without":
        assert isinstance(got, Completion), got
        assert (calls, option in (got.left_out or LIMITS)) == (2, True), got.left_out
        return
    assert (kind_of(got), calls) == (what, 1), got
    if isinstance(got, ClientError):
        assert got.retry_after == shape.get("wait")
        assert got.status == shape.get("status", got.status)
        return
    assert got.text == shape.get("text", "")
    assert got.thoughts == shape.get("thoughts", "")
    assert (got.tool_calls or []) == shape.get("calls", [])
    counts = [got.tokens_in, got.tokens_out, got.tokens_cached, got.tokens_reasoning]
    assert counts == shape.get("tokens", [0, 0, 0, 0])


def test_every_shape_has_a_source_and_every_great_provider_shapes():
    named = [shape["of"].partition("/")[0] for shape in SHAPES]
    assert all(re.match(r"https://[\w.-]+/\S+$", shape["source"]) for shape in SHAPES)
    assert {*named} <= {*COMPATIBLE, *ADAPTED}
    assert len(SHAPES) >= 150
    wanted = (
        "openai openai-responses anthropic google bedrock vllm sglang llamacpp ollama openrouter "
    )
    wanted += "litellm azure deepseek mistral zai alibaba moonshot"
    assert not [name for name in wanted.split() if named.count(name) < 3]
    assert len({json.dumps(shape, sort_keys=True) for shape in SHAPES}) == len(SHAPES)
