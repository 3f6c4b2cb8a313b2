"""A language model as a player: what it is sent, what it remembers, how it is asked again."""

import asyncio
import copy
import dataclasses
import multiprocessing
import os
import pickle
import warnings

import numpy as np
import pytest
from playing import each_row

from llm_games.benchmarks.run.config import PlayerSettings
from llm_games.errors import BadParameter, NotReady, UnknownName
from llm_games.games.english_auction.rules import EnglishAuction
from llm_games.games.public_goods.rules import PublicGoods
from llm_games.questions import MISSING, Integer
from llm_games.view import View, Who
from llm_games.words import Prompts
from llm_games.wrappers.clients.base import Client, ClientError, Completion, Sampling
from llm_games.wrappers.clients.cache import Cache, ReplyCache
from llm_games.wrappers.clients.recorded import RecordedClient
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.dialogue import NOTHING_NEW, ChatMemory
from llm_games.wrappers.llm_policy import MOST_ATTEMPTS, LLMPolicy, seeds
from llm_games.wrappers.play import play as play_game

GAME = PublicGoods(players=3, rounds=5)


def views(game=GAME, seat=0, others=(3, 4)):
    """Yield a seat's view of each round; the generator is sent the seat's own action."""
    rng = np.random.default_rng(0)
    state = game.reset(int(rng.integers(2**31)))
    while not state.over:
        own = yield View.of(game, state, seat)
        actions = np.array([own if own != MISSING else MISSING, *others])
        state = game.step(state, actions)[0]


def play(policy, game=GAME, rounds=None):
    memory, decisions = policy.start(game, 0, seed=7), []
    table = views(game)
    view = next(table)
    for _ in range(rounds or game.rounds):
        decision, memory = policy.act(view, memory)
        decisions.append(decision)
        try:
            view = table.send(decision.action)
        except StopIteration:
            break
    return decisions, memory


def five(request):
    return '{"tokens_contributed": 5}'


def chats(decisions):
    return [decision.attempts[-1].messages for decision in decisions]


def test_the_first_chat_is_rules_and_request():
    policy = LLMPolicy(ScriptedClient(five))
    (decision,), _ = play(policy, rounds=1)
    prompts, view = Prompts("public_goods"), next(views())
    assert decision.action == 5
    assert decision.outcome == "valid"
    assert decision.attempts[0].messages == (
        {"role": "system", "content": prompts.rules(GAME, 0)},
        {"role": "user", "content": prompts.request(view)},
    )


def test_without_notices_a_dialogue_has_reports_and_own_answers_but_no_old_requests():
    decisions, _ = play(LLMPolicy(ScriptedClient(five), notices=False))
    chat = chats(decisions)[2]
    assert [m["role"] for m in chat] == ["system", *["user", "assistant"] * 2, "user"]
    assert chat[1]["content"] == NOTHING_NEW
    assert chat[2]["content"] == chat[4]["content"] == '{"tokens_contributed": 5}'
    assert chat[3]["content"].startswith("Result of round 1")
    assert "Answer only" not in chat[3]["content"]
    assert chat[5]["content"].startswith("Result of round 2")
    assert "Round 3 of 5" in chat[5]["content"]


@each_row(("memory", "turns"), [("full", 4), (9, 4), (2, 2), (1, 1), (0, 0), ("none", 0)])
def test_memory_is_the_number_of_past_decisions_in_the_dialogue(memory, turns):
    decisions, kept = play(LLMPolicy(ScriptedClient(five), memory=memory))
    chat = chats(decisions)[-1]
    assert len(chat) == 2 + 2 * turns
    assert chat[-1]["content"].startswith("Result of round 4")
    assert len(kept.exchanges) <= turns + 1
    assert kept.decisions == 5


@each_row(("shown", "turns"), [("all", 4), (3, 2), (1, 0), (0, 0)])
def test_a_game_may_cap_how_many_past_rounds_are_shown(shown, turns):
    @dataclasses.dataclass(frozen=True)
    class Forgetful(PublicGoods):
        shown_last: int | str = "all"

    decisions, _ = play(LLMPolicy(ScriptedClient(five)), Forgetful(3, rounds=5, shown_last=shown))
    assert len(chats(decisions)[-1]) == 2 + 2 * turns


def test_persona_and_reasoning_reach_every_request():
    def reasoned(request):
        assert request.reasoning
        return '{"explanation": "because", "tokens_contributed": 5}'

    policy = LLMPolicy(ScriptedClient(reasoned), persona="selfish", reasoning=True)
    for chat in chats(play(policy)[0]):
        assert chat[0]["content"].startswith("You are greedy")
        assert "step by step" in chat[-1]["content"]
        assert "because" not in str(chat[:-1])


def test_a_persona_can_be_a_sentence():
    policy = LLMPolicy(ScriptedClient(five), persona="You are a pirate.")
    assert policy.start(GAME, 0, 1).system.startswith("You are a pirate.\n\n")


def test_a_bad_reply_is_asked_again_with_all_reasons_and_then_forgotten():
    replies = ["I keep all", '{"tokens_contributed": 21}', '{"tokens_contributed": 2}']
    policy = LLMPolicy(ScriptedClient([*replies, five(None)]), notices=False)
    (first, second), memory = play(policy, rounds=2)
    assert [a.outcome for a in first.attempts] == ["unparsable", "out_of_range", "valid"]
    assert [a.text for a in first.attempts] == replies
    assert first.action == 2
    base, second_ask, third_ask = (a.messages for a in first.attempts)
    assert len(base) == len(second_ask) == len(third_ask)
    assert second_ask[-1]["content"].startswith(base[-1]["content"])
    assert "no complete JSON object" in second_ask[-1]["content"]
    assert third_ask[-1]["content"].startswith(second_ask[-1]["content"])
    assert "21 is not" in third_ask[-1]["content"]
    assert "could not be used" not in str(second.attempts[0].messages)
    assert memory.exchanges[0].answer == '{"tokens_contributed": 2}'


def test_without_a_legal_reply_the_action_is_missing_and_no_answer_is_remembered():
    policy = LLMPolicy(ScriptedClient(lambda request: "no"), max_attempts=2)
    decisions, memory = play(policy, rounds=3)
    assert [d.action for d in decisions] == [MISSING] * 3
    assert [len(d.attempts) for d in decisions] == [2] * 3
    assert [t.answer for t in memory.exchanges] == [""] * 3
    chat = chats(decisions)[-1]
    assert [m["role"] for m in chat] == ["system", "user"]
    assert "Result of round 1" in chat[1]["content"]
    assert "You contributed 0." in chat[1]["content"]


def test_the_last_readable_action_is_kept_when_all_attempts_fail():
    replies = ['{"tokens_contributed": 30}', '{"tokens_contributed": 40}', "no"]
    (decision,), memory = play(LLMPolicy(ScriptedClient(replies)), rounds=1)
    assert decision.action == 40
    assert decision.outcome == "unparsable"
    assert memory.exchanges[0].answer == ""


@each_row(
    ("rules", "calls"),
    [*(({"max_reasks": n}, n + 1) for n in (0, 3)), ({"reask_limit": "unlimited"}, MOST_ATTEMPTS)],
)
def test_a_games_own_limit_on_replies_comes_first(rules, calls):
    game = EnglishAuction(players=2, **rules)
    policy = LLMPolicy(ScriptedClient(lambda request: '{"bid": 1}'), max_attempts=2)
    view = View.of(game, game.reset(0), 0)
    decision, _ = policy.act(view, policy.start(game, 0, 1))
    assert [a.detail for a in decision.attempts] == ["below_start"] * calls
    assert policy.attempts_in(GAME) == 2


class Pair(Integer):
    def holds(self, whole):
        return {"first", "second"} <= set(whole)

    def answer(self, whole):
        return {key: self.read(whole[key]) for key in ("first", "second")}


def test_other_questions_are_asked_in_the_same_way():
    replies = ['{"first": 1}', '{"first": 1, "second": 10}', '{"first": 1, "second": 2}']
    policy = LLMPolicy(ScriptedClient(replies), structured=False)
    memory, view = policy.start(GAME, 0, 7), next(views())
    asked = (view, memory, ["Which two?"], Pair("", 0, 9))
    answer = policy.ask(*asked, seeds=seeds(memory), max_attempts=5, kind="plan")
    reply, attempts, *_ = asyncio.run(answer)
    assert (reply.outcome, reply.action) == ("valid", {"first": 1, "second": 2})
    assert [a.outcome for a in attempts] == ["unparsable", "out_of_range", "valid"]
    assert {a.kind for a in attempts} == {"plan"}
    assert len({a.seed for a in attempts}) == 3
    assert attempts[0].messages[-1]["content"] == "Which two?"
    first, second = (attempt.messages[-1]["content"] for attempt in attempts[1:])
    assert second.startswith(f"{first}\n\nYour previous reply could not be used: 10 is not")


@each_row("transient", [True, False])
def test_a_call_without_a_completion_is_no_attempt(transient):
    """It takes no seed either: the same decision asked again asks the same."""
    seen = []

    def script(request):
        seen.append((request.messages, request.seed, request.who))
        if len(seen) in (1, 3):
            raise ClientError("the line is down", transient=transient)
        return "hm" if len(seen) == 2 else five(request)

    policy = LLMPolicy(ScriptedClient(script))
    memory, view = policy.start(GAME, 0, seed=7), next(views())
    with pytest.raises(ClientError, match="the line is down"):
        policy.act(view, memory)
    with pytest.raises(ClientError, match="the line is down"):
        policy.act(view, memory)
    decision, _ = policy.act(view, memory)
    assert [attempt.outcome for attempt in decision.attempts] == ["valid"]
    assert seen[0] == seen[1] == seen[3]


@each_row(
    ("script", "error", "says"),
    [
        (lambda request: 1 / 0, ZeroDivisionError, "division by zero"),
        ([], ClientError, "used up"),
        (lambda request: 5, ClientError, "not int"),
    ],
)
def test_an_error_in_the_script_comes_out_as_itself(script, error, says):
    with pytest.raises(error, match=says):
        play(LLMPolicy(ScriptedClient(script)), rounds=1)


@each_row(
    ("completion", "outcome"),
    [
        (Completion("", "refusal"), "refused"),
        (Completion('{"explanation": "we', "length"), "truncated"),
        (Completion('{"tokens_contributed": 5} and', "length"), "valid"),
    ],
)
def test_outcomes_come_from_the_completion(completion, outcome):
    (decision,), _ = play(LLMPolicy(ScriptedClient(lambda r: completion), max_attempts=1), rounds=1)
    assert decision.outcome == outcome


def test_attempts_carry_what_the_client_counted():
    answer = Completion(five(None), tokens_in=90, tokens_out=9, latency=0.25, model="m-1")
    (decision,), _ = play(LLMPolicy(ScriptedClient([answer])), rounds=1)
    attempt = decision.attempts[0]
    counted = (attempt.tokens_in, attempt.tokens_out, attempt.latency, attempt.model)
    assert counted == (90, 9, 0.25, "m-1")


def test_seeds_differ_by_seat_decision_and_attempt_and_repeat_with_the_memory():
    def seeds(seed):
        policy = LLMPolicy(ScriptedClient(lambda request: "no"))
        memory, found = policy.start(GAME, 0, seed), []
        for _ in range(3):
            decision, memory = policy.act(next(views()), memory)
            found += [a.seed for a in decision.attempts]
        return found

    assert seeds(1) == seeds(1)
    assert len({*seeds(1), *seeds(2)}) == 18
    assert all(0 <= seed < 2**31 for seed in seeds(2**80))


def test_settings_reach_the_request():
    seen = []

    async def keep(request):
        seen.append(request)
        return five(request)

    play(LLMPolicy(ScriptedClient(keep), temperature=0.2, max_tokens=99), rounds=1)
    play(LLMPolicy(ScriptedClient(keep), temperature=None, structured=False), rounds=1)
    first, second = seen
    assert first.sampling == Sampling(temperature=0.2, max_tokens=99)
    assert first.who == Who("public_goods")
    assert first.schema()["properties"]["tokens_contributed"]["maximum"] == 20
    assert (second.sampling, second.question) == (Sampling(temperature=None), None)


DRAWN = {"temperature": 0.3, "top_p": 0.4, "max_tokens": 7, "reasoning_effort": "low"}
DRAWN |= {"stop": ("END",), "extra_body": {"top_k": 5}}


@pytest.mark.parametrize("name", [one.name for one in dataclasses.fields(Sampling)])
def test_every_setting_of_sampling_reaches_whatever_asks(name, tmp_path):
    """A file of an experiment, the policy, the request, the cache's key and the attempt."""
    given = PlayerSettings(**{name: DRAWN[name]}).given()
    assert given == {name: DRAWN[name]}
    seen = []

    def keep(request):
        seen.append(request)
        return five(request)

    cache = Cache(ScriptedClient(keep), ReplyCache(tmp_path / "replies.db"), always=True)
    for policy in (LLMPolicy(cache, **given), LLMPolicy(cache, sampling=Sampling(**given))):
        (decision,), _ = play(policy, rounds=1)
        assert decision.attempts[0].sampling == Sampling(**given)
    play(LLMPolicy(cache), rounds=1)
    assert [request.sampling for request in seen] == [Sampling(**given), Sampling()]


def test_calls_are_counted_in_a_decision():
    seen = []

    def third(request):
        seen.append(request.who)
        return five(request) if len(seen) % 3 == 0 else "well"

    play_game(GAME, [LLMPolicy(ScriptedClient(third))] * 3, 9)
    assert sorted(seen) == sorted(set(seen))
    assert {who[:2] for who in seen} == {("public_goods", 9)}
    for step in range(GAME.rounds):
        for seat in range(3):
            calls = [who.call for who in seen if who[2:4] == (step, seat)]
            assert calls == list(range(len(calls)))


def test_one_policy_sits_on_many_seats_at_once():
    waiting = asyncio.Event

    async def run():
        together, here = waiting(), []

        async def answer(request):
            here.append(request.who)
            if len(here) == 3:
                together.set()
            await together.wait()
            return f'{{"tokens_contributed": {request.who.seat}}}'

        policy = LLMPolicy(ScriptedClient(answer))
        state = GAME.reset(0)
        asks = (
            policy.decide(View.of(GAME, state, seat), policy.start(GAME, seat, seat))
            for seat in range(3)
        )
        return [decision.action for decision, _ in await asyncio.gather(*asks)]

    assert asyncio.run(run()) == [0, 1, 2]


def test_act_works_inside_a_running_loop():
    policy = LLMPolicy(ScriptedClient(five))

    async def notebook():
        return policy.act(next(views()), policy.start(GAME, 0, 1))[0].action

    assert asyncio.run(notebook()) == 5


def test_a_script_may_ask_another_policy_and_wait_for_it():
    inner = LLMPolicy(ScriptedClient(five))

    def think(request):
        assert inner.act(next(views()), inner.start(GAME, 0, 1))[0].action == 5
        return five(request)

    assert play(LLMPolicy(ScriptedClient(think)), rounds=1)[0][0].action == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_can_play_too():
    play(LLMPolicy(ScriptedClient(five)), rounds=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside a thread
        process = multiprocessing.get_context("fork").Process(target=_play_in_a_child)
        process.start()
    process.join(20)
    alive = process.is_alive()
    process.kill()
    assert (alive, process.exitcode) == (False, 0)


def _play_in_a_child():
    assert play(LLMPolicy(ScriptedClient(five)), rounds=1)[0][0].action == 5


def test_cancelling_ends_a_decision():
    async def run():
        async def never(request):
            await asyncio.sleep(60)

        policy = LLMPolicy(ScriptedClient(never))
        task = asyncio.create_task(policy.decide(next(views()), policy.start(GAME, 0, 1)))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


def test_memory_is_a_value():
    _, memory = play(LLMPolicy(ScriptedClient(five)))
    assert isinstance(memory, ChatMemory)
    assert pickle.loads(pickle.dumps(memory)) == memory
    assert hash(memory)


def test_a_recorded_run_replays_without_a_model():
    numbers = iter(["a", 3, 30, 1, "b", "c", 2, 4, 0])
    policy = LLMPolicy(ScriptedClient(lambda r: f'{{"tokens_contributed": {next(numbers)}}}'))
    played, memory = play(policy)
    rows = [
        (a.messages, a.seed, Completion(a.text, model=a.model)) for d in played for a in d.attempts
    ]
    strip = [[dataclasses.replace(a, latency=0.0) for a in d.attempts] for d in played]
    again, same = play(LLMPolicy(RecordedClient(rows)))
    assert [list(d.attempts) for d in again] == strip
    assert same == memory


def test_a_prompt_never_recorded_is_a_clear_error():
    with pytest.raises(ClientError, match="none of the 0 recorded completions is for this prompt"):
        play(LLMPolicy(RecordedClient([])), rounds=1)


@each_row(
    ("argument", "error", "words"),
    [
        ({"memory": "some"}, BadParameter, '"full", "none" or a number'),
        ({"memory": -1}, BadParameter, "memory"),
        ({"memory": True}, BadParameter, "memory"),
        ({"max_attempts": 0}, BadParameter, "max_attempts"),
        ({"temperature": -1}, BadParameter, "temperature"),
        ({"extra_body": {"x": {1}}}, BadParameter, "JSON values"),
        ({"max_tokens": 0}, BadParameter, "max_tokens"),
        ({"reading": "lax"}, UnknownName, "strict"),
        ({"persona": "selfihs"}, UnknownName, "did you mean 'selfish'"),
    ],
)
def test_bad_arguments_are_refused_at_once(argument, error, words):
    with pytest.raises(error, match=words):
        LLMPolicy(ScriptedClient(five), **argument)


def test_other_misuse_is_refused():
    with pytest.raises(BadParameter, match="client"):
        LLMPolicy("gpt")
    with pytest.raises(UnknownName, match="v1"):
        LLMPolicy(ScriptedClient(five), prompts="v77").start(GAME, 0, 1)
    policy = LLMPolicy(ScriptedClient(five))
    view = copy.copy(next(views()))
    view.question = None
    with pytest.raises(NotReady, match="player_0 is not asked"):
        policy.act(view, policy.start(GAME, 0, 1))


def test_names_and_protocol():
    assert isinstance(ScriptedClient(five), Client)
    assert isinstance(RecordedClient([]), Client)
    assert LLMPolicy(ScriptedClient(five)).name == "scripted"
    assert LLMPolicy(ScriptedClient(five), name="me").name == "me"
