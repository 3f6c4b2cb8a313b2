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
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.files import cache_folder, write_whole
from llm_games.tracing.graph import Node, Untraceable, cells_as, kind_of, lifted
from llm_games.tracing.states import (
    SIGNS,
    CodeLines,
    Slots,
    inputs,
    numbers_after,
    slots_and,
    standing_in,
)

FLAGS = "-O3 -march=native -ffp-contract=off -fwrapv -fno-math-errno -shared -fPIC -w"
TYPES = {"b": "uint8_t", "i": "int64_t", "u": "uint64_t", "f": "double", "h": "float"}
FORMS = {"floor_divide": "over({0}, {1})", "remainder": "rest({0}, {1})", "invert": "~{0}"}
FORMS |= {"negative": "-{0}", "floor": "floor({0})", "trunc": "trunc({0})", "rint": "rint({0})"}
FORMS |= {"ceil": "ceil({0})", "sqrt": "sqrt({0})"}
FORMS |= {"isnan": "{0} != {0}", "sign": "({0} > 0) - ({0} < 0)", "absolute": "fabs({0})"}
HEAD = """#include <math.h>
#include <stdint.h>
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
static inline void argsort(const int64_t *v, int64_t *order, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    int64_t k = i;
    for (; k && v[order[k - 1]] > v[i]; k--) order[k] = order[k - 1];
    order[k] = i;
  }
}
static inline void sort(const int64_t *v, int64_t *sorted, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    int64_t k = i;
    for (; k && sorted[k - 1] > v[i]; k--) sorted[k] = sorted[k - 1];
    sorted[k] = v[i];
  }
}
static inline int64_t argmax(const int64_t *v, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++) if (v[i] > v[best]) best = i;
  return best;
}
static inline int64_t argmin(const int64_t *v, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++) if (v[i] < v[best]) best = i;
  return best;
}
"""


class CLines(CodeLines):
    """The same as `PythonLines`, as lines of C; `sizes` are those of stored arrays by place."""

    twice = CodeLines.twice | {"absolute"}

    def __init__(self, groups: Sequence[Any], sizes: Mapping[int, int]) -> None:
        self.sizes = sizes
        super().__init__(groups)

    def assigned(self, name: str, written: Node, text: str) -> str:
        return f"const {TYPES[written.kind]} {name} = {text};"

    def written(self, node: Node, parts: list[str], name: str) -> str:
        op, kind = node.op, node.kind
        if op == "const":
            return _literal(node.args[0], kind)
        if op == "input":
            return str(node.args[0])
        if op == "load":
            return f"p{node.args[1]}[within({parts[0]}, {self.sizes[node.args[1]]}) * N + t]"
        if op == "look":
            name = self.table(node.args[1])
            return f"{name}[within({parts[0]}, {node.args[1].array.size})]"
        if op == "entry":
            return f"{parts[0]}[{node.args[1]}]"
        if op == "where":
            return f"({parts[0]} ? {parts[1]} : {parts[2]})"
        if op in ("pick", "sort", "argsort", "argmax", "argmin"):
            return self._of_row(node, parts, name)
        if op in ("minimum", "maximum"):
            return self._extreme(op, kind, parts, name)
        return f"({_form(node, parts)})"

    def _of_row(self, node: Node, parts: list[str], name: str) -> str:
        op = node.op
        entries = node.args[1:] if op == "pick" else node.args
        row = ", ".join(parts[1:] if op == "pick" else parts)
        count = len(entries)
        const = "static " * all(entry.op == "const" for entry in entries)
        self.lines.append(f"{const}const {TYPES[entries[0].kind]} r{name}[] = {{{row}}};")
        if op == "pick":
            return f"r{name}[within({parts[0]}, {count})]"
        if op in ("argmax", "argmin"):
            return f"{op}(r{name}, {count})"
        self.lines.append(f"int64_t {name}[{count}]; {op}(r{name}, {name}, {count});")
        return name

    def _extreme(self, op: str, kind: str, parts: list[str], name: str) -> str:
        sign, best = "<" if op == "minimum" else ">", parts[0]
        for k, part in enumerate(parts[1:]):
            nan = f" || {best} != {best}" * (kind in "fh")
            text = f"({best} {sign}= {part}{nan} ? {best} : {part})"
            if k < len(parts) - 2:
                self.lines.append(f"const {TYPES[kind]} m{name}_{k} = {text};")
                text = f"m{name}_{k}"
            best = text
        return best


def _literal(number: Any, kind: str) -> str:
    if kind == "i":
        least = -(2**63)
        return f"({number + 1}LL - 1)" if number == least else f"{number}LL"
    if kind == "u":
        return f"{number}ULL"
    if kind == "b":
        return str(int(number))
    if not np.isfinite(number):
        return "NAN" if np.isnan(number) else ("INFINITY" if number > 0 else "(-INFINITY)")
    return f"({TYPES[kind]}){float(number).hex()}"


def _form(node: Node, parts: list[str]) -> str:
    op, kind, taken = node.op, node.kind, node.args[0].kind
    if op == "cast":
        return f"{parts[0]} != 0" if kind == "b" else f"({TYPES[kind]}){parts[0]}"
    if op == "invert" and kind == "b":
        return f"!{parts[0]}"
    if op in ("floor_divide", "remainder") and taken != "i":
        raise Untraceable(f"np.{op} of such numbers is not traced")
    if op == "absolute" and kind == "i":
        return f"{parts[0]} < 0 ? -{parts[0]} : {parts[0]}"
    if op in FORMS:
        return FORMS[op].format(*parts)
    return f"{parts[0]} {SIGNS[op]} {parts[1]}"


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
STORED = {
    "?": "uint8_t",
    "b": "int8_t",
    "B": "uint8_t",
    "i": "int32_t",
    "l": "int64_t",
    "L": "uint64_t",
}
STORED |= {"q": "int64_t", "Q": "uint64_t", "d": "double", "f": "float"}
PARTS = {"moved": "b", "moves": "i", "reward": "f", "payoff": "f", "finished": "b", "acted": "b"}
PARTS |= {"broke": "b", "action": "i", "steps": "i", "keys": "u", "decided": "i"}
"""Arrays of a step, ``(tables,)``, the last two ``(players, tables)``, and their kinds."""
OF_SEATS = {"k": np.uint64, "d": np.int64}  # inputs: a player's key, and how often it decided
BODY = """
int64_t play(
  int64_t N, void **state, void **part, void **table, int64_t played, int64_t most)
{{
const int64_t M = N + PAD;
const uint8_t *due = part[0];
float *out = part[1];
{fields}
for (int64_t t = 0; t < N; t++) {{
{loads}
for (int64_t step = 0; due[t]; step++) {{
const int64_t move0 = moves[t];
{asking}
if ((({asked}) > moved[t]) || finished[t] || ({round}) - played >= most) break;
if (step == LONGEST) return 1;
{playing}
reward[t] += {reward}; payoff[t] += {reward}; finished[t] = {finished}; steps[t]++;
if (moved[t]) {{
acted[t] = 1; broke[t] = {broke}; action[t] = {action}; moved[t] = 0; moves[t] = 0;
}}
{counts}
{nexts}
}}
{stores}
{seeing}
{seen}
}}
return 0;
}}
"""


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
        fields, loads, stores = [], [], []
        self._tables = [*play.tables.values()]
        for place, (name, table) in enumerate(play.tables.items()):
            fields.append(f"const {STORED[table.dtype.char]} *{name} = table[{place}];")
        for place, slot in enumerate(self.slots.values()):
            kind = STORED[slot.dtype.char]
            fields.append(f"{kind} *p{slot.begin} = state[{place}];")
            for k in range(slot.begin, slot.stop) if not slot.whole else ():
                cell = f"p{slot.begin}[{k - slot.begin} * M + t]"
                loads.append(f"{TYPES[kind_of(slot.dtype)]} s{k} = {cell};")
                stores.append(f"{cell} = s{k};")
        seats = [k for k in range(len(others)) if {f"k{k}", f"d{k}"} & play.inputs]
        self.draws = bool(seats)
        given = [*PARTS.items()][: None if seats else -2]
        parts = [f"{TYPES[k]} *{name} = part[{i + 2}];" for i, (name, k) in enumerate(given)]
        each = [
            f"uint64_t k{k} = keys[{k} * N + t]; int64_t d{k} = decided[{k} * N + t];"
            for k in seats
        ]
        texts = [(name, play.text(n)) for name, n in numbers.items()]
        new = [(name, text) for name, text in texts if text != name]
        counts = [
            f"decided[{k} * N + t] += {play.text(other)};"
            for k, other in enumerate(others)
            if k in seats
        ]
        rounds, kinds = (
            self.slots["round"].begin,
            {name: TYPES[n.kind] for name, n in numbers.items()},
        )
        return HEAD + BODY.replace("LONGEST", str(longest)).replace("PAD", str(PAD)).format(
            fields="\n".join([*fields, *parts]),
            loads="\n".join(loads),
            asking="\n".join([*each, *play.lines[: play.ends[0]]]),
            asked=play.text(asked.item()),
            round=f"s{rounds}",
            playing="\n".join(play.lines[play.ends[0] :]),
            reward=play.text(paid[0]),
            finished=play.text(paid[1]),
            broke=play.text(paid[2]),
            action=play.text(paid[3]),
            counts="\n".join(counts),
            nexts="\n".join(
                [f"const {kinds[name]} n{name} = {text};" for name, text in new]
                + [f"{name} = n{name};" for name, _ in new]
            ),
            stores="\n".join(stores),
            seeing="\n".join(look.lines),
            seen="\n".join(
                f"out[t * {len(seen)} + {k}] = {look.text(n)};" for k, n in enumerate(seen)
            ),
        )

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
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = [None] * len(arrays), (ctypes.c_void_p * len(arrays))()
        before, addresses = known
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
