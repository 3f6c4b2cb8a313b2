"""Layers around a client: retry, limit, cache, accounting and budget."""

import asyncio
import sqlite3
import time
from dataclasses import replace
from decimal import Decimal

import pytest
from fault_server import FaultServer
from playing import each_row

from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.store import Records, Store
from llm_games.benchmarks.run.conduct import RunStopped, play_run, start
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.plan import Overrides, players, resolve
from llm_games.benchmarks.run.resume import planned
from llm_games.errors import BadParameter
from llm_games.questions import Integer
from llm_games.view import NOBODY, Who
from llm_games.wrappers.clients import limit, retry
from llm_games.wrappers.clients.base import Client, ClientError, Completion, Request, Sampling
from llm_games.wrappers.clients.budget import Budget, BudgetExceeded, Ledger
from llm_games.wrappers.clients.cache import APPLICATION, CacheError, ReplyCache
from llm_games.wrappers.clients.flights import Flights, drained
from llm_games.wrappers.clients.metered import Metered
from llm_games.wrappers.clients.openai import OpenAIClient
from llm_games.wrappers.clients.prices import Price
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.clients.stack import Shared, add_layers, layers, ledger_of
from llm_games.wrappers.clients.tokens import Estimator

WHO = Who("dice", 7)
TEXT = ({"role": "user", "content": "How many?"},)


def ask(seed=0, temperature=0.0, who=WHO, max_tokens=50):
    sampling = Sampling(temperature=temperature, max_tokens=max_tokens)
    return Request(TEXT, Integer("bid", 0, 9), sampling=sampling, seed=seed, who=who)


def gather(client, *requests):
    async def go():
        calls = (client.complete(request) for request in requests)
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(go())


def counting(answer=lambda request: Completion('{"bid": 1}', "stop", 20, 10, 0.1, "m")):
    seen = []

    async def script(request):
        seen.append(request)
        await asyncio.sleep(0.001)
        return answer(request)

    return ScriptedClient(script, "m"), seen


# -- retry -----------------------------------------------------------------------------------------


def failing(times, **failure):
    left = [times]

    def answer(request):
        left[0] -= 1
        if left[0] >= 0:
            raise ClientError("no", **failure)
        return "yes"

    return counting(answer)


@each_row(
    ("times", "failure", "tries"),
    [
        (2, {"transient": True}, 3),
        (9, {"transient": True}, 10),
        (9, {"transient": True, "status": 500}, 10),
        (1, {"transient": False}, 1),
        (9, {"transient": True, "status": 429}, 10),
        (1, {"transient": True, "status": 429, "retry_after": 0.001}, 2),
        (1, {"transient": True, "status": 503, "retry_after": 0.001}, 2),
        (1, {"transient": True, "status": 429, "retry_after": 3600.0}, 1),
        (1, {"transient": True, "status": 503, "retry_after": 3600.0}, 1),
    ],
)
def test_what_is_tried_again(times, failure, tries, quick):
    client, seen = failing(times, **failure)
    (got,) = gather(add_layers(client, max_wait=60), ask(5))
    assert len(seen) == tries
    assert isinstance(got, Completion) == (times < tries)
    assert all(request == ask(5) for request in seen)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(retry, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(retry, "LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(retry, "LONGEST_REFUSED", 0.01)


@each_row("status", [None, 429, 503])
def test_waiting_ends_and_says_how_long_and_what_to_set(status, quick):
    client, seen = failing(9999, transient=True, status=status)
    began = time.monotonic()
    (got,) = gather(add_layers(client, max_wait=0.2), ask())
    assert 0.15 <= time.monotonic() - began <= 0.6
    assert str(got) == "no – it was waited for 0.2 s: max_wait = 0.2 allows no more"
    assert (got.transient, got.status) == (True, status)
    assert len(seen) > 5


def test_no_waiting_at_all():
    client, seen = failing(1, transient=True)
    (got,) = gather(add_layers(client), ask())
    assert (str(got), len(seen)) == ("no", 1)


def test_a_wish_beyond_the_limit_ends_the_waiting_at_once():
    client, _ = failing(1, transient=True, status=503, retry_after=90.0)
    began = time.monotonic()
    (got,) = gather(add_layers(client, max_wait=60), ask())
    assert "and it asks for 90 s more: max_wait = 60 allows no more" in str(got)
    assert time.monotonic() - began < 0.5


@pytest.mark.parametrize(("status", "passes"), [(503, False), (429, True)])
def test_a_greeting_waits_shortly_for_a_server_that_is_down(status, passes, quick, monkeypatch):
    monkeypatch.setattr(retry, "GREETING", 0.05)
    client, _ = failing(20, transient=True, status=status)
    (got,) = gather(add_layers(client, max_wait=60), replace(ask(), kind="greeting"))
    assert isinstance(got, Completion) == passes


def test_pauses_double_vary_and_end():
    for limited, most in ((False, 8), (True, 60)):
        for tries in range(1, 20):
            whole = min(most, 0.5 * 2 ** (tries - 1))
            pauses = {retry.backoff(tries, limited) for _ in range(5)}
            assert all(whole / 2 <= pause <= whole for pause in pauses)
            assert len(pauses) == 5


def test_who_waits_is_shown_and_logged_once(quick, monkeypatch, caplog):
    monkeypatch.setattr(retry, "WORTH_TELLING", 0.02)
    shared, shown, up = Shared(), [], 0.2
    began = time.monotonic()

    def answer(request):
        shown.extend(map(str, shared.waits.values()))
        if time.monotonic() - began < up:
            raise ClientError("m is down", transient=True)
        return "yes"

    client, _ = counting(answer)
    got = gather(add_layers(client, max_wait=60, shared=shared), *map(ask, range(32)))
    assert all(isinstance(answer, Completion) for answer in got)
    assert "waiting: m is down (0 s of at most 60 s, 32 calls)" in shown
    assert shared.waits == {}
    (said,) = caplog.records
    assert said.getMessage().startswith("waiting: m is down (0 s of at most 60 s, ")


@pytest.mark.parametrize("players", [32, 1000])
def test_an_outage_loses_no_call_and_its_end_is_no_storm(players, quick, monkeypatch):
    """Once all that was in flight has failed, one call at a time tries, then twice as many."""
    monkeypatch.setattr(retry, "LONGEST_PAUSE", 0.04)
    now = answered = tries = 0
    ends, since = None, None

    async def script(request):
        nonlocal now, answered, tries, ends, since
        now += 1
        down = answered >= 300 and (ends is None or time.monotonic() < ends)
        if since is not None:
            tries += down
            assert now <= since + 1
        await asyncio.sleep(0.002)
        now -= 1
        if down:
            if since is None and now == 0:  # all that was in flight has failed
                since, ends = 0, time.monotonic() + 0.4
            raise ClientError("down", transient=True)
        answered += 1
        since = since if since is None else since + 1
        return "yes"

    client = add_layers(ScriptedClient(script, "m"), max_wait=30, max_in_flight=1000)

    async def player(seat):
        return [await client.complete(ask(seat)) for _ in range(2400 // players)]

    async def go():
        return await asyncio.gather(*map(player, range(players)))

    asyncio.run(go())
    assert 3 < tries < 40
    assert since > 300


# -- limit -----------------------------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@each_row(("per_minute", "amount", "most"), [(60, 1, 62), (6000, 500, 14)])
def test_a_pace_holds_in_any_minute(per_minute, amount, most):
    clock = Clock()
    pace, taken = limit.Pace(per_minute, clock), []
    while clock.now < 300:
        if pace.wait() <= 0:
            pace.take(amount)
            taken.append(clock.now)
        clock.now += 0.1
    for begin in range(240):
        assert sum(begin <= t < begin + 60 for t in taken) <= most
    assert len(taken) * amount >= 0.95 * 5 * per_minute


def test_a_gate_grows_until_refused_and_is_cut_once_in_a_while():
    clock = Clock()

    async def go():
        gate = limit.Gate(100, clock=clock)

        async def round_of(error=None):
            for _ in range(gate.places()):
                await gate.enter(0)
            for _ in range(gate.in_flight):
                gate.leave(error, clean=error is None)

        seen = [gate.limit]
        for error in (None, None, None):
            await round_of(error)
            seen.append(gate.limit)
        many = ClientError("many", transient=True, status=429)
        for wait, error in ((0, many), (1, many), (15, many), (15, None), (0, None)):
            clock.now += wait
            await round_of(error)
            seen.append(gate.limit)
        return seen, list(gate.history)

    seen, history = asyncio.run(go())
    assert seen == [32, 64, 100, 100, 80, 80, 64, 67, 70]
    assert [n for _, n in history] == [32, 64, 100, 80, 64, 67, 70]


def test_slow_answers_do_not_keep_a_server_idle(monkeypatch):
    """Places double although nobody answers, as long as nobody is refused."""
    monkeypatch.setattr(limit, "REFUSED", 0.05)

    async def crowd(refused_at):
        gate = limit.Gate(256)
        calls = [asyncio.create_task(gate.enter(0)) for _ in range(300)]
        while gate.in_flight < refused_at:
            await asyncio.sleep(0.01)
        if refused_at < 256:
            gate.leave(ClientError("too many", transient=True, status=429))
        await asyncio.sleep(0.2)
        for call in calls:
            call.cancel()
        return gate.limit

    assert asyncio.run(crowd(256)) == 256
    assert asyncio.run(crowd(128)) == 102  # 80 %


class Written:
    """A journal: numbers of calls that were begun and are not over."""

    def __init__(self):
        self.open, self.most = set(), 0

    async def begin(self, model, seat, limit, line=""):
        number = len(self.open) + 1 + self.most
        self.open.add(number)
        self.most = max(self.most, len(self.open))
        await asyncio.sleep(0.001)
        return number

    def over(self, number, model, seat):
        self.open.remove(number)


@each_row(("limits", "ahead"), [({}, 4), ({"requests_per_minute": 60_000}, 4)])
def test_few_calls_are_written_down_before_there_is_a_place_and_none_of_them_is_lost(limits, ahead):
    """A place is for who asks: calls get ready elsewhere; those not sent at an end cost nothing."""
    ledger, asked, answered = Ledger(), [], asyncio.Event()

    async def script(request):
        asked.append(request)
        await answered.wait()
        return Completion('{"bid": 1}', "stop", 20, 10, 0.1, "m")

    client = ScriptedClient(script, "m")
    dressed = add_layers(client, max_in_flight=16, shared=Shared(ledger), **limits)
    ledger.journal = journal = Written()

    async def ask_all():
        await asyncio.gather(*(dressed.complete(ask(seed)) for seed in range(40)))

    async def go():
        flights = Flights()
        work = asyncio.create_task(drained(ask_all(), flights))
        while len(asked) < 16 or len(journal.open) < 16 + ahead:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        assert (len(asked), journal.most) == (16, 16 + ahead)
        flights.stop()
        await asyncio.sleep(0.02)
        assert len(journal.open) == 16  # are waited for, the others were not sent
        answered.set()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(go())
    assert (len(asked), ledger.total.calls, ledger.total.unknown) == (16, 16, 0)
    assert not journal.open


def test_a_place_is_free_once_the_answer_is_there(monkeypatch):
    """The next call is sent before what was answered is booked and read."""
    happened = []

    async def script(request):
        happened.append(("sent", request.seed))
        await asyncio.sleep(0.01)
        return Completion('{"bid": 1}', "stop", 20, 10, 0.1, "m")

    ledger = Ledger()
    book = ledger.book
    monkeypatch.setattr(ledger, "book", lambda *about: (happened.append("booked"), book(*about)))
    dressed = add_layers(ScriptedClient(script, "m"), max_in_flight=4, shared=Shared(ledger))

    async def ask_all():
        await asyncio.gather(*(dressed.complete(ask(seed)) for seed in range(5)))

    asyncio.run(drained(ask_all()))
    assert happened.index(("sent", 4)) < happened.index("booked")


def test_a_gate_that_is_not_crowded_does_not_grow():
    client, _ = counting()
    dressed = add_layers(client, max_in_flight=64)

    async def go():
        for seed in range(50):
            await dressed.complete(ask(seed))
        gates = next(layer for layer in layers(dressed) if isinstance(layer, limit.Limit)).gates
        return gates.history()

    assert [n for _, n in asyncio.run(go())[0]] == [32]


def test_a_server_that_bears_little_is_not_stormed(monkeypatch):
    monkeypatch.setattr(limit, "COOLDOWN", 0.1)
    monkeypatch.setattr(retry, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(retry, "LONGEST_REFUSED", 0.05)
    with FaultServer(delay=0.02, most=6) as server:
        client = add_layers(OpenAIClient("m", server.url), max_wait=60, max_in_flight=64)

        async def go():
            try:
                calls = (client.complete(ask(seed)) for seed in range(150))
                return await asyncio.gather(*calls)
            finally:
                await client.close()

        got = asyncio.run(go())
    assert len(got) == 150
    assert server.refused < 100


def test_calls_that_are_given_up_leave_their_place():
    client, seen = counting()
    dressed = add_layers(client, max_in_flight=1)

    async def go():
        calls = [asyncio.create_task(dressed.complete(ask(seed))) for seed in range(5)]
        await asyncio.sleep(0)
        for call in calls[:4]:
            call.cancel()
        return await calls[4]

    assert asyncio.run(go()).text
    assert len(seen) <= 2


def test_paces_hold_for_calls():
    client, seen = counting()
    began = time.monotonic()
    gather(add_layers(client, requests_per_minute=6000), *map(ask, range(30)))
    assert time.monotonic() - began > 0.25
    client, seen = counting()
    began = time.monotonic()
    gather(add_layers(client, tokens_per_minute=60_000), *map(ask, range(15)))
    assert time.monotonic() - began > 0.25
    assert len(seen) == 15


TOO_LOW = {"max_wait": -1, "max_in_flight": 0, "requests_per_minute": 0, "tokens_per_minute": 0.5}


@each_row(("limit", "value"), TOO_LOW.items())
def test_bad_limits_are_refused(limit, value):
    with pytest.raises(BadParameter, match=limit):
        add_layers(counting()[0], **{limit: value})


# -- cache -----------------------------------------------------------------------------------------


def drawn(step):
    return ask(who=WHO._replace(step=step))


@pytest.fixture
def replies(tmp_path):
    cache = ReplyCache(tmp_path / "replies.db")
    yield cache
    cache.close()


def test_what_is_known_is_not_asked(replies):
    client, seen = counting()
    shared = Shared(replies=replies)
    dressed = add_layers(client, shared=shared)
    first = gather(dressed, ask(), ask(1), drawn(1))  # the same at the same time is asked once
    again = gather(dressed, ask(), drawn(1))
    assert len(seen) == 2
    assert {got.text for got in first + again} == {'{"bid": 1}'}
    assert [got.tokens_in for got in again] == [0, 0]  # they cost nothing
    assert shared.ledger.total.calls == 2
    assert (dressed.hits, dressed.misses) == (3, 2)


def test_a_kept_reply_is_the_whole_of_it(replies):
    first = Completion('{"bid": 1}', model="m-1", thoughts="Hm.", left_out=["seed"])
    dressed = add_layers(counting(lambda _: first)[0], shared=Shared(replies=replies))
    assert gather(dressed, ask()) == gather(dressed, ask()) == [first]


def test_a_reply_to_another_way_of_asking_is_another(replies):
    for structured in ("auto", "never"):
        client, seen = counting()
        client.structured = structured
        gather(add_layers(client, shared=Shared(replies=replies)), ask())
        assert len(seen) == 1


def test_what_an_earlier_edition_kept_makes_room(tmp_path):
    old = sqlite3.connect(tmp_path / "replies.db")
    old.execute(f"PRAGMA application_id = {APPLICATION}")
    old.execute("CREATE TABLE replies (key BLOB PRIMARY KEY, text TEXT)")
    old.close()
    replies = ReplyCache(tmp_path / "replies.db")
    client, seen = counting()
    for _ in range(2):
        gather(add_layers(client, shared=Shared(replies=replies)), ask())
    replies.close()
    assert len(seen) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"who": WHO._replace(seat=1)},  # who draws at the same time draws anew
        {"who": WHO._replace(call=1)},
        {"who": WHO._replace(step=1)},
        {"who": WHO._replace(seed=2)},
        {"messages": ({"role": "user", "content": "Why?"},)},
        {"question": Integer("bid", 0, 8)},
        {"sampling": Sampling(temperature=0.0, max_tokens=51)},
        {"sampling": Sampling(temperature=0.0, max_tokens=50, top_p=0.5)},
    ],
)
def test_another_request_is_asked(replies, other):
    client, seen = counting()
    dressed = add_layers(client, shared=Shared(replies=replies))
    gather(dressed, ask())
    gather(dressed, Request(**(vars(ask()) | other)))
    assert len(seen) == 2


def test_an_episode_that_is_played_again_is_served_whoever_sits_where(replies):
    """Two seats draw one reply each; played again, also in other seats, they get the same two."""
    numbers = iter(range(9))
    client, seen = counting(lambda request: Completion(f'{{"bid": {next(numbers)}}}'))

    def play(*seats, seed=4):
        who = [Who("dice", 1, 0, seat, 0, seed) for seat in seats]
        file = ReplyCache(replies.path)  # as another process has it
        dressed = add_layers(client, cache=True, shared=Shared(replies=file))
        found = gather(dressed, *(ask(i, 1.0, w) for i, w in enumerate(who)))
        file.close()
        return [got.text for got in found]

    first = play(0, 1)
    assert len({*first}) == 2
    assert play(0, 1) == play(2, 5) == first
    assert len(seen) == 2
    play(0, 1, seed=5)
    assert len(seen) == 4


def test_outside_of_games_the_seed_is_the_draw(replies):
    client, seen = counting()
    gather(
        add_layers(client, shared=Shared(replies=replies)), *(ask(s, who=NOBODY) for s in (0, 1, 1))
    )
    assert len(seen) == 2


@each_row(
    ("cache", "use", "temperature", "calls"),
    [
        (None, True, 0.0, 1),
        (None, True, 0.7, 2),
        (None, True, None, 2),
        (True, True, 0.7, 1),
        (False, True, 0.0, 2),
        (True, False, 0.0, 2),
    ],
)
def test_when_replies_are_kept(replies, cache, use, temperature, calls):
    client, seen = counting()
    dressed = add_layers(client, cache=cache, shared=Shared(replies=replies, use_cache=use))
    for _ in range(2):
        gather(dressed, ask(temperature=temperature))
    assert len(seen) == calls


@each_row("bad", [Completion("no", "refusal"), Completion("{", "length"), Completion(""), None])
def test_no_failure_is_kept(replies, bad):
    def answer(request):
        if bad is None:
            raise ClientError("down")
        return bad

    client, seen = counting(answer)
    gather(add_layers(client, shared=Shared(replies=replies)), ask(), ask())
    assert len(seen) == 2
    assert replies.contents() == []


def test_a_cache_can_be_listed_and_pruned(replies):
    gather(add_layers(counting()[0], shared=Shared(replies=replies)), *map(drawn, range(3)))
    (row,) = replies.contents()
    assert (row.model, row.replies, row.characters) == ("m", 3, 30)
    assert replies.prune(older_than=60) == 0
    assert replies.prune("other") == 0
    assert replies.prune("m") == 3


def test_a_file_of_the_users_is_no_cache(tmp_path):
    (tmp_path / "notes.txt").write_text("mine, and long enough to be looked at. " * 40)
    with pytest.raises(CacheError, match=r"notes\.txt cannot be used"):
        ReplyCache(tmp_path / "notes.txt")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(CacheError, match="name another file"):
        ReplyCache(tmp_path / "other.db")


def test_a_cache_in_memory_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, other = (add_layers(counting()[0], cache=":memory:", samples=1) for _ in range(2))
    assert one.file is other.file
    assert one.file.contents() == []
    assert ReplyCache(":memory:").contents() == []
    assert list(tmp_path.iterdir()) == []


def test_a_run_goes_on_without_a_broken_cache(replies, caplog):
    client, _ = counting()
    dressed = add_layers(client, shared=Shared(replies=replies))
    replies.close()
    assert gather(dressed, ask())[0].text == '{"bid": 1}'
    assert "cannot be used as a cache" in caplog.text
    replies.__init__(replies.path)


# -- accounting and budget -------------------------------------------------------------------------


def test_what_makes_prompts_cheaper_is_in_no_key_of_a_reply(tmp_path):
    def key(leave_out=(), **more):
        client = OpenAIClient("m", "http://127.0.0.1:1/v1", leave_out=leave_out)
        request = Request(({"role": "user", "content": "?"},), seed=1, **more)
        return add_layers(client, cache=tmp_path / "replies.db")._key(request)

    assert key() == key(stays=False) == key(["cache_control", "prompt_cache_key"])
    assert key() != key(["seed"])


PRICES = {"m": Price(Decimal("2.5"), Decimal("10"))}


def test_what_is_spent_is_booked_by_model_and_seat():
    client, _ = counting()
    shared = Shared(Ledger(prices=PRICES))
    dressed = add_layers(client, shared=shared)
    gather(dressed, ask(), ask(1), ask(who=Who("dice", 9, seat=1)))
    ledger = ledger_of(dressed)
    cost = Decimal("0.00015")  # 20 · 2.5 + 10 · 10 millionths
    assert ledger.models["m"].money == 3 * cost
    assert ledger.seats["dice/player_0"].money == 2 * cost
    assert ledger.seats["dice/player_1"].plain() == {
        **{"calls": 1, "failures": 0, "tokens_in": 20, "tokens_out": 10},
        **{"seconds": 0.1, "money": "0.00015"},
        **dict.fromkeys(("tokens_cached", "tokens_reasoning", "tokens_written"), 0),
        **{"unknown": 0, "unknown_in": 0, "unknown_out": 0, "unknown_money": "0"},
    }


def test_a_failure_costs_a_call_and_no_tokens():
    client, _ = failing(1)
    dressed = add_layers(client)
    gather(dressed, ask())
    total = ledger_of(dressed).total
    assert (total.calls, total.failures, total.tokens) == (1, 1, 0)


@each_row(
    "budget",
    [
        Budget(calls=7),
        Budget(tokens=600),
        Budget(money=Decimal("0.002")),
        Budget(calls_per_seat=3),
        Budget(tokens_per_seat=400),
        Budget(money_per_seat=Decimal("0.0015")),
    ],
)
def test_no_budget_is_ever_exceeded(budget):
    client, seen = counting()
    ledger = Ledger(budget, PRICES)
    dressed = add_layers(client, max_in_flight=4, shared=Shared(ledger))
    seats = [ask(i, who=Who("dice", 1, seat=i % 2)) for i in range(40)]
    got = gather(dressed, *seats)
    whole = [answer for answer in got if isinstance(answer, Completion)]
    assert 2 <= len(whole) == len(seen) < 40
    assert all(isinstance(answer, (Completion, BudgetExceeded)) for answer in got)
    for seat, usages in ((False, [ledger.total]), (True, ledger.seats.values())):
        for what, most in budget.limits(seat).items():
            assert all(getattr(usage, what) <= most for usage in usages)
    assert ledger.total.calls == len(seen)
    error = next(answer for answer in got if isinstance(answer, BudgetExceeded))
    assert f"raise {error.limit} to go on" in str(error)


def test_calls_wait_for_the_reserve_of_others():
    """The budget bears four calls only one after another, since each might take much more."""
    client, _ = counting()
    ledger = Ledger(Budget(tokens=400))
    got = gather(Metered(client, ledger), *map(ask, range(4)))
    assert all(isinstance(answer, Completion) for answer in got)
    assert ledger.total.tokens == 120


def test_estimates_follow_the_server():
    estimator, request = Estimator(), ask()
    before = estimator.tokens_in(request)
    for _ in range(50):
        estimator.learn(request, Completion("x", tokens_in=40))
    assert 40 <= estimator.tokens_in(request) <= 50 < before
    assert estimator.tokens_out(request) == 50


def test_layers_are_clients_and_show_what_they_hold():
    client, _ = counting()
    dressed = add_layers(client, max_wait=2, max_in_flight=3)
    assert isinstance(dressed, Client)
    assert dressed.name == "m"
    assert [type(layer).__name__ for layer in layers(dressed)] == [
        *("Retry", "Ready", "Metered", "Limit", "ScriptedClient")
    ]


# -- a run -----------------------------------------------------------------------------------------


def config(server, **more):
    return {
        "games": [{"game": "public_goods", "params": {"players": 3, "rounds": 2}, "episodes": 3}],
        "seats": ["openai:m"],
        "models": {"m": {"base_url": server.url}},
        "player": {"max_tokens": 50, "temperature": 0.0},
        **more,
    }


def plan_of(raw):
    return resolve(parse(raw, "x.toml"), "x.toml")


def rewards(path):
    with Records.open_readonly(path) as records:
        episodes = records.episodes()
        assert {episode.status for episode in episodes} == {"done"}
        return [[s.rewards for s in records.steps(e.id)] for e in episodes], records.usage()


def test_a_budget_stops_a_run_and_a_greater_one_lets_it_go_on(tmp_path):
    with FaultServer() as server:
        plan, path = plan_of(config(server, budget={"calls": 10})), tmp_path / "x.db"
        with pytest.raises(RunStopped, match=r"calls = 10, has 10 spent.*--budget-calls"):
            play_run(lambda: start(plan, path), plan, players(plan))
        assert len(server.seen) == 10  # with the greeting
        with Records.open_readonly(path) as records:
            assert records.usage()["calls"] == 9
            plan = planned(records).with_costs(Overrides.of(budget_calls=30))
        play_run(lambda: Store.open(path), plan, players(plan))
        assert len(server.seen) == 20  # nothing was asked twice but the greeting
        whole = plan_of(config(server))
        play_run(lambda: start(whole, tmp_path / "y.db"), whole, players(whole))
    assert rewards(path) == rewards(tmp_path / "y.db")
    with pytest.raises(ConfigError, match="calls"):
        plan.with_costs(Overrides.of(budget_calls=0))


def test_a_second_run_is_served_from_the_cache(tmp_path):
    with FaultServer() as server:
        raw = config(server, cache=str(tmp_path / "replies.db"), prices={"m": {"input": 2.5}})
        for name in ("x", "y"):
            plan = plan_of(raw)
            shared = plan.shared()
            made = players(plan, shared)
            play_run(lambda: start(plan, tmp_path / f"{name}.db"), plan, made)  # noqa: B023
            shared.replies.close()
        assert len(server.seen) == 18 + 2
    assert rewards(tmp_path / "x.db")[0] == rewards(tmp_path / "y.db")[0]
    assert shared.ledger.total.calls == 1
    assert shared.ledger.models["m"].money == Decimal("0.00025")


@each_row(
    ("wrong", "words"),
    [
        ({"budget": {"call": 5}}, "no key budget.call; did you mean 'calls'"),
        ({"budget": {"calls": 0}}, "budget.calls = 0"),
        ({"budget": {"money": -1.0}}, "budget.money = -1.0"),
        ({"prices": {"m": {"inptu": 1.0}}}, "did you mean 'input'"),
        ({"models": {"m": {"request_per_minute": 5}}}, "did you mean 'requests_per_minute'"),
        ({"models": {"m": {"tokens_per_minute": 0}}}, "tokens_per_minute = 0"),
        ({"models": {"m": {"cache": "yes"}}}, "cache = 'yes'"),
    ],
)
def test_mistakes_are_named(wrong, words):
    with pytest.raises(ConfigError) as caught:
        parse({"games": [{"game": "public_goods"}]} | wrong, "x.toml")
    assert words in str(caught.value)


def test_a_budget_of_money_without_a_price_is_refused_before_anything_runs():
    with FaultServer() as server:
        plan = plan_of(config(server, budget={"money": 1.5}))
        with pytest.raises(ConfigError, match="needs the price of 'm'"):
            players(plan)
        assert server.seen == []
