"""The viewer in a real browser: from a number to its decision, filters, search, keys, growth.

Each visitor has a fresh browser profile, and no test leaves a message in its console.
"""

import re
import threading
from itertools import count

import pytest
import viewing
from viewing import expect

import llm_games as lg

GAME = {"game": "public_goods", "params": {"players": 3, "rounds": 4}}
HOSTILE = (
    "<script>document.title = 'broken'</script><img src=x onerror=\"document.title='broken'\">"
    "<style>body { display: none }</style><svg onload=\"document.title='broken'\">\u202egnirts"
)
A, B = "a_run", "b_run"


def careful(observation):
    return 'I keep my walrus safe. {"tokens_contributed": 0}'


def giving(observation):
    return 'All for the pot! {"tokens_contributed": 20}'


def hostile(observation):
    return f'{HOSTILE} {{"tokens_contributed": 3}}'


def play(path, first, **more):
    seats = [{"player": first, "name": first.__name__}, "rational", "random"]
    games = [GAME, GAME | {"label": "the same again"}]
    run = {"title": path.stem, "episodes": 2, "seed": 5, "games": games, "seats": seats}
    return viewing.apart(lambda: lg.run(run | {"order": "fixed"} | more, path))


@pytest.fixture(scope="module")
def address(tmp_path_factory, browser):
    folder = tmp_path_factory.mktemp("runs")
    play(folder / f"{A}.db", careful)
    play(folder / f"{B}.db", giving)
    play(folder / "hostile.db", hostile, seed=6)
    with viewing.served(folder, cache=tmp_path_factory.mktemp("cache")) as address:
        yield address


@pytest.fixture
def visit(browser, address):
    """Open the viewer as a person does; at the end nothing has gone wrong."""
    with viewing.visits(browser, address) as come:
        yield come


def open_run(visitor, name):
    visitor.page.get_by_role("link", name=name).click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text(name)
    return re.search(r"/run/\w+", visitor.page.url)[0]


def listed(page):
    return page.locator("#list tr[data-row]")


def test_from_a_score_to_its_worst_decision(visit):
    page = (visitor := visit()).page
    open_run(visitor, B)
    worst = page.locator("#games td[data-name='largest regret'] a").first
    regret = worst.inner_text()
    expect(page.locator("#scores table").first).to_contain_text("the same again")
    worst.click()
    expect(page.locator("main")).to_contain_text("All for the pot!")
    expect(page.locator("main")).to_contain_text(regret[:-1])  # which is rounded there
    assert float(regret) > 0


def test_a_number_of_the_report_leads_to_its_decisions(visit):
    page = (visitor := visit()).page
    run = open_run(visitor, A)
    page.get_by_role("link", name="Report", exact=True).click()
    number = page.locator(f".report td a[href^='{run}/decisions?game=']").first
    expect(number).to_be_visible()
    number.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Decisions")
    expect(page.locator(".chips")).to_contain_text("game: ")
    listed(page).first.locator("th a").click()
    expect(page.locator("main")).to_contain_text("read as")


def test_filters_search_and_sorting_without_a_reload(visit):
    page = (visitor := visit()).page
    visitor.open(open_run(visitor, B) + "/decisions")
    page.evaluate("window.same = true")
    status = page.locator("#list [role=status]")
    expect(status).to_have_text("48 decisions")
    page.get_by_role("checkbox", name=re.compile("^giving")).check()
    expect(status).to_have_text("16 decisions of 48")
    page.get_by_role("searchbox").fill("pot")
    page.get_by_role("searchbox").press("Enter")
    expect(page.locator(".chips")).to_contain_text("text pot")
    expect(status).to_have_text("16 decisions of 48")
    page.get_by_label("at least").fill("5")
    page.get_by_label("at least").press("Enter")
    page.get_by_role("combobox", name="sorted by").select_option("-payoff")
    expect(page.get_by_role("columnheader", name="payoff")).to_have_attribute(
        "aria-sort", "descending"
    )
    payoffs = page.locator("#list td[data-name=payoff]").all_inner_texts()
    assert payoffs
    assert payoffs == sorted(payoffs, key=float, reverse=True)
    assert set(re.findall(r"(\w+)=", page.url)) == {"player", "text", "regret_min", "sort"}
    page.get_by_role("searchbox").fill("walrus")
    page.get_by_role("searchbox").press("Enter")
    expect(page.locator("#list")).to_contain_text("No decision fits")
    page.go_back()
    expect(page.locator(".chips")).to_contain_text("text pot")
    expect(page.get_by_role("searchbox")).to_have_value("pot")
    page.get_by_role("link", name="all decisions").click()
    expect(status).to_have_text("48 decisions")
    expect(page.get_by_role("searchbox")).to_have_value("")
    assert page.evaluate("window.same")


def test_what_cannot_be_read_of_a_filter_is_said_on_the_page(visit):
    page = (visitor := visit()).page
    run = open_run(visitor, A)
    assert visitor.open(f"{run}/decisions?regret_min=many&seat=-1").status == 200
    expect(page.get_by_role("alert")).to_contain_text("regret_min: a number is needed")
    expect(page.get_by_role("alert")).to_contain_text("seat: an integer from 0")
    expect(listed(page)).to_have_count(48)


def test_keyboard_only(visit):
    page = visit().page
    keys = page.keyboard
    keys.press("j")
    keys.press("Enter")
    page.wait_for_url("**/run/*")
    page.goto(page.url + "/decisions?sort=-regret")
    keys.press("j")
    keys.press("j")
    expect(listed(page).nth(1).locator("th a")).to_be_focused()
    keys.press("k")
    expect(listed(page).nth(0).locator("th a")).to_be_focused()
    keys.press("x")
    expect(listed(page).nth(0).locator("[name=compare]")).to_be_checked()
    keys.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    keys.type("jk")
    expect(page.get_by_role("searchbox")).to_have_value("jk")
    keys.press("Escape")
    keys.press("j")
    keys.press("Enter")
    page.wait_for_url("**/decision/**")
    first = page.url
    keys.press("j")
    page.wait_for_url(lambda url: url != first)
    assert page.url.endswith("?sort=-regret")
    keys.press("u")
    page.wait_for_url("**/episode/*")
    keys.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_role("checkbox", name="single keys are on").uncheck()
    keys.press("Escape")
    keys.press("?")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_two_runs_episodes_and_decisions_side_by_side(visit):
    page = (visitor := visit()).page
    for name in (A, B):
        page.get_by_role("checkbox", name=f"mark {name}, {name}.db").check()
    page.get_by_role("button", name="Compare two marked").click()
    expect(page.locator("caption").last).to_contain_text("B − A")
    page.get_by_role("link", name="public_goods, episode 1").click()
    expect(page.locator("main")).to_contain_text("Their moves differ from move 1 on")
    rows = page.locator("tr.differs")
    texts = [rows.first.locator(f"td[data-name={side}]").inner_text() for side in "AB"]
    assert sorted(texts) == ["0", "20"]
    visitor.open("/")
    run = open_run(visitor, B)
    visitor.open(f"{run}/decisions?player=giving")
    for row in range(2):
        listed(page).nth(row).locator("[name=compare]").check()
    page.get_by_role("button", name="Compare two marked").click()
    expect(page.locator(".two section[aria-labelledby]")).to_have_count(2)
    assert page.locator(".two").inner_text().count("All for the pot!") >= 2


def test_texts_of_models_do_nothing(visit):
    page = (visitor := visit()).page
    run = open_run(visitor, "hostile")

    def harmless():
        expect(page.locator("main")).to_contain_text("<script>document.title")
        expect(page.locator("main")).to_contain_text("U+202E")
        assert page.locator("main :is(script, style, img, svg[onload])").count() == 0
        assert "broken" not in page.title()

    visitor.open(f"{run}/decisions?player=hostile")
    harmless()
    listed(page).first.locator("th a").click()
    page.wait_for_url("**/decision/**")
    harmless()
    visitor.open(f"{run}/decisions?text=%3Cscript%3E&player=%3Cimg%20src%3Dx%3E")
    expect(page.locator(".chips")).to_contain_text("player: <img src=x>")


@pytest.mark.long
@pytest.mark.parametrize(
    "how",
    [
        {"color_scheme": "light"},
        {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}},
    ],
    ids=["light", "dark and narrow"],
)
def test_every_page_can_be_used_by_all(visit, how):
    visitor = visit(**how)
    ids = re.findall(r"id=\"run-(\w+)", visitor.page.content())
    runs = dict(zip(visitor.page.locator("th a").all_inner_texts(), ids, strict=False))
    a, b = runs[A], runs[B]
    for path in (
        "/",
        f"/run/{a}",
        f"/run/{a}/game?label=public_goods",
        f"/run/{b}/decisions?sort=-regret",
        f"/run/{b}/decisions?seat=x",
        f"/run/{b}/episode/1",
        f"/run/{b}/decision/1/0/0",
        f"/run/{a}/settings",
        f"/compare?a={a}",
        f"/compare?a={a}&b={b}",
        f"/compare?a={a}/episode/1&b={b}/episode/1",
        f"/compare?a={a}/decision/1/0/0&b={b}/decision/1/0/0",
    ):
        assert visitor.open(path).ok, path
        assert visitor.problems() == [], path


def test_a_run_grows_while_it_is_looked_at(tmp_path, browser):
    turn, asked = threading.Semaphore(0), count(1)

    def slow(observation):
        turn.acquire(timeout=60)
        return f'Answer number {next(asked)}. {{"tokens_contributed": 1}}'

    path = tmp_path / "slow.db"
    seats = [{"player": slow, "name": "slow"}, "rational", "rational"]
    run = {"title": "slow", "episodes": 1, "games": [GAME], "seats": seats}
    playing = threading.Thread(target=lambda: lg.run(run, path), daemon=True)
    with viewing.served(tmp_path, cache=tmp_path / "cache") as address:
        visitor = viewing.Visitor(browser, address)
        page = visitor.page
        expect(page.locator("main")).to_contain_text("There is no run in")
        playing.start()
        turn.release()
        page.get_by_role("link", name="slow").click()
        expect(page.locator("#head .state")).to_have_text("live")
        page.get_by_role("link", name="All decisions").click()
        rows = page.locator("#list tr[data-row]")
        expect(rows).to_have_count(3)
        for row in (0, 2):
            rows.nth(row).get_by_role("checkbox").check()
        rows.nth(1).locator("th a").focus()
        turn.release()
        expect(rows).to_have_count(6)
        expect(page.locator("[name=compare]:checked")).to_have_count(2)
        expect(page.locator("#list")).to_contain_text("Answer number 2")
        expect(rows.nth(1).locator("th a")).to_be_focused()
        rows.nth(1).get_by_role("checkbox").hover()
        page.mouse.down()
        turn.release()
        page.wait_for_timeout(1000)  # what is pressed stays under the finger
        page.mouse.up()
        expect(page.locator("[name=compare]:checked")).to_have_count(3)
        expect(rows).to_have_count(9)
        page.go_back()
        turn.release()
        expect(page.locator("#head .state")).to_have_text("complete")
        expect(page.locator("#games td[data-name=decisions]")).to_have_text("12")
    expect(page.locator("#connection")).to_have_text("connection lost")
    playing.join()
    lost = re.compile("WebSocket|ERR_CONNECTION_REFUSED")
    assert [said for said in visitor.said if not lost.search(said)] == []
    visitor.context.close()


def test_without_a_script_all_can_be_read_and_filtered(visit):
    page = (visitor := visit(java_script_enabled=False)).page
    visitor.open(open_run(visitor, A) + "/decisions")
    page.get_by_role("checkbox", name=re.compile("^careful")).check()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#list [role=status]")).to_have_text("16 decisions of 48")
    for row in range(2):
        page.locator("[name=compare]").nth(row).check()
    page.get_by_role("button", name="Compare two marked").click()
    expect(page.locator(".two section[aria-labelledby]")).to_have_count(2)
