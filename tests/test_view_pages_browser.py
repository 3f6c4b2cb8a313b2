"""The pages of an episode and of a decision in a real browser."""

import pytest
import test_view_pages as pages
import viewing
from viewing import expect

from llm_games.benchmarks.record.queries import Records

LOOKS = ({}, {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}})


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("runs") / "pages.db"


@pytest.fixture(scope="module")
def address(tmp_path_factory, browser, path):
    viewing.apart(lambda: pages.play(path))
    with viewing.served(path, cache=tmp_path_factory.mktemp("cache")) as address:
        yield address


@pytest.fixture
def visit(browser, address):
    """Open the viewer's only run as a person does; at the end nothing has gone wrong."""
    with viewing.visits(browser, address) as come:

        def run(**how):
            visitor = come(**how)
            visitor.run = visitor.page.locator("main a[href^='/run/']").first.get_attribute("href")
            return visitor

        yield run


def seen(page):
    """Return the address of the picture that is shown, once it has been drawn."""
    expect(page.locator(".picture img")).to_have_js_property("complete", True)
    image = page.locator(".picture img")
    assert image.evaluate("image => image.naturalWidth") > 100
    return image.evaluate("image => image.currentSrc").rpartition("/picture/")[2]


def test_a_slider_moves_through_the_rounds_by_key(visit):
    for how, dark in (({}, ""), ({"color_scheme": "dark"}, "?dark=1")):
        visitor = visit(**how)
        visitor.open(f"{visitor.run}/episode/1")
        page, slider = visitor.page, visitor.page.get_by_label("After round")
        assert seen(page) == f"0{dark}"
        slider.press("End")
        page.locator("h1").click()
        visitor.press("[")
        expect(page.locator(".picture figcaption")).to_contain_text("round 2 of 3")
        expect(page.locator("tr.now th").last).to_have_text("2")
        assert seen(page) == f"2{dark}"
        visitor.press("p")
        expect(page.locator(".picture figcaption")).to_contain_text("round 3 of 3")
        expect(page.get_by_role("button", name="Play")).to_be_visible()
        slider.press("Home")
        expect(page.locator(".picture img")).to_have_attribute(
            "alt", "Public goods game: round 0 of 3, pot 0"
        )
        expect(page.locator("tr.now")).to_have_count(0)


def test_from_a_move_to_its_decision_and_on_by_key(visit):
    visitor = visit()
    page = visitor.page
    visitor.open(f"{visitor.run}/episode/1")
    page.locator("tr[data-row]").first.locator("a").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("player_0 in round 1")
    expect(page.locator(".thoughts")).to_contain_text("Giving less is better.")
    visitor.press("j")
    expect(page.get_by_role("heading", level=1)).to_contain_text("player_0 in round 2")
    expect(page.locator(".better")).to_contain_text("0 would have earned")
    visitor.press("k")
    expect(page.get_by_role("heading", level=1)).to_contain_text("player_0 in round 1")
    visitor.press("u")
    expect(page.get_by_role("heading", level=1)).to_contain_text("episode 0")


def test_hostile_text_does_nothing_and_long_text_comes_in_pieces(visit, path, tmp_path):
    visitor = visit()
    page = visitor.page
    visitor.open(f"{visitor.run}/decision/1/1/0")
    expect(page.locator(".answer").first).to_contain_text("<script>boom()</script>")
    assert page.locator("main script, main svg").count() == 0
    answer = page.locator(".answer").last
    with Records.open_readonly(path) as records:
        text = records.attempts(1, 1)[1].text
    assert len(answer.locator("pre").inner_text()) == 20_000
    more = page.locator("[data-more*='reply-1']")
    more.click()
    expect(answer.locator("pre")).to_have_count(2)
    more.click()
    expect(answer.locator("pre")).to_have_count(3)
    expect(more).to_be_hidden()
    assert "".join(answer.locator("pre").all_inner_texts()) == text
    with page.expect_download() as found:
        answer.get_by_role("link", name="raw file").click()
    found.value.save_as(tmp_path / "raw.txt")
    assert (tmp_path / "raw.txt").read_text("utf-8") == text


def test_labels_are_put_on_with_the_keyboard_and_narrow_the_list(visit):
    visitor = visit()
    page = visitor.page
    visitor.open(f"{visitor.run}/decision/1/0/0")
    page.locator("#labels summary").press("Enter")
    page.locator("#label-words").press_sequentially("odd, kind")
    page.locator("#label-note").press_sequentially("It gives.")
    page.locator("#label-note").press("Enter")
    expect(page.locator("#labels")).to_have_attribute("open", "")
    expect(page.locator("#label-words")).to_have_value("odd, kind")
    visitor.open(f"{visitor.run}/decisions")
    page.get_by_role("checkbox", name="kind").check()
    expect(page.locator("#list [role=status]")).to_contain_text("1 decision of")
    expect(page.locator("#list td .label").first).to_have_text("odd")


@pytest.mark.parametrize("how", [{}, {"viewport": {"width": 390, "height": 844}}])
def test_an_evacuation_is_a_film_of_at_most_two_screens(visit, how):
    visitor = visit(**how)
    page = visitor.page
    visitor.open(f"{visitor.run}/episode/4")
    expect(page.locator(".crowded:visible h3")).to_have_text("Round 1")
    page.get_by_label("rounds a second").select_option("8")
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".picture figcaption")).to_contain_text("round 3 of 3")
    expect(page.locator(".crowded:visible h3")).to_have_text("Round 3")
    high, screen = page.evaluate("[document.documentElement.scrollHeight, innerHeight]")
    assert high <= 2 * screen
    edge = page.locator(".picture img").evaluate("image => image.getBoundingClientRect().right")
    assert edge <= page.evaluate("innerWidth")


@pytest.mark.long
@pytest.mark.parametrize("how", LOOKS, ids=["light", "dark", "390"])
def test_everybody_can_read_the_pages(visit, how):
    visitor = visit(**how)
    for place in (
        "episode/1",
        "episode/2",
        "episode/4",
        "decision/1/1/0",
        "decision/3/4/1",
        "settings",
    ):
        visitor.open(f"{visitor.run}/{place}")
        visitor.page.evaluate(
            "document.querySelectorAll('details').forEach((d) => (d.open = true))"
        )
        assert visitor.problems() == [], place
