"""Speed of the way to a language model: ``python -m llm_games.benchmarks.studies.speed.llm_path``.

A server in a process of its own on this machine answers each call after 0.2 s. With 64 calls in
flight no client can get more than 320 answers a second. γ-Bench at its default settings (eight
games, ten players) is played as a run is, 15 times for about a minute: prompts, `LLMPolicy`, all
layers, everything recorded; no answer is taken from the cache and no calls are put together.
Printed are the answers a second and their share of 320, of the whole run from greeting the server
to the last answer, and of its steady state (from 10 % to 90 % of the decisions), and this process's
CPU time for each answer, once with the server and once with a client that answers at once (all that
is ours: everything but the HTTP client). Last comes the client alone with `CROWD` calls in flight.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from llm_games.baselines.players import PLAYERS, Kind
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.conduct import Counters, play_run, start
from llm_games.benchmarks.run.config import load, parse
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.questions import Integer
from llm_games.wrappers.clients.base import Completion, Request
from llm_games.wrappers.clients.chat import Chat
from llm_games.wrappers.clients.openai import OpenAIClient
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.clients.stack import add_layers
from llm_games.wrappers.llm_policy import LLMPolicy

DELAY, IN_FLIGHT, EPISODES = 0.2, 64, 15
"""Seconds to an answer, calls at once, and episodes of each game."""
CROWD = 1024
"""Calls at once of the client alone."""


def reply(schema: dict[str, Any] | None) -> str:
    """Return a legal answer to any γ-Bench game's question."""
    if not schema:
        return "Hello."
    ((key, value),) = schema["properties"].items()
    shares = value.get("properties", {})
    if shares:  # all to the first
        return json.dumps({key: {name: 100 * (i == 0) for i, name in enumerate(shares)}})
    return json.dumps({key: value["enum"][0] if "enum" in value else value["minimum"]})


class _Server(asyncio.Protocol):
    """Answers every request after `DELAY`."""

    def connection_made(self, transport: Any) -> None:
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if end and len(body) >= size:
            self.buffer = body[size:]
            asyncio.get_running_loop().call_later(DELAY, self._answer, body[:size])

    def _answer(self, body: bytes) -> None:
        form = json.loads(body).get("response_format")
        text = reply(form and form["json_schema"]["schema"])
        choice = {"index": 0, "finish_reason": "stop"}
        choice["message"] = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 300, "completion_tokens": 9}
        whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
        data = json.dumps(whole | {"choices": [choice], "usage": usage}).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}"
        self.transport.write(head.encode() + b"\r\n\r\n" + data)


async def serve() -> None:
    """Serve until killed; prints the port."""
    server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0, backlog=CROWD)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def measure(seat: str, address: str = "") -> tuple[float, float, float]:
    """Play a run; return answers a second, those in its steady state, and CPU ms an answer."""
    model = {"max_in_flight": IN_FLIGHT} | ({"base_url": address} if address else {})
    raw = load("gamma-bench") | {"episodes": EPISODES, "seats": [seat], "models": {"m": model}}
    raw |= {"budget": {"calls": 10**6}, "prices": {"m": {"input": 2.5, "output": 10.0}}}
    progress: list[tuple[float, int]] = []

    def watch(counters: Counters) -> None:
        progress.append((time.perf_counter(), counters.decisions))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        plan = resolve(parse(raw | {"cache": f"{folder}/replies.db"}, "speed"), "speed")
        policies = players(plan)
        began, used = time.perf_counter(), time.process_time()
        play_run(lambda: start(plan, path), plan, policies, watch)
        wall, used = time.perf_counter() - began, time.process_time() - used
        with Records.open_readonly(path) as records:
            answers: int = records.usage()["outcomes"]["valid"]
    steady = [
        (moment, decisions) for moment, decisions in progress if 0.1 <= decisions / answers <= 0.9
    ]
    (first, decisions_before), (last, decisions_after) = steady[0], steady[-1]
    return (
        answers / wall,
        (decisions_after - decisions_before) / (last - first),
        1000 * used / answers,
    )


def crowd(address: str) -> float:
    """Return CPU ms a call of the client alone, `CROWD` in flight."""
    client = OpenAIClient("m", address)
    chat = Chat.of([{"role": "user", "content": "Your tokens? " * 100}])
    request = Request(chat, Integer("tokens_contributed", 0, 20))

    async def calls(times: int) -> float:
        async def call_in_turn() -> None:
            for _ in range(times):
                await client.complete(request)

        used = time.process_time()
        await asyncio.gather(*(call_in_turn() for _ in range(CROWD)))
        return 1000 * (time.process_time() - used) / (CROWD * times)

    async def measured() -> float:
        await calls(1)  # connections are made once
        used = await calls(4)
        await client.close()
        return used

    return asyncio.run(measured())


@contextmanager
def serving() -> Iterator[str]:
    """Run a server in a process of its own; yield its address."""
    command = [sys.executable, "-m", "llm_games.benchmarks.studies.speed.llm_path", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        import openai  # noqa: F401 - a second that each process needs once is not measured

        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.kill()


def main() -> None:
    def at_once(_: str, layers: Any, settings: Any) -> LLMPolicy:
        def answer(request: Request) -> Completion:
            return Completion(reply(request.schema()), "stop", 300, 9, DELAY, "m")

        return LLMPolicy(add_layers(ScriptedClient(answer, "m"), **layers), **settings)

    PLAYERS["at_once"] = Kind("answers at once", value="<model>", model=at_once)
    *_, own_ms = measure("at_once:m")
    print(f"our own CPU time: {own_ms:.2f} ms a decision")
    with serving() as address:
        whole, steady, used = measure("openai:m", address)
        alone = crowd(address)
    limit = IN_FLIGHT / DELAY
    for name, rate in (("whole run", whole), ("steady state", steady)):
        print(f"{name}: {rate:.0f} answers/s, {rate / limit:.1%} of {limit:.0f}")
    print(f"{used:.2f} ms CPU an answer")
    print(f"the client alone, {CROWD} calls in flight: {alone:.2f} ms CPU a call")


if __name__ == "__main__":
    asyncio.run(serve()) if "serve" in sys.argv else main()
