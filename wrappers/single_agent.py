"""One learner at a table of fixed players, as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium

from llm_games.env import TableEnv
from llm_games.errors import BadParameter, NotReady
from llm_games.facts import check_integer
from llm_games.registry import rulebook
from llm_games.rulebook import Array, Rulebook
from llm_games.wrappers.llm_policy import run_sync
from llm_games.wrappers.policy import Note, Policy, RandomPolicy
from llm_games.wrappers.seats import Seats, moves_of, policy_of

LONGEST_WAIT = 10_000
"""Steps of the rules without the learner's move after which a game is taken to hang."""


class SingleAgentEnv(TableEnv, gymnasium.Env[Any, Any]):
    """A game in which one seat learns and the others are played by policies.

    Observations and rewards are the learner's own. An episode ends when the learner has nothing
    more to do. Rewards of steps in which it is not asked are added to its next one. Other players
    look back at a game that is over, and recall their notes in the next, as in `play`.

    Args:
        game: a rulebook, or a game's name with its `parameters`.
        seat: the learner's seat.
        opponents: one policy for all other seats, or one for each of them in seat order, also as
            clients or plain functions, see `player_of`; the default plays at random.
        obs_mode: ``"numeric"`` (default), ``"text"`` or ``"both"``.
        actions, reask, prompts, prompt_folder, render_mode, max_cycles, on_illegal, parameters:
            see `llm_games.make`, also for what is raised.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        game: str | Rulebook,
        *,
        seat: int = 0,
        opponents: Any = None,
        obs_mode: str = "numeric",
        actions: str = "index",
        reask: int = 0,
        render_mode: str | None = None,
        max_cycles: int | None = None,
        prompts: str = "v1",
        prompt_folder: str | None = None,
        on_illegal: str = "fallback",
        **parameters: Any,
    ) -> None:
        rules = rulebook(game, **parameters) if isinstance(game, str) else game
        check_integer("seat", seat, 0, rules.players - 1)
        self.seat, self.agent = seat, rules.names()[seat]
        self.actions, self.normalize = actions, False
        self._sit_down(
            rules,
            render_mode,
            max_cycles,
            on_illegal,
            obs_mode={self.agent: obs_mode},
            actions={self.agent: actions},
            prompts=prompts,
            prompt_folder=prompt_folder,
            reask=reask,
        )
        self.seats = Seats(self.table, _seated(opponents, rules.players, seat))
        self.codec = self.windows.codecs[seat]
        self.observation_space = self.windows.spaces[self.agent]
        self.action_space = self.codec.space
        self._notes: dict[int, Sequence[Note]] = {}

    @property
    def opponents(self) -> Mapping[int, Policy]:
        """The other players by seat."""
        return self.seats.policies

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a game and play on until the learner is asked.

        ``options={"chance": {...}}`` gives chance, see `Rulebook.reset`.
        """
        super().reset(seed=seed)
        self._deal(seed, options)
        self.seats.start(self._notes)
        self._notes, self._broke, self._reward = {}, False, 0.0
        self._owed = self._finished = self._looked_back = False
        self._done = True  # until the others have moved
        self._play_on()
        self._done = False
        return self._observation(), self._said()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play the learner's action, if its move is whole, and on until it is asked again or done.

        Raises:
            NotReady: the game was never reset, or is over for the learner.
            IllegalAction: the action is outside its space.
            ClientError: another player's call brought no completion. The learner's action was
                taken, whatever the next one is: the next `step` asks that player again.
        """
        self.table.ready()
        if self._done:
            raise NotReady(f"{self.game.name} is over for the learner: call reset()")
        if not self._owed:
            if not self._take(self.seat, action):
                return self._observation(), 0.0, False, False, self._said()
            self._owed, self._reward, self._told = True, 0.0, self._said()
        self._play_on()
        self._done, self._owed = self._finished or self._limit_reached(), False
        truncated = self._done and not self._finished
        return self._observation(), self._reward, self._finished, truncated, self._told

    def action_masks(self) -> Array:
        """Return the learner's legal actions, bool, for learners that mask (MaskablePPO)."""
        if not isinstance(self.action_space, gymnasium.spaces.Discrete):
            fault = f"has no masks: its actions are {self.action_space}"
            raise BadParameter(f"{self.game.name} {fault}")
        self.table.ready()
        return self.codec.mask(self.view(self.agent))

    def render(self) -> Any:
        """Return the table as text, or print it (``human``)."""
        return super().render() if self.render_mode else self.table.picture()

    def _observation(self) -> Any:
        return self.windows.observation(self.view(self.agent))

    def _said(self) -> dict[str, Any]:
        return {"broke": self._broke, **(self.codec.heard or self._heard.get(self.seat, {}))}

    def _play_on(self) -> None:
        """Play steps until the learner is asked, or done; also on from a call that failed."""
        for _ in range(LONGEST_WAIT):
            moved = self.seat in self._moves
            asked = self.seat in self.table.asked and not moved
            if asked or self._finished or self._limit_reached():
                break
            self._moves |= moves_of(self.seats.ask_now())
            outcome = self._play()
            self.seats.hear()
            self._broke = moved and bool(outcome.broke[self.seat])
            self._reward += float(outcome.rewards[self.seat])
            self._finished = bool(outcome.finished[self.seat])
            if moved:
                self._told = self._said()
        else:
            raise BadParameter(f"{self.game.name}: nobody ends the game; set max_cycles")
        if self.table.state.over and not self._looked_back:
            found = run_sync(self.seats.finish()) if self.seats.look_back else {}
            self._looked_back = True
            self._notes = {seat: decision.notes for seat, decision in found.items()}


def _seated(opponents: Any, players: int, seat: int) -> dict[int, Policy]:
    others = [other for other in range(players) if other != seat]
    opponents = RandomPolicy() if opponents is None else opponents
    if isinstance(opponents, str):
        raise BadParameter(f"opponents must be policies: make_player({opponents!r})")
    if not isinstance(opponents, list | tuple):
        return dict.fromkeys(others, policy_of(opponents))
    if len(opponents) != len(others):
        raise BadParameter(
            f"opponents must be one policy or {len(others)} (all seats but seat {seat}), "
            f"got {len(opponents)}"
        )
    return dict(zip(others, map(policy_of, opponents), strict=True))
