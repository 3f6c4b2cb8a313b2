"""The water allocation challenge: residents bid for scarce water to survive a drought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any, ClassVar, NamedTuple, get_type_hints

import numpy as np

from llm_games.errors import BadParameter
from llm_games.facts import Column, check_choice, check_integer
from llm_games.questions import NO_BID, Action, Question, SealedBid
from llm_games.rulebook import LARGEST_DISCRETE, Array, Outcome, Rulebook, State, at, fresh


class Resident(NamedTuple):
    """One player: its name, its daily need of water (units) and its daily salary (dollars)."""

    name: str
    requirement: int
    salary: int


class Persona(NamedTuple):
    """Who a resident is, in words."""

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

PERSONAS = (
    Persona(
        "unemployed",
        "You find complicated ideas hard to follow and other people hard to read. "
        "You are quick-tempered, gloomy and inclined to act against others.",
        "You grew up poor, left school early for lack of money, and never found steady work.",
    ),
    Persona(
        "high-school teacher",
        "You are warm and understanding, good with people, of ordinary intellect.",
        "You come from a family that sticks together, and teach to do young people good.",
    ),
    Persona(
        "psychologist",
        "You are both bright and empathic, and good at helping people.",
        "You answered calls on a crisis line at school, studied psychology because of it, and "
        "became a therapist who joins feeling with clear thought.",
    ),
    Persona(
        "mathematician",
        "You are exceptionally intelligent, analyse everything and look for the optimum. "
        "You are awkward with people and shy of them.",
        "You spent a small-town childhood with books and puzzles, took a doctorate, and study "
        "abstract theorems.",
    ),
    Persona(
        "marketing executive",
        "You are clever and very charismatic. You read people well and use it to steer them.",
        "You grew up in a busy city, took a business degree, and made your name with campaigns "
        "that touched customers.",
    ),
)
"""Personas of `RESIDENTS`, after the paper's, in other words."""

UNSOLD = np.iinfo(np.int64).max
"""Above all prices."""

_SUPPLIES = {"low": (10, 20), "medium": (15, 25), "high": (20, 30)}


def _settings() -> dict[str, dict[str, Any]]:
    """Return the six settings of the paper: three supplies without and with personas."""
    return {
        f"setting_{3 * group + place + 1}": {
            "supply_low": low,
            "supply_high": high,
            "persona": persona,
        }
        for group, persona in enumerate(("none", "default"))
        for place, (low, high) in enumerate(_SUPPLIES.values())
    }


@dataclass(frozen=True)
class WaterAllocationState(State):
    """What a table looks like between two days. ``round`` counts the days finished.

    Money is in units of ``10 ** -money_decimals`` dollars.

    Attributes:
        supplies: water of all days, int64 ``(days, *batch)``.
        balance: money after the last day, before the next salary, int64 ``(players, *batch)``.
        hp: health points, int64 ``(players, *batch)``.
        dry: days in a row without water, int64 ``(players, *batch)``.
        living: bool ``(players, *batch)``.
        took_part: was alive in the last day, bool ``(players, *batch)``; False before the first.
        bids: as submitted in the last day, int64 ``(players, *batch)``; `NO_BID` for none.
        won: got water in the last day, bool ``(players, *batch)``.
        announced: money as announced after the last day, before a death took it away.
    """

    supplies: Array
    balance: Array
    hp: Array
    dry: Array
    living: Array
    took_part: Array
    bids: Array
    won: Array
    announced: Array


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
    title: ClassVar[str] = "Water allocation challenge"
    source: ClassVar[str] = "Alympics"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = _settings()

    players: int = 5
    """number of residents, at least 1; more than 5 need `residents`"""
    residents: tuple[Resident, ...] | None = None
    """a row ``(name, requirement, salary)`` for each player: units of water a day, at least 1, and
    whole dollars a day, at least 0; None: the paper's, the first `players` of them"""
    days: int = 20
    """days of a game, known to the players, at least 1"""
    supply_low: int = 10
    """smallest daily supply, units of water, at least 0"""
    supply_high: int = 20
    """largest daily supply, at least `supply_low`; all integers between are equally likely"""
    supply_upper_inclusive: bool = True
    """whether `supply_high` can occur; the authors' code leaves it out"""
    supplies: tuple[int, ...] | None = None
    """given supplies, one for each day, at least 0, or None to draw them"""
    hp_start: int = 8
    """health points at the start, 1 to `hp_max`"""
    hp_max: int = 10
    """most health points"""
    hp_gain: int = 2
    """health points that a day with water brings, at least 0"""
    balance_start: int = 0
    """whole dollars before the first salary, at least 0"""
    money_decimals: int = 0
    """decimals of a bid, 0 to 4; a finer bid is rounded down"""
    persona: str | tuple[Persona, ...] = "none"
    """``none``, ``default`` (the paper's, for its own residents), or a row ``(profession,
    personality, background)`` for each player, told to that player alone"""
    allocation: str = "skip"
    """``skip``: a bid that does not fit is passed over; ``stop``: it ends the day's allocation"""
    over_budget: str = "void"
    """a bid above the own balance: ``void``, ignored for the day; ``clip``, lowered to the
    balance; ``rule_break``, ignored and counted as a broken rule. It is announced as submitted"""
    no_bid: str = "none"
    """who does not bid takes no part (``none``) or bids 0 (``zero``)"""
    tie_rule: str = "lower_requirement"
    """equal bids: the lower requirement is first, then the lower seat (``lower_requirement``), or
    only the latter (``index``)"""
    reset_balance_on_death: bool = True
    """whether a dead resident's money becomes 0; only records show it"""
    shown_dry_counter: str = "days"
    """players are shown the dry ``days`` so far, or the ``next_loss``, the health that the next
    one costs"""

    def __post_init__(self) -> None:
        check_integer("players", self.players, 1)  # one resident alone is a game, too
        check_choice("failed_reply", self.failed_reply, ("fallback", "void_run"))
        check_integer("days", self.days, 1)
        check_integer("supply_low", self.supply_low, 0)
        check_choice("supply_upper_inclusive", self.supply_upper_inclusive, (True, False))
        least = self.supply_low + (not self.supply_upper_inclusive)
        check_integer("supply_high", self.supply_high, least, 10**9)
        check_integer("hp_max", self.hp_max, 1, 10**9)
        check_integer("hp_start", self.hp_start, 1, self.hp_max)
        check_integer("hp_gain", self.hp_gain, 0, 10**9)
        check_integer("balance_start", self.balance_start, 0, 10**9)
        check_integer("money_decimals", self.money_decimals, 0, 4)
        check_choice("allocation", self.allocation, ("skip", "stop"))
        check_choice("over_budget", self.over_budget, ("void", "clip", "rule_break"))
        check_choice("no_bid", self.no_bid, ("none", "zero"))
        check_choice("tie_rule", self.tie_rule, ("lower_requirement", "index"))
        check_choice("reset_balance_on_death", self.reset_balance_on_death, (True, False))
        check_choice("shown_dry_counter", self.shown_dry_counter, ("days", "next_loss"))
        self._check_tables()

    def _check_tables(self) -> None:
        """Check what has a row for each player or day, and keep it in its plain form."""
        if self.residents is not None:
            rows = _rows("residents", self.residents, Resident, self.players)
            object.__setattr__(self, "residents", rows)
        elif self.players > len(RESIDENTS):
            raise BadParameter(
                f"players must be an integer from 1 to {len(RESIDENTS)} unless residents has a "
                f"row (name, requirement, salary) for each, got {self.players}"
            )
        for name, requirement, salary in self.cast:
            if not isinstance(name, str) or not name.strip():
                raise BadParameter(f"the name of a resident must be a word, got {name!r}")
            check_integer(f"the requirement of {name}", requirement, 1, 10**9)
            check_integer(f"the salary of {name}", salary, 0, 10**9)
        if len({resident.name for resident in self.cast}) < self.players:
            raise BadParameter("residents must have different names")
        if self.supplies is not None:
            object.__setattr__(self, "supplies", self._given_supplies())
        if not isinstance(self.persona, str):
            rows = _rows("persona", self.persona, Persona, self.players)
            object.__setattr__(self, "persona", rows)
        elif self.persona == "default" and self.players > len(PERSONAS):
            raise BadParameter(
                f"persona 'default' has {len(PERSONAS)} rows for {self.players} players; give a "
                "row (profession, personality, background) for each"
            )
        else:
            check_choice("persona", self.persona, ("none", "default"))

    def _given_supplies(self) -> tuple[int, ...]:
        given: Any = self.supplies
        if not isinstance(given, (tuple, list)) or len(given) != self.days:
            raise BadParameter(f"supplies must be {self.days} integers, one a day, got {given!r}")
        for supply in given:
            check_integer("each of the supplies", supply, 0, 10**9)
        return tuple(int(supply) for supply in given)

    @cached_property
    def cast(self) -> tuple[Resident, ...]:
        """The residents, by seat."""
        return self.residents or RESIDENTS[: self.players]

    @cached_property
    def personas(self) -> tuple[Persona, ...] | None:
        """Who the residents are, by seat; None if nobody is told."""
        if not isinstance(self.persona, str):
            return self.persona
        return PERSONAS[: self.players] if self.persona == "default" else None

    @property
    def unit(self) -> int:
        return 10**self.money_decimals

    def _column(self, values: Any, batch: tuple[int, ...]) -> Array:
        return np.asarray(values).reshape(-1, *(1,) * len(batch))

    @cached_property
    def requirements(self) -> Array:
        """Units of water that each seat needs a day, int64 ``(players,)``."""
        return np.array([resident.requirement for resident in self.cast], np.int64)

    @cached_property
    def salaries(self) -> Array:
        """Money units that each seat is paid a day, int64 ``(players,)``."""
        return np.array([resident.salary * self.unit for resident in self.cast], np.int64)

    @cached_property
    def precedence(self) -> Array:
        """Seats in the order in which equal bids are served."""
        seats = np.arange(self.players)
        if self.tie_rule == "index":
            return seats
        return np.lexsort((seats, self.requirements))

    @property
    def supply_top(self) -> int:
        """The largest supply that can be drawn."""
        return self.supply_high - (not self.supply_upper_inclusive)

    @property
    def mean_supply(self) -> Fraction:
        """The mean of a day's supply."""
        return Fraction(self.supply_low + self.supply_top, 2)

    def terms(self) -> dict[str, Any]:
        who = [resident._asdict() for resident in self.cast]
        for resident, persona in zip(who, self.personas or (), strict=False):
            resident |= persona._asdict()
        told = {"residents": who, "supply_top": self.supply_top}
        return super().terms() | told | {"with_persona": self.personas is not None}

    def length(self) -> int | None:
        return self.days

    def bounds(self) -> tuple[int, int]:
        return NO_BID, self._richest

    @cached_property
    def _richest(self) -> int:
        return self.balance_start * self.unit + int(self.salaries.max()) * self.days

    @property
    def masked(self) -> bool:  # type: ignore[override]
        """Whether the bids that a seat can pay for are shown as a mask."""
        return self.unit == 1 and self.bounds()[1] - NO_BID < LARGEST_DISCRETE

    def reset(self, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> WaterAllocationState:
        shape = (self.players, *batch)
        nobody = np.zeros(shape, np.bool_)
        if self.supplies is None:
            drawn = rng.integers(self.supply_low, self.supply_top + 1, (self.days, *batch))
        else:
            drawn = np.broadcast_to(self._column(self.supplies, batch), (self.days, *batch))
        return WaterAllocationState(
            **fresh(batch),
            supplies=drawn,
            balance=np.full(shape, self.balance_start * self.unit, np.int64),
            hp=np.full(shape, self.hp_start, np.int64),
            dry=np.zeros(shape, np.int64),
            living=~nobody,
            took_part=nobody,
            bids=np.full(shape, NO_BID, np.int64),
            won=nobody,
            announced=np.zeros(shape, np.int64),
        )

    def supply(self, state: WaterAllocationState, ago: int = 0) -> Array:
        """Return the water of this day, or of `ago` days before, int64 ``(*batch)``.

        Where fewer than `ago` days are over, it means nothing.
        """
        return at(state.supplies, np.minimum(state.round - ago, self.days - 1))

    def purse(self, state: WaterAllocationState) -> Array:
        """Return what each seat can spend today, salary included, int64 ``(players, *batch)``."""
        return state.balance + self._column(self.salaries, state.round.shape) * state.living

    def asked(self, state: WaterAllocationState) -> Array:
        return state.living & ~state.over

    def alive(self, state: WaterAllocationState) -> Array:
        return self.asked(state)

    def legal(self, state: WaterAllocationState) -> tuple[Array, Array]:
        high = np.where(state.living, self.purse(state), NO_BID)
        return np.full(high.shape, NO_BID, np.int64), high

    def breaks(self, state: WaterAllocationState, actions: Array) -> Array:
        broke = actions < NO_BID
        if self.over_budget == "rule_break":
            broke |= actions > self.purse(state)
        return self.asked(state) & broke

    def fallback(self, state: WaterAllocationState) -> Array:
        return np.full(state.living.shape, NO_BID, np.int64)

    def mend(self, state: WaterAllocationState, actions: Array, broke: Array) -> Array:
        # A bid beyond the balance stays as it is: it is void, but it is announced.
        return np.maximum(actions, NO_BID)

    def play(
        self,
        state: WaterAllocationState,
        actions: Array,
        rng: np.random.Generator,
        broke: Array,
    ) -> tuple[WaterAllocationState, Outcome]:
        alive, purse, supply = state.living, self.purse(state), self.supply(state)
        bids = np.where(alive, actions, NO_BID)
        over_budget = bids > purse
        effective = self._effective(bids, purse, alive, over_budget)
        won, left = self._allocate(effective, supply)
        announced = purse - effective * won
        dry = (state.dry + alive) * ~won
        hp = state.hp - dry * alive
        hp = np.where(won, np.minimum(self.hp_max, hp + self.hp_gain), hp)
        living = alive & (hp > 0)
        died = alive ^ living
        after = state.but(
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
        price = np.where(won, effective, UNSOLD).min(axis=0)
        record = {
            "actions": bids,
            "effective": effective,
            "supply": supply,
            "won": won,
            "left": left,
            "price": np.where(price < UNSOLD, price, NO_BID),
            "over_budget": over_budget,
            "balance": announced,
            "hp": hp,
            "dry": dry,
            "alive": alive,
            "died": died,
        }
        rewards = (after.over & living).astype(np.float64)
        return after, Outcome(rewards, ~living | after.over, record)

    def _effective(self, bids: Array, purse: Array, alive: Array, over_budget: Array) -> Array:
        """Return the bids that are ranked, `NO_BID` for none, int64 ``(players, *batch)``."""
        if self.no_bid == "zero":
            bids = np.where(alive & (bids == NO_BID), 0, bids)
        if self.over_budget == "clip":
            return np.minimum(bids, purse)
        return np.where(over_budget, NO_BID, bids)

    def _allocate(self, bids: Array, supply: Array) -> tuple[Array, Array]:
        """Return who is served, bool ``(players, *batch)``, and the water left over."""
        first = self.precedence
        ranked = first[np.argsort(-bids[first], axis=0, kind="stable")]
        where = (ranked, *np.indices(supply.shape, sparse=True))
        needs, prices = self.requirements[ranked], bids[where]
        served, left = prices > NO_BID, supply
        for place, need in enumerate(needs):
            fits = served[place] = served[place] & (need <= left)
            left = left - need * fits
            if self.allocation == "stop":
                served[place + 1 :] &= fits
        won = np.empty_like(served)
        won[where] = served
        return won, left

    def decode(self, state: WaterAllocationState, seat: int, action: Any) -> Action:
        """Turn an action into one of the rules: a finer bid is rounded down, below 0 is no bid."""
        if self.unit == 1 and type(action) is int:
            return super().decode(state, seat, max(NO_BID, action))
        value = np.asarray(action)
        kinds = "iuf" if self.unit > 1 else "iu"
        if value.size == 1 and value.dtype.kind in kinds and np.isfinite(value):
            exact = max(NO_BID, floor(Fraction(repr(value.item())) * self.unit))
            action = exact if self.unit == 1 else exact / self.unit
        return super().decode(state, seat, action)

    def mask(self, state: WaterAllocationState) -> Array:
        mask = super().mask(state)
        mask[..., 0] = True  # the dead have nothing but "no bid"
        return mask

    def columns(self) -> tuple[Column, ...]:
        n = self.players
        water = max(self.supply_top, *(self.supplies or (0,)))
        rich = self.bounds()[1] / self.unit
        worst = -float(self.hp_max + self.days)
        own = (
            Column("days", 0, self.days, "days finished"),
            Column("supply", 0, water, "water today, units"),
            Column("balance", 0, rich, "own money today, salary included, dollars"),
            Column("hp", 0, self.hp_max, "own health points"),
            Column("dry", 0, self.days, "own days in a row without water"),
            Column("requirement", 0, int(self.requirements.max()), "own need a day, units"),
            Column("salary", 0, rich, "own salary a day, dollars"),
            Column("last_supply", 0, water, "water of the last day, units"),
        )
        kinds = (
            ("took_part", 0, 1, "1: seat {} was alive in the last day; else it is 0 in all these"),
            ("bid", NO_BID / self.unit, rich, "its bid, dollars; below 0: none"),
            ("won", 0, 1, "1: it got water"),
            ("balance", 0, rich, "its money after the day, dollars"),
            ("hp", worst, self.hp_max, "its health points after the day; 0 or less: it died"),
            ("dry", 0, self.days, "its days in a row without water"),
        )
        each = (
            Column(f"{kind}_{i}", low, high, meaning.format(i))
            for kind, low, high, meaning in kinds
            for i in range(n)
        )
        return (*own, *each)

    def observe(self, state: WaterAllocationState) -> Array:
        n, batch = self.players, state.round.shape
        rows = np.empty((len(self.column_index), n, *batch), np.float32)
        asked, heard, unit = self.asked(state), state.took_part, self.unit
        notice = (
            self.supply(state),
            self.purse(state) / unit,
            state.hp,
            state.dry,
            self._column(self.requirements, batch),
            self._column(self.salaries / unit, batch),
        )
        rows[0] = state.round * (asked | heard)
        for place, value in enumerate(notice, start=1):
            rows[place] = value * asked
        rows[7] = self.supply(state, ago=1) * heard
        bids = np.minimum(state.bids, self._richest)  # a larger one nobody can ever pay
        news = (heard, bids / unit, state.won, state.announced / unit, state.hp, state.dry)
        told = np.empty((len(news), n, *batch), np.float32)
        for place, value in enumerate(news):
            told[place] = value * heard
        # All who took part hear the same of every one who did.
        np.multiply(told[:, :, None], heard, out=rows[8:].reshape(len(news), n, n, *batch))
        return rows.transpose(*range(1, rows.ndim), 0)

    def money_in_words(self, units: Any) -> int | str:
        """Write money for the players: whole dollars, or with all its decimals."""
        whole, rest = divmod(int(units), self.unit)
        return f"{whole}.{rest:0{self.money_decimals}}" if self.money_decimals else whole

    def _shown(self, dry: Any) -> int:
        return int(dry) + (self.shown_dry_counter == "next_loss")

    def told(self, state: WaterAllocationState, player: int) -> dict[str, Any]:
        today: dict[str, Any] = dict.fromkeys(("day", "supply", "balance", "hp", "dry"))
        if self.asked(state)[player]:
            today = {
                "day": int(state.round) + 1,
                "supply": int(self.supply(state)),
                "balance": self.money_in_words(self.purse(state)[player]),
                "hp": int(state.hp[player]),
                "dry": self._shown(state.dry[player]),
            }
        return today | {"last": self._announcement(state) if state.took_part[player] else None}

    def _announcement(self, state: WaterAllocationState) -> dict[str, Any]:
        return {
            "day": int(state.round),
            "supply": int(self.supply(state, ago=1)),
            "residents": [
                {
                    "name": self.cast[seat].name,
                    "bid": None
                    if state.bids[seat] == NO_BID
                    else self.money_in_words(state.bids[seat]),
                    "won": bool(state.won[seat]),
                    "balance": self.money_in_words(state.announced[seat]),
                    "hp": int(state.hp[seat]),
                    "dry": self._shown(state.dry[seat]),
                    "died": not state.living[seat],
                }
                for seat in np.flatnonzero(state.took_part)
            ],
        }

    def question(self, state: WaterAllocationState, player: int) -> Question | None:
        if not self.asked(state)[player]:
            return None
        return SealedBid("bid", 0, int(self.purse(state)[player]), self.money_decimals)

    def picture(self, state: WaterAllocationState) -> tuple[str, list[str], list[list[str]]]:
        done = int(state.round)
        caption = f"{self.title}: day {done} of {self.days}"
        if done:
            caption += f", {int(self.supply(state, ago=1))} units of water"
        rows = []
        for seat, resident in enumerate(self.cast):
            bid = "" if state.bids[seat] == NO_BID else str(self.money_in_words(state.bids[seat]))
            water = "yes" if state.won[seat] else ""
            life = str(int(state.hp[seat])) if state.living[seat] else "dead"
            money = str(self.money_in_words(state.balance[seat]))
            rows.append([self.names()[seat], resident.name, bid, water, money, life])
        return caption, ["seat", "resident", "bid", "water", "balance", "health"], rows


def _rows(name: str, rows: Any, kind: Any, players: int) -> tuple[Any, ...]:
    """Read a table with a row for each player, as sequences or mappings (persona: named or not)."""
    fields: tuple[str, ...] = kind._fields
    shape = f"{players} rows ({', '.join(fields)}), one for each player"
    if not isinstance(rows, (tuple, list)) or len(rows) != players:
        raise BadParameter(f"{name} must be {shape}, got {rows!r}")
    try:
        made = tuple(
            kind(**{k: v for k, v in row.items() if k in fields or k != "name"})
            if isinstance(row, Mapping)
            else kind(*row)
            for row in rows
        )
    except TypeError:
        raise BadParameter(f"{name} must be {shape}, got {rows!r}") from None
    for row in made:
        for field, value in zip(fields, row, strict=True):
            if get_type_hints(kind)[field] is str and not isinstance(value, str):
                raise BadParameter(f"{field} of {name} must be text, got {value!r}")
    return made
