"""Calls of tools that models write in tags, in the formats of GLM, Qwen's coders and Claude."""

from __future__ import annotations

import json
import re


def _until(end: str, *stops: str) -> str:
    """Return a linear-time pattern of all text before a tag, which other tags end too."""
    return rf"(?:[^<]++|<(?!{'|'.join((end, *stops))}))*+"


_CALL = re.compile(
    r"<tool_call>\s*+(?:(?P<glm>[\w.-]++)\s*+(?=<arg_key>|</tool_call>)"
    rf"|<function=(?P<qwen>[\w.-]++)>)(?P<body>{_until('/tool_call>', 'tool_call>')})</tool_call>"
    rf"|<function=(?P<bare>[\w.-]++)>(?P<inside>{_until('/function>', 'function=')})</function>"
    r"|<invoke name=\"(?P<invoke>[\w.-]++)\">"
    rf"(?P<parameters>{_until('/invoke>', 'invoke ')})</invoke>"
)
_ARGUMENT = re.compile(
    r"<arg_key>\s*+(?P<glm>[^<]{1,100}+)</arg_key>\s*+"
    rf"<arg_value>(?P<value>{_until('/arg_value>', 'arg_')})</arg_value>"
    r"|<parameter(?:=|\s++name=\")(?P<name>[^<>\"]{1,100}+)\"?>"
    rf"(?P<text>{_until('/parameter>', 'parameter')})</parameter>"
)


def calls_as_json(text: str) -> str:
    """Return the text with each call in tags written as ``{"name": …, "arguments": {…}}``."""
    if "<function=" in text or "<arg_key>" in text or "<invoke " in text:
        return _CALL.sub(_json_of, text)
    return text


def _json_of(match: re.Match[str]) -> str:
    name = match["glm"] or match["qwen"] or match["bare"] or match["invoke"]
    body = match["body"] or match["inside"] or match["parameters"] or ""
    pairs = (
        (each["glm"] or each["name"], each["value"] or each["text"] or "")
        for each in _ARGUMENT.finditer(body)
    )
    arguments = ", ".join(f"{json.dumps(k.strip())}: {_value(v.strip())}" for k, v in pairs)
    return f'{{"name": {json.dumps(name)}, "arguments": {{{arguments}}}}}'


def _value(text: str) -> str:
    """Return a value as it is if it is JSON, else as a JSON string."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return json.dumps(text)
    return text
