"""Deviation of recorded steps: by hand, against the rules themselves, and in batches."""

import numpy as np
import pytest
from playing import each_row

from llm_games.baselines.players import make_player
from llm_games.baselines.regret import deviation, has_deviation
from llm_games.errors import UnknownName
from llm_games.game_rooms import ROOMS as GAMES
from llm_games.questions import MISSING
from llm_games.registry import rulebook
from llm_games.view import View

SIMULTANEOUS = [
    ("beauty_contest", {"players": 4, "max": 12, "prize_rule": "split"}),
    ("beauty_contest", {"players": 3, "max": 9, "prize_rule": "amplified", "prize": 7}),
    ("el_farol_bar", {"players": 5}),
    ("divide_dollar", {"players": 3, "golds": 12}),
    ("public_goods", {"players": 3, "tokens": 6}),
    ("public_goods", {"players": 3, "tokens": 12, "ratio": 4, "initial_tokens": "random",
                      "rand_min": 5}),
    ("diners_dilemma", {"players": 4}),
    ("sealed_bid_auction", {"players": 3, "valuation_max": 8, "interval": 2, "price": "second"}),
    ("sealed_bid_auction", {"players": 3, "valuation_max": 8, "interval": 2}),
]  # fmt: skip


def one_step(game, batch=(), seed=0):
    rng = np.random.default_rng(seed)
    state = game.reset(seed, batch)
    low, high = game.legal(state)
    actions = rng.integers(low, high, endpoint=True)
    return state, actions, game.step(state, actions)[1]


@each_row(("name", "parameters"), SIMULTANEOUS)
def test_regret_is_what_the_rules_pay_for_the_best_other_action(name, parameters):
    game = rulebook(name, **parameters)
    for seed in range(12):
        state, actions, outcome = one_step(game, (), seed)
        found = deviation(game, outcome.record)
        low, high = game.legal(state)
        for seat in range(game.players):
            if name == "sealed_bid_auction" and (actions == actions.max()).sum() > 1:
                continue  # the rules draw the winner, the regret is a mean
            paid = []
            for action in range(low[seat], high[seat] + 1):
                tried = actions.copy()
                tried[seat] = action
                if name == "sealed_bid_auction" and (tried == tried.max()).sum() > 1:
                    continue
                paid.append(game.step(state, tried)[1].rewards[seat])
            gain = max(paid) - outcome.rewards[seat]
            if name == "sealed_bid_auction":
                assert found.regret[seat] >= gain - 1e-9
            else:
                assert found.regret[seat] == pytest.approx(gain, abs=1e-9)
        assert found.nash_conv == pytest.approx(found.regret.sum())
        assert 0 <= found.distance <= 1


@each_row("name", GAMES)
def test_batch_equals_loop(name):
    small = {"battle_royale": {"players": 4}, "pirate_game": {"players": 4, "gold": 6}}
    game = rulebook(name, **small.get(name, {}))
    rng = np.random.default_rng(4)
    state = game.reset(4, (6,))
    for _ in range(3):
        low, high = game.legal(state)
        outcome_actions = rng.integers(low, high, endpoint=True)
        over = state.over
        state, outcome = game.step(state, outcome_actions)
        whole = deviation(game, outcome.record)
        assert whole.regret.shape == (game.players, 6)
        assert whole.nash_conv.shape == whole.distance.shape == (6,)
        for i in np.flatnonzero(~over):
            record = {key: np.asarray(value)[..., i] for key, value in outcome.record.items()}
            single = deviation(game, record)
            assert np.array_equal(single.regret, whole.regret[:, i])
            assert np.array_equal(single.distance, whole.distance[i], equal_nan=True)


def played(game, *actions):
    state = game.reset(0)
    for action in actions:
        state, outcome = game.step(state, np.array(action))
    return deviation(game, outcome.record)


def test_broken_rules_in_the_beauty_contest():
    game = rulebook("beauty_contest", players=3, foul_fee=2)
    found = played(game, [10, 20, MISSING])
    assert found.regret[:2].tolist() == [0, 1]  # alone with 10 and 20 there is a winning number
    assert np.isnan(found.regret[2])
    assert np.isnan(found.distance)


def test_distance_of_known_profiles():
    assert played(rulebook("divide_dollar"), [11, *[10] * 9]).distance == 1 / 1000
    assert played(rulebook("el_farol_bar"), [1] * 9 + [0]).distance == 3 / 10
    assert played(rulebook("diners_dilemma"), [1] * 9 + [0]).distance == 1 / 10
    assert played(rulebook("public_goods"), [20] * 10).distance == 1
    contest = rulebook("beauty_contest", prize_rule="split")
    assert played(contest, [1] * 10).distance == 0
    assert played(contest, [1] * 9 + [3]).distance == 2 / 1000
    assert played(rulebook("sealed_bid_auction", price="second"), [0] * 10).distance == 780 / 2000


def test_shots():
    game = rulebook("battle_royale", players=3, hit_rates=(33, 66, 100))
    miss, strongest = played(game, [-1, -1, -1]), played(game, [2, -1, -1])
    assert miss.nash_conv == miss.distance == 0
    assert strongest.distance == 1
    assert strongest.regret[0] == pytest.approx(25 / 63 - 59 / 189, abs=0.01)
    assert (strongest.regret[1:] == 0).all()
    capped = rulebook(
        "battle_royale", players=3, hit_rates=(33, 66, 100), max_shots=1, announce_cap=True
    )
    assert played(capped, [-1, -1, -1]).nash_conv == 0  # the only shot cannot win
    wasted = rulebook("battle_royale", players=3, bad_target="wasted_shot", self_target="allowed")
    assert played(wasted, [3, -1, -1]).nash_conv == played(wasted, [-1, -1, -1]).nash_conv
    assert played(wasted, [0, -1, -1]).nash_conv > played(wasted, [-1, -1, -1]).nash_conv


def test_pirates():
    game = rulebook("pirate_game")
    best = [96, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    assert played(game, best).nash_conv == played(game, best).distance == 0
    assert played(game, [10] * 10).regret.tolist() == [86, *[0] * 9]
    assert played(game, [10] * 10).distance == pytest.approx(172 / 200)
    assert played(game, [100, *[0] * 9]).regret[0] == 97  # thrown overboard counts -1
    votes = [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    assert played(game, best, votes).nash_conv == played(game, best, votes).distance == 0
    found = played(game, best, [1, 0, 0, 0, 1, 0, 1, 0, 1, 0])
    assert found.regret.tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert found.distance == pytest.approx(1 / 9)


def test_every_game_has_one_and_others_are_refused():
    assert all(map(has_deviation, GAMES))

    class Other:
        name = "poker"

    with pytest.raises(UnknownName, match="poker"):
        deviation(Other(), {})


@each_row("rule_breaker", ["exclude", "include", "void_round"])
def test_regret_where_rules_were_broken_is_what_the_rules_pay(rule_breaker):
    params = {"players": 3, "max": 9, "prize_rule": "split", "foul_fee": 1}
    game = rulebook("beauty_contest", rule_breaker=rule_breaker, **params)
    rng = np.random.default_rng(4)
    state = game.reset(4)
    for _ in range(80):
        actions = rng.integers(-6, 16, 3)
        actions[rng.random(3) < 0.1] = MISSING
        outcome = game.step(state, actions)[1]
        best = outcome.rewards.copy()
        for seat in range(3):
            for other in range(10):
                tried = np.where(np.arange(3) == seat, other, actions)
                best[seat] = max(best[seat], game.step(state, tried)[1].rewards[seat])
        regret = np.where(game.unplayed(outcome.record), np.nan, best - outcome.rewards)
        measured = deviation(game, outcome.record).regret
        assert measured == pytest.approx(regret, nan_ok=True), actions.tolist()


def test_without_limits_players_go_by_the_parameters_and_numbers_below_them_are_nearer():
    game = rulebook("beauty_contest", players=3, bounds_check="none")
    state = game.reset(0)
    numbers = {"level_k:0": 50, "level_k:1": 33, "cooperative": 50, "rational": 0}
    for name, number in numbers.items():
        player = make_player(name, game)
        decision, _ = player.act(View.of(game, state, 0), player.start(game, 0, 1))
        assert decision.action == number
    record = game.step(state, np.array([5, 60, 70]))[1].record
    bounded = rulebook("beauty_contest", players=3)
    # All win at -12, 60, 60, where two who name the same are twice as many.
    assert 0 < deviation(game, record).distance < deviation(bounded, record).distance
