"""Many learners' tables of which none waits for another: send actions, receive who is ready."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from llm_games.errors import BadParameter, NotReady
from llm_games.facts import check_integer
from llm_games.rulebook import Rulebook
from llm_games.table_batch import seeds_of
from llm_games.wrappers.vector_env import GameVectorEnv, Result

Work = Callable[[], Result]


class AsyncGames(VectorEnv[Any, Any, Any]):
    """Copies of a game, each stepped by itself as EnvPool does: slow replies delay one copy.

    `send` gives copies their actions, `recv` returns the first `batch_size` finished ones in any
    order; ``infos["env_id"]`` has their numbers. `reset` and `step` wait for all of them, and are
    those of `GameVectorEnv`. Copies that ended start again with their next action, which is not
    played. Each copy has a thread that waits for replies: for opponents that are asked as models.

    An error of a copy is raised by `recv` and names the copy. Its work is repeated by the next
    `recv`, unless it is sent another action; the other copies lose nothing.

    Args:
        game: a rulebook, or a game's name with its parameters.
        num_envs: how many copies.
        batch_size: how many `recv` waits for; None: all.
        settings: of `GameVectorEnv`, also for what is raised, and parameters of the game.
    """

    def __init__(
        self,
        game: str | Rulebook,
        num_envs: int = 1,
        *,
        batch_size: int | None = None,
        **settings: Any,
    ) -> None:
        check_integer("num_envs", num_envs, 1)
        self.num_envs, self.batch_size = num_envs, num_envs if batch_size is None else batch_size
        check_integer("batch_size", self.batch_size, 1, num_envs)
        self.copies = [GameVectorEnv(game, 1, **settings) for _ in range(num_envs)]
        first = self.copies[0]
        self.game, self.opponents, self.metadata = first.game, first.opponents, first.metadata
        self.single_observation_space = first.single_observation_space
        self.single_action_space = first.single_action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._results: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        self._through: dict[int, Result] = {}  # but not received yet
        self._work: dict[int, Work] = {}  # of copies that are at it
        self._failed: dict[int, Work] = {}
        self._inboxes = [SimpleQueue[Work | None]() for _ in range(num_envs)]
        for copy, inbox in enumerate(self._inboxes):
            arguments = copy, inbox, self._results
            threading.Thread(target=_work, args=arguments, daemon=True).start()

    def async_reset(self, *, seed: int | Sequence[int | None] | None = None) -> None:
        """Let all copies start: copy i with the episode of the seed s + i. `recv` returns them."""
        if self._work:
            raise NotReady(f"copies {sorted(self._work)} are at it: call recv() before a reset")
        seeds = seeds_of(seed, self.num_envs)
        self._through, self._failed = {}, {}
        for copy, copy_seed in enumerate(seeds):
            self._begin(copy, partial(_reset, self.copies[copy], copy_seed))

    def send(self, actions: Any, env_id: Sequence[int] | None = None) -> None:
        """Give these copies an action each; by default all of them.

        Raises:
            BadParameter, NotReady: not one for each, or a copy that is none, or was not received.
        """
        copies = range(self.num_envs) if env_id is None else np.asarray(env_id).tolist()
        if len(actions) != len(copies) or not {*copies} <= {*range(self.num_envs)}:
            rule = f"send takes an action for each copy, from 0 to {self.num_envs - 1}"
            raise BadParameter(f"{rule}: got {len(actions)} actions for copies {[*copies]}")
        if busy := sorted({*copies} & (self._work.keys() | self._through.keys())):
            raise NotReady(f"copies {busy} are not received yet: call recv() before send()")
        for index, copy in enumerate(copies):
            self._begin(copy, partial(self.copies[copy].step, actions[index : index + 1]))

    def recv(self) -> Result:
        """Return the next copies that are through: observations, rewards, ends, and infos.

        Raises NotReady if fewer than `batch_size` have anything to do, and what a copy's step does.
        """
        return self._receive(self.batch_size)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start all copies and wait for them."""
        if options:
            raise BadParameter(f"copies that start by themselves take no options, got {options!r}")
        self.async_reset(seed=seed)
        observation, *_, infos = self._receive(self.num_envs)
        return observation, infos

    def step(self, actions: Any) -> Result:
        """Step all copies and wait for them."""
        if not self._failed and not self._work:
            self.send(actions)
        return self._receive(self.num_envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Let the threads go, once what they wait for has come."""
        for inbox in self._inboxes:
            inbox.put(None)

    def _begin(self, copy: int, work: Work) -> None:
        self._failed.pop(copy, None)
        self._work[copy] = work
        self._inboxes[copy].put(work)

    def _receive(self, count: int) -> Result:
        for copy, work in [*self._failed.items()]:
            self._begin(copy, work)
        if len(self._work) + len(self._through) < count:
            at_it = sorted(self._work.keys() | self._through.keys())
            raise NotReady(f"recv waits for {count} copies, and only {at_it} were sent an action")
        while len(self._through) < count:
            copy, outcome = self._results.get()
            work = self._work.pop(copy)
            if isinstance(outcome, BaseException):
                self._failed[copy] = work
                outcome.add_note(f"(copy {copy})")
                raise outcome
            self._through[copy] = outcome
        copies = [*self._through][:count] if count < self.num_envs else [*range(count)]
        observations, *rest, infos = zip(*map(self._through.pop, copies), strict=True)
        rewards, terminated, truncated = map(np.concatenate, rest)
        merged = _merged(infos) | {"env_id": np.array(copies)}
        return _joined(observations), rewards, terminated, truncated, merged


def _work(copy: int, inbox: SimpleQueue[Work | None], results: SimpleQueue[Any]) -> None:
    """Run a copy's work items until None comes."""
    while (work := inbox.get()) is not None:
        try:
            outcome: Any = work()
        except BaseException as error:
            outcome = error
        results.put((copy, outcome))


def _reset(env: GameVectorEnv, seed: int | None) -> Result:
    observation, infos = env.reset(seed=[seed])
    return observation, np.zeros(1), np.zeros(1, np.bool_), np.zeros(1, np.bool_), infos


def _joined(parts: Sequence[Any]) -> Any:
    """Return the observations of single copies as those of a batch."""
    if isinstance(parts[0], dict):
        return {name: _joined([part[name] for part in parts]) for name in parts[0]}
    return sum(parts, ()) if isinstance(parts[0], tuple) else np.concatenate(parts)


def _merged(infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the infos of single copies as those of a batch: zeros where a copy has none."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for info in infos for name in info):
        like = next(info[name] for info in infos if name in info)
        if isinstance(like, dict):
            merged[name] = _merged([info.get(name, {}) for info in infos])
        else:
            none = np.zeros_like(like) if like.dtype != object else np.full_like(like, None)
            merged[name] = np.concatenate([info.get(name, none) for info in infos])
    return merged
