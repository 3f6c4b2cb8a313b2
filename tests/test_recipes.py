"""The recipes of docs/models.md: what they send is held against what each server takes."""

import json
import re
import tomllib

import pytest
from fault_server import completion, error
from test_clients_openai import KEY, Server
from test_clients_providers import anthropic, gemini, text
from test_docs import BLOCK, ROOT

from llm_games.benchmarks.record.checked_table import checked
from llm_games.benchmarks.run.config import SeatSettings, ServerSettings
from llm_games.games.public_goods.rules import PublicGoods
from llm_games.view import View
from llm_games.wrappers.clients.base import Sampling
from llm_games.wrappers.clients.providers import ADAPTED, COMPATIBLE, client_for
from llm_games.wrappers.llm_policy import LLMPolicy

MODELS = (ROOT / "docs" / "models.md").read_text()
RECIPES = {
    seat["player"]: seat
    for found in BLOCK.finditer(MODELS)
    if found[1] == "toml"
    for seat in tomllib.loads(found[2])["seats"]
}
FIVE = '{"tokens_contributed": 5}'
OPENAI = {"model", "messages", "temperature", "top_p", "seed", "stop", "response_format", "tools"}
OPENAI |= {"stream", "stream_options", "reasoning_effort"}
OLD, NEW = OPENAI | {"max_tokens"}, OPENAI | {"max_completion_tokens", "service_tier"}
LLAMA = {"timings": {"predicted_n": 9}, "system_fingerprint": "b1", "__verbose": {}}
# What each takes at the top of a request, and a reply of the shape that it sends.
SERVERS = {
    "vllm": (
        OLD | {"top_k", "chat_template_kwargs", "max_completion_tokens"},
        completion(FIVE, reasoning_content="Hm.") | {"prompt_logprobs": None},
    ),
    "llamacpp": (OLD | {"max_completion_tokens"}, completion(FIVE) | LLAMA),
    "ollama": (OLD, completion(FIVE, reasoning="Hm.") | {"system_fingerprint": "fp_ollama"}),
    "lmstudio": (OLD, completion(FIVE) | {"stats": {}, "model_info": {}}),
    "openai": (NEW - {"temperature", "top_p", "stop"}, completion(FIVE, refusal=None)),
    "anthropic": (
        {"model", "messages", "system", "max_tokens", "temperature", "output_config", "stream"},
        anthropic(text(FIVE)),
    ),
    "google": ({"contents", "systemInstruction", "generationConfig"}, gemini({"text": FIVE})),
    "azure": (NEW, completion(FIVE) | {"prompt_filter_results": [{"prompt_index": 0}]}),
    "openrouter": (OLD | {"provider"}, completion(FIVE, reasoning="Hm.") | {"provider": "X"}),
    "litellm": (OLD | {"max_completion_tokens"}, completion(FIVE, provider_specific_fields={})),
}


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


def test_there_is_a_recipe_for_each_of_these():
    assert {name.partition("/")[0] for name in RECIPES} == {*SERVERS}
    assert {*SERVERS} <= {*COMPATIBLE, *ADAPTED}


def test_what_litellms_proxy_gave_when_it_was_asked():
    """By tests/scripts/litellm_proxy.py, in a virtual environment of its own."""
    found = json.loads((ROOT / "tests" / "data" / "litellm_proxy.json").read_text())["found"]
    for name in ("temperature", "seed"):
        assert found[f"{name} refused"]["left_out"] == [name]
    assert found["thoughts"]["thoughts"] == "Hm."
    assert found["too long"]["error"] == "ContextOverflow"
    assert found["filtered"]["finish"] == "refusal"
    assert found["a game"] == {"valid": 9}
    retried = [case for case in found.values() if case.get("requests upstream", 1) > 1]
    assert all(case.get("left_out") for case in retried)


@pytest.mark.parametrize("player", RECIPES)
def test_a_recipe_sends_what_its_server_takes(server, player, monkeypatch):
    provider = player.partition("/")[0]
    takes, reply = SERVERS[provider]
    monkeypatch.setenv("LITELLM_API_KEY", KEY)

    def answer(body):
        if odd := sorted(body.keys() - takes):
            return 400, error(f"Unsupported parameter: '{odd[0]}'", param=odd[0])
        return 200, reply

    server.script = [answer]
    given = checked(SeatSettings, RECIPES[player], "docs").given()
    called = {key: given.pop(key) for key in [*given] if key in ServerSettings.model_fields}
    plain = {key: v for key, v in called.items() if key not in ("max_in_flight", "base_url")}
    key = {} if "api_key_env" in plain else {"api_key": KEY}
    address = server.url if provider in COMPATIBLE else server.url.removesuffix("/v1")
    client = client_for(player, base_url=address, **key, **plain)
    drawing = {name: given[name] for name in vars(Sampling()) if name in given}
    game = PublicGoods(players=3, rounds=5)
    policy = LLMPolicy(client, **drawing)
    decision, _ = policy.act(View.of(game, game.reset(0), 0), policy.start(game, 0, 1))
    assert (decision.action, decision.outcome) == (5, "valid")
    (attempt,) = decision.attempts
    # Azure's and OpenAI's reasoning models know the new name of the limit alone.
    assert len(server.seen) == 1 + (provider in ("azure", "openai"))
    assert attempt.thoughts == ("Hm." if "Hm." in json.dumps(reply) else "")
    headers = server.headers[0]
    assert KEY in headers.get("authorization", "") + headers.get("x-goog-api-key", "")
    path = {"anthropic": "/v1/messages", "google": "generateContent"}
    assert re.search(path.get(provider, "^/v1/chat/completions$"), server.paths[0])
    for name, value in (given.get("extra_body") or {}).items():
        assert server.seen[-1][name] == value
