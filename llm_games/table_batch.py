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

AHEAD = 128  # seeds of episodes to come that are drawn at once


def nearly_all(count: int, tables: int) -> bool:
    """Test whether so many of the tables play that it is faster to play all."""
    return 4 * count >= 3 * tables


def seeds_of(seed: Any, count: int) -> list[int | None]:
    """Return each table's seed: s, s + 1, ... of a number, None of None; BadParameter if unfit."""
    if seed is None:
        return [None] * count
    if not isinstance(seed, list | tuple | np.ndarray):
        check_integer("seed", seed, 0)
        return [int(seed) + table for table in range(count)]
    if len(seed) != count:
        raise BadParameter(f"{count} copies take as many seeds, got {len(seed)}")
    for table_seed in seed:
        if table_seed is not None:
            check_integer("seed", table_seed, 0)
    return [None if table_seed is None else int(table_seed) for table_seed in seed]


class Begun(NamedTuple):
    """First states of episodes, their seeds, uint64 ``(tables,)``, and seats', int64 by player."""

    seeds: Array
    seats: PerPlayer
    state: Any

    def table(self, index: Array) -> Begun:
        return Begun(self.seeds[index], self.seats[:, index], self.state.table(index))

    def placed(self, indexes: Array, part: Begun) -> Begun:
        """Return a copy with the episodes of `part` at `indexes`, integers ``(k,)``."""
        seeds, seats = self.seeds.copy(), self.seats.copy()
        seeds[indexes], seats[:, indexes] = part.seeds, part.seats
        return Begun(seeds, seats, self.state.placed(indexes, part.state))

    def take_over(self, other: Begun, mask: PerTable) -> Begun:
        """Return the same of the other's episodes at tables in `mask`; the state is changed."""
        seeds, seats = (
            np.where(mask, other.seeds, self.seeds),
            np.where(mask, other.seats, self.seats),
        )
        return Begun(seeds, seats, self.state.take_over(other.state, mask))


class Tables:
    """Tables that are played together, each as a `Table` by itself.

    `seeds`, uint64, and `steps`, int64, are ``(tables,)``; `seats`, int64 ``(players, tables)``,
    are seeds for the policies there. `sight` is all tables' state as all seats see it.
    """

    def __init__(self, game: Rulebook, count: int) -> None:
        check_integer("count", count, 1)
        self.game, self.count = game, count
        self.seeds, self.steps = np.zeros(count, np.uint64), np.zeros(count, np.int64)
        self.seats = np.zeros((game.players, count), np.int64)
        self.state: Any = None
        self._own = False  # nobody else has the state's arrays
        self.sight: Sight | None = None
        self._first: list[int | None] = [None] * count  # the last seed that was given
        self._is_seeded = np.zeros(count, np.bool_)  # tables that have one
        self._streams: list[np.random.Generator | None] = [None] * count  # of later seeds
        self._ahead = np.zeros((count, AHEAD), np.int64)
        self._used = np.full(count, AHEAD)
        self._coming: Begun | None = None  # episodes that follow, worked out for all at once

    def reset(
        self,
        seeds: Sequence[int | None] | None = None,
        mask: PerTable | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> None:
        """Start an episode at the tables in `mask`, bool; at all by default.

        `seeds` has one for each table; None: the next after the last one given. Raises NotReady if
        a table starts again that never did, BadParameter for a bad seed or chance.
        """
        every = mask is None or bool(mask.all())
        if self.state is None and not every:
            raise NotReady(f"{self.game.name} was never reset: reset all tables first")
        tables = np.arange(self.count) if mask is None else np.flatnonzero(mask)
        if seeds is None:
            chosen = self._next(tables)
        else:
            chosen = np.array([self._start(t, seeds[t]) for t in tables.tolist()], np.uint64)
        self.steps, own = self.steps.copy(), self._own
        self.steps[tables] = 0
        if every or seeds is not None or given is not None:
            begun = self._begin(chosen, given)
            if not every:
                begun = Begun(self.seeds, self.seats, self.state).placed(tables, begun)
        else:
            begun, coming = Begun(self.seeds, self.seats, self.state), self._follow(tables, chosen)
            if own and mask is not None:
                begun = begun.take_over(coming, mask)
            else:
                begun = begun.placed(tables, coming.table(tables))
        self.seeds, self.seats, state = begun
        self._enter(state)
        self._own = own and not every

    def _begin(self, seeds: Array, fixed_chance: Mapping[str, Any] | None = None) -> Begun:
        noise, seats = Noise(seeds), np.arange(self.game.players)[:, None]
        state = self.game.begin(self.game.chance(noise, fixed_chance), seeds.shape)
        return Begun(seeds, noise.of("seat").of(seats).seed(), state)

    def _follow(self, tables: Array, seeds: Array) -> Begun:
        """Return episodes that follow, at these tables those of the seeds; all are drawn ahead."""
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
        return coming

    def hush(self, mute: Callable[[], PerPlayer], mask: PerTable | None = None) -> None:
        """Tell talk (if any) not to wait for the seats of `mute`, bool ``(players, tables)``.

        Of episodes that were just reset, at the tables in `mask`, or at all.
        """
        if self.game.core is not self.game:
            seats = mute() if mask is None else mute() & mask
            self._enter(self.game.hush(self.state, seats))

    def follows(self, seeds: Sequence[int | None] | None) -> PerTable:
        """Return the tables that these seeds would let go on after an earlier given seed."""
        has_seed = [False] if seeds is None else [seed is not None for seed in seeds]
        return self._is_seeded & ~np.array(has_seed)

    def _start(self, table: int, seed: int | None) -> int:
        if seed is None:
            return int(self._next(np.array([table]))[0])
        check_integer("seed", seed, 0, FULL)
        self._first[table], self._is_seeded[table] = int(seed), True
        self._streams[table], self._used[table] = None, AHEAD
        return int(seed)

    def _ahead_of(self, tables: Array) -> Array:
        """Return the next seeds at tables that were given one, equal to those of `Table.reset`."""
        for table in tables[self._used[tables] == AHEAD].tolist():
            first = self._first[table]
            if first is None:
                continue
            stream = self._streams[table] or following(first)
            self._streams[table], self._used[table] = stream, 0
            self._ahead[table] = stream.integers(2**63, size=AHEAD)
        return self._ahead[tables, self._used[tables] % AHEAD].astype(np.uint64)

    def _next(self, tables: Array) -> Array:
        seeds = self._ahead_of(tables)
        used = self._used[tables]
        self._used[tables] = np.minimum(used + 1, AHEAD)
        for index in np.flatnonzero(used == AHEAD).tolist():  # tables without any given seed
            seeds[index] = self._start(int(tables[index]), secrets.randbelow(2**63))
        return seeds

    def _enter(self, state: Any) -> None:
        self.state, self._own = state, False
        who = Who(self.game.name, self.seeds, self.steps, seed=self.seeds)
        self.sight = Sight(self.game, state, who)

    def go_on(self, state: Any, steps: Array, own: bool) -> None:
        """Enter a state, its `own` if nobody else has it, after so many steps of each table."""
        self.steps = steps
        self._enter(state)
        self._own = own

    def ready(self) -> Sight:
        """Return the sight of all seats; NotReady before the first reset."""
        if self.sight is None:
            raise NotReady(f"{self.game.name} was never reset: call reset() first")
        return self.sight

    def step(self, actions: PerPlayer, part: Array | None = None) -> Outcome:
        """Play moves, int64 ``(players, tables)``, at the tables `part`, integers, or all."""
        if part is None:
            state, outcome = self.game.step(self.state, actions)
            self.steps = self.steps + 1
        else:
            self.steps = self.steps.copy()
            self.steps[part] += 1
            if nearly_all(len(part), self.count):  # all are played, the others forgotten
                mask = np.zeros(self.count, np.bool_)
                mask[part] = True
                next_state, outcome = self.game.step(self.state, actions)
                state, outcome = self.state.merged(next_state, mask), outcome.table(part)
            else:
                previous_states = self.state.table(part)
                next_states, outcome = self.game.step(previous_states, actions[:, part])
                state = self.state.placed(part, next_states, previous_states)
        self._enter(state)
        return outcome
