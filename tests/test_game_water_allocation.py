"""The water allocation challenge: the source's worked days and games, every option, the views."""

import asyncio
import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import each_row

import llm_games
from llm_games.errors import BadParameter
from llm_games.games.water_allocation.rules import PERSONAS, RESIDENTS, WaterAllocation
from llm_games.questions import MISSING, NO_BID, BadReply
from llm_games.replies import read_reply
from llm_games.view import View
from llm_games.words import Prompts
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play_table

N = NO_BID
# Balance before the salary, health, dry days.
STATES = {
    "S": ([100] * 5, [8] * 5, [0] * 5),
    "0": ([0] * 5, [8] * 5, [0] * 5),
    "P": ([250, 300, 350, 400, 420], [7, 3, 6, 5, 1], [1, 2, 0, 1, 3]),
    "C": ([30, 0, 0, 0, 0], [8] * 5, [0] * 5),
    "D": ([0, 0, 0, 500, 0], [-2, -2, -1, 3, -2], [4, 4, 3, 2, 4]),
    "E": ([0, 0, 0, 500, 640], [-2, -2, -1, 2, 4], [4, 4, 3, 3, 3]),
    "H": ([100] * 5, [9, 10, 8, 4, 1], [0, 0, 0, 1, 0]),
    "Q": ([0] * 3, [8] * 3, [0] * 3),
}
TRIO = {"players": 3, "residents": [(name, 8, 50) for name in "XYZ"]}
# State, options, supply, bids; winners, water left, lowest price; balance, health, dry days, dead.
# fmt: off
DAYS = {
    "1 day 7 of the paper": (
        "P", {}, 19, [150, 200, 120, 180, 300], [4], 7, 300,
        [320, 0, 450, 520, 240], [5, 0, 5, 3, 3], [2, 3, 1, 2, 0], [1]),
    "2 skip to the next that fits": (
        "S", {}, 11, [20, 30, 40, 35, 90], [2], 1, 40,
        [170, 175, 160, 220, 220], [7, 7, 10, 7, 7], [1, 1, 0, 1, 1], []),
    "3 stop at first misfit": (
        "S", {"allocation": "stop"}, 11, [20, 30, 40, 35, 90], [], 11, N,
        [170, 175, 200, 220, 220], [7] * 5, [1] * 5, []),
    "4 skip twice, exact fit": (
        "S", {}, 19, [10, 15, 60, 50, 40], [1, 2], 0, 15,
        [170, 160, 140, 220, 220], [7, 10, 10, 7, 7], [1, 0, 0, 1, 1], []),
    "5 exact fit of two": (
        "S", {}, 20, [10, 50, 20, 45, 5], [1, 3], 0, 45,
        [170, 125, 200, 175, 220], [7, 10, 7, 10, 7], [1, 0, 1, 0, 1], []),
    "6 tie, only one fits": (
        "S", {}, 10, [10, 100, 100, 20, 30], [1], 1, 100,
        [170, 75, 200, 220, 220], [7, 10, 7, 7, 7], [1, 0, 1, 1, 1], []),
    "7 tie, all fit": (
        "S", {}, 28, [60, 60, 60, 10, 10], [0, 1, 2], 1, 60,
        [110, 115, 140, 220, 220], [10, 10, 10, 7, 7], [0, 0, 0, 1, 1], []),
    "8 all bid zero": (
        "0", {}, 20, [0] * 5, [0, 1], 3, 0,
        [70, 75, 100, 120, 120], [10, 10, 7, 7, 7], [0, 0, 1, 1, 1], []),
    "9 nobody bids": (
        "0", {}, 20, [N] * 5, [], 20, N,
        [70, 75, 100, 120, 120], [7] * 5, [1] * 5, []),
    "9 no bid is zero": (
        "0", {"no_bid": "zero"}, 20, [N] * 5, [0, 1], 3, 0,
        [70, 75, 100, 120, 120], [10, 10, 7, 7, 7], [0, 0, 1, 1, 1], []),
    "10 over budget, void": (
        "C", {"over_budget": "void"}, 12, [101, 60, 90, 95, 50], [3], 1, 95,
        [100, 75, 100, 25, 120], [7, 7, 7, 10, 7], [1, 1, 1, 0, 1], []),
    "11 over budget, clipped": (
        "C", {"over_budget": "clip"}, 12, [101, 60, 90, 95, 50], [0], 4, 100,
        [0, 75, 100, 120, 120], [10, 7, 7, 7, 7], [0, 1, 1, 1, 1], []),
    "12 over budget, rule break": (
        "C", {"over_budget": "rule_break"}, 12, [101, 60, 90, 95, 50], [3], 1, 95,
        [100, 75, 100, 25, 120], [7, 7, 7, 10, 7], [1, 1, 1, 0, 1], []),
    "13 bid equals balance": (
        "C", {}, 8, [100, 75, 0, 0, 0], [0], 0, 100,
        [0, 75, 100, 120, 120], [10, 7, 7, 7, 7], [0, 1, 1, 1, 1], []),
    "14 last survivor, free water": (
        "D", {}, 11, [N, N, N, 0, N], [3], 0, 0,
        [0, 0, 0, 620, 0], [-2, -2, -1, 5, -2], [4, 4, 3, 0, 4], []),
    "15 last survivor, supply too small": (
        "D", {}, 10, [N, N, N, 620, N], [], 10, N,
        [0] * 5, [-2, -2, -1, 0, -2], [4, 4, 3, 3, 4], [3]),
    "16 everybody dead": (
        "E", {}, 10, [N, N, N, 600, 760], [], 10, N,
        [0] * 5, [-2, -2, -1, -2, 0], [4] * 2 + [3, 4, 4], [3, 4]),
    "17 health cap, death on exactly 0": (
        "H", {}, 17, [50, 40, 10, 10, 10], [0, 1], 0, 40,
        [120, 135, 200, 220, 0], [10, 10, 7, 2, 0], [0, 0, 1, 2, 1], [4]),
    "18 equal requirements": (
        "Q", TRIO, 8, [10, 40, 40], [1], 0, 40,
        [50, 10, 50], [7, 10, 7], [1, 0, 1], []),
}
# fmt: on


def start(name, supply, **options):
    game = WaterAllocation(supplies=[supply] * 20, **options)
    parts = dict(zip(("balance", "hp", "dry"), map(np.array, STATES[name]), strict=True))
    return game, game.reset().replace(living=parts["hp"] > 0, **parts)


@pytest.mark.parametrize(
    ("name", "options", "supply", "bids", "winners", "left", "price", *"bhdx"), DAYS.values(),
    ids=DAYS,
)  # fmt: skip
def test_worked_days(name, options, supply, bids, winners, left, price, b, h, d, x):
    game, state = start(name, supply, **options)
    after, outcome = game.step(state, np.array(bids))
    record = outcome.record
    assert np.flatnonzero(record["won"]).tolist() == winners
    assert (record["left"], record["price"]) == (left, price)
    assert after.balance.tolist() == b
    assert after.hp.tolist() == h
    assert after.dry.tolist() == d
    assert np.flatnonzero(record["died"]).tolist() == x
    assert after.living.tolist() == [points > 0 for points in h]
    assert outcome.finished.tolist() == [points <= 0 for points in h]
    assert bool(after.over) == (max(h) <= 0)
    assert record["actions"].tolist() == bids


def test_what_is_counted_of_bids_above_the_balance():
    for options, broke in (("void", []), ("clip", []), ("rule_break", [0])):
        game, state = start("C", 12, over_budget=options)
        _, outcome = game.step(state, np.array([101, 60, 90, 95, 50]))
        assert np.flatnonzero(outcome.record["over_budget"]).tolist() == [0]
        assert np.flatnonzero(outcome.broke).tolist() == broke


def test_money_that_a_death_takes_is_announced_first():
    for name, seats, money in (("P", [1], [375]), ("D", [3], [620]), ("E", [3, 4], [620, 760])):
        bids = DAYS["1 day 7 of the paper"][3] if name == "P" else [600, 760, 0, 600, 760]
        for reset in (True, False):
            game, state = start(name, 19 if name == "P" else 10, reset_balance_on_death=reset)
            after, outcome = game.step(state, np.array(bids))
            assert outcome.record["balance"][seats].tolist() == money
            assert after.balance[seats].tolist() == ([0] * len(seats) if reset else money)
            said = {
                r["name"]: r["balance"] for r in game.told(after, seats[0])["last"]["residents"]
            }
            assert [said[RESIDENTS[seat].name] for seat in seats] == money


def test_ties_by_seat_alone():
    # Cindy needs more than Bob here but sits before him.
    cast = [("Cindy", 10, 100), ("Bob", 9, 100)]
    for tie_rule, winner in (("lower_requirement", 1), ("index", 0)):
        game = WaterAllocation(players=2, residents=cast, tie_rule=tie_rule, supplies=[10] * 20)
        _, outcome = game.step(game.reset(), np.array([100, 100]))
        assert np.flatnonzero(outcome.record["won"]).tolist() == [winner]


def test_a_day_without_water_can_be_given():
    game = WaterAllocation()
    _, outcome = game.step(game.reset(0, (), {"supplies": [0] * 20}), np.full(5, 50))
    assert not outcome.record["won"].any()


def test_two_tables_at_once():
    game = WaterAllocation()
    state = game.reset(0, (2,), {"supplies": np.tile([11, 17], (20, 1))})
    state = state.replace(balance=np.tile([100, 0], (5, 1)))
    bids = np.array([[20, 70], [30, 70], [40, 70], [35, 70], [90, N]])
    after, outcome = game.step(state, bids)
    assert outcome.record["won"].tolist() == [[0, 1], [0, 1], [1, 0], [0, 0], [0, 0]]
    assert outcome.record["left"].tolist() == [1, 0]
    assert after.balance.tolist() == [[170, 0], [175, 5], [160, 100], [220, 120], [220, 120]]
    assert after.hp.tolist() == [[7, 10], [7, 10], [10, 7], [7, 7], [7, 7]]


SUPPLIES = (17, 12, 20, 10, 15, 19, 11, 14, 18, 13, 16, 20, 10, 12, 15, 17, 11, 19, 14, 13)


def half(game, state):
    return game.purse(state) // 2


def scrambled(game, state):
    seats = np.arange(game.players)
    return (37 * (state.round + 1) + 53 * seats) % (game.purse(state) + 1)


# fmt: off
GAMES = {
    "half": (
        half, "D E CB A D E C D E D E D - E D E D E D E",
        [60, 120, 112, 140, 270, 300, 275, 315, 330, 277, 285, 259, N, 322, 309, 281, 275, 261,
         257, 250],
        {0: 7, 1: 7, 2: 9}, [0, 0, 0, 378, 251], [-2, -3, 0, 7, 7], [3, 4, 2, 1, 0]),
    "scrambled": (
        scrambled, "D C EA B D CA D C CA D D AC C C D D C D C C",
        [75, 180, 111, 201, 344, 222, 418, 109, 35, 165, 247, 121, 179, 295, 162, 241, 67, 316,
         342, 171],
        {1: 7, 4: 7, 0: 15}, [0, 0, 53, 432, 0], [-2, -2, 10, 4, -3], [3, 3, 0, 2, 4]),
}
# fmt: on


@pytest.mark.parametrize(("rule", "winners", "prices", "deaths", *"bhd"), GAMES.values(), ids=GAMES)
def test_whole_games(rule, winners, prices, deaths, b, h, d):
    game = WaterAllocation(supplies=SUPPLIES)
    state, rewards, died = game.reset(), np.zeros(5), {}
    for day, (served, price) in enumerate(zip(winners.split(), prices, strict=True), start=1):
        assert not state.over
        state, outcome = game.step(state, rule(game, state))
        won = {RESIDENTS[seat].name[0] for seat in np.flatnonzero(outcome.record["won"])}
        assert won == set(served) - {"-"}
        assert outcome.record["price"] == price
        died |= dict.fromkeys(np.flatnonzero(outcome.record["died"]).tolist(), day)
        rewards += outcome.rewards
    assert state.over
    assert died == deaths
    assert (state.balance.tolist(), state.hp.tolist(), state.dry.tolist()) == (b, h, d)
    assert rewards.tolist() == [float(seat not in deaths) for seat in range(5)]


def test_everybody_dies_on_day_4():
    game = WaterAllocation(supplies=[7] * 20)
    state, health = game.reset(), []
    while not state.over:
        state, outcome = game.step(state, half(game, state))
        health.append(outcome.record["hp"].tolist())
    assert health == [[points] * 5 for points in (7, 5, 2, -2)]
    assert outcome.record["balance"].tolist() == [280, 300, 400, 480, 480]
    assert not outcome.rewards.any()
    assert outcome.finished.all()


@each_row(
    ("settings", "supplies", "mean"),
    [("setting_1", (10, 20), 15), ("setting_2", (15, 25), 20), ("setting_3", (20, 30), 25),
     ("setting_4", (10, 20), 15), ("setting_5", (15, 25), 20), ("setting_6", (20, 30), 25)],
)  # fmt: skip
def test_presets(settings, supplies, mean):
    game = llm_games.rules("water_allocation", preset=settings)
    drawn = game.reset(1, (500,)).supplies
    assert (drawn.min(), drawn.max()) == supplies
    assert game.mean_supply == mean
    assert (game.personas is None) == (settings < "setting_4")


def test_the_upper_end_of_the_supply_may_be_left_out():
    game = WaterAllocation(supply_upper_inclusive=False)
    drawn = game.reset(1, (500,)).supplies
    assert (drawn.min(), drawn.max()) == (10, 19)
    assert game.mean_supply == 14.5
    assert "10 to 19 units" in Prompts("water_allocation").rules(game, 0)
    with pytest.raises(BadParameter, match="supply_high must be an integer of at least 11"):
        WaterAllocation(supply_high=10, supply_upper_inclusive=False)


def test_supplies_are_independent_of_play():
    game = WaterAllocation()
    one, two = (game.reset(3) for _ in range(2))
    for _ in range(3):
        one, _ = game.step(one, half(game, one))
        two, _ = game.step(two, np.full(5, N))
    assert game.supply(one) == game.supply(two)


@each_row(
    ("decimals", "value", "action"),
    [(0, 120, 120), (0, "120", 120), (0, None, N), (0, 119.99, 119), (2, 119.999, 11999),
     (2, "0.05", 5), (4, 1.00009, 10000), (0, 0, 0)],
)  # fmt: skip
def test_replies(decimals, value, action):
    game = WaterAllocation(players=1, residents=[("A", 8, 120)], money_decimals=decimals)
    text = json.dumps({"bid": value, "reason": "because"})
    reply = read_reply(text, game.question(game.reset(), 0))
    assert (reply.outcome, reply.action) == ("valid", action)


@each_row(
    ("value", "kind", "action"),
    [("null", "format", MISSING), (True, "format", MISSING), ("12 or 13", "format", MISSING),
     ([3], "format", MISSING), (-1, "range", MISSING), (-0.5, "range", MISSING),
     (71, "range", 71), (10**25, "range", 2**62)],
)  # fmt: skip
def test_bad_replies(value, kind, action):
    question = WaterAllocation().question(WaterAllocation().reset(), 0)
    with pytest.raises(BadReply) as bad:
        question.read(Decimal(str(value)) if isinstance(value, float) else value)
    assert (bad.value.kind, bad.value.action) == (kind, action)
    assert "a whole number from 0 to 70, or null for no bid" in str(bad.value)


@each_row("action", [MISSING, -2, -70])
def test_unusable_bids_count_as_none_and_are_told(action):
    game = WaterAllocation(supplies=[8] * 20)
    after, outcome = game.step(game.reset(), np.array([action, N, N, N, N]))
    assert outcome.broke.tolist() == [True, False, False, False, False]
    assert outcome.record["actions"].tolist() == [N] * 5
    assert game.told(after, 1)["last"]["residents"][0]["bid"] is None
    zero = WaterAllocation(supplies=[8] * 20, no_bid="zero")
    _, outcome = zero.step(zero.reset(), np.array([action, N, N, N, N]))
    assert np.flatnonzero(outcome.record["won"]).tolist() == [0]


def test_money_with_decimals():
    game = WaterAllocation(players=2, money_decimals=2, supplies=[9] * 20)
    state = game.reset()
    assert game.legal(state)[1].tolist() == [7000, 7500]
    assert [game.decode(state, 0, x) for x in (12.349, -0.004, 0.29, 70.0)] == [1234, N, 29, 7000]
    after, outcome = game.step(state, np.array([2399, 2400]))
    assert outcome.record["price"] == 2400
    assert after.balance.tolist() == [7000, 5100]
    assert game.told(after, 0)["balance"] == "140.00"
    assert "bid $23.99 and stayed dry. Balance $70.00" in Prompts("water_allocation").report(
        View.of(game, after, 0)
    )
    assert View.of(game, after, 0).number("bid_0") == 23.99


def test_a_language_model_bids():
    """Beyond its balance, in chatter, in form, and declining: only the second breaks a rule."""
    texts = ['{"bid": 9999}', "I pass.", '{"bid": 60, "reason": "thirst"}', '{"bid": null}']

    def script(request):
        return texts[(request.who.seat + len(request.messages) // 2) % 4]

    game = WaterAllocation(players=4, days=1, supplies=[8])
    player = LLMPolicy(ScriptedClient(script), max_attempts=1)
    (step,) = asyncio.run(play_table(game, [player] * 4, 1)).steps
    assert step.outcome.record["actions"].tolist() == [N, 60, N, 9999]
    assert step.outcome.broke.tolist() == [True, False, False, False]
    assert step.outcome.record["over_budget"].tolist() == [False, False, False, True]
    assert [step.decisions[seat].outcome for seat in range(4)] == [
        "unparsable", "valid", "valid", "out_of_range",
    ]  # fmt: skip


def column(game, state, seat, name):
    return float(View.of(game, state, seat).number(name))


def test_the_day_of_a_death_and_after_it():
    game, state = start("P", 19)
    after, _ = game.step(state, np.array([150, 200, 120, 180, 300]))
    prompts = Prompts("water_allocation")
    report = prompts.report(View.of(game, after, 1))
    assert report == prompts.report(View.of(game, after, 0))  # everybody hears the same
    assert "Bob bid $200 and stayed dry. Balance $375, health 0, dry days 3. Bob died." in report
    assert prompts.request(View.of(game, after, 1)) == ""
    assert column(game, after, 1, "hp_1") == 0
    assert column(game, after, 1, "hp") == 0
    later, _ = game.step(after, np.array([0, 999, 0, 0, 0]))
    assert later.bids[1] == N
    assert prompts.report(View.of(game, later, 1)) == ""
    assert not View.of(game, later, 1).numbers.any()
    assert "Bob" not in prompts.report(View.of(game, later, 0))


def test_the_numbers_of_a_day():
    game, state = start("P", 12)
    after, _ = game.step(state, np.array([150, 170, 120, 180, N]))
    seen = {c.name: column(game, after, 3, c.name) for c in game.columns()}
    own = {"days": 1, "supply": 12, "balance": 460, "hp": 7, "dry": 0, "requirement": 11,
           "salary": 120, "last_supply": 12}  # fmt: skip
    assert {name: seen[name] for name in own} == own
    for kind, values in {
        "took_part": [1] * 5, "bid": [150, 170, 120, 180, -1], "won": [0, 0, 0, 1, 0],
        "balance": [320, 375, 450, 340, 540], "hp": [5, 0, 5, 7, -3], "dry": [2, 3, 1, 0, 4],
    }.items():  # fmt: skip
        assert [seen[f"{kind}_{seat}"] for seat in range(5)] == values


def test_the_shown_counter():
    for shown, said in (("days", "dry days so far 0"), ("next_loss", "next dry day costs 1")):
        game = WaterAllocation(shown_dry_counter=shown)
        assert said in Prompts("water_allocation").request(View.of(game, game.reset(), 0))


@each_row("version", ["v1", "v2", "v3", "v4", "v5"])
def test_personas_reach_their_own_player_alone(version):
    game, prompts = WaterAllocation(persona="default"), Prompts("water_allocation", version)
    for seat in range(5):
        rules = prompts.rules(game, seat)
        for other, persona in enumerate(PERSONAS):
            assert all((text in rules) == (other == seat) for text in persona)
    own = WaterAllocation(players=2, persona=[("cook", "You cook.", "You are from here.")] * 2)
    assert "You cook. You are from here." in prompts.rules(own, 1)
    assert "cook" not in prompts.rules(WaterAllocation(), 1)


def test_tables_may_be_mappings():
    rows = [{"name": "A", "requirement": 3, "salary": 5}]
    game = WaterAllocation(players=1, residents=rows, balance_start=2)
    assert game.purse(game.reset()).tolist() == [7]
    assert hash(game) == hash(WaterAllocation(players=1, residents=[("A", 3, 5)], balance_start=2))


OPTIONS = st.fixed_dictionaries(
    {
        "allocation": st.sampled_from(["skip", "stop"]),
        "over_budget": st.sampled_from(["void", "clip", "rule_break"]),
        "no_bid": st.sampled_from(["none", "zero"]),
        "tie_rule": st.sampled_from(["lower_requirement", "index"]),
    }
)


def serve(game, bids, purse, supply):
    """Serve one table by hand, in the words of the source."""
    effective = {}
    for seat, bid in enumerate(bids):
        bid = (0 if game.no_bid == "zero" else None) if bid < 0 else bid
        if bid is not None and bid > purse[seat]:
            bid = purse[seat] if game.over_budget == "clip" else None
        if bid is not None:
            effective[seat] = bid
    by_need = game.tie_rule == "lower_requirement"
    order = sorted(effective, key=lambda s: (-effective[s], game.cast[s][1] if by_need else s, s))
    served, left = {}, supply
    for seat in order:
        if game.cast[seat].requirement <= left:
            served[seat], left = effective[seat], left - game.cast[seat].requirement
        elif game.allocation == "stop":
            break
    return served, left


@settings(max_examples=150, deadline=None)
@given(
    OPTIONS,
    st.lists(st.integers(-2, 130), min_size=4, max_size=4),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 120)), min_size=4, max_size=4),
    st.integers(0, 24),
)
def test_a_day_by_hand(options, bids, cast, supply):
    residents = [(f"R{i}", *row) for i, row in enumerate(cast)]
    game = WaterAllocation(players=4, residents=residents, supplies=[supply] * 20, **options)
    state = game.reset()
    purse = game.purse(state).tolist()
    after, outcome = game.step(state, np.array(bids))
    served, left = serve(game, bids, purse, supply)
    assert np.flatnonzero(outcome.record["won"]).tolist() == sorted(served)
    assert outcome.record["left"] == left
    assert outcome.record["price"] == min(served.values(), default=N)
    money = [have - served.get(seat, 0) for seat, have in enumerate(purse)]
    assert after.balance.tolist() == money


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 4))
def test_winning_is_monotone_in_the_own_bid(seed, seat):
    rng = np.random.default_rng(seed)
    game = WaterAllocation(balance_start=200)
    state = game.reset(seed, (202,))
    others = rng.integers(0, 201, 5)
    bids = np.repeat(others[:, None], 202, axis=1)
    bids[seat] = np.arange(-1, 201)
    state = state.replace(supplies=np.repeat(state.supplies[:, :1], 202, axis=1))
    won = game.step(state, bids)[1].record["won"][seat]
    assert (np.diff(won.astype(int)) >= 0).all()
    assert not won[0]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), OPTIONS)
def test_money_health_and_life_stay_in_their_ranges(seed, options):
    game = WaterAllocation(**options)
    rng = np.random.default_rng(seed)
    state = game.reset(seed, (50,))
    limits = {c.name: (c.low, c.high) for c in game.columns()}
    while not state.over.all():
        actions = rng.integers(-2, game.purse(state) * 5 // 4 + 2)
        before, (state, outcome) = state, game.step(state, actions)
        assert (state.balance >= 0).all()
        assert (before.living | ~state.living).all()
        rows = game.observe(state)
        for place, (low, high) in enumerate(limits.values()):
            assert (rows[..., place] >= low).all()
            assert (rows[..., place] <= high).all()
    assert ((outcome.rewards > 0) <= state.living).all()


def test_personas_may_be_named_and_must_be_text():
    row = {"profession": "baker", "personality": "calm", "background": "none"}
    plain, named = (
        WaterAllocation(players=2, persona=[row | more] * 2) for more in ({}, {"name": "Alex"})
    )
    assert plain == named
    with pytest.raises(BadParameter, match="personality of persona must be text, got 3"):
        WaterAllocation(players=2, persona=[row | {"personality": 3}] * 2)


@each_row(("decimals", "action"), [(0, -7), (2, -1.0), (2, -0.001)])
def test_any_negative_number_is_no_bid(decimals, action):
    game = WaterAllocation(players=2, money_decimals=decimals)
    state = game.reset()
    assert game.decode(state, 0, action) == NO_BID


def test_the_dead_have_no_bid_left_in_their_mask():
    game = WaterAllocation(players=2, days=8)
    state = game.reset()
    while state.living.all():
        state, _ = game.step(state, np.array([state.balance[0] + game.salaries[0], NO_BID]))
    assert game.mask(state)[1].tolist() == [True] + [False] * game.bounds()[1] + [False]
