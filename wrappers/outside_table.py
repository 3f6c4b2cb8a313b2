"""A table at which some seats answer from outside, one reply at a time: TRL's tools, OpenEnv.

Such a seat is asked as a language model is, with the same words, readings and declared moves.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

import numpy as np

from llm_games.arrays import any_true
from llm_games.errors import NotReady
from llm_games.noise import Noise
from llm_games.rulebook import Outcome, Rulebook
from llm_games.table import Table
from llm_games.view import Sight, View
from llm_games.wrappers.clients.base import Chat, Completion, Request
from llm_games.wrappers.grpo_rollout import DrivenClient, kept_whole
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.seats import Seats, moves_of

LONGEST_GAME = 1000  #: steps after which a game without a limit of its own is cut off


class OutsideSeat:
    """A seat that waits for replies: its `request` (None: nothing is asked) and that one's number.

    `decision` is the last one, `action` and `broke` what was played of it.
    """

    def __init__(self, player: LLMPolicy, game: Rulebook, seat: int, seed: int) -> None:
        self.player, self.seat, self.turn = player, seat, 0
        self.request: Request | None = None
        self.decision: Decision | None = None
        self.action: Any = None
        self.broke = False
        self._memory = player.start(game, seat, Noise(seed).of("seat", seat).seed())
        self._work: Coroutine[Any, Any, Any] | None = None
        self._read = Chat()

    def ask(self, view: View) -> None:
        self._work = self.player.decide(view, self._memory)
        self._send(None)

    def answer(self, reply: str) -> None:
        """Take a reply to the request; NotReady if there is none."""
        if self.request is None:
            raise NotReady("nothing is asked of this seat now")
        self._send(Completion(reply, model=self.player.name))

    def decline(self, why: str) -> bool:
        """Let the game's declared move be played, if something is asked; return whether it was."""
        was_asked = self.request is not None
        while self.request is not None:
            self._send(Completion("", "refusal", refusal=why, model=self.player.name))
        return was_asked

    def _send(self, completion: Completion | None) -> None:
        assert self._work is not None
        self.request = None
        try:
            self.request = self._work.send(completion)
        except StopIteration as done:
            self.decision, self._memory = done.value
        else:
            self.turn += 1

    def news(self) -> str:
        """Return what the request tells since the one that was read last, which it then is."""
        if self.request is None:
            return ""
        messages, read = list(self.request.messages), list(self._read)
        self._read, last = self.request.messages, len(read) - 1
        if not read:
            texts = [message["content"] for message in messages]
        elif messages[:last] != read[:last] or len(messages) <= last:  # the older part fell out
            texts = [messages[-1]["content"]]
        else:  # a reply without words is no message: the last one has become longer
            fresh = [m["content"] for m in messages[last:] if m["role"] != "assistant"]
            texts = [fresh[0].removeprefix(read[last]["content"]).lstrip(), *fresh[1:]]
        return "\n\n".join(filter(None, texts))


class OutsideTable:
    """A game of one seed; all seats without a policy are outside's.

    Args:
        game: the rules.
        policies: by seat, those who sit inside.
        player: how outside is asked, see `outside_player`.
        seed: of all chance; None: any.
        max_steps: after which the game is cut off; needed where it has no limit.
    """

    def __init__(
        self,
        game: Rulebook,
        policies: Mapping[int, Policy],
        player: LLMPolicy,
        *,
        seed: int | None = None,
        max_steps: int | None = None,
    ) -> None:
        self.game, self.table = game, Table(game)
        self.table.reset(seed)
        self.limit = max_steps or (LONGEST_GAME if game.length() is None else None)
        self.payoffs = np.zeros(game.players)
        self.left: set[int] = set()  #: outside seats of which nobody waits for an answer
        self._inside = Seats(self.table, policies)
        self._inside.start()
        outside = [seat for seat in range(game.players) if seat not in policies]
        self.seats = {seat: OutsideSeat(player, game, seat, self.table.seed) for seat in outside}
        self._finished = np.zeros(game.players, np.bool_)
        self._asked_in: Sight | None = None

    def is_over(self, seat: int) -> bool:
        """Test whether nothing more can be asked of, or paid to, a seat."""
        ended = self.table.state.over or self.cut_off
        return bool(ended or self._finished[seat])

    @property
    def cut_off(self) -> bool:
        """The limit of steps ended the game."""
        return self.limit is not None and self.table.steps >= self.limit

    @property
    def waiting(self) -> list[int]:
        """The seats that a reply is waited for."""
        return [seat for seat, outside in self.seats.items() if outside.request is not None]

    async def play_on(self) -> None:
        """Play until a reply is waited for, or outside has nothing more to do.

        Raises:
            ClientError: a player inside was asked in vain; nothing is lost, call again.
        """
        while not all(map(self.is_over, self.seats)) and not self._ask():
            moves = moves_of(await self._inside.ask())
            sight = self.table.ready()
            asked = [seat for seat in sight.asked if seat in self.seats]
            for seat in asked:
                decision = self.seats[seat].decision
                assert decision is not None
                moves[seat] = decision.action
            spoken = any_true(sight.talking)
            self._count(self.table.step(moves), asked, spoken)
            self._inside.hear()

    def _ask(self) -> bool:
        """Ask all outside seats that have to move; return whether a reply is waited for."""
        sight = self.table.ready()
        if sight is not self._asked_in:
            self._asked_in = sight
            for seat in sight.asked:
                if seat in self.seats:
                    self.seats[seat].ask(sight.view(seat))
        for seat in self.left:
            self.seats[seat].decline("nobody sits here any more")
        return bool(self.waiting)

    def _count(self, outcome: Outcome, asked: list[int], spoken: bool) -> None:
        self.payoffs = self.payoffs + outcome.rewards
        self._finished = np.asarray(outcome.finished)
        actions = self.game.core.in_units(outcome.record["actions"], spoken).tolist()
        for seat in asked:
            self.seats[seat].action = actions[seat]
            self.seats[seat].broke = bool(outcome.broke[seat])

    def news(self, seat: int) -> str:
        """Return what a seat reads now: what is new since it last read, or how the game ended."""
        if self.is_over(seat):
            return f"The game is over. You got {self.payoffs[seat]:g} in all."
        return self.seats[seat].news()

    def numbers(self, seat: int) -> dict[str, float]:
        """Return what a seat knows in numbers, by the name of the column."""
        view = self.table.ready().view(seat)
        names = [column.name for column in self.game.columns()]
        # A price of 7.07 has more digits as float64.
        return dict(zip(names, map(float, view.numbers.astype(str)), strict=True))


def outside_player(**settings: Any) -> LLMPolicy:
    """Return how outside is asked: settings of `LLMPolicy`, by default for one reply a decision.

    A chat grows at its end alone, so that what is new can be told.
    """
    return LLMPolicy(DrivenClient("outside"), **kept_whole({"max_attempts": 1, **settings}))
