"""All players by name: ``make_player("level_k:2")``.

A name is a kind, and for some kinds a value after a colon. `players_for` lists what there is for
a game; adding an `Entry` to `PLAYERS` adds a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from llm_games import rooms
from llm_games.baselines.games.english_auction import players as english_auction
from llm_games.baselines.games.sealed_bid_auction import players as sealed_bid_auction
from llm_games.baselines.games.water_allocation import players as water_allocation
from llm_games.baselines.policies import best_response, cooperative, level_k, rational
from llm_games.baselines.policies.base import RulePolicy, not_defined
from llm_games.baselines.policies.fixed import FixedPolicy, meaning
from llm_games.baselines.policies.uniform import UniformPolicy
from llm_games.errors import BadParameter, unknown
from llm_games.registry import GAMES, rulebook
from llm_games.rulebook import Rulebook, ratio_of
from llm_games.wrappers.policy import Policy

if TYPE_CHECKING:
    from llm_games.wrappers.clients.base import Client
    from llm_games.wrappers.llm_policy import LLMPolicy
    from llm_games.wrappers.mind import Mind

Settings = Mapping[str, Any]
ALL = None
"""As the games of an entry: every game, your own included."""


@dataclass(frozen=True)
class Entry:
    """A kind of player.

    Attributes:
        summary: one line on what it does.
        build: makes it from the value after the colon ("" if there is none).
        games: the games it is defined for; None for every game.
        value: what stands after the colon, such as ``<level>``; "" if nothing may.
        needs_value: whether it must.
        model: instead of `build`, for players that ask a language model: makes it from the value,
            the client's settings and the player's.
    """

    summary: str
    build: Callable[[str], Policy] | None = None
    games: tuple[str, ...] | None = ALL
    value: str = ""
    needs_value: bool = False
    model: Callable[[str, Settings, Settings], Policy] | None = None


def _level(value: str) -> Policy:
    if not value.isascii() or not value.isdigit() or len(value) > 3:
        raise BadParameter(f"level_k needs a level from 0 to 999, as in level_k:2, got {value!r}")
    return RulePolicy(f"level_k:{value}", level_k.rules(int(value)))


def _dp(value: str) -> Policy:
    highest = water_allocation.HIGHEST_LEVEL
    if value not in map(str, range(1, highest + 1)):
        raise BadParameter(f"dp needs a level from 1 to {highest}, as in dp:1, got {value!r}")
    return RulePolicy(f"dp:{value}", water_allocation.level(int(value)))


def _thumb(name: str, summary: str) -> Entry:
    rules = water_allocation.thumb(name)
    if name in sealed_bid_auction.THUMB:
        rules[sealed_bid_auction.GAME] = sealed_bid_auction.THUMB[name]
    return Entry(summary, lambda _: RulePolicy(name, rules), tuple(rules))


def _truthful(_: str) -> Policy:
    bid = sealed_bid_auction.share(Fraction(1))
    rules = {sealed_bid_auction.GAME: bid, english_auction.GAME: english_auction.naive}
    return RulePolicy("truthful", rules)


def _shade(value: str) -> Policy:
    try:
        part = ratio_of("shade", value, 0, 1)
    except BadParameter:
        raise BadParameter(
            f"shade needs a share from 0 to 1, as in shade:0.9, got {value!r}"
        ) from None
    return RulePolicy(f"shade:{value}", {sealed_bid_auction.GAME: sealed_bid_auction.share(part)})


def _rule(value: str) -> Policy:
    if not value.isascii() or not value.isdigit() or len(value) > 3 or int(value) < 1:
        raise BadParameter(f"rule needs 1 to 999 bids an item, as in rule:4, got {value!r}")
    return RulePolicy(f"rule:{value}", {english_auction.GAME: english_auction.rule(int(value))})


def _bidder(name: str, _: str) -> Policy:
    return RulePolicy(name, {english_auction.GAME: english_auction.BIDDERS[name]})


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

PLAYERS: dict[str, Entry] = {
    "rational": Entry(
        "plays an equilibrium",
        lambda _: RulePolicy("rational", rational.RULES),
        tuple(rational.RULES),
    ),
    "best_response": Entry(
        "replies best to what the others did last, as far as it knows",
        lambda _: RulePolicy("best_response", best_response.RULES),
        tuple(best_response.RULES),
    ),
    "level_k": Entry(
        "thinks some steps ahead of players who act at random",
        _level,
        tuple(level_k.rules(0)),
        "<level>",
        needs_value=True,
    ),
    "cooperative": Entry(
        "does its part of what is best for all",
        lambda _: RulePolicy("cooperative", cooperative.RULES),
        tuple(cooperative.RULES),
    ),
    "rule": Entry(
        "raises by the minimum, so many times an item, whatever the item is worth",
        _rule,
        (english_auction.GAME,),
        "<bids>",
        needs_value=True,
    ),
    **{
        name: Entry(summary, partial(_bidder, name), (english_auction.GAME,))
        for name, summary in english_auction.SUMMARIES.items()
    },
    "truthful": Entry(
        "bids its valuation, or raises up to it",
        _truthful,
        (sealed_bid_auction.GAME, english_auction.GAME),
    ),
    "shade": Entry(
        "bids a share of its valuation",
        _shade,
        (sealed_bid_auction.GAME,),
        "<share>",
        needs_value=True,
    ),
    "random": Entry("draws any legal action", lambda _: UniformPolicy()),
    "fixed": Entry(
        "always does the same: a number, or a word of the game", FixedPolicy, ALL, "<action>", True
    ),
    "even": _thumb("even", "spreads its money over the dry days that it can still survive"),
    "salary": _thumb("salary", "bids its salary"),
    "half": _thumb("half", "bids half of its money"),
    "urgent": _thumb("urgent", "bids only when it must have water today or tomorrow"),
    "all_in": _thumb("all_in", "bids all its money"),
    "zero": _thumb("zero", "bids 0 and takes what is left over"),
    "dp": Entry(
        "replies best, by dynamic programming, to players of the level below (0: even)",
        _dp,
        (water_allocation.GAME,),
        "<level>",
        needs_value=True,
    ),
    "tiny": Entry("the embedded language model", model=_tiny, value="constrained"),
    "openai": Entry(
        "a language model behind an OpenAI-compatible server",
        model=_openai,
        value="<model>",
        needs_value=True,
    ),
    "transformers": Entry(
        "a local language model, by its folder",
        model=_transformers,
        value="<path>",
        needs_value=True,
    ),
}
"""All kinds of players by name."""


def make_player(
    name: str,
    game: Rulebook | str | None = None,
    client: Settings | None = None,
    **settings: Any,
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
    if kind not in PLAYERS:
        raise unknown("player", name, PLAYERS)
    entry = PLAYERS[kind]
    if bool(colon) and not entry.value:
        raise BadParameter(f"player {kind!r} takes no value, got {name!r}")
    if entry.needs_value and not value:
        raise BadParameter(f"player {kind!r} needs a value: {kind}:{entry.value}, got {name!r}")
    policy = _build(entry, name, value, client or {}, settings)
    if game is not None:
        _check(policy, entry, rulebook(game) if isinstance(game, str) else game)
    return policy


def _build(entry: Entry, name: str, value: str, client: Settings, settings: Settings) -> Policy:
    if entry.model is not None:
        return entry.model(value, client, settings)
    if client or settings:
        given = ", ".join([*client, *settings])
        raise BadParameter(f"player {name!r} asks no model and takes no settings, got {given}")
    assert entry.build is not None
    return entry.build(value)


def _check(policy: Policy, entry: Entry, game: Rulebook) -> None:
    if entry.games is not None and game.name not in entry.games:
        raise not_defined(policy.name, game.name, dict.fromkeys(entry.games))
    if isinstance(policy, FixedPolicy):
        meaning(game, policy.value)


def players_for(game: str) -> dict[str, str]:
    """Return the players that are defined for a game: name and one line on each.

    Raises:
        UnknownName: there is no such game.
    """
    if game not in GAMES:
        raise unknown("game", game, GAMES)
    names = {}
    for kind, entry in PLAYERS.items():
        if entry.games is None or game in entry.games:
            names[f"{kind}:{entry.value}" if entry.needs_value else kind] = entry.summary
            if entry.value and not entry.needs_value:
                names[f"{kind}:{entry.value}"] = f"{entry.summary}, legal replies only"
    return names
