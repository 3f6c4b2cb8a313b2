"""Cross-play as a run: a file with `game` and `players` is one whose games are their line-ups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field, create_model, field_validator

from llm_games.baselines.crossplay import CHANCE, chosen, lineup
from llm_games.benchmarks.record.checked_table import (
    ConfigError,
    Count,
    Episodes,
    Settings,
    checked,
)
from llm_games.benchmarks.run.config import Config, GameSettings, SeatSettings
from llm_games.benchmarks.run.plan import params_of, short
from llm_games.errors import LLMGamesError
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Rulebook
from llm_games.wrappers.guest_seat import KINDS

SHARED = (
    *("title", "seed", "player", "models", "cache", "budget", "prices"),
    *("max_attempts", "max_tables", "failed_reply", "scoring", "success"),
)
"""Keys that mean what they mean in a run."""
_fields = Config.model_fields
_shared = {name: (_fields[name].annotation, _fields[name]) for name in SHARED}
GAME_KEYS = ("params", "talk", "given", "max_steps")


class CrossSettings(create_model("Shared", __base__=Settings, **_shared)):  # type: ignore[misc]
    """The file of a cross-play."""

    game: str
    players: list[SeatSettings] = Field(min_length=2)
    lineups: Literal["all", "one"] | None = None  # see `chosen`
    episodes: Episodes = 20  # of each line-up
    params: dict[str, Any] = Field(default_factory=dict)
    talk: dict[str, Any] = Field(default_factory=dict)
    given: dict[str, Any] = Field(default_factory=dict)
    max_steps: Count | None = None

    _tables = field_validator("players", mode="before")(GameSettings._tables.__func__)  # type: ignore[attr-defined]


def lineup_run(raw: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the configuration of the run that a cross-play is; ConfigError: it cannot be one."""
    if "seats" in raw:
        raise ConfigError(f"{source}: its players take all seats in turn: name no others for seats")
    if "isomorphs" in raw:
        raise ConfigError(
            f"{source}: who plays with each is told in plain words: leave isomorphs out"
        )
    settings = checked(CrossSettings, raw, source)
    if guest := next((seat.player for seat in settings.players if seat.player in KINDS), None):
        raise ConfigError(
            f"{source}: {guest!r} cannot play in a cross-play; give it a seat in a run"
        )
    names = [seat.name or short(seat.player) for seat in settings.players]
    if double := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"{source}: two players are called {double!r}; give one another name")
    try:
        rules = _without_own_seats(settings)
        _, lineups = chosen(len(names), rules.players, settings.lineups)
    except LLMGamesError as error:
        raise ConfigError(f"{source}: {error}") from None
    written = settings.model_dump(exclude_unset=True)
    game = {key: written[key] for key in GAME_KEYS if key in written}
    game |= {"game": settings.game, "chance": CHANCE, "order": "rotate"}
    players = [
        seat.model_dump(exclude_none=True) | {"name": name}
        for seat, name in zip(settings.players, names, strict=True)
    ]
    games = [
        game
        | {"label": lineup(names, counts), "episodes": settings.episodes}
        | {"seats": [players[number] for number in np.repeat(np.arange(len(players)), counts)]}
        for counts in lineups
    ]
    shared = {key: written[key] for key in SHARED if key in written}
    return {"title": "Cross-play"} | shared | {"games": games}


def _without_own_seats(settings: CrossSettings) -> Rulebook:
    """ConfigError: parameters belong to players, who here take all seats."""
    game = GameSettings(**settings.model_dump(include={"game", "params", "talk"}))
    params = params_of(game)
    for name in game_class(settings.game).personal:
        value = params.get(name)
        if isinstance(value, list | tuple) and any(seat_value != value[0] for seat_value in value):
            raise ConfigError(
                f"{name} = {value!r} goes with a player, but in cross-play each player takes each "
                "seat: give one value for all"
            )
    return rulebook(settings.game, **params)
