"""A table that is played to be measured: its players ask a meter, which says next to nothing."""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.run.branch_point import BranchPoint, BranchSeat, Forced
from llm_games.questions import MISSING, NO_BID, Bid, Speech
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.wrappers.clients.base import Completion, Request
from llm_games.wrappers.clients.budget import Usage
from llm_games.wrappers.clients.metered import Metered
from llm_games.wrappers.clients.prices import Price
from llm_games.wrappers.clients.stack import layers
from llm_games.wrappers.guests import GuestPolicy
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.planning import PlanningPolicy
from llm_games.wrappers.play import play_table
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.seats import Step
from llm_games.wrappers.together import run_sync

REPLY, SPOKEN, THOUGHT = 20, 60, 200  # tokens of a short reply: a move, a speech, an explanation
Branch = tuple[BranchPoint, Forced]
"""Where a table leaves a recorded one, and the moves of that."""
SPEECH = "words " * 30  # what players say, of a usual length, since all others read it
REASONED = 3000  # tokens of a long one: a reasoning model's, with its thoughts
BYTES = 4, 3  # of a prompt for a token, at most and at least
STAYS = 0.95  # chance to bid on in an auction


class Measured(NamedTuple):
    """What one table asks: decisions, least and most by seat, longest chain, see `Estimate`."""

    decisions: int
    seats: dict[int, tuple[Usage, Usage]]
    chain: int
    priced: bool


def measure(
    rules: Rulebook,
    players: Sequence[Policy],
    seed: int,
    max_steps: int | None = None,
    fixed_chance: Mapping[str, Any] | None = None,
    branch: Branch | None = None,
) -> Measured:
    """Play a table with mute players in place of these, and measure it, or what is new in it."""
    point = branch and branch[0]
    counts = _Counts(point)
    models = {
        id(player): player
        for player in players
        if isinstance(player, LLMPolicy) and not isinstance(player, GuestPolicy)
    }
    meters = {key: _Meter(player, counts) for key, player in models.items()}
    muted = {key: _muted(player, meters[key]) for key, player in models.items()}
    seated: list[Policy] = [muted.get(id(p)) or _Mute(p.speaks) for p in players]
    if branch:
        seated = [BranchSeat(player, branch[0], i, 0, branch[1]) for i, player in enumerate(seated)]
    decisions = 0

    async def count(step: Step) -> None:
        nonlocal decisions
        held = [seat for seat in step.decisions if point and point.holds(step.number, seat)]
        decisions += len(step.decisions) - len(held)

    limits: Any = {"max_steps": max_steps, "given": fixed_chance}
    run_sync(play_table(rules, seated, seed, on_step=count, **limits))
    return Measured(
        decisions=decisions,
        seats=dict(sorted(counts.usage.items())),
        chain=sum(max(calls.values()) for calls in counts.calls.values()),
        priced=any(meter.price for meter in meters.values()),
    )


class _Counts:
    """Shared by all meters of a table: the least and the most by seat, and calls by step."""

    def __init__(self, point: BranchPoint | None = None) -> None:
        self.point, self.chance = point, np.random.default_rng(0)  # it `holds` who is not asked
        self.usage: dict[int, tuple[Usage, Usage]] = defaultdict(lambda: (Usage(), Usage()))
        self.calls: dict[int, Counter[int]] = defaultdict(Counter)  # by step, those of each seat


class _Meter:
    """A client that measures what a player asks, and says nothing but `SPEECH`."""

    name = "meter"

    def __init__(self, policy: LLMPolicy, counts: _Counts) -> None:
        self.counts = counts
        metered = next((each for each in layers(policy.client) if isinstance(each, Metered)), None)
        self.price = metered and metered.price
        self.longest = getattr(metered and metered.inside, "max_tokens", None)
        price = self.price or Price()
        # Seats of a table ask with prompts of few lengths.
        self.costs = lru_cache(price.bound(min).of), lru_cache(price.bound(max).of)

    async def complete(self, request: Request) -> Completion:
        question, asker = request.question, request.who
        if self.counts.point and self.counts.point.holds(asker.step, asker.seat):
            return self._said(question)
        self.counts.calls[asker.step][asker.seat] += 1
        longest = request.sampling.max_tokens or self.longest or REASONED
        speaks = isinstance(question, Speech)
        shortest = min(THOUGHT if request.reasoning else SPOKEN if speaks else REPLY, longest)
        usage = self.counts.usage[asker.seat]
        ends = zip(usage, self.costs, BYTES, (shortest, longest), strict=True)
        for total, cost, size, tokens_out in ends:
            tokens_in = request.messages.size // size
            total.calls += 1
            total.tokens_in += tokens_in
            total.tokens_out += tokens_out
            total.money += cost(tokens_in, tokens_out)
        return self._said(question)

    def _said(self, question: Any) -> Completion:
        if isinstance(question, Bid):
            return Completion(question.reply(_bid(question, self.counts.chance)))
        return Completion(question.reply(SPEECH) if isinstance(question, Speech) else "")

    async def close(self) -> None:
        pass


class _Mute(Policy):
    """A player that never answers, but in an auction; it speaks if the one does that it is for."""

    name = "mute"

    def __init__(self, speaks: bool) -> None:
        self.speaks, self.chance = speaks, np.random.default_rng(0)
        self.bids: bool | None = None  # not known yet

    def start(self, game: Rulebook, seat: int, seed: int) -> None:
        return None

    def act(self, view: View, memory: None) -> tuple[Decision, None]:
        if view.sight.talking:
            speech = SPEECH if isinstance(view.question, Speech) else MISSING
            return Decision(speech), None
        if self.bids is None:  # a game whose moves are bids has no others
            self.bids = isinstance(view.question, Bid)
        return Decision(_bid(view.question, self.chance) if self.bids else MISSING), None


def _muted(policy: LLMPolicy, meter: _Meter) -> LLMPolicy:
    """The player with a meter as its client; it asks once for each thing."""
    muted: Any = copy.copy(policy)
    muted.client, muted.structured, muted.attempts_in = meter, True, lambda game: 1
    muted.max_attempts = 1  # of summaries
    if isinstance(muted, PlanningPolicy):
        once: Any = {"plan_reasks": 0, "belief_checks": 1, "belief_fallback": "truth"}
        muted.planning, muted._minds = dataclasses.replace(muted.planning, **once), {}
    return muted


def _bid(question: Any, rng: np.random.Generator) -> int:
    stays = question.floor <= question.budget and rng.random() < STAYS
    return question.floor if stays else NO_BID
