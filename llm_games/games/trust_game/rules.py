"""The trust game: one sends, what it sends is multiplied, the other returns what it likes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from llm_games.arrays import Array, Later, PerPlayer, PerTable, any_true, at
from llm_games.errors import BadParameter
from llm_games.facts import Fact, count_of, each_of, param
from llm_games.questions import MISSING, POINTS, Integer, alike
from llm_games.rounds import OpenRounds, OpenState, Paid, Seen
from llm_games.rulebook import Chance, Goal, Outcome, Played

NONE = -1  # nothing sent yet


@dataclass(frozen=True)
class TrustGameState(OpenState):
    """A table between moves: what was `sent` in this round, and both amounts of the last one.

    Of each seat's own last round as investor: what `came_back`, -1 none; and whether in any of them
    less than it sent did, `betrayed`.
    """

    sent: PerTable
    last_sent: PerTable
    last_returned: PerTable
    came_back: PerPlayer
    betrayed: PerPlayer


@dataclass(frozen=True)
class TrustGame(OpenRounds):
    """Trust game. Source: Berg, Dickhaut & McCabe 1995.

    A round is two moves. The investor sends s of its endowment, which is multiplied; the trustee
    returns r of it. They get ``e0 - s + r`` and ``e1 + multiplier * s - r``. In place of a missing
    or illegal amount nothing is sent or returned.
    """

    name: ClassVar[str] = "trust_game"
    title: ClassVar[str] = "Trust game"
    source: ClassVar[str] = "Berg et al. 1995"
    turns: ClassVar[bool] = True
    narrows: ClassVar[bool] = True
    shared_goal: ClassVar[Goal] = Goal(unit="points")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "berg": {},
        "moblab": {"endowment": (100, 0)},
    }

    players: int = param(2, "number of players, always 2", low=2, high=2)
    endowment: tuple[int, ...] = param(
        (10, 10),
        "points of the investor, at least 1, and of the trustee",
        read=each_of(2, count_of),
    )
    multiplier: int = param(3, "what each point sent becomes", low=1, high=10)
    roles: str = param("fixed", fixed="seat 0 invests", alternate="seats take turns to invest")

    picks = property(lambda self: self.bounds()[1] < 256)

    def check(self) -> None:
        super().check()
        if self.endowment[0] < 1:
            raise BadParameter(f"endowment must begin with at least 1, got {self.endowment}")

    @property
    def seats_differ(self) -> str:
        return "one seat invests" if self.roles == "fixed" else "seat 0 invests first"

    @property
    def largest(self) -> int:
        return self.rounds * (self.multiplier * self.endowment[0] + self.endowment[1])

    @property
    def stake(self) -> tuple[float, float]:
        return 0.0, float(self.largest // self.rounds)

    @property
    def pot(self) -> float:
        return float(self.largest)

    def length(self) -> int:
        return 2 * self.rounds

    def bounds(self) -> tuple[int, int]:
        return 0, self.multiplier * self.endowment[0]

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> TrustGameState:
        start = {"sent": NONE, "came_back": NONE, "betrayed": bool}
        state: TrustGameState = self.first(TrustGameState, batch, **start, **chance)
        return state

    def invests(self, state: TrustGameState, ago: int = 0) -> PerPlayer:
        """Return the seat that invests in this round, or in the last one, bool."""
        turn = (state.round - ago) & 1 if self.roles == "alternate" else state.round * 0
        return self.seats(state) == turn

    def asked(self, state: TrustGameState) -> Array:
        return (self.invests(state) == (state.sent == NONE)) & ~state.over

    def highest_legal(self, state: TrustGameState) -> Array:
        back = state.sent * self.multiplier
        high = np.where(state.sent == NONE, self.endowment[0], back)
        return np.broadcast_to(high, (self.players, *high.shape))

    def play(self, state: TrustGameState, actions: PerPlayer, broke: PerPlayer) -> Played:
        invests, returning = self.invests(state), state.sent > NONE
        investor = invests[1].astype(np.int64)
        amount = at(actions, investor ^ returning)
        sent, returned = np.where(returning, state.sent, amount), amount * returning
        next_state = state.replace(sent=np.where(returning, NONE, sent))
        if any_true(returning):
            settles = invests & returning
            next_state = next_state.replace(
                round=state.round + returning,
                over=returning & self.ended(state, state.round + 1),
                last_sent=np.where(returning, sent, state.last_sent),
                last_returned=np.where(returning, returned, state.last_returned),
                came_back=np.where(settles, returned, state.came_back),
                betrayed=state.betrayed | (settles & (returned < sent)),
            )
        payoffs = self.pay_where(returning, next_state, self.payoffs)
        record: dict[str, Any] = {"actions": lambda: np.where(self.asked(state), actions, MISSING)}
        record |= {"payoffs": lambda: payoffs.astype(np.int64), "returning": returning}
        record |= {"investor": investor, "sent": sent, "returned": returned}
        return next_state, Outcome(payoffs, self.everybody(next_state.over), Later(record))

    def pay(self, state: Any, actions: PerPlayer, broke: PerPlayer) -> Paid:
        raise NotImplementedError("a round of the trust game is two moves, see `play`")

    def payoffs(self, state: TrustGameState) -> PerPlayer:
        """Return what the last round paid, int64 ``(players, *batch)``; 0 before there was one."""
        first, second = self.endowment
        investors = first - state.last_sent + state.last_returned
        trustees = second + self.multiplier * state.last_sent - state.last_returned
        return np.where(self.invests(state, ago=1), investors, trustees) * (state.round > 0)

    def known(self) -> Sequence[Fact]:
        (_, back), sent, high = self.bounds(), self.endowment[0], int(self.stake[1])
        invested = lambda s: self.invests(s, ago=1) * (s.round > 0)
        became = lambda s: np.maximum(s.sent, 0) * self.multiplier
        return (
            self.now,
            Fact("invests", self.invests, 0, 1, "1: the own seat sends in this round"),
            Fact("sent", lambda s: s.sent, NONE, sent, "sent in this round; -1: nothing yet"),
            Fact("became", became, 0, back, "what that became, which can be returned"),
            Fact("invested", invested, 0, 1, "1: the own seat sent in the last round"),
            Fact("last_sent", lambda s: s.last_sent, 0, sent, "sent in the last round"),
            Fact("last_returned", lambda s: s.last_returned, 0, back, "returned in the last round"),
            Fact("payoff", self.payoffs, 0, high, "own payoff of the last round"),
        )

    def recalled(self) -> Sequence[Fact]:
        high, when = self.bounds()[1], "own last round as investor"
        came_back, betrayed = (lambda s: s.came_back), (lambda s: s.betrayed)
        return (
            Fact("came_back", came_back, NONE, high, f"returned in the {when}; -1: none"),
            Fact("betrayed", betrayed, 0, 1, "1: less than it sent came back once"),
        )

    def teller(self, state: TrustGameState) -> Callable[[int], dict[str, Any]]:
        return partial(self._tell, state)

    def _tell(self, state: TrustGameState, seat: int) -> dict[str, Any]:
        done, sent, last_sent = int(state.round), int(state.sent), int(state.last_sent)
        last = {
            "round": done,
            "invested": bool(self.invests(state, ago=1)[seat]),
            "sent": last_sent,
            "became": last_sent * self.multiplier,
            "returned": int(state.last_returned),
            "payoff": int(self.payoffs(state)[seat]),
        }
        return {
            "round": min(done + 1, self.rounds),
            "phase": "send" if sent == NONE else "return",
            "sent": None if sent == NONE else sent,
            "became": None if sent == NONE else sent * self.multiplier,
            "last": last if done else None,
        }

    def asks(self, state: TrustGameState, seat: int) -> Integer:
        key = "sent" if int(state.sent) == NONE else "returned"
        high = int(self.highest_legal(state)[seat])
        return alike(Integer, key, 0, high, units=POINTS)

    def spectacle(self, state: TrustGameState) -> Seen:
        sent, done = int(state.sent), int(state.round)
        due = f"{sent} sent, {sent * self.multiplier} to return from" if sent > NONE else ""
        caption = due or (f"{state.last_sent} sent, {state.last_returned} returned" if done else "")
        invests = self.invests(state, ago=int(done > 0 and sent == NONE))
        role = np.where(invests, "investor", "trustee")
        return caption, {"role": (role, ""), "payoff": (self.payoffs(state), "d")}
