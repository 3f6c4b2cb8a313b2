"""The public goods game: the source's worked cases, every option, and a scripted game."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row

from llm_games.games.public_goods.rules import PublicGoods
from llm_games.questions import MISSING, BadReply
from llm_games.view import View
from llm_games.words import Prompts

MIXED = [20, 15, 10, 5, 0, 20, 15, 10, 5, 0]
# Ratio, contributions, pot, gains, tokens after the round, welfare.
CASES = {
    "P1": (2, [20] * 10, 200, [20] * 10, [40] * 10, 400),
    "P2 free rider": (2, [0, *[20] * 9], 180, [36, *[16] * 9], [56, *[36] * 9], 380),
    "P3": (2, [0] * 10, 0, [0] * 10, [20] * 10, 200),
    "P4": (2, MIXED, 100, [0, 5, 10, 15, 20] * 2, [20, 25, 30, 35, 40] * 2, 300),
    "P5": (2, [7, 3, 0], 10, ["-1/3", "11/3", "20/3"], ["59/3", "71/3", "80/3"], 70),
    "P6": (1, [1, *[0] * 7], 1, ["-7/8", *["1/8"] * 7], ["153/8", *["161/8"] * 7], 160),
    "P7": (0, [20] * 10, 200, [-20] * 10, [0] * 10, 0),
    "P8": ("1/2", [20, *[0] * 9], 20, [-19, *[1] * 9], [1, *[21] * 9], 190),
    "P9": (4, [20] * 10, 200, [60] * 10, [80] * 10, 800),
}


@each_row(("ratio", "given_", "pot", "gains", "tokens", "welfare"), CASES.values(), ids=CASES)
def test_worked_cases(ratio, given_, pot, gains, tokens, welfare):
    game = PublicGoods(players=len(given_), ratio=ratio)
    state, outcome = game.step(game.reset(0), np.array(given_))
    assert outcome.record["pot"] == pot
    assert outcome.rewards.tolist() == [float(Fraction(t)) for t in tokens]
    assert game.gain(state).tolist() == [float(Fraction(g)) for g in gains]
    assert sum(Fraction(t) for t in tokens) == welfare
    assert state.endowment.tolist() == [20] * len(given_)


def test_carry():
    game = PublicGoods(players=3, endowment="carry")
    state, _ = game.step(game.reset(0), np.array([20, 10, 0]))
    assert state.endowment.tolist() == [20, 30, 40]
    assert game.legal(state)[1].tolist() == [20, 30, 40]
    assert game.breaks(state, np.array([25, 25, 25])).tolist() == [True, False, False]
    after, _ = game.step(state, np.array([5, 5, 5]))
    assert after.endowment.tolist() == [25, 35, 45]


@each_row("ratio", ["1/2", 2])
def test_carried_tokens_are_paid_once(ratio):
    """What is paid in all is what one holds in the end."""
    game = PublicGoods(players=4, rounds=5, tokens=7, endowment="carry", ratio=ratio)
    state, paid = game.reset(0), []
    for _ in range(5):
        state, outcome = game.step(state, np.floor(state.endowment).astype(int) // 2)
        paid.append(outcome.rewards)
    assert np.allclose(np.sum(paid, axis=0), state.tokens, rtol=1e-15)
    assert paid[0].tolist() == [7 - 3 + float(Fraction(ratio)) * 3] * 4


@given(st.integers(2, 6), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_random_endowments_are_distinct_and_kept(players, rand_min, seed):
    game = PublicGoods(players=players, tokens=12, initial_tokens="random", rand_min=rand_min)
    state = game.reset(seed)
    drawn = state.endowment.tolist()
    assert len(set(drawn)) == players
    assert all(rand_min <= tokens <= 12 for tokens in drawn)
    after, _ = game.step(state, np.zeros(players, np.int64))
    assert after.endowment.tolist() == drawn


@each_row("contribution", [21, -1, MISSING])
def test_illegal_contributions_count_as_0(contribution):
    game = PublicGoods(players=2)
    _, outcome = game.step(game.reset(0), np.array([contribution, 20]))
    assert outcome.broke.tolist() == [True, False]
    assert outcome.record["actions"].tolist() == [0, 20]
    void = PublicGoods(players=2, failed_reply="void_run")
    assert void.step(void.reset(0), np.array([contribution, 20]))[0].void


def test_golden_playthrough():
    game = PublicGoods(players=3, rounds=2)
    prompts, state = Prompts(game.name), game.reset(0)
    assert prompts.text(View.of(game, state, 0)) == (
        "You are one of 3 players in a game of 2 rounds.\n"
        "In every round each player gets 20 tokens.\n"
        "In each round, all players decide at the same time how many of their tokens to put into "
        "a common pot. The others cannot see your choice while they make theirs.\n"
        "The pot is multiplied by 2 and shared out equally among all 3 players, whatever each of "
        "them put in. Tokens you do not put in stay yours.\n"
        "The tokens you have after a round are put aside and added to your total. The next round "
        "starts afresh.\n\n"
        "Round 1 of 2. You have 20 tokens. How many do you put into the pot? Your goal is the "
        "highest total of tokens over all rounds.\n"
        'Answer only with JSON of this form: {"tokens_contributed": <a whole number from 0 to 20>}'
    )
    state, _ = game.step(state, np.array([7, 3, 0]))
    assert prompts.report(View.of(game, state, 0)) == (
        "Result of round 1: the contributions were 7, 3, 0. The pot held 10 tokens before it was "
        "multiplied.\nYou contributed 7. Your net gain from the pot was -0.33, and you ended the "
        "round with 19.67 tokens.\nTokens of all players after the round: 19.67, 23.67, 26.67."
    )
    state, outcome = game.step(state, np.array([20, 20, 20]))
    assert outcome.finished.all()
    caption, _, rows = game.picture(state)
    assert caption == "Public goods game: round 2 of 2, pot 60"
    assert rows[0] == ["player_0", "20", "20", "40.00"]


def test_carry_is_legal_up_to_what_one_holds():  # P10
    game = PublicGoods(players=3, endowment="carry")
    state, _ = game.step(game.reset(0), np.array([20, 10, 0]))
    assert game.question(state, 1).read(30) == 30
    with pytest.raises(BadReply, match="25 is not a whole number from 0 to 20"):
        game.question(state, 0).read(25)
    uneven, _ = game.step(game.reset(0), np.array([7, 3, 0]))
    assert game.legal(uneven)[1].tolist() == [19, 23, 26]  # of 59/3, 71/3 and 80/3 tokens


@each_row(
    ("case", "gains", "tokens"),
    [
        ("P5", ["-0.33", "3.67", "6.67"], ["19.67", "23.67", "26.67"]),
        ("P6", ["-0.88", *["0.12"] * 7], ["19.12", *["20.12"] * 7]),
    ],
)
def test_shown_amounts_round_halves_to_even(case, gains, tokens):
    ratio, given_, *_ = CASES[case]
    game = PublicGoods(players=len(given_), ratio=ratio)
    state, _ = game.step(game.reset(0), np.array(given_))
    for seat in range(game.players):
        report = Prompts(game.name).report(View.of(game, state, seat))
        assert f" {gains[seat]}, and you ended the round with {tokens[seat]} tokens" in report
        assert report.endswith(f": {', '.join(tokens)}.")


def test_random_endowments_of_a_batch():
    game = PublicGoods(initial_tokens="random", endowment="carry")
    drawn = game.reset(3, (4000,)).endowment
    assert all(len(set(table)) == 10 for table in drawn.T.tolist())
    counts = np.bincount(drawn[0].astype(int), minlength=21)[11:]
    assert abs(counts - 400).max() < 5 * np.sqrt(400)


def test_unbounded_contributions_are_played_as_they_are():
    game = PublicGoods(players=3, contribution_range="unbounded")
    _, outcome = game.step(game.reset(0), np.array([-6, 36, 0]))
    assert not outcome.broke.any()
    assert outcome.rewards.tolist() == [46, 4, 40]


def test_a_seat_does_not_hear_its_number():
    game = PublicGoods(players=4)
    state, _ = game.step(game.reset(0), np.array([5, 5, 5, 5]))
    assert all(game.told(state, seat) == game.told(state, 0) for seat in range(4))
    assert (game.observe(state) == game.observe(state)[0]).all()
