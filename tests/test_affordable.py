"""Language models as opponents that a learner can afford: samples, budgets, what is known."""

import asyncio
import itertools
import json
import os
import pickle
import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from fault_server import FaultServer, completion
from playing import of_three

import llm_games as lg
from llm_games import game_rooms as rooms
from llm_games.errors import BadParameter, UnknownName
from llm_games.noise import Noise
from llm_games.questions import Integer
from llm_games.registry import rulebook
from llm_games.view import NOBODY, Sight, Who
from llm_games.wrappers.clients.base import Completion, Request, Sampling
from llm_games.wrappers.clients.budget import Budget, BudgetExceeded
from llm_games.wrappers.clients.cache import EDITION, CacheError, ReplyCache
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.clients.stack import Shared, add_layers, ledger_of
from llm_games.wrappers.policy import RandomPolicy, cells_of
from llm_games.wrappers.single_agent import SingleAgentEnv
from llm_games.wrappers.situations import knowledge
from llm_games.wrappers.together import at_once
from llm_games.wrappers.vector_env import GameVectorEnv

GOODS = {"players": 3, "rounds": 4}


def contributed(body):
    return completion(
        json.dumps({"tokens_contributed": random.Random(body["seed"]).randint(0, 20)})
    )


def asking(number=0, step=0, seat=0, seed=1, temperature=1.0, call=0, view=None):
    who = Who("dice", seed, step, seat, call, seed)
    text = ({"role": "system", "content": "Dice."}, {"role": "user", "content": f"Now {number}?"})
    sampling = Sampling(temperature=temperature)
    return Request(text, Integer("bid", 0, 9), sampling=sampling, seed=seat, who=who, view=view)


def numbered(**layers):
    """Return a dressed client whose n-th call is answered with n, and what it was asked."""
    seen = []

    async def script(request):
        await asyncio.sleep(0)
        seen.append(request)
        return Completion(f'{{"bid": {len(seen)}}}', tokens_in=9, tokens_out=1)

    return add_layers(ScriptedClient(script, "m"), **layers), seen


def complete(client, *requests):
    async def go():
        return await asyncio.gather(*map(client.complete, requests))

    return [found.text for found in asyncio.run(go())]


# -- samples -----------------------------------------------------------------------------------


def test_a_situation_has_so_many_replies_and_no_more(tmp_path):
    client, seen = numbered(samples=4, cache=tmp_path / "replies.db")
    found = [
        complete(client, asking(step=step, seed=seed))[0] for seed in (1, 2) for step in range(30)
    ]
    assert len(seen) == len({*found}) == 4
    assert (client.hits, client.misses, ledger_of(client).total.calls) == (56, 4, 4)
    assert min(found.count(reply) for reply in {*found}) > 5
    complete(client, asking(1))
    assert len(seen) == 5  # another situation


def test_what_is_drawn_hangs_on_episode_step_and_rank_alone(tmp_path):
    places = itertools.product((1, 2), range(9), (0, 1))
    requests = [asking(step=step, seat=seat, seed=seed) for seed, step, seat in places]
    client, _ = numbered(samples=8, cache=tmp_path / "replies.db")
    first = complete(client, *requests)
    again, seen = numbered(samples=8, cache=tmp_path / "replies.db")
    others = [replace(one, who=one.who._replace(seat=one.who.seat + 5), seed=7) for one in requests]
    assert complete(again, *requests) == first == complete(again, *others)
    assert not seen
    same = [a == b for a, b in zip(first[::2], first[1::2], strict=True)]
    assert sum(same) < 9  # two seats that ask the same at once draw one each


def test_the_seed_that_is_sent_is_the_situations(tmp_path):
    """Whoever asks first, a draw of a situation is asked for with the same sampling seed."""
    sent = []
    for order in (1, -1):
        client, seen = numbered(samples=3, cache=tmp_path / f"replies{order}.db")
        complete(client, *[asking(step=step) for step in range(12)][::order])
        sent.append({request.seed for request in seen})
    assert sent[0] == sent[1]
    assert len(sent[0]) == 3
    assert all(0 <= seed < 2**31 for seed in sent[0])


def test_a_reask_is_drawn_like_the_decision_it_is_part_of(tmp_path):
    client, _ = numbered(samples=64, cache=tmp_path / "replies.db")
    complete(client, asking(seat=0), asking(seat=1))
    for call in (1, 2):
        complete(client, asking(number=call, seat=1, call=call))
        assert client.asked_by(Who("dice", 1, 0, 1)).rank == 1
    assert client.asked_by(Who("dice", 1, 1, 1)) is None


def test_a_share_is_asked_for_anew_and_takes_the_place(tmp_path):
    client, seen = numbered(samples=2, fresh=0.25, cache=tmp_path / "replies.db")
    found = [complete(client, asking(step=step))[0] for step in range(200)]
    assert 30 < len(seen) < 75
    assert len({request.seed for request in seen}) == len(seen)
    for step, text in enumerate(found[1:], 1):
        calls = int(json.loads(text)["bid"])
        assert calls <= len(seen)
        assert found.index(text) <= step
    kept = [json.loads(text)["bid"] for text in found[-10:]]
    assert min(kept) > len(seen) - 25  # what was kept at the start is gone
    assert client.hits + client.misses == 200


def test_at_temperature_0_one_reply_is_all_there_is(tmp_path):
    client, seen = numbered(samples=4, fresh=0.5, cache=tmp_path / "replies.db")
    complete(client, *(asking(step=step, temperature=0.0) for step in range(9)))
    assert len(seen) == 1


def test_a_file_of_a_later_version_is_left_alone(tmp_path):
    path = tmp_path / "replies.db"
    ReplyCache(path).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {EDITION + 1}")
    with pytest.raises(CacheError, match="later version"):
        ReplyCache(path)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (EDITION + 1,)


def test_several_may_begin_a_file_at_the_same_time(tmp_path):
    for number in range(12):
        with ThreadPoolExecutor(8) as pool:
            files = [*pool.map(ReplyCache, [tmp_path / f"{number}.db"] * 8)]
        assert [file.contents() for file in files] == [[]] * 8
        for file in files:
            file.close()


def test_what_is_known_at_temperature_0_is_kept_in_mind(tmp_path):
    """Then no reply is looked up or read again either, and none counts as near."""
    with FaultServer(reply=contributed) as server:
        layers = {"cache": tmp_path / "replies.db", "samples": 4, "fresh": 0.5}
        client = {"base_url": server.url, "nearest": True, "budget": {"calls": 2}} | layers
        player = lg.player("openai:m", client=client, memory="none", temperature=0.0)
        for _ in range(2):
            rollout(GameVectorEnv("public_goods", 4, opponents=player, **GOODS), 1)
        looked, cache = [], player.client
        complete, cache.complete = cache.complete, lambda request: looked.append(request)
        rollout(GameVectorEnv("public_goods", 4, opponents=player, **GOODS), 1)
        cache.complete = complete
        assert (len(server.seen), looked, cache.near) == (1, [], 0)
        assert cache.hits == 3 * 8 - 1


def test_outside_of_games_the_seed_is_the_draw(tmp_path):
    client, seen = numbered(samples=4, cache=tmp_path / "replies.db")
    requests = [replace(asking(), who=NOBODY, seed=seed) for seed in (0, 1, 4, 5)]
    complete(client, *requests)
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ({"samples": 0}, "samples must be an integer of at least 1, got 0"),
        ({"samples": 2, "fresh": 1.5}, "fresh must be a share from 0 to 1, got 1.5"),
        ({"fresh": 0.1}, "set samples"),
        ({"nearest": True}, "set samples"),
        ({"samples": 2, "cache": False}, "samples are kept in a cache"),
        ({"budget": {"calls": -1}}, "budget of calls must be an integer of at least 0, got -1"),
        ({"budget": {"call": 1}}, "did you mean 'calls'"),
        ({"budget": 7}, "by name"),
        ({"budget": {"calls": 1}, "shared": Shared()}, "leave one out"),
    ],
)
def test_settings_that_cannot_be(layers, said, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises((BadParameter, UnknownName), match=said):
        numbered(**layers)


# -- a budget that ends --------------------------------------------------------------------------


def test_what_is_known_is_served_when_the_budget_has_ended(tmp_path):
    layers = {"samples": 4, "cache": tmp_path / "replies.db"}
    complete(numbered(**layers)[0], *(asking(step=step) for step in range(3)))
    client, seen = numbered(**layers, budget={"calls": 0}, fresh=0.9)
    found = complete(client, *(asking(step=step) for step in range(40)))
    assert not seen
    assert {*found} <= {'{"bid": 1}', '{"bid": 2}', '{"bid": 3}'}
    with pytest.raises(BudgetExceeded, match=r"calls = 0, has 0 spent.*nearest"):
        complete(client, asking(1))
    assert (client.hits, client.misses, client.near) == (40, 0, 0)


class Goods:
    """Opponents of public goods with a few replies a situation, behind a real server."""

    def __init__(self, url, folder, **layers):
        keeping = {"samples": 2, "cache": folder / "replies.db"} | layers
        client = {"base_url": url, "max_wait": 5, **keeping}
        self.player = lg.player("openai:m", client=client, memory="none")
        self.cache = self.player.client
        self.ledger = ledger_of(self.cache)

    def env(self, copies=4, game="public_goods", **more):
        return GameVectorEnv(game, copies, opponents=self.player, **(GOODS | more))


def rollout(env, steps, seed=1):
    noise, told = np.random.default_rng(0), [env.reset(seed=seed)[0]]
    infos = []
    for _ in range(steps):
        actions = noise.integers(0, 21, env.num_envs)
        observation, rewards, _, _, info = env.step(actions)
        told += [observation, rewards]
        infos.append(info)
    return told, infos


def test_the_situations_that_copies_share_are_asked_once(tmp_path):
    """In the first round all seats of all copies are in one situation each."""
    with FaultServer(reply=contributed) as server:
        goods = Goods(server.url, tmp_path)
        rollout(goods.env(16), 1)
        assert len(server.seen) <= 4
        assert goods.cache.hits + goods.cache.misses == 32
        assert goods.ledger.total.calls == goods.cache.misses == len(server.seen)


def test_a_warm_cache_asks_nobody_and_plays_the_same(tmp_path):
    with FaultServer(reply=contributed) as server:
        first, infos = rollout(Goods(server.url, tmp_path).env(), 12)
        calls = len(server.seen)
        again = Goods(server.url, tmp_path, budget={"calls": 0})
        same, _ = rollout(again.env(), 12)
        assert len(server.seen) == calls
    assert all(map(np.array_equal, first, same))
    assert again.ledger.total.calls == again.cache.misses == 0
    assert again.cache.hits == 4 * 2 * 12 - 4 * 2 * 2  # two steps start the copies again
    assert 0 < calls < again.cache.hits
    assert infos[0]["opponents"]["valid"].tolist() == [2] * 4


def test_a_batch_is_a_loop(tmp_path):
    """All copies at once, and one after another without any batch, are served the same."""
    with FaultServer(reply=contributed) as server:
        together, _ = rollout(Goods(server.url, tmp_path, samples=3).env(3), 4)
        for copy in range(3):
            player = Goods(server.url, tmp_path, samples=3).player
            env = SingleAgentEnv("public_goods", opponents=player, **GOODS)
            noise, told = np.random.default_rng(0), [env.reset(seed=1 + copy)[0]]
            for _ in range(4):
                told += env.step(noise.integers(0, 21, 3)[copy])[:2]
            for one, all_ in zip(told, together, strict=True):
                assert np.array_equal(one, all_[copy])


def test_a_budget_that_ends_stops_with_its_name_and_loses_nothing(tmp_path):
    with FaultServer(reply=contributed) as server:
        goods = Goods(server.url, tmp_path, samples=4, budget={"calls": 9})
        env = goods.env()
        with pytest.raises(BudgetExceeded, match="calls = 9, has 9 spent") as stopped:
            rollout(env, 12)
        assert stopped.value.limit == "calls"
        assert len(server.seen) == 9
        with pytest.raises(BudgetExceeded):
            env.step(np.zeros(4, int))
        goods.ledger.allow(Budget(calls=1000))
        before, calls = env.tables.steps.copy(), len(server.seen)
        env.step(np.zeros(4, int))
        assert (env.tables.steps == before + 1).all()
        assert len(server.seen) > calls


def test_the_nearest_known_situation_answers_once_the_budget_has_ended(tmp_path):
    with FaultServer(reply=contributed) as server:
        goods = Goods(server.url, tmp_path, samples=4, budget={"calls": 12}, nearest=True)
        told, infos = rollout(goods.env(), 12)
        assert len(server.seen) == goods.cache.misses == 12
        assert goods.cache.near > 0
        assert goods.cache.near + goods.cache.hits + 12 == 80
        assert sum(info["opponents"]["valid"].sum() for info in infos if "opponents" in info) == 80
        # Who may ask nobody plays by what was kept, every time the same.
        kept = {"samples": 4, "nearest": True, "budget": {"calls": 0}}
        again = [rollout(Goods(server.url, tmp_path, **kept).env(), 12)[0] for _ in range(2)]
        assert len(server.seen) == 12
    assert all(map(np.array_equal, *again))
    assert all(np.isfinite(one).all() for one in told)


def test_only_replies_of_the_same_rules_and_question_are_near(tmp_path):
    with FaultServer(reply=contributed) as server:
        rollout(Goods(server.url, tmp_path).env(), 4)
        for change in ({"rounds": 5}, {"tokens": 19}):
            other = Goods(server.url, tmp_path, budget={"calls": 0}, nearest=True)
            with pytest.raises(BudgetExceeded, match="calls = 0"):
                rollout(other.env(**change), 1)


def test_what_is_nearest_is_served():
    """A seat that contributed 20 is answered as one that contributed 19, not as one with 0."""
    game = rulebook("public_goods", **GOODS)

    def request(own, view=True):
        state, _ = game.step(game.reset(0), np.array([own, 5, 5]))
        return asking(own, step=1, view=Sight(game, state).view(0) if view else None)

    with TemporaryDirectory() as folder:
        layers = {"samples": 1, "nearest": True, "budget": {"calls": 2}}
        client, _ = numbered(**layers, cache=f"{folder}/replies.db")
        assert complete(client, request(0), request(19)) == ['{"bid": 1}', '{"bid": 2}']
        assert complete(client, request(20), request(2)) == ['{"bid": 2}', '{"bid": 1}']
        assert client.near == 2
        with pytest.raises(BudgetExceeded):
            complete(client, request(3, view=False))


@pytest.mark.parametrize("fault", ["refusal", "too long", "no text"])
def test_what_is_no_answer_is_never_kept(fault, tmp_path):
    """Nothing but whole replies fills the samples, however often the model declines."""
    with FaultServer(lambda body, number: fault if number % 3 == 0 else "ok") as server:
        goods = Goods(server.url, tmp_path)
        rollout(goods.env(), 5)
        kept = sum(row.replies for row in goods.cache.file.contents())
        assert kept == server.served["ok"]


# -- what seats see names their situation ----------------------------------------------------------


@pytest.mark.parametrize("name", sorted(rooms.ROOMS))
def test_who_sees_the_same_is_told_and_asked_the_same(name):
    """Decisions are looked up by exact numbers: these must tell apart all that words do."""
    several = {"rounds": 12} if rulebook(name).length() == 1 else {}
    game, seen = rulebook(name, **of_three(name), **several), {}
    seeds = np.arange(40)
    state = game.reset(Noise(seeds.astype(np.uint64)), (40,))
    for step in range(12):
        sight = Sight(game, state, Who(name, seeds, np.full(40, step), seed=seeds))
        where = sight.turn
        policy = RandomPolicy()
        memory = policy.start_batch(game, where, np.broadcast_to(seeds + step, where.shape))
        for (seat, table), row in zip(cells_of(where), knowledge(sight, where), strict=True):
            view = sight.table(table).view(seat)
            words = repr((view.told, view.question))
            assert seen.setdefault((seat, row), words) == words
        decided, _ = at_once(policy.decide_batch(sight, where, memory))
        state, _ = game.step(state, decided.actions)
    assert len(seen) > 10


# -- processes -------------------------------------------------------------------------------------


def test_a_player_with_samples_survives_pickle(tmp_path):
    with FaultServer(reply=contributed) as server:
        goods = Goods(server.url, tmp_path)
        first, _ = rollout(goods.env(), 4)
        copied = pickle.loads(pickle.dumps(goods.player))
        env = GameVectorEnv("public_goods", 4, opponents=copied, **GOODS)
        calls = len(server.seen)
        assert all(map(np.array_equal, first, rollout(env, 4)[0]))
        assert len(server.seen) == calls


def test_a_forked_process_opens_the_file_anew(tmp_path):
    file = ReplyCache(tmp_path / "replies.db")
    key = b"k" * 32
    file.put(key, "", "m", Completion("yes"))
    mine, theirs = os.pipe()
    if not (child := os.fork()):
        found = file.get(key)
        os.write(theirs, (found.text if found else "none").encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(mine, 9) == b"yes"
    os.close(mine), os.close(theirs)
    assert file.get(key).text == "yes"
    file.close()


# -- training --------------------------------------------------------------------------------------


def trained(env, algorithm="PPO", **settings):
    import stable_baselines3

    small = {"device": "cpu", "seed": 1, "policy_kwargs": {"net_arch": [4]}}
    if algorithm == "PPO":
        small |= {"n_steps": 4, "batch_size": 8, "n_epochs": 1}
    return getattr(stable_baselines3, algorithm)("MlpPolicy", env, **(small | settings))


@pytest.mark.slow
def test_a_training_whose_budget_ends_is_saved_and_goes_on(tmp_path):
    from stable_baselines3 import PPO
    from stable_baselines3.common.logger import KVWriter, Logger
    from stable_baselines3.common.vec_env import VecNormalize

    from llm_games.wrappers.sb3 import SB3VecEnv
    from llm_games.wrappers.sb3_log import OpponentLog

    class Kept(KVWriter):
        def __init__(self):
            self.rows = []

        def write(self, key_values, key_excluded, step=0):
            self.rows.append(dict(key_values))

        def close(self):
            """Nothing is open."""

    with FaultServer(reply=contributed) as server:
        goods = Goods(server.url, tmp_path, budget={"calls": 30})
        model, kept = trained(VecNormalize(SB3VecEnv(goods.env()))), Kept()
        model.set_logger(Logger(None, [kept]))
        log = OpponentLog(goods.player, tmp_path / "saved")
        with pytest.raises(BudgetExceeded) as stopped, log:
            model.learn(10_000, callback=log)
        assert f"(saved after {model.num_timesteps} steps" in stopped.value.__notes__[-1]
        row = next(row for row in kept.rows if "opponents/calls" in row)
        assert 0 < row["opponents/calls"] <= 30
        assert row["opponents/calls"] + row["opponents/hits"] == 4 * 4 * 2
        assert row["opponents/tokens_out"] == 10 * row["opponents/calls"]
        assert row["opponents/hit_rate"] == row["opponents/hits"] / 32

        # Another process, with more to spend: what was spent counts.
        more = Goods(server.url, tmp_path, budget={"calls": 50})
        env = VecNormalize.load(tmp_path / "saved" / "normalizer.pkl", SB3VecEnv(more.env()))
        log = OpponentLog(more.player, tmp_path / "saved")
        again = PPO.load(log.model_file, env)
        before = again.num_timesteps
        assert before == model.num_timesteps > 0
        pairs = zip(model.policy.parameters(), again.policy.parameters(), strict=True)
        assert all((one == other).all() for one, other in pairs)
        with pytest.raises(BudgetExceeded), log:
            again.learn(10_000, callback=log, reset_num_timesteps=False)
        assert again.num_timesteps > before
        assert len(server.seen) == more.ledger.total.calls == 50

        # And on without asking anybody, by the nearest situations that are known.
        last = Goods(server.url, tmp_path, budget={"calls": 50}, nearest=True)
        env = VecNormalize.load(tmp_path / "saved" / "normalizer.pkl", SB3VecEnv(last.env()))
        with OpponentLog(last.player, tmp_path / "saved") as log:
            again = PPO.load(log.model_file, env)
            again.learn(64, callback=log, reset_num_timesteps=False)
        assert len(server.seen) == 50
        assert last.cache.near > 0


@pytest.mark.slow
def test_what_was_spent_counts_where_opponents_move_first(tmp_path):
    """They are asked before a training begins; that is no reason to forget what it had spent."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecMonitor

    from llm_games.wrappers.sb3 import SB3VecEnv
    from llm_games.wrappers.sb3_log import OpponentLog

    with FaultServer(reply=lambda body: completion('{"target": null}')) as server:
        for calls in (12, 30):
            goods = Goods(server.url, tmp_path, budget={"calls": calls})
            game = {"game": "battle_royale", "players": 3}
            env = SB3VecEnv(lg.learners(**game, num_envs=2, opponents=goods.player, seat=2))
            log = OpponentLog(VecMonitor(env), tmp_path / "saved")
            if calls == 12:
                model = PPO("MultiInputPolicy", env, n_steps=8, batch_size=16, seed=1)
            else:
                model = PPO.load(log.model_file, env)
            for _ in range(2):  # again by the same books: nothing counts twice
                with pytest.raises(BudgetExceeded), log:
                    model.learn(1000, callback=log, reset_num_timesteps=False)
            assert len(server.seen) <= goods.ledger.total.calls == 30 - 18 * (calls == 12)
        assert 12 < len(server.seen) <= 30 + 12


@pytest.mark.slow
def test_books_that_are_not_the_trainings_are_refused(tmp_path):
    from llm_games.wrappers.sb3 import SB3VecEnv
    from llm_games.wrappers.sb3_log import OpponentLog

    with FaultServer(reply=contributed) as server:
        goods = Goods(server.url, tmp_path, budget={"calls": 4})
        model = trained(SB3VecEnv(goods.env()), "DQN", learning_starts=8)
        with pytest.raises(BudgetExceeded), OpponentLog(goods.env(), tmp_path) as log:
            model.learn(1000, callback=log)
        assert (tmp_path / "replay_buffer.pkl").is_file()
        model.num_timesteps = 1
        with pytest.raises(BadParameter, match="an environment with some, or policies"):
            OpponentLog(tmp_path)
        with pytest.raises(BadParameter, match="books of 1 budgets, and the opponents have 0"):
            model.learn(8, callback=OpponentLog([], tmp_path), reset_num_timesteps=False)
