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
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from llm_games.codecs import Codec
from llm_games.errors import BadParameter
from llm_games.files import cache_folder, write_whole
from llm_games.noise import Noise, counted
from llm_games.rulebook import Array, PerTable, Rulebook
from llm_games.tracing.code import C, Code, changes, inputs, listed, standing_in
from llm_games.tracing.graph import WIDE, Untraceable, lifted
from llm_games.view import Sight
from llm_games.wrappers.single_agent import LONGEST_WAIT

FLAGS = "-O3 -march=native -ffp-contract=off -fwrapv -fno-math-errno -shared -fPIC -w"
HEAD = """#include <math.h>
#include <stdint.h>
#define inf INFINITY
#define nan NAN
enum { False, True };
typedef uint8_t bool_t; typedef float float32_t; typedef double float64_t;
static inline int64_t within(int64_t i, int64_t n) {
  i += i < 0 ? n : 0;
  return (uint64_t)i < (uint64_t)n ? i : 0;
}
static inline int64_t over(int64_t a, int64_t b) {
  return b ? a / b - ((a % b != 0) & ((a < 0) != (b < 0))) : 0;
}
static inline int64_t rest(int64_t a, int64_t b) { return b ? a - b * over(a, b) : 0; }
int64_t play(int64_t N, int64_t M, int64_t last, void **given) {"""
PAD = 8  # entries between rows, which would share the cache's lines at powers of 2


def built(source: str) -> Any:
    """Return the library of a source, from the cache or the system's compiler; else Untraceable."""
    compiler, cpu = shutil.which(os.environ.get("CC", "cc")), Path("/proc/cpuinfo")
    if compiler is None:
        raise Untraceable("there is no C compiler")
    lines = cpu.read_text("utf-8").splitlines() if cpu.exists() else []
    here = [platform.platform(), *(line for line in lines if line.startswith("flags"))][:2]
    key = hashlib.sha256("\0".join([compiler, FLAGS, *here, source]).encode()).hexdigest()
    library = cache_folder() / f"{key[:32]}.so"
    with suppress(OSError):
        return ctypes.CDLL(str(library))
    with TemporaryDirectory() as folder:
        result = Path(folder, "loop.so")
        command = [compiler, *FLAGS.split(), "-x", "c", "-", "-o", str(result), "-lm"]
        subprocess.run(command, input=source.encode(), check=True, capture_output=True, timeout=60)
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
        self._fields, self._play = list[Array](), built(self._traced(env, rules)).play
        self._play.argtypes = [ctypes.c_int64] * 3 + [ctypes.POINTER(ctypes.c_void_p)]
        self._play.restype = ctypes.c_int64

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a copy of what holds it makes its own

    def _traced(self, env: Any, rules: Sequence[Any]) -> str:
        game, seat, none = env.game, self.seat, np.zeros(1, np.bool_)
        state, moves = standing_in(self.state), lifted(np.zeros((game.players, 1), np.int64))
        sight = Sight(game, going := state.replace(over=none, void=none))
        turn, moves[seat] = lifted(game.asked(going)), inputs(["moves[t]"], np.int64)
        for other, player in enumerate(env.seats.sits[:, 0].tolist()):
            if other != seat:
                key = inputs([f"keys[{other} * N + t]"], np.uint64)
                key = counted(key, inputs([f"decided[{other} * N + t]"], np.int64))
                move = rules[player](sight.view(other), Noise.keyed(key))
                moves[other] = np.where(turn[other], move, 0)
        after, outcome = game.settle(going, moves)
        paid = outcome.rewards, outcome.finished, outcome.broke, outcome.record["actions"]
        return self._source(env, turn, [listed(part)[seat][0] for part in paid], state, after)

    def _source(self, env: Any, turn: Any, paid: list[Any], state: Any, after: Any) -> str:
        turns, changed = listed(turn[:, 0]), changes(state, after)
        asked, seen = env.game.asked(state)[self.seat], env.game.observe(state)[self.seat, 0]
        shown = {"asked": listed(asked), "seen": listed(seen)}
        if self.laddered:
            shown["rungs"] = listed(env.game.rungs(state)[self.seat])
        groups: list[Any] = [[turns[self.seat]], [paid, turns, *changed.values()]]
        self.tables = list[Any]()
        groups.append([*shown.values()])
        look, play, show = (Code(outputs, C, self.tables) for outputs in groups)
        self.draws = any("keys" in part.args[0] for part in play.uses if part.op == "input")
        fields = vars(self.state)
        arrays = self._parts(env, env._moved)
        arrays |= {f"p{k}": field for k, field in enumerate(fields.values())}
        arrays |= {f"c{k}": table for k, table in enumerate(self.tables)}
        given = [f"{a.dtype}_t *restrict {name} = *given++;" for name, a in arrays.items()]
        cells = {f"p{place}[{k} * M + t]": cell
                 for place, row in changed.items() for k, cell in enumerate(row)}  # fmt: skip
        reward, finished, broke, action = map(play.text, paid)
        return "\n".join([
            HEAD, *given, "for (int64_t t = 0; t < N; t++) {",
            "for (int64_t step = 0; due[t]; step++) {", "{", *look.lines,
            f"if (({look.text(turns[self.seat])}) > moved[t] || finished[t]",
            f"    || p{[*fields].index('round')}[t] >= last) break; }}",
            f"if (step == {LONGEST_WAIT}) return 1;", *play.lines,
            *(f"const {WIDE[cell.kind].__name__}_t n{k} = {play.text(cell)};"
              for k, cell in enumerate(cells.values())),
            f"reward[t] += {reward}; payoff[t] += {reward}; finished[t] = {finished}; steps[t]++;",
            f"if (moved[t]) {{ acted[t] = 1; broke[t] = {broke}; action[t] = {action};",
            "moved[t] = 0; moves[t] = 0; }",
            *(f"decided[{k} * N + t] += {play.text(cell)};"
              for k, cell in enumerate(turns) if self.draws),
            *(f"{place} = n{k};" for k, place in enumerate(cells)), "}", *show.lines,
            *(f"{name}[t * {len(cells)} + {k}] = {show.text(cell)};"
              for name, cells in shown.items() for k, cell in enumerate(cells)),
            "} return 0; }\n",
        ])  # fmt: skip

    def _parts(self, env: Any, mask: PerTable) -> dict[str, Array]:
        """Return what a step reads and writes, ``(tables,)`` but for the last three."""
        n, seats = env.num_envs, env.seats
        parts = {"due": mask, "moves": env._moves[self.seat], "steps": env.tables.steps.copy()}
        for name in ("moved", "reward", "payoff", "finished", "broke"):
            parts[name] = getattr(env, f"_{name}")
        parts |= {"acted": np.zeros(n, np.bool_), "action": np.zeros(n, np.int64)}
        parts |= {"asked": np.empty(n, np.bool_), "rungs": np.empty(n, np.int64)}
        parts["seen"] = np.empty((n, len(env.game.column_index)), np.float32)
        for name in ("keys", "decided") if self.draws else ():
            own = (getattr(m, name) * (seats.sits == k) for k, m in enumerate(seats.memories))
            parts[name] = np.ascontiguousarray(sum(own))
        return parts

    def play_on(self, env: Any, mask: PerTable) -> None:
        """Play until learners are asked or done at these tables."""
        n, parts, names = env.num_envs, self._parts(env, mask), [*vars(self.state)]
        fields = [getattr(env.tables.state, name) for name in names]
        if not self._fields:
            rows = (((*field.shape[:-1], n + PAD), field.dtype) for field in fields)
            self._fields = [np.empty(*row)[..., :n] for row in rows]
            self._places = [array.ctypes.data for array in (*self._fields, *self.tables)]
        for array, field in zip(self._fields, fields, strict=True):
            if array is not field:
                array[:] = field
        places = [*(part.ctypes.data for part in parts.values()), *self._places]
        last = env.game.begun + (env.max_cycles or 2**62)
        given = (ctypes.c_void_p * len(places))(*places)
        if self._play(n, n + PAD, last, given):
            raise BadParameter(f"{env.game.name}: nobody ends the game; set max_cycles")
        env._acted |= (acted := parts["acted"])
        env._action[acted] = env.game.in_units(parts["action"])[acted]
        if self.draws:
            memories = env.seats.memories
            env.seats.memories = [m._replace(decided=parts["decided"]) for m in memories]
        state = env.tables.state.replace(**dict(zip(names, self._fields, strict=True)))
        env.tables.go_on(state, parts["steps"], own=True)
        vars(env._view())["asked"] = parts["asked"]
        if self.laddered:
            vars(env._view())["mask"] = env.game.ladder.take(parts["rungs"], axis=0)
        if env.obs_mode != "text":
            vars(env._view())["numbers"] = parts["seen"]


def loop_of(env: Any) -> TableLoop | str:
    """Return the loop of a `GameVectorEnv` that was reset, or why there is none."""
    game, seats = env.game, env.seats
    if isinstance(env.seating.seat, str) or game.core is not game or game.division is not None:
        return "the learner's seat changes, players talk, or moves are plans"
    if env.regret is not None or type(env.codec).begin is not Codec.begin:
        return "what is told needs the records of all steps"
    if seats.listens or seats.look_back:
        return "players remember what they hear"
    if not all(policy.says("plain") for policy in seats.policies):
        return "a player decides otherwise than the rules of its base"
    rules = [p.plain(m) for p, m in zip(seats.policies, seats.memories, strict=True)]
    if None in rules:
        return "not all players are rules"
    try:
        return TableLoop(env, rules)
    except Exception as error:  # whatever rules do that stand-ins do not take, and compilers
        return f"{type(error).__name__}: {error}"
