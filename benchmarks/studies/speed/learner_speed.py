"""Speed of learners' views: rates are of the learner's steps, in CPU time of this process.

``OMP_NUM_THREADS=1 python -m llm_games.benchmarks.studies.speed.learner_speed``

Arguments are games with the players of all other seats (``water_allocation=even``; by default each
game with ``rational``). Measured are steps a second at 1 to 4096 copies and at how many times
`SyncVectorEnv` goes, in turns in the same run, medians of `RUNS`; and at `MANY` copies the view's
own time as a share of what the rules' steps, observations and the opponents' acts take. Actions are
drawn before.
"""

from __future__ import annotations

import argparse
import json
import statistics
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
from llm_games.game_rooms import ROOMS
from llm_games.wrappers.together import at_once

RUNS = 5
COPIES = (1, 64, 512, 4096)
MANY = 512
SYNCED = (1, 64)
"""Copies at which `SyncVectorEnv` is measured too."""
OTHER = ("chance", "begin", "asked", "amounts", "mask")
"""What a view asks of the rules beside steps and observations."""
Row = dict[str, Any]


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
    count = int(getattr(env.single_action_space, "n", 0))
    actions = rng.integers(0, count, shape) if count else rng.uniform(-1, 1, shape)
    env.reset(seed=0)
    coming = iter(range(10**9))

    def work() -> int:
        for _ in range(7):
            env.step(actions[next(coming) % 16])
        return 7 * copies

    work()
    return work


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
            runs = [[rate(work) for work in works] for _ in range(RUNS)]
            row[str(count)] = statistics.median(ours for ours, *_ in runs)
            if count in SYNCED:
                ratio = statistics.median(ours / loop for ours, loop in runs)
                row[f"{count}, times a loop"] = ratio
        yield row | {"own share": view_share(game, opponents)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("games", nargs="*", metavar="GAME[=PLAYER]", help="default: all, rational")
    parser.add_argument("--copies", nargs="+", type=int, default=COPIES)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures there too")
    arguments = parser.parse_args()
    named = [name.partition("=") for name in arguments.games or ROOMS]
    games = [(game, player or "rational") for game, _, player in named]
    rows = [*views(games, tuple(arguments.copies))]
    shown = Table(*rows[0])
    for row in rows:
        shown.add_row(*map(_cell, row.values()))
    Console().print(shown)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return str(value)


if __name__ == "__main__":
    main()
