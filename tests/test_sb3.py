"""Stable-Baselines3 and sb3-contrib train at our tables; what they trained sits down at others."""

import asyncio
import json
import pickle
import zipfile

import numpy as np
import pytest
import torch
from gymnasium import spaces
from playing import each_row
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

import llm_games as lg
from llm_games.errors import BadParameter, IllegalAction
from llm_games.noise import Noise
from llm_games.view import Sight
from llm_games.wrappers.learned import LearnedPolicy
from llm_games.wrappers.policy import RandomPolicy
from llm_games.wrappers.sb3 import SB3VecEnv, load_player, save_player
from llm_games.wrappers.single_agent import SingleAgentEnv
from llm_games.wrappers.team_env import TeamVectorEnv
from llm_games.wrappers.vector_env import GameVectorEnv


def single(game="public_goods", **settings):
    return SingleAgentEnv(game, **settings)


def untrained(algorithm, env, policy="MlpPolicy", **settings):
    small = {"policy_kwargs": {"net_arch": [8]}, "device": "cpu", "seed": 3}
    if algorithm is RecurrentPPO:
        small["policy_kwargs"] |= {"lstm_hidden_size": 8}
    if algorithm not in (DQN, SAC):
        small |= {"n_steps": 8, "batch_size": 8, "n_epochs": 1}
    return algorithm(policy, env, **{**small, **settings})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    env = single(players=3, rounds=4)
    folder = tmp_path_factory.mktemp("players")
    return save_player(untrained(PPO, env), env, folder / "goods")


LEARNERS = {
    "ppo": (PPO, "MlpPolicy", "public_goods", "index"),
    "dqn": (DQN, "MlpPolicy", "divide_dollar", "index"),
    "sac": (SAC, "MlpPolicy", "sealed_bid_auction", "unit"),
    "masked": (MaskablePPO, "MultiInputPolicy", "battle_royale", "index"),
    "plans": (MaskablePPO, "MultiInputPolicy", "pirate_game", "index"),
    "recurrent": (RecurrentPPO, "MlpLstmPolicy", "water_allocation", "index"),
}


@each_row("alphabet", [None, 2])
@each_row("actions", ["index", "unit"])
def test_learners_train_where_players_talk(actions, alphabet):
    """At one table and at many, with symbols to say or without words."""
    game = lg.rules("beauty_contest", players=3, rounds=2, talk={"turns": 1, "alphabet": alphabet})
    masked = bool(alphabet) and actions == "index"
    algorithm, policy = (MaskablePPO, "MultiInputPolicy") if masked else (PPO, "MlpPolicy")
    vector = SB3VecEnv(GameVectorEnv(game, 2, actions=actions))
    for env in (single(game, actions=actions), vector):
        untrained(algorithm, env, policy).learn(16)
        assert masked == hasattr(env.observation_space, "spaces")


@each_row(("algorithm", "policy", "game", "actions"), LEARNERS.values(), ids=LEARNERS)
def test_a_saved_player_plays_as_its_model_did(algorithm, policy, game, actions, tmp_path):
    """Through the file, the name and a game of its own it does step by step what the model does."""
    env = single(game, actions=actions, opponents=lg.player("rational"))
    model = untrained(algorithm, env, policy)
    name = f"sb3:{save_player(model, env, tmp_path / 'player.zip')}"
    env.reset(seed=5)
    seats = [lg.player("rational", game)] * env.game.players
    seats[0] = lg.player(name, game)
    episode = lg.play(game, seats, seed=5)
    decided = [s.decisions[0].action for s in episode.steps if 0 in s.decisions]
    observation, _ = env.reset(seed=5)
    taken, state, paid, done, first = [], None, 0.0, False, True
    while not done:
        masked = {"action_masks": env.action_masks()} if algorithm is MaskablePPO else {}
        start = np.array([first])
        action, state = model.predict(observation, state, start, deterministic=True, **masked)
        observation, reward, ended, cut, _ = env.step(action)
        taken.append(action)
        paid, done, first = paid + reward, ended or cut, False
    assert paid == pytest.approx(episode.payoffs[0])
    assert decided
    assert len(taken) >= len(decided)


async def in_a_batch(policy, game, seeds, steps):
    """Play all seats by a policy at many tables at once; return what each step brought."""
    where = np.ones((game.players, len(seeds)), bool)
    own = [[Noise(seed).of("seat", seat).seed() for seed in seeds] for seat in range(game.players)]
    memory = policy.start_batch(game, where, np.array(own))
    state, outcomes = game.reset(Noise(np.array(seeds)), (len(seeds),)), []
    for _ in range(steps):
        decided, memory = await policy.decide_batch(Sight(game, state), game.asked(state), memory)
        state, outcome = game.step(state, decided.actions)
        outcomes.append(outcome)
    return outcomes


DRAWING = [name for name in LEARNERS if name not in ("dqn", "sac")]  # by a distribution


@each_row(
    ("name", "deterministic"),
    [*((name, True) for name in LEARNERS), *((name, False) for name in DRAWING)],
)
def test_a_batch_is_a_loop(name, deterministic):
    algorithm, policy, game, actions = LEARNERS[name]
    env = single(game, actions=actions)
    model = untrained(algorithm, env, policy)
    player = LearnedPolicy(model, actions=actions, deterministic=deterministic)
    seeds = [7, 2**62, 9]
    played = asyncio.run(in_a_batch(player, env.game, seeds, 8))
    for table, seed in enumerate(seeds):
        alone = lg.play(env.game, [player] * env.game.players, seed, max_steps=8)
        for one, all_tables in zip(alone.steps, played, strict=False):
            for name, value in one.outcome.record.items():
                np.testing.assert_array_equal(all_tables.record[name][..., table], value)
            np.testing.assert_array_equal(all_tables.rewards[:, table], one.outcome.rewards)


def test_normalised_observations_are_normalised_at_the_table(tmp_path):
    venv = VecNormalize(DummyVecEnv([lambda: single("battle_royale", players=4)]), clip_obs=2.0)
    model = untrained(MaskablePPO, venv, "MultiInputPolicy")
    model.learn(64)
    player = load_player(save_player(model, venv, tmp_path / "p.zip"))
    env = single("battle_royale", players=4)
    seen, _ = env.reset(seed=1)
    rows = {key: value[None] for key, value in seen.items()}
    view = env.view("player_0")
    own = player.start(env.game, 0, 1).codec
    shown = player._observation(view.numbers[None], own.mask(view)[None])
    wanted = venv.normalize_obs(rows)
    assert set(shown) == set(wanted)
    for key, value in wanted.items():
        np.testing.assert_array_equal(shown[key], value)


def test_a_player_that_draws_hangs_on_its_seed_alone(tmp_path):
    for algorithm, actions, policy in (
        (PPO, "index", "MlpPolicy"),
        (PPO, "unit", "MlpPolicy"),
        (RecurrentPPO, "index", "MlpLstmPolicy"),
    ):
        env = single("public_goods", players=3, rounds=10, actions=actions)
        path = save_player(untrained(algorithm, env, policy), env, tmp_path / "draws.zip")
        player = lg.player(f"sb3:{path}", env.game, deterministic=False)
        first, again, other = (
            [s.outcome.record["actions"].tolist() for s in lg.play(env.game, [player] * 3, s).steps]
            for s in (1, 1, 2)
        )
        assert first == again
        assert first != other
        assert len({tuple(row) for row in first}) > 5
        assert any(len({*row}) > 1 for row in first), "seats have chance of their own"


def test_a_run_seats_a_saved_player_by_its_name(saved, tmp_path):
    game = {"game": "public_goods", "params": {"players": 3, "rounds": 4}}
    seats = {"seats": [f"sb3:{saved}", "random", "random"]}
    run = lg.run({"title": "t", "episodes": 2, "games": [game | seats]}, db=tmp_path / "run.db")
    assert [row["seat"] for row in run.rows("decisions")].count(0) == 8


def test_a_policy_in_mid_episode_goes_through_pickle(saved):
    player = load_player(saved)
    env = single(players=3, rounds=4, opponents=player)
    env.reset(seed=1)
    env.step(3)
    other = pickle.loads(pickle.dumps(env))
    for _ in range(3):
        ours, theirs = env.step(5), other.step(5)
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert ours[1:] == theirs[1:]


@each_row(
    ("game", "parameters", "fault"),
    [
        (
            "divide_dollar",
            {"players": 3},
            "public_goods with 3 players, not for divide_dollar with 3",
        ),
        ("public_goods", {"players": 4}, "not for public_goods with 4"),
    ],
)
def test_a_player_of_another_game_is_not_seated(saved, game, parameters, fault):
    with pytest.raises(BadParameter, match=fault):
        lg.player(f"sb3:{saved}", lg.rules(game, **parameters))


def changed(saved, path, **about):
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "player.json":
                notes = json.loads(content)
                trained = notes["trained"] | about.pop("trained", {})
                content = json.dumps({**notes, **about, "trained": trained})
            new.writestr(name, content)
    return f"sb3:{path}"


def test_a_player_of_another_version_is_not_seated(saved, tmp_path):
    rules = lg.rules("public_goods", players=3)
    for about, fault in (
        ({"trained": {"edition": 1}}, "edition 1 of public_goods's rules, which are now 3; train"),
        ({"trained": {"actions": "unit"}}, "give LearnedPolicy its actions"),
        ({"format": 99}, "saved by llm-games"),
        ({"format": "new"}, "player.json cannot be read"),
        ({"trained": {"weather": "fog"}}, "player.json cannot be read"),
        ({"trained": {"spread": {"": 3}}}, "player.json cannot be read"),
        ({"trained": {"columns": ["fog"]}}, r"other observations .* \['fog'\] are missing"),
        ({"algorithm": "stable_baselines3:Nothing"}, "cannot be loaded: UnknownName"),
        ({"algorithm": "stable_baselines3:DQN"}, "cannot be loaded"),
    ):
        with pytest.raises(BadParameter, match=fault):
            lg.player(changed(saved, tmp_path / "other.zip", **about), rules)


def test_files_that_are_no_players_are_named(saved, tmp_path):
    with pytest.raises(BadParameter, match="there is no file"):
        lg.player(f"sb3:{tmp_path / 'nothing.zip'}")
    cut, plain = tmp_path / "cut.zip", tmp_path / "plain.zip"
    cut.write_bytes(saved.read_bytes()[:2000])
    with pytest.raises(BadParameter, match="cannot be read"):
        lg.player(f"sb3:{cut}")
    PPO.load(saved).save(plain)
    with pytest.raises(BadParameter, match="save it by"):
        lg.player(f"sb3:{plain}")
    with pytest.raises(BadParameter, match="'sb3' needs a value"):
        lg.player("sb3")
    with pytest.raises(BadParameter, match="takes deterministic, got determinstic"):
        lg.player(f"sb3:{saved}", determinstic=False)
    with pytest.raises(BadParameter, match="asks no model"):
        lg.player(f"sb3:{saved}", client={"base_url": "x"})


def test_weights_that_are_no_numbers_are_not_seated(saved):
    model = PPO.load(saved)
    with torch.no_grad():
        model.policy.action_net.bias[0] = float("nan")
    with pytest.raises(BadParameter, match=r"action_net\.bias"):
        LearnedPolicy(model)


def test_a_model_that_answers_nan_is_named_with_its_seat():
    class Broken:
        def predict(self, observation, deterministic):
            return np.full((len(observation), 1), np.nan, np.float32), None

    player = LearnedPolicy(Broken(), actions="unit", name="broken")
    with pytest.raises(IllegalAction, match=r"player_1: .*nan"):
        lg.play("public_goods", [lg.player("random"), player, player], players=3)


@each_row("said", [3, [], None])
@each_row("copies", [None, 2])
def test_a_model_that_does_not_answer_each_observation_is_named(said, copies):
    class Mute:
        def predict(self, observation, deterministic):
            return said, None

    game, player = lg.rules("public_goods", players=3), LearnedPolicy(Mute(), name="mute")
    env = (
        lg.learners(game, copies, opponents=player)
        if copies
        else lg.learner(game, opponents=player)
    )
    env.reset(seed=1)
    with pytest.raises(BadParameter, match="mute predicts actions of shape"):
        env.step(np.zeros(copies, int) if copies else 0)


def test_what_another_environment_trained_is_not_saved(tmp_path):
    model = untrained(PPO, single("public_goods"))
    with pytest.raises(BadParameter, match="was trained for"):
        save_player(model, single("battle_royale"), tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()
    with pytest.raises(BadParameter, match="model must be one of Stable-Baselines3's"):
        save_player("ppo", single("battle_royale"), tmp_path / "x.zip")
    with pytest.raises(BadParameter, match="no environment of a game"):
        save_player(model, DummyVecEnv([lambda: __import__("gymnasium").make("CartPole-v1")]), "x")


# -- the vector environment ------------------------------------------------------------------


def copies(game="public_goods", count=4, **settings):
    return SB3VecEnv(GameVectorEnv(game, count, opponents=RandomPolicy(), **settings))


def alike(ours, loop, steps):
    """Step both with the same actions, and compare all. Return how often copies ended."""
    ours.seed(4), loop.seed(4)
    assert same(ours.reset(), loop.reset())
    rng, ended, count = np.random.default_rng(0), 0, ours.num_envs
    for _ in range(steps):
        if isinstance(ours.action_space, spaces.Discrete):
            masks = np.stack(ours.env_method("action_masks"))
            np.testing.assert_array_equal(masks, np.stack(loop.env_method("action_masks")))
            actions = (rng.random(masks.shape) * masks).argmax(axis=1)
        else:
            actions = rng.uniform(-1, 1, (count, *ours.action_space.shape)).astype(np.float32)
        mine, theirs = ours.step(actions), loop.step(actions)
        assert same(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[1], theirs[1])
        np.testing.assert_array_equal(mine[2], theirs[2])
        for own, other in zip(mine[3], theirs[3], strict=True):
            assert same(own.pop("terminal_observation", 0), other.pop("terminal_observation", 0))
            if "TimeLimit.truncated" not in own:
                assert not other.pop("TimeLimit.truncated")
            assert set(own) == set(other)
            assert all(same(own[key], other[key]) for key in own)
        ended += mine[2].sum()
    return ended


@each_row(
    ("game", "settings"),
    [
        ("public_goods", {"rounds": 3}),
        ("battle_royale", {"players": 4}),
        ("pirate_game", {"players": 4, "seat": 3}),
        ("sealed_bid_auction", {"rounds": 3, "actions": "unit", "normalize": True}),
        ("diners_dilemma", {"max_cycles": 2}),
        ("bertrand_competition", {"max_episode_steps": 3}),
        ("battle_royale", {"players": 4, "masks": "info"}),
    ],
)
def test_copies_are_what_dummy_vec_env_makes_of_single_ones(game, settings):
    """The same observations, rewards, ends and infos, episode after episode."""
    loop = DummyVecEnv([lambda: single(game, opponents=RandomPolicy(), **settings)] * 3)
    assert alike(copies(game, 3, **settings), loop, 24) >= 3


@each_row("name", ["masked", "plans", "recurrent"])
def test_learned_opponents_of_copies_are_those_of_single_ones(name):
    """Where some tables wait, end and start again, each seat keeps its own chance and state."""
    algorithm, policy, game, actions = LEARNERS[name]
    model = untrained(algorithm, single(game, players=4), policy)
    settings = {"players": 4, "seat": "rotate", "max_cycles": 5}
    settings["opponents"] = LearnedPolicy(model, actions=actions, deterministic=False)
    loop = DummyVecEnv([lambda: single(game, **settings)] * 3)
    assert alike(SB3VecEnv(GameVectorEnv(game, 3, **settings)), loop, 20) >= 3


def same(one, other):
    if isinstance(one, dict):
        return set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    return np.array_equal(one, other)


@each_row(("algorithm", "policy", "game", "actions"), LEARNERS.values(), ids=LEARNERS)
def test_learners_learn_in_copies(algorithm, policy, game, actions):
    """Every kind of algorithm trains, monitored and scaled; equal seeds give equal weights."""
    weights = []
    for _ in range(2):
        venv = VecMonitor(copies(game, 4, actions=actions, max_cycles=3))
        venv = VecNormalize(venv, norm_obs=algorithm is not MaskablePPO)
        model = untrained(algorithm, venv, policy)
        model.learn(96 if algorithm in (DQN, SAC) else 64)
        assert model.ep_info_buffer, "episodes ended and were seen by the monitor"
        weights.append(model.policy.state_dict())
    for key, value in weights[0].items():
        assert torch.equal(value, weights[1][key]), key
        assert value.isfinite().all()


def test_one_model_learns_in_all_seats(tmp_path):
    rows = SB3VecEnv(TeamVectorEnv("public_goods", 2, players=3, rounds=2).rows())
    model = untrained(PPO, VecMonitor(rows))
    model.learn(48)
    assert {info["l"] for info in model.ep_info_buffer} == {2}
    player = lg.player(f"sb3:{save_player(model, model.get_env(), tmp_path / 'p')}")
    lg.play("public_goods", [player] * 3, players=3, rounds=2)


def test_what_copies_do_not_take():
    venv = copies(count=2, actions="unit")
    venv.reset()
    with pytest.raises(IllegalAction, match=r"player_0 at table 1: \[nan\]"):
        venv.step(np.array([[0], [np.nan]], np.float32))
    with pytest.raises(IllegalAction, match="at table 0"):
        venv.step(np.array([[1.5], [0]], np.float32))
    _, rewards, _, _ = venv.step(np.zeros((2, 1), np.float32))
    assert (rewards > 0).all(), "the copies play on"
    with pytest.raises(BadParameter, match="set it for all"):
        venv.set_attr("max_cycles", 3, indices=0)
    with pytest.raises(BadParameter, match="takes no texts"):
        SB3VecEnv(GameVectorEnv("public_goods", 2, obs_mode="both"))
    with pytest.raises(BadParameter, match="takes copies of a game"):
        SB3VecEnv(single())
