"""The sealed-bid auction: one item a round, private valuations, first or second price."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.errors import BadParameter
from llm_games.facts import Column, check_choice, check_integer, check_number, exact_of
from llm_games.questions import MISSING, Integer, Question, Real
from llm_games.rulebook import LARGEST_DISCRETE, Array, Outcome, Rulebook, State, fresh

LARGEST = 2**53
"""Where bids have no other limit: the largest integer that a double holds exactly."""
REVEAL = ("none", "bids", "bids_and_private")
_ECON_ARENA: dict[str, Any] = {
    "players": 5,
    "price": "second",
    "rounds": 1,
    "reveal_last": 3,
    "reasks": False,
}


@dataclass(frozen=True)
class SealedBidAuctionState(State):
    """What a table looks like between rounds.

    Attributes:
        valuations: of all rounds, int64 ``(rounds, players, *batch)``. All money is in units of
            ``10**-decimals`` in a session, else in whole numbers.
        lots: one number in [0, 1) a round that decides a tie, ``(rounds, *batch)``.
        bids: last round's, int64 ``(players, *batch)``; zeros before the first.
        winner: last round's seat, int64 ``(*batch)``; -1 before the first, and for no sale.
        price: what the winner paid, int64 ``(*batch)``; 0 before the first.
        broke: who broke a rule last round, bool ``(players, *batch)``.
    """

    valuations: Array
    lots: Array
    bids: Array
    winner: Array
    price: Array
    broke: Array


@dataclass(frozen=True)
class SealedBidAuction(Rulebook):
    """Sealed-bid auction.

    Sources: γ-Bench (arXiv 2403.11807), game 6; EconArena, section 3.1; Vickrey 1961.

    Each round every player knows its own valuation ``v`` of the item and bids ``b``, all at the
    same time. The highest bid wins (a tie is decided by lot) and pays the highest bid (`price`
    ``first``) or the second-highest (``second``). Payoff: ``v - price`` for the winner, else 0.
    A missing or illegal bid counts as 0.

    With `assets` it is a session of EconArena: valuations come from a normal distribution and
    stay the same in all rounds, bids are decimals from 0 to the own assets, of tied bidders the
    lowest seat wins, and every round starts from the same assets. A bidder who breaks a rule
    pays `entrance_fee`. Payoff: final assets minus assets. Actions are bids in units of
    ``10**-decimals``; one out of range stays in them, for `rule_breaker` to treat.
    """

    name: ClassVar[str] = "sealed_bid_auction"
    title: ClassVar[str] = "Sealed-bid auction"
    source: ClassVar[str] = "γ-Bench, EconArena"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "gamma_bench": {},
        "econ_arena": _ECON_ARENA | {"mu": 500, "sigma": 100, "assets": 1000},
        "econ_arena_L": _ECON_ARENA | {"mu": 50, "sigma": 10, "assets": 100},
        "econ_arena_M": _ECON_ARENA | {"mu": 500, "sigma": 100, "assets": 1000},
        "econ_arena_H": _ECON_ARENA | {"mu": 5000, "sigma": 1000, "assets": 10_000},
    }

    rounds: int = 20
    """rounds of a run (one item each), known to the players, at least 1"""
    price: str = "first"
    """the winner pays the highest bid (``first``) or the second-highest (``second``)"""
    valuation_min: int = 0
    """smallest possible valuation, at least 0"""
    valuation_max: int = 200
    """largest possible valuation, more than `valuation_min`"""
    interval: int = 10
    """step between valuations; divides their range, which needs a step for each player"""
    seed: int = 42
    """of the seeded valuations: round ``t`` uses ``random.Random(seed + t - 1)``"""
    valuation_draw: str = "seeded"
    """``seeded``: the same valuations at every table; ``random``: drawn anew for each table"""
    valuations: tuple[tuple[int, ...], ...] | None = None
    """given valuations, a row of `players` integers for each round (one row for a session), or
    None to draw them"""
    bid_range: str = "own_value"
    """``own_value``: 0 to the own valuation; ``unbounded``: any integer"""
    tie_rng: str = "own"
    """``own``: ties are decided by the table's generator; ``shared``: by the one that drew the
    round's seeded valuations, directly after them"""
    number_parse: str = "strict"
    """``strict``: whole numbers only; ``truncate``: fractions are cut towards zero"""
    assets: int | tuple[int, ...] | None = None
    """money of all bidders, or of each: makes it a session, which takes the parameters below and
    leaves those above from `valuation_min` on alone, but for `valuations`; None: no session"""
    mu: int | float = 500
    """mean of the valuations before they are cut, at least 1 and at most the assets (drawn ones)"""
    sigma: int | float = 100
    """their standard deviation, from 0 to the assets (drawn ones)"""
    value_rounding: str = "truncate"
    """``truncate``: whole numbers, fractions cut; ``none``: to `decimals`. What is then not above
    0, or above the own assets, is drawn again"""
    decimals: int = 2
    """decimals of money, 0 to 6; finer bids are rounded half-even"""
    entrance_fee: int | Fraction = 0
    """what a player pays who breaks a rule, from 0 to the assets"""
    min_valid_bids: int = 2
    """with fewer legal bids (1 or 2) nothing is sold; a single bidder pays 0"""
    rule_breaker: str = "exclude"
    """``exclude``: an illegal bid takes no part; ``include``: a number out of range still ranks"""
    reveal: str = "none"
    """what is told after a round: ``none``; ``bids``: all bids by name, and the own payoff;
    ``bids_and_private``: all bids, valuations, assets and payoffs by name"""
    reveal_last: str | int = "all"
    """how many past rounds are shown before a bid: ``all`` or a number, 0 for none. An
    observation tells of the last one alone; the dialogue with a language model keeps the others"""
    told_rational: bool = False
    """players are told that all others are perfectly rational"""
    told_equal: bool = False
    """players are told that all others are as rational and able as they are"""
    reasks: bool = True
    """a language model is asked again after a broken reply, as often as its settings say; False:
    never"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("rounds", self.rounds, 1)
        check_choice("price", self.price, ("first", "second"))
        check_integer("valuation_min", self.valuation_min, 0)
        check_integer("valuation_max", self.valuation_max, self.valuation_min + 1, 10**9)
        check_integer("seed", self.seed, -(2**63))
        check_choice("valuation_draw", self.valuation_draw, ("seeded", "random"))
        check_choice("bid_range", self.bid_range, ("own_value", "unbounded"))
        check_choice("tie_rng", self.tie_rng, ("own", "shared"))
        check_choice("number_parse", self.number_parse, ("strict", "truncate"))
        if self.assets is None:
            self._check_no_session()
        else:
            self._check_session()
        if self.valuations is not None:
            object.__setattr__(self, "valuations", self._given(self.valuations))
        elif self.assets is None:
            self._check_grid()
        if self.tie_rng == "shared" and (self.valuations or self.valuation_draw == "random"):
            raise BadParameter('tie_rng "shared" needs seeded valuations; use tie_rng "own"')

    def _check_no_session(self) -> None:
        fields = list(dataclasses.fields(self))
        first = next(i for i, f in enumerate(fields) if f.name == "assets")
        for f in fields[first:]:
            if getattr(self, f.name) != f.default:
                raise BadParameter(
                    f"{f.name} is for sessions with assets, got {getattr(self, f.name)!r}; "
                    'give assets, or take preset="econ_arena"'
                )

    def _check_session(self) -> None:
        check_integer("decimals", self.decimals, 0, 6)
        object.__setattr__(self, "assets", self._money_of_each(self.assets))
        least = min(self._assets)
        for name, low in (("mu", 1), ("sigma", 0)):
            check_number(name, getattr(self, name), low)
            if self.valuations is None and getattr(self, name) > least:
                raise BadParameter(
                    f"{name} must be from {low} to the assets ({least}), got {getattr(self, name)}"
                )
        fee = exact_of("entrance_fee", self.entrance_fee)
        object.__setattr__(self, "entrance_fee", fee)
        if not 0 <= fee <= least or fee * self.unit % 1:
            raise BadParameter(
                f"entrance_fee must be from 0 to the assets ({least}) in units of "
                f"1/{self.unit}, got {fee}"
            )
        check_integer("min_valid_bids", self.min_valid_bids, 1, 2)
        check_choice("value_rounding", self.value_rounding, ("truncate", "none"))
        check_choice("rule_breaker", self.rule_breaker, ("exclude", "include"))
        check_choice("reveal", self.reveal, REVEAL)
        if self.reveal_last != "all":
            check_integer('reveal_last must be "all", or it', self.reveal_last, 0)
        check_choice("told_rational", self.told_rational, (False, True))
        check_choice("told_equal", self.told_equal, (False, True))
        check_choice("reasks", self.reasks, (False, True))

    def _money_of_each(self, assets: Any) -> int | tuple[int, ...]:
        each = tuple(assets) if isinstance(assets, (list, tuple)) else (assets,)
        if len(each) not in (1, self.players) or (len(each) == 1 and each[0] is not assets):
            raise BadParameter(
                f"assets must be one integer, or one for each of {self.players} players, "
                f"got {assets!r}"
            )
        for money in each:
            check_integer("assets", money, 1, 10**9)
        return int(assets) if len(each) == 1 else tuple(int(money) for money in each)

    def _check_grid(self) -> None:
        check_integer("interval", self.interval, 1)
        steps, rest = divmod(self.valuation_max - self.valuation_min, self.interval)
        if rest or steps + 1 < self.players:
            raise BadParameter(
                f"interval must divide valuation_max - valuation_min "
                f"({self.valuation_max - self.valuation_min}) into at least {self.players - 1} "
                f"steps (distinct valuations for {self.players} players), got {self.interval!r}"
            )

    def _given(self, rows: Any) -> tuple[tuple[int, ...], ...]:
        count = self.rounds if self.assets is None else 1
        low, high = (self.valuation_min, self.valuation_max) if self.assets is None else (0, 10**9)
        shape = f"{count} row{'s' if count > 1 else ''} (rounds) of {self.players} integers"
        try:
            table = tuple(tuple(row) for row in rows)
        except TypeError:
            raise BadParameter(f"valuations must be {shape}, got {rows!r}") from None
        if len(table) != count or any(len(row) != self.players for row in table):
            lengths = [len(row) for row in table]
            raise BadParameter(f"valuations must be {shape}, got rows of the lengths {lengths}")
        for value in (value for row in table for value in row):
            check_integer("each of the valuations", value, low, high)
        return tuple(tuple(int(value) for value in row) for row in table)

    @cached_property
    def _generators(self) -> list[tuple[list[int], tuple[Any, ...]]]:
        """Each round's seeded valuations, and the generator's state after drawing them."""
        grid = range(self.valuation_min, self.valuation_max + self.interval, self.interval)
        drawn = []
        for t in range(self.rounds):
            generator = random.Random(self.seed + t)
            drawn.append((generator.sample(grid, self.players), generator.getstate()))
        return drawn

    @cached_property
    def _shared_lots(self) -> Array:
        """Index into the candidates of each round, ``(rounds, candidates)``."""
        lots = np.zeros((self.rounds, self.players + 1), np.int64)
        generator = random.Random()
        for t, (_, after) in enumerate(self._generators):
            for count in range(2, self.players + 1):
                generator.setstate(after)
                lots[t, count] = generator.randint(0, count - 1)
        return lots

    @property
    def unit(self) -> int:
        """Actions in one of money: ``10**decimals`` in a session, else 1."""
        return 1 if self.assets is None else 10**self.decimals

    @cached_property
    def _assets(self) -> tuple[int, ...]:
        """Each bidder's assets, in money; empty if there is no session."""
        if isinstance(self.assets, int):
            return (self.assets,) * self.players
        return self.assets or ()

    def _of_each(self, money: tuple[int, ...], batch: tuple[int, ...]) -> Array:
        """Return an amount of each bidder in units of actions, ``(players, *batch)``."""
        column = self.unit * np.array(money, np.int64).reshape(-1, *(1 for _ in batch))
        return np.broadcast_to(column, (self.players, *batch))

    @property
    def masked(self) -> bool:  # type: ignore[override]
        """Whether a seat's legal bids, up to its valuation or assets, are shown as a mask."""
        if self.assets is not None:
            return self.unit == 1 and max(self._assets) < LARGEST_DISCRETE
        return self.bid_range == "own_value" and self.valuation_max < LARGEST_DISCRETE

    def bounds(self) -> tuple[int, int]:
        if self.assets is not None:
            return 0, max(self._assets) * self.unit
        unbounded = self.bid_range == "unbounded"
        return (-LARGEST, LARGEST) if unbounded else (0, self.valuation_max)

    def reset(self, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> SealedBidAuctionState:
        return SealedBidAuctionState(
            **fresh(batch),
            valuations=self._draw(rng, batch),
            lots=rng.random((self.rounds, *batch)),
            bids=np.zeros((self.players, *batch), np.int64),
            winner=np.full(batch, -1, np.int64),
            price=np.zeros(batch, np.int64),
            broke=np.zeros((self.players, *batch), np.bool_),
        )

    def _draw(self, rng: np.random.Generator, batch: tuple[int, ...]) -> Array:
        if self.assets is not None:
            values = self._private(rng, batch)
            return np.broadcast_to(values, (self.rounds, *values.shape))
        if self.valuations is None and self.valuation_draw == "random":
            steps = (self.valuation_max - self.valuation_min) // self.interval
            picks = _distinct(rng, self.players, steps + 1, (self.rounds, *batch))
            return np.moveaxis(self.valuation_min + self.interval * picks, 0, 1)
        rows = self.valuations or [sample for sample, _ in self._generators]
        table = np.array(rows, np.int64).reshape(self.rounds, self.players, *(1 for _ in batch))
        return np.broadcast_to(table, (self.rounds, self.players, *batch))

    def _private(self, rng: np.random.Generator, batch: tuple[int, ...]) -> Array:
        """Return the valuations of a session, given or drawn, ``(players, *batch)``."""
        if self.valuations is not None:
            return self._of_each(self.valuations[0], batch)
        most = self._of_each(self._assets, batch)
        values = np.zeros(most.shape, np.int64)
        wrong = values == 0
        while wrong.any():
            drawn = rng.normal(self.mu, self.sigma, int(wrong.sum()))
            cut = self.value_rounding == "truncate"
            values[wrong] = np.trunc(drawn) * self.unit if cut else np.rint(drawn * self.unit)
            wrong = (values <= 0) | (values > most)
        return values

    def valuation(self, state: SealedBidAuctionState, ago: int = 0) -> Array:
        """Return the valuations this round, or `ago` rounds before, ``(players, *batch)``."""
        t = np.clip(state.round - ago, 0, self.rounds - 1)
        return np.take_along_axis(state.valuations, t[None, None], axis=0)[0]

    def asked(self, state: SealedBidAuctionState) -> Array:
        return self.alive(state)

    def legal(self, state: SealedBidAuctionState) -> tuple[Array, Array]:
        if self.assets is not None:
            high = self._of_each(self._assets, np.shape(state.round))
            return np.zeros_like(high), high
        if self.bid_range == "unbounded":
            return super().legal(state)
        high = self.valuation(state)
        return np.zeros_like(high), high

    def mend(self, state: SealedBidAuctionState, actions: Array, broke: Array) -> Array:
        """In a session keep illegal bids: `rule_breaker` says in `play` what becomes of them."""
        if self.assets is not None:
            return actions.astype(np.int64)
        return super().mend(state, actions, broke)

    def play(
        self,
        state: SealedBidAuctionState,
        actions: Array,
        rng: np.random.Generator,
        broke: Array,
    ) -> tuple[SealedBidAuctionState, Outcome]:
        bids = actions if self.assets is None else self._taking_part(actions, broke)
        first = bids.max(axis=0)
        winner = self._winner(state, bids == first)
        price = first if self.price == "first" else np.partition(bids, -2, axis=0)[-2]
        if self.assets is not None:
            sold = (~broke).sum(axis=0) >= self.min_valid_bids
            bids, price = np.where(bids == MISSING, 0, bids), np.where(price == MISSING, 0, price)
            winner, price = np.where(sold, winner, -1), np.where(sold, price, 0)
        after = SealedBidAuctionState(
            round=state.round + 1,
            over=state.round + 1 >= self.rounds,
            void=state.void,
            valuations=state.valuations,
            lots=state.lots,
            bids=bids,
            winner=winner,
            price=price,
            broke=broke,
        )
        utility = self.utility(after)
        record = {
            "actions": actions,
            "valuations": self.valuation(state),
            "winner": winner,
            "price": price,
            "utility": utility,
        }
        if self.assets is not None:
            assets = self._of_each(self._assets, np.shape(state.round))
            record |= {"legal": ~broke, "sold": sold, "assets": assets, "final": assets + utility}
        finished = self.everybody(after.over)
        return after, Outcome(utility / self.unit, finished, record)

    def _taking_part(self, actions: Array, broke: Array) -> Array:
        """Return the bids of a session that take part; `MISSING` for those that do not."""
        return np.where(broke, MISSING, actions) if self.rule_breaker == "exclude" else actions

    def _winner(self, state: SealedBidAuctionState, candidates: Array) -> Array:
        if self.assets is not None:
            return candidates.argmax(axis=0)  # the lowest seat
        t = np.minimum(state.round, self.rounds - 1)
        count = candidates.sum(axis=0)
        if self.tie_rng == "shared":
            index = self._shared_lots[t, count]
        else:  # a lot below 1 times a count stays below the count, in doubles too
            lot = np.take_along_axis(state.lots, t[None], axis=0)[0]
            index = (lot * count).astype(np.int64)
        return (candidates & (candidates.cumsum(axis=0) == index + 1)).argmax(axis=0)

    def utility(self, state: SealedBidAuctionState) -> Array:
        """Return what the last round brought each player, int64 ``(players, *batch)``."""
        seats = np.arange(self.players).reshape(-1, *(1 for _ in np.shape(state.round)))
        fee = int(self.entrance_fee * self.unit)
        lost = np.where(state.broke, -fee, 0) if fee else 0
        return np.where(seats == state.winner, self.valuation(state, ago=1) - state.price, lost)

    @property
    def shown(self) -> str:
        """What of `REVEAL` a bidder in a session sees before a bid."""
        return self.reveal if self.reveal_last != 0 else "none"

    @property
    def shown_last(self) -> str | int:
        if self.assets is not None and self.reveal == "none":
            return 0  # nor do players see their own past bids
        return self.reveal_last

    def attempts(self, own: int) -> int:
        return own if self.reasks else 1

    def terms(self) -> dict[str, Any]:
        return super().terms() | {"shown": self.shown}

    def columns(self) -> tuple[Column, ...]:
        if self.assets is not None:
            return self._session_columns()
        low, high = self.valuation_min, self.valuation_max
        free = self.bid_range == "unbounded"
        least, most = (-np.inf, np.inf) if free else (0, high)
        return (
            Column("round", 1, self.rounds + 1, "round to play; rounds + 1 at the end"),
            Column("valuation", low, high, "own valuation of this round's item"),
            Column("last_valuation", 0, high, "own valuation last round"),
            Column("bid", least, most, "own bid last round"),
            Column("winning_bid", least, most, "highest bid last round"),
            Column("price", least, most, "what the winner paid last round"),
            Column("won", 0, 1, "1: won last round"),
            Column("utility", least, most, "own utility last round"),
        )

    def _session_columns(self) -> tuple[Column, ...]:
        money = max(self._assets)
        worth = max([money, *(self.valuations[0] if self.valuations else ())])
        free = self.rule_breaker == "include"
        low, high = (-np.inf, np.inf) if free else (0, money + worth)
        seats = range(self.players)
        columns = [
            Column("round", 1, self.rounds + 1, "round to play; rounds + 1 at the end"),
            Column("valuation", 0, worth, "own valuation of the item"),
            Column("assets", 1, money, "own assets"),
        ]
        if self.shown == "none":
            return tuple(columns)
        columns.append(Column("seat", 0, self.players - 1, "own seat"))
        columns += [Column(f"bid_{i}", 0, money, f"seat {i}, last round; 0: none") for i in seats]
        columns += [Column(f"legal_{i}", 0, 1, f"1 if seat {i} made a legal bid") for i in seats]
        if self.shown == "bids":
            return (*columns, Column("payoff", low, high, "own final assets; 0 before a round"))
        for name, meaning, most in (("valuation", "valuation", worth), ("assets", "assets", money)):
            columns += [Column(f"{name}_{i}", 0, most, f"{meaning} of seat {i}") for i in seats]
        last = [Column(f"payoff_{i}", low, high, f"final assets of seat {i}") for i in seats]
        return (*columns, *last)

    def observe(self, state: SealedBidAuctionState) -> Array:
        shape = state.bids.shape
        if self.assets is not None:
            parts = [np.broadcast_to(part, shape) for part in self._session_numbers(state)]
            return np.stack(parts, axis=-1).astype(np.float32)
        seats = np.arange(self.players).reshape(-1, *(1 for _ in shape[1:]))
        columns = (
            state.round + 1,
            self.valuation(state),
            np.where(state.round > 0, self.valuation(state, ago=1), 0),
            state.bids,
            state.bids.max(axis=0),
            state.price,
            seats == state.winner,
            self.utility(state),
        )
        rows = np.empty((*shape, len(columns)), np.float32)
        for i, column in enumerate(columns):
            rows[..., i] = column
        return rows

    def _session_numbers(self, state: SealedBidAuctionState) -> list[Array]:
        begun, batch = state.round > 0, np.shape(state.round)
        values, assets = self.valuation(state) / self.unit, self._of_each(self._assets, batch)
        assets = assets / self.unit
        numbers = [state.round + 1, values, assets]
        if self.shown == "none":
            return numbers
        legal, payoff = begun & ~state.broke, begun * (assets + self.utility(state) / self.unit)
        bids = np.where(legal, state.bids, 0) / self.unit
        numbers += [np.indices(state.bids.shape)[0], *bids, *legal]
        if self.shown == "bids":
            return [*numbers, payoff]
        return [*numbers, *(values * begun), *(assets * begun), *payoff]

    def _session_told(self, state: SealedBidAuctionState, player: int) -> dict[str, Any]:
        done = int(state.round)
        amounts = {
            "bids": state.bids,
            "valuations": self.valuation(state),
            "assets": self._of_each(self._assets, ()),
            "payoffs": self._of_each(self._assets, ()) + self.utility(state),
        }
        told: dict[str, dict[str, Any]] = {
            name: dict(zip(self.names(), [self._plain(x) for x in each.tolist()], strict=True))
            for name, each in amounts.items()
        }
        me = self.names()[player]
        own = {"own": told["valuations"][me], "assets": told["assets"][me]}
        told["bids"] = {
            name: None if broke else bid
            for (name, bid), broke in zip(told["bids"].items(), state.broke.tolist(), strict=True)
        }
        last: dict[str, Any] | None = None
        if done and self.shown == "bids":
            last = {"round": done, "bids": told["bids"], "payoff": told["payoffs"][me]}
        elif done and self.shown == "bids_and_private":
            last = {"round": done, **told}
        return {"round": min(done + 1, self.rounds), **own, "last": last}

    def _plain(self, units: int) -> int | float:
        """Return an amount as it is told: whole money as an integer."""
        whole, rest = divmod(units, self.unit)
        return units / self.unit if rest else whole

    def told(self, state: SealedBidAuctionState, player: int) -> dict[str, Any]:
        if self.assets is not None:
            return self._session_told(state, player)
        done = int(state.round)
        last = None
        if done:
            last = {
                "round": done,
                "valuation": int(self.valuation(state, ago=1)[player]),
                "bid": int(state.bids[player]),
                "winning_bid": int(state.bids.max()),
                "price": int(state.price),
                "won": int(state.winner) == player,
                "utility": int(self.utility(state)[player]),
            }
        own = int(self.valuation(state)[player])
        return {"round": min(done + 1, self.rounds), "own": own, "last": last}

    def question(self, state: SealedBidAuctionState, player: int) -> Question | None:
        if state.over:
            return None
        if self.assets is not None:
            return Real("bid", 0, self._assets[player] * self.unit, self.decimals)
        truncate = self.number_parse == "truncate"
        if self.bid_range == "unbounded":
            return Integer("bid", None, None, truncate)
        return Integer("bid", 0, int(self.valuation(state)[player]), truncate)

    def picture(self, state: SealedBidAuctionState) -> tuple[str, list[str], list[list[str]]]:
        done, winner = int(state.round), int(state.winner)
        caption = f"{self.title} ({self.price} price): round {done} of {self.rounds}"
        if done:
            buyer = f"{self.names()[winner]} pays {self._plain(int(state.price))}"
            caption += f", {buyer if winner >= 0 else 'no sale'}"
        columns = (self.valuation(state, ago=min(done, 1)), state.bids, self.utility(state))
        amounts = [[str(self._plain(x)) for x in column.tolist()] for column in columns]
        rows = [
            [name, v, b if done else "", u if done else ""]
            for name, v, b, u in zip(self.names(), *amounts, strict=True)
        ]
        return caption, ["seat", "valuation", "bid", "utility"], rows


def _distinct(rng: np.random.Generator, count: int, size: int, shape: tuple[int, ...]) -> Array:
    """Draw `count` distinct integers below `size` in random order, ``(count, *shape)``."""
    picks = np.empty((count, *shape), np.int64)
    for i in range(count):
        pick = rng.integers(0, size - i, shape)
        for earlier in np.sort(picks[:i], axis=0):  # skip what is taken, from below
            pick = pick + (pick >= earlier)
        picks[i] = pick
    return picks
