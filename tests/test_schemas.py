"""Beginnings of JSON of a schema: all of them are allowed, and nothing that is wrong when whole."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row

from llm_games.schemas import LARGEST, LONGEST, MOST, beginnings


def begins(schema, text):
    return beginnings(schema)(text)


LETTERS = st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])  # one \\u escape each


def integers(low=-LARGEST, high=LARGEST):
    return st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted)


@st.composite
def numbers(draw, unit):
    low, high = draw(integers(-2000, 2000))
    kind = "integer" if unit == 1 else "number"
    units = st.integers(low, high)
    value = (
        units if unit == 1 else units.map(lambda n: int(n / unit) if n % unit == 0 else n / unit)
    )
    return {"type": kind, "minimum": low / unit, "maximum": high / unit}, value


@st.composite
def strings(draw):
    low, high = draw(integers(0, 8))
    return {"type": "string", "minLength": low, "maxLength": high}, st.text(
        LETTERS, min_size=low, max_size=high
    )


@st.composite
def arrays(draw, parts):
    low, high = draw(integers(0, 4))
    items, value = draw(parts)
    schema = {"type": "array", "items": items, "minItems": low, "maxItems": high}
    return schema, st.lists(value, min_size=low, max_size=high)


@st.composite
def objects(draw, parts):
    properties = draw(st.dictionaries(st.text(LETTERS, max_size=3), parts, max_size=4))
    needed = [name for name in properties if draw(st.booleans())]
    schema = {
        "type": "object",
        "properties": {name: part for name, (part, _) in properties.items()},
        "required": needed,
    }
    values = {name: value for name, (_, value) in properties.items()}
    must = {name: values[name] for name in needed}
    may = {name: value for name, value in values.items() if name not in must}
    made = st.fixed_dictionaries(must, optional=may)
    return schema, made.map(lambda found: {name: found[name] for name in values if name in found})


@st.composite
def choices(draw):
    words = draw(
        st.lists(st.text(LETTERS, max_size=3) | st.integers(0, 200), min_size=1, max_size=4)
    )
    return {"enum": words}, st.sampled_from(words)


@st.composite
def either(draw, parts):
    (one, first), (two, second) = draw(parts), draw(parts)
    return {"anyOf": [one, two]}, first | second


NULL = st.just(({"type": "null"}, st.none()))
TRUTH = st.just(({"type": "boolean"}, st.booleans()))
LEAVES = numbers(1) | numbers(100) | strings() | choices() | NULL | TRUTH
SCHEMAS = st.recursive(LEAVES, lambda p: arrays(p) | objects(p) | either(p), max_leaves=6)


@given(st.data())
def test_every_beginning_of_a_value_is_allowed(data):
    schema, values = data.draw(SCHEMAS)
    text, allows = json.dumps(data.draw(values)), beginnings(schema)
    assert all(allows(text[:end]) for end in range(len(text) + 1))


INTEGER = {"type": "integer", "minimum": -3, "maximum": 120}
NUMBER = {"type": "number", "minimum": 0.29, "maximum": 12.5}
SHORT = {"type": "string", "minLength": 1, "maxLength": 3}
LIST = {"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 2}
OBJECT = {"type": "object", "properties": {"a": INTEGER, "b": SHORT}, "required": ["b"]}
OR_NULL = {"type": ["integer", "null"], "minimum": 5, "maximum": 9}


@each_row(
    ("schema", "text"),
    [
        *(
            (INTEGER, text)
            for text in ("121", "-4", "-0", "01", "1.", "+1", '"', "1e", "-12", "--")
        ),
        *(
            (NUMBER, text)
            for text in ("0.28", "12.51", "13", "-", "0.123", ".5", "1e2", "1..", "00")
        ),
        *((SHORT, text) for text in ('""', '"abcd', '"a\n', '"a\\x', "a", "null", '"\\u12g')),
        *((LIST, text) for text in ("[]", "[1,2", "[1, 2, ", "[1, 2]]", "[121", "[1 ,")),
        *((OBJECT, text) for text in ("{}", '{"a": 1}', '{"c', '{"b": "x", "a', '{"b":1', "[")),
        *((OR_NULL, text) for text in ("4", "10", "nil", "-", '"')),
        ({"enum": ["go", 1, 12, None]}, '"stay"'),
        ({"enum": ["go", 1, 12, None]}, "13"),
        ({"type": "null"}, "none"),
        ({"type": "integer", "minimum": 4, "maximum": 3}, ""),
        ({"type": "integer", "minimum": 0, "maximum": 5}, "-"),
        ({"type": "integer"}, str(LARGEST + 1)),
        ({"type": "string"}, '"' + "a" * (LONGEST + 1)),
        ({"type": "string"}, '"' + "a" * LONGEST + "\\"),
        ({"type": "array", "items": {"type": "null"}}, f"[{'null, ' * MOST}"),
    ],
)
def test_what_cannot_become_right_is_refused(schema, text):
    assert not begins(schema, text)


@each_row("whole", ["1", "-3", "120", "0", "12"])
def test_numbers_may_end_or_grow(whole):
    assert begins(INTEGER, whole)
    assert begins({"type": "object", "properties": {"a": INTEGER}}, f'{{"a": {whole}}}')


def test_the_longest_alternative_counts():
    mixed = {"anyOf": [{"type": "integer"}, {"type": "number"}, {"enum": ["a", 1, 12]}]}
    pair = {"type": "array", "items": mixed}
    assert begins(pair, "[1.5, 12, 1.")
    assert begins(pair, '[1, "a", 12]')


@given(st.data())
def test_text_that_grows_letter_by_letter_is_a_value_in_the_end(data):
    schema = {**OBJECT, "properties": OBJECT["properties"] | {"c": NUMBER, "d": LIST, "e": OR_NULL}}
    text, allows = "", beginnings(schema)
    for _ in range(80):
        letters = [c for c in '{}[]", :-.0123459abcdenul' if allows(text + c)]
        if not letters:
            break
        text += data.draw(st.sampled_from(letters))
    value = json.loads(text)
    assert set(value) <= set("abcde")
    assert 1 <= len(value["b"]) <= 3
    assert -3 <= value.get("a", 0) <= 120
    assert 0.29 <= value.get("c", 1) <= 12.5
    assert all(-3 <= n <= 120 for n in value.get("d", []))


@each_row(
    "schema",
    [
        {},
        {"type": "truth"},
        {"type": ["integer", "date"]},
        {"type": []},
        {"type": "array"},
        {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
        {"anyOf": [{"type": "null"}, {"$ref": "#"}]},
        {"enum": []},
        {"type": "number", "multipleOf": 0.25},
        {"type": "integer", "minimum": "a"},
        {"type": "object", "properties": ["a"]},
        None,
    ],
)
def test_other_schemas_are_not_known(schema):
    with pytest.raises(ValueError, match="no schema that is known"):
        beginnings(schema)
