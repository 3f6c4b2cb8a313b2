"""Economics Arena: the second-price auction with private values, the beauty contest's session."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import each_row

import llm_games
from llm_games.errors import BadParameter, UnknownName
from llm_games.noise import Noise
from llm_games.questions import MISSING
from llm_games.replies import read_reply
from llm_games.view import View
from llm_games.words import Prompts

FIVE = (48, 60, 55, 41, 52)
UNSOLD = (None, 60, 120, None, -3)
EQUAL = (100, 100, 100)
VERSIONS = ("v1", "v2", "v3", "v4", "v5")


def auction(values, assets=100, **more):
    return llm_games.rules(
        "budget_auction",
        preset="econ_arena_L",
        players=len(values),
        valuations=[values],
        assets=assets,
        **{"mu": 1, "sigma": 0} | more,
    )


def units(game, numbers):
    """Return numbers, or None, as actions."""
    return np.array([MISSING if x is None else round(x * game.unit) for x in numbers])


def play(game, *runs):
    state, outcomes = game.reset(1), []
    for run in runs:
        state, outcome = game.step(state, units(game, run))
        outcomes.append(outcome)
    return state, outcomes


# options, assets, values, bids, winner, price, final assets
AUCTIONS = {
    "truthful": ({}, 100, FIVE, FIVE, 1, 55, (100, 105, 100, 100, 100)),
    "tie, lowest seat": ({}, 100, FIVE, (70, 60, 70, 41, 52), 0, 70, (78, 100, 100, 100, 100)),
    "overbidding": ({}, 100, FIVE, (48, 100, 99, 41, 52), 1, 99, (100, 61, 100, 100, 100)),
    "all bid zero": ({}, 100, FIVE, (0, 0, 0, 0, 0), 0, 0, (148, 100, 100, 100, 100)),
    "bid equals assets": ({}, 100, FIVE, (100, 60, 99, 41, 52), 0, 99, (49, 100, 100, 100, 100)),
    "over budget": ({}, 1000, (500, 520, 480), (5000, 600, 700), 2, 600, (1000, 1000, 880)),
    "over budget, fee": (
        {"entrance_fee": 50}, 1000, (500, 520, 480), (5000, 600, 700), 2, 600, (950, 1000, 880),
    ),
    "over budget, included": (
        {"rule_breaker": "include"},
        1000, (500, 520, 480), (5000, 600, 700), 0, 700, (800, 1000, 1000),
    ),
    "one legal bid": ({"entrance_fee": 10}, 100, FIVE, UNSOLD, -1, 0, (90, 100, 90, 90, 90)),
    "one legal bid sells": (
        {"entrance_fee": 10, "min_valid_bids": 1}, 100, FIVE, UNSOLD, 1, 0, (90, 160, 90, 90, 90),
    ),
    "two legal bids": (
        {}, 100, FIVE, (None, 60, 55, 101, -1), 1, 55, (100, 105, 100, 100, 100),
    ),
    "nobody legal": ({}, 100, (50, 60, 40), (None, 101, -1), -1, 0, EQUAL),
    "the paper's figures": ({}, 100, (60, 60, 40), (60, 50, 0), 0, 50, (110, 100, 100)),
    "unequal assets": (
        {}, (100, 90, 100), (80, 120, 70), (80, 90, 70), 1, 80, (100, 130, 100),
    ),
    "first price": ({"price": "first"}, 100, FIVE, (40.5, 50, 45, 30, 45), 1, 50,
                    (100, 110, 100, 100, 100)),
    "cents": ({}, 100, FIVE, (40.01, 40.02, 40, 0, 0), 1, 40.01, (100, 119.99, 100, 100, 100)),
}  # fmt: skip


@each_row(
    ("more", "assets", "values", "bids", "winner", "price", "final"),
    AUCTIONS.values(),
    ids=AUCTIONS,
)
def test_auctions(more, assets, values, bids, winner, price, final):
    game = auction(values, assets, **more)
    _, (outcome,) = play(game, bids)
    record = outcome.record
    assert (record["winner"], record["price"]) == (winner, round(price * game.unit))
    assert record["sold"] == (winner >= 0)
    assert record["final"].tolist() == [round(amount * game.unit) for amount in final]
    assert record["utility"].tolist() == (record["final"] - record["assets"]).tolist()
    assert outcome.rewards.tolist() == (record["utility"] / game.unit).tolist()
    high = [assets] * len(values) if isinstance(assets, int) else assets
    broken = [b is None or not 0 <= b <= most for b, most in zip(bids, high, strict=True)]
    assert outcome.broke.tolist() == broken
    assert record["legal"].tolist() == [not b for b in broken]


def test_a_batch_of_auctions():
    game = auction((1, 1, 1))
    state = game.reset(0, (2,))
    values = 100 * np.array([[50, 40], [70, 80], [60, 20]])
    state = dataclasses.replace(state, valuations=values)
    _, outcome = game.step(state, 100 * np.array([[50, 70], [60, 70], [60, 10]]))
    assert outcome.record["winner"].tolist() == [1, 0]
    assert outcome.record["price"].tolist() == [6000, 7000]
    assert outcome.record["final"].tolist() == [[10000, 7000], [11000, 10000], [10000, 10000]]


def test_values_and_assets_stay_the_same_in_a_session():
    game = llm_games.rules("budget_auction", preset="econ_arena_H", rounds=6, players=4)
    state, first = game.reset(3), None
    while not state.over:
        bids = units(game, [9000, 10, 10001, 0])
        state, outcome = game.step(state, bids)
        record = [outcome.record[k].tolist() for k in ("valuations", "assets", "final")]
        first = first or record
        assert record == first
    assert state.round == 6


@each_row(("group", "scale"), [("L", 1), ("M", 10), ("H", 100)])
def test_the_law_of_the_values(group, scale):
    game = llm_games.rules("budget_auction", preset=f"econ_arena_{group}")
    values = game.reset(1, (4000,)).valuations / game.unit
    assert (values % 1 == 0).all()  # cut, which takes half of one on average
    assert abs(values.mean() + 0.5 - 50 * scale) < 0.3 * scale
    assert abs(values.std() - 10 * scale) < 0.3 * scale
    assert game.bounds() == (0, 100 * scale * game.unit)


@given(
    mu=st.floats(1, 20),
    sigma=st.floats(0, 20),
    rounding=st.sampled_from(["truncate", "none"]),
    decimals=st.integers(0, 6),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_values_are_positive_and_at_most_the_assets(mu, sigma, rounding, decimals, seed):
    game = llm_games.rules(
        "budget_auction",
        players=3,
        assets=(20, 30, 25),
        mu=mu,
        sigma=sigma,
        value_rounding=rounding,
        decimals=decimals,
    )
    values = game.reset(seed, (50,)).valuations
    assert (values > 0).all()
    assert (values <= game.unit * np.array([[20], [30], [25]])).all()
    if rounding == "truncate":
        assert not (values % game.unit).any()
    if sigma == 0 and rounding == "truncate":
        assert (values == int(mu) * game.unit).all()


def test_draws_outside_are_drawn_again():
    """Values in range are kept, and no table's values hang on those of the others."""
    game = llm_games.rules("budget_auction", players=2, assets=10, mu=9, sigma=5)
    values = game.reset(8, (200,)).valuations
    noise = Noise(8 + np.arange(200, dtype=np.uint64)).of("valuations", 0)
    first = np.trunc(noise.normal(9, 5, (2,))) * game.unit
    kept = (first > 0) & (first <= 10 * game.unit)
    assert not kept.all()
    assert (values[kept] == first[kept]).all()
    singles = [game.reset(8 + table).valuations for table in range(200)]
    assert np.array_equal(np.stack(singles, axis=-1), values)


def test_given_values_are_money():
    game = llm_games.rules("budget_auction", preset="econ_arena_L", players=3)
    state = game.reset(1, given={"valuations": [50, 40.25, 30]})
    assert state.valuations.tolist() == [5000, 4025, 3000]
    assert game.told(state, 1)["own"] == 40.25
    with pytest.raises(BadParameter, match="numbers from 0 to 100"):
        game.reset(1, given={"valuations": [50, 101, 30]})


@each_row(
    ("reply", "outcome", "bid"),
    [
        ('{"understanding": "a", "bid": 50.5, "reason": "b"}', "valid", 50.5),
        ('{"bid": "50"}', "valid", 50),
        ('{"bid": 50.005}', "valid", 50.00),
        ('{"bid": 50.015}', "valid", 50.02),
        ('{"bid": 100.001}', "out_of_range", 100.01),  # not rounded into the range
        ('{"bid": -0.001}', "out_of_range", -0.01),
        ('{"bid": 100.000000000000000000000000000001}', "out_of_range", 100.01),
        ('{"bid": 0.005000000000000000000000000000001}', "valid", 0.01),
        ('{"bid": 1e3}', "out_of_range", 1000),
        ('{"bid": -0.01}', "out_of_range", -0.01),
        ('{"bid": true}', "unparsable", None),
        ('{"bid": null}', "unparsable", None),
        ('{"bid": NaN}', "unparsable", None),
        ('{"bid": "about 50"}', "unparsable", None),
        ("50", "valid", 50),
        ("fifty", "unparsable", None),
    ],
)
def test_replies(reply, outcome, bid):
    game = auction(FIVE)
    read = read_reply(reply, game.question(game.reset(), 0))
    assert read.outcome == outcome
    assert read.action == (MISSING if bid is None else round(bid * game.unit))


SESSION = [(60, 50, 40), (40, 55, 40), (90, 80, 120)]


@each_row("last", [0, 1, 2, 3, "all"])
@each_row("reveal", ["none", "bids", "bids_and_private"])
def test_what_is_shown_of_the_past(reveal, last):
    game = auction((60, 50, 40), rounds=4, entrance_fee=10, reveal=reveal, reveal_last=last)
    state, _ = play(game, *SESSION)
    told = game.told(state, 2)
    assert (told["round"], told["own"], told["assets"]) == (4, 40, 100)
    if reveal == "none" or last == 0:
        assert told["last"] is None
        assert game.observe(state)[2].tolist() == [4, 40, 100]
        return
    assert told["last"]["bids"] == {"player_0": 90, "player_1": 80, "player_2": None}
    if reveal == "bids":
        assert told["last"]["payoff"] == 90
        assert "60" not in Prompts(game.name).report(View.of(game, state, 2))
    else:
        assert told["last"]["payoffs"] == {"player_0": 80, "player_1": 100, "player_2": 90}
        assert list(told["last"]["valuations"].values()) == [60, 50, 40]
        assert list(told["last"]["assets"].values()) == [100, 100, 100]


def test_the_values_of_others_stay_secret():
    one, two = (auction((60, 50, other), rounds=2, reveal="bids") for other in (40, 45))
    (a, _), (b, _) = (play(game, (60, 50, 40)) for game in (one, two))
    assert one.told(a, 0) == two.told(b, 0)
    assert np.array_equal(one.observe(a)[0], two.observe(b)[0])


def test_a_scripted_session():
    game = auction((60, 50, 40), rounds=2, entrance_fee=10, reveal="bids")
    prompts, state = Prompts(game.name), game.reset()
    assert prompts.rules(game, 2) == (
        "You are one of 3 players in 2 rounds of a sealed-bid auction. Your name is player_2. One "
        "item is sold in each round.\n"
        "You know what the item is worth to you and how much money you have, your assets. You do "
        "not know what it is worth to the others.\n"
        "Values and assets are the same in every round, and each round starts from the full "
        "assets.\n"
        "All players bid at the same time without seeing the other bids. A bid is a number with at "
        "most 2 decimals from 0 to your assets.\n"
        "The highest bid wins. If several players share the highest bid, the first of them in "
        "order wins.\n"
        "The winner pays the second-highest bid. If several players share the highest bid, the "
        "second-highest bid is the same amount.\n"
        "With fewer than two legal bids the item is not sold.\n"
        "Your payoff is your assets after the round: if you win, assets plus value minus price, "
        "else the assets you had.\n"
        "A reply that is not a legal bid takes no part in the auction.\n"
        "A reply that is not a legal bid costs a fee of 10.\n"
        "After a round you learn the bids of all players and your payoff.\n"
        "What the others will do cannot be predicted."
    )
    state, _ = play(game, (60, 50.25, 120))
    view = View.of(game, state, 2)
    assert prompts.report(view) == (
        "Result of round 1: the bids were player_0: 60, player_1: 50.25, player_2: not legal.\n"
        "Your payoff was 90."
    )
    assert prompts.request(view) == (
        "Round 2 of 2. The item is worth 40 to you, and your assets are 100. How much do you bid? "
        "Your goal is the highest total of gains in assets over all rounds. "
        "To win the item does not matter in itself.\n"
        'Answer only with JSON of this form: {"bid": <a number from 0 to 100>}'
    )
    caption, _, rows = game.picture(state)
    assert caption.endswith("round 1 of 2, player_0 pays 50.25")
    assert rows[2] == ["player_2", "40", "0", "-10"]
    assert game.picture(play(game, (None, None, 3))[0])[0].endswith("no sale")


TOLD = [
    *(
        ("budget_auction", change)
        for change in (
            {"players": 7},
            {"rounds": 3},
            {"price": "first"},
            {"entrance_fee": 17},
            {"min_valid_bids": 1},
            {"rule_breaker": "include"},
            {"decimals": 0},
            {"decimals": 3},
            {"reveal": "bids"},
            {"reveal": "bids_and_private"},
            {"told_rational": True},
            {"told_equal": True},
        )
    ),
    *(("beauty_contest", c) for c in ({"told_equal": True}, {"max_draw": (10, 20)})),
]


@each_row(("name", "change"), TOLD)
def test_every_parameter_is_in_the_rules(name, change):
    for version in VERSIONS:
        prompts = Prompts(name, version)
        before = llm_games.rules(name, preset="econ_arena")
        after = llm_games.rules(name, preset="econ_arena", **change)
        assert prompts.rules(before, 1) != prompts.rules(after, 1)


@each_row("version", VERSIONS)
def test_the_law_of_the_values_is_not_told(version):
    prompts = Prompts("budget_auction", version)
    one, two = (
        llm_games.rules("budget_auction", preset="econ_arena", **law)
        for law in ({}, {"mu": 300, "sigma": 7})
    )
    assert prompts.rules(one, 0) == prompts.rules(two, 0)


@each_row(
    ("more", "words"),
    [
        ({"assets": 0}, "assets must be an integer of at least 1"),
        ({"assets": [5, 6]}, "one for each of 5 players"),
        ({"assets": [5]}, "one for each of 5 players"),
        ({"mu": 0}, "mu must be"),
        ({"mu": 1001}, r"mu must be from 1 to the assets \(1000\), got 1001"),
        ({"sigma": -1}, "sigma must be"),
        ({"sigma": 2000}, "sigma must be from 0 to the assets"),
        ({"sigma": float("nan")}, "sigma must be"),
        ({"entrance_fee": 1001}, "entrance_fee must be from 0 to the assets"),
        ({"entrance_fee": -1}, "entrance_fee must be from 0 to the assets"),
        ({"entrance_fee": 0.001}, "in units of 1/100"),
        ({"decimals": 7}, "decimals must be"),
        ({"min_valid_bids": 3}, "min_valid_bids must be"),
        ({"value_rounding": "up"}, "value_rounding must be"),
        ({"rule_breaker": "void_round"}, "rule_breaker must be"),
        ({"reveal": "all"}, "reveal must be"),
        ({"reveal": "bids", "reveal_last": -1}, "reveal_last must be"),
        ({"told_equal": 1}, "told_equal must be"),
        ({"told_rational": "no"}, "told_rational must be"),
        ({"valuations": [[1] * 5] * 2}, "valuations must be 1 row"),
        ({"valuations": [[-1] * 5]}, "each of the valuations"),
    ],
)
def test_bad_sessions(more, words):
    with pytest.raises(BadParameter, match=words):
        llm_games.rules("budget_auction", preset="econ_arena", **more)


OLD = [
    {"preset": "econ_arena_L", "rounds": 3},
    {"assets": [9, 6, 8], "players": 3, "mu": 5, "sigma": 2},
]


@each_row("more", OLD)
def test_sessions_of_the_sealed_bid_auction_are_this_game(more):
    """So they were called before 0.2: in calls, in files of experiments, in recordings."""
    game = llm_games.rules("sealed_bid_auction", **more)
    assert game == llm_games.rules("budget_auction", **more)
    assert game.name == "budget_auction"
    assert llm_games.rules("sealed_bid_auction").name == "sealed_bid_auction"


@each_row(
    ("more", "game"),
    [
        ({"entrance_fee": 5}, "sealed_bid_auction"),
        ({"reveal_last": 3}, "sealed_bid_auction"),
        ({"decimals": 0}, "sealed_bid_auction"),
        ({"preset": "econ_arena", "bid_range": "unbounded"}, "budget_auction"),
        ({"assets": 1000, "interval": 5}, "budget_auction"),
    ],
)
def test_each_auction_has_parameters_of_its_own(more, game):
    with pytest.raises(UnknownName, match=f"parameter of {game}"):
        llm_games.rules("sealed_bid_auction", **more)


# -- the beauty contest --------------------------------------------------------------------------


def test_the_limit_is_drawn_for_each_table_and_kept():
    game = llm_games.rules("beauty_contest", preset="econ_arena_M", players=5, rounds=6)
    state = game.reset(2, (3000,))
    limits = state.limit // game.unit
    assert (limits.min() >= 100, limits.max() <= 999, abs(limits.mean() - 549.5) < 15) == (1, 1, 1)
    after, outcome = game.step(state, np.zeros((5, 3000), np.int64))
    assert np.array_equal(after.limit, state.limit)
    assert np.array_equal(outcome.record["limit"], state.limit)
    assert game.told(game.reset(given={"limit": 457}), 0)["limit"] == 457


@each_row(("preset", "ends"), [("L", (10, 99)), ("M", (100, 999)), ("H", (1000, 9999))])
def test_groups(preset, ends):
    game = llm_games.rules("beauty_contest", preset=f"econ_arena_{preset}")
    assert (game.min, game.max, game.prize_rule, game.domain) == (0, ends[1], "split", "real")
    drawn = [int(game.reset(i).limit) // game.unit for i in range(200)]
    assert min(drawn) >= ends[0]


@each_row("version", VERSIONS)
def test_a_number_above_the_drawn_limit_breaks_the_rules(version):
    game = llm_games.rules("beauty_contest", preset="econ_arena_L", players=3, rounds=2)
    state = game.reset(1)
    limit = int(state.limit) // game.unit
    low, high = game.legal(state)
    assert (low.tolist(), high.tolist()) == ([0] * 3, [limit * game.unit] * 3)
    view = View.of(game, state, 0)
    request = Prompts(game.name, version).request(view)
    assert request.count(str(limit)) == 2  # said, and in the form of the answer
    assert f'"answer": <a number from 0 to {limit}>' in request
    state, outcome = game.step(state, units(game, [limit, limit + 0.5, 0]))
    assert outcome.broke.tolist() == [False, True, False]
    assert outcome.rewards.tolist() == [0, 0, 1]
    assert game.told(state, 0)["last"]["all_choices"]["player_1"] is None


def test_the_paper_s_examples():
    game = llm_games.rules("beauty_contest", preset="econ_arena", players=5)
    _, (outcome,) = play(game, (33, 22, 20, 50, 0.5))
    assert outcome.record["mean"] == 25.1
    assert outcome.rewards.tolist() == [0, 0, 1, 0, 0]
    ten = llm_games.rules("beauty_contest", preset="econ_arena", players=5, max=10)
    assert play(ten, (10, 10, 10, 10, 0))[1][0].rewards.tolist() == [0.25] * 4 + [0]


KEYS = {"econ_arena": "answer", "gamma_bench": "chosen_number", "shall_we_talk": "number"}


@each_row(("preset", "key"), KEYS.items())
def test_reply_keys(preset, key):
    game = llm_games.rules("beauty_contest", preset=preset).core
    question = game.question(game.reset(), 0)
    assert json.loads(question.reply(0)) == {key: 0}
    reply = json.dumps({"popular answer": 3, key: 7, "reason": "x"})
    assert read_reply(reply, question).action == 7 * game.unit


@each_row(
    ("more", "words"),
    [
        ({"max_draw": 5}, "max_draw must be two integers"),
        ({"max_draw": (10, 10)}, "low < high"),
        ({"max_draw": (1, 2, 3)}, "max_draw must be two integers"),
        ({"max_draw": (5, 9), "min": 5}, "above min"),
        ({"max_draw": (5, 9), "bounds_check": "none"}, "bounds_check"),
        ({"reply_key": ""}, "reply_key"),
        ({"reply_key": "explanation"}, "reply_key"),
        ({"reply_key": "a b"}, "reply_key"),
        ({"told_equal": "no"}, "told_equal"),
    ],
)
def test_bad_contests(more, words):
    with pytest.raises(BadParameter, match=words):
        llm_games.rules("beauty_contest", **more)


def test_a_session_is_the_same_text_for_whoever_reads_it():
    """Runs before the window of history leave no trace in what a view tells."""
    game = llm_games.rules("beauty_contest", preset="econ_arena", players=3, rounds=6)
    one, _ = play(game, (1, 2, 3), (4, 5, 6))
    two, _ = play(game, (9, 9, 9), (4, 5, 6))
    assert game.told(one, 1) == game.told(two, 1)
