"""What a terminal gets: no escapes of strangers, which stand as ⟨U+001B⟩, only what it has."""

from __future__ import annotations

import codecs
import io
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

ERRORS = "llm_games.plain"
"""How a stream of text treats what it cannot encode, see `codecs.register_error`."""

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_SIGNS = dict(zip("–—−‐‑×‘’“”•·⁄━─", "-----x''\"\"**/--", strict=True))
_SIGNS |= {"±": "+-", "≤": "<=", "≥": ">=", "≠": "!=", "∞": "inf", "→": "->", "€": "EUR", "ß": "ss"}
_ALIKE = re.compile("[\udc80-\udcff]+|[^\udc80-\udcff]+")  # bytes of a file's name, or text


def plain(text: str, encoding: str) -> str:
    """Return a text with fitting plain characters for those that an encoding does not have."""
    return text.encode(encoding, ERRORS).decode(encoding, "surrogateescape")


def speak_plainly(*streams: Any) -> None:
    """Let streams of text, where they can, replace what they cannot show, or read."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ERRORS if stream.writable() else "replace")


def harmless(text: str) -> str:
    """Return a text in which controls, but for tabs and line ends, stand as codes."""
    return _STEERING.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


class Harmless:
    """A stream that writes text `harmless`; rich's terminals write to the one below themselves."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        return self.rich_proxied_file.write(harmless(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def harmless_streams() -> Iterator[None]:
    """Let what is printed steer no terminal."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, Harmless(stream)) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


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
