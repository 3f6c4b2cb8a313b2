"""Deal or no deal: two seats divide some items, worth different amounts to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.arrays import Array, Later, PerPlayer, PerTable, at, discounted, looked_up, of_seats
from llm_games.errors import BadParameter
from llm_games.facts import Draw, Fact, factor_of, fixed, param
from llm_games.games.deal_or_no_deal import divisions
from llm_games.questions import MISSING
from llm_games.random_end import CONTINUATION, cap_of, continuation_of, last_of
from llm_games.rulebook import Chance, Goal, Outcome, Played, Rulebook, State

NONE = -1  # no offer
KINDS = ("book", "hat", "ball")


@dataclass(frozen=True)
class DealOrNoDealState(State):
    """A table between moves; ``round`` counts the moves made, divisions are `divisions.code_of`.

    The `scenario` is a row of the game's table. There are the standing offer, what its maker takes,
    what each seat last offered or claimed to take, and whether an offer was accepted.
    """

    scenario: PerTable
    last_move: PerTable
    standing: PerTable
    takes: PerPlayer
    accepted: PerTable


@dataclass(frozen=True)
class DealOrNoDeal(Rulebook):
    """Deal or no deal. Sources: Lewis et al. 2017 (arXiv 1706.05125); DeVault et al. 2015.

    Of some kinds of items there are some pieces, all worth 10 points to each seat, but each kind
    other amounts. In `offers` the seats move in turn: one says what it takes, the other's is the
    rest, or accepts. In `claims` both say at once what they take, and get it if that is exactly
    all. A missing or illegal offer is the own last one, at first all items; such a claim is
    nothing. An action is a division as a number, or 5 to the number of kinds to accept.
    """

    name: ClassVar[str] = "deal_or_no_deal"
    title: ClassVar[str] = "Deal or no deal"
    source: ClassVar[str] = "Lewis et al. 2017"
    turns: ClassVar[bool] = True
    picks: ClassVar[bool] = True
    passes_over: ClassVar[bool] = True
    shared_goal: ClassVar[Goal] = Goal(unit="points", over="the game")
    payable = 0.0, float(divisions.WORTH)
    kept_by_presets: ClassVar[tuple[str, ...]] = ("protocol",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "offers": {},
        "dialogue": {"protocol": "claims", "talk": {"turns": 5, "order": "fixed"}},
    }

    players: int = param(2, "number of players, always 2", low=2, high=2)
    items: tuple[str, ...] = param(KINDS, "names of 2 to 4 kinds", read=divisions.kinds_of)
    protocol: str = param("offers", offers="offers in turn", claims="both claim at once")
    moves: int = param(
        None,
        "offers and acceptances together; with `continuation` an untold cap",
        low=1,
        high=10_000,
        none="10; with `continuation` the least cap that is hardly ever reached",
    )
    discount: Fraction = param(Fraction(1), "factor of each move after the second", read=factor_of)
    continuation: Fraction = param(Fraction(1), CONTINUATION, read=continuation_of)
    scenario: Any = param("drawn", "or counts and the values of both seats, or a list of such")
    open_values: bool = param(False, "whether both know all values")
    first: int = param(0, "seat that offers first", low=0, high=1)  # type: ignore[assignment]

    def check(self) -> None:
        object.__setattr__(self, "moves", cap_of("moves", self.moves, 10, self.continuation))
        if self.at_once and (self.discount < 1 or self.continuation < 1 or self.first):
            raise BadParameter("claims are made once: leave discount, continuation and first out")
        if self.scenario != "drawn":
            object.__setattr__(self, "scenario", self._scenarios())

    def _scenarios(self) -> tuple[Any, ...]:
        rows = self.scenario if isinstance(self.scenario, tuple) else ()
        firsts = [row[0] for row in rows if isinstance(row, tuple) and row]
        if len(rows) == 3 and all(isinstance(first, int) for first in firsts):
            rows = (rows,)
        lawful = {repr(tuple(map(tuple, row))) for row in divisions.law(len(self.items)).tolist()}
        for row in rows or (self.scenario,):
            if repr(row) not in lawful:
                raise BadParameter(
                    f"scenario must be 'drawn', or counts and two rows of values for "
                    f"{len(self.items)} kinds: 1 to 4 of each, 5 to 7 in all, worth 10 to each "
                    f"seat, none worthless to both, one of worth to both; got {row!r}"
                )
        return rows

    @cached_property
    def table(self) -> Array:
        """All scenarios that can be drawn, ``(scenarios, 3, kinds)``."""
        rows = self.scenario
        return divisions.law(len(self.items)) if rows == "drawn" else np.array(rows, np.int64)

    at_once = property(lambda self: self.protocol == "claims")
    open_end = property(lambda self: self.continuation < 1)
    accept = property(lambda self: divisions.BASE ** len(self.items))

    @property
    def seats_differ(self) -> str:
        alike = self.scenario == "drawn"
        return "one seat moves first" if not self.at_once else "" if alike else "values differ"

    @property
    def largest(self) -> int:
        return int(divisions.WORTH * self.discount.denominator ** max(0, self.moves - 2))

    def length(self) -> int:
        return 1 if self.at_once else self.moves

    def bounds(self) -> tuple[int, int]:
        return 0, self.accept

    def terms(self) -> dict[str, Any]:
        moves = None if self.open_end else self.moves
        return super().terms() | {"moves": moves, "scenario": None, "worth": divisions.WORTH}

    def draws(self) -> Sequence[Draw]:
        count = len(self.table)
        drawn = (lambda noise: noise.integers(count)) if count > 1 else fixed(0)
        end = [last_of("last_move", self.moves, self.continuation)] * self.open_end
        return (Draw("scenario", drawn, 0, count - 1), *end)

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> Any:
        start = {"last_move": self.moves, "standing": NONE, "takes": NONE, "accepted": bool}
        return super().first(DealOrNoDealState, batch, **start | dict(chance))

    @cached_property
    def scenarios(self) -> divisions.Scenarios:
        return divisions.Scenarios(self.table)

    def counts(self, state: DealOrNoDealState) -> Array:
        return looked_up(self.scenarios.by_kind[0], state.scenario, 1)

    def values(self, state: DealOrNoDealState) -> Array:
        """Return what a piece of each kind is worth to each seat, ``(kinds, players, *batch)``."""
        return looked_up(self.scenarios.by_kind[1:], state.scenario, 2).swapaxes(0, 1)

    def turn(self, state: DealOrNoDealState) -> PerTable:
        return (self.first + state.round) & 1

    def moves_now(self, state: DealOrNoDealState) -> PerPlayer:
        """Return the seat whose turn it is, bool; in `claims` both."""
        if self.at_once:
            return self.everybody(state.round == 0)
        return self.seats(state) == self.turn(state)

    def asked(self, state: DealOrNoDealState) -> Array:
        return self.moves_now(state) & ~state.over

    laddered = True
    ladder = cached_property(lambda self: self.scenarios.ladder)

    def everything(self, state: DealOrNoDealState) -> PerTable:
        """Return all items as a number."""
        return looked_up(self.scenarios.everything, state.scenario)

    def _rung(self, state: DealOrNoDealState) -> PerTable:
        return 1 + 2 * self.everything(state) + (state.standing > NONE)

    def rungs(self, state: DealOrNoDealState, seats: Any = None) -> Array:
        asked = self.asked(state) if seats is None else of_seats(self.asked(state), seats)
        return np.where(asked, self._rung(state), 0)

    def breaks(self, state: DealOrNoDealState, actions: Array) -> Array:
        action = actions if self.at_once else at(actions, self.turn(state))
        index = self._rung(state) * (self.accept + 3) + np.clip(action, -1, self.accept + 1) + 1
        return self.asked(state) & looked_up(self.scenarios.illegal, index)

    def fallback(self, state: DealOrNoDealState) -> Array:
        takes = np.where(state.takes > NONE, state.takes, self.everything(state))
        return np.zeros_like(takes) if self.at_once else takes

    def play(self, state: DealOrNoDealState, actions: PerPlayer, broke: PerPlayer) -> Played:
        moves, going, number = self.asked(state), ~state.over, state.round + 1
        action = at(actions, self.turn(state))
        accepted = going & (action == self.accept)
        offered = going & ~accepted & (not self.at_once)
        next_state = state.replace(
            round=state.round + going,
            over=state.over | accepted | (number >= state.last_move) | self.at_once,
            standing=np.where(offered, action, state.standing),
            takes=np.where(moves & ~accepted, actions, state.takes),
            accepted=state.accepted | accepted,
        )
        agreed = going & self.agreed(next_state)
        payoffs = self.pay_where(agreed, next_state, self._shares)
        record: dict[str, Any] = {"payoffs": payoffs, "scenario": state.scenario, "move": number}
        record["actions"] = lambda: np.where(moves, actions, MISSING)
        record |= {"agreed": agreed, "standing": state.standing}
        return next_state, Outcome(payoffs, self.everybody(next_state.over), Later(record))

    def payoffs(self, state: DealOrNoDealState) -> PerPlayer:
        """Return what is paid at the end, float64 ``(players, *batch)``; 0 until then."""
        agreed = state.over & ~state.void & self.agreed(state)
        return self.pay_where(agreed, state, self._shares)

    def agreed(self, state: DealOrNoDealState) -> PerTable:
        """Return where an offer was accepted, or claims add up to all, as do then their codes."""
        if not self.at_once:
            return state.accepted
        return state.takes[0] + state.takes[1] == self.everything(state)

    def _shares(self, state: DealOrNoDealState) -> PerPlayer:
        # An offer's maker has its turn again, though the game is over.
        rest = self.everything(state) - state.standing
        offered = np.where(self.moves_now(state), state.standing, rest)
        parts = state.takes if self.at_once else offered
        worth, late = self.scenarios.worth(state.scenario, parts), state.round - 2
        return discounted(worth, (self.discount,) * 2, late, max(0, self.moves - 2))

    # -- what players know -------------------------------------------------------------------------

    def _split(self, codes: Array) -> Array:
        """Return what is taken of each kind, ``(kinds, ...)``, -1 where there is no offer."""
        return np.where(codes > NONE, divisions.taken_of(codes, len(self.items)), NONE)

    def known(self) -> Sequence[Fact]:
        kinds, high, end = len(self.items), divisions.BASE - 1, self.length() + 1
        mine, other = (lambda s: self._split(s.takes)), (lambda s: self._split(s.takes[::-1]))
        offer, worth = "last offer or claim, what it takes of kind {}; -1: none", divisions.WORTH
        others, piece = (lambda s: self.values(s)[:, ::-1]), "what a piece of kind {} is worth to"
        return (
            Fact("move", lambda s: s.round + 1, 1, end, "number of the move to make"),
            Fact("count", self.counts, 1, high, "pieces of kind {}", each=kinds),
            Fact("value", self.values, 0, worth, "own value of a piece of kind {}", each=kinds),
            *[Fact("other_value", others, 0, worth, f"{piece} the other", each=kinds)]
            * self.open_values,
            Fact("own", mine, NONE, high, f"own {offer}", each=kinds),
            Fact("other", other, NONE, high, f"the other's {offer}", each=kinds),
            Fact("turn", self.moves_now, 0, 1, "1: the own seat's turn"),
            Fact("accepted", lambda s: s.accepted, 0, 1, "1: the last offer was accepted"),
            Fact("payoff", self.payoffs, 0, worth, "own payoff once the game is over"),
        )

    def told(self, state: DealOrNoDealState, seat: int) -> dict[str, Any]:
        columns = [self.items, self.counts(state).tolist()]
        for part in (self.values(state), self._split(state.takes)):
            columns += [part[:, seat].tolist(), part[:, 1 - seat].tolist()]
        items: list[dict[str, Any]] = []
        for name, count, value, others, *taken in zip(*columns, strict=True):
            own, theirs = (None if pieces == NONE else pieces for pieces in taken)
            item = {"name": name, "count": count, "value": value, "own": own, "theirs": theirs}
            item["yours"] = None if theirs is None or self.at_once else count - theirs
            item["other_value"] = others if self.open_values else None
            items.append(item)
        moves_past, offered = int(state.round), bool(state.standing > NONE)
        counted = not (state.over or self.at_once or self.open_end)
        shrinks = offered and not state.over and self.discount < 1
        return {
            "phase": "claim" if self.at_once else "answer" if offered else "offer",
            "items": items,
            "move": moves_past + 1 if self.open_end and not state.over else None,
            "left": self.moves - moves_past if counted else None,
            "factor": self.discount ** max(0, moves_past - 1) if shrinks else None,
            "agreed": bool(self.agreed(state)) if state.over else None,
            "payoff": float(self.payoffs(state)[seat]) if state.over else None,
        }

    def asks(self, state: DealOrNoDealState, seat: int) -> divisions.Takes:
        counts = dict(zip(self.items, self.counts(state).tolist(), strict=True))
        return divisions.Takes("take", counts, may=bool(state.standing > NONE))

    def picture(self, state: DealOrNoDealState) -> tuple[str, list[str], list[list[str]]]:
        pieces = ", ".join(f"{name} {count}" for name, count in self.asks(state, 0).counts.items())
        end = f": {'agreed' if self.agreed(state) else 'no agreement'}" if state.over else ""
        taken, rows = self._split(state.takes), []
        for seat, name in enumerate(self.names()):
            values = " ".join(map(str, self.values(state)[:, seat].tolist()))
            takes = " ".join(map(str, taken[:, seat].tolist())) if taken[0, seat] > NONE else ""
            rows.append([name, values, takes, f"{self.payoffs(state)[seat]:g}"])
        caption = f"{self.title} ({pieces}), move {int(state.round)}{end}"
        return caption, ["seat", "values", "takes", "payoff"], rows
