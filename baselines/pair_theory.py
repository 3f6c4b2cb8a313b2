"""What games of one number against another share: payoff tables, regret, and players' rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from llm_games.baselines.payoff_tables import check_table
from llm_games.baselines.regret import Steps
from llm_games.baselines.rules import Rule, whole
from llm_games.exact_payoffs import ExactPayoffs
from llm_games.noise import Noise
from llm_games.number_pairs import NumberPair
from llm_games.rulebook import Array, PerPlayer
from llm_games.view import View

Reply = Callable[[Any, Array], Array]
"""``reply(game, others)`` is the best reply to the other's numbers."""


def payoff_table(game: NumberPair) -> ExactPayoffs:
    """Return all payoffs by numbers above the lowest."""
    check_table(2 * (game.high - game.low + 1) ** 2)
    numbers = np.arange(game.low, game.high + 1)
    units = np.rint(game.paid(numbers[:, None], numbers) * game.payoff_unit).astype(np.int64)
    return ExactPayoffs(np.stack([units, units.T]).astype(object), game.payoff_unit)


def regret(game: NumberPair, numbers: PerPlayer, reply: Reply) -> PerPlayer:
    others = numbers[::-1]
    return game.paid(reply(game, others), others) - game.paid(numbers, others)


def paid_in(game: NumberPair, steps: Steps, seats: Sequence[int]) -> Array:
    """Return the payoffs of these seats by step, for `mean_payoff`."""
    numbers = steps["actions"]
    return game.paid(numbers, numbers[::-1])[list(seats)]


def reply_to_last(reply: Reply, rational: Rule) -> Rule:
    """Return the rule that replies to the other's last number, and in round 1 is `rational`."""

    def rule(view: View, noise: Noise) -> Array:
        best = reply(view.game, whole(view, "other"))
        return np.where(view.number("round") > 1, best, rational(view, noise))

    return rule
