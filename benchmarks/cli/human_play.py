"""A person plays one game against chosen players, and is shown how well that went."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_games.baselines.deviation import deviation, has_deviation
from llm_games.baselines.players import make_player, players_for
from llm_games.benchmarks.runs.config import (
    ConfigError,
    GameSettings,
    checked,
)
from llm_games.benchmarks.runs.plan import check, params_of
from llm_games.errors import LLMGamesError
from llm_games.rulebook import Rulebook
from llm_games.view import View
from llm_games.words import Prompts
from llm_games.wrappers.human import HumanPolicy
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.seats import Episode, Step, play_table

MAX_STEPS = 1000
"""Where a game itself may never end."""


@dataclass(frozen=True)
class Move:
    """One decision of the person: what it was, and an equilibrium player's in the same place.

    Attributes:
        step: of the game.
        made, rational: as they are written; `rational` is "" where no such player is defined.
        regret: what another action would have gained, in hindsight; None where it is not defined.
    """

    step: int
    made: str
    rational: str
    regret: float | None


def parameters(game: str, given: Sequence[str]) -> dict[str, Any]:
    """Read ``players=3`` and the like; what is no TOML value is text.

    Raises:
        ConfigError: one has no ``=``.
    """
    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--params {text!r} is not KEY=VALUE, such as players=3")
        try:
            found[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[key.strip()] = value.strip()
    return params_of(checked(GameSettings, {"game": game, "params": found}, "--params"))


def opponents(game: Rulebook, specs: Sequence[str], server: Mapping[str, Any]) -> list[Policy]:
    """Make the players of the other seats: one spec for all of them, or one for each.

    Those behind a server are called by the settings of `server`.

    Raises:
        LLMGamesError: not as many as there are seats, or one cannot play this game.
    """
    specs = specs or [
        next(name for name in ("rational", "random") if name in players_for(game.name))
    ]
    others = game.players - 1
    if len(specs) not in (1, others):
        raise ConfigError(
            f"{game.name} has {others} other seats, but --against names {len(specs)} players; "
            f"give one for all of them, or {others}"
        )
    specs = [*specs] * others if len(specs) == 1 else specs
    return [make_player(spec, game, server if spec.startswith("openai:") else {}) for spec in specs]


class PersonsGame:
    """One person's game.

    Args:
        game: the rules.
        seat: the person's.
        person: who sits there.
        others: the players of the other seats, in their order.
        write: shows a text.

    Raises:
        ConfigError: there is no such seat.
    """

    def __init__(
        self,
        game: Rulebook,
        seat: int,
        person: HumanPolicy,
        others: Sequence[Policy],
        write: Callable[[str], None] = print,
    ) -> None:
        if not 0 <= seat < game.players:
            raise ConfigError(f"--seat must be from 0 to {game.players - 1}, got {seat}")
        self.game, self.seat, self.person, self.write = game, seat, person, write
        self.advised = _Advised(person, game)
        self.policies = [*others[:seat], self.advised, *others[seat:]]
        self.moves: list[Move] = []

    def play(self, seed: int) -> Episode:
        """Play to the end, showing the last report too.

        Raises:
            PersonLeft: the person has closed the input.
            KeyboardInterrupt: Ctrl-C.
        """
        return asyncio.run(self._play(seed))

    async def _play(self, seed: int) -> Episode:
        limit = MAX_STEPS if self.game.length() is None else None
        named = {str(seat): policy for seat, policy in enumerate(self.policies)}
        named.pop(str(self.seat))
        try:
            await check(named)
            episode = await play_table(
                self.game, self.policies, seed, on_step=self._note, max_steps=limit
            )
        finally:
            for policy in named.values():
                if isinstance(policy, LLMPolicy):
                    await policy.client.close()
        prompts = Prompts(self.game.name, self.person.prompts, self.person.prompt_folder)
        self.write("\n" + prompts.report(View.of(self.game, episode.state, self.seat)))
        return episode

    async def _note(self, step: Step) -> None:
        """Keep what the person did, and what an equilibrium player would have done."""
        if self.seat not in step.decisions:
            return
        regret = None
        if has_deviation(self.game.name):
            record = {name: np.asarray(value) for name, value in step.outcome.record.items()}
            regret = float(deviation(self.game, record).regret[self.seat])
        self.moves.append(Move(step.number, *self.advised.last, regret))

    def payoffs(self, episode: Episode) -> list[tuple[str, str, float]]:
        """Return the seat's name, its player and its payoff, for every seat."""
        names = ["you" if policy is self.advised else policy.name for policy in self.policies]
        values = episode.payoffs.tolist()
        return list(zip(self.game.names(), names, values, strict=True))


class _Advised(Policy):
    """The person, with an equilibrium player looking over the shoulder and saying nothing."""

    def __init__(self, person: Policy, game: Rulebook) -> None:
        self.person, self.name = person, person.name
        self.adviser: Policy | None = None
        if "rational" in players_for(game.name):
            self.adviser = make_player("rational", game)
        self.last = ("", "")

    def start(self, game: Rulebook, seat: int, seed: int) -> Any:
        """Start both."""
        adviser = self.adviser.start(game, seat, seed) if self.adviser else None
        return self.person.start(game, seat, seed), adviser

    def act(self, view: View, memory: Any) -> tuple[Decision, Any]:
        """Decide as the person does."""
        raise NotImplementedError("a person is asked in an event loop")

    async def decide(self, view: View, memory: Any) -> tuple[Decision, Any]:
        """Decide as the person does; keep what the adviser would have done."""
        mine, other = memory
        decision, mine = await self.person.decide(view, mine)
        said = ""
        if self.adviser is not None:
            try:
                advice, other = self.adviser.act(view, other)
                said = _written(view, advice)
            except LLMGamesError:  # not solved in this place, such as off the path of play
                said = ""
        self.last = (_written(view, decision), said)
        return decision, (mine, other)


def _written(view: View, decision: Decision) -> str:
    """Write an action as a person would."""
    assert view.question is not None
    value = view.question.value_of(decision.action)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {share}" for key, share in value.items())
    return "null" if value is None else str(value)
