"""A branch from the page of a decision: by a form of ours alone, of players that cost nothing."""

import json
import re
import shutil
import sqlite3
import sys
from contextlib import closing

import httpx
import numpy as np
import pytest
import viewing
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


@pytest.fixture
def client(goods, tmp_path):
    with (
        viewing.served(goods.parent, cache=tmp_path / "cache") as address,
        httpx.Client(base_url=address, follow_redirects=True, timeout=60) as client,
    ):
        page = client.get(f"/?token={viewing.TOKEN}").text
        client.run = re.search(r"/run/\w+", page)[0]
        client.here = {"origin": address}
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
        ({"player": "os:getcwd"}, "may cost money"),
        ({"player": "sb3:x.zip"}, "may cost money"),
        ({"player": "nobody"}, "may cost money"),
        ({"move": "99"}, "from 0 to 20"),
        ({"move": "[" * 4000}, "legal is"),
        ({"move": "x" * 20_000}, "at most 16384 bytes"),
        ({"seat": "1"}, "a branch takes"),
    ],
)
def test_what_cannot_be_is_said_and_writes_nothing(client, goods, fields, words):
    page = form(client, **fields)
    assert page.status_code == 400
    assert words in page.text
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


@pytest.mark.long
@pytest.mark.parametrize("how", [{}, {"viewport": {"width": 390, "height": 844}}])
@pytest.mark.parametrize("dark", [False, True])
def test_ten_more_replies_in_three_clicks(browser, goods, tmp_path, how, dark):
    more = how | {"color_scheme": "dark" if dark else "light"}
    with (
        viewing.served(goods.parent, cache=tmp_path / "cache") as address,
        viewing.visits(browser, address) as come,
    ):
        page = (visitor := come(**more)).page
        run = re.search(r"/run/\w+", page.content())[0]
        visitor.open(f"{run}/decision/1/2/0")
        page.get_by_text("Ask again, or play on").click()
        assert visitor.problems() == []
        page.get_by_role("button", name="Play", exact=True).click()
        expect(page.locator("#branch table")).to_contain_text("10")
        assert visitor.problems() == []
