"""How a seat's actions look outside: an index, shares of what is legal, the rules' units, or text.

A codec has a Gymnasium space and turns its members into moves of the rules. Most moves are one
action; a plan is several, one share after another, and a reply that cannot be read may be asked for
again. Until a move is whole, the codec holds its beginning, and the table does not change.

`take` and `mask` are of one table, `taken` and `masks` of a batch; both say the same.
"""

from __future__ import annotations

import string
from abc import ABC, abstractmethod
from copy import copy
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import create_shared_memory

from llm_games.arrays import Array, any_true, array_of, tall
from llm_games.errors import BadParameter, IllegalAction
from llm_games.facts import check_choice
from llm_games.questions import MISSING, Action, Shares
from llm_games.replies import read_reply
from llm_games.rulebook import Rulebook, actions_of
from llm_games.talk import Talking
from llm_games.view import View

ACTIONS = ("index", "least", "unit", "rules", "text")
MOST_INDEXES = 256
"""Amounts of a fixed range up to this many are indexes themselves; of more, shares of it are."""
FINE = 2**20  # parts of a share that ``unit`` tells apart
LONGEST_TEXT = 32_768
CHARACTERS = frozenset(string.printable)

Taken = tuple[Array, Array]
"""Moves, int64 ``(*batch)`` or the columns of plans ``(players, *batch)``, 0 where there is none,
and where a move is whole, bool ``(*batch)``."""


class Words(spaces.Text):
    """A space of texts, which Gymnasium cannot share between processes.

    It reads the shared memory once, before there are any, and returns tabs from then on.
    """


@create_shared_memory.register
def _refuse(space: Words, n: int = 1, ctx: Any = None) -> Any:
    raise CustomSpaceError("texts come back as tabs through shared memory")


def text_space() -> Words:
    """Return a space of texts."""
    return Words(LONGEST_TEXT, min_length=0, charset=CHARACTERS)


def in_text_space(text: str) -> str:
    """Return a text as one of the space: others' speeches may be long, or not in ASCII."""
    text = text if text.isascii() else text.encode("ascii", "backslashreplace").decode()
    half = LONGEST_TEXT // 2 - 10
    return text if len(text) <= LONGEST_TEXT else f"{text[:half]} [...] {text[-half:]}"


class Codec(ABC):
    """One seat's actions, of a Gymnasium `space`; of `masked` ones a learner sees which are legal.

    `heard` is what a reply in words came to, for ``infos``; empty for other actions. In a `batch`
    it is by table, and the seat that acts is the view's: it may be another one at each table.
    """

    space: Any
    masked = False
    speaks = False  # it can say something where there is talk

    def __init__(self, game: Rulebook, seat: int, batch: tuple[int, ...] = ()) -> None:
        self.game, self.seat, self.batch = game, seat, batch
        self.declines = game.decline is not None
        self.heard: dict[Any, Any] = {}

    def begin(self, where: Any = None) -> None:
        """Forget the beginning of a move: another step has come; of a batch, at tables `where`."""
        self.heard = {}

    @abstractmethod
    def take(self, view: View, action: Any) -> Action | None:
        """Turn an action into a move of the rules, None until it is whole, or `refuse` it."""

    @abstractmethod
    def taken(self, view: View, actions: Any, where: Array) -> Taken:
        """Turn the actions of tables `where`, bool ``(*batch)``, into moves.

        `actions` are ``(*batch, *space.shape)``, of texts a list; those of other tables are not
        looked at. One outside the space is refused before any is taken.
        """

    def need_masks(self) -> None:
        """Raise BadParameter if actions are no indexes, of which some may be legal."""
        if not isinstance(self.space, spaces.Discrete):
            raise BadParameter(f"{self.game.name} has no masks: its actions are {self.space}")

    def mask(self, view: View) -> Array:
        """Return which indexes are legal, bool; of a seat that is not asked, index 0 alone."""
        places = np.arange(self.space.n)
        return places < (1 if view.question is None else len(places))

    def masks(self, view: View) -> Array:
        """Return the masks of a batch, bool ``(*batch, indexes)``."""
        return np.arange(self.space.n) < np.where(view.asked, self.space.n, 1)[..., None]

    def shown(self, numbers: Array) -> Array:
        """Show the beginning of a move in what the seat sees as numbers, ``(*batch, columns)``."""
        return numbers

    def refuse(self, action: Any, seat: int | None = None, table: Any = None) -> IllegalAction:
        """Return the error for an action that is not in the space, at a table of a batch."""
        space, wanted = self.space, "a text"
        if isinstance(space, spaces.Discrete):
            wanted = f"an integer from 0 to {space.n - 1}"
        elif isinstance(space, spaces.Box):
            wanted = f"{space.shape[0]} numbers from -1 to 1"
        who = self.game.names()[self.seat if seat is None else seat]
        at = "" if table is None else f" at table {table}"
        return IllegalAction(f"{who}{at}: {action!r} is not {wanted}")

    def _refused(self, view: View, actions: Any, wrong: Array) -> IllegalAction:
        """Return the error for the first of the wrong tables."""
        table = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        seat = np.broadcast_to(view.seat, wrong.shape)[table]
        plain = tuple(map(int, table))
        action = actions[plain].tolist()
        return self.refuse(action, int(seat), plain[0] if len(plain) == 1 else plain)

    def _indexes(self, view: View, actions: Any, where: Array) -> Array:
        """Return indexes in the space, int64 ``(*batch)``, 0 at other tables."""
        array = array_of(actions)
        if array.shape != where.shape or array.dtype.kind not in "iu":
            raise self._shape(array, f"integers from 0 to {self.space.n - 1}", where.shape)
        wrong = where & (array.astype(np.uint64) >= self.space.n)  # below 0: beyond them, too
        if any_true(wrong):
            raise self._refused(view, array, wrong)
        return np.where(where, array, 0).astype(np.int64, copy=False)

    def _floats(self, view: View, actions: Any, where: Array) -> Array:
        """Return numbers in the space, float64 ``(numbers, *batch)``, 0 at other tables."""
        array, shape = array_of(actions), (*where.shape, *self.space.shape)
        if array.shape != shape or array.dtype.kind not in "iuf":
            raise self._shape(array, "numbers from -1 to 1", shape)
        inside = (array >= -1) & (array <= 1)  # no number is not inside either
        wrong = where & ~inside.all(axis=-1)
        if any_true(wrong):
            raise self._refused(view, array, wrong)
        return np.moveaxis(np.where(where[..., None], array, 0).astype(np.float64), -1, 0)

    def _shape(self, array: Array, wanted: str, shape: tuple[int, ...]) -> IllegalAction:
        return IllegalAction(
            f"{self.game.name}: actions must be {wanted} of shape {shape}, one for each table, "
            f"got {array.dtype} of shape {array.shape}"
        )


class Rules(Codec):
    """Actions in the rules' own units, for records and programs."""

    def __init__(self, game: Rulebook, seat: int, batch: tuple[int, ...] = ()) -> None:
        super().__init__(game, seat, batch)
        self.space = game.space(seat)
        self.masked = game.masked and isinstance(self.space, spaces.Discrete)

    def take(self, view: View, action: Any) -> Action:
        return self.game.decode(view.sight.state, self.seat, action)

    def taken(self, view: View, actions: Any, where: Array) -> Taken:
        shape = (*where.shape, *(self.space.shape or ()))
        array = array_of(actions)
        if array.shape != shape:
            raise self._shape(array, f"of {self.space}", shape)
        plans = (self.game.players,) if self.game.division is not None else ()
        moves = np.zeros((*plans, *where.shape), np.int64)
        for table in zip(*np.nonzero(where), strict=True):
            state, seat = view.sight.state.table(table), int(view.table(table).seat)
            try:
                move = self.game.decode(state, seat, np.asarray(array[table]).tolist())
            except IllegalAction as error:
                raise IllegalAction(f"table {', '.join(map(str, table))}: {error}") from None
            if plans and not isinstance(move, tuple):
                moves[(seat, *table)] = move
            else:
                moves[(..., *table)] = actions_of(move)
        return moves, where

    def mask(self, view: View) -> Array:
        legal = view.mask if view.question is not None else None
        return super().mask(view) if legal is None else legal

    def masks(self, view: View) -> Array:
        return super().masks(view) if view.mask is None else _with_no_op(view.mask, view)


class Index(Codec):
    """A number from 0 on for each action, where these are few and always the same."""

    def __init__(self, game: Rulebook, seat: int, batch: tuple[int, ...] = ()) -> None:
        super().__init__(game, seat, batch)
        self.low, high = game.bounds()
        self.space = spaces.Discrete(high - self.low + 1)
        self.masked = game.picks

    def take(self, view: View, action: Any) -> Action:
        if type(action) is int and 0 <= action < self.space.n:  # a short way for most
            return self.low + action
        return MISSING if action is None else self.low + _index(self, action)

    def taken(self, view: View, actions: Any, where: Array) -> Taken:
        index = self._indexes(view, actions, where)
        return (self.low + index) * where if self.low else index, where

    def mask(self, view: View) -> Array:
        own = view.mask if self.masked and view.question is not None else None
        return super().mask(view) if own is None else own

    def masks(self, view: View) -> Array:
        own = view.mask if self.masked else None
        return super().masks(view) if own is None else _with_no_op(own, view)


class Steps(Codec):
    """A number from 0 on for each share of what is legal now, smallest first.

    Where a seat may decline, index 0 does. What lies between two shares cannot be said. Of one
    share there is the smallest alone.
    """

    def __init__(
        self, game: Rulebook, seat: int, batch: tuple[int, ...] = (), steps: int | None = None
    ) -> None:
        super().__init__(game, seat, batch)
        self.parts = (steps or game.steps) - 1
        self.space = spaces.Discrete(self.parts + 1 + self.declines)

    def take(self, view: View, action: Any) -> Action | None:
        if action is None:
            return MISSING
        index = _index(self, action) - self.declines
        return _share(view, index, self.parts) if index >= 0 else self.game.decline

    def taken(self, view: View, actions: Any, where: Array) -> Taken:
        index = self._indexes(view, actions, where) - self.declines
        amounts = _shares(view, np.maximum(index, 0), self.parts)
        return _declined(self.game, amounts, index < 0) * where, where


class NamedActions(Codec):
    """A number from 0 on for each of some actions that a game names, see `Rulebook.grid`."""

    def __init__(self, game: Rulebook, seat: int, batch: tuple[int, ...] = ()) -> None:
        super().__init__(game, seat, batch)
        self.actions = np.array(game.grid, np.int64)
        self.space = spaces.Discrete(len(self.actions))

    def take(self, view: View, action: Any) -> Action:
        return MISSING if action is None else int(self.actions[_index(self, action)])

    def taken(self, view: View, actions: Any, where: Array) -> Taken:
        return self.actions[self._indexes(view, actions, where)] * where, where


class Unit(Codec):
    """A share of what is legal now, from -1 (the smallest) to 1; the first of two decides to act.

    Of actions that are no amounts, such as targets, a share counts off the legal ones.
    """

    def __init__(self, game: Rulebook, seat: int, batch: tuple[int, ...] = ()) -> None:
        super().__init__(game, seat, batch)
        self.space = spaces.Box(-1.0, 1.0, (1 + self.declines,), np.float32)
        self._picks = Index(game, seat, batch)

    def take(self, view: View, action: Any) -> Action | None:
        if action is None:
            return MISSING
        *act, share = _floats(self, action)
        if act and act[0] < 0:
            return self.game.decline
        parts = round((share + 1) / 2 * FINE)
        if not self.game.picks:
            return _share(view, parts, FINE)
        legal = np.flatnonzero(self._picks.mask(view))
        return self._picks.low + int(legal[min(parts * len(legal) // FINE, len(legal) - 1)])

    def taken(self, view: View, actions: Any, where: Array) -> Taken:
        *act, share = self._floats(view, actions, where)
        parts = np.rint((share + 1) / 2 * FINE).astype(np.int64)
        if self.game.picks:
            upto = self._picks.masks(view).cumsum(axis=-1)
            many = upto[..., -1]
            place = np.minimum(parts * many // FINE, many - 1)
            moves = self._picks.low + (upto > place[..., None]).argmax(axis=-1)
        else:
            moves = _shares(view, parts, FINE)
        return (_declined(self.game, moves, act[0] < 0) if act else moves) * where, where


class Division(Codec):
    """A plan as shares one after another, each of what is left; the last takes the rest.

    Indexes are whole shares where these are few, else parts of what is left. A vote is index 0
    (the lower action) or 1.
    """

    masked = True

    def __init__(self, game: Rulebook, seat: int, batch: tuple[int, ...] = ()) -> None:
        super().__init__(game, seat, batch)
        self.total = game.division or 0
        self.whole = self.total < MOST_INDEXES
        self.space = spaces.Discrete(max(self.total + 1 if self.whole else game.steps, 2))
        self.begin()

    def begin(self, where: Any = None) -> None:
        super().begin()
        if not self.batch:  # of one table: lists are faster
            self.plan: Any = [0] * self.game.players
            self.given: Any = 0  # how many shares of the plan there are
        elif where is None:
            self.plan = np.zeros((self.game.players, *self.batch), np.int64)
            self.given = np.zeros(self.batch, np.int64)
        elif any_true(self.given):
            self.plan, self.given = self.plan * ~where, self.given * ~where

    def read(self, action: Any) -> int:
        """Return an action as a number."""
        return _index(self, action)

    def reads(self, view: View, actions: Any, where: Array) -> Array:
        """Return actions as numbers, int64 ``(*batch)``."""
        return self._indexes(view, actions, where)

    def vote(self, said: Any) -> Any:
        """Return which vote a number means."""
        return (said > 0) * 1

    def share(self, said: Any, left: Any) -> Any:
        """Return how much of what is left a number means."""
        if self.whole:
            return np.minimum(said, left) if self.batch else min(said, left)
        return _part(0, left, said, self.game.steps - 1)

    def take(self, view: View, action: Any) -> Action | None:
        if action is None:
            return MISSING
        said, left = self.read(action), self.total - sum(self.plan)
        if not isinstance(view.question, Shares):
            return int(self.vote(said))
        ranks = view.question.ranks
        share = self.plan[ranks[self.given] - 1] = self.share(said, left)
        self.given += 1
        if self.given < len(ranks) - 1:
            return None
        last = ranks[-1] - 1
        return (*self.plan[:last], left - share, *self.plan[last + 1 :])

    def taken(self, view: View, actions: Any, where: Array) -> Taken:
        said, left = self.reads(view, actions, where), self.total - self.plan.sum(axis=0)
        sharers = self.game.sharers(view.sight.state)
        place, many = sharers.cumsum(axis=0), sharers.sum(axis=0)
        planning = where & (many > 0)
        share = self.share(said, left) * planning
        self.plan = self.plan + (sharers & (place == self.given + 1)) * share
        self.given = self.given + planning
        done = planning & (self.given >= many - 1)
        moves = self.plan * done + (sharers & (place == many)) * ((left - share) * done)
        own = tall(np.arange(self.game.players), where.shape) == view.seat
        moves += own * (self.vote(said) * (where & ~planning))
        return moves, where & (~planning | done)

    def mask(self, view: View) -> Array:
        places = np.arange(self.space.n)
        if isinstance(view.question, Shares):
            return places <= (self.total - sum(self.plan) if self.whole else len(places))
        return places < (1 if view.question is None else 2)

    def masks(self, view: View) -> Array:
        planning = view.asked & self.game.sharers(view.sight.state).any(axis=0)
        shares = self.total - self.plan.sum(axis=0) if self.whole else self.space.n - 1
        highest = np.where(planning, shares, view.asked)
        return np.arange(self.space.n) <= highest[..., None]

    def shown(self, numbers: Array) -> Array:
        if not (any_true(self.given) if self.batch else self.given):
            return numbers
        return self.game.drafted(numbers, np.asarray(self.plan, np.int64))


class UnitDivision(Division):
    """The same as shares from -1 to 1 of what is left; a vote is the lower action below 0."""

    masked = False

    def __init__(self, game: Rulebook, seat: int, batch: tuple[int, ...] = ()) -> None:
        super().__init__(game, seat, batch)
        self.space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def read(self, action: Any) -> int:
        return round((_floats(self, action)[0] + 1) / 2 * FINE)

    def reads(self, view: View, actions: Any, where: Array) -> Array:
        (share,) = self._floats(view, actions, where)
        return np.rint((share + 1) / 2 * FINE).astype(np.int64)

    def vote(self, said: Any) -> Any:
        return (2 * said >= FINE) * 1

    def share(self, said: Any, left: Any) -> Any:
        return _part(0, left, said, FINE)


class Beside(Codec):
    """A seat's moves in a game with talk, and beside them `symbols` to say, if there are any.

    Of indexes, those behind the moves' are symbols, 0 (silence) first; a mask shows what is legal
    now. Of several numbers, one more is the symbol. A symbol in place of a move is no answer, and a
    move in place of a symbol is silence.
    """

    def __init__(self, game: Rulebook, moves: Codec, symbols: int = 0) -> None:
        super().__init__(game, moves.seat, moves.batch)
        self.moves, self.symbols, self.space = moves, symbols, moves.space
        self.speaks, self.masked = symbols > 0, moves.masked
        if symbols:
            self.space = self._with_symbols(moves.space)
            self.masked |= isinstance(self.space, spaces.Discrete)

    def _with_symbols(self, space: Any) -> spaces.Space[Any]:
        if isinstance(space, spaces.Discrete):
            return spaces.Discrete(int(space.n) + self.symbols, start=int(space.start))
        if isinstance(space, spaces.MultiDiscrete):
            return spaces.MultiDiscrete([*space.nvec, self.symbols])
        low, high = (-1, 1) if self._shares(space) else (0, self.symbols - 1)
        lows, highs = np.append(space.low, low), np.append(space.high, high)
        kind = space.dtype
        return spaces.Box(lows.astype(kind), highs.astype(kind), dtype=kind)

    def _shares(self, space: Any) -> bool:
        """Return whether numbers are shares from -1 to 1, not the rules' own."""
        return bool(space.dtype == np.float32)

    def __copy__(self) -> Beside:
        other = object.__new__(Beside)
        other.__dict__.update(self.__dict__, moves=copy(self.moves))
        return other

    def begin(self, where: Any = None) -> None:
        super().begin(where)
        self.moves.begin(where)

    def shown(self, numbers: Array) -> Array:
        return self.moves.shown(numbers)

    def _parted(self, array: Array) -> tuple[Array, Array]:
        """Part actions into moves and symbols, -1 where there is none."""
        if isinstance(self.space, spaces.Discrete):
            symbol = array - self.space.start - self.moves.space.n
            return np.where(symbol < 0, array, self.space.start), symbol
        last = array[..., -1]
        if isinstance(self.space, spaces.Box) and self._shares(self.space):
            last = np.minimum((last + 1) / 2 * self.symbols, self.symbols - 1)
        return array[..., :-1], np.asarray(last).astype(np.int64)

    def take(self, view: View, action: Any) -> Action | None:
        talks = bool(view.sight.talking)
        if action is None or not self.symbols:
            return 0 if talks else self.moves.take(view.core, action)
        array = array_of(action)
        array = array.reshape(()) if array.size == 1 and not self.space.shape else array
        if not self._fits(array, self.space.shape) or self._outside(array):
            raise self.refuse(action)
        move, symbol = self._parted(array)
        if talks:
            return max(int(symbol), 0)
        foreign = isinstance(self.space, spaces.Discrete) and symbol >= 0
        return MISSING if foreign else self.moves.take(view.core, move)

    def _fits(self, array: Array, shape: tuple[int, ...]) -> bool:
        kinds = "iuf" if isinstance(self.space, spaces.Box) else "iu"
        return array.shape == shape and array.dtype.kind in kinds

    def _outside(self, array: Array) -> Array:
        """Return which actions are not in the space."""
        space = self.space
        if isinstance(space, spaces.Discrete):
            return np.asarray((array < space.start) | (array >= space.start + space.n))
        several = isinstance(space, spaces.MultiDiscrete)
        low, high = (0, space.nvec - 1) if several else (space.low, space.high)
        return np.asarray(~((array >= low) & (array <= high)).all(axis=-1))

    def taken(self, view: View, actions: Any, where: Array) -> Taken:
        talks = np.broadcast_to(view.sight.talking, where.shape)
        if not self.symbols:
            return self.moves.taken(view.core, actions, where & ~talks)
        array, shape = array_of(actions), (*where.shape, *self.space.shape)
        if not self._fits(array, shape):
            raise self._shape(array, f"of {self.space}", shape)
        if any_true(wrong := where & self._outside(array)):
            raise self._refused(view, array, wrong)
        own, symbol = self._parted(array)
        discrete = isinstance(self.space, spaces.Discrete)
        foreign = where & ~talks & (symbol >= 0) & discrete
        moves, whole = self.moves.taken(view.core, own, where & ~talks & ~foreign)
        said = np.where(where & talks, np.maximum(symbol, 0), 0) + np.where(foreign, MISSING, 0)
        if moves.ndim > where.ndim:  # plans
            said = said * (tall(np.arange(self.game.players), where.shape) == view.seat)
        return moves + said, whole | foreign | (where & talks)

    def mask(self, view: View) -> Array:
        talks, count = bool(view.sight.talking), int(self.moves.space.n)
        if not talks or view.question is None:
            own = np.arange(count) < 1 if talks else self.moves.mask(view.core)
            return np.append(own, np.zeros(self.symbols, np.bool_))
        return np.arange(self.space.n) >= count

    def masks(self, view: View) -> Array:
        moves, asked = self.moves.masks(view.core), view.asked[..., None]
        count, places = moves.shape[-1], np.arange(self.space.n)
        more = np.zeros((*moves.shape[:-1], self.symbols), np.bool_)
        talks = np.broadcast_to(view.sight.talking, view.asked.shape)[..., None]
        said = np.where(asked, places >= count, places < 1)
        return np.where(talks, said, np.concatenate([moves, more], axis=-1))


class FreeText(Codec):
    """A reply in words, read as a language model's is; up to `reask` bad ones are asked again."""

    speaks = True

    def __init__(
        self, game: Rulebook, seat: int, reask: int = 0, batch: tuple[int, ...] = ()
    ) -> None:
        super().__init__(game, seat, batch)
        self.space, self.reask = text_space(), reask
        self.left = np.full(batch, reask)

    def begin(self, where: Any = None) -> None:
        if where is None or not self.batch:
            super().begin()
            self.left = np.full(self.batch, self.reask)
            return
        self.heard = {table: said for table, said in self.heard.items() if not where[table]}
        self.left = np.where(where, self.reask, self.left)

    def take(self, view: View, action: Any) -> Action | None:
        if action is None or view.question is None:
            return MISSING
        if not isinstance(action, str):
            raise self.refuse(action)
        self.heard, move = self._read(view, action, ())
        return move

    def _read(self, view: View, text: str, table: Any) -> tuple[dict[str, Any], Action | None]:
        """Return what a reply came to, and the move, None if it is asked for again."""
        assert view.question is not None
        reply, left = read_reply(text, view.question), self.left[table]
        if view.sight.talking:  # the talk says how often, of which some were used already
            left -= self.reask - view.game.talk.reasks
        again = reply.outcome != "valid" and left > 0
        if again:
            self.left[table] -= 1
        return {"outcome": reply.outcome, "why": reply.why}, None if again else reply.action

    def taken(self, view: View, actions: Any, where: Array) -> Taken:
        listed = isinstance(actions, list | tuple | np.ndarray)
        if len(where.shape) != 1 or not listed or len(actions) != len(where):
            raise IllegalAction(f"{self.game.name}: actions must be {len(where)} texts")
        plans = (self.game.players,) if self.game.division is not None else ()
        moves, whole = np.zeros((*plans, *where.shape), np.int64), where.copy()
        tables = np.flatnonzero(where).tolist()
        views = {table: view.table(table) for table in tables}
        for table in tables:
            if not isinstance(actions[table], str | None):
                raise self.refuse(actions[table], int(views[table].seat), table)
        for table, own in views.items():
            move: Action | None = MISSING
            if actions[table] is not None and own.question is not None:
                self.heard[table], move = self._read(own, actions[table], table)
            if move is None:
                whole[table] = False
            elif plans and not isinstance(own.question, Shares):
                moves[own.seat, table] = move
            else:
                moves[..., table] = actions_of(move)
        return moves, whole


def codec(
    game: Rulebook,
    seat: int,
    actions: str = "index",
    reask: int = 0,
    batch: tuple[int, ...] = (),
) -> Codec:
    """Return the codec of a seat for one of `ACTIONS`; `reask` is of replies in words.

    It is of one table, or of a `batch` of them.
    """
    check_choice("actions", actions, ACTIONS)
    if actions == "text":
        return FreeText(game, seat, reask, batch)
    if isinstance(game, Talking):
        return Beside(game, codec(game.core, seat, actions, batch=batch), game.symbols)
    if actions == "rules":
        return Rules(game, seat, batch)
    if game.division is not None:
        return (UnitDivision if actions == "unit" else Division)(game, seat, batch)
    if actions == "unit":
        return Unit(game, seat, batch)
    if game.grid is not None:
        return NamedActions(game, seat, batch)
    if indexed(game):
        return Index(game, seat, batch)
    least = actions == "least" and game.decline is not None
    return Steps(game, seat, batch, steps=1 if least else None)


def indexed(game: Rulebook) -> bool:
    """Return whether actions are few and always the same, so that each has an index of its own."""
    low, high = game.bounds()
    fixed = game.picks or (game.same_limits and game.decline is None)
    return fixed and high - low < MOST_INDEXES


def _index(codec: Codec, action: Any) -> int:
    value, count = array_of(action), codec.space.n
    if value.size != 1 or value.dtype.kind not in "iu" or not 0 <= value.item() < count:
        raise codec.refuse(action)
    return int(value.item())


def _floats(codec: Codec, action: Any) -> list[float]:
    values = array_of(action)
    if values.dtype.kind not in "iuf" or values.size != codec.space.shape[0]:
        raise codec.refuse(action)
    found: list[float] = values.astype(np.float64).ravel().tolist()
    if not all(-1 <= value <= 1 for value in found):
        raise codec.refuse(action)
    return found


def _part(low: Any, high: Any, k: Any, parts: int) -> Any:
    """Return the amount at part k of the way from `low` to `high`, in whole numbers.

    It is ``low + ((high - low) * k + parts // 2) // parts``, but no step is too large for int64.
    """
    if not parts:
        return low
    whole, rest = divmod(high - low, parts)
    return low + whole * k + (rest * k + parts // 2) // parts


def _share(view: View, k: int, parts: int) -> int:
    low, high = (int(limit) for limit in view.amounts)
    if low > high and view.game.decline is not None:
        return view.game.decline
    return int(_part(low, high, k, parts))


def _shares(view: View, k: Array, parts: int) -> Array:
    """Return `_share` of a batch."""
    low, high = view.amounts
    return _declined(view.game, np.asarray(_part(low, high, k, parts)), low > high)


def _declined(game: Rulebook, moves: Array, where: Array) -> Array:
    """Decline at these tables, if the game lets one."""
    return moves if game.decline is None else np.where(where, game.decline, moves)


def _with_no_op(legal: Array, view: View) -> Array:
    """Let a seat that is not asked do nothing: index 0 alone."""
    first = np.arange(legal.shape[-1]) == 0
    return np.where(view.asked[..., None], legal, first)
