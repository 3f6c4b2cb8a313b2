"""Situations that a model has met, and its answers: no request is worded twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from llm_games.rulebook import Array, Rulebook, actions_of
from llm_games.view import Sight, Who
from llm_games.wrappers.clients.sampled import ReplySampler
from llm_games.wrappers.dialogue import ChatMemory, Dialogue
from llm_games.wrappers.policy import Cell, Decided, Decision, Policy, assembled, cells_of, views_of

MOST = 100_000  # situations in mind; beyond it one starts anew from the file of replies


@dataclass(frozen=True)
class Common(ChatMemory):
    """A memory shared by seats of one dialogue; `hashes` of situations: by seat, knowledge."""

    hashes: dict[tuple[int, bytes], bytes] = field(default_factory=dict, compare=False, repr=False)


class Wanted(NamedTuple):
    """The reply that a cell draws: its situation, its sample, and whether it is asked anew."""

    situation: bytes
    sample: int
    anew: bool


class KnownSituation(NamedTuple):
    """A decision and the memory after it; `near`: from a reply to another situation."""

    decision: Decision
    next_memory: Common
    near: bool


class Situations:
    """The situations of one game that a player with samples of replies has met."""

    def __init__(self, game: Rulebook, cache: ReplySampler) -> None:
        self.game, self.cache = game, cache
        self._forget()

    def _forget(self) -> None:
        self._places: dict[Dialogue, Common] = {}
        self._starts: dict[int, Common] = {}
        self._answers: dict[tuple[bytes, int], KnownSituation] = {}
        self._count = 0

    def start(self, player: Any, mask: Array, memory: Mapping[Cell, Common]) -> dict[Cell, Common]:
        cells, starts = cells_of(mask), self._starts  # of copies in several threads
        for seat in {seat for seat, _ in cells} - {*starts}:
            starts[seat] = self._shared_memory(player.start(self.game, seat, 0))
        return {**memory, **{cell: starts[cell[0]] for cell in cells}}

    async def decide(
        self, player: Any, sight: Sight, mask: Array, memory: Mapping[Cell, Common]
    ) -> tuple[Decided, dict[Cell, Common]]:
        """Decide as `Policy.decide_batch` does; what is known costs no words and no reading."""
        rest, outcomes = self._draws(player, sight, mask, memory), dict[Cell, KnownSituation]()
        for alike in (True, False):  # of those who draw the same, one asks first
            asking = dict[Any, Cell]()
            for cell, draw in rest.items():
                outcome = None if draw.anew else self._stored(draw)
                if outcome is None:
                    asking.setdefault(draw if alike else cell, cell)
                else:
                    outcomes[cell] = outcome
            if asking:
                asking_draws = {cell: rest[cell] for cell in asking.values()}
                outcomes |= await self._ask(player, sight, asking_draws, memory, mask.shape)
            rest = {c: draw._replace(anew=False) for c, draw in rest.items() if c not in outcomes}
        replies = {cell: outcome.decision for cell, outcome in outcomes.items()}
        memories = {cell: outcome.next_memory for cell, outcome in outcomes.items()}
        return Decided(self._actions(sight, mask, replies), replies), {**memory, **memories}

    def _draws(
        self, player: Any, sight: Sight, mask: Array, memory: Mapping[Cell, Common]
    ) -> dict[Cell, Wanted]:
        """Return the draws of these cells; new situations are put into words."""
        cells, situations, tables = cells_of(mask), list[bytes](), dict[int, Sight]()
        for cell, row in zip(cells, knowledge(sight, mask), strict=True):
            (seat, table), common = cell, memory[cell]
            if (situation := common.hashes.get((seat, row))) is None:
                if table not in tables:
                    tables[table] = sight.table(table)
                situation = self.cache.situation(player.request(tables[table].view(seat), common))
                common.hashes[seat, row], self._count = situation, self._count + 1
            situations.append(situation)
        callers = _callers(sight.who, self.game.name, mask.shape[1])
        asked = [callers[table]._replace(seat=seat) for seat, table in cells]
        ranks = [self.cache.file.rank(*pair) for pair in zip(situations, asked, strict=True)]
        seeds, steps = np.array([(who.seed, who.step) for who in asked], np.uint64).T
        drawn = seeds, steps, np.array(ranks, np.uint64), player.sampling
        samples, anew = self.cache.draws(*drawn)
        draws = map(Wanted, situations, samples.tolist(), anew.tolist())
        return dict(zip(cells, draws, strict=True))

    def _stored(self, draw: Wanted) -> KnownSituation | None:
        """Return the stored outcome of a draw, and count it."""
        outcome = self._answers.get(draw[:2])
        if outcome is None or (outcome.near and not self.cache.ended):
            return None
        count = "near" if outcome.near else "hits"
        setattr(self.cache, count, getattr(self.cache, count) + len(outcome.decision.attempts))
        return outcome

    async def _ask(
        self,
        player: Any,
        sight: Sight,
        draws: Mapping[Cell, Wanted],
        memory: Mapping[Cell, Common],
        shape: tuple[int, ...],
    ) -> dict[Cell, KnownSituation]:
        """Let these cells decide by themselves, and learn from it."""
        mask, near = np.zeros(shape, bool), self.cache.near
        mask[tuple(np.array([*draws]).T)] = True
        decided, memories = await Policy.decide_batch(player, sight, mask, memory)
        if self._count + len(self._answers) > MOST:
            self._forget()
        outcomes = {}
        for cell, draw in draws.items():
            decision, common = decided.replies[cell], self._shared_memory(memories[cell])
            is_stored = self.cache.keeps(draw.situation, draw.sample)
            is_stored &= len(decision.attempts) == 1 or near == self.cache.near
            outcomes[cell] = outcome = KnownSituation(decision, common, not is_stored)
            whole = all(a.finish == "stop" and a.text for a in decision.attempts)
            if whole and not decision.notes and (is_stored or self.cache.ended):
                self._answers[draw[:2]] = outcome
        return outcomes

    def _shared_memory(self, memory: ChatMemory) -> Common:
        new = Common(memory.seed, memory.dialogue, memory.decisions, memory.rate)
        return self._places.setdefault(memory.dialogue, new)

    def _actions(self, sight: Sight, mask: Array, replies: Mapping[Cell, Decision]) -> Array:
        moves = {cell: decision.action for cell, decision in replies.items()}
        if type(self.game).assemble is not Rulebook.assemble:
            return assembled(mask, views_of(sight, mask), moves)
        actions = np.zeros(mask.shape, np.int64)
        actions[np.nonzero(mask)] = actions_of([moves[cell] for cell in cells_of(mask)])
        return actions


def knowledge(sight: Sight, mask: Array) -> list[bytes]:
    """Return by cell the seat's exact knowledge and legal moves as bytes."""
    game, (seats, tables) = sight.game, np.nonzero(mask)

    def cell_values(values: Array) -> Array:
        """Take the values of cells, of what broadcasts to ``(..., players, tables)``."""
        return np.broadcast_to(values, (*values.shape[:-2], *mask.shape))[..., seats, tables]

    parts = []
    for index, fact in enumerate((*game.facts, *game.recalled())):
        values = sight.fact(index)
        alike = values.ndim == 1 + (fact.each is not False)
        parts.append(np.atleast_2d(values[..., tables] if alike else cell_values(values)))
    if sight.hears is not None:
        parts = [part * cell_values(sight.hears) for part in parts]
    if not game.same_limits:
        parts += [cell_values(limit)[None] for limit in sight.legal]
    rows = np.concatenate(parts, dtype=np.float64).T.tobytes()
    width = len(rows) // max(1, len(seats))
    return [rows[width * cell : width * (cell + 1)] for cell in range(len(seats))]


def _callers(seat: Who, game: str, tables: int) -> list[Who]:
    rows = (np.broadcast_to(part, tables).tolist() for part in (seat.episode, seat.step, seat.seed))
    return [Who(seat.run or game, e, step, 0, 0, seed) for e, step, seed in zip(*rows, strict=True)]
