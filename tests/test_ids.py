"""Programs that say an id and nothing else: what Gymnasium makes of it, and where masks stand."""

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.utils.env_checker import check_env
from playing import NAMES, SMALL, each_row

import llm_games as lg
from llm_games.errors import UnknownKeyword, UnknownName
from llm_games.wrappers.async_env import AsyncGames
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.team_env import TeamVectorEnv

TITLES = {name: "".join(map(str.capitalize, name.split("_"))) for name in NAMES}
SPOKEN = {"players": 3, "talk": {"turns": 1, "alphabet": 2, "speakers": "deciders"}}
MASKED = [
    ("battle_royale", {"players": 4}),
    ("pirate_game", {"players": 4, "gold": 9}),
    ("water_allocation", {"actions": "rules", "days": 4}),
    ("public_goods", {"rounds": 3, **SPOKEN}),
    ("pirate_game", SPOKEN),
]


@pytest.mark.crossing
@pytest.mark.parametrize("kind", ["", "Discrete", "Continuous"])
@pytest.mark.parametrize("name", NAMES)
def test_every_id_passes_gymnasiums_check_and_plain_ones_see_a_box(name, kind):
    env = gymnasium.make(f"llm_games/{TITLES[name]}{kind}-v0", **SMALL[name])
    check_env(env.unwrapped, skip_render_check=True)
    if kind:
        assert isinstance(env.observation_space, Box)
        assert (env.observation_space.low == -1).all()
        assert isinstance(env.action_space, Discrete if kind == "Discrete" else Box)
    copies = gymnasium.make_vec(f"llm_games/{TITLES[name]}{kind}-v0", 2, **SMALL[name])
    assert copies.single_observation_space == env.observation_space
    assert copies.single_action_space == env.action_space


@each_row("name", NAMES)
def test_a_keyword_that_is_none_is_refused_as_python_does(name):
    """Programs pass what they know, TorchRL its `frameskip`, and look for Python's words."""
    for door in (gymnasium.make, gymnasium.make_vec):
        with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'") as caught:
            door(f"llm_games/{TITLES[name]}-v0", frameskip=1)
        assert isinstance(caught.value, UnknownName)  # a KeyError, as before
        assert f"there is no parameter of {name} 'frameskip'" in str(caught.value)
    with pytest.raises(UnknownKeyword, match="did you mean 'players'"):
        lg.make(f"{name}-v0", player=3)


@each_row(
    "wrong",
    [
        lambda: lg.rules("public_goods", talk={"turn": 2}),
        lambda: lg.rules("public_goods", talk_turn=2),
        lambda: lg.LLMPolicy(ScriptedClient(["{}"]), temprature=1),
        lambda: lg.player("openai/gpt-4o", temprature=1),
        lambda: lg.learner("public_goods", max_steps=3),
        lambda: lg.learners("public_goods", max_steps=3),
        lambda: lg.play("public_goods", ["random"] * 2, player=2),
        lambda: TeamVectorEnv("public_goods", max_steps=3),
        lambda: AsyncGames("public_goods", 2, max_steps=3),
        lambda: lg.make("public_goods-v0", form="aec", max_steps=3),
        *[
            lambda form=form: pettingzoo.make(form, "llm_games/public_goods-v0", max_steps=3)
            for form in ("aec", "parallel")
            if hasattr(pettingzoo, "make")  # since 1.27
        ],
        lambda: lg.rollouts("public_goods", max_cycle=3),
    ],
)
def test_other_constructors_do_so_too(wrong):
    with pytest.raises(UnknownKeyword) as caught:
        wrong()
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, TypeError)


def beside(seen, infos):
    """Return an observation without its mask, and infos with it, one for each copy or agent."""
    if not isinstance(seen, dict) or "action_mask" not in seen:
        return seen, infos
    rest = {part: value for part, value in seen.items() if part != "action_mask"}
    mask = seen["action_mask"]
    more = {"_action_mask": np.ones(len(mask), np.bool_)} if mask.ndim > 1 else {}
    return rest.get("observation") if len(rest) == 1 else rest, {
        **infos,
        "action_mask": mask,
        **more,
    }


def same(first, second):
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        for key in first:
            same(first[key], second[key])
    elif isinstance(first, tuple) or (isinstance(first, np.ndarray) and first.dtype == object):
        assert len(first) == len(second)
        for a, b in zip(first, second, strict=True):
            same(a, b)
    else:
        assert np.array_equal(first, second)
        assert getattr(first, "dtype", None) == getattr(second, "dtype", None)


def legal(mask, rng):
    return (rng.random(mask.shape) * mask).argmax(axis=-1)


@each_row(("name", "more"), MASKED)
def test_masks_in_infos_are_those_beside_observations(name, more):
    usual, apart = (lg.learner(name, masks=m, **more) for m in ("observation", "info"))
    assert "action_mask" in usual.observation_space.spaces
    assert apart.observation_space == usual.observation_space["observation"]
    rng, done, seed = np.random.default_rng(1), True, 0
    for _ in range(25):
        if done:
            first, second, seed = usual.reset(seed=seed), apart.reset(seed=seed), seed + 1
        else:
            action = int(legal(usual.action_masks(), rng))
            first, second = usual.step(action), apart.step(action)
            assert first[1:-1] == second[1:-1]
        done = len(first) > 2 and (first[2] or first[3])
        same(beside(first[0], first[-1]), (second[0], second[-1]))
        assert np.array_equal(apart.action_masks(), second[-1]["action_mask"])


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize(("name", "more"), MASKED)
def test_so_they_are_in_copies(name, more, mode):
    settings = {"autoreset_mode": mode, "seat": "rotate", **more}
    usual, apart = (lg.learners(name, 3, masks=m, **settings) for m in ("observation", "info"))
    loop = gymnasium.vector.SyncVectorEnv(
        [lambda: lg.learner(name, masks="info", seat="rotate", **more)] * 3, autoreset_mode=mode
    )
    rng, envs = np.random.default_rng(1), (usual, apart, loop)
    first, second, single = (env.reset(seed=2) for env in envs)
    for _ in range(25):
        same(
            beside(first[0], {}), (second[0], {k: v for k, v in second[-1].items() if "mask" in k})
        )
        same(second[0], single[0])
        same(second[-1], single[-1])
        action = legal(usual.action_masks(), rng)
        first, second, single = (env.step(action) for env in envs)
        for a, b in zip(first[1:-1], second[1:-1], strict=True):
            same(a, b)


@each_row(("name", "more"), MASKED)
def test_so_they_are_where_all_seats_learn(name, more):
    settings = {"obs_mode": "numeric", **more}
    both = [lg.make(name, form="parallel", masks=m, **settings) for m in ("observation", "info")]
    turns = [lg.make(name, form="aec", masks=m, **settings) for m in ("observation", "info")]
    rng = np.random.default_rng(1)
    (seen, beside_it), (plain, infos) = (env.reset(seed=3) for env in both)
    for env in turns:
        env.reset(seed=3)
    while both[0].agents:
        for agent in seen:
            same(beside(seen[agent], beside_it[agent]), (plain[agent], infos[agent]))
        actions = {a: int(legal(seen[a]["action_mask"], rng)) for a in both[0].agents}
        seen, _, _, _, beside_it = both[0].step(actions)
        plain, _, _, _, infos = both[1].step(actions)
    for _ in range(30):
        last, second = (env.last() for env in turns)
        same(beside(last[0], last[-1]), (second[0], second[-1]))
        over = last[2] or last[3]
        action = None if over else int(legal(last[0]["action_mask"], rng))
        for env in turns:
            env.step(action)
        if not turns[0].agents:
            break


@each_row(("name", "more"), [case for case in MASKED if "actions" not in case[1]])
def test_so_they_are_in_teams(name, more):
    teams = [TeamVectorEnv(name, 2, masks=m, **more) for m in ("observation", "info")]
    rng, (first, second) = np.random.default_rng(1), (team.reset(seed=3) for team in teams)
    for _ in range(20):
        for agent in teams[0].agents:
            seen, masks = dict(first[0][agent]), second[-1][agent]["action_mask"]
            same(seen.pop("action_mask"), masks)
            same(seen["observation"], second[0][agent])
        actions = {a: legal(m, rng) for a, m in teams[0].action_masks().items()}
        first, second = (team.step(actions) for team in teams)


def test_where_no_index_is_illegal_infos_have_no_mask():
    _, infos = lg.learner("public_goods", masks="info").reset(seed=1)
    assert "action_mask" not in infos


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["text", "both"])
def test_processes_that_share_memory_refuse_texts(mode):
    """Gymnasium's shared memory brings tabs in place of texts."""
    make = lambda **more: gymnasium.make_vec(  # noqa: E731
        "llm_games/PublicGoods-v0", 2, "async", obs_mode=mode, players=3, **more
    )
    with pytest.raises(ValueError, match="shared_memory=False"):
        make()
    env = make(vector_kwargs={"shared_memory": False})
    loop = gymnasium.make_vec("llm_games/PublicGoods-v0", 2, "sync", obs_mode=mode, players=3)
    same(env.reset(seed=1)[0]["text"], loop.reset(seed=1)[0]["text"])
    env.close()
