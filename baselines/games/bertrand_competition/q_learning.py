"""Firms that learn prices by tabular Q-learning, as in Calvano et al. (AER 110(10), 2020).

Every firm sees the last prices of all firms and picks one of some prices; a period later it learns
from its profit alone. Many markets learn at once, without a word between them. Run as a module,
this prints where 1,000 duopolies come to rest and how they answer a price cut (minutes).
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from llm_games.arrays import any_true
from llm_games.baselines.disk_arrays import Arrays, remember
from llm_games.baselines.games.bertrand_competition import theory
from llm_games.baselines.games.bertrand_competition.collusion import price_index, profit_gain
from llm_games.baselines.rules import whole
from llm_games.errors import BadParameter
from llm_games.games.bertrand_competition.rules import BertrandCompetition
from llm_games.noise import Noise
from llm_games.registry import rulebook
from llm_games.rulebook import Array
from llm_games.view import View

MOST_CELLS = 50_000_000  # of all tables together
DRAWN = 256  # periods whose chance is drawn at once
CYCLES = 840  # periods that make whole cycles of up to eight
SHIPPED = 20  # markets whose strategies are kept
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
SHOWN = 15  # periods of the answer to a price cut
RESULT = Path(__file__).with_name("q_learning.json")


@dataclass(frozen=True)
class Learning:
    """How firms learn. The usual values after Calvano et al., section 3."""

    rate: float = 0.15
    """weight of what is new in the value of an action"""
    discount: float = 0.95
    decay: float = 4e-6
    """in period t a firm tries any price with the chance ``exp(-decay * t)``"""
    prices: int = 15
    margin: float = 0.1
    """how far the prices reach beyond equilibrium and cartel, as a share of what is between"""
    patience: int = 100_000
    """a market has come to rest when its best actions were the same for so many periods"""
    max_periods: int = 10_000_000
    """periods after which it is over in any case"""


@dataclass(frozen=True)
class Learned:
    """Strategies that the firms of some markets learned, and the states where they settled.

    A state is the last actions of all firms as one number, see `state_of`; an action is the index
    of a price.
    """

    grid: Array  # prices in ticks, (prices,)
    best: Array  # the best action of each firm in each state, (markets, firms, states)
    state: Array  # the last one, (markets,)
    rested: Array  # bool (markets,)
    periods: Array  # until it came to rest, (markets,)

    def play(self, state: Array, periods: int, forced: Array | None = None) -> Array:
        """Return the firms' learned actions in some periods from a state ``(markets,)``.

        ``(periods, firms, markets)``. Firm 0's are `forced` in the first period.
        """
        rows, path = np.arange(len(state)), []
        for period in range(periods):
            action = self.best[rows, :, state].T.copy()
            if forced is not None and not period:
                action[0] = forced
            state = state_of(action, len(self.grid))
            path.append(action)
        return np.stack(path)

    def at_rest(self) -> Array:
        """Return the firms' actions after markets settled, in cycles, see `play`."""
        around = self.best.shape[2]
        return self.play(self.state, around + CYCLES)[around:]


def state_of(actions: Array, prices: int) -> Array:
    """Return the number of a state, from indexes ``(firms, ...)``."""
    state = np.zeros(actions.shape[1:], np.int64)
    for action in actions:
        state = state * prices + action
    return state


def grid_of(game: BertrandCompetition, how: Learning) -> Array:
    """Return the prices that firms pick from, in ticks: from below equilibrium to above cartel."""
    low, high = min(theory.equilibrium(game)), max(theory.cartel(game))
    low, high = Fraction(low), Fraction(high)
    reach = Fraction(repr(how.margin)) * (high - low)
    low, step = low - reach, (high - low + 2 * reach) / (how.prices - 1)
    grid = game.ticks([low + step * index for index in range(how.prices)])
    if grid[0] < 0 or grid[-1] > game.bounds()[1] or (np.diff(grid) < 1).any():
        raise BadParameter(
            f"{how.prices} prices from {float(low):g} in steps of {float(step):g} must be "
            f"different ticks ({game.tick}) from 0 to {game.a}: choose a finer tick"
        )
    return grid


def profits_of(game: BertrandCompetition, grid: Array) -> Array:
    """Return each firm's profit in each state, float64 ``(firms, states)``."""
    n = game.players
    actions = np.indices((len(grid),) * n).reshape(n, -1)
    return game.market(grid[actions])[1]


def learn(
    game: BertrandCompetition,
    markets: int,
    seed: int = 0,
    how: Learning | None = None,
) -> Learned:
    """Let firms learn in some markets at once until all have come to rest.

    A market that has rested goes on without change. Values begin at what an action earns on average
    against rivals who pick any price, for ever; states at any prices.

    Raises:
        BadParameter: prices do not fit between ticks, or the tables would be too large.
    """
    how = how or Learning()
    grid, n, rng = grid_of(game, how), game.players, np.random.default_rng(seed)
    m, states = how.prices, how.prices**n
    if markets * n * states * m > MOST_CELLS:
        raise BadParameter(
            f"markets must be at most {MOST_CELLS // (n * states * m)} for {n} firms and {m} "
            f"prices, got {markets}"
        )
    tables = _QTables(profits_of(game, grid), markets, m, how, rng)
    while tables.period < how.max_periods and tables.alive.size:
        tables.run(DRAWN)
    best = tables.best.reshape(markets, n, states)
    return Learned(grid, best, tables.state, tables.rested, tables.periods)


class _QTables:
    """The values of all actions while markets learn, a row for each market, firm and state.

    Of each row is known which action is best, its value, and a bound of all others' values, so that
    a row is only looked through where the best one falls below that.
    """

    def __init__(
        self, profits: Array, markets: int, prices: int, how: Learning, rng: np.random.Generator
    ) -> None:
        self.how, self.rng, self.prices = how, rng, prices
        self.firms, self.states = profits.shape
        self.profits = profits.ravel()
        shape = (self.firms, *(prices,) * self.firms)
        means = [
            np.moveaxis(profits.reshape(shape)[firm], firm, 0).reshape(prices, -1).mean(axis=1)
            for firm in range(self.firms)
        ]
        begun = np.stack(means)[:, None] / (1 - how.discount)
        rows = (markets, self.firms, self.states, prices)
        self.values = np.broadcast_to(begun, rows).reshape(-1, prices).copy()
        self.best = self.values.argmax(axis=1)
        self.others, self.top = np.partition(self.values, -2, axis=1)[:, -2:].T.copy()
        self.period, self.rested = 0, np.zeros(markets, np.bool_)
        self.periods, self.changed = np.zeros(markets, np.int64), np.zeros(markets, np.int64)
        self.alive = np.arange(markets)
        self.state = rng.integers(self.states, size=markets)

    def run(self, periods: int) -> None:
        how, alive, firms = self.how, self.alive, np.arange(self.firms)[:, None]
        tries, picked = self._chance(periods)
        begin = (alive * self.firms + firms) * self.states
        row, profit_offset = begin + self.state[alive], firms * self.states
        for tried, pick in zip(tries, picked, strict=True):
            best = self.best.take(row)
            action = best.copy()
            np.copyto(action, pick, where=tried)
            state = state_of(action, self.prices)
            follows = begin + state
            new = self.top.take(follows)
            new *= how.discount
            new += self.profits.take(profit_offset + state)
            self._learn(row, action, action == best, new)
            row, self.period = follows, self.period + 1
        self.state[alive] = state
        still = self.period - self.changed[alive] < how.patience
        self.periods[alive] = self.period
        self.rested[alive[~still]] = True
        self.alive = alive[still]

    def _chance(self, periods: int) -> tuple[Array, Array]:
        """Return a mask of trials and the tried prices, ``(periods, firms, markets)``."""
        shape = (periods, self.firms, self.alive.size)
        drawn = self.rng.integers(2**32, size=shape, dtype=np.uint32)
        below = (
            1e-9
            + 2**32 * np.exp(-self.how.decay * (self.period + np.arange(periods)))[:, None, None]
        )
        # Of those below a limit, how far below it they are is uniform again.
        return drawn < below, np.minimum(drawn * (self.prices / below), self.prices - 1).astype(int)

    def _learn(self, row: Array, action: Array, held: Array, new: Array) -> None:
        """Move values of actions towards new ones, and update the best actions.

        `held`: the action is the best one known.
        """
        cell, values = row * self.prices + action, self.values.ravel()
        value = values.take(cell)
        value += self.how.rate * (new - value)
        values[cell] = value
        top, others = self.top.take(row), self.others.take(row)
        unsure = np.where(held, value < others, value > top)
        self.top[row] = np.where(held, value, top)
        if not held.all():
            self.others[row] = np.where(held, others, np.maximum(others, value))
        if not any_true(unsure):
            return
        rows = row[unsure]
        row_values, previous_best, each = self.values[rows], self.best[rows], np.arange(len(rows))
        self.best[rows] = best_actions = row_values.argmax(axis=1)
        self.top[rows] = row_values[each, best_actions]
        row_values[each, best_actions] = -np.inf
        self.others[rows] = row_values.max(axis=1)
        self.changed[rows[best_actions != previous_best] // (self.firms * self.states)] = (
            self.period
        )


# -- players that learned --------------------------------------------------------------------------


@lru_cache(16)
def learned_in(game: BertrandCompetition) -> tuple[Array, Array]:
    """Return prices in ticks and the strategies of some markets, see `Learned.grid` and `best`.

    Those of the games of `RESULT` come with the package; others are learned, which takes minutes,
    and cached on disk.
    """
    market = market_of(game)
    for record in json.loads(RESULT.read_text("utf-8"))["results"]:
        if record["market"] == market:
            firms, states = game.players, Learning().prices ** game.players
            best = [[_DIGITS.index(digit) for digit in text] for text in record["strategies"]]
            return grid_of(game, Learning()), np.array(best).reshape(-1, firms, states)

    def compute() -> Arrays:
        learned = learn(game, SHIPPED)
        return {"grid": learned.grid, "best": learned.best.astype(np.int8)}

    digest = sha256(json.dumps(market).encode()).hexdigest()[:16]
    arrays = remember(f"{game.name}_q_learning_1_{digest}", compute)
    return arrays["grid"], arrays["best"]


def market_of(game: BertrandCompetition) -> list[str]:
    """Return the parameters on which a game's profits depend, as text."""
    parts = ("a", "beta", "d", "costs", "tick", "demand", "quality", "outside", "mu", "demand_clip")
    return [str(game.players), *(str(getattr(game, part)) for part in parts)]


def last(view: View) -> Array:
    """Return all prices of the last round in ticks; before round 2 the initial ones."""
    game: BertrandCompetition = view.game
    prices = np.rint(view.each("price") * game.unit).astype(np.int64)
    return np.where(
        whole(view, "round") > 1, prices, game.each(game.ticks(game.initial), view.batch)
    )


def acts(market: int, view: View, noise: Noise) -> Array:
    """Set a firm's learned price in a market after these prices, or the grid's closest."""
    game: BertrandCompetition = view.game
    grid, best = learned_in(game)
    nearest = np.abs(last(view)[..., None] - grid).argmin(axis=-1)
    return grid[best[market, view.seat][state_of(nearest, len(grid))]]


# -- what comes of it ------------------------------------------------------------------------------


def cut(game: BertrandCompetition, learned: Learned, periods: int = SHOWN) -> dict[str, Any]:
    """Return the markets' answer when firm 0 replies best to the others' prices for one period.

    Mean prices of firm 0 and of the others in money, the period before first; the share of markets
    in which all prices returned within `periods`, and in which the cut paid over `CYCLES`
    discounted periods.
    """
    how, firms = Learning(), game.players
    resting = learned.at_rest()[-1]
    state = state_of(resting, len(learned.grid))
    usual = learned.play(state, CYCLES)
    profits = profits_of(game, learned.grid).reshape(firms, *(len(learned.grid),) * firms)[0]
    reply = profits[(slice(None), *usual[0, 1:])].argmax(axis=0)
    cuts = (reply < usual[0, 0]) & learned.rested
    answer = learned.play(state, CYCLES, np.where(cuts, reply, usual[0, 0]))
    weight = how.discount ** np.arange(CYCLES)
    worth = [weight @ profits[tuple(path.swapaxes(0, 1))] for path in (usual, answer)]
    path = np.concatenate([resting[None], answer[:periods]])[..., cuts]
    shown = learned.grid[path] / game.unit
    back = (answer[periods : 2 * periods] == usual[periods : 2 * periods]).all(axis=(0, 1))
    return {
        "markets": int(cuts.sum()),
        "cutter": shown[:, 0].mean(axis=1).round(3).tolist(),
        "rivals": shown[:, 1:].mean(axis=(1, 2)).round(3).tolist(),
        "back": float(back[cuts].mean()),
        "paid": float((worth[1] > worth[0])[cuts].mean()),
    }


def result(game: BertrandCompetition, learned: Learned) -> dict[str, Any]:
    """Return the settled markets' means, and their spread."""
    path = learned.at_rest()[..., learned.rested]
    profits = profits_of(game, learned.grid)[:, state_of(path.swapaxes(0, 1), len(learned.grid))]
    prices, earned = learned.grid[path].mean(axis=(0, 1)) / game.unit, profits.mean(axis=(0, 1))
    index, gain = price_index(game, prices), profit_gain(game, earned)
    periods = learned.periods[learned.rested]
    return {
        "demand": game.demand,
        "markets": len(learned.rested),
        "rested": float(learned.rested.mean()),
        "periods": [int(q) for q in np.quantile(periods, (0.25, 0.5, 0.75))],
        "price": float(prices.mean()),
        "price_index": _spread(index),
        "profit": float(earned.mean()),
        "profit_gain": _spread(gain),
        "cut": cut(game, learned),
    }


def _spread(values: Array) -> dict[str, float]:
    """Return a mean, half of its 95 % interval, and the 5th and 95th percentile."""
    half = 1.96 * values.std(ddof=1) / len(values) ** 0.5
    low, high = np.quantile(values, (0.05, 0.95))
    summary = {"mean": values.mean(), "half": half, "low": low, "high": high}
    return {name: round(float(value), 4) for name, value in summary.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments, rows = parser.parse_args(), []
    for preset in (None, "logit"):
        game: Any = rulebook(BertrandCompetition.name, preset=preset)
        begin = time.process_time()
        learned = learn(game, arguments.markets, arguments.seed)
        row = result(game, learned) | {"cpu_seconds": round(time.process_time() - begin)}
        strategies = ["".join(_DIGITS[i] for i in best.ravel()) for best in learned.best[:SHIPPED]]
        rows.append(row | {"market": market_of(game), "strategies": strategies})
        print(_line(row))
    content = {"date": str(date.today()), "seed": arguments.seed, "results": rows}
    arguments.out.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def _line(row: dict[str, Any]) -> str:
    index, gain, path = row["price_index"], row["profit_gain"], row["cut"]
    return (
        f"{row['demand']}: {row['markets']} markets, {row['rested']:.0%} at rest after "
        f"{row['periods'][1]:,} periods (median), {row['cpu_seconds']} s\n"
        f"  mean price {row['price']:.3f}, price index {index['mean']:.3f} ± {index['half']:.3f}\n"
        f"  profit gain {gain['mean']:.3f} ± {gain['half']:.3f}, 5 to 95 %: {gain['low']:.2f} to "
        f"{gain['high']:.2f} (Calvano et al., two firms, logit: about .70 to .90)\n"
        f"  after a price cut, cutter {path['cutter']}\n"
        f"  and rival {path['rivals']}; back in {path['back']:.0%} of markets, paid in "
        f"{path['paid']:.0%}"
    )


if __name__ == "__main__":
    main()
