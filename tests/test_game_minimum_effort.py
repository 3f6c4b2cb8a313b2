"""The minimum effort game: worked cases, all equilibria by brute force, and the potential."""

from fractions import Fraction
from itertools import product

import numpy as np
from playing import each_row

import llm_games as lg
from llm_games.baselines.games.minimum_effort import theory
from llm_games.baselines.logit_equilibria import logit_equilibrium
from llm_games.baselines.mixed_equilibria import mixed_equilibria
from llm_games.baselines.payoff_tables import pure_equilibria
from llm_games.baselines.play_measures import described
from llm_games.baselines.reasoning_levels import level_mixtures
from llm_games.baselines.regret import deviation, exploitability, welfare
from llm_games.questions import MISSING

PAID = [
    ({}, [7, 7, 7, 7], [130] * 4),
    ({}, [7, 7, 7, 1], [10, 10, 10, 70]),
    ({"players": 3}, [3, 5, MISSING], [50, 30, 70]),
    ({"players": 3, "cost": 0}, [7, 2, 4], [100] * 3),
    ({"preset": "goeree_holt_75"}, [110, 170], [Fraction(55, 2), Fraction(-35, 2)]),
    ({"preset": "goeree_holt_25"}, [170, 150], [Fraction(215, 2), Fraction(225, 2)]),
]


@each_row(("parameters", "efforts", "payoffs"), PAID)
def test_worked_cases(parameters, efforts, payoffs):
    game = lg.rules("minimum_effort", **parameters)
    _, outcome = game.step(game.reset(0), np.array(efforts))
    assert outcome.rewards.tolist() == [*map(float, payoffs)]


@each_row(
    ("players", "high", "cost", "count"),
    [(2, 7, 10, 7), (3, 4, 10, 4), (3, 4, 0, 22), (3, 4, 30, 1), (3, 4, 20, 4), (2, 3, 0, 3)],
)
def test_pure_equilibria_and_distances(players, high, cost, count):
    game = lg.rules("minimum_effort", players=players, high=high, cost=cost)
    found = np.array(pure_equilibria(theory.payoff_table(game).units)) + game.low
    assert len(found) == count
    for profile in product(range(1, high + 1), repeat=players):
        steps = {"actions": np.array(profile)[:, None]}
        far = np.abs(found - profile).sum(axis=1).min() / (players * (high - 1))
        assert np.isclose(deviation(game, steps).distance[0], far)
        assert (deviation(game, steps).regret.max() == 0) == (far == 0)


def test_mixed_equilibria_of_two():
    game = lg.rules("minimum_effort", players=2)
    found = mixed_equilibria(theory.payoff_table(game).numbers)
    symmetric = [profile[0] for profile in found if profile[0] == profile[1]]
    supports = [tuple(np.flatnonzero(mixture)) for mixture in symmetric]
    assert sorted(supports) == sorted(
        [(i,) for i in range(7)] + [(i, j) for i in range(7) for j in range(i + 1, 7)]
    )
    assert len(found) == 28
    upper = theory.upper_chance(game)
    assert all(m[max(s)] == upper for m, s in zip(symmetric, supports, strict=True) if len(s) > 1)


def test_several_mix_two_efforts():
    game = lg.rules("minimum_effort", players=4)
    chance = theory.upper_chance(game)
    all_above = chance ** (game.players - 1)
    low, high = (game.paid(np.array(e), np.array(own)) for e, own in ((2, 2), (2, 5)))
    upper = game.paid(np.array(5), np.array(5))
    assert np.isclose(all_above * upper + (1 - all_above) * high, low)


@each_row(("players", "cost", "effort"), [(2, 9, 7), (2, 10, 1), (2, 11, 1), (3, 6, 7), (3, 7, 1)])
def test_the_potential_chooses(players, cost, effort):
    game = lg.rules("minimum_effort", players=players, cost=cost)
    assert theory.potential_effort(game) == effort
    equal = np.arange(1, 8) * np.ones((players, 1), int)
    values = theory.potential(game, equal)
    assert values.argmax() + 1 == effort or (values == values[0]).all()
    table = theory.payoff_table(game).exact.astype(float)
    profiles = np.array(list(product(range(1, 8), repeat=players))).T
    value = theory.potential(game, profiles).reshape(table.shape[1:])
    for seat in range(players):  # whoever moves gains what the potential does
        assert np.allclose(np.diff(table[seat], axis=seat), np.diff(value, axis=seat))


def test_levels_reply_best():
    for players, cost in product((2, 3, 5), (0, 1, 5, 10, 19, 20, 25)):
        game = lg.rules("minimum_effort", players=players, cost=cost)
        others = np.array(list(product(range(1, 8), repeat=players - 1))).T.min(axis=0)
        earned = [game.paid(np.minimum(e, others), np.array(e)).mean() for e in range(1, 8)]
        effort = 1 + int(np.argmax(np.round(earned, 9)))
        assert theory.level_k(game, 1) == theory.level_k(game, 999) == effort
        assert theory.best_response(game, np.array(effort)) == effort
        if players < 5:
            mixtures = level_mixtures(theory.payoff_table(game), 1)
            assert [1 + mixture.index(1) for mixture in mixtures] == [effort] * players
    assert theory.level_k(lg.rules("minimum_effort", players=1000), 1) == 1


@each_row(("preset", "mean"), [("goeree_holt_25", 150.798), ("goeree_holt_75", 129.202)])
def test_logit_equilibria_fall_with_the_cost(preset, mean):
    game = lg.rules("minimum_effort", preset=preset)
    mixtures, residual = logit_equilibrium(theory.payoff_table(game).exact, 0.1)
    assert residual <= 1e-12
    assert round(float(mixtures[0] @ np.arange(110, 171)), 3) == mean


def test_players_by_name():
    game = lg.rules("minimum_effort", rounds=2)
    names = ("rational", "secure", "last_minimum", "potential")
    episode = lg.play(game, [lg.player(name) for name in names], seed=1)
    moves = [step.outcome.record["actions"].tolist() for step in episode.steps]
    assert moves == [[7, 1, 7, 1], [7, 1, 1, 1]]


def test_how_play_is_described():
    game = lg.rules("minimum_effort", players=3, rounds=2)
    steps = {"actions": np.array([[7, 3], [5, 3], [6, 3]])}
    found = described(game, [steps])
    assert (found["lowest effort"], found["wasted effort"]) == (4, 1.5)
    assert found["at the best equilibrium"] == 1 / 6
    all_paid = welfare(game, steps)
    assert (all_paid.total, all_paid.best, all_paid.worst) == (300 + 270, 780, 180)
    assert exploitability(game, steps).shape == (3,)
