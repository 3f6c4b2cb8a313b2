"""Copies of a learner's game in one step: as Gymnasium's loop over single ones, step by step."""

import asyncio
import pickle
from contextlib import suppress
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from playing import IDS, NAMES, SETTINGS, SMALL, each_row

import llm_games
from llm_games.baselines.players import make_player
from llm_games.baselines.regret import regret
from llm_games.codecs import ACTIONS
from llm_games.errors import BadParameter, IllegalAction, LLMGamesError, NotReady
from llm_games.noise import Noise
from llm_games.table import Table
from llm_games.wrappers.clients.base import ClientError
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.policy import Decided, Decision, Note, Policy, RandomPolicy
from llm_games.wrappers.single_agent import SingleAgentEnv
from llm_games.wrappers.vector_env import GameVectorEnv

COPIES = 3
MODES = list(AutoresetMode)[:2]
TEXTS = ("no idea", '{"answer": 1}', '{"bid": 2}', '{"tokens": 3}', '{"decision": "stay"}')


def pair(game, mode=AutoresetMode.NEXT_STEP, **settings):
    vector = GameVectorEnv(game, COPIES, autoreset_mode=mode, **settings)
    single = [lambda: SingleAgentEnv(game, **settings)] * COPIES
    return vector, SyncVectorEnv(single, autoreset_mode=mode)


def alike(one, other, where=""):
    assert type(one) is type(other), (where, one, other)
    if isinstance(one, dict):
        assert one.keys() == other.keys(), (where, one, other)
        for key in one:
            alike(one[key], other[key], f"{where}/{key}")
    elif isinstance(one, tuple | list) or (isinstance(one, np.ndarray) and one.dtype == object):
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            alike(a, b, f"{where}/{i}")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, (where, one.dtype, other.dtype)
        assert np.array_equal(one, other), (where, one, other)
    else:
        assert one == other, (where, one, other)


def actions_for(env, observation, rng):
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


@pytest.mark.crossing
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


@pytest.mark.crossing
@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_all_kinds_of_actions(name, actions):
    game = llm_games.rules(name, **SMALL[name])
    more = {"obs_mode": "both", "reask": 1} if actions == "text" else {"normalize": True}
    vector, loop = pair(game, seat="random", actions=actions, max_cycles=3, **more)
    play_both(vector, loop, 7)


@each_row("mode", MODES)
@each_row("name", ["divide_dollar", "battle_royale"])
def test_models_as_opponents_are_asked_what_a_loop_asks(name, mode):
    """All prompts of all copies are under way at the same time, and the same in number and kind."""
    asked, under_way, most = [], [], []

    async def script(request):
        asked.append((request.who._replace(call=0), request.seed))
        under_way.append(request)
        await asyncio.sleep(0)
        most.append(len(under_way))
        await asyncio.sleep(0)
        under_way.remove(request)
        amount = request.seed % 60
        return f'{{"bid_amount": {amount}}}' if amount % 7 else "no idea"

    def playing():
        asked.clear(), most.clear()
        return llm_games.LLMPolicy(ScriptedClient(script)), llm_games.rules(name, players=3)

    model, game = playing()
    opponents = [model, RandomPolicy()]
    vector, loop = pair(game, mode, opponents=opponents, seat=1, max_cycles=3)
    rng, seen = np.random.default_rng(1), vector.reset(seed=5)
    first, drawn = [seen], []
    for _ in range(8):
        drawn.append(actions_for(vector, seen[0], rng))
        seen = vector.step(drawn[-1])
        first.append(seen)
    together, calls = max(most), sorted(map(str, asked))
    asked.clear()
    alike(first, [loop.reset(seed=5), *map(loop.step, drawn)])
    assert sorted(map(str, asked)) == calls
    assert together > 1
    assert any("opponents" in step[-1] for step in first)


@each_row("mode", AutoresetMode)
@each_row("fails_at", [2, 7, 8, 11])
def test_a_step_that_failed_goes_on_with_the_next(mode, fails_at):
    def played(fails_at):
        asked, seen = [], []

        def script(request):
            asked.append((request.who, request.seed))
            if len(asked) == fails_at:
                raise ClientError("gone")
            return f'{{"bid_amount": {request.seed % 50}}}'

        model = llm_games.LLMPolicy(ScriptedClient(script))
        env = GameVectorEnv(
            "divide_dollar", 2, opponents=[model, RandomPolicy()], players=3, rounds=3,
            autoreset_mode=mode,
        )  # fmt: skip
        env.reset(seed=3)
        for step in range(3 if mode == AutoresetMode.DISABLED else 7):
            with suppress(ClientError):
                seen.append(env.step(np.array([step, 2 * step])))
            if len(seen) == step:
                seen.append(env.step(np.array([99, 99])))  # their actions were taken already
        return asked, seen

    asked, seen = played(0)
    again, same = played(fails_at)
    alike(same, seen)
    assert set(again) == set(asked)


def test_a_start_that_failed_can_be_made_again():
    answers = iter(())
    model = llm_games.LLMPolicy(ScriptedClient(lambda request: next(answers)))
    env = GameVectorEnv("battle_royale", 2, players=3, seat=2, opponents=model)
    with pytest.raises(ClientError, match="used up"):
        env.reset(seed=1)
    with pytest.raises(NotReady, match="call reset"):
        env.step(np.zeros(2, int))
    answers = iter(['{"target": null}'] * 4)
    assert env.reset(seed=1)[1]["asked"].all()


def test_what_failed_for_some_copies_is_not_forgotten_for_others():
    failing = []

    def script(request):
        if failing and failing.pop():
            raise ClientError("gone")
        return '{"target": null}'

    def made():
        model = llm_games.LLMPolicy(ScriptedClient(script))
        env = GameVectorEnv("battle_royale", 3, players=3, seat=2, opponents=model)
        env.reset(seed=1)
        return env

    one, other, idle = made(), made(), np.zeros(3, int)
    failing.append(True)
    with pytest.raises(ClientError, match="gone"):
        one.step(idle)
    part = {"reset_mask": np.array([False, True, False])}
    with pytest.raises(NotReady, match=r"call step\(\) to go on, or reset all"):
        one.reset(options=part)
    alike(one.step(idle), other.step(idle))
    failing.append(True)
    with pytest.raises(ClientError, match="gone"):
        one.reset(seed=5, options={"reset_mask": ~part["reset_mask"]})
    other.reset(seed=5, options={"reset_mask": ~part["reset_mask"]})
    alike(one.reset(seed=7, options=part)[0], other.reset(seed=7, options=part)[0])
    alike(one.step(idle)[:4], other.step(idle)[:4])


class Learns(Policy):
    name = "learns"

    def __init__(self):
        self.recalled = []

    def start(self, game, seat, seed):
        return 0

    def act(self, view, memory):
        return Decision(int(view.low)), memory + 1

    async def finish(self, view, memory):
        return Decision(0, notes=(Note("lesson", {"seat": view.seat, "seed": view.who.seed}),))

    def recall(self, memory, notes):
        self.recalled.append([note.content for note in notes])
        return memory


@each_row("mode", MODES)
@each_row("seat", [0, "rotate"])
def test_opponents_look_back_and_recall_as_in_a_loop(mode, seat):
    game, recalled = llm_games.rules("public_goods", players=3, rounds=2), []
    for make in (0, 1):
        opponent = Learns()
        env = pair(game, mode, opponents=opponent, seat=seat)[make]
        env.reset(seed=7)
        for _ in range(8):
            env.step(np.ones(COPIES, int))
        recalled.append(sorted(map(str, opponent.recalled)))
    assert recalled[0] == recalled[1] != []


class Stumbles(Learns):
    fails = ""

    def fail(self, where):
        if self.fails == where:
            self.fails = ""
            raise RuntimeError(where)

    def act(self, view, memory):
        self.fail("act")
        return Decision(1), memory

    def recall(self, memory, notes):
        self.fail("recall")
        return super().recall(memory, notes)


@each_row("where", ["act", "recall"])
@each_row("copies", [None, 2])
def test_notes_are_recalled_where_a_start_failed_and_is_made_again(where, copies):
    game, opponent = llm_games.rules("battle_royale", players=2, base_hit_rate=95), Stumbles()
    settings = {"seat": 1, "opponents": opponent}
    env = GameVectorEnv(game, copies, **settings) if copies else SingleAgentEnv(game, **settings)
    env.reset(seed=3)
    opponent.fails = where
    with pytest.raises(RuntimeError, match=where):
        env.reset(seed=5)
    with pytest.raises(NotReady, match="reset"):
        env.step(np.zeros(copies, int) if copies else 0)
    opponent.recalled = []
    env.reset(seed=5)
    assert opponent.recalled == [[{"seat": 0, "seed": 3 + i}] for i in range(copies or 1)]


def test_without_autoreset_copies_that_ended_are_started_by_hand():
    env = GameVectorEnv(
        "battle_royale", 6, players=3, autoreset_mode=AutoresetMode.DISABLED, base_hit_rate=50
    )
    env.reset(seed=2)
    ended = np.zeros(6, bool)
    while not ended.any():
        _, _, terminated, truncated, _ = env.step(env.action_masks().argmax(axis=1))
        ended = terminated | truncated
    assert not ended.all()
    with pytest.raises(NotReady, match=r"copies \[\d.* have ended"):
        env.step(np.zeros(6, int))
    before, payoff = env.tables.seeds.copy(), env.tables.state
    observation, infos = env.reset(seed=9, options={"reset_mask": ended})
    assert np.array_equal(env.tables.seeds, np.where(ended, 9 + np.arange(6), before))
    assert np.array_equal(infos["_payoff"], ended)
    kept = np.flatnonzero(~ended)
    for name, values in env.tables.state.arrays().items():
        assert np.array_equal(values[..., kept], payoff.arrays()[name][..., kept]), name
    single = SingleAgentEnv("battle_royale", players=3, base_hit_rate=50)
    for copy in np.flatnonzero(ended).tolist():
        alone = single.reset(seed=9 + copy)[0]
        assert np.array_equal(observation["observation"][copy], alone["observation"])
    env.step(env.action_masks().argmax(axis=1))


def test_bad_input_is_refused_by_name():
    make = partial(GameVectorEnv, "public_goods")
    for wrong, fault in {
        "num_envs must be": {"num_envs": 0},
        "max_cycles": {"max_cycles": 0},
        "seat must be": {"seat": 10},
        '"rotate"': {"seat": "rotating"},
        "autoreset_mode": {"autoreset_mode": "Never"},
        "opponents must be one policy or 9": {"opponents": [RandomPolicy()]},
        "make_player": {"opponents": "rational"},
        "obs_mode": {"obs_mode": "pictures"},
        "actions": {"actions": "dance"},
        "normalize": {"normalize": 2},
        "parameter": {"rouns": 3},
    }.items():
        with pytest.raises(LLMGamesError, match=wrong):
            make(**{"num_envs": 2, **fault})
    env = make(num_envs=2)
    with pytest.raises(NotReady, match="call reset"):
        env.step(np.zeros(2, int))
    for wrong in (-1, [1], [1, -1], 1.5, "one", [1, "one"]):
        with pytest.raises(BadParameter, match="seed"):
            env.reset(seed=wrong)
    for mask in (True, np.zeros(2, bool), np.ones(3, bool), np.ones(2)):
        with pytest.raises(BadParameter, match="reset_mask"):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(BadParameter, match="options"):
        env.reset(options=3)
    with pytest.raises(NotReady, match="reset all tables first"):
        make(num_envs=2).reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=1)
    for wrong in (np.zeros(3, int), np.zeros(2), np.full(2, np.nan), np.array([0, 21]), [0, -1]):
        with pytest.raises(IllegalAction):
            env.step(wrong)
    with pytest.raises(IllegalAction, match=r"player_0 at table 1: 21 is not an integer from 0"):
        env.step(np.array([0, 21]))
    alike(env.step(np.zeros(2, int)), again(make(num_envs=2)))


def again(env):
    env.reset(seed=1)
    return env.step(np.zeros(2, int))


@each_row("mode", ["NextStep", "SameStep", "Disabled"])
def test_a_seat_that_rotates_goes_on_where_all_start_again(mode):
    env = GameVectorEnv("public_goods", 3, players=4, seat="rotate", autoreset_mode=mode)
    every = [None, {"reset_mask": np.ones(3, bool)}]
    env.reset(seed=1)
    seats = [env.reset(options=every[i % 2])[1]["seat"].tolist() for i in range(4)]
    assert seats == [[2, 3, 0], [3, 0, 1], [0, 1, 2], [1, 2, 3]]
    assert env.reset(seed=[np.int64(2), None, 7])[1]["seat"].tolist() == [2, 3, 3]


@each_row("wrong", [None, 5, "ab", ["{}"], ["{}", 3]])
def test_texts_are_one_for_each_copy(wrong):
    env = GameVectorEnv("public_goods", 2, actions="text", obs_mode="text")
    env.reset(seed=1)
    with pytest.raises(IllegalAction, match=r"2 texts|is not a text"):
        env.step(wrong)


class Nameless(Policy):
    def start(self, game, seat, seed):
        return 0

    def act(self, view, memory):
        return 3


def test_a_policy_that_decides_something_else_in_a_batch_is_named():
    class Odd(RandomPolicy):
        name = "odd"

        async def decide_batch(self, sight, where, memory):
            return Decided(np.zeros(3)), memory

    class Waits(RandomPolicy):
        name = "waits"

        async def decide_batch(self, sight, where, memory):
            await asyncio.sleep(0)
            return Decided(np.zeros(where.shape, int)), memory

    class Nothing(Nameless):
        async def decide_batch(self, sight, where, memory):
            return None

    faults = {Odd(): r"'odd' .* \(10, 2\)", Waits(): "needs a decide of its own"}
    faults |= {Nothing(): "'Nothing' must decide for a batch by Decided", Nameless(): "'Nameless'"}
    for policy, fault in faults.items():
        env = GameVectorEnv("public_goods", 2, opponents=policy)
        env.reset(seed=1)
        with pytest.raises(BadParameter, match=fault):
            env.step(np.zeros(2, int))


def test_chance_that_is_given_is_that_of_all_copies():
    game = llm_games.rules("sealed_bid_auction", players=3, rounds=2, valuation_draw="random")
    values = game.chance(Noise(9))["valuations"]
    vector, loop = pair(game)
    given = {"chance": {"valuations": values.tolist()}}
    alike(vector.reset(seed=1, options=given), loop.reset(seed=1, options=given))
    assert np.array_equal(vector.tables.state.valuations, np.stack([values] * COPIES, axis=-1))


def test_seeds_given_to_some_and_the_next_ones_of_others():
    env, games = GameVectorEnv("sealed_bid_auction", 3, rounds=1), []
    env.reset(seed=[4, None, 4])
    for _ in range(5):
        games.append(env.tables.seeds.copy())
        env.step(np.zeros(3, int))
        env.step(np.zeros(3, int))
    seeds = np.array(games)
    assert np.array_equal(seeds[:, 0], seeds[:, 2])
    assert len(np.unique(seeds[:, :2])) == 10
    table = Table(env.game)
    table.reset(4)
    for seed in seeds[1:, 0].tolist():
        table.reset()
        assert table.seed == seed


def test_a_copy_goes_on_where_it_was_pickled():
    env = GameVectorEnv("battle_royale", 3, players=4, seat="random")
    env.reset(seed=4)
    for _ in range(3):
        env.step(env.action_masks().argmax(axis=1))
    other = pickle.loads(pickle.dumps(env))
    for _ in range(6):
        actions = env.action_masks().argmax(axis=1)
        alike(env.step(actions), other.step(actions))


def test_gymnasium_makes_and_wraps_them():
    named = {"players": 4, "rounds": 3, "opponents": "rational", "regret": True}
    env = gymnasium.make_vec("llm_games/PublicGoods-v0", num_envs=5, **named)
    assert isinstance(env.unwrapped, GameVectorEnv)
    assert env.spec.kwargs["num_envs"] == 5
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    wrapped = gymnasium.wrappers.vector.NormalizeObservation(wrapped)
    wrapped.reset(seed=1)
    for _ in range(3):
        _, _, terminated, _, infos = wrapped.step(np.full(5, 20))
    assert terminated.all()
    assert np.array_equal(infos["episode"]["r"], infos["payoff"])
    assert (infos["episode"]["l"] == 3).all()
    assert (infos["regret"] > 0).all()  # rational opponents free ride, and giving costs
    same = llm_games.learners("public_goods", 5, **named)
    loop = SyncVectorEnv([lambda: llm_games.learner("public_goods", **named)] * 5)
    alike(same.reset(seed=2), loop.reset(seed=2))
    alike(same.step(np.full(5, 3)), loop.step(np.full(5, 3)))


TIMED = [
    ("bertrand_competition", {"rounds": 8, "window": 3, "history": True}, 5),
    ("public_goods", {"players": 3, "rounds": 3}, 3),  # ends and is cut in the same step
    ("public_goods", {"players": 3, "rounds": 3}, 4),  # ends before
    ("pirate_game", {"players": 4, "gold": 9}, 2),  # cut in the middle of a plan
    ("battle_royale", {"players": 4}, 3),
    ("english_auction", {"players": 3, "items": "items_5"}, 4),
    ("water_allocation", {"players": 3}, 1),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "more", "limit"), TIMED)
def test_a_limit_of_steps_is_gymnasiums(name, more, limit, mode):
    """Truncation, final observations and what comes after, step for step, as of its `TimeLimit`."""
    settings = {"seat": "rotate", "regret": True, **more}
    make = partial(llm_games.learner, name, **settings)
    limited = lambda: gymnasium.wrappers.TimeLimit(make(), limit)  # noqa: E731
    loop = SyncVectorEnv([limited] * COPIES, autoreset_mode=mode)
    ours = gymnasium.make_vec(
        f"llm_games/{''.join(map(str.capitalize, name.split('_')))}-v0",
        COPIES,
        "vector_entry_point",
        max_episode_steps=limit,
        autoreset_mode=mode,
        **settings,
    )
    assert play_both(ours, loop, 17)
    single = SyncVectorEnv([partial(make, max_episode_steps=limit)] * COPIES, autoreset_mode=mode)
    loop = SyncVectorEnv([limited] * COPIES, autoreset_mode=mode)
    assert play_both(single, loop, 17)


def test_without_autoreset_a_limit_of_steps_ends_copies_until_they_are_reset():
    env = llm_games.learners(
        "public_goods", 2, players=3, max_episode_steps=2, autoreset_mode="Disabled"
    )
    env.reset(seed=1)
    env.step(np.zeros(2, int))
    env.reset(options={"reset_mask": np.array([False, True])})
    _, _, ended, cut, _ = env.step(np.zeros(2, int))
    assert (ended.tolist(), cut.tolist()) == ([False, False], [True, False])
    with pytest.raises(NotReady, match=r"copies \[0\] have ended"):
        env.step(np.zeros(2, int))
    env.reset(options={"reset_mask": cut})
    assert env.step(np.zeros(2, int))[3].tolist() == [False, True]


@each_row("limit", [0, -1, 2.5, "three", True])
def test_a_limit_of_steps_that_is_none_is_refused(limit):
    for make in (llm_games.learner, llm_games.learners):
        with pytest.raises(BadParameter, match="max_episode_steps must be an integer"):
            make("public_goods", max_episode_steps=limit)


@pytest.mark.parametrize("more", [{}, {"talk": {"turns": 1, "alphabet": 2}}])
def test_random_players_answer_what_their_own_table_asks(more):
    """Some tables vote, or talk, while others plan."""
    for seed in range(6):
        vector, loop = pair("pirate_game", players=4, gold=9, seat="rotate", **more)
        assert play_both(vector, loop, 60, seed=seed)
