"""Choosing an exit: queues by exits, an equilibrium of the choice, and upper bounds of payoffs.

No equilibrium of the whole game is known: people are taken to walk the shortest way and to queue
(see `queues`), those of a side at its exits. Steps have no regret.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.games.emergency_evacuation.queues import assigned, fifo, matching, waiting
from llm_games.baselines.regret import Claim, Measured, Parts, Steps
from llm_games.facts import once
from llm_games.games.emergency_evacuation.geometry import BEYOND, Distances
from llm_games.games.emergency_evacuation.rules import TARGET
from llm_games.rulebook import Array, PerPlayer


class Queues(NamedTuple):
    """The choices: steps to each ``(choices, cells)``, its width, and the choice of each exit."""

    steps: Array
    widths: Array
    of: Array


@lru_cache(maxsize=64)
def queues(measure: Distances, by: str) -> Queues:
    room = measure.layout
    if by == "cell":
        return Queues(room.steps, np.ones(len(room.exits), int), np.arange(len(room.exits)))
    steps = np.take_along_axis(room.steps, measure.nearest_of, axis=0)
    return Queues(steps, np.bincount(room.side), room.side)


def chosen(game: Any, target: PerPlayer) -> PerPlayer:
    """Return the action that stands for each target, −1 without one."""
    return np.where(target < 0, -1, queues(game.measure, game.target_choice).of[target])


def distances(game: Any, cell: PerPlayer, target: PerPlayer, free: PerPlayer) -> Array:
    """Return steps to each choice, ``(choices, players, *batch)``; `BEYOND` without a way.

    Only those who are `free` to choose may change their target.
    """
    steps = queues(game.measure, game.target_choice).steps[:, cell]
    choice = np.arange(len(steps)).reshape(-1, *(1,) * cell.ndim)
    return np.where(free | (choice == chosen(game, target)), steps, BEYOND)


def equilibrium(game: Any, state: Any) -> PerPlayer:
    """Return each person's best choice, given the others' queues (`queues.fifo`)."""
    return _solver(game, _fifo)(state)


def best_exits(game: Any, state: Any) -> PerPlayer:
    """Return each person's best exit cell from where all stand, `NONE` of those outside."""
    far = game.room.steps[:, state.cell]
    return fifo(np.where(game.present(state), far, BEYOND), np.ones(len(far), int))


def planned(game: Any, state: Any) -> PerPlayer:
    """Return a choice for each by which all are out as early as possible (`queues.assigned`)."""
    return _solver(game, assigned)(state)


def _fifo(far: Array, widths: Array, rounds: int) -> PerPlayer:
    return fifo(far, widths)


@lru_cache(maxsize=32)
def _solver(game: Any, solve: Any) -> Any:
    """Return a function of the state that solves everybody's choice, once for all seats."""

    def choices(state: Any) -> PerPlayer:
        free = game.asked(state) & (state.phase == TARGET)
        far = distances(game, state.cell, state.target, free)
        return solve(far, queues(game.measure, game.target_choice).widths, game.max_rounds)

    return once(choices)


def shortest(game: Any, state: Any) -> PerPlayer:
    """Return choices of the least ``max(distance, people before me / width)``, the first ones."""
    # Before me at an exit are those nearer to it than I who have no nearer one.
    steps, widths, _ = queues(game.measure, game.target_choice)
    far = steps[:, state.cell]
    first, costs = far.argmin(axis=0), []
    for choice, (distance, width) in enumerate(zip(far, widths.tolist(), strict=True)):
        near = np.where((first == choice) & game.present(state), distance, BEYOND)
        costs.append(np.maximum(distance, _below(np.sort(near, axis=0), distance) / width))
    return np.argmin(costs, axis=0)


def _below(ordered: Array, values: Array) -> Array:
    """Return how many of the ordered ones are smaller than each value, along the first axis."""
    rows, flat = ordered.reshape(len(ordered), -1).T, values.reshape(len(values), -1).T
    counts = [np.searchsorted(row, value) for row, value in zip(rows, flat, strict=True)]
    return np.array(counts).T.reshape(values.shape)


# -- judged ---------------------------------------------------------------------------------------


def deviation(game: Any, record: Steps) -> Measured:
    """Return the gain by another exit, in the queues of all others' choices.

    0 where no exit was chosen. No distance is defined.
    """
    asked = (record["phase"] == TARGET) & (record["actions"] >= 0)
    regret = np.zeros(asked.shape)
    choosing_steps = asked.any(axis=0)  # about one step of a hundred
    if choosing_steps.any():
        parts = (record[name][..., choosing_steps] for name in ("cell", "aim", "round"))
        regret[:, choosing_steps] = _regret(game, asked[:, choosing_steps], *parts)
    return regret, np.full(asked.shape[1:], np.nan)


def _regret(
    game: Any, asked: PerPlayer, cell: PerPlayer, target: PerPlayer, round_: Array
) -> PerPlayer:
    inside, cell = cell > 0, np.maximum(cell, 0)
    far = distances(game, cell, target, np.ones(cell.shape, np.bool_))
    choice = np.where(inside, chosen(game, target), -1)
    times = waiting(far, choice, queues(game.measure, game.target_choice).widths)
    gains = payoffs(game, round_ + times - 1)
    payoff = np.take_along_axis(gains, np.maximum(choice, 0)[None], axis=0)[0]
    return np.where(asked, gains.max(axis=0) - payoff, 0.0)


def payoffs(game: Any, escaped: Array) -> Array:
    last = game.max_rounds
    return np.where((escaped > 0) & (escaped <= last), (last + 1 - escaped) / last, 0.0)


def rational(game: Any) -> Claim:
    return Claim(
        "heuristic",
        "chooses its part of an equilibrium of the choice of exits, where people queue by distance "
        "and walk the shortest way; steps to the best free cell",
    )


def replies(game: Any) -> list[str]:
    kinds = ["rational", "nearest", "distance_queue", "cooperative"]
    return kinds + [f"fixed:{name}" for name in game.exits]


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the sum of payoffs; the best is that of `matching`."""
    total = payoffs(game, steps["escaped"].sum(axis=-1)).sum(axis=0)
    starts = (cells[cells > 0] for cells in steps["cell"][..., 0].reshape(game.players, -1).T)
    best = [payoffs(game, matching(game.room, cells, game.max_rounds)).sum() for cells in starts]
    none = np.full(total.shape, np.nan)
    return total, np.zeros(total.shape), np.reshape(best, total.shape), none, none


def unasked(game: Any) -> tuple[str, ...]:
    """Return the kinds of graded questions that cannot be told: steps are letters of one's own."""
    return ("payoff",)
