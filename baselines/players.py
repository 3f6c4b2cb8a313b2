"""All players by name: ``make_player("level_k:2")``.

A name is a kind, for some with a value after a colon; else ``provider/model``; else a user's object
as ``module:Name``. `PLAYERS` has the kinds that ask a model and those that several games share; a
game's room says what they do in it, and adds its own; `rooms.KINDS` has those of higher floors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_games import game_rooms as rooms
from llm_games.baselines.rules import (
    Kind,
    Model,
    Players,
    Rule,
    RulePolicy,
    cannot_play,
    count_from,
    ratio_from,
    seat_by_seat,
)
from llm_games.errors import BadParameter, UnknownName, WrongSeat, install, unknown, unknown_keyword
from llm_games.import_names import OWN, is_named, named
from llm_games.noise import Noise
from llm_games.questions import BadReply, Choice
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.user_players import asks, label_of, player_of

if TYPE_CHECKING:
    from llm_games.wrappers.clients.base import Client
    from llm_games.wrappers.llm_policy import LLMPolicy
    from llm_games.wrappers.mind import Mind

Settings = Mapping[str, Any]
WIDEST = 100  # numbers without limits are drawn from 0 to this


# -- what several games share ---------------------------------------------------------------------


def any_legal(view: View, noise: Noise) -> Any:
    """Draw from the question, or for a batch from what is legal, all equally likely."""
    if view.question is not None:
        return view.question.sample(noise)
    free = view.low < -(2**32)  # no limits but those of arithmetic
    low, high = np.where(free, 0, view.low), np.where(free, WIDEST, view.high)
    return noise.integers(low, high, endpoint=True)


def fixed(move: int, view: View, noise: Noise) -> Array:
    """Do always the same, as far as it is legal."""
    return np.full(view.batch, move)


def meaning(game: Rulebook, value: str) -> Any:
    """Return the action, or what else a game takes, that the value of ``fixed:VALUE`` means."""
    room_meaning = handed(game.name).meaning
    if room_meaning is not None:
        return room_meaning(game, value)
    state = game.reset(0)
    question = game.question(state, int(np.argmax(game.asked(state))))
    if isinstance(question, Choice):
        with suppress(BadReply):
            return question.read(value)
        raise cannot_play(game, value, f"{question.wanted()}, as in fixed:go")
    low, high = game.bounds()
    with suppress(ArithmeticError):
        units = Decimal(value) * game.unit
        if units.is_finite() and units == units.to_integral_value() and low <= units <= high:
            return int(units)
    kind = "a number" if game.unit > 1 else "a whole number"
    raise cannot_play(game, value, f"{kind} from {low / game.unit:g} to {high / game.unit:g}")


# -- players that ask a model ---------------------------------------------------------------------


def _asking(
    source: str | Client,
    value: Any,
    client: Settings,
    settings: Settings,
    *,
    like: str = "",
    **usual: Any,
) -> Policy:
    """Return a player on a client with its layers; checks all names of settings first.

    `source` is the client, or the ``module:function`` that makes it of settings as of `like`.
    """
    from llm_games.wrappers.clients.base import Sampling
    from llm_games.wrappers.clients.stack import LAYER_SETTINGS, add_layers
    from llm_games.wrappers.llm_policy import LLMPolicy
    from llm_games.wrappers.mind import Planning

    if isinstance(source, str):
        make, declared = _load(source), _load(like or source)
        name, calling = declared.__name__, list(signature(declared).parameters)[1:]
    else:
        make, name, calling = (lambda value: source), source.name, []
    calling += LAYER_SETTINGS
    talking = list(signature(LLMPolicy).parameters)[1:-1]
    talking += [*signature(Sampling).parameters, *signature(Planning).parameters]
    if odd := [key for key in client if key not in calling]:
        raise unknown_keyword(f"setting of {name}", odd[0], calling)
    for key in settings:
        if key in calling and key not in talking:
            raise BadParameter(f"{key} is a setting of the client: client={{{key!r}: ...}}")
        if key not in talking:
            raise unknown_keyword("setting of LLMPolicy", key, talking)
    client_settings = {**usual, **client}
    layers = {key: client_settings.pop(key) for key in LAYER_SETTINGS if key in client_settings}
    return llm_player(add_layers(make(value, **client_settings), **layers), settings)


def _load(address: str) -> Any:
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


def _constrained(value: str) -> bool:
    if value not in ("", "constrained"):
        raise unknown("player", f"tiny:{value}", ("tiny", "tiny:constrained"))
    return value != ""


def llm_player(client: Client, settings: Settings) -> LLMPolicy:
    """Return a player whose model's completions come from `client`.

    `settings` are of `LLMPolicy`, with tools by name (`tool_named`) as well as what to `ask`
    (`GradedQuestion`), and of `Planning`: with one of these it plans. `BadParameter` or
    `UnknownName` say what a setting cannot be.
    """
    from llm_games.baselines.graded_questions import GradedQuestion
    from llm_games.baselines.named_tools import equipped
    from llm_games.wrappers.llm_policy import LLMPolicy
    from llm_games.wrappers.mind import Planning
    from llm_games.wrappers.planning import PlanningPolicy

    rest = equipped(settings)
    rest |= {"ask": tuple(map(GradedQuestion, settings["ask"]))} if "ask" in settings else {}
    planning = {key: rest.pop(key) for key in signature(Planning).parameters if key in rest}
    if planning:
        return PlanningPolicy(client, Planning(**planning), mind_of, **rest)
    return LLMPolicy(client, **rest)


def mind_of(game: str) -> type[Mind]:
    """Return the kind of mind of a planning player: the game room's ``MIND``, else one in words."""
    from llm_games.wrappers.mind import Mind

    return getattr(rooms.part(game, "mind"), "MIND", Mind)


def _trained(path: str, deterministic: bool = True) -> Policy:
    if find_spec("stable_baselines3") is None:
        raise BadParameter(f"player sb3:{path} needs packages: {install('sb3')}")
    from llm_games.wrappers.sb3 import load_player

    return load_player(path, deterministic=deterministic)


def _imported(name: str) -> Policy:
    from llm_games.wrappers.imported import ImportedPolicy

    return ImportedPolicy(name)


def _tabular(path: str, deterministic: bool = False) -> Policy:
    from llm_games.wrappers.tabular_player import load_table

    return load_table(path, deterministic=deterministic)


def _network(path: str, deterministic: bool | None = None) -> Policy:
    if find_spec("torch") is None:
        raise BadParameter(f"player torch:{path} needs packages: {install('training')}")
    from llm_games.wrappers.torch_player import load_network

    return load_network(path, deterministic=deterministic)


def _talker(kind: str, value: str) -> Policy:
    return _load(f"llm_games.baselines.talkers:{kind}")(value)


def _mixed(value: str) -> Policy:
    """Return a mixture of the named players, each perhaps after a weight and a star."""
    from llm_games.wrappers.player_mixture import PlayerMixture

    name, names, weights = f"mix:{value}", [], []
    for part in value.split("|"):
        weight, star, player = part.partition("*") if "*" in part else ("", "", part)
        try:
            weights.append(float(Fraction(weight)) if star else 1.0)
        except (ValueError, ZeroDivisionError):
            raise BadParameter(f"{name}: the weight before * is a number, got {weight!r}") from None
        names.append(player)
    for player in names:
        if not player or player.startswith("mix:"):
            fault = f"{name}: name each player once, as in mix:level_k:0|level_k:1 or"
            raise BadParameter(f"{fault} mix:3*level_k:0|level_k:1, got {player!r}")
        if asks_model(player):
            raise BadParameter(
                f"{name}: {player!r} asks a model, whose client and budget a name cannot give; "
                "make it by llm_games.player and mix it by "
                "llm_games.wrappers.player_mixture.PlayerMixture"
            )
    return PlayerMixture([make_player(player) for player in names], weights, name)


SERVER: dict[str, Any] = {"max_wait": 60, "max_in_flight": 64}
"""Layers around clients of servers: a learner, or who plays from code, shall not wait for long."""
PATIENT = 600.0  #: `max_wait` of runs, which nobody sits and waits for
PLAYERS: dict[str, Kind] = {
    "rational": Kind("plays an equilibrium, or what comes closest; see llm-games show"),
    "best_response": Kind("replies best to what the others did last, as far as it knows"),
    "level_k": Kind(
        "thinks some steps ahead of players who do not think",
        value="<level>",
        read=count_from(0, 999, "level_k needs a level from 0 to 999, as in level_k:2"),
    ),
    "cooperative": Kind("does its part of what is best for all"),
    "reciprocal": Kind("cooperates while the others did last, else looks after itself"),
    "truthful": Kind("bids its valuation, or raises up to it"),
    "shade": Kind(
        "bids a share of its valuation",
        value="<share>",
        read=ratio_from("shade", 0, 1, "shade needs a share from 0 to 1, as in shade:0.9"),
    ),
    "all_in": Kind("bids all its money"),
    "zero": Kind("bids 0 and takes what is left over"),
    "random": Kind("draws any legal action", any_legal),
    "fixed": Kind(
        "always does the same: a number, or a word of the game", fixed, "<action>", meaning=meaning
    ),
    "announcer": Kind(
        "says what it will do, and does what a player by rule does",
        value="<player>",
        made=partial(_talker, "announcer"),
    ),
    "liar": Kind(
        "promises its part of what is best for all, or another move than a player by rule's",
        value="<player>",
        made=partial(_talker, "liar"),
    ),
    "proposer": Kind(
        "proposes what is best for all, and does its part",
        value="<player>",
        valued="or does what a player by rule does",
        made=partial(_talker, "proposer"),
    ),
    "tiny": Kind(
        "the embedded language model",
        value="constrained",
        valued="legal replies only",
        read=_constrained,
        model=partial(_asking, "llm_games.baselines.tiny.client:TinyClient"),
    ),
    "mock": Kind(
        "asks no model, but is asked like one: any legal reply, by chance",
        model=partial(_asking, "llm_games.wrappers.clients.mock:MockClient"),
    ),
    "openai": Kind(
        "a language model behind an OpenAI-compatible server",
        value="<model>",
        model=partial(_asking, "llm_games.wrappers.clients.openai:OpenAIClient", **SERVER),
    ),
    "transformers": Kind(
        "a local language model, by its folder",
        value="<path>",
        model=partial(_asking, "llm_games.wrappers.clients.transformers:TransformersClient"),
    ),
    "mix": Kind(
        "is another of these players each episode, drawn by its own chance",
        value="<player|player>",
        made=_mixed,
    ),
    "sb3": Kind(
        "a learner trained with Stable-Baselines3, see save_player", value="<path>", made=_trained
    ),
    "tabular": Kind(
        "a table of moves, solved or learned, see save_table", value="<path>", made=_tabular
    ),
    "imported": Kind(
        "did what a recording from elsewhere says, and makes no other moves",
        value="<name>",
        made=_imported,
    ),
    "torch": Kind("a learner of torch alone, see save_network", value="<path>", made=_network),
    "client": Kind(
        "a language model behind a client of your own",
        value="<module:Name>",
        model=partial(_asking, "llm_games.wrappers.user_players:client_of"),
    ),
}
"""Kinds of players by name, but for those of one game."""
ELSEWHERE = {
    "human": "a person takes a seat with: llm-games play GAME, or in a run with: llm-games run "
    "FILE --browser (or as HumanPolicy)",
    "program": "a program takes a seat with: llm-games serve GAME, or in a run with: llm-games run "
    "FILE --browser",
}
"""Players that are not made here, and how to come by them."""
PROVIDED: Model = partial(
    _asking,
    "llm_games.wrappers.clients.providers:client_for",
    like="llm_games.wrappers.clients.openai:OpenAIClient",
    **SERVER,
)
"""Makes a player by the name ``provider/model``."""


def kind_of(name: str) -> Kind | None:
    """Return a kind that is not specific to a game; None if none has this name."""
    kind: Kind | None = PLAYERS.get(name)
    return _load(rooms.KINDS[name]) if kind is None and name in rooms.KINDS else kind


# -- what the games' rooms say --------------------------------------------------------------------


def handed(game: str) -> Players:
    """Return the players of a game's room; none if it has no ``players.py``."""
    module = rooms.part(game, "players")
    if module is None:
        return Players()
    room_players = getattr(module, "PLAYERS", None)
    if not isinstance(room_players, Players):
        raise BadParameter(f"{module.__name__} must have PLAYERS = Players({{...}}), see Players")
    return room_players


def _room_kinds(*games: str) -> dict[str, Kind]:
    rules = (item for game in games for item in handed(game).rules.items())
    return {name: kind for name, kind in rules if isinstance(kind, Kind)}


def rule_of(kind: str, game: str) -> tuple[Kind, Rule] | None:
    """Return a kind of player and its rule in a game; None if it has none there."""
    kind_of_player = (PLAYERS | _room_kinds(game)).get(kind)
    entry = handed(game).rules.get(kind, kind_of_player)
    rule = entry.rule if isinstance(entry, Kind) else entry
    return (kind_of_player, rule) if kind_of_player and rule else None


def games_of(kind: str) -> list[str]:
    """Return the games for which a kind of player has a rule."""
    return [game for game in rooms.ROOMS if rule_of(kind, game)]


def _rule_in(name: str, game: Rulebook) -> Rule:
    kind, colon, value = name.partition(":")
    kind_and_rule = rule_of(kind, game.name)
    if kind_and_rule is None:
        games = ", ".join(games_of(kind))
        raise BadParameter(f"player {name!r} is not defined for {game.name}; it is for {games}")
    player_kind, rule = kind_and_rule
    alone, room = rule is not player_kind.rule or kind not in PLAYERS, handed(game.name)
    meant = player_kind.meaning(game, player_kind.read(value)) if colon else None
    if room.check is not None:
        room.check(game, kind, meant)
    rule = partial(rule, meant) if colon else rule
    return partial(seat_by_seat, rule) if alone and not room.broadcasts else rule


# -- by name --------------------------------------------------------------------------------------


def reading(name: str) -> str:
    """Return how a name is read: ``kind``, ``provider``, ``own`` or ""; BadParameter if in two."""
    head, ways = name.partition(":")[0], {}
    if kind_of(head) or head in ELSEWHERE or head in _room_kinds(*rooms.ROOMS):
        ways["kind"] = f"the kind of player {head!r}"
    elif on_server(name):
        ways["provider"] = f"a model of {name.partition('/')[0]!r}"
    if is_named(name):
        file = Path(head if head.endswith(".py") else f"{head}.py")
        if not ways or (file.is_file() and not name.startswith(OWN)):
            ways["own"] = f"what {file} defines (write ./{file} for it)"
    if len(ways) > 1:
        raise BadParameter(f"player {name!r} can be read as {' or as '.join(ways.values())}")
    return next(iter(ways), "")


def on_server(name: str) -> bool:
    """Return whether a player is a model on a server: ``openai:NAME``, or ``provider/model``."""
    provider, slash, model = name.partition("/")
    return name.startswith("openai:") or bool(slash and model and provider in _providers())


def _providers() -> set[str]:
    from llm_games.wrappers.clients.providers import ADAPTED, COMPATIBLE

    return {*ADAPTED, *COMPATIBLE}


def asks_model(player: Any) -> bool:
    """Return whether a player, by name or as an object, is asked like a language model."""
    if not isinstance(player, str):
        return asks(player)
    kind = kind_of(player.partition(":")[0])
    if kind is not None:
        return kind.model is not None
    how = reading(player)
    return how == "provider" or (how == "own" and asks(named(player, "player")))


def _own_player(thing: Any, name: str, client: Settings, settings: Settings) -> Policy:
    player = player_of(thing, name)
    if not isinstance(player, Policy):
        return _asking(player, None, client, settings)
    if client or settings:
        raise _no_settings(name, client, settings)
    return player


def _no_settings(
    name: str, client: Settings, settings: Settings, taken: Sequence[str] = ()
) -> BadParameter:
    names, allowed = ", ".join([*client, *settings]), ", ".join(taken) or "no settings"
    return BadParameter(f"player {name!r} asks no model and takes {allowed}, got {names}")


def _unknown(name: str) -> UnknownName:
    provider, slash, model = name.partition(":")[0].partition("/")
    if provider in _providers() and not model:
        return UnknownName(f"{name!r} names no model: write {provider}/NAME")
    if slash and not is_named(name):
        return unknown("provider", provider, _providers())
    kinds = {*PLAYERS, *rooms.KINDS, *ELSEWHERE, *_room_kinds(*rooms.ROOMS)}
    return unknown("player", name, kinds)


def _kind(name: str, rules: Rulebook | None) -> tuple[Kind, str]:
    kind, colon, value = name.partition(":")
    room_kinds = {} if rules is None else _room_kinds(rules.name)
    about = room_kinds.get(kind) or kind_of(kind) or _room_kinds(*rooms.ROOMS).get(kind)
    if about is None and kind in ELSEWHERE:
        raise BadParameter(f"player {name!r}: {ELSEWHERE[kind]}")
    if about is None:
        raise _unknown(name)
    if colon and not about.value:
        raise BadParameter(f"player {kind!r} takes no value, got {name!r}")
    if about.needs_value and not value:
        raise BadParameter(f"player {kind!r} needs a value: {kind}:{about.value}, got {name!r}")
    return about, value


def make_player(
    name: Any, game: Any = None, client: Settings | None = None, **settings: Any
) -> Policy:
    """Make a player from its name, see `reading`: a kind, with its value where it takes one.

    Names are such as ``fixed:91``, ``openai/gpt-5`` and ``module:Name``; one's own may also be an
    object, see `player_of`. That it can play `game` (rules or a name) is checked now. For players
    that ask a language model, `client` has settings of its client, such as ``{"base_url": ...}``,
    and of its layers, see `add_layers`; `settings` are those of `llm_player`: ``reasoning=True``.

    Raises:
        UnknownName: there is no such player or setting; names the nearest.
        BadParameter: the value or a setting is not allowed, or the game has no such player.
    """
    if not isinstance(name, str):
        return _own_player(name, label_of(name), client or {}, settings)
    rules, how = None if game is None else rulebook(game), reading(name)
    if how == "provider":
        return PROVIDED(name, client or {}, settings)
    if how == "own":
        try:
            thing = named(name, "player")
        except UnknownName as error:
            raise UnknownName(f"{error}; and {_unknown(name)}") from None
        return _own_player(thing, name, client or {}, settings)
    about, value = _kind(name, rules)
    if about.model is not None:
        return about.model(about.read(value), client or {}, settings)
    taken = [*signature(about.made).parameters][1:] if about.made else []
    if client or settings.keys() - {*taken}:
        raise _no_settings(name, client or {}, settings, taken)
    read = about.read(value)
    if about.made is not None:
        policy = about.made(read, **settings)
        if rules is not None:
            _try(policy, rules)
        return policy
    policy = RulePolicy(name, partial(_rule_in, name))
    if rules is not None:
        policy.rule_in(rules.core)
    return policy


def _try(policy: Policy, rules: Rulebook) -> None:
    """Check that a player can play a game in some seat, or raise the first seat's error."""
    first_error: BadParameter | None = None
    game = rules if policy.speaks else rules.core
    for seat in range(rules.players):
        try:
            policy.start(game, seat, 0)
            return
        except WrongSeat as error:
            first_error = first_error or error
    assert first_error is not None  # a game has a seat
    raise first_error


def players_for(game: str) -> dict[str, str]:
    """Return the players of a game (or `UnknownName`): one line by name."""
    if game not in rooms.ROOMS:
        game = game_class(game).name
    shared = {kind: _load(address) for kind, address in rooms.KINDS.items()}
    names, kinds = {}, shared | PLAYERS | _room_kinds(game)
    for kind, about in sorted(kinds.items(), key=lambda item: item[1].model is not None):
        if about.model or about.made or rule_of(kind, game):
            summary = about.summary
            if kind == "best_response" and handed(game).assumed:
                summary = f"replies best, {handed(game).assumed}"
            names[f"{kind}:{about.value}" if about.needs_value else kind] = summary
            if about.value and not about.needs_value:
                names[f"{kind}:{about.value}"] = f"{about.summary}, {about.valued}"
    return names
