"""Messages: who hears them, and what a seat is shown of them."""

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
    """The audience and the messages of a talk around a game."""

    game: Rulebook
    talk: Talk

    def hearers(self, state: TalkState, speaker: Array) -> PerPlayer:
        """Return the seats that hear one speaker at each table, bool ``(players, *batch)``."""
        listeners = self.game.alive(state.game) & (everybody(self.game, state) != speaker)
        if self.talk.audience == "all":
            return listeners
        if self._reach is not None:
            return listeners & np.moveaxis(self._reach[speaker], -1, 0)
        return listeners & (self._squares(state, speaker) <= math.floor(self.talk.radius**2))

    @cached_property
    def _reach(self) -> Array | None:
        return self.talk.reach(self.game.players)

    def _squares(self, state: TalkState, seat: Array) -> PerPlayer:
        positions = self.game.positions(state.game)
        assert positions is not None, "checked at the start"
        return np.asarray(((positions - at(positions, np.asarray(seat))) ** 2).sum(axis=1))

    def symbols(
        self, state: TalkState, actions: Array, speaking: Array, audiences: Heard
    ) -> Spoken:
        """Return the symbols said now, int64 ``(players, *batch)``, and changes of the state.

        `speaking` is bool ``(players, *batch)``; an illegal symbol is silence. `audiences`: by
        speaker.
        """
        legal = speaking & (actions >= 0) & (actions <= self.talk.alphabet)
        symbols, hearers = np.where(legal, actions, 0), state.hearers
        for speaker, audience in audiences:
            is_speaker = (everybody(self.game, state) == speaker) & speaking
            hearers = np.where(is_speaker[:, None], audience, hearers)
        return symbols, {"symbols": np.where(speaking, symbols, state.symbols), "hearers": hearers}

    def words(self, state: TalkState, actions: Array, speaking: Array, audiences: Heard) -> Spoken:
        """Return the texts said now, objects ``(players, *batch)``, and changes of the state."""
        texts, record = np.full(speaking.shape, "", object), state.said.copy()
        for table in zip(*np.nonzero(speaking.any(axis=0)), strict=True) if record.ndim else [()]:
            for speaker, audience in audiences:
                seat = int(speaker[table])
                text = actions[(seat, *table)]
                if seat < 0 or not isinstance(text, str):
                    continue
                texts[(seat, *table)] = text = self.talk.question.read(text)
                hearers = tuple(np.flatnonzero(audience[(..., *table)]).tolist())
                when = int(state.round[table]) + 1, int(state.turn[table])
                message = Utterance(*when, seat, text, hearers)
                record[table] += (message,) if text else ()
        return texts, {"said": record}

    def last_heard(self, state: TalkState) -> Array:
        """Return each other seat's last symbol heard, -1: none, ``(others, listeners, *batch)``."""
        is_heard = state.hearers & (state.talked == state.round)
        symbols = np.where(is_heard, state.symbols[:, None], -1)
        n = self.game.players
        others = np.arange(n - 1)[:, None] + (np.arange(n - 1)[:, None] >= np.arange(n))
        return symbols[others, np.arange(n)]

    def messages(self, state: TalkState) -> list[Utterance]:
        """Return the messages of one table as they were said; of symbols, this round's last."""
        if self.talk.alphabet is None:
            return [*state.said.item()]
        spoken = np.flatnonzero(state.symbols * (state.talked == state.round)).tolist()
        hearers = [tuple(np.flatnonzero(state.hearers[s]).tolist()) for s in spoken]
        texts, round_ = [str(state.symbols[s]) for s in spoken], int(state.round) + 1
        return [Utterance(round_, 0, *line) for line in zip(spoken, texts, hearers, strict=True)]

    def heard(self, state: TalkState, seat: int) -> list[Utterance]:
        """Return the messages that a seat of one table is shown, in the order of `heard_order`."""
        talk, round_ = self.talk, int(state.round) + 1
        shows, first = talk.own == "shown", 0 if talk.memory == "all" else round_ - int(talk.memory)
        messages = [m for m in self.messages(state) if m.round >= first]
        messages = [m for m in messages if seat in m.hearers or (shows and m.seat == seat)]
        if talk.heard_order == "nearest":
            distances = self._squares(state, np.asarray(seat)).tolist()
            messages.sort(key=lambda message: distances[message.seat])
        return messages
