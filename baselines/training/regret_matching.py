"""Regret matching in games of one simultaneous move: moves are drawn by their regrets.

Hart and Mas-Colell, A simple adaptive procedure leading to correlated equilibrium, Econometrica
2000. The frequencies of joint moves converge to the set of coarse correlated equilibria, or, with
``--swap`` (separate regrets for each move, and inertia), of correlated ones. The player is each
seat's own frequencies, which need be no equilibrium: the log has both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.training.harness import Evaluation, command, flag, option
from llm_games.baselines.training.solving import Solver, SolvingOptions, solve
from llm_games.baselines.tree import Tree
from llm_games.errors import BadParameter


@dataclass(frozen=True, kw_only=True)
class RegretOptions(SolvingOptions):
    """Options of regret matching."""

    steps: int = option(20_000, "N", "plays", min=1)
    swap: bool = flag("regrets of each move apart, see above")


class RegretMatching(Solver):
    """The algorithm. `counts` ``moves by seat`` are of joint moves; regrets are sums over plays.

    `regrets` ``(seats, moves, moves)`` are gains of the second move where the first was played.
    """

    state_names: ClassVar = ("counts", "regrets", "last", "plays")
    swap = False

    def __init__(self, tree: Tree, seed: int) -> None:
        self.tree, self.seed, self.payoffs = tree, seed, normal_form(tree)
        self.move_counts = self.payoffs.shape[1:]
        largest, players = max(self.move_counts), len(self.move_counts)
        self.counts = np.zeros(self.move_counts, np.int64)
        self.regrets = np.zeros((players, largest, largest))
        self.last, self.plays = np.full(players, -1), np.zeros((), np.int64)
        self.inertia = 2 * np.ptp(self.payoffs) * largest

    def step(self, number: int) -> None:
        """Draw everybody's move, and add the regrets of all others."""
        rng = np.random.default_rng((self.seed, number))
        played = tuple(
            int(rng.choice(count, p=self._chances(seat, count)))
            for seat, count in enumerate(self.move_counts)
        )
        for seat, move in enumerate(played):
            line: Array = self.payoffs[seat][(*played[:seat], slice(None), *played[seat + 1 :])]
            self.regrets[seat, move, : self.move_counts[seat]] += line - line[move]
        self.counts[played] += 1
        self.last, self.plays = np.array(played), self.plays + 1

    def _chances(self, seat: int, count: int) -> Array:
        if self.swap and self.plays:
            last = int(self.last[seat])
            chances = np.maximum(self.regrets[seat, last, :count], 0) / (self.plays * self.inertia)
            chances[last] = 0
            chances[last] = 1 - chances.sum()
            return chances
        good = np.maximum(self.regrets[seat].sum(axis=0)[:count], 0)
        return good / good.sum() if good.sum() > 0 else np.full(count, 1 / count)

    def average(self) -> Array:
        weights = np.zeros(self.tree.count)
        for index, seat in enumerate(self.tree.rows.seat.tolist()):
            row_span = slice(*self.tree.rows.first[index : index + 2])
            others = tuple(np.delete(np.arange(len(self.move_counts)), seat))
            weights[row_span] = self.counts.sum(axis=others)
        return self.tree.scaled(weights)

    def measures(self) -> Mapping[str, float]:
        """Return gains a play by one other move, and by one for each move, summed over seats.

        The first is 0 in coarse correlated equilibrium, the second in correlated equilibrium.
        """
        plays = max(1, int(self.plays))
        coarse = self.regrets.sum(axis=1).max(axis=1)
        swap = self.regrets.max(axis=2).sum(axis=1)
        return {
            "tree/coarse": float(coarse.sum()) / plays,
            "tree/correlated": float(swap.sum()) / plays,
        }


class SwapRegretMatching(RegretMatching):
    """With regrets of each move apart."""

    swap = True


def normal_form(tree: Tree) -> Array:
    """Return the mean payoffs of joint moves over chance, ``(players, moves of seat 0, ...)``."""
    players = tree.game.players
    if len(tree.levels) > 1 or tree.rows.seat.tolist() != list(range(players)):
        raise BadParameter(
            f"{tree.game.name} has more than one simultaneous move, or private information: take "
            "cfr or fictitious_play, or play one round (--param rounds=1)"
        )
    level, move_counts = tree.levels[0], np.diff(tree.rows.first)
    whole = level.rewards * level.chance[level.node]
    return whole.reshape(players, len(level.begin), *move_counts).sum(axis=1)


def train(options: RegretOptions) -> Evaluation:
    kind = SwapRegretMatching if options.swap else RegretMatching
    return solve("regret_matching", kind, options)


if __name__ == "__main__":
    command(train, RegretOptions)
