"""What a run is, as somebody writes it in a TOML file, checked before anything runs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, create_model, field_validator, model_validator

from llm_games import game_rooms as rooms
from llm_games.baselines import scenarios
from llm_games.benchmarks.judge.paper import PAPERS
from llm_games.benchmarks.record.checked_table import (
    KEYS,
    AtOnce,
    ConfigError,
    Count,
    Episodes,
    Money,
    Order,
    Settings,
    Text,
    Tries,
    checked,
    nearest,
)
from llm_games.errors import LLMGamesError
from llm_games.wrappers.clients.base import Sampling
from llm_games.wrappers.clients.prices import Price
from llm_games.wrappers.clients.secrets import SECRETIVE
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.mind import Planning

SCENARIOS, GRADED = "scenarios", "graded"
SAMPLING = tuple(field.name for field in fields(Sampling))


def _asked() -> dict[str, Any]:
    """Fields of `Sampling`, `LLMPolicy` and `Planning`."""
    hints: dict[str, Any] = {}
    for declared in (Sampling, LLMPolicy.__init__, Planning):
        hints |= get_type_hints(declared)
    for name in ("client", "name", "sampling", "drawing", "return"):
        hints.pop(name)
    hints |= {
        "prompt_folder": str,
        "memory": Any,
        "tools": list[str],
        "ask": list[str],
    }  # not as in Python
    hints |= dict.fromkeys(("max_attempts", "max_tool_calls", "belief_checks"), Tries)
    hints["plan_reasks"] = Annotated[int, Field(ge=0, le=100)]
    hints |= dict.fromkeys(SAMPLING, Any)  # checked by `Sampling` itself
    return {name: (hint | None, None) for name, hint in hints.items()}


class PlayerSettings(create_model("Asked", __base__=Settings, **_asked())):  # type: ignore[misc]
    """How a player that asks a language model is asked; see `LLMPolicy`. None: its default.

    Planning settings make it plan. Tools are names of `baselines.tools`, or ``NAME:always``.
    """

    @field_validator(*SAMPLING)
    @classmethod
    def _option(cls, value: Any, info: ValidationInfo) -> Any:
        if value is not None:
            Sampling(**{str(info.field_name): value})
        return value

    @field_validator("memory")
    @classmethod
    def _amount(cls, value: Any) -> Any:
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if value is not None and value not in ("full", "none") and not whole:
            raise ValueError('must be "full", "none" or a number of decisions, at least 0')
        return value

    def given(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


class ServerSettings(Settings):
    """Where a model is and how it is called, see `add_layers`. None: the client's default."""

    base_url: str | None = None
    api_key_env: str | None = None  # the environment variable that holds the key
    api_key_file: str | None = None
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)  # seconds for one call
    max_wait: float | None = Field(default=None, ge=0, allow_inf_nan=False)  # for it, by a call
    max_in_flight: AtOnce | None = None  # fewer while the server refuses some as too many
    batch: bool | None = None  # calls of all tables go out together, as batches at half the price
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None  # prompts and replies together
    cache: bool | None = None  # true: replies are kept also at a temperature above 0
    leave_out: list[Text] | None = None  # options that are never sent
    headers: dict[str, str] | None = None  # ``env:NAME`` stands for an environment variable
    service_tier: Text | None = None
    stream: bool | None = None  # answers in pieces, for gateways that cut silent connections
    tool_calls: Literal["auto", "native", "json"] | None = None
    device: str | None = None  # where a local model runs, such as ``cuda``
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

    @field_validator("headers")
    @classmethod
    def _no_secrets(cls, headers: dict[str, str] | None) -> dict[str, str] | None:
        for name, value in (headers or {}).items():
            if SECRETIVE.search(name) and "env:" not in value:
                raise ValueError(f'keys are never written down: {name} = "env:VARIABLE" names one')
        return headers


class ModelSettings(ServerSettings, PlayerSettings):
    """``[models.NAME]``: a model that seats refer to as ``openai:NAME``."""

    model: str | None = None  # its name at the server; NAME by default


class SeatSettings(ServerSettings, PlayerSettings):
    """One player: a spec such as ``"tiny"``, or a table with `player` and settings."""

    player: Text  # in a game's own seats also ``default``: the run's player at this seat
    name: Text | None = None  # how reports call it; `player` by default

    @model_validator(mode="before")
    @classmethod
    def _client(cls, seat: Any) -> Any:
        """Read ``client = "module:Name"`` as the player ``client:module:Name``."""
        if not isinstance(seat, dict) or not isinstance(seat.get("client"), str):
            return seat
        if "player" in seat:
            raise ValueError("a seat has a player or a client, not both")
        rest = {key: value for key, value in seat.items() if key != "client"}
        return rest | {"player": f"client:{seat['client']}"}


class PriceSettings(Settings):
    """``[prices."MODEL"]``: a million tokens of this model at the server, see `Price`."""

    input: Money = 0.0
    output: Money = 0.0
    cached: Money | None = None  # tokens of prompts that the server had cached; None: as others
    written: Money | None = None  # tokens put into the server's cache; None: as others
    reasoning: Money | None = None  # tokens of thoughts; None: as the rest of a reply
    above: Count | None = None  # tokens of a prompt beyond which `longer` holds for the whole call
    longer: PriceSettings | None = None
    source: str = ""  # where it is from

    def price(self) -> Price:
        exact: Any = {k: Decimal(str(v)) if isinstance(v, float) else v for k, v in self}
        return Price(**exact | {"longer": self.longer and self.longer.price()})


class BudgetSettings(Settings):
    """``[budget]``: the most that a run may spend, and each seat over all its episodes."""

    calls: Count | None = None
    tokens: Count | None = None  # of prompts and replies together
    money: Money | None = None  # in the currency of the prices
    calls_per_seat: Count | None = None
    tokens_per_seat: Count | None = None
    money_per_seat: Money | None = None


class GuestSettings(Settings):
    """``[guests]``: how people and programs play that join by a link."""

    limit: float | None = Field(default=None, gt=0, allow_inf_nan=False)  # seconds for an answer
    lobby: float | None = Field(default=3600, gt=0, allow_inf_nan=False)  # until all have joined
    consent: Text | None = None  # what a person agrees to before playing
    pseudonyms: bool = False  # people are asked for one


class GameSettings(Settings):
    """``[[games]]``: one game at one setting."""

    game: str
    label: Text | None = None  # how it is called in this run; the game's name by default
    chance: Text | None = None  # games with the same one meet the same; the label by default
    params: dict[str, Any] = {}
    talk: dict[str, Any] = {}  # cheap talk before its moves, by the parameters of `Talk`
    given: dict[str, Any] = {}  # by name, what chance would else decide, in all its episodes
    seats: list[SeatSettings] | None = Field(default=None, min_length=1)
    episodes: Episodes | None = None
    max_steps: Count | None = None  # stops an episode that has no end; such an episode is void
    order: Order | None = None  # who sits where in each episode, see `PlannedGame.seatings`
    series: bool = False  # one episode after another; players recall what they noted down before
    success: Text | None = None  # what an episode must come to, such as "score >= 80"
    isomorphs: Count | None = None  # in how many other words and units it is told, see `Disguise`

    @field_validator("seats", mode="before")
    @classmethod
    def _tables(cls, value: Any) -> Any:
        if isinstance(value, (str, Mapping)):  # one for all
            value = [value]
        if value is not None and not isinstance(value, list):
            raise ValueError('it should be a list of players, such as ["tiny"], or one for all')
        return value and [{"player": s} if isinstance(s, str) else s for s in value]

    @field_validator("success")
    @classmethod
    def _success(cls, value: str | None) -> str | None:
        from llm_games.benchmarks.judge.success import Success

        try:
            return value and str(Success.of(value))
        except LLMGamesError as error:
            raise ValueError(str(error)) from None


class Config(Settings):
    """The whole file."""

    title: str = "Untitled run"
    episodes: Episodes = 1  # of each game
    seed: int = Field(default=1, ge=0, lt=2**63)  # all randomness comes from it
    common_chance: bool = False  # all labels of a game meet the same chance
    seats: list[SeatSettings] = Field(default=[SeatSettings(player="tiny")], min_length=1)
    order: Order | None = None  # of games that do not say otherwise; None: mixed tables rotate
    failed_reply: str = "fallback"  # for games that do not say otherwise; or ``void_run``
    scoring: str = "corrected"  # which edition of the papers' formulas shown scores have
    success: Text | None = None  # of games that do not say otherwise, see `Success`
    isomorphs: Count | None = None  # of games that do not say otherwise
    max_attempts: Tries = 3  # completions asked for one decision
    max_tables: AtOnce | None = None  # episodes played at the same time, see `RunPlan.tables`
    player: PlayerSettings = PlayerSettings()  # for all players that ask a language model
    cache: Text | None = None  # a file in which replies are kept; several runs may share it
    budget: BudgetSettings = BudgetSettings()
    prices: dict[str, PriceSettings] = {}
    guests: GuestSettings = GuestSettings()
    models: dict[str, ModelSettings] = {}
    vary: list[PlayerSettings] = []  # each game is played once with each; wins over all settings
    games: list[GameSettings] = Field(min_length=1)

    _tables = field_validator("seats", mode="before")(GameSettings._tables.__func__)  # type: ignore[attr-defined]
    _success = field_validator("success")(GameSettings._success.__func__)  # type: ignore[attr-defined]

    @field_validator("scoring")
    @classmethod
    def _edition(cls, value: str) -> str:
        from llm_games.benchmarks.judge.paper import editions

        if value not in editions():
            *first, last = map(repr, editions())
            raise ValueError(f"it should be {', '.join(first)} or {last}")
        return value


def experiments() -> dict[str, list[str]]:
    """Names of the package's experiments by group."""
    folders = sorted(folder for folder in PAPERS.iterdir() if any(folder.glob("*.toml")))
    return {
        folder.name.replace("_", "-"): sorted(file.stem for file in folder.glob("*.toml"))
        for folder in folders
    } | {SCENARIOS: scenarios.games(), GRADED: list(rooms.ROOMS)}


def _named(name: str) -> Path:
    """Return the file that ``gamma-bench`` or ``gamma-bench/NAME`` means, else that of the path."""
    group, _, experiment = name.partition("/")
    names = experiments().get(group)
    if names is None or Path(name).is_file():
        return Path(name)
    if (experiment or "vanilla") not in names:
        raise ConfigError(
            f"{group} has no experiment {experiment!r};{nearest(experiment, names)} "
            f"known: {', '.join(names)}"
        )
    if group == SCENARIOS:
        return rooms.file(experiment, scenarios.FILE) or Path(name)
    return PAPERS / group.replace("-", "_") / f"{experiment or 'vanilla'}.toml"


def load(source: str) -> dict[str, Any]:
    """Raw content of TOML, its file, or ``gamma-bench/NAME``; ConfigError: there is none."""
    text, name = source, "configuration"
    if source == SCENARIOS and not Path(source).is_file():
        from llm_games.benchmarks.run.scenario_runs import all_of

        return all_of(scenarios.games())
    group, _, game = source.partition("/")
    if group == GRADED and game in ("", *rooms.ROOMS) and not Path(source).is_file():
        from llm_games.benchmarks.run.graded_runs import graded_run

        return graded_run([game] if game else rooms.ROOMS)
    if "\n" not in source:
        try:
            text, name = _named(source).read_text("utf-8"), source
        except FileNotFoundError:
            groups = list(experiments())
            raise ConfigError(
                f"there is no file {source};{nearest(source, groups)} give a TOML file, or one "
                f"of: {', '.join(groups)}"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{source} cannot be read: {error}") from None
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits
        raise ConfigError(f"{name} is not valid TOML: {error}") from None
    if "looks" in raw:
        raise ConfigError(
            f"{name}: looks = {raw['looks']!r}: there are no planned looks any more; leave the key "
            "out, and compare runs once all their episodes are played"
        )
    if "backgrounds" not in raw:
        return raw
    from llm_games.benchmarks.run.scenario_runs import config_of

    return config_of(raw, name)


def parse(raw: Mapping[str, Any], source: str | Path) -> Config:
    """Check a raw configuration; a `ConfigError` names all unknown keys and impossible values."""
    return checked(Config, raw, source, _TABLES)


_TABLES: dict[Any, type[Settings]] = {
    "player": PlayerSettings,
    "vary": PlayerSettings,
    "models": ModelSettings,
    "seats": SeatSettings,
    "games": GameSettings,
    "budget": BudgetSettings,
    "prices": PriceSettings,
    "guests": GuestSettings,
}
