"""What describes play of the trust game: what is sent, and what comes back of it.

What is sent is the investor's, what is returned the trustee's; shares of returns are of rounds in
which something was sent.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.play_measures import FREE, PlayMeasure, mean_payoff
from llm_games.baselines.regret import Steps


def measures(game: Any) -> Mapping[str, PlayMeasure]:
    first, second = game.endowment

    def returned(steps: Steps, seats: Sequence[int]) -> Array:
        sent, back = _rounds(steps, seats, 1)
        return (back / (game.multiplier * np.maximum(sent, 1)))[sent > 0]

    def enough(steps: Steps, seats: Sequence[int], gain: int = 0) -> Array:
        sent, back = _rounds(steps, seats, 1)
        return (back >= sent + gain)[sent > 0]

    def total(steps: Steps, seats: Sequence[int]) -> Array:
        sent, _ = _rounds(steps, (0, 1), 0)
        return (first + second + (game.multiplier - 1) * sent) / (game.multiplier * first + second)

    def missed(rounds: Array) -> float:
        """Return what the best amount against the mean share of returns would have brought."""
        sent, back = rounds.T
        trusts = sent > 0
        gain = float((back[trusts] / sent[trusts]).mean()) - 1 if trusts.any() else np.nan
        return float(np.where(gain > 0, (first - sent) * gain, -sent * gain).mean())

    def payoffs(steps: Steps, seats: Sequence[int]) -> Array:
        return steps["payoffs"][:, steps["returning"].astype(bool)][seats]

    return {
        "sent share": PlayMeasure(lambda s, seats: _rounds(s, seats, 0)[0] / first),
        "sent something": PlayMeasure(lambda s, seats: _rounds(s, seats, 0)[0] > 0),
        "returned share": PlayMeasure(returned),
        "returned at least what was sent": PlayMeasure(enough),
        "returned more than was sent": PlayMeasure(lambda s, seats: enough(s, seats, 1)),
        "efficiency": PlayMeasure(total),
        "investor's regret": PlayMeasure(lambda s, seats: _rounds(s, seats, 0).T, FREE, missed),
        "trustee's regret": PlayMeasure(
            lambda s, seats: _rounds(s, seats, 1)[1], (0, game.multiplier * first)
        ),
        **mean_payoff(game, payoffs),
    }


def _rounds(steps: Steps, seats: Sequence[int], trustee: int) -> Array:
    """Return what was sent and returned where one of the seats invests (or is the trustee)."""
    seat = np.abs(steps["investor"] - trustee)
    whole = steps["returning"].astype(bool) & np.isin(seat, seats)
    return np.stack([steps["sent"][whole], steps["returned"][whole]])
