"""Bertrand competition: firms that sell similar goods set prices, round after round."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from llm_games import promises as announced
from llm_games.arrays import any_true, looked_up, tall
from llm_games.asides import Aside, Text
from llm_games.errors import BadParameter
from llm_games.facts import LARGEST, Each, Fact, exact_of, in_units, param, ratio_of
from llm_games.questions import BadReply, Real, within_int64
from llm_games.rounds import MOST_ROUNDS, Paid, Rounds, Seen
from llm_games.rulebook import Array, Chance, Goal, PerPlayer, PerTable, State

PERSONAS = ("none", "explorer", "aggressive", "ruthless", "uncooperative")
MOST_WINDOW = 10_000
_PAST = ("past_prices", "past_demands", "past_profits")
_MEANS = ("mean_prices", "mean_demands", "mean_profits")
LINEAR, LOGIT = ("demand", "linear"), ("demand", "logit")
WRITTEN = 6  # decimals of a price that has no end
_TALK: dict[str, Any] = {"talk": {"turns": 3, "order": "shuffled_per_round"}}
_AUTHORS: dict[str, Any] = {
    "demand_clip": "none",
    "price_floor": "cost",
    "price_cap": "none",
    "profit_rounding": "truncate",
}
"""What the authors' program does otherwise than the paper says."""


def nearest(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


@dataclass(frozen=True)
class PriceQuestion(Real):
    """A price from 0 to `highest`; the action counts ticks, `per` to 1, halves up.

    Up to `accepted` ticks are taken too, though nobody is told.
    """

    per: int
    highest: Fraction
    accepted: int = 0

    def read(self, value: Any) -> int:
        units = self._units(value)
        exact = Fraction(units) / 10**self.decimals
        ticks = within_int64(nearest(exact * self.per))
        if 0 <= exact <= self.highest:
            return min(ticks, self.high)
        if self.highest < exact and ticks <= self.accepted:
            return ticks
        ticks = min(ticks, -1) if exact < 0 else max(ticks, self.high + 1)
        shown = float(units) / 10**self.decimals  # of a Decimal beyond floats, infinity
        raise BadReply("range", f"{shown:g} is not {self.wanted()}", ticks)

    def mended(self, value: Any) -> tuple[Any, set[str]]:
        """Return a value as it is: a price is a number, or a text of just a number."""
        return value, set()

    def mentioned(self, sentence: str) -> Iterator[int]:
        for amount in announced.numbers(sentence):  # in talk it may well have a dollar sign
            with suppress(BadReply):
                yield self.read(super().mended(amount)[0])

    def value_schema(self) -> dict[str, Any]:
        limits = {"minimum": self.value_of(self.low), "maximum": self.value_of(self.high)}
        return {"type": "number", "multipleOf": 10**-self.decimals, **limits}

    def value_of(self, action: Any) -> Any:
        whole, rest = divmod(int(action), self.per)
        return whole if rest == 0 else round(int(action) / self.per, self.decimals)

    def spoken(self, action: Any) -> str:
        """Write a price without an exponent."""
        return format(Decimal(repr(self.value_of(action))), "f")

    def reply(self, action: Any) -> str:
        return f'{{"{self.key}": {self.spoken(action)}}}'


class Quantities(NamedTuple):
    """Demand of m firms as whole numbers: ``(reach - own_slope * P_i + cross * sum P) / parts``.

    Prices P are in ticks; the sum is over all m, firm i among them.
    """

    reach: int
    slope: int
    cross: int
    parts: int


def whole(*parts: Fraction) -> Quantities:
    """Bring rational coefficients of a demand to their common denominator."""
    (reach, slope, cross), scale = in_units(parts)
    return Quantities(reach, slope, cross, scale)


def _each(name: str, value: Any) -> Each[Fraction]:
    if isinstance(value, tuple):
        return tuple(ratio_of(f"each {name}", entry) for entry in value)
    return ratio_of(name, value)


def _tick(name: str, value: Any) -> Fraction:
    tick = ratio_of(name, value)
    if tick.numerator != 1:
        raise BadParameter(f'{name} must be 1/k with a whole number k, as "1/100", got {value!r}')
    return tick


def _prices(name: str, value: Any) -> tuple[Fraction, ...]:
    prices = _each(name, value)
    if not isinstance(prices, tuple) or len(prices) < 2 or list(prices) != sorted(set(prices)):
        raise BadParameter(
            f"{name} must be at least two prices, the lowest first, as (5.8, 7, 8.2), got {value!r}"
        )
    return prices


@dataclass(frozen=True)
class BertrandState(State):
    """The last `window` rounds and blocks, oldest first, ``(window, players, *batch)``; 0: none.

    Prices in ticks, demands in units of the good, profits in money; means are over complete blocks.
    """

    past_prices: Array
    past_demands: Array
    past_profits: Array
    mean_prices: Array
    mean_demands: Array
    mean_profits: Array

    prices = property(lambda self: self.past_prices[-1])  # of the last round, as are the next two
    demands = property(lambda self: self.past_demands[-1])
    profits = property(lambda self: self.past_profits[-1])


@dataclass(frozen=True)
class BertrandCompetition(Rounds):
    """Bertrand competition.

    Sources: Shall We Talk (arXiv 2402.12327), section 4; Singh & Vives 1984; Calvano et al. 2020.

    Each round all firms set a price at the same time, in ticks. Inverse demand of firm i is
    ``a - beta * q_i - d * (sum of the others' q)``, or logit after Calvano et al. 2020. A round
    pays ``(price - cost) * demand``. A missing or illegal price counts as the own one before. A
    first round that is `forced` is over when play begins, and pays nobody.
    """

    name: ClassVar[str] = "bertrand_competition"
    title: ClassVar[str] = "Bertrand competition"
    source: ClassVar[str] = "Shall We Talk; Calvano et al. 2020"
    shared_goal: ClassVar[Goal] = Goal(unit="profits")
    edition: ClassVar[int] = 1
    personal: ClassVar[tuple[str, ...]] = ("cost", "initial_price", "personas")
    shown_last = "request"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "shall_we_talk_bc_silent": {},
        "shall_we_talk_bc_talk": _TALK,
        "shall_we_talk_bc_uncooperative": _TALK | {"switch_round": 401},
        "shall_we_talk_bc_authors": _AUTHORS,
        "shall_we_talk_bc_talk_authors": _TALK | _AUTHORS,
        "logit": {"demand": "logit", "cost": 1, "a": 3, "tick": "1/10000", "decimals": 4},
    }

    players: int = param(2, "number of firms, at least 2")
    rounds: int = param(1000, "rounds of a run, not told", low=1, high=MOST_ROUNDS, stakes="always")
    a: Fraction = param(Fraction(14), "highest price; at it nobody buys", read=ratio_of)
    beta: Fraction = param(
        Fraction(1, 150), "own slope of inverse demand, above 0", read=ratio_of, stakes=LINEAR
    )
    d: Fraction = param(
        Fraction(1, 300), "substitution, 0 to `beta`, where goods are the same", read=ratio_of,
        stakes=LINEAR,
    )  # fmt: skip
    cost: Each[Fraction] = param(Fraction(2), "cost of a unit below `a`, or of each", read=_each)
    tick: Fraction = param(Fraction(1, 100), "prices are multiples of it, 1/k", read=_tick)
    initial_price: Each[Fraction] | None = param(
        None,
        "price of round 1, 0 to `a`, or of each",
        read=_each,
        none="own cost",
        stakes=("first_round", "free"),
    )
    window: int = param(20, "rounds told one by one; rounds of a block", low=1, high=MOST_WINDOW)
    reflect: bool = param(True, "a model states its strategy after every block", hidden=True)
    reflection_sees_talk: bool = param(False, "it is shown the talk of its round", hidden=True)
    personas: Each[str] = param("none", "what firms are told to be, or each", each=PERSONAS)
    switch_round: int | None = param(
        None, "from this round on firms are another", low=2, none="never"
    )
    switch_persona: Each[str] = param("uncooperative", "what they then are", each=PERSONAS)
    demand: str = param(
        "linear", linear="by `a`, `beta`, `d`", logit="of Calvano et al.", stakes="always"
    )
    quality: Fraction = param(
        Fraction(2), "of logit demand: g of all goods", read=ratio_of, stakes=LOGIT
    )
    outside: int | Fraction = param(
        0, "of logit demand: g of buying nothing", read=exact_of, stakes=LOGIT
    )
    mu: Fraction = param(
        Fraction(1, 4), "of logit demand: spread, above 0", read=ratio_of, stakes=LOGIT
    )
    demand_clip: str = param(
        "corner",
        corner="who is priced out sells 0, the others share the market without it",
        own="demands below 0 are 0, the others' stay",
        none="demands may be below 0",
        stakes="always",
    )
    price_floor: str = param(
        "zero",
        zero="any price from 0",
        cost="lower prices are played as the cost",
        stakes="changed",
    )
    price_cap: str = param(
        "a", words={"a": "above `a` is against the rules", "none": "accepted"}, stakes="changed"
    )
    first_round: str = param(
        "forced", forced="at `initial_price`", free="firms set its prices", stakes="changed"
    )
    profit_rounding: str = param(
        "exact",
        "the authors' program cuts doubles, so that some 4 % of its profits are 1 off",
        exact="not rounded",
        truncate="cut towards 0 to whole units",
        stakes="changed",
    )
    decimals: int = param(2, "decimals of what firms are told", low=0, high=9)
    history: bool = param(False, "numbers, too, tell the rounds and blocks that words tell",
                          hidden=True)  # fmt: skip
    price_grid: tuple[Fraction, ...] | None = param(
        None, "prices that indexes of learners stand for", read=_prices, none="equal steps",
        hidden=True,
    )  # fmt: skip

    # -- parameters ----------------------------------------------------------------------------

    def check(self) -> None:
        costs, high = self.costs, self.a
        for name, values in (("cost", costs), ("initial_price", self.initial)):
            if len(values) != self.players:
                raise BadParameter(
                    f"{name} must be one for all or {self.players}, one for each of "
                    f"{self.players} players, got {getattr(self, name)!r}"
                )
        if not max(costs) < high:
            raise BadParameter(f"cost must be below a ({high}), got {max(costs)}")
        if self.ticks(costs, up=True).max() > self.bounds()[1]:
            raise BadParameter(
                f"tick must leave a price from cost ({max(costs)}) to a ({high}), got {self.tick}"
            )
        if not self.beta or not self.mu:
            raise BadParameter(f"beta and mu must be above 0, got {self.beta} and {self.mu}")
        if self.d > self.beta:
            raise BadParameter(f"d must be from 0 to beta ({self.beta}), got {self.d}")
        for name, prices in (("initial_price", self.initial), ("price_grid", self.price_grid)):
            if prices and max(prices) > high:
                raise BadParameter(f"{name} must be from 0 to a ({high}), got {max(prices)}")
        if self.first_round == "forced" and self.rounds < 2:
            raise BadParameter(
                f"rounds must be at least 2 where the first is forced, got {self.rounds}; or "
                'first_round="free"'
            )

    @cached_property
    def unit(self) -> int:
        return self.tick.denominator

    @cached_property
    def costs(self) -> tuple[Fraction, ...]:
        return self.of_each("cost")

    @cached_property
    def initial(self) -> tuple[Fraction, ...]:
        return self.costs if self.initial_price is None else self.of_each("initial_price")

    def ticks(self, prices: Sequence[Fraction], up: bool = False) -> Array:
        """Return prices in ticks, rounded to the nearest (halves up), or all `up`; int64."""
        nearby = math.ceil if up else nearest
        return np.array([nearby(price * self.unit) for price in prices], np.int64)

    @property
    def grid(self) -> tuple[int, ...] | None:
        return None if self.price_grid is None else tuple(self.ticks(self.price_grid).tolist())

    def bounds(self) -> tuple[int, int]:
        return self._bounds

    @cached_property
    def _bounds(self) -> tuple[int, int]:
        return 0, math.floor(self.a * self.unit)

    @property
    def largest(self) -> int:
        """The largest whole number that a profit is worked out of, or is divided by."""
        return self._reached(self.limit)

    @cached_property
    def limit(self) -> int:
        """The highest price that is accepted, in ticks."""
        high = price = self.bounds()[1]
        if self.price_cap == "none":
            price = max(high, math.isqrt(LARGEST))
            while price > high and self._reached(price) > LARGEST:
                price = max(price // 2, high)
        return price

    def _reached(self, price: int) -> int:
        scale = self.shared * self.unit
        margin = max(self.shared * price, *(int(cost * scale) for cost in self.costs))
        reaches = [q.reach + (q.slope + q.cross * self.players) * price for q in self.quantities]
        return max(margin * max(reaches), scale * max(q.parts for q in self.quantities))

    @cached_property
    def ranges(self) -> tuple[float, float, float]:
        """The highest accepted price, and the least and the most that a firm can sell."""
        price, rivals, q = self.limit, self.players - 1, self.quantities[-1]
        high = float(max(self.a, Fraction(price, self.unit)))
        if self.demand == "logit":
            return high, 0.0, 1.0
        if self.demand_clip == "corner" or self.d == self.beta:
            return high, 0.0, float(self.a / self.beta)
        least = min(q.reach - (q.slope - q.cross) * price, 0) * (self.demand_clip == "none")
        return high, least / q.parts, (q.reach + q.cross * rivals * price) / q.parts

    # -- demand --------------------------------------------------------------------------------

    @cached_property
    def shared(self) -> int:
        return math.lcm(*(cost.denominator for cost in self.costs))

    @cached_property
    def quantities(self) -> tuple[Quantities, ...]:
        """Linear demand where 1, 2, ... firms sell, or where all do if none is ever left out."""
        if self.demand == "logit":
            return (Quantities(1, 0, 0, 1),)
        if self.d == self.beta:
            return (whole(self.a / self.d, 1 / (self.d * self.unit), Fraction(0)),)
        least = 1 if self.demand_clip == "corner" else self.players
        return tuple(self._quantities(firms) for firms in range(least, self.players + 1))

    def _quantities(self, firms: int) -> Quantities:
        a, beta, d, k = self.a, self.beta, self.d, self.unit
        shared = 1 / ((beta - d) * (beta + (firms - 1) * d))
        slope = shared * (beta + (firms - 1) * d) / k
        return whole(a * (beta - d) * shared, slope, d * shared / k)

    def market(self, prices: PerPlayer) -> tuple[PerPlayer, PerPlayer]:
        """Return demands and profits at prices in ticks, float64 ``(firms, *batch)``.

        Of linear demand both are one division of exact integers.
        """
        if self.demand == "logit":
            demands, profits = self.logit(prices / self.unit)
            cut = self.profit_rounding == "truncate"
            return demands, np.trunc(profits) if cut else profits
        demands, parts = self._alike(prices) if self.d == self.beta else self._linear(prices)
        costs = tall(self._margins_from, prices.shape[1:])
        gains, scale = (self.shared * prices - costs) * demands, self.shared * self.unit * parts
        if self.profit_rounding == "truncate":
            return demands / parts, (np.sign(gains) * (np.abs(gains) // scale)).astype(np.float64)
        return demands / parts, gains / scale

    @cached_property
    def _margins_from(self) -> Array:
        """Costs in parts of a tick, `shared` parts to one."""
        return np.array([int(cost * self.shared * self.unit) for cost in self.costs], np.int64)

    def _linear(self, prices: PerPlayer) -> tuple[PerPlayer, Any]:
        """Return demands as whole numbers, and the number of parts to 1."""
        q, high = self.quantities[-1], self.bounds()[1]
        wanted = q.reach - q.slope * prices + q.cross * prices.sum(axis=0)
        if self.demand_clip != "corner":
            return (np.maximum(wanted, 0) if self.demand_clip == "own" else wanted), q.parts
        outside: Any = (wanted < 0) | (prices > high)
        if not any_true(outside):  # the usual case, fast
            return wanted, q.parts
        selling = prices <= high
        for _ in range(self.players + 1):  # with every turn a firm more is priced out
            reach, slope, cross, parts = looked_up(self._table, selling.sum(axis=0), 1)
            total = np.where(selling, prices, 0).sum(axis=0)
            wanted = np.where(selling, reach - slope * prices + cross * total, 0)
            priced_out: Any = (wanted < 0).any(axis=0)
            if not any_true(priced_out):
                break
            dearest = np.where(selling, prices, -1).max(axis=0)
            selling = selling & ~(priced_out & (prices == dearest))
        return wanted, parts

    @cached_property
    def _table(self) -> Array:
        """The quantities by how many firms sell, int64 ``(4, firms + 1)``."""
        return np.array([(0, 0, 0, 1), *self.quantities], np.int64).T

    def _alike(self, prices: PerPlayer) -> tuple[PerPlayer, Any]:
        """Return the same for identical goods: the cheapest firms share the demand."""
        ((reach, slope, _, parts),) = self.quantities
        cheapest = prices == prices.min(axis=0)
        wanted = np.maximum(reach - slope * prices, 0) * cheapest
        return wanted, parts * cheapest.sum(axis=0)

    def logit(self, prices: PerPlayer) -> tuple[PerPlayer, PerPlayer]:
        mu, good, none = float(self.mu), float(self.quality), float(self.outside)
        best = np.maximum((good - prices).max(axis=0), none)
        wanted = np.exp((good - prices - best) / mu)
        demands = wanted / (wanted.sum(axis=0) + np.exp((none - best) / mu))
        return demands, (prices - self._own_costs(prices.shape[1:])) * demands

    # -- play ----------------------------------------------------------------------------------

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> BertrandState:
        shape = self.window, self.players, *batch
        past = {name: np.zeros(shape) for name in (*_PAST[1:], *_MEANS)}
        start = self.first(BertrandState, batch, past_prices=np.zeros(shape, np.int64), **past)
        if self.first_round == "free":
            return start
        _, changes, _ = self.pay(start, self._first(batch), np.zeros((self.players, *batch)))
        return start.replace(round=start.round + 1, **changes)

    def _first(self, batch: tuple[int, ...]) -> PerPlayer:
        return self.each(self.ticks(self.initial), batch)

    @property
    def begun(self) -> int:
        return int(self.first_round == "forced")

    def length(self) -> int:
        return self.rounds - self.begun

    def fallback(self, state: BertrandState) -> PerPlayer:
        return np.where(state.round > 0, state.prices, self._first(state.round.shape))

    def breaks(self, state: BertrandState, actions: PerPlayer) -> PerPlayer:
        outside = (actions < 0) | (actions > self.limit)
        return outside & self.asked(state) if any_true(outside) else outside

    def pay(self, state: BertrandState, actions: PerPlayer, broke: PerPlayer) -> Paid:
        prices = actions
        if self.price_floor == "cost":
            least = self.each(self.ticks(self.costs, up=True), actions.shape[1:])
            prices = np.maximum(actions, least)
        demands, profits = self.market(prices)
        done = state.round + 1
        changes = self._remembered(state, done, (prices, demands, profits))
        record = {"round": done, "prices": prices, "demands": demands, "profits": profits}
        return profits, changes, record

    def _remembered(self, state: BertrandState, played: PerTable, figures: Any) -> dict[str, Array]:
        """Return the windows after a round, and the means of blocks where one is complete."""
        changes = {}
        for name, value in zip(_PAST, figures, strict=True):
            changes[name] = np.concatenate([getattr(state, name)[1:], value[None]])
        full = played % self.window == 0
        if any_true(full):
            for name, past in zip(_MEANS, _PAST, strict=True):
                old, mean = getattr(state, name), changes[past].mean(axis=0)
                changes[name] = np.where(full, np.concatenate([old[1:], mean[None]]), old)
        return changes

    # -- what firms know -----------------------------------------------------------------------

    def block_ends(self, state: BertrandState) -> PerTable:
        ends: PerTable = (state.round > 0) & (state.round % self.window == 0)
        return ends

    def persona(self, done: int, seat: int) -> str | None:
        switched = self.switch_round is not None and done + 1 >= self.switch_round
        word: str = self.of_each("switch_persona" if switched else "personas")[seat]
        return None if word == "none" else word

    def terms(self) -> dict[str, Any]:
        return super().terms() | {"costs": self.costs, "names": self.names()}

    def known(self) -> Sequence[Fact]:
        cost = lambda s: np.broadcast_to(self._own_costs(s.round.shape), s.prices.shape)
        current = Fact("round", lambda s: s.round + 1, 1, MOST_ROUNDS + 1, "round to play")
        facts = [current, self.seat, Fact("cost", cost, 0, float(self.a), "own cost of a unit")]
        facts += self._figures(_PAST, 1, "", "in the last round")
        return facts + self._history() if self.history else facts

    def recalled(self) -> Sequence[Fact]:
        return () if self.history else self._history()

    def _history(self) -> list[Fact]:
        facts: list[Fact] = []
        for back in range(2, self.window + 1):
            facts += self._figures(_PAST, back, f"_ago_{back}", f"{back} rounds ago")
        for back in range(1, self.window + 1):
            meaning = f"mean of the block before the last {back - 1}, where one was just completed"
            facts += self._figures(_MEANS, back, f"_block_{back}", meaning)
        return facts

    def _figures(self, names: Sequence[str], age: int, end: str, meaning: str) -> list[Fact]:
        """Return the own figures and all prices of a window's entry, counted from its end."""
        (high, lower, upper), unit = self.ranges, self.unit
        largest_profit = high * max(upper, -lower)
        is_told = self.block_ends if names is _MEANS else lambda s: True
        price, demand, profit = (
            lambda s, name=name: getattr(s, name)[-age] * is_told(s) for name in names
        )
        prices = lambda s: price(s) / unit
        return [
            Fact(f"price{end}", prices, 0, high, f"own price {meaning}"),
            Fact(f"demand{end}", demand, lower, upper, f"own demand {meaning}"),
            Fact(f"profit{end}", profit, -largest_profit, largest_profit, f"own profit {meaning}"),
            Fact(f"price{end}", prices, 0, high, f"price of seat {{}} {meaning}", True),
        ]

    def _own_costs(self, batch: tuple[int, ...]) -> Array:
        return tall(np.array([*map(float, self.costs)]), batch)

    def teller(self, state: BertrandState) -> Callable[[int], dict[str, Any]]:
        """Tell the round, the persona, the rounds in the window, and means of blocks."""
        done, window = int(state.round), self.window
        past = self._rows(state, _PAST, min(done, window))
        count = min(done // window, window) * bool(self.block_ends(state))
        blocks = self._rows(state, _MEANS, count)

        def tell(seat: int) -> dict[str, Any]:
            rows = [{"round": done - back, **row[seat]} for back, row in past]
            means = [
                {"first": done - (back + 1) * window + 1, "last": done - back * window, **row[seat]}
                for back, row in blocks
            ]
            persona = self.persona(done, seat)
            return {"round": done + 1, "persona": persona, "past": rows, "blocks": means}

        return tell

    def _rows(self, state: BertrandState, names: Sequence[str], count: int) -> list[Any]:
        """Return a window's latest figures by seat, oldest first, each with its age."""
        prices, demands, profits = (
            getattr(state, name)[self.window - count :].tolist() for name in names
        )
        rows = []
        for index, figures in enumerate(zip(prices, demands, profits, strict=True)):
            price = [ticks / self.unit for ticks in figures[0]]
            each = enumerate(zip(price, *figures[1:], strict=True))
            rows.append((count - 1 - index, [
                {"price": p, "demand": d, "profit": gain, "rivals": price[:i] + price[i + 1 :]}
                for i, (p, d, gain) in each
            ]))  # fmt: skip
        return rows

    @property
    def seats_differ(self) -> str:
        return "the firms' costs differ" if len(set(self.costs)) > 1 else ""

    @property
    def stake(self) -> tuple[float, float]:
        high, lower, upper = self.ranges
        margins = -float(max(self.costs)), high - float(min(self.costs))
        profits = [margin * demand for margin in margins for demand in (lower, upper)]
        return min(profits), max(profits)

    def asks(self, state: BertrandState, seat: int) -> PriceQuestion:
        return self._question

    @cached_property
    def _question(self) -> PriceQuestion:
        high, ends = self.bounds()[1], range(WRITTEN)
        decimals = next((n for n in ends if 10**n % self.unit == 0), WRITTEN)
        free = self.limit if self.price_cap == "none" else 0
        details: dict[str, Any] = {"per": self.unit, "highest": self.a, "accepted": free}
        return PriceQuestion("price", 0, high, decimals, **details)

    def asides(self, state: BertrandState, seat: int, phase: str) -> Sequence[Aside]:
        if phase != "move" or not self.reflect or not self.block_ends(state):
            return ()
        question = Text("strategy", "your strategy for setting prices, in a few sentences")
        return (Aside("strategy", question, {}, self.reflection_sees_talk, self.window),)

    def spectacle(self, state: BertrandState) -> Seen:
        places = f".{self.decimals}f"
        return "", {
            "price": (state.prices / self.unit, places),
            "demand": (state.demands, places),
            "profit": (state.profits, places),
        }
