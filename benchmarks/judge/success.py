"""What counts as success in an episode, as somebody writes it: ``score >= 80``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import NamedTuple

import numpy as np

from llm_games.benchmarks.judge import results
from llm_games.benchmarks.judge.paper import editions, measure_of, papers
from llm_games.benchmarks.judge.results import measured_by, score_by, series
from llm_games.benchmarks.record.recorded_games import RecordedGame
from llm_games.errors import BadParameter, unknown

SIGNS: Mapping[str, Callable[[float, float], bool]] = {">=": ge, "<=": le, ">": gt, "<": lt}
SLACK = 1e-9  # values nearer than this are equal: they are sums and means of floats
WRITTEN = re.compile(r"\s*(?P<what>[^<>=]*[^<>=\s])\s*(?P<sign>[<>]=?)\s*(?P<bound>[-+\d.e]+)\s*")


class Success(NamedTuple):
    """An episode succeeds if `what`, a number of it, is above or below `bound`, as `sign` says.

    `what` is ``score``, ``payoff`` (of each player, mean over its seats), ``regret`` (of a round,
    mean over the seats) or what a paper judges its games by, such as ``survivors``.
    """

    what: str
    sign: str
    bound: float

    @classmethod
    def of(cls, text: str) -> Success:
        """Read a rule; BadParameter, or UnknownName where no number of an episode is called so."""
        match = WRITTEN.fullmatch(text)
        try:
            bound = float(match["bound"]) if match else None
        except ValueError:
            bound = None
        if match is None or bound is None:
            raise BadParameter(
                f"success must be a number of an episode, {', '.join(SIGNS)} and a bound, such as "
                f"'score >= 80', got {text!r}"
            )
        statistics = {"score", *(statistic.name for statistic in results.STATISTICS)}
        statistics |= {name for paper in papers() for name in paper.judged_by()}
        if match["what"] not in statistics:
            raise unknown("number of an episode", match["what"], statistics)
        return cls(match["what"], match["sign"], bound)

    def __str__(self) -> str:
        return f"{self.what} {self.sign} {self.bound:g}"

    def passed(self, game: RecordedGame, edition: str) -> dict[str, list[bool]]:
        """Whether each finished episode succeeded, by player; ``all``: of the table.

        BadParameter: the game, or an episode, has no such number; UnknownName: no such edition.
        """
        if edition not in editions():
            raise unknown("edition", edition, editions())
        measure = measure_of(game)
        statistics = {"score": score_by(edition)} | {s.name: s for s in results.STATISTICS}
        statistics |= {measure.name: measured_by(measure)} if measure else {}
        by_player: Mapping[str, Sequence[float]] = {}
        if statistic := statistics.get(self.what):
            players = game.players if statistic.by_player else (None,)
            by_player = {name or "all": series(game, statistic, name).numbers for name in players}
        values = [value for numbers in by_player.values() for value in numbers]
        if not by_player or np.isnan(values).any():
            raise BadParameter(
                f"{game.label} has no {self.what} in every episode, so that {str(self)!r} says "
                "nothing of it: give it a success of its own, or leave it out with --game"
            )
        return {name: [*map(self._holds, numbers)] for name, numbers in by_player.items()}

    def _holds(self, value: float) -> bool:
        near = abs(value - self.bound) <= SLACK * max(1.0, abs(self.bound))
        return "=" in self.sign if near else SIGNS[self.sign](value, self.bound)
