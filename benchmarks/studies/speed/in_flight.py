"""How many of the calls that a server bears a run keeps in flight, over its first 60 seconds.

    python -m llm_games.benchmarks.studies.speed.in_flight [PLACES:SECONDS ...] [--seconds 60]

A server of its own process answers each call after so many seconds, and refuses more than so many
at the same time. The first figure is the share of its places that were busy, the second of the
PLACES / SECONDS calls a second that it could have answered, both from the first call on, which is
the greeting; calls that end later are in the first alone. A client of bare sockets, without a run,
says what the server itself and the machine give: all want a quiet one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

REPLY = '{"tokens_contributed": 5}'
RUN = """
import sys
from llm_games.benchmarks.show.cli import main
sys.argv[0] = "llm-games"
main()
"""
PLAN = """
seats = [{{ player = "openai:m", base_url = "{url}/v1", max_in_flight = {places} }}]
episodes = {episodes}
{tables}
[[games]]
game = "public_goods"
params = {{ players = 4, rounds = {rounds} }}
"""


# -- the server ------------------------------------------------------------------------------------
def answer(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def completion() -> bytes:
    choice = {"index": 0, "finish_reason": "stop"}
    choice |= {"message": {"role": "assistant", "content": REPLY}}
    usage = {"prompt_tokens": 300, "completion_tokens": 8, "total_tokens": 308}
    return json.dumps({"model": "m", "choices": [choice], "usage": usage}).encode()


class Server:
    """Counts what it answers, by seconds since the first call, and how many are in flight."""

    def __init__(self, places: int, delay: float) -> None:
        self.places, self.delay = places, delay
        self.began: float | None = None
        self.now = self.peak = self.refused = 0
        self.ended: list[float] = []  # when each call was answered
        self.good = answer("200 OK", completion())

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"GET"):
                    writer.write(answer("200 OK", json.dumps(self.told()).encode()))
                    continue
                low = head.lower()
                start = low.index(b"content-length:") + 15
                await reader.readexactly(int(low[start : low.index(b"\r\n", start)]))
                if self.now >= self.places:
                    self.refused += 1
                    writer.write(answer("429 Too Many Requests", b"{}"))
                    continue
                self.began = self.began or time.monotonic()
                self.now += 1
                self.peak = max(self.peak, self.now)
                await asyncio.sleep(self.delay)
                self.now -= 1
                self.ended.append(time.monotonic() - self.began)
                writer.write(self.good)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def told(self) -> dict[str, Any]:
        return {"ended": self.ended, "peak": self.peak, "refused": self.refused}


def serve(places: int, delay: float) -> None:
    async def main() -> None:
        server = await asyncio.start_server(Server(places, delay), "127.0.0.1", 0, backlog=4096)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(main())


# -- clients ---------------------------------------------------------------------------------------
def ask_bare(url: str, places: int, seconds: float) -> None:
    """Ask by as many connections as the server has places, each one call after another."""
    host, port = url.removeprefix("http://").split(":")
    message = {"role": "user", "content": "word " * 300}
    body = json.dumps({"model": "m", "messages": [message]}).encode()
    request = f"POST /v1 HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    size = len(answer("200 OK", completion()))

    async def connection(end: float) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        while time.monotonic() < end:
            writer.write(request)
            await reader.readexactly(size)
        writer.close()

    async def main() -> None:
        end = time.monotonic() + seconds
        await asyncio.gather(*(connection(end) for _ in range(places)))

    asyncio.run(main())


def play(url: str, places: int, delay: float, seconds: float, tables: int | None) -> None:
    """Play a run that takes somewhat longer than so many seconds, by the command."""
    rounds = max(3, round(min(20.0, seconds / delay)))
    episodes = round(1.1 * seconds * places / delay / (4 * rounds)) + 1
    written = "" if tables is None else f"max_tables = {tables}"
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder, "plan.toml")
        about = {"url": url, "places": places, "episodes": episodes, "rounds": rounds}
        plan.write_text(PLAN.format(**about, tables=written))
        words = ["run", str(plan), "--db", str(Path(folder, "run.db"))]
        subprocess.run(
            [sys.executable, "-c", RUN, *words],
            env={**os.environ, "OPENAI_API_KEY": "none"},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def measure(places: int, delay: float, seconds: float, tables: int | None, bare: bool) -> str:
    command = [sys.executable, __file__, "--serve", f"{places}:{delay}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            if bare:
                ask_bare(url, places, seconds)
            else:
                play(url, places, delay, seconds, tables)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            with urllib.request.urlopen(url) as got:
                told = json.load(got)
        finally:
            server.terminate()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    ended = [when for when in told["ended"] if when <= seconds]
    most = places / delay
    share = len(ended) / most / min(seconds, told["ended"][-1])
    held = [min(when, seconds) - max(when - delay, 0.0) for when in told["ended"]]
    busy = sum(time for time in held if time > 0) / places / min(seconds, told["ended"][-1])
    greeted = ended[0]
    later = (len(ended) - 1) / most / (min(seconds, told["ended"][-1]) - greeted)
    starts = range(0, int(seconds), 5)
    each = [sum(start <= when < start + 5 for when in ended) / most / 5 for start in starts]
    name = "bare sockets" if bare else "run"
    about = f"{places} in flight at {delay} s, {name}: {busy:.3f} of the places were busy, "
    about += f"{share:.3f} of the limit answered"
    if not bare:
        about += f" ({later:.3f} once it is greeted), {cpu:.1f} s of CPU"
    about += f", {told['refused']} refused"
    return f"{about}\n    by 5 s: " + " ".join(f"{part:.2f}" for part in each)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", default=["64:0.2", "1024:4"], metavar="PLACES:SECONDS")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--tables", type=int, help="max_tables, as in a run's file")
    parser.add_argument("--no-bare", action="store_true")
    parser.add_argument("--serve", metavar="PLACES:SECONDS", help=argparse.SUPPRESS)
    given = parser.parse_args()
    for case in [given.serve] if given.serve else given.cases:
        places, delay = int(case.partition(":")[0]), float(case.partition(":")[2])
        if given.serve:
            return serve(places, delay)
        for bare in (False,) if given.no_bare else (True, False):
            print(measure(places, delay, given.seconds, given.tables, bare), flush=True)


if __name__ == "__main__":
    main()
