"""verifiers: the embedded language model in one seat, asked over HTTP as any server is."""

import asyncio
import os
import socket
import subprocess
import sys
import types
from contextlib import contextmanager
from dataclasses import fields

from trial import report

os.environ["LOCAL_KEY"] = "none"

import verifiers.v1 as vf
from verifiers.v1.clients import ModelContext
from verifiers.v1.utils.loaders import load_environment, resolve_env_config

from llm_games.baselines.verifiers import GameEnv, GameTaskset, InProcess
from llm_games.registry import game_class

GROUP = 2
"""Rollouts of one task, which share their chance, of a trace for each decision."""
STEPS = {"rounds": 2, "max_rounds": 1, "days": 2, "max_shots": 3}
"""Parameters that shorten games which have them."""

games = types.ModuleType("games")  # as which verifiers finds them
games.__all__ = ["GameEnv", "GameTaskset", "InProcess"]
games.GameEnv, games.GameTaskset, games.InProcess = GameEnv, GameTaskset, InProcess
sys.modules["games"] = games


@contextmanager
def server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "llm_games.benchmarks.show.cli",
        "serve-tiny",
        "--port",
        str(port),
    ]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    running.stderr.readline()  # it says where it answers
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        running.terminate()
        running.wait()


def played(game, address, group=GROUP, **settings):
    """Play a group of games of one seed; return their episodes."""
    parts = {field.name for field in fields(game_class(game))}
    params = {name: value for name, value in STEPS.items() if name in parts}
    taskset = {"id": "games", "games": 1, "first": 7}
    more = {"opponents": "random", "game": game, "params": params, "seat": 0}
    env = load_environment(resolve_env_config({"taskset": taskset, **more, **settings}))
    client = vf.EvalClientConfig(base_url=address, api_key_var="LOCAL_KEY")

    async def play():
        async with env.serving():
            [task] = env.taskset
            context = ModelContext(model="tiny", client=client)
            return [await env.run_episode(task, context) for _ in range(group)]

    return asyncio.run(play())


def each_decision(game):
    """Have a trace for each decision, of games that begin with the same prompt."""
    first, second = (checked(episode) for episode in played(game, ADDRESS[0]))
    assert all(trace.num_turns == 1 for trace in (*first, *second))
    asked, again = (
        [node.message for node in of[0].nodes if not node.sampled] for of in (first, second)
    )
    assert asked == again, "one seed was two games"


def conversation(game):
    """Have one trace for a game, rewarded by regret."""
    for episode in played(game, ADDRESS[0], 1, conversation=True, reward="regret"):
        [trace] = checked(episode)
        assert trace.rewards["regret"].score <= 0


def checked(episode):
    assert episode.ok, [error.message for error in episode.errors]
    assert all(0 <= trace.metrics["legal"] <= 1 for trace in episode.traces)
    return episode.traces


ADDRESS = []


if __name__ == "__main__":
    with server() as address:
        ADDRESS.append(address)
        report(
            {
                "Env, a trace for each decision": each_decision,
                "Env, a conversation, regret": conversation,
            }
        )
