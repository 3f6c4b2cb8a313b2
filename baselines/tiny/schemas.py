"""Which texts a JSON schema allows, for the schemas that this package's own questions have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from llm_games.baselines.tiny.client import explained
from llm_games.questions import Choice, Integer, Question, Real, Target

Allows = Callable[[str], bool]
DECIMALS = 2  # a number's schema does not tell how fine it is


def schema_allows(schema: Mapping[str, Any]) -> Allows:
    """Return whether a text can begin a reply of this schema.

    A plan's shares have to add up to a sum that no schema can tell: only their ranges are kept.

    Raises:
        ValueError: it is not a schema of one of our questions.
    """
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping):
        raise _refused(schema)
    keys = [key for key in properties if key != "explanation"]
    if len(keys) != 1 or not isinstance(properties[keys[0]], Mapping):
        raise _refused(schema)
    allows = _value(keys[0], properties[keys[0]])
    return explained(allows) if "explanation" in properties else allows


def _value(key: str, value: Mapping[str, Any]) -> Allows:
    kinds = value.get("type")
    if isinstance(kinds, list) and "enum" not in value:
        return _any(key, [{**value, "type": kind} for kind in kinds])
    if isinstance(value.get("anyOf"), list):
        return _any(key, value["anyOf"])
    if kinds == "null":
        return f'{{"{key}": null}}'.startswith
    if kinds == "object":
        return _shares(key, value)
    question: Question
    choices, low, high = value.get("enum"), value.get("minimum"), value.get("maximum")
    if isinstance(choices, list) and choices:
        names = {name: i for i, name in enumerate(choices) if isinstance(name, str)}
        if len(names) < len([c for c in choices if c is not None]):
            raise _refused(value)
        target = Target(key, names, {}, {}, nowhere=-2)
        question = target if None in choices else Choice(key, names)
    elif value.get("type") == "integer":
        question = Integer(key, low, high)
    elif value.get("type") == "number" and low is not None and high is not None:
        unit = 10**DECIMALS
        question = Real(key, round(low * unit), round(high * unit), DECIMALS)
    else:
        raise _refused(value)
    return question.allows


def _any(key: str, values: list[Any]) -> Allows:
    if not values or not all(isinstance(value, Mapping) for value in values):
        raise _refused(values)
    parts = [_value(key, value) for value in values]
    return lambda text: any(allows(text) for allows in parts)


def _shares(key: str, value: Mapping[str, Any]) -> Allows:
    """An object of whole numbers, such as a plan: every key in order, each within its range."""
    parts = value.get("properties")
    if not isinstance(parts, Mapping) or not parts:
        raise _refused(value)
    numbers = [_value(name, part) for name, part in parts.items()]
    heads = [f'{{"{key}": {{', *[", "] * (len(parts) - 1)]

    def allows(text: str) -> bool:
        for head, name, number in zip(heads, parts, numbers, strict=True):
            if not text.startswith(head):
                return head.startswith(text)
            pair, text = text[len(head) :], ""
            match = re.match(rf'"{re.escape(name)}": -?\d*', pair)
            if match is None or match.end() == len(pair):
                return number("{" + pair)
            if not number("{" + match[0] + "}"):
                return False
            text = pair[match.end() :]
        return "}}".startswith(text)

    return allows


def _refused(schema: object) -> ValueError:
    return ValueError(
        "json_schema must be an object with one key beside an optional explanation, whose value "
        "is an integer, a number with minimum and maximum (or null), an enum of strings (or null), "
        f"or an object of integers; got {schema!r}"
    )
