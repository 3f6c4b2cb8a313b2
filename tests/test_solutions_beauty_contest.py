"""Beauty contest: best replies and equilibria against exhaustive search."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row

from llm_games.baselines.games.beauty_contest.theory import (
    PRIZES,
    SHARED,
    ContestRules,
    best_response,
    distance,
    equal_equilibria,
    is_nash,
    level_k,
    regret,
    reply_to_total,
    undominated,
    winners,
)


def efficiency(numbers, contest):
    most = {"split": 1, "exclusive": 1, "amplified": contest.players**2}
    paid = contest.pay(winners(numbers, contest)).sum(axis=0)
    return paid / most.get(contest.prize_rule, contest.players)


RATIOS = [Fraction(x) for x in ("0", "1/2", "2/3", "5/6", "1", "7/6", "4/3", "3/2", "2")]


def flat(contest):
    return [k for part in equal_equilibria(contest) for k in part]


@each_row(
    ("players", "ratio", "rule", "known"),
    [
        (10, "1/2", "split", [0]),
        (10, "2/3", "split", [0, 1]),
        (10, "5/6", "split", [0, 1, 2]),
        (10, "1", "split", list(range(101))),
        (10, "7/6", "split", [0, 1, 2, 100]),
        (10, "4/3", "split", [0, 1, 100]),
        (10, "3/2", "split", [0, 100]),
        (10, "2", "split", [0, 100]),
        (24, "2/3", "split", [0, 1]),
        (5, "2/3", "exclusive", [0, 1]),
        (24, "2/3", "exclusive", [0, 1]),
        (2, "2/3", "split", [0]),
        (2, "4/3", "split", [100]),
        (10, "2/3", "each_winner", list(range(101))),
        (24, "2/3", "amplified", list(range(101))),
    ],
)
def test_known_equal_equilibria(players, ratio, rule, known):
    assert flat(ContestRules(players, Fraction(ratio), prize_rule=rule)) == known


@given(
    st.integers(2, 6),
    st.sampled_from(RATIOS),
    st.sampled_from(sorted(PRIZES)),
    st.integers(-6, 4),
    st.integers(1, 9),
    st.booleans(),
)
def test_equal_equilibria_are_those_that_pass_the_test(players, ratio, rule, low, width, first):
    contest = ContestRules(players, ratio, low, low + width, rule, first_number=first)
    grid = np.arange(low, low + width + 1)
    nash = grid[is_nash(np.tile(grid, (players, 1)), contest)]
    assert flat(contest) == nash.tolist()


@given(st.data())
def test_best_response_is_the_best_of_all_numbers(data):
    contest = ContestRules(
        data.draw(st.integers(2, 6)),
        data.draw(st.sampled_from(RATIOS)),
        0,
        data.draw(st.integers(1, 30)),
        data.draw(st.sampled_from(sorted(PRIZES))),
        data.draw(st.booleans()),
    )
    number = st.integers(0, contest.high)
    n = contest.players
    profile = np.array(data.draw(st.lists(number, min_size=n, max_size=n)))
    valid = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    replies, values = best_response(profile, contest, valid)
    for seat in range(n):
        tried = np.tile(profile[:, None], contest.high + 1)
        tried[seat] = np.arange(contest.high + 1)
        allowed = np.tile(valid[:, None], contest.high + 1)
        allowed[seat] = True
        paid = contest.pay(winners(tried, contest, allowed))[seat]
        assert values[seat] == paid.max() == paid[replies[seat]]


@each_row("rule", ["split", *SHARED])
@each_row("ratio", ["1/2", "2/3", "5/6", "1", "4/3"])
@each_row(("players", "low", "high"), [(3, 0, 8), (4, 0, 5), (4, -2, 3)])
def test_distance_is_to_the_nearest_of_all_equilibria(rule, ratio, players, low, high):
    contest = ContestRules(players, Fraction(ratio), low, high, rule)
    profiles = np.array(list(product(range(low, high + 1), repeat=players))).T
    nash = profiles[:, is_nash(profiles, contest)]
    far = np.abs(profiles[:, :, None] - nash[:, None]).sum(axis=0).min(axis=1)
    assert distance(profiles, contest).tolist() == far.tolist()


def test_batch_equals_loop():
    contest = ContestRules(5, Fraction(2, 3), prize_rule="split")
    numbers = np.random.default_rng(0).integers(0, 101, (5, 40))
    for function in (regret, distance):
        whole = function(numbers, contest)
        for i in range(40):
            assert np.array_equal(whole[..., i], function(numbers[:, i], contest))


def test_regret_and_distance_disagree_next_to_the_equilibrium():
    contest = ContestRules(5, Fraction(2, 3), prize_rule="split")
    numbers = np.array([0, 0, 0, 0, 1])
    assert regret(numbers, contest).tolist() == [0, 0, 0, 0, 1 / 5]
    assert distance(numbers, contest) == 1


@given(st.integers(2, 12), st.sampled_from(RATIOS), st.data())
def test_the_reply_on_target_always_wins(players, ratio, data):
    if ratio >= players:
        return
    contest = ContestRules(players, ratio)
    others = data.draw(st.lists(st.integers(0, 100), min_size=players - 1, max_size=players - 1))
    own = int(reply_to_total(np.array(sum(others)), contest))
    assert winners(np.array([own, *others]), contest)[0]


def test_scripted_numbers():
    contest = ContestRules(10, Fraction(2, 3))
    assert [level_k(k, contest) for k in range(5)] == [50, 33, 22, 15, 10]
    assert undominated(contest) == 0
    assert undominated(ContestRules(10, Fraction(4, 3))) == 100
    assert undominated(ContestRules(10, Fraction(2, 3), 100, 200)) == 100
    assert undominated(ContestRules(10, Fraction(1))) == 50


def test_decimals_are_the_same_game_in_small_units():
    contest = ContestRules(5, Fraction(2, 3), 0, 10_000 * 10**6, "split")
    assert equal_equilibria(contest) == (range(0, 1), range(1, 2))
    numbers = np.array([3_300_000, 0, 17, 9_999_999_999, 5])
    replies, values = best_response(numbers, contest)
    assert (values == 1).all()
    numbers[2] = replies[2]
    assert contest.pay(winners(numbers, contest))[2] == 1


@each_row(("rule", "share"), [("split", 1), ("each_winner", 0.1), ("amplified", 0.01)])
def test_efficiency_of_one_winner(rule, share):
    contest = ContestRules(10, Fraction(2, 3), prize_rule=rule)
    assert efficiency(np.arange(0, 100, 10), contest) == pytest.approx(share)


@pytest.mark.slow
def test_an_independent_solver_finds_the_same_pure_equilibria():
    gambit = pytest.importorskip("pygambit")
    contest = ContestRules(3, Fraction(2, 3), 0, 4, "split")
    profiles = np.stack(np.meshgrid(*[np.arange(5)] * 3, indexing="ij"))
    paid = np.rint(6 * contest.pay(winners(profiles, contest))).astype(int)
    found = gambit.nash.enumpure_solve(gambit.Game.from_arrays(*paid)).equilibria
    names = [[int(s.label) - 1 for p in e.game.players for s in p.strategies if e[s] == 1]
             for e in found]  # fmt: skip
    assert sorted(names) == [[k] * 3 for k in flat(contest)]
