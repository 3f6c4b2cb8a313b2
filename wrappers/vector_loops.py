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
from collections.abc import Sequence
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
from llm_games.rulebook import Array, PerTable
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
        self.state, _ = env.game.settle(state, env.game.fallback(state))
        self._fields, self._play = dict[str, Any](), built(self._traced(env, rules)).play
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
        shown = lifted(game.asked(state))[seat], lifted(game.observe(state))[seat, 0]
        show, ((asked,), seen) = written(shown, C, tables)
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
            "} return again; }\n",
        ])  # fmt: skip

    def _parts(self, env: Any, mask: PerTable) -> dict[str, Array]:
        """Return what a step reads and writes, ``(tables,)`` but for the last three."""
        n, seats = env.num_envs, env.seats
        parts = {"due": mask, "moves": env._moves[self.seat], "steps": env.tables.steps.copy()}
        for name in ("moved", "reward", "payoff", "finished", "broke"):
            parts[name] = getattr(env, f"_{name}")
        parts |= {"acted": np.zeros(n, np.bool_), "action": np.zeros(n, np.int64)}
        parts["asked"] = np.empty(n, np.bool_)
        parts["seen"] = np.empty((n, len(env.game.column_index)), np.float32)
        for name in ("keys", "decided") if self.draws else ():
            own = (getattr(m, name) * (seats.sits == k) for k, m in enumerate(seats.memories))
            parts[name] = np.ascontiguousarray(sum(own))
        return parts

    def play_on(self, env: Any, mask: PerTable) -> None:
        """Play until learners are asked or done at these tables."""
        n, parts, state = env.num_envs, self._parts(env, mask), env.tables.state
        for name, field in vars(state).items():
            if field is not self._fields.get(name):
                # Rows of powers of 2 would share the cache's lines.
                own = np.empty((*field.shape[:-1], n + PAD), field.dtype)[..., :n]
                own[:] = field
                self._fields[name], self._places[name] = own, own.ctypes.data
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
        if self.draws:
            env.seats.memories = [m._replace(decided=parts["decided"]) for m in env.seats.memories]
        env.tables.go_on(state.replace(**self._fields), parts["steps"], own=True)
        vars(env._view()).update(asked=parts["asked"], numbers=parts["seen"])


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
