"""What describes play of the money request game: levels, the bonus, who is near."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.games.money_request.theory import symmetric_equilibrium
from llm_games.baselines.pair_theory import paid_in
from llm_games.baselines.people_data import people
from llm_games.baselines.play_measures import SHARE, PlayMeasure, mean_of, mean_payoff, own_moves
from llm_games.baselines.reasoning_levels import DEEPEST, level_measures
from llm_games.baselines.regret import Steps

FAR = "total variation to"


def measures(game: Any) -> Mapping[str, PlayMeasure]:
    """Return the mean, how often the bonus is won, levels, and distances to equilibrium and people.

    The people are those of the first study with these rules.
    """
    ladder = list(range(game.high, max(game.high - DEEPEST, game.low) - 1, -1))
    levels = level_measures(ladder)
    shares = {figure.measure: figure.value for figure in reversed(people(game))}
    laws = {f"{FAR} the equilibrium": np.array(symmetric_equilibrium(game), np.float64)}
    if levels.keys() & shares.keys():
        laws[f"{FAR} people"] = np.array([shares.get(name, 0.0) for name in levels])
    named = {"mean request": mean_of((game.low, game.high)), "bonus rate": PlayMeasure(won)}
    named |= levels
    for name, law in laws.items():
        named[name] = PlayMeasure(flat_moves, SHARE, partial(variation, game.high, law))
    return named | mean_payoff(game, partial(paid_in, game))


def won(steps: Steps, seats: Sequence[int]) -> Array:
    requests = steps["actions"]
    return np.equal(requests, requests[::-1] - 1)[seats]


def flat_moves(steps: Steps, seats: Sequence[int]) -> Array:
    return own_moves(steps, seats).ravel()


def variation(high: int, chances: Array, requests: Array) -> float:
    """Return the total variation between requests and these chances from `high` downward."""
    frequencies = np.array([(requests == high - below).mean() for below in range(len(chances))])
    return float(np.abs(frequencies - chances).sum() + abs(frequencies.sum() - chances.sum())) / 2
