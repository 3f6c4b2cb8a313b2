"""Learners' environments with opponents by name: entry points of Gymnasium's registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

from llm_games.baselines.players import make_player
from llm_games.baselines.regret import regret as hindsight
from llm_games.baselines.scenarios import Scenario, seated_in
from llm_games.errors import UnknownKeyword
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.wrappers.grpo_rollout import GameRollout
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.single_agent import SingleAgentEnv
from llm_games.wrappers.vector_env import GameVectorEnv

Named = str | Policy | Sequence[str | Policy] | Mapping[int | str, str | Policy] | None


def learner(
    game: str | Rulebook,
    *,
    opponents: Named = None,
    scenario: str | Scenario | None = None,
    regret: bool = False,
    **settings: Any,
) -> SingleAgentEnv:
    """Make a `SingleAgentEnv` whose opponents may be named, such as ``"rational"``.

    With `regret`, ``infos`` say what the learner's last move lost in hindsight, by the game's
    theory. A `scenario` of the game brings its parameters and its background for opponents; where
    it has more focal seats than the learner's, `opponents` play those. It raises what
    `SingleAgentEnv`, `make_player` and `Scenario.opponents` do.
    """
    return _make_view(SingleAgentEnv, game, opponents, scenario, regret, settings)


def learners(
    game: str | Rulebook,
    num_envs: int = 1,
    *,
    opponents: Named = None,
    scenario: str | Scenario | None = None,
    regret: bool = False,
    **settings: Any,
) -> GameVectorEnv:
    """Make a `GameVectorEnv` whose opponents may be named; otherwise as `learner`."""
    settings["num_envs"] = num_envs
    return _make_view(GameVectorEnv, game, opponents, scenario, regret, settings)


def rollouts(
    game: str | Rulebook,
    *,
    opponents: Named = None,
    scenario: str | Scenario | None = None,
    regret: bool = False,
    **settings: Any,
) -> GameRollout:
    """Make a `GameRollout` whose opponents may be named; otherwise as `learner`.

    With `regret`, the language model learns from minus its regret, instead of from its payoff.
    """
    return _make_view(GameRollout, game, opponents, scenario, regret, settings)


def _make_view(
    kind: type, game: Any, opponents: Named, scenario: Any, regret: bool, settings: dict[str, Any]
) -> Any:
    """Return a view of this kind; its settings and the game's come as one set of parameters."""
    ours = signature(kind).parameters
    about = {key: settings.pop(key) for key in [*settings] if key not in ours}
    if scenario is not None:
        (game, opponents), about = seated_in(scenario, game, about, opponents), {}
    try:
        rules = rulebook(game, **about)
    except UnknownKeyword as error:
        key = error.args[1]
        if key in about:  # as Python says it, since callers look for that
            views = ", ".join(sorted({*ours, "scenario"} - {"game", "parameters"}))
            message = f"unexpected keyword argument {key!r}: {error}; or of the view: {views}"
            raise UnknownKeyword(message, key) from None
        raise
    policies: dict[str, Policy] = {}  # one player for all seats of a name

    def seated(player: Any) -> Any:
        if isinstance(player, str) and player not in policies:
            policies[player] = make_player(player, rules)
        return policies[player] if isinstance(player, str) else player

    if isinstance(opponents, Mapping):
        settings["opponents"] = {seat: seated(player) for seat, player in opponents.items()}
    elif isinstance(opponents, Sequence) and not isinstance(opponents, str):
        settings["opponents"] = [seated(player) for player in opponents]
    else:
        settings["opponents"] = seated(opponents)
    return kind(rules, regret=hindsight if regret else None, **settings)
