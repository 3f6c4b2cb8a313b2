"""A game as tools of TRL: the words, payoffs and declared moves of play, and what is refused."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from playing import each_row

import llm_games as lg
from llm_games.errors import BadParameter, NotReady
from llm_games.game_rooms import ROOMS
from llm_games.noise import Noise
from llm_games.wrappers.clients.base import Completion
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.grpo_rollout import kept_whole
from llm_games.wrappers.guest_table import GuestSession, GuestTable
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.tool_rollout import OVER, GameTools

GOODS = {"players": 3, "rounds": 3}
FINE = '{"tokens_contributed": 1}'
TALK = {"talk_turns": 2, "talk_order": "shuffled"}


class Whim:
    """Answers what is legal, by chance, and every fourth time with rubbish or nothing."""

    name = "whim"

    def __init__(self):
        self.requests, self.replies = [], []

    async def complete(self, request):
        legal = request.question.reply(request.question.sample(Noise(request.seed)))
        self.requests.append(request)
        self.replies.append(["rubbish", "", legal, legal, legal][request.seed % 5])
        return Completion(self.replies[-1])

    async def close(self):
        pass


def tools(game="public_goods", **settings):
    settings = (GOODS if game == "public_goods" else {}) | settings
    return GameTools(game, **{"seat": 0, "opponents": lg.player("random"), **settings})


@each_row(("game", "more"), [(game, {}) for game in sorted(ROOMS)] + [("public_goods", TALK)])
def test_a_rollout_is_paid_what_play_pays_at_the_same_replies(game, more):
    """It reads all that a model in that seat would, and nothing twice."""
    env, whim = tools(game, max_steps=100, **more), Whim()
    rules = env._game
    seats = [LLMPolicy(whim, **kept_whole({"max_attempts": 1}))]
    seats += [lg.player("random")] * (rules.players - 1)
    payoffs = lg.play(rules, seats, seed=7, max_steps=100).payoffs
    texts = [env.reset(seed=7), *map(env.answer, whim.replies)]
    assert texts[-1] == f"The game is over. You got {payoffs[0]:g} in all."
    assert env.answer(FINE) == OVER
    assert env.get_reward() == payoffs[0]
    read = [m["content"] for m in whim.requests[-1].messages if m["role"] != "assistant"]
    if rules.core.shown_last == "all":
        assert " ".join(texts[:-1]).split() == " ".join(read).split()


@each_row("count", range(4))
def test_what_is_left_unfinished_is_played_with_declared_moves(count):
    env, replies = tools(), [FINE] * count + [""] * (3 - count)
    silent = LLMPolicy(ScriptedClient(replies), **kept_whole({"max_attempts": 1}))
    seats = [silent, *[lg.player("random")] * 2]
    env.reset(seed=3)
    for _ in range(count):
        env.answer(FINE)
    assert env.get_reward() == lg.play("public_goods", seats, seed=3, **GOODS).payoffs[0]
    assert env.answer(FINE) == OVER


def test_a_seat_rotates_with_the_seed_and_an_object_is_an_answer_too():
    env = tools(seat="rotate", opponents=None)
    env.reset(seed=5)
    assert env._session.seat.name == "2"
    assert "round 2" in env.answer(json.loads(FINE)).lower()


def test_numbers_are_as_the_game_counts_them():
    env = tools("bertrand_competition", opponents=lg.player("fixed:7.07"))
    env.reset(seed=1)
    env.answer('{"price": 12.19}')
    read = env._session.read()
    numbers = read["numbers"]
    assert (numbers["price_0"], numbers["price_1"], read["action"]) == (12.19, 7.07, 12.19)


def test_a_table_has_as_many_seats_outside_as_were_wanted():
    """Also before its game has begun; and no place for anybody whose part in it is over."""

    async def three():
        table = GuestTable(lg.rules("public_goods", **GOODS), [lg.player("random")], {}, seed=1)
        assert [await table.sit_down() for _ in "ab"] == [0, 1]
        with pytest.raises(BadParameter, match="no seat is free at this table"):
            await table.sit_down()
        session = GuestSession(table.seats[1])
        await session.seat.wait(None)
        assert session.read()["asked"]
        table.leave(0)
        table.seats[0].end({})
        with pytest.raises(BadParameter, match="no seat is free"):
            await table.sit_down(0)
        table.stop()

    asyncio.run(three())


def test_what_cannot_be_is_refused():
    with pytest.raises(NotReady, match="never reset"):
        tools().answer(FINE)
    with pytest.raises(BadParameter, match="let GameRollout play groups together"):
        tools().reset(seed=1, table="one", prompt=[])
    with pytest.raises(BadParameter, match='a column "seed"'):
        tools().reset(prompt=[])
    with pytest.raises(BadParameter, match="seed must be"):
        tools().reset(seed=-1)
    with pytest.raises(BadParameter, match="max_steps must be"):
        tools(max_steps=0)
    with pytest.raises(BadParameter, match="learned from as a whole"):
        tools(player={"memory": "none"})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_training_of_the_documents_calls_its_tool_and_is_paid(monkeypatch, tmp_path):
    """Every reward is the payoff of a whole game of its own, and all calls are read."""
    pytest.importorskip("trl")
    page = (Path(__file__).parents[1] / "docs" / "notebooks" / "openenv.md").read_text()
    code = page.partition("# tools/train.py\n")[2].partition("\n```")[0]
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    monkeypatch.setattr(sys, "argv", ["tools/train.py", "120", "1"])
    monkeypatch.chdir(tmp_path)
    paid = []
    rewarded = GameTools.get_reward
    monkeypatch.setattr(GameTools, "get_reward", lambda env: paid.append(rewarded(env)) or paid[-1])
    names = {}
    exec(compile(code, "tools/train.py", "exec"), names)
    log = names["trainer"].state.log_history[0]
    assert float(log["tools/call_frequency"]) > 2
    assert float(log["tools/failure_frequency"]) == 0
    assert len(paid) == 8
    assert float(log["reward"]) == pytest.approx(sum(paid) / 8, rel=1e-3)
