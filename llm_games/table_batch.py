"""Many tables of one game, played in one step of the rules; no player."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from llm_games.arrays import Array
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


def seats_of(seeds: Array, players: int) -> PerPlayer:
    """Return seeds for the policies in the seats of episodes, int64 ``(players, tables)``."""
    drawn: PerPlayer = Noise(seeds).of("seat").of(np.arange(players)[:, None]).seed()
    return drawn


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
        self._is_seeded = np.zeros(count, np.bool_)  # tables that were given a seed
        # What draws later seeds, or the last seed that was given: they follow it.
        self._streams: list[np.random.Generator | int | None] = [None] * count
        self.ahead = np.zeros((count, AHEAD), np.uint64)
        self.used = np.full(count, AHEAD)

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
        if seeds is None:
            chosen = self.next_seeds(tables)
        else:
            chosen = np.array([self._start(t, seeds[t]) for t in tables.tolist()], np.uint64)
        state = self.game.begin(self.game.chance(Noise(chosen), given), chosen.shape)
        self.seeds = self.seeds.copy()
        self.seeds[tables] = chosen
        self._enter(state if every else self.state.placed(tables, state))

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
            return int(self.next_seeds(np.array([table]))[0])
        check_integer("seed", seed, 0, FULL)
        self._streams[table], self._is_seeded[table], self.used[table] = int(seed), True, AHEAD
        return int(seed)

    def next_seeds(self, tables: Array) -> Array:
        """Return the seeds that follow at these tables, uint64."""
        self.draw_ahead()
        seeds = self.ahead[tables, self.used[tables]]
        self.used[tables] += 1
        return seeds

    def draw_ahead(self) -> None:
        """Draw seeds where all that were drawn are used, equal to those of `Table`."""
        for table in np.flatnonzero(self.used == AHEAD).tolist():
            stream = self._streams[table]
            if stream is None:
                self.ahead[table, -1] = self._start(table, secrets.randbelow(2**63))
                self.used[table] = AHEAD - 1
                continue
            if isinstance(stream, int):
                self._streams[table] = stream = following(stream)
            drawn = stream.bit_generator.random_raw(AHEAD)
            self.ahead[table], self.used[table] = drawn >> 1, 0  # below 2**63, fast

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
