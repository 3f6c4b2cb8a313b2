"""Runs by several processes: the same rows, the same money, whoever dies."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from multiprocessing import active_children

import pytest

import llm_games as lg
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.connection import RunLocked
from llm_games.benchmarks.record.progress import run_progress
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.worker_files import folder
from llm_games.benchmarks.run import workers
from llm_games.benchmarks.run.conduct import RunStopped
from llm_games.benchmarks.run.live import look
from llm_games.benchmarks.show.page import build
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
    build([going_on], tmp_path / "report.html", baselines=False)
