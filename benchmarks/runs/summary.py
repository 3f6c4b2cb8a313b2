"""What a run came to, in numbers: scores, payoffs and rule breaks of each game."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from llm_games.baselines.deviation import conditional
from llm_games.benchmarks.runs import paper
from llm_games.benchmarks.runs.paper import Measure
from llm_games.benchmarks.runs.reader import Game, Tally, games
from llm_games.benchmarks.runs.records import Records
from llm_games.benchmarks.runs.references import Reference, references
from llm_games.benchmarks.runs.stats import FREE, MARK, Cell, Ends, estimated, paid, plain_ends


@dataclass(frozen=True)
class GameSummary:
    """One game of a run: its `label` there, and its name in the registry.

    `episodes` counts them by status; `scores` are those of the finished ones, 0 to 100, empty
    where none is defined, `measured` their values of the paper's `measure`, which lie within
    `ends`, as payoffs do within what is `payable`. `payoffs` are of each seat as configured,
    wherever it sat, summed over an episode, mean over the finished ones; `payoffs_of` has each
    finished episode's mean over a player's seats, and `payoff_of_a_seat` over all.
    `bad_replies` counts completions that were not legal moves, by outcome, `bad_thoughts` the
    same of what players think of beside their moves (such as a belief that does not agree with
    the facts), `filled_in` decisions for which the declared treatment was played. `conditional`
    says where scores are of one draw, `meant` what is judged and what is paid. `references` are
    what rule players come to at this table, if these were asked for.
    """

    label: str
    game: str
    players: list[str]
    episodes: dict[str, int]
    scores: list[float]
    payoffs: list[float]
    payoff_of_a_seat: list[float]
    payoffs_of: dict[str, list[float]]
    decisions: int
    bad_replies: dict[str, int]
    bad_thoughts: dict[str, int]
    filled_in: int
    measure: Measure | None
    measured: list[float]
    ends: Ends
    payable: Ends
    payable_by: dict[str, Ends]
    conditional: str = ""
    meant: str = ""
    references: list[Reference] = field(default_factory=list)

    @property
    def cell(self) -> Cell | None:
        """Return mean, standard deviation and interval of the scores."""
        return estimated(self.scores, paper.SCORED)

    @property
    def judged(self) -> Cell | None:
        """Return the same of the paper's measure."""
        return estimated(self.measured, self.ends, self.measure.least if self.measure else 2)

    @property
    def paid(self) -> dict[str, Cell]:
        """Return the same of the payoffs of each player's seats."""
        found = {
            name: paid(values, self.payable_by[name], True)
            for name, values in self.payoffs_of.items()
        }
        return {name: payoff for name, payoff in found.items() if payoff}

    @property
    def payoff_of(self) -> dict[str, float]:
        """Return the means of the payoffs of each player's seats."""
        return {name: payoff.mean for name, payoff in self.paid.items()}

    @property
    def payoff(self) -> Cell | None:
        """Return the same of the payoff of a seat."""
        return paid(self.payoff_of_a_seat, self.payable, True)

    @property
    def marked(self) -> bool:
        """Return whether too large a share of the decisions was filled in."""
        return self.filled_in > MARK * self.decisions

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        found = self.judged
        measure = self.measure and {
            **{"name": self.measure.name, "better": self.measure.better},
            **(found.plain() if found else dict.fromkeys(("mean", "std", "interval"))),
        }
        least = self.measure.least if self.measure else 2
        each = {name: payoff.plain() for name, payoff in self.paid.items()}
        means = {"score": self.cell, "payoff": self.payoff}
        return self.__dict__ | {
            **{name: mean and mean.plain() for name, mean in means.items()},
            **{name: plain_ends(getattr(self, name)) for name in ("ends", "payable")},
            **{"measure": measure, "paid": each, "marked": self.marked},
            "payoff_of": self.payoff_of,
            "payable_by": {name: plain_ends(ends) for name, ends in self.payable_by.items()},
            "references": [one.plain(self.ends, least) for one in self.references],
        }


def summary(records: Records, baselines: bool = False) -> list[GameSummary]:
    """Summarize a run game by game, scored by its own edition; with `baselines`, references too."""
    edition = paper.edition_of(records.config)
    found = [(game, _summary(game, edition)) for game in games(records)]
    if baselines:
        return [replace(own, references=references(game, edition)) for game, own in found]
    return [own for _, own in found]


def total(found: list[GameSummary]) -> Cell | None:
    """Return the mean over a paper's benchmark, if each of its games is there once.

    Of games that are all judged by one measure it is that measure's, if it has one.
    """
    measures = {id(game.measure): game.measure for game in found}
    measure = next(iter(measures.values()), None)
    if measure and len(measures) == 1 and len(found) > 1:
        return measure.overall([game.measured for game in found])
    return paper.overall([(game.game, game.scores) for game in found])


def _summary(game: Game, edition: str) -> GameSummary:
    scores, measured, payoffs, did = list[float](), list[float](), [], Tally()
    measure = paper.measure_of(game)
    for episode in game.episodes:
        did.add(episode.tallies()[0])
        if episode.row.status == "done":
            payoffs.append(episode.payoffs)
            score = paper.score_of(episode, edition)
            found = measure.of(episode) if measure else None
            scores += [] if score is None else [score]
            measured += [] if found is None else [found]
    earned = np.array(payoffs, np.float64).reshape(-1, len(game.seats))
    taken = {name: np.equal(game.seats, name) for name in game.players}
    return GameSummary(
        label=game.label,
        game=game.name,
        players=game.players,
        episodes=dict(game.states),
        scores=scores,
        payoffs=earned.mean(axis=0).tolist() if payoffs else [],
        payoff_of_a_seat=earned.mean(axis=1).tolist(),
        payoffs_of={name: earned[:, seats].mean(axis=1).tolist() for name, seats in taken.items()},
        decisions=did.decisions,
        bad_replies=_bad(did.moves),
        bad_thoughts=_bad(sum(did.others.values(), Counter())),
        filled_in=did.filled,
        measure=measure,
        measured=measured,
        ends=measure.ends(game.rules) if measure else FREE,
        payable=game.rules.core.payable_mean(len(game.seats)),
        payable_by={
            name: game.rules.core.payable_mean(int(seats.sum())) for name, seats in taken.items()
        },
        meant=paper.meant(game, edition),
        conditional=conditional(game.rules, game.planned.get("given")),
    )


def _bad(read: Counter[str]) -> dict[str, int]:
    return {name: n for name, n in read.items() if name not in ("unread", "valid", "tool")}
