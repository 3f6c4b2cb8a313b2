"""Runs: what is recorded, and that a run which was killed ends as if it never had been.

The runs are real processes (this file is also their program) and are really killed.
"""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playing import sampled

import llm_games
from llm_games.baselines.players import PLAYERS, Kind
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.store import Records, RunLocked, Store
from llm_games.benchmarks.run.conduct import (
    Counters,
    ReplayFailed,
    RunStopped,
    _to_its_end,
    play_run,
    start,
)
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.benchmarks.run.replay import replay
from llm_games.benchmarks.run.resume import planned
from llm_games.wrappers.clients.base import ClientError, Completion
from llm_games.wrappers.clients.flights import Flights, drained, flown
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy

ROOT = str(Path(__file__).parents[1])
CONFIG = {
    "title": "A small run",
    "seed": 5,
    "episodes": 2,
    "seats": ["scripted", "random", "scripted"],
    "models": {"other": {"persona": "selfish"}},
    "games": [
        {"game": "public_goods", "params": {"players": 3, "rounds": 3}, "order": "fixed"},
        {"game": "battle_royale", "params": {"players": 3, "max_shots": 4}},
        {"game": "pirate_game", "params": {"players": 3}, "seats": ["scripted"], "episodes": 3},
        {
            "game": "sealed_bid_auction",
            "label": "auction",
            "params": {"players": 3, "rounds": 2, "price": "second", "valuation_draw": "random"},
        },
    ],
}


def answer(request):
    """Answer from the seed alone: mostly legal, some chatter, some refusals."""
    if request.question is None:
        return "hello"
    rng = np.random.default_rng(request.seed)
    luck = rng.random()
    if luck < 0.1:
        return Completion("", "refusal", 7, 0, 0.1, "script")
    if luck < 0.3:
        return "I would rather not say \ud800."
    text = request.question.reply(sampled(request.question, rng))
    return Completion(text, "stop", 7, 5, 0.1, "script")


class Meddler:
    """A client that answers from `answer`, logs each call and may kill the process at one."""

    name = "scripted"

    def __init__(self, kill_at=0, log=None, delay=0.0):
        self.client, self.kill_at, self.log, self.delay = (
            ScriptedClient(answer),
            kill_at,
            log,
            delay,
        )
        self.calls = 0

    async def complete(self, request):
        if request.question is not None:
            self.calls += 1
            if self.calls == self.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.log:
                with open(self.log, "a") as log:
                    print(json.dumps([request.seed, *request.who[2:4]]), file=log)
            # Answers come in another order than the questions, and in another one each time.
            await asyncio.sleep(self.delay + np.random.default_rng().random() * 0.003)
        return await self.client.complete(request)

    async def close(self):
        pass


def scripted(client):
    PLAYERS["scripted"] = Kind(
        "answers from its seed", model=lambda value, _, more: LLMPolicy(client, **more)
    )


def main(task, path, kill_at, delay):
    """Run or resume, as a process of its own."""
    from llm_games.benchmarks.show import cli

    scripted(Meddler(int(kill_at), log=f"{path}.log", delay=float(delay)))
    arguments = ["run", f"{path}.toml", "--db", path] if task == "run" else ["resume", path]
    sys.argv = ["llm-games", *arguments]
    cli.main()


def process(task, path, kill_at=0, delay=0.0):
    command = [sys.executable, __file__, task, str(path), str(kill_at), str(delay)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": ROOT}, **pipes)


def write_toml(path, **changes):
    """Write CONFIG as TOML (JSON values are TOML values here)."""
    plain = {k: v for k, v in CONFIG.items() if k not in ("games", "models")} | changes
    lines = [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for game in CONFIG["games"]:
        lines.append("[[games]]")
        inline = {k: v for k, v in game.items() if k != "params"}
        lines += [f"{key} = {json.dumps(value)}" for key, value in inline.items()]
        params = ", ".join(f"{k} = {json.dumps(v)}" for k, v in game["params"].items())
        lines.append(f"params = {{ {params} }}")
    Path(f"{path}.toml").write_text("\n".join(lines))


def make_plan(**changes):
    return resolve(parse(CONFIG | changes, "test"), "test")


def whole(path, client, **changes):
    scripted(client)
    plan = make_plan(**changes)
    play_run(lambda: start(plan, path), plan, players(plan))
    return content(path)


def content(path):
    """Return all that a run recorded, but times."""
    with Records.open_readonly(path) as records:
        found = {}
        for episode in records.episodes():
            attempts = [
                (*records.messages(row.prompt), *(v for k, v in vars(row).items() if k not in SKIP))
                for row in records.attempts(episode.id)
            ]
            found[episode.game.label, episode.number] = (
                (episode.seed, episode.status, episode.reason),
                records.steps(episode.id),
                records.decisions(episode.id),
                attempts,
            )
        return found


SKIP = ("prompt", "latency")


def test_everything_is_recorded(tmp_path, registry):
    client = Meddler()
    found = whole(tmp_path / "a.db", client)
    assert {label: status for (label, _), ((_, status, _), *_) in found.items()} == dict.fromkeys(
        ("public_goods", "battle_royale", "pirate_game", "auction"), "done"
    )
    attempts = [attempt for *_, rows in found.values() for attempt in rows]
    assert len(attempts) == client.calls
    with Records.open_readonly(tmp_path / "a.db") as records:
        rows = [row for episode in records.episodes() for row in records.attempts(episode.id)]
    outcomes = {row.outcome for row in rows}
    assert outcomes >= {"valid", "unparsable", "refused"}
    assert any("not say ?." in str(attempt) for attempt in attempts)
    goods = found["public_goods", 0]
    assert [step.asked for step in goods[1]] == [[0, 1, 2]] * 3
    assert [d.seat for d in goods[2]] == [0, 1, 2] * 3
    assert [d.reward for d in goods[2]] == [r for step in goods[1] for r in step.rewards]
    with Records.open_readonly(tmp_path / "a.db") as records:
        assert planned(records) == make_plan()


def test_a_watcher_sees_what_has_been_done(tmp_path, registry):
    scripted(Meddler())
    plan, path, seen = make_plan(), tmp_path / "a.db", []
    play_run(lambda: start(plan, path), plan, players(plan), lambda now: seen.append(replace(now)))
    found = content(path).values()
    made = [row for _, _, decisions, _ in found for row in decisions]
    assert [now.decisions for now in seen] == sorted(now.decisions for now in seen)
    assert seen[-1] == Counters(len(found), len(found), len(made), sum(d.broke for d in made))


def test_all_randomness_comes_from_the_seed(tmp_path, registry):
    one = whole(tmp_path / "a.db", Meddler())
    two = whole(tmp_path / "b.db", Meddler(), max_tables=1)
    assert one == two
    assert one != whole(tmp_path / "c.db", Meddler(), seed=6)


def test_a_recorded_seed_is_that_of_the_environment(tmp_path, registry):
    path = tmp_path / "a.db"
    whole(path, Meddler(), games=CONFIG["games"][3:], seats=["random", "truthful", "random"])
    env = llm_games.make("sealed_bid_auction-v0", actions="rules", **CONFIG["games"][3]["params"])
    with Records.open_readonly(path) as records:
        for episode in records.episodes():
            env.reset(seed=episode.seed)
            moves = {(made.step, made.seat): made.action for made in records.decisions(episode.id)}
            for step in records.steps(episode.id):
                names = list(env.agents)
                actions = {name: moves[step.step, seat] for seat, name in enumerate(names)}
                rewards = env.step(actions)[1]
                assert [rewards[name] for name in names] == step.rewards
            assert env.agents == []


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    known = dict(PLAYERS)
    client = Meddler()
    found = whole(tmp_path_factory.mktemp("whole") / "a.db", client)
    PLAYERS.clear()
    PLAYERS.update(known)
    return found, client.calls


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path, uninterrupted, share):
    path = tmp_path / "a.db"
    write_toml(path)
    expected, calls = uninterrupted
    kill_at = max(1, round(share * calls))
    with process("run", path, kill_at) as killed:
        killed.communicate()
        assert killed.returncode == -signal.SIGKILL
    with Records.open_readonly(path) as records:
        known = {
            (row.seed, row.step, row.seat)
            for episode in records.episodes()
            for row in records.attempts(episode.id)
            if not row.error
        }
    log = Path(f"{path}.log")
    log.unlink(missing_ok=True)
    with process("resume", path) as resumed:
        output = resumed.communicate()
        assert resumed.returncode == 0, output
    assert content(path) == expected
    asked = {tuple(json.loads(line)) for line in log.read_text().splitlines()}
    assert not asked & known  # nothing that was recorded was asked again


@pytest.mark.slow
def test_a_run_killed_again_and_again(tmp_path, uninterrupted):
    path = tmp_path / "a.db"
    write_toml(path, max_tables=2)  # so few calls wait that each part gets some done
    task, codes = "run", []
    while codes[-1:] != [0]:
        with process(task, path, kill_at=15) as part:
            output = part.communicate()
            codes.append(part.returncode)
            assert codes[-1] in (0, -signal.SIGKILL), output
        task = "resume"
    assert len(codes) > 2
    assert content(path) == uninterrupted[0]


@pytest.mark.slow
def test_ctrl_c_stops_cleanly(tmp_path, uninterrupted):
    path = tmp_path / "a.db"
    write_toml(path)
    with process("run", path, delay=0.1) as part:
        while part.poll() is None and not Path(f"{path}.log").exists():
            time.sleep(0.05)
        time.sleep(0.3)
        with pytest.raises(RunLocked):
            Store.open(path)
        part.send_signal(signal.SIGINT)
        out, err = part.communicate()
        assert part.returncode == 130
        assert f"go on with: llm-games resume {path}" in err
        assert (out, "Traceback" in err) == ("", False)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.db", "a.db.log", "a.db.toml"]
    with process("resume", path) as part:
        part.communicate()
        assert part.returncode == 0
    assert content(path) == uninterrupted[0]


def fails_after(calls):
    count = 0

    def script(request):
        nonlocal count
        count += 1
        if count > calls:
            raise ClientError("the server is gone")
        return answer(request)

    return script


def test_a_server_that_dies_stops_the_run_and_can_come_back(tmp_path, registry, uninterrupted):
    path = tmp_path / "a.db"
    with pytest.raises(RunStopped, match="the server is gone"):
        whole(path, ScriptedClient(fails_after(20)), max_tables=1)
    with Records.open_readonly(path) as records:
        states = [episode.status for episode in records.episodes()]
    assert {"running", "pending"} <= set(states)
    scripted(Meddler())
    plan = make_plan()
    play_run(lambda: Store.open(path), plan, players(plan))
    assert content(path) == uninterrupted[0]  # nothing is left of what was played without a model


@pytest.mark.parametrize("error", [ClientError("gone"), ZeroDivisionError("mine")])
def test_a_run_that_stops_keeps_what_came_and_asks_nothing_more(tmp_path, registry, error):
    path, came, calls = tmp_path / "a.db", [], 0

    async def script(request):
        nonlocal calls
        calls += request.question is not None
        if request.question is None:
            return "hello"
        if calls == 30:
            raise error
        await asyncio.sleep(0.002 * (request.seed % 5))
        came.append((request.seed, request.who.step, request.who.seat))
        return answer(request)

    with pytest.raises(RunStopped if isinstance(error, ClientError) else ZeroDivisionError) as stop:
        whole(path, ScriptedClient(script))
    if isinstance(error, ClientError):
        assert str(stop.value) == (
            f"gone\nall that happened is in {path}; go on with: llm-games resume {path}"
        )
    with Records.open_readonly(path) as records:
        rows = [row for episode in records.episodes() for row in records.attempts(episode.id)]
    assert Counter((row.seed, row.step, row.seat) for row in rows) == Counter(came)
    assert calls < 40


def test_all_that_a_call_depends_on_is_on_the_disk(tmp_path, registry):
    path, wrong, seen = tmp_path / "a.db", [], Counter()

    class Looks(Meddler):
        async def complete(self, request):
            if request.question is not None:
                step, seat = request.who[2:4]
                with Records.open_readonly(path) as records:
                    tries = [a.number for a in records.attempts(1, step) if a.seat == seat]
                    if len(records.steps(1)) != step or tries != list(range(seen[step, seat])):
                        wrong.append((step, seat, tries))
                seen[step, seat] += 1
            return await super().complete(request)

    whole(path, Looks(), games=CONFIG["games"][:1], episodes=1)
    assert wrong == []
    assert max(seen.values()) > 1


def test_a_player_that_changed_is_noticed(tmp_path, registry):
    path = tmp_path / "a.db"
    with pytest.raises(RunStopped):
        whole(path, ScriptedClient(fails_after(30)))
    scripted(Meddler())
    plan = make_plan(player={"prompts": "v2"})
    with pytest.raises(ReplayFailed, match="its prompt or seed differs from the record"):
        play_run(lambda: Store.open(path), plan, players(plan))
    goods, *rest = CONFIG["games"]
    goods = goods | {"seats": ["scripted", "fixed:0", "scripted"]}
    plan = make_plan(games=[goods, *rest])
    with pytest.raises(ReplayFailed, match="seat 1, what was decided differs from the record"):
        play_run(lambda: Store.open(path), plan, players(plan))


def test_a_run_can_be_prolonged_and_says_so(tmp_path):
    games = [
        {
            "game": "battle_royale",
            "params": {"players": 3},
            "seats": ["random", "rational", "random"],
        },
        {"game": "public_goods", "params": {"players": 2, "rounds": 1}, "seats": ["random"]},
    ]
    short, whole = ({"games": games, "episodes": many, "common_chance": True} for many in (2, 5))
    path = llm_games.run(short, tmp_path / "short.db").path
    llm_games.run(whole, tmp_path / "whole.db")
    llm_games.resume(path, episodes=5)
    runs = []
    for name in ("short", "whole"):
        with Records.open_readonly(tmp_path / f"{name}.db") as records:
            assert replay(records).differences == ()
            assert [game.prolonged for game in planned(records).games] == [
                [2] * (name == "short")
            ] * 2
            episodes = [e for e in records.episodes() if e.status == "done"]
            runs.append({(e.game.label, e.number): (e.seed, e.seating) for e in episodes})
    assert runs[0] == runs[1]
    assert len(runs[0]) == 10
    for many, says in ((5, "has 5 episodes of each game already"), (0, "episodes = 0")):
        with pytest.raises(ConfigError, match=says):
            llm_games.resume(path, episodes=many)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE run SET config = json_set(config, '$.seed', 77)")
    with pytest.raises(ConfigError, match="its seeds do not come from the run's seed 77"):
        llm_games.resume(path, episodes=6)


def test_void_episodes_say_why(tmp_path, registry):
    games = [
        {"game": "battle_royale", "params": {"players": 3, "max_shots": "none"}, "max_steps": 2},
        {"game": "public_goods", "params": {"players": 3, "failed_reply": "void_run"}},
    ]
    client = ScriptedClient(lambda request: "no" if request.question else "hello")
    found = whole(tmp_path / "a.db", client, games=games, episodes=1, seats=["scripted"])
    reasons = {label: reason for (label, _), ((_, _, reason), *_) in found.items()}
    assert reasons == {
        "battle_royale": "no end after 2 steps (max_steps)",
        "public_goods": "step 0: no legal answer from seat 0, 1, 2 (failed_reply = void_run)",
    }
    assert {status for (_, status, _), *_ in found.values()} == {"void"}


if __name__ == "__main__":
    main(*sys.argv[1:])


def test_a_signal_that_comes_twice_at_once_stops_once():
    """GNU timeout sends its own to the process and to the process's group."""
    calls, done = Flights(), []

    async def call():
        await asyncio.sleep(0.6)
        done.append(True)

    async def work():
        for wait in (0.1, 0.13):
            timer = threading.Timer(wait, os.kill, (os.getpid(), signal.SIGINT))
            timer.daemon = True
            timer.start()
        await drained(flown(call(), 60.0), calls)

    _to_its_end(work(), calls)
    assert (done, calls.ended, calls.stops) == ([True], True, 1)
