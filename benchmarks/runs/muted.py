"""A table that is played to be measured: its players ask a meter, which says next to nothing.

What a long game asks is measured in part. Of many players that are alike, `ALIKE` ask the meter,
and the others' decisions are reckoned as theirs of the same kind; after `ENOUGH` calls or steps no
further round is played, and those that are left are reckoned as the later ones of the played.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.questions import MISSING, NO_BID, Bid, Speech
from llm_games.rulebook import Rulebook
from llm_games.table import Table
from llm_games.view import View
from llm_games.wrappers.clients.base import Completion, Request
from llm_games.wrappers.clients.budget import Usage
from llm_games.wrappers.clients.metered import Metered
from llm_games.wrappers.clients.prices import Price
from llm_games.wrappers.clients.stack import layers
from llm_games.wrappers.dialogue import ALL
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.planning import PlanningPolicy
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.seats import Seats, moves_of
from llm_games.wrappers.together import run_sync

REPLY, SPOKEN, THOUGHT = 20, 60, 200  # tokens of a short reply: a move, a speech, an explanation
SPEECH = "words " * 30  # what players say, of a usual length, since all others read it
REASONED = 3000  # tokens of a long one: a reasoning model's, with its thoughts
BYTES = 4, 3  # of a prompt for a token, at most and at least
STAYS = 0.95  # chance to bid on in an auction
ALIKE, ENOUGH, FEWEST, MANY = 12, 300, 4, 10  # seats; calls or steps; rounds
PARTS = 5
CALLS, INTO, OUT = 0, slice(1, 3), slice(3, 5)
"""Parts of what is measured of a call: how many, tokens of prompts and replies, at least and most.
"""

Kind = tuple[bool, int]
"""Of a decision: whether it is a speech, and the highest move."""


class Measured(NamedTuple):
    """What one table asks: decisions, the least and the most of each seat, and the longest chain.

    See `llm_games.benchmarks.runs.estimate.Estimate`.
    """

    decisions: int
    seats: dict[int, tuple[Usage, Usage]]
    chain: int
    priced: bool


def measure(
    rules: Rulebook,
    players: Sequence[Policy],
    seed: int,
    max_steps: int | None = None,
    given: Mapping[str, Any] | None = None,
) -> Measured:
    """Play a table by the rules with mute players in the seats of these, and measure it."""
    played = _Table(rules, players)
    run_sync(played.play(seed, max_steps, given))
    return played.measured()


class _Table:
    """A table with meters, and who was asked at it: round, step, seat and kind of decision."""

    def __init__(self, rules: Rulebook, players: Sequence[Policy]) -> None:
        self.rules, self.players, chance = rules, players, np.random.default_rng(0)
        asking = [seat for seat, player in enumerate(players) if isinstance(player, LLMPolicy)]
        alike: dict[int, list[int]] = {}
        for seat in asking:
            alike.setdefault(id(players[seat]), []).append(seat)
        self.alike = [*alike.values()]
        some = [seats[place] for seats in self.alike for place in _spread(len(seats), ALIKE)]
        self.meters = {seat: _Meter(players[seat], chance) for seat in sorted(some)}
        self.seated = [
            _muted(player, self.meters[seat]) if seat in self.meters else _Mute(player.speaks)
            for seat, player in enumerate(players)
        ]
        self.asked: list[tuple[int, int, int, Kind]] = []
        self.steps, self.rounds, self.all_rounds = 0, 0, 0

    async def play(self, seed: int, max_steps: int | None, given: Any) -> None:
        """Play it to its end, or until enough was measured; rounds are counted from 0."""
        table = Table(self.rules)
        table.reset(seed, given)
        seats = Seats(table, dict(enumerate(self.seated)))
        seats.start()
        first, most = int(table.state.round), self.rules.lasts()
        while not table.state.over and (max_steps is None or table.steps < max_steps):
            done = int(table.state.round) - first
            if most is not None and done > self.rounds and done >= FEWEST:
                calls = sum(sum(meter.steps.values()) for meter in self.meters.values())
                if max_steps is None and max(calls, table.steps) >= ENOUGH:
                    self.steps, self.rounds, self.all_rounds = table.steps, done, most - first
                    return
            self.rounds, talking = done, bool(self.rules.talking(table.state))
            high = self.rules.legal(table.state)[1]
            for seat in table.asked:
                self.asked.append((done, table.steps, seat, (talking, int(high[seat]))))
            table.step(moves_of(await seats.ask()))
            seats.hear()
        self.steps, self.rounds = table.steps, self.rounds + 1
        self.all_rounds = self.rounds
        if table.state.over:
            await seats.finish()

    def measured(self) -> Measured:
        """Return what was measured, with what is reckoned of other seats and rounds."""
        means, growth = self._means(), {id(player): 0.0 for player in self.players}
        if self.rounds < self.all_rounds:
            growth = {id(self.players[seats[0]]): self._growth(seats) for seats in self.alike}
        cost = np.zeros((len(self.players), self.rounds, PARTS))
        calls = np.zeros((self.rounds, 1 + self.steps))
        for done, step, seat, kind in self.asked:
            meter, own = self.meters.get(seat), means.get(id(self.players[seat]), {})
            if meter or own:
                one = meter.cost(step) if meter else own.get((done, kind), own.get(kind, own[None]))
                cost[seat, done] += one
                calls[done, step] = max(calls[done, step], one[CALLS])
        for seat, meter in self.meters.items():  # asked when all was over
            cost[seat, -1] += meter.cost(self.steps)
            calls[-1, -1] = max(calls[-1, -1], meter.cost(self.steps)[CALLS])
        many = np.bincount([done for done, *_ in self.asked], minlength=self.rounds)
        seats = {
            seat: self._usage(seat, self._whole(own, growth.get(id(self.players[seat]), 0)))
            for seat, own in enumerate(cost)
            if own[:, CALLS].any()
        }
        chain, decisions = (round(float(self._whole(each))) for each in (calls.sum(axis=1), many))
        return Measured(decisions, seats, chain, any(m.price for m in self.meters.values()))

    def _means(self) -> dict[int, dict[Any, Array]]:
        """Return by player the mean cost of a decision: of a kind in a round, of a kind, of all."""
        found: dict[int, dict[Any, list[Array]]] = {}
        for done, step, seat, kind in self.asked:
            if seat in self.meters:
                own = found.setdefault(id(self.players[seat]), {})
                for name in ((done, kind), kind, None):
                    own.setdefault(name, []).append(self.meters[seat].cost(step))
        return {
            player: {name: np.mean(costs, axis=0) for name, costs in own.items()}
            for player, own in found.items()
        }

    def _growth(self, seats: Sequence[int]) -> float:
        """Return by how many bytes a round the prompts of seats grow whose dialogues hold all.

        How much a decision of each kind adds to later prompts is fitted to those of the usual kind.
        """
        player: Any = self.players[seats[0]]
        window = player.remembering.moves, player.remembering.memory_tokens
        if self.rules.core.shown_last != "all" or window != (ALL, None):
            return 0
        kinds = Counter(kind for _, _, seat, kind in self.asked if seat in seats)
        if not kinds:
            return 0
        before, rows, sizes = dict[int, Counter[Kind]](), list[list[int]](), list[float]()
        for _, step, seat, kind in self.asked:
            if seat in seats and seat in self.meters:
                known, cost = before.setdefault(seat, Counter()), self.meters[seat].cost(step)
                if kind == max(kinds, key=kinds.__getitem__):
                    rows.append([1, *(known[each] for each in kinds)])
                    sizes.append(BYTES[0] * cost[INTO][0] / max(1, cost[CALLS]))
                known[kind] += 1
        adds = np.linalg.lstsq(np.array(rows), np.array(sizes), rcond=None)[0][1:]
        later = Counter(kind for done, _, seat, kind in self.asked if done and seat in seats)
        often = np.array([later[kind] for kind in kinds]) / len(seats) / (self.rounds - 1)
        return max(0.0, float(adds @ often))

    def _whole(self, played: Array, growth: float = 0) -> Array:
        """Return what all rounds come to, from ``(rounds, values)`` of those played.

        Prompts grow by so many bytes a round.
        """
        left, whole = self.all_rounds - self.rounds, played.sum(axis=0)
        if not left:
            return whole
        first = self.rounds // 2 if self.rounds >= MANY else 1  # the first one may be of its own
        more = left * played[first:].mean(axis=0)
        if growth:
            ahead = (self.all_rounds - first) / 2  # from the middle of one part to the other's
            more[INTO] += more[CALLS] * growth * ahead / BYTES
        return np.asarray(whole + more)

    def _usage(self, seat: int, whole: Array) -> tuple[Usage, Usage]:
        """Return what a seat uses, at least and at most, with the money of those measured."""
        group = next(group for group in self.alike if seat in group)
        known = [self.meters[other] for other in group if other in self.meters]
        calls, found = round(whole[CALLS]), list[Usage]()
        for end in (0, 1):
            into, out = round(whole[INTO][end]), round(whole[OUT][end])
            paid = sum((meter.money[end] for meter in known), Decimal(0))
            spent = sum(int(meter.total[INTO][end] + meter.total[OUT][end]) for meter in known)
            if seat in self.meters and self.rounds == self.all_rounds:
                paid, spent = self.meters[seat].money[end], into + out
            money = paid if spent == into + out else paid * (into + out) / max(1, spent)
            found.append(Usage(calls, 0, into, out, money=money))
        return found[0], found[1]


def _spread(many: int, most: int) -> list[int]:
    """Return places among so many, all or `most` evenly."""
    return sorted({place * many // min(many, most) for place in range(min(many, most))})


@dataclass
class _Meter:
    """A client that measures what a player asks, and says nothing but `SPEECH`."""

    policy: Policy
    chance: np.random.Generator
    name: str = "meter"
    steps: Counter[int] = field(default_factory=Counter)
    """calls by step"""
    costs: dict[int, Array] = field(default_factory=dict)
    """what they cost by step"""

    def __post_init__(self) -> None:
        client: Any = getattr(self.policy, "client", None)
        own = next((each for each in layers(client) if isinstance(each, Metered)), None)
        self.price, self.own = own and own.price, getattr(own and own.client, "max_tokens", None)
        self.money = [Decimal(0), Decimal(0)]

    @property
    def total(self) -> Array:
        return sum(self.costs.values(), np.zeros(PARTS))

    def cost(self, step: int) -> Array:
        """Return what was asked in a step: calls, tokens in and out, at least and at most."""
        return self.costs.get(step, np.zeros(PARTS))

    async def complete(self, request: Request) -> Completion:
        step = request.who.step
        most = request.sampling.max_tokens or self.own or REASONED
        speaks = isinstance(request.question, Speech)
        short = min(THOUGHT if request.reasoning else SPOKEN if speaks else REPLY, most)
        into, out = [request.messages.size // size for size in BYTES], [short, most]
        self.steps[step] += 1
        self.costs[step] = self.cost(step) + np.array([1, *into, *out])
        price = self.price or Price()
        for end, paid in enumerate((price.bound(min), price.bound(max))):
            self.money[end] += paid.of(into[end], out[end])
        question = request.question
        if isinstance(question, Bid):
            return Completion(question.reply(_bid(question, self.chance)))
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
            said = SPEECH if isinstance(view.question, Speech) else MISSING
            return Decision(said), None
        if self.bids is None:  # a game whose moves are bids has no others
            self.bids = isinstance(view.question, Bid)
        return Decision(_bid(view.question, self.chance) if self.bids else MISSING), None


def _muted(policy: Policy, meter: _Meter) -> Policy:
    """Return the player with a meter as its client; it asks once for each thing."""
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
