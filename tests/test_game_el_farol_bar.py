"""The El Farol bar: the source's worked cases, every option, and a scripted game."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row

from llm_games.games.el_farol_bar.rules import ElFarolBar
from llm_games.questions import MISSING
from llm_games.view import View
from llm_games.words import Prompts


def play(game, goers):
    actions = (np.arange(game.players) < goers).astype(np.int64)
    return game.step(game.reset(0), actions)


# Parameters, goers, good?, what goers and stayers get, sum.
CASES = {
    "B1 boundary": ({}, 6, True, 10, 5, 80),
    "B2": ({}, 7, False, 0, 5, 15),
    "B3 nobody": ({}, 0, True, None, 5, 50),
    "B4 everybody": ({"ratio": 1}, 10, True, 10, None, 100),
    "B5": ({"ratio": 0}, 1, False, 0, 5, 45),
    "B6 no doubles": ({"ratio": "29/100", "players": 100}, 29, True, 10, 5, 645),
    "B7": ({"ratio": "1/5"}, 2, True, 10, 5, 60),
    "B7 computed in doubles": (
        {"ratio": Fraction(1 - 0.8), "capacity_test": "float"},
        2,
        False,
        0,
        5,
        40,
    ),
    "B6 in doubles, typed": (
        {"ratio": "0.29", "players": 100, "capacity_test": "float"},
        29,
        True,
        10,
        5,
        645,
    ),
    "other utilities": ({"min": -1.5, "home": "0.5", "max": 2}, 7, False, -1.5, 0.5, -9),
}


@each_row(("parameters", "goers", "good", "going", "staying", "total"), CASES.values(), ids=CASES)
def test_worked_cases(parameters, goers, good, going, staying, total):
    game = ElFarolBar(**parameters)
    _, outcome = play(game, goers)
    assert outcome.record["good"] == good
    assert outcome.record["goers"] == goers
    assert outcome.rewards.tolist() == [going] * goers + [staying] * (game.players - goers)
    assert outcome.rewards.sum() == total


@given(st.integers(2, 40), st.fractions(0, 1, max_denominator=30), st.data())
def test_good_up_to_the_capacity(players, ratio, data):
    game = ElFarolBar(players=players, ratio=ratio)
    goers = data.draw(st.integers(0, players))
    capacity = ratio.numerator * players // ratio.denominator
    assert game.terms()["capacity"] == capacity
    assert game.good(goers) == (goers <= capacity)


def test_missing_and_illegal_decisions_stay():
    game = ElFarolBar(players=3)
    _, outcome = game.step(game.reset(0), np.array([MISSING, 2, 1]))
    assert outcome.broke.tolist() == [True, True, False]
    assert outcome.record["actions"].tolist() == [0, 0, 1]
    void = ElFarolBar(players=3, failed_reply="void_run")
    state, _ = void.step(void.reset(0), np.array([1, 2, 1]))
    assert state.void
    assert state.over


# Settings, and the report of round 1 to a goer and a stayer when 7 of 10 went, and 6.
REPORTS = {
    "implicit": (
        {},
        [
            "Result of round 1: you went and got 0 points.\n"
            "7 went and 3 stayed: more than 60% of all players went.\n"
            "Going was less fun than staying.",
            "Result of round 1: you stayed and got 5 points.",
            "Result of round 1: you went and got 10 points.\n"
            "6 went and 4 stayed: at most 60% of all players went.\n"
            "Going was more fun than staying.",
            "Result of round 1: you stayed and got 5 points.",
        ],
    ),
    "explicit": (
        {"mode": "explicit", "implicit_report": "no_count"},
        [
            "Result of round 1: you went and got 0 points.\n"
            "7 went and 3 stayed: more than 60% of all players went.\n"
            "Going was less fun than staying.",
            "Result of round 1: you stayed and got 5 points.\n"
            "7 went and 3 stayed: more than 60% of all players went.\n"
            "Going was less fun than staying.",
            "Result of round 1: you went and got 10 points.\n"
            "6 went and 4 stayed: at most 60% of all players went.\n"
            "Going was more fun than staying.",
            "Result of round 1: you stayed and got 5 points.\n"
            "6 went and 4 stayed: at most 60% of all players went.\n"
            "Going was more fun than staying.",
        ],
    ),
    "no count": (
        {"implicit_report": "no_count"},
        [
            "Result of round 1: you went and got 0 points.\nGoing was less fun than staying.",
            "Result of round 1: you stayed and got 5 points.\nGoing was less fun than staying.",
            "Result of round 1: you went and got 10 points.\nGoing was more fun than staying.",
            "Result of round 1: you stayed and got 5 points.\nGoing was more fun than staying.",
        ],
    ),
}


@each_row(("parameters", "texts"), REPORTS.values(), ids=REPORTS)
def test_who_learns_what(parameters, texts):
    game, said = ElFarolBar(**parameters), []
    prompts = Prompts(game.name)
    for goers in (7, 6):
        state, _ = play(game, goers)
        said += [prompts.report(View.of(game, state, seat)) for seat in (0, 9)]
    assert said == texts


def test_implicit_stayers_learn_nothing_from_numbers_either():
    game = ElFarolBar()
    views = [View.of(game, play(game, goers)[0], 9) for goers in (0, 6, 7, 9)]
    assert len({view.numbers.tobytes() for view in views}) == 1
    assert all(view.told == views[0].told for view in views)
    assert views[0].number("count_known") == 0
    assert views[0].number("fun_known") == 0
    blind = ElFarolBar(implicit_report="no_count")
    views = [View.of(blind, play(blind, goers)[0], 0) for goers in (7, 9)]
    assert np.array_equal(views[0].numbers, views[1].numbers)
    assert views[0].number("fun") == -1


@each_row(
    ("parameters", "goers", "fun"),
    [({"home": 10}, 6, 0), ({"home": 0}, 7, 0), ({"home": 10}, 7, -1), ({"home": 0}, 6, 1)],
)
def test_as_much_fun(parameters, goers, fun):
    game = ElFarolBar(**parameters)
    assert game.told(play(game, goers)[0], 0)["last"]["fun"] == fun


def test_golden_playthrough():
    game = ElFarolBar(players=5, rounds=2, ratio="2/5")
    prompts, state = Prompts(game.name), game.reset(0)
    assert prompts.rules(game, 0) == (
        "You are one of 5 players in a game of 2 rounds.\n"
        "In each round, all players decide at the same time whether to go to a bar or to stay at "
        "home. You cannot see what the others decide.\n"
        "The bar is good if at most 40% of all players go (2 of 5, you included). If more go, it "
        "is crowded.\n"
        "Going gives you 10 points if the bar is good and 0 if it is crowded. Staying always gives "
        "you 5.\n"
        "After each round, only those who went learn how many went and whether it was more or less "
        "fun than staying."
    )
    assert prompts.request(View.of(game, state, 3)) == (
        "Round 1 of 2. Do you go or stay? Your goal is the highest total of points over all "
        "rounds. Go if you expect at most 40% of all players to go.\n"
        'Answer only with JSON of this form: {"decision": <"go" or "stay">}'
    )
    state, _ = game.step(state, np.array([1, 0, 0, 1, 0]))
    assert prompts.report(View.of(game, state, 3)) == (
        "Result of round 1: you went and got 10 points.\n"
        "2 went and 3 stayed: at most 40% of all players went.\n"
        "Going was more fun than staying."
    )
    state, outcome = game.step(state, np.array([1, 1, 0, 1, 1]))
    assert outcome.finished.all()
    assert prompts.report(View.of(game, state, 2)) == (
        "Result of round 2: you stayed and got 5 points."
    )
    caption, headers, rows = game.picture(state)
    assert caption == "El Farol bar: round 2 of 2, 4 of 5 went, crowded"
    assert dict(zip(headers, rows[1], strict=True)) == {
        "seat": "player_1",
        "decision": "go",
        "utility": "0",
    }


@each_row("version", ["v1", "v2", "v3", "v4", "v5"])
@each_row(
    ("parameters", "advised"),
    [
        ({}, True),
        ({"home": 1}, False),  # going pays from a chance of 1 in 10 on
        ({"home": 9}, False),
        ({"min": -4, "home": 3}, True),
        ({"home": 10}, False),
        ({"min": 5, "home": 5, "max": 5}, False),
        ({"hint": False}, False),
    ],
)
def test_going_is_advised_only_where_it_pays_from_an_even_chance_on(parameters, advised, version):
    game, other = ElFarolBar(**parameters), ElFarolBar(hint=False)
    request, plain = (
        Prompts(game.name, version).request(View.of(g, g.reset(0), 0)) for g in (game, other)
    )
    assert (request != plain) is advised
