"""What did not play is in no mean, figure, best reply or regret; tables have answer and move."""

import json

import numpy as np
import pytest
from playing import each_row

from llm_games.baselines.hindsight import hindsight
from llm_games.baselines.regret import deviation
from llm_games.benchmarks.record import recorded_games
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run import api
from llm_games.benchmarks.show.page.figures import seats_mean
from llm_games.benchmarks.show.view.episode_page import words
from llm_games.questions import BEYOND, MISSING, NO_BID
from llm_games.registry import rulebook
from llm_games.wrappers.clients.scripted import ScriptedClient

BROKEN = [
    ("beauty_contest", {"players": 3, "rounds": 2}, {"chosen_number": 10**26}, None),
    ("beauty_contest", {"players": 3, "rounds": 2}, {"chosen_number": 150}, 150),
    ("budget_auction", {"players": 3, "rounds": 2}, {"bid": 10**9}, 10**11),
]


@pytest.fixture(params=BROKEN, ids=["too large for arrays", "out of range", "beyond assets"])
def episode(request, tmp_path):
    game, params, reply, answer = request.param
    client = ScriptedClient(lambda _: json.dumps(reply))
    seats = [client, *["rational"] * 2]
    entry = {"game": game, "params": params, "seats": seats, "episodes": 1}
    api.run({"games": [entry]}, tmp_path / "run.db")
    with Records.open_readonly(tmp_path / "run.db") as records:
        yield recorded_games.read(records, "v4").games[0].done[0], answer, records


def test_means_leave_it_out(episode):
    episode, _, _ = episode
    assert np.isnan(seats_mean(episode, [0])).all()
    assert seats_mean(episode, [0, 1]) == seats_mean(episode, [1])


def test_it_has_no_regret(episode):
    episode, _, _ = episode
    regret = episode.regret()
    assert np.isnan(regret[0]).all()
    assert np.isfinite(regret[1:]).all()
    assert np.isfinite(episode.seat_regret())


def test_tables_have_what_was_answered_and_what_played(episode):
    _, answer, records = episode
    rows = [row for _, row in records.table("decisions")]
    assert [row["action"] for row in rows if row["seat"] == 0] == [answer, answer]
    assert [row["played"] for row in rows if row["seat"] == 0] == [None, None]
    assert all(row["played"] == row["action"] for row in rows if row["seat"])


def test_hindsight_knows_no_best_reply_to_it():
    game = rulebook("beauty_contest", players=3)
    moves = np.array([BEYOND, 5, 0])
    assert hindsight(game, game.reset(0), moves, 0) is None
    assert hindsight(game, game.reset(0), moves, 1) is not None
    assert words(None, BEYOND) == "a number too large for any game"


def test_a_bid_above_the_balance_counts_as_the_rules_say():
    for rule in ("void", "clip"):
        game = rulebook("water_allocation", over_budget=rule)
        state = game.reset(0)
        purse = int(game.purse(state)[0])
        _, outcome = game.step(state, np.array([10**12, *[1] * 4]))
        record = {name: outcome.record[name] for name in outcome.record}
        played = purse if rule == "clip" else NO_BID
        assert game.effective(record).tolist() == [played, 1, 1, 1, 1]


@each_row("breaker", ["exclude", "include", "void_round"])
def test_who_is_left_out_is_as_the_rules_say(breaker):
    game = rulebook("beauty_contest", players=3, rule_breaker=breaker)
    _, outcome = game.step(game.reset(0), np.array([150, MISSING, 20]))
    counts = game.effective(outcome.record).tolist()
    assert counts == [150 if breaker == "include" else MISSING, MISSING, 20]
    lost = deviation(game, outcome.record).regret
    assert np.isnan(lost).tolist() == [breaker != "include", True, False]
