"""The OpenAI client against two real servers, each in a process of its own, with the tiny model."""

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

from llm_games.baselines.named_tools import TOOLS
from llm_games.baselines.tiny.runtime import WEIGHTS
from llm_games.games.public_goods.rules import PublicGoods
from llm_games.questions import Choice, Integer, Shares, Target
from llm_games.replies import read_reply
from llm_games.view import View
from llm_games.wrappers.clients.base import ClientError, Completion, Request, Sampling
from llm_games.wrappers.clients.openai import OpenAIClient
from llm_games.wrappers.clients.stack import add_layers
from llm_games.wrappers.clients.transformers import TransformersClient
from llm_games.wrappers.llm_policy import LLMPolicy

pytestmark = pytest.mark.slow

TINY = "from llm_games.baselines.tiny.server import serve; serve(port={port}, weights={weights!r})"
PATIENCE = 120  # seconds until a server must be up
GAME = PublicGoods(players=4, rounds=3)


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _serve(folder, *command):
    port = _free_port()
    command = [part.format(port=port, weights=str(WEIGHTS)) for part in command]
    settings = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder), "OMP_NUM_THREADS": "1"}
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(
            [sys.executable, *command], env=os.environ | settings, stdout=log, stderr=log
        )
    try:
        for _ in range(PATIENCE * 10):
            if server.poll() is not None or _is_up(port):
                break
            time.sleep(0.1)
        assert _is_up(port), (folder / "log").read_text()
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(20)


def _is_up(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    yield from _serve(tmp_path_factory.mktemp("tiny"), "-c", TINY)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """``transformers serve``: somebody else's code; it ignores schemas."""
    main = "import sys; from transformers.cli.transformers import main; sys.exit(main())"
    command = ("-c", main, "serve", "{weights}", "--port", "{port}")
    options = ("--device", "cpu", "--dtype", "float32")
    yield from _serve(tmp_path_factory.mktemp("hf"), *command, *options)


@pytest.fixture(params=["tiny", "foreign"])
def client(request):
    model = "tiny" if request.param == "tiny" else str(WEIGHTS)
    return add_layers(OpenAIClient(model, request.getfixturevalue(request.param)), max_wait=60)


def run(client, *requests):
    async def go():
        try:
            calls = (client.complete(request) for request in requests)
            return await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await client.close()

    return asyncio.run(go())


def first_request(seed=0, seat=0, **settings):
    seen = []

    class Keep:
        name = "keep"

        async def complete(self, request):
            seen.append(request)
            raise ClientError("seen")

        async def close(self):
            pass

    policy = LLMPolicy(Keep(), **settings)
    with pytest.raises(ClientError, match="seen"):
        policy.act(_view(seat), policy.start(GAME, seat, seed))
    return seen[0]


def _view(seat=0):
    return View.of(GAME, GAME.reset(0), seat)


def test_a_completion_comes_with_its_counts(client):
    (got,) = run(client, first_request())
    assert isinstance(got, Completion)
    assert got.text
    assert got.finish in ("stop", "length")
    assert got.tokens_in > 20
    assert got.tokens_out > 0
    assert got.model


def test_a_limit_of_tokens_is_kept(client):
    (got,) = run(client, first_request(max_tokens=3))
    assert (got.finish, got.tokens_out) == ("length", 3)


def test_a_table_is_played_to_its_end(client):
    """All seats are asked at once; the model's replies are read, whatever they are."""

    async def play():
        policy = LLMPolicy(client, max_tokens=60)
        rng = np.random.default_rng(0)
        state, seen = GAME.reset(int(rng.integers(2**31))), []
        memories = [policy.start(GAME, seat, seat) for seat in range(GAME.players)]
        while not state.over:
            views = [View.of(GAME, state, seat) for seat in range(GAME.players)]
            made = await asyncio.gather(*map(policy.decide, views, memories))
            memories = [memory for _, memory in made]
            seen += [decision for decision, _ in made]
            state, _ = GAME.step(state, np.array([d.action for d, _ in made]))
        await client.close()
        return seen

    decisions = asyncio.run(play())
    outcomes = [a.outcome for d in decisions for a in d.attempts]
    assert len(decisions) == 12
    assert "failed" not in outcomes
    assert outcomes.count("valid") >= 6


def test_a_schema_is_kept_where_the_server_can(tiny):
    client = OpenAIClient("tiny", tiny)
    questions = [
        Integer("tokens_contributed", 0, 20),
        Integer("bid", 0, 137),
        Choice("decision", {"go": 1, "stay": 0}),
        Target("target", {"player_1": 1, "player_2": 2}, {"player_0": 0}, {}, -2),
    ]
    chat = first_request().messages
    asks = [
        Request(chat, question, reasoning, Sampling(temperature=1.5), seed)
        for question in questions
        for reasoning in (False, True)
        for seed in range(4)
    ]
    for request, got in zip(asks, run(client, *asks), strict=True):
        if got.finish == "stop":
            assert read_reply(got.text, request.question, finish=got.finish).outcome == "valid"
    assert not client._refused


def test_a_schema_that_the_server_refuses_is_left_out(tiny):
    class Odd(Target):
        def value_schema(self):
            return {"type": "array"}

    client = OpenAIClient("tiny", tiny)
    odd = Odd("target", {"player_1": 1}, {"player_0": 0}, {}, -2)
    (got,) = run(client, Request(first_request().messages, odd))
    assert isinstance(got, Completion)
    assert client._refused == {"json_schema of response_format target", "response_format target"}


def test_tools_that_the_server_does_not_let_models_call_are_called_in_the_text(tiny):
    policy = LLMPolicy(OpenAIClient("tiny", tiny), tools=[TOOLS["calculator"]], max_tokens=60)
    decision, _ = policy.act(_view(), policy.start(GAME, 0, 1))
    # Its schemas have no choice between an answer and a call either.
    assert decision.attempts[0].left_out == ["response_format", "tools"]
    policy.tools = ()
    decision, _ = policy.act(_view(), policy.start(GAME, 0, 1))
    assert decision.attempts[0].left_out is None


def test_a_plan_is_understood_as_a_schema(tiny):
    client = OpenAIClient("tiny", tiny, structured="always")
    (got,) = run(client, Request(first_request().messages, Shares("proposal", (1, 2), 10, 2)))
    assert got.text.startswith('{"proposal": {"1": ')


def test_one_seed_gives_one_reply_whatever_else_is_asked(tiny):
    client = OpenAIClient("tiny", tiny)
    asks = [first_request(seed=seed, seat=seed % 4) for seed in range(16)]
    together = [got.text for got in run(client, *asks)]
    assert [run(client, ask)[0].text for ask in asks] == together


def test_the_server_and_the_local_client_read_a_chat_alike(foreign):
    served = run(OpenAIClient(str(WEIGHTS), foreign), first_request())[0]
    local = TransformersClient(WEIGHTS, dtype="float32")
    assert run(local, first_request())[0].tokens_in == served.tokens_in


def test_a_model_that_the_server_does_not_have(foreign):
    (failure,) = run(OpenAIClient("no-such-model", foreign), first_request())
    assert isinstance(failure, ClientError)
    assert foreign in str(failure)
    assert not failure.transient


def test_a_wrong_path_says_what_is_wrong(tiny):
    wrong = tiny.removesuffix("/v1")
    (failure,) = run(OpenAIClient("tiny", wrong), first_request())
    assert "usually ends in /v1" in str(failure)


def test_a_local_model_plays_too():
    client = TransformersClient(WEIGHTS, dtype="float32")
    policy = LLMPolicy(client, memory="none")
    decisions = [policy.act(_view(), policy.start(GAME, 0, seed))[0] for seed in range(4)]
    asyncio.run(client.close())
    assert [d.outcome for d in decisions].count("valid") >= 3
