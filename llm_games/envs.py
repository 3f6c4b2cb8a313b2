"""PettingZoo's customary modules: ``from llm_games.envs import public_goods_v0``.

Each has ``env``, ``raw_env`` (AEC) and ``parallel_env``, which take `llm_games.make`'s arguments.
"""

from __future__ import annotations

from functools import cache, partial
from types import SimpleNamespace

from llm_games.game_rooms import ROOMS
from llm_games.registry import VERSION, make


@cache
def __getattr__(name: str) -> SimpleNamespace:
    bare = name.removesuffix(f"_{VERSION}")
    if bare not in ROOMS:
        raise AttributeError(f"there is no environment {name!r}; see llm_games.list_games()")
    aec, parallel = (partial(make, bare, form=form) for form in ("aec", "parallel"))
    return SimpleNamespace(env=aec, raw_env=aec, parallel_env=parallel)
