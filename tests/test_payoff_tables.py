"""Solvers of payoff tables: against brute force, closed forms and other libraries."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from playing import each_row

from llm_games.baselines.logit_equilibria import logit_equilibrium
from llm_games.baselines.mixed_equilibria import minimax, mixed_equilibria
from llm_games.baselines.payoff_tables import best_replies, pure_equilibria, pure_minimax
from llm_games.baselines.reasoning_levels import level_measures, level_mixtures, levels_of
from llm_games.errors import BadParameter
from llm_games.exact_payoffs import ExactPayoffs

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
PENNIES = np.array([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]])
CYCLE = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])


def drawn(seed, *actions, players=2, high=9):
    return np.random.default_rng(seed).integers(-high, high + 1, (players, *actions))


def regrets(payoffs, actions):
    table = ExactPayoffs(payoffs.astype(object), 1)
    return table.best(actions) - table.of(actions)


def gains(payoffs, profile):
    """Return what the best action would add to each seat's mixture, in fractions."""
    row, column = profile
    for table, own, other in ((payoffs[0], row, column), (payoffs[1].T, column, row)):
        values = [sum(int(a) * p for a, p in zip(line, other, strict=True)) for line in table]
        yield max(values) - sum(p * v for p, v in zip(own, values, strict=True))


@each_row("seed", range(40))
def test_pure_equilibria_are_those_of_brute_force(seed):
    table = drawn(seed, 3, 2, 4, players=3, high=3)
    found = [
        profile
        for profile in product(range(3), range(2), range(4))
        if (regrets(table, np.array(profile)) == 0).all()
    ]
    assert pure_equilibria(table) == found
    for profile in found:
        assert best_replies(table)[(slice(None), *profile)].all()


@each_row("seed", range(20))
def test_payoffs_by_count_are_those_of_the_whole_table(seed):
    rows = np.random.default_rng(seed).integers(-3, 4, (2, 4)).astype(object)
    by_count, profiles = ExactPayoffs(rows, 2, by_count=True), np.indices((2,) * 4).reshape(4, -1)
    whole = ExactPayoffs(by_count.of(profiles).astype(object).reshape(4, *(2,) * 4), 2)
    assert whole.alike
    assert (whole.of(profiles) == by_count.of(profiles)).all()
    assert (whole.best(profiles) == by_count.best(profiles)).all()
    assert (whole.ends, whole.safe.tolist()) == (by_count.ends, by_count.safe.tolist())
    mixtures = ((THIRD, 1 - THIRD),) * 4
    assert whole.earned(1, mixtures) == by_count.earned(1, mixtures)
    assert level_mixtures(whole, 3) == level_mixtures(by_count, 3)
    ordered = {tuple(sorted(profile)) for profile in pure_equilibria(whole.numbers)}
    gains = by_count.best(by_count.profiles) - by_count.of(by_count.profiles)
    assert {*map(tuple, by_count.profiles.T[(gains == 0).all(axis=0)].tolist())} == ordered


@each_row("seed", range(60))
def test_extreme_equilibria_leave_nobody_a_gain(seed):
    """Small numbers, so that many tables have ties."""
    table = drawn(seed, 2 + seed % 4, 2 + seed % 3, high=1 + seed % 3)
    found = mixed_equilibria(table)
    assert found
    assert len(set(found)) == len(found)
    for profile in found:
        assert [sum(mixture) for mixture in profile] == [1, 1]
        assert [*gains(table, profile)] == [0, 0]
    pure = [tuple(m.index(1) for m in p) for p in found if all(1 in m for m in p)]
    assert pure == pure_equilibria(table)


@each_row("seed", range(60))
def test_nashpy_finds_the_same(seed):
    nashpy = pytest.importorskip("nashpy")
    table = drawn(seed, 4, 4, high=1000)  # without ties
    theirs = nashpy.Game(*table).vertex_enumeration()  # its support enumeration misses some
    rounded = sorted([*map(float, np.round([*x, *y], 9) + 0.0)] for x, y in theirs)
    ours = sorted([round(float(p), 9) for p in (*x, *y)] for x, y in mixed_equilibria(table))
    assert ours == rounded


@each_row("seed", range(60))
def test_gambit_finds_the_same(seed):
    gambit = pytest.importorskip("pygambit")
    table = drawn(seed, 3, 4, high=2)
    solved = gambit.nash.enummixed_solve(gambit.Game.from_arrays(*table), rational=True)
    theirs = {
        tuple(tuple(Fraction(str(p)) for _, p in mixed) for _, mixed in profile.mixed_strategies())
        for profile in solved.equilibria
    }
    assert set(mixed_equilibria(table)) == theirs


def test_known_mixtures():
    assert mixed_equilibria(PENNIES) == [((HALF, HALF), (HALF, HALF))]
    assert mixed_equilibria(np.stack([CYCLE, CYCLE.T])) == [((THIRD,) * 3,) * 2]
    with pytest.raises(BadParameter, match="at most 12 actions a player, got 13"):
        mixed_equilibria(np.zeros((2, 13, 2), int))


def test_what_is_safe():
    assert (minimax(PENNIES[0]), minimax(CYCLE)) == (0, 0)
    assert minimax(np.array([[2, 0], [0, 1]])) == Fraction(2, 3)
    assert pure_minimax(PENNIES) == [1, 1]
    assert regrets(PENNIES, np.array([[0, 1], [0, 0]])).tolist() == [[0, 2], [2, 0]]


def test_logit_equilibria():
    even = logit_equilibrium(PENNIES, 3.0)
    assert np.allclose(even.mixtures, 0.5)
    free = logit_equilibrium(drawn(1, 3, 3, 3, players=3), 0.0)
    assert np.allclose(free.mixtures, 1 / 3)
    skewed = np.array([[[320, 40], [40, 80]], [[40, 80], [80, 40]]])
    (row, column), residual = logit_equilibrium(skewed, 0.05)
    assert residual <= 1e-12
    ahead = 0.05 * (skewed[0][0] - skewed[0][1]) @ column
    assert np.isclose(np.log(row[0] / row[1]), ahead)
    wild = logit_equilibrium(1000 * PENNIES, 50.0)
    assert wild.mixtures is None or wild.residual <= 1e-12


def test_levels():
    ladder = [20, 19, 18, 18]
    assert levels_of(np.array([18, 20, 11]), ladder).tolist() == [2, 0, -1]
    steps = {"actions": np.array([[18, 19, 11, 19], [0, 0, 0, 0]])}
    found = level_measures(ladder[1:], first=1)
    shares = {name: measure.observed(steps, [0]).mean() for name, measure in found.items()}
    assert shares == {"level 1": 0.5, "level 2": 0.25, "level 3": 0.0, "other": 0.25}
