"""Objects in a configuration, as one writes it in Python: names take their places.

A function or class of a module is found again by its name; any other by the label that it is handed
over with.
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

KINDS = dict.fromkeys(("seats", "players", "player"), "player")
KINDS |= {"client": "client", "tools": "tool"}
"""What the objects under a key are, in lists or alone."""
PLAIN = (str, int, float, bool, type(None), Mapping)


def written(raw: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A raw configuration with names for objects, and objects by label; ConfigError: no name."""
    objects: dict[str, Any] = {}
    return _table(raw, objects), objects


def _table(raw: Mapping[str, Any], objects: dict[str, Any]) -> dict[str, Any]:
    table = {key: _value(key, entry, raw.get("name"), objects) for key, entry in raw.items()}
    game = table.get("game")
    if isinstance(game, Rulebook):
        table |= {"game": type(game), "params": _params(game) | dict(table.get("params") or {})}
    if not isinstance(table.get("game"), PLAIN):
        table["game"] = _game(table["game"])
    return table


def _value(key: str, entry: Any, label: Any, objects: dict[str, Any]) -> Any:
    if key == "params":
        return _plain(entry)
    if isinstance(entry, Mapping):
        return _table(entry, objects)
    if isinstance(entry, list | tuple):
        return [_value(key, element, None, objects) for element in entry]
    if key not in KINDS or isinstance(entry, PLAIN):
        return entry
    name = name_of(entry) or label or label_of(entry)
    if not isinstance(name, str) or not name or "<" in name:
        raise ConfigError(
            f"{entry!r} cannot be written down: give it a name, as in "
            f'{{"{KINDS[key]}": ..., "name": "mine"}}'
        )
    if name == name_of(entry):
        return name
    if objects.setdefault(name, entry) is not entry:
        raise ConfigError(
            f"two objects are called {name!r}, {objects[name]!r} and {entry!r}: give one another "
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
    """Parameters of a game that differ from their defaults."""
    values = {f.name: (getattr(game, f.name), f.default) for f in dataclasses.fields(game)}
    return _plain({name: value for name, (value, usual) in values.items() if value != usual})


def _plain(parameter: Any) -> Any:
    """As JSON has it; errors are raised where it is written."""
    if isinstance(parameter, Mapping):
        return {name: _plain(element) for name, element in parameter.items()}
    if isinstance(parameter, list | tuple):
        return [_plain(element) for element in parameter]
    return str(parameter) if isinstance(parameter, Fraction) else parameter
