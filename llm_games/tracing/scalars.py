"""The rules of one small table as plain Python on numbers, traced and compiled in this process.

A state is then lists of numbers, one a field, and the arrays of fields that stay as they are in a
game. Other arrays are made when somebody reads them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from struct import Struct
from typing import Any

import numpy as np

from llm_games.arrays import Array, Later
from llm_games.facts import LARGEST
from llm_games.questions import MISSING
from llm_games.tracing.code import PYTHON, Code, changes, inputs, listed, standing_in
from llm_games.tracing.graph import lifted

MOST_PLAYERS = 64
INT64 = np.dtype(np.int64)
WAYS_OUT = ArithmeticError, IndexError, ValueError  # NumPy may know an answer, or says the error
NAMES: dict[str, Any] = {
    "floor": lambda x: math.copysign(math.floor(x), x),
    "ceil": lambda x: math.copysign(math.ceil(x), x),
    "rint": lambda x: math.copysign(round(x), x),
    **{name: getattr(math, name) for name in ("sqrt", "nan", "inf")},
}


class PlayedRecord(Later):
    """The record of a step, worked out at its first look-up."""

    def __init__(self, rules: ScalarRules, *due: list[Any]) -> None:
        self._rules, self._due = rules, due

    _of: Any = property(lambda record: record._rules.recorded)

    @cached_property
    def _parts(self) -> dict[str, Any]:
        return dict(zip(self, self._rules.record(*self._due), strict=True))

    def __getitem__(self, name: str) -> Any:
        is_played = name == "actions"  # what is read most
        part = self._rules.played(*self._due) if is_played else self._parts[name]
        return _array(part, self._of[name])


class ScalarRules:
    """A game's `step`, `observe`, facts and who is asked, on a table's numbers.

    Made of a state, and of the state and record that NumPy's rules make of it.
    """

    def __init__(self, game: Any, state: Any, next_state: Any, record: Mapping[str, Any]) -> None:
        self.game, self.kind, fields = game, type(state), vars(state)
        self.kinds = [(array.shape, array.dtype) for array in fields.values()]
        forms = map(_form, fields.values(), vars(next_state).values())
        self.slots = {
            name: (k, form) for k, (name, form) in enumerate(zip(fields, forms, strict=True))
        }
        before, moves = standing_in(state), inputs([f"a{k}" for k in range(game.players)], INT64)
        after, outcome = game.settle(before.replace(over=np.False_, void=np.False_), moves)
        changed = changes(before, after)
        self.stays = [name for name, (k, _) in self.slots.items() if k not in changed]
        parts = {name: lifted(part) for name, part in outcome.record.items()}
        self.recorded = {name: _form(part, record[name]) for name, part in parts.items()}
        numbers = [*(changed.get(k, f"s{k}") for k in range(len(fields))), "arrays"]
        self._over, self._nobody = self.slots["over"][0], bytes(game.players)
        finished, broke = (tuple(listed(truths)) for truths in (outcome.finished, outcome.broke))
        outputs, paid = [numbers, finished, broke], listed(outcome.rewards)
        self._step = self._compile("step", outputs, "s, a, into", paid)
        self.played = self._compile("played", listed(parts["actions"]), "s, a")
        self.record = self._compile("record", [*map(listed, parts.values())], "s, a")
        seen = lifted(game.observe(before))
        self._observe = self._compile("observe", [], "s, into", listed(seen.reshape(-1)), "f")
        facts = [listed(fact.of(before)) for fact in game.facts]
        self.facts, self.asked = self._reader(facts), self._reader(listed(game.asked(before)))
        self._shapes = seen.shape, seen.shape[:1]

    def _compile(
        self, name: str, outputs: list[Any], given: str = "s", packed: Any = (), kind: str = "d"
    ) -> Any:
        """Return a function that returns its outputs, and packs other numbers of this kind."""
        code, fields = Code([outputs, *packed], PYTHON), (f"s{k}" for k in range(len(self.slots)))
        lines = [f"{', '.join(fields)}, arrays = s"]
        if "a" in given:
            lines.append(f"{', '.join(f'a{k}' for k in range(self.game.players))}, = a")
        pack = f"pack(into, 0, {', '.join(map(code.text, packed))})"
        lines += [*code.lines, *[pack] * bool(packed), f"return {code.text(outputs)}"]
        names = NAMES | {f"c{k}": table.ravel().tolist() for k, table in enumerate(code.tables)}
        names["pack"] = Struct(f"{len(packed)}{kind}").pack_into
        source = "\n    ".join([f"def {name}({given}):", *lines])
        exec(compile(source, f"<{name} of {self.game.name}>", "exec"), names)
        return names[name]

    def _reader(self, outputs: list[Any]) -> Callable[[Any], Any]:
        """Return a function of a state, whose answer is None where `numbers_of` has none."""
        read, numbers_of = self._compile("read", outputs), self.numbers_of
        return lambda state: None if (numbers := numbers_of(state)) is None else read(numbers)

    def numbers_of(self, state: Any) -> Any:
        """Return a state's numbers; None if it is no state of one table as these rules know it."""
        entries = vars(state)
        if entries.get("_rules") is self:
            return entries["_numbers"]
        arrays = {n: getattr(state, n) for n in self.slots} if type(state) is self.kind else {}
        if [(array.shape, array.dtype) for array in arrays.values()] != self.kinds:
            return None
        numbers: list[Any] = [array.ravel().tolist() for array in arrays.values()]
        numbers.append({name: arrays[name] for name in self.stays})
        entries.update(_rules=self, _numbers=numbers)
        return numbers

    def array(self, numbers: list[Any], name: str) -> Any:
        """Return a field of a state."""
        place, form = self.slots[name]
        return numbers[-1][name] if name in numbers[-1] else _array(numbers[place], form)

    def step(self, state: Any, actions: Array) -> tuple[Any, ...] | None:
        """Return the next state and the parts of the outcome.

        None where NumPy's rules have to play: of a table that is over, or answers beyond doubles.
        """
        fits = actions.dtype is INT64 and actions.shape == self._shapes[1]
        numbers = self.numbers_of(state) if fits else None
        if numbers is None or numbers[self._over][0]:
            return None
        moves, paid = actions.tolist(), np.empty(self._shapes[1])
        try:
            next_numbers, finished, broke = self._step(numbers, moves, paid)
        except WAYS_OUT:
            return None
        # What breaks no rule is not large.
        if broke and any(abs(move) > LARGEST and move != MISSING for move in moves):
            return None
        next_state = object.__new__(self.kind)
        entries = next_state.__dict__
        entries["_rules"], entries["_numbers"] = self, next_numbers
        record, nobody = PlayedRecord(self, numbers, moves), self._nobody
        return next_state, paid, _truths(finished or nobody), record, _truths(broke or nobody)

    def observe(self, state: Any) -> Array | None:
        if (numbers := self.numbers_of(state)) is None:
            return None
        seen = np.empty(self._shapes[0], np.float32)
        self._observe(numbers, seen)
        return seen


def _form(array: Any, made: Any) -> tuple[Any, ...]:
    """Return how numbers become an array, or, as NumPy `made` it, a number."""
    return array.dtype, array.shape, () if isinstance(made, np.generic) else ...


def _array(numbers: list[Any], form: tuple[Any, ...]) -> Any:
    array = np.array(numbers, form[0])
    whole = form[2] is ... and array.shape == form[1]
    return array if whole else array.reshape(form[1])[form[2]]


@lru_cache(4096)
def _truths(flags: bytes) -> Array:
    return np.frombuffer(flags, np.bool_)


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
        expected = after, outcome.rewards, outcome.finished, outcome.record, outcome.broke
        played = rules.step(before, actions)
        equal = played and _bits(rules, *played) == _bits(game, *expected)
    except Exception as error:  # whatever rules do that stand-ins do not take
        return f"{type(error).__name__}: {error}"
    return rules if equal else "numbers other than NumPy's"


def _bits(rules: Any, state: Any, rewards: Any, finished: Any, record: Any, broke: Any) -> Any:
    parts = [*state.__getstate__().items(), *record.items()]
    parts += enumerate((rewards, finished, broke, rules.observe(state)))
    return [(name, array.dtype, array.shape, array.tobytes()) for name, array in parts]
