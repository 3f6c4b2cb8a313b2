"""Speed of the way to a language model: ``python -m llm_games.benchmarks.speed.llm_path``.

A server in a process of its own on this machine answers each call after 0.2 s. With 64 calls in
flight no client can get more than 320 answers a second. Public goods with ten players is played
as a run is: prompts, `LLMPolicy`, all layers, everything recorded. Printed are the answers a
second and their share of 320, of the whole run and of its steady state (from 10 % to 90 % of the
decisions: without the greeting, the start with fewer calls in flight, and the last tables), and
this process's CPU time for each answer, once with the server and once with a client that answers
at once (all that is ours: everything but the HTTP client).
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from llm_games.baselines.players import PLAYERS, Entry
from llm_games.benchmarks.config import parse
from llm_games.benchmarks.plan import players, resolve
from llm_games.benchmarks.run import Counters, play_run, start
from llm_games.wrappers.clients.base import Completion, Request
from llm_games.wrappers.clients.stack import dress
from llm_games.wrappers.llm_policy import LLMPolicy

DELAY, IN_FLIGHT = 0.2, 64
TABLES, ROUNDS, SEATS = 32, 20, 10
ANSWERS = TABLES * ROUNDS * SEATS
REPLY = '{"tokens_contributed": 5}'
_BODY = (
    '{"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, '
    '"finish_reason": "stop", "message": {"role": "assistant", "content": '
    '"{\\"tokens_contributed\\": 5}"}}], "usage": {"prompt_tokens": 300, "completion_tokens": 9}}'
)
_ANSWER = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(_BODY)}\r\n"


class _Server(asyncio.Protocol):
    """Answers every request with the same, after `DELAY`."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.heard = transport, b""

    def data_received(self, data: bytes) -> None:
        self.heard += data
        head, end, body = self.heard.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if end and len(body) >= size:
            self.heard = body[size:]
            asyncio.get_running_loop().call_later(DELAY, self._answer)

    def _answer(self) -> None:
        assert isinstance(self.transport, asyncio.Transport)
        self.transport.write(f"{_ANSWER}\r\n{_BODY}".encode())


async def serve() -> None:
    """Serve until killed; prints the port."""
    server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class _AtOnce:
    """A client that answers at once."""

    name = "m"

    async def complete(self, request: Request) -> Completion:
        return Completion(REPLY, "stop", 300, 9, DELAY, "m")

    async def close(self) -> None:
        pass


def measure(seat: str, address: str = "") -> tuple[float, float, float]:
    """Play one run.

    Returns:
        Answers a second in the whole run and in its steady state, and milliseconds of CPU time
        an answer.
    """
    game = {"game": "public_goods", "params": {"players": SEATS, "rounds": ROUNDS}}
    model = {"max_in_flight": IN_FLIGHT} | ({"base_url": address} if address else {})
    raw = {"games": [game], "episodes": TABLES, "seats": [seat], "models": {"m": model}}
    raw |= {"budget": {"calls": 10**6}, "prices": {"m": {"input": 2.5, "output": 10.0}}}
    steady: list[tuple[float, int]] = []

    def watch(counters: Counters) -> None:
        if 0.1 <= counters.decisions / ANSWERS <= 0.9:
            steady.append((time.perf_counter(), counters.decisions))

    with tempfile.TemporaryDirectory() as folder:
        plan = resolve(parse(raw | {"cache": f"{folder}/replies.db"}, "speed"), "speed")
        made = players(plan)
        began, used = time.perf_counter(), time.process_time()
        play_run(lambda: start(plan, Path(folder) / "run.db"), plan, made, watch)
        wall, used = time.perf_counter() - began, time.process_time() - used
    (first, before), (last, after) = steady[0], steady[-1]
    return ANSWERS / wall, (after - before) / (last - first), 1000 * used / ANSWERS


def main() -> None:
    """Measure and print."""
    PLAYERS["at_once"] = Entry(
        "answers at once",
        value="<model>",
        model=lambda _, layers, more: LLMPolicy(dress(_AtOnce(), **layers), **more),
    )
    *_, own = measure("at_once:m")
    print(f"our own CPU time: {own:.2f} ms a decision")
    server = subprocess.Popen(
        [sys.executable, "-m", __spec__.name, "serve"], stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    import openai  # noqa: F401 - a second that each process needs once is not measured

    try:
        port = int(server.stdout.readline())
        whole, steady, used = measure("openai:m", f"http://127.0.0.1:{port}/v1")
    finally:
        server.kill()
        server.wait()
    most = IN_FLIGHT / DELAY
    for name, rate in (("whole run", whole), ("steady state", steady)):
        print(f"{name}: {rate:.0f} answers/s, {rate / most:.1%} of {most:.0f}")
    print(f"{used:.2f} ms CPU an answer")


if __name__ == "__main__":
    asyncio.run(serve()) if "serve" in sys.argv else main()
