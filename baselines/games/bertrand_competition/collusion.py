"""How far prices in money, ``(rounds, firms)``, are above competition, and whether they settle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from llm_games.baselines.games.bertrand_competition import theory
from llm_games.errors import BadParameter
from llm_games.games.bertrand_competition.rules import BertrandCompetition
from llm_games.rulebook import Array

NEAR, LASTING = 0.25, 100  # how close to their mean prices stay, and for how many rounds


def path(game: BertrandCompetition, records: Sequence[Mapping[str, Any]]) -> tuple[Array, Array]:
    """Return a game's prices (in money) and profits from round 1 on, ``(rounds, firms)``."""
    ticks = [np.asarray(record["prices"]) for record in records]
    profits = [np.asarray(record["profits"], np.float64) for record in records]
    if game.first_round == "forced":
        first = game.reset(0)
        ticks, profits = [first.prices, *ticks], [first.profits, *profits]
    return np.stack(ticks) / game.unit, np.stack(profits)


def price_index(game: BertrandCompetition, price: Any) -> Any:
    """Return a mean price from 0, the one-shot equilibrium, to 1, the cartel; NaN: both equal."""
    low, high = (float(np.mean([*map(float, of(game))])) for of in _ENDS)
    return (np.asarray(price) - low) / ((high - low) or np.nan)


def profit_gain(game: BertrandCompetition, profit: Any) -> Any:
    """Return a firm's mean profit from equilibrium, 0, to cartel, 1, Calvano's delta."""
    low, high = (theory.profits_at(game, of(game)).mean() for of in _ENDS)
    return (np.asarray(profit) - low) / ((high - low) or np.nan)


_ENDS = theory.equilibrium, theory.cartel


def price_gap(prices: Array) -> Any:
    return np.ptp(prices, axis=1).mean(axis=0)


def convergence(prices: Array, near: float = NEAR, lasting: int = LASTING) -> int | None:
    """Return the first round (from 1) of `lasting` whose prices stay `near` their mean."""
    means = prices.mean(axis=1)
    if len(means) <= lasting:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(means[1:], lasting)
    # The tolerance keeps windows at exactly this distance, whatever rounding does to the mean.
    far = np.abs(windows - windows.mean(axis=1, keepdims=True)).max(axis=1)
    steady = np.flatnonzero(far <= near + 1e-9)
    return int(steady[0]) + 1 if len(steady) else None


def distances(game: BertrandCompetition, prices: Array) -> dict[str, Array]:
    far = (np.abs(prices - np.array([*map(float, of(game))])).mean(axis=1) for of in _ENDS)
    return dict(zip(("equilibrium", "cartel"), far, strict=True))


def regret(game: BertrandCompetition, prices: Array) -> Array:
    ticks = np.rint(prices * game.unit).astype(np.int64)
    return theory.regret(game, ticks.T).T


def measures(
    game: BertrandCompetition, prices: Array, profits: Array, rounds: tuple[int, int] | None = None
) -> dict[str, Any]:
    """Return all measures of a played game, of the rounds from the first to the last given.

    ``prices, profits = path(game, records)``; `converged` is that of the whole game. Raises
    BadParameter if none of these rounds was played.
    """
    low, high = rounds or (1, len(prices))
    if not 1 <= low <= min(high, len(prices)):
        raise BadParameter(
            f"rounds must be a first and a last one of 1 to {len(prices)}, got {low} and {high}"
        )
    part, earned = prices[low - 1 : high], profits[low - 1 : high]
    far = distances(game, part)
    return {
        "price": float(part.mean()),
        "profit": float(earned.mean()),
        "price_index": float(price_index(game, part.mean())),
        "profit_gain": float(profit_gain(game, earned.mean())),
        "price_gap": float(price_gap(part)),
        "converged": convergence(prices),
        "regret": float(regret(game, part).mean()),
        **{f"far_from_{name}": float(values.mean()) for name, values in far.items()},
    }


# -- what others answer to a forced price ----------------------------------------------------------

DISCOUNT = 0.95  # a later period is worth so much of the one before (Calvano et al., section 3)


def probe_size(game: BertrandCompetition) -> Fraction:
    """Return half of what the mean cartel price is above the equilibrium's, in whole ticks."""
    low, high = (np.mean([*map(float, of(game))]) for of in _ENDS)
    return Fraction(max(round((high - low) / 2 * game.unit), 1), game.unit)


def forced_price(game: BertrandCompetition, prices: Array, seat: int, by: Fraction | None) -> Any:
    """Return a price in money, `by` above what the seat asks for; None: no price is that far.

    `prices` are a round's in ticks, ``(firms,)``. Without `by` it is the best reply to the others',
    if that is a cut.
    """
    price, cost = int(prices[seat]), int(game.ticks(game.costs, up=True)[seat])
    if by is None:
        ticks = int(theory.best_reply(game, np.asarray(prices), seat))
        return Fraction(ticks, game.unit) if ticks < price else None
    ticks = price + int(by * game.unit)
    if by < 0:
        ticks = max(ticks, min(cost, price))
    return Fraction(ticks, game.unit) if ticks != price and ticks <= game.bounds()[1] else None


def rules_beside(game: BertrandCompetition) -> tuple[str, ...]:
    """Return rule players whose answers to a forced price are known, and the first Q-player."""
    half = Fraction(max(int(probe_size(game) * game.unit / 2), 1), game.unit)
    names = ("rational", "cooperative", "grim", "reciprocal", "match", "best_response")
    return (*names, f"undercut:{float(half):g}", "q_learning:0")
