"""No server spends more than a budget allows, and no stop loses what is paid."""

import asyncio
import itertools
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal

import pytest
from fault_server import FATAL, FAULTS, FaultServer, completion, error, http, key, played
from playing import each_row
from test_fire import QUICK
from test_kill import Stem
from test_run import content

import llm_games as lg
from llm_games.baselines.training.harness import Options, Training, curve
from llm_games.benchmarks.judge.model_labels import Rubric, judged, label_run
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.plan import plan_of, players
from llm_games.benchmarks.run.replay import replay
from llm_games.view import Who
from llm_games.wrappers.clients.base import ClientError, Completion, Request, Sampling
from llm_games.wrappers.clients.budget import Budget, BudgetExceeded, Ledger
from llm_games.wrappers.clients.cache import ReplyCache
from llm_games.wrappers.clients.flights import Flights, drained, flown
from llm_games.wrappers.clients.openai import OpenAIClient
from llm_games.wrappers.clients.prices import Price
from llm_games.wrappers.clients.retry import Retry
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.clients.stack import Shared, add_layers, layers, ledger_of
from llm_games.wrappers.together import run_sync, together

PRICE = Price(Decimal(2), Decimal(10))
IN_FLIGHT, CALLS, SEATS = 24, 150, 3
LIMITS = {
    "calls": 50,
    "tokens": 60_000,
    "money": Decimal("0.4"),
    "tokens_per_seat": 20_000,
    "money_per_seat": Decimal("0.13"),
}
"""What some hundred calls of the servers here pass; a fifth, where replies are short."""


def limit_of(what, own):
    limit = LIMITS[what]
    return type(limit)(limit / 5) if own and what != "calls" else limit


class Spender(FaultServer):
    """Thinks of 40 to 2,000 tokens in secret before it answers, and keeps to limits as its kind is.

    `paid` has what each seat's calls really cost, `dearest` the dearest of them.
    """

    def __init__(self, kind, rng):
        super().__init__(self._choose, delay=0.004, reply=self._answer)
        self.kind, self.rng, self.calls = kind, rng, 0
        self.paid = [Counter() for _ in range(SEATS)]
        self.dearest = Counter()
        self.crowd = 0

    def _choose(self, body, number):
        return "no limit" if self.kind == "refuses limits" and "max_tokens" in body else "ok"

    def _answer(self, body):
        return body  # made where it is counted

    def _pieces(self, name, ok):
        return [FATAL[name][0]] if name != "ok" else [http(200, ok)]

    async def _send(self, name, body, writer):
        self.reply = lambda asked: self._made(asked) if name == "ok" else {}
        return await super()._send(name, body, writer)

    def _count(self, name, body, said):
        pass

    def _made(self, body):
        self.calls += 1
        changed = self.kind == "changes its ways" and self.calls > 40
        if changed and not self.crowd:
            self.crowd = self.ledger.in_flight("m")
        thoughts, text = int(40 * 50 ** self.rng.random()), '{"tokens_contributed": 5}'
        thoughts *= 4 if changed else 1
        said, finish, limit = 10, "stop", body.get("max_tokens") or 10**9
        limit = min(limit, 600) if self.kind == "cuts" else limit
        if self.kind == "thinks beyond":
            said = min(said, limit)
        elif self.kind in ("ignores limits", "refuses limits") or changed:
            pass
        elif thoughts + said > limit:
            thoughts, said, text, finish = limit, 0, "", "length"
        seat, prompt = int(body["messages"][-1]["content"][-1]), 100
        cost = {"calls": 1, "tokens": prompt + thoughts + said}
        cost["money"] = PRICE.of(prompt, thoughts + said)
        for what, amount in cost.items():
            self.paid[seat][what] += amount
            self.dearest[what] = max(self.dearest[what], amount)
        usage = {"prompt_tokens": prompt, "completion_tokens": thoughts + said}
        usage["total_tokens"] = sum(usage.values())
        answer = completion(text, finish, usage)
        if self.kind == "no usage":
            del answer["usage"]
        elif self.kind == "garbled usage":
            answer["usage"] = {"prompt_tokens": "many", "completion_tokens": [7], "total": None}
        elif self.kind == "usage of zero":
            answer["usage"] = dict.fromkeys(usage, 0)
        elif self.kind == "total alone":
            answer["usage"] = {"total_tokens": usage["total_tokens"]}
        return answer


KINDS = (
    *("no usage", "garbled usage", "usage of zero", "total alone", "ignores limits"),
    *("thinks beyond", "refuses limits", "cuts", "changes its ways"),
)


def spend(kind, what, own, seed, limit=None):
    said = error("max_tokens: extra fields not permitted", param="max_tokens")
    FATAL["no limit"] = (http(400, said), "")
    ledger = Ledger(Budget(**{what: limit or limit_of(what, own)}), {"m": PRICE})
    try:
        with Spender(kind, random.Random(seed)) as server:
            server.ledger = ledger
            client = OpenAIClient("m", server.url, timeout=20)
            asked = add_layers(client, max_in_flight=IN_FLIGHT, shared=Shared(ledger))

            def call(number):
                chat = ({"role": "user", "content": "x" * 300 + f" seat {number % SEATS}"},)
                who = Who("dice", seat=number % SEATS)
                return asked.complete(Request(chat, sampling=Sampling(max_tokens=own), who=who))

            async def go():
                try:
                    return await asyncio.gather(*map(call, range(CALLS)), return_exceptions=True)
                finally:
                    await asked.close()

            return server, asyncio.run(go())
    finally:
        del FATAL["no limit"]


def excess(server, what, own):
    """Return by how much the calls passed a limit at most, and how much they may."""
    kind = what.removesuffix("_per_seat")
    each = [paid[kind] for paid in server.paid]
    spent = max(each) if what != kind else sum(each)
    replies = max(1, server.crowd if server.kind == "changes its ways" else 1)
    return spent - limit_of(what, own), 0 if kind == "calls" else replies * server.dearest[kind]


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_no_server_passes_a_limit_by_more_than_a_reply(kind, night, record_property):
    cases = [*itertools.product(LIMITS, (None, 120), range(3))]
    worst = 0.0
    for what, own, seed in night(random.Random(kind).sample(cases, 2), cases):
        server, got = spend(kind, what, own, seed)
        passed, most = excess(server, what, own)
        assert passed <= most, (what, own, seed)
        assert all(isinstance(answer, Completion | BudgetExceeded) for answer in got)
        assert any(isinstance(answer, BudgetExceeded) for answer in got), (what, own, seed)
        if what != "calls":
            worst = max(worst, float(passed / server.dearest[what.removesuffix("_per_seat")]))
    record_property("passed by replies", round(worst, 2))


@each_row("kind", ["ignores limits", "no usage"])
def test_a_server_that_cannot_be_trusted_passes_a_budget_by_one_reply(kind):
    server, got = spend(kind, "tokens", 120, 1)
    passed, most = excess(server, "tokens", 120)
    assert passed <= most
    assert {type(answer) for answer in got} == {Completion, BudgetExceeded}


def test_an_ample_budget_does_not_slow_such_a_server():
    server, got = spend("refuses limits", "tokens", None, 1, limit=10**8)
    assert all(isinstance(answer, Completion) for answer in got)
    assert server.peak > 20


# -- stops ----------------------------------------------------------------------------------------

EXPERIMENT = """
episodes = 2
seed = 3
seats = ["openai:m"]
[models.m]
base_url = "{url}"
timeout = {timeout}
max_wait = {wait}
max_in_flight = 32
[[games]]
game = "public_goods"
params = {{players = 4, rounds = 3}}
[[games]]
game = "el_farol_bar"
params = {{players = 5, rounds = 2}}
"""
SLOW = {"no answer", "no end"}
"""What only the client's own time ends, so that its answers may come too late too."""
LASTING = {**FAULTS, **FATAL}
KILLED = {signal.SIGKILL: -9, signal.SIGINT: 130, signal.SIGTERM: 143}


class Counting(FaultServer):
    """Fails from some request on in its own way, or a third of all; counts answers to games."""

    def __init__(self, fault="ok", first=10**9, lasting=True, delay=0.02):
        self.fault, self.first, self.lasting = fault, first, lasting
        super().__init__(self._choose, reply=played, delay=delay)
        self.games = self.given = 0

    def _choose(self, body, number):
        if len(body["messages"]) == 1:
            return "ok"
        self.games += 1
        late = self.games > self.first
        return self.fault if late and (self.lasting or self.games % 3 == 0) else "ok"

    def _count(self, name, body, said):
        if len(body["messages"]) > 1:
            before = self.answered.total()
            super()._count(name, body, said)
            self.given += self.answered.total() > before


def books(path):
    with Records.open_readonly(path) as records:
        paid = [usage for (_, seat), usage in records.spent().items() if seat]
        answers = Counter(
            key({"messages": records.messages(row.prompt), "seed": row.seed})
            for episode in records.episodes()
            for row in records.attempts(episode.id)
        )
        assert replay(records).differences == ()
    known = [sum(getattr(u, name) for u in paid) for name in ("tokens_in", "tokens_out")]
    beside = [
        sum(getattr(u, name) for u in paid) for name in ("unknown", "unknown_in", "unknown_out")
    ]
    return known, beside, answers


@pytest.fixture(scope="module")
def quick_stem():
    process = Stem(QUICK)
    yield process
    process.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory, quick_stem):
    folder = tmp_path_factory.mktemp("whole")
    with Counting(delay=0) as server:
        assert go(quick_stem, folder, server) == 0, (folder / "printed").read_text()
    return content(folder / "a.db")


def go(stem, folder, server, timeout=30, wait=20, how=None, after=0, resume=False):
    (folder / "a.toml").write_text(EXPERIMENT.format(url=server.url, timeout=timeout, wait=wait))
    task = ("resume", folder / "a.db") if resume else ("run", folder / "a.toml", "--db")
    process = stem.start(folder / "printed", *task, *(() if resume else (folder / "a.db",)), "-q")
    if how is not None:
        began = time.monotonic()
        while server.games < after and stem_runs(stem) and time.monotonic() - began < 20:
            time.sleep(0.003)
        if stem_runs(stem):
            os.kill(process, how)
    return stem.wait()


def stem_runs(stem):
    return not select.select([stem.process.stdout], [], [], 0)[0]


def broken_off(folder, stem, whole, fault, lasting, how, rng):
    """Let a run with faults be stopped, compare its books with the server's, and finish it."""
    first, after = rng.randint(5, 25), rng.randint(8, 30)
    timeout = 0.4 if fault in SLOW else 30
    with Counting(fault, first, lasting) as server:
        wait = 0.5 if lasting else 20
        code = go(stem, folder, server, timeout, wait, how, after)
        printed = (folder / "printed").read_text()
        early = code == KILLED.get(how, 1)
        assert early or code in (0, 1), printed
        assert "Traceback" not in printed
        time.sleep(0.05)
        known, beside, answers = books(folder / "a.db")
        told, given = list(server.tokens), server.answered.copy()
        assert all(k + u >= t for k, u, t in zip(known, beside[1:], told, strict=True))
        if how != signal.SIGKILL and fault not in SLOW:
            assert known == told
            assert answers == given
        lost = given - answers
        assert lost.total() <= beside[0]
        server.fault, server.answered = "ok", Counter()
        code = go(stem, folder, server, resume=True)
        assert code == 0, (folder / "printed").read_text()
        assert not server.answered & answers
        assert content(folder / "a.db") == whole
        known, beside, _ = books(folder / "a.db")
        assert all(k + u >= t for k, u, t in zip(known, beside[1:], server.tokens, strict=True))
        return server.given, lost.total(), early


STOPS = {"none": None, "Ctrl-C": signal.SIGINT, "kill -9": signal.SIGKILL}


@pytest.mark.nightly
@pytest.mark.parametrize("how", STOPS)
def test_no_stop_loses_an_answer(how, night, tmp_path, quick_stem, whole, record_property):
    # Each lasts or comes and goes, with one stop this and with the next that.
    turn = [*STOPS].index(how)
    cases = [(f, f in FATAL or (n + turn) % 2 == 0) for n, f in enumerate(LASTING)]
    rng, given, lost, early = random.Random(how), 0, 0, 0
    for number, (fault, lasting) in enumerate(night(rng.sample(cases, 3), cases)):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = broken_off(folder, quick_stem, whole, fault, lasting, STOPS[how], rng)
        given, lost, early = given + found[0], lost + found[1], early + found[2]
    record_property("runs", number + 1)
    record_property("stopped early", early)
    record_property("answers", given)
    record_property("of unknown outcome", lost)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "how"),
    [("forbidden", None), ("ok", signal.SIGINT), ("ok", signal.SIGTERM), ("ok", signal.SIGKILL)],
)
def test_a_stop_waits_for_what_is_paid(tmp_path, quick_stem, whole, fault, how):
    assert broken_off(tmp_path, quick_stem, whole, fault, True, how, random.Random(4))[2]


# -- elsewhere ------------------------------------------------------------------------------------


class Refusing:
    def __init__(self, text, refused):
        self.text, self.refused, self.calls, self.answered = text, refused, 0, 0

    async def __call__(self, request):
        self.calls += 1
        if self.calls == self.refused:
            raise ClientError("not yours", status=403)
        await asyncio.sleep(0.05)
        self.answered += 1
        return Completion(self.text, "stop", 100, 10)


def test_who_stops_what_an_error_has_ended_cuts_nothing_off_yet():
    calls, answered = Flights(), []

    async def call(seconds):
        await asyncio.sleep(seconds)
        answered.append(seconds)

    async def work(seconds, stops):
        loop = asyncio.get_running_loop()
        loop.call_soon(calls.end, ValueError("no"))
        for number in range(stops):
            loop.call_later(0.02 * (number + 1), calls.stop)
        await flown(call(seconds), 5)

    with pytest.raises(ValueError, match="no"):
        asyncio.run(drained(work(0.1, 1), calls))
    calls = Flights()
    with pytest.raises(ValueError, match="no"):
        asyncio.run(drained(work(60, 2), calls))
    assert answered == [0.1]


def test_a_judge_that_is_refused_keeps_what_was_answered(tmp_path):
    game = {"game": "public_goods", "params": {"players": 3, "rounds": 1}, "seats": ["random"]}
    run = lg.run({"episodes": 6, "games": [game]}, db=tmp_path / "a.db")
    judge = Refusing('{"label": "yes"}', refused=4)
    wanted = Rubric(name="r", question="Well?", labels={"yes": "it is", "no": "it is not"})
    with pytest.raises(ClientError, match="not yours"):
        label_run(run.path, wanted, add_layers(ScriptedClient(judge, "m")))
    assert sum(row.answer == "yes" for row in judged(run.path)) == judge.answered > 2


def test_calls_from_code_end_as_runs_do(tmp_path, caplog):
    server = Refusing("sure", refused=3)
    client = add_layers(ScriptedClient(server, "m"), cache=tmp_path / "replies.db")
    chats = [({"role": "user", "content": f"{number}"},) for number in range(6)]
    with pytest.raises(ClientError, match="not yours"):
        run_sync(together(client.complete(Request(chat)) for chat in chats))
    assert server.answered == sum(
        row.replies for row in ReplyCache(tmp_path / "replies.db").contents()
    )
    assert 2 <= server.answered == ledger_of(client).total.calls - 1
    assert "in flight waited for (0 s of at most 601 s)" in caplog.text


def test_a_learner_waits_for_a_minute_and_its_log_says_so(tmp_path):
    url = "http://127.0.0.1:9/v1"
    waits = [c.max_wait for c in layers(lg.player("openai:m", client={"base_url": url}).client)
             if isinstance(c, Retry)]  # fmt: skip
    game = {"game": "public_goods", "seats": [{"player": "openai:m", "base_url": url}]}
    plan = plan_of({"games": [game]})
    waits += [c.max_wait for p in players(plan).values() for c in layers(p.client)
              if isinstance(c, Retry)]  # fmt: skip
    assert waits == [60, 600]

    client = [f"base_url={url}", "max_wait=0.3"]
    options = Options(game="public_goods", opponents=["openai:m"], client=client, folder=tmp_path)
    hello = Request(({"role": "user", "content": "hello"},))
    with (
        pytest.raises(ClientError, match=r"it was waited for 0\.3 s"),
        Training("ppo", options) as training,
    ):
        run_sync(training.clients[0].complete(hello))
    assert 0.2 < curve(tmp_path)["opponents/waited"][1][-1] < 20


BLOCKING = """
import os, signal, threading, time
import llm_games as lg
from llm_games.wrappers.policy import Decision, Policy

class Busy(Policy):
    name = "busy"

    def start(self, game, seat, seed):
        return None

    def act(self, view, memory):
        for after in (0.1, 0.9, 1.7):
            threading.Timer(after, os.kill, (os.getpid(), signal.{how})).start()
        until = time.monotonic() + 20
        while time.monotonic() < until:
            pass
        return Decision(0), memory

signal.signal(signal.SIGINT, signal.default_int_handler)
game = {{"game": "public_goods", "params": {{"players": 2, "rounds": 2}}, "seats": [Busy()] * 2}}
lg.run({{"episodes": 1, "games": [game]}}, db="a.db")
"""


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
def test_a_player_that_lets_nothing_else_go_on_is_interrupted(tmp_path, how):
    began = time.monotonic()
    code = [sys.executable, "-c", BLOCKING.format(how=how)]
    done = subprocess.run(code, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert time.monotonic() - began < 18
    assert "all that happened is in a.db; go on with" in done.stderr
    assert not (tmp_path / "a.db-wal").exists()  # it was closed in order


STUCK = """
import os, signal, threading, time
from llm_games.wrappers.together import run_sync

async def stuck():
    for after in (0.1, 0.3, 0.5):
        threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
    time.sleep(30)

signal.signal(signal.SIGINT, signal.default_int_handler)
run_sync(stuck())
"""


def test_who_calls_from_code_that_is_stuck_gets_away():
    began = time.monotonic()
    code = [sys.executable, "-c", STUCK]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60)
    assert time.monotonic() - began < 25
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")


def test_of_calls_in_line_for_a_function_none_begins_once_a_run_has_ended(tmp_path):
    made = []

    def refused(observation):
        made.append(observation)
        time.sleep(0.02)
        if len(made) == 3:
            raise RuntimeError("no more")
        return 5

    game = {"game": "public_goods", "params": {"players": 4, "rounds": 2}, "seats": [refused] * 4}
    with pytest.raises(RuntimeError, match="no more"):
        lg.run({"episodes": 5, "games": [game]}, db=tmp_path / "a.db")
    with Records.open_readonly(tmp_path / "a.db") as records:
        spent = sum(usage.calls for usage in records.spent().values())
        kept = sum(len(records.attempts(episode.id)) for episode in records.episodes())
    assert len(made) <= 4  # one may be on its way when the error comes out
    assert (spent, kept) == (len(made), len(made) - 1)


def test_a_call_whose_option_is_refused_is_not_made_again_once_work_has_ended():
    fault = error("temperature: not supported", param="temperature")
    FATAL["no temperature"] = (http(400, fault), "")
    chat = ({"role": "user", "content": "hello"},)

    class Late(FaultServer):
        async def _send(self, name, body, writer):
            await asyncio.sleep(0.3 if name == "no temperature" else 0.05)
            return await super()._send(name, body, writer)

    def choose(body, number):
        return "no temperature" if number == 1 else "forbidden"

    try:
        with Late(choose) as server:
            client = add_layers(OpenAIClient("m", server.url, timeout=20))
            calls = (client.complete(Request(chat, seed=seed)) for seed in (1, 2))
            with pytest.raises(ClientError, match="may not use"):
                run_sync(together(calls))
            assert len(server.seen) == 2
            assert ledger_of(client).total.calls == 1
    finally:
        del FATAL["no temperature"]
