"""Games with drawn parameters, for questions whose answers nobody has read in a paper."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from llm_games import game_rooms as rooms
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.registry import game_class, rulebook

KEPT = ("players", "rounds", "decimals", "window")  # small ones are taken, or they stay
MOST_PLAYERS, ROUNDS = 6, 4
TRIES = 8  # draws of a parameter until the rules take it


def drawn_parameters(name: str, noise: Noise) -> dict[str, Any]:
    """Draw parameters of a game; no drawn number is the default, or one of a preset.

    A room whose numbers are in no declared range draws them in ``theory.drawn``.
    """
    of_room = getattr(rooms.part(name, "theory"), "drawn", None)
    parameters: dict[str, Any] = of_room(noise.of("room")) if of_room else {}
    parameters |= _small(name, noise.of("players"))
    for field in dataclasses.fields(game_class(name)):
        if field.name in KEPT or field.name in parameters:
            continue
        published = {str(value) for value in known_values(name, field.name)}
        for value in _values(field, noise.of(field.name)):
            if str(value) not in published and _builds(name, parameters | {field.name: value}):
                parameters[field.name] = value
                break
    return parameters


def known_values(name: str, parameter: str) -> list[Any]:
    """Return the values that a parameter has by default and in the presets."""
    game = game_class(name)
    default = next(f.default for f in dataclasses.fields(game) if f.name == parameter)
    presets = game.presets.values()
    return [default, *(preset[parameter] for preset in presets if parameter in preset)]


def _small(name: str, noise: Noise) -> dict[str, Any]:
    """Return a few players and rounds, as far as the rules take them."""
    fewest, parameters = max(game_class(name).fewest_players, 3), dict[str, Any]()
    players = int(noise.integers(fewest, max(MOST_PLAYERS, fewest), endpoint=True))
    for key, value in (("players", players), ("rounds", ROUNDS)):
        declared = key in {field.name for field in dataclasses.fields(game_class(name))}
        if declared and _builds(name, parameters | {key: value}):
            parameters[key] = value
    return parameters


def _values(field: dataclasses.Field[Any], noise: Noise) -> Iterator[Any]:
    """Yield values around the default of a whole number, or of a ratio; none of others."""
    default = field.default
    for number in range(TRIES if field.metadata.get("meaning") else 0):
        drawn = noise.of("try", number)
        if type(default) is int and default > 1:
            yield int(drawn.integers(-(-default // 2), 2 * default, endpoint=True))
        elif isinstance(default, Fraction) and default > 0:
            yield str(default * Fraction(int(drawn.integers(5, 13)), 9))


def _builds(name: str, parameters: Mapping[str, Any]) -> bool:
    """Test whether the rules take parameters without a warning, such as of no dilemma."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rulebook(name, **parameters).reset(0)
    except (BadParameter, Warning):
        return False
    return True
