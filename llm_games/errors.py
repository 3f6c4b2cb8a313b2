"""Every error a user can cause: each names the value, what is allowed and the way out."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class LLMGamesError(Exception):
    """Base of all errors that this package raises on purpose."""


class UnknownName(LLMGamesError, KeyError):
    """A game, player, prompt version or option that does not exist."""

    def __str__(self) -> str:  # KeyError would print the message's repr
        return str(self.args[0])


class UnknownKeyword(UnknownName, TypeError):
    """A keyword that a constructor does not take; as Python's own of that kind, a TypeError too."""


class BadParameter(LLMGamesError, ValueError):
    """A parameter of the wrong type or outside its range."""


class WrongSeat(BadParameter):
    """A player cannot sit in a seat of a game, but may in others."""


class IllegalAction(LLMGamesError, ValueError):
    """An action of the wrong shape or type, or one the rules do not allow now."""


class NotReady(LLMGamesError, RuntimeError):
    """Something was asked of a game that was never reset or is over."""


class DiskFull(LLMGamesError, OSError):
    """No room is left to write in a folder. What was written there before is whole."""


class TrainingBroke(LLMGamesError, ArithmeticError):
    """A learner reached numbers that are not finite; names the step, and the last sound one."""


LONGEST = 200  # characters of a name that an error repeats


def unknown(kind: str, name: object, names: Iterable[str]) -> UnknownName:
    """Build the error for a name that does not exist, with the most similar existing one."""
    return UnknownName(_unknown(kind, name, names))


def unknown_keyword(kind: str, name: object, names: Iterable[str]) -> UnknownKeyword:
    """Build the same error for a keyword, which is its ``args[1]``."""
    return UnknownKeyword(_unknown(kind, name, names), name)


def _unknown(kind: str, name: object, choices: Iterable[str]) -> str:
    names, text = sorted(choices), repr(name)
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}… ({len(str(name)):,} characters)"
    near = get_close_matches(str(name)[:LONGEST], names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"there is no {kind} {text}; {hint}known: {', '.join(names)}"


def install(extra: str) -> str:
    """Return the command that adds an extra's packages to the llm-games that is there."""
    return f"pip install 'llm-games[{extra}]'"
