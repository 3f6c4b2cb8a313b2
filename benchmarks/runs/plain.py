"""Plain characters for an output that cannot show others, such as one in cp1252 or ASCII."""

from __future__ import annotations

import codecs
import io
import re
import unicodedata
from typing import Any

ERRORS = "llm_games.plain"
"""How a stream of text treats what it cannot encode, see `codecs.register_error`."""

_SIGNS = dict(zip("–—−‐‑×‘’“”•·⁄━─", "-----x''\"\"**/--", strict=True))
_SIGNS |= {"±": "+-", "≤": "<=", "≥": ">=", "≠": "!=", "∞": "inf", "→": "->", "€": "EUR", "ß": "ss"}
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ALIKE = re.compile("[\udc80-\udcff]+|[^\udc80-\udcff]+")  # bytes of a file's name, or text


def plain(text: str, encoding: str) -> str:
    """Return a text with fitting plain characters for those that an encoding does not have."""
    return text.encode(encoding, ERRORS).decode(encoding, "surrogateescape")


def shown(text: str) -> str:
    r"""Return a text that moves no cursor and hides nothing: control characters as ``\x1b``.

    Lines and tabs stay; marks that turn the direction of writing are controls too.
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


def speak_plainly(*streams: Any) -> None:
    """Let streams of text, where they can, replace what they cannot show, or read."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ERRORS if stream.writable() else "replace")


def _fitting(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    end = next(_ALIKE.finditer(error.object, error.start, error.end)).end()
    text = error.object[error.start : end]
    if "\udc80" <= text[0] <= "\udcff":
        return text.encode("ascii", "surrogateescape"), end
    return "".join(map(_sign, text)), end


def _sign(character: str) -> str:
    """Return ASCII for a character: a sign like it, its letter without accents, or its name."""
    letters = unicodedata.normalize("NFKD", character)
    base = "".join(_SIGNS.get(c, c) for c in letters if not unicodedata.combining(c))
    if base.isascii():
        return base
    kind, _, name = unicodedata.name(character, "").partition(" LETTER ")
    return name.lower() if kind.startswith("GREEK") and name.isalpha() else "?"


codecs.register_error(ERRORS, _fitting)
