"""One learner at a table of fixed players, as a Gymnasium environment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from llm_games.env import Table
from llm_games.errors import BadParameter, NotReady
from llm_games.questions import Action
from llm_games.registry import rulebook
from llm_games.rulebook import Array, Outcome, Rulebook, check_integer
from llm_games.view import View
from llm_games.wrappers.llm_policy import run_sync
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.random_player import RandomPolicy

LONGEST_WAIT = 10_000
"""Steps of the rules without the learner's move after which a game is taken to hang."""


class SingleAgentEnv(gymnasium.Env[Any, Any]):
    """A game in which one seat learns and the others are played by policies.

    Observations and rewards are the learner's own. An episode ends when the learner has nothing
    more to do. Rewards of steps in which it is not asked are added to its next one. Discrete
    actions start at 0, as most learners want (action ``a`` is ``a + low`` of the rules).

    Args:
        game: a game's name or a rulebook.
        seat: the learner's seat.
        opponents: one policy for all other seats, or one for each of them in seat order;
            the default plays at random.
        obs_mode: ``"numeric"`` (default), ``"text"`` or ``"both"``.
        settings: what `llm_games.make` takes; parameters of the game if it is given by name.

    Raises:
        BadParameter, UnknownName: see `llm_games.make`.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        game: str | Rulebook,
        *,
        seat: int = 0,
        opponents: Policy | Sequence[Policy] | None = None,
        obs_mode: str = "numeric",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        prompts: str = "v1",
        prompt_folder: str | None = None,
        on_illegal: str = "fallback",
        **parameters: Any,
    ) -> None:
        self.game = rulebook(game, **parameters) if isinstance(game, str) else game
        check_integer("seat", seat, 0, self.game.players - 1)
        self.seat, self.render_mode, self.max_cycles = seat, render_mode, max_cycles
        self.agent = self.game.names()[seat]
        self.opponents = _seated(opponents, self.game.players, seat)
        self.table = Table(
            self.game,
            obs_mode=dict.fromkeys(self.game.names(), "numeric") | {self.agent: obs_mode},
            render_mode=render_mode,
            max_cycles=max_cycles,
            prompts=prompts,
            prompt_folder=prompt_folder,
            on_illegal=on_illegal,
        )
        self.observation_space = self.table.observation_spaces[self.agent]
        space = self.table.action_spaces[self.agent]
        self._first = int(space.start) if isinstance(space, spaces.Discrete) else None
        self.action_space = space if self._first is None else spaces.Discrete(int(space.n))  # type: ignore[attr-defined]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a game and play on until the learner is asked. `options` are ignored."""
        super().reset(seed=seed)
        self.table.reset(int(self.np_random.integers(2**31)))
        seeds = self.np_random.integers(2**31, size=self.game.players).tolist()
        self._memories = {
            seat: policy.start(self.game, seat, seeds[seat])
            for seat, policy in self.opponents.items()
        }
        self._tell()
        self._done = False
        _, _, broke = self._wait()
        return self._observation(), {"broke": broke}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play the learner's action, and on until it is asked again or done.

        Raises:
            NotReady: the game was never reset, or is over for the learner.
            IllegalAction: the action is outside its space.
        """
        self.table.ready()
        if self._done:
            raise NotReady(f"{self.game.name} is over for the learner: call reset()")
        if self._first is not None and action is not None:
            action = np.asarray(action) + self._first
        move = self.table.decode(self.agent, action)
        outcome = self._play({self.seat: move})
        reward, finished = float(outcome.rewards[self.seat]), bool(outcome.finished[self.seat])
        broke = bool(outcome.broke[self.seat])
        if not (finished or self._cut()):
            more, finished, _ = self._wait()
            reward += more
        self._done = finished or self._cut()
        return self._observation(), reward, finished, self._done and not finished, {"broke": broke}

    def action_masks(self) -> Array:
        """Return the learner's legal actions, bool, for learners that mask (MaskablePPO)."""
        if not isinstance(self.action_space, spaces.Discrete):
            raise BadParameter(
                f"{self.game.name} has no masks: its actions are {self.action_space}"
            )
        mask: Array = self.game.mask(self.table.ready())[self.seat]
        return mask

    def render(self) -> Any:
        """Return the table as text (``ansi``) or print it (``human``)."""
        if self.render_mode == "human":
            print(self.table.picture(), flush=True)
            return None
        return self.table.picture()

    def _observation(self) -> Any:
        return self.table.observations([self.agent])[self.agent]

    def _cut(self) -> bool:
        return self.max_cycles is not None and int(self.table.state.round) >= self.max_cycles

    def _wait(self) -> tuple[float, bool, bool]:
        """Play the others until the learner is asked; return its reward, end and rule break."""
        reward, finished = 0.0, False
        for _ in range(LONGEST_WAIT):
            if finished or self._cut() or self.game.asked(self.table.state)[self.seat]:
                return reward, finished, False
            outcome = self._play({})
            reward += float(outcome.rewards[self.seat])
            finished = bool(outcome.finished[self.seat])
        raise BadParameter(f"{self.game.name}: nobody ends the game; set max_cycles")

    def _play(self, moves: dict[int, Action]) -> Outcome:
        """Ask the other seats that have to move, all at the same time, and play one step."""
        asked = {self.table.seats[agent]: agent for agent in self.table.asked}
        asked.pop(self.seat, None)
        waiting = []
        for seat, agent in asked.items():
            policy, view = self.opponents[seat], self.table.view(agent)
            if type(policy).decide is Policy.decide:
                decision, self._memories[seat] = policy.act(view, self._memories[seat])
                moves[seat] = decision.action
            else:
                waiting.append(self._decide(seat, view))
        if waiting:
            moves |= run_sync(_gathered(waiting))
        outcome = self.table.step(moves)
        self._tell()
        return outcome

    async def _decide(self, seat: int, view: View) -> tuple[int, Action]:
        decision, self._memories[seat] = await self.opponents[seat].decide(
            view, self._memories[seat]
        )
        return seat, decision.action

    def _tell(self) -> None:
        """Let opponents hear what they are told, whether they are asked or not."""
        for seat, policy in self.opponents.items():
            if type(policy).hear is not Policy.hear:
                view = self.table.view(self.table.agents[seat])
                self._memories[seat] = policy.hear(view, self._memories[seat])


async def _gathered(waiting: Sequence[Awaitable[tuple[int, Action]]]) -> dict[int, Action]:
    return dict(await asyncio.gather(*waiting))


def _seated(
    opponents: Policy | Sequence[Policy] | None, players: int, seat: int
) -> dict[int, Policy]:
    others = [other for other in range(players) if other != seat]
    if opponents is None:
        opponents = RandomPolicy()
    if isinstance(opponents, Policy):
        return dict.fromkeys(others, opponents)
    if isinstance(opponents, str):
        raise BadParameter(f"opponents must be policies: make_player({opponents!r})")
    if len(opponents) != len(others):
        raise BadParameter(
            f"opponents must be one policy or {len(others)} (all seats but seat {seat}), "
            f"got {len(opponents)}"
        )
    return dict(zip(others, opponents, strict=True))
