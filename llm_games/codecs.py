"""Codecs between a seat's actions outside (an index, share, number or text) and the rules' moves.

A codec has a Gymnasium space. A plan is several actions, and a bad reply may be asked for again:
until a move is whole, the codec holds its beginning, and the table does not change. `take` and
`mask` are for one table, `take_batch` and `masks` for a batch; both agree.
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
    """A space of all texts of at most `LONGEST_TEXT` characters; what is drawn is printable ASCII.

    Gymnasium cannot share it between processes, where texts came back as tabs.
    """

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= LONGEST_TEXT


@create_shared_memory.register
def _refuse(space: Words, n: int = 1, ctx: Any = None) -> Any:
    raise CustomSpaceError("texts come back as tabs through shared memory")


def text_space() -> Words:
    return Words(LONGEST_TEXT, min_length=0, charset=CHARACTERS)


def in_text_space(text: str) -> str:
    """Return a text as one of the space: others' speeches may be long."""
    half = LONGEST_TEXT // 2 - 10
    return text if len(text) <= LONGEST_TEXT else f"{text[:half]} [...] {text[-half:]}"


class Codec(ABC):
    """One seat's actions in a Gymnasium `space`; a `masked` one has a mask of legal indexes.

    `reading` says for ``infos`` how a reply in words was read, in a `batch` by table; there the
    acting seat, which the view has, may differ by table.
    """

    space: Any
    masked = False
    speaks = False  # it can say something where there is talk

    def __init__(self, game: Rulebook, seat: int, batch: tuple[int, ...] = ()) -> None:
        self.game, self.seat, self.batch = game, seat, batch
        self.declines = game.decline is not None
        self.reading: dict[Any, Any] = {}

    def begin(self, mask: Any = None) -> None:
        """Forget the beginning of a move at a new step; in a batch, where `mask` is true."""
        self.reading = {}

    @abstractmethod
    def take(self, view: View, action: Any) -> Action | None:
        """Turn an action into a move of the rules, None until it is whole, or `refuse` it."""

    def encode(self, view: View, move: Action) -> Any:
        """Return the member of the space that comes nearest to a move, the inverse of `take`.

        Of a plan it is the first share. No answer is the first legal index, or the lowest number.
        """
        if view.question is None or not _is_move(move):
            return self.first(view)
        return self.nearest(view, move)

    def nearest(self, view: View, move: Any) -> Any:
        """Do the same for moves in the rules' units."""
        return self.first(view)

    def first(self, view: View) -> Any:
        """Return the first legal index, or the lowest numbers of the space."""
        if isinstance(self.space, spaces.Discrete):
            return int(self.space.start) + int(np.argmax(self.mask(view)))
        if isinstance(self.space, spaces.Box):
            return self.space.low.copy()
        return np.zeros_like(self.space.sample())

    @abstractmethod
    def take_batch(self, view: View, actions: Any, mask: Array) -> Taken:
        """Turn the actions ``(*batch, *space.shape)``, or texts, of tables in `mask` into moves.

        One outside the space is refused before any move is made.
        """

    def need_masks(self) -> None:
        if not isinstance(self.space, spaces.Discrete):
            raise BadParameter(f"{self.game.name} has no masks: its actions are {self.space}")

    def mask(self, view: View) -> Array:
        """Return the legal indexes, bool ``(indexes,)``; index 0 alone if not asked."""
        if view.question is None:
            return np.arange(self.space.n) == 0
        legal = view.mask if self.masked else None
        return np.ones(self.space.n, np.bool_) if legal is None else legal

    def masks(self, view: View) -> Array:
        asked, legal = view.asked, view.mask if self.masked else None
        if legal is None:
            return np.arange(self.space.n) < np.where(asked, self.space.n, 1)[..., None]
        masks = legal.copy()
        masks[..., 0] |= ~asked
        return masks

    def shown(self, numbers: Array) -> Array:
        """Add the beginning of a move to what the seat observes, ``(*batch, columns)``."""
        return numbers

    def refuse(self, action: Any, seat: int | None = None, table: Any = None) -> IllegalAction:
        """Return the error for an action outside the space, at a table of a batch."""
        space, wanted = self.space, "a text"
        if isinstance(space, spaces.Discrete):
            wanted = f"an integer from 0 to {space.n - 1}"
        elif isinstance(space, spaces.Box):
            wanted = f"{space.shape[0]} numbers from -1 to 1"
        player = self.game.names()[self.seat if seat is None else seat]
        location = "" if table is None else f" at table {table}"
        return IllegalAction(f"{player}{location}: {action!r} is not {wanted}")

    def _refused(self, view: View, actions: Any, mask: Array) -> IllegalAction:
        table = tuple(map(int, np.unravel_index(int(np.argmax(mask)), mask.shape)))
        seat = int(np.broadcast_to(view.seat, mask.shape)[table])
        return self.refuse(actions[table].tolist(), seat, table[0] if len(table) == 1 else table)

    def _indexes(self, view: View, actions: Any, mask: Array) -> Array:
        array = array_of(actions)
        if array.shape != mask.shape or array.dtype.kind not in "iu":
            raise self._shape(array, f"integers from 0 to {self.space.n - 1}", mask.shape)
        outside = mask & (array.astype(np.uint64) >= self.space.n)  # negative ones wrap
        if any_true(outside):
            raise self._refused(view, array, outside)
        return (array * mask).astype(np.int64, copy=False)

    def _floats(self, view: View, actions: Any, mask: Array) -> Array:
        """Check numbers against the space; float64 ``(numbers, *batch)``, 0 at other tables."""
        array, shape = array_of(actions), (*mask.shape, *self.space.shape)
        if array.shape != shape or array.dtype.kind not in "iuf":
            raise self._shape(array, "numbers from -1 to 1", shape)
        inside = (array >= -1) & (array <= 1)  # false for NaN
        outside = mask & ~inside.all(axis=-1)
        if any_true(outside):
            raise self._refused(view, array, outside)
        return np.moveaxis(np.where(mask[..., None], array, 0).astype(np.float64), -1, 0)

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

    def nearest(self, view: View, move: Any) -> Any:
        return self.game.encode(view.sight.state, self.seat, move)

    def take_batch(self, view: View, actions: Any, mask: Array) -> Taken:
        shape = (*mask.shape, *(self.space.shape or ()))
        array = array_of(actions)
        if array.shape != shape:
            raise self._shape(array, f"of {self.space}", shape)
        plans = (self.game.players,) if self.game.division is not None else ()
        moves = np.zeros((*plans, *mask.shape), np.int64)
        for table in zip(*np.nonzero(mask), strict=True):
            state, seat = view.sight.state.table(table), int(view.table(table).seat)
            try:
                move = self.game.decode(state, seat, np.asarray(array[table]).tolist())
            except IllegalAction as error:
                raise IllegalAction(f"table {', '.join(map(str, table))}: {error}") from None
            if plans and not isinstance(move, tuple):
                moves[(seat, *table)] = move
            else:
                moves[(..., *table)] = actions_of(move)
        return moves, mask


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

    def nearest(self, view: View, move: Any) -> Any:
        return min(max(move - self.low, 0), int(self.space.n) - 1)

    def take_batch(self, view: View, actions: Any, mask: Array) -> Taken:
        index = self._indexes(view, actions, mask)
        return (self.low + index) * mask if self.low else index, mask


class Steps(Codec):
    """A number from 0 on for each share of what is legal now, smallest first; a single one is that.

    Where a seat may decline, index 0 does. Amounts between two shares cannot be chosen.
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

    def nearest(self, view: View, move: Any) -> Any:
        if self.declines and move == self.game.decline:
            return 0
        return self.declines + round(_portion(view, move) * self.parts)

    def take_batch(self, view: View, actions: Any, mask: Array) -> Taken:
        index = self._indexes(view, actions, mask) - self.declines
        amounts = _shares(view, np.maximum(index, 0), self.parts)
        return _declined(self.game, amounts, index < 0) * mask, mask


class NamedActions(Codec):
    """A number from 0 on for each of some actions that a game names, see `Rulebook.grid`."""

    def __init__(self, game: Rulebook, seat: int, batch: tuple[int, ...] = ()) -> None:
        super().__init__(game, seat, batch)
        self.actions = np.array(game.grid, np.int64)
        self.space = spaces.Discrete(len(self.actions))

    def take(self, view: View, action: Any) -> Action:
        return MISSING if action is None else int(self.actions[_index(self, action)])

    def nearest(self, view: View, move: Any) -> Any:
        return int(np.argmin(np.abs(self.actions - float(move))))

    def take_batch(self, view: View, actions: Any, mask: Array) -> Taken:
        return self.actions[self._indexes(view, actions, mask)] * mask, mask


class Unit(Codec):
    """A share of what is legal now, from -1 (the smallest) to 1; the first of two decides to act.

    Of targets a share counts off the legal ones.
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

    def nearest(self, view: View, move: Any) -> Any:
        act = [1.0] * self.declines
        if self.declines and move == self.game.decline:
            return np.array([-1.0, -1.0], np.float32)
        if not self.game.picks:
            return np.array([*act, 2 * _portion(view, move) - 1], np.float32)
        legal = np.flatnonzero(self._picks.mask(view)) + self._picks.low
        rank = int(np.argmin(np.abs(legal - float(move))))
        return np.array([*act, (2 * rank + 1) / len(legal) - 1], np.float32)

    def take_batch(self, view: View, actions: Any, mask: Array) -> Taken:
        *act, share = self._floats(view, actions, mask)
        parts = np.rint((share + 1) / 2 * FINE).astype(np.int64)
        if self.game.picks:
            ranks = self._picks.masks(view).cumsum(axis=-1)
            counts = ranks[..., -1]
            rank = np.minimum(parts * counts // FINE, counts - 1)
            moves = self._picks.low + (ranks > rank[..., None]).argmax(axis=-1)
        else:
            moves = _shares(view, parts, FINE)
        return (_declined(self.game, moves, act[0] < 0) if act else moves) * mask, mask


class Division(Codec):
    """A plan as shares one after another, each of what is left; the last takes the rest.

    Indexes are whole shares where these are few, else parts of what is left; a vote is 0 or 1.
    """

    masked = True

    def __init__(self, game: Rulebook, seat: int, batch: tuple[int, ...] = ()) -> None:
        super().__init__(game, seat, batch)
        self.total = game.division or 0
        self.whole = self.total < MOST_INDEXES
        self.space = spaces.Discrete(max(self.total + 1 if self.whole else game.steps, 2))
        self.begin()

    def begin(self, mask: Any = None) -> None:
        super().begin()
        if not self.batch:  # one table: lists are faster
            self.plan: Any = [0] * self.game.players
            self.placed: Any = 0  # how many shares the plan has so far
        elif mask is None:
            self.plan = np.zeros((self.game.players, *self.batch), np.int64)
            self.placed = np.zeros(self.batch, np.int64)
        elif any_true(self.placed):
            self.plan, self.placed = self.plan * ~mask, self.placed * ~mask

    def read(self, action: Any) -> int:
        return _index(self, action)

    def reads(self, view: View, actions: Any, mask: Array) -> Array:
        return self._indexes(view, actions, mask)

    def vote(self, number: Any) -> Any:
        return (number > 0) * 1

    def share(self, number: Any, remaining: Any) -> Any:
        """Return the amount of what remains that a number stands for."""
        if self.whole:
            return np.minimum(number, remaining) if self.batch else min(number, remaining)
        return _part(0, remaining, number, self.game.steps - 1)

    def nearest(self, view: View, move: Any) -> Any:
        if not isinstance(view.question, Shares):
            return int(move > 0)
        share = min(max(move[view.question.ranks[0] - 1], 0), self.total)
        return share if self.whole else round(share / self.total * (self.game.steps - 1))

    def take(self, view: View, action: Any) -> Action | None:
        if action is None:
            return MISSING
        number, remaining = self.read(action), self.total - sum(self.plan)
        if not isinstance(view.question, Shares):
            return int(self.vote(number))
        ranks = view.question.ranks
        share = self.plan[ranks[self.placed] - 1] = self.share(number, remaining)
        self.placed += 1
        if self.placed < len(ranks) - 1:
            return None
        last = ranks[-1] - 1
        return (*self.plan[:last], remaining - share, *self.plan[last + 1 :])

    def take_batch(self, view: View, actions: Any, mask: Array) -> Taken:
        numbers, remaining = self.reads(view, actions, mask), self.total - self.plan.sum(axis=0)
        sharers = self.game.sharers(view.sight.state)
        rank, counts = sharers.cumsum(axis=0), sharers.sum(axis=0)
        planning = mask & (counts > 0)
        share = self.share(numbers, remaining) * planning
        self.plan = self.plan + (sharers & (rank == self.placed + 1)) * share
        self.placed = self.placed + planning
        done = planning & (self.placed >= counts - 1)
        moves = self.plan * done + (sharers & (rank == counts)) * ((remaining - share) * done)
        is_seat = tall(np.arange(self.game.players), mask.shape) == view.seat
        moves += is_seat * (self.vote(numbers) * (mask & ~planning))
        return moves, mask & (~planning | done)

    def mask(self, view: View) -> Array:
        indexes = np.arange(self.space.n)
        if isinstance(view.question, Shares):
            return indexes <= (self.total - sum(self.plan) if self.whole else len(indexes))
        return indexes < (1 if view.question is None else 2)

    def masks(self, view: View) -> Array:
        planning = view.asked & self.game.sharers(view.sight.state).any(axis=0)
        shares = self.total - self.plan.sum(axis=0) if self.whole else self.space.n - 1
        highest = np.where(planning, shares, view.asked)
        return np.arange(self.space.n) <= highest[..., None]

    def shown(self, numbers: Array) -> Array:
        if not (any_true(self.placed) if self.batch else self.placed):
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

    def reads(self, view: View, actions: Any, mask: Array) -> Array:
        (share,) = self._floats(view, actions, mask)
        return np.rint((share + 1) / 2 * FINE).astype(np.int64)

    def vote(self, number: Any) -> Any:
        return (2 * number >= FINE) * 1

    def share(self, number: Any, remaining: Any) -> Any:
        return _part(0, remaining, number, FINE)

    def nearest(self, view: View, move: Any) -> Any:
        if not isinstance(view.question, Shares):
            return np.array([1 if move > 0 else -1], np.float32)
        share = min(max(move[view.question.ranks[0] - 1], 0), self.total)
        return np.array([2 * share / self.total - 1], np.float32)


class Beside(Codec):
    """A seat's moves in a game with talk, and `symbols` to say beside them, if there are any.

    Indexes behind those of the moves are symbols, 0 (silence) first; an action of several numbers
    has one more. A symbol for a move is no answer, a move for a symbol silence.
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
        kind, shares = space.dtype, space.dtype == np.float32  # from -1 to 1, not the rules' own
        low, high = (-1, 1) if shares else (0, self.symbols - 1)
        lows, highs = np.append(space.low, low), np.append(space.high, high)
        return spaces.Box(lows.astype(kind), highs.astype(kind), dtype=kind)

    def __copy__(self) -> Beside:
        other = object.__new__(Beside)
        other.__dict__.update(self.__dict__, moves=copy(self.moves))
        return other

    def begin(self, mask: Any = None) -> None:
        super().begin(mask)
        self.moves.begin(mask)

    def shown(self, numbers: Array) -> Array:
        return self.moves.shown(numbers)

    def _split(self, array: Array) -> tuple[Array, Array]:
        """Split actions into moves and symbols, -1 where there is no symbol."""
        if isinstance(self.space, spaces.Discrete):
            symbol = array - self.space.start - self.moves.space.n
            return np.where(symbol < 0, array, self.space.start), symbol
        last = array[..., -1]
        if isinstance(self.space, spaces.Box) and self.space.dtype == np.float32:
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
        move, symbol = self._split(array)
        if talks:
            return max(int(symbol), 0)
        foreign = isinstance(self.space, spaces.Discrete) and symbol >= 0
        return MISSING if foreign else self.moves.take(view.core, move)

    def encode(self, view: View, move: Action) -> Any:
        talks, core = bool(view.sight.talking), view.core
        action = self.moves.first(core) if talks else self.moves.encode(core, move)
        if not self.symbols:
            return action
        symbol = max(int(move), 0) if talks and isinstance(move, int) else 0  # no answer is silence
        if isinstance(self.space, spaces.Discrete):
            said = talks and view.question is not None
            return int(self.space.start + self.moves.space.n) + symbol if said else action
        if isinstance(self.space, spaces.Box) and self.space.dtype == np.float32:
            return np.append(action, (2 * symbol + 1) / self.symbols - 1).astype(self.space.dtype)
        return np.append(action, symbol).astype(self.space.dtype)

    def _fits(self, array: Array, shape: tuple[int, ...]) -> bool:
        kinds = "iuf" if isinstance(self.space, spaces.Box) else "iu"
        return array.shape == shape and array.dtype.kind in kinds

    def _outside(self, array: Array) -> Array:
        space = self.space
        if isinstance(space, spaces.Discrete):
            return np.asarray((array < space.start) | (array >= space.start + space.n))
        several = isinstance(space, spaces.MultiDiscrete)
        low, high = (0, space.nvec - 1) if several else (space.low, space.high)
        return np.asarray(~((array >= low) & (array <= high)).all(axis=-1))

    def take_batch(self, view: View, actions: Any, mask: Array) -> Taken:
        talks = np.broadcast_to(view.sight.talking, mask.shape)
        if not self.symbols:
            return self.moves.take_batch(view.core, actions, mask & ~talks)
        array, shape = array_of(actions), (*mask.shape, *self.space.shape)
        if not self._fits(array, shape):
            raise self._shape(array, f"of {self.space}", shape)
        if any_true(outside := mask & self._outside(array)):
            raise self._refused(view, array, outside)
        moves_part, symbol = self._split(array)
        discrete = isinstance(self.space, spaces.Discrete)
        foreign = mask & ~talks & (symbol >= 0) & discrete
        moves, whole = self.moves.take_batch(view.core, moves_part, mask & ~talks & ~foreign)
        speech = np.where(mask & talks, np.maximum(symbol, 0), 0) + np.where(foreign, MISSING, 0)
        if moves.ndim > mask.ndim:  # plans
            speech = speech * (tall(np.arange(self.game.players), mask.shape) == view.seat)
        return moves + speech, whole | foreign | (mask & talks)

    def mask(self, view: View) -> Array:
        talks, count = bool(view.sight.talking), int(self.moves.space.n)
        if not talks or view.question is None:
            legal = np.arange(count) < 1 if talks else self.moves.mask(view.core)
            return np.append(legal, np.zeros(self.symbols, np.bool_))
        return np.arange(self.space.n) >= count

    def masks(self, view: View) -> Array:
        moves, asked = self.moves.masks(view.core), view.asked[..., None]
        count, indexes = moves.shape[-1], np.arange(self.space.n)
        silence_only = np.zeros((*moves.shape[:-1], self.symbols), np.bool_)
        talks = np.broadcast_to(view.sight.talking, view.asked.shape)[..., None]
        speech_mask = np.where(asked, indexes >= count, indexes < 1)
        return np.where(talks, speech_mask, np.concatenate([moves, silence_only], axis=-1))


class FreeText(Codec):
    """A reply in words, read like a language model's; up to `reask` bad ones are asked again."""

    speaks = True

    def __init__(
        self, game: Rulebook, seat: int, reask: int = 0, batch: tuple[int, ...] = ()
    ) -> None:
        super().__init__(game, seat, batch)
        self.space, self.reask = text_space(), reask
        self._repeats: dict[Any, int] = {}  # each table's bad replies

    def begin(self, mask: Any = None) -> None:
        if mask is None or not self.batch:
            self.reading, self._repeats = {}, {}
            return
        self.reading = {table: text for table, text in self.reading.items() if not mask[table]}
        self._repeats = {table: n for table, n in self._repeats.items() if not mask[table]}

    def take(self, view: View, action: Any) -> Action | None:
        question = view.sight.question(view.seat)
        if action is None or question is None:
            return MISSING
        if not isinstance(action, str):
            raise self.refuse(action)
        reply = read_reply(action, question)
        self.reading = {"outcome": reply.outcome, "why": reply.why}
        return reply.action if reply.outcome == "valid" or not self._again(view, ()) else None

    def first(self, view: View) -> str:
        return ""

    def nearest(self, view: View, move: Any) -> str:
        state, game = view.sight.state, view.game
        if game.breaks(state, game.assemble(state, {view.seat: move}))[view.seat]:
            return ""
        assert view.question is not None
        return view.question.reply(move)[:LONGEST_TEXT]

    def _again(self, view: View, table: Any) -> bool:
        """Count a bad reply; return whether it is asked for again."""
        self._repeats[table] = bad = self._repeats.get(table, 0) + 1
        # The talk has its own number of reasks.
        return bool(bad <= (view.game.talk.reasks if view.sight.talking else self.reask))

    def take_batch(self, view: View, actions: Any, mask: Array) -> Taken:
        is_list = isinstance(actions, list | tuple | np.ndarray)
        if len(mask.shape) != 1 or not is_list or len(actions) != len(mask):
            raise IllegalAction(f"{self.game.name}: actions must be {len(mask)} texts")
        plans = (self.game.players,) if self.game.division is not None else ()
        moves, whole = np.zeros((*plans, *mask.shape), np.int64), mask.copy()
        tables = np.flatnonzero(mask).tolist()
        views = {table: view.table(table) for table in tables}
        for table in tables:
            if not isinstance(actions[table], str | None):
                raise self.refuse(actions[table], int(views[table].seat), table)
        for table, seat_view in views.items():
            move: Action | None = MISSING
            if actions[table] is not None and seat_view.question is not None:
                reply = read_reply(actions[table], seat_view.question)
                self.reading[table] = {"outcome": reply.outcome, "why": reply.why}
                asks_again = reply.outcome != "valid" and self._again(seat_view, table)
                move = None if asks_again else reply.action
            if move is None:
                whole[table] = False
            elif plans and not isinstance(seat_view.question, Shares):
                moves[seat_view.seat, table] = move
            else:
                moves[..., table] = actions_of(move)
        return moves, whole


def codec(
    game: Rulebook, seat: int, actions: str = "index", reask: int = 0, batch: tuple[int, ...] = ()
) -> Codec:
    """Return a seat's codec, one of `ACTIONS`, for a table or a `batch`; `reask`: bad words."""
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
    """Test whether actions are few and always the same, so that each has its own index."""
    low, high = game.bounds()
    fixed = game.picks or (game.same_limits and game.decline is None)
    return fixed and high - low < MOST_INDEXES


def _is_move(move: Any) -> bool:
    """Test whether there is an answer at all, legal or not."""
    return isinstance(move, tuple | str) or int(move) != MISSING


def _portion(view: View, move: int) -> float:
    """Return how far from the smallest legal amount to the largest a move is, 0 to 1."""
    low, high = (int(limit) for limit in view.amounts)
    return min(max((move - low) / (high - low), 0.0), 1.0) if high > low else 0.0


def _index(codec: Codec, action: Any) -> int:
    value, count = array_of(action), codec.space.n
    if value.size != 1 or value.dtype.kind not in "iu" or not 0 <= value.item() < count:
        raise codec.refuse(action)
    return int(value.item())


def _floats(codec: Codec, action: Any) -> list[float]:
    values = array_of(action)
    if values.dtype.kind not in "iuf" or values.size != codec.space.shape[0]:
        raise codec.refuse(action)
    numbers: list[float] = values.astype(np.float64).ravel().tolist()
    if not all(-1 <= value <= 1 for value in numbers):
        raise codec.refuse(action)
    return numbers


def _part(low: Any, high: Any, part: Any, parts: int) -> Any:
    """Return the amount `part` of `parts` of the way from `low` to `high`, a whole number."""
    # ``low + ((high - low) * part + parts // 2) // parts`` without overflow of int64.
    if not parts:
        return low
    whole, rest = divmod(high - low, parts)
    return low + whole * part + (rest * part + parts // 2) // parts


def _share(view: View, part: int, parts: int) -> int:
    low, high = (int(limit) for limit in view.amounts)
    if low > high and view.game.decline is not None:
        return view.game.decline
    return int(_part(low, high, part, parts))


def _shares(view: View, part: Array, parts: int) -> Array:
    low, high = view.amounts
    return _declined(view.game, np.asarray(_part(low, high, part, parts)), low > high)


def _declined(game: Rulebook, moves: Array, mask: Array) -> Array:
    """Replace moves by declining where `mask` is true, if the game lets one decline."""
    return moves if game.decline is None else np.where(mask, game.decline, moves)
