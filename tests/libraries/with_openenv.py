"""OpenEnv: games through its own client pay what `lg.play` does at the same replies."""

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

from openenv.core import GenericEnvClient
from trial import report

import llm_games as lg
from llm_games.noise import Noise
from llm_games.wrappers.clients.base import Completion
from llm_games.wrappers.llm_policy import LLMPolicy

SEED = 7
SERVER = """
import os
from llm_games.benchmarks.show.guests.openenv_server import make_app, serve
app = make_app({game!r}, **{settings!r})
serve(app, port=int(os.environ["PORT"]))
"""
CHAT = {"max_attempts": 1, "memory": "full", "remember": "replies", "notices": True}
"""How a seat outside is asked."""


@contextmanager
def process(command, folder=None, **settings):
    """Start a server at a free port, which it is told as PORT; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = subprocess.Popen(command, cwd=folder, env=os.environ | settings | {"PORT": str(port)})
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            assert running.poll() is None, "the server has ended"
            try:
                urllib.request.urlopen(f"{address}/health").close()
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        running.terminate()
        running.wait()


def server(game="public_goods", **settings):
    return process([sys.executable, "-c", SERVER.format(game=game, settings=settings)])


class Whim:
    """A client that answers what is legal, by chance, and every fourth time with rubbish."""

    name = "whim"

    def __init__(self):
        self.replies = []

    async def complete(self, request):
        legal = request.question.reply(request.question.sample(Noise(request.seed)))
        self.replies.append(legal if request.seed % 4 else "rubbish")
        return Completion(self.replies[-1])

    async def close(self):
        pass


def played(game, outside=(0,), seed=SEED, **parameters):
    """Play a game with whims in some seats; return the payoffs, and what each of them said."""
    rules, whims = lg.rules(game, **parameters), {seat: Whim() for seat in outside}
    others = lg.player("random")
    seats = [
        LLMPolicy(whims[seat], **CHAT) if seat in whims else others for seat in range(rules.players)
    ]
    limit = {"max_steps": 1000} if rules.length() is None else {}
    payoffs = lg.play(rules, seats, seed=seed, **limit).payoffs.tolist()
    return payoffs, {seat: whim.replies for seat, whim in whims.items()}


async def said(address, replies, **words):
    """Say these replies in a session; return its last observation and the sum of its rewards."""
    async with GenericEnvClient(base_url=address) as env:
        return await said_by(env, replies, **words)


async def said_by(env, replies, **words):
    """Do so in a session that is there."""
    result = await env.reset(**words)
    total = result.reward
    for reply in replies:
        assert not result.done
        while not result.observation["asked"]:
            result = await env.step({"reply": ""})
        result = await env.step({"reply": reply, "turn": result.observation["turn"]})
        total += result.reward
    while not result.done:
        assert not result.observation["asked"], "more is asked than in play"
        result = await env.step({"reply": ""})
    return result, total


def through_client(game):
    """Play it through OpenEnv's client."""
    name = game.removesuffix("-v0")
    payoffs, replies = played(name)
    words = {"seed": SEED, "game": name, "seat": 0, "opponents": "random", "parameters": {}}
    result, total = asyncio.run(said(ADDRESS[0], replies[0], **words))
    assert result.observation["payoff"] == payoffs[0]
    assert abs(total - payoffs[0]) < 1e-6 * max(1, abs(payoffs[0]))


ADDRESS = []


if __name__ == "__main__":
    with server() as address:
        ADDRESS.append(address)
        report({"WebSocket client": through_client})
