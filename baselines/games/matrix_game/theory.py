"""Matrix games: equilibria of a round, and which of them is played by who is rational.

A round is its table, or with slips the table of what choices lead to on average; who sees wrong
plays the same round. An equilibrium of a round, played in each, is one of the repeated game.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np

from llm_games.baselines.mixed_equilibria import MOST_ACTIONS, Mixture, mixed_equilibria
from llm_games.baselines.payoff_tables import check_table, pure_equilibria, regrets
from llm_games.baselines.regret import Claim, Measured, Parts, Steps, draws, flat
from llm_games.games.matrix_game.rules import MatrixGame
from llm_games.noise import Noise
from llm_games.rulebook import Array, PerPlayer, PerTable

Profile = tuple[int, ...]
MOST_EQUILIBRIA = 4096


def played_in(record: Steps) -> PerPlayer:
    """Return the actions as they were played, after slips."""
    return record.get("played", record["actions"])


@lru_cache(64)
def stage(game: MatrixGame) -> tuple[Array, int]:
    """Return the payoffs of a round, whole numbers ``(players, *actions)``, and how many are 1."""
    table, unit = game.given.units, game.given.unit
    check_table(table.size)
    if not game.slips:
        return table, unit
    table = table.astype(object)
    slip, sides = game.noise.as_integer_ratio()
    for seat, count in enumerate(game.actions):
        chances = np.full((count, count), slip, object)
        np.fill_diagonal(chances, (sides - slip) * (count - 1))
        table = np.moveaxis(np.tensordot(table, chances, (seat + 1, 1)), -1, seat + 1)
        unit *= sides * (count - 1)
    return table, unit


def stable_counts(game: MatrixGame) -> list[int]:
    """Return how many play the first action in the pure equilibria of a game by count."""
    first, second = game.given.units
    worth = np.sign(first - second)  # of the first action, by how many others play it
    leave, join = np.append(0, worth), np.append(worth, 0)
    return np.flatnonzero((leave >= 0) & (join <= 0)).tolist()


@lru_cache(64)
def equilibria(game: MatrixGame) -> tuple[Profile, ...]:
    """Return the pure equilibria of a round in order; by count one of each number, first seats."""
    if game.by_count is None:
        return tuple(pure_equilibria(stage(game)[0]))
    n = game.players
    return tuple((*(0,) * k, *(1,) * (n - k)) for k in reversed(stable_counts(game)))


def _earned(game: MatrixGame, profile: Profile) -> Array:
    if game.by_count is not None:
        return game.given.paid(np.array(profile))
    return np.array([seat[profile] for seat in stage(game)[0]])


@lru_cache(64)
def selected(game: MatrixGame) -> Profile | None:
    """Return the pure equilibrium that is played: of several the one that all prefer.

    Without one, of 2 x 2 the risk-dominant one (Harsanyi and Selten 1988), else the first. None if
    there is no pure one, or none is known.
    """
    if game.by_count is not None and game.slips:
        return None
    found = equilibria(game)
    earned = [_earned(game, profile) for profile in found]
    for number, own in enumerate(earned):
        if all((own > other).all() for k, other in enumerate(earned) if k != number):
            return found[number]
    if game.actions == (2, 2) and game.by_count is None and found:
        return max(found, key=lambda profile: _losses(game, profile))
    return found[0] if found else None


def _losses(game: MatrixGame, profile: Profile) -> Any:
    """Return the product of what both lose by leaving."""
    (row, column), (i, j) = stage(game)[0], profile
    return (row[i, j] - row[1 - i, j]) * (column[i, j] - column[i, 1 - j])


@lru_cache(64)
def mixed(game: MatrixGame) -> tuple[Mixture, ...] | None:
    """Return the equilibrium of two players of fewest actions; None where none is worked out."""
    if game.players > 2 or game.by_count is not None or max(game.actions) > MOST_ACTIONS:
        return None
    return mixed_equilibria(stage(game)[0])[0]


def rational(game: Any) -> Claim:
    profile, mixtures = selected(game), None
    if profile is None:
        mixtures = mixed(game)
    if profile is not None:
        count = len(equilibria(game))
        which = "the only pure equilibrium" if count == 1 else f"one of {count} pure equilibria"
        played = f"plays its part of {which} of a round, {' '.join(map(str, profile[:20]))}"
        return Claim("equilibrium", f"{played}, by numbers of actions")
    if mixtures is not None:
        return Claim("equilibrium", "draws from a mixed equilibrium of a round, of fewest actions")
    return Claim("heuristic", "plays the action whose worst payoff is best")


def replies(game: Any) -> list[str]:
    names = ["rational", "best_response", *(f"fixed:{k}" for k in range(max(game.actions)))]
    if game.actions == (2, 2) and game.reveal == "actions":
        names += ["tit_for_tat", "grim", "win_stay_lose_shift", "alternator"]
    return names if game.reveal == "actions" else [n for n in names if n != "best_response"]


def regret(game: MatrixGame, played: PerPlayer) -> PerPlayer:
    if game.by_count is None:
        return regrets(game.given.units, played) / game.given.unit
    first = played == 0
    others = first.sum(axis=0) - first
    best = game.given.units[:, others].max(axis=0)
    return (best - game.given.paid(played)) / game.given.unit


def distance(game: MatrixGame, played: PerPlayer) -> PerTable:
    """Return the share of seats that must move to come to the nearest pure equilibrium."""
    if game.by_count is not None:
        first, counts = (played == 0).sum(axis=0), stable_counts(game)
        return np.min([np.abs(first - k) for k in counts], axis=0) / game.players
    found = equilibria(game)
    if not 0 < len(found) <= MOST_EQUILIBRIA:
        return np.full(played.shape[1:], np.nan)
    far = np.full(played.shape[1:], game.players)
    for profile in found:
        moved = sum(seat != action for seat, action in zip(played, profile, strict=True))
        far = np.minimum(far, moved)
    return far / game.players


def deviation(game: Any, record: Steps) -> Measured:
    """Return regret of a round, in hindsight of all actions and slips, and distance."""
    played = played_in(record)
    return regret(game, played), distance(game, played)


def exploitability(game: Any, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    """Return a reply's gain where all others draw from a seat's play; NaN if seats differ."""
    if not game.given.alike:
        return np.nan, None
    moves = flat(played_in(steps))[seat]
    others, chances = draws(moves, game.players - 1)

    def earned(action: int) -> float:
        own = np.full((1, others.shape[1]), action)
        return float(game.paid(np.concatenate([own, others]))[0] @ chances)

    values = [earned(action) for action in range(game.actions[0])]
    reply = int(np.argmax(values)) if reply is None else reply
    shares = np.bincount(moves, minlength=len(values)) / len(moves)
    return values[reply] - float(shares @ values), reply


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the sum of payoffs, of equilibria that of the pure ones."""
    played = played_in(steps)
    rounds, total = played.shape[-1], game.paid(played).sum(axis=(0, -1))
    if game.by_count is None:
        table, unit = stage(game)
        sums = table.sum(axis=0).astype(np.float64) / unit
        profiles = [sums[profile] for profile in equilibria(game)]
    else:
        first, (one, other) = np.arange(game.players + 1), game.given.units / game.given.unit
        sums = first * np.append(0, one) + (game.players - first) * np.append(other, 0)
        profiles = [] if game.slips else [sums[k] for k in stable_counts(game)]
    ends = (min(profiles), max(profiles)) if profiles else (np.nan, np.nan)
    return total, *(rounds * value for value in (sums.min(), sums.max(), *ends))


# -- what others are expected to do ----------------------------------------------------------------


def expected(game: MatrixGame, seat: int, mixtures: Sequence[Mixture]) -> list[Any]:
    """Return what each action earns, in units, if the others draw from these mixtures."""
    if game.by_count is not None:
        share, n = mixtures[0][0], game.players - 1
        chance = [comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
        return [
            sum(int(u) * c for u, c in zip(row, chance, strict=True)) for row in game.given.units
        ]
    values = stage(game)[0][seat].astype(object)
    for other in reversed(range(game.players)):
        if other != seat:
            values = np.tensordot(values, np.array(mixtures[other], object), (other, 0))
    return list(values)


@lru_cache(256)
def level_k(game: MatrixGame, level: int) -> tuple[Mixture, ...]:
    """Return what each seat draws from: all actions alike, or the first best reply to that."""
    if level == 0:
        return tuple((Fraction(1, count),) * count for count in game.actions)
    below = level_k(game, level - 1)
    best = []
    for seat, count in enumerate(game.actions if game.by_count is None else game.actions[:1]):
        earned = expected(game, seat, below)
        best.append(tuple(Fraction(k == earned.index(max(earned))) for k in range(count)))
    return tuple(best) if game.by_count is None else tuple(best * game.players)


@lru_cache(64)
def in_turn(game: MatrixGame) -> tuple[Profile, ...]:
    """Return the pure equilibria than which no other is better for some and worse for nobody."""
    found = equilibria(game)
    earned = [_earned(game, profile) for profile in found]

    def better(other: Array, own: Array) -> bool:
        return bool((other >= own).all() and (other > own).any())

    return tuple(
        profile
        for profile, own in zip(found, earned, strict=True)
        if not any(better(other, own) for other in earned)
    )


@lru_cache(64)
def best_for_all(game: MatrixGame) -> Profile:
    """Return the first cell whose payoffs add up to most; by count, the first seats play 0."""
    if game.by_count is None:
        total = stage(game)[0].sum(axis=0)
        return tuple(int(i) for i in np.unravel_index(int(total.argmax()), total.shape))
    n, (first, second) = game.players, game.given.units.tolist()
    sums = [k * first[k - 1] + (n - k) * (second[k] if k < n else 0) for k in range(n + 1)]
    most = sums.index(max(sums))
    return (*(0,) * most, *(1,) * (n - most))


def drawn(noise: Noise) -> dict[str, Any]:
    """Return drawn payoffs of three actions each, for graded questions."""
    return {"payoffs": noise.integers(10, 100, (3, 3, 2)).tolist()}
