"""All players by name: ``make_player("level_k:2")``.

A name is a kind, and for some kinds a value after a colon. `PLAYERS` has the kinds that ask a model
and those that several games share; a game's room says what they do in it, and adds its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from fractions import Fraction
from functools import partial
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_games import rooms
from llm_games.baselines.rules import (
    Kind,
    Players,
    Rule,
    RulePolicy,
    cannot_play,
    count_from,
    shape,
)
from llm_games.errors import BadParameter, unknown
from llm_games.facts import ratio_of
from llm_games.noise import Noise
from llm_games.questions import BadReply, Choice
from llm_games.registry import rulebook
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View
from llm_games.wrappers.policy import Policy

if TYPE_CHECKING:
    from llm_games.wrappers.clients.base import Client
    from llm_games.wrappers.llm_policy import LLMPolicy
    from llm_games.wrappers.mind import Mind

Settings = Mapping[str, Any]
PARTS = ("rules", "theory", "players", "mind")
"""Modules of a room that are found by their names."""
WIDEST = 100
"""Numbers without limits are drawn from 0 to this."""


# -- what several games share ---------------------------------------------------------------------


def any_legal(view: View, noise: Noise) -> Any:
    """Draw from the question, or for a batch from what is legal, all equally likely."""
    if view.question is not None:
        return view.question.sample(noise)
    free = view.high - view.low > 2**32
    low, high = np.where(free, 0, view.low), np.where(free, WIDEST, view.high)
    return noise.integers(low, high, endpoint=True)


def fixed(move: int, view: View, noise: Noise) -> Array:
    """Do always the same, as far as it is legal."""
    return np.full(shape(view), move)


def meaning(game: Rulebook, value: str) -> Any:
    """Return the action, or what else a game takes, that the value of ``fixed:VALUE`` means.

    Raises:
        BadParameter: it means nothing; names what is allowed.
    """
    own = handed(game.name).meaning
    if own is not None:
        return own(game, value)
    state = game.reset(0)
    question = game.question(state, int(np.argmax(game.asked(state))))
    if isinstance(question, Choice):
        try:
            return question.read(value)
        except BadReply:
            raise cannot_play(game, value, f"{question.wanted()}, as in fixed:go") from None
    low, high = game.bounds()
    kind = "a number" if game.unit > 1 else "a whole number"
    allowed = f"{kind} from {low / game.unit:g} to {high / game.unit:g}"
    try:
        units = Decimal(value) * game.unit
    except InvalidOperation:
        raise cannot_play(game, value, allowed) from None
    if not units.is_finite() or units != units.to_integral_value() or not low <= units <= high:
        raise cannot_play(game, value, allowed)
    return int(units)


def _share(value: str) -> Fraction:
    try:
        return ratio_of("shade", value, 0, 1)
    except BadParameter:
        raise BadParameter(
            f"shade needs a share from 0 to 1, as in shade:0.9, got {value!r}"
        ) from None


# -- players that ask a model ---------------------------------------------------------------------


def _tiny(value: str, client: Settings, settings: Settings) -> Policy:
    from llm_games.baselines.tiny.client import TinyClient

    if value not in ("", "constrained"):
        raise unknown("player", f"tiny:{value}", ("tiny", "tiny:constrained"))
    return _asking(TinyClient, (value == "constrained",), client, settings)


def _openai(value: str, client: Settings, settings: Settings) -> Policy:
    from llm_games.wrappers.clients.openai import OpenAIClient

    return _asking(OpenAIClient, (value,), {**SERVER, **client}, settings)


def _transformers(value: str, client: Settings, settings: Settings) -> Policy:
    from llm_games.wrappers.clients.transformers import TransformersClient

    return _asking(TransformersClient, (value,), client, settings)


def _asking(make: Any, first: tuple[Any, ...], client: Settings, settings: Settings) -> Policy:
    """Return a player on a client with its layers, once all settings are known to exist."""
    from llm_games.wrappers.clients.base import Sampling
    from llm_games.wrappers.clients.stack import LAYER_SETTINGS, dress
    from llm_games.wrappers.llm_policy import LLMPolicy
    from llm_games.wrappers.mind import Planning

    own = {key: value for key, value in client.items() if key not in LAYER_SETTINGS}
    asked = [*list(signature(LLMPolicy).parameters)[1:-1], *signature(Sampling).parameters]
    talking = [*asked, *signature(Planning).parameters]
    calling = list(signature(make).parameters)[len(first) :]
    for key in own:
        if key not in calling:
            raise unknown(f"setting of {make.__name__}", key, [*calling, *LAYER_SETTINGS])
    for key in settings:
        if key not in talking:
            raise unknown("setting of LLMPolicy", key, talking)
    around = {key: value for key, value in client.items() if key in LAYER_SETTINGS}
    return llm_player(dress(make(*first, **own), **around), settings)


def llm_player(client: Client, settings: Settings) -> LLMPolicy:
    """Return a player that asks a model: one that plans if there is a setting of `Planning`.

    Args:
        client: where completions come from.
        settings: of `LLMPolicy` and of `Planning`; tools may be named, see `tool_named`.

    Raises:
        BadParameter, UnknownName: a setting cannot be that.
    """
    from llm_games.baselines.tools import equipped
    from llm_games.wrappers.llm_policy import LLMPolicy
    from llm_games.wrappers.mind import Planning
    from llm_games.wrappers.planning import PlanningPolicy

    plans = signature(Planning).parameters
    planning = {key: value for key, value in settings.items() if key in plans}
    rest = {key: value for key, value in settings.items() if key not in plans}
    if planning:
        return PlanningPolicy(client, Planning(**planning), mind_of, **equipped(rest))
    return LLMPolicy(client, **equipped(rest))


def mind_of(game: str) -> type[Mind]:
    """Return what a planning player thinks with in a game: its room's ``MIND``, else in words."""
    from llm_games.wrappers.mind import Mind

    return getattr(rooms.part(game, "mind"), "MIND", Mind)


SERVER: Settings = {"retries": 3, "max_in_flight": 64}
"""How a model behind a server is called, unless its settings say otherwise; see `dress`."""

_LEVEL = count_from(0, 999, "level_k needs a level from 0 to 999, as in level_k:2")
PLAYERS: dict[str, Kind] = {
    "rational": Kind("plays an equilibrium"),
    "best_response": Kind("replies best to what the others did last, as far as it knows"),
    "level_k": Kind(
        "thinks some steps ahead of players who act at random",
        value="<level>",
        needs_value=True,
        read=_LEVEL,
    ),
    "cooperative": Kind("does its part of what is best for all"),
    "truthful": Kind("bids its valuation, or raises up to it"),
    "shade": Kind("bids a share of its valuation", None, "<share>", True, read=_share),
    "all_in": Kind("bids all its money"),
    "zero": Kind("bids 0 and takes what is left over"),
    "random": Kind("draws any legal action", any_legal),
    "fixed": Kind(
        "always does the same: a number, or a word of the game",
        fixed,
        "<action>",
        needs_value=True,
        meaning=meaning,
    ),
    "tiny": Kind("the embedded language model", model=_tiny, value="constrained"),
    "openai": Kind(
        "a language model behind an OpenAI-compatible server",
        model=_openai,
        value="<model>",
        needs_value=True,
    ),
    "transformers": Kind(
        "a local language model, by its folder",
        model=_transformers,
        value="<path>",
        needs_value=True,
    ),
}
"""Kinds of players by name, but for those of one game."""


# -- what the games' rooms say --------------------------------------------------------------------


def handed(game: str) -> Players:
    """Return what a game's room says of its players; nothing if it has no ``players.py``.

    Raises:
        BadParameter: its ``players.py`` hands over nothing.
    """
    module = rooms.part(game, "players")
    if module is None:
        return Players()
    found = getattr(module, "PLAYERS", None)
    if not isinstance(found, Players):
        raise BadParameter(f"{module.__name__} must have PLAYERS = Players({{...}}), see Players")
    return found


def _own_kinds() -> dict[str, Kind]:
    """Return the kinds of single games."""
    rules = [item for game in rooms.ROOMS for item in handed(game).rules.items()]
    return {name: kind for name, kind in rules if isinstance(kind, Kind)}


def rule_of(kind: str, game: str) -> tuple[Kind, Rule] | None:
    """Return what a kind of player is and does in a game; None if it is not defined there."""
    said = handed(game).rules.get(kind)
    about = said if isinstance(said, Kind) else PLAYERS.get(kind)
    rule = said if said is not None and not isinstance(said, Kind) else about and about.rule
    return (about, rule) if about and rule else None


def games_of(kind: str) -> list[str]:
    """Return the games for which a kind of player has a rule."""
    return [game for game in rooms.ROOMS if rule_of(kind, game)]


def _rule_in(name: str, game: Rulebook) -> Rule:
    """Return the rule of a player by its full name in a game."""
    kind, colon, value = name.partition(":")
    found = rule_of(kind, game.name)
    if found is None:
        games = ", ".join(games_of(kind))
        raise BadParameter(f"player {name!r} is not defined for {game.name}; it is for {games}")
    about, rule = found
    return partial(rule, about.meaning(game, about.read(value))) if colon else rule


def check_room(game: str) -> None:
    """Check what a game's room hands over to this floor.

    Raises:
        BadParameter: a name in it means nothing, or what it stands for is missing.
    """
    package = rooms.ROOMS[game].players
    for module in iter_modules(import_module(package).__path__) if package else ():
        near = get_close_matches(module.name, PARTS, 1, cutoff=0.8)
        if near and module.name not in PARTS:
            raise BadParameter(f"{package}/{module.name}.py: did you mean {near[0]}.py?")
    for kind, said in handed(game).rules.items():
        if isinstance(said, Kind) and not (said.summary and said.rule):
            raise BadParameter(f"{game}: player {kind!r} needs a summary and a rule")
        if not isinstance(said, Kind) and kind not in PLAYERS:
            raise unknown("kind of player that games share (others come as a Kind):", kind, PLAYERS)
    theory = rooms.part(game, "theory")
    if theory is not None and not callable(getattr(theory, "deviation", None)):
        raise BadParameter(f"{theory.__name__} must define deviation(game, record)")


# -- by name --------------------------------------------------------------------------------------


def make_player(
    name: str, game: Rulebook | str | None = None, client: Settings | None = None, **settings: Any
) -> Policy:
    """Make a player from its name.

    Args:
        name: a kind, with its value where it takes one: ``"rational"``, ``"fixed:91"``.
        game: the game it shall play (rules or name): checks now that it can.
        client: for players that ask a language model: settings of its client, such as
            ``{"base_url": ...}`` for `OpenAIClient`, and of its layers, see `dress`.
        settings: for the same: settings of `LLMPolicy`, such as ``reasoning=True``; tools may be
            named, see `tool_named`.

    Raises:
        UnknownName: there is no such player or setting; names the nearest.
        BadParameter: the value or a setting is not allowed, or the player is not defined for
            the game.
    """
    kind, colon, value = name.partition(":")
    if kind == "human":
        raise BadParameter("a person takes a seat with: llm-games play GAME (or as HumanPolicy)")
    rules = rulebook(game) if isinstance(game, str) else game
    about = _kind(kind, rules)
    if about is None:
        raise unknown("player", name, [*PLAYERS, *_own_kinds()])
    if bool(colon) and not about.value:
        raise BadParameter(f"player {kind!r} takes no value, got {name!r}")
    if about.needs_value and not value:
        raise BadParameter(f"player {kind!r} needs a value: {kind}:{about.value}, got {name!r}")
    if about.model is not None:
        return about.model(value, client or {}, settings)
    if client or settings:
        given = ", ".join([*(client or {}), *settings])
        raise BadParameter(f"player {name!r} asks no model and takes no settings, got {given}")
    about.read(value)
    policy = RulePolicy(name, partial(_rule_in, name))
    if rules is not None:
        policy.rule_in(rules)
    return policy


def _kind(name: str, game: Rulebook | None) -> Kind | None:
    """Return a kind as a game's room has it, else as all share it, else as any other room."""
    found = None if game is None else rule_of(name, game.name)
    return found[0] if found else PLAYERS.get(name) or _own_kinds().get(name)


def players_for(game: str) -> dict[str, str]:
    """Return the players that are defined for a game: name and one line on each.

    Raises:
        UnknownName: there is no such game.
    """
    if game not in rooms.ROOMS:
        raise unknown("game", game, rooms.ROOMS)
    own = {name: kind for name, kind in handed(game).rules.items() if isinstance(kind, Kind)}
    names = {}
    for kind, about in sorted((PLAYERS | own).items(), key=lambda item: item[1].model is not None):
        if about.model or rule_of(kind, game):
            names[f"{kind}:{about.value}" if about.needs_value else kind] = about.summary
            if about.value and not about.needs_value:
                names[f"{kind}:{about.value}"] = f"{about.summary}, legal replies only"
    return names
