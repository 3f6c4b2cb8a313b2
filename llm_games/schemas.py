"""Which texts can still become JSON of a schema, as ``json.dumps`` writes it.

The part of JSON Schema that questions use: objects whose properties come in order (all, or those
required), arrays, strings, integers, numbers with the decimals of their ``multipleOf`` (1, 0.1 …),
true and false, enums, null, and alternatives.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

Schema = Mapping[str, Any]
LONGEST = 80  # characters of a string whose schema sets no ``maxLength``
MOST = 3  # items of an array whose schema sets no ``maxItems``
LARGEST = 10**12  # the largest number, either side of 0, where a schema sets no limit
DECIMALS = 2  # decimals of a number whose schema sets no ``multipleOf``


def object_of(
    properties: Mapping[str, Schema], required: Iterable[str] | None = None
) -> dict[str, Any]:
    """Return the schema of an object with these properties; all are required, or those named."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


Reader = Callable[[str, int], int]
"""From a text and where a value begins in it to where the value ends, `PART` or `WRONG`."""
PART = -1  # the text ended within the value, and all was right so far
WRONG = -2  # the text cannot be the beginning of such a value


def beginnings(schema: Schema) -> Callable[[str], bool]:
    """Return a test whether a text begins, or is, a value of a schema; else ValueError."""
    try:
        read = _reader(schema)
    except (LookupError, TypeError, AttributeError, ArithmeticError, re.error) as error:
        raise ValueError(f"no schema that is known: {schema!r}") from error
    return lambda text: read(text, 0) in (PART, len(text))


def _reader(schema: Schema) -> Reader:
    if "anyOf" in schema:
        return _either(map(_reader, schema["anyOf"]))
    if "enum" in schema:
        return _either(partial(_literal, json.dumps(word)) for word in schema["enum"])
    kinds = schema.get("type")
    return _either(_KINDS[kind](schema) for kind in (kinds if isinstance(kinds, list) else [kinds]))


def _either(readers: Iterable[Reader]) -> Reader:
    """Return a reader that takes the longest alternative, or one that needs more text."""
    alternatives = list(readers)

    def read(text: str, start: int) -> int:
        ends = [alternative(text, start) for alternative in alternatives]
        return PART if PART in ends else max(ends)

    return read if len(alternatives) > 1 else alternatives[0]


def _literal(word: str, text: str, start: int) -> int:
    if text.startswith(word, start):
        return start + len(word)
    return PART if word.startswith(text[start:]) else WRONG


def _object(schema: Schema) -> Reader:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    readers, required = list(map(_reader, properties.values())), schema.get("required", [])

    def choices(start: int, separator: str, end: str) -> list[tuple[str, int]]:
        """Return what can follow: a word and the property it opens, or the end and -1."""
        words = []
        for i, name in list(enumerate(properties))[start:]:
            words.append((f"{separator}{json.dumps(name)}: ", i))
            if name in required:
                return words
        return [*words, (end, -1)]

    first = choices(0, "{", "{}")
    later = [choices(i + 1, ", ", "}") for i in range(len(readers))]

    def read(text: str, index: int) -> int:
        words = first
        while True:
            for word, i in words:  # noqa: B007
                if text.startswith(word, index):
                    break
            else:
                rest = text[index:]
                return PART if any(word.startswith(rest) for word, _ in words) else WRONG
            index += len(word)
            if i < 0 or (index := readers[i](text, index)) < 0:
                return index
            words = later[i]

    return read


def _array(schema: Schema) -> Reader:
    minimum, limit = schema.get("minItems", 0), schema.get("maxItems", MOST)
    item = _reader(schema["items"])

    def read(text: str, index: int) -> int:
        index = _literal("[", text, index)
        for count in range(limit + 1):
            if index < 0 or index == len(text):
                return min(index, PART)
            if text[index] == "]" and count >= minimum:
                return index + 1
            index = WRONG if count == limit else _literal(", ", text, index) if count else index
            index = item(text, index) if index >= 0 else index
        return index

    return read


_LETTER = r'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))'
_ESCAPE = r"\\(?:u[0-9a-fA-F]{0,3})?"  # the beginning of one more letter


def _string(schema: Schema) -> Reader:
    minimum, limit = schema.get("minLength", 0), schema.get("maxLength", LONGEST)
    whole = re.compile(f'"{_LETTER}{{{minimum},{limit}}}+"')
    tail = f"{_LETTER}{{0,{limit - 1}}}(?:{_LETTER}|{_ESCAPE})?" if limit else ""
    part = re.compile(f'(?:"{tail})?')

    def read(text: str, start: int) -> int:
        match = whole.match(text, start)
        return match.end() if match else PART if part.fullmatch(text, start) else WRONG

    return read


def _number(schema: Schema, decimals: int | None = None) -> Reader:
    """Return a reader of numbers, which are compared with their limits in units of a decimal."""
    if decimals is None:
        unit = Decimal(str(schema.get("multipleOf", 10**-DECIMALS))).normalize()
        decimals = max(0, -unit.adjusted())
        if unit != Decimal(10) ** -decimals:
            raise LookupError("only 1, 0.1, 0.01 …")
    low = math.ceil(Decimal(str(schema.get("minimum", -LARGEST))).scaleb(decimals))
    high = math.floor(Decimal(str(schema.get("maximum", LARGEST))).scaleb(decimals))
    limits = {"": (low, high), "-": (max(-high, 1), -low)}
    point = rf"(?:(?<=[0-9])(\.)([0-9]{{0,{decimals}}}))?" if decimals else "()()"
    shape = re.compile(rf"(-?)(0|[1-9][0-9]{{0,18}}|){point}")

    def read(text: str, start: int) -> int:
        match = shape.match(text, start)
        assert match is not None
        sign, whole, point, places = match.groups("")
        lower, upper = limits[sign]
        if not whole:
            return PART if match.end() == len(text) and lower <= upper else WRONG
        unit = 10 ** (decimals - len(places))
        value = int(whole + places) * unit
        if match.end() == len(text):
            grows = not point and whole != "0"
            return PART if _reaches(value, unit, lower, upper, grows) else WRONG
        ends = (places or not point) and lower <= value <= upper
        return match.end() if ends else WRONG

    return read


def _reaches(first: int, unit: int, lower: int, upper: int, grows: bool) -> bool:
    """Test whether ``first … first + unit - 1``, or a longer number if it `grows`, is in limits."""
    while first <= upper:
        if first + unit > lower:
            return True
        if not grows:
            return False
        first, unit = first * 10, unit * 10
    return False


_KINDS: dict[Any, Callable[[Schema], Reader]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": partial(_number, decimals=0),
    "number": _number,
    "boolean": lambda _: _either(partial(_literal, word) for word in ("true", "false")),
    "null": lambda _: partial(_literal, "null"),
}
