"""One table: players of any kind play one game to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from llm_games.errors import BadParameter
from llm_games.registry import rulebook
from llm_games.rulebook import Array, Outcome, Rulebook, check_integer
from llm_games.view import NOBODY, Sight, Who
from llm_games.wrappers.llm_policy import run_sync
from llm_games.wrappers.policy import Decision, Note, Policy


class Place(NamedTuple):
    """A decision in an episode."""

    step: int
    seat: int


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
        afterwards: what players did on looking back at it, by seat, see `Policy.finish`.
        who: which episode it is, as those hear it who are asked.
    """

    game: Rulebook
    seed: int
    state: Any
    steps: list[Step] = field(default_factory=list)
    afterwards: dict[int, Decision] = field(default_factory=dict)
    who: Who = NOBODY

    @property
    def sight(self) -> Sight:
        """Return the state as the seats see it."""
        return Sight(self.game, self.state, self.who._replace(step=len(self.steps)))

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
    recalled: Mapping[int, Sequence[Note]] | None = None,
    who: Who | None = None,
) -> Episode:
    """Play one table to its end. All seats that have to move are asked at the same time.

    Args:
        game: the rules.
        policies: one for each seat; the same one may sit on several.
        seed: the chance of the game and each seat's randomness are split from it.
        on_step: awaited after each step, before anybody is asked again.
        max_steps: stop after so many; needed where the game itself has no limit.
        recalled: by seat, notes of the game before, in a series of games.
        who: which episode it is, for those who are asked; by default the game and the seed.

    Raises:
        BadParameter: not one policy for each seat, a negative seed, no limit on the steps at all.
    """
    _check(game, policies, max_steps)
    check_integer("seed", seed, 0)
    chance, *seeds = np.random.SeedSequence(seed).spawn(game.players + 1)
    rng = np.random.default_rng(chance)
    episode = Episode(game, seed, game.reset(rng), who=who or Who(game.name, seed))
    memories = [
        policy.start(game, seat, int(own.generate_state(1, np.uint64)[0] >> 1))
        for seat, (policy, own) in enumerate(zip(policies, seeds, strict=True))
    ]
    for seat, notes in (recalled or {}).items():
        memories[seat] = policies[seat].recall(memories[seat], notes)
    hearing = [i for i, p in enumerate(policies) if type(p).hear is not Policy.hear]
    _tell(episode, policies, memories, hearing)
    while not episode.over and (max_steps is None or len(episode.steps) < max_steps):
        decisions = await _ask(episode, policies, memories)
        moves = {seat: decision.action for seat, decision in decisions.items()}
        actions = game.assemble(episode.state, moves)
        episode.state, outcome = game.step(episode.state, actions, rng)
        episode.steps.append(Step(len(episode.steps), decisions, outcome))
        if on_step is not None:
            await on_step(episode.steps[-1])
        _tell(episode, policies, memories, hearing)
    if episode.over:
        await _finish(episode, policies, memories)
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
    sight = episode.sight
    asked = [int(seat) for seat in np.flatnonzero(sight.game.asked(sight.state))]

    async def ask(seat: int) -> tuple[Decision, Any]:
        return await policies[seat].decide(sight.view(seat), memories[seat])

    # Only those who wait for something are worth a task each.
    waiting = [seat for seat in asked if type(policies[seat]).decide is not Policy.decide]
    coming = await asyncio.gather(*map(ask, waiting)) if waiting else []
    answers = dict(zip(waiting, coming, strict=True))
    for seat in asked:
        if seat not in answers:
            answers[seat] = policies[seat].act(sight.view(seat), memories[seat])
    for seat in asked:
        memories[seat] = answers[seat][1]
    return {seat: answers[seat][0] for seat in asked}


def _tell(
    episode: Episode, policies: Sequence[Policy], memories: list[Any], hearing: Sequence[int]
) -> None:
    """Let players hear what the state tells them, whether they are asked or not."""
    sight = episode.sight
    for seat in hearing:
        memories[seat] = policies[seat].hear(sight.view(seat), memories[seat])


async def _finish(episode: Episode, policies: Sequence[Policy], memories: list[Any]) -> None:
    """Let players look back, all at the same time."""
    sight = episode.sight

    async def finish(seat: int) -> None:
        decision = await policies[seat].finish(sight.view(seat), memories[seat])
        if decision is not None:
            episode.afterwards[seat] = decision

    looking = [i for i, p in enumerate(policies) if type(p).finish is not Policy.finish]
    await asyncio.gather(*map(finish, looking))


def _check(game: Rulebook, policies: Sequence[Policy], max_steps: int | None) -> None:
    if isinstance(policies, Policy) or not all(isinstance(p, Policy) for p in policies):
        raise BadParameter(
            f"policies must be one Policy for each seat, such as [make_player('rational')] * "
            f"{game.players}; got {policies!r}"
        )
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
