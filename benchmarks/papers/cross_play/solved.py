"""What a cross-play came to, by episodes, which have the same chance in all line-ups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from llm_games.baselines.alpha_rank import ALPHA, POPULATION, RANKED, alpha_rank, alpha_rank_lineups
from llm_games.baselines.crossplay import ALL, Cross, lineup
from llm_games.baselines.equilibria import Correlated, Equilibrium, correlated, equilibria, searched
from llm_games.baselines.metagame import MetaGame
from llm_games.benchmarks.judge.intervals import Interval
from llm_games.benchmarks.judge.means import SHARE, MeanCell, apart, paid
from llm_games.benchmarks.judge.pairwise_ratings import Ratings, bradley_terry
from llm_games.benchmarks.judge.result_table import ResultTable, columns
from llm_games.errors import BadParameter
from llm_games.rulebook import Array

SAMPLES, SEED = 200, 2024  # of the bootstrap over episodes, and of its draws
LEVEL = 0.95
SHOWN = 0.005  # share of a mixture from which a player is named in it
LIKELY = 8  # line-ups of a correlated equilibrium that are named


@dataclass(frozen=True, eq=False)
class Crossed:
    """What there is to know of a cross-play, each worked out once."""

    cross: Cross

    @cached_property
    def meta(self) -> MetaGame:
        """The meta-game of mean payoffs."""
        return self.cross.meta()

    @cached_property
    def equilibria(self) -> list[Equilibrium]:
        """Its symmetric equilibria, the most even first; none if none was found."""
        try:
            return equilibria(self.meta)
        except BadParameter:
            return []

    @cached_property
    def correlated(self) -> tuple[Correlated, Correlated]:
        """The correlated equilibria that pay most and least."""
        return correlated(self.meta), correlated(self.meta, best=False)

    @cached_property
    def alpha_rank(self) -> list[MeanCell]:
        """α-rank's masses; their intervals are of the bootstrap over episodes."""
        masses, many = alpha_rank(self.meta), self.cross.episodes
        if many < 2:
            return [MeanCell(float(mass), None, many, None, SHARE) for mass in masses]
        rng = np.random.default_rng(SEED)
        drawn = rng.multinomial(many, [1 / many] * many, SAMPLES)
        found = np.array([alpha_rank(self.cross.meta(weights)) for weights in drawn])
        low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        ends = zip(masses.tolist(), low.tolist(), high.tolist(), strict=True)
        spans = [(mass, Interval(a, b, "bootstrap", many)) for mass, a, b in ends]
        return [MeanCell(mass, None, many, interval, SHARE) for mass, interval in spans]

    @cached_property
    def payoffs(self) -> list[MeanCell | None]:
        """What each earns among others drawn evenly from all players."""
        many = len(self.cross.names)
        earned = self.cross.against(np.full(many, 1 / many))
        return [paid(own.tolist(), self.cross.payable) for own in earned]

    @cached_property
    def losses(self) -> list[MeanCell | None]:
        """What each loses to the most even equilibrium among players of it, paired by episode."""
        if not self.equilibria:
            return [None] * len(self.cross.names)
        mixture = self.equilibria[0].mixture
        earned, ends = self.cross.against(mixture), apart(self.cross.payable)
        return [paid((mixture @ earned - own).tolist(), ends) for own in earned]

    @cached_property
    def ratings(self) -> Ratings | None:
        """Ratings by who earned more than whom at a table; None where some never met."""
        try:
            return bradley_terry(self.cross.names, self.cross.ahead)
        except BadParameter:  # as all their episodes are void
            return None

    def rating(self, name: str) -> MeanCell | None:
        """Return how far a player is rated above the `reference`."""
        if self.ratings is None:
            return None
        mean, interval = self.ratings.difference(name, self.reference)
        interval = interval if name != self.reference else None
        return MeanCell(mean, None, self.ratings.games, interval)

    @property
    def reference(self) -> str:
        """Whom ratings are set beside: ``random`` where it plays, else the first."""
        names = self.cross.names
        return "random" if "random" in names else names[0]

    def standings(self) -> ResultTable:
        """Return a row for each player, best payoff first."""
        heads = columns("player", "payoff", ".2f") | {f"rating above {self.reference}": ".2f"}
        heads |= {"in equilibrium": ".1%", "loses to it": ".2f", "α-rank": ".1%"}
        names = self.cross.names
        mixture = self.equilibria[0].mixture.tolist() if self.equilibria else [None] * len(names)
        about = self.payoffs, map(self.rating, names), mixture, self.losses, self.alpha_rank
        rows = sorted(zip(names, *about, strict=True), key=lambda row: -row[1].mean)
        return ResultTable(heads, rows, "Standings", "standings", self._note(), strong=["payoff"])

    def _note(self) -> str:
        void = ""
        if self.cross.void:
            void = f" {self.cross.void} void episodes count as their line-up's mean."
        many = " (one of them at a table, all others alike)" * (self.cross.which != ALL)
        return (
            f"Payoff: of a seat, among others drawn evenly from all players{many}. Rating: "
            "Bradley-Terry, from who earned more than whom at a table, in logits. In "
            "equilibrium: share in the most even symmetric Nash equilibrium of the meta-game, and "
            "what a seat loses to it there. α-rank: share of the long run in a population of "
            f"{POPULATION} with α = {ALPHA:g} over the range of payoffs.{void}"
        )

    def matrix(self) -> ResultTable:
        """Return what each earns as the only one of its kind among those of another."""
        names, payable = self.cross.names, self.cross.payable
        rows = [
            [name, *(paid(self.alone(who, other), payable) for other in range(len(names)))]
            for who, name in enumerate(names)
        ]
        heads = {"player": ""} | {f"among {name}": ".2f" for name in names}
        note = "Mean payoff of the row's player where all other seats are the column's."
        return ResultTable(heads, rows, "Each with each", "matrix", note)

    def alone(self, who: int, other: int) -> list[float]:
        """Return what one earns by episode among those of a kind."""
        counts = np.zeros(len(self.cross.names), np.int64)
        counts[other] = self.meta.players - 1
        counts[who] += 1
        row = self.meta.row[tuple(counts.tolist())]
        return [float(paid) for paid in self.cross.payoffs[row, who]]

    def solved(self) -> list[ResultTable]:
        """Return the equilibria, and where line-ups are known what comes of these."""
        grids = [self.equilibrium_grid()]
        if self.cross.which == ALL:
            grids.append(self.correlated_grid())
            grids += [self.ranked_grid()] if len(self.meta.counts) <= RANKED else []
        return grids

    def equilibrium_grid(self) -> ResultTable:
        """Return the symmetric equilibria that were found, those of a set together."""
        rows = [
            [one.set + 1, self.mixed(one.mixture), one.payoff, one.regret]
            for one in self.equilibria
        ]
        heads = {"set": ">", "mixture": ""} | columns("", "payoff", ".2f")
        heads |= {"a change gains": ".2g"}
        size, many = searched(self.meta)
        sought = f" Sets of up to {size} of {many} players were searched." if size < many else ""
        missing = " With more than two seats some may be missing." if self.meta.players > 2 else ""
        joined = (
            " Those of one set are joined by equilibria, as where players do alike: its most even "
            "one and its corners are shown."
        )
        alike = (
            " Mixtures are those of a game in which all others at a table are alike; one of a "
            "single player is one of the whole game."
        )
        joined *= len({one.set for one in self.equilibria}) < len(self.equilibria)
        none = " None was found." * (not self.equilibria)
        note = (
            "Symmetric Nash equilibria: all seats draw their player from the mixture."
            f"{alike * (self.cross.which != ALL)}{joined}{missing}{sought}{none} Those of mean "
            "payoffs, which chance moves: the losses in the standings have intervals."
        )
        return ResultTable(heads, rows, "Nash equilibria", "equilibria", note)

    def correlated_grid(self) -> ResultTable:
        """Return the correlated equilibria that pay most and least."""
        rows = []
        for which, found in zip(("pays most", "pays least"), self.correlated, strict=True):
            order = np.argsort(-found.chance, kind="stable")[:LIKELY]
            told = [(float(found.chance[row]), row) for row in order if found.chance[row] > SHOWN]
            named = (f"{lineup(self.meta.names, self.meta.counts[r])} {p:.0%}" for p, r in told)
            rows.append([which, found.payoff, "; ".join(named)])
        heads = {"correlated equilibrium": "", "payoff": ".2f", "line-ups": ""}
        note = f"The {LIKELY} likeliest line-ups; every correlated equilibrium pays between these."
        return ResultTable(heads, rows, "Correlated equilibria", "correlated", note)

    def ranked_grid(self) -> ResultTable:
        """Return the line-ups that are met most in the long run."""
        share = alpha_rank_lineups(self.meta)
        order = [r for r in np.argsort(-share, kind="stable")[:LIKELY] if share[r] > SHOWN]
        rows = [[lineup(self.meta.names, self.meta.counts[r]), float(share[r])] for r in order]
        note = (
            f"α-rank of a population for each seat, α = {ALPHA:g}: the {LIKELY} line-ups that are "
            "met most in the long run."
        )
        heads = {"line-up": "", "α-rank": ".1%"}
        return ResultTable(heads, rows, "Line-ups of the long run", "ranked", note)

    def lineup_grid(self) -> ResultTable:
        """Return what each player came to in each line-up that was played."""
        rows = []
        for row, counts in enumerate(self.cross.counts):
            for who in np.flatnonzero(counts):
                each = self.cross.paid[row, who]
                mean = paid(each[np.isfinite(each)].tolist(), self.cross.payable)
                words = lineup(self.cross.names, counts)
                rows.append([words, self.cross.names[who], int(counts[who]), mean])
        heads = {"line-up": "", "player": "", "seats": ">", "payoff": ".2f"}
        return ResultTable(heads, rows, "All line-ups", "lineups")

    def mixed(self, mixture: Array) -> str:
        """Return a mixture in words."""
        order = np.argsort(-mixture, kind="stable")
        shares = ((self.cross.names[who], float(mixture[who])) for who in order)
        return ", ".join(f"{share:.1%} {name}" for name, share in shares if share >= SHOWN)
