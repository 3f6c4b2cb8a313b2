"""Vector environments whose steps are played in one loop of C, where all in them traces.

The system's compiler builds it; what is built is kept by the hash of its code. Where there is no
compiler, or something does not trace, NumPy plays.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from llm_games.codecs import Codec
from llm_games.errors import BadParameter
from llm_games.files import cache_folder, write_whole
from llm_games.noise import Noise, counted
from llm_games.rulebook import Array, PerTable, Rulebook
from llm_games.table_batch import Tables, seats_of
from llm_games.tracing.graph import C, Untraceable, changes, inputs, lifted, standing_in, written
from llm_games.view import Sight
from llm_games.wrappers.single_agent import LONGEST_WAIT

FLAGS = "-O3 -march=native -ffp-contract=off -fwrapv -fno-math-errno -shared -fPIC -w"
HEAD = """#include <math.h>
#include <stdint.h>
#include <string.h>
#define inf INFINITY
#define nan NAN
enum { False, True };
typedef uint8_t bool_t; typedef float float32_t; typedef double float64_t;
static int64_t within(int64_t i, int64_t n) { return (i += i < 0 ? n : 0) >= 0 && i < n ? i : 0; }
static int64_t over(int64_t a, int64_t b) { return b ? a / b - (a % b && (a ^ b) < 0) : 0; }
static int64_t rest(int64_t a, int64_t b) { return b ? a - b * over(a, b) : 0; }
static int64_t ask(int64_t *slots, int64_t t, int64_t n, int64_t *row, int *asks) {
  int64_t *slot = slots + t * (n + 1);
  if (!row[0]) return 0;
  if (slot[0] == 2 && !memcmp(slot + 1, row + 1, 8 * n - 8)) return slot[n];
  return memcpy(slot, row, 8 * n), *asks = 1, 0;
}
#define PUT(T) for (int64_t k = 0; k < n; k++) \\
  ((T *)row[0])[tables[k]] = row[1] ? ((T *)row[1])[index[tables[k]]] : 0;
void start(int64_t n, int64_t rows, int64_t *tables, int64_t *index, int64_t *row) {
  for (; rows--; row += 3) {
    if (row[2] == 8) { PUT(int64_t) } else if (row[2] == 4) { PUT(int32_t) } else { PUT(int8_t) }
  }
}
int play(int64_t N, int64_t M, int64_t last, void **given) {"""
PAD = 8  # entries between rows


def built(source: str) -> Any:
    """Return the library of a source, from the cache or the system's compiler; else Untraceable."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise Untraceable("there is no C compiler")
    command = [compiler, *FLAGS.split(), "-x", "c", "-"]
    run = partial(subprocess.run, check=True, capture_output=True, timeout=60)
    macros = run([*command, "-dM", "-E"], input=b"").stdout  # of this compiler and processor
    key = hashlib.sha256(f"{command}{macros}{source}".encode()).hexdigest()
    library = cache_folder() / f"{key[:32]}.so"
    with suppress(OSError):
        return ctypes.CDLL(str(library))
    with TemporaryDirectory() as folder:
        result = Path(folder, "loop.so")
        run([*command, "-o", str(result), "-lm"], input=source.encode())
        with suppress(OSError):  # a folder that cannot be written is passed over
            write_whole(library, result.read_bytes())
        return ctypes.CDLL(str(result))


class TableLoop:
    """Steps of an environment's tables until learners are asked, with what the others decide."""

    def __init__(self, env: Any, rules: Sequence[Any]) -> None:
        self.seat, state = env.seating.seat, env.game.reset(0, (1,))
        plain = type(env.game).mask is Rulebook.mask
        self.laddered = env.game.masked and env.game.laddered and plain
        self.state, _ = env.game.settle(state, env.game.fallback(state))
        self._fields, self._drawn = dict[str, Any](), dict[str, Array]()
        self._state, self._owners = None, list[Any]()
        library = built(self._traced(env, rules))
        self._play, self._start = library.play, library.start
        self._places = {name: table.ctypes.data for name, table in self.tables.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a copy of what holds it makes its own

    def _traced(self, env: Any, rules: Sequence[Any]) -> str:
        """Return the loop in C."""
        game, seat, tables = env.game, self.seat, dict[str, Any]()
        state, moves = standing_in(self.state), lifted(env._moves[:, :1] * 0)
        none, moves[seat] = np.zeros(1, np.bool_), inputs(["moves[t]"], np.int64)
        sight = Sight(game, going := state.replace(over=none, void=none))
        turn = lifted(game.asked(going))
        for other, player in enumerate(env.seats.sits[:, 0].tolist()):
            if other != seat:
                key = inputs([f"keys[{other} * N + t]"], np.uint64)
                key = counted(key, inputs([f"decided[{other} * N + t]"], np.int64))
                move = rules[player](sight.view(other), Noise.keyed(key))
                moves[other] = np.where(turn[other], move, 0)
        after, outcome = game.settle(going, moves)
        paid = outcome.rewards, outcome.finished, outcome.broke, outcome.record["actions"]
        changed = changes(state, after)
        outputs = [*(lifted(part)[seat] for part in paid), turn, *changed.values()]
        look, ((waits,),) = written([turn[seat]], C, tables)
        # What is put out is used twice: so all of it has a name before any of it is written.
        play, texts = written([*outputs, *outputs], C, tables)
        (reward,), (finished,), (broke,), (action,), turns, *rows = texts
        shown = [lifted(game.asked(state))[seat], lifted(game.observe(state))[seat, 0]]
        shown += [lifted(game.rungs(state))[seat]] * self.laddered
        show, ((asked,), seen, *rungs) = written(shown, C, tables)
        self.draws = "keys[" in "".join(play)
        self.calls = {name: call for name, call in tables.items() if isinstance(call, tuple)}
        for name, (_, width) in self.calls.items():
            tables[name] = np.zeros((env.num_envs, width + 1), np.int64)
        self.tables, fields = tables, {f"s_{name}": f for name, f in vars(self.state).items()}
        arrays = self._parts(env, env._moved) | self.tables | fields
        return "\n".join([
            HEAD, "int asks = 0, again = 0;",
            *(f"{a.dtype}_t *restrict {name} = *given++;" for name, a in arrays.items()),
            "for (int64_t t = 0; t < N; t++) {",
            "for (int64_t step = 0; due[t]; step++) {", "{", *look,
            f"if ({waits} > moved[t] || finished[t] || s_round[t] >= last) break; }}",
            f"if (step == {LONGEST_WAIT}) return 1;", *play,
            "if (asks) { asks = 0; again = 2; break; }",
            *(f"s_{name}[{k} * M + t] = {text};"
              for name, row in zip(changed, rows, strict=False) for k, text in enumerate(row)),
            f"reward[t] += {reward}; payoff[t] += {reward}; finished[t] = {finished}; steps[t]++;",
            f"if (moved[t]) {{ acted[t] = 1; broke[t] = {broke}; action[t] = {action};",
            "moved[t] = 0; moves[t] = 0; }",
            *(f"decided[{k} * N + t] += {row[0]};" for k, row in enumerate(turns) if self.draws),
            "}", *show, f"asked[t] = {asked};",
            *(f"seen[t * {len(seen)} + {k}] = {text};" for k, text in enumerate(seen)),
            *(f"rungs[t] = {text};" for (text,) in rungs), "} return again; }\n",
        ])  # fmt: skip

    def _parts(self, env: Any, mask: PerTable) -> dict[str, Array]:
        """Return what a step reads and writes, ``(tables,)`` but for the last three."""
        n = env.num_envs
        parts = {"due": mask, "moves": env._moves[self.seat], "steps": env.tables.steps}
        for name in ("moved", "reward", "payoff", "finished", "broke"):
            parts[name] = getattr(env, f"_{name}")
        parts |= {"acted": np.zeros(n, np.bool_), "action": np.zeros(n, np.int64)}
        parts |= {"asked": np.empty(n, np.bool_), "rungs": np.empty(n, np.int64)}
        parts["seen"] = np.empty((n, len(env.game.column_index)), np.float32)
        return parts | self._noise(env.seats)

    def _noise(self, seats: Any) -> dict[str, Array]:
        """Return what all seats draw from; from now on the memories share the arrays."""
        memories, noise = seats.memories, self._drawn
        if self.draws and any(m.decided is not noise.get("decided") for m in memories):
            for name in ("keys", "decided"):
                own = (getattr(m, name) * (seats.sits == k) for k, m in enumerate(memories))
                noise[name] = np.ascontiguousarray(sum(own))
            seats.memories = [memory._replace(**noise) for memory in memories]
        return noise

    def _own(self, tables: Tables) -> None:
        """Let arrays that nobody else has, and that loops change in place, be the tables' state."""
        if tables.state is not self._state:
            for name in vars(self.state):
                if (field := getattr(tables.state, name)) is not self._fields.get(name):
                    # Rows of powers of 2 would share the cache's lines.
                    own = np.empty((*field.shape[:-1], tables.count + PAD), field.dtype)[..., :-PAD]
                    own[:] = field
                    self._fields[name], self._places[name] = own, own.ctypes.data
                    self._owners = []  # what `start` knows of it does not hold any more

    def _changed(self, tables: Tables) -> None:
        """Let the tables go on with what was changed: in a new state, by which rules know it."""
        self._state = tables.state.replace(**self._fields)
        tables.go_on(self._state, tables.steps)

    def start(self, env: Any, mask: PerTable) -> None:
        """Start the episodes that follow at these tables."""
        tables, (stock, index) = env.tables, env.tables.coming(mask)
        self._own(tables)
        fields, noise = self._fields, self._noise(env.seats)
        owners = [stock, tables.seeds, tables.steps, env._moved, *noise.values()]
        if [*map(id, owners)] != [*map(id, self._owners)]:
            pairs = [(tables.seeds, stock.seeds)]
            pairs += [(field, getattr(stock.state, name)) for name, field in fields.items()]
            if noise:
                seats = seats_of(stock.seeds, env.game.players)
                pairs += [(noise["keys"], Noise(seats.astype(np.uint64)).key)]
            zeros = tables.steps, *env.of_episodes, *([noise["decided"]] if noise else [])
            pairs = [(to, np.ascontiguousarray(of, to.dtype)) for to, of in pairs]
            self._owners, self._pairs = owners, [*pairs, *((array, None) for array in zeros)]
            self._rows = np.array([r for pair in self._pairs for r in pointers(*pair)], np.int64)
        due = np.flatnonzero(mask)
        places = due.ctypes.data, index.ctypes.data, self._rows.ctypes.data
        sizes = map(ctypes.c_int64, (len(due), len(self._rows)))
        self._start(*sizes, *map(ctypes.c_void_p, places))
        self._changed(tables)

    def play_on(self, env: Any, mask: PerTable) -> None:
        """Play until learners are asked or done at these tables."""
        self._own(env.tables)
        n, parts = env.num_envs, self._parts(env, mask)
        places = *(part.ctypes.data for part in parts.values()), *self._places.values()
        given = (ctypes.c_void_p * len(places))(*places)
        last = env.game.begun + (env.max_cycles or 2**62)
        while (again := self._play(*map(ctypes.c_int64, (n, n + PAD, last)), given)) == 2:
            for name, (function, _) in self.calls.items():
                asked = (slots := self.tables[name])[:, 0] == 1
                slots[asked, -1] = function(slots[asked, 1:-1])
                slots[asked, 0] = 2
        if again:
            raise BadParameter(f"{env.game.name}: nobody ends the game; set max_cycles")
        env._acted |= (acted := parts["acted"])
        env._action[acted] = env.game.in_units(parts["action"])[acted]
        self._changed(env.tables)
        vars(env._view()).update(asked=parts["asked"], numbers=parts["seen"])
        if self.laddered:
            vars(env._view())["mask"] = env.game.ladder.take(parts["rungs"], axis=0)


def pointers(array: Array, source: Array | None) -> Iterator[tuple[int, int, int]]:
    """Yield where each row of an array is, where its source, or 0, and the size of an entry."""
    for k in range(array.size // array.shape[-1]):
        step = array.strides[-2] if k else 0
        place = 0 if source is None else source.ctypes.data + k * source.shape[-1] * source.itemsize
        yield array.ctypes.data + k * step, place, array.itemsize


def loop_of(env: Any) -> TableLoop | str:
    """Return the loop of a `GameVectorEnv` that was reset, or why there is none."""
    game, seats = env.game, env.seats
    if isinstance(env.seating.seat, str) or game.core is not game or game.division is not None:
        return "the learner's seat changes, players talk, or moves are plans"
    if env.regret is not None or type(env.codec).begin is not Codec.begin:
        return "what is told needs the records of all steps"
    if seats.listens or seats.look_back or not all(p.says("plain") for p in seats.policies):
        return "a player remembers what it hears, or decides otherwise than the rules of its base"
    rules = [p.plain(m) for p, m in zip(seats.policies, seats.memories, strict=True)]
    if None in rules:
        return "not all players are rules"
    try:
        return TableLoop(env, rules)
    except Exception as error:  # whatever rules do that stand-ins do not take, and compilers
        return f"{type(error).__name__}: {error}"
