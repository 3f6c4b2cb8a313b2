"""Ascending auctions: bids that a budget allows, prices of price clocks, and hindsight.

Money is in integers. With known budgets any price up to the value may be an equilibrium's, so the
reference stays in as long as the item at its price is worth more than what the money could buy
later. AucArena (arXiv 2310.05746); Milgrom & Weber 1982; Krishna, Auction Theory.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from llm_games.arrays import at, called
from llm_games.baselines.regret import Claim, Measured, Parts, Steps
from llm_games.games.english_auction.rules import WITHDRAW
from llm_games.rulebook import Array, PerPlayer, PerTable

MOST_STEPS = 400  # of a budget where money has no coarser common divisor


def money_step(amounts: Array, largest: Array) -> Array:
    """Return the step in which money is counted: the amounts' common divisor if that suffices."""
    divisor = math.gcd(*(int(amount) for amount in np.ravel(amounts)))
    return np.maximum(max(divisor, 1), -(-largest // MOST_STEPS))


def knapsack(costs: Sequence[int], gains: Sequence[int], budget: int) -> Array:
    """Return the largest gain of items by money spent, ``(budget + 1,)``."""
    best = np.zeros(budget + 1, np.int64)
    for cost, gain in zip(costs, gains, strict=True):
        if gain > 0 and cost <= budget:
            best[cost:] = np.maximum(best[cost:], best[: budget + 1 - cost] + gain)
    return best


def bears(
    budget: Array, price: Array, gain: Array, costs: Array, gains: Array, step: Array
) -> Array:
    """Return whether buying now at a price leaves no better use of the money, ``(*batch)``."""
    # ``gain + K(budget - price) >= K(budget)``; ``K`` is the `knapsack` of later items, of these
    # costs and gains ``(*batch, items)``. Money is in steps, costs rounded up and budgets down.
    units = -(-costs // np.asarray(step)[..., None])
    budget_units, rest_units = (np.maximum(money, 0) // step for money in (budget, budget - price))
    # Most are decided without it: a loss, more than all later gains, or money enough for them all.
    useful = (gains > 0) & (units <= budget_units[..., None])
    units, gains = units * useful, gains * useful
    yes = (price <= budget) & (gain >= 0)
    unclear = yes & (units.sum(axis=-1) > rest_units) & (gain < gains.sum(axis=-1))
    parts = units, gains, budget_units[..., None], rest_units[..., None]
    return yes & (gain >= called(_lost, unclear, np.concatenate(parts, axis=-1)))


def _lost(rows: Array) -> list[int]:
    """Return what is not gained later: of rows of costs, gains, the whole money and the rest."""
    lost, kinds = list[int](), np.ascontiguousarray(rows[:, :-2])
    for kind, (whole, rest) in zip(kinds, rows[:, -2:].tolist(), strict=True):
        value = _knapsack_of(kind.tobytes(), max(whole, MOST_STEPS))
        lost.append(value[whole] - value[rest])
    return lost


@lru_cache(4096)
def _knapsack_of(row: bytes, budget: int) -> Any:
    """Return the `knapsack` of one row of costs and gains; most come again and again."""
    costs, gains = np.frombuffer(row, np.int64).reshape(2, -1).tolist()
    return knapsack(costs, gains, budget).tolist()


def expected_prices(starts: Array, start: Array, money: Array) -> Array:
    """Return the expected prices of later items by money in the room, ``(*batch, items)``."""
    # Start prices (0: no item) times all bidders' money over all start prices, within 1 to 2.
    total = np.maximum(starts.sum(axis=-1) + start, 1)
    return -(-starts * np.clip(money, total, 2 * total)[..., None] // total[..., None])


def regret(
    values: PerPlayer, winner: PerTable, price: PerTable, least: PerTable, purses: PerPlayer
) -> PerPlayer:
    """Return each seat's loss in hindsight on an item."""
    # The winner (-1: nobody) could pay at most the value, others buy it for `least`, if purses
    # allow.
    won = np.arange(len(values)).reshape(-1, *(1 for _ in np.shape(winner))) == winner
    missed = np.where(purses >= least, np.maximum(values - least, 0), 0)
    return np.where(won, np.maximum(price - values, 0), missed)


def deviation(game: Any, record: Steps) -> Measured:
    """Return the regret of replies once an item is closed; no distance is defined."""
    least = np.where(record["winner"] < 0, record["start"], record["price"] + record["increment"])
    lost = regret(record["value"], record["winner"], record["price"], least, record["purse"])
    return lost * record["closed"], np.full(np.shape(record["closed"]), np.nan)


def interim(game: Any, record: Steps) -> PerPlayer:
    """Return replies' mean losses if rivals with private values stay in up to these, by item.

    A reply is followed by staying in up to the value; the highest rival value is at least the
    highest bid so far. NaN where values are not private and drawn, or items are pursued.
    """
    floor, value, replies = record["floor"], record["value"], record["actions"]
    losses = np.zeros(replies.shape)
    for seat, objective in enumerate(game.objectives):
        if game.values != "private" or game.private_values or objective != "profit":
            losses[seat] = np.nan
            continue
        so_far = np.where(floor > record["start"], floor - record["increment"], -1)
        gain = _stay(game, seat, value[seat], np.maximum(replies[seat], 0), so_far)
        best = np.where(floor <= value[seat], _stay(game, seat, value[seat], floor, so_far), 0)
        lost = np.maximum(np.maximum(best, 0) - np.where(replies[seat] < 0, 0, gain), 0)
        losses[seat] = np.where(record["asked"][seat], lost, 0)
    return losses


def _stay(game: Any, seat: int, value: Array, bid: Array, so_far: Array) -> Array:
    """Return the mean gain of a bid, followed by staying in up to the value if it is beaten."""
    rivals = tuple(np.delete(game.purses, seat).tolist())
    grid, highest, area = _rivals(rivals, game.value_mean, game.value_sd)
    below, at_bid = (np.interp(x, grid, area) for x in (value, bid))
    # The chance of less is gone.
    ruled_out = np.where(so_far < 0, 0, np.interp(so_far, grid, highest))
    above = (value - bid) * (np.interp(bid, grid, highest) - ruled_out)
    gain = np.where(bid < value, below - at_bid - (value - bid) * ruled_out, above)
    return np.divide(gain, 1 - ruled_out, out=np.zeros(np.shape(gain)), where=ruled_out < 1 - 1e-12)


@lru_cache(maxsize=64)
def _rivals(purses: tuple[int, ...], mean: int, sd: int) -> tuple[Array, Array, Array]:
    """Return a grid of money, the CDF of the highest rival value (a normal's), and its integral."""
    from scipy.special import ndtr

    grid = np.linspace(0, max(purses, default=1), 4001)
    highest = np.ones(len(grid))
    for purse in purses:
        ends = np.append(grid.clip(1, max(purse, 1)), (1, max(purse, 1)))
        law = ndtr((ends - mean) / max(sd, 1e-9))
        highest *= (law[:-2] - law[-2]) / (law[-1] - law[-2])
    return grid, highest, np.append(0, np.cumsum((highest[1:] + highest[:-1]) / 2 * np.diff(grid)))


def rational(game: Any) -> Claim:
    alone = len(game.catalogue) == 1 and set(game.objectives) == {"profit"}
    if game.values == "private" and alone:
        but = _unlike_a_clock(game)
        up = "stays in up to its valuation"
        if but:
            return Claim("heuristic", f"{up}; but {but}")
        return Claim("best known", f"{up}, an equilibrium but for what jumps over increments gain")
    sentence = (
        "bids while the item beats what the money could buy later, at prices that the money in the "
        "room suggests; budgets leave the equilibrium price open"
    )
    worth = "; estimates count as the last announced values tell" * (game.values == "common")
    return Claim("heuristic", sentence + worth)


def _unlike_a_clock(game: Any) -> str:
    """Return why bids gain much over bidding up to private values; "" (small increments) if not."""
    start = game.catalogue[0].start
    spread = min(game.value_sd, game.purses.min() / 4)  # which money cuts
    if game.private_values:
        return "valuations are given"
    if game.discount and game.max_discounts and start:
        return "waiting for a lower start price can gain much"
    if game.players > 1 and 5 * game.raise_from(start) > 2 * spread:
        return "jumps over increments gain much"
    return ""


def replies(game: Any) -> list[str]:
    rules = [f"rule:{limit}" for limit in range(1, 10)]
    return ["rational", "knap", "debiased", "naive", "cooperative", *rules, f"fixed:{WITHDRAW}"]


WELFARE = "payoffs and the seller's"


def welfare(game: Any, steps: Steps) -> Parts:
    values, closed, winner = (steps[name] for name in ("value", "closed", "winner"))
    sold = closed & (winner >= 0)
    total = (at(values, np.maximum(winner, 0)) * sold).sum(axis=-1)
    best = (values.max(axis=0) * closed).sum(axis=-1)
    return total, 0, best, np.nan, np.nan


def reservations(game: Any, states: Sequence[Any], moves: Array) -> Array:
    """Return the price up to which each bidder bid on each item, ``(players, items, tables)``.

    Just below that of its withdrawal, of a buyer its last bid; -1: never asked. `moves` are
    ``(steps, players, tables)``.
    """
    count = len(game.catalogue)
    limits = np.full((game.players, count, *moves.shape[2:]), -1, np.int64)
    for state, replies in zip(states, moves, strict=True):
        price = np.where(replies < 0, game.floor(state) - 1, replies)
        here = game.asked(state)[:, None] & (np.arange(count)[:, None] == state.item)
        limits = np.where(here, np.maximum(price[:, None], -1), limits)
    return limits


def field(game: Any, states: Sequence[Any], moves: Array) -> Callable[[Any], PerPlayer]:
    """Return bidders' moves up to their `reservations`, the recorded tables' repeated for more."""
    limits = reservations(game, states, moves).swapaxes(0, 1)

    def bids(state: Any) -> PerPlayer:
        floor, tables = game.floor(state), np.arange(state.item.shape[-1]) % limits.shape[-1]
        upto = limits[np.minimum(state.item, len(limits) - 1), :, tables].T
        return np.where((floor <= upto) & (floor <= state.budget), floor, WITHDRAW)

    return bids


def unasked(game: Any) -> tuple[str, ...]:
    """Return the kinds of graded questions without an answer: replies count once an item closes."""
    return ("reply",)
