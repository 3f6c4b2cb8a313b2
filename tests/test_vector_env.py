"""Copies of a learner's game in one step: as Gymnasium's loop over single ones, step by step."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from playing import IDS, NAMES, SETTINGS

import llm_games
from llm_games.baselines.deviation import regret
from llm_games.baselines.players import make_player
from llm_games.codecs import ACTIONS
from llm_games.wrappers.single_agent import SingleAgentEnv
from llm_games.wrappers.vector_env import GameVectorEnv

COPIES = 3
MODES = list(AutoresetMode)[:2]
TEXTS = ("no idea", '{"answer": 1}', '{"bid": 2}', '{"tokens": 3}', '{"decision": "stay"}')


def pair(game, mode=AutoresetMode.NEXT_STEP, **settings):
    """Return a vector environment and Gymnasium's loop over as many single ones."""
    vector = GameVectorEnv(game, COPIES, autoreset_mode=mode, **settings)
    single = [lambda: SingleAgentEnv(game, **settings)] * COPIES
    return vector, SyncVectorEnv(single, autoreset_mode=mode)


def alike(one, other, where=""):
    """Assert that two nested results are the same, and of the same types."""
    assert type(one) is type(other), (where, one, other)
    if isinstance(one, dict):
        assert one.keys() == other.keys(), (where, one, other)
        for key in one:
            alike(one[key], other[key], f"{where}/{key}")
    elif isinstance(one, tuple) or (isinstance(one, np.ndarray) and one.dtype == object):
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            alike(a, b, f"{where}/{i}")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, (where, one.dtype, other.dtype)
        assert np.array_equal(one, other), (where, one, other)
    else:
        assert one == other, (where, one, other)


def actions_for(env, observation, rng):
    """Draw an action for each copy, a legal one where there is a mask."""
    space = env.single_action_space
    if isinstance(space, gymnasium.spaces.Text):
        return tuple(rng.choice(TEXTS).item() for _ in range(COPIES))
    if not isinstance(observation, dict) or "action_mask" not in observation:
        space = env.action_space
        space.seed(int(rng.integers(2**31)))
        return space.sample()
    masks = observation["action_mask"]
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in masks]) + space.start


def play_both(vector, loop, steps, seed=5):
    """Play both with the same actions, assert that all is the same, and return how many ended."""
    rng, ended = np.random.default_rng(1), 0
    alike(vector.observation_space, loop.observation_space)
    alike(vector.action_space, loop.action_space)
    seen = vector.reset(seed=seed)
    alike(seen, loop.reset(seed=seed), "reset")
    for step in range(steps):
        actions = actions_for(vector, seen[0], rng)
        seen, expected = vector.step(actions), loop.step(actions)
        alike(seen, expected, f"step {step}")
        assert vector.observation_space.contains(seen[0])
        ended += int((seen[2] | seen[3]).sum())
    return ended


@pytest.mark.parametrize(
    ("name", "more", "number"), [(*s, i) for i, s in enumerate(SETTINGS)], ids=IDS
)
def test_a_vector_is_a_loop(name, more, number):
    """Every game, with opponents by rule or at random, seats that move, both ways to go on."""
    game = llm_games.rules(name, **more)
    seat = (0, game.players - 1, "rotate", "random")[number % 4]
    opponents = None if number % 3 == 0 else make_player("rational", game)
    vector, loop = pair(
        game, MODES[number % 2], seat=seat, opponents=opponents, regret=regret, max_cycles=7
    )
    assert play_both(vector, loop, 18)


@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_all_kinds_of_actions(name, actions):
    game = llm_games.rules(name)
    more = {"obs_mode": "both", "reask": 1} if actions == "text" else {"normalize": True}
    vector, loop = pair(game, seat="random", actions=actions, max_cycles=3, **more)
    play_both(vector, loop, 7)
