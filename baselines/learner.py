"""The learner's view of a game with players by name: what Gymnasium's registry calls."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

from llm_games.baselines.players import make_player
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.single_agent import SingleAgentEnv

SETTINGS = frozenset(signature(SingleAgentEnv).parameters)


def learner(
    game: str | Rulebook,
    *,
    opponents: str | Policy | Sequence[str | Policy] | None = None,
    **settings: Any,
) -> SingleAgentEnv:
    """Make a `SingleAgentEnv` whose opponents may be named, such as ``"rational"``.

    Raises:
        BadParameter, UnknownName: see `SingleAgentEnv` and `make_player`.
    """
    if isinstance(game, str):
        own = {key: settings.pop(key) for key in [*settings] if key not in SETTINGS}
        game = rulebook(game, **own)
    rules, chosen = game, opponents

    def seated(player: str | Policy) -> Policy:
        return make_player(player, rules) if isinstance(player, str) else player

    if isinstance(opponents, (str, Policy)):
        chosen = seated(opponents)
    elif opponents is not None:
        chosen = [seated(player) for player in opponents]
    return SingleAgentEnv(rules, opponents=chosen, **settings)  # type: ignore[arg-type]
