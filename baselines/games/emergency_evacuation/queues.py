"""Queues at exits, and lower bounds of the time to leave a room.

People at an exit are served by distance, as many a round as it has cells: the k-th is out in round
``max(distance, round of the one `width` places ahead + 1)``. Arrays are ``(exits, people,
*batch)``; `BEYOND`: a person does not go there.
"""

from typing import Any

import numpy as np

from llm_games.games.emergency_evacuation.geometry import BEYOND, Layout
from llm_games.rulebook import Array


def times(distance: Array, there: Array, width: int) -> Array:
    """Return the round in which each is out by one exit, int64 ``(people, *batch)``.

    `there`, bool, marks those in its queue; others' rounds are of joining it alone.
    """
    order = np.argsort(distance, axis=0, kind="stable")
    near, inside = (np.take_along_axis(x, order, axis=0) for x in (distance, there))
    ahead = inside.cumsum(axis=0) - inside
    last = np.argsort(~inside, axis=0, kind="stable")  # those who queue come first
    queue = np.take_along_axis(np.where(inside, near, BEYOND), last, axis=0)
    people, batch = len(near), near.shape[1:]
    turns = np.pad(queue, [(0, -people % width), *[(0, 0)] * len(batch)], constant_values=BEYOND)
    turns = turns.reshape(-1, width, *batch)
    count = np.arange(len(turns)).reshape(-1, *(1,) * (turns.ndim - 1))
    served = (np.maximum.accumulate(turns - count, axis=0) + count).reshape(-1, *batch)
    served_ahead = np.take_along_axis(served, np.maximum(ahead - width, 0), axis=0)
    rounds = np.where(ahead < width, near, np.maximum(near, served_ahead + 1))
    out = np.empty_like(rounds)
    np.put_along_axis(out, order, rounds, axis=0)
    return out


def waiting(distance: Array, chosen: Array, widths: Array) -> Array:
    """Return `times` at every exit, while all others go to their `chosen` one, −1 for nobody's."""
    each = zip(distance, widths.tolist(), strict=True)
    return np.stack([times(d, chosen == choice, width) for choice, (d, width) in enumerate(each)])


def fifo(distance: Array, widths: Array) -> Array:
    """Return exits by which nobody would be out sooner by another, −1: none."""
    # Round by round each exit takes the nearest who has none yet: one passed over stays behind for
    # good, so this is a pure equilibrium of the choice of exits.
    choices, people, *batch = distance.shape
    tables = np.moveaxis(distance.reshape(choices, people, -1), -1, 0)
    choices_by_table = [_fifo(near, widths.tolist()) for near in tables]
    return np.array(choices_by_table).reshape(-1, people).T.reshape(people, *batch)


def _fifo(distance: Array, widths: list[int]) -> list[int]:
    orders, near = distance.argsort(axis=1, kind="stable").tolist(), distance.tolist()
    chosen, first = [-1] * distance.shape[1], [0] * len(near)
    remaining, round_ = int((distance < BEYOND).any(axis=0).sum()), 1
    while remaining:
        for exit_, width in enumerate(widths):
            order, far, index, end = orders[exit_], near[exit_], first[exit_], len(chosen)
            while width and index < end and far[order[index]] <= round_:
                if chosen[order[index]] < 0:
                    chosen[order[index]] = exit_
                    width, remaining = width - 1, remaining - 1
                index += 1
            first[exit_] = index
        round_ += 1
    return chosen


def _served(near: Array, widths: Array, rounds: int) -> tuple[Array, Array]:
    """Return each one's round out (0: never) and exit, with the most out by each round."""
    from scipy.optimize import linear_sum_assignment  # 0.4 s that few need

    slot = np.repeat(np.arange(1, rounds + 1), widths.sum())
    exit_ = np.tile(np.repeat(np.arange(len(widths)), widths), rounds)
    gain = np.where(slot >= near[exit_].T, rounds + 1 - slot, 0)
    people, slots = linear_sum_assignment(gain, maximize=True)
    out, by = np.zeros(near.shape[1], np.int64), near.argmin(axis=0)
    done = gain[people, slots] > 0
    out[people[done]], by[people[done]] = slot[slots[done]], exit_[slots[done]]
    return out, by


def matching(layout: Layout, cells: Array, rounds: int) -> Array:
    """Return rounds in which people at `cells` could be out if nobody stood in a way; 0: never."""
    # An exit passes one a round; payoffs, and the number out by each round, are the largest.
    return _served(layout.steps[:, cells], np.ones(len(layout.exits), int), rounds)[0]


def assigned(distance: Array, widths: Array, rounds: int) -> Array:
    """Return exits by which all are out as early as queues allow (else the nearest)."""
    choices, people, *batch = distance.shape
    tables = np.moveaxis(distance.reshape(choices, people, -1), -1, 0)
    exits = [_served(near, widths, rounds)[1] for near in tables]
    return np.stack(exits, -1).reshape(people, *batch)


def fewest_rounds(layout: Layout, cells: Array) -> int:
    """Return the rounds in which all could be out if nobody stood in another's way (matching)."""
    farthest = int(layout.steps[:, cells].min(axis=0).max())
    rounds = max(farthest, -(-len(cells) // len(layout.exits)))
    while (matching(layout, cells, rounds) == 0).any():
        rounds += 1
    return rounds


def flow(layout: Layout, cells: Array, rounds: int) -> int:
    """Return how many can be out by a round, one in each cell: the largest flow over time."""
    open_cells = np.flatnonzero(layout.open)
    count, number = len(open_cells), np.full(layout.cells, -1)
    number[open_cells] = np.arange(count)
    # From exits nobody steps back.
    passable = layout.enterable[:, open_cells] & layout.free[open_cells]
    way, start = np.nonzero(passable)
    end = number[layout.neighbours[way, open_cells[start]]]
    exits, source = number[layout.exits], 2 * count * (rounds + 1)
    sink = source + 1

    def node(cell: Any, time: Any, out: int) -> Array:
        return np.ravel((np.asarray(time)[..., None] * 2 + out) * count + cell)

    time = np.arange(rounds + 1)
    edges = [
        (np.full(len(cells), source), node(number[cells], 0, 1)),
        (node(np.arange(count), time[1:], 0), node(np.arange(count), time[1:], 1)),
        (node(start, time[:-1], 1), node(end, time[1:], 0)),
        (node(exits, time[1:], 1), np.full(rounds * len(exits), sink)),
    ]
    tails, heads = (np.concatenate(side) for side in zip(*edges, strict=True))
    ones = np.ones(len(tails), np.int32)
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    graph = csr_array((ones, (tails, heads)), shape=(sink + 1, sink + 1))
    return int(maximum_flow(graph, source, sink).flow_value)


def fewest_by_flow(layout: Layout, cells: Array) -> int:
    """Return the rounds in which all could be out, one in each cell (flow over time)."""
    rounds = fewest_rounds(layout, cells)
    while flow(layout, cells, rounds) < len(cells):
        rounds += 1
    return rounds
