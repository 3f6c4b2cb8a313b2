"""Players of ours in loops of others: PettingZoo's two forms, Gymnasium's, under any wrappers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np

from llm_games.arrays import array_of
from llm_games.baselines.players import make_player
from llm_games.codecs import FreeText
from llm_games.env import TableEnv
from llm_games.errors import BadParameter, IllegalAction, NotReady, unknown
from llm_games.questions import MISSING, Action
from llm_games.view import Sight, View
from llm_games.wrappers.play import policy_of
from llm_games.wrappers.policy import Decision, Note, Policy, called
from llm_games.wrappers.seats import Seats
from llm_games.wrappers.single_agent import SingleAgentEnv
from llm_games.wrappers.together import run_sync


class SeatedPlayer:
    """A player on an agent's seat: called with an observation, it returns the action to step with.

    The player sees the table itself, so that no wrapper changes what it knows. Of the observation
    is only checked whose it is: exactly what another agent sees now is refused, and so is what this
    one saw when it decided last, unless wrappers were around `env`, which may delay observations.

    The action is the member of the agent's space that comes nearest to the move, and of a plan the
    first of its shares. The environment plays the move itself, exactly, when this action arrives,
    and refuses any other; a failed reply is the game's declared move, as in `play`.

    It hears, recalls and forgets as in `play`. It looks back at a game that is over when `finish`
    is called, when the next one is reset, or at the end of a ``with`` block.
    """

    def __init__(self, policy: Policy, env: TableEnv, seat: int, wrapped: bool = False) -> None:
        self.policy, self.speaks = policy, policy.speaks
        self._env, self._seat, self._wrapped = env, seat, wrapped
        self._seats = Seats(env.table, {seat: policy})
        self._sight: Sight | None = None  # in which it decided last
        self._decision: Decision | None = None
        self._action: Any = None
        self._notes: tuple[Note, ...] = ()
        self._looked_back = True
        self._asking: asyncio.Lock | None = None

    def __call__(self, observation: Any = None) -> Any:
        """Return the action of this step; the player decides when it is first called.

        Raises:
            NotReady: the environment was never reset, or another player sits here now.
            BadParameter: the observation is another agent's, or of an earlier step.
            ClientError: a model's call brought no completion; it is asked again by the next call.
        """
        if self._must_decide(observation):
            self._enter(self._seats.ask_now())
        return self._action

    async def act(self, observation: Any = None) -> Any:
        """Do the same without blocking the event loop, so that several seats can wait at once.

        NotReady: the table went on while the player decided, so that the decision counts nowhere.
        """
        self._asking = self._asking or asyncio.Lock()
        async with self._asking:  # whoever calls again meanwhile waits for the same action
            if self._must_decide(observation):
                self._enter(await self._seats.ask())
        return self._action

    def finish(self) -> Decision | None:
        """Let the player look back at an episode that is over; None if it has, or has nothing."""
        sits_here = self._env.seated.get(self._seat) is self
        if self._looked_back or not sits_here or not self._env.table.state.over:
            return None
        decisions = run_sync(self._seats.finish()) if self._seats.look_back else {}
        self._looked_back = True
        decision: Decision | None = decisions.get(self._seat)
        self._notes = decision.notes if decision else ()
        return decision

    def __str__(self) -> str:
        return f"{self._env.possible_agents[self._seat]} ({called(self.policy)})"

    def __enter__(self) -> SeatedPlayer:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._env.table.sight is not None:
            self.finish()

    # -- for the environment -----------------------------------------------------------------------

    def begin(self, seat: int) -> None:
        """Start an episode on this seat, with the notes of the one before."""
        if seat != self._seat:
            self._seat, self._seats = seat, Seats(self._env.table, {seat: self.policy})
        self._seats.start({seat: self._notes} if self._notes else None)
        self._looked_back, self._sight, self._asking = False, None, None

    def hear(self) -> None:
        """Hear what the game tells after a step."""
        self._seats.hear()
        self._asking = None

    def claim(self, action: Any) -> Action:
        """Return the move behind the action that this player gave in this step.

        Raises:
            IllegalAction: it gave another, or none.
        """
        if self._sight is not self._env.table.sight or self._decision is None:
            fault = f"was not called in this step, but {action!r} arrived"
            raise IllegalAction(f"{self} {fault}: step with what it returns when it is called")
        if not _is_same(self._action, action):
            fault = f"gave {self._action!r}, but {action!r} arrived"
            raise IllegalAction(f"{self} {fault}: step with what it gave, unchanged")
        codec, last = self._env.windows.codecs[self._seat], self._decision.last
        if isinstance(codec, FreeText):
            why = last.why if last else ""
            codec.reading = {"outcome": self._decision.outcome, "why": why}
        return self._decision.action

    # -- inside ------------------------------------------------------------------------------------

    def _must_decide(self, observation: Any) -> bool:
        sight = self._env.table.ready()
        if self._env.seated.get(self._seat) is not self:
            agent = self._env.possible_agents[self._seat]
            raise NotReady(f"another player sits on {agent} now: call that one, or sit down again")
        if observation is not None:
            self._check(sight, observation)
        return sight is not self._sight

    def _check(self, sight: Sight, observation: Any) -> None:
        """Refuse an observation that is surely not this agent's of this step."""
        seat, other = self._seat, ""
        if self._is_of(sight.view(seat), observation):
            return
        for number, agent in enumerate(self._env.possible_agents):
            if number != seat and self._is_of(sight.view(number), observation):
                other = f"of {agent}"
        last = None if self._wrapped or self._sight is sight else self._sight
        if last is not None and self._is_of(last.view(seat), observation):
            other = "of an earlier step"
        if other:
            fault = f"was called with the observation {other}"
            raise BadParameter(f"{self} {fault}: call it with its own of this step, or with none")

    def _is_of(self, view: View, observation: Any) -> bool:
        """Test whether the numbers of an observation, else its text, are exactly a seat's."""
        windows = self._env.windows
        if isinstance(observation, Mapping):
            observation = observation.get("observation", observation.get("text"))
        if isinstance(observation, str):
            reads = windows.modes[windows.agents[view.seat]] != "numeric"
            return reads and observation == windows.text(view)
        numbers = windows.scaled(view.numbers)
        alike = isinstance(observation, np.ndarray) and observation.shape == numbers.shape
        return alike and observation.tobytes() == numbers.tobytes()

    def _enter(self, decisions: dict[int, Decision]) -> None:
        """Keep what was decided, and the action that stands for it; none if it was not asked."""
        sight, codec = self._env.table.ready(), self._env.windows.codecs[self._seat]
        decision, self._notes = decisions.get(self._seat), ()
        view, move = sight.view(self._seat), decision.action if decision else MISSING
        if decision and decision.last and isinstance(codec, FreeText):
            self._action = decision.last.text
        else:
            self._action = codec.encode(view, move)
        self._sight, self._decision = sight, decision


def sit(player: Any, env: Any, agent: str | None = None) -> SeatedPlayer:
    """Let a player sit on an agent's seat of an environment of ours, whatever wraps it.

    Args:
        player: by name, as of `llm_games.player`, a policy, a client or a plain function.
        env: a PettingZoo environment of either form, or Gymnasium's with one learner.
        agent: whose seat it is; the learner's seat, wherever it is, needs none.

    Raises:
        BadParameter: `env` is none of ours or a vector, a wrapper changed the agent's actions, the
            player sits somewhere already, or cannot play this game.
        UnknownName: there is no such agent or player.
        NotReady: in the middle of an episode.
    """
    inner = getattr(env, "unwrapped", env)
    if not isinstance(inner, TableEnv):
        raise BadParameter(
            "env must be one environment of llm_games, in any wrappers, and no vector, whose other "
            f"seats take players as opponents: got {env!r}"
        )
    if isinstance(player, SeatedPlayer):
        raise BadParameter(f"{player} sits already: let its policy sit down, or the player's name")
    if isinstance(inner, SingleAgentEnv):
        names, agent = [inner.agent], inner.agent if agent is None else agent
    else:
        names = inner.possible_agents
    if agent is None or agent not in names:
        raise unknown("agent", agent, names)
    seat = inner.game.names().index(agent)
    space = inner.windows.codecs[seat].space
    seen = env.action_space(agent) if callable(env.action_space) else env.action_space
    if seen != space:
        fault = f"a wrapper changed the actions of {agent} from {space} to {seen}"
        raise BadParameter(f"{fault}: leave that wrapper out, the environment has `actions`")
    policy = make_player(player, inner.game) if isinstance(player, str) else policy_of(player)
    game = inner.game if policy.speaks else inner.game.core
    policy.start(game, seat, 0)
    seated = SeatedPlayer(policy, inner, seat, wrapped=env is not inner)
    inner.seat_player(seated, agent)
    return seated


def _is_same(given: Any, arrived: Any) -> bool:
    """Test whether an action is the one that was given, also after a cast to float32."""
    if given is arrived:
        return True
    if isinstance(given, str) or isinstance(arrived, str | None):
        return isinstance(arrived, str) and bool(given == arrived)
    one, two = np.ravel(given), array_of(arrived).ravel()
    if one.size != two.size or two.dtype.kind not in "iuf":
        return False
    if np.array_equal(one, two):
        return True
    with np.errstate(over="ignore"):  # of numbers that float32 does not have
        single = two.astype(np.float32)
    cast = two.dtype.kind == "f" and np.array_equal(two, single)
    return cast and np.array_equal(one.astype(np.float32), single)
