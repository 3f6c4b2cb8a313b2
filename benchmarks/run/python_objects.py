"""Objects in a configuration, as one writes it in Python: names take their places.

So a run can be written down. A function or class that its module has is found again by its name;
any other object only by a label, with which it is handed over again to go on with the run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.import_names import OWN, name_of
from llm_games.rulebook import Rulebook
from llm_games.wrappers.user_players import label_of

KINDS = {
    "seats": "player",
    "players": "player",
    "player": "player",
    "client": "client",
    "tools": "tool",
}
"""What the objects under a key are, in lists or alone."""
PLAIN = (str, int, float, bool, type(None), Mapping)


def written(raw: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a raw configuration with names for objects, and by label those that have no name.

    Raises:
        ConfigError: an object has neither name nor label, or two have one label.
    """
    own: dict[str, Any] = {}
    return _table(raw, own), own


def _table(raw: Mapping[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    found = {key: _value(key, value, raw.get("name"), own) for key, value in raw.items()}
    game = found.get("game")
    if isinstance(game, Rulebook):
        found |= {"game": type(game), "params": _params(game) | dict(found.get("params") or {})}
    if not isinstance(found.get("game"), PLAIN):
        found["game"] = _game(found["game"])
    return found


def _value(key: str, value: Any, label: Any, own: dict[str, Any]) -> Any:
    if key == "params":
        return _plain(value)
    if isinstance(value, Mapping):
        return _table(value, own)
    if isinstance(value, list | tuple):
        return [_value(key, one, None, own) for one in value]
    if key not in KINDS or isinstance(value, PLAIN):
        return value
    name = name_of(value) or label or label_of(value)
    if not isinstance(name, str) or not name or "<" in name:
        raise ConfigError(
            f"{value!r} cannot be written down: give it a name, as in "
            f'{{"{KINDS[key]}": ..., "name": "mine"}}'
        )
    if name == name_of(value):
        return name
    if own.setdefault(name, value) is not value:
        raise ConfigError(
            f"two objects are called {name!r}, {own[name]!r} and {value!r}: give one another "
            f'name, as in {{"{KINDS[key]}": ..., "name": "mine"}}'
        )
    return f"{OWN}{name}"


def _game(game: Any) -> str:
    name = name_of(game)
    if name is None:
        raise ConfigError(
            f"the game {game!r} cannot be written down: a game is found again by its name when a "
            "run is resumed, replayed or reported; give a Rulebook class, or one of its "
            "instances, that stands at the top of its module"
        )
    return name


def _params(game: Rulebook) -> dict[str, Any]:
    """Return the parameters of a game that are not the usual, as plain values."""
    values = {f.name: (getattr(game, f.name), f.default) for f in dataclasses.fields(game)}
    return _plain({name: value for name, (value, usual) in values.items() if value != usual})


def _plain(value: Any) -> Any:
    """Return a value of parameters as JSON has it; errors are raised where it is written."""
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Fraction) else value
