"""Players at many tables at once: asking them, and their memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from llm_games.arrays import all_true, any_true
from llm_games.errors import BadParameter
from llm_games.rulebook import Array, PerPlayer, PerTable
from llm_games.table_batch import Tables
from llm_games.view import Sight
from llm_games.wrappers.policy import Cell, Decided, Note, Policy, added, called
from llm_games.wrappers.together import at_once, run_sync, together


class BatchSeats:
    """Policies in seats of many tables, with their memories; see `Seats` for those of one.

    Each of the `policies` decides for all its seats at all tables in one call. `sits`, integers
    ``(players, tables)``, has the index of the policy in each seat, -1 for none; it may change at
    tables that start again. `outcomes` are counts by table, until somebody clears it, for players
    that ask models; `notes` are those to be recalled, with their writers.
    """

    def __init__(self, tables: Tables, policies: Sequence[Policy], sits: Array) -> None:
        self.tables, self.policies, self.sits = tables, list(policies), sits
        self.outcomes: dict[int, Counter[str]] = {}
        self.memories: list[Any] = [None] * len(self.policies)
        self.listens, self.look_back = (
            [k for k, p in enumerate(self.policies) if p.does(name)] for name in ("hear", "finish")
        )
        self.notes: Mapping[Cell, tuple[int, Sequence[Note]]] = {}
        self._talked: Array = np.zeros(tables.count, np.bool_)  # when somebody was last asked

    @property
    def sits(self) -> Array:
        return self._sits

    @sits.setter
    def sits(self, sits: Array) -> None:
        self._sits = sits
        self._held = [sits == k for k in range(len(self.policies))]
        self._cell_counts = [np.count_nonzero(mine) for mine in self._held]

    def start(self, mask: PerTable) -> None:
        """Begin episodes of these tables, bool; who sits there again recalls notes."""
        game, seeds = self.tables.game, self.tables.seats(mask)
        mute = [mine for k, mine in enumerate(self._held) if not self.policies[k].speaks]
        if mute:
            self.tables.hush(lambda: np.logical_or.reduce(mute), mask)
        for k, cells in self._cells(mask):
            policy, memory = self.policies[k], self.memories[k]
            memory = policy.start_batch(game if policy.speaks else game.core, cells, seeds, memory)
            notes = {cell: noted for cell, (writer, noted) in self.notes.items() if writer == k}
            notes = {cell: noted for cell, noted in notes.items() if cells[cell]}
            self.memories[k] = policy.recall_batch(memory, notes) if notes else memory
        self.notes = {cell: entry for cell, entry in self.notes.items() if not mask[cell[1]]}
        self._talked = self._talked & ~mask
        self.hear(mask)

    def _cells(self, mask: Array) -> list[tuple[int, Array]]:
        """Return the policies that sit in these cells or at these tables, with their cells."""
        if all_true(mask):  # the same arrays each time, by which players know that nothing moved
            return [(k, mine) for k, mine in enumerate(self._held) if self._cell_counts[k]]
        candidates = ((k, mine & mask) for k, mine in enumerate(self._held))
        return [(k, cells) for k, cells in candidates if any_true(cells)]

    def _sight(self, k: int) -> Sight:
        sight = self.tables.ready()
        return sight if self.policies[k].speaks else sight.core

    def hear(self, mask: PerTable) -> None:
        """Let players hear what the games of these tables tell them, but for what was said."""
        if not self.listens:
            return
        mask = mask & ~self._talked
        for k in self.listens:
            if any_true(cells := self._held[k] & mask):
                memory = self.policies[k].hear_batch(self._sight(k), cells, self.memories[k])
                self.memories[k] = memory

    async def ask(self, mask: Array) -> PerPlayer:
        """Return the moves of the policies in the cells of `mask`; an error leaves all memories."""
        cells = self._cells(mask)
        return self._decided(mask, cells, await together(self._decisions(cells)))

    def _decisions(self, cells: list[tuple[int, Array]]) -> Iterator[Any]:
        for k, mine in cells:
            yield self.policies[k].decide_batch(self._sight(k), mine, self.memories[k])

    def ask_now(self, mask: Array) -> PerPlayer:
        cells = self._cells(mask)
        if any(self.policies[k].waits for k, _ in cells):
            return np.asarray(run_sync(self.ask(mask)))
        return self._decided(mask, cells, [*map(at_once, self._decisions(cells))])

    def _decided(
        self, mask: Array, cells: list[tuple[int, Array]], answers: list[tuple[Decided, Any]]
    ) -> PerPlayer:
        moves: list[Array] = []
        for (k, _), answer in zip(cells, answers, strict=True):
            try:
                decided, _ = answer
                actions = np.asarray(decided.actions)
            except (AttributeError, TypeError, ValueError):
                actions = np.asarray(None)
            words = actions.dtype == object and self.policies[k].speaks
            if actions.shape != mask.shape or (actions.dtype.kind not in "iu" and not words):
                rule = f"must decide for a batch by Decided integers of shape {mask.shape}"
                fault = f"and its memory, got {actions.dtype} of shape {actions.shape}"
                raise BadParameter(f"{called(self.policies[k])!r} {rule}, {fault}")
            moves.append(actions if words else actions.astype(np.int64, copy=False))
        self._talked = self.tables.ready().talking
        for (k, _), (decided, memory) in zip(cells, answers, strict=True):
            self.memories[k] = memory
            for (_, table), decision in decided.replies.items():
                if decision.attempts:
                    self.outcomes.setdefault(table, Counter())[decision.outcome] += 1
        return reduce(added, moves) if moves else np.zeros(mask.shape, np.int64)

    def march(self, due: PerTable) -> bool:
        """Take steps in a row at these tables where a player says how it walks; or return False."""
        game: Any = self.tables.game
        alone = game.core is game and not self.listens
        for k, policy in enumerate[Any](self.policies if alone else ()):
            mine, memory = self._held[k], self.memories[k]
            if memory is None or not (policy.says("marching") and (way := policy.marching(memory))):
                continue
            next_state, moved = game.march(self.tables.state, due, mine, *way)
            if any_true(moved):
                self.memories[k] = memory._replace(decided=memory.decided + moved)
                self.tables.go_on(next_state, self.tables.steps + moved.sum(axis=0))
                return True
        return False

    def finish(self, mask: PerTable) -> None:
        cells = [(k, chosen) for k in self.look_back if (chosen := self._held[k] & mask).any()]
        if cells:
            work = (
                self.policies[k].finish_batch(self._sight(k), chosen, self.memories[k])
                for k, chosen in cells
            )
            for (k, _), decisions in zip(cells, run_sync(together(work)), strict=True):
                mine = {cell: (k, decision.notes) for cell, decision in decisions.items()}
                self.notes = {**self.notes, **mine}
