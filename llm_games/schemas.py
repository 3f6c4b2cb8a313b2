"""Which texts can still become JSON of a schema, written as ``json.dumps`` writes it.

Only the small part of JSON Schema that questions use: objects whose properties come in order (all
of them, or those that are required), arrays, strings, integers, numbers with few decimals, enums,
null, and alternatives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from typing import Any

Schema = Mapping[str, Any]
LONGEST = 80
"""Characters of a string whose schema sets no ``maxLength``."""
MOST = 3
"""Items of an array whose schema sets no ``maxItems``."""
LARGEST = 10**12
"""The largest number, either side of 0, where a schema sets no limit."""
DECIMALS = 2
"""Decimals of a number, since its schema does not tell how fine it is."""


class _Partial(Exception):
    """The text ended within a value, and all was right so far."""


class _Wrong(Exception):
    """The text cannot be the beginning of such a value."""


def known(schema: Any) -> bool:
    """Return whether a schema, with all in it, is of the part that `begins` knows."""
    if not isinstance(schema, Mapping):
        return False
    if "anyOf" in schema:
        return isinstance(schema["anyOf"], list) and all(map(known, schema["anyOf"]))
    if "enum" in schema:
        return isinstance(schema["enum"], list) and bool(schema["enum"])
    kinds = _kinds(schema)
    if not kinds or not all(isinstance(kind, str) and kind in _KINDS for kind in kinds):
        return False
    properties = schema.get("properties", {}) if "object" in kinds else {}
    return (
        isinstance(properties, Mapping)
        and all(map(known, properties.values()))
        and ("array" not in kinds or known(schema.get("items")))
    )


def begins(schema: Schema, text: str) -> bool:
    """Return whether a text is the beginning of some value of a schema that is `known`, or all."""
    try:
        return _value(schema, text, 0) == len(text)
    except _Partial:
        return True
    except _Wrong:
        return False


def _value(schema: Schema, text: str, at: int) -> int:
    """Return where a value that begins at `at` ends."""
    if "anyOf" in schema:
        return _either([partial(_value, other, text, at) for other in schema["anyOf"]])[1]
    if "enum" in schema:
        return _either([partial(_literal, json.dumps(w), text, at) for w in schema["enum"]])[1]
    return _either([partial(_KINDS[kind], schema, text, at) for kind in _kinds(schema)])[1]


def _kinds(schema: Schema) -> list[Any]:
    kinds = schema.get("type")
    return kinds if isinstance(kinds, list) else [kinds]


def _either(ways: Sequence[Callable[[], int]]) -> tuple[int, int]:
    """Return which way goes furthest, and its end; a way that needs more text goes furthest."""
    ends, begun = [], False
    for i, way in enumerate(ways):
        try:
            ends.append((way(), -i))
        except _Partial:
            begun = True
        except _Wrong:
            continue
    if begun or not ends:
        raise _Partial if begun else _Wrong
    end, first = max(ends)
    return -first, end


def _literal(word: str, text: str, at: int) -> int:
    if text.startswith(word, at):
        return at + len(word)
    raise _Partial if word.startswith(text[at:]) else _Wrong


def _object(schema: Schema, text: str, at: int) -> int:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    names, required, comma = list(properties), schema.get("required", []), ""
    at = _literal("{", text, at)
    while True:
        must = next((i for i, name in enumerate(names) if name in required), None)
        next_ones = names if must is None else names[: must + 1]
        words = [f"{comma}{json.dumps(name)}: " for name in next_ones]
        words += ["}"] if must is None else []
        i, at = _either([partial(_literal, word, text, at) for word in words])
        if i == len(next_ones):
            return at
        at = _value(properties[names[i]], text, at)
        names, comma = names[i + 1 :], ", "


def _array(schema: Schema, text: str, at: int) -> int:
    least, most = schema.get("minItems", 0), schema.get("maxItems", MOST)
    at = _literal("[", text, at)
    for count in range(most + 1):
        words = ["]"] if count >= least else []
        words += [", " if count else ""] if count < most else []
        i, at = _either([partial(_literal, word, text, at) for word in words])
        if words[i] == "]":
            return at
        at = _value(schema["items"], text, at)
    raise _Wrong


_LETTER = re.compile(r'[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_LETTERS = re.compile(f"(?:{_LETTER.pattern})*")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")


def _string(schema: Schema, text: str, at: int) -> int:
    at = _literal('"', text, at)
    match = _LETTERS.match(text, at)
    assert match is not None
    end, size = match.end(), len(_LETTER.findall(match[0]))
    escape = _ESCAPE.fullmatch(text, end)  # the beginning of one more letter
    if size + bool(escape) > schema.get("maxLength", LONGEST):
        raise _Wrong
    if end == len(text) or escape:
        raise _Partial
    if size < schema.get("minLength", 0):
        raise _Wrong
    return _literal('"', text, end)


_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,18})?")
_POINTED = re.compile(rf"{_WHOLE.pattern}(?:(?<=[0-9])\.[0-9]{{0,{DECIMALS}}})?")


def _integer(schema: Schema, text: str, at: int) -> int:
    return _digits(schema, text, _WHOLE.match(text, at), 0)


def _number(schema: Schema, text: str, at: int) -> int:
    return _digits(schema, text, _POINTED.match(text, at), DECIMALS)


def _digits(schema: Schema, text: str, match: re.Match[str] | None, decimals: int) -> int:
    """Return where a number ends; it is compared with its limits in units of its last decimal."""
    assert match is not None
    low, high = (
        int(Decimal(str(schema.get(name, limit))).scaleb(decimals).to_integral_value(rounding))
        for name, limit, rounding in (
            ("minimum", -LARGEST, ROUND_CEILING),
            ("maximum", LARGEST, ROUND_FLOOR),
        )
    )
    digits = match[0].removeprefix("-")
    if digits != match[0]:
        low, high = max(-high, 1), -low
    spans = _spans(digits, decimals)
    if match.end() == len(text) and any(
        max(low, least) <= min(high, most) for least, most in spans
    ):
        raise _Partial
    if digits == "" or digits.endswith("."):
        raise _Wrong
    if not low <= Decimal(digits).scaleb(decimals) <= high:
        raise _Wrong
    return match.end()


def _spans(digits: str, decimals: int) -> Iterator[tuple[int, int]]:
    """Yield the smallest and largest number, in units, of each length that begins like this."""
    whole, point, places = digits.partition(".")
    if not digits:
        yield -(10**19), 10**19
        return
    for more in range(20 if not point and whole != "0" else 1):
        unit = 10 ** (more + decimals - len(places))
        first = int(whole + places) * unit
        yield first, first + unit - 1


def _null(schema: Schema, text: str, at: int) -> int:
    return _literal("null", text, at)


_KINDS: dict[Any, Callable[[Schema, str, int], int]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "number": _number,
    "null": _null,
}
