"""Vector environments whose steps are played in one loop of C, where all in them traces."""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_games.codecs import Codec
from llm_games.errors import BadParameter
from llm_games.noise import Noise, counted
from llm_games.rulebook import Array, PerTable
from llm_games.tracing.c_loops import TableLoop
from llm_games.view import Sight
from llm_games.wrappers.single_agent import LONGEST_WAIT

NEVER = 2**62


def loop_of(env: Any) -> TableLoop | str:
    """Return the loop of a `GameVectorEnv` that was reset, or why there is none."""
    game, seats, seat = env.game, env.seats, env.seating.seat
    if isinstance(seat, str) or game.core is not game or game.division is not None:
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

    def decide(game: Any, state: Any, asked: Any, moves: Any, keys: Any, counts: Any) -> Any:
        sight = Sight(game, state)
        for other, player in enumerate(seats.sits[:, 0].tolist()):
            if other != seat:
                key = counted(keys[other], counts[other])
                move = rules[player](sight.view(other), Noise.keyed(key))
                moves[other] = np.where(asked[other], move, 0)
        return moves

    try:
        loop = TableLoop(game, seat, decide, LONGEST_WAIT)
        loop.build()
        return loop
    except Exception as error:  # whatever rules do that stand-ins do not take, and compilers
        return f"{type(error).__name__}: {error}"


def _depth(policy: Any, name: str) -> int:
    """Return how far up among the bases of a policy a method is defined."""
    return next(k for k, base in enumerate(type(policy).__mro__) if name in vars(base))


def play_on(env: Any, loop: TableLoop, mask: PerTable) -> bool:
    """Play until learners are asked or done at these tables; False if NumPy has to."""
    tables, seats, seat = env.tables, env.seats, env.seating.seat
    if not loop.fits(tables.state):
        return False
    n, acted = env.num_envs, np.zeros(env.num_envs, np.bool_)
    parts: dict[str, Array] = {
        "moved": env._moved, "moves": env._moves[seat], "reward": env._reward,
        "payoff": env._payoff, "finished": env._finished, "acted": acted, "broke": env._broke,
        "action": np.zeros(n, np.int64), "steps": tables.steps.copy(),
    }  # fmt: skip
    if loop.draws:
        parts |= {name: _of_all(seats, name) for name in ("keys", "decided")}
    most = NEVER if env.max_cycles is None else env.max_cycles
    played = loop.play(tables.state, mask, parts, env.game.begun, most)
    if played is None:
        raise BadParameter(f"{env.game.name}: nobody ends the game; set max_cycles")
    state, seen = played
    env._acted |= acted
    env._action[acted] = env.game.in_units(parts["action"])[acted]
    if loop.draws:
        seats.memories = [
            memory._replace(decided=np.where(seats.sits == k, parts["decided"], memory.decided))
            for k, memory in enumerate(seats.memories)
        ]
    tables.go_on(state, parts["steps"])
    if env.obs_mode != "text":
        env._view().__dict__["numbers"] = seen
    return True


def _of_all(seats: Any, name: str) -> Array:
    """Return an array of all players' memories, each with its own seats."""
    each = [getattr(memory, name) * (seats.sits == k) for k, memory in enumerate(seats.memories)]
    return np.ascontiguousarray(sum(each[1:], each[0]))
