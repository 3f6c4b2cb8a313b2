"""The plain form of recordings, which a script can write of any game that is played here.

A JSON object a game says who sat where, what each did, what chance decided, and what was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from llm_games.benchmarks.record.checked_table import Settings, Text, checked
from llm_games.benchmarks.run.imports import Recording
from llm_games.errors import LLMGamesError
from llm_games.wrappers.imported import BadRecording


class PlainRecording(Settings):
    """A file's keys, lists in seat order. A move is what a legal reply would have under its key."""

    game: Text  # its name here
    params: dict[str, Any] = Field(default_factory=dict)
    players: list[Text]
    moves: list[list[Any]]
    words: list[list[str]] | None = None  # beside each move, "" where nothing was written
    given: dict[str, Any] = Field(default_factory=dict)  # chance, by name
    payoffs: list[float] | None = None  # of the whole game, held against the rules


def read(path: Path, data: Mapping[str, Any]) -> Recording:
    """Read a recording; BadRecording: something is missing, or lists are not of one length."""
    try:
        plain = checked(PlainRecording, data, path)
    except LLMGamesError as error:
        raise BadRecording(f"{error}; mend the file, or leave it out") from None
    seats = len(plain.players)
    texts = plain.words or [[""] * len(moves) for moves in plain.moves]
    if [*map(len, texts)] != [*map(len, plain.moves)] or len(plain.moves) != seats:
        raise BadRecording(
            f"{path}: {seats} players need as many lists of moves, and each of words one text a "
            f"move; moves have the lengths {[*map(len, plain.moves)]}, words {[*map(len, texts)]}"
        )
    if plain.payoffs is not None and len(plain.payoffs) != seats:
        raise BadRecording(f"{path}: {seats} players have {len(plain.payoffs)} payoffs")
    return Recording(
        path,
        plain.game,
        {"players": seats} | plain.params,
        plain.players,
        plain.moves,
        words=plain.words,
        given=plain.given,
        payoffs=plain.payoffs,
    )
