"""The pirate game: worked examples, quotas, illegal plans, what is told, a scripted game."""

import numpy as np
import pytest
from playing import each_row

import llm_games
from llm_games.errors import IllegalAction
from llm_games.questions import MISSING, BadReply
from llm_games.view import View
from llm_games.words import Prompts, versions

OPTIMAL = "0 1 0 1 0 1 0 1 0"
W1 = [
    ("100 0 0 0 0 0 0 0 0 0", "ARRRRRRRRR", 1),
    ("99 0 1 0 0 0 0 0 0", "ARAARRRRA", 4),
    ("50 1 1 1 1 1 1 44", "AAAAAAAA", 8),
]
W10 = [("100 0 0 0", "ARRR", 1), ("100 0 0", "ARR", 1), ("100 0", "AR", 1)]


def pirates(**more):
    return llm_games.rules("pirate_game", **more)


def plan_of(rules, first, shares):
    return np.array([0] * first + [int(share) for share in shares.split()])


def play(rules, rounds, state=None):
    """Play rounds of ``(plan, votes, …)``; return the last state and the votes' outcomes."""
    state, outcomes = rules.reset(0) if state is None else state, []
    for shares, votes, *_ in rounds:
        first = int(state.proposer)
        assert np.flatnonzero(rules.asked(state)).tolist() == [first]
        state, outcome = rules.step(state, plan_of(rules, first, shares))
        assert not outcome.rewards.any()
        assert np.flatnonzero(rules.asked(state)).tolist() == [*range(first + 1, rules.players)]
        unasked = [MISSING] * (first + 1)
        state, outcome = rules.step(state, np.array(unasked + [vote == "A" for vote in votes[1:]]))
        outcomes.append(outcome)
    return state, outcomes


@each_row(
    ("players", "gold", "rounds"),
    [
        pytest.param(10, 100, W1, id="W1"),
        pytest.param(10, 100, [(f"96 {OPTIMAL}", "ARARARARAR", 5)], id="W2"),
        pytest.param(10, 100, [("92 1 1 1 1 1 1 1 1 0", "ARARARARAR", 5)], id="W3"),
        pytest.param(10, 100, [("10 " * 10, "AAAAAAAAAA", 10)], id="W4"),
        pytest.param(10, 4, [(f"0 {OPTIMAL}", "ARARARARAR", 5)], id="W5"),
        pytest.param(10, 5, [(f"1 {OPTIMAL}", "ARARARARAR", 5)], id="W6"),
        pytest.param(10, 400, [(f"396 {OPTIMAL}", "ARARARARAR", 5)], id="W7"),
        pytest.param(2, 100, [("100 0", "AR", 1)], id="W8"),
        pytest.param(3, 100, [("99 0 1", "ARA", 2)], id="W9"),
        pytest.param(4, 100, W10, id="W10"),
    ],
)
def test_worked_examples(players, gold, rounds):
    rules = pirates(players=players, gold=gold)
    state, outcomes = play(rules, rounds)
    for j, (outcome, (shares, votes, accepts)) in enumerate(zip(outcomes, rounds, strict=True)):
        last = j == len(rounds) - 1
        assert outcome.record["plan"].tolist() == plan_of(rules, j, shares).tolist()
        assert outcome.record["accepts"] == accepts
        assert outcome.record["passed"] == last
        assert outcome.record["votes"].tolist() == [0] * j + [int(vote == "A") for vote in votes]
        assert np.flatnonzero(outcome.record["alive"]).tolist() == [*range(j, players)]
        assert outcome.finished.tolist() == [last or seat <= j for seat in range(players)]
        assert outcome.rewards.any() == last
    assert state.over
    final = plan_of(rules, len(rounds) - 1, rounds[-1][0])
    assert outcomes[-1].rewards.tolist() == final.tolist() == rules.coins(state).tolist()


def test_keeping_everything_lasts_nine_rounds():  # W10 with ten pirates
    rounds = [(f"100 {'0 ' * (9 - j)}", "A" + "R" * (9 - j)) for j in range(9)]
    state, outcomes = play(pirates(), rounds)
    assert state.over
    assert outcomes[-1].rewards.tolist() == [0] * 8 + [100, 0]
    assert pirates().length() == 2 * len(rounds)


def test_a_majority_is_more_than_half():  # W11
    state, _ = play(pirates(quota="majority"), [(f"96 {OPTIMAL}", "ARARARARAR")])
    assert not state.over
    assert state.proposer == 1
    state, outcomes = play(pirates(quota="majority", players=2), [("100 0", "AR")])
    assert state.over
    assert not state.passed
    assert outcomes[0].finished.tolist() == [True, True]
    assert outcomes[0].rewards.tolist() == [0, 100]  # alone, nobody is asked
    state, outcomes = play(pirates(quota="majority", players=3), [("99 0 1", "ARA")])
    assert outcomes[0].rewards.tolist() == [99, 0, 1]


@each_row(
    ("players", "rounds", "more", "rewards"),
    [
        (3, [("99 0 1", "ARA")], {}, [200, 101, 102]),
        (4, W10, {}, [0, 0, (4 * 201 + 2) / 4, (4 * 101 + 2) / 4]),
        (3, [("99 0 1", "ARR"), ("40 60", "AR")], {}, [0, 141 + 1 / 3, 161 + 1 / 3]),
        (2, [("100 0", "AR")], {"quota": "majority"}, [0, 201.5]),
    ],
)
def test_lexicographic_payoffs(players, rounds, more, rewards):
    _, outcomes = play(pirates(players=players, payoff="lexicographic", **more), rounds)
    assert outcomes[-1].rewards.tolist() == pytest.approx(rewards, abs=1e-12)
    assert not any(outcome.rewards.any() for outcome in outcomes[:-1])


@each_row(
    ("plan", "check", "broken"),
    [
        ([60, 50, -10], "strict", True),  # W12
        ([60, 50, -10], "sum_and_length", False),
        ([50, 30, 30], "strict", True),
        ([50, 30, 30], "sum_and_length", True),
        ([100, MISSING, 0], "sum_and_length", True),
        ([2**62, -(2**62), 100], "sum_and_length", True),
        ([0, 0, 100], "strict", False),
        ([MISSING] * 3, "strict", True),
    ],
)
def test_illegal_plans(plan, check, broken):
    rules = pirates(players=3, proposal_check=check)
    state, outcome = rules.step(rules.reset(0), np.array(plan))
    assert outcome.broke.tolist() == [broken, False, False]
    assert state.plan.tolist() == ([34, 33, 33] if broken else plan)
    assert outcome.record["plan"].tolist() == state.plan.tolist()


def test_a_plan_gives_nothing_to_those_who_are_out():
    rules = pirates(players=3)
    state, _ = play(rules, [("100 0 0", "ARR")])
    after, outcome = rules.step(state, np.array([10, 45, 45]))
    assert outcome.broke.tolist() == [False, True, False]
    assert after.plan.tolist() == [0, 50, 50]


@each_row(
    ("players", "gold", "plan"),
    [(10, 100, [10] * 10), (10, 105, [15] + [10] * 9), (7, 4, [4, 0, 0, 0, 0, 0, 0])],
)
def test_the_declared_plan(players, gold, plan):
    rules = pirates(players=players, gold=gold)
    assert rules.fallback(rules.reset(0)).tolist() == plan


@each_row("vote", [2, -1, MISSING])
def test_a_broken_vote_rejects(vote):
    rules = pirates(players=4)
    state, _ = rules.step(rules.reset(0), np.array([97, 1, 1, 1]))
    after, outcome = rules.step(state, np.array([MISSING, vote, 0, 0]))
    assert outcome.broke.tolist() == [False, True, False, False]
    assert outcome.record["votes"].tolist() == [1, 0, 0, 0]
    assert after.proposer == 1


def test_moves_of_single_seats_make_up_the_actions():
    rules = pirates(players=3)
    state = rules.reset(0)
    assert rules.assemble(state, {0: (99, 0, 1)}).tolist() == [99, 0, 1]
    assert rules.assemble(state, {0: MISSING}).tolist() == [MISSING] * 3
    assert rules.assemble(state, {}).tolist() == [MISSING] * 3
    state, _ = rules.step(state, np.array([99, 0, 1]))
    assert rules.assemble(state, {2: 1, 1: MISSING}).tolist() == [MISSING, MISSING, 1]


def test_the_space_holds_a_plan_and_a_vote():
    rules = pirates(players=3, gold=5)
    assert rules.space(0).nvec.tolist() == [6, 6, 6, 2]
    assert rules.space(0) is not rules.space(0)
    state = rules.reset(0)
    assert rules.decode(state, 0, np.array([3, 1, 1, 0])) == (3, 1, 1)
    assert rules.decode(state, 0, None) == MISSING
    state, _ = play(rules, [("5 0 0", "ARR")])
    assert rules.decode(state, 1, [4, 3, 2, 1]) == (0, 3, 2)
    state, _ = rules.step(state, np.array([0, 3, 2]))
    assert rules.decode(state, 2, [4, 3, 2, 1]) == 1


@each_row(
    ("action", "message"),
    [
        ([1, 2, 2], "is not 4 integers"),
        ([1.0, 2.0, 2.0, 1.0], "is not 4 integers"),
        (1, "is not 4 integers"),
        ([6, 0, 0, 0], "a share from 0 to 5 for each"),
        ([5, 0, 0, 2], "a vote, 0 or 1"),
    ],
)
def test_actions_outside_the_space(action, message):
    rules = pirates(players=3, gold=5)
    with pytest.raises(IllegalAction, match=message):
        rules.decode(rules.reset(0), 0, action)


@each_row(
    ("check", "value", "expected"),
    [
        ("strict", {"2": 99, "3": 1}, (0, 99, 1)),
        ("strict", {"3rd": "1", "2-th": 99}, (0, 99, 1)),
        ("strict", {"2": 110, "3": -10}, "range"),
        ("strict", {"2": 99, "3": 2}, "range"),
        ("strict", {"2": 100}, "format"),
        ("strict", {"1": 0, "2": 99, "3": 1}, "format"),
        ("strict", {"2": 99, "2nd": 0, "3": 1}, "format"),
        ("strict", {"2": "most", "3": 1}, "format"),
        ("strict", "all for me", "format"),
        ("sum_and_length", {"me": 110, "you": -10}, (0, 110, -10)),
        ("sum_and_length", {"3": 99, "2": 1}, (0, 99, 1)),
        ("sum_and_length", {"me": 100}, "format"),
        ("sum_and_length", {"me": 99, "you": 2}, "range"),
    ],
)
def test_plans_in_replies(check, value, expected):
    rules = pirates(players=3, proposal_check=check)
    state, _ = play(rules, [("100 0 0", "ARR")])
    question = rules.question(state, 1)
    if isinstance(expected, tuple):
        assert question.read(value) == expected
        assert not rules.breaks(state, rules.assemble(state, {1: expected})).any()
        return
    with pytest.raises(BadReply) as caught:
        question.read(value)
    assert caught.value.kind == expected


@each_row(
    ("parse", "value", "expected"),
    [
        ("strict", " Accept ", 1),
        ("strict", "REJECT", 0),
        ("strict", "I accept", None),
        ("strict", 1, None),
        ("contains", "I do not accept", 1),
        ("contains", "Rejected!", 0),
        ("contains", "ACCEPT", None),
        ("contains", "no", None),
    ],
)
def test_votes_in_replies(parse, value, expected):
    rules = pirates(players=3, vote_parse=parse)
    state, _ = rules.step(rules.reset(0), np.array([98, 1, 1]))
    question = rules.question(state, 2)
    if expected is not None:
        assert question.read(value) == expected
        return
    with pytest.raises(BadReply) as caught:
        question.read(value)
    assert caught.value.kind == "format"


def test_single_votes_stay_secret():
    rules = pirates(players=4)
    one, _ = play(rules, [("97 1 1 1", "ARRR")])
    states = [play(rules, [("97 1 1 1", votes)])[0] for votes in ("ARRA", "ARAR")]
    for seat in (0, 1):  # they voted alike in both, and the number of accepts is the same
        assert rules.told(states[0], seat) == rules.told(states[1], seat)
        assert np.array_equal(rules.observe(states[0])[seat], rules.observe(states[1])[seat])
    assert rules.told(states[0], 2) != rules.told(states[1], 2)
    assert rules.told(one, 1)["last"]["accepts"] == 1


def test_the_one_going_out_hears_of_it_and_then_nothing_more():
    rules = pirates(players=5)
    state, _ = play(rules, [("100 0 0 0 0", "ARRRR")])
    report = Prompts("pirate_game").report(View.of(rules, state, 0))
    assert report.endswith("Your vote: accept. The plan failed. Pirate 1 is out.")
    assert rules.observe(state)[0].any()
    state, _ = rules.step(state, np.array([0, 100, 0, 0, 0]))
    for _ in range(2):
        assert rules.told(state, 0)["last"] is None
        assert not rules.observe(state)[0].any()
        assert Prompts("pirate_game").report(View.of(rules, state, 0)) == ""
        state, _ = rules.step(state, np.array([MISSING, MISSING, 0, 0, 0]))


def test_columns():
    rules = pirates(players=3)
    state, _ = play(rules, [("100 0 0", "ARA"), ("90 10", "AA")][:1])
    assert state.passed  # two of three
    view = View.of(rules, state, 2)
    known = {c.name: float(n) for c, n in zip(rules.columns(), view.numbers, strict=True)}
    assert known == {
        "rank": 3,
        "round": 1,
        "phase": 0,
        "proposer": 1,
        "share": 0,
        "accepts": 2,
        "voters": 3,
        "passed": 1,
        "vote": 1,
        "coins": 0,
        "plan_1": 0,
        "plan_2": 0,
        "plan_3": 0,
        "last_plan_1": 100,
        "last_plan_2": 0,
        "last_plan_3": 0,
    }


@each_row("version", versions("pirate_game"))
def test_wordings(version):
    prompts = Prompts("pirate_game", version)
    rules = pirates()
    assert "half" in prompts.rules(rules, 3)
    state, _ = play(rules, W1[:2])
    proposer = prompts.request(View.of(rules, state, 2))
    assert "3 to 10" in proposer
    assert "100" in proposer
    state, _ = rules.step(state, plan_of(rules, 2, W1[2][0]))
    voter = View.of(rules, state, 9)
    assert "3: 50, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1, 9: 1, 10: 44" in prompts.request(voter)
    assert "2: 99, 3: 0, 4: 1, 5: 0" in prompts.report(voter)
    assert '{"decision": <"accept" or "reject">}' in prompts.request(voter)


def test_a_scripted_game():
    rules = pirates(players=4, quota="majority")
    prompts = Prompts("pirate_game")
    state, _ = play(rules, [("100 0 0 0", "ARRR")])
    assert prompts.report(View.of(rules, state, 1)) == (
        "Round 1: pirate 1 proposed 1: 100, 2: 0, 3: 0, 4: 0. 1 of 4 votes accepted. "
        "Your vote: reject. The plan failed. Pirate 1 is out."
    )
    assert prompts.request(View.of(rules, state, 1)) == (
        "Round 2. You are pirate 2 and propose. How many coins does each pirate from 2 to 4 get? "
        "The shares must add up to 100. Your goals, the most important first: coins, survival, "
        "others overboard.\nAnswer only with JSON of this form: "
        '{"proposal": {"2": <coins>, "3": <coins>, "4": <coins>}}'
    )
    state, _ = rules.step(state, np.array([0, 98, 1, 1]))
    assert prompts.request(View.of(rules, state, 3)) == (
        "Round 2. Pirate 2 proposes 2: 98, 3: 1, 4: 1. You are pirate 4 and get 1. Do you accept "
        "or reject? Your goals, the most important first: coins, survival, others overboard.\n"
        'Answer only with JSON of this form: {"decision": <"accept" or "reject">}'
    )
    assert rules.picture(state) == (
        "Pirate game: votes held 1, the last plan failed with 1 to accept",
        ["seat", "state", "share", "vote", "coins"],
        [
            ["player_0 (rank 1)", "out", "", "", "0"],
            ["player_1 (rank 2)", "alive", "98", "", "0"],
            ["player_2 (rank 3)", "alive", "1", "", "0"],
            ["player_3 (rank 4)", "alive", "1", "", "0"],
        ],
    )
    passed, _ = rules.step(state, np.array([MISSING, MISSING, 1, 0]))
    assert prompts.report(View.of(rules, passed, 3)) == (
        "Round 2: pirate 2 proposed 2: 98, 3: 1, 4: 1. 2 of 3 votes accepted. Your vote: reject. "
        "The plan passed. You get 1 coin."
    )
    state, _ = rules.step(state, np.array([MISSING, MISSING, 0, 0]))
    state, outcomes = play(rules, [("0 100", "AR")], state)
    assert outcomes[0].rewards.tolist() == [0, 0, 0, 100]
    assert prompts.report(View.of(rules, state, 3)) == (
        "Round 3: pirate 3 proposed 3: 0, 4: 100. 1 of 2 votes accepted. Your vote: reject. "
        "The plan failed. Pirate 3 is out. You are alone and keep 100 coins."
    )
    assert prompts.request(View.of(rules, state, 3)) == ""
