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


def learner(
    game: str | Rulebook,
    *,
    opponents: str | Policy | Sequence[str | Policy] | None = None,
    **settings: Any,
) -> SingleAgentEnv:
    """Make a `SingleAgentEnv` whose opponents may be named, such as ``"rational"``.

    It raises what `SingleAgentEnv` and `make_player` do.
    """
    if isinstance(game, str):
        ours = signature(SingleAgentEnv).parameters
        game = rulebook(game, **{key: settings.pop(key) for key in [*settings] if key not in ours})

    def seated(player: Any) -> Any:
        return make_player(player, game) if isinstance(player, str) else player

    if opponents is None or isinstance(opponents, (str, Policy)):
        return SingleAgentEnv(game, opponents=seated(opponents), **settings)
    return SingleAgentEnv(game, opponents=[seated(player) for player in opponents], **settings)
