"""How far the play of one step is from equilibrium: regret, NashConv and distance, for each game.

Regret is in the game's own payoffs, and in hindsight: against what the others did in this step.
Battle royale: the chance to win that a shot forgoes if all play on in equilibrium (of the game as
its players know it, see `models.cap`); distance is the probability that equilibrium play does
something else. Pirates: coins, as if the vote decided and with a death at -1 coin; distance is the
plan's to the nearest optimal one, or the share of votes against equilibrium. English auction: when
an item is closed, what was paid above its value, or left to a winner below it; no distance. Water
allocation: 1 for a death on a day on which the seat had the money for its water; no distance.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_games.baselines import models
from llm_games.baselines.games.battle_royale.theory import CappedSolution, Solution
from llm_games.baselines.games.beauty_contest import theory as beauty_contest
from llm_games.baselines.games.diners_dilemma import theory as diners_dilemma
from llm_games.baselines.games.divide_dollar import theory as divide_dollar
from llm_games.baselines.games.el_farol_bar import theory as el_farol_bar
from llm_games.baselines.games.english_auction import theory as english_auction
from llm_games.baselines.games.pirate_game import theory as pirate_game
from llm_games.baselines.games.public_goods import theory as public_goods
from llm_games.baselines.games.sealed_bid_auction import theory as sealed_bid_auction
from llm_games.baselines.games.water_allocation import theory as water_allocation
from llm_games.errors import unknown
from llm_games.games.battle_royale.rules import MISS
from llm_games.questions import MISSING
from llm_games.rulebook import Array, Rulebook

Record = Mapping[str, Array]


@dataclass(frozen=True)
class Deviation:
    """How far one step was from equilibrium.

    Attributes:
        regret: what each seat could have gained by another action, float64 ``(players, *batch)``;
            0 for seats that did not act.
        distance: L1 distance of the actions to the nearest equilibrium (set), as a share of the
            range of all actions together, 0 to 1 for legal play, float64 ``(*batch)``; NaN where
            none is defined. For auctions, to the equilibrium bids of these valuations.

    Tables that were over before the step mean nothing.
    """

    regret: Array
    distance: Array

    @property
    def nash_conv(self) -> Array:
        """Return the sum of the seats' regrets, ``(*batch)``."""
        return self.regret.sum(axis=0)


def deviation(game: Rulebook, record: Record) -> Deviation:
    """Return the deviation of one step.

    Args:
        game: the rules.
        record: the ``Outcome.record`` of the step.

    Raises:
        UnknownName: no equilibrium is known for this game.
    """
    if game.name not in DEVIATIONS:
        raise unknown("deviation for", game.name, DEVIATIONS)
    regret, distance = DEVIATIONS[game.name](game, record)
    return Deviation(np.asarray(regret, np.float64), np.asarray(distance, np.float64))


def _beauty_contest(game: Any, record: Record) -> tuple[Array, Array]:
    """Seats that broke a rule are treated as the game does; their regret includes the fee."""
    contest, limit = models.contest(game), record.get("limit")
    if limit is None:
        return _contest(game, contest, record["actions"], record["legal"])
    regret, distance = np.zeros(record["actions"].shape), np.zeros(np.shape(limit))
    for high in np.unique(limit):
        at = limit == high
        table = dataclasses.replace(contest, high=int(high))
        parts = (np.asarray(record[key])[:, at] for key in ("actions", "legal"))
        regret[:, at], distance[at] = _contest(game, table, *parts)
    return regret, distance


def _contest(
    game: Any, contest: beauty_contest.Contest, actions: Array, legal: Array
) -> tuple[Array, Array]:
    low, high = (contest.low, contest.high) if game.bounds_check != "none" else game.bounds()
    played = dataclasses.replace(contest, low=low, high=high)
    numbers = np.where(actions == MISSING, 0, actions.clip(-game.limit, game.limit))
    counted = actions != MISSING if game.rule_breaker == "include" else legal
    regret = beauty_contest.regret(numbers, played, legal, counted) * float(game.prize)
    if game.rule_breaker == "void_round":  # whatever one does, nobody wins where others broke one
        regret *= (~legal).sum(axis=0) == ~legal
    far = beauty_contest.distance(np.where(legal, actions, contest.low), contest)
    share = far / (contest.players * (contest.high - contest.low))
    defined = (far >= 0) & legal.all(axis=0)
    return regret + ~legal * float(game.foul_fee), np.where(defined, share, np.nan)


def _el_farol_bar(game: Any, record: Record) -> tuple[Array, Array]:
    going, bar = record["actions"], models.bar(game)
    return el_farol_bar.regret(going, bar), el_farol_bar.distance(going, bar) / bar.players


def _divide_dollar(game: Any, record: Record) -> tuple[Array, Array]:
    bids, golds = record["actions"], game.golds
    far = divide_dollar.distance(bids, golds)
    return divide_dollar.regret(bids, golds), far / (game.players * golds)


def _public_goods(game: Any, record: Record) -> tuple[Array, Array]:
    given, have = record["actions"], np.floor(record["endowment"])
    far, total = public_goods.distance(given, have, game.ratio), have.sum(axis=0)
    return public_goods.regret(given, have, game.ratio), far / np.maximum(total, 1)


def _diners_dilemma(game: Any, record: Record) -> tuple[Array, Array]:
    orders, menu = record["actions"], models.menu(game)
    return diners_dilemma.regret(orders, menu), diners_dilemma.distance(orders, menu) / menu.players


def _sealed_bid_auction(game: Any, record: Record) -> tuple[Array, Array]:
    if game.assets is not None:
        return _private_values(game, record)
    bids, values = record["actions"], record["valuations"]
    reference, solution = values, models.bids(game) if game.price == "first" else None
    if solution is not None:
        reference = solution.mean_bid(values)
    elif game.price == "first":
        reference = sealed_bid_auction.uniform_bid(values, game.players, game.valuation_min)
    far = sealed_bid_auction.distance(bids, reference) / (game.players * game.valuation_max)
    return sealed_bid_auction.regret(values, bids, game.price), far


def _private_values(game: Any, record: Record) -> tuple[Array, Array]:
    """A session with assets. Distance is not defined where somebody broke a rule."""
    bids, values, assets, legal = (record[k] for k in ("actions", "valuations", "assets", "legal"))
    part = legal if game.rule_breaker == "exclude" else bids != MISSING
    best = sealed_bid_auction.session_best(
        values, bids, assets, part, legal, game.price, game.min_valid_bids
    )
    reference = np.minimum(values, assets)
    if game.price == "first":
        reference = np.minimum(models.private_bid(game, values / game.unit) * game.unit, assets)
    far = sealed_bid_auction.distance(np.where(legal, bids, 0), reference) / assets.sum(axis=0)
    regret = (best - record["utility"]) / game.unit
    return regret, np.where(legal.all(axis=0), far, np.nan)


def _battle_royale(game: Any, record: Record) -> tuple[Array, Array]:
    solution = models.shooting(game)
    alive = record["alive"]
    batch = alive.shape[1:]
    regret, distance = np.zeros(alive.shape), np.zeros(batch)
    for at in np.ndindex(batch):
        living = alive[(slice(None), *at)]
        mask = int((living << np.arange(len(living))).sum())
        shooter, target = int(record["shooter"][at]), int(record["target"][at])
        left = (models.cap(game) or 0) - int(record["shots"][at]) + 1
        chances, values = _shot(solution, mask, shooter, left)
        wasted = target != shooter and not (0 <= target < len(living) and living[target])
        choice = MISS if wasted else target
        if choice == shooter:  # a hit on oneself wins nothing
            value, chance = values[MISS] * (1 - game.rates[shooter] / 100), 0.0
        else:
            value, chance = values[choice], chances[choice]
        regret[(shooter, *at)] = np.nanmax(values) - value
        distance[at] = 1 - chance
    return regret, distance


def _shot(
    solution: Solution | CappedSolution, mask: int, shooter: int, left: int
) -> tuple[Array, Array]:
    """Return equilibrium chances and the shooter's values of each target, last of a miss."""
    if mask & (mask - 1) == 0 or not mask >> shooter & 1:  # a table that was over before
        nothing = np.zeros(solution.policy.shape[-1])
        return nothing + 1, nothing
    if isinstance(solution, CappedSolution):
        return solution.policy[left, mask, shooter], solution.q_values(mask, shooter, left)
    return solution.policy[mask, shooter], solution.q_values(mask, shooter)


def _pirate_game(game: Any, record: Record) -> tuple[Array, Array]:
    plan, alive = record["plan"], record["alive"]
    batch = plan.shape[1:]
    regret, distance = np.zeros(plan.shape), np.zeros(batch)
    for at in np.ndindex(batch):
        first = int(alive[(slice(None), *at)].argmax())
        seats = (slice(first, None), *at)
        offered, quota = plan[seats], game.quota
        if len(offered) < 2 or offered.sum() != game.gold:
            continue  # a table that was over before
        if record["phase"][at] == 0:
            regret[(first, *at)] = pirate_game.proposer_regret(offered, quota)
            distance[at] = pirate_game.distance(offered, quota)
        else:
            votes = record["votes"][seats]
            regret[seats] = pirate_game.voter_regret(offered, votes, quota)
            distance[at] = (votes != pirate_game.votes(offered, quota))[1:].mean()
    return regret, distance


def _english_auction(game: Any, record: Record) -> tuple[Array, Array]:
    """Paid when an item is closed: above the value, or a gain left to the winner or to nobody."""
    least = np.where(record["winner"] < 0, record["start"], record["price"] + record["increment"])
    parts = (record["value"], record["winner"], record["price"], least, record["purse"])
    far = np.full(np.shape(record["closed"]), np.nan)
    return english_auction.regret(*parts) * record["closed"], far


def _water_allocation(game: Any, record: Record) -> tuple[Array, Array]:
    saved = water_allocation.needless_death(game, record)
    return saved.astype(float), np.full(saved.shape[1:], np.nan)


DEVIATIONS: dict[str, Callable[[Any, Record], tuple[Array, Array]]] = {
    "beauty_contest": _beauty_contest,
    "el_farol_bar": _el_farol_bar,
    "divide_dollar": _divide_dollar,
    "public_goods": _public_goods,
    "diners_dilemma": _diners_dilemma,
    "sealed_bid_auction": _sealed_bid_auction,
    "battle_royale": _battle_royale,
    "pirate_game": _pirate_game,
    "english_auction": _english_auction,
    "water_allocation": _water_allocation,
}
"""Regret and distance of one step, by game."""
