"""Print speed figures.

``OMP_NUM_THREADS=1 python -m llm_games.benchmarks.studies.speed [--json FILE]``.

Rates are decisions per second of CPU time over whole episodes with varied actions, medians of
`RUNS` runs that alternate with the peer's where there is one: with as many players as it has, and
with replies that are read where it reads them. ``pip install "llm-games[peers]"`` installs peers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from llm_games.benchmarks.studies.speed.episodes import RUNS, Work, measure, rate, table
from llm_games.game_rooms import ROOMS
from llm_games.registry import make

ROUNDS = 20


class Figure(NamedTuple):
    """One rate; `ratio` to the peer's in the same run, None where there is none."""

    what: str
    rate: float
    peer: str = ""
    ratio: float | None = None


def replies() -> Work:
    env: Any = make("public_goods", players=4, rounds=ROUNDS, actions="text")
    amounts = np.random.default_rng(1).integers(0, 21, (ROUNDS, 4)).tolist()

    def work() -> int:
        env.reset(seed=1)
        for row in amounts:
            texts = (f'{{"tokens_contributed": {amount}}}' for amount in row)
            env.step(dict(zip(env.agents, texts, strict=True)))
        return ROUNDS * 4

    return work


def text_arena() -> Work:
    """Return TextArena's public goods with 4 players, without talk; it reads replies too."""
    from textarena.envs.PublicGoodsGame.env import PublicGoodsGameEnv
    from textarena.wrappers import LLMObservationWrapper

    amounts = np.random.default_rng(1).integers(0, 21, 4 * ROUNDS).tolist()

    def work() -> int:
        env = LLMObservationWrapper(PublicGoodsGameEnv(num_rounds=ROUNDS, communication_turns=0))
        env.reset(num_players=4, seed=1)
        for amount in amounts:
            env.get_observation()
            env.step(f"[{amount}]")
        return len(amounts)

    return work


def rock_paper_scissors() -> Work:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from pettingzoo.classic import rps_v2
    env = rps_v2.parallel_env(max_cycles=ROUNDS)
    moves = np.random.default_rng(1).integers(0, 3, (ROUNDS, 2)).tolist()

    def work() -> int:
        env.reset(seed=1)
        for row in moves:
            env.step(dict(zip(env.agents, row, strict=True)))
        return ROUNDS * 2

    return work


def beside(what: str, ours: Work, peer: str, theirs: Callable[[], Work]) -> Figure:
    """Measure our work in turns with a peer's, or alone if the peer is not installed."""
    try:
        work = theirs()
    except ImportError:
        return Figure(what, statistics.median(rate(ours) for _ in range(RUNS)), peer)
    pairs = [(rate(ours), rate(work)) for _ in range(RUNS)]
    ratio = statistics.median(mine / other for mine, other in pairs)
    return Figure(what, statistics.median(mine for mine, _ in pairs), peer, ratio)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures there too")
    path = parser.parse_args().json
    pair = table("public_goods", "numeric", players=2, rounds=ROUNDS)
    figures = [
        beside("public goods, 4 players, replies", replies(), "TextArena", text_arena),
        beside("public goods, 2 players, numbers", pair, "rps_v2", rock_paper_scissors),
    ]
    for name, rates in measure([*ROOMS]).items():
        figures += [Figure(f"{name}, {way}", speed) for way, speed in rates.items()]
    shown = Table("whole episodes", "decisions per CPU second", "peer", "ratio to it")
    for figure in figures:
        ratio = f"{figure.ratio:.1f}" if figure.ratio else "peer not installed" * bool(figure.peer)
        shown.add_row(figure.what, f"{figure.rate:,.0f}", figure.peer, ratio)
    Console().print(shown)
    if path:
        path.write_text(json.dumps([f._asdict() for f in figures], indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
