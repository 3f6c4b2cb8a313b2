"""The thoughts of a planning player in a game: its questions, and what is kept of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from llm_games.asides import Aside, Lessons, Text
from llm_games.errors import unknown
from llm_games.facts import check_parameters, param
from llm_games.replies import Reply
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.words import Blocks
from llm_games.wrappers.dialogue import ChatMemory
from llm_games.wrappers.policy import Attempt

STRATEGIES = ("none", "static", "adaptive")


@dataclass(frozen=True)
class Planning:
    """How a player plans, keeps track and learns. Source: AucArena (arXiv 2310.05746), §3.2."""

    strategy: str = "adaptive"
    """``none``: no plan; ``static``: one before the first move; ``adaptive``: again after every
    chapter of the game (item of an auction, else own decision)"""
    learning: bool = param(False)  # lessons of a game are recalled in the next one of a series
    correct_belief: bool = param(True)  # wrong beliefs are sent back, in the end corrected
    belief_checks: int = param(4, low=1)  # replies that are read in one update of a belief, at most
    plan_reasks: int = param(2, low=0)
    """how often a plan, or lessons, that cannot be used are asked for again, at most"""
    belief_fallback: str = param(
        "truth",
        "after the last wrong reply",
        truth="it is stored",
        last_reply="one more that is requested then and stored unchecked",
    )
    none_sees_estimates: bool = param(True)  # to a bidder without a plan, when an item is called
    replan_shows_old_plan: bool = param(True)  # the request for a new plan shows the old one
    apart: bool = param(False)
    """each question beside moves is a chat of its own, after which the dialogue of moves begins
    with the plan, and anew with each scene of the game (item of an auction), as AucArena's; else
    all is one dialogue in the order in which it happened"""
    bidder_names: str = param(
        "exact", "names in beliefs", exact="compared whole", substring="also match longer ones"
    )

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise unknown("strategy", self.strategy, STRATEGIES)
        check_parameters(self)

    def replies(self, kind: str) -> int:
        """Return the limit of replies that are read, of a ``belief`` or another aside."""
        updates = self.belief_checks + (self.belief_fallback == "last_reply")
        return updates if kind == "belief" else self.plan_reasks + 1


@dataclass(frozen=True)
class PlanningMemory(ChatMemory):
    """A planning seat's memory of one episode beside the dialogue."""

    log: Any = None  # what its mind heard, see `Mind.hear`
    plan: Any = None  # the plan in force; None if there is none
    belief: Any = None
    reviewed: int = 0  # how many chapters it has updated its belief on
    scene: Any = None  # what the last moves were about, see `Mind.scene`
    scene_began: int = 0  # how many decisions it had made when that began
    lessons: tuple[str, ...] = ()  # from earlier games

    @property
    def next_plan(self) -> str:
        """The kind of the next plan: ``plan``, or ``replan`` after the first one."""
        return "plan" if self.plan is None else "replan"


class Mind:
    """The questions of planning in one game; by default plans and beliefs are in words.

    After each chapter, by default the own decision, beliefs are updated, and plans but at the last.
    """

    name: ClassVar[str] = "any"  # of its words
    chapter: ClassVar[str] = "decision"  # what a chapter is called in notes

    def __init__(self, planning: Planning, folder: str | Path | None = None) -> None:
        self.words, self.planning = Blocks(self.name, folder), planning

    def begin(self, game: Rulebook, seat: int) -> tuple[Any, Any]:
        """Return the log and the belief at the start."""
        return None, None

    def hear(self, view: View, log: Any) -> Any:
        """Return the log after a step."""
        return log

    def scene(self, view: View) -> Any:
        """Return the subject of the coming moves."""
        return None

    def closed(self, memory: PlanningMemory) -> int:
        return memory.decisions

    def status(self, view: View, memory: PlanningMemory) -> str:
        """Return the belief in words, unless it stands in the dialogue."""
        if not self.planning.apart and memory.dialogue.last_of("belief"):
            return ""
        return self.words.say("status", belief=memory.belief)

    def news(self, view: View, memory: PlanningMemory) -> str | None:
        """Return the report before a question beside moves; None: as other players hear it."""
        return None

    def move(self, view: View, memory: PlanningMemory, reasoning: bool) -> tuple[str, str] | None:
        """Return report and request before a move; None: as other players hear them."""
        return None

    def plan(self, view: View, memory: PlanningMemory) -> Aside:
        """Return the question for a plan."""
        shown = memory.plan if self.planning.replan_shows_old_plan else None
        question = Text("plan", "your plan in a few sentences")
        return Aside(memory.next_plan, question, {"plan": shown} | _me(view))

    def planned(
        self, view: View, memory: PlanningMemory, question: Any, reply: Reply
    ) -> tuple[Any, dict[str, Any]]:
        """Return the plan in force after any reply, and the content of its note."""
        plan = reply.action if reply.outcome == "valid" else memory.plan or ""
        return plan, {"decision": memory.decisions, "plan": plan}

    def belief(self, view: View, memory: PlanningMemory, chapter: int) -> Aside:
        """Return the question that updates the belief after a chapter."""
        return Aside("belief", Text("summary", "what you know in a few sentences"), _me(view))

    def believed(
        self, memory: PlanningMemory, question: Any, reply: Reply, attempts: Sequence[Attempt]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the belief after any replies, and the content of its note."""
        belief = reply.action if reply.outcome == "valid" else memory.belief
        return belief, {"belief": belief}

    def look_back(self, view: View, memory: PlanningMemory) -> Aside:
        """Return the question for lessons."""
        lessons_so_far = {"lessons": memory.lessons, "told": ""}
        return Aside("learn", Lessons("lessons"), lessons_so_far | _me(view))


def _me(view: View) -> dict[str, Any]:
    return {"me": view.game.names_in_words()[view.seat]}
