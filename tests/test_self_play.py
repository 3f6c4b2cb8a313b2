"""Self-play: a league of past selves that grows, is drawn from, and goes on after a stop."""

import json
import pickle
import zipfile

import numpy as np
import pytest
import torch
from playing import each_row
from stable_baselines3 import PPO

import llm_games as lg
from llm_games.baselines.learner import learners
from llm_games.baselines.players import make_player
from llm_games.baselines.training import self_play
from llm_games.baselines.training.harness import Training, curve
from llm_games.benchmarks.studies import league_gains as league_figures
from llm_games.benchmarks.studies.dated import read
from llm_games.errors import BadParameter
from llm_games.registry import rulebook
from llm_games.table_batch import Tables
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.sb3 import SB3VecEnv

GOODS = {"players": 3, "rounds": 4}


@pytest.fixture(autouse=True)
def _few_games(monkeypatch):
    end = Training.end
    monkeypatch.setattr(Training, "end", lambda run, own, name: end(run, own, name, games=10))


def league(draw="pfsp", latest=0.5, members=("fixed:0", "fixed:5", "fixed:9")):
    found = self_play.League(latest, draw)
    for name in members:
        found.join(make_player(name, "public_goods"))
    return found


def settings(folder, **given):
    usual = {
        "game": "public_goods",
        "param": ["players=3", "rounds=4"],
        "copies": 8,
        "rollout": 8,
        "steps": 512,
        "episodes": 6,
        "matches": 6,
        "width": 8,
    }
    return self_play.SelfPlaySettings(**{**usual, "folder": folder, **given})


@each_row(
    ("draw", "beaten", "expected"),
    [
        ("pfsp", [0.9, 0.5, 0.0], [0.5 * 0.02 / 0.28, 0.5 * 0.26 / 0.28, 0.5]),
        ("uniform", [0.9, 0.5, 0.0], [0.25, 0.25, 0.5]),
    ],
)
def test_past_selves_are_drawn_the_likelier_the_less_they_are_beaten(draw, beaten, expected):
    found = league(draw)
    found.weigh(np.array(beaten))
    assert np.allclose(found.weights, expected)
    assert np.isclose(found.weights.sum(), 1)


def test_a_league_of_one_is_that_one():
    assert league(members=["fixed:5"]).weights.tolist() == [1.0]


def test_a_league_grows_between_episodes_and_games_under_way_stay_as_they_are():
    game, found = rulebook("public_goods", **GOODS), league(latest=0.9, members=["fixed:0"])
    tables = Tables(game, 40)
    seats = BatchSeats(tables, [found], np.zeros((3, 40), np.int64))
    tables.reset(list(range(40)))
    seats.start(np.ones(40, np.bool_))
    tables.step(seats.ask_now(tables.ready().turn))
    found.join(make_player("fixed:9", game))
    moves = seats.ask_now(tables.ready().turn)
    assert (moves == 0).all()
    tables.step(moves)
    some = np.arange(40) < 20
    tables.reset([None] * 40, some)
    seats.start(some)
    moves = seats.ask_now(tables.ready().turn)
    assert (moves[:, 20:] == 0).all()
    share = (moves[:, :20] == 9).mean()
    assert 0.75 < share < 1  # nine of ten, and some of the old one


def test_who_beats_whom_is_counted_in_all_seats_and_ties_are_half():
    game = rulebook("public_goods", **GOODS)
    free, gives, same = (make_player(f"fixed:{n}", game) for n in (0, 9, 0))
    found = self_play.beaten(game, free, [gives, same], 12)
    assert found.tolist() == [1.0, 0.5]
    assert self_play.beaten(game, gives, [free], 12).tolist() == [0.0]


def test_a_copy_stays_as_it_was_when_the_model_learns_on():
    games = learners("public_goods", 4, **GOODS, opponents="random", normalize=True)
    env = SB3VecEnv(games)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=16, seed=1)
    copy, game = self_play.copied(model, env), rulebook("public_goods", **GOODS)
    before = {name: value.clone() for name, value in copy.model.policy.state_dict().items()}
    model.learn(64)
    after, now = copy.model.policy.state_dict(), model.policy.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert any(not torch.equal(now[name], after[name]) for name in before)
    games = [lg.play(game, [copy] * 3, seed=seed).payoffs.tolist() for seed in (3, 3, 4)]
    assert games[0] == games[1] != games[2]  # it draws, by the seats' own chance


@pytest.mark.long
def test_a_training_keeps_its_past_selves_as_players_and_judges_itself(tmp_path):
    self_play.train(settings(tmp_path))
    files = sorted(int(file.stem) for file in (tmp_path / "league").glob("*.zip"))
    assert files[-1] == 512
    assert len(files) == 8  # as often as there was an update
    found = curve(tmp_path)
    assert found["self/payoff"][0].tolist() == [0, *files]
    assert {"payoff", "self/regret", "self/nash_conv", "league/beaten"} <= {*found}
    names = [f"sb3:{tmp_path / 'league' / f'{step}.zip'}" for step in (files[0], files[-1])]
    lg.play("public_goods", [make_player(n) for n in (*names, "rational")], **GOODS)


@pytest.mark.long
def test_a_training_that_was_stopped_goes_on_with_its_league(tmp_path, monkeypatch):
    self_play.train(settings(tmp_path / "whole"))
    grown = self_play.grown

    def stops(run, model, env):
        run.stopping = run.step == 256
        return grown(run, model, env)

    monkeypatch.setattr(self_play, "grown", stops)
    with pytest.raises(KeyboardInterrupt):
        self_play.train(settings(tmp_path / "parts"))
    monkeypatch.setattr(self_play, "grown", grown)
    self_play.train(settings(tmp_path / "parts", resume=True))
    weights = [PPO.load(tmp_path / part / "player.zip").policy for part in ("whole", "parts")]
    one, other = (network.state_dict() for network in weights)
    assert all(torch.equal(one[name], other[name]) for name in one)
    names = [sorted(f.name for f in (tmp_path / part / "league").iterdir()) for part in
             ("whole", "parts")]  # fmt: skip
    assert names[0] == names[1]


def test_a_league_goes_on_where_those_who_judge_it_ask_a_model(tmp_path):
    judged = {"param": ["players=2", "rounds=1"], "episodes": 2, "matches": 2}
    self_play.train(settings(tmp_path, steps=128, opponents=["tiny"], **judged))
    self_play.train(settings(tmp_path, steps=192, opponents=["tiny"], resume=True, **judged))
    kept = pickle.loads((tmp_path / "state").read_bytes())
    (league,) = kept["games"].opponents
    assert len(league.players) == 1 + len([*(tmp_path / "league").iterdir()]) == 4


@pytest.mark.long
def test_a_past_self_of_another_game_is_refused(tmp_path):
    self_play.train(settings(tmp_path, steps=64))
    file = tmp_path / "league" / "64.zip"
    about = json.loads(zipfile.ZipFile(file).read("player.json"))
    assert about["trained"]["game"] == "public_goods"
    with pytest.raises(BadParameter, match="was trained for public_goods with 3 players"):
        lg.player(f"sb3:{file}", "divide_dollar")


def test_the_results_are_of_all_experiments_and_seeds():
    found = read(league_figures.LeagueResult, league_figures.FILE)
    held = {(row.experiment, row.seed) for row in found if row.seed}
    assert {one["name"] for one in league_figures.EXPERIMENTS} == {name for name, _ in held}
    assert {seed for _, seed in held} == {*league_figures.SEEDS}


def test_what_an_experiment_does_not_say_is_as_in_the_one_that_it_is_like():
    first, *others = [one for one in league_figures.EXPERIMENTS if "mc" in one.get("best", ())]
    for other in others:
        assert other["best"] == first["best"]
        assert other["options"] == first["options"] | {"opponents": other["options"]["opponents"]}
        assert other["options"]["opponents"] != first["options"]["opponents"]


def test_learners_are_compared_with_the_best_player_by_rule():
    name = league_figures.EXPERIMENTS[0]["name"]
    more = 1.0, "2026-11-23", "torch 2"
    paid = [(f"{league_figures.RULE}: a", 0, 4.0), (f"{league_figures.RULE}: b", 0, 8.0)]
    paid += [("self_play", seed, value) for seed, value in ((1, 6.0), (2, 10.0))]
    rows = [
        league_figures.LeagueResult(name, who, seed, 0, "payoff at last", value, *more)
        for who, seed, value in paid
    ]
    (row,) = league_figures.compared(rows).splitlines()[2:]
    assert "| `b` 8.0 | 100.0% [-217.7% to 417.7%] |" in row  # t of 1 degree, 12.71 * 0.25
