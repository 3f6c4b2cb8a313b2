"""Runs by several processes: the same rows, the same money, whoever dies."""

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from multiprocessing import active_children
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import llm_games as lg
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.connection import NotARun, RunLocked
from llm_games.benchmarks.record.progress import run_progress
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.worker_files import folder
from llm_games.benchmarks.run import workers
from llm_games.benchmarks.run.conduct import RunStopped
from llm_games.benchmarks.run.live import look
from llm_games.benchmarks.run.plan import plan_of
from llm_games.benchmarks.show.page import build
from llm_games.wrappers.clients.budget import Ledger
from tests.run_rows import written
from tests.test_worker_files import RAW, in_order

MODEL = {"client": "tests.worker_models:Counted"}
RULES = {"game": "public_goods", "label": "rules", "seats": ["random"], "episodes": 4}
ALL = {**RAW, "seats": [MODEL], "games": [*RAW["games"], RULES], "max_tables": 8}


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """The number of calls that the model has seen."""
    monkeypatch.setenv("CALLS_FILE", str(tmp_path / "calls"))
    monkeypatch.setenv("CALL_SECONDS", "0")
    return lambda: len((tmp_path / "calls").read_text().splitlines())


@pytest.fixture
def alone(tmp_path, calls):
    """The rows of the run by one process, and the calls of its model."""
    path = lg.run(ALL, tmp_path / "alone.db").path
    return in_order(path), calls()


def spent(path):
    with Records.open_readonly(path) as records:
        return sum(usage.calls for usage in records.spent().values())


@pytest.mark.parametrize("count", [1, 2])
def test_rows_are_those_of_one_process(count, alone, calls, tmp_path):
    rows, first = alone
    path = lg.run(ALL, tmp_path / "many.db", workers=count).path
    assert written(path) == rows
    assert calls() == 2 * first
    assert not folder(path).exists()


def without_spending(rows):
    """Calls under way at a death are made, and booked, twice; and lengths seen so far are lost."""
    return {name: rows[name] for name in rows if name not in ("spent", "flights", "lengths")}


def test_a_killed_worker_is_replaced(alone, calls, tmp_path, monkeypatch):
    rows, first = alone
    monkeypatch.setenv("CALL_SECONDS", "0.02")
    path = tmp_path / "many.db"
    run = threading.Thread(target=lg.run, args=(ALL, path), kwargs={"workers": 2})
    run.start()
    for kills in (1, 2):
        while calls() < first * (1 + kills / 3):
            time.sleep(0.005)
        os.kill(active_children()[0].pid, signal.SIGKILL)
    run.join()
    assert without_spending(written(path)) == without_spending(rows)
    assert calls() - first == spent(path)
    assert 0 <= spent(path) - first <= 2 * 24  # at most, what was under way: 8 tables of 3 seats


@pytest.mark.long
def test_all_workers_are_replaced_at_once(calls, tmp_path, monkeypatch):
    """As where the machine has no memory left, or a node of a cluster goes."""
    raw = {**ALL, "episodes": workers.DEATHS}
    rows, first = in_order(lg.run(raw, tmp_path / "alone.db").path), calls()
    monkeypatch.setenv("CALL_SECONDS", "0.1")
    path = tmp_path / "many.db"
    run = threading.Thread(target=lg.run, args=(raw, path), kwargs={"workers": workers.DEATHS})
    run.start()
    while calls() < first * 1.2:
        time.sleep(0.005)
    there = active_children()
    assert len(there) == workers.DEATHS
    for worker in there:
        worker.kill()
    run.join()
    assert without_spending(written(path)) == without_spending(rows)


@pytest.mark.long
def test_a_frozen_worker_is_replaced(alone, calls, tmp_path, monkeypatch):
    rows, first = alone
    monkeypatch.setenv("CALL_SECONDS", "0.05")
    monkeypatch.setattr(workers, "LEASE", 3.0)
    path = tmp_path / "many.db"
    run = threading.Thread(target=lg.run, args=(ALL, path), kwargs={"workers": 2})
    run.start()
    while calls() < first * 1.3:
        time.sleep(0.005)
    os.kill(active_children()[0].pid, signal.SIGSTOP)
    run.join(60)
    assert not run.is_alive()
    assert without_spending(written(path)) == without_spending(rows)
    assert calls() - first <= spent(path)  # some may have been entered, and not sent


def test_a_halted_coordinator_blames_no_worker(monkeypatch):
    """Such as by Ctrl-Z, and `fg` a while later: messages of workers wait to be read."""
    monkeypatch.setattr(workers, "BEAT", 0.04)
    monkeypatch.setattr(workers, "LEASE", 0.2)
    killed = []
    worker = SimpleNamespace(kill=lambda: killed.append(True))

    async def events():
        run = SimpleNamespace(store=None, books=SimpleNamespace(ledger=Ledger()))
        coordinator = workers.Coordinator(run, workers.Crew(1, lambda *_: worker), None)
        coordinator.awake = clock = asyncio.get_running_loop().time()
        coordinator.hands["0"] = workers._Hand("0", Path(), clock, worker)
        time.sleep(0.4)
        for _ in range(5):
            await coordinator._event()
        assert not killed
        await asyncio.wait_for(silent(coordinator), 5)

    async def silent(coordinator):
        while not killed:
            await coordinator._event()

    asyncio.run(events())


PLAY = """
import sys, llm_games as lg
from tests.test_workers import ALL
if __name__ == "__main__":
    lg.run(ALL, sys.argv[1], workers=2)
"""


def test_a_killed_coordinator_loses_nothing(alone, calls, tmp_path, monkeypatch):
    rows, first = alone
    monkeypatch.setenv("CALL_SECONDS", "0.02")
    path = tmp_path / "many.db"
    with subprocess.Popen([sys.executable, "-c", PLAY, path]) as play:
        while calls() < first * 1.4:
            time.sleep(0.005)
        play.kill()
    assert folder(path).exists()
    lg.resume(path, workers=3)
    assert without_spending(written(path)) == without_spending(rows)
    assert calls() - first == spent(path)
    assert not folder(path).exists()


def test_one_process_goes_on_where_workers_were(alone, calls, tmp_path):
    rows, first = alone
    path = tmp_path / "many.db"
    with pytest.raises(RunStopped, match="calls = 150, has 150 spent"):
        lg.run(ALL, path, workers=2, budget_calls=150)
    assert calls() - first == spent(path) == 150
    lg.resume(path, budget_calls=10_000)
    assert calls() - first == spent(path)
    mine = in_order(path)
    assert {**mine, "run": 0} == {**rows, "run": 0}  # its budget is in the configuration


def test_workers_go_on_with_a_branch(calls, tmp_path):
    raw = {"seats": [MODEL], "games": [{"game": "public_goods", "params": {"players": 2}}]}
    origin = lg.run(raw, tmp_path / "origin.db").path
    place, path = "public_goods/0/2", tmp_path / "branch.db"
    again = {"settings": {0: {"prompts": "v2"}}, "times": 4}
    alone = lg.branch(origin, place, tmp_path / "alone.db", **again).path
    with pytest.raises(RunStopped):
        lg.branch(origin, place, path, budget_calls=9, **again)
    lg.resume(path, workers=2, budget_calls=10_000)
    assert {**in_order(path), "run": 0} == {**in_order(alone), "run": 0}


FULL = """
import resource, sys, llm_games as lg
from tests.test_workers import ALL
if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
    try:
        lg.run(ALL, sys.argv[1], workers=2)
    except lg.errors.LLMGamesError as error:
        print(type(error).__name__, error, *error.__notes__)
"""


def test_a_folder_that_is_full(alone, calls, tmp_path):
    """Limits of files stand for it: what was recorded before is there, and the run goes on."""
    rows, first = alone
    path = tmp_path / "many.db"
    command = [sys.executable, "-c", FULL, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Unwritable")
    assert f"with: llm-games resume {path}" in done.stdout
    lg.resume(path, workers=2)
    assert without_spending(written(path)) == without_spending(rows)
    assert calls() - first <= spent(path) <= first + 24


def test_what_workers_cannot_play(tmp_path):
    path = tmp_path / "run.db"
    with pytest.raises(ConfigError, match="at least 1: got 0"):
        lg.run(ALL, path, workers=0)
    with pytest.raises(ConfigError, match="cannot be divided by 2 workers"):
        lg.run(ALL, path, workers=2, max_in_flight=1)
    with pytest.raises(ConfigError, match="put mine into a module"):
        lg.run(
            {**ALL, "seats": [{"player": lambda observation: 1, "name": "mine"}]}, path, workers=2
        )
    assert not path.exists()
    lg.run({**ALL, "seats": ["random"], "episodes": 1}, path)
    with pytest.raises(ConfigError, match="at least 1: got 0"):
        lg.resume(path, workers=0)  # though nothing is left to play


def test_a_script_that_workers_would_play_again(calls, tmp_path):
    """Each imports it: what it says is to be seen, and no other run is begun."""
    script = tmp_path / "script.py"
    script.write_text(f"import llm_games as lg\nlg.run({ALL}, workers=2)\n")
    command = [sys.executable, str(script)]
    path = os.pathsep.join(sys.path)
    env = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert 'a script has workers below a line: if __name__ == "__main__":' in done.stderr
    assert "5 workers died one after another" in done.stderr
    assert len(list(tmp_path.glob("*.db"))) == 1


def test_a_cluster_that_is_not_there(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer():
            with server.accept()[0] as client:
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer).start()
        for address, fault in (
            (f"127.0.0.1:{port}", "what answers is none"),
            ("127.0.0.1:1", "Connection refused"),
            ("ray://host:10001", "HOST:PORT"),
        ):
            begun = time.monotonic()
            with pytest.raises(ConfigError, match=fault):
                lg.run(ALL, tmp_path / "run.db", workers=2, ray=address)
            assert time.monotonic() - begun < 5
    with pytest.raises(ConfigError, match="say how many workers"):
        lg.run(ALL, tmp_path / "run.db", ray="127.0.0.1:6379")
    assert not (tmp_path / "run.db").exists()


def test_a_run_that_is_stopped_waits_for_its_calls(calls, tmp_path, monkeypatch):
    """Of a signal to the whole group, workers hear from their coordinator alone."""
    monkeypatch.setenv("CALL_SECONDS", "0.2")
    path = tmp_path / "many.db"
    with subprocess.Popen([sys.executable, "-c", PLAY, path], start_new_session=True) as play:
        while not (tmp_path / "calls").exists() or calls() < 30:
            time.sleep(0.01)
        os.killpg(play.pid, signal.SIGTERM)
    with Records.open_readonly(path) as records:
        usage = sum(u.calls - u.unknown for u in records.spent().values())
        attempts = records.usage()["calls"]
    assert calls() == spent(path) == usage == attempts
    assert not folder(path).exists() or not list(folder(path).iterdir())


def test_a_worker_that_is_stopped_before_it_plays(tmp_path, recwarn):
    """As the last of several in a run that soon ends: it says nothing."""
    plan, said = plan_of(RAW), []
    job = workers.Job(plan, False, 1, tmp_path / "worker.db", "title", "created", [], {}, None)
    worker = workers.Worker(job, said.append)
    worker.calls.stop()
    asyncio.run(worker.work())
    gc.collect()
    assert not said
    assert not recwarn.list


def test_an_error_in_a_worker_says_where_it_is(calls, tmp_path, monkeypatch):
    monkeypatch.setenv("CALL_SECONDS", "0")
    raw = {**ALL, "seats": [{"client": "tests.worker_models:Faulty"}]}
    with pytest.raises(ZeroDivisionError) as raised:
        lg.run(raw, tmp_path / "many.db", workers=2)
    assert "worker_models.py" in "".join(raised.value.__notes__)


@pytest.fixture
def going_on(calls, tmp_path, monkeypatch):
    """The file of a run that two workers have begun to play, none of it to its end."""
    monkeypatch.setenv("CALL_SECONDS", "0.2")
    monkeypatch.setattr(workers, "LOOK", 0.1)
    path, long = tmp_path / "many.db", [{"game": "public_goods", "params": {"players": 2}}]
    raw = {**ALL, "games": long, "episodes": 2}
    run = threading.Thread(target=lg.run, args=(raw, path), kwargs={"workers": 2})
    run.start()
    while not folder(path).exists() or not look(path).games[0].decisions:
        time.sleep(0.05)
    yield path
    run.join()
    assert run_progress_of(path).complete


def run_progress_of(path):
    with Records.open_readonly(path) as records:
        return run_progress(records)


def test_what_goes_on_is_seen(going_on, tmp_path):
    """By `watch`, a report and the pages that show a conversation."""
    [game] = look(going_on).games
    assert game.statuses["running"] == 2
    assert look(going_on).state == "live"
    with Records.open_readonly(going_on) as records:
        row = next(row for row in records.episodes() if row.status == "running")
        chats, attempts = records.chats(row.id), records.attempts(row.id)
        assert all(chats[attempt.prompt] for attempt in attempts)
        assert records.messages(attempts[0].prompt)
    with pytest.raises(RunLocked, match="is being written by process"):
        lg.resume(going_on, workers=2)
    for part in folder(going_on).glob("*.db"):
        with pytest.raises(NotARun, match=r"what a worker, .* has left of a run: name the run's"):
            lg.resume(part)
    build([going_on], tmp_path / "report.html", baselines=False)


def large(folder, episodes):
    """A run with talk, planning, series, a cache and all limits: 30 answers and more an episode."""
    (folder / "cache").mkdir(parents=True)
    planner = MODEL | {"strategy": "adaptive", "learning": True, "temperature": 0}
    goods = {"game": "public_goods", "params": {"players": 3, "rounds": 5}}
    series = {"series": True, "episodes": min(episodes, 20)}
    limits = "calls", "tokens", "calls_per_seat", "tokens_per_seat", "money", "money_per_seat"
    return {
        "title": "large",
        "episodes": episodes,
        "cache": str(folder / "cache" / "replies.db"),
        "budget": dict.fromkeys(limits, 10**9),
        "prices": {"counted": {"input": 1.0, "output": 2.0}},
        "seats": [MODEL],
        "games": [
            goods | {"label": "talk", "talk": {"turns": 1}},
            goods | series | {"label": "series"},
            goods | series | {"label": "planning", "seats": [planner]},
            goods | {"label": "rules", "seats": ["random"]},
        ],
    }


def without_cache(rows):
    """Each run has a file of its own for replies."""
    return {**rows, "run": [str(row).replace(row[2], "") for row in rows["run"]]}


@pytest.mark.nightly
def test_all_tables_are_those_of_one_process(night, calls, tmp_path, monkeypatch):
    """32,000 answers at night."""
    monkeypatch.setenv("CALLS_FILE", os.devnull)
    episodes = night(10, 1025)
    alone = lg.run(large(tmp_path / "0", episodes), tmp_path / "0.db").path
    rows = without_cache(in_order(alone))
    for count in (1, 2, 3):
        path = tmp_path / f"{count}.db"
        lg.run(large(tmp_path / str(count), episodes), path, workers=count)
        assert without_cache(written(path)) == rows


@pytest.mark.nightly
def test_whoever_is_killed_whenever(night, alone, calls, tmp_path, monkeypatch):
    """Workers or, each second time, their coordinator: nothing that was answered is asked again."""
    rows, first = alone
    monkeypatch.setenv("CALL_SECONDS", "0.02")
    for moment in range(night(4, 50)):
        path, before = tmp_path / f"{moment}.db", calls()
        share = np.random.default_rng(moment).random()
        with subprocess.Popen([sys.executable, "-c", PLAY, path]) as play:
            while calls() - before < first * share:
                assert play.poll() is None
                time.sleep(0.002)
            if moment % 2:
                play.kill()
            else:
                kill_a_worker(play.pid, moment)
        if moment % 2:
            lg.resume(path, workers=3)
        assert without_spending(written(path)) == without_spending(rows)
        assert 0 <= spent(path) - (calls() - before) <= 2  # entered, and not sent
        assert spent(path) - first <= 24


def kill_a_worker(coordinator, number):
    """None if all have just ended."""
    children = Path(f"/proc/{coordinator}/task/{coordinator}/children").read_text().split()
    there = [pid for pid in children if b"spawn_main" in command_of(pid)]
    if there:
        os.kill(int(there[number % len(there)]), signal.SIGKILL)


def command_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()
