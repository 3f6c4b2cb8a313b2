"""Replies are read as values: the right outcome for any text, in linear time, without an error."""

import json
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_games.errors import UnknownName
from llm_games.questions import MISSING, BadReply, Choice, Integer, Real, Shares, Target
from llm_games.replies import READINGS, Reply, around, bare, bare_or_search, read_reply

BID = Integer("bid", 0, 100)
GO = Choice("decision", {"go": 1, "stay": 0}, published=bare)
VOTE = Choice("decision", {"accept": 1, "reject": 0}, published=around)
TWO = {"player_1": 1, "player_2": 2}
SHOT = Target("target", TWO, {"player_3": 3}, {"player_0": 0}, -2, published=bare_or_search)
PLAN = Shares("proposal", (2, 3), 10, 3, published=around)
PRICE = Real("price", 0, 1000, 2)
QUESTIONS = [BID, Integer("bid", None, None, True), GO, VOTE, SHOT, PLAN, PRICE]


def read(text, question=BID, reading="strict", finish="stop"):
    return read_reply(text, question, reading, finish)


VALID = [
    '{"bid": 5}',
    '  {"bid":5}\n',
    'Sure! {"bid": 5} is my answer.',
    '```json\n{"bid": 5}\n```',
    '```\n{\n  "bid": 5,\n}\n```',
    '{"bid": "5"}',
    '{"bid": 5.0}',
    '{"bid": 5,}',
    '{"bid": 5 // a low bid\n}',
    '{// mine\n"bid": 5}',
    '{"explanation": "I {think} \\"{\\" so", "bid": 5}',
    '{"explanation": "either {\\"bid\\": 7} or less", "bid": 5}',
    '{"explanation": {"bid": 7}, "bid": 5}',
    '{"bid": 5} and again {"bid": 5}',
    '{"bid": 5} or as text {"bid": "5"}',
    'the set {1, 2} and {of course} {"bid": 5}',
    'a brace { open, "quote {"bid": 5}',
    '{ "so: {"bid": 5}',
    '{"answer": {"bid": 5}}',
    '[{"bid": 5}]',
    '{"other": {"a": [1, {}, []]}} {"bid": 5}',
    '{"bid": 5, "note": NaN}',
    '{"bid": 5, "bid": 5}',
    '{"explanation": "two\nlines", "bid": 5}',
    '<think>{"draft": "none"}</think>{"bid": 5}',
    '{"bid": 5} {"bid": ',
    '{"b\\u0069d": 5}',
]


@pytest.mark.parametrize("text", VALID)
def test_an_answer_is_found_in_messy_text(text):
    assert read(text) == Reply("valid", 5)


BAD = [
    ("", "empty"),
    (" \n", "empty"),
    ("5", "no complete JSON object"),
    ("I will not take part in this.", "no complete JSON object"),
    ('{"offer": 5}', "no complete JSON object"),
    ('{"bid": 5', "no complete JSON object"),
    ("{'bid': 5}", "no complete JSON object"),
    ("{bid: 5}", "no complete JSON object"),
    ('{"bid": 5 "x": 1}', "no complete JSON object"),
    ('{"bid": 05}', "no complete JSON object"),
    ('{"bid" 5}', "no complete JSON object"),
    ('{,"bid": 5}', "no complete JSON object"),
    ('{"bid": 5,,}', "no complete JSON object"),
    ('"{\\"bid\\": 5}"', "no complete JSON object"),
    ('{"bid": NaN}', "not a whole number"),
    ('{"bid": Infinity}', "not a whole number"),
    ('{"bid": 1e999999999}', "not a whole number"),
    ('{"bid": 1e99999999999999999999999}', "not a whole number"),
    ('{"bid": true}', "not a whole number"),
    ('{"bid": null}', "not a whole number"),
    ('{"bid": [5]}', "not a whole number"),
    ('{"bid": 5.5}', "not a whole number"),
    ('{"bid": ' + "9" * 5000 + "}", "not a whole number"),
    ('{"bid": 5} no, {"bid": 6}', "different answers"),
    ('{"bid": "<number>"} {"bid": 5}', "different answers"),
    ('{"bid": 5, "bid": 6}', "two values"),
    ('{"bid": 1, "bid": true}', "two values"),
]


@pytest.mark.parametrize(("text", "why"), BAD)
def test_what_is_no_answer_is_unparsable(text, why):
    reply = read(text)
    assert (reply.outcome, reply.action) == ("unparsable", MISSING)
    assert why in reply.why


def test_a_readable_answer_out_of_range_keeps_its_action():
    assert read('{"bid": 101}') == Reply(
        "out_of_range", 101, "101 is not a whole number from 0 to 100"
    )
    assert read('{"bid": 101} {"bid": 101}').outcome == "out_of_range"
    assert read('{"bid": 101} {"bid": 102}').outcome == "unparsable"
    assert read('{"bid": 101}', finish="length").outcome == "truncated"


def test_how_a_completion_ended_decides_first():
    assert read('{"bid": 5}', finish="refusal").outcome == "refused"
    assert read('{"bid": 5} and', finish="length") == Reply("valid", 5)
    assert read('{"explanation": "I th', finish="length").outcome == "truncated"


def test_a_rank_named_twice_is_no_plan():
    assert read('{"proposal": {"2": 4, "3": 6}}', PLAN).action == (0, 4, 6)
    assert "two values" in read('{"proposal": {"2": 4, "3": 6, "3": 5}}', PLAN).why


def test_the_last_of_several_answers_can_count():
    text = '{"bid": 7}, no: {"bid": 8}, no: {"x": [{"bid": 5}]}'
    assert read(text, reading="take_last") == Reply("valid", 5)
    assert read('{"bid": 5} {"bid": 500}', reading="take_last").outcome == "out_of_range"
    assert read("nothing", reading="take_last").outcome == "unparsable"


PUBLISHED = [
    (Integer("chosen_number", 0, 100, published=bare), '{"chosen_number": 33.9}', 33),
    (Integer("chosen_number", 0, 100, published=bare), 'So {"chosen_number": 33}', None),
    (Integer("bid_amount", 0, 100, published=bare), '{"bid_amount": 9}', 9),
    (Integer("bid_amount", 0, 100, published=bare), '{"bid": 9}', None),
    (Integer("bid_amount", 0, 100, published=bare), "[9]", None),
    (Integer("bid_amount", 0, 100, published=bare), '```{"bid_amount": 9}```', None),
    (Integer("tokens_contributed", 0, 20), 'I put {"tokens_contributed": 9} in', 9),
    (Integer("tokens_contributed", 0, 20), '{a} {"tokens_contributed": 9}', None),
    (BID, 'So {"bid": 5.7}, yes', 5),
    (BID, '{"bid": 5} {"bid": 5}', None),
    (BID, '{"bid": 5, "bid": 6}', 6),
    (GO, '{"decision": "go"}', 1),
    (GO, 'I {"decision": "go"}', None),
    (VOTE, 'I {"decision": "accept"} {it}', 1),
    (SHOT, '{"target": "player_1"}', 1),
    (SHOT, 'I "action": "shoot" and "target": "player_2" now', 2),
    (SHOT, 'I "target" null', None),
    (PLAN, 'Here: {"proposal": {"2": 4, "3": 6}} {}', (0, 4, 6)),
    (Choice("dish", {"costly": 1, "cheap": 0}, published=bare), 'yes {"dish": "cheap"}', None),
]


@pytest.mark.parametrize(("question", "text", "action"), PUBLISHED)
def test_each_game_is_read_as_its_authors_did(question, text, action):
    reply = read(text, question, "published")
    assert reply.action == (MISSING if action is None else action)
    assert reply.outcome == ("unparsable" if action is None else "valid")


def test_an_unknown_reading_says_which_there_are():
    with pytest.raises(UnknownName, match="did you mean 'strict'"):
        read("", reading="stric")


def test_a_question_may_look_at_the_whole_object():
    class Checked(Integer):
        def answer(self, obj):
            if obj.get("action", "shoot") != "shoot":
                raise BadReply("format", "action and bid disagree")
            return self.read(obj[self.key])

    question = Checked("bid", 0, 9)
    assert read('{"action": "shoot", "bid": 5}', question).action == 5
    assert read('{"action": "miss", "bid": 5}', question).why == "action and bid disagree"
    assert read('{"action": "shoot", "action": "miss", "bid": 5}', question).outcome == "unparsable"


class Pair(Integer):
    def holds(self, whole):
        return "low" in whole and "high" in whole

    def answer(self, whole):
        return self.read(whole["low"]), self.read(whole["high"])


# (reading, text, outcome, answer or what is said about it)
WHOLE = [
    ("strict", '{"low": 1, "high": 2}', "valid", (1, 2)),
    ("strict", '[{"low": 1}, {"high": 2}]', "unparsable", "object that is an"),
    ("strict", '{"low": 1} {"pair": {"low": 1, "high": 2}}', "valid", (1, 2)),
    ("strict", '{"low": 1, "low": 3, "high": 2}', "unparsable", "two values for a key"),
    ("strict", '{"low": 1, "high": 2} {"low": 1, "high": 3}', "unparsable", "different answers"),
    ("take_last", '{"low": 1, "high": 2} {"low": 1, "high": 3}', "valid", (1, 3)),
    ("strict", '{"low": 1, "high": 10}', "out_of_range", "10 is not"),
]


@pytest.mark.parametrize(("reading", "text", "outcome", "said"), WHOLE)
def test_a_question_may_read_a_whole_object(reading, text, outcome, said):
    reply = read(text, Pair("", 0, 9), reading)
    assert reply.outcome == outcome
    assert reply.action == said if outcome == "valid" else said in reply.why


def test_decimals_are_exact():
    assert read('{"price": 0.285}', PRICE).action == 28  # as a double it would be 0.28499…
    assert read('{"price": 0.295}', PRICE).action == 30


ANSWERS = [
    (BID, st.integers(0, 100)),
    (PRICE, st.integers(0, 1000)),
    (GO, st.sampled_from([0, 1])),
    (SHOT, st.sampled_from([-1, 1, 2])),
    (PLAN, st.integers(0, 10).map(lambda coins: (0, coins, 10 - coins))),
]


@given(st.data(), st.text(), st.text())
def test_canonical_replies_come_back_from_any_prose(data, before, after):
    question, actions = data.draw(st.sampled_from(ANSWERS))
    action = data.draw(actions)
    text = f"{before}\n{question.reply(action)}\n{after}"
    assert read(text, question) == Reply("valid", action)


KEYS = [f'"{question.key}": ' for question in QUESTIONS]
SIGNS = list('{}[]":,-5é \\\n\ud800')
PIECES = st.sampled_from([*SIGNS, *KEYS, "//", "1e9", "null"])


@given(
    st.lists(PIECES, max_size=40).map("".join),
    st.sampled_from(QUESTIONS),
    st.sampled_from(sorted(READINGS)),
    st.sampled_from(["stop", "length", "refusal"]),
)
def test_reading_never_raises(text, question, reading, finish):
    assert read(text, question, reading, finish).outcome != "failed"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("bid"), inner),
)


@given(JSON, st.sampled_from(QUESTIONS), st.sampled_from(sorted(READINGS)))
def test_any_json_value_can_stand_under_the_key(value, question, reading):
    reply = read(json.dumps({question.key: value}), question, reading)
    assert reply.outcome in ("valid", "out_of_range", "unparsable")


@given(JSON)
def test_our_reader_agrees_with_the_standard_one(value):
    seen = []

    class Any(Integer):
        def read(self, value):
            seen.append(value)
            return 0

    text = json.dumps({"bid": value})
    read(text, Any("bid", None, None))
    assert repr(seen[0]) == repr(
        json.loads(text, parse_float=Decimal, parse_constant=Decimal)["bid"]
    )


N = 10_000_000
HUGE = {
    "prose": ("x " * (N // 2) + '{"bid": 5}', "valid"),
    "explanation": ('{"explanation": "' + "y" * N + '", "bid": 5}', "valid"),
    "escapes": ('{"explanation": "' + "\\n" * (N // 2) + '", "bid": 5}', "valid"),
    "blanks": ('{"bid":' + " " * N + "5}", "valid"),
    "open braces": ("{" * N, "unparsable"),
    "open brackets": ('{"bid": ' + "[" * N, "unparsable"),
    "nested": ('{"bid":' * (N // 7), "unparsable"),
    "nested and closed": ('{"bid":' * 100_000 + "5" + "}" * 100_000, "unparsable"),
    "many answers": ('{"bid": 5}' * (N // 10), "unparsable"),
    "quotes": ('{"' * (N // 2), "unparsable"),
    "open strings": ('{"a":"' * (N // 6), "unparsable"),
    "a long open string": ('{"a":' * 60 + '"' + "x" * N, "unparsable"),
    "a long string": ('{"a":' * 60 + '"' + "x" * N + '" broken', "unparsable"),
    "backslashes": ('{"bid": "' + "\\" * N, "unparsable"),
    "comments": ('{"bid": ' + "// \n" * (N // 4), "unparsable"),
    "digits": ('{"bid": ' + "9" * N + "}", "unparsable"),
    "colons": ('"target":' * (N // 9), "unparsable"),
}


@pytest.mark.slow
@pytest.mark.parametrize("reading", sorted(READINGS))
@pytest.mark.parametrize("name", HUGE)
def test_ten_megabytes_are_read_within_a_second(name, reading):
    text, outcome = HUGE[name]
    began = time.process_time()
    reply = read(text, SHOT if name == "colons" else BID, reading)
    assert time.process_time() - began < 1
    if reading == "strict":
        assert reply.outcome == outcome
