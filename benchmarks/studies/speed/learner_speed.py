"""Speed of learners' views.

``OMP_NUM_THREADS=1 python -m llm_games.benchmarks.studies.speed.learner_speed``

Arguments are games with the players of all other seats (``water_allocation=even``; by default each
game with ``rational``). All is CPU time of one process, whatever else the machine does, but where a
server is waited for; rates are of the learner's steps. What is compared is measured in turns in the
same run, medians of `RUNS`:

- the view: steps a second at 1 to 4096 copies and at how many times `SyncVectorEnv` goes; at `MANY`
  copies its own time as a share of what the rules' steps, observations and the opponents' acts
  take. Actions are drawn before.
- training: the share of Stable-Baselines3's PPO that goes to the environment, with `FEW` copies.
- peers: decisions of all seats a second, with as many players, beside environments in JAX, jitted
  and compiled before, stepped from Python and as a whole rollout (``--peers PYTHON``: of a virtual
  environment with jax, pgx and jaxmarl).
- models: a language model in the other seats, on a server on this machine that answers each call
  after 0.2 s: decisions a second of wall time, as a share of what so many calls at once can bring,
  of copies in step and of `AsyncGames`, and how many times as many a warm cache brings.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import SyncVectorEnv
from rich.console import Console
from rich.table import Table

import llm_games as lg
from llm_games.benchmarks.studies.speed.episodes import Work, rate
from llm_games.benchmarks.studies.speed.llm_path import DELAY, IN_FLIGHT, serving
from llm_games.game_rooms import ROOMS
from llm_games.wrappers.async_env import AsyncGames
from llm_games.wrappers.together import at_once

RUNS = 5
COPIES = (1, 64, 512, 4096)
FEW, MANY = 64, 512
SYNCED = (1, 64)
"""Copies at which `SyncVectorEnv` is measured too."""
OTHER = ("chance", "begin", "asked", "amounts", "mask")
"""What a view asks of the rules beside steps and observations."""
Row = dict[str, Any]


# -- the view --------------------------------------------------------------------------------------


class Watch:
    """CPU seconds inside watched calls, by kind; nested calls count as the outer one."""

    def __init__(self) -> None:
        self.spent, self._inside = defaultdict[str, float](float), False

    def calls(self, call: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def watched(*arguments: Any, **keywords: Any) -> Any:
            if self._inside:
                return call(*arguments, **keywords)
            self._inside, start = True, time.process_time()
            try:
                return call(*arguments, **keywords)
            finally:
                self.spent[kind] += time.process_time() - start
                self._inside = False

        return watched

    def decisions(self, decide: Callable[..., Any], kind: str) -> Callable[..., Any]:
        """Return a coroutine function that waits for nothing, whose time is counted."""
        done = self.calls(at_once, kind)

        async def watched(*arguments: Any) -> Any:
            return done(decide(*arguments))

        return watched


def steps(env: Any, copies: int) -> Work:
    """Return the work of some steps with random actions, from episodes under way on."""
    shape, rng = (16, copies, *(env.single_action_space.shape or ())), np.random.default_rng(1)
    discrete = hasattr(env.single_action_space, "n")
    count = int(env.single_action_space.n) if discrete else 0
    actions = rng.integers(0, count, shape) if count else rng.uniform(-1, 1, shape)
    env.reset(seed=0)
    coming = iter(range(10**9))

    def work() -> int:
        for _ in range(7):
            env.step(actions[next(coming) % 16])
        return 7 * copies

    work()
    return work


def in_turns(*works: Work) -> list[list[float]]:
    runs = [[rate(work) for work in works] for _ in range(RUNS)]
    return [list(rates) for rates in zip(*runs, strict=True)]


def view_share(game: str, opponents: str) -> float:
    """Return the view's own time as a share of the rules' steps, observations and others' acts.

    Its other requests to the rules (`OTHER`), and the start of opponents, count in neither.
    """
    env, watch = lg.learners(game, MANY, opponents=opponents), Watch()
    for name in ("step", "observe", *OTHER):
        kind = "other" if name in OTHER else "rules"
        object.__setattr__(env.game, name, watch.calls(getattr(env.game, name), kind))
    for policy in env.opponents:
        vars(policy)["decide_batch"] = watch.decisions(policy.decide_batch, "rules")
        vars(policy)["start_batch"] = watch.calls(policy.start_batch, "other")
    work, view_shares = steps(env, MANY), []
    for _ in range(RUNS):
        watch.spent.clear()
        start = time.process_time()
        rate(work)
        whole = time.process_time() - start
        view_shares.append((whole - sum(watch.spent.values())) / watch.spent["rules"])
    return statistics.median(view_shares)


def views(games: list[tuple[str, str]], copies: tuple[int, ...] = COPIES) -> Iterator[Row]:
    for game, opponents in games:
        row: Row = {"game": game, "opponents": opponents}
        for count in copies:
            works = [steps(lg.learners(game, count, opponents=opponents), count)]
            if count in SYNCED:
                make_single = partial(lg.learner, game, opponents=opponents)
                works.append(steps(SyncVectorEnv([make_single] * count), count))
            ours, *loops = in_turns(*works)
            row[str(count)] = statistics.median(ours)
            for loop in loops:
                row[f"{count}, times a loop"] = times(ours, loop)
        yield row | {"own share": view_share(game, opponents)}


def times(ours: list[float], theirs: list[float]) -> float:
    """Return the median ratio of rates that were measured in turns."""
    return statistics.median(our / other for our, other in zip(ours, theirs, strict=True))


# -- training --------------------------------------------------------------------------------------


def training(games: list[tuple[str, str]]) -> Iterator[Row]:
    """Measure the share of PPO's time that goes to the environment."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    from llm_games.wrappers.sb3 import SB3VecEnv

    for game, opponents in games:
        make_single = partial(lg.learner, game, opponents=opponents)
        shares: dict[str, list[float]] = {"env": [], "DummyVecEnv": []}
        for kind, rounds in (("env", RUNS), ("DummyVecEnv", 1)):
            ours = kind == "env"
            env: Any = (
                SB3VecEnv(lg.learners(game, FEW, opponents=opponents))
                if ours
                else DummyVecEnv([make_single] * FEW)
            )
            watch = Watch()
            for name in ("step_wait", "reset"):
                setattr(env, name, watch.calls(getattr(env, name), kind))
            plain = env.observation_space.shape is not None
            policy = "MlpPolicy" if plain else "MultiInputPolicy"
            model = PPO(policy, env, n_steps=20, device="cpu", seed=1)
            model.learn(20 * FEW)
            for _ in range(rounds):
                watch.spent.clear()
                start = time.process_time()
                model.learn(20 * FEW, reset_num_timesteps=False)
                shares[kind].append(watch.spent[kind] / (time.process_time() - start))
        medians = {kind: statistics.median(kind_shares) for kind, kind_shares in shares.items()}
        yield {"game": game, "opponents": opponents, **medians}


# -- peers -----------------------------------------------------------------------------------------


def peers(python: str, games: list[tuple[str, str]]) -> Iterator[Row]:
    """Measure decisions of all seats beside environments in JAX, in a process of their own."""
    script = str(Path(__file__).with_name("jax_peers.py"))
    with subprocess.Popen(
        [python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        pipe: Any = process

        def ask(line: str) -> list[str]:
            print(line, file=pipe.stdin, flush=True)
            answer: str = pipe.stdout.readline()
            return answer.split()

        peer_names = [name.split("=") for name in ask("names")]
        for game, opponents in games:
            for name, players in peer_names:
                env = lg.learners(game, MANY, players=int(players), opponents=opponents)
                work, seats = steps(env, MANY), int(players)
                pairs = [(rate(work) * seats, ask(f"{name} {MANY}")) for _ in range(RUNS)]
                row: Row = {"game": game, "players": seats, "peer": name}
                row["decisions"] = statistics.median(ours for ours, _ in pairs)
                for index, way in enumerate(("stepped", "as a rollout")):
                    ratios = [ours / float(theirs[index]) for ours, theirs in pairs]
                    row[f"times it, {way}"] = statistics.median(ratios)
                yield row
        pipe.stdin.close()


# -- models ----------------------------------------------------------------------------------------


def models(game: str, copies: int = 64, players: int = 5) -> Iterator[Row]:
    """Measure a language model as opponents: against the server's limit, and with a warm cache."""
    with serving() as address:
        for flight in (IN_FLIGHT // 4, IN_FLIGHT):
            there: Row = {"base_url": address, "max_in_flight": flight}
            asked, used = _paced(game, copies, players, there, flight // 2)
            apart = _apart(game, copies, players, there, flight // 2)
            with tempfile.TemporaryDirectory() as folder:
                there |= {"cache": f"{folder}/replies.db", "samples": 1}
                _paced(game, copies, players, there, 25)
                warm, _ = _paced(game, copies, players, there, 25)
            yield {
                "game": game,
                "calls at once": flight,
                "answers a second": asked,
                "share of the limit": asked * DELAY / flight,
                "share, AsyncGames": apart * DELAY / flight,
                "CPU ms an answer": used,
                "warm cache": warm,
                "times": warm / asked,
            }


def _paced(game: str, copies: int, players: int, client: Row, count: int) -> tuple[float, float]:
    """Return the opponents' decisions a second of wall time, and CPU ms of each.

    The learner always does the same, so that chats come again.
    """
    opponent = lg.player("openai:m", client=client)
    env = lg.learners(game, copies, players=players, opponents=opponent)
    env.reset(seed=0)
    actions, answers = np.zeros(copies, np.int64), 0
    env.step(actions)  # connections are made once
    start, used = time.perf_counter(), time.process_time()
    for _ in range(count):
        *_, infos = env.step(actions)
        answers += _answers(infos)
    used = time.process_time() - used
    return answers / (time.perf_counter() - start), 1000 * used / answers


def _apart(game: str, copies: int, players: int, client: Row, count: int) -> float:
    """Return decisions a second where no copy waits for another."""
    batch = copies // 8
    opponent = lg.player("openai:m", client=client)
    env = AsyncGames(game, copies, batch_size=batch, players=players, opponents=opponent)
    env.reset(seed=0)
    env.send(np.zeros(copies, np.int64))
    answers, start = 0, 0.0
    for received in range(16 + 8 * count):
        if received == 16:  # all are under way
            answers, start = 0, time.perf_counter()
        *_, infos = env.recv()
        answers += _answers(infos)
        env.send(np.zeros(batch, np.int64), infos["env_id"])
    return answers / (time.perf_counter() - start)


def _answers(infos: Row) -> int:
    """Return the number of opponents' decisions in a step's infos."""
    outcomes = infos.get("opponents", {})
    return sum(int(counts.sum()) for name, counts in outcomes.items() if name[0] != "_")


# -- printed ---------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("games", nargs="*", metavar="GAME[=PLAYER]", help="default: all, rational")
    parts = ("views", "training", "peers", "models")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--copies", nargs="+", type=int, default=COPIES)
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter with jax and peers")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures there too")
    arguments = parser.parse_args()
    named = [name.partition("=") for name in arguments.games or ROOMS]
    games = [(game, player or "rational") for game, _, player in named]
    measured: dict[str, Callable[[], Iterator[Row]]] = {
        "views": lambda: views(games, tuple(arguments.copies)),
        "training": lambda: training(games),
        "peers": lambda: peers(arguments.peers, games) if arguments.peers else iter(()),
        "models": lambda: models(games[0][0]),
    }
    rows_by_part = {}
    for part in arguments.only:
        rows_by_part[part] = rows = [*measured[part]()]
        shown = Table(*(rows[0] if rows else ()), title=part)
        for row in rows:
            shown.add_row(*map(_cell, row.values()))
        Console().print(shown if rows else f"{part}: not measured")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows_by_part, indent=1) + "\n", "utf-8")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return str(value)


if __name__ == "__main__":
    main()
