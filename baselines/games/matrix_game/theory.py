"""Matrix games: equilibria of a round, and which of them is played by who is rational.

A round is its table, or with slips the table of what choices lead to on average; who sees wrong
plays the same round. An equilibrium of a round, played in each, is one of the repeated game. Games
by count are solved without slips, and of cells that differ in who does what only one is looked at.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import compress
from typing import Any

import numpy as np

from llm_games.baselines.mixed_equilibria import MOST_ACTIONS, Mixture, mixed_equilibria
from llm_games.baselines.payoff_tables import check_table, pure_equilibria, undominated
from llm_games.baselines.regret import Claim, Measured, Parts, Steps, draws, flat
from llm_games.exact_payoffs import ExactPayoffs
from llm_games.games.matrix_game.rules import MatrixGame
from llm_games.noise import Noise
from llm_games.rulebook import PerPlayer, PerTable

Cell = tuple[int, ...]
MOST_EQUILIBRIA = 4096


def played_in(record: Steps) -> PerPlayer:
    """Return the actions as they were played, after slips."""
    return record.get("played", record["actions"])


@lru_cache(64)
def stage(game: MatrixGame, alone: int | None = None) -> ExactPayoffs:
    """Return the payoffs of a round by what is chosen, the mean of what slips make of it.

    With a seat `alone` only its actions slip: those of the others are as they are played.
    """
    numbers, unit = game.table.numbers, game.table.unit
    check_table(numbers.size)
    if not game.slips or game.by_count is not None:
        return game.table
    slip, sides = game.noise.as_integer_ratio()
    for seat in range(game.players) if alone is None else [alone]:
        count = game.actions[seat]
        chances = np.full((count, count), slip, object)
        np.fill_diagonal(chances, (sides - slip) * (count - 1))
        numbers = np.moveaxis(np.tensordot(numbers, chances, (seat + 1, 1)), -1, seat + 1)
        unit *= sides * (count - 1)
    return ExactPayoffs(numbers, unit)


@lru_cache(64)
def equilibria(game: MatrixGame) -> tuple[Cell, ...]:
    """Return the pure equilibria of a round in order; by count one of each number, first seats."""
    table = stage(game)
    if not table.by_count:
        return tuple(pure_equilibria(table.numbers))
    is_stable = (table.best(table.profiles) == table.of(table.profiles)).all(axis=0)
    return tuple(map(tuple, table.profiles.T[is_stable][::-1].tolist()))


@lru_cache(64)
def selected(game: MatrixGame) -> Cell | None:
    """Return the pure equilibrium that is played: of several the one that all prefer.

    Without one, of 2 x 2 the risk-dominant one (Harsanyi and Selten 1988), else the first. None if
    there is no pure one, or none is known.
    """
    stable, is_table = equilibria(game), game.by_count is None
    if not stable or (game.slips and not is_table):
        return None
    payoffs = stage(game).of(np.array(stable).T)
    best = int(payoffs[0].argmax())
    if (np.delete(payoffs, best, axis=1) < payoffs[:, [best]]).all():
        return stable[best]
    if game.actions != (2, 2) or not is_table:
        return stable[0]
    row, column = stage(game).numbers
    losses = (row - row[::-1]) * (column - column[:, ::-1])  # by leaving, of both, multiplied
    return max(stable, key=lambda cell: losses[cell])


@lru_cache(64)
def in_turn(game: MatrixGame) -> tuple[Cell, ...]:
    """Return the pure equilibria than which no other is better for some and worse for nobody."""
    stable = equilibria(game)
    if not stable:
        return ()
    return tuple(compress(stable, undominated(stage(game).of(np.array(stable).T))))


@lru_cache(64)
def mixed(game: MatrixGame) -> tuple[Mixture, ...] | None:
    """Return the equilibrium of two players of fewest actions; None where none is worked out."""
    if game.players > 2 or game.by_count is not None or max(game.actions) > MOST_ACTIONS:
        return None
    return mixed_equilibria(stage(game).numbers)[0]


def rational(game: Any) -> Claim:
    cell = selected(game)
    if cell is None and mixed(game) is None:
        return Claim("heuristic", "plays the action whose worst payoff is best")
    if cell is None:
        return Claim("equilibrium", "draws from a mixed equilibrium of a round, of fewest actions")
    count, actions = len(equilibria(game)), " ".join(map(str, cell[:20]))
    which = "the only pure equilibrium" if count == 1 else f"one of {count} pure equilibria"
    sentence = f"plays its part of {which} of a round, {actions}, by numbers of actions"
    return Claim("equilibrium", sentence)


def replies(game: Any) -> list[str]:
    constants = [f"fixed:{k}" for k in range(max(game.actions))]
    if game.reveal != "actions":
        return ["rational", *constants]
    names = ["tit_for_tat", "grim", "win_stay_lose_shift", "alternator"] * (game.actions == (2, 2))
    return ["rational", "best_response", *constants, *names]


def distance(game: MatrixGame, played: PerPlayer) -> PerTable:
    """Return the share of seats that must move to come to the nearest pure equilibrium."""
    if not 0 < len(equilibria(game)) <= MOST_EQUILIBRIA:
        return np.full(played.shape[1:], np.nan)
    if game.by_count is None:
        moves = [sum(map(np.not_equal, played, cell)) for cell in equilibria(game)]
    else:
        moves = [np.abs((played == 0).sum(axis=0) - cell.count(0)) for cell in equilibria(game)]
    return np.min(moves, axis=0) / game.players


def deviation(game: Any, record: Steps) -> Measured:
    """Return regret of a round, in hindsight of all actions and slips, and distance."""
    played, table = played_in(record), game.table
    return (table.best(played) - table.of(played)) / table.unit, distance(game, played)


def exploitability(game: Any, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    """Return a reply's gain where all others draw from a seat's play; NaN if seats differ."""
    if not game.table.alike:
        return np.nan, None
    moves = flat(played_in(steps))[seat]
    others, chances = draws(moves, game.players - 1)
    profiles = (np.insert(others, 0, action, axis=0) for action in range(game.actions[0]))
    values = [float(game.table.paid(profile)[0] @ chances) for profile in profiles]
    reply = int(np.argmax(values)) if reply is None else reply
    shares = np.bincount(moves, minlength=len(values)) / len(moves)
    return values[reply] - float(shares @ values), reply


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the sum of payoffs, of equilibria that of the pure ones."""
    played, table, ends = played_in(steps), stage(game), [np.nan, np.nan]
    sums = lambda actions: table.of(actions).sum(axis=0).astype(np.float64) / table.unit  # noqa: E731
    if equilibria(game) and not (game.slips and game.by_count is not None):
        values = sums(np.array(equilibria(game)).T)
        ends = [values.min(), values.max()]
    every, rounds = sums(table.profiles), played.shape[-1]
    total = game.table.paid(played).sum(axis=(0, -1))
    return total, *(rounds * value for value in (every.min(), every.max(), *ends))


@lru_cache(64)
def best_for_all(game: MatrixGame) -> Cell:
    """Return the first cell whose payoffs add up to most; by count, the first seats play 0."""
    table = stage(game)
    best = int(table.of(table.profiles).sum(axis=0).argmax())
    return tuple(table.profiles[:, best].tolist())


def drawn(noise: Noise) -> dict[str, Any]:
    """Return drawn payoffs of three actions each, for graded questions."""
    return {"payoffs": noise.integers(10, 100, (3, 3, 2)).tolist()}
