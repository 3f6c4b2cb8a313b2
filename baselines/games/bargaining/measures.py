"""What describes bargaining: shares offered, what is rejected, what would be accepted.

Offers are the proposer's, answers the other's. Shares are those of the pie offered to the other.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.play_measures import SHARE, PlayMeasure, median
from llm_games.baselines.regret import Steps
from llm_games.games.bargaining.rules import ACCEPT

ASKED = (1, 10, 20, 25, 30, 40, 45, 50, 60)  # per cent of the pie


def measures(game: Any) -> Mapping[str, PlayMeasure]:
    def offered(steps: Steps, seats: Sequence[int]) -> Array:
        return _offers(steps, seats, 0)[0] / game.pie

    def within(tenth: int, steps: Steps, seats: Sequence[int]) -> Array:
        return tenths(offered(steps, seats)) == tenth

    shares = {
        "mean offer": PlayMeasure(offered),
        "median offer": PlayMeasure(offered, SHARE, median),
        "offers nothing": PlayMeasure(lambda s, seats: offered(s, seats) == 0),
        "offers exactly half": PlayMeasure(lambda s, seats: offered(s, seats) == 1 / 2),
        **{f"offers {name}": PlayMeasure(partial(within, k)) for k, name in enumerate(TENTHS)},
    }
    if not game.veto:
        return shares
    named = {**shares, **(_least(game) if game.at_once else _answers(game))}
    agreed = lambda steps, seats: steps["period"][steps["answer"] == ACCEPT]  # noqa: E731
    return named | {
        "periods until agreement": PlayMeasure(agreed, (1, game.periods)),
        "efficiency": PlayMeasure(lambda s, seats: np.atleast_1d(s["payoffs"].sum()) / game.pie),
    }


TENTHS = [f"{low} to {low + 9} %" for low in range(0, 100, 10)] + ["100 %"]


def tenths(shares: Array) -> Array:
    return np.floor(np.round(shares * 10, 9)).astype(int)


def implied_least(answers: Array) -> float:
    """Return the share from which on acceptance fits most answers, the lowest of equals.

    `answers` are shares and whether each was accepted, ``(answers, 2)``. 1 is also that of one who
    accepts nothing.
    """
    shares, accepted = answers.T
    limits = np.unique([0.0, *shares, 1.0])
    wrong = [((shares >= limit) != accepted).sum() for limit in limits]
    return float(limits[int(np.argmin(wrong))])


def _least(game: Any) -> Mapping[str, PlayMeasure]:
    """Return what the other names at once, its smallest offer accepted."""

    def least(steps: Steps, seats: Sequence[int]) -> Array:
        other = 1 - int(steps["proposer"][0])
        return steps["actions"][[seat for seat in seats if seat == other]] / game.pie

    def accepts(percent: int) -> Callable[..., Array]:
        return lambda steps, seats: least(steps, seats) <= percent / 100

    named = {"mean smallest accepted": PlayMeasure(least)}
    named |= {f"would accept {percent} %": PlayMeasure(accepts(percent)) for percent in ASKED}
    return named | {"rejected": PlayMeasure(lambda s, seats: _offers(s, seats, 1)[1] != ACCEPT)}


def _answers(game: Any) -> Mapping[str, PlayMeasure]:
    """Return how offers are answered, all and by tenths of the pie."""

    def answers(steps: Steps, seats: Sequence[int]) -> Array:
        offer, answer = _offers(steps, seats, 1)
        return np.stack([offer / game.pie, answer == ACCEPT], axis=1)

    def refused(steps: Steps, seats: Sequence[int], tenth: int | None = None) -> Array:
        shares, accepted = answers(steps, seats).T
        return (accepted == 0)[(tenths(shares) == tenth) | (tenth is None)]

    by_tenth = {
        f"rejected of {name}": PlayMeasure(partial(refused, tenth=k))
        for k, name in enumerate(TENTHS)
    }
    named = {"rejected": PlayMeasure(refused)} | by_tenth
    return named | {"implied smallest accepted": PlayMeasure(answers, SHARE, implied_least)}


def _offers(steps: Steps, seats: Sequence[int], answering: int) -> Array:
    """Return offers that were answered and the answers, of proposers (or others) in these seats."""
    seat = np.abs(steps["proposer"] - answering)
    whole = (steps["answer"] >= 0) & np.isin(seat, seats)
    return np.stack([steps["offer"][whole], steps["answer"][whole]])
