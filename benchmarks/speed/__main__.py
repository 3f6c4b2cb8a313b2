"""Print all speed figures: ``OMP_NUM_THREADS=1 python -m llm_games.benchmarks.speed``.

Peers are measured in the same run if the extra ``peers`` is installed. All rates are per second of
CPU time, medians of `RUNS` runs that alternate with their peer's.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import llm_games
from llm_games.baselines.players import make_player
from llm_games.registry import GAMES, rulebook
from llm_games.view import Sight

RUNS = 7
SECONDS = 0.4
BATCH = 4096


def rate(work: Callable[[], int]) -> float:
    """Return how many units `work` does in a second of CPU time."""
    done, start = 0, time.process_time()
    while time.process_time() - start < SECONDS:
        done += work()
    return done / (time.process_time() - start)


def paired(work: Callable[[], int], peer: Callable[[], int] | None) -> tuple[float, float | None]:
    """Return the median rate, and the median ratio to the peer's in the run beside it."""
    pairs = [(rate(work), rate(peer) if peer else None) for _ in range(RUNS)]
    ratios = [ours / theirs for ours, theirs in pairs if theirs]
    ours = statistics.median(ours for ours, _ in pairs)
    return ours, statistics.median(ratios) if ratios else None


def table_steps(players: int, obs_mode: str) -> Callable[[], int]:
    """Return the work of one episode of public goods; its unit is a joint step."""
    env: Any = llm_games.make("public_goods-v0", players=players, obs_mode=obs_mode)
    rng = np.random.default_rng(1)
    rounds = env.game.rounds
    plays = [dict(zip(env.possible_agents, row, strict=True))
             for row in rng.integers(0, 21, (rounds, players)).tolist()]  # fmt: skip

    def episode() -> int:
        env.reset()
        for actions in plays:
            env.step(actions)
        return rounds

    return episode


def agent_steps(players: int) -> Callable[[], int]:
    """Return the work of one numeric episode; its unit is one agent's step."""
    episode = table_steps(players, "numeric")
    return lambda: players * episode()


def textarena() -> Callable[[], int] | None:
    """Return TextArena's public goods with 4 players, without talk; its unit is a joint step."""
    if importlib.util.find_spec("textarena") is None:
        return None
    from textarena.envs.PublicGoodsGame.env import PublicGoodsGameEnv
    from textarena.wrappers import LLMObservationWrapper

    def episode() -> int:
        env = LLMObservationWrapper(PublicGoodsGameEnv(num_rounds=20, communication_turns=0))
        env.reset(num_players=4, seed=1)
        done = False
        while not done:
            env.get_observation()
            done, _ = env.step("[5]")
        return 20

    return episode


def rock_paper_scissors() -> Callable[[], int] | None:
    """Return PettingZoo's rps_v2 in its parallel form; its unit is one agent's step."""
    if importlib.util.find_spec("pygame") is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from pettingzoo.classic import rps_v2
    env = rps_v2.parallel_env(max_cycles=20)

    def episode() -> int:
        env.reset()
        steps = 0
        while env.agents:
            env.step(dict.fromkeys(env.agents, 1))
            steps += 2
        return steps

    return episode


def batched(name: str) -> Callable[[], int]:
    """Return one step of a batch under the pure rules; its unit is a player's action."""
    game = rulebook(name)
    rng = np.random.default_rng(1)
    state = game.reset(rng, (BATCH,))
    low, high = game.legal(state)
    actions = rng.integers(low, high, endpoint=True)

    def step() -> int:
        game.step(state, actions, rng)
        return actions.size

    return step


def ruled(name: str, player: str) -> Callable[[], int]:
    """Return one episode of a batch of rule players; its unit is a seat's decision."""
    game = rulebook(name)
    policy = make_player(player, game)

    def episode() -> int:
        rng = np.random.default_rng(1)
        state, decisions = game.reset(rng, (BATCH,)), 0
        memories = [policy.start(game, seat, seat) for seat in range(game.players)]
        while not state.over.all():
            asked, sight = game.asked(state), Sight(game, state)
            actions = np.zeros(asked.shape, np.int64)
            for seat in np.flatnonzero(asked.any(axis=1)).tolist():
                decision, memories[seat] = policy.act(sight.view(seat), memories[seat])
                actions[seat] = decision.action
            state, _ = game.step(state, actions, rng)
            decisions += int(asked.sum())
        return decisions

    return episode


def single(name: str, move: int) -> Callable[[], int]:
    """Return one numeric episode in which all always do the same; its unit is a decision."""
    env: Any = llm_games.make(f"{name}-v0", obs_mode="numeric", form="parallel")

    def episode() -> int:
        decisions = 0
        _, infos = env.reset(seed=1)
        while env.agents:
            moves = {agent: move for agent in env.agents if infos[agent]["asked"]}
            _, _, _, _, infos = env.step(moves)
            decisions += len(moves)
        return decisions

    return episode


RULED = (("water_allocation", "even"), ("english_auction", "rule:4"), ("english_auction", "naive"))
SINGLE = (("water_allocation", 60, "bid 60"), ("english_auction", -1, "withdraw"))


def challenges(table: Table) -> None:
    """Add the rows of the water allocation challenge and the English auction."""
    for name, player in RULED:
        ours, _ = paired(ruled(name, player), None)
        what = f"{name}, batch of {BATCH}, {player}"
        table.add_row(what, "decisions", f"{ours / 1e6:,.2f} M", "-", "-", "1 M")
    for name, move, meaning in SINGLE:
        ours, _ = paired(single(name, move), None)
        what = f"{name}, one table, numeric, all {meaning}"
        table.add_row(what, "decisions", f"{ours:,.0f}", "-", "-", "20,000")


def main() -> None:
    """Measure and print."""
    table = Table("what", "unit per CPU second", "rate", "peer", "ratio to it", "wanted")
    env_rows = (
        ("public goods, 4 players, text", "joint steps", table_steps(4, "text"), "TextArena 0.7.4",
         textarena(), "2"),
        ("public goods, 10 players, numeric", "agent steps", agent_steps(10), "rps_v2",
         rock_paper_scissors(), "5"),
    )  # fmt: skip
    for what, unit, work, name, peer, wanted in env_rows:
        ours, ratio = paired(work, peer)
        shown = f"{ratio:.1f}" if ratio else "not installed"
        table.add_row(what, unit, f"{ours:,.0f}", name, shown, wanted)
    for name in GAMES:
        if not rulebook(name).turns:
            ours, _ = paired(batched(name), None)
            wanted = "100 M" if name in ("beauty_contest", "public_goods") else "20 M"
            what = f"{name}, batch of {BATCH}"
            table.add_row(what, "player actions", f"{ours / 1e6:,.0f} M", "-", "-", wanted)
    challenges(table)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
