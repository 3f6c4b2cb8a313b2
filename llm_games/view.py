"""A player's view when it decides: one seat's knowledge, as numbers and as words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from llm_games.arrays import Array, arrayed, sliced
from llm_games.questions import Question
from llm_games.rulebook import Rulebook

T = TypeVar("T")


class _lazy(Generic[T]):
    """A cached property without the lock that Python 3.11 takes for each."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type | None = None) -> T:
        owner.__dict__[self._name] = value = self._make(owner)
        return value


class Who(NamedTuple):
    """The caller of a request: run, episode (its seed, or number), step and seat.

    `call` counts calls for one decision, `seed` is the episode's; in a batch, parts may be arrays.
    """

    run: str = ""
    episode: Any = 0
    step: Any = 0
    seat: Any = 0
    call: int = 0
    seed: Any = 0

    def table(self, index: Any) -> Who:
        """Take one table (or several, by an array) out of a batch."""
        parts: list[Any] = [part[index] if isinstance(part, np.ndarray) else part for part in self]
        return Who(*(part.item() if isinstance(part, np.generic) else part for part in parts))


NOBODY = Who()


class Sight:
    """A state as all its seats see it; what the rules compute for all seats is cached here."""

    def __init__(self, game: Rulebook, state: Any, who: Who = NOBODY) -> None:
        self.game, self.state, self.who = game, state, who
        self._questions: dict[int, Question | None] = {}

    def __reduce__(self) -> tuple[type[Sight], tuple[Rulebook, Any, Who]]:
        return Sight, (self.game, self.state, self.who)

    def view(self, seat: Any) -> View:
        """Return the view of one seat, or of several: integers that broadcast with the batch.

        ``(*batch)`` are another seat at every table, ``(k, 1, ...)`` k seats of all tables.
        """
        return View(self, seat)

    def table(self, index: Any) -> Sight:
        return Sight(self.game, self.state.table(index), self.who.table(index))

    @property
    def core(self) -> Sight:
        """The sight of the game inside, see `Rulebook.core`, without talk."""
        return self if self.game.core is self.game else self._inside

    @_lazy
    def _inside(self) -> Sight:
        return Sight(self.game.core, self.game.inside(self.state), self.who)

    batch = _lazy(lambda sight: sight.state.round.shape)

    @_lazy
    def talking(self) -> Array:
        """The tables where somebody is to speak now, bool ``(*batch)``."""
        return self.game.talking(self.state)

    @_lazy
    def turn(self) -> Array:
        return self.game.asked(self.state)

    @_lazy
    def asked(self) -> list[int]:
        rules = self.game.traced
        truths = (rules and rules.asked(self.state)) or self.turn.tolist()
        return [seat for seat, asked in enumerate(truths) if asked]

    def question(self, seat: int) -> Question | None:
        """Return what a seat of one table is asked, or None; made once."""
        questions = self._questions
        if seat not in questions:
            asked = self.game.asks(self.state, seat) if seat in self.asked else None
            disguise = self.game.disguise
            questions[seat] = asked if disguise is None else disguise.question(asked)
        return questions[seat]

    def fact(self, index: int) -> Array:
        """Return the values of one fact of `Rulebook.facts`, or, after them, of `recalled`."""
        if index not in self._facts:
            facts = (*self.game.facts, *self.game.recalled())
            self._facts[index] = arrayed(facts[index].of(self.state))
        return self._facts[index]

    _facts = _lazy(lambda sight: dict[int, Array]())

    @_lazy
    def hears(self) -> Array | None:
        """The seats that are told anything, see `Rulebook.hears`; None if all are."""
        mask = self.game.hears(self.state)
        return None if mask is None or np.count_nonzero(mask) == mask.size else mask

    tell = _lazy(lambda sight: sight.game.teller(sight.state))  # tells a seat what it knows
    numbers = _lazy(lambda sight: sight.game.observe(sight.state))
    legal = _lazy(lambda sight: sight.game.legal(sight.state))
    amounts = _lazy(lambda sight: sight.game.amounts(sight.state))
    mask = _lazy(lambda sight: sight.game.mask(sight.state))


def _rows(seats: Array, batch: tuple[int, ...]) -> Any:
    """Return the index of several seats into arrays ``(players, *batch)``."""
    if seats.ndim <= len(batch):
        return (seats, *np.ogrid[tuple(slice(n) for n in batch)])
    return sliced(seats.reshape(-1))


class View:
    """What one seat knows and is asked now; each part is computed at first use.

    For several seats `seat` is an array, see `Sight.view`, and there are no words.
    """

    game: Any  # of the game that the reader is for
    low = _lazy(lambda view: view.sight.legal[0][view.rows])  # lowest legal action, ``(*batch)``
    high = _lazy(lambda view: view.sight.legal[1][view.rows])  # highest legal action, ``(*batch)``
    asked = _lazy(lambda view: view.sight.turn[view.rows])  # has to move, bool ``(*batch)``

    def __init__(self, sight: Sight, seat: Any) -> None:
        self.game, self.seat, self.sight = sight.game, seat, sight
        self.rows = _rows(seat, sight.batch) if isinstance(seat, np.ndarray) else seat

    @_lazy
    def batch(self) -> tuple[int, ...]:
        """The shape of what one seat, or each of several, is told at all tables."""
        shape, seat = self.sight.batch, self.seat
        several = isinstance(seat, np.ndarray)
        return seat.shape[: seat.ndim - len(shape)] + shape if several else shape

    def table(self, index: Any) -> View:
        alike = np.ndim(self.seat) == 0
        return self.sight.table(index).view(self.seat if alike else self.seat[index])

    @property
    def who(self) -> Who:
        """The caller of this seat's requests; the game stands for the run if none is named."""
        who = self.sight.who
        return who._replace(run=who.run or self.game.name, seat=self.seat)

    @property
    def core(self) -> View:
        return self if self.game.core is self.game else self._inside

    _inside = _lazy(lambda view: view.sight.core.view(view.seat))

    @classmethod
    def of(cls, game: Rulebook, state: Any, seat: int) -> View:
        """Return a seat's view of a state; of a batch of tables, it has numbers but no words."""
        return cls(Sight(game, state), seat)

    @_lazy
    def numbers(self) -> Array:
        """What the seat knows, float32 ``(*batch, columns)``; see ``game.columns()``."""
        return self._part("numbers", self.game.observe)

    def _part(self, name: str, work_out: Callable[[Any, Any], Array]) -> Array:
        """Return this seat's rows of a sight's array; a batch computes only these rows."""
        if not self.batch or name in self.sight.__dict__:
            rows: Array = getattr(self.sight, name)[self.rows]
            return rows
        seats = np.asarray(self.seat)
        if seats.ndim > len(self.sight.batch):
            return work_out(self.sight.state, seats.reshape(-1))
        return work_out(self.sight.state, seats[None])[0]

    @_lazy
    def told(self) -> dict[str, Any] | None:
        return None if self.batch else self.sight.tell(self.seat)

    @_lazy
    def question(self) -> Question | None:
        return None if self.batch else self.sight.question(self.seat)

    @_lazy
    def mask(self) -> Array | None:
        """Legal actions from the lowest on, bool ``(*batch, actions)``; None if all are."""
        return self._part("mask", self.game.mask) if self.game.masked else None

    @_lazy
    def amounts(self) -> tuple[Array, Array]:
        low, high = self.sight.amounts
        return low[self.rows], high[self.rows]

    def number(self, column: str) -> Array:
        """Return one column of the numbers, or what is `recalled`, by name, exactly, ``(*batch)``.

        Integers and truths are int64. What all hear broadcasts to the batch of several seats.
        """
        fact, index = self.game.fact_index[column]
        value = self.sight.fact(fact)
        return self._heard(value if index is None else value[index])

    def row(self, name: str) -> Array:
        """Return a fact's numbers, each as `number` returns it, ``(*batch, columns)``."""
        fact, _ = self.game.fact_index[f"{name}_0"]
        return self._heard(np.moveaxis(self.sight.fact(fact), 0, -1), 1)

    def _heard(self, value: Array, last: int = 0) -> Array:
        shape, hears = (*self.sight.batch, *value.shape[value.ndim - last :]), self.sight.hears
        if value.ndim > len(shape):  # each seat's own, else what all hear
            if isinstance(self.rows, tuple):  # what is the same at all tables may be there once
                value = np.broadcast_to(value, (len(value), *shape))
            value = value[self.rows]
        if value.dtype.kind == "b":
            value = value.astype(np.int64)
        heard = (..., *(None,) * last)
        return value if hears is None else value * hears[self.rows][heard]

    def each(self, name: str) -> Array:
        """Return what all hear of each seat, by the fact's name, exactly, ``(players, *batch)``."""
        fact, _ = self.game.fact_index[f"{name}_0"]
        value, hears, shape = self.sight.fact(fact), self.sight.hears, self.sight.batch
        value = value.reshape(len(value), *(1,) * (len(self.batch) - len(shape)), *shape)
        return value if hears is None else value * hears[self.rows]
