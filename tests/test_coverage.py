"""The intervals hold the true value as often as they say.

Small seeded slices of the simulations behind its tables. A bar leaves room for the error of the
simulation: of 2,000 samples two standard errors are 1 point.
"""

import numpy as np
import pytest
from playing import each_row

from llm_games.benchmarks.judge import intervals, paired
from llm_games.benchmarks.judge.pairwise_ratings import plackett_luce
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.studies import coverage, shapes
from llm_games.benchmarks.studies import markdown as tables

SIMS = 2000


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@each_row("n", [2, 3, 5, 10, 50])
def test_smooth_scores(n, rng):
    for shape in shapes.smooth():
        found = coverage.of_shape(shape, coverage.rule, n, rng, SIMS).share
        assert 0.92 <= found <= 0.98, shape.name


@each_row("n", [2, 5, 20])
def test_tied_scores(n, rng):
    for shape in shapes.tied():
        assert coverage.of_shape(shape, coverage.rule, n, rng, 300).share >= 0.91, shape.name


def test_gaffke_covers_every_shape(rng):
    for shape in (*shapes.smooth(), *shapes.tied(), *shapes.rare()):
        for n in (2, 5):
            assert coverage.of_shape(shape, coverage.gaffke, n, rng, 100).share >= 0.93, shape.name


def test_only_gaffke_holds_a_collapse_that_was_not_seen(rng):
    collapse = shapes.rare()[2]
    assert coverage.of_shape(collapse, coverage.rule, 5, rng, SIMS).share < 0.65
    assert coverage.of_shape(collapse, coverage.gaffke, 5, rng, 300).share > 0.95
    assert coverage.of_shape(collapse, coverage.rule, 50, rng, SIMS).share >= 0.91


@each_row("n", [2, 5, 20])
def test_the_overall_of_published_models(n, rng):
    found = []
    for row in shapes.published():
        columns = [shape.draw(rng, n, 300) for shape in row]
        found.append(coverage.whole(columns, row).share)
    assert len(found) == 13
    assert 0.92 <= np.mean(found) <= 0.98


def test_money(rng):
    normal, _, _, lognormal = shapes.payoffs()
    for n in (2, 5, 20):
        assert 0.935 <= coverage.of_shape(normal, coverage.student, n, rng, SIMS).share <= 0.965
    x = lognormal.draw(rng, 20, 100)
    assert coverage.covered(coverage.one_by_one(x), lognormal.mean).share > 0.85


LAWS = {
    "regret of many rounds": (lambda rng, *size: rng.gamma(4, 1, size), 4.0),
    "regret, skewed": (lambda rng, *size: rng.gamma(2, 1, size), 2.0),
    "half normal": (lambda rng, *size: np.abs(rng.normal(size=size)), np.sqrt(2 / np.pi)),
    "uniform": (lambda rng, *size: rng.random(size), 0.5),
    "far from its bound": (lambda rng, *size: np.maximum(rng.normal(6, 1, size), 0), 6.0),
}
"""Laws of values with a bound at 0 alone, and their means."""


@pytest.mark.nightly
@pytest.mark.parametrize("n", [3, 5, 10, 20])
def test_what_has_a_bound_on_one_side(night, record_property, rng, n):
    """Of means, and of the bands of curves; the interval without the bound covers less often."""
    sims = night(4000, 40_000)
    error = 3 * np.sqrt(0.05 * 0.95 / sims)  # of the simulation
    for name, (draw, mean) in LAWS.items():
        x = draw(rng, n, sims)
        bounded = coverage.covered(intervals.bounded_t(x, 0.0, np.inf, 0.95), mean).share
        mirrored = coverage.covered(intervals.bounded_t(-x, -np.inf, 0.0, 0.95), -mean).share
        record_property(name, bounded)
        assert bounded == mirrored
        assert 0.93 - error <= bounded <= 0.97 + error, name
        assert (canvas.band(x, (0.0, np.inf))[0] > 0).all()
    skewed = coverage.covered(intervals.student_t(draw_skewed(rng, n, sims), 0.95), 2.0).share
    assert skewed < 0.94


def draw_skewed(rng, *size):
    return LAWS["regret, skewed"][0](rng, *size)


@pytest.mark.nightly
@pytest.mark.parametrize("n", [3, 5, 10, 20])
def test_bands_of_what_has_two_bounds(night, record_property, rng, n):
    sims = night(4000, 40_000)
    error = 3 * np.sqrt(0.05 * 0.95 / sims)
    for shape in shapes.smooth():
        ends = canvas.band(shape.draw(rng, n, sims), (0.0, 100.0))
        found = coverage.covered(ends, shape.mean).share
        record_property(shape.name, found)
        assert 0.92 - error <= found <= 0.97 + error, shape.name
        assert (ends[0] >= 0).all()
        assert (ends[1] <= 100).all()


@pytest.mark.nightly
@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_differences_that_are_cut_at_what_is_possible(night, record_property, rng, n):
    """What is cut off holds no possible mean: coverage is that of the paired t test."""
    sims = night(1000, 10_000)

    def change(*size):
        better, worse = (np.clip(rng.normal(mean, 15, size), 0, 100) for mean in (60, 50))
        return better - worse

    x, truth = change(n, sims), change(10**6).mean()
    found = [paired.paired_t(one, widest=100).interval for one in x.T]
    held = np.mean([each.low <= truth <= each.high for each in found])
    record_property("coverage", float(held))
    assert all(-100 <= each.low <= each.high <= 100 for each in found)
    assert abs(held - 0.95) <= 0.02 + 3 * np.sqrt(0.05 * 0.95 / sims)
    free = [paired.paired_t(one).interval for one in x.T]
    assert held == np.mean([each.low <= truth <= each.high for each in free])


@each_row("n", [2, 3, 5, 10, 20, 50])
def test_shares(n):
    ps = np.arange(1, 50) / 50
    jeffreys = [found.share for found in coverage.exact_shares(ps, n, 0.5)]
    assert 0.94 <= np.mean(jeffreys) <= 0.97
    assert min(found.share for found in coverage.exact_shares(ps, n, 0.0)) >= 0.95


@each_row("n", [10, 20])
def test_shares_of_seats(n, rng):
    for p in (0.5, 0.85):
        x = coverage.survivals(rng, p, 0.3, n, SIMS)
        assert coverage.covered(coverage.rule(x, 0.0, 1.0), p).share >= 0.92


@each_row("rho", [0.0, 0.5, 0.8])
def test_correlations(rho, rng):
    for n in (10, 50):
        r = coverage.spearman(rng, np.full(SIMS, rho), n)
        ends = intervals.correlation_ends(r, n, 0.95)
        assert 0.92 <= coverage.covered(ends, 6 / np.pi * np.arcsin(rho / 2)).share <= 0.98


def test_differences_of_ratings(rng):
    for seat in (0.0, 1.0):
        assert 0.90 <= coverage.rated(rng, 0.5, seat, 20, 60).share <= 0.99


def test_ties_draw_ratings_together(rng):
    """Results that are rounded to whole logits: equal players stay so, others seem nearer."""

    def fits(gap, sims):
        for _ in range(sims):
            games = coverage.races(rng, [*"abcdef"], gap * np.arange(6), 0.0, 50)
            yield plackett_luce([(names, np.round(results)) for names, results in games])

    equal = [fit.difference("f", "a")[1] for fit in fits(0.0, 40)]
    assert np.mean([found.low <= 0 <= found.high for found in equal]) >= 0.9
    apart = list(fits(0.5, 20))
    assert 0.14 < np.mean([fit.tied for fit in apart]) < 0.21
    assert 1.9 < np.mean([fit.difference("f", "a")[0] for fit in apart]) < 2.3


def test_pass_k_over_tasks(rng):
    assert coverage.passed(rng, np.full(8, 0.9), 10, 2, 500).share >= 0.91


def test_parts_of_a_variance_have_no_bias(rng):
    found = np.mean([coverage.split(rng, (4.0, 9.0, 16.0, 36.0)) for _ in range(3000)], axis=0)
    assert found == pytest.approx([4, 9, 16, 36], rel=0.07)


def test_the_ends_of_best_reply_gaps(rng):
    players = {"the best reply": 0.75, "truthful": 1.0}
    best, truthful = coverage.gap_rows(rng, 250, players, (5,))
    for row in (best, truthful):
        assert float(row[2].split()[0]) >= 0.92
    assert float(best[3]) <= 0.06
    assert float(truthful[3]) >= 0.5


def test_sign_flips_rarely_raise_false_alarms(rng):
    for n in (3, 5, 10):
        assert (paired.flipped(rng.standard_normal((n, SIMS))) <= 0.05).mean() <= 0.065
    for gap in (0.0, 8.0):
        columns = [gap * s + 5 * rng.standard_normal((5, 200)) for s in [1, -1] * 4]
        assert (paired.flipped(paired.strata(columns)) <= 0.05).mean() <= 0.09


def test_tables_are_written_with_their_day_and_command(tmp_path, monkeypatch):
    def make(rng, sims):
        return [tables.MarkdownTable("Head", ["a", "b"], [["1", str(sims)]])]

    monkeypatch.setattr("sys.argv", ["", "--sims", "7", "--into", str(tmp_path / "some.md")])
    tables.write("some", make, 5)
    dated, text = (tmp_path / "some.md").read_text("utf-8").split("\n\n", 1)
    assert text == "**Head**\n\n| a | b |\n| --- | --- |\n| 1 | 7 |\n"
    assert "`python -m llm_games.benchmarks.studies.some --sims 7 --seed 1`" in dated
