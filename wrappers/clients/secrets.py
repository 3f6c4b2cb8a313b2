"""Keys that never show: not in a repr, an error, a log or a completion."""

from __future__ import annotations

import base64
import os
import re
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

from llm_games.wrappers.clients.base import ClientError

MASK = "[key]"
LEAST = 8  # characters of what no text holds by chance
SECRETIVE = re.compile(r"auth|key|token|secret|cookie|password", re.I)
"""How headers are called whose values never show."""
_WRITTEN = re.compile(r"[%&\\]")  # what something stands in that is not written as it is


@lru_cache(64)
def _written(value: str) -> re.Pattern[str]:
    """Return a pattern of all ways to write a secret in JSON, addresses and HTML, in any case."""
    each = (
        rf"(?:\\{{0,8}}(?:{re.escape(c)}|u{ord(c):04x})|%(?:25)*{ord(c):02x}"
        rf"|&\#(?:0*{ord(c)}|x0*{ord(c):x});" + (rf"|{escape(c)})" if escape(c) != c else ")")
        for c in value
    )
    return re.compile("".join(each), re.I)


@lru_cache(64)
def _encoded(value: str) -> tuple[str, ...]:
    """Return the texts that every base64 of a text with the secret contains."""
    encodings = []
    for offset in range(3):
        whole = base64.b64encode(bytes(offset) + value.encode()).decode()
        encodings.append(whole[(offset * 8 + 5) // 6 : (offset + len(value)) * 8 // 6])
    return (*encodings, *(form.translate({43: 45, 47: 95}) for form in encodings))


@lru_cache(64)
def _parts(value: str) -> tuple[str, ...]:
    """Return the secret, and the password in it if it is that of a name and one in base64."""
    try:
        _, _, password = base64.b64decode(value, validate=True).decode("ascii").partition(":")
    except ValueError:
        password = ""
    return (value, password) if len(password) >= LEAST else (value,)


class Secret:
    """A string that only `reveal` shows; pickled is where it stands, if that is not in a program.

    ClientErrors say why one cannot be had or be a key: one word of what headers take.
    """

    __slots__ = ("_again", "_value", "source")

    def __init__(self, value: str, source: str = "api_key") -> None:
        value = value.strip()
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            fault = "empty" if not value else "not one word of plain characters"
            raise ClientError(f"the key in {source} is {fault}: put just the key there")
        self._value, self.source = value, source
        self._again: tuple[Any, tuple[Any, ...]] | None = None

    @classmethod
    def from_file(cls, path: str | Path) -> Secret:
        """Read a key from a file that holds nothing else."""
        path = Path(path).expanduser()
        try:
            secret = cls(path.read_text("utf-8"), f"the file {path}")
        except UnicodeDecodeError:
            raise ClientError(f"the key file {path} is not a text file") from None
        except OSError as error:
            raise ClientError(f"cannot read the key file {path}: {error.strerror}") from None
        secret._again = cls.from_file, (path,)
        return secret

    @classmethod
    def from_environment(cls, name: str) -> Secret:
        """Read a key from an environment variable."""
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise ClientError(
                "api_key_env and env: take the name of an environment variable, such as "
                "OPENAI_API_KEY; what stands there is none, and is not shown lest it is the key"
            )
        if not os.environ.get(name):
            fault = f"no key: set the environment variable {name} (export {name}=…), or put the key"
            raise ClientError(f"{fault} into a file and give api_key_file")
        secret = cls(os.environ[name], f"the environment variable {name}")
        secret._again = cls.from_environment, (name,)
        return secret

    def reveal(self) -> str:
        """Return the string itself, for the call that needs it."""
        return self._value

    @property
    def plain(self) -> bool:
        """Test whether a text may hold it by chance, as a word for a server that wants any key."""
        return len(self._value) < LEAST or (self._value.isalpha() and len(self._value) < 16)

    def redact(self, text: str) -> str:
        """Mask the secret wherever a text holds it, as it is or as something writes it."""
        text = text.replace(self._value, MASK)
        if self.plain:
            return text
        for value in _parts(self._value):
            if value.lower() in text.lower() or _WRITTEN.search(text):
                text = _written(value).sub(MASK, text)
            for form in _encoded(value):
                text = text.replace(form, MASK)
            cut = next((n for n in range(len(value), LEAST, -1) if text.endswith(value[:n])), 0)
            text = text[:-cut] + MASK if cut else text
        return text

    def __repr__(self) -> str:
        return f"Secret({self.source})"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        if self._again is None:
            way = "keep it in an environment variable or a file, or build the client anew where"
            raise TypeError(f"a secret is not pickled: {way} it is needed")
        return self._again
