"""The movement of people: their order, and their steps one after another within a room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llm_games.arrays import Array, tall

NOBODY = -1


def lined(movers: Array, rank: Array, target: Array, far: Array) -> Array:
    """Return the movers in order, `NOBODY` after the last; all are ``(people, *batch)``."""
    # Those of one target come together, groups by their first members' `rank`; within, by `far`.
    people, first = len(rank), np.full(rank.shape, len(rank))
    for exit_ in range(int(target.max(initial=0)) + 1):
        same_target = movers & (target == exit_)
        first = np.where(same_target, np.where(same_target, rank, people).min(axis=0), first)
    key = (first * (int(far.max()) + 1) + far) * people + rank
    line = np.where(movers, key, np.iinfo(np.int64).max).argsort(axis=0)
    return np.where(tall(np.arange(people), rank.shape[1:]) < movers.sum(axis=0), line, NOBODY)


def walk(
    cell: list[int],
    order: Sequence[int],
    occupied: bytearray,
    likes: Sequence[Sequence[Sequence[int]]],
    targets: Sequence[int],
    seconds: Sequence[bool],
) -> None:
    """Let the people of one room step one after another to the best cell that is free then.

    `cell` and `occupied` change in place. `likes` ranks cells by target and own cell, which counts
    as free; who is in `seconds` passes over the first.
    """
    for person in order:
        if person == NOBODY:
            continue
        here, skip = cell[person], seconds[person]
        occupied[here] = False
        for there in likes[targets[person]][here]:
            if not occupied[there]:
                if not skip:
                    break
                skip = False
        occupied[there] = True
        cell[person] = there


def push(cell: list[int], order: Sequence[int], occupied: bytearray, wished: Sequence[int]) -> None:
    """Let the people of one room go one after another to the cells that they wish, if free then."""
    for person in order:
        if person == NOBODY:
            continue
        here, there = cell[person], wished[person]
        if not occupied[there]:
            occupied[here], occupied[there], cell[person] = False, True, there
