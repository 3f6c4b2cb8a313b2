"""The money request game: worked cases, all equilibria, and what people's requests are worth."""

from fractions import Fraction

import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games.baselines.games.money_request import theory
from llm_games.baselines.play_measures import described
from llm_games.baselines.regret import deviation, welfare
from llm_games.questions import MISSING

PAID = [
    ([19, 20], [39, 20]),
    ([18, 20], [18, 20]),
    ([17, 17], [17, 17]),
    ([11, 20], [11, 20]),
    ([MISSING, 19], [20, 39]),
]
PEOPLE = [4, 0, 3, 6, 1, 6, 32, 30, 12, 6]  # Arad & Rubinstein 2012, percent asking for 11 to 20


def fractions(text):
    return [Fraction(part) for part in text.split()]


@each_row(("requests", "payoffs"), PAID)
def test_worked_cases(requests, payoffs):
    game = lg.rules("money_request")
    _, outcome = game.step(game.reset(0), np.array(requests))
    assert outcome.rewards.tolist() == payoffs


def test_the_symmetric_equilibrium_and_the_others():
    game = lg.rules("money_request")
    chances = theory.symmetric_equilibrium(game)
    assert list(chances[::-1]) == fractions("1/4 1/4 1/5 3/20 1/10 1/20")
    found = theory.equilibria(game)
    assert len(found) == 9
    symmetric = (Fraction(0),) * 4 + chances[::-1]
    assert [profile for profile in found if profile[0] == profile[1]] == [(symmetric, symmetric)]
    odd, even = [0] * 10, [0] * 10
    odd[2::2], even[3::2] = fractions("2/5 3/10 1/5 1/10"), fractions("2/5 3/10 1/5 1/10")
    assert (tuple(odd), tuple(even)) in found
    table = theory.payoff_table(game).units
    assert [np.array(odd) @ seat @ np.array(even) for seat in table] == [21, 20]
    assert np.array(symmetric) @ table[0] @ np.array(symmetric) == 20


def test_gambit_finds_the_same():
    gambit = pytest.importorskip("pygambit")
    game = lg.rules("money_request")
    solved = gambit.nash.enummixed_solve(gambit.Game.from_arrays(*theory.payoff_table(game).units))
    theirs = {
        tuple(tuple(Fraction(str(p)) for _, p in mixed) for _, mixed in profile.mixed_strategies())
        for profile in solved.equilibria
    }
    assert set(theory.equilibria(game)) == theirs


@each_row(
    "parameters",
    [{"bonus": b, "low": low} for b in (0, 1, 2, 3, 7, 20, 60) for low in (11, 14, 18, 19)],
)
def test_nobody_gains_on_the_symmetric_equilibrium(parameters):
    game = lg.rules("money_request", **parameters)
    downward = theory.symmetric_equilibrium(game)
    upward = np.array(
        [Fraction(0)] * (game.high - game.low + 1 - len(downward)) + [*downward[::-1]]
    )
    earned = theory.payoff_table(game).units[0] @ upward
    assert sum(upward) == 1
    assert max(earned) == upward @ earned == game.high
    assert (np.array(downward) >= 0).all()


def test_against_people():
    game = lg.rules("money_request")
    earned = theory.expected(game, np.array([Fraction(share, 100) for share in PEOPLE]))
    order = np.argsort(-earned.astype(float))
    assert [(11 + i, earned[i]) for i in order[:2]] == [(17, 23), (16, Fraction(112, 5))]


def test_levels_and_draws():
    game = lg.rules("money_request")
    assert [theory.level_k(game, level) for level in (0, 1, 2, 9, 30)] == [20, 19, 18, 11, 11]
    episodes = (lg.play(game, [lg.player("rational")] * 2, seed=seed) for seed in range(60))
    made = [e.steps[0].outcome.record["actions"] for e in episodes]
    assert set(np.ravel(made)) == {15, 16, 17, 18, 19, 20}


def test_how_play_is_described():
    game = lg.rules("money_request", rounds=2)
    steps = {"actions": np.array([[19, 18], [20, 18]])}
    found = described(game, [steps])
    assert found["bonus rate"] == 1 / 4
    assert [found[f"level {k}"] for k in range(4)] == [1 / 4, 1 / 4, 1 / 2, 0]
    assert np.isclose(found["total variation to the equilibrium"], 0.2 + 0.15 + 0.35)
    assert deviation(game, steps).regret.tolist() == [[0, 19], [18, 19]]
    all_paid = welfare(game, steps)
    assert (all_paid.total, all_paid.best, all_paid.lowest, all_paid.highest) == (95, 118, 80, 82)
