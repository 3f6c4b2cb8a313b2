"""The diner's dilemma: the source's worked cases, every option, and a scripted game."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row

from llm_games.games.diners_dilemma.rules import DinersDilemma
from llm_games.questions import MISSING
from llm_games.view import View
from llm_games.words import Prompts

KEYS = ("cheap_price", "cheap_utility", "costly_price", "costly_utility")
VARIANTS = {
    "p1": ((10, 15, 20, 20), 4, 5, 0),
    "p2": ((11, 5, 20, 7), "1.1", -6, -13),
    "p3": ((4, 19, 9, 20), "0.5", 15, 11),
    "p4": ((1, 8, 19, 12), "2.2", 7, -7),
    "p5": ((4, 5, 17, 7), "0.7", 1, -10),
    "p6": ((2, 11, 8, 13), "1.4", 9, 5),
}
# Parameters, costly orders, bill, share, utility of a costly and of a cheap eater, sum.
CASES = {
    "E1 all cheap": ({}, 0, 100, 10, None, 5, 50),
    "E2": ({}, 1, 110, 11, 9, 4, 45),
    "E3": ({}, 5, 150, 15, 5, 0, 25),
    "E4": ({}, 9, 190, 19, 1, -4, 5),
    "E5 all costly": ({}, 10, 200, 20, 0, None, 0),
    "E6": ({"players": 7}, 1, 80, "80/7", "60/7", "25/7", 30),
    "E8": (dict(zip(KEYS, VARIANTS["p2"][0], strict=True)), 1, 119, "11.9", "-4.9", "-6.9", -67),
    "decimals": (
        {"cheap_price": 9.9, "players": 3},
        1,
        "39.8",
        "199/15",
        "101/15",
        "26/15",
        "10.2",
    ),
}


def play(game, costly):
    """Play one round in which the first `costly` seats order the costly dish."""
    return game.step(game.reset(0), (np.arange(game.players) < costly).astype(np.int64))


@each_row(
    ("parameters", "costly", "bill", "share", "dear", "cheap", "total"), CASES.values(), ids=CASES
)
def test_worked_cases(parameters, costly, bill, share, dear, cheap, total):
    game = DinersDilemma(**parameters)
    state, outcome = play(game, costly)
    utilities = [dear] * costly + [cheap] * (game.players - costly)
    assert outcome.rewards.tolist() == [float(Fraction(u)) for u in utilities]
    assert outcome.record["bill"] == float(Fraction(bill))
    assert outcome.record["costly"] == costly
    assert sum(Fraction(u) for u in utilities) == Fraction(total)
    assert game.told(state, 0)["last"]["share"] == pytest.approx(float(Fraction(share)))


def test_at_the_boundary_the_dish_makes_no_difference():
    with pytest.warns(UserWarning, match="changes the own utility by 0"):
        game = DinersDilemma(players=2)
    assert [play(game, h)[1].rewards.tolist() for h in (0, 1, 2)] == [[5, 5], [5, 0], [0, 0]]


@each_row(("values", "gain", "all_cheap", "all_costly"), VARIANTS.values(), ids=VARIANTS)
def test_variants_are_dilemmas(values, gain, all_cheap, all_costly):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        game = DinersDilemma(**dict(zip(KEYS, values, strict=True)))
    assert game.dearer_alone
    assert game.gain == Fraction(gain)
    assert play(game, 0)[1].rewards.tolist() == [all_cheap] * 10
    assert play(game, 10)[1].rewards.tolist() == [all_costly] * 10


@each_row(("parameters", "alone"), [({"costly_utility": 40}, False), ({"players": 2}, True)])
def test_what_is_no_dilemma_warns_and_is_told_truly(parameters, alone):
    with pytest.warns(UserWarning, match="no dilemma"):
        game = DinersDilemma(**parameters)
    for version in ("v1", "v2", "v3", "v4", "v5"):
        rules = Prompts(game.name, version).rules(game, 0)
        assert ("would not be worth" in rules or "not worth" in rules) == alone


@given(st.lists(st.booleans(), min_size=3, max_size=9), st.integers(0, 8))
def test_ordering_costly_gains_the_same_whatever_the_others_do(orders, seat):
    orders, seat = np.array(orders, np.int64), seat % len(orders)
    game = DinersDilemma(players=len(orders))
    cheap, costly = orders.copy(), orders.copy()
    cheap[seat], costly[seat] = 0, 1
    gain = game.utility(costly)[seat] - game.utility(cheap)[seat]
    assert gain == pytest.approx(float(game.gain))


def test_missing_and_illegal_orders_are_cheap():
    game = DinersDilemma(players=3)
    _, outcome = game.step(game.reset(0), np.array([MISSING, 2, 1]))
    assert outcome.broke.tolist() == [True, True, False]
    assert outcome.record["actions"].tolist() == [0, 0, 1]
    void = DinersDilemma(players=3, failed_reply="void_run")
    assert void.step(void.reset(0), np.array([1, 2, 1]))[0].void


def test_who_ordered_what_stays_secret():
    game = DinersDilemma(players=3)
    one, _ = game.step(game.reset(0), np.array([1, 0, 1]))
    two, _ = game.step(game.reset(0), np.array([1, 1, 0]))
    assert game.told(one, 0) == game.told(two, 0)
    assert np.array_equal(game.observe(one)[0], game.observe(two)[0])


def test_golden_playthrough():
    game = DinersDilemma(players=7, rounds=2)
    prompts, state = Prompts(game.name), game.reset(0)
    assert prompts.text(View.of(game, state, 0)) == (
        "You are one of 7 players who eat out together for 2 rounds.\n"
        "In each round, all players order at the same time: the costly dish or the cheap dish. "
        "You cannot see what the others order.\n"
        "The costly dish costs 20 and is worth 20 to you. The cheap dish costs 10 and is worth 15 "
        "to you.\n"
        "The bill is split equally: each of the 7 players pays the same share. Your satisfaction, "
        "in points, is what your dish is worth minus your share.\n"
        "If you paid for your dish alone, the costly dish would not be worth its higher price.\n\n"
        "Round 1 of 2. Which dish do you order? Your goal is the highest total of points over "
        "all rounds.\n"
        'Answer only with JSON of this form: {"chosen_dish": <"costly" or "cheap">}'
    )
    state, _ = game.step(state, np.array([1, 0, 0, 0, 0, 0, 0]))
    assert prompts.report(View.of(game, state, 0)) == (
        "Result of round 1: 1 costly and 6 cheap dishes were ordered. The bill was 80, and your "
        "share was 11.43.\nYou ordered the costly dish. Your satisfaction was 8.57."
    )
    state, outcome = game.step(state, np.array([1, 0, 1, 1, 1, 1, 1]))
    assert outcome.finished.all()
    assert prompts.report(View.of(game, state, 1)) == (
        "Result of round 2: 6 costly and 1 cheap dishes were ordered. The bill was 130, and your "
        "share was 18.57.\nYou ordered the cheap dish. Your satisfaction was -3.57."
    )
    caption, _, rows = game.picture(state)
    assert caption == "Diner's dilemma: round 2 of 2, 6 costly orders, bill 130.00"
    assert rows[1] == ["player_1", "cheap", "-3.57"]


def test_numbers_stay_within_their_columns_even_with_negative_prices():
    game = DinersDilemma(players=2, **dict(zip(KEYS, (-9, 1, -3, 5), strict=True)))
    low, high = np.array([(column.low, column.high) for column in game.columns()]).T
    for dishes in ([0, 0], [0, 1], [1, 1]):
        after, _ = game.step(game.reset(), np.array(dishes))
        numbers = game.observe(after)
        assert (numbers >= low).all()
        assert (numbers <= high).all()
