"""Estimates of the tokens of a call, before it is made."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from llm_games.wrappers.clients.base import Completion, Request

FIRST_RATE = 0.5  # tokens a byte of a prompt until the server has counted: twice the usual
OPEN_END = 4096  # tokens of a reply to a request that sets no limit
LONGEST_REPLY = 65_536  # tokens that a reply may have of which nothing is known


class Estimator:
    """Upper estimates of one model's tokens; they follow what the server counts."""

    def __init__(self) -> None:
        self._rate, self._longest = FIRST_RATE, OPEN_END

    def tokens_in(self, request: Request) -> int:
        """Return about how many tokens the prompt has at most."""
        return ceil(self._rate * _size(request))

    def tokens_out(self, request: Request) -> int:
        """Return the largest number of tokens of the reply."""
        return request.sampling.max_tokens or self._longest

    def learn(self, request: Request, completion: Completion) -> None:
        """Take the server's counts into account; a server that counts nothing teaches nothing."""
        if completion.tokens_in:
            rate = 1.1 * completion.tokens_in / _size(request)
            self._rate = max(rate, 0.95 * self._rate)
        if request.sampling.max_tokens is None or request.guarded:
            self._longest = max(self._longest, completion.tokens_out)


@dataclass
class Lengths:
    """Lengths of a model's replies so far; a run keeps them in its file."""

    seen: int = 0
    longest: int = 0
    kept: bool = True  # false: a reply was longer than the limit that was sent
    sent: bool = True  # false: the server takes no limit
    most: int = LONGEST_REPLY  # tokens of a limit that the server takes
    counted: bool = True  # false: the server does not say how many tokens a reply has

    @property
    def limited(self) -> bool:
        """The server keeps to a limit that is sent, as far as is known."""
        return self.kept and self.sent

    @property
    def feared(self) -> int:
        """Tokens that the next reply may have, whatever limit is sent."""
        return 2 * self.longest if self.seen else LONGEST_REPLY


def tokens_of(text: str) -> int:
    """Return about how many tokens a text has at most, whatever the model."""
    return ceil(FIRST_RATE * len(text.encode(errors="replace")))


def _size(request: Request) -> int:
    """Return the bytes of a prompt, with room for the marks of a chat template and a schema."""
    texts = request.messages.size + 16 * len(request.messages)
    tools = len(str(request.tools)) if request.tools else 0
    return texts + tools + (64 if request.question is None else 256)
