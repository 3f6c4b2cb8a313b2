"""The protocol that every kind of player follows, and the random player."""

from __future__ import annotations

import asyncio
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from llm_games.asides import GRADED
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.questions import MISSING, Action, Shares, Speech
from llm_games.replies import ReplyOutcome
from llm_games.rulebook import Array, Rulebook
from llm_games.view import Sight, View
from llm_games.wrappers.clients.base import USUAL, Chat, Completion, Sampling
from llm_games.wrappers.together import together

Cell = tuple[int, int]  #: a seat at a table of a batch


@dataclass(frozen=True, kw_only=True)
class Attempt(Completion):
    """One completion that a policy asked for, and how it was read."""

    messages: Chat  #: the chat as sent
    outcome: ReplyOutcome
    why: str = ""  #: for a reply that is not valid, what was wrong, in words
    detail: str = ""  #: which of the game's rules a reply broke, where a game counts them apart
    leniencies: tuple[str, ...] = ()  #: what was let pass in reading it, see `LENIENCIES`
    seed: int = 0
    kind: str = "move"  #: what it was asked for: a move, or something beside it
    action: Any = MISSING  #: the answer as it was read, legal or not; not recorded
    sampling: Sampling = USUAL


@dataclass(frozen=True)
class Note:
    """A player's note for itself, such as a plan: `content` is plain values."""

    kind: str
    content: dict[str, Any]


@dataclass(frozen=True)
class Decision:
    """A policy's decision, with its attempts and notes.

    `action` is `MISSING`, or out of range, when no attempt gave a legal one: the rules then apply
    the game's declared treatment, and the step's ``broke`` counts it.
    """

    action: Action
    attempts: tuple[Attempt, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def outcome(self) -> ReplyOutcome:
        """Return how the last attempt was read ("valid" for a player without a model)."""
        return self.last.outcome if self.last else "valid"

    @property
    def last(self) -> Attempt | None:
        """The last attempt, without the graded questions that come after a move."""
        attempts = reversed(self.attempts)
        return next((a for a in attempts if not a.kind.endswith(GRADED)), None)


class Decided(NamedTuple):
    """A policy's decisions in the cells of a batch for which it was asked.

    `actions` are int64 ``(players, *batch)`` as `Rulebook.assemble` gives them, 0 elsewhere; a plan
    fills its table's column. If somebody speaks in words, they are objects, the words texts.
    `replies` has the decisions that are more than their action.
    """

    actions: Array
    replies: Mapping[Cell, Decision] = {}


class Policy(ABC):
    """A player; its memory is all its state, so one policy can sit on many seats of many tables.

    It plays one seat of one table by `start`, `act` (or `decide`), `hear`, `finish` and `recall`.
    Their forms for a batch go through its cells, ``(seat, table)``, one by one, unless a policy
    does all at once; its memory of a batch is then of its own kind.
    """

    name: str
    speaks: bool = False
    """whether it can say something where there is talk; if not, it is never stopped for, and plays
    the game inside (`Rulebook.core`)"""

    @abstractmethod
    def start(self, game: Rulebook, seat: int, seed: int) -> Any:
        """Return a seat's memory at the start of an episode. All randomness comes from `seed`."""

    @abstractmethod
    def act(self, view: View, memory: Any) -> tuple[Decision, Any]:
        """Return the decision and the memory after it. Called only when the seat is asked."""

    async def decide(self, view: View, memory: Any) -> tuple[Decision, Any]:
        """Decide without blocking the event loop; policies that wait for a model override it."""
        return self.act(view, memory)

    def hear(self, view: View, memory: Any) -> Any:
        """Return the memory after hearing the start, or a step of the game without speeches."""
        return memory

    async def finish(self, view: View, memory: Any) -> Decision | None:
        """Look back at a game that is over; a decision's notes and attempts, or None."""
        return None

    def recall(self, memory: Any, notes: Sequence[Note]) -> Any:
        """Return the memory at the start of a game, with what was noted down in the one before."""
        return memory

    def plain(self, memory: Any) -> Callable[[View, Noise], Array] | None:
        """Return its moves as a function of a view and noise, if they hang on nothing else.

        The batch's `memory` then has the noise's ``keys`` and the numbers of moves ``decided``.
        """
        return None

    def says(self, name: str) -> bool:
        """Test whether `plain` or `marching` is of no older class than how it decides."""
        bases = ({*vars(base)} for base in type(self).__mro__)
        return name in next(names for names in bases if {name, "decide_batch"} & names)

    # -- the same for cells of a batch: those true in `mask`, bool ``(players, tables)`` ---------

    @property
    def waits(self) -> bool:
        """The policy waits for something when it decides: it then has its own `decide`."""
        return type(self).decide is not Policy.decide

    def does(self, name: str) -> bool:
        """Test whether it overrides ``hear``, ``finish`` or ``recall``, alone or in a batch."""
        kind = type(self)
        forms = (name, f"{name}_batch")
        return any(getattr(kind, form) is not getattr(Policy, form) for form in forms)

    def start_batch(self, game: Rulebook, mask: Array, seeds: Array, memory: Any = None) -> Any:
        """Return the memory of a batch, None at first, in which these cells begin an episode.

        `seeds` are int64 ``(players, tables)``.
        """
        cells = cells_of(mask)
        return {**(memory or {}), **{c: self.start(game, c[0], int(seeds[c])) for c in cells}}

    async def decide_batch(self, sight: Sight, mask: Array, memory: Any) -> tuple[Decided, Any]:
        """Decide in these cells of the `sight`, at once; return the memory as well."""
        views = views_of(sight, mask)
        if self.waits:
            work = (decide_in(self, view, memory[cell]) for cell, view in views.items())
            answers = dict(zip(views, await together(work), strict=True))
        else:
            answers = {cell: act(self, view, memory[cell]) for cell, view in views.items()}
        decisions = {cell: move for cell, (move, _) in answers.items()}
        memories = {cell: new_memory for cell, (_, new_memory) in answers.items()}
        moves = {cell: move.action for cell, move in decisions.items()}
        replies = {cell: move for cell, move in decisions.items() if move.attempts or move.notes}
        return Decided(assembled(mask, views, moves), replies), {**memory, **memories}

    def hear_batch(self, sight: Sight, mask: Array, memory: Any) -> Any:
        """Return the memory after these cells have heard what is told."""
        memories = {c: self.hear(view, memory[c]) for c, view in views_of(sight, mask).items()}
        return {**memory, **memories}

    async def finish_batch(self, sight: Sight, mask: Array, memory: Any) -> Mapping[Cell, Decision]:
        """Look back in these cells at games that are over, at the same time; see `finish`."""
        views = views_of(sight, mask)
        moves = await together(finish_in(self, view, memory[cell]) for cell, view in views.items())
        return {cell: move for cell, move in zip(views, moves, strict=True) if move is not None}

    def recall_batch(self, memory: Any, notes: Mapping[Cell, Sequence[Note]]) -> Any:
        """Return the memory with what these cells noted down in the games before."""
        return {**memory, **{cell: self.recall(memory[cell], past) for cell, past in notes.items()}}


# -- one cell of a batch, or one seat of one table -------------------------------------------------


def called(policy: Policy) -> str:
    """Return a player's name, or that of its class if it has none."""
    return str(getattr(policy, "name", type(policy).__name__))


def act(policy: Policy, view: View, memory: Any) -> tuple[Decision, Any]:
    """Return the decision of a player that does not wait; an error names the seat."""
    try:
        answer = policy.act(view, memory)
    except Exception as error:
        raise _noted(error, policy, view) from error.__cause__
    return _checked(answer, policy, view)


async def decide_in(policy: Policy, view: View, memory: Any) -> tuple[Decision, Any]:
    """Wait for what a player decides; an error says in whose seat it was made."""
    try:
        answer = await policy.decide(view, memory)
    except (Exception, asyncio.CancelledError) as error:
        raise _noted(error, policy, view) from error.__cause__
    return _checked(answer, policy, view)


async def finish_in(policy: Policy, view: View, memory: Any) -> Decision | None:
    """Wait for what a player does on looking back; an error says in whose seat it was made."""
    try:
        return await policy.finish(view, memory)
    except (Exception, asyncio.CancelledError) as error:
        raise _noted(error, policy, view) from error.__cause__


def _checked(answer: Any, policy: Policy, view: View) -> tuple[Decision, Any]:
    """Return a decision and a memory; what would have to be cut to a move is none."""
    try:
        decision, memory = answer
        move = decision.action
        if isinstance(view.question, Speech):
            if not isinstance(move, str):
                raise TypeError
        elif _plans(view) and move != MISSING:
            if not isinstance(move, tuple) or len(move) != view.game.players:
                raise TypeError
            [*map(operator.index, move)]
        else:
            operator.index(move)
    except (AttributeError, TypeError, ValueError):
        kind = f"a tuple of {view.game.players} ints" if _plans(view) else "an int"
        kind = "a str" if isinstance(view.question, Speech) else kind
        fault = f"which must return its Decision, about {kind}, and its memory: got {answer!r}"
        odd = BadParameter(f"{view.game.names()[view.seat]} is {called(policy)!r}, {fault}")
        raise _noted(odd, policy, view) from None
    return decision, memory


def _plans(view: View) -> bool:
    return view.game.division is not None and isinstance(view.question, Shares)


def _noted(error: BaseException, policy: Policy, view: View) -> BaseException:
    who = view.who
    place = f"seat {who.seat} of {who.run}, episode {who.episode}, step {who.step}"
    error.add_note(f"({called(policy)!r} on {place})")
    return error


# -- cells of a batch ------------------------------------------------------------------------------


def cells_of(mask: Array) -> list[Cell]:
    """Return the cells of a mask, bool ``(players, tables)``."""
    seats, tables = np.nonzero(mask)
    return list(zip(seats.tolist(), tables.tolist(), strict=True))


def views_of(sight: Sight, mask: Array) -> dict[Cell, View]:
    """Return the view of each of these cells."""
    tables = {table: sight.table(table) for table in np.flatnonzero(mask.any(axis=0)).tolist()}
    return {(seat, table): tables[table].view(seat) for seat, table in cells_of(mask)}


def assembled(mask: Array, views: Mapping[Cell, View], moves: Mapping[Cell, Action]) -> Array:
    """Return the moves of cells as one array of the shape of `mask`, see `Decided`."""
    tables: dict[int, dict[int, Action]] = {}
    for (seat, table), move in moves.items():
        tables.setdefault(table, {})[seat] = move
    words = any(isinstance(move, str) for move in moves.values())
    actions = np.zeros(mask.shape, object if words else np.int64)
    for table, table_moves in tables.items():
        view = views[next(iter(table_moves)), table]
        column = view.sight.game.assemble(view.sight.state, table_moves)
        if isinstance(view.question, Shares):  # a plan, or that there is none
            actions[:, table] = column
        else:
            seats = list(table_moves)
            actions[seats, table] = column[seats]
    return actions


def added(moves: Array, others: Array) -> Array:
    """Return the moves of both, of which each cell has at most one; texts stay as they are."""
    if not (moves.dtype.hasobject or others.dtype.hasobject):
        return moves + others
    is_text = np.vectorize(lambda move: isinstance(move, str), otypes=[bool])
    texts = [is_text(array) for array in (moves, others)]
    total = np.where(texts[0], 0, moves) + np.where(texts[1], 0, others)
    return np.where(texts[0], moves, np.where(texts[1], others, total))


def _asked_alike(sight: Sight, mask: Array) -> Iterator[tuple[int, Array]]:
    """Yield seats with the tables where they are asked alike: for a word, a plan, or a move."""
    game, kinds = sight.game, np.zeros(mask.shape[1:], np.int64)
    if game.division is not None or game.core is not game:
        kinds = kinds + np.where(sight.talking, 2, game.sharers(sight.state).any(axis=0))
    for kind in np.unique(kinds).tolist() if kinds.any() else [0]:
        of_them = mask & (kinds == kind)
        for seat in np.flatnonzero(of_them.any(axis=1)).tolist():
            yield seat, np.flatnonzero(of_them[seat])


class DrawMemories(NamedTuple):
    """Memory of random players in a batch: the keys of seats' noise, uint64, and decision counts.

    Both are ``(players, tables)``.
    """

    keys: Array
    decided: Array


class RandomPolicy(Policy):
    """Draws any legal action, all equally likely; remembers its seed and how often it decided."""

    name = "random"

    def start(self, game: Rulebook, seat: int, seed: int) -> tuple[int, int]:
        """Return the seed and the count of decisions."""
        return seed, 0

    def act(self, view: View, memory: tuple[int, int]) -> tuple[Decision, tuple[int, int]]:
        """Draw from the question that is asked."""
        seed, count = memory
        assert view.question is not None, "only a seat that is asked can answer"
        return Decision(view.question.sample(Noise(seed).of(count))), (seed, count + 1)

    def plain(self, memory: Any) -> Callable[[View, Noise], Array] | None:
        """Draw by what a seat is asked first: where there are loops it is always asked alike."""

        def draw(view: View, noise: Noise) -> Array:
            first: Any = view.game.asks(view.game.reset(0), view.seat)
            drawn: Array = first.samples(noise, view)
            return drawn

        return draw

    def start_batch(self, game: Rulebook, mask: Array, seeds: Array, memory: Any = None) -> Any:
        """Return `DrawMemories`; the seats that begin have not decided yet."""
        keys = Noise(seeds.astype(np.uint64)).key
        earlier_keys, counts = memory or (keys, np.zeros(seeds.shape, np.int64))
        return DrawMemories(np.where(mask, keys, earlier_keys), np.where(mask, 0, counts))

    async def decide_batch(self, sight: Sight, mask: Array, memory: Any) -> tuple[Decided, Any]:
        """Draw what `act` does, at all tables of a seat at once where the question says how."""
        (keys, counts), actions = memory, np.zeros(mask.shape, np.int64)
        alone = np.zeros(mask.shape, bool)
        for seat, seat_tables in _asked_alike(sight, mask):
            question = sight.table(int(seat_tables[0])).view(seat).question
            assert question is not None, "only a seat that is asked can answer"
            noise = Noise.keyed(keys[seat, seat_tables]).of(counts[seat, seat_tables])
            drawn = question.samples(noise, sight.table(seat_tables).view(seat))
            if drawn is None:
                alone[seat, seat_tables] = True
            else:
                actions[seat, seat_tables] = drawn
        views = views_of(sight, alone)
        moves = {
            cell: view.question.sample(Noise.keyed(keys[cell]).of(int(counts[cell])))  # type: ignore[union-attr]
            for cell, view in views.items()
        }
        return Decided(actions + assembled(mask, views, moves)), DrawMemories(keys, counts + mask)
