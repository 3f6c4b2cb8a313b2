"""Seats of recordings from elsewhere: known by the moves that were recorded, and by no others."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from llm_games.errors import BadParameter
from llm_games.questions import BadReply
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.wrappers.policy import Decision, Note, Policy


class BadRecording(BadParameter):
    """A recording that lacks something, is of an unknown form, or contradicts itself."""


class ImportedPolicy(Policy):
    """Makes recorded moves in order, read as replies are; without any it plays nothing.

    Words that were recorded beside a move become its note. BadRecording: there is no move left, or
    one that the rules do not take.
    """

    speaks = True

    def __init__(
        self, name: str, moves: Sequence[Any] | None = None, words: Sequence[str] = ()
    ) -> None:
        self.name, self.moves, self.words = f"imported:{name}", moves, words

    def start(self, game: Rulebook, seat: int, seed: int) -> int:
        return 0

    def act(self, view: View, memory: int) -> tuple[Decision, int]:
        place = f"player_{view.seat}, its move {memory + 1}"
        if self.moves is None:
            raise BadParameter(
                f"{self.name} is known by its recorded moves alone and makes no others; seat a "
                "ghost of it, made by: llm-games ghost fit RUN.db"
            )
        if memory >= len(self.moves):
            raise BadRecording(f"{place}: it has none, and the game is not over: a part is missing")
        value = self.moves[memory]
        exact = Decimal(str(value)) if isinstance(value, float) else value
        question = view.question
        assert question is not None
        try:
            move = question.read(question.mended(exact)[0])
        except BadReply as error:
            raise BadRecording(f"{place}: {error}") from None
        words = self.words[memory] if self.words else ""
        notes = (Note("words", {"text": words}),) if words else ()
        return Decision(move, notes=notes), memory + 1
