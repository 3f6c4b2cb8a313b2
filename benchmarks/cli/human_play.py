"""A person plays one game against chosen players, and is shown how well that went."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.deviation import deviation, has_deviation
from llm_games.baselines.players import make_player, on_server, players_for
from llm_games.benchmarks.cli.common import values_of
from llm_games.benchmarks.runs.config import ConfigError, GameSettings, checked
from llm_games.benchmarks.runs.plan import check, params_of
from llm_games.errors import BadParameter, LLMGamesError
from llm_games.rulebook import Rulebook
from llm_games.table import Table
from llm_games.view import View
from llm_games.words import Prompts
from llm_games.wrappers.human import HumanPolicy, show
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.seats import Episode, Seats, moves_of, play_table


class Move(NamedTuple):
    """A person's move and an equilibrium player's there ("" if none is defined), as written.

    `regret` is what another action would have gained, in hindsight; None where it is not defined.
    """

    step: int
    made: str
    rational: str
    regret: float | None


def parameters(game: str, given: Sequence[str], talk: Sequence[str] = ()) -> dict[str, Any]:
    """Read ``players=3`` and the like, and those of the talk; raises what `values_of` does."""
    raw = {"params": values_of("--param", given), "talk": values_of("--talk", talk)}
    return params_of(checked(GameSettings, {"game": game, **raw}, "--param"))


def opponents(game: Rulebook, specs: Sequence[str], server: Mapping[str, Any]) -> list[Policy]:
    """Make the players of the other seats: one spec for all of them, or one for each.

    Those behind a server are called by the settings of `server`.

    Raises:
        LLMGamesError: not as many as there are seats, or one cannot play this game.
    """
    usual = "rational" if "rational" in players_for(game.name) else "random"
    specs, others = specs or [usual], game.players - 1
    if len(specs) not in (1, others):
        raise ConfigError(
            f"{game.name} has {others} other seats, but --against names {len(specs)} players; "
            f"give one for all of them, or {others}"
        )
    specs = [*specs] * others if len(specs) == 1 else specs
    return [make_player(spec, game, server if on_server(spec) else {}) for spec in specs]


def play_with(
    game: Rulebook,
    seat: int,
    person: HumanPolicy,
    others: Sequence[Policy],
    seed: int,
    write: Callable[[str], None] = show,
) -> Episode:
    """Play a person's game to the end, and show the last report too; `others` sit in their order.

    Raises:
        ConfigError: there is no such seat, or a model does not answer.
        PersonLeft: the person has closed the input.
    """
    if not 0 <= seat < game.players:
        raise ConfigError(f"--seat must be from 0 to {game.players - 1}, got {seat}")
    limit = 1000 if game.length() is None else None  # a game that may never end

    async def played() -> Episode:
        try:
            await check({str(number): policy for number, policy in enumerate(others)})
            policies = [*others[:seat], person, *others[seat:]]
            return await play_table(game, policies, seed, max_steps=limit)
        finally:
            for policy in others:
                if isinstance(policy, LLMPolicy):
                    await policy.client.close()

    episode = asyncio.run(played())
    prompts = Prompts(game.name, person.prompts, person.prompt_folder)
    write("\n" + prompts.report(View.of(game, episode.state, seat)))
    return episode


def payoffs(episode: Episode, seat: int, others: Sequence[Policy]) -> list[tuple[str, str, float]]:
    """Return the name, the player and the payoff of every seat."""
    players = [policy.name for policy in others]
    players.insert(seat, "you")
    return list(zip(episode.game.names(), players, episode.payoffs.tolist(), strict=True))


def moves(episode: Episode, seat: int) -> list[Move]:
    """Go through a game again, without talk, and ask an equilibrium player for a seat's moves."""
    game, found = episode.game.core, []
    known = "rational" in players_for(game.name)
    table = Table(game)
    table.reset(episode.seed)
    adviser = Seats(table, {seat: make_player("rational", game)} if known else {})
    adviser.start()
    for step in (step for step in episode.steps if not step.talk):
        if seat in step.decisions:
            view, regret = table.ready().view(seat), None
            try:
                advice = [_written(view, decision) for decision in adviser.ask_now().values()]
            except LLMGamesError:  # not solved in this place, such as off the path of play
                advice = []
            if has_deviation(game.name):
                record = {name: np.asarray(value) for name, value in step.outcome.record.items()}
                with suppress(BadParameter):  # too large to be solved
                    lost = float(deviation(game, record).regret[seat])
                    regret = None if np.isnan(lost) else lost
            made = _written(view, step.decisions[seat])
            found.append(Move(step.number, made, "".join(advice), regret))
        table.step(moves_of(step.decisions))
        adviser.hear()
    return found


def _written(view: View, decision: Decision) -> str:
    """Write an action as a person would."""
    assert view.question is not None
    value = view.question.value_of(decision.action)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {share}" for key, share in value.items())
    return "none" if value is None else str(value)
