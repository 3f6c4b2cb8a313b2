"""AucArena: metrics by hand, ratings and correlations, recorded auctions, experiments offline."""

import csv
import itertools
import json
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import each_row
from scipy import stats

from llm_games.baselines.players import llm_player
from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.papers.auc_arena import metrics as auc_arena
from llm_games.benchmarks.papers.auc_arena.metrics import (
    Auction,
    BeliefNote,
    Bidder,
    Lot,
    PlanNote,
    belief_failures,
    bid_failures,
    follows,
    price_gap,
    prices,
    priority_matrix,
    profits,
    ranks,
    replans,
    standings,
)
from llm_games.benchmarks.papers.auc_arena.spearman import average_ranks, spearman
from llm_games.benchmarks.papers.auc_arena.true_skill import (
    MARGIN,
    SkillPosterior,
    ratings,
    trueskill,
)
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import load, parse
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.errors import BadParameter, UnknownName
from llm_games.games.english_auction.items import EXPENSIVE, ITEMS
from llm_games.registry import rulebook
from llm_games.wrappers.clients.scripted import ScriptedClient

# -- failure rates ---------------------------------------------------------------------------------


def belief(*checks, unreadable=0, resent=True):
    """Return an update; each check is (own checked, own wrong, others checked, others wrong)."""
    found = [{"own": check[:2], "others": check[2:]} for check in checks]
    return BeliefNote(0, found, unreadable, resent)


SECOND_TRY = belief((3, 1, 3, 1), (3, 0, 3, 0))
FOUR_WRONG = belief(*[(3, 1, 3, 1)] * 4)


@each_row(
    ("update", "paper", "authors"),
    [
        (SECOND_TRY, 0.25, 1 / 6),
        (FOUR_WRONG, 4 / 7, 4 / 12),
        (belief((3, 0, 3, 0)), 0, 0),
        (belief((3, 1, 3, 1), resent=False), 1 / 3, 1 / 3),
        (belief(unreadable=3), None, None),
    ],
)
@each_row("group", ["own", "others"])
def test_failure_rate_of_beliefs(update, paper, authors, group):
    assert belief_failures([update], group).value == paper
    assert belief_failures([update], group, "authors").value == authors


def test_failures_are_summed_over_updates():
    assert belief_failures([SECOND_TRY, FOUR_WRONG], "own") == (5, 6)
    assert belief_failures([SECOND_TRY, FOUR_WRONG], "own", "authors") == (5, 13)


def test_groups_are_told_apart():
    update = belief((1, 1, 4, 0))
    assert belief_failures([update], "own").value == 0.5
    assert belief_failures([update], "others").value == 0


def test_unknown_groups_and_definitions():
    with pytest.raises(UnknownName, match="known: others, own"):
        belief_failures([], "self")
    with pytest.raises(UnknownName, match="known: authors, paper"):
        belief_failures([], "own", "ours")


def bidder(name="a", **more):
    return Bidder(**({"objective": "profit", "budget": 10000, "profit": 0, "won": 0} | more),
                  name=name)  # fmt: skip


@each_row(
    ("accepted", "failed", "rate"),
    [
        (12, {"below_increment": 2, "over_budget": 1, "format": 1}, 0.2),
        (0, {"below_increment": 4}, 1),
        (5, {}, 0),
        (0, {"format": 2}, None),
    ],
)
def test_failure_rate_of_bids(accepted, failed, rate):
    assert bid_failures([bidder(accepted=accepted, failed=failed)]).value == rate


# -- correlations ----------------------------------------------------------------------------------

PRIORITIES, BIDS = [3, 2, 2, 1, 3, 1, 2, 1], [4, 1, 2, 0, 5, 1, 0, 0]
WINS = [1, 0, 1, 0, 1, 0, 0, 0]


@each_row(
    ("values", "expected"),
    [
        (PRIORITIES, [7.5, 5, 5, 2, 7.5, 2, 5, 2]),
        (BIDS, [7, 4.5, 6, 2, 8, 4.5, 2, 2]),
        (WINS, [7, 3, 7, 3, 7, 3, 3, 3]),
        ([], []),
    ],
)
def test_average_ranks(values, expected):
    assert average_ranks(values).tolist() == expected


@each_row(
    ("other", "rho"),
    [(BIDS, 0.779484), (WINS, 0.775170), (PRIORITIES, 1), ([-r for r in PRIORITIES], -1)],
)
def test_spearman(other, rho):
    found = spearman(PRIORITIES, other)
    assert found.rho == pytest.approx(rho, abs=5e-7)
    assert found.p == pytest.approx(stats.spearmanr(PRIORITIES, other).pvalue, rel=1e-9)


def test_where_there_is_no_correlation():
    assert spearman([1, 1, 1], [1, 2, 3]) is None
    assert spearman([1, 2, 3], [1, 1, 1]) is None
    assert spearman([], []) is None
    assert spearman([1, 2], [2, 1])[:3] == (-1, None, 2)
    with pytest.raises(BadParameter, match="got 1 and 2 values"):
        spearman([1], [1, 2])


PAIRS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5)), max_size=60)


@settings(max_examples=100)
@given(PAIRS, st.randoms(use_true_random=False))
def test_rank_correlation_is_scipy_s(pairs, random):
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    assert average_ranks(xs).tolist() == stats.rankdata(xs).tolist()
    found = spearman(xs, ys)
    assert (found is None) == (len(set(xs)) < 2 or len(set(ys)) < 2)
    if found is not None:
        expected = stats.spearmanr(xs, ys)
        assert found.rho == pytest.approx(expected.statistic, abs=1e-12)
        if found.p is not None:
            assert found.p == pytest.approx(expected.pvalue, rel=1e-8, abs=1e-12)
        random.shuffle(pairs)
        assert spearman([x for x, _ in pairs], [y for _, y in pairs]) == found
        assert spearman(ys, xs).rho == found.rho


def test_small_probabilities_keep_their_digits():
    rng = np.random.default_rng(0)
    x = rng.integers(1, 4, 600)
    y = x + rng.integers(0, 3, 600)
    expected = stats.spearmanr(x, y).pvalue
    assert expected < 1e-60
    assert spearman(x.tolist(), y.tolist()).p == pytest.approx(expected, rel=1e-8)


# -- ratings ---------------------------------------------------------------------------------------

NEW = SkillPosterior()
SIX = [(35.2972, 5.9776), (30.3288, 5.3630), (26.6878, 5.2027), (23.3122, 5.2027),
       (19.6712, 5.3630), (14.7028, 5.9776)]  # fmt: skip
SIX_AGAIN = [(23.5434, 4.2551), (24.7099, 3.8469), (24.9493, 3.7484), (25.0507, 3.7484),
             (25.2901, 3.8469), (26.4566, 4.2551)]  # fmt: skip


def assert_ratings(found, expected):
    assert np.array(found) == pytest.approx(np.array(expected), abs=1e-3)


@each_row(
    ("scores", "expected"),
    [
        ([1, 0], [(29.3958, 7.1715), (20.6042, 7.1715)]),
        ([0, 1], [(20.6042, 7.1715), (29.3958, 7.1715)]),
        ([5, 5], [(25, 6.4575)] * 2),
        ([2, 1, 0], [(31.6754, 6.6560), (25, 6.2079), (18.3246, 6.6560)]),
        ([5, 4, 3, 2, 1, 0], SIX),
        ([7], [(25, 8.3337)]),
    ],
)
def test_trueskill_of_new_players(scores, expected):
    assert_ratings(trueskill([NEW] * len(scores), scores), expected)


def test_trueskill_goes_on_from_what_is_known():
    first = trueskill([NEW] * 6, [5, 4, 3, 2, 1, 0])
    assert_ratings(trueskill(first, [0, 1, 2, 3, 4, 5]), SIX_AGAIN)
    games = [dict(zip("abcdef", scores, strict=True)) for scores in ((6, 5, 4, 3, 2, 1), range(6))]
    found = ratings(games)
    assert list(found) == list("fedcba")
    assert_ratings([found[name] for name in "abcdef"], SIX_AGAIN)


@each_row("scores", [(1, 0), (0, 0), (0, 1)])
def test_two_players_as_in_the_closed_form(scores):
    before = [SkillPosterior(27, 3), SkillPosterior(22, 6)]
    spreads = [rating.sigma**2 + (25 / 300) ** 2 for rating in before]
    c = np.sqrt(2 * (25 / 6) ** 2 + sum(spreads))
    sign = -1 if scores[0] < scores[1] else 1
    t, e = sign * 5 / c, MARGIN / c
    phi, cdf = stats.norm.pdf, stats.norm.cdf
    if scores[0] == scores[1]:
        among = cdf(e - t) - cdf(-e - t)
        v = (phi(-e - t) - phi(e - t)) / among
        w = v**2 + ((e - t) * phi(e - t) + (e + t) * phi(e + t)) / among
    else:
        v = phi(t - e) / cdf(t - e)
        w = v * (v + t - e)
    expected = [
        (r.mu + way * sign * s / c * v, np.sqrt(s * (1 - s / c**2 * w)))
        for r, s, way in zip(before, spreads, (1, -1), strict=True)
    ]
    assert_ratings(trueskill(before, scores), expected)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 50), st.floats(1, 9), st.integers()), min_size=1,
                max_size=5, unique_by=lambda row: row[2]), st.data())  # fmt: skip
def test_seats_do_not_matter(rows, data):
    order = data.draw(st.permutations(range(len(rows))))
    before, scores = [SkillPosterior(*row[:2]) for row in rows], [row[2] for row in rows]
    found = trueskill(before, scores)
    moved = trueskill([before[i] for i in order], [scores[i] for i in order])
    assert_ratings(moved, [found[i] for i in order])


def test_surprises_stay_finite():
    for scores in itertools.product((0, 1), repeat=3):
        found = trueskill(
            [SkillPosterior(0, 1), SkillPosterior(500, 1), SkillPosterior(1000, 1)], scores
        )
        assert np.isfinite(found).all()
        assert all(rating.sigma > 0 for rating in found)


def test_draws_of_many_do_not_depend_on_seats():
    assert ratings([{"a": 1, "b": 1, "c": 1}]) == ratings([{"c": 1, "b": 1, "a": 1}])


def test_a_score_for_each():
    with pytest.raises(BadParameter, match="got 2 and 1"):
        trueskill([NEW, NEW], [1])
    with pytest.raises(UnknownName, match="rating system 'elo'"):
        ratings([], "elo")


@each_row("system", ["plackett_luce", "bradley_terry", "thurstone_mosteller"])
def test_other_systems_agree_on_the_order(system):
    pytest.importorskip("openskill")
    found = ratings([{"a": 1, "b": 5, "c": 3}] * 3, system)
    assert list(found) == ["b", "c", "a"]
    assert all(rating.sigma < NEW.sigma for rating in found.values())


def test_other_systems_need_a_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openskill", None)
    with pytest.raises(ImportError, match=r"pip install 'llm-games\[ratings\]'"):
        ratings([{"a": 1, "b": 2}], "plackett_luce")


# -- auctions by hand ------------------------------------------------------------------------------

GAME = rulebook("english_auction", players=2, items=(("A", 10, 20), ("B", 50, 100), ("C", 10, 20)))


def auction(prices, plans=((), ()), objectives=("profit", "profit"), names="ab", order="ABC"):
    """Return an auction; `prices` are pairs (winner, price), bids are 2 for winner, 1 for loser."""
    listed = {item.name: item for item in GAME.catalogue}
    left, profit, won, lots = [100, 100], [0, 0], [0, 0], []
    for place, (name, (winner, price)) in enumerate(zip(order, prices, strict=True)):
        if winner >= 0:
            left[winner] -= price
            won[winner] += 1
            profit[winner] += listed[name].value - price
        bids = tuple(0 if winner < 0 else 1 + (seat == winner) for seat in (0, 1))
        lots.append(Lot(place, *listed[name], winner, price, bids, tuple(left)))
    bidders = tuple(
        bidder(name, objective=goal, budget=100, profit=gain, won=count, plans=tuple(made))
        for name, goal, gain, count, made in zip(names, objectives, profit, won, plans, strict=True)
    )
    return Auction(GAME, tuple(lots), bidders)


STATIC = (PlanNote(0, {"A": 1, "B": 3, "C": 2}),)
ADAPTIVE = (
    PlanNote(0, {"A": 1, "B": 3, "C": 2}),
    PlanNote(1, {"B": 3, "C": 2}, again=True),
    PlanNote(2, {"C": 1}, again=True, lost=True),
)
ONE = auction([(0, 12), (1, 60), (1, 15)], (ADAPTIVE, STATIC))


def test_money():
    a, b = standings([ONE])
    assert (a.profit.mean, a.won.mean, a.money_left.mean, a.accepted.mean) == (8, 1, 88, 4)
    assert (b.profit.mean, b.won.mean, b.money_left.mean, b.accepted.mean) == (45, 2, 25, 5)
    assert (a.price_ratio[:3], b.price_ratio.mean) == ((1.2, None, 1), pytest.approx(1.35))
    assert auc_arena.budget_curves([ONE], "a")[0] == [100, 88, 88, 88]
    assert auc_arena.budget_curves([ONE], "b")[0] == [100, 100, 40, 25]
    assert (a.own.value, a.others.value, a.bids.value) == (None, None, None)


def test_auctions_are_the_units_of_intervals():
    """Two seats of one name are averaged in each auction; items of one auction are no sample."""
    auctions = [auction([(i % 2, 10 + i), (1, 60), (1, 15)], names="aa") for i in range(4)]
    [found] = standings(auctions)
    means = [
        (bidders[0].profit + bidders[1].profit) / 2 for bidders in (a.bidders for a in auctions)
    ]
    assert (found.seats, found.profit.runs) == (8, 4)
    assert found.profit.interval == intervals.money(means, *auctions[0].game.profits)
    assert standings(auctions[:1])[0].profit.interval is None


def test_shares_have_the_interval_of_the_auctions_own():
    failed = [{"over_budget": n} for n in (0, 1, 3)]
    auctions = [ONE._replace(bidders=(bidder("a", accepted=4, failed=kinds),)) for kinds in failed]
    share = standings(auctions)[0].shares["bids"]
    assert share.mean == 4 / 16
    assert share.interval == intervals.score([0, 1 / 5, 3 / 7], 0, 1)
    assert standings(auctions)[0].shares["own"] is None


def test_correlations_have_an_interval_from_ten_auctions_on():
    wins = [[(0, 12), (1, 60), (1, 15)], [(1, 12), (1, 60), (0, 15)], [(1, 12), (0, 60), (0, 15)]]
    auctions = [auction(wins[i % 3], (STATIC, STATIC)) for i in range(12)]
    found = follows(auctions, "a", "initial", "win")
    each = [follows([one], "a", "initial", "win").rho for one in auctions]
    assert found.size == 36
    assert found.interval == intervals.score(each, -1, 1)
    assert follows(auctions[:9], "a", "initial", "win").interval is None


def test_money_left_is_averaged_over_auctions():
    other = auction([(1, 12), (1, 60), (1, 15)])
    assert auc_arena.budget_curves([ONE, other], "a") == [[100, 88, 88, 88], [100] * 4]
    twins = auction([(0, 12), (1, 60), (1, 15)], names="aa")
    assert auc_arena.budget_curves([twins], "a") == [[100, 94, 64, 56.5]]


def test_an_item_passed_over_costs_nothing():
    lots = tuple(lot for lot in ONE.lots if lot.place != 1)
    assert auc_arena.budget_curves([Auction(GAME, lots, ONE.bidders)], "b")[0] == [
        100,
        100,
        100,
        25,
    ]


def test_plans_and_what_came_of_them():
    assert follows([ONE], "b", "initial", "engagement").rho == pytest.approx(np.sqrt(3) / 2)
    assert follows([ONE], "a", "initial", "win").rho == pytest.approx(-np.sqrt(3) / 2)
    assert follows([ONE], "a", "current", "win").rho == pytest.approx(-0.5)
    for statistic in auc_arena.STATISTICS:
        same = [follows([ONE], "b", plan, statistic) for plan in auc_arena.PLANS]
        assert same[0] == same[1]
    a, b = standings([ONE])
    for standing, better in ((a, True), (b, False)):
        rhos = {key: found.rho for key, found in standing.correlations.items()}
        gains = [rhos["current", what] > rhos["initial", what] for what in auc_arena.STATISTICS]
        assert all(gains) == better


def test_no_plan_no_correlation():
    without = auction([(0, 12), (1, 60), (1, 15)])
    assert follows([without], "a", "initial", "win") is None
    assert set(standings([without])[0].correlations.values()) == {None}
    constant = auction([(0, 12), (1, 60), (1, 15)], ((PlanNote(0, dict.fromkeys("ABC", 2)),), ()))
    assert follows([constant], "a", "current", "engagement") is None
    with pytest.raises(UnknownName, match="plan 'last'"):
        follows([ONE], "a", "last", "win")
    with pytest.raises(UnknownName, match="statistic 'rank'"):
        follows([ONE], "a", "initial", "rank")


def test_all_auctions_are_pooled():
    found = follows([ONE] * 3, "b", "initial", "engagement")
    assert (found.size, found.rho) == (9, pytest.approx(np.sqrt(3) / 2))
    assert found.p < 0.01


def test_the_worked_priorities():
    items = tuple((name, 1, 2) for name in "ABCDEFGH")
    game = rulebook("english_auction", players=2, items=items)
    lots = tuple(
        Lot(place, *item, 0 if won else 1, 1, (bids, 1), (0, 0))
        for place, (item, bids, won) in enumerate(zip(items, BIDS, WINS, strict=True))
    )
    plan = PlanNote(0, dict(zip("ABCDEFGH", PRIORITIES, strict=True)))
    found = [Auction(game, lots, (bidder("a", plans=(plan,)), bidder("b")))]
    assert follows(found, "a", "initial", "engagement").rho == pytest.approx(0.779484, abs=1e-6)
    assert follows(found, "a", "current", "win").rho == pytest.approx(0.775170, abs=1e-6)


def test_changes_of_plans():
    assert replans(ONE.bidders) == (1, 2)
    a, b = standings([ONE])
    assert (a.changed, a.replanned, a.bad_plans) == (1, 2, 1)
    assert (b.changed, b.replanned, b.bad_plans) == (0, 0, 0)


def test_priorities_by_item_whatever_the_order():
    late = (PlanNote(0, {"C": 3, "A": 1, "B": 1}), PlanNote(1, {"A": 2, "B": 1}, again=True))
    other = auction([(0, 12), (1, 60), (-1, -1)], (late, ()), order="CAB")
    assert priority_matrix([ONE], "a") == {"A": [1, None, None], "B": [3, 3, None], "C": [2, 2, 1]}
    both = {"A": [1, 2, None], "B": [2, 2, 1], "C": [2.5, 2, 1]}
    assert priority_matrix([ONE, other], "a") == both
    assert priority_matrix([other], "b") == {name: [None] * 3 for name in "ABC"}


def test_prices_by_objective():
    mixed = auction([(0, 12), (1, 60), (1, 15)], objectives=("items", "profit"))
    assert prices([mixed]) == {"items": [12], "profit": [60, 15]}
    assert price_gap([mixed]) == 37.5 - 12
    assert price_gap([ONE]) is None
    unsold = auction([(-1, -1)] * 3)
    assert (prices([unsold]), standings([unsold])[0].price_ratio) == ({}, None)


def test_ranks_and_ratings_by_profit():
    draw = auction([(0, 15), (1, 15), (-1, -1)], order="ACB")
    assert ranks([ONE, draw]) == {"a": [2, 1], "b": [1, 1]}
    assert_ratings([ratings(profits([ONE]))["b"]], [(29.3958, 7.1715)])
    assert_ratings(list(ratings(profits([draw])).values()), [(25, 6.4575)] * 2)
    newcomer = auction([(0, 12), (1, 60), (1, 15)], names="ac")
    assert ranks([ONE, newcomer])["c"] == [None, 1]
    with pytest.raises(BadParameter, match="another name for each seat"):
        profits([auction([(0, 12), (1, 60), (1, 15)], names="aa")])


def test_who_sits_where_does_not_matter():
    swapped = Auction(
        GAME,
        tuple(
            lot._replace(winner=1 - lot.winner, bids=lot.bids[::-1], budgets=lot.budgets[::-1])
            for lot in ONE.lots
        ),
        ONE.bidders[::-1],
    )
    assert {found.player: found for found in standings([ONE])} == {
        found.player: found for found in standings([swapped])
    }
    assert ratings(profits([ONE, swapped])) == ratings(profits([swapped, ONE]))
    assert prices([ONE]) == prices([swapped])


# -- data ------------------------------------------------------------------------------------------


def test_published_table():
    rows = auc_arena.published()
    assert len(rows) == 20
    found = {(row.model, row.plan, row.statistic): row.spearman for row in rows}
    assert found["GPT-4", "current", "engagement"] == 0.6221
    assert found["PaLM-2", "initial", "win"] == 0.0269
    better = {
        model
        for model, plan, statistic in found
        if plan == "initial" and found[model, "current", statistic] < found[model, plan, statistic]
    }
    assert better == {"PaLM-2"}


def test_items_are_the_published_ones():
    path = files("llm_games.benchmarks.papers.auc_arena") / "items.csv"
    with path.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["name"], int(row["start"]), int(row["value"])) for row in rows] == [*ITEMS]
    assert tuple(row["name"] for row in rows if row["kind"] == "expensive") == EXPENSIVE


# -- recorded runs ---------------------------------------------------------------------------------


def play_all(path, raw):
    plan = resolve(parse(raw, "test"), "test")
    play_run(lambda: start(plan, path), plan, players(plan))
    with Records.open_readonly(path) as run:
        return {game.label: auc_arena.auctions(game) for game in games(run)}


def test_rule_bidders_as_worked_out(tmp_path):
    seats = ["naive", "debiased", "rule:4", "rule:5"]
    params = {"preset": "auc_arena", "tie_rule": "lowest_index"}
    game = {"game": "english_auction", "params": params, "seats": seats, "label": "four"}
    [one] = play_all(tmp_path / "run.db", {"games": [game]})["four"]
    assert [bidder.profit for bidder in one.bidders] == [0, 2400, 3000, 600]
    assert one.lots[-1].budgets == (0, 400, 3000, 6600)
    assert np.array([lot.bids for lot in one.lots]).T.tolist() == [
        [6, 6, 6, 6, 0, 6, 0, 0, 0, 0],
        [6, 6, 6, 6, 4, 6, 4, 0, 0, 0],
        [4, 4, 4, 4, 4, 4, 4, 4, 4, 3],
        [5, 5, 5, 5, 5, 5, 5, 5, 5, 3],
    ]
    found = standings([one])
    assert [standing.bids.value for standing in found] == [0] * 4
    assert [standing.own.value for standing in found] == [None] * 4
    assert [lot.winner for lot in one.lots] == [0, 0, 0, 0, 1, 0, 1, 3, 3, 2]
    assert list(ratings(profits([one]))) == ["rule:4", "debiased", "rule:5", "naive"]


@pytest.mark.parametrize(("budget", "sold"), [(1500, ["Widget A", "Gadget B"]), (999, [])])
def test_items_nobody_can_pay_are_no_lots(tmp_path, budget, sold):
    params = {"players": 2, "budgets": budget, "skip_broke": True}
    game = {"game": "english_auction", "label": "poor", "seats": ["rule:4"], "params": params}
    [one] = play_all(tmp_path / "run.db", {"games": [game]})["poor"]
    assert [lot.name for lot in one.lots] == sold
    assert len(auc_arena.budget_curves([one], "rule:4")[0]) == 11
    assert standings([one])[0].won.mean == len(sold) / 2


def play_scripted(path, raw, script):
    plan = resolve(parse(raw, "test"), "test")
    made = players(plan)
    for game in plan.games:
        for seat in game.seats:
            if seat.asks:
                made[seat.key] = llm_player(ScriptedClient(script), seat.settings)
    play_run(lambda: start(plan, path), plan, made)
    with Records.open_readonly(path) as run:
        return {game.label: auc_arena.auctions(game) for game in games(run)}


class Bidders:
    """Planning bidders: their first bid is too high, their first belief after an item wrong."""

    def __init__(self):
        self.erred = set()

    def __call__(self, request):
        question = request.question
        if question is None:  # before the run it is asked whether it is there
            return "hello"
        if request.kind in ("plan", "replan"):
            found = {1: [1], 2: [2, 3], 3: [1, 2, 3]}[len(question.items)]
            return question.reply(dict(zip(question.items, found, strict=True)))
        if request.kind == "learn":
            return question.reply(["Bid less."])
        if request.kind == "belief":
            truth = {"summary": ""} | question.truth
            if self.first(request, len(question.items)):
                truth["remaining_budget"] += 100
            return question.reply(truth)
        if question.opening and self.first(request, "bid"):
            return '{"bid": 99999}'
        return question.reply(question.floor if question.opening else -1)

    def first(self, request, *what):
        new = (request.who.episode, request.who.seat, *what) not in self.erred
        self.erred.add((request.who.episode, request.who.seat, *what))
        return new


class Willing(Bidders):
    """The same, without mistakes, for any number of items."""

    def __call__(self, request):
        if request.kind in ("plan", "replan"):
            return json.dumps({"priorities": dict.fromkeys(request.question.items, 2)})
        return super().__call__(request)

    def first(self, request, *what):
        return False


PLANNERS = {
    "seats": ["tiny"],
    "episodes": 4,
    "player": {"strategy": "adaptive", "temperature": 0.7},
    "games": [
        {
            "game": "english_auction",
            "label": "two kinds",
            "order": "shuffled",
            "params": {
                "players": 3,
                "items": "items_3",
                "objective": ["profit", "items", "profit"],
            },
            "seats": [
                {"player": "default", "name": "planner"},
                {"player": "default", "name": "collector", "strategy": "static"},
                "rule:2",
            ],
        }
    ],
}


def test_planning_bidders(tmp_path):
    played = play_scripted(tmp_path / "run.db", PLANNERS, Bidders())["two kinds"]
    assert len({tuple(bidder.name for bidder in one.bidders) for one in played}) > 1
    goals = {bidder.name: bidder.objective for one in played for bidder in one.bidders}
    assert goals == {"planner": "profit", "collector": "items", "rule:2": "profit"}
    found = {standing.player: standing for standing in standings(played)}
    assert {name: standing.strategy for name, standing in found.items()} == {
        "planner": "adaptive",
        "collector": "static",
        "rule:2": None,
    }
    planner, collector, rule = (found[name] for name in ("planner", "collector", "rule:2"))
    for player in (planner, collector):  # 12 updates, each right at the second try
        assert (player.own, player.others) == ((12, 36), (0, 48))
        assert (player.bids.failed, player.bad_format, player.bad_beliefs) == (4, 0, 0)
        # All is mentioned: of 3 bidders one's money, profit and items, and two of two others.
        assert (player.own_named, player.others_named) == ((72, 72), (96, 96))
    assert (rule.own_named.value, rule.others_named.value) == (None, None)
    authors = {standing.player: standing.own for standing in standings(played, "authors")}
    assert authors == {"planner": (12, 60), "collector": (12, 60), "rule:2": (0, 0)}
    assert (rule.own.value, rule.bids.value) == (None, 0)
    assert (planner.replanned, planner.changed, planner.bad_plans) == (8, 4, 0)
    assert (collector.replanned, collector.changed, rule.replanned) == (0, 0, 0)
    for statistic in auc_arena.STATISTICS:
        same = [collector.correlations[plan, statistic] for plan in auc_arena.PLANS]
        assert same[0] == same[1]
        assert set(rule.correlations.values()) == {None}
    assert priority_matrix(played, "planner")["Thingamajig C"] == [3, 3, 1]
    assert priority_matrix(played, "collector")["Thingamajig C"] == [3, 3, 3]


class Silent(Willing):
    """The same, with beliefs that mention nothing but the own money, always rightly."""

    def __call__(self, request):
        if request.kind != "belief":
            return super().__call__(request)
        left = {"total_profits": {}, "winning_bids": {}}
        return request.question.reply({"summary": ""} | request.question.truth | left)


@pytest.mark.parametrize("reveal", ["after_sale", "never"])
def test_what_a_belief_leaves_out_is_no_coverage(tmp_path, reveal):
    """A profit is known unless its bidder won an item whose value was not announced."""
    params = {"players": 3, "items": "items_3", "reveal_value": reveal}
    game = {"game": "english_auction", "label": "silent", "params": params, "seats": ["default"]}
    raw = PLANNERS | {"games": [game], "episodes": 1}
    [one] = play_scripted(tmp_path / "run.db", raw, Silent())["silent"]
    winners = [lot.winner for lot in one.lots]
    assert min(winners) >= 0
    for seat, bidder in enumerate(one.bidders):
        for update in bidder.beliefs:
            hidden = {*winners[: update.item + 1]} if reveal == "never" else set()
            others = 4 - len(hidden - {seat})
            assert update.known == {"own": 3 - (seat in hidden), "others": others}
            assert update.checks == [{"own": [1, 0], "others": [0, 0]}]
    [found] = standings([one])
    assert (found.own.value, found.others.value) == (0, None)  # never wrong, or never said
    assert found.own_named.mentioned == 9
    assert found.others_named.value == 0


def test_unusable_plans_and_beliefs(tmp_path):
    """Only withdrawals can be read, so that all plans are lost and no belief is checked."""

    def script(request):
        return '{"bid": null}' if request.kind == "move" else "I do not know."

    params = {"players": 2, "items": "items_2"}
    game = {"game": "english_auction", "label": "mute", "params": params, "seats": ["default"]}
    [one] = play_scripted(tmp_path / "run.db", PLANNERS | {"games": [game], "episodes": 1}, script)[
        "mute"
    ]
    found = standings([one])[0]
    assert (found.bad_plans, found.replanned, found.changed) == (4, 2, 0)
    assert (found.bad_beliefs, found.own.value, found.bids) == (16, None, (0, 4))
    assert found.correlations["initial", "win"] is None


def test_bids_that_stay_too_low(tmp_path):
    """Four bids are refused, then the rules withdraw the bidder."""
    params = {"players": 2, "items": "items_1"}
    seats = ["default", {"player": "rule:1", "name": "rule"}]
    game = {"game": "english_auction", "label": "low", "params": params, "seats": seats}
    raw = {"games": [game], "seats": ["tiny"]}
    [one] = play_scripted(tmp_path / "run.db", raw, lambda _: '{"bid": 999}')["low"]
    low, rule = standings([one])
    assert one.bidders[0].failed == {"below_start": 4}
    assert (low.bids, low.bids.value, low.strategy) == ((4, 0), 1, None)
    assert (rule.bids, rule.price_ratio.mean) == ((0, 1), 1)


# -- experiments -----------------------------------------------------------------------------------

EXPERIMENTS = {
    "rationality": {"budget 10000": 30, "budget 20000": 30},
    "planning": {
        f"budget {budget}, {order}": 10
        for budget in (10000, 20000)
        for order in ("early", "middle", "late")
    },
    "intraspecific": {
        f"budget {budget}, rule of {bids}": 30 for budget in (10000, 20000) for bids in (4, 5)
    },
    "interspecific": {f"budget {budget}": 30 for budget in (10000, 20000, 30000)},
    "learning": {"ten auctions in a row": 10},
}


def planned(name):
    return resolve(parse(load(f"auc-arena/{name}"), name), name)


@each_row("name", EXPERIMENTS)
def test_experiments_are_the_paper_s(name):
    games = {game.label: game for game in planned(name).games}
    assert {label: len(game.seeds) for label, game in games.items()} == EXPERIMENTS[name]
    for label, game in games.items():
        rules = game.rules()
        assert game.order == "shuffled"
        assert game.series == (name == "learning")
        assert (rules.increment_pct, rules.overestimate_pct) == (10, 10)
        assert rules.item_order == (label.split(", ")[1] if name == "planning" else "shuffled")
        assert rules.items == ("items_10" if name in ("rationality", "planning") else "items_20")
        budget = 15000 if name == "learning" else int(label.removeprefix("budget ").split(",")[0])
        assert rules.budgets == budget


@each_row(
    ("name", "names"),
    [
        ("rationality", ["tiny"] * 2),
        ("planning", ["no plan", "one plan", "new plans"]),
        ("interspecific", ["profit A", "profit B", "items A", "items B"]),
    ],
)
def test_who_plays(name, names):
    for game in planned(name).games:
        assert [seat.name for seat in game.seats] == names
        assert {seat.settings["temperature"] for seat in game.seats} == {0.7}


def test_strategies():
    seats = planned("planning").games[0].seats
    assert [seat.settings["strategy"] for seat in seats] == ["none", "static", "adaptive"]
    for name in ("rationality", "interspecific"):
        for game in planned(name).games:
            assert {seat.settings["strategy"] for seat in game.seats} == {"adaptive"}


def test_rule_bidders_and_the_learner():
    for game in planned("intraspecific").games:
        assert game.seats[5].player == f"rule:{game.label[-1]}"
        assert len({seat.name for seat in game.seats}) == 6
    [game] = planned("learning").games
    assert game.seats[5].player == "rule:5"
    assert [seat.settings.get("learning") for seat in game.seats] == [None] * 6 + [True]
    assert len({seat.name for seat in game.seats}) == 7
    assert planned("interspecific").games[0].rules().objectives == ("profit",) * 2 + ("items",) * 2


@pytest.mark.slow
@pytest.mark.parametrize("name", [*EXPERIMENTS, "vanilla"])
def test_experiments_run(name, tmp_path):
    """With models that plan as they are asked to, one episode each."""
    raw = load(f"auc-arena/{name}")
    raw["games"] = [game | {"episodes": 1} for game in raw["games"][:1]]
    raw["player"] |= {"structured": True}  # or the script is not shown the question
    found = play_scripted(tmp_path / "run.db", raw, Willing())
    assert [len(auctions) for auctions in found.values()] == [1]
    for [auction] in found.values():
        assert sum(lot.winner >= 0 for lot in auction.lots) >= 1
