"""Bargaining: two seats divide a pie by offers and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any, ClassVar

import numpy as np

from llm_games.arrays import Array, Later, PerPlayer, PerTable, any_true, at, discounted
from llm_games.errors import BadParameter
from llm_games.facts import Draw, Fact, check_choice, count_of, each_of, factor_of, fixed, param
from llm_games.questions import MISSING, POINTS, Choice, Integer, Question, alike
from llm_games.rulebook import Chance, Goal, Outcome, Played, Rulebook, State

REJECT, ACCEPT, LEAVE, NONE = 0, 1, 2, -1  # answers; none, also of offers
WORDS = ("reject", "accept", "leave")


@dataclass(frozen=True)
class BargainingState(State):
    """A table between moves; ``round`` counts the periods finished.

    `opener` is the seat that proposes in odd periods; `standing` is an offer to be answered. Of the
    last period: the offer, its `answer`, and the smallest accepted one where that is named.
    """

    opener: PerTable
    standing: PerTable
    offer: PerTable
    answer: PerTable
    least: PerTable


@dataclass(frozen=True)
class Bargaining(Rulebook):
    """Bargaining. Sources: Güth, Schmittberger & Schwarze 1982; Rubinstein 1982.

    In a period the proposer offers the other seat an amount, and that accepts (1), rejects (0) or,
    with `outside`, leaves (2); then the roles change. What is agreed or paid for leaving in period
    t counts the own discount to the power of t - 1. All is paid at the end. In place of a missing
    or illegal move half of the pie is offered, an offer rejected, or the whole pie the least.
    """

    name: ClassVar[str] = "bargaining"
    title: ClassVar[str] = "Bargaining"
    source: ClassVar[str] = "Güth et al. 1982, Rubinstein 1982"
    turns: ClassVar[bool] = True
    narrows: ClassVar[bool] = True
    shared_goal: ClassVar[Goal] = Goal(unit="points", over="the game")
    personal: ClassVar[tuple[str, ...]] = ("discount", "outside", "breakdown")
    kept_by_presets: ClassVar[tuple[str, ...]] = "veto", "method"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ultimatum": {},
        "moblab": {"method": "strategy"},
        "forsythe": {"pie": 20},
        "dictator": {"veto": False},
        "shrinking": {"periods": 2, "discount": Fraction(1, 4)},
        "rubinstein": {"periods": 10, "discount": Fraction(9, 10)},
    }

    players: int = param(2, "number of players, always 2", low=2, high=2)
    pie: int = param(100, "points to divide", low=1, high=10**6)
    periods: int = param(1, "offers that can be made", low=1, high=50)
    discount: tuple[Fraction, ...] = param(
        (Fraction(1),) * 2, "factor of a period, of both seats", read=each_of(2, factor_of)
    )
    outside: tuple[int, ...] | None = param(
        None, "paid if the one who answers leaves", read=each_of(2, count_of), none="nobody can"
    )
    breakdown: tuple[int, ...] = param((0, 0), "without agreement", read=each_of(2, count_of))
    first: int | str = param(0, "seat that proposes first, or ``drawn``")  # type: ignore[assignment]
    method: str = param(
        "sequential", sequential="an offer is answered", strategy="the smallest accepted is named"
    )
    veto: bool = param(True, "whether offers are answered; if not, the proposer decides alone")

    at_once = property(lambda self: self.method == "strategy")  # both name a number
    last_answer = property(lambda self: ACCEPT if self.outside is None else LEAVE)
    passes_over = property(lambda self: not self.at_once)
    picks = property(lambda self: self.pie < 256)
    payable = property(lambda self: (0.0, float(self.pie)))
    seats_differ = "one seat proposes first"

    def check(self) -> None:
        check_choice("first", self.first, (0, 1, "drawn"))
        if (amount := max(*self.breakdown, *(self.outside or ()))) > self.pie:
            raise BadParameter(f"outside, breakdown must be at most {self.pie}, got {amount}")
        if self.at_once + (not self.veto) + (self.periods > 1 or self.outside is not None) > 1:
            raise BadParameter(
                "method='strategy', veto=False, and periods above 1 or outside exclude one another,"
                f" got method={self.method!r}, veto={self.veto}, periods={self.periods}, "
                f"outside={self.outside}; leave all but one out"
            )

    @property
    def largest(self) -> int:
        shared = lcm(*(factor.denominator for factor in self.discount))
        return int(self.pie * shared ** (self.periods - 1))

    def length(self) -> int:
        return self.periods * (2 if self.veto and not self.at_once else 1)

    def bounds(self) -> tuple[int, int]:
        return 0, max(self.pie, self.last_answer)

    def draws(self) -> Sequence[Draw]:
        drawn = (lambda noise: noise.integers(2)) if self.first == "drawn" else fixed(self.first)
        return (Draw("opener", drawn, 0, 1),)

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> Any:
        nothing = dict.fromkeys(("standing", "offer", "answer", "least"), NONE)
        return super().first(BargainingState, batch, **nothing, **chance)

    def proposer(self, state: BargainingState, ago: int = 0) -> PerTable:
        """Return the seat that proposes in this period, or in the last one."""
        return (state.opener + state.round - ago) & 1

    def proposes(self, state: BargainingState, ago: int = 0) -> PerPlayer:
        return self.seats(state) == self.proposer(state, ago)

    def asked(self, state: BargainingState) -> Array:
        moves = self.at_once or self.proposes(state) != (state.standing > NONE)
        return moves & self.everybody(~state.over)

    def talks(self, state: BargainingState) -> PerTable:
        return (state.standing == NONE) & ~state.over

    def highest_legal(self, state: BargainingState) -> Array:
        high = np.where(state.standing > NONE, self.last_answer, self.pie)
        return np.broadcast_to(high, (self.players, *high.shape))

    def fallback(self, state: BargainingState) -> Array:
        answer = np.where(state.standing > NONE, REJECT, self.pie)
        return np.where(self.proposes(state), self.pie // 2, answer)

    def play(self, state: BargainingState, actions: PerPlayer, broke: PerPlayer) -> Played:
        proposer, answering, over = self.proposer(state), state.standing > NONE, state.over
        if self.at_once:
            offer, least = at(actions, proposer), at(actions, 1 - proposer)
            answer = np.where(offer >= least, ACCEPT, REJECT)
        else:
            move, least = at(actions, proposer ^ answering), state.least
            offer = np.where(answering, state.standing, np.where(over, self.pie // 2, move))
            answer = np.where(answering, move, NONE if self.veto else ACCEPT)
        decided = (answer > NONE) & ~over
        next_state = state.replace(standing=np.where(decided | over, NONE, offer), least=least)
        if any_true(decided):
            ends = decided & ((answer != REJECT) | (state.round + 1 >= self.periods))
            next_state = next_state.replace(
                round=state.round + decided,
                over=over | ends,
                offer=np.where(decided, offer, state.offer),
                answer=np.where(decided, answer, state.answer),
            )
        payoffs = self.pay_where(next_state.over & ~over, next_state, self._shares)
        record = {"period": lambda: state.round + 1, "proposer": proposer, "offer": offer}
        record |= {"answer": answer, "answering": answering, "payoffs": payoffs}
        record["actions"] = lambda: np.where(self.asked(state), actions, MISSING)
        return next_state, Outcome(payoffs, self.everybody(next_state.over), Later(record))

    def payoffs(self, state: BargainingState) -> PerPlayer:
        """Return what is paid at the end, float64 ``(players, *batch)``; 0 until then."""
        return self.pay_where(state.over & ~state.void, state, self._shares)

    def _shares(self, state: BargainingState) -> PerPlayer:
        each = lambda row: self.each(np.array(row), state.round.shape)
        shares = np.where(self.proposes(state, ago=1), self.pie - state.offer, state.offer)
        if self.outside is not None:
            shares = np.where(state.answer == LEAVE, each(self.outside), shares)
        shares = discounted(shares, self.discount, state.round - 1, self.periods - 1)
        return np.where(state.answer == REJECT, each(self.breakdown), shares)

    def known(self) -> Sequence[Fact]:
        # The other's number is not told where both are named at once.
        offer = lambda s: np.where(self.at_once & ~self.proposes(s, ago=1), NONE, s.offer)
        least = lambda s: np.where(self.proposes(s, ago=1), NONE, s.least)
        high, end, none = self.pie, self.periods + 1, "; -1: none"
        return (
            Fact("period", lambda s: s.round + 1, 1, end, "period to play; periods + 1 at the end"),
            Fact("proposes", self.proposes, 0, 1, "1: the own seat proposes in this period"),
            Fact("standing", lambda s: s.standing, NONE, high, f"offer to be answered{none}"),
            Fact("offer", offer, NONE, high, f"offer of the last period{none}"),
            Fact("least", least, NONE, high, f"smallest offer that one accepted{none}"),
            Fact("answer", lambda s: s.answer, NONE, LEAVE, f"0 reject, 1 accept, 2 leave{none}"),
            Fact("payoff", self.payoffs, 0, high, "own payoff once the game is over"),
        )

    def told(self, state: BargainingState, seat: int) -> dict[str, Any]:
        periods_past, mine = int(state.round), bool(self.proposes(state, ago=1)[seat])
        last: dict[str, Any] = {"mine": mine, "answer": WORDS[int(state.answer)]}
        last["least"] = None if mine or not self.at_once else int(state.least)
        last["payoff"] = float(self.payoffs(state)[seat]) if state.over else None
        knowledge: dict[str, Any] = dict.fromkeys(("period", "factor", "other_factor"))
        knowledge |= {"phase": self._key(state, seat), "last": last if periods_past else None}
        knowledge["proposes"] = bool(self.proposes(state)[seat])
        if self.periods > 1:
            last["period"], knowledge["period"] = periods_past, min(periods_past + 1, self.periods)
        if self.discount != (1, 1):
            factors = (self.discount[i] ** periods_past for i in (seat, 1 - seat))
            knowledge["factor"], knowledge["other_factor"] = factors
        shown = int(state.offer) if mine or not self.at_once else NONE
        for part, offer in ((last, shown), (knowledge, int(state.standing))):
            part["offer"], part["rest"] = (
                (None,) * 2 if offer == NONE else (offer, self.pie - offer)
            )
        return knowledge

    def _key(self, state: BargainingState, seat: int) -> str:
        names = self.at_once and not self.proposes(state)[seat]
        return "answer" if state.standing > NONE else "least" if names else "offer"

    def asks(self, state: BargainingState, seat: int) -> Question:
        if (key := self._key(state, seat)) == "answer":
            words = ("accept", "reject", "leave")[: self.last_answer + 1]
            return Choice(key, {word: WORDS.index(word) for word in words})
        return alike(Integer, key, 0, self.pie, units=POINTS)

    def picture(self, state: BargainingState) -> tuple[str, list[str], list[list[str]]]:
        waiting = int(state.standing > NONE)
        period, offer = int(state.round) + waiting, int(state.standing if waiting else state.offer)
        shares = np.where(self.proposes(state, ago=1 - waiting), self.pie - offer, offer)
        columns = zip(self.names(), shares * (period > 0), self.payoffs(state), strict=True)
        answer = "" if waiting or not period else f": {WORDS[int(state.answer)]}"
        caption = f"{self.title}, period {period} of {self.periods}{answer}"
        return caption, ["seat", "share", "payoff"], [[n, str(s), f"{p:g}"] for n, s, p in columns]
