"""Reading a reply: the outcome is a value, never a guess and never an exception."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from llm_games.errors import unknown
from llm_games.questions import MISSING, BadReply, Integer, Question

ReplyOutcome = Literal[
    "valid", "unparsable", "out_of_range", "refused", "truncated", "failed", "tool"
]
"""How a reply was read; ``tool``: it is no answer but calls a tool, and breaks no rule."""
Finish = Literal["stop", "length", "refusal"]  # how a reply ended: by itself, cut off, or declined

DEEPEST = 64  # objects nested deeper are no answers; keeps the recursion small
MOST_VALUES = 100_000  # JSON values looked at in one reply; keeps a hostile one from taking long
LONGEST_NUMBER = 400  # characters


@dataclass(frozen=True)
class Reply:
    """What was read.

    `action` is the answer, an `Action` where a move is asked for; `MISSING` unless it is valid or
    readable but out of range. `why` says what was wrong to the one who answered, `detail` which
    rule was broken, see `BadReply`; both are empty if there is no such thing.
    """

    outcome: ReplyOutcome
    action: Any = MISSING
    why: str = ""
    detail: str = ""


def read_reply(
    text: str, question: Question, reading: str = "strict", finish: Finish = "stop"
) -> Reply:
    """Read the answer to a question out of a text that ended by `finish`.

    The question says which JSON objects are answers, and reads them. By the reading ``strict``,
    every complete one in the text counts, and they must agree (trailing commas and ``//`` comments
    are let pass); by ``take_last``, the last of them; by ``published``, what the code of a paper
    reads, at the question's `published` spot, with fractions cut towards zero.

    Raises:
        UnknownName: there is no such reading. Nothing that a reply says raises.
    """
    if reading not in READINGS:
        raise unknown("reading", reading, READINGS)
    if finish == "refusal":
        return Reply("refused", why="the model declined to answer")
    try:
        reply = READINGS[reading](text, question)
    except BadReply as bad:
        reply = _not_legal(bad)
    if finish == "length" and reply.outcome != "valid":
        return Reply("truncated", why="it was cut off before a complete answer")
    return reply


def _strict(text: str, question: Question) -> Reply:
    replies = [_read(obj, question) for obj in _answers(text, question)]
    if any(reply != replies[0] for reply in replies):
        of = f" for {json.dumps(question.key)}" if question.key else ""
        raise BadReply("format", f"it gives different answers{of}")
    return replies[0]


def _published(text: str, question: Question) -> Reply:
    spot = question.published or outermost
    try:
        obj = _DECODER.decode(spot(text, question.key))
        if not isinstance(obj, dict) or not question.holds(obj):
            raise _no_object(question)
        if isinstance(question, Integer):
            question = dataclasses.replace(question, truncate=True)
        return _read(obj, question)
    except (ValueError, RecursionError):
        raise _no_object(question) from None


READINGS: dict[str, Callable[[str, Question], Reply]] = {
    "strict": _strict,
    "take_last": lambda text, question: _read(_answers(text, question)[-1], question),
    "published": _published,
}


def _read(obj: dict[str, Any], question: Question) -> Reply:
    """Read the object that is the answer."""
    try:
        if _Conflict.inside(obj.get(question.key, obj)):
            which = json.dumps(question.key) if question.key in obj else "a key"
            raise BadReply("format", f"one object has two values for {which}")
        return Reply("valid", question.answer(obj))
    except BadReply as bad:
        return _not_legal(bad)


def _not_legal(bad: BadReply) -> Reply:
    outcome: ReplyOutcome = "out_of_range" if bad.kind == "range" else "unparsable"
    return Reply(outcome, bad.action, str(bad), bad.detail)


def _answers(text: str, question: Question) -> list[dict[str, Any]]:
    """Return the objects that are answers, none of them inside another; at least one."""
    found, reader, at = list[dict[str, Any]](), _Reader(text), 0
    while match := _OPEN.search(text, at):
        try:
            value, at = reader.value(match.start(), 0)
            found += _holders(value, question)
        except _NotJSON:
            at = match.start() + 1
    if not found:
        raise BadReply("format", "it is empty") if not text.strip() else _no_object(question)
    return found


def _holders(value: Any, question: Question) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and question.holds(value):
        yield value
    else:
        for inner in _parts(value):
            yield from _holders(inner, question)


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _no_object(question: Question) -> BadReply:
    form = f"with the key {json.dumps(question.key)}" if question.key else "that is an answer"
    return BadReply("format", f"it has no complete JSON object {form}")


# -- JSON in messy text ---------------------------------------------------------------------------

_OPEN = re.compile(r'\{(?=\s*+(?:"|//))')  # an object with a key begins like this
_SPACE = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+)*+")
_STRING = r'"(?:[^"\\]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_SCALAR = re.compile(rf"{_STRING}|{_NUMBER}|true|false|null|NaN|-?Infinity")


class _NotJSON(Exception):
    """What stands here is no JSON value."""


class _Conflict:
    """Stands for the value of a key that has two different ones."""

    def __str__(self) -> str:
        return "two different values"

    @classmethod
    def inside(cls, value: Any) -> bool:
        return isinstance(value, cls) or any(map(cls.inside, _parts(value)))


class _Reader:
    """JSON by recursive descent, with trailing commas, comments and line breaks in strings."""

    def __init__(self, text: str) -> None:
        self.text, self.left = text, MOST_VALUES
        self.broken: set[int] = set()

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        """Return the value that begins at `at` and where it ends."""
        self.left -= 1
        if self.left < 0:
            raise BadReply("format", "it holds far too many braces, brackets or values")
        opening = self.text[at : at + 1]
        match = _SCALAR.match(self.text, at)
        if match:
            return _DECODER.decode(match[0]), match.end()
        if opening not in ("{", "[") or depth == DEEPEST or at in self.broken:
            raise _NotJSON
        try:
            return self._inside(at + 1, depth + 1, {} if opening == "{" else [])
        except _NotJSON:
            self.broken.add(at)  # no need to read it again as the start of an answer
            raise

    def _inside(self, at: int, depth: int, found: dict[str, Any] | list[Any]) -> tuple[Any, int]:
        end = "}" if isinstance(found, dict) else "]"
        while True:
            at = self._skip(at)
            if self.text[at : at + 1] == end:
                return found, at + 1
            value, at = self.value(at, depth)
            if isinstance(found, list):
                found.append(value)
            elif not isinstance(key := value, str):
                raise _NotJSON
            else:
                value, at = self.value(self._skip(self._expect(":", self._skip(at))), depth)
                same = key not in found or (type(found[key]) is type(value) and found[key] == value)
                found[key] = value if same else _Conflict()
            at = self._skip(at)
            if self.text[at : at + 1] != end:
                at = self._expect(",", at)

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def _expect(self, sign: str, at: int) -> int:
        if self.text[at : at + 1] != sign:
            raise _NotJSON
        return at + 1


def _decimal(digits: str) -> Decimal:
    try:  # an exponent beyond all bounds would trap in later arithmetic
        fits = len(digits) <= LONGEST_NUMBER and Decimal(digits).adjusted() < 1000
    except InvalidOperation:
        fits = False
    return Decimal(digits) if fits else Decimal("Infinity")


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= LONGEST_NUMBER else Decimal("Infinity")


_DECODER = json.JSONDecoder(
    strict=False, parse_float=_decimal, parse_int=_integer, parse_constant=Decimal
)


# -- where the code of papers looks for the answer, see `Question.published` ----------------------
def bare(text: str, key: str) -> str:
    """Take the whole text."""
    return text


def outermost(text: str, key: str) -> str:
    """Take what is from the first brace to the last."""
    return text[max(text.find("{"), 0) : text.rfind("}") + 1]


def around(text: str, key: str) -> str:
    """Take the object around the key."""
    begin = text.rfind("{", 0, max(text.find(json.dumps(key)), 0))
    return text[begin : _DECODER.raw_decode(text, max(begin, 0))[1]]


def bare_or_search(text: str, key: str) -> str:
    """Take the whole text if it is JSON, else the key with the value behind it."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        match = re.search(rf'{json.dumps(key)}\s*:\s*("[^"]*"|null|-?[0-9]+)', text)
        return f"{{{match[0]}}}" if match else ""
    return text
