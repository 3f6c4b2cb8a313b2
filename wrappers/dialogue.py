"""The memory of a player that asks a language model: a dialogue, and how much of it is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple

from llm_games.errors import BadParameter
from llm_games.facts import check_choice, check_integer
from llm_games.questions import Question
from llm_games.replies import Reply, split_thoughts
from llm_games.words import Notes
from llm_games.wrappers.clients.chat import Chat, Grown, Message, byte_count
from llm_games.wrappers.policy import Attempt

ALL = float("inf")  # no limit on what is remembered
NOTHING_NEW = "It is your move."  # for a past round with nothing to report before it
GUESS = 0.25  # tokens of each byte of a prompt, until the server has counted one
MARGIN = 1.1  # how much longer a prompt may be than the last one that was counted lets expect


PLANS = ("plan", "replan")  # kinds of the exchanges that bring a plan into force


class Exchange(NamedTuple):
    """A request and its answer ("" if nothing of it is kept)."""

    told: str
    answer: str
    kind: str = "move"  # what was asked for, as in `Attempt`
    calls: tuple[tuple[str, str], ...] = ()  # of tools between the two: roles and contents


class Dialogue(Grown[Exchange]):
    """Exchanges in order, as a persistent list, and the `chat` that they make after the rules.

    One more exchange costs its own text only. Texts of the last ones without an answer are `heard`:
    they join what is told next. `moves` counts the exchanges about moves, `size` the bytes of all.
    """

    __slots__ = ("chat", "heard", "moves", "rules", "size")

    def __init__(
        self, rules: Chat, parent: Dialogue | None = None, last: Exchange | None = None
    ) -> None:
        super().__init__(parent, last)
        self.rules = rules
        self.chat, self.heard = rules, tuple[str, ...]()
        self.moves = self.size = 0
        if parent is not None and last is not None:
            chat, self.heard = parent.chat, (*parent.heard, last.told)
            if last.answer or last.calls:
                chat = chat.plus("user", joined(*self.heard) or NOTHING_NEW)
                tail, self.heard = [*last.calls], ()
                if last.answer:
                    tail.append(("assistant", last.answer))
                elif tail[-1][0] == "user":  # which goes on with what is told next
                    self.heard = (tail.pop()[1],)
                for role, content in tail:
                    chat = chat.plus(role, content)
            self.chat = chat
            self.moves = parent.moves + (last.kind == "move")
            parts = *last[:2], *(content for _, content in last.calls)
            self.size = parent.size + sum(map(byte_count, parts))

    @classmethod
    def of(cls, rules: Chat | str, exchanges: Iterable[Exchange] = ()) -> Dialogue:
        chat = Chat().plus("system", rules) if isinstance(rules, str) else rules
        dialogue = cls(chat)
        for exchange in exchanges:
            dialogue = dialogue.plus(exchange)
        return dialogue

    def plus(self, exchange: Exchange) -> Dialogue:
        return Dialogue(self.rules, self, exchange)

    def prompt(self, *texts: str, messages: Iterable[Message] = ()) -> Chat:
        """Return the chat with a request at its end: `texts` as one message, then `messages`."""
        request = {"role": "user", "content": joined(*self.heard, *texts) or NOTHING_NEW}
        chat = self.chat
        for message in (request, *messages):
            chat = chat.plus(message["role"], message["content"])
        return chat

    def first(self, count: int) -> Dialogue:
        """Return its first exchanges; it goes on from there."""
        return next((node for node in self.nodes() if len(node) <= count), Dialogue(self.rules))

    def without(self, oldest: int) -> Dialogue:
        """Return it without its oldest exchanges, at least one; its latest plan stays, first."""
        if oldest <= 0:
            return self
        exchanges = list(self)
        plans = [i for i, exchange in enumerate(exchanges) if exchange.kind in PLANS]
        plan = [exchanges[i] for i in plans[-1:] if i < oldest]
        remaining = plan + exchanges[max(oldest, len(plan) + 1) :]
        return Dialogue.of(self.rules, remaining) if len(remaining) < len(exchanges) else self

    def over(self, moves: float, size: float = ALL) -> int:
        """Return the number of its oldest exchanges beyond so many moves, or bytes."""
        if self.moves <= moves and self.size <= size:
            return 0
        whole = [node.before for node in self.nodes() if node.before is not None]
        return sum(self.moves - b.moves > moves or self.size - b.size > size for b in whole)

    def last_of(self, kind: str) -> Exchange | None:
        exchanges = (node.last for node in self.nodes())
        return next((last for last in exchanges if last and last.kind == kind), None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dialogue):
            return NotImplemented
        return self.rules == other.rules and list(self) == list(other)

    def __hash__(self) -> int:
        return hash((self.rules, *self))

    def __reduce__(self) -> tuple[Any, ...]:  # a long one would be too deep for pickle
        return Dialogue.of, (self.rules, list(self))

    def __repr__(self) -> str:
        return f"Dialogue({self.rules!r}, {list(self)!r})"


@dataclass(frozen=True)
class ChatMemory:
    """A seat's memory of one episode; all its sampling seeds come from `seed`."""

    seed: int
    dialogue: Dialogue
    decisions: int = 0  # how many it has made
    rate: float = GUESS  # tokens of each byte of its last prompt that the server has counted
    notes: Notes = field(default_factory=Notes, hash=False)  # answers to asides, if shown again
    thought: tuple[str, ...] = ()  # kinds of the asides that it was asked before the coming move
    asides: int = 0  # how many it was asked
    speeches: int = 0  # how often it was to speak
    told: tuple[int, str] = (-1, "")  # before which decision, and what happened

    @property
    def system(self) -> str:
        """The rules as this seat heard them, persona first."""
        return self.dialogue.rules[-1]["content"]

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The exchanges that are still in the dialogue, oldest first."""
        return tuple(self.dialogue)

    def tokens(self, chat: Chat) -> int:
        """Return about how many tokens a prompt has at most."""
        return ceil(MARGIN * self.rate * chat.size)


@dataclass(frozen=True)
class Remembering:
    """The part of a dialogue that is kept, see `LLMPolicy`."""

    memory: int | str = "full"
    memory_tokens: int | None = None
    remember: str = "answers"
    notices: bool | None = None
    thoughts: str = "drop"
    overflow: str = "stop"
    context: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.memory, str):
            check_integer("memory", self.memory, 0)
        elif self.memory not in ("full", "none"):
            raise BadParameter(f'memory must be "full", "none" or a number, got {self.memory!r}')
        for name in ("memory_tokens", "context"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1)
        check_choice("remember", self.remember, ("answers", "replies"))
        if self.notices is not None:
            check_choice("notices", self.notices, (False, True))
        check_choice("thoughts", self.thoughts, ("drop", "keep"))
        check_choice("overflow", self.overflow, ("stop", "shorten", "summarise"))

    @property
    def moves(self) -> float:
        """The past decisions in the dialogue, at most."""
        named: dict[int | str, float] = {"full": ALL, "none": 0}
        return named.get(self.memory, self.memory)  # type: ignore[arg-type]

    @property
    def limited(self) -> bool:
        """The length of a prompt decides what is in it."""
        tokens = self.memory_tokens, self.context
        return tokens != (None, None) or self.overflow == "summarise"

    def check_room(self, tokens: int, game: str) -> None:
        """Raise BadParameter if the rules of a game, of about so many tokens, have no room."""
        for name in ("memory_tokens", "context"):
            if (room := getattr(self, name)) is not None and room < tokens:
                need = f"the rules of {game} take, about {tokens} tokens: give more"
                raise BadParameter(f"{name} = {room} is less than {need}")

    def answer(self, question: Question, reply: Reply, attempts: tuple[Attempt, ...]) -> str:
        """Return the text of an answer that stays in the dialogue."""
        last, text = attempts[-1], ""
        if reply.outcome == "valid":
            text = question.reply(reply.action)
        if self.remember == "replies":
            text = split_thoughts(last.text, last.finish)[1].strip() or text
        if text and last.thoughts.strip() and self.thoughts == "keep":
            return f"<think>\n{last.thoughts.strip()}\n</think>\n\n{text}"
        return text

    def excess(self, memory: ChatMemory, chat: Chat, sums_up: bool) -> int:
        """Return the number of the oldest exchanges that have no room in the windows.

        If any, it is about the older half, so that most prompts begin with the one before.
        """
        dialogue, room = memory.dialogue, ALL
        if self.memory_tokens is not None:
            beside = chat.size - dialogue.size
            room = max(0.0, self.memory_tokens / (MARGIN * memory.rate) - beside)
        moves = self.moves if sums_up else ALL
        if not dialogue.over(moves, room):
            return 0
        return dialogue.over(moves / 2, min(room, dialogue.size) / 2)


def joined(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))
