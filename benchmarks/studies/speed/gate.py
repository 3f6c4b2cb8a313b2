"""Whether this version is as fast as the last release: paired in one run, in CPU time.

    python benchmarks/studies/speed/gate.py [OLDER] [--groups text numbers ...] [--peers]

OLDER is a folder with the older package; by default the last release is checked out of git. A
worker of each version does the same work in turns: whole episodes of decisions only, a run of a
model on a server of this process, its report. The figure of a group is the median of the pairs'
ratios, this version's speed over the older one's; one below the goal ends with status 1. Workers
use public calls alone, so that an older version can do the work too.

With ``--peers`` one table is measured beside other libraries, too, each figure in one run with the
same beside the last release. As many rounds, all of decisions: TextArena's rounds of talk, in which
nothing would be said, are cut out. Its bare environment hands a player what is new; its wrapper for
models, and we, all that it reads: it the whole history, which grows, we the rules, the last round
in each player's own terms and the question. rps_v2 of PettingZoo shows two players the other's last
move, our numbers all that a player knows. ``--python`` has TextArena if this Python has not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, suppress
from functools import partial
from importlib import import_module
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

PAIRS, SECONDS, LEAST = 7, 0.4, 0.9
"""Pairs of a group, CPU seconds of the older version's part of a pair, and the goal."""
NEAR, MOST = 0.05, 28
"""A figure this near the goal is not told from noise: up to so many pairs are made."""
ROUNDS = 20  # of an episode
REPLY = '{"tokens_contributed": 5}'
ROOT = Path(__file__).resolve().parents[3]
Work = Callable[[], Any]


# -- the works, done in a worker -------------------------------------------------------------------
def episodes(
    obs_mode: str, actions: str, draw: Callable[[random.Random], Any], players: int
) -> Work:
    """Return the work of an episode of public goods with drawn actions."""
    import llm_games as lg

    env: Any = lg.make("public_goods-v0", obs_mode=obs_mode, actions=actions, players=players)
    rng = random.Random(1)

    def work() -> None:
        env.reset(seed=rng.randrange(100))
        while env.agents:
            env.step({agent: draw(rng) for agent in env.agents})

    return work


def text() -> Work:
    def draw(rng: random.Random) -> str:
        return f'{{"tokens_contributed": {rng.randrange(21)}}}'

    return episodes("text", "text", draw, 4)


def numbers() -> Work:
    return episodes("numeric", "index", lambda rng: rng.randrange(21), 2)


def pair(name: str) -> Work:
    """Return the work of an episode of two players of a game with drawn actions, in numbers."""
    import llm_games as lg

    env: Any = lg.make(
        name, obs_mode="numeric", form="parallel", players=2, max_cycles=ROUNDS, masks="info"
    )
    counts = {agent: int(env.action_space(agent).n) for agent in env.possible_agents}
    rng = random.Random(1)

    def work() -> None:
        env.reset(seed=rng.randrange(100))
        while env.agents:
            env.step({agent: rng.randrange(counts[agent]) for agent in env.agents})

    return work


def rps_v2() -> Work:
    from pettingzoo.classic import rps_v2

    env: Any = rps_v2.parallel_env(max_cycles=ROUNDS)
    rng = random.Random(1)

    def work() -> None:
        env.reset(seed=rng.randrange(100))
        while env.agents:
            env.step({agent: rng.randrange(3) for agent in env.agents})

    return work


def text_arena(wrapped: bool) -> Work:
    from textarena.envs.PublicGoodsGame.env import PublicGoodsGameEnv
    from textarena.wrappers import LLMObservationWrapper

    rng = random.Random(1)

    def work() -> None:
        game = PublicGoodsGameEnv(num_rounds=ROUNDS, communication_turns=0)
        env = LLMObservationWrapper(game) if wrapped else game
        env.reset(num_players=4, seed=rng.randrange(100))
        for _ in range(ROUNDS):
            game.state.game_state["phase"] = "decision"
            for _ in range(4):
                env.get_observation()
                env.step(f"[{rng.randrange(21)}]")

    return work


def batch() -> Work:
    import numpy as np

    import llm_games as lg

    game, rng = lg.rules("public_goods"), np.random.default_rng(1)

    def work() -> None:
        state = game.reset(1, (1024,))
        for _ in range(20):
            state, _ = game.step(state, rng.integers(0, 21, (game.players, 1024)))

    return work


def tables() -> Work:
    import numpy as np

    import llm_games as lg

    env: Any = lg.learners("water_allocation", 512, opponents="even")
    rng, count = np.random.default_rng(1), env.single_action_space.n
    env.reset(seed=0)
    return lambda: env.step(rng.integers(0, count, 512))


def _run(url: str, path: Path, episodes: int = 4) -> None:
    import llm_games as lg

    games = [{"game": "public_goods", "params": {"players": 4, "rounds": 10}}]
    model = {"base_url": url, "cache": False}
    seats = ["openai:m"]
    plan = {"games": games, "episodes": episodes, "seats": seats, "models": {"m": model}}
    lg.run(plan, path)


def model(url: str) -> Work:
    """Return the work of a run of 160 decisions of a model, recorded."""
    number = iter(range(10**6))
    return lambda: _run(url, Path(f"{next(number)}.db"))


def report(url: str) -> Work:
    _run(url, Path("run.db"), 60)
    name = "llm_games.benchmarks.show.cli"
    try:
        command_line = import_module(name)
    except ImportError:  # up to version 0.8
        command_line = import_module("llm_games.benchmarks.cli")

    def work() -> None:
        sys.argv = ["llm-games", "report", "run.db", "--out", "page"]
        with suppress(SystemExit), redirect_stderr(StringIO()):
            command_line.main()

    return work


GROUPS: dict[str, Callable[..., Work]] = {
    "text": text,
    "numbers": numbers,
    "batch": batch,
    "tables": tables,
    "model": model,
    "report": report,
}
ASKING = ("model", "report")
TEXT_ARENA = "TextArena with its wrapper", "TextArena"
PEERS = [("text", TEXT_ARENA[0], 0.85), ("text", TEXT_ARENA[1], 0.43)]
"""Groups, the works of other libraries beside them, and goals."""
PEERS += [(f"{name} of 2", "rps_v2", 2.2) for name in ("public_goods", "divide_dollar")]
PEERS += [(f"{name} of 2", "rps_v2", 1.6) for name in ("el_farol_bar", "diners_dilemma")]
PEERS += [(f"{name} of 2", "rps_v2", 1.2) for name in ("beauty_contest", "sealed_bid_auction")]
PEERS += [("water_allocation of 2", "rps_v2", 0.9), ("bertrand_competition of 2", "rps_v2", 0.73)]
WORKS: dict[str, Callable[..., Work]] = {
    **GROUPS,
    **{name: partial(pair, name.split()[0]) for name, peer, _ in PEERS if peer == "rps_v2"},
    "rps_v2": rps_v2,
    **{peer: partial(text_arena, "wrapper" in peer) for peer in TEXT_ARENA},
}


def worker(url: str, slow: float) -> None:
    """Do works as they are asked for, ``GROUP TIMES`` a line; answer with CPU seconds.

    By `slow` each takes so much longer.
    """
    asked, answers, works = sys.stdin, sys.stdout, dict[str, Work]()
    sys.stdin, sys.stdout = TextIOWrapper(BytesIO()), TextIOWrapper(BytesIO())
    for line in asked:
        group, times = line.rsplit(maxsplit=1)
        if group not in works:
            works[group] = WORKS[group](*[url] * (group in ASKING))
            works[group]()
        began = time.process_time()
        for _ in range(int(times)):
            works[group]()
        end = began + (time.process_time() - began) * (1 + slow)
        while time.process_time() < end:
            pass
        print(time.process_time() - began, file=answers, flush=True)


# -- pairs -----------------------------------------------------------------------------------------
class Version:
    """A worker of the package in a folder."""

    def __init__(
        self, folder: Path, url: str, slow: float = 0.0, python: str = sys.executable
    ) -> None:
        environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = [python, str(Path(__file__).resolve()), "--worker", url]
        self.room = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [*command, "--slow", str(slow)], env=environment, cwd=self.room.name, **pipes
        )

    def seconds(self, group: str, times: int) -> float:
        assert self.process.stdin
        assert self.process.stdout
        print(group, times, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the worker of {group} ended")
        return float(answer)

    def close(self) -> None:
        self.process.communicate()  # it ends where no more is asked for
        self.room.cleanup()


def ratio(new: Any, old: Any, group: str, beside: str = "", pairs: int = PAIRS) -> float:
    """Return the median of the pairs' ratios; who goes first changes from pair to pair.

    The old one does the work named `beside`, if there is one.
    """
    works, ratios = {new: group, old: beside or group}, list[float]()
    once = {version: max(version.seconds(work, 1), 1e-4) for version, work in works.items()}
    if not beside:
        once[new] = once[old]
    times = {version: max(1, round(SECONDS / seconds)) for version, seconds in once.items()}
    while len(ratios) < pairs or (
        abs(statistics.median(ratios) - LEAST) < NEAR and len(ratios) < MOST // PAIRS * pairs
    ):
        order = (new, old) if len(ratios) % 2 else (old, new)
        spent = {version: version.seconds(works[version], times[version]) for version in order}
        ratios.append(spent[old] / times[old] / (spent[new] / times[new]))
    return statistics.median(ratios)


def serve() -> str:
    """Serve completions from a thread of this process; return the address."""
    message = {"role": "assistant", "content": REPLY}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    whole = {
        "model": "m",
        "usage": usage,
        "choices": [{"message": message, "finish_reason": "stop"}],
    }
    body = json.dumps(whole).encode()
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := (await reader.readuntil(b"\r\n\r\n")).decode().lower():
                await reader.readexactly(int(request.split("content-length:")[1].split()[0]))
                writer.write(head.encode() + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    started = asyncio.run_coroutine_threadsafe(
        asyncio.start_server(answer, "127.0.0.1", 0, limit=2**22), loop
    )
    return f"http://127.0.0.1:{started.result().sockets[0].getsockname()[1]}/v1"


def last_release(folder: str) -> Path:
    """Check the release before this commit out of git: its tag, or what gave it its number."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    if git("rev-parse", "--is-shallow-repository") != "false":  # where each file is the last one's
        raise SystemExit("the last release is not in this clone: git fetch --unshallow, or OLDER")
    release = git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^")
    release = release or git("log", "-1", "--format=%H", "HEAD^", "--", "llm_games/version.py")
    archive = subprocess.run(["git", "archive", release], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
    return Path(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("older", nargs="?", type=Path)
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--peers", action="store_true", help="measure beside other libraries too")
    parser.add_argument(
        "--python", default=sys.executable, help="one with TextArena and PettingZoo"
    )
    parser.add_argument("--slow", type=float, default=0.0, help="plant a slow-down, to try this")
    parser.add_argument("--worker", metavar="URL", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker is not None:
        worker(arguments.worker, arguments.slow)
        return 0
    with ExitStack() as stack:
        older = arguments.older or last_release(stack.enter_context(tempfile.TemporaryDirectory()))
        url = serve()
        new, old = Version(ROOT, url, arguments.slow), Version(older.resolve(), url)
        peer = Version(ROOT, url, python=os.path.abspath(arguments.python))
        for version in (new, old, peer):
            stack.callback(version.close)
        heads = "times it", "times the older version"
        print(f"{'group':26} {'beside':26} {'goal':>6} {heads[0]:>9} {heads[1]:>24}")
        slow = False
        for group in arguments.groups:
            figure = ratio(new, old, group)
            slow |= (is_slow := figure < LEAST)
            mark = "  slower" * is_slow
            print(f"{group:26} {'':26} {LEAST:6.2f} {'':9} {figure:24.2f}{mark}", flush=True)
        for group, name, goal in PEERS if arguments.peers else ():
            figures = ratio(new, peer, group, name), ratio(new, old, group)
            print(
                f"{group:26} {name:26} {goal:6.2f} {figures[0]:9.2f} {figures[1]:24.2f}", flush=True
            )
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
