"""A seat under fire: whatever a server does, nothing but a reply ever plays."""

import asyncio
import json
import os
import signal
import time
from collections import Counter

import pytest
from fault_server import (
    FATAL,
    FAULTS,
    MARK,
    ODD,
    REPLIES,
    FaultServer,
    Trials,
    error,
    http,
    played,
)
from playing import each_row
from test_kill import Stem
from test_run import content

from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.store import Records, Store
from llm_games.benchmarks.run.conduct import RunStopped, play_run, start
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.benchmarks.run.replay import replay
from llm_games.games.public_goods.rules import PublicGoods
from llm_games.wrappers.clients import limit, retry
from llm_games.wrappers.clients.base import ClientError, Completion, Request
from llm_games.wrappers.clients.openai import OpenAIClient
from llm_games.wrappers.clients.stack import add_layers
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play

GAME = PublicGoods(players=3, rounds=1)
QUICK = """
from llm_games.wrappers.clients import limit, retry
retry.FIRST_PAUSE, retry.LONGEST_PAUSE, retry.LONGEST_REFUSED = 0.005, 0.05, 0.05
limit.COOLDOWN = 0.02
"""


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(retry, "FIRST_PAUSE", 0.005)
    monkeypatch.setattr(retry, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(retry, "LONGEST_REFUSED", 0.05)
    monkeypatch.setattr(limit, "COOLDOWN", 0.02)


def asked(names, server, timeout=0.5):
    client = add_layers(OpenAIClient("m", server.url, timeout=timeout), max_wait=20)

    async def go():
        try:
            calls = (client.complete(Request(({"role": "user", "content": n},))) for n in names)
            return await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await client.close()

    return dict(zip(names, asyncio.run(go()), strict=True))


def named(body, number):
    return body["messages"][0]["content"]


def lost(got):
    return {name: str(answer) for name, answer in got.items() if not isinstance(answer, Completion)}


def test_what_may_pass_is_waited_for():
    assert len(FAULTS) >= 50
    tries = Counter()

    def once(body, number):
        name = named(body, number)
        tries[name] += 1
        return name if tries[name] == 1 else "ok"

    with FaultServer(once) as server:
        assert lost(asked([*FAULTS], server)) == {}
    assert all(tries[name] == 2 for name in FAULTS if name != "elsewhere for ever")


def test_an_answer_is_taken_however_it_comes():
    with FaultServer(named) as server:
        got = asked([*ODD], server, timeout=20)
    assert lost(got) == {}
    assert len({answer.text for answer in got.values()}) == 1


def test_what_cannot_pass_is_told_at_once():
    with FaultServer(named) as server:
        got = asked([*FATAL], server, timeout=20)
    for name, (_, says) in FATAL.items():
        assert isinstance(got[name], ClientError), name
        assert says in str(got[name])
        assert not got[name].transient
    assert len(server.seen) == len(FATAL) + 1  # what is sent elsewhere is asked for by the library


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_asks_for_more_than_is_left_is_not_waited_for(status, monkeypatch):
    wish = http(status, error("not today"), "retry-after: 86400\r\n")
    monkeypatch.setitem(FAULTS, "tomorrow", [wish])
    with FaultServer(lambda body, number: "tomorrow") as server:
        (got,) = asked(["m"], server).values()
    assert "and it asks for 86400 s more: max_wait = 20 allows no more" in str(got)
    assert len(server.seen) == 1


OUTCOMES = {
    "unparsable": (
        *("wrong schema", "wrong type", "prose", "no text", "odd counts"),
        *("not ASCII", "half a character", "injection"),
    ),
    "out_of_range": ("out of range",),
    "truncated": ("10 MB", "10 MB of braces", "too long"),
    "refused": ("refusal", "filter"),
}


@each_row("outcome", OUTCOMES)
def test_a_reply_that_is_no_answer_is_counted_as_what_it_is(outcome):
    assert {name for names in OUTCOMES.values() for name in names} == {*REPLIES}
    with FaultServer(lambda body, number: body["model"]) as server:
        sound, *bad = (
            LLMPolicy(add_layers(OpenAIClient(name, server.url)), max_attempts=1)
            for name in ("ok", *OUTCOMES[outcome])
        )
        for policy in bad:
            episode = play(GAME, [sound, policy, sound])
            for step in episode.steps:
                assert [made.outcome for made in step.decisions.values()] == [
                    *("valid", outcome, "valid")
                ]
                assert step.outcome.broke.tolist() == [False, True, False]


# -- runs -----------------------------------------------------------------------------------------

GAMES = [
    {"game": "public_goods", "params": {"players": 3, "rounds": 3}},
    {"game": "el_farol_bar", "params": {"players": 5, "rounds": 2}},
    {"game": "battle_royale", "params": {"players": 4, "max_shots": 6}},
]


def config(server, games=GAMES, **model):
    about = {"base_url": server.url, "timeout": 0.5, "max_wait": 30, "max_in_flight": 32} | model
    return {"games": games, "seats": ["openai:m"], "models": {"m": about}, "episodes": 2, "seed": 3}


def run(path, raw, opened=start):
    plan = resolve(parse(raw, "test"), "test")
    how = (lambda: start(plan, path)) if opened is start else (lambda: Store.open(path))
    play_run(how, plan, players(plan))
    return content(path)


def whole(path, games=GAMES, **model):
    with FaultServer(reply=played) as server:
        return run(path, config(server, games, **model))


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return whole(tmp_path_factory.mktemp("whole") / "whole.db")


def spent(path):
    with Records.open_readonly(path) as records:
        usages = records.spent().values()
        assert replay(records).differences == ()
    return [sum(usage.tokens_in for usage in usages), sum(usage.tokens_out for usage in usages)]


def test_a_run_with_faults_is_the_run_without_and_its_books_are_the_servers(tmp_path, expected):
    quick = [name for name in FAULTS if name not in ("no answer", "no end")]
    trials = Trials(quick)
    with FaultServer(trials, reply=played) as server:
        assert run(tmp_path / "x.db", config(server, timeout=20)) == expected
    assert sum(server.served[name] for name in quick) > 50
    assert max(server.answered.values()) == 1
    assert spent(tmp_path / "x.db") == server.tokens


@pytest.mark.parametrize("fault", ["", "503 and away", "no answer"])
def test_an_outage_of_all_calls_in_flight_changes_nothing(tmp_path, expected, fault):
    with FaultServer(reply=played, delay=0.01, outages={30: (0.4, fault)}) as server:
        began = time.monotonic()
        assert run(tmp_path / "x.db", config(server)) == expected
    assert time.monotonic() - began > 0.4
    assert len(server.seen) < 200


@pytest.mark.parametrize("fault", ["bad key", "no quota", "unknown"])
def test_a_run_stops_at_the_first_call_that_cannot_be_made(tmp_path, expected, fault):
    path = tmp_path / "x.db"
    with FaultServer(lambda body, n: fault if n > 25 else "ok", reply=played) as server:
        with pytest.raises(RunStopped, match=FATAL[fault][1].replace("?", ".")):
            run(path, config(server))
        assert server.served[fault] <= 32
        asked = sum(server.served.values())
        with pytest.raises(ConfigError, match="does not answer, nothing was run"):
            run(path, config(server), Store.open)
        assert sum(server.served.values()) == asked + 1
        before = server.answered.copy()
        server.choose = lambda body, number: "ok"
        assert run(path, config(server), Store.open) == expected
    assert max((server.answered - before).values()) == 1


def test_who_gets_no_completion_does_not_earn(tmp_path):
    """A seat whose calls fail for good would give nothing, and win in public goods."""

    def choose(body, number):
        return "unknown" if body["model"] == "bad" and len(body["messages"]) > 1 else "ok"

    with FaultServer(choose, reply=played) as server:
        raw = config(server) | {"seats": ["openai:m", "openai:bad", "openai:m"]}
        raw["models"] |= {"bad": raw["models"]["m"]}
        with pytest.raises(RunStopped, match="I do not like it"):
            run(tmp_path / "x.db", raw | {"games": GAMES[:1]})
    with Records.open_readonly(tmp_path / "x.db") as records:
        for episode in records.episodes():
            assert episode.status in ("pending", "running")
            assert records.decisions(episode.id) == []


def test_what_a_player_says_does_not_reach_the_others(tmp_path):
    def choose(body, number):
        return "injection" if body["model"] == "bad" and len(body["messages"]) > 1 else "ok"

    with FaultServer(choose) as server:
        raw = config(server) | {"seats": ["openai:m", "openai:bad", "openai:m"]}
        raw["models"] |= {"bad": raw["models"]["m"]}
        run(tmp_path / "x.db", raw | {"games": GAMES[:1]})
    for body in server.seen:
        assert MARK not in str(body["messages"])
    roles = [message["role"] for body in server.seen for message in body["messages"]]
    assert roles.count("system") == len(server.seen) - 2  # the greetings have none


LONG = [
    {"game": name, "params": {"rounds": 10}}
    for name in ("public_goods", "beauty_contest", "el_farol_bar", "divide_dollar")
]
LONG += [
    {"game": "battle_royale", "params": {"players": 7, "max_shots": 20}},
    {"game": "pirate_game", "params": {"players": 5}},
    {"game": "sealed_bid_auction", "params": {"players": 6, "rounds": 10}},
    {"game": "water_allocation"},
]


def toml(value):
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {toml(inner)}' for name, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


@pytest.mark.long
def test_a_thousand_decisions_under_fire_killed_and_interrupted(tmp_path):
    """Every kind of fault, two outages, kill -9 twice and Ctrl-C: the record is the same."""
    path, printed = tmp_path / "x.db", tmp_path / "printed"
    expected = whole(tmp_path / "whole.db", LONG, timeout=30)
    assert sum(len(decisions) for _, _, decisions, _ in expected.values()) >= 1000
    stem = Stem(QUICK)
    outages = {400: (0.5, ""), 1300: (0.5, "503")}
    trials = Trials()
    with FaultServer(trials, reply=played, outages=outages) as server:
        file = tmp_path / "x.toml"
        raw = config(server, LONG, timeout=0.6)
        file.write_text("\n".join(f"{name} = {toml(value)}" for name, value in raw.items()))
        child = stem.start(printed, "run", file, "--db", path, "-q")
        for how, after in ((signal.SIGKILL, 300), (signal.SIGINT, 700), (signal.SIGKILL, 1000)):
            while len(server.seen) < after:
                assert stem.wait(0.02) is None, printed.read_text()
            os.kill(child, how)
            assert stem.wait() == (130 if how == signal.SIGINT else -how), printed.read_text()
            assert "Traceback" not in printed.read_text()
            child = stem.start(printed, "resume", path, "-q")
        assert stem.wait() == 0, printed.read_text()
    stem.close()
    assert content(path) == expected
    with Records.open_readonly(path) as records:
        done = replay(records)
    steps = sum(len(steps) for _, steps, *_ in expected.values())
    assert (done.differences, done.steps) == ((), steps)
    assert {*server.served} >= {*trials.faults, *ODD}
