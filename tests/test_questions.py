"""Answers of every kind: read strictly, written canonically, and recognised while they grow."""

import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row, sampled

from llm_games.game_rooms import ROOMS
from llm_games.questions import BadReply, Bid, Choice, Integer, Real, SealedBid, Shares, Target
from llm_games.registry import rulebook
from llm_games.replies import read_reply

BID = Integer("bid", 0, 20)
NAMES = {"player_1": 1, "player_3": 3, "player_10": 10}
DEAD = {"player_0": 0, "player_2": 2}
AIM = Target("target", NAMES, own={"player_5": 5}, others=DEAD, nowhere=11)
SPLIT = Shares("proposal", (2, 3, 4), 10, 4)
QUESTIONS = [
    BID,
    Integer("x", -5, 123),
    Integer("x", 100, 200),
    Integer("x", -30, -7),
    Real("number", 0, 100_000, 3),
    Real("number", -150, 275, 2),
    SealedBid("bid", 0, 170, 0),
    SealedBid("bid", 0, 1250, 2),
    Choice("decision", {"go": 1, "stay": 0}),
    AIM,
    SPLIT,
    Shares("proposal", (1,), 7, 1),
]


@each_row(
    ("question", "value", "action"),
    [
        (BID, 7, 7),
        (BID, "7", 7),
        (BID, " 07 ", 7),
        (BID, Decimal("7.0"), 7),
        (BID, "7.0", 7),
        (BID, Decimal("1e1"), 10),
        (Integer("x", None, None), -10, -10),
        (Integer("x", 0, 20, truncate=True), Decimal("3.9"), 3),
        (Integer("x", -20, 20, truncate=True), Decimal("-3.9"), -3),
        (Integer("x", 0, 20, truncate=True), True, 1),
        (Real("n", 0, 1000, 1), Decimal("33.25"), 332),
        (Real("n", 0, 1000, 1), Decimal("33.35"), 334),
        (Real("n", 0, 1000, 1), "0.1", 1),
        (Real("n", 0, 1000, 1), 0, 0),
        (Real("n", 0, 1000, 1), 100, 1000),
        (Choice("d", {"go": 1, "stay": 0}), " GO ", 1),
        (Choice("d", {"cheap": 0, "costly": 1}, other=1), "cheap_dish", 1),
        (Choice("d", {"cheap": 0, "costly": 1}, other=1), "CHEAP", 0),
        (Choice("d", {"cheap": 0, "costly": 1}, other=1), " cheap", 1),
        (Choice("d", {"accept": 1, "reject": 0}, contains=True), "I do not accept", 1),
        (Choice("d", {"accept": 1, "reject": 0}, contains=True), "Rejected", 0),
        (AIM, "player_3", 3),
        (AIM, "3", 3),
        (AIM, 3, 3),
        (AIM, None, -1),
        (AIM, "null", -1),
        (SPLIT, {"2": 7, "3-th": 1, "4th": "2"}, (0, 7, 1, 2)),
        (SPLIT, {"4": 2, "3rd": 1, "2nd": 7}, (0, 7, 1, 2)),
    ],
)
def test_legal_values(question, value, action):
    assert question.read(value) == action


@each_row(
    ("question", "value", "kind"),
    [
        *(
            (BID, v, "format")
            for v in (None, True, "seven", Decimal("33.5"), [7], {}, "", "7 or 8")
        ),
        (BID, Decimal("NaN"), "format"),
        (BID, Decimal("Infinity"), "format"),
        (BID, Decimal("1e999999999"), "range"),
        (BID, Decimal("-1e40"), "range"),
        (BID, "9" * 40, "range"),
        (BID, "9" * 5000, "format"),
        (BID, 21, "range"),
        (BID, -1, "range"),
        (BID, 10**25, "range"),
        (Real("n", 0, 1000, 1), Decimal("100.01"), "range"),
        (Real("n", 0, 1000, 1), "1e2", "format"),
        (Choice("d", {"go": 1, "stay": 0}), "going", "format"),
        (Choice("d", {"go": 1, "stay": 0}), 1, "format"),
        (AIM, "player_2", "range"),
        (AIM, "player_5", "range"),
        (AIM, "player_99", "range"),
        (AIM, "Bob", "format"),
        (AIM, True, "format"),
        (SPLIT, {"2": 7, "3": 1}, "format"),
        (SPLIT, {"2": 7, "3": 1, "5": 2}, "format"),
        (SPLIT, {"2": 7, "3": 1, "3rd": 1, "4": 1}, "format"),
        (SPLIT, {"2": 7, "3": 1, "4": Decimal("2.5")}, "format"),
        (SPLIT, [7, 1, 2], "format"),
        (SPLIT, {"2": 7, "3": 1, "4": 3}, "range"),
        (SPLIT, {"2": 12, "3": 0, "4": -2}, "range"),
    ],
)
def test_bad_values_say_what_is_wrong(question, value, kind):
    with pytest.raises(BadReply) as caught:
        question.read(value)
    assert caught.value.kind == kind
    assert str(caught.value)


@each_row(
    ("game", "value", "meant"),
    [
        ("public_goods", "7 tokens", 7),
        ("public_goods", "1 Token", 1),
        ("public_goods", "$7", None),
        ("public_goods", "7 apples", None),
        ("divide_dollar", "7 coins", 7),
        ("divide_dollar", "$7", 7),
        ("sealed_bid_auction", "$7", 7),
        ("sealed_bid_auction", "7 dollars", 7),
        ("sealed_bid_auction", "7%", None),
        ("sealed_bid_auction", "about 7", None),
        ("sealed_bid_auction", "7-8", None),
        ("sealed_bid_auction", "seven", None),
        ("water_allocation", "$1,0", None),
        ("el_farol_bar", "yes", None),
    ],
)
def test_a_number_may_have_the_unit_of_its_game(game, value, meant):
    question = next(_asked(game, {}))
    reply = read_reply(json.dumps({question.key: value}), question)
    assert reply.action == meant if meant is not None else reply.outcome == "unparsable"


def test_a_number_out_of_range_stays_readable():
    with pytest.raises(BadReply) as caught:
        BID.read("1000")
    assert caught.value.action == 1000


@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
@given(seed=st.integers(0, 2**32 - 1))
def test_canonical_replies_are_read_back_and_grow_letter_by_letter(question, seed):
    action = sampled(question, np.random.default_rng(seed))
    reply = question.reply(action)
    assert question.read(json.loads(reply, parse_float=Decimal)[question.key]) == action
    assert all(question.allows(reply[:n]) for n in range(len(reply) + 1))
    assert not question.allows(reply + "}")


@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
@given(seed=st.integers(0, 2**32 - 1))
def test_growing_letter_by_letter_never_ends_in_an_illegal_reply(question, seed):
    """Random text that is allowed at each letter can always be finished, and is legal then."""
    rng = np.random.default_rng(seed)
    text = f'{{"{question.key}": '
    for _ in range(200):
        letters = [c for c in '0123456789.-"{}:, nulgostayper_dic' if question.allows(text + c)]
        if not letters:
            break
        closing = [c for c in letters if c == "}"]
        text += closing[0] if closing and rng.random() < 0.5 else rng.choice(letters)
    question.read(json.loads(text, parse_float=Decimal)[question.key])


@each_row("question", QUESTIONS, ids=repr)
def test_schemas(question):
    schema = question.schema(reasoning=True)
    assert list(schema["properties"]) == ["explanation", question.key]
    assert schema["required"] == ["explanation", question.key]
    assert question.form(reasoning=True).startswith('{"explanation": ')
    assert f'"{question.key}": ' in question.form()


def _asked(name, parameters):
    rng, game = np.random.default_rng(1), rulebook(name, **parameters)
    state = game.reset(1)
    for _ in range(12):
        seats = np.flatnonzero(game.asked(state)).tolist()
        questions = {seat: game.question(state, seat) for seat in seats}
        yield from questions.values()
        moves = {seat: sampled(question, rng) for seat, question in questions.items()}
        state, _ = game.step(state, game.assemble(state, moves))


FINE = [
    ("beauty_contest", {"domain": "real", "decimals": 9}),
    ("beauty_contest", {"domain": "real", "bounds_check": "none"}),
    ("sealed_bid_auction", {"preset": "econ_arena_L", "decimals": 6}),
    ("battle_royale", {"reply_keys": "action_target"}),
    ("english_auction", {"terse_rules": True}),
    ("water_allocation", {"money_decimals": 4}),
]


@each_row(("name", "parameters"), [*((name, {}) for name in ROOMS), *FINE])
def test_every_beginning_of_a_legal_reply_of_every_game_is_allowed(name, parameters):
    rng = np.random.default_rng(2)
    for question in _asked(name, parameters):
        for _ in range(5):
            action = sampled(question, rng)
            reply = question.reply(action)
            whole = json.loads(reply, parse_float=Decimal)
            assert question.holds(whole)
            assert question.answer(whole) == action
            assert all(question.allows(reply[:end]) for end in range(len(reply) + 1))
            assert not question.allows(reply + " ")
            said = '{"explanation": "If so: {2, 3}.", ' + reply[1:]
            for text in (reply, said, f"So be it.\n```json\n{reply}\n```"):
                read = read_reply(text, question)
                assert (read.outcome, read.action, read.leniencies) == ("valid", action, ())


@each_row(
    ("question", "text"),
    [
        (Real("x", 0, 10**7, 6), '{"x": 10.000001'),
        (Real("x", 0, 10**7, 6), '{"x": 0.1234567'),
        (SPLIT, '{"proposal": {"2": 7, "3": 4'),
        (SPLIT, '{"proposal": {"2": 7, "3": 1, "4": 1'),
        (SPLIT, '{"proposal": {"2": 7, "3": 1, "4": 2,'),
        (Bid("bid", 10, 30, limits=False), '{"bid": 31'),
        (Bid("bid", 10, 9), '{"bid": 1'),
        (Target("target", {}, {}, {}, 9, with_action=True), '{"action": "s'),
        (Target("target", NAMES, {}, {}, 9, with_action=True), '{"action": "miss", "target": "'),
        (Target("target", NAMES, {}, {}, 9, with_action=True), '{"action": "shoot", "target": n'),
    ],
)
def test_what_cannot_become_legal_is_refused(question, text):
    assert question.allows(text[:-1])
    assert not question.allows(text)
