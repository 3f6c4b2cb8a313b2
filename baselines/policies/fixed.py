"""The player that always does the same.

Its value is a number within the game's range (kept within what is legal for the seat, such as its
own valuation), or a word of the question, such as ``go``. In battle royale: ``strongest``,
``weakest`` (the living other with the highest or lowest hit rate), ``nobody``, or the name of a
player, who is shot at while it lives and is another (then the strongest). In the pirate game
``accept`` or ``reject``, its vote on every plan; it proposes equal shares. In the English auction
a bid, made wherever it is legal, or -1 to withdraw at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from llm_games.baselines.games.english_auction import players as english_auction
from llm_games.baselines.policies.base import (
    ballot,
    decision,
    equal_shares,
    living_others,
    shape,
    shoot_first,
    strength,
)
from llm_games.errors import BadParameter
from llm_games.games.battle_royale.rules import MISS
from llm_games.questions import BadReply, Choice, Shares, Target
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View
from llm_games.wrappers.policy import Decision, Policy

TARGETS = ("strongest", "weakest", "nobody")
VOTES = {"accept": 1, "reject": 0}


@dataclass(frozen=True)
class FixedMemory:
    """What the player does: an action, or a word for it."""

    move: int | str


class FixedPolicy(Policy):
    """Plays one value in every round.

    Args:
        value: the value, see above.
    """

    def __init__(self, value: str) -> None:
        self.value, self.name = value, f"fixed:{value}"

    def start(self, game: Rulebook, seat: int, seed: int) -> FixedMemory:
        """Return what the value means in this game.

        Raises:
            BadParameter: it is no legal action there; names the allowed ones.
        """
        return FixedMemory(meaning(game, self.value))

    def act(self, view: View, memory: FixedMemory) -> tuple[Decision, FixedMemory]:
        """Do it."""
        rules: dict[str, Any] = {
            "battle_royale": _target,
            "pirate_game": _plan_or_vote,
            "english_auction": english_auction.fixed,
        }
        rule = rules.get(view.game.name, lambda view, move: np.full(shape(view), move))
        return decision(view, rule(view, memory.move)), memory


def meaning(game: Rulebook, value: str) -> int | str:
    """Return the action, or for targets and plans the word, that a value means in a game.

    Raises:
        BadParameter: it means none.
    """
    state = game.reset(np.random.default_rng(0))
    question = game.question(state, int(np.argmax(game.asked(state))))
    if isinstance(question, Choice):
        try:
            return question.read(value)
        except BadReply:
            raise _illegal(game, value, f"{question.wanted()}, as in fixed:go") from None
    if isinstance(question, Target):
        return _listed(game, value, (*TARGETS, *game.names()))
    if isinstance(question, Shares):
        return _listed(game, value, tuple(VOTES))
    return _number(game, value)


def _number(game: Rulebook, value: str) -> int:
    low, high = game.bounds()
    kind = "a number" if game.unit > 1 else "a whole number"
    allowed = f"{kind} from {low / game.unit:g} to {high / game.unit:g}"
    try:
        units = Decimal(value) * game.unit
    except InvalidOperation:
        raise _illegal(game, value, allowed) from None
    if not units.is_finite() or units != units.to_integral_value() or not low <= units <= high:
        raise _illegal(game, value, allowed)
    return int(units)


def _listed(game: Rulebook, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise _illegal(game, value, f"one of {', '.join(known)}")
    return value


def _illegal(game: Rulebook, value: str, allowed: str) -> BadParameter:
    return BadParameter(f"fixed:{value} cannot be played in {game.name}: it takes {allowed}")


def _target(view: View, move: str) -> Array:
    if move == "nobody":
        return np.full(shape(view), MISS)
    order = strength(view)
    best = shoot_first(-order if move == "weakest" else order, view)
    if move in TARGETS:
        return best
    wanted = view.game.names().index(move)
    return np.where(living_others(view)[..., wanted], wanted, best)


def _plan_or_vote(view: View, move: str) -> Array:
    return ballot(view, equal_shares(view), np.asarray(VOTES[move]))
