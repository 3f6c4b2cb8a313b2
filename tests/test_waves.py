"""Calls in batches: half the price, one wave for all tables, and no line is sent twice."""

import json
import os
import random
import signal
import time
from decimal import Decimal

import pytest
from batch_server import TOKENS_IN, TOKENS_OUT, BatchServer
from test_kill import Stem, recorded_file
from test_worker_files import in_order

import llm_games as lg
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.merge import merge
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.spending import Spending, unsure
from llm_games.benchmarks.run.conduct import RunStopped
from llm_games.wrappers.clients import batch_services, waves

SERVICES = "openai", "anthropic"
ROUNDS = 3


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(waves, "QUIET", 0.1)
    monkeypatch.setattr(waves, "LOOKS", (0.02, 0.1))
    monkeypatch.setattr(waves, "QUEUED", 0.05)
    monkeypatch.setattr(batch_services, "LOOK", 0.05)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-key")
    running = BatchServer()
    yield running
    running.stop()


def seat(server, service="openai", **settings):
    """A model of one service, at a full price of 2 and 10 for a million tokens."""
    here = {"player": "openai:m", "base_url": f"{server.url}/v1"}
    if service == "anthropic":
        here = {"player": "anthropic/m", "base_url": server.url, "max_tokens": 500}
    return {**here, "batch": True, **settings}


def raw(*seats, episodes=8, **more):
    return {
        "seats": list(seats),
        "episodes": episodes,
        "prices": {"m": {"input": 2.0, "output": 10.0}},
        "games": [{"game": "public_goods", "params": {"players": 4, "rounds": ROUNDS}}],
        **more,
    }


def usage(path):
    with Records.open_readonly(path) as records:
        return Spending(records).total


@pytest.mark.parametrize("service", SERVICES)
def test_all_open_decisions_are_one_wave_at_half_the_price(service, server, tmp_path):
    server.fails = 10**9
    path = lg.run(raw(seat(server, service), max_tables=1), tmp_path / "a.db").path
    assert [len(batch["answers"]) for batch in server.batches] == [32] * ROUNDS
    assert server.singles == 0  # nor was anybody greeted
    calls = 32 * ROUNDS
    total = usage(path)
    assert (total.calls, total.failures, total.unknown) == (calls, 0, 0)
    full = Decimal(2 * TOKENS_IN + 10 * TOKENS_OUT) / 1_000_000
    assert total.money == calls * full / 2
    with Records.open_readonly(path) as records:
        noted = {row.batch: row.lines for row in records.waves()}
        assert records.lines() == []
        prices = records.config["prices"]
    assert noted == {batch["id"]: 32 for batch in server.batches}
    assert (prices["m"]["input"], prices["m in batches"]["input"]) == (2.0, 1.0)
    named = [batch["metadata"] and batch["metadata"]["run"] for batch in server.batches]
    assert named == [{"openai": "Untitled run", "anthropic": None}[service]] * ROUNDS


FIRST = """
import os, signal
from llm_games.benchmarks.run.stored_waves import StoredWaves
from llm_games.wrappers.clients import batch_services, waves

waves.QUIET, waves.LOOKS, batch_services.LOOK = 0.1, (0.02, 0.1), 0.05
seen = {}

def killed_at(moment):
    seen[moment] = seen.get(moment, 0) + 1
    if open(os.environ["KILL_FILE"]).read() == f"{moment} {seen[moment]}":
        os.kill(os.getpid(), signal.SIGKILL)

def watch(owner, name):
    method = getattr(owner, name)
    async def watched(*arguments):
        killed_at(f"before {name}")
        result = await method(*arguments)
        killed_at(f"after {name}")
        return result
    setattr(owner, name, watched)

for name in ("enter", "note_batch"):
    watch(StoredWaves, name)
for service in (batch_services.OpenAIBatches, batch_services.AnthropicBatches):
    for name in ("create", "over", "results", "find"):
        watch(service, name)
"""
MOMENTS = (
    "before enter 1",
    "after enter 1",
    "before create 1",
    "after create 1",
    "before find 1",
    "after find 1",
    "after note_batch 2",
    "after over 1",
    "before results 2",
    "after results 1",
)
"""When the run, and what goes on with it, is killed; at the last one with answers in hand."""


@pytest.fixture
def stem(tmp_path, server, monkeypatch):
    monkeypatch.setenv("KILL_FILE", str(tmp_path / "moment"))
    process = Stem(FIRST)
    yield process
    process.close()


def but_for_waves(path):
    """All rows; how many batches there were, and what they are called, hangs on kills."""
    rows = in_order(path)
    assert rows["lines"] == rows["flights"] == []
    return {name: rows[name] for name in rows if name not in ("waves", "lengths")}


@pytest.mark.parametrize("service", ["openai", pytest.param("anthropic", marks=pytest.mark.long)])
def test_a_run_that_is_killed_sends_no_line_twice(service, server, tmp_path, stem):
    """Whenever it is killed, its rows and its books are those of a run that never was."""
    server.fails = 15
    config = raw(seat(server, service))
    whole = but_for_waves(lg.run(config, tmp_path / "whole.db").path)
    lines, total = server.lines, usage(tmp_path / "whole.db")
    assert total.failures == sum(lines.values()) - 32 * ROUNDS > 0
    server.batches.clear()
    server.seen.clear()
    file, path, printed = tmp_path / "a.toml", tmp_path / "a.db", tmp_path / "printed"
    file.write_text(toml(config))
    for number, moment in enumerate((*MOMENTS, "")):
        (tmp_path / "moment").write_text(moment)
        task = ("resume", path) if number else ("run", file, "--db", path)
        stem.start(printed, *task, "-q")
        code = stem.wait()
        assert code == (-signal.SIGKILL if moment else 0), (moment, printed.read_text())
        if moment == "after create 1":
            assert unsure(usage(path)).startswith("32 calls sent, outcome unknown: at most ")
    assert server.lines == lines
    assert set(lines.values()) == {1}
    assert but_for_waves(path) == whole


@pytest.mark.long
def test_a_run_that_is_killed_at_random_moments(server, tmp_path, stem):
    server.fails = 15
    config = raw(seat(server))
    began = time.monotonic()
    whole = but_for_waves(lg.run(config, tmp_path / "whole.db").path)
    span, lines = time.monotonic() - began, server.lines
    (tmp_path / "moment").write_text("")
    file, printed, rng, kills = tmp_path / "a.toml", tmp_path / "printed", random.Random(5), 0
    file.write_text(toml(config))
    while kills < 20:
        server.batches.clear()
        server.seen.clear()
        path, code = tmp_path / f"{kills}.db", None
        while code != 0:
            task = ("resume", path) if recorded_file(path) else ("run", file, "--db", path)
            child = stem.start(printed, *task, "-q")
            if (code := stem.wait(rng.uniform(0.1, 0.7) * span)) is None:
                os.kill(child, signal.SIGKILL)
                kills += 1
                code = stem.wait()
        assert server.lines == lines
        assert but_for_waves(path) == whole


def toml(config):
    seats = ", ".join(f"{k} = {str(v).lower() if v is True else repr(v)}" for k, v in
                      config["seats"][0].items())  # fmt: skip
    return f"""
episodes = {config["episodes"]}
seats = [{{ {seats} }}]
[prices.m]
input = 2.0
output = 10.0
[[games]]
game = "public_goods"
params = {{ players = 4, rounds = {ROUNDS} }}
"""


def played(tmp_path, config):
    path = lg.run(config, tmp_path / f"{time.monotonic_ns()}.db").path
    return but_for_waves(path)


@pytest.mark.parametrize("service", SERVICES)
def test_what_goes_wrong_with_a_batch_is_asked_again(service, server, tmp_path):
    """Lines fail or run out of time; a server is down, or says no and means later."""
    server.fails = 10**9
    config = raw(seat(server, service, max_wait=30))
    whole = played(tmp_path, config)
    server.batches.clear()
    server.fails, server.down, server.expires = 5, 2, {1, 2}
    server.refuses = [LATER] * (service == "openai")
    rows = played(tmp_path, config)
    assert {name: rows[name] for name in ROWS} == {name: whole[name] for name in ROWS}
    assert set(server.lines.values()) == {1}


LATER = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached", "line": None}
ROWS = "steps", "decisions", "attempts", "prompts", "messages", "notes", "episodes"
"""What failures leave as it is."""


def test_a_refused_batch_ends_a_run_that_goes_on_later(server, tmp_path):
    server.fails = 10**9
    server.refuses = [{"code": "billing_hard_limit_reached", "message": "Pay first."}]
    path = tmp_path / "a.db"
    with pytest.raises(RunStopped, match=r"Pay first\. – no money is left.*\n.*resume"):
        lg.run(raw(seat(server)), path)
    lg.resume(path)
    assert len(server.lines) == 32 * ROUNDS
    assert usage(path).failures == 32


def test_a_line_that_always_fails_ends_the_run(server, tmp_path, monkeypatch):
    monkeypatch.setattr(server, "_outcome", lambda *_: "expires")
    with pytest.raises(
        RunStopped, match="expired before its turn – so it was in each of 5 batches"
    ):
        lg.run(raw(seat(server)), tmp_path / "a.db")


def test_a_server_that_is_gone_leaves_its_batches_on_record(server, tmp_path, monkeypatch):
    path, enter = tmp_path / "a.db", server.enter

    def fall(*lines):
        server.down = 10**6
        return enter(*lines)

    monkeypatch.setattr(server, "enter", fall)
    with pytest.raises(RunStopped, match="batch batch_0 is on record"):
        lg.run(raw(seat(server, max_wait=0.5)), path)
    monkeypatch.setattr(server, "enter", enter)
    server.down = 0
    lg.resume(path)
    assert set(server.lines.values()) == {1}
    assert usage(path).unknown == 0


def test_batches_of_parts_are_looked_for_once_these_are_merged(server, tmp_path, monkeypatch):
    paths, enter = [tmp_path / "1.db", tmp_path / "2.db"], server.enter

    def fall(*lines):
        server.down = 10**6
        return enter(*lines)

    monkeypatch.setattr(server, "enter", fall)
    for number, path in enumerate(paths, 1):
        server.down = 0
        with pytest.raises(RunStopped, match=r"batch batch_\d is on record"):
            lg.run(raw(seat(server, max_wait=0.5)), path, part=f"{number}/2")
    monkeypatch.setattr(server, "enter", enter)
    server.down = 0
    merge(paths, tmp_path / "whole.db")
    lg.resume(tmp_path / "whole.db")
    assert [len(batch["answers"]) for batch in server.batches][:2] == [16, 16]
    assert set(server.lines.values()) == {1}
    but_for_waves(tmp_path / "whole.db")


@pytest.mark.parametrize("service", SERVICES)
def test_answers_that_are_not_kept_any_more_are_asked_for_again(
    service, server, tmp_path, monkeypatch
):
    path, enter = tmp_path / "a.db", server.enter

    def forget(*lines):
        server.keeps = len(server.batches) > 0
        return enter(*lines)

    monkeypatch.setattr(server, "enter", forget)
    lg.run(raw(seat(server, service)), path)
    assert [len(batch["answers"]) for batch in server.batches][:2] == [32, 32]


@pytest.mark.parametrize("service", SERVICES)
def test_who_cancels_a_batch_stops_the_run(service, server, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(server, "_outcome", lambda *_: "cancelled")
        with pytest.raises(RunStopped, match="the batch was cancelled"):
            lg.run(raw(seat(server, service)), tmp_path / "a.db")
    assert len(server.batches) == 1
    lg.resume(tmp_path / "a.db")


def test_an_option_that_is_refused_is_left_out(server, tmp_path, caplog):
    server.options = {"seed"}
    path = lg.run(raw(seat(server)), tmp_path / "a.db").path
    assert [len(batch["keys"]) for batch in server.batches[:2]] == [0, 32]
    assert caplog.messages == [f"{server.url}/v1 refuses seed and is asked without it"]
    with Records.open_readonly(path) as records:
        left_out = [row.left_out for e in records.episodes() for row in records.attempts(e.id)]
    assert left_out == [["seed"]] * len(left_out)


def test_as_many_batches_are_under_way_as_are_allowed(server, tmp_path, monkeypatch):
    monkeypatch.setattr(waves, "MOST_LINES", 10)
    server.seconds, sizes = 0.3, []
    enter = server.enter

    def counted(*about):
        batch = enter(*about)
        sizes.append(sum(not server.over(each) for each in server.batches))
        return batch

    monkeypatch.setattr(server, "enter", counted)
    lg.run(raw(seat(server, max_in_flight=2)), tmp_path / "a.db")
    assert max(sizes) == 2
    assert {len(batch["answers"]) for batch in server.batches} <= {*range(1, 11)}


def test_a_batch_that_is_too_much_for_the_queue_is_divided(server, tmp_path, monkeypatch):
    server.fails, sizes, enter = 10**9, [], server.enter

    def queue(kind, lines, about):
        sizes.append(len(lines))
        server.refuses = [LATER] * (len(lines) > 10)
        return enter(kind, lines, about)

    monkeypatch.setattr(server, "enter", queue)
    path = lg.run(raw(seat(server)), tmp_path / "a.db").path
    assert sizes == [32, 16, 8, 8, 16, 8, 8] * ROUNDS
    assert usage(path).failures == 0


def test_a_budget_that_ends_between_batches(server, tmp_path):
    server.fails = 10**9
    path = tmp_path / "a.db"
    with pytest.raises(RunStopped, match="--budget-calls MORE"):
        lg.run(raw(seat(server)), path, budget_calls=40)
    lg.resume(path, budget_calls=1000)
    assert [len(batch["answers"]) for batch in server.batches][:2] == [32, 8]
    assert set(server.lines.values()) == {1}
    assert usage(path).calls == 32 * ROUNDS


def test_two_seats_of_one_model_share_waves(server, tmp_path):
    server.fails = 10**9
    hot = seat(server, name="hot", temperature=1.5)
    lg.run(raw(seat(server), hot, hot, hot, order="fixed"), tmp_path / "a.db")
    assert [len(batch["answers"]) for batch in server.batches] == [32] * ROUNDS


def test_a_stop_leaves_batches_to_themselves(server, tmp_path, stem):
    server.seconds = 60.0
    (tmp_path / "moment").write_text("")
    file, path, printed = tmp_path / "a.toml", tmp_path / "a.db", tmp_path / "printed"
    file.write_text(toml(raw(seat(server))))
    child = stem.start(printed, "run", file, "--db", path)
    while not server.batches:
        time.sleep(0.05)
    time.sleep(0.3)
    began = time.monotonic()
    os.kill(child, signal.SIGINT)
    assert stem.wait() == 130
    assert time.monotonic() - began < 20
    assert "asked in batches, each of which may take a day" in printed.read_text()
    assert "32 calls sent, outcome unknown" in printed.read_text()
    server.seconds = 0.0
    lg.resume(path)
    assert set(server.lines.values()) == {1}
    assert (usage(path).unknown, usage(path).calls) == (0, sum(server.lines.values()))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"player": "google/g", "api_key_env": ""}, "google/ is asked call by call: leave out"),
        ({"player": "tiny", "base_url": None}, "tiny has no batches: leave out batch"),
        ({"stream": True}, "leave out stream, or batch"),
        ({"requests_per_minute": 5}, "requests_per_minute and tokens_per_minute are for calls"),
        ({"model": "other"}, "check the model's name"),
        ({"base_url": "https://api.openai.com/v1", "api_key_env": "NO_KEY"}, "NO_KEY"),
    ],
)
def test_what_cannot_be_batched_is_said_before_anything_is_paid(changes, words, server, tmp_path):
    player = {k: v for k, v in seat(server, **changes).items() if v is not None}
    if "model" in changes:
        player["player"] = f"openai:{player.pop('model')}"
    with pytest.raises(ConfigError, match=words):
        lg.run(raw(player), tmp_path / "a.db")
    assert not (tmp_path / "a.db").exists()
    assert not server.batches


def test_what_does_not_go_together_with_batches(server, tmp_path):
    path = tmp_path / "a.db"
    with pytest.raises(ConfigError, match="leave out workers, or batch"):
        lg.run(raw(seat(server)), path, workers=2)
    with pytest.raises(ConfigError, match=r"'human' would wait for a day.*leave out batch"):
        lg.run(raw(seat(server), "human", "random", "random"), path)
    with pytest.raises(lg.errors.BadParameter, match="batches are for runs"):
        lg.player("openai:m", client={"base_url": server.url, "batch": True})
    server.has_batches = False
    with pytest.raises(ConfigError, match="has no batches: leave out batch = true"):
        lg.run(raw(seat(server)), path)
    assert not path.exists()


def test_a_dry_run_halves_prices(server, tmp_path, llm_games):
    file = tmp_path / "a.toml"
    config = raw(seat(server))
    estimates = []
    for batch in ("true", "false"):
        file.write_text(toml(config).replace("batch = true", f"batch = {batch}"))
        code, out, _ = llm_games("run", file, "--dry-run", "--json")
        assert code == 0
        estimates.append([Decimal(money) for money in json.loads(out)["estimate"][0]["money"]])
    assert [2 * money for money in estimates[0]] == estimates[1]
    code, out, _ = llm_games("run", file.with_name("a.toml"), "--dry-run")
    assert "batches" not in out
    file.write_text(toml(config))
    code, out, _ = llm_games("run", file, "--dry-run")
    assert f"In batches, at half the price: {ROUNDS} waves or more, each of a day at most" in out
