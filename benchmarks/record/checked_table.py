"""Tables of a TOML file, checked key by key; a fault names the file, the key and what is legal."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from llm_games.errors import LLMGamesError

KEYS = "keys are never written down: name the variable that holds it in api_key_env"


class ConfigError(LLMGamesError, ValueError):
    """A configuration that cannot be used; names the file, the key, the value and what is legal."""


Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Episodes = Annotated[int, Field(ge=1, le=100_000)]
Tries = Annotated[int, Field(ge=1, le=100)]
Order = Literal["fixed", "rotate", "shuffled"]
AtOnce = Annotated[int, Field(ge=1, le=10_000)]
Money = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Settings(BaseModel):
    """Base of all tables of the file: no unknown keys, no silent conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


S = TypeVar("S", bound=Settings)


def checked(
    section: type[S],
    raw: Mapping[str, Any],
    source: str | Path,
    tables: Mapping[Any, type[BaseModel]] | None = None,
) -> S:
    """Check a raw table; ConfigError names all its faults. `tables` say by key which is inside."""
    try:
        return section.model_validate(raw)
    except ValidationError as error:
        problems = [
            _problem(dict(fault), section, tables or {})
            for fault in error.errors(include_url=False)
        ]
        raise ConfigError("\n".join(f"{source}: {problem}" for problem in problems)) from None


def _problem(
    error: dict[str, Any], whole: type[Settings], tables: Mapping[Any, type[BaseModel]]
) -> str:
    *above, key = location = error["loc"]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)[1:]
    if error["type"] == "extra_forbidden":
        if "key" in str(key).lower() and "api" in str(key).lower():
            return f"{path} cannot be set here; {KEYS}"
        table = next((tables[part] for part in reversed(above) if part in tables), whole)
        fields = list(table.model_fields)
        return f"there is no key {path};{nearest(str(key), fields)} known here: {', '.join(fields)}"
    if error["type"] == "missing":
        return f"the key {path} is missing"
    value, message = repr(error["input"]), error["msg"].removeprefix("Value error, ")
    if error["type"] == "model_type":  # the message would name a class
        message = "Input should be a table"
    shown = value if len(value) <= 60 else f"{value[:57]}..."
    if message.endswith(KEYS) or "headers" in location:
        shown = "(not shown)"
    return f"{path} = {shown}: {message.replace('Input', 'it')}"


def nearest(name: str, names: list[str]) -> str:
    """Return a question that suggests the nearest known name, "" if none is near."""
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    return f" did you mean {near[0]!r}?" if near else ""
