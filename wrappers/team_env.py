"""All seats learn, in many copies of a game at once: PettingZoo's parallel form in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from llm_games.arrays import Array, array_of
from llm_games.codecs import codec
from llm_games.env import Windows, options_of
from llm_games.errors import IllegalAction, unknown
from llm_games.facts import check_choice, check_integer
from llm_games.registry import rulebook
from llm_games.rulebook import Outcome, PerPlayer, Rulebook
from llm_games.table_batch import Tables, seeds_of
from llm_games.view import Sight
from llm_games.wrappers.vector_env import final

Batches = dict[str, Any]  #: by agent, arrays ``(num_envs, ...)`` or dicts of such


class TeamVectorEnv:
    """Copies of a game in which every seat learns, all played in one NumPy step of the rules.

    As PettingZoo's parallel environments, and as AgileRL takes them, it goes by agent, with arrays
    ``(num_envs, ...)``: one policy for each seat, or `rows` for one policy of all. Everybody acts
    at every step; a seat that has nothing to decide sees a mask of index 0 alone, its no-op. A copy
    ends when all its seats have, and starts again within that step, where ``infos`` have its
    ``final_obs`` and, true of it, ``_final_obs``. Until then a seat that is out stays terminated.
    ``reset(seed=s)`` is the episodes of the seeds s, s + 1, ... of copies 0, 1, ....

    ``infos[agent]`` has ``asked``, ``broke``, ``payoff`` (its rewards of the episode so far) and
    ``action`` (its last move as it was played, in the rules' units), ``(num_envs,)``; where `masks`
    says so, ``action_mask``, ``(num_envs, indexes)``.

    Args:
        game: a rulebook, or a game's name with its `parameters`.
        num_envs: how many copies.
        actions: ``"index"``, ``"least"`` or ``"unit"``, see `llm_games.make`.
        normalize, masks, max_cycles, parameters: see `llm_games.make`, also for what is raised.
    """

    render_mode = None

    def __init__(
        self,
        game: str | Rulebook,
        num_envs: int = 1,
        *,
        actions: str = "index",
        normalize: bool = False,
        masks: str = "observation",
        max_cycles: int | None = None,
        **parameters: Any,
    ) -> None:
        self.game = rulebook(game, **parameters)
        check_integer("num_envs", num_envs, 1)
        check_choice("actions", actions, ("index", "least", "unit"))
        if max_cycles is not None:
            check_integer("max_cycles", max_cycles, 1)
        self.num_envs, self.max_cycles = num_envs, max_cycles
        self.actions, self.normalize = actions, normalize
        self.metadata = {"name": f"{self.game.name}_v0", "render_modes": [], "render_fps": 1}
        self.possible_agents = self.agents = self.game.names()
        self.num_agents = len(self.agents)
        self.tables = Tables(self.game, num_envs)
        self.windows = Windows(self.game, "numeric", actions, normalize=normalize, masks=masks)
        self._codecs = [
            codec(self.game, seat, actions, batch=(num_envs,)) for seat in range(self.game.players)
        ]

    # -- spaces ------------------------------------------------------------------------------------

    def single_observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of an agent's observation of one copy."""
        self._check_agent(agent)
        return self.windows.spaces[agent]

    def single_action_space(self, agent: str) -> spaces.Space[Any]:
        """Return an agent's actions in one copy."""
        self._check_agent(agent)
        return self.windows.codecs[self.agents.index(agent)].space

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of an agent's observations of all copies."""
        return batch_space(self.single_observation_space(agent), self.num_envs)

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return an agent's actions in all copies."""
        return batch_space(self.single_action_space(agent), self.num_envs)

    def _check_agent(self, agent: str) -> None:
        if agent not in self.agents:
            raise unknown("agent", agent, self.agents)

    # -- play --------------------------------------------------------------------------------------

    def reset(
        self, seed: int | Sequence[int | None] | None = None, options: Any = None
    ) -> tuple[Batches, dict[str, Batches]]:
        """Start all copies, with ``options={"chance": {...}}``; raises as `Tables.reset`."""
        fixed_chance, n = options_of(options).get("chance"), self.num_envs
        self._start(seeds_of(seed, n), fixed_chance=fixed_chance)
        shape = self.game.players, n
        self._moves = np.zeros(shape, np.int64)
        self._action = np.zeros(shape, np.int64 if self.game.core.unit == 1 else np.float64)
        self._payoff, self._finished = np.zeros(shape), np.zeros(shape, np.bool_)
        self._broke, self._waiting = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        self._next(np.ones(n, np.bool_))
        none = {"payoff": self._payoff.copy(), "action": self._action.copy()}
        return self._by_agent(self._observations()), self._infos(none)

    def _start(self, seeds: Any = None, mask: Any = None, fixed_chance: Any = None) -> None:
        """Start an episode in these copies; no talk waits for seats without words."""
        self.tables.reset(seeds, mask, fixed_chance)
        if self.windows.mute:
            every = self.game.players, self.num_envs
            self.tables.hush(lambda: np.ones(every, np.bool_), mask)

    def _next(self, mask: Array) -> None:
        """Begin a step of the rules in these copies: nobody has moved yet."""
        for seat_codec in self._codecs:
            seat_codec.begin(mask)
        self._moves = np.where(mask, 0, self._moves)  # a new one: states keep what was played
        turn = self.tables.ready().turn
        self._waiting = turn if mask.all() else np.where(mask, turn, self._waiting)

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[Batches, Batches, Batches, Batches, dict[str, Batches]]:
        """Play one step; copies in which somebody's move is not whole wait, unpaid.

        Raises:
            NotReady: it was never reset.
            IllegalAction: names an agent and a copy, whose action is missing or outside its space.
        """
        sight = self.tables.ready()
        self._take(sight, actions)
        ready: Any = ~self._waiting.any(axis=0)
        rewards = np.zeros(self._moves.shape)
        self._broke = np.zeros(self._moves.shape, np.bool_)
        if ready.any():
            part = None if ready.all() else np.flatnonzero(ready)
            spoken = self.game.talking(self.tables.state)[ready]
            outcome = self.tables.step(self._moves, part)
            self._action[:, ready] = self.game.core.in_units(outcome.record["actions"], spoken)
            self._played(outcome, ready, rewards)
        limit = np.inf if self.max_cycles is None else self.max_cycles
        finished = self._finished
        cut = (self.tables.state.round - self.game.core.begun >= limit) & ~finished
        done: Any = (finished | cut).all(axis=0)
        infos: dict[str, Any] = {"payoff": self._payoff.copy(), "action": self._action.copy()}
        if done.any():
            infos |= {"final_obs": self._observations(), "_final_obs": self.game.everybody(done)}
            self._start(mask=done)
            self._payoff[:, done], self._action[:, done] = 0, 0
            self._finished = finished & ~done
        self._next(ready | done)
        observed, payoffs = self._by_agent(self._observations()), self._by_agent(rewards)
        return observed, payoffs, self._by_agent(finished), self._by_agent(cut), self._infos(infos)

    def _take(self, sight: Sight, actions: Mapping[str, Any]) -> None:
        """Take everybody's actions, or none if one is refused."""
        if not isinstance(actions, Mapping) or {*actions} != {*self.agents}:
            agents = [*actions] if isinstance(actions, Mapping) else actions
            rule = f"actions must be a dict, one for each of {self.agents}"
            raise IllegalAction(f"{rule}, got {agents}")
        codecs, moves = [*map(copy, self._codecs)], self._moves.copy()
        waiting = self._waiting.copy()
        for seat, agent in enumerate(self.agents):
            mask = self._waiting[seat]
            seat_moves, whole = codecs[seat].take_batch(sight.view(seat), actions[agent], mask)
            if seat_moves.ndim > 1:  # plans, and votes among zeros
                moves += seat_moves
            else:
                moves[seat] += seat_moves
            waiting[seat] &= ~whole
        self._codecs, self._moves, self._waiting = codecs, moves, waiting

    def _played(self, outcome: Outcome, mask: Array, rewards: PerPlayer) -> None:
        rewards[:, mask] = outcome.rewards
        self._payoff[:, mask] += outcome.rewards
        self._broke[:, mask] = np.broadcast_to(outcome.broke, outcome.rewards.shape)
        self._finished = self._finished.copy()
        self._finished[:, mask] = outcome.finished

    # -- observations ------------------------------------------------------------------------------

    def _observations(self) -> Any:
        """Return new observations of all seats, ``(players, num_envs, ...)``."""
        rows = zip(self._codecs, self.tables.ready().numbers, strict=True)
        numbers = self.windows.scaled(np.stack([codec.shown(row.copy()) for codec, row in rows]))
        if not self.windows.shows_mask(self._codecs[0]):
            return numbers
        return {"observation": numbers, "action_mask": self._masks()}

    def _masks(self) -> Array:
        sight = self.tables.ready()
        masks = [seat_codec.masks(sight.view(seat)) for seat, seat_codec in enumerate(self._codecs)]
        return np.stack(masks).astype(np.int8)

    def _by_agent(self, rows: Any) -> Batches:
        if isinstance(rows, dict):
            parts = {part: self._by_agent(agent_rows) for part, agent_rows in rows.items()}
            return {agent: {part: parts[part][agent] for part in rows} for agent in self.agents}
        return dict(zip(self.agents, rows, strict=True))

    def _infos(self, infos: dict[str, Any]) -> dict[str, Batches]:
        apart = self._codecs[0].masked and self.windows.masks_apart
        masks = {"action_mask": self._masks()} if apart else {}
        return self._by_agent({"asked": self._waiting, "broke": self._broke, **infos, **masks})

    def action_masks(self) -> dict[str, Array]:
        """Return by agent which indexes are legal, bool ``(num_envs, indexes)``."""
        self._codecs[0].need_masks()
        return self._by_agent(self._masks().astype(np.bool_))

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    def rows(self) -> SeatRows:
        """Return the same as a vector environment with a row for each seat of each copy."""
        return SeatRows(self)


class SeatRows(VectorEnv[Any, Any, Any]):
    """A row for each seat of each copy, seat after seat, for learners of which one plays all seats.

    A row ends with its copy, not before: a seat that is out goes on with its no-op, unpaid. Copies
    start again within the step, see `gymnasium.vector.AutoresetMode.SAME_STEP`.
    """

    autoreset_mode = AutoresetMode.SAME_STEP

    def __init__(self, team: TeamVectorEnv) -> None:
        self.team, self.game = team, team.game
        self.actions, self.normalize = team.actions, team.normalize
        self.num_envs = team.num_agents * team.num_envs
        first = team.agents[0]
        self.single_observation_space = team.single_observation_space(first)
        self.single_action_space = team.single_action_space(first)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {**team.metadata, "autoreset_mode": self.autoreset_mode}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in all copies, see `TeamVectorEnv.reset`."""
        obs, infos = self.team.reset(seed, options)
        return _rows(obs), _rows(infos)

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Play the rows' actions, ``(num_envs, ...)``; raises as `TeamVectorEnv.step` does."""
        team, moves = self.team, array_of(actions)
        if moves.shape[:1] != (self.num_envs,):
            raise IllegalAction(f"{self.num_envs} rows take as many actions, got {moves.shape}")
        by_agent = np.split(moves, team.num_agents)
        obs, rewards, ended, cut, infos = team.step(dict(zip(team.agents, by_agent, strict=True)))
        over = np.tile(np.all([ended[a] | cut[a] for a in team.agents], axis=0), team.num_agents)
        row_infos = _rows(infos)
        if "final_obs" in row_infos:  # as Gymnasium has them
            row_infos["final_obs"] = final(row_infos["final_obs"], over)
        return _rows(obs), _rows(rewards), _rows(ended) & over, _rows(cut) & over, row_infos

    def action_masks(self) -> Array:
        """Return the legal indexes, bool ``(num_envs, indexes)``."""
        return _rows(self.team.action_masks())


def _rows(by_agent: Mapping[str, Any]) -> Any:
    """Put arrays by agent together, seat after seat."""
    parts = [*by_agent.values()]
    if isinstance(parts[0], dict):
        return {part: _rows({a: by_agent[a][part] for a in by_agent}) for part in parts[0]}
    return np.concatenate(parts)
