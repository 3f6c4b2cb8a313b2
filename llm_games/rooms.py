"""The rooms of the games: found by convention, or brought by another package.

A game lives in two rooms: ``llm_games/games/<name>/`` (``rules.py`` and ``wordings/``) and
``baselines/games/<name>/`` (``theory.py``, ``players.py`` and what else its players need). A game
of somebody else has one package with all of these, named by an entry point or registered.
"""

from __future__ import annotations

import sys
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, NamedTuple, cast

from llm_games import games
from llm_games.errors import BadParameter, unknown


class Room(NamedTuple):
    """Where the parts of a game are: its rules (a package, or ``module:Class``), and the rest."""

    rules: str
    players: str = ""


ROOMS: dict[str, Room] = {}
"""All games by name."""


def find(above: str, entry_points: str) -> None:
    """Fill `ROOMS`: our own games, then those of installed packages.

    Args:
        above: the package of the games' rooms on the third floor.
        entry_points: the group by which other packages bring games: ``name = "package.of.game"``.
    """
    for module in iter_modules(games.__path__):
        if module.ispkg:
            ROOMS[module.name] = Room(f"{games.__name__}.{module.name}", f"{above}.{module.name}")
    for point in metadata.entry_points(group=entry_points):
        add(point.name, point.value)


def add(name: str, room: str) -> None:
    """Add a room of another package, or a rulebook alone as ``module:Class``."""
    ROOMS[name] = Room(room, "" if ":" in room else room)


def part(game: str, name: str) -> ModuleType | None:
    """Return a module of a game's room on the third floor, such as ``players``; None if none."""
    above = ROOMS[game].players if game in ROOMS else ""
    module = f"{above}.{name}"
    if module in sys.modules:  # looked for at every move
        return sys.modules[module]
    if not above or find_spec(above) is None or find_spec(module) is None:
        return None
    return import_module(module)


def rules_class(game: str) -> type:
    """Return a game's class of rules.

    Raises:
        UnknownName: there is no such game.
        BadParameter: its room has no ``rules.py`` with one class of that name.
    """
    if game not in ROOMS:
        raise unknown("game", game, ROOMS)
    module, _, attribute = ROOMS[game].rules.partition(":")
    module = module if attribute else f"{module}.rules"
    try:
        rules = import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # something that it imports
        raise BadParameter(f"the room of {game!r} has no module {module}") from None
    if attribute:
        found: Any = getattr(rules, attribute, None)
        if not hasattr(found, "name"):
            raise BadParameter(f"{module} must define {attribute}, the rulebook of {game!r}")
        return cast(type, found)
    own = [v for v in vars(rules).values() if isinstance(v, type) and vars(v).get("name") == game]
    if len(own) != 1:
        raise BadParameter(
            f"{rules.__name__} must define one class with name = {game!r}, has {len(own)}"
        )
    return own[0]


def wordings(game: str) -> Path | None:
    """Return the folder of a game's wordings, if its room has one."""
    if game not in ROOMS or ":" in ROOMS[game].rules:
        return None
    spec = find_spec(ROOMS[game].rules)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "wordings"
