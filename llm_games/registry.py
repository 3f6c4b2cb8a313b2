"""All games by name: build their rules and make environments of them."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from llm_games.errors import BadParameter, unknown, unknown_keyword
from llm_games.game_rooms import ROOMS, add
from llm_games.import_names import is_named, name_of, named

if TYPE_CHECKING:
    from llm_games.env import SequentialGame, SimultaneousGame
    from llm_games.rulebook import Rulebook

VERSION = "v0"
GAME = (
    "a game is a frozen dataclass on llm_games.rulebook.Rulebook that has a name, a title, a "
    "source and what Rulebook asks for, with wordings/v1.j2 beside its module for who reads"
)


def game_class(name: str | type[Rulebook]) -> type[Rulebook]:
    """Return a game's class. ``public_goods``, ``public_goods-v0`` and ``_v0`` are the same.

    A game of one's own is ``module:Class``, see `named`, or the class; later its name. Raises
    UnknownName, naming the nearest, or BadParameter if its room has no one class of that name in
    ``rules.py``, or it is no game.
    """
    if isinstance(name, type) or is_named(str(name)):
        return _user_game(name)
    game = re.sub(rf"^llm_games/|[-_]{VERSION}\Z", "", str(name))
    if not isinstance(name, str) or game not in ROOMS:
        raise unknown("game", str(name), ROOMS)
    if ":" in ROOMS[game].rules:
        return _checked(named(ROOMS[game].rules, "game"), ROOMS[game].rules)
    module = f"{ROOMS[game].rules}.rules"
    try:
        rules = vars(import_module(module))
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # something that it imports
        raise BadParameter(f"the room of {game!r} has no module {module}") from None
    kinds = [v for v in rules.values() if isinstance(v, type) and vars(v).get("name") == game]
    if len(kinds) != 1:
        raise BadParameter(f"{module} must define one class with name = {game!r}, has {len(kinds)}")
    return kinds[0]


def _user_game(game: str | type[Rulebook]) -> type[Rulebook]:
    rules = _checked(named(game, "game") if isinstance(game, str) else game, game)
    address = game if isinstance(game, str) else name_of(game)
    if address and not (rules.name in ROOMS and game_class(rules.name) is rules):
        add(rules.name, address)
    return rules


def _checked(candidate: Any, game: object) -> type[Rulebook]:
    from llm_games.rulebook import Rulebook

    if not isinstance(candidate, type) or not issubclass(candidate, Rulebook):
        raise BadParameter(f"{game!r} is no game, but {candidate!r}: {GAME}")
    lacks = sorted(candidate.__abstractmethods__)
    lacks += [name for name in ("name", "title", "source") if not hasattr(candidate, name)]
    if lacks:
        raise BadParameter(f"the game {game!r} lacks {', '.join(lacks)}: {GAME}")
    return candidate


def rulebook(
    name: str | type[Rulebook] | Rulebook, *, preset: str | None = None, **parameters: Any
) -> Rulebook:
    """Build the rules of a game from a named set of its parameters and more that come on top.

    They replace those of the preset, but for what it is named after (`kept_by_presets`).

    With `talk`, such as ``{"turns": 2}``, players may talk, see `llm_games.talk.Talk`;
    ``talk_turns=2`` is the same. Rules that are built already take nothing but that.

    Raises:
        UnknownName: no such game or preset; names the nearest.
        UnknownKeyword: no such parameter.
        BadParameter: a value outside its range.
    """
    from llm_games.rulebook import Rulebook
    from llm_games.talk import split, talking

    parameters, talk = split(parameters)
    if isinstance(name, Rulebook):
        if parameters or preset or (talk and name.core is not name):
            first = sorted(parameters or (["preset"] if preset else ["talk"]))[0]
            raise BadParameter(f"{first!r}: parameters go with a game's name only")
        if name.name not in ROOMS:  # so that its words are found
            game_class(type(name.core))
        return talking(name, talk) if talk else name
    rules = game_class(name)
    if other := rules.instead(preset, parameters):
        rules = game_class(other)
    if preset is not None:
        if preset not in rules.presets:
            raise unknown(f"preset of {rules.name}", preset, rules.presets)
        preset_parameters, preset_talk = split(rules.presets[preset])
        _check_kept(rules, preset, preset_parameters, parameters)
        parameters, talk = preset_parameters | parameters, preset_talk | talk
    parameter_names = [field.name for field in dataclasses.fields(rules)]
    for key in parameters:
        if key not in parameter_names:
            raise unknown_keyword(f"parameter of {rules.name}", key, parameter_names)
    game = rules(**parameters)
    return talking(game, talk) if talk else game


def _check_kept(
    rules: type[Rulebook], preset: str, kept: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Raise BadParameter where parameters contradict what a preset is named after."""
    from llm_games.facts import as_given

    for name in rules.kept_by_presets:
        if name in kept and name in given:
            game, other = rules(**kept), rules(**{**kept, name: given[name]})
            if (value := getattr(game, name)) != getattr(other, name):
                raise BadParameter(
                    f"preset {preset} of {rules.name} has {name}={as_given(value)}, got "
                    f"{given[name]!r}: leave one of them out"
                )


def disguised(game: Rulebook, seed: int) -> Rulebook:
    """Return a game whose players read it in other words and units, by this seed.

    See `llm_games.disguise`. BadParameter: it says of no words that they can be others.
    """
    from llm_games.disguise import Disguise

    if game.core is not game:
        talk: Any = game
        return type(talk)(disguised(game.core, seed), talk.talk)
    if game.surface is None:
        able = ", ".join(name for name in ROOMS if game_class(name).surface)
        raise BadParameter(
            f"{game.name} cannot be renamed, since its wordings mark no words; these can: {able}"
        )
    other = copy.copy(game)
    other.__dict__["disguise"] = Disguise(game.name, seed, game.surface)
    return other


def recorded_rulebook(name: str, parameters: Mapping[str, Any], edition: int) -> Rulebook:
    """Build the rules of a record of some edition, with the defaults of that edition."""
    rules, old_defaults = game_class(name), dict[str, Any]()
    for last_edition, defaults in sorted(rules.former_defaults.items(), reverse=True):
        old_defaults |= defaults if edition <= last_edition else {}
    named = {*parameters, *rules.presets.get(parameters.get("preset", ""), ())}
    return rulebook(name, **{k: v for k, v in old_defaults.items() if k not in named}, **parameters)


def make(
    name: str,
    *,
    form: Literal["parallel", "aec"] | None = None,
    obs_mode: str | Mapping[str, str] = "text",
    actions: str | Mapping[str, str] = "index",
    reask: int = 0,
    normalize: bool = False,
    masks: str = "observation",
    words: bool = False,
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
            change), ``"least"`` (the same, but where one may decline, that or the smallest amount
            alone), ``"unit"`` (shares from -1 to 1, float32), ``"rules"`` (the game's own units) or
            ``"text"`` (a reply in words, read as a language model's).
        reask: of actions in words, how often a reply that cannot be used is asked for again.
        normalize: scale all numbers that are observed to -1 to 1, see `Scale`.
        masks: in games in which some indexes are illegal, where an agent finds which: beside what
            it sees (``"observation"``), or as ``"action_mask"`` in its ``"info"``.
        words: infos have ``words``: the ``rules``, the ``report`` and the ``request`` that a model
            reads, each apart (the report and the request may be ""), the JSON ``schema`` of the
            reply, and ``past``: how many turns its chat keeps, with their reports alone (None: all,
            with their requests).
        render_mode: None, ``"ansi"`` (`render` returns a table), ``"human"`` (prints it) or
            ``"rgb_array"`` (returns pixels; needs Pillow).
        max_cycles: truncate after so many rounds, in some games shots or bids, see `State.round`;
            None for the game's own length.
        prompts, prompt_folder: wording of the text observations, see `Prompts`.
        on_illegal: ``"fallback"`` plays the declared move for an action that is in the space but
            against the rules, and says so in ``infos``; ``"raise"`` raises IllegalAction.
        preset, parameters: see `rulebook`, also for `talk`.

    Raises:
        UnknownName, BadParameter: as `rulebook`, or a bad value of the arguments above.
    """
    from llm_games.env import SequentialGame, SimultaneousGame

    game = rulebook(name, preset=preset, **parameters)
    form = form or ("aec" if game.turns else "parallel")
    forms: dict[str, Any] = {"parallel": SimultaneousGame, "aec": SequentialGame}
    if form not in forms:
        raise BadParameter(f'form must be "parallel" or "aec", got {form!r}')
    settings: dict[str, Any] = {"obs_mode": obs_mode, "actions": actions, "reask": reask}
    settings |= {"normalize": normalize, "masks": masks, "words": words, "prompts": prompts}
    settings |= {"prompt_folder": prompt_folder, "render_mode": render_mode}
    return forms[form](game, max_cycles=max_cycles, on_illegal=on_illegal, **settings)


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
