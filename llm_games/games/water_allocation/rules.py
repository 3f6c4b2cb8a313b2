"""The water allocation challenge: residents bid for scarce water to survive a drought."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from math import floor
from typing import Any, ClassVar, NamedTuple

import numpy as np

from llm_games.arrays import Array, PerPlayer, PerTable, array_of, at, looked_up, tall
from llm_games.errors import BadParameter
from llm_games.facts import Draw, Fact, check_choice, check_integer, fixed, listed, once, param
from llm_games.questions import NO_BID, Action, Remark, SealedBid, alike
from llm_games.rounds import MOST_ROUNDS
from llm_games.rulebook import Chance, Goal, Later, Outcome, Played, Rulebook, State


class Resident(NamedTuple):
    """One player: its name, its daily need of water (units) and its daily salary (dollars)."""

    name: str
    requirement: int
    salary: int


class Persona(NamedTuple):
    """A resident's profession, personality and background."""

    profession: str
    personality: str
    background: str


RESIDENTS = (
    Resident("Alex", 8, 70),
    Resident("Bob", 9, 75),
    Resident("Cindy", 10, 100),
    Resident("David", 11, 120),
    Resident("Eric", 12, 120),
)
"""The five residents of the paper."""
_WHO = """\
unemployed
You find complicated ideas hard to follow and other people hard to read. You are quick-tempered, \
gloomy and inclined to act against others.
You grew up poor, left school early for lack of money, and never found steady work.

high-school teacher
You are warm and understanding, good with people, of ordinary intellect.
You come from a family that sticks together, and teach to do young people good.

psychologist
You are both bright and empathic, and good at helping people.
You answered calls on a crisis line at school, studied psychology because of it, and became a \
therapist who joins feeling with clear thought.

mathematician
You are exceptionally intelligent, analyse everything and look for the optimum. You are awkward \
with people and shy of them.
You spent a small-town childhood with books and puzzles, took a doctorate, and study abstract \
theorems.

marketing executive
You are clever and very charismatic. You read people well and use it to steer them.
You grew up in a busy city, took a business degree, and made your name with campaigns that touched \
customers."""
PERSONAS = tuple(Persona(*lines.splitlines()) for lines in _WHO.split("\n\n"))
"""Personas of `RESIDENTS`, after the paper's, in other words."""
UNSOLD = np.iinfo(np.int64).max  # above all prices
MOST = 10**9

_LOGIC = Remark("reason", "the logic of your bid, in a few sentences", last=True)


@dataclass(frozen=True)
class WaterAllocationState(State):
    """Residents between two days; money is in units of ``10 ** -money_decimals`` dollars.

    `supplies` is the water of all days, ``(days, *batch)``; `balance` is before the next salary;
    `dry` counts days in a row. Of the last day: who `took_part`, the `bids` as submitted, who
    `won`, and the money `announced` before a death took it away.
    """

    supplies: Array
    balance: PerPlayer
    hp: PerPlayer
    dry: PerPlayer
    living: PerPlayer
    took_part: PerPlayer
    bids: PerPlayer
    won: PerPlayer
    announced: PerPlayer


def price_of(bids: PerPlayer, won: PerPlayer) -> PerTable:
    """Return the lowest bid that was served, `NO_BID` where none was, int64."""
    price = np.where(won, bids, UNSOLD).min(axis=0)
    return np.where(price < UNSOLD, price, NO_BID)


_AUTHORS: dict[str, Any] = {
    "supply_upper_inclusive": False,
    "no_bid": "zero",
    "tie_rule": "index",
    "reset_balance_on_death": False,
    "shown_dry_counter": "next_loss",
}
"""What the authors' program does otherwise than the paper says."""


@dataclass(frozen=True)
class WaterAllocation(Rulebook):
    """Water allocation challenge. Source: Alympics (arXiv 2311.03220), sections 3.1 and 4.

    Each day every living resident is paid its salary, learns the supply and submits one sealed
    price for its whole need. The highest bids that still fit the supply are served and pay what
    they bid. Water gives health; the n-th dry day in a row costs n points, and at 0 a resident
    dies. Payoff: 1 for being alive after the last day, else 0.
    A bid is an integer number of money units; -1 (null in a reply) declines to bid, and stands in
    for a missing or negative bid. In its last report a player that dies hears of that day; after
    that it learns nothing more.
    """

    name: ClassVar[str] = "water_allocation"
    lasting: ClassVar[Mapping[str, Any]] = {"hp_start": 10**6, "hp_max": 10**6}
    narrows: ClassVar[bool] = True
    idle: ClassVar[int] = NO_BID
    title: ClassVar[str] = "Water allocation challenge"
    source: ClassVar[str] = "Alympics"
    shared_goal: ClassVar[Goal] = Goal("survive", "day")
    fewest_players: ClassVar[int] = 1
    payable = 0.0, 1.0
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        f"setting_{i}{whose}": {"supply_low": low, "supply_high": low + 10, "persona": persona}
        | otherwise
        for whose, otherwise in (("", {}), ("_authors", _AUTHORS))
        for i, (persona, low) in enumerate(product(("none", "default"), (10, 15, 20)), start=1)
    }

    players: int = param(5, "number of residents; more than 5 need `residents`", low=1)
    residents: tuple[Resident, ...] | None = param(
        None, "rows ``(name, units a day, dollars a day)``", none="the paper's"
    )
    days: int = param(20, "days of a game, known to the players", low=1, high=MOST_ROUNDS)
    supply_low: int = param(10, "smallest daily supply, units of water", low=0)
    supply_high: int = param(20, "largest one; all integers from `supply_low` are equally likely")
    supply_upper_inclusive: bool = param(True, "whether `supply_high` can occur, as in the paper")
    supplies: tuple[int, ...] | None = param(
        None, "given ones, one for each day", none="drawn", hidden=True
    )
    hp_start: int = param(8, "health points at the start, 1 to `hp_max`")
    hp_max: int = param(10, "most health points", low=1, high=MOST)
    hp_gain: int = param(2, "health points that a day with water brings", low=0, high=MOST)
    balance_start: int = param(0, "whole dollars before the first salary", low=0, high=MOST)
    money_decimals: int = param(0, "decimals of a bid; a finer one is rounded down", low=0, high=4)
    persona: str | tuple[Persona, ...] = param("none", "or ``default``, or a row of three each")
    allocation: str = param("skip", skip="a bid too large is passed over", stop="it ends the day")
    over_budget: str = param(
        "void", "a bid above the balance", void="ignored", clip="lowered", rule_break="also a break"
    )
    no_bid: str = param("none", none="who does not bid takes no part", zero="who does not bids 0")
    tie_rule: str = param("lower_requirement", lower_requirement="then seat", index="lower seat")
    reset_balance_on_death: bool = param(
        True, "a dead resident's money becomes 0, in records", hidden=True
    )
    remarks: str = param(
        "none",
        "what a reply is asked for beside the bid; nothing hangs on it",
        none="nothing",
        alympics="the logic of the bid",
    )
    shown_dry_counter: str = param("days", days="dry days so far", next_loss="what the next costs")

    def check(self) -> None:
        least = self.supply_low + (not self.supply_upper_inclusive)
        check_integer("supply_high", self.supply_high, least, MOST)
        check_integer("hp_start", self.hp_start, 1, self.hp_max)
        if self.residents is not None:
            self._read_rows("residents", Resident)
        elif self.players > len(RESIDENTS):
            raise BadParameter(
                f"players must be an integer from 1 to {len(RESIDENTS)} unless residents has a "
                f"row (name, requirement, salary) for each, got {self.players}"
            )
        for name, requirement, salary in self.cast:
            if not isinstance(name, str) or not name.strip():
                raise BadParameter(f"the name of a resident must be a word, got {name!r}")
            check_integer(f"the requirement of {name}", requirement, 1, MOST)
            check_integer(f"the salary of {name}", salary, 0, MOST)
        if len({resident.name for resident in self.cast}) < self.players:
            raise BadParameter("residents must have different names")
        if self.supplies is not None:
            what = f"{self.days} integers, one a day"
            for supply in listed("supplies", self.supplies, self.days, what):
                check_integer("each of the supplies", supply, 0, MOST)
            object.__setattr__(self, "supplies", tuple(map(int, self.supplies)))
        if isinstance(self.persona, str):
            check_choice("persona", self.persona, ("none", "default"))
            if self.persona == "default" and self.players > len(PERSONAS):
                raise BadParameter(
                    f"persona 'default' has {len(PERSONAS)} rows for {self.players} players; give "
                    "a row (profession, personality, background) for each"
                )
        else:
            self._read_rows("persona", Persona)
            for field, value in (pair for row in self.persona for pair in row._asdict().items()):
                if not isinstance(value, str):
                    raise BadParameter(f"{field} of persona must be text, got {value!r}")

    def _read_rows(self, name: str, kind: Any) -> None:
        """Read a parameter with a row for each player, as sequences or mappings."""
        entries, fields = getattr(self, name), kind._fields
        what = f"{self.players} rows ({', '.join(fields)}), one for each player"
        rows = listed(name, entries, self.players, what)
        try:
            plain = ([r[f] for f in fields] if isinstance(r, Mapping) else r for r in rows)
            object.__setattr__(self, name, tuple(kind(*row) for row in plain))
        except (TypeError, KeyError):
            raise BadParameter(f"{name} must be {what}, got {entries!r}") from None

    # -- who they are, what they need and earn -----------------------------------------------------

    @cached_property
    def cast(self) -> tuple[Resident, ...]:
        return self.residents or RESIDENTS[: self.players]

    @cached_property
    def personas(self) -> tuple[Persona, ...] | None:
        if not isinstance(self.persona, str):
            return self.persona
        return PERSONAS[: self.players] if self.persona == "default" else None

    @property
    def unit(self) -> int:
        return 10**self.money_decimals

    @cached_property
    def requirements(self) -> Array:
        return np.array([resident.requirement for resident in self.cast], np.int64)

    @cached_property
    def salaries(self) -> Array:
        return np.array([resident.salary * self.unit for resident in self.cast], np.int64)

    @cached_property
    def precedence(self) -> Array:
        """Seats in the order in which equal bids are served."""
        seats = np.arange(self.players)
        return seats if self.tie_rule == "index" else np.lexsort((seats, self.requirements))

    @property
    def supply_top(self) -> int:
        return self.supply_high - (not self.supply_upper_inclusive)

    @property
    def mean_supply(self) -> Fraction:
        return Fraction(self.supply_low + self.supply_top, 2)

    @cached_property
    def _most_water(self) -> int:
        return max(self.supply_top, *(self.supplies or (0,)))

    @cached_property
    def _richest(self) -> int:
        return self.balance_start * self.unit + int(self.salaries.max()) * self.days

    def terms(self) -> dict[str, Any]:
        people = [resident._asdict() for resident in self.cast]
        for resident, persona in zip(people, self.personas or (), strict=False):
            resident |= persona._asdict()
        supplies = (self.supply_low, self.supply_top, *(self.supplies or ()))
        # What is told of a day's water holds for given amounts, too.
        announced = {"residents": people, "supply_low": min(supplies), "supply_top": max(supplies)}
        return super().terms() | announced | {"with_persona": self.personas is not None}

    def length(self) -> int:
        return self.days

    # -- a day -------------------------------------------------------------------------------------

    @property
    def repeated(self) -> str:
        return "" if self.supplies is None else "supplies"

    def draws(self) -> Sequence[Draw]:
        low, top = self.supply_low, self.supply_top
        drawn = lambda noise: noise.integers(low, top, self.days, endpoint=True)
        supplies = drawn if self.supplies is None else fixed(self.supplies)
        return (Draw("supplies", supplies, 0, self._most_water, out=1),)

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> WaterAllocationState:
        money, hp = self.balance_start * self.unit, self.hp_start
        start = {"hp": hp, "living": True, "took_part": bool, "bids": NO_BID, "won": bool}
        return self.first(WaterAllocationState, batch, balance=money, **start, **chance)

    @cached_property
    def supply(self) -> Callable[[WaterAllocationState], PerTable]:
        """A function of the state: the water of this day (at the end the last), int64."""
        return once(lambda s: at(s.supplies, np.minimum(s.round, self.days - 1)))

    def last_supply(self, state: WaterAllocationState) -> PerTable:
        return at(state.supplies, np.maximum(state.round - 1, 0))

    @cached_property
    def purse(self) -> Callable[[WaterAllocationState], PerPlayer]:
        """A function of the state: the money of each seat today, salary included, int64."""
        return once(lambda s: s.balance + tall(self.salaries, s.round.shape) * s.living)

    def asked(self, state: WaterAllocationState) -> PerPlayer:
        return state.living & ~state.over

    alive = asked

    @property
    def seats_differ(self) -> str:
        if len({(resident.requirement, resident.salary) for resident in self.cast}) > 1:
            return "residents need and earn different amounts"
        return "of equal bids the lower seat is served first" if self.players > 1 else ""

    def bounds(self) -> tuple[int, int]:
        return NO_BID, self._richest

    def highest_legal(self, state: WaterAllocationState) -> PerPlayer:
        return np.where(state.living, self.purse(state), NO_BID)

    def breaks(self, state: WaterAllocationState, bids: PerPlayer) -> PerPlayer:
        broke = bids < NO_BID
        if self.over_budget == "rule_break":
            broke |= bids > self.purse(state)
        return self.asked(state) & broke

    def effective(self, record: Mapping[str, Array]) -> Array:
        # A bid above the balance is announced, but it is no bid, or one of all there was.
        return np.where(record["over_budget"], record["effective"], record["actions"])

    def mend(self, state: WaterAllocationState, bids: PerPlayer, broke: PerPlayer) -> PerPlayer:
        # A bid beyond the balance stays as it is: it is void, but it is announced.
        return np.maximum(bids, NO_BID)

    def play(self, state: WaterAllocationState, actions: PerPlayer, broke: PerPlayer) -> Played:
        alive, purse, supply = state.living, self.purse(state), self.supply(state)
        bids = np.where(alive, actions, NO_BID)
        over_budget = bids > purse
        effective = bids if self.no_bid == "none" else np.where(alive, np.maximum(bids, 0), NO_BID)
        lowered = purse if self.over_budget == "clip" else NO_BID
        effective = np.where(over_budget, lowered, effective)
        won, remaining = self._allocate(effective, supply)
        announced = purse - effective * won
        dry = (state.dry + alive) * ~won
        hp = state.hp - dry * alive
        hp = np.where(won, np.minimum(self.hp_max, hp + self.hp_gain), hp)
        living = alive & (hp > 0)
        died = alive ^ living
        next_state = state.replace(
            round=state.round + 1,
            over=(state.round + 1 >= self.days) | ~living.any(axis=0),
            balance=announced * ~died if self.reset_balance_on_death else announced,
            hp=hp,
            dry=dry,
            living=living,
            took_part=alive,
            bids=bids,
            won=won,
            announced=announced,
        )
        record: dict[str, Any] = {
            "actions": bids,
            "effective": effective,
            "supply": supply,
            "won": won,
            "left": remaining,
            "price": partial(price_of, effective, won),
            "over_budget": over_budget,
            "balance": announced,
            "hp": hp,
            "dry": dry,
            "alive": alive,
            "died": died,
        }
        rewards = (next_state.over & living).astype(np.float64)
        return next_state, Outcome(rewards, ~living | next_state.over, Later(record))

    def _allocate(self, bids: PerPlayer, supply: PerTable) -> tuple[PerPlayer, PerTable]:
        first = self.precedence
        ranked = looked_up(first, np.argsort(-bids[first], axis=0, kind="stable"))
        cells = ranked * supply.size + np.arange(supply.size).reshape(supply.shape)
        served, remaining = bids.take(cells) > NO_BID, supply
        for rank, need in enumerate(looked_up(self.requirements, ranked)):
            fits = served[rank] = served[rank] & (need <= remaining)
            remaining = remaining - need * fits
            if self.allocation == "stop":
                served[rank + 1 :] &= fits
        won = np.empty_like(served)
        won.put(cells, served)
        return won, remaining

    def mask(self, state: WaterAllocationState, seats: Any = None) -> Array:
        mask = super().mask(state, seats)
        mask[..., 0] = True  # the dead have nothing but "no bid"
        return mask

    def decode(self, state: WaterAllocationState, seat: int, action: Any) -> Action:
        """Turn an action into one of the rules: a finer bid is rounded down, below 0 is no bid."""
        if type(action) is int and self.unit == 1:  # a short way for most
            return super().decode(state, seat, max(NO_BID, action))
        value, kinds = array_of(action), "iuf" if self.unit > 1 else "iu"
        if value.size == 1 and value.dtype.kind in kinds and np.isfinite(value):
            exact = max(NO_BID, floor(Fraction(repr(value.item())) * self.unit))
            action = exact if self.unit == 1 else exact / self.unit
        return super().decode(state, seat, action)

    # -- what players know -------------------------------------------------------------------------

    def hears(self, state: WaterAllocationState) -> PerPlayer:
        return self.asked(state) | state.took_part

    def known(self) -> Sequence[Fact]:
        water, rich, unit = self._most_water, self._richest / self.unit, self.unit
        need, worst = int(self.requirements.max()), -float(self.hp_max + self.days)
        # The living are told before they bid, and all who took part hear of the last day.
        asked = once(self.asked)
        own_fact = lambda name, of, *about: Fact(name, lambda s: of(s) * asked(s), 0, *about)
        news = lambda name, of, *about: Fact(name, lambda s: of(s) * s.took_part, *about)
        each = lambda values: lambda s: tall(values, s.round.shape)
        last = lambda s: self.last_supply(s) * s.took_part
        dollars = lambda units: units if unit == 1 else units / unit
        purse, money_left = (lambda s: dollars(self.purse(s))), (lambda s: dollars(s.announced))
        bids = lambda s: dollars(np.minimum(s.bids, self._richest))  # nobody can ever pay more
        part = "1: seat {} was alive in the last day; else it is 0 in all these"
        life = "its health points after the day; 0 or less: it died"
        return (
            Fact("days", lambda s: s.round, 0, self.days, "days finished"),
            own_fact("supply", self.supply, water, "water today, units"),
            own_fact("balance", purse, rich, "own money today, salary included, dollars"),
            own_fact("hp", lambda s: s.hp, self.hp_max, "own health points"),
            own_fact("dry", lambda s: s.dry, self.days, "own days in a row without water"),
            own_fact("requirement", each(self.requirements), need, "own need a day, units"),
            own_fact("salary", each(dollars(self.salaries)), rich, "own salary a day, dollars"),
            Fact("last_supply", last, 0, water, "water of the last day, units"),
            news("took_part", lambda s: s.took_part, 0, 1, part, True),
            news("bid", bids, NO_BID / unit, rich, "its bid, dollars; below 0: none", True),
            news("won", lambda s: s.won, 0, 1, "1: it got water", True),
            news("balance", money_left, 0, rich, "its money after the day, dollars", True),
            news("hp", lambda s: s.hp, worst, self.hp_max, life, True),
            news("dry", lambda s: s.dry, 0, self.days, "its days in a row without water", True),
        )

    def teller(self, state: WaterAllocationState) -> Callable[[int], dict[str, Any]]:
        asked, purse, day = self.asked(state), self.purse(state), int(state.round)
        hp, dry = state.hp.tolist(), state.dry + (self.shown_dry_counter == "next_loss")
        today = {"day": day + 1, "supply": int(self.supply(state))}
        last = {
            "day": day,
            "supply": int(self.last_supply(state)),
            "residents": [
                {
                    "name": self.cast[seat].name,
                    "bid": self.money_in_words(state.bids[seat]),
                    "won": bool(state.won[seat]),
                    "balance": self.money_in_words(state.announced[seat]),
                    "hp": hp[seat],
                    "dry": int(dry[seat]),
                    "died": not state.living[seat],
                }
                for seat in np.flatnonzero(state.took_part)
            ],
        }

        def tell(seat: int) -> dict[str, Any]:
            balance = self.money_in_words(purse[seat])
            knowledge = {**today, "balance": balance, "hp": hp[seat], "dry": int(dry[seat])}
            shown = knowledge if asked[seat] else dict.fromkeys(knowledge)
            return shown | {"last": last if state.took_part[seat] else None}

        return tell

    def money_in_words(self, units: Any) -> int | str | None:
        """Write money for the players: whole dollars, or with all its decimals; None for no bid."""
        if units == NO_BID:
            return None
        whole, rest = divmod(int(units), self.unit)
        return f"{whole}.{rest:0{self.money_decimals}}" if self.money_decimals else whole

    def asks(self, state: WaterAllocationState, seat: int) -> SealedBid:
        remarks = (_LOGIC,) if self.remarks == "alympics" else ()
        purse = int(self.purse(state)[seat])
        return alike(SealedBid, "bid", 0, purse, self.money_decimals, remarks=remarks)

    def picture(self, state: WaterAllocationState) -> tuple[str, list[str], list[list[str]]]:
        done = int(state.round)
        water = f", {int(self.last_supply(state))} units of water" if done else ""
        rows = []
        for seat, name in enumerate(self.names()):
            bid, balance = (self.money_in_words(x[seat]) for x in (state.bids, state.balance))
            won, hp = "yes" if state.won[seat] else "", state.hp[seat]
            row = name, self.cast[seat].name, "" if bid is None else bid, won, balance
            rows.append([*map(str, row), str(hp) if state.living[seat] else "dead"])
        headers = ["seat", "resident", "bid", "water", "balance", "health"]
        return f"{self.title}: day {done} of {self.days}{water}", headers, rows
