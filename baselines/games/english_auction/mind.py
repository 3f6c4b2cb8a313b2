"""The thinking of a planning bidder in the English auction: AucArena (arXiv 2310.05746), A.2."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from llm_games.asides import Aside, Lessons
from llm_games.baselines.games.english_auction.graded_notes import Belief, BeliefAside, Priorities
from llm_games.questions import Bid
from llm_games.replies import Reply
from llm_games.view import View
from llm_games.wrappers.mind import Mind, PlanningMemory
from llm_games.wrappers.policy import Attempt

MIDDLE = 2  # the priority of an item that no plan has named
Replies = dict[str, int | None]  # what bidders replied: a bid, or None for a withdrawal


@dataclass(frozen=True)
class ClosedItem:
    """An item that was sold or not, with every reply of every round."""

    name: str
    start: int
    rounds: tuple[Replies, ...] = ()
    winner: str | None = None  # nobody
    price: int | None = None
    value: int | None = None  # not announced


@dataclass(frozen=True)
class AuctionLog:
    """The public history of an auction, the same for every bidder."""

    observation: dict[str, Any]  # last
    rounds: tuple[Replies, ...] = ()  # of the item on sale
    latest: Replies = field(default_factory=dict)  # reply of each bidder on it
    closed: tuple[ClosedItem, ...] = ()  # before it

    def with_step(self, observation: dict[str, Any], names: Sequence[str]) -> "AuctionLog":
        inside = [name for name in names if self.latest.get(name, 0) is not None]
        if observation["number"] != self.observation["number"]:
            # Items after it that nobody was asked about, since nobody could pay, are gone as well.
            remaining = len(observation["ahead"]) + (observation["item"] is not None)
            gone = self.observation["ahead"][: len(self.observation["ahead"]) - remaining]
            skipped = (ClosedItem(item["name"], item["start"]) for item in gone)
            closed = *self.closed, self._sold(observation, inside), *skipped
            return AuctionLog(observation, closed=closed)
        latest = {reply["name"]: reply["bid"] for reply in observation["replies"]}
        if latest:
            new_replies = {n: bid for n, bid in latest.items() if self.latest.get(n, -1) != bid}
        else:  # nobody wanted it, and all may bid again at a lower price
            new_replies = dict.fromkeys(inside)
        rounds = (*self.rounds, new_replies) if new_replies else self.rounds
        return dataclasses.replace(self, observation=observation, rounds=rounds, latest=latest)

    def _sold(self, observation: dict[str, Any], inside: Sequence[str]) -> ClosedItem:
        """Return the closed item. Its last round is inferred: all but the winner withdrew."""
        previous_standings = {s["name"]: s for s in self.observation["standings"]}
        none = {"won": 0, "spent": 0, "profit": 0}
        winner, price, value = None, None, None
        for standing in observation["standings"]:
            previous = previous_standings.get(standing["name"], none)
            if standing["won"] > previous["won"]:
                winner, price = standing["name"], standing["spent"] - previous["spent"]
                if standing["profit"] is not None:
                    value = price + standing["profit"] - previous["profit"]
        if value is None and observation["sale"]:  # nobody bought it, and its value may be told
            value = observation["sale"]["value"]
        last: Replies = {name: None for name in inside if name != winner}
        if winner is not None and self.latest.get(winner) != price:
            last[winner] = price
        rounds = (*self.rounds, last) if last else self.rounds
        name, start = self.observation["item"], self.observation["start"]
        return ClosedItem(name, start, rounds, winner, price, value)

    def truth(self, chapter: int, me: str, purse: int, names: Sequence[str]) -> dict[str, Any]:
        """Return the true budget, profits and purchases when the item of a chapter was closed."""
        won: dict[str, dict[str, int]] = {name: {} for name in names}
        profits: dict[str, int | None] = dict.fromkeys(names, 0)
        for item in self.closed[: chapter + 1]:
            if item.winner is not None and item.price is not None:
                won[item.winner][item.name] = item.price
                so_far = profits[item.winner]
                is_known = None not in (so_far, item.value)
                profits[item.winner] = so_far + item.value - item.price if is_known else None  # type: ignore[operator]
        budget = purse - sum(won[me].values())
        return {"remaining_budget": budget, "total_profits": profits, "winning_bids": won}


class AuctionMind(Mind):
    """The bidder's own questions: priorities of items, and a checked belief."""

    name = "english_auction"
    chapter = "item"

    def begin(self, game: Any, seat: int) -> tuple[None, Belief]:
        names = game.names()
        return None, AuctionLog({}).truth(0, names[seat], int(game.purses[seat]), names)

    def hear(self, view: View, log: AuctionLog | None) -> AuctionLog:
        assert view.told is not None
        return AuctionLog(view.told) if log is None else log.with_step(view.told, view.game.names())

    def scene(self, view: View) -> Any:
        return view.told and view.told["number"]

    def closed(self, memory: PlanningMemory) -> int:
        return len(memory.log.closed)

    def status(self, view: View, memory: PlanningMemory) -> str:
        belief = _belief_json(memory.belief)
        return self.words.say("status", **self._common_values(view), belief=belief)

    def news(self, view: View, memory: PlanningMemory) -> str:
        return ""  # each question tells what it is about

    def move(self, view: View, memory: PlanningMemory, reasoning: bool) -> tuple[str, str]:
        observation, common, question = view.told, self._common_values(view), view.question
        assert observation is not None
        assert isinstance(question, Bid)
        unplanned = self.planning.strategy == "none"
        sees = not unplanned or self.planning.none_sees_estimates or common["private"]
        listed = unplanned and sees  # the others have this list in the request for their plan
        values = observation | common | {
            "first": memory.decisions == memory.scene_began,
            "count": len(view.game.catalogue),
            "estimate": observation["estimate"] if sees else None,
            "adaptive": self.planning.strategy == "adaptive",
            "later": [
                f"{item['name']} {item['start']}/{item['estimate']}" if listed else item["name"]
                for item in observation["ahead"]
            ],
            "listed": listed,
            "money": memory.belief["remaining_budget"],
            "status": self.status(view, memory),
            # Limits of the bid would tell the true budget, which the bidder has to keep track of.
            "form": dataclasses.replace(question, limits=False).form(reasoning),
        }  # fmt: skip
        return self.words.say("report", **values), self.words.say("request", **values)

    def plan(self, view: View, memory: PlanningMemory) -> Aside:
        observation = view.told
        assert observation is not None
        here = {"name": observation["item"]} | {k: observation[k] for k in ("start", "estimate")}
        items = [here, *observation["ahead"]]
        names = tuple(item["name"] for item in items)
        previous_plan = memory.plan if self.planning.replan_shows_old_plan and memory.plan else {}
        old = {name: previous_plan[name] for name in names if name in previous_plan}
        values = {
            "items": items,
            "money": memory.belief["remaining_budget"],
            "plan": json.dumps(old) if old else "",
        } | self._common_values(view)
        return Aside(memory.next_plan, Priorities("priorities", names), values)

    def planned(
        self, view: View, memory: PlanningMemory, question: Any, reply: Reply
    ) -> tuple[dict[str, int], dict[str, Any]]:
        priorities = reply.action if isinstance(reply.action, dict) else {}
        old = memory.plan or {}
        plan = {item: priorities.get(item, old.get(item, MIDDLE)) for item in question.items}
        assert view.told is not None
        return plan, {"item": view.told["number"] - 1, "priorities": plan}

    def belief(self, view: View, memory: PlanningMemory, chapter: int) -> Aside:
        log, common = memory.log, self._common_values(view)
        names, item = view.game.names(), log.closed[chapter]
        truth = log.truth(chapter, common["me"], int(view.game.purses[view.seat]), names)
        sold = tuple(closed.name for closed in log.closed[: chapter + 1])
        correct, substring = self.planning.correct_belief, self.planning.bidder_names == "substring"
        question = BeliefAside("remaining_budget", common["me"], truth, sold, correct, substring)
        values = {
            "belief": _belief_json(memory.belief),
            "item": self.words.say("item", item=item, names=names),
            "won": item.winner == common["me"],
        }
        return Aside("belief", question, common | values)

    def believed(
        self, memory: PlanningMemory, question: Any, reply: Reply, attempts: Sequence[Attempt]
    ) -> tuple[Belief, dict[str, Any]]:
        """Store a belief that is right, else the truth or the last reply, as `Planning` says."""
        checks, unusable = [], []
        stated: Belief | None = None
        for attempt in attempts[: self.planning.belief_checks]:
            if isinstance(attempt.action, dict):
                stated = attempt.action
                compared = question.checks(stated)
                every = [check.group for check in compared]
                wrong = [check.group for check in compared if not check.right]
                checks.append({g: [every.count(g), wrong.count(g)] for g in ("self", "others")})
            else:
                unusable.append(attempt.why)
        if isinstance(reply.action, dict):
            stated = reply.action
        corrects = self.planning.correct_belief and self.planning.belief_fallback == "truth"
        corrected = reply.outcome != "valid" and corrects
        belief = question.truth if corrected else memory.belief if stated is None else stated
        return belief, {
            "checks": checks,
            "unusable": unusable,
            "belief": stated,
            "truth": question.truth,
            "corrected": corrected,
        }

    def look_back(self, view: View, memory: PlanningMemory) -> Aside:
        names = view.game.names()
        lines = [self.words.say("item", item=item, names=names) for item in memory.log.closed]
        truth = memory.log.truth(len(lines), names[view.seat], 0, names)
        standings = [
            {"name": n, "items": len(truth["winning_bids"][n]), "profit": truth["total_profits"][n]}
            for n in names
        ]
        values = {"told": "\n".join(lines), "standings": standings, "lessons": memory.lessons}
        return Aside("learn", Lessons("lessons"), values | self._common_values(view))

    def _common_values(self, view: View) -> dict[str, Any]:
        me, goal = view.game.names()[view.seat], self.words.goal(view.game, view.seat)
        return {"me": me, "private": view.game.values == "private", "goal": goal}


def _belief_json(belief: Belief) -> str:
    """Return a belief as the JSON of a reply, without the summary and unknown profits."""
    profits = {name: n for name, n in belief["total_profits"].items() if n is not None}
    return json.dumps({key: belief[key] for key in BeliefAside.KEYS} | {"total_profits": profits})


MIND = AuctionMind  # of a planning player in this game
