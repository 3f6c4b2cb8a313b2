"""Water allocation challenge: rules of thumb, best responses by dynamic programming, a planner.

No equilibrium is known where water is scarce: unspent money is worthless, as in a Blotto game, and
pure best responses cycle. The baselines are best responses to a fixed field: level 0 are bidders
who spread their money evenly over the days they can still go dry (`even`), level ``n`` replies
best to everybody else at level ``n - 1``. Arrays are players-first, money is in the game's units.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256

import numpy as np

from llm_games.baselines.cache import Arrays, remember
from llm_games.baselines.deviation import Measured
from llm_games.games.water_allocation.rules import WaterAllocation, WaterAllocationState
from llm_games.noise import Noise
from llm_games.questions import NO_BID
from llm_games.rulebook import Array, PerPlayer, PerTable

NEVER = int(np.iinfo(np.int64).max)
"""The critical price of water that no bid can win."""


def endurance(hp: Array, dry: Array) -> Array:
    """Return how many further dry days in a row a resident survives.

    The largest ``d`` with ``sum(dry + j for j in 1..d) < hp``, for health above 0; broadcast.
    """
    hp, dry = np.broadcast_arrays(hp, dry)
    days, loss = np.zeros(hp.shape, np.int64), dry + 1
    total = loss
    while (total < hp).any():
        days = days + (total < hp)
        loss = loss + 1
        total = total + loss
    return days


# -- rules of thumb --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Situation:
    """What a resident's bid depends on: health, dry days in a row, and what is said below."""

    balance: PerTable  # money today, salary included
    salary: PerTable  # money paid a day
    hp: PerTable
    dry: PerTable
    days_left: PerTable  # today included
    supply: PerTable  # water today

    @classmethod
    def of(cls, game: WaterAllocation, state: WaterAllocationState, seat: int) -> Situation:
        """Return one seat's situation."""
        return cls(
            game.purse(state)[seat],
            game.salaries[seat],
            state.hp[seat],
            state.dry[seat],
            game.days - state.round,
            game.supply(state),
        )

    @property
    def slack(self) -> PerTable:
        """Further dry days that the resident survives, see `endurance`."""
        return endurance(self.hp, self.dry)


Rule = Callable[[Situation, Noise], PerTable]
"""Turns a situation, and chance, into a bid."""


def even(now: Situation, noise: Noise | None = None) -> Array:
    """Return an even share of the money for each day that the water can still wait for."""
    slack = now.slack
    return np.where(slack >= now.days_left, 0, now.balance // (slack + 1))


def all_in(now: Situation, noise: Noise | None = None) -> Array:
    """Return all the money, unless water is not needed any more."""
    return np.where(now.slack >= now.days_left, 0, now.balance)


def urgent(now: Situation, noise: Noise | None = None) -> Array:
    """Return all the money on the last day to live, half of it one day before, else 0."""
    slack = now.slack
    bid = np.where(slack == 0, now.balance, np.where(slack == 1, now.balance // 2, 0))
    return np.where(slack >= now.days_left, 0, bid)


RULES: dict[str, Rule] = {
    "zero": lambda now, noise: np.zeros_like(now.balance),
    "salary": lambda now, noise: np.minimum(now.balance, now.salary),
    "random": lambda now, noise: noise.integers(0, now.balance, endpoint=True),
    "half": lambda now, noise: now.balance // 2,
    "all_in": all_in,
    "even": even,
    "urgent": urgent,
}
"""Rules of thumb by name."""


@dataclass(frozen=True)
class Play:
    """What came of many games."""

    survived: Array  # (players, games)
    living: Array  # at the start of each day, (days, players, games)
    bids: Array  # of each day, (days, players, games); `NO_BID` of the dead
    supplies: Array  # (days, games)


def play(game: WaterAllocation, rules: Sequence[Rule], games: int, seed: int = 0) -> Play:
    """Play many games with one rule for each seat."""
    noise = Noise.copies(seed * games, (games,))
    state = game.reset(noise, (games,))
    supplies, living, bids = state.supplies, [], []
    for day in range(game.days):
        now = [
            rule(Situation.of(game, state, seat), noise.of(day, seat))
            for seat, rule in enumerate(rules)
        ]
        living.append(state.living)
        bids.append(np.where(state.living, np.stack(now), NO_BID))
        state, _ = game.step(state, bids[-1])
    return Play(state.living, np.stack(living), np.stack(bids), supplies)


# -- prices ----------------------------------------------------------------------------------------


def critical_price(game: WaterAllocation, bids: PerPlayer, supply: PerTable, seat: int) -> PerTable:
    """Return the lowest bid that gets the seat its water; `NEVER` if none does.

    A seat's winning is monotone in its own bid (which is ignored in `bids`): served first it gets
    whatever water there is, and each other that goes before leaves less.
    """
    place = game.precedence.argsort()
    ranked = game.precedence[game.precedence != seat]
    ranked = ranked[np.argsort(-bids[ranked], axis=0, kind="stable")]
    wins_ties = place[seat] < place
    left, need = supply, game.requirements[seat]
    price = np.where(need <= left, 0, NEVER)
    found = need > left
    for other in ranked:
        bid = np.take_along_axis(bids, other[None], axis=0)[0]
        bidding, wanted = bid > NO_BID, game.requirements[other]
        fits = bidding & (wanted <= left)
        left = left - wanted * fits
        if game.allocation == "stop":
            left = np.where(bidding & ~fits, -1, left)
        rival = bidding & (left < need) & ~found  # after this one too little is left
        price = np.where(rival, bid + ~wins_ties[other], price)
        found = found | rival
    return price


STEPS = ((40, 1), (100, 2), (200, 4), (480, 8))
"""Bid levels of the dynamic program: up to so much, in such steps."""


@dataclass(frozen=True)
class Grid:
    """The money of the dynamic program: units of `unit`, at most `most` of them."""

    unit: int
    most: int = STEPS[-1][0]

    @classmethod
    def of(cls, game: WaterAllocation) -> Grid:
        """Return a grid for the money at the start and four of the game's largest salaries."""
        most = 4 * int(game.salaries.max()) + game.balance_start * game.unit
        return cls(max(1, -(-most // STEPS[-1][0])))

    @property
    def levels(self) -> Array:
        """Bids that are considered, ascending, int64."""
        levels = [0]
        for most, step in STEPS:
            levels += range(levels[-1] + step, most + 1, step)
        return np.array(levels, np.int64)


def win_chances(game: WaterAllocation, field: Play, seat: int, grid: Grid) -> Array:
    """Return the chance that a bid wins, ``(days, supplies, levels)``.

    From the critical prices in simulated games, smoothed over neighbouring days by the weights
    1/2, 1, 1/2, with a prior of weight 1: certain from 20 dollars times the day, below in
    proportion. It is 0 where the water does not suffice for the seat.
    """
    levels, days = grid.levels * grid.unit, np.arange(game.days)
    span, width = game.supply_top - game.supply_low + 1, len(levels) + 1
    wins = np.zeros((game.days, span, width))
    for day in days:
        price = critical_price(game, field.bids[day], field.supplies[day], seat)
        enough = np.searchsorted(levels, price)  # the first level that is
        cells = (field.supplies[day] - game.supply_low) * width + enough
        wins[day] = np.bincount(cells, minlength=span * width).reshape(span, width)
    wins = _smooth(wins)
    won, tried = wins.cumsum(axis=-1)[..., :-1], wins.sum(axis=-1, keepdims=True)
    prior = np.minimum(levels / (20 * game.unit * (days[:, None] + 1)), 1)[:, None]
    chances = (won + prior) / (tried + 1)
    chances[:, np.arange(span) + game.supply_low < game.requirements[seat]] = 0
    return chances.astype(np.float32)


def _smooth(values: Array) -> Array:
    """Add half of each neighbouring day to every day."""
    padded = np.pad(values, ((1, 1), (0, 0), (0, 0)))
    return padded[:-2] / 2 + padded[1:-1] + padded[2:] / 2


# -- best responses --------------------------------------------------------------------------------

MONEY = 1e-3
"""What the most money of the grid is worth to a survivor, so that equal chances go to thrift."""


@dataclass(frozen=True)
class Response:
    """A best response to a field, as a table."""

    choice: Array  # index into the levels, (days, supplies, health, dry days, money)
    value: float  # the chance to survive that it expects
    grid: Grid
    supply_low: int  # the supply of the first row

    def __call__(self, now: Situation, noise: Noise | None = None) -> Array:
        """Return the bid in a situation: a `Rule`."""
        day = len(self.choice) - now.days_left
        money = now.balance // self.grid.unit
        wanted = (day, now.supply - self.supply_low, now.hp, now.dry, money)
        place = tuple(
            np.clip(at, 0, size - 1) for at, size in zip(wanted, self.choice.shape, strict=True)
        )
        return self.grid.levels[self.choice[place]] * self.grid.unit


def best_response(game: WaterAllocation, field: Play, seat: int) -> Response:
    """Return a best response to the prices of a field, by backward induction.

    Over day, supply, health, dry days and money; the prices of a day are taken as independent of
    the seat's own past.
    """
    grid = Grid.of(game)
    chances = win_chances(game, field, seat, grid)
    levels, money = grid.levels, np.arange(grid.most + 1)
    salary = int(game.salaries[seat]) // grid.unit
    paid = np.clip(money[:, None] - levels + salary, 0, grid.most)
    beyond = levels > money[:, None]
    kept = np.minimum(money + salary, grid.most)
    longest = int(endurance(np.array(game.hp_max), np.array(0)))
    shape = (game.hp_max + 1, longest + 2, grid.most + 1)
    value = np.zeros(shape, np.float32)  # no health, or too many dry days: dead
    value[1:, :-1] = 1 + MONEY * money / grid.most
    choice = np.zeros((*chances.shape[:2], game.hp_max + 1, longest + 1, grid.most + 1), np.uint8)
    for day in range(game.days)[::-1]:
        last, value = value, np.zeros(shape, np.float32)
        after = {}
        for hp in range(1, game.hp_max + 1):
            up = min(game.hp_max, hp + game.hp_gain)
            if up not in after:
                after[up] = last[up, 0][paid]
            for dry in range(longest + 1):
                fails = last[max(hp - dry - 1, 0), dry + 1][kept]
                gain = after[up] - fails[:, None]
                gain[beyond] = -1  # what one does not have, one cannot bid
                choice[day, :, hp, dry], best = _best_bids(gain, chances[day])
                value[hp, dry] = fails + best
    purse = min(game.balance_start * game.unit // grid.unit + salary, grid.most)
    chance = min(1.0, float(value[game.hp_start, 0, purse]))  # without the worth of the money
    return Response(choice, chance, grid, game.supply_low)


def _best_bids(gain: Array, chances: Array) -> tuple[Array, Array]:
    """Return the best levels ``(supplies, money)``, and what they bring on average ``(money,)``.

    From what winning brings, ``(money, levels)``, and its chances, ``(supplies, levels)``.
    """
    picked = np.zeros((len(chances), len(gain)), np.uint8)
    brings = np.zeros(len(gain), np.float32)
    for supply in np.flatnonzero(chances.any(axis=1)):
        hoped = gain * chances[supply]
        picked[supply] = hoped.argmax(axis=1)
        brings += hoped.max(axis=1)
    return picked, brings / len(chances)


@lru_cache(maxsize=32)
def response(game: WaterAllocation, seat: int, level: int) -> Response:
    """Return the rule of a seat at a level, kept on disk.

    Level 1 replies best to a field of `even` players, level ``n`` to one at level ``n - 1``. The
    field's prices are those at a table with the seat's own play: first at the others' level, then
    with the first answer to that.
    """
    game = relevant(game)
    digest = sha256(repr(game).encode()).hexdigest()[:16]

    def compute() -> Arrays:
        found = _respond(game, seat, level)
        return {"choice": found.choice, "value": np.array(found.value)}

    stored = remember(f"water_allocation_3_{digest}_{seat}_{level}", compute)
    return Response(stored["choice"], float(stored["value"]), Grid.of(game), game.supply_low)


GAMES = 4000
"""Simulated games from which a response learns the prices."""


def _respond(game: WaterAllocation, seat: int, level: int) -> Response:
    seats = range(game.players)
    rules = [even if level == 1 else response(game, other, level - 1) for other in seats]
    rules[seat] = best_response(game, play(game, rules, GAMES, seed=level), seat)
    return best_response(game, play(game, rules, GAMES, seed=level), seat)


def relevant(game: WaterAllocation) -> WaterAllocation:
    """Return the game without what only its players' words or one run's supplies depend on."""
    plain = WaterAllocation(players=game.players, residents=game.cast)
    words = ("persona", "shown_dry_counter", "failed_reply", "supplies", "reset_balance_on_death")
    return dataclasses.replace(
        game, residents=game.cast, **{word: getattr(plain, word) for word in words}
    )


# -- the social optimum ----------------------------------------------------------------------------


def planned(
    game: WaterAllocation,
    slack: PerPlayer,
    living: PerPlayer,
    supply: PerTable,
    days_left: PerTable,
    keep: int,
) -> PerPlayer:
    """Return whom the planner serves today.

    It keeps the `keep` living residents with the lowest needs alive: who can wait least (`slack`)
    comes first, then who needs least; whoever does not fit is passed over. Others get what is left.
    """
    thrifty = np.lexsort((np.arange(game.players), game.requirements))
    kept = living[thrifty] & (living[thrifty].cumsum(axis=0) <= keep)
    urgency = np.where(slack >= days_left, game.days, slack)[thrifty]
    rank = np.where(living[thrifty], urgency + ~kept * (game.days + 1), NEVER)
    chosen, left = np.zeros(living.shape, np.bool_), supply
    for seat in thrifty[rank.argsort(axis=0, kind="stable")]:
        lives = np.take_along_axis(living, seat[None], axis=0)[0]
        fits = lives & (game.requirements[seat] <= left)
        left = left - game.requirements[seat] * fits
        np.put_along_axis(chosen, seat[None], fits[None], axis=0)
    return chosen


def plan(game: WaterAllocation, keep: int, games: int = 4000, seed: int = 0) -> Array:
    """Return the share of games that each seat survives under the planner, ``(players,)``."""
    state = game.reset(seed * games, (games,))
    for _ in range(game.days):
        slack, left = endurance(state.hp, state.dry), game.days - state.round
        chosen = planned(game, slack, state.living, game.supply(state), left, keep)
        state, _ = game.step(state, np.where(chosen, 0, NO_BID))
    return state.living.mean(axis=1)


@lru_cache(maxsize=16)
def best_plan(game: WaterAllocation) -> tuple[int, float]:
    """Return how many residents a planner does best to keep alive, and its mean survivors."""
    game = dataclasses.replace(relevant(game), no_bid="none")
    survivors = {k: float(plan(game, k, 2000).sum()) for k in range(1, game.players + 1)}
    keep = max(survivors, key=lambda k: survivors[k])
    return keep, survivors[keep]


# -- how good play was -----------------------------------------------------------------------------


def needless_death(game: WaterAllocation, record: Mapping[str, Array]) -> PerPlayer:
    """Return who died on a day, by its record, on which it had the money for its water.

    That is the regret of the day in hindsight, as if nothing came after it.
    """
    bids, supply = record["effective"], record["supply"]
    prices = np.stack([critical_price(game, bids, supply, seat) for seat in range(game.players)])
    return record["died"] & (prices <= record["balance"])


def deviation(game: WaterAllocation, record: Mapping[str, Array]) -> Measured:
    """Return the regret of a day: 1 for a `needless_death`; no distance is defined."""
    saved = needless_death(game, record)
    return saved.astype(float), np.full(saved.shape[1:], np.nan)
