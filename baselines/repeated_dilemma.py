"""The prisoner's dilemma repeated with a probability: what keeps cooperation up.

Payoffs are those of the first of two alike: R both cooperate, S and T alone, P nobody. Risk
dominance and the basin of always defect: Dal Bo and Frechette, American Economic Review 101, 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.payoff_tables import best_replies
from llm_games.errors import BadParameter
from llm_games.rulebook import Array


class Dilemma(NamedTuple):
    """Payoffs of a prisoner's dilemma, ``temptation > reward > punishment > sucker``."""

    temptation: Fraction
    reward: Fraction
    punishment: Fraction
    sucker: Fraction

    @classmethod
    def of(cls, paid: Array) -> Dilemma:
        """Return that of a table of exact payoffs, ``(2, 2, 2)``; BadParameter if it is none."""
        if np.shape(paid) == (2, 2, 2) and np.array_equal(paid[0], paid[1].T):
            (reward, sucker), (temptation, punishment) = paid[0].tolist()
            if temptation > reward > punishment > sucker:
                return cls(temptation, reward, punishment, sucker)
        raise BadParameter(
            "this is for a prisoner's dilemma: two players alike with two actions, for whom action "
            "1 alone is best, then both 0, both 1, and 0 alone"
        )

    @property
    def grim_holds_from(self) -> Fraction:
        """The continuation from which grim is a subgame-perfect equilibrium."""
        return (self.temptation - self.reward) / (self.temptation - self.punishment)

    @property
    def risk_dominant_from(self) -> Fraction:
        """The continuation from which grim is risk dominant against always defect."""
        t, r, p, s = self
        return (t - r + p - s) / (t - s)

    @property
    def win_stay_holds_from(self) -> Fraction:
        return (self.temptation - self.reward) / (self.reward - self.punishment)

    @property
    def tit_for_tat_holds_from(self) -> Fraction:
        """The continuation from which tit for tat is a Nash equilibrium."""
        gain = self.temptation - self.reward
        return max(self.grim_holds_from, gain / (self.reward - self.sucker))

    def defection_basin(self, continuation: Fraction) -> Fraction:
        """Return the belief in grim up to which always defect is better, 1 if grim never is."""
        t, r, p, s = self
        if continuation < self.grim_holds_from:
            return Fraction(1)
        lost = (1 - continuation) * (p - s)
        gained = r - (1 - continuation) * t - continuation * p + lost
        return lost / gained if gained else Fraction(1)

    @property
    def generosity(self) -> Fraction:
        """The most forgiving chance with which tit for tat is still not exploited."""
        t, r, p, s = self
        return min(1 - (t - r) / (r - s), (r - p) / (t - p))


def held_from(paid: Array, outcome: Sequence[int], stage: Sequence[int]) -> Fraction | None:
    """Return the continuation from which an outcome is held by reverting to a pure equilibrium.

    `paid` are exact payoffs, ``(players, *actions)``. None where no continuation below 1 does:
    somebody gains by leaving and is paid no less afterwards.
    """
    cell, stable = tuple(outcome), tuple(stage)
    of_all: Any = (slice(None), *stable)
    if not best_replies(paid)[of_all].all():
        raise BadParameter(f"stage must be a pure equilibrium of a round, got {stable}")
    needed = Fraction(0)
    for seat, payoffs in enumerate(paid):
        best = payoffs.max(axis=seat)[cell[:seat] + cell[seat + 1 :]]
        gain, loss = best - payoffs[cell], best - payoffs[stable]
        if gain and gain >= loss:
            return None
        needed = max(needed, Fraction(gain, loss) if gain else Fraction(0))
    return needed
