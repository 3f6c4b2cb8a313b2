"""Watching: a run is followed from another process, to its end, and never disturbed."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from test_run import content, process, write_toml

from llm_games.benchmarks.record.schema import DecisionRow, StepRow
from llm_games.benchmarks.record.store import Store
from llm_games.benchmarks.run.live import look, watch

ROOT = str(Path(__file__).parents[1])
GAMES = [("goods", "public_goods", {}, ["random", "tiny"])]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_that_nobody_plays(tmp_path, terminal):
    path = tmp_path / "a.db"
    Store.create(path, "A [run]", {}, GAMES, [[1, 2]]).close()
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    progress = watch(path, console)
    drawn = console.file.getvalue()
    assert (progress.holder, progress.complete) == (None, False)
    assert "2 pending" in drawn
    assert ("A [run]" in drawn) == terminal


def test_a_run_that_goes_on(tmp_path):
    path = tmp_path / "a.db"
    with Store.create(path, "A run", {}, GAMES, [[1]]) as run:
        run.begin(1)
        run.flush()
        progress = look(path)
        assert progress.holder == f"process {os.getpid()} on {os.uname().nodename}"
        assert progress.games[0].statuses["running"] == 1
        assert progress.games[0].last_actions == ""
        run.add(StepRow(0, [0], {"actions": [3]}, [1.0], []), 1)
        run.add(DecisionRow(0, 0, 3, "valid", False, 1.0), 1)
        run.flush()
        assert look(path).games[0].last_actions == "episode 0, step 0: 3"


@pytest.mark.slow
@pytest.mark.parametrize("leave", [False, True], ids=["to the end", "Ctrl-C"])
def test_as_a_process(tmp_path, leave):
    path = tmp_path / "a.db"
    write_toml(path)
    with process("run", path, delay=0.3) as run:
        while run.poll() is None and not Path(f"{path}.log").exists():
            time.sleep(0.05)
        if leave:  # so that it cannot be over first, however busy the machine is
            run.send_signal(signal.SIGSTOP)
        watching = subprocess.Popen(
            [sys.executable, "-m", "llm_games.benchmarks.show.cli", "watch", str(path)],
            env=os.environ | {"PYTHONPATH": ROOT}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        first = watching.stdout.readline()
        assert first.startswith("public_goods: ")
        if leave:
            watching.send_signal(signal.SIGINT)
        out, err = watching.communicate()
        run.send_signal(signal.SIGCONT)
        assert watching.returncode == 0
        assert "Traceback" not in err
        if leave:
            assert "the run goes on" in err
        else:
            assert "public_goods: 2 done" in first + out
        run.communicate()
    assert run.returncode == 0
    assert {status for (_, status, _), *_ in content(path).values()} == {"done"}
