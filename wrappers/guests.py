"""Seats that somebody outside plays by a link: a person in a browser, or a program.

All state is here, and no page holds any: ``lobby``, ``waiting``, ``asked`` (a turn, with the time
that is left), ``over``. A run asks from its event loop; links are read and answered by any thread.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from time import monotonic, perf_counter
from typing import Any, NamedTuple

from llm_games.errors import LLMGamesError
from llm_games.questions import LONGEST_SPEECH, Question, Shares, Speech
from llm_games.replies import Reply, read_reply
from llm_games.rulebook import Rulebook
from llm_games.view import View, Who
from llm_games.wrappers.clients.base import Client, Completion, Request
from llm_games.wrappers.dialogue import ChatMemory
from llm_games.wrappers.human import read_answer
from llm_games.wrappers.llm_policy import Cut, LLMPolicy
from llm_games.wrappers.policy import Attempt
from llm_games.wrappers.seats import Step
from llm_games.wrappers.tools import Bench

KINDS = {"human": "a person in a browser", "program": "a program, by JSON, MCP or OpenEnv"}
LONGEST_PSEUDONYM = 40  # characters
PLAYED = "that turn is over: no answer came in time, and the declared move was played"


class NotNow(LLMGamesError):
    """An answer to a turn that is not asked now."""


class TooLate(NotNow):
    """An answer to a turn whose time is up."""


class NotTaken(LLMGamesError):
    """An answer that is not legal, or a name that cannot be taken; the next try is free."""


class LobbyEmpty(LLMGamesError):
    """Not everybody has joined in time."""


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
            shown |= {"late": [taken for _, taken in self._answered.values()][-1:] == [None]}
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


class Guests:
    """The client of a run's guests: each is asked by its link.

    `limit`: seconds for an answer, then the declared move is played; None: no limit. `wanted`: how
    many are waited for, by default all. `seat_of` gives the name of a caller's seat; the run sets
    it.
    """

    name = "guests"

    def __init__(
        self, seats: Sequence[GuestSeat], limit: float | None = None, wanted: int | None = None
    ) -> None:
        self.seats = {seat.name: seat for seat in seats}
        self.by_token = {seat.token: seat for seat in seats}
        self.limit, self.wanted = limit, len(seats) if wanted is None else wanted
        self.seat_of: Callable[[Who], str] = lambda who: ""
        self._late: dict[str, Who] = {}  # by seat, the decision whose time was up last
        for seat in seats:
            seat.lobby = self.missing

    def missing(self) -> int:
        """Return how many have not joined, for the games to begin."""
        here = sum(seat.is_here or seat.has_begun for seat in self.seats.values())
        return max(0, self.wanted - here)

    async def gather(self, limit: float | None) -> list[Joined]:
        """Wait until all have joined; LobbyEmpty after so many seconds."""
        try:
            async with asyncio.timeout(limit):
                await until(lambda: not self.missing(), self.seats.values())
        except TimeoutError:
            names = ", ".join(seat.name for seat in self.seats.values() if not seat.is_here)
            fault = f"not everybody joined within {limit:g} seconds; missing: {names}"
            raise LobbyEmpty(fault) from None
        for seat in self.seats.values():
            seat.has_begun = True
            seat.ring()
        return [seat.joined for seat in self.seats.values() if seat.joined is not None]

    async def complete(self, request: Request) -> Completion:
        """Return the answer of the link's holder; a `late` one once time is up, or who has left."""
        seat, who = self.seats[self.seat_of(request.who)], request.who._replace(call=0)
        if self._late.get(seat.name) == who:  # nobody is asked twice who was away
            return Completion("", finish="late", model=seat.kind)
        turn, began = seat.ask(request, self.limit), perf_counter()
        answer = asyncio.shield(asyncio.wrap_future(turn.answer))
        try:
            text = await asyncio.wait_for(answer, self.limit)
        except TimeoutError:
            text = seat.end_turn(turn)
        seconds = perf_counter() - began
        if text is None:
            self._late[seat.name] = who
            return Completion("", finish="late", latency=seconds, model=seat.kind)
        return Completion(text, latency=seconds, model=seat.kind)

    def of(self, who: Who) -> GuestSeat | None:
        """Return the seat that a caller plays by; None: by none of these."""
        return self.seats.get(self.seat_of(who))

    def moved(self, who: Who, step: Step) -> None:
        """Let the seats of a table know what came of a step."""
        for number in range(len(step.outcome.rewards)):
            if (seat := self.of(who._replace(seat=number))) is not None:
                seat.moved(step)

    async def close(self) -> None:
        """Nothing to let go of: links outlive the games."""


class OutsidePolicy(LLMPolicy):
    """A model somewhere outside on a seat: it is asked all that a model of ours is.

    `settings` are those of `LLMPolicy`; `guests`, if any, learn what it sees and how it is read.
    """

    def __init__(self, client: Client, guests: Guests | None = None, **settings: Any) -> None:
        super().__init__(client, **settings)
        self.guests = guests

    def hear(self, view: View, memory: ChatMemory) -> ChatMemory:
        """Let the seat see what has happened."""
        if self.guests is not None and (seat := self.guests.of(view.who)) is not None:
            seat.hear(view, self._prompts(view.game).report(view, memory.notes))
        return memory

    async def _attempt(
        self, request: Request, question: Question, bench: Bench | None
    ) -> tuple[Attempt, Reply]:
        attempt, reply = await super()._attempt(request, question, bench)
        if self.guests is not None and (seat := self.guests.of(request.who)) is not None:
            seat.read(attempt)
        return attempt, reply


class GuestPolicy(OutsidePolicy):
    """A person or a program at a link: reads what a model would, is asked for moves and speeches.

    `settings` are the wording's: `prompts`, `prompt_folder`.
    """

    def __init__(self, client: Client, guests: Guests | None = None, **settings: Any) -> None:
        super().__init__(client, guests, **{"memory": "full", "notices": True, **settings})

    def attempts_in(self, game: Rulebook) -> int:
        """Return 1: a link takes legal answers only."""
        return 1

    async def _asides(self, view: View, memory: ChatMemory, calls: int) -> Cut:
        """Ask for moves and speeches alone."""
        return Cut(memory)


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
