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
STOCK = 8  # episodes to come that are made at once, for each table
STOCK_BYTES = 2**20  # or fewer, of larger states


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


def seats_of(seeds: Array, players: int) -> PerPlayer:
    """Return seeds for the policies in the seats of episodes, int64 ``(players, tables)``."""
    drawn: PerPlayer = Noise(seeds).of("seat").of(np.arange(players)[:, None]).seed()
    return drawn


class Begun(NamedTuple):
    """First states of episodes, and their seeds, uint64 ``(tables,)``."""

    seeds: Array
    state: Any

    def table(self, index: Array) -> Begun:
        return Begun(self.seeds[index], self.state.table(index))

    def placed(self, indexes: Array, part: Begun) -> Begun:
        """Return a copy with the episodes of `part` at `indexes`, integers ``(k,)``."""
        seeds = self.seeds.copy()
        seeds[indexes] = part.seeds
        return Begun(seeds, self.state.placed(indexes, part.state))


class Tables:
    """Tables that are played together, each as a `Table` by itself.

    `seeds`, uint64, and `steps`, int64, are ``(tables,)``. `sight` is all tables' state as all
    seats see it.
    """

    def __init__(self, game: Rulebook, count: int) -> None:
        check_integer("count", count, 1)
        self.game, self.count = game, count
        self.seeds, self.steps = np.zeros(count, np.uint64), np.zeros(count, np.int64)
        self.state: Any = None
        self.sight: Sight | None = None
        self._first: list[int | None] = [None] * count  # the last seed that was given
        self._is_seeded = np.zeros(count, np.bool_)  # tables that have one
        self._streams: list[np.random.Generator | None] = [None] * count  # of later seeds
        self._ahead = np.zeros((count, AHEAD), np.int64)
        self._used = np.full(count, AHEAD)
        self._stock: Begun | None = None  # episodes that follow, each table's first, second, ...
        self._stocked = np.full(count, -AHEAD)  # how many seeds were used when they were made
        self._depth = 1

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
        self.steps = self.steps.copy()
        self.steps[tables] = 0
        if seeds is None and given is None and self.state is not None:
            stock, index = self.coming(np.ones(self.count, np.bool_) if mask is None else mask)
            begun = stock.table(index[tables])
        elif seeds is None:
            begun = self._begin(self._next(tables), given)
        else:
            chosen = np.array([self._start(t, seeds[t]) for t in tables.tolist()], np.uint64)
            begun = self._begin(chosen, given)
        if not every:
            begun = Begun(self.seeds, self.state).placed(tables, begun)
        self.seeds, state = begun
        self._enter(state)

    def _begin(self, seeds: Array, fixed_chance: Mapping[str, Any] | None = None) -> Begun:
        state = self.game.begin(self.game.chance(Noise(seeds), fixed_chance), seeds.shape)
        return Begun(seeds, state)

    def coming(self, mask: PerTable) -> tuple[Begun, Array]:
        """Return a stock with the episodes that follow, and their indexes, int64 ``(tables,)``.

        Those of the tables in `mask` are used up by that.
        """
        stock, place = self._stock, self._used - self._stocked
        if stock is None or any_true(mask & (place >= self._depth)):
            if stock is None:
                size = sum(array.nbytes for array in self.state.arrays().values())
                self._depth = min(max(STOCK_BYTES // (size + 1), 1), STOCK)
            # Those that have used half of theirs get new ones as well, to share the calls.
            due = np.flatnonzero(2 * place >= self._depth)
            self._draw(due, self._depth)
            self._stocked[due] = self._used[due]
            order = np.arange(self._depth)[:, None]
            part = self._begin(self._ahead[due, self._used[due] + order].astype(np.uint64).ravel())
            if stock is not None and len(due) < self.count:
                part = stock.placed((order * self.count + due).ravel(), part)
            self._stock = stock = part
            place[due] = 0
        self._used += mask
        return stock, place * self.count + np.arange(self.count)

    def seats(self, mask: PerTable) -> PerPlayer:
        """Return seeds for the policies at the tables in `mask`, int64; 0 elsewhere."""
        tables, seeds = np.flatnonzero(mask), np.zeros((self.game.players, self.count), np.int64)
        seeds[:, tables] = seats_of(self.seeds[tables], self.game.players)
        return seeds

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
        self._streams[table], self._used[table], self._stocked[table] = None, AHEAD, -AHEAD
        return int(seed)

    def _draw(self, tables: Array, count: int) -> None:
        """Draw so many seeds ahead at tables that were given one, equal to those of `Table`."""
        for table in tables[self._used[tables] > AHEAD - count].tolist():
            stream, used = self._streams[table], self._used[table]
            if stream is None:
                self._streams[table] = stream = following(self._first[table])
            row = self._ahead[table]
            row[: AHEAD - used] = row[used:]
            row[AHEAD - used :] = stream.bit_generator.random_raw(used) >> 1  # below 2**63, fast
            self._stocked[table] -= used
            self._used[table] = 0

    def _next(self, tables: Array) -> Array:
        seeded = tables[self._is_seeded[tables]]
        self._draw(seeded, 1)
        seeds = self._ahead[tables, self._used[tables] % AHEAD].astype(np.uint64)
        self._used[seeded] += 1
        for index in np.flatnonzero(~self._is_seeded[tables]).tolist():
            seeds[index] = self._start(int(tables[index]), secrets.randbelow(2**63))
        return seeds

    def _enter(self, state: Any) -> None:
        self.state = state
        who = Who(self.game.name, self.seeds, self.steps, seed=self.seeds)
        self.sight = Sight(self.game, state, who)

    def go_on(self, state: Any, steps: Array) -> None:
        """Enter a state, after so many steps of each table."""
        self.steps = steps
        self._enter(state)

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
