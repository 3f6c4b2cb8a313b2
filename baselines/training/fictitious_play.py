"""Fictitious play: everybody replies best to the others' average play so far.

Brown, Iterative solution of games by fictitious play, 1951; in games of several moves averages are
of realised play, as in Heinrich, Lanctot and Silver, Fictitious self-play in extensive-form games,
ICML 2015 (XFP). Averages converge to an equilibrium with two players whose payoffs add up to a
constant and in potential games; in others they may cycle for ever.
"""

from __future__ import annotations

from typing import ClassVar

from llm_games.arrays import Array
from llm_games.baselines.training.harness import Evaluation, command
from llm_games.baselines.training.solving import Solver, SolvingOptions, solve
from llm_games.baselines.tree import Tree

FictitiousOptions = SolvingOptions


class FictitiousPlay(Solver):
    """The algorithm. `played` is the accumulated reach of each row, ``(rows,)``."""

    state_names: ClassVar = ("played",)

    def __init__(self, tree: Tree, seed: int) -> None:
        self.tree = tree
        begun = tree.uniform()
        self.played = begun * tree.own_reach(begun)[tree.owner]

    def step(self, number: int) -> None:
        tree = self.tree
        replies, _ = tree.best_response(self.average())
        self.played += replies * tree.own_reach(replies)[tree.owner]

    def average(self) -> Array:
        return self.tree.scaled(self.played)


def train(options: FictitiousOptions) -> Evaluation:
    return solve("fictitious_play", FictitiousPlay, options)


if __name__ == "__main__":
    command(train, FictitiousOptions)
