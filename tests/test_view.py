"""The viewer without a browser: decisions in columns, filters, search, the shelf and the door."""

import asyncio
import html
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import parse_qsl

import httpx
import numpy as np
import pytest
from playing import each_row
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import llm_games as lg
from llm_games.baselines.players import PLAYERS, Kind, llm_player
from llm_games.benchmarks.judge.talk_measures import turns
from llm_games.benchmarks.record.connection import NewerSchema, NotARun, StoreError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.record.schema import AttemptRow, DecisionRow, StepRow
from llm_games.benchmarks.record.store import Store
from llm_games.benchmarks.show.view import app, decision_index, run_page
from llm_games.benchmarks.show.view import search as searching
from llm_games.benchmarks.show.view.decision_index import Decisions
from llm_games.benchmarks.show.view.filter import BadFilter, Filter
from llm_games.benchmarks.show.view.reading import key_of
from llm_games.benchmarks.show.view.render import render
from llm_games.benchmarks.show.view.run_shelf import Gone, NoSuchRun, RunFile, RunShelf
from llm_games.benchmarks.show.view.search import Search, terms
from llm_games.wrappers.clients.scripted import ScriptedClient

ROOT = Path(__file__).parents[1]
OLD = ROOT / "tests" / "data" / "recorded_0_1_0" / "recorded_0_1_0.db"
TOKEN = "a-token"
GAMES = [
    {"game": "public_goods", "params": {"players": 3, "rounds": 3},
     "seats": ["view:m", "view:m", "random"]},
    {"game": "public_goods", "params": {"players": 3, "rounds": 2}, "label": "talking",
     "seats": ["view:m"], "talk": {"turns": 1}},
    {"game": "pirate_game", "params": {"players": 4}, "seats": ["random"]},
    {"game": "battle_royale", "params": {"players": 4}, "seats": ["random"]},
    {"game": "water_allocation", "params": {"days": 4}, "seats": ["random"]},
    {"game": "emergency_evacuation", "seats": ["random"],
     "params": {"layout": "small", "players": 4, "max_rounds": 2}},
]  # fmt: skip


def reply(request):
    if request.kind == "speech":
        return json.dumps({"speech": f"I give {request.seed % 5}, \u202e<script>x</script>"})
    if request.seed % 4 == 0:
        return "I think that café 100% is fair"
    return json.dumps({"tokens_contributed": request.seed % 21})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("view")
    PLAYERS["view"] = Kind(
        "answers from its seed",
        value="<model>",
        model=lambda _, client, settings: llm_player(ScriptedClient(reply), settings),
    )
    try:
        made = lg.run({"title": "A run", "episodes": 2, "games": GAMES}, db=str(folder / "a.db"))
    finally:
        del PLAYERS["view"]
    return Path(made.path)


@pytest.fixture
def copy(run, tmp_path):
    return Path(shutil.copy(run, tmp_path / "copy.db"))


@pytest.fixture(scope="module")
def decisions(run):
    found = Decisions(run)
    found.read()
    return found


def rows_of(path):
    found = {}
    with Records.open_readonly(path) as records:
        for game in games(records):
            for episode in game.episodes:
                number, attempts = episode.row.id, episode.attempts()
                regret, moves = episode.regret(), [step.step for step in episode.steps]
                rounds = {}
                for turn in turns(episode):
                    first, last = turn.steps
                    rounds |= dict.fromkeys(range(first, last + 1), turn.round)
                for row in episode.decisions():
                    asked = [a for a in attempts if (a.step, a.seat) == (row.step, row.seat)]
                    talk = row.phase == "talk"
                    found[number, row.step, row.seat] = {
                        "game": game.label,
                        "number": episode.row.number,
                        "player": episode.seats[row.seat],
                        "round": rounds[row.step],
                        "phase": "talk" if talk else "move",
                        "outcome": row.outcome,
                        "broke": row.broke,
                        "payoff": row.reward,
                        "regret": None if talk else regret[row.seat, moves.index(row.step)],
                        "calls": len(asked),
                        "tokens_in": sum(a.tokens_in for a in asked),
                        "tokens_out": sum(a.tokens_out for a in asked),
                        "action": row.action,
                        "text": asked[-1].text[: decision_index.SHOWN] if asked else "",
                    }
    return found


@pytest.fixture(scope="module")
def expected(run):
    return rows_of(run)


def everything(decisions, **how):
    found, page = [], 1
    while True:
        part = decisions.select(Filter(page=page, **how))
        found += part.rows
        page += 1
        if page > part.pages:
            return found


# -- columns ---------------------------------------------------------------------------------------


def test_columns_are_what_reports_read(decisions, expected):
    found = {row[:3]: row for row in everything(decisions)}
    assert found.keys() == expected.keys()
    assert len(found) == len(decisions) > 100
    for place, wanted in expected.items():
        row = found[place]._asdict()
        regret, known = row.pop("regret"), wanted.pop("regret")
        assert (regret is None) == (known is None or np.isnan(known))
        assert regret is None or regret == known
        assert {name: row[name] for name in wanted} == wanted
        wanted["regret"] = regret
    assert decisions.reading.without == {}


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_small_steps_lead_to_the_same(run, decisions, monkeypatch, batch):
    monkeypatch.setattr(decision_index, "ABREAST", batch)
    monkeypatch.setattr(decision_index, "DEEP", batch)
    monkeypatch.setattr(decision_index, "SLICE", 0)
    slowly = Decisions(run)
    while not slowly.complete:
        slowly.read(0)
    assert everything(slowly) == everything(decisions)


def test_keys_are_in_the_order_of_play():
    places = [(1, 0, 0), (1, 0, 99_999), (1, 1, 0), (2, 0, 0), (2**22, 2**22, 2**16)]
    keys = [key_of(*place) for place in places]
    assert keys == sorted(keys)
    assert keys[-1] < 2**63


FILTERS = {
    "a game": ({"game": ("talking",)}, lambda r: r["game"] == "talking"),
    "two games": ({"game": ("talking", "pirate_game")},
                  lambda r: r["game"] in ("talking", "pirate_game")),
    "none": ({"game": ("nothing",)}, lambda r: False),
    "a player": ({"player": ("view:m",)}, lambda r: r["player"] == "view:m"),
    "seats": ({"seat": (0, 2), "phase": ("move",)}, lambda r: r["seat"] in (0, 2)
              and r["phase"] == "move"),
    "talk": ({"phase": ("talk",)}, lambda r: r["phase"] == "talk"),
    "an outcome": ({"outcome": ("unparsable",)}, lambda r: r["outcome"] == "unparsable"),
    "filled in": ({"broke": ("yes",)}, lambda r: r["broke"]),
    "a round": ({"round": (2,)}, lambda r: r["round"] == 2),
    "an episode": ({"episode": (1,)}, lambda r: r["episode"] == 1),
    "regret": ({"regret_min": 1.0, "regret_max": 9.5},
               lambda r: r["regret"] is not None and 1 <= r["regret"] <= 9.5),
    "calls": ({"calls_min": 2}, lambda r: r["calls"] >= 2),
}  # fmt: skip


@pytest.mark.crossing
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("sort", ["place", "-regret", "regret", "-tokens", "payoff"])
def test_filters_and_sorts(decisions, expected, monkeypatch, name, sort):
    monkeypatch.setattr(decision_index, "ROWS", 7)
    wanted, fits = FILTERS[name]
    found = everything(decisions, sort=sort, **wanted)
    about = [{"episode": p[0], "step": p[1], "seat": p[2], **row} for p, row in expected.items()]
    known = [row for row in about if fits(row)]
    by, down = sort.removeprefix("-"), -1 if sort.startswith("-") else 1

    def order(row):
        value = row["tokens_in"] + row["tokens_out"] if by == "tokens" else row.get(by, 0)
        place = row["episode"], row["step"], row["seat"]
        return value is None, down * (value or 0), place

    assert [row[:3] for row in found] == [
        (r["episode"], r["step"], r["seat"]) for r in sorted(known, key=order)
    ]


def test_facets_count_what_else_could_be_chosen(decisions, expected):
    page = decisions.select(Filter(game=("talking",), phase=("talk",)))
    talked = [row for row in expected.values() if row["phase"] == "talk"]
    assert {f.value: f.count for f in page.facets["game"]} == {"talking": len(talked)}
    in_game = [row["phase"] for row in expected.values() if row["game"] == "talking"]
    phases = {f.value: (f.count, f.chosen) for f in page.facets["phase"]}
    assert phases == {"move": (in_game.count("move"), False), "talk": (in_game.count("talk"), True)}
    lost = decisions.select(Filter(player=("nobody",)))
    assert (lost.count, lost.pages) == (0, 1)
    assert ("nobody", 0, True) in lost.facets["player"]


def test_neighbours_in_a_list(decisions):
    wanted = Filter(game=("pirate_game",), sort="-regret")
    rows = everything(decisions, game=("pirate_game",), sort="-regret")
    keys = [key_of(*row[:3]) for row in rows]
    for at in (0, 1, len(rows) - 1):
        before, after = decisions.neighbours(wanted, keys[at])
        assert (before and before[:3]) == (rows[at - 1][:3] if at else None)
        assert (after and after[:3]) == (rows[at + 1][:3] if at + 1 < len(rows) else None)
    assert decisions.neighbours(wanted, key_of(1, 0, 0)) == (None, None)
    assert decisions.find(keys[1])[:3] == rows[1][:3]
    assert decisions.find(key_of(99, 0, 0)) is None


# -- a run that grows ------------------------------------------------------------------------------


def write(store, episode, step, seats=2, text="hello"):
    prompt = store.prompt([{"role": "user", "content": "Play."}])
    record = {"actions": [3] * seats, "endowment": [20] * seats}
    store.add(StepRow(step, list(range(seats)), record, [1.0] * seats, []), episode)
    for seat in range(seats):
        read = "stop", "", "valid", "", 10, 5, 0.5, 1, "m"
        store.add(AttemptRow(step, seat, 0, prompt, f"{text} {step}", *read), episode)
        store.add(DecisionRow(step, seat, 3, "valid", False, 1.0), episode)
    store.flush()


@pytest.fixture
def growing(tmp_path):
    params = {"players": 2, "rounds": 3}
    listed_games = [("goods", "public_goods", params, ["a", "b"])]
    store = Store.create(tmp_path / "live.db", "Live", {}, listed_games, [[1, 2]])
    yield store
    with suppress(RuntimeError):  # a test has closed it
        store.close()


def test_only_what_is_new_is_read(growing):
    decisions = Decisions(growing.path)
    assert decisions.read() == 0
    growing.begin(1)
    write(growing, 1, 0)
    assert decisions.read() == 2
    assert decisions.read() == 0
    growing.begin(2)
    write(growing, 2, 0)
    write(growing, 1, 1)
    assert decisions.read() == 4
    # An attempt at what has not been decided yet is not a decision.
    about = "stop", "", None, "", 10, 5, 0.5, 1, "m"
    growing.add(AttemptRow(2, 0, 0, 1, "not read yet", *about), 1)
    growing.flush()
    assert decisions.read() == 0
    rows = everything(decisions)
    assert [row[:3] for row in rows] == [(e, s, p) for e in (1, 2) for s in (0, 1) for p in (0, 1)
                                         if (e, s) != (2, 1)]  # fmt: skip
    assert [row.round for row in rows] == [1, 1, 2, 2, 1, 1]


def test_a_nul_cuts_no_reply_in_a_list(growing):
    growing.begin(1)
    write(growing, 1, 0, text="before \0 after é" * 40)
    glimpse = growing.glimpses([(1, 0, 0)], 20)[1, 0, 0]
    assert glimpse["text"] == "before \0 after ébefo"


def test_of_two_marked_runs_the_older_is_a(inside, copy, tmp_path):
    newer = shutil.copy(copy, tmp_path / "newer.db")
    with closing(sqlite3.connect(newer)) as database:
        database.execute("UPDATE run SET created = '2999', title = 'The newer'")
        database.commit()
    inside.shelf.paths.append(newer)
    runs = {run.path.name: run.id for run in inside.shelf.runs()}
    for order in (("newer.db", copy.name), (copy.name, "newer.db")):
        marks = "&".join(f"compare={runs[name]}" for name in order)
        assert "A A run" in words(inside.get(f"/compare?{marks}"))
    named = inside.get(f"/compare?a={runs['newer.db']}&b={runs[copy.name]}")
    assert "A The newer" in words(named)


def test_a_list_of_runs_that_hold_some_words_is_a_link(inside, copy, tmp_path):
    other = shutil.copy(copy, tmp_path / "zebra.db")
    with closing(sqlite3.connect(other)) as database:
        database.execute("UPDATE run SET title = 'About <b>lions</b>'")
        database.commit()
    inside.shelf.paths.append(other)
    for text, names in {
        "": {copy.name, "zebra.db"},
        "LIONS complete": {"zebra.db"},
        "pirate": {copy.name, "zebra.db"},
        "lions tigers": set(),
        "<b>": {"zebra.db"},
    }.items():
        page = inside.get("/", params={"text": text}).text
        assert {name for name in (copy.name, "zebra.db") if f"<small>{name}," in page} == names
        assert "<b>" not in page


def test_what_is_asked_when_the_game_is_over(growing):
    decisions = Decisions(growing.path)
    growing.begin(1)
    for step in range(3):
        write(growing, 1, step)
    about = "stop", "", "valid", "", 100, 50, 0.5, 1, "m"
    growing.add(AttemptRow(3, 1, 0, 1, "a lesson", *about, kind="lesson"), 1)
    growing.flush()
    assert decisions.read() == 6
    growing.end(1)
    growing.flush()
    assert decisions.read() == 1
    assert decisions.read() == 0
    (row,) = everything(decisions, phase=("after",))
    assert row == decision_index.ListedDecision(
        1, 3, 1, "goods", 0, 3, "b", "after", "valid", False, 0.0, None, 1, 100, 50, 0.5,
        None, "a lesson",
    )  # fmt: skip


def test_a_viewer_leaves_one_plain_file(growing, tmp_path):
    watched = RunFile(growing.path, tmp_path / "cache")
    watched.follow()
    growing.begin(1)
    for step in range(3):
        write(growing, 1, step)
        watched.select(Filter())
    growing.end(1)
    growing.close()
    until = time.monotonic() + 30
    while watched.select(Filter(game=("goods",))).count < 6 and time.monotonic() < until:
        time.sleep(0.02)
    watched.stop()
    assert len(watched.decisions) == 6
    assert [file.name for file in tmp_path.glob("live*")] == ["live.db"]


def test_what_is_kept_is_used_again(copy, decisions, tmp_path, monkeypatch):
    kept = tmp_path / "kept.npz"
    first = Decisions(copy, cache_file=kept)
    first.read()
    first.keep()
    monkeypatch.setattr(Records, "decided_since", None)  # nothing is left to be read
    again = Decisions(copy, cache_file=kept)
    assert again.read() == len(decisions)
    assert everything(again) == everything(decisions)
    monkeypatch.undo()
    for spoiled in (b"", b"nonsense", kept.read_bytes()[:-100]):
        kept.write_bytes(spoiled)
        anew = Decisions(copy, cache_file=kept)
        assert anew.read() == len(decisions)


def test_what_is_kept_of_another_run_is_not_used(growing, copy, tmp_path):
    kept = tmp_path / "kept.npz"
    first = Decisions(copy, cache_file=kept)
    first.read()
    first.keep()
    growing.begin(1)
    write(growing, 1, 0)
    assert Decisions(growing.path, cache_file=kept).read() == 2


def test_nothing_can_be_kept(copy, tmp_path):
    (tmp_path / "full").write_text("a file where a folder is needed")
    found = RunFile(copy, tmp_path / "full")
    found.follow()
    until = time.monotonic() + 30
    while not found.decisions.search.broken and time.monotonic() < until:
        time.sleep(0.02)
    page = found.select(Filter(text="café"))
    found.stop()
    assert page.count > 0
    assert "no index of the text can be kept" in page.note
    assert found.problem == ""


# -- filters in addresses --------------------------------------------------------------------------


def test_a_filter_in_an_address():
    wanted = Filter(
        game=("a b", "ü&="), seat=(0, 3), phase=("talk",), broke=("yes",), regret_min=-0.5,
        calls_min=2, text='say "so"', sort="-regret", page=3,
    )  # fmt: skip
    assert Filter.of(parse_qsl(wanted.query(page=3))) == wanted
    assert Filter.of(parse_qsl(wanted.query(round=(2,)))).page == 1
    assert Filter().query() == ""
    assert Filter.of([("seat", ""), ("text", "  ")]) == Filter()
    toggled = Filter(seat=(1,))
    assert (toggled.toggled("seat", 2), toggled.toggled("seat", 1)) == ("seat=1&seat=2", "")


@each_row(
    ("pair", "said"),
    [
        (("seat", "-1"), "seat: an integer from 0"),
        (("seat", "²"), "seat: an integer"),
        (("round", "9" * 5000), "round: an integer from 1 to 2147483647"),
        (("regret_min", "nan"), "regret_min: a number"),
        (("regret_max", "x"), "got 'x'"),
        (("phase", "sleep"), "one of move, talk, after"),
        (("broke", "1"), "one of yes, no"),
        (("sort", "--regret"), "place, regret"),
        (("sort", "colour"), "got 'colour'"),
        (("page", "0"), "page: an integer from 1"),
        (("seats", "1"), "there is no filter 'seats'; did you mean 'seat'?"),
    ],
)
def test_bad_filters(pair, said):
    with pytest.raises(BadFilter, match=re.escape(said)):
        Filter.of([("game", "fine"), pair])
    with pytest.raises(BadFilter) as both:
        Filter.of([pair, ("calls_min", "many"), ("text", "a"), ("text", "b")])
    assert said in str(both.value)
    assert "calls_min" in str(both.value)
    assert "one value is allowed, got 2" in str(both.value)


# -- search ----------------------------------------------------------------------------------------


@pytest.fixture
def search(copy, tmp_path):
    decisions = Decisions(copy)
    decisions.read()
    found = Search(copy, tmp_path / "cache" / "a.fts")
    while not found.fill(decisions.upto(), 1):
        pass
    assert found.ready
    assert not found.broken
    found.upto = decisions.upto()
    return found


@each_row(
    "text", ["café", "CAF", '"café 100%"', '{"tokens_contributed": 3}', "fair think", "give",
             '"think that" fair', "nothing", "<script>"]
)  # fmt: skip
def test_the_index_finds_what_the_file_holds(search, text):
    found, note = search.find(text, search.upto)
    assert note == ""
    scanned, said = Search(search.run, None).find(text, search.upto)
    assert said == ""
    half = Search(search.run, search.index.with_name("half.fts"))
    half.fill(dict([*search.upto.items()][: len(search.upto) // 2]), 1)
    assert half.ready
    for other in (scanned, half.find(text, search.upto)[0]):
        assert set(found.tolist()) == set(other.tolist())
    assert (len(found) == 0) == (text == "nothing")
    assert search.find(text, search.upto)[0] is found  # kept


def test_a_search_of_what_is_not_indexed_takes_a_moment(search, monkeypatch):
    monkeypatch.setattr(searching, "MOMENT", -1)
    found, note = Search(search.run, None).find("fair", search.upto)
    assert len(found) == 0
    many = len(search.upto)
    assert note == f"the text is still being indexed: 0 of {many} episodes have been searched"
    assert len(search.find("fair", search.upto)[0]) > 0


SIGNS = ['""', '"', "%", "!", "_", "'; DROP TABLE texts; --", "* AND (", "あ", "NEAR(a b)", "col:x"]


@each_row("text", [*SIGNS, "\\", "\u202e", "-a", "^a"])
def test_signs_in_a_search_do_no_harm(search, text):
    found, _ = search.find(text, search.upto)
    with closing(sqlite3.connect(search.run)) as file:
        texts = [
            row[0] + "\n" + row[1] for row in file.execute("SELECT text, thoughts FROM attempts")
        ]
    holds = [t for t in texts if terms(text) and all(w.lower() in t.lower() for w in terms(text))]
    assert bool(len(found)) == bool(holds)
    assert len(search.find("café", search.upto)[0])


def test_a_damaged_index_is_made_anew(search):
    known = search.find("café", search.upto)[0]
    search.index.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    for tail in ("-wal", "-shm"):
        Path(f"{search.index}{tail}").unlink(missing_ok=True)
    search._answers.clear()
    assert sorted(search.find("café", search.upto)[0]) == sorted(known)  # in the file
    again = Search(search.run, search.index)
    decisions = Decisions(search.run)
    decisions.read()
    for _ in range(5):
        again.fill(decisions.upto(), 1)
    assert again.ready
    assert sorted(again.find("café", search.upto)[0]) == sorted(known)


def test_a_full_disk_under_the_index(copy, tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "SETTINGS", (*searching.SETTINGS, "max_page_count = 4"))
    decisions, search = Decisions(copy), Search(copy, tmp_path / "a.fts")
    decisions.read()
    assert search.fill(decisions.upto(), 1)
    assert "database or disk is full" in search.broken
    assert not search.ready
    found, note = search.find("café", decisions.upto())
    assert len(found) > 0
    assert note == search.broken
    assert note.startswith("no index of the text can be kept (")
    assert list(tmp_path.glob("a.fts*")) == []


def test_an_index_grows_with_the_run(growing, tmp_path):
    decisions, search = Decisions(growing.path), Search(growing.path, tmp_path / "a.fts")
    growing.begin(1)
    for step in range(3):
        write(growing, 1, step, text="word")
        decisions.read()
        search.fill(decisions.upto(), 1)
        assert len(search.find("word", decisions.upto())[0]) == 2 * step + 2
        assert len(search.find(f'"word {step}"', decisions.upto())[0]) == 2
    again = Search(growing.path, tmp_path / "a.fts")
    assert again.fill(decisions.upto(), 0)
    assert len(again.find("word", decisions.upto())[0]) == 6


def test_an_index_is_of_one_run(growing, tmp_path):
    decisions, index = Decisions(growing.path), tmp_path / "a.fts"
    growing.begin(1)
    write(growing, 1, 0, text="zebra")
    decisions.read()
    Search(growing.path, index).fill(decisions.upto(), 1)
    growing.close()
    with closing(sqlite3.connect(growing.path)) as file, file:  # another run at the same path
        file.execute("UPDATE run SET created = '2020-01-01'")
        file.execute("UPDATE attempts SET text = 'okapi'")
    other = Search(growing.path, index)
    other.fill(decisions.upto(), 1)
    assert [len(other.find(word, decisions.upto())[0]) for word in ("zebra", "okapi")] == [0, 2]


# -- the shelf -------------------------------------------------------------------------------------


def shelf_of(*paths, tmp_path):
    return RunShelf(paths, tmp_path / "cache")


def test_a_shelf_of_a_folder(copy, tmp_path):
    below = tmp_path / "below"
    below.mkdir()
    shutil.copy(copy, below / "second.db")
    (tmp_path / "other.db").write_text("no run")
    with closing(sqlite3.connect(tmp_path / "others.db")) as other:
        other.execute("CREATE TABLE run (id)")
    with closing(RunShelf([tmp_path], tmp_path / "cache")) as shelf:
        shelf.check()
        first = shelf.number()
        assert {run.path.name for run in shelf.runs()} == {"copy.db", "second.db"}
        (tmp_path / "copy.labels.db").write_text("of a run")
        assert [file.name for file in shelf.others()] == ["other.db", "others.db"]
        assert "2 files are no runs: other.db, others.db" in render("runs", **run_page.runs(shelf))
        (one, _) = shelf.runs()
        assert shelf.run(one.id) is one
        assert re.fullmatch("[0-9a-f]{8}", one.id)
        assert RunFile(one.path, None).id == one.id
        with pytest.raises(NoSuchRun, match="there is no run 'abc' here"):
            shelf.run("abc")
        shutil.copy(copy, tmp_path / "third.db")
        assert len(shelf.runs()) == 3
        assert shelf.number() != first
    with closing(RunShelf([below], tmp_path / "cache")) as shelf:
        (run,) = shelf.runs()
        shown = run_page.run(run)
    assert (shown["title"], shown["progress"].state, shown["warnings"]) == ("A run", "complete", [])
    assert shown["progress"].ended == 12
    assert [game.game.label for game in shown["progress"].games[:2]] == ["public_goods", "talking"]


def test_files_that_are_no_runs(copy, tmp_path):
    text, newer = tmp_path / "text.db", tmp_path / "newer.db"
    text.write_text("a letter")
    shutil.copy(copy, newer)
    with closing(sqlite3.connect(newer)) as file:
        file.execute("PRAGMA user_version = 99")
    missing = tmp_path / "missing.db"
    for path, kind, said in (
        (text, NotARun, "not a SQLite database"),
        (newer, NewerSchema, "a newer one"),
        (missing, NotARun, "there is no file"),
    ):
        with pytest.raises(kind, match=said):
            shelf_of(path, tmp_path=tmp_path).check()
        run = RunFile(path, None)
        assert said in run.why()
        assert run.select(Filter()).rows == []
        run.stop()
        assert said in run.problem
    with pytest.raises(NotARun, match=r"(?s)text.db.*missing.db"):
        shelf_of(text, missing, tmp_path=tmp_path).check()
    shelf_of(text, copy, tmp_path=tmp_path).check()  # what is wrong with one is said on its page


def wait_for(true):
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_an_error_that_lasts_is_no_news_at_each_look(copy, tmp_path):
    run = RunFile(copy, tmp_path / "cache")
    run.select(Filter())
    wait_for(lambda: run.decisions.complete and run.decisions.search.ready)
    run.stop()
    run.decisions.search.fill = Mock(side_effect=StoreError("no room"))
    numbers = [run._look(1) or run.number for _ in range(3)]
    assert run.problem == "no room"
    assert numbers[0] == numbers[1] == numbers[2]


@pytest.mark.parametrize("how", ["deleted", "replaced", "overwritten"])
def test_a_file_that_goes_while_it_is_open(copy, tmp_path, how):
    run = RunFile(copy, tmp_path / "cache")
    before = run.select(Filter())
    wait_for(lambda: run.decisions.complete)
    number = run.number
    if how == "deleted":
        copy.unlink()
    elif how == "overwritten":
        shutil.copy(OLD, copy)
    else:
        shutil.copy(OLD, tmp_path / "new.db")
        os.replace(tmp_path / "new.db", copy)
    gone = "while it was open; what had been read of it is still listed"
    wait_for(lambda: gone in run.problem)  # half written, it is something else first
    assert run.number > number
    with pytest.raises(Gone, match="deleted" if how == "deleted" else "replaced"):
        run.records()
    after = run.select(Filter())
    run.stop()
    assert after.count == before.total > 0
    assert [row[:10] for row in after.rows] == [row[:10] for row in before.rows]


@pytest.mark.parametrize("how", ["replaced", "overwritten"])
def test_a_shelf_opens_the_run_that_is_in_the_place_of_another(copy, tmp_path, how):
    shelf = shelf_of(copy, tmp_path=tmp_path)
    [old] = shelf.runs()
    before = old.select(Filter())
    wait_for(lambda: old.decisions.complete)
    assert shelf.run(old.id) is old
    copy.write_text("no run") if how == "overwritten" else None
    assert shelf.run(old.id) is old
    shutil.copy(OLD, tmp_path / "new.db")
    (os.replace if how == "replaced" else shutil.copy)(tmp_path / "new.db", copy)
    new = shelf.run(old.id)
    assert new is not old
    assert shelf.runs() == [new]
    assert new.number > old.number
    found = new.select(Filter())
    wait_for(lambda: new.decisions.complete)
    assert new.why() == new.problem == ""
    with Records.open_readonly(OLD) as records:
        assert {row.game for row in found.rows} <= {game.label for game in records.games()}
    assert len(new.decisions) != before.total
    assert not old._thread.is_alive()
    shelf.close()


def test_an_older_edition(tmp_path):
    run = RunFile(OLD, tmp_path / "cache")
    run.follow()
    wait_for(lambda: run.decisions.complete)
    page = run.select(Filter(phase=("move",)))
    run.stop()
    assert "use llm-games 0.1.0" in " ".join(run_page.run(run)["warnings"])
    with Records.open_readonly(OLD) as records:
        known = sum(len(records.decisions(row.id)) for row in records.episodes())
    assert page.count == known > 0
    assert all(row.round >= 1 for row in page.rows)


# -- the door --------------------------------------------------------------------------------------


@pytest.fixture
def site(copy, tmp_path):
    with closing(RunShelf([copy], tmp_path / "cache")) as shelf:
        client = TestClient(app.app(shelf, TOKEN), base_url="http://127.0.0.1:8000")
        client.shelf = shelf
        yield client


@pytest.fixture
def inside(site):
    assert site.get(f"/?token={TOKEN}").status_code == 200
    return site


def words(answer):
    return html.unescape(" ".join(re.sub("<[^>]*>", " ", answer.text).split()))


def test_the_token_goes_into_a_cookie(site):
    answer = site.get(f"/run/x?a=1&token={TOKEN}&b=%26", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/run/x?a=1&b=%26")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    away = site.get(f"http://127.0.0.1//evil.test?token={TOKEN}", follow_redirects=False)
    assert away.headers["location"].startswith("/evil.test")


@each_row(
    ("address", "headers", "said"),
    [
        ("/", {}, "needs the token"),
        ("/?token=wrong", {}, "not that of this viewer"),
        ("/?token=", {}, "not that of this viewer"),
        ("/", {"cookie": "a=b; ;;=", "x": "y"}, "needs the token"),
        (f"/?token={TOKEN}", {"host": "evil.test"}, "not at evil.test"),
        (f"/?token={TOKEN}", {"host": "127.0.0.1.evil.test"}, "not at"),
        (f"/?token={TOKEN}", {"host": "[::1"}, "not at"),
        (f"/?token={TOKEN}", {"origin": "http://evil.test"}, "cannot ask this viewer"),
        (f"/?token={TOKEN}", {"origin": "http://127.0.0.1:9"}, "cannot ask this viewer"),
    ],
)
def test_who_is_not_let_in(site, address, headers, said):
    answer = site.get(address, headers=headers)
    assert answer.status_code == 403
    assert said in words(answer)
    assert "Open the address that llm-games view printed" in words(answer)
    assert 'href="/"' not in answer.text  # where nothing else would be answered
    assert TOKEN not in answer.text
    assert "A run" not in answer.text


@each_row("other", ['x={"a": 1, "b"}', "x", 'a[b]=c d"', "é=1"])
def test_cookies_of_other_servers_here_do_no_harm(inside, other):
    mine = [f"{name}={value}" for name, value in inside.cookies.items()]
    for cookies in ([other, *mine], [*mine, other]):
        answer = inside.get("/", headers={"cookie": "; ".join(cookies).encode()})
        assert answer.status_code == 200


def test_who_is_let_in(inside):
    for headers in ({"host": "localhost:1"}, {"host": "[::1]:1"}):
        headers["cookie"] = "; ".join(f"{k}={v}" for k, v in inside.cookies.items())
        assert inside.get("/", headers=headers).status_code == 200
    for method in ("post", "put", "delete"):
        assert getattr(inside, method)("/").status_code == (403 if method == "post" else 404)
    assert inside.get("/static/view.css").status_code == 200


PAGES = ["", "/episode/1?first=99",
         "/decisions", "/decisions?sort=-regret&text=fair", "/decisions?seat=x&nothing=1",
         "/scores", "/types", "/settings",
         "/game?label=talking", "/episode/1", "/decision/1/0/0"]  # fmt: skip


@each_row("page", PAGES)
def test_every_page_has_its_guards(inside, page):
    (run,) = inside.shelf.runs()
    answer = inside.get(f"/run/{run.id}{page}")
    assert answer.status_code == 200
    assert "A run" in words(answer)
    policy = answer.headers["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'"):
        assert part in policy
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", answer.text)
    assert "<script>x" not in answer.text  # what a model said


def test_a_failure_has_its_guards(inside, monkeypatch):
    def broken(run):
        raise ZeroDivisionError("<script>")

    monkeypatch.setattr(app.run_page, "run", broken)
    (run,) = inside.shelf.runs()
    outside = TestClient(inside.app, base_url=inside.base_url, raise_server_exceptions=False)
    assert outside.get(f"/run/{run.id}").status_code == 403
    answer = outside.get(f"/run/{run.id}?token={TOKEN}")
    assert (answer.status_code, "<script>" in answer.text) == (500, False)
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_names_cannot_steer_a_display(growing, tmp_path):
    with closing(sqlite3.connect(growing.path)) as file, file:
        file.execute("UPDATE run SET title = ?", ("gniht\u202ea thing\u2066",))
    with closing(RunShelf([growing.path], tmp_path / "cache")) as shelf:
        client = TestClient(app.app(shelf, TOKEN), base_url="http://127.0.0.1")
        (run,) = shelf.runs()
        for page in ("/", f"/run/{run.id}", f"/run/{run.id}/decisions?player=b\u202e"):
            shown = client.get(f"{page}{'&' if '?' in page else '?'}token={TOKEN}").text
            assert "gniht⟨U+202E⟩a thing⟨U+2066⟩" in shown
            # A form sends back what it was given, and shows it as a code.
            assert shown.count("\u202e") == shown.count('value="b\u202e"')
    assert 'value="b\u202e"' in shown


def test_many_ask_at_the_same_time(inside):
    (run,) = inside.shelf.runs()
    episodes = [f"/episode/{number}" for number in range(1, 13)]
    pictures = [f"/episode/{number}/picture/1" for number in (11, 12)]
    decisions = ["/decisions?text=fair", "/decision/1/0/0", "/raw/1/0/0/all"]
    run_page = ["", *decisions, *episodes, *pictures]

    async def ask_all():
        transport = httpx.ASGITransport(inside.app)
        base, cookies = f"http://127.0.0.1/run/{run.id}", dict(inside.cookies)
        async with httpx.AsyncClient(transport=transport, cookies=cookies, timeout=None) as client:
            return await asyncio.gather(*(client.get(base + page) for page in 3 * run_page))

    answers = asyncio.run(ask_all())
    assert {(str(a.url), a.status_code) for a in answers if a.status_code != 200} == set()


def test_texts_of_a_model_as_files(inside):
    (run,) = inside.shelf.runs()
    place = run.select(Filter(game=("talking",), phase=("talk",))).rows[0]
    at = f"{place.episode}/{place.step}/{place.seat}"
    raw = inside.get(f"/run/{run.id}/raw/{at}/reply-0")
    assert raw.headers["content-type"] == "text/plain; charset=utf-8"
    assert raw.headers["x-content-type-options"] == "nosniff"
    assert raw.headers["content-disposition"].startswith("attachment")
    assert "<script>x</script>" in raw.text
    more = inside.get(f"/run/{run.id}/more/{at}/reply-0?from=2").json()
    assert more["end"] == len(raw.text)
    assert more["left"] == 0


@each_row(
    ("page", "status", "said"),
    [
        ("/nothing", 404, "There is nothing at"),
        ("/episode/99", 404, "no episode 99"),
        ("/episode/1?first=x", 400, "first: an integer"),
        ("/decision/1/0/77", 404, "seat 77"),
        ("/raw/1/0/0/reply-9", 404, "no text"),
        ("/raw/1/0/0/reply-%0a0", 404, "no text"),
        ("/raw/1/0/0/reply-%D9%A0", 404, "no text"),
        ("/episode/" + 5000 * "9", 404, "There is nothing at"),
        ("/game?label=x", 404, "there is no game of this run 'x'"),
    ],
)
def test_what_is_not_there(inside, page, status, said):
    (run,) = inside.shelf.runs()
    answer = inside.get(f"/run/{run.id}{page}")
    assert (answer.status_code, said in words(answer)) == (status, True)


def test_pages_of_a_file_that_has_gone(inside, copy):
    (run,) = inside.shelf.runs()
    assert inside.get(f"/run/{run.id}").status_code == 200
    decision_index = run.select(Filter()).total
    copy.unlink()
    answer = inside.get(f"/run/{run.id}/decision/1/0/0")
    assert answer.status_code == 410
    assert "was deleted while it was open" in words(answer)
    assert f'href="/run/{run.id}/decisions"' in answer.text
    listed_still = inside.get(f"/run/{run.id}/decisions?game=talking")
    assert listed_still.status_code == 200
    assert "was deleted while it was open" in words(listed_still)
    assert listed_still.text.count("<tr data-row>") > 5
    assert inside.get("/run/00000000").status_code == 404
    assert (
        f'<a href="/run/{run.id}/decisions">{decision_index} decisions</a>' in inside.get("/").text
    )


def test_a_live_socket(inside, growing, tmp_path, monkeypatch):
    monkeypatch.setattr(app, "BEAT", 0.05)
    at = "ws://127.0.0.1:8000/live"
    inside.shelf.paths.append(growing.path)
    run = next(run for run in inside.shelf.runs() if run.path == growing.path)
    with inside.websocket_connect(f"{at}?run={run.id}&after=0") as live:
        first = live.receive_json()["number"]
        assert live.receive_json() == {}
        growing.begin(1)
        write(growing, 1, 0)
        while not (said := live.receive_json()):
            pass
        assert said["number"] > first
    with inside.websocket_connect(f"{at}?run={run.id}&after={run.number}") as live:
        # Nothing that the page has seen; the file may still be read on.
        assert {} in (live.receive_json() for _ in range(10))
    with inside.websocket_connect(at) as live:
        assert live.receive_json()["number"] == inside.shelf.number()
    with inside.websocket_connect(f"{at}?run=nothing") as live:
        assert live.receive()["code"] == 1008
    inside.cookies.clear()
    with pytest.raises(WebSocketDisconnect), inside.websocket_connect(at):
        pass


# -- the command -----------------------------------------------------------------------------------


def test_what_cannot_be_served(llm_games, tmp_path):
    code, out, err = llm_games("view", tmp_path / "nothing.db", "--no-open")
    assert (code, out) == (2, "")
    assert "there is no file" in err
    with closing(socket.create_server(("127.0.0.1", 0))) as busy:
        port = busy.getsockname()[1]
        code, out, err = llm_games("view", tmp_path, "--port", port)
    assert (code, out) == (2, "")
    assert f"cannot listen at 127.0.0.1, port {port}: Address already in use; give" in err
    assert "give another --port, or 0 for any free one" in err
    for port, needed in (("abc", "a valid integer"), ("70000", "less than or equal to 65535")):
        code, out, err = llm_games("view", tmp_path, "--port", port)
        assert (code, out) == (2, "")
        assert f"'--port': it should be {needed}, got {port!r}" in err


SLOW = """
import sys, time
from llm_games.benchmarks.show.cli import main
from llm_games.benchmarks.show.view import run_page

def report(*_):
    print("making it", flush=True)
    time.sleep(600)

run_page.report = report
main()
"""


@pytest.mark.slow
def test_it_ends_while_a_page_is_being_made(copy, tmp_path):
    more = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", SLOW, "view", str(copy), "--port", "0", "--no-open"]
    with subprocess.Popen(
        command, env=os.environ | more, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as viewer:
        try:
            address = viewer.stdout.readline().rstrip()
            with httpx.Client(follow_redirects=True, timeout=60) as client:
                client.get(address)
                client.timeout = 0.5
                page = f"{address.partition('/?')[0]}/run/{RunFile(copy, None).id}/report"
                with pytest.raises(httpx.ReadTimeout):
                    client.get(page)
            assert viewer.stdout.readline() == "making it\n"
        finally:
            viewer.send_signal(signal.SIGINT)
            _, err = viewer.communicate(timeout=60)
    assert viewer.returncode == 0
    assert err.splitlines()[-1].startswith("1 run in ")


@pytest.mark.slow
def test_as_a_process(copy, tmp_path):
    text = tmp_path / "letter.db"
    text.write_text("a letter")
    command = [sys.executable, "-m", "llm_games.benchmarks.show.cli", "view", str(copy), str(text)]
    more = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache"), "COLUMNS": "20"}
    with subprocess.Popen(
        [*command, "--port", "0", "--no-open"], env=os.environ | more, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as viewer:  # fmt: skip
        try:
            address = viewer.stdout.readline().rstrip("\n")
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=\S{32}", address)
            with httpx.Client(follow_redirects=True, timeout=60) as client:
                assert "A run" in client.get(address).text
                base = address.partition("/?")[0]
                for how in ({"headers": {"x": "y" * 1_000_000}}, {"content": b"x" * 1_000_000}):
                    with suppress(httpx.TransportError):  # it does not listen to the end
                        assert client.request("POST", base, **how).status_code in (400, 403, 404)
                cookies = {"Cookie": "; ".join(f"{k}={v}" for k, v in client.cookies.items())}
                with connect(base.replace("http", "ws") + "/live", additional_headers=cookies) as s:
                    assert "number" in json.loads(s.recv())
                    s.send("x" * 1_000_000)
                    with pytest.raises(ConnectionClosed) as closed:
                        list(iter(s.recv, None))
                    assert closed.value.rcvd.code == 1009
                assert client.get(base).status_code == 200
        finally:
            viewer.send_signal(signal.SIGINT)
            out, err = viewer.communicate(timeout=60)
    assert viewer.returncode == 0
    assert out == ""
    assert "not shown: " in err
    assert "letter.db is not a run" in err
    assert "Traceback" not in err
