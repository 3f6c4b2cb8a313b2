"""Parsers of servers' completions, streams and refusals. Nothing in answers is trusted."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from llm_games.wrappers.clients.base import Completion

LONGEST_TEXT = 2_000_000  # characters, more than any model writes: the rest is cut off
LONGEST_WORDS = 10_000  # characters of what a server says of an error that are read
REPLY = "reply"  # how the form of an answer is called where a server wants a name for it

LIMITS = ("max_completion_tokens", "max_tokens")  # OpenAI's name, and that of most

USUAL = 4  # bytes of a text that a token usually has

_FINISH = {
    "length": "length max_tokens max_output_tokens model_length model_context_window_exceeded",
    "refusal": "content_filter refusal safety sensitive recitation blocklist prohibited_content "
    "spii",
    "broken": "error abort cancelled failed network_error insufficient_system_resource",
}
_ENDS = {word: kind for kind, words in _FINISH.items() for word in words.split()}

_OF_ACCOUNTS = 401, 402, 403, 429  # of a key, money or pace, whatever the words say beside it
_TOO_LONG = re.compile(
    r"context_length_exceeded|ContextWindowExceeded|exceed_context_size|tokens_limit_reached"
    r"|(context|prompt) (length|size|window|limit)|context the overflows|context size has been"
    r"|too many (input )?tokens in|(prompt|input) is too long|prompt \(length \d+\) is longer"
    r"|prompt exceeds max|prompt too long|prompt token count|token length exceed"
    r"|input token count.*exceeds|input tokens? exceed|input length .{0,20}(should be|exceeds)"
    r"|tokens.? \+ .max_new_tokens|.inputs. must have less than|exceeded model token limit"
    r"|current length is.*while limit is|maximum input length|reduce the length of the messages"
    r"|exceeds the maximum number of tokens|string too long. expected a string with maximum length"
    r"|expected maxLength|request_too_large|tokens must be at least 1, got -",
    re.I | re.S,
)
_TOO_LARGE = re.compile(r"request too large|(input|message) .{0,40}must be reduced", re.I)
"""A prompt of more tokens than a minute has: no wait mends it."""
_BROKE = re.compile(
    r"insufficient_quota|billing_(hard_limit|not_active|error)|credit balance|spend_limit|"
    r"insufficient[ _](balance|credit|fund)|out of credits|exceeded_current_quota|arrearage|"
    r"budget_?exceeded|exceeded.?budget|budget has been exceeded|quotaId\W+\w+PerDay|"
    r"usage_limit_(exceeded|reached)|API usage limits|overdue.?payment|"
    r"usage (credits )?(is|are) required",
    re.I,
)
_WRONG_KEY = re.compile(
    r"invalid_api_key|API_KEY_INVALID|api.?key.{0,20}(not valid|invalid|incorrect|expired)|"
    r"incorrect api.?key|authentication_error|UnrecognizedClient|ExpiredToken|InvalidSignature",
    re.I,
)
_NO_MODEL = re.compile(
    r"model_?not_?found|(invalid|unknown) model|model\b.{0,80}(not? exist|not found|not a valid|"
    r"identifier is invalid)|not found the model",
    re.I | re.S,
)
_FILTERED = re.compile(
    r"content_filter|content management policy|ResponsibleAIPolicy|ContentPolicyViolation"
    r"|content_policy_violation|\binvalid_prompt\b|data_?inspection_?failed"
    r"|inappropriate content|flagged.input|requires moderation|\bwas flagged\b|safety system"
    r"|unsafe or sensitive content|content exists risk|considered high risk",
    re.I,
)
_TOO_LONG_CODES = frozenset({"1261"})
_FILTER_CODES = frozenset({"1301"})
_BROKE_CODES = frozenset(["1113", "1304", *map(str, {*range(1308, 1322)} - {1312})])
"""Numbers by which Z.ai names a prompt that is too long, its filter, and what is used up."""
_LONGEST_RESET = 60.0  # seconds to wait at most until a limit is whole again: less may do
_UNITS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{0,12})?) ?(ms|milli|[smhd])[a-z]*", re.I)
_LATER = re.compile(rf"(?:try again|retry)(?: in| after)? ((?:{_SPAN.pattern}[ ,]*)+)", re.I)
_REFUSING = re.compile(
    r"\bno\b|\bun(supported|known|expected|recogni[sz]ed)|\bin(valid|compatible)|\b(not|n't) \w+"
    r"|\bonly\b|\bextra\b|\brequires?\b|\bmust\b|should be|cannot|deprecated|ignored",
    re.I,
)
_SIZE = re.compile(
    r"too (large|big|high|many)|at most|maximum|exceed|less than|up to|range|<=", re.I
)
_KIND = re.compile(r"json.?schema|json.?object|response_format.{0,3}type|\btype\b", re.I)
_WORDS = {  # how servers call some options beside their names
    "response_format": [
        r"json.?(schema|mode|object)|structured.?output|output.?(schema|format)|guided"
        r"|output_?config\.format"
    ],
    "tools": [r"tools param|tool.?choice|tool.?call|function.?call|\btool\b|support.? tools"],
    "reasoning_effort": [r"reasoning\.effort|thinking.?(level|budget)"],
    "stop": [r"stop.?sequences"],
    "cache_control": [r"cache.?point|prompt.?caching"],
}


# -- completions ----------------------------------------------------------------------------------


def read(answer: Any, offered: Collection[str] = (), size: int = 0) -> Completion:
    """Read chat completions with calls of `offered` tools; ValueError says why it is none.

    `size` is the prompt's in bytes, to share out a count that is of prompt and reply.
    """
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        fields = {name: message.get(name) for name in ("content", "refusal", "tool_calls")}
        finish_reason = str(choice.get("finish_reason")).lower()
    except (LookupError, TypeError, AttributeError):
        fault = isinstance(answer, dict) and answer.get("error")
        raise ValueError(str(fault or "no choices")[:300]) from None
    if _ENDS.get(finish_reason) == "broken":
        raise ValueError(f"it ended with {finish_reason!r}: {str(choice.get('error') or '')[:200]}")
    texts, thoughts, refusals = _parts(fields["content"])
    refusals += [fields["refusal"]] if isinstance(fields["refusal"], str) else []
    calls = []
    for name, arguments in _calls(message):
        if name in offered or (offered and name != REPLY):
            calls.append({"name": name, "arguments": _loaded(arguments)})
        else:  # the answer, in the form of a call
            texts.append(arguments if isinstance(arguments, str) else json.dumps(arguments))
    text, refusal = "\n\n".join(filter(None, texts)), "".join(refusals)
    if choice.get("finish_reason") is None and not (text or refusal or calls):
        raise ValueError("neither a text nor how it ended")
    finish: Any = "refusal" if refusal else _ENDS.get(finish_reason, "stop")
    return Completion(
        text=text[:LONGEST_TEXT],
        finish="length" if len(text) > LONGEST_TEXT else finish,
        model=str(answer.get("model") or ""),
        thoughts=("".join(thoughts) or _thoughts(message))[:LONGEST_TEXT],
        refusal=refusal[:LONGEST_TEXT],
        tool_calls=calls or None,
        **_tokens(answer.get("usage"), size),
    )


def _parts(content: Any) -> tuple[list[str], list[str], list[str]]:
    """Return the texts, thoughts and refusals of a content: a text, or a list of parts."""
    if content is None or isinstance(content, str):
        return [content or ""], [], []
    if not isinstance(content, list):
        raise ValueError(f"content of type {type(content).__name__}")
    texts, thoughts, refusals = [], [], []
    for part in content:
        part = {"type": "text", "text": part} if isinstance(part, str) else part
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("thinking", "reasoning"):
            thoughts.append(_text(part, "thinking", "reasoning", "text", "summary", "content"))
        elif kind == "refusal":
            refusals.append(_text(part, "refusal"))
        elif kind in (None, "text", "output_text"):
            texts.append(_text(part, "text", "content"))
    return ["".join(texts)], thoughts, refusals


def _text(part: Any, *names: str) -> str:
    """Return the first text under one of these names; it may be a list of parts itself."""
    for name in names:
        text = part.get(name) if isinstance(part, dict) else None
        if isinstance(text, list):
            text = "".join(p if isinstance(p, str) else _text(p, "text", "summary") for p in text)
        if isinstance(text, str) and text:
            return text
    return ""


def _thoughts(message: Mapping[str, Any]) -> str:
    details = message.get("reasoning_details")
    parts = details if isinstance(details, list) else ()
    text = _text(message, "reasoning_content", "reasoning", "thinking")
    return text or "".join(_text(part, "text", "summary") for part in parts)


def _calls(message: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the calls of a message, of today's shape or the one before: name and arguments."""
    calls = message.get("tool_calls") or [{"function": message.get("function_call")}]
    for call in calls if isinstance(calls, list) else ():
        function = _function(call)
        if isinstance(function, dict) and not function.keys().isdisjoint(("name", "arguments")):
            yield str(function.get("name")), function.get("arguments")


def _function(call: Any) -> Any:
    """Return the function of a call; llama.cpp's manual has it flat."""
    return call.get("function", call) if isinstance(call, dict) else None


def _loaded(arguments: Any) -> Any:
    """Return arguments as JSON values; as they are if they are none."""
    try:
        return json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments[:LONGEST_TEXT]


def _tokens(usage: Any, size: int) -> dict[str, Any]:
    """Return the counts of tokens; 0 for one that is none, or that cannot be believed."""

    def count(*names: str) -> int:
        value = usage
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str) and re.fullmatch(r"\d{1,10}(\.0+)?", value):
            value = float(value)
        whole = type(value) is int or (isinstance(value, float) and value.is_integer())
        return int(value) if whole and 0 <= value < 10**9 else 0

    prompt, reply = count("prompt_tokens"), count("completion_tokens")
    if not (prompt or reply) and (total := count("total_tokens")):
        prompt = min(total, size // USUAL)
        reply = total - prompt
    thought = count("completion_tokens_details", "reasoning_tokens") or count("reasoning_tokens")
    beside = max(0, count("total_tokens") - prompt - reply) if prompt else 0
    cached = count("prompt_tokens_details", "cached_tokens") or count("prompt_cache_hit_tokens")
    cached = cached or count("cached_tokens")
    written = count("prompt_tokens_details", "cache_write_tokens")
    written = written or count("cache_creation_input_tokens")  # LiteLLM's way
    return {
        "tokens_in": prompt,
        "tokens_out": reply + beside,  # some count thoughts beside the reply, in the total alone
        "tokens_cached": min(cached, prompt),
        "tokens_written": min(written, prompt - min(cached, prompt)),
        "tokens_reasoning": min(max(thought, beside), reply + beside),
    }


class Stream:
    """Puts the pieces of a streamed answer together, to what would have come in one."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._details: list[Any] = []
        self._calls: dict[str, dict[str, str]] = {}
        self._places: dict[int, str] = {}
        self._whole: dict[str, Any] = {}
        self.finish: Any = None  # how it ended; None: it has not

    def add(self, chunk: Any) -> None:
        if not isinstance(chunk, dict):
            return
        self._whole |= {n: chunk[n] for n in ("model", "usage") if chunk.get(n)}
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        if choice.get("usage"):  # Moonshot's way
            self._whole["usage"] = choice["usage"]
        self.finish = choice.get("finish_reason") or self.finish
        delta = choice.get("delta") or choice.get("message")
        for name, value in (delta if isinstance(delta, dict) else {}).items():
            if name == "content" and isinstance(value, list):
                names = ("content", "reasoning", "refusal")
                for key, pieces in zip(names, _parts(value), strict=True):
                    self._texts.setdefault(key, []).extend(pieces)
            elif name == "reasoning_details" and isinstance(value, list):
                self._details += value
            elif name == "tool_calls" and isinstance(value, list):
                for index, call in enumerate(value):
                    self._call(call, index)
            elif isinstance(value, str):
                self._texts.setdefault(name, []).append(value)

    def _call(self, piece: Any, index: int) -> None:
        """Add a piece of a call: of the call with its index, its id, or its position."""
        function = _function(piece)
        if isinstance(function, dict):
            if piece.get("index") is not None:
                key = str(piece["index"])
            elif piece.get("id"):
                key = self._places[index] = str(piece["id"])
            else:
                key = self._places.get(index, str(index))
            call = self._calls.setdefault(key, {"name": "", "arguments": ""})
            for name in call:
                fragment = function.get(name)
                if isinstance(fragment, str) and (name, fragment) != ("name", call["name"]):
                    call[name] += fragment  # vLLM may tell the name with each piece

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {name: "".join(pieces) for name, pieces in self._texts.items()}
        message["reasoning_details"] = self._details
        message["tool_calls"] = [{"function": call} for call in self._calls.values()]
        return self._whole | {"choices": [{"message": message, "finish_reason": self.finish}]}


# -- refusals -------------------------------------------------------------------------------------


def opened(content: Any) -> Any:
    """Parse a body as JSON, else return it as a text."""
    if not isinstance(content, bytes):
        return content
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return content.decode(errors="replace").strip()


def status_in(answer: Any) -> int | None:
    """Return the status of an error that came with a status of success, if it tells one."""
    fault = answer.get("error") if isinstance(answer, dict) else None
    code = str(fault.get("code")) if isinstance(fault, dict) else ""
    return int(code) if re.fullmatch("[45][0-9][0-9]", code) else None


def tells_error(answer: Any) -> bool:
    """Test whether an answer with a status of success is an error all the same."""
    return isinstance(answer, dict) and bool(answer.get("error")) and not answer.get("choices")


def refusal_of(answer: Any) -> dict[str, Any]:
    """Return a refusal's fields: `message`, `loc`, perhaps `code` and `param`."""
    if isinstance(answer, list) and len(answer) == 1:  # Gemini's way
        answer = answer[0]
    fault = answer
    if isinstance(answer, dict):
        fault = answer.get("error") or answer.get("Error") or answer
    fault = fault if isinstance(fault, dict) else {"message": fault}
    fault = {str(name).lower(): value for name, value in fault.items()}  # Amazon writes them large
    detail, extra = fault.get("detail"), fault.get("metadata")
    loc: set[str] = set()
    for entry in detail if isinstance(detail, list) else ():  # FastAPI's way
        location = entry.get("loc") if isinstance(entry, dict) else None
        loc |= set(map(str, location if isinstance(location, list) else ()))
    message = str(fault.get("message") or detail or "refused")
    if isinstance(extra, dict) and isinstance(extra.get("raw"), str):  # what OpenRouter hands on
        message = f"{message} ({extra['raw']})"
    return {**fault, "message": message[:LONGEST_WORDS], "loc": loc}


def too_long(status: int | None, refusal: Mapping[str, Any]) -> bool:
    """Test whether a refusal says that the prompt is too long for the model."""
    if status == 413 or (status == 429 and _TOO_LARGE.search(_all(refusal))):
        return True
    named = str(refusal.get("code")) in _TOO_LONG_CODES
    return status not in _OF_ACCOUNTS and (named or bool(_TOO_LONG.search(_all(refusal))))


def broke(status: int | None, refusal: Mapping[str, Any]) -> bool:
    """Test whether a refusal says that there is no money left, or no quota for long."""
    numbered = str(refusal.get("code")) in _BROKE_CODES
    return status == 402 or numbered or bool(_BROKE.search(_all(refusal)))


def wrong_key(status: int | None, refusal: Mapping[str, Any]) -> bool:
    """Test whether a refusal is for the key, whatever its status."""
    return status == 401 or (_of_call(status) and bool(_WRONG_KEY.search(_all(refusal))))


def no_model(status: int | None, refusal: Mapping[str, Any]) -> bool:
    """Test whether a refusal says that there is no such model, whatever its status."""
    return status == 404 or (_of_call(status) and bool(_NO_MODEL.search(_all(refusal))))


def _of_call(status: int | None) -> bool:
    """Test whether a status is about the call itself, and not a breakdown."""
    return status is None or (status < 500 and status != 429)


def filtered(status: int | None, refusal: Mapping[str, Any]) -> bool:
    """Test whether a filter refused the prompt, which is an outcome (Azure; OpenRouter's 403)."""
    of_call = status in (None, 403) or (400 <= status < 500 and status not in _OF_ACCOUNTS)
    named = str(refusal.get("code")) in _FILTER_CODES
    flagged = isinstance(refusal.get("metadata"), dict) and "flagged_input" in refusal["metadata"]
    return of_call and (named or flagged or bool(_FILTERED.search(_all(refusal))))


def refused(status: int, refusal: Mapping[str, Any], sent: Iterable[str]) -> str | None:
    """Name the one of the options `sent` that a server does not take, if it is for that."""
    if status in _OF_ACCOUNTS or status > 500:
        return None
    if too_long(status, refusal) or filtered(status, refusal):  # whatever else the words hold
        return None
    text, param = refusal["message"], str(refusal.get("param") or "")
    positions = {}
    for name in sent:
        # In an error of the server's own a plain word, such as stop, may mean something else.
        plain = status < 500 or "_" in name
        written = re.escape(name).replace("_", "_?")  # some write topP
        words = rf"(?<![\w-]){written}(?![\w-])" if plain else rf"[\"'`.]{written}[\"'`]"
        if name in re.split(r"[.\[]", param) or name in refusal["loc"]:
            positions[name] = -1
        elif match := re.search("|".join([words, *_WORDS.get(name, ())]), text, re.I):
            positions[name] = match.start()
    first = min(positions, key=lambda name: positions[name], default=None)
    if first is None or (first in LIMITS and _SIZE.search(text)):  # fewer tokens may do
        return None
    says_so = status in (400, 422) or positions[first] < 0 or _REFUSING.search(text)
    return first if says_so else None


def of_kind(refusal: Mapping[str, Any]) -> bool:
    """Test whether this form of answers alone is refused, and not all forms."""
    return bool(_KIND.search(f"{refusal.get('param')} {refusal['message']}"))


def _all(refusal: Mapping[str, Any]) -> str:
    named = " ".join(str(refusal.get(name)) for name in ("code", "type", "status"))
    return f"{named} {refusal['message']} {refusal.get('details') or ''}"[:LONGEST_WORDS]


# -- waits ----------------------------------------------------------------------------------------


def retry_after(headers: Mapping[str, str], body: Mapping[str, Any] | None = None) -> float | None:
    """Read how long a server asks to wait: by `Retry-After`, in words, or by what is used up."""
    body = body or {}
    extra = body.get("metadata")
    extra = extra.get("headers") if isinstance(extra, dict) else None  # what OpenRouter hands on
    all_headers = {**(extra if isinstance(extra, dict) else {}), **headers}
    heads = {str(name).lower(): str(value) for name, value in all_headers.items()}
    date = heads.get("date", "")
    if "retry-after-ms" in heads:
        return _wait(heads["retry-after-ms"] + "ms", date)
    if "retry-after" in heads:
        return _wait(heads["retry-after"], date)
    if words := _LATER.search(str(body.get("message") or "")):
        return _wait(words[1], date)
    waits = [0.0]
    for name, rest in heads.items():
        if "ratelimit" in name and "remaining" in name and re.fullmatch(r"-?0*(\.0*)?|-.*", rest):
            waits.append(_wait(heads.get(name.replace("remaining", "reset"), ""), date) or 0.0)
    return min(max(waits), _LONGEST_RESET) or None


def _wait(value: str, date: str) -> float | None:
    """Return seconds from now, given as a number, a moment by the server's clock, or spans."""
    if re.fullmatch(r"\d{1,20}(\.\d*)?", value):
        number = float(value)  # of today's seconds, or milliseconds, if it is a moment
        return number if number < 1e9 else _until(number / (1000 if number > 1e11 else 1), date)
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(TypeError, ValueError, OverflowError):
            return _until(read(value).timestamp(), date)
    spans = _SPAN.findall(value)
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in spans) if spans else None


def _until(moment: float, date: str) -> float:
    clock = datetime.now(UTC)
    with suppress(TypeError, ValueError):
        clock = parsedate_to_datetime(date)
    return max(0.0, moment - clock.timestamp())
