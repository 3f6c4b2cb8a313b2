"""A language model as a player: prompts become completions, completions become actions."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import threading
from collections.abc import Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.errors import BadParameter, NotReady, unknown
from llm_games.facts import check_integer
from llm_games.questions import MISSING, Question
from llm_games.replies import READINGS, Reply, read_reply
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.words import PERSONAS, Prompts
from llm_games.wrappers.clients.base import Client, Request, Sampling
from llm_games.wrappers.policy import Attempt, Decision, Policy
from llm_games.wrappers.tools import Bench, Call, Tool, checked

EDITION = 2
"""How a model is asked and read, by number: raised when the same record would be read otherwise."""
NOTHING_NEW = "It is your move."
"""Stands in the dialogue for a past round before which there was nothing to report."""
MOST_ATTEMPTS = 100
"""Replies read for one decision of a game that sets no limit of its own to them."""


class Exchange(NamedTuple):
    """One past decision: the report before it, and the answer in canonical form ("" if none)."""

    report: str
    answer: str


@dataclass(frozen=True)
class ChatMemory:
    """What a seat remembers of one episode; all its sampling seeds come from `seed`."""

    seed: int
    system: str
    """the rules as this seat heard them, persona first"""
    decisions: int = 0
    """how many it has made"""
    exchanges: tuple[Exchange, ...] = ()
    """the past decisions that are still in the dialogue, oldest first"""

    @property
    def said(self) -> tuple[Exchange, ...]:
        """The exchanges that the dialogue shows."""
        return self.exchanges


class LLMPolicy(Policy):
    """A player that asks a language model.

    The dialogue is: the rules as system text; for every remembered decision what was reported
    before it and the own answer in its canonical form; last what happened since and the request.
    Requests of the past, explanations and failed answers are not kept, so that text only grows at
    its end and a server can reuse what it has read.

    Args:
        client: where completions come from.
        prompts: the wording, ``"v1"`` … ``"v5"`` or a file in `prompt_folder`.
        prompt_folder: a folder of your own with ``<game>/<version>.j2`` files.
        reasoning: ask for an explanation before the answer.
        persona: one of ``cooperative``, ``selfish``, ``mathematician``, or a sentence of your own.
        memory: how many past decisions the dialogue holds: ``"full"``, a number, or ``"none"``.
            What happened since the last decision is told in any case. A game's ``shown_last``
            caps it.
        reading: how answers are found in the text, see `read_reply`.
        max_attempts: completions asked for one decision, at most; each re-ask says what was wrong.
            A game's own rule on it comes first, see `attempts_in`.
        tools: what the model may call before it answers, or is always told. A call is an attempt
            with the outcome ``"tool"``, no answer and no rule break; what was called and said is
            in the chat until the decision is made, and not remembered.
        max_tool_calls: calls for one decision, at most. They do not count as its attempts.
        structured: let clients that can constrain the answer to its JSON schema do so, while tools
            can be called to a schema of answers and calls, which some servers do not take.
        name: the player's name in logs; the client's by default.
        sampling, drawing: how replies are drawn, and by name what of it is otherwise, such as
            ``temperature=0.2``.

    Raises:
        BadParameter, UnknownName: an argument is not one of these.
    """

    def __init__(
        self,
        client: Client,
        *,
        prompts: str = "v1",
        prompt_folder: str | Path | None = None,
        reasoning: bool = False,
        persona: str | None = None,
        memory: int | str = "full",
        reading: str = "strict",
        max_attempts: int = 3,
        structured: bool = True,
        tools: Iterable[Tool] = (),
        max_tool_calls: int = 2,
        name: str | None = None,
        sampling: Sampling | None = None,
        **drawing: Any,
    ) -> None:
        if not isinstance(client, Client):
            raise BadParameter(
                f"client must have a name, complete and close, got {type(client).__name__}"
            )
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
        self.reasoning, self.persona, self.reading = reasoning, persona, reading
        self.memory = _window(memory)
        self.sampling = dataclasses.replace(sampling or Sampling(), **drawing)
        self.max_attempts, self.structured = max_attempts, structured
        self.tools, self.max_tool_calls = checked(tools), max_tool_calls
        if reading == "published" and not all(tool.always for tool in self.tools):
            fault = 'with reading "strict" or "take_last", not "published"'
            raise BadParameter(f"tools can be called {fault}")

    def start(self, game: Rulebook, seat: int, seed: int) -> ChatMemory:
        """Return the memory of a seat that has just heard the rules."""
        return ChatMemory(seed, self._prompts(game).rules(game, seat, self.persona))

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

    async def _move(
        self, view: View, memory: ChatMemory, calls: int = 0
    ) -> tuple[Decision, ChatMemory]:
        """Decide, after some calls of this decision."""
        question = view.question
        if question is None:
            raise NotReady(f"{view.game.names()[view.seat]} is not asked now")
        report, request = self.words(view, memory)
        prompts = self._prompts(view.game)
        bench = Bench(self.tools, self.max_tool_calls, view, prompts, self.reasoning)
        reply, attempts = await self.ask(
            view,
            dialogue(memory, report, bench.advice, request, bench.offer),
            question,
            calls=calls,
            seeds=seeds(memory),
            max_attempts=self.attempts_in(view.game),
            bench=bench,
        )
        answer = question.reply(reply.action) if reply.outcome == "valid" else ""
        past = (*memory.exchanges, Exchange(report, answer))
        # A dialogue of k exchanges shows k + 1 reports, the latest among them.
        shown: Any = view.game.shown_last
        limits = (self.memory, None if shown == "all" else max(0, shown - 1))
        keep = min([len(past), *(limit for limit in limits if limit is not None)])
        past, made = past[len(past) - keep :], memory.decisions + 1
        after = dataclasses.replace(memory, decisions=made, exchanges=past)
        return Decision(reply.action, attempts), after

    def words(self, view: View, memory: ChatMemory) -> tuple[str, str]:
        """Return what is told before a decision: what happened, and what is asked now."""
        prompts = self._prompts(view.game)
        return prompts.report(view), prompts.request(view, self.reasoning)

    def attempts_in(self, game: Rulebook) -> int:
        """Return how many replies one decision may take: as the rules say, else `max_attempts`."""
        most = game.attempts(self.max_attempts)
        return MOST_ATTEMPTS if most is None else most

    async def ask(
        self,
        view: View,
        chat: tuple[dict[str, str], ...],
        question: Question,
        *,
        seeds: Iterator[int],
        max_attempts: int,
        calls: int = 0,
        kind: str = "move",
        bench: Bench | None = None,
    ) -> tuple[Reply, tuple[Attempt, ...]]:
        """Ask one question until the answer is legal; what was wrong is added to the chat.

        `calls` were made before for this decision; `seeds` has one for each call. Returned are the
        last reply, with the last readable action, and all attempts.
        """
        attempts: list[Attempt] = []
        reply, why, action, left = Reply("unparsable"), "", MISSING, max_attempts
        prompts = self._prompts(view.game)
        while reply.outcome != "valid" and left:
            asked = bench.question(question) if bench else question
            *before, last = (*chat, *bench.said) if bench else chat
            again = prompts.again(why, question, self.reasoning) if why else ""
            request = Request(
                messages=(*before, last | {"content": _joined([last["content"], again])}),
                question=asked if self.structured else None,
                reasoning=self.reasoning,
                sampling=self.sampling,
                seed=next(seeds),
                who=view.who._replace(call=calls + len(attempts)),
                kind=kind,
            )
            attempt, reply = await self._attempt(request, asked, bench)
            attempts.append(attempt)
            action = reply.action if reply.action != MISSING else action
            if reply.outcome == "tool":
                why = ""
            else:
                why, left = reply.why, left - 1
        return dataclasses.replace(reply, action=action), tuple(attempts)

    async def _attempt(
        self, request: Request, question: Question, bench: Bench | None
    ) -> tuple[Attempt, Reply]:
        """Make one call; return it, and how it was read."""
        completion = await self.client.complete(request)
        reply = read_reply(completion.text, question, self.reading, completion.finish)
        if bench and isinstance(reply.action, Call):
            why, detail = bench.call(reply.action)
            reply = Reply("tool", why=why, detail=detail)
        attempt = Attempt(
            **vars(completion),
            messages=request.messages,
            outcome=reply.outcome,
            why=reply.why,
            detail=reply.detail,
            seed=request.seed,
            kind=request.kind,
            action=reply.action,
            sampling=request.sampling,
        )
        return attempt, reply

    def _prompts(self, game: Rulebook) -> Prompts:
        if game.name not in self._wordings:
            self._wordings[game.name] = Prompts(game.name, self.prompts, self.prompt_folder)
        return self._wordings[game.name]


def run_sync(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine from synchronous code and return its result.

    It runs on one event loop in a thread of its own, so that it works inside a running loop and
    clients keep their connections from call to call.
    """
    with _starting:
        # In a forked process the thread is gone, and another one is started.
        if not _background or not _background[0][0].is_alive():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="llm-games", daemon=True)
            thread.start()
            _background[:] = [(thread, loop)]
        thread, loop = _background[0]
    if thread is threading.current_thread():  # asked from within: waiting here would block it
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, work).result()
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


_background: list[tuple[threading.Thread, asyncio.AbstractEventLoop]] = []
_starting = threading.Lock()


def dialogue(memory: ChatMemory, *now: str) -> tuple[dict[str, str], ...]:
    """Write the chat: the rules, the remembered exchanges, and what is said now (joined).

    Exchanges without an answer join the next user message.
    """
    chat = [{"role": "system", "content": memory.system}]
    heard: list[str] = []
    for report, answer in memory.said:
        heard.append(report)
        if answer:
            chat.append({"role": "user", "content": _joined(heard)})
            chat.append({"role": "assistant", "content": answer})
            heard = []
    return *chat, {"role": "user", "content": _joined([*heard, *now])}


def seeds(memory: ChatMemory, *stream: int) -> Iterator[int]:
    """Yield the sampling seeds of one decision, call by call; another stream has others.

    A seed is one that any server takes, ``0 <= seed < 2**31``.
    """
    for call in itertools.count():
        entropy = (memory.seed, memory.decisions, call, *stream)
        yield int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)


def _joined(parts: list[str]) -> str:
    return "\n\n".join(filter(None, parts)) or NOTHING_NEW


def _window(memory: int | str) -> int | None:
    """Return how many past exchanges to keep; None for all."""
    if memory in ("full", "none"):
        return None if memory == "full" else 0
    if isinstance(memory, str):
        raise BadParameter(f'memory must be "full", "none" or a number, got {memory!r}')
    check_integer("memory", memory, 0)
    return memory
