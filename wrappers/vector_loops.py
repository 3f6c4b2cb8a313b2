"""Vector environments whose steps are played in one loop of C, where all in them traces.

The system's compiler builds it; what is built is kept by the hash of its code. Where there is no
compiler, or something does not trace, NumPy plays.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from llm_games.codecs import Codec
from llm_games.errors import BadParameter
from llm_games.files import cache_folder, write_whole
from llm_games.noise import Noise, counted
from llm_games.rulebook import Array, PerTable
from llm_games.tracing.code import C, Code, c_type, changes, inputs, standing_in
from llm_games.tracing.graph import Untraceable, lifted
from llm_games.view import Sight
from llm_games.wrappers.single_agent import LONGEST_WAIT

FLAGS = "-O3 -march=native -ffp-contract=off -fwrapv -fno-math-errno -shared -fPIC -w"
HEAD = """#include <iso646.h>
#include <math.h>
#include <stdint.h>
#define True 1
#define False 0
#define inf INFINITY
#define nan NAN
typedef uint8_t bool_t;
typedef float float32_t;
typedef double float64_t;
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
int64_t play(int64_t N, int64_t M, int64_t last, void **given) {
"""
PAD = 8  # entries between rows, which would share the cache's lines at powers of 2
PARTS = {"due": "bool", "moved": "bool", "moves": "int64", "reward": "float64"}
PARTS |= {"payoff": "float64", "finished": "bool", "acted": "bool", "broke": "bool"}
PARTS |= {"action": "int64", "steps": "int64", "seen": "float32", "keys": "uint64"}
PARTS |= {"decided": "int64"}
"""Arrays of a step, ``(tables,)``; seen ``(tables, columns)``; the last ``(players, tables)``."""
NEVER = 2**62


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


class TableLoop:
    """Steps of an environment's tables until learners are asked, with what the others decide."""

    def __init__(self, env: Any, rules: list[Any]) -> None:
        self.seat, state = env.seating.seat, env.game.reset(0, (1,))
        self.state, _ = env.game.settle(state, env.game.fallback(state))
        self._addresses: tuple[list[Any], Any] = [], None
        self._fields: list[Array] = []
        self.source = self._trace(env.game, env.seats.sits[:, 0].tolist(), rules)
        self._play = built(self.source).play
        self._play.argtypes = [ctypes.c_int64] * 3 + [ctypes.POINTER(ctypes.c_void_p)]
        self._play.restype = ctypes.c_int64

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a copy of what holds it makes its own

    def _trace(self, game: Any, sits: list[int], rules: list[Any]) -> str:
        seat, state, none = self.seat, standing_in(self.state), np.zeros(1, np.bool_)
        going = state.replace(over=none, void=none)
        asked, moves = lifted(game.asked(going)), lifted(np.zeros((game.players, 1), np.int64))
        moves[seat] = inputs("move", 1, np.int64)
        keys, counts = (inputs(x, game.players, PARTS[x], (-1, 1)) for x in ("keys", "decided"))
        sight = Sight(game, going)
        for other, player in enumerate(sits):
            if other != seat:
                noise = Noise.keyed(counted(keys[other], counts[other]))
                moves[other] = np.where(asked[other], rules[player](sight.view(other), noise), 0)
        after, outcome = game.settle(going, moves)
        mine = outcome.rewards, outcome.finished, outcome.broke, outcome.record["actions"]
        paid = [lifted(part)[seat].cells.item() for part in mine]
        turns, changed = asked.cells.ravel().tolist(), changes(state, after)
        look = Code([turns[seat]], C)
        play = Code([paid, turns, [*changed.values()]], C)
        show = Code(seen := lifted(game.observe(state))[seat, 0].cells.tolist(), C)
        self.columns, self.tables = len(seen), []
        used = {part.args[0] for part in play.uses if part.op == "input"}
        drawing = [k for k in range(game.players) if {f"keys{k}", f"decided{k}"} & used]
        self.draws = bool(drawing)
        # -- where numbers are
        names = {name: f"{kind}_t" for name, kind in PARTS.items()}
        if not drawing:
            names = dict([*names.items()][:-2])
        fields = [*vars(self.state).values()]
        names |= {f"p{k}": c_type(field.dtype) for k, field in enumerate(fields)}
        names |= {name: c_type(table.dtype) for name, table in play.tables.items()}
        self.tables = [*play.tables.values()]
        numbers = [f"const {c_type(f.dtype)} s{k} = p{k}[t];"
                   for k, f in enumerate(fields) if f.size == 1]  # fmt: skip
        new, old = list[str](), [*vars(state).values()]
        stores = list[str]()
        for place, cells in changed.items():
            for k, (cell, before) in enumerate(zip(cells, old[place].cells.ravel(), strict=True)):
                if cell is not before:
                    new.append(f"const {names[f'p{place}']} n{place}_{k} = {play.text(cell)};")
                    stores.append(f"p{place}[{k} * M + t] = n{place}_{k};")
        reward, finished, broke, action = map(play.text, paid)
        return "\n".join([
            HEAD, *(f"{kind} *{name} = given[{k}];" for k, (name, kind) in enumerate(names.items())),
            "for (int64_t t = 0; t < N; t++) {", "for (int64_t step = 0; due[t]; step++) {", *numbers,
            "{", *look.lines, f"if (({look.text(turns[seat])}) > moved[t] || finished[t]",
            f"    || s{[*vars(state)].index('round')} >= last) break; }}",
            f"if (step == {LONGEST_WAIT}) return 1;", "const int64_t move0 = moves[t];",
            *(f"const int64_t decided{k} = decided[{k} * N + t];"
              f"const uint64_t keys{k} = keys[{k} * N + t];" for k in drawing),
            *play.lines, *new,
            f"reward[t] += {reward}; payoff[t] += {reward}; finished[t] = {finished}; steps[t]++;",
            f"if (moved[t]) {{ acted[t] = 1; broke[t] = {broke}; action[t] = {action};",
            "moved[t] = 0; moves[t] = 0; }",
            *(f"decided[{k} * N + t] += {play.text(turns[k])};" for k in drawing), *stores, "}",
            *numbers, *show.lines,
            *(f"seen[t * {len(seen)} + {k}] = {show.text(n)};" for k, n in enumerate(seen)),
            "} return 0; }\n",
        ])  # fmt: skip

    def play_on(self, env: Any, mask: PerTable) -> bool:
        """Play until learners are asked or done at these tables; False if NumPy has to."""
        tables, seats, count, state = env.tables, env.seats, env.num_envs, env.tables.state
        fields = [getattr(state, name) for name in vars(self.state)]
        likes = vars(self.state).values()
        if any(
            a.shape[:-1] != b.shape[:-1] or a.dtype != b.dtype
            for a, b in zip(fields, likes, strict=True)
        ):
            return False
        if len(self._fields) != len(fields) or any(
            a is not b for a, b in zip(fields, self._fields)
        ):
            self._fields = [_padded(field) for field in fields]
        acted, action = np.zeros(count, np.bool_), np.zeros(count, np.int64)
        seen, steps = np.empty((count, self.columns), np.float32), tables.steps.copy()
        parts = [mask, env._moved, env._moves[self.seat], env._reward, env._payoff, env._finished]
        parts += [acted, env._broke, action, steps, seen]
        drawn = [_of_all(seats, name) for name in ("keys", "decided")] if self.draws else []
        addresses = self._pointers([*parts, *drawn, *self._fields, *self.tables])
        last = NEVER if env.max_cycles is None else env.game.begun + env.max_cycles
        if self._play(count, count + PAD, last, addresses):
            raise BadParameter(f"{env.game.name}: nobody ends the game; set max_cycles")
        env._acted |= acted
        env._action[acted] = env.game.in_units(action)[acted]
        if self.draws:
            seats.memories = [
                memory._replace(decided=np.where(seats.sits == k, drawn[1], memory.decided))
                for k, memory in enumerate(seats.memories)
            ]
        tables.go_on(state.replace(**dict(zip(vars(self.state), self._fields))), steps)
        if env.obs_mode != "text":
            vars(env._view())["numbers"] = seen
        return True

    def _pointers(self, arrays: list[Any]) -> Any:
        before, addresses = self._addresses
        if len(before) != len(arrays):
            before, addresses = [None] * len(arrays), (ctypes.c_void_p * len(arrays))()
            self._addresses = before, addresses
        for k, array in enumerate(arrays):
            if before[k] is not array:
                before[k], addresses[k] = array, array.ctypes.data
        return addresses


def loop_of(env: Any) -> TableLoop | str:
    """Return the loop of a `GameVectorEnv` that was reset, or why there is none."""
    game, seats = env.game, env.seats
    if isinstance(env.seating.seat, str) or game.core is not game or game.division is not None:
        return "the learner's seat changes, players talk, or moves are plans"
    if env.regret is not None or type(env.codec).begin is not Codec.begin:
        return "what is told needs the records of all steps"
    if seats.listens or seats.look_back:
        return "players remember what they hear"
    if any(_depth(p, "plain") > _depth(p, "decide_batch") for p in seats.policies):
        return "a player decides otherwise than the rules of its base"
    rules = [p.plain(m) for p, m in zip(seats.policies, seats.memories, strict=True)]
    if None in rules:
        return "not all players are rules"
    try:
        return TableLoop(env, rules)
    except Exception as error:  # whatever rules do that stand-ins do not take, and compilers
        return f"{type(error).__name__}: {error}"


def _depth(policy: Any, name: str) -> int:
    """Return how far up among the bases of a policy a method is defined."""
    return next(k for k, base in enumerate(type(policy).__mro__) if name in vars(base))


def _padded(array: Array) -> Array:
    """Return a copy with some entries between its rows of tables."""
    *rest, tables = array.shape
    copied = np.empty((*rest, tables + PAD), array.dtype)[..., :tables]
    copied[:] = array
    return copied


def _of_all(seats: Any, name: str) -> Array:
    """Return an array of all players' memories, each with its own seats."""
    each = [getattr(memory, name) * (seats.sits == k) for k, memory in enumerate(seats.memories)]
    return np.ascontiguousarray(sum(each[1:], each[0]))
