"""People at a table, in real browsers: forms of all questions, reload, limits, two tabs."""

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager

import pytest
import viewing
from playing import SMALL, each_row
from test_guests import ROOT, WAIT, Link, agent, equal, mcp, run_of, running, sample
from uvicorn import Config, Server
from viewing import expect

import llm_games as lg
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.show.guests.guest_app import guest_app
from llm_games.benchmarks.show.view.serve import listening
from llm_games.noise import Noise
from llm_games.wrappers.clients.base import Request
from llm_games.wrappers.guest_seat import GuestSeat
from llm_games.wrappers.guests import Guests


class Person(viewing.Visitor):
    """A person who opened a link."""

    def __init__(self, browser, link, **how):
        super().__init__(browser, link.address, **how)

    def first(self):
        self.page.goto(self.address)

    def join(self):
        self.page.get_by_role("button", name="Join").click()

    def asked(self):
        expect(self.heading).to_have_text("It is your turn")

    @property
    def heading(self):
        return self.page.get_by_role("heading", level=1)

    def looks(self):
        """Return what is wrong with the page, wide and narrow, in light and dark."""
        wrong = []
        for width in (1280, 390):
            self.page.set_viewport_size({"width": width, "height": 800})
            for scheme in ("light", "dark"):
                self.page.emulate_media(color_scheme=scheme)
                wrong += [f"{width} {scheme}: {one}" for one in self.problems()]
        return wrong

    def answer(self, number):
        self.asked()
        turn = self.page.locator("#form").get_attribute("data-turn")
        self.page.get_by_role("spinbutton").fill(str(number))
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(f'#form:not([data-turn="{turn}"])', state="attached")


@contextmanager
def people(browser):
    """Give what lets people come; in the end, no browser has said anything."""
    guests = []

    def come(link, **how):
        guests.append(Person(browser, link, **how))
        return guests[-1]

    yield come
    for guest in guests:
        guest.context.close()
        # What the server refuses a browser calls an error: refusals are part of the game.
        assert [said for said in guest.said if "409" not in said and "422" not in said] == []


def test_two_people_a_program_and_a_model_play_a_run(tmp_path, browser):
    file = tmp_path / "run.db"
    seats = "human", "human", "program", "program", "tiny"
    raw = run_of(*seats, consent="For science.", pseudonyms=True)
    with people(browser) as come, running(raw, file) as links:
        ann, bob = come(links["human 1"]), come(links["human 2"], color_scheme="dark")
        assert ann.problems() == bob.problems() == []
        by_json, by_mcp = links["program 1"], links["program 2"]
        plays = [
            lambda: by_json.play(lambda _: 9),
            lambda: asyncio.run(agent(f"{by_mcp.address}/mcp")),
        ]
        if mcp is None:
            plays[1] = lambda: by_mcp.play(lambda _: 4)
        programs = [threading.Thread(target=play, daemon=True) for play in plays]
        for program in programs:
            program.start()
        for person, name in ((ann, "fox"), (bob, "owl")):
            page = person.page
            page.get_by_role("checkbox").check()
            page.get_by_role("textbox").fill(f"{name}@example.org")
            person.join()
            expect(page.get_by_role("alert")).to_contain_text("no e-mail address")
            page.get_by_role("textbox").fill(name)
            if person is ann:
                person.join()
                expect(ann.heading).to_have_text("Waiting for 1 more to join")
        bob.join()
        ann.asked()
        assert ann.problems() == bob.problems() == []
        field = ann.page.get_by_role("spinbutton")
        field.fill("99")
        ann.page.keyboard.press("Enter")
        assert field.evaluate("one => one.validity.rangeOverflow")
        tab = ann.context.new_page()
        tab.goto(ann.address)
        expect(tab.get_by_role("spinbutton")).to_be_focused()
        ann.answer(5)
        expect(ann.heading).to_contain_text("Waiting for")
        expect(tab.get_by_role("heading", level=1)).to_contain_text("Waiting for")
        tab.close()
        ann.page.reload()
        expect(ann.heading).to_contain_text("Waiting for")
        expect(ann.page.locator("#words .own")).to_contain_text("5")
        bob.answer(6)
        expect(ann.page.locator("#words")).to_contain_text("Result of round 1")
        for number in (7, 8):
            ann.answer(number)
            bob.answer(number)
            expect(bob.page.locator("#words .own").last).to_contain_text(str(number))
        for person in (ann, bob):
            expect(person.heading).to_have_text("The game is over")
            expect(person.page.locator("#words")).to_contain_text("Result of round 3")
            assert person.problems() == []
        for program in programs:
            program.join()
    with Records.open_readonly(file) as records:
        assert [row.pseudonym for row in records.guests()] == ["fox", "owl", "", ""]
        [episode] = records.episodes()
        moves = [row.action for row in records.decisions(episode.id) if row.seat == 0]
        assert [row.action for row in records.decisions(episode.id) if row.seat == 3] == [4] * 3
    assert sorted(moves) == [5, 7, 8]
    assert viewing.apart(lambda: equal(file))


def test_who_is_away_over_the_limit_goes_on_with_the_next_turn(tmp_path, browser):
    with (
        people(browser) as come,
        running(run_of("human", "tiny", rounds=2, limit=3.0), tmp_path / "run.db") as links,
    ):
        person = come(links["human"])
        person.join()
        person.asked()
        expect(person.page.locator("#left")).to_contain_text("seconds left")
        person.context.set_offline(True)
        expect(person.page.locator("#left")).to_contain_text(re.compile("^0 seconds left"))
        person.context.set_offline(False)
        expect(person.page.locator("#words")).to_contain_text("Result of round 1")
        person.answer(4)
        expect(person.heading).to_have_text("The game is over")
        person.said = [said for said in person.said if "ERR_INTERNET_DISCONNECTED" not in said]
    with Records.open_readonly(tmp_path / "run.db") as records:
        [episode] = records.episodes()
        calls = [call for call in records.attempts(episode.id) if call.model == "human"]
    assert [call.finish for call in calls] == ["late", "stop"]


def test_a_double_click_answers_once(tmp_path, browser):
    raw, file = run_of("human", "random", rounds=1), tmp_path / "run.db"
    raw["games"][0]["talk"] = {"turns": 2}
    with people(browser) as come, running(raw, file) as links:
        person = come(links["human"])
        person.join()
        person.asked()
        person.page.get_by_role("textbox").fill("well")
        person.page.get_by_role("button", name="Answer").dblclick()
        expect(person.page.locator("#words .own")).to_have_text(["You answered well"])
        expect(person.page.get_by_role("textbox")).to_have_value("")
        assert person.page.locator("#words .own").count() == 1
        links["human"].play(lambda shown: {shown["key"]: "so" if "longest" in shown else 1})
        expect(person.heading).to_have_text("The game is over")


@contextmanager
def door_of(seat, port):
    """Serve a seat without any run; give the port."""
    with closing(listening(port)) as taken:
        server = Server(Config(guest_app(Guests([seat])), timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        yield taken.getsockname()[1]
        server.should_exit = True
        thread.join()


def test_a_page_that_stays_open_sees_what_a_server_started_again_asks(browser):
    """Also if that has counted as many changes as the page saw last."""
    first, second = (GuestSeat("you", "human", "token") for _ in "ab")
    first.join()
    with people(browser) as come:
        with door_of(first, 0) as port:
            person = come(Link(f"http://127.0.0.1:{port}/seat/token"))
            expect(person.heading).to_have_text("Waiting for the others")
        expect(person.page.locator("#connection")).to_have_text("connection lost, trying again")
        second.join()
        rules = lg.rules("public_goods", players=2)
        second.ask(Request([], question=rules.question(rules.reset(0), 0)), None)
        second.number = first.number
        with door_of(second, port):
            person.asked()
        person.said = []


def test_leaving_and_coming_back(tmp_path, browser):
    with (
        people(browser) as come,
        running(run_of("human", "program", rounds=3), tmp_path / "run.db") as links,
    ):
        person, other = come(links["human"]), links["program"]
        other.join()
        person.join()
        person.asked()
        page = person.page
        page.get_by_text("Leave the game").click()
        assert person.problems() == []
        page.get_by_role("button", name="Leave").click()
        expect(person.heading).to_have_text("You have left the game")
        assert person.problems() == []
        other.act(other.turn()["turn"], 5)
        assert other.turn()["turn"] == "1.1.0"
        page.reload()
        page.get_by_role("button", name="Come back").click()
        other.act("1.1.0", 5)
        person.answer(4)
        other.play(lambda _: 5)
        expect(person.heading).to_have_text("The game is over")


@pytest.mark.long
def test_all_states_of_a_page_are_fit_to_look_at(tmp_path, browser):
    raw = run_of("human", "human", rounds=3, consent="For science.", pseudonyms=True, limit=12.0)
    with people(browser) as come, running(raw, tmp_path / "run.db") as links:
        person, other = come(links["human 1"]), links["human 2"]
        page = person.page
        assert person.looks() == []
        page.get_by_role("textbox").fill("fox@example.org")
        page.get_by_role("checkbox").check()
        person.join()
        expect(page.get_by_role("alert")).to_contain_text("no e-mail address")
        assert person.looks() == []
        page.get_by_role("textbox").fill("fox")
        person.join()
        expect(person.heading).to_have_text("Waiting for 1 more to join")
        assert person.looks() == []
        other.join(pseudonym="owl", consent=True)
        person.answer(5)
        expect(person.heading).to_have_text("Waiting for player_1")
        assert person.looks() == []
        other.act(other.turn()["turn"], 5)
        other.act(other.turn()["turn"], 5)
        expect(page.locator("#note")).to_contain_text("did not come in time")
        assert person.looks() == []
        page.get_by_text("Leave the game").click()
        page.get_by_role("button", name="Leave").click()
        expect(person.heading).to_have_text("You have left the game")
        assert person.looks() == []
        other.play(lambda _: 5)
        expect(person.heading).to_have_text("The game is over")
        assert person.looks() == []


@pytest.mark.long
def test_twenty_rounds_by_hand_and_what_a_best_reply_had_brought(tmp_path, browser):
    """As a person does it, by the command alone; in less than three minutes."""
    command = [sys.executable, "-m", "llm_games.benchmarks.show.cli", "play", "public_goods"]
    process = subprocess.Popen(
        [*command, "--browser", "--port", "0", "--against", "tiny", "--param", "players=3"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": ROOT},
    )
    link, began = Link(re.match(r"you: (\S+)", process.stderr.readline())[1]), time.monotonic()
    with people(browser) as come:
        person = come(link)
        person.join()
        for number in range(20):
            expect(person.page.locator("#words .now")).to_contain_text(f"Round {number + 1} of 20")
            person.answer(number)
        expect(person.heading).to_have_text("The game is over")
        assert time.monotonic() - began < 180
        rows = person.page.locator("#results tbody tr")
        expect(rows).to_have_count(21)
        lost = [float(text) for text in rows.locator("td:last-child").all_inner_texts()]
        assert lost[0] == 0 < lost[1]
        assert lost[20] == pytest.approx(sum(lost[:20]), abs=0.1)
        assert person.looks() == []
    said, _ = process.communicate(timeout=WAIT)
    assert "could have gained" in said
    assert process.returncode == 0


TALKS = {"public_goods": {"turns": 1}}
LONGER = {"english_auction": {"max_steps": 40}}  # until there is nothing to bid with


@pytest.mark.long
@each_row("game", sorted(SMALL))
def test_every_question_has_a_form_that_keys_alone_fill_in(game, tmp_path, browser):
    """In light and dark, wide and narrow; what is recorded is what was meant."""
    rules, file = lg.rules(game, **SMALL[game]), tmp_path / f"{game}.db"
    entry = {"game": game, "params": SMALL[game], "max_steps": 8, "talk": TALKS.get(game, {})}
    entry |= LONGER.get(game, {})
    seats = ["human"] + ["random"] * (rules.players - 1)
    shapes = set()
    with (
        people(browser) as come,
        running({"title": game, "games": [entry | {"seats": seats}]}, file) as links,
    ):
        [link] = links.values()
        person = come(link)
        page = person.page
        person.join()
        while (shown := link.turn())["state"] != "over":
            expect(page.locator("#form")).to_have_attribute("data-turn", shown["turn"])
            if (shape := str(kinds(shown["schema"]))) not in shapes:
                shapes.add(shape)
                assert person.looks() == []
            fill(page, shown)
            page.wait_for_selector(f'#form:not([data-turn="{shown["turn"]}"])', state="attached")
            came = link.act(shown["turn"], meant(shown))
            assert came[1].get("again"), came
        expect(person.heading).to_have_text("The game is over")
    assert viewing.apart(lambda: equal(file))
    wanted = {"english_auction": "['null']", "public_goods": "['string']"}.get(game, "")
    assert wanted in "".join(shapes)


def kinds(schema):
    """Return the types in a schema, which are what forms differ by."""
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    return [kind for one in inner for kind in kinds(one)] or [schema.get("type", "enum")]


def meant(shown):
    """Return an answer; where nothing is one too, that is it every second time."""
    schema = shown["schema"]["properties"][shown["key"]]
    value = sample(schema, shown, Noise(1).of(shown["turn"]))
    nothing = {"type": "null"} in schema.get("anyOf", ()) and int(shown["turn"].split(".")[1]) % 2
    return {shown["key"]: "well" if "longest" in shown else None if nothing else value}


def fill(page, shown):
    """Fill in a form by keys alone, its first field being focused."""
    keys, value = page.keyboard, meant(shown)[shown["key"]]
    schema = shown["schema"]["properties"][shown["key"]]
    names = schema.get("anyOf", [schema])
    if isinstance(value, dict):
        for index, number in enumerate(value.values()):
            if index:
                keys.press("Tab")
            keys.type(str(number))
    elif value is None:
        keys.press("Tab" if "anyOf" in schema else "Shift")
    elif any("enum" in way for way in names):
        words = next(way["enum"] for way in names if "enum" in way)
        keys.press("Space")
        for _ in range(words.index(value)):
            keys.press("ArrowDown")
    else:
        keys.type(str(value))
    if "longest" in shown:
        keys.press("Tab")
    keys.press("Enter")


@pytest.mark.parametrize("size", [(1280, 900), (390, 800)])
def test_the_page_for_programs(tmp_path, browser, size):
    raw = run_of("program", "tiny", rounds=1)
    with running(raw, tmp_path / "run.db") as links, people(browser) as come:
        [link] = links.values()
        person = come(link, viewport={"width": size[0], "height": size[1]})
        person.page.goto(link.address.partition("/seat")[0] + "/")
        expect(person.page.locator("pre")).to_contain_text("curl -X POST")
        assert person.problems() == []
        link.play(lambda _: 1)
