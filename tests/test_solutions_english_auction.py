"""Ascending auctions: knapsacks, clocks and hindsight by hand and by brute force; the bidders."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import each_row

from llm_games.baselines.games.english_auction import theory as solution
from llm_games.baselines.games.english_auction.players import informed, learned
from llm_games.baselines.players import make_player
from llm_games.baselines.regret import deviation
from llm_games.errors import BadParameter, UnknownName
from llm_games.noise import Noise
from llm_games.registry import rulebook
from llm_games.view import View


def best_profit(values, prices, budget):
    step = solution.money_step(np.append(prices, budget), 0)
    gains = np.maximum(np.asarray(values) - prices, 0)
    table = solution.knapsack(np.asarray(prices) // step, gains, budget // step)
    return int(table[-1])


items = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), min_size=1, max_size=6)


@given(items=items, most=st.integers(0, 30))
def test_knapsack_against_all_subsets(items, most):
    costs, gains = zip(*items, strict=True)
    found = solution.knapsack(costs, gains, most)
    for money in range(most + 1):
        best = 0
        for chosen in itertools.product((0, 1), repeat=len(items)):
            if np.dot(chosen, costs) <= money:
                best = max(best, int(np.dot(chosen, gains)))
        assert found[money] == best


@each_row(
    ("amounts", "most", "step"),
    [([1000, 5000, 100, 500], 20000, 100), ([1, 7], 10000, 25), ([0, 0], 0, 1), ([0, 3], 100, 3)],
)
def test_steps_of_money(amounts, most, step):
    assert solution.money_step(np.array(amounts), most) == step


def test_buying_must_beat_what_the_money_buys_later():
    """One later item of 5000 that gains 5000, and money for it alone."""
    later = {"costs": np.array([[5000]] * 4), "gains": np.array([[5000]] * 4), "step": 100}
    budget, price = np.array([5500, 6000, 4000, 900]), np.array([1000, 1000, 1000, 1000])
    found = solution.bears(budget, price, np.full(4, 1000), **later)
    assert found.tolist() == [False, True, True, False]  # the last cannot pay


def test_expected_prices_follow_the_money():
    starts = np.array([[1000, 5000]] * 4)
    money = np.array([3000, 7000, 10500, 99999])
    found = solution.expected_prices(starts, np.full(4, 1000), money)
    assert found.tolist() == [[1000, 5000], [1000, 5000], [1500, 7500], [2000, 10000]]
    assert solution.expected_prices(np.zeros((1, 2), int), np.array([0]), np.array([5])).sum() == 0


def clock(limits, start, step):
    """Return winner and price when all raise by the smallest step up to their limits.

    The lowest seat wins among equal limits. Who leads at which step is not modelled: by turns
    the price may differ by one step. Nobody (-1) pays 0.
    """
    first, second = np.sort(limits, axis=0)[[-1, -2]]
    steps = -(-np.maximum(second - start, 0) // step)
    price = np.minimum(start + step * steps, start + step * ((first - start) // step))
    sold = first >= start
    return np.where(sold, limits.argmax(axis=0), -1), np.where(sold, price, 0)


@each_row(
    ("limits", "start", "step", "result"),
    [
        ([47, 61, 52], 0, 1, (1, 52)),
        ([48, 60, 55, 41, 52], 0, 5, (1, 55)),
        ([3, 4], 5, 1, (-1, 0)),
        ([10, 10], 0, 3, (0, 9)),
        ([2, 9], 5, 1, (1, 5)),
    ],
)
def test_clock(limits, start, step, result):
    winner, price = clock(np.array(limits), start, step)
    assert (int(winner), int(price)) == result
    batch = np.repeat(np.array(limits)[:, None], 2, axis=1)
    assert clock(batch, start, step)[1].tolist() == [result[1]] * 2


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), step=st.integers(1, 9), cyclic=st.booleans())
def test_truthful_play_ends_within_a_step_of_the_clock(seed, step, cyclic):
    values = np.random.default_rng(seed).integers(0, 100, (4, 1))
    game = rulebook("english_auction", players=4, items=(("Lamp", 10, 0),), values="private",
                    private_values=values.tolist(), increment_pct=0, increment_min=step,
                    budgets=200, bidding="cyclic" if cyclic else "rounds")  # fmt: skip
    state = play(game, ["rational"] * 4, seed)
    winner, price = clock(values[:, 0], 10, step)
    assert (int(state.sold_to[0]) >= 0) == (winner >= 0)
    if winner >= 0:
        assert abs(int(state.price[0]) - price) <= step
        assert values[int(state.sold_to[0])] >= values.max() - step


def test_regret_by_hand():
    values, purses = np.array([[2000] * 3] * 3), np.array([[9000] * 3, [9000] * 3, [1500] * 3])
    winner, price = np.array([0, 0, -1]), np.array([1300, 2500, -1])
    least = np.array([1400, 2600, 1000])
    found = solution.regret(values, winner, price, least, purses)
    assert found.tolist() == [[0, 500, 1000], [600, 0, 1000], [600, 0, 1000]]


def test_deviation_of_a_step():
    game = rulebook("english_auction", players=2, items="items_2")
    state, found = game.reset(0), []
    for actions in ([1200, -1], [-1, -1]):
        state, outcome = game.step(state, np.array(actions))
        found.append(deviation(game, outcome.record))
    assert found[0].regret.tolist() == [0, 700]  # 1200 and the increment are 700 below the value
    assert found[1].regret.tolist() == [1000, 1000]
    assert np.isnan(found[0].distance)
    _, outcome = game.step(game.reset(0), np.array([1000, 1100]))
    assert deviation(game, outcome.record).nash_conv == 0  # nothing is closed yet


@given(items=items, budget=st.integers(0, 30))
def test_best_profit_against_all_subsets(items, budget):
    prices, values = (np.array(column) for column in zip(*items, strict=True))
    best = 0
    for chosen in itertools.product((0, 1), repeat=len(items)):
        if np.dot(chosen, prices) <= budget:
            best = max(best, int(np.dot(chosen, values - prices)))
    assert best_profit(values, prices, budget) == best


# -- the bidders ---------------------------------------------------------------------------------


def play(game, names, seed=0, batch=()):
    players = [make_player(name, game) for name in names]
    state = game.reset(seed, batch)
    memories = [player.start(game, i, seed + i) for i, player in enumerate(players)]
    while not state.over.all():
        actions = np.full((game.players, *batch), -1)
        for seat in np.flatnonzero(game.asked(state).reshape(game.players, -1).any(axis=1)):
            view = View.of(game, state, int(seat))
            decided, memories[seat] = players[seat].act(view, memories[seat])
            actions[seat] = decided.action
        state, outcome = game.step(state, actions)
        assert not outcome.broke.any()
    return state


AUCTIONS = [
    (["rule:4"], "items_20", {}, [10000], [0]),
    (["rule:4", "rule:5"], "items_10", {}, [6200, 1500], [200, 1500]),
    (["naive", "debiased", "rule:4", "rule:5"], "items_10", {}, [0, 2400, 3000, 600],
     [0, 400, 3000, 6600]),
    (["debiased"] * 2, "items_10", {"item_order": "middle"}, [10000, 2400], [0, 400]),
    (["naive"] * 2, "items_10", {"discount": 50}, [0, 16475], [0, 475]),
    (["cooperative"] * 4, "items_10", {}, [7000, 7000, 2000, 2000], [3000, 3000, 8000, 8000]),
]  # fmt: skip


@each_row(("names", "items", "more", "profit", "left"), AUCTIONS)
def test_whole_auctions(names, items, more, profit, left):
    settings = {"players": len(names), "items": items, "tie_rule": "lowest_index", **more}
    state = play(rulebook("english_auction", **settings), names)
    assert state.profit.tolist() == profit
    assert state.budget.tolist() == left


@pytest.mark.parametrize("name", ["rule:4", "naive", "debiased", "knap", "mc", "cooperative"])
@pytest.mark.parametrize("terse", [False, True])
def test_a_batch_of_tables_equals_single_ones(name, terse):
    game = rulebook(
        "english_auction", items="items_5", item_order="shuffled", budgets=(7000, 3000, 9000, 0),
        terse_rules=terse, discount=20, reveal_value="never",
    )  # fmt: skip
    player = make_player(name, game)
    state = game.reset(0, (6,))
    memory = player.start(game, 0, 0)
    for _ in range(30):
        asked = game.asked(state)
        actions = np.full(asked.shape, -1)
        for seat in range(4):
            whole, _ = player.act(View.of(game, state, seat), memory)
            actions[seat] = whole.action
            for b in np.flatnonzero(asked[seat]):
                alone, _ = player.act(View.of(game, state.table(int(b)), seat), memory)
                assert alone.action == whole.action[b]
        state, outcome = game.step(state, actions)
        assert not outcome.broke.any()


@each_row(
    ("name", "start", "price"),
    [("naive", 1000, 2300), ("debiased", 1000, 1900), ("knap", 1000, 1900), ("mc", 5000, 9500)],
)
def test_how_high_they_go(name, start, price):
    """Against one who always raises: `naive` to its estimate, the others below the value."""
    items = (("Lamp", start, 2 * start),)
    game = rulebook("english_auction", players=2, items=items, budgets=50000,
                    tie_rule="lowest_index")  # fmt: skip
    state = play(game, [name, "rule:999"])
    assert (int(state.sold_to[0]), int(state.price[0])) == (1, price)


def test_money_for_what_comes_later():
    """The expensive item comes last: `knap` keeps its money for it, `debiased` does not."""
    items = (("Lamp", 1000, 2000), ("Piano", 5000, 10000))
    game = rulebook("english_auction", players=2, items=items, budgets=5000)
    assert play(game, ["knap", "knap"]).sold_to[0] == -1
    assert play(game, ["debiased", "debiased"]).sold_to[0] >= 0
    few = rulebook("english_auction", players=2, items=items, budgets=5000, objective="items")
    state = play(few, ["knap", "knap"])
    assert int(state.sold_to[0]) >= 0


def test_markups_are_taken_out():
    settings = {"players": 2, "items": "items_1", "tie_rule": "lowest_index"}
    game = rulebook("english_auction", overestimate_pct=(50, -100), **settings)
    state = play(game, ["debiased", "naive"])
    assert (int(state.sold_to[0]), int(state.price[0])) == (0, 1000)
    state = play(game, ["debiased", "rule:9"])
    assert int(state.price[0]) <= 2000


@each_row("name", ["rational", "best_response", "cooperative"])
def test_a_hidden_markup_is_learned_from_the_first_hammer(name):
    """Before it, what a bidder does is the same for all markups that show it the same estimate."""
    settings = {"players": 3, "item_order": "listed", "budgets": 50000}
    items = [(f"Item {i}", 500, value) for i, value in enumerate((1000, 3000, 7000))]
    plain = rulebook("english_auction", items=items, overestimate_pct=0, **settings)
    dear = [(n, start, 2 * value) for n, start, value in items]
    less = rulebook("english_auction", items=dear, overestimate_pct=-50, **settings)
    noise, first = Noise(0), make_player(name, plain).start(plain, 0, 0).rule
    for bids in ([1200, 900, -1], [-1, -1, -1]):
        same = []
        for game in (plain, less):
            state, _ = game.step(game.reset(0), np.array(bids))
            same.append(int(first(View.of(game, state, 1), noise)))
        assert same[0] == same[1]
    state, _ = less.step(less.reset(0), np.array([1200, -1, -1]))
    view = View.of(less, state, 1)
    estimates = np.array([[1500, 3500]])
    assert learned(view, estimates).tolist() == informed(view, estimates).tolist() == [[3000, 7000]]
    state, _ = less.step(less.reset(0), np.full(3, -1))  # unsold, so that nothing is announced
    assert learned(View.of(less, state, 1), estimates).tolist() == [[1500, 3500]]


def test_two_prudent_bidders_share_a_quiet_auction():
    """Near the subgame-perfect profits of two bidders with little money, 8,862 to 8,941 each."""
    game = rulebook("english_auction", players=2)
    profit = play(game, ["knap", "knap"], batch=(40,)).profit
    assert 8300 <= profit.mean() <= 9000


META = [
    ("knap", "naive", 8462), ("knap", "debiased", 7928), ("knap", "rule:4", 4978),
    ("knap", "rule:5", 5348), ("knap", "mc", 5972), ("mc", "knap", 8285),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("row", "field", "profit"), META)
def test_one_against_five(row, field, profit):
    """With little money the prudent bidder does best, as a simulation with price clocks finds."""
    game = rulebook("english_auction", players=6, items="items_20", item_order="shuffled")
    state = play(game, [row, *[field] * 5], batch=(48,))
    mean = state.profit.mean(axis=1)
    assert mean[0] == pytest.approx(profit, rel=0.15)
    assert mean[0] > mean[1:].mean() * 1.2


@pytest.mark.slow
def test_naive_bidders_lose_when_there_is_money():
    game = rulebook("english_auction", players=6, items="items_20", budgets=20000)
    profit = play(game, ["naive"] * 6, batch=(8,)).profit.mean()
    assert profit == pytest.approx(-1210, abs=150)


@each_row("name", ["rule:0", "rule:", "rule", "rule:four", "rule:1000"])
def test_a_rule_bidder_needs_a_number(name):
    with pytest.raises(BadParameter, match="rule"):
        make_player(name)


def test_they_play_no_other_game():
    for name in ("rule:4", "naive", "debiased", "knap", "mc"):
        with pytest.raises(BadParameter, match="not defined for divide_dollar"):
            make_player(name, "divide_dollar")
    with pytest.raises(UnknownName, match="did you mean 'naive'"):
        make_player("naiv")
