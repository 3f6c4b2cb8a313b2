"""The English auction: worked examples, ties, discounts, turns, what bidders may do and know."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import each_row, sampled

import llm_games
from llm_games.errors import BadParameter
from llm_games.games.english_auction.items import ITEMS, SETS, order_of
from llm_games.games.english_auction.rules import BREAKS, authors_chances
from llm_games.noise import Noise
from llm_games.questions import MISSING, BadReply, Bid
from llm_games.view import View
from llm_games.words import Prompts

W, X = -1, -9  # withdraws; is not asked
LOWEST = {"tie_rule": "lowest_index"}
HALF = {"discount": 50}


def auction(budgets, start=1000, value=2000, **more):
    items = more.pop("items", (("Lamp", start, value),))
    return llm_games.rules(
        "english_auction", players=len(budgets), budgets=tuple(budgets), items=items, **more
    )


def play(game, rounds, seed=0):
    """Play replies by seat; return the last state, the leaders after each round and rewards."""
    state, leaders, rewards = game.reset(seed), [], np.zeros(game.players)
    for replies in rounds:
        assert game.asked(state).tolist() == [reply != X for reply in replies]
        high_before = int(state.high)
        state, outcome = game.step(state, np.array(replies))
        assert not outcome.broke.any()
        rewards += outcome.rewards
        leaders.append(int(outcome.record["winner"] if outcome.record["closed"] else state.leader))
        assert state.over or int(state.high) >= high_before
    return state, leaders, rewards


def play_drawn(game, rounds, leaders):
    """Play with a draw of ties by which these seats lead after each round."""
    for seed in range(100):
        state, outcome = game.step(game.reset(seed), np.array(rounds[0]))
        if leaders[0] in (int(state.leader), int(outcome.record["winner"])):
            return play(game, rounds, seed)
    raise AssertionError("this draw never comes")


N = -1
CASES = {
    "1 sole opening bid": ({}, 1000, [10000] * 3, [[1700, W, W]], [0], 0, 1700, [300, 0, 0]),
    "2 tie": (LOWEST, 1000, [10000] * 3, [[1200, 1200, 1000], [X, 1300, W], [W, X, X]],
              [0, 1, 1], 1, 1300, [0, 700, 0]),
    "3 the other draw": ({}, 1000, [10000] * 3, [[1200, 1200, 1000], [1300, X, W], [X, W, X]],
                         [1, 0, 0], 0, 1300, [700, 0, 0]),
    "4 nobody bids": ({}, 1000, [10000] * 2, [[W, W]], [N], N, N, [0, 0]),
    "5 nobody bids, four prices": (HALF, 1000, [10000] * 2, [[W, W]] * 4, [N] * 4, N, N, [0, 0]),
    "7 jump bid above value": ({}, 1000, [10000] * 3, [[1000, 3000, W], [W, X, X]],
                               [1, 1], 1, 3000, [0, -1000, 0]),
    "8 outbid bidder comes back": (
        {}, 1000, [10000] * 3,
        [[1000, 1100, 1000], [1200, X, W], [X, 1300, X], [1400, X, X], [X, W, X]],
        [1, 0, 1, 0, 0], 0, 1400, [600, 0, 0]),
    "9 budget stops a raise": (LOWEST, 1000, [1250, 10000, 900],
                               [[1200, 1200, W], [X, 1300, X], [W, X, X]],
                               [0, 1, 1], 1, 1300, [0, 700, 0]),
    "9 with the other draw": ({}, 1000, [1250, 10000, 900], [[1200, 1200, W], [W, X, X]],
                              [1, 1], 1, 1200, [0, 800, 0]),
    "11 smallest increment": ({}, 5, [20, 20], [[5, 6], [W, X]], [1, 1], 1, 6, [0, 4]),
    "12 nobody can pay": ({}, 5000, [4999, 400], [[W, W]], [N], N, N, [0, 0]),
}  # fmt: skip


@each_row("case", CASES)
def test_one_item(case):
    more, start, budgets, rounds, leaders, winner, price, profit = CASES[case]
    game = auction(budgets, start, 2 * start, **more)
    state, led, rewards = play_drawn(game, rounds, leaders)
    assert led == leaders
    assert state.over
    assert (int(state.sold_to[0]), int(state.price[0])) == (winner, price)
    assert rewards.tolist() == state.profit.tolist() == profit
    paid = [price if seat == winner else 0 for seat in range(len(budgets))]
    assert state.budget.tolist() == (np.array(budgets) - paid).tolist()
    assert state.won.tolist() == [int(seat == winner) for seat in range(len(budgets))]


def test_6_sold_after_two_discounts():
    game = auction([10000, 10000], **HALF)
    rounds = [[W, W], [W, W], [250, 250], [275, X], [X, W]]
    for seed in range(100):
        state = game.reset(seed)
        for replies in rounds[:3]:
            state, _ = game.step(state, np.array(replies))
        if int(state.leader) == 1:
            break
    state, leaders, rewards = play(game, rounds, seed)
    assert leaders == [-1, -1, 1, 0, 0]
    assert rewards.tolist() == [1725, 0]
    assert state.budget.tolist() == [9725, 10000]


def test_10_two_raises_in_one_round():
    game = auction([10000] * 4, 5000, 10000)
    rounds = [[5000, 5500, 5000, 5200], [6000, X, 6500, 6500], [W, 7000, X, W], [X, X, W, X]]
    for seed in range(100):
        state = game.reset(seed)
        for replies in rounds[:2]:
            state, _ = game.step(state, np.array(replies))
        if int(state.leader) == 2:
            break
    state, leaders, rewards = play(game, rounds, seed)
    assert leaders == [1, 2, 1, 1]
    assert rewards.tolist() == [0, 3000, 0, 0]
    assert state.budget.tolist() == [10000, 3000, 10000, 10000]


def test_prices_and_increments_fall_together():
    game = auction([10000] * 2, **HALF)
    state, seen = game.reset(), []
    while not state.over:
        seen.append((int(state.start), int(game.increment(state)), int(state.item_round)))
        state, _ = game.step(state, np.array([W, W]))
    assert seen == [(1000, 100, 0), (500, 50, 1), (250, 25, 2), (125, 12, 3)]
    assert game.length() == 4 + (10000 - 125) // 12 + 1  # the cheapest start takes longest


def test_a_rule_break_withdraws_and_has_a_kind():
    game = auction([1250, 10000, 900], **LOWEST)
    state = game.reset()
    kinds = game.break_kinds(state, np.array([999, 10001, MISSING]))
    assert [BREAKS[k] for k in kinds] == ["below_start", "over_budget", "format"]
    assert BREAKS[game.break_kinds(state, np.array([1000, 1000, 950]))[2]] == "over_budget"
    state, _ = game.step(state, np.array([1200, 1200, W]))
    assert int(game.floor(state)) == 1300
    kinds = game.break_kinds(state, np.array([1, 1299, 10000]))
    assert [BREAKS[k] for k in kinds] == ["", "below_increment", ""]
    after, outcome = game.step(state, np.array([0, 1299, 0]))
    assert outcome.broke.tolist() == [False, True, False]
    assert outcome.record["actions"].tolist() == [MISSING, W, MISSING]
    assert (int(after.sold_to[0]), int(after.price[0])) == (0, 1200)
    state, _ = game.step(state, np.array([0, 1300, 0]))
    assert BREAKS[game.break_kinds(state, np.array([1400, 0, 0]))[0]] == "over_budget"


def test_one_round_of_a_batch():
    items = (("Lamp", 1000, 2000), ("Chair", 5000, 10000))
    game = auction([10000] * 3, items=items)
    start = game.reset(0, (2,))
    state = start.__class__(**start.__dict__ | {
        "budget": np.array([[10000, 1300], [10000, 10000], [10000, 10000]]),
        "start": np.array([1000, 5000]), "high": np.array([-1, 6000]),
        "leader": np.array([-1, 1]), "item": np.array([0, 1]),
    })  # fmt: skip
    assert game.floor(state).tolist() == [1000, 6500]
    assert game.asked(state).tolist() == [[1, 1], [1, 0], [1, 1]]
    actions = np.array([[1200, 6500], [1500, -1], [-1, 6600]])
    after, outcome = game.step(state, actions)
    assert outcome.broke.tolist() == [[0, 1], [0, 0], [0, 0]]
    assert after.high.tolist() == [1500, 6600]
    assert after.leader.tolist() == [1, 2]
    assert after.withdrawn.tolist() == [[0, 1], [0, 0], [1, 0]]
    assert not after.over.any()


# -- whole auctions with scripted bidders --------------------------------------------------------


def rule(most):
    return lambda game, state, seat, floor: state.bids_on_item[seat] < most


def naive(game, state, seat, floor):
    return floor <= state.estimates[seat, state.item]


def debiased(game, state, seat, floor):
    return floor < state.estimates[seat, state.item] * 100 // (100 + game.markups[seat])


def scripted(game, bidders, seed=0):
    state, log = game.reset(seed), []
    while not state.over:
        floor, actions = int(game.floor(state)), []
        for seat, bids in enumerate(bidders):
            can = floor <= state.budget[seat]
            actions.append(floor if can and bids(game, state, seat, floor) else W)
        asked = np.flatnonzero(game.asked(state)).tolist()
        log.append([(seat, actions[seat]) for seat in asked])
        state, outcome = game.step(state, np.array(actions))
        assert not outcome.broke.any()
    return state, log


AUCTIONS = [
    ([rule(4)], "items_20", {}, "A..D 0@1000, E 0@5000, F 0@1000", [10000], [0]),
    ([rule(4), rule(5)], "items_10", {}, "A..D 1@1700, E 0@5000, F 1@1700, G..I 0@1600",
     [6200, 1500], [200, 1500]),
    ([naive, debiased, rule(4), rule(5)], "items_10", {},
     "A..D 0@2000, E 1@8000, F 0@2000, G 1@1600, H 3@1700, I 3@1700, J 2@7000",
     [0, 2400, 3000, 600], [0, 400, 3000, 6600]),
    ([debiased] * 2, "items_10", {"item_order": "middle"},
     "A..D 1@1900, E 0@5000, J 0@5000, F 1@1000, G 1@1000", [10000, 2400], [0, 400]),
    ([naive] * 2, "items_10", HALF, "A..D 0@2200, E 1@5000, F..H 1@1300, I 0@1200, J 1@625",
     [0, 16475], [0, 475]),
]  # fmt: skip


def sales(text):
    """Read ``A..D 0@1000, E 1@2`` as (winner, price) by letter."""
    sold = {}
    for part in text.split(", "):
        letters, sale = part.split()
        first, last = letters[0], letters[-1]
        for code in range(ord(first), ord(last) + 1):
            sold[chr(code)] = tuple(map(int, sale.split("@")))
    return sold


@each_row(("bidders", "items", "more", "sold", "profit", "left"), AUCTIONS)
def test_whole_auctions(bidders, items, more, sold, profit, left):
    game = auction([10000] * len(bidders), items=items, **LOWEST, **more)
    state, log = scripted(game, bidders)
    names = [game.catalogue[i].name[-1] for i in state.order]
    found = {
        name: (int(winner), int(price))
        for name, winner, price in zip(names, state.sold_to, state.price, strict=True)
        if winner >= 0
    }
    assert found == sales(sold)
    assert state.profit.tolist() == profit
    assert state.budget.tolist() == left
    assert game.spent(state).tolist() == [10000 - money for money in left]
    assert len(log) == int(state.round) <= game.length()


def test_engagement_of_a_whole_auction():
    bidders, items, *_ = AUCTIONS[2]
    state, log = scripted(auction([10000] * 4, items=items, **LOWEST), bidders)
    assert state.engagement.tolist() == [
        [6, 6, 6, 6, 0, 6, 0, 0, 0, 0],
        [6, 6, 6, 6, 4, 6, 4, 0, 0, 0],
        [4, 4, 4, 4, 4, 4, 4, 4, 4, 3],
        [5, 5, 5, 5, 5, 5, 5, 5, 5, 3],
    ]
    assert len(log) == 100


@each_row(
    ("budget", "bids", "price"),
    [(7000, [5000, 5500, 6500], 7000), (20000, [5000, 5500, 6500, 7500], 8000)],
)
def test_a_rule_bidder_against_one_who_always_raises(budget, bids, price):
    game = auction([30000, budget], 5000, 10000, **LOWEST)
    state, log = scripted(game, [lambda *_: True, rule(4)])
    assert [bid for step in log for seat, bid in step if seat == 1 and bid != W] == bids
    assert (int(state.sold_to[0]), int(state.price[0])) == (0, price)


# -- turns and private values --------------------------------------------------------------------

WHOLE = "0:0 1:5 2:10 3:15 4:20 0:25 1:30 2:35 3:40 4:45 0:W 1:50 2:55 3:W 4:W 1:60 2:W"
TURNS = [
    ([47, 61, 52], 1, 1, 52, 55, "1:50 2:51 1:52 2:W"),
    ([470, 610, 520], 10, 1, 520, 55, "1:500 2:510 1:520 2:W"),
    ([48, 60, 55, 41, 52], 1, 1, 56, 61, "1:54 2:55 1:56 2:W"),
    ([48, 60, 55, 41, 52], 5, 1, 60, 17, WHOLE),
    ([60, 60], 5, 0, 60, 14, "1:55 0:60 1:W"),
    ([3, 4], 1, 1, 3, 5, "0:0 1:1 0:2 1:3 0:W"),
]


def private(values, step, start=0, **more):
    return auction(
        [1000] * len(values), start, 0, values="private", increment_pct=0, increment_min=step,
        private_values=[[v] for v in values], **({"bidding": "cyclic"} | more),
    )  # fmt: skip


@each_row(("values", "step", "winner", "price", "replies", "last"), TURNS)
def test_truthful_bidders_in_turns(values, step, winner, price, replies, last):
    state, log = scripted(private(values, step), [naive] * len(values))
    said = [f"{seat}:{'W' if bid == W else bid}" for ((seat, bid),) in log]
    assert " ".join(said[-len(last.split()) :]) == last
    assert len(said) == replies
    assert (int(state.sold_to[0]), int(state.price[0])) == (winner, price)
    assert int(state.profit[winner]) == values[winner] - price


def test_truthful_bidders_in_rounds_and_below_the_start():
    state, log = scripted(private([47, 61, 52], 1, bidding="rounds", **LOWEST), [naive] * 3)
    assert (int(state.sold_to[0]), int(state.price[0]), len(log)) == (1, 53, 55)
    state, log = scripted(private([3, 4], 1, start=5), [naive] * 2)
    assert int(state.sold_to[0]) == -1
    assert log == [[(0, W)], [(1, W)]]


def test_turns_begin_where_they_shall():
    game = private([9, 9, 9, 9], 1, first_bidder=2)
    _, log = scripted(game, [naive] * 4)
    assert [seat for ((seat, _),) in log[:5]] == [2, 3, 0, 1, 2]
    drawn = private([9, 9, 9, 9], 1, first_bidder="random")
    first = drawn.reset(0, (4000,)).turn
    assert np.allclose(np.bincount(first) / 4000, 0.25, atol=0.03)


@each_row("group", ["L", "M", "H"])
def test_private_values_are_drawn_within_the_budget(group):
    game = llm_games.rules("english_auction", preset=f"econ_arena_english_{group}")
    unit = int(game.purses[0]) // 100
    values = game.reset(0, (4000,)).values
    assert values.shape == (5, 1, 4000)
    assert values.min() >= 1
    assert values.max() <= 100 * unit
    assert values.mean() == pytest.approx(50 * unit, rel=0.02)
    assert values.std() == pytest.approx(10 * unit, rel=0.03)
    wide = llm_games.rules(
        "english_auction", values="private", value_mean=2, value_sd=2, budgets=(3, 4, 5, 6)
    )
    values = wide.reset(0, (500,)).values
    assert values.min() == 1
    assert [int(row.max()) for row in values] == [3, 4, 5, 6]


def test_truthful_bidding_ends_near_the_second_value():
    game = llm_games.rules("english_auction", preset="econ_arena_english_M")
    for seed in range(30):
        state, _ = scripted(game, [naive] * 5, seed)
        values = state.values[:, 0]
        assert abs(int(state.price[0]) - np.sort(values)[-2]) <= 10
        assert values[int(state.sold_to[0])] >= values.max() - 10


# -- ties ----------------------------------------------------------------------------------------

AUTHORS = [
    ([1, 1], [1, 1], [1 / 2, 1 / 2]),
    ([1, 1, 0], [1, 1, 1], [3 / 8, 5 / 8, 0]),
    ([0, 1, 1], [1, 1, 1], [0, 1 / 2, 1 / 2]),
    ([1, 1, 0, 0, 0, 0], [1] * 6, [171 / 512, 341 / 512, 0, 0, 0, 0]),
    ([1, 1, 1], [1] * 3, [3 / 16, 5 / 16, 1 / 2]),
    ([1, 1, 1, 1], [1] * 4, [19 / 256, 37 / 256, 9 / 32, 1 / 2]),
    ([1, 0, 1], [1, 0, 1], [1 / 2, 0, 1 / 2]),  # the middle one was not asked
]


@each_row(("tied", "asked", "chances"), AUTHORS)
def test_chances_by_the_authors_code(tied, asked, chances):
    found = authors_chances(np.array(tied, bool), np.array(asked, bool))
    assert found.tolist() == chances


def test_chances_of_seven_by_the_authors_code():
    found = authors_chances(np.ones((7, 2), bool), np.ones((7, 2), bool))
    expected = [0.0079, 0.0159, 0.0318, 0.0635, 0.1270, 0.2539, 0.5]
    assert np.allclose(found, np.array(expected)[:, None], atol=5e-5)


@each_row(
    ("rule_", "replies", "chances"),
    [
        ("uniform", [1000] * 4, [1 / 4] * 4),
        ("uniform", [1000, 1200, W, 1200], [0, 1 / 2, 0, 1 / 2]),
        ("uniform", [1300, 1200, W, 1200], [1, 0, 0, 0]),
        ("lowest_index", [1000, 1200, W, 1200], [0, 1, 0, 0]),
        ("authors", [1000] * 4, [19 / 256, 37 / 256, 9 / 32, 1 / 2]),
        ("authors", [1200, 1200, W, 1000], [11 / 32, 21 / 32, 0, 0]),
    ],
)
def test_ties_are_drawn_with_these_chances(rule_, replies, chances):
    tables = 40_000
    game = auction([10000] * 4, tie_rule=rule_)
    actions = np.tile(np.array(replies)[:, None], tables)
    state, _ = game.step(game.reset(1, (tables,)), actions)
    shares = np.bincount(state.leader, minlength=4) / tables
    assert np.allclose(shares, chances, atol=0.01)


def test_ties_of_one_table_are_drawn_afresh_each_round():
    game = auction([10**6] * 3, 1000)
    state, leaders = game.reset(1), []
    for _ in range(600):
        state, _ = game.step(state, np.full(3, int(game.floor(state))))
        leaders.append(int(state.leader))
    others = [(b - a) % 3 for a, b in itertools.pairwise(leaders)]
    assert set(others) == {1, 2}
    assert 240 < others.count(1) < 360


@each_row(("k", "seat"), [(0, 0), (1, 2), (2, 3)])
def test_a_given_lot_says_which_of_those_tied_leads(k, seat):
    game = auction([10000] * 4)
    state = game.reset(given={"lots": [(k + 0.5) / 3]})
    state, _ = game.step(state, np.array([1200, 1000, 1200, 1200]))
    assert int(state.leader) == seat
    assert (state.lots[1:] == Noise(0, "lots").random(len(state.lots))[1:]).all()
    with pytest.raises(BadParameter, match="'lots' must be numbers from 0 to 1"):
        game.reset(given={"lots": np.ones(2, np.uint64)})


@each_row("tie_rule", ["uniform", "authors"])
def test_a_table_taken_out_of_a_batch_draws_the_same_lots(tie_rule):
    game = auction([10**6] * 4, tie_rule=tie_rule)
    many, singles = game.reset(5, (3,)), [game.reset(5 + i) for i in range(3)]
    for _ in range(30):
        bids = np.where(game.asked(many), game.floor(many), -1)
        alone = [game.step(s, bids[:, i])[0] for i, s in enumerate(singles)]
        taken = pickle.loads(pickle.dumps([many.table(i) for i in range(3)]))
        again = [game.step(copy.deepcopy(s), bids[:, i])[0] for i, s in enumerate(taken)]
        many, _ = game.step(many, bids)
        leaders = [[int(s.leader) for s in states] for states in (alone, again)]
        assert leaders == [many.leader.tolist()] * 2
        singles = alone


# -- items, options and limits -------------------------------------------------------------------


def test_the_items():
    assert len(ITEMS) == 26
    assert [item.name[-1] for item in SETS["items_20"] if item.start == 5000] == list("EJPR")
    assert {item[1:] for item in ITEMS} == {(1000, 2000), (5000, 10000)}
    assert "".join(item.name[-1] for item in ITEMS) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@each_row(
    ("order", "letters"),
    [
        ("listed", "ABCDEFGHIJ"),
        ("early", "EJABCDFGHI"),
        ("middle", "ABCDEJFGHI"),
        ("late", "ABCDFGHIEJ"),
        ([item.name for item in ITEMS[9::-1]], "JIHGFEDCBA"),
    ],
)
def test_orders_of_sale(order, letters):
    assert "".join(ITEMS[i].name[-1] for i in order_of(ITEMS[:10], order)) == letters
    game = llm_games.rules("english_auction", item_order=order)
    state = game.reset(0, (2,))
    assert "".join(game.catalogue[i].name[-1] for i in state.order[:, 1]) == letters


def test_a_given_order_has_each_item_once():
    game = llm_games.rules("english_auction")
    assert game.reset(given={"order": [9, *range(9)]}).order.tolist() == [9, *range(9)]
    for order in ([0] * 10, [1]):
        with pytest.raises(BadParameter, match=r"chance 'order' .* only once, got .*; give all 10"):
            game.reset(given={"order": order})


def test_shuffled_orders_are_uniform():
    game = llm_games.rules("english_auction", items="items_3", item_order="shuffled")
    orders = game.reset(0, (6000,)).order
    counts = np.unique(orders[0] * 9 + orders[1] * 3 + orders[2], return_counts=True)[1]
    assert len(counts) == 6
    assert np.allclose(counts, 1000, atol=120)


@each_row(("pct", "estimate"), [(10, 2200), (-80, 400), (0, 2000), (-100, 0)])
def test_estimates_are_exact(pct, estimate):
    state = llm_games.rules("english_auction", overestimate_pct=pct).reset()
    assert state.estimates[0, 0] == estimate


def test_each_bidder_can_have_its_own():
    game = llm_games.rules(
        "english_auction", players=2, budgets=[3000, 5000], overestimate_pct=[10, -10],
        objective=["items", "profit"], items="items_2", **LOWEST,
    )  # fmt: skip
    state = game.reset()
    assert state.estimates[:, 0].tolist() == [2200, 1800]
    state, outcome = game.step(state, np.array([3000, W]))
    assert outcome.rewards.tolist() == [1, 0]
    state, outcome = game.step(state, np.array([W, 1200]))
    assert outcome.rewards.tolist() == [0, 800]
    assert state.profit.tolist() == [-1000, 800]
    prompts = Prompts("english_auction")
    asked = game.reset()
    assert "to win as many items as possible" in prompts.request(View.of(game, asked, 0))
    assert "highest total of profits over all items" in prompts.request(View.of(game, asked, 1))


def test_skip_broke_asks_only_who_can_pay():
    items = (("Lamp", 100, 200), ("Chair", 500, 900), ("Vase", 400, 900), ("Cup", 10, 30))
    game = auction([150, 90, 450], items=items, skip_broke=True)
    state = game.reset()
    assert game.asked(state).tolist() == [True, False, True]
    state, _ = game.step(state, np.array([100, 0, 120]))
    assert state.withdrawn.tolist() == [False, True, False]
    state, outcome = game.step(state, np.array([140, 0, 0]))
    state, outcome = game.step(state, np.array([0, 0, 170]))
    # Seat 0 cannot raise to 180 and is not asked: sold. Nobody can pay the next two items.
    assert state.sold_to.tolist() == [2, -1, -1, -1]
    assert (int(state.item), game.asked(state).tolist()) == (3, [True, True, True])
    assert outcome.rewards.tolist() == [0, 0, 30]
    poor = auction([5, 7], skip_broke=True)
    assert poor.reset().over
    assert poor.reset(0, (3,)).over.all()
    discounted = auction([300, 100], skip_broke=True, **HALF).reset()
    assert (int(discounted.start), int(discounted.discounts)) == (250, 2)


def test_how_often_a_bidder_is_asked_again():
    assert llm_games.rules("english_auction").attempts(9) == 4
    assert llm_games.rules("english_auction", max_reasks=0).attempts(9) == 1
    assert llm_games.rules("english_auction", reask_limit="unlimited").attempts(9) is None


BIG = {"items": tuple((f"Item {i}", i, 3 * i) for i in range(100)), "players": 20, "budgets": 900}


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), more=st.sampled_from([
    {}, {"players": 1}, {"discount": 30, "skip_broke": True, "budgets": (9000, 4000, 900, 0)},
    {"bidding": "cyclic", "discount": 30}, {"tie_rule": "authors", "players": 7}, BIG,
]))  # fmt: skip
def test_random_play_ends_and_keeps_the_books(seed, more):
    game, rng = llm_games.rules("english_auction", **more), np.random.default_rng(seed)
    state, steps = game.reset(seed, (3,)), 0
    while not state.over.all():
        floor, can = game.floor(state), game.legal(state)[1]
        bids = np.minimum(floor + rng.integers(0, 500, can.shape), can)
        state, outcome = game.step(state, np.where(rng.random(can.shape) < 0.6, bids, W))
        assert not outcome.broke.any()
        assert (state.budget >= 0).all()
        steps += 1
    assert steps <= game.length()
    sold = state.sold_to >= 0
    spent = np.where(sold, state.price, 0).sum(axis=0)
    assert (game.purses.sum() - state.budget.sum(axis=0) == spent).all()
    assert (game.spent(state).sum(axis=0) == spent).all()
    gains = np.where(sold, state.values[0] - state.price, 0).sum(axis=0)
    assert (state.profit.sum(axis=0) == gains).all()
    assert (state.won.sum(axis=0) == sold.sum(axis=0)).all()
    assert (state.engagement.sum(axis=0) >= sold).all()


# -- replies and knowledge -----------------------------------------------------------------------

READ = [
    (1200, 1200), ("1300", 1300), (" +1300 ", 1300), (None, -1), (-1, -1), (-77, -1), ("-5", -1),
    (1000, 1000), (9000, 9000),
]  # fmt: skip
BREAK = [
    (999, "below_start"), (0, "below_start"), (9001, "over_budget"), ("10000", "over_budget"),
    (10**40, "over_budget"),
    (True, "format"), (False, "format"), ("null", "format"), ("", "format"),
    ("1200 dollars", "format"), ([1200], "format"), ({}, "format"), ("1e3", "format"),
    ("1200.0", "format"),
]  # fmt: skip


@each_row(("value", "action"), READ)
def test_legal_replies(value, action):
    assert Bid("bid", 1000, 9000, True).read(value) == action


@each_row(("value", "detail"), BREAK)
def test_illegal_replies(value, detail):
    with pytest.raises(BadReply) as caught:
        Bid("bid", 1000, 9000, True).read(value)
    assert caught.value.detail == detail.removeprefix("format")
    assert caught.value.kind == ("format" if detail == "format" else "range")
    assert (caught.value.action == MISSING) == (detail == "format")


def test_numbers_of_a_reply():
    from decimal import Decimal

    question = Bid("bid", 1000, 9000)
    assert question.read(Decimal("1200.0")) == 1200
    for value in (Decimal("1200.5"), Decimal("NaN"), Decimal("Infinity")):
        with pytest.raises(BadReply, match="whole number or null"):
            question.read(value)
    with pytest.raises(BadReply) as caught:
        question.read(999)
    assert caught.value.detail == "below_increment"


@each_row("budget", [1200, 1000, 900])
def test_the_question_knows_its_legal_replies(budget):
    question, rng = Bid("bid", 1000, budget), np.random.default_rng(0)
    drawn = {sampled(question, rng) for _ in range(3000)}
    assert drawn == {-1, *range(1000, budget + 1)}
    for action in drawn:
        reply = question.reply(action)
        assert all(question.allows(reply[:end]) for end in range(len(reply) + 1))
    for text in ('{"bid": 999}', '{"bid": 1201}', '{"bid": nil', '{"bid": -1}', '{"bid": 1.0'):
        assert not question.allows(text)
    assert ("1000" in question.form()) == (budget >= 1000)
    assert question.value_schema() != Bid("bid", 1000, budget, limits=False).value_schema()
    assert Bid("bid", 1000, budget, limits=False).form() == '{"bid": <a whole number, or null>}'


def test_what_is_told():
    game = llm_games.rules("english_auction", players=3, items="items_2", **LOWEST)
    prompts = Prompts("english_auction")
    state = game.reset()
    text = prompts.text(View.of(game, state, 1))
    for part in ("player_1", "Widget A", "start price 1000", "estimate 2200", "no bids yet",
                 "budget: 10000", "Gadget B 1000/2200", "from 1000 to 10000"):  # fmt: skip
        assert part in text
    assert "2000" not in text  # the true value
    state, _ = game.step(state, np.array([1200, 1200, W]))
    view = View.of(game, state, 1)
    assert prompts.report(view) == (
        "Widget A, replies so far: player_0 bid 1200, player_1 bid 1200, player_2 withdrew."
    )
    assert "player_0 leads with 1200. Smallest raise: 100." in prompts.request(view)
    assert "from 1300 to 10000" in prompts.request(view)
    assert View.of(game, state, 0).question is None
    state, _ = game.step(state, np.array([W, 1300, W]))
    state, _ = game.step(state, np.array([W, W, W]))
    view = View.of(game, state, 0)
    assert prompts.report(view) == "Widget A: sold to player_1 for 1300. True value: 2000."
    assert "Won so far: player_1 1 for 1300 (profit 700)." in prompts.request(view)
    state, _ = game.step(state, np.full(3, W))
    view = View.of(game, state, 0)
    assert prompts.report(view) == "Gadget B: not sold."
    assert view.number("sale_value") == 0


def test_true_values_of_unsold_items_are_told_if_all_are():
    game = llm_games.rules("english_auction", players=2, reveal_value="always")
    state, _ = game.step(game.reset(), np.full(2, W))
    view = View.of(game, state, 0)
    assert Prompts("english_auction").report(view) == "Widget A: not sold. True value: 2000."
    assert view.number("sale_value") * game.scales[view.seat] == 2000


def test_what_is_not_told():
    game = llm_games.rules("english_auction", players=2, reveal_value="never", terse_rules=True)
    prompts = Prompts("english_auction")
    state = game.reset()
    for hidden in ("Smallest raise", "rounded", "drawn", "is out", "seeing"):
        assert hidden not in prompts.text(View.of(game, state, 0))
    state, _ = game.step(state, np.array([1200, 1100]))
    assert "Smallest raise: 100" in prompts.request(View.of(game, state, 1))
    state, _ = game.step(state, np.array([W, W]))
    view = View.of(game, state, 0)
    assert "2000" not in prompts.text(view)
    assert view.number("sale_value") == view.number("profit_0") == 0
    assert "Won so far: player_0 1 for 1200." in prompts.request(view)


def test_others_secrets_make_no_difference():
    """Budgets, estimates and objectives of others show neither in numbers nor in words."""
    prompts = Prompts("english_auction")
    seen = set()
    for budget, pct, objective in ((10000, 10, "profit"), (800, -50, "items")):
        game = llm_games.rules(
            "english_auction", players=2, budgets=(10000, budget), overestimate_pct=(10, pct),
            objective=("profit", objective),
        )  # fmt: skip
        state = game.reset(3)
        for replies in ([1200, W], [W, W], [W, W], [1000, 0]):
            view = View.of(game, state, 0)
            seen.add((int(state.round), view.numbers.tobytes(), prompts.text(view)))
            state, _ = game.step(state, np.array(replies))
    assert len(seen) == 4


def test_numbers_of_a_view():
    game = llm_games.rules("english_auction", players=3, budgets=20000, **LOWEST)
    state, _ = game.step(game.reset(), np.array([1200, 1400, W]))
    view = View.of(game, state, 0)
    shown = {c: float(view.number(c)) * 20000 for c in ("start", "estimate", "increment", "high",
             "floor", "budget", "start_4", "estimate_4", "reply_0", "reply_1")}  # fmt: skip
    assert {k: round(v) for k, v in shown.items()} == {
        "start": 1000, "estimate": 2200, "increment": 100, "high": 1400, "floor": 1500,
        "budget": 20000, "start_4": 5000, "estimate_4": 11000, "reply_0": 1200, "reply_1": 1400,
    }  # fmt: skip
    names = ("round", "leading", "in", "bidders_in", "bids", "asked", "leader", "reply_2")
    assert [float(view.number(c)) for c in names] == [2, 0, 1, 2, 1, 1, 1, -1]
    assert (int(view.low), int(view.high)) == (-1, 20000)
    assert len(game.columns()) == 17 + 2 * 10 + 4 * 3


# -- a model at the table ------------------------------------------------------------------------


def test_a_model_is_asked_again_and_then_withdraws():
    """Seat 1 must bid 1300: 1299 four times is a withdrawal, and seat 0 wins at 1200."""
    from llm_games.wrappers.clients.scripted import ScriptedClient
    from llm_games.wrappers.llm_policy import LLMPolicy
    from llm_games.wrappers.play import play as play_table

    game = auction([10000] * 3, **LOWEST)
    replies = [['{"bid": 1200}'], ['{"bid": 1200}'] + ['{"bid": 1299}'] * 9, ['{"bid": 1000}']]
    replies[2] += ['{"bid": null}']
    players = [LLMPolicy(ScriptedClient(r), max_attempts=9) for r in replies]
    episode = play_table(game, players)
    assert episode.payoffs.tolist() == [800, 0, 0]
    attempts = episode.steps[1].decisions[1].attempts
    assert [a.detail for a in attempts] == ["below_increment"] * 4
    assert "1299 is below the lowest bid allowed now, 1300" in attempts[1].messages[-1]["content"]
    assert episode.steps[1].outcome.broke.tolist() == [False, True, False]
    assert episode.steps[1].decisions[2].attempts[0].detail == ""


# -- presets and environments --------------------------------------------------------------------


@each_row(
    ("preset", "players", "count", "budget", "step"),
    [
        ("auc_arena", 4, 10, 10000, 100),
        ("auc_arena_20", 6, 20, 10000, None),
        ("econ_arena_english_L", 5, 1, 100, 1),
        ("econ_arena_english_M", 5, 1, 1000, 10),
        ("econ_arena_english_H", 5, 1, 10000, 100),
    ],
)
def test_presets(preset, players, count, budget, step):
    game = llm_games.rules("english_auction", preset=preset)
    state = game.reset()
    assert (game.players, len(game.catalogue), int(game.purses[0])) == (players, count, budget)
    assert step in (None, int(game.increment(state)))
    assert game.attempts(9) == (1 if count == 1 else 4)
    assert game.masked == (budget < 10000)


def test_an_illegal_reply_can_void_the_run():
    game = llm_games.rules("english_auction", players=2, failed_reply="void_run")
    state, outcome = game.step(game.reset(0, (2,)), np.array([[10001, W], [1000, 1000]]))
    assert state.void.tolist() == state.over.tolist() == [True, False]
    assert not outcome.rewards[:, 0].any()


def test_an_auction_that_nobody_can_pay_is_over_at_once():
    env = llm_games.make("english_auction", players=2, budgets=10, skip_broke=True)
    env.reset(seed=1)
    while env.agents:
        env.step(None)
    assert env.table.state.over
    text = env.observe_text("player_0")
    assert "Mechanism J: not sold" in text
    assert "Answer" not in text


def test_a_table_to_look_at():
    env = llm_games.make(
        "english_auction", players=2, tie_rule="lowest_index", actions="rules", render_mode="ansi"
    )
    env.reset(seed=1)
    env.step(np.array([1200]))
    env.step(np.array([-1]))
    assert env.render().splitlines()[0] == (
        "English auction: item 2 of 10, Gadget B, start price 1000, round 1"
    )
    env.step(np.array([1500]))
    env.step(np.array([1600]))
    assert env.render().splitlines()[-2:] == [
        "player_0        1500    8800      1     800",
        "player_1  1600 leads   10000      0       0",
    ]


def test_any_negative_number_withdraws():
    game = auction([100, 100], items=[("A", 10, 20)])
    state = game.reset()
    after, outcome = game.step(state, np.array([-5, -2]))
    assert bool(after.over)
    assert outcome.record["actions"].tolist() == [-1, -1]
    state, _ = game.step(state, np.array([15, -3]))
    assert state.sold_to.tolist() == [0]


def test_the_turn_goes_on_behind_who_was_asked_and_not_behind_who_is_broke():
    game = auction(
        [100, 100, 100, 15, 100], items=[("A", 10, 20)], bidding="cyclic", skip_broke=True
    )
    state = game.reset()
    for seat, bid in ((0, 16), (1, 20)):  # seat 3 cannot pay 17
        assert np.flatnonzero(game.asked(state)).tolist() == [seat]
        state, _ = game.step(state, np.where(game.asked(state), bid, -1))
    assert np.flatnonzero(game.asked(state)).tolist() == [2]


def test_in_turns_everybody_hears_of_a_sale_on_its_first_turn():
    game = auction([100] * 3, items=[("A", 10, 20), ("B", 10, 20)], bidding="cyclic")
    state, heard = game.reset(), []
    while not state.over:
        [seat] = np.flatnonzero(game.asked(state))
        told = game.told(state, seat)
        if told["number"] == 2:
            heard.append((int(seat), told["sale"] is not None))
            sold = game.observe(state)[seat, game.column_index["sale_price"]]
            assert (sold > 0) == (told["sale"] is not None)
        bid = 10 if state.high < 0 else 11 if state.high < 11 else -1
        state, _ = game.step(state, np.where(game.asked(state), bid, -1))
    assert [seat for seat, sale in heard if sale] == [0, 1, 2]


def test_breaks_are_counted_by_kind_in_the_record():
    game = auction([1300, 1300, 1300, 5000, 1300])
    state = game.reset()
    actions = np.array([1400, 999, MISSING, 1100, -1])
    after, outcome = game.step(state, actions)
    assert [BREAKS[kind] for kind in outcome.record["break"]] == [
        "over_budget", "below_start", "format", "", "",
    ]  # fmt: skip
    assert outcome.record["actions"].tolist() == [-1, -1, -1, 1100, -1]
    assert bool(after.over)
