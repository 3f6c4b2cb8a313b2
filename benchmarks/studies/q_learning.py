"""Firms that learn prices by tabular Q-learning, as in Calvano et al. (AER 110(10), 2020).

Every firm sees the last prices of all firms and picks one of some prices; a period later it learns
from its profit alone. Many markets learn at once, without a word between them.

``python -m llm_games.benchmarks.studies.q_learning`` prints where 1,000 duopolies come to rest and
how they answer a price cut, and writes the strategies of the package's players (minutes); with
``--alpha`` and ``--beta`` it prints the mean price index and profit gain by learning rate and decay
of trials, the grid of their figures 1 and 2, and writes it as CSV.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import any_true
from llm_games.baselines.games.bertrand_competition.collusion import price_index, profit_gain
from llm_games.baselines.games.bertrand_competition.q_learners import (
    DIGITS,
    MARGIN,
    PRICES,
    RESULT,
    SHIPPED,
    grid_of,
    market_of,
    state_of,
)
from llm_games.benchmarks.studies.dated import write
from llm_games.errors import BadParameter
from llm_games.games.bertrand_competition.rules import BertrandCompetition
from llm_games.registry import rulebook
from llm_games.rulebook import Array

MOST_CELLS = 50_000_000  # of all tables together
DRAWN = 256  # periods whose chance is drawn at once
CYCLES = 840  # periods that make whole cycles of up to eight
SHOWN = 15  # periods of the answer to a price cut


@dataclass(frozen=True)
class Learning:
    """How firms learn. The usual values after Calvano et al., section 3."""

    rate: float = 0.15
    """weight of what is new in the value of an action"""
    discount: float = 0.95
    decay: float = 4e-6
    """in period t a firm tries any price with the chance ``exp(-decay * t)``"""
    prices: int = PRICES
    margin: float = MARGIN
    patience: int = 100_000
    """a market has come to rest when its best actions were the same for so many periods"""
    max_periods: int = 10_000_000
    """periods after which it is over in any case"""


@dataclass(frozen=True)
class Learned:
    """Strategies that firms learned, and the states, numbers of `state_of`, where they settled."""

    grid: Array  # prices in ticks, (prices,)
    best: Array  # the best action of each firm in each state, (markets, firms, states)
    state: Array  # the last one, (markets,)
    rested: Array  # bool (markets,)
    periods: Array  # until it came to rest, (markets,)

    def play(self, state: Array, periods: int, forced: Array | None = None) -> Array:
        """Learned actions, ``(periods, firms, markets)``; firm 0's are `forced` in the first."""
        rows, path = np.arange(len(state)), []
        for period in range(periods):
            action = self.best[rows, :, state].T.copy()
            if forced is not None and not period:
                action[0] = forced
            state = state_of(action, len(self.grid))
            path.append(action)
        return np.stack(path)

    def at_rest(self) -> Array:
        """Actions after the markets settled, in cycles, see `play`."""
        around = self.best.shape[2]
        return self.play(self.state, around + CYCLES)[around:]


def profits_of(game: BertrandCompetition, grid: Array) -> Array:
    """Float64 ``(firms, states)``."""
    n = game.players
    actions = np.indices((len(grid),) * n).reshape(n, -1)
    return game.market(grid[actions])[1]


def learn(
    game: BertrandCompetition, markets: int, seed: int = 0, how: Learning | None = None
) -> Learned:
    """Firms learn in some markets at once until all have come to rest; those go on without change.

    Values begin at what an action earns on average against rivals who pick any price, for ever;
    states at any prices. BadParameter: prices do not fit between ticks, or tables are too large.
    """
    how = how or Learning()
    grid, n = grid_of(game, how.prices, how.margin), game.players
    rng = np.random.default_rng(seed)
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
    return Learned(
        grid=grid, best=best, state=tables.state, rested=tables.rested, periods=tables.periods
    )


class _QTables:
    """The values of all actions while markets learn, a row for each market, firm and state.

    Of each row is known which action is best, its value, and a bound of all others', so that it is
    only looked through where the best one falls below that.
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
        """A mask of trials and the tried prices, ``(periods, firms, markets)``."""
        shape = (periods, self.firms, self.alive.size)
        drawn = self.rng.integers(2**32, size=shape, dtype=np.uint32)
        below = (
            1e-9
            + 2**32 * np.exp(-self.how.decay * (self.period + np.arange(periods)))[:, None, None]
        )
        # Of those below a limit, how far below it they are is uniform again.
        return drawn < below, np.minimum(drawn * (self.prices / below), self.prices - 1).astype(int)

    def _learn(self, row: Array, action: Array, held: Array, new: Array) -> None:
        """Move values towards new ones; `held`: the action is the best one known."""
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


def cut(game: BertrandCompetition, learned: Learned, periods: int = SHOWN) -> dict[str, Any]:
    """The markets' answer when firm 0 replies best to the others' prices for one period.

    Mean prices of it and the others in money, the period before first; the share of markets in
    which all prices returned within `periods`, and where the cut paid over `CYCLES`, discounted.
    """
    resting = learned.at_rest()[-1]
    state = state_of(resting, len(learned.grid))
    usual = learned.play(state, CYCLES)
    profits = profits_of(game, learned.grid).reshape(
        game.players, *(len(learned.grid),) * game.players
    )[0]
    reply = profits[(slice(None), *usual[0, 1:])].argmax(axis=0)
    cuts = (reply < usual[0, 0]) & learned.rested
    answer = learned.play(state, CYCLES, np.where(cuts, reply, usual[0, 0]))
    weight = Learning().discount ** np.arange(CYCLES)
    worth = [weight @ profits[tuple(path.swapaxes(0, 1))] for path in (usual, answer)]
    path = np.concatenate([resting[None], answer[:periods]])[..., cuts]
    prices = learned.grid[path] / game.unit
    back = (answer[periods : 2 * periods] == usual[periods : 2 * periods]).all(axis=(0, 1))
    return {
        "markets": int(cuts.sum()),
        "cutter": prices[:, 0].mean(axis=1).round(3).tolist(),
        "rivals": prices[:, 1:].mean(axis=(1, 2)).round(3).tolist(),
        "back": float(back[cuts].mean()),
        "paid": float((worth[1] > worth[0])[cuts].mean()),
    }


def settled(game: BertrandCompetition, learned: Learned) -> dict[str, Any]:
    """Means of the settled markets, and their spread."""
    path = learned.at_rest()[..., learned.rested]
    profits = profits_of(game, learned.grid)[:, state_of(path.swapaxes(0, 1), len(learned.grid))]
    prices, profits = learned.grid[path].mean(axis=(0, 1)) / game.unit, profits.mean(axis=(0, 1))
    periods = learned.periods[learned.rested]
    return {
        "demand": game.demand,
        "markets": len(learned.rested),
        "rested": float(learned.rested.mean()),
        "periods": [int(q) for q in np.quantile(periods, (0.25, 0.5, 0.75))],
        "price": float(prices.mean()),
        "price_index": _spread(price_index(game, prices)),
        "profit": float(profits.mean()),
        "profit_gain": _spread(profit_gain(game, profits)),
    }


def _spread(markets: Array) -> dict[str, float]:
    """A mean over markets, half of its 95 % interval, and the 5th and 95th percentile."""
    half = 1.96 * markets.std(ddof=1) / len(markets) ** 0.5
    low, high = np.quantile(markets, (0.05, 0.95))
    summary = {"mean": markets.mean(), "half": half, "low": low, "high": high}
    return {name: round(float(number), 4) for name, number in summary.items()}


class GridRow(NamedTuple):
    """What markets settle at that learn at the rate `alpha`, with trials that decay by `beta`."""

    demand: str
    alpha: float
    beta: float
    markets: int
    rested: float
    price_index: float
    profit_gain: float
    seed: int
    day: str


def learning_grid(
    alphas: Sequence[float], betas: Sequence[float], markets: int, seed: int, **settings: Any
) -> list[GridRow]:
    """Rows of both demands; each pair meets the same chance, under `settings` of `Learning`."""
    rows = []
    for game, alpha, beta in product(_games(), alphas, betas):
        how = Learning(rate=alpha, decay=beta, **settings)
        means = settled(game, learn(game, markets, seed, how))
        rows.append(
            GridRow(
                demand=game.demand,
                alpha=alpha,
                beta=beta,
                markets=markets,
                rested=means["rested"],
                price_index=means["price_index"]["mean"],
                profit_gain=means["profit_gain"]["mean"],
                seed=seed,
                day=str(date.today()),
            )
        )
    return rows


def _games() -> list[Any]:
    return [rulebook(BertrandCompetition.name, preset=preset) for preset in (None, "logit")]


def ship(markets: int, seed: int, out: Path) -> None:
    """Write the strategies that the players ``q_learning:MARKET`` have."""
    rows = []
    for game in _games():
        begin = time.process_time()
        learned = learn(game, markets, seed)
        row = settled(game, learned) | {"cut": cut(game, learned)}
        row |= {"cpu_seconds": round(time.process_time() - begin)}
        strategies = ["".join(DIGITS[i] for i in best.ravel()) for best in learned.best[:SHIPPED]]
        rows.append(row | {"market": market_of(game), "strategies": strategies})
        print(_line(row))
    content = {"date": str(date.today()), "seed": seed, "results": rows}
    out.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alpha", type=float, nargs="+", default=[])
    parser.add_argument("--beta", type=float, nargs="+", default=[])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if not arguments.alpha and not arguments.beta:
        return ship(arguments.markets, arguments.seed, arguments.out or RESULT)
    alphas, betas = arguments.alpha or [Learning.rate], arguments.beta or [Learning.decay]
    rows = learning_grid(alphas, betas, arguments.markets, arguments.seed)
    write(rows, arguments.out or Path("q_learning_grid.csv"))
    for row in rows:
        print(
            f"{row.demand}, alpha {row.alpha:g}, beta {row.beta:g}: price index "
            f"{row.price_index:.3f}, profit gain {row.profit_gain:.3f}"
        )
    return None


if __name__ == "__main__":
    main()
