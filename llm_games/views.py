"""What a player sees when it has to decide: one seat's knowledge, as numbers and as words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from llm_games.questions import Action, Question
from llm_games.rulebook import Array, Rulebook


@dataclass(frozen=True)
class View:
    """What one seat knows and is asked now. Nothing in it is hidden from the seat by the rules.

    Attributes:
        game: the rules, which everybody knows.
        seat: the player's seat.
        numbers: float32 ``(*batch, columns)``, see ``game.columns()``.
        low, high: lowest and highest legal action, int64 ``(*batch)``.
        told: the same knowledge as plain values; None for a batch.
        question: what is asked; None for a batch, or if it is not this seat's move.
        decode: turns an action of the seat's Gymnasium space into one of the rules.
        masks: makes `mask` when it is asked for, which few players do; None if all are legal.
    """

    game: Rulebook
    seat: int
    numbers: Array
    low: Array
    high: Array
    told: dict[str, Any] | None = None
    question: Question | None = None
    decode: Callable[[Any], Action] | None = None
    masks: Callable[[], Array] | None = None

    @classmethod
    def of(cls, game: Rulebook, state: Any, seat: int) -> View:
        """Return a seat's view of a state; of a batch of tables, the numbers alone."""
        low, high = game.legal(state)
        told, question = None, None
        if np.ndim(state.round) == 0:
            told, question = game.told(state, seat), game.question(state, seat)
        return cls(
            game,
            seat,
            game.observe(state)[seat],
            low[seat],
            high[seat],
            told,
            question,
            partial(game.decode, state, seat),
            partial(_mask, game, state, seat) if game.masked else None,
        )

    @property
    def mask(self) -> Array | None:
        """Return the legal actions in the space's order, bool ``(*batch, actions)``, if not all."""
        return None if self.masks is None else self.masks()

    def number(self, column: str) -> Array:
        """Return one column of the numbers by name, ``(*batch)``."""
        return self.numbers[..., self.game.column_index[column]]


def _mask(game: Rulebook, state: Any, seat: int) -> Array:
    return game.mask(state)[seat]
