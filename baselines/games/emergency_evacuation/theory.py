"""Choosing an exit: queues by exits, an equilibrium of the choice, and what all could come to.

No equilibrium of the whole game is known. People are taken to walk the shortest way and to queue at
the exit (see `queues`); where sides are chosen, those of a side share its exits. Steps are not
judged.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.deviation import Claim, Measured, Parts, Steps
from llm_games.baselines.games.emergency_evacuation.queues import assigned, fifo, matching, waiting
from llm_games.facts import once
from llm_games.games.emergency_evacuation.geometry import BEYOND, Measure
from llm_games.games.emergency_evacuation.rules import TARGET
from llm_games.rulebook import Array, PerPlayer


class Queues(NamedTuple):
    """What can be chosen: steps to it ``(choices, cells)``, its width, and which each exit is."""

    steps: Array
    widths: Array
    of: Array


@lru_cache(maxsize=64)
def queues(measure: Measure, by: str) -> Queues:
    """Return the queues of a room whose people choose a ``side`` or a ``cell``."""
    room = measure.layout
    if by == "cell":
        return Queues(room.steps, np.ones(len(room.exits), int), np.arange(len(room.exits)))
    steps = np.take_along_axis(room.steps, measure.nearest_of, axis=0)
    return Queues(steps, np.bincount(room.side), room.side)


def chosen(game: Any, target: PerPlayer) -> PerPlayer:
    """Return the action that each target is, −1 without one."""
    return np.where(target < 0, -1, queues(game.measure, game.target_choice).of[target])


def distances(game: Any, cell: PerPlayer, target: PerPlayer, free: PerPlayer) -> Array:
    """Return steps to each choice, `BEYOND` where somebody cannot or will not go.

    ``(choices, players, *batch)``. Only those who are `free` to choose may change their target.
    """
    steps = queues(game.measure, game.target_choice).steps[:, cell]
    choice = np.arange(len(steps)).reshape(-1, *(1,) * cell.ndim)
    return np.where(free | (choice == chosen(game, target)), steps, BEYOND)


def equilibrium(game: Any, state: Any) -> PerPlayer:
    """Return a choice for each that is best for it, given the others' queues (`queues.fifo`)."""
    return _solver(game, _fifo)(state)


def now(game: Any, state: Any) -> PerPlayer:
    """Return the exit cell that is best for each from where all stand, `NONE` of those outside."""
    far = game.room.steps[:, state.cell]
    return fifo(np.where(game.present(state), far, BEYOND), np.ones(len(far), int))


def planned(game: Any, state: Any) -> PerPlayer:
    """Return a choice for each by which all are out as early as can be (`queues.assigned`)."""
    return _solver(game, assigned)(state)


def _fifo(far: Array, widths: Array, rounds: int) -> PerPlayer:
    return fifo(far, widths)


@lru_cache(maxsize=32)
def _solver(game: Any, solve: Any) -> Any:
    """Return what finds everybody's choice in a state, once for all who ask."""

    def choices(state: Any) -> PerPlayer:
        free = game.asked(state) & (state.phase == TARGET)
        far = distances(game, state.cell, state.target, free)
        return solve(far, queues(game.measure, game.target_choice).widths, game.max_rounds)

    return once(choices)


def shortest(game: Any, state: Any) -> PerPlayer:
    """Return the choice of the least ``max(distance, people before me / width)`` for each.

    Before me at an exit are those who are nearer to it than I and have no nearer one. Int64
    ``(players, *batch)``; of equal ones the first.
    """
    steps, widths, _ = queues(game.measure, game.target_choice)
    far = steps[:, state.cell]
    first, costs = far.argmin(axis=0), []
    for choice, (distance, width) in enumerate(zip(far, widths.tolist(), strict=True)):
        own = np.sort(np.where((first == choice) & game.present(state), distance, BEYOND), axis=0)
        ahead = _below(own, distance)
        costs.append(np.maximum(distance, ahead / width))
    return np.argmin(costs, axis=0)


def _below(ordered: Array, values: Array) -> Array:
    """Return how many of the ordered ones are smaller than each value, along the first axis."""
    rows, flat = ordered.reshape(len(ordered), -1).T, values.reshape(len(values), -1).T
    found = [np.searchsorted(row, value) for row, value in zip(rows, flat, strict=True)]
    return np.array(found).T.reshape(values.shape)


# -- judged ---------------------------------------------------------------------------------------


def deviation(game: Any, record: Steps) -> Measured:
    """Return what another exit would have brought, by the queues as all others chose.

    0 where no exit was chosen. No distance is defined.
    """
    asked = (record["phase"] == TARGET) & (record["actions"] >= 0)
    regret = np.zeros(asked.shape)
    some = asked.any(axis=0)  # steps in which exits are chosen: of a hundred one, where people walk
    if some.any():
        regret[:, some] = _regret(
            game, asked[:, some], *(record[name][..., some] for name in ("cell", "aim", "round"))
        )
    return regret, np.full(asked.shape[1:], np.nan)


def _regret(
    game: Any, asked: PerPlayer, cell: PerPlayer, target: PerPlayer, round_: Array
) -> PerPlayer:
    """Return the regret of each in steps in which exits are chosen, 0 of those not asked."""
    inside, cell = cell > 0, np.maximum(cell, 0)
    far = distances(game, cell, target, np.ones(cell.shape, np.bool_))
    own = np.where(inside, chosen(game, target), -1)
    times = waiting(far, own, queues(game.measure, game.target_choice).widths)
    paid = payoffs(game, round_ + times - 1)
    got = np.take_along_axis(paid, np.maximum(own, 0)[None], axis=0)[0]
    return np.where(asked, paid.max(axis=0) - got, 0.0)


def payoffs(game: Any, escaped: Array) -> Array:
    """Return what people get who are out in these rounds, 0 for never."""
    last = game.max_rounds
    return np.where((escaped > 0) & (escaped <= last), (last + 1 - escaped) / last, 0.0)


def rational(game: Any) -> Claim:
    """Return what the rational player is."""
    return Claim(
        "heuristic",
        "chooses its part of an equilibrium of the choice of exits, where people queue by distance "
        "and walk the shortest way; steps to the best free cell",
    )


def replies(game: Any) -> list[str]:
    """Return the rule players, and those who always choose the same."""
    kinds = ["rational", "nearest", "distance_queue", "cooperative"]
    return kinds + [f"fixed:{name}" for name in game.exits]


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the payoffs of all; at best as if nobody stood in another's way (see `matching`)."""
    total = payoffs(game, steps["escaped"].sum(axis=-1)).sum(axis=0)
    start = steps["cell"][..., 0]
    best = [
        payoffs(game, matching(game.room, cells[cells > 0], game.max_rounds)).sum()
        for cells in start.reshape(game.players, -1).T
    ]
    zero = np.zeros(total.shape)
    return total, zero, np.reshape(best, total.shape), zero * np.nan, zero * np.nan
