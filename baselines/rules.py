"""Players that follow a rule, and the form in which a game's room declares them.

A room's ``players.py`` has ``PLAYERS = Players({...}, ...)``: a rule for each kind. Kinds that
several games share are defined in `llm_games.baselines.players`, others in their room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import any_true, arrayed, sliced
from llm_games.errors import BadParameter
from llm_games.facts import ratio_of
from llm_games.noise import Noise, counted
from llm_games.rulebook import Array, Rulebook
from llm_games.table_batch import nearly_all
from llm_games.view import Sight, View
from llm_games.wrappers.policy import Decided, Decision, Policy

Rule = Callable[..., Any]
"""``rule(view, noise)`` turns what a seat sees, and chance, into its action, ``(*batch)``; a plan
has the seats first. Of a kind with a value it is ``rule(value, view, noise)``."""
Model = Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Policy]
"""Makes a player that asks a model: from a value, the settings of its client and its own."""


@dataclass(frozen=True)
class Kind:
    """A kind of player.

    `read` reads the value of its name, `meaning` what that means in a game; a `BadParameter` names
    what is allowed. Instead of `rule`, `model` makes a player that asks a language model from what
    was read, and `made` any other (such as a trained one), from that and settings of its own.
    """

    summary: str  # one line on what it does
    rule: Rule | None = None  # where a room says nothing else; None: only some games have it
    value: str = ""  # what stands after the colon of its name, such as <level>; "" if nothing may
    read: Callable[[str], Any] = str
    meaning: Callable[[Rulebook, Any], Any] = lambda game, value: value
    model: Model | None = None
    made: Callable[..., Policy] | None = None
    valued: str = ""  # what a value that may be left out changes

    @property
    def needs_value(self) -> bool:
        return bool(self.value and not self.valued)


@dataclass(frozen=True)
class Players:
    """The players of a game's room: the rule of each kind, or a `Kind` of this game alone.

    `meaning` reads ``fixed:VALUE``, if the value is no word or number of the game. `reply_to` is
    the best response to given actions of the others ``(players - 1,)``. `check` raises BadParameter
    where a game's parameters have no place for a kind, with what was read of its value, or None.
    """

    rules: Mapping[str, Rule | Kind] = field(default_factory=dict)
    meaning: Callable[[Rulebook, str], Any] | None = None
    assumed: str = ""  # what best_response takes the others to do, in words
    mixed: bool = False  # whether rational or best_response may play by chance
    broadcasts: bool = False  # rules of the room take a view of several seats, see `Sight.view`
    reply_to: Callable[[View, Array], Any] | None = None
    check: Callable[[Rulebook, str, Any], object] | None = None


class BoundRule:
    """A rule bound to a game; unpickling makes the rule anew."""

    def __init__(self, rule_in: Callable[[Rulebook], Rule], game: Rulebook) -> None:
        self.rule_in, self.game, self.rule = rule_in, game, rule_in(game)

    def __call__(self, view: View, noise: Noise) -> Any:
        return self.rule(view, noise)

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundRule, (self.rule_in, self.game)


class RuleMemory(NamedTuple):
    """Memory of a rule player: its rule, its seed, and its number of decisions."""

    rule: Rule
    seed: int
    decided: int = 0


class Cells:
    """The seats and tables of a batch that a rule decides for, bool ``(players, tables)``."""

    def __init__(self, where: Array) -> None:
        self.where = where
        tables: Any = np.flatnonzero(where.any(axis=0))
        rows, cells = np.flatnonzero(where.any(axis=1)), np.count_nonzero(where)
        table_count = len(tables)
        self.some, self.alone = table_count > 0, cells == table_count and len(rows) > 1
        if nearly_all(table_count, where.shape[1]):  # others are passed over
            tables = slice(None)
        self.tables, self.own = tables, where[:, tables]
        self.seats: Array = rows[:, None]
        self.place: Any = None
        count = self.own.shape[1]
        if self.alone:  # another seat at each table
            self.seats = self.own.argmax(axis=0)
            self.place = self.seats, np.arange(count)
        elif self.some:
            self.place = sliced(rows)
        self.full = cells == (count if self.alone else count * len(rows))


class RuleMemories(NamedTuple):
    """Memory of rule players in a batch: the keys of its seats' noise, and decision counts.

    Both are ``(players, tables)``. `cells` are those that it decided for last.
    """

    rule: Rule
    keys: Array
    decided: Array
    cells: Cells | None = None


class RulePolicy(Policy):
    """A player that follows the rule that `rule_in` says it has in a game, or `BadParameter`.

    It acts on the numbers of a view, of one table or of a whole batch, in many seats at once; the
    action is then int64 ``(*batch)``, or ``(players, *batch)`` where a seat proposes a plan.
    """

    def __init__(self, name: str, rule_in: Callable[[Rulebook], Rule]) -> None:
        self.name, self.rule_in = name, rule_in

    def start(self, game: Rulebook, seat: int, seed: int) -> RuleMemory:
        """Return the memory at the start; of a batch, `seed` may have one for each table."""
        return RuleMemory(BoundRule(self.rule_in, game), seed)

    def act(self, view: View, memory: RuleMemory) -> tuple[Decision, RuleMemory]:
        """Decide by the rule; copies in a batch have independent noise."""
        rule, seed, decided = memory
        alike = view.batch and not np.ndim(seed)
        noise = Noise.copies(seed, view.batch) if alike else Noise(seed)
        return decision(view, rule(view, noise.of(decided))), RuleMemory(rule, seed, decided + 1)

    def plain(self, memory: RuleMemories) -> Callable[[View, Noise], Array] | None:
        return lambda view, noise: legal(view, memory.rule(view, noise))

    def marching(self, memory: RuleMemories) -> Any:
        """Return how it walks until its tables' next decisions, for evacuation's `march`."""
        rule: Any = memory.rule
        ways = getattr(getattr(rule.rule, "func", rule.rule), "marching", None)  # also with a value
        return ways and ways(rule.game, Noise.keyed(counted(memory.keys, memory.decided)))

    def start_batch(
        self, game: Rulebook, mask: Array, seeds: Array, memory: RuleMemories | None = None
    ) -> RuleMemories:
        """Return the memory of a batch; the seats that begin have not decided yet."""
        if memory is None:
            counts = np.zeros(mask.shape, np.int64)
            memory = RuleMemories(BoundRule(self.rule_in, game), counts.astype(np.uint64), counts)
        keys = memory.keys.copy()
        keys[mask] = Noise(seeds[mask].astype(np.uint64)).key
        return memory._replace(keys=keys, decided=np.where(mask, 0, memory.decided))

    async def decide_batch(
        self, sight: Sight, mask: Array, memory: RuleMemories
    ) -> tuple[Decided, RuleMemories]:
        """Follow the rule in all these seats at once, at the tables that have any."""
        cells = memory.cells
        if cells is None or cells.where is not mask:
            cells = Cells(mask)
        next_memory = memory._replace(decided=memory.decided + mask, cells=cells)
        if isinstance(cells.tables, slice):
            return Decided(_rule_actions(memory, sight, cells)), next_memory
        actions = np.zeros(mask.shape, np.int64)
        if cells.some:
            actions[:, cells.tables] = _rule_actions(memory, sight.table(cells.tables), cells)
        return Decided(actions), next_memory


def _rule_actions(memory: RuleMemories, sight: Sight, cells: Cells) -> Array:
    """Return the rule's actions in the cells of a batch; `sight` is of their tables."""
    rule, keys, decided, _ = memory
    mask, index = cells.own, cells.place

    def key() -> Array:
        base, counts = keys[:, cells.tables][index], decided[:, cells.tables][index]
        alike = not any_true(counts != (first := int(counts.flat[0])))
        noise = Noise.due(base.shape, lambda: base)
        return noise.of(first if alike else counts).key

    view = sight.view(cells.seats)
    moves = legal(view, rule(view, Noise.due(view.batch, key)))
    if moves.ndim > len(view.batch):  # plans, or votes among zeros
        return moves * mask.any(axis=0) if cells.alone else (moves * mask[index]).sum(axis=1)
    actions = np.zeros(mask.shape, np.int64)
    actions[index] = moves
    return actions if cells.full else actions * mask


def seat_by_seat(rule: Rule, view: View, noise: Noise) -> Any:
    """Follow a rule that takes one seat in the view of several, see `Sight.view`."""
    seats, sight = view.seat, view.sight
    if not isinstance(seats, np.ndarray):
        return rule(view, noise)
    batch: tuple[int, ...] = sight.state.round.shape
    if seats.ndim > len(batch):  # several of all tables
        each = [(sight.view(int(seat)), noise.table(i)) for i, seat in enumerate(seats.ravel())]
        actions_of_seats = [_broadcast(rule(*seat_view), batch) for seat_view in each]
        return np.stack(actions_of_seats, axis=-1 - len(batch))
    actions: Any = None
    for seat in np.unique(seats).tolist():
        here = np.flatnonzero(seats == seat)
        part = _broadcast(rule(sight.table(here).view(seat), noise.table(here)), here.shape)
        actions = np.zeros((*part.shape[:-1], *batch), np.int64) if actions is None else actions
        actions[..., here] = part
    return actions


def _broadcast(action: Any, batch: tuple[int, ...]) -> Array:
    return np.broadcast_to(action, np.broadcast_shapes(np.shape(action), batch))


def legal(view: View, action: Any) -> Array:
    """Return a rule's actions as int64; numbers are clipped to what is legal now."""
    values = arrayed(action)
    if values.ndim <= len(view.batch):
        low, high = view.game.bounds() if view.game.same_limits else (view.low, view.high)
        values = values.clip(low, high)
    return values.astype(np.int64, copy=False)


def decision(view: View, action: Any) -> Decision:
    """Return a decision; numbers are clipped to what is legal now."""
    values = legal(view, action)
    if view.batch:
        return Decision(values)  # type: ignore[arg-type]  # a whole batch
    return Decision(tuple(values.tolist()) if values.ndim else int(values))


def shape(view: View) -> tuple[int, ...]:
    return view.batch


def whole(view: View, column: str, unit: int | Array = 1, read: Any = View.number) -> Array:
    """Return a column that counts in units of ``1 / unit``, int64 ``(*batch)``, or a `View.row`."""
    value: Array = read(view, column)
    if value.dtype.kind == "i":
        return value * unit
    return np.rint(value * unit).astype(np.int64)


def pick(chances: Array, noise: Noise) -> Array:
    """Draw an index of the last axis with these chances, ``(*batch)``."""
    below = np.cumsum(chances, axis=-1)
    mark = noise.random() * below[..., -1]
    return (mark[..., None] >= below).sum(axis=-1)


def count_from(low: int, high: int, needs: str) -> Callable[[str], int]:
    """Return a reader of whole numbers from `low` to `high`; `needs` begins its error."""

    def read(value: str) -> int:
        plain = value.isascii() and value.isdigit() and len(value) <= len(str(high))
        if not plain or not low <= int(value) <= high:
            raise BadParameter(f"{needs}, got {value!r}")
        return int(value)

    return read


def ratio_from(name: str, low: int, high: int | None, needs: str) -> Callable[[str], Fraction]:
    """Return a reader of exact ratios from `low` to `high`; `needs` begins its error."""

    def read(value: str) -> Fraction:
        with suppress(BadParameter):
            return ratio_of(name, value, low, high)
        raise BadParameter(f"{needs}, got {value!r}")

    return read


def cannot_play(game: Rulebook, value: str, allowed: str) -> BadParameter:
    """Return the error for a value of ``fixed:VALUE`` that a game does not take."""
    return BadParameter(f"fixed:{value} cannot be played in {game.name}: it takes {allowed}")
