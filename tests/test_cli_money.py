"""What a run costs at a server that counts: its books, and all that shows them, agree with it."""

import csv
import json
import re
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest
from fault_server import FAULTS, FaultServer, completion

from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.spending import Spending
from llm_games.wrappers.clients import metered
from llm_games.wrappers.clients.prices import Price

CONFIG = """
seats = ["openai:thinker"]
[models.thinker]
base_url = "{url}"
max_in_flight = 40
[prices.thinker]
input = 2.0
cached = 0.5
written = 2.5
output = 10.0
reasoning = 12.0
[[games]]
game = "public_goods"
label = "poor"
params = {{players = 3, rounds = 3}}
episodes = 4
[[games]]
game = "public_goods"
label = "rich"
params = {{players = 3, rounds = 3, tokens = 50}}
order = "shuffled"
episodes = 3
"""
MOVES = 7 * 3 * 3


class Thinker(FaultServer):
    """Thinks between 40 and 4,000 tokens, by the seed, before it answers; counts what it gives."""

    def __init__(self, fault=lambda number: "ok"):
        super().__init__(lambda body, number: fault(number), reply=think)
        self.calls = self.tokens_in = self.tokens_out = self.cached = self.thoughts = self.cut = 0
        self.written = 0

    def _count(self, name, body, said):
        if name == "ok":
            usage, [choice] = said["usage"], said["choices"]
            self.calls, self.cut = self.calls + 1, self.cut + (choice["finish_reason"] == "length")
            self.tokens_in += usage["prompt_tokens"]
            self.cached += usage["prompt_tokens_details"]["cached_tokens"]
            self.written += usage["prompt_tokens_details"]["cache_write_tokens"]
            self.tokens_out += usage["completion_tokens"]
            self.thoughts += usage["completion_tokens_details"]["reasoning_tokens"]

    @property
    def money(self):
        fresh, said = self.tokens_in - self.cached, self.tokens_out - self.thoughts
        paid = fresh * Decimal(2) + self.cached * Decimal("0.5") + self.written * Decimal("0.5")
        return (paid + said * Decimal(10) + self.thoughts * Decimal(12)) / 10**6


def think(body):
    prompt = sum(len(message["content"]) for message in body["messages"]) // 4
    thoughts = int(40 * 100 ** ((body["seed"] or 7) % 1000 / 1000))
    limit, finish, text = body.get("max_tokens") or 10**9, "stop", '{"tokens_contributed": 5}'
    if thoughts + 10 > limit:
        thoughts, finish, text = limit, "length", ""
    parts = {"cached_tokens": prompt // 2, "cache_write_tokens": prompt // 4}
    usage = {"prompt_tokens": prompt, "prompt_tokens_details": parts}
    usage |= {"completion_tokens": thoughts + 10 * bool(text)}
    usage |= {"completion_tokens_details": {"reasoning_tokens": thoughts}}
    return completion(text, finish, usage, reasoning_content="Hm. " * 9)


def serve(**how):
    server = Thinker(**how)
    server.__enter__()
    Path("x.toml").write_text(CONFIG.format(url=server.url))
    return server


@pytest.fixture
def thinker(llm_games):
    server = serve(
        fault=lambda number: "429, to come again in seconds" if number in (9, 30) else "ok"
    )
    yield server
    server.__exit__()


def rewards(path):
    with Records.open_readonly(path) as records:
        return [[step.rewards for step in records.steps(e.id)] for e in records.episodes()]


def rows_of(path):
    return list(csv.DictReader(Path(path).read_text("utf-8").splitlines()))


@pytest.mark.slow
def test_terminal_report_and_file_have_what_the_server_counted(llm_games, thinker):
    code, out, _ = llm_games("run", "x.toml", "--db", "a.db", "--budget-tokens", 10**7)
    assert (code, thinker.calls) == (0, MOVES + 1)
    server = (thinker.tokens_in, thinker.tokens_out)
    with Records.open_readonly("a.db") as records:
        spent = Spending(records)
        assert records.config["prices"]["thinker"]["reasoning"] == 12
    total = spent.total
    assert (total.calls, total.failures) == (len(thinker.seen), 2)
    assert (total.tokens_in, total.tokens_out) == server
    assert (total.tokens_cached, total.tokens_reasoning) == (thinker.cached, thinker.thoughts)
    assert total.tokens_written == thinker.written > 0
    assert total.money == thinker.money

    parts = f"{thinker.cached:,} cached, {thinker.written:,} written"
    said = f"{server[0]:,} tokens in ({parts}), {server[1]:,} out "
    assert said + f"({thinker.thoughts:,} of thoughts), money {thinker.money:.4f}" in out
    found = json.loads(llm_games("resume", "a.db", "--json")[1])["spent"]
    assert Decimal(found["models"]["thinker"]["money"]) == thinker.money

    assert llm_games("report", "a.db", "-o", ".")[0] == 0
    page = re.sub(r"<[^>]*>|\s+", " ", Path("report.html").read_text("utf-8"))
    both = f"{server[0]:,} / {server[1]:,}"
    assert both in " ".join(page.split())
    assert f"{thinker.money:.4f}" in page
    seats = rows_of("tables/spent.csv")
    assert sum(int(row["tokens out"]) for row in seats) == server[1]
    assert sum(Decimal(row["money"]) for row in seats) == thinker.money
    assert {row["seat"] for row in seats} == {
        "greeting",
        *(f"{label}/player_{seat}" for label in ("poor", "rich") for seat in range(3)),
    }
    players = rows_of("tables/players.csv")
    assert sum(int(row["tokens_in"]) for row in players) == server[0] - spent.seats[""].tokens_in


def test_a_budget_never_becomes_a_move(llm_games, thinker):
    assert llm_games("run", "x.toml", "--db", "whole.db", "-q")[0] == 0
    began, flags = thinker.tokens_in + thinker.tokens_out, ("--budget-tokens", 40_000)
    code, _, err = llm_games("run", "x.toml", "--db", "a.db", *flags)
    assert code == 1
    assert "tokens = 40000, has" in err
    assert thinker.tokens_in + thinker.tokens_out - began <= 40_000
    assert thinker.cut > 0
    for more in (80_000, 10**7):
        code, _, _ = llm_games("resume", "a.db", "--budget-tokens", more)
        assert code == (more < 10**7)
    assert rewards("a.db") == rewards("whole.db")
    with Records.open_readonly("a.db") as records:
        assert records.usage()["outcomes"] == {"valid": MOVES}
        total = records.spent()
    assert sum(usage.tokens for usage in total.values()) == (
        thinker.tokens_in + thinker.tokens_out - began
    )


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_has_spent_what_it_received(llm_games, monkeypatch, how):
    monkeypatch.setitem(FAULTS, "hang", [3600.0])
    server = serve(fault=lambda number: "ok" if number < 15 else "hang")
    try:
        command = [sys.executable, "-m", "llm_games.benchmarks.show.cli", "run", "x.toml", "-q"]
        flags = ["--db", "a.db", "--budget-tokens", "1000000", "--budget-money", "5"]
        with subprocess.Popen(command + flags, stderr=subprocess.DEVNULL) as run:
            while len(server.seen) < 20 and run.poll() is None:
                time.sleep(0.02)
            for _ in range(2):  # the first Ctrl-C waits for an answer, the second does not
                time.sleep(0.3)
                run.send_signal(how)
        with Records.open_readonly("a.db") as records:
            spent = Spending(records).total
        assert (spent.tokens_in, spent.tokens_out) == (server.tokens_in, server.tokens_out)
        assert spent.money == server.money
        assert spent.calls == len(server.seen)
        assert spent.unknown == len(server.seen) - server.calls > 0
        assert spent.unknown_out > 40 * spent.unknown
        assert spent.unknown_money > 0
    finally:
        server.__exit__()


def test_a_dry_run_says_money_and_whether_the_budget_is_enough(llm_games, thinker):
    flags = ("--dry-run", "--budget-tokens", 100_000, "--budget-money", 0.01)
    code, out, _ = llm_games("run", "x.toml", *flags, "--budget-calls-per-seat", 20)
    assert (code, thinker.seen) == (0, [])
    said = " ".join(out.split())
    assert "budget, tokens = 100,000: perhaps enough for " in said
    assert "budget, money = 0.01: too little for " in said
    assert "budget, calls_per_seat = 20: enough for 12" in said
    found = json.loads(llm_games("run", "x.toml", *flags, "--json")[1])
    for row, episodes in zip(found["estimate"], (4, 3), strict=True):
        assert row["calls"] == 9 * episodes
        assert row["tokens_out"] == [20 * row["calls"], 3000 * row["calls"]]
        low, high = map(Decimal, row["money"])
        # At most, all of a prompt is written into the cache, and all of a reply are thoughts; at
        # least, all of it was cached.
        cheap = row["tokens_in"][0] * Decimal("0.5") + row["tokens_out"][0] * Decimal(10)
        dear = row["tokens_in"][1] * Decimal("2.5") + row["tokens_out"][1] * Decimal(12)
        assert (low, high) == (cheap / 10**6, dear / 10**6)
    assert found["budget"]["money"]["fits"] == "no"
    assert found["prices"]["thinker"]["cached"] == 0.5

    text = Path("x.toml").read_text()
    Path("x.toml").write_text(f"{text}\n[player]\nmax_tokens = 30\n")
    found = json.loads(llm_games("run", "x.toml", *flags, "--json")[1])
    assert found["estimate"][0]["tokens_out"] == [20 * 36, 30 * 36]


def test_a_listed_price_is_kept_with_the_run(llm_games, thinker, monkeypatch):
    text = Path("x.toml").read_text()
    own, rest = text.index("[prices"), text.index("[[games]]")
    Path("x.toml").write_text(text[:own] + text[rest:])
    flags = ("--budget-money", 0.1)
    code, _, err = llm_games("run", "x.toml", "--db", "a.db", *flags)
    assert (code, thinker.seen) == (2, [])
    assert "needs the price of 'thinker'" in err

    paid = map(Decimal, (2, 10, "0.5", 12))
    price = Price(*paid, source="genai-prices 9.9", written=Decimal("2.5"))
    monkeypatch.setattr(metered, "listed", lambda *_: price)
    assert llm_games("run", "x.toml", "--db", "a.db", *flags)[0] == 1
    monkeypatch.setattr(metered, "listed", lambda *_: None)  # another version of the list
    assert llm_games("resume", "a.db", "--budget-money", 10)[0] == 0
    with Records.open_readonly("a.db") as records:
        assert records.config["prices"]["thinker"]["source"] == "genai-prices 9.9"
        assert Spending(records).total.money == thinker.money
