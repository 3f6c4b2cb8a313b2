"""Workers' files: whoever recorded what, and in whatever order, a run's file comes out the same."""

import shutil

import pytest

import llm_games as lg
from llm_games.benchmarks.record import worker_files
from llm_games.benchmarks.record.connection import NotARun, RunLocked
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.spending import Spending
from llm_games.benchmarks.record.store import Store
from llm_games.benchmarks.record.worker_files import folder, take_over, take_over_all
from llm_games.wrappers.clients.budget import Usage
from tests.run_rows import written

RAW = {
    "episodes": 3,
    "seats": ["mock"],
    "games": [
        {"game": "public_goods", "params": {"players": 3, "rounds": 2}, "talk": {"turns": 1}},
        {"game": "public_goods", "label": "series", "params": {"players": 2}, "series": True},
    ],
}


def in_order(path):
    with Store.open(path) as store:
        store.put_in_order()
    return written(path)


def test_the_order_of_play_does_not_show(tmp_path):
    one = lg.run({**RAW, "max_tables": 1}, tmp_path / "one.db").path
    many = lg.run(RAW, tmp_path / "many.db").path
    before = written(many)
    rows, others = in_order(one), in_order(many)
    assert before["prompts"] != rows["prompts"]
    del rows["run"], others["run"]  # which name max_tables
    assert rows == others
    assert in_order(many)["prompts"] == others["prompts"]


@pytest.fixture
def run(tmp_path):
    path = lg.run({**RAW, "seats": ["random"], "episodes": 1}, tmp_path / "run.db").path
    folder(path).mkdir()
    return path


def workers_file(run, created):
    """Return a file in which a worker has spent two calls, still open."""
    games = [("public_goods", "public_goods", {}, ["a", "b"])]
    store = Store.create(folder(run) / "1.db", "title", {"run": created}, games, [[]])
    store.spend("model", "seat", Usage(2, 0, 10, 5))
    return store


def calls(run):
    with Store.open(run) as store:
        take_over_all(store)
        return sum(usage.calls for usage in store.spent().values())


def created(run):
    with Store.open(run) as store:
        return store.created


def test_a_workers_file_counts_once(run, tmp_path):
    """Also where the process that takes it over dies before it is deleted."""
    workers_file(run, created(run)).close()
    shutil.copytree(folder(run), tmp_path / "again")
    with Store.open(run) as store:
        take_over(store, folder(run) / "1.db")
    shutil.rmtree(folder(run))
    shutil.copytree(tmp_path / "again", folder(run))
    assert calls(run) == 2
    assert not folder(run).exists()
    assert calls(run) == 2


def test_files_that_do_not_belong_to_a_run_or_are_in_use_are_left_alone(run, monkeypatch):
    monkeypatch.setattr(worker_files, "PATIENCE", 0.1)
    workers_file(run, "another time").close()
    with pytest.raises(NotARun, match=r"1\.db is of another run than .*run\.db: move it away"):
        calls(run)
    (folder(run) / "1.db").unlink()
    with workers_file(run, created(run)), pytest.raises(RunLocked, match="still waits for calls"):
        calls(run)
    assert (folder(run) / "1.db").exists()


def test_a_file_that_was_never_begun_is_dropped(run):
    (folder(run) / "1.db").touch()
    assert calls(run) == 0
    assert not folder(run).exists()


def test_a_run_whose_last_files_are_not_taken_over_is_not_complete(run):
    """And its books show already what its workers spent."""
    with workers_file(run, created(run)), Records.open_readonly(run) as records:
        assert Spending(records).total.calls == 0  # nothing is written yet
    with Records.open_readonly(run) as records:
        assert Spending(records).total.calls == 2
    lg.resume(run)
    assert calls(run) == 2
    with Records.open_readonly(run) as records:
        assert Spending(records).total.calls == 2
