"""Tables that ask nobody are played together, and recorded as one after another."""

import os
import signal
import time

import numpy as np
import pytest

import llm_games as lg
from llm_games.baselines import crossplay as crossplay_module
from llm_games.baselines.crossplay import crossplay, payoffs
from llm_games.baselines.players import make_player
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run import conduct
from llm_games.benchmarks.run.batches import batches
from llm_games.benchmarks.run.conduct import play_run, seated_players, start
from llm_games.benchmarks.run.plan import plan_of
from llm_games.errors import BadParameter
from llm_games.registry import rulebook
from tests.run_rows import written

SMALL_ROOM = {"layout": "small", "players": 4, "max_rounds": 2}
RUNS = {
    "several seatings and line-ups": {
        "game": "sealed_bid_auction",
        "players": ["rational", "random", "shade:0.5"],
        "params": {"players": 3, "rounds": 2},
        "episodes": 4,
    },
    "turns, and steps in little": {
        "episodes": 3,
        "seats": ["rational", "random"] * 3,
        "games": [{"game": "battle_royale", "params": {"players": 6}}],
    },
    "budgets of their own, void": {
        "episodes": 3,
        "seats": ["rational", "random", "truthful"],
        "games": [
            {
                "game": "english_auction",
                "params": {"players": 3, "budgets": [3000, 4000, 5000]},
                "max_steps": 9,
            }
        ],
    },
    "two games": {
        "episodes": 3,
        "seats": ["rational", "random"],
        "games": [
            {"game": "public_goods", "params": {"players": 2, "rounds": 3}},
            {"game": "water_allocation", "params": {"players": 2, "days": 6}},
        ],
    },
    "rounds that end at one table before another": {
        "episodes": 3,
        "seats": ["random"],
        "seed": 5,
        "games": [{"game": "emergency_evacuation", "params": SMALL_ROOM}],
    },
}


@pytest.mark.parametrize("raw", RUNS.values(), ids=RUNS)
def test_a_batch_is_recorded_as_one_table_after_another(raw, tmp_path, monkeypatch):
    """To the letter of every column but times."""
    together = lg.run(raw, tmp_path / "together.db").path
    monkeypatch.setattr(conduct, "batches", lambda *_: iter(()))
    alone = lg.run(raw, tmp_path / "alone.db").path
    assert written(together) == written(alone)
    with Records.open_readonly(together) as records:
        rows = records.episodes()
        assert {row.status for row in rows} <= {"done", "void"}
        assert all(records.steps(row.id) for row in rows)


def test_a_batch_can_be_stopped(tmp_path):
    """In its midst, where none of it was played."""
    raw = {"episodes": 3, "games": [{"game": "public_goods", "seats": ["random"]}]}
    alone = written(lg.run(raw, tmp_path / "alone.db").path)
    plan, path, looks = plan_of(raw), tmp_path / "run.db", []

    def watch(counters):
        looks.append(counters.decisions)
        if counters.decisions:
            os.kill(os.getpid(), signal.SIGINT)

    with seated_players(plan) as players, pytest.raises(KeyboardInterrupt):
        play_run(lambda: start(plan, path), plan, players, watch)
    assert looks == [0, 3 * plan.games[0].rules().players]
    with Records.open_readonly(path) as records:
        assert {row.status for row in records.episodes()} == {"pending"}
    lg.resume(path)
    assert written(path) == alone


def test_who_is_batched(tmp_path):
    """Those alone who follow rules by numbers, in episodes that nobody has begun."""
    raw = {
        "episodes": 2,
        "games": [
            {"game": "public_goods", "seats": ["random"], "label": "by rule"},
            {"game": "public_goods", "seats": ["random"], "label": "series", "series": True},
            {"game": "public_goods", "seats": ["tiny"], "label": "model"},
            {"game": "public_goods", "seats": ["random"], "talk": {"turns": 1}, "label": "talk"},
            {"game": "pirate_game", "seats": ["random"], "label": "plans"},
        ],
    }
    plan = plan_of(raw)
    with seated_players(plan) as players, start(plan, tmp_path / "run.db") as store:
        games = {game.label: game for game in plan.games}
        found = [*batches(store.episodes(), games, players)]
    assert [row.game.label for batch in found for row in batch.episodes] == ["by rule"] * 2


@pytest.mark.long
def test_batches_are_many_times_as_fast(tmp_path, monkeypatch):
    """By CPU time a game; 10 times with rows on a quiet machine, and hundreds of times as sums."""
    params = {"players": 4, "rounds": 10}

    def seconds(name, games):
        raw = {"game": "public_goods", "seats": ["rational", *["random"] * 3], "params": params}
        begun = time.process_time()
        lg.run({"episodes": games, "games": [raw]}, tmp_path / f"{name}.db")
        return (time.process_time() - begun) / games

    seconds("first", 2)  # what is imported
    together = seconds("together", 5000)
    rules, begun = rulebook("public_goods", **params), time.process_time()
    payoffs(rules, ["rational", "random"], np.array([[1, 3]]), range(100_000))
    sums = (time.process_time() - begun) / 100_000
    monkeypatch.setattr(conduct, "batches", lambda *_: iter(()))
    alone = seconds("alone", 500)
    assert alone > 6 * together
    assert alone > 80 * sums


def test_processes_play_the_same_cross_play(monkeypatch):
    """Batch for batch, of which there are three."""
    monkeypatch.setattr(crossplay_module, "TOGETHER", 20)
    rules, names = rulebook("public_goods", players=3, rounds=4), ["rational", "random"]
    alone = crossplay(rules, names, range(15)).earned
    assert crossplay(rules, names, range(15), workers=2).earned.tobytes() == alone.tobytes()
    with pytest.raises(BadParameter, match="by their names alone"):
        crossplay(rules, ["random", make_player("rational")], range(15), workers=2)


def test_sums_are_those_of_the_games_one_by_one(tmp_path, monkeypatch):
    """Of a cross-play, whose payoffs without a run are sums alone."""
    monkeypatch.setattr(conduct, "batches", lambda *_: iter(()))
    game, names = {"params": {"players": 3, "rounds": 4}}, ["rational", "random"]
    raw = {"game": "public_goods", "players": names, "episodes": 6, **game}
    with Records.open_readonly(lg.run(raw, tmp_path / "run.db").path) as records:
        paid, episodes = records.payoffs(), records.episodes()
    seeds = [row.seed for row in episodes if row.game.id == 1]
    rules = rulebook("public_goods", **game["params"])
    cross = crossplay(rules, names, seeds)
    for row, counts in enumerate(cross.counts):
        mine = [episode for episode in episodes if episode.game.id == row + 1]
        assert sorted(mine[0].game.seats) == sorted(np.repeat(names, counts).tolist())
        for episode, earned in zip(mine, cross.earned[row].T.tolist(), strict=True):
            by_place = np.argsort(episode.seating)
            assert np.array(paid[episode.id])[by_place].tolist() == earned
