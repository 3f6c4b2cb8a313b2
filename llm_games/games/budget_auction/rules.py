"""The budget auction: sealed bids for one item by bidders with limited money, round after round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games import facts
from llm_games.errors import BadParameter
from llm_games.facts import LAW, Draw, Each, Fact, exact_of, param, plain, rounds_shown
from llm_games.noise import Noise
from llm_games.questions import MISSING, Real, Remark, alike
from llm_games.rounds import Paid, Rounds, Seen
from llm_games.rulebook import LARGEST, Array, Chance, Goal, PerPlayer, PerTable, State

_REASON = Remark("reason", "why, in a few sentences", last=True)
_FIRST = (Remark("understanding", "what this auction is about, in a few words"), _REASON)
_LATER = (
    Remark("goal", "what you want to reach, in a few words"),
    Remark("previous_bid", "your bid in the round before", number=True),
    Remark("previous_payoff", "your payoff in the round before", number=True),
    _REASON,
)
_ARENA: dict[str, Any] = {"players": 5, "price": "second", "rounds": 1}
_ARENA |= {"reveal_last": 3, "reasks": False}


@dataclass(frozen=True)
class BudgetAuctionState(State):
    """Valuations; last round's bids, who made a legal one, winner (-1: no sale), price (units)."""

    valuations: PerPlayer
    bids: PerPlayer
    legal: PerPlayer
    winner: PerTable
    price: PerTable
    utility: PerPlayer


@dataclass(frozen=True)
class BudgetAuction(Rounds):
    """Sealed-bid auction with budgets. Source: EconArena, section 3.1; Vickrey 1961.

    Every player has a valuation ``v`` of the item, from a normal distribution, and assets, both
    the same in all rounds. All bid at the same time, decimals from 0 to the own assets. The
    highest bid (of tied bidders the lowest seat) wins and pays the highest bid (`price`
    ``first``) or the second-highest (``second``). A bidder who breaks a rule pays `entrance_fee`.
    Payoff: final assets minus assets. Actions are bids in units of ``10**-decimals``; one out of
    range stays in them, for `rule_breaker` to treat.
    """

    name: ClassVar[str] = "budget_auction"
    title: ClassVar[str] = "Budget auction"
    source: ClassVar[str] = "EconArena"
    shared_goal: ClassVar[Goal] = Goal(unit="gains in assets")
    narrows: ClassVar[bool] = True
    mends: ClassVar[bool] = False
    seats_differ = "of tied bidders the lowest seat wins"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "econ_arena": _ARENA | {"mu": 500, "sigma": 100, "assets": 1000},
        "econ_arena_authors": _ARENA
        | {"mu": 500, "sigma": 100, "assets": 1000, "rule_breaker": "include"},
        "econ_arena_L": _ARENA | {"mu": 50, "sigma": 10, "assets": 100},
        "econ_arena_M": _ARENA | {"mu": 500, "sigma": 100, "assets": 1000},
        "econ_arena_H": _ARENA | {"mu": 5000, "sigma": 1000, "assets": 10_000},
    }

    assets: Each[int] = param(1000, "money of all bidders, or of each", each=(1, 10**9))
    price: str = param("first", first="the winner pays its bid", second="the second-highest bid")
    valuations: tuple[tuple[int, ...], ...] | None = param(
        None, "one row", none="drawn", hidden=True
    )
    mu: int | float = param(
        500, "mean of drawn valuations before they are cut, 1 to the assets", **LAW
    )
    sigma: int | float = param(
        100, "their standard deviation; beyond the assets they are redrawn", **LAW
    )
    value_rounding: str = param(
        "truncate", truncate="fractions are cut", none="to `decimals`", **LAW
    )
    tell_prior: bool = param(False, "bidders are told how valuations are drawn")
    decimals: int = param(2, "decimals of money; finer bids are rounded half-even", low=0, high=6)
    entrance_fee: int | Fraction = param(0, "what breaking a rule costs", read=exact_of)
    min_valid_bids: int = param(2, "with fewer nothing is sold; one alone pays 0", low=1, high=2)
    rule_breaker: str = param("exclude", exclude="takes no part", include="high bids still rank")
    reveal: str = param(
        "none", none="nothing", bids="bids, own payoff", bids_and_private="all, of all by name"
    )
    reveal_last: str | int = param("all", "past rounds shown, a number or this", read=rounds_shown)
    told_rational: bool = param(
        False, "players hear that all others are perfectly rational", fiction=True
    )
    told_equal: bool = param(
        False, "they hear that all others are as rational and able as they", fiction=True
    )
    reasks: bool = param(
        True, "a language model is asked again after a broken reply; else never", stakes="changed"
    )
    remarks: str = param(
        "none",
        "what a reply is asked for beside the bid; nothing hangs on it",
        none="nothing",
        econ_arena="what the auction is about and a reason; in later rounds the goal and "
        "one's last bid and payoff",
    )

    def check(self) -> None:
        least, fee = min(self.of_each("assets")), self.entrance_fee
        for name, low in (("mu", 1), ("sigma", 0)):
            value = getattr(self, name)
            facts.check_number(name, value, low)
            if self.valuations is None and value > least:
                raise BadParameter(
                    f"{name} must be from {low} to the assets ({least}), got {value}"
                )
        if not 0 <= fee <= least or fee * self.unit % 1:
            raise BadParameter(
                f"entrance_fee must be from 0 to the assets ({least}) in units of 1/{self.unit}, "
                f"got {fee}"
            )
        facts.has_law(self, self.valuations is None)
        if self.valuations is not None:
            row = facts.rows_of("valuations", self.valuations, 1, self.players, 0, 10**9)
            object.__setattr__(self, "valuations", row)

    @property
    def unit(self) -> int:
        return 10**self.decimals

    @property
    def largest(self) -> int:
        return 2 * self.worth * self.unit

    def money(self, batch: tuple[int, ...] = ()) -> PerPlayer:
        return self.each(self.unit * np.array(self.of_each("assets"), np.int64), batch)

    @cached_property
    def worth(self) -> int:
        """The largest valuation or assets there can be, in money."""
        return max(*self.of_each("assets"), *(self.valuations[0] if self.valuations else ()))

    @property
    def repeated(self) -> str:
        return "" if self.valuations is None else "valuations"

    @property
    def fictions(self) -> tuple[str, ...]:
        doubt = "that what the others will do cannot be predicted, whoever they are"
        return super().fictions or (doubt,)

    def draws(self) -> Sequence[Draw]:
        return (Draw("valuations", self._values, 0, self.worth),)

    def _values(self, noise: Noise) -> PerPlayer:
        """Return valuations in money: as given, or normal ones until all are in range."""
        if self.valuations is not None:
            return self.each(np.array(self.valuations[0], np.float64), noise.batch)
        return facts.within(noise, self._normal, 1, self.money(noise.batch)) / self.unit

    def _normal(self, noise: Noise) -> PerPlayer:
        drawn = noise.normal(self.mu, self.sigma, (self.players,))
        cut = self.value_rounding == "truncate"
        return np.trunc(drawn) * self.unit if cut else np.rint(drawn * self.unit)

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> BudgetAuctionState:
        values = np.rint(chance["valuations"] * self.unit).astype(np.int64)
        return self.first(BudgetAuctionState, batch, valuations=values, legal=bool, winner=-1)

    def bounds(self) -> tuple[int, int]:
        return 0, max(self.of_each("assets")) * self.unit

    @cached_property
    def same_limits(self) -> bool:
        return len(set(self.of_each("assets"))) == 1

    def highest_legal(self, state: BudgetAuctionState) -> PerPlayer:
        return self.money(state.round.shape)

    def unplayed(self, record: Mapping[str, Array]) -> Array:
        if self.rule_breaker == "exclude":
            return ~np.asarray(record["legal"], np.bool_)
        return np.asarray(record["actions"]) == MISSING

    def effective(self, record: Mapping[str, Array]) -> Array:
        free = LARGEST - self.largest
        return np.where(self.unplayed(record), MISSING, np.clip(record["actions"], -free, free))

    def pay(self, state: BudgetAuctionState, actions: PerPlayer, broke: PerPlayer) -> Paid:
        no_bid = broke if self.rule_breaker == "exclude" else actions == MISSING
        free = LARGEST - self.largest  # bids against the rules that rank are exact up to it
        bids = np.where(no_bid, MISSING, actions.clip(-free, free))
        highest = bids.max(axis=0)
        price = highest if self.price == "first" else np.partition(bids, -2, axis=0)[-2]
        legal, winner = ~broke, (bids == highest).argmax(axis=0)  # of tied ones the lowest seat
        sold = legal.sum(axis=0) >= self.min_valid_bids
        winner = np.where(sold, winner, -1)
        price = np.where(sold & (price != MISSING), price, 0)
        lost = np.where(broke, -int(self.entrance_fee * self.unit), 0)
        utility = np.where(self.seats(state) == winner, state.valuations - price, lost)
        results = {"legal": legal, "winner": winner, "price": price, "utility": utility}
        assets = self.money(state.round.shape)
        record = {"valuations": state.valuations, "assets": assets, "final": assets + utility}
        bids = np.where(bids == MISSING, 0, bids)
        return utility / self.unit, {**results, "bids": bids}, {**results, **record, "sold": sold}

    @property
    def shown(self) -> str:
        """The level of `reveal` that applies before a bid."""
        return self.reveal if self.reveal_last != 0 else "none"

    @property
    def shown_last(self) -> str | int:
        # Where nothing is revealed, players do not see their own past bids either.
        return 0 if self.reveal == "none" else self.reveal_last

    def terms(self) -> dict[str, Any]:
        # Drawn valuations are from this to the own assets.
        least = 1 if self.value_rounding == "truncate" else Fraction(1, self.unit)
        return super().terms() | {"shown": self.shown, "least_value": least}

    def known(self) -> Sequence[Fact]:
        money, worth, unit = max(self.of_each("assets")), self.worth, self.unit
        low, high = (-np.inf, np.inf) if self.rule_breaker == "include" else (0, money + worth)
        values = lambda s: s.valuations / unit
        assets = lambda s: self.money(s.round.shape) / unit
        bids = lambda s: np.where(s.legal, s.bids, 0) / unit
        begun = lambda of: lambda s: (s.round > 0) * of(s)
        payoff = begun(lambda s: (self.money(s.round.shape) + s.utility) / unit)
        item = "own valuation of the item"
        current = [self.now, Fact("valuation", values, 0, worth, item, said="own", now=True)]
        current += [Fact("assets", assets, 1, money, "own assets", now=True)]
        last = [
            self.seat,
            Fact("bid", bids, 0, money, "seat {}, last round; 0: none", True, said="bids"),
            Fact("legal", lambda s: s.legal, 0, 1, "1 if seat {} made a legal bid", True),
        ]
        payoff_fact = Fact("payoff", payoff, low, high, "own final assets; 0 before a round")
        value = "valuation of seat {}"
        private = [
            Fact("valuation", begun(values), 0, worth, value, True, said="valuations"),
            Fact("assets", begun(assets), 0, money, "assets of seat {}", True),
            Fact("payoff", payoff, low, high, "final assets of seat {}", True, said="payoffs"),
        ]
        shown = {"none": [], "bids": [*last, payoff_fact], "bids_and_private": [*last, *private]}
        return (*current, *shown[self.shown])

    def teller(self, state: BudgetAuctionState) -> Callable[[int], dict[str, Any]]:
        tell = super().teller(state)
        return lambda seat: {name: plain(value) for name, value in tell(seat).items()}

    def in_words(self, last: dict[str, Any]) -> dict[str, Any] | None:
        if self.shown == "none":
            return None
        legal = last.pop("legal")
        last["bids"] = [b if ok else None for b, ok in zip(last["bids"], legal, strict=True)]
        return {
            name: dict(zip(self.names(), map(plain, value), strict=True))
            if isinstance(value, list)
            else plain(value)
            for name, value in last.items()
        }

    @property
    def pot(self) -> float:
        return self.rounds * self.stake[1]  # an item a round

    @property
    def stake(self) -> tuple[float, float]:
        if self.rule_breaker == "include":  # bids against the rules can win, at any price
            return -np.inf, np.inf
        lost = max(*map(float, self.of_each("assets")), float(self.entrance_fee))
        return -lost, float(self.worth)

    def asks(self, state: BudgetAuctionState, seat: int) -> Real:
        asked = _LATER if state.round and self.shown != "none" else _FIRST
        remarks = asked if self.remarks == "econ_arena" else ()
        high = self.of_each("assets")[seat] * self.unit
        return alike(Real, "bid", 0, high, self.decimals, remarks=remarks)

    @property
    def heading(self) -> str:
        return f"{self.title} ({self.price} price)"

    def sold(self, previous_state: BudgetAuctionState, next_state: BudgetAuctionState) -> list[str]:
        buyer = int(next_state.winner)
        if buyer < 0:
            return ["no sale"]
        price, worth = (
            plain(units / self.unit) for units in (next_state.price, next_state.valuations[buyer])
        )
        return [f"{self.names()[buyer]} wins for {price}, worth {worth} to it"]

    def spectacle(self, state: BudgetAuctionState) -> Seen:
        begun, winner = bool(state.round), int(state.winner)
        write = lambda units: [str(plain(x / self.unit)) for x in units.tolist()]
        sale = f"{self.names()[winner]} pays {plain(state.price / self.unit)}"
        return (sale if winner >= 0 else "no sale") if begun else "", {
            "valuation": (np.array(write(state.valuations)), ""),
            "bid": (np.where(begun, write(state.bids), ""), ""),
            "utility": (np.where(begun, write(state.utility), ""), ""),
        }
