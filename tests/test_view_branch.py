"""A branch from the page of a decision: by a form of ours alone, of players that cost nothing."""

import json
import re
import shutil
import sqlite3
import sys
import time
from contextlib import closing, contextmanager

import httpx
import numpy as np
import pytest
import viewing
from fault_server import FaultServer
from viewing import expect

import llm_games as lg
from llm_games.benchmarks.record.store import Records
from llm_games.benchmarks.run.replay import replay
from llm_games.benchmarks.show.view.decision_index import Decisions

GAME = {"game": "public_goods", "params": {"players": 3, "rounds": 4}}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "goods.db"
    config = {"seed": 3, "seats": ["tiny", "random", "tiny"], "games": [GAME], "order": "fixed"}
    viewing.apart(lambda: lg.run(config, path))
    return path


@pytest.fixture
def goods(recorded, tmp_path):
    (tmp_path / "runs").mkdir()
    return shutil.copy(recorded, tmp_path / "runs" / "goods.db")


@contextmanager
def visited(folder, **how):
    """Give a client that the viewer of a folder knows, which has one run."""
    with (
        viewing.served(folder, **how) as address,
        httpx.Client(base_url=address, follow_redirects=True, timeout=60) as client,
    ):
        page = client.get(f"/?token={viewing.TOKEN}").text
        client.run = re.search(r"/run/\w+", page)[0]
        client.here = {"origin": address}
        yield client


@pytest.fixture
def client(goods, tmp_path):
    with visited(goods.parent, cache=tmp_path / "cache") as client:
        yield client


def files(goods):
    return sorted(path.name for path in goods.parent.iterdir())


def form(client, headers=None, **fields):
    address = f"{client.run}/decision/1/2/0/branch"
    return client.post(address, data=fields, headers=client.here if headers is None else headers)


def test_the_form_makes_a_run_of_its_own_beside_the_other(client, goods):
    before = goods.read_bytes()
    page = form(client, times="3", until="decision", player="", move="")
    assert page.status_code == 200
    assert "A branch of goods.db: public_goods, episode 0, step 2" in page.text
    moved = form(client, times="1", until="decision", player="", move="20")
    assert "move 20" in moved.text
    decisions = Decisions(goods.parent / "goods-branch-2.db")
    decisions.read()
    columns = decisions.columns()
    assert (np.isnan(columns["regret"]) == (columns["step"] < 2)).all()
    assert "branch of goods.db, public_goods/0/2" in client.get("/?text=branch").text
    other = form(client, times="1", until="end", player="rational", move="")
    assert "player rational" in other.text
    assert files(goods) == [
        "goods-branch-1.db",
        "goods-branch-2.db",
        "goods-branch-3.db",
        "goods.db",
    ]
    assert goods.read_bytes() == before
    for path in goods.parent.glob("goods-branch-*.db"):
        with Records.open_readonly(path) as records:
            assert replay(records).differences == ()


@pytest.mark.parametrize("headers", [{}, {"origin": "http://evil.example"}, {"origin": "null"}])
def test_a_foreign_page_starts_nothing(client, goods, headers):
    assert form(client, headers, times="1").status_code == 403
    assert client.get(f"{client.run}/decision/1/2/0/branch").status_code in (404, 405)
    client.cookies.clear()
    assert form(client, times="1").status_code == 403
    assert files(goods) == ["goods.db"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"times": "0"}, "from 1 to 100"),
        ({"times": "101"}, "from 1 to 100"),
        ({"until": "noon"}, "decision or end"),
        ({"player": "openai:x"}, "may cost money"),
        ({"player": "os:getcwd"}, "may run code of a file"),
        ({"player": "sb3:x.zip"}, "may run code of a file"),
        ({"player": "human"}, "human takes a seat by a link, and nobody joins a branch by one"),
        ({"player": "program"}, "program takes a seat by a link"),
        ({"player": "nobody"}, "there is no player"),
        ({"move": "99"}, "from 0 to 20"),
        ({"move": "[" * 4000}, "legal is"),
        ({"move": "x" * 200_000}, "at most 131072 bytes"),
        ({"chance": "new"}, "it should be"),
        ({"chance": "fresh"}, "leaves nothing to chance"),
        ({"text": "Well?", "move": "3"}, "not both"),
        ({"setting.persona": "nice"}, "there is no persona"),
        ({"setting.persona": "x" * 100_000}, "… (100,000 characters); known: "),
        ({"setting.promts": "v2"}, "no setting"),
        ({"setting.tools": '["os:system"]'}, "may run code of a file"),
        ({"setting.prompt_folder": "/etc"}, "names a place"),
        ({"seat": "1"}, "a branch takes"),
    ],
)
def test_what_cannot_be_is_said_and_writes_nothing(client, goods, fields, words):
    page = form(client, **fields)
    assert page.status_code == 400
    assert words in page.text
    assert "Not done" in page.text
    assert f'href="{client.run}/decision/1/2/0"' in page.text
    assert files(goods) == ["goods.db"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("player", "antigravity:Player"),
        ("settings", {"max_attempts": 3, "tools": ["antigravity:Tool"]}),
        ("settings", {"max_attempts": 3, "prompt_folder": "/etc"}),
        ("client", {"cache": "theirs.cache"}),
    ],
)
def test_a_strangers_file_runs_nothing(client, goods, key, value):
    with closing(sqlite3.connect(goods)) as database:
        [[text]] = database.execute("SELECT config FROM run").fetchall()
        config = json.loads(text)
        config["games"][0]["seats"][2][key] = value
        database.execute("UPDATE run SET config = ?", [json.dumps(config)])
        database.commit()
    page = form(client, times="1")
    assert (page.status_code, "code of a file" in page.text) == (400, True)
    assert "antigravity" not in sys.modules
    assert files(goods) == ["goods.db"]


def test_a_strangers_file_names_no_file_that_is_written(client, goods, tmp_path):
    with closing(sqlite3.connect(goods)) as database:
        [[text]] = database.execute("SELECT config FROM run").fetchall()
        config = json.loads(text) | {"cache": str(tmp_path / "theirs.cache")}
        database.execute("UPDATE run SET config = ?", [json.dumps(config)])
        database.commit()
    assert form(client, times="1").status_code == 200
    assert not (tmp_path / "theirs.cache").exists()


@pytest.fixture
def paid(tmp_path):
    """A server, and a run of which one seat is a model there that costs 0.12 a call."""
    (tmp_path / "paid").mkdir()
    path = tmp_path / "paid" / "paid.db"
    with FaultServer() as server:
        seat = {"player": "openai:m", "base_url": server.url}
        prices = {"m": {"input": 1000, "output": 2000}}
        config = {"seats": [seat, "random", "random"], "order": "fixed", "prices": prices}
        viewing.apart(lambda: lg.run(config | {"games": [GAME]}, path))
        server.asked = len(server.seen)
        yield server, path


def test_a_model_that_costs_is_asked_once_its_price_is_agreed_to(paid, tmp_path):
    server, path = paid
    before = path.read_bytes()
    with visited(path.parent, cache=tmp_path / "cache", budget=12) as client:
        client.get(f"{client.run}/decision/1/2/0")
        client.get(f"{client.run}/decision/1/2/0/branch?agreed=1&times=3")
        quote = form(client, times="3")
        assert quote.status_code == 200
        assert "Nobody has been asked yet" in quote.text
        assert "about 3</dd>" in quote.text  # calls: none of what stood before
        assert "does not pay for all of it" not in quote.text
        assert form(client, times="3", agreed="0" * 64).text == quote.text
        assert (len(server.seen), files(path)) == (server.asked, ["paid.db"])
        fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', quote.text))
        assert form(client, {}, **fields).status_code == 403
        assert "Nobody has been asked" in form(client, **fields | {"times": "9"}).text
        assert len(server.seen) == server.asked
        made = form(client, **fields)
        assert "A branch of paid.db" in made.text, made.text
        assert len(server.seen) == server.asked + 1 + 3  # with a greeting
        quote = form(client, times="100")
        assert "11.52" in quote.text  # is left: 4 calls of 100 tokens in and 10 out are paid
        assert "does not pay for all of it" in quote.text
        fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', quote.text))
        stopped = form(client, **fields)
        assert (stopped.status_code, "--budget-money" in stopped.text) == (400, True)
        assert 0.12 * (len(server.seen) - server.asked) <= 12
    assert path.read_bytes() == before


def test_a_strangers_file_makes_no_model_free(goods, tmp_path):
    pytest.importorskip("genai_prices")
    with closing(sqlite3.connect(goods)) as database:
        [[text]] = database.execute("SELECT config FROM run").fetchall()
        config = json.loads(text) | {"prices": {"gpt-4o": {"input": 0.0, "output": 0.0}}}
        database.execute("UPDATE run SET config = ?", [json.dumps(config)])
        database.commit()
    with visited(goods.parent, cache=tmp_path / "cache", budget=5) as client:
        quote = form(client, times="10", player="openai/gpt-4o")
        assert (quote.status_code, "the run's own" in quote.text) == (200, False)
        [low, high] = re.search(r"money</dt><dd>([\d.]+) to ([\d.]+)", quote.text).groups()
        assert 0 < float(low) < float(high)
    assert files(goods) == ["goods.db"]


def test_without_a_budget_or_with_a_strangers_address_nobody_is_asked(paid, tmp_path):
    server, path = paid
    with visited(path.parent, cache=tmp_path / "cache") as client:
        refused = form(client, times="1")
        assert (refused.status_code, "view --budget X" in refused.text) == (400, True)
    with closing(sqlite3.connect(path)) as database:
        [[text]] = database.execute("SELECT config FROM run").fetchall()
        text = text.replace(server.url, "http://198.51.100.7/v1")
        database.execute("UPDATE run SET config = ?", [text])
        database.commit()
    with visited(path.parent, cache=tmp_path / "cache", budget=5) as client:
        refused = form(client, times="1")
        assert (refused.status_code, "send keys" in refused.text) == (400, True)
    assert (len(server.seen), files(path)) == (server.asked, ["paid.db"])


LOOKS = [
    {"color_scheme": "light"},
    {"color_scheme": "dark"},
    {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}},
]


@pytest.mark.long
@pytest.mark.parametrize("how", LOOKS)
def test_ten_more_replies_in_three_clicks(browser, goods, tmp_path, how):
    with (
        viewing.served(goods.parent, cache=tmp_path / "cache") as address,
        viewing.visits(browser, address) as come,
    ):
        page = (visitor := come(**how)).page
        run = re.search(r"/run/\w+", page.content())[0]
        visitor.open(f"{run}/decision/1/2/0")
        page.get_by_text("Ask again, or play on").click()
        began = time.process_time()  # of the server, which is a thread here, and of the test
        page.get_by_role("button", name="Play", exact=True).click()
        expect(page.locator("#branch table")).to_contain_text("10")
        assert time.process_time() - began < 5
        assert visitor.problems() == []


@pytest.mark.long
@pytest.mark.parametrize("how", LOOKS)
def test_what_it_would_cost_is_asked_and_agreed_to_by_keys_alone(browser, paid, tmp_path, how):
    server, path = paid
    with (
        viewing.served(path.parent, cache=tmp_path / "cache", budget=12) as address,
        viewing.visits(browser, address) as come,
    ):
        page = (visitor := come(**how)).page
        run = re.search(r"/run/\w+", page.content())[0]
        visitor.open(f"{run}/decision/1/2/0")
        reach(visitor, "Ask again, or play on")
        visitor.press("Enter")
        reach(visitor, "With something changed")
        visitor.press("Enter")
        assert visitor.problems() == []
        reach(visitor, "persona")
        page.keyboard.type("You can't lose <b>anything</b>.")
        visitor.press("Enter")
        expect(page.locator("h1")).to_have_text("What it would cost")
        assert visitor.problems() == []
        reach(visitor, "Ask for about")
        assert len(server.seen) == server.asked
        visitor.press("Enter")
        expect(page.locator("#branch table")).to_contain_text("10")
        expect(page.locator("#branch")).to_contain_text("<b>anything</b>")
        assert visitor.problems() == []


def reach(visitor, words):
    """Go on by the tab key to what has a text or label of these words."""
    for _ in range(80):
        visitor.press("Tab")
        focus = "(e => e.labels?.[0]?.innerText ?? e.innerText)(document.activeElement)"
        if visitor.page.evaluate(focus).strip().startswith(words):
            return
    raise AssertionError(words)


HOSTILE = (
    "<script>boom()</script><img src=x onerror=boom()></textarea></pre> \x1b[31m\x00\u202egnp.exe"
    + "e"
    + "\u0301" * 50
)


def rude(observation):
    return HOSTILE + "x" * 1_000_000 + json.dumps({"speech": HOSTILE, "chosen_number": 3})


@pytest.fixture
def rough(tmp_path):
    """A stranger's run: markup in its names, hostile replies of 1 MB, and a file name to match."""
    (tmp_path / "rough").mkdir()
    path = tmp_path / "rough" / "<img src=x>.db"
    params = {"players": 3, "rounds": 2}
    game = {
        "game": "beauty_contest",
        "label": HOSTILE[:52],
        "params": params,
        "talk": {"turns": 1, "order": "fixed"},
    }
    seats = [{"player": rude, "name": f"{HOSTILE}{n}"} for n in range(3)]
    config = {"title": HOSTILE, "seats": seats, "games": [game], "order": "fixed"}
    viewing.apart(lambda: lg.run(config, path))
    with closing(sqlite3.connect(path)) as database:
        [[text]] = database.execute("SELECT config FROM run").fetchall()
        config = json.loads(text)
        for seat in config["games"][0]["seats"]:
            seat["player"] = "mock"
        database.execute("UPDATE run SET config = ?", [json.dumps(config)])
        database.commit()
    return path


@pytest.mark.long
@pytest.mark.parametrize("how", LOOKS)
def test_a_hostile_run_does_nothing_in_the_pages_of_a_branch(browser, rough, tmp_path, how):
    with (
        viewing.served(rough.parent, cache=tmp_path / "cache") as address,
        viewing.visits(browser, address) as come,
    ):
        page = (visitor := come(**how)).page
        run = re.search(r"/run/\w+", page.content())[0]

        def harmless():
            assert page.locator("main :is(script, img, svg[onload])").count() == 0
            assert visitor.problems() == []
            assert len(page.content()) < 300_000

        for step in (0, 3):  # a speech, and a move
            visitor.open(f"{run}/decision/1/{step}/0")
            page.get_by_text("Ask again, or play on").click()
            page.get_by_text("With something changed").click()
            harmless()
            page.get_by_label("persona").fill(f"{HOSTILE[:80]} said kindly")
            page.get_by_label("times").fill("2")
            page.get_by_role("button", name="Play", exact=True).click()
            expect(page.locator("#branch table")).to_contain_text("recorded")
            expect(page.locator("#branch")).to_contain_text("<script>boom()")
            harmless()
        visitor.open("/")
        harmless()
