"""Any game as an environment of OpenEnv, which is installed apart: see tests/libraries."""

import asyncio
import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="OpenEnv has an environment of its own")
sys.path.append(str(Path(__file__).parent / "libraries"))

import with_openenv
from openenv.core import GenericEnvClient
from playing import each_row
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from with_openenv import played, process, said, said_by, server

from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.replay import replay
from llm_games.benchmarks.show.guests.offer import Offer
from llm_games.benchmarks.show.guests.openenv_server import (
    GameAction,
    GameEnvironment,
    LinkEnvironment,
)
from llm_games.game_rooms import ROOMS
from llm_games.wrappers.clients.base import ClientError
from llm_games.wrappers.guest_seat import GuestSeat, NotTaken
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.tool_rollout import GameTools

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
GOODS = {"players": 5, "rounds": 3}
LIMIT = 1.0
"""Seconds of a turn at a shared table."""
CLI = ["-m", "llm_games.benchmarks.show.cli"]
FINE = '{"tokens_contributed": 1}'


@pytest.fixture(scope="module")
def address():
    with server(parameters=GOODS, limit=LIMIT) as found:
        yield found


@pytest.fixture
def env(address):
    with GenericEnvClient(base_url=address).sync() as client:
        yield client


@each_row("game", sorted(ROOMS))
def test_a_game_ends_with_the_payoffs_of_play(game, address):
    parameters = {"rounds": 10} if game == "bertrand_competition" else {}
    parameters = GOODS if game == "public_goods" else parameters
    payoffs, replies = played(game, **parameters)
    words = {"seed": 7, "game": game, "opponents": "random", "parameters": parameters}
    result, total = asyncio.run(said(address, replies[0], seat=0, **words))
    assert result.observation["payoff"] == payoffs[0]
    assert total == pytest.approx(payoffs[0])


def test_five_sessions_at_one_table_play_the_game_of_play(address):
    payoffs, replies = played("public_goods", range(5), **GOODS)

    async def all_at_once():
        words, clients = {"seed": 7, "table": "five", "outside": 5}, []
        for _ in range(5):
            clients.append(GenericEnvClient(base_url=address))
        try:  # the second game has the name of the first
            for _ in range(2):
                last = await asyncio.gather(
                    *(
                        said_by(clients[seat], replies[seat], seat=seat, **words)
                        for seat in range(5)
                    )
                )
        finally:
            await asyncio.gather(*(client.close() for client in clients))
        return last

    results = asyncio.run(all_at_once())
    assert [result.observation["payoff"] for result, _ in results] == payoffs


def test_a_session_works_without_a_server_too():
    payoffs, replies = played("public_goods", **GOODS)
    offer = Offer("public_goods", GOODS, "random", (), limit=LIMIT, player={})
    session = GameEnvironment(offer)
    assert not session.state.over
    observation = session.reset(seed=7, seat=0)
    for reply in replies[0]:
        observation = session.step(GameAction(reply=reply))
    assert (observation.done, observation.payoff) == (True, payoffs[0])
    assert (session.state.over, session.state.seed, session.state.step_count) == (True, 7, 3)
    session.close()


def test_a_player_inside_that_fails_is_told_to_all_at_the_table(monkeypatch):
    async def fails(request):
        raise ClientError("no answer")

    monkeypatch.setattr(Offer, "inside", lambda *of: [LLMPolicy(fails)] * of[-1])
    offer = Offer("public_goods", GOODS, "random", (), limit=LIMIT, player={})

    async def two():
        one, other = GameEnvironment(offer), GameEnvironment(offer)
        sat = (each.reset_async(table="one", outside=2) for each in (one, other))
        await asyncio.gather(*sat, return_exceptions=True)
        steps = (each.step_async(GameAction(reply=FINE)) for each in (one, other))
        return await asyncio.gather(*steps, return_exceptions=True)

    assert [str(error) for error in asyncio.run(two())] == ["no answer"] * 2


def test_a_late_seat_gets_the_declared_move_and_is_told(address):
    async def two():
        async with (
            GenericEnvClient(base_url=address) as one,
            GenericEnvClient(base_url=address) as other,
        ):
            words = {"table": "late", "outside": 2, "seed": 1}
            await asyncio.gather(one.reset(**words), other.reset(**words))
            begin = time.monotonic()
            result = await one.step({"reply": FINE})
            waited = time.monotonic() - begin
            late = await other.step({"reply": FINE})
            return result.observation, late.observation, waited

    fine, late, waited = asyncio.run(two())
    assert fine["outcome"] == "valid"
    assert fine["turn"] == late["turn"] == "1.1.0"
    assert LIMIT * 0.9 < waited < LIMIT + 2
    assert late["outcome"] == "late"
    assert late["broke"]
    assert late["action"] == 0
    assert "round 2" in late["text"].lower()


def test_a_seat_that_was_left_is_played_at_once_by_the_declared_move(address):
    """Until somebody takes it again."""

    async def three():
        words = {"table": "left", "outside": 2, "seed": 1}
        async with (
            GenericEnvClient(base_url=address) as one,
            GenericEnvClient(base_url=address) as third,
        ):
            async with GenericEnvClient(base_url=address) as other:
                await asyncio.gather(one.reset(seat=0, **words), other.reset(seat=1, **words))
            begin = time.monotonic()
            await one.step({"reply": FINE})
            sits = asyncio.create_task(third.reset(table="left"))
            await asyncio.sleep(0.2)
            await one.step({"reply": FINE})
            again = await sits
            ends = await asyncio.gather(*(c.step({"reply": FINE}) for c in (one, third)))
            return again.observation, ends, time.monotonic() - begin

    again, ends, took = asyncio.run(three())
    assert (again["seat"], again["turn"], again["outcome"]) == (1, "1.2.0", None)
    assert "one of 5 players" in again["text"]
    assert [(end.done, end.observation["outcome"]) for end in ends] == [(True, "valid")] * 2
    assert took < LIMIT


def test_a_seat_that_nobody_took_is_played_until_somebody_does(address):
    async def two():
        words = {"table": "free", "outside": 2, "seed": 1}
        async with GenericEnvClient(base_url=address) as one:
            first = await one.reset(seat=3, **words)
            async with GenericEnvClient(base_url=address) as other:
                waiting = asyncio.create_task(other.reset(table="free"))
                await asyncio.sleep(0.3)
                await one.step({"reply": FINE})
                second = await waiting
                return first.observation, second.observation

    first, second = asyncio.run(two())
    assert (first["seat"], first["turn"]) == (3, "1.0.0")
    assert (second["seat"], second["turn"]) == (0, "1.1.0")
    assert "one of 5 players" in second["text"]  # the rules, to who comes late


def test_sixty_four_sessions_at_once_and_no_more(address):
    async def many():
        clients = [GenericEnvClient(base_url=address) for _ in range(64)]
        try:
            first = await asyncio.gather(*(c.reset(seed=k) for k, c in enumerate(clients)))
            last = [
                await asyncio.gather(*(c.step({"reply": FINE}) for c in clients)) for _ in "123"
            ]
            assert all(result.done for result in last[-1])
            async with connect(f"ws{address.removeprefix('http')}/ws") as socket:
                refused = json.loads(await socket.recv())
        finally:
            await asyncio.gather(*(client.close() for client in clients))
        return {result.observation["text"] for result in first}, refused

    texts, refused = asyncio.run(many())
    assert len(texts) == 1
    assert refused["data"]["code"] == "CAPACITY_REACHED"


REFUSED = {
    "a word": ({"sed": 3}, "no word of reset 'sed'; did you mean 'seed'"),
    "money": ({"opponents": "openai:gpt-5"}, "'openai:gpt-5' is not allowed at this server"),
    "a provider": ({"opponents": "openai/gpt-5"}, "is not allowed"),
    "a mixture": ({"opponents": "mix:random|openai:gpt-5"}, "is not allowed"),
    "a module": ({"opponents": "os:system"}, "is not allowed"),
    "a file": ({"opponents": "sb3:/tmp/player.zip"}, "is not allowed"),
    "too few": ({"opponents": ["random"]}, "one name or 4"),
    "no game": ({"game": "os:system"}, "there is no game 'os:system'"),
    "a parameter": ({"parameters": {"player": 3}}, "'player'; did you mean 'players'"),
    "a crowd": ({"parameters": {"players": 10**6}}, "players must be at most 100"),
    "for ever": ({"parameters": {"rounds": 10**5}}, "10000 steps"),
    "a seat": ({"seat": 5}, "seat must be an integer of at least 0 and at most 4, got 5"),
    "a seed": ({"seed": -1}, "seed must be an integer of at least 0"),
    "outside": ({"outside": 6}, "outside must be an integer of at least 1 and at most 5"),
    "a table": ({"table": ""}, "table must be a name"),
    "a seat of a new table": ({"table": "new", "seat": 5, "seed": 3}, "seat must be"),
    "the same with another seed": ({"table": "new", "seat": 5, "seed": 4}, "seat must be"),
}


@each_row(("words", "fault"), REFUSED.values(), ids=REFUSED)
def test_what_a_reset_cannot_be_is_said(words, fault, env):
    with pytest.raises(RuntimeError, match=fault.replace("(", r"\(")):
        env.reset(**words)
    assert env.reset(seed=1).observation["asked"]


def test_what_a_step_cannot_be_is_said(env):
    with pytest.raises(RuntimeError, match=r"reset\(\) comes first"):
        env.step({"reply": FINE})
    env.reset(seed=1)
    with pytest.raises(RuntimeError, match=r"turn '1\.1\.0' is not asked, but '1\.0\.0'"):
        env.step({"reply": FINE, "turn": "1.1.0"})
    with pytest.raises(RuntimeError, match="Invalid message"):
        env.step({"number": 3})
    bad = env.step({"reply": '{"tokens_contributed": 99}'}).observation
    assert (bad["outcome"], bad["broke"], bad["action"]) == ("out_of_range", True, 0)
    assert bad["numbers"]["round"] == 2
    assert env.state()["messages"][0]["role"] == "system"
    env.step({"reply": FINE})
    assert env.step({"reply": FINE}).done
    with pytest.raises(RuntimeError, match="the game is over"):
        env.step({"reply": FINE})


def test_a_client_of_another_version_is_told_what_is_wrong(address):
    async def raw():
        async with connect(f"ws{address.removeprefix('http')}/ws") as socket:
            codes = []
            for text in (
                "rubbish",
                '{"type": "observe"}',
                '{"type": "step", "data": {"action": 3}}',
                '{"type": "step", "data": {"reply": "3", "number": 3}}',
                '{"type": "step", "data": {"reply": {"number": 3}}}',
                '{"type": "step", "data": {"reply": "3", "turn": 1}}',
            ):
                await socket.send(text)
                codes.append(json.loads(await socket.recv())["data"]["code"])
            await socket.send('{"type": "reset", "data": {"seed": 1}}')
            return codes, json.loads(await socket.recv())["data"]["observation"]

    codes, observation = asyncio.run(raw())
    assert codes == ["INVALID_JSON", "UNKNOWN_TYPE", *["VALIDATION_ERROR"] * 4]
    assert observation["asked"]


@contextmanager
def served_link(file):
    """Serve a program's seat of a run that is recorded in a file; yield its link."""
    command = "serve public_goods --seat program --seat random --param players=2 --param rounds=3"
    command = [sys.executable, *CLI, *command.split(), "--port", "0", "--db", str(file)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    yield process.stderr.readline().split()[1]
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_link_of_a_run_is_an_environment_that_is_recorded(tmp_path):
    file = tmp_path / "run.db"
    with served_link(file) as link:
        with GenericEnvClient(base_url=link).sync() as env:
            with pytest.raises(RuntimeError, match="seed is not this session's to choose"):
                env.reset(seed=3)
            first = env.reset().observation
            assert (
                env.step({"reply": FINE, "turn": first["turn"]}).observation["outcome"] == "valid"
            )
        assert status(link, "/step", b'{"action": {"reply": "1"}}', **JSON) == 409
        assert status(link, "/reset", b"{}", Origin="http://evil.example", **JSON) == 403
        with GenericEnvClient(base_url=link).sync() as env:  # the connection was lost
            again = env.reset().observation
            assert (first["turn"], again["turn"]) == ("1.0.0", "1.1.0")
            assert "one of 2 players" in again["text"]
            bad = env.step({"reply": "rubbish"})
            assert (bad.observation["outcome"], bad.observation["broke"]) == ("unparsable", True)
        outcome, paid = written("agent/link.py", link)[-1]
    with Records.open_readonly(file) as records:
        [episode] = records.episodes()
        calls = records.attempts(episode.id)
        assert [(call.text, call.outcome) for call in calls] == [
            (FINE, "valid"),
            ("rubbish", "unparsable"),
            ('{"tokens_contributed": 5}', "valid"),
        ]
        rewards = [row.reward for row in records.decisions(episode.id) if row.seat == 0]
        assert bad.observation["payoff"] == pytest.approx(sum(rewards[:2]))
        assert (outcome, float(paid)) == ("valid", pytest.approx(rewards[2]))
        assert [(row.kind, row.protocol) for row in records.guests()] == [("program", "openenv")]
        assert replay(records).differences == ()


def test_the_link_of_a_person_is_none_of_a_program():
    with pytest.raises(NotTaken, match="a person's: open it in a browser"):
        LinkEnvironment(GuestSeat("you", "human", "token")).reset()


def test_a_table_is_one_game_and_a_seat_is_one_session(address, env):
    async def three():
        async with (
            GenericEnvClient(base_url=address) as one,
            GenericEnvClient(base_url=address) as other,
        ):
            begun = asyncio.create_task(one.reset(table="one", outside=2, seat=1, seed=1))
            await asyncio.sleep(0.2)
            faults = []
            for words in ({"seat": 1}, {"seed": 2}, {"outside": 3}):
                with pytest.raises(RuntimeError) as caught:
                    await other.reset(table="one", **words)
                faults.append(str(caught.value))
            await other.reset(table="one")
            await begun
            return faults

    taken, seed, outside = asyncio.run(three())
    assert "seat 1 is not free; these are: [0, 2, 3, 4]" in taken
    assert "seed is 1 at table 'one', not 2" in seed
    assert "outside is 2" in outside


def status(address, path, body=None, **headers):
    """Return the status of an answer to a request with these headers."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(address + path, body, names)) as found:
            return found.status
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError:  # it hangs up while we still send
        return "cut off"


JSON = {"content_type": "application/json"}


def test_the_door_is_shut_to_other_hosts_pages_and_to_large_messages(address):
    host = address.removeprefix("http://")
    assert status(address, "/health") == 200
    assert status(address, "/health", Origin=address) == 200
    assert status(address, "/health", Host="evil.example") == 421
    assert status(address, "/health", Origin="http://evil.example") == 403
    assert status(address, "/reset", b"{}", **JSON) == 200
    assert status(address, "/reset", b'{"sed": 1}', **JSON) == 422
    assert status(address, "/step", b'{"action": {"reply": "1"}}', **JSON) == 409
    large = b'{"seed": "' + b"1" * 10_000_000 + b'"}'
    assert status(address, "/reset", large, **JSON) in (413, "cut off")

    async def sockets():
        local, port = host.split(":")
        foreign = {"Origin": "http://evil.example"}
        for opened in (
            connect(f"ws://{host}/ws", additional_headers=foreign),
            connect(f"ws://evil.example:{port}/ws", host=local, port=int(port)),
        ):
            with pytest.raises(InvalidStatus, match="403"):
                await opened
        async with connect(f"ws://{host}/ws", max_size=None) as socket:
            await socket.send("1" * 10_000_000)
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            return closed.value.rcvd.code

    assert asyncio.run(sockets()) == 1009


def test_a_written_project_is_valid_and_serves_its_game(tmp_path):
    folder = tmp_path / "project"
    init = ["openenv", "init", str(folder), "--game", "public_goods", "--param", "players=3"]
    run = [sys.executable, *CLI, *init]
    subprocess.run(run, check=True, capture_output=True)
    again = subprocess.run(run, capture_output=True, text=True)
    assert again.returncode == 2
    assert "is not empty" in again.stderr
    validate = [Path(sys.executable).with_name("openenv"), "validate"]
    static = [*validate, folder, "--level", "static", "--skip-build"]
    assert "Verdict: PASS" in subprocess.run(static, capture_output=True, text=True).stdout
    assert "RUN pip install --no-cache-dir ." in (folder / "Dockerfile").read_text()
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--target",
        tmp_path / "app",
    ]
    subprocess.run([*install, "."], cwd=folder, check=True, capture_output=True)
    shutil.rmtree(folder / "server")  # what was installed serves
    space = {"PYTHONPATH": str(tmp_path / "app"), "HOST": "0.0.0.0", "SPACE_HOST": "we.example"}
    with process([sys.executable, "-m", "server.app"], tmp_path, **space) as address:
        assert status(address, "/health", Host="we.example", Origin="https://we.example") == 200
        assert status(address, "/health", Host="evil.example") == 421
        found = subprocess.run([*validate, "--url", address], capture_output=True, text=True)
        assert found.stdout.count("PASS ") == 6
        assert "Verdict: PASS" in found.stdout
        with GenericEnvClient(base_url=address).sync() as env:
            assert "one of 3 players" in env.reset(seed=1).observation["text"]


def written(name, address):
    """Run a script of the documents; return the words of the lines that it prints."""
    page = (Path(__file__).parents[1] / "docs" / "notebooks" / "openenv.md").read_text()
    code = page.partition(f"# {name}\n")[2].partition("\n```")[0]
    run = [sys.executable, "-c", code, address]
    out = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    return [line.split() for line in out.splitlines()]


def test_the_agent_of_the_documents_plays():
    with server(parameters=GOODS) as address:
        lines = written("agent/play.py", address)
    assert [words[:2] for words in lines[-4:-1]] == [["valid", "5"]] * 3
    paid = [float(words[-1]) for words in lines[-4:]]
    assert sum(paid[:3]) == pytest.approx(paid[3])


class ServedTools:
    """A TRL environment whose games are a server's."""

    def __init__(self, address, **words):
        self._words, self._env = words, GenericEnvClient(base_url=address).sync()
        self._env.connect()
        self._payoff, self._done = 0.0, False

    def reset(self, seed=None, **columns):
        return self._read(self._env.reset(seed=seed, **self._words))

    def answer(self, reply):
        return self._read(self._env.step({"reply": reply}))

    def get_reward(self):
        while not self._done:
            self.answer("")
        return self._payoff

    def _read(self, result):
        self._payoff, self._done = result.observation["payoff"], result.done
        return result.observation["text"]


def test_tools_of_trl_are_paid_the_same_in_process_and_by_the_server(address):
    served = ServedTools(address, seat=0)
    inside = GameTools("public_goods", seat=0, opponents=with_openenv.lg.player("random"), **GOODS)
    replies = ([FINE] * 3, ["rubbish", FINE], [])
    for seed, said_here in enumerate(replies):
        texts = [[one.reset(seed=seed), *map(one.answer, said_here)] for one in (served, inside)]
        assert texts[0] == texts[1]
        assert served.get_reward() == inside.get_reward()
