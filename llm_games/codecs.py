"""How a seat's actions look outside: an index, shares of what is legal, the rules' units, or text.

A codec has a Gymnasium space and turns its members into moves of the rules. Most moves are one
action; a plan is several, one share after another, and a reply that cannot be read may be asked for
again. Until a move is whole, the codec holds its beginning, and the table does not change.
"""

from __future__ import annotations

import string
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from gymnasium import spaces

from llm_games.errors import IllegalAction
from llm_games.facts import check_choice
from llm_games.questions import MISSING, Action, Shares
from llm_games.replies import read_reply
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View

ACTIONS = ("index", "unit", "rules", "text")
MOST_INDEXES = 256
"""Amounts of a fixed range up to this many are indexes themselves; of more, shares of it are."""
FINE = 2**20  # parts of a share that ``unit`` tells apart
LONGEST_TEXT = 32_768
CHARACTERS = frozenset(string.printable)


def text_space() -> spaces.Text:
    """Return a space of texts."""
    return spaces.Text(LONGEST_TEXT, min_length=0, charset=CHARACTERS)


class Codec(ABC):
    """One seat's actions, of a Gymnasium `space`; of `masked` ones a learner sees which are legal.

    `heard` is what a reply in words came to, for ``infos``; empty for other actions.
    """

    space: Any
    masked = False

    def __init__(self, game: Rulebook, seat: int) -> None:
        self.game, self.seat, self.declines = game, seat, game.decline is not None
        self.heard: dict[str, Any] = {}

    def begin(self) -> None:
        """Forget the beginning of a move: another step has come."""
        self.heard = {}

    @abstractmethod
    def take(self, view: View, action: Any) -> Action | None:
        """Turn an action into a move of the rules, None until it is whole, or `refuse` it."""

    def mask(self, view: View) -> Array:
        """Return which indexes are legal, bool; of a seat that is not asked, index 0 alone."""
        places = np.arange(self.space.n)
        return places < (1 if view.question is None else len(places))

    def shown(self, numbers: Array) -> Array:
        """Show the beginning of a move in what the seat sees as numbers."""
        return numbers

    def refuse(self, action: Any) -> IllegalAction:
        """Return the error for an action that is not in the space."""
        space, wanted = self.space, "a text"
        if isinstance(space, spaces.Discrete):
            wanted = f"an integer from 0 to {space.n - 1}"
        elif isinstance(space, spaces.Box):
            wanted = f"{space.shape[0]} numbers from -1 to 1"
        return IllegalAction(f"{self.game.names()[self.seat]}: {action!r} is not {wanted}")


class Rules(Codec):
    """Actions in the rules' own units, for records and programs."""

    def __init__(self, game: Rulebook, seat: int) -> None:
        super().__init__(game, seat)
        self.space = game.space(seat)
        self.masked = game.masked and isinstance(self.space, spaces.Discrete)

    def take(self, view: View, action: Any) -> Action:
        return self.game.decode(view.sight.state, self.seat, action)

    def mask(self, view: View) -> Array:
        return super().mask(view) if view.mask is None else view.mask


class Index(Codec):
    """A number from 0 on for each action, where these are few and always the same."""

    def __init__(self, game: Rulebook, seat: int) -> None:
        super().__init__(game, seat)
        self.low, high = game.bounds()
        self.space = spaces.Discrete(high - self.low + 1)
        self.masked = game.picks

    def take(self, view: View, action: Any) -> Action:
        if type(action) is int and 0 <= action < self.space.n:  # a short way for most
            return self.low + action
        return MISSING if action is None else self.low + _index(self, action)

    def mask(self, view: View) -> Array:
        own = view.mask if self.masked and view.question is not None else None
        return super().mask(view) if own is None else own


class Steps(Codec):
    """A number from 0 on for each share of what is legal now, smallest first.

    Where a seat may decline, index 0 does. What lies between two shares cannot be said.
    """

    def __init__(self, game: Rulebook, seat: int) -> None:
        super().__init__(game, seat)
        self.space = spaces.Discrete(game.steps + self.declines)

    def take(self, view: View, action: Any) -> Action | None:
        if action is None:
            return MISSING
        index = _index(self, action) - self.declines
        return _share(view, index, self.game.steps - 1) if index >= 0 else self.game.decline


class Unit(Codec):
    """A share of what is legal now, from -1 (the smallest) to 1; the first of two decides to act.

    Of actions that are no amounts, such as targets, a share counts off the legal ones.
    """

    def __init__(self, game: Rulebook, seat: int) -> None:
        super().__init__(game, seat)
        self.space = spaces.Box(-1.0, 1.0, (1 + self.declines,), np.float32)

    def take(self, view: View, action: Any) -> Action | None:
        if action is None:
            return MISSING
        *act, share = _floats(self, action)
        if act and act[0] < 0:
            return self.game.decline
        parts = round((share + 1) / 2 * FINE)
        if not self.game.picks:
            return _share(view, parts, FINE)
        legal = np.flatnonzero(Index(self.game, self.seat).mask(view))
        return self.game.bounds()[0] + int(legal[min(parts * len(legal) // FINE, len(legal) - 1)])


class Division(Codec):
    """A plan as shares one after another, each of what is left; the last takes the rest.

    Indexes are whole shares where these are few, else parts of what is left. A vote is index 0
    (the lower action) or 1.
    """

    masked = True

    def __init__(self, game: Rulebook, seat: int) -> None:
        super().__init__(game, seat)
        self.total = game.division or 0
        self.held: tuple[int, ...] = ()
        self.whole = self.total < MOST_INDEXES
        self.space = spaces.Discrete(max(self.total + 1 if self.whole else game.steps, 2))

    def begin(self) -> None:
        super().begin()
        self.held = ()

    def meant(self, action: Any, left: int) -> tuple[int, int]:
        """Return the vote, and the amount of what is left, that an action can mean."""
        index = _index(self, action)
        amount = min(index, left) if self.whole else _part(0, left, index, self.game.steps - 1)
        return min(index, 1), amount

    def take(self, view: View, action: Any) -> Action | None:
        if action is None:
            return MISSING
        vote, amount = self.meant(action, self.total - sum(self.held))
        if not isinstance(view.question, Shares):
            return vote
        self.held, ranks = (*self.held, amount), view.question.ranks
        if len(self.held) < len(ranks) - 1:
            return None
        plan = [0] * self.game.players
        for rank, share in zip(ranks, (*self.held, self.total - sum(self.held)), strict=False):
            plan[rank - 1] = share
        return tuple(plan)

    def mask(self, view: View) -> Array:
        places = np.arange(self.space.n)
        if isinstance(view.question, Shares):
            return places <= (self.total - sum(self.held) if self.whole else len(places))
        return places < (1 if view.question is None else 2)

    def shown(self, numbers: Array) -> Array:
        return self.game.drafted(numbers, self.seat, self.held) if self.held else numbers


class UnitDivision(Division):
    """The same as shares from -1 to 1 of what is left; a vote is the lower action below 0."""

    masked = False

    def __init__(self, game: Rulebook, seat: int) -> None:
        super().__init__(game, seat)
        self.space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def meant(self, action: Any, left: int) -> tuple[int, int]:
        parts = round((_floats(self, action)[0] + 1) / 2 * FINE)
        return int(2 * parts >= FINE), _part(0, left, parts, FINE)


class FreeText(Codec):
    """A reply in words, read as a language model's is; up to `reask` bad ones are asked again."""

    def __init__(self, game: Rulebook, seat: int, reask: int = 0) -> None:
        super().__init__(game, seat)
        self.space, self.reask, self.left = text_space(), reask, reask

    def begin(self) -> None:
        super().begin()
        self.left = self.reask

    def take(self, view: View, action: Any) -> Action | None:
        if action is None or view.question is None:
            return MISSING
        if not isinstance(action, str):
            raise self.refuse(action)
        reply = read_reply(action, view.question)
        self.heard = {"outcome": reply.outcome, "why": reply.why}
        if reply.outcome != "valid" and self.left:
            self.left -= 1
            return None
        return reply.action


def codec(game: Rulebook, seat: int, actions: str = "index", reask: int = 0) -> Codec:
    """Return the codec of a seat for one of `ACTIONS`; `reask` is of replies in words."""
    check_choice("actions", actions, ACTIONS)
    if actions == "rules":
        return Rules(game, seat)
    if actions == "text":
        return FreeText(game, seat, reask)
    if game.division is not None:
        return (Division if actions == "index" else UnitDivision)(game, seat)
    if actions == "unit":
        return Unit(game, seat)
    low, high = game.bounds()
    fixed = game.picks or (game.same_limits and game.decline is None)
    return (Index if fixed and high - low < MOST_INDEXES else Steps)(game, seat)


def _index(codec: Codec, action: Any) -> int:
    value, count = np.asarray(action), codec.space.n
    if value.size != 1 or value.dtype.kind not in "iu" or not 0 <= value.item() < count:
        raise codec.refuse(action)
    return int(value.item())


def _floats(codec: Codec, action: Any) -> list[float]:
    values = np.asarray(action)
    if values.dtype.kind not in "iuf" or values.size != codec.space.shape[0]:
        raise codec.refuse(action)
    found: list[float] = values.astype(np.float64).ravel().tolist()
    if not all(-1 <= value <= 1 for value in found):
        raise codec.refuse(action)
    return found


def _part(low: int, high: int, k: int, parts: int) -> int:
    """Return the amount at part k of the way from `low` to `high`, in whole numbers."""
    return low + ((high - low) * k + parts // 2) // parts if parts else low


def _share(view: View, k: int, parts: int) -> int:
    low, high = (int(limit) for limit in view.amounts)
    if low > high and view.game.decline is not None:
        return view.game.decline
    return _part(low, high, k, parts)
