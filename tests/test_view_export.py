"""A run's pages as files: opened from disk in a real browser, and what is in them."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import test_view_pages as pages
import viewing
from viewing import expect

import llm_games as lg
from llm_games.benchmarks.record.labels import Labelled, write_label
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.show.view import exported_pages
from llm_games.benchmarks.show.view.exported_pages import export_pages
from llm_games.errors import BadParameter, DiskFull

LOOKS = ({}, {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}})


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "pages.db"
    viewing.apart(lambda: pages.play(path))
    with Records.open_readonly(path) as records:
        write_label(records, (1, 0, 0), Labelled(("odd",), "It was the first."))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory, path):
    folder = tmp_path_factory.mktemp("out") / "exported"
    before = path.read_bytes()
    viewing.apart(lambda: export_pages(path, folder))
    assert path.read_bytes() == before
    return folder


@pytest.fixture
def visit(browser, folder):
    """Open the export from disk; at the end no message stands in the console, nothing was asked."""
    with viewing.visits(browser, folder.as_uri()) as come:
        yield come


def data_of(folder, episode):
    text = (folder / "data" / f"episode-{episode}.js").read_text("utf-8")
    return json.loads(re.fullmatch(r"take\(\d+, (.*)\);\n", text, re.S)[1])


def test_each_text_stands_once_and_pages_are_small(folder, path):
    texts = [t for n in range(1, 6) for t in data_of(folder, n)["texts"]]
    shared = (folder / "data/shared.js").read_text("utf-8")
    texts += json.loads(re.fullmatch(r"take\(0, (.*)\);\n", shared, re.S)[1])["texts"]
    assert len(texts) == len({*texts})
    with Records.open_readonly(path) as records:
        for number in (1, 3, 5):
            count = len(records.decisions(number))
            own = (folder / f"episode-{number}.html").stat().st_size
            data = (folder / f"data/episode-{number}.js").read_text("utf-8")
            rest = len(data) - sum(map(len, data_of(folder, number)["texts"]))
            assert own + rest - 8000 < 5000 * count, number  # the frame of a page is not counted


class Tags(HTMLParser):
    """All elements of a page with their attributes."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_no_page_leads_to_a_server_and_nothing_of_a_model_is_markup(folder):
    for file in folder.glob("*.html"):
        tags = Tags(file.read_text("utf-8")).found
        addresses = [a[name] for _, a in tags for name in ("href", "src", "action") if name in a]
        files = {a.partition("#")[0].partition("?")[0] for a in addresses} - {""}
        assert {a for a in files if not (folder / a).is_file()} == set(), file.name
        assert all(a.get("src") for tag, a in tags if tag == "script")
        assert [(tag, a) for tag, a in tags if any(name.startswith("on") for name in a)] == []
        [policy] = [a["content"] for _, a in tags if "http-equiv" in a]
        assert policy.startswith("default-src 'none'; script-src 'self'")


def test_secrets_of_the_settings_are_in_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-own-3141592653")

    def saying(observation):
        return 'it is sk-own-3141592653 {"tokens_contributed": 1}'

    game = {"game": "public_goods", "params": {"players": 2, "rounds": 1}}
    lg.run({"games": [game], "seats": [saying, "random"]}, tmp_path / "r.db")
    export_pages(tmp_path / "r.db", tmp_path / "out")
    whole = "".join(p.read_text("utf-8") for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert "it is [key]" in whole
    assert "3141592653" not in whole


def test_a_folder_that_is_not_empty_or_a_full_disk_is_a_clear_error(path, tmp_path, monkeypatch):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadParameter, match="not empty: an export needs a new or an empty folder"):
        export_pages(path, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]

    def full(self, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(
        exported_pages, "css", lambda: monkeypatch.setattr(Path, "write_bytes", full) or ""
    )
    with pytest.raises(DiskFull, match="no room is left"):
        export_pages(path, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_command_takes_one_run_and_says_where_the_pages_are(path, tmp_path, llm_games):
    out = tmp_path / "pages"
    assert llm_games("view", path.parent, "--export", out)[0] == 2
    code, _, said = llm_games("view", path, path, "--export", out)
    assert (code, "--export takes one run: give its .db file" in said) == (2, True)
    assert not out.exists()
    code, _, said = llm_games("view", path, "--export", out)
    assert (code, f"{out / 'index.html'}: " in said.replace("\n", "")) == (0, True)
    assert (out / "index.html").is_file()


@pytest.mark.long
def test_from_disk_the_list_leads_to_decisions_with_all_their_texts(visit, path):
    visitor = visit()
    page = visitor.page
    page.get_by_role("link", name="All decisions").click()
    status = page.locator("#list [role=status]")
    expect(status).to_have_text("117 decisions")
    page.get_by_role("checkbox", name=re.compile("^goods")).check()
    expect(status).to_have_text(re.compile("of 117"))
    page.get_by_role("searchbox").fill('"less is better"')
    page.get_by_role("searchbox").press("Enter")
    expect(status).to_have_text("4 decisions of 117")
    expect(page.locator("#list caption")).to_have_text("Decisions, page 1 of 1")
    expect(page.locator(".chips")).to_contain_text("less is better")
    row = page.locator("#list tr[data-row]").first
    expect(row).to_contain_text("tokens_contributed")
    row.locator("th a").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("player_0 in round 1")
    expect(page.locator(".thoughts")).to_contain_text("Giving less is better.")
    page.keyboard.press("j")
    expect(page.get_by_role("heading", level=1)).to_contain_text("player_0 in round 2")
    expect(page.locator(".answer").first).to_contain_text("<script>boom()</script>")
    assert page.locator("main script, main svg").count() == 0
    page.get_by_role("button", name=re.compile("Show more")).first.click()
    page.get_by_role("button", name=re.compile("Show more")).first.click()
    with Records.open_readonly(path) as records:
        text = records.attempts(1, 1)[1].text
    assert "".join(page.locator(".answer").last.locator("pre").all_inner_texts()) == text
    page.keyboard.press("k")
    expect(page.locator("main")).to_contain_text("odd It was the first.")
    page.keyboard.press("u")
    expect(page.get_by_role("heading", level=1)).to_contain_text("episode 0")
    expect(page.locator(".drawn svg")).to_have_attribute("aria-label", re.compile("round 0 of 3"))
    page.get_by_role("button", name="Play").click()
    expect(page.locator("figcaption")).to_contain_text("round 3 of 3")
    visitor.open("/decisions.html?label=odd")
    expect(status).to_have_text("1 decision of 117")
    expect(page.locator("#list td .label")).to_have_text("odd")


@pytest.mark.long
@pytest.mark.parametrize("how", LOOKS, ids=["light", "dark", "390"])
def test_everybody_can_read_the_files(visit, folder, how):
    visitor = visit(**how)
    for name in sorted(p.name for p in folder.glob("*.html")):
        visitor.open(f"/{name}")
        assert visitor.problems() == [], name
    visitor.open("/episode-1.html#1-0")
    visitor.page.reload()
    assert visitor.problems() == []


MARKUP = "<img src=x onerror=document.title='broken'><script>document.title='broken'</script>"
EVIL = (
    MARKUP + "</pre></template>\"'` ${document.title='broken'} \x1b[2J \u202egnirts\u2028\0 */ // "
)


def evil(observation):
    return f'{EVIL * (1_000_000 // len(EVIL))} {{"tokens_contributed": 1}}'


@pytest.mark.long
def test_nothing_of_a_hostile_run_is_run_in_the_viewer_or_from_disk(browser, tmp_path):
    name = MARKUP.replace(":", "")
    game = {"game": "public_goods", "label": name, "params": {"players": 2, "rounds": 2}}
    run = {"title": EVIL, "games": [game], "seats": [{"player": evil, "name": name}, "random"]}

    def make():
        lg.run(run, tmp_path / "evil.db")
        with Records.open_readonly(tmp_path / "evil.db") as records:
            write_label(records, (1, 0, 0), Labelled((MARKUP[:60],), EVIL))
        export_pages(tmp_path / "evil.db", tmp_path / "out")

    viewing.apart(make)
    places = ["index", "decisions", "settings", "report", "game-0", "episode-1"]
    with viewing.visits(browser, (tmp_path / "out").as_uri()) as come:
        visitor = come()
        for place in [*(f"/{p}.html" for p in places), "/episode-1.html#0-0"]:
            visitor.open(place)
            visitor.page.reload()
            if place == "/decisions.html":
                expect(visitor.page.locator("#list .begins").first).to_contain_text("<img")
            assert visitor.page.locator("main img, main script:not([src])").count() == 0
            assert visitor.page.evaluate("document.title") != "broken"
    with (
        viewing.served(tmp_path / "evil.db", cache=tmp_path / "cache") as address,
        viewing.visits(browser, address) as come,
    ):
        visitor = come()
        here = visitor.page.locator("main a[href^='/run/']").first.get_attribute("href")
        for place in ("", "/decisions", "/settings", "/episode/1", "/decision/1/0/0"):
            visitor.open(here + place)
            assert visitor.page.locator("main script, main img[src=x]").count() == 0
            assert visitor.page.evaluate("document.title") != "broken"
