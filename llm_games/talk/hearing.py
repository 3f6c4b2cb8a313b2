"""Who hears what: messages, and what a seat is shown of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from llm_games.arrays import Array, at
from llm_games.rulebook import PerPlayer, Rulebook
from llm_games.talk.parameters import Talk
from llm_games.talk.turns import TalkState, Utterance, everybody

Heard = list[tuple[Array, PerPlayer]]
"""Speakers, one of each table ``(*batch)``, -1 for none, and who hears them."""
Spoken = tuple[Array, dict[str, Array]]
"""What is said now, by seat, and what changes in the state by it."""


@dataclass(frozen=True)
class Hearing:
    """What is said in a talk around a game, and who hears it."""

    game: Rulebook
    talk: Talk

    def hearers(self, state: TalkState, speaker: Array) -> PerPlayer:
        """Return who hears one speaker at each table, bool ``(players, *batch)``."""
        near = self.game.alive(state.game) & (everybody(self.game, state) != speaker)
        if self.talk.audience == "all":
            return near
        if self._reach is not None:
            return near & np.moveaxis(self._reach[speaker], -1, 0)
        away = self._squares(state, speaker)
        return near & (away <= math.floor(self.talk.radius**2))

    @cached_property
    def _reach(self) -> Array | None:
        return self.talk.reach(self.game.players)

    def _squares(self, state: TalkState, seat: Array) -> PerPlayer:
        """Return everybody's squared distance to one seat of each table."""
        positions = self.game.positions(state.game)
        assert positions is not None, "checked at the start"
        squares: PerPlayer = ((positions - at(positions, np.asarray(seat))) ** 2).sum(axis=1)
        return squares

    def symbols(self, state: TalkState, actions: Array, now: Array, heard: Heard) -> Spoken:
        """Return the symbols that are said now, and what changes by them."""
        legal = now & (actions >= 0) & (actions <= self.talk.alphabet)
        said, hearers = np.where(legal, actions, 0), state.hearers
        for speaker, row in heard:
            own = (everybody(self.game, state) == speaker) & now
            hearers = np.where(own[:, None], row, hearers)
        return said, {"symbols": np.where(now, said, state.symbols), "hearers": hearers}

    def words(self, state: TalkState, actions: Array, now: Array, heard: Heard) -> Spoken:
        """Return the texts that are said now, and what changes by them."""
        said, record = np.full(now.shape, "", object), state.said.copy()
        for table in zip(*np.nonzero(now.any(axis=0)), strict=True) if record.ndim else [()]:
            for speaker, row in heard:
                seat = int(speaker[table])
                text = actions[(seat, *table)]
                if seat < 0 or not isinstance(text, str):
                    continue
                said[(seat, *table)] = text = self.talk.question.read(text)
                hearers = tuple(np.flatnonzero(row[(..., *table)]).tolist())
                when = int(state.round[table]) + 1, int(state.turn[table])
                message = Utterance(*when, seat, text, hearers)
                record[table] += (message,) if text else ()
        return said, {"said": record}

    def last_heard(self, state: TalkState) -> Array:
        """Return each other seat's last symbol as it was heard, -1 for none.

        ``(others, listeners, *batch)``: the other seats in order.
        """
        heard = state.hearers & (state.talked == state.round)
        symbols = np.where(heard, state.symbols[:, None], -1)
        n = self.game.players
        others = np.arange(n - 1)[:, None] + (np.arange(n - 1)[:, None] >= np.arange(n))
        return symbols[others, np.arange(n)]

    def messages(self, state: TalkState) -> list[Utterance]:
        """Return what is kept of the talk of one table, as it was said.

        With an alphabet that is everybody's last symbol of this round.
        """
        if self.talk.alphabet is None:
            return [*state.said.item()]
        spoken = np.flatnonzero(state.symbols * (state.talked == state.round)).tolist()
        hearers = [tuple(np.flatnonzero(state.hearers[s]).tolist()) for s in spoken]
        texts, now = [str(state.symbols[s]) for s in spoken], int(state.round) + 1
        return [Utterance(now, 0, *own) for own in zip(spoken, texts, hearers, strict=True)]

    def heard(self, state: TalkState, seat: int) -> list[Utterance]:
        """Return what a seat of one table is shown of the talk, in the order of `heard_order`.

        With an alphabet that is everybody's last symbol of this round.
        """
        talk, now = self.talk, int(state.round) + 1
        own, least = talk.own == "shown", 0 if talk.memory == "all" else now - int(talk.memory)
        said = [
            one
            for one in self.messages(state)
            if (seat in one.hearers or (own and one.seat == seat)) and one.round >= least
        ]
        if talk.heard_order == "nearest":
            away = self._squares(state, np.asarray(seat)).tolist()
            said.sort(key=lambda one: away[one.seat])
        return said
