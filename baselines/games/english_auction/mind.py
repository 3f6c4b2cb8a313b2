"""What a planning bidder thinks about in the English auction: AucArena (arXiv 2310.05746), A.2."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from llm_games.asides import Aside, Lessons
from llm_games.baselines.games.english_auction.asides import Belief, Beliefs, Priorities
from llm_games.questions import Bid
from llm_games.replies import Reply
from llm_games.view import View
from llm_games.wrappers.mind import Mind, PlanningMemory
from llm_games.wrappers.policy import Attempt

MIDDLE = 2  # the priority of an item that no plan has named
Said = dict[str, int | None]  # what bidders replied: a bid, or None for a withdrawal


@dataclass(frozen=True)
class ClosedItem:
    """An item that was sold or not, with every reply of every round."""

    name: str
    start: int
    rounds: tuple[Said, ...] = ()
    winner: str | None = None  # nobody
    price: int | None = None
    value: int | None = None  # not announced


@dataclass(frozen=True)
class AuctionLog:
    """All that was said in an auction, as any bidder hears it."""

    told: dict[str, Any]  # last
    rounds: tuple[Said, ...] = ()  # of the item on sale
    latest: Said = field(default_factory=dict)  # reply of each bidder on it
    closed: tuple[ClosedItem, ...] = ()  # before it

    def after(self, told: dict[str, Any], names: Sequence[str]) -> "AuctionLog":
        """Return the log after one more step, from what a seat is told then."""
        inside = [name for name in names if self.latest.get(name, 0) is not None]
        if told["number"] != self.told["number"]:
            # Items after it that nobody was asked about, since nobody could pay, are gone as well.
            ahead, left = self.told["ahead"], len(told["ahead"]) + (told["item"] is not None)
            skipped = [ClosedItem(a["name"], a["start"]) for a in ahead[: len(ahead) - left]]
            return AuctionLog(told, closed=(*self.closed, self._sold(told, inside), *skipped))
        latest = {reply["name"]: reply["bid"] for reply in told["replies"]}
        if latest:
            said = {n: bid for n, bid in latest.items() if self.latest.get(n, -1) != bid}
        else:  # nobody wanted it, and all may bid again at a lower price
            said = dict.fromkeys(inside)
        rounds = (*self.rounds, said) if said else self.rounds
        return dataclasses.replace(self, told=told, rounds=rounds, latest=latest)

    def _sold(self, told: dict[str, Any], inside: Sequence[str]) -> ClosedItem:
        """Close the item. Its last round is not told, but follows: all but the winner withdrew."""
        before = {s["name"]: s for s in self.told["standings"]}
        none = {"won": 0, "spent": 0, "profit": 0}
        winner, price, value = None, None, None
        for now in told["standings"]:
            then = before.get(now["name"], none)
            if now["won"] > then["won"]:
                winner, price = now["name"], now["spent"] - then["spent"]
                if now["profit"] is not None:
                    value = price + now["profit"] - then["profit"]
        if value is None and told["sale"]:  # nobody bought it, and its value may be told
            value = told["sale"]["value"]
        last: Said = {name: None for name in inside if name != winner}
        if winner is not None and self.latest.get(winner) != price:
            last[winner] = price
        rounds = (*self.rounds, last) if last else self.rounds
        return ClosedItem(self.told["item"], self.told["start"], rounds, winner, price, value)

    def truth(self, chapter: int, me: str, purse: int, names: Sequence[str]) -> dict[str, Any]:
        """Return the state of things when the item of a chapter was closed."""
        won: dict[str, dict[str, int]] = {name: {} for name in names}
        profits: dict[str, int | None] = dict.fromkeys(names, 0)
        for item in self.closed[: chapter + 1]:
            if item.winner is not None and item.price is not None:
                won[item.winner][item.name] = item.price
                so_far = profits[item.winner]
                known = None not in (so_far, item.value)
                profits[item.winner] = so_far + item.value - item.price if known else None  # type: ignore[operator]
        budget = purse - sum(won[me].values())
        return {"remaining_budget": budget, "total_profits": profits, "winning_bids": won}


class AuctionMind(Mind):
    """The bidder's own questions: priorities of items, and a belief that is checked."""

    name = "english_auction"
    chapter = "item"

    def begin(self, game: Any, seat: int) -> tuple[None, Belief]:
        names = game.names()
        return None, AuctionLog({}).truth(0, names[seat], int(game.purses[seat]), names)

    def hear(self, view: View, log: AuctionLog | None) -> AuctionLog:
        assert view.told is not None
        return AuctionLog(view.told) if log is None else log.after(view.told, view.game.names())

    def scene(self, view: View) -> Any:
        return view.told and view.told["number"]

    def closed(self, memory: PlanningMemory) -> int:
        return len(memory.log.closed)

    def status(self, view: View, memory: PlanningMemory) -> str:
        return self.words.say("status", **self._known(view), belief=_shown(memory.belief))

    def news(self, view: View, memory: PlanningMemory) -> str:
        return ""  # each question tells what it is about

    def move(self, view: View, memory: PlanningMemory, reasoning: bool) -> tuple[str, str]:
        told, known, question = view.told, self._known(view), view.question
        assert told is not None
        assert isinstance(question, Bid)
        unplanned = self.planning.strategy == "none"
        sees = not unplanned or self.planning.none_sees_estimates or known["private"]
        listed = unplanned and sees  # the others have this list in the request for their plan
        values = told | known | {
            "first": memory.decisions == memory.scene_began,
            "count": len(view.game.catalogue),
            "estimate": told["estimate"] if sees else None,
            "adaptive": self.planning.strategy == "adaptive",
            "later": [
                f"{item['name']} {item['start']}/{item['estimate']}" if listed else item["name"]
                for item in told["ahead"]
            ],
            "listed": listed,
            "money": memory.belief["remaining_budget"],
            "status": self.status(view, memory),
            # Limits of the bid would tell the true budget, which the bidder has to keep track of.
            "form": dataclasses.replace(question, limits=False).form(reasoning),
        }  # fmt: skip
        return self.words.say("report", **values), self.words.say("request", **values)

    def plan(self, view: View, memory: PlanningMemory) -> Aside:
        told = view.told
        assert told is not None
        here = {"name": told["item"], "start": told["start"], "estimate": told["estimate"]}
        items = [here, *told["ahead"]]
        names = tuple(item["name"] for item in items)
        known = memory.plan if self.planning.replan_shows_old_plan and memory.plan else {}
        old = {name: known[name] for name in names if name in known}
        values = {
            "items": items,
            "money": memory.belief["remaining_budget"],
            "plan": json.dumps(old) if old else "",
        } | self._known(view)
        return Aside(memory.next_plan, Priorities("priorities", names), values)

    def planned(
        self, view: View, memory: PlanningMemory, question: Any, reply: Reply
    ) -> tuple[dict[str, int], dict[str, Any]]:
        said = reply.action if isinstance(reply.action, dict) else {}
        old = memory.plan or {}
        plan = {item: said.get(item, old.get(item, MIDDLE)) for item in question.items}
        assert view.told is not None
        return plan, {"item": view.told["number"] - 1, "priorities": plan}

    def belief(self, view: View, memory: PlanningMemory, chapter: int) -> Aside:
        log, known = memory.log, self._known(view)
        names, item = view.game.names(), log.closed[chapter]
        truth = log.truth(chapter, known["me"], int(view.game.purses[view.seat]), names)
        sold = tuple(closed.name for closed in log.closed[: chapter + 1])
        correct, substring = self.planning.correct_belief, self.planning.bidder_names == "substring"
        question = Beliefs("remaining_budget", known["me"], truth, sold, correct, substring)
        values = {
            "belief": _shown(memory.belief),
            "item": self.words.say("item", item=item, names=names),
            "won": item.winner == known["me"],
        }
        return Aside("belief", question, known | values)

    def believed(
        self, memory: PlanningMemory, question: Any, reply: Reply, attempts: Sequence[Attempt]
    ) -> tuple[Belief, dict[str, Any]]:
        """Store a belief that is right, else the truth or the last reply, as `Planning` says."""
        checks, unusable = [], []
        said: Belief | None = None
        for attempt in attempts[: self.planning.belief_checks]:
            if isinstance(attempt.action, dict):
                said = attempt.action
                compared = question.checks(said)
                every = [check.group for check in compared]
                wrong = [check.group for check in compared if not check.right]
                checks.append({g: [every.count(g), wrong.count(g)] for g in ("self", "others")})
            else:
                unusable.append(attempt.why)
        if isinstance(reply.action, dict):
            said = reply.action
        corrects = self.planning.correct_belief and self.planning.belief_fallback == "truth"
        corrected = reply.outcome != "valid" and corrects
        belief = question.truth if corrected else memory.belief if said is None else said
        return belief, {
            "checks": checks,
            "unusable": unusable,
            "belief": said,
            "truth": question.truth,
            "corrected": corrected,
        }

    def look_back(self, view: View, memory: PlanningMemory) -> Aside:
        names = view.game.names()
        said = [self.words.say("item", item=item, names=names) for item in memory.log.closed]
        truth = memory.log.truth(len(said), names[view.seat], 0, names)
        standings = [
            {"name": n, "items": len(truth["winning_bids"][n]), "profit": truth["total_profits"][n]}
            for n in names
        ]
        values = {"told": "\n".join(said), "standings": standings, "lessons": memory.lessons}
        return Aside("learn", Lessons("lessons"), values | self._known(view))

    def _known(self, view: View) -> dict[str, Any]:
        """Return what all words may need."""
        goal = self.words.goal(view.game, view.seat)
        private = view.game.values == "private"
        return {"me": view.game.names()[view.seat], "private": private, "goal": goal}


def _shown(belief: Belief) -> str:
    """Write a belief as a reply has it, without the summary and what is unknown."""
    profits = {name: n for name, n in belief["total_profits"].items() if n is not None}
    return json.dumps({key: belief[key] for key in Beliefs.KEYS} | {"total_profits": profits})


MIND = AuctionMind  # of a planning player in this game
