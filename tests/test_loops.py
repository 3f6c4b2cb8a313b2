"""Vector environments in loops of C are equal to those in NumPy, and fall back to them."""

import copy
import os
import shutil
from unittest.mock import patch

import numpy as np
import pytest
from playing import NAMES

from llm_games.baselines.players import PLAYERS, handed, make_player, rule_of
from llm_games.baselines.rules import Kind
from llm_games.rulebook import Rulebook
from llm_games.wrappers import vector_env
from llm_games.wrappers.policy import Decided, RandomPolicy
from llm_games.wrappers.vector_env import GameVectorEnv
from llm_games.wrappers.vector_loops import TableLoop, loop_of

COMPILER = shutil.which(os.environ.get("CC", "cc"))
NEEDS_COMPILER = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
VALUES = {"level_k": "2", "shade": "0.9", "rule": "4", "dp": "1", "undercut": "1"}
VALUES |= {"threshold": "0.3", "conceder": "1", "logit": "1"}
VALUES |= {"memory_one": "1,0,0,1,1", "zd_extort": "2"}
FIXED = {"battle_royale": "strongest", "el_farol_bar": "go", "diners_dilemma": "costly"}
FIXED |= {"money_request": "11", "travelers_dilemma": "2", "trust_game": "5,1/3"}
FIXED |= {"deal_or_no_deal": "1-1-1"}
MADE_OF_MORE = {"q_learning"}  # it needs a market
NUMPY_PLAYS = {
    "beauty_contest": {"best_response", "level_k:2"},
    "bertrand_competition": {"best_response"},
    "budget_auction": {"best_response", "rational"},
    "matrix_game": {"fictitious_play"},
    "sealed_bid_auction": {"best_response", "rational", "reciprocal"},
    "water_allocation": {"cooperative"},
}
"""Players whose rules do not trace: most sort, or look up, as stand-ins do not."""
NO_LOOP = {"emergency_evacuation", "pirate_game"}
"""Too many people, who walk in rows; plans."""


def players_of(game):
    kinds = PLAYERS | {k: v for k, v in handed(game).rules.items() if isinstance(v, Kind)}
    names = [kind for kind in kinds if rule_of(kind, game) and kind not in MADE_OF_MORE]
    values = VALUES | {"fixed": FIXED.get(game, "1")}
    named = (f"{name}:{values[name]}" if name in values else name for name in names)
    return [*dict.fromkeys(["random", *named])]


PAIRS = [(game, player) for game in NAMES if game not in NO_LOOP for player in players_of(game)]
TRACED = [pair for pair in PAIRS if pair[1] not in NUMPY_PLAYS.get(pair[0], ())]
FEW = [
    ("water_allocation", "even"),
    ("english_auction", "rule:4"),
    ("english_auction", "rational"),
    ("battle_royale", "cooperative"),
    ("battle_royale", "rational"),
    ("battle_royale", "random"),
    ("public_goods", "rational"),
    ("el_farol_bar", "random"),
    ("budget_auction", "random"),  # whose first states are NumPy's
    ("bargaining", "people"),
    ("deal_or_no_deal", "conceder:1"),
    ("deal_or_no_deal", "random"),
    ("matrix_game", "generous"),  # constants in what is played, and in what is shown
]


def made(game, player, *, loop, copies=8, **settings):
    """Return an environment that was reset, with its loop at once, or never."""
    rounds = {"rounds": 30} if game == "bertrand_competition" else {}
    players = [make_player(name) for name in player.split("|")]
    opponents = players if len(players) > 1 else players[0]
    env = GameVectorEnv(game, copies, opponents=opponents, **rounds, **settings)
    env._played = vector_env.PATIENCE if loop else -(10**18)
    first = env.reset(seed=3)
    assert isinstance(env._loop, TableLoop) is loop, env._loop
    return env, first


def bits(thing):
    if isinstance(thing, dict):
        return {name: bits(part) for name, part in thing.items()}
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        return thing.dtype, thing.shape, thing.tobytes()
    return repr(thing)


def play_both(game, player, episodes, **settings):
    compare(*(made(game, player, loop=n, **settings) for n in (True, False)), episodes)


def compare(fast, slow, episodes):
    """Play both environments, each with what its reset returned, with equal actions."""
    (env, first), (other, expected) = fast, slow
    assert [*map(bits, first)] == [*map(bits, expected)]
    env.action_space.seed(1)
    over, step = 0, 0
    while over < episodes:
        actions = env.action_space.sample()
        actions = np.minimum(actions, 1) if step % 3 == 1 else actions
        result, expected = env.step(actions), other.step(actions)
        assert [*map(bits, result)] == [*map(bits, expected)], step
        if step % 20 == 0:
            assert bits(env.tables.state.arrays()) == bits(other.tables.state.arrays())
            assert bits(env.tables.steps) == bits(other.tables.steps)
        over, step = over + np.count_nonzero(result[2] | result[3]), step + 1


@pytest.mark.parametrize("game", [name for name in NAMES if name not in NO_LOOP])
def test_players_are_traced_or_on_the_list(game):
    def found():
        for player in players_of(game):
            with patch("llm_games.wrappers.vector_loops.built"):
                env, _ = made(game, player, loop=False, copies=2)
                if isinstance(loop_of(env), str):
                    yield player

    assert {*found()} == NUMPY_PLAYS.get(game, set())


@NEEDS_COMPILER
@pytest.mark.parametrize(("game", "player"), FEW)
def test_a_loop_is_equal_to_numpy(game, player):
    play_both(game, player, episodes=40)


@NEEDS_COMPILER
@pytest.mark.nightly
@pytest.mark.parametrize(("game", "player"), TRACED)
def test_ten_thousand_episodes_are_equal(game, player, night):
    play_both(game, player, episodes=night(500, 10_000), copies=64)


@NEEDS_COMPILER
@pytest.mark.parametrize(
    "settings",
    [
        {"seat": 2, "autoreset_mode": "SameStep"},
        {"max_cycles": 4, "obs_mode": "both", "copies": 2},
        {"actions": "unit", "normalize": True},
        {"failed_reply": "void_run", "max_episode_steps": 3},
    ],
)
def test_a_loop_is_equal_in_other_settings(settings):
    play_both("water_allocation", "even|half|salary|even", 20, **settings)


@NEEDS_COMPILER
def test_resets_between_steps_are_those_of_numpy():
    envs = [made("bargaining", "random", loop=loop)[0] for loop in (True, False)]
    envs[0].action_space.seed(2)
    for step in range(150):
        actions, mask = envs[0].action_space.sample(), np.arange(8) % 3 != step % 3
        seeds, mask = [*range(step, step + 8)] if step % 2 else None, mask | (step % 49 == 3)
        if step % 7 == 3:
            results = [env.reset(seed=seeds, options={"reset_mask": mask}) for env in envs]
        else:
            results = [env.step(actions) for env in envs]
        assert [*map(bits, results[0])] == [*map(bits, results[1])], step
        assert bits(envs[0].tables.seeds) == bits(envs[1].tables.seeds)


@NEEDS_COMPILER
def test_numpy_begins_where_draws_cannot_be_written():
    chance = Rulebook.chance

    def logged(*arguments):
        draws = chance(*arguments).items()
        return {k: (np.exp(np.log(v + 1.0)) - 0.5).astype(v.dtype) for k, v in draws}

    with patch.object(Rulebook, "chance", logged):
        env, _ = made("sealed_bid_auction", "random", loop=True)
    assert not env._loop.starts


@NEEDS_COMPILER
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_reset_after_a_step_was_stopped_is_that_of_numpy(mode):
    env, other = (
        made("bargaining", "random", loop=loop, autoreset_mode=mode)[0] for loop in (True, False)
    )
    start = env._loop.start

    def stop(*arguments):
        start(*arguments)
        raise KeyboardInterrupt

    def play():
        for _ in range(50):
            env.step(np.zeros(8, np.int64))

    with patch.object(env._loop, "start", stop), pytest.raises(KeyboardInterrupt):
        play()
    assert bits(env.reset(seed=9)[0]) == bits(other.reset(seed=9)[0])
    assert env.tables.seeds.tolist() == other.tables.seeds.tolist()


@NEEDS_COMPILER
def test_a_copy_makes_its_own_loop():
    env, _ = made("public_goods", "rational", loop=True)
    twin = copy.deepcopy(env)
    assert twin._loop is None
    actions = np.arange(8)
    assert bits(twin.step(actions)[0]) == bits(env.step(actions)[0])


@NEEDS_COMPILER
def test_what_was_built_is_kept_if_it_can_be(tmp_path, monkeypatch):
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path / "new"))
    made("public_goods", "rational", loop=True)
    (library,) = (tmp_path / "new").iterdir()
    error = AssertionError("built though it is kept")
    with patch("llm_games.wrappers.vector_loops.write_whole", side_effect=error):
        made("public_goods", "rational", loop=True)
    library.unlink()  # it is open
    library.write_bytes(b"rubbish")
    made("public_goods", "rational", loop=True)
    monkeypatch.setenv("LLM_GAMES_CACHE", str(library))  # no folder
    made("public_goods", "rational", loop=True)


def test_without_a_compiler_numpy_plays(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    env, _ = made("public_goods", "rational", loop=False)
    assert loop_of(env) == "Untraceable: there is no C compiler"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"seat": "rotate"}, "seat changes"),
        ({"talk": {"turns": 1, "alphabet": 3}}, "players talk"),
        ({"regret": lambda game, record: 0}, "records"),
    ],
)
def test_where_there_is_no_loop(settings, why):
    env, _ = made("public_goods", "rational", loop=False, **settings)
    assert why in loop_of(env)


MARCHES = [
    ("nearest", {}),
    ("wang", {"p_best": "1/2", "rule_stay": True, "seat": "rotate"}),
    ("wang:calm|keep|nearest|fixed:left|random", {"order": "id", "autoreset_mode": "SameStep"}),
    ("rational", {"max_cycles": 9, "injury_when": "start"}),
    ("rational", {"layout": "#######\n#...#.1\n#.#.#.#\n#.#...#\n#.###.#\n0.....#\n#######"}),
    ("cooperative", {"target_choice": "cell", "failed_reply": "void_run"}),
    ("distance_queue", {"moves": "simultaneous"}),
    ("random_side", {"walker": "wang"}),
]


def marched(player, march, copies=3, **settings):
    settings = {"layout": "small", "players": 6} | settings
    names = player.split("|")
    players = [make_player(names[k % len(names)]) for k in range(settings["players"] - 1)]
    opponents = players if len(names) > 1 else players[0]
    env = GameVectorEnv("emergency_evacuation", copies, opponents=opponents, **settings)
    if not march:
        env.seats.march = lambda due: False
    return env, env.reset(seed=5)


@pytest.mark.parametrize(("player", "settings"), MARCHES)
def test_steps_in_a_row_are_equal_to_steps_one_by_one(player, settings):
    compare(*(marched(player, march, **settings) for march in (True, False)), episodes=6)


@pytest.mark.nightly
@pytest.mark.parametrize(("player", "settings"), MARCHES)
def test_ten_thousand_evacuations_in_rows_are_equal(player, settings, night):
    both = (marched(player, march, 128, **settings) for march in (True, False))
    compare(*both, episodes=night(500, 10_000))


def test_a_player_that_decides_otherwise_than_its_base_decides():
    class Firm(RandomPolicy):
        async def decide_batch(self, sight, mask, memory):
            return Decided(mask * 3), memory

    env = GameVectorEnv("public_goods", 2, opponents=Firm())
    env.reset(seed=1)
    assert "otherwise" in loop_of(env)
