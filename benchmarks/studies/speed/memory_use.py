"""Memory over many episodes.

``python -m llm_games.benchmarks.studies.speed.memory_use [EPISODES]``

Printed is this process's resident memory after a tenth of the episodes and after all of them
(10,000), in MiB: through the environment, and through a run with everything recorded, first with
players without a model, then with one whose every prompt is new.
"""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from llm_games.baselines.players import PLAYERS, Kind
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.registry import make
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.clients.stack import add_layers
from llm_games.wrappers.llm_policy import LLMPolicy

GAME: dict[str, Any] = {"players": 3, "rounds": 2}


def resident() -> float:
    """Return this process's resident memory in MiB (Linux)."""
    gc.collect()
    match = re.search(r"^VmRSS:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if not match:
        raise OSError("this system does not tell how much memory a process has")
    return int(match[1]) / 1024


def environment(episodes: int, played: Callable[[int], None]) -> None:
    """Play episodes through reset and step; call `played` with their number after each."""
    env: Any = make("public_goods-v0", **GAME)
    for number in range(1, episodes + 1):
        env.reset(seed=number)
        while env.agents:
            env.step(dict.fromkeys(env.agents, number % 21))
        played(number)


def run(episodes: int, played: Callable[[int], None], seat: str) -> None:
    """Play episodes through a run, with one kind of player on all seats."""
    games = [{"game": "public_goods", "params": GAME}]
    plan = resolve(parse({"games": games, "episodes": episodes, "seats": [seat]}, "it"), "it")
    with tempfile.TemporaryDirectory() as folder:
        path, policies = Path(folder) / "run.db", players(plan)
        play_run(
            lambda: start(plan, path), plan, policies, lambda counters: played(counters.played)
        )


WAYS: dict[str, Callable[..., None]] = {
    "environment": environment,
    "run of random players": partial(run, seat="random"),
    "run of a model": partial(run, seat="memory:m"),
}


def main(way: str, episodes: int) -> None:
    measured: dict[int, float] = {}

    def played(number: int) -> None:
        for mark in (episodes // 10, episodes):  # batches of episodes end together
            if number >= mark:
                measured.setdefault(mark, resident())

    def model(_: str, layers: Any, settings: Any) -> LLMPolicy:
        client = ScriptedClient(lambda request: f'{{"tokens_contributed": {request.seed % 21}}}')
        return LLMPolicy(add_layers(client, **layers), **settings)

    PLAYERS["memory"] = Kind("asks for memory", value="<model>", model=model)
    WAYS[way](episodes, played)
    first, last = measured.values()
    print(f"{way}: {first:.1f} MiB at {episodes // 10}, {last:.1f} MiB at {episodes} episodes")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(sys.argv[1], int(sys.argv[2]))
    else:
        for name in WAYS:  # in fresh processes: memory that was freed is not always given back
            arguments = [sys.executable, "-m", __spec__.name, name, *(sys.argv[1:] or ["10000"])]
            subprocess.run(arguments, check=True)
