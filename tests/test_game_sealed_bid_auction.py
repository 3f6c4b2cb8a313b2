"""The sealed-bid auction: valuations, worked examples, ties, what is told, a scripted game."""

import dataclasses

import numpy as np
import pytest
from playing import each_row

import llm_games
from llm_games.questions import MISSING
from llm_games.view import View
from llm_games.words import Prompts, versions

DEFAULT = """
200 30 0 80 70 160 20 110 10 100
10 90 40 140 110 30 70 190 170 130
130 160 170 30 50 120 180 40 0 140
80 130 150 200 20 90 50 0 10 70
20 120 10 70 160 40 90 80 190 0
110 20 130 170 140 100 40 80 60 120
170 100 40 200 90 60 110 120 150 20
20 110 130 30 100 10 160 0 120 190
150 80 110 70 200 100 10 190 50 30
70 160 170 50 200 190 130 80 40 60
80 10 160 150 110 130 0 20 170 60
190 60 140 160 150 110 170 70 180 0
40 140 170 90 150 160 60 30 70 50
20 60 40 90 200 50 180 10 150 110
170 0 150 160 90 130 110 30 10 50
10 110 180 0 70 100 160 40 60 150
180 60 190 200 10 170 70 150 50 40
70 20 140 0 40 90 110 170 100 150
90 200 180 40 80 70 120 150 130 50
150 50 170 60 100 90 190 120 110 0
"""
ROUND_1 = [200, 30, 0, 80, 70, 160, 20, 110, 10, 100]
SHADED = [180, 27, 0, 72, 63, 144, 18, 99, 9, 90]


def auction(**more):
    return llm_games.rules("sealed_bid_auction", **more)


def given_valuations(valuations, **more):
    return auction(players=len(valuations), rounds=1, valuations=[valuations], **more)


def bid_once(rules, bids, tables=None):
    """Bid the same at one table, or at many tables that differ in chance alone."""
    batch = () if tables is None else (tables,)
    state = rules.reset(1, batch)
    actions = np.array(bids).reshape(-1, *(1 for _ in batch))
    return rules.step(state, np.broadcast_to(actions, (rules.players, *batch)))


def test_default_valuations():
    state = auction().reset(7)
    expected = [[int(v) for v in line.split()] for line in DEFAULT.split("\n") if line]
    assert state.valuations.tolist() == expected


@each_row(
    ("largest", "first", "last"),
    [
        (100, "100,10,0,40,90,60,50,80,20,30", "70,20,80,30,60,90,50,40,100,0"),
        (400, "400,70,10,170,150,140,80,60,50,270", "310,110,350,130,200,180,360,10,400,220"),
        (800, "140,30,350,310,280,170,130,690,110,540", "630,230,710,270,410,370,760,30,620,450"),
    ],
)
def test_valuations_of_the_variants(largest, first, last):
    state = auction(valuation_max=largest).reset()
    for t, row in ((0, first), (-1, last)):
        assert ",".join(map(str, state.valuations[t])) == row


@each_row(
    ("price", "valuations", "bids", "candidates", "paid", "utility"),
    [
        pytest.param("first", ROUND_1, SHADED, [0], 180, [20], id="A1"),
        pytest.param("second", ROUND_1, SHADED, [0], 144, [56], id="A2"),
        pytest.param("first", ROUND_1, ROUND_1, [0], 200, [0], id="A3"),
        pytest.param("second", ROUND_1, ROUND_1, [0], 160, [40], id="A4"),
        pytest.param("first", ROUND_1, [0] * 10, [*range(10)], 0, ROUND_1, id="A5"),
        pytest.param("first", [50, 120, 120, 0], [40, 100, 100, 0], [1, 2], 100, [20, 20], id="A6"),
        pytest.param(
            "second", [50, 120, 120, 0], [40, 100, 100, 0], [1, 2], 100, [20, 20], id="A7"
        ),
        pytest.param("first", [10, 20], [10, 10], [0, 1], 10, [0, 10], id="A8"),
        pytest.param("first", [50, 100, 0], [60, 55, 5], [0], 60, [-10], id="A9"),
        pytest.param("first", [50, 100, 0], [60, 90, 5], [1], 90, [10], id="A10"),
        pytest.param("second", [50, 100, 0], [60, 90, 5], [1], 60, [40], id="A11"),
    ],
)
def test_worked_examples(price, valuations, bids, candidates, paid, utility):
    rules = given_valuations(valuations, price=price, bid_range="unbounded")
    _, outcome = bid_once(rules, bids, tables=400)
    assert sorted(set(outcome.record["winner"].tolist())) == candidates
    assert set(outcome.record["price"].tolist()) == {paid}
    gains = dict(zip(candidates, utility, strict=True))
    for table, winner in enumerate(outcome.record["winner"].tolist()):
        expected = [gains[seat] if seat == winner else 0 for seat in range(len(bids))]
        assert outcome.rewards[:, table].tolist() == expected
        assert outcome.record["utility"][:, table].tolist() == expected


@each_row("bids", [[60, 55, 5], [60, 90, 5]], ids=["A9", "A10"])
def test_overbids_break_the_rules(bids):
    rules = given_valuations([50, 100, 0])
    _, outcome = bid_once(rules, bids)
    assert outcome.broke.tolist() == [True, False, True]
    assert outcome.record["actions"].tolist() == [0, bids[1], 0]
    assert outcome.record["winner"] == 1


def test_ties_are_fair():
    rules = given_valuations([120, 120, 120, 0])
    _, outcome = bid_once(rules, [100, 100, 100, 0], tables=9000)
    wins = np.bincount(outcome.record["winner"], minlength=4)
    assert wins[3] == 0
    assert abs(wins[:3] - 3000).max() < 5 * np.sqrt(9000 * 2 / 9)


@each_row(("count", "index"), [(1, 0), (2, 0), (3, 2), (10, 8)])
def test_shared_lots_of_round_1(count, index):
    seats = [0, 5, 7] if count == 3 else [0, 7] if count == 2 else [*range(count)]
    bids = [10 if seat in seats else 0 for seat in range(10)]
    rules = auction(tie_rng="shared", bid_range="unbounded")
    state = rules.reset(5)
    _, outcome = rules.step(state, np.array(bids))
    assert outcome.record["winner"] == seats[index]


@each_row("more", [{}, {"valuation_min": 5, "valuation_max": 14, "interval": 1}])
def test_random_valuations_follow_the_law(more):
    """Distinct, on the grid, every value equally likely at every seat, new at every table."""
    rules = auction(valuation_draw="random", rounds=3, **more)
    drawn = rules.reset(2, (2000,)).valuations
    grid = np.arange(rules.valuation_min, rules.valuation_max + 1, rules.interval)
    assert drawn.shape == (3, 10, 2000)
    assert np.isin(drawn, grid).all()
    ordered = np.sort(drawn, axis=1)
    assert (ordered[:, 1:] > ordered[:, :-1]).all()
    expected = 3 * 2000 / len(grid)
    for seat in (0, 4, 9):
        counts = np.bincount(np.searchsorted(grid, drawn[:, seat].ravel()), minlength=len(grid))
        assert abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_seeded_valuations_are_the_same_at_every_table():
    drawn = auction().reset(0, (3,)).valuations
    assert (drawn == drawn[..., :1]).all()


@each_row(
    ("bid", "bid_range", "broken"),
    [
        (200, "own_value", False),
        (0, "own_value", False),
        (201, "own_value", True),
        (-1, "own_value", True),
        (MISSING, "own_value", True),
        (-5, "unbounded", False),
        (10**6, "unbounded", False),
        (MISSING, "unbounded", True),
    ],
)
def test_legal_bids(bid, bid_range, broken):
    rules = auction(bid_range=bid_range)
    _, outcome = bid_once(rules, [bid] + [0] * 9)
    assert outcome.broke.tolist() == [broken] + [False] * 9
    assert outcome.record["actions"][0] == (0 if broken else bid)


def test_a_broken_rule_can_void_the_run():
    state, outcome = bid_once(auction(failed_reply="void_run"), [201] + [0] * 9)
    assert state.void
    assert state.over
    assert not outcome.rewards.any()


def test_the_mask_shows_each_seat_its_own_bids():
    rules = auction()
    mask = rules.mask(rules.reset())
    assert mask.sum(axis=1).tolist() == [v + 1 for v in ROUND_1]
    assert not auction(bid_range="unbounded").masked


@each_row(("parse", "value"), [("strict", None), ("truncate", 19)])
def test_questions(parse, value):
    rules = auction(number_parse=parse)
    question = rules.question(rules.reset(), 1)
    assert question.wanted() == "a whole number from 0 to 30"
    assert (question.truncate, question.key) == (value is not None, "bid")


@each_row("price", ["first", "second"])
def test_a_loser_learns_nothing_else(price):
    """What stays hidden may change: losing bids, other valuations, who won, the own seat."""
    one = auction(price=price, players=4, rounds=2, valuations=[[9, 9, 9, 9], [7, 1, 1, 1]])
    two = auction(price=price, players=4, rounds=2, valuations=[[9, 8, 8, 9], [7, 3, 2, 4]])
    before, _ = one.step(one.reset(), np.array([3, 8, 5, 5]))
    after, _ = two.step(two.reset(), np.array([3, 5, 8, 1]))
    assert one.told(before, 0) == two.told(after, 0)
    assert np.array_equal(one.observe(before)[0], two.observe(after)[0])
    order = [1, 0, 3, 2]
    seated = dataclasses.replace(
        before,
        valuations=before.valuations[:, order],
        bids=before.bids[order],
        winner=np.int64(order.index(int(before.winner))),
        utility=before.utility[order],
    )
    for seat in range(4):
        assert one.told(before, order[seat]) == one.told(seated, seat)
        assert np.array_equal(one.observe(before)[order[seat]], one.observe(seated)[seat])


@each_row("version", versions("sealed_bid_auction"))
def test_no_wording_tells_the_law_of_the_valuations(version):
    prompts = Prompts("sealed_bid_auction", version)
    one, two = auction(), auction(valuation_min=3, valuation_max=453, interval=5, seed=9)
    assert prompts.rules(one, 0) == prompts.rules(two, 7)


@each_row("version", versions("sealed_bid_auction"))
def test_every_wording_tells_the_options_apart(version):
    prompts = Prompts("sealed_bid_auction", version)
    settings = [{}, {"price": "second"}, {"bid_range": "unbounded"}, {"rounds": 7}, {"players": 6}]
    assert len({prompts.rules(auction(**more), 0) for more in settings}) == len(settings)


def test_a_scripted_game():
    rules = auction(players=3, rounds=2, price="second", valuations=[[200, 30, 70], [10, 90, 40]])
    prompts = Prompts("sealed_bid_auction")
    state = rules.reset(0)
    assert prompts.report(View.of(rules, state, 0)) == ""
    assert prompts.request(View.of(rules, state, 1)) == (
        "Round 1 of 2. The item is worth 30 to you. How much do you bid? Your goal is the highest "
        "total of profits over all rounds.\nAnswer only with JSON of this form: "
        '{"bid": <a whole number from 0 to 30>}'
    )
    state, _ = rules.step(state, np.array([180, 30, 70]))
    assert prompts.report(View.of(rules, state, 0)) == (
        "Result of round 1: your value was 200 and you bid 180. The highest bid was 180, and the "
        "winner paid 70. You won. Your profit was 130."
    )
    assert prompts.report(View.of(rules, state, 2)) == (
        "Result of round 1: your value was 70 and you bid 70. The highest bid was 180, and the "
        "winner paid 70. You did not win. Your profit was 0."
    )
    assert prompts.request(View.of(rules, state, 2)).startswith(
        "Round 2 of 2. The item is worth 40"
    )
    state, outcome = rules.step(state, np.array([0, 80, 0]))
    assert outcome.finished.all()
    assert outcome.rewards.tolist() == [0, 90, 0]
    assert prompts.request(View.of(rules, state, 1)) == ""
    assert rules.picture(state) == (
        "Sealed-bid auction (second price): round 2 of 2, player_1 pays 0",
        ["seat", "valuation", "bid", "utility"],
        [
            ["player_0", "10", "0", "0"],
            ["player_1", "90", "80", "90"],
            ["player_2", "40", "0", "0"],
        ],
    )
