"""A language model that plans, keeps track and learns beside its moves: belief, desire, intention.

`PlanningPolicy` asks four questions (plan, move, belief update, replan) and takes a learning step.
What they are about is the game's `Mind`; a game without one of its own is planned in words.
Source: AucArena (arXiv 2310.05746), §3.2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from llm_games.asides import Aside
from llm_games.errors import BadParameter
from llm_games.questions import MISSING
from llm_games.replies import Reply
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.words import Blocks
from llm_games.wrappers.clients.base import Client
from llm_games.wrappers.dialogue import ALL, ChatMemory, Dialogue, Exchange, joined
from llm_games.wrappers.llm_policy import LLMPolicy, seeds
from llm_games.wrappers.mind import Mind, Planning, PlanningMemory
from llm_games.wrappers.policy import Attempt, Decision, Note

Minds = Callable[[str], type[Mind]]  #: from a game's name to its mind


@dataclass
class _Thoughts:
    """The attempts and notes of one decision, in order."""

    view: View  #: of the game inside: moves and speeches alone hear a talk
    seeds: Iterator[int]
    attempts: list[Attempt] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def note(self, kind: str, **content: Any) -> None:
        self.notes.append(Note(kind, content))


class _Thought(NamedTuple):
    """The reply to a question beside the moves, the attempts, the next memory, and the request."""

    reply: Reply
    attempts: tuple[Attempt, ...]
    memory: PlanningMemory
    asked: str


class PlanningPolicy(LLMPolicy):
    """A player that plans, updates its belief, plans again, and learns from game to game.

    All is asked in one dialogue, in the order in which it happens; if `Planning.apart`, moves are
    asked for in one that begins with the latest plan, all else by a request of its own. Notes of a
    decision say what was kept and what could not be used. `settings` are of `LLMPolicy`.
    """

    def __init__(
        self,
        client: Client,
        planning: Planning | None = None,
        minds: Minds = lambda game: Mind,
        **settings: Any,
    ) -> None:
        super().__init__(client, **settings)
        if not isinstance(planning, Planning | None):
            raise BadParameter(f"planning must be Planning(...) or None, got {planning!r}")
        self.planning, self.minds = planning or Planning(), minds
        self._minds: dict[str, Mind] = {}
        self._common = Blocks("any", self.prompt_folder)

    def start(self, game: Rulebook, seat: int, seed: int) -> PlanningMemory:
        """Return the memory of a seat that has just heard the rules."""
        chat = super().start(game, seat, seed)
        log, belief = self._mind(game).begin(game.core, seat)
        return PlanningMemory(chat.seed, chat.dialogue, log=log, belief=belief)

    def recall(self, memory: PlanningMemory, notes: Sequence[Note]) -> PlanningMemory:
        """Add the lessons of the game before to the rules, if it is to learn."""
        lessons = [note.content["lessons"] for note in notes if note.kind == "lessons"]
        if not self.planning.learning or not lessons or not lessons[-1]:
            return memory
        system = f"{memory.system}\n\n{self._common.say('lessons', lessons=lessons[-1])}"
        return dataclasses.replace(memory, dialogue=Dialogue.of(system), lessons=tuple(lessons[-1]))

    def hear(self, view: View, memory: PlanningMemory) -> PlanningMemory:
        """Write down what was said."""
        return dataclasses.replace(memory, log=self._mind(view.game).hear(view.core, memory.log))

    async def decide(self, view: View, memory: Any) -> tuple[Decision, ChatMemory]:
        """Think about what is due, then move."""
        mind, thoughts = self._mind(view.game), _Thoughts(view.core, seeds(memory, 1))
        if memory.log is None:  # nobody lets it hear: it knows what it is told when it moves
            memory = self.hear(view, memory)
        if memory.plan is None and self.planning.strategy != "none":
            memory = await self._plan(memory, thoughts)
        memory = await self._review(memory, thoughts)
        if memory.scene != (scene := mind.scene(view.core)):
            memory = dataclasses.replace(memory, scene=scene, scene_began=memory.decisions)
            if self.planning.apart:
                dialogue = memory.dialogue.without(len(memory.dialogue))
                memory = dataclasses.replace(memory, dialogue=dialogue)
        decision, next_memory = await self._move(view, memory, len(thoughts.attempts))
        attempts = (*thoughts.attempts, *decision.attempts)
        return Decision(decision.action, attempts, (*thoughts.notes, *decision.notes)), next_memory

    async def finish(self, view: View, memory: PlanningMemory) -> Decision:
        """Update the belief a last time, and learn."""
        thoughts = _Thoughts(view.core, seeds(memory, 1))
        memory = await self._review(memory, thoughts, last=True)
        if self.planning.learning:
            aside = self._mind(view.game).look_back(view.core, memory)
            reply = (await self._think(memory, thoughts, aside)).reply
            lessons = reply.action if reply.outcome == "valid" else list(memory.lessons)
            thoughts.note("lessons", lessons=lessons)
        return Decision(MISSING, tuple(thoughts.attempts), tuple(thoughts.notes))

    def past_turns(self, game: Rulebook) -> float:
        """Return it; in one dialogue with plans and beliefs all that happened stays."""
        return super().past_turns(game) if self.planning.apart else ALL

    def _keeps_requests(self, game: Rulebook) -> bool:
        """Test whether past requests stay; by default, in one dialogue with plans."""
        always = self.remembering.notices is None and not self.planning.apart
        return always or super()._keeps_requests(game)

    def _stays(self, game: Rulebook, kind: str) -> bool:
        apart = self.planning.apart and kind in ("plan", "replan", "belief", "learn")
        return not apart and super()._stays(game, kind)

    def words(self, view: View, memory: Any) -> tuple[str, str]:
        """Return the texts before a move, in the words of the game's mind, or a speech."""
        mind, speaks = self._mind(view.game), view.sight.talking
        texts = None if speaks else mind.move(view.core, memory, self.reasoning)
        if texts is None:
            return super().words(view, memory)
        messages = self._prompts(view.game).heard(view)
        return texts[0], self._with_cue(joined(messages, texts[1]))

    async def _plan(self, memory: PlanningMemory, thoughts: _Thoughts) -> PlanningMemory:
        view, mind = thoughts.view, self._mind(thoughts.view.game)
        aside = mind.plan(view, memory)
        thought = await self._think(memory, thoughts, aside)
        plan, note = mind.planned(view, memory, aside.question, thought.reply)
        unusable = [attempt.why for attempt in thought.attempts if attempt.outcome != "valid"]
        thoughts.note("plan", **note, unusable=unusable, again=aside.kind == "replan")
        memory = thought.memory
        if self.planning.apart:
            planned = Exchange(thought.asked, aside.question.reply(plan), aside.kind)
            dialogue = Dialogue(memory.dialogue.rules).plus(planned)
            memory = dataclasses.replace(memory, dialogue=dialogue)
        return dataclasses.replace(memory, plan=plan)

    async def _review(
        self, memory: PlanningMemory, thoughts: _Thoughts, last: bool = False
    ) -> PlanningMemory:
        """Update the belief on every chapter that is over; then reconsider the plan."""
        mind = self._mind(thoughts.view.game)
        due = range(memory.reviewed, mind.closed(memory))
        for chapter in due:
            aside = mind.belief(thoughts.view, memory, chapter)
            thought = await self._think(memory, thoughts, aside)
            belief, note = mind.believed(memory, aside.question, thought.reply, thought.attempts)
            thoughts.note("belief", **{mind.chapter: chapter}, **note)
            memory = dataclasses.replace(thought.memory, belief=belief, reviewed=chapter + 1)
        if due and not last and self.planning.strategy == "adaptive":
            memory = await self._plan(memory, thoughts)
        return memory

    async def _think(self, memory: PlanningMemory, thoughts: _Thoughts, aside: Aside) -> _Thought:
        """Ask a question that is no move: in the dialogue where it stays, or apart from it."""
        view, mind = thoughts.view, self._mind(thoughts.view.game)
        apart, news = self.planning.apart, self._news(view, memory)
        common = {
            "status": mind.status(view, memory),
            "report": news if apart else "",
            "goal": mind.words.goal(view.game, view.seat),
            "form": aside.question.form(self.reasoning),
        }
        asked = self._with_cue(mind.words.say(aside.kind, **common | dict(aside.values)))
        rules_alone = dataclasses.replace(memory, dialogue=Dialogue(memory.dialogue.rules))
        outcome = await self.ask(
            view,
            rules_alone if apart else memory,
            (asked,) if apart else (news, asked),
            aside.question,
            seeds=thoughts.seeds,
            max_attempts=self.planning.replies(aside.kind),
            calls=len(thoughts.attempts),
            kind=aside.kind,
        )
        thoughts.attempts += outcome.attempts
        thoughts.notes += outcome.notes
        attempts = tuple(a for a in outcome.attempts if a.kind == aside.kind)
        if not apart:
            changes = self._beside(view, memory, outcome, aside.question, aside.kind)
            memory = dataclasses.replace(outcome.memory, **changes)
        return _Thought(outcome.reply, attempts, memory, asked)

    def _news(self, view: View, memory: PlanningMemory) -> str:
        """Return the report, in a dialogue with the situation and the goal; "" if repeated."""
        prompts, news = self._prompts(view.game), self._mind(view.game).news(view, memory)
        if news is not None or self.planning.apart:
            return prompts.report(view) if news is None else news
        report = prompts.report(view, memory.notes)
        if memory.told == (memory.decisions, report):
            return ""
        return joined(report, prompts.situation(view))

    def _with_cue(self, request: str) -> str:
        return f"{request}\n{self._common.say('reasoning')}" if self.reasoning else request

    def _mind(self, game: Rulebook) -> Mind:
        if game.name not in self._minds:
            self._minds[game.name] = self.minds(game.name)(self.planning, self.prompt_folder)
        return self._minds[game.name]
