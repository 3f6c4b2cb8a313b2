"""Where a branch leaves the episode that it comes from, and its seats around that decision."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import Field

from llm_games.benchmarks.record.checked_table import Settings
from llm_games.noise import Noise
from llm_games.questions import Action
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.wrappers.clients.base import Request
from llm_games.wrappers.clients.chat import Chat
from llm_games.wrappers.policy import Decision, Note, Policy, decide_in, finish_in
from llm_games.wrappers.seats import DecisionPlace

Forced = Callable[[DecisionPlace], Action]
"""The move of a seat that decides nothing at a place that a `BranchPoint` `holds`."""


class BranchPoint(Settings):
    """The origin of a branch, and what is other from its `step` on. Seats are texts in its tables.

    `origin` is the path of the file from the branch's folder, `run` and `rows` are digests of its
    description and of the rows that the branch is built on. At `step` the seats that are `free`
    decide, all others do what is recorded, or what `moves` says. `texts`, by ``STEP/SEAT`` and also
    the origin's own, are what a model reads in place of its last message. `changed` seats have
    another player, told by `changes`; it reads the past in its own wording. `hushed` seats said
    nothing. With `fresh` seeds each episode has its own, by its number after the origin's in
    `numbers`; `chance` is ``recorded``, or ``fresh``; `once`: it ends after the step. `recalled`:
    notes of the game before, by seat. `limit`: the origin's `max_steps`. `recorded`: by seat that
    was asked at the step, its move, the regret of it and its payoff from there on.
    """

    origin: str
    run: str
    label: str
    number: int
    step: int
    rows: str
    free: list[int]
    moves: dict[str, Any] = Field(default_factory=dict)
    texts: dict[str, str] = Field(default_factory=dict)
    changed: list[int] = Field(default_factory=list)
    changes: dict[str, dict[str, Any]] = Field(default_factory=dict)
    hushed: list[int] = Field(default_factory=list)
    fresh: bool = False
    numbers: list[int] = Field(default_factory=list)
    chance: str = "recorded"
    once: bool = False
    recalled: dict[str, list[list[Any]]] = Field(default_factory=dict)
    limit: int | None = None
    recorded: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @property
    def source(self) -> str:
        """Return where its episodes were taken from, as their rows say it."""
        return f"{self.origin}#{self.label}/{self.number}@{self.step}"

    def holds(self, step: int, seat: int) -> bool:
        """Test whether a decision stands already: as recorded, or as `moves` says."""
        return step < self.step or (step == self.step and seat not in self.free)

    def seed(self, seed: int, number: int) -> int:
        """Return the seed of the players of its episode of a number; `seed` is the episode's."""
        for each in (*self.numbers, *[number] * self.fresh):
            seed = Noise(seed).of("branch", each).seed()
        return seed

    def notes(self) -> dict[int, list[Note]]:
        """Return what was noted in the game before, by seat."""
        return {int(seat): [Note(*note) for note in notes] for seat, notes in self.recalled.items()}


class Retelling:
    """Texts that models read in a branch in place of the last message of the rules.

    What follows it in the same decision, such as what was wrong with a reply, stays.
    """

    def __init__(self, point: BranchPoint | None) -> None:
        self.point = point
        self._first: dict[tuple[int, int, int], str] = {}  # the rules' message, by place

    def told(self, request: Request) -> Request:
        """Return the request as the model reads it."""
        point, who = self.point, request.who
        text = point and point.texts.get(f"{who.step}/{who.seat}")
        if not text or request.kind not in ("move", "speech"):
            return request
        first = self._first.setdefault(who[1:4], request.messages[-1]["content"])
        chat = [dict(message) for message in request.messages]
        for message in reversed(chat):
            if message["role"] == "user" and message["content"].startswith(first):
                message["content"] = text + message["content"].removeprefix(first)
                break
        return dataclasses.replace(request, messages=Chat.of(chat))


class BranchSeat(Policy):
    """A seat of a branch: its player sees, hears and remembers all, and is free from the point on.

    Where it is not, it does what is `forced`. It speaks where the origin's player did: another one
    that cannot is silent there, or the steps of talk would shift.
    """

    def __init__(
        self, player: Policy, point: BranchPoint, seat: int, number: int, forced: Forced
    ) -> None:
        self.player, self.point, self.number, self.forced = player, point, number, forced
        self.name = player.name
        changed = seat in point.changed
        self.speaks = seat not in point.hushed and (changed or player.speaks)

    def start(self, game: Rulebook, seat: int, seed: int) -> Any:
        seed = self.point.seed(seed, self.number)
        return self.player.start(game if self.player.speaks else game.core, seat, seed)

    def act(self, view: View, memory: Any) -> tuple[Decision, Any]:
        raise NotImplementedError("the seat of a branch is waited for: decide")

    async def decide(self, view: View, memory: Any) -> tuple[Decision, Any]:
        place = DecisionPlace(view.who.step, view.who.seat)
        is_held = self.point.holds(*place)
        if view.sight.talking and not self.player.speaks:
            return Decision(self.forced(place) if is_held else view.game.talk.silence), memory
        decision, next_memory = await decide_in(self.player, self._inside(view), memory)
        if is_held:
            decision = dataclasses.replace(decision, action=self.forced(place))
        return decision, next_memory

    def hear(self, view: View, memory: Any) -> Any:
        return self.player.hear(self._inside(view), memory)

    async def finish(self, view: View, memory: Any) -> Decision | None:
        return await finish_in(self.player, self._inside(view), memory)

    def recall(self, memory: Any, notes: Sequence[Note]) -> Any:
        return self.player.recall(memory, notes)

    def _inside(self, view: View) -> View:
        return view if self.player.speaks else view.core
