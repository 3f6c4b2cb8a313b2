"""Intervals, tests, ratings and reliability: what they return, and what they refuse."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row
from scipy import optimize, stats

from llm_games.benchmarks.judge import intervals, paired, pairwise_ratings, variance
from llm_games.benchmarks.judge.intervals import Interval
from llm_games.errors import BadParameter, UnknownName

FEW = "rests on near-normal runs"

# -- intervals -------------------------------------------------------------------------------------


def test_a_score_of_two_and_three_says_what_it_rests_on():
    found = intervals.score([50, 60, 70])
    assert (found.method, found.n, found.note) == ("logit-t", 3, FEW)
    assert found.written(1) == f"34.8 to 80.9 (logit-t, n = 3; {FEW})"
    assert intervals.score([50, 60, 70, 80]).note == ""


def test_one_episode_has_no_interval():
    assert intervals.score([50]) is None
    assert intervals.gaffke([50]) is None
    assert intervals.money([50]) is None
    assert intervals.share(1, 1) is None
    assert intervals.overall([[50, 60], [70]]) is None
    assert intervals.correlation(0.5, 9) is None
    assert intervals.seats([0.2, 0.4, 0.6, 0.8]) is None


@each_row(("n", "low"), [(2, 15.8), (3, 29.24), (5, 47.8), (10, 69.2), (50, 92.9)])
def test_equal_values_reach_as_far_down_as_they_must(n, low):
    found = intervals.score([100] * n)
    assert found.low == pytest.approx(low, abs=0.05)
    assert (found.high, found.method, found.note) == (100, "Gaffke", f"no spread in {n} runs")
    assert found.low == pytest.approx(100 * 0.025 ** (1 / n), abs=0.05)
    mirrored = intervals.score([0] * n)
    assert (mirrored.low, mirrored.high) == pytest.approx((0, 100 - found.low))


@each_row("n", [2, 3, 5, 10, 20, 50])
def test_gaffke_of_wins_is_clopper_pearson(n):
    for wins in range(n + 1):
        found = intervals.gaffke([100] * wins + [0] * (n - wins))
        exact = stats.binomtest(wins, n).proportion_ci(method="exact")
        assert np.divide(found[:2], 100) == pytest.approx((exact.low, exact.high), abs=0.01)
        guaranteed = intervals.share(wins, n, guaranteed=True)
        assert guaranteed[:2] == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_more_than_half_equal_is_gaffke_s():
    assert intervals.score([90, 95, 95]).method == "Gaffke"
    assert intervals.score([90, 90, 95, 95]).method == "logit-t"
    assert intervals.score([1, 2, 2, 3]).method == "logit-t"
    assert intervals.score([1, 2, 2 + 1e-12, 2 - 1e-12, 3]).method == "Gaffke"


@each_row("level", [0.5, 0.95, 0.99])
def test_money_is_students(level):
    values = [3.0, -1.5, 12.25, 7.0]
    found = intervals.money(values, level=level)
    error = stats.sem(values)
    assert found[:2] == pytest.approx(stats.t.interval(level, 3, np.mean(values), error))
    assert found.method == "Student t"


def test_money_without_spread():
    found = intervals.money([7, 7, 7])
    assert (found.low, found.high, found.method) == (7, 7, "none")
    assert found.written(1) == "no spread in 3 runs"
    assert found.ends(1) == "–"
    assert intervals.money([7, 7, 7], 0, 10).method == "none"


def test_money_with_bounds_stays_within_them():
    assert intervals.money([1, 2, 9], 0, 10).method == "logit-t"
    assert intervals.money([1, 1, 9], 0, 10).method == "Gaffke"
    assert intervals.money([1, 1, 9], 0).note == "most of 3 runs equal"
    assert intervals.money([1, 9], 0) is None  # one bound, and two values: it would tell nothing
    up, down = intervals.money([1, 2, 9], 0), intervals.money([-1, -2, -9], high=0)
    assert (up.method, down.method) == ("log-t", "log-t")
    assert 0 < up.low < 4 < up.high
    assert down[:2] == pytest.approx([-up.high, -up.low])
    free = intervals.money([1, 2, 9])
    assert free.low < 0
    assert intervals.money([1, 2, 9], -1e12, 1e12)[:2] == pytest.approx(free[:2])  # far away
    with pytest.raises(BadParameter, match="from 2 to 10"):
        intervals.money([1, 2, 9], 2, 10)


def test_large_money_that_differs_by_a_little_has_spread():
    assert intervals.money([4e9, 4e9 + 1, 4e9 + 3]).method == "Student t"


def test_much_skewed_money_has_a_bootstrap():
    values = np.random.default_rng(1).lognormal(sigma=1.5, size=30)
    found, plain = intervals.money(values), intervals.student_t(values, 0.95)
    assert found.method == "studentised bootstrap"
    assert found == intervals.money(values)  # seeded
    assert found.high - values.mean() > plain[1] - values.mean()  # the long tail's side
    assert intervals.money(values[:19]).method == "Student t"


def test_money_of_one_large_value_is_not_told_by_samples_without_it():
    values = [1.0, 1.1, 0.9, 1.2] * 6 + [100.0]
    found = intervals.money(values)
    assert (found.method, found.note) == ("Student t", "rests on few large values")
    assert found.low < np.mean(values) < found.high < 20


@each_row(("wins", "n"), [(0, 5), (2, 5), (5, 5), (13, 20)])
def test_a_share_is_jeffreys(wins, n):
    law = stats.beta(wins + 0.5, n - wins + 0.5)
    low, high = law.ppf(0.025) if wins else 0, law.ppf(0.975) if wins < n else 1
    assert intervals.share(wins, n)[:2] == pytest.approx((low, high))


def test_seats_are_a_score_of_shares():
    shares = [0.2, 0.4, 0.4, 0.6, 0.8]
    assert intervals.seats(shares) == intervals.score(shares, 0, 1)


def test_overall_of_one_game_is_students_and_of_two_equal_ones_narrower():
    a = [40.0, 52.0, 47.0, 61.0]
    one = intervals.overall([a])
    assert one[:2] == pytest.approx(stats.t.interval(0.95, 3, np.mean(a), stats.sem(a)))
    low, high = intervals.overall([a, a])[:2]
    half = stats.t.ppf(0.975, 6) * stats.sem(a) / math.sqrt(2)
    assert (low, high) == pytest.approx((np.mean(a) - half, np.mean(a) + half))
    assert intervals.overall([a, [100] * 3]).n == 3
    assert intervals.overall([[5, 5], [100, 100]]).written(1) == "no spread in 2 runs"
    assert intervals.overall([[95, 100]])[1] == 100


def test_overall_is_welch_s_test_of_two():
    a, b = [3.0, 5.0, 4.0, 9.0, 1.0], [10.0, 30.0, 22.0]
    mean, error, df = intervals.welch([np.array(a), -np.array(b)])
    found = stats.ttest_ind(a, b, equal_var=False)
    assert (mean / error, df) == pytest.approx((found.statistic, found.df))


def test_correlations():
    found = intervals.correlation(0.5, 20)
    half = 1.959964 * math.sqrt((1 + 0.125) / 17)
    expected = math.tanh(math.atanh(0.5) - half), math.tanh(math.atanh(0.5) + half)
    assert found[:2] == pytest.approx(expected, abs=1e-6)
    assert 0.9 < intervals.correlation(1, 10).low < intervals.correlation(1, 10).high < 1


@given(st.lists(st.floats(0, 100), min_size=2, max_size=12), st.randoms())
def test_a_score_stays_in_bounds_around_the_mean_in_any_order(values, random):
    found = intervals.score(values)
    mean = sum(values) / len(values)
    assert -1e-9 <= found.low <= mean + 1e-6
    assert mean - 1e-6 <= found.high <= 100 + 1e-9
    again = random.sample(values, len(values))
    assert intervals.score(again)[:2] == pytest.approx(found[:2], abs=1e-6)


@each_row(
    ("call", "words"),
    [
        (lambda: intervals.score([]), "one value or more"),
        (lambda: intervals.score([1, math.nan]), "leave out what was not measured"),
        (lambda: intervals.score([1, 101]), "from 0 to 100, got 101.0: give their own bounds"),
        (lambda: intervals.score([1, 2], level=95), "level must be between 0 and 1.*got 95"),
        (lambda: intervals.score([1, 2], 3, 3), "low < high"),
        (lambda: intervals.overall([]), "one game or more"),
        (lambda: intervals.share(6, 5), "got 6 of 5"),
        (lambda: intervals.share(0, 0), "got 0 of 0"),
        (lambda: intervals.correlation(1.5, 20), "from -1 to 1"),
        (lambda: paired.changes([1, 2], [1]), "got 2 and 1"),
        (lambda: paired.changes([], []), "one pair or more"),
        (lambda: paired.paired_t([1]), "2 pairs or more in every game, got 1: play more"),
        (lambda: paired.welch_satterthwaite([]), "got 0"),
        (lambda: paired.welch_satterthwaite([[1, 2], [3]]), "got 1"),
        (lambda: paired.paired_t([1, 2], level=0), "level"),
        (lambda: paired.sign_flip([1, math.inf]), "got inf"),
        (lambda: paired.stratified([]), "one game or more"),
        (lambda: paired.holm([0.5, 1.5]), "got 1.5"),
        (lambda: paired.power(1, 5, 5), "n >= 2"),
        (lambda: paired.power(5, 5, 0), "sd > 0"),
        (lambda: paired.power(5, 5, [5, 5]), "for each game"),
        (lambda: paired.power(5, math.nan, 5), "a number, got nan"),
        (lambda: paired.needed_episodes(5, math.inf), "sd > 0.*got inf"),
        (lambda: paired.power(5, 5, 1, rho=1), "rho < 1"),
        (lambda: paired.needed_episodes(0, 5), "more than 100000 episodes"),
        (lambda: paired.needed_episodes(5, 5, wanted=1), "wanted"),
        (lambda: pairwise_ratings.plackett_luce([]), "one game or more"),
        (lambda: pairwise_ratings.plackett_luce([(["a"], [1])]), "2 seats or more"),
        (lambda: pairwise_ratings.plackett_luce([(["a", "b"], [1, math.nan])]), "2 seats or more"),
        (lambda: pairwise_ratings.plackett_luce([("ab", [1, 2]), ("cd", [1, 2])]), "never met"),
        (
            lambda: pairwise_ratings.plackett_luce([("ab", [1, 2])] * 9, seats=True),
            'order = "rotate"',
        ),
        (lambda: variance.pass_k([3], [5], 2), "2 tasks or more"),
        (lambda: variance.pass_k([3, 3], [5, 5], 3), "6 runs of every task, got 5.*k <= 2"),
        (lambda: variance.pass_k([3, 6], [5, 5], 2), "got 6 of 5"),
        (lambda: variance.variance_parts(np.zeros((5, 4)), ("a", "b")), "b has 4 levels"),
        (lambda: variance.variance_parts(np.zeros((5, 5)), ("a",)), "2 factors or more"),
        (lambda: variance.variance_parts(np.full((5, 5), np.nan), ("a", "b")), "combination"),
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(BadParameter, match=words):
        call()


# -- comparisons -----------------------------------------------------------------------------------


def test_a_paired_t_test_is_scipys():
    a, b = [3.0, 4.0, 8.0, 1.0, 2.0], [4.0, 7.0, 8.5, 1.0, 9.0]
    found = paired.paired_t(paired.changes(a, b))
    known = stats.ttest_rel(b, a)
    assert found.p == pytest.approx(known.pvalue)
    assert found.interval[:2] == pytest.approx(known.confidence_interval())
    assert (found.interval.method, found.interval.n, found.note) == ("Student t", 5, "")


def test_players_without_spread_have_no_t_test():
    found = paired.paired_t([50] * 5)
    assert (found.mean, found.p, found.note) == (50, None, "no spread, no test")
    assert found.interval == Interval(50, 50, "none", 5, "no spread in 5 runs")
    assert paired.sign_flip([50] * 5) == 2 / 2**5
    assert paired.effect_size([50] * 5) is None


def test_a_hundred_against_fifty_in_five_runs_is_significant():
    assert paired.paired_t([50, 49, 52, 50, 51]).p < 1e-5


def test_sign_flips_are_counted():
    change = [3.0, -1.0, 4.0, 2.5, 0.5]
    signs = np.array(list(product((1, -1), repeat=5)))
    expected = (abs(signs @ change) >= sum(change) - 1e-9).mean()
    assert paired.sign_flip(change) == expected
    assert paired.stratified([change]) == expected
    assert paired.sign_flip([0, 0, 0]) == 1


def test_drawn_sign_flips_are_near_the_counted_ones():
    change = np.random.default_rng(3).normal(0.4, 1, 13)
    signs = np.array(list(product((1.0, -1.0), repeat=13)))
    expected = (abs(signs @ change) >= abs(change.sum()) - 1e-9).mean()
    assert paired.sign_flip(change) == pytest.approx(expected, abs=0.02)
    assert paired.sign_flip(np.ones(40)) == pytest.approx(1 / intervals.DRAWS)


def test_a_stratified_test_weighs_games_alike():
    wide = [500.0, -400.0, 300.0, -600.0]
    narrow = [0.1, 0.12, 0.09, 0.11]
    alone = paired.stratified([narrow])
    assert paired.stratified([wide, narrow]) < 2 * alone
    assert paired.sign_flip(wide + narrow) > 0.5
    assert paired.stratified([[0, 0], narrow]) == alone


def test_welch_satterthwaite_over_games():
    columns = [[5.0, 7.0, 6.0], [-1.0, 3.0, 2.5, 4.0]]
    found = paired.welch_satterthwaite(columns)
    a, b = map(np.array, columns)
    known = stats.ttest_ind(a, -b, equal_var=False)
    assert found.p == pytest.approx(known.pvalue)
    assert found.mean == pytest.approx((a.mean() + b.mean()) / 2)
    assert found.interval.n == 3
    p_in = found.interval.low > 0
    assert p_in == (found.p < 0.05)


def test_holm():
    assert paired.holm([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.06, None, 0.06])
    assert paired.holm([0.9, 0.8]) == [1, 1]
    assert paired.holm([None]) == [None]


def test_effect_sizes_from_five_pairs_on():
    change = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert paired.effect_size(change[:4]) is None
    assert paired.effect_size(change) == pytest.approx(3 / math.sqrt(2.5))


@each_row(
    ("effect", "pairs", "strict"),
    [(0.25, 128, 209), (0.5, 34, 55), (1, 10, 17), (2, 5, 7), (3, 4, 5)],
)
def test_needed_episodes(effect, pairs, strict):
    assert paired.needed_episodes(effect, 1, rho=0.5) == pairs
    assert paired.needed_episodes(effect, 1, rho=0.5, level=0.05 / 8) == strict


@each_row(("n", "effect"), [(2, 1.0), (5, 1.0), (20, 0.5), (3, 40.0)])
def test_power_is_that_of_the_noncentral_t(n, effect):
    away, least = effect * math.sqrt(n), stats.t.ppf(0.975, n - 1)
    expected = stats.nct.sf(least, n - 1, away) + stats.nct.cdf(-least, n - 1, away)
    assert paired.power(n, effect, 1, rho=0.5) == pytest.approx(expected, abs=1e-4)


def test_power_of_an_overall_of_games_that_spread_differently():
    rng, sds = np.random.default_rng(1), (2.6, 12.9, 4.7, 6.2, 4.6, 4.8, 13.0, 12.5)
    for n in (2, 3, 10):
        by = paired.detectable(n, sds, games=8)
        runs = [by + sd * math.sqrt(2) * rng.standard_normal((n, 3000)) for sd in sds]
        mean, error, df = intervals.welch(runs)
        found = (paired.two_sided(mean, error, df) <= 0.05).mean()
        assert found == pytest.approx(0.8, abs=0.03)
    assert 2**16 < paired.needed_episodes(0.013, 1) < paired.MOST


# -- ratings ---------------------------------------------------------------------------------------


def drawn(games, skills, seed=1, seat=0.0):
    rng, size = np.random.default_rng(seed), len(skills)
    found = []
    for _ in range(games):
        order = rng.permutation(size)
        result = np.asarray(skills)[order] + seat * (np.arange(size) == 0) + rng.gumbel(size=size)
        found.append((["abcdef"[i] for i in order], result.tolist()))
    return found


def likelihood(games, names, skill):
    """The penalised log likelihood, by the book: whoever is next of those that are left."""
    total = -pairwise_ratings.RIDGE / 2 * np.sum(np.square(skill))
    for players, results in games:
        left = sorted(zip(results, players, strict=True), reverse=True)
        heights = [skill[names.index(player)] for _, player in left]
        total += sum(h - np.logaddexp.reduce(heights[i:]) for i, h in enumerate(heights))
    return total


def test_ratings_are_the_most_likely_ones():
    games = drawn(12, [0, 0.7, 1.4, 2.1])
    fit = pairwise_ratings.plackett_luce(games)
    best = optimize.minimize(lambda s: -likelihood(games, fit.names, s), np.zeros(4), tol=1e-9)
    assert fit.skills == pytest.approx(best.x, abs=1e-4)
    assert fit.skills.sum() == pytest.approx(0, abs=1e-9)
    assert fit.tied == 0


def test_ratings_do_not_hang_on_the_order_of_games():
    games = drawn(20, [0, 0.5, 1, 1.5, 2, 2.5])
    one, other = pairwise_ratings.plackett_luce(games), pairwise_ratings.plackett_luce(games[::-1])
    for a, b in product("abcdef", repeat=2):
        assert one.difference(a, b)[0] == pytest.approx(other.difference(a, b)[0], abs=1e-9)
        if a != b:
            assert one.difference(a, b)[1][:2] == pytest.approx(other.difference(a, b)[1][:2])


def test_two_players_are_a_logistic_regression():
    games = [("ab", [1, 0])] * 7 + [("ba", [1, 0])] * 3
    mean, interval = pairwise_ratings.plackett_luce(games).difference("a", "b")

    def slope(d):
        return 7 - 10 / (1 + math.exp(-d)) - pairwise_ratings.RIDGE * d / 2

    assert mean == pytest.approx(optimize.brentq(slope, -5, 5), abs=1e-9)
    p = 1 / (1 + math.exp(-mean))
    half = 1.959964 / math.sqrt(10 * p * (1 - p) + pairwise_ratings.RIDGE / 2)
    assert interval[:2] == pytest.approx((mean - half, mean + half), abs=1e-6)
    assert (interval.method, interval.n, interval.note) == ("Plackett-Luce", 10, "")


def test_clean_sweeps_stay_finite_and_few_games_are_said():
    fit = pairwise_ratings.plackett_luce([("abc", [3, 2, 1])] * 5)
    mean, interval = fit.difference("a", "c")
    assert 3 < mean < 10
    assert interval.note == "fewer than 10 games"
    assert pairwise_ratings.plackett_luce([("abc", [3, 2, 1])]).difference("a", "c")[1] is None
    with pytest.raises(UnknownName, match="no player 'd'"):
        fit.difference("a", "d")


def test_ties_are_shared():
    fit = pairwise_ratings.plackett_luce([("abc", [1, 1, 0])] * 6)
    assert fit.difference("a", "b")[0] == pytest.approx(0, abs=1e-9)
    assert fit.difference("a", "c")[0] > 1
    assert fit.tied == pytest.approx(1 / 3)
    equal = pairwise_ratings.plackett_luce([("abc", [1, 1, 1])] * 6)
    assert equal.skills == pytest.approx(np.zeros(3), abs=1e-9)


def test_a_player_may_have_several_seats():
    fit = pairwise_ratings.plackett_luce([(["a", "a", "b"], [3, 1, 2])] * 4)
    mirrored = pairwise_ratings.plackett_luce([(["a", "b", "b"], [2, 3, 1])] * 4)
    assert fit.difference("a", "b")[0] == pytest.approx(0, abs=0.5)
    assert mirrored.difference("a", "b")[0] == pytest.approx(0, abs=0.5)


def pairs(won, lost, tied=0):
    results = [1.0] * won + [0.0] * lost + [0.5] * tied
    return np.array([[[0, one], [1 - one, 0]] for one in results])


def test_pairs_are_a_logistic_regression_with_ties_as_halves():
    fit = pairwise_ratings.bradley_terry("ab", pairs(7, 3))
    same = pairwise_ratings.plackett_luce([("ab", [1, 0])] * 7 + [("ba", [1, 0])] * 3)
    assert fit.difference("a", "b")[0] == pytest.approx(same.difference("a", "b")[0], abs=1e-9)
    tied = pairwise_ratings.bradley_terry("ab", pairs(60, 0, 40)).difference("a", "b")[0]
    assert tied == pytest.approx(math.log(0.8 / 0.2), abs=0.02)  # but for the ridge


def test_games_of_an_episode_that_always_agree_are_one():
    once = pairwise_ratings.bradley_terry("ab", pairs(14, 6))
    often = pairwise_ratings.bradley_terry("ab", 50 * pairs(14, 6))
    ends = [fit.difference("a", "b")[1] for fit in (once, often)]
    assert ends[1][:2] == pytest.approx(ends[0][:2], abs=0.05)
    assert (ends[1].method, ends[1].n, ends[1].note) == ("Bradley-Terry", 20, "")
    assert pairwise_ratings.bradley_terry("ab", 50 * pairs(1, 0)).difference("a", "b")[1] is None
    sweep = pairwise_ratings.bradley_terry("ab", pairs(5, 0)).difference("a", "b")
    assert sweep[1].high - sweep[1].low > 2  # nothing differs between episodes
    assert sweep[1].note == "fewer than 10 episodes"


def test_pairs_that_never_met_are_refused():
    apart = np.zeros((2, 4, 4))
    apart[:, 0, 1] = apart[:, 2, 3] = 1
    with pytest.raises(BadParameter, match="never met"):
        pairwise_ratings.bradley_terry("abcd", apart)


def test_a_seat_that_pays_is_told_from_its_players():
    games = drawn(150, [0, 0, 0, 0], seat=2.0)
    fit = pairwise_ratings.plackett_luce(games, seats=True)
    assert fit.seats[0] - fit.seats[1:].mean() == pytest.approx(2, abs=0.5)
    assert fit.difference("a", "b")[0] == pytest.approx(0, abs=0.5)
    assert pairwise_ratings.plackett_luce(games).seats is None


# -- reliability -----------------------------------------------------------------------------------


@each_row(("n", "k"), [(5, 2), (6, 3), (10, 5)])
@each_row("p", [0.2, 0.5, 0.9])
def test_pass_k_is_unbiased(n, k, p):
    counts = range(n + 1)
    values = [variance.pass_k([c, c], [n, n], k).value for c in counts]
    assert stats.binom.pmf(counts, n, p) @ values == pytest.approx(p**k, abs=1e-12)


def test_pass_k_is_of_each_task():
    found = variance.pass_k([10, 0], [10, 10], 3)
    assert found.value == 0.5  # pooled tasks would have some 1/8
    assert 0.1 < found.interval.low < 0.5 < found.interval.high < 0.6
    assert (found.interval.n, found.k, found.tasks) == (10, 3, 2)
    assert variance.pass_k([5, 6], [5, 6], 2).interval.high == 1


def test_pass_k_of_tasks_that_share_chance_is_as_unsure_as_of_one():
    alone = intervals.share(3, 5, guaranteed=True)
    together = variance.pass_k([3] * 4, [5] * 4, 1, independent=False)
    assert together.interval[:2] == pytest.approx(alone[:2])
    assert together.interval.method == "Clopper-Pearson^k, mean of ends"
    assert variance.pass_k([3] * 4, [5] * 4, 1).interval.low > alone.low


def test_parts_of_a_variance_are_those_of_an_analysis_of_variance():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5, 6, 7)) + 3 * rng.normal(size=(5, 1, 1)) + rng.normal(size=(1, 6, 1))
    parts = {part.name: part for part in variance.variance_parts(x, ("a", "b", "c"))}
    centred = x - x.mean()
    squares = {
        name: (x.mean(axis=others) - x.mean()).var() * x.size
        for name, others in (("a", (1, 2)), ("b", (0, 2)), ("c", (0, 1)))
    }
    rest = ((centred**2).sum() - sum(squares.values())) / (209 - 4 - 5 - 6)
    for name, levels in (("a", 5), ("b", 6), ("c", 7)):
        expected = (squares[name] / (levels - 1) - rest) / (x.size / levels)
        assert parts[name].variance == pytest.approx(expected)
    assert parts["rest and sampling"].variance == pytest.approx(rest)
    assert sum(part.share for part in parts.values()) == pytest.approx(1)
    a = parts["a"]
    assert (a.low / a.sd, a.high / a.sd) == pytest.approx((0.60, 2.87), abs=0.01)


def test_repeats_of_the_same_chance_are_sampling():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(5, 5, 1)) * 2 + rng.normal(size=(5, 5, 400))
    parts = variance.variance_parts(x, ("seat", "chance", "sampling"))
    assert [part.name for part in parts] == ["seat", "chance", "rest", "sampling"]
    assert parts[3].variance == pytest.approx(1, abs=0.1)
    assert parts[3].variance == pytest.approx(x.var(axis=2, ddof=1).mean())
    flat = variance.variance_parts(np.ones((5, 5)), ("a", "b"))
    assert [part.share for part in flat] == [0, 0, 0]
