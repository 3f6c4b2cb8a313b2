"""One table: who is asked, what is drawn from the seed, and how it ends."""

import asyncio
import threading

import numpy as np
import pytest
from playing import IDS, SETTINGS, each_row

from llm_games.baselines.players import make_player
from llm_games.errors import BadParameter
from llm_games.questions import MISSING
from llm_games.registry import rulebook
from llm_games.wrappers.clients.base import ClientError
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play, play_table
from llm_games.wrappers.policy import Decision, Policy


class Plays(Policy):
    name = "plays"

    def __init__(self, *actions):
        self.actions = actions

    def start(self, game, seat, seed):
        return 0

    def act(self, view, memory):
        return Decision(self.actions[memory]), memory + 1


def summary(episode):
    return [
        ({seat: d.action for seat, d in step.decisions.items()}, step.outcome.rewards.tolist())
        for step in episode.steps
    ]


def test_a_game_step_by_step():
    seats = [Plays(1, 0), Plays(2, 2), Plays(0, MISSING)]
    episode = play("public_goods", seats, players=3, rounds=2, tokens=2, ratio="3/2")
    assert summary(episode) == [
        ({0: 1, 1: 2, 2: 0}, [2.5, 1.5, 3.5]),
        ({0: 0, 1: 2, 2: MISSING}, [3.0, 1.0, 3.0]),
    ]
    assert episode.payoffs.tolist() == [5.5, 2.5, 6.5]
    assert episode.steps[1].outcome.broke.tolist() == [False, False, True]
    assert [record["pot"] for record in episode.records] == [3, 2]
    assert (episode.over, episode.void) == (True, False)


@pytest.mark.crossing
@pytest.mark.parametrize(("name", "parameters"), SETTINGS, ids=IDS)
def test_the_seed_is_all_the_randomness_there_is(name, parameters):
    game = rulebook(name, **parameters)
    seats = [make_player("random")] * game.players
    first, again, *others = (play(game, seats, seed) for seed in (1, 1, *range(2, 8)))
    assert first.over
    assert summary(first) == summary(again)
    assert any(summary(first) != summary(other) for other in others)  # some games are short
    assert first.records == again.records


def test_only_seats_that_are_asked_decide():
    game = rulebook("battle_royale", players=3, max_shots=3, hit_rates=(0, 0, 0))
    episode = play(game, [Plays(-1)] * 3)
    assert [list(step.decisions) for step in episode.steps] == [[0], [1], [2]]


def test_all_seats_of_a_step_are_asked_at_the_same_time():
    game = rulebook("public_goods", players=4, rounds=2)
    waiting, most = 0, 0

    async def answer(request):
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0.01)
        waiting -= 1
        return '{"tokens_contributed": 1}'

    play(game, [LLMPolicy(ScriptedClient(answer))] * 4)
    assert most == 4


def test_a_seat_that_gets_no_completion_plays_nothing():
    game = rulebook("public_goods", players=2, rounds=3, tokens=10)
    with pytest.raises(ClientError, match="used up"):
        play(game, [LLMPolicy(ScriptedClient([])), make_player("fixed:4")])


@each_row("error", [ClientError("gone"), ZeroDivisionError("mine")])
@each_row("looking_back", [False, True])
def test_the_first_error_stops_all_seats_and_comes_out_as_itself(error, looking_back):
    """Nobody asks for anything afterwards: not the seats that wait, nor those that go on."""
    game, calls = rulebook("public_goods", players=4, rounds=1), []

    async def answer(request):
        seat = request.who.seat
        calls.append(seat)
        await asyncio.sleep((0.01, 0.02, 0, 5)[seat])
        if seat == 0:
            raise error
        return "no"  # so that another attempt follows

    async def go():
        with pytest.raises(type(error)) as caught:
            await play_table(game, [policy] * 4, 1)
        assert caught.value is error
        made = len(calls)
        await asyncio.sleep(0.03)
        assert len(calls) == made
        assert len(asyncio.all_tasks()) == 1

    policy = LLMPolicy(ScriptedClient(answer), max_attempts=100)
    if looking_back:
        policy = _LooksBack(policy)
    asyncio.run(go())
    assert sorted({*calls}) == [0, 1, 2, 3]
    assert calls.count(3) == calls.count(0) == 1


class _LooksBack(Policy):
    name = "looks back"

    def __init__(self, policy):
        self.policy = policy

    def start(self, game, seat, seed):
        return self.policy.start(game, seat, seed)

    def act(self, view, memory):
        self.first = {**getattr(self, "first", {}), view.seat: view}
        return Decision(0), memory

    async def finish(self, view, memory):
        return (await self.policy.decide(self.first[view.seat], memory))[0]


def test_a_step_is_reported_before_anybody_is_asked_again():
    game, log = rulebook("public_goods", players=2, rounds=2), []

    async def on_step(step):
        await asyncio.sleep(0)
        log.append(f"step {step.number}")

    def answer(request):
        log.append(f"asked {tuple(request.who)[:5]}")
        return '{"tokens_contributed": 1}'

    seats = [LLMPolicy(ScriptedClient(answer)), make_player("fixed:1")]
    asyncio.run(play_table(game, seats, 7, on_step=on_step))
    first, second = (f"asked ('public_goods', 7, {step}, 0, 0)" for step in (0, 1))
    assert log == [first, "step 0", second, "step 1"]


def test_it_can_be_called_where_an_event_loop_runs():
    async def notebook():
        return play("el_farol_bar", [make_player("random")] * 10, 3)

    asyncio.run(notebook())
    before = threading.active_count()
    assert asyncio.run(notebook()).over
    assert threading.active_count() <= before  # one loop serves all calls


def test_games_without_an_end_need_a_limit():
    game = rulebook("battle_royale", players=2, max_shots=None)
    with pytest.raises(BadParameter, match="give max_steps"):
        play(game, [Plays(-1)] * 2)
    episode = play(game, [Plays(*[-1] * 9)] * 2, max_steps=8)
    assert (len(episode.steps), episode.over) == (8, False)
    assert np.array_equal(episode.payoffs, [0, 0])


def test_a_void_run_ends():
    seats = [Plays(1, 1), Plays(1, MISSING)]
    episode = play("public_goods", seats, players=2, failed_reply="void_run")
    assert (len(episode.steps), episode.over, episode.void) == (2, True, True)


@each_row(
    ("arguments", "says"),
    [
        ({"policies": [Plays(1)] * 3}, "needs 10 policies, got 3"),
        ({"policies": [Plays(1)] * 10, "max_steps": 0}, "max_steps must be an integer"),
        ({"policies": [Plays(1)] * 10, "rounds": 2}, "'rounds': parameters go with a game's name"),
    ],
)
def test_arguments_are_checked(arguments, says):
    with pytest.raises(BadParameter, match=says):
        play(rulebook("public_goods"), **arguments)
