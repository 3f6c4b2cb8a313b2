"""What describes play of the minimum effort game: how high efforts are, and what is wasted."""

from collections.abc import Mapping
from typing import Any

from llm_games.baselines.games.minimum_effort.theory import equilibrium
from llm_games.baselines.play_measures import PlayMeasure, mean_of, mean_payoff, own_moves


def measures(game: Any) -> Mapping[str, PlayMeasure]:
    lowest = lambda steps, seats: steps["actions"].min(axis=0)  # noqa: E731
    wasted = lambda steps, seats: (steps["actions"] - steps["actions"].min(axis=0)).sum(axis=0)  # noqa: E731
    payoffs = lambda steps, seats: game.paid(lowest(steps, seats), own_moves(steps, seats))  # noqa: E731
    best = equilibrium(game)
    return {
        "mean effort": mean_of((game.low, game.high)),
        "lowest effort": PlayMeasure(lowest, (game.low, game.high)),
        "wasted effort": PlayMeasure(wasted, (0, (game.players - 1) * (game.high - game.low))),
        "at the best equilibrium": PlayMeasure(lambda s, seats: own_moves(s, seats) == best),
        **mean_payoff(game, payoffs),
    }
