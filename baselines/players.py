"""All players by name: ``make_player("level_k:2")``.

A name is a kind, and for some kinds a value after a colon. `players_for` lists what there is for
a game; adding an `Entry` to `PLAYERS` adds a kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llm_games.baselines.policies import best_response, cooperative, level_k, rational
from llm_games.baselines.policies.base import RulePolicy, not_defined
from llm_games.baselines.policies.fixed import FixedPolicy, meaning
from llm_games.baselines.policies.uniform import UniformPolicy
from llm_games.errors import BadParameter, unknown
from llm_games.registry import GAMES, rulebook
from llm_games.rulebook import Rulebook
from llm_games.wrappers.policy import Policy

ALL = None
"""As the games of an entry: every game, your own included."""


@dataclass(frozen=True)
class Entry:
    """A kind of player.

    Attributes:
        summary: one line on what it does.
        build: makes it from the value after the colon ("" if there is none) and settings.
        games: the games it is defined for; None for every game.
        value: what stands after the colon, such as ``<level>``; "" if nothing may.
        needs_value: whether it must.
        model: whether it asks a language model and takes settings.
    """

    summary: str
    build: Callable[..., Policy]
    games: tuple[str, ...] | None = ALL
    value: str = ""
    needs_value: bool = False
    model: bool = False


def _level(value: str) -> Policy:
    if not value.isascii() or not value.isdigit() or len(value) > 3:
        raise BadParameter(f"level_k needs a level from 0 to 999, as in level_k:2, got {value!r}")
    return RulePolicy(f"level_k:{value}", level_k.rules(int(value)))


def _tiny(value: str, **settings: Any) -> Policy:
    from llm_games.baselines.tiny.client import TinyClient
    from llm_games.wrappers.llm_policy import LLMPolicy

    if value not in ("", "constrained"):
        raise unknown("player", f"tiny:{value}", ("tiny", "tiny:constrained"))
    return LLMPolicy(TinyClient(constrained=value == "constrained"), **settings)


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
    "random": Entry("draws any legal action", lambda _: UniformPolicy()),
    "fixed": Entry(
        "always does the same: a number, or a word of the game", FixedPolicy, ALL, "<action>", True
    ),
    "tiny": Entry(
        "the embedded language model; constrained: only legal replies",
        _tiny,
        ALL,
        "constrained",
        model=True,
    ),
}
"""All kinds of players by name."""


def make_player(name: str, game: Rulebook | str | None = None, **settings: Any) -> Policy:
    """Make a player from its name.

    Args:
        name: a kind, with its value where it takes one: ``"rational"``, ``"fixed:91"``.
        game: the game it shall play (rules or name): checks now that it can.
        settings: of `LLMPolicy`, for players that ask a language model.

    Raises:
        UnknownName: there is no such player; names the nearest.
        BadParameter: the value or a setting is not allowed, or the player is not defined for
            the game.
    """
    kind, colon, value = name.partition(":")
    if kind not in PLAYERS:
        raise unknown("player", name, PLAYERS)
    entry = PLAYERS[kind]
    if bool(colon) and not entry.value:
        raise BadParameter(f"player {kind!r} takes no value, got {name!r}")
    if entry.needs_value and not value:
        raise BadParameter(f"player {kind!r} needs a value: {kind}:{entry.value}, got {name!r}")
    if settings and not entry.model:
        raise BadParameter(f"player {name!r} takes no settings, got {', '.join(settings)}")
    policy = entry.build(value, **settings)
    if game is not None:
        _check(policy, entry, rulebook(game) if isinstance(game, str) else game)
    return policy


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
    return {
        f"{kind}:{entry.value}" if entry.needs_value else kind: entry.summary
        for kind, entry in PLAYERS.items()
        if entry.games is None or game in entry.games
    }
