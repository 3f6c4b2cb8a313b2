"""The rooms of the games: found by convention, or added by another package.

A game has ``llm_games/games/<name>/`` (``rules.py`` and ``wordings/``) and
``baselines/games/<name>/`` (``theory.py``, ``players.py`` ...). A user's game has one package with
all of these.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import NamedTuple

from llm_games.errors import BadParameter
from llm_games.import_names import module_of


class Room(NamedTuple):
    """The packages of a game: its rules (or ``module:Class``), and its players and theory."""

    rules: str
    players: str = ""


ROOMS: dict[str, Room] = {}  # all games by name
KINDS: dict[str, str] = {}
"""Kinds of players that floors above the catalogue of players bring: by name, ``module:Kind``."""


def find(below: str, above: str, entry_points: str) -> None:
    """Fill `ROOMS` with our games, then those of entry points, but for names that are taken."""
    for module in iter_modules(import_module(below).__path__):
        if module.ispkg:
            ROOMS[module.name] = Room(f"{below}.{module.name}", f"{above}.{module.name}")
    for point in metadata.entry_points(group=entry_points):
        try:
            add(point.name, point.value)
        except BadParameter as error:  # what else is installed keeps nobody from importing us
            package = point.dist.name if point.dist else point.value
            warnings.warn(f"a game of the package {package} is left out: {error}", stacklevel=2)


def add(name: str, room: str) -> None:
    """Add a room of another package, or a rulebook alone as ``module:Class``, by a new name."""
    if name in ROOMS and ROOMS[name].rules != room:
        raise BadParameter(
            f"the game {name!r} is in the room {ROOMS[name].rules}: give {room} another name"
        )
    module, colon, _ = room.rpartition(":")
    above = module.removesuffix(".rules") if module.endswith(".rules") else ""
    ROOMS.setdefault(name, Room(room, above if colon else room))


def part(game: str, name: str) -> ModuleType | None:
    """Import a module of a game's room on the third floor, such as ``players``; None if missing."""
    above = ROOMS[game].players if game in ROOMS else ""
    module = f"{above}.{name}"
    if module in sys.modules:  # looked for at every move
        return sys.modules[module]
    if not above or find_spec(above) is None or find_spec(module) is None:
        return None
    return import_module(module)


def drawing(game: str) -> ModuleType | None:
    """Return ``drawing.py`` of a game's room on the first floor, if it has a picture of its own.

    Its ``draw(rulebook, state, title)`` returns a `pictures.Drawing`; others have a
    `charts.seat_chart`.
    """
    room = ROOMS[game].rules if game in ROOMS else ""
    if not room or ":" in room or find_spec(f"{room}.drawing") is None:
        return None
    return import_module(f"{room}.drawing")


def file(game: str, name: str) -> Path | None:
    """Return a file of a game's room on the third floor, such as ``scenarios.toml``; or None."""
    folder = _folder(ROOMS[game].players) if game in ROOMS else None
    path = folder / name if folder else None
    return path if path and path.is_file() else None


def _folder(package: str) -> Path | None:
    spec = find_spec(package) if package else None
    locations = spec.submodule_search_locations if spec else None
    return Path(locations[0]) if locations else None


def wordings(game: str) -> Path | None:
    """Return the folder of a game's wordings: in its room, or beside its rulebook's module."""
    if game not in ROOMS:
        return None
    module, colon, _ = ROOMS[game].rules.rpartition(":")
    if colon:
        file = getattr(module_of(module), "__file__", None)
        beside = Path(file or ".").parent / "wordings"
        return beside if file and beside.is_dir() else None
    folder = _folder(ROOMS[game].rules)
    return folder / "wordings" if folder else None
