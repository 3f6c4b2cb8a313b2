"""Environments of verifiers 0.4: a model in one seat of a game, players by name in the others.

verifiers finds an environment as a module with `__all__`, so a user's module names these three::

    from llm_games.baselines.verifiers import GameEnv, GameTaskset, InProcess

    __all__ = ["GameEnv", "GameTaskset", "InProcess"]

A task is a seed: all rollouts of one have the same chance and seat, so that a group can be
compared. Its traces are the model's decisions, each with its own prompt and reward, or one
conversation. verifiers needs an environment of its own, as it depends on a hundred packages.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Any, Literal

import httpx
import numpy as np
import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.runtimes import ProgramResult

from llm_games.baselines.players import make_player
from llm_games.baselines.regret import regret
from llm_games.errors import BadParameter
from llm_games.facts import check_integer
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.wrappers.clients.base import ClientError, Completion, Request
from llm_games.wrappers.grpo_rollout import kept_whole
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play_table
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.seats import Episode

ROTATE: Literal["rotate"] = "rotate"


class Seed(vf.TaskData):
    """The chance of one game."""

    seed: int = 0


class SeedTask(vf.Task[Seed]):
    """Rewards are recorded by the environment, which knows the game."""


class GamesConfig(vf.TasksetConfig):
    """Which games: seeds from `first` on."""

    games: int = 100
    first: int = 0


class GameTaskset(vf.Taskset[SeedTask, GamesConfig]):
    """Seeds, one after another."""

    def load(self) -> Iterable[SeedTask]:
        first = self.config.first
        for seed in range(first, first + self.config.games):
            yield SeedTask(Seed(prompt=None, seed=seed), self.config.task)


class GameConfig(vf.EnvConfig):
    """The table.

    `opponents`: a player for all other seats, or one for each. `seat`: the model's, or
    ``"rotate"``: the seed modulo the seats. `reward`: ``"payoff"``, paid from the decision on (of a
    `conversation`, where all decisions are one trace, in all), or ``"regret"``, less what was lost
    in hindsight. `legal` is paid for a legal move. `settings` are of a player that asks a model.
    """

    learner: vf.AgentConfig = vf.AgentConfig(runtime={"type": "subprocess"})
    game: str = ""
    params: dict[str, Any] = Field(default_factory=dict)
    opponents: str | list[str] = "rational"
    seat: int | Literal["rotate"] = ROTATE
    reward: Literal["payoff", "regret"] = "payoff"
    legal: float = 0.0
    conversation: bool = False
    settings: dict[str, Any] = Field(default_factory=dict)


class GameEnv(vf.Env[GameConfig]):
    """Plays a game for each task, see `GameConfig`; BadParameter, UnknownName if none can be."""

    def __init__(self, config: GameConfig) -> None:
        super().__init__(config)
        self.rules = rulebook(config.game, **config.params)
        named = config.opponents
        count = self.rules.players - 1
        names = [named] * count if isinstance(named, str) else list(named)
        if len(names) != count:
            raise BadParameter(f"{count} other seats need as many opponents, got {len(names)}")
        if config.seat != ROTATE:
            check_integer("seat", config.seat, 0, count)
        self.others = [make_player(name, self.rules) for name in names]
        _learner(_VerifierLearner(None, config.conversation), config)

    async def run(self, task: vf.Task[Any], agents: Any) -> None:
        """Play one game, and record the rewards of its traces."""
        seed, config = task.data.seed, self.config
        seat = seed % self.rules.players if config.seat == ROTATE else int(config.seat)
        policies: list[Policy] = [*self.others]
        async with AsyncExitStack() as stack:
            asked = _VerifierLearner((agents.learner, task, stack), config.conversation)
            policies.insert(seat, _learner(asked, config))
            episode = await play_table(self.rules, policies, seed)
        rewards = _rewards(self.rules, episode, seat, config)
        decisions = [step.decisions[seat] for step in episode.steps if seat in step.decisions]
        legal = [call.outcome == "valid" for decision in decisions for call in decision.attempts]
        for step, trace, number in asked.traces:
            trace_legal = legal if config.conversation else legal[number : number + 1]
            trace.record_reward(config.reward, rewards[step])
            trace.record_metric("legal", sum(trace_legal) / max(1, len(trace_legal)))
            if config.legal:
                trace.record_reward("legal", sum(trace_legal), config.legal)


def _learner(client: Any, config: GameConfig) -> LLMPolicy:
    """Return the model's player; by default a reply is never asked for again."""
    settings: dict[str, Any] = {"max_attempts": 1, "structured": False, **config.settings}
    return LLMPolicy(client, **(kept_whole(settings) if config.conversation else settings))


def _rewards(rules: Rulebook, episode: Episode, seat: int, config: GameConfig) -> Any:
    """Return each step's reward; the sum over a conversation stands at the first step."""
    if config.reward == "payoff":
        payoffs = np.array([step.outcome.rewards[seat] for step in episode.steps])
        return np.cumsum(payoffs[::-1])[::-1]
    lost = [0.0 if s.talk else float(regret(rules, s.outcome.record)[seat]) for s in episode.steps]
    gains = -np.array(lost)
    return np.cumsum(gains[::-1])[::-1] if config.conversation else gains


class _VerifierLearner:
    """The client of the model's seat; `traces` are the step, trace and number of each call."""

    name = "learner"

    def __init__(self, seated: Any, conversation: bool) -> None:
        self.seated, self.conversation = seated, conversation
        self.traces: list[tuple[int, Any, int]] = []
        self.calls = self.message_count = 0
        self.talk: Any = None

    async def complete(self, request: Request) -> Completion:
        """Ask the agent in an interaction of this call, or in one for all calls."""
        agent, task, stack = self.seated
        messages = [*request.messages]
        if not self.conversation:
            async with agent.interaction(task) as talk:
                self.traces.append((request.who.step, talk.trace, self.calls))
                text = await self._turn(talk, messages)
        else:
            if self.talk is None:
                self.talk = await stack.enter_async_context(agent.interaction(task))
                self.traces.append((request.who.step, self.talk.trace, self.calls))
            text = await self._turn(self.talk, messages[self.message_count :] or messages[-1:])
            self.message_count = len(messages) + 1
        self.calls += 1
        return Completion(text, model=self.name)

    async def _turn(self, talk: Any, messages: list[dict[str, str]]) -> str:
        segment = await talk.turn([dict(message) for message in messages])
        if segment.terminated:
            raise ClientError(f"the agent's run ended: {talk.trace.stop_condition}")
        return str(segment.last_reply)

    async def close(self) -> None:
        """Do nothing: the agent belongs to verifiers."""


class InProcess(vf.Harness[vf.HarnessConfig]):
    """Sends a chat to the model from this process; other harnesses start a process a turn."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> ProgramResult:
        _, prompt = self.resolve_prompt(data)
        messages = [message_to_wire(message) for message in prompt or ()]
        async with httpx.AsyncClient(timeout=self.config.tool_timeout) as client:
            response = await client.post(
                f"{endpoint}/chat/completions",
                json={"model": ctx.model, "messages": messages},
                headers={"Authorization": f"Bearer {secret}"},
            )
        failed = not response.is_success
        return ProgramResult(int(failed), "", response.text[:500] if failed else "")
