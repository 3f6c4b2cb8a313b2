"""What describes play of the traveler's dilemma: claims, how they fall, and levels."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from llm_games.baselines.games.travelers_dilemma.theory import level_k
from llm_games.baselines.pair_theory import paid_in
from llm_games.baselines.play_measures import PlayMeasure, mean_of, mean_payoff, own_moves
from llm_games.baselines.reasoning_levels import DEEPEST, level_measures

LATE = 5  # rounds at the end that are described by themselves, as for people


def measures(game: Any) -> Mapping[str, PlayMeasure]:
    fell = lambda steps, seats: np.diff(own_moves(steps, seats)) < 0  # noqa: E731
    ladder = [level_k(game, level) for level in range(1, DEEPEST + 1)]
    named = {"mean claim": mean_of((game.low, game.high)), "undercutting": PlayMeasure(fell)}
    if not game.open and game.rounds > LATE:
        named["mean claim, last five rounds"] = mean_of((game.low, game.high), game.rounds - LATE)
    return named | level_measures(ladder, first=1) | mean_payoff(game, partial(paid_in, game))
