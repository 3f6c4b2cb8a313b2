"""Many runs in one board."""

import json
from unittest.mock import patch

import numpy as np
import pytest
from playing import sampled

import llm_games as lg
from llm_games.baselines.players import PLAYERS, Kind
from llm_games.benchmarks.judge import references
from llm_games.benchmarks.judge.leaderboard import files, leaderboard
from llm_games.benchmarks.judge.paper import overall
from llm_games.benchmarks.judge.results import scores
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import read
from llm_games.benchmarks.show import cli
from llm_games.errors import BadParameter
from llm_games.wrappers.clients.base import Completion
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy

GOODS = {"game": "public_goods", "params": {"players": 3, "rounds": 2}}
BEAUTY = {"game": "beauty_contest", "params": {"players": 3, "rounds": 2}}
BARE = {"game": "divide_dollar", "params": {"players": 3, "rounds": 2}}


def _steady(value):
    def answer(request):
        if request.question is None:
            return Completion("hello", "stop", 1, 1, 0.0, f"steady-{value}")
        move = sampled(request.question, np.random.default_rng(int(value)))
        return Completion(request.question.reply(move), "stop", 7, 5, 0.0, f"steady-{value}")

    return ScriptedClient(answer)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return a folder of runs: two models, one of them twice, rule players, the embedded model."""
    folder = tmp_path_factory.mktemp("board")

    def play(name, seat, games, seed=1, others=("random", "random"), **more):
        played = [game | {"seats": [seat, *others]} for game in games]
        raw = {"title": name, "seed": seed, "episodes": 3, "games": played}
        lg.run(raw | more, db=str(folder / f"{name}.db"))

    kind = Kind("same", value="<n>", model=lambda n, _, more: LLMPolicy(_steady(n), **more))
    with patch.dict(PLAYERS, steady=kind):
        play("one", "steady:1", [GOODS, BEAUTY])
        play("one_more", "steady:1", [GOODS], seed=2)
        play("two", "steady:2", [GOODS, BARE])
        play("among", "steady:2", [GOODS], others=("rational", "rational"))
        play("melee", "steady:1", [BEAUTY], others=("steady:2", "random"))
        play("rules", "fixed:4", [BEAUTY])
        play("small", "tiny", [GOODS | {"params": {"players": 3, "rounds": 1}}], episodes=1)
        yield folder


@pytest.fixture
def board(recorded):
    opened = []

    def made(*names):
        opened.extend(Records.open_readonly(recorded / f"{name}.db") for name in names)
        return leaderboard((read(file, "corrected") for file in opened), "corrected")

    yield made
    for file in opened:
        file.close()


def payoffs(recorded, run, game, place=0):
    with Records.open_readonly(recorded / f"{run}.db") as file:
        found = next(g for g in read(file, "corrected").games if g.name == game)
        return [float(e.payoffs[place]) for e in found.done]


def rows(board, label):
    [table] = [table for table in board.tables if table.label == label]
    return {row.player: row for row in table.rows(board.names)}


def test_players_of_the_same_table_stand_together(recorded, board):
    found = board("one", "one_more", "two")
    assert [table.label for table in found.tables] == [g["game"] for g in (GOODS, BEAUTY, BARE)]
    goods = rows(found, "public_goods")
    assert set(goods) == {"steady:1", "steady:2", "rational", "random"}
    both = [payoffs(recorded, run, "public_goods") for run in ("one", "one_more")]
    assert goods["steady:1"].n == 6
    assert goods["steady:1"].payoff.mean == pytest.approx(np.mean(both))
    assert goods["steady:1"].payoff.interval.n == 6
    assert goods["steady:1"].runs == ["one", "one_more"]
    assert goods["steady:2"].n == 3
    assert [row.reference for row in goods.values()].count(True) == 2
    assert goods["random"].n == references.EPISODES


def test_a_run_that_is_given_twice_counts_once(board):
    once, twice = (rows(board(*names), "public_goods") for names in (["one"], ["one", "one"]))
    for found in (once, twice):
        assert found["steady:1"].n == 3
    assert once["steady:1"].payoff.mean == pytest.approx(twice["steady:1"].payoff.mean)
    ends = [found["steady:1"].payoff.interval[:2] for found in (once, twice)]
    assert ends[0] == pytest.approx(ends[1])


def test_runs_without_a_done_episode_say_so():
    (grid,) = leaderboard((), "corrected").grids()
    assert grid.note == "No episode of these runs is done yet."


def test_the_best_come_first_by_what_the_game_is_judged_by(board):
    found = board("one", "one_more", "two")
    for table in found.tables:
        judged = [
            (row.payoff if table.judged_by == "payoff" else row.judged).mean
            for row in table.rows(found.names)
        ]
        assert judged == sorted(judged, reverse=True)
    assert {table.judged_by for table in found.tables} == {"score"}


def test_other_company_is_another_table(board):
    found = board("two", "among")
    assert [table.label for table in found.tables] == [
        "public_goods beside 2 × random",
        "divide_dollar",
        "public_goods beside 2 × rational",
    ]
    assert set(rows(found, "public_goods beside 2 × rational")) == {
        *("steady:2", "rational", "random")
    }


def test_players_of_one_game_are_judged_by_their_payoffs(recorded, board):
    found = board("melee")
    [table] = found.tables
    assert table.judged_by == "payoff"
    for place, name in enumerate(("steady:1", "steady:2")):
        paid = payoffs(recorded, "melee", "beauty_contest", place)
        assert rows(found, "beauty_contest")[name].payoff.mean == pytest.approx(np.mean(paid))


def test_rule_players_have_rows_where_nobody_else_sat(board):
    found = board("rules")
    [table] = found.tables
    own = [row.player for row in table.rows(found.names) if not row.reference]
    assert sorted(own) == ["fixed:4", "random"]


def test_the_embedded_model_has_no_row(recorded, board, capsys):
    found = board("small")
    assert found.left_out == ["tiny in small has no row: it is the embedded model, a stand-in."]
    assert all(row.reference for row in rows(found, "public_goods").values())
    assert [table.judged_by for table in found.tables] == ["score"]


@pytest.mark.slow
def test_a_whole_benchmark_has_an_overall(recorded, tmp_path):
    """Of all its games at its settings; of none if one is missing."""
    from llm_games.benchmarks.papers.gamma_bench.page import GAMES

    seats = {"seats": ["steady:1"]}
    of_paper = [{"game": name, "params": {"preset": "gamma_bench"}} for name in GAMES]
    raw = {"title": "whole", "episodes": 2, "games": [game | seats for game in of_paper]}
    lg.run(raw, db=str(tmp_path / "whole.db"))
    lg.run(raw | {"games": raw["games"][:-1]}, db=str(tmp_path / "part.db"))
    with Records.open_readonly(tmp_path / "whole.db") as file:
        run = read(file, "corrected")
        found = leaderboard([run], "corrected")
        [(_, lines)] = found.overall()
        own, *_ = [mean for _name, mean, _n, reference in lines if not reference]
        assert own == overall([(game.name, scores(game, run.edition)) for game in run.games])
        assert {name for name, _mean, _n, reference in lines if reference} == {"rational", "random"}
    with Records.open_readonly(tmp_path / "part.db") as file:
        assert leaderboard([read(file, "corrected")], "corrected").overall() == []


def test_folders_are_all_their_files(recorded, tmp_path):
    assert files([recorded, recorded / "one.db"]) == sorted(recorded.glob("*.db"))
    with pytest.raises(BadParameter, match=r"has no \.db files"):
        files([tmp_path])


def test_command(recorded, monkeypatch, capsys):
    chosen = [str(recorded / f"{name}.db") for name in ("one", "two", "small")]
    monkeypatch.setattr("sys.argv", ["llm-games", "leaderboard", *chosen])
    cli.app(standalone_mode=False)
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("steady:1", "steady:2", "rational", "random", "offline"))
    monkeypatch.setattr("sys.argv", ["llm-games", "leaderboard", *chosen, "--json"])
    cli.app(standalone_mode=False)
    plain = json.loads(capsys.readouterr().out)
    named = {row["player"] for table in plain["games"] for row in table["rows"]}
    assert named == {"steady:1", "steady:2", "rational", "random"}
    assert len(plain["left_out"]) == 1
