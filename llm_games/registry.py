"""All games by name: build their rules and make environments of them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from llm_games.errors import BadParameter, unknown
from llm_games.rooms import ROOMS

if TYPE_CHECKING:
    from llm_games.env import SequentialGame, SimultaneousGame
    from llm_games.rulebook import Rulebook

VERSION = "v0"


def game_class(name: str) -> type[Rulebook]:
    """Return a game's class. ``public_goods``, ``public_goods-v0`` and ``_v0`` are the same.

    Raises:
        UnknownName: there is no such game; names the nearest.
        BadParameter: its room has no ``rules.py`` with one class of that name.
    """
    game = re.sub(rf"^llm_games/|[-_]{VERSION}\Z", "", str(name))
    if not isinstance(name, str) or game not in ROOMS:
        raise unknown("game", str(name), ROOMS)
    module, _, attribute = ROOMS[game].rules.partition(":")
    module = module if attribute else f"{module}.rules"
    try:
        rules = vars(import_module(module))
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # something that it imports
        raise BadParameter(f"the room of {game!r} has no module {module}") from None
    if attribute:
        if not hasattr(rules.get(attribute), "name"):
            raise BadParameter(f"{module} must define {attribute}, the rulebook of {game!r}")
        return rules[attribute]
    own = [v for v in rules.values() if isinstance(v, type) and vars(v).get("name") == game]
    if len(own) != 1:
        raise BadParameter(f"{module} must define one class with name = {game!r}, has {len(own)}")
    return own[0]


def rulebook(name: str, *, preset: str | None = None, **parameters: Any) -> Rulebook:
    """Build the rules of a game from a named set of its parameters and more that come on top.

    Raises:
        UnknownName: no such game, preset or parameter; names the nearest.
        BadParameter: a value outside its range.
    """
    found = game_class(name)
    if other := found.instead(preset, parameters):
        found = game_class(other)
    if preset is not None:
        if preset not in found.presets:
            raise unknown(f"preset of {found.name}", preset, found.presets)
        parameters = {**found.presets[preset], **parameters}
    known = [field.name for field in dataclasses.fields(found)]
    for key in parameters:
        if key not in known:
            raise unknown(f"parameter of {found.name}", key, known)
    return found(**parameters)


def make(
    name: str,
    *,
    form: Literal["parallel", "aec"] | None = None,
    obs_mode: str | Mapping[str, str] = "text",
    actions: str | Mapping[str, str] = "index",
    reask: int = 0,
    render_mode: str | None = None,
    max_cycles: int | None = None,
    prompts: str = "v1",
    prompt_folder: str | None = None,
    on_illegal: str = "fallback",
    preset: str | None = None,
    **parameters: Any,
) -> SimultaneousGame | SequentialGame:
    """Make a PettingZoo environment of a game.

    Args:
        name: a game, such as ``"public_goods-v0"``.
        form: ``"parallel"`` or ``"aec"``; by default AEC if the game is one of turns.
        obs_mode: ``"text"``, ``"numeric"`` or ``"both"``, or one of these for each agent.
        actions: how actions look, or one of these for each agent: ``"index"`` (numbers from 0,
            for learners; shares of what is legal now where amounts are many or their limits
            change), ``"unit"`` (shares from -1 to 1, float32), ``"rules"`` (the game's own units)
            or ``"text"`` (a reply in words, read as a language model's).
        reask: of actions in words, how often a reply that cannot be used is asked for again.
        render_mode: None, ``"ansi"`` (`render` returns a table) or ``"human"`` (prints it).
        max_cycles: truncate after so many steps of the rules; None for the game's own length.
        prompts, prompt_folder: wording of the text observations, see `Prompts`.
        on_illegal: ``"fallback"`` plays the declared move for an action that is in the space but
            against the rules, and says so in ``infos``; ``"raise"`` raises IllegalAction.
        preset, parameters: see `rulebook`.

    Raises:
        UnknownName, BadParameter: as `rulebook`, or a bad value of the arguments above.
    """
    from llm_games.env import SequentialGame, SimultaneousGame

    game = rulebook(name, preset=preset, **parameters)
    form = form or ("aec" if game.turns else "parallel")
    forms: dict[str, Any] = {"parallel": SimultaneousGame, "aec": SequentialGame}
    if form not in forms:
        raise BadParameter(f'form must be "parallel" or "aec", got {form!r}')
    return forms[form](
        game,
        obs_mode=obs_mode,
        actions=actions,
        reask=reask,
        render_mode=render_mode,
        max_cycles=max_cycles,
        prompts=prompts,
        prompt_folder=prompt_folder,
        on_illegal=on_illegal,
    )


def list_games() -> list[dict[str, str]]:
    """Return a table of all games: name, title, players, moves, actions and source."""
    return [
        {
            "name": f"{name}-{VERSION}",
            "title": game.title,
            "players": str(game.players),
            "moves": "turns" if game.turns else "simultaneous",
            "actions": str(game.space(0)),
            "source": game.source,
        }
        for name, game in zip(ROOMS, map(rulebook, ROOMS), strict=True)
    ]
