"""Every game, in both forms and every mode, keeps the contracts of PettingZoo and Gymnasium."""

import pickle
import re
import subprocess
import sys
import warnings
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import gymnasium
import numpy as np
import pettingzoo
import pettingzoo.test as pt
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.utils import parallel_to_aec
from playing import CASE_IDS, CASES, NAMES, SETTINGS, SIMULTANEOUS, SMALL, each_row, sampled

import llm_games
from llm_games.errors import BadParameter, IllegalAction, NotReady, UnknownName
from llm_games.wrappers.clients.base import ClientError
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.policy import RandomPolicy
from llm_games.wrappers.single_agent import SingleAgentEnv

# PettingZoo's tests warn about any observation that is a dict, any action that is a vector, and
# zeros, which are all that a dead player sees; nothing else may warn.
KNOWN = "(Observation|Action) space for each agent probably|Observation is not a NumPy array|"
KNOWN += "Observation numpy array is all zeros"


@pytest.fixture(autouse=True)
def _only_known_warnings():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", KNOWN)
        yield


every = pytest.mark.parametrize(("name", "more", "mode", "actions"), CASES, ids=CASE_IDS)
kinds = pytest.mark.parametrize(
    ("name", "more", "mode", "actions"), CASES[: len(SETTINGS)], ids=CASE_IDS[: len(SETTINGS)]
)


registered = pytest.mark.skipif(
    not hasattr(pettingzoo, "make"), reason="PettingZoo's registry came with 1.27"
)


def unlimited(more):
    return not {"unbounded", "carry", "include"}.isdisjoint(more.values())


@pytest.mark.crossing
@every
def test_pettingzoo_api(name, more, mode, actions, capsys):
    settings = {"obs_mode": mode, "actions": actions, **more}
    cycles = 5 if actions == "text" else 30  # random texts are of up to 32,768 characters
    with warnings.catch_warnings():
        if unlimited(more):
            warnings.filterwarnings("ignore", "Agent's m")
        parallel = llm_games.make(name, form="parallel", **settings)
        plays_0 = actions != "rules" or parallel.game.bounds()[0] <= 0  # as PettingZoo's test does
        if plays_0:
            pt.api_test(llm_games.make(name, form="aec", **settings), num_cycles=cycles)
        if not hasattr(pettingzoo, "make") and actions == "rules" and parallel.game.bounds()[0] < 0:
            pytest.skip("PettingZoo before 1.27 draws from masks as if actions began at 0")
        pt.parallel_api_test(parallel, num_cycles=cycles)
        if not parallel.game.turns and plays_0:
            pt.api_test(parallel_to_aec(parallel), num_cycles=cycles)
    assert "Passed" in capsys.readouterr().out


@pytest.mark.crossing
@kinds
def test_pettingzoo_seeds_state_and_rendering(name, more, mode, actions, capsys):
    settings = {"obs_mode": mode, "actions": actions, **more}

    def aec(**k):
        return llm_games.make(name, form="aec", **settings, **k)

    def parallel(**k):
        return llm_games.make(name, form="parallel", **settings, **k)

    if unlimited(more):
        warnings.filterwarnings("ignore", "Environment's m")
    pt.seed_test(aec, num_cycles=50)
    pt.render_test(aec)
    pt.render_test(lambda **k: parallel_to_aec(parallel(**k)))
    if not parallel().game.turns:
        pt.parallel_seed_test(parallel, num_cycles=50)
        pt.state_test(aec(), parallel())


@each_row("name", SIMULTANEOUS)
def test_pettingzoo_max_cycles(name):
    more = {"rounds": 20} if llm_games.rules(name).length() == 1 else {}
    module = getattr(llm_games.envs, f"{name}_v0")
    makes = {kind: partial(getattr(module, kind), **more) for kind in ("env", "parallel_env")}
    pt.max_cycles_test(SimpleNamespace(**makes))


@pytest.mark.crossing
@every
def test_gymnasium_and_sb3(name, more, mode, actions, capsys):
    from stable_baselines3.common.env_checker import check_env as sb3_check_env

    settings = {"obs_mode": mode, "actions": actions, **more}
    env = SingleAgentEnv(name, render_mode="ansi", max_cycles=50, **settings)
    with warnings.catch_warnings():
        # an action space without limits, or of integers, is what the rules say here
        warnings.filterwarnings("ignore", ".*(normalize|Box action space|not 'float32'|dtype)")
        if unlimited(more):
            warnings.filterwarnings("ignore", ".*(infinity|inf)")
        check_env(env, skip_render_check=True)
        if mode == "numeric" and actions in ("index", "unit"):
            sb3_check_env(env)


@pytest.mark.crossing
@kinds
def test_a_whole_episode(name, more, mode, actions):
    """Observations lie in their spaces, are new objects, and depend on the seed alone."""
    histories = []
    for _ in range(2):
        env = llm_games.make(name, form="parallel", obs_mode=mode, actions="rules", **more)
        history, seen = [], []
        observations, _ = env.reset(seed=7)
        rng = np.random.default_rng(7)
        for _ in range(60):
            for agent, observation in observations.items():
                assert env.observation_space(agent).contains(observation), (agent, observation)
            parts = [
                part
                for o in observations.values()
                for part in (o.values() if isinstance(o, dict) else [o])
                if isinstance(part, np.ndarray)
            ]
            for i, part in enumerate(parts):
                assert not any(np.shares_memory(part, other) for other in parts[:i] + seen)
            seen = parts
            history.append(pickle.dumps(observations))
            if not env.agents:
                break
            actions = {}
            for agent in env.agents:
                view = env.view(agent)
                question = view.question
                actions[agent] = to_space(env, agent, question and sampled(question, rng))
            observations, rewards, *_ = env.step(actions)
            history.append(pickle.dumps(rewards))
        histories.append(history)
    assert histories[0] == histories[1]


def to_space(env, agent, action):
    if action is None:
        return env.action_space(agent).sample()
    if isinstance(env.action_space(agent), gymnasium.spaces.MultiDiscrete):
        plan = action if isinstance(action, tuple) else (0,) * env.game.players
        return np.array([*plan, 0 if isinstance(action, tuple) else action])
    return action / env.game.unit if env.game.unit > 1 else action


@pytest.mark.crossing
@pytest.mark.parametrize("form", ["parallel", "aec"])
@pytest.mark.parametrize("name", NAMES)
def test_pickled_in_the_middle_it_goes_on_alike(name, form):
    small = SMALL[name]
    env = llm_games.make(name, form=form, obs_mode="both", actions="rules", **small)
    env.reset(seed=3)
    rng = np.random.default_rng(3)
    advance(env, form, rng, 5)
    copy = pickle.loads(pickle.dumps(env))
    results = [advance(e, form, np.random.default_rng(1), 30) for e in (env, copy)]
    assert results[0] == results[1]


def advance(env, form, rng, steps):
    log = []
    for _ in range(steps):
        if not env.agents:
            break
        if form == "parallel":
            actions = {a: random_action(env, a, rng) for a in env.agents}
            log.append(pickle.dumps(env.step(actions)))
        else:
            _, _, terminated, truncated, _ = env.last()
            agent = env.agent_selection
            env.step(None if terminated or truncated else random_action(env, agent, rng))
            log.append((agent, dict(env.rewards)))
    return log


def random_action(env, agent, rng):
    question = env.view(agent).question
    return to_space(env, agent, sampled(question, rng)) if question else None


@registered
@pytest.mark.parametrize("name", NAMES)
def test_both_registries_know_it(name):
    parallel = pettingzoo.make("parallel", f"llm_games/{name}-v0", obs_mode="numeric")
    assert str(parallel) == f"{name}_v0"
    aec = pettingzoo.make("aec", f"llm_games/{name}_v0")
    aec.reset(seed=1)
    assert aec.agent_selection in aec.agents
    camel = "".join(word.capitalize() for word in name.split("_"))
    env = gymnasium.make(f"llm_games/{camel}-v0")
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)


@each_row("name", NAMES)
def test_the_native_form_and_modes_of_each_seat(name):
    env = llm_games.make(name, obs_mode={"player_1": "text"})
    turns = env.game.turns
    assert isinstance(env, pettingzoo.AECEnv if turns else pettingzoo.ParallelEnv)
    env.reset(seed=1)
    texts = [a for a in env.agents if "text" in str(env.observation_space(a))]
    assert texts == ["player_1"]
    assert env.observe_text("player_0")


def test_a_table_to_look_at(capsys):
    env = llm_games.make("public_goods", players=2, render_mode="ansi")
    env.reset(seed=1)
    env.step({"player_0": 20, "player_1": 5})
    assert env.render().splitlines() == [
        "Public goods game: round 1 of 20, pot 25",
        "seat      endowment  contributed  tokens after",
        "--------  ---------  -----------  ------------",
        "player_0         20           20         25.00",
        "player_1         20            5         40.00",
    ]
    env = llm_games.make("public_goods", players=2, render_mode="human")
    env.reset(seed=1)
    assert env.render() is None
    assert "Public goods game" in capsys.readouterr().out


def step_parallel(action):
    env = llm_games.make("public_goods", players=2)
    env.reset(seed=1)
    before = env.table.state
    try:
        env.step({"player_0": 3, "player_1": action})
    finally:
        if sys.exc_info()[0]:
            assert env.table.state is before  # nothing happened
    return env


@each_row("action", [21, -1, 3.5, "3", [3, 4], np.array([1, 2]), True, float("nan")])
def test_an_action_outside_its_space_is_refused(action):
    with pytest.raises(IllegalAction, match=r"player_1: .* is not an integer from 0 to 20"):
        step_parallel(action)


def test_no_answer_gets_the_declared_move_and_is_told():
    env = llm_games.make("public_goods", players=2)
    env.reset(seed=1)
    _, rewards, _, _, infos = env.step({"player_0": 20, "player_1": None})
    assert infos["player_1"] == {"asked": True, "broke": True}
    assert infos["player_0"]["broke"] is False
    assert rewards == {"player_0": 20.0, "player_1": 40.0}


def test_an_illegal_action_in_the_space():
    settings = {"players": 3, "rounds": 2, "seed": 43, "actions": "rules"}
    env = llm_games.make("sealed_bid_auction", **settings)
    env.reset(seed=1)
    assert env.game.told(env.table.state, 0)["own"] < 200
    *_, infos = env.step({"player_0": 200, "player_1": 0, "player_2": 0})
    assert infos["player_0"]["broke"]
    env = llm_games.make("sealed_bid_auction", on_illegal="raise", **settings)
    env.reset(seed=1)
    with pytest.raises(IllegalAction, match="player_0: 200 is against the rules now; legal is"):
        env.step({"player_0": 200, "player_1": 0, "player_2": 0})


@each_row(
    ("settings", "error", "message"),
    [
        ({"name": "public_good"}, UnknownName, "did you mean 'public_goods'"),
        ({"name": "chess"}, UnknownName, "known: bargaining, battle_royale"),
        ({"player": 3}, UnknownName, "did you mean 'players'"),
        ({"players": 1}, BadParameter, "an integer of at least 2 and at most 100000, got 1"),
        ({"players": 2.0}, BadParameter, "players must be an integer"),
        ({"players": 10**9}, BadParameter, "at most 100000, got 1000000000"),
        ({"ratio": 0.1 + 0.2}, BadParameter, 'write "2/3", "0.6"'),
        ({"ratio": "-1"}, BadParameter, "ratio must be a ratio of at least 0"),
        ({"obs_mode": "words"}, UnknownName, "known: both, numeric, text"),
        ({"obs_mode": 3}, BadParameter, "'both'), or one by agent, got 3"),
        ({"actions": "shares"}, UnknownName, "known: index, least, rules, text, unit"),
        ({"reask": -1}, BadParameter, "reask must be an integer of at least 0"),
        ({"obs_mode": {"player_99": "text"}}, UnknownName, "there is no agent 'player_99'"),
        ({"form": "turns"}, BadParameter, 'form must be "parallel" or "aec"'),
        ({"prompts": "v9"}, UnknownName, "wording of public_goods"),
        ({"render_mode": "rgb"}, BadParameter, "render_mode must be one of None, 'ansi', 'human'"),
        ({"max_cycles": 0}, BadParameter, "max_cycles must be an integer of at least 1"),
        ({"on_illegal": "clip"}, BadParameter, "on_illegal must be one of 'fallback', 'raise'"),
        ({"preset": "x"}, UnknownName, "preset of public_goods"),
    ],
)
def test_bad_arguments_name_the_way_out(settings, error, message):
    with pytest.raises(error, match=re.escape(message)):
        llm_games.make(**{"name": "public_goods"} | settings)


def test_stepping_out_of_turn():
    env = llm_games.make("public_goods", players=2, rounds=1)
    for call in (lambda: env.step({}), lambda: env.view("player_0"), lambda: env.state()):
        with pytest.raises(NotReady, match=r"call reset\(\) first"):
            call()
    env.reset(seed=1)
    with pytest.raises(BadParameter, match=r"options must be such as .* got \[1\]"):
        env.reset(options=[1])
    with pytest.raises(IllegalAction, match="actions must be a dict, one for"):
        env.step(None)
    with pytest.raises(IllegalAction, match="player_1 has to move"):
        env.step({"player_0": 1})
    with pytest.raises(IllegalAction, match="'player_7' has no move"):
        env.step({"player_0": 1, "player_1": 1, "player_7": 1})
    env.step({"player_0": 1, "player_1": 1})
    assert env.agents == []
    assert env.step({}) == ({}, {}, {}, {}, {})
    with pytest.raises(NotReady, match="is over"):
        env.step({"player_0": 1, "player_1": 1})
    sequential = llm_games.make("public_goods", form="aec", players=2, rounds=1)
    with pytest.raises(NotReady, match=r"call reset\(\) first"):
        sequential.step(1)
    sequential.reset(seed=1)
    for action in (1, 1, None, None):
        sequential.step(action)
    with pytest.raises(NotReady, match="is over"):
        sequential.step(1)


def test_void_run_ends_the_run():
    env = llm_games.make("public_goods", players=2, failed_reply="void_run")
    env.reset(seed=1)
    _, rewards, terminations, _, _ = env.step({"player_0": 20, "player_1": None})
    assert rewards == {"player_0": 0.0, "player_1": 0.0}
    assert all(terminations.values())
    assert env.table.state.void


def test_moves_of_a_step_under_way_are_hidden():
    env = llm_games.make("public_goods", form="aec", players=3, obs_mode="both")
    env.reset(seed=1)
    before = pickle.dumps(env.observe("player_2"))
    env.step(20)
    env.step(7)
    assert pickle.dumps(env.observe("player_2")) == before


def test_single_agent_view():
    opponents = [RandomPolicy()] * 3
    env = SingleAgentEnv("battle_royale", seat=2, opponents=opponents, players=4)
    _, info = env.reset(seed=5)
    assert info == {"asked": True, "broke": False, "payoff": 0.0, "seat": 2}
    assert env.action_masks().shape == (5,)
    done = False
    while not done:
        action = int(np.flatnonzero(env.action_masks())[-1])
        _, reward, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
    assert reward in (0.0, 1.0)
    with pytest.raises(NotReady, match="is over for the learner"):
        env.step(0)
    with pytest.raises(BadParameter, match="opponents must be one policy or 3"):
        SingleAgentEnv("battle_royale", opponents=opponents[:2], players=4)
    with pytest.raises(BadParameter, match="seat must be an integer of at least 0 and at most 3"):
        SingleAgentEnv("battle_royale", seat=4, players=4)


LIGHT = """
import sys, llm_games
heavy = {"torch", "openai", "transformers", "stable_baselines3", "matplotlib"}
heavy |= {"numpy", "gymnasium", "pettingzoo"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
NAMES = """
import llm_games
llm_games.register("tiny_goods", "llm_games.games.public_goods.rules:PublicGoods")
import gymnasium, pettingzoo
llm_games.register("more_goods", "llm_games.games.public_goods.rules:PublicGoods")
for name in ("PublicGoods", "TinyGoods", "MoreGoods"):
    gymnasium.spec(f"llm_games/{name}-v0")
for name in ("public_goods", "tiny_goods", "more_goods"):
    pettingzoo.spec("aec", f"llm_games/{name}-v0")
assert len(llm_games.list_games()) >= 8
"""


@registered
@pytest.mark.parametrize("first", [LIGHT, "import gymnasium, pettingzoo"], ids=["light", "heavy"])
def test_the_import_loads_no_library_and_registers_before_and_after_one(first):
    command = [sys.executable, "-W", "error", "-c", first + NAMES]
    subprocess.run(command, check=True)


@registered
def test_a_game_of_ones_own():
    from llm_games.game_rooms import ROOMS

    llm_games.register("tiny_goods", "llm_games.games.public_goods.rules:PublicGoods")
    try:
        assert str(pettingzoo.make("parallel", "llm_games/tiny_goods-v0"))
        llm_games.register("tiny_goods", "llm_games.games.public_goods.rules:PublicGoods")
        with pytest.raises(BadParameter, match="'public_goods' is in the room"):
            llm_games.register("public_goods", "mine")
    finally:
        del ROOMS["tiny_goods"]
    assert isinstance(llm_games.envs.public_goods_v0, SimpleNamespace)


def test_an_installed_package_with_a_name_of_ours_is_left_out(monkeypatch):
    from llm_games import game_rooms as rooms

    ours, dist = dict(rooms.ROOMS), SimpleNamespace(name="their-games")
    points = [SimpleNamespace(name=n, value="their", dist=dist) for n in ("public_goods", "new")]
    monkeypatch.setattr(rooms, "ROOMS", dict(ours))
    monkeypatch.setattr(rooms.metadata, "entry_points", lambda group: points)
    with pytest.warns(UserWarning, match="their-games is left out: the game 'public_goods'"):
        rooms.find("llm_games.games", "llm_games.baselines.games", "llm_games.games")
    assert ours | {"new": rooms.Room("their", "their")} == rooms.ROOMS


@each_row("form", ["parallel", "aec"])
def test_a_refused_action_can_be_given_again(form):
    settings = {"players": 2, "form": form, "actions": "rules", "on_illegal": "raise"}
    env = llm_games.make("sealed_bid_auction", **settings)
    env.reset(seed=1, options={"chance": {"valuations": [[9, 9]]}})

    def act(bid):
        env.step(dict.fromkeys(env.agents, bid) if form == "parallel" else bid)

    with pytest.raises(IllegalAction, match="player_0: 200 is against the rules now"):
        act(200)
    for _ in range(1 if form == "parallel" else 2):
        act(0)
    assert int(env.table.state.round) == 1


def test_what_a_reply_came_to_is_of_this_step_and_episode():
    env = llm_games.make("divide_dollar", players=2, actions="text", reask=1)
    env.reset(seed=1)
    said = dict.fromkeys(env.agents, '{"bid_amount": 3}')
    assert env.step(said)[4]["player_0"]["played"] == 3
    infos = env.step(said | {"player_0": "no"})[4]
    assert (infos["player_0"]["outcome"], infos["player_1"]["outcome"]) == ("unparsable", "valid")
    env.step(said)
    assert env.reset(seed=2)[1]["player_0"] == {"asked": True, "broke": False}


@each_row("actions", ["index", "text"])
def test_a_learner_that_was_shot_before_its_first_turn_is_done(actions):
    rational = llm_games.player("rational")
    env = SingleAgentEnv("battle_royale", players=3, seat=2, opponents=rational, actions=actions)
    env.reset(seed=0)
    assert not env.table.asked or 2 not in env.table.asked
    assert env.step(0 if actions == "index" else "shoot")[2]


@each_row("fails_at", range(1, 5))
def test_a_call_that_fails_can_be_asked_again_by_the_next_step(fails_at):
    """A learner's game with a model, in which one call brings no completion, and without it."""

    def played(fails_at):
        asked, seen = [], []

        def script(request):
            asked.append((request.who, request.seed, tuple(map(str, request.messages))))
            if len(asked) == fails_at:
                raise ClientError("gone")
            return f'{{"bid_amount": {request.seed % 50}}}'

        model = llm_games.LLMPolicy(ScriptedClient(script))
        env = SingleAgentEnv(
            "divide_dollar", opponents=[model, RandomPolicy()], players=3, rounds=4
        )
        env.reset(seed=3)
        for round in range(4):
            with suppress(ClientError):
                seen.append(env.step(10 * round))
            if len(seen) == round:
                seen.append(env.step(99))  # the learner has moved already
        assert seen[-1][2]
        return asked, pickle.dumps(seen)

    asked, seen = played(0)
    again, same = played(fails_at)
    assert same == seen
    assert again.pop(fails_at) == asked[fails_at - 1]
    assert again == asked


def test_a_game_whose_start_fails_can_be_started_again():
    asked = []

    def script(request):
        asked.append(request.seed)
        if len(asked) == 2:
            raise ClientError("gone")
        return '{"target": null}'

    model = llm_games.LLMPolicy(ScriptedClient(script))
    env = SingleAgentEnv("battle_royale", players=3, seat=2, opponents=model)
    with pytest.raises(ClientError, match="gone"):
        env.reset(seed=1)
    with pytest.raises(NotReady, match="call reset"):
        env.step(0)
    env.reset(seed=1)
    assert asked[:2] == asked[2:4]
    assert env.table.asked == [2]
