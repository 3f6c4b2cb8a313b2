"""Emergency evacuation: people choose an exit of a crowded room and walk there cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from llm_games.arrays import Array, PerPlayer, PerTable, any_true, at, of_seats, tall
from llm_games.asides import Aside, Text
from llm_games.errors import BadParameter
from llm_games.facts import Draw, Fact, check_integer, check_number, listed, once, param, ratio_of
from llm_games.games.emergency_evacuation import people
from llm_games.games.emergency_evacuation.drawing import Scene, room_image
from llm_games.games.emergency_evacuation.geometry import STAY, WAYS, Distances, Layout, layout_of
from llm_games.games.emergency_evacuation.steps import NOBODY, lined, push, walk
from llm_games.games.emergency_evacuation.steps_asked import Assessment, Exit, StepQuestion
from llm_games.games.emergency_evacuation.walkers import greedy, ranked
from llm_games.noise import Noise, number
from llm_games.questions import MISSING
from llm_games.rounds import MOST_ROUNDS as LONGEST
from llm_games.rulebook import Chance, Goal, Later, Outcome, Played, Rulebook, State

TALK = {
    "turns": 1,
    "order": "shuffled_per_round",
    "speakers": "deciders",
    "audience": "radius",
    "radius": 5,
    "heard_order": "nearest",
    "own": "hidden",
    "words": 49,
    "numbers": "discouraged",
}
PAPER = {"distances": "straight", "announce_rules": False}
AUTHORS = {  # what the paper's program does otherwise than its text
    "persona_labels": "swapped",
    "view_count": "authors",
    "feeling": "after_talk",
    "code_order": "fixed",
    "attributes": "normal",
    "noise": "shared",
    "injury": "off",
}
UNTOLD: dict[str, Any] = {"hidden": "announce_rules", "stakes": "always"}
WANG, _chance = ("walker", "wang"), partial(ratio_of, high=1)
TARGET, MOVE = 0, 1  # phases of a round: exits are chosen, steps are taken
NORMAL, OVERTAKEN, ESCAPED, CASUALTY = range(4)
SHOWN = ("row", "column", "status", "target", "crushed")
"""What is recorded of everybody at the end of each round."""
WAY_CODES = {name: way for way, name in enumerate(WAYS)}
OUT = 0  # the cell of those who are out of the room: a corner of the wall, where nobody can be
NONE = -1
LETTERS = "abcdefghi"
MOST_ROUNDS = 1000  # rounds whose chance can be given; in a longer run it comes again


def _start(name: str, value: Any) -> Any:
    if isinstance(value, str) and value in ("uniform", "aisles"):
        return value
    if not isinstance(value, (list, tuple)):
        raise BadParameter(
            f"{name} must be 'uniform', 'aisles' or a cell (row, column) for each, got {value!r}"
        )
    for cell in value:
        for part in listed(f"each of the {name}", cell, 2, "a cell (row, column)"):
            check_integer(f"a row or column of the {name}", part, 0)
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadParameter(f"{name} must be a name or a drawing, as one text, got {value!r}")
    return value


def _within(name: str, value: Any, upper: float, lower: float = 0) -> Any:
    check_number(name, value)
    if not lower <= value <= upper:
        raise BadParameter(f"{name} must be a number from {lower:g} to {upper:g}, got {value!r}")
    return value


@dataclass(frozen=True)
class EvacuationState(State):
    """People in a room between two moves; ``round`` counts the rounds that are over.

    `cell` is row times columns plus column (`OUT`: out), `came` the cell before the last step to
    another (`OUT`: none yet). `status` is `NORMAL`, `OVERTAKEN`, `ESCAPED` or `CASUALTY`; `target`
    and `exit_cell` are exits or `NONE`; `crushed` counts crushed rounds (Z); `group` is 1 to 4.
    `deciders` choose an exit in this round. In a phase of steps `line` are the movers in order,
    `NOBODY` after the last, and `position` is how many have moved. `chosen` counts choices,
    ``(choices, players, *batch)``. `priority`, `deliberate` and `second` are keys ``(*batch)`` of a
    round's chance, or fixed numbers, ``(rounds, players, *batch)``.
    """

    cell: PerPlayer
    came: PerPlayer
    status: PerPlayer
    target: PerPlayer
    crushed: PerPlayer
    group: PerPlayer
    N0: PerPlayer
    Y0: PerPlayer
    Z0: PerPlayer
    escape_round: PerPlayer
    exit_cell: PerPlayer
    deciders: PerPlayer
    line: PerPlayer
    phase: PerTable
    position: PerTable
    chosen: Array
    priority: Array
    deliberate: Array
    second: Array


End: TypeAlias = tuple[EvacuationState, PerTable]  # a round's last state, and where it ended, bool


@dataclass(frozen=True)
class EmergencyEvacuation(Rulebook):
    """Emergency evacuation. Sources: Shall We Talk (arXiv 2402.12327), section 5; Wang et al. 2015.

    In each round those who decide choose a side of the room, whose nearest exit becomes their
    target; then people step one after another to one of the 8 cells around, if nobody is there, by
    themselves or led by a built-in `walker`. Whoever is on an exit is out, and is paid the more the
    earlier: (T + 1 - t) / T in round t of T. Whoever is pressed by stronger people around falls for
    a round, and is lost when that was too often. A missing or illegal choice keeps the target
    (without one: the side of the nearest exit); such a step stays.
    """

    name: ClassVar[str] = "emergency_evacuation"
    title: ClassVar[str] = "Emergency evacuation"
    source: ClassVar[str] = "Shall We Talk"
    shared_goal: ClassVar[Goal] = Goal("soon", "out of the room")
    edition: ClassVar[int] = 3
    turns: ClassVar[bool] = True
    fewest_players: ClassVar[int] = 1
    picks: ClassVar[bool] = True
    uneven: ClassVar[bool] = True
    payable = 0.0, 1.0
    seats_differ = "people start in different places and differ in strength"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "shall_we_talk_ee_silent": PAPER,
        "shall_we_talk_ee_talk": PAPER | {"talk": TALK},
        "shall_we_talk_ee_uncooperative": PAPER | {"talk": TALK, "uncooperative": True},
        "shall_we_talk_ee_authors": PAPER | AUTHORS | {"talk": TALK},
        "wang_baseline": {
            **PAPER,
            "shares": ("3/10", "3/10", "1/5", "1/5"),
            "target_choice": "cell",
            "p_deliberate": 1,
            "walker": "wang",
            "injury_when": "start",
        },
    }

    players: int = param(100, "number of people", low=1)
    layout: str = param("hall", "the room: a name or a drawing, see `Layout`", read=_text)
    seats: bool = param(  # type: ignore[assignment]
        False, "seats stand in the room, which nobody can enter"
    )
    start: Any = param(
        "uniform",
        "or ``aisles`` (a person below each seat), or a cell of each",
        read=_start,
        hidden=True,
    )
    max_rounds: int = param(50, "rounds at most, T", low=1, high=LONGEST)
    p_deliberate: Fraction = param(
        Fraction(1, 5), "chance to choose again, from round 2 on", read=_chance, **UNTOLD
    )
    shares: tuple[Fraction, ...] = param(
        (Fraction(1, 4),) * 4,
        "parts of the people in the groups 1 to 4",
        read=people.read_shares,
        hidden=True,
    )
    attributes: Any = param(
        "wang", "or ``normal``, or rows (N0, Y0, Z0), one for each", hidden=True
    )
    noise: str = param(
        "own",
        "normal attributes",
        own="drawn for each",
        shared="all drawn alike, as in the paper's code",
        hidden=True,
    )
    injury: str = param("wang", wang="people can be hurt", off="nobody can", **UNTOLD)
    injury_when: str = param(
        "end", end="at the end of each round", start="before each round", **UNTOLD
    )
    walker: str = param(
        "player",
        "who chooses the steps",
        player="the player",
        path="free cell from which the way to the target is shortest",
        greedy="nearest free cell to the target, by `distances`",
        wang="the same, by Wang's rule model",
    )
    p_best: Fraction = param(
        Fraction(19, 20),
        "chance that the walker ``wang`` takes the best cell, else the second",
        read=_chance,
        stakes=WANG,
    )
    rule_stay: bool = param(False, "whether that walker may also stay", stakes=WANG)
    rule_count: str = param(
        "people",
        "what the exits' costs by Wang's rule model count",
        people="people seen",
        occupied="walls and seats seen, too, as in the authors' reproduction",
        stakes=WANG,
    )
    moves: str = param(
        "sequential",
        sequential="steps are asked one at a time",
        simultaneous="all at once; whoever finds the cell taken stays",
    )
    order: str = param("random", random="drawn in each round", id="ascending", **UNTOLD)
    distances: str = param(
        "path",
        "how far exits are: for targets, walkers, and what is told",
        path="along ways that can be walked: straight, and the steps of a detour",
        straight="as the crow flies, through walls and seats, as in the papers",
    )
    announce_rules: bool = param(
        True,
        "people are told how many they are, when they choose again, in what order they step, how "
        "they are hurt, and what hides people; the paper is silent on these",
    )
    target_choice: str = param("side", side="a side is chosen", cell="one of the exits")
    personas: str = param(
        "body_mind", body_mind="people are told of their body and mind", none="they are not"
    )
    persona_labels: str = param(
        "correct",
        correct="each group has its own",
        swapped="groups 2 and 3 have each other's, as in the paper's code",
    )
    uncooperative: bool = param(False, "people are told to be out for themselves")
    view_radius: float = param(
        10, "cells that people see ahead, above 0", read=lambda n, v: _within(n, v, 200, 1e-9)
    )
    view_angle: float = param(
        45, "degrees that they see to each side", read=lambda n, v: _within(n, v, 180)
    )
    view_count: str = param(
        "people",
        people="people seen, without oneself",
        authors="oneself and seats count, too, as in the paper's code",
    )
    stages: str = param(
        "three", three="feeling, assessment and exit are asked apart", one="all at once"
    )
    feeling: str = param(
        "before_talk", before_talk="asked before the talk", after_talk="after it", hidden=True
    )
    code_order: str = param(
        "shuffled", shuffled="letters of steps in random order", fixed="always in the same"
    )

    def check(self) -> None:
        room = self.room
        free = int(room.free.sum())
        if self.players > free:
            raise BadParameter(
                f"players must be at most {free}, the free cells of this room, got {self.players}"
            )
        if self.start == "aisles":
            below = len(self._aisles)
            if below != self.players:
                raise BadParameter(
                    f"start 'aisles' needs as many players as there are free cells below seats, "
                    f"{below}{'' if self.seats else ' (seats is False)'}, got {self.players}"
                )
        elif self.start != "uniform":
            self._check_start(np.array(listed("start", self.start, self.players, "a cell of each")))
        if not isinstance(self.attributes, str):
            self._check_attributes()
        elif self.attributes not in ("wang", "normal"):
            raise BadParameter(
                f"attributes must be 'wang', 'normal' or rows (N0, Y0, Z0), got {self.attributes!r}"
            )

    def _check_start(self, start: Array) -> None:
        """Raise BadParameter unless all start on free cells of their own, ``(players, 2, ...)``."""
        row, column = start[:, 0], start[:, 1]
        outside = (row >= self.room.rows) | (column >= self.room.columns)
        cells = np.where(outside, OUT, row * self.room.columns + column)
        not_free = ~self.room.free[cells]
        if not_free.any():
            position = np.argwhere(not_free)[0]
            cell = int(row[tuple(position)]), int(column[tuple(position)])
            raise BadParameter(f"start: person {position[0]} cannot start at {cell}, no free cell")
        if (np.diff(np.sort(cells, axis=0), axis=0) == 0).any():
            raise BadParameter("start: two people start in one cell; give each a cell of its own")

    def _check_attributes(self) -> None:
        rows = listed("attributes", self.attributes, self.players, "a row (N0, Y0, Z0) for each")
        for row in rows:
            for value in listed("each of the attributes", row, 3, "(N0, Y0, Z0)"):
                check_integer("each of the attributes", value, 0, 10**6)

    # -- what follows from the parameters ----------------------------------------------------------

    @cached_property
    def room(self) -> Layout:
        return layout_of(self.layout, self.seats)

    @cached_property
    def measure(self) -> Distances:
        return self.room.along if self.distances == "path" else self.room.straight

    @cached_property
    def _aisles(self) -> Array:
        return np.flatnonzero(self.room.free & np.roll(self.room.seat, self.room.columns))

    @cached_property
    def groups(self) -> Array:
        """The group, 1 to 4, that each person has unless another is given, ``(players,)``."""
        return people.groups(self.players, self.shares)

    @cached_property
    def exits(self) -> tuple[str, ...]:
        """The names of the choices: the sides, or each exit by side and number."""
        sides = self.room.sides
        if self.target_choice == "side":
            return sides
        of_exits = [sides[side] for side in self.room.side.tolist()]
        return tuple(
            side if of_exits.count(side) == 1 else f"{side} {of_exits[: i + 1].count(side)}"
            for i, side in enumerate(of_exits)
        )

    @property
    def largest(self) -> int:
        return max(self.max_rounds + 1, 8 * 10**6)

    def bounds(self) -> tuple[int, int]:
        return 0, max(len(self.exits), len(WAYS) if self.walker == "player" else 0) - 1

    def length(self) -> int:
        steps = self.players if self.moves == "sequential" else 1
        return self.max_rounds * (1 + steps * (self.walker == "player"))

    def lasts(self) -> int:
        return self.max_rounds

    def terms(self) -> dict[str, Any]:
        room = self.room
        named = self.personas == "body_mind" and self.persona_labels == "correct"
        return super().terms() | {
            **{name: getattr(room, name) for name in ("rows", "columns", "sides")},
            "exits": self.exits,
            "seats": bool(room.seat.any()),
            "walls": room.walled,
            "bodies": named and isinstance(self.attributes, str),  # who is told so has a strong one
        }

    # -- chance ------------------------------------------------------------------------------------

    def draws(self) -> Sequence[Draw]:
        groups = lambda noise: self.each(self.groups, noise.batch)
        key, below = lambda noise: noise.key, np.nextafter(1, 0)
        attribute = lambda name: partial(self._attribute, name, self.groups)
        lots = ("priority", "deliberate", "second")
        return (
            Draw("start", self._starts, 0, self._scale),
            Draw("group", groups, 1, 4),
            *(Draw(name, attribute(name), -(10**6), 10**6) for name in people.NAMES),
            *(Draw(name, key, 0, below, rows=self._rows, out=1) for name in lots),
        )

    def chance(
        self, noise: Noise, fixed_chance: Mapping[str, Any] | None = None
    ) -> dict[str, Array]:
        """As of all games; people of a fixed group have its attributes, unless these are fixed."""
        drawn = super().chance(noise, fixed_chance)
        if fixed_chance and "group" in fixed_chance:
            for name in {*people.NAMES} - fixed_chance.keys():
                drawn[name] = self._attribute(name, drawn["group"], noise.of(name))
        return drawn

    def _starts(self, noise: Noise) -> Array:
        cells = self._aisles
        if isinstance(self.start, tuple):
            cells = np.array(self.start) @ (self.room.columns, 1)
        if self.start == "uniform":
            free = np.flatnonzero(self.room.free)
            cells = free[noise.order(len(free))[: self.players]]
        else:
            cells = self.each(cells, noise.batch)
        return np.stack(self.room.row_column(cells), axis=1)

    def _rows(self, keys: Array) -> Array:
        """Return numbers of each round, ``(rounds, players, *batch)``, as keys draw them."""
        rounds = np.arange(min(self.max_rounds, MOST_ROUNDS))
        return np.stack([self._lots(keys, np.full(keys.shape, t)) for t in rounds])

    def _lots(self, drawn: Array, round_: PerTable) -> PerPlayer:
        """Return everybody's number for a round, from 0 to below 1."""
        if drawn.ndim > np.ndim(round_):  # they were given
            return at(drawn, round_ % len(drawn))
        return number(drawn, round_ * self.players + tall(np.arange(self.players), drawn.shape))

    def _attribute(self, name: str, group: Array, noise: Noise) -> Array:
        """Draw one of N0, Y0 and Z0 for people of these groups, ``(players, *batch)``."""
        shape = (self.players, *noise.batch)
        whole = group if group.ndim == len(shape) else tall(group, noise.batch)
        group = np.broadcast_to(whole, shape)
        if self.attributes == "normal":
            drawn = noise.normal(shape=self.players if self.noise == "own" else 1)
            return np.where(group <= 2, *people.MEANS[name]) + drawn
        if self.attributes != "wang":
            column = np.array(self.attributes)[:, people.NAMES.index(name)]
            return np.broadcast_to(tall(column, noise.batch), shape)
        if name == "N0":
            return people.strengths(group, noise.random(self.players))
        return people.STANDS[name][group - 1]

    # -- the first state ---------------------------------------------------------------------------

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> EvacuationState:
        drawn = dict(chance)
        start = np.asarray(drawn.pop("start"))
        self._check_start(start)
        none = {"target": NONE, "exit_cell": NONE, "line": NOBODY, "deciders": bool}
        state = self.first(
            EvacuationState,
            batch,
            **none,
            **drawn,
            cell=start[:, 0] * self.room.columns + start[:, 1],
            chosen=np.zeros((len(self.exits), self.players, *batch), np.int64),
        )
        everywhere = np.ones(batch, np.bool_)
        state = self._open(state, everywhere)
        return self._until_asked(state, self._idle(state, everywhere))[0]

    # -- who is where ------------------------------------------------------------------------------

    @cached_property
    def occupied(self) -> Callable[[EvacuationState], Array]:
        """Return which cells somebody is in, bool ``(cells, *batch)``, not to be changed."""
        return once(lambda state: self._spread(state, np.True_, np.bool_))

    def _spread(self, state: EvacuationState, values: Any, kind: Any) -> Array:
        """Put people's values on their cells, zeros elsewhere, ``(cells, *batch)``."""
        grid = np.zeros((self.room.cells, *state.round.shape), kind)
        np.put_along_axis(grid, state.cell, values, axis=0)
        grid[OUT] = 0
        return grid

    def _blocks(self, values: Array) -> Array:
        """Return the sums over the 3 x 3 block around each cell that is not on the border."""
        room = values.reshape(self.room.rows, self.room.columns, *values.shape[1:])
        sums = np.zeros_like(room)
        down = room[:-2] + room[1:-1] + room[2:]
        sums[1:-1, 1:-1] = down[:, :-2] + down[:, 1:-1] + down[:, 2:]
        return sums.reshape(values.shape)

    def present(self, state: EvacuationState) -> PerPlayer:
        return state.cell != OUT

    def positions(self, state: EvacuationState) -> Array:
        """Return rows and columns, int64 ``(players, 2, *batch)``; of those who are out 0, 0."""
        return np.stack(self.room.row_column(state.cell), axis=1)

    def counts(self, state: EvacuationState) -> Array:
        """Return how many people each sees towards each exit, ``(exits, players, *batch)``."""
        people = self.occupied(state)
        visible = self.room.in_view(state.cell, people, self.view_radius, self.view_angle)
        return visible + (self._seats_seen[:, state.cell] if self.view_count == "authors" else -1)

    @cached_property
    def _seats_seen(self) -> Array:
        """How many seats are seen from a cell towards each exit, int64 ``(exits, cells)``."""
        cells = np.arange(self.room.cells)
        return self.room.in_view(cells, self.room.seat, self.view_radius, self.view_angle)

    def around(self, state: EvacuationState) -> PerPlayer:
        """Return the number of people in everybody's 3 x 3 block, int64; see `counts`."""
        people = self._blocks(self.occupied(state).view(np.uint8))
        block_counts = np.take_along_axis(people, state.cell, axis=0).astype(np.int64)
        return block_counts - (self.view_count == "people")

    # -- who is asked ------------------------------------------------------------------------------

    def asked(self, state: EvacuationState) -> PerPlayer:
        aiming = state.deciders & ((state.phase == TARGET) & ~state.over)
        if self.walker != "player":
            return aiming
        moving = (state.phase == MOVE) & ~state.over
        if self.moves == "simultaneous":
            return aiming | ((state.status == NORMAL) & moving)
        return aiming | ((self.seats_of(state) == self._mover(state)) & moving)

    def _mover(self, state: EvacuationState) -> PerTable:
        return at(state.line, np.minimum(state.position, self.players - 1))

    def alive(self, state: EvacuationState) -> PerPlayer:
        return self.present(state) & ~state.over

    hears = present

    def talks(self, state: EvacuationState) -> PerTable:
        """Return where talk may stand before this move: before exits are chosen."""
        return state.phase == TARGET

    def voices(self, state: EvacuationState) -> PerPlayer:
        return (state.status == NORMAL) & self.alive(state)

    def highest_legal(self, state: EvacuationState) -> PerPlayer:
        high = np.where(state.phase == TARGET, len(self.exits), len(WAYS)) - 1
        return self.everybody(np.ones(state.round.shape, np.bool_)) * high

    def ways(self, state: EvacuationState, cell: Array) -> Array:
        """Return the directions that people in these cells may take, bool ``(9, k, *batch)``."""
        legal = self.room.enterable[:, cell]
        if self.moves != "simultaneous":
            legal = legal & ~self._taken(state, cell)
            legal[STAY] = True
        return legal

    def _taken(self, state: EvacuationState, cell: Array) -> Array:
        """Return in which directions somebody stands, bool ``(9, k, *batch)``."""
        near = self.room.neighbours[:, cell]
        flat = near.reshape(-1, *cell.shape[1:])
        return np.take_along_axis(self.occupied(state), flat, axis=0).reshape(near.shape)

    def mask(self, state: EvacuationState, seats: Any = None) -> Array:
        cell, asked = state.cell, self.asked(state)
        if seats is not None:
            cell, asked = of_seats(cell, seats), of_seats(asked, seats)
        aiming = (state.phase == TARGET)[..., None]
        exits = np.arange(self.bounds()[1] + 1) < len(self.exits)
        legal = np.broadcast_to(exits, (*cell.shape, len(exits)))
        if self.walker == "player" and not aiming.all():
            ways = np.zeros_like(legal)
            ways[..., : len(WAYS)] = np.moveaxis(self.ways(state, cell), 0, -1)
            legal = np.where(aiming, legal, ways)
        return legal & asked[..., None]

    def breaks(self, state: EvacuationState, actions: PerPlayer) -> PerPlayer:
        outside, asked = (actions < 0) | (actions > self.highest_legal(state)), self.asked(state)
        if not any_true(state.phase == MOVE):
            return outside & asked
        ways = np.clip(actions, 0, len(WAYS) - 1)
        legal = np.take_along_axis(self.ways(state, state.cell), ways[None], axis=0)[0]
        return (outside | ((state.phase == MOVE) & ~legal)) & asked

    def fallback(self, state: EvacuationState) -> PerPlayer:
        exit_ = np.where(state.target >= 0, state.target, self.measure.nearest[state.cell])
        choice = self.room.side[exit_] if self.target_choice == "side" else exit_
        return np.where(state.phase == TARGET, choice, STAY)

    # -- a round -----------------------------------------------------------------------------------

    def play(self, state: EvacuationState, actions: PerPlayer, broke: PerPlayer) -> Played:
        live, asked = ~state.over, self.asked(state)
        aiming, next_state, blocked = live & (state.phase == TARGET), state, asked & False
        ending = live & ~aiming
        if any_true(ending):
            next_state, blocked, ending = self._step_all(next_state, actions, ending)
        if any_true(aiming):
            aimed = self._aim(next_state, actions, broke, asked & aiming)
            next_state, walked = self._set_off(aimed, aiming)
            ending = ending | walked
        next_state, rewards, ends = self._until_asked(next_state, ending)
        rounds = sum((mask.astype(np.int64) for _, mask in ends), np.zeros(live.shape, np.int64))
        record = {
            "actions": np.where(asked, actions, MISSING),
            "phase": state.phase,
            "round": state.round + live,
            "rounds": rounds,
            "blocked": blocked,
            **{name: partial(self._shown, ends, name, live.shape) for name in SHOWN},
            **self._news(state, next_state, ends),
        }
        finished = ~self.present(next_state) | next_state.over
        return next_state, Outcome(rewards, finished, Later(record))

    def _news(
        self, state: EvacuationState, next_state: EvacuationState, ends: Sequence[End]
    ) -> dict[str, Any]:
        """Return the events of a step, ``(players, *batch)`` each, for scores.

        Where exits were asked: `cell`, where people stood, `aim`, their target, and `group`;
        elsewhere −1. `escaped` and `lost` are rounds, else 0; `exit` is −1 of others. `overtaken`
        counts rounds.
        """
        aiming = state.phase == TARGET
        has_left = (next_state.escape_round > 0) & (state.escape_round == 0)
        none = np.zeros(state.cell.shape, np.int64)
        return {
            "cell": np.where(aiming, state.cell, NONE),
            "aim": np.where(aiming, next_state.target, NONE),
            "group": np.where(aiming, state.group, NONE),
            "escaped": np.where(has_left, next_state.escape_round, 0),
            "exit": np.where(has_left, next_state.exit_cell, NONE),
            "lost": partial(self._lost, state, next_state, ends),
            "overtaken": lambda: sum(((s.status == OVERTAKEN) & mask for s, mask in ends), none),
        }

    def _lost(
        self, state: EvacuationState, next_state: EvacuationState, ends: Sequence[End]
    ) -> PerPlayer:
        rounds = np.zeros(state.cell.shape, np.int64)
        for stage, mask, offset in [*((*end, 0) for end in ends), (next_state, True, 1)]:
            lost = (stage.status == CASUALTY) & (state.status != CASUALTY) & (rounds == 0) & mask
            rounds = np.where(lost, stage.round + offset, rounds)
        return rounds

    def _shown(self, ends: Sequence[End], name: str, batch: tuple[int, ...]) -> Array:
        """Return a recorded quantity at the end of each round, ``(rounds, players, *batch)``."""
        if not ends:
            return np.zeros((0, self.players, *batch), np.int64)
        if name in ("row", "column"):
            return self.room.row_column(np.stack([s.cell for s, _ in ends]))[name == "column"]
        return np.stack([getattr(s, name) for s, _ in ends])

    def _aim(
        self, state: EvacuationState, actions: PerPlayer, broke: PerPlayer, asked: PerPlayer
    ) -> EvacuationState:
        """Give those asked their targets; who broke a rule keeps the old one."""
        choice = target = np.clip(actions, 0, len(self.exits) - 1)
        if self.target_choice == "side":
            target = self.measure.nearest_of[choice, state.cell]
        target = np.where(asked & ~(broke & (state.target >= 0)), target, state.target)
        named = tall(np.arange(len(self.exits)), choice.shape) == choice
        return state.replace(target=target, chosen=state.chosen + (named & asked))

    def _idle(self, state: EvacuationState, mask: PerTable) -> PerTable:
        """Return the tables where a round begins in which nobody chooses an exit."""
        return mask & ~state.over & ~state.deciders.any(axis=0)

    def _until_asked(
        self, state: EvacuationState, ending: PerTable
    ) -> tuple[EvacuationState, Array, list[End]]:
        """End rounds, and play those in which nobody is asked, until somebody is."""
        rewards, ends = np.zeros((self.players, *state.round.shape)), list[End]()
        idle = self._idle(state, ~ending & (state.phase == TARGET))
        if any_true(idle):
            state, walked = self._set_off(state, idle)
            ending = ending | walked
        while any_true(ending):
            state, payoffs, shown = self._close(state, ending)
            rewards += payoffs
            ends.append((shown, ending))
            state, ending = self._set_off(state, self._idle(state, ending))
        return state, rewards, ends

    def _set_off(self, state: EvacuationState, mask: PerTable) -> tuple[EvacuationState, PerTable]:
        """Line the movers up once exits are chosen; also return where no step is left to ask."""
        if not any_true(mask):
            return state, mask
        movers, far = (state.status == NORMAL) & mask, self.measure.rank[state.target, state.cell]
        line = lined(movers, self.ranks(state), state.target, far)
        if self.walker != "player":
            wish = self._likes(state) if self.moves == "simultaneous" else None
            return self._moved(state, line, wish), mask
        waits = mask & (line[0] != NOBODY)
        return state.replace(
            line=np.where(mask, line, state.line),
            position=np.where(mask, 0, state.position),
            phase=np.where(waits, MOVE, state.phase),
        ), mask & ~waits

    def ranks(self, state: EvacuationState) -> PerPlayer:
        if self.order == "id":
            return np.broadcast_to(self.seats_of(state), state.cell.shape)
        lots = self._lots(state.priority, state.round)
        return lots.argsort(axis=0).argsort(axis=0)

    def seats_of(self, state: EvacuationState) -> PerPlayer:
        return tall(np.arange(self.players), state.round.shape)

    def _step_all(
        self, state: EvacuationState, actions: PerPlayer, mask: PerTable
    ) -> tuple[EvacuationState, PerPlayer, PerTable]:
        """Take the step of the mover, or of all; also return blocked people and finished tables."""
        wish = self.room.neighbours[np.clip(actions, 0, len(WAYS) - 1), state.cell]
        if self.moves == "simultaneous":
            next_state = self._moved(state, np.where(mask, state.line, NOBODY), wish)
            blocked = (state.status == NORMAL) & mask & (next_state.cell != wish)
            return next_state, blocked, mask
        is_moving = (self.seats_of(state) == self._mover(state)) & mask
        position = state.position + mask
        following = at(state.line, np.minimum(position, self.players - 1))
        done = mask & ((position >= self.players) | (following == NOBODY))
        cell = np.where(is_moving, wish, state.cell)
        came = np.where(cell != state.cell, state.cell, state.came)
        return state.replace(cell=cell, came=came, position=position), is_moving & False, done

    def _seconds(self, state: EvacuationState) -> PerPlayer:
        """Return who takes the second best cell in this round, bool."""
        if self.walker != "wang" or self.p_best == 1:
            return np.zeros(state.cell.shape, np.bool_)
        return self._lots(state.second, state.round) >= float(self.p_best)

    def _likes(self, state: EvacuationState) -> PerPlayer:
        """Return the cell that each would step to from the present positions."""
        ranked_cells = self._ranked[state.target, state.cell]
        if self.walker != "wang":
            return ranked_cells[..., 0]
        taken = np.moveaxis(ranked_cells, -1, 0)
        flat = taken.reshape(-1, *state.cell.shape[1:])
        free = ~np.take_along_axis(self.occupied(state), flat, axis=0).reshape(taken.shape)
        free |= taken == state.cell
        rank = (free.cumsum(axis=0) > self._seconds(state)).argmax(axis=0)
        return np.take_along_axis(taken, rank[None], axis=0)[0]

    @cached_property
    def _ranked(self) -> Array:
        """Cells in the walker's order of preference, ``(exits, cells, ranks)``."""
        if self.walker != "wang":
            return greedy(self.room.along if self.walker == "path" else self.measure)
        return ranked(self.measure, self.rule_stay)

    @cached_property
    def _lists(self) -> list[list[list[int]]]:
        return self._ranked.tolist()

    def march(
        self, state: EvacuationState, due: PerTable, mine: PerPlayer, likes: Any, second: Any
    ) -> tuple[EvacuationState, PerPlayer]:
        """Take the steps of these walkers up to another player, or the last mover of the round.

        They are as `step` would take them, at tables that are `due`, bool; see `steps.walk` for
        how `mine`, bool, walk. Also returns who moved, each once.
        """
        line, places = state.line, self.seats_of(state)
        known = np.take_along_axis(mine, line, axis=0)
        known[:-1] &= line[1:] != NOBODY
        known[-1] = False  # the last ends the round
        going = np.logical_and.accumulate(known | (places < state.position), axis=0)
        going &= (places >= state.position) & (due & (state.phase == MOVE) & ~state.over)
        coming = np.where(going, line, NOBODY)
        next_state = self._moved(state, coming, None, (likes, np.broadcast_to(second, mine.shape)))
        moved = np.zeros((self.players + 1, *due.shape), np.bool_)
        np.put_along_axis(moved, coming, np.True_, axis=0)  # of nobody in the last row
        return next_state.replace(position=state.position + going.sum(axis=0)), moved[:-1]

    def _moved(
        self, state: EvacuationState, line: PerPlayer, wish: PerPlayer | None, walkers: Any = None
    ) -> EvacuationState:
        """Let people step in line: to the cell they wish, or to the best free one.

        `walkers` are the cells that they like, as of `steps.walk`, and who takes the second; by
        default the built-in walker's.
        """
        rooms = np.flatnonzero((line != NOBODY).any(axis=0).reshape(-1))
        of_rooms = lambda values: values.reshape(self.players, -1).T[rooms].tolist()
        wishes = [None] * len(rooms) if wish is None else of_rooms(wish)
        cells = of_rooms(state.cell)
        likes, seconds = walkers or (self._lists, self._seconds(state))
        rest = map(of_rooms, (line, state.target, seconds))
        for cell, wished, order, target, second in zip(cells, wishes, *rest, strict=True):
            occupied = bytearray(self.room.cells)
            for here in cell:
                occupied[here] = True
            if wished is None:
                walk(cell, order, occupied, likes, target, second)
            else:
                push(cell, order, occupied, wished)
        next_cells = state.cell.reshape(self.players, -1).copy()
        next_cells[:, rooms] = np.array(cells).T
        cell = next_cells.reshape(state.cell.shape)
        came = np.where(cell != state.cell, state.cell, state.came)
        return state.replace(cell=cell, came=came)

    def _close(
        self, state: EvacuationState, mask: PerTable
    ) -> tuple[EvacuationState, Array, EvacuationState]:
        """End the round, and begin the next or all is over; also payoffs, and the state between."""
        exit_ = self._exit_at[state.cell]
        leaves, number, last = (exit_ != NONE) & mask, state.round + 1, self.max_rounds
        rewards = np.where(leaves, (last + 1 - number) / last, 0.0)
        state = state.replace(
            cell=np.where(leaves, OUT, state.cell),
            status=np.where(leaves, ESCAPED, state.status),
            escape_round=np.where(leaves, number, state.escape_round),
            exit_cell=np.where(leaves, exit_, state.exit_cell),
        )
        if self.injury_when == "end":
            state = self._hurt(state, mask)
        shown = state.replace(round=state.round + mask)
        over = mask & (~self.present(shown).any(axis=0) | (shown.round >= last))
        next_state = self._open(shown.replace(over=shown.over | over), mask & ~over)
        return next_state, rewards, shown

    def _open(self, state: EvacuationState, mask: PerTable) -> EvacuationState:
        if self.injury_when == "start":
            state = self._hurt(state, mask)
            state = state.replace(over=state.over | (mask & ~self.present(state).any(axis=0)))
        lots = self._lots(state.deliberate, state.round)
        reconsiders = (state.round > 0) & (lots < float(self.p_deliberate))
        deciders = (state.status == NORMAL) & ((state.target == NONE) | reconsiders)
        return state.replace(
            deciders=np.where(mask, deciders, state.deciders),
            phase=np.where(mask, TARGET, state.phase),
        )

    @cached_property
    def _exit_at(self) -> Array:
        exits_by_cell = np.full(self.room.cells, NONE)
        exits_by_cell[self.room.exits] = np.arange(len(self.room.exits))
        return exits_by_cell

    def _hurt(self, state: EvacuationState, mask: PerTable) -> EvacuationState:
        """Find the people who fall and those who are lost, all at once."""
        if self.injury == "off":
            return state
        inside = self.present(state) & mask
        crushed = inside & (self.pressure(state) > state.Y0)
        count = state.crushed + crushed
        lost = crushed & (count >= state.Z0)
        status = np.where(lost, CASUALTY, np.where(crushed, OVERTAKEN, NORMAL))
        return state.replace(
            status=np.where(inside, status, state.status),
            cell=np.where(lost, OUT, state.cell),
            crushed=count,
        )

    def pressure(self, state: EvacuationState) -> PerPlayer:
        """Return the sum of how much stronger the people around each are (Y)."""
        strengths = self._blocks(self._spread(state, state.N0, state.N0.dtype))
        people = self._blocks(self.occupied(state).view(np.uint8))
        around = np.take_along_axis(strengths, state.cell, axis=0)
        return around - np.take_along_axis(people, state.cell, axis=0) * state.N0

    # -- what players know -------------------------------------------------------------------------

    def known(self) -> Sequence[Fact]:
        room, sides = self.room, len(self.room.sides)
        scale, ways = self._scale, self.measure
        far = float(ways.far.max()) / scale
        choosing = once(lambda s: self.asked(s) & (s.phase == TARGET))
        moving = once(lambda s: self.asked(s) & (s.phase == MOVE))
        visible = once(lambda s: room.of_sides(self.counts(s)) * choosing(s))
        scaled_position = lambda of: once(lambda s: np.stack(room.row_column(of(s))) / scale)
        here = scaled_position(lambda s: s.cell)
        came = scaled_position(lambda s: s.came)
        aim = scaled_position(lambda s: np.where(s.target == NONE, OUT, room.exits[s.target]))
        traits, others = self.personas == "body_mind", [*range(STAY), *range(STAY + 1, len(WAYS))]
        time = lambda s: np.minimum(s.round + 1, self.max_rounds) / self.max_rounds
        selfish = lambda s: np.full(s.cell.shape, self.uncooperative)
        nearest = lambda s: ways.far.min(axis=0)[s.cell] / scale
        around = lambda s: self.around(s) * choosing(s) / 8
        distance = lambda s: ways.mean[:, s.cell] / scale
        side = lambda s: np.where(s.target == NONE, NONE, room.side[s.target])
        target = lambda s: tall(np.arange(sides), s.cell.shape) == side(s)
        free = lambda s: (room.enterable[:, s.cell] & ~self._taken(s, s.cell))[others] & moving(s)
        neighbour = "1: free is neighbour {}, by directions without staying; when a step is asked"
        return (
            Fact("row", lambda s: here(s)[0], 0, 1, f"own row / {scale}"),
            Fact("column", lambda s: here(s)[1], 0, 1, f"own column / {scale}"),
            Fact("time", time, 0, 1, "round to play / rounds at most"),
            Fact("strong", lambda s: traits & self.traits(s)[0], 0, 1, "1: strong body"),
            Fact("positive", lambda s: traits & self.traits(s)[1], 0, 1, "1: confident mind"),
            Fact("uncooperative", selfish, 0, 1, "1: out for oneself"),
            Fact("nearest", nearest, 0, far, f"distance to the nearest exit / {scale}"),
            Fact("around", around, 0, 9 / 8, "people in the own block / 8; when an exit is asked"),
            Fact("distance", distance, 0, far, f"mean distance to side {{}} / {scale}", each=sides),
            Fact("count", visible, 0, room.cells, "people seen towards it; as above", each=sides),
            Fact("target", target, 0, 1, "1: the target is on side {}", each=sides),
            Fact("free", free, 0, 1, neighbour, each=len(others)),
            Fact("choosing", choosing, 0, 1, "1: an exit is asked"),
            Fact("moving", moving, 0, 1, "1: a step is asked"),
            Fact("target_row", lambda s: aim(s)[0], 0, 1, f"the target's row / {scale}"),
            Fact("target_column", lambda s: aim(s)[1], 0, 1, f"its column / {scale}"),
            Fact("came_row", lambda s: came(s)[0], 0, 1, f"row before the last step / {scale}"),
            Fact("came_column", lambda s: came(s)[1], 0, 1, f"column then / {scale}; 0, 0: none"),
            Fact(
                "chosen",
                lambda s: s.chosen * choosing(s),
                0,
                self.max_rounds,
                "times that exit or side {} was chosen",
                each=len(self.exits),
            ),
        )

    @cached_property
    def _scale(self) -> int:
        return max(self.room.rows, self.room.columns) - 1

    def traits(self, state: EvacuationState) -> tuple[PerPlayer, PerPlayer]:
        """Return the people who are told to be strong, and those told to be confident, bool."""
        group = state.group
        if self.persona_labels == "swapped":
            group = np.array([1, 3, 2, 4])[group - 1]
        return group <= 2, group % 2 == 1

    def teller(self, state: EvacuationState) -> Callable[[int], dict[str, Any]]:
        number, moving = min(int(state.round) + 1, self.max_rounds), int(state.phase) == MOVE
        scene, places = {} if moving else self._scene(state), (state.cell, state.came, state.target)
        strong, positive = (values.tolist() for values in self.traits(state))
        present, asked = self.present(state).tolist(), self.asked(state).tolist()

        def tell(seat: int) -> dict[str, Any]:
            common: dict[str, Any] = {"round": number, "moving": moving, "inside": present[seat]}
            if not present[seat]:
                return common
            cell, came, target = (int(values[seat]) for values in places)
            persona = {"strong": strong[seat], "positive": positive[seat]}
            return {
                **common,
                **(persona if self.personas == "body_mind" else {}),
                "cell": self._position(cell),
                "came": None if came == OUT else self._position(came),
                "target": None if target == NONE else self._aim_of(cell, target),
                "options": self.options(state, seat) if moving and asked[seat] else [],
                "seen": None,
                **{name: values[seat] for name, values in scene.items() if asked[seat]},
            }

        return tell

    def _position(self, cell: int) -> dict[str, int]:
        return dict(zip(("row", "column"), divmod(cell, self.room.columns), strict=True))

    def _scene(self, state: EvacuationState) -> dict[str, list[Any]]:
        """Return the knowledge of those who choose an exit, by name, a list by seat each."""
        room, around = self.room, self.around(state).tolist()
        near = self.measure.far.min(axis=0)[state.cell].tolist()
        visible = room.of_sides(self.counts(state)).T.tolist()
        far = self.measure.mean[:, state.cell].T.tolist()
        detours = self._detours(self.measure.nearest_of[:, state.cell], state.cell).T.tolist()
        sides = [
            [
                {"name": name, "distance": f"{d:.2f}", "people": f"{n:.2f}", "around": detour}
                for name, d, n, detour in zip(room.sides, *row, strict=True)
            ]
            for row in zip(far, visible, detours, strict=True)
        ]
        chosen = [
            [{"name": name, "times": n} for name, n in zip(self.exits, counts, strict=True) if n]
            for counts in state.chosen.T.tolist()
        ]
        near = [f"{d:.2f}" for d in near]
        return {"near": near, "around": around, "seen": sides, "chosen": chosen}

    def _aim_of(self, cell: int, exit_: int) -> dict[str, Any]:
        here, aim = self._position(cell), self._position(int(self.room.exits[exit_]))
        way = [int(np.sign(aim[axis] - here[axis])) for axis in aim]
        longer = int(self._detours(np.array(exit_), np.array(cell)))
        if longer:
            next_cell = greedy(self.measure)[exit_, cell, 0]
            name = [*WAYS][int((self.room.neighbours[:, cell] == next_cell).argmax())]
        else:
            name = next(name for name, step in WAYS.items() if [*step] == way)
        return aim | {"way": name, "around": longer}

    def _detours(self, exit_: Array, cell: Array) -> Array:
        """Return the steps by which ways are longer than straight, as far as they are told."""
        return self.room.detour[exit_, cell] * (self.distances == "path")

    def lettered(self, state: EvacuationState, seat: int) -> dict[str, int]:
        legal = self.ways(state, state.cell[seat : seat + 1])[:, 0]
        order = np.arange(len(WAYS))
        if self.code_order == "shuffled":
            # The same for who knows the same, so that words and numbers say as much.
            order = Noise(0, int(state.round), seat, int(state.cell[seat])).order(len(WAYS))
        return dict(zip(LETTERS, order[legal[order]].tolist(), strict=False))

    def options(self, state: EvacuationState, seat: int) -> list[dict[str, Any]]:
        cell, names = state.cell[seat : seat + 1], [*WAYS]
        taken = self._taken(state, cell)[:, 0].tolist()
        near = self.room.neighbours[:, int(cell[0])].tolist()
        return [
            {
                "letter": letter,
                "way": names[way],
                "cell": self._position(near[way]),
                "taken": taken[way] and way != STAY,
            }
            for letter, way in self.lettered(state, seat).items()
        ]

    def asides(self, state: EvacuationState, seat: int, phase: str) -> Sequence[Aside]:
        if self.stages == "one" or int(state.phase) != TARGET:
            return ()
        feeling, assessment = self._beside
        first = () if self.feeling == "after_talk" else (feeling,)
        return first if phase == "talk" else (*(() if first else (feeling,)), assessment)

    @cached_property
    def _beside(self) -> tuple[Aside, Aside]:
        feeling = Text("feeling", "how you feel, in a few words", flags=("panic",))
        exits = Assessment("evaluation", self.room.sides)
        return Aside("feeling", feeling), Aside("assessment", exits)

    def asks(self, state: EvacuationState, seat: int) -> Exit | StepQuestion:
        if int(state.phase) == TARGET:
            return self._exit_question
        return StepQuestion("move", self.lettered(state, seat), ways=WAY_CODES)

    @cached_property
    def _exit_question(self) -> Exit:
        choices = {name: choice for choice, name in enumerate(self.exits)}
        return Exit("exit", choices, asides_before=self._beside if self.stages == "one" else ())

    def passed(
        self, previous_state: Any, next_state: Any, record: Mapping[str, Array]
    ) -> Iterator[EvacuationState]:
        cell, came, rounds = previous_state.cell, previous_state.came, int(record["rounds"])
        for index in range(rounds):
            names = ("row", "column", "status", "target")
            row, column, status, target = (np.asarray(record[name])[index] for name in names)
            there = row * self.room.columns + column
            came, cell = np.where(there != cell, cell, came), there
            number = previous_state.round + index + 1
            out = (next_state.escape_round > 0) & (next_state.escape_round <= number)
            yield next_state.replace(
                round=number,
                cell=cell,
                came=came,
                status=status,
                target=target,
                escape_round=np.where(out, next_state.escape_round, 0),
                exit_cell=np.where(out, next_state.exit_cell, NONE),
                over=next_state.over & (index + 1 == rounds),
            )
        if not rounds:
            yield next_state

    def image(self, state: EvacuationState, messages: Sequence[tuple[int, str]] = ()) -> Array:
        names = self.names()
        words = [(names[seat], text) for seat, text in messages]
        return room_image(self.scene(state), words, [seat for seat, _ in messages])

    def scene(self, state: EvacuationState) -> Scene:
        inside, there = self.present(state), state.exit_cell != NONE
        came = np.where(state.came == OUT, state.cell, state.came)
        people = {"cell": state.cell, "came": came, "target": state.target,
                  "hurt": state.status == OVERTAKEN, "seat": np.arange(self.players)}  # fmt: skip
        counts = {"inside": inside, "escaped": there, "casualties": state.status == CASUALTY}
        facts = [(self.title, ""), ("round", f"{int(state.round)} of {self.max_rounds}")]
        return Scene(
            self.room,
            {name: values[inside] for name, values in people.items()},
            facts + [(name, str(int(values.sum()))) for name, values in counts.items()],
            np.bincount(state.exit_cell[there], minlength=len(self.room.exits)),
        )

    def picture(self, state: EvacuationState) -> tuple[str, list[str], list[list[str]]]:
        inside = int(self.present(state).sum())
        caption = f"{self.title}: round {int(state.round)} of {self.max_rounds}, {inside} inside"
        states = ["inside", "fallen", "escaped", "lost"]
        rows = []
        for seat, name in enumerate(self.names()):
            cell, target = int(state.cell[seat]), int(state.target[seat])
            position = "" if cell == OUT else "{row}, {column}".format(**self._position(cell))
            aim = "" if target == NONE else self.room.sides[int(self.room.side[target])]
            out = int(state.escape_round[seat])
            rows.append([name, states[int(state.status[seat])], position, aim, str(out or "")])
        return caption, ["seat", "state", "row, column", "target", "out in round"], rows
