"""Command-line settings of the form ``NAME=VALUE``."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from typing import Any

from llm_games.errors import BadParameter


def assigned(
    flag: str, pairs: Sequence[str] | None, example: str, taken: Collection[str] = ()
) -> dict[str, Any]:
    """Read ``NAME=VALUE`` pairs; a value is TOML, or else the text itself.

    Raises BadParameter, naming `flag`, for another form, or a name that comes twice or is `taken`.
    """
    settings: dict[str, Any] = {}
    for pair in pairs or ():
        name, sign, text = pair.partition("=")
        if not sign or not name.strip():
            raise BadParameter(f"{flag} {pair}: write NAME=VALUE, such as {example}")
        if (name := name.strip()) in {*settings, *taken}:
            raise BadParameter(f"{flag} {pair}: {name} is given twice")
        try:
            settings[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            if not text.strip() or set(text) & set("[]{}\"'"):
                raise BadParameter(f"{flag} {pair}: {text!r} is no value of TOML") from None
            settings[name] = text.strip()
    return settings
