"""What a model's player remembers: windows, whole replies, notices, thoughts, and what to do when
the model takes no more."""

import asyncio
import copy
import dataclasses
import itertools
import json
import pickle
import time
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from fault_server import FaultServer, error, http
from fault_server import completion as answered
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import NAMES, SMALL, each_row, of_three

from llm_games.baselines.named_tools import tool_named
from llm_games.baselines.players import make_player, mind_of
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.store import Records, Store
from llm_games.benchmarks.run.conduct import RunStopped, play_run, start
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.benchmarks.run.replay import replay
from llm_games.benchmarks.run.resume import planned
from llm_games.errors import BadParameter
from llm_games.games.public_goods.rules import PublicGoods
from llm_games.noise import Noise
from llm_games.registry import game_class, rulebook
from llm_games.wrappers.clients.base import Chat, Completion, ContextOverflow
from llm_games.wrappers.clients.openai import OpenAIClient
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.dialogue import NOTHING_NEW, Dialogue, Exchange, joined
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.mind import Planning
from llm_games.wrappers.planning import PlanningPolicy
from llm_games.wrappers.play import play

GAME = PublicGoods(players=2, rounds=12)


def tokens(messages):
    return sum(len(message["content"]) for message in messages) // 4


def counted(text, request, **more):
    return Completion(text, tokens_in=tokens(request.messages), tokens_out=9, **more)


def five(request):
    if request.kind == "summary":
        return counted('{"summary": "Nobody gives much."}', request)
    return counted('{"tokens_contributed": 5}', request)


def table(answer, **settings):
    policy = LLMPolicy(ScriptedClient(answer), **settings)
    episode = play(GAME, [policy, make_player("fixed:3")], seed=4)
    return [step.decisions[0] for step in episode.steps]


def chats(decisions):
    return [list(decision.attempts[-1].messages) for decision in decisions]


def well_formed(chat):
    roles = [message["role"] for message in chat]
    turns = ["user", "assistant"] * len(roles)
    return roles == ["system", *turns[: len(roles) - 1]] and roles[-1] == "user"


# -- the persistent list ---------------------------------------------------------------------------

EXCHANGES = st.lists(
    st.builds(
        Exchange,
        st.text("ab", max_size=4),
        st.sampled_from(["", "x", "yy"]),
        st.sampled_from(["move", "move", "belief", "plan", "replan", "summary"]),
        st.sampled_from([(), (("assistant", "call"), ("user", "result"))]),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(EXCHANGES, st.text("c", max_size=3))
def test_a_dialogue_is_its_exchanges_in_order(exchanges, request):
    dialogue = Dialogue.of("rules", exchanges)
    assert list(dialogue) == exchanges
    assert len(dialogue) == len(exchanges)
    chat, heard = [{"role": "system", "content": "rules"}], []
    for told, answer, _, calls in exchanges:  # as it was always written
        heard.append(told)
        said = [*calls, ("assistant", answer)] if answer else [*calls]
        if said:
            chat.append({"role": "user", "content": joined(*heard) or NOTHING_NEW})
            heard = [] if answer else [said.pop()[1]]
            chat += [{"role": role, "content": content} for role, content in said]
    prompt = {"role": "user", "content": joined(*heard, request) or NOTHING_NEW}
    assert list(dialogue.prompt(request)) == [*chat, prompt]
    assert well_formed(dialogue.prompt(request))


@settings(max_examples=40, deadline=None)
@given(EXCHANGES, st.data())
def test_what_falls_out_is_the_oldest_but_never_the_plan_in_force(exchanges, data):
    dialogue = Dialogue.of("rules", exchanges)
    count = data.draw(st.integers(0, len(exchanges)))
    left = list(dialogue.without(count))
    plans = [e for e in exchanges if e.kind in ("plan", "replan")]
    assert [e for e in left if e.kind in ("plan", "replan")][-1:] == plans[-1:]
    assert left == exchanges or len(left) < len(exchanges)
    others = left if left == exchanges[len(exchanges) - len(left) :] else left[1:]
    assert others == exchanges[len(exchanges) - len(others) :]
    assert list(dialogue.first(count)) == exchanges[:count]


@settings(max_examples=40, deadline=None)
@given(EXCHANGES, st.integers(0, 12), st.integers(0, 60))
def test_windows_count_moves_and_bytes(exchanges, moves, size):
    dialogue = Dialogue.of("rules", exchanges)
    kept = exchanges[dialogue.over(moves) :]
    assert sum(e.kind == "move" for e in kept) == min(moves, dialogue.moves)
    kept = exchanges[dialogue.over(moves, size) :]
    assert sum(e.kind == "move" for e in kept) <= moves
    calls = sum(len(content) for e in kept for _, content in e.calls)
    assert sum(len(e.told) + len(e.answer) for e in kept) + calls <= size


@settings(max_examples=40, deadline=None)
@given(EXCHANGES)
def test_copies_of_a_dialogue_are_equal(exchanges):
    dialogue = Dialogue.of("rules", exchanges)
    for other in (pickle.loads(pickle.dumps(dialogue)), copy.deepcopy(dialogue)):
        assert other == dialogue
        assert hash(other) == hash(dialogue)
        assert other.prompt("?") == dialogue.prompt("?")
        assert other.plus(Exchange("a", "b")) != dialogue


def test_a_long_dialogue_can_be_pickled_and_let_go():
    dialogue = Dialogue.of("rules", [Exchange("what", "five")] * 20_000)
    assert pickle.loads(pickle.dumps(dialogue)) == dialogue


def test_one_more_exchange_shares_all_that_was_there():
    seen = []

    def keep(request):
        seen.append(request.messages)
        return five(request)

    table(keep)
    for old, new in pairwise(seen):
        assert new.before.before.before is old.before


# -- what is kept ----------------------------------------------------------------------------------


def test_whole_replies_are_kept_also_those_that_could_not_be_used():
    replies = ['I think: {"tokens_contributed": 2}', "no idea", '{"tokens_contributed": 4} it is.']
    answer = iter(replies * 9)
    found = chats(table(lambda r: next(answer), remember="replies", max_attempts=1))
    assert [m["content"] for m in found[3] if m["role"] == "assistant"] == replies
    assert all(map(well_formed, found))


@each_row("inside", [False, True])
def test_thoughts_are_dropped_or_handed_back(inside):
    text, thought = '{"tokens_contributed": 5}', "They will give nothing."

    def think(request):
        if inside:
            return f"<think>{thought}</think>\n{text}"
        return Completion(text, thoughts=thought)

    for remember in ("answers", "replies"):
        past = chats(table(think, remember=remember))[-1][2]
        assert past == {"role": "assistant", "content": text}
        past = chats(table(think, remember=remember, thoughts="keep"))[-1][2]
        assert past["content"] == f"<think>\n{thought}\n</think>\n\n{text}"


def test_with_notices_every_message_stays_as_it_was_sent():
    found = chats(table(five, notices=True, remember="replies"))
    for old, new in pairwise(found):
        assert new[: len(old)] == old
    assert "Round 1 of 12" in found[-1][1]["content"]


def as_sent(chat):
    return "".join(f"\n<{message['role']}>\n{message['content']}" for message in chat)


def restarts(game, make):
    """Return pairs of a seat's prompts of which the second does not begin with the whole first.

    And the number of all pairs. A reply in three is rubbish, often twice at a time; of those to
    whom tools are offered one in three calls one.
    """
    prompts = {seat: [] for seat in range(game.players)}

    class Chance(ScriptedClient):
        async def complete(self, request):
            prompts[request.who.seat].append(as_sent(request.messages))
            noise = Noise(sum(map(len, prompts.values())))
            if noise.of("rubbish").integers(0, 3) == 0:
                return Completion("No idea.")
            if hasattr(request.question, "alone") and noise.of("call").integers(0, 3) == 0:
                return Completion('{"tool": "best_response", "arguments": {}}')
            if request.kind == "summary":
                return Completion('{"summary": "Short."}')
            return Completion(request.question.reply(request.question.sample(noise)))

    play(game, [make(Chance(five))] * game.players, seed=3)
    pairs = [pair for by_seat in prompts.values() for pair in pairwise(by_seat)]
    return [pair for pair in pairs if not pair[1].startswith(pair[0])], len(pairs)


SHORT = {"rounds": 6, "days": 6, "window": 3, "max_shots": 6, "periods": 6}
"""Sizes of games that are played many times."""
ITEMS = {"english_auction": {"items": "items_5"}}
REMARKS = {"beauty_contest": "econ_arena", "budget_auction": "econ_arena"}
REMARKS["water_allocation"] = "alympics"
LIMITED = {"bertrand_competition": "request", "budget_auction": 0}
"""What games show of the past where it is not all: there a dialogue cannot only grow."""


def short(name, **more):
    known = {field.name for field in dataclasses.fields(game_class(name))}
    sizes = {key: value for key, value in SHORT.items() if key in known}
    sizes |= of_three(name) | ITEMS.get(name, {})
    remarks = {"remarks": REMARKS[name]} if name in REMARKS else {}
    return rulebook(name, **sizes | SMALL[name] | remarks | more)


def asked_by(client, planning=None, tools=True, **settings):
    settings |= {"tools": [tool_named("best_response")]} if tools else {}
    if planning is None:
        return LLMPolicy(client, **settings)
    return PlanningPolicy(client, Planning(planning, learning=True), mind_of, **settings)


@each_row("name", NAMES)
def test_each_prompt_begins_with_the_whole_of_the_one_before(name):
    game = short(name)
    assert game.shown_last == LIMITED.get(name, "all")
    anew, pairs = restarts(game, asked_by)
    assert pairs
    assert bool(anew) == (name in LIMITED)
    talk = {"talk": {"turns": 2}}
    anew, pairs = restarts(short(name, **talk), partial(asked_by, planning="adaptive"))
    assert (anew, pairs > 5) == ([], True)
    if name not in LIMITED:
        anew, pairs = restarts(short(name, **talk), partial(asked_by, notices=True))
        assert (anew, pairs > 2) == ([], True)


WINDOWS = [{"memory": memory} for memory in ("full", 2, 5)]
WINDOWS += [{"memory": 5, "overflow": "summarise"}]


@pytest.mark.nightly
def test_in_every_crossing_only_windows_and_rules_that_forget_break_the_chain(
    night, record_property
):
    every = [
        *itertools.product(
            NAMES,
            (f"v{number}" for number in range(1, 6)),
            WINDOWS,
            (None, "none", "static", "adaptive"),
            (0, 1, 2),
            (False, True),
            ({}, {"remember": "replies", "thoughts": "keep", "reasoning": True}),
        )
    ]
    noise = Noise(23)
    chosen = np.argsort(noise.random(len(every)))[: night(150, len(every))]
    broken = whole = 0
    for place in chosen.tolist():
        name, prompts, window, planning, turns, tools, kept = every[place]
        make = partial(asked_by, planning=planning, tools=tools, prompts=prompts, **window, **kept)
        anew, pairs = restarts(short(name, talk={"turns": turns}), make)
        forgets = planning is None and (name in LIMITED or turns)
        broken, whole = broken + len(anew), whole + pairs
        if window["memory"] == "full":
            assert not anew or forgets, every[place]
        elif not forgets:
            # A summary is a call of its own, and another begins with it.
            most = (2 if "overflow" in window else 1) * pairs / (window["memory"] / 2)
            assert len(anew) <= most, every[place]
    record_property("settings", len(chosen))
    record_property("calls", whole)
    record_property("begun anew", broken)


@each_row("moves", [1, 2, 3, 5, 8])
def test_of_a_window_of_k_moves_one_call_in_half_of_them_begins_anew(moves):
    decisions = table(five, memory=moves)
    prompts = [as_sent(chat) for chat in chats(decisions)]
    anew = [not new.startswith(old) for old, new in pairwise(prompts)]
    assert sum(anew[moves:]) <= len(anew[moves:]) / (moves / 2) + 1
    sizes = [(len(chat) - 2) // 2 for chat in chats(decisions)]
    assert max(sizes) == min(moves, len(decisions) - 1)
    assert min(sizes[moves:]) == -(-moves // 2)


def test_with_notices_what_tools_said_stays_too():
    found = chats(table(five, notices=True, tools=[tool_named("equilibrium:always")]))
    assert "The tool equilibrium says" in found[-1][1]["content"]


# -- windows ---------------------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(st.integers(250, 900), st.sampled_from(["answers", "replies"]), st.booleans())
def test_a_window_by_tokens_holds_what_fits(most, remember, notices):
    kept = {"remember": remember, "notices": notices, "memory_tokens": most}
    found = chats(table(five, **kept))
    full = chats(table(five, remember=remember, notices=notices))
    for chat, whole in zip(found, full, strict=True):
        assert well_formed(chat)
        assert tokens(chat) <= most or len(chat) == 2
        assert chat[1:] == whole[len(whole) - len(chat) + 1 :]  # the newest, without a gap
        assert len(chat) == len(whole) or tokens(whole) > most / 1.4


def test_summaries_stand_for_what_has_left_the_window():
    decisions = table(five, memory=4, overflow="summarise")
    summed = [d for d in decisions if d.attempts[0].kind == "summary"]
    assert 2 <= len(summed) <= 5
    for decision in decisions[5:]:
        chat = list(decision.attempts[-1].messages)
        assert chat[2]["content"] == '{"summary": "Nobody gives much."}'
        assert len(chat) <= 2 + 2 * 5
        assert well_formed(chat)
    asked = summed[0].attempts[0]
    assert asked.messages[-1]["content"].startswith("From here on you will not see")
    before = decisions[3].attempts[-1].messages
    assert list(asked.messages)[:5] == list(before)[:5]  # which a server has read before
    [note] = summed[0].notes
    assert note.kind == "memory"
    assert note.content == {
        "left_out": 3,
        "why": "the window is full",
        "summary": "Nobody gives much.",
    }


def test_without_a_summary_that_can_be_used_it_is_lost_and_said_so():
    def mute(request):
        return "Hm." if request.kind == "summary" else five(request)

    decisions = table(mute, memory=4, overflow="summarise", max_attempts=2)
    summed = [d for d in decisions if d.notes]
    assert [[a.kind for a in d.attempts] for d in summed] == [["summary"] * 2 + ["move"]] * 3
    assert [note.content["summary"] for d in summed for note in d.notes] == [None] * 3
    assert max(map(len, chats(decisions))) == 10


# -- a model that takes no more --------------------------------------------------------------------


def small(limit, kinds=("move", "summary")):
    def answer(request):
        if tokens(request.messages) > limit and request.kind in kinds:
            raise ContextOverflow(f"more than {limit} tokens")
        return five(request)

    return answer


@settings(max_examples=8, deadline=None)
@given(st.integers(300, 800), st.sampled_from(["shorten", "summarise"]), st.booleans())
def test_a_refused_prompt_is_asked_again_shorter_and_is_no_attempt(limit, overflow, known):
    context = limit if known else None
    decisions = table(small(limit), overflow=overflow, context=context)
    plain = table(five)
    cut = 0
    for decision, usual in zip(decisions, plain, strict=True):
        moves = [a for a in decision.attempts if a.kind == "move"]
        assert [(a.outcome, a.seed) for a in moves] == [("valid", usual.attempts[0].seed)]
        assert well_formed(moves[0].messages)
        assert tokens(moves[0].messages) <= limit
        for note in decision.notes:
            assert note.content["left_out"] >= 1
            assert ("context = " in note.content["why"]) == known
        cut += len(decision.notes)
    assert cut <= 12 if overflow == "shorten" else cut <= 30


def test_it_stops_unless_told_otherwise_and_names_the_ways_out():
    with pytest.raises(ContextOverflow, match=r"overflow = .*memory.*context"):
        table(small(300))
    with pytest.raises(ContextOverflow, match="does not fit into context = 310 beside"):
        table(five, context=310, max_tokens=10)
    with pytest.raises(ContextOverflow, match="a larger context"):  # nothing is left to forget
        table(small(20), overflow="shorten")


def test_what_surely_does_not_fit_is_never_sent():
    seen = []

    def keep(request):
        seen.append(tokens(request.messages))
        return five(request)

    table(keep, overflow="shorten", context=500, max_tokens=100)
    assert len(seen) == GAME.rounds
    assert max(seen) <= 400


def test_a_summary_that_does_not_fit_either_is_done_without():
    decisions = table(small(330, kinds=("move",)), overflow="summarise")
    assert any(note.content.get("summary") for d in decisions for note in d.notes)
    deaf = table(
        lambda r: small(0)(r) if r.kind == "summary" else small(300)(r), overflow="summarise"
    )
    notes = [note.content for d in deaf for note in d.notes]
    assert {note["summary"] for note in notes} == {None}
    assert {a.kind for d in deaf for a in d.attempts} == {"move"}


@each_row(
    ("argument", "words"),
    [
        ({"memory_tokens": 0}, "memory_tokens must be an integer of at least 1"),
        ({"memory_tokens": "many"}, "memory_tokens"),
        ({"remember": "all"}, "remember must be one of 'answers', 'replies'"),
        ({"notices": "yes"}, "notices must be one of False, True"),
        ({"thoughts": True}, "thoughts must be one of 'drop', 'keep'"),
        ({"overflow": "cut"}, "'stop', 'shorten', 'summarise'"),
        ({"context": -5}, "context"),
        ({"context": 500, "max_tokens": 500}, r"context \(500\) has no room beside max_tokens"),
    ],
)
def test_bad_settings_are_refused_at_once(argument, words):
    with pytest.raises(BadParameter, match=words):
        LLMPolicy(ScriptedClient(five), **argument)


def test_a_folder_of_prompts_without_a_summary_is_found_out_before_play(tmp_path):
    (tmp_path / "common.j2").write_text("{% block again %}{% endblock %}")
    settings = {"prompt_folder": str(tmp_path), "overflow": "summarise"}
    raw = {"games": [{"game": "public_goods"}], "player": settings}
    with pytest.raises(ConfigError, match="lacks the block 'summary'"):
        players(resolve(parse(raw, "test"), "test"))


# -- on a server, recorded -------------------------------------------------------------------------


class SmallServer(FaultServer):
    """Takes prompts of so many tokens, and counts which of them it has read before."""

    def __init__(self, limit=10**9):
        super().__init__(self._name)
        self.limit, self.calls, self.dead, self.refused_prompts = limit, 0, None, 0
        self.read = []  # prompts as texts
        self.cached = []  # letters of each prompt that were read before, and all
        self.replies = {}

    def _name(self, body, number):
        self.replies[str(number)] = self._reply(body)
        return str(number)

    def _reply(self, body):
        text = "\0".join(f"{m['role']}\1{m['content']}" for m in body["messages"])
        many, form = tokens(body["messages"]), body.get("response_format")
        if form is None:  # the greeting before a run
            return http(200, answered("Hello."))
        if many > self.limit:
            self.refused_prompts += 1
            said = f"This model's maximum context length is {self.limit} tokens"
            return http(400, error(said, code="context_length_exceeded"))
        if self.dead is not None and self.calls >= self.dead:
            return http(401, error("who are you"))
        self.calls += 1
        known = max((shared(text, other) for other in self.read), default=0)
        self.read.append(text)
        self.cached.append((known, len(text)))
        (key,) = form["json_schema"]["schema"]["properties"]
        value = body["seed"] % 20 if key == "tokens_contributed" else f"It is {body['seed']}."
        return http(200, answered(json.dumps({key: value}), usage={"prompt_tokens": many}))

    def _pieces(self, name, ok):
        return [self.replies.pop(name)]


def shared(one, other):
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def whole_run(path, server, resume=False, **settings):
    where = {"player": "openai:m", "base_url": server.url} if server else {}
    seat = where | settings
    game = {"game": "public_goods", "params": {"players": 2, "rounds": 12}}
    raw = {"episodes": 1, "seats": [seat, "fixed:3"], "games": [game], "max_tables": 1}
    plan = resolve(parse(raw, "test"), "test")
    if not resume:
        return play_run(lambda: start(plan, path), plan, players(plan))
    with Records.open_readonly(path) as records:
        plan = planned(records)
    return play_run(lambda: Store.open(path), plan, players(plan), resumed=True)


def content(path):
    with Records.open_readonly(path) as records:
        assert replay(records).differences == ()
        found = []
        for episode in records.episodes():
            for row in records.attempts(episode.id):
                kept = (row.step, row.number, row.kind, row.text, row.seed, row.outcome)
                found.append((*kept, records.messages(row.prompt)))
            found += records.notes(episode.id) + records.decisions(episode.id)
        return found


@pytest.mark.parametrize("overflow", ["shorten", "summarise"])
def test_a_server_of_a_small_context_recorded_resumed_and_replayed(tmp_path, overflow):
    """Stopped right after a refused prompt or a summary, a run goes on as if it never had been."""
    with SmallServer(limit=450) as server:
        whole_run(tmp_path / "whole.db", server, overflow=overflow)
        expected, calls = content(tmp_path / "whole.db"), server.calls
        assert server.refused_prompts >= 2
        kinds = {row.kind for row in expected if hasattr(row, "content")}
        assert kinds == {"overflow", "memory"}
        assert ("summary" in {row[2] for row in expected if isinstance(row, tuple)}) == (
            overflow == "summarise"
        )
        server.calls, server.dead, path = 0, 0, tmp_path / "stopped.db"
        for stop in (calls // 2, calls // 2 + 1):
            server.dead = stop
            with pytest.raises(RunStopped):
                whole_run(path, server, resume=path.exists(), overflow=overflow)
        server.dead = None
        whole_run(path, server, resume=True, overflow=overflow)
        assert server.calls == calls
    assert content(path) == expected
    whole_run(tmp_path / "again.db", None, player=f"recorded:{path}", overflow=overflow)
    assert content(tmp_path / "again.db") == expected


def test_a_run_that_stops_for_its_length_can_go_on_at_a_larger_server(tmp_path):
    path = tmp_path / "a.db"
    with SmallServer(limit=450) as server:
        with pytest.raises(RunStopped, match="overflow"):
            whole_run(path, server)
        server.limit = 10**9
        whole_run(path, server, resume=True)
        assert len(content(path)) == 12 * 3
        whole_run(tmp_path / "b.db", server)
    assert content(path) == content(tmp_path / "b.db")


# -- planning, in the order in which it happens ----------------------------------------------------


@each_row("memory", ["full", 2, "none"])
@each_row("strategy", ["none", "static", "adaptive"])
def test_a_planning_player_hears_all_once_in_order_and_its_goal(strategy, memory):
    seen = []

    def script(request):
        seen.append(request)
        key = request.question.key
        said = {"plan": f"plan {len(seen)}", "summary": f"belief {len(seen)}", "lessons": ["Give."]}
        return json.dumps({key: said.get(key, len(seen))})

    planning = Planning(strategy=strategy, learning=True)
    policy = PlanningPolicy(ScriptedClient(script), planning, memory=memory)
    episode = play(PublicGoods(players=2, rounds=5), [policy, make_player("fixed:3")], seed=4)
    kinds = [request.kind for request in seen]
    assert kinds.count("replan") == (4 if strategy == "adaptive" else 0)
    for request in seen:
        assert well_formed(request.messages)
        text = "\n".join(message["content"] for message in request.messages)
        rounds = [text.find(f"Result of round {n}:") for n in range(1, 6)]
        told = [at for at in rounds if at >= 0]
        assert told == sorted(told)
        assert all(text.count(f"Result of round {n}:") <= 1 for n in range(1, 6))
        if memory == "full":
            done = request.who.step
            assert len(told) == done
            answers = [m["content"] for m in request.messages if m["role"] == "assistant"]
            assert (
                answers
                == [  # everything it ever said, in order
                    json.dumps(json.loads(a.text))
                    for step in [*episode.steps, None]
                    for decision in [step.decisions[0] if step else episode.afterwards[0]]
                    for a in decision.attempts
                ][: len(answers)]
            )
        before = enumerate(kinds[: seen.index(request)], 1)
        plans = [number for number, kind in before if kind in ("plan", "replan")]
        if plans and request.kind == "move":
            assert f"plan {plans[-1]}" in text  # the plan in force is never lost
        over = request.who.step == len(episode.steps)
        assert over or "Your goal is the highest total of tokens" in text


def test_a_planning_players_prompts_are_read_once(tmp_path):
    """All but what is new of each prompt is the beginning of an earlier one."""
    with SmallServer() as server:
        policy = PlanningPolicy(OpenAIClient("m", server.url), Planning(learning=True))
        play(PublicGoods(players=2, rounds=6), [policy, make_player("fixed:3")], seed=4)
        asyncio.run(policy.client.close())
    new = [whole - known for known, whole in server.cached]
    assert len(new) == 6 + 6 + 6 + 1
    assert max(new[1:]) < 700  # letters: a report, a request, an answer
    assert server.cached[-1][0] > 3 * max(new[1:])


def test_a_plan_that_cannot_be_used_leaves_what_was_told():
    def script(request):
        if request.kind != "move":
            return "Hm."
        return '{"tokens_contributed": 5}'

    policy = PlanningPolicy(ScriptedClient(script), Planning(plan_reasks=0, belief_checks=1))
    episode = play(PublicGoods(players=2, rounds=4), [policy, make_player("fixed:3")], seed=4)
    chat = list(episode.steps[-1].decisions[0].attempts[-1].messages)
    text = "\n".join(message["content"] for message in chat)
    assert well_formed(chat)
    assert "Hm." not in text
    assert [text.count(f"Result of round {n}:") for n in range(1, 5)] == [1, 1, 1, 0]


# -- long games ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_cost_of_a_decision_does_not_grow_with_its_dialogue():
    game, took = PublicGoods(players=2, rounds=1000), []

    class Clocked(LLMPolicy):
        async def decide(self, view, memory):
            began = time.thread_time()
            found = await super().decide(view, memory)
            took.append(time.thread_time() - began)
            return found

    def plain(request):  # which reads nothing of the prompt
        return '{"tokens_contributed": 5}'

    policy = Clocked(ScriptedClient(plain))
    play(game, [policy, make_player("fixed:3")], seed=4)
    early, late = sorted(took[50:250])[100], sorted(took[-200:])[100]
    assert late < 2 * early


def test_a_chat_is_a_value():
    chat = Chat.of([{"role": "user", "content": "\ud800 é"}])
    assert chat == pickle.loads(pickle.dumps(chat)) == copy.deepcopy(chat)
    assert chat.plus("assistant", "x") != chat
    assert hash(chat) == hash(Chat().plus("user", "\ud800 é"))
    assert chat.size == len("? é".encode())


def test_windows_that_the_rules_fill_are_refused_and_no_summary_is_bought_for_nothing():
    for name in ("memory_tokens", "context"):
        with pytest.raises(BadParameter, match=rf"{name} = 50 is less than the rules of public_go"):
            table(five, overflow="summarise", **{name: 50})
    decisions = table(
        five, overflow="summarise", memory=0, notices=False
    )  # each is shorter than its summary
    assert all(attempt.kind == "move" for made in decisions for attempt in made.attempts)
