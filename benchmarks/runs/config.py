"""What a run is, as somebody writes it in a TOML file, checked before anything runs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator

from llm_games.errors import LLMGamesError
from llm_games.wrappers.clients.base import Sampling
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.mind import Planning

PAPERS = Path(__file__).parents[1] / "papers"
KEYS = "keys are never written down: name the variable that holds it in api_key_env"


class ConfigError(LLMGamesError, ValueError):
    """A configuration that cannot be used; names the file, the key, the value and what is legal."""


class Section(BaseModel):
    """Base of all sections: no unknown keys, no silent conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


_LIMITS: dict[str, Any] = {
    **{key: {"ge": 1, "le": 100} for key in ("max_attempts", "max_tool_calls", "belief_checks")},
    "plan_reasks": {"ge": 0, "le": 100},
}
_WRITTEN = {"prompt_folder": str, "memory": Any, "tools": list[str]}
"""Settings that a file writes otherwise than Python: tools by their names."""


def _asked() -> dict[str, Any]:
    """Return the fields of all settings of `Sampling`, `LLMPolicy` and `Planning`."""
    limits = {one.name: one.metadata["limits"] for one in fields(Sampling)} | _LIMITS
    hints: dict[str, Any] = {}
    for declared in (Sampling, LLMPolicy.__init__, Planning):
        hints |= get_type_hints(declared)
    for name in ("client", "name", "sampling", "drawing", "return"):
        hints.pop(name)
    return {
        name: (_WRITTEN.get(name, hint) | None, Field(default=None, **limits.get(name, {})))
        for name, hint in hints.items()
    }


class PlayerSection(create_model("Asked", __base__=Section, **_asked())):  # type: ignore[misc]
    """How a player that asks a language model is asked; see `LLMPolicy`. None: its default.

    Planning settings make it plan, see `Planning`. Tools are names of `baselines.tools`, or
    ``NAME:always`` to be told anyway.
    """

    @field_validator("memory")
    @classmethod
    def _amount(cls, value: Any) -> Any:
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if value is not None and value not in ("full", "none") and not whole:
            raise ValueError('must be "full", "none" or a number of decisions, at least 0')
        return value

    def given(self) -> dict[str, Any]:
        """Return the values that were given."""
        return self.model_dump(exclude_none=True)


class ServerSection(Section):
    """Where a language model is and how it is called. None: the client's default."""

    base_url: str | None = None
    api_key_env: str | None = None
    """the environment variable that holds the key"""
    api_key_file: str | None = None
    """a file that holds the key"""
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """seconds for one call"""
    retries: int | None = Field(default=None, ge=0, le=100)
    max_in_flight: int | None = Field(default=None, ge=1, le=10_000)
    """most calls at the same time; fewer while the server refuses some as too many"""
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    """what the server allows, prompts and replies together"""
    cache: bool | None = None
    """keep replies and serve them again, also at a temperature above 0; false: never. By default
    only those at temperature 0, if the run has a cache"""
    device: str | None = None
    """where a local model runs, such as ``cuda``"""
    dtype: str | None = None

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an address such as http://127.0.0.1:8000/v1")
        if parts.username or parts.password:
            raise ValueError(KEYS)
        return value


class ModelSection(ServerSection, PlayerSection):
    """``[models.NAME]``: a model that seats refer to as ``openai:NAME``."""

    model: str | None = None
    """the model's name at the server; NAME by default"""


class SeatSection(ServerSection, PlayerSection):
    """One player: a spec such as ``"tiny"``, or a table with `player` and settings."""

    player: str = Field(min_length=1)
    """such as ``tiny``; in a game's own seats also ``default``: the run's player at this seat"""
    name: str | None = Field(default=None, min_length=1)
    """how reports call it; `player` by default"""


Money = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PriceSection(Section):
    """``[prices."MODEL"]``: a million tokens of this model, by its name at the server."""

    input: Money = 0.0
    output: Money = 0.0


class BudgetSection(Section):
    """``[budget]``: the most that a run may spend, and each seat over all its episodes."""

    calls: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    """of prompts and replies together"""
    money: Money | None = None
    """in the currency of the prices"""
    calls_per_seat: int | None = Field(default=None, ge=1)
    tokens_per_seat: int | None = Field(default=None, ge=1)
    money_per_seat: Money | None = None


S = TypeVar("S", bound=Section)


def _as_table(value: Any) -> Any:
    return {"player": value} if isinstance(value, str) else value


class GameSection(Section):
    """``[[games]]``: one game at one setting."""

    game: str
    label: str | None = Field(default=None, min_length=1)
    """how it is called in this run; the game's name by default"""
    params: dict[str, Any] = {}
    given: dict[str, Any] = {}
    """by name, what chance would else decide, in all its episodes"""
    seats: list[SeatSection] | None = Field(default=None, min_length=1)
    episodes: int | None = Field(default=None, ge=1, le=100_000)
    max_steps: int | None = Field(default=None, ge=1)
    """stops an episode that has no end; such an episode is void"""
    order: Literal["fixed", "shuffled"] = "fixed"
    """``shuffled``: players change seats in every episode, what is personal goes with them"""
    series: bool = False
    """episodes are played one after another, and players recall what they noted down before"""

    @field_validator("seats", mode="before")
    @classmethod
    def _tables(cls, value: Any) -> Any:
        return [_as_table(seat) for seat in value] if isinstance(value, list) else value


class Config(Section):
    """The whole file."""

    title: str = "Untitled run"
    episodes: int = Field(default=1, ge=1, le=100_000)
    """of each game"""
    seed: int = Field(default=1, ge=0, lt=2**63)
    """all randomness comes from it; episode i of a label has the same seed whoever plays"""
    common_chance: bool = False
    """labels of one game share their episodes' seeds, so that settings meet the same chance"""
    seats: list[SeatSection] = Field(default=[SeatSection(player="tiny")], min_length=1)
    """one player for all seats, or one for each"""
    failed_reply: str = "fallback"
    """for games that do not say otherwise: ``fallback`` or ``void_run``"""
    scoring: str = "corrected"
    """which edition of the papers' formulas the scores that are shown have"""
    max_attempts: int = Field(default=3, ge=1, le=100)
    """completions asked for one decision, at most"""
    max_tables: int = Field(default=64, ge=1, le=10_000)
    """episodes played at the same time"""
    max_failures: int = Field(default=25, ge=1)
    """so many calls in a row without a completion stop the run, to be resumed"""
    player: PlayerSection = PlayerSection()
    """for all players that ask a language model"""
    cache: str | None = Field(default=None, min_length=1)
    """a file in which replies are kept, see `Server`; several runs may share it"""
    budget: BudgetSection = BudgetSection()
    prices: dict[str, PriceSection] = {}
    models: dict[str, ModelSection] = {}
    vary: list[PlayerSection] = []
    """each game is played once with each of these, which win over all other settings"""
    games: list[GameSection] = Field(min_length=1)

    _tables = field_validator("seats", mode="before")(GameSection._tables.__func__)  # type: ignore[attr-defined]

    @field_validator("scoring")
    @classmethod
    def _edition(cls, value: str) -> str:
        from llm_games.benchmarks.runs.paper import editions

        if value not in editions():
            *first, last = map(repr, editions())
            raise ValueError(f"it should be {', '.join(first)} or {last}")
        return value


def experiments() -> dict[str, list[str]]:
    """Return the names of the experiments that come with the package, by group."""
    folders = sorted(folder for folder in PAPERS.iterdir() if any(folder.glob("*.toml")))
    return {
        folder.name.replace("_", "-"): sorted(file.stem for file in folder.glob("*.toml"))
        for folder in folders
    }


def named(name: str) -> Path | None:
    """Return the file that a name on the command line means: ``gamma-bench``, ``gamma-bench/NAME``.

    None if it is no such name.

    Raises:
        ConfigError: the set of experiments exists, the experiment does not.
    """
    group, _, experiment = name.partition("/")
    folder = PAPERS / group.replace("-", "_")
    if group not in experiments() or Path(name).is_file():
        return None
    path = folder / f"{experiment or 'vanilla'}.toml"
    if not path.exists():
        known = experiments()[group]
        raise ConfigError(
            f"{group} has no experiment {experiment!r};{_nearest(experiment, known)} "
            f"known: {', '.join(known)}"
        )
    return path


def load(source: str) -> dict[str, Any]:
    """Return the raw content of the file that `source` means, or of `source` if it is TOML.

    Raises:
        ConfigError: there is no such file, or it is not TOML.
    """
    if "\n" in source:
        return _toml(source, "configuration")
    path = named(source) or Path(source)
    try:
        return _toml(path.read_text("utf-8"), source)
    except FileNotFoundError:
        known = list(experiments())
        near = _nearest(source, known)
        raise ConfigError(
            f"there is no file {source};{near} give a TOML file, or one of: {', '.join(known)}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{source} cannot be read: {error}") from None


def _toml(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not valid TOML: {error}") from None


def parse(raw: Mapping[str, Any], source: str | Path) -> Config:
    """Check a raw configuration.

    Raises:
        ConfigError: it has unknown keys or impossible values; names all of them.
    """
    return checked(Config, raw, source)


def checked(section: type[S], raw: Mapping[str, Any], source: str | Path) -> S:
    """Check one raw section; raises as `parse` does."""
    try:
        return section.model_validate(raw)
    except ValidationError as error:
        problems = [_problem(dict(found), section) for found in error.errors(include_url=False)]
        raise ConfigError("\n".join(f"{source}: {problem}" for problem in problems)) from None


def _problem(found: dict[str, Any], section: type[Section]) -> str:
    where, value = found["loc"], found["input"]
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in where).lstrip(".")
    if found["type"] == "extra_forbidden":
        if "key" in str(where[-1]).lower() and "api" in str(where[-1]).lower():
            return f"{path} cannot be set here; {KEYS}"
        keys = _keys(where[:-1], section)
        return (
            f"there is no key {path};{_nearest(str(where[-1]), keys)} known here: {', '.join(keys)}"
        )
    if found["type"] == "missing":
        return f"the key {path} is missing"
    said = found["msg"].removeprefix("Value error, ").replace("Input", "it")
    return f"{path} = {_short(value)}: {said}"


def _keys(where: tuple[Any, ...], whole: type[Section]) -> list[str]:
    """Return the keys that a section may have."""
    sections: dict[Any, type[BaseModel]] = {
        "player": PlayerSection,
        "vary": PlayerSection,
        "models": ModelSection,
        "seats": SeatSection,
        "games": GameSection,
        "budget": BudgetSection,
        "prices": PriceSection,
    }
    section = next((sections[key] for key in reversed(where) if key in sections), whole)
    return list(section.model_fields)


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f" did you mean {near[0]!r}?" if near else ""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
