"""The command line and what models cost: budgets, the cache of replies, what was spent."""

import json
from contextlib import contextmanager
from pathlib import Path

import pytest
from fault_server import FaultServer

from llm_games.benchmarks.record.store import Records

CONFIG = """
seats = ["openai:m"]
[player]
max_tokens = 50
temperature = 0.0
[models.m]
base_url = "{url}"
max_wait = 60
max_in_flight = 40
[prices.m]
input = 2.0
output = 10.0
[[games]]
game = "public_goods"
params = {{players = 3, rounds = 2}}
episodes = {episodes}
"""
CALLS, TOKENS_IN, TOKENS_OUT = 18, 100, 10
"""of a run of three episodes without its greeting, and of one call"""


@contextmanager
def serving(episodes=3, **how):
    with FaultServer(**how) as server:
        Path("x.toml").write_text(CONFIG.format(url=server.url, episodes=episodes))
        yield server


def greeting(body):
    return len(body["messages"]) == 1


def uncounted(body, number):
    """Count no tokens of a greeting: its fixed count would say that all prompts are long."""
    return "odd counts" if greeting(body) else "ok"


def spent(path):
    with Records.open_readonly(path) as records:
        return records.spent()


def most_calls(path, flag):
    """Give the calls that a budget of this flag counts together: a seat's, or all seats'."""
    counts = [usage.calls for (_, seat), usage in spent(path).items() if seat]
    return max(counts) if "seat" in flag else sum(counts)


def rewards(path):
    with Records.open_readonly(path) as records:
        return [[step.rewards for step in records.steps(e.id)] for e in records.episodes()]


@pytest.mark.parametrize(
    ("flag", "most", "more"),
    [
        ("--budget-calls", 30, 62),
        ("--budget-tokens", 5000, 9000),
        ("--budget-money", 0.01, 1),
        ("--budget-calls-per-seat", 10, 20),
        ("--budget-tokens-per-seat", 1500, 9000),
        ("--budget-money-per-seat", 0.004, 1),
    ],
)
def test_a_budget_stops_a_run_in_time_and_more_of_it_lets_it_finish(llm_games, flag, most, more):
    with serving(10, choose=uncounted) as server:
        code, out, err = llm_games("run", "x.toml", "--db", "a.db", flag, most)
        assert (code, out) == (1, "")
        assert f"go on with: llm-games resume a.db {flag} MORE" in err
        asked = len(server.seen)
        assert 15 < asked < 60
        units = {"calls": 1, "tokens": TOKENS_IN + TOKENS_OUT, "money": 3e-4}
        [unit] = [size for name, size in units.items() if name in flag]
        assert sum(usage.calls for usage in spent("a.db").values()) == asked
        assert most_calls("a.db", flag) * unit <= most

        assert llm_games("resume", "a.db")[0] == 1  # the budget is still what it was
        assert most_calls("a.db", flag) * unit <= most
        if "seat" not in flag:  # else the other seats may have something left
            assert len(server.seen) <= asked + 1  # a greeting
        code, _, err = llm_games("resume", "a.db", flag, more)
        assert (code, err) == (0, "")
        assert sum(not greeting(body) for body in server.seen) == 60  # nothing was asked twice
        assert sum(usage.calls for usage in spent("a.db").values()) == len(server.seen)
        assert llm_games("run", "x.toml", "--db", "b.db", "--quiet")[0] == 0
    assert rewards("a.db") == rewards("b.db")


def test_a_budget_that_is_spent_pays_for_no_greeting(llm_games):
    with serving() as server:
        assert llm_games("run", "x.toml", "--db", "a.db", "--budget-calls", 10)[0] == 1
        assert llm_games("resume", "a.db")[0] == 1
        assert llm_games("resume", "a.db", "--budget-calls", 9)[0] == 1
        assert len(server.seen) == 10


def test_what_was_spent_is_shown_for_each_model_and_kept_for_each_seat(llm_games, tmp_path):
    with serving(
        choose=lambda body, number: "429, to come again in seconds" if number == 9 else "ok"
    ) as server:
        code, out, _ = llm_games("run", "x.toml", "--db", "a.db")
        assert (code, len(server.seen)) == (0, CALLS + 2)  # a greeting and a second try
    said = "m: 20 calls (1 failed), 1,900 tokens in, 190 out, money 0.0057"
    assert [line for line in out.splitlines() if "tokens in" in line] == [said]
    assert "player_" not in out
    found = json.loads(llm_games("resume", "a.db", "--json")[1])["spent"]
    assert list(found) == ["models", "seats"]
    assert found["models"]["m"]["money"] == "0.0057"
    assert found["models"]["m"]["failures"] == 1
    assert sum(seat["tokens_in"] for seat in found["seats"].values()) == 1900
    assert set(found["seats"]) == {"", *(f"public_goods/player_{i}" for i in range(3))}
    assert llm_games("report", "a.db", "-o", ".")[0] == 0
    page = (tmp_path / "report.html").read_text()
    assert "By seat and model, in all 4 rows" in page
    assert all(f">public_goods/player_{seat}<" in page for seat in range(3))
    heads, first, *rest = (tmp_path / "tables" / "spent.csv").read_text().splitlines()
    assert heads == (
        "run,seat,model,calls,failed,tokens in,cached,written,tokens out,thoughts,money"
    )
    assert (first, len(rest)) == ("a,greeting,m,1,0,100,0,0,10,0,0.0003", 3)


def test_how_many_calls_the_server_bore_is_in_the_file(llm_games):
    with serving(
        choose=lambda body, number: "429, to come again in seconds" if number == 9 else "ok"
    ) as server:
        assert llm_games("run", "x.toml", "--db", "a.db", "--budget-calls", 12)[0] == 1
        assert llm_games("resume", "a.db", "--budget-calls", 99)[0] == 0
    with Records.open_readonly("a.db") as records:
        first, second = records.limits()
    assert first.began < second.began
    assert (first.model, first.server) == ("m", server.url)
    assert [limit for _, limit in first.history] == [32, 25]
    assert first.history[1][0] > 0
    assert second.history == [[0.0, 32]]


def test_a_cache_serves_the_next_run_and_can_be_listed_and_pruned(llm_games):
    def run(*flags):
        before = len(server.seen)
        assert llm_games("run", "x.toml", "--quiet", "--db", f"{before}.db", *flags)[0] == 0
        return len(server.seen) - before

    def listed():
        code, out, _ = llm_games("cache", "list", "replies.db", "--json")
        assert code == 0
        return [(row["model"], row["replies"]) for row in json.loads(out)]

    with serving() as server:
        kept = ("--cache", "replies.db")
        assert run(*kept) == CALLS + 1
        assert run(*kept, "--seed", 1, "--budget-calls", 1) == 1
        assert run("--no-cache") == CALLS + 1
        assert listed() == [("m", CALLS)]
        assert " 18 " in llm_games("cache", "list", "replies.db")[1]
        assert "0 replies dropped" in llm_games("cache", "prune", "replies.db", *OLD)[1]
        assert "18 replies dropped" in llm_games("cache", "prune", "replies.db")[1]
        assert listed() == []
    assert rewards("0.db") == rewards("19.db")


OLD = ("--older-than", "0.5")


def test_a_run_remembers_its_cache_and_can_do_without(llm_games):
    with serving() as server:
        assert llm_games("run", "x.toml", "--db", "a.db", "--cache", "replies.db", "-q")[0] == 0
        flags = ("--db", "b.db", "--cache", "replies.db", "--budget-calls", 1)
        text = Path("x.toml").read_text()
        Path("x.toml").write_text(text.replace("rounds = 2", "rounds = 3"))
        assert llm_games("run", "x.toml", *flags)[0] == 1
        assert llm_games("resume", "b.db", "--no-cache", "--budget-calls", 99, "-q")[0] == 0
        assert len(server.seen) > CALLS + 3
        assert json.loads(llm_games("cache", "list", "replies.db", "--json")[1])[0]["replies"] == 18


BAD = [
    (["run", "x.toml", "--budget-calls", "0"], "budget: calls = 0: it should be greater"),
    (["run", "x.toml", "--budget-tokens", "-5"], "budget: tokens = -5"),
    (["run", "x.toml", "--budget-money", "nan"], "budget: money = nan"),
    (["run", "x.toml", "--budget-money-per-seat", "-0.5"], "budget: money_per_seat = -0.5"),
    (["run", "free.toml", "--budget-money", "5"], "needs the price of 'm'"),
    (["run", "x.toml", "--cache", "c.db", "--no-cache"], "contradict each other"),
    (["run", "x.toml", "--cache", "x.toml"], "x.toml cannot be used as a cache of replies"),
    (["cache", "list", "nowhere.db"], "there is no file nowhere.db"),
    (["cache", "prune", "x.toml"], "x.toml cannot be used as a cache of replies"),
    (["cache", "prune", "x.toml", "--older-than", "-1"], "a number of days from 0, not -1.0"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_mistakes_are_named_before_anything_is_asked(llm_games, tmp_path, arguments, says):
    with serving() as server:
        text = Path("x.toml").read_text()
        Path("free.toml").write_text(text.replace("[prices.m]", "[prices.other]"))
        code, out, err = llm_games(*arguments)
        assert (code, out, server.seen) == (2, "", [])
    assert err.startswith("error: ")
    assert says in err
    assert "Traceback" not in err
    assert list(tmp_path.glob("*.db*")) == []
    assert Path("x.toml").read_text() == text
