"""Which move a text announces: a fixed rule, so that words can be held against what was played.

Sentences that ask, deny or suppose something announce nothing. Of the others those in which the
speaker says "I" come first; where none of these names a move, those that are not about others
alone.
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
    """Return the one move that a text announces, None if it is none or several.

    `mentioned` gives the legal moves of which a sentence speaks. With `anybody` it is the one move
    that the text speaks of, whoever is to make it.
    """
    said = [sentence for sentence in _SENTENCES.split(text) if not _OPEN.search(sentence)]
    if anybody:
        moves = {move for sentence in said for move in mentioned(sentence)}
        return moves.pop() if len(moves) == 1 else None
    own = [sentence for sentence in said if _OWN.search(sentence)]
    rest = [s for s in said if s not in own and (_ALL.search(s) or not _OTHERS.search(s))]
    for sentences in (own, rest):
        moves = {move for sentence in sentences for move in mentioned(sentence)}
        if moves:
            return moves.pop() if len(moves) == 1 else None
    return None


def numbers(sentence: str) -> Iterator[str]:
    """Yield the numbers of a sentence as they stand there, but for players and rounds."""
    return (match[0].rstrip(",_") for match in _NUMBERS.finditer(sentence))


def holds(sentence: str, word: str) -> bool:
    """Return whether a word stands in a sentence; a single letter, with its own capital."""
    if word.casefold() not in sentence.casefold():  # most are not: fast
        return False
    how = re.NOFLAG if len(word) == 1 else re.IGNORECASE
    return re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", sentence, how) is not None
