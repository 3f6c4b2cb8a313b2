"""Counterfactual regret minimisation (CFR+) for all seats of a small game.

Zinkevich and others, Regret minimization in games with incomplete information, NeurIPS 2007;
Tammelin, Solving large imperfect information games using CFR+, 2014, arXiv:1407.5042. With two
players whose payoffs add up to a constant the average converges to an equilibrium; otherwise there
is no guarantee, and the log has the distance from one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.training.harness import Evaluation, command
from llm_games.baselines.training.solving import Solver, SolvingOptions, solve
from llm_games.baselines.tree import Tree

CFROptions = SolvingOptions


class CFR(Solver):
    """The algorithm: seats improve in turn, regrets stay at least 0, late play counts more."""

    state_names: ClassVar = ("regrets", "played")

    def __init__(self, tree: Tree, seed: int) -> None:
        self.tree = tree
        self.regrets, self.played = np.zeros(tree.count), np.zeros(tree.count)

    def step(self, number: int) -> None:
        """Improve each seat against the others' current strategy."""
        tree = self.tree
        seat_of = tree.rows.seat[tree.owner]
        for seat in range(tree.game.players):
            current = tree.scaled(self.regrets)
            _, brought = tree.worth(current)
            mean = np.add.reduceat(current * brought, tree.rows.first[:-1])[tree.owner]
            better = np.maximum(self.regrets + brought - mean, 0)
            self.regrets = np.where(seat_of == seat, better, self.regrets)
        current = tree.scaled(self.regrets)
        self.played += number * current * tree.own_reach(current)[tree.owner]

    def average(self) -> Array:
        return self.tree.scaled(self.played)

    def measures(self) -> Mapping[str, float]:
        """Return the distance of the last strategy, not the average, from equilibrium."""
        return {"tree/last_nash_conv": self.tree.nash_conv(self.tree.scaled(self.regrets))}


def train(options: CFROptions) -> Evaluation:
    return solve("cfr", CFR, options)


if __name__ == "__main__":
    command(train, CFROptions)
