"""Somebody's own games, players, clients and tools: by name and as objects."""

import asyncio
import json
import os
import re
import signal
import sys
import threading
import time
from html import unescape
from math import nan
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games import game_rooms as rooms
from llm_games import import_names as named
from llm_games import words
from llm_games.baselines.players import make_player, reading
from llm_games.benchmarks.record import editions
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.spending import Spending
from llm_games.benchmarks.run.api import Results
from llm_games.benchmarks.run.conduct import RunStopped
from llm_games.benchmarks.run.plan import Overrides, plan_of, players
from llm_games.benchmarks.run.replay import replay
from llm_games.benchmarks.show.page import build
from llm_games.errors import BadParameter, UnknownName
from llm_games.registry import game_class
from llm_games.wrappers.clients.base import Completion
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.play import play
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.single_agent import SingleAgentEnv
from llm_games.wrappers.tools import Tool

GAME = """
from dataclasses import dataclass

from llm_games.facts import param
from llm_games.games.divide_dollar.rules import DivideDollar


@dataclass(frozen=True)
class Duel(DivideDollar):
    "Two share some coins."

    name, title, source = "duel", "Duel", "here"
    players: int = param(2, "number of players")


class Half(DivideDollar):
    name = "half"

    def bounds(self):
        raise NotImplementedError


nothing = 3
"""
PLAYERS = """
import asyncio
from pathlib import Path

from llm_games.wrappers.clients.base import Completion
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.tools import Tool

calls = []


async def agent(observation, view):
    await asyncio.sleep(0)
    calls.append(observation)
    if Path("broken").exists() and len(calls) > 1:
        raise KeyError("no such memory")
    return min(7, int(view.high))


def plain(observation):
    return '{"bid_amount": 9}'


async def model(request):
    told = request.messages[-1]["content"]
    if "weather" in told and "sunny" not in told:
        return '{"tool": "weather", "arguments": {}}'
    return Completion('{"bid_amount": 11}', tokens_in=100, tokens_out=3)


class Calm(Policy):
    name = "calm"

    def start(self, game, seat, seed):
        return None

    def act(self, view, memory):
        return Decision(4), memory


class Client:
    name = "mine"

    async def complete(self, request):
        return Completion('{"bid_amount": 5}')

    async def close(self):
        pass


def make():
    return Client()


weather = Tool("weather", "tells the weather", lambda view, _: "sunny")
number = 3
"""
WORDING = (rooms.wordings("divide_dollar") / "v1.j2").read_text()
TOML = """
episodes = 2
max_tables = 1
order = "fixed"

[[games]]
game = "mygames:Duel"
params = { players = 5, rounds = 2 }
seats = [
  "agents/mine.py:agent",
  "theirs:plain",
  { player = "theirs:Calm", name = "calm" },
  { client = "theirs:model", name = "model", tools = ["theirs:weather"], memory = "none" },
  "client:theirs:make",
]

[budget]
calls = 100
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with somebody's own modules, in which the test runs; forget them afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}
    for place in ("agents", "wordings"):
        (tmp_path / place).mkdir()
    files = {"mygames.py": GAME, "theirs.py": PLAYERS, "agents/mine.py": PLAYERS}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "wordings" / "v1.j2").write_text(WORDING)
    yield tmp_path
    for name in {*sys.modules} - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    words._template.cache_clear()
    editions.editions.cache_clear()


def actions(path):
    return [(row["seat"], row["action"]) for row in Results(path).rows("decisions")]


def replayed(path):
    with Records.open_readonly(path) as records:
        return replay(records)


def goods(*seats, **more):
    game = {"game": "public_goods", "params": {"players": len(seats), "rounds": 2}}
    return {"games": [game], "seats": list(seats)} | more


# -- by name --------------------------------------------------------------------------------------


def test_an_experiment_of_ones_own_things_is_recorded_reported_and_replayed(folder, llm_games):
    (folder / "mine.toml").write_text(TOML)
    code, printed, _ = llm_games("run", "mine.toml", "--db", "a.db", "-q", "--report", "out")
    assert code == 0, printed
    assert actions("a.db") == [(0, 7), (1, 9), (2, 4), (3, 11), (4, 5)] * 4
    [game] = Results(folder / "a.db").games.values()
    assert (game.label, game.game, game.bad_replies) == ("duel", "mygames:Duel", {})
    assert game.players == [
        "agents/mine.py:agent", "theirs:plain", "calm", "model", "theirs:make",
    ]  # fmt: skip
    again = replayed("a.db")
    assert (again.differences, again.steps) == ((), 4)
    attempts = Results(folder / "a.db").rows("attempts")
    assert {row["outcome"] for row in attempts if row["seat"] == 3} == {"tool", "valid"}
    assert not [row for row in attempts if row["seat"] == 2]
    assert "duel" in (folder / "out" / "report.html").read_text()
    spent = (folder / "out" / "tables" / "spent.csv").read_text().splitlines()
    assert all(line.endswith(",") for line in spent[1:])  # no price is known, so no money


def test_an_error_is_shown_where_it_arose_and_the_run_goes_on(folder, llm_games):
    (folder / "mine.toml").write_text(TOML)
    assert llm_games("run", "mine.toml", "--db", "whole.db", "-q")[0] == 0
    (folder / "broken").touch()
    sys.modules[str(folder / "agents" / "mine.py")].calls.clear()
    code, _, err = llm_games("run", "mine.toml", "--db", "a.db", "-q")
    error, where, way_out = err.splitlines()[-3:]
    assert (code, error) == (1, "KeyError: 'no such memory'")
    assert where == "('agents/mine.py:agent' on seat 0 of mygames:Duel, episode 1, step 1)"
    assert way_out.startswith("stopped by an error; all that happened is in a.db")
    assert err.count("  File ") <= 12
    (folder / "broken").unlink()
    assert actions("a.db") == actions("whole.db")[:5]
    assert llm_games("resume", "a.db", "-q")[0] == 0
    assert actions("a.db") == actions("whole.db")


def test_what_a_record_needs_is_said_when_it_is_gone(folder, llm_games):
    (folder / "mine.toml").write_text(TOML.replace("theirs:weather", "calculator"))
    assert llm_games("run", "mine.toml", "--db", "a.db", "-q")[0] == 0
    for place in ("theirs.py", "agents/mine.py"):  # moves are recorded
        (folder / place).unlink()
    for name in ("theirs", str(folder / "agents" / "mine.py")):
        del sys.modules[name]
    assert llm_games("report", "a.db", "-o", "out")[0] == 0
    assert replayed("a.db").differences == ()
    del sys.modules["mygames"]
    (folder / "mygames.py").unlink()
    editions.editions.cache_clear()
    for command in ("report", "replay"):
        code, _, said = llm_games(command, "a.db")
        assert (code, "there is no module mygames" in said) == (2, True), said


def test_names_are_read_in_order(folder, monkeypatch):
    providers = SimpleNamespace(
        COMPATIBLE={"vllm": 0},
        ADAPTED={"google": 0},
        client_for=lambda name: ScriptedClient([name]),
    )
    monkeypatch.setitem(sys.modules, "llm_games.wrappers.clients.providers", providers)
    assert [reading(name) for name in ("fixed:go", "vllm/a:8b", "a.b:c", "d/e.py:F", "d/e")] == [
        "kind", "provider", "own", "own", "",
    ]  # fmt: skip
    assert make_player("google/gemini-9").name == "scripted"
    with pytest.raises(UnknownName, match="no provider 'vlm'; did you mean 'vllm'"):
        make_player("vlm/qwen")
    (folder / "fixed.py").touch()
    with pytest.raises(BadParameter, match=r"the kind of player 'fixed' or as what fixed\.py"):
        make_player("fixed:go", "el_farol_bar")
    (folder / "vllm").mkdir()
    (folder / "vllm" / "a.py").touch()
    with pytest.raises(BadParameter, match=r"a model of 'vllm' or as what vllm/a\.py defines"):
        make_player("vllm/a.py:go")


@each_row(
    ("name", "says"),
    [
        ("nowhere:agent", "no module nowhere, neither in .*no player 'nowhere:agent'"),
        ("ratoinal:agent", "did you mean 'rational'"),
        ("agents/nobody.py:agent", r"there is no file .*agents/nobody\.py"),
        ("theirs:agnet", "no player in theirs 'agnet'; did you mean 'agent'.*known: Calm, Client"),
        ("theirs:Calm.nose", "no player in theirs 'Calm.nose'"),
        ("theirs:number", "3 takes no seat: a player is"),
        ("theirs:weather", r"Tool\(.* takes no seat: a player is"),
        ("theirs:make", "'theirs:make' cannot be called so: a player is"),
        ("client:theirs:plain:x", "a client of your own is module:Name"),
        ("client:theirs:number", "3 takes no seat: a client"),
    ],
)
def test_names_that_mean_nothing(folder, name, says):
    with pytest.raises((BadParameter, UnknownName), match=says):
        make_player(name)
    with pytest.raises(ConfigError, match="public_goods, seat 0"):
        lg.run(goods(name, "random"), "a.db")
    assert not (folder / "a.db").exists()


@each_row(
    ("name", "says"),
    [
        ("mygames:Deul", "no game in mygames 'Deul'; did you mean 'Duel'.*known: Duel, Half, noth"),
        ("mygames:nothing", "is no game, but 3: a game is a frozen dataclass on .*Rulebook"),
        ("theirs:Calm", "is no game"),
        ("llm_games.rulebook:Rulebook", r"lacks asked, asks, .*wordings/v1\.j2 beside its module"),
        ("llm_games.rounds:Rounds", "lacks .*name, title, source"),
    ],
)
def test_games_that_are_none(folder, name, says):
    with pytest.raises((BadParameter, UnknownName), match=says):
        game_class(name)


def test_a_game_of_ones_own_needs_a_name_of_its_own_and_words_for_who_reads(folder):
    (folder / "wordings" / "v1.j2").rename(folder / "v1.j2")
    game = lg.rules("mygames:Duel", rounds=1)
    assert play(game, [make_player("random", game)] * 2).payoffs.shape == (2,)
    with pytest.raises(BadParameter, match=r"duel has no words .*wordings/v1\.j2.*beside the mod"):
        play(game, [make_player("theirs:plain", game)] * 2)
    (folder / "more.py").write_text(GAME)
    with pytest.raises(BadParameter, match="'duel' is in the room mygames:Duel: give more:Duel an"):
        lg.make("more:Duel")


def test_a_label_alone_is_no_object(folder):
    with pytest.raises(BadParameter, match=r"player 'x' was an object .*own={'x': "):
        make_player("own:x")
    with pytest.raises(ConfigError, match="not written down: x"):
        lg.run(goods("own:x", "random"), "a.db")
    assert lg.run(goods("own:x", "random"), "a.db", own={"x": contribute}).path.exists()


def test_errors_of_a_module_are_its_own(folder):
    (folder / "bad.py").write_text("import not_there\n")
    for name in ("bad:x", "./bad.py:x"):
        with pytest.raises(ModuleNotFoundError, match="not_there"):
            make_player(name)


# -- as objects -----------------------------------------------------------------------------------


async def contribute(observation):
    return 3


def test_objects_are_written_down_by_name_or_label(folder):
    theirs, mygames = (named.module_of(name) for name in ("theirs", "mygames"))

    class Quiet(Policy):
        name = "quiet"
        lock = threading.Lock()  # nothing is pickled

        def start(self, game, seat, seed):
            return 0

        def act(self, view, memory):
            return Decision(2), memory

    raw = {
        "games": [{"game": mygames.Duel(players=6, rounds=1)}],
        "seats": [
            theirs.agent,
            {"player": lambda observation: 5, "name": "five"},
            Quiet(),
            theirs.Client(),
            {"client": theirs.model, "name": "model", "tools": [theirs.weather]},
            lg.LLMPolicy(theirs.model, persona="selfish"),
        ],
    }
    done = lg.run(raw, "a.db", budget_calls=50)
    assert [action for _, action in actions("a.db")] == [7, 5, 2, 5, 11, 11]
    with Records.open_readonly("a.db") as records:
        [game] = records.config["games"]
        assert sum(usage.calls for usage in records.spent().values()) == 6
        assert {*Spending(records).estimated} == {"<lambda>", "mine", "theirs:agent"}
    assert (game["game"], game["params"]) == ("mygames:Duel", {"players": 6, "rounds": 1})
    assert [seat["player"] for seat in game["seats"]] == [
        "theirs:agent", "own:five", "own:quiet", "own:mine", "client:theirs:model", "own:model",
    ]  # fmt: skip
    assert game["seats"][4]["settings"]["tools"] == ["own:weather"]
    assert done.games["duel"].players[:5] == ["theirs:agent", "five", "quiet", "mine", "model"]


def test_a_run_of_objects_is_resumed_with_them(folder):
    def run(db, *, breaks=False):
        asked = []

        def player(observation):
            asked.append(observation)
            if breaks and len(asked) == 3:
                raise OSError("the line is dead")
            return 3

        raw = goods({"player": player, "name": "mine"}, {"player": contribute}, episodes=2)
        return lg.run(raw | {"max_tables": 1}, db)

    whole = actions(run("whole.db").path)
    with pytest.raises(OSError, match="the line is dead") as broke:
        run("a.db", breaks=True)
    assert broke.value.__notes__[-1].endswith("go on with: llm-games resume a.db")
    with pytest.raises(ConfigError, match=r"mine\. Hand .*llm_games.resume\(FILE, own={'mine': "):
        lg.resume("a.db")
    with pytest.raises(ConfigError, match="not written down: mine"):
        lg.resume("a.db", {"mina": contribute})
    with pytest.raises(ConfigError, match=r"takes cache, budget_\.\.\. and max_wait, got seed"):
        lg.resume("a.db", {"mine": contribute}, seed=3)
    asked = []

    def player(observation):
        asked.append(observation)
        return 3

    done = lg.resume("a.db", {"mine": player}, budget_calls=100)
    assert actions(done.path) == whole
    assert len(asked) == 2  # what is recorded is not asked again
    assert lg.resume("a.db", {"mine": player}).scores == done.scores
    assert replayed("a.db").differences == ()


@each_row(
    ("seats", "says"),
    [
        ([lambda observation: 3], 'give it a name, as in {"player": ..., "name": "mine"}'),
        ([ScriptedClient([]), ScriptedClient([])], "two objects are called 'scripted'"),
        ([{"player": contribute, "client": contribute}], "a player or a client, not both"),
        ([{"player": Policy}], "Policy lacks act, start"),
        ([lambda: 3, 3.5], "give it a name"),
        ([3.5], "should be a table"),
        ([{"player": ScriptedClient([]), "colour": "red"}], "there is no key seats[0].colour"),
    ],
)  # fmt: skip
def test_objects_that_take_no_seat(folder, seats, says):
    with pytest.raises(ConfigError) as error:
        lg.run(goods(*(seats * 2)[:2]), "a.db")
    assert says in str(error.value)
    assert not (folder / "a.db").exists()


def test_objects_of_games_that_are_left_out_are_not_asked_for(folder):
    raw = goods({"player": lambda observation: 3, "name": "mine"}, "random")
    raw["games"].append(raw["games"][0] | {"label": "more", "seats": ["random"]})
    assert lg.run(raw, "a.db", games=["more"]).games.keys() == {"more"}


def test_a_game_in_a_function_cannot_be_written_down():
    class Local(game_class("public_goods")):
        name = "local"

    with pytest.raises(ConfigError, match=r"Local.* cannot be written down: a game is found again"):
        lg.run({"games": [{"game": Local, "seats": ["random"]}]}, "a.db")


# -- what a function gets and gives ---------------------------------------------------------------


@each_row(
    ("said", "outcomes", "action"),
    [
        (3, ["valid"], 3),
        ('I say {"tokens_contributed": 4}', ["valid"], 4),
        ({"tokens_contributed": 5}, ["valid"], 5),
        (Completion('{"tokens_contributed": 6}'), ["valid"], 6),
        ({"tokens_contributed": np.int64(7)}, ["valid"], 7),
        (np.array(8), ["valid"], 8),
        (21, ["out_of_range"] * 3, 21),
        ((1, 2), ["unparsable"] * 3, None),
        ("no idea", ["unparsable"] * 3, None),
    ],
)
def test_answers(said, outcomes, action):
    async def agent(observation, view):
        assert view.game.name == "public_goods"
        assert view.question.high == 20
        return said

    episode = lg.play("public_goods", [agent, lg.player("random")], players=2, rounds=1)
    made = episode.steps[0].decisions[0]
    assert [attempt.outcome for attempt in made.attempts] == outcomes
    assert action is None or made.action == action


@each_row("said", [None, 3.5, True, object(), (1, 2.5), [None], {"x": nan}, {1}])
def test_answers_of_no_kind(said):
    def agent(observation):
        return said

    with pytest.raises(BadParameter, match=r"'agent' returned .*: it must return a text") as error:
        lg.play("public_goods", [agent] * 2, players=2, rounds=1)
    assert "on seat 0 of public_goods" in error.value.__notes__[0]


@each_row("function", [lambda: 3, lambda a, b: 3, lambda *, view: 3, "rational", None, 3, int])
def test_signatures(function):
    with pytest.raises(BadParameter, match=r"such as|takes no seat|cannot be called so"):
        lg.play("public_goods", [function] * 2, players=2, rounds=1)


def test_a_function_is_told_all_and_asked_again_with_what_was_wrong():
    told = []

    def agent(observation):  # also one that runs an event loop of its own
        told.append(observation)
        return asyncio.run(contribute(observation)) if len(told) != 2 else "hm"

    lg.play("public_goods", [agent, lg.player("random")], players=2, rounds=2)
    first, second, third = told
    assert second.startswith(first.split("\n\n")[0])
    assert 'You answered: {"tokens_contributed": 3}' in second
    assert third.startswith(second.rstrip())
    assert len(third) > len(second)


def test_an_iterator_that_ends_is_an_error_not_a_silence():
    answers = iter([3])
    with pytest.raises(RuntimeError, match=r"<lambda>' raised StopIteration"):
        lg.play("public_goods", [lambda observation: next(answers)] * 2, players=2, rounds=2)


@pytest.mark.parametrize("deeply", [False, True])
def test_a_function_that_is_cancelled_from_within_stops_the_run(folder, deeply):
    async def agent(observation):
        if deeply:
            asyncio.current_task().cancel()
            await asyncio.sleep(0)
        raise asyncio.CancelledError

    with pytest.raises(RunStopped, match=r"by its own code \('agent' on seat 0 .*\n.*go on with"):
        lg.run(goods({"player": agent, "name": "mine"}, "random"), "a.db")


@pytest.mark.skipif(os.name == "nt", reason="there it is no signal to a thread")
def test_ctrl_c_stops_a_run_where_an_event_loop_is_running(folder):
    asked = []

    async def agent(observation):
        asked.append(observation)
        if len(asked) == 3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            await asyncio.sleep(1)  # which is waited for
        return 3

    async def cell():
        lg.run(goods({"player": agent, "name": "mine"}, "random", episodes=9), "a.db")

    loop = asyncio.new_event_loop()  # no asyncio.run, which keeps Ctrl-C from the cell
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(cell())
    loop.close()
    assert len(asked) < 18
    assert lg.resume("a.db", {"mine": contribute}).scores["public_goods"]


def test_clients_of_one_name_at_two_servers_do_not_share_replies(folder):
    class Model:
        name = "model"

        def __init__(self, base_url):
            self.base_url = base_url

        async def complete(self, request):
            return Completion(json.dumps({"tokens_contributed": len(self.base_url)}))

        async def close(self):
            pass

    for number, url in enumerate(["http://a/v1", "http://bbb/v1"]):
        seat = lg.LLMPolicy(Model(url), temperature=0)
        lg.run(goods(seat, "random") | {"cache": "replies.db"}, f"{number}.db")
        assert actions(f"{number}.db")[0] == (0, len(url))


def test_a_run_with_a_tool_that_has_no_name_is_replayed_with_it(folder):
    tool = Tool("mine", "says one", lambda view, given: "one", always=True)
    lg.run(
        goods({"player": named.named("theirs:agent", "player"), "tools": [tool]}, "random"), "a.db"
    )
    with pytest.raises(BadParameter, match=r"tool 'mine' was an object"):
        replayed("a.db")
    with Records.open_readonly("a.db") as records:
        assert replay(records, {"mine": tool}).differences == ()


@each_row("given", [(Decision(5.5), 0), (Decision("5"), 0), (Decision(None), 0), 5])
def test_what_is_no_decision_is_no_move(given):
    class Odd(Policy):
        name = "odd"

        def start(self, game, seat, seed):
            return 0

        def act(self, view, memory):
            return given

    with pytest.raises(BadParameter, match="'odd', which must return its Decision") as error:
        lg.play("public_goods", [lg.player("random"), Odd()], players=2)
    assert "on seat 1 of public_goods" in error.value.__notes__[0]


def test_functions_sit_opposite_a_learner():
    env = SingleAgentEnv("public_goods", players=3, opponents=contribute)
    assert {policy.name for policy in env.opponents.values()} == {"contribute"}
    env.reset(seed=1)
    assert env.step(5)[4]["broke"] is False
    with pytest.raises(BadParameter, match="None takes no seat"):
        SingleAgentEnv("public_goods", players=2, opponents=[None])


def test_clients_and_tools_of_ones_own_are_checked():
    async def silent(request):
        return None

    with pytest.raises(BadParameter, match=r"silent' returned None"):
        lg.play("public_goods", [lg.LLMPolicy(silent)] * 2, players=2)

    class Odd:
        name = "odd"

        async def complete(self, request):
            return self.answer

        async def close(self):
            pass

    for Odd.answer in ("a text", Completion(None)):
        with pytest.raises(BadParameter, match="'odd' must return a Completion of a text"):
            lg.play("public_goods", [Odd(), Odd()], players=2)
    with pytest.raises(BadParameter, match="json:dumps is no Tool, but <function dumps"):
        make_player("tiny", tools=["json:dumps"])
    assert json.dumps


def test_a_budget_stops_a_function_and_the_run_goes_on(folder):
    raw = goods(contribute, "random", episodes=3)
    with pytest.raises(RunStopped, match="calls"):
        lg.run(raw, "a.db", budget_calls=2)
    done = lg.resume("a.db", budget_calls=6)
    assert done.games["public_goods"].episodes == {"done": 3}
    assert actions("a.db") == actions(lg.run(raw, "b.db").path)


def test_async_functions_play_together_and_others_one_after_another(folder):
    most, now = {}, {}

    def began(name):
        now[name] = now.get(name, 0) + 1
        most[name] = max(most.get(name, 0), now[name])

    async def together(observation):
        began("together")
        await asyncio.sleep(0.01)
        now["together"] -= 1
        return 3

    def alone(observation):
        began("alone")
        time.sleep(0.001)
        now["alone"] -= 1
        return 3

    seats = [{"player": player, "name": player.__name__} for player in (together, alone)]
    lg.run(goods(*seats, episodes=4), "a.db")
    assert most == {"together": 4, "alone": 1}


def test_other_doors_take_ones_own_too(folder):
    import gymnasium

    env = lg.make("mygames:Duel", rounds=1)
    observations, _ = env.reset(seed=1)
    assert "2 players in a game of 1 round" in observations["player_0"]["text"]
    learner = gymnasium.make(
        "llm_games/PublicGoods-v0", players=2, opponents="agents/mine.py:agent"
    )
    learner.reset(seed=1)
    assert learner.step(3)[4]
    done = lg.run(goods("random", "random"), "a.db", seats=contribute)
    assert {action for _, action in actions(done.path)} == {3}


def test_models_of_providers_have_settings_of_servers():
    name = "vllm/qwen3:8b"
    there = {"base_url": "http://127.0.0.1:9/v1", "temperature": 0.5}
    raw = goods(name, "openai/gpt-9", "random", models={name: there})
    plan = plan_of(raw, Overrides.of(persona="selfish", games=["public_goods"]))
    one, other, _ = plan.games[0].seats
    assert one.client == {"base_url": there["base_url"]}
    assert (one.settings["temperature"], other.settings["persona"]) == (0.5, "selfish")
    made = players(plan.without_keys())
    assert [policy.name for policy in made.values()] == ["qwen3:8b", "gpt-9", "random"]
    with pytest.raises(ConfigError, match="did you mean 'base_url'"):
        lg.run(goods({"player": name, "base_ulr": "x"}, "random"), "a.db")
    with pytest.raises(UnknownName, match="did you mean 'timeout'"):
        make_player(name, client={"time_out": 3})


def test_what_was_special_about_replies_is_in_the_report(folder):
    async def loose(observation):
        return Completion("{'tokens_contributed': '5 tokens'}", left_out=["seed"])

    lg.run(goods({"player": loose, "name": "loose"}, "rational", episodes=1), "a.db")
    page = re.sub(r"<[^>]+>", " ", build([Path("a.db")], folder / "out").read_text())
    page = re.sub(r"\s+", " ", unescape(page))
    assert "loose quotes other quotation marks than JSON's 2" in page
    assert "loose unit the number has the game's own unit, or a dollar sign 2" in page
    assert "loose no seed the server refuses it: asked without it 2" in page
