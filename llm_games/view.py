"""What a player sees when it has to decide: one seat's knowledge, as numbers and as words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from llm_games.questions import Question
from llm_games.rulebook import Array, Rulebook

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
    """Who is asked: in what, which episode (its seed, or its number in a run), and when.

    `call` counts what a seat asks of its model for one decision. `seed` is the episode's. Of a
    batch, `episode`, `step` and `seed` are arrays ``(tables,)``.
    """

    run: str = ""
    episode: int = 0
    step: int = 0
    seat: int = 0
    call: int = 0
    seed: int = 0

    def table(self, index: Any) -> Who:
        """Return who is asked at one table of a batch (or several, by an array)."""
        own = (value[index] if np.ndim(value) else value for value in self[1:])
        return Who(self.run, *(value if np.ndim(value) else int(value) for value in own))


NOBODY = Who()


class Sight:
    """A state as all its seats see it: what rules work out for all of them is worked out once."""

    def __init__(self, game: Rulebook, state: Any, who: Who = NOBODY) -> None:
        self.game, self.state, self.who = game, state, who

    def __reduce__(self) -> tuple[type[Sight], tuple[Rulebook, Any, Who]]:
        """Pickle what it is of; what was worked out is worked out again."""
        return Sight, (self.game, self.state, self.who)

    def table(self, index: Any) -> Sight:
        """Return what is seen of one table of a batch (or of several, by an int array)."""
        return Sight(self.game, self.state.table(index), self.who.table(index))

    def view(self, seat: int) -> View:
        """Return one seat's view."""
        return View(self, seat)

    @_lazy
    def asked(self) -> list[int]:
        """The seats of one table that have to move, in order."""
        return [seat for seat, asked in enumerate(self.game.asked(self.state).tolist()) if asked]

    def fact(self, place: int) -> Array:
        """Return the values of one fact of `Rulebook.facts` or, after them, `recalled`."""
        if place not in self._facts:
            facts = (*self.game.facts, *self.game.recalled())
            self._facts[place] = np.asarray(facts[place].of(self.state))
        return self._facts[place]

    _facts = _lazy(lambda sight: dict[int, Array]())
    hears = _lazy(lambda sight: sight.game.hears(sight.state))  # who is told anything
    tell = _lazy(lambda sight: sight.game.teller(sight.state))  # tells a seat what it knows
    numbers = _lazy(lambda sight: sight.game.observe(sight.state))
    legal = _lazy(lambda sight: sight.game.legal(sight.state))
    amounts = _lazy(lambda sight: sight.game.amounts(sight.state))
    mask = _lazy(lambda sight: sight.game.mask(sight.state))


class View:
    """What one seat knows and is asked now. Nothing in it is hidden from the seat by the rules.

    Each part is worked out when it is first asked for, the numbers for all seats of a `Sight`.
    """

    game: Any  # of the game that the reader is for
    low = _lazy(lambda view: view.sight.legal[0][view.seat])  # lowest legal action, ``(*batch)``
    high = _lazy(lambda view: view.sight.legal[1][view.seat])  # highest legal action, ``(*batch)``

    def __init__(self, sight: Sight, seat: int) -> None:
        self.game, self.seat, self.sight, self._state = sight.game, seat, sight, sight.state

    @property
    def who(self) -> Who:
        """Who is asked; where no run is named, it is the game."""
        who = self.sight.who
        return who._replace(run=who.run or self.game.name, seat=self.seat)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch, () for one table."""
        return self._state.round.shape

    @classmethod
    def of(cls, game: Rulebook, state: Any, seat: int) -> View:
        """Return a seat's view of a state; of a batch of tables, it has numbers but no words."""
        return cls(Sight(game, state), seat)

    @_lazy
    def numbers(self) -> Array:
        """What the seat knows, float32 ``(*batch, columns)``; see ``game.columns()``."""
        return self.sight.numbers[self.seat]

    @_lazy
    def told(self) -> dict[str, Any] | None:
        """The same knowledge as plain values; None for a batch."""
        return None if self._state.round.ndim else self.sight.tell(self.seat)

    @_lazy
    def question(self) -> Question | None:
        """What is asked; None for a batch, or if it is not this seat's move."""
        if self._state.round.ndim or self.seat not in self.sight.asked:
            return None
        return self.game.asks(self._state, self.seat)

    @_lazy
    def mask(self) -> Array | None:
        """Legal actions from the lowest on, bool ``(*batch, actions)``; None if all are."""
        return self.sight.mask[self.seat] if self.game.masked else None

    @_lazy
    def amounts(self) -> tuple[Array, Array]:
        """Limits of an amount, see `Rulebook.amounts`, int64 ``(*batch)`` each."""
        low, high = self.sight.amounts
        return low[self.seat], high[self.seat]

    def number(self, column: str) -> Array:
        """Return one column of the numbers, or what is `recalled`, by name, exactly, ``(*batch)``.

        Whole numbers, true and false are int64; `numbers` are float32, for learners.
        """
        place, index = self.game.fact_index[column]
        value, hears = self.sight.fact(place), self.sight.hears
        if index is not None:
            value = value[index]
        if value.ndim > self._state.round.ndim:  # each seat's own, else what all hear
            value = value[self.seat]
        if value.dtype.kind == "b":
            value = value.astype(np.int64)
        return value if hears is None else value * hears[self.seat]
