"""Reliability of recorded runs: what success is, pass^k over games, and variance by its sources."""

import json
from math import comb

import numpy as np
import pytest
from playing import each_row
from test_report import Text
from typer.testing import CliRunner

from llm_games.benchmarks.judge.reliability import pass_grid, reliability, splits, tasks
from llm_games.benchmarks.judge.results import scores
from llm_games.benchmarks.judge.success import Success
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.plan import Overrides, players, resolve
from llm_games.benchmarks.show.cli import app
from llm_games.benchmarks.show.page import build
from llm_games.errors import BadParameter, LLMGamesError, UnknownName

THREE = [{"game": name} for name in ("public_goods", "el_farol_bar", "diners_dilemma")]


def play(path, **raw):
    raw = {"seats": ["random"], "episodes": 6, "games": THREE} | raw
    plan = resolve(parse(raw, "test"), "test", Overrides())
    play_run(lambda: start(plan, path), plan, players(plan))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return play(tmp_path_factory.mktemp("run") / "run.db", success="score >= 50")


@each_row(
    ("text", "what", "holds", "fails"),
    [
        ("score >= 80", "score", (80, 80 - 1e-12, 93), (79.9,)),
        ("regret<1.5", "regret", (0, 1.4), (1.5, 1.5 - 1e-12, 2)),
        (" payoff > -2 ", "payoff", (-1.9,), (-2, -2 + 1e-12, -3)),
        ("failed bids <= 1e-1", "failed bids", (0, 0.1), (0.11,)),
    ],
)
def test_what_success_is(text, what, holds, fails):
    success = Success.of(text)
    assert success.what == what
    assert Success.of(str(success)) == success
    assert all(map(success._holds, holds))
    assert not any(map(success._holds, fails))


@each_row("text", ["", "score", "score 80", "score >= high", ">= 80", "score = 80"])
def test_success_that_cannot_be_read(text):
    with pytest.raises(BadParameter, match="such as 'score >= 80'"):
        Success.of(text)
    with pytest.raises(ConfigError, match="success"):
        parse({"games": THREE, "success": text}, "test")


def test_success_of_what_there_is_not():
    with pytest.raises(UnknownName, match="did you mean 'score'"):
        Success.of("scores >= 80")
    with pytest.raises(ConfigError, match=r"games\[0\].success .* did you mean 'payoff'"):
        parse({"games": [THREE[0] | {"success": "payof > 1"}]}, "test")


def test_tasks_are_games_and_are_not_pooled(run):
    with Records.open_readonly(run) as records:
        found = games(records)
        own = tasks(found, None, "corrected")
        game_scores = [scores(game, "corrected") for game in found]
        shares, passes = reliability(found, "corrected", None)[:2]
    counts = [sum(score >= 50 for score in some) for some in game_scores]
    assert [(task.passed, task.runs, task.player) for task in own] == [
        (c, 6, "all") for c in counts
    ]
    assert 0 < sum(counts) < 18
    assert [row["share n"] for row in shares.dicts()] == [6] * 3
    for row in passes.dicts():
        k = row["k"]
        assert row["pass^k"] == pytest.approx(np.mean([comb(c, k) / comb(6, k) for c in counts]))
        assert row["pass^k low"] <= row["pass^k"] <= row["pass^k high"]
    assert [row["k"] for row in passes.dicts()] == [1, 2, 3]


def test_payoffs_are_of_each_player(tmp_path):
    seats = [*["fixed:cheap"] * 5, *["fixed:costly"] * 5]
    game = THREE[2] | {"seats": seats, "success": "payoff > 85"}
    path = play(tmp_path / "two.db", games=[game, game | {"label": "again"}], episodes=2)
    with Records.open_readonly(path) as records:
        found = tasks(games(records), None, "corrected")
    assert [(task.player, task.passed, task.runs) for task in found] == [
        (name, passed, 2)
        for _ in range(2)
        for name, passed in (("fixed:cheap", 0), ("fixed:costly", 2))
    ]
    assert "MOVER" in str(list(pass_grid(found, 1).dicts()))
    once = pass_grid([*found, found[0]._replace(player="guest")])  # keeps nobody else from theirs
    assert {row["player"] for row in once.dicts()} == {"fixed:cheap", "fixed:costly"}
    assert "guest: pass^k needs 2 tasks or more" in once.note
    shared = [task._replace(chance=1) for task in found]  # of two labels
    assert "mean of ends" in str(list(pass_grid(shared, 1).dicts()))


def test_variance_is_split_where_the_design_is_crossed(tmp_path):
    vary = [{"prompts": f"v{i}"} for i in range(1, 6)]
    same = {"game": "divide_dollar", "params": {"players": 5, "rounds": 2}, "chance": "one"}
    path = play(
        tmp_path / "five.db", games=[same], vary=vary, seats=["tiny:constrained"], episodes=5
    )
    with Records.open_readonly(path) as records:
        found = games(records)
        payoff, score = splits(found, "corrected")
        alone = splits(found[:4], "corrected")
        few = splits([game for game in found if game.label.endswith("v9")], "corrected")
    assert [part.name for part in payoff.parts] == [
        *("wording", "seat", "chance", "rest and sampling"),
    ]
    assert [part.name for part in score.parts] == ["wording", "chance", "rest and sampling"]
    assert sum(part.share for part in payoff.parts) == pytest.approx(1)
    assert {split.of for split in alone} == {"payoff of a seat"}
    assert [[part.name for part in split.parts][:2] for split in alone] == [["seat", "chance"]] * 4
    assert few == []


def test_repeats_of_the_same_chance_tell_sampling_apart(tmp_path):
    game = {"game": "diners_dilemma", "params": {"players": 5, "rounds": 2}, "chance": "one"}
    both = [game | {"label": label} for label in ("a", "b")]
    path = play(tmp_path / "twice.db", games=both, episodes=5)
    with Records.open_readonly(path) as records:
        [payoff] = splits(games(records), "corrected")
    assert [part.name for part in payoff.parts] == ["seat", "chance", "rest", "sampling"]
    assert payoff.parts[-1].levels == 2
    seats = [{"player": "tiny", "prompts": prompts, "name": "it"} for prompts in ("v1", "v2")]
    other = [game | {"label": seat["prompts"], "seats": [seat]} for seat in seats]
    path = play(tmp_path / "two.db", games=other, episodes=5)
    with Records.open_readonly(path) as records:
        found = splits(games(records), "corrected")
    assert {part.name for split in found for part in split.parts} == {
        *("seat", "chance", "rest and sampling"),
    }


def ask(*arguments):
    return CliRunner().invoke(app, ["analyse", "reliability", *map(str, arguments)])


def test_the_command_and_the_page(run, tmp_path):
    found = json.loads(ask(run, "--json", "-k", 3).stdout)
    assert [row["k"] for row in found["pass_k"]] == [3]
    assert {row["source"] for row in found["variance"]} == {"seat", "chance", "rest and sampling"}
    assert "score >= 10" in ask(run, "--success", "score >= 10", "--game", "public_goods").stdout
    text = Text(build([run], tmp_path).read_text("utf-8")).text
    assert "All of k runs" in text
    assert "Where the variance comes from" in text
    assert {"tasks.csv", "pass_k.csv", "variance.csv"} <= {
        file.name for file in (tmp_path / "tables").iterdir()
    }


@each_row(
    ("arguments", "why"),
    [
        (["--success", "survivors > 2"], "public_goods has no survivors in every episode"),
        (["-k", "4"], "pass.4 needs 8 runs of every task, got 6"),
        (["-k", "2", "--game", "public_goods"], "needs 2 tasks or more"),
        (["--game", "golf"], "no game of this run 'golf'"),
        (["--scoring", "v0"], "no edition 'v0'"),
    ],
)
def test_bad_input(run, arguments, why):
    failed = ask(run, *arguments)
    assert isinstance(failed.exception, LLMGamesError)
    assert failed.exception.args[0]
    with pytest.raises(LLMGamesError, match=why):
        raise failed.exception


def test_a_run_that_says_nothing_of_reliability(tmp_path):
    path = play(tmp_path / "one.db", games=THREE[:1], episodes=1)
    assert "give --success" in str(ask(path).exception)
    assert "no edition" in str(ask(path, "--scoring", "v0").exception)
    shown = ask(path, "--success", "score > 1")
    assert shown.exit_code == 0
    assert "There is no pass^k" in shown.stdout
    [why] = json.loads(ask(path, "--success", "score > 1", "--json").stdout)["missing"]
    assert "needs 2 tasks or more" in why


def test_a_page_says_what_success_is_not_said_of(tmp_path):
    path = play(tmp_path / "odd.db", games=THREE[:1], success="survivors > 2", episodes=2)
    text = Text(build([path], tmp_path).read_text("utf-8")).text
    assert "public_goods has no survivors in every episode" in text
