"""Water allocation challenge: rules of thumb, best responses by dynamic programming, a planner.

No equilibrium is known where water is scarce: as in a Blotto game pure best responses cycle. Level
0 spreads its money evenly over the days it can still go dry (`even`), level ``n`` replies best to
everybody else at level ``n - 1``. Arrays have the players first, money is in the game's units.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Self

import numpy as np

from llm_games.arrays import entry, looked_up
from llm_games.baselines.disk_arrays import Arrays, remember
from llm_games.baselines.regret import Claim, Measured, Parts, Steps
from llm_games.games.water_allocation.rules import WaterAllocation, WaterAllocationState
from llm_games.noise import Noise
from llm_games.questions import NO_BID
from llm_games.rulebook import Array, PerPlayer, PerTable

NEVER = int(np.iinfo(np.int64).max)  # the critical price of water that no bid can win


def endurance(hp: Array, dry: Array) -> Array:
    """Return the number of further dry days in a row that a resident of health above 0 survives."""
    # The largest ``d`` with ``sum(dry + j for j in 1..d) = d dry + d (d + 1) / 2 < hp``; broadcast.
    b = 2 * dry + 1
    return np.ceil((np.sqrt(b * b + 8 * np.maximum(hp, 1)) - b) / 2).astype(np.int64) - 1


# -- rules of thumb --------------------------------------------------------------------------------


@dataclass(frozen=True)
class WaterSituation:
    """The state that a resident's bid depends on."""

    balance: PerTable  # money today, salary included
    salary: PerTable  # money paid a day
    hp: PerTable
    dry: PerTable
    days_left: PerTable  # today included
    supply: PerTable  # water today

    @classmethod
    def of(cls, game: WaterAllocation, state: WaterAllocationState, seat: int) -> Self:
        current = game.purse(state)[seat], game.salaries[seat], state.hp[seat], state.dry[seat]
        return cls(*current, game.days - state.round, game.supply(state))

    @cached_property
    def slack(self) -> PerTable:
        return endurance(self.hp, self.dry)

    def needed(self, bid: Array) -> Array:
        """Return a bid, or 0 if the resident survives to the end without water."""
        return np.where(self.slack >= self.days_left, 0, bid)


Rule = Callable[[WaterSituation, Noise], PerTable]  # from a situation, and chance, to a bid


def even(situation: WaterSituation, noise: Noise | None = None) -> Array:
    return situation.needed(situation.balance // (situation.slack + 1))


def urgent(situation: WaterSituation, noise: Noise | None = None) -> Array:
    """Return all the money on the last day to live, half of it one day before, else 0."""
    early = np.where(situation.slack == 1, situation.balance // 2, 0)
    return situation.needed(np.where(situation.slack == 0, situation.balance, early))


RULES: dict[str, Rule] = {  # of thumb
    "zero": lambda situation, noise: np.zeros_like(situation.balance),
    "salary": lambda situation, noise: np.minimum(situation.balance, situation.salary),
    "random": lambda situation, noise: noise.integers(0, situation.balance, endpoint=True),
    "half": lambda situation, noise: situation.balance // 2,
    "all_in": lambda situation, noise: situation.needed(situation.balance),
    "even": even,
    "urgent": urgent,
}


@dataclass(frozen=True)
class Play:
    """Survivals, bids and supplies of many games."""

    survived: Array  # (players, games)
    living: Array  # at the start of each day, (days, players, games)
    bids: Array  # of each day, (days, players, games); `NO_BID` of the dead
    supplies: Array  # (days, games)

    @classmethod
    def of(cls, game: WaterAllocation, plays: Sequence[Steps]) -> Self:
        """Return recorded games; days after all deaths have the mean supply and no bids."""
        shape = (game.days, game.players, len(plays))
        bids, living = np.full(shape, NO_BID, np.int64), np.zeros(shape, np.bool_)
        supplies = np.full((game.days, len(plays)), int(game.mean_supply))
        survived = np.zeros(shape[1:], np.bool_)
        for i, steps in enumerate(plays):
            days = np.shape(steps["supply"])[-1]
            bids[:days, :, i], living[:days, :, i] = steps["effective"].T, steps["alive"].T
            supplies[:days, i] = steps["supply"]
            survived[:, i] = steps["alive"][:, -1] & ~steps["died"][:, -1]
        return cls(survived, living, bids, supplies)

    def of_games(self, games: slice) -> Play:
        return Play(*(getattr(self, f.name)[..., games] for f in dataclasses.fields(self)))


def play(game: WaterAllocation, rules: Sequence[Rule], games: int, seed: int = 0) -> Play:
    noise = Noise.copies(seed * games, (games,))
    state = game.reset(noise, (games,))
    supplies, living, bids = state.supplies, [], []
    for day in range(game.days):
        day_bids = [
            rule(WaterSituation.of(game, state, i), noise.of(day, i))
            for i, rule in enumerate(rules)
        ]
        living.append(state.living)
        bids.append(np.where(state.living, np.stack(day_bids), NO_BID))
        state, _ = game.step(state, bids[-1])
    return Play(state.living, np.stack(living), np.stack(bids), supplies)


# -- prices ----------------------------------------------------------------------------------------


def critical_price(game: WaterAllocation, bids: PerPlayer, supply: PerTable, seat: int) -> PerTable:
    """Return the lowest bid that gets the seat its water; `NEVER` if none does."""
    # Winning is monotone in the own bid (ignored in `bids`): each seat served before leaves less.
    priority = game.precedence.argsort()
    ranked = game.precedence[game.precedence != seat]
    ranked = ranked[np.argsort(-bids[ranked], axis=0, kind="stable")]
    wins_ties = priority[seat] < priority
    remaining, need = supply, game.requirements[seat]
    price = np.where(need <= remaining, 0, NEVER)
    decided = need > remaining
    for other in ranked:
        bid = np.take_along_axis(bids, other[None], axis=0)[0]
        bidding, wanted = bid > NO_BID, game.requirements[other]
        fits = bidding & (wanted <= remaining)
        remaining = remaining - wanted * fits
        if game.allocation == "stop":
            remaining = np.where(bidding & ~fits, -1, remaining)
        rival = bidding & (remaining < need) & ~decided  # after this one too little is left
        price = np.where(rival, bid + ~wins_ties[other], price)
        decided = decided | rival
    return price


LEVELS = np.r_[0:41, 42:101:2, 104:201:4, 208:481:8]
"""Bids that the dynamic program considers, in its `unit`s; the last is the most money."""


def unit(game: WaterAllocation) -> int:
    """Return a unit in which the first money and four of the largest salaries fit `LEVELS`."""
    largest = 4 * int(game.salaries.max()) + game.balance_start * game.unit
    return max(1, -(-largest // int(LEVELS[-1])))


def win_chances(game: WaterAllocation, field: Play, seat: int) -> Array:
    """Return the chance that a bid wins, ``(days, supplies, levels)``; 0: too little water."""
    # From critical prices in simulated games, days smoothed by 1/2, 1, 1/2, with a prior of weight
    # 1: certain from 20 dollars times the day, below in proportion.
    levels, days = LEVELS * unit(game), np.arange(game.days)
    span, width = game.supply_top - game.supply_low + 1, len(levels) + 1
    wins = np.zeros((game.days + 2, span, width))
    for day in days:
        price = critical_price(game, field.bids[day], field.supplies[day], seat)
        enough = np.searchsorted(levels, price)  # the first level that is
        cells = (field.supplies[day] - game.supply_low) * width + enough
        wins[day + 1] = np.bincount(cells, minlength=span * width).reshape(span, width)
    wins = wins[:-2] / 2 + wins[1:-1] + wins[2:] / 2
    win_counts, counts = wins.cumsum(axis=-1)[..., :-1], wins.sum(axis=-1, keepdims=True)
    prior = np.minimum(levels / (20 * game.unit * (days[:, None] + 1)), 1)[:, None]
    chances = (win_counts + prior) / (counts + 1)
    chances[:, np.arange(span) + game.supply_low < game.requirements[seat]] = 0
    return chances.astype(np.float32)


# -- best responses --------------------------------------------------------------------------------

MONEY = 1e-3  # what the most money is worth to a survivor, so that equal chances go to thrift


@dataclass(frozen=True)
class Response:
    """A best response to a field, as a table."""

    choice: Array  # index into the levels, (days, supplies, health, dry days, money)
    value: float  # the chance to survive that it expects
    unit: int  # of its money
    supply_low: int  # the supply of the first row

    def __call__(self, situation: WaterSituation, noise: Noise | None = None) -> Array:
        day, money = len(self.choice) - situation.days_left, situation.balance // self.unit
        exact = day, situation.supply - self.supply_low, situation.hp, situation.dry, money
        ends = zip(exact, self.choice.shape, strict=True)
        choice = entry(self.choice, tuple(np.clip(i, 0, n - 1) for i, n in ends))
        return looked_up(LEVELS, choice) * self.unit


def best_response(game: WaterAllocation, field: Play, seat: int) -> Response:
    """Return a best response to a field's prices (independent by day), by backward induction."""
    chances, each, richest = win_chances(game, field, seat), unit(game), int(LEVELS[-1])
    salary, money = int(game.salaries[seat]) // each, np.arange(richest + 1)
    tomorrow, remaining = np.minimum(money + salary, richest), money[:, None] - LEVELS
    beyond = np.full(richest, -2, np.float32)  # what one does not have, one cannot bid
    longest = int(endurance(np.array(game.hp_max), np.array(0)))
    shape = (game.hp_max + 1, longest + 2, richest + 1)
    value = np.zeros(shape, np.float32)  # no health, or too many dry days: dead
    value[1:, :-1] = 1 + MONEY * money / richest
    choice = np.zeros((*chances.shape[:2], game.hp_max + 1, longest + 1, richest + 1), np.uint8)
    for day in range(game.days)[::-1]:
        last, value = value, np.zeros(shape, np.float32)
        cached = dict[tuple[bytes, bytes], Any]()  # many states are alike, near death or the end
        for hp in range(1, game.hp_max + 1):
            worth = last[min(game.hp_max, hp + game.hp_gain), 0]
            win_values = np.append(beyond, worth[tomorrow]).take(richest + remaining)
            for dry in range(longest + 1):
                if hp + dry * (dry + 1) // 2 > game.hp_max:  # so long without water one is weaker
                    break
                loss_values = last[max(hp - dry - 1, 0), dry + 1][tomorrow]
                if (state := (worth.tobytes(), loss_values.tobytes())) not in cached:
                    gain = win_values - loss_values[:, None]
                    cached[state] = _best_bids(gain, chances[day])
                choice[day, :, hp, dry], best = cached[state]
                value[hp, dry] = loss_values + best
    purse = min(game.balance_start * game.unit // each + salary, richest)
    chance = min(1.0, float(value[game.hp_start, 0, purse]))  # without the worth of the money
    return Response(choice, chance, each, game.supply_low)


def _best_bids(gain: Array, chances: Array) -> tuple[Array, Array]:
    """Return the best levels ``(supplies, money)``, and their mean gain ``(money,)``.

    From the gain of winning, ``(money, levels)``, and its chances, ``(supplies, levels)``.
    """
    picked = np.zeros((len(chances), len(gain)), np.uint8)
    brings, hoped = np.zeros(len(gain), np.float32), np.empty_like(gain)
    begins = np.arange(len(gain)) * gain.shape[1]
    for supply in np.flatnonzero(chances.any(axis=1)):
        np.multiply(gain, chances[supply], out=hoped)
        picked[supply] = best = hoped.argmax(axis=1)
        brings += hoped.take(begins + best)
    return picked, brings / len(chances)


GAMES = 4000  # simulated games from which a response learns the prices


@lru_cache(maxsize=32)
def response(game: WaterAllocation, seat: int, level: int) -> Response:
    """Return the rule of a seat at a level, cached on disk."""
    # Level 1 replies best to `even` players, level ``n`` to level ``n - 1``, at a table with the
    # seat's own play: first at the others' level, then with the first answer to that.
    game = relevant(game)
    digest = sha256(repr(game).encode()).hexdigest()[:16]

    def compute() -> Arrays:
        seats = range(game.players)
        rules = [even if level == 1 else response(game, other, level - 1) for other in seats]
        for _ in range(2):
            rules[seat] = reply = best_response(game, play(game, rules, GAMES, level), seat)
        return {"choice": reply.choice, "value": np.array(reply.value)}

    stored = remember(f"water_allocation_3_{digest}_{seat}_{level}", compute)
    return Response(stored["choice"], float(stored["value"]), unit(game), game.supply_low)


def relevant(game: WaterAllocation) -> WaterAllocation:
    """Return the game with defaults for parameters of words and of a single run's supplies."""
    plain = WaterAllocation(players=game.players, residents=game.cast)
    words = ("persona", "shown_dry_counter", "failed_reply", "supplies", "reset_balance_on_death")
    same = {word: getattr(plain, word) for word in words}
    return dataclasses.replace(game, residents=game.cast, **same)


def against(game: WaterAllocation, field: Play, seat: int, rule: Rule) -> Array:
    """Return whether a seat that follows a rule survives against recorded bids, bool (games,)."""
    games = field.supplies.shape[1]
    money, hp = np.full(games, game.balance_start * game.unit), np.full(games, game.hp_start)
    dry, living = np.zeros(games, np.int64), np.ones(games, bool)
    salary, noise = np.full(games, game.salaries[seat]), Noise.copies(0, (games,))
    for day in range(game.days):
        supply, money = field.supplies[day], money + salary * living
        days_left = np.full(games, game.days - day)
        bid = rule(WaterSituation(money, salary, hp, dry, days_left, supply), noise.of(day, seat))
        wins = living & (bid >= critical_price(game, field.bids[day], supply, seat))
        money = money - bid * wins
        dry = (dry + living) * ~wins
        hp = np.where(wins, np.minimum(game.hp_max, hp + game.hp_gain), hp - dry * living)
        living = living & (hp > 0)
    return living


def regret(game: WaterAllocation, field: Play, seat: int) -> Array:
    """Return a best response's gain in survival in each game, -1 to 1, ``(games,)``; on disk."""
    # One to the prices in half of the games is played in the other half, all else as recorded, so
    # that nothing flatters it; where it gains nothing where it was learned, the seat's own play
    # stands. The mean is below 0 by chance alone; with few games it falls short.
    digest = sha256(f"{relevant(game)!r} {seat}".encode())
    for array in (field.survived, field.bids, field.supplies):
        digest.update(np.ascontiguousarray(array).tobytes())

    def compute() -> Arrays:
        gains, halves = np.zeros(field.supplies.shape[1]), (slice(0, None, 2), slice(1, None, 2))
        for learn, test in (halves, halves[::-1]):
            learning_half, other = field.of_games(learn), field.of_games(test)
            reply, survived = best_response(game, learning_half, seat), learning_half.survived[seat]
            if against(game, learning_half, seat, reply).mean() > survived.mean():
                gains[test] = against(game, other, seat, reply) - other.survived[seat].astype(float)
        return {"gains": gains}

    return remember(f"water_regret_1_{digest.hexdigest()[:24]}", compute)["gains"]


def response_gap(game: WaterAllocation, plays: Sequence[Steps]) -> Array:
    """Return the regret of recorded games by game, see `regret`; NaN for a single one."""
    if len(plays) < 2:
        return np.full((game.players, len(plays)), np.nan)
    field = Play.of(game, plays)
    return np.stack([regret(game, field, seat) for seat in range(game.players)])


# -- the social optimum ----------------------------------------------------------------------------


def planned(
    game: WaterAllocation, slack: Array, living: Array, supply: Array, days_left: Array, keep: int
) -> PerPlayer:
    """Return which residents the planner serves today, bool."""
    # It keeps `keep` of the lowest needs alive: who can wait least (`slack`) comes first, then who
    # needs least; one that does not fit is passed over. The others get the rest.
    thrifty = np.lexsort((np.arange(game.players), game.requirements))
    in_plan = living[thrifty] & (living[thrifty].cumsum(axis=0) <= keep)
    urgency = np.where(slack >= days_left, game.days, slack)[thrifty]
    rank = np.where(living[thrifty], urgency + ~in_plan * (game.days + 1), NEVER)
    chosen, remaining = np.zeros(living.shape, np.bool_), supply
    for seat in thrifty[rank.argsort(axis=0, kind="stable")]:
        lives = np.take_along_axis(living, seat[None], axis=0)[0]
        fits = lives & (game.requirements[seat] <= remaining)
        remaining = remaining - game.requirements[seat] * fits
        np.put_along_axis(chosen, seat[None], fits[None], axis=0)
    return chosen


def plan(game: WaterAllocation, keep: int, games: int = 4000, seed: int = 0) -> Array:
    """Return each seat's share of survived games under the planner, ``(players,)``."""
    state = game.reset(seed * games, (games,))
    for _ in range(game.days):
        slack, days_left = endurance(state.hp, state.dry), game.days - state.round
        chosen = planned(game, slack, state.living, game.supply(state), days_left, keep)
        state, _ = game.step(state, np.where(chosen, 0, NO_BID))
    return state.living.mean(axis=1)


@lru_cache(maxsize=16)
def best_plan(game: WaterAllocation) -> tuple[int, float]:
    """Return the number of residents that a planner should keep alive, and its mean survivors."""
    game = dataclasses.replace(relevant(game), no_bid="none")
    survivors = {k: float(plan(game, k, 2000).sum()) for k in range(1, game.players + 1)}
    keep = max(survivors, key=lambda k: survivors[k])
    return keep, survivors[keep]


def deviation(game: WaterAllocation, record: Steps) -> Measured:
    """Return the regret of a day: 1 for residents who died with the money for their water.

    In hindsight, as if nothing came after the day. No distance is defined.
    """
    bids, supply = record["effective"], record["supply"]
    prices = np.stack([critical_price(game, bids, supply, seat) for seat in range(game.players)])
    saved = record["died"] & (prices <= record["balance"])
    return saved.astype(float), np.full(saved.shape[1:], np.nan)


def rational(game: WaterAllocation) -> Claim:
    what = "replies best, by dynamic programming, to best repliers to bidders who spend evenly"
    need = int(game.requirements.sum())
    healthy = game.hp_gain and endurance(np.array(game.hp_start), np.array(0)) > 1
    if game.supply_low >= need or (healthy and 2 * game.mean_supply >= need):
        return Claim("best known", f"{what}; with so much water hardly anybody can gain more")
    scarce = "water is scarce, or health too poor for two dry days,"
    return Claim("heuristic", f"{what}; where {scarce} no equilibrium is known")


def replies(game: WaterAllocation) -> list[str]:
    return ["rational", "dp:1", *(name for name in RULES if name != "random")]


def welfare(game: WaterAllocation, steps: Steps) -> Parts:
    """Return the survivors; the best is the planner's mean over the chance of supplies."""
    living = steps["alive"][..., -1] & ~steps["died"][..., -1]
    return living.sum(axis=0), 0, best_plan(relevant(game))[1], np.nan, np.nan


def unasked(game: WaterAllocation) -> tuple[str, ...]:
    """Return the kinds of graded questions without an answer: no equilibrium is known."""
    return ("reply", "equilibrium")


def outcome(
    game: WaterAllocation,
) -> tuple[str, float, float, Callable[[WaterAllocationState, int], float]]:
    """Return what graded questions ask of an outcome: health, since a day pays nothing."""
    asked = "What is your health after it"
    return asked, -10 * game.hp_max, game.hp_max, lambda state, seat: float(state.hp[seat])
