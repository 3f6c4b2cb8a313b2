"""What a run would ask of language models, before it is run."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_games.benchmarks.runs.plan import RunPlan
from llm_games.questions import MISSING, NO_BID, Bid
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.wrappers.clients.base import ClientError, Completion, Request
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.seats import play

REPLY, THOUGHT = 20, 200  # tokens of a reply, without and with an explanation
STAYS = 0.95  # chance to bid on in an auction


@dataclass(frozen=True)
class Estimate:
    """About how much one game asks of models, without tools and if no reply breaks a rule."""

    label: str
    episodes: int
    decisions: int
    calls: int
    tokens_in: int
    tokens_out: int


def estimate(plan: RunPlan, made: Mapping[str, Policy]) -> list[Estimate]:
    """Estimate decisions, calls and tokens of each game, all episodes together.

    One table of each game is played by players who make it long: mute ones, who in water
    allocation do not die of it, and in an auction bid the least, nearly always. The prompts
    on the way are measured at four characters a token.
    """
    found = []
    for game in plan.games:
        meter = _Meter()
        seats = [_muted(made[seat.key], meter) for seat in game.seats]
        lasting = dict(game_class(game.game).lasting)
        rules = rulebook(game.game, **(game.params | lasting | {"failed_reply": "fallback"}))
        episode = play(rules, seats, game.seeds[0], max_steps=game.max_steps, given=game.given)
        decisions, many = sum(len(step.decisions) for step in episode.steps), len(game.seeds)
        of_one = (decisions, meter.calls, meter.characters // 4, meter.tokens_out)
        found.append(Estimate(game.label, many, *(many * count for count in of_one)))
    return found


class _Meter:
    """A client that measures what it is asked and says nothing."""

    name = "meter"

    def __init__(self) -> None:
        self.calls = self.characters = self.tokens_out = 0
        self.chance = np.random.default_rng(0)

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        self.characters += sum(len(message["content"]) for message in request.messages)
        self.tokens_out += THOUGHT if request.reasoning else REPLY
        if isinstance(request.question, Bid):
            return Completion(request.question.reply(_bid(request.question, self.chance)))
        raise ClientError("one reply a decision")

    async def close(self) -> None:
        pass


class _Mute(Policy):
    """A player that never answers, but in an auction."""

    name = "mute"

    def __init__(self) -> None:
        self.chance = np.random.default_rng(0)

    def start(self, game: Rulebook, seat: int, seed: int) -> None:
        return None

    def act(self, view: View, memory: None) -> tuple[Decision, None]:
        bids = isinstance(view.question, Bid)
        return Decision(_bid(view.question, self.chance) if bids else MISSING), None


def _muted(policy: Policy, meter: _Meter) -> Policy:
    if not isinstance(policy, LLMPolicy):
        return _Mute()
    muted = copy.copy(policy)
    muted.client, muted.structured = meter, True
    return muted


def _bid(question: Any, rng: np.random.Generator) -> int:
    stays = question.floor <= question.budget and rng.random() < STAYS
    return question.floor if stays else NO_BID
