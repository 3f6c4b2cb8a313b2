"""What bidders in the English auction know: the same in numbers and in plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from llm_games.facts import Column
from llm_games.rulebook import Array, at

if TYPE_CHECKING:
    from llm_games.games.english_auction.rules import EnglishAuction, EnglishAuctionState

WITHDRAW, NO_REPLY = -1, -2
NOBODY = -1


def of(values: Array, place: Array) -> Array:
    """Take each table's values at one place of ``(players, items, *batch)``."""
    if np.ndim(place) == 0:
        return values[:, place]
    return np.take_along_axis(values, place[None, None], axis=1)[:, 0]


def columns(game: EnglishAuction) -> tuple[Column, ...]:
    """Return the columns of `observe`; money counts in units of ``game.scale``."""
    n, count, rounds = game.players, len(game.catalogue), game.longest() + 1
    dearest = max(1, *(item.start for item in game.catalogue)) / game.scale
    step = game.largest_increment() / game.scale
    worth, floor = max(1, game.largest_estimate()) / game.scale, max(dearest, 1 + step)
    own = (
        Column("items_left", 0, 1, "items not closed yet, as a share of all"),
        Column("round", 1, rounds, "round of the item on sale, from 1"),
        Column("start", 0, dearest, "its start price now"),
        Column("estimate", 0, worth, "own estimate of its value; the value if it is private"),
        Column("increment", 0, step, "smallest raise; 0 if not told yet"),
        Column("high", 0, 1, "highest bid; 0 if none"),
        Column("leading", 0, 1, "1: leads"),
        Column("in", 0, 1, "1: has not withdrawn from the item"),
        Column("bidders_in", 0, n, "bidders who have not withdrawn from it"),
        Column("floor", 0, floor, "smallest legal bid; 0 if not told yet"),
        Column("budget", 0, 1, "own money left"),
        Column("bids", 0, rounds, "own bids on the item"),
        Column("asked", 0, 1, "1: has to reply now"),
        Column("leader", NOBODY, n - 1, "seat that leads; -1 nobody"),
        Column("sale_winner", NOBODY, n - 1, "first round: last item's buyer; -1 nobody"),
        Column("sale_price", 0, 1, "first round: last item's price; 0 if unsold"),
        Column("sale_value", 0, worth, "first round: last item's true value; 0 if not told"),
    )
    profit = max(1, sum(item.value for item in game.catalogue)) / game.scale
    kinds = (
        ("start", count, 0, dearest, "start price of item {}; 0 once it is closed"),
        ("estimate", count, 0, worth, "own estimate of item {}; 0 once it is closed"),
        ("reply", n, -1, 1, "latest reply of seat {} on the item: its bid, -1 withdrew, 0 none"),
        ("won", n, 0, count, "items won by seat {}"),
        ("profit", n, -1, profit, "announced profit of seat {}; 0 if not announced"),
        ("spent", n, 0, 1, "sum of the prices that seat {} paid"),
    )
    each = (
        Column(f"{kind}_{i}", low, high, meaning.format(i))
        for kind, many, low, high, meaning in kinds
        for i in range(many)
    )
    return (*own, *each)


def observe(game: EnglishAuction, state: EnglishAuctionState) -> Array:
    """Return what each seat knows, float32 ``(players, *batch, columns)``."""
    count, on_sale, money = len(game.catalogue), ~state.over, game.scale
    item, last = np.minimum(state.item, count - 1), np.maximum(state.item - 1, 0)
    fresh = _fresh(game, state)
    tells = game.tells_step(state) & on_sale
    floor_told = on_sale & (tells | (state.high < 0))
    left, inside = (game.places(state) >= state.item) & on_sale, ~state.withdrawn
    reply = np.where(state.last_reply == WITHDRAW, -money, np.maximum(state.last_reply, 0))
    # Each value, then each block of values, with the unit it counts in.
    own: tuple[tuple[Array, int], ...] = (
        (count - state.item, count),
        (state.item_round + 1, 1),
        (state.start * on_sale, money),
        (of(state.estimates, item) * on_sale, money),
        (game.increment(state) * tells, money),
        (np.maximum(state.high, 0), money),
        (game.seats(state) == state.leader, 1),
        (inside, 1),
        (inside.sum(axis=0), 1),
        (game.floor(state) * floor_told, money),
        (state.budget, money),
        (state.bids_on_item, 1),
        (game.asked(state), 1),
        (state.leader, 1),
        (np.where(fresh, at(state.sold_to, last), NOBODY), 1),
        (np.maximum(at(state.price, last), 0) * fresh, money),
        (of(state.values, last) * (fresh & game.announces), money),
    )
    blocks: tuple[tuple[Array, int], ...] = (
        ((state.starts * left)[:, None], money),
        (state.estimates.swapaxes(0, 1) * left[:, None], money),
        (reply[:, None], money),
        (state.won[:, None], 1),
        ((state.profit * game.announces)[:, None], money),
        (state.spent[:, None], money),
    )
    rows = np.empty((len(game.column_index), *state.budget.shape), np.float32)
    for i, (column, unit) in enumerate(own):
        rows[i] = column if unit == 1 else column / unit
    begin = len(own)
    for block, unit in blocks:
        rows[begin : begin + len(block)] = block if unit == 1 else block / unit
        begin += len(block)
    # Columns lie one after another: fast to write and to read.
    return rows.transpose(*range(1, rows.ndim), 0)


def _fresh(game: EnglishAuction, state: EnglishAuctionState) -> Array:
    """Return who has heard nothing since the last sale, bool ``([players,] *batch)``."""
    first = (state.item_round == 0) & (state.item > 0)
    if game.bidding == "rounds":
        return first
    # A seat's first turn on an item comes rounds later.
    unasked = (state.last_reply == NO_REPLY) & (state.discounts == 0) & (state.item > 0)
    return first | unasked


def told(game: EnglishAuction, state: EnglishAuctionState, player: int) -> dict[str, Any]:
    """Return what one seat of one table knows, as plain values."""
    names, place, on_sale = game.names(), int(state.item), not state.over
    fresh = bool(np.broadcast_to(_fresh(game, state), state.last_reply.shape)[player])
    ahead = [lot(game, state, player, i) for i in range(place, len(game.catalogue))]
    return {
        "number": place + 1 if on_sale else None,
        "item": ahead[0]["name"] if on_sale else None,
        "start": int(state.start) if on_sale else None,
        "estimate": ahead[0]["estimate"] if on_sale else None,
        "round": int(state.item_round) + 1 if on_sale else None,
        "sale": _sale(game, state, place - 1) if fresh else None,
        "replies": [
            {"name": name, "bid": reply if reply >= 0 else None}
            for name, reply in zip(names, state.last_reply.tolist(), strict=True)
            if reply != NO_REPLY
        ],
        "leader": names[int(state.leader)] if state.leader >= 0 else None,
        "high": int(state.high) if state.leader >= 0 else None,
        "increment": int(game.increment(state)) if game.tells_step(state) else None,
        "budget": int(state.budget[player]),
        "bids": int(state.bids_on_item[player]),
        "ahead": ahead[1:] if on_sale else [],
        "standings": [
            {
                "name": names[seat],
                "won": int(state.won[seat]),
                "spent": int(state.spent[seat]),
                "profit": int(state.profit[seat]) if game.announces else None,
            }
            for seat in np.flatnonzero(state.won)
        ],
    }


def lot(
    game: EnglishAuction, state: EnglishAuctionState, player: int, place: int
) -> dict[str, Any]:
    """Return name, start price and a seat's estimate of the item at one place."""
    return {
        "name": game.catalogue[int(state.order[place])].name,
        "start": int(state.starts[place]),
        "estimate": int(state.estimates[player, place]),
    }


def _sale(game: EnglishAuction, state: EnglishAuctionState, place: int) -> dict[str, Any]:
    winner = int(state.sold_to[place])
    return {
        "item": game.catalogue[int(state.order[place])].name,
        "winner": game.names()[winner] if winner >= 0 else None,
        "price": int(state.price[place]) if winner >= 0 else None,
        "value": int(state.values[0, place]) if game.announces else None,
    }


def picture(
    game: EnglishAuction, state: EnglishAuctionState
) -> tuple[str, list[str], list[list[str]]]:
    """Return a caption, headers and rows that show one whole table to a spectator."""
    place, count = int(state.item), len(game.catalogue)
    caption = f"{game.title}: {count} items closed"
    if place < count:
        name = lot(game, state, 0, place)["name"]
        caption = f"{game.title}: item {place + 1} of {count}, {name}, start price "
        caption += f"{int(state.start)}, round {int(state.item_round) + 1}"
    said = {NO_REPLY: "", WITHDRAW: "withdrew"}
    rows = []
    for seat, name in enumerate(game.names()):
        reply = int(state.last_reply[seat])
        leads = " leads" if seat == int(state.leader) else ""
        numbers = (state.budget[seat], state.won[seat], state.profit[seat])
        rows.append([name, said.get(reply, str(reply)) + leads, *map(str, numbers)])
    return caption, ["seat", "reply", "budget", "items", "profit"], rows
