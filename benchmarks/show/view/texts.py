"""Texts of models as a page can show them: nothing unseen in them, and long ones in pieces."""

from __future__ import annotations

import re
from typing import NamedTuple

SHOWN = 20_000
"""Characters of a text that a page shows at once: a browser stands still over millions."""
MORE = 100_000
"""Characters of each further piece."""
COMBINED = 4
"""Marks on one letter that are drawn; what is above them is shown as codes."""
_MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_PILE = re.compile(f"([{_MARKS}]{{{COMBINED}}})([{_MARKS}]+)")


def visible(text: str) -> str:
    """Codes in place of what steers a display unseen: marks of direction, controls, half signs."""
    text = _UNSEEN.sub(lambda match: _code(match[0]), text.replace("\r\n", "\n"))
    return _PILE.sub(_counted, text)


def _code(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"


def _counted(match: re.Match[str]) -> str:
    """Keep the first marks; count the others."""
    shown, hidden = match.groups()
    return f"{shown}⟨{_code(hidden[0])[1:-1]} and {len(hidden) - 1} more marks⟩"


class Piece(NamedTuple):
    """The beginning of a text, made `visible`; `left` characters of it are to come after `end`."""

    text: str
    end: int
    left: int

    @property
    def cut(self) -> bool:
        return self.left > 0


def piece(text: str, begin: int = 0, limit: int = SHOWN) -> Piece:
    """At most so many characters from `begin` on, never cut between a letter and its marks."""
    begin = min(max(begin, 0), len(text))
    end = min(begin + limit, len(text))
    while begin < end < len(text) and re.match(f"[{_MARKS}]", text[end]) and end > begin + 1:
        if end < begin + limit - COMBINED:
            break
        end -= 1
    return Piece(visible(text[begin:end]), end, len(text) - end)
