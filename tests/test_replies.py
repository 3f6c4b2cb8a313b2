"""Replies are read as values: the right outcome for any text, in linear time, without an error."""

import json
import re
import time
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row

from llm_games.errors import UnknownName
from llm_games.questions import (
    MISSING,
    BadReply,
    Bid,
    Choice,
    Integer,
    Real,
    SealedBid,
    Shares,
    Target,
)
from llm_games.replies import (
    LENIENCIES,
    READINGS,
    Reply,
    around,
    bare,
    bare_or_search,
    read_reply,
    split_thoughts,
)

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
    '{"bid": 05}',
]


@each_row("text", VALID)
def test_an_answer_is_found_in_messy_text(text):
    assert read(text) == Reply("valid", 5)


ENCLOSED = [
    "<answer>5</answer>",
    "I shade my value.\n<answer>\n**5**\n</answer>",
    "<final_answer>5</final_answer>",
    r"\[ \boxed{5} \]",
    r"\( \boxed{5} \)",
    "I shade.\n\n\\[\n\\boxed{5}\n\\]",
    "最终答案：5",
    "**最终答案：5**",
    "Réponse finale : 5",
    "Antwort: 5",
    "ответ: 5",
    '"**5**"',
    "'**5**'",
    "<tool_call>reply\n<arg_key>bid</arg_key>\n<arg_value>5</arg_value>\n</tool_call>",
    "<tool_call>\n<function=submit_bid>\n<parameter=bid>\n5\n</parameter>\n</function>\n</tool_call>",
    "<function=bid><parameter=bid>5</parameter></function>",
    '<invoke name="reply"><parameter name="bid">5</parameter></invoke>',
    '<tool_call>\n{"name": "submit_bid", "arguments": {"bid": 5}}\n</tool_call>',
]


@each_row("text", ENCLOSED)
def test_an_answer_is_read_from_tags_boxes_and_other_languages(text):
    assert read(text) == Reply("valid", 5)


def test_a_share_in_tags_is_a_json_value():
    text = "<function=reply><parameter=proposal>[4, 6]</parameter></function>"
    assert read(text, PLAN).action == (0, 4, 6)
    assert read("<answer>go</answer>", GO).action == 1


BAD = [
    ("", "empty"),
    (" \n", "empty"),
    ("I will not take part in this.", "no complete JSON object"),
    ('{"offer": 5}', "no complete JSON object"),
    ('{"bid": 5', "no complete JSON object"),
    ('{"bid": 5 "x": 1}', "no complete JSON object"),
    ('{"bid" 5}', "no complete JSON object"),
    ('{,"bid": 5}', "no complete JSON object"),
    ('{"bid": 5,,}', "no complete JSON object"),
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
    ('{"x": {"bid": 5}}', "no complete JSON object"),
    ('If I were bold, I would say {"bid": 5}', "in its sentences only"),
    ('{"bid": 5}. Wait, that is too much.', "takes its answer back"),
    ('<think>{"bid": 5}</think>', "thoughts only"),
    ('{"bid": "<number>"} {"bid": 5}', "different answers"),
    ('{"bid": 5, "bid": 6}', "two values"),
    ('{"bid": 1, "bid": true}', "two values"),
    ("Put it into <answer>5</answer> tags, they say", "in its sentences only"),
    (r"The answer is \boxed{5}.", "no complete JSON object"),
    ("<answer>5</answer>\n<answer>6</answer>", "different answers"),
    ("<function=get_history><parameter=bid>5</parameter></function>", "no complete JSON object"),
    ('Let me verify: {"bid": 5}', "in its sentences only"),
    ('Let me double-check:\n{"bid": 5}', "in its sentences only"),
    ('{"bid": 5}\nAlternative: {"bid": 6}', "different answers"),
    ('{"bid": 5}\n\nAlternatively:\n{"bid": 6}', "different answers"),
    ('{"bid": 5}\nOption B: {"bid": 6}', "different answers"),
]


@each_row(("text", "why"), BAD)
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


@each_row(("question", "text", "action"), PUBLISHED)
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
    ("strict", '{"low": 1} {"answer": {"low": 1, "high": 2}}', "valid", (1, 2)),
    ("take_last", '{"low": 1} {"pair": {"low": 1, "high": 2}}', "valid", (1, 2)),
    ("strict", '{"low": 1, "low": 3, "high": 2}', "unparsable", "two values for a key"),
    ("strict", '{"low": 1, "high": 2} {"low": 1, "high": 3}', "unparsable", "different answers"),
    ("take_last", '{"low": 1, "high": 2} {"low": 1, "high": 3}', "valid", (1, 3)),
    ("strict", '{"low": 1, "high": 10}', "out_of_range", "10 is not"),
]


@each_row(("reading", "text", "outcome", "said"), WHOLE)
def test_a_question_may_read_a_whole_object(reading, text, outcome, said):
    reply = read(text, Pair("", 0, 9), reading)
    assert reply.outcome == outcome
    assert reply.action == said if outcome == "valid" else said in reply.why


def test_decimals_are_exact():
    assert read('{"price": 0.285}', PRICE).action == 28  # as a double it would be 0.28499…
    assert read('{"price": 0.295}', PRICE).action == 30


NAMES = {f"player_{seat}": seat for seat in (1, 2, 3)}
ASKED = {
    "bid": Integer("bid", 0, 100),
    "money": Integer("bid", 0, 20_000),
    "tokens": Integer("tokens_contributed", 0, 20, units=("token", "tokens")),
    "coins": Integer("bid_amount", 0, 100, units=("coin", "coins")),
    "number": Real("chosen_number", 0, 10_000, 2),
    "water": SealedBid("bid", 0, 300, 0),
    "auction": Bid("bid", 20, 60),
    "go": Choice("decision", {"go": 1, "stay": 0}),
    "vote": Choice("decision", {"accept": 1, "reject": 0}, also=(("yes", "accept"),)),
    "dish": Choice("chosen_dish", {"costly": 1, "cheap": 0}),
    "shot": Target("target", NAMES, {"player_0": 0}, {}, -2),
    "plan": Shares("proposal", (1, 2, 3, 4), 100, 4),
}
LOST = {
    "the answer bare under a wrapper",
    "what would others say",
    "Python with apostrophe unescaped",
    "missing comma",
    "unescaped quotes in the explanation",
    "not bold but firm",
    "ranks with a word",
    "an object quoted in an explanation without escapes",
}
ROOT = Path(__file__).parents[1]


@each_row("corpus", ["replies", "replies_later"])
def test_replies_are_read_as_a_person_would(corpus):
    """Nothing is guessed, and what is lost is known."""
    rows = tomllib.loads((ROOT / f"tests/data/{corpus}.toml").read_text("utf-8"))["reply"]
    lost, taken = set(), {}
    for row in rows:
        question = ASKED[row["question"]]
        reply = read(row["text"], question, finish=row.get("finish", "stop"))
        meant = None
        if "answer" in row:
            meant = read(json.dumps({question.key: json.loads(row["answer"])}), question).action
        found = reply.action if reply.outcome in ("valid", "out_of_range") else None
        assert set(reply.leniencies) <= set(LENIENCIES)
        if found is None and meant is not None:
            lost.add(row["name"])
        elif found != meant:
            taken[row["name"]] = found
    assert (taken, lost - LOST) == ({}, set())


NAMED = [
    ('{"bid": 5}', ()),
    ('So: {"bid": 5}', ()),
    ("<think>7?</think>{'bid': 5}", ("thoughts", "quotes")),
    ('{"answer": {"Bid ": "$5",}}', ("wrapper", "key", "comma", "unit")),
    ("{bid = 5 /* low */}", ("no quotes", "signs", "comment")),
    ('player_2: {"bid": 8}\nDraft\n\n{"bid": 7}\nFinal: {"bid": 5}', ("superseded", "quoted")),
    ("**5**", ("bare",)),
    ('"{\\"bid\\": \\"$5\\"}"', ("escapes", "unit")),
]


@each_row(("text", "names"), NAMED)
def test_each_leniency_is_named(text, names):
    reply = read(text)
    assert (reply.outcome, reply.action, reply.leniencies) == ("valid", 5, names)


def test_what_a_question_forgives_is_named():
    auction, plan, money = ASKED["auction"], ASKED["plan"], ASKED["money"]
    assert read('{"bid": "withdraw"}', auction) == Reply("valid", -1)
    assert read('{"bid": "withdraw"}', auction).leniencies == ("word",)
    assert read('{"proposal": [99, 0, 1, 0]}', plan).leniencies == ("list",)
    assert read('{"bid": "12,500"}', money).leniencies == ("thousands",)
    assert read('{"bid": 12_500}', money).leniencies == ("no quotes", "thousands")


THOUGHTS = [
    ("<think>a</think>b", "a", "b"),
    ("a</think>\nb", "a", "\nb"),
    ("<thinking>a</thinking>\n<reasoning>b</reasoning>\nc", "a\nb", "\n\nc"),
    ("[THINK]a[/THINK]b", "a", "b"),
    ("<think>a", "a", ""),
    ("b\n<think>a", "", "b\n<think>a"),
    ("I use no <think> tags, and no </think> either.", "", None),
    ('{"explanation": "<think> is no </think> tag", "bid": 5}', "", None),
    ("<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|>b<|return|>", "a", "b"),
    ("<|channel|>analysis<|message|>a", "a", ""),
    ("plain", "", None),
    ("", "", None),
]


@each_row(("text", "thoughts", "rest"), THOUGHTS)
def test_thoughts_are_told_from_the_rest(text, thoughts, rest):
    assert split_thoughts(text) == (thoughts, text if rest is None else rest)


def test_a_thought_that_is_cut_off_ends_with_the_text():
    assert split_thoughts("b\n<think>a", "length") == ("a", "b\n")
    assert read('<think>\n{"bid": 5}', finish="length").outcome == "truncated"
    assert read('<think>\n{"bid": 5}').outcome == "unparsable"
    assert read("5", finish="length").outcome == "truncated"
    assert read('x\n\n{"bid": 5}\n\nThe profit then', finish="length").outcome == "truncated"
    assert read('x\n\n{"bid": 5}\n\nReasons: the', finish="length") == Reply("valid", 5)


ANSWERS = [
    (BID, st.integers(0, 100)),
    (PRICE, st.integers(0, 1000)),
    (GO, st.sampled_from([0, 1])),
    (SHOT, st.sampled_from([-1, 1, 2])),
    (PLAN, st.integers(0, 10).map(lambda coins: (0, coins, 10 - coins))),
]


# Letters, not words that mean something: no two of ours side by side.
PROSE = st.lists(st.characters()).map("".join).filter(lambda s: not re.search("(?i)[a-z]{2}", s))


@given(st.data(), PROSE, PROSE)
def test_canonical_replies_come_back_from_any_prose(data, before, after):
    question, actions = data.draw(st.sampled_from(ANSWERS))
    action = data.draw(actions)
    text = f"{before}\n{question.reply(action)}\n{after}"
    assert read(text, question) == Reply("valid", action)


WORDS = [
    "player_2 said",
    *["if", "never", "{", "}", "[", "]", "'", '"', "//", "#", "`", "?", "1", "“"],
]


@given(st.data(), st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_an_answer_alone_at_the_end_is_read_whatever_stands_before(data, before):
    question, actions = data.draw(st.sampled_from(ANSWERS))
    action = data.draw(actions)
    text = f"{before}.\n\n{question.reply(action)}"
    assert read(text, question) == Reply("valid", action)


KEYS = [f'"{question.key}": ' for question in QUESTIONS]
SIGNS = list('{}[]":,-5é \\\n\ud800')
MARKS = ["<think>", "</think>", "<|channel|>final<|message|>", "Final:", "if ", "\\boxed{", "5 "]
PIECES = st.sampled_from([*SIGNS, *KEYS, *MARKS, *"'“”`#$=?", "//", "/*", "1e9", "null", "answer:"])


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
def test_ten_megabytes_are_read_in_little_time(name, reading):
    text, outcome = HUGE[name]
    began = time.process_time()
    reply = read(text, SHOT if name == "colons" else BID, reading)
    assert time.process_time() - began < 4  # about 1 s on a quiet machine
    if reading == "strict":
        assert reply.outcome == outcome


REPEATED = [
    *('{"a":', "{//", "{/*", "{#", "{“", "{'", "{`", "{", "[{", '"', '\\"', '{"answer":', "{a:"),
    *('{"a": \'', '{"a": "\\', '{"bid": 5}\n', '{\\"bid\\": 5} ', '[{"a":1},', "if {'bid': 5} "),
    *("<think>", "</think>", "<think>\n</think>\n", "<|channel|>", "<|channel|>a<|message|>"),
    *("```", "...!!!", "\n....", " ", "player ", "I ", "the a ", "a: ", "**", "n’", "</s>", "<a|"),
    *("<tool_call>a<arg_key>", "<arg_key>a</arg_key><arg_value>", "<function=a>", "<answer>a"),
    *("<function=a><parameter=b>", '<invoke name="a">', "\n\\boxed{", "\n$", "\nAlternative: "),
]


@pytest.mark.parametrize("piece", REPEATED)
def test_no_reply_takes_quadratic_time(piece):
    """Four times the text takes about four times as long; sixteen would be quadratic."""

    def seconds(size):
        text = piece * (size // len(piece)) + '\n{"bid": 5}'
        began = time.process_time()
        read(text, finish="length")
        return time.process_time() - began

    little = min(seconds(15_000), seconds(15_000))
    assert min(seconds(60_000) for _ in range(3)) < 10 * little + 0.1
