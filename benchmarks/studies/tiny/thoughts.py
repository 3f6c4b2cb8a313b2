"""What a planning bidder is asked beside single bids, with scripted answers, see `data`.

Real auctions are played by planning bidders whose client is a script; every request and the answer
that the tiny model is to learn become a sample.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from llm_games.asides import Lessons
from llm_games.baselines.games.english_auction.graded_notes import BeliefAside, Priorities
from llm_games.baselines.games.english_auction.mind import ClosedItem
from llm_games.baselines.players import make_player, mind_of
from llm_games.baselines.tiny.chat_template import render
from llm_games.benchmarks.studies.tiny.samples import PLAIN, TrainingSample, persona_of
from llm_games.games.english_auction.rules import EnglishAuction
from llm_games.questions import Bid, Question
from llm_games.registry import rulebook
from llm_games.replies import read_reply
from llm_games.rulebook import Rulebook
from llm_games.words import Blocks, Prompts, versions
from llm_games.wrappers.clients.base import Completion, Request
from llm_games.wrappers.mind import STRATEGIES, Planning
from llm_games.wrappers.planning import PlanningPolicy
from llm_games.wrappers.play import play_table
from llm_games.wrappers.policy import Note

ITEMS = [item.name for item in EnglishAuction(items="items_20").catalogue]
DEAR = ("Equipment E", "Mechanism J", "Machine P", "Element R")
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
KEPT = {"move": 0.06, "belief": 0.25, "replan": 0.12}  # share that becomes samples, if not 1
BECAUSE = {
    "plan": "Expensive items bring the most profit, so they come first.",
    "replan": "What is left and my money decide how much each item matters.",
    "belief": "I add this sale to what I knew before.",
    "learn": "I look at what was paid and what it was worth.",
    "move": "I stay in as long as the price is low and my money lasts.",
}


class ThoughtScript:
    """A client that answers every question of a planning bidder, and keeps the samples."""

    name = "script"

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.samples = rng, list[TrainingSample]()

    async def complete(self, request: Request) -> Completion:
        question, rng = request.question, self.rng
        assert question is not None
        reply = json.loads(self.answer(question))
        if request.reasoning:
            reply = {"explanation": BECAUSE[request.kind]} | reply
        prefix, prompt = render(request.messages)
        if len(prefix + prompt) < LONGEST and rng.random() < KEPT.get(request.kind, 1):
            self.samples.append(TrainingSample(prefix, prompt, json.dumps(reply)))
        return Completion(json.dumps(self._spoilt(reply) if rng.random() < SLIPS else reply))

    async def close(self) -> None: ...

    def answer(self, question: Any) -> str:
        rng = self.rng
        if isinstance(question, Bid):
            return question.reply(_bid(question, rng))
        if isinstance(question, Priorities):
            return question.reply({item: 3 if item in DEAR else 2 for item in question.items})
        if isinstance(question, BeliefAside):
            remaining, won = question.truth["remaining_budget"], question.truth["winning_bids"]
            payment = won[question.me].get(question.items[-1], 0)
            # Nothing of the others; both numbers of the only sum that is left.
            summary = f"I had {remaining + payment} and paid {payment or 'nothing'}."
            belief = {"summary": summary, "remaining_budget": remaining}
            return question.reply(belief | {"total_profits": {}, "winning_bids": {}})
        return question.reply(rng.choice(LESSONS, int(rng.integers(1, 4)), replace=False).tolist())

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


def thoughts(rng: np.random.Generator) -> Iterator[TrainingSample]:
    """Play one auction; yield what its planning bidders were asked and what they shall answer."""
    game, script = _auction(rng), ThoughtScript(rng)
    planning = Planning(
        strategy=str(rng.choice(STRATEGIES, p=[0.1, 0.2, 0.7])),
        learning=bool(rng.random() < 0.5),
        replan_shows_old_plan=bool(rng.random() < 0.9),
    )
    bidder = PlanningPolicy(
        script,
        planning,
        mind_of,
        prompts=str(rng.choice(versions(game.name))),
        persona=persona_of(rng) if rng.random() < 0.3 else None,
        reasoning=bool(rng.random() > PLAIN),
    )
    seats = range(game.players)
    table = [bidder if rng.random() < 0.6 else make_player("rule:4") for _ in seats]
    learned = rng.choice(LESSONS, int(rng.integers(1, 4)), replace=False).tolist()
    notes = [Note("lessons", {"lessons": learned})]
    recalled = {i: notes for i in seats if rng.random() < 0.3}
    asyncio.run(play_table(game, table, int(rng.integers(2**31)), recalled=recalled))
    yield from script.samples


def drills(rng: np.random.Generator) -> Iterator[TrainingSample]:
    """Yield what takes most practice, and lessons, which a whole auction asks for but once."""
    game, script = _auction(rng), ThoughtScript(rng)
    prompts = Prompts(game.name, str(rng.choice(versions(game.name))))
    rules = {"role": "system", "content": prompts.rules(game, 0)}
    for _ in range(12):
        offer, sale, end = (ask(rng, game, prompts) for ask in (_offer, _sum, _end))
        remaining = rng.choice(ITEMS, int(rng.integers(2, 16)), replace=False).tolist()
        copied = Priorities("priorities", tuple(remaining))
        listed = copied, f"Reply only with JSON of this form: {copied.form()}"
        for question, words in (listed, offer, sale, end):
            messages = [rules, {"role": "user", "content": words}]
            yield TrainingSample(*render(messages), script.answer(question))


def _offer(rng: np.random.Generator, game: Rulebook, prompts: Prompts) -> tuple[Question, str]:
    """Return a request for a bid, often with little money left; at times it says what was wrong."""
    start = int(rng.choice([1_000, 2_000, 5_000]))
    high = start * int(rng.integers(10, 30)) // 10 if rng.random() < 0.7 else None
    money = 100 * int(rng.integers(0, rng.choice([12, 40, 120, 250])))
    question = Bid("bid", start if high is None else high + start // 10, money, high is None)
    item = str(rng.choice(ITEMS))
    blocks = Blocks(EnglishAuction.name)
    values = {
        "first": high is None,
        "adaptive": True,
        "item": item,
        "number": int(rng.integers(1, 21)),
        "count": 20,
        "start": start,
        "estimate": start * 11 // 5,
        "private": False,
        "later": [],
        "listed": False,
        "replies": [],
        "leader": None if high is None else str(rng.choice(game.names())),
        "high": high,
        "increment": start // 10,
        "money": money,
        "goal": blocks.goal(game, int(rng.integers(game.players))),
        "form": replace(question, limits=False).form(),
    }
    parts = blocks.say("report", **values), blocks.say("request", **values)
    words = "\n\n".join(filter(None, parts))
    if rng.random() < 0.3:
        wrong = read_reply(question.reply(money + start), question)
        words += "\n\n" + prompts.again(wrong.why, question)
    return question, words


def _sum(rng: np.random.Generator, game: Rulebook, prompts: Prompts) -> tuple[Question, str]:
    """Return a request for a belief after one short sale; at times it says what was wrong."""
    names = game.names()
    me, other = rng.choice(names, 2, replace=False).tolist()
    winner, loser = (me, other) if rng.random() < 0.6 else (other, me)
    start = int(rng.choice([1_000, 2_000, 5_000]))
    price = start * int(rng.integers(10, 19)) // 10
    money = price + int(rng.integers(0, 201)) * 100
    item = ClosedItem("Item", start, ({winner: price, loser: None},), winner, price, 2 * start)
    previous = {"remaining_budget": money, "total_profits": {}, "winning_bids": {}}
    won = {me: {item.name: price} if winner == me else {}}
    new_belief = {"remaining_budget": money - sum(won[me].values()), "winning_bids": won}
    question = BeliefAside("remaining_budget", me, previous | new_belief, (item.name,))
    blocks = Blocks(EnglishAuction.name)
    words = blocks.say(
        "belief",
        me=me,
        belief=json.dumps(previous),
        item=blocks.say("item", item=item, names=names),
        won=winner == me,
        goal=blocks.goal(game, int(rng.integers(game.players))),
        form=question.form(),
    )
    if rng.random() < 0.4:
        wrong = question.reply(previous | {"summary": "", "remaining_budget": -1})
        words += "\n\n" + prompts.again(read_reply(wrong, question).why, question)
    return question, words


def _end(rng: np.random.Generator, game: Rulebook, prompts: Prompts) -> tuple[Question, str]:
    """Return a request for lessons after a few sales; at times it says what was wrong."""
    names, question = game.names(), Lessons("lessons")
    blocks = Blocks(EnglishAuction.name)
    sales = []
    for name in rng.choice(ITEMS, int(rng.integers(1, 5)), replace=False).tolist():
        start, winner = int(rng.choice([1_000, 2_000, 5_000])), str(rng.choice(names))
        price = start * int(rng.integers(10, 19)) // 10
        bids = {
            n: price if n == winner else None for n in names if n == winner or rng.random() < 0.5
        }
        item = ClosedItem(name, start, (bids,), winner, price, 2 * start)
        sales.append(blocks.say("item", item=item, names=names))
    standings = [
        {"name": n, "items": int(rng.integers(0, 6)), "profit": 100 * int(rng.integers(-20, 90))}
        for n in names
    ]
    words = blocks.say(
        "learn",
        told="\n".join(sales),
        standings=standings,
        lessons=rng.random() < 0.5,
        me=str(rng.choice(names)),
        goal=blocks.goal(game, int(rng.integers(game.players))),
        form=question.form(),
    )
    if rng.random() < 0.3:
        words += "\n\n" + prompts.again(read_reply('{"lessons": {}}', question).why, question)
    return question, words


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
