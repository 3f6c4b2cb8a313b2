"""Models by provider/name: servers of the shapes of OpenAI, Anthropic and Gemini, over HTTP."""

import asyncio
import json

import pytest
from fault_server import completion, error
from test_clients_openai import KEY, run, server  # noqa: F401 - a fixture

from llm_games.errors import BadParameter, UnknownName
from llm_games.questions import Integer
from llm_games.wrappers.clients.base import ClientError, Completion, ContextOverflow, Request, Sampling
from llm_games.wrappers.clients.openai import OpenAIClient
from llm_games.wrappers.clients.providers import ADAPTED, COMPATIBLE, client_for

BID = '{"bid": 5}'
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
    return client_for(name, base_url=url, api_key=KEY, **settings)


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
    print(server.paths, json.dumps(server.seen), server.headers, got)
    assert (got.text, got.finish) == (BID, "stop")
    assert got.tokens_in in (20, 100)
    assert got.tokens_out == 10
    assert len(server.seen) == 1
