"""Regret matching in games of one simultaneous move: everybody plays moves as they are regretted.

Hart and Mas-Colell, A simple adaptive procedure leading to correlated equilibrium, Econometrica
2000. Seats draw their moves; how often each joint move was played comes to the set of coarse
correlated equilibria, or, with ``--swap`` (regrets of each move apart, and inertia), of correlated
ones. The player is each seat's own frequencies, which need be no equilibrium: the log has both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from typer import Option

from llm_games.arrays import Array
from llm_games.baselines.training.common import Judged, command
from llm_games.baselines.training.solving import Solver, SolvingOptions, solve
from llm_games.baselines.tree import Tree
from llm_games.errors import BadParameter


@dataclass(frozen=True, kw_only=True)
class RegretOptions(SolvingOptions):
    """Options of regret matching."""

    steps: Annotated[int, Option(metavar="N", help="plays", min=1)] = 20_000
    swap: Annotated[bool, Option("--swap", help="regrets of each move apart, see above")] = False


class RegretMatching(Solver):
    """The algorithm. `counts` ``moves by seat`` are of joint moves; regrets are sums over plays.

    `regrets` are ``(seats, moves, moves)``: what the second move had brought where the first was
    played; where a seat has fewer moves than others, the rest is 0.
    """

    kept: ClassVar = ("counts", "regrets", "last", "plays")
    swap = False

    def __init__(self, tree: Tree, seed: int) -> None:
        self.tree, self.seed, self.payoffs = tree, seed, normal_form(tree)
        self.many = self.payoffs.shape[1:]
        most, players = max(self.many), len(self.many)
        self.counts = np.zeros(self.many, np.int64)
        self.regrets = np.zeros((players, most, most))
        self.last, self.plays = np.full(players, -1), np.zeros((), np.int64)
        self.inertia = 2 * np.ptp(self.payoffs) * most

    def step(self, number: int) -> None:
        """Draw everybody's move, and see what others had brought."""
        rng = np.random.default_rng((self.seed, number))
        played = tuple(
            int(rng.choice(many, p=self._chances(seat, many)))
            for seat, many in enumerate(self.many)
        )
        for seat, own in enumerate(played):
            line: Array = self.payoffs[seat][(*played[:seat], slice(None), *played[seat + 1 :])]
            self.regrets[seat, own, : self.many[seat]] += line - line[own]
        self.counts[played] += 1
        self.last, self.plays = np.array(played), self.plays + 1

    def _chances(self, seat: int, many: int) -> Array:
        """Return how likely a seat makes each of its moves."""
        if self.swap and self.plays:
            last = int(self.last[seat])
            chances = np.maximum(self.regrets[seat, last, :many], 0) / (self.plays * self.inertia)
            chances[last] = 0
            chances[last] = 1 - chances.sum()
            return chances
        good = np.maximum(self.regrets[seat].sum(axis=0)[:many], 0)
        return good / good.sum() if good.sum() > 0 else np.full(many, 1 / many)

    def average(self) -> Array:
        """Return how often each seat made each move."""
        weights = np.zeros(self.tree.count)
        for one, seat in enumerate(self.tree.rows.seat.tolist()):
            own = slice(*self.tree.rows.first[one : one + 2])
            others = tuple(np.delete(np.arange(len(self.many)), seat))
            weights[own] = self.counts.sum(axis=others)
        return self.tree.scaled(weights)

    def measures(self) -> Mapping[str, float]:
        """Return what the best other move brings a play, one for all plays, and one for each move.

        The first is 0 in coarse correlated equilibrium, the second in correlated equilibrium; both
        are sums over seats.
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
    """Return what joint moves pay, chance averaged, ``(players, moves of seat 0, ...)``.

    Raises:
        BadParameter: it is no game of one simultaneous move without private information.
    """
    players = tree.game.players
    if len(tree.levels) > 1 or tree.rows.seat.tolist() != list(range(players)):
        raise BadParameter(
            f"{tree.game.name} has more than one simultaneous move, or private information: take "
            "cfr or fictitious_play, or play one round (--param rounds=1)"
        )
    level, many = tree.levels[0], np.diff(tree.rows.first)
    whole = level.rewards * level.chance[level.node]
    summed: Array = whole.reshape(players, len(level.begin), *many).sum(axis=1)
    return summed


def train(options: RegretOptions) -> Judged:
    """Play, and return what the strategy comes to."""
    kind = SwapRegretMatching if options.swap else RegretMatching
    return solve("regret_matching", kind, options)


if __name__ == "__main__":
    command(train, RegretOptions)
