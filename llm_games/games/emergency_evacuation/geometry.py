"""The room of an evacuation: a drawing, and tables that depend on it alone.

A cell is ``row * columns + column``, rows from the top. Sides come in the order bottom, left,
right, top, as far as they have an exit; exits in that of their signs. People are arrays of cells,
``(people, *batch)``. Wu et al., arXiv 2402.12327; Wang et al., Physica A 428, 2015.
"""

from __future__ import annotations

import math
import string
from collections import Counter
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.errors import BadParameter

WALL, FREE, SEAT = "#.o"
SIGNS = string.digits + string.ascii_uppercase  # of exits, in their order
LONGEST = 100  # rows, columns
RAYS = 100  # of a whole turn
BEYOND = 32_000  # steps to where nobody gets
WAYS = {  # what each direction adds to row and column, in the order of their codes
    "right": (0, 1),
    "down": (1, 0),
    "left": (0, -1),
    "up": (-1, 0),
    "stay": (0, 0),
    "down-right": (1, 1),
    "down-left": (1, -1),
    "up-left": (-1, -1),
    "up-right": (-1, 1),
}
STEPS, STAY = np.array([*WAYS.values()]), 4
SIDES = ("bottom", "left", "right", "top")


@lru_cache(maxsize=64)
def layout_of(drawing: str, seats: bool = False) -> Layout:
    """Return the room of a drawing, or of one of `DRAWINGS` by name; see `Layout`."""
    return Layout(DRAWINGS.get(drawing, drawing), seats)


class Layout:
    """A room with its exits and its tables; BadParameter if not all of it is joined to every exit.

    A drawing has a line for each row: ``#`` is wall, ``.`` free, ``o`` a seat (free without
    `seats`), and exits are ``0`` to ``9``, then ``A`` to ``Z``, on the border but not in a corner.
    """

    def __init__(self, drawing: str, seats: bool = False) -> None:
        lines = [line.strip() for line in drawing.strip().splitlines()]
        self.rows, self.columns = len(lines), len(lines[0]) if lines else 0
        _check(lines)
        self.cells = self.rows * self.columns
        signs = np.array([*"".join(lines)])
        exit_signs = sorted(set(SIGNS) & set(signs.tolist()), key=SIGNS.index)
        self.exits: Array = np.array([np.flatnonzero(signs == sign)[0] for sign in exit_signs])
        self.seat: Array = (signs == SEAT) & seats  # bool (cells,), as are the next two
        self.free: Array = ((signs == FREE) | (signs == SEAT)) & ~self.seat  # people may start
        self.open: Array = self.free.copy()  # people may step there
        self.open[self.exits] = True
        row, column = self.row_column(self.exits)
        edges = (row == self.rows - 1, column == 0, column == self.columns - 1, row == 0)
        self.sides = tuple(side for side, edge in zip(SIDES, edges, strict=True) if edge.any())
        self.side: Array = np.argmax([edge for edge in edges if edge.any()], axis=0)  # of each exit
        inner = np.ones((self.rows, self.columns), np.bool_)
        inner[[0, -1]] = inner[:, [0, -1]] = False
        self.walled = bool((~(self.free | self.seat) & inner.ravel()).any())  # walls stand inside
        self._joined()

    def row_column(self, cells: Any) -> tuple[Array, Array]:
        return np.divmod(cells, self.columns)

    def _joined(self) -> None:
        closed = self.free & (self.steps == BEYOND).any(axis=0)
        if closed.any():
            row, column = map(int, self.row_column(np.flatnonzero(closed)[0]))
            exit_ = SIGNS[int(np.argmax(self.steps[:, row * self.columns + column] == BEYOND))]
            raise BadParameter(
                f"layout: cell ({row}, {column}) is closed off from exit {exit_}; all free cells "
                "must be joined to every exit, by steps that do not cross walls, seats or exits"
            )

    # -- distances -----------------------------------------------------------------------------

    @cached_property
    def d2(self) -> Array:
        row, column = self.row_column(np.arange(self.cells))
        at_row, at_column = (x[:, None] for x in self.row_column(self.exits))
        return (row - at_row) ** 2 + (column - at_column) ** 2

    @cached_property
    def steps(self) -> Array:
        """Numbers of steps to each exit through no other, int64 ``(exits, cells)``."""
        steps_by_exit = np.full((len(self.exits), self.cells), BEYOND)
        for steps, front in zip(steps_by_exit, self.exits, strict=True):
            reached, count = np.array([front]), 0
            while len(reached):
                steps[reached] = count
                near = np.unique(self.neighbours[:, reached])
                reached, count = near[self.free[near] & (steps[near] == BEYOND)], count + 1
        return steps_by_exit

    @cached_property
    def detour(self) -> Array:
        """Steps to each exit beyond an empty room's, ``(exits, cells)``; 0: nobody can start."""
        row, column = self.row_column(np.arange(self.cells))
        at_row, at_column = (x[:, None] for x in self.row_column(self.exits))
        straight = np.maximum(abs(row - at_row), abs(column - at_column))
        return np.where(self.free, self.steps - straight, 0)

    @cached_property
    def along(self) -> Distances:
        """Distances along walkable ways: the straight one and the steps of the detour."""
        return Distances(self, np.sqrt(self.d2) + self.detour, bool(self.detour.any()))

    @cached_property
    def straight(self) -> Distances:
        return Distances(self, np.sqrt(self.d2))

    def of_sides(self, values: Array) -> Array:
        """Return the means over each side's exits, of ``(exits, ...)``."""
        return np.stack([values[self.side == side].mean(axis=0) for side in range(len(self.sides))])

    # -- steps ---------------------------------------------------------------------------------

    @cached_property
    def neighbours(self) -> Array:
        """The cell in each direction, ``(9, cells)``; the cell itself at the room's end."""
        row, column = (x + d[:, None] for x, d in zip(
            self.row_column(np.arange(self.cells)), STEPS.T, strict=True))  # fmt: skip
        inside = (row >= 0) & (row < self.rows) & (column >= 0) & (column < self.columns)
        return np.where(inside, row * self.columns + column, np.arange(self.cells))

    @cached_property
    def enterable(self) -> Array:
        """Directions that lead to no wall and no seat, bool ``(9, cells)``; staying does not."""
        enterable: Array = self.open[self.neighbours] & (self.neighbours != np.arange(self.cells))
        enterable[STAY] = True
        return enterable

    # -- sight ---------------------------------------------------------------------------------

    @cached_property
    def lines(self) -> Array:
        """The cells of the line to each exit up to a seat, −1 after, ``(exits, cells, length)``."""
        cells = np.broadcast_to(np.arange(self.cells), (len(self.exits), self.cells))
        ends = np.stack(self.row_column(self.exits), axis=-1)[:, None]
        starts = np.stack(self.row_column(cells), axis=-1)
        line_cells, visible = self._line_cells(starts, ends - starts)
        return np.where(visible, line_cells, -1)

    def _line_cells(self, starts: Array, ways: Array) -> tuple[Array, Array]:
        """Return the cells of lines and which of them are visible, ``(..., longest line)``."""
        points = starts[..., None, :] + line(ways)
        row, column = points[..., 0], points[..., 1]
        inside = (row >= 0) & (row < self.rows) & (column >= 0) & (column < self.columns)
        inside &= np.arange(points.shape[-2]) <= np.abs(ways).max(axis=-1)[..., None]
        cells = np.where(inside, row * self.columns + column, 0)
        if not self.seat.any():
            return cells, inside
        seats = self.seat[cells] & inside
        return cells, inside & (seats.cumsum(axis=-1) - seats == 0)

    def view(self, start: Array, exit_: Array, radius: Array, angle: float) -> Array:
        """Return the visible cells from cells towards exits, ``(n,)`` each, as bits, see `packed`.

        `angle`, in degrees, is the largest deviation of a ray.
        """
        turn = 2 * math.pi * np.arange(RAYS) / RAYS
        rays = np.stack([np.cos(turn), np.sin(turn)])
        offset = np.stack(self.row_column(self.exits[exit_])) - np.stack(self.row_column(start))
        cosines = np.einsum("in,ij->nj", offset, rays) / np.maximum(np.hypot(*offset), 1)[:, None]
        which, ray = np.nonzero(cosines >= math.cos(math.radians(angle)) - 1e-7)
        ends = np.rint(radius[which, None] * rays[:, ray].T).astype(np.int64)
        cells, visible = self._line_cells(np.stack(self.row_column(start[which]), axis=-1), ends)
        flags = np.zeros((len(start), self.cells), np.bool_)
        flags[np.broadcast_to(which[:, None], cells.shape)[visible], cells[visible]] = True
        flags[np.arange(len(start)), start] = True
        return packed(flags.T)

    @lru_cache(maxsize=4)  # noqa: B019  # layouts are kept for good
    def views(self, radius: float, angle: float) -> Array:
        free = np.flatnonzero(self.free)
        cell, exit_ = (x.ravel() for x in np.meshgrid(free, range(len(self.exits)), indexing="ij"))
        visible = self.view(cell, exit_, np.full(cell.shape, float(radius)), angle)
        views = np.zeros((self.cells, len(self.exits), visible.shape[-1]), np.uint64)
        views[cell, exit_] = visible
        return views

    def in_view(self, cell: Array, occupied: Array, radius: float, angle: float) -> Array:
        """Count the people visible from cells ``(k, *batch)``, int64 ``(exits, k, *batch)``.

        `occupied` is bool ``(cells, *batch)``; a person on the cell itself counts.
        """
        people = packed(occupied)[..., None, :]
        return np.moveaxis(counted(self.views(radius, angle)[cell], people), -1, 0)


class Distances:
    """Distances of cells to exits, float64 ``(exits, cells)``, and tables that follow from them."""

    def __init__(self, layout: Layout, far: Array, detours: bool = False) -> None:
        self.layout, self.far, self.detours = layout, far, detours
        self.rank: Array = np.unique(far, return_inverse=True)[1].reshape(far.shape)  # exact ties
        self.nearest: Array = far.argmin(axis=0)  # of each cell; the first of equally near exits
        sides = np.arange(len(layout.sides))[:, None, None]
        side_rank = np.where(layout.side[:, None] == sides, self.rank, self.rank.max() + 1)
        self.nearest_of: Array = side_rank.argmin(axis=1)  # of each side, ``(sides, cells)``
        self.mean: Array = layout.of_sides(far)  # ``(sides, cells)``


def line(ways: Array) -> Array:
    """Return the steps of straight lines, ``(..., longest + 1, 2)``; later ones mean nothing."""
    size, sign = np.abs(ways), np.sign(ways)
    longer = size.max(axis=-1)[..., None]
    count = np.arange(int(longer.max(initial=0)) + 1)
    aside = -((longer - 2 * count * size.min(axis=-1)[..., None]) // (2 * np.maximum(longer, 1)))
    down = (size[..., 0] > size[..., 1])[..., None]  # rows are the longer way
    steps = np.stack([np.where(down, count, aside), np.where(down, aside, count)], axis=-1)
    return steps * sign[..., None, :]


def packed(flags: Array) -> Array:
    """Pack bools ``(cells, *batch)`` into bits, uint64 ``(*batch, words)``."""
    octets = np.packbits(np.moveaxis(flags, 0, -1), axis=-1)
    short = -octets.shape[-1] % 8
    padded = np.ascontiguousarray(np.pad(octets, [*[(0, 0)] * (octets.ndim - 1), (0, short)]))
    return padded.view(np.uint64)


def counted(visible: Array, occupied: Array) -> Array:
    """Count occupied cells among visible ones, both packed bits that broadcast."""
    return np.bitwise_count(visible & occupied).sum(axis=-1, dtype=np.int64)


def _check(lines: list[str]) -> None:
    """Raise BadParameter unless the lines of a drawing are a room with exits in its border."""
    rows, columns = len(lines), len(lines[0]) if lines else 0
    text = "".join(lines)
    border = set("".join([lines[0], lines[-1], *(x[0] + x[-1] for x in lines)])) if text else set()
    corners = {lines[i][j] for i in (0, -1) for j in (0, -1)} if text else set()
    inner = "".join(row[1:-1] for row in lines[1:-1])
    repeated = [sign for sign, count in Counter(text).items() if sign in SIGNS and count > 1]
    names = ", ".join(sorted(DRAWINGS))
    fault = ""
    if not 3 <= rows <= LONGEST or not 3 <= columns <= LONGEST:
        fault = f"it has {rows} rows of {columns} cells, and 3 to {LONGEST} of each are allowed"
    elif {len(row) for row in lines} != {columns}:
        fault = f"its rows have {sorted({len(row) for row in lines})} cells"
    elif unknown_signs := set(text) - {WALL, FREE, SEAT, *SIGNS}:
        fault = f"{min(unknown_signs)!r} is none of its signs"
    elif border & {FREE, SEAT}:
        fault = "its border must be wall or exits"
    elif repeated:
        fault = (
            f"exit {repeated[0]} is drawn in several cells; each is one cell with a sign of its own"
        )
    elif corners - {WALL}:
        fault = "an exit in a corner is on no one side"
    elif set(inner) & set(SIGNS):
        fault = f"exit {min(set(inner) & set(SIGNS))} is not in the border"
    elif not border & set(SIGNS):
        fault = "it has no exit"
    elif FREE not in inner:
        fault = "it has no free cell"
    if fault:
        raise BadParameter(
            f"layout must be one of {names}, or a drawing of a room, a line for each row, of "
            f"{WALL} wall, {FREE} free, {SEAT} seat, 0 to 9 and A to Z exits; {fault}"
        )


_AISLE, _SEATS = f"#{'.' * 31}#", "#...ooooooooooo...ooooooooooo...#"
_DOORS = [f"1{_AISLE[1:]}", f"3{_AISLE[1:]}", f"5{_AISLE[1:-1]}6"]
_BLOCK = [_AISLE, *[_SEATS, _AISLE] * 6, _AISLE]
_HALL = ["#" * 33, *_BLOCK, *_DOORS, *_BLOCK, f"{'#' * 15}024{'#' * 15}"]
DRAWINGS = {
    "hall": "\n".join(_HALL),
    "small": """
        ##########
        #........#
        #........#
        #........#
        #........#
        1........#
        #........#
        #........#
        #........2
        ####0#####
    """,
}
