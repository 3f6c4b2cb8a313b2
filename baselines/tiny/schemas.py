"""Which texts a JSON schema allows in a reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from llm_games.baselines.tiny.client import THOUGHT
from llm_games.schemas import begins, known


def schema_allows(schema: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return whether a text can begin a reply of this schema; an explanation is kept short.

    Raises:
        ValueError: it is not a schema of an object, or has a part that is not `known`.
    """
    properties = schema.get("properties")
    if schema.get("type") != "object" or not properties or not known(schema):
        raise ValueError(
            "json_schema must be an object with properties that are integers, numbers, strings, "
            f"enums, null, arrays, objects of these, or anyOf them; got {schema!r}"
        )
    short = {"explanation": {"type": "string", "maxLength": THOUGHT}}
    kept = {name: short.get(name, part) for name, part in properties.items()}
    return partial(begins, {**schema, "properties": kept})
