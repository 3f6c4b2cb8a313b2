"""A seat under fire: whatever a server does, tables go on and every failure is counted."""

import asyncio

import pytest
from fault_server import ANSWERS, MARK, FaultServer

from llm_games.benchmarks.runs.config import parse
from llm_games.benchmarks.runs.plan import players, resolve
from llm_games.benchmarks.runs.run import play_run, start
from llm_games.benchmarks.runs.store import Records
from llm_games.games.public_goods.rules import PublicGoods
from llm_games.wrappers.clients import retry
from llm_games.wrappers.clients.openai import OpenAIClient
from llm_games.wrappers.clients.stack import Shared, dress
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.seats import play_table

GAME = PublicGoods(players=3, rounds=2)
OUTCOMES = {
    "unparsable": (
        *("wrong schema", "wrong type", "prose", "no text", "odd counts"),
        *("not ASCII", "half a character", "injection"),
    ),
    "out_of_range": ("out of range",),
    "truncated": ("10 MB", "10 MB of braces", "too long"),
    "refused": ("refusal", "filter"),
}
EXPECTED = dict.fromkeys([*ANSWERS, "hang", "drip"], "failed") | {
    name: outcome for outcome, names in OUTCOMES.items() for name in names
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(retry, "_backoff", lambda tries, limited: 0.005)
    monkeypatch.setattr(retry, "PATIENCE", 0.02)


def policy(server, shared, fault):
    # All share one server, which fails as the model's name says.
    client = OpenAIClient(fault, server.url, timeout=0.8 if fault in ("hang", "drip") else 20)
    return LLMPolicy(dress(client, retries=1, max_in_flight=8, shared=shared), max_attempts=2)


@pytest.mark.slow
def test_a_failing_seat_does_not_stop_its_table_or_others():
    async def table(sound, broken, seed):
        try:
            return await play_table(GAME, [sound, broken, sound], seed)
        finally:
            await broken.client.close()

    async def tables(server, shared):
        sound = policy(server, shared, "ok")
        broken = [policy(server, shared, fault) for fault in EXPECTED]
        try:
            async with asyncio.timeout(120):
                games = (table(sound, bad, seed) for seed, bad in enumerate(broken))
                return await asyncio.gather(*games)
        finally:
            await sound.client.close()

    shared = Shared()
    with FaultServer(lambda body, number: body["model"]) as server:
        episodes = asyncio.run(tables(server, shared))
    for (fault, outcome), episode in zip(EXPECTED.items(), episodes, strict=True):
        assert episode.over
        assert len(episode.steps) == 2
        for step in episode.steps:
            assert step.decisions[0].outcome == step.decisions[2].outcome == "valid"
            attempts = [attempt.outcome for attempt in step.decisions[1].attempts]
            assert set(attempts) == {outcome}, fault
            assert step.outcome.broke.tolist() == [False, True, False]
        usage = shared.ledger.models[fault]
        asked = [body for body in server.seen if body["model"] == fault]
        assert usage.calls == len(asked), fault
        assert usage.failures == (len(asked) if outcome == "failed" else 0), fault
    assert shared.ledger.models["ok"].failures == 0


def config(good, bad, **more):
    goods = {"game": "public_goods", "params": {"players": 3, "rounds": 2}, "episodes": 4}
    seats = ["openai:good", "openai:bad", "openai:good"]
    models = {"good": {"base_url": good.url}, "bad": {"base_url": bad.url, "retries": 1}}
    limits = {"model": "m", "timeout": 5.0, "max_in_flight": 8}
    return {
        "games": [goods],
        "seats": seats,
        "models": {name: model | limits for name, model in models.items()},
        **more,
    }


def run(path, raw):
    plan = resolve(parse(raw, "test"), "test")
    play_run(lambda: start(plan, path), plan, players(plan))


@pytest.mark.slow
def test_a_run_over_all_faults_ends_and_counts_each(tmp_path):
    names = [name for name in EXPECTED if name not in ("hang", "drip") and "MB" not in name]

    def mixed(body, number):
        """Fail in turn, but greet, and answer every fourth time so that the run is not given up."""
        return "ok" if number == 1 or number % 4 == 0 else names[number % len(names)]

    with FaultServer() as good, FaultServer(mixed) as bad:
        raw = config(good, bad, max_failures=1000)
        raw["games"][0]["episodes"] = 12
        run(tmp_path / "x.db", raw)
    with Records.open_readonly(tmp_path / "x.db") as records:
        assert {episode.status for episode in records.episodes()} == {"done"}
        outcomes = records.usage()["outcomes"]
        assert outcomes["valid"] >= 48
        assert set(outcomes) > {"valid", "unparsable", "failed"}


def test_what_a_player_says_does_not_reach_the_others(tmp_path):
    def choose(body, number):
        return "ok" if number == 1 else "injection"

    with FaultServer() as good, FaultServer(choose) as bad:
        run(tmp_path / "x.db", config(good, bad))
        for body in good.seen + bad.seen:
            assert MARK not in str(body["messages"])
        roles = [m["role"] for body in good.seen for m in body["messages"]]
        assert roles.count("system") == len(good.seen) - 1  # the greeting has none
