"""JSON in messy text: the objects that a model wrote, found in one pass and in linear time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

DEEPEST = 64  # objects nested deeper are not read; keeps the recursion small
MOST_VALUES = 100_000  # JSON values looked at in one text; keeps a hostile one from taking long
MOST_LOOKS = 16  # at each character, on average: what begins as an object and breaks is read again
LONGEST_NUMBER = 400  # characters


class TooMessy(Exception):
    """The text has more values or characters to read than the limits allow."""


class JsonSpan(NamedTuple):
    """An object, or a list that begins with one: its span and how it departs from JSON."""

    value: Any
    begin: int
    end: int
    leniencies: frozenset[str]


def values(text: str, plain: bool = False) -> Iterator[JsonSpan]:
    """Yield the complete outermost objects in a text, and lists of objects; TooMessy if it is slow.

    `plain`: only JSON, with trailing commas, ``//`` comments and line breaks in strings.
    """
    reader, pos = _Reader(text, plain), 0
    while match := reader.open.search(text, pos):
        reader.leniencies = set()
        try:
            value, pos = reader.value(match.start(), 0)
            yield JsonSpan(value, match.start(), pos, frozenset(reader.leniencies))
        except _NotJSON:
            pos = match.start() + 1


def parts(value: Any) -> Iterable[Any]:
    """Return the direct children of a JSON value."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


class Conflict:
    """Replaces the value of a key that has two different ones."""

    def __str__(self) -> str:
        return "two different values"

    @classmethod
    def inside(cls, value: Any) -> bool:
        return isinstance(value, cls) or any(map(cls.inside, parts(value)))


# An object with a key begins like this, or a list of objects.
_PLAIN_OPEN = re.compile(r'\{(?=\s*+(?:"|//))')
_OPEN = re.compile(r"""\{(?![{}])(?=\s*+(?:["'`‘‚“„]|[\w-]++\s*+[:=：]|//|/\*|\#))|\[(?=\s*+\{)""")
_SPACE = re.compile(r"(?:\s++|\ufeff|//[^\n]*+|\#[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z))*+")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_SCALAR = re.compile(rf"{_NUMBER}|true|false|null|NaN|-?Infinity")
_ENDED = re.compile(r"\s*+(?:[],:=：}#]|//|/\*|\Z)")
_QUOTED = re.compile(
    r"""'((?:[^'\\]++|\\.)*+)'|[‘‚]([^‘’]*+)[‘’]|[“„]([^“”]*+)[“”]|`([^`]*+)`""", re.DOTALL
)
_WORDS = re.compile(r"\$?[\w+-][\w.+-]*+%?(?:[ \t]++[^\W\d_]++){0,2}")
_PYTHON = {"None": None, "True": True, "False": False}
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')


class _NotJSON(Exception):
    """There is no JSON value at this position."""


class _Reader:
    """A recursive-descent parser of JSON and of what models write in its place."""

    def __init__(self, text: str, plain: bool) -> None:
        self.text, self.plain, self.open = text, plain, _PLAIN_OPEN if plain else _OPEN
        self.remaining, self.looks = MOST_VALUES, MOST_LOOKS * (len(text) + 100)
        self.broken: set[int] = set()
        self.leniencies: set[str] = set()

    def value(self, pos: int, depth: int) -> tuple[Any, int]:
        """Return the value that begins at `pos`, and its end."""
        self.remaining -= 1
        if self.remaining < 0:
            raise TooMessy
        opening = self.text[pos : pos + 1]
        if opening not in ("{", "["):
            return self._scalar(pos, opening)
        if depth == DEEPEST or pos in self.broken:
            raise _NotJSON
        try:
            return self._inside(pos + 1, depth + 1, {} if opening == "{" else [])
        except _NotJSON:
            self.broken.add(pos)  # no need to read it again as the start of an answer
            raise

    def _inside(self, pos: int, depth: int, node: dict[str, Any] | list[Any]) -> tuple[Any, int]:
        end = "}" if isinstance(node, dict) else "]"
        while True:
            pos = self._skip(pos)
            if self.text[pos : pos + 1] == end:
                return node, pos + 1
            value, pos = self.value(pos, depth)
            if isinstance(node, list):
                node.append(value)
            else:
                key = self._key(value)
                value, pos = self.value(self._skip(self._expect(":=：", self._skip(pos))), depth)
                same = key not in node or (type(node[key]) is type(value) and node[key] == value)
                node[key] = value if same else Conflict()
            pos = self._skip(pos)
            if self.text[pos : pos + 1] != end:
                pos = self._skip(self._expect(",", pos))
                if self.text[pos : pos + 1] == end:
                    self.leniencies.add("comma")

    def _scalar(self, pos: int, opening: str) -> tuple[Any, int]:
        text = self.text
        if opening == '"':
            if not (match := _STRING.match(text, pos)):
                self._look(len(text) - pos)
                raise _NotJSON
            self._look(len(match[0]))
            return self._string(match[0]), match.end()
        match = _SCALAR.match(text, pos)
        if match and (self.plain or _ENDED.match(text, match.end())):
            self._look(len(match[0]))
            return DECODER.decode(match[0]), match.end()
        if not self.plain and (match := _QUOTED.match(text, pos) or _WORDS.match(text, pos)):
            self._look(len(match[0]))
            self.leniencies.add("quotes" if match.re is _QUOTED else "no quotes")
            word = match[match.lastindex or 0]
            return _PYTHON.get(word, word) if match.re is _WORDS else word, match.end()
        self._look(len(text) - pos if opening and opening in "'‘‚“„`" else 1)
        raise _NotJSON

    def _string(self, quoted: str) -> str:
        """Decode a string; a backslash that escapes nothing, as in LaTeX, stands for itself."""
        try:
            return str(DECODER.decode(quoted))
        except ValueError:
            if self.plain:
                raise _NotJSON from None
        self.leniencies.add("escapes")
        return str(DECODER.decode(_ESCAPE.sub(lambda m: m[0] if m[1] else r"\\", quoted)))

    def _key(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        if self.plain or type(value) is not int:
            raise _NotJSON
        self.leniencies.add("no quotes")
        return str(value)

    def _skip(self, pos: int) -> int:
        match = _SPACE.match(self.text, pos)
        end = match.end() if match else pos
        self._look(end - pos)
        if end > pos and (comment := self.text[pos:end].strip()) and comment != "\ufeff":
            if self.plain and not comment.startswith("//"):
                raise _NotJSON
            self.leniencies.add("comment")
        return end

    def _expect(self, signs: str, pos: int) -> int:
        sign = self.text[pos : pos + 1]
        if not sign or sign not in (signs[0] if self.plain else signs):
            raise _NotJSON
        if sign != signs[0]:
            self.leniencies.add("signs")
        return pos + 1

    def _look(self, count: int) -> None:
        self.looks -= count
        if self.looks < 0:
            raise TooMessy


def _decimal(digits: str) -> Decimal:
    try:  # an exponent beyond all bounds would trap in later arithmetic
        fits = len(digits) <= LONGEST_NUMBER and Decimal(digits).adjusted() < 1000
    except InvalidOperation:
        fits = False
    return Decimal(digits) if fits else Decimal("Infinity")


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= LONGEST_NUMBER else Decimal("Infinity")


DECODER = json.JSONDecoder(
    strict=False, parse_float=_decimal, parse_int=_integer, parse_constant=Decimal
)
