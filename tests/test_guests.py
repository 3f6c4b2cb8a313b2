"""Seats for somebody outside: a link's states, its door, programs by JSON and MCP, refusals.

The links are those of a real run, served at a real port.
"""

import asyncio
import http.client
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from socket import create_connection
from urllib.parse import urlsplit

import jsonschema
import pytest
from playing import SMALL, each_row

import llm_games as lg
from llm_games.baselines.players import make_player
from llm_games.benchmarks.judge.results import run_results
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import GuestRow
from llm_games.benchmarks.record.store import Store
from llm_games.benchmarks.run.conduct import play_run, seated_players, start
from llm_games.benchmarks.run.plan import plan_of
from llm_games.benchmarks.run.replay import replay
from llm_games.benchmarks.run.resume import planned
from llm_games.benchmarks.show.page.report_page import build
from llm_games.benchmarks.show.tables import run_tables
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.wrappers.guest_seat import GuestSeat
from llm_games.wrappers.guests import Guests, LobbyEmpty

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
from starlette.websockets import WebSocketDisconnect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

try:
    import mcp
except ImportError:
    mcp = None

from llm_games.benchmarks.show.guests.guest_app import BEAT, _GuestSite
from llm_games.benchmarks.show.guests.hosting import CONNECTIONS, hosted
from llm_games.benchmarks.show.guests.kept_links import links_file
from llm_games.benchmarks.show.guests.openapi import openapi
from llm_games.benchmarks.show.view import run_page
from llm_games.benchmarks.show.view.run_shelf import RunShelf
from llm_games.benchmarks.show.view.serve import listening

ROOT = str(Path(__file__).parents[1])
WAIT = 60


class Link:
    """A program at a link."""

    def __init__(self, address):
        self.address, self.parts = address, urlsplit(address)

    def ask(self, method, path, body=None, **headers):
        """Return the status and the JSON of an answer; a body that is no bytes becomes JSON."""
        line = http.client.HTTPConnection(self.parts.netloc, timeout=WAIT)
        body = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        usual = {"content-type": "application/json"} if body is not None else {}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            line.request(method, self.parts.path + path, body, usual | named)
            answer = line.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            line.close()

    def sees(self, wait=0):
        return self.ask("GET", f"/sees?wait={wait}")[1]

    def join(self, **about):
        return self.ask("POST", "/join", about)

    def act(self, turn, reply):
        return self.ask("POST", "/act", {"turn": turn, "reply": reply})

    def turn(self):
        """Wait until it is asked; return what it sees."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            if (shown := self.sees(5))["state"] in ("asked", "over"):
                return shown
        raise AssertionError(shown)

    def play(self, answer):
        """Play to the end; `answer` is handed what is seen."""
        self.join()
        while (shown := self.turn())["state"] != "over":
            self.act(shown["turn"], answer(shown))
        return shown


@contextmanager
def running(raw, path, resumed=False):
    """Play a run in a thread and serve its links; give these."""
    failed = []
    if resumed:
        with Records.open_readonly(path) as records:
            plan = planned(records)
    else:
        plan = plan_of(raw)
    with hosted(plan, path, port=0) as serving:

        def play():
            try:
                opened = (lambda: Store.open(path)) if resumed else lambda: start(plan, path)
                with seated_players(serving.plan) as policies:
                    play_run(opened, serving.plan, policies, resumed=resumed)
            except BaseException as error:
                failed.append(error)
            finally:
                for seat in serving.guests.seats.values():
                    seat.end({})

        thread = threading.Thread(target=play, daemon=True)
        thread.start()
        yield {name: Link(link) for name, link in serving.links.items()}
        thread.join(WAIT)
        assert not thread.is_alive()
        assert not failed, failed


def run_of(*seats, rounds=3, **guests):
    game = {"game": "public_goods", "params": {"players": len(seats), "rounds": rounds}}
    return {"title": "guests", "games": [game | {"seats": list(seats)}], "guests": guests}


def contents(path):
    """Return what a file holds of a run, but for times."""
    with Records.open_readonly(path) as records:
        told = []
        for row in records.episodes():
            calls = [vars(call) | {"latency": 0} for call in records.attempts(row.id)]
            told.append([row.status, calls, records.steps(row.id), records.decisions(row.id)])
        return told


def equal(path):
    with Records.open_readonly(path) as records:
        return replay(records).differences == ()


def test_a_link_goes_through_its_states(tmp_path):
    with running(run_of("program", "program", "tiny", limit=2.0), tmp_path / "run.db") as links:
        assert [*links] == ["program 1", "program 2"]
        one, other = links.values()
        assert one.sees()["state"] == "lobby"
        assert one.act("1.0.0", 3)[0] == 409
        assert one.join()[0] == one.join()[0] == 200
        assert (one.sees()["state"], one.sees()["missing"]) == ("waiting", 1)
        assert one.act("1.0.0", 3) == (
            409,
            {"error": "turn '1.0.0' is not asked now; nothing is asked"},
        )
        other.join()
        shown = one.turn()
        assert shown["turn"] == "1.0.0"
        assert 0 < shown["seconds_left"] <= 2
        assert shown["schema"]["properties"]["tokens_contributed"]["maximum"] == 20
        assert one.ask("GET", "/act")[0] == 405
        assert one.act("1.1.0", 3)[0] == 409  # a turn to come
        status, said = one.act("1.0.0", {"tokens_contributed": 99})
        assert (status, "99 is not a whole number from 0 to 20" in said["error"]) == (422, True)
        assert one.act("1.0.0", "rubbish")[0] == 422
        status, said = one.act("1.0.0", {"tokens_contributed": 3})
        assert (status, said["again"]) == (200, False)
        assert one.sees()["state"] == "waiting"
        assert one.act("1.0.0", 3)[1]["again"]  # the same, from a second tab
        answered = (409, {"error": 'that turn was answered with {"tokens_contributed": 3}'})
        assert one.act("1.0.0", 4) == one.act("1.0.0", 99) == answered
        while (shown := one.turn())["turn"] == "1.0.0":  # the other one is away: its time runs out
            pass
        assert shown["turn"] == "1.1.0"
        status, said = other.act("1.0.0", 5)
        assert (status, "the declared move was played" in said["error"]) == (409, True)
        answers = [threading.Thread(target=link.play, args=(lambda _: 5,)) for link in (one, other)]
        [thread.start() for thread in answers]
        [thread.join() for thread in answers]
        assert one.sees()["state"] == "over"
        assert one.act("1.2.0", 6)[0] == 409
    with Records.open_readonly(tmp_path / "run.db") as records:
        [episode] = records.episodes()
        calls = [call for call in records.attempts(episode.id) if call.seat == 1]
        assert (calls[0].text, calls[0].finish, calls[0].outcome) == ("", "late", "late")
        assert [call.finish for call in calls[1:]] == ["stop", "stop"]
        guests = records.guests()
        assert [(row.seat, row.kind, row.pseudonym, row.consent) for row in guests] == [
            ("program 1", "program", "", ""),
            ("program 2", "program", "", ""),
        ]
    assert equal(tmp_path / "run.db")


def test_who_leaves_is_played_for_until_coming_back(tmp_path):
    """Without any limit; the answers of nobody are `late`."""
    file = tmp_path / "run.db"
    with running(run_of("program", "human", rounds=4), file) as links:
        stays, goes = links.values()
        stays.join()
        goes.join()
        assert goes.turn()["turn"] == "1.0.0"
        left = goes.ask("POST", "/leave", {})
        assert (left[0], left[1]["state"], left[1]["left"]) == (200, "lobby", True)
        assert goes.act("1.0.0", 3)[0] == 409
        for number in range(2):
            assert stays.turn()["turn"] == f"1.{number}.0"
            stays.act(f"1.{number}.0", 5)
        assert stays.turn()["turn"] == "1.2.0"
        goes.join()
        stays.act("1.2.0", 5)
        assert goes.turn()["turn"] == "1.3.0"
        goes.act("1.3.0", 7)
        stays.play(lambda _: 5)
    with Records.open_readonly(file) as records:
        [episode] = records.episodes()
        calls = [call.finish for call in records.attempts(episode.id) if call.model == "human"]
        results = run_results(records, baselines=False)
    assert calls == ["late"] * 3 + ["stop"]
    [table, *_] = run_tables(results, None, [])
    [row] = table.dicts()
    assert (row["bad replies"], row["late"]) == ("0", 3)
    assert equal(file)


def test_the_door(tmp_path, monkeypatch):
    file = tmp_path / "run.db"
    monkeypatch.setitem(sys.modules, "llm_games.benchmarks.show.guests.guest_tools", None)
    with running(run_of("program", "tiny", rounds=1), file) as links:
        [link] = links.values()
        kept = links_file(file)
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert link.address.rpartition("/")[2].encode() in kept.read_bytes()
        assert link.ask("GET", "/sees", Host="evil.example")[0] == 421
        assert link.ask("GET", "/sees", Origin="http://evil.example")[0] == 403
        assert link.ask("POST", "/join", b"{}", content_type="text/plain")[0] == 415
        assert link.ask("POST", "/join", b" " * 70_000)[0] == 413
        chunked = {"transfer_encoding": "chunked"}
        assert link.ask("POST", "/join", b"19999\r\n" + b" " * 0x19999, **chunked)[0] == 413
        assert link.ask("POST", "/act", b" " * 10_000_000)[0] == 413
        assert link.ask("POST", "/act", b"[1]")[0] == 422
        assert link.ask("POST", "/act", b"nonsense")[0] == 422
        assert link.ask("GET", "/sees?wait=long")[0] == 422
        assert Link(link.address[:-1]).ask("GET", "/sees")[0] == 404
        assert Link(link.address + "/mcpp").ask("GET", "")[0] == 404
        assert Link(link.address.split("/seat")[0]).ask("GET", "/openapi.json")[1] == openapi()
        status, said = link.ask("POST", "/mcp", {})
        assert (status, "llm-games[mcp]" in said["error"]) == (501, True)
        socket = link.address.replace("http", "ws") + "/live"
        with connect(socket) as news:
            assert "look" in json.loads(news.recv(timeout=WAIT))
        for address, origin in ((socket, "http://evil.example"), (socket[:-6] + "x/live", None)):
            with pytest.raises(InvalidStatus):
                connect(address, origin=origin)
        link.play(lambda _: 3)
    assert not kept.exists()  # the run is complete


def test_a_page_learns_of_what_changes_while_its_line_is_slow():
    seat, sent = GuestSeat("you", "human", "token"), []

    class SlowSocket:
        def __init__(self):
            self.path_params = {"token": "token"}

        async def accept(self):
            pass

        async def receive(self):
            await asyncio.Future()

        async def send_json(self, message):
            sent.append(message)
            if len(sent) == 2:
                raise WebSocketDisconnect
            threading.Thread(target=seat.ring).start()
            await asyncio.sleep(0.1)

    live = _GuestSite(Guests([seat])).live(SlowSocket())
    asyncio.run(asyncio.wait_for(live, BEAT / 2))
    assert sent == [{"look": 0}, {"look": 1}]


def test_an_error_of_ours_is_told_in_the_terminal(tmp_path, monkeypatch, capfd):
    with running(run_of("program", "tiny", rounds=1), tmp_path / "run.db") as links:
        [link] = links.values()
        with monkeypatch.context() as broken:
            broken.setattr(GuestSeat, "sees", lambda seat: 1 / 0)
            status, said = link.ask("GET", "/sees")
        assert (status, "the terminal of the run has the details" in said["error"]) == (500, True)
        assert "ZeroDivisionError: division by zero" in capfd.readouterr().err
        link.play(lambda _: 3)


def test_links_are_served_once_and_leave_nothing_where_nothing_was_run(tmp_path):
    plan, file = plan_of(run_of("program", "tiny")), tmp_path / "run.db"
    with hosted(plan, file, port=0):
        with pytest.raises(BadParameter, match="another process serves"), hosted(plan, file):
            pass
        assert links_file(file).exists()
    assert [*tmp_path.iterdir()] == []


def test_whoever_opens_connections_without_end_takes_no_files_from_the_run(tmp_path):
    with (
        hosted(plan_of(run_of("program", "tiny")), tmp_path / "run.db", port=0) as serving,
        ExitStack() as opened,
    ):
        link = Link(serving.links["program"])
        where = link.parts.hostname, link.parts.port
        lines = [
            opened.enter_context(create_connection(where, WAIT))
            for _ in range(sum(CONNECTIONS) + 1)
        ]
        with suppress(ConnectionResetError):
            assert lines[-1].recv(1) == b""
        lines[0].close()
        assert link.sees()["state"] == "lobby"


def test_consent_and_pseudonyms(tmp_path):
    file = tmp_path / "run.db"
    raw = run_of("human", "tiny", rounds=1, consent="I play for a study.", pseudonyms=True)
    with running(raw, file) as links:
        [link] = links.values()
        lobby = link.sees()
        assert (lobby["consent"], lobby["pseudonyms"]) == ("I play for a study.", True)
        for about, word in [
            ({"consent": True}, "1 to 40"),
            ({"consent": True, "pseudonym": "ann@example.org"}, "no e-mail"),
            ({"pseudonym": "fox"}, "agree"),
        ]:
            status, said = link.join(**about)
            assert (status, word in said["error"]) == (422, True)
        assert link.ask("POST", "/leave", {})[1] == lobby  # who never came cannot leave
        assert link.join(pseudonym="fox", consent=True)[1]["pseudonym"] == "fox"
        link.play(lambda _: 3)
    with Records.open_readonly(file) as records:
        [row] = records.guests()
    assert (row.pseudonym, len(row.consent)) == ("fox", 64)


def test_the_openapi_document_is_one():
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(openapi())


SEES = openapi()["components"]["schemas"]["Sees"] | {"additionalProperties": False}


@each_row("game", sorted(SMALL))
def test_all_questions_are_asked_and_answered_by_a_link(game, tmp_path):
    """A program by its schema alone; a run in which one played is played again.

    All that it sees is described by the OpenAPI document.
    """
    rules = lg.rules(game, **SMALL[game])
    raw = {"title": game, "games": [{"game": game, "params": SMALL[game], "max_steps": 30}]}
    raw["games"][0]["seats"] = ["program"] + ["random"] * (rules.players - 1)
    noise, file = Noise(3), tmp_path / f"{game}.db"

    def answer(shown):
        jsonschema.validate(shown, SEES)
        return sample(shown["schema"]["properties"][shown["key"]], shown, noise.of(shown["turn"]))

    with running(raw, file) as links:
        [link] = links.values()
        jsonschema.validate(link.sees(), SEES)
        jsonschema.validate(link.join()[1], SEES)
        jsonschema.validate(link.play(lambda shown: {shown["key"]: answer(shown)}), SEES)
    assert equal(file)


def sample(schema, shown, noise):
    """Return a value of a schema."""
    if "anyOf" in schema:
        return sample(schema["anyOf"][0], shown, noise)
    if "enum" in schema:
        return schema["enum"][int(noise.integers(len(schema["enum"])))]
    if schema["type"] == "object":
        first, *rest = schema["properties"]
        if "sum" in shown:
            return {first: shown["sum"]} | dict.fromkeys(rest, 0)
        return {name: sample(of, shown, noise) for name, of in schema["properties"].items()}
    return schema.get("minimum", 0) if schema["type"] in ("integer", "number") else None


def test_killed_and_resumed_by_the_same_links(tmp_path):
    """The record equals that of a run which nobody killed."""
    whole, killed = tmp_path / "whole.db", tmp_path / "killed.db"
    raw = run_of("program", "tiny", "random", rounds=4)
    with running(raw, whole) as links:
        links["program"].play(lambda shown: int(shown["turn"].split(".")[1]))
    file = tmp_path / "run.toml"
    file.write_text(
        'title = "guests"\n[[games]]\ngame = "public_goods"\nparams = {players = 3, rounds = 4}\n'
        'seats = ["program", "tiny", "random"]\n'
    )
    command = [sys.executable, "-m", "llm_games.benchmarks.show.cli"]
    said = []
    for start_it in (["run", file, "--db", killed, "--port", "0"], ["resume", killed]):
        process = subprocess.Popen(
            [*command, *start_it, "--browser", "--quiet"],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": ROOT},
        )
        found = re.match(r"program: (\S+)", process.stderr.readline())
        said.append(found[1])
        link = Link(found[1])
        if start_it[0] == "run":
            link.join()
            for number in range(2):
                assert link.turn()["turn"] == f"1.{number}.0"
                link.act(f"1.{number}.0", number)
            link.turn()
            process.send_signal(signal.SIGKILL)
        else:  # who had joined needs not join again
            assert link.turn()["turn"] == "1.2.0"
            assert link.act("1.1.0", 1)[0] == 409  # an old page
            link.play(lambda shown: int(shown["turn"].split(".")[1]))
        process.communicate(timeout=WAIT)
    assert said[0] == said[1]  # by the same port
    assert contents(killed) == contents(whole)
    assert equal(killed)


@pytest.mark.parametrize("served", ["serve --seat program --seat random", "play --browser"])
def test_an_interrupt_says_the_way_on_and_at_the_end_cuts_a_look_short(served, tmp_path):
    file = tmp_path / "run.db"
    command = [sys.executable, "-m", "llm_games.benchmarks.show.cli"]
    game = ["--param", "players=2", "--param", "rounds=1", "--port", "0", "--db", file]
    played, *rest = served.split()
    said = []
    for start_it in ([played, "beauty_contest", *rest, *game], ["resume", file, "--browser"]):
        process = subprocess.Popen(
            [*command, *start_it],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": ROOT},
        )
        link = Link(re.match(r"\w+: (\S+)", process.stderr.readline())[1])
        link.join()
        shown = link.turn()
        if start_it[0] == "resume":
            link.act(shown["turn"], 5)
            assert link.turn()["state"] == "over"
        process.send_signal(signal.SIGINT)
        said.append((*process.communicate(timeout=WAIT), process.returncode))
    assert f"resume {file} --browser\n" in said[0][1]
    assert said[0][2] == 130
    assert f"recorded in {file}" in said[1][0]
    assert said[1][2] == 0


def test_who_has_left_is_not_waited_for_after_a_restart(tmp_path):
    plan, file = plan_of(run_of("program", "program")), tmp_path / "run.db"
    with hosted(plan, file, port=0) as serving:
        links = [Link(address) for address in serving.links.values()]
        start(plan, file).close()
        with Store.open(file) as store:
            for link in links:
                link.join()
            for seat in serving.guests.seats.values():
                store.add(GuestRow(*seat.joined))
        links[1].ask("POST", "/leave", {})
    with hosted(plan, file, port=0) as serving:
        assert [seat.is_here for seat in serving.guests.seats.values()] == [True, False]
        assert serving.guests.missing() == 0
        Link(serving.links["program 2"]).join()
    with hosted(plan, file, port=0) as serving:
        assert all(seat.is_here for seat in serving.guests.seats.values())


async def agent(server):
    """Play by MCP; each first answer is refused."""
    async with mcp.Client(server) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"observe", "act"}
        while True:
            shown = (await client.call_tool("observe", {"wait": 20})).structured_content
            if shown["state"] == "over":
                return shown
            if shown["state"] == "asked":
                turn = {"turn": shown["turn"], "reply": {"tokens_contributed": 99}}
                refused = await client.call_tool("act", turn)
                assert refused.is_error
                assert "99 is not a whole number" in refused.content[0].text
                turn["reply"] = {"tokens_contributed": 4}
                assert (await client.call_tool("act", turn)).structured_content["taken"]


@pytest.mark.skipif(mcp is None, reason="the extra mcp is not installed")
def test_an_agent_by_mcp(tmp_path):
    with running(run_of("program", "tiny"), tmp_path / "run.db") as links:
        [link] = links.values()
        assert asyncio.run(agent(f"{link.address}/mcp"))["state"] == "over"
        assert link.ask("POST", "/mcp", {}, Origin="http://evil.example")[0] == 403
        assert link.ask("POST", "/mcp", b" " * 70_000)[0] == 413
    assert equal(tmp_path / "run.db")


@pytest.mark.skipif(mcp is None, reason="the extra mcp is not installed")
def test_an_agent_that_starts_its_server_itself(tmp_path, llm_games):
    with running(run_of("program", "tiny"), tmp_path / "run.db") as links:
        [link] = links.values()
        asked = ["-m", "llm_games.benchmarks.show.cli", "seat", link.address]
        command = mcp.StdioServerParameters(
            command=sys.executable, args=asked, env=os.environ | {"PYTHONPATH": ROOT}
        )
        with (tmp_path / "log").open("w") as log:
            assert asyncio.run(agent(mcp.stdio_client(command, errlog=log)))["state"] == "over"
    assert "seat/" not in (tmp_path / "log").read_text()  # who reads logs cannot play
    assert equal(tmp_path / "run.db")
    code, _, said = llm_games("seat", link.address)
    assert (code, "is the run still on?" in said) == (2, True)


def test_what_a_guest_cannot_join_is_refused(tmp_path, llm_games):
    with pytest.raises(ConfigError, match=r"let in by: llm-games run FILE --browser"):
        lg.run(run_of("human", "tiny"), tmp_path / "run.db")
    with pytest.raises(BadParameter, match="--browser"):
        make_player("human")
    with pytest.raises(ConfigError, match="varies models"):
        plan_of(run_of("human", "tiny") | {"vary": [{"prompts": "v1"}]})
    with pytest.raises(ConfigError, match="cannot play in a cross-play"):
        plan_of({"game": "public_goods", "players": ["human", "random"]})
    with pytest.raises(ConfigError, match="takes prompts, prompt_folder and name, got temperature"):
        plan_of(run_of({"player": "human", "temperature": 0.3}, "tiny"))
    (tmp_path / "run.toml").write_text('[[games]]\ngame = "public_goods"\nseats = ["random"]\n')
    for extra, word in (([], "no seat has the player human"), (["--host", "0.0.0.0"], "")):
        code, _, said = llm_games("run", "run.toml", "--browser", *extra)
        assert (code, word in said) == (2, True)
    code, _, said = llm_games("serve", "public_goods", "--host", "0.0.0.0")
    assert (code, "by which others reach this machine" in said) == (2, True)
    for command, *option in (
        ("run", "--port", "0"),
        ("play", "--host", "x"),
        ("play", "--limit", "5"),
    ):
        source = "run.toml" if command == "run" else "public_goods"
        code, _, said = llm_games(command, source, *option)
        assert (code, f"{option[0]} " in said, "give --browser too" in said) == (2, True, True)
    code, _, said = llm_games("serve", "public_good")
    assert (code, "did you mean 'public_goods'?" in said) == (2, True)
    code, _, said = llm_games("serve", "public_goods", "--host", "203.0.113.9")
    assert (code, "port 0: " in said, "an address of this machine" in said) == (2, True, True)
    with closing(listening(0)) as taken:
        port = str(taken.getsockname()[1])
        code, _, said = llm_games("serve", "public_goods", "--port", port)
    assert (code, "give another --port" in said) == (2, True)
    for package in ("uvicorn", "starlette"):
        lacks = f"import sys; sys.modules[{package!r}] = None; "
        run_it = "from llm_games.benchmarks.show.cli import main; main()"
        command = [sys.executable, "-c", lacks + run_it, "serve", "public_goods", "--port", "0"]
        env = os.environ | {"PYTHONPATH": ROOT}
        process = subprocess.run(command, capture_output=True, text=True, env=env)
        assert (process.returncode, "pip install 'llm-games[serve]'" in process.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]


def test_a_speech_is_as_long_as_it_may_be(tmp_path):
    raw = run_of("program", "tiny", rounds=1)
    raw["games"][0]["talk"] = {"turns": 1, "words": 3}
    with running(raw, tmp_path / "run.db") as links:
        [link] = links.values()
        link.join()
        shown = link.turn()
        assert shown["most_words"] == 3
        status, said = link.act(shown["turn"], {shown["key"]: "one two three four"})
        assert (status, "too long" in said["error"]) == (422, True)
        link.play(lambda shown: {shown["key"]: "one two" if "longest" in shown else 2})


def test_a_lobby_that_stays_empty_ends_the_run_before_it_begins(tmp_path):
    plan = plan_of(run_of("human", "program", lobby=0.1))
    guests = Guests([GuestSeat(name, kind, name) for name, kind in plan.guest_kinds().items()])
    guests.seats["human"].join()
    plan = plan.model_copy(update={"links": guests})
    file = tmp_path / "run.db"
    with (
        seated_players(plan) as policies,
        pytest.raises(LobbyEmpty, match="missing: program"),
    ):
        play_run(lambda: start(plan, file), plan, policies)
    assert not file.exists()


def test_links_belong_to_names_in_all_games_and_one_table_is_played_at_a_time():
    two = ["human", "human", "tiny"]
    games = [{"game": "public_goods", "params": {"players": 3}, "seats": two}]
    others = ["tiny", {"player": "human", "name": "x"}, "human"]
    games += [games[0] | {"label": "again", "seats": others}]
    plan = plan_of({"games": games, "episodes": 3})
    assert plan.max_tables == 1
    assert plan.guest_seats() == {
        "public_goods": ["human 1", "human 2", ""],
        "again": ["", "x", "human 1"],
    }
    assert plan.games[0].order == "rotate"


def test_no_two_seats_have_a_link_together():
    human, program = ({"player": player, "name": "a"} for player in ("human", "program"))
    apart = [run_of(s, "tiny")["games"][0] | {"label": s["player"]} for s in (human, program)]
    for raw in (run_of(human, human, program | {"name": "a 1"}), {"games": apart}):
        with pytest.raises(ConfigError, match="two links are called 'a"):
            plan_of(raw)


def test_play_in_a_browser_shows_regret_there_and_here(tmp_path):
    command = [sys.executable, "-m", "llm_games.benchmarks.show.cli", "play", "public_goods"]
    flags = ["--browser", "--port", "0", "--param", "players=3", "--param", "rounds=2"]
    process = subprocess.Popen(
        [*command, *flags, "--limit", "4", "--db", "mine.db"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": ROOT},
    )
    link = Link(re.match(r"you: (\S+)", process.stderr.readline())[1])
    link.join()
    link.act(link.turn()["turn"], 5)
    while (shown := link.turn())["state"] != "over":
        link.ask("GET", f"/sees?wait=5&after={shown['number']}")  # the second one is missed
    assert [move["move"] for move in shown["results"]["moves"]] == ["5", "no answer"]
    assert shown["results"]["moves"][0]["regret"] > 0
    said, _ = process.communicate(timeout=WAIT)
    assert process.returncode == 0
    assert "recorded in mine.db" in said
    assert equal(tmp_path / "mine.db")


def test_a_dry_run_asks_no_guest(tmp_path, llm_games):
    (tmp_path / "run.toml").write_text(
        '[[games]]\ngame = "public_goods"\nparams = {players = 2}\nseats = ["human", "program"]\n'
    )
    code, out, _ = llm_games("run", "run.toml", "--dry-run")
    assert code == 0
    assert "human in 1 seat" in out


def test_a_pseudonym_is_forgotten(tmp_path, llm_games):
    file = tmp_path / "run.db"
    raw = run_of("human", "human", rounds=1, pseudonyms=True)
    with running(raw, file) as links:
        players = []
        for link, name in zip(links.values(), ("fox-from-afar", "owl"), strict=True):
            link.join(pseudonym=name)
            players.append(threading.Thread(target=link.play, args=(lambda _: 3,)))
        [player.start() for player in players]
        [player.join() for player in players]
    code, _, said = llm_games("forget", str(file), "wolf")
    assert (code, "those are fox-from-afar, owl" in said) == (2, True)
    assert b"fox-from-afar" in file.read_bytes()
    assert llm_games("forget", str(file), "fox-from-afar")[0] == 0
    with Records.open_readonly(file) as records:
        assert [row.pseudonym for row in records.guests()] == ["forgotten", "owl"]
    assert [path.name for path in tmp_path.iterdir()] == ["run.db"]
    assert b"fox-from-afar" not in file.read_bytes()
    assert equal(file)
    llm_games("export", str(file), "-o", str(tmp_path / "tables"))
    assert all(b"owl" not in table.read_bytes() for table in (tmp_path / "tables").iterdir())
    code, _, said = llm_games("forget", str(file), "")
    assert (code, "no pseudonym ''" in said) == (2, True)


def test_report_and_viewer_say_who_plays_by_a_link(tmp_path):
    """And count a late answer apart from broken ones."""
    file = tmp_path / "run.db"
    raw = run_of("human", "program", "tiny", rounds=2, pseudonyms=True, limit=1.0)
    with running(raw, file) as links:
        links["human"].join(pseudonym="fox")
        links["program"].play(lambda _: 3)
    page = tmp_path / "report.html"
    build([file], page)
    told = page.read_text()
    assert "human (fox, a person in a browser), program (a program by JSON)" in told
    assert re.search(r"<th[^>]*>late</th>", told)
    with closing(RunShelf([file], tmp_path)) as shelf:
        shown = run_page.run(shelf.runs()[0])
    assert ("guests", "human (fox, a person in a browser), program (a program by JSON)") in shown[
        "facts"
    ]
