"""The client for OpenAI-compatible servers, against a real server over loopback that misbehaves."""

import asyncio
import contextlib
import gzip
import json
import logging
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fault_server
import pytest
from fault_server import error
from playing import each_row

from llm_games.errors import BadParameter, LLMGamesError, UnknownName
from llm_games.games.public_goods.rules import PublicGoods
from llm_games.questions import Integer
from llm_games.view import View
from llm_games.wrappers.clients import retry as module
from llm_games.wrappers.clients.base import (
    Client,
    ClientError,
    Completion,
    ContextOverflow,
    Request,
    Sampling,
)
from llm_games.wrappers.clients.openai import OpenAIClient, connections
from llm_games.wrappers.clients.response_parsing import retry_after
from llm_games.wrappers.clients.secrets import Secret
from llm_games.wrappers.clients.stack import add_layers
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.tools import Parameter, Tool

KEY = "sk-test-0123456789abcdef"
HI, BID = ({"role": "user", "content": "hi"},), Integer("bid", 0, 9)
ASK = Request(HI, BID, sampling=Sampling(max_tokens=20), seed=5)


def completion(text='{"bid": 5}', *finish, **message):
    return fault_server.completion(text, *finish, **message)


class Server:
    """Plays one scripted answer after another; the last one again and again.

    An answer is ``(status, body, headers)``, the body JSON or text, or a function of the request
    body that gives one. With the header ``drop`` the line is cut in the middle of the body.
    """

    def __init__(self):
        self.script, self.seen, self.headers, self.times, self.paths = [], [], [], [], []
        self.now = self.most = 0
        self.lock = threading.Lock()
        self.delay = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                outer.answer(self)

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def answer(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        with self.lock:
            self.seen.append(body)
            self.headers.append({k.lower(): v for k, v in handler.headers.items()})
            self.times.append(time.monotonic())
            self.paths.append(handler.path)
            step = self.script[min(len(self.seen), len(self.script)) - 1]
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.delay)
        status, said, *more = step(body) if callable(step) else step
        headers = more[0] if more else {}
        whole = json.dumps(said) if isinstance(said, dict) else said
        data = whole if isinstance(whole, bytes) else whole.encode()
        kind = "text/html" if isinstance(said, str) else "application/json"
        handler.send_response(status)
        if "content-type" not in headers:
            handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(data) + 50 * ("drop" in headers)))
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        with self.lock:
            self.now -= 1
        handler.wfile.write(data)
        if "drop" in headers:
            handler.close_connection = True

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.02)


def run(client, *requests):
    async def go():
        try:
            calls = (client.complete(request) for request in requests or (ASK,))
            return await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await client.close()

    return asyncio.run(go())


def trying(server, max_wait=10, **layers):
    return add_layers(OpenAIClient("m", server.url), max_wait=max_wait, **layers)


def fails(client):
    (failure,) = run(client)
    assert isinstance(failure, ClientError)
    return failure


def test_a_completion_and_what_was_sent(server):
    server.script = [(200, completion())]
    (got,) = run(OpenAIClient("m", server.url))
    assert got.latency > 0
    assert got == Completion('{"bid": 5}', "stop", 100, 10, got.latency, "m-2026")
    sent = server.seen[0]
    schema = sent.pop("response_format")["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"] == ASK.schema()
    assert sent == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 1.0,
        "seed": 5,
        "max_tokens": 20,
    }
    assert server.headers[0]["authorization"] == "Bearer none"


def test_what_is_not_wanted_is_not_sent(server):
    server.script = [(200, completion())]
    run(OpenAIClient("m", server.url), Request(ASK.messages, sampling=Sampling(temperature=None)))
    run(OpenAIClient("m", server.url, structured="never"), ASK)
    assert set(server.seen[0]) == {"model", "messages", "seed"}
    assert "response_format" not in server.seen[1]


@each_row(
    ("body", "text", "finish"),
    [
        (completion("half", "length"), "half", "length"),
        (completion(None, "length"), "", "length"),
        (completion(None), "", "stop"),
        (completion("", "content_filter"), "", "refusal"),
        (completion(None, refusal="I will not."), "", "refusal"),
        (completion(usage=None) | {"usage": None}, '{"bid": 5}', "stop"),
    ],
)
def test_how_an_answer_ended(server, body, text, finish):
    server.script = [(200, body)]
    (got,) = run(OpenAIClient("m", server.url))
    assert (got.text, got.finish) == (text, finish)


def message(content="", **more):
    return completion(content, **more)


HM = {"thoughts": "Hm.", "text": '{"bid": 5}'}
CALL = {"name": "reply", "arguments": '{"bid": 5}'}
SHAPES = [
    (message('{"bid": 5}', reasoning_content="Hm."), HM),
    (message('{"bid": 5}', reasoning="Hm."), HM),
    (message('{"bid": 5}', reasoning_details=[{"type": "reasoning.text", "text": "Hm."}]), HM),
    (message('{"bid": 5}', reasoning_details=[{"summary": "H"}, {"data": 1}, {"text": "m."}]), HM),
    (message([{"type": "text", "text": '{"bid"'}, {"type": "output_text", "text": ": 5}"}]),
     HM | {"thoughts": ""}),
    (message([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
              {"type": "text", "text": '{"bid": 5}'}]), HM),
    (message([{"type": "reasoning", "text": "Hm."}, '{"bid": 5}', {"type": "image_url"}, 7]), HM),
    (message([{"type": "refusal", "refusal": "No."}]),
     {"text": "", "refusal": "No.", "finish": "refusal"}),
    (message(None, reasoning_content="Hm."), {"text": "", "thoughts": "Hm.", "finish": "stop"}),
    (message(None, reasoning_content=7, reasoning_details="x", refusal=[1]), {"text": ""}),
    (message(None, tool_calls=[{"id": "1", "type": "function", "function": CALL}]),
     {"text": '{"bid": 5}', "tool_calls": None}),
    (message("", tool_calls=[{"function": CALL | {"arguments": {"bid": 5}}}]),
     {"text": '{"bid": 5}'}),
    (message(None, function_call=CALL), {"text": '{"bid": 5}'}),
    (message("x", tool_calls=[None, 7, {}, {"function": 3}]), {"text": "x"}),
    (message("x", tool_calls="none"), {"text": "x"}),
    (message("x", finish="MAX_TOKENS"), {"finish": "length"}),
    (message("x", finish="SAFETY"), {"finish": "refusal"}),
    (message("x", finish="end_turn"), {"finish": "stop"}),
    (message("x", finish=None), {"finish": "stop"}),
    (message("x", usage={"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110,
                         "prompt_tokens_details": {"cached_tokens": 80},
                         "completion_tokens_details": {"reasoning_tokens": 6}}),
     {"tokens_in": 100, "tokens_cached": 80, "tokens_out": 10, "tokens_reasoning": 6}),
    (message("x", usage={"prompt_tokens": 100, "completion_tokens": 10,
                         "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 50}}),
     {"tokens_in": 100, "tokens_cached": 30, "tokens_written": 50}),
    (message("x", usage={"prompt_tokens": 100, "completion_tokens": 10,
                         "prompt_tokens_details": {"cached_tokens": 30},
                         "cache_creation_input_tokens": 90}),
     {"tokens_in": 100, "tokens_cached": 30, "tokens_written": 70}),
    (message("x", usage={"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 116,
                         "completion_tokens_details": {"reasoning_tokens": 6}}),
     {"tokens_out": 16, "tokens_reasoning": 6}),
    (message("x", usage={"prompt_tokens": 100, "completion_tokens": 10,
                         "prompt_cache_hit_tokens": 1e9, "prompt_tokens_details": "x",
                         "completion_tokens_details": {"reasoning_tokens": 50}}),
     {"tokens_cached": 0, "tokens_out": 10, "tokens_reasoning": 10}),
    (message("x", usage=[1]), {"tokens_in": 0, "tokens_out": 0}),
    (message("x", usage={"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 150}),
     {"tokens_out": 50, "tokens_reasoning": 40}),  # Gemini's way: thoughts in the total alone
    (message("x", finish="sensitive"), {"finish": "refusal"}),
    (message(f"<think>{'x' * 250_000}</think>5"), {"finish": "stop"}),
]  # fmt: skip


@each_row(("body", "expected"), SHAPES)
def test_shapes_of_replies(server, body, expected):
    server.script = [(200, body)]
    (got,) = run(OpenAIClient("m", server.url))
    assert {name: getattr(got, name) for name in expected} == expected


def pieces(*deltas, finish="stop", usage=True):
    chunks = [{"model": "m-2026", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    if finish:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        counts = {"prompt_tokens": 100, "completion_tokens": 10}
        chunks.append({"choices": [], "usage": counts})
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([": alive\n\n", *lines, "data: [DONE]\n\n"]).encode()


EVENTS = {"content-type": "text/event-stream"}


def test_a_streamed_answer_is_put_together(server):
    call = {"index": 0, "id": "1", "function": {"name": "calc", "arguments": '{"a"'}}
    rest = {"index": 0, "function": {"name": "calc", "arguments": ": 1}"}}  # vLLM, issue 13078
    server.script = [
        (200, pieces({"role": "assistant"}, {"reasoning_content": "H"}, {"reasoning_content": "m."},
                     {"content": '{"bid"'}, {"content": ": 5}"}), EVENTS),
        (200, pieces({"reasoning_details": [{"text": "Hm."}]},
                     {"content": [{"type": "text", "text": "x"}]}, finish="length"), EVENTS),
        (200, pieces({"tool_calls": [call]}, {"tool_calls": [rest, 7]}, 3), EVENTS),
        (200, completion()),  # a server that does not stream
    ]  # fmt: skip
    client = OpenAIClient("m", server.url, stream=True)
    tools = ({"name": "calc", "description": "", "parameters": {"type": "object"}},)
    asks = [ASK, ASK, Request(ASK.messages, tools=tools), ASK]
    whole, cut, called, plain = (run(client, ask)[0] for ask in asks)
    assert (whole.text, whole.thoughts, whole.finish) == ('{"bid": 5}', "Hm.", "stop")
    assert (whole.tokens_in, whole.tokens_out, whole.model) == (100, 10, "m-2026")
    assert (cut.text, cut.thoughts, cut.finish) == ("x", "Hm.", "length")
    assert called.tool_calls == [{"name": "calc", "arguments": {"a": 1}}]
    assert plain.text == '{"bid": 5}'
    assert server.seen[0]["stream"] is True
    assert server.seen[0]["stream_options"] == {"include_usage": True}


BROKEN_STREAMS = [
    (200, pieces({"content": "half"}, finish=None), EVENTS),
    (200, pieces({"content": "half"}, finish="error"), EVENTS),
    (200, b'data: {"choices": [{"del', EVENTS),
    (200, b'data: {"choices": [{"del\n\n', EVENTS),
    (200, b"data: " + b'{"a":' * 100_000 + b"\n\n", EVENTS),
    (200, pieces({"tool_calls": [{"index": [], "function": {}}]}, finish=None), EVENTS),
    (200, b'data: {"error": {"message": "the provider is down"}}\n\n', EVENTS),
    (200, pieces({"content": "half"})[:90], EVENTS | {"drop": "yes"}),
    (200, b"", EVENTS),
    (503, error("busy")),
]


@each_row("broken", BROKEN_STREAMS)
def test_a_stream_that_breaks_is_a_passing_failure(server, broken):
    server.script = [broken]
    assert fails(OpenAIClient("m", server.url, stream=True)).transient


def test_a_server_that_refuses_to_stream_is_asked_without(server):
    server.script = [refusing("stream_options", "stream")]
    (got,) = run(OpenAIClient("m", server.url, stream=True))
    assert got.left_out == ["stream", "stream_options"]


PASSING = [
    (429, error("slow down"), {"retry-after": "0.05"}),
    (429, error("slow down"), {"retry-after-ms": "50"}),
    (429, error("slow down"), {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}),
    (429, error("slow down"), {"retry-after": "soon"}),
    (408, error("late")),
    (409, error("conflict")),
    (500, error("oops")),
    (503, "<html>overloaded</html>"),
    (529, error("overloaded")),
    (200, {"id": "1", "object": "chat.completion", "choices": []}),
    (200, {"error": {"message": "the provider is down", "code": 502}}),
    (200, b'{"id": "1", "choices": [{"mess', {"drop": "yes"}),
    (200, b'{"id": "1", "choices": [{"mess'),
    (200, b""),
    (200, "<html>Welcome!</html>"),
    (200, completion(5)),
    (200, completion("half", "error")),
]


@pytest.mark.parametrize("failure", PASSING)
def test_a_passing_failure_is_tried_again(server, failure):
    server.script = [failure, (200, completion())]
    assert run(trying(server))[0].text == '{"bid": 5}'
    assert len(server.seen) == 2


@each_row("failure", [f for f in PASSING if f[0] not in (200, 429)])
def test_waiting_is_bounded_and_the_error_says_it_may_pass(server, failure):
    server.script = [failure]
    found = fails(trying(server, max_wait=0.1))
    assert len(server.seen) >= 3
    assert found.transient
    assert server.url in str(found)
    assert str(failure[0]) in str(found)


@each_row(
    "wish",
    [
        (429, error("slow"), {"retry-after": "0.3"}),
        (429, error("slow: please try again in 300ms.")),
        (503, error("busy"), {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "0.3"}),
    ],
)
def test_a_wish_to_wait_is_obeyed(server, wish):
    server.script = [wish, (200, completion())]
    run(trying(server))
    assert server.times[1] - server.times[0] >= 0.3


def test_a_wish_to_wait_too_long_ends_the_call(server):
    server.script = [(429, error("tomorrow"), {"retry-after": "3600"})]
    found = fails(trying(server))
    assert (found.retry_after, found.transient, len(server.seen)) == (3600, True, 1)


LASTING = [
    ((401, error("bad key")), "a server on this machine gets no key unless one is given"),
    ((402, error("pay first")), "no money is left"),
    ((403, error("not yours")), "this key may not use 'm'"),
    ((404, error("no such model")), "check the model's name ('m')"),
    ((400, error("context is full", code="context_length_exceeded")), "context is full"),
    ((422, {"detail": "messages: not a list"}), "messages: not a list"),
    ((429, error("pay first", code="insufficient_quota")), "no money is left"),
    ((200, {"error": error("no money", code=402)["error"]}), "no money is left"),
    ((400, error("Your credit balance is too low to access the API")), "no money is left"),
]


@pytest.mark.parametrize(("answer", "words"), LASTING)
def test_a_lasting_failure_is_not_tried_again_and_says_what_to_do(server, answer, words):
    server.script = [answer]
    found = fails(OpenAIClient("m", server.url))
    assert not found.transient
    assert words in str(found)
    assert server.url in str(found)
    assert len(server.seen) == 1


def refusing(*names, status=400):
    def answer(body):
        for name in names:
            if name in body:
                return status, error(f"Unsupported parameter: '{name}'", param=name)
        return 200, completion()

    return answer


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    "names", [["response_format"], ["seed"], ["max_tokens"], ["seed", "response_format"]]
)
def test_an_option_that_is_refused_by_name_is_left_out_from_then_on(server, names, status, caplog):
    server.script = [refusing(*names, status=status)]
    client = OpenAIClient("m", server.url)
    assert run(client)[0].text == '{"bid": 5}'
    before = len(server.seen)
    assert before == 1 + len(names)
    assert run(client)[0].text == '{"bid": 5}'
    assert len(server.seen) == before + 1
    assert [r.message for r in caplog.records if "asked without" in r.message]
    assert ("max_completion_tokens" in server.seen[-1]) == (names == ["max_tokens"])


@pytest.mark.parametrize("name", ["response_format", "max_tokens"])
def test_calls_in_flight_together_learn_of_a_refusal_each(server, name):
    server.script, server.delay = [refusing(name)], 0.05
    client = OpenAIClient("m", server.url)
    got = run(client, *[ASK] * 8)
    assert all(isinstance(answer, Completion) for answer in got)
    assert len(server.seen) == 16
    run(client)
    assert len(server.seen) == 17


ALL = Sampling(0.5, 0.9, 20, "low", ["\n\n"], {"top_k": 5})


def test_every_option_is_sent_by_its_name(server):
    server.script = [(200, completion())]
    client = OpenAIClient("m", server.url, service_tier="flex", headers={"X-Team": "a"})
    run(client, Request(ASK.messages, sampling=ALL, seed=5))
    assert server.seen[0] == {
        "model": "m",
        "messages": [*ASK.messages],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 20,
        "seed": 5,
        "reasoning_effort": "low",
        "stop": ["\n\n"],
        "top_k": 5,
        "service_tier": "flex",
    }
    assert server.headers[0]["x-team"] == "a"


def test_what_shall_be_left_out_is_never_sent(server):
    server.script = [(200, completion())]
    never = ["temperature", "top_p", "max_tokens", "seed", "response_format", "stop"]
    client = OpenAIClient("m", server.url, leave_out=never)
    (got,) = run(client, Request(ASK.messages, ASK.question, sampling=ALL))
    assert set(server.seen[0]) == {"model", "messages", "reasoning_effort", "top_k"}
    assert got.left_out is None


OPTIONAL = ["temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop"]
OPTIONAL += ["response_format", "reasoning_effort", "service_tier", "top_k"]


def test_a_server_that_refuses_every_option_is_adapted_to_once(server):
    server.script = [refusing(*OPTIONAL)]
    client = OpenAIClient("m", server.url, service_tier="flex")
    ask = Request(ASK.messages, ASK.question, sampling=ALL)
    left = sorted({*OPTIONAL} - {"max_completion_tokens"})
    assert run(client, ask)[0].left_out == left
    assert len(server.seen) == 1 + len(OPTIONAL)
    assert run(client, ask)[0].left_out == left
    assert len(server.seen) == 2 + len(OPTIONAL)
    assert set(server.seen[-1]) == {"model", "messages"}


LLAMA = (
    "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
    "'msg': \"Input should be 'text' or 'json_object'\"}]"
)
REFUSED = [  # as servers say it
    (400, error("Unsupported value: 'temperature' does not support 0.5 with this model. Only the "
                "default (1) value is supported.", param="temperature", code="unsupported_value"),
     "temperature"),
    (400, error("bad", param="response_format.json_schema"), "response_format"),
    (400, {"object": "error", "message": "seed is not supported by this engine", "code": 400},
     "seed"),
    (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra"}]},
     "seed"),
    (422, {"detail": "Unexpected fields in the request: {'reasoning_effort'}"}, "reasoning_effort"),
    (500, {"error": {"message": LLAMA, "type": "internal_server_error"}}, "response_format"),
    (400, error("`temperature` and `top_p` cannot both be specified for this model"),
     "temperature"),
    (400, error("`temperature` is deprecated for this model"), "temperature"),
    (400, [{"error": {"code": 400, "message": 'Unknown name "seed": Cannot find field.',
                      "status": "INVALID_ARGUMENT"}}], "seed"),
    (400, error("json_schema is not supported by this model"), "response_format"),
    (400, error("Provider returned error", metadata={"raw": "top_p: unsupported"}), "top_p"),
    (404, error("No endpoints found that support stop"), "stop"),
    (400, error("property 'top_k' is unsupported"), "top_k"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "name"), REFUSED)
def test_refusals_of_options_as_servers_say_them(server, status, body, name):
    server.script = [(status, json.dumps(body).encode()), (200, completion())]
    ask = Request(ASK.messages, ASK.question, sampling=ALL)
    (got,) = run(OpenAIClient("m", server.url), ask)
    assert got.left_out == [name]
    assert len(server.seen) == 2


KEPT = [  # no refusals of options, though they are named
    (500, error("the server had to stop")),
    (500, error("out of memory: seed phase failed")),
    (503, error("temperature of the rack is too high: not available")),
    (429, error("max_tokens a minute: limit reached, only 10 left")),
    (401, error("key not allowed to set temperature")),
    (400, error("max_tokens is too large: 64000. This model supports at most 4096",
                param="max_tokens")),
    (400, error("messages must not be empty")),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), KEPT)
def test_errors_that_are_no_refusals_of_options(server, status, body):
    server.script = [(status, body)]
    (got,) = run(OpenAIClient("m", server.url), Request(ASK.messages, sampling=ALL))
    assert (type(got), got.status, got.transient) == (ClientError, status, status >= 429)
    assert len(server.seen) == 1


TOO_LONG = [  # as servers say it
    (400, error("This model's maximum context length is 128000 tokens. However, your messages "
                "resulted in 130000 tokens.", param="messages", code="context_length_exceeded")),
    (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens. "
           "However, you requested 5000 tokens (4900 in the messages, 100 in the completion)."}),
    (400, error("'max_tokens' or 'max_completion_tokens' is too large: 500. This model's maximum "
                "context length is 4096 tokens and your request has 4000 input tokens.")),
    (400, error("the request exceeds the available context size, try increasing it",
                type="exceed_context_size_error", code=400)),
    (400, error("prompt is too long: 208310 tokens > 200000 maximum")),
    (400, error("input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000")),
    (400, error("The input token count (1200000) exceeds the maximum number of tokens allowed "
                "(1048576).")),
    (400, error("This endpoint's maximum context length is 131072 tokens. However, you requested "
                "about 140000 tokens.")),
    (400, error("Trying to keep the first 5000 tokens when context the overflows. However, the "
                "model is loaded with context length of only 4096 tokens.")),
    (400, error("the input length exceeds the context length")),
    (500, error("Requested tokens (600) exceed context window of 512")),
    (400, error("This model's maximum prompt length is 131072 but the request contains 140000.")),
    (413, error("Prompt contains 40000 tokens, too large for model with 32768 maximum context "
                "length")),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), TOO_LONG)
def test_a_prompt_that_is_too_long(server, status, body):
    server.script = [(status, body)]
    (got,) = run(OpenAIClient("m", server.url))
    assert (type(got), got.transient, got.status) == (ContextOverflow, False, status)
    assert len(server.seen) == 1


@each_row(
    ("status", "words"),
    [(500, "content_filter is not available"), (429, "prompt size for each minute exceeded")],
)
def test_a_fault_of_the_server_is_neither_a_refusal_nor_an_overflow(server, status, words):
    server.script = [(status, error(words))]
    failure = fails(OpenAIClient("m", server.url))
    assert (type(failure), failure.transient, failure.status) == (ClientError, True, status)


@each_row(
    "body",
    [
        completion('{"bi', "insufficient_system_resource"),
        completion('{"bi', "network_error"),
        completion(None, None),
    ],
)
def test_a_server_that_gives_up_sends_no_completion(server, body):
    server.script = [(200, body)]
    failure = fails(OpenAIClient("m", server.url))
    assert failure.transient


def test_a_date_to_wait_until_is_by_the_servers_clock():
    headers = {"date": formatdate(0, usegmt=True), "retry-after": formatdate(7, usegmt=True)}
    assert retry_after(headers) == 7


WAITS = [
    ({"retry-after-ms": "1500"}, "", 1.5),
    ({"retry-after": "20"}, "Please try again in 3s.", 20),
    ({"retry-after": "soon"}, "", None),
    ({}, "Rate limit reached. Please try again in 20s. Visit https://a.example", 20),
    ({}, "Limit 100000, Used 97050. Please try again in 6m0s.", 360),
    ({}, "Please try again in 1.2s", 1.2),
    ({}, "Please try again in 120ms.", 0.12),
    ({}, "Please try again in 1h2m3.5s.", 3723.5),
    ({}, "Please retry after 86400 seconds.", 86400),
    ({}, "please try again after 1 seconds", 1),
    ({}, "Please retry in 500 milliseconds", 0.5),
    ({}, "Please try again later, 20 requests are in line", None),
    ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1.2s",
      "x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "40s"}, "slow", 1.2),
    ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, "slow", 60),
    ({"x-ratelimit-remaining-tokens": "17", "x-ratelimit-reset-tokens": "7.66s"}, "slow", None),
    ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1741305630000",
      "date": "Fri, 07 Mar 2025 00:00:00 GMT"}, "slow", 30),
    ({"anthropic-ratelimit-requests-remaining": "0", "date": "Fri, 07 Mar 2025 00:00:00 GMT",
      "anthropic-ratelimit-requests-reset": "2025-03-07T00:00:12Z"}, "slow", 12),
    ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "?"}, "slow", None),
    ({}, "try again in " + "1" * 100_000, None),
]  # fmt: skip


@each_row(("headers", "words", "seconds"), WAITS)
def test_how_long_to_wait_stands_in_headers_or_words(headers, words, seconds):
    assert retry_after(headers, {"message": words}) == pytest.approx(seconds)


@each_row("key", ["1", "five"])
def test_a_word_for_a_key_changes_no_reply(server, key):
    server.script = [(200, completion('{"bid": 1} five'))]
    (got,) = run(OpenAIClient("m", server.url, api_key=key))
    assert got.text == '{"bid": 1} five'


def test_a_filter_of_prompts_is_a_refusal(server):
    fault = error("The response was filtered", param="prompt", code="content_filter")
    server.script = [(400, fault)]
    (got,) = run(OpenAIClient("m", server.url))
    assert (got.text, got.finish, got.refusal) == ("", "refusal", "The response was filtered")


OVERFLOWS = [
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", ""),
    (422, "`inputs` must have less than 1024 tokens. Given: 2000", ""),
    (400, "Invalid request: Your request exceeded model token limit: 8192", ""),
    (400, "Prompt exceeds max length", "1261"),
    (400, "Range of input length should be [1, 30720]", "invalid_parameter_error"),
    (400, "litellm.ContextWindowExceededError: no words", ""),
]
FILTERS = [
    (400, error("Invalid prompt: your prompt was flagged", code="invalid_prompt")),
    (400, error("Input data may contain inappropriate content.", code="data_inspection_failed")),
    (400, error("系统检测到输入或生成内容可能包含不安全或敏感内容", code="1301")),
    (
        403,
        error("Your chosen model requires moderation and your input was flagged")
        | {"metadata": {"reasons": ["violence"], "flagged_input": "..."}},
    ),
    (400, error("Content Exists Risk", code="invalid_request_error")),
]


@each_row(("status", "words", "code"), OVERFLOWS)
def test_wordings_of_a_full_context(server, status, words, code):
    server.script = [(status, error(words, code=code))]
    (got,) = run(OpenAIClient("m", server.url))
    assert type(got) is ContextOverflow


@each_row(("status", "body"), FILTERS)
def test_filters_of_providers_refuse_that_reply(server, status, body):
    server.script = [(status, body)]
    (got,) = run(OpenAIClient("m", server.url))
    assert (got.text, got.finish) == ("", "refusal")
    assert got.refusal


def test_an_account_that_may_not_use_a_model_is_no_filter(server):
    server.script = [(403, error("You do not have access to this model"))]
    assert fails(OpenAIClient("m", server.url)).status == 403


UNAVAILABLE = error("This response_format type is unavailable now", type="invalid_request_error")


def test_where_only_json_objects_are_taken_they_are_asked_for(server):
    """DeepSeek refuses a schema with these words, and takes an object."""

    def answer(body):
        kind = body.get("response_format", {}).get("type")
        return (400, UNAVAILABLE) if kind == "json_schema" else (200, completion())

    server.script = [answer]
    client = OpenAIClient("m", server.url)
    for _ in range(2):
        (got,) = run(client)
        assert (got.text, got.left_out) == ('{"bid": 5}', ["response_format"])
    kinds = [body["response_format"]["type"] for body in server.seen]
    assert kinds == ["json_schema", "json_object", "json_object"]


@each_row("status", [400, 422])
def test_any_refusal_that_names_an_option_is_tried_once_without_it(server, status):
    def answer(body):
        words = "top_p, whatever it is, is on holiday"
        return (status, error(words)) if "top_p" in body else (200, completion())

    server.script = [answer]
    client = OpenAIClient("m", server.url)
    ask = Request(ASK.messages, ASK.question, sampling=Sampling(top_p=0.5))
    (got,) = run(client, ask)
    assert got.left_out == ["top_p"]


def test_what_was_left_out_in_vain_is_sent_again(server):
    server.script = [(400, error("top_p and all else is on holiday"))]
    client = OpenAIClient("m", server.url)
    ask = Request(ASK.messages, ASK.question, sampling=Sampling(top_p=0.5))
    for _ in range(2):
        (got,) = run(client, ask)
        assert isinstance(got, ClientError)
    assert ["top_p" in body for body in server.seen] == [True, False, True, False]


def test_one_schema_may_be_refused_and_another_taken(server):
    def answer(body):
        if '"bid"' in json.dumps(body.get("response_format")):
            return 400, error("Invalid schema for response_format 'reply'")
        return 200, completion()

    server.script = [answer]
    client, other = OpenAIClient("m", server.url), Request(ASK.messages, Integer("offer", 0, 9))
    for request in (ASK, other, ASK):
        assert isinstance(run(client, request)[0], Completion)
    assert ["response_format" in body for body in server.seen] == [True, False, True, False]


def test_an_option_that_is_insisted_upon_is_not_left_out(server):
    server.script = [refusing("response_format")]
    client = OpenAIClient("m", server.url, structured="always")
    assert "Unsupported parameter: 'response_format'" in str(fails(client))


def test_no_more_calls_are_in_flight_than_allowed(server):
    server.script, server.delay = [(200, completion())], 0.02
    got = run(trying(server, max_in_flight=3), *[ASK] * 12)
    assert all(isinstance(answer, Completion) for answer in got)
    assert server.most == 3


def test_a_call_that_waits_leaves_its_place_to_others(server):
    def answer(body):
        if body["seed"] == 1 and sum(seen["seed"] == 1 for seen in server.seen) == 1:
            return 429, error("slow"), {"retry-after": "0.5"}
        return 200, completion()

    server.script = [answer]
    first, second = (Request(ASK.messages, seed=seed) for seed in (1, 2))
    run(trying(server, max_in_flight=1), first, second)
    assert [seen["seed"] for seen in server.seen] == [1, 2, 1]


def test_a_slow_server_is_given_up(server):
    server.script, server.delay = [(200, completion())], 0.5
    found = fails(add_layers(OpenAIClient("m", server.url, timeout=0.1), max_wait=0.05))
    assert "no answer within 0.1 s" in str(found)
    assert found.transient
    assert len(server.seen) == 2


def test_a_server_that_is_not_there():
    found = fails(add_layers(OpenAIClient("m", "http://127.0.0.1:9/v1"), max_wait=0.1))
    assert "cannot reach http://127.0.0.1:9/v1" in str(found)
    assert "check that the server is running" in str(found)
    assert found.transient


def test_what_was_handled_before_is_not_why_a_server_is_not_reached():
    try:
        raise RuntimeError("of something else")
    except RuntimeError:
        found = fails(OpenAIClient("m", "http://127.0.0.1:9/v1"))
    assert "cannot reach http://127.0.0.1:9/v1 ([Errno " in str(found)


def test_a_host_that_is_not_there():
    client = OpenAIClient("m", "http://no-such-host.invalid/v1", api_key=KEY)
    assert "cannot reach http://no-such-host.invalid/v1 ([Errno -" in str(fails(client))


def test_a_call_that_never_got_a_connection_cannot_have_been_paid(monkeypatch):
    monkeypatch.setattr("llm_games.wrappers.clients.openai.CONNECT", 0.3)
    with socket.socket() as full, contextlib.ExitStack() as queue:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):  # nobody accepts, and the queue is full
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        failure = fails(OpenAIClient("m", url))
    assert ("cannot reach" in str(failure), failure.unsure) == (True, False)


def test_one_client_serves_many_event_loops_and_sync_code(server):
    server.script = [(200, completion('{"tokens_contributed": 5}'))]
    client = OpenAIClient("m", server.url)
    policy = LLMPolicy(client)
    for _ in range(2):
        assert one_decision(policy)[0].action == 5
        assert run(client)[0].text == '{"tokens_contributed": 5}'


# -- keys ------------------------------------------------------------------------------------------


def test_a_server_that_sends_elsewhere_is_followed(server):
    server.script = [(307, "", {"location": "/elsewhere"}), (200, completion())]
    (answer,) = run(OpenAIClient("m", server.url))
    assert answer.text == '{"bid": 5}'
    assert server.seen[0] == server.seen[1]


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("elsewhere", [("127.0.0.1", "localhost"), ("", "")], ids=["host", "port"])
def test_keys_and_prompts_go_to_no_other_server(server, monkeypatch, status, elsewhere):
    monkeypatch.setenv("TEAM_KEY", "team-0123456789")
    other = Server()
    other.script = [(200, completion())]
    there = other.url.replace(*elsewhere)
    server.script = [(status, "", {"location": f"{there}/chat/completions"})]
    headers = {"x-api-key": "env:TEAM_KEY"}
    failure = fails(OpenAIClient("m", server.url, api_key=KEY, headers=headers))
    other.stop()
    assert not other.seen
    assert there.removesuffix("/v1") in str(failure)
    assert not failure.transient


@each_row(
    ("home", "there"),
    [
        ("https://a.example/v1", "http://a.example/v1"),
        ("http://a.example/v1", "https://a.example/v1"),
        ("https://a.example/v1", "https://a.example:8443/v1"),
        ("http://a.example:80/v1", "http://a.example:81/v1"),
        ("https://a.example/v1", "https://b.example/v1"),
        ("https://a.example:443/v1", "https://a.example/v2"),
    ],
)
def test_calls_are_sent_on_within_one_scheme_host_and_port_only(home, there):
    import httpx2

    async def send():
        http = connections(home, 5, str)
        [hook] = http.event_hooks["request"]
        await hook(httpx2.Request("POST", there))
        await http.aclose()

    if there.endswith("v2"):
        asyncio.run(send())
        return
    with pytest.raises(ClientError, match="sends calls on to"):
        asyncio.run(send())


def test_a_key_in_place_of_a_variables_name_is_not_shown():
    for how in ({"api_key_env": KEY}, {"headers": {"x": f"env:{KEY}"}}):
        with pytest.raises(ClientError, match="the name of an environment variable") as caught:
            OpenAIClient("m", "http://127.0.0.1:9/v1", **how)
        assert KEY not in str(caught.value)


def test_no_proxy_is_asked_for_a_server_on_this_machine(server, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.script = [(200, completion())]
    assert run(OpenAIClient("m", server.url))[0].text == '{"bid": 5}'


def test_a_proxy_of_the_environment_is_used(server, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
    server.script = [(200, completion())]
    (answer,) = run(OpenAIClient("m", "http://model.invalid/v1", api_key=KEY))
    assert answer.text == '{"bid": 5}'
    assert server.headers[0]["host"] == "model.invalid"
    monkeypatch.setenv("no_proxy", "model.invalid")
    failure = fails(OpenAIClient("m", "http://model.invalid/v1", api_key=KEY))
    assert "cannot reach" in str(failure)


def test_an_answer_may_be_packed(server):
    packed = gzip.compress(json.dumps(completion()).encode())
    server.script = [(200, packed, {"content-encoding": "gzip"})]
    assert run(OpenAIClient("m", server.url))[0].text == '{"bid": 5}'


def test_connections_that_the_server_closes_are_opened_again(server):
    server.script = [(200, completion(), {"connection": "close", "set-cookie": "seen=1"})]
    client = OpenAIClient("m", server.url)

    async def calls():
        for _ in range(3):
            for answer in await asyncio.gather(*(client.complete(ASK) for _ in range(4))):
                assert answer.text == '{"bid": 5}'
            await asyncio.sleep(0.02)
        await client.close()

    asyncio.run(calls())
    assert len(server.seen) == 12
    assert not any("cookie" in headers for headers in server.headers)  # no call knows of another


def test_a_missing_key_says_what_to_set(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ClientError, match="set the environment variable OPENAI_API_KEY"):
        OpenAIClient("m")
    with pytest.raises(ClientError, match="set the environment variable MY_KEY"):
        OpenAIClient("m", "https://example.org/v1", api_key_env="MY_KEY")


def test_a_key_comes_from_argument_environment_or_file(server, monkeypatch, tmp_path):
    server.script = [(200, completion())]
    file = tmp_path / "key"
    file.write_text(f"{KEY}3\n")
    monkeypatch.setenv("MY_KEY", f"{KEY}2")
    for where in ({"api_key": f"{KEY}1"}, {"api_key_env": "MY_KEY"}, {"api_key_file": file}):
        run(OpenAIClient("m", server.url, **where))
    sent = [headers["authorization"] for headers in server.headers]
    assert sent == [f"Bearer {KEY}{i}" for i in (1, 2, 3)]


def test_the_key_in_the_environment_does_not_go_to_a_server_on_this_machine(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.script = [(200, completion())]
    run(OpenAIClient("m", server.url))
    assert server.headers[0]["authorization"] == "Bearer none"


@each_row("text", ["", "  \n", f"{KEY}\n{KEY}", f"ключ {KEY}", f"{KEY} {KEY}"])
def test_what_cannot_be_a_key_is_refused_without_showing_it(tmp_path, text):
    (tmp_path / "key").write_text(text, "utf-8")
    with pytest.raises(ClientError, match="the key in the file") as caught:
        OpenAIClient("m", api_key_file=tmp_path / "key")
    assert KEY not in str(caught.value)


def test_a_key_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ClientError, match=r"cannot read the key file .*nothing: No such file"):
        OpenAIClient("m", api_key_file=tmp_path / "nothing")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ClientError, match="is not a text file"):
        OpenAIClient("m", api_key_file=tmp_path / "binary")


def outputs(failure):
    while failure is not None:
        yield from (str(failure), repr(failure), repr(vars(failure)))
        failure = failure.__cause__ or failure.__context__


def test_a_key_that_is_a_common_word_breaks_no_reply(server):
    said = '{"tokens_contributed": 5}'
    server.script = [(200, completion(said))]
    [answer] = run(OpenAIClient("m", server.url, api_key="token"))
    assert answer.text == said


CALLED = json.dumps({"a": [f"my key is {KEY}", {"b": KEY}], KEY: 1})
"""Arguments of a call in which a key stands everywhere."""
ANY = Parameter("array", "anything", True)


def test_a_key_never_shows(server, caplog, capfd):
    """Errors, reprs, attempts, completions and logs, with a server that repeats the key."""
    caplog.set_level(logging.DEBUG)
    client = OpenAIClient("m", server.url, api_key=KEY)
    tool = Tool("echo", "says it", lambda view, arguments: str(arguments), {"a": ANY})
    policy = LLMPolicy(client, tools=[tool])
    seen = [repr(client), repr(policy), repr(vars(client)), str(client._key)]
    echo = f"Authorization: Bearer {KEY}"
    for answer in [
        (401, error(f"Incorrect API key provided: {KEY}")),
        (500, echo),
        (400, error(echo)),
        (200, echo),
        (200, completion(echo)),
        (200, completion(None, refusal=echo)),
        (200, completion("", reasoning_content=echo)),
        (200, completion("", tool_calls=[{"function": {"name": "echo", "arguments": CALLED}}])),
        (200, completion("", tool_calls=[{"function": {"name": KEY, "arguments": CALLED}}])),
        (307, "", {"location": f"https://{KEY}.example.org/v1"}),
        (200, {"error": echo}),
        (200, echo.encode()),
        (200, echo.encode(), {"drop": "yes"}),
    ]:
        server.script = [answer]
        (got,) = run(client)
        seen += list(outputs(got)) if isinstance(got, Exception) else [repr(got)]
        try:
            seen += map(repr, one_decision(policy))
        except ClientError as failure:
            seen += outputs(failure)
    asyncio.run(client.close())
    seen += [record.getMessage() + repr(record.args) for record in caplog.records]
    seen += capfd.readouterr()
    assert len(caplog.records) > 8
    assert not [text for text in seen if KEY in text]
    assert any("[key]" in text for text in seen)


def one_decision(policy):
    game = PublicGoods(players=2, rounds=2)
    view = View.of(game, game.reset(0), 0)
    return policy.act(view, policy.start(game, 0, 1))


def test_a_header_may_hold_a_secret_which_never_shows(server, monkeypatch, caplog):
    monkeypatch.setenv("TEAM_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    client = OpenAIClient("m", server.url, headers={"api-key": "Bearer env:TEAM_KEY"})
    server.script = [(400, error(f"who is {KEY}?"))]
    seen = [*outputs(fails(client)), repr(client)]
    client = OpenAIClient("m", server.url, headers={"Authorization": f"Bearer {KEY}"})
    seen += [*outputs(fails(client)), repr(client)]
    seen += [record.getMessage() + repr(record.args) for record in caplog.records]
    assert not [text for text in seen if KEY in text]
    assert server.headers[0]["api-key"] == f"Bearer {KEY}"
    with pytest.raises(ClientError, match="set the environment variable NO_SUCH"):
        OpenAIClient("m", server.url, headers={"api-key": "env:NO_SUCH"})


def test_no_line_is_logged_for_each_call(server, caplog):
    caplog.set_level(logging.INFO)
    server.script = [(200, completion())]
    run(OpenAIClient("m", server.url))
    assert caplog.records == []


LEFT_OPEN = """
import asyncio, gc, os, signal, threading
from fault_server import FaultServer
from llm_games.wrappers.clients.base import Request
from llm_games.wrappers.clients.openai import OpenAIClient
from llm_games.wrappers.together import run_sync

ask = Request(({"role": "user", "content": "hi"},))
with FaultServer() as server:
    clients = [OpenAIClient("m", server.url) for _ in range(4)]
    asyncio.run(clients[0].complete(ask))
    asyncio.run(clients[0].complete(ask))
    asyncio.run(clients[1].complete(ask))
    del clients[1]
    gc.collect()
    run_sync(clients[1].complete(ask))
    server.choose = lambda *_: "no answer"
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        asyncio.run(clients[2].complete(ask))
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.slow
def test_nothing_is_said_of_clients_that_nobody_closed():
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


def test_a_secret_is_not_pickled():
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Secret(KEY))


# -- arguments -------------------------------------------------------------------------------------


@each_row(
    ("argument", "words"),
    [
        ({"model": ""}, "model"),
        ({"base_url": "127.0.0.1:8000"}, "base_url must look like"),
        ({"base_url": "ftp://example.org"}, "base_url must look like"),
        ({"base_url": "http://[1/v1"}, "base_url must look like"),
        ({"base_url": f"http://me:{KEY}@example.org/v1"}, "no user, password or query"),
        ({"base_url": f"http://example.org/v1?key={KEY}"}, "no user, password or query"),
        ({"api_key": KEY, "api_key_file": "x"}, "only one of"),
        ({"timeout": 0}, "timeout"),
        ({"structured": "perhaps"}, "structured"),
        ({"tool_calls": "perhaps"}, "tool_calls"),
        ({"headers": {"X-Key:": "x"}}, "headers"),
        ({"headers": {"X-Key": 5}}, "headers"),
    ],
)
def test_bad_arguments_are_refused_at_once(argument, words):
    with pytest.raises(BadParameter, match=words) as caught:
        OpenAIClient(**{"model": "m", "api_key": KEY} | argument)
    assert isinstance(caught.value, LLMGamesError)
    assert KEY not in str(caught.value)


def test_an_option_to_leave_out_that_there_is_not():
    with pytest.raises(UnknownName, match="did you mean 'seed'"):
        OpenAIClient("m", api_key=KEY, leave_out=["sed"])


def test_the_address_can_come_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/")
    assert OpenAIClient("m").base_url == server.url
    assert isinstance(OpenAIClient("m"), Client)
    assert repr(OpenAIClient("m")) == f"OpenAIClient('m', base_url='{server.url}')"


def test_a_missing_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ClientError, match=r"pip install 'llm-games\[openai\]'"):
        OpenAIClient("m", api_key=KEY)


def test_clients_are_light_to_import():
    code = (
        "import sys, llm_games.wrappers.llm_policy, llm_games.wrappers.clients.openai, "
        "llm_games.wrappers.clients.transformers, llm_games.wrappers.clients.providers\n"
        "heavy = {'openai', 'transformers', 'torch', 'httpx2', 'aiohttp', 'pydantic_ai'}\n"
        "print(heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
