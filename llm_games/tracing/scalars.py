"""The rules of one small table as plain Python on numbers, traced and compiled in this process.

A state is then a tuple of numbers, the entries of its fields one after another, but a field that
stays as it is in a game is there in one piece. Arrays are made when somebody reads them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from struct import Struct
from typing import Any, ClassVar, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.facts import LARGEST
from llm_games.questions import MISSING
from llm_games.tracing.graph import Node, TracedArray, Untraceable, lifted
from llm_games.tracing.states import (
    FULL,
    CodeLines,
    Slots,
    inputs,
    numbers_after,
    slots_and,
    standing_in,
)

MOST_PLAYERS = 64
INT64 = np.dtype(np.int64)
WAYS_OUT = ArithmeticError, IndexError, ValueError  # NumPy may know an answer, or says the error
NAMES: dict[str, Any] = {
    "argmax": lambda row, _: row.index(max(row)),
    "argmin": lambda row, _: row.index(min(row)),
    "argsort": lambda row, n: sorted(range(n), key=row.__getitem__),
    "sort": lambda row, _: sorted(row),
    "minimum": lambda row, _: min(row),
    "maximum": lambda row, _: max(row),
    "absolute": abs,
    "floor": lambda number: math.copysign(math.floor(number), number),
    "ceil": lambda number: math.copysign(math.ceil(number), number),
    "trunc": lambda number: math.copysign(math.trunc(number), number),
    "rint": lambda number: math.copysign(round(number), number),
    **{name: getattr(math, name) for name in ("sqrt", "nan", "inf")},
}


class PythonLines(CodeLines):
    """Lines of Python."""

    truths: ClassVar[dict[str, str]] = CodeLines.truths | {
        "bitwise_and": "{0} and {1}",
        "bitwise_or": "{0} or {1}",
    }

    def written(self, part: Node, texts: list[str]) -> str:
        rounds = part.kind == "h" and part.op not in ("const", "input", "load", "where", "cast")
        if rounds and not (part.op == "multiply" and part.args[1].op == "cast"):
            raise Untraceable(f"np.{part.op} of floats of 32 bits is not traced")
        return super().written(part, texts)

    def literal(self, number: Any, kind: str) -> str:
        return f"({number.item()!r})"

    def looked_up(self, part: Node, index: str) -> str:
        whole = part.args[1]
        return f"{f's{whole}' if part.op == 'load' else self.table(whole)}.item({index})"

    def chosen(self, condition: str, yes: str, no: str) -> str:
        return f"({yes} if {condition} else {no})"

    def row(self, kind: str, texts: list[str]) -> str:
        return f"({', '.join(texts)},)"

    def place(self, index: str, count: int) -> str:
        return index

    def assigned(self, name: str, part: Node, text: str) -> str:
        return f"{name} = {text}"

    def cast(self, taken: str, kind: str, text: str) -> str:
        if kind == "b":
            return f"{text} != 0"
        if kind in "fh":
            return text if taken in "fh" else f"float({text})"
        if kind == "u" and taken in "bi":
            return f"{text} & {FULL}"
        if kind == "i" and taken in "bf":
            return f"{text} + 0" if taken == "b" else f"int({text})"
        raise Untraceable(f"{taken} as {kind} is not traced")


# -- the rules of a table --------------------------------------------------------------------------


class PlayedRecord(Mapping[str, Array]):
    """The record of a step, worked out at its first look-up."""

    def __init__(self, rules: ScalarRules, numbers: tuple[Any, ...], moves: list[int]) -> None:
        self._due, self._parts = (rules, numbers, moves), dict[str, Any]()
        self._arrays = dict[str, Array]()

    def __getitem__(self, name: str) -> Array:
        if name not in self._arrays:
            rules, numbers, moves = self._due
            if not self._parts:
                self._parts = dict(zip(self, rules.record(numbers, moves), strict=True))
            dtype, plain = rules.recorded[name]
            self._arrays[name] = np.array(self._parts[name], dtype)[() if plain else ...]
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._due[0].recorded)

    def __len__(self) -> int:
        return len(self._due[0].recorded)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class ScalarRules:
    """A game's `step`, `observe`, facts and who is asked, on a table's numbers.

    Made of a state, and of the state and record that NumPy's rules make of it.
    """

    def __init__(self, game: Any, state: Any, next_state: Any, record: Mapping[str, Any]) -> None:
        self.name, self.players, self.kind = game.name, game.players, type(state)
        trace = partial(_traces, game, self.kind)
        self.slots, traced = slots_and(trace, state, next_state)
        self.width = sum(1 if s.whole else s.stop - s.begin for s in self.slots.values())
        self.over = self.slots["over"].begin
        kinds = {name: isinstance(record[name], np.generic) for name in traced.record}
        self.recorded = {n: (part.dtype, kinds[n]) for n, part in traced.record.items()}
        fields = (f"s{k}" for k in range(self.width))
        numbers = tuple(traced.numbers.get(field, field) for field in fields)
        self._step = self._compile("step", (numbers, *traced.outcome), True)
        record_cells = [part.cells for part in traced.record.values()]
        self.record = self._compile("record", record_cells, True)
        seen = (n.args[0] if n.op == "cast" else n for n in traced.observed.ravel())
        self._observe = self._compile("observe", tuple(seen), False)  # rounded when packed
        self._facts = self._compile("facts", traced.facts, False)
        self._asked = self._compile("asked", traced.asked, False)
        rows = traced.observed.shape
        self._packs = {
            np.float32: (rows, Struct(f"={math.prod(rows)}f").pack_into),
            np.float64: (rows[:1], Struct(f"={rows[0]}d").pack_into),
        }
        self._flags = np.array([[False], [True]]).repeat(game.players, axis=1)
        self._flags.flags.writeable = False

    def _compile(self, name: str, outputs: Any, moves: bool) -> Any:
        writer, fields = PythonLines([outputs]), [f"s{k}" for k in range(self.width)]
        used = writer.inputs.intersection(fields)
        lines = [f"({', '.join(fields)},) = s"]
        if name != "step" and 3 * len(used) < self.width:
            lines = [f"{field} = s[{field[1:]}]" for field in fields if field in used]
        if moves:
            lines.append(f"({', '.join(f'a{k}' for k in range(self.players))},) = a")
        head = f"def {name}(s{', a' * moves}):"
        source = "\n    ".join([head, *lines, *writer.lines, f"return {writer.text(outputs)}"])
        names = {**NAMES, **writer.tables}
        exec(compile(source, f"<{name} of {self.name}>", "exec"), names)
        return names[name]

    def numbers_of(self, state: Any) -> tuple[Any, ...] | None:
        """Return a state's numbers; None if it is no state of one table as these rules know it."""
        entries = state.__dict__
        if entries.get("_rules") is self:
            numbers: tuple[Any, ...] = entries["_numbers"]
            return numbers
        if type(state) is not self.kind or state.round.ndim:
            return None
        listed: list[Any] = []
        for name, slot in self.slots.items():
            array = getattr(state, name)
            if array.shape != slot.shape or array.dtype != slot.dtype:
                return None
            listed += [array] if slot.whole else array.ravel().tolist()
        entries.update(_rules=self, _numbers=tuple(listed))
        return entries["_numbers"]

    def array(self, numbers: tuple[Any, ...], name: str) -> Any:
        """Return a field of a state."""
        begin, stop, shape, dtype, whole, plain = self.slots[name]
        if whole:
            return numbers[begin]
        array = np.array(numbers[begin:stop], dtype)
        return array if len(shape) == 1 else array.reshape(shape)[() if plain else ...]

    def step(self, state: Any, actions: Array) -> tuple[Any, ...] | None:
        """Return the next state and the parts of the outcome.

        None where NumPy's rules have to play: of a table that is over, or answers beyond doubles.
        """
        fits = actions.dtype is INT64 and actions.shape == (self.players,)
        numbers = self.numbers_of(state) if fits else None
        if numbers is None or numbers[self.over]:
            return None
        moves = actions.tolist()
        large = max(moves) > LARGEST or min(moves) < -LARGEST  # then look closer
        if large and any(abs(move) > LARGEST and move != MISSING for move in moves):
            return None
        try:
            next_numbers, rewards, finished, broke = self._step(numbers, moves)
        except WAYS_OUT:
            return None
        next_state = object.__new__(self.kind)
        entries = next_state.__dict__
        entries["_rules"], entries["_numbers"] = self, next_numbers
        record = PlayedRecord(self, numbers, moves)
        flags = self._truths(finished), record, self._truths(broke)
        return next_state, self._filled(np.float64, rewards), *flags

    def _filled(self, dtype: Any, numbers: Sequence[Any]) -> Array:
        """Return numbers as an array, seats first: several times as fast as `numpy.array`."""
        shape, pack = self._packs[dtype]
        array: Any = np.empty(shape, dtype)
        try:
            pack(array, 0, *numbers)
        except OverflowError:  # beyond floats of 32 bits
            array[:] = np.array(numbers, np.float64).reshape(shape)
        return array

    def _truths(self, truths: list[bool]) -> Array:
        if True in truths and False in truths:
            return np.array(truths, np.bool_)
        return self._flags[int(truths[0])]

    def observe(self, state: Any) -> Array | None:
        numbers = self.numbers_of(state)
        return None if numbers is None else self._filled(np.float32, self._observe(numbers))

    def facts(self, state: Any) -> list[Any] | None:
        """Return the values of all facts as plain Python ones."""
        numbers = self.numbers_of(state)
        return None if numbers is None else self._facts(numbers)

    def asked(self, state: Any) -> list[bool] | None:
        numbers = self.numbers_of(state)
        return None if numbers is None else self._asked(numbers)


def scalar_rules(game: Any) -> ScalarRules | str:
    """Return a game's rules for one table, written out as plain Python, or why there are none."""
    if game.players > MOST_PLAYERS:
        return f"more than {MOST_PLAYERS} players"
    try:
        state = before = game.reset(0)
        actions = game.fallback(state)
        for _ in range(2):  # from the second step on all parts have the kinds that they keep
            after, outcome = game.settle(state, actions)
            if after.over:
                break
            before, state = state, after
        rules = ScalarRules(game, before, after, outcome.record)
        after, outcome = game.settle(before, actions)
        expected = after, outcome.rewards, outcome.finished, outcome.record, game.observe(after)
        traced = rules.step(before, actions)
        equal = traced and _same((*traced[:4], rules.observe(traced[0])), expected)
    except Exception as error:  # whatever rules do that stand-ins do not take
        return f"{type(error).__name__}: {error}"
    return rules if equal else "numbers other than NumPy's"


def _same(one: Any, other: Any) -> bool:
    """Test whether states, records and arrays are equal to the bit."""
    if isinstance(one, (np.ndarray, np.generic)):
        alike = one.dtype == other.dtype and one.shape == other.shape
        return bool(alike and one.tobytes() == other.tobytes())
    if isinstance(one, tuple):
        return all(_same(a, b) for a, b in zip(one, other, strict=True))
    if not isinstance(one, Mapping):
        one, other = one.__getstate__(), other.__getstate__()
    return [*one] == [*other] and all(_same(one[name], other[name]) for name in one)


# -- the trace -------------------------------------------------------------------------------------


class Traces(NamedTuple):
    """What the rules make of stand-ins, as cells; of the record as arrays."""

    numbers: dict[str, Node]  # of the next state, of fields that do not stay
    outcome: list[Array]  # rewards, who is finished, who broke a rule
    record: dict[str, TracedArray]
    observed: Array
    facts: list[Array]
    asked: Array


def _traces(game: Any, kind: type[Any], slots: Slots) -> tuple[Traces, set[str]]:
    state, moves = standing_in(kind, slots), inputs("a", 0, game.players, np.int64)
    after, outcome = game.settle(state.replace(over=np.False_, void=np.False_), moves)
    numbers, moved = numbers_after(slots, state, after)
    paid = [lifted(part).cells for part in (outcome.rewards, outcome.finished, outcome.broke)]
    record = {name: lifted(part) for name, part in outcome.record.items()}
    facts = [lifted(fact.of(state)).cells for fact in game.facts]
    observed, asked = lifted(game.observe(state)).cells, lifted(game.asked(state)).cells
    return Traces(numbers, paid, record, observed, facts, asked), moved
