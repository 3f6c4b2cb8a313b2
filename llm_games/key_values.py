"""Settings as they are typed: ``NAME=VALUE``."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from typing import Any

from llm_games.errors import BadParameter


def assigned(
    flag: str, pairs: Sequence[str] | None, such: str, named: Collection[str] = ()
) -> dict[str, Any]:
    """Read ``NAME=VALUE``: a value of TOML, or a word as it is; `named` are given already.

    Raises:
        BadParameter: it is not that, or given twice; names the option `flag` and one `such` value.
    """
    given: dict[str, Any] = {}
    for pair in pairs or ():
        name, sign, text = pair.partition("=")
        if not sign or not name.strip():
            raise BadParameter(f"{flag} {pair}: write NAME=VALUE, such as {such}")
        if (name := name.strip()) in {*given, *named}:
            raise BadParameter(f"{flag} {pair}: {name} is given twice")
        try:
            given[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            if not text.strip() or set(text) & set("[]{}\"'"):
                raise BadParameter(f"{flag} {pair}: {text!r} is no value of TOML") from None
            given[name] = text.strip()
    return given
