"""All who play a run by links: the client that asks them, and the players it is a client of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from llm_games.errors import LLMGamesError
from llm_games.questions import Question
from llm_games.replies import Reply
from llm_games.rulebook import Rulebook
from llm_games.view import View, Who
from llm_games.wrappers.clients.base import Client, Completion, Request
from llm_games.wrappers.dialogue import ChatMemory
from llm_games.wrappers.guest_seat import GuestSeat, Joined, until
from llm_games.wrappers.llm_policy import Cut, LLMPolicy
from llm_games.wrappers.policy import Attempt
from llm_games.wrappers.seats import Step
from llm_games.wrappers.tools import Bench


class LobbyEmpty(LLMGamesError):
    """Not everybody has joined in time."""


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
