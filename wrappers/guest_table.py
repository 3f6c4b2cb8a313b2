"""A game that is played in the background, with links in some of its seats: TRL, OpenEnv."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from typing import Any

from llm_games.errors import BadParameter
from llm_games.rulebook import Rulebook
from llm_games.view import NOBODY, View
from llm_games.wrappers.clients.base import Chat, Request
from llm_games.wrappers.grpo_rollout import kept_whole
from llm_games.wrappers.guest_seat import GuestSeat, TooLate
from llm_games.wrappers.guests import Guests, LobbyEmpty, OutsidePolicy
from llm_games.wrappers.play import play_table
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.seats import Step

WAIT = "Others are waited for; step to wait on."
LONGEST_GAME = 1000  #: steps after which a game without a limit of its own is cut off


class GuestTable:
    """A game of one seed; its seats are taken, left and answered from any thread.

    It begins when all seats outside are taken, or after the limit: one that nobody took is played
    by the declared move until somebody does.

    Args:
        game: the rules.
        inside: those who sit in the seats that are not taken when it begins, in order.
        player: how outside is asked, settings of `LLMPolicy`; by default for one reply a decision.
        seed: of all chance; None: any.
        max_steps: after which the game is cut off; needed where it has no limit.
        limit: seconds of a turn, and for which seats are waited for; None: none.
    """

    def __init__(
        self,
        game: Rulebook,
        inside: Sequence[Policy],
        player: Mapping[str, Any],
        *,
        seed: int | None = None,
        max_steps: int | None = None,
        limit: float | None = None,
    ) -> None:
        self.game, self.inside = game, inside
        self.seed = secrets.randbelow(2**63) if seed is None else seed
        self.max_steps = max_steps or (LONGEST_GAME if game.length() is None else None)
        self.seats = [GuestSeat(str(seat), "program", str(seat)) for seat in range(game.players)]
        self.guests = Guests(self.seats, limit, game.players - len(inside))
        self.guests.seat_of = lambda who: str(who.seat)
        settings = kept_whole({"max_attempts": 1, **player})
        self.outside = OutsidePolicy(self.guests, self.guests, **settings)
        self.policies: list[Policy] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """The game has ended for all who sit here, if any."""
        return all(s.snapshot()[2] for s in self.seats if s.is_here)

    async def sit_down(self, seat: int | None = None) -> int:
        """Take a seat, by default the first free one; the first to come brings the event loop.

        Raises:
            BadParameter: it is not free.
        """
        free = [k for k, s in enumerate(self.seats) if self._is_open(k) and not s.is_here]
        if not free:
            raise BadParameter("no seat is free at this table: sit down at another")
        seat = free[0] if seat is None else seat
        if seat not in free:
            raise BadParameter(f"seat {seat} is not free; these are: {free}")
        self.seats[seat].join()
        if self._task is None:
            work = self._play()  # without the caller's context variables
            self._task = asyncio.get_running_loop().create_task(work, context=Context())
        return seat

    def _is_open(self, seat: int) -> bool:
        """Test whether somebody outside may play a seat: as wanted, then as they were seated."""
        if not self.policies:
            return self.guests.missing() > 0
        return self.policies[seat] is self.outside and not self.seats[seat].snapshot()[2]

    def leave(self, seat: int) -> None:
        """Leave a seat; the game stops once nobody sits here."""
        self.seats[seat].leave()
        if not any(s.is_here for s in self.seats):
            self.stop()

    def stop(self) -> None:
        if self._task is not None and not (loop := self._task.get_loop()).is_closed():
            loop.call_soon_threadsafe(self._task.cancel)

    async def _play(self) -> None:
        fault: Exception | None = None
        try:
            with suppress(LobbyEmpty):
                await self.guests.gather(self.guests.limit)
            self.policies = self._seated()
            more: Any = {"on_step": self._count, "max_steps": self.max_steps}
            await play_table(self.game, self.policies, self.seed, **more)
        except Exception as error:  # all who sit here are told
            fault = error
        finally:
            for seat in self.seats:
                if not seat.snapshot()[2]:
                    seat.end({}, fault)

    def _seated(self) -> list[Policy]:
        """Return who plays each seat; outside keeps the first that nobody took in time."""
        absent = [seat.name for seat in self.seats if not seat.is_here]
        late = len(absent) - len(self.inside)
        inside = dict(zip(absent[late:], self.inside, strict=True))
        return [inside.get(seat.name, self.outside) for seat in self.seats]

    async def _count(self, step: Step) -> None:
        self.guests.moved(NOBODY, step)
        for seat, finished in zip(self.seats, step.outcome.finished, strict=True):
            if finished:
                seat.end({})


class GuestSession:
    """A player at a link, who reads what is new and answers what was read last."""

    def __init__(self, seat: GuestSeat) -> None:
        self.seat = seat
        self.turn = ""  #: the one that was read last, "" if nothing was asked
        self._episode: Any = None
        self._chat = Chat()
        self._attempt, self._payoff = seat.standing.attempt, 0.0  # as read last

    @property
    def is_over(self) -> bool:
        """All is over; raises what has ended it before its time."""
        if self.seat.fault is not None:
            raise self.seat.fault
        return self.seat.snapshot()[2]

    def answer(self, reply: str) -> None:
        """Answer what was read last; if it is too late, that is read next.

        Raises:
            NotNow: somebody else has answered it by this link.
        """
        if self.turn:
            with suppress(TooLate):
                self.seat.act(self.turn, reply, legal=False)

    def read(self) -> dict[str, Any]:
        """Return what is new and what is asked, by the fields of an observation of OpenEnv."""
        over = self.is_over  # before the rest, which is then final
        turn, standing, _ = self.seat.snapshot()
        is_mine = self.turn and standing.attempt is not self._attempt  # no other's, who left
        attempt = standing.attempt if is_mine else None
        reward = standing.payoff - self._payoff
        self._attempt, self._payoff = standing.attempt, standing.payoff
        self.turn = turn.name if turn else ""
        view = turn.request.view if turn else standing.view
        text = f"The game is over. You got {standing.payoff:g} in all." if over else WAIT
        return {
            "text": self._news(turn.request) if turn else text,
            "reply_schema": turn.question.schema() if turn else None,
            "numbers": numbers(view) if view else {},
            "kind": turn.request.kind if turn else "",
            "turn": self.turn,
            "seat": view.seat if view else None,
            "asked": turn is not None,
            "outcome": attempt.outcome if attempt else None,
            "why": attempt.why if attempt else "",
            "action": standing.action,
            "broke": standing.broke,
            "payoff": standing.payoff,
            "reward": reward,
            "done": over,
        }

    def _news(self, request: Request) -> str:
        """Return what is new in a request since the one that was read last; it is read now."""
        read = list(self._chat) if request.who.episode == self._episode else []
        self._chat, self._episode = request.messages, request.who.episode
        messages, last = list(request.messages), len(read) - 1
        if not read:
            texts = [message["content"] for message in messages]
        elif messages[:last] != read[:last] or len(messages) <= last:  # the older part fell out
            texts = [messages[-1]["content"]]
        else:  # a reply without words is no message: the last one has become longer
            fresh = [m["content"] for m in messages[last:] if m["role"] != "assistant"]
            texts = [fresh[0].removeprefix(read[last]["content"]).lstrip(), *fresh[1:]]
        return "\n\n".join(filter(None, texts))


def numbers(view: View) -> dict[str, float]:
    """Return what a seat knows in numbers, by the name of the column."""
    names = [column.name for column in view.game.columns()]
    # A price of 7.07 has more digits as float64.
    return dict(zip(names, map(float, view.numbers.astype(str)), strict=True))
