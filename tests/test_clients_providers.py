"""Models by provider/name: servers of the shapes of OpenAI, Anthropic and Gemini, over HTTP."""

import asyncio
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fault_server import completion, error
from playing import SETTINGS, each_row, legal_actions
from test_clients_openai import KEY, Server, run

from llm_games.asides import Lessons, Text
from llm_games.baselines.games.english_auction.graded_notes import BeliefAside, Priorities
from llm_games.errors import BadParameter, UnknownName
from llm_games.questions import Integer
from llm_games.registry import rulebook
from llm_games.view import Who
from llm_games.wrappers.clients import openai, providers
from llm_games.wrappers.clients.base import (
    ClientError,
    Completion,
    ContextOverflow,
    Request,
    Sampling,
)
from llm_games.wrappers.clients.openai import OpenAIClient, knows_keys
from llm_games.wrappers.clients.providers import ADAPTED, COMPATIBLE, client_for
from llm_games.wrappers.tools import OrCall, Parameter, Tool

BID = '{"bid": 5}'
CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [{"text": BID}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 20, "outputTokens": 10, "totalTokens": 30},
}
"""What Bedrock answers."""
TOOL = {
    "name": "calculator",
    "description": "computes",
    "parameters": {
        "type": "object",
        "properties": {"expression": {"type": "string"}},
        "required": ["expression"],
        "additionalProperties": False,
    },
}
CHAT = (
    {"role": "system", "content": "You bid."},
    {"role": "user", "content": "First?"},
    {"role": "assistant", "content": BID},
    {"role": "user", "content": "Your bid?"},
)
ASK = Request(CHAT, Integer("bid", 0, 9), sampling=Sampling(max_tokens=20), seed=5)


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


def anthropic(*content, stop="end_turn", usage=None):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-2026",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage or {"input_tokens": 20, "output_tokens": 10},
    }


def gemini(*parts, finish="STOP", usage=None):
    content = {"role": "model", "parts": list(parts)}
    return {
        "candidates": [{"content": content, "finishReason": finish, "index": 0}],
        "usageMetadata": usage
        or {"promptTokenCount": 20, "candidatesTokenCount": 10, "totalTokenCount": 30},
        "modelVersion": "gemini-2026",
        "responseId": "r1",
    }


def responses(*output, status="completed", **more):
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "gpt-2026",
        "status": status,
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 4},
            "total_tokens": 30,
        },
        **more,
    }


def text(said):
    return {"type": "text", "text": said}


def said(words):
    return {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": words, "annotations": []}],
    }


def client(name, server, **settings):
    url = server.url if name.startswith("openai") else server.url.removesuffix("/v1")
    key = {"api_key_env": ""} if name.startswith("bedrock") else {"api_key": KEY}
    return client_for(name, base_url=url, **key, **settings)


SERVED = {
    "anthropic/claude-haiku-4-5": anthropic(text(BID)),
    "google/gemini-2.5-flash": gemini({"text": BID}),
    "openai-responses/gpt-5": responses(said(BID)),
    "openai/gpt-5": completion(BID),
}


@pytest.mark.parametrize("name", SERVED)
def test_a_completion(server, name):
    server.script = [(200, SERVED[name])]
    (got,) = run(client(name, server), ASK)
    assert (got.text, got.finish, got.tokens_out) == (BID, "stop", 10)
    assert len(server.seen) == 1
    sent, headers = json.dumps(server.seen[0]), server.headers[0]
    assert '"minimum": 0' in sent.replace("minimum:", '"minimum":')  # the schema
    assert KEY in headers.get("x-goog-api-key", "") + headers.get("authorization", "")
    assert ("seed" in (got.left_out or [])) == ('"seed"' not in sent)


DEEP = [
    (
        "anthropic/claude-haiku-4-5",
        anthropic(
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            text(BID),
            stop="max_tokens",
            usage={"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 10},
        ),
        {"thoughts": "Hm.", "finish": "length", "tokens_in": 100, "tokens_cached": 80},
    ),
    (
        "anthropic/claude-haiku-4-5",
        anthropic(
            text(BID),
            usage={
                "input_tokens": 20,
                "cache_creation_input_tokens": 50,
                "cache_read_input_tokens": 30,
                "output_tokens": 10,
            },
        ),
        {"tokens_in": 100, "tokens_cached": 30, "tokens_written": 50},
    ),
    (
        "anthropic/claude-haiku-4-5",
        anthropic({"type": "tool_use", "id": "t1", "name": "reply", "input": {"bid": 5}}),
        {"text": '{"bid":5}', "finish": "stop"},
    ),
    ("anthropic/claude-haiku-4-5", anthropic(stop="refusal"), {"text": "", "finish": "refusal"}),
    (
        "google/gemini-2.5-flash",
        gemini(
            {"text": "Hm.", "thought": True},
            {"text": BID},
            usage={
                "promptTokenCount": 100,
                "cachedContentTokenCount": 80,
                "candidatesTokenCount": 10,
                "thoughtsTokenCount": 30,
                "totalTokenCount": 140,
            },
        ),
        {"thoughts": "Hm.", "tokens_out": 40, "tokens_reasoning": 30, "tokens_cached": 80},
    ),
    ("google/gemini-2.5-flash", gemini({"text": "x"}, finish="SAFETY"), {"finish": "refusal"}),
    (
        "google/gemini-2.5-flash",
        {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}},
        {"finish": "refusal"},
    ),
    (
        "openai-responses/gpt-5",
        responses(
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]},
            said(BID),
        ),
        {"thoughts": "Hm.", "tokens_reasoning": 4, "text": BID},
    ),
]


@each_row(("name", "answer", "expected"), DEEP)
def test_thoughts_tokens_and_refusals(server, name, answer, expected):
    server.script = [(200, answer)]
    (got,) = run(client(name, server), ASK)
    assert isinstance(got, Completion), got
    assert {key: getattr(got, key) for key in expected} == expected


def google_error(code, message, status, **more):
    return {"error": {"code": code, "message": message, "status": status, **more}}


def anthropic_error(kind, message):
    return {"type": "error", "error": {"type": kind, "message": message}}


AFTER = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]
FAULTS = [
    # provider, status, body, headers, (kind, transient, status, retry after)
    ("anthropic", 401, anthropic_error("authentication_error", "invalid x-api-key"), {},
     (ClientError, False, 401, None)),
    ("anthropic", 429, anthropic_error("rate_limit_error", "slow"), {"retry-after": "3"},
     (ClientError, True, 429, 3)),
    ("anthropic", 529, anthropic_error("overloaded_error", "Overloaded"), {},
     (ClientError, True, 529, None)),
    ("anthropic", 400, anthropic_error("invalid_request_error",
     "prompt is too long: 208310 tokens > 200000 maximum"), {},
     (ContextOverflow, False, 400, None)),
    ("anthropic", 400, anthropic_error("invalid_request_error",
     "Your credit balance is too low to access the Anthropic API."), {},
     (ClientError, False, 400, None)),
    ("anthropic", 404, anthropic_error("not_found_error", "model: claude-x"), {},
     (ClientError, False, 404, None)),
    ("anthropic", 200, "<html>hello</html>", {}, (ClientError, True, None, None)),
    ("google", 400, google_error(400, "API key not valid. Please pass a valid API key.",
     "INVALID_ARGUMENT"), {}, (ClientError, False, 400, None)),
    ("google", 429, google_error(429, "You exceeded your current quota", "RESOURCE_EXHAUSTED",
     details=AFTER), {}, (ClientError, True, 429, 7)),
    ("google", 400, google_error(400, "The input token count (1200000) exceeds the maximum number "
     "of tokens allowed (1048576).", "INVALID_ARGUMENT"), {}, (ContextOverflow, False, 400, None)),
    ("google", 503, google_error(503, "The model is overloaded.", "UNAVAILABLE"), {},
     (ClientError, True, 503, None)),
    ("openai-responses", 429, error("pay", code="insufficient_quota"), {},
     (ClientError, False, 429, None)),
]  # fmt: skip
MODELS = {name.partition("/")[0]: name for name in SERVED}


@pytest.mark.parametrize(("provider", "status", "body", "headers", "expected"), FAULTS)
def test_a_fault_is_one_request_and_an_error_of_ours(
    server, provider, status, body, headers, expected
):
    server.script = [(status, body, headers)]
    (got,) = run(client(MODELS[provider], server), ASK)
    assert isinstance(got, ClientError), got
    assert (type(got), got.transient, got.status, got.retry_after) == expected
    assert server.url.removesuffix("/v1") in str(got)
    assert len(server.seen) == 1
    assert KEY not in str(got)


def test_an_answer_in_pieces_that_breaks_off_is_a_passing_failure(server):
    piece = json.dumps(gemini({"text": '{"bid"'}, finish=None))
    server.script = [(200, f"data: {piece}\r\n\r\n", {"content-type": "text/event-stream"})]
    (got,) = run(client(MODELS["google"], server, stream=True), ASK)
    assert isinstance(got, ClientError), got
    assert got.transient


@each_row(
    ("provider", "body"),
    [
        ("anthropic", {}),
        ("anthropic", anthropic(text(BID)) | {"usage": None}),
        ("anthropic", anthropic({"type": "text", "text": None})),
        ("anthropic", b'{"a":' * 100_000),
        ("google", {}),
        ("google", b"7"),
        ("google", gemini({"text": 7})),
        ("google", gemini({"text": BID}, finish="OTHER")),
        ("openai-responses", {}),
        ("openai-responses", responses(said('{"bi'), status="cancelled")),
        ("openai-responses", responses(said('{"bi'), status="in_progress")),
    ],
)
def test_what_is_no_completion_is_a_passing_failure(server, provider, body):
    server.script = [(200, body)]
    (got,) = run(client(MODELS[provider], server), ASK)
    assert isinstance(got, ClientError), got
    assert got.transient


def test_a_provider_that_is_not_there():
    for name in MODELS.values():
        there = client_for(name, base_url="http://127.0.0.1:9/v1", api_key=KEY)
        (got,) = run(there, ASK)
        assert (got.transient, "cannot reach http://127.0.0.1:9" in str(got)) == (True, True)


def test_a_provider_that_is_slow(server):
    server.script, server.delay = [(200, SERVED["anthropic/claude-haiku-4-5"])], 0.5
    (got,) = run(client("anthropic/claude-haiku-4-5", server, timeout=0.1), ASK)
    assert got.transient
    assert "no answer within 0.1 s" in str(got)


ODD = Sampling(top_p=0.5, max_tokens=20, extra_body={"odd": 1, "even": 2})
REFUSALS = [
    ("anthropic", anthropic_error("invalid_request_error",
     "`temperature` may only be set to 1 when thinking is enabled."), "temperature"),
    ("google", google_error(400, 'Invalid JSON payload received. Unknown name "seed" at '
     "'generation_config': Cannot find field.", "INVALID_ARGUMENT"), "seed"),
    ("openai-responses", error("Unsupported parameter: 'top_p'", param="top_p"), "top_p"),
    ("anthropic", anthropic_error("invalid_request_error",
     "odd: Extra inputs are not permitted"), "odd"),
    ("anthropic", anthropic_error("invalid_request_error",
     "output_config.format: structured outputs are not supported"), "response_format"),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "body", "name"), REFUSALS)
def test_an_option_that_a_provider_refuses_is_left_out_once(server, provider, body, name):
    name_there, good = MODELS[provider], SERVED[MODELS[provider]]
    server.script = [(400, body), (200, good)]
    ask = Request(CHAT, ASK.question, sampling=ODD, seed=5)
    there = client(name_there, server)
    for _ in range(2):
        (got,) = run(there, ask)
        assert isinstance(got, Completion), got
        assert name in got.left_out
    assert len(server.seen) == 3
    own = {"odd", "even"}
    assert own & {*server.seen[-1]} == own - {*got.left_out}
    assert (own <= {*got.left_out}) == (provider == "google")  # which takes nothing else


MARK = {"type": "ephemeral", "ttl": "5m"}
LONG = [*CHAT, {"role": "assistant", "content": BID}, {"role": "user", "content": "Now?"}]


def marked(sent):
    """Return which texts of a call to Anthropic have a mark of what to cache, in their order."""
    parts = [
        *sent["system"],
        *(part for message in sent["messages"] for part in message["content"]),
    ]
    assert all(part["cache_control"] == MARK for part in parts if "cache_control" in part)
    return [part["text"] for part in parts if "cache_control" in part]


@pytest.mark.parametrize(
    ("stays", "marks"), [(True, ["You bid.", "Now?"]), (False, ["You bid.", "Your bid?"])]
)
def test_anthropic_caches_what_the_next_call_begins_with(server, stays, marks):
    server.script = [(200, SERVED[MODELS["anthropic"]])]
    (got,) = run(client(MODELS["anthropic"], server), replace(ASK, messages=LONG, stays=stays))
    assert marked(server.seen[0]) == marks
    assert "cache_control" not in (got.left_out or [])
    (got,) = run(client(MODELS["anthropic"], server), replace(ASK, messages=CHAT[:2], stays=stays))
    assert marked(server.seen[1]) == ["You bid.", "First?"][: 1 + stays]


def test_who_refuses_marks_is_asked_without_them_and_nothing_is_said_of_it(server):
    refused = anthropic_error("invalid_request_error", "system.0.cache_control: Extra inputs are "
                              "not permitted")  # fmt: skip
    server.script = [(400, refused), (200, SERVED[MODELS["anthropic"]])]
    there = client(MODELS["anthropic"], server)
    for _ in range(2):
        (got,) = run(there, ASK)
        assert got.text == BID
        assert "cache_control" not in (got.left_out or [])
    assert [len(marked(sent)) for sent in server.seen] == [2, 0, 0]
    run(client(MODELS["anthropic"], server, leave_out=["cache_control"]), ASK)
    assert marked(server.seen[-1]) == []


CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [{"text": BID}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 20, "outputTokens": 10, "totalTokens": 110}
    | {"cacheReadInputTokens": 30, "cacheWriteInputTokens": 50},
    "metrics": {"latencyMs": 1},
}


@pytest.mark.parametrize(
    ("model", "marks"),
    [("us.anthropic.claude-haiku-4-5-20251001-v1:0", 2), ("mistral.mistral-large-2402-v1:0", 0)],
)
def test_bedrock_caches_for_the_models_that_can(server, monkeypatch, model, marks):
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "us-east-1")
    refused = {"message": "system.1.cachePoint: extraneous key is not permitted"}
    good, faults = (200, CONVERSED), [(400, refused)] * bool(marks)
    server.script = [good, *faults, good]
    url = server.url.removesuffix("/v1")
    there = client_for(f"bedrock/{model}", base_url=url, api_key_env="", structured="never")
    (got,) = run(there, ASK)
    assert (got.tokens_in, got.tokens_cached, got.tokens_written) == (100, 30, 50)
    (got,) = run(there, ASK)
    assert (got.text, "cache_control" in (got.left_out or [])) == (BID, False)
    points = [json.dumps(sent).count("cachePoint") for sent in server.seen]
    assert points == [marks, *[marks] * bool(marks), 0]


@pytest.mark.parametrize("name", ["openai-responses/gpt-5", "openai/gpt-5"])
def test_openai_is_told_by_a_key_which_calls_are_of_one_dialogue(server, name, monkeypatch):
    for module in (openai, providers):
        monkeypatch.setattr(module, "knows_keys", lambda url: True)
    server.script = [(200, SERVED[name])]
    seats = [Who("a game", episode, step, seat) for episode in (0, 1) for seat in (0, 1)
             for step in (0, 1)]  # fmt: skip
    for who in seats:
        run(client(name, server), replace(ASK, who=who))
    keys = [sent["prompt_cache_key"] for sent in server.seen]
    assert [keys.index(key) for key in keys] == [0, 0, 2, 2, 4, 4, 6, 6]
    assert all(re.fullmatch(r"[0-9a-f]{32}", key) for key in keys)
    run(client(name, server), ASK)
    assert "prompt_cache_key" not in server.seen[-1]  # nobody is named
    server.seen.clear()
    refused = error("Unknown parameter: 'prompt_cache_key'.", param="prompt_cache_key")
    server.script = [(400, refused), (200, SERVED[name])]
    (got,) = run(client(name, server), replace(ASK, who=seats[0]))
    assert (got.text, "prompt_cache_key" in (got.left_out or [])) == (BID, False)
    assert ["prompt_cache_key" in sent for sent in server.seen] == [True, False]


def test_who_knows_no_such_key_is_sent_none(server):
    for url in ("https://api.openai.com/v1", "https://mine.openai.azure.com/openai/v1"):
        assert knows_keys(url)
    for name in ("openai-responses/gpt-5", "openai/gpt-5"):
        server.script = [(200, SERVED[name])]
        run(client(name, server), replace(ASK, who=Who("a game")))
        assert "prompt_cache_key" not in server.seen[-1]
    known = [name for name, about in COMPATIBLE.items() if knows_keys(about.base_url)]
    assert known == ["openai"]


CALLS = {
    "anthropic/claude-haiku-4-5": anthropic(
        text("I compute."),
        {"type": "tool_use", "id": "t1", "name": "calculator", "input": {"expression": "1+1"}},
        stop="tool_use",
    ),
    "google/gemini-2.5-flash": gemini(
        {"functionCall": {"name": "calculator", "args": {"expression": "1+1"}}}
    ),
    "openai-responses/gpt-5": responses(
        {
            "type": "function_call",
            "id": "f1",
            "call_id": "c1",
            "name": "calculator",
            "arguments": '{"expression": "1+1"}',
            "status": "completed",
        }
    ),
    "openai/gpt-5": completion(
        None,
        "tool_calls",
        tool_calls=[
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "calculator", "arguments": '{"expression": "1+1"}'},
            }
        ],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_model_calls_a_tool_natively_and_hears_the_result(server, name):
    server.script = [(200, CALLS[name]), (200, SERVED[name])]
    there = client(name, server)
    (got,) = run(there, Request(CHAT, ASK.question, sampling=ASK.sampling, tools=(TOOL,)))
    assert got.tool_calls == [{"name": "calculator", "arguments": {"expression": "1+1"}}]
    made = {
        "role": "assistant",
        "content": '{"tool": "calculator", "arguments": {"expression": "1+1"}}',
    }
    heard = (*CHAT, made, {"role": "tool", "content": "it is 2"})
    (got,) = run(there, Request(heard, ASK.question, sampling=ASK.sampling, tools=(TOOL,)))
    assert (got.text, got.tool_calls) == (BID, None)
    sent = json.dumps(server.seen[1])
    assert "it is 2" in sent
    assert '"tool": ' not in sent.replace('\\"', "")  # not as text


def test_answers_may_come_in_pieces(server):
    pieces = [
        {"type": "message_start", "message": anthropic() | {"stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": text("")},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "text_delta", "text": BID}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
         "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]  # fmt: skip
    body = "".join(f"event: {p['type']}\ndata: {json.dumps(p)}\n\n" for p in pieces)
    server.script = [(200, body.encode(), {"content-type": "text/event-stream"})]
    (got,) = run(client("anthropic/claude-haiku-4-5", server, stream=True), ASK)
    assert (got.text, got.tokens_out) == (BID, 10)


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", COMPATIBLE)
def test_every_compatible_provider_has_an_address_and_a_key(provider, monkeypatch):
    about = COMPATIBLE[provider]
    for name in about.keys:
        monkeypatch.setenv(name, KEY)
    made = client_for(
        f"{provider}/some/model:8b", base_url=about.base_url or "https://a.example/v1"
    )
    assert (type(made), made.model) == (OpenAIClient, "some/model:8b")
    assert (made._key is not None) == bool(about.keys)


@pytest.mark.parametrize(
    ("name", "settings", "kind", "says"),
    [
        ("gpt-5", {}, BadParameter, "provider/name"),
        ("vllm/", {}, BadParameter, "provider/name"),
        ("antropic/claude", {}, UnknownName, "did you mean 'anthropic'"),
        ("azure/gpt-5", {"api_key": KEY}, BadParameter, "azure needs base_url"),
        ("groq/llama", {}, ClientError, "GROQ_API_KEY"),
        ("google/gemini", {}, ClientError, "GOOGLE_API_KEY"),
    ],
)
def test_what_cannot_be_called_is_said(name, settings, kind, says, monkeypatch):
    for about in (COMPATIBLE | ADAPTED).values():
        for key in about.keys:
            monkeypatch.delenv(key, raising=False)
    with pytest.raises(kind, match=says):
        client_for(name, **settings)


def test_a_key_of_the_environment_does_not_go_to_a_server_on_this_machine(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.script = [(200, completion())]
    run(client_for("openai/gpt-5", base_url=server.url), ASK)
    assert server.headers[0]["authorization"] == "Bearer none"


def test_a_missing_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(ClientError, match=r"pip install 'llm-games\[providers\]'"):
        client_for("anthropic/claude-haiku-4-5", api_key=KEY)


# -- every question to every provider --------------------------------------------------------------


def questions():
    """Return what games ask as they are played in all their settings, and what else is asked.

    One of each form: moves, asides, talk, planning; schemas that differ in numbers alone are one.
    """
    forms = {}

    def take(name, question):
        said = re.sub(r"-?[0-9.]+", "0", json.dumps(question.schema()))
        forms.setdefault((name, type(question).__name__, said), question)

    for number, (name, settings) in enumerate(SETTINGS):
        talk = {} if settings.get("players") == 1 else {"talk": {"turns": 1}}
        game, rng = rulebook(name, **settings, **talk), np.random.default_rng(number)
        state = game.reset(number)
        for _ in range(8):
            for seat in np.flatnonzero(game.asked(state)).tolist()[:2]:
                take(name, game.question(state, seat))
                for phase in ("talk", "move"):
                    for aside in game.asides(state, seat, phase):
                        take(name, aside.question)
            if not state.over:
                state = game.step(state, legal_actions(game, state, rng))[0]
    for name, question in (
        ("planning", Text("plan", "a plan")),
        ("planning", Lessons("lessons")),
        ("english_auction", Priorities("priorities", ("A", "B"))),
        ("english_auction", BeliefAside("money", "Ann", TRUTH, ("A",))),
    ):
        take(name, question)
    return {f"{name} {kind} {i}": q for i, ((name, kind, _), q) in enumerate(forms.items())}


TRUTH = {"remaining_budget": 3, "total_profits": {"Ann": 1}, "winning_bids": {"Ann": {}}}
QUESTIONS = questions()
USUAL = {"type", "properties", "required", "additionalProperties", "anyOf", "enum", "items"}
USUAL |= {"description", "title", "minItems", "const"}
TAKEN = {  # the words of schemas that a provider knows, and where they stand in what is sent
    "openai": (
        USUAL | {"minimum", "maximum", "multipleOf", "maxItems"},
        lambda body: body["response_format"]["json_schema"],
    ),
    "openai-responses": (
        USUAL | {"minimum", "maximum", "multipleOf", "maxItems"},
        lambda body: body["text"]["format"],
    ),
    "anthropic": (USUAL, lambda body: body["output_config"]["format"]),
    "google": (
        USUAL | {"minimum", "maximum", "maxItems"},
        lambda body: {"schema": body["generationConfig"]["responseJsonSchema"]},
    ),
    "bedrock": (
        USUAL,
        lambda body: body["outputConfig"]["textFormat"]["structure"]["jsonSchema"],
    ),
}
"""Sources: their documentation of structured outputs."""
CLAUDE = "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def parts_of(schema):
    yield schema
    below = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for part in [*below, *([schema["items"]] if "items" in schema else ())]:
        yield from parts_of(part)


@pytest.mark.parametrize("name", [*SERVED, CLAUDE])
@pytest.mark.filterwarnings("ignore:.* not supported (by|when):UserWarning")
def test_every_question_of_every_game_can_be_sent(server, monkeypatch, name):
    """No form of an answer fails in a library of ours before anything is sent, or is left out."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    provider = name.partition("/")[0]
    words, find = TAKEN[provider]
    server.script = [(200, SERVED.get(name, CONVERSED))]
    kinds = {type(question).__name__ for question in QUESTIONS.values()}
    assert len(kinds) >= 15, kinds
    tool = Tool("double", "doubles", lambda view, arguments: "", {"n": Parameter("integer", "it")})

    async def ask_all(there, json_calls):
        got = []
        for question in QUESTIONS.values():
            asked = OrCall(question, [tool]) if json_calls else question
            how = Sampling(max_tokens=99)
            got.append(await there.complete(Request(CHAT, asked, json_calls, how, seed=5)))
        await there.close()
        return got

    for json_calls in (False, True):
        there = client(name, server, tool_calls="json" if json_calls else "auto")
        server.seen.clear()
        found = asyncio.run(ask_all(there, json_calls))
        for what, got, body in zip(QUESTIONS, found, server.seen, strict=True):
            assert "response_format" not in (got.left_out or ()), what
            form = find(body)
            schema = form["schema"]
            schema = json.loads(schema) if isinstance(schema, str) else schema
            if provider.startswith("openai") and not form["strict"]:
                continue
            for part in parts_of(schema):
                assert {*part} <= words, (what, part)
                if part.get("type") == "object":
                    assert part["additionalProperties"] is False, (what, part)
                    if provider.startswith("openai"):
                        assert {*part["required"]} == {*part["properties"]}, (what, part)
            assert schema.get("type") == "object" or json_calls, what


def test_a_fault_of_our_own_libraries_is_waited_for_by_nobody(server, monkeypatch):
    from pydantic_ai.providers.anthropic import AnthropicJsonSchemaTransformer as Transformer

    def fail(*_):
        raise AssertionError("unexpected schema")

    monkeypatch.setattr(Transformer, "walk", fail)
    server.script = [(200, SERVED["anthropic/claude-haiku-4-5"])]
    (got,) = run(client("anthropic/claude-haiku-4-5", server), ASK)
    assert isinstance(got, Completion)  # it goes without the form
    assert got.left_out == ["response_format", "seed"]
    (got,) = run(client("anthropic/claude-haiku-4-5", server, structured="always"), ASK)
    assert isinstance(got, ClientError)
    assert (got.transient, "nothing was sent" in str(got)) == (False, True)


IMPORTS = """
import asyncio, sys, time
from llm_games.wrappers.clients.providers import client_for
from test_clients_providers import ASK
client = client_for(sys.argv[1], base_url=sys.argv[2], api_key="k-0123456789", timeout=0.5)
opened = client._opened
def slowly():
    time.sleep(1)  # as imports take on a busy machine
    return opened()
client._opened = slowly
print(asyncio.run(client.complete(ASK)).text)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SERVED][:3])
def test_imports_take_no_time_of_the_first_call(server, name):
    server.script = [(200, SERVED[name])]
    url = server.url if name.startswith("openai") else server.url.removesuffix("/v1")
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, name, url],
        cwd=Path(__file__).parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(["..", *sys.path])},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == BID, done.stderr


def test_bedrock_is_called_where_base_url_says(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")

    async def address(**settings):
        made = client_for("bedrock/us.anthropic.claude-haiku", **settings)
        return made._account().model.client.meta.endpoint_url

    here = "http://127.0.0.1:9"
    assert asyncio.run(address(base_url=here, api_key_env="")) == here
    assert asyncio.run(address(api_key=KEY)) == "https://bedrock-runtime.us-east-1.amazonaws.com"
    there = "https://bedrock-runtime.eu-west-1.amazonaws.com"
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert asyncio.run(address(base_url=there, api_key=KEY)) == there


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"api_key": KEY}, "needs a region: set the environment variable AWS_DEFAULT_REGION"),
        ({"base_url": "http://127.0.0.1:9", "api_key": KEY}, "requires an HTTPS endpoint"),
        ({"base_url": "http://127.0.0.1:9"}, "Unable to locate credentials"),
    ],
)
def test_what_keeps_bedrock_from_being_called_is_said_at_once(monkeypatch, settings, words):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    (got,) = run(client_for("bedrock/us.amazon.nova-micro-v1:0", **settings), ASK)
    assert isinstance(got, ClientError), got
    assert (got.transient, words in str(got), KEY in str(got)) == (False, True, False), got


def test_bedrock_is_asked_once(server, monkeypatch):
    """Its library would ask five times by itself, and pay for each answer that came too late."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    server.script = [(500, {"message": "Internal error"})]
    (got,) = run(client("bedrock/us.amazon.nova-micro-v1:0", server), ASK)
    assert (got.transient, got.status, len(server.seen)) == (True, 500, 1)
