"""What the viewer's pages of runs, games, lists and comparisons show, without a browser."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from urllib.parse import parse_qs

import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games.benchmarks.record.run_settings import told_apart
from llm_games.benchmarks.record.schema import GuestRow
from llm_games.benchmarks.run.api import Results
from llm_games.benchmarks.show.view import compare_page, list_page, run_page
from llm_games.benchmarks.show.view.curve import curve, ticks
from llm_games.benchmarks.show.view.filter import Filter
from llm_games.benchmarks.show.view.render import number, render
from llm_games.benchmarks.show.view.run_shelf import NoSuchRun, RunShelf
from llm_games.errors import UnknownName

GAME = {"game": "public_goods", "params": {"players": 3, "rounds": 3}}
SEATS = ["rational", "random", "random"]
RUN = {"title": "A <run>", "games": [GAME], "seats": SEATS, "order": "fixed", "seed": 2}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    lg.run(RUN | {"episodes": 2}, folder / "a.db")
    lg.run(RUN | {"episodes": 2, "seats": ["random", *SEATS[1:]]}, folder / "b.db")
    lg.run(RUN | {"episodes": 1, "seed": 3}, folder / "c.db")
    found = RunShelf([folder], tmp_path_factory.mktemp("cache"))
    yield found
    found.close()


def test_what_is_empty_tells_no_run_apart():
    """A branch has tables that are empty where its origin has none."""
    empty = {("settings",): {}, ("max_steps",): None, ("tools",): [], ("persona",): ""}
    assert told_apart([{("seed",): 2}, empty | {("seed",): 0}]) == [["seed 2"], ["seed 0"]]


def run_of(shelf, name):
    run = next(run for run in shelf.runs() if run.path.stem == name)
    run.follow()
    while not run.decisions.complete:
        pass
    return run


def test_the_list_of_runs_and_a_run(shelf):
    shown = run_page.runs(shelf)
    assert {run.path.stem: run.progress.state for run in shown["runs"]} == dict.fromkeys(
        "abc", "complete"
    )
    assert "A &lt;run&gt;" in render("runs", **shown)
    shown = run_page.run(run_of(shelf, "a"))
    [line] = shown["lines"]
    assert (line.decisions, line.broke, shown["outcomes"]) == (18, 0, [("valid", 18)])
    text = render("run", **shown)
    assert f"{shown['base']}/{line.worst.address}?" in text
    assert "No model has been asked" in text


def test_the_list_has_what_each_run_scored_and_where_its_settings_differ(shelf):
    runs = {run.path.stem: run for run in run_page.runs(shelf)["runs"]}
    assert {setting for run in runs.values() for setting in run.differing} == {
        "player rational",
        "player random",
        "seed 2",
        "seed 3",
    }
    assert sorted(runs["b"].differing) == ["player random", "seed 2"]
    found = run_page.runs(shelf, "SEED 3 public_goods")["runs"]
    assert [run.path.stem for run in found] == ["c"]
    address = f"/run/{runs['a'].id}/score"
    assert f'data-src="{address}"' in render("runs", **run_page.runs(shelf))
    scores = Results(runs["a"].path).scores["public_goods"]
    shown = run_page.score(run_of(shelf, "a"))
    assert shown["score"] in render("score", **shown)
    assert float(shown["score"]) == pytest.approx(np.mean(scores), abs=0.06)
    listed = render("runs", **run_page.runs(shelf))
    assert f'class="n">{shown["score"]}</td>' in listed
    assert f'data-src="{address}"' not in listed


def test_a_filters_long_list_says_that_it_goes_on(shelf, tmp_path):
    game = {"game": "public_goods", "params": {"players": 9, "rounds": 1}}
    lg.run({"games": [game], "seats": ["random"]}, tmp_path / "nine.db")
    wide = RunShelf([tmp_path], tmp_path / "cache")
    assert "9 to scroll" in render("decisions", **list_page.decisions(run_of(wide, "nine"), []))
    assert "to scroll" not in render("decisions", **list_page.decisions(run_of(shelf, "a"), []))
    wide.close()


@pytest.mark.parametrize(
    "games",
    [None, 5, "x", [5], [{}], [{"label": [], "seats": {"x": {"y": 1}, "1": 2}, "branch": 3}]],
)
def test_what_a_stranger_describes_stops_no_list_of_runs(shelf, tmp_path, games):
    own = run_of(shelf, "a").path
    for name in ("one.db", "two.db"):
        shutil.copy(own, tmp_path / name)
    with closing(sqlite3.connect(tmp_path / "one.db")) as database:
        database.execute("UPDATE run SET config = ?", [json.dumps({"games": games})])
        database.commit()
    with closing(RunShelf([tmp_path], tmp_path / "cache")) as strange:
        assert len(run_page.runs(strange)["runs"]) == 2
        assert "two.db" in render("runs", **run_page.runs(strange))


def test_scores_are_worked_out_once(shelf, monkeypatch):
    run = run_of(shelf, "a")
    first = run_page.scores(run)["grids"]
    assert [row[0] for row in first[0].rows] == ["public_goods"]
    monkeypatch.setattr(run_page, "_tables", lambda records: pytest.fail("again"))
    assert run_page.scores(run)["grids"] is first


def test_a_game_has_its_episodes_and_figures(shelf):
    shown = run_page.game(run := run_of(shelf, "a"), "public_goods")
    columns = run.decisions.columns()
    for line in shown["episodes"]:
        own = columns["episode"] == line.row.id
        assert (line.decisions, line.regret) == (own.sum(), columns["regret"][own].mean())
    regret, payoff = shown["curves"]
    assert [line.player for line in payoff.lines] == ["rational", "random"]
    assert [point.words.split(":")[0] for point in regret.lines[0].points] == [
        f"rational, round {n}" for n in (1, 2, 3)
    ]
    mean = columns["payoff"][(columns["player"] == 1) & (columns["round"] == 2)].mean()
    assert payoff.lines[1].points[1].words == f"random, round 2: mean payoff {mean:.4g} of 4"
    with pytest.raises(UnknownName, match="public_goods"):
        run_page.game(run, "public_good")


def test_points_of_many_rounds_lead_to_all_their_decisions():
    rounds = np.arange(1, 131)
    columns = {
        "game": np.zeros(130, int),
        "player": np.zeros(130, int),
        "phase": np.zeros(130, int),
        "round": rounds,
        "payoff": rounds.astype(float),
    }
    found = curve(columns, {"game": ["g"], "player": ["p"]}, "g", "payoff")
    points = found.lines[0].points
    assert (found.together, len(points)) == (3, 44)
    assert parse_qs(points[1].query)["round"] == ["4", "5", "6"]
    assert "mean payoff 5 of 3" in points[1].words
    assert parse_qs(points[-1].query)["round"] == ["130"]
    xs = [point.x for point in points]
    assert xs == sorted(xs)
    assert found.across[0][1] == "1"
    assert found.across[-1][1] == "130"
    assert curve(columns, {"game": ["g"], "player": ["p"]}, "another", "payoff") is None


@each_row(
    ("low", "high", "marks"),
    [(0, 7, [0, 2, 4, 6, 8]), (-0.03, 0, [-0.03, -0.02, -0.01, 0]), (5, 5, [5, 6])],
)
def test_marks_of_an_axis(low, high, marks):
    assert ticks(low, high) == pytest.approx(marks)


def test_a_list_says_what_narrows_it_and_how_to_undo_that(shelf):
    run = run_of(shelf, "a")
    shown = list_page.decisions(run, [("player", "random"), ("regret_min", "1")])
    assert [chip.words for chip in shown["chips"]] == ["player: random", "regret at least 1.0"]
    assert [chip.query for chip in shown["chips"]] == ["regret_min=1", "player=random"]
    assert "regret_min=1&amp;sort=-regret" in render("decisions", **shown)
    again = list_page.decisions(run, [("sort", "-regret")])
    assert again["page"].filter.direction("regret") == "descending"
    assert "decisions?sort=regret" in render("decisions", **again)
    marked = list_page.decisions(run, [("compare", f"{run.id}/decision/1/0/0"), ("sort", "regret")])
    assert (marked["problem"], marked["page"].filter.query()) == ("", "sort=regret")
    last = list_page.decisions(run, [("page", "99")])
    assert last["page"].filter.page == 1
    assert "Next page" not in render("decisions", **last)


def test_neighbours_of_a_list_are_those_beside_it(shelf):
    run = run_of(shelf, "a")
    rows = run.select(Filter(sort="-regret")).rows
    before, after = list_page.beside(run, rows[1][:3], [("sort", "-regret")])
    assert before == f"/run/{run.id}/{rows[0].address}?sort=-regret"
    assert after == f"/run/{run.id}/{rows[2].address}?sort=-regret"
    assert list_page.beside(run, rows[0][:3], [("sort", "-regret")])[0] is None
    assert list_page.beside(run, rows[0][:3], []) is None
    assert list_page.beside(run, rows[0][:3], [("sort", "x")]) is None


def test_what_can_be_compared(shelf):
    a, b, c = (run_of(shelf, name) for name in "abc")
    rows = a.select(Filter(sort="-regret")).rows
    for mine, theirs in [
        (a.id, b.id),
        (f"{a.id}/episode/1", f"{b.id}/episode/1"),
        (f"{a.id}/{rows[0].address}", f"{b.id}/{rows[0].address}"),
    ]:
        [(_, file, query)] = compare_page.compare(shelf, [mine])["twins"]
        assert (file, parse_qs(query)) == ("b.db", {"a": [mine], "b": [theirs]})
        assert render("compare", **compare_page.compare(shelf, [mine, theirs]))
    shown = compare_page.compare(shelf, [f"{a.id}/episode/1", f"{b.id}/episode/1"])
    moved = {
        (one.number, both.seat) for one in shown["moves"] for both in one.seats if both.differs
    }
    assert {seat for _, seat in moved} == {0}
    shown = compare_page.compare(shelf, [a.id, c.id])
    assert (shown["pairs"], shown["grid"]) == ([], None)
    assert "seed" in shown["why"]


@each_row(
    ("names", "error", "words"),
    [
        ([], compare_page.BadComparison, "got 0"),
        (["{a}", "{b}", "{c}"], compare_page.BadComparison, "got 3"),
        (["{a}", "{b}/episode/1"], compare_page.BadComparison, "run and episode cannot"),
        (["{a}/episode/x"], compare_page.BadComparison, "nothing to compare"),
        (["{a}/episode/1", "{c}/episode/1"], compare_page.BadComparison, "same seed"),
        (["nothing"], NoSuchRun, "no run 'nothing'"),
        (["{a}/decision/9/0/0", "{b}/decision/1/0/0"], lg.LLMGamesError, "no episode 9"),
    ],
)
def test_what_cannot_be_compared(shelf, names, error, words):
    ids = {name: run_of(shelf, name).id for name in "abc"}
    with pytest.raises(error, match=re.escape(words)):
        compare_page.compare(shelf, [name.format(**ids) for name in names])


@each_row(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (1234.5, "1,234.5"),
        (-0.001, "0"),
        (-2.0, "−2"),
        (100, "100"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


def test_a_run_that_goes_on_says_how_far_it_is_and_what_it_waits_for(shelf):
    run = run_of(shelf, "a")
    with run.records() as records:
        progress = run_page.run_progress(records)
    assert run_page.standing(progress, run.decisions, 0.0) == ["18 of about 18 decisions"]
    [game] = progress.games
    first, second = game.episodes
    first = replace(first, started="2026-01-01T00:00:00+00:00")
    went = replace(second, status="running", ended=None)
    pending = replace(second, id=3, status="pending", started=None, ended=None)
    live = progress._replace(
        holder="a process", games=[game._replace(episodes=[first, went, pending])]
    )
    began = datetime.fromisoformat(went.started).timestamp()
    [done, rest] = run_page.standing(live, run.decisions, began + 90)
    assert (done, rest) == ("18 of about 27 decisions", "about 90.0 s left")
    bought = {"prices": {"a": {}}, "budget": {"money": 5}}
    assert run_page.standing(live._replace(config=bought), run.decisions, began)[1:] == [
        "about 0 of money still to spend",
        "5 of the budget left",
    ]
    alone = live._replace(games=[game._replace(episodes=[pending])])
    assert run_page.standing(alone, run.decisions, 0.0) == ["18 of about 9 decisions"]
    assert [*run_page.waiting(live, {}, 5)] == []
    flights = {("vllm/qwen3", "public_goods/player_0"): 2}
    assert [*run_page.waiting(live, flights, 35)] == [
        "nothing new for 35.0 s in public_goods, episode 1: 2 calls not answered yet "
        "(vllm/qwen3 for public_goods/player_0)"
    ]
    assert [*run_page.waiting(progress, flights, 35)] == []
    fox = GuestRow("human 1", "human", "fox", "", "", "page")
    [line] = run_page.waiting(live, {}, 35, [fox])
    assert line.endswith(
        ": nobody asked a model; at links sit human 1 (fox, a person in a browser)"
    )
