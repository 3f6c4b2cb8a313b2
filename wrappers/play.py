"""One game played to its end, with policies in all seats."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from llm_games.errors import BadParameter
from llm_games.facts import check_integer
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.table import Table
from llm_games.view import Who
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.policy import Note, Policy
from llm_games.wrappers.seats import Episode, Seats, Step, moves_of
from llm_games.wrappers.together import run_sync
from llm_games.wrappers.user_players import player_of


async def play_table(
    game: Rulebook,
    policies: Sequence[Policy],
    seed: int,
    *,
    on_step: Callable[[Step], Awaitable[None]] | None = None,
    max_steps: int | None = None,
    recalled: Mapping[int, Sequence[Note]] | None = None,
    given: Mapping[str, Any] | None = None,
    who: Who | None = None,
) -> Episode:
    """Play one table to its end. All seats that have to move are asked at the same time.

    Args:
        game: the rules.
        policies: one for each seat; the same one may sit on several.
        seed: the chance of the game and each seat's randomness come from it.
        on_step: awaited after each step, before anybody is asked again; the episode then keeps no
            steps, so that a long one takes no more memory.
        max_steps: stop after so many; needed where the game itself has no limit.
        recalled: by seat, notes of the game before, in a series of games.
        given: by name, what chance would else decide, see `Rulebook.reset`.
        who: which episode it is, for those who are asked; by default the game and the seed.

    Raises:
        BadParameter: not one policy for each seat, a negative seed, no limit on the steps at all,
            or chance that cannot be given.
    """
    _check(game, policies, max_steps)
    table = Table(game, who)
    table.reset(seed, given)
    seats = Seats(table, dict(enumerate(policies)))
    seats.start(recalled)
    episode = Episode(game, table.seed, table.state)
    while not episode.over and (max_steps is None or table.steps < max_steps):
        decisions = await seats.ask()
        outcome = table.step(moves_of(decisions))
        episode.state = table.state
        step = Step(episode.length, decisions, outcome)
        episode.add(step, keep=on_step is None)
        if on_step is not None:
            await on_step(step)
        seats.hear()
    if episode.over:
        episode.afterwards = await seats.finish()
    return episode


def play(
    game: Rulebook | type[Rulebook] | str,
    policies: Sequence[Any],
    seed: int = 0,
    *,
    max_steps: int | None = None,
    given: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> Episode:
    """Play one table and wait for its end, see `play_table`.

    A game may be a name or a class, with `parameters` of `llm_games.rulebook`; players also clients
    or plain functions, see `player_of`.
    """
    game = rulebook(game, **parameters)
    if isinstance(policies, list | tuple):
        policies = [p if isinstance(p, str) else policy_of(p) for p in policies]
    return run_sync(play_table(game, policies, seed, max_steps=max_steps, given=given))


def policy_of(candidate: Any) -> Policy:
    """Return the policy that something is, or that asks it as a model; raises as `player_of`."""
    player = player_of(candidate)
    return player if isinstance(player, Policy) else LLMPolicy(player)


def _check(game: Rulebook, policies: Sequence[Policy], max_steps: int | None) -> None:
    count = game.players
    if isinstance(policies, Policy) or not all(isinstance(p, Policy) for p in policies):
        rule = f"one Policy for each seat, such as [make_player('rational')] * {count}"
        raise BadParameter(f"policies must be {rule}; got {policies!r}")
    if len(policies) != count:
        need = f"{count} seats, so it needs {count} policies"
        raise BadParameter(f"{game.name} has {need}, got {len(policies)}")
    if max_steps is not None:
        check_integer("max_steps", max_steps, 1)
    elif game.length() is None:
        fault = "may never end: give max_steps, such as 1000"
        raise BadParameter(f"{game.name} with these parameters {fault}")
