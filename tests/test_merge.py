"""A run that was played in parts is put together; what does not belong together is refused."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import llm_games as lg
from llm_games.benchmarks.record import merge as merging
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.connection import NotARun, RunLocked, StoreError
from llm_games.benchmarks.record.labels import EPISODE, Labelled, read_labels, write_label
from llm_games.benchmarks.record.merge import OtherRun, merge
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.store import Store
from llm_games.benchmarks.record.worker_files import folder
from llm_games.benchmarks.run.conduct import RunStopped
from llm_games.errors import BadParameter
from tests.run_rows import written
from tests.test_worker_files import RAW, in_order

OLD = Path(__file__).parent / "data" / "recorded_0_1_0" / "recorded_0_1_0.db"


@pytest.fixture
def parts(tmp_path):
    return [lg.run(RAW, tmp_path / f"{k}.db", part=f"{k}/2").path for k in (1, 2)]


def without_greetings(rows):
    """Each part has its own; and what was seen of replies is of several starts."""
    spent = [row for row in rows["spent"] if row[1]]
    return {**rows, "spent": spent, "lengths": 0}


@pytest.mark.parametrize("order", [1, -1])
def test_parts_make_the_run_of_one_process(order, parts, tmp_path):
    path = tmp_path / "whole.db"
    merge(parts[::order], path)
    rows = in_order(lg.run(RAW, tmp_path / "alone.db").path)
    assert without_greetings(written(path)) == without_greetings(rows)
    assert sorted(tmp_path.glob("whole*")) == [path]
    with Records.open_readonly(parts[0]) as records:
        states = {(row.game.label, row.number): row.status for row in records.episodes()}
    of_series = {status for (label, _), status in states.items() if label == "series"}
    assert len(of_series) == 1
    assert set(states.values()) == {"done", "pending"}


def test_labels_go_with_their_episodes(parts, tmp_path):
    """Those of an episode that is taken from another part stay where they are."""
    path, labels = tmp_path / "whole.db", {}
    for part in parts:
        with Records.open_readonly(part) as records:
            odd = Labelled(("odd",), f"in {part.name}")
            for row in records.episodes():
                for place in ((row.id, 0, 0), (row.id, EPISODE, EPISODE)):
                    write_label(records, place, odd)
                    labels |= {place: odd} if row.status == "done" else {}
    merge(parts, path)
    with Records.open_readonly(path) as records:
        assert read_labels(records) == labels
    assert {labelled.note for labelled in labels.values()} == {"in 1.db", "in 2.db"}


def test_a_part_that_is_not_finished_goes_on_in_the_merged_run(tmp_path):
    """With all that it has asked for."""
    first = lg.run(RAW, tmp_path / "1.db", part="1/2").path
    with pytest.raises(RunStopped):
        lg.run(RAW, tmp_path / "2.db", part="2/2", budget_calls=20)
    path = tmp_path / "whole.db"
    merge([first, tmp_path / "2.db"], path)
    lg.resume(path, budget_calls=10_000)
    rows, whole = in_order(lg.run(RAW, tmp_path / "alone.db").path), in_order(path)
    assert without_greetings({**whole, "run": 0}) == without_greetings({**rows, "run": 0})


def test_what_does_not_belong_together(parts, tmp_path):
    path, (first, second) = tmp_path / "whole.db", parts
    other = lg.run(RAW | {"seed": 5}, tmp_path / "other.db", part="2/2").path
    copied = shutil.copy(second, tmp_path / "copied.db")
    for files, fault in (
        ([first], "two files or more: got 1"),
        ([first, other], r"other\.db is of another run than .*1\.db: settings differ"),
        ([second, copied], r"public_goods, episode \d, ended in .*2\.db and in .*copied\.db"),
    ):
        with pytest.raises((OtherRun, BadParameter), match=fault):
            merge(files, path)
    folder(first).mkdir()
    with pytest.raises(StoreError, match="first llm-games resume"):
        merge(parts, path)
    folder(first).rmdir()
    old = shutil.copy(OLD, tmp_path / "old.db")
    with pytest.raises(StoreError, match=r"old\.db was made by llm-games 0\.1\.0.*not be merged"):
        merge([old, old], path)
    with Store.open(first), pytest.raises(RunLocked, match="is being played by"):
        merge(parts, path)
    assert not path.exists()


def test_a_part_is_whole_without_the_others(parts):
    """It is not resumed, and no model is greeted for it."""
    before = written(parts[0])
    lg.resume(parts[0])
    assert written(parts[0]) == before


def test_half_a_merge_is_no_run(parts, tmp_path, monkeypatch):
    """One that dies leaves nothing that could be taken for a run, and is begun anew."""
    path, half = tmp_path / "whole.db", tmp_path / "whole.db.half"
    with monkeypatch.context() as patch:
        patch.setattr(merging, "_described", lambda parts: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            merge(parts, path)
    with pytest.raises(OtherRun, match="half a merge"):
        merge([half, parts[0]], path)
    with pytest.raises(NotARun, match="half a merge"):
        lg.resume(half)
    merge(parts, path)
    assert not half.exists()


FULL = """
import resource, sys
from pathlib import Path
from llm_games.benchmarks.record.connection import Unwritable
from llm_games.benchmarks.record.merge import merge
*parts, path = map(Path, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    merge(parts, path)
except Unwritable as error:
    print(error)
"""


def test_a_disk_that_is_full(parts, tmp_path):
    """Limits of files stand for it: nothing is left that one could be told to resume."""
    command = [sys.executable, "-c", FULL, *parts, tmp_path / "whole.db"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "the parts are left alone" in done.stdout
    assert "resume" not in done.stdout
    assert not list(tmp_path.glob("whole*"))


def test_parts_are_fractions(tmp_path):
    for text in ("3/2", "0/2", "1", "a/b", ""):
        with pytest.raises(ConfigError, match="such as 1/2 and 2/2"):
            lg.run(RAW, tmp_path / "run.db", part=text)
