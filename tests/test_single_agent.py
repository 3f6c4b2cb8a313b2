"""A learner's view: nothing is lost, seats move, infos tell, opponents may fail, copies go on."""

import copy
import multiprocessing
import pickle
import re

import gymnasium
import numpy as np
import pytest
from fault_server import FaultServer
from playing import NAMES, SMALL, each_row, every

import llm_games as lg
from llm_games.baselines.learner import learner
from llm_games.errors import BadParameter, IllegalAction, UnknownName
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.learned import LearnedPolicy
from llm_games.wrappers.policy import Decision, Note, Policy, RandomPolicy
from llm_games.wrappers.single_agent import SingleAgentEnv
from llm_games.wrappers.vector_env import GameVectorEnv


def masks_of(env):
    return env.action_masks() if isinstance(env.action_space, gymnasium.spaces.Discrete) else None


def episode(env, seed=None, rng=None):
    """Play one with legal actions; return rewards, infos, and what the table paid the learner."""
    rng = rng or np.random.default_rng(seed)
    paid, step = [], env.table.step
    env.table.step = lambda *a: paid.append((o := step(*a)).rewards[env.seat]) or o
    infos, rewards, done = [env.reset(seed=seed)[1]], [], False
    while not done:
        mask = masks_of(env)
        assert mask is None or mask.any()
        if not infos[-1]["asked"] and mask is not None:
            assert mask.tolist() == [True] + [False] * (len(mask) - 1)
        legal = None if mask is None else np.flatnonzero(mask)
        env.action_space.seed(int(rng.integers(2**31)))
        action = env.action_space.sample() if legal is None else int(rng.choice(legal))
        _, reward, over, cut, info = env.step(action)
        rewards.append(reward)
        infos.append(info)
        done = over or cut
    env.table.step = step
    return rewards, infos, [float(one) for one in paid]


@every
def test_all_that_a_seat_is_paid_comes_out_in_rewards_and_payoff(name, more):
    game = lg.rules(name, **more)
    for seat in {0, game.players - 1}:
        env = SingleAgentEnv(game, seat=seat, normalize=True)
        for seed in range(4):
            rewards, infos, paid = episode(env, seed)
            assert sum(rewards) == pytest.approx(sum(paid))
            assert infos[-1]["payoff"] == pytest.approx(sum(paid))
            assert infos[0]["seat"] == seat
            assert not infos[-1]["asked"] or env.max_cycles is not None


def test_what_happened_before_the_first_turn_is_not_lost():
    early = 0
    env = learner("battle_royale", seat=9, opponents="rational", cap_outcome="share", max_shots=9)
    for seed in range(30):
        observation, info = env.reset(seed=seed)
        assert observation["action_mask"].any()
        if info["asked"]:
            continue
        early += 1  # shot, or capped with a share of the prize
        assert observation["action_mask"].tolist() == [1] + [0] * 10
        shots = int(env.table.state.round)
        _, reward, terminated, _, info = env.step("whatever")
        assert terminated
        assert int(env.table.state.round) == shots
        assert reward == info["payoff"] == (0 if not env.table.state.living[9] else pytest.approx(
            1 / env.table.state.living.sum()
        ))  # fmt: skip
        assert "action" not in info
    assert early


def test_a_game_cut_before_the_first_turn_is_said_by_the_first_step():
    env = SingleAgentEnv("battle_royale", seat=3, players=4, max_cycles=2)
    env.reset(seed=1)
    _, _, terminated, truncated, info = env.step(None)
    assert (terminated, truncated, info["asked"]) == (False, True, False)


@each_row("name", NAMES)
def test_a_seat_that_rotates_takes_each_in_turn_and_sees_what_that_seat_sees(name):
    game = lg.rules(name, **SMALL[name])
    env = SingleAgentEnv(game, seat="rotate", obs_mode="both")
    seats = []
    for number in range(game.players + 1):
        observation, info = env.reset(seed=7) if number == 0 else env.reset()
        fixed = SingleAgentEnv(game, seat=env.seat, obs_mode="both")
        alone, told = fixed.reset(seed=env.table.seed)
        assert np.array_equal(observation["observation"], alone["observation"])
        assert (observation["text"], info) == (alone["text"], told)
        assert env.observation_space.contains(observation)
        seats.append(info["seat"])
    assert seats == [(7 + number) % game.players for number in range(game.players + 1)]
    assert env.reset(seed=7)[1]["seat"] == seats[0]


def test_a_random_seat_hangs_on_the_seed_alone():
    env = SingleAgentEnv("public_goods", players=4, seat="random")
    drawn = [env.reset(seed=seed)[1]["seat"] for seed in range(40)]
    again = [env.reset(seed=seed)[1]["seat"] for seed in reversed(range(40))]
    assert drawn == again[::-1]
    assert set(drawn) == {0, 1, 2, 3}


def test_opponents_keep_their_order_around_a_learner_that_moves():
    names = ["fixed:1", "fixed:2", "fixed:3"]
    env = learner("public_goods", players=4, rounds=1, seat="rotate", opponents=names)
    for seat in range(4):
        env.reset(seed=seat)
        env.step(0)
        actions = env.table.state.contributions.tolist()
        assert actions == [*range(1, seat + 1), 0, *range(seat + 1, 4)]


class Recalls(Policy):
    """Notes down its seat, and keeps what it recalls."""

    name = "recalls"

    def __init__(self):
        self.recalled = []

    def start(self, game, seat, seed):
        return seat

    def act(self, view, memory):
        return Decision(0), memory

    async def finish(self, view, memory):
        return Decision(0, notes=(Note("seat", {"seat": memory}),))

    def recall(self, memory, notes):
        self.recalled.append((memory, notes[0].content["seat"]))
        return memory


def test_notes_are_recalled_by_who_made_them_there():
    first, second = Recalls(), Recalls()
    env = SingleAgentEnv("public_goods", players=3, rounds=1, seat="rotate",
                         opponents=[first, second])  # fmt: skip
    for seed in (0, 1, 2):  # first sits in 1, 0, 0; second in 2, 2, 1
        env.reset(seed=seed)
        env.step(0)
    assert (first.recalled, second.recalled) == ([(0, 0)], [(2, 2)])


def test_infos_tell_the_move_as_it_was_played_the_payoff_and_the_regret():
    env = learner("public_goods", players=3, rounds=3, opponents="fixed:5", regret=True)
    _, info = env.reset(seed=1)
    assert info == {"asked": True, "broke": False, "payoff": 0.0, "seat": 0}
    _, reward, _, _, info = env.step(8)
    assert info == {"asked": True, "broke": False, "payoff": reward, "seat": 0, "action": 8,
                    "regret": info["regret"]}  # fmt: skip
    assert reward == pytest.approx(20 - 8 + 2 * 18 / 3)
    assert info["regret"] == pytest.approx(8 - 2 * 8 / 3)  # of giving nothing instead
    assert env.table.state.contributions.tolist() == [8, 5, 5]
    _, more, _, _, info = env.step(None)  # no answer: the declared move is played
    assert (info["broke"], info["action"]) == (True, 0)
    assert info["payoff"] == reward + more
    assert info["regret"] == 0


def test_a_plan_is_told_when_it_is_whole_and_a_vote_as_one_number():
    env = learner("pirate_game", players=3, gold=10, opponents="fixed:accept")
    env.reset(seed=1)
    _, reward, over, _, info = env.step(4)
    assert (reward, over, "action" in info) == (0.0, False, False)
    _, reward, over, _, info = env.step(3)
    assert (reward, over, info["action"], info["plan"].tolist()) == (4.0, True, 4, [4, 3, 3])
    env = learner("pirate_game", players=3, gold=10, opponents="rational", seat=1)
    env.reset(seed=1)
    info = env.step(1)[4]
    assert (info["action"], "plan" in info) == (1, False)


def test_infos_count_what_came_of_the_replies_of_models():
    said = iter(['{"bid_amount": 3}', "no", "no", "no", "no", "no", "no"])
    model = lg.LLMPolicy(ScriptedClient(lambda request: next(said)), max_attempts=2)
    env = SingleAgentEnv("divide_dollar", players=3, rounds=2, opponents=[model, RandomPolicy()])
    assert "opponents" not in env.reset(seed=1)[1]
    assert env.step(3)[4]["opponents"] == {"valid": 1}
    assert env.step(3)[4]["opponents"] == {"unparsable": 1}


class Says(Policy):
    """Decides what it was made with, whatever it is."""

    name = "says"

    def __init__(self, said):
        self.said = said

    def start(self, game, seat, seed):
        return 0

    def act(self, view, memory):
        if isinstance(self.said, Exception):
            raise self.said
        return Decision(self.said), memory + 1


@each_row("said", [3.7, "forty", None, [3], (1, 2), float("nan")])
def test_an_opponent_that_answers_what_is_no_move_is_named_with_its_seat(said):
    opponents = [RandomPolicy(), Says(said)]
    env = SingleAgentEnv("public_goods", players=3, opponents=opponents)
    env.reset(seed=1)
    message = "player_2 is 'says', which must return its Decision, about an int, and its memory: "
    with pytest.raises(BadParameter, match=re.escape(message)) as found:
        env.step(3)
    assert repr(said) in str(found.value)
    assert int(env.table.state.round) == 0


@each_row("said", [3, (1, 2), (50, 50, 0.5), (25, 25, 25, 25)])
@each_row("copies", [None, 2])
def test_an_opponent_whose_plan_is_none_is_named_with_its_seat(said, copies):
    game = lg.rules("pirate_game", players=3)
    settings = {"seat": 2, "opponents": Says(said)}
    env = GameVectorEnv(game, copies, **settings) if copies else SingleAgentEnv(game, **settings)
    with pytest.raises(BadParameter, match=r"player_0 is 'says', .* about a tuple of 3 ints"):
        env.reset(seed=1)


@each_row("actions", ["index", "unit", "rules"])
@each_row("name", ["public_goods", "pirate_game", "water_allocation"])
def test_rows_of_different_lengths_are_no_action(name, actions):
    ragged = [[1], [1, 2]]
    for env, own in (
        (SingleAgentEnv(name, actions=actions, players=3), ragged),
        (GameVectorEnv(name, 2, actions=actions, players=3), ragged),
    ):
        env.reset(seed=1)
        with pytest.raises(IllegalAction):
            env.step(own)


def test_parameters_go_with_a_name_and_a_class_is_a_game():
    game = lg.rules("public_goods")
    for kind in (SingleAgentEnv, GameVectorEnv):
        assert kind(type(game), players=3, rounds=2).game == lg.rules(
            "public_goods", players=3, rounds=2
        )
        with pytest.raises(BadParameter, match="'rounds': parameters go with a game's name only"):
            kind(game, rounds=2)


class Deaf(Says):
    """Fails at hearing what a step brought, once."""

    def hear(self, view, memory):
        if view.number("round") == 2 and self.said:
            self.said.pop()
            raise RuntimeError("deaf")
        return memory

    def act(self, view, memory):
        return Decision(2), memory


def test_what_was_earned_before_an_opponent_failed_to_hear_is_not_lost():
    paid = []
    for faults in ([], [1]):
        env = SingleAgentEnv("public_goods", players=3, rounds=3, opponents=Deaf(faults))
        env.reset(seed=1)
        if faults:
            with pytest.raises(RuntimeError, match="deaf"):
                env.step(4)
        paid.append(env.step(4)[1:])
    assert paid[0] == paid[1]


class Flaky(Says):
    """Fails the first time that it is asked."""

    def act(self, view, memory):
        if self.said:
            raise self.said.pop()
        return Decision(2), memory


def test_an_opponent_that_raises_leaves_nothing_half_done():
    """Whoever was asked before it in this step is asked again as if for the first time."""
    played = []
    for errors in ([], [RuntimeError("out of luck")]):
        env = SingleAgentEnv("public_goods", players=3, opponents=[RandomPolicy(), Flaky(errors)])
        env.reset(seed=1)
        if errors:
            with pytest.raises(RuntimeError, match="out of luck") as found:
                env.step(7)
            note = "'says' on seat 2 of public_goods, episode 1, step 0"
            assert note in found.value.__notes__[0]
        for _ in range(3):
            env.step(7)  # the first of a failed step has no effect any more
        played.append(env.table.state.contributions.tolist())
    assert played[0] == played[1]


@each_row(
    ("settings", "error", "says"),
    [
        ({"seat": "third"}, BadParameter, '"rotate" or "random", got \'third\''),
        ({"seat": 3}, BadParameter, "seat must be an integer of at least 0 and at most 2, got 3"),
        ({"seat": True}, BadParameter, "seat must be an integer"),
        ({"opponents": "rational"}, BadParameter, "make_player('rational')"),
        ({"opponents": [RandomPolicy()]}, BadParameter, "opponents must be one policy or 2"),
        ({"opponents": {1: RandomPolicy()}}, BadParameter, "nobody sits in player_2"),
        ({"opponents": {0: RandomPolicy()}}, BadParameter, "the learner sits in player_0, seat 0"),
        (
            {"opponents": {1: RandomPolicy(), "player_1": RandomPolicy(), 2: RandomPolicy()}},
            BadParameter,
            "another opponent sits in player_1, seat 1, already",
        ),
        ({"opponents": {"player_7": RandomPolicy()}}, UnknownName, "no seat 'player_7'"),
        ({"opponents": {7: RandomPolicy()}}, UnknownName, "no seat 7"),
        ({"opponents": {1: RandomPolicy()}, "seat": "rotate"}, BadParameter, "seat by number"),
        ({"opponents": 3}, BadParameter, "3 takes no seat"),
        ({"normalize": 1}, BadParameter, "normalize must be one of False, True, got 1"),
    ],
)
def test_seats_and_opponents_that_do_not_fit_are_refused(settings, error, says):
    with pytest.raises(error, match=re.escape(says)):
        SingleAgentEnv("public_goods", players=3, **settings)


@each_row("name", NAMES)
def test_gymnasiums_registry_takes_all_settings(name):
    title = "".join(word.capitalize() for word in name.split("_"))
    settings = {"opponents": "rational", "seat": "random", "normalize": True, "regret": True}
    env = gymnasium.make(f"llm_games/{title}-v0", **settings, **SMALL[name])
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        assert env.observation_space.contains(observation)
        assert {"asked", "broke", "payoff", "seat"} == set(info)
        env.step(0)


def test_opponents_by_seat_or_agent():
    named = {"player_2": "fixed:2", 0: "fixed:9"}
    env = learner("public_goods", players=3, rounds=1, seat=1, opponents=named)
    env.reset(seed=1)
    env.step(4)
    assert env.table.state.contributions.tolist() == [9, 4, 2]


@each_row("action", [21, -1, np.nan, 3.5, "3", None])
def test_an_action_that_is_refused_can_be_given_again(action):
    env = learner("public_goods", players=3, rounds=2, opponents="fixed:3")
    env.reset(seed=1)
    if action is None:
        return
    with pytest.raises(IllegalAction, match=r"player_0: .* is not an integer from 0 to 20"):
        env.step(action)
    assert env.step(4)[4]["action"] == 4


def model_of(name):
    """A learned policy without a library: predicts the first legal index."""
    return LearnedPolicy(First(), name="first")


class First:
    def predict(self, observation, deterministic=True, **more):
        masks = observation["action_mask"] if isinstance(observation, dict) else 0 * observation
        return masks.argmax(axis=-1), None


def say(request):
    return f'{{"{request.question.key}": 3}}'


def function(observation, view):
    return 3


def opponents_of(game):
    players = [lg.player("rational"), RandomPolicy(), model_of(game), lg.player("random")]
    players += [lg.LLMPolicy(ScriptedClient(say)), lg.player(function)]
    return [players[k % len(players)] for k in range(game.players - 1)]


def go_on(env, steps=6):
    found, rng = [], np.random.default_rng(5)
    for _ in range(steps):
        mask = env.action_masks()
        observation, *rest = env.step(int(rng.choice(np.flatnonzero(mask))))
        found.append(pickle.dumps((observation, rest)))
        if rest[1] or rest[2]:
            observation, info = env.reset()
            found.append(pickle.dumps((observation, info)))
    return found


def settled(name):
    """An environment in the middle of an episode, with players of every kind around."""
    game = lg.rules(name, **SMALL[name])
    env = SingleAgentEnv(game, seat="rotate", opponents=opponents_of(game), normalize=True)
    env.reset(seed=4)
    go_on(env, 3)
    return env


@each_row("name", NAMES)
def test_copied_or_pickled_in_the_middle_it_goes_on_alike(name):
    env = settled(name)
    copies = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    assert [go_on(one) for one in copies] == [go_on(env)] * 2


def send(env, pipe):
    pipe.send(go_on(env))


@each_row("how", ["fork", "spawn"])
def test_another_process_goes_on_alike(how):
    env = settled("public_goods")  # whose threads and event loop have worked already
    context = multiprocessing.get_context(how)
    ours, theirs = context.Pipe()
    process = context.Process(target=send, args=(env, theirs))
    process.start()
    assert ours.poll(60)
    found = ours.recv()
    process.join(60)
    assert found == go_on(env)


def used(client):
    env = SingleAgentEnv("public_goods", players=2, opponents=lg.LLMPolicy(client))
    env.reset(seed=1)
    env.step(3)
    return env


@pytest.mark.parametrize("kind", ["tiny", "openai"])
def test_models_that_were_asked_can_be_pickled(kind, monkeypatch):
    if kind == "tiny":
        env = used(lg.player("tiny:constrained").client)
        assert go_on(pickle.loads(pickle.dumps(env))) == go_on(env)
        return
    pytest.importorskip("openai")
    monkeypatch.setenv("SOME_KEY", "sk-not-to-be-seen-in-any-file")
    monkeypatch.setenv("MORE", "hd-not-to-be-seen-either")
    settings = {"max_in_flight": 4, "requests_per_minute": 10**6, "api_key_env": "SOME_KEY"}
    settings["headers"] = {"x-more": "env:MORE"}
    with FaultServer() as server:
        client = lg.player("openai:m", client={"base_url": server.url, **settings}).client
        env = used(client)
        kept = pickle.dumps(env)
        assert b"not-to-be-seen" not in kept  # but where it stands
        assert go_on(pickle.loads(kept)) == go_on(env)
        bare = lg.player("openai:m", client={"base_url": server.url, "api_key": "sk-" + "x" * 20})
        with pytest.raises(TypeError, match="keep it in an environment variable or a file"):
            pickle.dumps(bare)
