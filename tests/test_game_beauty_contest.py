"""The beauty contest: the sources' worked cases, every option, and a scripted game."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row

from llm_games.games.beauty_contest.rules import BeautyContest
from llm_games.questions import MISSING
from llm_games.registry import rulebook
from llm_games.view import View
from llm_games.words import Prompts

RULES = ("each_winner", "independent", "split", "exclusive", "amplified")


def game_of(numbers, **parameters):
    return BeautyContest(players=len(numbers), **parameters)


def play(game, numbers):
    """Play one round; None is a missing number."""
    units = [MISSING if x is None else round(Fraction(str(x)) * game.unit) for x in numbers]
    return game.step(game.reset(), np.array(units))


TWO = [8, 10, 12, 12, 12, 15, 15, 15, 18, 18]
# Options, numbers, mean, target, winners, and what each winner gets under `RULES`.
CASES = {
    "plain": ({}, [33, 22, 50, 15, 0, 67, 44, 22, 30, 27], 31, "62/3", [1, 7], (1, "1/2", 0, 2)),
    "on target": ({}, [*range(0, 100, 10)], 45, 30, [3], (1, 1, 1, 1)),
    "tie on both sides": ({}, TWO, "27/2", 9, [0, 1], (1, "1/2", 0, 2)),
    "first number": ({"tie_rule": "first_number"}, TWO, "27/2", 9, [0], (1, 1, 1, 1)),
    "first number, swapped": (
        {"tie_rule": "first_number"},
        [10, 8, *TWO[2:]],
        "27/2",
        9,
        [0],
        (1, 1, 1, 1),
    ),
    "shared number and tie": (
        {},
        [8, 10, 12, 10, 8, 33],
        "27/2",
        9,
        [0, 1, 3, 4],
        (1, "1/4", 0, 4),
    ),
    "all equal": ({}, [50] * 10, 50, "100/3", [*range(10)], (1, "1/10", 0, 10)),
    "all at the minimum": ({}, [0] * 5, 0, 0, [*range(5)], (1, "1/5", 0, 5)),
    "one high": ({}, [100, *[0] * 9], 10, "20/3", [*range(1, 10)], (1, "1/9", 0, 9)),
    "zero loses": ({"max": 10}, [10, 10, 10, 10, 0], 8, "16/3", [0, 1, 2, 3], (1, "1/4", 0, 4)),
    "exact tie": (
        {"ratio": "5/6"},
        [3, 4, 4, 4, 6],
        "21/5",
        "7/2",
        [0, 1, 2, 3],
        (1, "1/4", 0, 4),
    ),
    "tie lost in floats": (
        {"ratio": "5/6", "distance": "float"},
        [3, 4, 4, 4, 6],
        "21/5",
        "7/2",
        [1, 2, 3],
        (1, "1/3", 0, 3),
    ),
    "decimal tie": (
        {"domain": "real", "max": 1},
        [0.1, 0.7, 1],
        "3/5",
        "2/5",
        [0, 1],
        (1, "1/2", 0, 2),
    ),
    "range break left out": ({}, [10, 20, 1000], 15, 10, [0], (1, 1, 1, 1)),
    "range break kept in mean": (
        {"rule_breaker": "include"},
        [10, 20, 1000],
        "1030/3",
        "2060/9",
        [1],
        (1, 1, 1, 1),
    ),
    "range break voids round": (
        {"rule_breaker": "void_round"},
        [10, 20, 1000],
        None,
        None,
        [],
        (0, 0, 0, 0),
    ),
    "one legal number": ({}, [None, 101, 64], 64, "128/3", [2], (1, 1, 1, 1)),
    "nobody legal": ({}, [None, 101, -1], None, None, [], (0, 0, 0, 0)),
    "ratio above 1": (
        {"min": 100, "max": 200, "ratio": "4/3"},
        [120, 150, 180],
        150,
        200,
        [2],
        (1, 1, 1, 1),
    ),
    "ratio 0": ({"ratio": 0}, [3, 0, 5, 3], "11/4", 0, [1], (1, 1, 1, 1)),
    "target below the range": (
        {"min": 100, "max": 200},
        [100, 150, 130, 200],
        145,
        "290/3",
        [0],
        (1, 1, 1, 1),
    ),
    "two players": ({}, [20, 40], 30, 20, [0], (1, 1, 1, 1)),
    "a session's run": (
        {"domain": "real"},
        [33, 22, 20, 50, 0.5],
        "251/10",
        "251/15",
        [2],
        (1, 1, 1, 1),
    ),
    "missing is not in the mean even if breakers are": (
        {"rule_breaker": "include"},
        [None, 1000, 20],
        510,
        340,
        [2],
        (1, 1, 1, 1),
    ),
    "a missing number voids the round": (
        {"rule_breaker": "void_round"},
        [None, 10, 20],
        None,
        None,
        [],
        (0, 0, 0, 0),
    ),
    "no bounds": ({"bounds_check": "none"}, [10, 20, 300], 110, "220/3", [1], (1, 1, 1, 1)),
    "always 0 to 100": (
        {"bounds_check": "0_100", "min": 100, "max": 300},
        [100, 200, 50],
        75,
        50,
        [2],
        (1, 1, 1, 1),
    ),
}


@each_row(("options", "numbers", "mean", "target", "winners", "paid"), CASES.values(), ids=CASES)
def test_worked_cases(options, numbers, mean, target, winners, paid):
    paid = (paid[0], *paid)
    for rule, prize in zip(RULES, paid, strict=True):
        game = game_of(numbers, prize_rule=rule, foul_fee=2, **options)
        after, outcome = play(game, numbers)
        low, high = (bound / game.unit for bound in game.bounds())
        broke = [x is None or not low <= x <= high for x in numbers]
        assert np.flatnonzero(outcome.record["winners"]).tolist() == winners
        assert outcome.broke.tolist() == broke
        expected = [
            float(Fraction(prize)) if i in winners else -2.0 * broke[i] for i in range(len(numbers))
        ]
        assert outcome.rewards.tolist() == expected
        for value, truth in zip((after.mean, after.target), (mean, target), strict=True):
            if truth is None:
                assert np.isnan(value)
            elif options.get("distance") != "float":
                assert float(value) == float(Fraction(truth))


@each_row(
    ("case", "distances"),
    [
        ("on target", [900, 600, 300, 0, 300, 600, 900, 1200, 1500, 1800]),
        ("tie on both sides", [30, 30, 90, 90, 90, 180, 180, 180, 270, 270]),
        ("all equal", [500] * 10),
        ("one high", [2800, *[200] * 9]),
        ("exact tie", [15, 15, 15, 15, 75]),
        ("ratio above 1", [720, 450, 180]),
    ],
)
def test_integer_distances(case, distances):
    options, numbers, *_ = CASES[case]
    game = game_of(numbers, **options)
    found = game.distances(np.array(numbers), len(numbers), sum(numbers))
    assert found.tolist() == distances


def test_float_distances_are_the_programs_doubles():
    game = BeautyContest(players=5, ratio="5/6", distance="float")
    found = game.distances(np.array([3, 4, 4, 4, 6]), 5, 21)
    assert found.tolist() == [abs(x - 3.5000000000000004) for x in (3, 4, 4, 4, 6)]


def test_batch():
    game = BeautyContest(players=3, prize_rule="split")
    state = game.reset(0, (2,))
    after, outcome = game.step(state, np.array([[8, 4], [10, 8], [0, 15]]))
    assert outcome.record["target"].tolist() == [4, 6]
    assert outcome.record["winners"].tolist() == [[1, 1], [0, 1], [1, 0]]
    assert outcome.rewards.tolist() == [[0.5, 0.5], [0, 0.5], [0.5, 0]]
    assert game.observe(after).shape == (3, 2, 10)


@given(
    numbers=st.lists(st.integers(0, 100), min_size=2, max_size=8),
    ratio=st.fractions(0, 3, max_denominator=9),
)
def test_winners_are_the_closest_in_exact_arithmetic(numbers, ratio):
    _, outcome = play(game_of(numbers, ratio=ratio), numbers)
    target = ratio * Fraction(sum(numbers), len(numbers))
    distances = [abs(x - target) for x in numbers]
    assert outcome.record["winners"].tolist() == [d == min(distances) for d in distances]


@given(st.lists(st.integers(-(2**62), 2**62), min_size=3, max_size=3))
def test_huge_numbers_do_not_overflow(numbers):
    game = BeautyContest(players=3, rule_breaker="include")
    _, outcome = game.step(game.reset(), np.array(numbers))
    clipped = [max(-game.limit, min(game.limit, x)) for x in numbers]
    target = Fraction(2, 3) * Fraction(sum(clipped), 3)
    legal = [0 <= x <= 100 for x in numbers]
    least = min((abs(x - target) for x, ok in zip(clipped, legal, strict=True) if ok), default=-1)
    won = [ok and abs(x - target) == least for x, ok in zip(clipped, legal, strict=True)]
    assert outcome.record["winners"].tolist() == won


def test_record_keeps_the_numbers_as_given():
    _, outcome = play(BeautyContest(players=3), [10, None, 1000])
    assert outcome.record["actions"].tolist() == [10, MISSING, 1000]
    assert outcome.record["legal"].tolist() == [True, False, False]
    assert outcome.record["counted"].tolist() == [True, False, False]


def test_void_run():
    game = BeautyContest(players=3, failed_reply="void_run", foul_fee=2)
    after, outcome = play(game, [10, 20, 1000])
    assert after.over
    assert after.void
    assert not outcome.rewards.any()


def test_presets():
    settings = {n: rulebook("beauty_contest", preset=n).core for n in BeautyContest.presets}
    assert settings["gamma_bench"] == BeautyContest()
    session = settings["econ_arena"]
    assert (session.players, session.domain, session.reveal_last) == (9, "real", 3)
    talk = settings["shall_we_talk"]
    assert (talk.players, talk.rounds, talk.prize_rule, talk.shown) == (24, 1, "amplified", ())
    assert settings["shall_we_talk_rounds"].prize == 100


def reports(game, numbers, version="v1"):
    state, _ = play(game, numbers)
    return [
        Prompts(game.name, version).report(View.of(game, state, i)) for i in range(len(numbers))
    ]


def test_golden_playthrough():
    game = BeautyContest(rounds=2)
    prompts, state = Prompts(game.name), game.reset()
    first = View.of(game, state, 1)
    assert prompts.rules(game, 1) == (
        "You are one of 10 players in a game of 2 rounds.\n"
        "In each round, all players choose a number at the same time: a whole number from 0 to "
        "100. You cannot see what the others choose.\n"
        "The target is 2/3 times the average of all 10 numbers, your own included. The number "
        "closest to the target wins.\n"
        "All players who are equally close win together.\n"
        "Each winner gets a prize of 1.\n"
        "A reply that is not an accepted number does not count and cannot win."
    )
    assert prompts.report(first) == ""
    assert prompts.request(first) == (
        "Round 1 of 2. Which number do you choose? Your goal is the highest total of prizes "
        "over all rounds. Be closest to 2/3 times the average.\n"
        'Answer only with JSON of this form: {"chosen_number": <a whole number from 0 to 100>}'
    )
    state, _ = game.step(state, np.array(CASES["plain"][1]))
    assert prompts.report(View.of(game, state, 1)) == (
        "Result of round 1:\nThe average was 31.\nThe target was 20.67.\nWinning number: 22.\n"
        "You chose 22 and won."
    )
    state, outcome = game.step(state, np.array(TWO))
    assert prompts.report(View.of(game, state, 9)) == (
        "Result of round 2:\nThe average was 13.50.\nThe target was 9.\n"
        "Winning number: 8 and 10.\nYou chose 18 and did not win."
    )
    assert state.over
    assert outcome.finished.all()
    assert prompts.request(View.of(game, state, 9)) == ""
    assert game.picture(state)[0] == "Beauty contest: round 2 of 2, mean 13.50, target 9.00"


def test_report_of_rule_breaks():
    broken, legal = reports(BeautyContest(players=2), [None, 7])
    assert broken.endswith("Your reply did not follow the rules, so you did not win.")
    assert legal.endswith("You chose 7 and won.")
    nobody, _ = reports(BeautyContest(players=2), [None, 101])
    assert nobody == (
        "Result of round 1:\nThere was no average.\nThere was no target.\nNobody won.\n"
        "Your reply did not follow the rules, so you did not win."
    )


def test_all_choices_come_with_names():
    game = BeautyContest(players=3, domain="real", reveal=["all_choices"])
    assert (
        Prompts(game.name)
        .rules(game, 2)
        .startswith("You are one of 3 players in a game of 20 rounds. Your name is player_2.")
    )
    assert (
        reports(game, [0.5, None, 20])
        == [
            "Result of round 1:\n"
            "The choices were player_0: 0.5, player_1: not accepted, player_2: 20."
        ]
        * 3
    )


@each_row("hidden", [{"reveal": ()}, {"reveal_last": 0}])
def test_nothing_is_shown(hidden):
    game = BeautyContest(players=3, **hidden)
    assert reports(game, [1, 2, 3]) == [""] * 3
    state, _ = play(game, [1, 2, 3])
    assert game.observe(state).shape == (3, 1)
    assert game.told(state, 0) == {"round": 2, "last": None}


def test_the_others_numbers_stay_secret():
    """Two rounds with equal mean and winner, but other numbers, look the same to player 0."""
    game = BeautyContest(players=4)
    one, _ = play(game, [20, 30, 40, 50])
    two, _ = play(game, [20, 40, 30, 50])
    assert game.told(one, 0) == game.told(two, 0)
    assert np.array_equal(game.observe(one)[0], game.observe(two)[0])
