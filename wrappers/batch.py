"""Players at many tables at once: whom to ask, what they remember."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.rulebook import Array, PerPlayer, PerTable
from llm_games.tables import Tables
from llm_games.wrappers.llm_policy import run_sync
from llm_games.wrappers.policy import Cell, Decided, Decision, Note, Policy, called
from llm_games.wrappers.together import at_once, together


class BatchSeats:
    """Policies in seats of many tables, with their memories; see `Seats` for those of one.

    Each of the `policies` decides for all its seats at all tables in one call. `sits`, integers
    ``(players, tables)``, says which of them sits where, -1 where none does; it may change at
    tables that start again. `met` are the outcomes of decisions of players that ask models, by
    table, since somebody cleared it; `notes` what was noted down, and by whom, to be recalled.
    """

    def __init__(self, tables: Tables, policies: Sequence[Policy], sits: Array) -> None:
        self.tables, self.policies, self.sits = tables, list(policies), sits
        self.met: dict[int, Counter[str]] = {}
        self._memories: list[Any] = [None] * len(self.policies)
        self._listen, self.look_back = (
            [k for k, p in enumerate(self.policies) if _own(p, name)] for name in ("hear", "finish")
        )
        self.notes: Mapping[Cell, tuple[int, Sequence[Note]]] = {}

    @property
    def sits(self) -> Array:
        """Which policy sits where."""
        return self._sits

    @sits.setter
    def sits(self, sits: Array) -> None:
        self._sits = sits
        self._held = [sits == k for k in range(len(self.policies))]

    def start(self, where: PerTable) -> None:
        """Begin the episodes that these tables, bool, were reset to.

        Who noted something at the end of the one before, and sits in that seat again, recalls it.
        """
        some, seats = np.flatnonzero(where), np.arange(self.tables.game.players)[:, None]
        seeds = np.zeros(self._sits.shape, np.int64)
        seeds[:, some] = Noise(self.tables.seeds[some]).of("seat").of(seats).seed()
        for k, own in self._cells(where):
            policy, memory = self.policies[k], self._memories[k]
            memory = policy.start_batch(self.tables.game, own, seeds, memory)
            notes = {cell: noted for cell, (who, noted) in self.notes.items() if who == k}
            notes = {cell: noted for cell, noted in notes.items() if own[cell]}
            self._memories[k] = policy.recall_batch(memory, notes) if notes else memory
        self.notes = {cell: own for cell, own in self.notes.items() if not where[cell[1]]}
        self.hear(where)

    def _cells(self, where: Array) -> list[tuple[int, Array]]:
        """Return the policies that sit in some of these cells or at these tables, and where."""
        held = ((k, mine & where) for k, mine in enumerate(self._held))
        return [(k, own) for k, own in held if np.count_nonzero(own)]

    def hear(self, where: PerTable) -> None:
        """Let players hear what the states of these tables tell them."""
        for k in self._listen:
            if np.count_nonzero(own := self._held[k] & where):
                heard = self.policies[k].hear_batch(self.tables.ready(), own, self._memories[k])
                self._memories[k] = heard

    async def ask(self, where: Array) -> PerPlayer:
        """Ask those of the seats and tables `where` that sit here, all at the same time.

        Returns their moves, as in `Decided`. An error of one stops all; nobody remembers anything
        then.
        """
        sight, cells = self.tables.ready(), self._cells(where)
        decide = (self.policies[k].decide_batch(sight, own, self._memories[k]) for k, own in cells)
        return self._decided(where, cells, await together(decide))

    def ask_now(self, where: Array) -> PerPlayer:
        """Ask them from code that cannot wait."""
        cells = self._cells(where)
        if any(self.policies[k].waits for k, _ in cells):
            moves: PerPlayer = run_sync(self.ask(where))
            return moves
        sight = self.tables.ready()
        answers = [
            at_once(self.policies[k].decide_batch(sight, own, self._memories[k]))
            for k, own in cells
        ]
        return self._decided(where, cells, answers)

    def _decided(
        self, where: Array, cells: list[tuple[int, Array]], answers: list[tuple[Decided, Any]]
    ) -> PerPlayer:
        found: list[Array] = []
        for (k, _), answer in zip(cells, answers, strict=True):
            try:
                decided, _ = answer
                actions = np.asarray(decided.actions)
            except (AttributeError, TypeError, ValueError):
                actions = np.asarray(None)
            if actions.shape != where.shape or actions.dtype.kind not in "iu":
                fault = f"got {actions.dtype} of shape {actions.shape}"
                raise BadParameter(
                    f"{called(self.policies[k])!r} must decide for a batch by Decided integers of "
                    f"shape {where.shape}, and its memory, {fault}"
                )
            found.append(actions.astype(np.int64, copy=False))
        for (k, _), (decided, memory) in zip(cells, answers, strict=True):
            self._memories[k] = memory
            self._count(decided.replies)
        return sum(found[1:], found[0]) if found else np.zeros(where.shape, np.int64)

    def _count(self, replies: Mapping[Cell, Decision]) -> None:
        for (_, table), decision in replies.items():
            if decision.attempts:
                self.met.setdefault(table, Counter())[decision.outcome] += 1

    def finish(self, where: PerTable) -> None:
        """Let players look back at games that are over, at these tables."""
        cells = [(k, own) for k in self.look_back if (own := self._held[k] & where).any()]
        if cells:
            sight = self.tables.ready()
            work = (
                self.policies[k].finish_batch(sight, own, self._memories[k]) for k, own in cells
            )
            for (k, _), found in zip(cells, run_sync(together(work)), strict=True):
                mine = {cell: (k, decision.notes) for cell, decision in found.items()}
                self.notes = {**self.notes, **mine}


def _own(policy: Policy, name: str) -> bool:
    """Return whether a policy does something of its own there, alone or in a batch."""
    kind = type(policy)
    return any(getattr(kind, form) is not getattr(Policy, form) for form in (name, f"{name}_batch"))
