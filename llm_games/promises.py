"""The fixed rule by which a text announces a move, so that words can be compared with play.

Not by sentences that ask, deny or suppose. Those with "I" come first; where none of these names a
move, those that are not about other players alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n+")
_OPEN = re.compile(
    r"\?|\b(?:not|never|no longer|cannot|neither|nor|instead of|rather than|if|unless|suppose|"
    r"would|could|might|maybe|perhaps)\b|n['’]t\b",
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(?:I|me|my|mine|I['’](?:ll|m|d|ve))\b")
_OTHERS = re.compile(
    r"\b(?:you|your|he|his|she|her|they|their|others?|player[_ ]\d+)\b", re.IGNORECASE
)
_ALL = re.compile(r"\b(?:we|us|our|let['’]?s|all|everyone|everybody|both)\b", re.IGNORECASE)
_NUMBERS = re.compile(
    r"(?<![\w.,#–-])(?<!\bplayer )(?<!\bround )(?<!\bturn )"
    r"[+-]?\$?\d[\d,_]*(?:\.\d+)?(?![\w%]|[–-]\d)",
    re.IGNORECASE,
)


def named(text: str, mentioned: Callable[[str], Iterable[Any]], anybody: bool = False) -> Any:
    """Return the one move that a text announces, None if there is none or several.

    `mentioned` yields a sentence's legal moves. With `anybody` the speaker does not matter.
    """
    statements = [sentence for sentence in _SENTENCES.split(text) if not _OPEN.search(sentence)]
    if anybody:
        moves = {move for sentence in statements for move in mentioned(sentence)}
        return moves.pop() if len(moves) == 1 else None
    mine = [sentence for sentence in statements if _OWN.search(sentence)]
    shared = [s for s in statements if s not in mine and (_ALL.search(s) or not _OTHERS.search(s))]
    for sentences in (mine, shared):
        if moves := {move for sentence in sentences for move in mentioned(sentence)}:
            return moves.pop() if len(moves) == 1 else None
    return None


def numbers(sentence: str) -> Iterator[str]:
    """Yield the numbers of a sentence as they stand there, but for players and rounds."""
    return (match[0].rstrip(",_") for match in _NUMBERS.finditer(sentence))


def holds(sentence: str, word: str) -> bool:
    """Test for a word in a sentence; only a single letter must have its own capital."""
    if word.casefold() not in sentence.casefold():  # most are not: fast
        return False
    flags = re.NOFLAG if len(word) == 1 else re.IGNORECASE
    return re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", sentence, flags) is not None
