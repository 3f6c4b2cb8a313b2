"""Speed of whole episodes of every game, by their parts: rules, numbers, words, batches.

A plain script of public calls, so that an older commit can be measured beside this one::

    PYTHONPATH=OLDER python benchmarks/studies/speed/episodes.py public_goods > before.json

Each game is played by random players first. Their moves are then repeated and timed, at one table
of the environment without words and with them; so actions vary, and states are new.
"""

from __future__ import annotations

import inspect
import json
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from itertools import cycle
from typing import Any

import numpy as np
from gymnasium.spaces import Box

import llm_games
from llm_games.baselines.players import make_player
from llm_games.registry import make, rulebook

try:
    play: Any = llm_games.play
except AttributeError:  # llm-games 0.1.0
    play = import_module("llm_games.wrappers.table").play

RUNS = 5
SECONDS = 0.3
SEEDS = range(1, 5)
BATCH = 1024
LONGEST = 200
"""Steps of an episode that has no end of its own."""
NEW = "actions" in inspect.signature(make).parameters
"""Whether an environment takes actions in several forms; if not, it takes the games' own."""

Work = Callable[[], int]
"""Plays episodes; returns how many decisions were made."""


def rate(work: Work) -> float:
    done, start = 0, time.process_time()
    while time.process_time() - start < SECONDS:
        done += work()
    return done / (time.process_time() - start)


def played(name: str, seed: int, **parameters: Any) -> list[dict[int, Any]]:
    """Return random players' actions in an episode, by seat, step by step."""
    game = rulebook(name, **parameters)
    random = make_player("random", game)
    episode = play(game, [random] * game.players, seed, max_steps=LONGEST)
    return [{seat: d.action for seat, d in step.decisions.items()} for step in episode.steps]


def table(name: str, obs_mode: str, **parameters: Any) -> Work:
    new_settings: dict[str, Any] = {"actions": "rules"} if NEW else {}
    env: Any = make(name, obs_mode=obs_mode, form="parallel", **new_settings, **parameters)
    moves_by_seed = {seed: by_agent(env, played(name, seed, **parameters)) for seed in SEEDS}

    def work() -> int:
        decisions = 0
        for seed, moves in moves_by_seed.items():
            coming = {agent: cycle(agent_moves) for agent, agent_moves in moves.items()}
            _, infos = env.reset(seed=seed)
            for _ in range(LONGEST):
                asked = [agent for agent in env.agents if infos[agent]["asked"]]
                *_, infos = env.step({agent: next(coming[agent]) for agent in asked})
                decisions += len(asked)
                if not env.agents:
                    break
        return decisions

    return work


def by_agent(env: Any, steps: list[dict[int, Any]]) -> dict[str, list[Any]]:
    """Return each agent's moves as actions of its space; in votes' spaces plans come first."""
    moves_by_agent: dict[str, list[Any]] = {agent: [] for agent in env.possible_agents}
    unit = env.game.unit if NEW else 1
    for step in steps:
        for seat, move in step.items():
            space = env.action_space(agent := env.possible_agents[seat])
            if isinstance(space, Box):  # an amount in another unit than the rules count in
                move = np.array([move / unit], space.dtype)
            elif shape := space.shape:
                plan = isinstance(move, tuple)
                move = np.array([*move, 0] if plan else [*[0] * (sum(shape) - 1), move])
            moves_by_agent[agent].append(move)
    return {a: moves or [env.action_space(a).sample()] for a, moves in moves_by_agent.items()}


def batch(name: str) -> Work:
    game, rng = rulebook(name), np.random.default_rng(1)
    reset: Any = game.reset

    def work() -> int:
        state, decisions = reset(1 if NEW else rng, (BATCH,)), 0
        for _ in range(game.length() or LONGEST):
            if np.all(state.over):
                break
            low, high = game.legal(state)
            actions = rng.integers(low, high, endpoint=True)
            state, _ = game.step(state, actions, *([] if NEW else [rng]))
            decisions += actions.size
        return decisions

    return work


def works(name: str) -> dict[str, Work]:
    """Return the timed works of a game; ``rules``: random players without an environment."""
    timed: dict[str, Work] = {
        "rules": lambda: sum(len(step) for seed in SEEDS for step in played(name, seed)),
        "numbers": table(name, "numeric"),
        "words": table(name, "text"),
    }
    return timed if rulebook(name).turns else timed | {"batch": batch(name)}


def measure(names: list[str]) -> dict[str, dict[str, float]]:
    """Return decisions a second of CPU time, the median of `RUNS`, by game and way."""

    def median(work: Work) -> float:
        return statistics.median(rate(work) for _ in range(RUNS))

    return {name: {way: median(work) for way, work in works(name).items()} for name in names}


if __name__ == "__main__":
    about = {"package": llm_games.__version__, "unit": "decisions per CPU second"}
    names = sys.argv[1:] or [game["name"].removesuffix("-v0") for game in llm_games.list_games()]
    print(json.dumps(about | {"games": measure(names)}, indent=1))
