"""The traveler's dilemma: worked cases, all equilibria, levels, and logit equilibria."""

from fractions import Fraction

import numpy as np
from playing import each_row

import llm_games as lg
from llm_games.baselines.games.travelers_dilemma import theory
from llm_games.baselines.logit_equilibria import logit_equilibrium
from llm_games.baselines.pair_theory import payoff_table
from llm_games.baselines.payoff_tables import pure_equilibria
from llm_games.baselines.play_measures import described
from llm_games.baselines.regret import deviation, exploitability, welfare
from llm_games.questions import MISSING

PAID = [
    ({}, [100, 100], [100, 100]),
    ({}, [99, 100], [101, 97]),
    ({}, [2, 100], [4, 0]),
    ({}, [101, 50], [4, 0]),
    ({}, [MISSING, 50], [4, 0]),
    ({"preset": "goeree_holt_50"}, [200, 80], [30, 130]),
    ({"high": 12, "reward": "1/2"}, [11, 12], [Fraction(23, 2), Fraction(21, 2)]),
]


@each_row(("parameters", "claims", "payoffs"), PAID)
def test_worked_cases(parameters, claims, payoffs):
    game = lg.rules("travelers_dilemma", **parameters)
    _, outcome = game.step(game.reset(0), np.array(claims))
    assert outcome.rewards.tolist() == [*map(float, payoffs)]


@each_row(("reward", "count"), [("0", 11), ("1/2", 11), (1, 11), ("3/2", 1), (5, 1)])
def test_equal_claims_are_equilibria_up_to_a_reward_of_one(reward, count):
    game = lg.rules("travelers_dilemma", high=12, reward=reward)
    found = pure_equilibria(payoff_table(game).units)
    assert len(found) == count
    assert all(one == other for one, other in found)
    assert (theory.equilibrium(game) - game.low,) * 2 == (found[-1] if count > 1 else (0, 0))
    for one in range(2, 13):
        for other in range(2, 13):
            steps = {"actions": np.array([[one], [other]])}
            regrets = deviation(game, steps).regret
            assert (regrets.max() == 0) == ((one - 2, other - 2) in found)
            assert (deviation(game, steps).distance == 0) == ((one - 2, other - 2) in found)


def test_tables_are_exact():
    table = payoff_table(lg.rules("travelers_dilemma", high=12, reward="1/3"))
    assert table.exact[:, 9, 10].tolist() == [Fraction(34, 3), Fraction(32, 3)]


@each_row(
    ("preset", "ladder"),
    [
        ("basu", [97, 96, 95]),
        ("goeree_holt_10", [181, 180, 179]),
        ("goeree_holt_25", [151, 150, 149]),
        ("goeree_holt_50", [101, 100, 99]),
    ],
)
def test_levels(preset, ladder):
    game = lg.rules("travelers_dilemma", preset=preset)
    assert [theory.level_k(game, level) for level in (1, 2, 3, 999)] == [*ladder, game.low]
    earned = payoff_table(game).units[0].sum(axis=1)
    assert game.low + np.flatnonzero(earned == earned.max())[-1] == ladder[0]
    for level, claim in enumerate(ladder, 1):
        players = [lg.player(f"level_k:{level}"), lg.player("cooperative")]
        episode = lg.play(game, players, seed=1)
        assert episode.steps[0].outcome.record["actions"].tolist() == [claim, game.high]


@each_row(
    ("rate", "means"),
    [("1/20", [163.141, 142.851, 113.190]), ("1/10", [173.504, 136.994, 97.202])],
)
def test_logit_equilibria_fall_with_the_reward(rate, means):
    for reward, mean in zip((10, 25, 50), means, strict=True):
        game = lg.rules("travelers_dilemma", low=80, high=200, reward=reward)
        mixtures, residual = logit_equilibrium(payoff_table(game).exact, float(Fraction(rate)))
        assert residual <= 1e-12
        assert round(float(mixtures[0] @ np.arange(80, 201)), 3) == mean


def test_how_play_is_described():
    game = lg.rules("travelers_dilemma", rounds=3)
    steps = {"actions": np.array([[97, 96, 100], [100, 100, 100]])}
    found = described(game, [steps])
    assert found["mean claim"] == 593 / 6
    assert (found["level 1"], found["level 2"], found["other"]) == (1 / 6, 1 / 6, 2 / 3)
    assert found["undercutting"] == 1 / 4
    all_paid = welfare(game, steps)
    assert (all_paid.total, all_paid.worst, all_paid.best, all_paid.lowest) == (586, 12, 600, 12)
    assert exploitability(game, steps).tolist()[1] == 1  # 99 + 2 against 100


def test_rational_play_of_any_reward():
    for reward, claim in ((2, 2), (1, 100), (0, 100)):
        game = lg.rules("travelers_dilemma", reward=reward)
        episode = lg.play(game, [lg.player("rational")] * 2, seed=3)
        assert episode.steps[0].outcome.record["actions"].tolist() == [claim] * 2
