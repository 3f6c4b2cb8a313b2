"""All games by name: build their rules, make environments of them, register them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from llm_games.errors import BadParameter, unknown
from llm_games.rooms import ROOMS, rules_class

if TYPE_CHECKING:
    from llm_games.env import SequentialGame, SimultaneousGame
    from llm_games.rulebook import Rulebook

VERSION = "v0"
GAMES = ROOMS


def game_class(name: str) -> type[Rulebook]:
    """Return a game's class. ``public_goods``, ``public_goods-v0`` and ``_v0`` are the same.

    Raises:
        UnknownName: there is no such game; names the nearest.
    """
    if not isinstance(name, str):
        raise unknown("game", str(name), GAMES)
    bare = name.removeprefix("llm_games/").removesuffix(f"-{VERSION}").removesuffix(f"_{VERSION}")
    if bare not in GAMES:
        raise unknown("game", name, GAMES)
    found: type[Rulebook] = rules_class(bare)
    return found


def rulebook(name: str, *, preset: str | None = None, **parameters: Any) -> Rulebook:
    """Build the rules of a game with the given parameters.

    Args:
        name: the game.
        preset: a named set of parameters of that game; `parameters` come on top.
        parameters: see the game's class.

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
        form: ``"parallel"`` or ``"aec"``; the default is the game's native form: parallel if all
            move at the same time, AEC if they take turns.
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
    rows = []
    for name in GAMES:
        game = rulebook(name)
        rows.append(
            {
                "name": f"{name}-{VERSION}",
                "title": game.title,
                "players": str(game.players),
                "moves": "turns" if game.turns else "simultaneous",
                "actions": str(game.space(0)),
                "source": game.source,
            }
        )
    return rows


def announce(name: str, learner: str) -> None:
    """Enter a game of a room in the registries of PettingZoo and Gymnasium.

    Args:
        name: the game's name.
        learner: the entry point of what makes its view for one learner.
    """
    import gymnasium
    import pettingzoo

    known = {"id": f"llm_games/{name}-{VERSION}", "kwargs": {"name": name}}
    pettingzoo.register("aec", entry_point=f"{__name__}:make_aec", **known)
    pettingzoo.register("parallel", entry_point=f"{__name__}:make_parallel", **known)
    title = "".join(word.capitalize() for word in name.split("_"))
    gymnasium.register(f"llm_games/{title}-{VERSION}", entry_point=learner, kwargs={"game": name})


make_aec, make_parallel = partial(make, form="aec"), partial(make, form="parallel")
"""Make the form of that name; what PettingZoo's registry calls."""
