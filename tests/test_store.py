"""A run's file: what is written is read back, and every way it can be unusable says so."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import each_row

from llm_games.benchmarks.record import connection, lock, schema, store
from llm_games.benchmarks.record.schema import AttemptRow, DecisionRow, StepRow
from llm_games.benchmarks.record.store import Records, Store
from llm_games.questions import MISSING
from llm_games.wrappers.clients.chat import Chat
from llm_games.wrappers.policy import Attempt

GAMES = [("goods", "public_goods", {"ratio": "3/2"}, ["tiny", "random"])]
HELLO = [{"role": "system", "content": "rules"}, {"role": "user", "content": "hello"}]


def create(path):
    return Store.create(path, "A run", {"seed": 1}, GAMES, [[11, 12]])


def attempt(step=0, number=0, prompt=2, **changes):
    values = {
        "text": '{"a": 1}', "finish": "stop", "error": "", "outcome": None, "why": "",
        "tokens_in": 5, "tokens_out": 3, "latency": 0.25, "seed": 9, "model": "m",
    } | changes  # fmt: skip
    return AttemptRow(step, 0, number, prompt, **values)


def test_what_is_written_is_read_back_while_the_run_goes_on(tmp_path):
    path = tmp_path / "a.db"
    step = StepRow(0, [0, 1], {"actions": [3, 0], "pot": 3}, [0.5, 3.5], [1])
    made = [
        DecisionRow(0, 0, 3, "valid", False, 0.5),
        DecisionRow(0, 1, None, "failed", True, 3.5),
    ]

    async def play(run):
        run.begin(1)
        run.add(attempt(prompt=run.prompt(HELLO)), 1)
        await run.durable()
        run.judge(1, (0, 0), 0, Attempt("", messages=Chat(), outcome="unparsable", why="no JSON"))
        for row in (step, *made):
            run.add(row, 1)
        run.end(2, "no end")
        await run.durable()

    with create(path) as run:
        asyncio.run(play(run))
        with Records.open_readonly(path) as records:
            first, second = records.episodes()
            assert (records.title, records.config) == ("A run", {"seed": 1})
            assert first.game == records.games()[0] == schema.GameRow(1, *GAMES[0])
            assert (first.status, first.seed, first.number) == ("running", 11, 0)
            assert (second.status, second.reason, second.seed) == ("void", "no end", 12)
            assert first.started < second.ended
            assert records.steps(1) == [step]
            assert records.decisions(1) == made
            judged = attempt(outcome="unparsable", why="no JSON")
            assert records.attempts(1) == records.attempts(1, 0) == [judged]
            assert records.attempts(1, 1) == records.attempts(2) == []
            assert records.messages(2) == HELLO
            usage = {"calls": 1, "tokens_in": 5, "tokens_out": 3, "outcomes": {"unparsable": 1}}
            assert records.usage() == usage


def test_a_closed_run_is_one_file(tmp_path):
    create(tmp_path / "a.db").close()
    with Records.open_readonly(tmp_path / "a.db") as records:
        assert len(records.episodes()) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["a.db"]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(st.tuples(st.sampled_from(["user", "system"]), st.text()), max_size=4)))
def test_messages_are_pooled_and_come_back(tmp_path_factory, prompts):
    path = tmp_path_factory.mktemp("pool") / "a.db"
    chats = [[{"role": role, "content": text} for role, text in chat] for chat in prompts]
    with create(path) as run:
        ids = [run.prompt(chat) for chat in chats]
    with Store.open(path) as run:
        assert [run.messages(known) for known in ids] == chats
        assert [run.prompt(chat) for chat in chats] == ids
        assert len(list(run.pool())) == len({m for chat in prompts for m in chat})
        starts = {tuple(chat[:end]) for chat in prompts for end in range(1, len(chat) + 1)}
        assert run._rows("SELECT count(*) FROM prompts") == [(len(starts),)]


@each_row(("action", "plain"), [(3, 3), (MISSING, None), ((2, 0, 98), [2, 0, 98]), (-1, -1)])
def test_actions_as_json(action, plain):
    assert store.plain_action(action) == plain


def foreign(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()


def newer(path):
    create(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()


def damaged(path):
    create(path).close()
    path.write_bytes(path.read_bytes()[:5000])


def undescribed(path):
    create(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("DELETE FROM run")


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda path: None, connection.NotARun, "there is no file"),
        (lambda path: path.write_text("words"), connection.NotARun, "not a SQLite database"),
        (Path.touch, connection.NotARun, "not a SQLite database"),
        (Path.mkdir, connection.NotARun, "not a file"),
        (foreign, connection.NotARun, "not a run of llm-games"),
        (newer, connection.NewerSchema, "newer llm-games (schema 99"),
        (damaged, connection.NotARun, "damaged"),
        (undescribed, connection.NotARun, "not one description of the run"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, make, error, says):
    path = tmp_path / "a.db"
    make(path)
    for opener in (Records.open_readonly, Store.open):
        with pytest.raises(error, match=says.replace("(", r"\(")) as caught:
            opener(path)
        assert str(path) in str(caught.value)


def test_a_run_is_never_overwritten(tmp_path):
    path = tmp_path / "a.db"
    create(path).close()
    before = path.read_bytes()
    with pytest.raises(store.RunExists, match="llm-games resume"):
        create(path)
    assert path.read_bytes() == before
    with pytest.raises(store.RunExists):
        create(tmp_path)
    with pytest.raises(store.Unwritable, match="there is no folder"):
        create(tmp_path / "nowhere" / "a.db")
    with pytest.raises(store.Unwritable, match="recorded in a file, which :memory: is not"):
        create(":memory:")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder nobody can write")
def test_a_folder_that_cannot_be_written():
    with pytest.raises(store.Unwritable, match="make the folder writable"):
        create("/proc/self/a.db")


def limit_pages(run, more):
    """Let the file grow by so many pages at most, as on a disk that is nearly full."""
    database = run._writer._database
    pages = database.execute("PRAGMA page_count").fetchone()[0] + more
    database.execute(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_loses_nothing(tmp_path):
    path = tmp_path / "a.db"
    run = create(path)
    run.add(attempt(), 1)
    run.flush()
    limit_pages(run, 0)
    run.add(attempt(step=1, text="x" * 100_000), 1)
    with pytest.raises(store.Unwritable, match=r"make room; all .* is safe, go on .* resume"):
        run.flush()
    with pytest.raises(store.Unwritable):
        run.close()
    with Records.open_readonly(path) as records:
        assert records.attempts(1) == [attempt()]


def test_what_a_full_disk_refused_is_written_first_when_there_is_room(tmp_path):
    rows = [attempt(step=0, text="x" * 100_000), attempt(step=1)]
    with create(tmp_path / "a.db") as run:
        limit_pages(run, 0)
        run.add(rows[0], 1)
        with pytest.raises(store.Unwritable):
            run.flush()
        run.add(rows[1], 1)
        limit_pages(run, 1000)
        run.flush()
        assert run.attempts(1) == rows


@contextmanager
def no_commit(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_play_goes_on_while_a_commit_waits_for_the_disk(tmp_path):
    path, statements = tmp_path / "a.db", []

    async def play(run):
        known = run.prompt(HELLO)
        await run.durable()
        run._writer._database.set_trace_callback(statements.append)
        with no_commit(path):
            waiting = []
            for step in range(4):
                run.add(attempt(step=step), 1)
                waiting.append(asyncio.create_task(run.durable()))
                await asyncio.sleep(0.02)
            assert not any(task.done() for task in waiting)
            assert run.attempts(1) == []
            run._messages._all = run._prompts._all = False
            run._messages.cached.clear()
            run._prompts.cached.clear()
            assert run.prompt(HELLO) == known
        await asyncio.gather(*waiting)
        assert [row.step for row in run.attempts(1)] == [0, 1, 2, 3]

    with create(path) as run:
        asyncio.run(play(run))
        assert statements.count("COMMIT") == 2  # the first row's, and one for all others


def test_an_error_reaches_all_who_wait(tmp_path):
    path = tmp_path / "a.db"

    async def play(run):
        with no_commit(path):
            tasks = []
            for step in range(3):
                run.add(attempt(step=step), 1)
                tasks.append(asyncio.create_task(run.durable()))
                await asyncio.sleep(0.02)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("UPDATE lock SET token = 'of another process'")
        return await asyncio.gather(*tasks, run.durable(), return_exceptions=True)

    run = create(path)
    errors = asyncio.run(play(run))
    assert [type(error) for error in errors[1:]] == [store.RunLocked] * 3
    with pytest.raises(store.RunLocked):
        run.close()


def test_nothing_is_lost_when_all_who_wait_are_interrupted(tmp_path):
    path = tmp_path / "a.db"

    async def play(run):
        with no_commit(path):
            tasks = []
            for step in range(4):
                run.add(attempt(step=step), 1)
                tasks.append(asyncio.create_task(run.durable()))
                await asyncio.sleep(0.02 * (step < 2))
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        run.add(attempt(step=4), 1)

    with create(path) as run:
        asyncio.run(play(run))
    with Records.open_readonly(path) as records:
        assert [row.step for row in records.attempts(1)] == [0, 1, 2, 3, 4]
    assert [file.name for file in tmp_path.iterdir()] == ["a.db"]


HOLD = """
import sys, time
from llm_games.benchmarks.record.store import Store
run = Store.create(sys.argv[1], "t", {}, [("g", "public_goods", {}, ["random"])], [[1]])
run.begin(1)
run.flush()
print("ready", flush=True)
time.sleep(60)
"""


def test_a_running_run_is_locked_until_its_process_is_gone(tmp_path):
    path = tmp_path / "a.db"
    command = [sys.executable, "-c", HOLD, str(path)]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    with holder:
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(store.RunLocked, match=f"process {holder.pid}"):
            Store.open(path)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with Store.open(path) as run:
        assert run.episodes()[0].status == "running"
        with pytest.raises(store.RunLocked):  # a second time by this process
            Store.open(path)


@pytest.mark.parametrize(("silent", "free"), [(1.0, False), (lock.PATIENCE + 1, True)])
def test_a_lock_of_another_machine_lasts_as_long_as_its_signs_of_life(tmp_path, silent, free):
    path = tmp_path / "a.db"
    run = create(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        then = time.time() - silent
        database.execute("UPDATE lock SET host = 'elsewhere', beat = ?", (then,))
    if not free:
        with pytest.raises(store.RunLocked, match="elsewhere"):
            Store.open(path)
        return
    other = Store.open(path)
    run.add(attempt(), 1)
    with pytest.raises(store.RunLocked, match=r"taken .* over"):
        run.flush()
    other.close()


def test_signs_of_life_are_given(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "BEAT", 0.0)
    with create(tmp_path / "a.db") as run:
        before = run._rows("SELECT beat FROM lock")[0][0]
        time.sleep(0.01)
        run.flush()
        assert run._rows("SELECT beat FROM lock")[0][0] > before
