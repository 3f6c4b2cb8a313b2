"""The tiny model's server as a real process, asked by the real openai client."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

from llm_games.questions import Choice, Integer, Shares, Target

openai = pytest.importorskip("openai")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

pytestmark = pytest.mark.slow
START = "from llm_games.baselines.tiny.server import serve; serve(port={port})"
CHAT = [{"role": "system", "content": "You play."}, {"role": "user", "content": "Go or stay?"}]


@pytest.fixture(scope="module")
def base():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", START.format(port=port)])
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                with urllib.request.urlopen(f"{url}/health") as reply:
                    assert json.load(reply) == {"status": "ok"}
                break
            except urllib.error.URLError:
                assert process.poll() is None
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def client(base):
    with openai.OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0) as made:
        yield made


def ask(client, **settings):
    settings = {"model": "tiny", "messages": CHAT, "max_tokens": 12, "seed": 1} | settings
    return client.chat.completions.create(**settings)


def test_models(client):
    assert [model.id for model in client.models.list()] == ["tiny"]


def test_a_reply_has_all_parts(client):
    reply = ask(client, logprobs=True, top_logprobs=3)
    choice = reply.choices[0]
    assert choice.message.role == "assistant"
    assert choice.finish_reason in ("stop", "length")
    assert reply.usage.completion_tokens == len(choice.logprobs.content) <= 12
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert "".join(part.token for part in choice.logprobs.content) == choice.message.content
    for part in choice.logprobs.content:
        assert len(part.top_logprobs) == 3
        assert part.logprob <= part.top_logprobs[0].logprob <= 0


def test_choices_and_seeds(client):
    many = ask(client, n=6, temperature=1.5)
    assert [choice.index for choice in many.choices] == list(range(6))
    assert len({choice.message.content for choice in many.choices}) > 1
    one = ask(client, temperature=1.5)
    assert one.choices[0].message.content == many.choices[0].message.content
    assert ask(client, temperature=0, n=3, seed=None).choices[0].message.content


def test_limits_and_stop(client):
    assert ask(client, max_tokens=1).usage.completion_tokens <= 1
    assert ask(client, max_tokens=None, max_completion_tokens=2).usage.completion_tokens <= 2
    full = ask(client, temperature=0).choices[0].message.content
    cut = ask(client, temperature=0, stop=[full[3]]).choices[0]
    assert (cut.message.content, cut.finish_reason) == (full.partition(full[3])[0], "stop")


def test_stream_gives_the_same_text(client):
    full = ask(client, n=2)
    texts, finishes, usage = ["", ""], [None, None], None
    for chunk in ask(client, n=2, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            finishes[choice.index] = choice.finish_reason or finishes[choice.index]
    assert texts == [choice.message.content for choice in full.choices]
    assert finishes == [choice.finish_reason for choice in full.choices]
    assert usage == full.usage


@pytest.mark.parametrize(
    "question",
    [
        Integer("bid", 3, 40),
        Choice("decision", {"go": 1, "stay": 0}),
        Target("target", {"player_1": 1, "player_4": 4}, {}, {}, 12),
        Shares("proposal", (2, 3), 100, 3),
    ],
    ids=lambda question: type(question).__name__,
)
@pytest.mark.parametrize("reasoning", [False, True])
def test_schemas_are_kept(client, question, reasoning):
    schema = {"name": "answer", "strict": True, "schema": question.schema(reasoning)}
    form = {"type": "json_schema", "json_schema": schema}
    reply = ask(client, n=8, max_tokens=400, temperature=1.3, response_format=form)
    for choice in reply.choices:
        answer = json.loads(choice.message.content)
        assert list(answer) == ["explanation"] * reasoning + [question.key]
        if isinstance(question, Shares):  # no schema can tell the sum
            assert all(0 <= answer["proposal"][key] <= 100 for key in ("2", "3"))
        else:
            question.read(answer[question.key])


@pytest.mark.parametrize(
    ("settings", "param"),
    [
        ({"temperature": 3}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"n": 0}, "n"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "oracle", "content": "?"}]}, "messages.0.role"),
        ({"top_p": 0}, "top_p"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format",
        ),
    ],
)
def test_bad_requests_say_what_is_wrong(client, settings, param):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, **settings)
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"
    assert caught.value.message


def test_not_json_is_a_bad_request(base):
    request = urllib.request.Request(f"{base}/v1/chat/completions", b"{", method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    assert caught.value.code == 400
    assert json.load(caught.value)["error"]["type"] == "invalid_request_error"


def test_replies_are_the_same_in_company(client):
    alone = [ask(client, seed=s).choices[0].message.content for s in range(12)]
    found = [None] * 12

    def one(s):
        found[s] = ask(client, seed=s).choices[0].message.content

    threads = [threading.Thread(target=one, args=(s,)) for s in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == alone


def test_missing_packages_are_named(monkeypatch):
    from llm_games.baselines.tiny import server

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    for start in (server.serve, server.create_app):
        with pytest.raises(server.ServerNotInstalled, match=r"llm-games\[serve\]"):
            start()
