"""What a planning bidder is asked beside single bids, with scripted answers, see `data`.

Real auctions are played by planning bidders whose client is a script; every request and the answer
that the tiny model is to learn become a sample.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from llm_games.baselines.players import make_player
from llm_games.baselines.tiny.chat import render
from llm_games.baselines.tiny.data import PLAIN, Sample, persona_of
from llm_games.games.english_auction import EnglishAuction
from llm_games.prompting import Prompts, versions
from llm_games.questions import Bid
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.wrappers.clients.base import Completion, Request
from llm_games.wrappers.forms import Beliefs, Priorities
from llm_games.wrappers.mind import STRATEGIES, Planning
from llm_games.wrappers.planning import PlanningPolicy
from llm_games.wrappers.policy import Note
from llm_games.wrappers.table import play_table

DEAR = ("Equipment E", "Mechanism J", "Machine P", "Element R")
"""AucArena's expensive items."""
LESSONS = (
    "Keep some money for the expensive items.",
    "Do not pay more than the estimate.",
    "Estimates can be too high, so stop a little earlier.",
    "Bid more while the others still have money.",
    "Cheap items near the end cost little.",
    "Withdraw early from items of low priority.",
)
SLIPS = 0.25  # share of answers that are wrong on purpose, so that questions are asked again
LONGEST = 5000  # characters of a prompt to learn from
KEPT = {"move": 0.12, "belief": 0.4}
"""Share of the requests of a kind that become samples; else all."""
BECAUSE = {
    "plan": "Expensive items bring the most profit, so they come first.",
    "replan": "What is left and my money decide how much each item matters.",
    "belief": "I add this sale to what I knew before.",
    "learn": "I look at what was paid and what it was worth.",
    "move": "I stay in as long as the price is low and my money lasts.",
}


class Script:
    """A client that answers every question of a planning bidder, and keeps the samples."""

    name = "script"

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.samples = rng, list[Sample]()

    async def complete(self, request: Request) -> Completion:
        """Answer; at times, wrongly."""
        question, rng = request.question, self.rng
        assert question is not None
        reply = json.loads(self.answer(question))
        if request.reasoning:
            reply = {"explanation": BECAUSE[request.kind]} | reply
        prefix, prompt = render(request.messages)
        if len(prefix + prompt) < LONGEST and rng.random() < KEPT.get(request.kind, 1):
            self.samples.append(Sample(prefix, prompt, json.dumps(reply)))
        return Completion(json.dumps(self._spoilt(reply) if rng.random() < SLIPS else reply))

    async def close(self) -> None:
        """Nothing to let go of."""

    def answer(self, question: Any) -> str:
        """Return a legal answer."""
        rng = self.rng
        if isinstance(question, Bid):
            return question.reply(_bid(question, rng))
        if isinstance(question, Priorities):
            return question.reply({item: 3 if item in DEAR else 2 for item in question.items})
        if isinstance(question, Beliefs):  # nothing of the others: sums are beyond a tiny model
            known = {"remaining_budget": question.truth["remaining_budget"]}
            return question.reply(
                {"summary": "One more item is closed.", "total_profits": {}, "winning_bids": {}}
                | known
            )
        count = int(rng.integers(1, 4))
        return question.reply(rng.choice(LESSONS, count, replace=False).tolist())

    def _spoilt(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Return a reply with one thing wrong, as the tiny model itself might."""
        wrong, key = dict(reply), str(self.rng.choice(list(reply)))
        value = wrong.pop(key)
        if key == "remaining_budget":
            wrong[key] = value + int(self.rng.integers(1, 10)) * 100
        elif key == "bid":
            wrong[key] = self.rng.choice([1, 99_999]).item()
        return wrong


def _bid(question: Bid, rng: np.random.Generator) -> int:
    """Bid the lowest, with room to spare: a slip about the limit is then legal all the same."""
    floor = question.floor
    too_dear = 1_800 < floor < 4_900 or floor > 9_000
    stay = floor * 3 <= question.budget * 2 and not too_dear
    return floor if stay and rng.random() < 0.75 else -1


def thoughts(rng: np.random.Generator) -> Iterator[Sample]:
    """Play one auction; yield what its planning bidders were asked and what they shall answer."""
    game, script = _auction(rng), Script(rng)
    planning = Planning(
        strategy=str(rng.choice(STRATEGIES, p=[0.1, 0.2, 0.7])),
        learning=bool(rng.random() < 0.5),
        replan_shows_old_plan=bool(rng.random() < 0.9),
    )
    wording = versions(game.name)
    bidder = PlanningPolicy(
        script,
        planning,
        prompts=str(rng.choice(wording)),
        persona=persona_of(rng) if rng.random() < 0.3 else None,
        reasoning=bool(rng.random() > PLAIN),
    )
    count = game.players
    seats = [bidder if rng.random() < 0.6 else make_player("rule:4") for _ in range(count)]
    learned = rng.choice(LESSONS, int(rng.integers(1, 4)), replace=False).tolist()
    notes = [Note("lessons", {"lessons": learned})]
    recalled = {i: notes for i in range(count) if rng.random() < 0.3}
    asyncio.run(play_table(game, seats, int(rng.integers(2**31)), recalled=recalled))
    yield from script.samples


def drills(rng: np.random.Generator) -> Iterator[Sample]:
    """Yield requests for plans that are little more than a list to copy: it takes most practice."""
    game, script = _auction(rng), Script(rng)
    names = [item.name for item in EnglishAuction(items="items_20").catalogue]
    rules = Prompts(game.name, str(rng.choice(versions(game.name)))).rules(game, 0)
    for _ in range(16):
        left = rng.choice(names, int(rng.integers(2, 16)), replace=False).tolist()
        question = Priorities("priorities", tuple(left))
        words = f"Reply only with JSON of this form: {question.form()}"
        messages = [{"role": "system", "content": rules}, {"role": "user", "content": words}]
        yield Sample(*render(messages), script.answer(question))


def _auction(rng: np.random.Generator) -> Rulebook:
    players = int(rng.integers(2, 8))
    return rulebook(
        "english_auction",
        players=players,
        items=str(rng.choice(["items_5", "items_10", "items_20"], p=[0.4, 0.4, 0.2])),
        item_order="shuffled",  # so that lists of items have to be copied and cannot be known
        budgets=int(rng.choice([10_000, 15_000, 20_000, 30_000])),
        objective=tuple(rng.choice(["profit", "profit", "items"], players).tolist()),
    )
