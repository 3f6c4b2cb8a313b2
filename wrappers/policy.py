"""The one protocol that every kind of player follows, and the plainest player."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llm_games.noise import Noise
from llm_games.questions import MISSING, Action
from llm_games.replies import ReplyOutcome
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.wrappers.clients.base import USUAL, Chat, Completion, Sampling


@dataclass(frozen=True, kw_only=True)
class Attempt(Completion):
    """One completion that a policy asked for, with what came of it."""

    messages: Chat
    """the chat as sent"""
    outcome: ReplyOutcome
    why: str = ""
    """for a reply that is not valid, what was wrong, in words"""
    detail: str = ""
    """which of the game's rules a reply broke, where a game counts them apart"""
    leniencies: tuple[str, ...] = ()
    """what was let pass in reading it, see `LENIENCIES`"""
    seed: int = 0
    kind: str = "move"
    """what it was asked for: a move, or something that a player thinks of beside it"""
    action: Any = MISSING
    """the answer as it was read, legal or not; not recorded"""
    sampling: Sampling = USUAL


@dataclass(frozen=True)
class Note:
    """What a player wrote down for itself, such as a plan: `content` is plain values."""

    kind: str
    content: dict[str, Any]


@dataclass(frozen=True)
class Decision:
    """What a policy decided, and how it came to it.

    `action` is `MISSING`, or an action out of range, when no attempt gave a legal one: the rules
    then apply the game's declared treatment, and the step's ``broke`` counts it.
    """

    action: Action
    attempts: tuple[Attempt, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def outcome(self) -> ReplyOutcome:
        """Return how the last attempt was read ("valid" for a player without a model)."""
        return self.attempts[-1].outcome if self.attempts else "valid"


class Policy(ABC):
    """A player; its memory is all its state, so one policy can sit on many seats of many tables."""

    name: str

    @abstractmethod
    def start(self, game: Rulebook, seat: int, seed: int) -> Any:
        """Return a seat's memory at the start of an episode. All randomness comes from `seed`."""

    @abstractmethod
    def act(self, view: View, memory: Any) -> tuple[Decision, Any]:
        """Return the decision and the memory after it. Called only when the seat is asked."""

    async def decide(self, view: View, memory: Any) -> tuple[Decision, Any]:
        """Decide without blocking the event loop; policies that wait for a model override it."""
        return self.act(view, memory)

    def hear(self, view: View, memory: Any) -> Any:
        """Return the memory after hearing what is told at the start and after every step."""
        return memory

    async def finish(self, view: View, memory: Any) -> Decision | None:
        """Look back at a game that is over; a decision's notes and attempts, or None."""
        return None

    def recall(self, memory: Any, notes: Sequence[Note]) -> Any:
        """Return the memory at the start of a game, with what was noted down in the one before."""
        return memory


class RandomPolicy(Policy):
    """Draws any legal action, all equally likely; remembers its seed and how often it decided."""

    name = "random"

    def start(self, game: Rulebook, seat: int, seed: int) -> tuple[int, int]:
        """Return the seed and the count of decisions."""
        return seed, 0

    def act(self, view: View, memory: tuple[int, int]) -> tuple[Decision, tuple[int, int]]:
        """Draw from the question that is asked."""
        seed, count = memory
        assert view.question is not None, "only a seat that is asked can answer"
        return Decision(view.question.sample(Noise(seed).of(count))), (seed, count + 1)
