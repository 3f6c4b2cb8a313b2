"""Many learners, each at its own table of fixed players, as one Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from llm_games.arrays import all_true, any_true
from llm_games.codecs import codec
from llm_games.env import Windows, options_of
from llm_games.errors import BadParameter, NotReady, unknown
from llm_games.facts import check_integer
from llm_games.registry import rulebook
from llm_games.rulebook import Array, Outcome, PerTable, Rulebook
from llm_games.table_batch import Tables, seeds_of
from llm_games.talk import Talking
from llm_games.view import View
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.policy import Policy, added
from llm_games.wrappers.single_agent import LONGEST_WAIT, Regret, seating
from llm_games.wrappers.vector_loops import OF_EPISODES, TableLoop, loop_of

PATIENCE = 20_000  # learners' steps after which it pays to build a loop

Result = tuple[Any, Array, PerTable, PerTable, dict[str, Any]]
"""Observations, rewards, what is terminated, what is truncated, infos."""


class GameVectorEnv(VectorEnv[Any, Any, Any]):
    """Copies of a game in each of which one seat learns: equal to a loop of `SingleAgentEnv`.

    All copies take their steps together, in one NumPy step of the rules, and each policy is asked
    once for all its seats. Copies whose learner waits are played on together; those that end start
    again without disturbing others. ``reset(seed=s)`` is the episodes of the seeds s, s + 1, ... of
    copies 0, 1, ...; ``options={"chance": {...}}`` gives all of them chance.

    Args:
        game: a rulebook, or a game's name with its `parameters`.
        num_envs: how many copies.
        seat, opponents, obs_mode, actions, normalize, masks, regret: as of `SingleAgentEnv`, also
            for what is raised.
        max_cycles, max_episode_steps, reask, prompts, prompt_folder, parameters: the same.
        autoreset_mode: when copies that ended start again, see `gymnasium.vector.AutoresetMode`.
    """

    metadata: dict[str, Any]

    def __init__(
        self,
        game: str | Rulebook,
        num_envs: int = 1,
        *,
        seat: int | str = 0,
        opponents: Any = None,
        obs_mode: str = "numeric",
        actions: str = "index",
        normalize: bool = False,
        masks: str = "observation",
        max_cycles: int | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        regret: Regret | None = None,
        reask: int = 0,
        prompts: str = "v1",
        prompt_folder: str | None = None,
        **parameters: Any,
    ) -> None:
        self.game = rulebook(game, **parameters)
        check_integer("num_envs", num_envs, 1)
        if actions == "text" and isinstance(self.game, Talking) and not self.game.symbols:
            raise BadParameter(
                f"{self.game.name}: learners of a batch say nothing in words: talk in symbols, "
                'talk={"alphabet": 5}, or take llm_games.learner for one table'
            )
        limits = {"max_cycles": max_cycles, "max_episode_steps": max_episode_steps}
        for name, limit in limits.items():
            if limit is not None:
                check_integer(name, limit, 1)
        self.num_envs, self.max_cycles, self.regret = num_envs, max_cycles, regret
        self.max_episode_steps = max_episode_steps
        self.actions, self.obs_mode, self.normalize = actions, obs_mode, normalize
        modes = [mode.value for mode in AutoresetMode]
        if autoreset_mode not in [*AutoresetMode, *modes]:
            raise unknown("autoreset_mode", str(autoreset_mode), modes)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"autoreset_mode": self.autoreset_mode, "render_modes": []}
        self.seating = seating(self.game, seat, opponents)
        self._cached_view: View | None = None
        self.tables = Tables(self.game, num_envs)
        sits = np.full((self.game.players, num_envs), -1)
        self.seats = BatchSeats(self.tables, self.seating.policies, sits)
        agent = self.game.names()[0]
        self.windows = Windows(
            game=self.game,
            obs_mode={agent: obs_mode},
            actions={agent: actions},
            prompts=prompts,
            prompt_folder=prompt_folder,
            reask=reask,
            normalize=normalize,
            masks=masks,
        )
        self.codec = codec(self.game, 0, actions, reask, (num_envs,))
        self.single_observation_space = self.windows.spaces[agent]
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.single_action_space = self.codec.space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._indexes = np.arange(num_envs)
        self._played = 0
        self._loop: TableLoop | str | None = None  # or why there is none
        self._learner: Any = np.zeros(num_envs, np.int64)  # where each sits, or did before
        self._clear()

    @property
    def opponents(self) -> tuple[Policy, ...]:
        """The other players, each once."""
        return tuple(self.seating.policies)

    def _clear(self) -> None:
        n = self.num_envs
        self._ready = False  # whether all were reset
        self._result: Result | None = None  # of a step, until it was returned
        self._moves = np.zeros((self.game.players, n), np.int64)  # made, but not played yet
        self._has_moves = False  # whether actions were taken of which no result was made yet
        flags = (np.zeros(n, np.bool_) for _ in range(10))
        self._moved, self._waits, self._fresh, self._looked, self._planned, *other_flags = flags
        self._acted, self._broke, self._finished, self._done, self._spoke = other_flags
        self._pending = np.zeros(n, np.bool_)  # whose next episode starts as a loop plays on
        self._reward, self._payoff, self._lost = (np.zeros(n) for _ in range(3))
        self._steps = np.zeros(n, np.int64)
        self._action = np.zeros(n, np.int64 if self.game.core.unit == 1 else np.float64)
        self._plan = np.zeros((n, self.game.players), np.int64)
        self._readings: dict[int, dict[str, Any]] = {}  # of replies in words, by table

    # -- Gymnasium's -------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start all copies, or those of ``options={"reset_mask": bool array}``.

        Raises:
            BadParameter: a seed, a mask or chance that cannot be.
            NotReady: a mask leaves some out that were never reset, or are in a step that failed.
            ClientError: another player's call brought no completion: reset again.
        """
        options, seeds = options_of(options), seeds_of(seed, self.num_envs)
        mask = self._mask(options.get("reset_mask"))
        super().reset(seed=seeds[0])
        if all_true(mask):
            self._clear()
        elif self._has_moves or self._result is not None:
            way = "call step() to go on, or reset all copies"
            raise NotReady(f"{self.game.name}: a step failed half-way: {way}")
        self._ready, notes = False, self.seats.notes
        try:
            self._begin(mask, seeds, options.get("chance"))
            self._play_on(self._fresh)  # also of a reset that failed
        except BaseException:
            self.seats.notes = notes  # to be recalled when it is reset again
            raise
        self._ready, self._fresh[:] = True, False
        return self._observation(), self._infos(mask)

    def _mask(self, mask: Any) -> PerTable:
        if mask is None:
            return self._indexes >= 0
        right = isinstance(mask, np.ndarray) and mask.dtype == np.bool_
        if not right or mask.shape != (self.num_envs,) or not mask.any():
            raise BadParameter(
                f"reset_mask must be bool of shape ({self.num_envs},), true somewhere, got {mask!r}"
            )
        return np.array(mask)

    def step(self, actions: Any) -> Result:
        """Play the learners' actions, and on until each is asked again or done.

        Copies that start again take no action. One whose move needs several actions waits with a
        reward of 0 while the others are played.

        Raises:
            NotReady: nothing was reset, or not what ended and does not start again by itself.
            IllegalAction: an action is outside its space; names the seat and the table.
            ClientError: another player's call brought no completion. The learners' actions were
                taken, whatever the next ones are: the next `step` asks that player again.
        """
        if not self._ready:
            raise NotReady(f"{self.game.name}: call reset() before step()")
        if self._result is None:
            if not self._has_moves:
                self._take(actions)
            self._play_on(self._fresh | self._waits)
            self._result = self._ended()
        again = any_true(self._fresh)
        if again:  # what has started again at once
            self._play_on(self._fresh)
        (observation, *rest, infos), self._result = self._result, None
        if again:
            observation, infos = self._observation(), self._infos(self._indexes >= 0) | infos
            self._fresh[:] = False
        return observation, *rest, infos

    def action_masks(self) -> Array:
        """Return the learners' legal actions, bool ``(copies, actions)``."""
        self.codec.need_masks()
        return self.codec.masks(self._view())

    # -- a step ------------------------------------------------------------------------------------

    def _begin(self, mask: PerTable, seeds: Any = None, fixed_chance: Any = None) -> None:
        if not any_true(mask):
            return
        if seeds is None and isinstance(self._loop, TableLoop) and self._loop.starts:
            self._fresh |= mask
            return self._loop.start(self, mask)
        follows = self.tables.follows(seeds)
        self.tables.reset(seeds, mask, fixed_chance)
        if isinstance(self.seating.seat, str) or not self._ready:  # else all stay where they sit
            self._sit(mask, follows)
        if not self.codec.speaks:
            self.tables.hush(self._learner_mask, mask)
        for name in OF_EPISODES:
            np.copyto(getattr(self, name), False, where=mask)
        self._readings = {t: reading for t, reading in self._readings.items() if not mask[t]}
        self.seats.outcomes = {t: tally for t, tally in self.seats.outcomes.items() if not mask[t]}
        self._fresh |= mask
        self.codec.begin(mask)
        ready, self._ready = self._ready, False  # if a player fails to start, only reset helps
        self.seats.start(mask)
        self._ready = ready

    def _learner_mask(self) -> Array:
        """Return the learners' seats, bool ``(players, copies)``."""
        row = self._learner if isinstance(self.seating.seat, str) else self.seating.seat
        return np.broadcast_to(np.arange(self.game.players)[:, None] == row, self._moves.shape)

    def _sit(self, mask: PerTable, follows: PerTable) -> None:
        """Seat the learners of these tables, and the others around them."""
        tables = np.flatnonzero(mask)
        previous_seats = np.where(follows, self._learner, -1)[tables]
        learner_seats = self.seating.seats(self.tables.seeds[tables], previous_seats)
        self._learner, sits = self._learner.copy(), self.seats.sits.copy()
        self._learner[tables], sits[:, tables] = learner_seats, self.seating.sits(learner_seats)
        self.seats.sits = sits

    def _take(self, actions: Any) -> None:
        """Take the actions of copies whose learner is asked; start again what has ended."""
        if self.autoreset_mode == AutoresetMode.DISABLED and any_true(self._done):
            ended = np.flatnonzero(self._done).tolist()
            how = 'reset(options={"reset_mask": ...})'
            raise NotReady(f"{self.game.name}: copies {ended} have ended: call {how}")
        self._acted[:] = self._broke[:] = self._planned[:] = False
        self._readings = {}
        asked = ~(self._over() | self._fresh | self._done)
        moves, whole = self.codec.take_batch(self._view(), actions, asked)
        self._begin(self._done.copy())
        if moves.ndim > 1:
            self._moves += moves
        else:
            self._moves[self._row()] += moves
        self._moved[:] = self._waits[:] = whole
        self._has_moves = True

    def _over(self) -> PerTable:
        """Return whose learner has nothing more to do."""
        if self.max_cycles is None:
            return self._finished
        played = self.tables.state.round - self.game.core.begun
        return np.asarray(self._finished | (played >= self.max_cycles))

    def _play_on(self, mask: PerTable) -> None:
        """Play steps of these tables until learners are asked or done; also after a failure."""
        if self._played < PATIENCE:
            self._played += self.num_envs
        elif self._loop is None:
            self._loop = loop_of(self)
        if isinstance(self._loop, TableLoop):
            return self._loop.play_on(self, mask)
        for _ in range(LONGEST_WAIT):
            turn = self.tables.ready().turn
            waits = turn[self._row()] > self._moved  # of truths: the first, and not the second
            due = mask > (waits | self._over())
            if not any_true(due):
                break
            if self.seats.march(due):
                continue
            every = all_true(due)
            actions = added(self.seats.ask_now(turn if every else turn & due), self._moves)
            previous_state = self.tables.state
            part: Any = slice(None) if every else due.nonzero()[0]
            outcome = self.tables.step(actions, None if isinstance(part, slice) else part)
            self._note(previous_state, outcome, part)
            self.codec.begin(due)
            self.seats.hear(due)
        else:
            raise BadParameter(f"{self.game.name}: nobody ends the game; set max_cycles")
        if self.seats.look_back:
            over = mask & self.tables.state.over & ~self._looked
            self.seats.finish(over)
            self._looked |= over

    def _row(self, part: Any = slice(None)) -> Any:
        """Return the index of these tables' learners in arrays of all seats."""
        if not isinstance(self.seating.seat, str):
            return self.seating.seat
        seats_here = self._learner[part]
        return seats_here, self._indexes[: len(seats_here)]

    def _note(self, previous_state: Any, outcome: Outcome, part: Any) -> None:
        """Note the outcome of a step of these tables, from `previous_state`, for their learners."""
        row, moved = self._row(part), self._moved[part]
        payoffs = outcome.rewards[row]
        self._reward[part] += payoffs
        self._payoff[part] += payoffs
        self._finished[part] = outcome.finished[row]
        if not any_true(moved):
            return
        if all_true(moved):
            acted, moved = part, slice(None)
        else:
            acted = self._indexes[part][moved]
        self._acted[acted] = True
        self._broke[acted] = outcome.broke[row][moved]
        actions = outcome.record["actions"]
        talking: Array = self.game.talking(previous_state)[part]
        self._action[acted] = self.game.core.in_units(actions[row][moved], talking[moved])
        if self.game.division is not None:
            planned: Array = np.any(self.game.sharers(previous_state), axis=0)
            self._planned[acted] = planned[acted]
            self._plan[acted] = actions[:, moved].T
        if self.regret is not None:
            self._spoke[acted] = talking[moved]
            if not all_true(talking):
                lost = regret_of(self.game, self.regret, outcome, talking)
                self._lost[acted] = lost[row][moved]
        if self.codec.reading:
            took = set(self._indexes[acted].tolist())
            self._readings |= {t: reading for t, reading in self.codec.reading.items() if t in took}
        self._moved[acted] = False
        self._moves[:, acted] = 0

    def _ended(self) -> Result:
        """Return the outcome of a step, and start copies again that do so at once."""
        ended = self._over() & ~self._fresh
        is_paid = self._waits | ended
        rewards = np.where(is_paid, self._reward, 0.0)
        self._reward[is_paid] = 0.0
        terminated = ended & self._finished
        truncated = ended & ~terminated
        if self.max_episode_steps is not None:
            self._steps += ~self._fresh
            truncated |= self._steps >= self.max_episode_steps
            ended = terminated | truncated
        self._done[:] = ended
        self._fresh[:] = self._waits[:] = False
        self._has_moves = False
        observation = self._observation()
        if self.autoreset_mode == AutoresetMode.SAME_STEP and any_true(ended):
            last = {"final_obs": final(observation, ended), "final_info": self._infos(ended)}
            infos = last | {f"_{name}": ended.copy() for name in last}
            self._begin(ended)
        else:
            infos = self._infos(self._indexes >= 0)
        return observation, rewards, terminated, truncated, infos

    # -- observations ------------------------------------------------------------------------------

    def _view(self) -> View:
        sight = self.tables.ready()
        if self._cached_view is None or self._cached_view.sight is not sight:
            alike = not isinstance(self.seating.seat, str)
            self._cached_view = sight.view(self.seating.seat if alike else self._learner)
        return self._cached_view

    def _observation(self) -> Any:
        view, parts = self._view(), dict[str, Any]()
        if self.obs_mode != "text":
            numbers = view.numbers.copy() if "numbers" in view.sight.__dict__ else view.numbers
            view.__dict__.pop("numbers", None)  # they are the caller's from now on
            parts["observation"] = self.windows.scaled(self.codec.shown(numbers))
        if self.windows.shows_mask(self.codec):
            parts["action_mask"] = self.codec.masks(view).view(np.int8)
        if self.obs_mode != "numeric":
            views = (view.table(copy) for copy in range(self.num_envs))
            parts["text"] = tuple(map(self.windows.text, views))
        return parts["observation"] if list(parts) == ["observation"] else parts

    def _infos(self, mask: PerTable) -> dict[str, Any]:
        """Return the infos of `SingleAgentEnv` in Gymnasium's form for vectors."""
        infos: dict[str, Any] = {}
        acted = mask & self._acted

        def tell(tables: PerTable, **arrays: Array) -> None:
            every = all_true(tables)
            for name, values in arrays.items():
                of_them = tables if values.ndim == 1 else tables[:, None]
                infos[name] = values.copy() if every else values * of_them
                infos[f"_{name}"] = tables.copy()

        asked, payoff, seat = self._view().asked, self._payoff, self._learner
        tell(mask, asked=asked, broke=self._broke, payoff=payoff, seat=seat)
        if self.codec.masked and self.windows.masks_apart:
            tell(mask, action_mask=self.codec.masks(self._view()).view(np.int8))
        if any_true(acted):
            tell(acted, action=self._action)
        if self.regret is not None and any_true(played := acted & ~self._spoke):
            tell(played, regret=self._lost)
        if any_true(planned := acted & self._planned):
            tell(planned, plan=self._plan)
        for copy in [copy for copy in self.seats.outcomes if mask[copy]]:
            outcomes = dict(self.seats.outcomes.pop(copy))
            infos = self._add_info(infos, {"opponents": outcomes}, copy)
        for copy, reading in (self._readings | self.codec.reading).items():
            if mask[copy]:
                infos = self._add_info(infos, reading, copy)
        return infos


def regret_of(game: Rulebook, regret: Regret, outcome: Outcome, talking: PerTable) -> Array:
    """Return each seat's regret in a step, ``(players, tables)``, 0 at tables that talked."""
    if not any_true(talking):
        return regret(game.core, outcome.record)
    lost, moves = np.zeros(outcome.rewards.shape), np.flatnonzero(~talking)
    if not len(moves):
        return lost
    record = dict(outcome.table(moves).record)
    actions = record["actions"].astype(np.int64)  # among words they were objects
    lost[:, moves] = regret(game.core, record | {"actions": actions})
    return lost


def final(observation: Any, ended: PerTable) -> Array:
    """Return observations of those that ended, ``(num_envs,)`` of objects, None of the others."""
    rows, copies = np.full(len(ended), None, object), np.flatnonzero(ended)
    for copy, row in zip(copies.tolist(), _rows(observation, copies), strict=True):
        rows[copy] = row
    return rows


def _rows(observation: Any, copies: Array) -> list[Any]:
    if isinstance(observation, dict):
        parts = zip(*(_rows(part, copies) for part in observation.values()), strict=True)
        return [dict(zip(observation, row, strict=True)) for row in parts]
    if isinstance(observation, tuple):
        return [observation[copy] for copy in copies.tolist()]
    return list(observation[copies])
