"""Reading replies: the outcome is a value, never a guess and never an exception."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from llm_games.answer_spans import FINAL, PLAIN, QUOTED, alternative, retracted, standing, undecided
from llm_games.errors import unknown
from llm_games.loose_json import DECODER, Conflict, TooMessy, parts, values
from llm_games.questions import MISSING, BadReply, Integer, Question
from llm_games.xml_calls import calls_as_json

ReplyOutcome = Literal[
    "valid", "unparsable", "out_of_range", "refused", "truncated", "failed", "late", "tool"
]
"""How a reply was read.

``late``: none came in time; ``tool``: it is no answer but calls a tool, and breaks no rule.
"""
Finish = Literal["stop", "length", "refusal", "late"]
"""How a reply ended: by itself, cut off, declined, or not at all in the time that there was."""

LONGEST_KEPT, MOST_KEPT = 200, 2048
"""Characters of replies that a question does not read again, and how many it keeps."""
LENIENCIES = {
    "thoughts": "thoughts, or channels that are not final, were cut off",
    "superseded": "an answer that is called the final one stands after others",
    "quoted": "answers that are quoted, imagined or somebody else's were passed over",
    "wrapper": "it stands under a key such as answer, or is the arguments of a call",
    "key": "the key has other capitals, or blanks around it",
    "quotes": "other quotation marks than JSON's",
    "no quotes": "keys or texts without quotation marks, words of Python",
    "signs": "an equals sign for the colon",
    "comma": "a comma after the last value",
    "comment": "a comment inside",
    "escapes": "backslashes that JSON has not",
    "unit": "the number has the game's own unit, or a dollar sign",
    "thousands": "the number has marks between its thousands",
    "word": "another word for the value, such as withdraw for null",
    "list": "shares in order, without their ranks",
    "bare": "the value alone is the whole reply, or stands in a tag of answers or a box",
    "tags": "a call is written in tags",
}
"""What the reading ``strict`` lets pass, by name."""


@dataclass(frozen=True)
class Reply:
    """A reply as it was read.

    `action` is the answer; `MISSING` unless it is valid, or readable but out of range. `why` tells
    the player what was wrong; `detail` names the broken rule (see `BadReply`) or what is counted of
    a legal answer (`Question.remark`). `leniencies` are those of `LENIENCIES` that it took;
    `beside` are its remarks (`Question.beside`).
    """

    outcome: ReplyOutcome
    action: Any = MISSING
    why: str = ""
    detail: str = ""
    leniencies: tuple[str, ...] = field(default=(), compare=False)
    beside: Mapping[str, Any] = field(default_factory=dict, compare=False)


def read_reply(
    text: str, question: Question, reading: str = "strict", finish: Finish = "stop"
) -> Reply:
    """Read the answer to a question out of a text that ended by `finish`; raises UnknownName alone.

    The question says which JSON objects are answers. By the reading ``strict`` the final one
    counts, see docs/replies.md; by ``take_last``, the last complete one that is no thought; by
    ``published``, what the code of a paper reads at the question's `published` spot, fractions cut
    towards zero.
    """
    if len(text) > LONGEST_KEPT:
        return _read_anew(text, question, reading, finish)
    replies, key = question.replies, (text, reading, finish)
    reply: Reply | None = replies.get(key)
    if reply is None:
        if len(replies) >= MOST_KEPT:
            replies.clear()
        reply = replies[key] = _read_anew(text, question, reading, finish)
    return reply


def _read_anew(text: str, question: Question, reading: str, finish: Finish) -> Reply:
    if reading not in READINGS:
        raise unknown("reading", reading, READINGS)
    if finish == "refusal":
        return Reply("refused", why="the model declined to answer")
    if finish == "late":
        return Reply("late", why="no answer came in time")
    try:
        reply = READINGS[reading](text, question, finish)
    except BadReply as bad:
        reply = _not_legal(bad)
    except TooMessy:
        reply = Reply("unparsable", why="it holds far too many braces, brackets or values")
    if finish == "length" and reply.outcome != "valid":
        return Reply("truncated", why="it was cut off before a complete answer")
    return reply


def split_thoughts(text: str, finish: Finish = "stop") -> tuple[str, str]:
    """Return the thoughts that stand in a text, and the rest of it.

    Those in ``<think>``, ``<thinking>``, ``<thought>``, ``<reasoning>`` or ``[THINK]``; all before
    an end without a beginning; all after a beginning without an end, at the start of the text or
    where it was cut off; all channels but the final one. A tag that is named in a sentence is none.
    """
    if channels := _CHANNEL.findall(text):
        final, thoughts = (
            "\n".join(body.strip() for name, body in channels if (name == "final") is is_final)
            for is_final in (True, False)
        )
        return thoughts, final
    if text.lstrip().startswith("analysis") and "assistantfinal" in text:  # marks that were removed
        thoughts, _, final = text.lstrip()[len("analysis") :].partition("assistantfinal")
        return thoughts, final
    cut, rest, position, opened = list[str](), list[str](), 0, None
    for tag in _TAG.finditer(text):
        begins_here = text[max(0, tag.start() - 20) : tag.start()].rstrip(" \t")[-1:] in _BEFORE_TAG
        if not _END_TAG.match(tag[0]):
            if opened is None and begins_here:
                rest.append(text[position : tag.start()])
                opened, position = tag, tag.end()
        elif opened or begins_here or _AFTER_TAG.match(text, tag.end()):
            cut += [*([] if opened else rest), text[position : tag.start()]]
            rest = rest if opened else []
            opened, position = None, tag.end()
    if opened and (finish == "length" or not "".join(rest).strip()):
        cut.append(text[position:])
    else:
        rest.append(text[opened.start() if opened else position :])
    return "\n".join(thought.strip() for thought in cut), "".join(rest)


# -- the readings ---------------------------------------------------------------------------------


class _FormAnswer(NamedTuple):
    reply: Reply
    standing: int
    begin: int
    end: int


def _strict(text: str, question: Question, finish: Finish) -> Reply:
    thoughts, text = split_thoughts(text, finish)
    if thoughts and not text.strip():
        raise BadReply("format", "it has thoughts only and no answer")
    text, leniencies = _turn(text), {"thoughts"} if thoughts else set[str]()
    plain, text = text, calls_as_json(text)
    leniencies |= {"tags"} if text != plain else set()
    answers = _answers(text, question)
    if not answers and "{" in text and _ESCAPED.search(text):
        text = _ESCAPED.sub(r"\1", text)
        leniencies.add("escapes")
        answers = _answers(text, question)
    if not answers:
        answers = _enclosed(text, question)
    if not answers:
        if finish == "length":  # a number may lack digits
            raise _no_object(question, text)
        answers = [_bare(text, question)]
    counted = [answer for answer in answers if answer.standing != QUOTED]
    if not counted:
        raise BadReply("format", "it has answers in its sentences only, none as its own answer")
    *earlier, last = counted
    others = [answer for answer in earlier if answer.reply != last.reply]
    beside = answers[answers.index(last) + 1 :] if last.standing < FINAL else []
    others += [a for a in beside if a.reply != last.reply and alternative(text[: a.begin])]
    if any(answer.standing >= last.standing or answer.begin > last.begin for answer in others):
        purpose = f" for {json.dumps(question.key)}" if question.key else ""
        raise BadReply("format", f"it gives different answers{purpose}")
    tail, cut = text[last.end :], finish == "length"
    if retracted(tail) or (cut and undecided(text[: last.begin], tail, last.standing)):
        raise BadReply("format", "it takes its answer back")
    leniencies |= {"superseded"} if others else set()
    leniencies |= {"quoted"} if len(counted) < len(answers) else set()
    names = leniencies.union(last.reply.leniencies)
    return dataclasses.replace(last.reply, leniencies=tuple(n for n in LENIENCIES if n in names))


def _take_last(text: str, question: Question, finish: Finish) -> Reply:
    text = split_thoughts(text, finish)[1]
    objects = [obj for value in values(text, plain=True) for obj in _inside(value.value, question)]
    if not objects:
        raise _no_object(question, text)
    return _read(objects[-1], question)


def _published(text: str, question: Question, finish: Finish) -> Reply:
    spot = question.published or outermost
    try:
        obj = DECODER.decode(spot(text, question.key))
        if not isinstance(obj, dict) or not question.holds(obj):
            raise _no_object(question)
        if isinstance(question, Integer):
            question = dataclasses.replace(question, truncate=True)
        return _read(obj, question)
    except (ValueError, RecursionError):
        raise _no_object(question) from None


READINGS: dict[str, Callable[[str, Question, Finish], Reply]] = {
    "strict": _strict,
    "take_last": _take_last,
    "published": _published,
}


def _answers(text: str, question: Question) -> list[_FormAnswer]:
    objects = list(values(text))
    replies = [
        (index, _read(answer, question, names | value.leniencies))
        for index, value in enumerate(objects)
        for answer, names in _held_answers(value.value, question)
    ]
    return _placed(text, [(value.begin, value.end) for value in objects], replies)


def _placed(
    text: str, spans: list[tuple[int, int]], replies: list[tuple[int, Reply]]
) -> list[_FormAnswer]:
    """Return answers, each with the index of its span, with their ranks in the text."""
    differ = any(reply != replies[0][1] for _, reply in replies)
    ends = [0, *(end for _, end in spans)]
    begins = [*(begin for begin, _ in spans), len(text)]
    listed = list[_FormAnswer]()
    for index, reply in replies:
        begin, end, since = begins[index], ends[index + 1], ends[index]
        rank = standing(text, begin, end, since, begins[index + 1], differ)
        gap = text[since:begin]
        if listed and listed[-1].end == since and not gap.strip(" \t\r\n,") and gap.count("\n") < 2:
            rank = min(rank, listed[-1].standing)  # they are listed together
        listed.append(_FormAnswer(reply, rank, begin, end))
    return listed


def _read(obj: dict[str, Any], question: Question, names: frozenset[str] | None = None) -> Reply:
    """Read the object that is the answer; `names`: leniencies so far, None for strict JSON."""
    key = question.key
    try:
        if Conflict.inside(obj.get(key, obj)):
            which = json.dumps(key) if key in obj else "a key"
            raise BadReply("format", f"one object has two values for {which}")
        if names is not None and key in obj:
            value, leniencies = question.mended(obj[key])
            obj, names = obj | {key: value}, names | leniencies
        content = question.answer(obj), question.remark(obj), question.beside(obj)
        reply = Reply("valid", content[0], detail=content[1], beside=content[2])
    except BadReply as bad:
        reply = _not_legal(bad)
    return dataclasses.replace(reply, leniencies=tuple(names or ()))


def _held_answers(
    value: Any, question: Question, names: frozenset[str] = frozenset()
) -> Iterator[tuple[dict[str, Any], frozenset[str]]]:
    """Yield the objects in a value that are answers, itself or under wrappers, with leniencies."""
    if isinstance(value, list) and len(value) == 1:
        yield from _held_answers(value[0], question, names)
    if not isinstance(value, dict):
        return
    whole = _keyed(value, question.key)
    if question.holds(whole):
        yield whole, names | ({"key"} if whole is not value else set())
        return
    name = str(value.get("name")).casefold()
    is_call = name in WRAPPERS or name == question.key.casefold() or _SUBMITTING.fullmatch(name)
    for key, inner in value.items():
        word = key.strip().casefold().replace(" ", "_")
        if word in WRAPPERS or (is_call and word in ARGUMENTS):
            if isinstance(inner, str) and inner.strip()[:1] == "{" and "opened" not in names:
                opened = [match.value for match in values(inner)]
                inner, names = opened if len(opened) == 1 else None, names | {"opened"}
            yield from _held_answers(inner, question, names | {"wrapper"})


def _keyed(obj: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an object with its key as the question spells it, given other capitals or blanks."""
    folded = key.casefold()
    alike = [v for k, v in obj.items() if key and k.strip().casefold() == folded]
    if (key not in obj and alike) or len(alike) > 1:
        others = {k: v for k, v in obj.items() if k.strip().casefold() != folded}
        obj = others | {key: alike[0] if all(v == alike[0] for v in alike) else Conflict()}
    return obj


def _inside(value: Any, question: Question) -> Iterator[dict[str, Any]]:
    """Yield the outermost objects in a value that are answers."""
    if isinstance(value, dict) and question.holds(value):
        yield value
    else:
        for inner in parts(value):
            yield from _inside(inner, question)


def _enclosed(text: str, question: Question) -> list[_FormAnswer]:
    """Return the values in answer tags, or in boxes that stand alone on their lines."""
    matches = list(_ENCLOSED.finditer(text)) if question.bare and question.key else []
    replies = [_value(match[match.lastindex or 0], question) for match in matches]
    readable = [(i, reply) for i, reply in enumerate(replies) if reply.outcome != "unparsable"]
    return _placed(text, [match.span() for match in matches], readable)


def _bare(text: str, question: Question) -> _FormAnswer:
    if len(text) <= LONGEST_BARE and question.bare and question.key:
        reply = _value(text, question)
        if reply.outcome != "unparsable":
            return _FormAnswer(reply, PLAIN, 0, len(text))
    raise _no_object(question, text)


def _value(text: str, question: Question) -> Reply:
    text = _FENCE.sub("", text).strip(_AROUND_VALUE + ">~#")
    text = text.strip("$ ") if text.endswith("$") else text
    text = match[1] if (match := _BOXED.fullmatch(text)) else text
    match = _KEY.match(text)
    if match and match[1].casefold() in (question.key.casefold(), *ANSWER_WORDS):
        text = text[match.end() :]
    text = text.strip(" *`").removesuffix(".")
    try:
        value = DECODER.decode(text)
    except (ValueError, RecursionError):
        value = text.strip("\"'“”‘’")
    value = value.strip(_AROUND_VALUE) if isinstance(value, str) else value
    if value == "":
        return Reply("unparsable")
    return _read({question.key: value}, question, frozenset({"bare"}))


def _turn(text: str) -> str:
    """Cut a text at a mark that ends the turn, or where it goes on as somebody else."""
    begin = len(text) - len(text.lstrip())
    match = _TURN.search(text, begin)
    return text[: match.start()] if match and text[begin : match.start()].strip() else text


def _not_legal(bad: BadReply) -> Reply:
    outcome: ReplyOutcome = "out_of_range" if bad.kind == "range" else "unparsable"
    return Reply(outcome, bad.action, str(bad), bad.detail)


def _no_object(question: Question, text: str = "something") -> BadReply:
    if not text.strip():
        return BadReply("format", "it is empty")
    form = f"with the key {json.dumps(question.key)}" if question.key else "that is an answer"
    return BadReply("format", f"it has no complete JSON object {form}")


_WRAPPING = "answer final final_answer response reply output result action choice decision move"
WRAPPERS = frozenset([*_WRAPPING.split(), "function", "tool_calls"])
"""Keys under which an answer may stand, and names of calls that are one."""
ARGUMENTS = frozenset({"arguments", "parameters", "input"})
_WORDS = (
    "answer|final answer|答案|最终答案|最終答案|回答|最终回答|最終回答|antwort|endgültige antwort|"
    "réponse|réponse finale|respuesta|respuesta final|resposta|resposta final|risposta|"
    "risposta finale|ответ|окончательный ответ|итоговый ответ|답|정답|최종 답|최종 답변"
)
ANSWER_WORDS = frozenset(_WORDS.split("|"))
"""Words before a bare value, in the languages of common models."""
LONGEST_BARE = 1000  # characters
_AROUND_VALUE = " \t\r\n*`"
_SUBMITTING = re.compile(r"(?:submit|place|make|send|give|cast|choose)_\w+")
_ENCLOSED = re.compile(
    rf"<(final[_ -]?answer|answer)>([^<]{{1,{LONGEST_BARE}}}+)</\1>"
    r"|^[ \t>*]*+(?:(?:\\[\[(]|\$\$?)\s*+)?\\boxed\{(?:\\text\{)?+"
    rf"([^{{}}]{{1,{LONGEST_BARE}}}+)\}}{{1,2}}(?:\s*+(?:\\[\])]|\$\$?))?[ \t*.]*+$",
    re.IGNORECASE | re.MULTILINE,
)
_TAG = re.compile(
    r"</?(?:think|thinking|thought|reasoning)>|\[/?THINK\]|<\|(?:begin|end)_of_thought\|>",
    re.IGNORECASE,
)
_END_TAG = re.compile(r"[<\[]/|<\|end", re.IGNORECASE)
_BEFORE_TAG = ("", "\n", ".", "!", "?", ">", "]", "}", "。")
_AFTER_TAG = re.compile(r"[ \t]*+(?:\n|\{|```|\Z)")
_CHANNEL = re.compile(
    r"<\|channel\|>\s*+(\w++)[^<]*+(?:<\|constrain\|>[^<]*+)?<\|message\|>"
    r"((?:[^<]++|<(?!\|(?:end|start|channel|return|call)\|>))*+)"
)
_TURN = re.compile(
    r"</s>|<\|?(?:im_end|eot_id|end|return|end_of_text|endoftext|end_of_turn)\|?>|\n(?:User|Human):"
)
_ESCAPED = re.compile(r'\\(["{}_])')
_FENCE = re.compile(r"```\w*|~~~\w*")
_BOXED = re.compile(r"\\boxed\{(?:\\text\{)?([^{}]*+)\}{1,2}")
_KEY = re.compile(r"[\"'*`]*(\w+(?: \w+)?)[\"'*`]*\s*[:=：][\s*]*")


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
    return text[begin : DECODER.raw_decode(text, max(begin, 0))[1]]


def bare_or_search(text: str, key: str) -> str:
    """Take the whole text if it is JSON, else the key with the value behind it."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        match = re.search(rf'{json.dumps(key)}\s*:\s*("[^"]*"|null|-?[0-9]+)', text)
        return f"{{{match[0]}}}" if match else ""
    return text
