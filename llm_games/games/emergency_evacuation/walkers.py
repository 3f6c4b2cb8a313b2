"""People who walk by a rule: their steps, and the costs of exits in Wang's rule model.

Wang, Zhang, Shi, Yang & Hu, Physica A 428:396-409, 2015; constants as in the authors' own
reproduction. Steps are tables of the room; costs are of people, ``(people, *batch)``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.games.emergency_evacuation.geometry import STEPS, Distances, Layout, counted, packed

# Of the classes strong & positive, strong & negative, weak & positive, weak & negative:
WEIGHTS = np.array([(2.4, 3.6, 1.2), (4.0, 4.0, 1.6), (6.0, 1.8, 1.8), (6.0, 1.5, 1.2)])
PANIC = np.array([1.2, 1.0, 1.2, 1.0])  # how strongly people around add to panic
CROWD = 5  # Wang's people look as far as the fifth of a line, themselves included
PART = 2000  # views that are worked out at a time


@lru_cache(maxsize=256)
def greedy(measure: Distances) -> Array:
    """Return cells in greedy people's order of preference, int64 ``(exits, cells, 9)``."""
    # By distance, then by direction. The own cell also fills the place of cells that nobody can
    # enter.
    return _ranked(measure, np.arange(9), stay=True)[..., :9]


@lru_cache(maxsize=256)
def ranked(measure: Distances, stay: bool = False) -> Array:
    """Return cells in Wang's people's order of preference, int64 ``(exits, cells, 11)``."""
    # By distance, then row by row; at last the own cell, twice or more, so that a second one
    # exists. With `stay` it is also ranked.
    return _ranked(measure, np.lexsort(STEPS.T[::-1]), stay)


def _ranked(measure: Distances, directions: Array, stay: bool) -> Array:
    layout = measure.layout
    cells_themselves, beyond = np.arange(layout.cells), measure.rank.max() + 1
    cells, enterable = layout.neighbours[directions], layout.enterable[directions].copy()
    if not stay:
        enterable &= cells != cells_themselves
    cost = np.where(enterable, measure.rank[:, cells], beyond)  # (exits, 9, cells)
    order = np.argsort(cost, axis=1, kind="stable")
    cells = np.take_along_axis(np.where(enterable, cells, cells_themselves)[None], order, axis=1)
    two = np.broadcast_to(cells_themselves, (len(cells), 2, layout.cells))
    return np.moveaxis(np.concatenate([cells, two], axis=1), 1, -1)


def crowd(layout: Layout, occupied: Array, cell: Array) -> Array:
    """Return how many people stand in the 3 x 3 block around cells, ``(k, *batch)``, all told."""
    around = layout.neighbours[:, cell]  # nobody stands on the border, where the own cell recurs
    return np.take_along_axis(
        occupied, around.reshape(-1, *cell.shape[1:]), axis=0
    ).reshape(around.shape).sum(axis=0)  # fmt: skip


def costs(
    measure: Distances,
    occupied: Array,
    cell: Array,
    group: Array,
    panic: Any,
    angle: float = 45.0,
    blocked: bool = False,
) -> Array:
    """Return what each exit costs people at these cells (Wang's J), float64 ``(exits, k, *batch)``.

    `occupied` is bool ``(cells, *batch)`` and counts those who ask; `group` 1 to 4 and `panic`
    (bool, one for all or each) are ``(k, *batch)``. With `blocked` walls and seats count as people
    do.
    """
    layout = measure.layout
    people, flat = cell.ravel(), occupied.reshape(layout.cells, -1)
    room = np.broadcast_to(np.arange(flat.shape[1]).reshape(occupied.shape[1:]), cell.shape).ravel()
    exits = np.arange(len(layout.exits))[:, None]
    lines = layout.lines[:, people]  # (exits, n, longest)
    there = flat[lines, room[:, None]] & (lines >= 0)
    fifth = there.cumsum(axis=-1) >= CROWD
    last = np.where(fifth[..., -1], fifth.argmax(axis=-1), (lines >= 0).sum(axis=-1) - 1)
    visible = cones(layout, angle).of(np.broadcast_to(people, last.shape), exits, last)
    standing = flat | ~layout.open[:, None] if blocked else flat
    others = counted(visible, packed(standing)[room]) - 1
    area = np.bitwise_count(visible).sum(axis=-1, dtype=np.int64) - 1
    share = others / np.maximum(area, 1)
    beta = PANIC[group - 1] * (1 + crowd(layout, occupied, cell) / 10)
    beta = np.where(panic, beta, 1.0).ravel()
    calm = ~np.broadcast_to(panic, cell.shape).ravel()
    powers = [np.where(calm, 1.0, b) for b in (6 * beta, 1 / (6 * beta), 1 / (4 * beta))]
    weights = WEIGHTS[group.ravel() - 1]
    terms = (measure.far[:, people], others, share)
    total: Array = sum(w**b * term for w, b, term in zip(weights.T, powers, terms, strict=True))
    return (total / weights.sum(axis=-1)).reshape(len(exits), *cell.shape)


class Cones:
    """Views whose radius ends at a cell of the line to the exit, worked out when first asked for.

    A new table takes the place of the old one: threads may share it.
    """

    def __init__(self, layout: Layout, angle: float) -> None:
        self.layout, self.angle = layout, angle
        self._cache = np.full(layout.lines.shape, -1), packed(np.zeros((layout.cells, 0), bool))

    def of(self, cell: Array, exit_: Array, last: Array) -> Array:
        """Return views to the `last`-th cell of each line, uint64 ``(*shape, words)``."""
        index, views = self._cache
        rows = index[exit_, cell, last]
        if (rows < 0).any():
            missing = np.broadcast_arrays(exit_, cell, last)
            gaps = np.unique([x[rows < 0] for x in missing[::-1]], axis=1)[::-1]  # short ones first
            parts = [
                self._views(*part) for part in np.array_split(gaps, -(-gaps.shape[1] // PART), 1)
            ]
            index = index.copy()
            index[tuple(gaps)] = len(views) + np.arange(gaps.shape[1])
            views = np.concatenate([views, *parts])
            self._cache = index, views
            rows = index[exit_, cell, last]
        return views[rows]

    def _views(self, exit_: Array, cell: Array, last: Array) -> Array:
        end = self.layout.row_column(self.layout.lines[exit_, cell, last])
        off = np.subtract(end, self.layout.row_column(cell))
        return self.layout.view(cell, exit_, np.sqrt((off**2).sum(axis=0)), self.angle)


@lru_cache(maxsize=64)
def cones(layout: Layout, angle: float) -> Cones:
    return Cones(layout, angle)
