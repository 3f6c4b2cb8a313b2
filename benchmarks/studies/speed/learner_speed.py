"""Speed of learners' views: rates are of the learner's steps, in CPU time of this process.

``OMP_NUM_THREADS=1 python -m llm_games.benchmarks.studies.speed.learner_speed``

Arguments are games with the players of all other seats (``water_allocation=even``; by default each
game with ``rational``). Measured are steps a second at 1 to 4096 copies, how many times the speed
of `SyncVectorEnv` that is, and at `MANY` copies how many times that of two-player public goods: in
turns in the same run, medians of `RUNS`. Actions are drawn before, legal or not.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
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

RUNS = 5
COPIES = (1, 64, 512, 4096)
MANY = 512
SYNCED = (1, 64)
"""Copies at which `SyncVectorEnv` is measured too."""
Row = dict[str, Any]


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


def views(games: list[tuple[str, str]], copies: tuple[int, ...] = COPIES) -> Iterator[Row]:
    for game, opponents in games:
        row: Row = {"game": game, "opponents": opponents}
        for count in copies:
            peers: dict[str, Any] = {}
            if count in SYNCED:
                make_single = partial(lg.learner, game, opponents=opponents)
                peers["a loop"] = SyncVectorEnv([make_single] * count)
            if count == MANY:
                peers["public goods"] = lg.learners(
                    "public_goods", count, opponents="rational", players=2
                )
            envs = [lg.learners(game, count, opponents=opponents), *peers.values()]
            works = [steps(env, count) for env in envs]
            runs = [[rate(work) for work in works] for _ in range(RUNS)]
            row[str(count)] = statistics.median(ours for ours, *_ in runs)
            for place, peer in enumerate(peers, 1):
                ratios = (run[0] / run[place] for run in runs)
                row[f"{count}, times {peer}"] = statistics.median(ratios)
        yield row


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
