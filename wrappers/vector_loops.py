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
from llm_games.rulebook import Array, PerTable, Rulebook
from llm_games.table_batch import AHEAD, Tables, seats_of
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
OF_EPISODES = ["_moved", "_waits", "_acted", "_broke", "_planned", "_finished", "_done", "_looked"]
OF_EPISODES += ["_reward", "_payoff", "_lost", "_action", "_moves", "_steps", "_pending"]
"""Arrays of an environment that are 0 when an episode begins."""


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


def narrowed(table: Any, copies: int) -> Array:
    """Return a table's numbers in fewer bytes, which are read faster; of a call its slots."""
    if isinstance(table, tuple):
        return np.zeros((copies, table[1] + 1), np.int64)
    kinds = {"i": (np.int8, np.int16, np.int32), "f": (np.float32,)}.get(table.dtype.kind, ())
    return next((small for k in kinds if ((small := table.astype(k)) == table).all()), table)


class TableLoop:
    """Steps of an environment's tables until learners are asked, with what the others decide."""

    def __init__(self, env: Any, rules: Sequence[Any]) -> None:
        self.seat, state = env.seating.seat, env.game.reset(0, (1,))
        plain = type(env.game).mask is Rulebook.mask
        self.laddered = env.game.masked and env.game.laddered and plain
        self.state, _ = env.game.settle(state, env.game.fallback(state))
        self._fields, self._drawn = dict(vars(self.state)), dict[str, Array]()
        self._state = None
        self._play = built(self._traced(env, rules)).play
        self._arrays: list[Any] = [None] * len(self._parts(env, env._moved))
        self._places = np.zeros(len(self._arrays), np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a copy of what holds it makes its own

    def _traced(self, env: Any, rules: Sequence[Any]) -> str:
        """Return the loop in C."""
        game, seat, tables = env.game, self.seat, dict[str, Any]()
        state, moves = standing_in(self.state), lifted(env._moves[:, :1] * 0)
        none, moves[seat] = np.zeros(1, np.bool_), inputs([f"_moves[{seat} * N + t]"], np.int64)
        sight = Sight(game, going := state.replace(over=none, void=none))
        turn = lifted(game.asked(going))
        for other, player in enumerate(env.seats.sits[:, 0].tolist()):
            if other != seat:
                key = inputs([f"keys[{other} * N + t]"], np.uint64)
                key = counted(key, inputs([f"decided[{other} * N + t]"], np.int64))
                move = rules[player](sight.view(other), Noise.keyed(key))
                moves[other] = np.where(turn[other], move, 0)
        after, outcome = game.settle(going, moves)
        action = game.in_units(outcome.record["actions"])
        paid = outcome.rewards, outcome.finished, outcome.broke, action
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
        self.starts = bool(begin := self._begun(game, state, tables))
        self.calls = {name: call for name, call in tables.items() if isinstance(call, tuple)}
        self.tables = {name: narrowed(table, env.num_envs) for name, table in tables.items()}
        arrays = self._parts(env, env._moved)
        return "\n".join([
            HEAD, "int asks = 0, again = 0;",
            *(f"{a.dtype}_t *restrict {name} = *given++;" for name, a in arrays.items()),
            "for (int64_t t = 0; t < N; t++) {",
            "if (_pending[t]) {", *begin, "steps[t] = 0;",
            *(f"for (int64_t k = 0; k < {a.size // a.shape[-1]}; k++) {name}[k * N + t] = 0;"
              for name, a in arrays.items() if name in OF_EPISODES), "}",
            "for (int64_t step = 0; due[t]; step++) {", "{", *look,
            f"if ({waits} > _moved[t] || _finished[t] || s_round[t] >= last) break; }}",
            f"if (step == {LONGEST_WAIT}) return 1;", *play,
            "if (asks) { asks = 0; again = 2; break; }",
            *(f"s_{name}[{k} * M + t] = {text};"
              for name, row in zip(changed, rows, strict=False) for k, text in enumerate(row)),
            f"_reward[t] += {reward}; _payoff[t] += {reward}; _finished[t] = {finished};",
            f"if (_moved[t]) {{ _acted[t] = 1; _broke[t] = {broke}; _action[t] = {action};",
            f"_moved[t] = 0; _moves[{seat} * N + t] = 0; }}", "steps[t]++;",
            *(f"decided[{k} * N + t] += {row[0]};" for k, row in enumerate(turns) if self.draws),
            "}", *show, f"asked[t] = {asked};",
            *(f"seen[t * {len(seen)} + {k}] = {text};" for k, text in enumerate(seen)),
            *(f"rungs[t] = {text};" for (text,) in rungs), "} return again; }\n",
        ])  # fmt: skip

    def _begun(self, game: Rulebook, state: Any, tables: dict[str, Any]) -> list[str]:
        """Return lines that begin an episode, or none, and then NumPy begins it."""
        seeds, keys = inputs(["seeds[t]"], np.uint64), list[Array]()
        if self.draws:
            keys.append(Noise(seats_of(seeds, game.players).astype(np.uint64)).key[:, 0])
        try:
            first = changes(state, game.begin(game.chance(Noise(seeds)), (1,)))
            lines, rows = written([*first.values(), *keys], C, tables)
        except Exception:  # whatever draws do that stand-ins do not take
            return []
        targets = [f"s_{name}[{{}} * M + t]" for name in first]
        targets.append("decided[{0} * N + t] = 0; keys[{0} * N + t]")
        texts = zip(targets, rows, strict=False)
        lines += [f"{to.format(k)} = {text};" for to, row in texts for k, text in enumerate(row)]
        return [f"seeds[t] = ahead[{AHEAD} * t + used[t]++];", *lines]

    def _parts(self, env: Any, mask: PerTable) -> dict[str, Array]:
        """Return what a step reads and writes."""
        n, parts = env.num_envs, {name: getattr(env, name) for name in OF_EPISODES}
        parts["due"] = mask
        parts |= {name: getattr(env.tables, name) for name in ("seeds", "ahead", "used", "steps")}
        parts |= {"asked": np.empty(n, np.bool_), "rungs": np.empty(n, np.int64)}
        parts["seen"] = np.empty((n, len(env.game.column_index)), np.float32)
        fields = {f"s_{name}": field for name, field in self._fields.items()}
        return parts | self._noise(env.seats) | self.tables | fields

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
            for name, last in self._fields.items():
                if (field := getattr(tables.state, name)) is not last:
                    # Rows of powers of 2 would share the cache's lines.
                    own = np.empty((*field.shape[:-1], tables.count + PAD), field.dtype)[..., :-PAD]
                    own[:] = field
                    self._fields[name] = own

    def start(self, env: Any, mask: PerTable) -> None:
        """Let the episodes that follow start at these tables as soon as they are played on."""
        env.tables.draw_ahead()
        env._pending |= mask

    def play_on(self, env: Any, mask: PerTable) -> None:
        """Play until learners are asked or done at these tables."""
        self._own(tables := env.tables)
        parts, last = self._parts(env, mask), env.game.begun + (env.max_cycles or 2**62)
        for k, array in enumerate(parts.values()):
            if array is not self._arrays[k]:
                self._arrays[k], self._places[k] = array, array.ctypes.data
        sizes = map(ctypes.c_int64, (env.num_envs, env.num_envs + PAD, last))
        given = *sizes, ctypes.c_void_p(self._places.ctypes.data)
        while (again := self._play(*given)) == 2:
            for name, (function, _) in self.calls.items():
                asked = (slots := self.tables[name])[:, 0] == 1
                slots[asked, -1] = function(slots[asked, 1:-1])
                slots[asked, 0] = 2
        if again:
            raise BadParameter(f"{env.game.name}: nobody ends the game; set max_cycles")
        # Rules know a state that was changed in place as a new one.
        self._state = tables.state.replace(**self._fields)
        tables.go_on(self._state, tables.steps)
        vars(env._view()).update(asked=parts["asked"], numbers=parts["seen"])
        if self.laddered:
            vars(env._view())["mask"] = env.game.ladder.take(parts["rungs"], axis=0)


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
