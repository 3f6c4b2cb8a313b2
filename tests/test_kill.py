"""A real run against a real server, stopped at any moment, ends as one that never was stopped."""

import asyncio
import hashlib
import json
import os
import random
import resource
import select
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from test_run import content

from llm_games.benchmarks.record.store import Records, Store
from llm_games.benchmarks.run.replay import replay

ROOT = str(Path(__file__).parents[1])
EXPERIMENT = """
episodes = 3
seed = 3
seats = ["openai:m", "random", "openai:m"]
[models.m]
base_url = "http://127.0.0.1:{port}/v1"
max_wait = 0
[[games]]
game = "public_goods"
params = {{players = 3, rounds = 5}}
[[games]]
game = "battle_royale"
params = {{players = 3, max_shots = 6}}
"""


class Server:
    """Answers chats slowly, from the messages and the seed alone; counts what it has answered."""

    def __init__(self, delay=0.025):
        self.delay, self.answered = delay, Counter()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        start = asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.server = asyncio.run_coroutine_threadsafe(start, self.loop).result()
        self.port = self.server.sockets[0].getsockname()[1]

    def close(self):
        async def stop():
            self.server.close()
            mine = asyncio.current_task()
            for task in asyncio.all_tasks() - {mine}:
                task.cancel()
            await asyncio.sleep(0.05)

        asyncio.run_coroutine_threadsafe(stop(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    async def _talk(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                )
                body = json.loads(await reader.readexactly(size))
                await asyncio.sleep(self.delay)
                reply = json.dumps(self._answer(body)).encode()
                head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                head += f"content-length: {len(reply)}\r\n\r\n"
                writer.write(head.encode() + reply)
                await writer.drain()
                if body["messages"][-1]["content"] != "Say hello.":
                    self.answered[key(body["messages"], body["seed"])] += 1
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _answer(self, body):
        luck = int(hashlib.sha256(json.dumps([body["messages"], body.get("seed")]).encode())
                   .hexdigest(), 16)  # fmt: skip
        asked = body["messages"][-1]["content"]
        text = json.dumps({"tokens_contributed": luck % 23, "target": None, "action": "miss"})
        if "tokens_contributed" in asked:
            text = json.dumps({"tokens_contributed": luck % 23})
        return {
            "id": "1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        }  # fmt: skip


def key(messages, seed):
    return json.dumps([[[m["role"], m["content"]] for m in messages], seed])


@pytest.fixture(scope="module")
def server():
    running = Server()
    yield running
    running.close()


def llm_games(*arguments, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "llm_games.benchmarks.show.cli", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": ROOT},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


STEM = """
import json, os, sys
import openai
from llm_games.benchmarks.show import cli
from llm_games.benchmarks.run import conduct
print("ready", flush=True)
for line in sys.stdin:
    output, *arguments = json.loads(line)
    if (child := os.fork()) == 0:
        sys.stdin, sys.stderr = open(os.devnull), open(output, "w")
        sys.argv = ["llm-games", *arguments]
        cli.main()
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Stem:
    """A process that has read the package, and forks: what kills a child meets a run.

    `first` is what it does before.
    """

    def __init__(self, first=""):
        self.process = subprocess.Popen(
            [sys.executable, "-c", first + STEM],
            env=os.environ | {"PYTHONPATH": ROOT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self.process.stdout.readline() == b"ready\n"

    def start(self, output, *arguments):
        self.process.stdin.write(json.dumps([*map(str, (output, *arguments))]).encode() + b"\n")
        return int(self.process.stdout.readline())

    def wait(self, seconds=120.0):
        ended, _, _ = select.select([self.process.stdout], [], [], seconds)
        return int(self.process.stdout.readline()) if ended else None

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(10) == 0


@pytest.fixture
def stem():
    process = Stem()
    yield process
    process.close()


@pytest.fixture
def experiment(tmp_path, server):
    path = tmp_path / "a.toml"
    path.write_text(EXPERIMENT.format(port=server.port))
    return path


def recorded(path):
    try:
        with Records.open_readonly(path) as records:
            return Counter(
                key(records.messages(row.prompt), row.seed)
                for episode in records.episodes()
                for row in records.attempts(episode.id)
                if not row.error
            )
    except Exception as error:  # killed before the file was whole
        assert "there is no file" in str(error) or "not a SQLite database" in str(error)  # noqa: PT017
        return Counter()


@pytest.mark.slow
def test_killed_at_twenty_random_moments(tmp_path, server, experiment, stem):
    rng = random.Random(7)
    printed = tmp_path / "printed"
    began = time.monotonic()
    stem.start(printed, "run", experiment, "--db", tmp_path / "whole.db", "-q")
    code = stem.wait()
    assert (code, printed.read_text()) == (0, "")
    span = time.monotonic() - began
    expected, calls = content(tmp_path / "whole.db"), recorded(tmp_path / "whole.db")
    assert server.answered == calls
    assert max(calls.values()) == 1
    kills, again = 0, 0
    while kills < 20:
        path = tmp_path / f"{kills}.db"
        server.answered.clear()
        for _ in range(3):  # kill, kill what resumes it, and so on
            task = ("resume", path) if recorded_file(path) else ("run", experiment, "--db", path)
            before, known = recorded(path), server.answered.copy()
            part = stem.start(printed, *task, "-q")
            if stem.wait(rng.uniform(0.1, 1) * span) is None:
                os.kill(part, signal.SIGINT if kills % 4 == 3 else signal.SIGKILL)
                kills += 1
                assert stem.wait() is not None
            err = printed.read_text()
            # Python itself speaks up when it is interrupted before our first line.
            assert "Traceback" not in err or "in main" not in err, err
            time.sleep(2 * server.delay)
            asked = server.answered - known
            assert not asked & before, "a recorded answer was asked for again"
        task = ("resume", path) if recorded_file(path) else ("run", experiment, "--db", path)
        before, known = recorded(path), server.answered.copy()
        stem.start(printed, *task, "-q")
        assert stem.wait() == 0, printed.read_text()
        assert not (server.answered - known) & before
        assert content(path) == expected
        assert recorded(path) == calls
        again += sum(server.answered.values()) - len(server.answered)
    # An answer on its way when the process dies is the only one that may be asked for twice.
    assert again <= 6 * kills
    with Records.open_readonly(path) as records:
        assert replay(records).differences == ()


def recorded_file(path):
    return path.exists() and path.stat().st_size > 0


TRACED = """
import os, signal, sqlite3, sys
from llm_games.benchmarks.record.store import Store
connect = sqlite3.connect
for number in map(int, sys.argv[2:]):
    if os.fork():
        os.wait()
        continue
    left = [number]
    def traced(*args, **more):
        database = connect(*args, **more)
        def count(statement):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        database.set_trace_callback(count)
        return database
    sqlite3.connect = traced
    path = os.path.join(sys.argv[1], f"{number}.db")
    Store.create(path, "t", {}, [("g", "public_goods", {}, ["random"])], [[1, 2]]).close()
    break
"""


@pytest.mark.slow
def test_killed_while_the_file_is_made(tmp_path):
    """Either there is a whole run, or the same file can be used for a new one."""
    statements = (1, 2, 3, 4, 9, 15, 20, 26, 30, 34)
    command = [sys.executable, "-c", TRACED, str(tmp_path), *map(str, statements)]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": ROOT}, check=True)
    whole = 0
    for statement in statements:
        path = tmp_path / f"{statement}.db"
        if recorded_file(path):
            whole += 1
        else:
            games = [("g", "public_goods", {}, ["random"])]
            Store.create(path, "t", {}, games, [[1, 2]]).close()
        with Records.open_readonly(path) as records:
            assert len(records.episodes()) == 2
    assert 0 < whole < len(statements)


@pytest.mark.slow
def test_a_full_disk_and_then_room(tmp_path, server, experiment):
    path = tmp_path / "a.db"

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (180_000, resource.RLIM_INFINITY))

    with llm_games("run", experiment, "--db", path, "-q", preexec_fn=small) as full:
        out, err = full.communicate()
    assert (full.returncode, out) == (1, ""), err
    assert "go on with: llm-games resume" in err
    assert "Traceback" not in err
    before = recorded(path)
    assert before
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    server.answered.clear()
    with llm_games("resume", path, "-q") as resumed:
        out, err = resumed.communicate()
    assert (resumed.returncode, out) == (0, ""), err
    assert not server.answered & before
    with Records.open_readonly(path) as records:
        assert {episode.status for episode in records.episodes()} == {"done"}
        assert replay(records).differences == ()


@pytest.mark.slow
def test_two_runs_on_one_file_and_a_newer_one(tmp_path, server, experiment):
    path = tmp_path / "a.db"
    with llm_games("run", experiment, "--db", path, "-q") as first:
        while first.poll() is None and not recorded(path):
            time.sleep(0.02)
        first.send_signal(signal.SIGSTOP)
        for task in (("resume", path), ("run", experiment, "--db", path)):
            with llm_games(*task, "-q") as second:
                out, err = second.communicate()
            assert (second.returncode, out) == (2, "")
            says = ("being written by process", "exists already", "another process is using")
            assert any(text in err for text in says)
        first.send_signal(signal.SIGCONT)
        assert first.communicate() == ("", "")
    assert first.returncode == 0
    assert max(recorded(path).values()) == 1
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    for command in ("resume", "replay", "watch"):
        with llm_games(command, path) as refused:
            out, err = refused.communicate()
        assert (refused.returncode, out, "newer llm-games" in err) == (2, "", True)
    assert path.read_bytes() == before


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder nobody can write")
def test_a_folder_that_cannot_be_written(server, experiment):
    with llm_games("run", experiment, "--db", "/proc/self/fdinfo/a.db") as refused:
        out, err = refused.communicate()
    assert (refused.returncode, out) == (2, "")
    assert err.startswith("error: ")
    assert "Traceback" not in err
