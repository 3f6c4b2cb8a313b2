"""LiteLLM's proxy before a fake server: what our client makes of it, as lines of JSON.

    python -m venv litellm && litellm/bin/pip install "litellm[proxy]==1.106.2"
    PYTHONPATH=.:tests python tests/scripts/litellm_proxy.py litellm/bin/litellm

Its result of a day is committed: tests/data/litellm_proxy.json.
"""

import asyncio
import datetime
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from fault_server import completion, error
from test_clients_openai import Server, refusing

import llm_games as lg
from llm_games.questions import Integer
from llm_games.wrappers.clients.base import ClientError, Request, Sampling
from llm_games.wrappers.clients.providers import client_for

CONFIG = """
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "{url}", api_key: none, max_retries: 0}}
litellm_settings: {{num_retries: 0, drop_params: false}}
router_settings: {{num_retries: 0, disable_cooldowns: true}}
general_settings: {{master_key: "{key}"}}
"""
KEY = f"sk-{secrets.token_urlsafe(32)}"  # the proxy takes none that is weak
ASK = Request(
    ({"role": "user", "content": "Your bid?"},),
    Integer("bid", 0, 9),
    sampling=Sampling(0.5, max_tokens=20),
    seed=5,
)
TOOL = {"name": "calc", "description": "computes", "parameters": {"type": "object"}}
CALL = {"id": "1", "type": "function", "function": {"name": "calc", "arguments": '{"a": 1}'}}
TOO_LONG = error(
    "This model's maximum context length is 128000 tokens.", code="context_length_exceeded"
)
FILTERED = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management "
    "policy."
)
CASES = {
    "a completion": ((200, completion()), ASK),
    "thoughts": ((200, completion(reasoning_content="Hm.")), ASK),
    "a native call": (
        (200, completion(None, "tool_calls", tool_calls=[CALL])),
        Request(ASK.messages, tools=(TOOL,)),
    ),
    "temperature refused": (refusing("temperature"), ASK),
    "seed refused": (refusing("seed"), ASK),
    "schema refused": (refusing("response_format"), ASK),
    "too long": ((400, TOO_LONG), ASK),
    "filtered": ((400, error(FILTERED, code="content_filter")), ASK),
    "busy": ((429, error("slow down"), {"retry-after": "2"}), ASK),
    "no money": ((429, error("pay", code="insufficient_quota")), ASK),
    "bad key": ((401, error("who are you")), ASK),
    "down": ((503, error("overloaded")), ASK),
    "a page": ((200, "<html>Welcome</html>"), ASK),
}


def asked(upstream, address, answer, request):
    """Return what one call gives, as plain values."""
    upstream.script, before = [answer], len(upstream.seen)
    client = client_for("litellm/m", base_url=address, api_key=KEY)

    async def call():
        try:
            return await client.complete(request)
        finally:
            await client.close()

    try:
        got = asyncio.run(call())
        names = ("text", "finish", "thoughts", "refusal", "tool_calls", "left_out", "tokens_in")
        found = {name: getattr(got, name) for name in names if getattr(got, name)}
    except ClientError as failure:
        found = {"error": type(failure).__name__, **vars(failure), "says": str(failure)[:160]}
    return found | {"requests upstream": len(upstream.seen) - before}


def played(upstream, address):
    """Return the outcomes of a game that is played through the proxy."""
    upstream.script = [(200, completion('{"tokens_contributed": 5}'))]
    policy = lg.LLMPolicy(client_for("litellm/m", base_url=address, api_key=KEY))
    episode = lg.play("public_goods", [policy] * 3, seed=1, players=3, rounds=3)
    outcomes = [a.outcome for s in episode.steps for d in s.decisions.values() for a in d.attempts]
    return {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}


def main(litellm):
    upstream = Server()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(CONFIG.format(url=upstream.url, key=KEY))
        port = "4123"
        proxy = subprocess.Popen(
            [litellm, "--config", config, "--host", "127.0.0.1", "--port", port],
            env=os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            stdout=sys.stderr,
        )
        try:
            while proxy.poll() is None:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness"):
                        break
                except OSError:
                    time.sleep(0.1)
            address = f"http://127.0.0.1:{port}/v1"
            found = {name: asked(upstream, address, *case) for name, case in CASES.items()}
            found["a game"] = played(upstream, address)
        finally:
            proxy.terminate()
            proxy.wait(20)
            upstream.stop()
    said = subprocess.run(
        [litellm, "--version"],
        env=os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
    )
    version = said.stdout.split("=")[-1].strip()
    whole = {"date": str(datetime.date.today()), "litellm": version, "found": found}
    print(json.dumps(whole, indent=1).replace(address, "http://127.0.0.1:4000/v1"))


if __name__ == "__main__":
    main(sys.argv[1])
