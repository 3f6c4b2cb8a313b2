"""What a run would ask of language models and what that would cost, before it is run."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from llm_games.benchmarks.runs.plan import RunPlan
from llm_games.questions import MISSING, NO_BID, Bid
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.wrappers.clients.base import Completion, Request
from llm_games.wrappers.clients.budget import Budget, Usage
from llm_games.wrappers.clients.metered import Metered
from llm_games.wrappers.clients.prices import Price
from llm_games.wrappers.clients.stack import layers
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.planning import PlanningPolicy
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.seats import play

REPLY, THOUGHT = 20, 200  # tokens of a short reply, without and with an explanation
REASONED = 3000  # tokens of a long one: a reasoning model's, with its thoughts
BYTES = 4, 3  # of a prompt for a token, at most and at least
STAYS = 0.95  # chance to bid on in an auction


@dataclass(frozen=True)
class Estimate:
    """About how much one game asks of models, without tools and if no reply breaks a rule.

    `low` is with short replies, `high` with those of a reasoning model, or as long as `max_tokens`
    lets them be; `seats` are these two of each seat that asks. Not `priced`: no model has a price.
    """

    label: str
    episodes: int
    decisions: int
    seats: dict[str, tuple[Usage, Usage]]
    priced: bool

    @property
    def low(self) -> Usage:
        """All seats together."""
        return added(low for low, _ in self.seats.values())

    @property
    def high(self) -> Usage:
        """All seats together."""
        return added(high for _, high in self.seats.values())

    def plain(self) -> dict[str, Any]:
        """Return it as plain values: ranges as pairs, money as exact decimals in words."""
        low, high = self.low, self.high
        same = {"label": self.label, "episodes": self.episodes, "decisions": self.decisions}
        tokens = {"tokens_in": (low.tokens_in, high.tokens_in)}
        tokens |= {"tokens_out": (low.tokens_out, high.tokens_out)}
        money = (str(low.money), str(high.money)) if self.priced else None
        return same | {"calls": low.calls} | tokens | {"money": money}


def added(parts: Iterator[Usage]) -> Usage:
    """Add several up."""
    total = Usage()
    for part in parts:
        total.add(part)
    return total


def estimate(plan: RunPlan, made: Mapping[str, Policy]) -> list[Estimate]:
    """Estimate decisions, calls, tokens and money of each game, all episodes together.

    One table of each game is played by players who make it long: mute ones, who in water
    allocation do not die of it, and in an auction bid the least, nearly always. The prompts
    on the way are measured.
    """
    found = []
    for game in plan.games:
        chance, many = np.random.default_rng(0), len(game.seeds)
        meters = [_Meter(made[seat.key], chance) for seat in game.seats]
        seats = [_muted(made[s.key], m) for s, m in zip(game.seats, meters, strict=True)]
        lasting = dict(game_class(game.game).lasting)
        rules = rulebook(game.game, **(game.params | lasting | {"failed_reply": "fallback"}))
        episode = play(rules, seats, game.seeds[0], max_steps=game.max_steps, given=game.given)
        asked = {
            f"{game.label}/player_{seat}": (_times(meter.low, many), _times(meter.high, many))
            for seat, meter in enumerate(meters)
            if meter.low.calls
        }
        decisions = many * sum(len(step.decisions) for step in episode.steps)
        priced = any(meter.price for meter in meters)
        found.append(Estimate(game.label, many, decisions, asked, priced))
    return found


def fits(budget: Budget, rows: Sequence[Estimate]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield of each limit of a budget its name and: `limit`, `low` and `high` need, if it `fits`.

    The need of a seat's limit is that of the seat which needs most.
    """
    whole = [(added(row.low for row in rows), added(row.high for row in rows))]
    seats = [pair for row in rows for pair in row.seats.values()] or whole
    for suffix, needs in (("", whole), ("_per_seat", seats)):
        for what, limit in budget.limits(bool(suffix)).items():
            low, high = (max(getattr(need[i], what) for need in needs) for i in (0, 1))
            answer = "yes" if high <= limit else "no" if low > limit else "perhaps"
            yield f"{what}{suffix}", {"limit": limit, "low": low, "high": high, "fits": answer}


def _times(usage: Usage, many: int) -> Usage:
    return Usage(**{name: many * value for name, value in vars(usage).items()})


@dataclass
class _Meter:
    """A client that measures what a player asks, and says nothing."""

    policy: Policy
    chance: np.random.Generator
    name: str = "meter"
    low: Usage = field(default_factory=Usage)
    high: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        client: Any = getattr(self.policy, "client", None)
        own = next((each for each in layers(client) if isinstance(each, Metered)), None)
        self.price, self.own = own and own.price, getattr(own and own.client, "max_tokens", None)

    async def complete(self, request: Request) -> Completion:
        most = request.sampling.max_tokens or self.own or REASONED
        short = min(THOUGHT if request.reasoning else REPLY, most)
        price = self.price or Price()
        for usage, size, out in zip((self.low, self.high), BYTES, (short, most), strict=True):
            into = request.messages.size // size
            usage.add(Usage(1, 0, into, out, money=price.of(into, out)))
        question = request.question
        text = question.reply(_bid(question, self.chance)) if isinstance(question, Bid) else ""
        return Completion(text)

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
    """Return the player with a meter as its client; it asks once for each thing."""
    if not isinstance(policy, LLMPolicy):
        return _Mute()
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
