"""Players of ours in loops of others: PettingZoo's, Gymnasium's, and under wrappers."""

import asyncio
import copy
import json
import pickle
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from unittest import mock

import gymnasium
import numpy as np
import pytest
from pettingzoo.utils import conversions, wrappers
from playing import NAMES, QUICK
from stable_baselines3 import PPO

import llm_games as lg
from llm_games.baselines.players import llm_player
from llm_games.baselines.training import fictitious_play
from llm_games.baselines.training.fictitious_play import FictitiousOptions
from llm_games.errors import BadParameter, IllegalAction, NotReady, UnknownName
from llm_games.noise import Noise
from llm_games.wrappers.clients.base import ClientError, Completion
from llm_games.wrappers.clients.mock import MockClient
from llm_games.wrappers.human import HumanClient, HumanPolicy
from llm_games.wrappers.learned import Trained
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play_table
from llm_games.wrappers.policy import Decision, Note, RandomPolicy
from llm_games.wrappers.sb3 import SB3VecEnv, save_player
from llm_games.wrappers.torch_player import network, save_network

BAD = ("Perhaps.", "{}", '{"answer": 1}', "-1", "123456789", "")
SETTINGS = QUICK | {"emergency_evacuation": {"players": 4, "max_rounds": 3}}
TALKS = ({"turns": 1}, {"turns": 2, "order": "shuffled"}, {"turns": 1, "alphabet": 3})


class Hashing:
    """Replies from a hash of all messages and the seed: equal payoffs mean equal prompts."""

    name = "hashing"

    def __init__(self, bad=0.0):
        self.bad = bad

    async def complete(self, request):
        text = json.dumps([*request.messages], sort_keys=True) + str(request.seed)
        seed = int.from_bytes(sha256(text.encode()).digest()[:8], "big")
        chance = np.random.default_rng(seed)
        if chance.random() < self.bad:
            return Completion(str(chance.choice(BAD)), model=self.name)
        question = request.question
        reply = "Well." if question is None else question.reply(question.sample(Noise(seed)))
        return Completion(reply, model=self.name)

    async def close(self):
        pass


class Slow(Hashing):
    running = most = calls = 0

    async def complete(self, request):
        Slow.running, Slow.calls = Slow.running + 1, Slow.calls + 1
        Slow.most = max(Slow.most, Slow.running)
        await asyncio.sleep(0.01)
        Slow.running -= 1
        return await super().complete(request)


def person():
    """A person who answers every question with what chance gives."""
    client = HumanClient(write=lambda text: None)
    client.complete = MockClient("human").complete
    return HumanPolicy(client)


TABLES = {
    "random": lambda game: [RandomPolicy()] * game.players,
    "rational": lambda game: [lg.player("rational", game)] * game.players,
    "model": lambda game: [LLMPolicy(Hashing())] * game.players,
    "unreliable": lambda game: [LLMPolicy(Hashing(0.6))] * game.players,
    "rubbish": lambda game: [LLMPolicy(Hashing(1.0))] * game.players,
    "mixed": lambda game: [
        (
            LLMPolicy(Hashing(0.3)),
            lg.player("rational", game),
            RandomPolicy(),
            LLMPolicy(Hashing()),
        )[seat % 4]
        for seat in range(game.players)
    ],
    "person": lambda game: [person() for _ in range(game.players)],
    "talkers": lambda game: [
        lg.player(f"{('announcer', 'liar', 'proposer')[seat % 3]}:rational", game)
        for seat in range(game.players)
    ],
}


def moves_on(env, seats, seed):
    """Play one of PettingZoo's two documented loops; return the payoffs."""
    payoffs = dict.fromkeys(seats, 0.0)
    if hasattr(env, "agent_iter"):
        env.reset(seed=seed)
        for agent in env.agent_iter():
            observation, reward, termination, truncation, _ = env.last()
            payoffs[agent] += reward
            action = None if termination or truncation else seats[agent](observation)
            assert action is None or env.action_space(agent).contains(action)
            env.step(action)
        return [*payoffs.values()]
    observations, _ = env.reset(seed=seed)
    while env.agents:
        actions = {agent: seats[agent](observations[agent]) for agent in env.agents}
        assert all(env.action_space(agent).contains(a) for agent, a in actions.items())
        observations, rewards, *_ = env.step(actions)
        for agent, reward in rewards.items():
            payoffs[agent] += reward
    return [*payoffs.values()]


def crossing(night_only):
    """Rows (players, talk, form, actions): all by night, by day each player in one form."""
    rows = [*((kind, None) for kind in TABLES), *(("mixed", talk) for talk in TALKS)]
    rows.append(("talkers", TALKS[0]))
    forms = [(form, a) for form in ("parallel", "aec") for a in ("rules", "index", "unit", "text")]
    for i, (kind, talk) in enumerate(rows):
        for form, actions in forms if night_only else [forms[(3 * i) % 8], forms[(3 * i + 4) % 8]]:
            yield kind, talk, form, actions


def compare(name, rows):
    for kind, talk, form, actions in rows:
        game = lg.rules(name, **SETTINGS[name], **({"talk": talk} if talk else {}))
        payoffs = lg.play(game, TABLES[kind](game), 7).payoffs.tolist()
        more = SETTINGS[name] | ({"talk": talk} if talk else {})
        env = lg.make(f"{name}-v0", form=form, actions=actions, obs_mode="numeric", **more)
        players = TABLES[kind](env.game)
        seats = {a: lg.sit(p, env, a) for a, p in zip(env.possible_agents, players, strict=True)}
        assert moves_on(env, seats, 7) == payoffs, (kind, talk, form, actions)


@pytest.mark.parametrize("name", NAMES)
def test_payoffs_are_those_of_play(name):
    compare(name, crossing(night_only=False))


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_payoffs_are_those_of_play_in_all_forms(name, night):
    rows = [*crossing(night_only=True)]
    compare(name, night(rows[::9], rows))


class Casting(wrappers.BaseWrapper):
    """Casts numbers to float32 on their way, and destroys what is observed."""

    def step(self, action):
        super().step(action if isinstance(action, str | None) else np.float32(action))

    def observe(self, agent):
        return None


WRAPPED = {
    "order": lambda env: wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(env)),
    "cast": Casting,
    "parallel": conversions.aec_to_parallel,
    "there and back": lambda env: conversions.parallel_to_aec(conversions.aec_to_parallel(env)),
}


@pytest.mark.parametrize("name", NAMES)
def test_wrappers_change_nothing(name):
    game = lg.rules(name, **SETTINGS[name])
    payoffs = lg.play(game, TABLES["mixed"](game), 3).payoffs.tolist()
    for label, wrap in WRAPPED.items():
        form = "parallel" if label == "there and back" and not game.turns else "aec"
        env = lg.make(
            f"{name}-v0", form=form, actions="rules", obs_mode="numeric", **SETTINGS[name]
        )
        if form == "parallel":
            env = conversions.parallel_to_aec(env)
        elif label not in ("parallel", "there and back") or not game.turns:
            env = wrap(env)
        players = TABLES["mixed"](game)
        seats = {a: lg.sit(p, env, a) for a, p in zip(env.possible_agents, players, strict=True)}
        assert moves_on(env, seats, 3) == payoffs, label


def test_a_changed_action_is_refused_with_both():
    env = lg.make("public_goods-v0", players=2, form="aec", actions="rules")
    seats = {agent: lg.sit("fixed:7", env, agent) for agent in env.possible_agents}
    env.reset(seed=1)
    with pytest.raises(
        IllegalAction, match=r"player_0 \(fixed:7\) was not called in this step, but 7"
    ):
        env.step(7)
    assert seats["player_0"](env.observe("player_0")) == 7
    with pytest.raises(IllegalAction, match=r"player_0 \(fixed:7\) gave 7, but 8 arrived"):
        env.step(8)
    for odd in (None, "7", [[7], [7, 8]], {"action": 7}, np.float64(1e40), 2**70, True):
        with pytest.raises(IllegalAction, match="gave 7, but "):
            env.step(odd)
    env.step(np.float64(7))
    assert env.agent_selection == "player_1"


def test_what_is_no_seat_is_refused():
    env = lg.make("public_goods-v0", players=2)
    with pytest.raises(UnknownName, match="player_2"):
        lg.sit("random", env, "player_2")
    with pytest.raises(UnknownName, match="agent"):
        lg.sit("random", env)
    with pytest.raises(BadParameter, match=r"'shade:0\.5' is not defined for public_goods"):
        lg.sit("shade:0.5", env, "player_0")
    with pytest.raises(BadParameter, match="no vector"):
        lg.sit("random", lg.learners("public_goods", 2), "player_0")
    with pytest.raises(BadParameter, match="one environment of llm_games"):
        lg.sit("random", object(), "player_0")

    class Shifted(wrappers.BaseParallelWrapper):
        def action_space(self, agent):
            return lg.make("public_goods-v0", players=2, actions="unit").action_space(agent)

    with pytest.raises(
        BadParameter, match="a wrapper changed the actions of player_0 from Discrete"
    ):
        lg.sit("random", Shifted(env), "player_0")
    first, second = (lg.sit("random", env, "player_0") for _ in range(2))
    with pytest.raises(BadParameter, match=r"player_0 \(random\) sits already: let its policy"):
        lg.sit(first, env, "player_1")
    with pytest.raises(UnknownName, match="no agent 0; known: player_0"):
        lg.sit("random", env, 0)
    with pytest.raises(NotReady, match="never reset"):
        second()
    env.reset(seed=0)
    with pytest.raises(NotReady, match="another player sits on player_0"):
        first()
    lg.sit("random", env, "player_1")  # before the first step
    env.step({agent: env.unwrapped.seated[i]() for i, agent in enumerate(env.agents)})
    with pytest.raises(NotReady, match="middle of an episode"):
        lg.sit("random", env, "player_1")


@pytest.mark.parametrize("settings", [{}, {"obs_mode": "both", "normalize": True}])
def test_an_observation_of_another_agent_or_step_is_refused(settings):
    """Wrappers may delay what is observed; what another agent observes stays refused."""

    class Delayed(wrappers.BaseParallelWrapper):
        seen = dict.fromkeys(("player_0", "player_1"))

        def reset(self, **settings):
            observations, infos = super().reset(**settings)
            self.seen, old = observations, self.seen
            return old, infos

        def step(self, actions):
            observations, *rest = super().step(actions)
            self.seen, old = observations, self.seen
            return old, *rest

    env = lg.make("sealed_bid_auction-v0", players=2, rounds=4, form="parallel", **settings)
    seats = {agent: lg.sit("random", env, agent) for agent in env.possible_agents}
    observations, _ = env.reset(seed=1)
    fault = r"player_0 \(random\) was called with the observation of"
    with pytest.raises(BadParameter, match=f"{fault} player_1: call it with its own of this step"):
        seats["player_0"](observations["player_1"])
    env.step({agent: seats[agent](observations[agent]) for agent in env.agents})
    with pytest.raises(BadParameter, match=f"{fault} an earlier step"):
        seats["player_0"](observations["player_0"])
    with pytest.raises(BadParameter, match=f"{fault} an earlier step"):
        asyncio.run(seats["player_0"].act(observations["player_0"]))
    players = [RandomPolicy()] * 2
    delayed = Delayed(env)
    late = {agent: lg.sit("random", delayed, agent) for agent in seats if env.reset(seed=2)}
    assert moves_on(delayed, late, 3) == lg.play(env.game, players, 3).payoffs.tolist()


class Diary(RandomPolicy):
    """Notes down what happens to it."""

    def __init__(self):
        self.lines = []

    def start(self, game, seat, seed):
        self.lines.append(("start", seat))
        return super().start(game, seat, seed)

    def hear(self, view, memory):
        self.lines.append(("hear", int(view.sight.state.round)))
        return memory

    async def finish(self, view, memory):
        self.lines.append(("finish", bool(view.sight.state.over)))
        return Decision(0, notes=(Note("lesson", {"episode": len(self.lines)}),))

    def recall(self, memory, notes):
        self.lines.append(("recall", [note.content["episode"] for note in notes]))
        return memory


ONE = [("hear", 0), ("hear", 1), ("hear", 2), ("finish", True)]


def test_players_hear_look_back_and_recall_over_three_episodes():
    env = lg.make("public_goods-v0", players=2, rounds=2, form="aec")
    diary = Diary()
    seats = {
        "player_0": lg.sit(diary, env, "player_0"),
        "player_1": lg.sit("random", env, "player_1"),
    }
    diary.lines.clear()
    for seed in range(3):
        moves_on(env, seats, seed)
    assert diary.lines[:4] == [("start", 0), *ONE[:3]]
    assert seats["player_0"].finish().notes[0].kind == "lesson"
    assert seats["player_0"].finish() is None
    assert diary.lines == [
        *(("start", 0), *ONE),
        *(("start", 0), ("recall", [5]), *ONE),
        *(("start", 0), ("recall", [11]), *ONE),
    ]
    env.reset(seed=4)
    with seats["player_0"]:
        env.step(seats["player_0"]())
    assert diary.lines[-3:] == [("start", 0), ("recall", [17]), ("hear", 0)]


@pytest.mark.parametrize("form", ["aec", "parallel"])
def test_whoever_sits_down_before_the_first_step_is_not_waited_for(form):
    game = lg.rules("public_goods", players=2, rounds=2, talk={"turns": 1})
    payoffs = lg.play(game, [RandomPolicy(), LLMPolicy(Hashing())], 2).payoffs.tolist()
    env = lg.make(
        "public_goods-v0", form=form, actions="text", players=2, rounds=2, talk={"turns": 1}
    )
    env.reset(seed=2)
    players = {"player_0": RandomPolicy(), "player_1": LLMPolicy(Hashing())}
    seats = {agent: lg.sit(player, env, agent) for agent, player in players.items()}
    if form == "aec":
        assert env.agent_selection == "player_1"
        assert [info["asked"] for info in env.infos.values()] == [False, True]
    env.reset = lambda seed: (dict.fromkeys(seats), {})
    assert moves_on(env, seats, 2) == payoffs


def planners(game):
    return [
        llm_player(Hashing(0.2), {"strategy": "adaptive", "learning": True})
        for _ in range(game.players)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_planners_carry_their_lessons_over_three_episodes(name):
    game = lg.rules(name, **SETTINGS[name])
    form, actions = (("aec", "index"), ("parallel", "text"))[NAMES.index(name) % 2]
    env = lg.make(f"{name}-v0", form=form, actions=actions, **SETTINGS[name])
    seats = dict(zip(env.possible_agents, planners(game), strict=True))
    seats = {agent: lg.sit(player, env, agent) for agent, player in seats.items()}
    players, notes = planners(game), None
    for seed in (3, 4, 5):
        episode = asyncio.run(play_table(game, players, seed, recalled=notes))
        notes = {seat: decision.notes for seat, decision in episode.afterwards.items()}
        assert moves_on(env, seats, seed) == episode.payoffs.tolist()
    assert notes


@pytest.mark.parametrize("name", NAMES)
def test_payoffs_are_those_of_play_in_gymnasiums_loop(name):
    for i, actions in enumerate(("rules", "index", "unit", "text")):
        game = lg.rules(name, **SETTINGS[name])
        players, seat = TABLES["mixed"](game), i % game.players
        payoff = lg.play(game, players, 7).payoffs[seat]
        title = "".join(map(str.capitalize, name.split("_")))
        mine, others = players[seat], players[:seat] + players[seat + 1 :]
        settings = {"actions": actions, "seat": seat, "opponents": others, **SETTINGS[name]}
        env = gymnasium.make(f"llm_games/{title}-v0", disable_env_checker=True, **settings)
        env = gymnasium.wrappers.RecordEpisodeStatistics(env)
        seated = lg.sit(mine, env)
        observation, _ = env.reset(seed=7)
        total, done = 0.0, False
        while not done:
            action = seated(observation)
            assert env.action_space.contains(action)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, done = total + reward, terminated or truncated
        assert total == payoff, actions


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """Names of players of every kind that is not made by rule."""
    folder, size = tmp_path_factory.mktemp("players"), {"players": 2, "rounds": 1, "tokens": 3}
    copies = SB3VecEnv(lg.learners("public_goods", 2, **size))
    save_player(PPO("MlpPolicy", copies, seed=1), copies, folder / "ppo.zip")
    game = lg.rules("public_goods", **size)
    save_network(network(game, "index", hidden=(8,)), game, Trained.of(game), folder / "net")
    given = {"game": "public_goods", "param": ["players=2", "rounds=1", "tokens=3"], "steps": 2}
    fictitious_play.train(FictitiousOptions(folder=folder / "fp", episodes=2, **given))
    table = {"game": "public_goods", "params": size, "seats": ["random", "rational"]}
    lg.run(
        {"title": "all", "seed": 5, "order": "fixed", "episodes": 20, "games": [table]},
        folder / "all.db",
    )
    names = [f"ghost:{folder / 'all.db'}#0", "mix:rational|random", "tiny", "mock"]
    names += [
        f"{kind}:{folder / file}"
        for kind, file in (("sb3", "ppo.zip"), ("torch", "net.safetensors"))
    ]
    return size, [*names, f"tabular:{folder / 'fp' / 'player.npz'}"]


def test_every_kind_of_player_sits_by_name_and_in_its_own_game_alone(names):
    size, players = names
    game = lg.rules("public_goods", **size)
    for i, name in enumerate(players):
        env = lg.make("public_goods-v0", form=("aec", "parallel")[i % 2], actions="unit", **size)
        seats = {agent: lg.sit(name, env, agent) for agent in env.possible_agents}
        payoffs = lg.play(game, [lg.player(name, game)] * 2, 7).payoffs.tolist()
        assert moves_on(env, seats, 7) == payoffs, name
    for name in players[4:]:
        with pytest.raises(BadParameter, match="trained for public_goods with 2 players, not for"):
            lg.sit(name, lg.make("public_goods-v0", players=3, rounds=1, tokens=3), "player_0")


def test_gymnasium_and_a_learner_that_moves():
    diary = Diary()
    env = lg.learner("public_goods", players=3, rounds=2, seat="rotate", actions="unit")
    seat = lg.sit(diary, env)
    env.reset(seed=1)
    with pytest.raises(NotReady, match="middle of an episode"):
        lg.sit("random", env)
    diary.lines.clear()
    for episode in range(3):
        observation, _ = env.reset(seed=5 if episode == 0 else None)
        payoff, done = 0.0, False
        while not done:
            observation, reward, terminated, truncated, info = env.step(seat(observation))
            payoff, done = payoff + reward, terminated or truncated
        assert payoff == info["payoff"]
    starts = [number for kind, number in diary.lines if kind == "start"]
    assert len({*starts}) == 3
    assert [kind for kind, _ in diary.lines].count("recall") == 2


def test_seats_wait_at_the_same_time():
    env = lg.make("public_goods-v0", players=4, rounds=2, form="parallel")
    Slow.most = 0
    seats = {agent: lg.sit(LLMPolicy(Slow()), env, agent) for agent in env.possible_agents}

    async def main():
        env.reset(seed=1)
        while env.agents:
            moves = await asyncio.gather(*(seats[agent].act() for agent in env.agents))
            env.step(dict(zip(env.agents, moves, strict=True)))

    asyncio.run(main())
    assert Slow.most == 4


def test_a_decision_counts_in_its_own_step_alone_and_is_made_once():
    Slow.calls = 0
    env = lg.make("public_goods-v0", players=2, rounds=2, form="parallel")
    seat = lg.sit(LLMPolicy(Slow()), env, "player_0")

    async def main():
        env.reset(seed=1)
        first, second = await asyncio.gather(seat.act(), seat.act())
        assert (first, Slow.calls) == (second, 1)
        env.reset(seed=1)
        late = asyncio.ensure_future(seat.act())
        await asyncio.sleep(0)
        env.reset(seed=2)
        with pytest.raises(NotReady, match="the table went on while its players decided"):
            await late
        fresh = await seat.act()
        env.reset(seed=2)
        assert fresh == await seat.act()

    asyncio.run(main())


def test_who_sits_down_later_takes_no_notes_and_no_look_back_from_others():
    env = lg.make("public_goods-v0", players=2, rounds=1, form="parallel")
    diary, tired = Diary(), Diary()
    seats = {"player_0": lg.sit(diary, env, "player_0"), "player_1": lg.sit(tired, env, "player_1")}
    moves_on(env, seats, 1)
    tired.finish = mock.AsyncMock(side_effect=[ClientError("away"), None])
    with pytest.raises(ClientError):
        env.reset(seed=2)
    env.reset(seed=2)
    assert tired.finish.await_count == 2
    lg.sit("random", env, "player_1")  # all begin anew, with the same notes
    assert [kind for kind, _ in diary.lines].count("recall") == 2
    while env.agents:
        env.step({agent: env.seated[i]() for i, agent in enumerate(env.agents)})
    lg.sit("random", env, "player_0")
    assert [kind for kind, _ in diary.lines].count("finish") == 2
    moves_on(env, {agent: env.seated[i] for i, agent in enumerate(seats)}, 3)
    assert seats["player_0"].finish() is None


def test_a_failed_reply_is_the_declared_move_where_illegal_ones_raise():
    env = lg.make("public_goods-v0", players=2, rounds=1, form="parallel", on_illegal="raise")
    seats = {agent: lg.sit(LLMPolicy(Hashing(1.0)), env, agent) for agent in env.possible_agents}
    env.reset(seed=1)
    *_, infos = env.step({agent: seats[agent]() for agent in env.agents})
    assert infos["player_0"]["broke"]


def test_a_copied_environment_has_memories_of_its_own():
    env = lg.make("public_goods-v0", players=2, rounds=3, form="parallel")
    for agent in env.possible_agents:
        lg.sit("random", env, agent)
    env.reset(seed=3)
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), env]
    ends = []
    for each in copies:
        rewards = []
        while each.agents:
            actions = {agent: each.seated[i]() for i, agent in enumerate(each.agents)}
            rewards.append(each.step(actions)[1])
        ends.append(rewards)
    assert len(ends[0]) == 3
    assert ends[0] == ends[1] == ends[2]


def test_infos_say_how_a_seated_model_was_read():
    env = lg.make("public_goods-v0", players=2, rounds=1, form="parallel", actions="text")
    seats = {agent: lg.sit(LLMPolicy(Hashing(1.0)), env, agent) for agent in env.possible_agents}
    env.reset(seed=1)
    *_, infos = env.step({agent: seats[agent]() for agent in env.agents})
    assert infos["player_0"]["outcome"] != "valid"
    assert infos["player_0"]["why"]
    assert infos["player_0"]["broke"]


def test_words_are_the_same_in_play_and_in_an_environment():
    said = "Let\u2019s keep 10 \u2014 \u201cgr\u00fc\u00dfe\u201d, \u4f60\u597d \U0001f642"
    reply, read = json.dumps({"speech": said}, ensure_ascii=False), []
    size = {"players": 2, "rounds": 1, "talk": {"turns": 1}}

    def listener(observation):
        read.append(observation)
        return reply if '"speech"' in observation else "5"

    lg.play("public_goods", [listener] * 2, 1, **size)
    env = lg.make("public_goods-v0", actions="text", **size)
    assert env.action_space("player_0").contains(reply)
    env.reset(seed=1)
    for _ in env.agents:
        observations, *_ = env.step(dict.fromkeys(env.agents, reply))
    assert env.observation_space("player_1").contains(observations["player_1"])
    line = f'- player_0: "{said}"'
    assert line in observations["player_1"]["text"]
    assert [line in text for text in read].count(True) == 1


@pytest.mark.parametrize("talk", [{}, {"talk": {"turns": 1, "alphabet": 3}}])
def test_infos_have_prices_as_they_are(talk):
    """In single, vector and team environments, and for replies in words."""
    more = {"players": 2, "rounds": 2} | talk
    env = lg.learner("bertrand_competition", actions="rules", **more)
    [size] = env.action_space.shape
    env.reset(seed=1)
    for symbol in (1, 0) if talk else (0,):
        info = env.step(np.array([7.5, symbol][:size]))[4]
    assert info["action"] == 7.5
    many = lg.learners("bertrand_competition", 2, actions="rules", **more)
    many.reset(seed=1)
    for symbol in (1, 0) if talk else (0,):
        infos = many.step(np.array([[7.5, symbol][:size]] * 2))[4]
    assert infos["action"].tolist() == [7.5, 7.5]
    words = lg.make("bertrand_competition-v0", actions="text", players=2, rounds=2)
    words.reset(seed=1)
    price = json.dumps({words.view("player_0").question.key: 7.5})
    assert words.step(dict.fromkeys(words.agents, price))[4]["player_0"]["played"] == 7.5


ASIDES_OFF = {"bertrand_competition": {"reflect": False}, "emergency_evacuation": {"stages": "one"}}
CHATS = [(name, ASIDES_OFF.get(name, {})) for name in NAMES]
CHATS += [("budget_auction", {"reveal": "bids", "reveal_last": n}) for n in (2, 3, "all")]


def chat_of(words, turns):
    """Return the chat of a model that has nothing but infos: past turns, then what is asked now."""
    past = len(turns) if words["past"] is None else words["past"]
    shown = turns[len(turns) - min(past, len(turns)) :]
    chat = [{"role": "system", "content": words["rules"]}]
    for before, reply in [*shown, (words, None)]:
        parts = [before["report"], before["request"]]
        if reply is not None and words["past"] is not None:
            parts.pop()
        text = "\n\n".join(filter(None, parts)) or "It is your move."
        chat.append({"role": "user", "content": text})
        if reply is not None:
            chat.append({"role": "assistant", "content": reply})
    return chat


@pytest.mark.parametrize(("name", "more"), CHATS)
def test_words_in_parts_are_the_chat_of_a_model(name, more):
    """A model outside that has nothing but infos reads what `LLMPolicy` sends, to the letter."""
    game = lg.rules(name, **SETTINGS[name] | more)
    chats = []

    class Listening(Hashing):
        async def complete(self, request):
            completion = await super().complete(request)
            chats.append(([dict(message) for message in request.messages], completion.text))
            return completion

    model = LLMPolicy(Listening(), max_attempts=1)
    others = [RandomPolicy()] * (game.players - 1)
    lg.play(game, [model, *others], 5)
    env = lg.make(f"{name}-v0", form="aec", actions="text", words=True, **SETTINGS[name] | more)
    seats = {a: lg.sit(RandomPolicy(), env, a) for a in env.possible_agents[1:]}
    env.reset(seed=5)
    turns = []
    for agent in env.agent_iter():
        _, _, termination, truncation, info = env.last()
        if termination or truncation:
            env.step(None)
        elif agent in seats:
            env.step(seats[agent]())
        else:
            sent, reply = chats.pop(0)
            assert chat_of(info["words"], turns) == sent
            assert info["words"]["schema"]["type"] == "object"
            turns.append((info["words"], reply))
            env.step(reply)
    assert turns
    assert not chats


@pytest.mark.long
def test_the_page_of_loops_runs(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "notebooks" / "loops.md").read_text()
    cells = re.findall(r"^```\{code-cell\} python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(cells) == 6
    subprocess.run([sys.executable, "-c", "\n".join(cells)], cwd=tmp_path, check=True)
