"""Divide the dollar: the source's worked cases, every option, and a scripted game."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row

from llm_games.games.divide_dollar.rules import DivideDollar
from llm_games.questions import MISSING
from llm_games.view import View
from llm_games.words import Prompts

CASES = {
    "D1 boundary": ({}, [10] * 10, 100, [10] * 10),
    "D2": ({}, [11, *[10] * 9], 101, [0] * 10),
    "D3": ({}, [91, *[1] * 9], 100, [91, *[1] * 9]),
    "D4": ({}, [91, 2, *[1] * 8], 101, [0] * 10),
    "D5": ({}, [0] * 10, 0, [0] * 10),
    "D6": ({}, [33, 33, 33], 99, [33, 33, 33]),
    "D7": ({}, [100, *[0] * 9], 100, [100, *[0] * 9]),
    "unbounded": ({"bid_range": "unbounded"}, [-5, 105, *[0] * 8], 100, [-5, 105, *[0] * 8]),
    "D7 with other golds": ({"golds": 50}, [49, 1], 50, [49, 1]),
}


@each_row(("options", "bids", "total", "receipts"), CASES.values(), ids=CASES)
def test_worked_cases(options, bids, total, receipts):
    game = DivideDollar(players=len(bids), **options)
    state, outcome = game.step(game.reset(0), np.array(bids))
    assert outcome.record["sum"] == total
    assert outcome.rewards.tolist() == receipts
    assert not outcome.broke.any()
    assert [game.told(state, i)["last"]["receipt"] for i in range(len(bids))] == receipts


@given(st.lists(st.integers(0, 30), min_size=2, max_size=6), st.integers(1, 60))
def test_all_or_nothing(bids, golds):
    bids = [min(bid, golds) for bid in bids]
    game = DivideDollar(players=len(bids), golds=golds)
    _, outcome = game.step(game.reset(0), np.array(bids))
    assert outcome.rewards.tolist() == (bids if sum(bids) <= golds else [0] * len(bids))


@each_row("bid", [187, -5, MISSING])
def test_illegal_bids_count_as_0(bid):
    game = DivideDollar(players=2)
    _, outcome = game.step(game.reset(0), np.array([bid, 60]))
    assert outcome.broke.tolist() == [True, False]
    assert outcome.record["actions"].tolist() == [0, 60]
    assert outcome.rewards.tolist() == [0, 60]
    void = DivideDollar(players=2, failed_reply="void_run")
    state, outcome = void.step(void.reset(0), np.array([bid, 60]))
    assert state.void
    assert not outcome.rewards.any()


def test_bounds():
    assert DivideDollar(golds=50).bounds() == (0, 50)
    assert DivideDollar(bid_range="unbounded").bounds() == (-(2**53) // 10 + 1, 2**53 // 10)


def test_single_bids_of_others_stay_secret():
    game = DivideDollar(players=3)
    one, _ = game.step(game.reset(0), np.array([10, 20, 30]))
    two, _ = game.step(game.reset(0), np.array([10, 30, 20]))
    assert game.told(one, 0) == game.told(two, 0)
    assert np.array_equal(game.observe(one)[0], game.observe(two)[0])


def test_golden_playthrough():
    game = DivideDollar(players=3, rounds=2)
    prompts, state = Prompts(game.name), game.reset(0)
    assert prompts.text(View.of(game, state, 0)) == (
        "You are one of 3 players in a game of 2 rounds.\n"
        "In each round, 100 coins are to be divided. All players bid at the same time for a part "
        "of them. You cannot see the bids of the others.\n"
        "If all 3 bids add up to at most 100, every player receives what it bid, and coins that "
        "are left are lost. If they add up to more than 100, all players receive 0.\n\n"
        "Round 1 of 2. How many coins do you bid? Your goal is the highest total of coins over "
        "all rounds. Nobody receives any if the sum of all bids is above 100.\n"
        'Answer only with JSON of this form: {"bid_amount": <a whole number from 0 to 100>}'
    )
    state, _ = game.step(state, np.array([20, 30, 50]))
    assert prompts.report(View.of(game, state, 1)) == (
        "Result of round 1: you bid 30. All bids added up to 100, which is at most 100. "
        "You received 30."
    )
    state, outcome = game.step(state, np.array([20, 31, 50]))
    assert outcome.finished.all()
    assert prompts.report(View.of(game, state, 1)) == (
        "Result of round 2: you bid 31. All bids added up to 101, which is more than 100. "
        "You received 0."
    )
    caption, _, rows = game.picture(state)
    assert caption == "Divide the dollar: round 2 of 2, bids add up to 101 of 100"
    assert rows[2] == ["player_2", "50", "0"]
