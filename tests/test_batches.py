"""Tables that ask nobody are played together, and recorded as one after another."""

from itertools import chain

import pytest

import llm_games as lg
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.batches import batches
from llm_games.benchmarks.run.conduct import rows_of, seated_players, start
from llm_games.benchmarks.run.plan import plan_of
from llm_games.wrappers.play import play_table
from llm_games.wrappers.together import run_sync

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
def test_a_batch_is_recorded_as_one_table_after_another(raw, tmp_path):
    path = lg.run(raw, tmp_path / "run.db").path
    plan = plan_of(raw)
    games = {game.label: game for game in plan.games}
    with seated_players(plan) as players, Records.open_readonly(path) as records:
        assert {row.status for row in records.episodes()} <= {"done", "void"}
        for row in records.episodes():
            game = games[row.game.label]
            policies = [players[game.seats[place].key] for place in row.seating]
            table = play_table(row.rules(), policies, row.seed, max_steps=game.max_steps)
            episode = run_sync(table)
            steps, decisions = zip(*map(rows_of, episode.steps), strict=True)
            assert records.steps(row.id) == [*steps]
            assert records.decisions(row.id) == [*chain.from_iterable(decisions)]
            assert (row.status == "done") == episode.over
            assert (row.reason is None) == episode.over


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
