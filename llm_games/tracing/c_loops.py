"""Steps of many tables in one loop of C: traced rules and players, built by the system's compiler.

What is built is kept by the hash of its code. Where there is no compiler, or something does not
trace, there is no loop, and NumPy plays.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

from llm_games.arrays import Array
from llm_games.files import cache_folder, write_whole
from llm_games.tracing.graph import Node, Untraceable, cells_as, kind_of, lifted
from llm_games.tracing.states import (
    FORMS,
    CodeLines,
    Slots,
    inputs,
    numbers_after,
    slots_and,
    standing_in,
)

FLAGS = "-O3 -march=native -ffp-contract=off -fwrapv -fno-math-errno -shared -fPIC -w"
TYPES = {
    "b": "uint8_t",
    "i": "int64_t",
    "u": "uint64_t",
    "f": "double",
    "h": "float",
    "t": "int64_t *",
}
HEAD = """#include <iso646.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#define True 1
#define False 0
#define inf INFINITY
#define nan NAN
#define absolute(x) _Generic((x), float: fabsf, double: fabs, default: llabs)(x)
static inline int64_t within(int64_t i, int64_t n) {
  i += i < 0 ? n : 0;
  return (uint64_t)i < (uint64_t)n ? i : 0;
}
static inline int64_t over(int64_t a, int64_t b) {
  if (!b) return 0;
  int64_t q = a / b;
  return q - ((a % b != 0) & ((a < 0) != (b < 0)));
}
static inline int64_t rest(int64_t a, int64_t b) { return b ? a - b * over(a, b) : 0; }
#define SORT(name, at, new) \\
static inline int64_t *name(const int64_t *v, int64_t n, int64_t *r) { \\
  for (int64_t i = 0, k; i < n; r[k] = new, i++) \\
    for (k = i; k && at(r[k - 1]) > v[i]; k--) r[k] = r[k - 1]; \\
  return r; \\
}
#define VALUE(x) (x)
#define PLACE(x) v[x]
SORT(sort, VALUE, v[i])
SORT(argsort, PLACE, i)
#define BEST(place, extreme, sign) \\
static inline int64_t place(const int64_t *v, int64_t n) { \\
  int64_t best = 0; \\
  for (int64_t i = 1; i < n; i++) if (v[i] sign v[best]) best = i; \\
  return best; \\
} \\
static inline int64_t extreme(const int64_t *v, int64_t n) { return v[place(v, n)]; }
BEST(argmax, maximum, >)
BEST(argmin, minimum, <)
"""


class CLines(CodeLines):
    """Lines of C; `sizes` are those of stored arrays by place."""

    forms: ClassVar[dict[str, str]] = FORMS | {
        "floor_divide": "over({0}, {1})",
        "remainder": "rest({0}, {1})",
    }

    def __init__(self, groups: Sequence[Any], sizes: Mapping[int, int]) -> None:
        self.sizes = sizes
        super().__init__(groups)

    def written(self, part: Node, texts: list[str]) -> str:
        text = super().written(part, texts)
        return f"{text[:-1]}, (int64_t[{len(texts)}]){{0}})" if part.kind == "t" else text

    def literal(self, number: Any, kind: str) -> str:
        return f"(({TYPES[kind]}){number.item()!r})"

    def looked_up(self, part: Node, index: str) -> str:
        whole = part.args[1]
        if part.op == "load":
            return f"p{whole}[{self.place(index, self.sizes[whole])} * N + t]"
        return f"{self.table(whole)}[{self.place(index, whole.array.size)}]"

    def chosen(self, condition: str, yes: str, no: str) -> str:
        return f"({condition} ? {yes} : {no})"

    def row(self, kind: str, texts: list[str]) -> str:
        return f"((const {TYPES[kind]}[]){{{', '.join(texts)}}})"

    def place(self, index: str, count: int) -> str:
        return f"within({index}, {count})"

    def assigned(self, name: str, part: Node, text: str) -> str:
        return f"const {TYPES[part.kind]} {name} = {text};"

    def cast(self, taken: str, kind: str, text: str) -> str:
        return f"{text} != 0" if kind == "b" else f"({TYPES[kind]}){text}"


# -- the compiler ----------------------------------------------------------------------------------


def built(source: str) -> Any:
    """Return the library of a source, from the cache or the system's compiler; else Untraceable."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise Untraceable("there is no C compiler")
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text("utf-8").splitlines() if cpu.exists() else []
    here = [platform.platform(), *(line for line in lines if line.startswith("flags"))][:2]
    key = hashlib.sha256("\0".join([compiler, FLAGS, *here, source]).encode()).hexdigest()
    library = cache_folder() / f"{key[:32]}.so"
    with suppress(OSError):
        return ctypes.CDLL(str(library))
    with TemporaryDirectory() as folder:
        code, result = Path(folder, "loop.c"), Path(folder, "loop.so")
        code.write_text(source, "utf-8")
        command = [compiler, *FLAGS.split(), str(code), "-o", str(result), "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        with suppress(OSError):  # a folder that cannot be written is passed over
            write_whole(library, result.read_bytes())
        return ctypes.CDLL(str(result))


# -- the loop --------------------------------------------------------------------------------------

PAD = 8  # entries between rows, which would share the cache's lines at powers of 2
STORED = {"?": "uint8_t", "b": "int8_t", "B": "uint8_t", "i": "int32_t", "l": "int64_t"}
STORED |= {"L": "uint64_t", "q": "int64_t", "Q": "uint64_t", "d": "double", "f": "float"}
PARTS = {"moved": "b", "moves": "i", "reward": "f", "payoff": "f", "finished": "b", "acted": "b"}
PARTS |= {"broke": "b", "action": "i", "steps": "i", "keys": "u", "decided": "i"}
"""Arrays of a step, ``(tables,)``, the last two ``(players, tables)``, and their kinds."""
OF_SEATS = {"k": np.uint64, "d": np.int64}  # inputs: a player's key, and how often it decided
OPEN = f"""int64_t play(
  int64_t N, void **state, void **part, void **table, int64_t played, int64_t most) {{
const int64_t M = N + {PAD};
const uint8_t *due = part[0];
float *out = part[1];"""


class TableLoop:
    """Steps of a game's tables until a seat is asked, while `decide` decides for the others.

    ``decide(state, moves, keys, counts)`` returns everybody's moves from stand-ins ``(players, 1)``
    of moves that were made, and of the keys of players' noise and the numbers of their decisions.
    """

    def __init__(self, game: Any, seat: int, decide: Callable[..., Any], longest: int) -> None:
        state = game.reset(0, (1,))
        after, _ = game.settle(state, game.fallback(state))
        self.kind, self.seat = type(state), seat
        trace = partial(self._trace, game, decide)
        self.slots, groups = slots_and(trace, state, after)
        self.columns = len(groups[-1])
        self.source, self._count = self._source(groups, longest), 0
        self._known: dict[str, tuple[list[Any], Any]] = {}
        self._fields: dict[str, Array] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a copy of what holds it makes its own

    def build(self) -> None:
        """Compile the loop, or take it from the cache; Untraceable without a compiler."""
        self._library = built(self.source)
        number, pointers = ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p)
        self._library.play.argtypes = [number, pointers, pointers, pointers, number, number]
        self._library.play.restype = number

    def _trace(
        self, game: Any, decide: Callable[..., Any], slots: Slots
    ) -> tuple[list[Any], set[str]]:
        """Return groups of nodes: who is asked; what a step brings; what is observed."""
        seat, state, none = self.seat, standing_in(self.kind, slots), np.zeros(1, np.bool_)
        going = state.replace(over=none, void=none)
        asked, moves = lifted(game.asked(going)), lifted(np.zeros((game.players, 1), np.int64))
        moves[seat] = inputs("move", 0, 1, np.int64)
        keys, counts = (inputs(x, 0, game.players, t, (-1, 1)) for x, t in OF_SEATS.items())
        after, outcome = game.settle(going, decide(game, going, asked, moves, keys, counts))
        numbers, moved = numbers_after(slots, state, after)
        mine = outcome.rewards, outcome.finished, outcome.broke, outcome.record["actions"]
        paid = [lifted(part)[seat].cells.item() for part in mine]
        seen = cells_as(game.observe(state)[seat, 0], np.float32)
        return [asked.cells[seat], paid, numbers, [*asked.cells.ravel()], seen], moved

    def _source(self, groups: list[Any], longest: int) -> str:
        asked, paid, numbers, others, seen = groups
        sizes = {slot.begin: int(np.prod(slot.shape)) for slot in self.slots.values() if slot.whole}
        play = CLines([asked, [paid, [*numbers.values()], others]], sizes)
        look = CLines([seen], sizes)
        self._tables = [*play.tables.values()]
        fields, cells = list[str](), dict[str, tuple[str, str]]()
        for place, (name, table) in enumerate(play.tables.items()):
            fields.append(f"const {STORED[table.dtype.char]} *{name} = table[{place}];")
        for place, slot in enumerate(self.slots.values()):
            fields.append(f"{STORED[slot.dtype.char]} *p{slot.begin} = state[{place}];")
            for k in range(slot.begin, slot.stop) if not slot.whole else ():
                cell = f"p{slot.begin}[{k - slot.begin} * M + t]"
                cells[f"s{k}"] = TYPES[kind_of(slot.dtype)], cell
        drawing = [k for k in range(len(others)) if {f"k{k}", f"d{k}"} & play.inputs]
        self.draws = bool(drawing)
        given = [*PARTS.items()][: None if drawing else -2]
        parts = [f"{TYPES[k]} *{name} = part[{i + 2}];" for i, (name, k) in enumerate(given)]
        new = [(f"n{name}", name, play.text(cell)) for name, cell in numbers.items()]
        new = [entry for entry in new if entry[1] != entry[2]]
        reward, finished, broke, action = map(play.text, paid)
        return "\n".join([
            HEAD, OPEN, *fields, *parts, "for (int64_t t = 0; t < N; t++) {",
            *(f"{kind} {name} = {cell};" for name, (kind, cell) in cells.items()),
            "for (int64_t step = 0; due[t]; step++) {", "const int64_t move0 = moves[t];",
            *(f"uint64_t k{k} = keys[{k} * N + t]; int64_t d{k} = decided[{k} * N + t];"
              for k in drawing),
            *play.lines[: play.ends[0]],
            f"if (({play.text(asked.item())}) > moved[t] || finished[t]",
            f"    || s{self.slots['round'].begin} - played >= most) break;",
            f"if (step == {longest}) return 1;", *play.lines[play.ends[0] :],
            f"reward[t] += {reward}; payoff[t] += {reward}; finished[t] = {finished}; steps[t]++;",
            f"if (moved[t]) {{ acted[t] = 1; broke[t] = {broke}; action[t] = {action};",
            "moved[t] = 0; moves[t] = 0; }",
            *(f"decided[{k} * N + t] += {play.text(others[k])};" for k in drawing),
            *(f"const {cells[name][0]} {fresh} = {text};" for fresh, name, text in new),
            *(f"{name} = {fresh};" for fresh, name, _ in new), "}",
            *(f"{cell} = {name};" for name, (_, cell) in cells.items()), *look.lines,
            *(f"out[t * {len(seen)} + {k}] = {look.text(n)};" for k, n in enumerate(seen)),
            "} return 0; }\n",
        ])  # fmt: skip

    def fits(self, state: Any) -> bool:
        entries = ((getattr(state, name), slot) for name, slot in self.slots.items())
        return all(a.shape[:-1] == s.shape[:-1] and a.dtype == s.dtype for a, s in entries)

    def play(
        self, state: Any, due: Array, parts: Mapping[str, Array], played: int, most: int
    ) -> tuple[Any, Array] | None:
        """Play at the tables in `due`; return the state after it and what the seat observes.

        `parts` are changed in place, as are the arrays of states that it returned before. An
        episode stops at the round `most` after `played`. None if a game never ends.
        """
        count = len(due)
        if self._count != count:
            self._count, self._known, self._fields = count, {}, {}
        for name, slot in self.slots.items():
            array = getattr(state, name)
            if self._fields.get(name) is not array:
                self._fields[name] = _padded(array, 0 if slot.whole else PAD)
        seen = np.empty((count, self.columns), np.float32)
        fields = self._pointers("state", self._fields.values())
        tables = self._pointers("table", self._tables)
        own = [due, seen, *(parts[name] for name in PARTS if name in parts)]
        parts_here = self._pointers("part", own)
        if self._library.play(count, fields, parts_here, tables, played, most):
            return None
        return state.replace(**self._fields), seen

    def _pointers(self, kind: str, arrays: Any) -> Any:
        arrays = [*arrays]
        empty = [None] * len(arrays), (ctypes.c_void_p * len(arrays))()
        before, addresses = self._known.setdefault(kind, empty)
        for k, array in enumerate(arrays):
            if before[k] is not array:
                before[k], addresses[k] = array, array.ctypes.data
        return addresses


def _padded(array: Array, pad: int) -> Array:
    """Return a copy with some entries between its rows of tables."""
    *rest, tables = array.shape
    copied = np.empty((*rest, tables + pad), array.dtype)[..., :tables]
    copied[:] = array
    return copied
