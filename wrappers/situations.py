"""What a model was asked and has answered, by situation: nothing is put into words twice."""

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

MOST = 100_000
"""Situations that are kept in mind; beyond it one starts anew from the file of replies."""


@dataclass(frozen=True)
class Common(ChatMemory):
    """A seat's memory, one for all that remember the same; `known`: situations by what is seen."""

    known: dict[tuple[int, bytes], bytes] = field(default_factory=dict, compare=False, repr=False)


class Wanted(NamedTuple):
    """Which reply a cell draws: to which situation, which sample, and whether it is asked anew."""

    situation: bytes
    sample: int
    anew: bool


class KnownSituation(NamedTuple):
    """A decision, and the memory after it; `near`: by a reply to another situation."""

    decision: Decision
    after: Common
    near: bool


class Situations:
    """All of one game that a player with samples of replies has met."""

    def __init__(self, game: Rulebook, cache: ReplySampler) -> None:
        self.game, self.cache = game, cache
        self._forget()

    def _forget(self) -> None:
        self._places: dict[Dialogue, Common] = {}
        self._starts: dict[int, Common] = {}
        self._answers: dict[tuple[bytes, int], KnownSituation] = {}
        self._seen = 0

    def start(self, player: Any, where: Array, memory: Mapping[Cell, Common]) -> dict[Cell, Common]:
        """Return the memory of a batch in which these cells begin an episode."""
        cells, starts = cells_of(where), self._starts  # of copies in several threads
        for seat in {seat for seat, _ in cells} - {*starts}:
            starts[seat] = self._place(player.start(self.game, seat, 0))
        return {**memory, **{cell: starts[cell[0]] for cell in cells}}

    async def decide(
        self, player: Any, sight: Sight, where: Array, memory: Mapping[Cell, Common]
    ) -> tuple[Decided, dict[Cell, Common]]:
        """Decide as `Policy.decide_batch` does; what is known costs no words and no reading."""
        left, found = self._draws(player, sight, where, memory), dict[Cell, KnownSituation]()
        for alike in (True, False):  # of those who draw the same, one asks first
            asking = dict[Any, Cell]()
            for cell, draw in left.items():
                known = None if draw.anew else self._known(draw)
                if known is None:
                    asking.setdefault(draw if alike else cell, cell)
                else:
                    found[cell] = known
            if asking:
                some = {cell: left[cell] for cell in asking.values()}
                found |= await self._ask(player, sight, some, memory, where.shape)
            left = {c: draw._replace(anew=False) for c, draw in left.items() if c not in found}
        replies = {cell: known.decision for cell, known in found.items()}
        after = {cell: known.after for cell, known in found.items()}
        return Decided(self._actions(sight, where, replies), replies), {**memory, **after}

    def _draws(
        self, player: Any, sight: Sight, where: Array, memory: Mapping[Cell, Common]
    ) -> dict[Cell, Wanted]:
        """Return what these cells draw; those who see something new put it into words."""
        cells, situations, tables = cells_of(where), list[bytes](), dict[int, Sight]()
        for cell, row in zip(cells, knowledge(sight, where), strict=True):
            (seat, table), place = cell, memory[cell]
            if (situation := place.known.get((seat, row))) is None:
                if table not in tables:
                    tables[table] = sight.table(table)
                situation = self.cache.situation(player.request(tables[table].view(seat), place))
                place.known[seat, row], self._seen = situation, self._seen + 1
            situations.append(situation)
        whos = _whos(sight.who, self.game.name, where.shape[1])
        asked = [whos[table]._replace(seat=seat) for seat, table in cells]
        ranks = [self.cache.file.rank(*one) for one in zip(situations, asked, strict=True)]
        seeds, steps = np.array([(who.seed, who.step) for who in asked], np.uint64).T
        drawn = seeds, steps, np.array(ranks, np.uint64), player.sampling
        samples, anew = self.cache.draws(*drawn)
        draws = map(Wanted, situations, samples.tolist(), anew.tolist())
        return dict(zip(cells, draws, strict=True))

    def _known(self, draw: Wanted) -> KnownSituation | None:
        """Return what is known of a draw, and count it."""
        known = self._answers.get(draw[:2])
        if known is None or (known.near and not self.cache.ended):
            return None
        count = "near" if known.near else "hits"
        setattr(self.cache, count, getattr(self.cache, count) + len(known.decision.attempts))
        return known

    async def _ask(
        self,
        player: Any,
        sight: Sight,
        draws: Mapping[Cell, Wanted],
        memory: Mapping[Cell, Common],
        shape: tuple[int, ...],
    ) -> dict[Cell, KnownSituation]:
        """Let these cells decide by themselves, and learn from it."""
        where, near = np.zeros(shape, bool), self.cache.near
        where[tuple(np.array([*draws]).T)] = True
        decided, after = await Policy.decide_batch(player, sight, where, memory)
        if self._seen + len(self._answers) > MOST:
            self._forget()
        found = {}
        for cell, draw in draws.items():
            decision, place = decided.replies[cell], self._place(after[cell])
            own = self.cache.keeps(draw.situation, draw.sample)
            own &= len(decision.attempts) == 1 or near == self.cache.near
            found[cell] = known = KnownSituation(decision, place, not own)
            whole = all(a.finish == "stop" and a.text for a in decision.attempts)
            if whole and not decision.notes and (own or self.cache.ended):
                self._answers[draw[:2]] = known
        return found

    def _place(self, memory: ChatMemory) -> Common:
        place = self._places.get(memory.dialogue)
        if place is None:
            place = Common(memory.seed, memory.dialogue, memory.decisions, memory.rate)
            self._places[memory.dialogue] = place
        return place

    def _actions(self, sight: Sight, where: Array, replies: Mapping[Cell, Decision]) -> Array:
        moves = {cell: decision.action for cell, decision in replies.items()}
        if type(self.game).assemble is not Rulebook.assemble:
            return assembled(where, views_of(sight, where), moves)
        actions = np.zeros(where.shape, np.int64)
        actions[np.nonzero(where)] = actions_of([moves[cell] for cell in cells_of(where)])
        return actions


def knowledge(sight: Sight, where: Array) -> list[bytes]:
    """Return by cell all that its seat knows and may do, exactly: who is alike is told the same."""
    game, (seats, tables) = sight.game, np.nonzero(where)

    def own(values: Array) -> Array:
        """Take the values of cells, of what broadcasts to ``(..., players, tables)``."""
        return np.broadcast_to(values, (*values.shape[:-2], *where.shape))[..., seats, tables]

    parts = []
    for place, fact in enumerate((*game.facts, *game.recalled())):
        values = sight.fact(place)
        alike = values.ndim == 1 + (fact.each is not False)
        parts.append(np.atleast_2d(values[..., tables] if alike else own(values)))
    if sight.hears is not None:
        parts = [part * own(sight.hears) for part in parts]
    if not game.same_limits:
        parts += [own(limit)[None] for limit in sight.legal]
    rows = np.concatenate(parts, dtype=np.float64).T.tobytes()
    width = len(rows) // max(1, len(seats))
    return [rows[width * cell : width * (cell + 1)] for cell in range(len(seats))]


def _whos(who: Who, game: str, tables: int) -> list[Who]:
    """Return who is asked at each table."""
    lists = (np.broadcast_to(part, tables).tolist() for part in (who.episode, who.step, who.seed))
    return [Who(who.run or game, e, step, 0, 0, seed) for e, step, seed in zip(*lists, strict=True)]
