"""A seat that somebody outside plays by a link: a person in a browser, or a program.

All state is here, and no page holds any: ``lobby``, ``waiting``, ``asked`` (a turn, with the time
that is left), ``over``. A run asks from its event loop; links are read and answered by any thread.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from time import monotonic
from typing import Any, NamedTuple

from llm_games.errors import LLMGamesError
from llm_games.questions import LONGEST_SPEECH, Question, Shares, Speech
from llm_games.replies import read_reply
from llm_games.view import View, Who
from llm_games.wrappers.clients.base import Request
from llm_games.wrappers.human import read_answer
from llm_games.wrappers.policy import Attempt
from llm_games.wrappers.seats import Step

KINDS = {"human": "a person in a browser", "program": "a program, by JSON, MCP or OpenEnv"}
LONGEST_PSEUDONYM = 40  # characters
PLAYED = "that turn is over: no answer came in time, and the declared move was played"


class NotNow(LLMGamesError):
    """An answer to a turn that is not asked now."""


class TooLate(NotNow):
    """An answer to a turn whose time is up."""


class NotTaken(LLMGamesError):
    """An answer that is not legal, or a name that cannot be taken; the next try is free."""


class Joined(NamedTuple):
    """Who took a seat: the seat's name and kind, and all that is kept of the guest."""

    seat: str
    kind: str
    pseudonym: str
    joined: str
    consent: str
    """the hash of the text that was agreed to, "" without one"""
    protocol: str
    """how: by the ``page``, ``json``, ``mcp`` or ``openenv``"""


@dataclass
class Turn:
    """A question that is put to a link; `name` is its episode, step and call."""

    name: str
    request: Request
    question: Question
    deadline: float | None
    answer: Future[str | None] = field(default_factory=Future)  # None: none came in time


class Standing(NamedTuple):
    """How a seat stands: its payoff, its last action, the last reply as read, the last view."""

    payoff: float = 0.0
    action: Any = None  #: as the game counts it
    broke: bool = False
    attempt: Attempt | None = None
    view: View | None = None


class GuestSeat:
    """One link: what it shows, and what it takes. Safe for use by several threads."""

    def __init__(
        self, name: str, kind: str, token: str, *, consent: str = "", pseudonyms: bool = False
    ) -> None:
        self.name, self.kind, self.token = name, kind, token
        self.consent = consent if kind == "human" else ""
        self.pseudonyms = pseudonyms and kind == "human"
        self.joined: Joined | None = None
        self.left = False
        self.has_begun = False  # all had joined: who leaves is not waited for any more
        self.fault: Exception | None = None  # that ended the games before their time
        self.standing = Standing()
        self.number = 0  # of changes
        self.lobby: Callable[[], int] = lambda: 0  # how many have not joined
        self._turn: Turn | None = None
        self._answered: dict[str, tuple[Question, str | None]] = {}  # None: too late
        self._chat: list[Mapping[str, str]] = []
        self._you, self._news, self._waits_for = "", "", list[str]()
        self._results: Mapping[str, Any] | None = None
        self._lock, self._bells = threading.RLock(), list[Callable[[], object]]()

    # -- what the link's holder does ----------------------------------------------------------

    def sees(self) -> dict[str, Any]:
        """Return all that the seat may see now, as JSON has it."""
        with self._lock:
            shown = {"seat": self.name, "kind": self.kind, "number": self.number}
            if self._results is not None:
                ended = {"messages": self._chat, "news": self._news, "results": self._results}
                return shown | {"state": "over"} | ended
            if self.joined is None or self.left:
                asked = {"consent": self.consent, "pseudonyms": self.pseudonyms}
                return shown | {"state": "lobby", "left": self.left} | asked
            shown |= {"pseudonym": self.joined.pseudonym, "messages": self._chat, "you": self._you}
            _, taken = next(reversed(self._answered.values()), (None, ""))
            shown |= {"late": taken is None}
            turn = self._turn
            if turn is None:
                waiting = {"missing": self.lobby(), "waits_for": self._waits_for}
                return shown | {"state": "waiting", "news": self._news} | waiting
            left = None if turn.deadline is None else max(0.0, turn.deadline - monotonic())
            rest = {"turn": turn.name, "seconds_left": left and round(left, 1)}
            return shown | {"state": "asked"} | rest | about(turn.question)

    @property
    def is_here(self) -> bool:
        """Somebody has joined, and has not left."""
        return self.joined is not None and not self.left

    def snapshot(self) -> tuple[Turn | None, Standing, bool]:
        """Return what is asked, how the seat stands, and whether all is over."""
        with self._lock:
            return self._turn, self.standing, self._results is not None

    async def wait(self, seconds: float | None, after: int = -1) -> None:
        """Wait until `number` is not that any more; -1: until a turn is asked, or all is over."""
        is_true = self._is_due if after == -1 else lambda: self.number != after
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await until(is_true, [self])

    def _is_due(self) -> bool:
        turn, _, over = self.snapshot()
        return over or (turn is not None and self.is_here)

    def leave(self) -> None:
        """Leave the seat: the declared move is played at once, until somebody joins again."""
        with self._lock:
            if self.joined is None:
                return
            self.left = True
            if self._turn is not None:
                self._close(self._turn, None)
            self._ring()

    def join(
        self, pseudonym: str = "", consent: bool = False, *, protocol: str = "json"
    ) -> dict[str, Any]:
        """Take the seat; again is fine. Raises NotTaken: a name, or consent, is missing or bad."""
        with self._lock:
            if self.left:
                self.left = False
                self._ring()
            if self.joined is None:
                pseudonym = pseudonym.strip() if self.pseudonyms else ""
                if self.pseudonyms:
                    _check_pseudonym(pseudonym)
                if self.consent and consent is not True:
                    raise NotTaken("to play, agree to the text that is shown first")
                signed = sha256(self.consent.encode()).hexdigest() if self.consent else ""
                now = datetime.now(UTC).isoformat(timespec="seconds")
                how = "page" if (self.kind, protocol) == ("human", "json") else protocol
                self.joined = Joined(self.name, self.kind, pseudonym, now, signed, how)
                self._ring()
            return self.sees()

    def act(self, turn: str, reply: Any, *, legal: bool = True) -> dict[str, Any]:
        """Answer a turn, by an object, a text as a model writes it, or the bare value.

        The same answer again is fine.

        Args:
            turn: its name.
            reply: the answer.
            legal: take legal ones alone; else all count, as a model's do.

        Raises:
            NotNow: that turn is not asked; TooLate: not any more.
            NotTaken: the reader's words on an answer that is not legal.
        """
        text = reply if isinstance(reply, str) else json.dumps(reply)
        read = _read if legal else _as_it_is
        with self._lock:
            if not self.is_here:
                raise NotNow("nobody has joined by this link: POST join first")
            if turn in self._answered:
                question, taken = self._answered[turn]
                if taken is None:
                    raise TooLate(PLAYED)
                with suppress(NotTaken):
                    if read(text, question) == taken:
                        return {"turn": turn, "taken": taken, "again": True}
                raise NotNow(f"that turn was answered with {taken}")
            if self._turn is None or self._turn.name != turn:
                asked = "nothing is asked" if self._turn is None else f"{self._turn.name} is asked"
                raise NotNow(f"turn {turn[:40]!r} is not asked now; {asked}")
            taken = read(text, self._turn.question)
            self._chat = [*self._chat, {"role": "assistant", "content": taken}]
            self._close(self._turn, taken)
            return {"turn": turn, "taken": taken, "again": False}

    def _close(self, turn: Turn, taken: str | None) -> None:
        self._answered[turn.name] = turn.question, taken
        self._turn = None
        turn.answer.set_result(taken)
        self._ring()

    # -- what the run does ---------------------------------------------------------------------

    def ask(self, request: Request, limit: float | None) -> Turn:
        """Open a turn; it is over at once if nobody is at the link."""
        assert request.question is not None
        with self._lock:
            deadline = None if limit is None else monotonic() + limit
            name = turn_name(request.who)
            self._turn = turn = Turn(name, request, request.question, deadline)
            self._chat, self._news = [dict(message) for message in request.messages], ""
            self._ring()
            if not self.is_here:
                self._close(turn, None)
            return turn

    def end_turn(self, turn: Turn) -> str | None:
        """Close a turn whose time is up, unless it was answered; return the answer."""
        with self._lock:
            if not turn.answer.done():
                self._close(turn, None)
            return turn.answer.result()

    def read(self, attempt: Attempt) -> None:
        """Take note of how an answer was read."""
        with self._lock:
            self.standing = self.standing._replace(attempt=attempt)

    def moved(self, step: Step) -> None:
        """Take note of what a step paid, and what was played in it."""
        with self._lock:
            if (view := self.standing.view) is None:  # a player inside sits here
                return
            payoff = self.standing.payoff + float(step.outcome.rewards[view.seat])
            self.standing = self.standing._replace(payoff=payoff)
            if view.seat in step.decisions:
                played = view.core.game.in_units(step.outcome.record["actions"], step.talk)
                broke = bool(step.outcome.broke[view.seat])
                self.standing = self.standing._replace(
                    action=played.tolist()[view.seat], broke=broke
                )

    def hear(self, view: View, news: str) -> None:
        """Show what has happened, whose turn it is, and the seat's name in the game."""
        names = view.game.names()
        due = [name for name, asked in zip(names, view.sight.turn, strict=True) if asked]
        with self._lock:
            self.standing = self.standing._replace(view=view)
            self._you, self._news = names[view.seat], news
            self._waits_for = [name for name in due if name != self._you]
            self._ring()

    def end(self, results: Mapping[str, Any], fault: Exception | None = None) -> None:
        """Show that all games are over, and what they came to, or why they could not go on."""
        with self._lock:
            self._turn, self._results, self.fault = None, results, fault
            self._ring()

    @contextmanager
    def ringing(self, bell: Callable[[], object]) -> Iterator[None]:
        """Call `bell` at every change, from whatever thread makes it."""
        with self._lock:
            self._bells.append(bell)
        try:
            yield
        finally:
            with self._lock:
                self._bells.remove(bell)

    def _ring(self) -> None:
        self.number += 1
        for bell in self._bells:
            bell()

    def ring(self) -> None:
        """Let everybody look again."""
        with self._lock:
            self._ring()


async def until(is_true: Callable[[], bool], seats: Iterable[GuestSeat]) -> None:
    """Wait until something is true, which is tested at every change of these seats."""
    loop, change = asyncio.get_running_loop(), asyncio.Event()
    with ExitStack() as bells:
        for seat in seats:
            bells.enter_context(seat.ringing(partial(loop.call_soon_threadsafe, change.set)))
        while not is_true():
            await change.wait()
            change.clear()


def turn_name(who: Who) -> str:
    return f"{who.episode}.{who.step}.{who.call}"


def about(question: Question) -> dict[str, Any]:
    """Return what a form, or a program, needs to know of a question."""
    shown: dict[str, Any] = {
        "key": question.key,
        "wanted": question.wanted(),
        "form": question.form(),
        "schema": question.schema(),
    }
    if isinstance(question, Shares):
        shown["sum"] = question.total
    if isinstance(question, Speech):
        shown |= {"longest": LONGEST_SPEECH, "most_words": question.most_words}
    return shown


def _as_it_is(text: str, question: Question) -> str:
    return text


def _read(text: str, question: Question) -> str:
    """Return a legal answer as it is recorded; NotTaken says what is wrong with it."""
    reply = read_answer(text, question)
    if reply.outcome != "valid":
        raise NotTaken(reply.why or f"an answer is {question.wanted()}")
    if reply.detail == "too_long":
        raise NotTaken(f"it is too long: {question.wanted()}")
    whole = read_reply(text, question)
    if whole.outcome == "valid" and whole.beside:  # with what stands beside the answer
        return text
    return question.reply(reply.action)


def _check_pseudonym(pseudonym: str) -> None:
    if not 0 < len(pseudonym) <= LONGEST_PSEUDONYM or not pseudonym.isprintable():
        raise NotTaken(f"a pseudonym has 1 to {LONGEST_PSEUDONYM} characters that can be seen")
    if re.search(r"\S@\S", pseudonym):
        raise NotTaken("a pseudonym is no e-mail address: nothing that names a person is kept")
