"""A language model as a player: prompts become completions, completions become actions."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import iscoroutinefunction, signature
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.asides import GRADED, Aside, Text
from llm_games.errors import BadParameter, NotReady, unknown, unknown_keyword
from llm_games.facts import check_integer
from llm_games.noise import Noise
from llm_games.questions import MISSING, Question
from llm_games.replies import READINGS, Reply, read_reply, split_thoughts
from llm_games.rulebook import Array, Rulebook
from llm_games.view import Sight, View
from llm_games.words import PERSONAS, Prompts
from llm_games.wrappers.clients.base import Client, ContextOverflow, Request, Sampling
from llm_games.wrappers.clients.sampled import ReplySampler
from llm_games.wrappers.dialogue import (
    ALL,
    PLANS,
    ChatMemory,
    Dialogue,
    Exchange,
    Remembering,
    joined,
)
from llm_games.wrappers.policy import Attempt, Decided, Decision, Note, Policy
from llm_games.wrappers.situations import Situations
from llm_games.wrappers.together import run_sync
from llm_games.wrappers.tools import Bench, Tool, ToolCall, checked
from llm_games.wrappers.user_players import client_of

EDITION = 4
"""How a model is asked and read, by number: raised when the same record would be read otherwise."""
#: Replies read for one decision of a game that sets no limit of its own to them.
MOST_ATTEMPTS = 100
SPEECHES, ASIDES, QUIZ = 3, 4, 5  #: streams of sampling seeds beside those of moves, see `seeds`
Grader = Callable[[View, Noise], Aside | None]
"""Makes a graded question to the seat of a view, None where there is nothing to ask."""
MOST_GAMES = 16  #: games of which is kept what was met in them


class Answer(NamedTuple):
    """The last reply to a question, with the last readable action, and the attempts."""

    reply: Reply
    attempts: tuple[Attempt, ...]
    memory: Any  #: with the dialogue in which it was asked
    notes: tuple[Note, ...] = ()
    prompt: tuple[str, ...] = ()  #: what was told for it, with what was wrong with earlier replies


class Cut(NamedTuple):
    """A memory after questions beside a move, with their attempts and notes."""

    memory: Any
    attempts: tuple[Attempt, ...] = ()
    notes: tuple[Note, ...] = ()


class LLMPolicy(Policy):
    """A player that asks a language model.

    The dialogue is: the rules as system text; for every remembered decision what was reported
    before it and the own answer in its canonical form; last what happened since and the request.
    Unless it is said otherwise, explanations and failed answers are not kept. Text only grows at
    its end, so that a server can reuse what it has read.

    Args:
        client: where completions come from; or an async function of a request, see `Function`.
        prompts: the wording, ``"v1"`` … ``"v5"`` or a file in `prompt_folder`.
        prompt_folder: a folder of your own with ``<game>/<version>.j2`` files.
        reasoning: ask for an explanation before the answer.
        persona: one of ``cooperative``, ``selfish``, ``mathematician``, or a sentence of your own.
        memory: past decisions in the dialogue: ``"full"``, ``"none"``, or a number at most; beyond
            it the older half falls out. What happened since the last decision is told in any case.
            A game's ``shown_last`` caps it exactly.
        memory_tokens: how many tokens a prompt has, at most: else its older half falls out.
        remember: ``"answers"`` in their canonical form, or whole ``"replies"`` as they came, those
            that could not be used too, but without thoughts.
        notices: past requests are kept too, with calls of tools, what was asked beside moves and
            what was wrong with replies, so that each prompt begins with the whole of the one
            before. None: where the game lets players forget nothing, see docs/experiments.md.
        thoughts: ``"keep"`` hands thoughts of the past back, before the answer as
            ``<think>…</think>``; ``"drop"`` does not.
        context: how many tokens the model takes, prompt and reply together; None: not known.
        overflow: what to do with a prompt that does not fit into `context`, or that the server
            refuses: ``"stop"``; ``"shorten"``, by the older half of what is remembered, or
            ``"summarise"`` it in the model's own words, also when a window (`memory`,
            `memory_tokens`) is full.
        reading: how answers are found in the text, see `read_reply`.
        max_attempts: completions asked for one decision, at most; each re-ask says what was wrong.
            A game's own rule on it comes first, see `attempts_in`.
        tools: what the model may call before it answers, or is always told. A call is an attempt
            with the outcome ``"tool"``, no answer and no rule break; it stays in the chat as
            requests do, see `notices`.
        max_tool_calls: calls for one decision, at most. They do not count as its attempts.
        ask: graded questions after each move, of what was known before it: no move hangs on them.
        structured: let clients that can constrain the answer to its JSON schema do so, while tools
            can be called to a schema of answers and calls, which some servers do not take.
        name: the player's name in logs; the client's by default.
        sampling, drawing: how replies are drawn, and what is otherwise: ``temperature=0.2``.

    Raises:
        BadParameter, UnknownName: an argument is not one of these.
    """

    speaks = True

    def __init__(
        self,
        client: Client,
        *,
        prompts: str = "v1",
        prompt_folder: str | Path | None = None,
        reasoning: bool = False,
        persona: str | None = None,
        memory: int | str = "full",
        memory_tokens: int | None = None,
        remember: str = "answers",
        notices: bool | None = None,
        thoughts: str = "drop",
        overflow: str = "stop",
        context: int | None = None,
        reading: str = "strict",
        max_attempts: int = 3,
        structured: bool = True,
        tools: Iterable[Tool] = (),
        max_tool_calls: int = 2,
        ask: Iterable[Grader] = (),
        name: str | None = None,
        sampling: Sampling | None = None,
        **drawing: Any,
    ) -> None:
        if iscoroutinefunction(client):
            client = client_of(client)
        if not isinstance(client, Client):
            kind = type(client).__name__
            raise BadParameter(f"client must have a name, complete and close, got {kind}")
        sentence = isinstance(persona, str) and " " in persona.strip()
        if persona is not None and persona not in PERSONAS and not sentence:
            raise unknown("persona (or sentence of your own)", persona, PERSONAS)
        if reading not in READINGS:
            raise unknown("reading", reading, READINGS)
        check_integer("max_attempts", max_attempts, 1)
        check_integer("max_tool_calls", max_tool_calls, 1, 100)
        self.client, self.name = client, name or client.name
        self.prompts, self.prompt_folder = prompts, prompt_folder
        self._wordings: dict[str, Prompts] = {}  # templates are analysed once for each game
        self._met: list[Situations] = []  # of one game each
        self.reasoning, self.persona, self.reading = reasoning, persona, reading
        self.remembering = Remembering(
            memory=memory,
            memory_tokens=memory_tokens,
            remember=remember,
            notices=notices,
            thoughts=thoughts,
            overflow=overflow,
            context=context,
        )
        option_names = [option.name for option in dataclasses.fields(Sampling)]
        if odd := [key for key in drawing if key not in option_names]:
            ours = [name for name in signature(LLMPolicy).parameters if name != "drawing"]
            raise unknown_keyword("setting of LLMPolicy", odd[0], [*ours, *option_names])
        self.sampling = dataclasses.replace(sampling or Sampling(), **drawing)
        if context is not None and context <= (reply := self.sampling.max_tokens or 0):
            raise BadParameter(f"context ({context}) has no room beside max_tokens ({reply})")
        self.max_attempts, self.structured = max_attempts, structured
        self.tools, self.max_tool_calls = checked(tools), max_tool_calls
        self.graders = tuple(ask)
        if reading == "published" and not all(tool.always for tool in self.tools):
            readings = '"strict" or "take_last", not "published"'
            raise BadParameter(f"tools can be called with reading {readings}")

    def start(self, game: Rulebook, seat: int, seed: int) -> ChatMemory:
        """Return the memory of a seat that has just heard the rules."""
        prompts = self._prompts(game)
        if self.remembering.overflow == "summarise":
            prompts.summary("")  # a folder of prompts that lacks it is found out before play
        memory = ChatMemory(seed, Dialogue.of(prompts.rules(game, seat, self.persona)))
        self.remembering.check_room(memory.tokens(memory.dialogue.chat), game.name)
        return memory

    def act(self, view: View, memory: ChatMemory) -> tuple[Decision, ChatMemory]:
        """Decide, and wait for it; also works where an event loop is running (notebooks)."""
        return run_sync(self.decide(view, memory))

    async def decide(self, view: View, memory: ChatMemory) -> tuple[Decision, ChatMemory]:
        """Ask the model until it gives a legal answer, `attempts_in` the game at most.

        Without one the action is the last readable one (out of range) or `MISSING`.

        Raises:
            ClientError: a call brought no completion; it is no attempt, and nothing is decided.
        """
        return await self._move(view, memory)

    def start_batch(self, game: Rulebook, mask: Array, seeds: Array, memory: Any = None) -> Any:
        """Return the memory by cell; see `Situations` for players with samples of replies."""
        if (situations := self._situations(game)) is not None:
            return situations.start(self, mask, memory or {})
        return super().start_batch(game, mask, seeds, memory)

    async def decide_batch(self, sight: Sight, mask: Array, memory: Any) -> tuple[Decided, Any]:
        """Ask about all cells at the same time; errors as of `decide`."""
        if (situations := self._situations(sight.game)) is not None:
            return await situations.decide(self, sight, mask, memory)
        return await super().decide_batch(sight, mask, memory)

    def _situations(self, game: Rulebook) -> Situations | None:
        """Return the stored situations of a game, for players with samples and no other state."""
        if not isinstance(self.client, ReplySampler) or type(self) is not LLMPolicy:
            return None
        if self.tools or self.graders or self.remembering.limited:
            return None
        if game.core is not game or type(game).asides is not Rulebook.asides:
            return None  # what is known of a situation has neither what was said nor notes
        for situations in self._met:
            alike = situations.game == game and situations.game.disguise == game.disguise
            if situations.game is game or alike:  # copies may have one each
                return situations
        del self._met[: len(self._met) + 1 - MOST_GAMES]
        self._met.append(situations := Situations(game, self.client))
        return situations

    def __getstate__(self) -> dict[str, Any]:
        """Pickle all but what it has met, which is in the file of replies."""
        return vars(self) | {"_met": []}

    async def _move(
        self, view: View, memory: ChatMemory, calls: int = 0
    ) -> tuple[Decision, ChatMemory]:
        """Decide what to do or to say, after some calls of this decision."""
        if view.question is None:
            raise NotReady(f"{view.game.names()[view.seat]} is not asked now")
        memory, attempts, notes = await self._asides(view, memory, calls)
        decide = self._speak if view.sight.talking else self._play
        decision, next_memory = await decide(view, memory, calls + len(attempts))
        attempts, notes = (*attempts, *decision.attempts), (*notes, *decision.notes)
        if self.graders and not view.sight.talking:
            graded = await self._graded(view, memory, calls + len(attempts))
            attempts, notes = (*attempts, *graded.attempts), (*notes, *graded.notes)
        return Decision(decision.action, attempts, notes), next_memory

    async def _graded(self, view: View, memory: ChatMemory, calls: int) -> Cut:
        """Ask the graded questions once each; the memory before the move stays as it was."""
        attempts, notes = list[Attempt](), list[Note]()
        for number, grader in enumerate(self.graders):
            aside = grader(view.core, Noise(memory.seed).of("graded", memory.decisions, number))
            if aside is None:
                continue
            text = self._prompts(view.game).graded(view, aside, self.reasoning, memory.notes)
            outcome = await self.ask(
                view,
                memory,
                (self.words(view, memory)[0], text),
                aside.question,
                seeds=seeds(memory, QUIZ, number),
                max_attempts=1,
                calls=calls + len(attempts),
                kind=aside.kind,
            )
            attempts += outcome.attempts
            if outcome.reply.outcome == "valid":
                notes.append(Note(aside.kind, aside.content(outcome.reply.action)))
        return Cut(memory, tuple(attempts), tuple(notes))

    async def _play(
        self, view: View, memory: ChatMemory, calls: int
    ) -> tuple[Decision, ChatMemory]:
        question = view.question
        assert question is not None
        bench, texts = self._tools_and_texts(view, memory)
        drawn, limit = seeds(memory), self.attempts_in(view.core.game)
        outcome = await self.ask(
            view, memory, texts, question, seeds=drawn, max_attempts=limit, calls=calls, bench=bench
        )
        answer = self.remembering.answer(question, outcome.reply, outcome.attempts)
        exchange = Exchange(texts[0], answer)
        if self._keeps_requests(view.game):
            calls_made = tuple((message["role"], message["content"]) for message in bench.chat)
            exchange = Exchange(joined(*outcome.prompt), answer, calls=calls_made)
        dialogue = outcome.memory.dialogue.plus(exchange)
        dialogue = dialogue.without(dialogue.over(self.past_turns(view.game)))
        window = self.remembering.moves
        if not self._sums_up(view.game) and dialogue.moves > window:
            dialogue = dialogue.without(dialogue.over(ceil(window / 2)))
        count = memory.decisions + 1
        later = dataclasses.replace(outcome.memory, decisions=count, dialogue=dialogue, thought=())
        notes = *outcome.notes, *(Note(k, remark) for k, remark in outcome.reply.beside.items())
        return Decision(outcome.reply.action, outcome.attempts, notes), later

    def past_turns(self, game: Rulebook) -> float:
        """Return how many past moves the dialogue may hold."""
        return ALL if game.past_turns is None else game.past_turns

    def _keeps_requests(self, game: Rulebook) -> bool:
        """Test whether past requests stay in the dialogue.

        By default where the game lets its players forget none of it: messages, or past rounds.
        """
        if self.remembering.notices is not None:
            return self.remembering.notices
        return game.core is game and self.past_turns(game) == ALL

    def _beside(
        self, view: View, memory: Any, outcome: Answer, question: Question, kind: str
    ) -> dict[str, Any]:
        """Return the changes of a memory that keeps a question beside the moves."""
        attempts = tuple(attempt for attempt in outcome.attempts if attempt.kind == kind)
        answer = self.remembering.answer(question, outcome.reply, attempts)
        exchange = Exchange(joined(*outcome.prompt), answer, kind if answer else "news")
        report = memory.decisions, self._prompts(view.game).report(view, memory.notes)
        return {"dialogue": outcome.memory.dialogue.plus(exchange), "told": report}

    def _stays(self, game: Rulebook, kind: str) -> bool:
        """Test whether the next call begins with the whole prompt of one of this kind."""
        remembers = self.remembering.moves > 0 and not _stands_alone(kind)
        return remembers and self._keeps_requests(game)

    async def _speak(
        self, view: View, memory: ChatMemory, calls: int
    ) -> tuple[Decision, ChatMemory]:
        """Say something: what cannot be read is silence. No tool is called."""
        question = view.question
        assert question is not None
        texts, limit = self.words(view, memory), view.game.talk.reasks + 1
        drawn = seeds(memory, SPEECHES, memory.speeches)
        outcome = await self.ask(
            view,
            memory,
            texts,
            question,
            seeds=drawn,
            max_attempts=limit,
            calls=calls,
            kind="speech",
        )
        readable = outcome.reply.outcome == "valid"
        speech = outcome.reply.action if readable else view.game.talk.silence
        changes = {}
        if self._keeps_requests(view.game):
            changes = self._beside(view, memory, outcome, question, "speech")
        next_memory = dataclasses.replace(outcome.memory, speeches=memory.speeches + 1, **changes)
        return Decision(speech, outcome.attempts, outcome.notes), next_memory

    async def _asides(self, view: View, memory: ChatMemory, calls: int) -> Cut:
        """Ask the game's questions beside this move that were not asked before it yet."""
        attempts, notes = list[Attempt](), list[Note]()
        game, state = view.core.game, view.core.sight.state
        if type(game).asides is Rulebook.asides or view.core.question is None:
            return Cut(memory)
        for phase in ("talk",) if view.sight.talking else ("talk", "move"):
            for aside in game.asides(state, view.seat, phase):
                if aside.kind not in memory.thought:
                    calls_made = calls + len(attempts)
                    memory, new_attempts, noted = await self._aside(view, memory, aside, calls_made)
                    attempts, notes = [*attempts, *new_attempts], [*notes, *noted]
        return Cut(memory, tuple(attempts), tuple(notes))

    async def _aside(self, view: View, memory: ChatMemory, aside: Aside, calls: int) -> Cut:
        """Ask one of these; an unreadable answer leaves the notes as they are."""
        asked = self._prompts(view.game).aside(view, aside, self.reasoning, memory.notes)
        texts, question = (self.words(view, memory)[0], asked), aside.question
        drawn, limit = seeds(memory, ASIDES, memory.asides), self.attempts_in(view.core.game)
        outcome = await self.ask(
            view,
            memory,
            texts,
            question,
            seeds=drawn,
            max_attempts=limit,
            calls=calls,
            kind=aside.kind,
        )
        kept_notes, notes = memory.notes, outcome.notes
        if outcome.reply.outcome == "valid":
            answer = outcome.reply.action
            notes += (Note(aside.kind, aside.content(answer)),)
            kept_notes = kept_notes.plus(aside.kind, answer, aside.shown_again)
        changes: dict[str, Any] = {"notes": kept_notes, "thought": (*memory.thought, aside.kind)}
        if self._keeps_requests(view.game):
            changes |= self._beside(view, memory, outcome, aside.question, aside.kind)
        memory = dataclasses.replace(outcome.memory, asides=memory.asides + 1, **changes)
        return Cut(memory, outcome.attempts, notes)

    def _tools_and_texts(self, view: View, memory: ChatMemory) -> tuple[Bench, tuple[str, ...]]:
        """Return the tools of a decision, and the texts that precede it."""
        report, request = self.words(view, memory)
        prompts = self._prompts(view.game)
        bench = Bench(self.tools, self.max_tool_calls, view.core, prompts, self.reasoning)
        return bench, (report, bench.advice, request, bench.offer)

    def request(self, view: View, memory: ChatMemory) -> Request:
        """Return the first call of a decision."""
        bench, texts = self._tools_and_texts(view, memory)
        return self._request(view, memory, texts, view.question, bench)

    def words(self, view: View, memory: ChatMemory) -> tuple[str, str]:
        """Return the report and the request before a decision."""
        prompts = self._prompts(view.game)
        report = prompts.report(view, memory.notes)
        report = "" if memory.told == (memory.decisions, report) else report
        return report, prompts.request(view, self.reasoning, memory.notes)

    def attempts_in(self, game: Rulebook) -> int:
        """Return the limit of replies in a decision: the rules', else `max_attempts`."""
        limit = game.attempts(self.max_attempts)
        return MOST_ATTEMPTS if limit is None else limit

    async def ask(
        self,
        view: View,
        memory: Any,
        texts: Sequence[str],
        question: Question,
        *,
        seeds: Iterator[int],
        max_attempts: int,
        calls: int = 0,
        kind: str = "move",
        bench: Bench | None = None,
    ) -> Answer:
        """Ask one question until the answer is legal; what was wrong stays at the chat's end.

        `texts` follow the dialogue; `calls` were made before; `seeds` has one for each call.
        """
        attempts: tuple[Attempt, ...] = ()
        notes: tuple[Note, ...] = ()
        if not _stands_alone(kind):
            memory, attempts, notes = await self._in_window(view, memory, texts, calls)
        reply, why, action, remaining = Reply("unparsable"), "", MISSING, max_attempts
        texts, prompts = tuple(texts), self._prompts(view.game)
        while reply.outcome != "valid" and remaining:
            asked = bench.question(question) if bench else question
            note_again = prompts.again(why, question, self.reasoning) if why else ""
            if note_again and bench and bench.chat:
                bench.add(note_again)
            elif note_again:
                texts = (*texts, note_again)
            seed, attempt = next(seeds), None
            while attempt is None:
                number = calls + len(attempts)
                request = self._request(
                    view, memory, texts, asked, bench, call=number, seed=seed, kind=kind
                )
                try:
                    self._check_fits(memory, request)
                    attempt, reply = await self._attempt(request, asked, bench)
                except ContextOverflow as fault:
                    if _stands_alone(kind):  # it is done without
                        return Answer(reply, attempts, memory)
                    memory, new_attempts, noted = await self._shorter(view, memory, fault, number)
                    attempts, notes = attempts + new_attempts, notes + noted
            attempts += (attempt,)
            if attempt.tokens_in:
                rate = attempt.tokens_in / attempt.messages.size
                memory = dataclasses.replace(memory, rate=rate)
            action = reply.action if reply.action != MISSING else action
            is_call = reply.outcome == "tool"
            why, remaining = ("", remaining) if is_call else (reply.why, remaining - 1)
        return Answer(dataclasses.replace(reply, action=action), attempts, memory, notes, texts)

    def _request(
        self,
        view: View,
        memory: ChatMemory,
        texts: Sequence[str],
        asked: Question | None,
        bench: Bench | None = None,
        *,
        call: int = 0,
        seed: int = 0,
        kind: str = "move",
    ) -> Request:
        """Return one call, as `ask` makes it."""
        return Request(
            messages=memory.dialogue.prompt(*texts, messages=bench.chat if bench else ()),
            question=asked if self.structured else None,
            reasoning=self.reasoning,
            sampling=self.sampling,
            seed=seed,
            who=view.who._replace(call=call),
            kind=kind,
            view=view,
            tools=bench.offers() if bench else (),
            stays=self._stays(view.game, kind),
        )

    async def _attempt(
        self, request: Request, question: Question, bench: Bench | None
    ) -> tuple[Attempt, Reply]:
        """Make one call; return it, and how it was read."""
        completion = await self.client.complete(request)
        reply = read_reply(completion.text, question, self.reading, completion.finish)
        native = completion.finish != "refusal" and completion.tool_calls
        if bench and bench.remaining and (native or isinstance(reply.action, ToolCall)):
            why, detail = bench.native(native) if native else bench.call(reply.action)
            reply = Reply("tool", why=why, detail=detail)
        thoughts = completion.thoughts or split_thoughts(completion.text, completion.finish)[0]
        attempt = Attempt(
            **vars(completion) | {"thoughts": thoughts},
            messages=request.messages,
            outcome=reply.outcome,
            why=reply.why,
            detail=reply.detail,
            leniencies=reply.leniencies,
            seed=request.seed,
            kind=request.kind,
            action=reply.action,
            sampling=request.sampling,
        )
        return attempt, reply

    def _sums_up(self, game: Rulebook) -> bool:
        """Test whether dropped exchanges are summed up; not if the game shows its last rounds."""
        return self.remembering.overflow == "summarise" and self.past_turns(game) == ALL

    async def _in_window(self, view: View, memory: Any, texts: Sequence[str], calls: int) -> Cut:
        """Drop exchanges that have no room in the window."""
        sums_up = self._sums_up(view.game)
        if self.remembering.memory_tokens is None and not sums_up:
            return Cut(memory)
        while excess := self.remembering.excess(memory, memory.dialogue.prompt(*texts), sums_up):
            if sums_up:
                return await self._cut(view, memory, excess, calls, "the window is full")
            shorter = memory.dialogue.without(excess)
            if shorter is memory.dialogue:
                break
            memory = dataclasses.replace(memory, dialogue=shorter)
        return Cut(memory)

    def _check_fits(self, memory: ChatMemory, request: Request) -> None:
        """Raise ContextOverflow before a call that would not fit into what the model takes."""
        context, reply = self.remembering.context, self.sampling.max_tokens or 0
        if context is not None and (tokens := memory.tokens(request.messages)) > context - reply:
            beside = f" beside max_tokens = {reply}" if reply else ""
            fault = f"a prompt of about {tokens} tokens does not fit into context = {context}"
            raise ContextOverflow(f"{fault}{beside}")

    async def _shorter(self, view: View, memory: Any, fault: ContextOverflow, calls: int) -> Cut:
        """Forget the older half; raise the fault if that is not wanted, or none is left."""
        dialogue = memory.dialogue
        count = dialogue.over(ALL, dialogue.size / 2)
        stops = self.remembering.overflow == "stop"
        if stops or dialogue.without(count) is dialogue:
            advice = 'overflow = "shorten" or "summarise", a smaller memory or memory_tokens, or '
            advice = f"set {advice if stops else ''}a larger context"
            raise ContextOverflow(f"{self.name}: {fault}; {advice}", status=fault.status) from None
        return await self._cut(view, memory, count, calls, str(fault))

    async def _cut(self, view: View, memory: Any, count: int, calls: int, why: str) -> Cut:
        """Drop the oldest exchanges, replaced by a summary if that is wanted, and note it."""
        old, rest = memory.dialogue, memory.dialogue.without(count)
        attempts: tuple[Attempt, ...] = ()
        noted: dict[str, Any] = {"left_out": len(old) - len(rest), "why": why}
        # With a plan that stays, since it may stand before what falls out.
        older = old.first(noted["left_out"] + any(entry.kind in PLANS for entry in [*rest][:1]))
        question, request = Text("summary", "what you want to remember, in a few sentences"), ""
        if self._sums_up(view.game) and any(entry.kind != "summary" for entry in older):
            request = self._prompts(view.game).summary(question.form(self.reasoning))
            noted["summary"] = None
        if request and older.size > len(request):  # else no summary would be shorter
            about = dataclasses.replace(memory, dialogue=older), (request,), question
            drawn, limit = seeds(memory, 2, calls), self.max_attempts
            reply, attempts, *_ = await self.ask(
                view, *about, seeds=drawn, max_attempts=limit, calls=calls, kind="summary"
            )
            if reply.outcome == "valid":
                summary_exchange = Exchange(request, question.reply(reply.action), "summary")
                summed_up = Dialogue.of(old.rules, [summary_exchange, *rest])
                if summed_up.size < old.size:
                    rest, noted["summary"] = summed_up, reply.action
        next_memory = dataclasses.replace(memory, dialogue=rest)
        return Cut(next_memory, attempts, (Note("memory", noted),))

    def _prompts(self, game: Rulebook) -> Prompts:
        if game.name not in self._wordings:
            self._wordings[game.name] = Prompts(game.name, self.prompts, self.prompt_folder)
        return self._wordings[game.name]


def _stands_alone(kind: str) -> bool:
    """Test whether a question is no part of the dialogue: a summary, or a graded one."""
    return kind == "summary" or kind.endswith(GRADED)


def seeds(memory: ChatMemory, *stream: int) -> Iterator[int]:
    """Yield sampling seeds of a decision and stream, call by call, ``0 <= seed < 2**31``."""
    for call in itertools.count():
        entropy = (memory.seed, memory.decisions, call, *stream)
        yield int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)
