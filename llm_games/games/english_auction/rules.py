"""The English auction: items sold one after another by rising bids, out of one budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from llm_games import facts
from llm_games.arrays import Array, PerPlayer, PerTable, any_true, at, tall
from llm_games.facts import Draw, Each, Fact, check_integer, fixed, once, param, rows_of, within
from llm_games.games.english_auction.items import LARGEST, ORDERS, Item, catalogue, order_of
from llm_games.noise import Noise, number
from llm_games.questions import MISSING, Bid, alike
from llm_games.rulebook import Chance, Goal, Later, Outcome, Played, Rulebook, State

WITHDRAW, NO_REPLY = -1, -2
NOBODY = -1
BREAKS = ("", "format", "below_start", "below_increment", "over_budget")
"""Kinds of rule breaks, in the order of their numbers in `EnglishAuction.break_kinds`."""
_PRIVATE = facts.LAW | {"stakes": ("values", "private")}
MOST_LOTS = 1000  # lots of ties, one a round; in a longer auction they come again


def at_item(values: Array, index: PerTable) -> PerPlayer:
    """Take each table's entry for one item of ``(players, items, *batch)``."""
    return at(values.swapaxes(0, 1), index)


def leader_of(tied: PerPlayer, rule: str, asked: PerPlayer, draw: Callable[[], Any]) -> PerTable:
    """Return the seat that leads at each table, int64, of those tied; 0 where nobody bids.

    What `draw` returns, from 0 to below 1, decides among several by the rule, see
    `authors_chances`.
    """
    first, count = tied.argmax(axis=0), tied.sum(axis=0)
    if rule == "lowest_index" or not any_true(count > 1):
        return first
    lot = draw()
    if rule == "uniform":  # a lot below 1 times a count stays below the count, in doubles too
        below = tied.cumsum(axis=0) <= (lot * count).astype(np.int64)
    else:
        chances = authors_chances(tied, asked).cumsum(axis=0)
        below = chances <= lot * chances[-1]
    return np.where(count > 1, below.sum(axis=0), first)


def authors_chances(tied: PerPlayer, asked: PerPlayer) -> PerPlayer:
    """Return each tied seat's chance to lead by AucArena's published code, float64."""
    # After each reply, in seat order, all earlier equal bids take the lead anew with probability
    # 1/2.
    chances, begun = np.zeros_like(tied, np.float64), np.zeros_like(tied[0])
    for seat in range(len(tied)):
        opens = tied[seat] & ~begun
        chances[seat] = np.where(opens, 1.0, chances[seat])
        for earlier in range(seat + 1):
            again = begun & asked[seat] & tied[earlier]
            chances = np.where(again, chances / 2, chances)
            chances[earlier] += again / 2
        begun = begun | opens
    return chances


@dataclass(frozen=True)
class EnglishAuctionState(State):
    """The state between rounds; ``round`` counts those of all items. Money is int64.

    Items are in the order of sale: ``(items, *batch)`` are their indexes in the list (`order`),
    start prices, buyers (`sold_to`) and prices, -1 until sold; ``(players, items, *batch)`` are
    true `values`, `estimates` and the number of accepted bids (`engagement`). Of the `item` on
    sale: its rounds, `start` price after `discounts`, highest bid and `leader` (-1: none), the
    `withdrawn`, `bids_on_item` and `last_reply` (a bid, -1 withdrew, -2 none). Cyclic bidding looks
    from seat `turn` on, at first `first`. `lots` are keys ``(*batch)`` of ties' lots, or numbers,
    ``(rounds, *batch)``.
    """

    budget: PerPlayer
    profit: PerPlayer
    won: PerPlayer
    withdrawn: PerPlayer
    bids_on_item: PerPlayer
    last_reply: PerPlayer
    item: PerTable
    item_round: PerTable
    start: PerTable
    high: PerTable
    leader: PerTable
    discounts: PerTable
    turn: PerTable
    first: PerTable
    order: Array
    starts: Array
    values: Array
    estimates: Array
    sold_to: Array
    price: Array
    engagement: Array
    lots: Array


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
    narrows: ClassVar[bool] = True
    mends: ClassVar[bool] = False
    idle: ClassVar[int] = WITHDRAW
    decline: ClassVar[int | None] = WITHDRAW
    personal = ("budgets", "overestimate_pct", "objective", "private_values")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "auc_arena": {},
        "auc_arena_authors": {
            "tie_rule": "authors",
            "reask_limit": "unlimited",
            "terse_rules": True,
        },
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

    players: int = param(4, "number of bidders", low=1)
    items: Any = param("items_10", "``items_1`` to ``_26``, or (name, start, value)")
    item_order: Any = param("listed", f"or one of {', '.join(ORDERS)}, or all names", hidden=True)
    budgets: Each[int] = param(10_000, "money of all bidders, or of each", each=(0, LARGEST))
    values: str = param("common", common="all have estimates of them", private="all know their own")
    value_mean: int = param(
        50, "mean of private values, normal within 1 to the own budget", **_PRIVATE
    )
    value_sd: int = param(10, "their standard deviation, at most `value_mean`", **_PRIVATE)
    private_values: Any = param(None, "a row for each bidder", none="drawn", hidden=True)
    overestimate_pct: Each[int] = param(
        10, "percent above the value", each=(-100, 100), stakes=("values", "common")
    )
    objective: Each[str] = param("profit", "or ``items``, or of each", each=("profit", "items"))
    increment_pct: int = param(10, "smallest raise, percent of the start price", low=0, high=100)
    increment_min: int = param(1, "smallest raise at any start price", low=1, high=LARGEST)
    bidding: str = param("rounds", rounds="all at the same time", cyclic="one by one in seat order")
    first_bidder: int | str = param(
        0, "seat asked first if bidding is cyclic, or ``random``", stakes=("bidding", "cyclic")
    )
    discount: int | None = param(None, "percent off if nobody bids", low=1, high=99, none="no cut")
    max_discounts: int = param(
        3, "how often an item's start price is cut at most", low=0, high=1000
    )
    max_reasks: int = param(
        3,
        "how often a bidder is asked again after an illegal reply",
        low=0,
        stakes=("reask_limit", "bounded"),
    )
    reask_limit: str = param(
        "bounded", bounded="`max_reasks` times", unlimited="until it is legal", stakes="changed"
    )
    skip_broke: bool = param(False, "who cannot afford the smallest bid is out without being asked")
    tie_rule: str = param(
        "uniform", uniform="by lot", lowest_index="lowest seat", authors="late seats likelier"
    )
    reveal_value: str = param(
        "after_sale",
        "when the true value of an item is told",
        after_sale="once it is sold",
        always="once it is closed, sold or not",
        never="never",
    )
    tell_prior: bool = param(False, "bidders are told how private values are drawn")
    terse_rules: bool = param(False, "bidders hear less about withdrawing, ties and increments")

    @property
    def silent(self) -> tuple[str, ...]:
        ties = self.terse_rules and self.bidding == "rounds" and self.players > 1
        return (*super().silent, *["tie_rule"] * ties)

    def check(self) -> None:
        order_of(self.catalogue, self.item_order)
        if self.first_bidder != "random":
            check_integer('first_bidder, if not "random",', self.first_bidder, 0, self.players - 1)
        if self.private_values is not None:
            shape = self.players, len(self.catalogue)
            rows = rows_of("private_values", self.private_values, *shape, 0, LARGEST, "bidders")
            object.__setattr__(self, "private_values", rows)
        elif self.values == "private":
            least = min(self.of_each("budgets"))
            check_integer("value_mean (with the smallest budget)", self.value_mean, 1, least)
            check_integer("value_sd", self.value_sd, 0, self.value_mean)
        facts.has_law(self, self.values == "private" and self.private_values is None)

    # -- what follows from the parameters --------------------------------------------------------

    @cached_property
    def catalogue(self) -> tuple[Item, ...]:
        return catalogue(self.items)

    @cached_property
    def purses(self) -> Array:
        return np.array(self.of_each("budgets"), np.int64)

    @cached_property
    def markups(self) -> Array:
        return np.array(self.of_each("overestimate_pct"), np.int64)

    @cached_property
    def objectives(self) -> tuple[str, ...]:
        return self.of_each("objective")

    @cached_property
    def scales(self) -> Array:
        """The unit of money in what each observes, its own first budget, int64 ``(players,)``."""
        return np.maximum(self.purses, 1)

    @cached_property
    def _richest(self) -> int:
        return int(self.purses.max())

    @property
    def announces(self) -> bool:
        """Whether true values of items sold, and with them profits, are announced."""
        return self.reveal_value != "never" and self.values == "common"

    @property
    def announces_unsold(self) -> bool:
        return self.reveal_value == "always" and self.values == "common"

    def terms(self) -> dict[str, Any]:
        counts = {"count": len(self.catalogue), "objectives": self.objectives}
        announcements = {"announces": self.announces, "announces_unsold": self.announces_unsold}
        return super().terms() | counts | announcements

    def attempts(self, allowed: int) -> int | None:
        return self.max_reasks + 1 if self.reask_limit == "bounded" else None

    def length(self) -> int:
        return sum(self.most_rounds)

    @cached_property
    def most_rounds(self) -> tuple[int, ...]:
        replies, round_limits = self.players if self.bidding == "cyclic" else 1, []
        for start, longest in ((item.start, 0) for item in self.catalogue):
            for cuts in range(self.max_discounts + 1 if self.discount else 1):
                bids = (self._richest - start) // int(self.raise_from(start)) + 1
                longest = max(longest, (cuts + 1) * replies + max(bids, 0))
                start = start * (100 - (self.discount or 0)) // 100
            round_limits.append(longest)
        return tuple(round_limits)

    # -- the first state --------------------------------------------------------------------------

    @property
    def repeated(self) -> str:
        return "" if self.private_values is None else "private values"

    @property
    def fictions(self) -> tuple[str, ...]:
        if self.values == "private":
            return ()
        percents = dict.fromkeys(self.of_each("overestimate_pct"))
        shares = ", ".join(f"{percent:+d} %" for percent in percents)
        return (f"that an estimate may be too high or too low: each is {shares} off",)

    def draws(self) -> Sequence[Draw]:
        count, seats = len(self.catalogue), self.players
        order, first = (fixed(order_of(self.catalogue, self.item_order)), fixed(self.first_bidder))
        if self.item_order == "shuffled":
            order = lambda noise: noise.order(count)
        if self.first_bidder == "random":
            first = lambda noise: noise.integers(0, seats)
        values = lambda noise: within(noise, self._value, 1, tall(self.purses, (1, *noise.batch)))
        if self.values == "common" or self.private_values:
            common = [[item.value for item in self.catalogue]] * seats
            values = fixed(common if self.values == "common" else self.private_values)
        return (
            Draw("order", order, 0, count - 1, distinct=True),
            Draw("values", values, 0, self._dearest),
            Draw("first", first, 0, seats - 1),
            Draw("lots", lambda noise: noise.key, 0, np.nextafter(1, 0), rows=self._lots, out=0),
        )

    def _lots(self, keys: Array) -> Array:
        return number(keys, tall(np.arange(min(self.length(), MOST_LOTS)), keys.shape))

    def _value(self, noise: Noise) -> Array:
        drawn = noise.normal(self.value_mean, self.value_sd, (self.players, len(self.catalogue)))
        return drawn.astype(np.int64)  # the fraction is cut

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> EnglishAuctionState:
        order, count = chance["order"], len(self.catalogue)
        starts = np.array([item.start for item in self.catalogue], np.int64)[order]
        values = np.take_along_axis(chance["values"], order[None], axis=1)
        markups = 100 + tall(self.markups, starts.shape)
        none = {"withdrawn": bool, "last_reply": NO_REPLY, "high": -1, "leader": NOBODY}
        state = self.first(
            EnglishAuctionState,
            batch,
            **{**chance, **none, "values": values},
            budget=np.array(self.each(self.purses, batch)),
            start=starts[0],
            turn=chance["first"],
            starts=starts,
            estimates=values if self.values == "private" else values * markups // 100,
            sold_to=np.full((count, *batch), NOBODY, np.int64),
            price=np.full((count, *batch), -1, np.int64),
            engagement=np.zeros((self.players, count, *batch), np.int64),
        )
        return self._skip(state, np.zeros(state.budget.shape))[0] if self.skip_broke else state

    # -- whose move it is, and what is legal ------------------------------------------------------

    def raise_from(self, start: Any) -> Any:
        return np.maximum(self.increment_min, start * self.increment_pct // 100)

    def increment(self, state: EnglishAuctionState) -> PerTable:
        return self.raise_from(state.start)

    def floor(self, state: EnglishAuctionState) -> PerTable:
        return np.where(state.high < 0, state.start, state.high + self.increment(state))[()]

    def _rivals(self, state: EnglishAuctionState) -> PerPlayer:
        return ~(state.withdrawn | (self.seats(state) == state.leader) | state.over)

    def asked(self, state: EnglishAuctionState) -> PerPlayer:
        asked = self._rivals(state)
        if self.skip_broke:
            asked = asked & (state.budget >= self.floor(state))
        if self.bidding == "rounds":
            return asked
        wait = np.where(asked, (self.seats(state) - state.turn) % self.players, self.players)
        return asked & (wait == wait.min(axis=0))

    @property
    def seats_differ(self) -> str:
        late = "of tied bidders later seats are likelier to lead"
        tied = {"lowest_index": "of tied bidders the lowest seat leads", "authors": late}
        return tied.get(self.tie_rule, "")

    @property
    def largest(self) -> int:
        """The largest product with percent, or sum over all items."""
        prices = (max(item.start, item.value) for item in self.catalogue)
        largest_amount = max(*prices, self._dearest, self._richest, self.increment_min)
        return max(200, self.players, len(self.catalogue)) * largest_amount

    def bounds(self) -> tuple[int, int]:
        return WITHDRAW, self._richest

    def highest_legal(self, state: EnglishAuctionState) -> PerPlayer:
        return np.where(state.budget >= self.floor(state), state.budget, WITHDRAW)

    def amounts(self, state: EnglishAuctionState) -> tuple[PerPlayer, PerPlayer]:
        return self.floor(state) + np.zeros_like(state.budget), state.budget

    def break_kinds(self, state: EnglishAuctionState, actions: PerPlayer) -> PerPlayer:
        below = np.where(state.high < 0, BREAKS.index("below_start"), 3)
        kinds = below * ((actions >= 0) & (actions < self.floor(state)))
        kinds = np.where(actions > state.budget, BREAKS.index("over_budget"), kinds)
        kinds = np.where(actions == MISSING, BREAKS.index("format"), kinds)
        return kinds * self.asked(state)

    def breaks(self, state: EnglishAuctionState, actions: PerPlayer) -> PerPlayer:
        return self.break_kinds(state, actions) > 0

    # -- one round --------------------------------------------------------------------------------

    def play(self, state: EnglishAuctionState, actions: PerPlayer, broke: PerPlayer) -> Played:
        asked, kinds = self.asked(state), np.zeros(broke.shape, np.int64)
        if any_true(broke):
            kinds, actions = self.break_kinds(state, actions), np.where(broke, WITHDRAW, actions)
        replies = np.maximum(actions, WITHDRAW)  # any negative number withdraws
        next_state, rewards = self._round(state, np.where(asked, replies, NO_REPLY))
        if self.skip_broke:
            next_state, rewards = self._skip(next_state, rewards)
        item = np.minimum(state.item, len(self.catalogue) - 1)
        record = {
            "actions": np.where(asked, replies, MISSING),
            "asked": asked,
            "break": kinds,
            "item": state.item,
            "lot": partial(at, state.order, item),
            "item_round": state.item_round,
            "start": state.start,
            "increment": partial(self.increment, state),
            "floor": partial(self.floor, state),
            "closed": next_state.item > state.item,
            "winner": partial(at, next_state.sold_to, item),
            "price": partial(at, next_state.price, item),
            "value": partial(at_item, state.values, item),
            "estimate": partial(at_item, state.estimates, item),
            "purse": state.budget,
            "budget": next_state.budget,
            "profit": next_state.profit,
            "won": next_state.won,
        }
        return next_state, Outcome(rewards, self.everybody(next_state.over), Later(record))

    def _round(self, state: EnglishAuctionState, replies: PerPlayer) -> tuple[Any, PerPlayer]:
        """Resolve the replies of one round, `NO_REPLY` where nobody was asked; and the rewards."""
        count, shape = len(self.catalogue), state.round.shape
        bids, leaves, replied = replies >= 0, replies == WITHDRAW, replies != NO_REPLY
        if self.skip_broke:
            leaves = leaves | (self._rivals(state) & (state.budget < self.floor(state)))
        high, leader = self._lead(state, replies, replied)
        withdrawn, leads = state.withdrawn | leaves, self.seats(state) == leader
        done = (withdrawn | leads).all(axis=0)
        sold = done & (leader >= 0)
        cut = (done ^ sold) & (self.discount is not None) & (state.discounts < self.max_discounts)
        closed = done ^ cut
        index, item = np.minimum(state.item, count - 1), state.item + closed
        won, here = leads & sold, tall(np.arange(count), shape) == index
        gain, sale, sells = (at_item(state.values, index) - high) * won, here & sold, any_true(sold)
        last_replies = np.where(bids | leaves, np.maximum(replies, WITHDRAW), state.last_reply)
        start, turn = state.start, state.turn
        if self.discount is not None:
            start = np.where(cut, start * (100 - self.discount) // 100, start)
        if self.bidding == "cyclic":
            turn = np.where(replied.any(axis=0), (replied.argmax(axis=0) + 1) % self.players, turn)
        # Indexed by (), the values of one table are numbers: much faster than arrays of one.
        next_state = state.replace(
            round=state.round + 1,
            over=state.over | (item == count),
            budget=state.budget - high * won,
            profit=state.profit + gain,
            won=state.won + won,
            withdrawn=withdrawn & ~done,
            bids_on_item=(state.bids_on_item + bids) * ~closed,
            last_reply=np.where(done, NO_REPLY, last_replies),
            item=item,
            item_round=(state.item_round + 1) * ~closed,
            start=np.where(closed, at(state.starts, np.minimum(item, count - 1)), start)[()],
            high=np.where(closed, -1, high)[()],
            leader=np.where(closed, NOBODY, leader)[()],
            discounts=(state.discounts + cut) * ~closed,
            turn=np.where(closed, state.first, turn)[()],
            sold_to=np.where(sale, leader, state.sold_to) if sells else state.sold_to,
            price=np.where(sale, high, state.price) if sells else state.price,
            engagement=state.engagement + (here & bids[:, None]),
        )
        collects = tall(np.array([aim == "items" for aim in self.objectives]), shape)
        return next_state, np.where(collects, won, gain).astype(np.float64)

    def _lead(
        self, state: EnglishAuctionState, replies: PerPlayer, spoke: PerPlayer
    ) -> tuple[PerTable, PerTable]:
        """Return the highest bid and its bidder after these replies; -1 while there is none."""
        top = replies.max(axis=0)
        bid = top >= 0
        lot = lambda: number(state.lots, state.round % MOST_LOTS)
        if state.lots.ndim > state.round.ndim:  # they were given
            lot = lambda: at(state.lots, state.round % len(state.lots))
        leader = leader_of((replies == top) & bid, self.tie_rule, spoke, lot)
        return np.where(bid, top, state.high)[()], np.where(bid, leader, state.leader)[()]

    def _skip(self, state: EnglishAuctionState, rewards: PerPlayer) -> tuple[Any, PerPlayer]:
        """Go on past rounds in which nobody can afford a bid."""
        nobody = np.full(state.budget.shape, NO_REPLY, np.int64)
        while any_true(idle := ~self.asked(state).any(axis=0) & ~state.over):
            next_state, extra = self._round(state, nobody)
            state, rewards = state.merged(next_state, idle), rewards + np.where(idle, extra, 0)
        return state, rewards

    # -- what bidders know ------------------------------------------------------------------------

    def tells_step(self, state: EnglishAuctionState) -> PerTable:
        return (state.item_round > 0) | (not self.terse_rules)

    def hears_sale(self, state: EnglishAuctionState) -> PerPlayer:
        """Return the bidders who have heard nothing since the last sale, bool."""
        return (state.last_reply == NO_REPLY) & (state.discounts == 0) & (state.item > 0)

    def hears_value(self, state: EnglishAuctionState) -> PerTable:
        """Return the tables where the true value of the item closed last is announced, bool."""
        return self.announces & ((at(state.sold_to, state.item - 1) >= 0) | self.announces_unsold)

    def spent(self, state: EnglishAuctionState) -> PerPlayer:
        return tall(self.purses, state.round.shape) - state.budget

    @cached_property
    def _dearest(self) -> int:
        if self.values == "common":
            return max(item.value for item in self.catalogue)
        return max((v for row in self.private_values or () for v in row), default=self._richest)

    def _counted(
        self, amount: Callable[[EnglishAuctionState], Array], state: EnglishAuctionState
    ) -> Array:
        """Return an amount in everybody's `scales`, with an axis for several seats."""
        alike = self._one_scale
        return amount(state) / (tall(self.scales, state.round.shape) if alike is None else alike)

    @cached_property
    def _one_scale(self) -> int | None:
        scales = set(self.scales.tolist())
        return scales.pop() if len(scales) == 1 else None

    def known(self) -> Sequence[Fact]:
        n, count, scale = self.players, len(self.catalogue), int(self.scales.min())
        rich = max(1, self._richest) / scale
        start = max(item.start for item in self.catalogue)
        step, dear = int(self.raise_from(start)) / scale, max(1, start) / scale
        markup = 0 if self.values == "private" else max(0, int(self.markups.max()))
        worth = max(1, self._dearest * (100 + markup) // 100) / scale
        highest_floor, rounds = max(dear, rich + step), max(self.most_rounds) + 1
        total = max(1, sum(item.value for item in self.catalogue)) / scale
        money = lambda name, amount, *details: Fact(name, partial(self._counted, amount), *details)
        # What all hear of several in one scale is the same to all.
        all_hear = lambda each: each[:, None] if self._one_scale is None else each
        unsold = once(lambda s: (tall(np.arange(count), s.round.shape) >= s.item) & ~s.over)
        hears_sale, tells_step = once(self.hears_sale), once(self.tells_step)
        share = lambda s: (count - s.item) / count
        estimate = lambda s: at_item(s.estimates, s.item - s.over) * ~s.over
        raised = lambda s: self.increment(s) * (tells_step(s) & ~s.over)
        floor = lambda s: self.floor(s) * ((tells_step(s) | (s.high < 0)) & ~s.over)
        bidders_in = lambda s: (~s.withdrawn).sum(axis=0)
        buyer = lambda s: np.where(hears_sale(s), at(s.sold_to, s.item - 1), NOBODY)
        sale_price = lambda s: np.maximum(at(s.price, s.item - 1), 0) * hears_sale(s)
        value = lambda s: at_item(s.values, s.item - 1) * (hears_sale(s) & self.hears_value(s))
        coming = lambda s: all_hear(s.starts * unsold(s))
        ahead = lambda s: s.estimates.swapaxes(0, 1) * unsold(s)[:, None]
        bid = partial(self._counted, lambda s: all_hear(np.maximum(s.last_reply, 0)))
        reply = lambda s: np.where(all_hear(s.last_reply) == WITHDRAW, -1, bid(s))
        profit = lambda s: all_hear(s.profit * self.announces)
        spent = lambda s: all_hear(self.spent(s))
        latest = "latest reply of seat {} on the item: its bid, -1 withdrew, 0 none"
        gain = "announced profit of seat {}; 0 if not announced"
        mine = "own estimate of its value; the value if it is private"
        return (
            Fact("items_left", share, 0, 1, "items not closed yet, as a share of all"),
            Fact("round", lambda s: s.item_round + 1, 1, rounds,
                 "round of the item on sale, from 1"),
            money("start", lambda s: s.start * ~s.over, 0, dear, "its start price now"),
            money("estimate", estimate, 0, worth, mine),
            money("increment", raised, 0, step, "smallest raise; 0 if not told yet"),
            money("high", lambda s: np.maximum(s.high, 0), 0, rich, "highest bid; 0 if none"),
            Fact("leading", lambda s: self.seats(s) == s.leader, 0, 1, "1: leads"),
            Fact("in", lambda s: ~s.withdrawn, 0, 1, "1: has not withdrawn from the item"),
            Fact("bidders_in", bidders_in, 0, n, "bidders who have not withdrawn from it"),
            money("floor", floor, 0, highest_floor, "smallest legal bid; 0 if not told yet"),
            money("budget", lambda s: s.budget, 0, 1, "own money left"),
            Fact("bids", lambda s: s.bids_on_item, 0, rounds, "own bids on the item"),
            Fact("asked", self.asked, 0, 1, "1: has to reply now"),
            Fact("leader", lambda s: s.leader, NOBODY, n - 1, "seat that leads; -1 nobody"),
            Fact("sale_winner", buyer, NOBODY, n - 1, "first round: last item's buyer; -1 nobody"),
            money("sale_price", sale_price, 0, rich, "first round: last item's price; 0 if unsold"),
            money("sale_value", value, 0, worth,
                  "first round: last item's true value; 0 if not told"),
            money("start", coming, 0, dear, "start price of item {}; 0 once it is closed", count),
            money("estimate", ahead, 0, worth,
                  "own estimate of item {}; 0 once it is closed", count),
            Fact("reply", reply, -1, rich, latest, True),
            Fact("won", lambda s: s.won, 0, count, "items won by seat {}", True),
            money("profit", profit, -rich, total, gain, True),
            money("spent", spent, 0, rich, "sum of the prices that seat {} paid", True),
        )  # fmt: skip

    def recalled(self) -> Sequence[Fact]:
        """Return the value and the estimate of the dearest item with announced value; else 0."""
        value, estimate = (partial(self._recalled, name) for name in ("values", "estimates"))
        return (
            Fact("told_value", value, 0, np.inf, "value of the dearest item announced"),
            Fact("told_estimate", estimate, 0, np.inf, "own estimate of the same item"),
        )

    def _recalled(self, name: str, state: EnglishAuctionState) -> PerPlayer:
        closed = tall(np.arange(len(self.catalogue)), state.round.shape) < state.item
        public = closed & ((state.sold_to >= 0) | self.announces_unsold) & self.announces
        dearest = (state.values[0] * public).argmax(axis=0)
        return at_item(getattr(state, name) * public, dearest)

    def told(self, state: EnglishAuctionState, seat: int) -> dict[str, Any]:
        names, index, on_sale = self.names(), int(state.item), not state.over
        led, lots = state.leader >= 0, range(index, len(self.catalogue)) if on_sale else ()
        ahead = [
            {
                "name": self.item_at(state, lot).name,
                "start": int(state.starts[lot]),
                "estimate": int(state.estimates[seat, lot]),
            }
            for lot in lots
        ]
        current: dict[str, Any] = dict.fromkeys(("number", "item", "start", "estimate", "round"))
        if on_sale:
            item = ahead.pop(0)
            current = {"number": index + 1, "item": item["name"], "start": int(state.start)}
            current |= {"estimate": item["estimate"], "round": int(state.item_round) + 1}
        return {
            **current,
            "sale": self._sale(state, index - 1) if self.hears_sale(state)[seat] else None,
            "replies": [
                {"name": name, "bid": reply if reply >= 0 else None}
                for name, reply in zip(names, state.last_reply.tolist(), strict=True)
                if reply != NO_REPLY
            ],
            "leader": names[int(state.leader)] if led else None,
            "high": int(state.high) if led else None,
            "increment": int(self.increment(state)) if self.tells_step(state) else None,
            "budget": int(state.budget[seat]),
            "bids": int(state.bids_on_item[seat]),
            "ahead": ahead,
            "standings": [
                {
                    "name": names[buyer],
                    "won": int(state.won[buyer]),
                    "spent": int(self.spent(state)[buyer]),
                    "profit": int(state.profit[buyer]) if self.announces else None,
                }
                for buyer in np.flatnonzero(state.won)
            ],
        }

    def _sale(self, state: EnglishAuctionState, index: int) -> dict[str, Any]:
        winner = int(state.sold_to[index])
        return {
            "item": self.item_at(state, index).name,
            "winner": self.names()[winner] if winner >= 0 else None,
            "price": int(state.price[index]) if winner >= 0 else None,
            "value": int(state.values[0, index]) if self.hears_value(state) else None,
        }

    def item_at(self, state: EnglishAuctionState, index: Any) -> Item:
        return self.catalogue[int(state.order[index])]

    def sold(
        self, previous_state: EnglishAuctionState, next_state: EnglishAuctionState
    ) -> list[str]:
        sales = []
        for index in range(int(previous_state.item), int(next_state.item)):
            name, buyer = self.item_at(next_state, index).name, int(next_state.sold_to[index])
            worth, price = int(next_state.values[buyer, index]), int(next_state.price[index])
            sale = f"goes to {self.names()[buyer]} for {price}, worth {worth} to it"
            sales.append(f"{name} {sale if buyer != NOBODY else 'is not sold'}")
        return sales

    @property
    def payable(self) -> tuple[float, float]:
        items = 0.0, float(len(self.catalogue))
        return items if set(self.objectives) == {"items"} else self.profits

    @property
    def profits(self) -> tuple[float, float]:
        return -float(self._richest), float(len(self.catalogue) * max(1, self._dearest))

    def goal(self, seat: int) -> Goal:
        if self.objectives[seat] == "items":
            return Goal("count", "items")
        return Goal(unit="profits", over="all items")

    def asks(self, state: EnglishAuctionState, seat: int) -> Bid:
        floor, budget = int(self.floor(state)), int(state.budget[seat])
        item = self.item_at(state, state.item).name
        return alike(Bid, "bid", floor, budget, int(state.high) < 0, not self.terse_rules, item)

    def picture(self, state: EnglishAuctionState) -> tuple[str, list[str], list[list[str]]]:
        index, caption = int(state.item), f"{len(self.catalogue)} items closed"
        if index < len(self.catalogue):
            caption = (
                f"item {index + 1} of {len(self.catalogue)}, {self.item_at(state, index).name}, "
                f"start price {int(state.start)}, round {int(state.item_round) + 1}"
            )
        words = {NO_REPLY: "", WITHDRAW: "withdrew"}
        replies = [words.get(reply, str(reply)) for reply in state.last_reply.tolist()]
        if state.leader >= 0:
            replies[int(state.leader)] += " leads"
        columns = self.names(), replies, state.budget, state.won, state.profit
        rows = [list(map(str, row)) for row in zip(*columns, strict=True)]
        return f"{self.title}: {caption}", ["seat", "reply", "budget", "items", "profit"], rows
