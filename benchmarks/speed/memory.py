"""Memory over many episodes: ``python -m llm_games.benchmarks.speed.memory [EPISODES]``.

Printed is this process's resident memory after a tenth of the episodes and after all of them
(10,000), in MiB: through the environment, and through a run with everything recorded, first with
players without a model, then with one whose every prompt is new.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from llm_games.baselines.players import PLAYERS, Kind
from llm_games.benchmarks.runs.config import parse
from llm_games.benchmarks.runs.plan import players, resolve
from llm_games.benchmarks.runs.run import play_run, start
from llm_games.registry import make
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.clients.stack import dress
from llm_games.wrappers.llm_policy import LLMPolicy

GAME: dict[str, Any] = {"players": 3, "rounds": 2}


def resident() -> float:
    """Return this process's resident memory in MiB (Linux)."""
    gc.collect()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise OSError("this system does not tell how much memory a process has")


def environment(episodes: int) -> Iterator[float]:
    """Play episodes through reset and step; yield the memory at a tenth and at the end."""
    env: Any = make("public_goods-v0", **GAME)
    for number in range(1, episodes + 1):
        env.reset(seed=number)
        while env.agents:
            env.step(dict.fromkeys(env.agents, number % 21))
        if number in (episodes // 10, episodes):
            yield resident()


def run(seat: str) -> Callable[[int], Iterator[float]]:
    """Return the same through a run, with one kind of player on all seats."""

    def played(episodes: int) -> Iterator[float]:
        seen: dict[int, float] = {}

        def watch(counters: Any) -> None:
            if counters.played in (episodes // 10, episodes) and counters.played not in seen:
                seen[counters.played] = resident()

        game = {"game": "public_goods", "params": GAME}
        raw = {"games": [game], "episodes": episodes, "seats": [seat]}
        with tempfile.TemporaryDirectory() as folder:
            plan = resolve(parse(raw, "memory"), "memory")
            play_run(lambda: start(plan, Path(folder) / "run.db"), plan, players(plan), watch)
        yield from seen.values()

    return played


WAYS = {
    "environment": environment,
    "run of random players": run("random"),
    "run of a model": run("memory:m"),
}


def main(way: str, episodes: int) -> None:
    """Measure one way in this process and print it."""

    def model(_: str, layers: Any, more: Any) -> LLMPolicy:
        client = ScriptedClient(lambda request: f'{{"tokens_contributed": {request.seed % 21}}}')
        return LLMPolicy(dress(client, **layers), **more)

    PLAYERS["memory"] = Kind("asks for memory", value="<model>", model=model)
    few, many = WAYS[way](episodes)
    print(f"{way}: {few:.1f} MiB at {episodes // 10}, {many:.1f} MiB at {episodes} episodes")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(sys.argv[1], int(sys.argv[2]))
    else:
        for name in WAYS:  # in fresh processes: memory that was freed is not always given back
            arguments = [sys.executable, "-m", __spec__.name, name, *(sys.argv[1:] or ["10000"])]
            subprocess.run(arguments, check=True)
