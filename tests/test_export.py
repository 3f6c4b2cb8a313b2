"""Export: every row of a run's tables comes back, as CSV and as Parquet."""

import builtins
import csv
import json

import pytest
from test_run import CONFIG, Meddler, whole

from llm_games.benchmarks.record.store import Records, Unwritable
from llm_games.benchmarks.show.export.table_files import TABLES, MissingPackage, export, rows
from llm_games.errors import UnknownName


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "a.db"
    whole(path, Meddler(), games=CONFIG["games"][:3], episodes=1)
    return path


def test_csv_holds_everything(recorded, tmp_path):
    with Records.open_readonly(recorded) as records:
        counts = export(records, tmp_path / "new" / "folder")
        expected = {name: list(rows(records, name)) for name in TABLES}
        calls = records.usage()["calls"]
    for path, count in counts.items():
        with path.open(newline="", encoding="utf-8") as file:
            head, *found = csv.reader(file)
        assert head == list(TABLES[path.stem])
        as_text = [["" if v is None else str(v) for v in row] for row in expected[path.stem]]
        assert found == as_text
        assert len(found) == count
        assert bool(found) == (path.stem != "notes")  # nobody here writes anything down
    assert len(expected["attempts"]) == calls
    chat = json.loads(expected["attempts"][0][list(TABLES["attempts"]).index("prompt")])
    assert [message["role"] for message in chat] == ["system", "user"]
    assert [p.name for p in (tmp_path / "new" / "folder").iterdir() if p.name[0] == "."] == []


def test_parquet_holds_the_same(recorded, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    with Records.open_readonly(recorded) as records:
        for path in export(records, tmp_path, "parquet"):
            table = parquet.read_table(path)
            assert table.column_names == list(TABLES[path.stem])
            found = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
            assert found == list(rows(records, path.stem))


def test_a_missing_package_is_named(recorded, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with (
        Records.open_readonly(recorded) as records,
        pytest.raises(MissingPackage, match=r"pip install 'llm-games\[parquet\]'"),
    ):
        export(records, tmp_path, "parquet")
    assert list(tmp_path.iterdir()) == []


def test_mistakes(recorded, tmp_path):
    (tmp_path / "file").write_text("mine")
    with Records.open_readonly(recorded) as records:
        with pytest.raises(UnknownName, match="no format 'xls'"):
            export(records, tmp_path, "xls")
        with pytest.raises(Unwritable, match="cannot be written"):
            export(records, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_the_command(recorded, tmp_path, llm_games):
    code, _, err = llm_games("export", recorded, "-o", tmp_path, "--format", "eval")
    assert (code, "no format 'eval'" in err) == (2, True)
    code, out, _ = llm_games("export", recorded, "-o", tmp_path)
    assert (code, "decisions.csv: " in out) == (0, True)
