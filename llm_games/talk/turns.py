"""The order of speakers: the state of a talk, and how it passes from speaker to speaker."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from llm_games.arrays import Array, any_true, at, tall
from llm_games.noise import Noise
from llm_games.rulebook import PerPlayer, PerTable, Rulebook, State
from llm_games.talk.parameters import Talk


class Utterance(NamedTuple):
    """A message: its round and turn (from 1), speaker, text, and the seats that heard it."""

    round: int
    turn: int
    seat: int
    text: str
    hearers: tuple[int, ...]


@dataclass(frozen=True)
class TalkState(State):
    """A game's state, which talk never touches (`round`, `over` and `void` too), and the talk's."""

    game: Any
    turn: PerTable  # of the talk that goes on, from 1; 0: it is the game's own move
    position: PerTable  # whose turn it is in `order`
    order: PerPlayer  # seats in the order in which they speak in this turn, -1 after the last
    talked: PerTable  # the last round with a talk, counted from 0; -1: none
    key: Array  # what orders are drawn from, or those of each round and turn, see `orders`
    mute: PerPlayer  # who has no words and is never stopped for
    finished: PerPlayer  # who has nothing more to do
    symbols: Array  # with an alphabet, everybody's last symbol of the round `talked`, 0 for silence
    hearers: Array  # with an alphabet, who heard it, bool ``(speakers, listeners, *batch)``
    said: Array
    """messages in words that somebody may still be shown, a tuple of `Said` for each table"""

    def table(self, index: Any) -> Self:
        return super().table(index).replace(game=self.game.table(index))

    def merged(self, other: Self, mask: PerTable) -> Self:
        return super().merged(other, mask).replace(game=self.game.merged(other.game, mask))

    def placed(self, indexes: Array, part: Self, original: Self | None = None) -> Self:
        game = self.game.placed(indexes, part.game, None if original is None else original.game)
        return super().placed(indexes, part, original).replace(game=game)


def everybody(game: Rulebook, state: TalkState) -> PerPlayer:
    return tall(np.arange(game.players), state.round.shape)


@dataclass(frozen=True)
class Turns:
    """The turns of a talk around a game: speakers, their order, and what follows."""

    game: Rulebook
    talk: Talk

    def speaking(self, state: TalkState) -> PerPlayer:
        """Return the seats that speak in each turn of a talk now, bool ``(players, *batch)``."""
        may = tall(self._may_speak, state.round.shape)
        speaks = self.game.voices(state.game) & ~state.mute & may
        if self.talk.speakers == "deciders":
            speaks = speaks & self.game.speakers(state.game)
        return speaks

    @cached_property
    def _may_speak(self) -> Array:
        return self.talk.may_speak(self.game.players)

    def begun(self, state: TalkState) -> TalkState:
        """Begin the talk that precedes the game's move, where one is due."""
        due = self.game.talks(state.game) & ~state.over & (state.talked != state.round)
        due = due & (self.talk.turns_of(state.round) > 0) & (state.turn == 0)
        if not any_true(due):
            return state
        speaks = self.speaking(state)  # if no seat does, the round's talk is over
        begun = state.replace(
            turn=np.where(due, speaks.any(axis=0), state.turn),
            position=np.where(due, 0, state.position),
            talked=np.where(due, state.round, state.talked),
            symbols=state.symbols * ~due,
            hearers=state.hearers & ~due,
            said=self._remembered(state, due),
        )
        order = self._order(begun, speaks)
        return begun.replace(order=np.where(due, order, state.order))

    def _remembered(self, state: TalkState, due: PerTable) -> Array:
        if self.talk.memory == "all" or self.talk.alphabet is not None:
            return state.said
        messages = state.said.copy()
        for table in zip(*np.nonzero(due), strict=True) if messages.ndim else [()] * bool(due):
            first = int(state.round[table]) + 1 - int(self.talk.memory)
            messages[table] = tuple(line for line in messages[table] if line.round >= first)
        return messages

    def _order(self, state: TalkState, speaks: PerPlayer) -> PerPlayer:
        order, batch = self.talk.order, state.round.shape
        if order == "shuffled" or order == "shuffled_per_round":
            drawn = self._drawn(state)
        else:
            seats = np.arange(self.game.players) if order == "fixed" else np.array(order)
            drawn = np.broadcast_to(tall(seats, batch), (self.game.players, *batch))
        last = ~np.take_along_axis(speaks, drawn, 0)
        drawn = np.where(last, -1, drawn)
        return np.take_along_axis(drawn, last.argsort(axis=0, kind="stable"), 0)

    def _drawn(self, state: TalkState) -> PerPlayer:
        """Return all seats in the order of this turn, as it was given or from the key."""
        if state.key.ndim > state.round.ndim:
            rows = at(state.key, state.round % len(state.key))
            return at(rows, np.maximum(state.turn - 1, 0) % len(rows))
        noise = Noise.keyed(state.key).of(state.round)
        noise = noise.of(state.turn) if self.talk.order == "shuffled" else noise
        return noise.order(self.game.players)

    def speakers_now(self, state: TalkState) -> PerPlayer:
        talking = state.turn > 0
        if self.talk.mode == "together":
            return self.speaking(state) & talking
        return (everybody(self.game, state) == at(state.order, state.position)) & talking

    def gone_on(self, state: TalkState) -> TalkState:
        """Pass on to the next speaker, to the next turn, or to the game's move, after a speech."""
        talking = state.turn > 0
        index = state.position + talking
        ended = talking
        if self.talk.mode != "together":
            ended = talking & (index == (state.order >= 0).sum(axis=0))
        if not any_true(ended):
            return state.replace(position=index)
        turn = state.turn + ended
        turn = turn * (turn <= self.talk.turns_of(state.round))
        next_state = state.replace(position=np.where(ended, 0, index), turn=turn)
        order = self._order(next_state, self.speaking(next_state))
        return next_state.replace(order=np.where(ended & (turn > 0), order, state.order))
