"""One table: players of any kind play one game to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from llm_games.errors import BadParameter
from llm_games.registry import rulebook
from llm_games.rulebook import Array, Outcome, Rulebook, check_integer
from llm_games.views import View
from llm_games.wrappers.llm_policy import run_sync
from llm_games.wrappers.policy import Decision, Policy


class Place(NamedTuple):
    """Which decision is being made."""

    step: int
    seat: int


place: ContextVar[Place] = ContextVar("place")
"""Set while a seat of `play_table` decides, so that a client can log whom it answers."""


@dataclass(frozen=True)
class Step:
    """One step: who decided what, by seat, and what came of it."""

    number: int
    decisions: dict[int, Decision]
    outcome: Outcome


@dataclass
class Episode:
    """A game that was played.

    Attributes:
        game: the rules.
        seed: all randomness came from it.
        steps: what happened, in order.
        state: the last state; ``state.void`` says that a broken rule ended it without a score.
    """

    game: Rulebook
    seed: int
    state: Any
    steps: list[Step] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Return whether the rules ended the game (not a limit on its steps)."""
        return bool(self.state.over)

    @property
    def void(self) -> bool:
        """Return whether the game ended without a score."""
        return bool(self.state.void)

    @property
    def payoffs(self) -> Array:
        """Return each seat's payoff over all steps, float64 ``(players,)``."""
        rewards = (step.outcome.rewards for step in self.steps)
        return np.sum([np.zeros(self.game.players), *rewards], axis=0)

    @property
    def records(self) -> list[dict[str, Any]]:
        """Return what happened in each step as plain values, as scores read it."""
        return [plain(step.outcome) for step in self.steps]


def plain(outcome: Outcome) -> dict[str, Any]:
    """Return the record of a step as plain Python values."""
    return {name: np.asarray(value).tolist() for name, value in outcome.record.items()}


async def play_table(
    game: Rulebook,
    policies: Sequence[Policy],
    seed: int,
    *,
    on_step: Callable[[Step], Awaitable[None]] | None = None,
    max_steps: int | None = None,
) -> Episode:
    """Play one table to its end. All seats that have to move are asked at the same time.

    Args:
        game: the rules.
        policies: one for each seat; the same one may sit on several.
        seed: the chance of the game and each seat's randomness are split from it.
        on_step: awaited after each step, before anybody is asked again.
        max_steps: stop after so many; needed where the game itself has no limit.

    Raises:
        BadParameter: not one policy for each seat, or no limit on the steps at all.
    """
    _check(game, policies, max_steps)
    chance, *seeds = np.random.SeedSequence(seed).spawn(game.players + 1)
    rng = np.random.default_rng(chance)
    episode = Episode(game, seed, game.reset(rng))
    memories = [
        policy.start(game, seat, int(own.generate_state(1, np.uint64)[0] >> 1))
        for seat, (policy, own) in enumerate(zip(policies, seeds, strict=True))
    ]
    while not episode.over and (max_steps is None or len(episode.steps) < max_steps):
        decisions = await _ask(episode, policies, memories)
        moves = {seat: decision.action for seat, decision in decisions.items()}
        actions = game.assemble(episode.state, moves)
        episode.state, outcome = game.step(episode.state, actions, rng)
        episode.steps.append(Step(len(episode.steps), decisions, outcome))
        if on_step is not None:
            await on_step(episode.steps[-1])
    return episode


def play(
    game: Rulebook | str,
    policies: Sequence[Policy],
    seed: int = 0,
    *,
    max_steps: int | None = None,
    **parameters: Any,
) -> Episode:
    """Play one table and wait for its end.

    Args:
        game: the rules, or a game's name with its `parameters`.
        policies: one for each seat.
        seed: see `play_table`.
        max_steps: see `play_table`.
        parameters: of the game, see `llm_games.rulebook`.
    """
    if isinstance(game, str):
        game = rulebook(game, **parameters)
    elif parameters:
        raise BadParameter(f"{sorted(parameters)[0]!r}: parameters go with a game's name only")
    episode: Episode = run_sync(play_table(game, policies, seed, max_steps=max_steps))
    return episode


async def _ask(
    episode: Episode, policies: Sequence[Policy], memories: list[Any]
) -> dict[int, Decision]:
    """Ask all seats that have to move; put their new memories in place of the old."""
    game, state = episode.game, episode.state
    asked = [int(seat) for seat in np.flatnonzero(game.asked(state))]

    async def ask(seat: int) -> tuple[Decision, Any]:
        place.set(Place(len(episode.steps), seat))
        return await policies[seat].decide(View.of(game, state, seat), memories[seat])

    answers = await asyncio.gather(*map(ask, asked))
    for seat, (_, memory) in zip(asked, answers, strict=True):
        memories[seat] = memory
    return {seat: decision for seat, (decision, _) in zip(asked, answers, strict=True)}


def _check(game: Rulebook, policies: Sequence[Policy], max_steps: int | None) -> None:
    if len(policies) != game.players:
        raise BadParameter(
            f"{game.name} has {game.players} seats, so it needs {game.players} policies, "
            f"got {len(policies)}"
        )
    if max_steps is not None:
        check_integer("max_steps", max_steps, 1)
    elif game.length() is None:
        raise BadParameter(
            f"{game.name} with these parameters may never end: give max_steps, such as 1000"
        )
