"""Many tables of one game, played in one step of the rules; no player."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array, any_true
from llm_games.errors import BadParameter, NotReady
from llm_games.facts import check_integer
from llm_games.noise import FULL, Noise
from llm_games.rulebook import Outcome, PerPlayer, PerTable, Rulebook
from llm_games.table import following
from llm_games.view import Sight, Who

AHEAD = 64  # seeds of episodes to come that are drawn at once


def nearly_all(some: int, tables: int) -> bool:
    """Return whether some are so many of the tables that it is faster to play all."""
    return 4 * some >= 3 * tables


def seeds_of(seed: Any, count: int) -> list[int | None]:
    """Return each table's seed: of a number s they are s, s + 1, ..., of None all None.

    Raises:
        BadParameter: something that is no seed, or not one for each of the tables.
    """
    if seed is None:
        return [None] * count
    if not isinstance(seed, list | tuple | np.ndarray):
        check_integer("seed", seed, 0)
        return [int(seed) + table for table in range(count)]
    if len(seed) != count:
        raise BadParameter(f"{count} copies take as many seeds, got {len(seed)}")
    for own in seed:
        if own is not None:
            check_integer("seed", own, 0)
    return [None if own is None else int(own) for own in seed]


class Begun(NamedTuple):
    """Episodes as they begin: seeds, uint64 ``(tables,)``, those of their seats, and first states.

    The seats' seeds, int64 ``(players, tables)``, are of the chance of those who sit there.
    """

    seeds: Array
    seats: PerPlayer
    state: Any

    def table(self, index: Array) -> Begun:
        """Take several tables, by integers."""
        return Begun(self.seeds[index], self.seats[:, index], self.state.table(index))

    def placed(self, where: Array, part: Begun) -> Begun:
        """Return these with those of `part` at the places `where`, integers ``(k,)``."""
        seeds, seats = self.seeds.copy(), self.seats.copy()
        seeds[where], seats[:, where] = part.seeds, part.seats
        return Begun(seeds, seats, self.state.placed(where, part.state))


class Tables:
    """Tables that are played together, each one as a `Table` by itself is.

    `seeds`, uint64, and `steps`, int64, are ``(tables,)``: those of each table's episode; `seats`,
    int64 ``(players, tables)``, are the seeds of those who sit there. `sight` is the state of all
    as all seats see it.
    """

    def __init__(self, game: Rulebook, count: int) -> None:
        check_integer("count", count, 1)
        self.game, self.count = game, count
        self.seeds, self.steps = np.zeros(count, np.uint64), np.zeros(count, np.int64)
        self.seats = np.zeros((game.players, count), np.int64)
        self.state: Any = None
        self.sight: Sight | None = None
        self._first: list[int | None] = [None] * count  # the last seed that was given
        self._begun = np.zeros(count, np.bool_)  # where there is one
        self._streams: list[np.random.Generator | None] = [None] * count  # of those that follow
        self._ahead = np.zeros((count, AHEAD), np.int64)
        self._used = np.full(count, AHEAD)
        self._coming: Begun | None = None  # episodes that follow, worked out for all at once

    def reset(
        self,
        seeds: Sequence[int | None] | None = None,
        where: PerTable | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> None:
        """Start an episode at the tables `where`, bool; at all by default.

        `seeds` has one for each table; None stands for the next that follows the last one given.
        `given` as in `Rulebook.reset`, for all these tables.

        Raises:
            NotReady: some tables start again that were never started.
            BadParameter: a seed below 0 or above 2**64 - 1, or chance that cannot be given.
        """
        every = where is None or bool(where.all())
        if self.state is None and not every:
            raise NotReady(f"{self.game.name} was never reset: reset all tables first")
        tables = np.arange(self.count) if where is None else np.flatnonzero(where)
        if seeds is None:
            chosen = self._next(tables)
        else:
            chosen = np.array([self._start(t, seeds[t]) for t in tables.tolist()], np.uint64)
        if every or seeds is not None or given is not None:
            begun = self._begin(chosen, given)
        else:
            begun = self._follow(tables, chosen)
        self.steps = self.steps.copy()
        self.steps[tables] = 0
        if not every:
            begun = Begun(self.seeds, self.seats, self.state).placed(tables, begun)
        self.seeds, self.seats, state = begun
        self._enter(state)

    def _begin(self, seeds: Array, given: Mapping[str, Any] | None = None) -> Begun:
        """Return episodes of these seeds as they begin."""
        noise, seats = Noise(seeds), np.arange(self.game.players)[:, None]
        state = self.game.begin(self.game.chance(noise, given), seeds.shape)
        return Begun(seeds, noise.of("seat").of(seats).seed(), state)

    def _follow(self, tables: Array, seeds: Array) -> Begun:
        """Return episodes of these tables that have the seeds that follow.

        If some are not worked out yet, those that come next at all other tables are, too: a few
        tables take almost as long as all.
        """
        coming = self._coming
        if coming is None or any_true(coming.seeds[tables] != seeds):
            due = self._ahead_of(np.arange(self.count))
            due[tables] = seeds
            if coming is None:
                coming = self._begin(due)
            else:
                stale = np.flatnonzero(coming.seeds != due)
                coming = coming.placed(stale, self._begin(due[stale]))
            self._coming = coming
        return coming.table(tables)

    def hush(self, mute: Callable[[], PerPlayer], where: PerTable | None = None) -> None:
        """Let no talk wait for the words of seats that `mute` gives, bool ``(players, tables)``.

        It is of episodes that were just reset, at the tables `where`, or at all. In a game without
        talk it is not called.
        """
        if self.game.core is not self.game:
            seats = mute() if where is None else mute() & where
            self._enter(self.game.hush(self.state, seats))

    def follows(self, seeds: Sequence[int | None] | None) -> PerTable:
        """Return which tables, started with these seeds, would go on after one given before."""
        given = [False] if seeds is None else [seed is not None for seed in seeds]
        return self._begun & ~np.array(given)

    def _start(self, table: int, seed: int | None) -> int:
        """Return the seed of a table's next episode."""
        if seed is None:
            return int(self._next(np.array([table]))[0])
        check_integer("seed", seed, 0, FULL)
        self._first[table], self._begun[table] = int(seed), True
        self._streams[table], self._used[table] = None, AHEAD
        return int(seed)

    def _ahead_of(self, tables: Array) -> Array:
        """Return the seeds that come next at tables that were given one, as `Table.reset` does."""
        for table in tables[self._used[tables] == AHEAD].tolist():
            first = self._first[table]
            if first is None:
                continue
            stream = self._streams[table] or following(first)
            self._streams[table], self._used[table] = stream, 0
            self._ahead[table] = stream.integers(2**63, size=AHEAD)
        return self._ahead[tables, self._used[tables] % AHEAD].astype(np.uint64)

    def _next(self, tables: Array) -> Array:
        """Return the seeds that follow; nobody is to have them again."""
        seeds = self._ahead_of(tables)
        used = self._used[tables]
        self._used[tables] = np.minimum(used + 1, AHEAD)
        for place in np.flatnonzero(used == AHEAD).tolist():  # nobody ever gave it a seed
            seeds[place] = self._start(int(tables[place]), secrets.randbelow(2**63))
        return seeds

    def _enter(self, state: Any) -> None:
        self.state = state
        who = Who(self.game.name, self.seeds, self.steps, seed=self.seeds)
        self.sight = Sight(self.game, state, who)

    def ready(self) -> Sight:
        """Return what the seats see; raise NotReady if there is nothing yet."""
        if self.sight is None:
            raise NotReady(f"{self.game.name} was never reset: call reset() first")
        return self.sight

    def step(self, actions: PerPlayer, part: Array | None = None) -> Outcome:
        """Play moves, int64 ``(players, tables)``, at the tables `part`, integers, or at all.

        The outcome is of these tables; the others stay as they are.
        """
        if part is None:
            state, outcome = self.game.step(self.state, actions)
            self.steps = self.steps + 1
        else:
            self.steps = self.steps.copy()
            self.steps[part] += 1
            if nearly_all(len(part), self.count):  # all are played, the others forgotten
                where = np.zeros(self.count, np.bool_)
                where[part] = True
                after, outcome = self.game.step(self.state, actions)
                state, outcome = self.state.merged(after, where), outcome.table(part)
            else:
                before = self.state.table(part)
                some, outcome = self.game.step(before, actions[:, part])
                state = self.state.placed(part, some, before)
        self._enter(state)
        return outcome
