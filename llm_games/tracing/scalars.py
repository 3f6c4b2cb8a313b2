"""The rules of one small table as plain Python on numbers, traced and compiled in this process.

A state is then lists of numbers, one a field, and the arrays of fields that stay as they are in a
game. Other arrays are made when somebody reads them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from operator import itemgetter
from struct import Struct
from typing import Any

import numpy as np

from llm_games.arrays import Array, Recorded
from llm_games.facts import LARGEST
from llm_games.questions import MISSING
from llm_games.tracing.graph import PYTHON, changes, inputs, lifted, standing_in, written

MOST_PLAYERS = 64
INT64 = np.dtype(np.int64)
WAYS_OUT = ArithmeticError, IndexError, ValueError  # NumPy may know an answer, or says the error


class ScalarRules:
    """A game's `step`, `observe`, facts and who is asked, on a table's numbers.

    Made of a state of a game under way. `facts` and `asked` are functions of a state, whose answer
    is None where `numbers_of` has none.
    """

    def __init__(self, game: Any, state: Any) -> None:
        self.game, self.kind = game, type(state)
        self.slots = {name: k for k, name in enumerate(vars(state))}
        fields = {name: f"s_{name}" for name in self.slots}
        self.forms = {name: (array.dtype, array.shape) for name, array in vars(state).items()}
        before, moves = standing_in(state), inputs([f"a[{k}]" for k in range(game.players)], INT64)
        after, outcome = game.settle(before.replace(over=np.False_, void=np.False_), moves)
        parts = {name: lifted(part) for name, part in outcome.record.items()}
        paid = outcome.rewards, outcome.finished, outcome.broke, parts["actions"]
        changed = changes(before, after)
        self._recorded = {name: (part.dtype, part.shape) for name, part in parts.items()}
        self._shape, self._nobody = (game.players,), bytes(game.players)

        def stepped(texts: list[Any]) -> str:
            paid, finished, broke, played, *rows = texts
            after = [*(fields | dict(zip(changed, rows, strict=True))).values()]
            flags = [f"bytes({t}) if {' or '.join({*t})} else 0" for t in (finished, broke)]
            return ", ".join(map(str, [paid, after, *flags, played]))

        self._step = self._compile(stepped, [*paid, *changed.values()], packs=True)
        self._record = self._compile(str, parts.values())
        self.observe = self._reader(itemgetter(0), [game.observe(before)], packs=True)
        self.facts = self._reader(str, [fact.of(before) for fact in game.facts])
        self.asked = self._reader(itemgetter(0), [game.asked(before)])

    def _compile(self, write: Callable[[Any], str], arrays: Any, packs: bool = False) -> Any:
        """Return a function of numbers and moves that returns what is to `write` of arrays' texts.

        If it `packs`, the first of them is an array of NumPy, not a list.
        """
        (first, *others), tables = map(lifted, arrays), dict[str, Any]()
        shown = [first.reshape(-1) if packs else first, *others]
        lines, texts = written(shown, PYTHON, tables)
        names = vars(math) | {name: table.ravel().tolist() for name, table in tables.items()}
        if packs:
            names["new"] = partial(np.empty, first.shape, first.dtype)
            names["pack"] = Struct(f"{first.size}{first.dtype.char}").pack_into
            texts[0] = f"pack(made := new(), 0, {', '.join(texts[0])}) or made"
        head = "def play(s, a=None):", f"{', '.join(f's_{name}' for name in self.slots)} = s"
        source = "\n    ".join([*head, *lines, f"return {write(texts)}"])
        source = source.replace("'", "")  # those that Python puts around texts in lists
        exec(compile(source, f"<{self.game.name}>", "exec"), names)
        return names["play"]

    def _reader(self, *way: Any, **packs: Any) -> Callable[[Any], Any]:
        read = self._compile(*way, **packs)
        return lambda state: (numbers := self.numbers_of(state)) and read(numbers)

    def numbers_of(self, state: Any) -> Any:
        """Return a state's numbers; None if it is no state of one table as these rules know it."""
        entries = vars(state)
        if entries.get("_rules") is self:
            return entries["_numbers"]
        arrays = {n: getattr(state, n) for n in self.slots} if type(state) is self.kind else {}
        if {name: (array.dtype, array.shape) for name, array in arrays.items()} != self.forms:
            return None
        numbers = [array.ravel().tolist() for array in arrays.values()]
        entries.update(_rules=self, _numbers=numbers)
        return numbers

    def array(self, numbers: list[Any], name: str) -> Any:
        """Return a field of a state."""
        return _array(numbers[self.slots[name]], *self.forms[name])

    def record(self, *played: list[Any]) -> dict[str, Callable[[], Array]]:
        """Return the record of a step from numbers by moves; its arrays are made when read."""
        parts = zip(self._recorded.items(), self._record(*played), strict=True)
        return {name: partial(_array, part, *form) for (name, form), part in parts}

    def step(self, state: Any, actions: Array) -> tuple[Any, ...] | None:
        """Return the next state and the parts of the outcome.

        None where NumPy's rules have to play: of a table that is over, or answers beyond doubles.
        """
        fits = actions.dtype is INT64 and actions.shape == self._shape
        numbers = self.numbers_of(state) if fits else None
        if numbers is None or numbers[self.slots["over"]][0]:
            return None
        try:
            paid, after, finished, broke, played = self._step(numbers, moves := actions.tolist())
        except WAYS_OUT:
            return None
        # What breaks no rule is not large.
        if broke and any(abs(move) > LARGEST and move != MISSING for move in moves):
            return None
        next_state = object.__new__(self.kind)
        entries = next_state.__dict__
        entries["_rules"], entries["_numbers"] = self, after
        record, nobody = Recorded(played, self.record, numbers, moves), self._nobody
        return next_state, paid, _truths(finished or nobody), record, _truths(broke or nobody)


def _array(numbers: list[Any], dtype: Any, shape: tuple[int, ...]) -> Any:
    return np.array(numbers, dtype).reshape(shape)[()]


@lru_cache(4096)
def _truths(flags: bytes) -> Array:
    return np.frombuffer(flags, np.bool_)


def scalar_rules(game: Any) -> ScalarRules | str:
    """Return a game's rules for one table, written out as plain Python, or why there are none."""
    if game.players > MOST_PLAYERS:
        return f"more than {MOST_PLAYERS} players"
    try:
        actions = game.fallback(state := game.reset(0))
        after, _ = game.settle(state, actions)
        state = state if after.over else after  # whose fields have the kinds that they keep
        rules = ScalarRules(game, state)
        played, (after, outcome) = rules.step(state, actions), game.settle(state, actions)
        expected = after, outcome.rewards, outcome.finished, outcome.record, outcome.broke
        equal = played and _bits(rules, *played) == _bits(game, *expected)
    except Exception as error:  # whatever rules do that stand-ins do not take
        return f"{type(error).__name__}: {error}"
    return rules if equal else "numbers other than NumPy's"


def _bits(rules: Any, state: Any, rewards: Any, finished: Any, record: Any, broke: Any) -> Any:
    parts = rewards, finished, broke, rules.observe(state), *record.values()
    return [(a.dtype, a.shape, a.tobytes()) for a in (*state.__getstate__().values(), *parts)]
