"""Small games of pgx and JaxMARL on the CPU, measured for whoever asks on standard input.

A plain script for an interpreter that has jax, pgx and jaxmarl and nothing of ours. ``names`` is
answered by what there is and for how many players; a name and a number of copies by decisions a
second of CPU time: stepped from Python, and as a rollout of `LENGTH` steps that is compiled as a
whole. Actions are random and drawn in the same compiled step; games that end start again. Compiling
is not counted.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp

SECONDS, LENGTH = 0.3, 20


def pgx_game(name: str) -> tuple[Callable[..., Any], Callable[..., Any], int]:
    """Return the reset, the step with random legal actions, and the decisions of a step."""
    import pgx
    from pgx.experimental import auto_reset

    env = pgx.make(name)
    step = auto_reset(env.step, env.init)

    def play(state: Any, key: Any) -> Any:
        logits = jnp.log(state.legal_action_mask.astype(jnp.float32))
        chosen, again = jax.random.split(key)
        return step(state, jax.random.categorical(chosen, logits), again)

    return env.init, play, 1


def marl_game(name: str) -> tuple[Callable[..., Any], Callable[..., Any], int]:
    """Return reset, step and decisions of a game in which all agents move together."""
    import jaxmarl

    env = jaxmarl.make(name)

    def play(carried: Any, key: Any) -> Any:
        keys = jax.random.split(key, env.num_agents + 1)
        actions = {
            agent: env.action_space(agent).sample(keys[i]) for i, agent in enumerate(env.agents)
        }
        observations, state, *_ = env.step(keys[-1], carried[1], actions)
        return observations, state

    return env.reset, play, env.num_agents


GAMES: dict[str, tuple[int, Callable[[], Any]]] = {
    "pgx:kuhn_poker": (2, lambda: pgx_game("kuhn_poker")),
    "pgx:leduc_holdem": (2, lambda: pgx_game("leduc_holdem")),
    "jaxmarl:switch_riddle": (3, lambda: marl_game("switch_riddle")),
}
"""How many play, and the game."""


@lru_cache
def compiled(name: str, copies: int) -> tuple[Any, Any, Any, int]:
    """Return a first state, both compiled ways of stepping, and the decisions of a step."""
    reset, play, decisions = GAMES[name][1]()

    def step(carried: Any, key: Any) -> Any:
        return jax.vmap(play)(carried, jax.random.split(key, copies))

    def rollout(carried: Any, key: Any) -> Any:
        keys = jax.random.split(key, LENGTH)
        return jax.lax.scan(lambda c, k: (step(c, k), None), carried, keys)[0]

    first = jax.vmap(reset)(jax.random.split(jax.random.PRNGKey(0), copies))
    ways = jax.jit(step), jax.jit(rollout)
    key = jax.random.PRNGKey(1)
    for way in ways:
        jax.block_until_ready(way(first, key))
    return first, *ways, decisions


def rate(way: Any, state: Any, decisions: int) -> float:
    key, done, start = jax.random.PRNGKey(2), 0, time.process_time()
    while time.process_time() - start < SECONDS:
        state = jax.block_until_ready(way(state, key))
        done += decisions
    return done / (time.process_time() - start)


def main() -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # they greet
    for line in sys.stdin:
        if line.strip() == "names":
            names = (f"{name}={players}" for name, (players, _) in GAMES.items())
            print(*names, file=answers, flush=True)
            continue
        name, copies = line.split()
        state, step, rollout, seats = compiled(name, int(copies))
        each = seats * int(copies)
        rates = rate(step, state, each), rate(rollout, state, each * LENGTH)
        print(*rates, file=answers, flush=True)


if __name__ == "__main__":
    main()
