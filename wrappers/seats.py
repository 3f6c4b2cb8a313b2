"""Players at a table: asking them, and their memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from llm_games.errors import NotReady
from llm_games.noise import Noise
from llm_games.questions import Action
from llm_games.rulebook import Outcome, PerPlayer, Rulebook
from llm_games.table import Table
from llm_games.view import View
from llm_games.wrappers.policy import Decision, Note, Policy, act, decide_in, finish_in
from llm_games.wrappers.together import run_sync, together


class DecisionPlace(NamedTuple):
    """A decision in an episode."""

    step: int
    seat: int


@dataclass(frozen=True)
class Step:
    """One step: the decisions by seat, and the outcome."""

    number: int
    decisions: dict[int, Decision]
    outcome: Outcome

    @property
    def talk(self) -> bool:
        """Speeches were made in this step, and no moves in the game."""
        return bool(self.outcome.record.get("phase") == "talk")


@dataclass
class Episode:
    """A game that was played: its steps in order, and its last state."""

    game: Rulebook
    seed: int
    state: Any
    steps: list[Step] = field(default_factory=list)  #: none if handed on, see `play_table`
    length: int = 0  #: how many there were
    last: Step | None = None  #: the last of them
    afterwards: dict[int, Decision] = field(default_factory=dict)  #: by seat, see `Policy.finish`

    def __post_init__(self) -> None:
        self.payoffs: PerPlayer = np.zeros(self.game.players)  #: by seat, over all steps

    def add(self, step: Step, keep: bool) -> None:
        """Count a step that was made, and keep it or let go of it."""
        self.length, self.last = self.length + 1, step
        self.payoffs = self.payoffs + step.outcome.rewards
        if keep:
            self.steps.append(step)

    @property
    def over(self) -> bool:
        """The rules ended the game (not a limit on its steps)."""
        return bool(self.state.over)

    @property
    def void(self) -> bool:
        """A broken rule ended the game without a score."""
        return bool(self.state.void)

    @property
    def records(self) -> list[dict[str, Any]]:
        """Return the records of the game's steps, without talk, as scores read them."""
        return [plain(step.outcome) for step in self.steps if not step.talk]


def plain(outcome: Outcome) -> dict[str, Any]:
    """Return the record of a step as plain Python values."""
    return {name: np.asarray(value).tolist() for name, value in outcome.record.items()}


class Seats:
    """Policies in seats of a table, with their memories; a seat without one is played by others.

    Those that do not speak see and play the game inside, and no talk waits for them.
    """

    def __init__(self, table: Table, policies: Mapping[int, Policy]) -> None:
        self.table, self.policies = table, dict(policies)
        self._memories: dict[int, Any] = {}
        self._last_state: Any = None  # the last state that players heard
        talks = table.game.core is not table.game
        self._mute = {seat for seat, p in policies.items() if talks and not p.speaks}
        self._wait = [seat for seat, policy in policies.items() if policy.waits]
        self._listen, self.look_back = (
            [s for s, policy in policies.items() if policy.does(name)]
            for name in ("hear", "finish")
        )

    def start(self, recalled: Mapping[int, Sequence[Note]] | None = None) -> None:
        """Begin the episode that the table was reset to, with notes of the one before by seat."""
        game, noise = self.table.game, Noise(self.table.seed)
        self.table.hush([*self._mute])
        self._last_state = None
        self._memories = {
            seat: policy.start(
                game.core if seat in self._mute else game, seat, noise.of("seat", seat).seed()
            )
            for seat, policy in self.policies.items()
        }
        for seat, notes in (recalled or {}).items():
            self._memories[seat] = self.policies[seat].recall(self._memories[seat], notes)
        self.hear()

    def _view(self, seat: int) -> View:
        sight = self.table.ready()
        return (sight.core if seat in self._mute else sight).view(seat)

    def hear(self) -> None:
        """Let players hear what the game tells them, asked or not; after a speech nothing."""
        inside = self.table.ready().core.state
        if inside is self._last_state:
            return
        self._last_state = inside
        for seat in self._listen:
            view = self._view(seat)
            self._memories[seat] = self.policies[seat].hear(view, self._memories[seat])

    async def ask(self) -> dict[int, Decision]:
        """Ask all that have to move, at the same time; at an error nobody remembers anything."""
        sight = self.table.ready()
        asked = [seat for seat in sight.asked if seat in self.policies]
        # Only those who wait for something are worth a task each.
        waiting = [s for s in asked if s in self._wait]
        work = (decide_in(self.policies[s], self._view(s), self._memories[s]) for s in waiting)
        answers = dict(zip(waiting, await together(work), strict=True)) if waiting else {}
        if self.table.sight is not sight:
            raise NotReady("the table went on while its players decided: ask them again")
        return self._decided(asked, answers)

    def ask_now(self) -> dict[int, Decision]:
        """Ask them from code that cannot wait."""
        asked = [seat for seat in self.table.ready().asked if seat in self.policies]
        waits = any(seat in self._wait for seat in asked)
        return dict(run_sync(self.ask())) if waits else self._decided(asked, {})

    def _decided(
        self, asked: Sequence[int], answers: dict[int, tuple[Decision, Any]]
    ) -> dict[int, Decision]:
        for seat in asked:
            if seat not in answers:
                answers[seat] = act(self.policies[seat], self._view(seat), self._memories[seat])
        self._memories |= {seat: answers[seat][1] for seat in asked}
        return {seat: answers[seat][0] for seat in asked}

    async def finish(self) -> dict[int, Decision]:
        """Let players look back at a game that is over, all at the same time."""
        seats, memories = self.look_back, self._memories
        work = (finish_in(self.policies[s], self._view(s), memories[s]) for s in seats)
        decisions = zip(seats, await together(work), strict=True)
        return {seat: decision for seat, decision in decisions if decision is not None}


def moves_of(decisions: Mapping[int, Decision]) -> dict[int, Action]:
    """Return the moves by seat."""
    return {seat: decision.action for seat, decision in decisions.items()}


def __getattr__(name: str) -> Any:  # up to version 0.8 these stood here
    if name not in ("play", "play_table", "policy_of"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("llm_games.wrappers.play"), name)
