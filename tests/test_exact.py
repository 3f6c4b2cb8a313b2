"""Exactness: at the largest parameters that a game takes it pays what plain fractions pay."""

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import each_row, of_three

import llm_games
from llm_games.baselines.players import make_player
from llm_games.errors import BadParameter
from llm_games.game_rooms import ROOMS
from llm_games.games.english_auction.rules import WITHDRAW
from llm_games.questions import MISSING
from llm_games.registry import rulebook
from llm_games.table import Table
from llm_games.view import View
from llm_games.wrappers.play import play

HUGE = 2**53


def mended(moves, low, high, instead=0):
    limits = zip(moves, low, high, strict=True)
    return [move if least <= move <= most else instead for move, least, most in limits]


def of_range(game, state, moves):
    low, high = (limit.tolist() for limit in game.legal(state))
    return mended(moves, low, high)


# -- what each game pays in a step, in fractions ---------------------------------------------------


def public_goods(game, state, moves):
    given_, n = of_range(game, state, moves), game.players
    have = [F(e) for e in state.endowment.tolist()]
    return [e - c + game.ratio * sum(given_) / n for e, c in zip(have, given_, strict=True)]


def divide_dollar(game, state, moves):
    bids = of_range(game, state, moves)
    return bids if sum(bids) <= game.golds else [0] * game.players


def diners_dilemma(game, state, moves):
    price, taste = (game.cheap_price, game.costly_price), (game.cheap_utility, game.costly_utility)
    dishes = of_range(game, state, moves)
    return [taste[d] - F(sum(price[d] for d in dishes), game.players) for d in dishes]


def el_farol_bar(game, state, moves):
    went = of_range(game, state, moves)
    night = game.max if F(sum(went), game.players) <= game.ratio else game.min
    return [night if go else game.home for go in went]


def beauty_contest(game, state, moves):
    (low, high), limit = game.bounds(), game.limit
    legal = [low <= move <= high for move in moves]
    named = [None if m == MISSING else F(max(-limit, min(limit, m)), game.unit) for m in moves]
    counts = [m is not None for m in named] if game.rule_breaker == "include" else legal
    if game.rule_breaker == "void_round" and not all(legal):
        counts = [False] * len(moves)
    fees = [0 if ok else -game.foul_fee for ok in legal]
    counted = [m for m, ok in zip(named, counts, strict=True) if ok]
    if not counted or not any(legal):
        return fees
    target = game.ratio * sum(counted) / len(counted)
    far = {seat: abs(named[seat] - target) for seat, ok in enumerate(legal) if ok}
    won = [seat for seat in far if far[seat] == min(far.values())]
    k, x = len(won), F(game.prize)
    prize = {"split": x / k, "exclusive": x * (k == 1), "amplified": k * x}.get(game.prize_rule, x)
    return [prize if seat in won else fee for seat, fee in enumerate(fees)]


def sealed_bid_auction(game, state, moves):
    values, bids = game.valuation(state).tolist(), of_range(game, state, moves)
    first, second = sorted(bids)[-1], sorted(bids)[-2]
    price = first if game.price == "first" else second
    return lambda winner: [(v - price) * (i == winner) for i, v in enumerate(values)]


def budget_auction(game, state, moves):
    legal = [0 <= m <= most for m, most in zip(moves, game.money().tolist(), strict=True)]
    free, exclude = HUGE - game.largest, game.rule_breaker == "exclude"
    rank = [m != MISSING and (ok or not exclude) for m, ok in zip(moves, legal, strict=True)]
    paid = [0 if ok else -game.entrance_fee for ok in legal]
    bids = {seat: max(-free, min(free, moves[seat])) for seat, ok in enumerate(rank) if ok}
    if sum(legal) >= game.min_valid_bids:
        first, *others = sorted(bids.values(), reverse=True)
        price = first if game.price == "first" else (*others, 0)[0]
        winner = min(seat for seat in bids if bids[seat] == first)
        paid[winner] = F(state.valuations.tolist()[winner] - price, game.unit)
    return paid


def pirate_game(game, state, moves):
    """Everybody accepts the plan: what it gives is paid."""
    loose, n = game.proposal_check == "sum_and_length", game.players
    free = HUGE // n - game.gold - 2
    if sum(moves) != game.gold or not all((loose or m >= 0) and abs(m) <= free for m in moves):
        moves = [game.gold - game.gold // n * (n - 1), *[game.gold // n] * (n - 1)]
    return moves if game.payoff == "gold" else [m + game.gold + 1 for m in moves]


def english_auction(game, state, moves):
    """Of the bids of one round the highest wins, since all withdraw afterwards."""
    budgets, start = state.budget.tolist(), int(state.start)
    bids = mended(moves, [start] * game.players, budgets, WITHDRAW)
    gains = [v - max(bids) for v in state.values[:, 0].tolist()]
    return lambda winner: [gain * (i == winner) for i, gain in enumerate(gains)]


def water_allocation(game, state, moves):
    """Return the money after the day, in units: who is served pays its bid."""
    purses = [
        r.salary * game.unit + b for r, b in zip(game.cast, state.balance.tolist(), strict=True)
    ]
    bids, left = mended(moves, [0] * game.players, purses, -1), int(game.supply(state))
    for seat in sorted(range(game.players), key=lambda i: (-bids[i], game.cast[i].requirement, i)):
        if bids[seat] >= 0 and game.cast[seat].requirement <= left:
            left -= game.cast[seat].requirement
            purses[seat] -= bids[seat]
    return purses


# -- at their limits -------------------------------------------------------------------------------

few, big = st.integers(2, 6), st.integers(1, 10**9)
ratios = st.tuples(st.integers(1, 10**6), st.integers(1, 10**6))
money = st.builds(F, st.integers(1, 10**6), st.sampled_from([1, 7, 1000]))
pays = st.sampled_from
# What is played, parameters, and one that is put to the largest value there is.
GAMES = {
    public_goods: (
        {"players": few, "ratio": ratios, "rounds": st.just(1),
         "endowment": pays(["reset", "carry"]),
         "contribution_range": pays(["strict", "unbounded"])},
        "tokens", 10**9,
    ),
    divide_dollar: (
        {"players": st.integers(2, 9), "bid_range": pays(["strict", "unbounded"])}, "golds", 10**9,
    ),
    diners_dilemma: (
        {"players": few, "cheap_price": money, "cheap_utility": money, "costly_utility":
         money.map(lambda x: x + 10**7)},
        "costly_price", HUGE,
    ),
    el_farol_bar: (
        {"ratio": ratios.map(sorted), "min": money.map(lambda x: -x), "max": money, "home":
         st.just(0)},
        "players", 100,
    ),
    beauty_contest: (
        {"players": few, "domain": pays(["integer", "real"]), "ratio": ratios, "prize": money,
         "foul_fee": money, "prize_rule": pays(["split", "exclusive", "amplified", "independent"]),
         "rule_breaker": pays(["exclude", "include", "void_round"]), "decimals": st.integers(0, 9)},
        "max", HUGE,
    ),
    sealed_bid_auction: (
        {"players": few, "price": pays(["first", "second"]), "interval": st.just(1),
         "bid_range": pays(["own_value", "unbounded"]), "valuation_draw": st.just("random")},
        "valuation_max", 10**9,
    ),
    budget_auction: (
        {"players": few, "price": pays(["first", "second"]), "decimals": st.just(6), "mu": big,
         "sigma": st.just(10**8), "rule_breaker": pays(["exclude", "include"]),
         "entrance_fee": pays([0, F(1, 10**6), 10**5]), "min_valid_bids": pays([1, 2])},
        "assets", 10**9,
    ),
    pirate_game: (
        {"players": few, "payoff": pays(["gold", "lexicographic"]),
         "proposal_check": pays(["strict", "sum_and_length"])},
        "gold", 10**9,
    ),
    english_auction: (
        {"players": few, "items": st.tuples(st.tuples(st.just("Lamp"), big, big)),
         "tie_rule": pays(["uniform", "lowest_index"]), "increment_min": big},
        "budgets", 10**9,
    ),
    water_allocation: (
        {"players": st.integers(2, 5), "days": st.integers(1, 900), "money_decimals": st.just(4),
         "residents": st.lists(st.integers(0, 10**9), min_size=5, max_size=5)},
        "balance_start", 10**9,
    ),
}  # fmt: skip


def takes(name, params):
    try:
        return rulebook(name, **params)
    except BadParameter:
        return None


def at_the_limit(name, params, key, high):
    found, least = takes(name, params | {key: high}), 1
    while found is None and least < high:
        middle = (least + high + 1) // 2
        least, high = (middle, high) if takes(name, params | {key: middle}) else (least, middle - 1)
        found = takes(name, params | {key: high}) if least == high else None
    return found


def drawn_moves(data, game, state):
    """Draw moves that are legal, just not, or as large as arrays take; a plan adds up."""
    low, high = game.bounds()
    near = st.sampled_from(
        [low, high, 0, 1, high // 2, low - 1, high + 1, 2**62, -(2**62), MISSING]
    )
    moves = data.draw(st.lists(near | st.integers(low, high), min_size=game.players,
                               max_size=game.players))  # fmt: skip
    if game.name == "pirate_game":
        moves[-1] = max(-(2**62), min(2**62, game.gold - sum(moves[:-1])))
    return moves


@pytest.mark.filterwarnings("ignore:no dilemma")
@pytest.mark.parametrize("pays_", GAMES, ids=lambda pays_: pays_.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_at_its_limits_a_game_pays_what_fractions_pay(pays_, data):
    name, (choices, key, high) = pays_.__name__, GAMES[pays_]
    params = {one: data.draw(values) for one, values in choices.items()}
    if name == "water_allocation":
        params["residents"] = [(f"R{i}", 1 + i, n) for i, n in
                               enumerate(params["residents"][: params["players"]])]  # fmt: skip
    game = at_the_limit(name, params, key, high)
    if game is None:
        return
    assert game.largest <= HUGE
    state = game.reset(data.draw(st.integers(0, 99)))
    moves = drawn_moves(data, game, state)
    after, outcome = game.step(state, np.array(moves))
    expected = pays_(game, state, moves)
    if name == "pirate_game":
        after, outcome = game.step(after, np.ones(game.players, int))
    while name == "english_auction" and not after.over:
        after, outcome = game.step(after, np.full(game.players, WITHDRAW))
    if callable(expected):
        expected = expected(int(outcome.record["winner"]))
    found = outcome.record["balance"] if name == "water_allocation" else outcome.rewards
    assert found.tolist() == [float(F(x)) for x in expected]


@each_row(
    ("name", "params", "says"),
    [
        ("public_goods", {"ratio": F(0.1)}, "ratio must be a ratio of integers of at most"),
        ("public_goods", {"ratio": F(1, 10**15)}, "ratio=1/1000000000000000: with these"),
        ("public_goods", {"tokens": 10**9, "ratio": "1/99999999"}, "tokens=1000000000"),
        ("public_goods", {"endowment": "carry", "rounds": 60}, "rounds=60, endowment=carry"),
        ("el_farol_bar", {"ratio": F(0.3)}, "ratio must be"),
        ("el_farol_bar", {"ratio": f"1/{2**52}"}, "ratio=1/4503599627370496: with these"),
        ("el_farol_bar", {"max": 10**400}, "max must be a ratio of integers"),
        ("beauty_contest", {"max": 10**15}, "max=1000000000000000: with these"),
        ("beauty_contest", {"prize": 10**16}, "prize must be"),
        ("diners_dilemma", {"costly_price": 10**15}, "costly_price=1000000000000000: with these"),
        ("water_allocation", {"days": 10**15}, "days must be an integer of at least 1 and"),
        ("divide_dollar", {"rounds": 10**400}, "rounds must be an integer of at least 1 and"),
    ],
)
@pytest.mark.filterwarnings("ignore:no dilemma")
def test_what_would_not_be_exact_is_refused(name, params, says):
    with pytest.raises(BadParameter, match=says):
        rulebook(name, **params)


def test_every_game_says_how_large_its_integers_are():
    for name in ROOMS:
        assert 1 <= rulebook(name).largest <= HUGE


# -- players by rule -------------------------------------------------------------------------------


@each_row(
    ("name", "more"),
    [
        ("sealed_bid_auction", {"valuation_max": 10**9, "interval": 1, "valuation_draw": "random"}),
        ("budget_auction", {"assets": 10**9, "mu": 10**8, "sigma": 10**7, "decimals": 6,
                            "value_rounding": "none"}),
        ("budget_auction", {"valuations": [(10**9, 10**8 + 1, 10**8 - 1)], "assets": 10**9}),
    ],
)  # fmt: skip
@each_row("batch", [(), (3,)])
def test_truthful_bids_are_the_valuations(name, more, batch):
    """In float32, valuations from 16,777,217 on would be others."""
    game = rulebook(name, players=3, rounds=1, price="second", **more)
    state = game.reset(4, batch)
    values = game.valuation(state) if name == "sealed_bid_auction" else state.valuations
    for seat in range(3):
        for player in (make_player("truthful", game), make_player("rational", game)):
            decision, _ = player.act(View.of(game, state, seat), player.start(game, seat, 0))
            assert np.array_equal(decision.action, values[seat])


@each_row("player", ["naive", "debiased", "knap", "rational", "rule:9", "cooperative"])
def test_bids_out_of_much_money_are_legal(player):
    items = (("Lamp", 40_000_001, 80_000_003), ("Piano", 99_999_999, 200_000_001))
    budgets = (900_000_001, 899_999_999, 40_000_001)
    game = rulebook("english_auction", players=3, items=items, budgets=budgets, increment_pct=3)
    episode = play(game, [make_player(player, game)] * 3, 1)
    assert not any(step.outcome.broke.any() for step in episode.steps)
    assert (episode.state.sold_to >= 0).any()


# -- numbers of all kinds --------------------------------------------------------------------------


@pytest.mark.crossing
@pytest.mark.parametrize("name", sorted(ROOMS))
@pytest.mark.parametrize("sign", [1, -1])
def test_a_move_too_large_for_arrays_is_like_the_largest(name, sign):
    played = []
    for move in (sign * 10**30, sign * 2**62):
        table = Table(rulebook(name, **of_three(name)))
        table.reset(0)
        move = (move, 0, 0) if name == "pirate_game" else move
        outcome = table.step(dict.fromkeys(table.sight.asked, move))
        played.append([outcome.broke.tolist(), outcome.rewards.tolist()])
    assert played[0] == played[1]
    assert np.any(played[0][0]) or name in ("english_auction", "water_allocation")


def test_numbers_of_numpy_are_numbers(tmp_path):
    plain = {"players": 3, "tokens": 7, "ratio": 0.5, "rounds": 2}
    given_ = {name: np.asarray(value)[()] for name, value in plain.items()}
    game = rulebook("public_goods", **given_)
    assert game == rulebook("public_goods", **plain)
    assert {type(getattr(game, name)) for name in ("players", "tokens", "rounds")} == {int}
    valued = {"players": 2, "rounds": 1, "valuations": np.array([[3, 4]])}
    assert rulebook("sealed_bid_auction", **valued).valuations == ((3, 4),)
    one = {"game": "public_goods", "params": given_, "seats": ["random"]}
    run = llm_games.run({"title": "NumPy", "episodes": 1, "games": [one]}, db=tmp_path / "a.db")
    assert len(list(run.rows("decisions"))) == 6
