"""What a game is: parameters, a state of arrays, and pure functions on it.

Every array is players-first: actions, rewards and the like have shape ``(players, *batch)``,
other parts of a state have their batch axes last. One table is batch ``()``; ten thousand
tables are batch ``(10000,)`` and run through the same lines.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from gymnasium import spaces

from llm_games.arrays import (
    Array,
    Later,
    PerPlayer,
    PerTable,
    Recorded,
    StandIn,
    all_true,
    any_true,
    array_of,
    arrayed,
    looked_up,
    of_seats,
    put,
    sliced,
    tall,
)
from llm_games.asides import Aside
from llm_games.disguise import Disguise, Surface
from llm_games.errors import BadParameter, IllegalAction, unknown
from llm_games.facts import LARGEST, Column, Draw, Fact, check_integer, check_parameters, param
from llm_games.noise import Noise
from llm_games.pictures import table_image
from llm_games.questions import MISSING, Action, Question, within_int64
from llm_games.tracing.scalars import ScalarRules, scalar_rules

Chance = Mapping[str, Array]  # what was drawn, by the names that `Rulebook.draws` gives
MOST_PLAYERS = 100_000
PATIENCE = 1_000  # steps of one table after which it pays to trace its rules
MANY_TABLES = 256  # of so many, those that are over are left out once they are the most
FEW_ACTIONS = 512  # of fewer a mask is looked up
LARGEST_DISCRETE = 10_000  # actions of a Discrete space; of more, it is a Box of integers


@dataclass(frozen=True)
class State:
    """Base of all states. Array fields have their batch axes last.

    After a step of traced rules a state is its numbers, and its arrays are made when they are read.
    `round` counts the rounds (or shots) finished, int64; `over` is true where the game has ended,
    `void` where it ended without a score (``failed_reply="void_run"``).
    """

    round: PerTable
    over: PerTable
    void: PerTable

    def __getattr__(self, name: str) -> Any:
        entries = self.__dict__
        if "_numbers" not in entries or name not in entries["_rules"].slots:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        entries[name] = value = entries["_rules"].array(entries["_numbers"], name)
        return value

    def __getstate__(self) -> dict[str, Any]:
        if "_numbers" not in self.__dict__:
            return self.__dict__
        return {name: getattr(self, name) for name in self.__dict__["_rules"].slots}

    def table(self, index: Any) -> Self:
        """Take one table (or several, by slices or integers) out of a batch."""
        if isinstance(index, np.ndarray) and index.dtype.kind == "i":  # several, fast
            return self.replace(**{k: value.take(index, -1) for k, value in self.arrays().items()})
        selection: Any = (..., *(index if isinstance(index, tuple) else (index,)))
        return self.replace(**{k: value[selection] for k, value in self.arrays().items()})

    def replace(self, **changes: Any) -> Self:
        """Return a state with other values in these fields (`dataclasses.replace`, but fast)."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__getstate__(), **changes)
        return other

    def merged(self, other: Self, mask: PerTable) -> Self:
        """Take the other's arrays at the tables in `mask`, bool ``(*batch)``."""
        triples = ((k, v, getattr(other, k)) for k, v in self.arrays().items())
        # Fields that both share, such as what was drawn before play, are not copied.
        return other.replace(**{k: np.where(mask, new, v) for k, v, new in triples if new is not v})

    def placed(self, indexes: Array, part: Self, original: Self | None = None) -> Self:
        """Put the tables of `part` at `indexes`, integers ``(k,)``, but fields of `original`."""
        shared = {} if original is None else original.__getstate__()
        changed = {k: v for k, v in part.arrays().items() if shared.get(k) is not v}
        for name, value in changed.items():
            changed[name] = getattr(self, name).copy()
            put(changed[name], indexes, value)
        return self.replace(**changed)

    def arrays(self) -> dict[str, Any]:
        entries = self.__getstate__()
        return {k: v for k, v in entries.items() if isinstance(v, (np.ndarray, np.generic))}


@dataclass
class Outcome:
    """The outcome of one step.

    `rewards` are payoffs, float64 ``(players, *batch)``; `finished` seats are never asked again.
    `record` is for logs and scores, batch axes last, always with ``"actions"`` as played. `broke`,
    which `step` sets, marks seats whose action broke a rule.
    """

    rewards: Array
    finished: Array
    record: Mapping[str, Array] = field(default_factory=dict)
    broke: Array = field(default_factory=lambda: np.zeros((), np.bool_))

    def table(self, index: Array) -> Outcome:
        """Take several tables out of a batch, by integers."""
        of_each = {k: partial(_taken, self.record, k, index) for k in self.record}
        parts = (part.take(index, -1) for part in (self.rewards, self.finished, self.broke))
        rewards, finished, broke = parts
        return Outcome(rewards, finished, Later(of_each), broke)

    def close(self, tables: Any) -> None:
        """Pay nothing at these tables, bool ``(*batch)``, and finish all their seats."""
        self.rewards = np.where(tables, 0.0, self.rewards)
        self.finished = self.finished | tables


def _taken(record: Mapping[str, Array], name: str, index: Array) -> Array:
    return record[name].take(index, -1)


Played = tuple[Any, Outcome]  # a state after a step, and what the step brought


class Goal(NamedTuple):
    """What a seat is paid for: its rewards of a whole game add up to this quantity.

    ``wordings/common.j2`` has a sentence for each `kind` (``goal_total`` ...), with `unit` and
    `over`.
    """

    kind: str = "total"
    unit: str = "payoffs"
    over: str = "all rounds"


@dataclass(frozen=True)
class Rulebook(ABC):
    """A game: frozen parameters and pure rules. Subclass it in one file to add a game.

    It must define ``begin``, ``asked``, ``play``, ``known``, ``told``, ``asks`` and ``bounds``, and
    ``draws`` if it has chance; the rest has defaults.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    turns: ClassVar[bool] = False  # seats take turns; if not, all move at the same time
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    kept_by_presets: ClassVar[tuple[str, ...]] = ()  # what they are named after
    fewest_players: ClassVar[int] = 2
    edition: ClassVar[int] = 2  # raised when payoffs or draws change: recordings are known by it
    former_defaults: ClassVar[Mapping[int, Mapping[str, Any]]] = {}
    """Defaults that were others up to an edition, by that edition: its records mean them."""
    lasting: ClassVar[Mapping[str, Any]] = {}  # with these, idle players play on: for estimates
    idle: ClassVar[int] = 0  # the declared move for a missing or illegal one, see `fallback`
    mends: ClassVar[bool] = True  # it takes the place of what broke a rule; else `play` treats it
    state_type: ClassVar[type[State]] = State  # if it begins with zeros and what was drawn
    shared_goal: ClassVar[Goal] = Goal()  # of all seats, unless `goal` tells them apart
    personal: ClassVar[tuple[str, ...]] = ()  # parameters of one value a player, see `seated`
    passes_over: ClassVar[bool] = False  # `play` itself leaves tables that are over as they are
    uneven: ClassVar[bool] = False  # a step's record is longer at some tables of a batch
    surface: ClassVar[Surface | None] = None  # what other words it has, see `disguised`
    disguise: ClassVar[Disguise | None] = None
    """The other words in which its players read it; None: the plain ones."""

    players: int = param(10, "number of players, at least 2, or 1 where one can play alone")
    failed_reply: str = param(
        "fallback",
        "an action missing or against the rules",
        fallback="the declared move is played",
        void_run="the run ends without a score",
        stakes="always",
    )

    def __post_init__(self) -> None:
        """Check the parameters: each by itself, together (`check`), and what they lead to."""
        check_integer("players", self.players, self.fewest_players, MOST_PLAYERS)
        check_parameters(self)
        self.check()
        if self.largest > LARGEST:
            changed = [f for f in dataclasses.fields(self) if getattr(self, f.name) != f.default]
            blamed = [f for f in changed if self._exact_by(f.name, f.default)] or changed
            values = ", ".join(f"{f.name}={getattr(self, f.name)}" for f in blamed)
            raise BadParameter(
                f"{values}: with these {self.name} would count beyond {LARGEST} (2**53), up to "
                "which integers are exact; choose smaller numbers, and ratios and decimals of "
                "fewer digits"
            )

    def _exact_by(self, name: str, value: Any) -> bool:
        other: Any = object.__new__(type(self))
        other.__dict__.update(self.__getstate__(), **{name: value})
        with suppress(BadParameter):
            other.check()  # which may set what follows from other parameters
            return other.largest <= LARGEST
        return False

    def __getstate__(self) -> dict[str, Any]:
        worn = {"disguise": self.disguise} if self.disguise else {}
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)} | worn

    def check(self) -> None:  # noqa: B027
        """Check parameters beyond what is declared of each; a game may raise BadParameter."""

    @property
    def largest(self) -> int:
        """The largest integer that payoffs' arithmetic meets; refused above `LARGEST` (2**53)."""
        return max(map(abs, self.bounds()))

    # -- the rules, written by each game ---------------------------------------------------

    @abstractmethod
    def bounds(self) -> tuple[int, int]:
        """Return the smallest and largest legal action any seat can ever have (own units)."""

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> Any:
        """Return the first state, with `chance` as `draws` names it. Pure."""
        return self.first(self.state_type, batch, **chance)

    @classmethod
    def instead(cls, preset: str | None, parameters: Mapping[str, Any]) -> str | None:
        """Return the game, split off this one, that these parameters mean; or None."""
        return None

    def draws(self) -> Sequence[Draw]:
        """Return what is left to chance in a whole game; all of it is drawn before play."""
        return ()

    @abstractmethod
    def asked(self, state: Any) -> Array:
        """Return the seats that have to move, bool ``(players, *batch)``; none once it is over."""

    @abstractmethod
    def play(self, state: Any, actions: Array, broke: Array) -> Played:
        """Resolve one step from mended actions; checks, void runs and the like are for `step`."""

    def known(self) -> Sequence[Fact]:
        """Return the facts that players know, in the order of the columns."""
        raise NotImplementedError(f"{type(self).__name__} must say what is known")

    def told(self, state: Any, seat: int) -> dict[str, Any]:
        """Return one seat's knowledge at one table for prompts, the same as its row of `observe`.

        A game defines this or `teller`.
        """
        return self.teller(state)(seat)

    @abstractmethod
    def asks(self, state: Any, seat: int) -> Question:
        """Return what this seat of one table is asked when it is its move."""

    def goal(self, seat: int) -> Goal:
        return self.shared_goal

    def asides(self, state: Any, seat: int, phase: str) -> Sequence[Aside]:
        """Return the questions to a seat beside its move, in order; answers change nothing.

        Those of the `phase` ``"talk"`` come before it first speaks, or its move; of ``"move"``
        after the talk. Each kind is asked once for a move.
        """
        return ()

    # -- where players may talk, see `llm_games.talk` ------------------------------------------

    wordless: ClassVar[str] = ""  # why talk cannot be placed in it, if it cannot

    def talks(self, state: Any) -> PerTable:
        """Return the tables where talk may precede this move, bool; it takes place once a round."""
        return np.logical_not(state.over)

    def voices(self, state: Any) -> PerPlayer:
        """Return the seats in the game that can speak at all, bool."""
        return self.alive(state)

    def speakers(self, state: Any) -> PerPlayer:
        """Return the seats that take part in the decision after a talk, bool."""
        return self.asked(state)

    def positions(self, state: Any) -> Array | None:
        """Return everybody's position, integers ``(players, 2, *batch)``; None in games without."""
        return None

    @property
    def payable(self) -> tuple[float, float]:
        """The least and the most that a seat's payoffs of a game add up to; infinite: no limit."""
        return -np.inf, np.inf

    @property
    def pot(self) -> float:
        """The most that the payoffs of all seats add up to together; infinite: no limit."""
        return self.players * self.payable[1]

    def payable_mean(self, seats: int) -> tuple[float, float]:
        """Return the ends of the mean payoff of so many seats, which may have to share the pot."""
        low, high = self.payable
        others = self.players - seats
        lost = others * min(low, 0.0) if others else 0.0
        return low, min(high, (self.pot - lost) / seats)

    @property
    def core(self) -> Rulebook:
        return self

    def inside(self, state: Any) -> Any:
        return state

    def core_chance(self, given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return of given chance what `core` draws."""
        return given

    def talking(self, state: Any) -> PerTable:
        """Return the tables that talk now, bool; asked seats there are asked for a speech."""
        return np.zeros(state.round.shape, np.bool_)

    def hush(self, state: Any, mute: PerPlayer) -> Any:
        """Return a first state in which talk does not wait for these seats, which have no words."""
        return state

    # -- what follows from them --------------------------------------------------------------

    def reset(self, noise: Noise | int = 0, batch: tuple[int, ...] = (), given: Any = None) -> Any:
        """Return the first state of one table or of a batch.

        All chance is of `noise`, or a seed (copy i of a batch: the i-th after), but for `given`.
        """
        noise = noise if isinstance(noise, Noise) else Noise.copies(noise, batch)
        return self.begin(self.chance(noise, given), batch)

    def chance(self, noise: Noise, given: Mapping[str, Any] | None = None) -> dict[str, Array]:
        """Draw by name what chance decides, ``(..., *batch)``; `fixed_chance` replaces draws."""
        draws, given = ({draw.name: draw for draw in self.draws()}, {} if given is None else given)
        if not isinstance(given, (dict, Mapping)):
            raise BadParameter(f"chance must be given by name, {{name: values}}, got {given!r}")
        for name in given:
            if name not in draws:
                raise unknown(f"chance of {self.name}", name, draws)
        drawn = {name: arrayed(draw.of(noise.of(name))) for name, draw in draws.items()}
        return drawn | {name: draws[name].filled(v, drawn[name]) for name, v in given.items()}

    def first(self, kind: type[Any], batch: tuple[int, ...], **values: Any) -> Any:
        """Return a first state of this class, of zeros where `values` have no entry for a field.

        A plain number fills its field, a type is that of its zeros; `PerTable` fields have the
        batch's shape, others one row a player.
        """
        start: dict[str, Any] = {"over": bool, "void": bool, **values}
        for f in dataclasses.fields(kind):
            value = start.get(f.name, int)
            shape = batch if f.type == "PerTable" else (self.players, *batch)
            if isinstance(value, type):
                start[f.name] = np.zeros(shape, value)
            elif type(value) in (int, float, bool):
                start[f.name] = np.full(shape, value)
        return kind(**start)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        return tuple(self.known())

    @property
    def seats_differ(self) -> str:
        """Why seats have unequal prospects, as the end of a sentence; "" if they are alike."""
        return ""

    @property
    def silent(self) -> tuple[str, ...]:
        """The parameters on which payoffs depend though players are not told them."""
        return tuple(f.name for f in dataclasses.fields(self) if self._silent_on(f))

    def _silent_on(self, parameter: dataclasses.Field[Any]) -> bool:
        hidden, stakes = (parameter.metadata.get(key) for key in ("hidden", "stakes"))
        if not hidden or (isinstance(hidden, str) and getattr(self, hidden)):
            return False
        if isinstance(stakes, tuple):
            return bool(getattr(self, stakes[0]) == stakes[1])
        default = getattr(self, parameter.name) == parameter.default
        return stakes == "always" or (stakes == "changed" and not default)

    @property
    def fictions(self) -> tuple[str, ...]:
        """Statements that players are told, following a paper, though they may be false."""
        fields = dataclasses.fields(self)
        true = [f for f in fields if f.metadata.get("fiction") and getattr(self, f.name)]
        return tuple(str(f.metadata["meaning"]).partition(" hear ")[2] for f in true)

    @property
    def repeated(self) -> str:
        """Name of what is equal in every episode though it stands for chance; "" if nothing is."""
        return ""

    def recalled(self) -> Sequence[Fact]:
        """Return further facts known to a seat that remembers its whole game, for rule players."""
        return ()

    @cached_property
    def fact_index(self) -> dict[str, tuple[int, int | None]]:
        """The fact's index and the row in it (None: it has one) of each column of `observe`."""
        index: dict[str, tuple[int, int | None]] = {}
        for number, fact in enumerate((*self.facts, *self.recalled())):
            for row, column in enumerate(fact.columns(self.players)):
                index[column.name] = number, None if fact.each is False else row
        return index

    def columns(self) -> tuple[Column, ...]:
        return tuple(column for fact in self.facts for column in fact.columns(self.players))

    def observe(self, state: Any, seats: Any = None) -> Array:
        """Return what seats know as numbers, float32 ``(players, *batch, columns)``.

        With `seats`, ``(k,)`` or others at each table ``(k, *batch)``, only their rows.
        """
        if seats is None and self.traced and (seen := self.traced.observe(state)) is not None:
            return seen
        is_subset = seats is not None
        count = len(seats) if is_subset else self.players
        shape = len(self.column_index), count, *state.round.shape
        rows = np.empty_like(state.round, np.float32, shape=shape)
        begin, seat_axes = 0, rows.ndim - 1  # axes of a fact that differs by seat
        if is_subset and np.ndim(seats) == 1:
            seats = sliced(np.asarray(seats))

        def of(value: Any, axis: int) -> Any:
            return value if value.shape[axis] == 1 else of_seats(value, seats, axis)

        for fact in self.facts:
            value, count = fact.of(state), 1
            if fact.each is False:
                rows[begin] = of(value, 0) if is_subset and value.ndim == seat_axes else value
            else:  # a row for each seat or thing
                count = len(value)
                if value.ndim < rows.ndim:
                    value = value[:, None]
                rows[begin : begin + count] = of(value, 1) if is_subset else value
            begin += count
        hears = self.hears(state)
        if hears is not None:
            rows *= of(hears, 0) if is_subset else hears
        # Columns lie one after another: fast to write and to read.
        return rows.transpose(*range(1, rows.ndim), 0)

    def hears(self, state: Any) -> PerPlayer | None:
        """Return the seats that are told anything, bool; None for all. The others observe zeros."""
        return None

    def question(self, state: Any, seat: int) -> Question | None:
        """Return the question to this seat of one table; None if it is not its move."""
        asked = self.asks(state, seat) if self.asked(state)[seat] else None
        return self.disguise.question(asked) if self.disguise else asked

    def teller(self, state: Any) -> Callable[[int], dict[str, Any]]:
        """Return a function from a seat of one table to what it knows, see `told`."""
        if type(self).told is Rulebook.told:
            raise NotImplementedError(f"{type(self).__name__} must say what is told")
        return partial(self.told, state)

    def legal(self, state: Any) -> tuple[Array, Array]:
        """Return the lowest and highest legal action now, int64 ``(players, *batch)`` each."""
        high = self.highest_legal(state)
        return np.full(high.shape, self.bounds()[0], np.int64), high

    def highest_legal(self, state: Any) -> Array:
        """Return the highest legal action now, for games whose lowest never changes."""
        return np.full((self.players, *state.round.shape), self.bounds()[1], np.int64)

    def breaks(self, state: Any, actions: Array) -> Array:
        """Return the asked seats whose action is against the rules, bool ``(players, *batch)``."""
        limits: tuple[Any, Any] = self.bounds()
        if type(self).legal is not Rulebook.legal:
            limits = self.legal(state)
        elif not self.same_limits:
            limits = limits[0], self.highest_legal(state)
        outside = (actions < limits[0]) | (actions > limits[1])
        return outside & self.asked(state) if any_true(outside) else outside

    def fallback(self, state: Any) -> Array:
        """Return the declared moves in place of missing or illegal ones, ``(players, *batch)``."""
        return np.full((self.players, *state.round.shape), self.idle, np.int64)

    def mend(self, state: Any, actions: Array, broke: Array) -> Array:
        actions = actions.astype(np.int64, copy=False)
        if self.mends and any_true(broke):
            return np.where(broke, self.fallback(state), actions)
        return actions

    def unplayed(self, record: Mapping[str, Array]) -> Array:
        """Return the seats whose recorded action had no effect, bool ``(players, *batch)``."""
        return np.zeros(np.shape(record["actions"]), np.bool_)

    def effective(self, record: Mapping[str, Array]) -> Array:
        """Return recorded actions, `MISSING` where they are `unplayed`."""
        if type(self).unplayed is Rulebook.unplayed:
            return np.asarray(record["actions"])
        return np.where(self.unplayed(record), MISSING, record["actions"])

    def step(self, state: Any, actions: Array) -> tuple[Any, Outcome]:
        """Resolve one step. Pure: neither argument is changed.

        `actions` are int64 ``(players, *batch)``, those of seats not asked are ignored, `MISSING`
        is no answer; one against the rules gets the game's treatment (`mend`) and is in
        ``Outcome.broke``. Raises IllegalAction for another shape than `asked`, or no integers.
        """
        actions = np.asarray(actions)
        if self.traced and (played := self.traced.step(state, actions)):
            return played[0], Outcome(*played[1:])
        shape = (self.players, *state.round.shape)
        if actions.shape != shape or actions.dtype.kind not in "iu":
            raise IllegalAction(
                f"{self.name}: actions must be integers of shape {shape} (players first), "
                f"got {actions.dtype} of shape {actions.shape}"
            )
        if self.traced is None and actions.ndim == 1:
            steps = self.__dict__["_steps"] = self.__dict__.get("_steps", 0) + 1
            if steps >= PATIENCE:
                self.trace()
        return self.settle(state, actions)

    traced: ClassVar[ScalarRules | Literal[False] | None] = None
    """Its rules on plain numbers, for one small table, see `trace`; False: they do not trace."""

    def trace(self) -> str:
        """Let one table be played on plain numbers from now on; return why not, "" if it is."""
        rules = scalar_rules(self)
        self.__dict__["traced"] = rules if isinstance(rules, ScalarRules) else False
        return rules if isinstance(rules, str) else ""

    def settle(self, state: Any, actions: Array) -> Played:
        """Do the same for actions of the right shape."""
        over = np.count_nonzero(state.over)
        if state.over.ndim == 1 and 2 * over > state.over.size >= MANY_TABLES:
            return self._settle_going(state, actions)
        return self._settle_all(state, actions, bool(over) and not self.passes_over)

    def _settle_going(self, state: Any, actions: Array) -> Played:
        """Settle the tables that go on; the others' part of the record waits until it is read."""
        going, shape = (~state.over).nonzero()[0], actions.shape
        whole = partial(self._settle_all, state, actions, not self.passes_over)
        record = Recorded(None, lambda: whole()[1].record)
        outcome = Outcome(np.zeros(shape), np.ones(shape, bool), record, np.zeros(shape, bool))
        if len(going):
            before = state.table(going)
            after, part = self._settle_all(before, actions.take(going, -1), over=False)
            state = state.placed(going, after, before)
            for name in ("rewards", "finished", "broke"):
                put(getattr(outcome, name), going, getattr(part, name))
        return state, outcome

    def _settle_all(self, state: Any, actions: Array, over: bool) -> Played:
        if over:
            actions = np.where(state.over, self.fallback(state), actions)
        broke = self.breaks(state, actions)
        next_state, outcome = self.play(state, self.mend(state, actions, broke), broke)
        outcome.broke = broke
        if self.failed_reply == "void_run" and any_true(broke):
            void = broke.any(axis=0)
            next_state = next_state.replace(
                over=next_state.over | void, void=next_state.void | void
            )
            outcome.close(void)
        if over:  # tables that were over before stay as they were
            next_state = state.merged(next_state, ~state.over)
            outcome.close(state.over)
            outcome.broke = broke & ~state.over
        return next_state, outcome

    # -- how one seat's action looks outside ---------------------------------------------------

    @cached_property
    def same_limits(self) -> bool:
        """`legal` is `bounds` for every seat at all times."""
        kind = type(self)
        return kind.legal is Rulebook.legal and kind.highest_legal is Rulebook.highest_legal

    narrows: ClassVar[bool] = False  # a seat's legal actions change during a game
    picks: ClassVar[bool] = False
    """an action picks one of a few options; a mask shows the legal ones"""
    decline: ClassVar[int | None] = None  # an action beside amounts: no bid, or to withdraw
    steps: ClassVar[int] = 21  # shares that an index can stand for, where amounts are many

    @property
    def masked(self) -> bool:
        """A seat observes a mask of its legal actions: they are few, and they change."""
        low, high = self.bounds()
        return self.picks or (self.narrows and self.unit == 1 and high - low < LARGEST_DISCRETE)

    @property
    def grid(self) -> tuple[int, ...] | None:
        """The actions that a learner's indexes stand for, where a game names them; else None."""
        return None

    @property
    def division(self) -> int | None:
        """The amount that a plan divides among the players, where actions are plans; else None."""
        return None

    def sharers(self, state: Any) -> Array:
        """Return the seats among which the plan asked for now divides, in order; none elsewhere."""
        return np.zeros((self.players, *state.round.shape), np.bool_)

    def drafted(self, numbers: Array, plan: Array) -> Array:
        """Add the beginning of a plan, ``(players, *batch)``, to numbers, ``(*batch, columns)``."""
        return numbers

    def amounts(self, state: Any) -> tuple[Array, Array]:
        """Return the limits of `legal` without `decline`; none is legal if the lower is larger."""
        low, high = self.legal(state)
        return (low if self.decline is None else np.maximum(low, self.decline + 1)), high

    @property
    def unit(self) -> int:
        """Actions count in units of ``1 / unit``; 1 for whole numbers."""
        return 1

    def in_units(self, actions: Array, spoken: Any = False) -> Array:
        """Return actions as amounts of `space`, int64 or float64; what was `spoken` is none."""
        if self.unit == 1 or np.all(spoken):  # what is said in words is no number
            return actions
        counts = spoken if self.decline is None else spoken | (actions == self.decline)
        return np.where(counts, actions, actions / self.unit)

    def space(self, seat: int) -> spaces.Space[Any]:
        """Return a new Gymnasium space of one seat's actions; Discrete where these are few."""
        low, high = self.bounds()
        if self.unit > 1:
            limits = np.float64(low / self.unit), np.float64(high / self.unit)
            return spaces.Box(*limits, (1,), np.float64)
        if high - low < LARGEST_DISCRETE:
            return spaces.Discrete(high - low + 1, start=low)
        return spaces.Box(low, high, (1,), np.int64)

    def mask(self, state: Any, seats: Any = None) -> Array:
        """Return legal actions, of seats not asked none, bool ``(players, *batch, actions)``."""
        if self.laddered:
            return looked_up(self.ladder, self.rungs(state, seats))
        first, last = self.bounds()
        (low, high), asked = self.amounts(state), self.asked(state)
        if seats is not None:
            low, high, asked = (of_seats(values, seats) for values in (low, high, asked))
        actions = np.arange(last - first + 1, dtype=np.int32)  # small numbers are compared fast
        reach = np.where(asked, high - first, -1).astype(np.int32)
        mask = actions <= reach[..., None]
        if (low > first).any():
            mask &= actions >= (low - first).astype(np.int32)[..., None]
        if self.decline is not None:
            mask[..., self.decline - first] = asked
        return mask

    @cached_property
    def laddered(self) -> bool:
        """What is legal is a row of `ladder`: here all actions, if few, to a seat's highest."""
        (first, last), kind = self.bounds(), type(self)
        plain = kind.legal is Rulebook.legal and kind.amounts is Rulebook.amounts
        return plain and self.decline is None and last - first < FEW_ACTIONS

    def rungs(self, state: Any, seats: Any = None) -> Array:
        """Return each seat's row of the `ladder`; the first, of none, if it is not asked."""
        high, asked = self.highest_legal(state), self.asked(state)
        if seats is not None:
            high, asked = of_seats(high, seats), of_seats(asked, seats)
        return np.where(asked, high - self.bounds()[0] + 1, 0)

    @cached_property
    def ladder(self) -> Array:
        """In row k the first k of all actions, bool."""
        count = self.bounds()[1] - self.bounds()[0] + 1
        return np.tri(count + 1, count, -1, np.bool_)

    def decode(self, state: Any, seat: int, action: Any) -> Action:
        """Turn an action of `space`, or None, into one of the rules; else raise IllegalAction."""
        if action is None:
            return MISSING
        low, high = self.bounds()
        if type(action) is int and self.unit == 1 and low <= action <= high:
            return action
        value, kinds = array_of(action), "iuf" if self.unit > 1 else "iu"
        plain = value.size == 1 and value.dtype.kind in kinds and np.isfinite(value.item())
        exact = Fraction(repr(value.item())) * self.unit if plain else None
        if exact is None or not low <= exact <= high:
            kind = "a number" if self.unit > 1 else "an integer"
            span = f"{kind} from {low / self.unit:g} to {high / self.unit:g}"
            raise IllegalAction(f"{self.names()[seat]}: {action!r} is not {span}")
        return round(exact)

    def encode(self, state: Any, seat: int, move: Any) -> Any:
        """Return the member of `space` that comes nearest to a move, the inverse of `decode`."""
        low, high = self.bounds()
        nearest = min(max(int(move), low), high)
        if self.unit > 1:
            return np.array([nearest / self.unit])
        return nearest if high - low < LARGEST_DISCRETE else np.array([nearest], np.int64)

    def assemble(self, state: Any, moves: Mapping[int, Action]) -> Array:
        """Put moves of single seats of one table into an array of actions, ``(players,)``."""
        return actions_of([moves.get(seat, MISSING) for seat in range(self.players)])

    def alive(self, state: Any) -> Array:
        return self.everybody(~state.over)

    def each(self, values: Array, batch: tuple[int, ...]) -> PerPlayer:
        """Give every table the same numbers ``(players,)``, read-only, ``(players, *batch)``."""
        return np.broadcast_to(tall(values, batch), (self.players, *batch))

    def seats(self, state: Any) -> PerPlayer:
        """Return seat numbers that broadcast against one number a table."""
        return tall(np.arange(self.players), state.round.shape)

    def of_each(self, name: str) -> tuple[Any, ...]:
        """Return a parameter as one a player, also where it is one for all."""
        value = getattr(self, name)
        return value if isinstance(value, tuple) else (value,) * self.players

    def everybody(self, value: Array) -> Array:
        """Repeat a truth a table for every seat: bool ``(*batch)`` to ``(players, *batch)``."""
        if not (value.ndim or isinstance(value, StandIn)):  # of one table: a short way
            return self._everybody[int(value)]
        each = np.empty_like(value, np.bool_, shape=(self.players, *value.shape))
        each[:] = value
        return each

    @cached_property
    def _everybody(self) -> Array:
        each = np.array([[False], [True]]).repeat(self.players, axis=1)
        each.flags.writeable = False
        return each

    def pay_where(
        self, ends: PerTable, state: Any, shares: Callable[[Any], PerPlayer]
    ) -> PerPlayer:
        """Return float64 payoffs: the `shares` of a state at tables in `ends`, bool, else 0.

        In a batch only what these tables are paid is worked out.
        """
        if isinstance(ends, StandIn) or (not ends.ndim and ends) or all_true(ends):
            return np.where(ends, shares(state), 0.0)
        paid = np.zeros((self.players, *ends.shape))
        if any_true(ends):
            tables = ends.nonzero()
            part = shares(state.table(tables[0] if len(tables) == 1 else tables))
            for row, entries in zip(paid, part, strict=True):
                row[tables] = entries
        return paid

    def terms(self) -> dict[str, Any]:
        """Return the names that the rules' wording uses: parameters and what they imply."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @property
    def shown_last(self) -> str | int:
        """How many past rounds a player sees, or ``all``; ``request``: all are in each request."""
        return getattr(self, "reveal_last", "all")

    @property
    def past_turns(self) -> int | None:
        """How many past turns a model's chat has, their reports alone; None: all, whole."""
        rounds = self.shown_last  # one of which is told with the request
        return None if rounds == "all" else 0 if rounds == "request" else max(0, int(rounds) - 1)

    def attempts(self, allowed: int) -> int | None:
        """Return how many of a player's allowed attempts at an answer count; None: all."""
        return allowed if getattr(self, "reasks", True) else 1

    @property
    def begun(self) -> int:
        return 0

    def length(self) -> int | None:
        """Return the largest number of steps an episode can take, or None if there is none."""
        return getattr(self, "rounds", None)

    def lasts(self) -> int | None:
        """Return the most rounds a game can take, by ``state.round``; None where none are set."""
        rounds = getattr(self, "rounds", None)
        return rounds if isinstance(rounds, int) else None

    def names(self) -> list[str]:
        return self._names

    def names_in_words(self) -> list[str]:
        """Return the names of seats in words."""
        return self.disguise.names(self.names()) if self.disguise else self.names()

    @cached_property
    def _names(self) -> list[str]:
        return [f"player_{i}" for i in range(self.players)]

    @cached_property
    def column_index(self) -> dict[str, int]:
        return {column.name: i for i, column in enumerate(self.columns())}

    def picture(self, state: Any) -> tuple[str, list[str], list[list[str]]]:
        """Return a caption, headers and rows that show one whole table to a spectator."""
        seats = [[name] for name in self.names()]
        return f"{self.title}, round {int(state.round)}", ["seat"], seats

    def sold(self, previous_state: Any, next_state: Any) -> list[str]:
        """Return what a step of one table sold: to whom, for how much, what it is worth to it."""
        return []

    def passed(
        self, previous_state: Any, next_state: Any, record: Mapping[str, Array]
    ) -> Iterator[Any]:
        """Yield the states of one table to be shown after a step of several rounds, in order."""
        yield next_state

    def image(self, state: Any, messages: Sequence[tuple[int, str]] = ()) -> Array:
        """Return a table in pixels, uint8 ``(height, width, 3)``; `messages`: seat and words."""
        names = self.names()
        return table_image(*self.picture(state), [(names[seat], text) for seat, text in messages])


def actions_of(moves: Any) -> Array:
    """Convert moves to int64, clipping those that do not fit."""
    try:
        return np.array(moves, np.int64)
    except OverflowError:
        fit = np.vectorize(lambda m: m if m == MISSING else within_int64(m), otypes=[np.int64])
        return fit(np.array(moves, object))


def seated(
    game: type[Rulebook], parameters: Mapping[str, Any], seating: Sequence[int]
) -> dict[str, Any]:
    """Return parameters with the personal ones at their players' seats; `seating`: by seat."""
    moved = {
        name: [value[player] for player in seating]
        for name, value in parameters.items()
        if name in game.personal and isinstance(value, (list, tuple))
    }
    return {**parameters, **moved}
