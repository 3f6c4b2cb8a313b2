"""Scenarios: tables of held-out partners, after Melting Pot (Agapiou et al., arXiv 2211.13746).

In a scenario some seats are focal: who is to be judged takes them. The others are a background
population of players that it has not met. A room's ``scenarios.toml`` has those of its game::

    game = "NAME"
    episodes = 12                # of each scenario in a run, whose seed is 1 unless it is given
    [params]                     # of the game
    players = 6

    [[backgrounds]]
    name = "givers"
    about = "give everything, whatever the others do"
    players = ["cooperative"]    # for all seats that are not focal, in turn
    focal = ["one", "half", "most"]        # a scenario for each: givers-one, givers-half ...
    train = true                 # training may use it; a run plays those that are held out
    pays = ["fixed:0", "cooperative"]   # the first comes to more in a focal seat than the second
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from llm_games import game_rooms as rooms
from llm_games.errors import BadParameter, LLMGamesError, unknown
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Rulebook

FILE = "scenarios.toml"
FOCAL = ("one", "half", "most")  #: seats that are focal: one, half rounded down, or all but one
KEYS: Mapping[str, type] = {"game": str, "episodes": int, "seed": int, "max_steps": int}
TABLES: Mapping[str, type] = {"title": str, "params": dict, "backgrounds": list}
PARTS: Mapping[str, type] = {"name": str, "about": str, "players": list, "train": bool}
LISTS = {"focal": "some of one, half and most", "pays": "the names of two players"}


@dataclass(frozen=True)
class Scenario:
    """A game's table with some focal seats, and a player in each of the others.

    `pays` names two players, the first the better in one focal seat. `train`: training may use it.
    """

    game: str
    name: str
    about: str
    focal: int
    background: tuple[str, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    train: bool = False
    episodes: int = 12
    max_steps: int | None = None
    pays: tuple[str, ...] = ()

    def rules(self) -> Rulebook:
        return rulebook(self.game, **self.params)

    def opponents(self, others: Any = None) -> list[Any]:
        """Return all players but a learner: `others`, one or one each, in the focal seats first."""
        each = isinstance(others, Sequence) and not isinstance(others, str)
        focal_players = list(others) if each else []
        if others is not None and not focal_players:
            focal_players = [others] * (self.focal - 1)
        if len(focal_players) != self.focal - 1 or (others is not None and self.focal == 1):
            raise BadParameter(
                f"{self.game}, scenario {self.name}, has {self.focal - 1} focal seats beside the "
                f"learner's, whose players are its opponents=; got {others!r}"
            )
        return [*focal_players, *self.background]


def games() -> list[str]:
    return [game for game in rooms.ROOMS if rooms.file(game, FILE)]


def scenarios(game: str) -> dict[str, Scenario]:
    """Return a game's scenarios by name; UnknownName if there are none, BadParameter if invalid."""
    name = game if game in rooms.ROOMS else game_class(game).name
    path = rooms.file(name, FILE)
    if path is None:
        raise unknown("game with scenarios", name, games())
    return read(tomllib.loads(path.read_text("utf-8")), path)


def scenario(game: str, name: str | Scenario) -> Scenario:
    """Return a game's scenario; raises as `scenarios` does, and `UnknownName` where it is none."""
    if isinstance(name, Scenario):
        if name.game != game_class(game).name:
            raise BadParameter(f"the scenario {name.name} is one of {name.game}, not of {game}")
        return name
    scenarios_by_name = scenarios(game)
    if name not in scenarios_by_name:
        raise unknown(f"scenario of {game}", name, scenarios_by_name)
    return scenarios_by_name[name]


def seated_in(
    name: str | Scenario, game: Any, parameters: Mapping[str, Any], others: Any
) -> tuple[Rulebook, list[Any]]:
    """Return the rules of a scenario, and the opponents of a learner in one of its focal seats.

    Warns of one that is held out, if given by name. Raises BadParameter if there are parameters of
    the game beside, and as `Scenario.opponents`.
    """
    match = scenario(game if isinstance(game, str) else game.name, name)
    if isinstance(name, str) and not match.train:
        trains = ", ".join(each.name for each in scenarios(match.game).values() if each.train)
        advice = f"judge learners in it, but train them in {trains}"
        warnings.warn(f"the scenario {name} is held out: {advice}", stacklevel=4)
    if parameters or not isinstance(game, str):
        overrides = ", ".join(parameters) or f"a game of its own, {game.name}"
        raise BadParameter(f"the scenario {match.name} brings all parameters; got {overrides}")
    return match.rules(), match.opponents(others)


def read(raw: Mapping[str, Any], source: str | Path) -> dict[str, Scenario]:
    """Return the scenarios of a file's parsed content; BadParameter, UnknownName name the file."""
    _check(raw, {**KEYS, **TABLES}, str(source))
    game, params = raw.get("game", ""), raw.get("params", {})
    try:
        players = rulebook(game, **params).players if game else 0
    except LLMGamesError as error:
        raise BadParameter(f"{source}: {error}") from None
    if players < 2:
        raise BadParameter(f'{source}: scenarios need game = "NAME", one of at least two players')
    common = {key: raw[key] for key in ("episodes", "max_steps") if key in raw}
    common |= {"game": game, "params": params}
    scenarios_by_name: dict[str, Scenario] = {}
    for number, part in enumerate(raw.get("backgrounds", ())):
        location = f"{source}: backgrounds[{number}]"
        _check(part, {**PARTS, **dict.fromkeys(LISTS, list)}, location)
        if missing := [key for key in ("name", "players") if not part.get(key)]:
            raise BadParameter(f"{location} has no {' and no '.join(missing)}")
        seats = dict(zip(FOCAL, (1, players // 2, players - 1), strict=True))
        for share in part.get("focal", FOCAL):
            if share not in seats:
                raise BadParameter(f"{location}.focal = {share!r}: it should be {LISTS['focal']}")
            entry = Scenario(
                name=f"{part['name']}-{share}",
                about=part.get("about", ""),
                focal=seats[share],
                background=tuple(islice(cycle(part["players"]), players - seats[share])),
                train=part.get("train", False),
                pays=tuple(part.get("pays", ())),
                **common,
            )
            if entry.name in scenarios_by_name:
                raise BadParameter(f"{location}: there is a scenario {entry.name} already")
            scenarios_by_name[entry.name] = entry
    return scenarios_by_name


def _check(table: Any, keys: Mapping[str, type], location: str) -> None:
    if not isinstance(table, Mapping):
        raise BadParameter(f"{location} should be a table, got {table!r}")
    for key, value in table.items():
        if key not in keys:
            raise unknown(f"key in {location} called", key, keys)
        right = type(value) is keys[key] and (type(value) is not int or value >= 0)
        words = key not in ("players", *LISTS) or (right and all(isinstance(v, str) for v in value))
        if not right or not words or (key == "pays" and len(value) != 2):
            wanted = LISTS.get(key, "names of players" if key == "players" else keys[key].__name__)
            raise BadParameter(f"{location}.{key} = {value!r}: it should be {wanted}")
