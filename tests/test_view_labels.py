"""Labels and notes of a person: kept beside the run, found in lists, reports and exports."""

import csv
import re
import shutil
import sqlite3
from contextlib import closing

import httpx
import pytest
import viewing

import llm_games as lg
from llm_games.benchmarks.record.connection import NotARun, Unwritable
from llm_games.benchmarks.record.labels import (
    EPISODE,
    Labelled,
    labels_file,
    read_labels,
    write_label,
)
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import read
from llm_games.benchmarks.show.export.table_files import export
from llm_games.benchmarks.show.page.page_tables import labels_grid
from llm_games.errors import BadParameter

GAME = {"game": "public_goods", "params": {"players": 3, "rounds": 2}}
HOSTILE = "<script>boom()</script>\u202e\0"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "goods.db"
    config = {"seed": 3, "episodes": 2, "seats": ["random", "rational", "random"]}
    viewing.apart(lambda: lg.run(config | {"games": [GAME], "order": "fixed"}, path))
    return path


@pytest.fixture
def goods(recorded, tmp_path):
    (tmp_path / "runs").mkdir()
    return shutil.copy(recorded, tmp_path / "runs" / "goods.db")


@pytest.fixture
def client(goods, tmp_path):
    with (
        viewing.served(goods.parent, cache=tmp_path / "cache") as address,
        httpx.Client(base_url=address, follow_redirects=True, timeout=60) as client,
    ):
        page = client.get(f"/?token={viewing.TOKEN}").text
        client.run = re.search(r"/run/\w+", page)[0]
        client.here = {"origin": address}
        yield client


def count_of(client, query):
    page = client.get(f"{client.run}/decisions?{query}").text
    return int(re.search(r"<b>(\d+) decision", page)[1])


def test_what_a_person_writes_is_kept_beside_the_run_and_narrows_the_list(client, goods):
    before = goods.read_bytes()
    assert 'name="labels"' in client.get(f"{client.run}/decision/1/0/0").text
    assert sorted(path.name for path in goods.parent.iterdir()) == ["goods.db"]  # by looking

    def post(place, **form):
        return client.post(f"{client.run}/{place}/label", data=form, headers=client.here)

    page = post("decision/1/0/0", labels=f"odd, {HOSTILE}, odd", note="gives all\nat once").text
    assert 'value="odd, &lt;script&gt;boom()&lt;/script&gt;⟨U+202E⟩⟨U+0000⟩"' in page
    assert 'value="gives all at once"' in page
    assert "episode 1" in post("episode/2", labels="odd", note="").text
    assert (count_of(client, "label=odd"), count_of(client, "")) == (7, 12)
    assert count_of(client, "label=odd&episode=1") == 1
    assert '<span class="label">odd</span>' in client.get(f"{client.run}/decisions").text
    assert post("decision/1/0/0", labels="", note="").status_code == 200
    assert count_of(client, "label=odd") == 6
    assert goods.read_bytes() == before


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"labels": "x" * 1_000_000}, "a form has at most "),
        ({"labels": "x" * 61}, "a label has at most 60 characters"),
        ({"labels": ",".join(map(str, range(21)))}, "at most 20 are allowed, got 21"),
        ({"note": "x" * 1001}, "a note has at most 1000 characters, got 1001"),
        ({"other": "x"}, "labels and note can be given, got other"),
    ],
)
def test_too_much_is_a_clear_error_and_keeps_nothing(client, goods, form, why):
    answer = client.post(f"{client.run}/decision/1/0/0/label", data=form, headers=client.here)
    assert answer.status_code == 400
    assert why in answer.text
    assert not labels_file(goods).exists()


def test_only_a_page_of_the_viewer_writes(client, goods):
    address, form = f"{client.run}/decision/1/0/0/label", {"labels": "odd"}
    for headers in ({}, {"origin": "http://evil.example"}, {"origin": "null"}):
        assert client.post(address, data=form, headers=headers).status_code == 403
    assert client.get(f"{address}?labels=odd").status_code in (404, 405)
    client.cookies.clear()
    assert client.post(address, data=form, headers=client.here).status_code == 403
    assert not labels_file(goods).exists()


def test_a_decision_that_is_not_there_is_no_place_for_a_label(client, goods):
    for place in ("decision/1/77/0", "episode/9"):
        answer = client.post(f"{client.run}/{place}/label", data={}, headers=client.here)
        assert answer.status_code == 404
    assert not labels_file(goods).exists()


def test_reports_count_labels_and_exports_hold_them(goods, tmp_path):
    with Records.open_readonly(goods) as records:
        write_label(records, (1, 0, 1), Labelled(("odd", "kind"), "it gives"))
        write_label(records, (2, 1, 1), Labelled(("odd",), ""))
        write_label(records, (2, EPISODE, EPISODE), Labelled(("odd",), ""))
        rows = labels_grid(read(records, "corrected")).rows
        assert rows == [["kind", "rational", 1, 0], ["odd", "", 0, 1], ["odd", "rational", 2, 0]]
        counts = export(records, tmp_path / "out")
        assert counts[tmp_path / "out" / "labels.csv"] == 3
    with (tmp_path / "out" / "labels.csv").open() as file:
        first, *_ = csv.DictReader(file)
    assert (first["step"], first["player"], first["note"]) == ("0", "rational", "it gives")
    assert first["labels"] == '["odd", "kind"]'


def test_labels_of_another_run_and_a_folder_that_cannot_be_written_say_so(
    goods, recorded, tmp_path
):
    with Records.open_readonly(goods) as records:
        labels_file(goods).mkdir()
        with pytest.raises(Unwritable, match="labels are kept beside the run, in"):
            write_label(records, (1, 0, 0), Labelled(("odd",), ""))
        labels_file(goods).rmdir()
        write_label(records, (1, 0, 0), Labelled(("odd",), ""))
    lg.run({"games": [GAME], "seats": ["random"]}, tmp_path / "other.db")
    shutil.copy(labels_file(goods), labels_file(tmp_path / "other.db"))
    with Records.open_readonly(tmp_path / "other.db") as records:
        with pytest.raises(NotARun, match="the labels of another run"):
            read_labels(records)
        with pytest.raises(NotARun, match="the labels of another run"):
            write_label(records, (1, 0, 0), Labelled(("odd",), ""))


@pytest.mark.parametrize(
    "row",
    [
        (1, 0, 0, "no json", ""),
        (1, 0, 0, '{"a": 1}', ""),
        (1, 0, 0, "[1, null]", ""),
        (1, 0, 0, '["odd"]', None),
        (1, 0, 0, f'["{"x" * 1_000_000}"]', ""),
        ("x", None, 0, '["odd"]', ""),
        (2**63 - 1, 0, 0, '["odd"]', ""),
    ],
)
def test_a_strangers_labels_stop_no_page(client, goods, row):
    with Records.open_readonly(goods) as records:
        write_label(records, (1, 0, 1), Labelled(("odd\u202e",), "\0"))
        assert "odd⟨U+202E⟩" in client.get(f"{client.run}/decisions").text
        with closing(sqlite3.connect(labels_file(goods))) as file, file:
            file.execute("DROP TABLE labels")
            file.execute("CREATE TABLE labels (episode, step, seat, labels, note)")
            file.execute("INSERT INTO labels VALUES (?, ?, ?, ?, ?)", row)
        with pytest.raises(NotARun, match="no labels of the viewer"):
            read_labels(records)
    for page in ("", "/decisions", "/decision/1/0/0", "/episode/1"):
        assert client.get(f"{client.run}{page}").status_code == 200


def test_what_is_wrong_with_a_label_names_it():
    with pytest.raises(BadParameter, match="got 'xxxxxxxxxxxxxxxxxxxx' with 1000000"):
        Labelled.of("x" * 1_000_000, "")
