"""Copies that do not wait for each other."""

import asyncio
import json
import random
import threading

import numpy as np
import pytest
from fault_server import FaultServer, completion
from playing import each_row

import llm_games as lg
from llm_games.errors import BadParameter, IllegalAction, NotReady
from llm_games.wrappers.async_env import AsyncGames
from llm_games.wrappers.clients.base import ClientError
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.vector_env import GameVectorEnv

GOODS = {"players": 3, "rounds": 3}


@pytest.fixture
def made():
    envs = []

    def make(game="public_goods", *arguments, **more):
        envs.append(AsyncGames(game, *arguments, **(GOODS | more if game in GAMES else more)))
        return envs[-1]

    yield make
    for env in envs:
        env.close()


GAMES = ("public_goods",)


def same(one, other):
    """Compare what views return: arrays, and dicts or tuples of them."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other)


@each_row("obs_mode", ["numeric", "both"])
@each_row("game", ["public_goods", "battle_royale", "sealed_bid_auction"])
def test_who_waits_for_all_has_a_vector_of_learners(made, game, obs_mode):
    """`reset` and `step` are those of `GameVectorEnv`, with the copies' numbers in the infos."""
    settings = {"players": 3, "obs_mode": obs_mode} | (GOODS if game in GAMES else {})
    env, other = made(game, 3, **settings), GameVectorEnv(game, 3, **settings)
    assert env.observation_space == other.observation_space
    assert env.action_space == other.action_space
    (observation, infos), (expected, about) = env.reset(seed=5), other.reset(seed=5)
    other.action_space.seed(1)
    for _ in range(12):
        assert same(observation, expected)
        assert infos.pop("env_id").tolist() == [0, 1, 2]
        assert same(infos, about)
        actions = other.action_space.sample()
        observation, *rest, infos = env.step(actions)
        expected, *others, about = other.step(actions)
        assert same(tuple(rest), tuple(others))


def test_in_whatever_order_they_come_each_copy_has_its_own_game(made):
    """Sent and received in parts, every copy plays what it plays in a loop."""
    env, luck = made("public_goods", 5, batch_size=2), random.Random(1)
    env.async_reset(seed=3)
    acts = np.random.default_rng(2).integers(0, 21, (9, 5))
    told, steps = {copy: [] for copy in range(5)}, [0] * 5
    while min(steps) < 9:
        observation, rewards, *_, infos = env.recv()
        ready = infos["env_id"].tolist()
        assert len(ready) == 2
        for place, copy in enumerate(ready):
            told[copy].append((observation[place], rewards[place]))
        luck.shuffle(ready)
        env.send([int(acts[min(steps[copy], 8), copy]) for copy in ready], ready)
        for copy in ready:
            steps[copy] += 1
    for copy in range(5):
        alone = GameVectorEnv("public_goods", 1, **GOODS)
        observation, _ = alone.reset(seed=3 + copy)
        expected = [(observation[0], 0.0)]
        for step in range(8):
            observation, rewards, *_ = alone.step(acts[step, copy : copy + 1])
            expected.append((observation[0], rewards[0]))
        assert len(told[copy]) >= 9
        for (seen, reward), (other, paid) in zip(told[copy], expected, strict=False):
            assert np.array_equal(seen, other)
            assert reward == paid


def test_a_slow_reply_holds_its_own_copy_alone(made):
    """The others play whole games while copy 0 waits for the reply to its first prompt."""
    held = threading.Event()

    async def script(request):
        if request.who.episode == 7:
            while not held.is_set():
                await asyncio.sleep(0.001)
        return '{"tokens_contributed": 5}'

    player = LLMPolicy(ScriptedClient(script))
    env = made("public_goods", 3, batch_size=1, opponents=player)
    env.async_reset(seed=7)
    copy, seen = None, []
    while copy != 0:
        *_, infos = env.recv()
        (copy,) = infos["env_id"].tolist()
        env.send([5], [copy])
    for _ in range(12):
        *_, infos = env.recv()
        (copy,) = infos["env_id"].tolist()
        seen.append(copy)
        env.send([5], [copy])
    assert 0 not in seen
    held.set()
    while copy:
        *_, infos = env.recv()
        (copy,) = infos["env_id"].tolist()
        if copy:
            env.send([5], [copy])
    assert infos["opponents"]["valid"].tolist() == [2]


def test_the_prompts_of_copies_that_wait_are_in_flight_at_the_same_time(made):
    """A real server has as many calls at once as there are seats to ask, or as it may have."""
    with FaultServer(delay=0.05, reply=contributed) as server:
        client = {"base_url": server.url, "max_wait": 5, "max_in_flight": 6}
        player = lg.player("openai:m", client=client)
        env = made("public_goods", 8, batch_size=2, opponents=player)
        env.async_reset(seed=1)
        for _ in range(12):
            *_, infos = env.recv()
            env.send([5, 5], infos["env_id"])
        assert server.peak == 6
        assert server.served["429"] == 0


def contributed(body):
    return completion(json.dumps({"tokens_contributed": 5}))


def test_an_error_names_its_copy_and_nothing_else_is_lost(made):
    down = {1}

    def script(request):
        if request.who.episode - 4 in down:
            raise ClientError("the server is down")
        return '{"tokens_contributed": 5}'

    env = made("public_goods", 3, opponents=LLMPolicy(ScriptedClient(script)))
    env.reset(seed=4)
    for _ in range(2):
        with pytest.raises(ClientError, match="down") as error:
            env.step([20, 20, 20])
        assert "(copy 1)" in error.value.__notes__
    down.clear()
    _, rewards, *_, infos = env.step([0, 0, 0])  # the actions of before were taken
    assert infos["action"].tolist() == [20, 20, 20]
    assert infos["env_id"].tolist() == [0, 1, 2]
    _, rewards, *_, infos = env.step([0, 0, 0])
    assert infos["action"].tolist() == [0, 0, 0]
    assert len({*rewards.tolist()}) == 1


def test_an_action_that_is_none_can_be_sent_again(made):
    env = made("public_goods", 2)
    env.reset(seed=1)
    env.send([99, 3])
    with pytest.raises(IllegalAction):
        env.recv()
    env.send([4], [0])
    *_, infos = env.recv()
    assert infos["action"].tolist() == [4, 3]


def test_what_cannot_be_sent_or_received(made):
    env = made("public_goods", 3, batch_size=2)
    with pytest.raises(NotReady, match="recv waits for 2 copies, and only \\[\\] were sent"):
        env.recv()
    env.async_reset(seed=1)
    with pytest.raises(NotReady, match="call recv"):
        env.async_reset()
    with pytest.raises(NotReady, match=r"copies \[0, 1, 2\] are not received yet"):
        env.send([1, 1, 1])
    *_, infos = env.recv()
    ready = infos["env_id"].tolist()
    for actions, copies in (([1], ready), ([1, 1], [0, 3])):
        with pytest.raises(BadParameter, match="an action for each copy, from 0 to 2"):
            env.send(actions, copies)
    with pytest.raises(BadParameter, match="as many seeds"):
        made("public_goods", 3).reset(seed=[1])
    with pytest.raises(BadParameter, match="no options"):
        made("public_goods", 3).reset(options={"chance": {}})
    with pytest.raises(BadParameter, match="batch_size must be an integer of at least 1"):
        made("public_goods", 3, batch_size=4)
