"""The English auction: items sold one after another by rising bids, out of one budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from llm_games.errors import BadParameter
from llm_games.facts import Column, check_choice, check_integer
from llm_games.games.english_auction import views as auction_views
from llm_games.games.english_auction.items import LARGEST, Item, catalogue, drawn_orders, order_of
from llm_games.games.english_auction.ties import TIE_RULES, leader_of
from llm_games.games.english_auction.views import NO_REPLY, NOBODY, WITHDRAW, of
from llm_games.questions import MISSING, Bid, Question
from llm_games.rulebook import LARGEST_DISCRETE, Array, Outcome, Rulebook, State, at, fresh

BREAKS = ("", "format", "below_start", "below_increment", "over_budget")
"""Kinds of rule breaks, in the order of their numbers in `EnglishAuction.break_kinds`."""


@dataclass(frozen=True)
class EnglishAuctionState(State):
    """What a table looks like between rounds. ``round`` counts the rounds of all items.

    Money is int64. Items are numbered by their place in the order of sale.

    Attributes:
        budget, profit, won: money left, profit so far and items won, ``(players, *batch)``.
        spent: sum of prices paid, ``(players, *batch)``.
        withdrawn: out for the item on sale, bool ``(players, *batch)``.
        bids_on_item: own bids on the item on sale, ``(players, *batch)``.
        last_reply: latest reply on it: a bid, -1 withdrew, -2 none, ``(players, *batch)``.
        item: the item on sale, ``(*batch)``; the number of items at the end.
        item_round: rounds of this item so far, ``(*batch)``.
        start: its start price now, ``(*batch)``.
        high, leader: the highest bid and its bidder's seat, ``(*batch)``; -1 before a bid.
        discounts: how often its start price was cut, ``(*batch)``.
        turn, first: seat from which the next bidder is looked for, if bidding is cyclic, and
            where that begins at each item, ``(*batch)``.
        order: the items' place in the list of items, ``(items, *batch)``.
        starts: start prices, ``(items, *batch)``.
        values, estimates: true values and what bidders take them for, ``(players, items, *batch)``.
        sold_to, price: of each item, ``(items, *batch)``; -1 not (yet) sold.
        engagement: accepted bids, ``(players, items, *batch)``.
        key: decides ties, uint64 ``(*batch)``.
    """

    budget: Array
    profit: Array
    won: Array
    spent: Array
    withdrawn: Array
    bids_on_item: Array
    last_reply: Array
    item: Array
    item_round: Array
    start: Array
    high: Array
    leader: Array
    discounts: Array
    turn: Array
    first: Array
    order: Array
    starts: Array
    values: Array
    estimates: Array
    sold_to: Array
    price: Array
    engagement: Array
    key: Array


@dataclass(frozen=True)
class EnglishAuction(Rulebook):
    """English auction. Source: AucArena (arXiv 2310.05746), §3; EconArena (one item, in turns).

    In each round all bidders who are still in, except the leader, bid or withdraw from the item.
    A bid is at least the start price, later the highest bid of earlier rounds plus the increment,
    and at most the own budget. The item is sold to the leader, at its bid, when nobody else is
    in. Payoff: value minus price of an item won (or 1 an item, `objective` ``items``). A missing
    or illegal reply withdraws.
    """

    name: ClassVar[str] = "english_auction"
    title: ClassVar[str] = "English auction"
    source: ClassVar[str] = "AucArena"
    turns: ClassVar[bool] = True
    fewest_players: ClassVar[int] = 1
    personal: ClassVar[tuple[str, ...]] = (
        "budgets",
        "overestimate_pct",
        "objective",
        "private_values",
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "auc_arena": {},
        "auc_arena_20": {"players": 6, "items": "items_20", "item_order": "shuffled"},
        **{
            f"econ_arena_english_{group}": {
                "players": 5,
                "items": (("Painting", 0, 0),),
                "budgets": 100 * step,
                "values": "private",
                "value_mean": 50 * step,
                "value_sd": 10 * step,
                "increment_pct": 0,
                "increment_min": step,
                "bidding": "cyclic",
                "max_reasks": 0,
            }
            for group, step in {"L": 1, "M": 10, "H": 100}.items()
        },
    }

    players: int = 4
    """number of bidders, at least 1"""
    items: Any = "items_10"
    """a set of AucArena's items, ``items_1`` to ``items_26``, or up to 100 rows of name, start
    price and true value"""
    item_order: Any = "listed"
    """``listed``, ``shuffled``, the most expensive ``early``, ``middle`` or ``late``, or all names
    in order"""
    budgets: int | tuple[int, ...] = 10_000
    """money of each bidder for the whole auction, at least 0; one for all or one for each"""
    values: str = "common"
    """``common``: the items' true values, of which bidders have estimates; ``private``: each
    bidder has its own and knows it"""
    value_mean: int = 50
    """mean of private values, which are normal, cut to integers, from 1 to the own budget"""
    value_sd: int = 10
    """their standard deviation, at most `value_mean`"""
    private_values: tuple[tuple[int, ...], ...] | None = None
    """given private values, a row with one for each listed item for each bidder; None to draw"""
    overestimate_pct: int | tuple[int, ...] = 10
    """estimates are so many percent above the common value, -100 to 100; one or one for each"""
    objective: str | tuple[str, ...] = "profit"
    """what a bidder is told to pursue and is paid for: ``profit`` or ``items``; one or one each"""
    increment_pct: int = 10
    """smallest raise, in percent of the start price, 0 to 100"""
    increment_min: int = 1
    """smallest raise at any start price, at least 1"""
    bidding: str = "rounds"
    """``rounds``: all bidders at the same time; ``cyclic``: one at a time in seat order"""
    first_bidder: int | str = 0
    """if bidding is cyclic, the seat that is asked first about an item, or ``random``"""
    discount: int | None = None
    """cut of the start price, in percent, when nobody bids, 1 to 99; None for no cut"""
    max_discounts: int = 3
    """how often an item's start price is cut at most, at least 0"""
    max_reasks: int = 3
    """how often a bidder is asked again after an illegal reply, at least 0"""
    reask_limit: str = "bounded"
    """``bounded``: `max_reasks` times; ``unlimited``: until the reply is legal (a language model
    at most 100 times)"""
    skip_broke: bool = False
    """a bidder who cannot afford the smallest bid is withdrawn without being asked"""
    tie_rule: str = "uniform"
    """who leads among equal highest bids: one drawn with equal chances (``uniform``), the lowest
    seat (``lowest_index``), or a draw in which later seats are likelier (``authors``)"""
    reveal_value: str = "after_sale"
    """an item's true value is told ``after_sale`` or ``never``"""
    terse_rules: bool = False
    """bidders are not told that withdrawing is final, that bids are sealed, how ties are drawn,
    nor, in an item's first round, the increment"""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("items", "item_order", "budgets", "private_values", "overestimate_pct",
                     "objective"):  # fmt: skip
            object.__setattr__(self, name, _frozen(getattr(self, name)))
        order_of(self.catalogue, self.item_order)
        for budget in self._each("budgets"):
            check_integer("each of the budgets", budget, 0, LARGEST)
        for pct in self._each("overestimate_pct"):
            check_integer("overestimate_pct", pct, -100, 100)
        for objective in self._each("objective"):
            check_choice("objective", objective, ("profit", "items"))
        check_choice("values", self.values, ("common", "private"))
        check_integer("increment_pct", self.increment_pct, 0, 100)
        check_integer("increment_min", self.increment_min, 1, LARGEST)
        check_choice("bidding", self.bidding, ("rounds", "cyclic"))
        if self.first_bidder != "random":
            check_integer('first_bidder, if not "random",', self.first_bidder, 0, self.players - 1)
        if self.discount is not None:
            check_integer("discount", self.discount, 1, 99)
        check_integer("max_discounts", self.max_discounts, 0)
        check_integer("max_reasks", self.max_reasks, 0)
        check_choice("reask_limit", self.reask_limit, ("bounded", "unlimited"))
        check_choice("skip_broke", self.skip_broke, (False, True))
        check_choice("tie_rule", self.tie_rule, TIE_RULES)
        check_choice("reveal_value", self.reveal_value, ("after_sale", "never"))
        check_choice("terse_rules", self.terse_rules, (False, True))
        self._check_private_values()

    def _check_private_values(self) -> None:
        rows, count = self.private_values, len(self.catalogue)
        if rows is not None:
            if len(rows) != self.players or any(len(row) != count for row in rows):
                raise BadParameter(
                    f"private_values must be {self.players} rows (bidders) of {count} integers "
                    f"(items), got {rows!r}"
                )
            for value in (value for row in rows for value in row):
                check_integer("each of the private_values", value, 0, LARGEST)
        elif self.values == "private":
            least = min(self._each("budgets"))
            check_integer("value_mean (with the smallest budget)", self.value_mean, 1, least)
            check_integer("value_sd", self.value_sd, 0, self.value_mean)

    def _each(self, name: str) -> tuple[Any, ...]:
        """Return a parameter that is one for all or one for each, as one for each."""
        given = getattr(self, name)
        if isinstance(given, tuple) and len(given) != self.players:
            raise BadParameter(
                f"{name} must be one for all or {self.players}, one for each bidder, got {given!r}"
            )
        return given if isinstance(given, tuple) else (given,) * self.players

    @cached_property
    def catalogue(self) -> tuple[Item, ...]:
        """The items, as listed."""
        return catalogue(self.items)

    @cached_property
    def purses(self) -> Array:
        """Each bidder's money at the start, int64 ``(players,)``."""
        return np.array(self._each("budgets"), np.int64)

    @cached_property
    def markups(self) -> Array:
        """Each bidder's overestimate in percent, int64 ``(players,)``."""
        return np.array(self._each("overestimate_pct"), np.int64)

    @cached_property
    def scale(self) -> int:
        """Money in `observe` counts in this unit: the largest starting budget, at least 1."""
        return max(1, int(self.purses.max()))

    @cached_property
    def objectives(self) -> tuple[str, ...]:
        """What each bidder pursues, ``profit`` or ``items``."""
        return self._each("objective")

    @property
    def announces(self) -> bool:
        """Whether true values, and with them profits, are announced."""
        return self.reveal_value == "after_sale" and self.values == "common"

    def attempts(self, own: int) -> int | None:
        return self.max_reasks + 1 if self.reask_limit == "bounded" else None

    @property
    def masked(self) -> bool:  # type: ignore[override]
        """Whether a bidder's legal bids are shown as a mask."""
        low, high = self.bounds()
        return high - low < LARGEST_DISCRETE

    def terms(self) -> dict[str, Any]:
        more = {"count": len(self.catalogue), "objectives": self.objectives}
        return super().terms() | more | {"announces": self.announces}

    def bounds(self) -> tuple[int, int]:
        return WITHDRAW, self._richest

    @cached_property
    def _richest(self) -> int:
        return int(self.purses.max())

    def length(self) -> int:
        return sum(map(self._rounds_of, self.catalogue))

    def longest(self) -> int:
        """Return the largest number of rounds that one item can take."""
        return max(map(self._rounds_of, self.catalogue))

    def _rounds_of(self, item: Item) -> int:
        start, most = item.start, int(self.purses.max())
        replies = self.players if self.bidding == "cyclic" else 1
        longest = 0
        for cuts in range(self.max_discounts + 1 if self.discount else 1):
            step = max(self.increment_min, start * self.increment_pct // 100)
            bids = (most - start) // step + 1 if start <= most else 0
            longest = max(longest, (cuts + 1) * replies + bids)
            start = start * (100 - (self.discount or 0)) // 100
        return longest

    def largest_increment(self) -> int:
        """Return the smallest raise on the item with the highest start price."""
        dearest = max(item.start for item in self.catalogue)
        return max(self.increment_min, dearest * self.increment_pct // 100)

    def largest_estimate(self) -> int:
        """Return the most that anybody can take any item for, or that it can be worth."""
        if self.values == "common":
            dearest = max(item.value for item in self.catalogue)
            return dearest * max(100, 100 + int(self.markups.max())) // 100
        given = [value for row in self.private_values or () for value in row]
        return max(given, default=int(self.purses.max()))

    # -- the first state ----------------------------------------------------------------------

    def reset(self, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> EnglishAuctionState:
        seats, count = (self.players, *batch), len(self.catalogue)
        zero, nobody, nothing = (np.full(batch, n, np.int64) for n in (0, NOBODY, -1))
        order = self._order(rng, batch)
        starts = np.array([item.start for item in self.catalogue], np.int64)[order]
        values = self._values(rng, order)
        ones = (1,) * len(batch)
        markups = 100 + self.markups.reshape(-1, 1, *ones)
        first = rng.integers(self.players, size=batch) if self.first_bidder == "random" else (
            np.full(batch, self.first_bidder, np.int64))  # fmt: skip
        state = EnglishAuctionState(
            **fresh(batch),
            budget=np.broadcast_to(self.purses.reshape(-1, *ones), seats).copy(),
            profit=np.zeros(seats, np.int64),
            won=np.zeros(seats, np.int64),
            spent=np.zeros(seats, np.int64),
            withdrawn=np.zeros(seats, np.bool_),
            bids_on_item=np.zeros(seats, np.int64),
            last_reply=np.full(seats, NO_REPLY, np.int64),
            item=zero,
            item_round=zero,
            start=starts[0],
            high=nothing,
            leader=nobody,
            discounts=zero,
            turn=first,
            first=first,
            order=order,
            starts=starts,
            values=values,
            estimates=values if self.values == "private" else values * markups // 100,
            sold_to=np.full((count, *batch), NOBODY, np.int64),
            price=np.full((count, *batch), -1, np.int64),
            engagement=np.zeros((self.players, count, *batch), np.int64),
            key=rng.integers(0, 2**64, batch, np.uint64),
        )
        return self._skip(state, np.zeros(seats))[0] if self.skip_broke else state

    def _order(self, rng: np.random.Generator, batch: tuple[int, ...]) -> Array:
        order = np.array(order_of(self.catalogue, self.item_order), np.int64)
        if self.item_order == "shuffled":
            return drawn_orders(rng, len(order), batch)
        return np.broadcast_to(order.reshape(-1, *(1 for _ in batch)), (len(order), *batch)).copy()

    def _values(self, rng: np.random.Generator, order: Array) -> Array:
        shape = (self.players, *order.shape)
        if self.values == "common":
            common = np.array([item.value for item in self.catalogue], np.int64)[order]
            return np.broadcast_to(common, shape).copy()
        if self.private_values is not None:
            return np.array(self.private_values, np.int64)[:, order]
        most = self.purses.reshape(-1, *(1 for _ in order.shape))
        values = np.zeros(shape, np.int64)
        while (again := (values < 1) | (values > most)).any():
            drawn = rng.normal(self.value_mean, self.value_sd, int(again.sum()))
            values[again] = drawn.astype(np.int64)  # the fraction is cut
        return values

    # -- whose move it is, and what is legal ----------------------------------------------------

    def seats(self, state: EnglishAuctionState) -> Array:
        """Return the seats' numbers, int64 ``(players, 1, ...)``, as wide as a batch."""
        return self._seats.reshape(-1, *(1,) * state.round.ndim)

    @cached_property
    def _seats(self) -> Array:
        return np.arange(self.players)

    def places(self, state: EnglishAuctionState) -> Array:
        """Return the places in the order of sale, int64 ``(items, 1, ...)``, as wide as a batch."""
        return self._places.reshape(-1, *(1,) * state.round.ndim)

    @cached_property
    def _places(self) -> Array:
        return np.arange(len(self.catalogue))

    def increment(self, state: EnglishAuctionState) -> Array:
        """Return the smallest raise on the item on sale, int64 ``(*batch)``."""
        return np.maximum(self.increment_min, state.start * self.increment_pct // 100)

    def floor(self, state: EnglishAuctionState) -> Array:
        """Return the smallest legal bid on the item on sale, int64 ``(*batch)``."""
        return np.where(state.high < 0, state.start, state.high + self.increment(state))[()]

    def _rivals(self, state: EnglishAuctionState) -> Array:
        """Return who is still in and not leading, bool ``(players, *batch)``."""
        return ~(state.withdrawn | (self.seats(state) == state.leader) | state.over)

    def asked(self, state: EnglishAuctionState) -> Array:
        asked = self._rivals(state)
        if self.skip_broke:
            asked = asked & (state.budget >= self.floor(state))
        if self.bidding == "rounds":
            return asked
        wait = np.where(asked, (self.seats(state) - state.turn) % self.players, self.players)
        return asked & (wait == wait.min(axis=0))

    def legal(self, state: EnglishAuctionState) -> tuple[Array, Array]:
        high = np.where(state.budget >= self.floor(state), state.budget, WITHDRAW)
        return np.full_like(high, WITHDRAW), high

    def break_kinds(self, state: EnglishAuctionState, actions: Array) -> Array:
        """Return the index into `BREAKS` of each asked seat's action, ``(players, *batch)``."""
        below = np.where(state.high < 0, BREAKS.index("below_start"), 3)
        kinds = below * ((actions >= 0) & (actions < self.floor(state)))
        kinds = np.where(actions > state.budget, BREAKS.index("over_budget"), kinds)
        kinds = np.where(actions == MISSING, BREAKS.index("format"), kinds)
        return kinds * self.asked(state)

    def breaks(self, state: EnglishAuctionState, actions: Array) -> Array:
        return self.break_kinds(state, actions) > 0

    def mend(self, state: EnglishAuctionState, actions: Array, broke: Array) -> Array:
        """Keep broken replies: `play` counts them by kind before it takes them for withdrawals."""
        return actions.astype(np.int64, copy=False)

    def fallback(self, state: EnglishAuctionState) -> Array:
        return np.full(state.budget.shape, WITHDRAW, np.int64)

    def mask(self, state: EnglishAuctionState) -> Array:
        bids, floor = np.arange(self.purses.max() + 1), self.floor(state)[..., None]
        can = (bids >= floor) & (bids <= state.budget[..., None])
        legal = np.concatenate([np.ones_like(can[..., :1]), can], axis=-1)
        return self.asked(state)[..., None] & legal

    # -- one round --------------------------------------------------------------------------------

    def play(
        self, state: EnglishAuctionState, actions: Array, rng: np.random.Generator, broke: Array
    ) -> tuple[EnglishAuctionState, Outcome]:
        asked, kinds = self.asked(state), np.zeros(broke.shape, np.int64)
        if broke.any():
            kinds, actions = self.break_kinds(state, actions), np.where(broke, WITHDRAW, actions)
        replies = np.maximum(actions, WITHDRAW)  # any negative number withdraws
        after, rewards = self._round(state, np.where(asked, replies, NO_REPLY))
        if self.skip_broke:
            after, rewards = self._skip(after, rewards)
        item = np.minimum(state.item, len(self.catalogue) - 1)
        record = {
            "actions": np.where(asked, replies, MISSING),
            "asked": asked,
            "break": kinds,
            "item": state.item,
            "lot": at(state.order, item),
            "item_round": state.item_round,
            "start": state.start,
            "increment": self.increment(state),
            "floor": self.floor(state),
            "closed": after.item > state.item,
            "winner": at(after.sold_to, item),
            "price": at(after.price, item),
            "value": of(state.values, item),
            "estimate": of(state.estimates, item),
            "purse": state.budget,
            "budget": after.budget,
            "profit": after.profit,
            "won": after.won,
        }
        return after, Outcome(rewards, self.everybody(after.over), record)

    def _round(self, state: EnglishAuctionState, replies: Array) -> tuple[Any, Array]:
        """Resolve the replies of one round, `NO_REPLY` where nobody was asked; and the rewards."""
        bids, leaves = replies >= 0, replies == WITHDRAW
        if self.skip_broke:
            leaves = leaves | (self._rivals(state) & (state.budget < self.floor(state)))
        offers, heard, spoke = np.maximum(replies, WITHDRAW), bids | leaves, replies != NO_REPLY
        high, leader = self._lead(state, offers, spoke)
        withdrawn, leads = state.withdrawn | leaves, self.seats(state) == leader
        done = (withdrawn | leads).all(axis=0)
        sold = done & (leader >= 0)
        cut = (done ^ sold) & (self.discount is not None) & (state.discounts < self.max_discounts)
        closed = done ^ cut
        item = np.minimum(state.item, len(self.catalogue) - 1)
        won = leads & sold
        paid, gain = high * won, (of(state.values, item) - high) * won
        here = self.places(state) == item
        sale = here & sold
        after = state.but(
            round=state.round + 1,
            budget=state.budget - paid,
            spent=state.spent + paid,
            profit=state.profit + gain,
            won=state.won + won,
            withdrawn=withdrawn & ~done,
            bids_on_item=(state.bids_on_item + bids) * ~closed,
            last_reply=np.where(done, NO_REPLY, np.where(heard, offers, state.last_reply)),
            sold_to=np.where(sale, leader, state.sold_to),
            price=np.where(sale, high, state.price),
            engagement=state.engagement + (here & bids[:, None]),
            turn=np.where(spoke.any(axis=0), spoke.argmax(axis=0) + 1, state.turn) % self.players
            if self.bidding == "cyclic" else state.turn,
        )  # fmt: skip
        after = self._next(after, high, leader, closed, cut)
        pays = np.where(self._paid_for_items.reshape(-1, *(1,) * state.round.ndim), won, gain)
        return after, pays.astype(np.float64)

    @cached_property
    def _paid_for_items(self) -> Array:
        return np.array([objective == "items" for objective in self.objectives])

    def _next(
        self, after: EnglishAuctionState, high: Array, leader: Array, closed: Array, cut: Array
    ) -> EnglishAuctionState:
        """Go on to the next round, or where the item is closed to the next item."""
        item = after.item + closed
        start = after.start
        if self.discount is not None:
            start = np.where(cut, start * (100 - self.discount) // 100, start)
        upcoming = at(after.starts, np.minimum(item, len(self.catalogue) - 1))
        # Indexed by (), the values of one table are numbers: much faster than arrays of one.
        return after.but(
            over=after.over | (item == len(self.catalogue)),
            item=item,
            item_round=(after.item_round + 1) * ~closed,
            start=np.where(closed, upcoming, start)[()],
            high=np.where(closed, -1, high)[()],
            leader=np.where(closed, NOBODY, leader)[()],
            discounts=(after.discounts + cut) * ~closed,
            turn=np.where(closed, after.first, after.turn)[()],
        )

    def _skip(self, state: EnglishAuctionState, rewards: Array) -> tuple[Any, Array]:
        """Go on past rounds in which nobody can afford a bid."""
        nobody = np.full(state.budget.shape, NO_REPLY, np.int64)
        while (idle := ~self.asked(state).any(axis=0) & ~state.over).any():
            after, more = self._round(state, nobody)
            kept = {k: np.where(idle, getattr(after, k), v) for k, v in state.arrays().items()}
            state, rewards = state.but(**kept), rewards + np.where(idle, more, 0)
        return state, rewards

    def _lead(self, state: EnglishAuctionState, bids: Array, asked: Array) -> tuple[Array, Array]:
        """Return the highest bid and its bidder after these bids (-1: none) of those asked."""
        top = bids.max(axis=0)
        bid = top >= 0
        tied = (bids == top) & bid
        leader = leader_of(tied, self.tie_rule, asked, state.key, state.round)
        return np.where(bid, top, state.high)[()], np.where(bid, leader, state.leader)[()]

    # -- what bidders know ------------------------------------------------------------------------

    def tells_step(self, state: EnglishAuctionState) -> Array:
        """Return where the increment is told, bool ``(*batch)``."""
        return (state.item_round > 0) | (not self.terse_rules)

    def columns(self) -> tuple[Column, ...]:
        return auction_views.columns(self)

    def observe(self, state: EnglishAuctionState) -> Array:
        return auction_views.observe(self, state)

    def told(self, state: EnglishAuctionState, player: int) -> dict[str, Any]:
        return auction_views.told(self, state, player)

    def question(self, state: EnglishAuctionState, player: int) -> Question | None:
        if not self.asked(state)[player]:
            return None
        floor, budget = int(self.floor(state)), int(state.budget[player])
        item = self.catalogue[int(at(state.order, state.item))].name
        return Bid("bid", floor, budget, int(state.high) < 0, not self.terse_rules, item)

    def picture(self, state: EnglishAuctionState) -> tuple[str, list[str], list[list[str]]]:
        return auction_views.picture(self, state)


def _frozen(value: Any) -> Any:
    """Turn lists, as TOML and JSON have them, into tuples."""
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value
